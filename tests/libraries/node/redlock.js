// Redlock, versions 4 and 5, over ioredis; LIBRARY is the version's name in tests/npm.
"use strict";
const Redis = require("ioredis");
const check = require("./check");
const imported = require(process.env.LIBRARY);
const Redlock = imported.default ?? imported;

const { equal, waitUntil } = check;
const client = new Redis(check.address);
client.on("error", () => {});
const options = { driftFactor: 0.01, retryCount: 0 };
const locks = new Redlock([client], options);
const patient = new Redlock([client], { ...options, retryCount: 3000, retryDelay: 20 });
for (const each of [locks, patient]) each.on("error", () => {}).on("clientError", () => {});

// The two versions' names for the same things.
const old = typeof locks.lock === "function";
const acquire = (from, keys, ms) => (old ? from.lock(keys, ms) : from.acquire(keys, ms));
const release = (lock) => (old ? lock.unlock() : lock.release());

async function exclusion() {
  const lock = await acquire(locks, ["a", "b"], 60000);
  equal([await client.exists("a", "b"), await client.pttl("a") > 50000], [2, true]);
  await check.fails("", () => acquire(locks, ["b"], 60000));
  await lock.extend(90000);
  equal(await client.pttl("b") > 80000, true);
  const waiting = acquire(patient, ["b", "c"], 60000);
  await release(lock);
  const next = await waiting;
  equal([await client.exists("a"), await client.exists("b", "c")], [0, 2]);
  await release(next);
  equal(await client.dbsize(), 0);
  // Version 4 refuses a lock that is over when the reply comes; version 5 would be patient with the
  // release as well.
  const short = await acquire(old ? patient : locks, ["a"], 100);
  await release(await acquire(patient, ["a"], 60000));
  await check.fails("", () => release(short));
}

async function counter() {
  await client.set("count", 0);
  await Promise.all(Array.from({ length: 8 }, async () => {
    for (let n = 0; n < 5; n++) {
      const lock = await acquire(patient, ["counter"], 60000);
      await client.set("count", Number(await client.get("count")) + 1);
      await release(lock);
    }
  }));
  equal(await client.get("count"), "40");
}

/** A lock that was acknowledged still stands when the server is back. */
async function kill() {
  const lock = await acquire(locks, ["held"], 600000);
  await check.killServer();
  await waitUntil(() => client.status === "ready", "the connection");
  await check.fails("", () => acquire(locks, ["held"], 1000));
  await lock.extend(300000);
  const left = await client.pttl("held");
  equal(left > 100000 && left <= 300000, true);
  await release(lock);
  await release(await acquire(locks, ["held"], 60000));
}

check.play({ exclusion, counter, kill });
