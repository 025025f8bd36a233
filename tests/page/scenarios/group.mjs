// A group: who leads, what a standby's page lets one do, and a takeover while both are open.
import { Visit, add, api, assert, queue, scenario, tell } from "./browser.mjs";

const standby = process.env.STANDBY;
const [first, second] = process.env.NAMES.split(" ");
const SIZES = { wide: { viewport: { width: 1280, height: 800 } },
  phone: { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true,
    hasTouch: true } };

const members = (visit) => visit.page.locator(".member").allTextContents();

async function see_primary(visit) {
  await visit.see(".nodes .member[data-leads]", `${first} primary`);
  await visit.see(".nodes .member", `${second} standby, up to date`);
  assert.equal((await members(visit)).length, 3);
  await visit.see(".page-head button", "Add a job…");
  await visit.see_none(".top .banner");
}

async function see_difference(visit) {
  tell(`differ ${second}`);
  await visit.see(".nodes .member .warn", "other configuration");
  await visit.picture("group-differs-wide-light");
  tell(`agree ${second}`);
  await visit.see_none(".nodes .member .warn");
}

// It shows everything, offers nothing that it would refuse, and says where to do it.
async function see_standby(visit) {
  const { page } = visit;
  await visit.see(".top .banner", `${second} is a standby: it shows everything and changes nothing.`);
  await visit.see(".nodes .member", `${second} standby, up to datethis page`);
  await visit.see(".job-row", "j1");
  await visit.see_none(".page-head button");
  await page.locator(".job-row a").first().focus();
  await visit.see_none(".row-actions button");
  await page.keyboard.press("c");
  await visit.see(".notice", "This node is not the primary: it changes nothing.");
  // Its settings and rules are read here, too.
  await visit.go("#/q/mail/settings");
  await visit.see(".setting", /max_active.*of 2 in use/);
  await visit.see(".rule", "team");
  await visit.see_none("main button");
  await visit.open_queue("mail");
  await visit.see(".job-row", "j1");
  // To the same view of the primary, where one has to log in.
  const link = page.locator(".top .banner a");
  assert.equal(await link.textContent(), first);
  await link.focus();
  assert.equal(await link.getAttribute("href"), `${process.env.PAGE}/#/q/mail`);
  await visit.see_in_focus(link, "/api/v1/group");
  // What is live there is live here.
  await add("mail", "j2");
  await visit.see(".job-row", "j2");
}

async function pictures(browser, what, at) {
  for (const [size, options] of Object.entries(SIZES)) {
    for (const colorScheme of ["light", "dark"]) {
      const visit = await Visit.open(browser, { at, ...options, colorScheme });
      await visit.log_in();
      await visit.see(".card", "mail");
      await visit.see(".nodes .member", first);
      await visit.picture(`${what}-${size}-${colorScheme}`);
      if (size === "wide") await visit.see_accessible(`${what}-${colorScheme}`);
      await visit.close();
    }
  }
}

async function take_over(there, here) {
  for (const visit of [there, here]) {
    visit.faults.allowed.push("ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET",
      "ERR_EMPTY_RESPONSE", "ERR_INCOMPLETE_CHUNKED_ENCODING", "status of 503");
  }
  await there.go("#/q/mail/settings");
  await there.click(".setting button", "Change");
  await there.page.fill(".setting-edit input", "12345");
  tell(`kill ${first}`);
  await there.see(".banner", "The server does not respond");
  await there.see(".top .banner", `It is ${first} of a group. Open this page on another node: `);
  await there.see_none(".nodes");
  await there.see(".top .banner a", second);
  await there.picture("group-lost-wide-light");
  // One of the two others leads, and each says so.
  await here.page.waitForFunction((gone) => {
    const leader = document.querySelector(".member[data-leads]");
    return leader && !leader.textContent.startsWith(gone);
  }, first);
  const leads = (await here.page.locator(".member[data-leads]").textContent()).startsWith(second);
  if (leads) {
    await here.see(".nodes", `${second} leads since takeover`);
    await here.see_none(".top .banner");
    await here.see(".page-head button", "Add a job…");
  } else {
    await here.see(".top .banner", "is a standby");
  }
  await here.picture("group-taken-wide-light");
  // The first one comes back as a standby; its page follows by itself.
  tell(`start ${first}`);
  await there.see(".top .banner", `${first} is a standby`);
  // What was being written is there, and why it cannot be saved.
  await there.see(".setting-edit .trial", "This node is a standby: it changes nothing.");
  assert.equal(await there.page.inputValue(".setting-edit input"), "12345");
  await there.open_queue("mail");
  await there.see(".job-row", "j1");
  await there.see_none(".page-head button");
  return leads;
}

await scenario(async (browser) => {
  await api("PATCH", `${queue("mail")}?create=true`, { max_active: 2 });
  await api("PATCH", `${queue("mail")}?group_glob=team`, { max_active: 1 });
  await add("mail", "j1");
  await pictures(browser, "group-primary", undefined);
  await pictures(browser, "group-standby", standby);
  const there = await Visit.open(browser);
  await there.log_in();
  await there.open_queue("mail");
  await see_primary(there);
  await see_difference(there);
  const here = await Visit.open(browser, { at: standby });
  await here.log_in();
  await here.open_queue("mail");
  await see_standby(here);
  await take_over(there, here);
  await there.close();
  await here.close();
});
