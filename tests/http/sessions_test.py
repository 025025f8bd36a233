#!/usr/bin/python3
"""Log-in over HTTP with the name and the password of an ACL user: who may, as what, how long.

    tests/http/sessions_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import json
import os
import re
import sys
import time

from harness import require, require_equal, run, wait_until
from harness.http_client import ADMIN_TOKEN, THREADS, Client, Raw, require_problem, serve
from harness.surroundings import held_disk

SESSION = "/api/v1/session"
QUEUES = "/api/v1/queues"
STREAM = QUEUES + "/q/events"
PASSWORD = "of-the-user-0123"


def users(**rules):
    return {"user": [f"{name} on >{PASSWORD} {text}" for name, text in rules.items()]}


def log_in(client, user, password=PASSWORD):
    return client.post(SESSION, {"user": user, "password": password}, token=None)


def secret_of(client, user):
    answer = log_in(client, user)
    require_equal(answer.status, 201, str(answer.body))
    return answer.json["token"]


def test_a_user_logs_in_and_out(options):
    """The password gives a secret that works like a token, with the user's own rules, until the
    log-out."""
    server = serve(options, users(carol="~mine:* +@all -@admin"))
    with Client(server, None) as client:
        began_ms = time.time() * 1000
        made = log_in(client, "carol").json
        require(re.fullmatch("[0-9a-f]{64}", made["token"]), made)
        require_equal((made["role"], made["user"]), ("operate", "carol"))
        require(abs(made["expires"] - began_ms - 28_800_000) < 60_000, made)
        secret = made["token"]
        require(secret_of(client, "carol") != secret, "two log-ins have one secret")
        known = client.get(SESSION, token=secret).json
        require_equal((known["role"], known["user"]), ("operate", "carol"))
        require_equal(client.get(SESSION, token=ADMIN_TOKEN).json["user"], None)
        # Where and how the server speaks RESP is told to who may read.
        members = "port", "tls_port", "password_needed"
        require_equal([known[name] for name in members], [server.port, None, False])
        for secret_word in None, "the-password":
            if secret_word:
                server.connect().call("CONFIG", "SET", "requirepass", secret_word)
            told = client.get(SESSION, token=ADMIN_TOKEN).json
            require_equal(told["password_needed"], secret_word is not None)
            stranger = client.get(SESSION).json
            require_equal([stranger[name] for name in members], [None, None, None])
        client.expect(201, "POST", QUEUES + "/mine:q/jobs", {"payload": "x"}, token=secret)
        client.expect(200, "GET", QUEUES + "/mine:q/bands?with=wait_buckets", token=secret)
        require_problem(client.post(QUEUES + "/q/jobs", {"payload": "x"}, token=secret), 403,
                        "NOPERM")
        require_problem(client.get(QUEUES + "/q/bands?with=wait_buckets", token=secret), 403,
                        "NOPERM")
        require_problem(client.post("/api/v1/checkpoint", token=secret), 403, "NOPERM")
        require_equal(client.expect(200, "DELETE", SESSION, token=secret).json, {"ended": True})
        require_problem(client.get(QUEUES, token=secret), 401, "BADTOKEN")
        require_equal(client.expect(200, "DELETE", SESSION, token=ADMIN_TOKEN).json,
                      {"ended": False})
        client.expect(200, "GET", QUEUES, token=ADMIN_TOKEN)


def test_rights_give_the_role(options):
    """Read with all of Q.* that reads, operate with all of Q.*, admin with all of @admin too."""
    server = serve(options, users(
        reader="~* +@read", some="~* +@all -q.purge", worker="~* +@all -@admin",
        chief="~* +@all", adder="~* +q.add +q.get", selector="~a (~* +@all)",
        almost="~* +@all -config|set", nothing="~*"))
    roles = {"reader": "read", "some": "read", "worker": "operate", "chief": "admin",
             "selector": "admin", "almost": "operate"}
    with Client(server, None) as client:
        for name, role in roles.items():
            require_equal(log_in(client, name).json.get("role"), role, name)
        for name in "adder", "nothing":
            require_problem(log_in(client, name), 403, "NOPERM")
        secret = secret_of(client, "reader")
        client.expect(200, "GET", QUEUES + "/q", token=secret)
        require_problem(client.request("PATCH", QUEUES + "/q", {"max_active": 1}, token=secret),
                        403, "NOPERM")
        secret = secret_of(client, "chief")
        client.expect(201, "POST", "/api/v1/tokens", {"role": "read"}, token=secret)


def test_who_is_wrong_is_refused_and_logged(options):
    """A wrong password, an unknown and a disabled user: 401 each, and a log entry as for AUTH."""
    server = serve(options, {"user": [f"carol on >{PASSWORD} ~* +@all",
                                      f"gone off >{PASSWORD} ~* +@all",
                                      "free on nopass ~* +@all"]})
    with Client(server, None) as client, server.connect() as connection:
        for name, password in (("carol", "x"), ("nobody", PASSWORD), ("gone", PASSWORD),
                               ("carol", ""), ("CAROL", PASSWORD)):
            members = require_problem(log_in(client, name, password), 401, "WRONGPASS")
            require_equal(members["detail"],
                          "Wrong user name or password, or the user is disabled.")
        log = [dict(zip(entry[::2], entry[1::2]))
               for entry in connection.call("ACL", "LOG").value]
        require_equal({(entry[b"reason"], entry[b"object"], entry[b"username"]) for entry in log},
                      {(b"auth", b"AUTH", name) for name in
                       (b"carol", b"nobody", b"gone", b"CAROL")})
        require(all(b"addr=127.0.0.1:" in entry[b"client-info"] for entry in log), log)
        # At RESP any password is his.
        require_problem(log_in(client, "free", "x"), 403, "NOPERM")
        require_problem(log_in(client, "default", ""), 403, "NOPERM")
        for body, field in (({}, "user"), ({"user": "carol"}, "password"),
                            ({"user": 1.5, "password": "x"}, "user"),
                            ({"user": "carol", "password": "x", "token": "y"}, "token")):
            members = require_problem(client.post(SESSION, body), 422, "BADFIELD")
            require_equal(members["field"], field, str(body))
        answer = client.post(SESSION, {"user": "carol", "password": PASSWORD},
                             headers={"Origin": "http://evil.example"})
        require_problem(answer, 403, "BADORIGIN")


def test_what_strangers_send_is_small(options):
    """The body of a log-in may have 16 KB, whether by its length or in chunks."""
    server = serve(options, users(carol="~* +@all"))
    log_in_text = json.dumps({"user": "carol", "password": PASSWORD}).encode()
    head = b"POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\n"
    for size, status in (16 << 10, 201), ((16 << 10) + 1, 413):
        body = log_in_text.ljust(size)
        for message in (b"Content-Length: %d\r\n\r\n" % size + body,
                        b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % size + body +
                        b"\r\n0\r\n\r\n"):
            with Raw(server) as raw:
                raw.send(head + message)
                answer = raw.answer()
                require_equal(answer.status, status, str(size))
                if status == 413:
                    require_problem(answer, 413, "BODYTOOLARGE")
    # The length alone is enough.
    with Raw(server) as raw:
        raw.send(head + b"Content-Length: 1000000\r\n\r\n")
        require_problem(raw.answer(), 413, "BODYTOOLARGE")


def test_the_password_is_told_to_nobody(options):
    """Neither password nor secret appears in the slow log or in the server's log."""
    server = serve(options, {**users(carol="~* +@all"), "slowlog-log-slower-than": "0"})
    with Client(server, None) as client, server.connect() as connection:
        secret = secret_of(client, "carol")
        log_in(client, "carol", "another-wrong-one")
        slow = repr(connection.call("SLOWLOG", "GET", "50").value)
        for word in PASSWORD, secret, "another-wrong-one":
            require(word not in slow, slow)
            require(word not in server.log_tail(), server.log_tail())


