#!/usr/bin/python3
"""What those who watch over HTTP may cost the others: long answers, long lists, streams of events.

    tests/http/cost_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import json
import select
import sys
import time

from http_client import (Client, READ_TOKEN, Raw, Stream, THREADS, require, require_equal, run,
                         serve)

EXECUTIONS = "/api/v1/admin/executions/"
BURST = 20_000


def add_jobs(connection, queue, names, *options):
    for begin in range(0, len(names), BURST):
        connection.pipeline([("Q.ADD", queue, name, "{}", *options)
                             for name in names[begin:begin + BURST]])


def test_a_command_among_slow_requests(options):
    """Who sends a command while many slow requests are there waits for few of them, not for all."""
    waiting, rounds = 32, 5
    server = serve(options)
    request = (f"GET /api/v1/queues/q/jobs?count=1000 HTTP/1.1\r\nHost: localhost\r\n"
               f"Authorization: Bearer {READ_TOKEN}\r\n\r\n").encode()
    with server.connect() as connection:
        add_jobs(connection, "q", [f"j{number}" for number in range(1000)])
        slow = [Raw(server) for _ in range(waiting)]
        for raw in slow:
            raw.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            require_equal(raw.answer().status, 200)
        before = []
        for _ in range(rounds):
            for raw in slow:
                raw.send(request)
            require_equal(connection.call("PING").raw, b"+PONG\r\n")
            before.append(len(select.select([raw.socket for raw in slow], [], [], 0)[0]))
            for raw in slow:
                require_equal(raw.answer().status, 200)
        # Of one round nothing follows: this process may have slept before its command.
        require(min(before) < waiting / 2, f"{before} of {waiting} requests came before")
        for raw in slow:
            raw.close()


def pages(client, query, limit=200):
    """All executions of a query, and the answers that had them."""
    answers = []
    while not answers or answers[-1]["has_more"]:
        skip = limit * len(answers)
        answers.append(client.get(f"{EXECUTIONS}?limit={limit}&skip={skip}{query}").json)
    return [each for answer in answers for each in answer["executions"]], answers


def test_executions_beyond_all_bounds(options):
    """However many jobs there are, the list begins with the newest and counts all of them."""
    count, newest = 25_000, 60
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        add_jobs(connection, "exec", [f"old{number}" for number in range(count - newest)])
        time.sleep(0.01)
        add_jobs(connection, "exec", [f"new{number}" for number in range(newest)], "PRI", "HIGH",
                 "GROUP", "ann")
        first = client.get(EXECUTIONS).json
        require_equal((first["total"], first["has_more"]), (count, True))
        require_equal(len(first["executions"]), 50)
        require(all(each["execution_id"].startswith("new") for each in first["executions"]),
                "an old one is among the newest")
        last = client.get(f"{EXECUTIONS}?limit=200&skip={count - 10}").json
        require_equal((len(last["executions"]), last["total"], last["has_more"]),
                      (10, count, False))
        beyond = client.get(f"{EXECUTIONS}?skip={count}").json
        require_equal((beyond["executions"], beyond["total"], beyond["has_more"]),
                      ([], count, False))
        for query in "&priority=high", "&user_id=ann", "&status=queued&priority=high":
            found, answers = pages(client, query, limit=25)
            require_equal({answer["total"] for answer in answers}, {newest}, query)
            require_equal({each["execution_id"] for each in found},
                          {f"new{number}" for number in range(newest)}, query)
            times = [each["created_at"] for each in found]
            require_equal(times, sorted(times, reverse=True), query)
        middle = [client.get(f"{EXECUTIONS}?limit=200&skip={skip}").json["executions"]
                  for skip in range(12_000, 13_000, 200)]
        names = [each["execution_id"] for page in middle for each in page]
        require_equal(len(set(names)), 1000, "names of five pages")


def test_executions_of_plain_keys(options):
    """A queue that shows plain Redis keys is listed as well."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        now = time.time()
        connection.call("Q.ADOPT", "exec", "PENDING", "waiting", "ACTIVE", "running",
                        "PAYLOAD", "event:")
        for number in range(5):
            connection.call("SET", f"event:e{number}", json.dumps({"lang": f"l{number}"}))
            connection.call("ZADD", "waiting", now - 10 * number, f"e{number}")
        body = client.get(EXECUTIONS + "?limit=3").json
        require_equal([(each["execution_id"], each["lang"]) for each in body["executions"]],
                      [("e0", "l0"), ("e1", "l1"), ("e2", "l2")])
        require_equal((body["total"], body["has_more"]), (5, True))


def test_streams_of_a_busy_queue(options):
    """Who reads all events of a busy queue is left behind; who wants few of them is not."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        connection.call("Q.CONFIG", "q", "SET", "events", 100)
        everything = Stream(server, "/api/v1/queues/q/events")
        some = Stream(server, "/api/v1/queues/q/events?type=cancelled")
        one = Stream(server, "/api/v1/queues/q/events?id=last")
        add_jobs(connection, "q", [f"j{number}" for number in range(3 * BURST)])
        client.expect(201, "POST", "/api/v1/queues/q/jobs", {"id": "last", "payload": ""})
        connection.call("Q.CANCEL", "q", "j7")
        event = some.next()
        require_equal((event["event"], json.loads(event["data"])["id"]), ("cancelled", "j7"))
        require_equal(one.next()["event"], "added")
        numbers = []
        while (event := everything.next())["event"] == "added":
            numbers.append(int(event["id"]))
        require_equal(event["event"], "problem")
        require_equal(json.loads(event["data"])["code"], "TRIMMED")
        require_equal(numbers, list(range(1, len(numbers) + 1)), "a gap before")
        for stream in everything, some, one:
            stream.close()


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__], THREADS))
