#!/usr/bin/python3
"""Mistyped input to the HTTP API: fields, words, durations, names of queues.

    tests/http/fields_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import sys
import threading

from harness import require, require_equal, run
from harness.http_client import ADMIN_TOKEN, THREADS, Client, quoted, require_problem, serve

QUEUES = "/api/v1/queues"
QUEUE = QUEUES + "/q"
JOBS = QUEUE + "/jobs"
STATES = ["blocked", "delayed", "pending", "active", "completed", "failed", "cancelled", "expired"]
BANDS = ["CRITICAL", "HIGH", "NORMAL", "LOW", "BATCH"]


def bad_field(answer, field, nearest=None, allowed=None):
    """The members of a BADFIELD that names what is meant."""
    members = require_problem(answer, 422, "BADFIELD")
    require_equal(members["field"], field, f"field of {members}")
    require_equal(members.get("nearest"), nearest, f"nearest of {members}")
    if nearest is not None:
        require(nearest in members["allowed"], members)
        require(f"did you mean {nearest}?" in members["detail"], members)
    if allowed is not None:
        require_equal(members.get("allowed"), allowed, f"allowed of {members}")
        for word in allowed:
            require(word in members["detail"], f"{word} in {members['detail']}")
    return members


def test_what_was_mistyped_is_named(options):
    """A bad field or word is answered with every word that is allowed, and the nearest."""
    server = serve(options)
    with Client(server, ADMIN_TOKEN) as client:
        client.expect(200, "PATCH", QUEUE + "?create=true", {"bands": ",".join(BANDS)})
        client.expect(201, "POST", JOBS, {"id": "a", "payload": ""})
        for body, field, nearest, allowed in [
                ({"max_actve": 5}, "max_actve", "max_active", None),
                ({"nonsense": 5}, "nonsense", None, None),
                ({"paused": "al"}, "paused", "all", ["none", "in", "out", "all"]),
                ({"fair": "maybe"}, "fair", None, ["off", "on"]),
                ({"full": "rejct"}, "full", "reject", ["reject", "displace"]),
                ({"default_pri": "NORML"}, "default_pri", "NORMAL", BANDS)]:
            bad_field(client.request("PATCH", QUEUE, body), field, nearest, allowed)
        members = bad_field(client.request("PATCH", QUEUE, {"max_actve": 5}), "max_actve",
                            "max_active")
        require("lease_ms" in members["allowed"] and "lease_ms" in members["detail"], members)
        members = bad_field(client.request("PATCH", QUEUE, {"rate": "20:1000"}), "rate")
        require("20/1000" in members["detail"] and "not 20:1000" in members["detail"], members)
        bad_field(client.post(JOBS, {"payload": "", "pri": "HIHG"}), "pri", "HIGH", BANDS)
        bad_field(client.post(JOBS, {"payload": "", "ifdup": "kep"}), "ifdup", "keep",
                  ["error", "keep", "update", "replace"])
        bad_field(client.get(JOBS + "?state=faild"), "state", "failed", STATES)
        bad_field(client.get(JOBS + "?state=nothing"), "state", None, STATES)
        bad_field(client.post(JOBS + ":retry", {"where": {"state": ["faild"]}}), "state", "failed",
                  STATES)
        bad_field(client.get(JOBS + "?by=aje"), "by", "age",
                  ["rank", "age", "deadline", "dispatch"])
        bad_field(client.get(JOBS + "?with=paylod"), "with", "payload",
                  ["payload", "result", "options"])
        bad_field(client.get(JOBS + "/a?with=option"), "with", "options",
                  ["payload", "result", "options", "dependents"])
        bad_field(client.get(QUEUE + "/events?type=complted"), "type", "completed")
        bad_field(client.get(QUEUE + "/bands?with=wait_bukets"), "with", "wait_buckets",
                  ["wait_buckets", "run_buckets"])
        bad_field(client.request("PATCH", JOBS + "/a", {"place": "fornt"}), "place", "front",
                  ["front", "back"])
        bad_field(client.request("PATCH", JOBS + "/a", {"pri": "lw"}), "pri", "LOW", BANDS)
        bad_field(client.post(JOBS + "/a:nack", {"lease": 1, "mode": "fatall"}), "mode", "fatal",
                  ["silent", "fail", "fatal"])
        worker = {"worker": "w"}
        bad_field(client.post(JOBS + ":nack", {"where": worker, "mode": "slient"}), "mode",
                  "silent", ["lost", "silent", "fail"])
        for body, field in (({}, "where"), ({"where": {}}, "where"), ({"where": "w"}, "where"),
                            ({"where": {"worker": ""}}, "worker"),
                            ({"where": {"worker": []}}, "worker"),
                            ({"where": {**worker, "group": "g"}}, "group"),
                            ({"where": {"all": True}}, "all"), ({"ids": ["a"]}, "where"),
                            ({"where": worker, "delay_ms": 5}, "delay_ms")):
            bad_field(client.post(JOBS + ":nack", body), field)
        bad_field(client.post("/api/v1/tokens", {"role": "raed"}), "role", "read",
                  ["read", "operate", "admin"])
        bad_field(client.get("/api/v1/admin/executions/?status=runing"), "status", "running")


def test_a_word_of_the_grammar_is_no_id(options):
    """`where` in the path selects no jobs, whatever the lease is; a lease is a number or `*`."""
    server = serve(options)
    with Client(server) as client:
        for name in "ab":
            client.expect(201, "POST", JOBS, {"id": name, "payload": ""})
        client.expect(200, "POST", QUEUE + ":pop", {"count": 2, "worker": "fail"})
        for word in "where", "WHERE", "wHere":
            for verb in "ack", "nack", "touch":
                for lease in "WORKER", "STATE", 1, "*":
                    body = {"lease": lease, **({"mode": "fail"} if verb == "nack" else {})}
                    bad_field(client.post(f"{JOBS}/{word}:{verb}", body), "id")
        for verb in "ack", "nack", "touch":
            for lease in "WORKER", "", "1x", "**", "AND":
                bad_field(client.post(f"{JOBS}/a:{verb}", {"lease": lease}), "lease")
        require_equal([job["state"] for job in client.get(JOBS).json["jobs"]], ["active"] * 2)


def test_words_of_commands_as_fields(options):
    """A field whose name is a word of Q.CONFIG is refused like any other that there is not."""
    server = serve(options)
    with Client(server, ADMIN_TOKEN) as client:
        client.expect(200, "PATCH", QUEUE + "?create=true", {"max_active": 3})
        for name in "if", "IF", "If", "set", "get", "try", "reset", "group", "where":
            for others in {}, {"max_active": 5}, {"max_active": 5, "zz": 2}:
                body = {**others, name: "x"}
                for query in "", "?dry_run=true", "?was=weight=1", "?group=g", "?key=k":
                    answer = client.request("PATCH", QUEUE + query, body)
                    members = require_problem(answer, 422, "BADFIELD")
                    require_equal(members["field"], name, f"{query} {body}")
                    if name.lower() == "if":
                        require("max_active" in members["allowed"], members)
        config = client.get(QUEUE + "/config").json
        require_equal(config["max_active"], 3, "unchanged")


def test_fields_have_the_names_that_were_sent(options):
    """What a command calls otherwise is named as the member, parameter or header, also in words."""
    server = serve(options)
    with Client(server) as client:
        client.expect(201, "POST", JOBS, {"id": "a", "payload": ""})
        for name, value in (("lease_ms", 5), ("max_run_ms", -1), ("max_wait_ms", -1),
                            ("delay_ms", -5), ("ttl_ms", -1), ("boost_ms", 2**62), ("needs", [""]),
                            ("keys", [""]), ("after", [""]), ("tags", {"": "x"})):
            members = bad_field(client.post(JOBS, {"payload": "", name: value}), name)
            require(members["detail"].startswith(name + " takes "), members)
            members = client.post(JOBS, [{"payload": "", name: value}]).json["jobs"][0]["error"]
            require_equal(members["field"], name)
        bad_field(client.request("PATCH", JOBS + "/a", {"delay_ms": -5}), "delay_ms")
        bad_field(client.post(JOBS + "/a:cancel", {"grace_ms": -5}), "grace_ms")
        for name in "older_ms", "since_ms", "until_ms":
            members = bad_field(client.get(f"{JOBS}?{name}=soon"), name)
            require(members["detail"].startswith(name + " takes "), members)
        bad_field(client.post(JOBS + ":cancel", {"where": {"older_ms": -1}}), "older_ms")
        for name in "id_part", "payload_part":
            bad_field(client.get(f"{JOBS}?{name}="), name)
        bad_field(client.get(JOBS + "?error_pattern=" + "x" * 600), "error_pattern")
        bad_field(client.get(JOBS + "?group_glob=" + "*" * 1100), "group_glob")
        bad_field(client.get(QUEUE + "/config?key_glob="), "key_glob")
        members = bad_field(client.get("/api/v1/admin/executions/?priority=norml"), "priority",
                            "NORMAL")
        require(members["detail"].startswith("priority takes "), members)
        bad_field(client.request("PUT", "/api/v1/admin/executions/a/priority",
                                 {"priority": "norml"}), "priority", "NORMAL")
        members = bad_field(client.get(QUEUE + "/events?after=xx"), "after")
        require(members["detail"].startswith("after takes the number of an event"), members)
        bad_field(client.request("GET", QUEUE + "/events", headers={
            "Accept": "text/event-stream", "Last-Event-ID": "xx"}), "Last-Event-ID")
        for query in "state=pending", "limit=3":
            members = bad_field(client.get(f"{JOBS}?by=dispatch&{query}"), "by")
            require("dispatch" in members["detail"], members)
        # A lease and its term.
        popped = client.post(QUEUE + ":pop", {"lease_ms": "20s"}).json["jobs"][0]
        bad_field(client.post(QUEUE + ":pop", {"lease_ms": 5}), "lease_ms")
        bad_field(client.post(JOBS + "/a:touch", {"lease": "x", "lease_ms": 5000}), "lease")
        bad_field(client.post(JOBS + "/a:touch", {"lease": popped["lease"], "lease_ms": 5}),
                  "lease_ms")


def test_the_bad_one_of_several_values_is_named(options):
    """Of repeated values the one that is not allowed, and not one that is."""
    server = serve(options)
    with Client(server) as client:
        client.expect(201, "POST", JOBS, {"id": "a", "payload": ""})
        for path, field, nearest, bad in (
                (JOBS + "?state=failed&state=faild", "state", "failed", "faild"),
                (JOBS + "?with=payload&with=resul", "with", "result", "resul"),
                (JOBS + "?pri=0&pri=HIGH&pri=NORML", "pri", "NORMAL", "NORML"),
                (JOBS + "/a?with=payload&with=dependants", "with", "dependents", "dependants"),
                (QUEUE + "/events?type=started&type=starte", "type", "started", "starte")):
            members = bad_field(client.get(path), field, nearest)
            require(f", not {bad};" in members["detail"], members)
        members = bad_field(client.post(JOBS + ":cancel", {
            "where": {"state": ["failed", "pendin"]}}), "state", "pending")
        require(", not pendin;" in members["detail"], members)
        members = bad_field(client.post(JOBS, {"payload": "", "backoff": [5, 1]}), "backoff")
        require(members["detail"].endswith(", not 5 1"), members)
        members = bad_field(client.post(JOBS, {"payload": "", "keys": list("abcde")}), "keys")
        require(members["detail"].endswith("at most 4 of them"), members)


def test_null_is_a_missing_field(options):
    """In a configuration as elsewhere."""
    server = serve(options)
    with Client(server) as client:
        client.expect(200, "PATCH", QUEUE + "?create=true", {"paused": "out", "max_active": 4})
        config = client.expect(200, "PATCH", QUEUE, {"paused": None, "max_active": 5}).json
        require_equal((config["paused"], config["max_active"]), ("out", 5))
        bad_field(client.request("PATCH", QUEUE, {"paused": None}), "")


def test_what_applies_to_a_refused_value(options):
    """The limit is the true one, bands are the new ones, and no suggestion is what was sent."""
    server = serve(options)
    with Client(server) as client:
        client.expect(201, "POST", JOBS, {"id": "a", "payload": ""})
        members = bad_field(client.post(JOBS, {"payload": "", "retry": 65536}), "retry")
        require("65535" in members["detail"], members)
        client.expect(201, "POST", JOBS, {"payload": "", "retry": 65535})
        members = bad_field(client.request("PATCH", QUEUE, {
            "bands": "A,B", "default_pri": "NORMAL"}), "default_pri", None, ["A", "B"])
        require(members["detail"].startswith("default_pri takes A or B, or a number"), members)
        for field, value, nearest in (("reserve", "nrmal:1", "NORMAL"), ("reserve", "HIGH:x", None),
                                      ("order", "lifo:nrmal", "NORMAL"), ("order", "lfo", "lifo"),
                                      ("order", "fifo:HIGH", None)):
            members = bad_field(client.request("PATCH", QUEUE, {field: value}), field, nearest)
            require(f", not {value}" in members["detail"], members)
        members = bad_field(client.request("PATCH", QUEUE, {"max_active": 4, "MAX_ACTIVE": 5}),
                            "max_active")
        require_equal(members["detail"], "max_active is given twice")
        for body in {"reqid": "w"}, {"reqid": "w", "id": "a"}:
            members = bad_field(client.post(QUEUE + ":pop", body), "worker")
            require("reqid requires one" in members["detail"], members)
        members = bad_field(client.post(QUEUE + ":pop", {"reqid": "w", "worker": ""}), "worker")
        require("reqid" not in members["detail"], members)


def test_members_that_exclude_each_other(options):
    """Two places or times of one job are refused by the names that were sent."""
    server = serve(options)
    with Client(server) as client:
        client.expect(201, "POST", JOBS, {"id": "a", "payload": ""})
        for body, field, other in (({"delay_ms": 5, "at": 5}, "at", "delay_ms"),
                                   ({"place": "front", "delay_ms": 5}, "delay_ms", "place"),
                                   ({"place": "back", "at": 5}, "at", "place")):
            members = bad_field(client.request("PATCH", JOBS + "/a", body), field)
            require_equal(members["detail"], "cannot be combined with " + other)
        added = {"payload": "", "delay_ms": "5s", "at": 5}
        members = bad_field(client.post(JOBS, added), "at")
        require_equal(members["detail"], "cannot be combined with delay_ms")
        require_equal(client.post(JOBS, [added]).json["jobs"][0]["error"]["field"], "at")
        # A member that is null is missing.
        client.expect(201, "POST", JOBS, {"payload": "", "delay_ms": None, "at": 5})


def test_unknown_members_name_those_that_are_known(options):
    """A member or a parameter that is unknown: those that the route takes, and the nearest."""
    server = serve(options)
    with Client(server) as client:
        client.expect(201, "POST", JOBS, {"id": "a", "payload": ""})
        members = bad_field(client.post(JOBS, {"payload": "", "delay": 5}), "delay")
        require({"payload", "delay_ms", "group", "tags"} <= set(members["allowed"]), members)
        require(not [name for name in members["allowed"] if name.endswith("_base64")], members)
        bad_field(client.post(JOBS, {"payload": "", "grop": "g"}), "grop", "group")
        bad_field(client.get(JOBS + "?stat=failed"), "stat", "state")
        bad_field(client.get(JOBS + "?cout=5"), "cout", "count")
        bad_field(client.post(JOBS + ":purge", {"where": {"worke": "w"}}), "worke", "worker")
        bad_field(client.post(QUEUE + ":pop", {"wrker": "w"}), "wrker", "worker")


def test_bytes_that_are_no_text_are_told(options):
    """Input may be arbitrary bytes, and long: the problem is still JSON."""
    server = serve(options)
    with Client(server) as client:
        client.expect(201, "POST", JOBS, {"id": "a", "payload": ""})
        bad_field(client.get(JOBS + "?state=%FF%FE"), "state", None, STATES)
        bad_field(client.get(JOBS + "?state=" + quoted("é" * 300)), "state", None, STATES)


def test_durations_have_units(options):
    """Where milliseconds are expected, a text with units is as good, in bodies and in queries."""
    server = serve(options)
    with Client(server) as client:
        config = client.expect(200, "PATCH", QUEUE + "?create=true", {
            "lease_ms": "30s", "ttl_ms": "1h30m", "backoff": "1s:5m", "rate": "20/1s:40",
            "retain_completed": "1000:1h", "max_run_ms": 5000}).json
        require_equal((config["lease_ms"], config["ttl_ms"], config["max_run_ms"]),
                      (30_000, 5_400_000, 5000))
        require_equal(config["backoff"], "1000:300000")
        require(config["rate"].startswith("20/1000:40"), config)
        client.expect(201, "POST", JOBS, {
            "id": "a", "payload": "", "delay_ms": "1h", "lease_ms": "45s", "max_run_ms": "2m",
            "ttl_ms": "1d", "retry": 1, "backoff": ["1s", 2000], "boost_ms": "250ms",
            "max_wait_ms": "2d"})
        job = client.get(JOBS + "/a").json
        require_equal((job["lease_ms"], job["max_run_ms"]), (45_000, 120_000))
        require(3_500_000 < job["not_before"] - job["enqueued"] <= 3_600_000, job)
        moved = client.expect(200, "PATCH", JOBS + "/a", {"delay_ms": "2h"}).json
        require(7_000_000 < moved["not_before"] - moved["enqueued"] <= 7_300_000, moved)
        require_equal(client.get(JOBS + "?older_ms=1h").json["jobs"], [])
        require_equal(len(client.get(JOBS + "?older_ms=0s").json["jobs"]), 1)
        where = {"where": {"older_ms": "1d"}, "dry_run": True}
        require_equal(client.post(JOBS + ":cancel", where).json["count"], 0)
        require_equal(client.get(QUEUE + "?window_ms=10s").status, 200)
        require_equal(client.get(JOBS + "/a?wait_ms=10ms").json["state"], "delayed")
        require_equal(client.post(QUEUE + ":pop", {"wait_ms": "5ms"}).json["jobs"], [])
        client.expect(200, "PATCH", JOBS + "/a", {"delay_ms": 0})
        # A job may be ranked as if added later.
        client.expect(201, "POST", JOBS, {"id": "late", "payload": "", "boost_ms": "-1m30s"})
        client.expect(201, "POST", JOBS, {"id": "later", "payload": ""})
        require_equal(client.get(JOBS + "/late").json["position"], 2)
        require_equal(client.expect(200, "PATCH", JOBS + "/late", {"boost_ms": "-0s"}).json[
            "position"], 1)
        client.expect(200, "POST", JOBS + ":cancel", {"ids": ["late", "later"]})
        lease = client.post(QUEUE + ":pop", {"lease_ms": "20s", "wait_ms": "10s"}).json["jobs"][0]
        touched = client.post(JOBS + "/a:touch", {"lease": lease["lease"], "lease_ms": "1m"}).json
        require(50_000 < touched["left_ms"] <= 60_000, touched)
        given = client.post(JOBS + "/a:nack", {"lease": lease["lease"], "delay_ms": "1h"}).json
        require_equal(given["state"], "delayed")


def test_durations_that_are_none(options):
    """Other texts are refused with the form that is expected."""
    server = serve(options)
    with Client(server) as client:
        client.expect(201, "POST", JOBS, {"id": "a", "payload": ""})
        for text in "5 s", "s", "5x", "-5s", "", "1.5s", "99999999999d", "5S":
            members = bad_field(client.post(JOBS, {"payload": "", "delay_ms": text}), "delay_ms")
            require("5s" in members["detail"], members)
        for body in {"delay_ms": 1.5}, {"delay_ms": []}, {"delay_ms": 2**64}:
            bad_field(client.post(JOBS, {"payload": "", **body}), "delay_ms")
        for text in "--5s", "-", "-5 s", "5s-5s", "- 5s", "-99999999999d":
            bad_field(client.post(JOBS, {"payload": "", "boost_ms": text}), "boost_ms")
        bad_field(client.get(JOBS + "?older_ms=soon"), "older_ms")
        bad_field(client.get(QUEUE + "?window_ms=2m"), "window_ms")
        bad_field(client.get(QUEUE + "?window_ms=10"), "window_ms")
        bad_field(client.post(QUEUE + ":pop", {"wait_ms": "2m"}), "wait_ms")
        bad_field(client.request("PATCH", QUEUE, {"lease_ms": "5 s"}), "lease_ms")


def test_units_of_time_are_for_times(options):
    """A unit in a number of jobs or bytes is refused, and is not a number of milliseconds."""
    server = serve(options)
    with Client(server) as client:
        client.expect(200, "PATCH", QUEUE + "?create=true", {"max_active": 1})
        before = client.get(QUEUE + "/config").json
        for field, value in (("max_payload", "1m"), ("max_active", "5m"), ("retry", "1s"),
                             ("log_bytes", "4m"), ("retain_completed", "1m:1h"),
                             ("rate", "1m/1s"), ("retain_failed", "1:1h:1m"), ("events", "1d"),
                             ("adaptive", "1s:8:1s:5s"), ("MAX_PAYLOAD", "1m")):
            answer = client.request("PATCH", QUEUE, {field: value})
            members = require_problem(answer, 422, "BADFIELD")
            require_equal(members["field"], field.lower())
            require(" takes " in members["detail"], members)
        require_equal(client.get(QUEUE + "/config").json, before)
        told = client.expect(200, "PATCH", QUEUE, {
            "ttl_ms": "2h", "rate": "20/1s:40", "backoff": "1s:5m", "retain_failed": "100:7d:5",
            "events": "10:1d", "adaptive": "1:8:1s:5s", "LEASE_MS": "30s"}).json
        require_equal([told[name] for name in ("ttl_ms", "rate", "backoff", "retain_failed",
                                               "events", "adaptive", "lease_ms")],
                      [7_200_000, "20/1000:40", "1000:300000", "100:604800000:5",
                       "10:86400000", "1:8:1000:5000", 30_000])


def test_no_queue_is_made_by_mistake(options):
    """A configuration for a queue that is not there is 404, unless create=true is said."""
    server = serve(options)
    with server.connect() as connection, Client(server) as client:
        connection.call("SET", "text", "x")
        for body in {"max_active": 1}, {"paused": "out"}, {"paused": "none"}, {"nonsense": 1}:
            for query in "", "?create=false", "?group=g", "?key_glob=*":
                members = require_problem(client.request("PATCH", QUEUE + query, body), 404,
                                          "NOQUEUE")
                require("create=true" in members["detail"], members)
        require_equal(connection.call("EXISTS", "q").value, 0, "queues that it made")
        bad_field(client.request("PATCH", QUEUE + "?create=yes", {"max_active": 1}), "create")
        require_problem(client.request("PATCH", QUEUES + "/text", {"paused": "out"}), 409,
                        "WRONGTYPE")
        client.expect(200, "PATCH", QUEUE + "?create=true", {"max_active": 3})
        require_equal(client.expect(200, "PATCH", QUEUE, {"paused": "out"}).json["max_active"], 3)
        # Only in that database.
        require_problem(client.request("PATCH", QUEUE + "?db=1", {"max_active": 1}), 404, "NOQUEUE")


def test_queues_are_deleted(options):
    """DELETE takes a queue with all it has, if it is confirmed, and nothing that is no queue."""
    server = serve(options)
    with server.connect() as connection, Client(server) as client:
        connection.call("SET", "text", "x")
        for name in "abc":
            client.expect(201, "POST", JOBS, {"id": name, "payload": ""})
        client.expect(200, "POST", QUEUE + ":pop", {})
        members = bad_field(client.request("DELETE", QUEUE), "confirm")
        require("dry_run" in members["detail"], members)
        bad_field(client.request("DELETE", QUEUE + "?confirm=false"), "confirm")
        counted = {"deleted": False, "waiting": 2, "active": 1}
        for query in "?dry_run=true", "?dry_run=true&confirm=true":
            require_equal(client.expect(200, "DELETE", QUEUE + query).json, counted)
        require_equal(connection.call("EXISTS", "q").value, 1)
        require_problem(client.request("DELETE", QUEUE + "?confirm=true&db=1"), 404, "NOQUEUE")
        for query in "?confirm=true", "?dry_run=true":
            require_problem(client.request("DELETE", QUEUES + "/none" + query), 404, "NOQUEUE")
            require_problem(client.request("DELETE", QUEUES + "/text" + query), 409, "WRONGTYPE")
        require_equal(client.expect(200, "DELETE", QUEUE + "?confirm=true").json,
                      {**counted, "deleted": True})
        require_equal(connection.call("EXISTS", "q").value, 0)
        require_equal(connection.call("GET", "text").value, b"x")
        require_problem(client.request("DELETE", QUEUE + "?confirm=true"), 404, "NOQUEUE")


def test_rights_hold_for_what_is_deleted(options):
    """A token's user can delete only what the rights allow, and learns nothing of other queues."""
    server = serve(options)
    with server.connect() as connection:
        connection.call("ACL", "SETUSER", "carol", "on", "~mine", "+q.stats", "+q.config", "+del")
        connection.call("ACL", "SETUSER", "dave", "on", "~mine", "+q.stats", "+q.config")
        secrets = {name: f"token-of-{name}-0123456789" for name in ("carol", "dave")}
        connection.call("CONFIG", "SET", "http-token", " ".join(
            f"operate >{secret} user {name}" for name, secret in secrets.items()))
        for name in "mine", "theirs":
            connection.call("Q.ADD", name, "*", "x")
        with Client(server, secrets["dave"]) as client:
            require_problem(client.request("DELETE", QUEUES + "/mine?confirm=true"), 403, "NOPERM")
        with Client(server, secrets["carol"]) as client:
            for name in "theirs", "nobodys":
                path = f"{QUEUES}/{name}"
                require_problem(client.request("DELETE", path + "?confirm=true"), 403, "NOPERM")
                require_problem(client.request("PATCH", path, {"max_active": 1}), 403, "NOPERM")
            client.expect(200, "DELETE", QUEUES + "/mine?confirm=true")
        require_equal(connection.call("EXISTS", "mine", "theirs").value, 1)


