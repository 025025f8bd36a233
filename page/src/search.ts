// The search from every page: queues by a part of their names, groups by their beginning, jobs by
// their ids, tags as name=value. What is found is suggested while one types.
import { job_link, queue_link } from "./address";
import { request } from "./api";
import type { QueueRef } from "./api";
import { is_addressable, segment_of, segment_of_text, shown } from "./bytes";
import { h, replace, show } from "./dom";
import { short_count } from "./format";
import { words_of_error } from "./notices";
import { state_pill } from "./view";

const TYPING_MS = 120;

interface Found {
  queues: { queue: string | null; waiting: number; active: number; failed: number }[];
  groups: { queue: string | null; group: string | null; waiting: number; active: number }[];
  jobs: { queue: string | null; id: string | null; state: string }[];
  tags: { queue: string | null; tag: string | null; count: number; added: number }[];
  complete: boolean;
}

interface Hit {
  kind: string;
  link: string;
  // The queue, and what was found in it.
  names: string[];
  note: string | HTMLElement;
}

export class Search {
  readonly input = h("input", { type: "search", placeholder: "Find a job, a group…  ( / )",
    "aria-label": "Find a job by its id, a queue, a group, or a tag as name=value",
    role: "combobox",
    "aria-expanded": "false", "aria-controls": "hits", "aria-autocomplete": "list",
    autocomplete: "off", spellcheck: "false", input: () => this.typed(),
    keydown: (event: KeyboardEvent) => this.key(event) });
  private readonly list = h("div", { role: "listbox", id: "hits", "aria-label": "What was found" });
  private readonly note = h("p", { role: "status" });
  private readonly hits = h("div.hits", { hidden: true }, this.list, this.note);
  readonly root = h("form.search", { role: "search", submit: (event: Event) => {
    event.preventDefault();
    void this.enter();
  } }, this.input, this.hits);
  private abort: AbortController | null = null;
  private timer = 0;
  private found: Hit[] = [];
  private found_for = "";
  private at = -1;

  // `here`: the open queue, whose jobs come first.
  constructor(private here: () => QueueRef | null, private db: () => number) {
    document.addEventListener("click", (event) => {
      if (!this.root.contains(event.target as Node)) this.close();
    });
  }

  close(): void {
    clearTimeout(this.timer);
    this.abort?.abort();
    this.abort = null;
    this.at = -1;
    show(this.hits, false);
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  private typed(): void {
    clearTimeout(this.timer);
    if (this.input.value.trim() === "") return this.close();
    this.timer = window.setTimeout(() => void this.run(), TYPING_MS);
  }

  private async run(): Promise<void> {
    const text = this.input.value.trim();
    this.abort?.abort();
    const abort = this.abort = new AbortController();
    const db = this.db();
    const path = `/api/v1/find?q=${segment_of_text(text)}${db ? `&db=${db}` : ""}`;
    try {
      const found = await request<Found>(path, { signal: abort.signal });
      if (this.abort !== abort) return;
      this.found = this.hits_of(found);
      this.found_for = text;
      this.draw(found.complete);
    } catch (error) {
      if (abort.signal.aborted) return;
      this.found = [];
      replace(this.list);
      this.note.textContent = words_of_error(error);
      show(this.hits, true);
    }
  }

  private hits_of(found: Found): Hit[] {
    const db = this.db();
    const here = this.here()?.queue;
    const ref = (line: object): QueueRef => ({ queue: segment_of(line, "queue") ?? "", db });
    const own = (a: object, b: object) =>
      Number(ref(b).queue === here) - Number(ref(a).queue === here);
    const hits: Hit[] = [
      ...[...found.jobs].sort(own).map((line) => {
        const id = segment_of(line, "id") ?? "";
        return { kind: "job", link: job_link(ref(line), id), names: [ref(line).queue, id],
          note: state_pill(line.state) };
      }),
      ...found.queues.map((line) => ({ kind: "queue", link: queue_link(ref(line)),
        names: [ref(line).queue],
        note: `${short_count(line.waiting)} waiting, ${short_count(line.active)} active` })),
      ...[...found.groups].sort(own).map((line) => {
        const group = segment_of(line, "group") ?? "";
        return { kind: "group", link: queue_link(ref(line), { group }),
          names: [ref(line).queue, group],
          note: `${short_count(line.waiting)} waiting, ${short_count(line.active)} active` };
      }),
      ...[...found.tags].sort(own).map((line) => {
        const tag = segment_of(line, "tag") ?? "";
        return { kind: "tag", link: queue_link(ref(line), { tag }), names: [ref(line).queue, tag],
          note: `${short_count(line.count)} pending or active, ${short_count(line.added)} added` };
      })];
    return hits.filter(({ names }) => names.every(is_addressable));
  }

  private draw(complete: boolean): void {
    this.at = -1;
    replace(this.list, ...this.found.map((hit, index) => h("a", { href: hit.link, role: "option",
      id: `hit-${index}`, tabindex: -1, "aria-selected": "false", click: () => this.close() },
    h("span.pill", {}, hit.kind), h("span.hit-name", { title: hit.names.map(shown).join(" / ") },
      ...hit.names.flatMap((name, n) =>
      [n ? " / " : "", h("bdi", {}, shown(name))])), h("small", {}, hit.note))));
    this.note.textContent = this.found.length > 0 ? (complete ? "" : "There may be more.")
      : complete ? "Nothing found with this id or name. Of ids only whole ones are found."
        + (this.found_for.includes("=") ? " Of tags a queue counts only four names, and 63 values "
          + "of each; others can be found by the filter of a queue's jobs." : "")
        : "Nothing found so far: there is too much to look at. Write more of the name.";
    show(this.note, this.note.textContent !== "");
    show(this.hits, true);
    this.input.setAttribute("aria-expanded", "true");
  }

  // --- Keys ---

  private key(event: KeyboardEvent): void {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step === 0 || this.hits.hidden || this.found.length === 0) return;
    event.preventDefault();
    this.choose((this.at + step + this.found.length) % this.found.length);
  }

  private choose(at: number): void {
    this.list.children[this.at]?.setAttribute("aria-selected", "false");
    this.at = at;
    const chosen = this.list.children[at];
    chosen.setAttribute("aria-selected", "true");
    chosen.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", chosen.id);
  }

  // What was chosen; else the job with this id in the open queue; else the only thing found.
  private async enter(): Promise<void> {
    const text = this.input.value.trim();
    if (text === "") return;
    clearTimeout(this.timer);
    if (this.found_for !== text || this.hits.hidden) await this.run();
    // Another text was typed meanwhile, or nothing could be asked.
    if (this.found_for !== text) return;
    const here = this.here()?.queue;
    const hit = this.found[this.at] ?? (this.found.length === 1 ? this.found[0]
      : this.found.find(({ kind, names }) => kind === "job" && names[0] === here
        && names[1] === segment_of_text(text)));
    if (!hit) return;
    this.close();
    this.input.blur();
    location.hash = hit.link;
  }
}
