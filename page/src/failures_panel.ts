// The failed jobs of a queue grouped by the pattern of their errors.
import { set_params } from "./address";
import { ask_for_all } from "./actions";
import { queue_path, request, state } from "./api";
import type { QueueRef } from "./api";
import { body_member, segment_of, shown } from "./bytes";
import { server_now } from "./clock";
import { KeyedList, h, replace, set_text, show } from "./dom";
import { ago, count, plural } from "./format";
import { failure } from "./notices";
import { empty, job_anchor, skeleton } from "./view";

const EACH_MS = 3000;

interface Failure {
  pattern: string | null;
  pattern_base64?: string;
  count: number;
  first_ms: number;
  last_ms: number;
  example: { id: string | null; id_base64?: string; error: string | null; error_base64?: string };
}

interface Page {
  groups: Failure[];
  looked_at: number;
  // Jobs of further groups.
  others: number;
  cursor: string | null;
}

const pattern_of = (group: Failure) => segment_of(group, "pattern") ?? "";

interface Row {
  root: HTMLElement;
  number: HTMLElement;
  ages: HTMLElement;
  example: HTMLElement;
  drawn_example: string;
}

export class FailuresPanel {
  readonly root = h("div.failures", { hidden: true });
  private on = false;
  private asked_at = -Infinity;
  private groups: Failure[] | null = null;
  private looked_at = 0;
  private others = 0;
  private cursor: string | null = null;
  // Whether more is asked for, or was read, than the first answer.
  private further = false;
  private looked_further = false;
  private looking = false;
  private readonly note = h("div", {}, skeleton(5));
  private readonly told = h("span.dim");
  private readonly more = h("button", { click: () => void this.look_further() }, "Look further");
  private readonly list: KeyedList<Failure, Row>;

  constructor(private ref: QueueRef, private poke: () => void) {
    const rows = h("div");
    this.list = new KeyedList<Failure, Row>(rows, pattern_of, (pattern) => this.make(pattern),
      (row, group) => this.update(row, group));
    this.root.append(rows, this.note, h("p.buttons", {}, this.told, this.more));
  }

  turn(on: boolean): void {
    this.on = on;
    show(this.root, on);
    this.groups = null;
    this.further = false;
    this.looked_further = false;
    this.cursor = null;
    this.asked_at = -Infinity;
    this.list.render([]);
    replace(this.note, skeleton(5));
    set_text(this.told, "");
    show(this.more, false);
  }

  // What was found further on is not read anew.
  async ask(signal: AbortSignal): Promise<void> {
    if (!this.on || this.further || performance.now() - this.asked_at < EACH_MS) return;
    const page = await request<Page>(queue_path(this.ref, "/failures"), { signal });
    if (!this.on || this.further) return;
    this.asked_at = performance.now();
    this.groups = page.groups;
    this.looked_at = page.looked_at;
    this.others = page.others;
    this.cursor = page.cursor;
  }

  private async look_further(): Promise<void> {
    const { cursor } = this;
    if (cursor === null || this.looking) return;
    this.looking = true;
    this.further = true;
    let page: Page;
    try {
      page = await request<Page>(queue_path(this.ref, "/failures", { cursor }));
    } catch (error) {
      this.further = this.looked_further;
      return failure("Not looked further", error);
    } finally {
      this.looking = false;
    }
    // Meanwhile the panel may have been closed, or begun anew.
    if (!this.further || this.cursor !== cursor) return;
    this.looked_further = true;
    const known = new Map((this.groups ?? []).map((group) => [pattern_of(group), group]));
    for (const group of page.groups) {
      const before = known.get(pattern_of(group));
      known.set(pattern_of(group), before ? { ...before, count: before.count + group.count,
        first_ms: Math.min(before.first_ms, group.first_ms) } : group);
    }
    this.groups = [...known.values()].sort((a, b) => b.count - a.count);
    this.looked_at += page.looked_at;
    this.others += page.others;
    this.cursor = page.cursor;
    this.draw();
  }

  draw(): void {
    if (!this.on || this.groups === null) return;
    this.list.render(this.groups);
    replace(this.note, this.groups.length === 0 ? empty("No job is failed") : null);
    set_text(this.told, [this.others > 0
      && `${plural(this.others, "failed job has", "failed jobs have")} other errors, of which each `
        + "is rarer.", this.cursor !== null && `${count(this.looked_at)} failed jobs were looked `
      + "at; there are more."].filter((each) => each !== false).join(" "));
    show(this.more, this.cursor !== null);
  }

  private make(segment: string): Row {
    // No filter selects those without an error.
    const open = segment === "" ? h("span.pattern", {}, "(without an error)")
      : h("button.link.pattern", { "data-row": "", click: () =>
        set_params({ by: "", pattern: segment, error: "" }) }, h("bdi", {}, shown(segment)));
    const words = segment === "" ? "without an error" : `error like “${shown(segment)}”`;
    const where = { state: ["failed"], ...body_member("error_pattern", segment) };
    const row: Row = { root: h("div.failure"), number: h("strong"), ages: h("span"),
      example: h("span"), drawn_example: "" };
    row.root.append(row.number, open, ...state.may("operate") ? [h("button", { click: () =>
      void ask_for_all(this.ref, "retry", "failed", where, words, this.poke) }, "Retry…")] : [],
    h("small", {}, row.ages, ", for example ", row.example));
    return row;
  }

  private update(row: Row, group: Failure): void {
    const now = server_now();
    set_text(row.number, plural(group.count, "job"));
    set_text(row.ages, `last ${ago(group.last_ms, now)}, first ${ago(group.first_ms, now)}`);
    const id = segment_of(group.example, "id") ?? "";
    if (id === row.drawn_example) return;
    row.drawn_example = id;
    replace(row.example, job_anchor(this.ref, id));
  }
}
