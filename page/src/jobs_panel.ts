// The jobs of a queue: the next ones in dispatch order, and those of each state, page by page, with
// filters that stand in the address.
import { ask_for_all, ask_for_chosen, job_buttons, named } from "./actions";
import type { Verb } from "./actions";
import { set_params } from "./address";
import type { Params } from "./address";
import { ApiError, job_path, queue_path, request, state } from "./api";
import type { QueueRef } from "./api";
import { segment_of, segment_of_text, shown, text_of } from "./bytes";
import { server_now } from "./clock";
import { KeyedList, append, h, replace, set_text, show } from "./dom";
import { FailuresPanel } from "./failures_panel";
import { ago, count, duration, short_count } from "./format";
import { JobFilters, filter_query, filters_in_words, is_filtered, where_of } from "./job_filters";
import { failure } from "./notices";
import type { Job, Stats } from "./types";
import { Panel, STATES, Tabs, empty, job_anchor, skeleton } from "./view";
import { error_in_words, eta_of, failed_before, is_over, telling_line, why_in_words }
  from "./words";

const PAGE = 25;
// The first tab, which lists all jobs of a filter; the others are states.
const NEXT = "next";

// The most useful order for each state (Q.LIST's BY); ended jobs are listed newest first.
const ORDERS: Record<string, string> = { pending: "rank", active: "age", delayed: "age" };

interface Page {
  jobs: Job[];
  cursor: string | null;
  looked_at?: number;
}

interface Row {
  root: HTMLElement;
  box: HTMLInputElement | null;
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
  private params: Params = {};
  private jobs: Job[] | null = null;
  private cursor: string | null = null;
  private looked_at = 0;
  // The row that a button will show, which is gone by then: the focus goes there.
  private focus_at: number | null = null;
  // The page that a button opens: until it is taken, what is drawn is the one before.
  private opens: string | null | undefined;
  // Where the page shown begins; null: at the start, the only page that is kept current.
  private from: string | null = null;
  private asked: string | null = null;
  private bands: string[] = [];
  private pending = 0;
  private adopted = false;
  // Ids and states.
  private readonly chosen = new Map<string, string>();
  private readonly note = h("div", {}, skeleton(5));
  private readonly rows = h("div.job-rows");
  private readonly filters = new JobFilters();
  private readonly failures: FailuresPanel;
  private readonly tabs: { name: string; root: HTMLButtonElement; count: HTMLElement }[];
  private readonly tab_list: Tabs;
  private readonly next = h("button", { click: () => this.open_page(this.cursor) }, "Next page");
  private readonly first = h("button", { click: () => this.open_page(null) }, "First page");
  private readonly further = h("button", { click: () => this.look_further() });
  private readonly all = h("button.link", { click: () => this.for_all() });
  private readonly selection = h("div.selection", { hidden: true });
  private readonly list: KeyedList<Job, Row>;

  constructor(private ref: QueueRef, private poke: () => void) {
    this.failures = new FailuresPanel(ref, poke);
    this.tabs = [NEXT, ...STATES].map((name) => {
      const number = h("small");
      const root = h("button", { "data-state": name, click: () => set_params({
        state: name === NEXT ? "" : name, by: "" }) }, h("span", {}, name), number);
      return { name, root, count: number };
    });
    const listed = h("div", {}, this.filters.root, this.failures.root, this.selection, this.rows,
      this.note, h("div.buttons", {}, this.first, this.next, this.further, this.all));
    this.tab_list = new Tabs("jobs", "State", this.tabs.map(({ root }) => root), listed);
    append(this.panel.body, [this.tab_list.root, listed]);
    this.list = new KeyedList<Job, Row>(this.rows, (job) => segment_of(job, "id") ?? "",
      (id, job) => this.make(id, job), (row, job) => this.update(row, job));
    this.hide_buttons();
  }

  private get state(): string {
    return this.params.state ?? (this.params.worker ? "active" : NEXT);
  }

  // Whether the jobs are listed in dispatch order, without a filter.
  private get is_next(): boolean {
    return this.state === NEXT && !is_filtered(this.params);
  }

  // A later page is not updated: nothing moves while it is being read, or chosen from.
  private get is_still(): boolean {
    return this.from !== null || this.chosen.size > 0 || this.looked_at > 0;
  }

