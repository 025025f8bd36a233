import { Visit, add, api, assert, job, pop, queue, scenario } from "./browser.mjs";

const TEXTS = ["<img src=x onerror=alert(1)>", "<script>alert(1)</script>",
  "\"><svg onload=alert(1)>", "javascript:alert(1)", "</title><iframe src=//example.org>",
  "a/b?c#d%2e%2e:cancel", "..", "{{7*7}}",
  "\u202egpj.exe", "\u0000\u0007\u001b[31m", "‮<b>‬", "&lt;b&gt;", "__proto__", "constructor",
  "  ", "x".repeat(500), "🧨'`${alert(1)}"];

async function fill() {
  for (const [number, text] of TEXTS.entries()) {
    const part = text.slice(0, 60);
    await api("POST", `${queue("q")}/jobs`, { id: text, payload: text, group: part, keys: [part],
      tags: { [part]: part }, pri: number % 3 });
    if (text !== "..") await add(text.slice(0, 200), "inside");
  }
  // No UTF-8 at all.
  await api("POST", `${queue("q")}/jobs`, { id_base64: "/zwh", payload_base64: "//48Yj4=",
    group_base64: "/w==", pri: 0 });
  const taken = await pop("q", { count: 4, worker: "<u>worker</u>", lease_ms: 600_000 });
  for (const [number, { id, lease }] of taken.entries()) {
    const path = `${queue("q")}/jobs/${encodeURIComponent(id)}`;
    if (id === null || id === ".." || number === 3) continue;
    await api("POST", `${path}:touch`, { lease, progress: "<b>half</b>" });
    if (number === 0) await api("POST", `${path}:ack`, { lease, result: TEXTS[1] });
    if (number === 1) await api("POST", `${path}:nack`, { lease, mode: "fatal", error: TEXTS[0] });
  }
}

// A mark that others leave out of a text is a part of an id: what is chosen is what is cancelled.
async function byte_order_mark(visit) {
  const marked = "\ufeffone";
  await add("marks", "one");
  await add("marks", marked, { payload: marked });
  await visit.open_job("marks", marked);
  await visit.see("main.job h1", "\\u{feff}one");
  await visit.see("pre", "\\u{feff}one");
  await visit.go("#/q/marks?state=pending");
  await visit.page.getByLabel("Choose \\u{feff}one").check();
  await visit.click("button", "Cancel…");
  await visit.click("dialog button.primary", "Cancel");
  await visit.see(".notice", "1 job cancelled.");
  assert.equal((await job("marks", marked)).state, "cancelled");
  assert.equal((await job("marks", "one")).state, "pending");
}

await scenario(async (browser) => {
  await fill();
  const visit = await Visit.open(browser);
  const { page } = visit;
  await page.addInitScript(() => {
    globalThis.violations = [];
    document.addEventListener("securitypolicyviolation", (event) =>
      globalThis.violations.push(event.violatedDirective));
  });
  await visit.log_in();
  await visit.see(".queues tr", "<script>alert(1)</script>");
  await visit.see(".queues span.id", "..");
  await visit.see(".queues span.id", "(empty name)");
  await visit.see(".queues a.id", "\\x20\\x20");
  await visit.faults.look(page);
  await visit.click(".queues a", "<img src=x onerror=alert(1)>");
  await visit.see("main.queue h1", "<img src=x onerror=alert(1)>");
  await visit.see(".job-row", "inside");
  await visit.faults.look(page);
  // The longest names do not widen the table of workers, nor is a queue without a name nothing.
  await visit.go("#/workers");
  await visit.see(".all-workers tr", "y".repeat(500));
  await visit.see(".all-workers tr", "(empty name)");
  const [inner, outer] = await page.evaluate(() =>
    [document.documentElement.scrollWidth, innerWidth]);
  assert(inner <= outer, `${inner} px of content in ${outer} px`);
  await visit.open_queue("q");
  await visit.see(".job-row", "{{7*7}}");
  await visit.see(".slot", "<u>worker</u>");
  await page.locator("h2", { hasText: "Groups" }).scrollIntoViewIfNeeded();
  await visit.see(".group", "\\u{202e}gpj.exe");
  for (const name of ["failed", "completed", "active"]) {
    await visit.click(".tabs button", name);
    await visit.see(".job-row", "");
    await visit.faults.look(page);
  }
  for (const text of TEXTS.slice(-10)) {
    await visit.open_job("q", text);
    await visit.see(".story li", "Added");
    await visit.faults.look(page);
  }
  await visit.go("#/q/q/j/%FF%3C%21");
  await visit.see("main.job h1", "\\xff<!");
  await visit.see(".story li", "Added");
  await visit.see("pre", "<b>");
  await visit.open_job("tags", "t");
  await visit.see(".facts dd bdi", "\\xff=\\xfe");
  await page.keyboard.press("n");
  await visit.see("dialog", "Left out, as no request can name it: the tag \\xff");
  await visit.click("dialog button", "Run it again");
  await visit.see(".notice", "was added");
  const again = await page.waitForFunction(() => /\/j\/(?!t$)(.+)/.exec(location.hash)?.[1]);
  assert.deepEqual((await job("tags", await again.jsonValue())).tags, { a: "b" });
  await byte_order_mark(visit);
  // As they are written in addresses, and typed into the search.
  await visit.go("#/q/q/j/<img%20src=x%20onerror=alert(1)>");
  await visit.see("main.job h1", "<img src=x onerror=alert(1)>");
  await page.fill(".search input", "<i>nothing</i>");
  await page.keyboard.press("Enter");
  await visit.see(".hits", "Nothing found with this id or name");
  assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
  await visit.close();
});
