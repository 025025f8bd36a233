#!/usr/bin/python3
"""Steering over HTTP: trials of a configuration, rules of workers, lists of workers, groups, keys,
facts of the server.

    tests/http/steering_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import hashlib
import sys

from harness import info, require, require_equal, run, wait_until
from harness.http_client import (ADMIN_TOKEN, OPERATE_TOKEN, READ_TOKEN, THREADS, Client, quoted,
                                 require_problem, serve)

QUEUE = "/api/v1/queues/q"
JOBS = QUEUE + "/jobs"


def add(client, *names, **others):
    for name in names:
        client.expect(201, "POST", JOBS, {"id": name, "payload": "", **others})


def pop(client, **others):
    return client.expect(200, "POST", QUEUE + ":pop", others).json["jobs"]


def tried(client, query, fields):
    answer = client.expect(200, "PATCH", f"{QUEUE}?dry_run=true{query}", fields).json
    require_equal(list(answer), ["complete", "dropped", "events_dropped", "matched", "slots",
                                 "slots_over", "total_over", "waiting_over"])
    return {name: value for name, value in answer.items() if value}


def test_trials(options):
    """A dry run tells what is above the new limits and what is deleted, and changes nothing."""
    server = serve(options)
    with Client(server) as client:
        require_problem(client.request("PATCH", QUEUE + "?dry_run=true", {"max_active": 1}), 404,
                        "NOQUEUE")
        require_equal(client.get("/api/v1/queues").json["queues"], [])
        client.expect(200, "PATCH", QUEUE + "?create=true", {"max_active": 10})
        add(client, "a", "b", "c", group="ann", keys=["k"])
        add(client, "d", "e", group="bob")
        pop(client, count=2)
        before = client.get(QUEUE + "/config").json
        require_equal(tried(client, "", {"max_active": 1, "max_waiting": 2, "max_total": 4}),
                      {"complete": True, "matched": 1, "slots": 2, "slots_over": 1,
                       "total_over": 1, "waiting_over": 1})
        require_equal(tried(client, "", {"max_active": 2}),
                      {"complete": True, "matched": 1, "slots": 2})
        require_equal(tried(client, "", {"events": "3"}),
                      {"complete": True, "events_dropped": 4, "matched": 1, "slots": 2})
        require_equal(tried(client, "&group=ann", {"max_active": 1, "max_total": 1}),
                      {"complete": True, "matched": 1, "slots": 2, "slots_over": 1,
                       "total_over": 2})
        require_equal(tried(client, "&group_glob=*", {"max_waiting": 1}),
                      {"complete": True, "matched": 2, "slots": 2, "waiting_over": 1})
        # An exact rule wins over the glob.
        client.expect(200, "PATCH", QUEUE + "?group=bob", {"max_waiting": 5})
        require_equal(tried(client, "&group_glob=*", {"max_waiting": 1}),
                      {"complete": True, "matched": 2, "slots": 2})
        require_equal(tried(client, "&key=k", {"max_active": 1}),
                      {"complete": True, "matched": 1, "slots": 2, "slots_over": 1})
        require_equal(tried(client, "&group=none", {"max_active": 1}), {"complete": True})
        require_equal(tried(client, "&worker=w", {"quiet": True}), {"complete": True})
        members = require_problem(client.request("PATCH", QUEUE + "?dry_run=true",
                                                 {"max_active": 1, "paused": "no"}),
                                  422, "BADFIELD")
        require_equal((members["field"], members["nearest"]), ("paused", "none"))
        require_equal(client.get(QUEUE + "/config").json, before)
        require_equal(client.get(QUEUE + "/config?group=ann").json, {})


def test_a_trial_with_many_groups_and_rules(options):
    """It looks at 10,000 groups and finds the rules of 1,000; one name and the queue it counts."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        connection.pipeline([("Q.ADD", "q", f"j{number}", "x", "GROUP", f"g{number}")
                             for number in range(12_000)])
        require_equal(tried(client, "&group_glob=*", {"max_waiting": 1}), {"matched": 1000})
        require_equal(tried(client, "&group_glob=none*", {"max_waiting": 1}), {})
        require_equal(tried(client, "", {"max_waiting": 1}),
                      {"complete": True, "matched": 1, "waiting_over": 11_999})
        connection.pipeline([("Q.CONFIG", "q", "GROUP", f"g{number}", "SET", "max_active", "1")
                             for number in range(1001)])
        require_equal(tried(client, "&group_glob=*", {"max_waiting": 1}), {})
        require_equal(tried(client, "", {"bands": "A,B", "default_pri": "B", "max_waiting": 1}),
                      {"complete": True, "matched": 1, "waiting_over": 11_999})
        require_equal(tried(client, "&group=g7", {"max_waiting": 1}),
                      {"complete": True, "matched": 1})
        require_problem(client.request("PATCH", QUEUE + "?dry_run=true", {"default_pri": "B"}),
                        422, "BADFIELD")


