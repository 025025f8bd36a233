// The page: the session, the view named by the address, keys, and the state of the server.
import { overview_link, queue_link, read_address, server_link, workers_link } from "./address";
import type { Address } from "./address";
import { find_session, log_in, log_in_by_password, log_out, on_change, state,
  take_token_of_address } from "./api";
import { segment_of, segment_of_text, shown } from "./bytes";
import { close_dialog, dialog_is_open, field, put_aside, tell } from "./dialogs";
import { focus_heading, h, replace, set_text, show } from "./dom";
import { duration, moment } from "./format";
import { JobView } from "./job";
import { Poller, is_paused, set_paused } from "./live";
import { Nodes } from "./nodes";
import { notices, words_of_error } from "./notices";
import { Overview } from "./overview";
import { QueueView } from "./queue";
import { Search } from "./search";
import { ask_for_views } from "./saved_views";
import { ServerView } from "./server";
import { forget_drafts } from "./setting_row";
import { SettingsView } from "./settings";
import { next_theme, start_theme } from "./theme";
import type { View } from "./view";
import { WorkersView } from "./workers";

// Keys besides the browser's own; keys of a view are handled in its key().
const KEYS: [string, string][] = [
  ["/", "find jobs, queues, groups, tags as name=value"], ["↑  ↓", "through what was found"],
  ["j  k", "down and up in lists"],
  ["Enter", "open the item in focus"], ["Esc", "close, leave, go up"],
  ["g  w  i", "to the queues, to all workers, to the server"],
  ["l", "pause or resume the live updates"],
  ["v", "saved views"],
  ["f  b", "move the job in focus to the front, to the back"],
  ["c", "cancel the job in focus"],
  ["r", "retry the job in focus, or run a delayed one now"],
  ["n", "on a job's page: run it again as a new one"],
  ["a", "add a job to the queue"],
  ["p", "pause or resume the queue"], ["s", "the settings of the queue"], ["t", "dark or light"],
  ["←  →", "along tabs, which Enter chooses; in a chart along its time, with Shift they mark a "
    + "range, Enter shows it"],
  ["?", "these keys"]];

let view: View | null = null;
const stage = h("div.stage");
const banner = h("div.banner", { role: "alert", hidden: true });
const pause_note = h("div.banner", { role: "status", hidden: true });
const pause_button = h("button.updates", { click: () => turn_updates() });
const views_button = h("button.quiet.views", { title: "Saved views (v)",
  "aria-label": "Saved views", click: () => ask_for_views(view?.title ?? "") }, "Views");
const places = h("nav.places", { "aria-label": "Places" });
const who = h("span.who");
const turn = h("button.quiet", { click: () => void leave() });
const search = new Search(() => view?.ref ?? null, () => read_address().db);
const nodes = new Nodes();
const dot = h("span.dot", { role: "img" });
const brand = h("a.brand", { href: "#/" }, dot, h("span", {}, "Sluice"));
const bar = h("header.bar", {}, brand,
  places, search.root, pause_button, views_button,
  h("button.quiet", { click: () => next_theme(), title: "Dark or light (t)",
    "aria-label": "Dark or light" }, "◐"),
  h("button.quiet.keys-button", { click: () => tell_keys(), title: "Keys (?)",
    "aria-label": "Keys" }, "?"),
  who, turn);

// What is shown, without the parameters of its address: the place, and the place with the role that
// the view was made for.
let viewed_at = "";
let viewed = "";

function make_view({ queue, job, settings, place, db, params }: Address): View {
  if (place === "workers") return new WorkersView(db, params);
  if (place === "server") return new ServerView();
  if (queue === null) return new Overview(db, params);
  if (job !== null) return new JobView({ queue, db }, job);
  return settings ? new SettingsView({ queue, db }) : new QueueView({ queue, db }, params);
}

function open_view(): void {
  const address = read_address();
  const { queue, job, settings, place, db } = address;
  const at = JSON.stringify([queue, job, settings, place, db]);
  const wanted = `${at} ${shown_role}`;
  search.close();
  if (view?.take && wanted === viewed) return view.take(address.params);
  view?.stop();
  if (at !== viewed_at) forget_drafts();
  const first = viewed === "";
  viewed_at = at;
  viewed = wanted;
  view = make_view(address);
  document.title = `${view.title} · Sluice`;
  draw_places(address);
  replace(stage, view.root);
  if (!first) focus_heading();
  scrollTo(0, 0);
}

