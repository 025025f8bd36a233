#!/usr/bin/python3
"""Quiet workers over connections: what they are told, and when; and what a restart keeps."""

import sys
import time

import harness
from harness import info, require, require_equal, wait_until
from harness.native_queue import DISK


def connect(server, protocol=3):
    connection = server.connect()
    connection.call("HELLO", protocol)
    return connection


def test_told_while_waiting_and_while_running(options):
    """The push comes at once to those that wait or hold a lease; a touch says the same."""
    with options.server() as server:
        with connect(server) as waits, connect(server) as runs, connect(server) as other:
            other.call("Q.ADD", "q", "a", "x")
            require_equal(runs.call("Q.POP", 1, "q", "WORKER", "host:1", "BRIEF").value[0][1], b"a")
            waits.send("Q.POP", 1, "q", "WORKER", "host:2", "BLOCK", 0, "BRIEF")
            wait_until(lambda: info(other)["blocked_clients"] == "1", what="the waiting")
            start = time.monotonic()
            other.call("Q.CONFIG", "q", "WORKER", "host:*", "SET", "quiet", "on")
            for connection, worker in ((waits, b"host:2"), (runs, b"host:1")):
                push = connection.read_reply()
                require(push.is_push, f"{push} is no push")
                require_equal(push.value, [b"q.quiet", b"q", worker])
            require(time.monotonic() - start < 1.5, "the pushes came late")
            other.call("Q.ADD", "q", "b", "x")
            require_equal(runs.call("Q.POP", 1, "q", "WORKER", "host:1").value, None)
            touched = runs.call("Q.TOUCH", "q", "a", 1, "AND", "x", 1, "WORKER", "host:1").value
            require_equal(touched[0], True)
            require_equal(other.call("Q.STATS", "q").value[b"pending"], 1)
            other.call("Q.CONFIG", "q", "WORKER", "host:*", "RESET")
            require_equal(waits.read_reply().value[0][1], b"b")


def test_a_kill_keeps_the_rule(options):
    """An acknowledged rule is there after SIGKILL; the lines of idle workers are not."""
    server = options.server(DISK)
    server.start()
    try:
        with connect(server, 2) as client:
            client.call("Q.ADD", "q", "a", "x")
            client.call("Q.POP", 1, "q", "WORKER", "other", "ID", "none")
            client.call("Q.CONFIG", "q", "WORKER", "host:7", "SET", "quiet", "on")
        server.kill()
        server.start()
        with connect(server, 2) as client:
            require_equal(client.call("Q.POP", 1, "q", "WORKER", "host:7").value, None)
            require_equal(client.call("Q.CONFIG", "q", "WORKER", "host:7", "GET").value,
                          [b"quiet", b"on"])
            lines = client.call("Q.STATS", "q", "BY", "WORKER").value
            require_equal(lines[::2], [b"host:7"])
            require_equal(client.call("Q.POP", 1, "q", "WORKER", "w", "BRIEF").value[0][1], b"a")
            require_equal(client.call("Q.NACK", "q", "WHERE", "WORKER", "w").value, [b"0", 1])
    finally:
        server.stop()


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
