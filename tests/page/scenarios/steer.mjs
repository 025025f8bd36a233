import { Visit, add, api, assert, job, pause, pop, queue, scenario } from "./browser.mjs";

const until = async (condition, what) => {
  for (let tries = 0; tries < 200; ++tries) {
    if (await condition()) return;
    await pause(100);
  }
  throw new Error(`never: ${what}`);
};
const state_is = (id, state) => until(async () => (await job("mail", id)).state === state,
  `${id} ${state}`);

async function move(visit) {
  const { page } = visit;
  await visit.see(".job-row", "a3");
  // By key, on the row in focus.
  await page.locator('.job-row a[data-row="a3"]').focus();
  await page.keyboard.press("f");
  await visit.see("dialog h2", "Move to the front?");
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog", { state: "detached" });
  await page.locator('.job-row a[data-row="a3"]').focus();
  await page.keyboard.press("f");
  await visit.click("dialog button", "Move to the front");
  await until(async () => (await job("mail", "a3")).position === 0, "a3 is first");
  await page.waitForFunction(() => document.querySelector(".job-row a").dataset.row === "a3");
}

// The other way, by its key.
async function move_back(visit) {
  const { page } = visit;
  await page.locator('.job-row a[data-row="a3"]').focus();
  await page.keyboard.press("b");
  await visit.see("dialog h2", "Move to the back?");
  await visit.click("dialog button", "Move to the back");
  await until(async () => (await job("mail", "a3")).position === 2, "a3 is last");
  await page.waitForFunction(() =>
    [...document.querySelectorAll(".job-row a")].at(-1).dataset.row === "a3");
}

// What goes next is not what stands first: of a fair queue's groups one has had its share.
async function next_jobs(visit) {
  await api("PATCH", `${queue("fair")}?create=true`, { fair: true });
  for (const id of ["a1", "a2", "a3"]) await add("fair", id, { group: "a" });
  await add("fair", "b1", { group: "b" });
  await visit.open_queue("fair");
  await visit.see(".job-row", "b1");
  const rows = () => visit.page.locator(".job-row a").allTextContents();
  assert.deepEqual(await rows(), ["a1", "b1", "a2", "a3"]);
  await visit.click(".tabs button", "pending");
  await visit.see(".jobs header", "by position");
  await until(async () => (await rows()).join() === "a1,a2,a3,b1", "the order of positions");
  await api("PATCH", `${queue("fair")}?group=a`, { paused: "out" });
  await api("PATCH", `${queue("fair")}?group=b`, { paused: "out" });
  await visit.click(".tabs button", "next");
  await visit.see(".jobs .empty", "No job can run next: 4 pending");
}

async function change_priority(visit) {
  const { page } = visit;
  const row = page.locator(".job-row").filter({ hasText: "a2" });
  await row.hover();
  await row.locator("select").selectOption("CRITICAL");
  await visit.see(".notice", "a2 is now in CRITICAL.");
  await until(async () => (await job("mail", "a2")).pri === "CRITICAL", "a2 is critical");
  await visit.click(".notice button", "Undo");
  await until(async () => (await job("mail", "a2")).pri === "NORMAL", "undone");
  // What somebody else has chosen since stays.
  visit.faults.allowed.push("status of 412");
  await visit.see(".job-row", /a2NORMAL/);
  await row.hover();
  await row.locator("select").selectOption("HIGH");
  const told = page.locator(".notice", { hasText: "a2 is now in HIGH." });
  await told.waitFor();
  await api("PATCH", `${queue("mail")}/jobs/a2`, { pri: "LOW" });
  await told.getByText("Undo").click();
  await visit.see(".notice.bad", "The priority was not changed: pri is LOW now.");
  await api("PATCH", `${queue("mail")}/jobs/a2`, { pri: "NORMAL" });
  await visit.see(".job-row", /a2NORMAL/);
}

