import { Visit, add, api, assert, base, pop, queue, scenario, tokens } from "./browser.mjs";

const BANDS = ["CRITICAL", "HIGH", "NORMAL", "LOW", "BACKGROUND"];
const WIDE = { viewport: { width: 1280, height: 800 } };
const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true,
  hasTouch: true };

async function fill() {
  await api("PATCH", `${queue("exec")}?create=true`, { max_active: 8, fair: "on" });
  await api("PATCH", `${queue("render")}?create=true`, { max_active: 2, paused: "out" });
  for (let n = 0; n < 120; ++n) {
    const name = ["exec", "exec", "mail", "render"][n % 4];
    await add(name, `${name}-${String(n).padStart(4, "0")}`, { pri: BANDS[n % 7 % 5],
      group: `team.${n % 6}`, payload: JSON.stringify({ lang: "python", script: `print(${n})` }) });
  }
  for (const worker of ["ada", "grace", `worker-${"of-a-long-name-".repeat(6)}`]) {
    await pop("exec", { worker, count: 2, lease_ms: 600_000 });
  }
  const [done, failed] = await pop("mail", { count: 2, worker: "smtp-1" });
  const path = (each) => `${queue("mail")}/jobs/${each.id}`;
  await api("POST", `${path(done)}:ack`, { lease: done.lease, result: '{"sent":true}' });
  await api("POST", `${path(failed)}:nack`, { lease: failed.lease, mode: "fatal",
    error: "no route" });
  return { running: "exec-0000", done: done.id };
}

async function fits(visit, name) {
  const [inner, outer] = await visit.page.evaluate(() =>
    [document.documentElement.scrollWidth, innerWidth]);
  assert(inner <= outer, `${name}: ${inner} px of content in ${outer} px`);
  // Nothing sticks out of its panel.
  const wide = await visit.page.evaluate(() => [...document.querySelectorAll(
    ".panel-body > *, [role=tabpanel] > *, .slot, .slot > *, .job-row, .worker-row, "
    + ".worker-row > *, .group, .lane, .setting, .attempts li > *, .rule header > *, .failure, .changes li > *, .card > *, "
    + ".queues tr > *, .job-row > *, .failure > *, .rule > *")].filter((each) => {
    const around = each.closest(".panel, .card, table");
    return around && each.checkVisibility()
      && each.getBoundingClientRect().right > around.getBoundingClientRect().right + 0.5;
  }).map((each) => `${each.className} ${each.textContent.slice(0, 60)}`));
  assert.deepEqual(wide, [], name);
}

// The header has at most two lines, with all places.
async function header_fits(visit) {
  const { height } = await visit.page.locator(".bar").boundingBox();
  assert(height <= 96, `a header of ${height} px`);
  assert.deepEqual(await visit.page.locator(".places a:visible").allTextContents(),
    ["Queues", "Workers", "Server"]);
}

// When what is in view is there, and drawn.
async function shoot(visit, what, { isMobile }) {
  await visit.page.waitForFunction(() => [...document.querySelectorAll(".skeleton")]
    .every((each) => {
      const { top, bottom } = each.getBoundingClientRect();
      return !each.checkVisibility() || bottom < 0 || top > innerHeight;
    }));
  await visit.page.evaluate(() => new Promise((done) =>
    requestAnimationFrame(() => requestAnimationFrame(done))));
  await fits(visit, what);
  await visit.picture(what);
  // A phone shows the same elements.
  if (!isMobile) await visit.see_accessible(what);
}

async function pictures(browser, name, options, { done }) {
  const visit = await Visit.open(browser, options);
  const { page } = visit;
  const shoot_it = (what) => shoot(visit, `${what}-${name}`, options);
  await visit.log_in();
  await visit.see(".card", "mail");
  await page.waitForSelector(".card canvas");
  await shoot_it("overview");
  await visit.open_queue("exec");
  await visit.see(".figure", "Pending");
  await page.waitForSelector(".plots canvas");
  // A device without keys does not tell of them.
  assert.equal(await page.getByText("Shift and the arrow keys").isVisible(), !options.isMobile);
  if (!options.isMobile) await visit.see(".lane .chip", "exec-");
  await shoot_it("queue");
  await page.locator(".columns").scrollIntoViewIfNeeded();
  await page.evaluate(() => document.querySelector(".columns").scrollIntoView());
  await visit.see(".job-row", "exec-");
  await visit.see(".job-row .group-name", "team.");
  if (!options.isMobile) {
    await visit.see(".worker-row", "ada");
    await visit.see(".group", "team.0");
    await visit.see(".panel-aside", "live");
  }
  await shoot_it("queue-below");
  await visit.open_job("mail", done);
  await visit.see(".story li", "Completed");
  await shoot_it("job");
  await visit.go("#/workers");
  await visit.see(".all-workers tr", "ada");
  await header_fits(visit);
  await shoot_it("workers");
  await visit.go("#/server");
  await visit.see(".fact-panels dt", "Version");
  await visit.see(".changes li", "Set exec: ");
  await header_fits(visit);
  await shoot_it("server");
  await visit.close();
}

