// Keeps several pages open, half of them on the overview and half on a queue, while jobs come and
// go. Not a test: bench/page runs it, and reads the server's CPU time between the lines.
import { Visit, add, api, base, pause, pop, queue, scenario } from "./browser.mjs";

const VIEWERS = Number(process.env.VIEWERS);
const SECONDS = Number(process.env.SECONDS);
const EACH_MS = 200;

async function work(until) {
  for (let n = 0; Date.now() < until; ++n) {
    const began = Date.now();
    await add("exec", `w-${began}`, { pri: ["HIGH", "NORMAL", "LOW"][n % 3], group: `g${n % 9}` });
    for (const { id, lease } of await pop("exec")) {
      await api("POST", `${queue("exec")}/jobs/${id}:ack`, { lease, result: "1" });
    }
    await pause(began + EACH_MS - Date.now());
  }
}

await scenario(async (browser) => {
  for (const name of ["exec", "mail", "render"]) {
    await api("PATCH", `${queue(name)}?create=true`, { max_active: 8 });
    await api("POST", `${queue(name)}/jobs`, Array.from({ length: 500 }, (_, n) => ({
      id: `job-${n}`, payload: "{}", pri: ["HIGH", "NORMAL", "LOW"][n % 3], group: `g${n % 9}` })));
  }
  const visits = [];
  let asked = 0;
  for (let n = 0; n < VIEWERS; ++n) {
    const visit = await Visit.open(browser);
    await visit.remember();
    await visit.page.goto(`${base}/${n % 2 === 0 ? "#/" : "#/q/exec"}`);
    await visit.page.waitForSelector(".card, .figure-row");
    visit.page.on("response", () => { asked += 1; });
    visits.push(visit);
  }
  await work(Date.now() + 3000);
  console.log("begin");
  asked = 0;
  await work(Date.now() + SECONDS * 1000);
  console.log(`end ${asked}`);
  for (const visit of visits) await visit.close();
});
