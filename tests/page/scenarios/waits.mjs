// Waits by band are those of the last seconds, not of all time.
import { Visit, add, api, assert, pause, queue, scenario, tokens } from "./browser.mjs";

const STALL_MS = 2500;

const high = async () => (await api("GET", `${queue("exec")}/bands?with=wait_buckets`)).bands
  .find((band) => band.name === "HIGH");

// What the page asks about bands is counted where it asks.
const count_looks = () => {
  const fetch_from_server = window.fetch;
  window.looks = 0;
  window.fetch = (url, options) => {
    if (String(url).includes("/bands")) window.looks += 1;
    return fetch_from_server(url, options);
  };
};

// A job in the band HIGH waits for STALL_MS, then starts; returns its wait as the page words it.
async function stall(page, id, meanwhile) {
  await add("exec", id, { pri: "HIGH" });
  const added = Date.now();
  await meanwhile();
  await pause(added + STALL_MS - Date.now());
  const before = new Map((await high()).wait_buckets);
  // By the page itself, so that no pause of this process comes between it and the first look.
  const started = await page.evaluate(async ([path, token]) => {
    window.looks = 0;
    const response = await fetch(path, { method: "POST", body: "{}", headers: {
      Authorization: `Bearer ${token}`, "Content-Type": "application/json" } });
    return (await response.json()).jobs[0].id;
  }, [`${queue("exec")}:pop`, tokens.operate]);
  assert.equal(started, id);
  const [waited_ms] = (await high()).wait_buckets.find(([most, held]) =>
    held > (before.get(most) ?? 0));
  assert(waited_ms >= STALL_MS, `${waited_ms} ms`);
  return waited_ms < 10_000 ? `${(waited_ms / 1000).toFixed(1)} s`
    : `${(waited_ms / 1000).toFixed(0)} s`;
}

// With the second look at the latest; the first may have been under way.
async function see_at_once(page, selector, text, beside) {
  const looks = await page.waitForFunction(([where, wanted, also]) =>
    [...document.querySelectorAll(where)].some((each) => each.textContent.includes(wanted))
      && document.querySelector(also) && window.looks, [selector, text, beside]);
  assert(await looks.jsonValue() <= 2, `it took ${await looks.jsonValue()} looks`);
}

await scenario(async (browser) => {
  const visit = await Visit.open(browser);
  const { page } = visit;
  await visit.log_in();
  await page.evaluate(count_looks);
  await visit.open_queue("exec");
  await visit.see_figure("Pending", "0");
  // What was quick has left the window; what happened before the page came is not in it either.
  await visit.see(".lane", "HIGH");
  assert.equal(await page.locator(".lane", { hasText: "HIGH" }).locator("small").textContent(), "");
  // Why there is no number is said.
  await visit.see(".figure", /^Wait p95–no job started in 5 s$/);
  const slow = await stall(page, "slow", async () => {
    await visit.see(".lane", /HIGH.*none started, first waits \d\d?(\.\d)? s/);
    await page.locator('.plot[aria-label*="HIGH p95"]').waitFor();
  });
  await see_at_once(page, '.lane[data-band="1"]', `wait p50 ${slow}, p95 ${slow}`,
    `.plot[aria-label*="HIGH p95 ${slow}"]`);
  // All that was ever started: nothing of it.
  const { count, p95 } = (await high()).wait_ms;
  assert(count > 20_000 && p95 < 1000, `${count} jobs, p95 ${p95} ms`);
  // And it passes.
  await page.waitForFunction(() => [...document.querySelectorAll(".lane")].every((lane) =>
    !lane.textContent.includes("wait p50")));
  // The same on the overview.
  await visit.go("#/");
  const again = await stall(page, "slow-again", () => visit.see(".card .band-line", "HIGH"));
  await see_at_once(page, ".card .band-line", `p50 ${again}, p95 ${again}`, ".card");
  await visit.close();
});
