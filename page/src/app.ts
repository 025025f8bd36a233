// The page: who is logged in, which view the address names, keys, and how the server is doing.
import { find_session, log_in, log_out, on_change, state, take_token_of_address } from "./api";
import { canonical_segment } from "./bytes";
import { set_server_time } from "./clock";
import { append, h, replace, set_text, show } from "./dom";
import { duration } from "./format";
import { JobView } from "./job";
import { Poller } from "./live";
import { close_dialog, dialog_is_open, field, tell, words_of_error } from "./notices";
import { Overview } from "./overview";
import { QueueView } from "./queue";
import { Search } from "./search";
import { next_theme, start_theme } from "./theme";
import type { View } from "./view";
import { queue_link } from "./view";

// Keys besides those of the system; what a view takes itself is in its key().
const KEYS: [string, string][] = [
  ["/", "find a job by its id, or a queue"], ["j  k", "down and up in lists"],
  ["Enter", "open what is in focus"], ["Esc", "close, leave, go up"], ["g", "to the queues"],
  ["f  b", "move the job to the front, to the back"], ["c", "cancel the job"],
  ["r", "retry the job"], ["a", "add a job to the queue"], ["p", "pause or resume the queue"],
  ["t", "dark or light"], ["?", "these keys"]];

let view: View | null = null;
const stage = h("div.stage");
const banner = h("div.banner", { role: "alert", hidden: true });
const who = h("button.quiet", { click: () => void leave() });
const search = new Search(() => view?.ref ?? null, () => read_address().db);
const dot = h("span.dot", { role: "img" });
const bar = h("header.bar", {}, h("a.brand", { href: "#/" }, dot, "Sluice"), search.root,
  h("button.quiet", { click: () => next_theme(), title: "Dark or light (t)",
    "aria-label": "Dark or light" }, "◐"),
  h("button.quiet", { click: () => tell_keys(), title: "Keys (?)", "aria-label": "Keys" }, "?"),
  who);

interface Address {
  queue: string | null;
  job: string | null;
  db: number;
}

const ADDRESS = /^#\/(?:q\/([^/?]+)(?:\/j\/([^/?]+))?)?(?:\?db=(\d+))?$/;

function read_address(): Address {
  const found = ADDRESS.exec(location.hash);
  const db = Number(found?.[3] ?? 0);
  const segment = (text?: string) => text === undefined ? null : canonical_segment(text);
  return { queue: segment(found?.[1]), job: segment(found?.[2]), db };
}

function open_view(): void {
  const { queue, job, db } = read_address();
  view?.stop();
  const next: View = queue === null ? new Overview(db)
    : job === null ? new QueueView({ queue, db }) : new JobView({ queue, db }, job);
  view = next;
  document.title = `${next.title} · Sluice`;
  replace(stage, next.root);
  scrollTo(0, 0);
}

async function leave(): Promise<void> {
  if (!state.has_token) return show_log_in();
  view?.stop();
  view = null;
  await log_out();
}

// --- Log-in ---

function show_log_in(): void {
  view?.stop();
  view = null;
  document.title = "Log in · Sluice";
  const input = h("input", { type: "password", name: "token", autocomplete: "off",
    spellcheck: "false", required: true });
  const fault = h("p.fault", { role: "alert", hidden: true });
  const button = h("button.primary", { type: "submit" }, "Log in");
  const submit = async (event: Event) => {
    event.preventDefault();
    const text = input.value.trim();
    if (!text) return input.focus();
    button.disabled = true;
    try {
      await log_in(text);
    } catch (error) {
      set_text(fault, words_of_error(error));
      show(fault, true);
      button.disabled = false;
      input.select();
    }
  };
  replace(stage, h("main.log-in", {}, h("form.panel", { submit },
    h("h1", {}, "Log in"), h("p", {}, "This server asks for a token."), field("Token", input),
    fault, button, h("p.dim", {}, "Tokens are lines http-token of the server's configuration. "
      + "This one is kept until the tab is closed."))));
  input.focus();
}

