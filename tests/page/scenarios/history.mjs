// Charts that are full at the first look, values under the pointer, and what happened in a range.
import { Visit, add, api, assert, pop, queue, scenario, until } from "./browser.mjs";

// Until the server has kept what is waiting now.
async function kept(wanted) {
  await until(async () => (await api("GET", `${queue("mail")}/history?range=hour`))
    .series.waiting.includes(wanted), () => "history of what waits");
}

// Also of one that came after the server's last look at the queue.
async function told_of_a_failure(visit) {
  const { page } = visit;
  const told = () => page.waitForFunction(() => [...document.querySelectorAll(".figures div")]
    .some((cell) => cell.textContent === "failed, 1 h1"));
  await told();
  const hours = (url) => url.pathname === "/api/v1/history";
  await page.route(hours, async (route) => {
    const answer = await (await route.fetch()).json();
    for (const line of answer.queues) {
      line.failed.fill(null);
      line.failed_total = 0;
    }
    await route.fulfill({ json: answer });
  });
  await page.reload();
  await told();
  await page.unroute(hours);
  await page.reload();
  await visit.see(".card", "mail");
}

// Cards beside each other have the same span of time, and say it. A key is left out only if its
// line is empty.
async function small_charts(visit) {
  const { page } = visit;
  await add("older", "j");
  const past = (url) => url.pathname.endsWith("/history") && url.searchParams.has("range");
  await page.route(past, async (route) => {
    const answer = await (await route.fetch()).json();
    answer.start_ms = Date.now() - 3_600_000;
    for (const series of Object.values(answer.series)) series.fill(null);
    const older = route.request().url().includes("/older/");
    answer.series.waiting.fill(3, older ? 0 : 700);
    const waits = answer.series.waiting.map((_, n) => older && n === 300 ? 50 : null);
    answer.bands = { HIGH: { wait_p50_ms: waits, wait_p95_ms: waits } };
    await route.fulfill({ json: answer });
  });
  await page.reload();
  const figures = (name) => page.locator(".card", { hasText: name }).locator("figure");
  for (const name of ["mail", "older"]) {
    await figures(name).filter({ hasText: /^Jobswaiting .*last hour, max 3$/ }).waitFor();
  }
  // One card alone is as wide as the page, charts and all; two stand beside each other.
  const parts = () => page.evaluate(() => ["main", ".card", ".card figure"].map((each) =>
    document.querySelector(each).getBoundingClientRect().width));
  const [whole, beside, small] = await parts();
  assert(beside < whole / 2, `${beside} of ${whole}`);
  // Where the line of the older one began an hour ago the younger one's is empty.
  visit.faults.allowed.push("willReadFrequently");
  await page.waitForFunction(() => {
    const wanted = getComputedStyle(document.documentElement).getPropertyValue("--waiting").trim();
    const drawn = [...document.querySelectorAll(".card")].map((card) => {
      const canvas = card.querySelector("canvas");
      if (!canvas?.width) return null;
      const { data } = canvas.getContext("2d").getImageData(canvas.width * 0.2, 0,
        canvas.width * 0.5, canvas.height);
      for (let at = 0; at < data.length; at += 4) {
        const hex = [...data.slice(at, at + 3)].map((v) => v.toString(16).padStart(2, "0"))
          .join("");
        if (`#${hex}` === wanted) return `${card.querySelector("a").textContent} drawn`;
      }
      return `${card.querySelector("a").textContent} empty`;
    });
    return drawn.sort().join() === "mail empty,older drawn";
  });
  await figures("older").locator(".key:visible", { hasText: /^HIGH –, –$/ }).waitFor();
  assert.equal(await figures("mail").locator(".key:visible", { hasText: "HIGH" }).count(), 0);
  await page.unroute(past);
  await api("DELETE", `${queue("older")}?confirm=true`);
  await visit.see_none(".card", "older");
  const [, alone, large] = await parts();
  assert(alone > whole - 40 && large > 1.8 * small, `${alone} of ${whole}, ${large} and ${small}`);
  await page.reload();
  await visit.see(".card", "mail");
}

async function under_the_pointer(visit, opened) {
  const { page } = visit;
  const plot = page.locator("figure", { hasText: "waiting" }).locator(".u-over");
  const box = await plot.boundingBox();
  // From the newest point back, to what was before this page.
  for (let x = box.width - 2; x > 0; x -= 3) {
    await page.mouse.move(box.x + x, box.y + 20);
    const told = await page.locator("figcaption", { hasText: "waiting" }).textContent();
    const found = /waiting 3.*at .*?(\d+):(\d+):(\d+)/.exec(told);
    if (!found) continue;
    const at = new Date(opened);
    at.setHours(...found.slice(1).map(Number));
    if (at.getTime() < opened - 1000) {
      // One time in all charts.
      const others = await page.locator(".plots figcaption small").allTextContents();
      assert.equal(new Set(others).size, 1, others.join());
      return;
    }
  }
  throw new Error("nothing from before the page was opened");
}

