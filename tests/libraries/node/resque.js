// node-resque as its users use it.
"use strict";
const Redis = require("ioredis");
const check = require("./check");
const { Queue, Scheduler, Worker } = require(process.env.LIBRARY);

const { equal, waitUntil } = check;
const connection = () => {
  const redis = new Redis({ ...check.address, maxRetriesPerRequest: null });
  redis.on("error", () => {});
  return { redis, namespace: "resque" };
};
const runs = {};
const jobs = {
  add: { perform: async (a, b) => a + b },
  count: { perform: async (n) => { runs[n] = (runs[n] ?? 0) + 1; } },
  fails: { perform: async () => { throw new Error("broken"); } },
};

async function open() {
  const queue = new Queue({ connection: connection() }, jobs);
  queue.on("error", () => {});
  await queue.connect();
  return queue;
}

async function begin(Kind, options = {}) {
  const part = new Kind({ connection: connection(), timeout: 20, ...options }, jobs);
  part.on("error", () => {});
  await part.connect();
  await part.start();
  return part;
}

async function results() {
  const queue = await open();
  const ended = [];
  for (const n of [1, 2, 3]) await queue.enqueue("math", "add", [n, 10]);
  await queue.enqueue("math", "fails", []);
  equal(await queue.length("math"), 4);
  equal(await queue.del("math", "add", [2, 10]), 1);
  const worker = await begin(Worker, { queues: ["math"] });
  worker.on("success", (_queue, job, result) => ended.push([job.args[0], result]));
  await waitUntil(async () => ended.length === 2 && await queue.failedCount() === 1, "the jobs");
  equal(ended, [[1, 11], [3, 13]]);
  const [failed] = await queue.failed(0, -1);
  equal([failed.error, failed.payload.class], ["broken", "fails"]);
  equal(await queue.removeFailed(failed), 1);
  check.require(Object.values(await queue.workers()).includes("math"), "the worker is listed");
  await worker.end();
  equal(await queue.workers(), {});
  await queue.end();
}

async function delayed() {
  const queue = await open();
  const worker = await begin(Worker, { queues: ["later"] });
  const scheduler = await begin(Scheduler);
  const begun = Date.now();
  // It counts in seconds, and rounds.
  await queue.enqueueIn(2000, "later", "count", ["soon"]);
  await queue.enqueueIn(3600000, "later", "count", ["never"]);
  await waitUntil(() => runs.soon, "the delayed job");
  check.require(Date.now() - begun >= 1000, "it ran early");
  equal((await queue.scheduledAt("later", "count", ["never"])).length, 1);
  equal((await queue.delDelayed("later", "count", ["never"])).length, 1);
  for (const part of [scheduler, worker, queue]) await part.end();
}

/**
 * Jobs that were taken in before the server died, or while it came back, run when it is back, the
 * delayed one too. Whose reply was lost may be there twice.
 */
async function kill() {
  const queue = await open();
  await queue.enqueueIn(1000, "kill", "count", ["late"]);
  let killed;
  for (let n = 0; n < 200; n++) {
    if (n === 100) killed = check.killServer();
    await check.insist(() => queue.enqueue("kill", "count", [n]));
  }
  await killed;
  const parts = [await begin(Worker, { queues: ["kill"] }), await begin(Scheduler)];
  const all = ["late", ...Array.from({ length: 200 }, (_, n) => n)];
  await waitUntil(() => all.every((n) => runs[n]), "every job's run");
  equal(await queue.length("kill"), 0);
  for (const part of [...parts, queue]) await part.end();
}

check.play({ results, delayed, kill });
