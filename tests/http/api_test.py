#!/usr/bin/python3
"""The HTTP API's routes: what they do, and what each of them refuses.

    tests/http/api_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import base64
import http.client
import json
import sys
import threading
import time

from harness import require, require_equal, run, wait_until
from harness.http_client import (ADMIN_TOKEN, OPERATE_TOKEN, THREADS, TIMEOUT_S, Client, Stream,
                                 quoted, require_problem, serve)

QUEUE = "/api/v1/queues/q"
JOBS = QUEUE + "/jobs"


def add(client, name, **others):
    return client.expect(201, "POST", JOBS, {"id": name, "payload": "p-" + name, **others}).json


def pop(client, **others):
    return client.expect(200, "POST", QUEUE + ":pop", {"worker": "w", **others}).json["jobs"]


def ids(answer):
    return [job["id"] for job in answer.json["jobs"]]


def test_the_life_of_a_job(options):
    """Added, listed, popped, touched, acknowledged, and shown at each step."""
    server = serve(options)
    with Client(server) as client:
        added = add(client, "a", pri="HIGH", group="g", keys=["k"], tags={"lang": "python"},
                    ttl_ms=60000, retry=2, backoff=[10, 20])
        require_equal((added["id"], added["result"], added["state"], added["position"]),
                      ("a", "added", "pending", 0))
        shown = client.expect(200, "GET", JOBS + "/a?with=payload").json
        require_equal((shown["pri"], shown["group"], shown["keys"], shown["tags"],
                       shown["payload"], shown["retries_left"]),
                      ("HIGH", "g", ["k"], {"lang": "python"}, "p-a", 2))
        require("payload" not in client.get(JOBS + "/a").json, "a payload that nobody asked for")
        job, = pop(client, lease_ms=5000)
        require_equal((job["id"], job["payload"], job["attempt"]), ("a", "p-a", 1))
        touched = client.expect(200, "POST", JOBS + "/a:touch",
                                {"lease": job["lease"], "progress": "half"}).json
        require(0 < touched["left_ms"] <= 5000 and touched["cancel"] is None, str(touched))
        workers = client.expect(200, "GET", QUEUE + "/workers").json["workers"]
        require_equal([(w["name"], [lease["id"] for lease in w["leases"]]) for w in workers],
                      [("w", ["a"])])
        client.expect(200, "POST", JOBS + "/a:ack", {"lease": job["lease"], "result": "done"})
        ended = client.get(JOBS + "/a?with=result").json
        require_equal((ended["state"], ended["result"], ended["progress"]),
                      ("completed", "done", "half"))
        line = client.get(QUEUE).json
        require_equal((line["name"], line["db"], line["stats"]["completed"]), ("q", 0, 1))


def test_refusals_of_the_queue(options):
    """Errors of commands are problems with their code, hints and status."""
    server = serve(options)
    with Client(server) as client:
        add(client, "a")
        members = require_problem(client.post(JOBS, {"id": "a", "payload": ""}), 409, "DUPLICATE")
        require_equal((members["id"], members["state"]), ("a", "pending"))
        client.expect(200, "PATCH", QUEUE, {"max_waiting": 1})
        answer = client.post(JOBS, {"id": "b", "payload": ""})
        members = require_problem(answer, 429, "QFULL")
        require_equal((members["pending"], members["max"]), (1, 1))
        require(int(answer.headers["retry-after"]) >= 1, "Retry-After")
        require_problem(client.get(JOBS + "/none"), 404, "NOJOB")
        require_problem(client.post(JOBS + "/none:ack", {"lease": 1}), 404, "NOJOB")
        require_problem(client.post(JOBS + "/none:cancel", {}), 404, "NOJOB")
        require_problem(client.request("PATCH", JOBS + "/none", {"pri": 0}), 404, "NOJOB")
        job, = pop(client)
        require_problem(client.post(JOBS + "/a:ack", {"lease": job["lease"] + 1}), 409,
                        "STALELEASE")
        require_problem(client.post(JOBS + "/a:ack", {"lease": "*"}), 422, "BADFIELD")
        require_problem(client.request("PATCH", JOBS + "/a", {"pri": 0}), 409, "NOTWAITING")
        client.expect(200, "POST", JOBS + "/a:ack", {"lease": job["lease"]})
        require_problem(client.post(JOBS + "/a:cancel", {}), 409, "ENDED")
        client.expect(200, "PATCH", QUEUE, {"paused": "in", "max_payload": 10})
        require_problem(client.post(JOBS, {"payload": ""}), 409, "PAUSED")
        require_problem(client.post(JOBS, {"payload": "x" * 11}), 413, "TOOBIG")
        with server.connect() as connection:
            connection.call("SET", "text", "x")
        require_problem(client.get("/api/v1/queues/text"), 409, "WRONGTYPE")


def test_malformed_bodies_and_parameters(options):
    """A body that is not a JSON object is 400; a wrong member or parameter is 422 and named."""
    server = serve(options)
    with Client(server) as client:
        for body in b"{", b"[", b"1", b"null x", b"{\"payload\": \"\xff\"}", b"[" * 100000:
            require_problem(client.post(JOBS, body), 400, "BADJSON")
        for body, field in [({}, "payload"), ({"payload": []}, "payload"),
                            ({"payload": 1.5}, "payload"),
                            ({"payload": "x", "payload_base64": ""}, "payload_base64"),
                            ({"payload_base64": "!"}, "payload_base64"),
                            ({"payload": "", "what": 1}, "what"),
                            ({"payload": "", "cost": "1"}, "cost"),
                            ({"payload": "", "cost": 1.5}, "cost"),
                            ({"payload": "", "cost": 2**64}, "cost"),
                            ({"payload": "", "cost": 0}, "cost"),
                            ({"payload": "", "pri": "NONE"}, "pri"),
                            ({"payload": "", "keys": "k"}, "keys"),
                            ({"payload": "", "keys": [[]]}, "keys"),
                            ({"payload": "", "tags": ["a"]}, "tags"),
                            ({"payload": "", "backoff": [1]}, "backoff"),
                            ({"payload": "", "id": ""}, "id")]:
            members = require_problem(client.post(JOBS, body), 422, "BADFIELD")
            require_equal(members["field"], field, f"field of {body}")
        for path, field in [("?limit=0", "limit"), ("?limit=x", "limit"), ("?what=1", "what"),
                            ("?state=none", "state"), ("?tag=x", "tag"), ("?db=16", "db"),
                            ("?db=-1", "db"), ("?with=none", "with")]:
            members = require_problem(client.get(JOBS + path), 422, "BADFIELD")
            require_equal(members["field"], field, path)
        require_problem(client.request("PATCH", QUEUE, {}), 422, "BADFIELD")
        require_problem(client.request("PATCH", QUEUE, {"max_active": []}), 422, "BADFIELD")
        require_problem(client.request("PATCH", QUEUE + "?create=true", {"none": 1}), 422,
                        "BADFIELD")
        require_problem(client.request("PATCH", JOBS + "/a", {}), 422, "BADFIELD")
        require_problem(client.request("PATCH", JOBS + "/a", {"place": "up"}), 422, "BADFIELD")
        require_problem(client.post(JOBS + ":purge", {}), 422, "BADFIELD")
        require_problem(client.post(JOBS + ":purge", {"where": {"what": 1}}), 422, "BADFIELD")
        require_problem(client.post(QUEUE + ":pop", {"wait_ms": 60001}), 422, "BADFIELD")
        require_equal(client.get("/api/v1/queues").json["queues"], [], "queues that it made")
        add(client, "a")
        require_problem(client.get(JOBS + "?cursor=nonsense"), 422, "INVALID")


def nested(depth, inside=b"1"):
    """JSON of nested arrays around `inside`."""
    return b"[" * depth + inside + b"]" * depth


def test_bodies_that_are_nested_too_deeply(options):
    """64 levels are accepted, 65 are rejected, and no number of levels does any harm."""
    server = serve(options)
    grading = "/api/v1/grading_queue"
    with Client(server) as client:
        for depth in 64, 100_000:
            for path, body in [(JOBS, b'{"payload": "", "keys": %s}'),
                               (JOBS + ":cancel", b'{"where": {"state": %s}}'),
                               (QUEUE + ":pop", b'{"match": %s}')]:
                require_problem(client.post(path, body % nested(depth)), 400, "BADJSON")
            for body in (b'{"key": "k", "collation": {"type": "team", "id": %s}}',
                         b'{"key": "k", "collation": {"type": "team", "id": 7}, "x": %s}'):
                require_problem(client.request("PUT", grading, body % nested(depth)), 400,
                                "BADJSON")
        require_problem(client.post(JOBS, b'{"payload": "", "keys": %s}' % nested(63)), 422,
                        "BADFIELD")
        # What stands in strings is no nesting.
        brackets = b'"\\"' + b"[" * 100_000 + b'"'
        require_problem(client.post(JOBS, b'{"payload": "", "keys": %s}' % brackets), 422,
                        "BADFIELD")
        body = b'{"key": "k", "collation": {"type": "team", "id": 7}, "x": %s}'
        client.expect(200, "PUT", grading, body % nested(63))


def test_ids_and_payloads_of_any_bytes(options):
    """Bytes that are not text are sent and returned as base64; ids may hold slashes and colons."""
    server = serve(options)
    raw = bytes(range(256))
    with Client(server) as client:
        coded = base64.b64encode(raw).decode()
        client.expect(201, "POST", JOBS, {"id_base64": coded, "payload_base64": coded,
                                          "group_base64": coded, "keys": [{"base64": coded}]})
        shown = client.expect(200, "GET", JOBS + "/" + quoted(raw) + "?with=payload").json
        require_equal((shown["id"], shown["id_base64"], shown["payload"], shown["payload_base64"],
                       shown["group_base64"], shown["keys"]),
                      (None, coded, None, coded, coded, [{"base64": coded}]))
        with server.connect() as connection:
            reply = connection.call("Q.GET", "q", raw, "WITH", "payload").value
            require_equal(reply[reply.index(b"payload") + 1], raw)
        for name in "a/b", "a:ack", "ü €", "<img src=x onerror=alert(1)>", "..", "\x00\r\n", "%2F":
            add(client, name)
            require_equal(client.expect(200, "GET", JOBS + "/" + quoted(name)).json["id"], name)
            client.expect(200, "POST", JOBS + "/" + quoted(name) + ":cancel", {"reason": name})
            require_equal(client.get(JOBS + "/" + quoted(name)).json["error"], name)


def test_lists_and_cursors(options):
    """Pages join without a gap, filters hold, databases are apart."""
    server = serve(options)
    with Client(server) as client:
        names = [f"j{number:02}" for number in range(25)]
        for number, name in enumerate(names):
            add(client, name, pri="HIGH" if number % 2 else "LOW", tags={"n": str(number % 3)})
        seen, cursor, pages = [], None, 0
        while pages < 20:
            page = client.expect(200, "GET", JOBS + "?limit=7&by=rank" +
                                 (f"&cursor={quoted(cursor)}" if cursor else ""))
            seen += ids(page)
            cursor = page.json["cursor"]
            pages += 1
            if cursor is None:
                break
        require_equal(seen, names[1::2] + names[::2], "all jobs by rank")
        require_equal(sorted(ids(client.get(JOBS + "?pri=LOW&tag=n%3D0"))), names[::6])
        require_equal(ids(client.get(JOBS + "?state=active")), [])
        require_equal(ids(client.get(JOBS + "?db=3")), [])
        client.expect(201, "POST", JOBS + "?db=3", {"id": "x", "payload": ""})
        require_equal(ids(client.get(JOBS + "?db=3")), ["x"])
        require_equal(len(client.get("/api/v1/queues?db=3").json["queues"]), 1)
        for number in range(5):
            client.expect(201, "POST", f"/api/v1/queues/more{number}/jobs", {"payload": ""})
        first = client.get("/api/v1/queues?limit=4").json
        rest = client.get("/api/v1/queues?limit=4&cursor=" + quoted(first["cursor"])).json
        require_equal([queue["name"] for queue in first["queues"] + rest["queues"]],
                      [f"more{number}" for number in range(5)] + ["q"])
        require_equal(rest["cursor"], None)


def test_the_list_of_queues_in_pages(options):
    """Pages of one queue each reach all queues, whatever their names; an invalid cursor is 422."""
    server = serve(options)
    names = [b"", b"%", b"%zz", b"0", b"a b", b"q", b"\xff"]
    with Client(server) as client, server.connect() as connection:
        for name in names:
            connection.call("Q.ADD", name, "j", "")
        seen, cursor = [], None
        for _ in range(len(names)):
            require_equal(len(seen) == 0, cursor is None, "an early end")
            page = client.expect(200, "GET", "/api/v1/queues?limit=1" +
                                 (f"&cursor={quoted(cursor)}" if cursor is not None else "")).json
            queue, = page["queues"]
            coded = queue.get("name_base64")
            seen.append(base64.b64decode(coded) if coded else queue["name"].encode())
            cursor = page["cursor"]
        require_equal((seen, cursor), (names, None))
        for bad in "%25zz", "q%25zz", "q%25", "", "nonsense":
            members = require_problem(client.get("/api/v1/queues?cursor=" + bad), 422, "BADFIELD")
            require_equal(members["field"], "cursor", bad)
        for number in 2**63, 2**64 - 1, -2**63:
            client.expect(201, "POST", JOBS, {"id": number, "payload": number})
            shown = client.expect(200, "GET", f"{JOBS}/{number}?with=payload").json
            require_equal((shown["id"], shown["payload"]), (str(number), str(number)))


def test_pages_end_where_payloads_are_large(options):
    """A page of jobs holds some four megabytes, and its cursor continues after them."""
    server = serve(options)
    names = [f"j{number}" for number in range(60)]
    with Client(server) as client, server.connect() as connection:
        for name in names:
            connection.call("Q.ADD", "q", name, "x" * 900_000)
        seen, cursor = [], None
        while True:
            answer = client.expect(200, "GET", JOBS + "?with=payload&limit=1000&by=rank" +
                                   (f"&cursor={quoted(cursor)}" if cursor else ""))
            require(len(answer.body) < 6_000_000, f"{len(answer.body)} bytes")
            seen += ids(answer)
            cursor = answer.json["cursor"]
            if cursor is None:
                break
        require_equal(seen, names)
        require_equal(ids(client.get(JOBS + "?limit=1000&by=rank")), names)
        require_equal(len(ids(client.get(JOBS + "?with=payload&by=dispatch"))), 5)


def test_moves_cancels_retries_purges(options):
    """An operator's actions, one by one and many at once, with a dry run."""
    server = serve(options)
    with Client(server) as client:
        for name in "abcd":
            add(client, name)
        moved = client.expect(200, "PATCH", JOBS + "/d", {"place": "front"}).json
        require_equal(moved["position"], 0)
        require_equal(client.expect(200, "PATCH", JOBS + "/a", {"pri": "CRITICAL"}).json["pri"],
                      "CRITICAL")
        delayed = client.expect(200, "PATCH", JOBS + "/b", {"delay_ms": 60000}).json
        require_equal(delayed["state"], "delayed")
        cancelled = client.expect(200, "POST", JOBS + "/c:cancel", {"reason": "why not"}).json
        require_equal((cancelled["result"], cancelled["was"]), ("cancelled", "pending"))
        job, = pop(client)
        require_equal(job["id"], "a")
        require_equal(client.expect(200, "POST", JOBS + "/a:cancel", {"grace_ms": 60000}).json,
                      {"result": "signalled", "was": "active"})
        touched = client.post(JOBS + "/a:touch", {"lease": job["lease"]}).json
        require(touched["cancel"] is not None, "the worker is not told")
        require_equal(client.expect(200, "POST", JOBS + "/a:nack",
                                    {"lease": job["lease"]}).json["state"], "cancelled")
        require_equal(client.expect(200, "POST", JOBS + "/c:retry").json, {"state": "pending"})
        dry = client.expect(200, "POST", JOBS + ":cancel", {"where": {"state": ["delayed"]},
                                                            "dry_run": True}).json
        require_equal(dry, {"count": 1, "cursor": None, "dry_run": True})
        require_equal(client.get(JOBS + "/b").json["state"], "delayed")
        every = {"where": {"all": True}}
        done = client.expect(200, "POST", JOBS + ":cancel", {**every, "reason": "all"}).json
        require_equal(done, {"count": 3, "cursor": None, "dry_run": False})
        require_equal(client.post(JOBS + ":retry", {"where": {"state": ["cancelled"], "limit": 1}}
                                  ).json["count"], 1)
        dry = client.expect(200, "POST", JOBS + ":purge", {**every, "dry_run": True}).json
        require_equal(dry["count"], 3)
        require_equal(client.post(JOBS + ":purge", every).json["count"], 3)
        require_equal(len(ids(client.get(JOBS))), 1)


