// What docs/moving/execution-coordinator.md says happens.
import { equal, play, url } from "./check";
import { ExecutionCoordinator } from "./service";

play(async () => {
  const published: [string, any][] = [];
  let broken = false;
  const service = new ExecutionCoordinator(url, (type, fields) => {
    if (broken && type === "CreatePodCommand") throw new Error("no broker");
    published.push([type, fields]);
  });
  const request = (id: string, user: string, priority: number) =>
    service.handleRequested({ execution_id: id, user_id: user, priority });
  await service.configure(2);
  await request("a", "u1", 2);
  await request("b", "u1", 0);
  await request("c", "u1", 0);
  await request("d", "u2", 1);
  await request("a", "u1", 2);
  equal(published.map(([type, fields]) => [type, fields.id, fields.position]), [
    ["ExecutionAccepted", "a", 0], ["ExecutionAccepted", "b", 0], ["QueueFull", "c", undefined],
    ["ExecutionAccepted", "d", 1], ["ExecutionAccepted", "a", 2]]);
  equal(published[2][1].error.split(" ")[0], "GROUPFULL");
  equal(await service.setPriority("a", 0), true);
  equal(await service.status(), { queued: 3, active: 0,
    byPriority: { CRITICAL: 2, HIGH: 1, NORMAL: 0, LOW: 0, BACKGROUND: 0 } });

  broken = true;
  for (const _ of [1, 2]) await service.scheduleNext().catch(() => {});
  equal((await service.status()).active, 1);
  broken = false;
  published.length = 0;
  for (const _ of [1, 2, 3]) await service.scheduleNext();
  await service.scheduleNext(1);
  equal(published.map(([type, fields]) => [type, fields.id, fields.event.execution_id]),
    ["a", "b", "d"].map((id) => ["CreatePodCommand", id, id]));
  const [first, second, third] = published.map(([, fields]) => fields.lease);
  equal(await service.keep("a", first), true);
  equal(await service.handleCompleted("a", first), true);
  equal(await service.handleFailed("b", second, "out of memory"), true);
  await service.handleCancelled("d");
  equal(await service.keep("d", third), false);
  equal(await service.handleCompleted("d", third), false);
  equal((await service.status()).active, 0);
});
