// What a job's page asks for, and how often: its state as it lives, its payload once a change.
import { Visit, add, api, assert, job, pause, pop, queue, scenario } from "./browser.mjs";

const LEAST_MS = 400;
// What timers and the network take off.
const TOLERANCE_MS = 40;

await scenario(async (browser) => {
  await add("work", "j", { payload: "first" });
  const visit = await Visit.open(browser);
  const { page } = visit;
  const bodies = [];
  const polls = [];
  page.on("request", (request) => {
    const { pathname, search } = new URL(request.url());
    if (request.method() !== "GET" || pathname !== `${queue("work")}/jobs/j`) return;
    (search.includes("with=payload") ? bodies : polls).push(Date.now());
  });
  await visit.log_in();
  await visit.open_job("work", "j");
  await visit.see("pre", "first");
  await pause(3500);
  assert.equal(bodies.length, 1, "payloads of a job that does not change");
  assert(polls.length >= 3, `${polls.length} looks at the job`);
  // An update gives it another payload, and nothing else is to be seen of it.
  await add("work", "j", { payload: "second", ifdup: "UPDATE" });
  await visit.see("pre", "second");
  assert.equal(bodies.length, 2);
  const [taken] = await pop("work", { lease_ms: 60_000 });
  await visit.see(".pill", "active");
  await api("POST", `${queue("work")}/jobs/j:ack`, { lease: taken.lease, result: "the result" });
  await visit.see("pre", "the result");
  await pause(2500);
  // One more where the page asks in the very moment of a change.
  assert(bodies.length <= 5, `${bodies.length} payloads after three changes`);
  // However fast things change.
  await api("POST", `${queue("work")}/jobs/j:retry`, {});
  await visit.see(".pill", "pending");
  polls.length = 0;
  for (const band of ["HIGH", "LOW", "CRITICAL", "NORMAL", "HIGH"]) {
    await page.locator(".page-head select").selectOption(band);
    await visit.see(".notice", `j is in ${band} now.`);
    await page.waitForFunction((name) =>
      document.querySelector(".page-head select").value === name, band);
    await pause(250);
  }
  await pause(1000);
  assert.equal((await job("work", "j")).pri, "HIGH");
  const gaps = polls.slice(1).map((at, index) => at - polls[index]);
  assert(gaps.length >= 2 && Math.min(...gaps) >= LEAST_MS - TOLERANCE_MS, `gaps ${gaps} ms`);
  await visit.close();
});
