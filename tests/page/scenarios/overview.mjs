// The list of queues: filter, databases, the search from there.
import { Visit, add, api, assert, pause, pop, queue, scenario, until } from "./browser.mjs";

const cards = (visit) => visit.page.locator(".card header .id").allTextContents();

async function filter(visit) {
  const { page } = visit;
  const input = page.getByLabel("Filter queues");
  await input.fill("MA");
  await visit.see_none(".card", "exec");
  assert.deepEqual(await cards(visit), ["mail"]);
  // It stays while the list is read again.
  await pause(1500);
  assert.deepEqual(await cards(visit), ["mail"]);
  await input.fill("no such name");
  await visit.see(".empty", "No queue has this text in its name");
  assert.deepEqual(await cards(visit), []);
  await input.fill("");
  await visit.see(".card", "exec");
  assert.deepEqual(await cards(visit), ["exec", "mail"]);
}

async function databases(visit) {
  const { page } = visit;
  await page.getByLabel("Database").selectOption("3");
  await visit.see(".empty", "There are no queues yet");
  // The command for the first job goes to this server, not to the usual port.
  const { port } = await api("GET", "/api/v1/session");
  await visit.see(".empty pre", `redis-cli -p ${port} -n 3 Q.ADD`);
  assert(page.url().endsWith("#/?db=3"), page.url());
  await api("POST", `${queue("archive")}/jobs?db=3`, { id: "old", payload: "{}" });
  await visit.see(".card", "archive");
  assert.deepEqual(await cards(visit), ["archive"]);
  await visit.click(".card a", "archive");
  await visit.see(".job-row", "old");
  assert(page.url().endsWith("#/q/archive?db=3"), page.url());
  for (const key of ["w", "g"]) {
    await page.keyboard.press(key);
    await page.waitForFunction(() => location.hash.endsWith("?db=3"));
  }
  await visit.click(".card a", "archive");
  await visit.see(".job-row", "old");
  await page.keyboard.press("Escape");
  await visit.see(".card", "archive");
  assert.equal(await page.getByLabel("Database").inputValue(), "3");
  await page.getByLabel("Database").selectOption("0");
  await visit.see(".card", "mail");
  assert(page.url().endsWith("#/"), page.url());
}

// Rates are of the time between two counts, not between the arrivals of their answers.
async function late_answers(visit) {
  const { page } = visit;
  let polls = 0;
  let first = null;
  const list = (url) => url.pathname === "/api/v1/queues";
  await page.route(list, async (route) => {
    const answer = await (await route.fetch()).json();
    first ??= answer.now;
    answer.now = first + 10_000 * ++polls;
    answer.queues.find(({ name }) => name === "mail").stats.added += 40 * polls;
    await route.fulfill({ json: answer });
  });
  await page.waitForFunction(() => [...document.querySelectorAll(".card")].some((card) =>
    card.querySelector("a").textContent === "mail" && [...card.querySelectorAll(".figures div")]
      .some((figure) => figure.textContent === "added4.0/s")));
  await page.unroute(list);
  await page.reload();
  await visit.see(".card", "mail");
}

// A list of several pages is read again after a rest that grows with the time it took.
async function long_lists(visit) {
  const { page } = visit;
  let lists = 0;
  const list = (url) => url.pathname === "/api/v1/queues";
  await page.route(list, async (route) => {
    const answer = await (await route.fetch()).json();
    const first = !route.request().url().includes("cursor=");
    if (first) lists += 1;
    await pause(300);
    await route.fulfill({ json: { ...answer, cursor: first ? "further" : null } });
  }, { times: 100 });
  await page.route((url) => list(url) && url.searchParams.has("cursor"), async (route) => {
    await pause(300);
    await route.fulfill({ json: { queues: [], cursor: null, now: Date.now() } });
  });
  await page.reload();
  await visit.see(".card", "mail");
  await pause(6000);
  assert(lists <= 2, `${lists} lists`);
  await page.unrouteAll();
  await page.reload();
  await visit.see(".card", "mail");
}

