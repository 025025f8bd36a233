// What the page says when it is refused, and while the server loads.
import { Visit, add, assert, base, pause, scenario, until } from "./browser.mjs";

// An answer as the server gives it (problem details), for what takes it only a moment.
const problem = (status, code, detail) => ({ status, contentType: "application/problem+json",
  headers: { "Retry-After": "1" }, body: JSON.stringify({
    type: `urn:sluice:problem:${code.toLowerCase()}`, title: "Service Unavailable", status, code,
    detail }) });

const is_data = (url) => url.pathname.startsWith("/api/v1/queues");

// What a server that loads refuses: all but these two.
const is_refused_amid_loading = ({ pathname }) => pathname.startsWith("/api/v1/")
  && pathname !== "/api/v1/session" && pathname !== "/api/v1/group";

async function loading(visit) {
  const { page } = visit;
  let asked = 0;
  await page.route(is_refused_amid_loading, (route) => {
    asked += 1;
    return route.fulfill(problem(503, "LOADING", "The data is being loaded."));
  });
  await visit.log_in();
  await visit.see(".banner", "The server is loading its data");
  // An answer to what is served amid loading too does not end it.
  await page.waitForResponse((response) => response.url().endsWith("/api/v1/group"));
  await pause(50);
  assert.equal(await page.locator(".dot").getAttribute("aria-label"), "loading");
  assert.equal(await page.locator(".skeleton").count(), 1);
  assert.equal(await page.locator(".empty.bad").count(), 0);
  // Nothing moves for those who want it so.
  const motion = () => page.locator(".skeleton div").first().evaluate((element) =>
    getComputedStyle(element).animationName);
  assert.equal(await motion(), "breathe");
  await page.emulateMedia({ reducedMotion: "reduce" });
  assert.equal(await motion(), "none");
  await page.emulateMedia({ reducedMotion: null });
  // Asked for again, but not all the time: more and more seldom, and each 12.5 s at the longest.
  const before = asked;
  await pause(2000);
  assert(asked - before <= 5, `${asked - before} requests in two seconds`);
  await until(() => asked > before, () => "another request");
  // A queue's own page says the same.
  await visit.open_queue("mail");
  await visit.see("main.queue .skeleton", "");
  await visit.see(".banner", "The server is loading its data");
  await page.unroute(is_refused_amid_loading);
  await visit.see(".job-row", "m1");
  await visit.see_none(".banner");
  assert.equal(await page.locator(".dot").getAttribute("aria-label"), "connected");
}

async function another_type(visit) {
  await visit.open_queue("text");
  await visit.see(".empty.bad", "Cannot show this queue");
  await visit.see(".empty.bad", "The key holds another type than a queue");
  await visit.open_job("text", "j");
  await visit.see(".empty.bad", "Cannot show this job");
  await visit.see(".empty.bad", "another type");
  assert.equal(await visit.page.locator(".facts").isVisible(), false);
}

// The answer to a change is lost on its way.
async function lost_answer(visit) {
  const { page } = visit;
  const is_change = (url) => url.pathname.endsWith("/jobs/m1");
  await visit.open_queue("mail");
  await visit.see(".job-row", "m1");
  await page.route(is_change, async (route) => {
    await route.fetch();
    await route.abort("connectionreset");
  });
  await page.locator(".job-row a").first().focus();
  await page.keyboard.press("f");
  await visit.click("dialog button.primary", "Move to the front");
  await visit.see("dialog .fault", "It is not known whether it has done what was asked");
  await page.keyboard.press("Escape");
  await page.unroute(is_change);
  await visit.see_none(".banner");
}

// A passing trouble: tried again by hand.
async function again(visit) {
  const { page } = visit;
  // While updates are paused, the page asks only when the button is pressed.
  await page.keyboard.press("l");
  await visit.see(".banner", "Live updates are paused");
  await page.route(is_data, (route) =>
    route.fulfill(problem(503, "BUSY", "A script keeps the server busy.")));
  await visit.go("#/");
  await visit.see(".empty.bad", "Cannot show the queues");
  await visit.see(".empty.bad", "A script keeps the server busy");
  await page.unroute(is_data);
  await visit.click(".empty.bad button", "Try again");
  await visit.see(".card", "mail");
  await visit.see_none(".empty.bad");
  await page.keyboard.press("l");
  await visit.see_none(".banner");
}

// A user's keys end where his patterns do.
async function not_for_this_user(visit) {
  const { page } = visit;
  await visit.click(".bar button", "Log out");
  await page.fill("input[name=user]", "pat");
  await page.fill("input[name=password]", "of-pat");
  await page.keyboard.press("Enter");
  await visit.see(".bar", "pat · operate");
  await visit.see(".empty", "There are no queues yet");
  await visit.open_queue("mail");
  await visit.see(".empty.bad", "Cannot show this queue");
  await visit.see(".empty.bad", "The token's user does not have this permission");
  await visit.open_job("mail", "m1");
  await visit.see(".empty.bad", "Cannot show this job");
}

await scenario(async (browser) => {
  await add("mail", "m1");
  const visit = await Visit.open(browser);
  visit.faults.allowed.push("status of 503", "status of 409", "status of 403",
    "ERR_CONNECTION_RESET");
  await visit.play([loading, another_type, lost_answer, again, not_for_this_user]);
  assert(visit.page.url().startsWith(base));
  await visit.close();
});
