#!/usr/bin/python3
"""The in-process queue of a code runner, played through the native commands: the producer is its
own worker, and the queue a fair, durable semaphore with priorities, a bound and a timeout."""

import sys
import threading
import time

import harness
from harness import require, require_equal, wait_until
from harness.holds import measured
from harness.native_queue import Native, expect_error

QUEUE = "run"
INTERACTIVE, API, NOTEBOOK = 2, 1, 0


def started(options, **config):
    server = options.server()
    server.start()
    native = Native(server)
    fields = {"max_active": 50, "max_waiting": 200, "ttl_ms": 60000, "priority_order": "desc",
              **config}
    native.config(QUEUE, "SET", *[word for field in fields.items() for word in field])
    return server, native


def enqueue(native, priority, language):
    """enqueue(task, priority, language) -> the id."""
    return native.add(QUEUE, "*", b"", "PRI", priority, "TAG", "lang", language)["id"]


class Request(threading.Thread):
    """One request: enqueues itself and waits until it may run."""

    def __init__(self, server, priority, language="python", block_ms=10000):
        super().__init__()
        self.native = Native(server)
        self.priority = priority
        self.language = language
        self.block_ms = block_ms
        self.job = None
        self.error = None
        self.job_id = enqueue(self.native, priority, language)

    def run(self):
        try:
            self.job = self.native.pop(QUEUE, "ID", self.job_id, "BLOCK", self.block_ms, "TIED")
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def finish(self):
        require_equal(self.native.ack(QUEUE, self.job), b"OK", "the end of a run")
        self.native.close()


def test_interactive_before_api_before_notebooks(options):
    """Larger is more urgent: WebSocket before HTTP API before notebooks, FIFO within each."""
    server, native = started(options, max_active=1)
    first = Request(server, NOTEBOOK)
    first.start()
    first.join()
    require(first.job is not None, "an idle queue starts the task at once")
    waiting = [Request(server, priority)
               for priority in (NOTEBOOK, API, INTERACTIVE, API, INTERACTIVE)]
    for request in waiting:
        request.start()
    wait_until(lambda: native.stats(QUEUE)["waiting_pops"] == 5, what="five waiting requests")
    order = []
    running = first
    for _ in waiting:
        running.finish()
        wait_until(lambda: any(one.job and one not in order for one in waiting), what="the next")
        [running] = [one for one in waiting if one.job and one not in order]
        order.append(running)
    require_equal([waiting.index(one) for one in order], [2, 4, 1, 3, 0], "order")
    running.finish()


def test_callers_read_the_priorities_that_they_wrote(options):
    """priority_order desc: what a caller writes is what it reads."""
    _, native = started(options)
    ids = [enqueue(native, priority, "python") for priority in (INTERACTIVE, API, NOTEBOOK)]
    for job_id, number in zip(ids, (INTERACTIVE, API, NOTEBOOK)):
        listed = native.call("Q.LIST", QUEUE, "WHERE", "PRI", number)[1]
        require_equal([dict(zip(job[::2], job[1::2]))[b"id"] for job in listed], [job_id],
                      f"jobs of priority {number}")
    default = native.add(QUEUE, "plain", b"")["id"]
    require_equal(native.get(QUEUE, default)["pri"], native.get(QUEUE, ids[2])["pri"], "default")


def test_at_most_fifty_run(options):
    """MAX_CONCURRENT_SESSIONS: 50 run, the others wait; each end starts exactly one."""
    _, native = started(options)
    ids = [enqueue(native, API, "python") for _ in range(60)]
    running = native.pop_many(QUEUE, "COUNT", 100)
    require_equal([job["id"] for job in running], ids[:50], "running")
    stats = native.stats(QUEUE)
    require_equal((stats["pending"], stats["active"], stats["max_active"]), (10, 50, 50), "stats")
    require_equal(float(stats["utilization"]), 1.0, "utilization")
    for number in range(3):
        native.ack(QUEUE, running[number])
    require_equal(len(native.pop_many(QUEUE, "COUNT", 100)), 3, "started after three ends")


def test_a_full_queue_says_so(options):
    """MAX_QUEUE_SIZE: the 201st waiting request is refused with QFULL and when to come again."""
    _, native = started(options)
    for _ in range(200):
        enqueue(native, API, "python")
    hints = expect_error("QFULL", enqueue, native, INTERACTIVE, "python")
    require_equal((hints["pending"], hints["max"]), ("200", "200"), "hints")
    require(int(hints["retry_after_ms"]) >= 0, "retry_after_ms")
    rejected = native.stats(QUEUE)["rejected"]
    require_equal(dict(zip(rejected[::2], rejected[1::2]))[b"queue_full"], 1, "rejected")


