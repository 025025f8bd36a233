// BullMQ as its users use it. LIBRARY is the version's name in tests/npm.
"use strict";
const { fork } = require("node:child_process");
const Redis = require("ioredis");
const check = require("./check");
const { FlowProducer, Queue, QueueEvents, UnrecoverableError, Worker } =
  require(process.env.LIBRARY);

const { equal, waitUntil } = check;
const connection = { ...check.address, maxRetriesPerRequest: null };
const hour = 3600 * 1000;
const quiet = () => {};

// Everything that a part opened is closed at its end.
let opened = [];
const open = (thing) => {
  thing.on("error", quiet);
  opened.push(thing);
  return thing;
};
const queueOf = (name, options) => open(new Queue(name, { connection, ...options }));
// From the stream's beginning: what happens before its first read is heard as well.
const eventsOf = async (name) => {
  const events = open(new QueueEvents(name, { connection, lastEventId: "0" }));
  await events.waitUntilReady();
  return events;
};
const workerOf = (name, work, options) =>
  open(new Worker(name, work, { connection, ...options }));
const part = (run) => async () => {
  await run();
  for (const thing of opened.reverse()) await thing.close(thing instanceof Worker);
  opened = [];
};
const completed = (queue, count) => waitUntil(
  async () => (await queue.getCompletedCount()) === count, `${count} completed jobs`);

async function bulk() {
  const queue = queueOf("bulk");
  const jobs = await queue.addBulk(Array.from({ length: 200 }, (_, n) => (
    { name: "double", data: { n, text: "grüße\u0000" } })));
  equal(jobs.length, 200);
  equal(await queue.getWaitingCount(), 200);
  workerOf("bulk", async (job) => ({ n: job.data.n * 2, text: job.data.text }),
    { concurrency: 10 });
  await completed(queue, 200);
  for (const n of [0, 7, 199]) {
    const job = await queue.getJob(jobs[n].id);
    equal(job.returnvalue, { n: n * 2, text: "grüße\u0000" });
    equal(await job.getState(), "completed");
  }
  equal((await queue.getJobs(["completed"], 0, 4)).length, 5);
  const counts = await queue.getJobCounts();
  equal([counts.completed, counts.waiting, counts.active, counts.failed], [200, 0, 0, 0]);
}

async function events() {
  const queue = queueOf("events");
  const heard = await eventsOf("events");
  const seen = { added: [], waiting: [], active: [], progress: [], completed: [] };
  for (const name of Object.keys(seen)) heard.on(name, (what) => seen[name].push(what));
  workerOf("events", async (job) => {
    await job.updateProgress({ half: true });
    await job.log("a line");
    return "result";
  });
  const job = await queue.add("one", { a: 1 }, { jobId: "first" });
  equal(await job.waitUntilFinished(heard, hour), "result");
  await waitUntil(() => seen.completed.length === 1, "the event");
  equal(Object.values(seen).map((list) => list.map((what) => what.jobId)),
    Array(5).fill(["first"]));
  equal([seen.progress[0].data, seen.completed[0].returnvalue], [{ half: true }, "result"]);
  equal((await queue.getJobLogs("first")).logs, ["a line"]);
}

async function delay() {
  const queue = queueOf("delay");
  const started = Date.now();
  const soon = await queue.add("soon", {}, { delay: 400 });
  const late = await queue.add("late", {}, { delay: hour });
  const later = await queue.add("later", {}, { delay: hour });
  equal([await late.getState(), await queue.getDelayedCount()], ["delayed", 3]);
  const ran = {};
  workerOf("delay", async (job) => { ran[job.name] = Date.now(); });
  await waitUntil(() => ran.soon, "the delayed job");
  check.require(ran.soon - started >= 400, `it ran after ${ran.soon - started} ms`);
  equal(await soon.getState().then((state) => state !== "delayed"), true);
  await late.promote();
  await waitUntil(() => ran.late, "the promoted job");
  await later.changeDelay(1);
  await waitUntil(() => ran.later, "the job whose delay was changed");
  await completed(queue, 3);
}

async function priority() {
  const queue = queueOf("priority");
  const order = [];
  for (const level of [3, 1, 0, 2, 1, 2097151]) {
    await queue.add(`p${level}`, {}, { priority: level });
  }
  const moved = await queue.add("moved", {}, { priority: 9 });
  await moved.changePriority({ priority: 2 });
  equal(await queue.getPrioritizedCount(), 6);
  equal((await queue.getCountsPerPriority([0, 1, 2, 3])), { 0: 1, 1: 2, 2: 2, 3: 1 });
  workerOf("priority", async (job) => { order.push(job.name); });
  await completed(queue, 7);
  equal(order, ["p0", "p1", "p1", "p2", "moved", "p3", "p2097151"]);
}

