// All queues of a database with live figures and small charts: as cards where they are few, else as
// a table. Figures come with the list; the rest is requested only for queues in view.
import { overview_link, set_params } from "./address";
import type { Params } from "./address";
import { ApiError, queue_path, request, state } from "./api";
import type { QueueRef } from "./api";
import { is_addressable, name_of, segment_of_text, shown } from "./bytes";
import { draw_more, h, replace, set_text, show } from "./dom";
import { first_job } from "./first_run";
import { count, plural, short_count } from "./format";
import { ask_failed, ask_hours, ask_past, series_of } from "./history";
import { LEAST_MS, Poller, Visibility, draw_soon, painted, rest_since } from "./live";
import { words_of_error } from "./notices";
import { QueueCards } from "./queue_cards";
import type { Card } from "./queue_cards";
import { QueueTable, order_of } from "./queue_table";
import { ask_to_make } from "./queue_actions";
import type { Band, QueueLine, Stats } from "./types";
import { Stale, empty, show_filter, skeleton, show_error } from "./view";
import type { View } from "./view";

// A page of the list a second: with many queues each line is read less often, and their answers are
// followed by a rest of so many times the time that they took.
const USUAL_MS = 1000;
const REST = 50;
// What the server keeps of the past changes slowly.
const HOURS_MS = 30_000;
// The failures of the last hour of queues that are not in view decide the order.
const FAILED_MS = 300_000;
const PAGE = 100;
const MOST_PAGES = 10;
const MOST_BAND_REQUESTS = 6;
// A card asks for its bands this seldom; its figures come with each list.
const BANDS_MS = 1900;
const MOST_CARDS = 6;
const ROWS = 30;

function stats_of(lines: QueueLine[]): Map<string, Stats> {
  return new Map(lines.map((line) => [name_of(line), line.stats]));
}

export class Overview implements View {
  readonly root = h("main.overview");
  readonly title = "Queues";
  private readonly head = h("div.page-head");
  private readonly sum = h("p.sum");
  private readonly stale = new Stale();
  private readonly message = h("div");
  private readonly note = h("p.dim.journal");
  private readonly lost = h("p.dim", { role: "status", hidden: true });
  private readonly more = h("button", { click: () => this.show_more() });
  private readonly filter = h("input", { type: "search", placeholder: "Filter queues",
    "aria-label": "Filter queues", input: () => {
      this.rows = ROWS;
      set_params({ find: segment_of_text(this.filter.value) }, true);
    } });
  private readonly visibility = new Visibility(() => this.poller.poke());
  private readonly cards: QueueCards;
  private readonly table: QueueTable;
  private lines: QueueLine[] | null = null;
  // When the server counted the figures of each.
  private counted = new Map<QueueLine, number>();
  private shown_lines: QueueLine[] = [];
  // There are more queues than were read.
  private cut = false;
  private rows = ROWS;
  private sort = "trouble";
  private journal_at = 0;
  private hours_at = -Infinity;
  private hours_of = "";
  private failed_at = -Infinity;
  private readonly poller: Poller;

  constructor(private db: number, params: Params) {
    this.cards = new QueueCards(db, this.visibility);
    this.table = new QueueTable(db, (sort) =>
      set_params({ sort: sort === "trouble" ? "" : sort }));
    const databases = h("select", { "aria-label": "Database", change: () => {
      location.hash = overview_link(Number(databases.value));
    } }, ...Array.from({ length: 16 }, (_, n) =>
      h("option", { value: n, selected: n === db }, `database ${n}`)));
    this.head.append(h("h1", {}, "Queues"), this.filter, databases);
    if (state.may("operate")) {
      this.head.append(h("button", { click: () => ask_to_make(db) }, "New queue…"));
    }
    replace(this.message, skeleton(4));
    show(this.more, false);
    this.root.append(this.head, this.stale.root, this.sum, this.message, this.cards.root,
      this.table.root, this.more,
      this.lost, h("footer", {}, this.note));
    show(this.table.root, false);
    this.take(params);
    this.poller = new Poller((signal) => this.ask(signal), USUAL_MS, LEAST_MS,
      (error) => this.failed(error));
  }