def test_a_dry_run_counts_what_the_call_changes(options):
    """For all combinations of states, `count` with dry_run equals that of the real call."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        def set_up():
            connection.call("DEL", "q")
            for name in "abcdefgh":
                add(client, name, group="STATE")
            client.expect(200, "PATCH", JOBS + "/h", {"delay_ms": 60000})
            a, b, c, _ = pop(client, count=4)
            client.expect(200, "POST", JOBS + "/a:ack", {"lease": a["lease"]})
            client.expect(200, "POST", JOBS + "/b:nack", {"lease": b["lease"], "mode": "fatal"})
            client.expect(200, "POST", JOBS + "/c:cancel", {"grace_ms": 60000})
            client.expect(200, "POST", JOBS + "/e:cancel", {})
            return c

        # Each with the counts of purge, retry and cancel.
        for where, counts in (({"all": True}, (3, 1, 5 - 1)), ({"state": ["active"]}, (0, 0, 1)),
                              ({"state": ["pending"]}, (0, 0, 2)),
                              ({"state": ["ACTIVE", "Failed"]}, (1, 1, 1)),
                              ({"state": ["completed", "cancelled"]}, (2, 2, 0)),
                              ({"group": "STATE"}, (3, 1, 4)),
                              ({"all": True, "limit": 1}, (1, 1, 1))):
            for verb, count in zip(("purge", "retry", "cancel"), counts):
                set_up()
                path = f"{JOBS}:{verb}"
                dry = client.expect(200, "POST", path, {"where": where, "dry_run": True}).json
                done = client.expect(200, "POST", path, {"where": where}).json
                require_equal((dry["count"], dry["dry_run"], done["count"]), (count, True, count),
                              f"{verb} of {where}")
        set_up()
        told = {"where": {"state": ["active"]}, "reason": "GRACE"}
        require_equal(client.post(JOBS + ":cancel", {**told, "dry_run": True}).json["count"], 1)
        told["grace_ms"] = 1000
        require_equal(client.post(JOBS + ":cancel", {**told, "dry_run": True}).json["count"], 2)
        for where, field in (({"state": ["active", "none"]}, "state"),
                             ({"state": ["active"], "older_ms": -1}, "older_ms")):
            members = require_problem(client.post(JOBS + ":purge", {"where": where,
                                                                    "dry_run": True}),
                                      422, "BADFIELD")
            require_equal(members["field"], field)


def test_configuration(options):
    """Fields are set all or none, for the queue, its groups and keys."""
    server = serve(options)
    with Client(server) as client:
        config = client.expect(200, "PATCH", QUEUE + "?create=true", {
            "max_active": 5, "retry": 2, "fair": True, "rate": "10/1000"}).json
        require_equal((config["max_active"], config["retry"], config["fair"]), (5, 2, "on"))
        require(config["rate"].startswith("10/1000"), config["rate"])
        require_problem(client.request("PATCH", QUEUE, {"max_active": 6, "retry": -1}), 422,
                        "BADFIELD")
        require_equal(client.get(QUEUE + "/config").json["max_active"], 5)
        rule = client.expect(200, "PATCH", QUEUE + "?group_glob=team.*", {"max_active": 2}).json
        require_equal(rule, {"max_active": 2})
        require_equal(client.get(QUEUE + "/config?group_glob=team.*").json, {"max_active": 2})
        require_problem(client.get(QUEUE + "/config?group=a&key=b"), 422, "BADFIELD")
        for name in "xyz":
            add(client, name, group="team.1")
        require_equal(len(pop(client, count=3)), 2, "jobs of a group with two slots")
        group, = client.get(QUEUE + "/groups").json["groups"]
        require_equal((group["name"], group["pending"], group["active"], group["max_active"]),
                      ("team.1", 1, 2, 2))
        bands = client.get(QUEUE + "/bands").json["bands"]
        require_equal([band["name"] for band in bands],
                      ["CRITICAL", "HIGH", "NORMAL", "LOW", "BACKGROUND"])


def buckets_of(client, which="wait_buckets"):
    bands = client.expect(200, "GET", QUEUE + "/bands?with=" + which).json["bands"]
    return {band["name"]: dict(band[which]) for band in bands}


def test_buckets_tell_a_stall_that_quantiles_hide(options):
    """The difference of two samples of a band's buckets is what was started in between."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        for first in range(0, 2000, 100):
            connection.pipeline([("Q.ADD", "q", f"j{first + n}", "", "PRI", "HIGH")
                                 for n in range(100)])
            connection.call("Q.POP", "1", "q", "COUNT", "100")
        before = buckets_of(client)
        band = client.get(QUEUE + "/bands").json["bands"][1]
        require("wait_buckets" not in band, band)
        require_equal(sum(before["HIGH"].values()), band["wait_ms"]["count"])
        require_equal(band["wait_ms"]["count"], 2000)
        require_equal(before["LOW"], {})
        add(client, "slow", pri="HIGH")
        time.sleep(0.6)
        job, = pop(client)
        after = buckets_of(client)
        came = {ms: count - before["HIGH"].get(ms, 0) for ms, count in after["HIGH"].items()
                if count != before["HIGH"].get(ms, 0)}
        (wait_ms, count), = came.items()
        require(count == 1 and 600 <= wait_ms < 5000, came)
        require(client.get(QUEUE + "/bands").json["bands"][1]["wait_ms"]["p95"] < 600,
                "the quantile over all time")
        bounds = list(after["HIGH"])
        require_equal(bounds, sorted(bounds), "the order of buckets")
        client.expect(200, "POST", JOBS + "/slow:ack", {"lease": job["lease"]})
        require_equal(sum(buckets_of(client, "run_buckets")["HIGH"].values()), 1, "runs")
        require_problem(client.get(QUEUE + "/bands?with=all"), 422, "BADFIELD")
        client.expect(200, "GET", QUEUE + "/bands?with=wait_buckets&with=run_buckets")
        require_equal(client.get("/api/v1/queues/none/bands?with=run_buckets").json["bands"][0]
                      ["run_buckets"], [])


