#!/usr/bin/python3
"""What a start does besides reading: the hash seed it keeps, the memory it takes ahead."""

import os
import sys

import harness
from harness import require, require_equal, rss_bytes, scratch, slack

DURABLE = {"appendonly": "yes", "appendfsync": "everysec", "save": ""}
MEGABYTE = 1 << 20
JOBS = 400_000
FILL = """
for i = 1, tonumber(ARGV[1]) do
  redis.call('Q.ADD', KEYS[1], 'job-' .. i, string.rep('x', 300), 'PRI', i % 5)
end
return redis.status_reply('OK')
"""


def fill(server, jobs):
    with server.connect(60) as connection:
        require_equal(connection.call("EVAL", FILL, 1, "exec", jobs).raw, b"+OK\r\n")


def shown(server):
    """How many jobs there are, which go first, and the place of one in the middle."""
    with server.connect(60) as connection:
        _, pending, *_ = connection.call("Q.STATS", "exec").value
        _, front = connection.call("Q.LIST", "exec", "BY", "RANK", "COUNT", 100).value
        middle = connection.call("Q.GET", "exec", f"job-{JOBS // 2}").value
        return pending, [job[1] for job in front], middle


def seed_of(directory):
    with open(os.path.join(directory, "hash-seed"), encoding="ascii") as file:
        return file.read()


def test_a_start_keeps_the_seed(options):
    """Each start takes the seed of the directory; without one, or with half of one, a new one."""
    with scratch() as directory:
        def start():
            with options.server(DURABLE, directory=directory) as server:
                with server.connect() as connection:
                    connection.call("INCR", "starts")
                    starts = connection.call("GET", "starts").value
                return starts, seed_of(directory)

        starts, first = start()
        require_equal(starts, b"1")
        require_equal(start(), (b"2", first))
        os.unlink(os.path.join(directory, "hash-seed"))
        starts, second = start()
        require_equal(starts, b"3")
        require(second != first, "a seed of its own")
        with open(os.path.join(directory, "hash-seed"), "w", encoding="ascii") as file:
            file.write(second[:-2])
        starts, third = start()
        require_equal(starts, b"4")
        require_equal(third.strip().isdigit(), True, "a whole seed again")
        require_equal(start(), (b"5", third))


def test_memory_taken_ahead_is_given_back(options):
    """A start with more than it takes to begin: the same data, and as much memory as before."""
    with scratch() as directory:
        with options.server(DURABLE, directory=directory) as server:
            fill(server, JOBS)
            before = shown(server)
            before_bytes = rss_bytes(server.pid)
            require(before_bytes > 128 * MEGABYTE, "more than a start leaves to itself")
        with options.server(DURABLE, directory=directory) as server:
            require_equal(shown(server), before)
            threads = f"/proc/{server.pid}/task"
            names = [open(f"{threads}/{thread}/comm", encoding="ascii").read().strip()
                     for thread in os.listdir(threads)]
            require("sluice-memory" not in names, f"its thread has ended: {names}")
            with server.connect() as connection:
                wide = slack(connection)
            after_bytes = rss_bytes(server.pid)
            require(after_bytes < wide * (1.1 * before_bytes + 32 * MEGABYTE),
                    f"{after_bytes >> 20} MB resident, {before_bytes >> 20} MB before")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
