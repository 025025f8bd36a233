// Payloads and results for people: JSON as a tree that opens level by level, anything else as text.
// A large one is folded until it is asked for.
import { shown, text_of, visible, visible_lines } from "./bytes";
import { h, replace, set_text, show } from "./dom";
import { count, plural, size } from "./format";
import { copy_button } from "./notices";
import type { Panel } from "./view";

const FOLDED_BYTES = 64 * 1024;
const OPEN_LEVELS = 2;
const MOST_ENTRIES = 100;
const MOST_TEXT = 2000;
// Megabytes in one piece would hold the browser for seconds.
const RAW_PART = 256 * 1024;

// JSON whose strings, as names too, begin with S, and whose numbers are strings that begin with N:
// a number is shown as it is written (of 1234567890123456789 a double keeps 16 digits, of 1.10 no
// zero), and names that are numbers keep their places.
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;

function marked(json: string): string {
  return json.replace(TOKENS, (token) => token[0] === '"' ? `"S${token.slice(1)}`
    : `"N${token}"`);
}

function leaf(value: unknown): HTMLElement {
  const kind = value === null ? "null" : typeof value !== "string" ? typeof value
    : value[0] === "N" ? "number" : "string";
  const text = kind === "string" ? visible(JSON.stringify(String(value).slice(1)))
    : kind === "number" ? String(value).slice(1) : String(value);
  const cut = text.length > MOST_TEXT ? `${text.slice(0, MOST_TEXT)}…` : text;
  return h("span.leaf", { "data-kind": kind }, cut);
}

function label(name: string | null): (string | HTMLElement)[] {
  return name === null ? [] : [h("bdi.member", {}, visible(name)), ": "];
}

// Children are only made when they are seen.
function node(name: string | null, value: unknown, level: number): HTMLElement {
  if (typeof value !== "object" || value === null) {
    return h("div.entry", {}, ...label(name), leaf(value));
  }
  const list = Array.isArray(value);
  const entries = Object.entries(value);
  const [open, close] = list ? ["[", "]"] : ["{", "}"];
  if (entries.length === 0) return h("div.entry", {}, ...label(name), open + close);
  const body = h("div.entries");
  const more = (from: number) => {
    body.append(...entries.slice(from, from + MOST_ENTRIES).map(([key, each]) =>
      node(list ? null : key.slice(1), each, level + 1)));
    const left = entries.length - from - MOST_ENTRIES;
    if (left <= 0) return;
    const button = h("button.link", { click: () => {
      button.remove();
      more(from + MOST_ENTRIES);
    } }, `${left} more`);
    body.append(button);
  };
  const fold = h("details", { open: level < OPEN_LEVELS, toggle: () => {
    if (fold.open && body.childElementCount === 0) more(0);
  } }, h("summary", {}, ...label(name), h("span.dim", {}, list
    ? `${open} ${plural(entries.length, "item")} ${close}`
    : `${open} ${plural(entries.length, "member")} ${close}`)), body);
  if (fold.open) more(0);
  return fold;
}

function parsed(text: string | null): object | null {
  try {
    const value: unknown = JSON.parse(text ?? "");
    return typeof value !== "object" || value === null ? null : JSON.parse(marked(text ?? ""));
  } catch {
    return null;
  }
}

// A text part by part.
function raw_view(text: string): HTMLElement {
  const pre = h("pre", { tabindex: 0 });
  const button = h("button.link", { click: () => {
    more();
    if (button.hidden) pre.focus({ preventScroll: true });
  } });
  let at = 0;
  const more = () => {
    // Not within a character.
    const end = at + RAW_PART + (/[\ud800-\udbff]/.test(text.charAt(at + RAW_PART - 1)) ? 1 : 0);
    pre.append(visible_lines(text.slice(at, end)));
    at = end;
    show(button, at < text.length);
    set_text(button, `Show more (${count(Math.max(0, text.length - at))} characters)`);
  };
  more();
  return h("div", {}, pre, button);
}

// `bytes`: a segment, or null.
export function draw_body(panel: Panel, bytes: string | null, none: string): void {
  if (bytes === null || bytes === "") {
    set_text(panel.aside, "");
    return replace(panel.body, h("p.dim", {}, none));
  }
  const text = text_of(bytes);
  const raw = () => text ?? shown(bytes);
  const length = text === null ? bytes.replace(/%../g, "x").length : new Blob([text]).size;
  const value = parsed(text);
  const kind = value !== null ? "JSON" : text === null ? "bytes" : "text";
  set_text(panel.aside, `${kind}, ${size(length)}`);
  const spot = h("div");
  const show_raw = () => replace(spot, raw_view(raw()));
  const show_tree = () => replace(spot, h("div.tree", {}, node(null, value, 0)));
  const buttons = h("div.buttons.body-buttons", {},
    value === null ? null : h("button.link", { click: show_tree }, "tree"),
    h("button.link", { click: show_raw }, "raw"), copy_button(raw));
  replace(panel.body, buttons, spot);
  if (length > FOLDED_BYTES) {
    return replace(spot, h("p.dim", {}, `${size(length)}: choose `
      + `${value === null ? "raw" : "tree or raw"} to see it.`));
  }
  if (value !== null) show_tree();
  else show_raw();
}
