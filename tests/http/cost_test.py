#!/usr/bin/python3
"""What those who watch over HTTP may cost the others: long answers, long lists, streams of events.

    tests/http/cost_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import json
import select
import sys
import time

from http_client import (Client, READ_TOKEN, Raw, Stream, THREADS, require, require_equal, run,
                         serve)

EXECUTIONS = "/api/v1/admin/executions/"
BURST = 20_000


def add_jobs(connection, queue, names, *options):
    for begin in range(0, len(names), BURST):
        connection.pipeline([("Q.ADD", queue, name, "{}", *options)
                             for name in names[begin:begin + BURST]])


def test_a_command_among_slow_requests(options):
    """Who sends a command while many slow requests are there waits for few of them, not for all."""
    waiting = 32
    server = serve(options)
    request = (f"GET /api/v1/queues/q/jobs?count=1000 HTTP/1.1\r\nHost: localhost\r\n"
               f"Authorization: Bearer {READ_TOKEN}\r\n\r\n").encode()
    with server.connect() as connection:
        add_jobs(connection, "q", [f"j{number}" for number in range(1000)])
        slow = [Raw(server) for _ in range(waiting)]
        for raw in slow:
            raw.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            require_equal(raw.answer().status, 200)
        for raw in slow:
            raw.send(request)
        require_equal(connection.call("PING").value, b"PONG")
        answered, _, _ = select.select([raw.socket for raw in slow], [], [], 0)
        require(len(answered) < waiting / 2, f"{len(answered)} of {waiting} requests came before")
        for raw in slow:
            require_equal(raw.answer().status, 200)
            raw.close()


def test_streams_of_a_busy_queue(options):
    """Who reads all events of a busy queue is left behind; who wants few of them is not."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        connection.call("Q.CONFIG", "q", "SET", "events", 100)
        everything = Stream(server, "/api/v1/queues/q/events")
        some = Stream(server, "/api/v1/queues/q/events?type=cancelled")
        one = Stream(server, "/api/v1/queues/q/events?id=last")
        add_jobs(connection, "q", [f"j{number}" for number in range(3 * BURST)])
        client.expect(201, "POST", "/api/v1/queues/q/jobs", {"id": "last", "payload": ""})
        connection.call("Q.CANCEL", "q", "j7")
        event = some.next()
        require_equal((event["event"], json.loads(event["data"])["id"]), ("cancelled", "j7"))
        require_equal(one.next()["event"], "added")
        numbers = []
        while (event := everything.next())["event"] == "added":
            numbers.append(int(event["id"]))
        require_equal(event["event"], "problem")
        require_equal(json.loads(event["data"])["code"], "TRIMMED")
        require_equal(numbers, list(range(1, len(numbers) + 1)), "a gap before")
        for stream in everything, some, one:
            stream.close()


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__], THREADS))