async function cancel(visit) {
  const { page } = visit;
  await page.locator('.job-row a[data-row="a1"]').focus();
  await page.keyboard.press("c");
  await page.fill("dialog input[name=reason]", "not needed");
  await visit.click("dialog button", "Cancel the job");
  await state_is("a1", "cancelled");
  assert.equal((await job("mail", "a1")).error, "not needed");
  await visit.click(".notice button", "Undo");
  await state_is("a1", "pending");
}

// What was put back by another, and has run or was cancelled anew, is not run once more.
async function undo_too_late(visit) {
  const { page } = visit;
  const late = async (id, meanwhile, what) => {
    await add("mail", id);
    await visit.see(".job-row", id);
    await page.locator(`.job-row a[data-row="${id}"]`).focus();
    await page.keyboard.press("c");
    await visit.click("dialog button", "Cancel the job");
    const told = page.locator(".notice", { hasText: `${id} has been cancelled.` });
    await told.waitFor();
    await api("POST", `${queue("mail")}/jobs/${id}:retry`, {});
    await meanwhile();
    const { state } = await job("mail", id);
    await told.getByText("Undo").click();
    await visit.see(".notice.bad", `The job was not put back: ${what}`);
    assert.equal((await job("mail", id)).state, state);
    await api("POST", `${queue("mail")}/jobs:purge`, { ids: [id] });
  };
  await late("late", async () => {
    const [{ lease }] = await pop("mail", { id: "late" });
    await api("POST", `${queue("mail")}/jobs/late:ack`, { lease });
  }, "it is completed by now.");
  await late("later", () => api("POST", `${queue("mail")}/jobs/later:cancel`, {}),
    "somebody has cancelled it once more.");
}

async function cancel_running(visit) {
  const [taken] = await pop("mail", { lease_ms: 600_000 });
  await visit.open_job("mail", taken.id);
  await visit.see(".verdict .pill", "active");
  await visit.click(".page-head button", "Cancel…");
  await visit.page.selectOption("dialog select[name=grace]", "30000");
  await visit.click("dialog button", "Cancel the job");
  await visit.see(".words", "asked to stop");
  const told = await job("mail", taken.id);
  assert(told.cancel === "by hand" && told.deadline - Date.now() < 31_000, JSON.stringify(told));
  await api("POST", `${queue("mail")}/jobs/${taken.id}:nack`, { lease: taken.lease });
  await visit.see(".verdict .pill", "cancelled");
  await visit.page.keyboard.press("r");
  await visit.click("dialog button", "Retry");
  await state_is(taken.id, "pending");
  await visit.see(".story li", "Will be retried");
}

async function pause_and_add(visit) {
  const { page } = visit;
  await visit.open_queue("mail");
  await visit.see_figure("Pending", "3");
  await page.keyboard.press("p");
  await visit.click("dialog button", "Pause");
  await visit.see(".banner", "it hands out no jobs");
  assert.deepEqual(await pop("mail"), []);
  await visit.see(".note", "paused");
  await visit.click(".page-head button", "Resume");
  await visit.see_none(".banner");
  await page.keyboard.press("a");
  await page.fill("dialog input[name=id]", "by/hand?");
  await page.fill("dialog textarea", "hello");
  await page.selectOption("dialog select[name=pri]", "HIGH");
  await visit.click("dialog button.primary", "Add");
  await visit.see(".job-row", "by/hand?");
  assert.equal((await job("mail", "by/hand?")).pri, "HIGH");
  // The same id again: the dialog says why not, and stays.
  await page.keyboard.press("a");
  await page.fill("dialog input[name=id]", "by/hand?");
  visit.faults.allowed.push("status of 409");
  await visit.click("dialog button.primary", "Add");
  await visit.see("dialog .fault", "");
  await page.waitForFunction(() => document.querySelector("dialog .fault").textContent !== "");
  await page.keyboard.press("Escape");
}

