#!/usr/bin/python3
"""The cost of observers over HTTP for other clients: long responses, long lists, event streams.

    tests/http/cost_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import json
import select
import sys
import time
import urllib.parse

from harness import require, require_equal, run
from harness.holds import Probe, measured, require_short
from harness.http_client import READ_TOKEN, THREADS, Client, Raw, Stream, serve

EXECUTIONS = "/api/v1/admin/executions/"
BURST = 20_000


def add_jobs(connection, queue, names, *options):
    for begin in range(0, len(names), BURST):
        connection.pipeline([("Q.ADD", queue, name, "{}", *options)
                             for name in names[begin:begin + BURST]])


def test_a_command_among_slow_requests(options):
    """A command sent during many slow requests waits for few of them, not for all."""
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
        # One round proves nothing: this process may have slept before its command.
        require(min(before) < waiting / 2, f"{before} of {waiting} requests came before")
        for raw in slow:
            raw.close()


def test_commands_among_a_look_at_many_groups(options):
    """While /groups looks at 60,000 groups, commands about the queue are served in between."""
    groups = 60_000
    server = serve(options)
    with server.connect() as connection, Raw(server) as raw:
        for begin in range(0, groups, BURST):
            connection.pipeline([("Q.ADD", "q", "*", "x", "GROUP", f"g{number}")
                                 for number in range(begin, begin + BURST)])

        def served_beside():
            raw.send(f"GET /api/v1/queues/q/groups HTTP/1.1\r\nHost: localhost\r\n"
                     f"Authorization: Bearer {READ_TOKEN}\r\n\r\n".encode())
            count = 0
            while not select.select([raw.socket], [], [], 0)[0]:
                connection.call("Q.STATS", "q", "GROUP", "g1")
                count += 1
            lines = raw.answer().json["groups"]
            require_equal(len(lines), 1001)
            require_equal(lines[-1]["pending"], groups - 1000)
            return count

        # This process may sleep for most of an answer.
        served = measured(served_beside, lambda count: count >= 10)
        require(served[-1] >= 10, f"{served} commands were served in between")


def test_the_largest_of_many_groups(options):
    """Beyond a thousand groups the largest have lines, largest first, and `*` sums the others."""
    server = serve(options)
    with server.connect() as connection, Client(server) as client:
        connection.call("Q.CONFIG", "q", "GROUP", "big2", "SET", "max_active", "4")
        small = {997: ("NEED", "j0"), 998: ("DELAY", "60000")}
        for i in range(3000):
            connection.call("Q.ADD", "q", f"j{i}", "x", "GROUP", f"g{i}", *small.get(i, ()))
        for i in range(5):
            for j in range(i + 2):
                connection.call("Q.ADD", "q", f"b{i}-{j}", "x", "GROUP", f"big{i}")
        connection.call("Q.ADD", "q", "d", "x", "GROUP", "big2", "DELAY", "60000")
        for name in "b2-0", "j999":
            connection.call("Q.POP", "1", "q", "ID", name)
        groups = client.expect(200, "GET", "/api/v1/queues/q/groups").json["groups"]
        require_equal(len(groups), 1001)
        require_equal([group["name"] for group in groups[:5]],
                      ["big4", "big2", "big3", "big1", "big0"])
        require_equal(groups[1], {"name": "big2", "pending": 3, "active": 1, "delayed": 1,
                                  "blocked": 0, "waiting": 4, "slots": 1, "max_active": 4,
                                  "utilization": 0.25, "paused": "none"})
        require_equal(groups[-1], {"name": "*", "pending": 2002, "active": 1, "delayed": 1,
                                   "blocked": 1, "waiting": 2004, "slots": 1, "max_active": 0,
                                   "utilization": None})
        require_equal(client.expect(200, "GET", "/api/v1/queues/none/groups").json, {"groups": []})


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
    """A reader of all events of a busy queue falls behind; a reader of few of them does not."""
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


def answer_beside(probe, server, path, member, count=1000):
    """The longest hold of others by a GET; checks its answer."""
    probe.begin()
    raw = Raw(server)
    raw.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n"
             f"Authorization: Bearer {READ_TOKEN}\r\n\r\n".encode())
    answer = raw.answer()
    hold = probe.end()
    raw.close()
    require_equal(answer.status, 200)
    if member is None:
        require(len(answer.body) <= 5 << 20, f"{len(answer.body)} bytes")
    else:
        require_equal(len(json.loads(answer.body)[member]), count, path)
    return hold


def test_long_answers_hold_nobody(options):
    """Scrapes and lists of 10,000 queues, groups and jobs take many turns of the thread."""
    server = serve(options, {"appendonly": "no", "save": "", "io-threads": "1"})
    with server.connect() as connection, Probe(server) as probe:
        for begin in range(0, 10_000, 1000):
            connection.pipeline([("Q.ADD", f"queue-{number}", "a", "{}")
                                 for number in range(begin, begin + 1000)])
        connection.pipeline([("Q.POP", 1, f"queue-{number}") for number in range(0, 1000, 10)])
        for begin in range(0, 100_000, BURST):
            connection.pipeline([("Q.ADD", "groups", f"j{number}", "{}", "GROUP", f"g{number}")
                                 for number in range(begin, begin + BURST)])
        for path, member in (("/metrics", None), ("/api/v1/queues?limit=1000", "queues"),
                             ("/api/v1/queues/groups/jobs?count=1000", "jobs")):
            def measure(path=path, member=member):
                return answer_beside(probe, server, path, member)

            if "/release/" in options.program:
                require_short(measure, path)
            else:
                measure()


def test_executions_of_a_user_hold_nobody(options):
    """A list by user_id reads large payloads and results one at a time."""
    server = serve(options, {"appendonly": "no", "save": "", "io-threads": "1"})
    payload = '{"list": [' + "[]," * 60_000 + '[]], "user_id": "ann"}'
    with server.connect() as connection, Probe(server) as probe:
        for number in range(24):
            connection.call("Q.ADD", "exec", f"j{number}", payload)

        def measure():
            return answer_beside(probe, server, f"{EXECUTIONS}?user_id=bob", "executions", 0)

        if "/release/" in options.program:
            require_short(measure)
        else:
            measure()


def test_strangers_hold_nobody(options):
    """What somebody without a token sends is neither stored nor parsed at length."""
    server = serve(options, {"appendonly": "no", "save": "", "io-threads": "1"})
    body = b"[" + b"[]," * 300_000 + b"[]]"

    def measure():
        probe.begin()
        with Raw(server) as raw:
            raw.send(b"POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Length: %d\r\n\r\n" % len(body) + body)
            require_equal(raw.answer().status, 413)
        return probe.end()

    with Probe(server) as probe:
        if "/release/" in options.program:
            require_short(measure)
        else:
            measure()


def test_all_queues_page_by_page(options):
    """The list is in the order of names, whatever the shards; pages meet without gap or overlap."""
    server = serve(options, {"appendonly": "no", "save": ""})
    names = sorted([f"q{number}" for number in range(3000)] + ["q", "q1\x00", "\u00fc", ""],
                   key=str.encode)
    with Client(server) as client, server.connect() as connection:
        connection.pipeline([("Q.ADD", name, "a", "") for name in names])
        for limit in 1000, 37:
            found, cursor = [], None
            while cursor is not None or not found:
                query = f"?limit={limit}" + (f"&cursor={urllib.parse.quote(cursor)}" if cursor
                                             else "")
                page = client.get("/api/v1/queues" + query).json
                found += [queue["name"] for queue in page["queues"]]
                require(len(page["queues"]) <= limit, "a page that is too long")
                cursor = page["cursor"]
            require_equal(found, names, f"limit {limit}")


def test_the_newest_ended_jobs_first(options):
    """Ended jobs come the last one first, page by page; so does by=age&desc=true of others."""
    server = serve(options, {"appendonly": "no", "save": ""})
    with Client(server) as client, server.connect() as connection:
        jobs = "/api/v1/queues/q/jobs"
        for number in range(250):
            connection.call("Q.ADD", "q", f"j{number}", "", "RETRY", 0)
            lease = connection.call("Q.POP", 1, "q").value[0][5]
            connection.call(*(("Q.NACK", "q", f"j{number}", lease, "FATAL") if number % 2
                              else ("Q.ACK", "q", f"j{number}", lease)))
        for states, wanted in (("state=failed", range(249, 0, -2)),
                               ("state=completed", range(248, -1, -2)),
                               ("state=completed&state=failed", range(249, -1, -1)),
                               ("by=age&state=completed", range(0, 250, 2)),
                               ("by=age&desc=true", range(249, -1, -1))):
            found, cursor = [], None
            while cursor is not None or not found:
                page = client.get(f"{jobs}?{states}&count=60" +
                                  (f"&cursor={cursor}" if cursor else "")).json
                found += [job["id"] for job in page["jobs"]]
                cursor = page["cursor"]
            require_equal(found, [f"j{number}" for number in wanted], states)
        problem = client.get(jobs + "?by=rank&desc=true")
        require_equal((problem.status, problem.json["field"]), (422, "desc"))


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__], THREADS))