let shown_role: string | null | undefined;

// After each change of session or connection.
function follow(): void {
  const { session, health } = state;
  draw_health();
  const role = session?.role ?? null;
  set_text(who, role === null ? "Log in" : state.has_token ? `${role} · log out`
    : session?.tokens ? "Log in" : "read only");
  show(who, session !== null);
  who.disabled = session !== null && !session.tokens;
  who.title = who.disabled ? "The server has no tokens: from this machine everything can be read, "
    + "nothing changed. See http-token." : "";
  show(search.root, role !== null);
  if (health === "connecting" || role === shown_role) return;
  if (session === null) {
    // A token that has become none.
    if (shown_role !== undefined && shown_role !== null) void begin();
    return;
  }
  shown_role = role;
  if (role === null) show_log_in();
  else open_view();
}

function draw_health(): void {
  const { health } = state;
  dot.dataset.health = health;
  dot.setAttribute("aria-label", health);
  dot.title = health;
  document.body.dataset.health = health;
  show(banner, health === "disconnected" || health === "loading");
  if (health === "loading") set_text(banner, "The server is loading its data…");
  if (health !== "disconnected") return;
  const since = Date.now() - (state.lost_at ?? Date.now());
  set_text(banner, "The server does not answer. Trying again…"
    + (since > 1500 ? ` What is shown is ${duration(since)} old.` : ""));
}

// --- Keys ---

function tell_keys(): void {
  tell("Keys", h("dl.keys", {}, ...KEYS.flatMap(([key, what]) =>
    [h("dt", {}, ...key.split("  ").map((each) => h("kbd", {}, each))), h("dd", {}, what)])));
}

function step(by: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>("main [data-row]")]
    .filter((row) => row.offsetParent !== null);
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const next = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1)
    : Math.min(Math.max(at + by, 0), rows.length - 1)];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function go_up(): void {
  const { queue, job, db } = read_address();
  if (job !== null && queue !== null) location.hash = queue_link({ queue, db });
  else if (queue !== null) location.hash = db ? `#/?db=${db}` : "#/";
}

const GLOBAL: Record<string, () => void> = {
  "/": () => search.input.select(),
  "?": tell_keys,
  j: () => step(1),
  k: () => step(-1),
  g: () => { location.hash = "#/"; },
  t: () => { next_theme(); },
};

function on_key(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const target = event.target as HTMLElement;
  const writing = target.matches("input, textarea, select");
  if (event.key === "Escape") {
    // A dialog closes by itself.
    if (dialog_is_open()) return;
    if (writing || target.dataset.row !== undefined) target.blur();
    else go_up();
    return search.close();
  }
  if (writing || dialog_is_open() || state.session?.role == null) return;
  const taken = GLOBAL[event.key];
  if (taken) taken();
  else if (!view?.key?.(event.key, target.dataset.row ?? null)) return;
  event.preventDefault();
}

// --- Beginning ---

let asking: Poller | null = null;

// Asks who we are until the server says it.
async function begin(): Promise<void> {
  asking?.stop();
  await new Promise<void>((known) => {
    asking = new Poller(async () => {
      const session = await find_session();
      set_server_time(session.now);
      asking?.stop();
      known();
    }, 1000, 200, draw_health);
  });
}

function start(): void {
  start_theme();
  append(document.body, [h("div.top", {}, bar, banner), stage]);
  replace(stage, h("main.log-in", {}, h("p.dim", {}, "Connecting…")));
  on_change(follow);
  addEventListener("hashchange", () => {
    close_dialog();
    if (take_token_of_address()) void begin();
    else if (state.session?.role) open_view();
  });
  addEventListener("keydown", on_key);
  setInterval(draw_health, 1000);
  take_token_of_address();
  void begin();
}

start();
