// What a job waits for and what waits for it: one level up and down, as links with their states.
import { ApiError, job_path, request } from "./api";
import type { QueueRef } from "./api";
import { is_addressable, segment_of_item } from "./bytes";
import { h, replace, set_text, show } from "./dom";
import { count, plural } from "./format";
import type { Job } from "./types";
import { Panel, job_anchor, state_pill } from "./view";

const MOST_NODES = 30;

export class GraphPanel {
  private readonly panel = new Panel("Depends on, and what depends on it", "graph");
  readonly root = this.panel.root;
  private asked_for = "";
  private readonly states = new Map<string, string>();

  constructor(private ref: QueueRef, private id: string) {
    show(this.root, false);
  }

  private ids(items: Job["needs"] | undefined): string[] {
    return (items ?? []).map(segment_of_item);
  }

  // The states of the others, when something has happened to the job.
  async ask(job: Job, change: string, signal: AbortSignal): Promise<void> {
    const nodes = [...this.ids(job.needs), ...this.ids(job.after), ...this.ids(job.dependents)]
      .filter(is_addressable).slice(0, MOST_NODES);
    const key = `${change} ${nodes.join()}`;
    if (key === this.asked_for) return;
    this.asked_for = key;
    await Promise.all(nodes.map(async (id) => {
      try {
        const { state } = await request<Job>(job_path(this.ref, id), { signal });
        this.states.set(id, state);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        this.states.set(id, "not kept");
      }
    }));
  }

  draw(job: Job): void {
    const up: [string, string[]][] = [["needs", this.ids(job.needs)],
      ["comes after", this.ids(job.after)]];
    const down = this.ids(job.dependents);
    const known = up.some(([, ids]) => ids.length > 0) || down.length > 0;
    show(this.root, known);
    if (!known) return;
    const key = JSON.stringify([up, down, [...this.states], job.state]);
    if (this.panel.body.dataset.for === key) return;
    this.panel.body.dataset.for = key;
    const all = Number(job.dependents_count ?? down.length);
    set_text(this.panel.aside, all > down.length ? `${plural(all, "job")} wait for it` : "");
    const column = (title: string, ids: string[], rest = 0) => ids.length === 0 ? null
      : h("div.graph-column", {}, h("small", {}, title), ...ids.slice(0, MOST_NODES).map((id) =>
        h("div.node", {}, job_anchor(this.ref, id), state_pill(this.states.get(id) ?? "…"))),
      rest > 0 ? h("small", {}, `and ${count(rest)} more`) : null);
    replace(this.panel.body, h("div.graph-row", {}, ...up.map(([title, ids]) => column(title, ids)),
      h("div.graph-column.self", {}, h("small", {}, "this job"),
        h("div.node", {}, job_anchor(this.ref, this.id), state_pill(job.state))),
      column("wait for it", down, all - down.length)));
  }
}
