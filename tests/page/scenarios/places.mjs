// The views that are not about one queue: all workers, the server's facts; and a search in payloads.
import { Visit, add, api, assert, pop, queue, scenario, tokens, until } from "./browser.mjs";

async function workers(visit) {
  const { page } = visit;
  const names = () => page.locator(".all-workers th[scope=row]").allTextContents();
  await page.keyboard.press("w");
  await visit.see("main.workers h1", "Workers");
  // What had the focus went with the view before: a screen reader says the new one's heading.
  await page.waitForFunction(() => document.activeElement.matches("main.workers h1"));
  await visit.see(".all-workers tr", /^grace/);
  // The one whose job began first is first; those without a job come last.
  assert.deepEqual(await names(), ["ada", "grace", "idle"]);
  await visit.see(".all-workers tr", /^adaruns 2m1 for \d+ .*, e1 for \d+ .*exec, mail/);
  await visit.see(".all-workers tr", /^idleruns nothing.*mail1/);
  await visit.see(".sum", "3 workers in 2 queues: 2 run 3 jobs, 0 wait for a job, 1 does neither.");
  await visit.see_accessible("workers");
  await visit.picture("workers-light");
  // It is live.
  const asking = api("POST", `${queue("exec")}:pop`, { worker: "waits", wait_ms: 30_000 });
  await visit.see(".all-workers tr", /^waitswaits for a job/);
  await add("exec", "e2");
  await asking;
  await visit.see(".all-workers tr", /^waitsruns 1e2/);
  await page.getByLabel("Filter workers").fill("GRA");
  await visit.see_none(".all-workers tr", "ada");
  assert.deepEqual(await names(), ["grace"]);
  assert(page.url().endsWith("#/workers?find=GRA"), page.url());
  await page.reload();
  await visit.see(".all-workers tr", /^grace/);
  assert.deepEqual(await names(), ["grace"]);
  // To what it runs, and to its jobs of a queue.
  await page.locator(".all-workers td a", { hasText: "m2" }).press("Enter");
  await visit.see("main.job h1", "m2");
  await page.waitForFunction(() => document.activeElement.matches("main.job h1"));
  await page.goBack();
  await visit.click(".all-workers td a", "mail");
  await visit.see(".chip-filter", "worker grace");
  await visit.see(".job-row", "m2");
  await page.keyboard.press("w");
  await visit.see(".all-workers tr", /^ada/);
  await page.keyboard.press("Escape");
  await visit.see(".card", "mail");
}

const fact = (visit, panel, name) => visit.page.evaluate(([title, key]) => {
  const found = [...document.querySelectorAll(".fact-panels .panel")]
    .find((each) => each.querySelector("h2").textContent === title);
  const names = [...found.querySelectorAll("dt")];
  return names.find((each) => each.textContent === key).nextElementSibling.textContent;
}, [panel, name]);

async function server(visit) {
  await visit.page.keyboard.press("i");
  await visit.see("main.server dt", "Version");
  const told = await api("GET", "/api/v1/server");
  assert.equal(await fact(visit, "Server", "Version"), `Sluice ${told.version}`);
  assert.match(await fact(visit, "Server", "Up for"), /^\d.*[sm], since \d\d:\d\d:\d\d$/);
  for (const protocol of ["Redis protocol", "HTTP"]) {
    assert.match(await fact(visit, "Connections", protocol), /^\d+ of at most [\d,]+$/);
  }
  assert.match(await fact(visit, "Connections", "HTTP requests"), /^[1-9][\d,]* since the start$/);
  await visit.see(".empty", "Nobody has changed anything");
  assert.match(await fact(visit, "Memory", "Used"), /^[\d.]+ MB, without a limit \(maxmemory\)$/);
  assert.match(await fact(visit, "Journal", "Kept"), /^A change is on the disk before it is answered/);
  assert.match(await fact(visit, "Checkpoint", "Failed"), /^0 since the start$/);
  assert.equal(await visit.page.locator(".fact-panels .panel:visible h2")
    .filter({ hasText: "Group" }).count(), 0);
  await visit.see_accessible("server");
  await visit.picture("server-light");
}

async function checkpoint(visit) {
  const completed = async () => (await api("GET", "/api/v1/server")).checkpoint.completed;
  const before = await completed();
  await visit.click(".page-head button", "Checkpoint now");
  await visit.see(".notice", "The checkpoint was started");
  await until(async () => await completed() > before, () => "a new checkpoint");
  await visit.see(".fact-panels dd", /ago, \d\d:\d\d:\d\d, /);
}

// The same refusal time and again leaves the button that asks again in its place.
async function refused(visit) {
  const { page } = visit;
  const path = "/api/v1/server";
  const facts = (url) => url.pathname === path;
  visit.faults.allowed.push("status of 503");
  await page.route(facts, (route) => route.fulfill({ status: 503, json: { code: "BUSY",
    detail: "A script keeps the server busy." } }));
  await visit.go("#/");
  await visit.see(".card", "mail");
  await visit.click(".places a", "Server");
  await visit.see(".empty.bad", "A script keeps the server busy.");
  await visit.see_in_focus(page.locator(".empty.bad button"), path);
  await page.unroute(facts);
  await visit.see("main.server dt", "Version");
}

