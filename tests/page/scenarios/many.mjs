import { Visit, api, assert, job, queue, scenario } from "./browser.mjs";
import { animate, change, trace } from "./trace.mjs";

const SECONDS = 10;
// Limit for a queue's page: eleven requests per turn, one turn a second, and some at the start.
const most_requests = (seconds) => (seconds + 2) * 13;
const MOST_ELEMENTS = 2500;
// The page drops no more than a few frames in a row, and is never deaf for a time that a person
// would notice. Of tasks, and of what comes between two frames, the CPU time counts, which other
// work on the machine does not lengthen.
const LONGEST_TASK_MS = 100;
const P95_FRAME_MS = 50;

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

// Some seconds of changes, traced: returns what is wrong.
async function watch({ page, devtools, counted, round }) {
  const script_s = async () => (await devtools.send("Performance.getMetrics")).metrics
    .find((metric) => metric.name === "ScriptDuration").value;
  counted.asked = 0;
  const traced = await trace(devtools);
  const before = await script_s();
  const { changes, seconds } = await change(SECONDS, `new-${round}`, () => "big");
  const requests = counted.asked;
  const script = (await script_s() - before) / seconds;
  const elements = await page.evaluate(() => document.querySelectorAll("*").length);
  console.log(`${changes} changes and ${requests} requests in ${seconds.toFixed(1)} s`);
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
