import { Visit, add, assert, base, job, pause, queue, scenario, until } from "./browser.mjs";

// What pokes a view during an outage, here changes that fail, does not make it ask more often.
async function pokes(visit) {
  const { page } = visit;
  const path = `${queue("mail")}/jobs/m1`;
  const looks = [];
  page.on("request", (request) => {
    if (request.method() === "GET" && request.url() === base + path) looks.push(Date.now());
  });
  await visit.open_job("mail", "m1");
  await visit.see(".verdict .pill", "pending");
  await visit.context.setOffline(true);
  await visit.see(".banner", "The server does not respond");
  const before = looks.length;
  const end = Date.now() + 3000;
  const bands = page.getByLabel("Priority");
  for (; Date.now() < end; await pause(100)) {
    await bands.selectOption("LOW");
    await bands.selectOption("HIGH");
  }
  assert(looks.length - before <= 4, `${looks.length - before} looks at the job in 3 s`);
  // One that succeeds shows that the server is there again.
  await visit.context.setOffline(false);
  await bands.selectOption("LOW");
  await visit.see(".facts", "LOW");
  assert.equal((await job("mail", "m1")).pri, "LOW");
}

await scenario(async (browser) => {
  await add("mail", "m1");
  const visit = await Visit.open(browser);
  visit.faults.allowed.push("ERR_INTERNET_DISCONNECTED", "status of 503");
  await visit.log_in();
  await visit.open_queue("mail");
  await visit.see(".job-row", "m1");
  await visit.context.setOffline(true);
  await visit.see(".banner", "The server does not respond");
  // What was known stays to be seen, and asking again becomes rarer.
  await visit.see(".job-row", "m1");
  let asked = 0;
  visit.page.on("request", () => { asked += 1; });
  await pause(2000);
  assert(asked < 20, `${asked} requests in two seconds without a connection`);
  await visit.context.setOffline(false);
  await add("mail", "m2");
  await visit.see(".job-row", "m2");
  await visit.see_none(".banner");
  await visit.page.locator(".activity").scrollIntoViewIfNeeded();
  await visit.see(".panel-aside", "live");
  await add("mail", "m3");
  await visit.see(".activity li", "m3");
  // What happened meanwhile is told even if the server loads at first.
  await visit.context.setOffline(true);
  await visit.see(".banner", "The server does not respond");
  await add("mail", "m4");
  const is_events = (url) => url.pathname.endsWith("/events");
  let refused = 0;
  await visit.page.route(is_events, (route) => {
    refused += 1;
    return route.fulfill({ status: 503, contentType: "application/problem+json",
      body: JSON.stringify({ status: 503, code: "LOADING", detail: "The data is being loaded." }) });
  });
  await visit.context.setOffline(false);
  await until(() => refused > 0, () => "no request for events");
  await visit.page.unroute(is_events);
  await visit.see(".activity li", "m4");
  await pokes(visit);
  await visit.close();
});