def test_a_change_of_the_user_ends_his_sessions(options):
    """A changed password or rights, off, deletion and re-creation end the user's sessions only."""
    server = serve(options, users(carol="~* +@all", dora="~* +@all"))
    changes = [("ACL", "SETUSER", "carol", "resetpass", ">" + PASSWORD + "2"),
               ("ACL", "SETUSER", "carol", "-q.add"), ("ACL", "SETUSER", "carol", "off"),
               ("ACL", "DELUSER", "carol")]
    with Client(server, None) as client, server.connect() as connection:
        other = secret_of(client, "dora")
        for change in changes:
            secret = secret_of(client, "carol")
            client.expect(200, "GET", QUEUES, token=secret)
            connection.call(*change)
            require_problem(client.get(QUEUES, token=secret), 401, "BADTOKEN")
            connection.call("ACL", "SETUSER", "carol", "reset", "on", ">" + PASSWORD, "~*",
                            "+@all")
            require_problem(client.get(QUEUES, token=secret), 401, "BADTOKEN")
        client.expect(200, "GET", QUEUES, token=other)


def test_requirepass_is_a_password_of_the_default_user(options):
    """The default user can log in if it has a password; a new password ends the session."""
    server = serve(options, {"requirepass": PASSWORD})
    with Client(server, None) as client, server.connect() as connection:
        connection.call("AUTH", PASSWORD)
        secret = secret_of(client, "default")
        require_equal(client.get(SESSION, token=secret).json["role"], "admin")
        connection.call("CONFIG", "SET", "requirepass", "another")
        require_problem(client.get(QUEUES, token=secret), 401, "BADTOKEN")
        require_problem(log_in(client, "default"), 401, "WRONGPASS")


def request_text(path, secret, extra=""):
    return (f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n"
            f"{extra}\r\n").encode()


