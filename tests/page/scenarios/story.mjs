import { Visit, add, api, assert, pop, queue, scenario, until } from "./browser.mjs";

const settle = (id, lease, verb, body) =>
  api("POST", `${queue("work")}/jobs/${id}:${verb}`, { lease, ...body });

async function reasons(visit) {
  await api("PATCH", `${queue("capped")}?create=true`, { max_active: 1 });
  await add("capped", "first");
  await add("capped", "second");
  await add("capped", "third");
  await add("capped", "later", { delay_ms: 3_600_000 });
  await add("capped", "needy", { needs: ["later"], after: ["third"] });
  await visit.open_job("capped", "first");
  await visit.see(".words", "no worker is asking");
  await visit.see_figure("Expected to start", "–");
  await visit.open_queue("capped");
  await visit.see(".job-row .note", "no worker is asking");
  await visit.see_none(".job-row .note", "Expected");
  await visit.open_job("capped", "third");
  await visit.see(".words", "2 jobs are before it");
  await visit.see_figure("Place by rank", "#3");
  await visit.see_figure("Place in dispatch order", "#3");
  await visit.open_job("capped", "later");
  await visit.see(".words", "It is delayed until");
  await visit.open_job("capped", "needy");
  await visit.see(".words", "It waits for the end of later, third");
  await visit.see(".graph-column", /needs.*later.*delayed/);
  await visit.see(".graph-column", /comes after.*third.*pending/);
  await visit.open_job("capped", "later");
  await visit.see(".graph-column", /wait for it.*needy.*blocked/);
  await pop("capped", { lease_ms: 600_000 });
  await visit.open_job("capped", "second");
  await visit.see(".words", "the queue is full: 1 of 1 slot in use");
  await api("PATCH", queue("capped"), { paused: "out" });
  await visit.see(".words", "paused");
}

// What a group or its pause holds has no place among the next jobs, however few those are.
async function held(visit) {
  const told = /^Place in dispatch order–pops would not take it now: a limit or a pause holds it$/;
  await api("PATCH", `${queue("held")}?create=true&group=g`, { max_active: 1 });
  for (const id of ["first", "second", "third"]) await add("held", id, { group: "g" });
  await visit.open_job("held", "first");
  await visit.see_figure("Place in dispatch order", "#1");
  await visit.open_job("held", "second");
  await visit.see(".figure", told);
  await visit.picture("held-job");
  // A list that is cut says only that the job is not at its beginning.
  await api("POST", `${queue("held")}/jobs`, Array.from({ length: 100 }, (_, n) => ({
    id: `other-${n}`, payload: "", pri: "HIGH" })));
  await visit.see(".figure", /^Place in dispatch order–not among the next 100$/);
}

// The server's "need ID" is a sentence; a reason that begins so is what somebody wrote.
async function failed_needs(visit) {
  const told = "The job base, which it needed, did not complete.";
  await add("failing", "base");
  await add("failing", "user", { needs: ["base"] });
  await add("failing", "other");
  await api("POST", `${queue("failing")}/jobs/other:cancel`, { reason: "need base" });
  await api("POST", `${queue("failing")}/jobs/base:cancel`);
  await visit.open_job("failing", "user");
  await visit.see(".headline-error", told);
  await visit.see(".story li p", `error ${told}`);
  await visit.open_job("failing", "other");
  await visit.see(".headline-error", /^need base$/);
  await visit.go("#/q/failing?state=cancelled");
  await visit.see(".job-row .note", told);
  await visit.see(".job-row .note", /^need base$/);
}

// Some of many are shown on each side, with their states; the others are counted.
async function many_needs(visit) {
  const needs = Array.from({ length: 60 }, (_, n) => `n${n}`);
  for (const id of needs) await add("many", id);
  await add("many", "user", { needs });
  await add("many", "last", { needs: ["user"] });
  await visit.open_job("many", "user");
  await visit.see(".graph-column", /^needs(n\d+pending){29}and 31 more$/);
  await visit.see(".graph-column", /^wait for itlastblocked$/);
}

// Byte for byte, whatever of it is shown.
async function copies(visit, title, text) {
  const { page } = visit;
  await page.locator(".panel", { hasText: title }).getByRole("button", { name: "Copy" }).click();
  await visit.see(".notice", "Copied.");
  let copied = "";
  await until(async () => {
    copied = await page.evaluate(() => navigator.clipboard.readText());
    return copied === text;
  }, () => copied);
}

