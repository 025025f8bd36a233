// The jobs of a queue: the next ones in dispatch order, and those of each state, page by page.
import { ask_for_all, job_buttons } from "./actions";
import { queue_path, request, state } from "./api";
import type { QueueRef } from "./api";
import { segment_of, shown } from "./bytes";
import { server_now } from "./clock";
import { KeyedList, append, h, replace, set_text, show } from "./dom";
import { count, duration, moment } from "./format";
import type { Job } from "./types";
import { Panel, STATES, empty, filter_query, job_anchor, queue_link, skeleton } from "./view";
import type { Filter } from "./view";
import { is_over, why_in_words } from "./words";

const PAGE = 25;
// The first tab, which lists all jobs of a filter; the others are states.
const NEXT = "next";
// The server examines a limited number of jobs per call, so a page may be empty before the end.
const MOST_EMPTY_PAGES = 10;

// The most useful order for each state (Q.LIST's BY).
const ORDERS: Record<string, string> = { pending: "rank", active: "age", delayed: "age",
  failed: "age", completed: "age", cancelled: "age", expired: "age" };

interface Page {
  jobs: Job[];
  cursor: string | null;
}

interface Row {
  root: HTMLElement;
  place: HTMLElement;
  band: HTMLElement;
  group: HTMLElement;
  time: HTMLElement;
  note: HTMLElement;
  more: HTMLElement;
  job: Job;
}

export class JobsPanel {
  private readonly panel = new Panel("Next jobs", "jobs");
  readonly root = this.panel.root;
  visible = false;
  private state = NEXT;
  private jobs: Job[] | null = null;
  private cursor: string | null = null;
  // Where the page shown begins; null: at the start, the only page that is kept current.
  private from: string | null = null;
  private asked_from: string | null = null;
  private bands: string[] = [];
  private pending = 0;
  private readonly note = h("div", {}, skeleton(5));
  private readonly rows = h("div.job-rows");
  private readonly tabs: HTMLButtonElement[];
  private readonly next = h("button", { click: () => this.turn(this.cursor) }, "Next page");
  private readonly first = h("button", { click: () => this.turn(null) }, "First page");
  private readonly all = h("button.link", { click: () => this.for_all() });
  private readonly list: KeyedList<Job, Row>;

  constructor(private ref: QueueRef, private poke: () => void, private filter: Filter | null) {
    if (filter?.by === "worker") this.state = "active";
    for (const button of [this.first, this.next, this.all]) show(button, false);
    this.tabs = [NEXT, ...STATES].map((name) => h("button", { role: "tab", "data-state": name,
      "aria-selected": String(name === this.state), click: () => this.choose(name) },
    name === NEXT && filter ? "all" : name));
    const chosen = filter && h("p.filter", {}, h("span.pill", {}, filter.by),
      h("bdi", {}, shown(filter.value)), h("a", { href: queue_link(ref) }, "all jobs"));
    append(this.panel.body, [chosen, h("div.tabs", { role: "tablist" }, ...this.tabs), this.rows,
      this.note, h("div.buttons", {}, this.first, this.next, this.all)]);
    this.name_it();
    this.list = new KeyedList<Job, Row>(this.rows, (job) => segment_of(job, "id") ?? "",
      (id, job) => this.make(id, job), (row, job) => this.update(row, job));
  }

  private choose(name: string): void {
    this.state = name;
    for (const tab of this.tabs) {
      tab.setAttribute("aria-selected", String(tab.dataset.state === name));
    }
    this.name_it();
    this.turn(null);
  }

  private name_it(): void {
    const name = this.state === NEXT && this.filter ? "all" : this.state;
    set_text(this.root.querySelector("h2")!, `${name[0].toUpperCase()}${name.slice(1)} jobs`);
  }

  // Whether the jobs are listed in dispatch order, without a filter.
  private get is_next(): boolean {
    return this.state === NEXT && this.filter === null;
  }

  private turn(from: string | null): void {
    this.from = from;
    this.jobs = null;
    this.list.render([]);
    replace(this.note, skeleton(5));
    this.poke();
  }

  private for_all(): void {
    void ask_for_all(this.ref, this.state === "failed" ? "retry" : "purge", this.state, this.poke);
  }

