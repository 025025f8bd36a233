// ioredis as its users use it. LIBRARY is the version's name in tests/npm, PROTOCOL 2 or 3; the
// version that has no RESP3 ignores the option.
"use strict";
const check = require("./check");
const imported = require(process.env.LIBRARY);
const Redis = imported.Redis ?? imported;

const { equal, waitUntil } = check;
const protocol = Number(process.env.PROTOCOL);
const opened = [];
const open = (options) => {
  const client = new Redis({ ...check.address, protocol, ...options });
  client.on("error", () => {});
  opened.push(client);
  return client;
};
const client = open({ connectionName: "scenario" });

async function values() {
  const bytes = Buffer.from([0, 255, 13, 10, 36]);
  await client.set("bytes", bytes, "PX", 60000);
  equal(await client.getBuffer("bytes"), bytes);
  const large = "grüße\u0000".repeat(200000);
  await client.set("large", large);
  equal(await client.get("large") === large, true);
  await client.hset("map", { a: 1, b: "zwei" });
  equal(await client.hgetall("map"), { a: "1", b: "zwei" });
  await client.zadd("scores", 1.5, "a", "inf", "b", 3, "c");
  equal(await client.zrange("scores", 0, -1, "WITHSCORES"), ["a", "1.5", "c", "3", "b", "inf"]);
  equal(await client.zscore("scores", "a"), "1.5");
  equal((await client.smembers("none")), []);
  await check.fails("WRONGTYPE", () => client.incr("map"));
  equal(await client.call("CLIENT", "GETNAME"), "scenario");
  equal(typeof (await client.info()), "string");
  equal(await client.object("ENCODING", "scores"), "listpack");
}

async function unitsAndScripts() {
  const replies = await client.pipeline().set("n", 1).incr("n").get("n").lpush("n", 1).exec();
  equal(replies.slice(0, 3), [[null, "OK"], [null, 2], [null, "2"]]);
  equal(replies[3][0].message.startsWith("WRONGTYPE"), true);
  equal(await client.multi().incr("n").hgetall("map").exec(),
    [[null, 3], [null, { a: "1", b: "zwei" }]]);
  const watcher = open();
  await watcher.watch("n");
  await client.incr("n");
  equal(await watcher.multi().set("n", 0).exec(), null);
  client.defineCommand("addTo", { numberOfKeys: 1,
    lua: "return {redis.call('INCRBY', KEYS[1], ARGV[1]), ARGV[2]}" });
  equal(await client.addTo("n", 10, "x"), [14, "x"]);
  await client.script("FLUSH");
  equal(await client.addTo("n", 10, "x"), [24, "x"]);
  const automatic = open({ enableAutoPipelining: true, keyPrefix: "p:" });
  equal(await Promise.all([automatic.set("k", "v"), automatic.get("k"), automatic.incr("i")]),
    ["OK", "v", 1]);
  equal(await client.get("p:k"), "v");
  const other = open({ db: 3 });
  await other.set("n", "three");
  equal([await client.get("n"), await other.get("n")], ["24", "three"]);
}

async function scanning() {
  const unit = client.pipeline();
  for (let n = 0; n < 1000; n++) unit.set(`scan:${n}`, n).hset("wide", `f${n}`, n);
  await unit.exec();
  const keys = new Set();
  for await (const some of client.scanStream({ match: "scan:*", count: 50 })) {
    for (const key of some) keys.add(key);
  }
  equal(keys.size, 1000);
  const fields = new Set();
  for await (const some of client.hscanStream("wide", { count: 50 })) {
    for (let n = 0; n < some.length; n += 2) fields.add(some[n]);
  }
  equal(fields.size, 1000);
}