def test_a_long_poll_waits_for_a_job(options):
    """:pop with wait_ms gets a job added later, once; waiting for an end works likewise."""
    server = serve(options)
    got = []

    def wait():
        with Client(server) as waiting:
            got.extend(waiting.post(QUEUE + ":pop", {"wait_ms": 30000, "worker": "w"}).json["jobs"])

    def end(name):
        with Client(server) as waiting:
            got.append(waiting.get(JOBS + f"/{name}?wait_ms=30000").json["state"])

    with Client(server) as client:
        def pops():
            return client.get(QUEUE).json["stats"]["waiting_pops"]
        require_equal(pop(client, wait_ms=10), [], "a pop of an empty queue")
        waiter = threading.Thread(target=wait)
        waiter.start()
        wait_until(lambda: pops() == 1, 20, "the waiting pop")
        add(client, "late")
        waiter.join(TIMEOUT_S)
        require_equal([job["id"] for job in got], ["late"])
        lease = got.pop()["lease"]
        waiter = threading.Thread(target=end, args=("late",))
        waiter.start()
        client.expect(200, "POST", JOBS + "/late:ack", {"lease": lease})
        waiter.join(TIMEOUT_S)
        require_equal(got, ["completed"])
        # One that is gone does not get a job.
        lost = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=TIMEOUT_S)
        lost.request("POST", QUEUE + ":pop", json.dumps({"wait_ms": 60000}),
                     {"Authorization": "Bearer " + OPERATE_TOKEN})
        wait_until(lambda: pops() == 1, 20, "the waiting pop")
        lost.close()
        wait_until(lambda: pops() == 0, 20, "the end of a lost pop")
        add(client, "next")
        require_equal(client.get(JOBS + "/next").json["state"], "pending")