  // What is done with all of them.
  private get verb(): Verb {
    return this.state === "failed" ? "retry" : is_over(this.state) ? "purge" : "cancel";
  }

  private get by_error(): boolean {
    return this.state === "failed" && this.params.by === "error";
  }

  take(params: Params): void {
    this.params = params;
    const { state: name } = this;
    this.tab_list.choose(this.tabs.find((tab) => tab.name === name)?.root);
    set_text(this.tabs[0].root.firstElementChild!, is_filtered(params) ? "all" : NEXT);
    const title = name === NEXT && is_filtered(params) ? "all" : name;
    set_text(this.root.querySelector("h2")!, this.by_error ? "Failed jobs by their errors"
      : `${title[0].toUpperCase()}${title.slice(1)} jobs`);
    this.filters.take(params, name);
    this.failures.turn(this.by_error);
    this.turn(params.from ? text_of(params.from) : null);
  }

  // The page is a part of the address.
  private go(from: string | null, instead = false): void {
    set_params({ from: from === null ? "" : segment_of_text(from) }, instead);
  }

  private open_page(from: string | null): void {
    this.opens = from;
    this.go(from);
  }

  private follow_focus(): void {
    const at = this.focus_at;
    this.focus_at = null;
    if (at === null || !document.activeElement?.matches("body, button")) return;
    this.rows.children[at]?.querySelector("a")?.focus();
  }

  private hide_buttons(): void {
    for (const button of [this.first, this.next, this.further, this.all]) show(button, false);
  }

  private turn(from: string | null): void {
    this.from = from;
    if (from === this.opens) this.focus_at = 0;
    this.opens = undefined;
    this.asked = null;
    this.jobs = null;
    this.looked_at = 0;
    this.chosen.clear();
    this.list.render([]);
    this.draw_selection();
    this.hide_buttons();
    replace(this.note, this.by_error ? null : skeleton(5));
    this.poke();
  }

  private for_all(): void {
    let where: object;
    try {
      where = where_of(this.params, this.state);
    } catch (error) {
      return failure("These jobs cannot be chosen", error);
    }
    void ask_for_all(this.ref, this.verb, this.state, where, filters_in_words(this.params),
      this.to_the_start, this.adopted);
  }

  stop(): void {
    this.filters.stop();
  }

  // --- Requests ---

  private path(from: string | null): string {
    const query: Record<string, string> = this.is_next
      ? { by: "dispatch", count: String(PAGE) } : { limit: String(PAGE) };
    query.progress_bytes = "0";
    if (this.state !== NEXT) query.state = this.state;
    if (ORDERS[this.state]) query.by = ORDERS[this.state];
    if (from !== null) query.cursor = from;
    return queue_path(this.ref, "/jobs", query) + filter_query(this.params);
  }

  async ask(bands: string[], signal: AbortSignal): Promise<void> {
    this.bands = bands;
    if (!this.visible) return;
    if (this.by_error) return this.failures.ask(signal);
    const path = this.path(this.from);
    const still = this.is_still;
    if (still && this.asked === path) return;
    const answer = await request<Page>(path, { signal }).catch((error) => {
      // A link may begin at a page of another queue.
      if (this.from !== null && error instanceof ApiError && error.status === 422) {
        this.go(null, true);
      }
      throw error;
    });
    if (path !== this.path(this.from) || (still && this.asked === path)) return;
    this.asked = path;
    this.jobs = answer.jobs;
    this.cursor = answer.cursor;
  }

  // The user has changed this job: a list that stays as it is shows that, too.
  async changed(id: string): Promise<void> {
    if (this.is_still && this.place_of(id) >= 0) {
      const { from } = this;
      const job = await this.ask_job(id);
      const at = this.place_of(id);
      if (from !== this.from || at < 0) return;
      if (job !== undefined) this.replace_job(at, id, job);
    }
    this.poke();
  }

  private place_of(id: string): number {
    return (this.jobs ?? []).findIndex((job) => segment_of(job, "id") === id);
  }

  // null: it is gone; undefined: nobody knows.
  private ask_job(id: string): Promise<Job | null | undefined> {
    return request<Job>(job_path(this.ref, id, "", { progress_bytes: "0" })).catch((error) =>
      error instanceof ApiError && error.code === "NOJOB" ? null : undefined);
  }

