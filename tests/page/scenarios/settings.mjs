// Queues are made, set and deleted; groups are paused and workers made quiet.
import { Visit, add, api, assert, pop, queue, scenario, until } from "./browser.mjs";

const config = (rest = "") => api("GET", `${queue("mail")}/config${rest}`);

// A link to a queue that is not there: it is made from its own page.
async function make(visit) {
  const { page } = visit;
  await visit.go("#/q/mail/settings");
  await visit.see(".empty", "There is no queue mail");
  await visit.open_queue("mail");
  await visit.see(".empty", "There is no queue mail");
  for (const hidden of [".figure-row", ".plots", ".page-head .buttons button"]) {
    assert.equal(await page.locator(hidden).first().isVisible(), false, hidden);
  }
  await visit.click(".empty button", "Find another…");
  assert(await page.evaluate(() => document.activeElement.matches(".search input")));
  assert.deepEqual((await api("GET", "/api/v1/queues")).queues, []);
  await visit.click(".empty button", "Make it…");
  assert.equal(await page.inputValue("dialog input[name=name]"), "mail");
  await page.fill("dialog input[name=max_active]", "4");
  await visit.click("dialog button", "Make it");
  await visit.see(".figure", /^Active00 of 4 slots$/);
  assert.equal((await config()).max_active, 4);
  // The first job to paste goes to this server.
  const { port } = await api("GET", "/api/v1/session");
  await visit.see(".first-job pre", `redis-cli -p ${port} Q.ADD mail`);
  await visit.click(".first-job button", "Python");
  await visit.see(".first-job pre", `Queue("mail", "redis://127.0.0.1:${port}")`);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.getByRole("tabpanel", { name: "TypeScript" })
    .getByText(`{ url: 'redis://127.0.0.1:${port}' }`).waitFor();
  // A name of other letters is quoted as each language does.
  for (const [name, shell, python, typescript] of [
    ["näme/1% \"it's\"", "'näme/1% \"it'\\''s\"'", '"näme/1% \\"it\'s\\""',
      "'näme/1% \"it\\'s\"'"],
    ["%C3%A9%E2%80%8D", "$'\\xC3\\xA9\\xE2\\x80\\x8D'", '"é\\U0000200d"', "'é\\u{200d}'"],
    ["%FF", "$'\\xFF'", null, null]]) {
    await visit.go(`#/q/${name.startsWith("%") ? name : encodeURIComponent(name)}`);
    await visit.see(".first-job pre", `Q.ADD ${shell} '*'`);
    for (const [tab, literal] of [["Python", python], ["TypeScript", typescript]]) {
      await visit.click(".first-job button", tab);
      if (literal === null) await visit.see(".first-job .code", "cannot be written here");
      else await visit.see(".first-job pre", `Queue(${literal}, `);
    }
  }
  // What no field can hold is made as the address has it.
  await visit.go("#/q/a%0Ab");
  await visit.click(".empty button", "Make it…");
  await visit.click("dialog button", "Make it");
  await visit.see(".empty", "This queue is empty");
  await visit.see(".first-job pre", "PRI HIGH");
  assert.deepEqual((await api("GET", "/api/v1/queues")).queues.map(({ name }) => name),
    ["a\nb", "mail"]);
  // A band that the queue does not have is not offered.
  await api("PATCH", `${queue("a\nb")}`, { bands: "gold,silver", default_pri: "gold" });
  await visit.go("#/");
  await visit.go("#/q/a%0Ab");
  await visit.see(".first-job pre", /'\{"to":"ada"\}'\s*$/);
  await api("DELETE", `${queue("a\nb")}?confirm=true`);
  await visit.open_queue("mail");
  await visit.see(".first-job pre", "Q.ADD mail");
}

const focused = (visit) => visit.page.evaluate(() =>
  document.activeElement.getAttribute("aria-label"));

