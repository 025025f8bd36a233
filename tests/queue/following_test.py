#!/usr/bin/python3
"""Clients that wait for a job and follow it: Q.ADD … WAIT, Q.LOG … BLOCK, Q.EVENTS … ID, over real
connections: their time-outs, ends and kills."""

import sys
import threading
import time

import harness
from harness import info, require, require_equal, wait_until
from harness.native_queue import DISK, Native, job_of, pairs

QUEUE = "work"
LONG_MS = 600_000


def started(options, directives=None):
    server = options.server(directives)
    server.start()
    return server, Native(server)


def blocked(connection, count=1):
    wait_until(lambda: int(info(connection)["blocked_clients"]) == count, what="a blocked client")


def added_and_job(reply):
    """What Q.ADD replied, and the job, of a connection that speaks RESP2."""
    added, job = reply.value
    return pairs(added), job_of(job)


def test_a_result_in_one_command(options):
    """The reply comes with the acknowledgement, also of a job that is not kept."""
    for kept in (1000, 0):
        server, native = started(options, DISK)
        native.config(QUEUE, "SET", "retain_completed", kept)
        with server.connect() as waiting, server.connect() as other:
            waiting.send("Q.ADD", QUEUE, "j", "x", "WAIT", 0)
            blocked(other)
            native.ack(QUEUE, native.pop(QUEUE), "RESULT", "done")
            added, job = added_and_job(waiting.read_reply())
            require_equal((added["result"], added["state"]), (b"added", b"pending"), "the add")
            require_equal((job["state"], job["result"]), (b"completed", b"done"), "the job")
            require_equal(waiting.call("PING").raw, b"+PONG\r\n", "afterwards")
        native.close()
        server.stop()


def test_a_time_out_shows_the_job_as_it_is(options):
    """Neither before its time, nor without the job; and the connection is free again."""
    server, native = started(options, DISK)
    with server.connect() as waiting:
        began = time.monotonic()
        added, job = added_and_job(waiting.call("Q.ADD", QUEUE, "a", "x", "WAIT", 200))
        require(time.monotonic() - began >= 0.2, "it came too early")
        require_equal((added["state"], job["state"]), (b"pending", b"pending"), "pending")
        waiting.send("Q.ADD", QUEUE, "b", "x", "WAIT", 1500)
        waiting.send("Q.LOG", QUEUE, "b", "BLOCK", 50)
        require_equal(native.pop(QUEUE)["id"], b"a", "the first")
        wait_until(lambda: native.pop(QUEUE), what="the second job")
        added, job = added_and_job(waiting.read_reply())
        require_equal((added["state"], job["state"]), (b"pending", b"active"), "active")
        require_equal(waiting.read_reply().value, [0, b"", 0, 0], "the log")
    native.close()


def test_client_unblock(options):
    """TIMEOUT is a time-out: the job as it is. ERROR is an error."""
    server, native = started(options)
    with server.connect() as waiting, server.connect() as other:
        client_id = waiting.call("CLIENT", "ID").value
        waiting.send("Q.ADD", QUEUE, "a", "x", "WAIT", 0)
        blocked(other)
        require_equal(other.call("CLIENT", "UNBLOCK", client_id, "TIMEOUT").value, 1, "unblocked")
        require_equal(added_and_job(waiting.read_reply())[1]["state"], b"pending", "the job")
        require_equal(other.call("CLIENT", "UNBLOCK", client_id).value, 0, "it does not wait")
        waiting.send("Q.ADD", QUEUE, "b", "x", "WAIT", 0)
        blocked(other)
        require_equal(other.call("CLIENT", "UNBLOCK", client_id, "ERROR").value, 1, "unblocked")
        require(waiting.read_reply().raw.startswith(b"-UNBLOCKED"), "an error")
        require_equal(native.stats(QUEUE)["pending"], 2, "both jobs are there")
    native.close()


def test_a_client_that_is_killed_takes_nothing_along(options):
    """Its job stays and runs, whether the client closes its connection or is killed."""
    server, native = started(options)
    with server.connect() as other:
        for way in ("close", "kill"):
            waiting = server.connect()
            client_id = waiting.call("CLIENT", "ID").value
            waiting.send("Q.ADD", QUEUE, way, "x", "WAIT", LONG_MS)
            blocked(other)
            if way == "kill":
                other.call("CLIENT", "KILL", "ID", client_id)
            waiting.close()
            blocked(other, 0)
            job = native.pop(QUEUE)
            require_equal(job["id"].decode(), way, "its job")
            require_equal(native.ack(QUEUE, job), b"OK", "acknowledged")
        require_equal(native.stats(QUEUE)["completed"], 2, "both")
    native.close()


