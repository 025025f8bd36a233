// What docs/moving/in-process-queue.md says happens.
import { spawn } from "node:child_process";
import { NotCompleted } from "@sluice/queue";
import { equal, play, refused, url, waitUntil } from "./check";
import { ExecutionQueue } from "./service";

/** A task that runs until it is told to end. */
function held() {
  let end!: () => void;
  let fail!: (error: Error) => void;
  let started = false;
  const ended = new Promise<void>((resolve, reject) => { end = resolve; fail = reject; });
  const task = async () => { started = true; await ended; return "done"; };
  return { task, end, fail, isRunning: async () => started };
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function scenario() {
  const [queue, other] = [new ExecutionQueue(url, 1), new ExecutionQueue(url, 1)]; // as of two
  const runs = [queue.run(), other.run()]; // processes
  await queue.configure(1, 3, 60000, 1500);
  const isQueued = (count: number) => waitUntil(
    async () => (await queue.getDetailedStats()).queued === count, `${count} queued`);
  const first = held();
  const order: string[] = [];
  const note = (name: string) => async () => { order.push(name); await pause(50); };
  const running = queue.enqueue(first.task, 0, "python", "first");
  await waitUntil(first.isRunning, "the first task");

  const others: Promise<unknown>[] = [];
  for (const [of, name, priority] of
    [[queue, "notebook", 0], [other, "api", 1], [queue, "late", 0]] as const) {
    others.push(of.enqueue(note(name), priority, "java", name));
    await isQueued(others.length);
  }
  await refused("Queue", () => queue.enqueue(note("more"), 2));
  equal(await queue.setPriority("late", 2), true);
  const stats = await queue.getDetailedStats();
  equal([stats.queued, stats.active, stats.maxConcurrent, stats.queueUtilization], [3, 1, 1, 100]);
  equal(stats.queuedByPriority, { INTERACTIVE: 1, API: 1, NOTEBOOK: 1 });
  equal(stats.queuedByLanguage, { python: 0, java: 3 });
  await pause(2000); // longer than its lease: it is kept
  first.end();
  equal(await running, "done");
  await Promise.all(others);
  equal(order, ["late", "api", "notebook"]);
  equal((await queue.getDetailedStats()).averageTaskTime > 50, true);

  // A failure frees the slot; a cancelled one hears of it; an expired one is rejected in time.
  const boom = held();
  const failing = queue.enqueue(boom.task, 1);
  await waitUntil(boom.isRunning, "the run that fails");
  boom.fail(new Error("boom"));
  await refused("boom", () => failing);
  const told = queue.enqueue((stop) => new Promise((_, reject) => {
    stop.addEventListener("abort", () => reject(new Error("stopped")));
  }), 1, "none", "told");
  await waitUntil(async () => (await queue.getDetailedStats()).active === 1, "the run");
  equal(await queue.cancel("told"), "signalled");
  await refused("stopped", () => told);
  await waitUntil(async () => (await queue.getDetailedStats()).active === 0, "the free slot");
  equal((await queue.getDetailedStats()).failedTasks, 1);

  await queue.configure(1, 3, 60000, 5000);
  const holder = held();
  const holding = queue.enqueue(holder.task, 1);
  await waitUntil(holder.isRunning, "a run");
  await queue.configure(1, 3, 100, 5000);
  const expired = await queue.enqueue(note("never"), 2).catch((error) => error);
  equal(expired instanceof NotCompleted && expired.state, "expired");

  // A process that dies: its lease runs out, and its slot goes to the next.
  holder.end();
  await holding;
  await queue.configure(1, 3, 60000, 1500);
  const dying = spawn(process.execPath, [process.argv[1]],
    { env: { ...process.env, ROLE: "dies" }, stdio: ["ignore", "ignore", "inherit"] });
  await waitUntil(async () => (await queue.getDetailedStats()).active === 1, "the other's run");
  const next = queue.enqueue(async () => "next", 0);
  await isQueued(1);
  dying.kill("SIGKILL");
  equal(await next, "next");
  await Promise.all([queue.stop(), other.stop(), ...runs]);
}

if (process.env.ROLE === "dies") {
  const queue = new ExecutionQueue(url);
  void queue.run();
  void queue.enqueue(() => new Promise(() => {}), 2);
} else {
  play(scenario);
}
