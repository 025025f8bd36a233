#!/usr/bin/python3
"""The history of queues that the server keeps: what it says, and who may read it.

    tests/http/history_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import sys
import time

from harness import require, require_equal, run, wait_until
from harness.history import SAMPLED_S, STEP_MS, first_sample, history, known, next_sample, work
from harness.http_client import OPERATE_TOKEN, Client, require_problem, serve

CAROLS_TOKEN = "carols-token-0123456789"


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
        require_equal([lines[name]["failed_total"] for name in ("q", "late")], [1, 0])
        require_equal(known(lines["q"]["waiting"])[-1], 1)


def test_what_failed_since_can_be_added(options):
    """failed_total counts the failures up to the last interval, so none is missed or told twice."""
    server = serve(options)
    with server.connect() as connection, Client(server) as client:
        def fail(job):
            connection.call("Q.ADD", "q", job, "x")
            lease = connection.call("Q.POP", "1", "q", "ID", job).value[0]
            lease = dict(zip(lease[::2], lease[1::2]))[b"lease"]
            connection.call("Q.NACK", "q", job, lease, "FATAL")

        def line():
            told = client.expect(200, "GET", "/api/v1/history?queue=q&points=720").json
            return told["queues"][0]

        require_equal(line()["failed_total"], None)
        connection.call("Q.CONFIG", "q", "SET", "max_active", "5")
        first_sample(client)
        for number in range(200):
            fail(f"j{number}")
            told = line()
            require_equal(sum(known(told["failed"])), told["failed_total"], f"after {number + 1}")
            require(told["failed_total"] <= number + 1, f"{told['failed_total']} of {number + 1}")
            time.sleep(0.06)
        wait_until(lambda: line()["failed_total"] == 200, SAMPLED_S, "the last failures")
        require_equal(sum(known(line()["failed"])), 200)


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


if __name__ == "__main__":
    # Samples take their time, and are taken by one thread whatever their number.
    sys.exit(run(sys.modules[__name__], at_once=4))
