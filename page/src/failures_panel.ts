// The failed jobs of a queue grouped by the pattern of their errors.
import { set_params } from "./address";
import { ask_for_all } from "./actions";
import { queue_path, request, state } from "./api";
import type { QueueRef } from "./api";
import { segment_of, segment_of_text, shown } from "./bytes";
import { server_now } from "./clock";
import { h, replace, show } from "./dom";
import { ago, count, plural } from "./format";
import { failure } from "./notices";
import { empty, job_anchor, skeleton } from "./view";

const EACH_MS = 3000;

interface Failure {
  pattern: string;
  count: number;
  first_ms: number;
  last_ms: number;
  example: { id: string | null; id_base64?: string; error: string | null; error_base64?: string };
}

interface Page {
  groups: Failure[];
  looked_at: number;
  others?: number;
  cursor: string | null;
}

export class FailuresPanel {
  readonly root = h("div.failures", { hidden: true });
  private on = false;
  private asked_at = -Infinity;
  private groups: Failure[] | null = null;
  private looked_at = 0;
  private cursor: string | null = null;
  // Whether more is asked for, or was read, than the first answer.
  private further = false;
  private looked_further = false;
  private looking = false;

  constructor(private ref: QueueRef, private poke: () => void) {}

  turn(on: boolean): void {
    this.on = on;
    show(this.root, on);
    this.groups = null;
    this.further = false;
    this.looked_further = false;
    this.cursor = null;
    this.asked_at = -Infinity;
    if (on) replace(this.root, skeleton(5));
  }

  // What was found further on is not read anew.
  async ask(signal: AbortSignal): Promise<void> {
    if (!this.on || this.further || performance.now() - this.asked_at < EACH_MS) return;
    const page = await request<Page>(queue_path(this.ref, "/failures"), { signal });
    if (!this.on || this.further) return;
    this.asked_at = performance.now();
    this.groups = page.groups;
    this.looked_at = page.looked_at;
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
    const known = new Map((this.groups ?? []).map((group) => [group.pattern, group]));
    for (const group of page.groups) {
      const before = known.get(group.pattern);
      known.set(group.pattern, before ? { ...before, count: before.count + group.count,
        first_ms: Math.min(before.first_ms, group.first_ms) } : group);
    }
    this.groups = [...known.values()].sort((a, b) => b.count - a.count);
    this.looked_at += page.looked_at;
    this.cursor = page.cursor;
    this.draw();
  }

  draw(): void {
    if (!this.on || this.groups === null) return;
    const key = JSON.stringify([this.groups, this.cursor]);
    const fresh = this.root.dataset.for === key && performance.now() % 5000 < 4000;
    if (fresh) return;
    this.root.dataset.for = key;
    if (this.groups.length === 0) return replace(this.root, empty("No job is failed"));
    const now = server_now();
    replace(this.root, ...this.groups.map((group) => this.line(group, now)),
      this.cursor === null ? null : h("p.buttons", {}, h("span.dim", {},
        `${count(this.looked_at)} failed jobs were looked at.`),
      h("button", { click: () => void this.look_further() }, "Look further")));
  }

  private line(group: Failure, now: number): HTMLElement {
    const segment = segment_of_text(group.pattern);
    // No filter selects those without an error.
    const open = segment === "" ? h("span.pattern", {}, "(without an error)")
      : h("button.link.pattern", { "data-row": "", click: () =>
        set_params({ by: "", pattern: segment, error: "" }) }, h("bdi", {}, shown(segment)));
    const words = group.pattern === "" ? "without an error" : `error like “${shown(segment)}”`;
    const where = { state: ["failed"], error_pattern: group.pattern };
    const id = segment_of(group.example, "id") ?? "";
    return h("div.failure", {}, h("strong", {}, plural(group.count, "job")), open,
      state.may("operate") ? h("button", { click: () => void ask_for_all(this.ref, "retry",
        "failed", where, words, this.poke) }, "Retry…") : null,
      h("small", {}, `last ${ago(group.last_ms, now)}, first ${ago(group.first_ms, now)}, `
        + "for example ", job_anchor(this.ref, id)));
  }
}
