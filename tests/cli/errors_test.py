#!/usr/bin/python3
"""sluice jobs --failed."""

import sys

from harness import require_equal, run
from harness.cli import serve


def fail_jobs(connection):
    for number in range(12):
        error = f"Timeout after {number} ms\nat line {number}" if number % 3 else "no such file"
        connection.call("Q.ADD", "exec", f"j{number:02}", "")
        job = connection.call("Q.POP", 1, "exec").value[0]
        connection.call("Q.NACK", "exec", f"j{number:02}", job[job.index(b"lease") + 1], "FATAL",
                        "ERROR", error)
    connection.call("Q.ADD", "exec", "waiting", "")


def test_jobs_of_an_error(options):
    """--failed selects the jobs that have failed, in any order."""
    server, sluice = serve(options)
    with server.connect() as connection:
        fail_jobs(connection)
    require_equal(len(sluice.json("jobs", "exec", "--failed")), 12, "--failed")
    require_equal([job["id"] for job in sluice.json("jobs", "exec", "--failed", "--by", "age")][:2],
                  ["j00", "j01"], "--failed --by age")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
