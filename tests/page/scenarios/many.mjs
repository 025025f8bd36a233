import { Visit, add, api, assert, job, pause, queue, scenario } from "./browser.mjs";

const SECONDS = 10;
const UPDATES_A_SECOND = 50;
// Limit for a queue's page: eleven requests per turn, one turn a second, and some at the start.
const most_requests = (seconds) => (seconds + 2) * 13;
const MOST_ELEMENTS = 2500;
// The page drops no more than a few frames in a row, and is never deaf for a time that a person
// would notice. Of tasks, and of what comes between two frames, the CPU time counts, which other
// work on the machine does not lengthen.
const LONGEST_TASK_MS = 100;
const P95_FRAME_MS = 50;

// Frames, until the page is closed.
function animate() {
  const frame = () => requestAnimationFrame(frame);
  frame();
}

const ms = (value) => `${value.toFixed(1)} ms`;

// What is wrong with a trace, in words.
function report({ frames, tasks, elements, script, requests, seconds }) {
  frames.sort((a, b) => a - b);
  const at = (share) => frames[Math.min(frames.length - 1, Math.floor(share * frames.length))];
  const longest = Math.max(0, ...tasks);
  console.log(`${frames.length} frames, CPU of each: p50 ${ms(at(0.5))}, p95 ${ms(at(0.95))}, `
    + `p99 ${ms(at(0.99))}, max ${ms(at(1))}; ${tasks.length} tasks, the longest `
    + `${ms(longest)} of CPU; ${elements} elements; script ${(100 * script).toFixed(1)} % `
    + "of the time");
  assert(elements < MOST_ELEMENTS, `${elements} elements`);
  assert(requests < most_requests(seconds), `${requests} requests in ${seconds} s`);
  if (longest >= LONGEST_TASK_MS) return `a task of ${ms(longest)}`;
  if (at(0.95) >= P95_FRAME_MS) return `a p95 of ${ms(at(0.95))} a frame`;
  return undefined;
}

// Until the returned function is called: the CPU in milliseconds of each task, and of the page's
// thread from each frame to the next.
async function trace(devtools) {
  const events = [];
  const collect = ({ value }) => events.push(...value);
  devtools.on("Tracing.dataCollected", collect);
  const complete = new Promise((done) => devtools.once("Tracing.tracingComplete", done));
  await devtools.send("Tracing.start", { transferMode: "ReportEvents",
    traceConfig: { includedCategories: ["devtools.timeline", "toplevel"] } });
  return async () => {
    await devtools.send("Tracing.end");
    await complete;
    devtools.off("Tracing.dataCollected", collect);
    const tasks = events.filter(({ name, tdur }) => /(^|::)RunTask$/.test(name) && tdur > 0);
    assert(tasks.length > 100, `${tasks.length} tasks were traced`);
    const fired = events.filter(({ name }) => name === "FireAnimationFrame");
    assert(fired.length > 100, `${fired.length} frames were traced`);
    const { pid, tid } = fired[0];
    const own = tasks.filter((task) => task.pid === pid && task.tid === tid)
      .sort((a, b) => a.ts - b.ts || b.dur - a.dur);
    const frames = [];
    let end = -Infinity;
    for (const { ts, dur, tdur } of own) {
      if (ts < end) continue;  // a part of the one before
      end = ts + dur;
      if (fired.some((frame) => frame.ts >= ts && frame.ts < end)) frames.push(0);
      if (frames.length > 0) frames[frames.length - 1] += tdur / 1000;
    }
    return { tasks: tasks.map(({ tdur }) => tdur / 1000), frames };
  };
}

// Some seconds of changes, traced: returns what is wrong.
async function watch({ page, devtools, counted, round }) {
  const script_s = async () => (await devtools.send("Performance.getMetrics")).metrics
    .find((metric) => metric.name === "ScriptDuration").value;
  counted.asked = 0;
  const traced = await trace(devtools);
  const before = await script_s();
  const began = Date.now();
  const adds = [];
  while (adds.length < SECONDS * UPDATES_A_SECOND) {
    adds.push(add("big", `new-${round}-${adds.length}`, { pri: "CRITICAL" }));
    await pause(Math.max(0, began + adds.length * 1000 / UPDATES_A_SECOND - Date.now()));
  }
  await Promise.all(adds);
  const seconds = (Date.now() - began) / 1000;
  const requests = counted.asked;
  const script = (await script_s() - before) / seconds;
  const elements = await page.evaluate(() => document.querySelectorAll("*").length);
  console.log(`${adds.length} changes and ${requests} requests in ${seconds.toFixed(1)} s`);
  return report({ ...await traced(), elements, script, requests, seconds });
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
  const counted = { asked: 0 };
  page.on("response", () => { counted.asked += 1; });
  const asked = new Set();
  const note = (request) => asked.add(request.url().slice(visit.at.length));
  page.on("request", note);
  const devtools = await visit.context.newCDPSession(page);
  await devtools.send("Performance.enable");
  await page.evaluate(animate);
  // One task may be long by what a virtual machine takes from it.
  const faults = [];
  for (let round = 0; round < 3; ++round) {
    const fault = await watch({ page, devtools, counted, round });
    if (fault === undefined) break;
    faults.push(fault);
  }
  assert(faults.length < 3, faults.join(", "));
  page.off("request", note);
  for (const target of asked) console.log(`asked: ${target}`);
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