// The cap of a queue that is there already is not taken away.
async function make_again(visit) {
  const { page } = visit;
  await visit.go("#/");
  await visit.click(".page-head button", "New queue…");
  await visit.click("dialog button", "Make it");
  await visit.see("dialog .fault", "needs a name");
  await page.fill("dialog input[name=name]", "mail");
  await visit.click("dialog button", "Make it");
  await visit.see("dialog .fault", "exists already");
  assert.equal((await config()).max_active, 4);
  await page.keyboard.press("Escape");
  await visit.see_none("dialog");
  await visit.open_queue("mail");
  await visit.see(".first-job", "redis-cli");
}

async function set(visit) {
  const { page } = visit;
  for (const id of ["a", "b", "c", "d", "e"]) await add("mail", id, { group: "ann" });
  await pop("mail", { worker: "host-1", count: 3, lease_ms: 600_000 });
  await page.keyboard.press("s");
  await visit.see(".setting", /max_active.*3 of 4 in use/);
  await visit.see(".setting", /max_waiting.*no limit; 2 waiting/);
  // The default stands beside each, also while it is changed.
  for (const [name, standard] of [["max_active", "0: no limit"], ["lease_ms", "30000: 30 s"],
    ["retain_completed", "1000:3600000: the last 1,000, for 1 h"], ["fair", "off"]]) {
    const row = page.locator(".setting").filter({ has: page.getByText(name, { exact: true }) });
    await row.getByText(`· default ${standard}`).waitFor();
  }
  await page.getByLabel("Change max_active").click();
  await visit.see(".setting:has(.setting-edit)", "default 0: no limit");
  const input = page.locator("input[name=max_active]");
  // A number of slots has no unit.
  for (const text of ["many", "5m"]) {
    await input.fill(text);
    await visit.see(".trial.warn", "This takes a whole number.");
    assert.equal(await page.locator(".setting-edit button.primary").isDisabled(), true);
  }
  await input.fill("1");
  await visit.see(".trial", "2 slots in use are above this cap");
  assert.equal((await config()).max_active, 4);
  await visit.click(".setting-edit button", "Save");
  await visit.see(".setting", /max_active.*3 of 1 in use/);
  assert.equal(await focused(visit), "Change max_active");
  assert.equal((await config()).max_active, 1);
  await visit.click(".notice button", "Undo");
  await visit.see(".setting", /max_active.*3 of 4 in use/);
  await page.getByLabel("Change reserve").click();
  visit.faults.allowed.push("status of 422");
  await page.locator("input[name=reserve]").fill("nonsense");
  await visit.see(".trial.warn", /./);
  await page.keyboard.press("Escape");
  await visit.see_none(".setting-edit");
  assert.equal(await focused(visit), "Change reserve");
}

// What somebody else has set meanwhile is overwritten by nobody who has not seen it.
async function meanwhile(visit) {
  const { page } = visit;
  visit.faults.allowed.push("status of 412");
  await page.getByLabel("Change max_total").click();
  let late = null;
  await page.route("**/*dry_run=true*", (route) => { late = route; });
  await page.locator("input[name=max_total]").fill("50");
  await until(() => late !== null, () => "no trial");
  await api("PATCH", queue("mail"), { max_total: 70 });
  await visit.click(".setting-edit button", "Save");
  await visit.see(".trial.warn", "meanwhile, from 0 to 70. Save 50 anyway?");
  // A trial that is answered only now changes nothing of that.
  await Promise.all([page.waitForResponse(/dry_run=true/), late.continue()]);
  await page.unroute("**/*dry_run=true*");
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
  await visit.see(".trial.warn", "meanwhile, from 0 to 70. Save 50 anyway?");
  assert.equal((await config()).max_total, 70);
  await visit.click(".setting-edit button", "Save anyway");
  await visit.see(".setting", /max_total.*5 of 50 waiting or active/);
  await api("PATCH", queue("mail"), { max_total: 60 });
  await page.locator(".notice", { hasText: "max_total is 50" }).getByText("Undo").click();
  await visit.see(".notice.bad", "Not changed back: max_total is 60 now.");
  assert.equal((await config()).max_total, 60);
  await api("PATCH", queue("mail"), { max_total: 0 });
}

