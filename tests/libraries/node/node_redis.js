// node-redis as its users use it. PROTOCOL is 2 or 3.
"use strict";
const check = require("./check");
const { createClient, defineScript, RESP_TYPES } = require(process.env.LIBRARY);

const { equal, waitUntil } = check;
const RESP = Number(process.env.PROTOCOL);
const opened = [];
const open = async (options) => {
  const socket = { ...check.address, reconnectStrategy: () => 20 };
  const client = createClient({ socket, RESP, ...options });
  client.on("error", () => {});
  await client.connect();
  opened.push(client);
  return client;
};
const addTo = defineScript({ NUMBER_OF_KEYS: 1,
  SCRIPT: "return {redis.call('INCRBY', KEYS[1], ARGV[1]), ARGV[2]}",
  parseCommand: (parser, key, amount, word) => {
    parser.pushKey(key);
    parser.push(String(amount), word);
  },
  transformReply: (reply) => reply });
let client;

async function values() {
  client = await open({ name: "scenario", scripts: { addTo } });
  const bytes = Buffer.from([0, 255, 13, 10, 36]);
  await client.set("bytes", bytes, { expiration: { type: "PX", value: 60000 } });
  const raw = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  equal(await raw.get("bytes"), bytes);
  const large = "grüße\u0000".repeat(200000);
  await client.set("large", large);
  equal(await client.get("large") === large, true);
  await client.hSet("map", { a: 1, b: "zwei" });
  equal({ ...await client.hGetAll("map") }, { a: "1", b: "zwei" });
  await client.zAdd("scores", [{ score: 1.5, value: "a" }, { score: 3, value: "b" }]);
  equal((await client.zRangeWithScores("scores", 0, -1)).map((each) => ({ ...each })),
    [{ value: "a", score: 1.5 }, { value: "b", score: 3 }]);
  equal([await client.zScore("scores", "a"), await client.zScore("scores", "z")], [1.5, null]);
  equal([...await client.sMembers("none")], []);
  await check.fails("WRONGTYPE", () => client.incr("map"));
  equal(await client.clientGetName(), "scenario");
  equal((await client.sendCommand(["HELLO"]))[RESP === 3 ? "proto" : 5], RESP);
  equal((await client.clientInfo()).name, "scenario");
  equal((await client.configGet("appendonly")).appendonly, "yes");
}

async function unitsAndScripts() {
  await client.set("n", 1);
  equal(await client.multi().incr("n").get("n").exec(), [2, "2"]);
  const watcher = await open();
  await watcher.watch("n");
  await client.incr("n");
  await check.fails("", () => watcher.multi().set("n", "0").exec());
  equal(await client.addTo("n", 10, "x"), [13, "x"]);
  await client.scriptFlush();
  equal(await client.addTo("n", 10, "x"), [23, "x"]);
  const many = await Promise.all(Array.from({ length: 500 }, () => client.incr("many")));
  equal(many, Array.from({ length: 500 }, (_, n) => n + 1));
  const other = await open({ database: 3 });
  await other.set("n", "three");
  equal([await client.get("n"), await other.get("n")], ["23", "three"]);
}

async function scanning() {
  await Promise.all(Array.from({ length: 1000 }, (_, n) => client.set(`scan:${n}`, n)));
  const keys = new Set();
  for await (const some of client.scanIterator({ MATCH: "scan:*", COUNT: 50 })) {
    for (const key of [some].flat()) keys.add(key);
  }
  equal(keys.size, 1000);
}

async function messages() {
  const subscriber = await open();
  const heard = [];
  const hear = (message, channel) => heard.push([channel, message]);
  await subscriber.subscribe(["a", "b"], hear);
  await subscriber.pSubscribe("p*", hear);
  await subscriber.sSubscribe("s", hear);
  equal([await client.publish("a", "1"), await client.publish("px", "2"),
    await client.sPublish("s", "3"), await client.publish("none", "4")], [1, 1, 1, 0]);
  await waitUntil(() => heard.length === 3, "the messages");
  equal(heard, [["a", "1"], ["px", "2"], ["s", "3"]]);
  if (RESP === 3) equal(await subscriber.get("n"), "23");  // Beside its subscriptions.
  await subscriber.unsubscribe(["a", "b"]);
  await subscriber.pUnsubscribe("p*");
  await subscriber.sUnsubscribe("s");
  equal(String(await subscriber.get("n")), "23");  // With RESP2 node-redis gives bytes here.
}

async function waitingAndStreams() {
  const blocked = await open();
  const popped = blocked.blPop(["list1", "list2"], 0);
  await waitUntil(async () => (await client.info("clients")).includes("blocked_clients:1"), "it");
  await client.rPush("list2", "x");
  equal({ ...await popped }, { key: "list2", element: "x" });
  const smallest = blocked.bzPopMin("zset", 0);
  await client.zAdd("zset", { score: 2.5, value: "m" });
  equal({ ...await smallest }, { key: "zset", value: "m", score: 2.5 });
  const id = await client.xAdd("stream", "*", { f: "v" });
  await client.xGroupCreate("stream", "group", "0");
  const read = await blocked.xReadGroup("group", "me", { key: "stream", id: ">" }, { BLOCK: 0 });
  const text = JSON.stringify(read);
  check.require(text.includes(id) && text.includes('"v"'), text);
  equal(await client.xAck("stream", "group", id), 1);
  equal((await client.xInfoGroups("stream"))[0].pending, 0);
}

/** Acknowledged writes are there; what was under way may be or not, and nothing comes twice. */
async function kill() {
  const writer = await open({ disableOfflineQueue: true });
  let acknowledged = 0;
  let unknown = 0;
  let killed;
  const written = [];
  for (let n = 0; n < 600 || unknown === 0; n++) {  // Until it has seen the kill.
    try {
      await writer.multi().incr("counter").rPush("log", `${n}`).exec();
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
  const log = (await client.lRange("log", 0, -1)).map(Number);
  equal([log.length, new Set(log).size], [count, count]);
  for (const n of written) check.require(log.includes(n), `${n} is lost`);
  for (const each of opened) each.destroy();
}

check.play({ values, unitsAndScripts, scanning, messages, waitingAndStreams, kill });
