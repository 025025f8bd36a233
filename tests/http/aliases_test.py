#!/usr/bin/python3
"""The endpoints of the older systems: their fields, types and statuses.

    tests/http/aliases_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import datetime
import json
import re
import sys
import time

from harness import require, require_equal, run, wait_until
from harness.http_client import READ_TOKEN, THREADS, Client, require_problem, serve

EXECUTIONS = "/api/v1/admin/executions/"
GRADING = "/api/v1/grading_queue"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
FIELDS = {"execution_id", "script", "status", "lang", "lang_version", "stdout", "stderr",
          "exit_code", "error_type", "priority", "user_id", "created_at", "updated_at"}


def add_executions(client, count):
    for number in range(count):
        payload = {"script": f"print({number})", "lang": "python", "lang_version": "3.12",
                   "user_id": f"u{number % 2}"}
        client.expect(201, "POST", "/api/v1/queues/exec/jobs",
                      {"id": f"e{number}", "payload": json.dumps(payload),
                       "group": f"u{number % 2}", "pri": "HIGH" if number % 2 else "NORMAL"})


def test_executions(options):
    """The list with its filters and pages, newest first; fields come from payload and result."""
    server = serve(options)
    with Client(server) as client:
        add_executions(client, 5)
        body = client.expect(200, "GET", EXECUTIONS).json
        require_equal(set(body), {"executions", "total", "limit", "skip", "has_more"})
        require_equal((body["total"], body["limit"], body["skip"], body["has_more"]),
                      (5, 50, 0, False))
        times = [execution["created_at"] for execution in body["executions"]]
        require_equal(times, sorted(times, reverse=True), "newest first")
        for execution in body["executions"]:
            require_equal(set(execution), FIELDS)
            require(TIME.fullmatch(execution["created_at"]), execution["created_at"])
            require_equal((execution["status"], execution["lang"], execution["stdout"]),
                          ("queued", "python", None))
        page = client.get(EXECUTIONS + "?limit=2&skip=2").json
        require_equal((len(page["executions"]), page["total"], page["has_more"]), (2, 5, True))
        require_equal({e["execution_id"] for e in
                       client.get(EXECUTIONS + "?priority=high").json["executions"]}, {"e1", "e3"})
        require_equal(client.get(EXECUTIONS + "?user_id=u0").json["total"], 3)
        require_equal(client.get(EXECUTIONS + "?status=running").json["total"], 0)
        job, = client.post("/api/v1/queues/exec:pop", {}).json["jobs"]
        require_equal(client.get(EXECUTIONS + "?status=running").json["total"], 1)
        result = {"stdout": "1\n", "stderr": "", "exit_code": 0}
        client.expect(200, "POST", f"/api/v1/queues/exec/jobs/{job['id']}:ack",
                      {"lease": job["lease"], "result": json.dumps(result)})
        done, = client.get(EXECUTIONS + "?status=completed").json["executions"]
        require_equal((done["stdout"], done["stderr"], done["exit_code"], done["lang"]),
                      ("1\n", "", 0, "python"))
        for query in "limit=0", "limit=201", "limit=x", "skip=-1", "status=nonsense", "what=1":
            require_problem(client.get(EXECUTIONS + "?" + query), 422, "BADFIELD")


def test_lists_end_where_payloads_are_large(options):
    """Four megabytes of payloads are read for one answer: the rest is null, or on the next page."""
    server = serve(options)
    payload = json.dumps({"script": "x" * 900_000, "lang": "python"})
    with Client(server) as client, server.connect() as connection:
        for number in range(12):
            for queue in "exec", "grade":
                connection.call("Q.ADD", queue, f"j{number:02}", payload, "GROUP", "g")
        answer = client.expect(200, "GET", EXECUTIONS + "?limit=200")
        require(len(answer.body) < 6_000_000, f"{len(answer.body)} bytes")
        body = answer.json
        require_equal((len(body["executions"]), body["total"], body["has_more"]), (12, 12, False))
        require_equal([execution["lang"] for execution in body["executions"]],
                      ["python"] * 5 + [None] * 7)
        require_equal({execution["user_id"] for execution in body["executions"]}, {"g"})
        require_equal([execution["lang"] for execution in
                       client.get(EXECUTIONS + "?limit=3&skip=9").json["executions"]],
                      ["python"] * 3)
        keys, cursor = [], None
        while True:
            answer = client.expect(200, "GET", GRADING + (f"?cursor={cursor}" if cursor else ""))
            require(len(answer.body) < 6_000_000, f"{len(answer.body)} bytes")
            keys += [job["key"] for job in answer.json["jobs"]]
            cursor = answer.json["cursor"]
            if cursor is None:
                break
        require_equal(keys, [f"j{number:02}" for number in range(12)])


def test_how_executions_end(options):
    """The statuses of ended executions, their results, and when they were last touched."""
    server = serve(options)
    jobs = "/api/v1/queues/exec/jobs"

    def shown(client, name):
        execution, = [each for each in client.expect(200, "GET", EXECUTIONS).json["executions"]
                      if each["execution_id"] == name]
        return execution

    def time_of(client, name, field):
        moment = client.get(f"{jobs}/{name}").json[field]
        text = datetime.datetime.fromtimestamp(moment / 1000, datetime.timezone.utc)
        return text.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment % 1000:03}Z"

    with Client(server) as client:
        for name in "done", "failed", "cancelled", "late":
            others = {"ttl_ms": 30} if name == "late" else {}
            client.expect(201, "POST", jobs, {"id": name, "payload": '{"lang": "c"}', **others})
        wait_until(lambda: shown(client, "late")["status"] == "timeout", what="the end of its time")
        leases = {job["id"]: job["lease"] for job in
                  client.post("/api/v1/queues/exec:pop", {"count": 2}).json["jobs"]}
        running = shown(client, "done")
        require_equal((running["status"], running["updated_at"]),
                      ("running", time_of(client, "done", "started")))
        time.sleep(0.01)
        client.expect(200, "POST", f"{jobs}/done:ack", {
            "lease": leases["done"], "result": '{"error_type": "runtime", "exit_code": 1}'})
        client.expect(200, "POST", f"{jobs}/failed:nack", {"lease": leases["failed"],
                                                          "mode": "fatal", "error": "no"})
        client.expect(200, "POST", f"{jobs}/cancelled:cancel", {})
        for name, status in [("done", "completed"), ("failed", "failed"), ("late", "timeout"),
                             ("cancelled", "cancelled")]:
            execution = shown(client, name)
            require_equal((execution["status"], execution["lang"], execution["updated_at"]),
                          (status, "c", time_of(client, name, "finished")))
            only, = client.get(EXECUTIONS + "?status=" + status).json["executions"]
            require_equal(only, execution)
        done = shown(client, "done")
        require_equal((done["error_type"], done["exit_code"]), ("runtime", 1))
        require(done["updated_at"] > done["created_at"], done)


def test_executions_of_a_user(options):
    """?user_id= matches exactly the user_id that is shown, whatever its source."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        for name, payload, group in [
                ("said", {"user_id": "ann"}, None), ("group", {}, "ann"),
                ("both", {"user_id": "bob"}, "ann"),
                ("number", {"user_id": 7}, "x"), ("text", {"user_id": "7"}, None),
                ("star", {"user_id": "a*"}, None), ("bytes", {}, b"\xff"),
                ("null", {"user_id": None}, "ann"), ("nobody", {}, None)]:
            words = [] if group is None else ["GROUP", group]
            connection.call("Q.ADD", "exec", name, json.dumps(payload), *words)
        connection.call("Q.ADD", "exec", "done", "no JSON", "PRI", "CRITICAL")
        job, = client.post("/api/v1/queues/exec:pop", {}).json["jobs"]
        require_equal(job["id"], "done")
        client.expect(200, "POST", "/api/v1/queues/exec/jobs/done:ack",
                      {"lease": job["lease"], "result": '{"user_id": "ann"}'})

        def found(query):
            body = client.expect(200, "GET", EXECUTIONS + "?" + query).json
            require_equal(body["total"], len(body["executions"]), query)
            return {execution["execution_id"] for execution in body["executions"]}
        require_equal(found("user_id=ann"), {"said", "group", "null", "done"})
        require_equal(found("user_id=bob"), {"both"})
        require_equal(found("user_id=7"), {"number", "text"})
        require_equal(found("user_id=a*"), {"star"})
        require_equal(found("user_id=%FF"), {"bytes"})
        require_equal(found("user_id="), set())
        require_equal(found("user_id=ann&status=completed"), {"done"})
        page = client.get(EXECUTIONS + "?user_id=ann&limit=1&skip=1").json
        require_equal((len(page["executions"]), page["total"], page["has_more"]), (1, 4, True))


