// What the page shows, as its address says it: the view, and its filters as parameters. So each
// view can be linked to, and the browser's back and forward lead through what was seen.
import type { QueueRef } from "./api";
import { canonical_segment } from "./bytes";

// Names to segments.
export type Params = Record<string, string>;

export interface Address {
  queue: string | null;
  job: string | null;
  // A view that is not about one queue; null: the list of queues.
  place: "workers" | "server" | null;
  // Whether the settings of the queue are shown.
  settings: boolean;
  db: number;
  params: Params;
}

const TIMES = new Set(["since", "until"]);
const ADDRESS =
  /^#\/(?:(workers|server)|q\/([^/?]+)(?:\/(?:j\/([^/?]+)|(settings)))?)?(?:\?(.*))?$/;

export function read_address(): Address {
  const found = ADDRESS.exec(location.hash);
  const segment = (text?: string) => text === undefined ? null : canonical_segment(text);
  const params: Params = {};
  for (const pair of (found?.[5] ?? "").split("&")) {
    const at = pair.indexOf("=");
    const name = pair.slice(0, Math.max(at, 0));
    // Someone else's link may hold anything; these two are used as times.
    if (TIMES.has(name) && !/^\d{1,15}$/.test(pair.slice(at + 1))) continue;
    if (at > 0) params[name] = canonical_segment(pair.slice(at + 1));
  }
  const db = Number(params.db ?? 0) || 0;
  delete params.db;
  return { queue: segment(found?.[2]), job: segment(found?.[3]), settings: !!found?.[4],
    place: (found?.[1] ?? null) as Address["place"], db, params };
}

function link(path: string, db: number, params: Params = {}): string {
  const query = Object.entries(params).filter(([, value]) => value !== "")
    .map(([name, value]) => `${name}=${value}`);
  if (db !== 0) query.push(`db=${db}`);
  return query.length ? `${path}?${query.join("&")}` : path;
}

export function overview_link(db: number, params: Params = {}): string {
  return link("#/", db, params);
}

export function workers_link(db: number): string {
  return link("#/workers", db);
}

export function queue_link(ref: QueueRef, params: Params = {}): string {
  return link(`#/q/${ref.queue}`, ref.db, params);
}

export function settings_link(ref: QueueRef): string {
  return link(`#/q/${ref.queue}/settings`, ref.db);
}

export function job_link(ref: QueueRef, id: string): string {
  return link(`#/q/${ref.queue}/j/${id}`, ref.db);
}

export function server_link(db: number): string {
  return link("#/server", db);
}

// Tells later whether the user is still where it was called. What opens a dialog after a request
// asks it first: elsewhere the question would be about another queue.
export function stays(): () => boolean {
  const at = location.hash;
  return () => location.hash === at;
}

// What charts show.
export const OF_CHARTS = new Set(["range", "depth"]);
// The page of a list belongs to the filters, but what charts show is not one of them.
const BESIDE_FILTERS = new Set(["from", ...OF_CHARTS]);

// Changes the parameters of the present address. What is being typed replaces the last address;
// everything else is a step that `back` undoes.
export function set_params(change: Params, typed = false): void {
  const { db, params } = read_address();
  const path = location.hash.split("?")[0] || "#/";
  if (!Object.keys(change).every((name) => BESIDE_FILTERS.has(name))) delete params.from;
  const next = link(path, db, { ...params, ...change });
  if (next === location.hash) return;
  if (!typed) location.hash = next;
  else {
    history.replaceState(null, "", next);
    dispatchEvent(new HashChangeEvent("hashchange"));
  }
}
