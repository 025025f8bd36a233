#!/usr/bin/python3
"""Results of the jobs that a popped job has waited for.

    tests/http/need_results_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import sys

from harness import require, require_equal, run
from harness.http_client import THREADS, Client, require_problem, serve

QUEUE = "/api/v1/queues/q"
JOBS = QUEUE + "/jobs"


def add(client, name, **others):
    client.expect(201, "POST", JOBS, {"id": name, "payload": "", **others})


def pop(client, **others):
    return client.expect(200, "POST", QUEUE + ":pop", others).json["jobs"]


def test_results_of_what_a_job_needs(options):
    """:pop brings them where it is asked to, whatever their bytes."""
    server = serve(options)
    with Client(server) as client:
        for name, result in ("a", "done"), ("b", None):
            add(client, name)
            lease = pop(client)[0]["lease"]
            client.expect(200, "POST", f"{JOBS}/{name}:ack", {"lease": lease, "result": result})
        client.expect(201, "POST", JOBS, {"id_base64": "/w==", "payload": ""})
        lease = pop(client)[0]["lease"]
        client.expect(200, "POST", JOBS + "/%FF:ack", {"lease": lease, "result_base64": "/g=="})
        add(client, "x", needs=["a", {"base64": "/w=="}], after=["b"])
        job, = pop(client, **{"with": ["need_results", "error"]})
        require_equal((job["need_results"], job["truncated"], job["error"]),
                      ({"a": "done", "base64:/w==": None, "base64:/w==_base64": "/g==", "b": ""},
                       False, None))
        members = require_problem(client.post(QUEUE + ":pop", {"with": ["need_result"]}), 422,
                                  "BADFIELD")
        require_equal((members["field"], members["nearest"]), ("with", "need_results"))
        add(client, "y")
        require("need_results" not in pop(client)[0], "results that nobody asked for")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__], THREADS))