// A lower retention deletes at once what it no longer keeps: it says how much, asks, and offers no
// undo.
async function keep_less(visit) {
  const { page } = visit;
  for (const id of ["f1", "f2", "f3", "f4", "f5", "f6"]) {
    await add("ended", id);
    const [{ lease }] = await pop("ended");
    await api("POST", `${queue("ended")}/jobs/${id}:nack`, { lease, mode: "fatal" });
  }
  await visit.go("#/q/ended/settings");
  await page.getByLabel("Change retain_failed").click();
  await page.locator("input[name=retain_failed]").fill("6");
  await visit.see(".trial", "Nothing that waits or runs now is affected at once.");
  await page.locator("input[name=retain_failed]").fill("2");
  await visit.see(".trial", "4 ended jobs are deleted at once, and cannot be brought back.");
  await visit.click(".setting-edit button", "Save");
  await visit.see("dialog", "4 ended jobs are deleted at once, and cannot be brought back.");
  await visit.click("dialog button", "Back");
  const kept = async () => (await api("GET", queue("ended"))).stats.kept.failed;
  assert.equal(await kept(), 6);
  await visit.click(".setting-edit button", "Save");
  await visit.click("dialog button", "Save it");
  await visit.see(".notice", "retain_failed is 2 now.");
  await visit.see_none("dialog");
  const told = page.locator(".notice", { hasText: "retain_failed is 2" });
  assert.equal(await told.getByText("Undo").count(), 0);
  await visit.see(".setting", /retain_failed.*the last 2/);
  assert.equal(await kept(), 2);
  // Raised, it deletes nothing.
  await page.getByLabel("Change retain_failed").click();
  await page.locator("input[name=retain_failed]").fill("9");
  await visit.click(".setting-edit button", "Save");
  await visit.see(".setting", /retain_failed.*the last 9/);
  await page.locator(".notice", { hasText: "retain_failed is 9 now." }).getByText("Undo").click();
  await visit.see(".setting", /retain_failed.*the last 2/);
  await page.getByLabel("Change events").click();
  await page.locator("input[name=events]").fill("17");
  await visit.see(".trial", "1 event is deleted at once");
  await page.keyboard.press("Escape");
  await api("DELETE", `${queue("ended")}?confirm=true`);
  await visit.go("#/q/mail/settings");
  await visit.see(".setting", /max_waiting.*2 waiting/);
}

// With `full displace` a queue that is full takes more urgent jobs; its groups do not.
async function displace(visit) {
  const { page } = visit;
  await api("PATCH", queue("mail"), { full: "displace" });
  await visit.see(".setting", /full.*displace/);
  const tries = async (row, name) => {
    await row.getByLabel(`Change ${name}`).click();
    await row.locator(`input[name=${name}]`).fill("1");
  };
  await tries(page.locator(".settings"), "max_waiting");
  await visit.see(".trial", "1 waiting job is above this limit: it stays, but each new job that is "
    + "more urgent cancels the least urgent one; others are refused.");
  await page.keyboard.press("Escape");
  await api("PATCH", `${queue("mail")}?group=ann`, { max_waiting: 9 });
  await tries(page.locator(".rule"), "max_waiting");
  await visit.see(".rule .trial", "1 waiting job is above this limit: it stays, and new ones are "
    + "refused.");
  await page.keyboard.press("Escape");
  await api("DELETE", `${queue("mail")}/config?group=ann`);
  await visit.see_none(".rule");
  await api("PATCH", queue("mail"), { full: "reject" });
}