const LONG = Object.fromEntries([..."qjgw"].map((letter) => [letter, letter.repeat(512)]));

async function fill_long() {
  await add(LONG.q, LONG.j, { group: LONG.g });
  await pop(LONG.q, { worker: LONG.w, lease_ms: 600_000 });
  await api("PATCH", `${queue(LONG.q)}?group_glob=${LONG.g}`, { max_active: 3 });
}

// The longest names leave room for the rest; a touch shows them whole.
async function long_names(visit, shoot_it) {
  const { page } = visit;
  const phone = (await page.viewportSize()).width < 500;
  const below = async () => (await page.locator("h1").boundingBox()).height;
  await visit.open_queue(LONG.q);
  await visit.see(".figure", "Pending");
  await shoot_it("long-queue");
  if (phone) {
    assert(await below() < 200, `a heading of ${await below()} px`);
    await page.click("h1 > bdi");
    assert(await below() > 400, `a heading of ${await below()} px`);
  }
  await visit.open_job(LONG.q, LONG.j);
  await visit.see(".attempts li", "#1");
  await shoot_it("long-job");
  if (phone) assert(await below() < 300, `a heading of ${await below()} px`);
  await visit.go(`#/q/${LONG.q}/settings`);
  await visit.see(".rule", LONG.g);
  await shoot_it("long-settings");
}

// What is seen more seldom.
async function seldom(browser, name, options) {
  const visit = await Visit.open(browser, options);
  const { page } = visit;
  const shoot_it = (what) => shoot(visit, `${what}-${name}`, options);
  await page.goto(`${base}/`);
  await page.waitForSelector("input[name=token]");
  await shoot_it("log-in");
  await page.fill("input[name=token]", tokens.operate);
  await page.keyboard.press("Enter");
  await visit.see(".card", "mail");
  // On a phone they are below what is in view.
  const see_jobs = async () => {
    await visit.open_queue("exec");
    await visit.see(".figure", "Pending");
    await page.evaluate(() => document.querySelector(".columns").scrollIntoView());
    await visit.see(".job-row", "exec-");
    await page.evaluate(() => scrollTo(0, 0));
  };
  await see_jobs();
  await visit.click(".page-head button", "Add a job…");
  await visit.see("dialog h2", "Add a job");
  await shoot_it("dialog");
  await visit.click("dialog summary", "More");
  await shoot_it("dialog-more");
  await page.keyboard.press("Escape");
  await visit.see_none("dialog");
  await page.keyboard.press("?");
  await visit.see("dialog h2", "Keys");
  await shoot_it("keys");
  await page.keyboard.press("Escape");
  await page.fill(".search input", "exec");
  await visit.see(".hits a", "exec");
  await shoot_it("search");
  await page.keyboard.press("Escape");
  await visit.go("#/q/exec/settings");
  await visit.see(".setting", /max_active.*of 8 in use/);
  await visit.click(".setting button", "Change");
  await visit.see(".setting-edit button", "Save");
  await shoot_it("settings");
  await visit.open_queue("nothing-here");
  await visit.see(".empty", "There is no queue nothing-here");
  await shoot_it("no-queue");
  await visit.go("#/?db=7");
  await visit.see(".empty", "There are no queues yet");
  await shoot_it("empty");
  await long_names(visit, shoot_it);
  visit.faults.allowed.push("status of 404");
  await visit.go("#/q/mail/j/none");
  await visit.see(".empty", "No such job");
  await shoot_it("no-job");
  await see_jobs();
  visit.faults.allowed.push("ERR_INTERNET_DISCONNECTED");
  await visit.context.setOffline(true);
  await visit.see(".banner", "The server does not respond");
  await visit.see(".banner", "The data shown is");
  assert.equal(await page.locator(".hits").isVisible(), false);
  await shoot_it("disconnected");
  await visit.close();
}

