// BullMQ's load on a server: JOBS jobs are added in bulks of 100 while a worker processes them.
// Prints a line of JSON when the last job has completed. SLUICE_PORT is the server's port;
// NODE_PATH must contain the packages of tests/npm.
"use strict";
const { Queue, Worker } = require("bullmq");

const connection = { host: "127.0.0.1", port: Number(process.env.SLUICE_PORT) };
const jobs = Number(process.env.JOBS);
const bulk = 100;

async function load() {
  const queue = new Queue("load", { connection });
  await queue.waitUntilReady();
  const began = process.hrtime.bigint();
  let processed = 0;
  const worker = new Worker("load", async (job) => { processed += job.data.n >= 0 ? 1 : 0; },
    { connection, concurrency: 50 });
  let completed = 0;
  const all = new Promise((resolve, reject) => {
    worker.on("failed", (job, error) => reject(error));
    worker.on("error", reject);
    worker.on("completed", () => {
      completed += 1;
      if (completed === jobs) resolve();
    });
  });
  for (let first = 0; first < jobs; first += bulk) {
    const length = Math.min(bulk, jobs - first);
    await queue.addBulk(Array.from({ length }, (_, n) => (
      { name: "work", data: { n: first + n, text: "x".repeat(100) } })));
  }
  await all;
  const seconds = Number(process.hrtime.bigint() - began) / 1e9;
  const counts = await queue.getJobCounts("completed", "wait", "active");
  if (processed !== jobs || counts.completed !== jobs || counts.wait + counts.active !== 0) {
    throw new Error(`${processed} of ${jobs} jobs processed, ${JSON.stringify(counts)}`);
  }
  console.log(JSON.stringify({ requests: jobs, per_s: jobs / seconds }));
}

load().then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
