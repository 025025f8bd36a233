#!/usr/bin/python3
"""The history of queues that the server keeps: what it says, who may read it, its file, its cost.

    tests/http/history_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import contextlib
import os
import sys
import time

from harness import require, require_equal, run, scratch, wait_until
from harness.holds import Probe, best_of
from harness.http_client import OPERATE_TOKEN, Client, quoted, require_problem, serve
from harness.wall_clock import WallClock

STEP_MS = 5000
SAMPLED_S = 30
MOST_MS = 2
CAROLS_TOKEN = "carols-token-0123456789"
ON_DISK = {"appendonly": "yes", "save": ""}


def history(client, queue="q", parameters=""):
    path = f"/api/v1/queues/{quoted(queue)}/history{parameters}"
    return client.expect(200, "GET", path).json


def known(series):
    """A column without its gaps."""
    return [value for value in series if value is not None]


def next_sample(client, queue="q"):
    """Waits until the server has looked at the queue once more."""
    end_ms = history(client, queue)["end_ms"]
    wait_until(lambda: history(client, queue)["end_ms"] > end_ms, SAMPLED_S, "a sample")


def first_sample(client, queue="q"):
    wait_until(lambda: known(history(client, queue)["series"]["waiting"]), SAMPLED_S, "a sample")


def work(connection, count=4, wait_s=0.0):
    for number in range(count):
        connection.call("Q.ADD", "q", f"j{number}", "x", "RETRY", "0")
    time.sleep(wait_s)
    for number in range(count - 1):
        lease = connection.call("Q.POP", "1", "q").value[0]
        lease = dict(zip(lease[::2], lease[1::2]))[b"lease"]
        words = ("Q.NACK", "q", f"j{number}", lease, "FATAL") if number == 0 else \
            ("Q.ACK", "q", f"j{number}", lease)
        require(not connection.call(*words).is_error, words)


def test_what_happened_is_in_the_series(options):
    """Sums, levels and waits of the jobs; all arrays as long; the same in the overview."""
    server = serve(options)
    with server.connect() as connection, Client(server) as client:
        connection.call("Q.CONFIG", "q", "SET", "max_active", "5")
        connection.call("Q.ADD", "late", "j", "x", "PRI", "LOW")
        first_sample(client)
        work(connection, wait_s=0.05)
        next_sample(client)
        next_sample(client)
        told = history(client)
        require_equal((told["queue"], told["range"], told["step_ms"], told["reduced"]),
                      ("q", "hour", STEP_MS, False))
        require_equal(told["end_ms"] - told["start_ms"], 720 * STEP_MS)
        require(abs(time.time() * 1000 - told["end_ms"]) < 4 * STEP_MS, "it ends now")
        series = told["series"]
        require_equal({len(values) for values in series.values()}, {720})
        require_equal([sum(known(series[name])) for name in ("added", "ended", "failed")],
                      [4, 3, 1])
        require_equal([known(series[name])[-1] for name in ("waiting", "active")], [1, 0])
        for name in "wait_p50_ms", "wait_p95_ms":
            waits = known(series[name])
            require(waits and min(waits) >= 40 and max(waits) < 60_000, f"{name}: {waits}")
        require_equal(list(told["bands"]), ["NORMAL"])
        band = told["bands"]["NORMAL"]
        require_equal({len(values) for values in band.values()}, {720})
        require_equal(known(band["waiting"])[-1], 1)
        require_equal(known(band["wait_p95_ms"]), known(series["wait_p95_ms"]))
        all_lines = client.expect(200, "GET", "/api/v1/history?points=60").json
        lines = {line["queue"]: line for line in all_lines["queues"]}
        require_equal((all_lines["step_ms"], all_lines["cursor"], sorted(lines)),
                      (60_000, None, ["late", "q"]))
        require_equal({len(lines["q"][name]) for name in ("waiting", "ended", "failed")}, {60})
        require_equal([sum(known(lines["q"][name])) for name in ("ended", "failed")], [3, 1])
        require_equal(known(lines["q"]["waiting"])[-1], 1)


def test_requests(options):
    """Parameters, cursors, names of any bytes, what is missing, what is no queue."""
    server = serve(options)
    with server.connect() as connection, Client(server) as client:
        for name in b"a", b"b", b"c", b"\xff\x00":
            connection.call("Q.ADD", name, "j", "x")
        connection.call("Q.ADD", "d", "j", "x")
        connection.call("MOVE", "d", "1")
        connection.call("SET", "s", "x")
        page = client.expect(200, "GET", "/api/v1/history?count=3&points=1").json
        require_equal([line["queue"] for line in page["queues"]], ["a", "b", "c"])
        require_equal(page["step_ms"], 3_600_000)
        page = client.expect(200, "GET", f"/api/v1/history?count=3&cursor={page['cursor']}").json
        require_equal([(line["queue"], line["queue_base64"]) for line in page["queues"]],
                      [(None, "/wA=")])
        require_equal(page["cursor"], None)
        page = client.expect(200, "GET", "/api/v1/history?queue=c&queue=none&queue=s&queue=a").json
        require_equal([line["queue"] for line in page["queues"]], ["c", "none", "a"])
        page = client.expect(200, "GET", "/api/v1/history?db=1").json
        require_equal([line["queue"] for line in page["queues"]], ["d"])
        told = history(client, "none", "?range=day")
        require_equal((told["step_ms"], told["end_ms"] - told["start_ms"], "bands" in told),
                      (60_000, 86_400_000, False))
        require_equal({name: set(values) for name, values in told["series"].items()},
                      {name: {None} for name in told["series"]})
        require_problem(client.get("/api/v1/queues/s/history"), 409, "WRONGTYPE")
        for query in ("/api/v1/queues/q/history?range=week", "/api/v1/history?points=7",
                      "/api/v1/history?points=721", "/api/v1/history?count=0",
                      "/api/v1/history?cursor=x", "/api/v1/history?range=hour"):
            require_problem(client.get(query), 422, "BADFIELD")


def test_only_readable_queues(options):
    """A user sees the queues of its key patterns only."""
    server = serve(options, {"user": "carol on nopass +@all ~mine*"})
    with server.connect() as connection, Client(server) as client:
        for name in "mine", "mine2", "other":
            connection.call("Q.ADD", name, "j", "x")
        connection.call("CONFIG", "SET", "http-token",
                        f"operate >{OPERATE_TOKEN} read >{CAROLS_TOKEN} user carol")
        first_sample(client, "other")
        page = client.get("/api/v1/history", token=CAROLS_TOKEN).json
        require_equal([line["queue"] for line in page["queues"]], ["mine", "mine2"])
        page = client.get("/api/v1/history?queue=other", token=CAROLS_TOKEN).json
        require_equal(page["queues"], [])
        answer = client.get("/api/v1/queues/other/history", token=CAROLS_TOKEN)
        require_problem(answer, 403, "NOPERM")


def test_a_history_ends_with_its_queue(options):
    """By DEL, RENAME and FLUSHALL; a later queue of that name has its own."""
    server = serve(options)
    with server.connect() as connection, Client(server) as client:
        for name in "deleted", "renamed", "q":
            connection.call("Q.ADD", name, "j", "x")
        first_sample(client)
        before = sum(known(history(client, "renamed")["series"]["added"]))
        for name in "deleted", "renamed", "q":
            connection.call("Q.ADD", name, "k", "x")
        wait_until(lambda: sum(known(history(client, "renamed")["series"]["added"])) == before + 1,
                   SAMPLED_S, "the second job")
        connection.call("DEL", "deleted")
        connection.call("RENAME", "renamed", "new")
        connection.call("Q.ADD", "deleted", "a", "x")
        next_sample(client)
        next_sample(client)
        require_equal(sum(known(history(client, "deleted")["series"]["added"])), 1)
        require_equal(known(history(client, "renamed")["series"]["added"]), [])
        require_equal(set(known(history(client, "new")["series"]["added"])), {0})
        require_equal(known(history(client, "new")["series"]["waiting"])[-1], 2)
        connection.call("FLUSHALL")
        next_sample(client)
        next_sample(client)
        require_equal(known(history(client)["series"]["waiting"]), [])


def test_an_adopted_queue(options):
    """The jobs of a queue that shows plain keys are counted there."""
    server = serve(options)
    with server.connect() as connection, Client(server) as client:
        connection.call("Q.ADOPT", "q", "PENDING", "waiting", "ACTIVE", "running")
        first_sample(client)
        for number in range(3):
            connection.call("ZADD", "waiting", time.time(), f"e{number}")
        next_sample(client)
        next_sample(client)
        require_equal(known(history(client)["series"]["waiting"])[-1], 3)


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


def sums(client):
    return [sum(known(history(client)["series"][name])) for name in ("added", "ended", "failed")]


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
            probe.begin()
            next_sample(client, "q0")
            hold = probe.end()
            require(sum(known(history(client, "q9999")["series"]["added"])) > 0, "it was sampled")
            return hold

        hold = best_of(measure, MOST_MS, tries=5)
        require(hold.ran_ms < MOST_MS, f"a sample holds others for {hold.ran_ms:.1f} ms")

        def look():
            probe.begin()
            page = client.expect(200, "GET", "/api/v1/history?count=1000").json
            require_equal(len(page["queues"]), 1000)
            return probe.end()

        hold = best_of(look, MOST_MS, tries=5)
        require(hold.ran_ms < MOST_MS, f"the overview holds others for {hold.ran_ms:.1f} ms")


if __name__ == "__main__":
    # Samples take their time, and are taken by one thread whatever their number.
    sys.exit(run(sys.modules[__name__]))
