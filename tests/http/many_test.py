#!/usr/bin/python3
"""POST …/jobs with an array: each job gets the answer that it would get alone.

    tests/http/many_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import sys

from harness import require, require_equal, run
from harness.http_client import READ_TOKEN, THREADS, Client, require_problem, serve

QUEUE = "/api/v1/queues/q"
JOBS = QUEUE + "/jobs"


def add(client, jobs):
    return client.expect(200, "POST", JOBS, jobs).json["jobs"]


def statuses(lines):
    return [line["status"] for line in lines]


def test_each_job_has_its_own_answer(options):
    """Ids, results and problems in the order of the array; one broken job hinders no other."""
    server = serve(options)
    with Client(server) as client:
        jobs = [{"id": "a", "payload": "1", "pri": "low"}, {"payload": "2"},
                {"id": "a", "payload": "3"}, {"id": "b"}, 7, None, [], "x",
                {"id": "c", "payload": "4", "what": 1}, {"id": "WHERE", "payload": "5"},
                {"id": "d", "payload": "6", "pri": "hihg"}, {"id": "e", "payload": "7",
                                                             "needs": ["none"]},
                {"id": "a", "payload": "8", "ifdup": "keep"},
                {"id_base64": "/w==", "payload": "9"},
                {"id": "f", "payload": "10", "needs": ["a"], "after": [{"base64": "/w=="}, "a"]}]
        lines = add(client, jobs)
        require_equal(statuses(lines), [201, 201, 409, 422, 400, 400, 400, 400, 422, 422, 422, 404,
                                        200, 201, 201])
        require_equal([line["error"]["code"] for line in lines if "error" in line],
                      ["DUPLICATE", "BADFIELD"] + ["BADJSON"] * 4 + ["BADFIELD"] * 3 + ["NOJOB"])
        require_equal([lines[index]["error"]["field"] for index in (3, 8, 9, 10)],
                      ["payload", "what", "id", "pri"])
        require_equal((lines[10]["error"]["nearest"], lines[11]["error"]["id"]), ("HIGH", "none"))
        require_equal(lines[0], {"status": 201, "id": "a", "result": "added", "state": "pending",
                                 "position": 0, "eta_ms": None})
        require_equal((lines[12]["result"], lines[13]["id"], lines[13]["id_base64"]),
                      ("kept", None, "/w=="))
        require_equal(lines[14]["state"], "blocked")
        shown = client.get(JOBS + "/f").json
        require_equal((shown["needs"], shown["after"]), (["a"], [{"base64": "/w=="}]))
        require("after" not in client.get(JOBS + "/a").json, "a job that comes after none")
        require_equal(client.get(QUEUE).json["stats"]["added"], 4)
        # The connection serves on, and one job is answered as ever.
        require_equal(client.expect(201, "POST", JOBS, {"id": "z", "payload": ""}).json["id"], "z")


def test_a_thousand_and_one_more(options):
    """1,000 jobs are added in their order, in several turns of the thread; 1,001 are none."""
    server = serve(options)
    with Client(server) as client:
        jobs = [{"id": f"j{number}", "payload": "x" * 100} for number in range(1000)]
        jobs[500] = {"payload": 1.5}
        members = require_problem(client.post(JOBS, jobs + [{"payload": ""}]), 422, "BADFIELD")
        require_equal(members["field"], "jobs")
        require_equal(client.get("/api/v1/queues").json["queues"], [], "queues that it made")
        lines = add(client, jobs)
        require_equal(statuses(lines), [201] * 500 + [422] + [201] * 499)
        require_equal([line["position"] for line in lines[501:]], list(range(500, 999)))
        popped = client.expect(200, "POST", QUEUE + ":pop", {"count": 256}).json["jobs"]
        require_equal([job["id"] for job in popped], [f"j{number}" for number in range(256)])
        # Again, as after a lost response: nothing is there twice.
        require_equal(set(statuses(add(client, [dict(job, ifdup="keep") for job in jobs]))),
                      {200, 422})
        require_equal(client.get(QUEUE).json["stats"]["added"], 999)
        require_equal(add(client, []), [])


def test_limits_in_the_middle(options):
    """What fills the queue is added, what follows is refused, with the hints."""
    server = serve(options)
    with Client(server) as client:
        client.expect(200, "PATCH", QUEUE + "?create=true", {"max_waiting": 2, "max_payload": 3})
        lines = add(client, [{"payload": "1"}, {"payload": "1234"}, {"payload": "2"},
                             {"payload": "3"}, {"payload": "4"}])
        require_equal(statuses(lines), [201, 413, 201, 429, 429])
        require_equal((lines[3]["error"]["code"], lines[3]["error"]["max"]), ("QFULL", 2))
        require(lines[3]["error"]["retry_after_ms"] > 0, f"when to try again: {lines[3]}")
        require_equal(client.get(QUEUE).json["stats"]["rejected"]["queue_full"], 2)


def test_who_may_not(options):
    """Bodies over the limit, roles below, users without the right, other databases, other types."""
    server = serve(options, {"http-max-body": "4kb",
                             "http-token": ["read >" + READ_TOKEN,
                                            "operate >of-limited-0123456789 user limited",
                                            "operate >operate-token-0123456789"],
                             "user": "limited on >pw ~q +q.get +q.list +q.stats +q.events +q.log"})
    with Client(server) as client, server.connect() as connection:
        answer = client.post(JOBS, [{"payload": "x" * 1000}] * 5)
        require_problem(answer, 413, "BODYTOOLARGE")
        client.close()
        require_problem(client.post(JOBS, [{"payload": ""}], token=READ_TOKEN), 403, "NOPERM")
        require_equal(statuses(add(client, [{"payload": ""}])), [201])
        lines = client.post(JOBS, [{"payload": ""}] * 2, token="of-limited-0123456789").json["jobs"]
        require_equal([(line["status"], line["error"]["code"]) for line in lines],
                      [(403, "NOPERM")] * 2)
        lines = client.expect(200, "POST", JOBS + "?db=3", [{"id": "other", "payload": ""}]).json
        require_equal(statuses(lines["jobs"]), [201])
        require_problem(client.post(JOBS + "?db=16", [{"payload": ""}]), 422, "BADFIELD")
        connection.call("SET", "text", "x")
        lines = client.post("/api/v1/queues/text/jobs", [{"payload": ""}]).json["jobs"]
        require_equal([(line["status"], line["error"]["code"]) for line in lines],
                      [(409, "WRONGTYPE")])
        connection.call("Q.ADOPT", "shown", "PENDING", "p", "ACTIVE", "r")
        lines = client.post("/api/v1/queues/shown/jobs", [{"payload": ""}]).json["jobs"]
        require_equal([line["error"]["code"] for line in lines], ["ADOPTED"])


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__], THREADS))
