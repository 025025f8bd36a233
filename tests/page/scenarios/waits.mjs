// Waits by band are those of the last seconds, not of all time.
import { Visit, add, api, assert, pause, pop, queue, scenario } from "./browser.mjs";

const STALL_MS = 2500;

await scenario(async (browser) => {
  const visit = await Visit.open(browser);
  const { page } = visit;
  await visit.log_in();
  await visit.open_queue("exec");
  await visit.see_figure("Pending", "0");
  // What was quick has left the window; what happened before the page came is not in it either.
  await visit.see(".lane", "HIGH");
  assert.equal(await page.locator(".lane", { hasText: "HIGH" }).locator("small").textContent(), "");
  await add("exec", "slow", { pri: "HIGH" });
  await visit.see(".lane", /HIGH.*none started, first waits 1\.\d s/);
  const chart = page.locator('.plot[aria-label*="HIGH p95"]');
  await chart.waitFor();
  await pause(STALL_MS - 1000);
  const began = Date.now();
  const [{ id }] = await pop("exec");
  assert.equal(id, "slow");
  await visit.see(".lane", /HIGH.*wait p50 [23]\.\d s, p95 [23]\.\d s/);
  await page.waitForSelector('.plot[aria-label*="HIGH p95 2."], .plot[aria-label*="HIGH p95 3."]');
  assert(Date.now() - began < 3000, `it took ${Date.now() - began} ms to show`);
  // All that was ever started: nothing of it.
  const { bands } = await api("GET", `${queue("exec")}/bands`);
  const { count, p95 } = bands.find((band) => band.name === "HIGH").wait_ms;
  assert(count > 20_000 && p95 < 1000, `${count} jobs, p95 ${p95} ms`);
  await visit.go("#/");
  await visit.see(".card .band-line", /HIGH.*p50 [23]\.\d s, p95 [23]\.\d s/);
  // And it passes.
  await visit.open_queue("exec");
  await page.waitForSelector(".lane");
  await page.waitForFunction(() => [...document.querySelectorAll(".lane")].every((lane) =>
    !lane.textContent.includes("wait p50")));
  await visit.close();
});
