#!/usr/bin/python3
"""The program sluice follows single jobs: log, log --follow, add --wait."""

import subprocess
import sys
import tempfile
import threading

from harness import info, require, require_equal, run, wait_until
from harness.cli import (DURABLE, NO_CONNECTION, SERVER_ERROR, USAGE_ERROR, Sluice, environment,
                         serve)
from harness.servers import steady_port

ALWAYS = {**DURABLE, "appendfsync": "always"}


def popped(connection, queue, job_id):
    connection.call("Q.ADD", queue, job_id, "")
    reply = connection.call("Q.POP", 1, queue, "ID", job_id).value[0]
    return reply[reply.index(b"lease") + 1]


def test_log_prints_the_bytes(options):
    """log prints a job's log as it is, from where it is told to, whatever its bytes."""
    server, sluice = serve(options)
    with server.connect() as connection:
        lease = popped(connection, "exec", "a")
        for piece in b"one\n", b"\xff\x00two", b"":
            connection.call("Q.TOUCH", "exec", "a", lease, "LOG", piece)

        def printed(*more):
            return subprocess.run(sluice.words("log", "exec", "a", *more), capture_output=True,
                                  check=True, timeout=30, env=environment()).stdout

        require_equal(printed(), b"one\n\xff\x00two", "log")
        require_equal(printed("--from", 3), b"\n\xff\x00two", "--from")
        require_equal(printed("--from", 9), b"", "at its end")
        connection.call("Q.ACK", "exec", "a", lease)
        require_equal(printed("--follow"), b"one\n\xff\x00two", "--follow of an ended job")
        popped(connection, "exec", "silent")
        require_equal(sluice.must("log", "exec", "silent"), "", "no log")
    sluice.fails(SERVER_ERROR, "none: there is no such job", "log", "exec", "none")
    nobody = Sluice(options, None)
    nobody.fails(NO_CONNECTION, "cannot connect", "log", "exec", "a", "--follow")
    code, out, err = sluice.run("log", "exec", "a", "--json")
    require(code == USAGE_ERROR and out == "" and "no JSON" in err, f"--json: {code} {err!r}")


def test_log_says_what_is_gone(options):
    """Where older bytes are no longer kept log says how many, and prints the rest."""
    server, sluice = serve(options)
    with server.connect() as connection:
        connection.call("Q.CONFIG", "exec", "SET", "log_bytes", 10)
        lease = popped(connection, "exec", "a")
        connection.call("Q.TOUCH", "exec", "a", lease, "LOG", "0123456789abcde")
    code, out, err = sluice.run("log", "exec", "a")
    require_equal((code, out), (0, "56789abcde"), "log")
    require_equal(err, "sluice: 5 bytes of the log are no longer kept\n", "what is gone")


def test_a_payload_that_no_queue_takes(options):
    """add reads no more than a payload may have, and says how much that is."""
    nobody = Sluice(options, None)
    with tempfile.TemporaryFile() as payload:
        payload.truncate((512 << 20) + 1)
        done = subprocess.run(nobody.words("add", "exec"), stdin=payload, capture_output=True,
                              check=False, timeout=300, env=environment())
    require_equal((done.returncode, done.stdout), (SERVER_ERROR, b""), "add")
    require(done.stderr.startswith(b"sluice: TOOBIG standard input has more than 536870912 bytes"),
            done.stderr)


def test_a_payload_that_the_server_does_not_read(options):
    """A server with a lower proto-max-bulk-len ends the connection; sluice says why."""
    _, sluice = serve(options, {**DURABLE, "proto-max-bulk-len": "1mb"})
    for size in (1 << 20) + 1, 40 << 20:
        with tempfile.TemporaryFile() as payload:
            payload.truncate(size)
            done = subprocess.run(sluice.words("add", "exec"), stdin=payload, capture_output=True,
                                  check=False, timeout=300, env=environment())
        require_equal((done.returncode, done.stderr.decode()),
                      (SERVER_ERROR, "sluice: TOOBIG the server reads at most 1048576 bytes at "
                                     f"once (proto-max-bulk-len), and not {size}\n"), "add")


def test_following_survives_kills(options):
    """log --follow prints every byte once, through kill -9 and restarts, and ends with the job."""
    server, sluice = serve(options, {**ALWAYS, "port": str(steady_port())})
    with server.connect() as connection:
        connection.call("Q.CONFIG", "exec", "SET", "log_bytes", 1 << 20, "lease_ms", 600_000)
        lease = popped(connection, "exec", "a")
    with tempfile.TemporaryFile() as output:
        follower = subprocess.Popen(sluice.words("log", "exec", "a", "--follow"), stdout=output,
                                    stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                    env=environment())
        for life in range(3):
            with server.connect() as connection:
                for number in range(50):
                    connection.call("Q.TOUCH", "exec", "a", lease, "LOG", f"{life}-{number}\n" * 9)
                if life == 0:
                    wait_until(lambda: output.seek(0, 2) > 0, what="the first bytes")
            server.kill()
            server.start()
        with server.connect() as connection:
            connection.call("Q.TOUCH", "exec", "a", lease, "LOG", "the end")
            connection.call("Q.ACK", "exec", "a", lease)
            whole = connection.call("Q.LOG", "exec", "a", "COUNT", 1 << 20).value[1]
        require_equal(follower.wait(30), 0, "its exit code")
        output.seek(0)
        require_equal(output.read(), whole, "what was printed")
        require(whole.endswith(b"2-49\nthe end"), repr(whole[-40:]))
        err = follower.stderr.read().decode()
        require("retrying" in err and "reconnected" in err, err)


