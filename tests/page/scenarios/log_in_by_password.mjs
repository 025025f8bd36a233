import { Visit, add, assert, base, job, scenario } from "./browser.mjs";

const fill = async (page, user, password) => {
  await page.fill("input[name=user]", user);
  await page.fill("input[name=password]", password);
  await page.keyboard.press("Enter");
};

await scenario(async (browser) => {
  await add("mail", "m1");
  const visit = await Visit.open(browser);
  const { page } = visit;
  visit.faults.allowed.push("status of 401", "status of 429");
  await page.goto(`${base}/`);
  await page.waitForSelector("input[name=user]");
  // Half of it, and what is wrong.
  await page.fill("input[name=user]", "carol");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.name), "password");
  await fill(page, "carol", "wrong");
  await visit.see(".fault", "Wrong user name or password");
  assert.equal(await page.locator("main.overview").count(), 0);
  await fill(page, "carol", "of-carol");
  await visit.see(".card", "mail");
  await visit.see(".bar .who", /^carol · operate$/);
  await visit.go("#/server");
  await visit.see("main.server dt", "Version");
  assert.equal(await page.getByText("Checkpoint now").count(), 0);
  // The password is kept nowhere, and the session lasts over a reload.
  const kept = await page.evaluate(() => JSON.stringify([{ ...sessionStorage },
    { ...localStorage }]));
  assert(!kept.includes("of-carol") && /[0-9a-f]{64}/.test(kept), kept);
  const secret = /[0-9a-f]{64}/.exec(kept)[0];
  await visit.open_queue("mail");
  await visit.see(".page-head button", "Add a job…");
  await page.keyboard.press("a");
  await page.fill("dialog input[name=id]", "of-carol");
  await visit.click("dialog button.primary", "Add");
  await visit.see(".job-row", "of-carol");
  assert.equal((await job("mail", "of-carol")).state, "pending");
  await page.reload();
  await visit.see(".bar .who", /^carol · operate$/);
  // Logged out there is nothing left of it, here or at the server.
  await visit.click(".bar button", "Log out");
  await page.waitForSelector("input[name=user]");
  const answer = await fetch(`${base}/api/v1/queues`, { headers:
    { Authorization: `Bearer ${secret}` } });
  assert.equal(answer.status, 401);
  await fill(page, "vera", "of-vera");
  await visit.see(".bar .who", /^vera · read$/);
  await visit.see(".job-row", "m1");
  assert.equal(await page.getByText("Add a job…").count(), 0);
  await visit.click(".bar button", "Log out");
  await page.waitForSelector("input[name=user]");
  await fill(page, "ada", "of-ada");
  await visit.see(".bar .who", /^ada · admin$/);
  await visit.go("#/server");
  await visit.see(".page-head button", "Checkpoint now");
  await visit.close();
});