async function search(visit) {
  const { page } = visit;
  await page.keyboard.press("/");
  await page.keyboard.type("both");
  await page.keyboard.press("Enter");
  await visit.see(".hits a", "mail / both");
  await visit.see(".hits a", "exec / both");
  await visit.click(".hits a", "mail / both");
  await visit.see("main.job h1", "both");
  assert(page.url().endsWith("#/q/mail/j/both"), page.url());
  await visit.see_none(".hits");
  await visit.go("#/");
  await visit.see(".card", "mail");
  // What is typed is looked for at once; keys choose from what was found.
  await page.keyboard.press("/");
  await page.keyboard.type("exe");
  await visit.see(".hits a", "exec");
  await page.keyboard.press("ArrowDown");
  await page.waitForSelector(".hits a[aria-selected=true]");
  await page.keyboard.press("Enter");
  await visit.see("main.queue h1", "exec");
  await visit.go("#/");
  await visit.see(".card", "mail");
}

// Not everything was looked at: what is there is shown, and that there may be more.
async function incomplete_search(visit) {
  const { page } = visit;
  const find = (url) => url.pathname === "/api/v1/find";
  await page.route(find, async (route) => {
    const answer = await (await route.fetch()).json();
    await route.fulfill({ json: { ...answer, complete: false } });
  });
  await page.fill(".search input", "exe");
  await visit.see(".hits a", "exec");
  await visit.see(".hits p", /^There may be more\.$/);
  await page.fill(".search input", "no-such");
  await visit.see(".hits p", "Nothing found so far: there is too much to look at.");
  assert.equal(await page.locator(".hits a").count(), 0);
  await page.unroute(find);
  await page.fill(".search input", "exec");
  await visit.see(".hits a", "exec");
  await visit.see_none(".hits p");
  await page.fill(".search input", "");
}

// What else a search finds: whose jobs, under whose lease, with which tag.
async function names(visit) {
  const { page } = visit;
  const find = (text) => page.fill(".search input", text);
  const rows = () => page.locator(".job-row a").allTextContents();
  for (const id of ["p1", "p2"]) await add("mail", id, { group: "team.*[1]" });
  await add("mail", "p3", { group: "team.x1", tags: { lang: "c++ & co" } });
  await api("POST", `${queue("mail")}:pop`, { worker: "grace-1", id: "p3", lease_ms: 600_000 });
  await find("team.*");
  await visit.click(".hits a", "mail / team.*[1]");
  const group = page.locator(".filters input[name=group]");
  assert.equal(await group.inputValue(), "team.*[1]");
  await visit.see(".job-row", "p2");
  // The group of this very name, and none that a glob would match.
  assert.deepEqual((await rows()).sort(), ["p1", "p2"]);
  await visit.click(".tabs button", "failed");
  await visit.see(".jobs .empty", "No such job");
  // Back and forward lead through what was chosen.
  await page.goBack();
  await visit.see(".job-row", "p2");
  await group.fill("");
  await visit.see(".jobs h2", "Next jobs");
  await page.locator("h2", { hasText: "Workers" }).scrollIntoViewIfNeeded();
  await visit.click(".worker-row a", "grace-1");
  await visit.see(".jobs h2", "Active jobs");
  await visit.see(".job-row", "p3");
  assert.deepEqual(await rows(), ["p3"]);
  await page.reload();
  await visit.see(".chip-filter", "worker grace-1");
  await visit.go("#/");
  await visit.see(".card", "mail");
  await add("mail", "p4", { tags: { lang: "c++ & co" }, pri: "LOW" });
  await api("POST", `${queue("mail")}/jobs/p4:cancel`, {});
  await find("lang=c++ & co");
  await visit.see(".hits a", "1 pending or active, 2 added");
  await visit.click(".hits a", "mail / lang=c++ & co");
  await visit.see(".job-row", "p3");
  assert.deepEqual((await rows()).sort(), ["p3", "p4"]);
  await visit.go("#/");
  await visit.see(".card", "mail");
  await find("lang=none");
  await visit.see(".hits", /Nothing found with this id or name.*Of tags a queue counts only four/);
}

