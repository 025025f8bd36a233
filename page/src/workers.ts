// All workers of a database: what each runs and since when, in which queues, when it was last heard
// of. A worker is known by its name, in however many queues.
import { queue_link, set_params } from "./address";
import type { Params } from "./address";
import { request, state } from "./api";
import type { QueueRef } from "./api";
import { is_addressable, segment_of, segment_of_text, shown } from "./bytes";
import { server_now } from "./clock";
import { KeyedList, draw_more, h, replace, set_text, show } from "./dom";
import { ago, count, duration, moment, plural, short_count } from "./format";
import { LEAST_MS, Poller, draw_soon } from "./live";
import { turn_quiet, verb_of_quiet } from "./quiet";
import type { Worker } from "./types";
import { Stale, empty, job_anchor, show_error, show_filter, shown_name, skeleton } from "./view";
import type { View } from "./view";

const USUAL_MS = 2000;
const PAGE = 100;
const MOST_PAGES = 10;
const ROWS = 100;
const SHOWN_RUNS = 3;

interface Run {
  queue: string;
  id: string;
  started: number;
}

// The sums over its queues.
interface Line {
  name: string;
  queues: string[];
  runs: Run[];
  active: number;
  waits: number;
  completed: number;
  failed: number;
  // Null: not since the server's start.
  seen: number | null;
  quiet: string[];
  // Queues where the server says whether it is quiet.
  told: string[];
}

interface Answer {
  queues: ({ name: string | null; workers: Worker[]; more: boolean })[];
  cursor: string | null;
}

function new_line(name: string): Line {
  return { name, queues: [], runs: [], active: 0, waits: 0, completed: 0, failed: 0, seen: null,
    quiet: [], told: [] };
}

function add_to(line: Line, queue: string, worker: Worker): void {
  line.queues.push(queue);
  line.active += worker.active ?? worker.leases.length;
  line.waits += worker.waiting_pops ?? 0;
  line.completed += worker.completed ?? 0;
  line.failed += worker.failed ?? 0;
  if (worker.seen) line.seen = Math.max(line.seen ?? 0, worker.seen);
  if (worker.quiet) line.quiet.push(queue);
  if (worker.quiet !== undefined && is_addressable(queue)) line.told.push(queue);
  for (const lease of worker.leases) {
    line.runs.push({ queue, id: segment_of(lease, "id") ?? "", started: lease.started });
  }
}

// Those that have run longest first, then the idle ones by name.
function comes_first(a: Line, b: Line): number {
  const [left, right] = [a.runs[0]?.started ?? Infinity, b.runs[0]?.started ?? Infinity];
  if (left !== right) return left < right ? -1 : 1;
  return a.name < b.name ? -1 : 1;
}

interface Row {
  root: HTMLTableRowElement;
  state: HTMLElement;
  runs: HTMLElement;
  queues: HTMLElement;
  ended: HTMLElement;
  seen: HTMLElement;
  button: HTMLElement;
  line: Line;
  drawn: string;
}

export class WorkersView implements View {
  readonly root = h("main.workers");
  readonly title = "Workers";
  private readonly stale = new Stale();
  private readonly sum = h("p.sum");
  private readonly message = h("div", {}, skeleton(4));
  private readonly more = h("button", { click: () => this.show_more() });
  private readonly filter = h("input", { type: "search", placeholder: "Filter workers",
    "aria-label": "Filter workers", input: () =>
      set_params({ find: segment_of_text(this.filter.value) }, true) });
  private readonly table: HTMLTableElement;
  private readonly list: KeyedList<Line, Row>;
  private readonly poller: Poller;
  private lines: Line[] | null = null;
  private queues = 0;
  private cut = false;
  private rows = ROWS;