async function rules(visit) {
  const { page } = visit;
  await visit.click(".rules-panel button", "Add a rule…");
  await page.fill("dialog input[name=glob]", "ann");
  await page.selectOption("dialog select[name=field]", "max_active");
  await visit.see("dialog small", "default 0: no limit");
  await page.fill("dialog input[name=value]", "1m");
  await visit.see("dialog .trial.warn", "This takes a whole number.");
  await page.fill("dialog input[name=value]", "2");
  await visit.see("dialog .trial", /1 slot in use is above this cap: .* starts until it is free/);
  assert.deepEqual(await config("?group=ann"), {});
  await page.fill("dialog input[name=value]", "3");
  await visit.see("dialog .trial", "Nothing that waits or runs now is affected at once.");
  await visit.click("dialog button", "Add it");
  await visit.see(".rule", /group.*ann.*3 of 3 in use, 2 waiting/);
  assert.deepEqual(await config("?group=ann"), { max_active: 3 });
  // Another one for the same would overwrite it.
  await visit.click(".rules-panel button", "Add a rule…");
  await page.fill("dialog input[name=glob]", "ann");
  await page.selectOption("dialog select[name=field]", "max_active");
  await page.fill("dialog input[name=value]", "5");
  await visit.click("dialog button", "Add it");
  await visit.see("dialog .fault", "There is such a rule already: max_active is 3 now.");
  await visit.click("dialog button", "Back");
  await page.locator(".rule").getByLabel("Change max_active").click();
  await page.locator(".rule input").fill("2");
  await visit.see(".rule .trial", /1 slot in use is above this cap: .* starts until it is free/);
  await visit.click(".rule button", "Save");
  await visit.see(".rule", /3 of 2 in use/);
  // Nor is it removed as something else than was looked at.
  const removes = (url) => url.pathname === `${queue("mail")}/config`;
  await page.route(removes, async (route) => {
    if (route.request().method() === "DELETE") {
      await api("PATCH", `${queue("mail")}?group=ann`, { max_waiting: 7 });
    }
    await route.continue();
  });
  await visit.click(".rule button", "Remove");
  await visit.see(".notice.bad", "The rule was not removed: max_waiting is 7 now.");
  await page.unroute(removes);
  await api("DELETE", `${queue("mail")}/config?group=ann`);
  // What it is when it is removed is put back, whatever is shown.
  await api("PATCH", `${queue("mail")}?group=ann`, { max_active: 1 });
  await visit.click(".rule button", "Remove");
  await visit.see_none(".rule");
  assert.deepEqual(await config("?group=ann"), {});
  await page.locator(".notice", { hasText: "was removed" }).getByText("Undo").click();
  await visit.see(".rule", /ann.*3 of 1 in use/);
  assert.deepEqual(await config("?group=ann"), { max_active: 1 });
}

