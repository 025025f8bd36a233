#!/usr/bin/python3
"""The program sluice for workers in a shell: what touch and ack send, and the events of chosen
jobs."""

import json
import os
import sys

from harness import require, require_equal, run, scratch, wait_until
from harness.cli import DURABLE, SERVER_ERROR, USAGE_ERROR, Follower, serve
from harness.servers import steady_port


def popped(connection, queue, job_id, *more):
    """The lease of a job that is added for it."""
    connection.call("Q.ADD", queue, job_id, "")
    reply = connection.call("Q.POP", 1, queue, "ID", job_id, *more).value[0]
    return reply[reply.index(b"lease") + 1]


def test_touch_writes_to_the_log(options):
    """--log appends its text, --log-file what a file or standard input has, whatever the bytes."""
    server, sluice = serve(options)
    large = bytes(range(256)) * 1000  # more than an argument may have
    with server.connect() as connection, scratch() as folder:
        connection.call("Q.CONFIG", "exec", "SET", "log_bytes", 1 << 20)
        lease = popped(connection, "exec", "a")
        path = os.path.join(folder, "a file")
        with open(path, "wb") as file:
            file.write(large)
        sluice.must("touch", "exec", "a", lease, "--log", "step 1\n", "--progress", "a third")
        sluice.must("touch", "exec", "a", lease, "--log-file", path)
        sluice.must("touch", "exec", "a", lease, "--log-file", "-", stdin=b"\xff\x00the end")
        require_equal(connection.call("Q.LOG", "exec", "a", "COUNT", 1 << 20).value[1],
                      b"step 1\n" + large + b"\xff\x00the end", "the log")
        require_equal(sluice.json("job", "exec", "a")["progress"], "a third", "--progress")
        for missing in path + " of nobody", folder:
            sluice.fails(SERVER_ERROR, "cannot read " + missing, "touch", "exec", "a", lease,
                         "--log-file", missing)
        sluice.fails(USAGE_ERROR, "--log and --log-file exclude each other", "touch", "exec", "a",
                     lease, "--log", "x", "--log-file", path)
        connection.call("Q.CONFIG", "exec", "SET", "max_payload", 10)
        sluice.fails(SERVER_ERROR, "TOOBIG limit=10", "touch", "exec", "a", lease, "--log",
                     "x" * 11)
        sluice.fails(SERVER_ERROR, "STALELEASE", "touch", "exec", "a", lease + 1, "--log", "x")


def test_touch_shows_that_a_worker_is_quiet(options):
    """touch --worker shows whether it is to take more jobs, beside the reason to stop."""
    server, sluice = serve(options)
    with server.connect() as connection:
        lease = popped(connection, "exec", "a", "WORKER", "host-7")
        words = ["touch", "exec", "a", lease, "--worker", "host-7"]
        require_equal(sluice.json(*words)["quiet"], False)
        require("quiet" not in sluice.must(*words), "a worker that is not quiet")
        require("quiet" not in sluice.json(*words[:-2]), "without --worker")
        sluice.must("quiet", "exec", "host-7")
        sluice.must("cancel", "exec", "a", "--reason", "enough", "--grace", "1m")
        told = sluice.json(*words)
        require_equal((told["quiet"], told["cancel"]), (True, "enough"))
        require(sluice.must(*words).endswith(" left, asked to stop: enough, the worker is quiet\n"),
                sluice.must(*words))
    sluice.fails(SERVER_ERROR, "BADFIELD field=worker", *words[:-1], "")


def test_ack_takes_a_result_from_a_file(options):
    """--result-file is a result of any bytes, also from standard input."""
    server, sluice = serve(options)
    result = b"\x00\xff" * 100_000
    with server.connect() as connection, scratch() as folder:
        path = os.path.join(folder, "result")
        with open(path, "wb") as file:
            file.write(result)
        for name, file, stdin in ("a", path, b""), ("b", "-", result):
            lease = popped(connection, "exec", name)
            sluice.must("ack", "exec", name, lease, "--result-file", file, stdin=stdin)
            job = connection.call("Q.GET", "exec", name, "WITH", "result").value
            require_equal(job[job.index(b"result") + 1], result, name)
        sluice.fails(USAGE_ERROR, "--result and --result-file exclude each other", "ack", "exec",
                     "a", 1, "--result", "x", "--result-file", path)


def test_events_of_several_jobs(options):
    """events has those of each --job, of all types or of some, and no marks."""
    _, sluice = serve(options)
    for number in range(30):
        sluice.must("add", "exec", "x", "--id", f"j{number}")
    (job,) = sluice.json("pop", "exec")
    sluice.must("ack", "exec", job["id"], job["lease"])

    def told(*arguments):
        lines = sluice.must("events", "exec", "--json", *arguments).splitlines()
        return [(event["seq"], event["type"], event["id"]) for event in map(json.loads, lines)]

    of_both = [(1, "added", "j0"), (8, "added", "j7"), (31, "started", "j0"),
               (32, "completed", "j0")]
    require_equal(told("--job", "j0", "--job", "j7"), of_both)
    require_equal(told("--job", "j7", "--job", "j0", "--count", 2), of_both[2:], "the last two")
    require_equal(told("--job", "j0", "--job", "j7", "--after", 1, "--count", 2), of_both[1:3])
    require_equal(told("--job", "j0", "--job", "j7", "--type", "Added"), of_both[:2], "--type")
    require_equal(told("--job", "j7", "--job", "none"), of_both[1:2], "an unknown one")
    require_equal(told("--job", "none"), [])
    many = [word for number in range(257) for word in ("--job", f"j{number}")]
    sluice.fails(SERVER_ERROR, "at most 256 of them", "events", "exec", *many)
    require_equal(len(told(*many[:-2], "--count", 100)), 32, "as many as may be")


def test_following_chosen_jobs(options):
    """events --follow with --job has their progress too, and no gap where the server restarts."""
    server, sluice = serve(options, {**DURABLE, "port": str(steady_port())})
    with server.connect() as connection:
        leases = {name: popped(connection, "exec", name) for name in "abc"}
        follower = Follower(sluice, "exec", "--json", "--job", "a", "--job", "c")

        def told(*types):
            events = [json.loads(line) for line in list(follower.lines)]
            return [(event["type"], event["id"]) for event in events if event["type"] in types]

        def reported():
            # It is an event if somebody waits for it at that moment.
            for name, lease in leases.items():
                connection.call("Q.TOUCH", "exec", name, lease, "PROGRESS", "half")
            return len(set(told("progress"))) == 2

        wait_until(reported, what="progress")
        require_equal(set(told("progress")), {("progress", "a"), ("progress", "c")})
        connection.call("Q.ACK", "exec", "a", leases["a"])
        wait_until(lambda: told("completed"), what="the end of one")
    server.kill()
    server.start()
    with server.connect() as connection:
        for name in "bc":
            connection.call("Q.ACK", "exec", name, leases[name])
        wait_until(lambda: len(told("completed")) == 2, what="the end of the other")
    err = follower.end()
    require_equal(told("added", "started", "completed"),
                  [("added", "a"), ("started", "a"), ("added", "c"), ("started", "c"),
                   ("completed", "a"), ("completed", "c")])
    require(json.loads(err.splitlines()[-1])["note"] == "reconnected", err)


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
