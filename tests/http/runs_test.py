#!/usr/bin/python3
"""A worker over HTTP: heartbeats that tell who is quiet, logs, several runs in one request, pops of
several queues; and the events of several jobs.

    tests/http/runs_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import json
import sys
import threading

from harness import info, require, require_equal, run, wait_until
from harness.http_client import (READ_TOKEN, THREADS, TIMEOUT_S, Client, Stream, quoted,
                                 require_problem, serve)

QUEUE = "/api/v1/queues/q"
JOBS = QUEUE + "/jobs"


def add(client, *names, queue=QUEUE, **others):
    for name in names:
        client.expect(201, "POST", queue + "/jobs", {"id": name, "payload": "", **others})


def pop(client, **others):
    jobs = client.expect(200, "POST", QUEUE + ":pop", {"worker": "w", **others}).json["jobs"]
    return {job["id"]: job["lease"] for job in jobs}


def touch(client, name, lease, **members):
    return client.expect(200, "POST", f"{JOBS}/{quoted(name)}:touch",
                         {"lease": lease, **members}).json


def log(client, name, query=""):
    return client.expect(200, "GET", f"{JOBS}/{quoted(name)}/log{query}").json


def bad_field(answer, field):
    members = require_problem(answer, 422, "BADFIELD")
    require_equal(members["field"], field, f"{members}")
    return members


def test_a_heartbeat_says_whether_the_worker_is_quiet(options):
    """:touch with `worker` answers `quiet`; without it there is no such member."""
    server = serve(options)
    with Client(server) as client:
        add(client, "a")
        lease = pop(client)["a"]
        require_equal(sorted(touch(client, "a", lease)), ["cancel", "left_ms"])
        require_equal(touch(client, "a", lease, worker="w")["quiet"], False)
        client.expect(200, "PATCH", QUEUE + "?worker=w", {"quiet": True})
        told = touch(client, "a", lease, worker="w")
        require_equal((told["quiet"], told["cancel"]), (True, None))
        require_equal(touch(client, "a", lease, worker="other")["quiet"], False)
        client.expect(200, "POST", JOBS + "/a:cancel", {"reason": "enough", "grace_ms": "1m"})
        told = touch(client, "a", lease, worker="w")
        require_equal((told["quiet"], told["cancel"]), (True, "enough"))
        for worker in "", "x" * 513, []:
            bad_field(client.post(JOBS + "/a:touch", {"lease": lease, "worker": worker}), "worker")


def test_parts_of_a_log(options):
    """From an offset on, so many bytes, with the next offset; what is gone shows in `offset`."""
    server = serve(options)
    with Client(server) as client:
        require_problem(client.get(JOBS + "/a/log"), 404, "NOJOB")
        client.expect(200, "PATCH", QUEUE + "?create=true", {"log_bytes": 20})
        add(client, "a", "silent")
        require_problem(client.get(JOBS + "/none/log"), 404, "NOJOB")
        require_equal(log(client, "silent"), {"offset": 0, "next": 0, "text": "", "ended": False})
        lease = pop(client, id="a")["a"]
        for text in "connected, ", "sent\n":
            touch(client, "a", lease, log=text)
        whole = {"offset": 0, "next": 16, "text": "connected, sent\n", "ended": False}
        require_equal(log(client, "a"), whole)
        require_equal(log(client, "a", "?wait_ms=30s"), whole, "it is there")
        require_equal(log(client, "a", "?from=6&count=3"),
                      {"offset": 6, "next": 9, "text": "ted", "ended": False})
        require_equal(log(client, "a", "?from=99"),
                      {"offset": 16, "next": 16, "text": "", "ended": False}, "beyond its end")
        touch(client, "a", lease, log_base64="/////////w==")  # 7 bytes that are no text
        require_equal(log(client, "a"), {"offset": 3, "next": 23, "text": None, "ended": False,
                                         "text_base64": "bmVjdGVkLCBzZW50Cv////////8="})
        client.expect(200, "POST", JOBS + "/a:ack", {"lease": lease})
        require_equal([log(client, "a", query)["ended"] for query in ("", "?count=5", "?from=23")],
                      [True, False, True], "the end of the log of a job that has ended")
        for query, field in (("from=-1", "from"), ("from=x", "from"), ("from=", "from"),
                             ("count=0", "count"), ("count=1048577", "count"), ("limit=5", "limit"),
                             ("wait_ms=60001", "wait_ms"), ("wait_ms=soon", "wait_ms")):
            bad_field(client.get(f"{JOBS}/a/log?{query}"), field)
        with server.connect() as connection:
            connection.call("Q.ADOPT", "shown", "PENDING", "p", "ACTIVE", "r")
        require_problem(client.get("/api/v1/queues/shown/jobs/x/log"), 409, "ADOPTED")


def test_a_request_waits_for_a_log(options):
    """wait_ms: the response comes with more, at the end of the job, or when the time is over."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        add(client, "a", "b")
        leases = pop(client, count=2)

        def waited(name, query, then):
            """The answer to a request that waits while this is done."""
            answers = []

            def ask():
                with Client(server) as waiting:
                    answers.append(waiting.get(f"{JOBS}/{name}/log?wait_ms=30000{query}"))
            waiter = threading.Thread(target=ask)
            waiter.start()
            wait_until(lambda: info(connection)["blocked_clients"] == "1", what="what waits")
            then()
            waiter.join(TIMEOUT_S)
            return answers[0]

        answer = waited("a", "", lambda: touch(client, "a", leases["a"], log="one"))
        require_equal(answer.json, {"offset": 0, "next": 3, "text": "one", "ended": False})
        over = log(client, "a", "?from=3&wait_ms=1")
        require_equal(over, {"offset": 3, "next": 3, "text": "", "ended": False}, "a time-out")
        answer = waited("a", "&from=3", lambda: client.expect(
            200, "POST", JOBS + "/a:ack", {"lease": leases["a"]}))
        require_equal(answer.json, {"offset": 3, "next": 3, "text": "", "ended": True})
        answer = waited("b", "", lambda: connection.call("DEL", "q"))
        require_problem(answer, 404, "NOJOB")