// Each number has its name, and each line its colour's: in the table's head, or beside them.
async function named_numbers(visit) {
  const { page } = visit;
  const keys = (where) => page.locator(`${where} .key:visible`).evaluateAll((all) =>
    all.map((each) => `${each.textContent} ${each.dataset.colour}`));
  const lines = ["waiting waiting", "ended done", "failed bad"];
  for (const [width, where] of [[1360, ".spark-head"], [1000, "tr:has-text('many-6')"],
    [390, "tr:has-text('many-6')"]]) {
    await page.setViewportSize({ width, height: 900 });
    assert.deepEqual(await keys(`.queues ${where}`), lines, `${width}`);
  }
  const told = await page.locator(".queues tr:has-text('many-6')").innerText();
  assert.match(told, /waiting, last hour[^]*ended, failed a\sminute, last hour/);
  await page.setViewportSize({ width: 1360, height: 900 });
}

// Many queues: a table, those in trouble first.
async function table(visit) {
  const { page } = visit;
  const rows = () => page.locator(".queues tbody a.id").allTextContents();
  for (let n = 0; n < 7; ++n) await add(`many-${n}`, "j");
  await add(`many-${"long-".repeat(20)}`, "j");
  await add("many-5", "later", { delay_ms: 600_000 });
  await add("many-5", "needy", { needs: ["later"] });
  await visit.see(".queues tr", "many-6");
  await visit.see(".queues tr", /many-6.*no worker/);
  await visit.see(".sum", /1 blocked/);
  // Jobs that take several slots are told with their slots.
  await api("PATCH", queue("many-1"), { max_active: 4 });
  for (const id of ["c1", "c2"]) await add("many-1", id, { cost: 2, pri: "CRITICAL" });
  await pop("many-1", { count: 2, lease_ms: 600_000 });
  await visit.see(".queues td", "2, 4 of 4 slots");
  const told = await page.locator(".sum").textContent();
  const [waiting, , pending, delayed, blocked] = told.match(/\d+/g).map(Number);
  assert(waiting === pending + delayed + blocked && delayed === 1 && blocked === 1, told);
  // A line that is zero throughout has no greatest value to tell.
  await visit.see(".queues tr:has-text('many-6') .spark-cell", "max 1");
  await visit.see_none(".spark-cell small", "max 0");
  // The sum is exact, so that it adds up however large it is.
  const list = (url) => url.pathname === "/api/v1/queues";
  await page.route(list, async (route) => {
    const answer = await (await route.fetch()).json();
    const { stats } = answer.queues.find(({ name }) => name === "many-0");
    Object.assign(stats, { waiting: 300_149, pending: 149_999, delayed: 150_150 });
    await route.fulfill({ json: answer });
  });
  await visit.see(".sum", /^300,\d\d\d jobs wait in .*: 150,\d\d\d pending, 150,151 delayed/);
  await page.unroute(list);
  await visit.see(".sum", /^\d+ jobs wait/);
  await named_numbers(visit);
  // It needs no sideways scrolling, whatever the width.
  for (const width of [1920, 1280, 1100, 768, 390, 1360]) {
    await page.setViewportSize({ width, height: 900 });
    await page.waitForFunction(() => document.documentElement.scrollWidth <= innerWidth);
  }
  await add("many-3", "bad", { pri: "CRITICAL" });
  const [taken] = await api("POST", `${queue("many-3")}:pop`, { id: "bad", worker: "w" })
    .then(({ jobs }) => jobs);
  await api("POST", `${queue("many-3")}/jobs/bad:nack`, { lease: taken.lease, mode: "fatal" });
  await page.waitForFunction(() =>
    document.querySelector(".queues tbody a.id").textContent === "many-3");
  await visit.see(".queues tr", /many-3.*failing/);
  // A small chart tells the values under the pointer.
  await page.locator(".queues tr", { hasText: "many-5" }).locator("canvas").first().hover();
  await visit.see(".spark-at", /^waiting (\d+|unknown)/);
  await visit.click(".queues th button", "delayed");
  await page.waitForFunction(() =>
    document.querySelector(".queues tbody a.id").textContent === "many-5");
  assert(page.url().endsWith("#/?sort=delayed"), page.url());
  await visit.click(".queues th button", "queue");
  await page.waitForFunction(() =>
    document.querySelector(".queues tbody a.id").textContent === "exec");
  await page.goBack();
  await page.waitForFunction(() =>
    document.querySelector(".queues tbody a.id").textContent === "many-5");
  // Found by its name, a long one leaves room for others, on a phone too.
  for (const width of [390, 1360]) {
    await page.setViewportSize({ width, height: 900 });
    await page.fill(".search input", "many-l");
    await visit.see(".hits a", "many-long-long");
    const { height } = await page.locator(".hits a").boundingBox();
    assert(height < 100, `${height} pixels`);
    await page.fill(".search input", "");
  }
  // What the server has given up of the hour is not taken for nothing.
  assert.equal(await page.getByText("gave up").isVisible(), false);
  await page.route("**/api/v1/history?*", async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    for (const line of body.queues) line.reduced = line.queue === "many-6";
    await route.fulfill({ response, json: body });
  });
  await page.reload();
  await visit.see("main p", "Of 1 queue here the server gave up a part of the last hour");
  await page.getByLabel("Filter queues").fill("many-6");
  await page.waitForFunction(() => document.querySelectorAll(".queues tbody tr").length === 1);
  assert.deepEqual(await rows(), ["many-6"]);
  // The filter is a part of the address.
  await page.unrouteAll({ behavior: "wait" });
  await page.reload();
  await page.waitForFunction(() => document.querySelectorAll(".queues tbody tr").length === 1);
  assert.equal(await page.getByLabel("Filter queues").inputValue(), "many-6");
}