def test_events_stream_without_a_gap(options):
    """A stream starts as requested, resumes after Last-Event-ID, and reports lost events."""
    server = serve(options)
    with Client(server) as client:
        stream = Stream(server, QUEUE + "/events")
        for number in range(3):
            add(client, f"a{number}")
        events = [stream.next() for _ in range(3)]
        require_equal([(event["event"], json.loads(event["data"])["id"]) for event in events],
                      [("added", f"a{number}") for number in range(3)])
        stream.close()
        for number in range(1200):
            client.post(JOBS, {"id": f"b{number}", "payload": ""})
        stream = Stream(server, QUEUE + "/events", last_id=events[1]["id"])
        numbers = [int(stream.next()["id"]) for _ in range(1201)]
        first = int(events[1]["id"]) + 1
        require_equal(numbers, list(range(first, first + 1201)), "numbers of events")
        job, = pop(client)
        client.expect(200, "POST", JOBS + f"/{job['id']}:ack", {"lease": job["lease"]})
        require_equal([stream.next()["event"] for _ in range(2)], ["started", "completed"])
        only = Stream(server, QUEUE + "/events?after=-&type=completed")
        require_equal(json.loads(only.next()["data"])["id"], "a0")
        only.close()
        with server.connect() as connection:
            connection.call("DEL", "q")
        require_equal(stream.next()["event"], "problem")
        stream.close()
        require_problem(client.get(QUEUE + "/events?after=5",
                                   headers={"Accept": "text/event-stream"}), 409, "TRIMMED")


