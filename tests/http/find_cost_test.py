#!/usr/bin/python3
"""What finding costs in a thousand queues and among many more jobs and groups than are looked at.

    tests/http/find_cost_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import sys

from harness import require, require_equal, run
from harness.holds import LONGEST_HOLD_MS, IoThreads, Probe, best_of, fill
from harness.http_client import Client, serve

QUEUES = 1000
JOBS = 150_000
FAILED = 10_000
EXECUTIONS = 60_000
PAPERS = 1100  # more than 1,000, of 62 kB
MOST_MS = 100
MOST_HELD_MS = 2
ROUNDS = 3
REQUESTS = ["find?q=user29", "find?q=queue9", "find?q=1234", "find?q=lang%3Dc",
            "queues/large/failures", "queues/failed/failures",
            "queues/failed/jobs?state=failed&error=none", "queues/large/jobs?id_part=none",
            "queues/large/jobs?group_glob=*none", "queues/large/jobs?payload_part=none",
            "queues/papers/jobs?payload_part=none"]


def fill_all(connection):
    connection.pipeline([("Q.ADD", f"queue{number}", "1234", "x", "TAG", "lang", "c")
                         for number in range(QUEUES)])
    fill(connection.call, "large", "redis.call('Q.ADD', KEYS[1], i, 'x', 'GROUP', 'user' .. i)",
         JOBS)
    fill(connection.call, "papers", "redis.call('Q.ADD', KEYS[1], i, "
         "('{\"to\": \"Ada Lovelace\"}'):rep(2600))", PAPERS)
    connection.call("Q.CONFIG", "failed", "SET", "retain_failed", "100000")
    fill(connection.call, "failed", "redis.call('Q.ADD', KEYS[1], i, 'x') "
         "local job = redis.call('Q.POP', 1, KEYS[1], 'BRIEF')[1] "
         "redis.call('Q.NACK', KEYS[1], i, job[3], 'FATAL', 'ERROR', "
         "string.char(97 + i % 26, 103 + math.floor(i / 26) % 20) .. "
         "('Timeout after ' .. i .. ' ms; '):rep(40))", FAILED)


def test_requests_that_look_at_much(options):
    """Each takes little of the thread that serves it, and holds nobody up."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        fill_all(connection)
        threads = IoThreads(server.process.pid)
        for request in REQUESTS:

            def ask(path="/api/v1/" + request):
                return client.expect(200, "GET", path)

            def held():
                with Probe(server) as probe:
                    probe.begin()
                    for _ in range(ROUNDS):
                        ask()
                    return probe.end()

            def used():
                before = sum(threads.ran_ms())
                ask()
                return sum(threads.ran_ms()) - before

            used_ms = min(used() for _ in range(ROUNDS))
            hold = best_of(held, MOST_HELD_MS)
            told = f"{request}: {used_ms:.1f} ms of CPU, holds others for {hold.ran_ms:.1f} ms"
            print("      " + told, flush=True)
            require(used_ms <= MOST_MS, told)
            require(hold.ran_ms < LONGEST_HOLD_MS, told)
        require_equal(len(client.get("/api/v1/queues/failed/failures").json["groups"]), 100)


def test_a_page_far_behind(options):
    """GET …/executions/ that skips very many holds nobody up: they are put in order in pieces."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        fill(connection.call, "exec", "redis.call('Q.ADD', KEYS[1], "
             "('an execution with a long id %07d'):format(i), '{}')", EXECUTIONS)

        def page(skip):
            return client.expect(200, "GET",
                                 f"/api/v1/admin/executions/?limit=200&skip={skip}").json

        def held():
            with Probe(server) as probe:
                probe.begin()
                page(EXECUTIONS // 2)
                return probe.end()

        hold = best_of(held)
        require(hold.ran_ms < LONGEST_HOLD_MS, f"holds others for {hold.ran_ms:.1f} ms")
        pages = [page(EXECUTIONS // 2 + offset) for offset in (0, 100)]
        first, second = ([each["execution_id"] for each in page["executions"]] for page in pages)
        require_equal((len(first), first[100:]), (200, second[:100]))
        require_equal([(page["total"], page["has_more"]) for page in pages],
                      [(EXECUTIONS, True)] * 2)
        last = page(EXECUTIONS - 3)
        require_equal((len(last["executions"]), last["has_more"]), (3, False))
        require_equal(page(EXECUTIONS)["executions"], [])


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
