// Requests to the API, and the state of the server as seen through them.
import { body_member, segment_of } from "./bytes";
import { set_server_time } from "./clock";
import type { Session } from "./types";

const TOKEN = "sluice-token";
const TIMEOUT_MS = 20_000;

export class ApiError extends Error {
  constructor(readonly status: number, readonly code: string, detail: string) {
    super(detail);
  }
}

// It is not as it was seen any more: somebody else has changed it meanwhile.
export const is_changed = (error: unknown) => error instanceof ApiError && error.code === "CHANGED";

// The server did not respond at all.
export class Unreachable extends Error {}

export type Health = "connecting" | "connected" | "loading" | "disconnected";

let token: string | null = null;
try {
  token = sessionStorage.getItem(TOKEN);
} catch {
  // Storage is off: the token is lost with the page.
}
let health: Health = "connecting";
let session: Session | null = null;
// The token was refused, and has been forgotten.
let token_ended = false;
let heard_at: number | null = null;
let lost_at: number | null = null;

// Whether this node makes changes: as the primary of its group, or without one.
export type Lead = "yes" | "soon" | "no";
let lead: Lead = "yes";
// The last change was refused by a standby.
let lead_doubted = false;
const listeners = new Set<() => void>();

// Returns a function that removes the listener.
export function on_change(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function changed(): void {
  for (const listener of listeners) listener();
}

export function set_lead(next: Lead): void {
  if (lead === next && !lead_doubted) return;
  lead = next;
  lead_doubted = false;
  changed();
}

// Answered while the data is being loaded too: such an answer does not tell that it is loaded.
const ANSWERED_AMID_LOADING = /^\/api\/v1\/(session|group)(\?|$)/;

function set_health(next: Health): void {
  if (health === next) return;
  health = next;
  lost_at = next === "disconnected" ? heard_at ?? Date.now() : null;
  changed();
}

export const state = {
  get health() { return health; },
  get lost_at() { return lost_at; },
  get session() { return session; },
  get has_token() { return token !== null; },
  get token_ended() { return token_ended; },
  get lead() { return lead; },
  get lead_doubted() { return lead_doubted; },
  // Whether a button for such changes is of use here, now.
  may(role: "operate" | "admin"): boolean {
    const own = session?.role;
    return lead === "yes" && (own === "admin" || own === role);
  },
};

function keep_token(next: string | null): void {
  token = next;
  token_ended = false;
  try {
    if (next === null) sessionStorage.removeItem(TOKEN);
    else sessionStorage.setItem(TOKEN, next);
  } catch {
    // As above.
  }
}

export function headers(extra: Record<string, string> = {}): Record<string, string> {
  return token === null ? extra : { ...extra, Authorization: `Bearer ${token}` };
}

async function problem_of(response: Response): Promise<ApiError> {
  try {
    const body = await response.json();
    const field = body.field ? ` (${body.field})` : "";
    if (body.code === "CHANGED") {
      return new ApiError(response.status, body.code,
        `${body.field} is ${body.value === "" ? "not set" : body.value} now.`);
    }
    if (body.code === "NOTPRIMARY" && body.primary) body.detail += ` Try ${body.primary}.`;
    return new ApiError(response.status, body.code ?? "", (body.detail ?? body.title) + field);
  } catch {
    return new ApiError(response.status, "", response.statusText || `Status ${response.status}`);
  }
}

// Returns a response that is not an error, and updates the state of the server.
export async function open(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  const changes = (init.method ?? "GET") !== "GET";
  try {
    response = await fetch(path, { ...init, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (init.signal?.aborted && init.signal.reason?.name !== "TimeoutError") throw error;
    set_health("disconnected");
    // What was sent may have arrived.
    const doubt = changes && !path.includes("dry_run=true")
      ? " It is not known whether it has done what was asked." : "";
    throw new Unreachable("The server does not respond." + doubt);
  }
  heard_at = Date.now();
  if (response.ok) {
    if (health !== "loading" || !ANSWERED_AMID_LOADING.test(path)) set_health("connected");
    return response;
  }
  const problem = await problem_of(response);
  set_health(problem.code === "LOADING" ? "loading" : "connected");
  if (problem.code === "NOTPRIMARY") {
    lead_doubted = true;
    changed();
  }
  // What was offered is refused: the token may have another role by now.
  if (response.status === 403 && changes && session?.role) {
    void find_session().catch(() => undefined);
  }
  // A wrong password says nothing about the present session.
  if (response.status === 401 && problem.code !== "WRONGPASS" && session?.role) {
    session = null;
    changed();
  }
  throw problem;
}

export interface Options {
  signal?: AbortSignal;
  method?: string;
  body?: unknown;
}

export async function request<T>(path: string, options: Options = {}): Promise<T> {
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  const signal = options.signal ? AbortSignal.any([options.signal, timeout]) : timeout;
  const init: RequestInit = { method: options.method ?? "GET", signal, headers: headers() };
  if (options.body !== undefined) {
    init.headers = headers({ "Content-Type": "application/json" });
    init.body = JSON.stringify(options.body);
  }
  const response = await open(path, init);
  const answer = await response.json() as T;
  const now = (answer as { now?: unknown } | null)?.now;
  if (typeof now === "number") set_server_time(now);
  return answer;
}

// Requests the session; without a role the log-in is shown.
export async function find_session(): Promise<Session> {
  try {
    session = await request<Session>("/api/v1/session");
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error;
    keep_token(null);
    token_ended = true;
    session = await request<Session>("/api/v1/session");
  }
  changed();
  return session;
}

// What a header can hold. The browser sends no other token, so no server could refuse it.
const CAN_BE_SENT = /^[\x20-\x7e\x80-\xff]+$/;

// With a token, or with the secret of a log-in by password, which is used like a token.
export async function log_in(next: string): Promise<void> {
  if (!CAN_BE_SENT.test(next)) throw new ApiError(401, "BADTOKEN", "Unknown token.");
  const before = token;
  token = next;
  try {
    session = await request<Session>("/api/v1/session");
    keep_token(next);
  } catch (error) {
    token = before;
    throw error;
  }
  changed();
}

// `user` and `password`: segments.
export async function log_in_by_password(user: string, password: string): Promise<void> {
  const body = { ...body_member("user", user), ...body_member("password", password) };
  const made = await request<{ token: string }>("/api/v1/session", { method: "POST", body });
  await log_in(made.token);
}

export async function log_out(): Promise<void> {
  // A session that has ended, or whose server cannot be reached, cannot be ended.
  if (session !== null && segment_of(session, "user") !== null) {
    await request("/api/v1/session", { method: "DELETE" }).catch(() => undefined);
  }
  keep_token(null);
  session = null;
  await find_session();
}

// A log-in link: the token follows '#', which browsers do not send, and is removed from the
// address. Returns true if there was one.
export function take_token_of_address(): boolean {
  const found = /^#token=(.+)$/.exec(location.hash);
  if (!found) return false;
  try {
    const given = decodeURIComponent(found[1]);
    if (CAN_BE_SENT.test(given)) keep_token(given);
  } catch {
    // A malformed address is treated like one without a token.
  }
  history.replaceState(null, "", location.pathname + "#/");
  return true;
}

// Addresses. Names and ids are segments (bytes.ts).
export interface QueueRef {
  queue: string;
  db: number;
}

export type Query = Record<string, string | string[]>;

export function queue_path(ref: QueueRef, rest = "", query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const each of [value].flat()) search.append(name, each);
  }
  if (ref.db !== 0) search.set("db", String(ref.db));
  const text = search.toString();
  return `/api/v1/queues/${ref.queue}${rest}${text ? "?" + text : ""}`;
}

export function job_path(ref: QueueRef, id: string, verb = "", query: Query = {}): string {
  return queue_path(ref, `/jobs/${id}${verb}`, query);
}
