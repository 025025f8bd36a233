#!/usr/bin/python3
"""Changes on a condition (`was`): nobody undoes what somebody else has done meanwhile.

    tests/http/conditions_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import concurrent.futures
import sys

from harness import require, require_equal, run, scratch, wait_until
from harness.http_client import THREADS, Client, require_problem, serve
from harness.wall_clock import WallClock

QUEUE = "/api/v1/queues/q"
JOBS = QUEUE + "/jobs"
CLIENTS = 6
ROUNDS = 20


def add(client, *names, **others):
    for name in names:
        client.expect(201, "POST", JOBS, {"id": name, "payload": "", **others})


def cancel(client, name, **others):
    return client.expect(200, "POST", f"{JOBS}/{name}:cancel", others).json


def refused(answer, field, value):
    members = require_problem(answer, 412, "CHANGED")
    require_equal((members["field"], members["value"]), (field, value))


def test_a_retry_of_one_end(options):
    """`end` of a cancelled job names that end: what was retried and ended again is another one."""
    server = serve(options)
    with Client(server) as client:
        add(client, "a", "b", "c")
        path = JOBS + "/a:retry"
        first = cancel(client, "a")
        require_equal((first["result"], first["was"]), ("cancelled", "pending"))
        shown = client.get(JOBS + "/a").json
        require(abs(shown["finished"] - first["end"]) < 60_000, f"{first} of {shown}")
        refused(client.post(path, {"was": {"end": first["end"] - 1}}), "end", first["end"])
        refused(client.post(path, {"was": {"end": first["end"], "state": "failed"}}), "state",
                "cancelled")
        require_equal(client.expect(200, "POST", path, {"was": {"end": first["end"]}}).json,
                      {"state": "pending"})
        refused(client.post(path, {"was": {"end": first["end"]}}), "end", "")
        wait_until(lambda: client.get("/api/v1/session").json["now"] > shown["finished"] + 1,
                   what="a later millisecond")
        second = cancel(client, "a")
        refused(client.post(path, {"was": {"end": first["end"]}}), "end", second["end"])
        require_equal(client.get(JOBS + "/a").json["state"], "cancelled")
        # What runs on has no end, nor has what is not kept.
        popped, = client.expect(200, "POST", QUEUE + ":pop", {}).json["jobs"]
        require_equal(cancel(client, popped["id"]), {"result": "signalled", "was": "active"})
        client.expect(200, "PATCH", QUEUE, {"retain_completed": "0"})
        require_equal(cancel(client, "c"), {"result": "cancelled", "was": "pending"})
        require_problem(client.post(JOBS + "/c:retry", {"was": {"end": 1}}), 404, "NOJOB")


def test_moves_and_cancels(options):
    """Members of the job are compared, null as an empty text; nothing else may be named."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        add(client, "a", group="g")
        path = JOBS + "/a"
        refused(client.request("PATCH", path, {"pri": "LOW", "was": {"pri": "HIGH"}}), "pri",
                "NORMAL")
        as_added = {"pri": "NORMAL", "attempts": 0, "lease": "", "group": "g", "end": ""}
        moved = client.expect(200, "PATCH", path, {"pri": "LOW", "was": as_added}).json
        require_equal(moved["pri"], "LOW")
        refused(client.post(path + ":cancel", {"was": {"attempts": 1}}), "attempts", 0)
        require_equal(client.get(path).json["state"], "pending")
        for bad in ({"keys": ""}, {"nothing": ""}, {"successor": 0}, {"pri": None}, ["pri"], 7):
            members = require_problem(client.post(path + ":cancel", {"was": bad}), 422, "BADFIELD")
            require_equal(members["field"], "was")
        require_problem(client.request("PATCH", JOBS + "/none", {"pri": 1, "was": {"pri": 1}}),
                        404, "NOJOB")
        require_equal(cancel(client, "a", was={"attempts": 0, "end": ""})["result"], "cancelled")
        connection.call("ZADD", "waiting", 1, "m")
        connection.call("Q.ADOPT", "shown", "PENDING", "waiting", "ACTIVE", "running")
        shown = "/api/v1/queues/shown/jobs/m:cancel"
        refused(client.post(shown, {"was": {"state": "active"}}), "state", "pending")
        require_equal(client.expect(200, "POST", shown, {"was": {"state": "pending"}}).json,
                      {"result": "cancelled", "was": "pending"})