  take(params: Params): void {
    this.sort = params.sort ?? "trouble";
    show_filter(this.filter, params.find ?? "");
    this.draw();
  }

  stop(): void {
    this.poller.stop();
    this.visibility.stop();
    this.cards.stop();
    this.table.stop();
  }

  private add(line: QueueLine, bands: Band[] | null): void {
    series_of(this.db, name_of(line)).add(line.stats, bands, this.counted.get(line)!);
  }

  private show_more(): void {
    this.rows += ROWS;
    draw_more(this.more, this.table.body, this.draw);
    this.poller.poke();
  }

  // --- Requests ---

  private async ask(signal: AbortSignal): Promise<void> {
    const began = performance.now();
    const lines: QueueLine[] = [];
    const counted = new Map<QueueLine, number>();
    let cursor: string | null = null;
    let page = 0;
    do {
      const query = new URLSearchParams({ limit: String(PAGE) });
      if (this.db !== 0) query.set("db", String(this.db));
      if (cursor !== null) query.set("cursor", cursor);
      const answer: { queues: QueueLine[]; cursor: string | null; now: number } =
        await request(`/api/v1/queues?${query}`, { signal });
      lines.push(...answer.queues);
      for (const line of answer.queues) counted.set(line, answer.now);
      cursor = answer.cursor;
    } while (cursor !== null && ++page < MOST_PAGES);
    this.poller.usual_ms = page === 0 ? USUAL_MS : rest_since(began, USUAL_MS * page, REST);
    const first = this.lines === null;
    this.lines = lines;
    this.counted = counted;
    this.cut = cursor !== null;
    if (first) {
      // The figures are shown before more is asked for, and that only for what is in view.
      this.draw();
      await painted();
      this.visibility.look();
    } else {
      draw_soon(this.draw);
    }
    await Promise.all([this.ask_bands(lines, signal), this.ask_hours(signal)]);
    if (performance.now() - this.journal_at > 5000) await this.ask_journal(signal);
    this.stale.set(null);
    draw_soon(this.draw);
  }

  // The cards in view that were updated least recently.
  private async ask_bands(lines: QueueLine[], signal: AbortSignal): Promise<void> {
    const due = lines.map((line) => ({ line, card: this.cards.get(name_of(line)) }))
      .filter((each): each is { line: QueueLine; card: Card } =>
        each.card?.visible === true && is_addressable(each.card.key)
        && performance.now() - each.card.bands_at > BANDS_MS)
      .sort((a, b) => a.card.bands_at - b.card.bands_at).slice(0, MOST_BAND_REQUESTS);
    const asked = new Set(due.map(({ line }) => line));
    for (const line of lines) {
      if (!asked.has(line)) this.add(line, null);
    }
    await Promise.all(due.map(async ({ line, card }) => {
      const ref: QueueRef = { queue: name_of(line), db: this.db };
      const old = performance.now() - card.past_at > HOURS_MS;
      if (old) card.past_at = performance.now();
      const [{ bands }] = await Promise.all([request<{ bands: Band[] }>(
        queue_path(ref, "/bands", { with: "wait_buckets" }), { signal }),
      old ? ask_past(ref, "hour", signal) : null]);
      card.bands_at = performance.now();
      this.add(line, bands);
      draw_soon(() => this.cards.draw_bands(card, bands));
    }));
  }

  private async ask_hours(signal: AbortSignal): Promise<void> {
    await this.ask_failed(signal);
    const lines = this.shown_lines;
    const key = lines.map((line) => name_of(line)).sort().join();
    const old = performance.now() - this.hours_at > HOURS_MS;
    if (lines.length === 0 || (!old && key === this.hours_of)) return;
    this.hours_at = performance.now();
    this.hours_of = key;
    await ask_hours(this.db, stats_of(lines), signal);
  }