// A value between two gaps is a point. What the server gave up is told, and why there is no line of
// waits, if there is a reason.
async function lone_points(visit) {
  const { page } = visit;
  let stalled = false;
  const past = (url) => url.pathname.endsWith("/history") && url.searchParams.has("range");
  await page.route(past, async (route) => {
    const answer = await (await route.fetch()).json();
    answer.start_ms = Date.now() - 3_600_000;
    for (const series of Object.values(answer.series)) series.fill(null);
    answer.series.waiting[100] = 3;
    answer.series.waiting[400] = 3;
    answer.bands = { LOW: { wait_p50_ms: answer.series.waiting,
      wait_p95_ms: answer.series.waiting } };
    if (stalled) answer.series.waiting = answer.series.waiting.map(() => 3);
    answer.reduced = true;
    await route.fulfill({ json: answer });
  });
  await page.reload();
  const waits = page.locator("figure", { hasText: /^Wait:/ });
  await waits.locator(".key", { hasText: "LOW" }).waitFor();
  await visit.see(".range-row small", "The server gave up the older part of this history");
  assert.equal(await waits.getByText("no job started").count(), 0);
  visit.faults.allowed.push("willReadFrequently");
  // In the middle of the chart there is nothing else of this colour.
  await page.waitForFunction(() => {
    const wanted = getComputedStyle(document.documentElement).getPropertyValue("--waiting").trim();
    const canvas = document.querySelector(".plots canvas");
    if (!canvas?.width) return false;
    const { data } = canvas.getContext("2d").getImageData(canvas.width * 0.3, 0,
      canvas.width * 0.5, canvas.height);
    for (let at = 0; at < data.length; at += 4) {
      const hex = [...data.slice(at, at + 3)].map((v) => v.toString(16).padStart(2, "0")).join("");
      if (`#${hex}` === wanted) return true;
    }
    return false;
  });
  stalled = true;
  await page.reload();
  await waits.getByText("no line: no job started").waitFor();
  await page.unroute(past);
  await page.reload();
  await visit.see(".job-row", "a");
  await visit.see_none(".range-row small", "The server gave up");
}

async function dragged(visit) {
  const { page } = visit;
  const box = await page.locator("figure", { hasText: "added" }).locator(".u-over").boundingBox();
  await page.mouse.move(box.x + 4, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2, box.y + 40);
  await page.mouse.move(box.x + box.width - 2, box.y + 40);
  await page.mouse.up();
  await visit.see(".range h2", "Events from");
  await visit.see(".range .panel-aside", /5 added.*1 failed/);
  await visit.see(".range li", /bad.*Failed/);
  await visit.see(".jobs h2", "Failed jobs");
  // Only what is on screen is asked for.
  await page.locator(".jobs h2").scrollIntoViewIfNeeded();
  await visit.see(".job-row", "bad");
  assert(/state=failed&since=\d+&until=\d+$/.test(page.url()), page.url());
  await page.reload();
  await visit.see(".range li", /bad.*Failed/);
  // The range is marked in each chart.
  const marks = (wanted) => page.waitForFunction((marked) => {
    const widths = [...document.querySelectorAll(".plots .u-select")].map((e) => e.clientWidth);
    return widths.length === 3 && widths.every((width) => (width > 4) === marked);
  }, wanted);
  await marks(true);
  await page.getByLabel("Close the range").click();
  await visit.see_none(".range");
  await marks(false);
}

// The server keeps the waits of a day for all bands together, and no bands.
async function day(visit) {
  const { page } = visit;
  const by_band = page.locator(".range-row button", { hasText: "waiting by band" });
  const past = (url) => url.pathname.endsWith("/history") && url.searchParams.has("range");
  await page.route(past, async (route) => {
    const answer = await (await route.fetch()).json();
    assert.equal(answer.bands, undefined);
    answer.start_ms = Date.now() - 86_400_000;
    answer.series.waiting.fill(3);
    answer.series.wait_p50_ms.fill(50);
    answer.series.wait_p95_ms.fill(2000);
    await route.fulfill({ json: answer });
  });
  await by_band.click();
  await visit.click(".range-row button", "last day");
  assert(page.url().endsWith("?state=failed&depth=bands&range=day"), page.url());
  const waits = page.locator("figure", { hasText: /^Wait:/ });
  await waits.locator(".key", { hasText: /^all bands/ }).waitFor();
  await waits.locator(".plot").focus();
  await page.keyboard.press("Home");
  await waits.locator("figcaption", { hasText: /all bands 50 ms, 2.0 s.*at .*\d/ }).waitFor();
  await page.keyboard.press("Escape");
  assert(await by_band.isDisabled());
  await visit.picture("day");
  await visit.see(".range-row small", "Bands are kept for the last hour only.");
  await page.locator("figure", { hasText: /^Jobswaiting/ }).waitFor();
  await page.unroute(past);
  await visit.click(".range-row button", "last hour");
  await page.locator("figure", { hasText: /^Waiting by band/ }).waitFor();
  await visit.see_none(".range-row small", "Bands are kept");
}

