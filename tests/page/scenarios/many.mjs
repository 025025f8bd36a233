import { Visit, add, api, assert, job, pause, queue, scenario } from "./browser.mjs";

const SECONDS = 4;
const UPDATES_A_SECOND = 50;
// Of a queue's page: ten requests a turn, one turn each 600 ms, and some for the beginning.
const MOST_REQUESTS = (SECONDS / 0.6 + 2) * 12;
const MOST_ELEMENTS = 2500;

await scenario(async (browser) => {
  await api("PATCH", queue("big"), { max_active: 20 });
  const visit = await Visit.open(browser);
  const { page } = visit;
  await visit.log_in();
  await visit.see(".card", "big");
  await visit.open_queue("big");
  await visit.see_figure("Pending", "100k");
  await visit.see(".job-row", "#25");
  let asked = 0;
  let bytes = 0;
  page.on("response", async (response) => {
    asked += 1;
    bytes += Number(response.headers()["content-length"] ?? 0);
  });
  await page.evaluate(() => {
    globalThis.changes = 0;
    globalThis.frames = 0;
    const count = () => { globalThis.frames += 1; requestAnimationFrame(count); };
    requestAnimationFrame(count);
  });
  const began = Date.now();
  for (let n = 0; Date.now() - began < SECONDS * 1000; ++n) {
    await add("big", `new-${n}`, { pri: "CRITICAL" });
    await pause(Math.max(0, began + n * 1000 / UPDATES_A_SECOND - Date.now()));
  }
  const { frames, elements } = await page.evaluate(() => ({ frames: globalThis.frames,
    elements: document.querySelectorAll("*").length }));
  console.log(`${asked} requests, ${bytes} bytes, ${frames} frames, ${elements} elements`);
  assert(asked < MOST_REQUESTS, `${asked} requests in ${SECONDS} s`);
  assert(elements < MOST_ELEMENTS, `${elements} elements`);
  assert(frames > SECONDS * 4, `${frames} frames in ${SECONDS} s`);
  // A page further on, and a job far behind with its place.
  await visit.click(".jobs button", "Next page");
  await visit.see(".job-row", "#26");
  const last = "job-99999";
  const { position } = await job("big", last);
  assert(position > 90_000);
  await visit.open_job("big", last);
  await visit.see(".words", "jobs stand before it");
  await visit.see(".story li", "Added");
  await visit.close();
});