async function messages() {
  const subscriber = open();
  const heard = [];
  subscriber.on("message", (...what) => heard.push(what));
  subscriber.on("pmessage", (...what) => heard.push(what));
  subscriber.on("smessage", (...what) => heard.push(what));
  equal(await subscriber.subscribe("a", "b"), 2);
  equal(await subscriber.psubscribe("p*"), 3);
  await subscriber.ssubscribe("s");
  equal([await client.publish("a", "1"), await client.publish("px", "2"),
    await client.spublish("s", "3"), await client.publish("none", "4")], [1, 1, 1, 0]);
  await waitUntil(() => heard.length === 3, "the messages");
  equal(heard, [["a", "1"], ["p*", "px", "2"], ["s", "3"]]);
  await subscriber.unsubscribe("a", "b");
  await subscriber.punsubscribe("p*");
  await subscriber.sunsubscribe("s");
  equal(await subscriber.get("n"), "24");
  const monitor = await open().monitor();
  const watched = new Promise((resolve) => monitor.on("monitor", (_, words) => {
    if (words[1] === "watched") resolve(words);
  }));
  await client.set("watched", "x");
  equal(await watched, ["set", "watched", "x"]);
  monitor.disconnect();
}

async function waitingAndStreams() {
  const blocked = open();
  const popped = blocked.blpop("list1", "list2", 0);
  await waitUntil(async () => (await client.info("clients")).includes("blocked_clients:1"), "it");
  await client.rpush("list2", "x");
  equal(await popped, ["list2", "x"]);
  const smallest = blocked.bzpopmin("zset", 0);
  await client.zadd("zset", 2.5, "m");
  equal(await smallest, ["zset", "m", "2.5"]);
  const id = await client.xadd("stream", "*", "f", "v");
  equal(await client.xrange("stream", "-", "+"), [[id, ["f", "v"]]]);
  await client.xgroup("CREATE", "stream", "group", "0");
  equal((await blocked.xreadgroup("GROUP", "group", "me", "BLOCK", 0, "STREAMS", "stream", ">")),
    [["stream", [[id, ["f", "v"]]]]]);
  equal(await client.xack("stream", "group", id), 1);
}

/** Acknowledged writes are there; what was under way may be or not, and nothing comes twice. */
async function kill() {
  const writer = open({ autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0,
    retryStrategy: () => 20 });
  await waitUntil(() => writer.status === "ready", "the connection");
  let acknowledged = 0;
  let unknown = 0;
  let killed;
  const written = [];
  for (let n = 0; n < 600 || unknown === 0; n++) {  // Until it has seen the kill.
    try {
      await writer.multi().incr("counter").rpush("log", n).set(`kept:${n}`, n).exec();
      acknowledged += 1;
      written.push(n);
    } catch {
      unknown += 1;
      await check.insist(() => writer.ping());
    }
    if (n === 300) killed = check.killServer();
  }
  await killed;
  await check.insist(() => client.ping());
  const count = Number(await client.get("counter"));
  const wanted = `${acknowledged} acknowledged, ${unknown} unknown, ${count} counted`;
  check.require(count >= acknowledged && count <= acknowledged + unknown, wanted);
  const log = (await client.lrange("log", 0, -1)).map(Number);
  equal(log.length, count);
  equal(new Set(log).size, count);
  for (const n of written) check.require(log.includes(n), `${n} is lost`);
  equal(await client.mget(written.map((n) => `kept:${n}`)), written.map(String));
}

/** A client that only waits is served by the server that comes back. */
async function waitAcrossKill() {
  const blocked = open({ maxRetriesPerRequest: null });
  const popped = blocked.blpop("across", 0);
  await waitUntil(async () => (await client.info("clients")).includes("blocked_clients:1"), "it");
  const subscriber = open();
  const heard = [];
  subscriber.on("message", (...what) => heard.push(what));
  await subscriber.subscribe("news");
  await check.killServer();
  await waitUntil(async () => (await check.insist(() => client.info("clients")))
    .includes("blocked_clients:1"), "the second wait");
  await client.rpush("across", "x");
  equal(await popped, ["across", "x"]);
  await waitUntil(async () => (await client.publish("news", "1")) === 1, "the second subscription");
  await waitUntil(() => heard.length === 1, "the message");
  for (const each of opened) each.disconnect();
}

check.play({ values, unitsAndScripts, scanning, messages, waitingAndStreams, kill,
  waitAcrossKill });