// What failed before the page was opened counts, also where a queue would be far below. Long names
// need several requests.
async function failing_first(visit) {
  const { page } = visit;
  const name = (n) => `row-${n}-${"long-".repeat(50)}`;
  await Promise.all(Array.from({ length: 35 }, (_, n) => add(name(n), "j")));
  await add("zz", "bad");
  await until(async () => (await api("GET", "/api/v1/history?queue=zz"))
    .queues[0].failed_total !== null, () => "history of zz");
  const { jobs: [{ lease }] } = await api("POST", `${queue("zz")}:pop`, { worker: "w" });
  await api("POST", `${queue("zz")}/jobs/bad:nack`, { lease, mode: "fatal" });
  await visit.go("#/");
  await page.reload();
  await page.waitForFunction(() => [...document.querySelectorAll(".queues tbody a.id")].slice(0, 2)
    .map((link) => link.textContent).sort().join() === "many-3,zz");
  await visit.click("button", "Show more queues");
  await page.waitForFunction(() => document.querySelectorAll(".queues tbody tr").length > 40);
  // What is typed stays as it is.
  await page.getByLabel("Filter queues").fill(" z");
  await visit.see(".queues tr", "zz");
  assert.equal(await page.getByLabel("Filter queues").inputValue(), " z");
}

await scenario(async (browser) => {
  for (const name of ["mail", "exec"]) await add(name, "both");
  const visit = await Visit.open(browser);
  await visit.log_in();
  await visit.see(".card", "mail");
  await visit.play([filter, databases, late_answers, long_lists, search, incomplete_search,
    names, table, failing_first]);
  await visit.close();
});
