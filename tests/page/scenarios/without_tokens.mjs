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
  await visit.see(".empty", "There is no queue nothing-here");
  // A user may do more; closing the log-in leaves everything as it was.
  await visit.open_queue("mail");
  await visit.see(".job-row", "m1");
  await visit.click(".bar button", "Log in");
  await page.waitForSelector("input[name=user]");
  assert.equal(await page.locator("input[name=token]").count(), 0);
  await visit.click(".log-in button", "Back");
  await visit.see(".job-row", "m1");
  await visit.click(".bar button", "Log in");
  await page.fill("input[name=user]", "carol");
  await page.fill("input[name=password]", "nonsense");
  visit.faults.allowed.push("status of 401");
  await page.keyboard.press("Enter");
  await visit.see(".fault", "Wrong user name or password");
  await page.fill("input[name=password]", "of-carol");
  await page.keyboard.press("Enter");
  await visit.see(".page-head button", "Add a job…");
  await visit.click(".bar button", "Log out");
  await visit.see(".bar .who", "read only");
  await visit.see_none(".page-head button");
  await visit.see(".job-row", "m1");
  // Also one who may do no more than everybody.
  await visit.click(".bar button", "Log in");
  await page.fill("input[name=user]", "vera");
  await page.fill("input[name=password]", "of-vera");
  await page.keyboard.press("Enter");
  await visit.see(".bar .who", /^vera · read$/);
  await visit.see(".job-row", "m1");
  await visit.click(".bar button", "Log out");
  await visit.see(".bar .who", "read only");
  await visit.see(".job-row", "m1");
  await visit.close();
});
