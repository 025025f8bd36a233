"""What docs/moving/redis-execution-queue.md says happens."""

import json
import threading
import time

from backlog import move_backlog
from check import URL, connect, equal, refused, wait_until
import look
from look import figures, look_deployed, look_documented
from service import ExecutionQueueService, as_map

NEXT = 10 ** 12
NAMES = ("critical", "high", "normal", "low", "background")


def event(execution_id, priority):
    return {"execution_id": execution_id, "priority": priority, "script": "print('grüße')"}


def the_methods():
    queue = ExecutionQueueService(URL, "orchestrator-1")
    queue.configure()
    equal([queue.enqueue(event(name, band)) for name, band in
           (("a", "normal"), ("b", "low"), ("c", "critical"), ("d", "low"))], [0, 1, 0, 3])
    equal(queue.enqueue(event("a", "normal")), 1)  # delivered twice: kept
    equal(queue.get_queue_status(), {"queue_depth": 4, "active_count": 0})
    equal(queue.get_pending_by_priority(),
          {"CRITICAL": 1, "HIGH": 0, "NORMAL": 1, "LOW": 2, "BACKGROUND": 0})
    equal(queue.update_priority("d", "high"), True)
    equal(queue.update_priority("nobody", "high"), False)
    first, what, lease = queue.try_schedule(2)
    equal((first, what["script"]), ("c", "print('grüße')"))
    second, _, second_lease = queue.try_schedule(2)
    equal(second, "d")
    equal(queue.try_schedule(2), None)
    equal(queue.keep(first, lease), True)
    equal(sorted(queue.held()), [("c", lease), ("d", second_lease)])
    queue.release(first, lease)
    third, _, third_lease = queue.try_schedule(2)
    equal(third, "a")
    queue.remove(third)
    equal(queue.keep(third, third_lease), False)
    refused("STALELEASE", queue.release, third, third_lease)
    equal(queue.enqueue(event("c", "normal")), None)  # it has ended: not started twice
    queue.remove("b")
    queue.release(second, second_lease)
    equal(queue.get_queue_status(), {"queue_depth": 0, "active_count": 0})


def a_scheduler_that_waits_hears_of_a_release(client):
    queue = ExecutionQueueService(URL, "orchestrator-1", "waits")
    queue.enqueue(event("a", "normal"))
    queue.enqueue(event("b", "normal"))
    job, _, lease = queue.try_schedule(1)
    got = []
    scheduler = threading.Thread(target=lambda: got.append(queue.try_schedule(1, 5000)))
    scheduler.start()
    wait_until(lambda: as_map(client.execute_command("Q.STATS", "waits"))["waiting_pops"] == 1,
               "a scheduler that waits")
    released = time.monotonic()
    queue.release(job, lease)
    scheduler.join()
    equal((got[0][0], time.monotonic() - released < 1), ("b", True))


def a_lost_execution_comes_back_with_a_greater_lease(client):
    client.execute_command("Q.CONFIG", "short", "SET", "lease_ms", 100)
    queue = ExecutionQueueService(URL, "orchestrator-1", "short")
    queue.enqueue(event("a", "normal"))
    _, _, lease = queue.try_schedule(10)
    name, _, newer = queue.try_schedule(10, 5000)
    equal((name, newer > lease, queue.keep("a", lease)), ("a", True, False))


def the_backlog_keeps_band_and_age(client):
    now_ms = int(time.time() * 1000)
    expected = []
    for band in (0, 2, 4):
        for age_ms in (7_200_000, 60_000, 5):
            name = f"e{band}-{age_ms}"
            expected.append(name)
            client.zadd("exec_queue:pending", {name: band * NEXT + now_ms - age_ms})
            client.set(f"exec_queue:event:{name}", json.dumps(event(name, "normal")), ex=86400)
    client.zadd("exec_queue:pending", {"gone": 2 * NEXT + now_ms})
    equal(move_backlog(client, "moved"), ["gone"])
    equal(client.zrange("exec_queue:pending", 0, -1), [b"gone"])
    equal(client.keys("exec_queue:event:*"), [])
    equal(move_backlog(client, "moved"), ["gone"])
    queue = ExecutionQueueService(URL, "orchestrator-1", "moved")
    equal(queue.get_pending_by_priority(),
          {"CRITICAL": 3, "HIGH": 0, "NORMAL": 3, "LOW": 0, "BACKGROUND": 3})
    equal([queue.try_schedule(100)[0] for _ in expected], expected)


def an_adopted_queue_shows_the_keys(client, adopt, pending, score):
    """What their own code does, and what the queue says of it."""
    adopt(client, "shown")
    began_s = time.time()
    for number, band in enumerate((0, 2, 2, 4)):
        client.zadd(pending(band), {f"s{number}": score(band, began_s - 60)})
    equal(figures(client, "shown")["by_priority"],
          {"CRITICAL": 1, "HIGH": 0, "NORMAL": 2, "LOW": 0, "BACKGROUND": 1})
    unit = client.pipeline(transaction=True)
    unit.zrem(pending(0), "s0")
    unit.sadd("exec_queue:active", "s0")
    unit.execute()
    client.srem("exec_queue:active", "s0")
    stats = figures(client, "shown")
    equal((stats["pending"], stats["active"], stats["completed"]), (3, 0, 1))
    equal(stats["wait_ms"]["count"], 1)
    equal(60_000 <= stats["wait_ms"]["max"] + 2, True)
    equal(client.execute_command("Q.MOVE", "shown", "s3", "PRI", "critical"), 0)
    for number in (1, 2, 3):
        equal(client.execute_command("Q.CANCEL", "shown", f"s{number}"), b"cancelled")
    equal(client.execute_command("Q.ADOPT", "shown", "OFF"), b"OK")
    client.delete("shown")
    equal(client.keys("exec_queue:*"), [])


def maps_of_both_protocols_are_read():
    for read in (as_map, look.as_map):
        equal(read([b"id", b"a", b"lease", 1]), read({b"id": b"a", b"lease": 1}))


CLIENT = connect()
maps_of_both_protocols_are_read()
an_adopted_queue_shows_the_keys(
    CLIENT, look_documented, lambda band: "exec_queue:pending",
    lambda band, time_s: band * NEXT + int(time_s * 1000))
an_adopted_queue_shows_the_keys(
    CLIENT, look_deployed, lambda band: "exec_queue:pending:" + NAMES[band],
    lambda band, time_s: time_s)
the_methods()
a_scheduler_that_waits_hears_of_a_release(CLIENT)
a_lost_execution_comes_back_with_a_greater_lease(CLIENT)
the_backlog_keeps_band_and_age(CLIENT)
print("all of it holds")
