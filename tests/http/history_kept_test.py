#!/usr/bin/python3
"""How the server keeps the history of queues: switched off, over restarts, its file, steps of the
wall clock, its cost.

    tests/http/history_kept_test.py [--server build/release/bin/sluice-server] [--only part]
"""

import contextlib
import os
import sys
import time

from harness import alone, require, require_equal, run, scratch, wait_until
from harness.history import (SAMPLED_S, STEP_MS, first_sample, history, known, next_sample, sums,
                             work)
from harness.holds import Probe, best_of
from harness.http_client import Client, serve
from harness.wall_clock import WallClock

WANTED_MS = 2  # the longest hold of others
MOST_MS = 2 * WANTED_MS  # a machine may be slow, or do something else
ON_DISK = {"appendonly": "yes", "save": ""}


def test_off(options):
    """With history-memory 0 nothing is kept; it can be changed while the server runs."""
    server = serve(options, {"history-memory": "0"})
    with server.connect() as connection, Client(server) as client:
        connection.call("Q.ADD", "q", "j", "x")
        require_equal(connection.call("CONFIG", "GET", "history-memory").value[1], b"0")
        next_sample(client)
        require_equal(known(history(client)["series"]["waiting"]), [])
        connection.call("CONFIG", "SET", "history-memory", "1mb")
        first_sample(client)
        connection.call("CONFIG", "SET", "history-memory", "0")
        wait_until(lambda: not known(history(client)["series"]["waiting"]), SAMPLED_S, "the end")


# --- The file ---


@contextlib.contextmanager
def on_disk(options, directory, environment=None):
    server = serve(options, ON_DISK, directory=directory, environment=environment)
    try:
        with server.connect() as connection, Client(server) as client:
            yield server, connection, client
    finally:
        server.kill()


def test_reading_it_delays_nothing(options):
    """A server is ready, and its page is there, while its history is still being read."""
    with scratch() as directory:
        with on_disk(options, directory) as (server, connection, client):
            connection.call("Q.ADD", "q", "j", "x")
            first_sample(client)
            server.stop()
        file = os.path.join(directory, "history")
        os.remove(file)
        os.mkfifo(file)  # to open it is to wait for a writer
        with on_disk(options, directory) as (_, connection, client):
            require(not connection.call("Q.ADD", "q", "j2", "x").is_error, "Q.ADD")
            require_equal(client.get("/").status, 200)
            with open(file, "wb"):
                pass
            first_sample(client)


def test_a_restart_keeps_it(options):
    """It is there after a restart and after SIGKILL; the time between is a gap. A damaged file is
    dropped with one line in the log."""
    with scratch() as directory:
        with on_disk(options, directory) as (server, connection, client):
            connection.call("Q.CONFIG", "q", "SET", "max_active", "5")
            first_sample(client)
            work(connection)
            next_sample(client)
            next_sample(client)
            require_equal(sums(client), [4, 3, 1])
            before = history(client)
            server.stop()
        file = os.path.join(directory, "history")
        with on_disk(options, directory) as (server, connection, client):
            wait_until(lambda: sums(client) == [4, 3, 1], SAMPLED_S, "the history")
            wait_until(lambda: history(client)["series"]["waiting"][-1] == 1, SAMPLED_S, "a sample")
            after = history(client)
            shift = (after["start_ms"] - before["start_ms"]) // STEP_MS
            for name, values in before["series"].items():
                require_equal(after["series"][name][:720 - shift], values[shift:], name)
            server.kill()
        with on_disk(options, directory) as (server, connection, client):
            wait_until(lambda: sums(client) == [4, 3, 1], SAMPLED_S, "the history")
            server.kill()
        with open(file, "r+b") as opened:
            opened.seek(200)
            opened.write(b"damage")
        with on_disk(options, directory) as (server, connection, client):
            first_sample(client)
            require_equal(sums(client), [0, 0, 0])
            lines = [line for line in server.log_tail(1000).split("\n") if "starts again" in line]
            require_equal(len(lines), 1, lines)
            require(file in lines[0], lines)


def test_it_is_saved_each_minute(options):
    """The file is written when a minute has ended, while the server runs."""
    with scratch() as directory, scratch() as folder:
        clock = WallClock(folder)
        with on_disk(options, directory, clock.environment()) as (server, connection, client):
            connection.call("Q.ADD", "q", "j", "x")
            first_sample(client)
            connection.call("Q.ADD", "q", "k", "x")
            next_sample(client)
            file = os.path.join(directory, "history")

            def written():
                return os.stat(file).st_mtime_ns if os.path.exists(file) else 0

            before = written()
            connection.call("Q.ADD", "q", "l", "x")
            # To shortly before the end of a minute.
            now_ms = clock.now_ms()
            clock.set_ms(now_ms - now_ms % 60_000 + 58_000)
            wait_until(lambda: written() != before, SAMPLED_S, "the file")
            server.kill()
        with on_disk(options, directory, clock.environment()) as (server, connection, client):
            wait_until(lambda: sums(client)[0] >= 1, SAMPLED_S, "the history")


def test_a_step_of_the_wall_clock(options):
    """After a step back the series ends at the new time; samples go on."""
    with scratch() as folder:
        clock = WallClock(folder)
        server = serve(options, environment=clock.environment())
        with server.connect() as connection, Client(server) as client:
            connection.call("Q.ADD", "q", "j", "x")
            first_sample(client)
            for step_ms in (-3_600_000, 86_400_000, -86_400_000 * 365):
                clock.step_ms(step_ms)
                connection.call("Q.ADD", "q", "*", "x")
                wait_until(lambda: abs(history(client)["end_ms"] - clock.now_ms()) < 3 * STEP_MS
                           and history(client)["series"]["waiting"][-1] is not None, SAMPLED_S,
                           "a sample")
                require_equal(known(history(client)["series"]["added"])[-1], 1)


# --- Its cost ---


@alone
def test_many_queues(options):
    """A sample of 10,000 queues, all of which have changed, holds nobody; nor does the overview."""
    count = 10_000
    server = serve(options)
    with server.connect() as connection, Client(server) as client, Probe(server) as probe:
        names = [f"q{number}" for number in range(count)]

        def change():
            connection.pipeline([("Q.ADD", name, "*", "x") for name in names])

        change()
        first_sample(client, "q0")

        def measure():
            change()
            # Until shortly before a sample, which is at a multiple of its step by the wall clock.
            time.sleep((-1000 * time.time() - 300) % STEP_MS / 1000)
            probe.begin()
            next_sample(client, "q0")
            hold = probe.end()
            require(sum(known(history(client, "q9999")["series"]["added"])) > 0, "it was sampled")
            return hold

        hold = best_of(measure, WANTED_MS, tries=5)
        require(hold.ran_ms < MOST_MS, f"a sample holds others for {hold.ran_ms:.1f} ms")

        def look():
            probe.begin()
            page = client.expect(200, "GET", "/api/v1/history?count=1000").json
            require_equal(len(page["queues"]), 1000)
            return probe.end()

        hold = best_of(look, WANTED_MS, tries=5)
        require(hold.ran_ms < MOST_MS, f"the overview holds others for {hold.ran_ms:.1f} ms")


if __name__ == "__main__":
    # Samples take their time, and are taken by one thread whatever their number.
    sys.exit(run(sys.modules[__name__], at_once=4))