def test_a_silent_stream_says_that_it_is_there(options):
    """After fifteen seconds without an event a comment is sent, and the stream continues."""
    if options.io_threads != 1:
        return  # it takes as long
    server = serve(options)
    with Client(server) as client:
        stream = Stream(server, QUEUE + "/events")
        began = time.monotonic()
        require_equal(stream.response.readline(), b": still here\n")
        require(14 < time.monotonic() - began < 25, f"after {time.monotonic() - began} s")
        add(client, "a")
        require_equal(stream.next()["event"], "added")
        stream.close()


def test_pages_of_events(options):
    """Without a stream events are returned in pages, each of which says where the next begins."""
    server = serve(options)
    with Client(server) as client:
        for name in "abc":
            add(client, name)
        page = client.expect(200, "GET", QUEUE + "/events?count=2").json
        require_equal([event["id"] for event in page["events"]], ["a", "b"])
        page = client.expect(200, "GET", QUEUE + "/events?after=" + page["next"]).json
        require_equal([(event["type"], event["id"]) for event in page["events"]], [("added", "c")])
        empty = client.expect(200, "GET", QUEUE + "/events?after=" + page["next"]).json
        require_equal((empty["events"], empty["next"]), ([], page["next"]))
        require_problem(client.get(QUEUE + "/events?after=x"), 422, "BADFIELD")
        require_problem(client.get(QUEUE + "/events?type=x"), 422, "BADFIELD")


