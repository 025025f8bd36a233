// What docs/moving/redis-execution-queue.md says happens.
import { connect, equal, play, refused, url, waiters, waitUntil } from "./check";
import { ExecutionQueueService } from "./service";

const event = (id: string, priority: string) => (
  { execution_id: id, priority, script: "print('grüße')" });

play(async () => {
  const client = connect();
  const queue = new ExecutionQueueService(url, client, "orchestrator-1");
  await queue.configure();
  equal(await queue.enqueue(event("a", "normal")), 0);
  equal(await queue.enqueue(event("b", "low")), 1);
  equal(await queue.enqueue(event("c", "critical")), 0);
  equal(await queue.enqueue(event("a", "normal")), 1);
  equal(await queue.updatePriority("b", "high"), true);
  equal(await queue.updatePriority("nobody", "high"), false);
  equal(await queue.status(), { depth: 3, active: 0,
    byPriority: { CRITICAL: 1, HIGH: 1, NORMAL: 1, LOW: 0, BACKGROUND: 0 } });
  const first = (await queue.trySchedule(1))!;
  equal([first.id, first.event.script], ["c", "print('grüße')"]);
  equal(await queue.trySchedule(1), null);
  equal(await queue.held(), [{ id: "c", lease: first.lease }]);
  equal(await queue.keep("c", first.lease), true);
  const own = new ExecutionQueueService(url, client.duplicate(), "orchestrator-2");
  const waiting = own.trySchedule(1, 5000);
  await queue.release("c", first.lease);
  const second = (await waiting)!;
  equal([second.id, second.lease > first.lease], ["b", true]);
  await queue.remove("b");
  equal(await queue.keep("b", second.lease), false);
  await refused("STALELEASE", () => queue.release("b", second.lease));

  // The connection breaks while a pop waits: ioredis asks again, and one job comes once.
  const other = new ExecutionQueueService(url, own["client"], "orchestrator-2", "other");
  const asked = other.trySchedule(5, 5000);
  await waitUntil(async () => (await waiters(client, "other")) === 1, "a scheduler that waits");
  const connected = new Promise((resolve) => own["client"].once("ready", resolve));
  await client.call("CLIENT", "KILL", "TYPE", "normal");
  await connected;
  await waitUntil(async () => (await waiters(client, "other")) === 1, "the second try");
  await new ExecutionQueueService(url, client, "producer", "other").enqueue(event("x", "normal"));
  const { id, lease } = (await asked)!;
  equal(id, "x");
  equal(await other.held(), [{ id, lease }]);
});