function draw_places({ place, queue, db }: Address): void {
  const link = (name: string, href: string, here: boolean) =>
    h("a", { href, "aria-current": here ? "page" : null }, name);
  replace(places, link("Queues", overview_link(db), place === null && queue === null),
    link("Workers", workers_link(db), place === "workers"),
    link("Server", server_link(db), place === "server"));
  brand.href = overview_link(db);
}

function turn_updates(): void {
  set_paused(!is_paused());
  draw_pause();
}

function draw_pause(): void {
  const on = is_paused();
  const what = on ? "Resume the live updates" : "Pause the live updates";
  set_text(pause_button, on ? "Paused" : "Live");
  pause_button.title = `${what} (l)`;
  pause_button.setAttribute("aria-pressed", String(on));
  show(pause_note, on);
  replace(pause_note, `Live updates are paused since ${moment(Date.now())}: nothing here changes `
    + "unless you do something. ", h("button.link", { click: () => turn_updates() }, "Resume"));
}

function close_view(): void {
  view?.stop();
  view = null;
}

async function leave(): Promise<void> {
  if (!state.has_token) return show_log_in();
  close_view();
  await log_out();
  // If everybody may do the same, nothing has changed.
  if (view === null && state.session?.role) open_view();
}

// --- Log-in ---

interface LogInFields {
  token: HTMLInputElement;
  user: HTMLInputElement;
  password: HTMLInputElement;
}

// Returns the field that must be filled in first; null if the log-in was tried and succeeded.
async function try_log_in(fields: LogInFields): Promise<HTMLInputElement | null> {
  const { token, user, password } = fields;
  if (user.value) {
    if (!password.value) return password;
    await log_in_by_password(segment_of_text(user.value), segment_of_text(password.value));
    return null;
  }
  const text = token.value.trim();
  if (!text) return state.session?.tokens === false || password.value ? user : token;
  await log_in(text);
  return null;
}

function log_in_fields(): LogInFields {
  const input = (name: string, type: string, autocomplete: string) =>
    h("input", { name, type, autocomplete, spellcheck: "false", autocapitalize: "off" });
  return { token: input("token", "password", "off"), user: input("user", "text", "username"),
    password: input("password", "password", "current-password") };
}

// The user that is logged in, and the dialog that the end of his token has interrupted: he finds it
// again after the next log-in, if that is at the same place.
let known_as = "";
let interrupted: { who: string; at: string; bring_back: () => void } | null = null;

function interrupt(): void {
  const bring_back = put_aside();
  if (!state.token_ended) forget_drafts();
  if (!state.token_ended) interrupted = null;
  else if (bring_back) interrupted = { who: known_as, at: location.hash, bring_back };
}

function resume(): void {
  if (interrupted?.who === known_as && interrupted.at === location.hash) interrupted.bring_back();
  interrupted = null;
}

function show_log_in(): void {
  close_view();
  interrupt();
  document.title = "Log in · Sluice";
  const tokens = state.session?.tokens !== false;
  const fields = log_in_fields();
  const fault = h("p.fault", { role: "alert", hidden: !state.token_ended },
    "You were logged out: the token was revoked, or the session has ended.");
  const button = h("button.primary", { type: "submit" }, "Log in");
  const submit = async (event: Event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      const missing = await try_log_in(fields);
      if (missing !== null) missing.focus();
      else if (view === null) open_view();
    } catch (error) {
      set_text(fault, words_of_error(error));
      show(fault, true);
      (fields.user.value ? fields.password : fields.token).select();
    }
    button.disabled = false;
  };
  const back = h("button", { type: "button", click: () => open_view() }, "Back");
  replace(stage, h("main.log-in", {}, h("form.panel", { submit },
    h("h1", {}, "Log in"),
    h("p", {}, tokens ? "This server requires a token, or the name and password of a user."
      : "On this machine everything can be read. A user may do what the user's rights allow."),
    tokens ? field("Token", fields.token) : null, tokens ? h("p.or", {}, "or") : null,
    field("User", fields.user), field("Password", fields.password),
    fault, h("div.buttons", {}, button, state.session?.role ? back : null),
    h("p.dim", {}, tokens ? "Tokens are defined by http-token in the server's configuration, users "
      + "by its ACL. " : "Users are defined by the server's ACL. ",
    "What you enter here is forgotten when the tab is closed."))));
  (tokens ? fields.token : fields.user).focus();
}

// What the view was made for; undefined: not known yet.
let shown_role: string | null | undefined;