async function fill_lists() {
  for (let n = 0; n < 9; ++n) await add(`queue-${n}`, "j", { group: `team.${n}` });
  await api("PATCH", queue("queue-1"), { paused: "all", max_waiting: 1 });
  await api("PATCH", queue("queue-2"), { max_active: 1000 });
  await api("POST", `${queue("queue-2")}/jobs`, Array.from({ length: 60 }, (_, n) => ({
    id: `c${n}`, payload: "", cost: 20, pri: "HIGH" })));
  await pop("queue-2", { count: 50, lease_ms: 600_000 });
  await add(LONG.q, "j");
  const errors = ["Timeout after 30 ms", "Timeout after 7 ms", `No route to ${LONG.j}`,
    'Traceback (most recent call last):\n  File "a.py", line 3\nKeyError: 17'];
  await api("PATCH", `${queue("errors")}?create=true`, { retry: 2, backoff: "1ms:1ms" });
  for (const [n, error] of errors.entries()) {
    await add("errors", `bad-${n}`, { group: "team.red", tags: { lang: "python" } });
    for (const mode of ["fail", "fail", "fatal"]) {
      const [{ lease }] = await pop("errors", { worker: `host-${mode}`, wait_ms: 10_000 });
      await api("POST", `${queue("errors")}/jobs/bad-${n}:nack`, { lease, mode, error });
    }
  }
  for (const [rule, body] of [["group=team.red", { max_active: 3, weight: 2 }],
    ["group_glob=team.*", { max_waiting: 100 }], ["key_glob=*", { max_active: 1 }],
    [`worker=${LONG.w}`, { quiet: true }]]) {
    await api("PATCH", `${queue("errors")}?${rule}`, body);
  }
}

// The same page in two sizes, light and dark. `place`: what is to be seen.
async function in_all_looks(visit, what, place) {
  const { page } = visit;
  for (const [size, { viewport }] of [["", WIDE], ["phone", PHONE]]) {
    await page.setViewportSize(viewport);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      await page.locator(place).first().evaluate((element) => element.scrollIntoView());
      const look = size && colorScheme === "light" ? size : [size, colorScheme];
      await shoot(visit, [what, look].flat().filter((each) => each !== "").join("-"), {});
    }
  }
}

// Long lists, each opened once.
async function lists(browser) {
  const visit = await Visit.open(browser, WIDE);
  await visit.log_in();
  await visit.see(".queues tr", "queue-8");
  await visit.see(".queues td", "50, 1,000 of 1,000 slots");
  await in_all_looks(visit, "queues", "main");
  await visit.go("#/q/errors?state=failed&group=team.red&error=timeout&since=1000");
  await visit.see(".job-row", "bad-1");
  await in_all_looks(visit, "failed", ".panel.jobs");
  await visit.go("#/q/errors?state=failed");
  await visit.click(".filters button", "By error");
  await visit.see(".failure", "KeyError");
  await in_all_looks(visit, "by-error", ".panel.jobs");
  await visit.open_job("errors", "bad-3");
  await visit.see(".attempts li", /#3failed/);
  await visit.see(".story li", "Failed");
  await in_all_looks(visit, "failed-job", "main");
  await visit.go("#/q/errors/settings");
  await visit.see(".rule", "max_active");
  await in_all_looks(visit, "rules", ".rules-panel");
  await visit.close();
}

await scenario(async (browser) => {
  if (process.env.PART === "lists") {
    await fill_lists();
    return lists(browser);
  }
  const known = await fill();
  if (process.env.PART === "seldom") {
    await fill_long();
    await seldom(browser, "light", { ...WIDE, colorScheme: "light" });
    return seldom(browser, "phone-dark", { ...PHONE, colorScheme: "dark" });
  }
  const [name, device] = process.env.PART === "phone" ? ["phone", PHONE] : ["light", WIDE];
  const dark = process.env.PART === "phone" ? "phone-dark" : "dark";
  await pictures(browser, name, { ...device, colorScheme: "light" }, known);
  await pictures(browser, dark, { ...device, colorScheme: "dark" }, known);
});