def test_the_story_of_one_job(options):
    """`id` leaves out the events of other jobs, in pages and in streams; `next` says how far."""
    server = serve(options)
    path = QUEUE + "/events?after=-&id=%FF%2F"
    with Client(server) as client:
        client.expect(201, "POST", JOBS, {"id_base64": "/y8=", "payload": ""})
        for name in "abc":
            add(client, name)
        lease = pop(client)[0]["lease"]
        client.expect(200, "POST", JOBS + "/%FF%2F:ack", {"lease": lease})
        add(client, "d")
        page = client.expect(200, "GET", path).json
        require_equal([(event["type"], event["id_base64"]) for event in page["events"]],
                      [(kind, "/y8=") for kind in ("added", "started", "completed")])
        require_equal(page["next"], "7")
        page = client.expect(200, "GET", path.replace("after=-", "after=7")).json
        require_equal(page, {"events": [], "next": "7"})
        page = client.expect(200, "GET", path + "&count=2").json
        require_equal((len(page["events"]), page["next"]), (2, "5"))
        require_problem(client.get(QUEUE + "/events?id="), 422, "BADFIELD")
        stream = Stream(server, path)
        require_equal([stream.next()["event"] for _ in range(3)],
                      ["added", "started", "completed"])
        for name in "efg":
            add(client, name)
        client.expect(200, "POST", JOBS + "/%FF%2F:retry")
        require_equal(stream.next()["event"], "retrying")
        stream.close()


