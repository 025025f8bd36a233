// Jobs that have ended: filters that stand in the address, failures by their errors, selections.
import { Visit, add, api, assert, job, pop, queue, scenario } from "./browser.mjs";

const ERRORS = ["Timeout after 30 ms", "Timeout after 1250 ms", "Timeout after 7 ms",
  "db 7f3a01 refused"];

async function end(id, mode) {
  await add("mail", id, { pri: "CRITICAL", group: `g${id.length}`, tags: { lang: "c++" } });
  const [{ lease }] = await pop("mail", { id });
  const path = `${queue("mail")}/jobs/${id}`;
  if (mode === "ack") await api("POST", `${path}:ack`, { lease });
  else await api("POST", `${path}:nack`, { lease, mode: "fatal", error: mode });
}

const rows = (visit) => visit.page.locator(".job-row a.id").allTextContents();
const see_rows = (visit, wanted) => visit.page.waitForFunction((ids) =>
  [...document.querySelectorAll(".job-row a.id")].map((a) => a.textContent).join() === ids,
wanted.join());

async function filters(visit) {
  const { page } = visit;
  await visit.click(".tabs button", /^failed 4$/);
  await see_rows(visit, ["bad-3", "bad-2", "bad-1", "bad-0"]);
  await visit.see(".job-row .time", /ago, \d\d:\d\d:\d\d/);
  await visit.see(".tabs button", /^completed 1$/);
  await page.getByLabel("error contains").fill("TIMEOUT");
  await see_rows(visit, ["bad-2", "bad-1", "bad-0"]);
  await page.getByLabel("id contains").fill("-1");
  await see_rows(visit, ["bad-1"]);
  assert(page.url().endsWith("?state=failed&error=TIMEOUT&id=-1"), page.url());
  await page.reload();
  await see_rows(visit, ["bad-1"]);
  assert.equal(await page.getByLabel("error contains").inputValue(), "TIMEOUT");
  await page.getByLabel("id contains").fill("");
  await page.getByLabel("error contains").fill("");
  await see_rows(visit, ["bad-3", "bad-2", "bad-1", "bad-0"]);
  await page.getByLabel("time").selectOption({ label: "last hour" });
  await visit.see(".chip-filter", "from ");
  await see_rows(visit, ["bad-3", "bad-2", "bad-1", "bad-0"]);
  await page.goBack();
  await visit.see_none(".chip-filter");
}

async function by_error(visit) {
  await visit.click(".filters button", "By error");
  await visit.see(".failure", /3 jobs.*Timeout after # ms/);
  await visit.see(".failure", /1 job.*db # refused/);
  await visit.click(".failure button.pattern", "Timeout after # ms");
  await see_rows(visit, ["bad-2", "bad-1", "bad-0"]);
  await visit.see(".chip-filter", "Timeout after # ms");
  await visit.page.goBack();
  await visit.page.locator(".failure", { hasText: "db #" }).getByText("Retry…").click();
  await visit.see("dialog", "1 failed job will wait again");
  await visit.click("dialog button", "Retry them");
  await visit.see(".notice", "1 job wait again");
  assert.equal((await job("mail", "bad-3")).state, "pending");
  await visit.see_none(".failure", "db # refused");
  await visit.click(".filters button", "One by one");
  await see_rows(visit, ["bad-2", "bad-1", "bad-0"]);
}

async function selection(visit) {
  const { page } = visit;
  await page.getByLabel("Choose bad-0").check();
  await page.getByLabel("Choose bad-2").check();
  await visit.see(".selection", "2 chosen");
  await visit.click(".selection button", "Retry…");
  await visit.see("dialog", "2 jobs will wait again");
  await visit.click("dialog button", "Retry them");
  await see_rows(visit, ["bad-1"]);
  for (const id of ["bad-0", "bad-2"]) assert.equal((await job("mail", id)).state, "pending");
  await page.getByLabel("Choose bad-1").check();
  await visit.click(".selection button", "Purge…");
  await visit.click("dialog button", "Purge them");
  await visit.see(".jobs .empty", "No job is failed");
  await visit.click(".tabs button", "pending");
  await page.getByLabel("Choose bad-3").check();
  await visit.click(".selection button", "all on this page");
  await visit.see(".selection", "3 chosen");
  await visit.click(".selection button", "Cancel…");
  await visit.click("dialog button", "Cancel them");
  await visit.see(".jobs .empty", "No job is pending");
  assert.equal((await job("mail", "bad-3")).state, "cancelled");
  await visit.click(".notice button", "Undo");
  await see_rows(visit, ["bad-3", "bad-0", "bad-2"]);
}

await scenario(async (browser) => {
  await end("good", "ack");
  for (const [number, error] of ERRORS.entries()) await end(`bad-${number}`, error);
  const visit = await Visit.open(browser);
  await visit.log_in();
  await visit.open_queue("mail");
  await visit.see(".jobs .empty", "No job is waiting");
  await visit.play([filters, by_error, selection]);
  assert.deepEqual((await rows(visit)).length, 3);
  await visit.close();
});
