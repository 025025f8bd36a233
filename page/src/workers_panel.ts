// The workers of a queue: what each runs and since when, when it was last heard of, and whether it
// is quiet, that is, given no new jobs.
import { queue_link } from "./address";
import { queue_path, request, state } from "./api";
import type { QueueRef } from "./api";
import { segment_of, shown } from "./bytes";
import { server_now } from "./clock";
import { KeyedList, draw_more, h, replace, set_text, show } from "./dom";
import { count, duration, plural } from "./format";
import { ask_to_give_back } from "./give_back";
import { Seldom, draw_soon } from "./live";
import { turn_quiet, verb_of_quiet } from "./quiet";
import type { Lease, Worker } from "./types";
import { Panel, empty, job_anchor, skeleton } from "./view";

const EACH_MS = 2000;
const SHOWN_WORKERS = 30;
const MORE_WORKERS = 100;

interface Row {
  root: HTMLElement;
  runs: HTMLElement;
  seen: HTMLElement;
  back: HTMLElement;
  quiet: HTMLElement;
  button: HTMLElement;
  worker: Worker;
  drawn: string;
}

export class WorkersPanel {
  private readonly panel = new Panel("Workers");
  readonly root = this.panel.root;
  visible = false;
  // Null: not known yet.
  private workers: Worker[] | null = null;
  private cut = false;
  // Workers may hold thousands of leases.
  private readonly seldom = new Seldom(EACH_MS);
  private rows = SHOWN_WORKERS;
  private readonly note = h("div", {}, skeleton(2));
  private readonly more = h("button.link", { hidden: true, click: () => {
    this.rows += MORE_WORKERS;
    draw_more(this.more, this.list.root, this.draw);
  } });
  private readonly list: KeyedList<Worker, Row>;

  constructor(private ref: QueueRef, private poke: () => void) {
    const rows = h("div.workers");
    this.panel.body.append(rows, this.note, this.more);
    this.list = new KeyedList<Worker, Row>(rows, (worker) => segment_of(worker, "name") ?? "",
      (key, worker) => this.make(key, worker), (row, worker) => this.update(row, worker));
  }

  ask(signal: AbortSignal): void {
    if (!this.visible) return;
    this.seldom.ask(async () => {
      const answer = await request<{ workers: Worker[]; cursor: string | null }>(
        queue_path(this.ref, "/workers"), { signal });
      this.workers = answer.workers;
      this.cut = answer.cursor !== null;
      draw_soon(this.draw);
    });
  }

  readonly draw = () => {
    if (!this.visible || this.workers === null) return;
    this.list.render(this.workers.slice(0, this.rows));
    const number = this.workers.length;
    set_text(this.panel.aside, number === 0 ? "" : this.cut ? `more than ${count(number)}`
      : plural(number, "worker"));
    replace(this.note, number === 0 ? empty("No worker is known",
      h("p", {}, "None runs a job or has asked for one lately.")) : null);
    show(this.more, number > this.rows);
    set_text(this.more, `Show more workers (${count(number - this.rows)})`);
  };

  private make(key: string, worker: Worker): Row {
    const row: Row = { root: h("div.worker-row"), runs: h("small.runs"), seen: h("small"),
      back: h("button.back", { title: "for a machine that is dead", hidden: true,
        click: () => void ask_to_give_back(this.ref, key, () => {
          this.seldom.soon();
          this.poke();
        }) }, "Give back its jobs…"),
      quiet: h("span.pill", { "data-state": "paused", hidden: true }, "quiet"),
      button: h("button", { click: () => void turn_quiet([this.ref], key,
        row.worker.quiet !== true, this.changed) }),
      worker, drawn: "" };
    const name = h("bdi", {}, key === "" ? "workers without a name" : shown(key));
    row.root.append(h("span.worker-name", {}, key === "" ? name
      : h("a.id", { href: queue_link(this.ref, { worker: key, state: "active" }) }, name),
    row.quiet), row.seen, row.button, row.runs, row.back);
    show(row.button, key !== "" && state.may("operate") && worker.quiet !== undefined);
    return row;
  }

  private update(row: Row, worker: Worker): void {
    row.worker = worker;
    const now = server_now();
    show(row.back, segment_of(worker, "name") !== null && worker.leases.length > 0
      && state.may("operate"));
    show(row.quiet, worker.quiet === true);
    set_text(row.button, verb_of_quiet(worker.quiet === true));
    const ended = worker.completed === undefined ? ""
      : `, ${count(worker.completed)} completed, ${count(worker.failed ?? 0)} failed`;
    set_text(row.seen, worker.seen === undefined ? "" : worker.seen === null
      ? "not heard of since the server's start"
      : `heard of ${duration(Math.max(0, now - worker.seen))} ago${ended}`);
    const since = (lease: Lease) => duration(Math.max(0, now - lease.started)).replace(/\.\d s/,
      " s");
    const runs = worker.leases.slice(0, 3);
    const key = runs.map((lease) => `${segment_of(lease, "id")} ${since(lease)}`).join();
    if (key === row.drawn && key !== "") return;
    row.drawn = key;
    const rest = worker.leases.length - runs.length;
    replace(row.runs, ...(runs.length === 0
      ? [(worker.waiting_pops ?? 0) > 0 ? "waits for a job" : "runs nothing"]
      : runs.flatMap((lease, index) => [index ? ", " : "runs ",
        job_anchor(this.ref, segment_of(lease, "id") ?? ""), ` for ${since(lease)}`])),
    rest > 0 ? ` and ${count(rest)} more` : null);
  }

  private readonly changed = () => {
    this.seldom.soon();
    this.poke();
  };
}