def test_quiet_workers_and_resets(options):
    """A worker is made quiet and heard again; rules and fields are reset."""
    server = serve(options)
    with Client(server) as client:
        client.expect(200, "PATCH", QUEUE + "?create=true", {"max_active": 3})
        add(client, "a")
        rule = client.expect(200, "PATCH", QUEUE + "?worker_glob=host-7:*", {"quiet": True}).json
        require_equal(rule, {"quiet": "on"})
        require_equal(pop(client, worker="host-7:1"), [])
        require_equal(client.expect(200, "DELETE", QUEUE + "/config?worker_glob=host-7:*").json, {})
        require_equal(len(pop(client, worker="host-7:1")), 1)
        config = client.expect(200, "DELETE", QUEUE + "/config").json
        require_equal(config["max_active"], 0)
        require_problem(client.request("DELETE", "/api/v1/queues/none/config"), 404, "NOQUEUE")
        require_problem(client.request("DELETE", QUEUE + "/config", token=READ_TOKEN), 403,
                        "NOPERM")
        require_problem(client.get(QUEUE + "/config?group=a&worker=b"), 422, "BADFIELD")


def test_what_was_changed_meanwhile(options):
    """With `was` only the value that was seen is overwritten; else 412 with the present one."""
    server = serve(options)
    with Client(server) as client:
        require_equal(client.expect(200, "PATCH", QUEUE + "?create=true&was=max_active=0",
                                    {"max_active": 3}).json["max_active"], 3)

        def refused(query, fields, field, value):
            answer = client.request("PATCH", f"{QUEUE}?{query}", fields)
            members = require_problem(answer, 412, "CHANGED")
            require_equal((members["field"], members["value"]), (field, value))

        refused("was=max_active=0", {"max_active": 4}, "max_active", 3)
        refused("was=max_active=3&was=paused=out", {"max_active": 4}, "paused", "none")
        refused("was=max_active=0&dry_run=true", {"max_active": 4}, "max_active", 3)
        require_equal(client.get(QUEUE + "/config").json["max_active"], 3)
        client.expect(200, "PATCH", QUEUE + "?was=max_active=3&was=paused=none", {"max_active": 4})
        # The rules of groups, keys and workers; empty is what a rule does not set.
        for scope, field, first, second in (("group", "weight", 2, 2.5),
                                            ("key", "rate", "1/5", "2/5"),
                                            ("worker_glob", "quiet", "on", "off")):
            rule = f"{scope}=a&was={field}="
            client.expect(200, "PATCH", f"{QUEUE}?{rule}", {field: first})
            refused(rule, {field: second}, field, first)
            require_equal(client.expect(200, "PATCH", f"{QUEUE}?{rule}{first}",
                                        {field: second}).json, {field: second})
        # However it is written.
        client.expect(200, "PATCH", QUEUE + "?group=a&was=weight=2.50", {"weight": 1})
        refused("group=a&was=weight=", {"weight": 3}, "weight", 1)
        for bad in ("was=max_active", "was=nothing=1", "group=a&was=retry=1"):
            require_problem(client.request("PATCH", f"{QUEUE}?{bad}", {"paused": "in"}), 422,
                            "BADFIELD")
        require_problem(client.request("PATCH", "/api/v1/queues/none?was=max_active=0",
                                       {"max_active": 1}), 404, "NOQUEUE")
        changes = [change["words"] for change in client.get("/api/v1/changes").json["changes"]]
        require(["Q.CONFIG", "q", "SET", "max_active", "4", "IF", "max_active", "3", "paused",
                 "none"] in changes, changes)