// Numbers as they are written; of a long log the last whole lines, the rest on request.
async function numbers_and_logs(visit) {
  await api("PATCH", queue("work"), { log_bytes: 1_000_000 });
  const payload = '{"user":1234567890123456789,"price":1.10,"10":"\\u0041\\"1.50","2":-1E400,'
    + '"ok":[true,null],"lines":"C:\\\\a\\nb\\u202e"}';
  await add("work", "big", { pri: "CRITICAL", payload });
  const [{ lease }] = await pop("work", { id: "big", lease_ms: 600_000 });
  for (let part = 0; part < 3; ++part) {
    await settle("big", lease, "touch", { log: Array.from({ length: 4000 }, (_, n) =>
      `line ${part * 4000 + n}\n`).join("") });
  }
  await visit.open_job("work", "big");
  await visit.see(".tree", "user: 1234567890123456789");
  assert.deepEqual(await visit.page.locator(".tree .entry").allTextContents(),
    ["user: 1234567890123456789", "price: 1.10", '10: "A\\"1.50"', "2: -1E400", "true", "null",
      'lines: "C:\\\\a\\nb\\u{202e}"']);
  await copies(visit, "Payload", payload);
  await visit.see("pre[role=log]", /^…\nline \d+\nline [^]*line 11999\n$/);
  await visit.click("button.link", "Show the earlier");
  await visit.see("pre[role=log]", /^line 0\nline 1\n[^]*line 11999\n$/);
  assert.deepEqual(await visit.page.evaluate(() => [document.activeElement.role,
    document.activeElement.scrollTop]), ["log", 0]);
  await grows(visit, (log) => settle("big", lease, "touch", { log }));
}

// What is shown of a log stays while more comes; who is at its end stays there. A sequence of a
// terminal may come in two parts.
async function grows(visit, write) {
  const log = visit.page.locator("pre[role=log]");
  const block = await log.locator(".log-block").first().elementHandle();
  await write("more \x1b[3");
  await visit.see("pre[role=log]", /line 11999\nmore $/);
  assert.equal(await log.evaluate((element) => element.scrollTop), 0);
  await log.evaluate((element) => { element.scrollTop = element.scrollHeight; });
  const at_end = () => log.evaluate(({ scrollTop, clientHeight, scrollHeight }) =>
    scrollTop + clientHeight >= scrollHeight - 8);
  await until(at_end, () => "the end of the log");
  await write("1mred\n");
  await visit.see("pre[role=log] [data-ansi='1']", /^red\n$/);
  await write("last\n".repeat(3000));
  await visit.see("pre[role=log]", /more red\n(last\n){3000}$/);
  await until(at_end, () => "the end of the log after more of it");
  assert(await block.evaluate((element) => element.isConnected), "the log was drawn anew");
}

