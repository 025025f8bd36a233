// What docs/moving/grading-queue.md says happens.
import { connect, equal, play, url, waitUntil } from "./check";
import { GradingQueue, gradingWorker } from "./service";

const job = (key: string, owner: string, priority = 0) => (
  { key, collation: { type: owner.split(".")[0], id: owner.split(".")[1] }, priority });

play(async () => {
  const client = connect();
  const queue = new GradingQueue(url);
  await queue.configure();
  for (const [key, owner] of [["a1", "user.1"], ["b1", "user.2"], ["a2", "user.1"],
    ["c1", "team.3"]]) {
    equal((await queue.createOrUpdate(job(key, owner))).outcome, "added");
  }
  equal((await queue.createOrUpdate(job("d1", "user.4", 60000))).position, 4);
  equal((await queue.createOrUpdate(job("d1", "user.4", 120000))).outcome, "updated");
  equal((await queue.createOrUpdateImmediate(job("c1", "team.3"))).position, 0);
  // A job that would be due in ten minutes is immediate from now on, and not overtaken.
  await queue.createOrUpdate(job("late", "user.7", 600000));
  equal((await queue.createOrUpdateImmediate(job("late", "user.7"))).position, 1);
  await queue.createOrUpdateImmediate(job("now", "user.8"));
  equal((await queue.createOrUpdateImmediate(job("late", "user.7"))).position, 1);
  equal(await queue.remove("late"), "cancelled");
  equal(await queue.remove("now"), "cancelled");
  await queue.createOrUpdate(job("e1", "user.5"));
  equal(await queue.release("d1"), 0);
  equal(await queue.delay("b1"), 5);
  equal(await queue.remove("e1"), "cancelled");
  equal(await queue.status(), { waiting: 5, grading: 0,
    byPriority: { CRITICAL: 2, HIGH: 0, NORMAL: 3, LOW: 0, BACKGROUND: 0 } });

  // A worker that is told to stop gives its job back, and another one grades all.
  let started = false;
  const first = gradingWorker(url, "grade", (_job, { signal }) => {
    started = true;
    return new Promise((_resolve, reject) =>
      signal.addEventListener("abort", () => reject(signal.reason)));
  });
  const stopped = first.run();
  await waitUntil(async () => started, "the first run");
  equal((await queue.status()).grading, 1);
  await first.stop();
  await stopped;
  equal((await queue.status()).grading, 0);

  const order: string[] = [];
  const leases: number[] = [];
  const second = gradingWorker(url, "grade", async ({ payload, lease }) => {
    order.push(payload.key);
    leases.push(lease);
    if (payload.key === "a2") throw new Error("its tests do not compile");
    return "A";
  });
  const grading = second.run();
  await waitUntil(async () => {
    const { waiting, grading: active } = await queue.status();
    return order.length === 5 && waiting === 0 && active === 0;
  }, "the last job");
  await second.stop();
  await grading;
  equal(order, ["d1", "c1", "a2", "a1", "b1"]);
  equal(leases, [...leases].sort((a, b) => a - b));
  equal(await queue.status(), { waiting: 0, grading: 0,
    byPriority: { CRITICAL: 0, HIGH: 0, NORMAL: 0, LOW: 0, BACKGROUND: 0 } });
  equal(await client.call("Q.LIST", "grade", "WHERE", "STATE", "failed")
    .then((reply: any) => reply[1].length), 1);
});
