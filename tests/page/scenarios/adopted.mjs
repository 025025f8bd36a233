import { Visit, assert, scenario } from "./browser.mjs";

await scenario(async (browser) => {
  const visit = await Visit.open(browser);
  const { page } = visit;
  await visit.log_in();
  await visit.see(".card", "old");
  // It is not known which clients take the members.
  await visit.see_none(".card .pill", "no worker");
  await visit.open_queue("old");
  await visit.see("main.queue .sum", "what waits is in waiting, what runs in running");
  await visit.see(".job-row", "m1");
  await visit.see(".note", "It is next. If workers wait, none of them accepts it.");
  // No age is made up where the score is no time.
  await visit.see_none(".time", "waits");
  await visit.see(".lane", "2 pending");
  await visit.see_none(".lane", "first waits");
  await visit.see_figure("Wait p95", "–");
  await visit.see_none(".figure", "no worker takes jobs");
  // Nothing is offered that is refused, by click or by key.
  assert.deepEqual(await page.locator(".page-head .buttons > *").allTextContents(), ["Settings"]);
  await page.keyboard.press("a");
  await page.keyboard.press("p");
  assert.equal(await page.locator("dialog").count(), 0);
  await visit.open_job("old", "m1");
  await visit.see(".figure", "no time is known");
  await visit.see(".page-head button", "To the front");
  await visit.see_none(".page-head button", "Run again");
  await page.keyboard.press("n");
  visit.faults.allowed.push("status of 404");
  // No undo is promised that the queue would refuse.
  await page.keyboard.press("c");
  await visit.see("dialog p", "m1 will be removed from the Redis keys at once");
  await visit.click("dialog button.primary", "Cancel");
  await visit.see(".notice", "1 job cancelled.");
  await visit.see_none(".notice button", "Undo");
  await visit.see(".empty", "No such job");
  await visit.close();
});
