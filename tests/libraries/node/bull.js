// Bull as its users use it.
"use strict";
const check = require("./check");
const Bull = require(process.env.LIBRARY);

const { equal, waitUntil } = check;
const hour = 3600 * 1000;
const open = (name, options) => {
  const queue = new Bull(name, { redis: check.address, ...options });
  queue.on("error", () => {});
  return queue;
};
const completed = (queue, count) => waitUntil(
  async () => (await queue.getCompletedCount()) === count, `${count} completed jobs`);

async function results() {
  const queue = open("results");
  const heard = { active: [], progress: [], completed: [] };
  const isReady = queue.isReady();
  for (const name of Object.keys(heard)) {
    queue.on(`global:${name}`, (jobId, what) => heard[name].push([jobId, what]));
  }
  await isReady;
  queue.process(4, async (job) => {
    await job.progress(50);
    await job.log("a line");
    return { doubled: job.data.n * 2, text: job.data.text };
  });
  const job = await queue.add({ n: 4, text: "grüße\u0000" }, { jobId: "one" });
  equal(await job.finished(), { doubled: 8, text: "grüße\u0000" });
  await waitUntil(() => heard.completed.length === 1, "the event");
  equal([heard.progress[0], heard.completed[0][0]], [["one", 50], "one"]);
  equal((await queue.getJobLogs("one")).logs, ["a line"]);
  queue.setMaxListeners(0);  // finished() listens once more for each job.
  const many = await queue.addBulk(Array.from({ length: 100 }, (_, n) => ({ data: { n } })));
  equal((await Promise.all(many.map((each) => each.finished()))).map((each) => each.doubled),
    many.map((_, n) => n * 2));
  await queue.close();
}

async function orderAndTime() {
  const queue = open("order");
  const order = [];
  const begun = Date.now();
  await queue.pause();
  await queue.add({ name: "last" }, { priority: 9 });
  await queue.add({ name: "first" }, { priority: 1 });
  await queue.add({ name: "second" }, { priority: 2 });
  await queue.add({ name: "soon" }, { delay: 500 });
  const late = await queue.add({ name: "late" }, { delay: hour });
  equal([await queue.getPausedCount(), await queue.getDelayedCount()], [3, 2]);
  queue.process(1, async (job) => { order.push([job.data.name, Date.now() - begun]); });
  await queue.resume();
  await completed(queue, 4);
  equal(order.map(([name]) => name), ["first", "second", "last", "soon"]);
  check.require(order[3][1] >= 500, `the delayed job ran after ${order[3][1]} ms`);
  await late.promote();
  await completed(queue, 5);
  const ticks = [];
  queue.process("tick", async () => { ticks.push(1); });
  await queue.add("tick", {}, { repeat: { every: 50, limit: 4 } });
  await waitUntil(() => ticks.length === 4, "the repeated job");
  await queue.add("cron", {}, { repeat: { cron: "0 0 1 1 *" } });
  const repeated = await queue.getRepeatableJobs();
  await queue.removeRepeatableByKey(repeated.find((each) => each.name === "cron").key);
  equal((await queue.getRepeatableJobs()).filter((each) => each.name === "cron"), []);
  await queue.close();
}

async function failures() {
  const queue = open("failures");
  const tries = {};
  let mended = false;
  queue.process(async (job) => {
    tries[job.id] = (tries[job.id] ?? 0) + 1;
    if (job.id === "twice" && tries.twice < 3) throw new Error("not yet");
    if (job.id === "never" && !mended) throw new Error("broken");
    return "mended";
  });
  const twice = await queue.add({}, { jobId: "twice", attempts: 3,
    backoff: { type: "exponential", delay: 20 } });
  const never = await queue.add({}, { jobId: "never", attempts: 2, backoff: 20 });
  equal(await twice.finished(), "mended");
  await check.fails("broken", () => never.finished());
  equal(tries, { twice: 3, never: 2 });
  mended = true;
  await (await queue.getJob("never")).retry();
  await completed(queue, 2);
  equal((await queue.clean(0, "completed")).length, 2);
  equal((await queue.getJobCounts()).completed, 0);
  await queue.empty();
  await queue.obliterate({ force: true });
  await queue.close();
}

/** Three windows of four; the ms from the first job's begin to the last's. */
async function limited(name) {
  const queue = open(name, { limiter: { max: 4, duration: 300 } });
  await queue.addBulk(Array.from({ length: 12 }, () => ({ data: {} })));
  queue.process(20, async () => {});
  await completed(queue, 12);
  const begun = (await queue.getCompleted()).map((job) => job.processedOn).sort((a, b) => a - b);
  await queue.close();
  return begun[11] - begun[0];
}

async function limiter() {
  await check.bestOfThree(450, limited);
}

/** The server dies while jobs are added and worked on: each that was acknowledged completes. With
 * more than one attempt: all runs of a worker have one token, so a run that finds its lock expired,
 * on a machine that stalls, fails the job under the run that has it since. */
async function kill() {
  const settings = { lockDuration: 2000, stalledInterval: 500, maxStalledCount: 9 };
  const redis = { ...check.address, maxRetriesPerRequest: null };
  const queue = open("kill", { settings, redis });
  const runs = {};
  queue.process(5, async (job) => {
    await check.sleep(2);
    runs[job.id] = (runs[job.id] ?? 0) + 1;
  });
  const added = [];
  const killed = [];
  const attempts = 9;
  await queue.add({}, { jobId: "late", delay: 1500, attempts });
  added.push("late");
  for (let n = 0; n < 300; n++) {
    const jobId = `job-${n}`;
    await check.insist(() => queue.add({ n }, { jobId, priority: n % 3, attempts }));
    added.push(jobId);
    if (n === 100 || n === 200) killed.push(check.killServer());
  }
  await Promise.all(killed);
  await waitUntil(() => added.every((id) => runs[id]), "every job's run");
  for (const id of added) {
    const state = async () => {
      const job = await queue.getJob(id);
      const locked_ms = await queue.client.pttl(`${queue.toKey(id)}:lock`);
      return JSON.stringify({ state: await job.getState(), runs: runs[id], locked_ms, job });
    };
    await waitUntil(async () => (await queue.getJob(id)).isCompleted(), `the end of ${id}`, state);
  }
  equal(await queue.getFailedCount(), 0);
}

check.play({ results, orderAndTime, failures, limiter, kill });
