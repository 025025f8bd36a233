import { Visit, add, api, assert, base, pop, queue, scenario, until } from "./browser.mjs";

// The server names a thousand groups; the line with the sum of the others cannot be paused.
async function many_groups(visit) {
  const { page } = visit;
  for (let first = 0; first < 1100; first += 550) {
    await api("POST", `${queue("groups")}/jobs`, Array.from({ length: 550 }, (_, n) => ({
      id: `j${first + n}`, payload: "", group: `a-group-of-users-${first + n}` })));
  }
  await visit.open_queue("groups");
  await page.locator("h2", { hasText: "Groups" }).scrollIntoViewIfNeeded();
  await visit.see(".panel-aside", "the 1,000 largest");
  await visit.see(".panel", "Other groups have 0 active and 100 waiting jobs.");
  await page.locator("button", { hasText: "Show all" }).press("Enter");
  assert.equal(await page.locator(".group-rows .group").count(), 1000);
  assert.equal(await page.getByLabel("Pause *", { exact: true }).count(), 0);
  assert(await page.evaluate(() => document.activeElement
    === document.querySelectorAll(".group-rows a")[20]), "the focus is not at what was shown");
  // On a phone their names are there to be read.
  await page.setViewportSize({ width: 390, height: 844 });
  assert.deepEqual(await page.locator(".group-rows a").evaluateAll((all) =>
    all.filter((each) => each.scrollWidth > each.clientWidth).length), 0);
}

// A job may take several slots: what is full looks full, and each number has its name.
async function costs(visit) {
  const { page } = visit;
  await api("PATCH", `${queue("costly")}?create=true`, { max_active: 8 });
  await api("PATCH", `${queue("costly")}?group=red`, { max_active: 4 });
  for (const id of ["a", "b", "c"]) await add("costly", id, { group: "red", cost: 2 });
  await pop("costly", { count: 2, lease_ms: 600_000 });
  await visit.go("#/");
  await visit.see(".card .figures div", /^active24 of 8 slots$/);
  await visit.open_queue("costly");
  await visit.see(".figure", /^Active24 of 8 slots$/);
  await visit.see(".tabs button", /^active 2$/);
  await page.locator("h2", { hasText: "Groups" }).scrollIntoViewIfNeeded();
  await visit.see(".group", /^red.*100 %2 4 of 4 slots1Pause/);
  await visit.see(".panel-aside", "2 jobs, 4 of 8 slots, oldest first");
  // Without a cap too, where the numbers differ.
  await api("PATCH", queue("costly"), { max_active: 0 });
  await visit.see(".figure", /^Active24 slots, no cap$/);
}

await scenario(async (browser) => {
  await api("PATCH", `${queue("mail")}?create=true`, { max_active: 2 });
  const visit = await Visit.open(browser);
  const { page } = visit;
  await visit.log_in();
  await visit.see(".card", "mail");
  await visit.click(".card a", "mail");
  await visit.see_figure("Pending", "0");
  // Jobs come: their lanes, their order and what was said of them.
  await add("mail", "slow", { pri: "LOW", group: "blue" });
  await add("mail", "fast", { pri: "CRITICAL", group: "red" });
  await visit.see_figure("Pending", "2");
  await visit.see('.lane[data-band="0"] .chip', "fast");
  await visit.see('.lane[data-band="3"] .chip', "slow");
  await page.locator(".activity").scrollIntoViewIfNeeded();
  await visit.see(".activity li", "fast");
  await page.waitForFunction(() => document.querySelectorAll(".job-row a").length === 2);
  assert.deepEqual(await page.locator(".job-row a").allTextContents(), ["fast", "slow"]);
  // The first answer says what is in view, so that its details are asked for at once.
  const asked = [];
  page.on("request", (request) => {
    // What the page before asked for does not count.
    if (request.isNavigationRequest()) asked.length = 0;
    asked.push(request.url().slice(base.length));
  });
  await page.reload();
  await visit.see('.lane[data-band="0"] .chip', "fast");
  await until(() => asked.filter((url) => url === queue("mail")).length >= 2,
    () => asked.join("\n"));
  const second = asked.lastIndexOf(queue("mail"));
  for (const part of ["/jobs?state=pending&pri=CRITICAL", "/jobs?state=pending&pri=LOW"]) {
    const at = asked.findIndex((url) => url.startsWith(queue("mail") + part));
    assert(at >= 0 && at < second, asked.join("\n"));
  }
  await page.locator(".activity").scrollIntoViewIfNeeded();
  // One runs: a slot with its worker, its group's share, its lease.
  const [taken] = await pop("mail", { lease_ms: 600_000 });
  assert.equal(taken.id, "fast");
  await visit.see(".slot", "w1 · red");
  await visit.see(".slot", "lease");
  await visit.see(".figure", /^Active11 of 2 slots$/);
  await visit.see(".group", "red");
  await visit.see(".worker-row", /w1.*runs fast for/);
  await visit.see(".share", "100 %");
  await visit.see_figure("Pending", "1");
  // Nothing waits for the groups, of which there may be many.
  const groups = (url) => url.pathname === `${queue("mail")}/groups`;
  let held = 0;
  await page.route(groups, () => { held += 1; });
  await until(() => held > 0, () => "no request for groups");
  await add("mail", "meanwhile", { pri: "LOW" });
  await visit.see_figure("Pending", "2");
  await page.unroute(groups);
  await api("POST", `${queue("mail")}/jobs/meanwhile:cancel`, {});
  const age = await page.locator(".slot-head strong").textContent();
  await page.waitForFunction((before) =>
    document.querySelector(".slot-head strong").textContent !== before, age);
  // It ends.
  await api("POST", `${queue("mail")}/jobs/fast:ack`, { lease: taken.lease, result: "1" });
  await visit.see_none(".slot", "fast");
  await page.locator(".activity").scrollIntoViewIfNeeded();
  await visit.see(".activity li", "Completed");
  await visit.click(".tabs button", "completed");
  await visit.see(".job-row", "fast");
  // Events are sent while they are seen; of others one, and then those that were missed.
  const streams = [];
  const told = (what) => (request) => {
    if (new URL(request.url()).pathname === `${queue("mail")}/events`) streams.push(what);
  };
  page.on("request", told("begun"));
  page.on("requestfailed", told("ended"));
  const until_told = (...wanted) =>
    until(() => streams.join() === wanted.join(), () => `${streams}, not ${wanted}`);
  await page.setViewportSize({ width: 1360, height: 300 });
  await page.evaluate(() => scrollTo(0, 0));
  await until_told("ended");
  await page.reload();
  await until_told("ended", "begun");
  await visit.see_figure("Pending", "1");
  await add("mail", "unseen-1", { pri: "LOW" });
  await until_told("ended", "begun", "ended");
  await add("mail", "unseen-2", { pri: "LOW" });
  await visit.see_figure("Pending", "3");
  await page.locator("h2", { hasText: "Activity" }).scrollIntoViewIfNeeded();
  await until_told("ended", "begun", "ended", "begun");
  for (const id of ["unseen-1", "unseen-2"]) await visit.see(".activity li", id);
  // Charts have been drawn.
  assert(await page.locator(".plot canvas").count() >= 2);
  await page.setViewportSize({ width: 1360, height: 900 });
  await costs(visit);
  await many_groups(visit);
  await visit.close();
});