  private replace_job(at: number, id: string, job: Job | null): void {
    const stays = job !== null && (this.state === NEXT || job.state === this.state);
    this.jobs!.splice(at, 1, ...stays ? [job] : []);
    if (!stays) this.chosen.delete(id);
    else if (this.chosen.has(id)) this.chosen.set(id, job.state);
  }

  private readonly to_the_start = () => this.from === null ? this.turn(null) : this.go(null);

  // The server looks at a limited number of jobs in a request: of those that a filter selects there
  // may be more.
  private look_further(): void {
    const before = this.jobs ?? [];
    const { cursor } = this;
    if (cursor === null) return;
    const { from } = this;
    const path = this.path(cursor);
    this.further.disabled = true;
    void request<Page>(path).then((answer) => {
      // Meanwhile another tab or page may have been opened.
      if (path !== this.path(cursor) || from !== this.from) return;
      this.looked_at += answer.looked_at ?? 0;
      this.jobs = [...before, ...answer.jobs];
      this.focus_at = before.length;
      this.cursor = answer.cursor;
      this.asked = this.path(this.from);
    }).catch((error) => failure("Not looked further", error)).finally(() => {
      this.further.disabled = false;
      this.poke();
    });
  }

  // --- Drawing ---

  draw(stats: Stats): void {
    this.pending = stats.pending;
    this.adopted = !!stats.adopted;
    if (!this.visible) return;
    this.draw_counts(stats);
    set_text(this.panel.aside, this.order_in_words());
    if (this.by_error) return this.failures.draw();
    if (this.jobs === null) return;
    this.list.render(this.jobs);
    this.follow_focus();
    this.draw_selection();
    const full = this.jobs.length > 0 && this.jobs.length % PAGE === 0;
    show(this.first, this.from !== null);
    show(this.next, this.cursor !== null && full);
    show(this.further, this.cursor !== null && !full);
    set_text(this.further, "Look further");
    show(this.all, state.may("operate") && this.jobs.length > 0 && this.state !== NEXT);
    set_text(this.all, `${named(this.verb)} all ${is_filtered(this.params) ? "these"
      : this.state}…`);
    this.draw_note();
  }

  private order_in_words(): string {
    if (this.is_next) return "in the order in which pops would take them";
    if (this.by_error) return "the most frequent first";
    return this.state === NEXT ? "" : this.state === "pending" ? "by position"
      : is_over(this.state) ? "newest first" : "oldest first";
  }

  private draw_counts(stats: Stats): void {
    // They are those of all jobs, whatever the filter.
    const none = is_filtered(this.params);
    for (const tab of this.tabs) {
      const number = tab.name === NEXT || none ? undefined
        : is_over(tab.name) ? stats.kept?.[tab.name] : stats[tab.name as "pending"];
      set_text(tab.count, number === undefined ? "" : ` ${short_count(number)}`);
    }
  }

  private draw_note(): void {
    if (this.jobs!.length > 0) return replace(this.note);
    // If waiting jobs exist, the list is not shown as empty; the reason is shown under their own
    // tab.
    const held = this.is_next && this.pending > 0;
    const words = this.cursor !== null ? "None found yet"
      : is_filtered(this.params) ? "No such job"
      : held ? `No job can run next: ${count(this.pending)} pending`
      : this.state === NEXT ? "No job is waiting to run" : `No job is ${this.state}`;
    const why = this.cursor !== null
      ? "The server looks at some 10,000 jobs a request; there are more."
      : held ? "Their groups or keys have no free slots, or are paused." : "";
    if (this.note.textContent === words + why) return;
    replace(this.note, empty(words, why ? h("p", {}, why) : null));
  }