async function retry() {
  const queue = queueOf("retry");
  const heard = await eventsOf("retry");
  const tries = {};
  const exhausted = [];
  heard.on("retries-exhausted", ({ jobId }) => exhausted.push(jobId));
  let mended = false;
  workerOf("retry", async (job) => {
    tries[job.name] = (tries[job.name] ?? 0) + 1;
    if (job.name === "fatal") throw new UnrecoverableError("no use");
    if (job.name === "twice" && tries.twice < 3) throw new Error("not yet");
    if (job.name === "never" && !mended) throw new Error("broken");
    return tries[job.name];
  });
  const twice = await queue.add("twice", {},
    { attempts: 5, backoff: { type: "exponential", delay: 20 } });
  const never = await queue.add("never", {},
    { attempts: 2, backoff: { type: "fixed", delay: 30 } });
  const fatal = await queue.add("fatal", {}, { attempts: 9 });
  equal(await twice.waitUntilFinished(heard, hour), 3);
  await check.fails("broken", () => never.waitUntilFinished(heard, hour));
  await check.fails("no use", () => fatal.waitUntilFinished(heard, hour));
  equal(tries, { twice: 3, never: 2, fatal: 1 });
  equal((await queue.getFailed()).map((job) => job.failedReason).sort(), ["broken", "no use"]);
  await waitUntil(() => exhausted.includes(never.id), "the event of exhausted retries");
  mended = true;
  await (await queue.getJob(never.id)).retry();
  await completed(queue, 2);
  equal(await queue.getFailedCount(), 1);
}

/** Three windows of five; the ms from the first job's begin to the last's. */
async function limited(name) {
  const queue = queueOf(name);
  await queue.addBulk(Array.from({ length: 15 }, (_, n) => ({ name: "limited", data: { n } })));
  workerOf(name, async () => {}, { limiter: { max: 5, duration: 300 }, concurrency: 15 });
  await completed(queue, 15);
  const begun = (await queue.getCompleted()).map((job) => job.processedOn).sort((a, b) => a - b);
  equal(await queue.getRateLimitTtl() <= 300, true);
  return begun[14] - begun[0];
}

async function limiter() {
  await check.bestOfThree(450, limited);
}

async function scheduler() {
  const queue = queueOf("scheduler");
  const ran = [];
  workerOf("scheduler", async (job) => { ran.push(job.name); });
  await queue.upsertJobScheduler("tick", { every: 50 }, { name: "tick", data: { a: 1 } });
  await queue.upsertJobScheduler("second", { pattern: "* * * * * *" }, { name: "second" });
  await queue.upsertJobScheduler("thrice", { every: 40, limit: 3 }, { name: "thrice" });
  const count = (name) => ran.filter((each) => each === name).length;
  await waitUntil(() => count("tick") >= 5 && count("second") >= 1 && count("thrice") >= 3,
    "scheduled jobs");
  const known = (await queue.getJobSchedulers()).map((each) => each.key);
  check.require(known.includes("tick") && known.includes("second"), `schedulers ${known}`);
  for (const name of ["tick", "second", "thrice"]) {
    equal(await queue.removeJobScheduler(name), true, name);
  }
  await waitUntil(async () => (
    await queue.getJobCountByTypes("delayed", "active", "waiting")) === 0, "nothing scheduled");
  equal([count("thrice"), await queue.getJobSchedulersCount()], [3, 0]);
}

async function flows() {
  const queue = queueOf("flow-parent");
  queueOf("flow-child");
  const heard = await eventsOf("flow-parent");
  const flow = open(new FlowProducer({ connection }));
  workerOf("flow-child", async (job) => {
    if (job.name === "bad") throw new Error("bad child");
    const below = Object.values(await job.getChildrenValues());
    return job.data.n + below.reduce((sum, n) => sum + n, 0);
  }, { concurrency: 4 });
  workerOf("flow-parent", async (job) => {
    const values = Object.values(await job.getChildrenValues());
    return values.sort((a, b) => a - b);
  });
  const child = (n, children) => (
    { name: "child", queueName: "flow-child", data: { n }, children });
  const tree = await flow.add({ name: "parent", queueName: "flow-parent",
    children: [child(1), child(2), child(3, [child(10), child(20)])] });
  equal(await tree.job.waitUntilFinished(heard, hour), [1, 2, 33]);
  equal((await tree.job.getDependencies()).unprocessed ?? [], []);
  const broken = await flow.add({ name: "parent", queueName: "flow-parent", children: [
    { name: "bad", queueName: "flow-child", data: {}, opts: { failParentOnFailure: true } }] });
  await waitUntil(async () => (await broken.job.getState()) === "failed", "the parent's failure");
  const got = await flow.getFlow({ id: tree.job.id, queueName: "flow-parent" });
  equal(got.children.length, 3);
  equal(await queue.getWaitingChildrenCount(), 0);
}

async function pause() {
  const queue = queueOf("pause");
  const ran = [];
  const worker = workerOf("pause", async (job) => { ran.push(job.name); });
  await worker.waitUntilReady();
  await queue.pause();
  equal(await queue.isPaused(), true);
  await queue.addBulk([{ name: "a", data: {} }, { name: "b", data: {} }]);
  equal([await queue.getWaitingCount(), await queue.getCompletedCount()], [2, 0]);
  equal(ran, []);
  await queue.resume();
  await completed(queue, 2);
  await worker.pause();
  equal(worker.isPaused(), true);
  await queue.add("c", {});
  worker.resume();
  await completed(queue, 3);
  equal(ran, ["a", "b", "c"]);
}

