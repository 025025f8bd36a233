#!/usr/bin/python3
"""The Redis execution queue and its coordinator, played through the native commands.

Each test is a promise of the two documents: bands and FIFO, atomic scheduling under a cap, changing
a priority without losing age, counts by band, the reactive triggers; per-user limits, the stale
timeout, a full queue, suppression of duplicates.
"""

import json
import random
import sys
import threading
import time

import harness
from harness import require, require_equal, wait_until
from harness.native_queue import DISK, Native, expect_error, pairs

QUEUE = "exec"
BANDS = ["CRITICAL", "HIGH", "NORMAL", "LOW", "BACKGROUND"]


def started(options, directives=None):
    server = options.server(directives)
    server.start()
    return server, Native(server)


def event(job_id):
    return json.dumps({"event_type": "execution_requested", "execution_id": job_id,
                       "script": "print('grüße')\n" * 8}, ensure_ascii=False).encode()


def test_bands_and_order_of_arrival(options):
    """1,000 jobs of one millisecond leave by band and then in the order of their arrival."""
    _, native = started(options)
    rng = random.Random(1)
    jobs = [(f"e{number}", rng.choice(BANDS)) for number in range(1000)]
    unit = native.client.pipeline(transaction=True)
    for job_id, band in jobs:
        unit.execute_command("Q.ADD", QUEUE, job_id, event(job_id), "PRI", band)
    replies = [pairs(reply) for reply in unit.execute()]
    # One unit has one time.
    times = {native.get(QUEUE, job_id)["enqueued"] for job_id, _ in jobs}
    require_equal(len(times), 1, "different arrival times in one MULTI")
    ahead = [0] * 5
    for (job_id, band), reply in zip(jobs, replies):
        number = BANDS.index(band)
        require_equal(reply["position"], sum(ahead[:number + 1]), f"position of {job_id}")
        ahead[number] += 1
    expected = [job_id for job_id, _ in sorted(jobs, key=lambda job: BANDS.index(job[1]))]
    require_equal(native.drain(QUEUE), expected, "order of scheduling")


def test_enqueue_answers_with_the_position(options):
    """enqueue returns the position; the job at position 0 is the next one."""
    _, native = started(options)
    require_equal(native.add(QUEUE, "a", event("a"), "PRI", "normal")["position"], 0, "first")
    require_equal(native.add(QUEUE, "b", event("b"), "PRI", "low")["position"], 1, "behind")
    require_equal(native.add(QUEUE, "c", event("c"), "PRI", "critical")["position"], 0, "before")
    job = native.pop(QUEUE, "CAP", 10)
    require_equal((job["id"], job["payload"]), (b"c", event("c")), "scheduled")


