// What the programs in JavaScript share: where the Sentinels are, and work until the test says that
// it is enough.
"use strict";
const readline = require("node:readline");

const sentinels = process.env.SENTINELS.split(" ")
  .map((port) => ({ host: "127.0.0.1", port: Number(port) }));
const group = "mymaster";
const patienceMs = 60000;
let ended = false;
readline.createInterface({ input: process.stdin }).on("line", () => { ended = true; });

const begin = () => console.log("begun");
const enough = () => ended;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Repeats the call until it succeeds; returns how often it failed. */
async function insist(call) {
  const deadline = Date.now() + patienceMs;
  for (let failed = 0; ; failed++) {
    try {
      await call();
      return failed;
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await sleep(20);
    }
  }
}

async function waitUntil(condition, what) {
  const deadline = Date.now() + patienceMs;
  while (!await condition()) {
    if (Date.now() > deadline) throw new Error(`${what} did not come about`);
    await sleep(20);
  }
}

function tell(acknowledged, repeated, twice) {
  console.log(`acknowledged ${acknowledged} repeated ${repeated} twice ${twice}`);
  console.log("all of it holds");
}

/** Every number is in the log, and what is there twice is told. */
function checkLog(count, repeated, log) {
  const there = new Set(log.map(Number));
  for (let n = 0; n < count; n++) if (!there.has(n)) throw new Error(`${n} is lost`);
  tell(count, repeated, log.length - count);
}

/** Runs it to its end; a failure ends the process. */
function play(run) {
  run().then(() => process.exit(0), (error) => {
    console.log(error);
    process.exit(1);
  });
}

module.exports = { begin, checkLog, enough, group, insist, play, sentinels, sleep, tell,
  waitUntil };
