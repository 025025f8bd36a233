// How long a browser that has not seen the page takes until it paints, and until it shows figures.
// Not a test: bench/page runs it.
import { Visit, add, base, pop, queue, api, scenario } from "./browser.mjs";

const ROUNDS = Number(process.env.ROUNDS);
const VIEWS = { overview: ["#/", ".card .figures strong"],
  queue: ["#/q/exec", ".figure-row .figure strong"] };

async function fill() {
  for (const name of ["exec", "mail", "render"]) {
    await api("PATCH", `${queue(name)}?create=true`, { max_active: 8 });
    await api("POST", `${queue(name)}/jobs`, Array.from({ length: 200 }, (_, n) => ({
      id: `job-${n}`, payload: "{}", pri: ["HIGH", "NORMAL", "LOW"][n % 3], group: `g${n % 9}` })));
    await pop(name, { count: 8, lease_ms: 600_000 });
  }
}

// Milliseconds since the navigation began.
async function look(browser, [hash, figure]) {
  const visit = await Visit.open(browser);
  const { page } = visit;
  await visit.remember();
  await page.goto(`${base}/${hash}`, { waitUntil: "commit" });
  const shown = await page.waitForFunction((selector) => {
    const text = document.querySelector(selector)?.textContent;
    return text && text !== "–" && document.querySelector(selector).checkVisibility()
      ? performance.now() : 0;
  }, figure);
  const paint = await page.evaluate(() =>
    performance.getEntriesByName("first-contentful-paint")[0].startTime);
  const figures = await shown.jsonValue();
  await visit.close();
  return { paint, figures };
}

// The CPU that the page's thread takes for a first paint, in milliseconds: other work on the machine
// does not lengthen it.
async function cpu_of_paint(browser, [hash]) {
  const visit = await Visit.open(browser);
  const devtools = await visit.context.newCDPSession(visit.page);
  const events = [];
  devtools.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  await devtools.send("Tracing.start", { transferMode: "ReportEvents",
    traceConfig: { includedCategories: ["blink.user_timing", "loading", "toplevel"] } });
  await visit.remember();
  await visit.page.goto(`${base}/${hash}`);
  await visit.page.waitForFunction(() =>
    performance.getEntriesByName("first-contentful-paint").length > 0);
  const complete = new Promise((done) => devtools.once("Tracing.tracingComplete", done));
  await devtools.send("Tracing.end");
  await complete;
  await visit.close();
  const painted = events.find(({ name }) => name === "firstContentfulPaint");
  const { ts: began } = events.find(({ name, args }) => name === "navigationStart"
    && args.data?.documentLoaderURL?.startsWith(base));
  return events.filter(({ name, pid, tid, ts, tdur }) => /(^|::)RunTask$/.test(name) && tdur > 0
    && pid === painted.pid && tid === painted.tid && ts >= began && ts < painted.ts)
    .reduce((sum, { tdur }) => sum + tdur / 1000, 0);
}

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

await scenario(async (browser) => {
  await fill();
  // A browser that has just been started has other work to do.
  await look(browser, VIEWS.overview);
  for (const [name, view] of Object.entries(VIEWS)) {
    const seen = [];
    for (let round = 0; round < ROUNDS; ++round) seen.push(await look(browser, view));
    const cpu = [];
    for (let round = 0; round < ROUNDS; ++round) cpu.push(await cpu_of_paint(browser, view));
    const words = (times) => `${median(times).toFixed(0)} ms (${Math.min(...times).toFixed(0)} to `
      + `${Math.max(...times).toFixed(0)})`;
    const of = (what) => words(seen.map((each) => each[what]));
    console.log(`${name}: first paint ${of("paint")}, first figures ${of("figures")}, CPU of the `
      + `page until its first paint ${words(cpu)}`);
  }
});