def test_payloads_that_are_nested_too_deeply(options):
    """A payload or result of more than 64 levels is ignored, and does no harm."""
    server = serve(options)
    with Client(server) as client:
        for depth in 63, 64, 100_000:
            deep = '{"script": %s}' % ("[" * depth + "]" * depth)
            for queue in "exec", "grade":
                client.expect(201, "POST", f"/api/v1/queues/{queue}/jobs",
                              {"id": f"d{depth}", "payload": deep})
        shown = {execution["execution_id"]: execution["script"]
                 for execution in client.expect(200, "GET", EXECUTIONS).json["executions"]}
        require_equal((shown["d64"], shown["d100000"]), (None, None))
        require(shown["d63"] is not None, "63 levels within the object")
        jobs = {job["key"]: job for job in client.expect(200, "GET", GRADING).json["jobs"]}
        require_equal(["script" in jobs[key] for key in ("d63", "d64", "d100000")],
                      [True, False, False])
        job, = client.post("/api/v1/queues/exec:pop", {"id": "d63"}).json["jobs"]
        client.expect(200, "POST", "/api/v1/queues/exec/jobs/d63:ack",
                      {"lease": job["lease"], "result": deep.replace("script", "stdout")})
        done, = client.get(EXECUTIONS + "?status=completed").json["executions"]
        require_equal(done["stdout"], None)
        client.expect(200, "PUT", EXECUTIONS + "d100000/priority", {"priority": "high"})


