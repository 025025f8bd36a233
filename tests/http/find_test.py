#!/usr/bin/python3
"""Finding: filters of jobs, failures in groups, changes of jobs by their ids, one text everywhere.

    tests/http/find_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import sys

from harness import require, require_equal, run
from harness.http_client import (OPERATE_TOKEN, READ_TOKEN, THREADS, Client, quoted, require_problem,
                                 serve)

QUEUE = "/api/v1/queues/q"
JOBS = QUEUE + "/jobs"
FAILURES = QUEUE + "/failures"


def fail(connection, errors, queue="q", *options):
    """Jobs `f0`, `f1`, … that have failed with these errors, in this order."""
    connection.pipeline([("Q.ADD", queue, f"f{number}", "", "PRI", "0", *options)
                         for number in range(len(errors))])
    for number, error in enumerate(errors):
        job, = connection.call("Q.POP", "1", queue, "ID", f"f{number}").value
        fields = dict(zip(job[::2], job[1::2]))
        connection.call("Q.NACK", queue, f"f{number}", fields[b"lease"], "FATAL", "ERROR", error)


def ids(answer):
    return [job["id"] for job in answer["jobs"]]


def test_filters_of_jobs(options):
    """Parts of ids and errors in any case, patterns, times; how many jobs were looked at."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        fail(connection, ["Timeout after 30 ms", "no room", "Timeout after 4 ms"], "q", "TAG",
             "lang", "c")
        connection.call("Q.ADD", "q", "Waiting-1", "x")

        def found(query):
            return ids(client.expect(200, "GET", f"{JOBS}?{query}").json)

        require_equal(found("error=timeout&state=failed"), ["f2", "f0"])
        require_equal(found("error=timeout&state=failed&by=age"), ["f0", "f2"])
        require_equal(sorted(found("error_pattern=Timeout%20after%20%23%20ms&tag=lang=c")),
                      ["f0", "f2"])
        require_equal(found("error_pattern=Timeout"), [])
        require_equal(found("id_part=TING"), ["Waiting-1"])
        require_equal(found("id_part=%FF"), [])
        connection.call("Q.ADD", "q", "paper", b'{"to": "Ada"}\xff')
        require_equal(found("payload_part=ADA&state=pending"), ["paper"])
        require_equal(found("payload_part=%22%7D%FF"), ["paper"])
        require_equal(found("payload_part=ada&id_part=waiting"), [])
        times = [client.get(f"{JOBS}/f{number}").json["finished"] for number in range(3)]
        require_equal(len(found(f"state=failed&since_ms={times[0]}&until_ms={times[2] + 1}")), 3)
        require_equal(found(f"state=failed&until_ms={times[0]}"), [])
        require_equal(found(f"state=failed&since_ms={times[2] + 1}"), [])
        answer = client.get(JOBS + "?state=failed&error=none").json
        require_equal((answer["jobs"], answer["looked_at"], answer["cursor"]), ([], 3, None))
        for query, field in (("since_ms=soon", "since_ms"), ("error=", "error"),
                             ("payload_part=", "payload_part"),
                             ("until_ms=-1", "until_ms"), ("eror=x", "eror")):
            members = require_problem(client.get(f"{JOBS}?{query}"), 422, "BADFIELD")
            require_equal(members["field"], field)
        where = {"error": "timeout", "state": ["failed"]}
        for dry_run in True, False:
            answer = client.post(JOBS + ":retry", {"where": where, "dry_run": dry_run}).json
            require_equal(answer["count"], 2)
        require_equal(found("state=failed"), ["f1"])


def test_look_further(options):
    """A request looks at ten thousand jobs; its cursor continues behind them."""
    count = 23_000
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        connection.pipeline([("Q.ADD", "q", f"j{number}", "x") for number in range(count)])
        connection.call("Q.ADD", "q", "wanted", "x")
        cursor, looked_at, found = "", [], []
        while cursor is not None:
            query = f"?id_part=WANT{'&cursor=' + cursor if cursor else ''}"
            answer = client.expect(200, "GET", JOBS + query).json
            cursor = answer["cursor"]
            looked_at.append(answer["looked_at"])
            found += ids(answer)
        require_equal(found, ["wanted"])
        require_equal(sum(looked_at), count + 1)
        require(all(10_000 <= number < 11_000 for number in looked_at[:-1]), f"{looked_at}")