def test_following_a_silent_job(options):
    """log --follow survives a restart also before the job has logged anything."""
    server, sluice = serve(options, {**ALWAYS, "port": str(steady_port())})
    with server.connect() as connection:
        connection.call("Q.CONFIG", "exec", "SET", "lease_ms", 600_000)
        lease = popped(connection, "exec", "a")
        follower = subprocess.Popen(sluice.words("log", "exec", "a", "--follow"),
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    stdin=subprocess.DEVNULL, env=environment())
        wait_until(lambda: info(connection)["blocked_clients"] == "1", what="a follower")
    server.kill()
    server.start()
    with server.connect() as connection:
        connection.call("Q.TOUCH", "exec", "a", lease, "LOG", "a line")
        connection.call("Q.ACK", "exec", "a", lease)
    out, err = follower.communicate(timeout=30)
    require_equal((follower.returncode, out), (0, b"a line"), err)


def test_following_what_goes(options):
    """log --follow fails, and says why, if its job is gone before it has ended; of a job that is
    forgotten at its end it prints the whole log."""
    server, sluice = serve(options)

    def followed(connection, queue, *end):
        lease = popped(connection, queue, "a")
        connection.call("Q.TOUCH", queue, "a", lease, "LOG", "a line")
        follower = subprocess.Popen(sluice.words("log", queue, "a", "--follow"),
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    stdin=subprocess.DEVNULL, env=environment())
        wait_until(lambda: info(connection)["blocked_clients"] == "1", what="a follower")
        reply = connection.call(*[lease if word == "LEASE" else word for word in end])
        require(not reply.is_error, reply)
        out, err = follower.communicate(timeout=30)
        require_equal(out, b"a line", "its log")
        return follower.returncode, err.decode()

    with server.connect() as connection:
        for end in ("DEL", "exec"), ("FLUSHALL",):
            code, err = followed(connection, "exec", *end)
            require_equal((code, err), (6, "sluice: a: no longer known: its queue is gone, or "
                                           "ended jobs are not kept\n"), f"{end}")
        connection.call("Q.CONFIG", "brief", "SET", "retain_completed", 0)
        require_equal(followed(connection, "brief", "Q.ACK", "brief", "a", "LEASE"), (0, ""),
                      "an end")


def test_add_waits_for_the_end(options):
    """add --wait prints the result alone, and fails as the job does."""
    server, sluice = serve(options)

    def work(*end):
        with server.connect() as connection:
            reply = connection.call("Q.POP", 1, "exec", "BLOCK", 30_000).value[0]
            connection.call(end[0], "exec", reply[reply.index(b"id") + 1],
                            reply[reply.index(b"lease") + 1], *end[1:])

    def added(expected, end, *more):
        worker = threading.Thread(target=work, args=end)
        worker.start()
        code, out, err = sluice.run("add", "exec", "x", "--wait", "30s", *more)
        worker.join()
        require_equal(code, expected, f"{end}: {out}{err}")
        return out, err

    require_equal(added(0, ("Q.ACK", "RESULT", "42")), ("42", ""), "a result")
    require_equal(added(0, ("Q.ACK",)), ("", ""), "no result")
    out, err = added(SERVER_ERROR, ("Q.NACK", "FATAL", "ERROR", "no luck"), "--id", "f")
    require_equal((out, err), ("", "sluice: f: failed: no luck\n"), "a failure")
    code, out, err = sluice.run("add", "exec", "x", "--id", "late", "--wait", 1)
    require_equal((code, out, err), (SERVER_ERROR, "", "sluice: late: pending\n"), "a time-out")
    sluice.fails(SERVER_ERROR, "DUPLICATE id=late", "add", "exec", "x", "--id", "late",
                 "--wait", 1)
    with server.connect() as connection:
        connection.call("Q.CANCEL", "exec", "late")
    worker = threading.Thread(target=work, args=("Q.ACK", "RESULT", "7"))
    worker.start()
    shown = sluice.json("add", "exec", "x", "--id", "j", "--wait", "30s")
    worker.join()
    require_equal((shown["id"], shown["result"], shown["job"]["state"], shown["job"]["result"]),
                  ("j", "added", "completed", "7"), "as JSON")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