  constructor(private db: number, params: Params) {
    const body = h("tbody");
    const heads = [["worker", "the name that it gives when it pops"],
      ["state", "jobs that it runs, or whether it waits for one"],
      ["what it runs", "the job that began first comes first"],
      ["queues", "those in which it is known"],
      ["has ended", "runs that it has ended since the server's start"],
      ["heard of", "its last command in any of these queues"]];
    this.table = h("table.queues.all-workers", { "aria-label": "Workers" }, h("thead", {},
      h("tr", {}, ...heads.map(([name, title]) => h("th", { scope: "col", title }, name)),
        h("td"))), body);
    this.list = new KeyedList<Line, Row>(body, ({ name }) => name,
      (name, line) => this.make(name, line), (row, line) => this.update(row, line));
    this.root.append(h("div.page-head", {}, h("h1", {}, "Workers"), this.filter), this.stale.root,
      this.sum, this.message, this.table, this.more);
    show(this.table, false);
    show(this.more, false);
    this.take(params);
    this.poller = new Poller((signal) => this.ask(signal), USUAL_MS, LEAST_MS,
      (error) => this.failed(error));
  }

  take(params: Params): void {
    show_filter(this.filter, params.find ?? "");
    this.draw();
  }

  stop(): void {
    this.poller.stop();
  }

  private async ask(signal: AbortSignal): Promise<void> {
    const lines = new Map<string, Line>();
    let cursor: string | null = null;
    let page = 0;
    let more = false;
    this.queues = 0;
    do {
      const query = new URLSearchParams({ limit: String(PAGE) });
      if (this.db !== 0) query.set("db", String(this.db));
      if (cursor !== null) query.set("cursor", cursor);
      const answer: Answer = await request(`/api/v1/workers?${query}`, { signal });
      this.queues += answer.queues.length;
      for (const line of answer.queues) {
        more ||= line.more;
        for (const worker of line.workers) {
          const name = segment_of(worker, "name") ?? "";
          if (!lines.has(name)) lines.set(name, new_line(name));
          add_to(lines.get(name)!, segment_of(line, "name") ?? "", worker);
        }
      }
      cursor = answer.cursor;
    } while (cursor !== null && ++page < MOST_PAGES);
    this.poller.usual_ms = USUAL_MS * Math.max(1, page);
    for (const { runs } of lines.values()) runs.sort((a, b) => a.started - b.started);
    this.lines = [...lines.values()].sort(comes_first);
    this.cut = more || cursor !== null;
    this.stale.set(null);
    draw_soon(this.draw);
  }

  private failed(error: unknown): void {
    if (state.health !== "connected") return;
    if (this.lines !== null) return this.stale.set(error);
    show_error(this.message, "Cannot show the workers", error, () => this.poller.poke());
  }

  private show_more(): void {
    this.rows += ROWS;
    draw_more(this.more, this.list.root, this.draw);
  }

  // --- Drawing ---

  private readonly draw = () => {
    if (this.lines === null) return;
    const wanted = this.filter.value.trim().toLowerCase();
    const found = this.lines.filter(({ name }) => shown(name).toLowerCase().includes(wanted));
    this.list.render(found.slice(0, this.rows));
    show(this.table, found.length > 0);
    show(this.more, found.length > this.rows);
    set_text(this.more, `Show more workers (${short_count(found.length - this.rows)})`);
    replace(this.message, found.length > 0 ? null : this.lines.length > 0
      ? empty("No worker has this text in its name")
      : empty("No worker is known", h("p", {}, "None runs a job or has asked for one lately.")));
    this.draw_sum(found);
  };

  private draw_sum(lines: Line[]): void {
    const jobs = lines.reduce((sum, { active }) => sum + active, 0);
    const busy = lines.filter(({ active }) => active > 0).length;
    const waiting = lines.filter(({ active, waits }) => active === 0 && waits > 0).length;
    show(this.sum, lines.length > 0);
    set_text(this.sum, `${plural(lines.length, "worker")} in ${plural(this.queues, "queue")}: `
      + `${count(busy)} ${busy === 1 ? "runs" : "run"} ${plural(jobs, "job")}, `
      + `${count(waiting)} ${waiting === 1 ? "waits" : "wait"} for a job, `
      + `${count(lines.length - busy - waiting)} ${lines.length - busy - waiting === 1
        ? "does" : "do"} neither.${this.cut ? " There are more than are shown here." : ""}`);
  }

