// What the page costs the processor, from a trace of Chromium: other work on the machine does not
// lengthen it.
import { add, assert, pause } from "./browser.mjs";

const UPDATES_A_SECOND = 50;

// Frames, until the page is closed.
export function animate() {
  const frame = () => requestAnimationFrame(frame);
  frame();
}

// For so many seconds a job is added fifty times a second, the n-th one to the queue `queue_of(n)`.
// Returns their number, and how long it took.
export async function change(seconds, name, queue_of) {
  const began = Date.now();
  const adds = [];
  while (adds.length < seconds * UPDATES_A_SECOND) {
    const n = adds.length;
    adds.push(add(queue_of(n), `${name}-${n}`, { pri: "CRITICAL" }));
    await pause(Math.max(0, began + adds.length * 1000 / UPDATES_A_SECOND - Date.now()));
  }
  await Promise.all(adds);
  return { changes: adds.length, seconds: (Date.now() - began) / 1000 };
}

// Until the returned function is called: the CPU in milliseconds of each task, of those of the page's
// thread (`own`), and of that thread from each frame to the next.
export async function trace(devtools) {
  const events = [];
  const collect = ({ value }) => events.push(...value);
  devtools.on("Tracing.dataCollected", collect);
  const complete = new Promise((done) => devtools.once("Tracing.tracingComplete", done));
  await devtools.send("Tracing.start", { transferMode: "ReportEvents",
    traceConfig: { includedCategories: ["devtools.timeline", "toplevel"] } });
  return async () => {
    await devtools.send("Tracing.end");
    await complete;
    devtools.off("Tracing.dataCollected", collect);
    const tasks = events.filter(({ name, tdur }) => /(^|::)RunTask$/.test(name) && tdur > 0);
    assert(tasks.length > 100, `${tasks.length} tasks were traced`);
    const fired = events.filter(({ name }) => name === "FireAnimationFrame");
    assert(fired.length > 100, `${fired.length} frames were traced`);
    // A page that is opened may get another process.
    const { pid, tid } = fired.reduce((a, b) => b.ts > a.ts ? b : a);
    const own = tasks.filter((task) => task.pid === pid && task.tid === tid)
      .sort((a, b) => a.ts - b.ts || b.dur - a.dur);
    const frames = [];
    let end = -Infinity;
    for (const { ts, dur, tdur } of own) {
      if (ts < end) continue;  // a part of the one before
      end = ts + dur;
      if (fired.some((frame) => frame.ts >= ts && frame.ts < end)) frames.push(0);
      if (frames.length > 0) frames[frames.length - 1] += tdur / 1000;
    }
    const cpu = (some) => some.map(({ tdur }) => tdur / 1000);
    return { tasks: cpu(tasks), own: cpu(own), frames };
  };
}
