// Shared by the views: the interface of a view, links, states, and common elements.
import { job_link } from "./address";
import type { Params } from "./address";
import type { QueueRef } from "./api";
import { is_addressable, segment_of_text, shown, text_of } from "./bytes";
import { h, replace, set_class, set_text, show } from "./dom";
import type { Child } from "./dom";
import { words_of_error } from "./notices";

export interface View {
  root: HTMLElement;
  title: string;
  stop(): void;
  // Handles a key while no field is in focus; `row`: the segment of the job in focus. Returns true
  // if it was handled.
  key?(key: string, row: string | null): boolean;
  // The address has other parameters now.
  take?(params: Params): void;
  ref?: QueueRef;
}

// What is being typed stays as it is.
export function show_filter(field: HTMLInputElement, segment: string): void {
  if (segment_of_text(field.value) !== segment) field.value = text_of(segment) ?? shown(segment);
}

// A name for people. The empty one is a name, too.
export function shown_name(segment: string): string {
  return segment === "" ? "(empty name)" : shown(segment);
}

// An id as a link; always plain text.
export function job_anchor(ref: QueueRef, id: string): HTMLElement {
  const text = h("bdi", {}, shown(id));
  if (!is_addressable(id)) {
    return h("span.id", { title: "This id cannot be part of an address." }, text);
  }
  return h("a.id", { href: job_link(ref, id), "data-row": id, title: shown(id).slice(0, 300) },
    text);
}

// Tabs above a panel. Arrow keys go along them, Enter or a click chooses one. `id`: of the panel.
export class Tabs {
  readonly root: HTMLElement;

  constructor(id: string, label: string, private tabs: HTMLButtonElement[],
              private panel: HTMLElement) {
    this.root = h("div.tabs", { role: "tablist", "aria-label": label,
      keydown: (event: KeyboardEvent) => this.key(event) }, ...tabs);
    panel.id = id;
    panel.setAttribute("role", "tabpanel");
    for (const [n, tab] of tabs.entries()) {
      tab.id = `${id}-tab-${n}`;
      tab.type = "button";
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-controls", id);
    }
  }

  // Nothing is chosen if a link names what no tab is for.
  choose(chosen: HTMLButtonElement | undefined): void {
    for (const tab of this.tabs) {
      tab.setAttribute("aria-selected", String(tab === chosen));
      tab.tabIndex = tab === (chosen ?? this.tabs[0]) ? 0 : -1;
    }
    this.panel.setAttribute("aria-labelledby", chosen?.id ?? "");
  }

  private key(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const { tabs } = this;
    const at = tabs.indexOf(event.target as HTMLButtonElement);
    const to: Record<string, number> = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: -1 };
    if (at < 0 || to[event.key] === undefined) return;
    tabs.at(to[event.key] % tabs.length)!.focus();
    event.preventDefault();
  }
}

export const STATES = ["pending", "active", "delayed", "blocked", "failed", "completed",
  "cancelled", "expired"];

export function state_pill(state: string): HTMLElement {
  return h("span.pill", { "data-state": state }, state);
}

// A figure with its name; `link`: to what it counts.
export class Figure {
  readonly root: HTMLElement;
  private readonly value = h("strong", {}, "–");
  private readonly note = h("small", {});

  constructor(name: string, hint = "", link = "") {
    const content = [h("span", {}, name), this.value, this.note];
    this.root = link === "" ? h("div.figure", { title: hint }, ...content)
      : h("a.figure", { title: hint, href: link }, ...content);
  }

  set(value: string, note = "", warn = false): void {
    set_text(this.value, value);
    set_text(this.note, note);
    set_class(this.root, "warn", warn);
  }
}

export class Panel {
  readonly root: HTMLElement;
  readonly body = h("div.panel-body");
  readonly aside = h("div.panel-aside");
  visible = true;

  constructor(title: string, style = "") {
    this.root = h("section.panel", {}, h("header", {}, h("h2", {}, title), this.aside), this.body);
    if (style) this.root.classList.add(style);
  }
}

// Says why what a view shows is no longer kept current.
export class Stale {
  readonly root = h("div.banner", { role: "alert", hidden: true });

  set(error: unknown): void {
    if (error !== null) set_text(this.root, `This is not up to date: ${words_of_error(error)}`);
    show(this.root, error !== null);
  }
}

export function empty(title: string, ...content: Child[]): HTMLElement {
  return h("div.empty", {}, h("strong", {}, title), ...content);
}

// Placeholder for data that is not available yet.
export function skeleton(lines: number): HTMLElement {
  const root = h("div.skeleton", { role: "status", "aria-label": "Loading" });
  for (let i = 0; i < lines; ++i) root.append(h("div"));
  return root;
}

// In `place` stands why nothing else does. The same error, which each poll may meet, leaves the
// button, and the focus on it, as it is.
export function show_error(place: HTMLElement, what: string, error: unknown,
                           again: () => void): void {
  const box = h("div.empty.bad", { role: "alert" }, h("strong", {}, what),
    h("p", {}, words_of_error(error)), h("button", { click: again }, "Try again"));
  if (!place.firstElementChild?.isEqualNode(box)) replace(place, box);
}