def test_failures_in_groups(options):
    """Like errors are one group, the largest first, with its first, last and an example."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        require_equal(client.get(FAILURES).json,
                      {"looked_at": 0, "groups": [], "others": 0, "cursor": None})
        fail(connection, ["no room", "Timeout after 1 ms\nat a", "Timeout after 22 ms\nat b",
                          b"\xff"])
        answer = client.expect(200, "GET", FAILURES).json
        require_equal((answer["looked_at"], answer["others"], answer["cursor"]), (4, 0, None))
        first = answer["groups"][0]
        require_equal((first["pattern"], first["count"]), ("Timeout after # ms", 2))
        require_equal(first["example"], {"id": "f2", "error": "Timeout after 22 ms\nat b"})
        require_equal((first["first_ms"], first["last_ms"]),
                      tuple(client.get(f"{JOBS}/f{n}").json["finished"] for n in (1, 2)))
        bytes_, room = answer["groups"][1:]
        require_equal((bytes_["pattern"], bytes_["pattern_base64"], room["pattern"]),
                      (None, "/w==", "no room"))
        require_problem(client.get(FAILURES + "?cursor=x"), 422, "INVALID")
        where = {"state": ["failed"], "error_pattern": "Timeout after # ms"}
        require_equal(client.post(JOBS + ":retry", {"where": where}).json["count"], 2)
        where = {"error_pattern_base64": "/w=="}
        require_equal(client.post(JOBS + ":purge", {"where": where}).json["count"], 1)
        require_equal(client.get(FAILURES).json["looked_at"], 1)


def test_many_kinds_of_failures(options):
    """At most a hundred groups, and how many jobs are in none of them."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        errors = [f"no {chr(ord('a') + number % 26)}{chr(ord('g') + number // 26)}ost"
                  for number in range(130)]
        fail(connection, errors + errors[:1])
        answer = client.expect(200, "GET", FAILURES).json
        require_equal((len(answer["groups"]), answer["looked_at"], answer["others"]),
                      (100, 131, 30))
        require_equal((answer["groups"][0]["pattern"], answer["groups"][0]["count"]),
                      (errors[0], 2))
        # The others of equal size are the newest.
        require_equal(answer["groups"][1]["pattern"], errors[129])


def test_changes_of_named_jobs(options):
    """Each id has an answer of its own, in order; none hinders another."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        fail(connection, ["x"] * 3)
        connection.call("Q.ADD", "q", "p", "x")
        connection.call("Q.ADD", "q", b"\xff", "x")

        def change(verb, named, **others):
            lines = client.expect(200, "POST", f"{JOBS}:{verb}", {"ids": named, **others}).json
            return [(line["id"], line["status"], line.get("state") or line.get("result") or
                     line["error"]["code"]) for line in lines["jobs"]]

        require_equal(change("retry", ["f0", "none", "p", "WHERE", "f0"]),
                      [("f0", 200, "pending"), ("none", 404, "NOJOB"), ("p", 200, "pending"),
                       ("WHERE", 422, "BADFIELD"), ("f0", 200, "pending")])
        require_equal(change("cancel", ["f0", {"base64": "/w=="}, "f1", "none"], reason="why"),
                      [("f0", 200, "cancelled"), (None, 200, "cancelled"), ("f1", 409, "ENDED"),
                       ("none", 404, "NOJOB")])
        require_equal(client.get(JOBS + "/f0").json["error"], "why")
        require_equal(change("purge", ["f1", "p", "f1"]),
                      [("f1", 200, "purged"), ("p", 409, "NOTENDED"), ("f1", 404, "NOJOB")])
        require_equal(change("retry", []), [])
        connection.call("Q.ADD", "q", "d", "x", "DELAY", 60000)
        connection.call("Q.ADD", "q", "n", "x", "NEED", "d")
        lines = client.expect(200, "POST", JOBS + ":cancel", {"ids": ["n", "d", "f1"]}).json["jobs"]
        require_equal([line.get("was") for line in lines], ["blocked", "delayed", None])
        require_equal(len(change("cancel", [f"j{number}" for number in range(1000)])), 1000)
        for body, field in (({"ids": ["a"] * 1001}, "ids"), ({"ids": "a"}, "ids"),
                            ({"ids": [1.5]}, "ids"), ({"ids": ["a"], "where": {}}, "where"),
                            ({"ids": ["a"], "dry_run": True}, "dry_run"), ({}, "where")):
            members = require_problem(client.post(JOBS + ":purge", body), 422, "BADFIELD")
            require_equal(members["field"], field)
        require_problem(client.post(JOBS + ":purge", {"ids": ["f2"]}, token=READ_TOKEN), 403,
                        "NOPERM")
        require_equal(client.token, OPERATE_TOKEN)
        require_equal(change("purge", ["f2"]), [("f2", 200, "purged")])


def find(client, text, **others):
    return client.expect(200, "GET", f"/api/v1/find?q={quoted(text)}", **others).json


def test_find(options):
    """Queues by a part of their names, groups by their beginning, jobs by id, tags by value."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        nothing = {"queues": [], "groups": [], "jobs": [], "tags": [], "looked_at": 0,
                   "complete": True}
        require_equal(find(client, "mail"), nothing)
        for queue in "the-mail", "MAIL", "mail", "mail-2", "other":
            connection.call("Q.ADD", queue, "mail", "x", "GROUP", "mailing", "TAG", "lang", "c")
        connection.call("Q.ADD", "other", "x", "x", "GROUP", "mail", "TAG", "lang", "c++")
        connection.call("Q.POP", "1", "other", "ID", "x")
        found = find(client, "mail")
        require_equal([line["queue"] for line in found["queues"]],
                      ["mail", "mail-2", "MAIL", "the-mail"])
        require_equal(found["queues"][0], {"queue": "mail", "waiting": 1, "active": 0, "failed": 0})
        require_equal(sorted((line["queue"], line["group"]) for line in found["groups"]),
                      [("MAIL", "mailing"), ("mail", "mailing"), ("mail-2", "mailing"),
                       ("other", "mail"), ("other", "mailing"), ("the-mail", "mailing")])
        require({"queue": "other", "group": "mail", "waiting": 0, "active": 1} in found["groups"],
                f"{found['groups']}")
        require_equal(found["jobs"], [{"queue": queue, "id": "mail", "state": "pending"}
                                      for queue in ("MAIL", "mail", "mail-2", "other",
                                                    "the-mail")])
        require_equal((found["tags"], found["complete"]), ([], True))
        require_equal(find(client, "lang=c++")["tags"],
                      [{"queue": "other", "tag": "lang=c++", "count": 1, "added": 1}])
        require_equal(len(find(client, "lang=c")["tags"]), 5)
        require_equal(find(client, "x")["jobs"],
                      [{"queue": "other", "id": "x", "state": "active"}])
        for query in "", "?q=", "?q=" + "x" * 513, "?q=x&cursor=0":
            require_problem(client.get("/api/v1/find" + query), 422, "BADFIELD")
        for name in range(25):
            connection.call("Q.ADD", f"many{name}", "mail", "x")
        found = find(client, "man")
        require_equal((len(found["queues"]), found["complete"]), (20, False))
        require_equal(len(find(client, "mail")["jobs"]), 20)
        connection.call("SELECT", "3")
        connection.call("Q.ADD", "mail", b"\xff", "x")
        found = client.expect(200, "GET", "/api/v1/find?q=%FF&db=3").json
        require_equal(found["jobs"], [{"queue": "mail", "id": None, "id_base64": "/w==",
                                       "state": "pending"}])