// What waits, by band, as the server has kept it and as it is.
async function by_band(visit) {
  const { page } = visit;
  await visit.click(".range-row button", "waiting by band");
  assert(page.url().endsWith("depth=bands"), page.url());
  const chart = page.locator("figure", { hasText: /^Waiting by band/ });
  await chart.locator(".key", { hasText: /^NORMAL 3$/ }).waitFor();
  await chart.locator(".plot").focus();
  await page.keyboard.press("ArrowLeft");
  await chart.locator("figcaption", { hasText: /NORMAL 3.*at \d/ }).waitFor();
  await page.keyboard.press("Escape");
  await add("mail", "urgent", { pri: "HIGH" });
  await chart.locator(".key", { hasText: /^HIGH 1$/ }).waitFor();
  await api("POST", `${queue("mail")}/jobs/urgent:cancel`, {});
  await page.reload();
  await chart.locator(".key", { hasText: /^NORMAL 3$/ }).waitFor();
  await visit.click(".range-row button", "waiting by band");
  await page.locator("figure", { hasText: /^Jobswaiting 3/ }).waitFor();
}

// A run that failed is told of however many events stand before it, also if its job was retried.
async function long_ranges(visit) {
  const { page } = visit;
  await api("POST", `${queue("busy")}/jobs`, Array.from({ length: 1000 }, (_, n) => ({
    id: `j${n}`, payload: "", backoff: [600_000, 600_000], retry: 1 })));
  const since = Date.now() - 60_000;
  for (const mode of ["fail", "fatal"]) {
    const [{ id, lease }] = await pop("busy", { lease_ms: 600_000 });
    await api("POST", `${queue("busy")}/jobs/${id}:nack`, { lease, mode, error: "no route" });
  }
  const busy = `#/q/busy?state=failed&since=${since}&until=${Date.now() + 60_000}`;
  await visit.go(busy);
  await visit.see(".range .panel-aside",
    "1 retrying, 1 failed; of the first 1,000 events: 1,000 added");
  await visit.see('.range li[data-event="retrying"]', "j0");
  await visit.see('.range li[data-event="failed"]', "j1");
  // The server examines a part of its log in a call.
  const events = (url) => url.pathname === `${queue("busy")}/events` && url.searchParams.has("type");
  let calls = 0;
  await page.route(events, async (route) => {
    const url = new URL(route.request().url());
    assert.deepEqual(url.searchParams.getAll("type"), ["failed", "retrying", "reclaimed"]);
    if (++calls > 1) return route.continue();
    return route.fulfill({ json: { events: [],
      next: String(Number(url.searchParams.get("after")) + 1) } });
  });
  await page.reload();
  await visit.see(".range .panel-aside", "1 retrying, 1 failed; of the first");
  assert(calls > 1, `${calls} calls`);
  await page.unroute(events);
  await visit.open_queue("mail");
  await visit.see(".job-row", "a");
}

// The same with keys, and with a finger.
async function without_a_mouse(visit) {
  const { page } = visit;
  const seen = async (what) => {
    await visit.see(".range h2", "Events from");
    assert(/since=\d+&until=\d+/.test(page.url()), `${what}: ${page.url()}`);
    await page.getByLabel("Close the range").click();
    await visit.see_none(".range");
  };
  const chart = page.locator("figure", { hasText: "added" });
  await chart.locator(".plot").focus();
  await page.keyboard.press("ArrowLeft");
  await visit.see("figcaption small", /^at \d/);
  await page.keyboard.press("Escape");
  await visit.see_none("figcaption small", "at ");
  await page.keyboard.press("Home");
  await page.keyboard.press("Shift+PageDown");
  await page.keyboard.press("Shift+End");
  await page.keyboard.press("Enter");
  await seen("keys");
  await chart.locator(".u-over").evaluate((over) => {
    const { left, width, top } = over.getBoundingClientRect();
    const touch = (type, part) => over.dispatchEvent(new PointerEvent(type, { bubbles: true,
      pointerType: "touch", clientX: left + width * part, clientY: top + 20 }));
    touch("pointerdown", 0.1);
    touch("pointermove", 0.5);
    touch("pointermove", 0.9);
    touch("pointerup", 0.9);
  });
  await seen("touch");
}

await scenario(async (browser) => {
  // So the charts begin before the jobs come, however long the scenario takes.
  await api("PATCH", `${queue("mail")}?create=true`, { max_active: 0 });
  await kept(0);
  for (const id of ["a", "b", "c"]) await add("mail", id);
  await add("mail", "bad", { pri: "CRITICAL" });
  const [{ lease }] = await pop("mail");
  await api("POST", `${queue("mail")}/jobs/bad:nack`, { lease, mode: "fatal", error: "no route" });
  await kept(3);
  const visit = await Visit.open(browser);
  const opened = Date.now();
  await visit.log_in();
  await visit.see(".card", "mail");
  await told_of_a_failure(visit);
  await visit.play([small_charts]);
  await visit.open_queue("mail");
  await visit.see(".job-row", "a");
  await visit.play([(each) => under_the_pointer(each, opened), lone_points,
    without_a_mouse, by_band, long_ranges, dragged, day]);
  await visit.close();
});