def test_defaults(options):
    """What each field is while nobody sets it, from the rows that Q.CONFIG goes by."""
    server = serve(options)
    with Client(server) as client:
        client.expect(200, "PATCH", QUEUE + "?create=true", {"max_active": 3, "rate": "2/1s"})
        shown = client.get(QUEUE + "?with=defaults").json
        nothing_set = client.expect(200, "DELETE", QUEUE + "/config").json
        require_equal(shown["defaults"], {**nothing_set, "quiet": "off"})
        require_equal((shown["defaults"]["max_active"], shown["config"]["max_active"]), (0, 3))
        require("defaults" not in client.get(QUEUE).json, "what was not asked for")
        # One of them depends on another field.
        client.expect(200, "PATCH", QUEUE, {"priority_order": "desc", "max_active": 4})
        shown = client.get(QUEUE + "?with=defaults").json
        require_equal((shown["defaults"]["default_pri"], shown["config"]["default_pri"]), (0, 0))
        missing = client.get("/api/v1/queues/none?with=defaults").json
        require_equal((missing["config"], missing["defaults"]), (None, None))
        require_equal(require_problem(client.get(QUEUE + "?with=default"), 422,
                                      "BADFIELD")["nearest"], "defaults")


def test_rules(options):
    """All rules in pages, with the names of those that are for one name only."""
    server = serve(options)
    with Client(server) as client:
        client.expect(200, "PATCH", QUEUE + "?create=true&group_glob=team.*", {"max_active": 2})
        client.expect(200, "PATCH", QUEUE + "?group=a*", {"paused": "out"})
        client.expect(200, "PATCH", QUEUE + "?worker=w", {"quiet": True})
        rules, cursor = [], None
        while not rules or cursor:
            query = "?limit=1" + (f"&cursor={quoted(cursor)}" if cursor else "")
            page = client.expect(200, "GET", QUEUE + "/rules" + query).json
            rules += page["rules"]
            cursor = page["cursor"]
        require_equal(sorted(rules, key=lambda rule: rule["glob"]), [
            {"scope": "group", "glob": "a\\*", "name": "a*", "settings": {"paused": "out"}},
            {"scope": "group", "glob": "team.*", "name": None, "settings": {"max_active": 2}},
            {"scope": "worker", "glob": "w", "name": "w", "settings": {"quiet": "on"}}])
        require_equal(client.get("/api/v1/queues/none/rules").json, {"rules": [], "cursor": None})


def test_workers(options):
    """Those with leases by their deadlines, then the others; what each did, and when it spoke."""
    server = serve(options)
    with Client(server) as client:
        add(client, "a", "b", "c", "d")
        pop(client, worker="idle", id="d", lease_ms=60000)
        pop(client, id="a", lease_ms=90000)
        job, = pop(client, worker="busy", id="b", lease_ms=60000)
        client.expect(200, "POST", JOBS + "/d:ack", {"lease": 1})
        client.expect(200, "PATCH", QUEUE + "?worker=idle", {"quiet": True})
        busy, unnamed, idle = client.get(QUEUE + "/workers").json["workers"]
        require_equal((busy["name"], busy["active"], busy["quiet"]), ("busy", 1, False))
        require_equal([lease["id"] for lease in busy["leases"]], [job["id"]])
        require_equal((unnamed["name"], set(unnamed)), (None, {"name", "leases"}))
        require_equal((idle["name"], idle["leases"], idle["completed"], idle["quiet"]),
                      ("idle", [], 1, True))
        require(idle["seen"] > 1e12, f"{idle}")
        first = client.get(QUEUE + "/workers?limit=1").json
        require_equal([worker["name"] for worker in first["workers"]], ["busy", "idle"])
        rest = client.get(f"{QUEUE}/workers?limit=1&cursor={first['cursor']}").json
        require_equal([worker["name"] for worker in rest["workers"]], [None])


