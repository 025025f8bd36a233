// How long the recently started jobs waited.
//
// The server's distributions count since its statistics began, so after a million jobs a stall does
// not change their quantiles. Therefore their buckets are sampled, and the difference of two
// samples is used.
import { segment_of } from "./bytes";
import type { Band, Bucket } from "./types";

// Jobs started within this time are used. A longer stall shows at once, in full.
export const WINDOW_S = 5;
// Samples further apart than this are not compared.
const MOST_S = 4 * WINDOW_S;

export interface Wait {
  // Number of started jobs. If 0, the quantiles are the time that the first job has waited so far.
  started: number;
  p50: number;
  p95: number;
}

interface Sample {
  at: number;
  bands: Map<string, Bucket[]>;
}

// The least value that at least this share of the values does not exceed.
function quantile(buckets: readonly Bucket[], count: number, share: number): number {
  let left = Math.max(1, Math.ceil(share * count));
  for (const [most, held] of buckets) {
    left -= held;
    if (left <= 0) return most;
  }
  return 0;
}

function wait_of(buckets: readonly Bucket[]): Wait {
  const started = buckets.reduce((sum, [, held]) => sum + held, 0);
  return { started, p50: quantile(buckets, started, 0.5), p95: quantile(buckets, started, 0.95) };
}

function difference(now: readonly Bucket[], before: readonly Bucket[]): Bucket[] {
  const held = new Map(before);
  return now.map(([most, count]): Bucket => [most, count - (held.get(most) ?? 0)])
    .filter(([, count]) => count > 0);
}

export class WaitWindow {
  private samples: Sample[] = [];
  private since: number | null = null;
  private waits = new Map<string, Wait>();
  private whole: Wait | null = null;
  // Whether two samples have been compared: what was started in between is known.
  known = false;

  // `at`: seconds of any clock; `since`: when the statistics began.
  add(at: number, since: number, bands: readonly Band[]): void {
    if (since !== this.since) this.samples = [];
    this.since = since;
    const sample = { at, bands: new Map(bands.map((band): [string, Bucket[]] =>
      [segment_of(band, "name") ?? "", band.wait_buckets ?? []])) };
    // The first sample is the newest one outside the window, or a younger one if none is that old.
    while (this.samples.length > 1 && this.samples[1].at <= at - WINDOW_S) this.samples.shift();
    while (this.samples.length > 0 && this.samples[0].at < at - MOST_S) this.samples.shift();
    this.compute(sample, bands);
    this.samples.push(sample);
  }

  private compute(sample: Sample, bands: readonly Band[]): void {
    this.waits.clear();
    this.whole = null;
    const first = this.samples[0];
    this.known = first !== undefined;
    if (!first) return;
    const all: Bucket[] = [];
    for (const band of bands) {
      const key = segment_of(band, "name") ?? "";
      const came = difference(sample.bands.get(key) ?? [], first.bands.get(key) ?? []);
      all.push(...came);
      if (came.length > 0) this.waits.set(key, wait_of(came));
      else if (waits(band)) this.waits.set(key, still(band.oldest_ms ?? 0));
    }
    const oldest = Math.max(0, ...bands.map((band) => band.pending ? band.oldest_ms ?? 0 : 0));
    if (all.length > 0) this.whole = wait_of(all.sort(([a], [b]) => a - b));
    else if (bands.some(waits)) this.whole = still(oldest);
  }

  // In milliseconds; null: unknown, or nothing started and nothing waits.
  of(band: string): Wait | null {
    return this.waits.get(band) ?? null;
  }

  // For all bands together.
  of_all(): Wait | null {
    return this.whole;
  }
}

// Whether a job waits, and since when it does. Scores of plain Redis keys may be no times.
function waits(band: Band): boolean {
  return band.pending > 0 && band.oldest_ms !== null;
}

function still(ms: number): Wait {
  return { started: 0, p50: ms, p95: ms };
}