def test_the_priority_of_an_execution(options):
    """PUT …/priority answers the execution; unknown is 404, invalid 422, by role 401 and 403."""
    server = serve(options)
    with Client(server) as client:
        add_executions(client, 2)
        path = EXECUTIONS + "e0/priority"
        changed = client.expect(200, "PUT", path, {"priority": "critical"}).json
        require_equal((set(changed), changed["execution_id"], changed["priority"]),
                      (FIELDS, "e0", "critical"))
        require_problem(client.request("PUT", EXECUTIONS + "none/priority", {"priority": "high"}),
                        404, "NOJOB")
        for body in ({"priority": "nonsense"}, {}, {"priority": "high", "what": 1},
                     {"priority": 1}, {"priority": "1"}, {"priority": None}):
            require_problem(client.request("PUT", path, body), 422, "BADFIELD")
        require_problem(client.request("PUT", path, {"priority": "high"}, token=READ_TOKEN), 403,
                        "NOPERM")
        require_problem(client.request("PUT", path, {"priority": "high"}, token=None), 401,
                        "NOAUTH")
        client.expect(200, "PATCH", "/api/v1/queues/exec", {"max_active": 10})
        require_equal(client.get(EXECUTIONS + "queue").json,
                      {"queue_depth": 2, "active_count": 0, "max_concurrent": 10,
                       "by_priority": {"critical": 1, "high": 1}})