def test_find_only_what_may_be_read(options):
    """Queues that the user may not read are as good as absent."""
    server = serve(options, {"http-token": ["read >of-limited-0123456789 user limited"],
                             "user": "limited on >pw ~mine* +@read"})
    with Client(server, "of-limited-0123456789") as client, server.connect() as connection:
        for queue in "mine", "secret":
            connection.call("Q.ADD", queue, "j", "x", "GROUP", "mine", "TAG", "lang", "c")
        for text in "mine", "j", "lang=c", "secret", "e":
            found = find(client, text)
            queues = {line["queue"] for kind in ("queues", "groups", "jobs", "tags")
                      for line in found[kind]}
            require_equal(queues, set() if text == "secret" else {"mine"}, text)
            require(found["looked_at"] <= 2, f"{found}")


def test_adopted_queues(options):
    """Members of adopted keys are found by their ids and times; they have no errors."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        now_ms = client.get("/api/v1/session").json["now"]
        connection.call("ZADD", "p", now_ms - 60_000, "old-job", now_ms - 1000, "young-job")
        connection.call("SADD", "r", "running-job")
        connection.call("Q.ADOPT", "q", "PENDING", "p", "ACTIVE", "r")

        def found(query):
            return sorted(ids(client.expect(200, "GET", f"{JOBS}?{query}").json))

        require_equal(found("id_part=OLD"), ["old-job"])
        require_equal(found("id_part=-job"), ["old-job", "running-job", "young-job"])
        require_equal(found(f"state=pending&since_ms={now_ms - 30_000}"), ["young-job"])
        require_equal(found(f"state=pending&until_ms={now_ms - 30_000}"), ["old-job"])
        require_equal((found("error=x"), found("error_pattern=x")), ([], []))
        require_equal(found("error_pattern=&id_part=old"), ["old-job"])
        require_equal(find(client, "running-job")["jobs"],
                      [{"queue": "q", "id": "running-job", "state": "active"}])
        require_equal(client.get(FAILURES).json["groups"], [])
        answer = client.expect(200, "PATCH", QUEUE + "?dry_run=true", {"max_waiting": 1}).json
        require_equal((answer["slots"], answer["waiting_over"]), (1, 1))
        lines = client.expect(200, "POST", JOBS + ":purge", {"ids": ["old-job"]}).json["jobs"]
        require_equal(lines[0]["error"]["code"], "ADOPTED")


def test_find_among_many_groups(options):
    """Ten thousand groups are looked at, and the one of the whole name is found in any case."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        connection.pipeline([("Q.ADD", "large", f"g{number}", "x", "GROUP", f"user{number}")
                             for number in range(30_000)])
        found = find(client, "user777")
        require_equal(found["groups"][0]["group"], "user777")
        require_equal(found["complete"], False)
        require(10_000 <= found["looked_at"] < 12_000, f"{found['looked_at']}")
        found = find(client, "user")
        require_equal((len(found["groups"]), found["complete"]), (20, False))


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__], THREADS))