// Another pattern was changed after it: put back, it would win over that one.
async function patterns(visit) {
  const { page } = visit;
  for (const glob of ["a*", "b*"]) {
    await api("PATCH", `${queue("mail")}?group_glob=${glob}`, { max_waiting: 9, ttl_ms: 3_600_000,
      rate: "20/1000:40" });
  }
  await visit.see(".rule", /ttl_ms *1 h *stored as 3600000/);
  await visit.see(".rule", "20 starts in 1.0 s, up to 40 at once");
  await visit.see(".rule", /ttl_ms.* · the queue's 0: for ever/);
  await visit.see(".rule", /rate.* · default none: no limit/);
  const remove = (glob) => page.locator(".rule", { hasText: glob }).getByText("Remove").click();
  await visit.see(".rule", "b*");
  await remove("a*");
  await visit.see("dialog", "there is no undo");
  await visit.click("dialog button", "Remove it");
  await visit.see_none(".rule", "a*");
  await remove("b*");
  await page.locator(".notice", { hasText: "for b* was removed" }).getByText("Undo").click();
  await visit.see(".rule", "b*");
  await api("DELETE", `${queue("mail")}/config?group_glob=b*`);
  await visit.see_none(".rule", "b*");
}

// Rules for groups of these numbers, some requests at a time.
async function add_rules(from, end) {
  for (let first = from; first < end; first += 30) {
    await Promise.all(Array.from({ length: Math.min(30, end - first) }, (_, n) =>
      api("PATCH", `${queue("ruled")}?group=g-${first + n}`, { max_active: 5 })));
  }
}

// All rules are read; what is not in use any more is not told.
async function many_rules(visit) {
  const { page } = visit;
  await add("ruled", "j", { group: "zed" });
  await add_rules(0, 110);
  await api("PATCH", `${queue("ruled")}?group=zed`, { max_active: 5, paused: "out" });
  await visit.go("#/q/ruled/settings");
  await visit.see(".rule", /zed.*1 waiting/);
  assert.equal(await page.locator(".rule").count(), 111);
  await visit.see(".rules-panel .panel-aside", "111 rules");
  await api("POST", `${queue("ruled")}/jobs/j:cancel`, {});
  await visit.see(".rule", /zed *0 of 5 in use, 0 waiting/);
  await api("PATCH", `${queue("ruled")}?worker=w`, { quiet: true });
  await visit.see(".rule header", /^workerwRemove$/);
  await api("PATCH", `${queue("ruled")}?key=ann`, { max_active: 2 });
  await visit.see(".rule header", /^keyann0 of 2 in useRemove$/);
  await add("ruled", "keyed", { keys: ["ann"] });
  const [{ lease }] = await pop("ruled", { id: "keyed" });
  await visit.see(".rule header", /^keyann1 of 2 in useRemove$/);
  await api("POST", `${queue("ruled")}/jobs/keyed:ack`, { lease });
  for (const id of ["i", "k"]) await add("ruled", id, { group: "zed" });
  await add_rules(110, 1001);
  // A trial of the queue, or of one name, counts whatever the number of rules.
  await page.getByLabel("Change max_waiting").click();
  await page.locator("input[name=max_waiting]").fill("1");
  await visit.see(".trial", "1 waiting job is above this limit");
  await page.keyboard.press("Escape");
  await visit.click(".rules-panel button", "Add a rule…");
  await page.selectOption("dialog select[name=field]", "max_waiting");
  await page.fill("dialog input[name=value]", "1");
  await page.fill("dialog input[name=glob]", "zed");
  await visit.see("dialog .trial", "1 waiting job is above this limit");
  await page.fill("dialog input[name=glob]", "z*");
  await visit.see("dialog .trial", "What is affected cannot be counted: there are too many");
  await visit.click("dialog button", "Back");
  await api("POST", `${queue("ruled")}/jobs/i:cancel`, {});
  await visit.open_queue("ruled");
  await visit.see_figure("Pending", "1");
  await page.locator("h2", { hasText: "Groups" }).scrollIntoViewIfNeeded();
  await page.getByLabel("Resume zed").waitFor();
  await api("DELETE", `${queue("ruled")}?confirm=true`);
}

// A rule that a pause has made goes with it, unless more has been set by it since.
async function undo_pauses(visit) {
  const { page } = visit;
  for (const more of [{}, { max_active: 3 }]) {
    await page.getByLabel("Pause ann").click();
    await visit.click("dialog button", "Pause");
    await visit.see(".group .pill", "paused");
    if (more.max_active) await api("PATCH", `${queue("mail")}?group=ann`, more);
    await page.locator(".notice", { hasText: "ann hands out no jobs now" }).last()
      .getByText("Undo").click();
    if (more.max_active) await visit.see(".notice", "Its rule has more settings and stays");
    await visit.see_none(".group .pill", "paused");
    assert.deepEqual(await config("?group=ann"), more.max_active ? { ...more, paused: "none" } : {});
  }
  await api("DELETE", `${queue("mail")}/config?group=ann`);
}

async function group_and_worker(visit) {
  const { page } = visit;
  await visit.open_queue("mail");
  await visit.see(".jobs .empty", "No job can run next: 2 pending");
  await page.keyboard.press("p");
  await api("PATCH", queue("mail"), { paused: "in" });
  await visit.click("dialog button", "Pause");
  await visit.see(".notice.bad", "The pause was not changed: paused is in now.");
  await api("PATCH", queue("mail"), { paused: "none" });
  await page.locator("h2", { hasText: "Groups" }).scrollIntoViewIfNeeded();
  await page.getByLabel("Pause ann").click();
  await visit.see("dialog h2", "Pause the group ann?");
  await visit.click("dialog button", "Pause");
  await visit.see(".notice", "ann hands out no jobs now");
  assert.equal((await config("?group=ann")).paused, "out");
  await page.getByLabel("Resume ann").click();
  await visit.see("dialog", "Now the queue hands out no jobs for this group");
  await visit.click("dialog button", "Back");
  assert.equal((await config("?group=ann")).paused, "out");
  await page.getByLabel("Resume ann").click();
  await visit.click("dialog button", "Resume");
  await visit.see(".notice", "ann runs again");
  assert.equal((await config("?group=ann")).paused, "none");
  await api("DELETE", `${queue("mail")}/config?group=ann`);
  await undo_pauses(visit);
  // The pause of a rule for several groups is shown, too, and may be lifted for one.
  await api("PATCH", `${queue("mail")}?group_glob=an*`, { paused: "out" });
  await visit.see(".group .pill", "paused");
  await page.getByLabel("Resume ann").click();
  await visit.click("dialog button", "Resume");
  await visit.see_none(".group .pill", "paused");
  assert.equal((await config("?group=ann")).paused, "none");
  await page.locator(".notice", { hasText: "ann runs again" }).last().getByText("Undo").click();
  await visit.see(".group .pill", "paused");
  assert.deepEqual(await config("?group=ann"), {});
  await api("DELETE", `${queue("mail")}/config?group_glob=an*`);
  await visit.see_none(".group .pill", "paused");
  await visit.see(".worker-row", /host-1.*heard of .* ago, 0 completed.*runs a for/);
  await visit.click(".worker-row button", "Make it quiet");
  await visit.see(".worker-row .pill", "quiet");
  assert.deepEqual(await pop("mail", { worker: "host-1" }), []);
  await page.locator(".notice", { hasText: "gets no new jobs" }).getByText("Undo").click();
  await visit.see_none(".worker-row .pill");
  assert.deepEqual(await config("?worker=host-1"), {});
  // What somebody else has set meanwhile stays.
  await api("PATCH", `${queue("mail")}?worker=host-1`, { quiet: false });
  await visit.click(".worker-row button", "Make it quiet");
  await visit.see(".worker-row .pill", "quiet");
  await api("PATCH", `${queue("mail")}?worker=host-1`, { quiet: false });
  await page.locator(".notice", { hasText: "gets no new jobs" }).last().getByText("Undo").click();
  await visit.see(".notice.bad", "The worker was not changed: quiet is off now.");
  await api("DELETE", `${queue("mail")}/config?worker=host-1`);
}

async function remove(visit) {
  const { page } = visit;
  await page.keyboard.press("s");
  await visit.click(".page-head button", "Delete the queue…");
  await visit.see("dialog", "2 waiting jobs and 3 active jobs will be deleted");
  await page.fill("dialog input[name=name]", "mai");
  await visit.click("dialog button.primary", "Delete");
  await visit.see("dialog .fault", "not the name");
  await page.fill("dialog input[name=name]", "mail");
  await visit.click("dialog button.primary", "Delete");
  await visit.see(".empty", "There are no queues yet");
  assert.deepEqual((await api("GET", "/api/v1/queues")).queues, []);
}

await scenario(async (browser) => {
  const visit = await Visit.open(browser, { hasty: true });
  await visit.log_in();
  await visit.play([make, make_again, set, keep_less, meanwhile, displace, rules, patterns,
    many_rules, group_and_worker, remove]);
  await visit.close();
});
