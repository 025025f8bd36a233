// What docs/moving/in-process-queue.md says happens.
import { spawn } from "node:child_process";
import { connect, equal, play, refused, waiters, waitUntil } from "./check";
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

async function scenario() {
  const client = connect();
  const queue = new ExecutionQueue(client);
  await queue.configure(1, 3, 60000, 300);
  const first = held();
  const runs: string[] = [];
  const note = (name: string) => async () => { runs.push(name); };
  const running = queue.enqueue(first.task, 0, "python", "first");
  await waitUntil(first.isRunning, "the first task");

  const others: Promise<unknown>[] = [];
  for (const [name, priority] of [["notebook", 0], ["api", 1], ["late", 0]] as const) {
    others.push(queue.enqueue(note(name), priority, "java", name));
    await waitUntil(async () => (await waiters(client, "run")) === others.length, name);
  }
  await refused("Queue", () => queue.enqueue(note("more"), 2));
  equal(await queue.setPriority("late", 2), true);
  const stats = await queue.getDetailedStats();
  equal([stats.queued, stats.active, stats.maxConcurrent, stats.queueUtilization], [3, 1, 1, 100]);
  equal(stats.queuedByPriority, { INTERACTIVE: 1, API: 1, NOTEBOOK: 1 });
  equal(stats.queuedByLanguage, { python: 0, java: 3 });
  await new Promise((resolve) => setTimeout(resolve, 450)); // longer than its lease: it is kept
  first.end();
  equal(await running, "done");
  await Promise.all(others);
  equal(runs, ["late", "api", "notebook"]);
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

  await queue.configure(1, 3, 100, 300);
  const holder = held();
  const holding = queue.enqueue(holder.task, 1);
  await waitUntil(holder.isRunning, "a run");
  const text = await refused("GONE", () => queue.enqueue(note("never"), 2));
  equal(/state=expired/.test(text), true);

  // A process that dies: its connections break, and its slot goes to the next in time.
  holder.end();
  await holding;
  await queue.configure();
  await client.call("Q.CONFIG", "run", "SET", "max_active", 1, "disconnect_grace_ms", 100);
  const other = spawn(process.execPath, [process.argv[1]],
    { env: { ...process.env, ROLE: "dies" }, stdio: ["ignore", "ignore", "inherit"] });
  await waitUntil(async () => (await queue.getDetailedStats()).active === 1, "the other's run");
  const next = queue.enqueue(async () => "next", 0);
  await waitUntil(async () => (await waiters(client, "run")) === 1, "the next");
  const killed = Date.now();
  other.kill("SIGKILL");
  equal(await next, "next");
  equal(Date.now() - killed < 5000, true);
}

if (process.env.ROLE === "dies") {
  new ExecutionQueue(connect()).enqueue(() => new Promise(() => {}), 2);
} else {
  play(scenario);
}
