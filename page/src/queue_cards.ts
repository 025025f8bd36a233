// Few queues: a card for each, with charts and bands. One alone has the whole width.
import type { QueueRef } from "./api";
import { name_of, segment_of, shown } from "./bytes";
import { Chart, MOST_CARD_BANDS } from "./charts";
import { KeyedList, h, replace, set_class, set_text } from "./dom";
import { duration, rate, short_count } from "./format";
import { series_of } from "./history";
import type { Visibility } from "./live";
import { queue_anchor } from "./queue_table";
import { failed_lately, trouble_of } from "./trouble";
import type { Band, QueueLine } from "./types";
import { slots_in_words, wait_in_words } from "./words";

export interface Card {
  root: HTMLElement;
  key: string;
  visible: boolean;
  charts: Chart[];
  figures: Record<string, HTMLElement>;
  slots: HTMLElement;
  trouble: HTMLElement;
  drawn_trouble: string;
  bands: HTMLElement;
  bands_at: number;
  past_at: number;
  band_names: string[];
}

const FIGURES = ["pending", "delayed", "blocked", "active", "oldest wait", "added", "ended",
  "failed, 1 h"];

export class QueueCards {
  readonly root = h("div.cards");
  private readonly list: KeyedList<QueueLine, Card>;

  constructor(private db: number, private visibility: Visibility) {
    this.list = new KeyedList<QueueLine, Card>(this.root, name_of,
      (key) => this.make(key), (card, line) => this.update(card, line));
  }

  stop(): void {
    for (const card of this.list.values()) card.charts.forEach((chart) => chart.stop());
  }

  get(key: string): Card | undefined {
    return this.list.get(key);
  }

  draw(lines: readonly QueueLine[]): void {
    set_class(this.root, "alone", lines.length === 1);
    const before = new Set(this.list.values());
    this.list.render(lines);
    for (const card of this.list.values()) before.delete(card);
    for (const card of before) card.charts.forEach((chart) => chart.stop());
  }

  private make(key: string): Card {
    const ref: QueueRef = { queue: key, db: this.db };
    const figures: Card["figures"] = {};
    const slots = h("small");
    const cells = FIGURES.map((name) => {
      figures[name] = h("strong", {}, "–");
      return h("div", {}, h("span", {}, name), figures[name], name === "active" ? slots : null);
    });
    const charts = (["depth", "flow", "wait"] as const).map((kind) => new Chart(kind, "small"));
    const card: Card = { root: h("article.card"), key, visible: false, figures, slots, charts,
      trouble: h("span.trouble"), drawn_trouble: "", bands: h("div.band-line"), bands_at: -Infinity,
      past_at: -Infinity, band_names: [] };
    card.root.append(h("header", {}, queue_anchor(ref), card.trouble),
      h("div.figures", {}, ...cells),
      h("div.sparks", {}, ...charts.map((chart) => chart.root)), card.bands);
    this.visibility.watch(card.root, (visible) => {
      card.visible = visible;
      if (visible) this.draw_charts(card);
    });
    return card;
  }

  private update(card: Card, line: QueueLine): void {
    const { stats } = line;
    const { figures } = card;
    const series = series_of(this.db, card.key);
    const failed = failed_lately(this.db, line);
    set_text(figures.pending, short_count(stats.pending));
    set_text(figures.delayed, short_count(stats.delayed));
    set_text(figures.blocked, short_count(stats.blocked));
    set_text(figures.active, short_count(stats.active));
    set_text(card.slots, slots_in_words(stats));
    set_text(figures["oldest wait"], duration(stats.oldest_ms));
    set_text(figures.added, `${rate(series.rate_of("added", stats))}/s`);
    set_text(figures.ended, `${rate(series.rate_of("completed", stats))}/s`);
    set_text(figures["failed, 1 h"], short_count(failed));
    set_class(figures["failed, 1 h"], "warn", failed > 0);
    const trouble = trouble_of(this.db, line).filter(({ kind }) => kind !== "failed");
    const words = trouble.map((each) => each.words).join();
    if (words !== card.drawn_trouble) {
      card.drawn_trouble = words;
      replace(card.trouble, ...trouble.map((each) =>
        h("span.pill", { "data-state": each.kind }, each.words)));
    }
    if (card.visible) this.draw_charts(card);
  }

  private draw_charts(card: Card): void {
    const series = series_of(this.db, card.key);
    const lines = series.lines(card.band_names);
    for (const chart of card.charts) chart.draw(lines, series.kept_span_s);
  }

  draw_bands(card: Card, bands: Band[]): void {
    card.band_names = bands.map((band) => segment_of(band, "name") ?? "");
    const busy = bands.filter((band) => band.wait_ms.count > 0 || band.pending > 0)
      .slice(0, MOST_CARD_BANDS);
    const { recent } = series_of(this.db, card.key);
    replace(card.bands, ...busy.map((band) => {
      const wait = recent.of(segment_of(band, "name") ?? "");
      return h("span", {}, h("bdi", {}, shown(segment_of(band, "name"))),
        h("b", {}, `${short_count(band.pending)} pending`),
        wait && wait.started > 0 ? h("small", {}, wait_in_words(wait)) : null);
    }));
  }
}