// Bytes that are not UTF-8 leave the rest of a log readable; a character may come in two parts.
async function odd_logs(visit) {
  await add("work", "odd", { pri: "CRITICAL" });
  const [{ lease }] = await pop("work", { id: "odd", lease_ms: 600_000 });
  const log = (bytes) => settle("odd", lease, "touch",
    { log_base64: Buffer.from(bytes, "latin1").toString("base64") });
  await visit.open_job("work", "odd");
  await log("caf\xe9 one\nline two \xe2\x82");
  await visit.see("pre[role=log]", /^caf\\xe9 one\nline two $/);
  await log("\xac\n\xc3(\n");
  await visit.see("pre[role=log]", /^caf\\xe9 one\nline two €\n\\xc3\(\n$/);
  await settle("odd", lease, "nack", { mode: "fatal",
    error_base64: Buffer.from("no caf\xe9\nat all", "latin1").toString("base64") });
  await visit.see(".headline-error", /^no caf\\xe9\nat all$/);
}

// A long story is read in parts; the next part is in focus when it has been asked for. What it has
// to say of the attempts is told as not known until then.
async function long_story(visit) {
  const { page } = visit;
  const move = (n) => api("PATCH", `${queue("long")}/jobs/j`, { pri: n % 2 ? "LOW" : "HIGH" });
  const events = async () => (await api("GET",
    `${queue("long")}/events?after=-&id=j&count=1000`)).events.length;
  await add("long", "j");
  for (let part = 0; part < 19; ++part) await Promise.all(Array.from({ length: 50 }, (_, n) =>
    move(n)));
  for (let n = 0; await events() < 999; ++n) await move(n);
  const [{ lease }] = await pop("long", { lease_ms: 600_000 });
  await visit.open_job("long", "j");
  await visit.see(".panel", "1,000 events, and more.");
  await visit.see(".attempts li", /#1.*running/);
  await visit.see_none(".panel p", "The newest are not shown");
  await api("POST", `${queue("long")}/jobs/j:nack`, { lease, mode: "fatal", error: "at last" });
  await visit.see(".headline-error", "at last");
  await visit.see(".attempts li", /#1.*end not read/);
  await page.reload();
  await visit.see(".attempts li", /#1.*end not read/);
  await visit.see(".panel", "The newest are not shown");
  await page.locator("button", { hasText: "Show more" }).press("Enter");
  await page.waitForFunction(() => document.activeElement
    === document.querySelectorAll(".story li")[1000]);
  await visit.see(".attempts li", /#1.*failed.*at last/);
  await visit.see_none(".panel p", "The newest are not shown");
}

// The newest attempts are shown, the others on request.
async function many_attempts(visit) {
  await api("PATCH", `${queue("again")}?create=true`, { retry: 100, backoff: "1ms:1ms" });
  await add("again", "j");
  for (let number = 1; number <= 22; ++number) {
    const [{ lease }] = await pop("again", { lease_ms: 600_000, wait_ms: 10_000 });
    await api("POST", `${queue("again")}/jobs/j:nack`, { lease, error: `try ${number}` });
  }
  await visit.open_job("again", "j");
  await visit.see(".attempts li", /#22.*try 22/);
  assert.equal(await visit.page.locator(".attempts li").count(), 20);
  await visit.click("button", "Show the 2 earlier attempts too");
  await visit.see(".attempts li", /#1.*try 1$/);
  assert.match(await visit.page.locator(":focus").textContent(), /^#2failed/);
}

await scenario(async (browser) => {
  // What others do stands between the events of the one that is asked for.
  for (let n = 0; n < 30; ++n) await add("work", `other-${n}`, { pri: "LOW" });
  await add("work", "j", { payload: '{"a":[1,2]}', retry: 1, backoff: [1, 1], group: "g",
    tags: { lang: "python" } });
  const visit = await Visit.open(browser, { hasty: true,
    permissions: ["clipboard-read", "clipboard-write"] });
  await visit.log_in();
  await visit.open_job("work", "j");
  await visit.see(".story li", "Added");
  await visit.see(".facts", "lang=python");
  await visit.see(".tree summary", "a: [ 2 items ]");
  const [first] = await pop("work", { lease_ms: 600_000 });
  assert.equal(first.id, "j");
  await visit.see(".verdict .pill", "active");
  await visit.see(".facts", `lease token${first.lease}`);
  await visit.see(".story li p", `lease token ${first.lease}`);
  await visit.see(".attempts li", /#1.*running.*by w1/);
  await settle("j", first.lease, "nack", { delay_ms: 0,
    error: "Traceback (most recent call last):\n  x\ntry again" });
  await visit.see(".story li p", "error try again");
  await visit.see(".attempts li", /#1.*failed, to be retried[^]*try again/);
  const [second] = await pop("work", { lease_ms: 600_000 });
  assert.equal(second.id, "j");
  // Somebody may be reading the error of the first run while the second one runs.
  const running = visit.page.locator(".attempts li").filter({ hasText: /#2.*running/ });
  await running.waitFor();
  const error = await visit.page.locator(".attempts pre").elementHandle();
  const told_before = await running.textContent();
  await until(async () => await running.textContent() !== told_before, () => told_before);
  assert(await error.evaluate((element) => element.isConnected), "the error was drawn anew");
  await settle("j", second.lease, "touch", { progress: "half" });
  await visit.see(".progress", "half");
  // Colours of a terminal are colours; what else it obeys is left out, other bytes are told.
  await settle("j", second.lease, "touch",
    { log: "a\x1b[2K \x1b[1;31mred\x1b[0m plain\r\n\x1b[92mgreen\x07\n" });
  await visit.see("pre[role=log]", /^a red plain\ngreen\\x07\n$/);
  const coloured = await visit.page.locator("pre[role=log] span").evaluateAll((all) =>
    all.map((each) => [each.textContent, each.dataset.ansi, "bold" in each.dataset]));
  assert.deepEqual(coloured, [["red", "1", true], ["green\\x07\n", "2", false]]);
  await settle("j", second.lease, "ack", { result: "done: 42" });
  await visit.see(".words", "It completed after");
  await visit.see("pre", "done: 42");
  await copies(visit, "Result", "done: 42");
  await visit.see(".story li", "Completed");
  const told = await visit.page.locator(".story li strong").allTextContents();
  assert.deepEqual(told.filter((word) => word !== "Reported progress"), ["Added", "Started", "Will be retried", "Started",
    "Completed"]);
  await numbers_and_logs(visit);
  await odd_logs(visit);
  await long_story(visit);
  await many_attempts(visit);
  await reasons(visit);
  await held(visit);
  await many_needs(visit);
  await failed_needs(visit);
  visit.faults.allowed.push("status of 404");
  await visit.open_job("work", "never-was");
  await visit.see(".empty", "No such job");
  await visit.close();
});