def test_several_runs_in_one_request(options):
    """Each gets the answer that it would get alone, in the order of the list."""
    server = serve(options)
    with Client(server) as client:
        add(client, "a", "b", "c", retry=5)
        client.expect(201, "POST", JOBS, {"id_base64": "/w==", "payload": ""})
        leases = pop(client, count=4)  # that of the last one as that of None

        def answered(verb, *jobs):
            return client.expect(200, "POST", f"{JOBS}:{verb}", {"jobs": list(jobs)}).json["jobs"]

        client.expect(200, "POST", JOBS + "/b:cancel", {"reason": "enough", "grace_ms": "1m"})
        lines = answered("touch", {"id": "a", "lease": leases["a"], "lease_ms": "1m",
                                   "progress": "half", "log": "line\n", "worker": "w"},
                         {"id": "b", "lease": leases["b"]}, {"id": "none", "lease": 1},
                         {"id": "c", "lease": leases["c"] + 1000}, {"lease": 1}, {"id": "c"}, 7,
                         {"id": "c", "lease": leases["c"], "lease_ms": 5},
                         {"id": "where", "lease": 1}, {"id": "c", "lease": 1, "what": 1},
                         {"id_base64": "/w==", "lease": leases[None]})
        require_equal([line["status"] for line in lines],
                      [200, 200, 404, 409, 422, 422, 400, 422, 422, 422, 200])
        require_equal([line["error"]["code"] for line in lines if "error" in line],
                      ["NOJOB", "STALELEASE", "BADFIELD", "BADFIELD", "BADJSON"] + ["BADFIELD"] * 3)
        require_equal([lines[index]["error"]["field"] for index in (4, 5, 7, 8, 9)],
                      ["id", "lease", "lease_ms", "id", "what"])
        require_equal((lines[0]["id"], lines[0]["quiet"], lines[0]["cancel"]), ("a", False, None))
        require(50_000 < lines[0]["left_ms"] <= 60_000, f"{lines[0]}")
        require_equal((lines[1]["cancel"], "quiet" in lines[1]), ("enough", False))
        require_equal((lines[10]["id"], lines[10]["id_base64"]), (None, "/w=="))
        require_equal((log(client, "a")["text"], client.get(JOBS + "/a").json["progress"]),
                      ("line\n", "half"))
        lines = answered("nack", {"id": "a", "lease": leases["a"], "delay_ms": 0, "error": "no"},
                         {"id": "c", "lease": leases["c"], "mode": "silent"},
                         {"id": "c", "lease": leases["c"], "mode": "lost"},
                         {"id": "b", "lease": leases["b"]})
        require_equal([(line["status"], line.get("state")) for line in lines],
                      [(200, "pending"), (200, "pending"), (422, None), (200, "cancelled")])
        require_equal((lines[0]["attempts_left"], lines[2]["error"]["field"]), (5, "mode"))
        leases.update(pop(client, count=2))
        lines = answered("ack", {"id": "a", "lease": leases["a"], "result_base64": "/g=="},
                         {"id": "a", "lease": leases["a"]}, {"id": "c", "lease": 1},
                         {"id": "c", "lease": leases["c"], "result": "done"})
        require_equal([(line["id"], line["status"], line.get("state")) for line in lines],
                      [("a", 200, "completed"), ("a", 200, "completed"), ("c", 409, None),
                       ("c", 200, "completed")])
        require_equal([client.get(f"{JOBS}/{name}?with=result").json[member] for name, member
                       in (("a", "result_base64"), ("c", "result"))], ["/g==", "done"])
        require_equal(answered("ack"), [])


