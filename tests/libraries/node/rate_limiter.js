// rate-limiter-flexible as its users use it, over ioredis and node-redis.
"use strict";
const Redis = require("ioredis");
const { createClient } = require("redis");
const check = require("./check");
const { RateLimiterRedis } = require(process.env.LIBRARY);

const { equal, waitUntil } = check;
const client = new Redis(check.address);
client.on("error", () => {});
const open = (name, options) => new RateLimiterRedis({
  storeClient: client, keyPrefix: name, points: 5, duration: 600, ...options });

/** What a refusal rejects with, which is no Error. */
async function refused(call) {
  let got;
  try {
    got = await call();
  } catch (refusal) {
    check.require(refusal.msBeforeNext > 0, `it failed with ${refusal}`);
    return refusal;
  }
  throw new Error(`${JSON.stringify(got)}, expected a refusal`);
}

async function points(limiter) {
  const first = await limiter.consume("ann", 2);
  equal([first.remainingPoints, first.consumedPoints, first.isFirstInDuration], [3, 2, true]);
  check.require(first.msBeforeNext > 500000, "the window");
  await limiter.penalty("ann", 2);
  equal((await limiter.reward("ann", 1)).consumedPoints, 3);
  equal((await limiter.consume("ann", 2)).remainingPoints, 0);
  equal((await refused(() => limiter.consume("ann"))).consumedPoints, 6);
  equal((await limiter.get("ann")).consumedPoints, 6);
  equal(await limiter.get("bob"), null);
  equal(await limiter.delete("ann"), true);
  equal((await limiter.consume("ann")).remainingPoints, 4);
  await limiter.block("bob", 100);
  const blocked = await refused(() => limiter.consume("bob"));
  check.require(blocked.msBeforeNext > 90000 && blocked.msBeforeNext <= 100000, "the block");
  const all = await Promise.allSettled(
    Array.from({ length: 50 }, () => limiter.consume("everybody")));
  equal(all.filter((each) => each.status === "fulfilled").length, 5);
}

async function overIoredis() {
  await points(open("io"));
}

async function overNodeRedis() {
  const storeClient = createClient({ socket: check.address });
  storeClient.on("error", () => {});
  await storeClient.connect();
  await points(open("node", { storeClient, useRedisPackage: true }));
  await storeClient.close();
}

async function windowEnds() {
  const limiter = open("short", { points: 1, duration: 2 });
  await limiter.consume("ann");
  const refusal = await refused(() => limiter.consume("ann"));
  await check.sleep(refusal.msBeforeNext + 5);
  await limiter.consume("ann");
}

/** What was counted still counts when the server is back, with the time that was left. */
async function kill() {
  const limiter = open("kill", { points: 100 });
  for (let n = 0; n < 20; n++) await limiter.consume("ann");
  const before = await limiter.get("ann");
  await check.killServer();
  await waitUntil(() => client.status === "ready", "the connection");
  const after = await limiter.get("ann");
  equal(after.consumedPoints, 20);
  check.require(after.msBeforeNext <= before.msBeforeNext && after.msBeforeNext > 500000,
    `${after.msBeforeNext} ms are left`);
  equal((await limiter.consume("ann")).remainingPoints, 79);
}

check.play({ overIoredis, overNodeRedis, windowEnds, kill });
