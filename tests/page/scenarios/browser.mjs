// What the scenarios share: a browser whose every complaint is a failure, and the API beside it.
//
// A scenario exits 0, or prints what went wrong and exits 1. page_test.py starts it and says in the
// environment where the server is.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { strict as assert } from "node:assert";
import { join } from "node:path";

const require = createRequire(new URL("../../npm/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"];

export { assert };
export const base = process.env.PAGE;
export const tokens = { read: process.env.READ_TOKEN, operate: process.env.OPERATE_TOKEN,
  admin: process.env.ADMIN_TOKEN };
// A view that was slow to be answered rests for 20 times as long before it asks again.
const WAIT_MS = 60_000;
// Those after no-sandbox keep Chromium from asking its maker's hosts.
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];

// What only page_test.py can do: it reads this line.
export const tell = (what) => console.log(`do: ${what}`);
export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// Until it is so; `seen` says what there was instead.
export async function until(is_so, seen) {
  for (const end = Date.now() + WAIT_MS; !await is_so(); await pause(50)) {
    assert(Date.now() < end, `it never came: ${seen()}`);
  }
}

// A request to the server beside the page; the answer's JSON.
export async function api(method, path, body, token = tokens.operate) {
  const response = await fetch(base + path, { method, headers: {
    Authorization: `Bearer ${token}`, ...(body ? { "Content-Type": "application/json" } : {}) },
  body: body && JSON.stringify(body) });
  const text = await response.text();
  assert(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text);
}

export const queue = (name) => `/api/v1/queues/${encodeURIComponent(name)}`;
export const add = (name, id, options = {}) =>
  api("POST", `${queue(name)}/jobs`, { id, payload: "{}", ...options });
export const pop = async (name, options = {}) =>
  (await api("POST", `${queue(name)}:pop`, { worker: "w1", ...options })).jobs;
export const job = (name, id) => api("GET", `${queue(name)}/jobs/${encodeURIComponent(id)}`);

// What a page did that no page may do.
class Faults {
  constructor(at) {
    this.at = at;
    this.list = [];
    this.allowed = [];
  }

  watch(page) {
    page.on("pageerror", (error) => this.list.push(`error: ${error.stack}`));
    page.on("dialog", (dialog) => this.list.push(`dialog: ${dialog.message()}`));
    page.on("console", (message) => {
      if (!["error", "warning"].includes(message.type())) return;
      const text = `${message.text()} ${message.location().url}`;
      if (!this.allowed.some((each) => text.includes(each))) this.list.push(`console: ${text}`);
    });
    page.on("request", (request) => {
      if (!request.url().startsWith(this.at + "/")) this.list.push(`request: ${request.url()}`);
    });
  }

  // The page's own scripts and styles and nothing else of the kind; no handler in any attribute.
  async look(page) {
    const strange = await page.evaluate(() => [...document.querySelectorAll(
      "img, iframe, object, embed, svg, base, form[action], script:not([src='/app.js']), "
      + "link:not([href='/app.css']):not([href='/icon.svg']), style")].map((e) => e.outerHTML)
      .concat([...document.querySelectorAll("*")].flatMap((e) => [...e.attributes])
        .filter((a) => a.name.startsWith("on")).map((a) => `${a.name}=${a.value}`)));
    for (const each of strange) this.list.push(`element: ${each}`);
  }
}

// In the page: a third of the time passes between its looks at the server.
function hasten() {
  const wait = window.setTimeout;
  window.setTimeout = (what, ms, ...rest) =>
    wait(what, ms > 600 && ms <= 3000 ? ms / 3 : ms, ...rest);
}

export class Visit {
  // `at`: the server's address; `hasty`: the scenario is about what the page shows and does, and
  // not about when it asks.
  static async open(browser, { at = base, hasty = false, ...options } = {}) {
    const viewport = { width: 1360, height: 900 };
    const context = await browser.newContext({ viewport, ...options });
    if (hasty) await context.addInitScript(hasten);
    const page = await context.newPage();
    page.setDefaultTimeout(WAIT_MS);
    const visit = new Visit();
    Object.assign(visit, { at, context, page, faults: new Faults(at), asked: 0,
      under_way: new Set() });
    visit.faults.watch(page);
    visit.watch_requests();
    return visit;
  }