  // Before the rest, so that the queues in view are the right ones.
  private async ask_failed(signal: AbortSignal): Promise<void> {
    if (this.lines!.length <= this.shown_lines.length
      || performance.now() - this.failed_at < FAILED_MS) {
      return;
    }
    this.failed_at = performance.now();
    await ask_failed(this.db, stats_of(this.lines!), signal);
    this.draw();
  }

  private async ask_journal(signal: AbortSignal): Promise<void> {
    this.journal_at = performance.now();
    // A token's user may be allowed to see queues but not this.
    const answer = await request<Record<string, Record<string, number | string>>>(
      "/api/v1/journal", { signal }).catch((error) => {
      if (error instanceof ApiError) return null;
      throw error;
    });
    if (answer === null) return;
    set_text(this.note, answer.journal.durable_lsn === undefined
      ? "This server keeps its data in memory only: a restart loses it."
      : answer.checkpoint.running ? "A checkpoint is being written." : "");
  }

  private failed(error: unknown): void {
    if (this.lines !== null) {
      if (state.health === "connected") this.stale.set(error);
      return;
    }
    if (state.health === "connected") {
      show_error(this.message, "Cannot show the queues", error, () => this.poller.poke());
    } else replace(this.message, skeleton(4));
    this.message.title = words_of_error(error);
  }

  // --- Drawing ---

  private readonly draw = () => {
    if (this.lines === null) return;
    const wanted = this.filter.value.trim().toLowerCase();
    const found = this.lines.filter((line) =>
      shown(name_of(line)).toLowerCase().includes(wanted))
      .sort(order_of(this.sort, this.db));
    const few = this.lines.length <= MOST_CARDS;
    this.shown_lines = found.slice(0, few ? MOST_CARDS : this.rows);
    this.draw_message(found.length);
    this.draw_sum(found);
    this.draw_lost();
    show(this.cards.root, few);
    show(this.table.root, !few && found.length > 0);
    this.cards.draw(few ? this.shown_lines : []);
    this.table.draw(few ? [] : this.shown_lines, this.sort);
    const left = found.length - this.shown_lines.length;
    show(this.more, left > 0);
    set_text(this.more, `Show more queues (${short_count(left)})`);
  };

  private draw_message(found: number): void {
    const none = this.lines!.length === 0;
    const key = none ? "none" : found > 0 ? "" : this.cut ? "cut" : "filtered";
    if (this.message.dataset.for === key) return;
    this.message.dataset.for = key;
    replace(this.message, key === "" ? null
      : none ? empty("There are no queues yet",
        h("p", {}, "A queue is made by its first job. Paste this into a terminal or a program:"),
        first_job("mail", this.db)) : empty(this.cut
          ? `None of the first ${plural(this.lines!.length, "queue")} has this text in its name`
          : "No queue has this text in its name"));
  }

  // Sums that add up: what waits is pending, delayed or blocked. Rounded ones would not.
  private draw_sum(lines: readonly QueueLine[]): void {
    show(this.sum, lines.length > 1);
    const of = (key: "waiting" | "pending" | "delayed" | "blocked" | "active") =>
      count(lines.reduce((sum, { stats }) => sum + stats[key], 0));
    const all = this.lines!.length;
    const first = `the first ${plural(all, "queue")} by name`;
    const where = !this.cut ? plural(lines.length, "queue")
      : lines.length === all ? first : `${count(lines.length)} of ${first}`;
    const [waiting, active] = [of("waiting"), of("active")];
    set_text(this.sum, `${waiting} ${waiting === "1" ? "job waits" : "jobs wait"} in ${where}: `
      + `${of("pending")} pending, ${of("delayed")} delayed, ${of("blocked")} blocked. `
      + `${active} ${active === "1" ? "is" : "are"} active.`);
  }

  // It counts those on the screen, so that nobody takes a part of the hour for all of it.
  private draw_lost(): void {
    const lost = this.shown_lines.filter((line) =>
      series_of(this.db, name_of(line)).hour_reduced).length;
    show(this.lost, lost > 0);
    set_text(this.lost, `Of ${plural(lost, "queue")} here the server gave up a part of the last `
      + "hour to stay within history-memory: failures of that part are not counted.");
  }
}
