// The past of each queue: what the server keeps of the last hour and day, and what this page has
// seen since. The data of the charts.
import { ApiError, queue_path, request } from "./api";
import type { QueueRef } from "./api";
import { segment_of, segment_of_name } from "./bytes";
import type { Band, Stats } from "./types";
import type { Wait } from "./waits";
import { WaitWindow } from "./waits";

// An own sample a second, for a little longer than the server's are read anew.
const MOST_SAMPLES = 150;
// What these certainly span.
const OWN_S = 120;
// The server looks at each queue some times within this.
const NEW_MS = 60_000;
// In a small chart, where the server keeps no history.
const SHOWN_SAMPLES = 60;
const MOST_QUEUES = 1200;
// Answers may overtake each other by less than this.
const BACK_S = 5;
// After a longer silence nothing is known of the time between.
const SILENT_S = 30;
// A server takes requests of 8 KB.
const MOST_QUERY = 6000;
export const MOST_BANDS = 8;
// The list of queues reads no more.
const MOST_LINES = 1000;

export type Range = "hour" | "day";
export type Values = (number | null | undefined)[];

type KeptWaits = Record<"waiting" | "wait_p50_ms" | "wait_p95_ms", (number | null)[]>;

// GET …/history. null: not known.
export interface Past {
  range: Range;
  step_ms: number;
  start_ms: number;
  // The older part of it was given up for other queues.
  reduced: boolean;
  series: KeptWaits & Record<"added" | "ended" | "failed" | "active", (number | null)[]>;
  bands?: Record<string, KeptWaits>;
}

// A line of GET /api/v1/history.
export interface Hour {
  waiting: (number | null)[];
  ended: (number | null)[];
  failed: (number | null)[];
  reduced?: boolean;
}

export interface Waits {
  // The band's index by urgency, which selects its colour; null: of all bands.
  place: number | null;
  waiting: Values;
  // Seconds; null: nothing started and nothing waited, undefined: not known.
  p50: Values;
  p95: Values;
}

// What a chart draws: values along one time axis, in seconds.
export interface Lines {
  time: number[];
  waiting: Values;
  active: Values;
  // A second.
  added: Values;
  ended: Values;
  failed: Values;
  waits: Map<string, Waits>;
}

interface Totals {
  at: number;
  added: number;
  completed: number;
  failed: number;
}

// A segment, as the names of bands are.
const ALL_BANDS = "all%20bands";

const FLOWS = ["added", "completed", "failed"] as const;

function totals_of(stats: Stats, at: number): Totals {
  return { at, added: stats.added, failed: stats.failed,
    completed: stats.completed + stats.failed + stats.cancelled + stats.expired };
}

export class Series {
  private time: number[] = [];
  private waiting: Values = [];
  private active: Values = [];
  private flows: Record<"added" | "completed" | "failed", Values> =
    { added: [], completed: [], failed: [] };
  // By the band's segment, along `time`.
  private waits = new Map<string, Waits>();
  private readonly wait_of_all: Waits = { place: null, waiting: [], p50: [], p95: [] };
  readonly recent = new WaitWindow();
  private totals: Totals | null = null;
  private past: Past | null = null;
  // Up to when the server knew nothing, in milliseconds; and when its statistics began.
  private nothing_until: number | null = null;
  private since_ms = Infinity;
  private hour: Hour | null = null;
  // The failed jobs of the server's last hour, and of all time at its end; null: when the queue was
  // seen first.
  private failed_kept = 0;
  private failed_before: number | null = null;

  // `now`: when the server counted them. When they arrive is another time: two answers may come at
  // once that were counted seconds apart.
  add(stats: Stats, bands: Band[] | null, now: number): void {
    const last = this.time.at(-1);
    const since = last === undefined ? 0 : now / 1000 - last;
    // The server's clock was set back, or the server knows what this page has not seen.
    if (since < -BACK_S || (since > SILENT_S && this.past !== null)) this.forget();
    else if (since > SILENT_S) this.add_gap(last!);
    // Points closer than this cannot be told apart.
    if (this.time.length > 0 && now / 1000 - this.time.at(-1)! < 0.4) return;
    const totals = totals_of(stats, now);
    const before = this.totals;
    const seconds = before ? (now - before.at) / 1000 : 0;
    const usable = before !== null && seconds < SILENT_S && FLOWS.every((flow) =>
      totals[flow] >= before[flow]);
    this.totals = totals;
    this.since_ms = stats.since;
    this.failed_before ??= stats.failed;
    this.time.push(now / 1000);
    this.waiting.push(stats.waiting);
    this.active.push(stats.active);
    for (const flow of FLOWS) {
      this.flows[flow].push(usable ? (totals[flow] - before[flow]) / seconds
        : before === null ? undefined : null);
    }
    if (bands !== null) this.recent.add(now / 1000, stats.since, bands);
    this.add_waits(bands);
    this.trim();
  }

