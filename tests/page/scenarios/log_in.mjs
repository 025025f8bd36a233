import { Visit, add, api, assert, base, queue, scenario, tell, tokens,
  until } from "./browser.mjs";

// What somebody was writing when the token ended is not shown to another one.
async function another_after(browser) {
  const made = await api("POST", "/api/v1/tokens", { role: "operate" }, tokens.admin);
  const visit = await Visit.open(browser);
  const { page } = visit;
  visit.faults.allowed.push("status of 401");
  await visit.log_in(made.token);
  await visit.open_queue("mail");
  await visit.see(".job-row", "m1");
  await page.keyboard.press("a");
  await page.fill("dialog textarea", "a secret");
  await api("DELETE", `/api/v1/tokens/${made.id}`, null, tokens.admin);
  await page.fill("input[name=token]", tokens.admin);
  await page.keyboard.press("Enter");
  await visit.see(".job-row", "m1");
  assert.equal(await page.locator("dialog").count(), 0);
  await visit.close();
}

// A token that gets another role: what it may no longer do is refused once, and offered no more.
async function lowered(browser) {
  const visit = await Visit.open(browser);
  const { page } = visit;
  visit.faults.allowed.push("status of 403");
  await visit.log_in();
  await visit.open_queue("mail");
  await visit.see(".page-head button", "Pause…");
  await page.keyboard.press("a");
  await page.fill("dialog textarea", "a long text");
  tell("read");
  await until(async () => (await api("GET", "/api/v1/session")).role === "read", () => "operate");
  await page.click("dialog button.primary");
  await visit.see("dialog .fault", "The token's role does not allow this");
  await visit.see(".bar .who", /^read$/);
  await visit.see_none(".page-head button", "Pause…");
  assert.equal(await page.inputValue("dialog textarea"), "a long text");
  await visit.close();
}

// A setting that is being written when the token is removed is still there after the log-in; by who
// logs out, or leaves the settings, it is given up.
async function half_written(browser) {
  const made = await api("POST", "/api/v1/tokens", { role: "operate" }, tokens.admin);
  const visit = await Visit.open(browser);
  const { page } = visit;
  visit.faults.allowed.push("status of 401");
  const log_in = async () => {
    await page.fill("input[name=token]", tokens.operate);
    await page.keyboard.press("Enter");
    await visit.see(".setting", "max_active");
  };
  const write = async () => {
    await visit.click(".setting button", "Change");
    await page.fill(".setting-edit input", "12345");
  };
  await visit.log_in(made.token);
  await visit.go("#/q/mail/settings");
  await write();
  await api("DELETE", `/api/v1/tokens/${made.id}`, null, tokens.admin);
  await page.waitForSelector("input[name=token]");
  await log_in();
  await page.waitForSelector(".setting-edit input");
  assert.equal(await page.inputValue(".setting-edit input"), "12345");
  await visit.see(".setting-edit .trial", "Nothing that waits or runs now");
  await visit.click(".bar button", "Log out");
  await log_in();
  assert.equal(await page.locator(".setting-edit").count(), 0);
  await write();
  await visit.open_queue("mail");
  await visit.see(".job-row", "m1");
  await visit.go("#/q/mail/settings");
  await visit.see(".setting", "max_active");
  assert.equal(await page.locator(".setting-edit").count(), 0);
  await visit.close();
}

await scenario(async (browser) => {
  await add("mail", "m1");
  const visit = await Visit.open(browser);
  const { page } = visit;
  visit.faults.allowed.push("status of 401");
  await page.goto(`${base}/`);
  await page.waitForSelector("input[name=token]");
  await visit.see_none(".fault", "You were logged out");
  assert.equal(await page.locator("main.overview").count(), 0);
  await page.fill("input[name=token]", "not-a-token-of-this-server");
  await page.keyboard.press("Enter");
  await visit.see(".fault", "Unknown token");
  // Nor is one that no header can hold: copied with a cut, or with a blank without width.
  for (const broken of ["not-a-token\u2026-of-this", `${tokens.read}\u200b`]) {
    await page.goto(`${base}/#token=${encodeURIComponent(broken)}`);
    await page.reload();
    await page.fill("input[name=token]", broken);
    await page.keyboard.press("Enter");
    await visit.see(".fault", "Unknown token");
    assert.equal(await page.locator(".banner:visible").count(), 0);
  }
  await page.fill("input[name=token]", tokens.read);
  await page.keyboard.press("Enter");
  await visit.see(".card", "mail");
  await visit.see(".bar .who", /^read$/);
  await visit.open_queue("mail");
  await visit.see(".job-row", "m1");
  // With a read token no actions are offered, and keys change nothing either.
  assert.equal(await page.getByText("Add a job…").count(), 0);
  assert.equal(await page.getByText("Pause…").count(), 0);
  await page.locator(".job-row a").first().focus();
  await page.keyboard.press("c");
  await visit.see(".notice", "role operate");
  assert.equal(await page.locator("dialog").count(), 0);
  // The token lasts as long as the tab, and a reload keeps the place.
  await page.reload();
  await visit.see(".job-row", "m1");
  await visit.click(".bar button", "Log out");
  await page.waitForSelector("input[name=token]");
  await page.reload();
  await page.waitForSelector("input[name=token]");
  assert.equal(await page.evaluate(() => JSON.stringify([{ ...sessionStorage },
    { ...localStorage }])), "[{},{}]");
  await visit.close();

  // A token that is removed takes its page along at once.
  const made = await api("POST", "/api/v1/tokens", { role: "operate" }, tokens.admin);
  const guest = await Visit.open(browser);
  guest.faults.allowed.push("status of 401");
  await guest.log_in(made.token);
  await guest.open_queue("mail");
  await guest.see(".job-row", "m1");
  await guest.page.keyboard.press("a");
  await guest.page.waitForSelector("dialog");
  await guest.page.fill("dialog textarea", "a long text");
  let refused = 0;
  guest.page.on("response", (response) => { refused += response.status() === 401 ? 1 : 0; });
  await api("DELETE", `/api/v1/tokens/${made.id}`, null, tokens.admin);
  await guest.page.waitForSelector("input[name=token]");
  // With the first answer that says so; a few may have been asked for at once.
  assert(refused <= 6, `${refused} refusals`);
  await guest.see(".fault", "You were logged out: the token was revoked");
  assert.equal(await guest.page.locator(".job-row").count(), 0);
  // Nor is anything left above the log-in.
  assert.equal(await guest.page.locator("dialog").count(), 0);
  // The same user finds after the log-in what was being written.
  await guest.page.fill("input[name=token]", tokens.operate);
  await guest.page.keyboard.press("Enter");
  await guest.page.waitForSelector("dialog");
  assert.equal(await guest.page.inputValue("dialog textarea"), "a long text");
  await guest.page.fill("dialog input[name=id]", "written");
  await guest.click("dialog button.primary", "Add");
  await guest.see(".job-row", "written");
  assert.equal((await api("GET", `${queue("mail")}/jobs/written?with=payload`)).payload,
    "a long text");
  await guest.close();
  await another_after(browser);

  await half_written(browser);

  const admin = await Visit.open(browser);
  await admin.log_in(tokens.admin);
  await admin.click(".places a", "Server");
  await admin.see(".page-head button", "Checkpoint now");
  await admin.close();
  await lowered(browser);
});