def test_a_session_ends_after_its_time(options):
    """After http-session-timeout a session ends, and its streams end with the next event;
    a restart ends all."""
    server = serve(options, {**users(carol="~* +@all"), "http-session-timeout": "3"})
    with Client(server, ADMIN_TOKEN) as client, Raw(server) as stream:
        secret = secret_of(client, "carol")
        stream.send(request_text(STREAM, secret, "Accept: text/event-stream\r\n"))
        require_equal(stream.answer().status, 200)
        client.expect(201, "POST", QUEUES + "/q/jobs", {"id": "seen", "payload": ""})
        while b"seen" not in stream.buffer:
            require(stream.receive(), "the stream ended early")
        time.sleep(3.1)
        require_problem(client.get(QUEUES, token=secret), 401, "BADTOKEN")
        client.expect(201, "POST", QUEUES + "/q/jobs", {"id": "hidden", "payload": ""})
        while stream.receive():
            pass
        require(b"hidden" not in stream.buffer, stream.buffer)
    server = serve(options, users(carol="~* +@all"))
    with Client(server) as client:
        secret = secret_of(client, "carol")
    server.kill()
    server.start()
    with Client(server, secret) as client:
        require_problem(client.get(QUEUES), 401, "BADTOKEN")


def test_what_waits_ends_with_its_session(options):
    """A long poll takes no job after the log-out, nor after the session's time."""
    server = serve(options, {**users(carol="~* +@all"), "http-session-timeout": "3"})
    body = b'{"wait_ms": 20000}'
    with Client(server) as client:
        for logs_out in True, False:
            secret = secret_of(client, "carol")
            with Raw(server) as poll:
                poll.send(b"POST /api/v1/queues/q:pop HTTP/1.1\r\nHost: localhost\r\n"
                          b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n" %
                          (secret.encode(), len(body)) + body)
                wait_until(lambda: client.get(QUEUES + "/q").json["stats"]["waiting_pops"] == 1,
                           what="a pop that waits")
                if logs_out:
                    client.expect(200, "DELETE", SESSION, token=secret)
                members = require_problem(poll.answer(), 401, "BADTOKEN")
                require_equal(members["detail"], "The session has ended.")
                require(poll.at_end(), "the long poll stays open")
            client.expect(201, "POST", QUEUES + "/q/jobs", {"payload": ""})
            require_equal(client.get(QUEUES + "/q").json["stats"]["active"], 0)
            client.expect(200, "POST", QUEUES + "/q/jobs:cancel", {"where": {"all": True}})


def test_a_session_ends_while_its_change_becomes_durable(options):
    """The answer comes all the same: without it the client would make the change again."""
    directives = {**users(carol="~* +@all"), "http-session-timeout": "3", "appendonly": "yes",
                  "appendfsync": "always"}
    with held_disk(options) as (environment, held):
        server = serve(options, directives, environment=environment)
        body = b'{"payload": ""}'
        with Client(server) as client, Raw(server) as change:
            secret = secret_of(client, "carol")
            with open(held, "wb"):
                change.send(b"POST /api/v1/queues/q/jobs HTTP/1.1\r\nHost: localhost\r\n"
                            b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n" %
                            (secret.encode(), len(body)) + body)
            wait_until(lambda: client.get(SESSION, token=secret).status == 401, what="its end")
            time.sleep(0.1)
            os.unlink(held)
            answer = change.answer()
            require(answer is not None, "the connection ended without an answer")
            require_equal(answer.status, 201)


def test_wrong_passwords_are_limited(options):
    """After ten wrong ones from an address even the right one is not tried, for a minute; sessions
    and tokens go on."""
    server = serve(options, users(carol="~* +@all", dora="~* +@all"))
    with Client(server, ADMIN_TOKEN) as client:
        secret = secret_of(client, "carol")
        for number in range(10):
            require_problem(log_in(client, "carol", f"guess-{number}"), 401, "WRONGPASS")
        for name in "carol", "dora":
            answer = log_in(client, name)
            members = require_problem(answer, 429, "TOOMANYTRIES")
            require_equal((answer.headers["retry-after"], members["retry_after_ms"]),
                          ("60", 60000))
        with Client(server, ADMIN_TOKEN) as another:
            require_problem(log_in(another, "carol"), 429, "TOOMANYTRIES")
        client.expect(200, "GET", QUEUES, token=secret)
        client.expect(200, "GET", QUEUES)


def test_without_tokens_users_log_in_on_this_machine(options):
    """A server that only reads without tokens lets its users in with their rights."""
    server = serve(options, users(carol="~* +@all"), tokens=False)
    with Client(server, None) as client:
        require_problem(client.post(QUEUES + "/q/jobs", {"payload": ""}), 401, "NOAUTH")
        secret = secret_of(client, "carol")
        client.expect(201, "POST", QUEUES + "/q/jobs", {"payload": ""}, token=secret)
        guest = client.get(SESSION).json
        require_equal((guest["role"], guest["user"], guest["tokens"]), ("read", None, False))


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__], THREADS))