  // All that is kept along `time`.
  private get values(): Values[] {
    return [this.waiting, this.active, ...Object.values(this.flows),
      ...[...this.waits.values(), this.wait_of_all].flatMap((wait) =>
        [wait.waiting, wait.p50, wait.p95])];
  }

  // Charts draw no line over it.
  private add_gap(after: number): void {
    this.time.push(after + 1);
    for (const list of this.values) list.push(null);
  }

  private add_waits(bands: Band[] | null): void {
    const length = this.time.length;
    for (const [place, band] of (bands ?? []).slice(0, MOST_BANDS).entries()) {
      const key = segment_of(band, "name") ?? "";
      if (this.waits.has(key) || (this.recent.of(key) === null && band.waiting === 0)) continue;
      const before = (): Values => Array(length - 1).fill(undefined);
      this.waits.set(key, { place, waiting: before(), p50: before(), p95: before() });
    }
    const waiting = new Map(bands?.map((band): [string, number] =>
      [segment_of(band, "name") ?? "", band.waiting]));
    const known = bands !== null && this.recent.known;
    const push = (wait: Waits, number: number | undefined, recent: Wait | null) => {
      wait.waiting.push(number);
      for (const part of ["p50", "p95"] as const) {
        wait[part].push(known ? recent && recent[part] / 1000 : undefined);
      }
    };
    for (const [key, wait] of this.waits) push(wait, waiting.get(key), this.recent.of(key));
    push(this.wait_of_all, this.waiting.at(-1)!, this.recent.of_all());
  }

  private forget(): void {
    for (const list of [this.time, ...this.values]) list.length = 0;
    this.waits.clear();
    this.totals = null;
  }

  private trim(): void {
    // A gap is a sample more.
    const surplus = this.time.length - MOST_SAMPLES;
    if (surplus <= 0) return;
    for (const list of [this.time, ...this.values]) list.splice(0, surplus);
  }

  // Jobs added or ended a second: in the last moments, else in the last minute.
  rate_of(flow: "added" | "completed", stats: Stats): number {
    return this.flows[flow].at(-1) ?? stats.rates[flow];
  }

  // --- Of the server ---

  set_hour(hour: HourLine, stats: Stats): void {
    this.hour = hour;
    this.set_failed(hour, stats);
  }

  set_failed(hour: HourLine, stats: Stats): void {
    this.failed_kept = hour.failed.reduce<number>((sum, value) => sum + (value ?? 0), 0);
    this.failed_before = hour.failed_total ?? stats.failed;
  }

  // In the last hour; without the server's history, while the page was open.
  failed_lately(stats: Stats): number {
    return Math.round(this.failed_kept)
      + Math.max(0, stats.failed - (this.failed_before ?? stats.failed));
  }

  // Whether hour_of() is the server's hour, a value a minute.
  get has_hour(): boolean {
    return this.hour !== null;
  }

  hour_of(stats: Stats): Hour {
    if (this.hour) return { ...this.hour, waiting: [...this.hour.waiting, stats.waiting] };
    const own = (values: Values): (number | null)[] => {
      const last = values.slice(-SHOWN_SAMPLES).map((value) => value ?? null);
      return [...Array<null>(SHOWN_SAMPLES - last.length).fill(null), ...last];
    };
    const minute = (values: Values) => own(values).map((value) => value === null ? null
      : value * 60);
    return { waiting: own(this.waiting), ended: minute(this.flows.completed),
      failed: minute(this.flows.failed) };
  }

  // null: the server keeps none, or not for this user; what was read before is still known.
  set_past(past: Past | null): void {
    if (past !== null) this.past = past;
    const known = this.past?.series.waiting.some((value) => value !== null) === true;
    const length = this.past?.series.waiting.length ?? 0;
    this.nothing_until = known ? null : past === null ? Infinity
      : past.start_ms + past.step_ms * length;
  }

  // The last hour where the server keeps it, else what this page has seen itself. Of a new queue
  // there is nothing yet.
  get kept_span_s(): number {
    return this.nothing_until !== null && this.since_ms < this.nothing_until - NEW_MS ? OWN_S
      : 3600;
  }

  get range(): Range {
    return this.past?.range ?? "hour";
  }

  get reduced(): boolean {
    return this.past?.reduced === true;
  }

  // The same of the server's hour.
  get hour_reduced(): boolean {
    return this.hour?.reduced === true;
  }

