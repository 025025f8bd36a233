// What a job's page asks for, and how often: its state as it lives, its payload once a change.
import { Visit, add, api, assert, job, pause, pop, queue, scenario, until } from "./browser.mjs";

const LEAST_MS = 400;
// What timers take off.
const TOLERANCE_MS = 40;

// In pieces that the browser can lay out while one waits.
async function raw_in_parts(visit, length) {
  const { page } = visit;
  const text = page.locator(".panel-body pre:not([role])");
  await visit.click("button.link", "raw");
  await visit.see("button.link", "Show more (737,856 characters)");
  assert.equal((await text.textContent()).length, 262_144);
  for (let part = 0; part < 3; ++part) await visit.click("button.link", "Show more (");
  await visit.see_none("button.link", "Show more (");
  assert.equal(await text.textContent(), "x".repeat(length));
}

// A payload of a megabyte is converted once, not at each poll; another job can have the same.
async function large_payload(visit) {
  const { page } = visit;
  const bytes = Buffer.from(Uint8Array.from({ length: 1_000_000 }, (_, n) => n * 7 % 256));
  await api("POST", `${queue("large")}/jobs`, { id: "binary",
    payload_base64: bytes.toString("base64") });
  await add("large", "text", { payload: "x".repeat(1_000_000) });
  await page.evaluate(() => {
    const { encode } = TextEncoder.prototype;
    window.encoded = 0;
    TextEncoder.prototype.encode = function count(text) {
      window.encoded += text.length > 100_000 ? 1 : 0;
      return encode.call(this, text);
    };
  });
  for (const id of ["text", "binary"]) {
    await visit.open_job("large", id);
    await visit.see(".panel", "choose raw to see it");
    const encoded = await page.evaluate(() => window.encoded);
    const polled = (response) => new URL(response.url()).pathname.endsWith(`/large/jobs/${id}`)
      && !response.url().includes("with=");
    for (let look = 0; look < 3; ++look) await page.waitForResponse(polled);
    assert.equal(await page.evaluate(() => window.encoded), encoded, id);
    if (id === "text") await raw_in_parts(visit, 1_000_000);
  }
  await page.keyboard.press("n");
  await visit.click("dialog button", "Run it again");
  await visit.see(".notice", "was added.");
  const [again] = await pop("large", { count: 10 }).then((jobs) =>
    jobs.filter(({ id }) => !["text", "binary"].includes(id)));
  assert(Buffer.from(again.payload_base64, "base64").equals(bytes));
}

// Nor does half a megabyte of progress, however often it is reported, come with each look, nor the
// payload with it.
async function large_progress(visit) {
  const { page } = visit;
  await add("busy", "p0");
  const jobs = await pop("busy", { lease_ms: 600_000 });
  const report = ({ id, lease }, text) => api("POST", `${queue("busy")}/jobs/${id}:touch`,
    { lease, progress: text + "é".repeat(250_000) });
  for (const each of jobs) await report(each, "first ");
  await visit.open_job("busy", "p0");
  await visit.see(".progress", /^first é{2045}…$/);
  const got = [];
  page.on("response", (response) => got.push(response));
  const looks = () => got.filter((response) => response.url().includes("/busy/jobs/p0?"));
  for (const text of ["second ", "third "]) {
    await report(jobs[0], text);
    await visit.see(".progress", new RegExp(`^${text}é+…$`));
    await visit.see(".story li", "Reported progress");
    const { length } = looks();
    await until(() => looks().length >= length + 2, () => "two looks at the job");
  }
  assert.deepEqual(looks().filter((response) => response.url().includes("with=")), []);
  for (const response of looks()) {
    const { length } = await response.body();
    assert(length < 100_000, `${length} bytes from ${response.url()}`);
  }
}

await scenario(async (browser) => {
  await add("work", "j", { payload: "first" });
  const visit = await Visit.open(browser);
  const { page } = visit;
  await visit.log_in();
  // Where the page asks, and by its own clock: elsewhere it is heard of later, now more, now less.
  await page.evaluate(() => {
    const fetch_from_server = window.fetch;
    window.asked = [];
    window.fetch = (url, options) => {
      window.asked.push({ url: String(url), method: options?.method ?? "GET",
        at: performance.now() });
      return fetch_from_server(url, options);
    };
  });
  // Its stream is no look at it: it is opened once, and again when the job is retried.
  const asked = async (with_payload) => (await page.evaluate(() => window.asked))
    .filter(({ url, method }) => method === "GET" && !url.includes("/stream")
      && url.includes(`${queue("work")}/jobs/j`) && url.includes("with=payload") === with_payload);
  const bodies = () => asked(true);
  const polls = () => asked(false);
  await visit.open_job("work", "j");
  await visit.see("pre", "first");
  await until(async () => (await polls()).length >= 3, () => "three looks at the job");
  assert.equal((await bodies()).length, 1, "payloads of a job that does not change");
  // An update gives it another payload, and nothing else is to be seen of it.
  await add("work", "j", { payload: "second", ifdup: "UPDATE" });
  await visit.see("pre", "second");
  assert.equal((await bodies()).length, 2);
  const payload = await page.locator("pre", { hasText: "second" }).elementHandle();
  const [taken] = await pop("work", { lease_ms: 600_000 });
  await visit.see(".verdict .pill", "active");
  await api("POST", `${queue("work")}/jobs/j:ack`, { lease: taken.lease, result: "the result" });
  await visit.see("pre", "the result");
  assert(await payload.evaluate((element) => element.isConnected), "the payload was drawn anew");
  await pause(2500);
  // One more where the page asks in the very moment of a change.
  const fetched = (await bodies()).length;
  assert(fetched <= 5, `${fetched} payloads after three changes`);
  // However fast things change.
  await api("POST", `${queue("work")}/jobs/j:retry`, {});
  await visit.see(".verdict .pill", "pending");
  const before = (await polls()).length;
  for (const band of ["HIGH", "LOW", "CRITICAL", "NORMAL", "BACKGROUND"]) {
    await page.locator(".page-head select").selectOption(band);
    await visit.see(".notice", `j is now in ${band}.`);
    await page.waitForFunction((name) =>
      document.querySelector(".page-head select").value === name, band);
    await pause(250);
  }
  await pause(1000);
  assert.equal((await job("work", "j")).pri, "BACKGROUND");
  const times = (await polls()).slice(before).map(({ at }) => at);
  const gaps = times.slice(1).map((at, index) => Math.round(at - times[index]));
  assert(gaps.length >= 2 && Math.min(...gaps) >= LEAST_MS - TOLERANCE_MS, `gaps ${gaps} ms`);
  await large_payload(visit);
  await large_progress(visit);
  await visit.close();
});
