// The lines of charts: what the server knows, what this page has seen, and the gaps between.
import { strict as assert } from "node:assert";
import { sources } from "./sources.mjs";

const { Series } = await sources("history");

const counts = (waiting) => ({ waiting, active: 0, added: waiting, completed: 0, failed: 0,
  cancelled: 0, expired: 0, since: 0 });

// Seconds to what waited; null is a gap.
function line(series) {
  const { time, waiting } = series.lines([]);
  assert.equal(time.length, waiting.length);
  for (let n = 1; n < time.length; ++n) assert(time[n] > time[n - 1], time.join());
  return time.map((at, n) => [at, waiting[n]]);
}

// 12 values of 5 s each, up to `end`.
function past(end, waiting) {
  const values = Array(12).fill(waiting);
  return { range: "hour", step_ms: 5000, start_ms: (end - 60) * 1000, reduced: false,
    series: { added: values, ended: values, failed: values, waiting: values, active: values,
      wait_p50_ms: values, wait_p95_ms: values } };
}

// Without the server's history there is a gap where the page did not look.
const alone = new Series();
for (const at of [1000, 1001, 1600]) alone.add(counts(1), null, at * 1000);
assert.deepEqual(line(alone), [[1000, 1], [1001, 1], [1002, null], [1600, 1]]);

// However long the page is open, and however seldom it looks, it keeps the newest samples only.
const seldom = new Series();
const bands = [{ name: "NORMAL", wait_buckets: [] }];
for (let n = 0; n < 400; ++n) seldom.add(counts(n), bands, (1000 + 40 * n) * 1000);
assert.equal(line(seldom).length, 150);
assert.deepEqual(line(seldom).at(-1), [1000 + 40 * 399, 399]);

// With it the server's values are shown there, not the own ones before.
const known = new Series();
known.set_past(past(1000, 3));
for (const at of [1000, 1001]) known.add(counts(1), null, at * 1000);
assert.deepEqual(line(known).slice(-3), [[995, 3], [1000, 1], [1001, 1]]);
known.set_past(past(1600, 900));
known.add(counts(2), null, 1_600_000);
assert.deepEqual(line(known), [...Array.from({ length: 12 }, (_, n) => [1540 + 5 * n, 900]),
  [1600, 2]]);
// The waits of a day are one line for all bands; in an hour each band has its own.
const kept = past(1000, 3);
const band = (held) => [{ name: "LOW", waiting: 0, pending: 0, oldest_ms: null,
  wait_buckets: [[4000, held]] }];
for (const [range, name] of [["day", "all%20bands"], ["hour", "LOW"]]) {
  const series = new Series();
  series.set_past({ ...kept, range, series: { ...kept.series, wait_p50_ms: Array(12).fill(50),
    wait_p95_ms: Array(12).fill(2000) },
  ...(range === "hour" && { bands: { LOW: { waiting: Array(12).fill(0),
    wait_p50_ms: Array(12).fill(50), wait_p95_ms: Array(12).fill(2000) } } }) });
  for (const at of [1000, 1001]) series.add(counts(0), band(at - 1000), at * 1000);
  const { time, waits } = series.lines(["LOW"]);
  assert.deepEqual([...waits.keys()], [name]);
  const { p50, p95 } = waits.get(name);
  assert.equal(p95.length, time.length);
  assert.deepEqual([p50.at(-3), p95.at(-3)], [0.05, 2]);
  assert.deepEqual([p50.at(-1), p95.at(-1)], [4, 4]);
}
// A small chart spans an hour, also of a queue that is too new to be known; where the server keeps
// nothing it spans what the page has seen.
for (const [waiting, made, span] of [[3, 0, 3600], [null, 995, 3600], [null, 0, 120]]) {
  const series = new Series();
  series.set_past(past(1000, waiting));
  series.add({ ...counts(1), since: made * 1000 }, null, 1_000_000);
  assert.equal(series.kept_span_s, span);
}
// Those that were read before the silence end in a gap.
known.add(counts(2), null, 1_700_000);
assert.deepEqual(line(known).slice(-3), [[1595, 900], [1600, null], [1700, 2]]);
