// All queues of a database with live figures and small charts. Figures come with the list; the
// other data of the charts is requested only for queues in view.
import { ApiError, queue_path, request, state } from "./api";
import type { QueueRef } from "./api";
import { is_addressable, segment_of, shown } from "./bytes";
import { Chart } from "./charts";
import { KeyedList, h, replace, set_class, set_text, show } from "./dom";
import { duration, rate, short_count } from "./format";
import { series_of } from "./history";
import { LEAST_MS, Poller, Visibility, draw_soon } from "./live";
import { act, words_of_error } from "./notices";
import type { Band, QueueLine } from "./types";
import { empty, error_box, queue_link, skeleton } from "./view";
import type { View } from "./view";
import { WINDOW_S } from "./waits";
import { wait_in_words } from "./words";

const USUAL_MS = 1000;
// A queue's configuration changes rarely.
const CONFIG_MS = 5000;
const PAGE = 100;
const MOST_PAGES = 10;
const MOST_BAND_REQUESTS = 6;

interface Card {
  root: HTMLElement;
  key: string;
  visible: boolean;
  charts: Chart[];
  figures: Record<string, HTMLElement>;
  bands: HTMLElement;
  bands_at: number;
  config_at: number;
}

const FIGURES = ["waiting", "active", "oldest", "added", "ended", "failed"];

function first_command(db: number): string {
  const port = state.session?.port ? ` -p ${state.session.port}` : "";
  return `redis-cli${port}${db ? ` -n ${db}` : ""} Q.ADD mail '*' '{"to":"ada"}' PRI HIGH`;
}

export class Overview implements View {
  readonly root = h("main.overview");
  readonly title = "Queues";
  private readonly grid = h("div.cards");
  private readonly head = h("div.page-head");
  private readonly message = h("div");
  private readonly more = h("button", { click: () => { this.pages += 1; this.poller.poke(); } },
    "Show more queues");
  private readonly filter = h("input", { type: "search", placeholder: "Filter queues",
    "aria-label": "Filter queues", input: () => this.draw() });
  private readonly journal = h("p.dim.journal");
  private readonly visibility = new Visibility();
  private lines: QueueLine[] | null = null;
  private pages = 1;
  private journal_at = 0;
  private readonly poller: Poller;
  private readonly list: KeyedList<QueueLine, Card>;

  constructor(private db: number) {
    this.list = new KeyedList<QueueLine, Card>(this.grid, (line) => this.name(line),
      (key) => this.make(key), (card, line) => this.update(card, line));
    const databases = h("select", { "aria-label": "Database", change: () => {
      location.hash = databases.value === "0" ? "#/" : `#/?db=${databases.value}`;
    } }, ...Array.from({ length: 16 }, (_, n) =>
      h("option", { value: n, selected: n === db }, `database ${n}`)));
    this.head.append(h("h1", {}, "Queues"), this.filter, databases);
    replace(this.message, skeleton(4));
    show(this.more, false);
    const checkpoint = h("button", { click: () => void this.checkpoint() }, "Checkpoint now");
    this.root.append(this.head, this.message, this.grid, this.more,
      h("footer", {}, this.journal, state.may("admin") ? checkpoint : null));
    this.poller = new Poller((signal) => this.ask(signal), USUAL_MS, LEAST_MS,
      (error) => this.failed(error));
  }

  stop(): void {
    this.poller.stop();
    this.visibility.stop();
    for (const card of this.list.values()) card.charts.forEach((chart) => chart.stop());
  }

  private name(line: QueueLine): string {
    return segment_of(line, "name") ?? "";
  }

  private async ask(signal: AbortSignal): Promise<void> {
    const lines: QueueLine[] = [];
    let cursor: string | null = null;
    let page = 0;
    do {
      const query = new URLSearchParams({ limit: String(PAGE) });
      if (this.db !== 0) query.set("db", String(this.db));
      if (cursor !== null) query.set("cursor", cursor);
      const answer: { queues: QueueLine[]; cursor: string | null } =
        await request(`/api/v1/queues?${query}`, { signal });
      lines.push(...answer.queues);
      cursor = answer.cursor;
    } while (cursor !== null && ++page < this.pages && page < MOST_PAGES);
    this.lines = lines;
    show(this.more, cursor !== null);
    draw_soon(() => this.draw());
    await this.ask_bands(lines, signal);
    if (performance.now() - this.journal_at > 5000) await this.ask_journal(signal);
    draw_soon(() => this.draw());
  }

