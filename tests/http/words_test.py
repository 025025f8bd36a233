#!/usr/bin/python3
"""Words of the commands' grammar and characters of globs, where the HTTP API takes names.

    tests/http/words_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import re
import sys

from harness import require, require_equal, run
from harness.http_client import THREADS, Client, quoted, require_problem, serve

QUEUE = "/api/v1/queues/q"
JOBS = QUEUE + "/jobs"


def add(client, name, **others):
    client.expect(201, "POST", JOBS, {"id": name, "payload": "", **others})


def ids(answer):
    return sorted(job["id"] for job in answer.json["jobs"])


# Names that a glob would take in another way, and words of the grammar.
SHARP_NAMES = ["*", "?", "[", "]", "\\", "^", "-", "a*", "a?b", "[ab]", "[^a]", "[a-c]", "a\\",
               "\\*", "a\\\\b", "**", "ALL", "WHERE", "GROUP", "STATE", "a b", "%2A", "é*"]


def test_all_jobs_are_said(options):
    """A call on many jobs names a criterion or says all: nothing else means every job."""
    server = serve(options)
    with Client(server) as client:
        for name in "abc":
            add(client, name, group="g")
        for verb in "cancel", "retry", "purge":
            for where in ({}, {"limit": 5}, {"all": False}, {"all": None}, {"state": []},
                          {"group": None}, {"all": False, "limit": 1}):
                for extra in {}, {"dry_run": True}, {"cursor": "0"}:
                    members = require_problem(
                        client.post(f"{JOBS}:{verb}", {"where": where, **extra}), 422, "BADFIELD")
                    require_equal(members["field"], "where")
                    require("group_glob" in members["detail"] and "all: true" in members["detail"],
                            members)
            for where, field in (({"all": True, "state": ["pending"]}, "all"),
                                 ({"all": True, "group": "g"}, "all"),
                                 ({"all": "true"}, "all"), ({"all": 1}, "all"),
                                 ({"group": "g", "group_glob": "g"}, "group")):
                members = require_problem(client.post(f"{JOBS}:{verb}", {"where": where}),
                                          422, "BADFIELD")
                require_equal(members["field"], field)
            require_problem(client.post(f"{JOBS}:{verb}", {}), 422, "BADFIELD")
            require_problem(client.post(f"{JOBS}:{verb}?all=true", {}), 422, "BADFIELD")
        require_equal(ids(client.get(JOBS + "?state=pending")), ["a", "b", "c"])
        for query in "?all=true", "?limit=5", "?all=false", "?all=true&limit=5":
            require_equal(len(ids(client.get(JOBS + query))), 3, query)
        require_equal(len(ids(client.get(JOBS + "?limit=2"))), 2)
        for query in "?all=true&state=pending", "?all=yes", "?group=a&group_glob=b":
            require_problem(client.get(JOBS + query), 422, "BADFIELD")


def test_reserved_words_are_no_ids(options):
    """No route takes a word of the grammar for an id: it would mean other jobs, or none."""
    server = serve(options)
    with Client(server) as client:
        for name in "abc":
            add(client, name)
        for name in ("where", "WHERE", "wHeRe", "%77here", "%57%48%45%52%45", "all", "ALL", "%61ll",
                     "*", "%2A"):
            job = f"{JOBS}/{name}"
            answers = [client.post(job + ":cancel", {}), client.post(job + ":cancel"),
                       client.post(job + ":cancel", {"reason": "x", "grace_ms": 0}),
                       client.post(job + ":retry"), client.post(job + ":retry", {}),
                       client.post(job + ":ack", {"lease": 1}),
                       client.post(job + ":nack", {"lease": 1}),
                       client.post(job + ":touch", {"lease": 1}),
                       client.request("PATCH", job, {"place": "front"}), client.get(job),
                       client.get(job + "/log"),
                       client.get(f"{QUEUE}/events?after=-&id={name}"),
                       client.request("DELETE", f"/api/v1/grading_queue/{name}"),
                       client.get(f"/api/v1/grading_queue/{name}/status"),
                       client.request("PUT", f"/api/v1/admin/executions/{name}/priority",
                                      {"priority": "high"})]
            for number, answer in enumerate(answers):
                members = require_problem(answer, 422, "BADFIELD")
                require_equal(members["field"], "id", f"{name} {number}")
        for name in "where", "Where", "ALL", "all", "*", "":
            for path, body in ((JOBS, {"id": name, "payload": ""}),
                               (QUEUE + ":pop", {"id": name}),
                               (JOBS, {"payload": "", "needs": [name]}),
                               (JOBS, {"payload": "", "after": [name]})):
                require_problem(client.post(path, body), 422, "BADFIELD")
            grading = {"key": name, "collation": {"type": "team", "id": "7"}, "priority": 0}
            for path in "", "/immediate":
                members = require_problem(
                    client.request("PUT", "/api/v1/grading_queue" + path, grading), 422, "BADFIELD")
                require_equal(members["field"], "key")
            require_problem(client.request("PUT", "/api/v1/grading_queue/move",
                                           {"jobKey": name, "moveAction": "release"}),
                            422, "BADFIELD")
        require_equal(ids(client.get(JOBS + "?state=pending")), ["a", "b", "c"])


def test_names_of_groups_are_literal(options):
    """`group` means the group of this name; a glob is said. So do rules of groups and keys."""
    server = serve(options)
    with Client(server) as client:
        everybody = SHARP_NAMES + ["a" * 512, "*" * 512]
        for number, name in enumerate(everybody):
            add(client, f"j{number}", group=name, keys=[name])
        for number, name in enumerate(everybody):
            written = quoted(name)
            require_equal(ids(client.get(f"{JOBS}?group={written}")), [f"j{number}"], repr(name))
            where = {"group": name}
            counted = client.post(JOBS + ":cancel", {"where": where, "dry_run": True}).json
            require_equal(counted["count"], 1, repr(name))
            rule = client.expect(200, "PATCH", f"{QUEUE}?group={written}",
                                 {"max_total": number + 10}).json
            require_equal(rule, {"max_total": number + 10}, repr(name))
            client.expect(200, "PATCH", f"{QUEUE}?key={written}", {"max_active": number + 10})
        with server.connect() as connection:
            for number, name in enumerate(everybody):
                written = quoted(name)
                for what, field in ("group", "max_total"), ("key", "max_active"):
                    require_equal(client.get(f"{QUEUE}/config?{what}={written}").json,
                                  {field: number + 10}, repr(name))
                    escaped = re.sub(r"[*?\[\\]", r"\\\g<0>", name)
                    reply = connection.call("Q.CONFIG", "q", what, escaped, "GET").value
                    require_equal(reply[1], str(number + 10).encode(), repr(name))
        globbed = client.get(JOBS + "?group_glob=%2A&count=1000")
        require_equal(len(ids(globbed)), len(everybody))
        require_equal(client.get(QUEUE + "/config?group_glob=%2A").json, {})
        client.expect(200, "PATCH", QUEUE + "?key_glob=%2A", {"max_active": 3})
        require_equal(client.get(QUEUE + "/config?key=%2A").json, {"max_active": 10})
        for query in "?group=a&key=b", "?group=a&group_glob=a", "?key_glob=a&group_glob=a":
            require_problem(client.get(f"{QUEUE}/config{query}"), 422, "BADFIELD")
        star = client.post(JOBS + ":cancel", {"where": {"group": "*"}}).json
        require_equal(star["count"], 1, "the jobs of a user who is called *")
        rest = client.post(JOBS + ":cancel", {"where": {"group_glob": "*"}}).json
        require_equal(rest["count"], len(everybody) - 1)


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__], THREADS))
