// Bee-Queue as its users use it.
"use strict";
const check = require("./check");
const Queue = require(process.env.LIBRARY);

const { equal, waitUntil } = check;
const retry_strategy = ({ attempt }) => Math.min(20 * attempt, 500);
const open = (name, options) => {
  const queue = new Queue(name, { redis: { ...check.address, retry_strategy }, ...options });
  queue.on("error", () => {});
  return queue;
};
const outcome = (job) => new Promise((resolve, reject) => {
  job.on("succeeded", resolve).on("failed", reject);
});

async function results() {
  const queue = open("results", { activateDelayedJobs: true });
  const progress = [];
  const tries = {};
  queue.process(3, async (job) => {
    job.reportProgress({ page: 1 });
    tries[job.data.n] = (tries[job.data.n] ?? 0) + 1;
    if (job.data.n === -1) throw new Error("broken");
    if (job.data.n === -2 && tries[-2] < 3) throw new Error("not yet");
    return { doubled: job.data.n * 2, text: "grüße\u0000" };
  });
  const first = queue.createJob({ n: 4 });
  first.on("progress", (what) => progress.push(what));
  const ended = outcome(first);
  await first.save();
  equal(await ended, { doubled: 8, text: "grüße\u0000" });
  await waitUntil(() => progress.length === 1, "the progress");
  equal(progress, [{ page: 1 }]);
  const bad = queue.createJob({ n: -1 });
  const failure = outcome(bad);
  await bad.save();
  await check.fails("broken", () => failure);
  const twice = queue.createJob({ n: -2 }).retries(3).backoff("fixed", 20);
  const mended = outcome(twice);
  await twice.save();
  equal((await mended).doubled, -4);
  const many = Array.from({ length: 100 }, (_, n) => queue.createJob({ n }));
  const ends = many.map(outcome);
  equal((await queue.saveAll(many)).size, 0);
  equal((await Promise.all(ends)).map((each) => each.doubled), many.map((_, n) => n * 2));
  const begun = Date.now();
  const soon = queue.createJob({ n: 9 }).delayUntil(Date.now() + 400);
  const later = outcome(soon);
  await soon.save();
  equal((await later).doubled, 18);
  check.require(Date.now() - begun >= 400, "the delayed job ran early");
  const counts = await queue.checkHealth();
  equal([counts.waiting, counts.active, counts.failed, counts.succeeded], [0, 0, 1, 103]);
  equal((await queue.getJobs("failed", { size: 9 })).map((job) => job.id), [bad.id]);
  await queue.removeJob(bad.id);
  equal((await queue.checkHealth()).failed, 0);
  await queue.destroy();
  await queue.close(0);
}

/**
 * The server dies while jobs are added and worked on: each that was acknowledged succeeds.
 * Bee-Queue loads its scripts when a queue is made, and a server that starts again has none: the
 * program makes its queues anew, as it would by being started again.
 */
async function kill() {
  const options = { stallInterval: 1000, removeOnSuccess: false, getEvents: false };
  const runs = {};
  const queues = [];
  let queue;
  const begin = async () => {
    queue = open("kill", { ...options, isWorker: false });
    const worker = open("kill", options);
    await Promise.all([queue.ready(), worker.ready(), worker.checkStalledJobs(500)]);
    worker.process(5, async (job) => {
      await check.sleep(2);
      runs[job.data.n] = (runs[job.data.n] ?? 0) + 1;
    });
    queues.push(queue, worker);
  };
  const killAndBegin = async () => {
    await check.killServer();
    for (const old of queues.splice(0)) old.close(100).catch(() => {});
    await check.insist(begin);
  };
  await begin();
  const killed = [];
  for (let n = 0; n < 300; n++) {
    await check.insist(() => queue.createJob({ n }).setId(`job-${n}`).save());
    if (n === 100 || n === 200) {
      await Promise.all(killed);
      killed.push(killAndBegin());
    }
  }
  await Promise.all(killed);
  const all = Array.from({ length: 300 }, (_, n) => n);
  await waitUntil(() => all.every((n) => runs[n]), "every job's run");
  await waitUntil(async () => (await queue.checkHealth()).succeeded === 300, "every job's end");
}

check.play({ results, kill });