async function undo_pause_and_add(visit) {
  const { page } = visit;
  const paused = async () => (await api("GET", `${queue("mail")}/config`)).paused;
  await visit.see_none("dialog");
  await page.keyboard.press("p");
  await page.selectOption("dialog select[name=pause]", "all");
  await visit.click("dialog button", "Pause");
  await visit.see(".banner", "it accepts no new jobs and hands out none");
  assert.equal(await paused(), "all");
  await page.locator(".notice", { hasText: "is paused now" }).getByText("Undo").click();
  await visit.see_none(".banner");
  assert.equal(await paused(), "none");
  await page.keyboard.press("a");
  await page.fill("dialog input[name=id]", "mistaken");
  await page.fill("dialog input[name=delay]", "-5");
  visit.faults.allowed.push("status of 422");
  await visit.click("dialog button.primary", "Add");
  await visit.see("dialog .fault", "not -5000");
  await page.fill("dialog input[name=delay]", "");
  await visit.click("dialog button.primary", "Add");
  await visit.see(".job-row", "mistaken");
  await page.locator(".notice", { hasText: "Added mistaken" }).getByText("Undo").click();
  await state_is("mistaken", "cancelled");
  assert.equal((await job("mail", "mistaken")).error, "added by mistake");
  await visit.see(".notice", "mistaken has been cancelled");
}

// What few jobs need is folded away; all of it is what the job gets.
async function add_with_more(visit) {
  const { page } = visit;
  for (const id of ["n1", "n2"]) await add("more", id);
  await visit.open_queue("more");
  await visit.see_figure("Pending", "2");
  const enter = async (fields) => {
    await page.keyboard.press("a");
    assert.equal(await page.locator("dialog [name=needs]").isVisible(), false);
    await visit.click("dialog summary", "More");
    for (const [name, text] of Object.entries(fields)) {
      const input = page.locator(`dialog [name=${name}]`);
      await (name === "ifdup" ? input.selectOption(text) : input.fill(text));
    }
  };
  await enter({ id: "full", needs: "n1\n", after: "n2", tags: "lang", keys: "k1\nk2",
    ttl_ms: "10m", retry: "2", backoff: "1s:5m", lease_ms: "45s", max_run_ms: "1h", cost: "2",
    boost_ms: "-5s", max_wait_ms: "1d" });
  await visit.see_accessible("all that a job may have");
  await visit.click("dialog button.primary", "Add");
  await visit.see("dialog .fault", "A tag is written as name=value, not lang.");
  await page.fill("dialog [name=tags]", "lang=c++\nsum=a=b");
  await visit.click("dialog button.primary", "Add");
  await visit.see(".notice", "Added full.");
  const { state, needs, after, tags, keys, cost, options } =
    await api("GET", `${queue("more")}/jobs/full?with=options`);
  assert.deepEqual({ state, needs, after, tags, keys, cost, options }, {
    state: "blocked", needs: ["n1"], after: ["n2"], tags: { lang: "c++", sum: "a=b" },
    keys: ["k1", "k2"], cost: 2, options: { boost_ms: -5000, ttl_ms: 600_000, lease_ms: 45_000,
      max_run_ms: 3_600_000, retry: 2, backoff: [1000, 300_000] } });
  const time = "2099-01-02T03:04:05";
  await enter({ id: "timed", at: time });
  await visit.click("dialog button.primary", "Add");
  await visit.see(".notice", "Added timed.");
  assert.equal((await job("more", "timed")).not_before,
    await page.evaluate((text) => new Date(text).getTime(), time));
  await enter({ id: "timed", ifdup: "keep" });
  await visit.click("dialog button.primary", "Add");
  const kept = page.locator(".notice", { hasText: "timed is there already, and was kept." });
  await kept.waitFor();
  assert.equal(await kept.getByText("Undo").count(), 0);
}

async function complete(...ids) {
  for (const id of ids) await add("mail", id, { pri: "CRITICAL" });
  for (const { id, lease } of await pop("mail", { count: ids.length })) {
    await api("POST", `${queue("mail")}/jobs/${id}:ack`, { lease });
  }
}