def test_a_request_expires_in_the_queue(options):
    """QUEUE_TIMEOUT: who waits too long hears GONE state=expired at that moment."""
    server, native = started(options, max_active=1)
    first = Request(server, API)
    first.start()
    first.join()
    native.config(QUEUE, "SET", "ttl_ms", 300)

    def wait_in_vain():
        began = time.monotonic()
        late = Request(server, API)
        late.start()
        late.join()
        took_s = time.monotonic() - began
        require(late.error is not None, f"got {late.job}")
        require_equal((late.error.code, late.error.hints["state"]), ("GONE", "expired"), "answer")
        return took_s
    took_s = measured(wait_in_vain, lambda seconds: seconds < 1.0)
    require(0.29 <= min(took_s) < 1.0, f"after {took_s} s")
    first.finish()
    require_equal(native.stats(QUEUE)["expired"], len(took_s), "expired")


def test_statistics_by_language(options):
    """getStats and getDetailedStats: queued, active, completed, failed, times, by language."""
    _, native = started(options, max_active=3, retain_failed="10")
    for language, count in (("python", 7), ("javascript", 3), ("java", 2)):
        for _ in range(count):
            enqueue(native, API, language)
    running = native.pop_many(QUEUE, "COUNT", 3)
    time.sleep(0.03)
    native.ack(QUEUE, running[0])
    native.nack(QUEUE, running[1], "FATAL", "ERROR", "boom")
    stats = native.stats(QUEUE)
    require_equal((stats["pending"], stats["active"], stats["completed"], stats["failed"]),
                  (9, 1, 1, 1), "stats")
    run_ms = dict(zip(stats["run_ms"][::2], stats["run_ms"][1::2]))
    require(float(run_ms[b"mean"]) >= 25 and float(run_ms[b"max"]) < 5000, f"times {run_ms}")
    by_language = native.stats_by(QUEUE, "BY", "TAG", "lang")
    require_equal({name: line["added"] for name, line in by_language.items()},
                  {"python": 7, "javascript": 3, "java": 2}, "added by language")
    require_equal({name: line["pending"] for name, line in by_language.items()},
                  {"python": 4, "javascript": 3, "java": 2}, "queued by language")
    require_equal((by_language["python"]["started"], by_language["python"]["completed"],
                   by_language["python"]["failed"]), (3, 1, 1), "line of python")


def test_a_lost_client_frees_its_slot(options):
    """TIED: the slot of a client whose connection broke is free after the grace time."""
    server, native = started(options, max_active=1, disconnect_grace_ms=200)
    first = Request(server, API)
    first.start()
    first.join()
    require(first.job is not None, "it runs")
    second = Request(server, API)
    second.start()
    wait_until(lambda: native.stats(QUEUE)["waiting_pops"] == 1, what="the waiting request")
    began = time.monotonic()
    native.cancel(QUEUE, "nobody")
    first.native.close()
    # It goes back to its place, which is the first, but nobody waits for it any more.
    second.join()
    took_s = time.monotonic() - began
    require(second.job is not None, f"{second.error}")
    require(0.15 <= took_s < 2.0, f"after {took_s:.3f} s")
    second.finish()


def test_concurrency_adapts_to_the_load(options):
    """adaptive 20:100:500:5000: long runs lower the cap, short ones raise it, within its bounds."""
    _, native = started(options, max_waiting=0, adaptive="20:100:2:20:30")
    def run_hundred(run_s):
        for _ in range(100):
            enqueue(native, API, "python")
        done = 0
        while done < 100:
            jobs = native.pop_many(QUEUE, "COUNT", 100)
            time.sleep(run_s)
            for job in jobs:
                native.ack(QUEUE, job)
                done += 1
        return native.stats(QUEUE)["max_active"]

    require_equal(native.stats(QUEUE)["max_active"], 50, "at the beginning")
    require_equal(run_hundred(0.06), 20, "after slow runs: 50 - 30")
    require_equal(run_hundred(0.06), 20, "never below the least")
    # One at a time and at once: the mean of the last hundred falls below 2 ms, unless the machine
    # pauses meanwhile.
    def run_hundred_at_once():
        for _ in range(100):
            enqueue(native, API, "python")
            native.ack(QUEUE, native.pop(QUEUE))
        return native.stats(QUEUE)["max_active"]

    wait_until(lambda: run_hundred_at_once() > 20, what="a higher cap")
    require_equal(native.stats(QUEUE)["max_active"], 50, "after fast runs: 20 + 30")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
