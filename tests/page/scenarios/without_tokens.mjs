import { Visit, assert, base, scenario } from "./browser.mjs";

await scenario(async (browser) => {
  const visit = await Visit.open(browser);
  const { page } = visit;
  await page.goto(`${base}/`);
  await visit.see(".card", "mail");
  await visit.see(".bar", "read only");
  await visit.open_queue("mail");
  await visit.see(".job-row", "m1");
  assert.equal(await page.getByText("Add a job…").count(), 0);
  await visit.open_job("mail", "m1");
  await visit.see(".story li", "Added");
  await visit.see("pre", "hello");
  await visit.go("#/q/nothing-here");
  await visit.see(".empty", "This queue is empty");
  await visit.close();
});