async function forget_all(visit) {
  await complete("done-1", "done-2");
  await visit.click(".tabs button", "completed");
  await visit.see(".job-row", "done-2");
  await visit.click(".jobs button", "Purge all completed…");
  await visit.see("dialog", "2 completed jobs and their results will be removed");
  await visit.click("dialog button", "Back");
  assert.equal((await job("mail", "done-1")).state, "completed");
  await visit.click(".jobs button", "Purge all completed…");
  await visit.see("dialog", "2 completed jobs and their results will be removed");
  // What ends while the question stands is not what was asked about.
  await complete("done-3");
  await visit.click("dialog button", "Purge them");
  await visit.see(".notice", "2 jobs purged");
  await visit.see(".job-row", "done-3");
  const { jobs } = await api("GET", `${queue("mail")}/jobs?state=completed`);
  assert.deepEqual(jobs.map(({ id }) => id), ["done-3"]);
}

async function retry_all(visit) {
  const [first] = await pop("mail");
  await api("POST", `${queue("mail")}/jobs/${encodeURIComponent(first.id)}:nack`,
    { lease: first.lease, mode: "fatal", error: "broken" });
  await visit.click(".tabs button", "failed");
  await visit.see(".job-row .note", "broken");
  await visit.click(".jobs button", "Retry all failed…");
  await visit.see("dialog", "1 failed job will wait again");
  await visit.click("dialog button", "Retry them");
  await state_is(first.id, "pending");
}

async function run_now(visit) {
  const { page } = visit;
  await add("late", "d1", { delay_ms: 600_000, group: "x" });
  await add("late", "d2", { delay_ms: 600_000, group: "y" });
  await add("late", "p1", { group: "x" });
  const delayed = await job("late", "d1");
  const is = (state) => until(async () => (await job("late", "d1")).state === state, state);
  await visit.open_queue("late");
  await visit.click(".tabs button", "delayed");
  const row = page.locator(".job-row").filter({ hasText: "d1" });
  // A row in focus keeps its buttons, whatever comes above it meanwhile.
  await page.locator('.job-row a[data-row="d1"]').focus();
  await row.getByText("Run now").click();
  await visit.see(".notice", "d1 is no longer delayed.");
  await is("pending");
  await visit.see_none(".job-row", "d1");
  await page.locator(".notice", { hasText: "no longer delayed" }).getByText("Undo").click();
  await is("delayed");
  assert.equal((await job("late", "d1")).not_before, delayed.not_before);
  // It is not put back into a delay once somebody else has given it another place.
  await visit.see(".job-row", "d1");
  await row.hover();
  await row.getByText("Run now").click();
  const told = page.locator(".notice", { hasText: "d1 is no longer delayed." });
  await told.waitFor();
  await visit.see_none(".job-row", "d1");
  await api("PATCH", `${queue("late")}/jobs/d1`, { pri: "HIGH" });
  await told.getByText("Undo").click();
  await visit.see(".notice.bad", "The delay was not put back: pri is HIGH now.");
  await is("pending");
  await api("PATCH", `${queue("late")}/jobs/d1`, { pri: "NORMAL", at: delayed.not_before });
  await visit.see(".job-row", "d1");
  // To the front would be now: it has no such place.
  await page.locator('.job-row a[data-row="d1"]').focus();
  for (const key of ["f", "b", "r"]) await page.keyboard.press(key);
  await is("pending");
  await visit.see_none("dialog");
}

