// The longest tasks of the page's thread while it is opened, and while it shows a thousand queues or
// a million jobs that change. Not a test: bench/page --tasks runs it.
import { Visit, base, scenario } from "./browser.mjs";
import { animate, change, trace } from "./trace.mjs";

const ROUNDS = Number(process.env.ROUNDS);
const SECONDS = Number(process.env.SECONDS);
// What is opened, what is seen then, and the queue of the n-th change.
const VIEWS = { queues: ["#/", ".queues tbody tr", (n) => `queue-${(37 * n) % 1000}`],
  jobs: ["#/q/big", ".job-row", () => "big"] };
const [hash, seen, queue_of] = VIEWS[process.env.VIEW];

await scenario(async (browser) => {
  for (let round = 0; round < ROUNDS; ++round) {
    const visit = await Visit.open(browser);
    await visit.remember();
    const traced = await trace(await visit.context.newCDPSession(visit.page));
    await visit.page.goto(`${base}/${hash}`);
    await visit.page.waitForSelector(seen);
    await visit.page.evaluate(animate);
    await change(SECONDS, `new-${round}`, queue_of);
    const { own } = await traced();
    const longest = own.sort((a, b) => b - a).slice(0, 5).map((ms) => ms.toFixed(1));
    console.log(`longest ${longest.join(" ")}`);
    await visit.close();
  }
});