def test_the_next_jobs_in_dispatch_order(options):
    """by=dispatch lists what pops would take: here by fair share, and within a group's cap."""
    server = serve(options)
    with Client(server) as client:
        client.expect(200, "PATCH", QUEUE + "?create=true", {"fair": True, "max_active": 2})
        client.expect(200, "PATCH", QUEUE + "?group=capped", {"max_active": 1})
        for number in range(3):
            add(client, f"a{number}", group="a")
        for number in range(3):
            add(client, f"b{number}", group="b")
            add(client, f"c{number}", group="capped")
        path = JOBS + "?by=dispatch"
        answer = client.expect(200, "GET", path).json
        foretold = [job["id"] for job in answer["jobs"]]
        require_equal(foretold, ["a0", "b0", "c0", "a1", "b1", "a2", "b2"])
        require_equal(answer["cursor"], None)
        require_equal(ids(client.get(path + "&count=2&with=payload")), foretold[:2])
        require_equal([job["id"] for job in pop(client, count=2)], foretold[:2])
        require_equal(pop(client), [], "slots beyond the cap")
        require_equal(ids(client.get(path)), foretold[2:])
        require_problem(client.get(path + "&state=pending"), 422, "BADFIELD")


def test_what_is_answered_is_kept(options):
    """A job added over HTTP survives kill -9; the routes of journal and checkpoint work."""
    server = serve(options, {"appendonly": "yes", "appendfsync": "always"})
    with Client(server, ADMIN_TOKEN) as client:
        for number in range(20):
            add(client, f"j{number}")
        before = client.expect(200, "GET", "/api/v1/journal").json
        require(before["journal"]["durable_lsn"] >= 20, str(before))
        client.expect(202, "POST", "/api/v1/checkpoint")

        def written():
            return client.get("/api/v1/journal").json["checkpoint"]["number"] >= 1
        wait_until(written, 20, "the checkpoint")
    server.kill()
    server.start()
    with server.connect() as connection:
        stats = connection.call("Q.STATS", "q").value
        require_equal(stats[stats.index(b"pending") + 1], 20)


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__], THREADS))
