// What others change while a list or a question stands, and what the page says of its own changes.
import { Visit, add, api, assert, job, pop, queue, scenario, until } from "./browser.mjs";

const is_in = (name, id, state) => until(async () => (await job(name, id)).state === state,
  () => `${id} ${state}`);
const add_all = (name, ids) => api("POST", `${queue(name)}/jobs`,
  ids.map((id) => ({ id, payload: "" })));

// A job that comes while the question stands is spared, however urgent it is.
async function later_is_spared(visit) {
  await add_all("mail", ["n1", "n2", "n3"]);
  await visit.go("#/q/mail?state=pending");
  await visit.see(".job-row", "n3");
  await visit.click(".jobs button", "Cancel all pending…");
  await visit.see("dialog h2", "Cancel these pending jobs of mail?");
  await visit.see("dialog", "3 pending jobs will not run");
  await add("mail", "urgent", { pri: "CRITICAL" });
  await visit.click("dialog button", "Cancel them");
  await visit.see(".notice", "3 jobs cancelled.");
  for (const id of ["n1", "n2", "n3"]) await is_in("mail", id, "cancelled");
  assert.equal((await job("mail", "urgent")).state, "pending");
}

// A question that comes late is not asked on another queue's page.
async function elsewhere(visit) {
  const { page } = visit;
  const count = (url) => url.pathname === `${queue("mail")}/jobs:cancel`;
  let answer;
  const asked = new Promise((done) => {
    void page.route(count, async (route) => {
      answer = () => route.continue();
      done();
    });
  });
  await visit.click(".jobs button", "Cancel all pending…");
  await asked;
  await visit.open_queue("other");
  await visit.see("main.queue h1", "other");
  const counted = page.waitForResponse((response) => count(new URL(response.url())));
  await answer();
  await (await counted).finished();
  await page.unroute(count);
  await page.evaluate(() => new Promise((done) => setTimeout(done, 200)));
  assert.equal(await page.locator("dialog").count(), 0);
  assert.equal((await job("mail", "urgent")).state, "pending");
}

// What runs by now is not stopped by an undo, and not said to be cancelled.
async function told_as_it_is(visit) {
  const { page } = visit;
  await visit.open_queue("mail");
  await visit.see(".job-row", "urgent");
  await page.keyboard.press("a");
  await page.fill("dialog input[name=id]", "mistaken");
  await visit.click("dialog button.primary", "Add");
  const added = page.locator(".notice", { hasText: "Added mistaken" });
  await added.waitFor();
  const [{ lease }] = await pop("mail", { id: "mistaken", lease_ms: 600_000 });
  visit.faults.allowed.push("status of 412");
  await added.getByText("Undo").click();
  await visit.see(".notice.bad", "The job was not removed: mistaken has begun, or has ended.");
  const touched = await api("POST", `${queue("mail")}/jobs/mistaken:touch`, { lease });
  assert.equal(touched.cancel, null);
  await pop("mail", { id: "urgent", lease_ms: 600_000 });
  await visit.go("#/q/mail?state=active");
  await visit.see(".job-row", "urgent");
  await visit.click(".jobs button", "Cancel all active…");
  await visit.click("dialog button", "Cancel them");
  await visit.see(".notice", "The workers of 2 jobs were asked to stop.");
}

// When the clock of the browser is set, ages are right again with the next answer.
async function a_clock_is_set(visit) {
  const { page } = visit;
  await page.evaluate(() => {
    const now = Date.now.bind(Date);
    Date.now = () => now() + 1_200_000;
  });
  await page.waitForFunction(() => {
    const time = document.querySelector(".job-row .time")?.textContent ?? "";
    return /^runs [\d.]+ m?s$/.test(time);
  });
  await visit.see_none(".slot", "expired");
  await page.reload();
}

// A page further on stays as it is, but for what is done there.
async function a_later_page(visit) {
  const { page } = visit;
  await add_all("paged", Array.from({ length: 30 }, (_, n) => `p-${n}`));
  await visit.go("#/q/paged?state=pending");
  await visit.see(".job-row", "p-24");
  await visit.click(".jobs button", "Next page");
  await visit.see(".job-row", "p-29");
  await page.getByLabel("Choose p-26").check();
  // Keys work while a checkbox has the focus.
  await page.keyboard.press("j");
  assert.equal(await page.evaluate(() => document.activeElement.dataset.row), "p-27");
  await page.keyboard.press("c");
  await visit.click("dialog button", "Cancel the job");
  await visit.see(".notice", "p-27 has been cancelled.");
  await visit.see_none(".job-row", "p-27");
  await visit.see(".selection", "1 chosen");
  await page.locator('.job-row a[data-row="p-28"]').focus();
  await page.locator(".job-row", { hasText: "p-28" }).locator("select").selectOption("HIGH");
  await visit.see(".job-row", /p-28HIGH/);
  await visit.see(".job-row", "p-29");
}

await scenario(async (browser) => {
  await add("other", "o1");
  const visit = await Visit.open(browser, { hasty: true });
  await visit.log_in();
  await visit.play([later_is_spared, elsewhere, told_as_it_is, a_clock_is_set, a_later_page]);
  await visit.close();
});
