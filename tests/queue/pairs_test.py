#!/usr/bin/python3
"""Several jobs in one Q.ACK, Q.NACK or Q.TOUCH: the bytes of the replies in both protocols, and the
ways in which a pop that waits behind acknowledgements can end."""

import sys

import harness
from harness import info, require_equal, wait_until

ANSWERS = b"*2\r\n+OK\r\n-NOJOB id=x\r\n"
UNBLOCKED = b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"


def said(connection, line):
    """The bytes of the reply to a line of words."""
    return connection.call(*line.split()).raw


def pop(connection, queue="q"):
    """The id and the lease of the next job, as one text."""
    job = connection.call("Q.POP", 1, queue).value[0]
    fields = job if isinstance(job, dict) else dict(zip(job[::2], job[1::2]))
    return f"{fields[b'id'].decode()} {fields[b'lease']}"


def add(connection, *ids):
    for job_id in ids:
        connection.call("Q.ADD", "q", job_id, "p")


def test_replies_in_both_protocols(options):
    """The shapes of all replies, byte by byte."""
    with options.server() as server:
        for protocol, null, null_array, no in ((2, b"$-1\r\n", b"*-1\r\n", b":0\r\n"),
                                               (3, b"_\r\n", b"_\r\n", b"#f\r\n")):
            pair = b"*6\r\n" if protocol == 2 else b"%3\r\n"
            with server.connect() as connection:
                connection.call("HELLO", protocol)
                connection.call("DEL", "q")
                add(connection, "a", "b", "c", "d")
                held = [pop(connection) for _ in range(4)]
                require_equal(said(connection, f"Q.TOUCH q {held[0]} AND {held[1]} AND x 1"),
                              b"*2\r\n" + no + b"*3\r\n" + 2 * null + b"-NOJOB id=x\r\n")
                touched = said(connection, f"Q.TOUCH q {held[0]} WORKER w")
                require_equal(touched, pair + b"$7\r\nleft_ms\r\n:30000\r\n$6\r\ncancel\r\n" + null
                              + b"$5\r\nquiet\r\n" + no)
                require_equal(said(connection, f"Q.NACK q {held[3]} FATAL AND x 1"),
                              b"*2\r\n" + pair + b"$5\r\nstate\r\n$6\r\nfailed\r\n"
                              + b"$10\r\nnot_before\r\n" + null
                              + b"$13\r\nattempts_left\r\n:0\r\n-NOJOB id=x\r\n")
                require_equal(said(connection, f"Q.ACK q {held[0]} AND x 1"), ANSWERS)
                require_equal(said(connection, f"Q.ACK q {held[1]} AND x 1 POP"),
                              b"*2\r\n" + ANSWERS + null_array)
                add(connection, "e")
                reply = said(connection, f"Q.ACK q {held[2]} AND x 1 POP")
                job = b"*30\r\n" if protocol == 2 else b"%15\r\n"
                head = b"*2\r\n" + ANSWERS + b"*1\r\n" + job
                require_equal(reply[:len(head)], head)
                require_equal(said(connection, "Q.ACK q a 1 AND b 1 AND a 1"),
                              b"-BADFIELD field=id\r\n")


def test_every_end_of_a_waiting_pop(options):
    """Served, timed out, unblocked, repeated, gone: [answers, jobs, null or the error]."""
    with options.server() as server, server.connect() as other:
        for end, words, rest in (
                ("timed out", "POP BLOCK 50", b"*-1\r\n"),
                ("unblocked", "POP BLOCK 0", b"*-1\r\n"),
                ("unblocked with an error", "POP BLOCK 0", UNBLOCKED),
                ("repeated", "POP BLOCK 0 WORKER w REQID r", b"*-1\r\n"),
                ("gone", "POP BLOCK 0 ID b", b"-GONE id=b state=unknown\r\n"),
                ("served", "POP BLOCK 0", b"*1\r\n*30\r\n")):
            with server.connect() as waiting:
                other.call("DEL", "q")
                other.call("Q.CONFIG", "q", "SET", "max_active", 1)
                add(other, "a")
                held = pop(other)
                if end == "gone":
                    add(other, "b", "b2")
                    other.call("Q.CONFIG", "q", "SET", "paused", "out")
                client = waiting.call("CLIENT", "ID").value
                waiting.send("Q.ACK", "q", *held.split(), "AND", "x", "1", *words.split())
                if end != "timed out":
                    wait_until(lambda: info(other)["blocked_clients"] == "1", what="the waiting")
                if end.startswith("unblocked"):
                    how = ("ERROR",) if end.endswith("error") else ()
                    require_equal(other.call("CLIENT", "UNBLOCK", client, *how).value, 1)
                elif end == "repeated":
                    require_equal(said(other, "Q.POP 1 q WORKER w REQID r"), b"*-1\r\n")
                elif end == "gone":
                    other.call("DEL", "q")
                elif end == "served":
                    add(other, "c")
                reply = waiting.read_reply().raw
                expected = b"*2\r\n" + ANSWERS + rest
                require_equal(reply[:len(expected)], expected, end)
                require_equal(said(waiting, "PING"), b"+PONG\r\n", end)


def test_a_connection_that_dies_while_it_waits(options):
    """Its jobs stay acknowledged, and nothing is given to it."""
    with options.server() as server, server.connect() as other:
        add(other, "a", "b")
        held = [pop(other), pop(other)]
        with server.connect() as waiting:
            waiting.send("Q.ACK", "q", *held[0].split(), "AND", *held[1].split(), "POP", "BLOCK", 0)
            wait_until(lambda: info(other)["blocked_clients"] == "1", what="the waiting")
        wait_until(lambda: info(other)["blocked_clients"] == "0", what="its end")
        add(other, "c")
        require_equal(pop(other).split()[0], "c")
        for job_id in ("a", "b"):
            fields = other.call("Q.GET", "q", job_id).value
            require_equal(fields[fields.index(b"state") + 1], b"completed")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