  // The server's values up to the first own sample, then the own ones. `bands`: in their order; the
  // server keeps none of a day.
  lines(bands: readonly string[]): Lines {
    const { past } = this;
    const from = this.time[0] ?? Infinity;
    const step = past?.step_ms ?? 1;
    const before: number[] = [];
    const length = past?.series.waiting.length ?? 0;
    // A new queue's charts begin with the queue.
    const first = past?.series.waiting.findIndex((value) => value !== null) ?? -1;
    const second_of = (n: number) => (past!.start_ms + n * step) / 1000;
    let n = first;
    for (; n >= 0 && n < length && second_of(n + 1) <= from; ++n) before.push(second_of(n));
    // The server's values were read before a silence.
    if (before.length > 0 && this.time.length > 0 && from - second_of(n) > SILENT_S) {
      before.push(second_of(n));
    }
    const joined = (kept: (number | null)[] | undefined, own: Values, scale = 1): Values =>
      [...before.map((_, n) => {
        const value = kept?.[first + n];
        return value === null || value === undefined ? null : value * scale;
      }), ...own];
    const second = 1000 / step;
    const kept = past?.series;
    return { time: [...before, ...this.time], waiting: joined(kept?.waiting, this.waiting),
      active: joined(kept?.active, this.active),
      added: joined(kept?.added, this.flows.added, second),
      ended: joined(kept?.ended, this.flows.completed, second),
      failed: joined(kept?.failed, this.flows.failed, second),
      waits: this.joined_waits(bands, joined) };
  }

  private joined_waits(bands: readonly string[],
                       joined: (kept: (number | null)[] | undefined, own: Values,
                                scale: number) => Values): Map<string, Waits> {
    const waits = new Map<string, Waits>();
    const unknown: Values = this.time.map(() => undefined);
    const add = (name: string, place: number | null, kept?: KeptWaits, own?: Waits) =>
      waits.set(name, { place, waiting: joined(kept?.waiting, own?.waiting ?? unknown, 1),
        p50: joined(kept?.wait_p50_ms, own?.p50 ?? unknown, 0.001),
        p95: joined(kept?.wait_p95_ms, own?.p95 ?? unknown, 0.001) });
    if (this.range === "day") return add(ALL_BANDS, null, this.past!.series, this.wait_of_all);
    const kept = new Map(Object.keys(this.past?.bands ?? {}).map((name) =>
      [segment_of_name(name), this.past!.bands![name]]));
    for (const [place, band] of bands.slice(0, MOST_BANDS).entries()) {
      const own = this.waits.get(band);
      const past = kept.get(band);
      if (own || past) add(band, place, past, own);
    }
    return waits;
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

// --- Requests ---

// The history may be turned off (history-memory 0), or not be for this user.
async function if_kept<T>(path: string, signal: AbortSignal): Promise<T | null> {
  try {
    return await request<T>(path, { signal });
  } catch (error) {
    if (error instanceof ApiError && error.status < 500) return null;
    throw error;
  }
}

export async function ask_past(ref: QueueRef, range: Range, signal: AbortSignal): Promise<void> {
  const past = await if_kept<Past>(queue_path(ref, "/history", { range }), signal);
  series_of(ref.db, ref.queue).set_past(past && { ...past, range });
}

interface HourLine extends Hour {
  // The failed jobs of all time, up to its end; null: not known.
  failed_total: number | null;
  queue: string | null;
  queue_base64?: string;
}

async function ask_lines(db: number, query: string[], queues: Map<string, Stats>,
                         take: (series: Series, line: HourLine, stats: Stats) => void,
                         signal: AbortSignal): Promise<void> {
  const path = `/api/v1/history?${query.join("&")}${db ? `&db=${db}` : ""}`;
  const answer = await if_kept<{ queues: HourLine[] }>(path, signal);
  for (const line of answer?.queues ?? []) {
    const queue = segment_of(line, "queue") ?? "";
    const stats = queues.get(queue);
    if (stats) take(series_of(db, queue), line, stats);
  }
}

// The last hour of these queues, a value a minute.
export async function ask_hours(db: number, queues: Map<string, Stats>,
                                signal: AbortSignal): Promise<void> {
  for (const names of portions([...queues.keys()].map((queue) => `queue=${queue}`))) {
    await ask_lines(db, ["points=60", ...names], queues,
      (series, line, stats) => series.set_hour(line, stats), signal);
  }
}

// Each part is for one request.
function portions(words: string[]): string[][] {
  const all: string[][] = [];
  let left = 0;
  for (const word of words) {
    if (word.length > left) {
      all.push([]);
      left = MOST_QUERY;
    }
    all.at(-1)!.push(word);
    left -= word.length;
  }
  return all;
}

// How many jobs of all queues failed in the last hour.
export async function ask_failed(db: number, queues: Map<string, Stats>,
                                 signal: AbortSignal): Promise<void> {
  await ask_lines(db, ["points=1", `count=${MOST_LINES}`], queues,
    (series, line, stats) => series.set_failed(line, stats), signal);
}