def test_queue_stats(options):
    """GET /api/queue-stats has the in-process queue's fields, all of their types."""
    server = serve(options, {"http-stats-queue": "mine"})
    with Client(server) as client:
        client.expect(200, "PATCH", "/api/v1/queues/mine?create=true", {"max_active": 4})
        for lang in "python", "python", "java":
            client.expect(201, "POST", "/api/v1/queues/mine/jobs",
                          {"payload": "", "tags": {"lang": lang}})
        job, = client.post("/api/v1/queues/mine:pop", {}).json["jobs"]
        body = client.expect(200, "GET", "/api/queue-stats").json
        require_equal(set(body), {"queue", "timestamp"})
        require(TIME.fullmatch(body["timestamp"]), body["timestamp"])
        require_equal(body["queue"], {
            "queued": 2, "active": 1, "maxConcurrent": 4, "completedTasks": 0, "failedTasks": 0,
            "averageTaskTime": 0, "queuedByLanguage": {"python": 1, "java": 1},
            "queueUtilization": 25})
        client.expect(200, "POST", f"/api/v1/queues/mine/jobs/{job['id']}:nack",
                      {"lease": job["lease"], "mode": "fatal"})
        require_equal(client.get("/api/queue-stats").json["queue"]["failedTasks"], 1)
        client.expect(201, "POST", "/api/v1/queues/mine/jobs", {"payload": ""})
        client.expect(201, "POST", "/api/v1/queues/mine/jobs", {"payload": "", "ttl_ms": 1,
                                                                "tags": {"lang": "java"}})

        def expired():
            return client.get("/api/queue-stats").json["queue"]["failedTasks"] == 2
        wait_until(expired, what="a job that expires")
        stats = client.get("/api/queue-stats").json["queue"]
        require_equal((stats["queued"], stats["queuedByLanguage"]), (3, {"python": 1, "java": 1}))


def test_the_grading_queue(options):
    """Jobs are created, updated, moved, deleted and described, as the web server requests it."""
    server = serve(options)

    def job(key, owner="7", **others):
        return {"key": key, "collation": {"type": "team", "id": owner}, "priority": 60000,
                "response_url": "http://localhost/answer", **others}

    def order(client):
        return [each["key"] for each in client.expect(200, "GET", GRADING).json["jobs"]]

    def status(client, key):
        return client.expect(200, "GET", f"{GRADING}/{key}/status").json["status"]

    with Client(server) as client:
        for number, key in enumerate("abc"):
            made = client.expect(200, "PUT", GRADING, job(key, str(number))).json
            require_equal((made["id"], made["result"]), (key, "added"))
        require_equal(client.expect(200, "PUT", GRADING, job("a", "0", new=1)).json["result"],
                      "updated")
        shown = client.get(GRADING).json["jobs"][0]
        require_equal((shown["key"], shown["new"], shown["position"], shown["collation"]),
                      ("a", 1, 0, {"type": "team", "id": "0"}))
        require_equal(status(client, "b"), "number 2 in the queue")
        client.expect(200, "PUT", GRADING + "/move",
                      {"jobKey": "c", "nonce": "1770000000000", "moveAction": "release",
                       "collation": {"type": "team", "id": "2"}, "chained": {"x": 1}})
        require_equal(order(client), ["c", "a", "b"])
        client.expect(200, "PUT", GRADING + "/move", {"jobKey": "a", "moveAction": "delay"})
        require_equal(order(client), ["c", "b", "a"])
        client.expect(200, "PUT", GRADING + "/immediate", job("d", "3"))
        require_equal(order(client), ["c", "d", "b", "a"])
        require_equal(client.expect(200, "PUT", GRADING + "/immediate", job("a", "0")
                                    ).json["result"], "updated")
        require_equal(order(client), ["c", "d", "a", "b"])
        client.expect(200, "DELETE", GRADING + "/b")
        require_problem(client.request("DELETE", GRADING + "/b"), 404, "NOJOB")
        require_equal(status(client, "b"), "cancelled")
        require_equal(client.expect(200, "PUT", GRADING, job("b", "1")).json["result"], "added")
        require_equal(client.get("/api/v1/queues/grade/jobs/b").json["group"], "team.1")
        with server.connect() as connection:
            connection.call("Q.MOVE", "grade", "b", "DELAY", 60000)
        require(re.fullmatch(r"releases in \d+ seconds", status(client, "b")),
                status(client, "b"))
        key = 2**64 - 1
        require_equal(client.expect(200, "PUT", GRADING, job(key)).json["id"], str(key))
        client.expect(200, "DELETE", f"{GRADING}/{key}")
        require_problem(client.get(GRADING + "/none/status"), 404, "NOJOB")
        require_problem(client.request("PUT", GRADING + "/move", {
            "jobKey": "none", "moveAction": "release"}), 404, "NOJOB")
        for body in ({}, {"key": "x"}, {"key": "x", "collation": {"type": "class", "id": 1}},
                     {"key": [], "collation": {"type": "team", "id": 1}},
                     {"key": "x", "collation": {"type": "team", "id": 1}, "priority": -1}):
            require_problem(client.request("PUT", GRADING, body), 422, "BADFIELD")
        for body in {}, {"jobKey": "c"}, {"jobKey": "c", "moveAction": "up"}:
            require_problem(client.request("PUT", GRADING + "/move", body), 422, "BADFIELD")


