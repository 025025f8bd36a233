// Which jobs of a queue are listed: the parameters of the address, and the fields that change them.
import { set_params } from "./address";
import type { Params } from "./address";
import { body_item, body_member, segment_of_text, shown, text_of } from "./bytes";
import { server_now } from "./clock";
import { h, replace, show } from "./dom";
import { moment } from "./format";
import { is_over } from "./words";

// Parameters of the address, as those of the API.
const NAMES: Record<string, string> = { group: "group", worker: "worker", tag: "tag",
  error: "error", id: "id_part", pattern: "error_pattern", payload: "payload_part",
  since: "since_ms", until: "until_ms" };

const TYPING_MS = 250;
const FIELDS: [string, string][] = [["error", "error contains"], ["id", "id contains"],
  ["group", "group"], ["tag", "tag: name=value"], ["payload", "payload contains"]];
const TIMES: [string, number][] = [["15 minutes", 900_000], ["hour", 3_600_000],
  ["day", 86_400_000], ["week", 604_800_000]];

export function is_filtered(params: Params): boolean {
  return Object.keys(NAMES).some((name) => params[name]);
}

// Segments are already encoded.
export function filter_query(params: Params): string {
  return Object.entries(NAMES).filter(([name]) => params[name])
    .map(([name, parameter]) => `&${parameter}=${params[name]}`).join("");
}

// The same selection for requests that change jobs. It throws if it cannot be the same: with one
// filter less it would be larger.
export function where_of(params: Params, state: string): Record<string, unknown> {
  const where: Record<string, unknown> = { state: [state] };
  for (const [name, parameter] of Object.entries(NAMES)) {
    const segment = params[name];
    if (!segment) continue;
    if (name === "tag") {
      const [tag, ...value] = segment.split("%3D");
      const text = text_of(tag);
      if (value.length === 0) throw new Error(`A tag is name=value, not ${shown(segment)}.`);
      if (text === null) throw new Error(`No request can name the tag ${shown(tag)}.`);
      where.tag = { [text]: body_item(value.join("%3D")) };
    } else if (name === "since" || name === "until") {
      where[parameter] = Number(segment);
    } else {
      Object.assign(where, body_member(parameter, segment));
    }
  }
  return where;
}

// The parameters of each filter, and the filter in words.
function filters_of(params: Params): [string[], string][] {
  const words: [string[], string][] = [];
  const add = (name: string, text: string) => {
    if (params[name]) words.push([[name], text]);
  };
  add("group", `group ${shown(params.group)}`);
  add("worker", `worker ${shown(params.worker)}`);
  add("tag", `tag ${shown(params.tag)}`);
  add("id", `id contains “${shown(params.id)}”`);
  add("error", `error contains “${shown(params.error)}”`);
  add("payload", `payload contains “${shown(params.payload)}”`);
  add("pattern", `error like “${shown(params.pattern)}”`);
  if (params.since || params.until) {
    const at = (segment: string) => moment(Number(segment));
    words.push([["since", "until"], [params.since ? `from ${at(params.since)}` : "",
      params.until ? `to ${at(params.until)}` : ""].join(" ").trim()]);
  }
  return words;
}

export function filters_in_words(params: Params): string {
  return filters_of(params).map(([, text]) => text).join(", ");
}

export class JobFilters {
  readonly root = h("div.filters");
  private readonly chips = h("span.chips-line");
  private readonly inputs: [string, HTMLInputElement][];
  private readonly time: HTMLSelectElement;
  // The groups are those of all failed jobs.
  private readonly by_error = h("button", { click: () => set_params({ ...Object.fromEntries(
    Object.keys(NAMES).map((name) => [name, ""])), by: this.grouped ? "" : "error" }) });
  private timer = 0;
  private changes: Params = {};
  private grouped = false;

  constructor() {
    this.inputs = FIELDS.map(([name, label]) => [name, h("input", { type: "search", name,
      placeholder: label, "aria-label": label, spellcheck: "false", autocomplete: "off",
      input: (event: Event) => this.typed(name, event.target as HTMLInputElement) })]);
    this.time = h("select", { "aria-label": "time", change: () => set_params({
      since: this.time.value && String(Math.round(server_now() - Number(this.time.value))),
      until: "" }) }, h("option", { value: "" }, "any time"),
    ...TIMES.map(([name, ms]) => h("option", { value: ms }, `last ${name}`)));
    this.root.append(this.by_error, ...this.inputs.map(([, input]) => input), this.time,
      this.chips);
  }

  // The other fields show their filters as people read them, which may be other bytes.
  private typed(name: string, { value }: HTMLInputElement): void {
    this.changes[name] = name === "tag" && !value.includes("=") ? "" : segment_of_text(value);
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      const { changes } = this;
      this.changes = {};
      set_params(changes, true);
    }, TYPING_MS);
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  // `state`: the tab; those of the next jobs are not filtered, unless a link does.
  take(params: Params, state: string): void {
    this.grouped = state === "failed" && params.by === "error";
    show(this.root, state !== "next" || is_filtered(params));
    show(this.by_error, state === "failed");
    this.by_error.textContent = this.grouped ? "One by one" : "By error";
    for (const [name, input] of this.inputs) {
      show(input, !this.grouped && (name !== "error" || is_over(state) || state === "next"));
      if (document.activeElement !== input) input.value = shown(params[name] ?? "");
    }
    show(this.time, !this.grouped && is_over(state));
    if (!params.since) this.time.value = "";
    replace(this.chips, ...this.grouped ? [] : this.chips_of(params));
  }

  // What has no field of its own, each with a button that removes it.
  private chips_of(params: Params): HTMLElement[] {
    const words = filters_of(params).filter(([[name]]) =>
      FIELDS.every(([field]) => field !== name));
    return words.map(([names, text]) => h("span.chip-filter", {}, h("bdi", {}, text),
      h("button.icon", { "aria-label": `Remove the filter ${text}`, click: () => set_params(
        Object.fromEntries(names.map((name) => [name, ""]))) }, "×")));
  }
}
