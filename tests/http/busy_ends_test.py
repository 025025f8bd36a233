#!/usr/bin/python3
"""Requests that end while they wait for a key that a script on another I/O thread holds.

    tests/http/busy_ends_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import os
import select
import signal
import sys
import time

from harness import info, require, require_equal, run, wait_until
from harness.http_client import ADMIN_TOKEN, Client, Raw, serve

QUEUES = "/api/v1/queues"
SESSION = "/api/v1/session"
TOKENS = "/api/v1/tokens"
PASSWORD = "of-the-user-0123"
QUEUE_COUNT = 1000
# Whether a request waits depends on when it arrives.
TRIES = 40
# How long the thread that runs the script may take to refuse a request, and the other one to notice
# an end.
LOOK_S = 0.15

# It holds every shard.
SCRIPT = "for i = 1, #KEYS do redis.call('exists', KEYS[i]) end while true do end"
KEYS = [f"queue:{number:04}" for number in range(QUEUE_COUNT)]

# A method, a path, and whether the request is sent before the script.
ROUTES = {
    "list": ("GET", f"{QUEUES}?limit={QUEUE_COUNT}", True),
    "workers": ("GET", f"{QUEUES}/{KEYS[0]}/workers", False),
    "find": ("GET", "/api/v1/find?q=queue", True),
    "cancel": ("POST", f"{QUEUES}/{KEYS[0]}/jobs/none:cancel", False),
    "stream": ("GET", f"{QUEUES}/{KEYS[0]}/jobs/j/stream", True),
}


def serve_two_threads(options):
    # What is used after it was freed shows at once.
    environment = {**os.environ, "MALLOC_CONF": "junk:true"}
    server = serve(options, {"busy-reply-threshold": "1000",
                             "user": f"carol on >{PASSWORD} ~* +@all"}, environment=environment)
    with server.connect() as connection:
        connection.pipeline([("Q.ADD", key, "j", "x") for key in KEYS])
    return server


def request_bytes(method, path, secret):
    body = b"{}" if method == "POST" else b""
    return (f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            ).encode() + body


def silent(clients):
    """Those to which nothing has been sent."""
    answered = select.select([client.socket for client in clients], [], [], 0)[0]
    return [client for client in clients if client.socket not in answered]


class Busy:
    """A script, and two requests of a route, of which one is on the other I/O thread and waits."""

    def __init__(self, server, route, secret, other):
        self.script = server.connect()
        self.other = other
        self.clients = [Raw(server), Raw(server)]
        method, path, before = ROUTES[route]
        request = request_bytes(method, path, secret)
        words = ("EVAL", SCRIPT, str(len(KEYS)), *KEYS)
        self.script.call("PING")
        if route == "stream":
            for client in self.clients:
                client.send(request)
                while b"event: position" not in client.buffer:
                    require(client.receive(), f"no stream: {client.buffer}")
            self.script.send(*words)
        elif before:
            for client in self.clients:
                client.send(request)
            self.script.send(*words)
        else:
            self.script.send(*words)
            time.sleep(0.02)
            for client in self.clients:
                client.send(request)
        wait_until(lambda: other.call("PING").raw.startswith(b"-BUSY"), what="a busy script")
        time.sleep(LOOK_S)
        # A stream has looked before the script was busy, and waits; on the script's thread it may
        # have been refused meanwhile.
        self.waiting = silent(self.clients)
        self.waits = len(self.waiting) in ((1, 2) if route == "stream" else (1,))

    def end_script(self):
        require_equal(self.other.call("SCRIPT", "KILL").raw, b"+OK\r\n")
        require(b"killed by user" in self.script.read_reply().raw, "the script's end")

    def close(self):
        for client in self.clients:
            client.close()
        self.script.close()


def waiting_request(server, route, secret, other):
    """A Busy whose request waits."""
    for _ in range(TRIES):
        busy = Busy(server, route, secret, other)
        if busy.waits:
            return busy
        busy.end_script()
        busy.close()
    raise AssertionError(f"{route}: no request waits for the script")


def require_lives(server, other, what):
    require(server.alive(), f"{what}: the server has ended")
    require_equal(other.call("PING").raw, b"+PONG\r\n", what)
    with Client(server) as client:
        client.expect(200, "GET", f"{QUEUES}/{KEYS[0]}")
    wait_until(lambda: info(other, "clients")["blocked_clients"] == "0",
               what=f"{what}: the end of what waits")


def require_ended(busy, route, what):
    """The request is answered; a stream just ends."""
    for client in busy.waiting:
        if route == "stream":
            while client.receive():
                pass
            continue
        answer = client.answer()
        require(answer is not None, f"{what}: no answer")
        # It may have been allowed when it began; 503 if it came too late to wait.
        require(answer.status in (200, 401, 404, 503), f"{what}: {answer.status} {answer.body}")


def test_the_client_closes(options):
    """The server lives on."""
    server = serve_two_threads(options)
    with server.connect() as other:
        for route in ROUTES:
            busy = waiting_request(server, route, ADMIN_TOKEN, other)
            for client in busy.clients:
                client.close()
            time.sleep(LOOK_S)
            busy.end_script()
            require_lives(server, other, route)
            busy.close()


def require_rights_may_end(options, begin, end):
    """`begin(admin)` gives a secret and what `end(admin, …)` needs to take it back."""
    server = serve_two_threads(options)
    with server.connect() as other, Client(server, ADMIN_TOKEN) as admin:
        for route in ROUTES:
            secret, name = begin(admin)
            busy = waiting_request(server, route, secret, other)
            end(admin, name)
            time.sleep(LOOK_S)
            busy.end_script()
            require_ended(busy, route, route)
            require_lives(server, other, route)
            require_equal(admin.get(QUEUES, token=secret).status, 401, route)
            busy.close()


def test_the_user_logs_out(options):
    """The same, and the request is answered."""
    def log_in(admin):
        body = {"user": "carol", "password": PASSWORD}
        secret = admin.expect(201, "POST", SESSION, body, token=None).json["token"]
        return secret, secret

    def log_out(admin, secret):
        admin.expect(200, "DELETE", SESSION, token=secret)
    require_rights_may_end(options, log_in, log_out)


def test_the_token_is_revoked(options):
    """Likewise."""
    def make(admin):
        made = admin.expect(201, "POST", TOKENS, {"role": "operate"}).json
        return made["token"], made["id"]

    def revoke(admin, name):
        admin.expect(200, "DELETE", f"{TOKENS}/{name}")
    require_rights_may_end(options, make, revoke)


def test_the_server_is_told_to_stop(options):
    """It ends as usual: a script that has only read is killed."""
    for route in "workers", "find", "cancel", "stream":
        server = serve_two_threads(options)
        with server.connect() as other:
            busy = waiting_request(server, route, ADMIN_TOKEN, other)
            server.process.send_signal(signal.SIGTERM)
            require_equal(server.process.wait(60), 0, f"{route}: exit code")
            busy.close()
        server.close()


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__], io_threads=(2,)))