// What is delayed or blocked would be run at once by an undo.
async function cancel_without_undo(visit) {
  const { page } = visit;
  await add("late", "d3", { delay_ms: 600_000 });
  await add("late", "n1", { needs: ["d3"] });
  for (const [id, state] of [["n1", "blocked"], ["d3", "delayed"]]) {
    await visit.open_job("late", id);
    await visit.see(".verdict .pill", state);
    if (state === "delayed") for (const key of ["f", "b"]) await page.keyboard.press(key);
    await page.keyboard.press("c");
    await visit.see("dialog h2", "Cancel this job?");
    await visit.see("dialog", `It is ${state}: there is no undo`);
    await visit.see("dialog", "Jobs that need it are cancelled with it");
    await visit.click("dialog button", "Cancel the job");
    const told = page.locator(".notice", { hasText: `${id} has been cancelled.` });
    await told.waitFor();
    assert.equal(await told.getByText("Undo").count(), 0);
    assert.equal((await job("late", id)).state, "cancelled");
  }
}

// As a new job with all that is its own, whatever its runs have used up, and the queue's values for
// the rest. It begins at once: the delay is not its own.
async function run_again(visit) {
  const { page } = visit;
  await api("PATCH", queue("late"), { retry: 3, max_run_ms: 50_000 });
  const options = { boost_ms: -5, ttl_ms: 90_000_000, lease_ms: 7777, max_run_ms: 0, retry: 2,
    backoff: [10, 600_000] };
  const none = { boost_ms: 0, ttl_ms: 0, lease_ms: null, max_run_ms: null, retry: null,
    backoff: null };
  const others = { pri: "HIGH", cost: 2, group: "z", keys: ["k"],
    tags: { lang: "c++", odd: { base64: "/w==" } } };
  await add("late", "x1", { ...options, ...others });
  const again = `${queue("late")}/jobs/x1:nack`;
  for (const mode of ["fail", "fatal"]) {
    const [{ lease }] = await pop("late", { id: "x1", lease_ms: 60_000 });
    await api("POST", again, { lease, mode, ...mode === "fail" ? { delay_ms: 0 } : {} });
  }
  await add("late", "x2", { ...options, ...others, delay_ms: 600_000 });
  await add("late", "x3", { ...others, needs: ["x2"] });
  for (const [id, own] of [["x1", options], ["x2", options], ["x3", none]]) {
    await visit.open_job("late", id);
    await visit.see("main.job h1", id);
    await visit.see(".facts", "odd=\\xff");
    await page.keyboard.press("n");
    await visit.see("dialog", own === none ? "tags and cost. It has"
      : "tags and cost, backoff 10:600000, boost_ms -5, lease_ms 7777, max_run_ms 0, retry 2, "
        + "ttl_ms 90000000. It has");
    await visit.click("dialog button", "Run it again");
    await page.waitForFunction((before) => !location.hash.endsWith(before), id);
    const name = decodeURIComponent(page.url().split("/").at(-1));
    const added = await api("GET", `${queue("late")}/jobs/${name}?with=options&with=payload`);
    const { state, payload, options: given, pri, cost, group, keys, tags, needs } = added;
    assert.deepEqual({ state, payload, given, pri, cost, group, keys, tags, needs }, {
      state: "pending", payload: "{}", given: own, ...others, needs: [],
      tags: { lang: "c++", odd: null, odd_base64: "/w==" } });
    await api("POST", `${queue("late")}/jobs/${name}:cancel`);
  }
}

// A job that waits for its next try says why.
async function tried_again(visit) {
  await add("late", "r1", { retry: 2 });
  const [{ lease }] = await pop("late", { id: "r1" });
  await api("POST", `${queue("late")}/jobs/r1:nack`, { lease, mode: "fail", delay_ms: 600_000,
    error: "no route\nat smtp" });
  await visit.see(".job-row .note", /^Attempt 1 failed: no route; 1 try left\. It is delayed/);
  await visit.open_job("late", "r1");
  await visit.see(".words", /^Attempt 1 failed; 1 try left\. It is delayed until/);
  await visit.see(".headline-error", "at smtp");
}

