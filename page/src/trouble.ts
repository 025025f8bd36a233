// What is wrong with a queue, and which queue an operator should look at first.
import { plural } from "./format";
import { series_of } from "./history";
import type { QueueLine, Stats } from "./types";
import { name_of } from "./bytes";

export interface Trouble {
  kind: "failed" | "full" | "paused" | "idle";
  words: string;
}

export const PAUSED: Record<string, string> = { in: "paused: accepts no jobs",
  out: "paused: hands out no jobs", all: "paused" };

export function failed_lately(db: number, line: QueueLine): number {
  return series_of(db, name_of(line)).failed_lately(line.stats);
}

// It is not known which clients take the members of plain Redis keys.
export function lacks_worker(stats: Stats): boolean {
  return stats.pending > 0 && stats.active === 0 && stats.waiting_pops === 0 && !stats.adopted;
}

function is_full({ stats, max_waiting = 0, max_total = 0 }: QueueLine): boolean {
  return (max_waiting > 0 && stats.waiting >= max_waiting)
    || (max_total > 0 && stats.waiting + stats.active >= max_total);
}

export function trouble_of(db: number, line: QueueLine): Trouble[] {
  const { stats, paused = "none" } = line;
  const failed = failed_lately(db, line);
  const found: Trouble[] = [];
  if (failed > 0) {
    found.push({ kind: "failed", words: `${plural(failed, "failure")} in the last hour` });
  }
  if (is_full(line)) found.push({ kind: "full", words: "full" });
  if (PAUSED[paused]) found.push({ kind: "paused", words: PAUSED[paused] });
  const out = paused === "out" || paused === "all";
  if (lacks_worker(stats) && !out) {
    found.push({ kind: "idle", words: "no worker" });
  }
  return found;
}

// Waits that differ by less than a factor of four count as equal, so that lines do not jump.
function age_class(oldest_ms: number | null): number {
  if (oldest_ms === null || oldest_ms < 1000) return 0;
  return 1 + Math.floor(Math.log2(oldest_ms / 1000) / 2);
}

// Failing queues first, then those without a worker, the longest waits, paused ones, full ones.
export function by_trouble(db: number): (a: QueueLine, b: QueueLine) => number {
  const rank = new Map<QueueLine, number[]>();
  const rank_of = (line: QueueLine) => {
    let known = rank.get(line);
    if (known === undefined) {
      const kinds = new Set(trouble_of(db, line).map(({ kind }) => kind));
      known = [Number(kinds.has("failed")), Number(kinds.has("idle")),
        age_class(line.stats.oldest_ms), Number(kinds.has("paused")), Number(kinds.has("full"))];
      rank.set(line, known);
    }
    return known;
  };
  return (a, b) => {
    const [left, right] = [rank_of(a), rank_of(b)];
    const at = left.findIndex((value, index) => value !== right[index]);
    return at < 0 ? 0 : right[at] - left[at];
  };
}