def test_a_time_out_while_a_script_holds_the_queue(options):
    """The reply waits for the script, and is not lost."""
    server, native = started(options, {"busy-reply-threshold": "20"})
    with server.connect() as waiting, server.connect() as busy, server.connect() as other:
        waiting.send("Q.ADD", QUEUE, "a", "x", "WAIT", 1500)
        blocked(other)
        busy.send("EVAL", "redis.call('Q.STATS', KEYS[1]) while true do end", 1, QUEUE)
        wait_until(lambda: other.call("PING").raw.startswith(b"-BUSY"), what="a busy script")
        require(not waiting.has_input(2.0), "an answer from a queue that is held")
        require_equal(other.call("SCRIPT", "KILL").raw, b"+OK\r\n", "SCRIPT KILL")
        require_equal(added_and_job(waiting.read_reply())[1]["state"], b"pending", "the job")
    native.close()


def test_five_hundred_time_outs_at_once(options):
    """Each is answered, with its own job."""
    server, native = started(options)
    connections = [server.connect() for _ in range(500)]
    for index, connection in enumerate(connections):
        connection.send("Q.ADD", QUEUE, f"j{index}", "x", "WAIT", 400)
    for index, connection in enumerate(connections):
        added, job = added_and_job(connection.read_reply())
        require_equal((added["id"], job["id"]), (b"j%d" % index,) * 2, "its own job")
        connection.close()
    native.close()


def test_a_log_is_followed_to_its_end(options):
    """A reader that asks for what comes next has every byte once, over attempts, to the end."""
    server, native = started(options, DISK)
    native.config(QUEUE, "SET", "retry", 5, "backoff", "0:0")
    native.add(QUEUE, "j")
    written = []

    def work():
        own = Native(server)
        for attempt in range(3):
            [job] = own.pop_many(QUEUE, "BLOCK", 0)
            for number in range(60):
                written.append(b"%d:%d\n" % (attempt, number))
                own.touch(QUEUE, job, "LOG", written[-1])
            own.nack(QUEUE, job) if attempt < 2 else own.ack(QUEUE, job)
        own.close()

    worker = threading.Thread(target=work)
    worker.start()
    read, offset, ended = b"", 0, 0
    while not ended:
        at, text, offset, ended = native.call("Q.LOG", QUEUE, "j", "FROM", offset, "COUNT", 100,
                                              "BLOCK", 5000)
        require_equal(at, len(read), "no gap")
        read += text
    worker.join()
    require_equal(read, b"".join(written), "every byte")
    native.close()
    server.kill()
    server.start()
    native = Native(server)
    require_equal(native.call("Q.LOG", QUEUE, "j"), [0, read, len(read), 1], "after a kill")
    native.close()


def test_one_connection_follows_many_jobs(options):
    """Events of the named jobs only, with their progress, in one connection."""
    server, native = started(options)
    for number in range(300):
        native.add(QUEUE, f"j{number}")
    jobs = native.pop_many(QUEUE, "COUNT", 200)
    followed = [word for job in jobs[:100] for word in ("ID", job["id"])]
    told = []
    with server.connect() as reader, server.connect() as other:
        reader.send("Q.EVENTS", QUEUE, "$", "BLOCK", LONG_MS, "COUNT", 1000, *followed)
        blocked(other)
        for job in jobs:
            native.touch(QUEUE, job, "PROGRESS", job["id"])
        [[after, _, kind, job_id, fields]] = reader.read_reply().value
        require_equal((kind, job_id), (b"progress", jobs[0]["id"]), "the first event")
        require_equal(pairs(fields)["progress"], jobs[0]["id"], "the progress")
        for job in reversed(jobs):
            native.ack(QUEUE, job)
        while len(told) < 100:
            events = reader.call("Q.EVENTS", QUEUE, after, "BLOCK", LONG_MS, *followed).value
            after = events[-1][0]
            told += [event[3] for event in events if event[2] == b"completed"]
    require_equal(told, [job["id"] for job in reversed(jobs[:100])], "the ends that were told")
    native.close()


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