def test_the_cap_is_atomic(options):
    """try_schedule(10) by 64 concurrent callers: never more than 10 active, every job once."""
    server, native = started(options)
    jobs = [f"e{number}" for number in range(1500)]
    for job_id in jobs:
        native.add(QUEUE, job_id, event(job_id))
    lock = threading.Lock()
    holding, most, seen, failures = set(), [0], [], []

    def worker():
        own = Native(server)
        try:
            while len(seen) < len(jobs):
                job = own.pop(QUEUE, "CAP", 10, "BLOCK", 200)
                if job is None:
                    continue
                with lock:
                    holding.add(job["id"])
                    seen.append(job["id"].decode())
                    most[0] = max(most[0], len(holding))
                    # Before the acknowledgement is sent: every leased job still holds a slot.
                    active = len(holding)
                require(active <= 10, f"{active} jobs are active")
                with lock:
                    holding.discard(job["id"])
                require_equal(own.ack(QUEUE, job), b"OK", "release")
        except Exception as error:  # pylint: disable=broad-except
            failures.append(error)
        finally:
            own.close()

    threads = [threading.Thread(target=worker) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    require(not failures, f"{failures[:1]}")
    require_equal(sorted(seen), sorted(jobs), "jobs that were scheduled")
    stats = native.stats(QUEUE)
    require_equal((stats["pending"], stats["active"], stats["completed"]), (0, 0, 1500), "at rest")


def test_nothing_is_scheduled_beyond_the_cap(options):
    """With max_active running, try_schedule gives nothing until one is released or removed."""
    _, native = started(options)
    for number in range(5):
        native.add(QUEUE, f"e{number}", event(f"e{number}"))
    running = [native.pop(QUEUE, "CAP", 3) for _ in range(3)]
    require_equal(native.pop(QUEUE, "CAP", 3), None, "a fourth")
    require_equal(native.ack(QUEUE, running[0]), b"OK", "release")
    require_equal(native.pop(QUEUE, "CAP", 3)["id"], b"e3", "after the release")
    require_equal(native.cancel(QUEUE, "e1", "GRACE", 0), b"cancelled", "remove an active one")
    require_equal(native.pop(QUEUE, "CAP", 3)["id"], b"e4", "after the removal")
    # A cap that was lowered meanwhile ends nothing and admits nothing.
    require_equal(native.pop(QUEUE, "CAP", 2), None, "with a lower cap")
    require_equal(native.stats(QUEUE)["active"], 3, "active")


def test_a_changed_priority_keeps_the_age(options):
    """update_priority: among the new band's jobs the older one still goes first."""
    _, native = started(options)
    for job_id, band in [("old", "low"), ("high1", "high"), ("mid", "low"), ("high2", "high"),
                         ("late", "low")]:
        native.add(QUEUE, job_id, b"", "PRI", band)
        time.sleep(0.003)
    require_equal(native.move(QUEUE, "mid", "PRI", "high"), 1, "between high1 and high2")
    require_equal(native.move(QUEUE, "old", "PRI", "high"), 0, "the oldest of all")
    require_equal(native.drain(QUEUE), ["old", "high1", "mid", "high2", "late"], "order")
    native.add(QUEUE, "runs", b"")
    native.pop(QUEUE)
    require_equal(native.move(QUEUE, "runs", "PRI", 0), None, "an active job")
    require_equal(native.move(QUEUE, "nobody", "PRI", 0), None, "an unknown job")


def test_counts_are_right_for_every_band(options):
    """get_queue_status and get_pending_by_priority, CRITICAL and BACKGROUND included."""
    _, native = started(options)
    counts = dict(zip(BANDS, (3, 0, 5, 1, 2)))
    for band, count in counts.items():
        for number in range(count):
            native.add(QUEUE, f"{band}{number}", b"", "PRI", band)
    by_band = native.stats_by(QUEUE, "BY", "PRI")
    require_equal({band: by_band[band]["pending"] for band in BANDS}, counts, "pending by band")
    native.pop(QUEUE)
    stats = native.stats(QUEUE)
    require_equal((stats["pending"], stats["active"]), (10, 1), "depth and active")
    by_band = native.stats_by(QUEUE, "BY", "PRI")
    require_equal((by_band["CRITICAL"]["pending"], by_band["CRITICAL"]["active"]), (2, 1), "line")


def test_a_release_schedules_the_next_at_once(options):
    """The reactive triggers: a waiting scheduler gets the next job with the release, no polling."""
    server, native = started(options)
    native.config(QUEUE, "SET", "max_active", 1)
    native.add(QUEUE, "a", b"")
    native.add(QUEUE, "b", b"")
    first = native.pop(QUEUE)
    got = []

    def wait():
        own = Native(server)
        got.append((own.pop(QUEUE, "BLOCK", 5000), time.monotonic()))
        own.close()

    waiter = threading.Thread(target=wait)
    waiter.start()
    wait_until(lambda: native.stats(QUEUE)["waiting_pops"] == 1, what="the waiting pop")
    released = time.monotonic()
    native.ack(QUEUE, first)
    waiter.join()
    require_equal(got[0][0]["id"], b"b", "scheduled")
    require(got[0][1] - released < 0.5, f"only after {got[0][1] - released:.3f} s")


def test_the_queue_survives_a_restart(options):
    """Persistence: pending, active and their order are there after a restart."""
    server, native = started(options, DISK)
    for number, band in enumerate(["low", "high", "normal", "high"]):
        native.add(QUEUE, f"e{number}", event(f"e{number}"), "PRI", band)
    running = native.pop(QUEUE)
    native.close()
    server.kill()
    server.start()
    native = Native(server)
    require_equal(native.state(QUEUE, running["id"]), "active", "the active job")
    require_equal(native.ack(QUEUE, running), b"OK", "its lease")
    jobs = native.pop_many(QUEUE, "COUNT", 10)
    require_equal([job["id"] for job in jobs], [b"e3", b"e2", b"e0"], "order")
    require_equal(jobs[0]["payload"], event("e3"), "payload")
    require(jobs[0]["lease"] > running["lease"], "tokens grow across a restart")


def test_a_user_has_a_limit(options):
    """Coordinator: 100 executions a user, waiting and running; nobody else is held up by it."""
    _, native = started(options)
    native.config(QUEUE, "SET", "max_waiting", 10000, "ttl_ms", 3600000)
    native.config(QUEUE, "GROUP", "*", "SET", "max_total", 100)
    for number in range(100):
        native.add(QUEUE, f"greedy{number}", b"", "GROUP", "greedy")
    hints = expect_error("GROUPFULL", native.add, QUEUE, "more", b"", "GROUP", "greedy")
    require_equal((hints["group"], hints["limit"], hints["value"]), ("greedy", "max_total", "100"),
                  "hints")
    require_equal(native.add(QUEUE, "other", b"", "GROUP", "modest")["result"], b"added", "other")
    # A running one counts as well, a completed one does not.
    job = native.pop(QUEUE)
    expect_error("GROUPFULL", native.add, QUEUE, "more", b"", "GROUP", "greedy")
    native.ack(QUEUE, job)
    require_equal(native.add(QUEUE, "more", b"", "GROUP", "greedy")["result"], b"added", "again")
    require_equal(native.stats(QUEUE)["added"], 102, "added")


def test_a_full_queue_refuses(options):
    """Coordinator: max_queue_size; what is refused leaves no trace, and room is room again."""
    _, native = started(options)
    native.config(QUEUE, "SET", "max_waiting", 50)
    for number in range(50):
        native.add(QUEUE, f"e{number}", b"")
    hints = expect_error("QFULL", native.add, QUEUE, "more", b"")
    require_equal((hints["pending"], hints["max"]), ("50", "50"), "hints")
    require_equal(native.get(QUEUE, "more"), None, "the refused job")
    native.cancel(QUEUE, "e7")
    require_equal(native.add(QUEUE, "more", b"")["position"], 49, "after a cancel")


def test_stale_jobs_expire_without_traffic(options):
    """Coordinator: the stale timeout is a timer, not a sweep that a full queue must trigger."""
    server, native = started(options)
    native.config(QUEUE, "SET", "ttl_ms", 2000)
    native.add(QUEUE, "e0", b"")
    running = native.pop(QUEUE)
    spent = time.monotonic() + 2
    native.config(QUEUE, "SET", "ttl_ms", 200)
    for number in range(1, 30):
        native.add(QUEUE, f"e{number}", b"")
    got = native.get(QUEUE, "e29", "WAIT", 3000)   # the only traffic: one who waits for the end
    require_equal(got["state"], b"expired", "state")
    stats = native.stats(QUEUE)
    require_equal((stats["pending"], stats["expired"], stats["active"]), (0, 29, 1), "counts")
    time.sleep(max(0.0, spent - time.monotonic()))
    require_equal(native.ack(QUEUE, running), b"OK", "a running job has no such timeout")
    require(server.alive(), "the server lives")


def test_duplicates_are_suppressed(options):
    """The dedup guard: an execution that waits, runs or has ended is not started twice."""
    _, native = started(options)
    native.add(QUEUE, "e1", b"first")
    hints = expect_error("DUPLICATE", native.add, QUEUE, "e1", b"second")
    require_equal((hints["id"], hints["state"]), ("e1", "pending"), "hints")
    require_equal(native.add(QUEUE, "e1", b"second", "IFDUP", "KEEP")["result"], b"kept", "keep")
    job = native.pop(QUEUE)
    require_equal(job["payload"], b"first", "payload")
    require_equal(native.add(QUEUE, "e1", b"", "IFDUP", "KEEP")["state"], b"active", "active")
    require_equal(native.pop(QUEUE), None, "nothing more to start")
    native.ack(QUEUE, job)
    require_equal(native.add(QUEUE, "e1", b"", "IFDUP", "KEEP")["state"], b"completed", "ended")
    require_equal(native.stats(QUEUE)["started"], 1, "started")


def test_a_cancelled_execution_is_removed_and_the_next_one_starts(options):
    """ExecutionCancelled: removed from the queue; if it ran, its slot goes to the next."""
    _, native = started(options)
    native.config(QUEUE, "SET", "max_active", 1)
    for job_id in ("a", "b", "c"):
        native.add(QUEUE, job_id, b"")
    job = native.pop(QUEUE)
    require_equal(native.cancel(QUEUE, "b"), b"cancelled", "a waiting one")
    require_equal(native.cancel(QUEUE, "a", "REASON", "user", "GRACE", 0), b"cancelled", "active")
    require_equal(native.pop(QUEUE)["id"], b"c", "next")
    expect_error("STALELEASE", native.ack, QUEUE, job)
    require_equal(native.cancel(QUEUE, "a"), b"gone", "again")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