// Called after each change of session or connection.
function follow(): void {
  const { session, health } = state;
  draw_health();
  const role = session?.role ?? null;
  const user = session && segment_of(session, "user");
  set_text(who, role === null ? "" : !state.has_token ? "read only"
    : `${user === null ? "" : `${shown(user)} · `}${role}`);
  who.title = "What you may do here: read, operate, or administer";
  set_text(turn, role !== null && state.has_token ? "Log out" : "Log in");
  show(turn, session !== null);
  const open = session !== null && !session.tokens && !state.has_token;
  turn.title = open ? "The server has no tokens: on this machine everything can be read. To "
    + "make changes, log in as a user, or define tokens (see http-token)." : "";
  for (const each of [search.root, places, pause_button, views_button]) show(each, role !== null);
  nodes.follow(role !== null);
  // On a node that changes nothing a view has no buttons for changes.
  const rights = role === null || state.lead === "yes" ? role : `${role}, ${state.lead}`;
  if (health === "connecting" || rights === shown_role) return;
  if (session === null) {
    // The token has been revoked.
    if (shown_role !== undefined && shown_role !== null) void begin();
    return;
  }
  shown_role = rights;
  if (role === null) return show_log_in();
  const own = `${user} ${role}`;
  if (own !== known_as) forget_drafts();
  known_as = own;
  open_view();
  resume();
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
  set_text(banner, "The server does not respond. Retrying…"
    + (since > 1500 ? ` The data shown is ${duration(since)} old.` : ""));
}

// --- Keys ---

function tell_keys(): void {
  tell("Keys", h("dl.keys", {}, ...KEYS.flatMap(([key, what]) =>
    [h("dt", {}, ...key.split("  ").map((each) => h("kbd", {}, each))), h("dd", {}, what)])));
}

// The link of the row in focus, also while its checkbox is.
function row_of(element: Element | null): HTMLElement | null {
  return element?.closest<HTMLElement>("[data-row]")
    ?? (element?.matches("[type=checkbox]")
      ? element.closest(".job-row")?.querySelector<HTMLElement>("[data-row]") : null) ?? null;
}

function step(by: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>("main [data-row]")]
    .filter((row) => row.offsetParent !== null);
  const at = rows.indexOf(row_of(document.activeElement) as HTMLElement);
  const next = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1)
    : Math.min(Math.max(at + by, 0), rows.length - 1)];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function go_up(): void {
  const { queue, job, settings, place, db } = read_address();
  if (place !== null) location.hash = overview_link(db);
  if ((job !== null || settings) && queue !== null) location.hash = queue_link({ queue, db });
  else if (queue !== null) location.hash = overview_link(db);
}

const GLOBAL: Record<string, () => void> = {
  "/": () => search.input.select(),
  "?": tell_keys,
  j: () => step(1),
  k: () => step(-1),
  g: () => { location.hash = overview_link(read_address().db); },
  w: () => { location.hash = workers_link(read_address().db); },
  i: () => { location.hash = server_link(read_address().db); },
  l: () => turn_updates(),
  v: () => ask_for_views(view?.title ?? ""),
  t: () => { next_theme(); },
};

function on_key(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const target = event.target as HTMLElement;
  const writing = target.matches("input:not([type=checkbox]), textarea, select");
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
  else if (!view?.key?.(event.key, row_of(target)?.dataset.row ?? null)) return;
  event.preventDefault();
}

// --- Start ---

let asking: Poller | null = null;

// Requests the session until the server responds.
async function begin(): Promise<void> {
  asking?.stop();
  await new Promise<void>((known) => {
    asking = new Poller(async () => {
      await find_session();
      asking?.stop();
      known();
    }, 1000, 200, draw_health, true);
  });
}

function start(): void {
  start_theme();
  draw_pause();
  // What the browser shows until now is a part of the file.
  replace(stage, document.querySelector(".connecting"));
  document.body.replaceChildren(h("div.top", {}, bar, banner, pause_note, nodes.root), stage,
    notices);
  on_change(follow);
  addEventListener("hashchange", () => {
    close_dialog();
    if (take_token_of_address()) void begin();
    else if (state.session?.role) open_view();
  });
  addEventListener("keydown", on_key);
  // A long name is cut on a phone (app.css): a touch shows it whole.
  stage.addEventListener("click", ({ target }) => {
    if (target instanceof HTMLElement && target.matches("h1 > bdi")) {
      target.classList.toggle("whole");
    }
  });
  setInterval(draw_health, 1000);
  take_token_of_address();
  void begin();
}

start();