  private make(name: string, line: Line): Row {
    const cell = (title: string) => h("td", { "data-name": title });
    const row: Row = { root: h("tr"), state: h("td.state"), runs: cell("runs"),
      queues: cell("queues"), ended: cell("ended"), seen: cell("heard of"),
      button: h("button", { click: () => this.turn_quiet(row.line) }), line, drawn: "" };
    row.root.append(h("th", { scope: "row", title: shown(name) }, name === ""
      ? h("span.dim", {}, "workers without a name") : h("bdi", {}, shown(name))), row.state,
    row.runs, row.queues, row.ended, row.seen, h("td", {}, row.button));
    return row;
  }

  // In all its queues, or in those where it is not so yet.
  private turn_quiet({ name, told, quiet }: Line): void {
    const others = told.filter((queue) => !quiet.includes(queue));
    const queues = others.length > 0 ? others : told;
    void turn_quiet(queues.map((queue) => ({ queue, db: this.db })), name, others.length > 0,
      () => this.poller.poke());
  }

  private update(row: Row, line: Line): void {
    const now = server_now();
    row.line = line;
    show(row.button, line.name !== "" && line.told.length > 0 && state.may("operate"));
    const verb = verb_of_quiet(line.told.every((queue) => line.quiet.includes(queue)));
    set_text(row.button, verb);
    row.button.setAttribute("aria-label", `${verb}: ${shown(line.name)}`);
    set_text(row.ended, `${short_count(line.completed)} completed`
      + (line.failed ? `, ${short_count(line.failed)} failed` : ""));
    set_text(row.seen, line.seen === null ? "–" : `${duration(Math.max(0, now - line.seen))} ago`);
    row.seen.title = line.seen === null ? "not since the server's start" : moment(line.seen);
    const since = (run: Run) => duration(Math.max(0, now - run.started)).replace(/\.\d s/, " s");
    const runs = line.runs.slice(0, SHOWN_RUNS);
    const drawn = JSON.stringify([line.active, line.waits, line.quiet, line.queues,
      runs.map((run) => [run.queue, run.id, since(run)])]);
    if (drawn === row.drawn) return;
    row.drawn = drawn;
    replace(row.state, h("span.pill", { "data-state": line.active ? "active" : null },
      line.active ? `runs ${short_count(line.active)}` : line.waits ? "waits for a job"
        : "runs nothing"),
    line.quiet.length === 0 ? null : h("span.pill", { "data-state": "paused",
      title: `gets no new jobs of ${line.quiet.map(shown).join(", ")}` }, "quiet"));
    const rest = line.active - runs.length;
    replace(row.runs, ...runs.flatMap((run, n) => {
      const ref: QueueRef = { queue: run.queue, db: this.db };
      return [n ? ", " : "", job_anchor(ref, run.id), h("span", { title: ago(run.started, now) },
        ` for ${since(run)}`)];
    }), rest > 0 && runs.length > 0 ? ` and ${short_count(rest)} more` : null);
    replace(row.queues, ...line.queues.slice(0, SHOWN_RUNS).flatMap((queue, n) => [n ? ", " : "",
      is_addressable(queue) ? h("a", { title: shown(queue), href: queue_link(
        { queue, db: this.db }, line.name === "" ? { state: "active" }
          : { worker: line.name, state: "active" }) }, h("bdi", {}, shown(queue)))
        : h("bdi", {}, shown_name(queue))]),
    line.queues.length > SHOWN_RUNS
      ? ` and ${count(line.queues.length - SHOWN_RUNS)} more` : null);
  }
}