def test_the_jobs_of_a_dead_worker(options):
    """All runs of a worker end as if their leases had expired, call by call; nobody else's do.
    A dry run counts them."""
    server = serve(options, {"http-token": [f"operate >{OPERATE_TOKEN}", f"read >{READ_TOKEN}",
                                            "operate >of-pat-0123456789 user pat"],
                             "user": "pat on >pw ~* +@all -q.nack"})
    asked = {"where": {"worker": "host 7"}}
    with Client(server) as client, server.connect() as redis:
        redis.pipeline([("Q.ADD", "q", f"j{number}", "") for number in range(1200)])
        redis.pipeline([("Q.POP", "1", "q", "WORKER", "other")]
                       + [("Q.POP", "1", "q", "WORKER", "host 7", "COUNT", 256)] * 5)
        for token in READ_TOKEN, "of-pat-0123456789":
            require_problem(client.post(JOBS + ":nack", asked, token=token), 403, "NOPERM")
        for dry_run, left in (True, 1200), (False, 1):
            body = {**asked, "dry_run": dry_run}
            first = client.expect(200, "POST", JOBS + ":nack", body).json
            require_equal((first["count"], first["dry_run"]), (1000, dry_run))
            rest = client.expect(200, "POST", JOBS + ":nack",
                                 {**body, "cursor": first["cursor"]}).json
            require_equal(rest, {"count": 199, "cursor": None, "dry_run": dry_run})
            require_equal(client.get(QUEUE).json["stats"]["active"], left)
        job = client.get(JOBS + "/j7").json
        require_equal((job["state"], job["attempts"], job["crashes"]), ("pending", 1, 1))
        require_equal(client.get(JOBS + "/j0").json["worker"], "other")
        told, = client.get("/api/v1/changes").json["changes"]
        require_equal((told["words"], told["count"]),
                      (["Q.NACK", "q", "WHERE", "WORKER", "host 7"], 1199))
        answer = client.expect(200, "POST", "/api/v1/queues/none/jobs:nack", asked).json
        require_equal(answer["count"], 0)
        require_equal([line["name"] for line in client.get("/api/v1/queues").json["queues"]], ["q"])


def test_how_the_jobs_of_a_worker_are_given_back(options):
    """Lost (the default), failed, or as if they had never been taken; the error goes with them."""
    server = serve(options)
    worker = {"worker_base64": "/w=="}
    with Client(server) as client:
        client.expect(200, "PATCH", QUEUE + "?create=true", {"retry": 1, "backoff": "0:0"})
        add(client, "a")
        for how, attempts, crashes, retries, error in (
                ({"mode": "silent"}, 0, 0, 1, None), ({}, 1, 1, 1, None),
                ({"mode": "lost", "error": "x"}, 2, 2, 1, None),
                ({"mode": "fail", "error": "burnt"}, 3, 2, 0, "burnt")):
            require_equal(len(pop(client, **worker)), 1)
            told = client.expect(200, "POST", JOBS + ":nack", {"where": worker, **how}).json
            require_equal(told, {"count": 1, "cursor": None, "dry_run": False})
            job = client.get(JOBS + "/a").json
            require_equal((job["state"], job["attempts"], job["crashes"], job["retries_left"],
                           job["error"]), ("pending", attempts, crashes, retries, error))