  watch_requests() {
    this.page.on("request", (request) => {
      if (request.isNavigationRequest()) this.under_way.clear();
      this.asked += 1;
      this.under_way.add(request);
    });
    for (const end of ["requestfinished", "requestfailed"]) {
      this.page.on(end, (request) => this.under_way.delete(request));
    }
  }

  // Until the page has all its answers, and has asked for nothing more for a second.
  async quiet() {
    let since = Date.now();
    for (let { asked } = this; Date.now() - since < 1000; await pause(50)) {
      if (this.under_way.size === 0 && asked === this.asked) continue;
      ({ asked } = this);
      since = Date.now();
    }
  }

  // As if it had logged in before: the first page is the one that is opened then.
  async remember(token = tokens.operate) {
    await this.context.addInitScript((kept) => sessionStorage.setItem("sluice-token", kept), token);
  }

  // By the log-in link, as it is printed for operators.
  async log_in(token = tokens.operate) {
    await this.page.goto(`${this.at}/#token=${encodeURIComponent(token)}`);
    await this.page.waitForSelector("main.overview");
    assert(!this.page.url().includes("token"), "the token stays in the address");
  }

  async go(hash) {
    await this.page.evaluate((next) => { location.hash = next; }, hash);
  }

  open_queue(name) {
    return this.go(`#/q/${encodeURIComponent(name)}`);
  }

  open_job(name, id) {
    return this.go(`#/q/${encodeURIComponent(name)}/j/${encodeURIComponent(id)}`);
  }

  // Waits until some element of this kind has the text.
  async see(selector, text) {
    try {
      await this.page.locator(selector).filter({ hasText: text }).first().waitFor();
    } catch (error) {
      const found = await this.page.locator(selector).allTextContents();
      throw new Error(`no ${text} in ${selector}: ${JSON.stringify(found)}\n${error.message}`);
    }
  }

  async see_none(selector, text = "") {
    await this.page.waitForFunction(([where, what]) => ![...document.querySelectorAll(where)]
      .some((element) => element.textContent.includes(what) && element.checkVisibility()),
    [selector, text]);
  }

  figure(name) {
    return this.page.locator(".figure").filter({ hasText: name }).locator("strong").textContent();
  }

  async see_figure(name, value) {
    await this.page.waitForFunction(([title, text]) => [...document.querySelectorAll(".figure")]
      .some((figure) => figure.querySelector("span").textContent === title
        && figure.querySelector("strong").textContent === text), [name, value]);
  }

  click(selector, text) {
    return this.page.locator(selector).filter({ hasText: text }).first().click();
  }

  // It is the same element, and in focus, when this path has been asked for twice more.
  async see_in_focus(locator, path) {
    await locator.focus();
    for (let look = 0; look < 2; ++look) {
      await this.page.waitForResponse((response) => new URL(response.url()).pathname === path);
    }
    await this.page.evaluate(() => new Promise((done) => requestAnimationFrame(() =>
      requestAnimationFrame(done))));
    assert(await locator.evaluate((element) => document.activeElement === element),
      "it was replaced");
  }

  // One after the other; of one that fails there is a picture.
  async play(steps) {
    for (const step of steps) {
      try {
        await step(this);
      } catch (error) {
        await this.picture(`failed-${step.name}`);
        throw error;
      }
    }
  }

  // What axe-core finds that WCAG 2.1 AA does not allow.
  async see_accessible(what) {
    if (!await this.page.evaluate(() => "axe" in globalThis)) await this.page.evaluate(axe);
    const { violations } = await this.page.evaluate((rules) => globalThis.axe.run(document,
      { runOnly: rules, resultTypes: ["violations"] }), WCAG);
    assert.deepEqual(violations.map(({ id, nodes }) => `${what}: ${id}: `
      + nodes.slice(0, 4).map(({ html, failureSummary }) =>
        `${html.slice(0, 200)} ${failureSummary}`).join("\n")), []);
  }

  async picture(name) {
    await this.page.screenshot({ path: join(process.env.SCREENSHOTS, `${name}.png`) });
  }

  async close() {
    await this.faults.look(this.page);
    await this.context.close();
    assert.deepEqual(this.faults.list, []);
  }
}

// Runs the scenario with a browser of its own.
export async function scenario(play) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, headless: true,
    args: FLAGS });
  try {
    await play(browser);
  } finally {
    await browser.close();
  }
}