// Who changed what, with links to it.
async function changes(visit) {
  const { page } = visit;
  await visit.see(".changes li", /ago, .*admin, token [0-9a-f]{8}Started a checkpoint/);
  await api("PATCH", queue("mail"), { paused: "out" });
  await visit.see(".changes li", /operate, token [0-9a-f]{8}Set mail: paused out/);
  await api("PATCH", `${queue("mail")}?group_glob=g*`, { max_active: 3 });
  await visit.see(".changes li", "Set mail, group g*: max_active 3");
  await api("PATCH", `${queue("mail")}?was=paused=out`, { paused: "none" });
  await visit.see(".changes li", "Set mail: paused none (was paused out)");
  for (const id of ["x1", "x2"]) {
    await add("mail", id);
    await api("POST", `${queue("mail")}/jobs/${id}:cancel`, { reason: "<b>no</b>" });
  }
  await visit.see(".changes li", "Cancelled mail / x1 and 1 more: REASON <b>no</b>");
  await api("POST", `${queue("mail")}/jobs:purge`, { where: { state: ["cancelled"] } });
  await visit.see(".changes li", "Purged 2 jobs of mail: STATE cancelled");
  await visit.see_accessible("changes");
  await visit.picture("changes-light");
  await visit.click(".changes a", "x1");
  await visit.see(".empty", "No such job");
  await page.goBack();
  await visit.click(".changes a", "mail");
  await visit.see("main.queue h1", "mail");
}

// A part of the payload, looked for by the server.
async function payloads(visit) {
  const { page } = visit;
  const rows = () => page.locator(".job-row a.id").allTextContents();
  await add("papers", "p1", { payload: '{"to": "Ada Lovelace"}' });
  await add("papers", "p2", { payload: '{"to": "Grace Hopper"}' });
  await add("papers", "p3", { payload: '{"to": "ada@example.org"}', pri: "LOW" });
  await visit.go("#/q/papers?state=pending");
  await visit.see(".job-row", "p2");
  await page.getByLabel("payload contains").fill("ADA");
  await visit.see_none(".job-row", "p2");
  await visit.see(".job-row", "p3");
  assert.deepEqual(await rows(), ["p1", "p3"]);
  assert(page.url().endsWith("?state=pending&payload=ADA"), page.url());
  await page.reload();
  await visit.see(".job-row", "p3");
  assert.deepEqual(await rows(), ["p1", "p3"]);
  // What is done with all of them is done with these.
  await visit.click(".jobs button", "Cancel all these…");
  await visit.see("dialog", "Only these: payload contains “ADA”.");
  await visit.see("dialog", "2 pending jobs");
  await visit.click("dialog button", "Cancel them");
  await visit.see(".jobs .empty", "No such job");
  await page.getByLabel("payload contains").fill("");
  await visit.see(".job-row", "p2");
  assert.deepEqual(await rows(), ["p2"]);
}

// A worker far down a queue's list is made quiet; one in the list of all is so in all its queues.
async function quiet(visit) {
  const { page } = visit;
  await api("POST", `${queue("crowd")}/jobs`, Array.from({ length: 40 }, (_, n) => ({
    id: `c${n}`, payload: "" })));
  for (let n = 0; n < 40; ++n) await pop("crowd", { worker: `w-${n}`, lease_ms: 600_000 });
  const is_quiet = async (name, worker) =>
    (await api("GET", `${queue(name)}/config?worker=${worker}`)).quiet;
  await visit.open_queue("crowd");
  await visit.see_figure("Pending", "0");
  await page.locator("h2", { hasText: "Workers" }).scrollIntoViewIfNeeded();
  await visit.see(".worker-row", "w-29");
  assert.equal(await page.locator(".worker-row").count(), 30);
  await page.locator("button", { hasText: "Show more workers (10)" }).press("Enter");
  assert.equal(await page.locator(".worker-row").count(), 40);
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "w-30");
  const last = page.locator(".worker-row", { hasText: "w-39" });
  await last.getByText("Make it quiet").click();
  await last.locator(".pill:visible", { hasText: "quiet" }).waitFor();
  assert.equal(await is_quiet("crowd", "w-39"), "on");
  await visit.go("#/workers?find=ada");
  await visit.see(".all-workers tr", /^ada/);
  await page.getByLabel("Make it quiet: ada").click();
  await visit.see(".notice", "ada gets no new jobs now.");
  await visit.see(".all-workers .pill", "quiet");
  // The page knows it of both.
  await page.getByLabel("Give it jobs: ada").waitFor();
  for (const name of ["mail", "exec"]) assert.equal(await is_quiet(name, "ada"), "on");
  // In one queue it gets jobs again: the rest is what is changed, and taken back.
  await api("PATCH", `${queue("mail")}?worker=ada`, { quiet: false });
  await page.getByLabel("Make it quiet: ada").click();
  await page.getByLabel("Give it jobs: ada").click();
  await visit.see(".notice", "ada gets jobs again.");
  for (const name of ["mail", "exec"]) assert.equal(await is_quiet(name, "ada"), "off");
  await page.getByLabel("Make it quiet: ada").waitFor();
  await page.locator(".notice", { hasText: "gets jobs again" }).getByText("Undo").click();
  await page.getByLabel("Give it jobs: ada").waitFor();
  for (const name of ["mail", "exec"]) assert.equal(await is_quiet(name, "ada"), "on");
}

await scenario(async (browser) => {
  for (const id of ["m1", "m2", "m3"]) await add("mail", id);
  await add("exec", "e1");
  await pop("mail", { worker: "ada", id: "m1", lease_ms: 600_000 });
  await pop("mail", { worker: "grace", id: "m2", lease_ms: 600_000 });
  await pop("exec", { worker: "ada", id: "e1", lease_ms: 600_000 });
  const [{ lease }] = await pop("mail", { worker: "idle", id: "m3" });
  await api("POST", `${queue("mail")}/jobs/m3:ack`, { lease });
  const visit = await Visit.open(browser, { hasty: true });
  visit.faults.allowed.push("status of 404");
  await visit.log_in(tokens.admin);
  await visit.see(".card", "mail");
  await visit.play([workers, server, checkpoint, refused, changes, payloads, quiet]);
  await visit.close();
});