def test_workers_of_all_queues(options):
    """The queues that have any, each with all of its workers; others' queues are left out."""
    server = serve(options, {"http-token": [f"operate >{OPERATE_TOKEN}",
                                            "read >of-pat-0123456789 user pat"],
                             "user": "pat on >pw ~o* +@all"})
    with Client(server) as client, server.connect() as connection:
        for queue in "one", "two", "other", "idle":
            connection.call("Q.ADD", queue, "j1", "x")
            connection.call("Q.ADD", queue, "j2", "x")
        connection.call("Q.POP", "1", "one", "WORKER", "ada", "COUNT", "2")
        connection.call("Q.POP", "1", "two", "WORKER", "ada")
        connection.call("Q.POP", "1", "two")
        job, = connection.call("Q.POP", "1", "other", "WORKER", "grace").value
        connection.call("Q.ACK", "other", "j1", job[job.index(b"lease") + 1])

        def found(query="", **others):
            answer = client.expect(200, "GET", "/api/v1/workers" + query, **others).json
            return [(line["name"], line["more"], {
                worker["name"]: [lease["id"] for lease in worker["leases"]]
                for worker in line["workers"]}) for line in answer["queues"]], answer["cursor"]

        one = ("one", False, {"ada": ["j1", "j2"]})
        other = ("other", False, {"grace": []})
        two = ("two", False, {"ada": ["j1"], None: ["j2"]})
        require_equal(found(), ([one, other, two], None))
        require_equal(found(token="of-pat-0123456789"), ([one, other], None))
        page, cursor = found("?limit=2")
        require_equal(page, [one, other])
        require_equal(found(f"?cursor={cursor}"), ([two], None))
        require_equal(found("?db=1"), ([], None))
        require_problem(client.get("/api/v1/workers?cursor=x"), 422, "BADFIELD")
        ada = client.get("/api/v1/workers").json["queues"][0]["workers"][0]
        require_equal((ada["active"], ada["quiet"], ada["completed"]), (2, False, 0))
        # The leases that end first are shown, the workers all.
        connection.pipeline([("Q.ADD", "one", f"k{number}", "x") for number in range(40)])
        for number in range(40):
            connection.call("Q.POP", "1", "one", "WORKER", f"w{number}")
        workers = client.get("/api/v1/workers").json["queues"][0]["workers"]
        require_equal(len(workers), 41)
        require_equal(sum(len(worker["leases"]) for worker in workers), 20)
        require_equal(sum(worker["active"] for worker in workers), 42)


def test_facts_of_the_server(options):
    """Version, connections, memory; journal and checkpoint only if data is kept."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        wait_until(lambda: info(connection, "clients")["connected_clients"] == "1", 20,
                   "the end of the start's connections")

        def alone():
            told = client.expect(200, "GET", "/api/v1/server").json
            return told if told["connections"]["http"]["open"] == 1 else None
        facts = wait_until(alone, 20, "the end of the start's connections by HTTP")
        told = info(connection, "server")
        require_equal(facts["version"], told["sluice_version"])
        require(abs(facts["now"] - int(told["server_time_usec"]) // 1000) < 60_000, f"{facts}")
        require(0 <= facts["uptime_s"] < 600, f"{facts}")
        require_equal(facts["connections"]["open"], 1)
        http = facts["connections"]["http"]
        require(http["requests"] >= 1 and http["most"] > 100 and http["rejected"] == 0, f"{http}")
        require(facts["memory"]["used"] > 100_000 and facts["memory"]["most"] == 0, f"{facts}")
        require_equal((facts["journal"], facts["checkpoint"]), (None, None))
    server = serve(options, {"appendonly": "yes", "appendfsync": "always", "maxmemory": "1gb"})
    with Client(server, ADMIN_TOKEN) as client:
        add(client, "a")
        facts = client.expect(200, "GET", "/api/v1/server").json
        require_equal((facts["journal"]["kind"], facts["journal"]["mode"]), ("local", "always"))
        require(facts["journal"]["units"] >= 1 and facts["journal"]["disk_bytes"] > 0, f"{facts}")
        require_equal(facts["memory"]["most"], 1 << 30)
        require_equal((facts["checkpoint"]["completed"], facts["checkpoint"]["last_s"]), (0, None))
        client.expect(202, "POST", "/api/v1/checkpoint")

        def written():
            told = client.get("/api/v1/server").json["checkpoint"]
            return told["completed"] == 1 and told["last_s"] > 1e9 and told["bytes"] > 0
        wait_until(written, 20, "the checkpoint")


def test_changes(options):
    """What was changed, by whom; many of a kind are one; others' queues are not told of."""
    server = serve(options, {"user": "pat on >of-pat ~pat:* +@all -@admin"})
    with Client(server) as client, Client(server, ADMIN_TOKEN) as admin:
        def told(asker=client):
            return asker.expect(200, "GET", "/api/v1/changes").json["changes"]

        for name in ("a", "b", "c"):
            add(client, name)
        require_equal(told(), [])
        queue = "/api/v1/queues/q"
        client.expect(200, "PATCH", queue, {"paused": "out"})
        client.expect(200, "PATCH", queue + "?dry_run=true", {"max_active": 1})
        client.expect(200, "PATCH", queue + "?group_glob=g*", {"max_active": 1})
        client.expect(404, "POST", queue + "/jobs/none:cancel", {})
        for name in ("a", "b"):
            client.expect(200, "POST", f"{queue}/jobs/{name}:cancel", {"reason": "r" * 500})
        client.expect(200, "POST", queue + "/jobs:retry", {"where": {"state": ["cancelled"]}})
        admin.expect(200, "DELETE", queue + "?confirm=true")
        changes = told()
        reason = "r" * 128 + "…"
        require_equal([(change["words"], change["count"]) for change in changes], [
            (["DEL", "q"], 1), (["Q.RETRY", "q", "WHERE", "STATE", "cancelled"], 2),
            (["Q.CANCEL", "q", "a", "REASON", reason], 2),
            (["Q.CONFIG", "q", "GROUP", "g*", "SET", "max_active", "1"], 1),
            (["Q.CONFIG", "q", "SET", "paused", "out"], 1)])
        require_equal({change["user"] for change in changes}, {"http-admin", "http-operate"})
        require_equal({change["token"] for change in changes[1:]},
                      {hashlib.sha256(OPERATE_TOKEN.encode()).hexdigest()[:16]})
        require(0 <= changes[0]["at"] - changes[-1]["at"] < 60_000, f"{changes}")
        session = client.expect(201, "POST", "/api/v1/session",
                                {"user": "pat", "password": "of-pat"}).json
        with Client(server, session["token"]) as pat:
            require_equal(told(pat), [])
            pat.expect(200, "PATCH", "/api/v1/queues/pat:q?create=true", {"max_active": 2})
            [own] = told(pat)
            require_equal((own["user"], own["token"], own["words"][1]), ("pat", None, "pat:q"))
        require_equal(len(client.get("/api/v1/changes?limit=2").json["changes"]), 2)
        require_problem(client.get("/api/v1/changes?limit=0"), 422, "BADFIELD")