// All that a dead worker runs, as one has confirmed; what others run continues.
async function give_back(visit) {
  const { page } = visit;
  for (const id of ["g1", "g2", "g3"]) await add("dead", id, { retry: 1, backoff: [0, 0] });
  await pop("dead", { worker: "host-9", count: 2, lease_ms: 600_000 });
  await pop("dead", { worker: "other", lease_ms: 600_000 });
  await visit.open_queue("dead");
  await page.locator("h2", { hasText: "Workers" }).scrollIntoViewIfNeeded();
  const row = page.locator(".worker-row").filter({ hasText: "host-9" });
  await visit.see(".worker-row", /host-9.*runs g1 for/);
  const button = row.getByText("Give back its jobs…");
  await button.click();
  await visit.see("dialog h2", "Give back the jobs of host-9?");
  await visit.see("dialog", "2 active jobs of dead, and what it begins meanwhile, will wait");
  await page.locator("dialog select").selectOption("fail");
  await visit.click("dialog button", "Give them back");
  await visit.see(".notice", "2 jobs given back.");
  await visit.see(".worker-row", /host-9.*runs nothing/);
  await button.waitFor({ state: "hidden" });
  for (const id of ["g1", "g2"]) {
    const { state, retries_left } = await job("dead", id);
    assert.deepEqual({ state, retries_left }, { state: "pending", retries_left: 0 });
  }
  assert.equal((await job("dead", "g3")).worker, "other");
  await visit.go("#/server");
  await visit.see(".changes li", "Gave back 2 jobs of dead: WORKER host-9 fail");
}

async function cancel_all(visit) {
  await visit.go("#/q/late?state=pending&group=x");
  await visit.see(".job-row", "p1");
  await visit.see(".job-row", "d1");
  await visit.click(".jobs button", "Cancel all these…");
  await visit.see("dialog", "2 pending jobs will not run");
  await visit.see("dialog", "Only these: group x.");
  await visit.click("dialog button", "Cancel them");
  await visit.see(".notice", "2 jobs cancelled.");
  for (const id of ["d1", "p1"]) assert.equal((await job("late", id)).error, "by hand");
  assert.equal((await job("late", "d2")).state, "delayed");
}

// The button that has asked goes with what was done: the heading is in focus, not nothing.
async function focus_afterwards(visit) {
  const { page } = visit;
  await add("late", "gone");
  await visit.open_job("late", "gone");
  await page.locator(".page-head button", { hasText: "To the front" }).waitFor();
  await page.locator(".page-head button", { hasText: "Cancel…" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForSelector("dialog");
  await page.keyboard.press("Enter");
  await visit.see(".verdict", "It was cancelled");
  await visit.see(".panel p", "It was never started.");
  await page.waitForFunction(() => document.activeElement.matches("main h1"));
}

async function keys(visit) {
  const { page } = visit;
  await visit.click(".tabs button", "pending");
  await visit.see(".job-row", "a2");
  await page.keyboard.press("Escape");
  await page.waitForSelector("main.overview");
  await visit.see(".card", "mail");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForSelector("main.queue");
  await page.keyboard.press("?");
  await visit.see("dialog", "find jobs");
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog", { state: "detached" });
  await page.keyboard.press("/");
  await page.keyboard.type("a2");
  await page.keyboard.press("Enter");
  await visit.see("main.job h1", "a2");
  const before = await page.evaluate(() => document.documentElement.dataset.theme);
  await page.keyboard.press("t");
  assert.notEqual(await page.evaluate(() => document.documentElement.dataset.theme), before);
}

await scenario(async (browser) => {
  for (const id of ["a1", "a2", "a3"]) await add("mail", id);
  const visit = await Visit.open(browser, { hasty: true });
  await visit.log_in();
  await visit.open_queue("mail");
  await visit.play([move, move_back, change_priority, cancel, undo_too_late, cancel_running,
    pause_and_add, undo_pause_and_add, forget_all, retry_all, keys, next_jobs, add_with_more, run_now,
    tried_again, cancel_without_undo, run_again, give_back, cancel_all, focus_afterwards]);
  await visit.close();
});