def test_what_is_no_queue_any_more_is_kept(options):
    """While the key is a queue and a string by turns, DELETE never takes the string."""
    server = serve(options)
    ended = threading.Event()
    lost = []

    def alternate():
        with server.connect() as connection:
            while not ended.is_set():
                connection.call("Q.ADD", "q", "*", "x")
                connection.call("DEL", "q")
                connection.call("SET", "q", "x")
                for _ in range(20):
                    if connection.call("EXISTS", "q").value != 1:
                        lost.append(True)
                connection.call("DEL", "q")

    thread = threading.Thread(target=alternate)
    thread.start()
    try:
        with Client(server) as client:
            statuses = {client.request("DELETE", QUEUE + "?confirm=true").status
                        for _ in range(3000)}
    finally:
        ended.set()
        thread.join()
    require(statuses <= {200, 404, 409}, statuses)
    require_equal(len(lost), 0, "strings that were deleted")


def test_a_pause_of_clients_is_told_as_one(options):
    """During CLIENT PAUSE changes get 503 with the time to retry; reading still works."""
    server = serve(options)
    with server.connect() as connection, Client(server) as client:
        client.expect(201, "POST", JOBS, {"id": "a", "payload": ""})
        connection.call("CLIENT", "PAUSE", "60000", "WRITE")
        answer = client.post(JOBS, {"payload": ""})
        members = require_problem(answer, 503, "BUSY")
        require("CLIENT PAUSE" in members["detail"] and "script" not in members["detail"], members)
        require_equal(members["reason"], "client_pause")
        require(50_000 < members["retry_after_ms"] <= 60_000, members)
        require(50 <= int(answer.headers["retry-after"]) <= 60, answer.headers)
        require_problem(client.request("DELETE", QUEUE + "?confirm=true"), 503, "BUSY")
        require_equal(client.get(JOBS + "/a").status, 200)
        connection.call("CLIENT", "UNPAUSE")
        client.expect(201, "POST", JOBS, {"payload": ""})
        connection.call("CLIENT", "PAUSE", "4000", "ALL")
        # Not "there are none": what has to ask each queue is refused as well.
        for path in ("/api/v1/queues", "/api/v1/find?q=a", JOBS + "/a"):
            require_problem(client.get(path), 503, "BUSY")
        connection.call("PING")  # It waits for the end.
        require_equal(len(client.get("/api/v1/queues").json["queues"]), 1)


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__], THREADS))
