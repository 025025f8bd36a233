// Bottleneck's clusters as its users use them: limiters in several places with one state in Redis.
"use strict";
const Redis = require("ioredis");
const check = require("./check");
const Bottleneck = require(process.env.LIBRARY);

const { equal, waitUntil } = check;
const open = async (id, options) => {
  const limiter = new Bottleneck({
    id, datastore: "ioredis", Redis, clientOptions: check.address, ...options });
  limiter.on("error", () => {});
  await limiter.ready();
  return limiter;
};

async function together() {
  const options = { maxConcurrent: 2, minTime: 10 };
  const limiters = [await open("together", options), await open("together", options)];
  let running = 0;
  let most = 0;
  const starts = [];
  const jobs = Array.from({ length: 20 }, (_, n) => limiters[n % 2].schedule(async () => {
    starts.push(Date.now());
    most = Math.max(most, ++running);
    await check.sleep(30);
    --running;
    return n;
  }));
  equal(await Promise.all(jobs), Array.from({ length: 20 }, (_, n) => n));
  equal(most, 2);
  check.require(starts.at(-1) - starts[0] >= 9 * 29, "they ran too fast");
  await waitUntil(async () => await limiters[0].done() === 20, "the count of what is done");
  equal(await limiters[1].running(), 0);
  for (const limiter of limiters) await limiter.disconnect();
}

async function refusals() {
  const limiter = await open("refusals", {
    maxConcurrent: 1, highWater: 1, strategy: Bottleneck.strategy.OVERFLOW });
  const jobs = Array.from({ length: 5 }, () => limiter.schedule(() => check.sleep(300)));
  const ends = (await Promise.allSettled(jobs)).map((job) => job.status);
  check.require(ends.includes("rejected") && ends.includes("fulfilled"), `${ends}`);
  const urgent = [];
  await Promise.all([5, 9, 1].map((priority) => limiter.schedule(
    { priority }, async () => urgent.push(priority)).catch(() => {})));
  check.require(urgent.length > 0, "nothing ran");
  await limiter.disconnect();
}

/** The reservoir is what it was when the server is back, and shared as before. */
async function kill() {
  const first = await open("kill", { reservoir: 10 });
  const second = await open("kill", { reservoir: 10 });
  const run = (limiter, count) => Promise.all(
    Array.from({ length: count }, () => limiter.schedule(async () => 1)));
  await run(first, 3);
  await run(second, 4);
  equal(await first.currentReservoir(), 3);
  await check.killServer();
  equal(await check.insist(() => first.currentReservoir()), 3);
  await run(first, 2);
  await run(second, 1);
  equal(await second.currentReservoir(), 0);
  let ran = false;
  const waits = first.schedule(async () => { ran = true; });
  await check.sleep(100);
  equal(ran, false);
  await second.incrementReservoir(1);
  await waits;
  for (const limiter of [first, second]) await limiter.disconnect();
}

check.play({ together, refusals, kill });
