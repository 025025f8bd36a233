// Jobs that have ended: filters that stand in the address, failures by their errors, selections.
import { Visit, add, api, assert, job, pop, queue, scenario, until } from "./browser.mjs";

const ERRORS = ["Timeout after 30 ms", "Timeout after 1250 ms", "Timeout after 7 ms",
  "db 7f3a01 refused"];

async function end(id, mode, options = {}) {
  await add("mail", id, { pri: "CRITICAL", group: `g${id.length}`, tags: { lang: "c++" },
    ...options });
  const [{ lease }] = await pop("mail", { id });
  const path = `${queue("mail")}/jobs/${id}`;
  if (mode === "ack") await api("POST", `${path}:ack`, { lease });
  else await api("POST", `${path}:nack`, { lease, mode: "fatal", error: mode });
}

const rows = (visit) => visit.page.locator(".job-row a.id").allTextContents();
const see_rows = (visit, wanted) => visit.page.waitForFunction((ids) =>
  [...document.querySelectorAll(".job-row a.id")].map((a) => a.textContent).join() === ids,
wanted.join());

async function filters(visit) {
  const { page } = visit;
  await visit.see(".tabs button", /^failed 4$/);
  await visit.click("a.figure", /^Failed4in all$/);
  await see_rows(visit, ["bad-3", "bad-2", "bad-1", "bad-0"]);
  await visit.see(".job-row .time", /ago, \d\d:\d\d:\d\d/);
  await visit.see(".tabs button", /^completed 1$/);
  await page.getByLabel("error contains").fill("TIMEOUT");
  await see_rows(visit, ["bad-2", "bad-1", "bad-0"]);
  await page.getByLabel("id contains").fill("-1");
  await see_rows(visit, ["bad-1"]);
  assert(page.url().endsWith("?state=failed&error=TIMEOUT&id=-1"), page.url());
  await page.reload();
  await see_rows(visit, ["bad-1"]);
  assert.equal(await page.getByLabel("error contains").inputValue(), "TIMEOUT");
  await page.getByLabel("id contains").fill("");
  await page.getByLabel("error contains").fill("");
  await see_rows(visit, ["bad-3", "bad-2", "bad-1", "bad-0"]);
  await page.getByLabel("time").selectOption({ label: "last hour" });
  await visit.see(".chip-filter", "from ");
  await see_rows(visit, ["bad-3", "bad-2", "bad-1", "bad-0"]);
  await page.goBack();
  await visit.see_none(".chip-filter");
  // What is typed changes no other filter, not even one that is shown otherwise than it is.
  const group = "👩\u200d💻";
  await end("joined", "ack", { group });
  await visit.go(`#/q/mail?state=completed&group=${encodeURIComponent(group)}`);
  await see_rows(visit, ["joined"]);
  await page.getByLabel("id contains").fill("ine");
  await page.waitForFunction(() => location.hash.endsWith("&id=ine"));
  await see_rows(visit, ["joined"]);
  assert(page.url().includes(`group=${encodeURIComponent(group)}&`), page.url());
  await api("POST", `${queue("mail")}/jobs:purge`, { ids: ["joined"] });
  await visit.go("#/q/mail?state=failed");
  await see_rows(visit, ["bad-3", "bad-2", "bad-1", "bad-0"]);
}

// What a link says wrongly is left out, or said.
async function wrong_links(visit) {
  await visit.go("#/");
  await visit.go("#/q/mail?state=failed&since=abc&until=1e3");
  await see_rows(visit, ["bad-3", "bad-2", "bad-1", "bad-0"]);
  await visit.see_none(".chip-filter");
  visit.faults.allowed.push("status of 422");
  await visit.go("#/q/mail?state=failed&tag=lang");
  await visit.see(".banner", "This is not up to date");
  await visit.go("#/q/mail?state=failed");
  await see_rows(visit, ["bad-3", "bad-2", "bad-1", "bad-0"]);
  await visit.see_none(".banner");
}

