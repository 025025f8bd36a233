// ioredis or node-redis by Sentinel: writes until it is enough. LIBRARY says which.
"use strict";
const { begin, checkLog, enough, group, insist, play, sentinels } = require("./until_enough");

const quiet = () => {};

/** ioredis repeats by itself what was in flight when a connection ended. */
async function ioredis() {
  const Redis = require("ioredis");
  const client = new Redis({ sentinels, name: group });
  client.on("error", quiet);
  return {
    push: (n) => client.rpush("log", n),
    read: () => client.lrange("log", 0, -1),
  };
}

async function nodeRedis() {
  const { createSentinel } = require("redis");
  const client = createSentinel({ name: group, sentinelRootNodes: sentinels });
  client.on("error", quiet);
  await client.connect();
  return {
    push: (n) => client.rPush("log", String(n)),
    read: () => client.lRange("log", 0, -1),
  };
}

play(async () => {
  const client = await (process.env.LIBRARY === "redis" ? nodeRedis() : ioredis());
  begin();
  let [count, repeated] = [0, 0];
  while (!enough()) {
    const number = count++;
    repeated += await insist(() => client.push(number));
  }
  checkLog(count, repeated, await client.read());
});
