// The last minutes of each queue as seen by this page: the data of the charts.
import { segment_of } from "./bytes";
import type { Band, Stats } from "./types";
import { WaitWindow } from "./waits";

const MOST_SAMPLES = 240;
const MOST_QUEUES = 300;
export const MOST_BANDS = 8;

export interface Waits {
  // The band's index by urgency, which selects its colour.
  place: number;
  // Seconds; null: nothing started and nothing waited, undefined: not requested.
  p50: (number | null | undefined)[];
  p95: (number | null | undefined)[];
}

export class Series {
  time: number[] = [];
  depth: number[] = [];
  active: number[] = [];
  added: (number | null)[] = [];
  completed: (number | null)[] = [];
  // By the band's segment, along `time`.
  waits = new Map<string, Waits>();
  readonly recent = new WaitWindow();
  private totals: { at: number; added: number; ended: number } | null = null;

  add(stats: Stats, bands: Band[] | null): void {
    const now = Date.now();
    const last = this.time[this.time.length - 1];
    // Points closer than this cannot be told apart.
    if (last !== undefined && now / 1000 - last < 0.4) return;
    const ended = stats.completed + stats.failed + stats.cancelled + stats.expired;
    const before = this.totals;
    const seconds = before ? (now - before.at) / 1000 : 0;
    const usable = before !== null && seconds < 30 && stats.added >= before.added
      && ended >= before.ended;
    this.totals = { at: now, added: stats.added, ended };
    this.time.push(now / 1000);
    this.depth.push(stats.waiting);
    this.active.push(stats.active);
    this.added.push(usable ? (stats.added - before.added) / seconds : null);
    this.completed.push(usable ? (ended - before.ended) / seconds : null);
    if (bands !== null) this.recent.add(now / 1000, stats.since, bands);
    this.add_waits(bands);
    this.trim();
  }

  private add_waits(bands: Band[] | null): void {
    const length = this.time.length;
    for (const [place, band] of (bands ?? []).slice(0, MOST_BANDS).entries()) {
      const key = segment_of(band, "name") ?? "";
      if (this.waits.has(key) || this.recent.of(key) === null) continue;
      this.waits.set(key, { place, p50: Array(length - 1).fill(undefined),
        p95: Array(length - 1).fill(undefined) });
    }
    for (const [key, wait] of this.waits) {
      const recent = bands === null ? undefined : this.recent.of(key);
      wait.p50.push(recent ? recent.p50 / 1000 : recent);
      wait.p95.push(recent ? recent.p95 / 1000 : recent);
    }
  }

  private trim(): void {
    if (this.time.length <= MOST_SAMPLES) return;
    for (const list of [this.time, this.depth, this.active, this.added, this.completed,
      ...[...this.waits.values()].flatMap((wait) => [wait.p50, wait.p95])]) {
      list.shift();
    }
  }
}

const all = new Map<string, Series>();

export function series_of(db: number, queue: string): Series {
  const key = `${db} ${queue}`;
  let series = all.get(key);
  if (!series) {
    series = new Series();
    all.set(key, series);
    if (all.size > MOST_QUEUES) all.delete(all.keys().next().value!);
  }
  return series;
}