  async ask(bands: string[], signal: AbortSignal): Promise<void> {
    this.bands = bands;
    // A later page is not updated: nothing moves while it is being read.
    const current = this.from === null || this.jobs === null || this.asked_from !== this.from;
    if (!this.visible || !current) return;
    const { state: wanted, from } = this;
    const query: Record<string, string> = this.is_next
      ? { by: "dispatch", count: String(PAGE) } : { limit: String(PAGE) };
    if (wanted !== NEXT) query.state = wanted;
    if (ORDERS[wanted]) query.by = ORDERS[wanted];
    let answer: Page;
    let cursor = from;
    let pages = 0;
    do {
      if (cursor !== null) query.cursor = cursor;
      const path = queue_path(this.ref, "/jobs", query);
      answer = await request<Page>(this.filter ? `${path}&${filter_query(this.filter)}` : path,
        { signal });
      cursor = answer.cursor;
    } while (answer.jobs.length === 0 && cursor !== null && ++pages < MOST_EMPTY_PAGES);
    if (this.state !== wanted || this.from !== from) return;
    this.jobs = answer.jobs;
    this.cursor = answer.cursor;
    this.asked_from = from;
  }

  draw(pending: number): void {
    this.pending = pending;
    if (this.jobs === null || !this.visible) return;
    this.list.render(this.jobs);
    show(this.first, this.from !== null);
    show(this.next, this.cursor !== null);
    // With a filter not all jobs of the state are listed, so there are no buttons for all of them.
    const bulk = !this.filter && state.may("operate") && this.jobs.length > 0
      && is_over(this.state);
    show(this.all, bulk);
    const verb = this.state === "failed" ? "Retry" : "Remove";
    set_text(this.all, `${verb} all ${this.state}…`);
    set_text(this.panel.aside, this.is_next ? "in the order in which pops would take them"
      : this.state === NEXT ? "" : this.state === "pending" ? "by position" : "oldest first");
    if (this.jobs.length > 0) return replace(this.note);
    // If waiting jobs exist, the list is not shown as empty; the reason is shown under their own
    // tab.
    const held = this.is_next && this.pending > 0;
    const words = this.filter ? "No such job"
      : held ? `No job can run next: ${count(this.pending)} pending`
      : this.state === NEXT ? "No job is waiting to run" : `No job is ${this.state}`;
    replace(this.note, empty(words, held ? h("p", {},
      "Their groups or keys have no free slots, or are paused.") : null));
  }

  private make(id: string, job: Job): Row {
    const row: Row = { root: h("div.job-row"), place: h("span.place"), band: h("span.band"),
      group: h("bdi.group-name"), time: h("span.time"), note: h("span.note"),
      more: h("span.row-actions"), job };
    // Buttons are only created for the row under the pointer or in focus.
    const fill = () => {
      if (row.more.childElementCount > 0) return;
      const target = { ref: this.ref, id, job: row.job, changed: this.poke };
      replace(row.more, ...job_buttons(target, this.bands));
    };
    row.root.addEventListener("pointerenter", fill);
    row.root.addEventListener("focusin", fill);
    row.root.addEventListener("pointerleave", () => {
      if (!row.root.contains(document.activeElement)) replace(row.more);
    });
    row.root.append(row.place, job_anchor(this.ref, id), row.band, row.group, row.time, row.note,
      row.more);
    return row;
  }

  private update(row: Row, job: Job): void {
    if (row.job.state !== job.state || row.job.pri !== job.pri) replace(row.more);
    row.job = job;
    const place = this.is_next ? this.jobs?.indexOf(job) ?? 0 : job.position;
    set_text(row.place, place === null ? "" : `#${count(place + 1)}`);
    set_text(row.band, job.pri);
    row.root.dataset.band = String(Math.max(0, this.bands.indexOf(job.pri)) % 8);
    set_text(row.group, shown(segment_of(job, "group")));
    set_text(row.time, this.time_of(job));
    set_text(row.note, this.note_of(job));
  }

  private time_of(job: Job): string {
    const now = server_now();
    if (job.finished !== null) return moment(job.finished);
    if (job.state === "active") return `runs ${duration(now - (job.started ?? now))}`;
    if (job.state === "delayed") return `in ${duration((job.not_before ?? now) - now)}`;
    return `waits ${duration(now - job.enqueued)}`;
  }

  private note_of(job: Job): string {
    if (is_over(job.state) || job.state === "active") return shown(segment_of(job, "error"));
    const eta = job.eta_ms === null ? "" : job.eta_ms < 1000 ? "Expected at once. "
      : `Expected in ${duration(job.eta_ms)}. `;
    // The number of jobs before it by position belongs to another order than that of this list.
    const listed = this.is_next && /^(behind|fair_share)\b/.test(job.why ?? "");
    return listed ? eta.trim() : eta + why_in_words(job.why);
  }

  find(id: string): Job | undefined {
    return this.jobs?.find((job) => segment_of(job, "id") === id);
  }
}