def test_changes_with_long_names(options):
    """Names of queues and jobs are whole, and rights are those to the queue and not to a part."""
    long, job = "pat:" + "q" * 300 + "é", "j" * 512
    server = serve(options, {"user": f"pat on >of-pat ~{long} +@all -@admin"})
    with Client(server) as client:
        queue = f"/api/v1/queues/{quoted(long)}"
        client.expect(201, "POST", queue + "/jobs", {"id": job, "payload": ""})
        client.expect(200, "PATCH", queue, {"paused": "out"})
        client.expect(200, "POST", f"{queue}/jobs/{job}:cancel", {"reason": "r" * 500})
        client.expect(200, "PATCH", f"/api/v1/queues/{quoted(long[:128])}?create=true",
                      {"paused": "out"})
        session = client.expect(201, "POST", "/api/v1/session",
                                {"user": "pat", "password": "of-pat"}).json
        with Client(server, session["token"]) as pat:
            told = pat.expect(200, "GET", "/api/v1/changes").json["changes"]
        require_equal([change["words"] for change in told],
                      [["Q.CANCEL", long, job, "REASON", "r" * 128 + "…"],
                       ["Q.CONFIG", long, "SET", "paused", "out"]])


def test_lines(options):
    """One group, keys, limits in the list of queues, ended jobs that are kept."""
    server = serve(options)
    with Client(server) as client:
        client.expect(200, "PATCH", QUEUE + "?create=true", {"max_waiting": 7, "paused": "in"})
        line, = client.get("/api/v1/queues").json["queues"]
        require_equal((line["paused"], line["max_waiting"], line["max_total"]), ("in", 7, 0))
        require_equal(line["stats"]["kept"],
                      {"completed": 0, "failed": 0, "cancelled": 0, "expired": 0})
        client.expect(200, "PATCH", QUEUE, {"paused": "none"})
        client.expect(200, "PATCH", QUEUE + "?key=k", {"max_active": 2})
        add(client, "a", "b", group="ann/1", keys=["k"])
        pop(client, id="a")
        client.expect(200, "PATCH", QUEUE + "?group_glob=ann*", {"paused": "in"})
        add(client, "c", group="bob")
        require_equal({line["name"]: line["paused"]
                       for line in client.get(QUEUE + "/groups").json["groups"]},
                      {"ann/1": "in", "bob": "none"})
        client.expect(200, "PATCH", QUEUE + "?group=bob", {"paused": "out"})
        client.expect(200, "PATCH", QUEUE + "?group=ann%2F1", {"paused": "all"})
        require_equal({line["name"]: line["paused"]
                       for line in client.get(QUEUE + "/groups").json["groups"]},
                      {"ann/1": "all", "bob": "out"})
        group = client.get(QUEUE + "/groups/ann%2F1").json
        require_equal((group["name"], group["waiting"], group["active"]), ("ann/1", 1, 1))
        require_equal(client.get(QUEUE + "/keys").json["keys"],
                      [{"name": "k", "slots": 1, "max_active": 2, "utilization": 0.5}])
        client.expect(200, "POST", JOBS + "/b:cancel")
        require_equal(client.get(QUEUE).json["stats"]["kept"]["cancelled"], 1)