// A filter that is not UTF-8 is one for a change too.
async function purge_a_group(visit) {
  await end("odd", "ack", { group: undefined, group_base64: "/w==" });
  await visit.go("#/q/mail?state=completed&group=%FF");
  await see_rows(visit, ["odd"]);
  await visit.click(".jobs button", "Purge all these…");
  await visit.see("dialog", "1 completed job and");
  await visit.see("dialog", "Only these: group \\xff.");
  await visit.click("dialog button", "Purge them");
  await visit.see(".notice", "1 job purged");
  await visit.go("#/q/mail?state=completed");
  await see_rows(visit, ["good"]);
  await visit.go("#/q/mail?state=failed");
}

async function by_error(visit) {
  const { page } = visit;
  // There are more groups than are told.
  const failures = (url) => url.pathname === `${queue("mail")}/failures`;
  await page.route(failures, async (route) => {
    const answer = await (await route.fetch()).json();
    await route.fulfill({ json: { ...answer, others: 7 } });
  });
  await visit.click(".filters button", "By error");
  await visit.see(".failures", "7 failed jobs have other errors");
  await page.unroute(failures);
  await visit.see_none(".failures", "other errors");
  await visit.see_in_focus(page.locator(".failure button.pattern").first(),
    `${queue("mail")}/failures`);
  // They are counted however many others stand before them.
  const retry = (url) => url.pathname === `${queue("mail")}/jobs:retry`;
  await page.route(retry, (route) => {
    const { cursor } = route.request().postDataJSON();
    return route.fulfill({ json: { dry_run: true, count: cursor ? 3 : 0,
      cursor: cursor ? null : "further" } });
  });
  await page.locator(".failure", { hasText: "Timeout" }).getByText("Retry…").click();
  await visit.see("dialog", "3 failed jobs will wait again");
  await page.keyboard.press("Escape");
  await visit.see_none("dialog");
  await page.unroute(retry);
  await visit.see(".failure", /3 jobs.*Timeout after # ms/);
  await visit.see(".failure", /1 job.*db # refused/);
  await visit.click(".failure button.pattern", "Timeout after # ms");
  await see_rows(visit, ["bad-2", "bad-1", "bad-0"]);
  await visit.see(".chip-filter", "Timeout after # ms");
  await page.goBack();
  await page.locator(".failure", { hasText: "db #" }).getByText("Retry…").click();
  await visit.see("dialog", "1 failed job will wait again");
  await visit.click("dialog button", "Retry them");
  await visit.see(".notice", "1 job wait again");
  assert.equal((await job("mail", "bad-3")).state, "pending");
  await visit.see_none(".failure", "db # refused");
  // A traceback is told by the line that names the exception.
  await end("py", 'Traceback (most recent call last):\n  File "a.py", line 3\nKeyError: 17\n');
  await visit.see(".failure", /1 job.*KeyError: #/);
  await visit.click(".filters button", "One by one");
  await see_rows(visit, ["py", "bad-2", "bad-1", "bad-0"]);
  await visit.see(".job-row .note", /^KeyError: 17$/);
  await api("POST", `${queue("mail")}/jobs:purge`, { ids: ["py"] });
  await see_rows(visit, ["bad-2", "bad-1", "bad-0"]);
}

// A link to a list shows the list, whatever is drawn above it afterwards.
async function deep_link(visit) {
  const { page } = visit;
  for (let n = 0; n < 12; ++n) await add("long", `j-${n}`, { pri: ["HIGH", "LOW"][n % 2] });
  await page.goto(`${visit.at}/#/`);
  await visit.see(".card", "long");
  await visit.go("#/q/long?state=pending");
  await see_rows(visit, Array.from({ length: 12 }, (_, n) =>
    `j-${n < 6 ? 2 * n : 2 * (n - 6) + 1}`));
  await page.waitForFunction(() => {
    const { top } = document.querySelector(".panel.jobs").getBoundingClientRect();
    return top > 40 && top < 140;
  });
  await visit.go("#/q/mail?state=failed");
}

// A page of a list is a part of the address; of another queue it is the first one.
async function pages(visit) {
  const { page } = visit;
  await api("POST", `${queue("paged")}/jobs`, Array.from({ length: 30 }, (_, n) => ({
    id: `p-${n}`, payload: "" })));
  const wanted = (from, to) => Array.from({ length: to - from }, (_, n) => `p-${from + n}`);
  await visit.go("#/q/paged?state=pending");
  await see_rows(visit, wanted(0, 25));
  await visit.click(".jobs button", "Next page");
  await see_rows(visit, wanted(25, 30));
  // The button is gone; who has pressed it is at what it has shown.
  assert.equal(await page.evaluate(() => document.activeElement.dataset.row), "p-25");
  await visit.click(".job-row a.id", "p-27");
  await visit.see("main.job h1", "p-27");
  await page.goBack();
  await see_rows(visit, wanted(25, 30));
  await page.goBack();
  await see_rows(visit, wanted(0, 25));
  visit.faults.allowed.push("status of 422");
  await visit.go("#/q/paged?state=pending&from=nonsense");
  await see_rows(visit, wanted(0, 25));
  assert(page.url().endsWith("?state=pending"), page.url());
  await page.getByLabel("Choose p-0", { exact: true }).check();
  await visit.click(".selection button", "none");
  await visit.go("#/q/mail?state=failed");
}

// An undo puts back what was pending, and nothing else.
async function mixed_selection(visit) {
  const { page } = visit;
  await add("mixed", "now");
  await add("mixed", "later", { delay_ms: 600_000 });
  await add("mixed", "needy", { needs: ["later"] });
  await add("mixed", "put-off");
  await add("mixed", "run");
  await api("PATCH", queue("mixed"), { paused: "out" });
  await visit.go("#/q/mixed?since=1");
  await visit.see(".job-row", "now");
  await page.getByLabel("Choose now").check();
  await visit.click(".selection button", "all on this page");
  await visit.click(".selection button", "Cancel…");
  await visit.see("dialog h2", "Cancel 5 jobs?");
  await visit.see("dialog", "2 of 5 cannot be put back: there is no undo");
  // What was pending when it was chosen is so no more; the page need not ask for each one.
  await api("PATCH", `${queue("mixed")}/jobs/put-off`, { delay_ms: 600_000 });
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await visit.click("dialog button", "Cancel them");
  const told = page.locator(".notice", { hasText: "jobs cancelled." });
  await told.waitFor();
  // One is put back by somebody else, and runs.
  await api("POST", `${queue("mixed")}/jobs/run:retry`, {});
  await api("PATCH", queue("mixed"), { paused: "none" });
  const [{ lease }] = await pop("mixed", { id: "run" });
  await api("POST", `${queue("mixed")}/jobs/run:ack`, { lease });
  await told.getByText("Undo").click();
  await visit.see(".notice", "1 job wait again");
  await visit.see(".notice.bad", "1 job not put back: no longer cancelled");
  assert.deepEqual(asked.filter((url) => url.includes("/mixed/jobs/")), []);
  const states = await Promise.all(["now", "later", "needy", "put-off", "run"].map((id) =>
    job("mixed", id)));
  assert.deepEqual(states.map(({ state }) => state),
    ["pending", "cancelled", "cancelled", "cancelled", "completed"]);
  await visit.go("#/q/mail?state=failed");
}

// What a job's own buttons change is seen in a list that stands still, and in what is chosen.
async function changed_by_its_row(visit) {
  const { page } = visit;
  await add("own", "one");
  await api("PATCH", queue("own"), { paused: "out" });
  await visit.go("#/q/own?since=1");
  await visit.see(".job-row", "one");
  await page.getByLabel("Choose one").check();
  const act = async (key, button) => {
    await page.locator('.job-row a[data-row="one"]').focus();
    await page.keyboard.press(key);
    await visit.click("dialog button.primary", button);
    await visit.see_none("dialog");
  };
  await act("c", "Cancel the job");
  await visit.see('.job-row[data-state="cancelled"]', "one");
  await visit.see(".selection button", "Retry…");
  await visit.see_none(".selection button", "Cancel…");
  // That the server does not tell of it is no end of it.
  const own = (url) => url.pathname === `${queue("own")}/jobs/one`;
  visit.faults.allowed.push("status of 503");
  await page.route(own, (route) => route.fulfill({ status: 503,
    json: { code: "BUSY", detail: "The server is busy." } }));
  const refused = page.waitForResponse((response) => own(new URL(response.url())));
  await act("r", "Retry");
  await refused;
  for (let look = 0; look < 2; ++look) {
    await page.waitForResponse((response) => new URL(response.url()).pathname === queue("own"));
  }
  assert.deepEqual(await rows(visit), ["one"]);
  await visit.see(".selection", "1 chosen");
  await page.unroute(own);
  await act("r", "Retry");
  await visit.see('.job-row[data-state="pending"]', "one");
  await api("POST", `${queue("own")}/jobs/one:cancel`, {});
  await visit.go("#/q/mail?state=failed");
}

// One tab is reached by Tab, the others by the arrow keys; it names the panel that it shows.
async function tabs(visit) {
  const { page } = visit;
  const focused = () => page.evaluate(() => document.activeElement.dataset.state);
  const tab = page.locator(".jobs [role=tab][tabindex='0']");
  assert.equal(await tab.getAttribute("data-state"), "failed");
  await tab.focus();
  for (const [key, name] of [["ArrowRight", "completed"], ["End", "expired"],
    ["ArrowRight", "next"], ["ArrowLeft", "expired"], ["Home", "next"], ["ArrowRight", "pending"]]) {
    await page.keyboard.press(key);
    assert.equal(await focused(), name);
  }
  // With another key it is the browser's own.
  await page.keyboard.press("Control+ArrowRight");
  assert.equal(await focused(), "pending");
  assert(page.url().endsWith("?state=failed"), page.url());
  await page.keyboard.press("Enter");
  await visit.see(".jobs h2", "Pending jobs");
  assert.equal(await tab.getAttribute("data-state"), "pending");
  const panel = page.getByRole("tabpanel", { name: /^pending/ });
  await panel.getByText("No job is pending").waitFor();
  assert.equal(await tab.getAttribute("aria-controls"), await panel.getAttribute("id"));
  await page.goBack();
  await visit.see(".jobs h2", "Failed jobs");
}

// A request looks at some of the jobs, the next one at more: both are shown, and stay.
async function look_further(visit) {
  const { page } = visit;
  const asked = [];
  let found = ["bad-2", "bad-1", "bad-0"];
  const filtered = ({ pathname, search }) => pathname === `${queue("mail")}/jobs`
    && search.includes("error=");
  await page.route(filtered, async (route) => {
    const cursor = new URL(route.request().url()).searchParams.get("cursor");
    asked.push(cursor);
    const { jobs } = await (await route.fetch({ url: visit.at + queue("mail")
      + "/jobs?state=failed&error=timeout" })).json();
    const part = { null: [found[0]], second: [], third: found.slice(1) }[cursor];
    await route.fulfill({ json: { jobs: jobs.filter(({ id }) => part.includes(id)),
      looked_at: 10_000, cursor: { null: "second", second: "third", third: null }[cursor] } });
  });
  await visit.go("#/q/mail?state=failed&error=timeout");
  await see_rows(visit, ["bad-2"]);
  const further = page.locator(".jobs button:visible:enabled",
    { hasText: "Look further" });
  await further.press("Enter");
  await until(() => asked.includes("second"), () => asked.join());
  await further.press("Enter");
  await see_rows(visit, found);
  assert.equal(await page.evaluate(() => document.activeElement.dataset.row), "bad-1");
  assert.equal(await further.count(), 0);
  // What has been looked at is not looked at again.
  const before = asked.length;
  for (let look = 0; look < 2; ++look) {
    await page.waitForResponse((response) => new URL(response.url()).pathname === queue("mail"));
  }
  assert.equal(asked.length, before);
  await see_rows(visit, found);
  // Nothing among the first ones is not nothing at all.
  found = ["none", "bad-2", "bad-1"];
  await page.reload();
  await visit.see(".jobs .empty", "None found yetThe server looks at some 10,000 jobs a request");
  await further.click();
  await until(() => asked.at(-1) === "second", () => asked.join());
  await further.click();
  await see_rows(visit, ["bad-2", "bad-1"]);
  await page.unroute(filtered);
  await visit.go("#/q/mail?state=failed");
  await see_rows(visit, ["bad-3", "bad-2", "bad-1", "bad-0"]);
}

// The groups of errors of the next part are added to those of the first one.
async function failures_further(visit) {
  const { page } = visit;
  const failures = (url) => url.pathname === `${queue("mail")}/failures`;
  const group = (pattern, count, first_ms) => ({ pattern, count, first_ms, last_ms: Date.now(),
    example: { id: "bad-0", error: pattern } });
  const old = Date.now() - 7_200_000;
  const parts = { null: { groups: [group("a", 3, old), group("b", 2, old)], others: 1,
    looked_at: 10_000, cursor: "on" },
  on: { groups: [group("b", 4, old - 3_600_000), group("c", 1, old)], others: 2, looked_at: 5,
    cursor: null } };
  await page.route(failures, (route) => route.fulfill({ json:
    parts[new URL(route.request().url()).searchParams.get("cursor")] }));
  await visit.go("#/q/mail?state=failed&by=error");
  await visit.see(".failures p", "1 failed job has other errors, of which each is rarer. 10,000 "
    + "failed jobs were looked at; there are more.");
  await visit.click(".failures button", "Look further");
  await visit.see(".failure", /^1 job *c/);
  assert.deepEqual(await page.locator(".failure > strong, .failure > .pattern").allTextContents(),
    ["6 jobs", "b", "3 jobs", "a", "1 job", "c"]);
  await visit.see(".failure", /^6 jobs.*first 3 h/);
  await visit.see(".failures p", /^3 failed jobs have other errors, of which each is rarer\.Look/);
  assert.equal(await page.locator(".failures button:visible", { hasText: "further" }).count(), 0);
  await page.unroute(failures);
  await visit.go("#/q/mail?state=failed");
  await see_rows(visit, ["bad-3", "bad-2", "bad-1", "bad-0"]);
}

async function selection(visit) {
  const { page } = visit;
  await page.getByLabel("Choose bad-0").check();
  await page.getByLabel("Choose bad-2").check();
  await visit.see(".selection", "2 chosen");
  await visit.click(".selection button", "Retry…");
  await visit.see("dialog", "2 jobs will wait again");
  await visit.click("dialog button", "Retry them");
  await see_rows(visit, ["bad-1"]);
  for (const id of ["bad-0", "bad-2"]) assert.equal((await job("mail", id)).state, "pending");
  await page.getByLabel("Choose bad-1").check();
  await visit.click(".selection button", "Purge…");
  await visit.see("dialog", "bad-1 and its result will be removed");
  await visit.click("dialog button", "Purge it");
  await visit.see(".jobs .empty", "No job is failed");
  await visit.click(".tabs button", "pending");
  await page.getByLabel("Choose bad-3").check();
  await visit.click(".selection button", "all on this page");
  await visit.see(".selection", "3 chosen");
  await visit.click(".selection button", "Cancel…");
  // Meanwhile one ends, and one begins.
  const [{ lease }] = await pop("mail", { id: "bad-2" });
  await api("POST", `${queue("mail")}/jobs/bad-2:ack`, { lease });
  await pop("mail", { id: "bad-0" });
  await visit.click("dialog button", "Cancel them");
  await visit.see(".notice", "1 job cancelled.");
  await visit.see(".notice", "The workers of 1 job were asked to stop.");
  await visit.see(".notice", "1 job not:");
  await visit.see(".jobs .empty", "No job is pending");
  assert.equal((await job("mail", "bad-3")).state, "cancelled");
  await visit.click(".notice button", "Undo");
  await see_rows(visit, ["bad-3"]);
  assert.equal((await job("mail", "bad-2")).state, "completed");
  assert.equal((await job("mail", "bad-0")).state, "active");
}

await scenario(async (browser) => {
  await end("good", "ack");
  for (const [number, error] of ERRORS.entries()) await end(`bad-${number}`, error);
  const visit = await Visit.open(browser, { hasty: true });
  await visit.log_in();
  await visit.open_queue("mail");
  await visit.see(".jobs .empty", "No job is waiting");
  await visit.play([filters, wrong_links, look_further, failures_further, tabs, purge_a_group,
    by_error, deep_link, pages, mixed_selection, changed_by_its_row, selection]);
  assert.deepEqual((await rows(visit)).length, 1);
  await visit.close();
});
