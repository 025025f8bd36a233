import { Visit, add, api, assert, job, pause, queue, scenario } from "./browser.mjs";

const SECONDS = 10;
const UPDATES_A_SECOND = 50;
// Limit for a queue's page: eleven requests per turn, one turn every 800 ms, and some at the start.
const MOST_REQUESTS = (SECONDS / 0.8 + 2) * 13;
const MOST_ELEMENTS = 2500;
// On a machine that has other work to do: the page drops no more than a few frames in a row, and
// is never deaf for a time that a person would notice. Of a task its CPU time counts, which other
// work does not lengthen.
const LONGEST_TASK_MS = 100;
const P95_FRAME_MS = 50;

// Frame times, as the browser itself measures them.
function observe() {
  const seen = { frames: [] };
  globalThis.seen = seen;
  let last = performance.now();
  const frame = (now) => {
    seen.frames.push(now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

const ms = (value) => `${value.toFixed(1)} ms`;

function report({ frames, tasks, elements, script }) {
  frames.sort((a, b) => a - b);
  const at = (share) => frames[Math.min(frames.length - 1, Math.floor(share * frames.length))];
  const longest = Math.max(0, ...tasks);
  console.log(`${frames.length} frames: p50 ${ms(at(0.5))}, p95 ${ms(at(0.95))}, `
    + `p99 ${ms(at(0.99))}, max ${ms(at(1))}; ${tasks.length} tasks, the longest `
    + `${ms(longest)} of CPU; ${elements} elements; script ${(100 * script / SECONDS).toFixed(1)} % `
    + "of the time");
  assert(elements < MOST_ELEMENTS, `${elements} elements`);
  assert(longest < LONGEST_TASK_MS, `a task of ${ms(longest)}`);
  assert(at(0.95) < P95_FRAME_MS, `a p95 of ${ms(at(0.95))} a frame`);
}

// The tasks of the page's thread until the returned function is called: their CPU in milliseconds.
async function trace(devtools) {
  const events = [];
  devtools.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  const complete = new Promise((done) => devtools.once("Tracing.tracingComplete", done));
  await devtools.send("Tracing.start", { transferMode: "ReportEvents",
    traceConfig: { includedCategories: ["devtools.timeline", "toplevel"] } });
  return async () => {
    await devtools.send("Tracing.end");
    await complete;
    const tasks = events.filter(({ name, tdur }) => /(^|::)RunTask$/.test(name) && tdur > 0);
    assert(tasks.length > 100, `${tasks.length} tasks were traced`);
    return tasks.map(({ tdur }) => tdur / 1000);
  };
}

await scenario(async (browser) => {
  await api("PATCH", queue("big"), { max_active: 20 });
  const visit = await Visit.open(browser);
  const { page } = visit;
  await visit.log_in();
  await visit.see(".card", "big");
  await visit.open_queue("big");
  await visit.see_figure("Pending", "1.00M");
  await visit.see(".job-row", "#25");
  let asked = 0;
  page.on("response", () => { asked += 1; });
  const devtools = await visit.context.newCDPSession(page);
  await devtools.send("Performance.enable");
  const script_s = async () => (await devtools.send("Performance.getMetrics")).metrics
    .find((metric) => metric.name === "ScriptDuration").value;
  await page.evaluate(observe);
  const traced = await trace(devtools);
  const before = await script_s();
  const began = Date.now();
  let n = 0;
  for (; Date.now() - began < SECONDS * 1000; ++n) {
    await add("big", `new-${n}`, { pri: "CRITICAL" });
    await pause(Math.max(0, began + (n + 1) * 1000 / UPDATES_A_SECOND - Date.now()));
  }
  const script = await script_s() - before;
  const tasks = await traced();
  const seen = await page.evaluate(() => ({ ...globalThis.seen,
    elements: document.querySelectorAll("*").length }));
  console.log(`${n} changes and ${asked} requests in ${SECONDS} s`);
  report({ ...seen, tasks, script });
  assert(asked < MOST_REQUESTS, `${asked} requests in ${SECONDS} s`);
  assert(n > SECONDS * UPDATES_A_SECOND * 0.8, `only ${n} changes`);
  // A page further on, and a job far behind with its place.
  await visit.click(".tabs button", "pending");
  await visit.see(".job-row", "#25");
  await visit.click(".jobs button", "Next page");
  await visit.see(".job-row", "#26");
  const last = "job-999999";
  const { position } = await job("big", last);
  assert(position > 900_000);
  await visit.open_job("big", last);
  await visit.see(".words", "jobs are before it");
  await visit.see(".story li", "Added");
  await visit.close();
});