def test_very_many_keys(options):
    """More keys than the server examines in one step: it examines them in slices, and answers
    those in use most, and the rest together."""
    server = serve(options)
    with server.connect() as redis, Client(server) as client:
        redis.pipeline([("Q.ADD", "q", f"j{number}", "", "KEY", f"k{number}")
                        for number in range(20_000)])
        lines = client.get(QUEUE + "/keys").json["keys"]
        require_equal((len(lines), lines[-1]["name"]), (1001, "*"))


def test_dependents(options):
    """The blocked jobs that wait for a job: the first thirty, and how many there are."""
    server = serve(options)
    with Client(server) as client:
        add(client, "a")
        add(client, *[f"n{number}" for number in range(20)], needs=["a"])
        add(client, *[f"f{number}" for number in range(20)], after=["a"])
        job = client.get(JOBS + "/a?with=dependents").json
        require_equal((len(job["dependents"]), job["dependents_count"]), (30, 40))
        require_equal(job["dependents"][:2], ["n0", "n1"])
        require("dependents" not in client.get(JOBS + "/a").json, "dependents without a question")
        job, = pop(client)
        client.expect(200, "POST", JOBS + "/a:ack", {"lease": job["lease"]})
        job = client.get(JOBS + "/a?with=dependents").json
        require_equal((job["dependents"], job["dependents_count"]), ([], 0))
        members = require_problem(client.get(JOBS + "/a?with=dependants"), 422, "BADFIELD")
        require_equal(members["nearest"], "dependents")
        require_problem(client.get(JOBS + "?with=dependents"), 422, "BADFIELD")


def test_options(options):
    """What a job has of its own, as members with which another job can be added: whatever the queue
    says, and however its runs went. It is shown only to who asks."""
    server = serve(options)
    own = {"boost_ms": -5, "ttl_ms": 60_000, "lease_ms": 7000, "max_run_ms": 0, "retry": 2,
           "backoff": [10, 20]}
    none = {"boost_ms": 0, "ttl_ms": 0, "lease_ms": None, "max_run_ms": None, "retry": None,
            "backoff": None}
    with Client(server) as client, server.connect() as redis:
        client.expect(200, "PATCH", QUEUE + "?create=true", {"retry": 9, "max_run_ms": 50_000})
        add(client, "b")
        add(client, "a", pri="HIGH", **own)
        job, = pop(client, lease_ms=5000)
        client.expect(200, "POST", JOBS + "/a:nack", {"lease": job["lease"], "delay_ms": 0})
        job, = pop(client)
        client.expect(200, "POST", JOBS + "/a:nack", {"lease": job["lease"], "mode": "fatal"})
        shown = client.expect(200, "GET", JOBS + "/a?with=options").json["options"]
        require_equal(shown, own)
        for number, given in enumerate((shown, none)):
            add(client, f"again-{number}", **given)
            require_equal(client.get(f"{JOBS}/again-{number}?with=options").json["options"], given)
        require("options" not in client.get(JOBS + "/a").json, "options without a question")
        listed = client.expect(200, "GET", JOBS + "?with=options&state=failed&state=pending").json
        require_equal({job["id"]: job["options"] for job in listed["jobs"]},
                      {"a": own, "b": none, "again-0": own, "again-1": none})
        redis.call("ZADD", "waiting", 1, "m")
        redis.call("Q.ADOPT", "shown", "PENDING", "waiting", "ACTIVE", "running")
        require_equal(client.get("/api/v1/queues/shown/jobs/m?with=options").json["options"], None)


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__], THREADS))
