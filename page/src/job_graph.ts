// What a job waits for and what waits for it: one level up and down, as links with their states.
import { ApiError, job_path, request } from "./api";
import type { QueueRef } from "./api";
import { is_addressable, segment_of_item } from "./bytes";
import { h, replace, set_text, show } from "./dom";
import { count, plural } from "./format";
import type { Job } from "./types";
import { Panel, job_anchor, state_pill } from "./view";

const MOST_NODES = 30;

// How many of each column are shown: as many of all as there is room for, of none more than that.
function share(columns: string[][]): number {
  let most = MOST_NODES;
  const nodes = () => columns.reduce((sum, ids) => sum + Math.min(ids.length, most), 0);
  while (nodes() > MOST_NODES) --most;
  return most;
}

export class GraphPanel {
  private readonly panel = new Panel("Depends on, and what depends on it", "graph");
  readonly root = this.panel.root;
  private asked_for = "";
  private readonly states = new Map<string, string>();

  constructor(private ref: QueueRef, private id: string) {
    show(this.root, false);
  }

  // Those it needs, those it comes after, those that wait for it.
  private columns(job: Job): string[][] {
    return [job.needs, job.after, job.dependents].map((items) =>
      (items ?? []).map(segment_of_item));
  }

  // The states of the others, when something has happened to the job.
  async ask(job: Job, change: string, signal: AbortSignal): Promise<void> {
    const columns = this.columns(job);
    const most = share(columns);
    const nodes = columns.flatMap((ids) => ids.slice(0, most)).filter(is_addressable);
    const key = `${change} ${nodes.join()}`;
    if (key === this.asked_for) return;
    this.asked_for = key;
    await Promise.all(nodes.map(async (id) => {
      try {
        const { state } = await request<Job>(job_path(this.ref, id, "",
          { progress_bytes: "0" }), { signal });
        this.states.set(id, state);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        this.states.set(id, "not kept");
      }
    }));
  }

  draw(job: Job): void {
    const columns = this.columns(job);
    const [needs, after, down] = columns;
    const known = columns.some((ids) => ids.length > 0);
    show(this.root, known);
    if (!known) return;
    const key = JSON.stringify([columns, [...this.states], job.state]);
    if (this.panel.body.dataset.for === key) return;
    this.panel.body.dataset.for = key;
    const all = Number(job.dependents_count ?? down.length);
    set_text(this.panel.aside, all > down.length ? `${plural(all, "job")} wait for it` : "");
    const most = share(columns);
    const column = (title: string, ids: string[], of = ids.length) => ids.length === 0 ? null
      : h("div.graph-column", {}, h("small", {}, title), ...ids.slice(0, most).map((id) =>
        h("div.node", {}, job_anchor(this.ref, id), state_pill(this.states.get(id) ?? "…"))),
      of > most ? h("small", {}, `and ${count(of - most)} more`) : null);
    replace(this.panel.body, h("div.graph-row", {}, column("needs", needs),
      column("comes after", after),
      h("div.graph-column.self", {}, h("small", {}, "this job"),
        h("div.node", {}, job_anchor(this.ref, this.id), state_pill(job.state))),
      column("wait for it", down, all)));
  }
}