  // The queues in view that were updated least recently.
  private async ask_bands(lines: QueueLine[], signal: AbortSignal): Promise<void> {
    const due = lines.map((line) => ({ line, card: this.list.get(this.name(line)) }))
      .filter(({ card }) => card?.visible && is_addressable(card.key))
      .sort((a, b) => a.card!.bands_at - b.card!.bands_at).slice(0, MOST_BAND_REQUESTS);
    const asked = new Set(due.map(({ line }) => line));
    await Promise.all(due.map(async ({ line, card }) => {
      const ref: QueueRef = { queue: this.name(line), db: this.db };
      const { bands } = await request<{ bands: Band[] }>(
        queue_path(ref, "/bands", { with: "wait_buckets" }), { signal });
      card!.bands_at = performance.now();
      series_of(this.db, ref.queue).add(line.stats, bands);
      draw_soon(() => this.draw_bands(card!, bands));
      if (performance.now() - card!.config_at < CONFIG_MS) return;
      card!.config_at = performance.now();
      const config = await request<{ paused?: string }>(queue_path(ref, "/config"), { signal });
      const { paused = "none" } = config;
      show(card!.figures.paused, paused !== "none");
      set_text(card!.figures.paused, paused === "all" ? "paused" : `paused (${paused})`);
    }));
    for (const line of lines) {
      if (!asked.has(line)) series_of(this.db, this.name(line)).add(line.stats, null);
    }
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
    const lsn = answer.journal.durable_lsn;
    const { checkpoint } = answer;
    const running = checkpoint.running ? " A checkpoint is in progress." : "";
    set_text(this.journal, lsn === undefined ? "No journal: all data is in memory only."
      : `Journal: durable up to ${lsn}, checkpoint up to ${checkpoint.end_lsn ?? 0}.${running}`);
  }

  private async checkpoint(): Promise<void> {
    await act("The checkpoint was started.", "The checkpoint was not started",
      () => request("/api/v1/checkpoint", { method: "POST" }));
  }

  private failed(error: unknown): void {
    if (this.lines !== null) return;
    replace(this.message, state.health === "disconnected" || state.health === "loading"
      ? skeleton(4) : error_box("Cannot show the queues", error, () => this.poller.poke()));
    this.message.title = words_of_error(error);
  }

  // --- Drawing ---

  private draw(): void {
    if (this.lines === null) return;
    const wanted = this.filter.value.trim().toLowerCase();
    const lines = this.lines.filter((line) =>
      shown(segment_of(line, "name")).toLowerCase().includes(wanted));
    if (this.lines.length === 0) {
      replace(this.message, empty("There are no queues yet",
        h("p", {}, "A queue is created by its first job:"),
        h("pre", {}, first_command(this.db))));
    } else if (lines.length === 0) {
      replace(this.message, empty("No queue has this text in its name"));
    } else {
      replace(this.message);
    }
    this.list.render(lines);
  }

  private make(key: string): Card {
    const ref = { queue: key, db: this.db };
    const figures: Card["figures"] = {};
    const cells = FIGURES.map((name) => {
      figures[name] = h("strong", {}, "–");
      return h("div", {}, h("span", {}, name), figures[name]);
    });
    figures.paused = h("span.pill", { "data-state": "paused", hidden: true });
    const spots = ["depth", "flow", "wait"].map(() => h("div.spark"));
    const names = ["waiting · active", "added · ended /s", "wait p95, p50 by band"];
    const card: Card = {
      root: h("article.card", {},
        h("header", {}, is_addressable(key)
          ? h("a.id", { href: queue_link(ref), "data-row": key }, h("bdi", {}, shown(key)))
          : h("span.id", { title: "This name cannot be part of an address." },
            h("bdi", {}, shown(key))),
        figures.paused),
        h("div.figures", {}, ...cells),
        h("div.sparks", {}, ...spots.map((spot, index) =>
          h("figure", {}, spot, h("figcaption", {}, names[index]))))),
      key, visible: false, figures, bands: h("div.band-line"), bands_at: 0, config_at: -Infinity,
      charts: [new Chart(spots[0], "depth", false), new Chart(spots[1], "flow", false),
        new Chart(spots[2], "wait", false)],
    };
    card.root.append(card.bands);
    this.visibility.watch(card.root, (visible) => {
      card.visible = visible;
      if (visible) this.poller.poke();
    });
    return card;
  }

  private update(card: Card, line: QueueLine): void {
    const { stats } = line;
    const { figures } = card;
    const series = series_of(this.db, card.key);
    const last = series.time.length - 1;
    const cap = stats.max_active ? ` / ${short_count(stats.max_active)}` : "";
    set_text(figures.waiting, short_count(stats.waiting));
    set_text(figures.active, short_count(stats.active) + cap);
    set_text(figures.oldest, duration(stats.oldest_ms));
    set_text(figures.added, `${rate(series.added[last] ?? stats.rates.added)}/s`);
    set_text(figures.ended, `${rate(series.completed[last] ?? stats.rates.completed)}/s`);
    set_text(figures.failed, short_count(stats.failed + stats.expired));
    set_class(figures.failed, "warn", stats.failed + stats.expired > 0);
    if (card.visible) for (const chart of card.charts) chart.draw(series);
  }

  private draw_bands(card: Card, bands: Band[]): void {
    const busy = bands.filter((band) => band.wait_ms.count > 0 || band.pending > 0).slice(0, 8);
    const { recent } = series_of(this.db, card.key);
    replace(card.bands, ...busy.map((band) => {
      const wait = recent.of(segment_of(band, "name") ?? "");
      return h("span", {},
        h("bdi", {}, shown(segment_of(band, "name"))), h("b", {}, short_count(band.pending)),
        wait && wait.started > 0 ? h("small", { title: `${wait_in_words(wait)}, of the last `
          + `${WINDOW_S} s` }, `${duration(wait.p50)} · ${duration(wait.p95)}`) : null);
    }));
  }
}
