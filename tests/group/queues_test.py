#!/usr/bin/python3
"""Native queues over a takeover: leases, tokens, lost replies, events, delays and retries."""

import contextlib
import sys
import time

import harness
from harness import require, require_equal, wait_until
from harness.crash.client import Link
from harness.crash.queue_story import pairs
from harness.group import kept_group

QUEUE = "work"


class Queue:
    """The queue at one node."""

    def __init__(self, node):
        self.link = Link(node.port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.link.close()

    def ask(self, command, *words):
        [reply] = self.link.ask([command, QUEUE, *words])
        return reply

    def add(self, job_id, *options):
        require_equal(pairs(self.ask("Q.ADD", job_id, b"payload", *options))["result"], b"added",
                      job_id)

    def pop(self, *options):
        """{id: lease} of what it gives."""
        [jobs] = self.link.ask(["Q.POP", 1, QUEUE, *options])
        return {job["id"].decode(): job["lease"] for job in map(pairs, jobs or [])}

    def state(self, job_id):
        return pairs(self.ask("Q.GET", job_id))["state"].decode()

    def extends(self, job_id, lease):
        return isinstance(self.ask("Q.TOUCH", job_id, lease), list)

    def events(self):
        events = self.ask("Q.EVENTS", "-", "COUNT", 1000)
        # A queue continues behind the numbers of those before it.
        numbers = [event[0] for event in events]
        require_equal(numbers, list(range(numbers[0], numbers[0] + len(numbers))),
                      "numbers of events")
        return events


@contextlib.contextmanager
def taken_over(group):
    """The queue at the next primary, after a SIGKILL of this one."""
    epoch, old = group.leadership()
    old.crash()
    with Queue(group.wait_for_primary(after_epoch=epoch)) as queue:
        yield queue


def test_leases(options):
    """a lost pop gives the same jobs at the new primary, tokens grow, old leases hold"""
    with kept_group(options.program) as group:
        with Queue(group.primary()) as queue:
            for number in range(1, 7):
                queue.add(f"j{number}")
            held = queue.pop("WORKER", "w", "REQID", "r1", "COUNT", 2, "LEASE", 600000)
            lost = queue.pop("WORKER", "v", "REQID", "r1", "COUNT", 2, "LEASE", 600000)
            told = queue.events()
        with taken_over(group) as queue:
            require_equal(queue.events()[:len(told)], told, "what was told")
            again = queue.pop("WORKER", "v", "REQID", "r1", "COUNT", 2, "LEASE", 600000)
            require_equal(again, lost, "the pop again")
            more = queue.pop("WORKER", "v", "REQID", "r2", "COUNT", 10, "LEASE", 600000)
            require_equal(sorted(more), ["j5", "j6"], "the other jobs")
            require(min(more.values()) > max([*held.values(), *lost.values()]), "greater tokens")
            for job_id, lease in held.items():
                require_equal(queue.ask("Q.ACK", job_id, lease), "OK", job_id)
            told = queue.events()
        with taken_over(group) as queue:
            require_equal(queue.events()[:len(told)], told, "what was told")
            require_equal([queue.state(job_id) for job_id in held], ["completed"] * 2, "states")
            require_equal([queue.state(job_id) for job_id in more], ["active"] * 2, "states")
        group.wait_in_sync()


def test_lease_ends(options):
    """a lease has its whole term after a takeover, then another worker gets the job"""
    term_ms = 3000
    with kept_group(options.program) as group:
        with Queue(group.primary()) as queue:
            queue.add("j1")
            first = queue.pop("WORKER", "w", "LEASE", term_ms)
        time.sleep(1.0)  # With the takeover, two thirds of the term are over.
        with taken_over(group) as queue:
            began_s = time.monotonic()
            require_equal(queue.state("j1"), "active", "at once")
            second = wait_until(lambda: queue.pop("WORKER", "v", "LEASE", 600000), what="the job")
            took_s = time.monotonic() - began_s
            require(second["j1"] > first["j1"], f"{first}, {second}")
            require(took_s > term_ms * 2 / 3000, f"after {took_s:.2f} s")
            require_equal(queue.ask("Q.ACK", "j1", first["j1"]).text.split()[0], "STALELEASE",
                          "the old lease")


def test_lease_without_etcd(options):
    """a lease does not run while nobody can extend it because etcd is away"""
    term_ms = 6000
    with kept_group(options.program, directives={"failover-timeout": 3000,
                                                 "journal-patience": 100}) as group:
        primary = group.primary()
        with Queue(primary) as queue:
            queue.add("j1")
            held = queue.pop("WORKER", "w", "LEASE", term_ms)
            for member in (0, 1):
                group.etcd.kill(member)
            began_s = time.monotonic()
            # Before that it would wait for etcd.
            wait_until(lambda: primary.told()["sluice_group_lease_ms"] == "0", what="the gate")
            time.sleep(max(0.0, began_s + 1.3 * term_ms / 1000 - time.monotonic()))
            require(not queue.extends("j1", held["j1"]), "an extension without etcd")
            for member in (0, 1):
                group.etcd.start(member)
            wait_until(lambda: queue.extends("j1", held["j1"]), what="an extension")
            require_equal(queue.ask("Q.ACK", "j1", held["j1"]), "OK", "the end")
            require("reclaimed" not in str(queue.events()), queue.events())
        require_equal(group.primary(), primary, "who leads")


def test_timers(options):
    """delays, retries and time limits of waiting end at the new primary"""
    with kept_group(options.program) as group:
        with Queue(group.primary()) as queue:
            queue.add("retried", "RETRY", 2)
            lease = queue.pop("WORKER", "w")["retried"]
            queue.ask("Q.NACK", "retried", lease, "DELAY", 1500, "ERROR", "again")
            queue.add("delayed", "DELAY", 1500)
            queue.add("expired", "TTL", 1500)
            queue.add("later", "DELAY", 600000)
            standby = group.standby()
            wait_until(lambda: -1 < group.primary().lsn() <= standby.lsn(), what="the standby")
        with taken_over(group) as queue:
            for job_id, state in (("retried", "pending"), ("delayed", "pending"),
                                  ("expired", "expired")):
                wait_until(lambda job_id=job_id, state=state: queue.state(job_id) == state,
                           what=f"{job_id} {state}")
            require_equal(queue.state("later"), "delayed", "later")
            kinds = [event[2] for event in queue.events()]
            require_equal(kinds.count(b"ready"), 2, f"in {kinds}")
        group.wait_in_sync()


def test_watched(options):
    """Q.EVENTS that waits at the standby tells each event of the primary"""
    with kept_group(options.program) as group:
        with Queue(group.primary()) as queue, Queue(group.standby()) as watcher:
            queue.add("j0")
            wait_until(lambda: len(watcher.events() if watcher.ask("Q.EVENTS", "-") else []) == 1,
                       what="the first event")
            last = watcher.events()[0][0]
            for number in range(1, 6):
                watcher.link.send("Q.EVENTS", QUEUE, last, "BLOCK", 5000)
                queue.add(f"j{number}")
                events = watcher.link.read()
                require_equal([event[3] for event in events], [b"j%d" % number], "events")
                last = events[-1][0]


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
