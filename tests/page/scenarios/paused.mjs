// What helps in all views: paused updates, and views that are kept under names.
import { Visit, add, assert, base, pause, scenario } from "./browser.mjs";

const KEPT = "everything that was seen last winter";

// Nothing moves while updates are paused, but what one does is done; then all of it is seen.
async function paused(visit) {
  const { page } = visit;
  await visit.open_queue("mail");
  await visit.see_figure("Pending", "0");
  await visit.see(".bar button", "Live");
  await page.keyboard.press("l");
  await visit.see(".banner", /^Live updates are paused since \d\d:\d\d:\d\d/);
  await visit.see(".bar button[aria-pressed=true]", "Paused");
  const asked = [];
  const note = (request) => asked.push(request.url().slice(base.length));
  // What was under way ends.
  await visit.quiet();
  page.on("request", note);
  await add("mail", "new");
  // Updates come once a second at least.
  await pause(2500);
  assert.deepEqual(asked.filter((url) => url !== "/api/v1/group"), []);
  assert.equal(await visit.figure("Pending"), "0");
  page.off("request", note);
  await visit.click(".tabs button", "pending");
  await visit.see(".job-row", "new");
  await visit.see_figure("Pending", "1");
  await add("mail", "newer");
  await visit.go("#/q/mail");
  await visit.click(".banner button", "Resume");
  await visit.see_figure("Pending", "2");
  await visit.see_none(".banner");
  await add("mail", "newest");
  await visit.see_figure("Pending", "3");
}

async function views(visit) {
  const { page } = visit;
  await visit.go("#/q/mail?state=failed&error=timeout");
  await visit.see(".tabs button[aria-selected=true]", "failed");
  await page.keyboard.press("v");
  await visit.see("dialog h2", "Saved views");
  await visit.see("dialog", "None is saved yet.");
  await page.fill("dialog input", `  ${KEPT} `);
  await visit.see_accessible("saved views");
  await page.keyboard.press("Enter");
  await visit.see_none("dialog");
  // A time "since" moves with the clock.
  const since = Date.now() - 3_600_000;
  await visit.go(`#/q/mail?state=failed&since=${since}`);
  await visit.see(".chip-filter", "from ");
  await visit.click(".bar button", "Views");
  await page.fill("dialog input", "last hour");
  await page.keyboard.press("Enter");
  await visit.see_none("dialog");
  await visit.go("#/");
  await page.reload();
  await visit.see(".card", "mail");
  await visit.click(".bar button", "Views");
  await visit.picture("views-light");
  assert.deepEqual(await page.locator("dialog li a").allTextContents(), [KEPT, "last hour"]);
  const link = await page.locator("dialog li a").last().getAttribute("href");
  const moved = Number(/since=(\d+)$/.exec(link)[1]) - since;
  assert(moved > 0 && moved <= Date.now() - 3_600_000 - since, link);
  await visit.click("dialog li a", KEPT);
  await visit.see_none("dialog");
  assert.equal(await page.getByLabel("error contains").inputValue(), "timeout");
  assert(page.url().endsWith("#/q/mail?state=failed&error=timeout"), page.url());
  await page.keyboard.press("v");
  await page.getByLabel(`Remove ${KEPT}`).click();
  await page.getByLabel("Remove last hour").click();
  await visit.see("dialog", "None is saved yet.");
  await page.fill("dialog input", " ");
  await visit.click("dialog button", "Save");
  await visit.see("dialog .fault", "A view needs a name.");
  await page.keyboard.press("Escape");
  await visit.see_none("dialog");
  // What another program has put there is no view.
  await page.evaluate(() => localStorage.setItem("sluice-views", JSON.stringify(
    [null, 7, { name: "x", saved: 1, link: "javascript:alert(1)" }])));
  await page.keyboard.press("v");
  await visit.see("dialog", "None is saved yet.");
  await page.keyboard.press("Escape");
}

await scenario(async (browser) => {
  await add("mail", "old", { delay_ms: 600_000 });
  const visit = await Visit.open(browser);
  await visit.log_in();
  await visit.see(".card", "mail");
  await visit.play([paused, views]);
  await visit.close();
});