async function clean() {
  const queue = queueOf("clean");
  await queue.addBulk(Array.from({ length: 20 }, (_, n) => ({ name: `j${n}`, data: {} })));
  const worker = workerOf("clean", async (job) => {
    if (Number(job.name.slice(1)) % 4 === 0) throw new Error("fourth");
  });
  await waitUntil(async () => (await queue.getJobCountByTypes("completed", "failed")) === 20,
    "all jobs");
  await worker.close();
  equal((await queue.clean(0, 10, "completed")).length, 10);
  equal([await queue.getCompletedCount(), await queue.getFailedCount()], [5, 5]);
  equal((await queue.clean(0, 0, "failed")).length, 5);
  equal((await queue.clean(hour, 0, "completed")).length, 0);
  await queue.add("x", {}, { jobId: "kept" });
  await queue.add("x", {}, { jobId: "kept" });  // The same job: it is there already.
  await queue.add("y", {}, { jobId: "gone" });
  equal(await queue.getWaitingCount(), 2);
  equal(await queue.remove("gone"), 1);
  await queue.drain();
  equal(await queue.getWaitingCount(), 0);
  const short = workerOf("clean", async () => {}, { removeOnComplete: { count: 3 } });
  for (let n = 0; n < 8; n++) await queue.add("z", { n });
  await waitUntil(async () => (await queue.getJobCountByTypes("waiting", "active")) === 0 &&
    (await queue.getCompletedCount()) === 3, "only the last three kept");
  await short.close();
  await queue.obliterate({ force: true });
  const plain = new Redis(check.address);
  equal(await plain.keys("bull:clean:*"), []);
  plain.disconnect();
}

/** A worker's process dies with a job in hand: another takes it once the lock has expired. */
async function stalled() {
  const queue = queueOf("stalled");
  const heard = await eventsOf("stalled");
  const seen = [];
  heard.on("stalled", ({ jobId }) => seen.push(jobId));
  const job = await queue.add("held", {});
  const dying = fork(__filename, ["dies"], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const message = await new Promise((resolve) => dying.once("message", resolve));
  equal(message, job.id);
  const exited = new Promise((resolve) => dying.once("exit", resolve));
  dying.kill("SIGKILL");
  await exited;
  equal(await job.getState(), "active");
  workerOf("stalled", async () => "rescued", { stalledInterval: 200 });
  equal(await job.waitUntilFinished(heard, hour), "rescued");
  await waitUntil(() => seen.length === 1, "the event of the stalled job");
  equal(seen, [job.id]);
}

function dieWithAJob() {
  new Worker("stalled", (job) => {
    process.send(job.id);
    return new Promise(quiet);
  }, { connection, lockDuration: 1000, stalledInterval: 200 });
}

/** The server dies while jobs are added and worked on: each that was acknowledged completes. */
async function kill() {
  const queue = queueOf("kill");
  const heard = await eventsOf("kill");
  const ends = new Set();
  heard.on("completed", ({ jobId }) => ends.add(jobId));
  const runs = {};
  const flow = open(new FlowProducer({ connection }));
  await queue.upsertJobScheduler("tick", { every: 200 }, { name: "tick" });
  await queue.add("late", {}, { jobId: "late", delay: 1500 });
  await flow.add({ name: "parent", queueName: "kill", opts: { jobId: "parent" },
    children: [{ name: "child", queueName: "kill", opts: { jobId: "child", delay: 1200 } }] });
  const options = { concurrency: 5, lockDuration: 2000, stalledInterval: 500, maxStalledCount: 9 };
  const work = async (job) => {
    await check.sleep(2);
    runs[job.id] = (runs[job.id] ?? 0) + 1;
  };
  workerOf("kill", work, options);
  workerOf("kill", work, options);
  const added = ["late", "parent", "child"];
  const killed = [];
  for (let n = 0; n < 300; n++) {
    const jobId = `job-${n}`;
    const opts = { jobId, priority: n % 3 };
    await check.insist(() => queue.add("work", { n }, opts));
    added.push(jobId);
    if (n === 100 || n === 200) killed.push(check.killServer());
  }
  await Promise.all(killed);
  await waitUntil(async () => (await queue.getJobCountByTypes("waiting", "active", "prioritized",
    "waiting-children")) === 0 && added.every((id) => runs[id]), "every job's run");
  for (const id of added) {
    await waitUntil(async () => (await queue.getJob(id)).isCompleted(), `the end of ${id}`);
  }
  await waitUntil(() => added.every((id) => ends.has(id)), "every job's event");
  equal(await queue.getFailedCount(), 0);
  const before = Object.keys(runs).length;
  await waitUntil(() => Object.keys(runs).length > before, "the scheduler's next tick");
  await queue.removeJobScheduler("tick");
}

if (process.argv[2] === "dies") {
  dieWithAJob();
} else {
  const parts = { bulk, events, delay, priority, retry, limiter, scheduler, flows, pause, clean,
    stalled, kill };
  check.play(Object.fromEntries(Object.entries(parts).map(([name, run]) => [name, part(run)])));
}
