// Which of many queues is shown first.
import { strict as assert } from "node:assert";
import { sources } from "./sources.mjs";

const { by_trouble, name_of, series_of, trouble_of } = await sources("bytes", "history",
  "trouble");

const DB = 3;

// A queue without trouble, but for what is given.
const queue = (name, { failed = 0, stats = {}, ...rest } = {}) => {
  const line = { name, db: DB, stats: { waiting: 0, active: 1, pending: 0, waiting_pops: 0,
    oldest_ms: null, failed, ...stats }, ...rest };
  // It had no failure when the page saw it first.
  series_of(DB, name_of(line)).set_failed({ failed: [], failed_total: 0 }, line.stats);
  return line;
};
const waits = (oldest_ms) => ({ waiting: 1, pending: 1, oldest_ms });

const ordered = [
  queue("fails and is full", { failed: 1, max_waiting: 1, stats: waits(90_000) }),
  queue("fails and waits", { failed: 1, stats: waits(90_000) }),
  queue("fails much", { failed: 500 }),
  queue("no worker", { stats: { ...waits(2000), active: 0 } }),
  queue("oldest, an hour", { stats: waits(3_600_000) }),
  queue("a minute, paused and full", { paused: "in", max_total: 2, stats: waits(60_000) }),
  queue("a minute, paused", { paused: "in", stats: waits(60_000) }),
  queue("a minute, full", { max_total: 2, stats: waits(60_000) }),
  queue("a minute", { stats: waits(60_000) }),
  // Its jobs wait for the end of the pause, and not for a worker.
  queue("paused, without a worker", { paused: "out", stats: { ...waits(1500), active: 0 } }),
  queue("paused", { paused: "all" }),
  queue("full", { max_waiting: 5, stats: { waiting: 5 } }),
  queue("nothing", { max_waiting: 6, stats: { waiting: 5 } }),
];
const order = by_trouble(DB);
for (const [n, first] of ordered.entries()) {
  for (const second of ordered.slice(n + 1)) {
    assert(order(first, second) < 0, `${first.name} before ${second.name}`);
    assert(order(second, first) > 0, `${second.name} after ${first.name}`);
  }
}
// Waits that differ by less than a factor of four keep their order by name.
assert.equal(order(queue("a", { stats: waits(20_000) }), queue("b", { stats: waits(50_000) })), 0);
assert.deepEqual(trouble_of(DB, ordered[0]).map(({ words }) => words),
  ["1 failure in the last hour", "full"]);