def test_the_grading_queue_lists_all_that_wait(options):
    """Pending jobs by position, then delayed ones by their time, then blocked ones; in pages."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        for name, words in [("late", ["DELAY", 90000]), ("b", []), ("soon", ["DELAY", 60000]),
                            ("urgent", ["PRI", 0]), ("needs", ["NEED", "late"]), ("gone", [])]:
            reply = connection.call("Q.ADD", "grade", name, '{"x": 1}', *words)
            require(not reply.is_error, reply)
        client.expect(200, "DELETE", GRADING + "/gone")
        body = client.expect(200, "GET", GRADING).json
        require_equal([(job["key"], job["position"]) for job in body["jobs"]],
                      [("urgent", 0), ("b", 1), ("soon", None), ("late", None), ("needs", None)])
        words = [job["status"] for job in body["jobs"]]
        require_equal((words[:2], words[4]),
                      (["number 1 in the queue", "number 2 in the queue"], "blocked"))
        require(all(re.fullmatch(r"releases in \d+ seconds", text) for text in words[2:4]), words)
        require_equal(({job["x"] for job in body["jobs"]}, body["cursor"]), ({1}, None))
        connection.pipeline([["Q.ADD", "grade", f"p{number}", ""] for number in range(1100)])
        connection.pipeline([["Q.ADD", "grade", f"d{number}", "", "DELAY", 90000]
                             for number in range(1100)])
        seen, cursor, pages = [], None, 0
        while pages < 10:
            body = client.expect(200, "GET", GRADING + (f"?cursor={cursor}" if cursor else "")).json
            require(len(body["jobs"]) <= 1000, len(body["jobs"]))
            seen += [job["key"] for job in body["jobs"]]
            cursor = body["cursor"]
            pages += 1
            if cursor is None:
                break
        require_equal((len(seen), len(set(seen)), pages), (2205, 2205, 3))
        for bad in "", "0", "x", "3", "1zz", "9":
            status = client.get(GRADING + "?cursor=" + bad).status
            require_equal(status, 422, f"the cursor {bad!r}")


def test_what_becomes_immediate_is_due_now(options):
    """A delayed or later-ranked job that becomes immediate counts as just added; others stay."""
    server = serve(options)

    def put(client, key):
        return client.expect(200, "PUT", GRADING + "/immediate", {
            "key": key, "collation": {"type": "team", "id": 7}, "priority": 60000}).json

    def order(client):
        return [job["key"] for job in client.expect(200, "GET", GRADING).json["jobs"]]

    with Client(server) as client, server.connect() as connection:
        for key in "abc":
            client.expect(200, "PUT", GRADING, {"key": key, "priority": 60000, "new": False,
                                                "collation": {"type": "team", "id": 7}})
        connection.call("Q.MOVE", "grade", "b", "DELAY", 60000)
        made = put(client, "b")
        require_equal((made["result"], made["state"], made["position"]), ("updated", "pending", 0))
        require_equal(client.get(GRADING + "/b/status").json["status"], "number 1 in the queue")
        made = put(client, "c")
        require_equal((made["result"], made["position"]), ("updated", 1))
        require_equal(put(client, "d")["position"], 2)
        require_equal(order(client), ["b", "c", "d", "a"])
        require_equal(put(client, "b")["position"], 0)
        require_equal(order(client), ["b", "c", "d", "a"])
        # As a worker sees it: nothing of it is held up.
        with server.connect() as worker:
            keys = [worker.call("Q.POP", "1", "grade").value[0][3] for _ in range(4)]
        require_equal(keys, [b"b", b"c", b"d", b"a"])


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__], THREADS))