def test_one_condition_for_each_id(options):
    """Several jobs have a condition each, in the order of their ids; none hinders another."""
    server = serve(options)
    with Client(server) as client:
        names = ["a", "b", "c"]
        add(client, *names)
        lines = client.expect(200, "POST", JOBS + ":cancel", {"ids": names}).json["jobs"]
        require_equal([line["was"] for line in lines], ["pending"] * 3)
        was = [{"end": line["end"]} for line in lines]
        client.expect(200, "POST", JOBS + "/b:retry")
        lines = client.expect(200, "POST", JOBS + ":retry",
                              {"ids": names + ["none"], "was": was + [{}]}).json["jobs"]
        require_equal([line["status"] for line in lines], [200, 412, 200, 404])
        require_equal(lines[1]["error"]["code"], "CHANGED")
        for wrong in was[:2], was[0], was + [{}], 7:
            members = require_problem(client.post(JOBS + ":retry", {"ids": names, "was": wrong}),
                                      422, "BADFIELD")
            require_equal(members["field"], "was")
        for body in ({"where": {"all": True}, "was": was}, {"ids": ["a"], "was": [7]}):
            require_problem(client.post(JOBS + ":retry", body), 422, "BADFIELD")


def test_a_rule_is_removed_as_it_was_seen(options):
    """412 if it has another value, or sets more than was seen."""
    server = serve(options)
    with Client(server) as client:
        rule = f"{QUEUE}?create=true&group=ann"
        own = f"{QUEUE}/config?group=ann"
        client.expect(200, "PATCH", rule, {"paused": "out", "max_active": 3})
        refused(client.request("DELETE", own + "&was=paused=out"), "max_active", 3)
        refused(client.request("DELETE", own + "&was=paused=out&was=max_active=4"), "max_active",
                3)
        refused(client.request("DELETE", own + "&was=weight=2"), "weight", "")
        require_equal(client.get(own).json, {"paused": "out", "max_active": 3})
        require_equal(client.expect(200, "DELETE", own + "&was=max_active=3&was=paused=out").json,
                      {})
        client.expect(200, "PATCH", rule, {"weight": 0.1})
        require_equal(client.get(own).json, {"weight": 0.1})
        require_equal(client.expect(200, "DELETE", own + "&was=weight=0.1").json, {})
        require_problem(client.request("DELETE", own + "&was=wieght="), 422, "BADFIELD")
        # The queue may have other values besides.
        client.expect(200, "PATCH", QUEUE, {"retry": 2, "max_active": 5})
        refused(client.request("DELETE", QUEUE + "/config?was=retry=3"), "retry", 2)
        now = client.expect(200, "DELETE", QUEUE + "/config?was=retry=2").json
        require_equal((now["retry"], now["max_active"]), (0, 0))
        require_problem(client.request("DELETE", "/api/v1/queues/none/config?was=retry=0"), 404,
                        "NOQUEUE")
        require_problem(client.request("DELETE", own + "&was=paused"), 422, "BADFIELD")


def test_one_of_many_at_once(options):
    """Of those who saw the same, one changes it, whichever threads they are on."""
    server = serve(options)
    with Client(server) as client, concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        add(client, "a", pri=0)
        others = [Client(server) for _ in range(CLIENTS)]
        pri = client.get(JOBS + "/a").json["pri"]
        for number in range(1, ROUNDS + 1):
            def change(other, band, seen=pri):
                return other.request("PATCH", JOBS + "/a", {"pri": band, "was": {"pri": seen}})
            bands = [10 * number + index for index in range(CLIENTS)]
            answers = list(pool.map(change, others, bands))
            require_equal(sorted(answer.status for answer in answers),
                          [200] + [412] * (CLIENTS - 1))
            won, = [answer.json["pri"] for answer in answers if answer.status == 200]
            pri = client.get(JOBS + "/a").json["pri"]
            require_equal(pri, won)
        for other in others:
            other.close()


def test_a_clock_that_is_set(options):
    """An end keeps its name when the wall clock is set."""
    with scratch() as folder:
        clock = WallClock(folder)
        server = serve(options, environment=clock.environment())
        with Client(server) as client:
            add(client, "a")
            end = cancel(client, "a")["end"]
            before = client.get(JOBS + "/a").json["finished"]
            clock.step_ms(3_600_000)
            wait_until(lambda: client.get(JOBS + "/a").json["finished"] > before + 3_000_000,
                       what="the other time")
            client.expect(200, "POST", JOBS + "/a:retry", {"was": {"end": end}})


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__], THREADS))
