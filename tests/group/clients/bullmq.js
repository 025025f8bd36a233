// BullMQ by Sentinel: adds jobs and runs them until it is enough; what was acknowledged is done.
"use strict";
const { begin, enough, group, insist, play, sentinels, sleep, tell, waitUntil } =
  require("./until_enough");
const { Queue, Worker } = require(process.env.LIBRARY);

const connection = { sentinels, name: group, maxRetriesPerRequest: null };
const quiet = () => {};
const MOST_WAITING = 1000;

play(async () => {
  const queue = new Queue("work", { connection });
  queue.on("error", quiet);
  const runs = new Map();
  const options = { connection, concurrency: 5, lockDuration: 2000, stalledInterval: 500,
    maxStalledCount: 1000 };
  for (let n = 0; n < 2; n++) {
    new Worker("work", async (job) => {
      await sleep(1);
      runs.set(job.id, (runs.get(job.id) ?? 0) + 1);
    }, options).on("error", quiet);
  }
  begin();
  const added = [];
  let repeated = 0;
  while (!enough()) {
    const jobs = Array.from({ length: 20 }, (_, n) => ({ name: "work", data: {},
      opts: { jobId: `job-${added.length + n}`, delay: n % 5 === 0 ? 300 : 0, priority: n % 3 } }));
    repeated += await insist(() => queue.addBulk(jobs));
    added.push(...jobs.map((job) => job.opts.jobId));
    // What the workers can end in time when it is enough.
    do await sleep(20); while (added.length - runs.size > MOST_WAITING && !enough());
  }
  await waitUntil(() => added.every((id) => runs.has(id)), "every job's run");
  const left = () => queue.getJobCountByTypes("waiting", "active", "delayed", "prioritized");
  await waitUntil(async () => (await left()) === 0, "every job's end");
  const failed = await queue.getFailedCount();
  if (failed !== 0) throw new Error(`${failed} jobs failed`);
  tell(added.length, repeated, [...runs.values()].filter((count) => count > 1).length);
});