def test_lists_of_runs_that_are_none(options):
    """What is no list, or too long a one, is refused as a whole; so is who may not."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        for verb in "ack", "touch":
            for body in {}, {"jobs": None}, {"jobs": "a"}, {"jobs": {"id": "a"}}:
                bad_field(client.post(f"{JOBS}:{verb}", body), "jobs")
            require_problem(client.post(f"{JOBS}:{verb}", [{"id": "a", "lease": 1}]), 400,
                            "BADJSON")
        for verb in "ack", "nack", "touch":
            path = f"{JOBS}:{verb}"
            bad_field(client.post(path, {"jobs": [], "id": "a"}), "id")
            bad_field(client.post(path + "?what=1", {"jobs": []}), "what")
            many = [{"id": f"j{number}", "lease": 1} for number in range(1001)]
            bad_field(client.post(path, {"jobs": many}), "jobs")
            lines = client.expect(200, "POST", path, {"jobs": many[1:]}).json["jobs"]
            require_equal((len(lines), {line["status"] for line in lines}), (1000, {404}))
            require_problem(client.post(path, {"jobs": []}, token=READ_TOKEN), 403, "NOPERM")
        bad_field(client.post(JOBS + ":nack", {"jobs": [], "where": {"worker": "w"}}), "where")
        connection.call("SET", "text", "x")
        lines = client.expect(200, "POST", "/api/v1/queues/text/jobs:touch",
                              {"jobs": [{"id": "a", "lease": 1}]}).json["jobs"]
        require_equal(lines[0]["error"]["code"], "WRONGTYPE")


def test_a_pop_of_several_queues(options):
    """All jobs come from the first queue that has any: that of the path, then the others."""
    server = serve(options)
    with Client(server) as client:
        add(client, "slow", queue="/api/v1/queues/bulk")
        add(client, "soon", queue="/api/v1/queues/next")

        def popped(**others):
            body = {"more_queues": ["next", {"base64": "YnVsaw=="}], "count": 5, **others}
            jobs = client.expect(200, "POST", QUEUE + ":pop", body).json["jobs"]
            return [(job["queue"], job["id"]) for job in jobs]

        require_equal(popped(), [("next", "soon")])
        add(client, "first")
        require_equal([popped(), popped(), popped(wait_ms=1)],
                      [[("q", "first")], [("bulk", "slow")], []])
        bad_field(client.post(QUEUE + ":pop", {"more_queues": "next"}), "more_queues")
        bad_field(client.post(QUEUE + ":pop", {"more_queues": ["next"], "id": "first"}), "id")


def test_the_events_of_several_jobs(options):
    """`id` is repeated: a page and a stream have the events of these jobs, and their progress."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        add(client, "a", "b", "c", "d")
        page = client.expect(200, "GET", QUEUE + "/events?after=-&id=a&id=c&id=none").json
        require_equal([(event["type"], event["id"]) for event in page["events"]],
                      [("added", "a"), ("added", "c")])
        stream = Stream(server, QUEUE + "/events?id=a&id=c")

        def told():
            event = json.loads(stream.next()["data"])
            return event["type"], event["id"], event["fields"].get("progress")

        leases = pop(client, count=4)
        require_equal([told(), told()], [("started", "a", None), ("started", "c", None)])
        for name, lease in leases.items():
            # Progress is an event only while somebody waits for it.
            wait_until(lambda: info(connection)["blocked_clients"] == "1", what="the stream")
            touch(client, name, lease, progress="of " + name)
            client.expect(200, "POST", f"{JOBS}/{name}:ack", {"lease": lease})
            if name in "ac":
                require_equal([told(), told()], [("progress", name, "of " + name),
                                                 ("completed", name, None)])
        stream.close()
        many = "".join(f"&id=j{number}" for number in range(257))
        members = bad_field(client.get(f"{QUEUE}/events?after=-{many}"), "id")
        require("at most 256" in members["detail"], members)
        client.expect(200, "GET", f"{QUEUE}/events?after=-{many.partition('&id=j256')[0]}")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__], THREADS))
