// What the scenarios in JavaScript share: the server's address, checks, and the kill of the server.
"use strict";
const { deepStrictEqual } = require("node:assert");
const readline = require("node:readline");

const address = { host: "127.0.0.1", port: Number(process.env.SLUICE_PORT) };

// Generous: what is waited for takes milliseconds, but on a machine that does much else.
const patienceMs = Number(process.env.PATIENCE_MS ?? 60000);

const equal = (got, expected, what) => {
  try {
    deepStrictEqual(got, expected);
  } catch (error) {
    throw new Error(`${what ?? "value"}: ${error.message}`);
  }
};

const require_ = (condition, what) => {
  if (!condition) throw new Error(what);
};

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Asks until the condition, which may be a promise, gives something true, and returns that.
 * `seen`, asked at a failure, tells what is there instead. */
async function waitUntil(condition, what, seen = () => "") {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    const got = await condition();
    if (got) return got;
    if (Date.now() > deadline) throw new Error(`${what} did not come about ${await seen()}`);
    await sleep(5);
  }
}

/** The call fails, and its message has this text. */
async function fails(text, call) {
  let got;
  try {
    got = await call();
  } catch (error) {
    require_(error.message.includes(text), `it failed with ${error.message}, expected ${text}`);
    return;
  }
  throw new Error(`${JSON.stringify(got)}, expected a failure with ${text}`);
}

/** Tries again until it succeeds: for a caller to whom a lost connection says nothing. */
async function insist(call) {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await sleep(20);
    }
  }
}

/** A limiter's three windows of 300 ms take `wanted` ms at least, in one of three rounds: a library
 * reads its own clock before the server reads its own, which either may stall between. */
async function bestOfThree(wanted, round) {
  const took = [];
  do {
    took.push(await round(`limiter-${took.length}`));
  } while (took.at(-1) < wanted && took.length < 3);
  require_(took.at(-1) >= wanted, `the jobs of all windows began within ${took} ms`);
}

const lines = readline.createInterface({ input: process.stdin });
const told = [];
lines.on("line", (line) => told.push(line));

/** Asks for the server's death; resolves once it is back. The caller need not wait. */
async function killServer() {
  console.log("kill");
  await waitUntil(() => told.shift() === "restarted", "the server's return");
}

const late = async (name) => {
  await sleep(1.5 * patienceMs);
  throw new Error(`${name} came to no end`);
};

/** Runs the parts in order, the names telling how far it came. A failure ends the process. */
function play(parts) {
  (async () => {
    for (const [name, part] of Object.entries(parts)) {
      if (process.env.ONLY && !name.includes(process.env.ONLY)) continue;
      const began = Date.now();
      await Promise.race([part(), late(name)]);
      console.log(`${name}, ${Date.now() - began} ms`);
    }
  })().then(() => {
    console.log("all of it holds");
    process.exit(0);
  }, (error) => {
    console.log(error);
    process.exit(1);
  });
}

module.exports = { address, bestOfThree, equal, fails, insist, killServer, play,
  require: require_, sleep, waitUntil };
