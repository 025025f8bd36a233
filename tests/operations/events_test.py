#!/usr/bin/python3
"""The event log of a queue on the disk: what is in memory, what a restart brings back, and that
the file goes with the queue."""

import hashlib
import os
import sys

import harness
from harness import info, open_paths, require, require_equal, scratch, wait_until
from harness.surroundings import NEVER_ENOUGH

DURABLE = {"appendonly": "yes", "appendfsync": "everysec", "save": ""}
KEPT = 100_000
MEGABYTE = 1 << 20
JOBS = 5000
ADD = "redis.call('Q.ADD', KEYS[1], 'job-' .. i, 'x')"
FINISH = """
local job = redis.call('Q.POP', 1, KEYS[1], 'WORKER', 'w')[1]
redis.call('Q.ACK', KEYS[1], job[4], job[6])
"""


def repeat(connection, steps, count):
    script = f"for i = 1, tonumber(ARGV[1]) do {steps} end return redis.status_reply('OK')"
    require_equal(connection.call("EVAL", script, 1, "exec", count).raw, b"+OK\r\n")


def run_jobs(connection, count):
    """Three events each."""
    repeat(connection, ADD + FINISH, count)


def read_all(connection, queue="exec"):
    """A digest of all events that are kept; they have no gaps."""
    digest = hashlib.sha256()
    after, count = "-", 0
    while True:
        reply = connection.call("Q.EVENTS", queue, after, "COUNT", 1000)
        if not reply.value:
            return digest.hexdigest(), count
        seqs = [event[0] for event in reply.value]
        if after != "-":
            require_equal(seqs[0], after + 1, "the number behind the last one")
        require_equal(seqs, list(range(seqs[0], seqs[0] + len(seqs))), "numbers without gaps")
        digest.update(reply.raw)
        after = seqs[-1]
        count += len(seqs)


def file_bytes(connection):
    return int(info(connection, "persistence")["sluice_event_file_bytes"])


def test_older_events_are_on_the_disk(options):
    """A full log: a short tail in memory, the rest in a file without a name; a restart changes
    nothing, and with the queue the file is empty."""
    with scratch() as directory:
        with options.server(DURABLE, directory=directory) as server, server.connect(60) as first:
            run_jobs(first, 40_000)
            wait_until(lambda: file_bytes(first) > 2 * MEGABYTE, what="a file of some megabytes")
            before = read_all(first)
            require_equal(before[1], KEPT, "events kept")
            first.call("Q.PURGE", "exec", "WHERE", "ALL", "LIMIT", 1000)
            names = [name for name in os.listdir(directory) if "event" in name]
            require_equal(names, [], "files of events with a name")
            before = read_all(first)
            first.call("BGSAVE")
            run_jobs(first, 2000)
            before = read_all(first)
        with options.server(DURABLE, directory=directory) as server, server.connect(60) as again:
            require_equal(read_all(again), before, "the events after a restart")
            wait_until(lambda: file_bytes(again) > 2 * MEGABYTE, what="the file of the new start")
            used = again.call("MEMORY", "USAGE", "exec", "SAMPLES", 0).value
            jobs = int(again.call("Q.STATS", "exec").value[1])
            require_equal(jobs, 0, "pending jobs")
            require(used < 2 * MEGABYTE, f"the queue takes {used} bytes of memory")
            again.call("DEL", "exec")
            wait_until(lambda: file_bytes(again) == 0, what="an empty file")


def test_events_leave_min_free_disk(options):
    """With less than min-free-disk no event goes to the disk; none is lost."""
    with options.server(DURABLE) as server, server.connect(60) as connection:
        repeat(connection, ADD, JOBS)
        connection.call("CONFIG", "SET", "min-free-disk", NEVER_ENOUGH)
        repeat(connection, FINISH, JOBS)
        wait_until(lambda: "is nearly full: older events of queues stay in memory" in
                   server.log_tail(), what="the log's line")
        require_equal(read_all(connection)[1], 3 * JOBS, "events kept")


def test_without_persistence_all_is_in_memory(options):
    """No data directory is written: nothing is opened there."""
    with scratch() as directory:
        with options.server(directory=directory) as server, server.connect(60) as connection:
            run_jobs(connection, 5000)
            require_equal(read_all(connection)[1], 15_000, "events kept")
            paths = open_paths(server.pid)
            require(not any("deleted" in path for path in paths), f"open: {paths}")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