  // What is done with the chosen jobs.
  private draw_selection(): void {
    const number = this.chosen.size;
    show(this.selection, number > 0);
    const states = new Set([...this.chosen.values()].map(is_over));
    const key = `${number} ${[...states].sort().join()}`;
    if (this.selection.dataset.for === key) return;
    this.selection.dataset.for = key;
    const act = (verb: "retry" | "cancel" | "purge") =>
      ask_for_chosen(this.ref, verb, new Map(this.chosen), this.to_the_start, this.adopted);
    const button = (text: string, verb: "retry" | "cancel" | "purge", danger = false) =>
      h(danger ? "button.danger" : "button", { click: () => act(verb) }, text);
    replace(this.selection, h("strong", {}, `${number} chosen`),
      states.has(true) ? button("Retry…", "retry") : null,
      states.has(false) ? button("Cancel…", "cancel", true) : null,
      states.has(true) ? button("Purge…", "purge", true) : null,
      h("button.link", { click: () => this.choose_all(true) }, "all on this page"),
      h("button.link", { click: () => this.choose_all(false) }, "none"));
  }

  private choose_all(on: boolean): void {
    this.chosen.clear();
    for (const job of on ? this.jobs ?? [] : []) {
      this.chosen.set(segment_of(job, "id") ?? "", job.state);
    }
    this.list.render(this.jobs ?? []);
    this.draw_selection();
  }

  private choose(id: string, row: Row): void {
    if (row.box!.checked) this.chosen.set(id, row.job.state);
    else this.chosen.delete(id);
    this.draw_selection();
  }

  private make(id: string, job: Job): Row {
    const box = state.may("operate") && !this.is_next
      ? h("input", { type: "checkbox", "aria-label": `Choose ${shown(id)}`,
        change: () => this.choose(id, row) }) : null;
    const row: Row = { root: h("div.job-row"), box, place: h("span.place"), band: h("span.band"),
      group: h("bdi.group-name"), time: h("span.time"), note: h("span.note"),
      more: h("span.row-actions"), job };
    // Buttons are only created for the row under the pointer or in focus.
    const fill = () => {
      if (row.more.childElementCount > 0) return;
      const target = { ref: this.ref, id, job: row.job, changed: () => void this.changed(id),
        adopted: this.adopted };
      replace(row.more, ...job_buttons(target, this.bands));
    };
    row.root.addEventListener("pointerenter", fill);
    row.root.addEventListener("focusin", fill);
    row.root.addEventListener("pointerleave", () => {
      if (!row.root.contains(document.activeElement)) replace(row.more);
    });
    append(row.root, [h("span.lead", {}, box, row.place), job_anchor(this.ref, id), row.band,
      row.group, row.time, row.note, row.more]);
    return row;
  }

  private update(row: Row, job: Job): void {
    if (row.job.state !== job.state || row.job.pri !== job.pri) replace(row.more);
    row.job = job;
    if (row.box) row.box.checked = this.chosen.has(segment_of(job, "id") ?? "");
    const place = this.is_next ? this.jobs?.indexOf(job) ?? 0 : job.position;
    set_text(row.place, place === null ? "" : `#${count(place + 1)}`);
    set_text(row.band, job.pri);
    row.root.dataset.band = String(Math.max(0, this.bands.indexOf(job.pri)) % 8);
    set_text(row.group, shown(segment_of(job, "group")));
    set_text(row.time, this.time_of(job));
    set_text(row.note, this.note_of(job));
    row.root.dataset.state = job.state;
  }

  private time_of(job: Job): string {
    const now = server_now();
    if (job.finished !== null) return ago(job.finished, now);
    if (job.state === "active") return `runs ${duration(now - (job.started ?? now))}`;
    if (job.state === "delayed") return `in ${duration((job.not_before ?? now) - now)}`;
    return job.enqueued === null ? "" : `waits ${duration(now - job.enqueued)}`;
  }

  private note_of(job: Job): string {
    const error = telling_line(
      error_in_words(segment_of(job, "error"), job.state, job.needs));
    if (is_over(job.state) || job.state === "active") return error;
    // If no worker asks, none of them is expected, not only the first one.
    const idle = this.jobs?.some(({ why }) => why === "no_worker");
    const eta_ms = idle ? null : eta_of(job);
    const eta = eta_ms === null ? "" : eta_ms < 1000 ? "Expected at once. "
      : `Expected in ${duration(eta_ms)}. `;
    // The number of jobs before it by position belongs to another order than that of this list.
    const listed = this.is_next && /^(behind|fair_share)\b/.test(job.why ?? "");
    return failed_before(job, error) + (listed ? eta.trim() : eta + why_in_words(job.why));
  }

  find(id: string): Job | undefined {
    return this.jobs?.find((job) => segment_of(job, "id") === id);
  }
}
