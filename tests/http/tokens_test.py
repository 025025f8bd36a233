#!/usr/bin/python3
"""Tokens at run time: listed, made and removed over HTTP and by CONFIG, and what that ends.

    tests/http/tokens_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import hashlib
import json
import os
import re
import socket
import stat
import sys
import threading
import time

from harness import own_address, require, require_equal, run, scratch, servers, wait_until
from harness.http_client import (ADMIN_TOKEN, OPERATE_TOKEN, READ_TOKEN, THREADS, TOKENS, Client,
                                 Raw, require_problem, serve)
from harness.surroundings import held_disk

TOKENS_PATH = "/api/v1/tokens"
QUEUES = "/api/v1/queues"
STREAM = "/api/v1/queues/q/events"


def digest(secret):
    return hashlib.sha256(secret.encode()).hexdigest()


class FileServer(servers.ConfiguredServer):
    def text(self):
        with open(self.path, encoding="utf-8") as file:
            return file.read()


def serve_with_file(options, more=""):
    """A server whose configuration is a file, as CONFIG REWRITE needs it."""
    server = FileServer(options.program, kind="sluice")
    options.last = server
    lines = ["# first", "port auto", "http-port auto", 'appendonly no', 'save ""',
             f"dir {server.directory}", f"ready-file {server.directory}/ready",
             f"io-threads {options.io_threads}", "maxclients 500",
             *(f'http-token {role} ">{token}"' for role, token in TOKENS.items()), more]
    with open(server.path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    os.chmod(server.path, 0o600)
    server.start()
    return server


def tokens_of(client):
    return client.expect(200, "GET", TOKENS_PATH).json["tokens"]


def test_an_admin_makes_lists_and_removes_tokens(options):
    """A new token works at once with its role; its secret is returned once; revoked ones fail."""
    server = serve_with_file(options)
    with Client(server, ADMIN_TOKEN) as client:
        before = tokens_of(client)
        require_equal([token["role"] for token in before], ["read", "operate", "admin"])
        require_equal([token["own"] for token in before], [False, False, True])
        made = client.expect(201, "POST", TOKENS_PATH, {"role": "operate"}).json
        require(re.fullmatch("[0-9a-f]{64}", made["token"]), made)
        require_equal(made["id"], digest(made["token"])[:16])
        require(made["kept"], "it is not in the configuration's file")
        client.expect(201, "POST", QUEUES + "/q/jobs", {"payload": "x"}, token=made["token"])
        require_problem(client.get(TOKENS_PATH, token=made["token"]), 403, "NOPERM")
        listed = client.get(TOKENS_PATH)
        require(made["token"].encode() not in listed.body, "the list tells the secret")
        require(digest(made["token"]).encode() not in listed.body, "the list tells the hash")
        require_equal(listed.json["tokens"][-1],
                      {"id": made["id"], "role": "operate", "user": None, "own": False})
        require(made["token"] not in server.text(), "the file has the secret")
        gone = client.expect(200, "DELETE", f"{TOKENS_PATH}/{made['id']}").json
        require_equal(gone, {"id": made["id"], "kept": True})
        require_problem(client.get(QUEUES, token=made["token"]), 401, "BADTOKEN")
        require_problem(client.request("DELETE", f"{TOKENS_PATH}/{made['id']}"), 404, "NOTOKEN")
        require_equal(tokens_of(client), before)


def test_what_is_wrong_with_a_new_token_is_said(options):
    """An unknown role, a missing user and unknown members are 422 and named."""
    server = serve_with_file(options)
    with Client(server, ADMIN_TOKEN) as client:
        for body, field in (({}, "role"), ({"role": "owner"}, "role"), ({"role": 1}, "role"),
                            ({"role": "read", "user": "nobody"}, "user"),
                            ({"role": "read", "user": "de fault"}, "user"),
                            ({"role": "read", "name": "x"}, "name")):
            members = require_problem(client.post(TOKENS_PATH, body), 422, "BADFIELD")
            require_equal(members["field"], field, str(body))
        require_equal(len(tokens_of(client)), 3)
        require_problem(client.get(TOKENS_PATH + "?x=1"), 422, "BADFIELD")


def test_changes_survive_a_restart(options):
    """Tokens created and revoked over HTTP remain so after a kill; the rest of the file is kept."""
    server = serve_with_file(options)
    with server.connect() as connection, Client(server, ADMIN_TOKEN) as client:
        connection.call("ACL", "SETUSER", "carol", "on", "nopass", "~*", "+@all")
        connection.call("CONFIG", "SET", "maxclients", "400")
        made = client.expect(201, "POST", TOKENS_PATH, {"role": "read"}).json
        for token in tokens_of(client):
            if token["role"] == "operate":
                client.expect(200, "DELETE", f"{TOKENS_PATH}/{token['id']}")
    text = server.text()
    require("# first\n" in text and "maxclients 500\n" in text and "carol" not in text, text)
    require_equal(re.findall(r"^http-token (\w+) ", text, re.M), ["read", "admin", "read"])
    require_equal(stat.S_IMODE(os.stat(server.path).st_mode), 0o600, "mode of the file")
    server.kill()
    server.start()
    with Client(server, ADMIN_TOKEN) as client:
        client.expect(200, "GET", QUEUES, token=made["token"])
        client.expect(200, "GET", QUEUES, token=READ_TOKEN)
        require_problem(client.get(QUEUES, token=OPERATE_TOKEN), 401, "BADTOKEN")


def test_without_a_file_it_says_that_it_does_not_last(options):
    """Tokens of the command line: a change works, and `kept` is false."""
    server = serve(options)
    with Client(server, ADMIN_TOKEN) as client:
        made = client.expect(201, "POST", TOKENS_PATH, {"role": "read"}).json
        require_equal(made["kept"], False)
        client.expect(200, "GET", QUEUES, token=made["token"])


def test_the_last_token_stays(options):
    """The last token cannot be revoked over HTTP: reading would be open then."""
    server = serve(options, {"http-token": f"admin >{ADMIN_TOKEN}"}, tokens=False)
    with Client(server, ADMIN_TOKEN) as client:
        own, = tokens_of(client)
        require_problem(client.request("DELETE", f"{TOKENS_PATH}/{own['id']}"), 409, "LASTTOKEN")
        client.expect(200, "GET", QUEUES)


def test_there_are_a_thousand_at_most(options):
    """The thousandth token can be created, a further one is rejected."""
    words = " ".join(f"read #{digest(str(number))}" for number in range(998))
    server = serve(options)
    with Client(server, ADMIN_TOKEN) as client, server.connect() as connection:
        words += f" admin #{digest(ADMIN_TOKEN)}"
        connection.call("CONFIG", "SET", "http-token", words)
        client.expect(201, "POST", TOKENS_PATH, {"role": "read"})
        require_problem(client.post(TOKENS_PATH, {"role": "read"}), 409, "TOKENLIMIT")
        require_equal(len(tokens_of(client)), 1000)


def test_config_names_all_tokens(options):
    """CONFIG SET and GET of http-token: hashes only, all or nothing, redacted in the slow log."""
    server = serve_with_file(options, "slowlog-log-slower-than 0")
    with Client(server, ADMIN_TOKEN) as client, server.connect() as connection:
        shown = connection.call("CONFIG", "GET", "http-token").value[1].decode()
        require_equal(shown, " ".join(f"{role} #{digest(token)}"
                                      for role, token in TOKENS.items()))
        other = "another-token-0123456"
        both = f"admin >{ADMIN_TOKEN} read >{other} user carol"
        require_equal(connection.call("CONFIG", "SET", "http-token", both).raw, b"+OK\r\n")
        shown = connection.call("CONFIG", "GET", "http-token").value[1].decode()
        require_equal(shown, f"admin #{digest(ADMIN_TOKEN)} read #{digest(other)} user carol")
        log = repr(connection.call("SLOWLOG", "GET", "20").value)
        require(other not in log and "(redacted)" in log, log)
        require_problem(client.get(QUEUES, token=READ_TOKEN), 401, "BADTOKEN")
        for bad in ("admin", "admin short", "admin >short", "owner >0123456789abcdef",
                    f"admin >{ADMIN_TOKEN} x"):
            reply = connection.call("CONFIG", "SET", "http-token", bad)
            require(reply.is_error and b"'http-token'" in reply.raw, f"{bad}: {reply}")
        client.expect(200, "GET", QUEUES)
        require_equal(connection.call("CONFIG", "REWRITE").raw, b"+OK\r\n")
        require_equal(re.findall(r"^http-token (.*)$", server.text(), re.M),
                      [f"admin #{digest(ADMIN_TOKEN)}", f"read #{digest(other)} user carol"])


def test_a_user_without_config_makes_no_tokens(options):
    """The admin role of a token that speaks for a user does not go beyond the user's rules."""
    secret = "token-of-a-user-0123"
    server = serve(options, {"user": "carol on >pw ~* +@all -config",
                             "http-token": [f"admin >{secret} user carol"]})
    with Client(server, secret) as client:
        require_problem(client.get(TOKENS_PATH), 403, "NOPERM")
        require_problem(client.post(TOKENS_PATH, {"role": "read"}), 403, "NOPERM")
        with server.connect() as connection:
            connection.call("ACL", "SETUSER", "carol", "+config|get")
        one, = tokens_of(client)
        require_equal((one["role"], one["user"], one["own"]), ("admin", "carol", True))
        require_problem(client.request("DELETE", f"{TOKENS_PATH}/{one['id']}"), 403, "NOPERM")


def request_text(method, path, token, extra="", body=""):
    return (f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
            f"{extra}\r\n{body}").encode()


def test_a_removed_token_takes_its_streams_along(options):
    """Streams, long polls and half-sent requests of a removed token end; those of others go on."""
    server = serve_with_file(options)
    accept = "Accept: text/event-stream\r\n"
    with Client(server, ADMIN_TOKEN) as client, Raw(server) as stream, Raw(server) as other, \
            Raw(server) as poll, Raw(server) as half, Raw(server) as adder:
        made = client.expect(201, "POST", TOKENS_PATH, {"role": "operate"}).json
        stream.send(request_text("GET", STREAM, made["token"], accept))
        other.send(request_text("GET", STREAM, OPERATE_TOKEN, accept))
        require_equal(stream.answer().status, 200)
        require_equal(other.answer().status, 200)
        body = '{"wait_ms": 60000}'
        length = f"Content-Length: {len(body)}\r\n"
        poll.send(request_text("POST", QUEUES + "/q:pop", made["token"], length, body))
        body = '{"id": "a", "payload": "", "wait_ms": 60000}'
        adder.send(request_text("POST", QUEUES + "/added/jobs", made["token"],
                                f"Content-Length: {len(body)}\r\n", body))
        half.send(request_text("POST", QUEUES + "/q/jobs", made["token"],
                               "Expect: 100-continue\r\nContent-Length: 1000\r\n"))
        require_equal(half.answer(has_body=False).status, 100)
        half.send(b"{")
        wait_until(lambda: client.get(QUEUES + "/q").json["stats"]["waiting_pops"] == 1,
                   what="a pop that waits")
        wait_until(lambda: client.get(QUEUES + "/added").json["stats"]["pending"] == 1,
                   what="a job that is added")
        client.expect(200, "DELETE", f"{TOKENS_PATH}/{made['id']}")
        require_equal(require_problem(poll.answer(), 401, "BADTOKEN")["detail"],
                      "This token has been revoked.")
        require_equal(require_problem(adder.answer(), 401, "BADTOKEN")["detail"],
                      "This token has been revoked. What the request has changed before that "
                      "remains.")
        require(poll.at_end(), "the long poll stays open")
        require(stream.at_end(), "the stream stays open")
        require(half.answer() is None, "half a request is answered")
        client.expect(201, "POST", QUEUES + "/q/jobs", {"id": "j", "payload": ""})
        while b'"id":"j"' not in other.buffer.replace(b" ", b""):
            require(other.receive(), "a stream of another token ended")
        stats = client.get(QUEUES + "/q").json["stats"]
        require_equal((stats["waiting_pops"], stats["pending"]), (0, 1))


def is_blocked(connection, number):
    return b" flags=b " in connection.call("CLIENT", "LIST", "ID", number).value


def added_of_removed_token(client, server, held, queue):
    """A token is removed while its request adds 1,000 jobs: returns how many are added if that has
    ended the request. Its answer waits for the disk, for long enough to add all."""
    made = client.expect(201, "POST", TOKENS_PATH, {"role": "operate"}).json
    body = json.dumps([{"payload": ""}] * 1000)
    with Raw(server) as adder, server.connect() as popper, server.connect() as other:
        number = popper.call("CLIENT", "ID").value
        popper.send("Q.POP", "1", queue, "BLOCK", "0")
        wait_until(lambda: is_blocked(other, number), what="a pop that waits")
        with open(held, "wb"):
            adder.send(request_text("POST", f"{QUEUES}/{queue}/jobs", made["token"],
                                    f"Content-Length: {len(body)}\r\n", body))
        # It has the first job, of which it is told when that is on the disk.
        wait_until(lambda: not is_blocked(other, number), what="a job")
        client.expect(200, "DELETE", f"{TOKENS_PATH}/{made['id']}")
        time.sleep(1)
        os.unlink(held)
        answer = adder.answer()
    if answer.status == 200:
        return None
    require_problem(answer, 401, "BADTOKEN")
    return client.get(f"{QUEUES}/{queue}").json["stats"]["added"]


def test_a_removed_token_adds_no_further_job(options):
    """A request on many jobs that is under way changes none after its token is removed."""
    with held_disk(options) as (environment, held):
        server = serve(options, {"appendonly": "yes", "appendfsync": "always"},
                       environment=environment)
        added = [None]
        with Client(server, ADMIN_TOKEN) as client:
            # The removal may come too late.
            while len(added) < 10 and added[-1] in (None, 1000):
                added.append(added_of_removed_token(client, server, held, f"q{len(added)}"))
        require(added[-1] not in (None, 1000), f"of 1,000 jobs are added: {added}")


CAROL = "token-of-carol-0123456"
RULES = "on nopass ~* +@all"


def serve_carol(options, directives):
    """A server with a token that speaks for the ACL user carol, and the usual ones."""
    tokens = [f"{role} >{token}" for role, token in TOKENS.items()]
    return serve(options, {"http-token": [*tokens, f"operate >{CAROL} user carol"], **directives},
                 tokens=False)


def wait_and_listen(client, poll, stream):
    """A long poll and a stream of carol's, both at q and under way."""
    body = '{"wait_ms": 60000}'
    poll.send(request_text("POST", QUEUES + "/q:pop", CAROL, f"Content-Length: {len(body)}\r\n",
                           body))
    stream.send(request_text("GET", STREAM, CAROL, "Accept: text/event-stream\r\n"))
    require_equal(stream.answer().status, 200)
    wait_until(lambda: client.get(QUEUES + "/q").json["stats"]["waiting_pops"] == 1,
               what="a pop that waits")


def test_a_changed_user_ends_what_he_is_being_answered(options):
    """Off or deleted: long polls get 401, streams end. Without the right: 403, and the end."""
    server = serve_carol(options, {"user": f"carol {RULES}"})
    for change, code, stream_ends in (
            ("SETUSER carol off", (401, "BADTOKEN"), True),
            ("DELUSER carol", (401, "BADTOKEN"), True),
            ("SETUSER carol resetkeys", (403, "NOPERM"), True),
            ("SETUSER carol -q.pop", (403, "NOPERM"), False),
            ("SETUSER carol -q.events", None, True),
            ("SETUSER carol -q.add", None, False)):
        with Client(server) as client, server.connect() as connection, Raw(server) as poll, \
                Raw(server) as stream:
            wait_and_listen(client, poll, stream)
            reply = connection.call("ACL", *change.split())
            require(not reply.is_error, f"{change}: {reply}")
            if code is not None:
                require_problem(poll.answer(), *code)
                require(poll.at_end(), f"{change}: the long poll stays open")
            if stream_ends:
                require(stream.at_end(), f"{change}: the stream stays open")
            client.expect(201, "POST", QUEUES + "/q/jobs", {"id": "j", "payload": ""})
            require_equal(client.get(QUEUES + "/q/jobs/j").json["state"],
                          "pending" if code else "active", change)
            if code is None:
                require_equal(poll.answer().json["jobs"][0]["id"], "j", change)
            while not stream_ends and b'"id":"j"' not in stream.buffer:
                require(stream.receive(), f"{change}: the stream ended")
            connection.call("DEL", "q")
            connection.call("ACL", "SETUSER", "carol", "reset", *RULES.split())


def test_a_token_that_is_given_to_another_user_ends_what_it_was_answered(options):
    """The same token and role, but of another user: streams and long polls are not his."""
    rules = [f"carol {RULES}", f"dave {RULES}"]
    server = serve_carol(options, {"user": rules})
    others = " ".join(f"{role} >{token}" for role, token in TOKENS.items())
    for owner in "user dave", "", "user carol":
        with Client(server) as client, server.connect() as connection, Raw(server) as poll, \
                Raw(server) as stream, Raw(server) as other:
            wait_and_listen(client, poll, stream)
            other.send(request_text("GET", STREAM, OPERATE_TOKEN, "Accept: text/event-stream\r\n"))
            require_equal(other.answer().status, 200)
            given = f"{others} operate >{CAROL} {owner}".strip()
            require_equal(connection.call("CONFIG", "SET", "http-token", given).raw, b"+OK\r\n")
            require_problem(poll.answer(), 401, "BADTOKEN")
            require(stream.at_end(), f"the stream stays open: {owner}")
            client.expect(200, "GET", QUEUES, token=CAROL)
            client.expect(201, "POST", QUEUES + "/q/jobs", {"id": "j", "payload": ""})
            while b'"id":"j"' not in other.buffer.replace(b" ", b""):
                require(other.receive(), "a stream of another token ended")
            connection.call("DEL", "q")


def test_loaded_users_end_what_the_old_ones_are_answered(options):
    """ACL LOAD ends requests as over RESP, even if the user's rules in the file are unchanged."""
    with scratch() as directory:
        path = os.path.join(directory, "users.acl")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"user carol {RULES}\n")
        server = serve_carol(options, {"aclfile": path})
        with Client(server) as client, server.connect() as connection, Raw(server) as poll, \
                Raw(server) as stream:
            wait_and_listen(client, poll, stream)
            require_equal(connection.call("ACL", "LOAD").raw, b"+OK\r\n")
            require_problem(poll.answer(), 401, "BADTOKEN")
            require(stream.at_end(), "the stream stays open")
            client.expect(200, "GET", QUEUES, token=CAROL)


def test_a_copy_ends_when_its_user_loses_keys(options):
    """A copy of all data ends early when its token's user may no longer read every key."""
    keys = 64
    server = serve(options, {"appendonly": "yes", "appendfsync": "no", "user": f"carol {RULES}",
                             "http-token": f"admin >{CAROL} user carol"}, tokens=False)
    with server.connect() as connection, Client(server, CAROL) as client, Raw(server) as copy:
        for number in range(keys):
            connection.call("SET", f"k{number}", os.urandom(1 << 20))
        client.expect(202, "POST", "/api/v1/checkpoint")
        wait_until(lambda: client.get("/api/v1/journal").json["checkpoint"]["number"] >= 1,
                   what="a checkpoint")
        copy.send(request_text("GET", "/api/v1/checkpoint", CAROL))
        require_equal(copy.answer(has_body=False).status, 200)
        connection.call("ACL", "SETUSER", "carol", "resetkeys", "~k*")
        received = len(copy.buffer)
        while copy.receive():
            received += len(copy.buffer)
            copy.buffer = b""
        # What was on its way is in the buffers of both sides.
        require(received < keys << 19, f"{received} bytes came")


def test_the_first_token_ends_open_reading(options):
    """A stream opened without a token ends when a token is added, and open access ends."""
    server = serve(options, tokens=False)
    with Client(server, None) as client, Raw(server) as stream, server.connect() as connection:
        stream.send(b"GET " + STREAM.encode() + b" HTTP/1.1\r\nHost: localhost\r\n"
                    b"Accept: text/event-stream\r\n\r\n")
        require_equal(stream.answer().status, 200)
        client.expect(200, "GET", QUEUES)
        connection.call("CONFIG", "SET", "http-token", f"read >{READ_TOKEN}")
        require(stream.at_end(), "the stream stays open")
        require_problem(client.get(QUEUES), 401, "NOAUTH")
        client.expect(200, "GET", QUEUES, token=READ_TOKEN)
        connection.call("CONFIG", "SET", "http-token", "")
        client.expect(200, "GET", QUEUES)


def test_without_tokens_no_connection_of_others_stays(options):
    """A remote client that came with a token is not served later by open reading."""
    address = own_address()
    if address is None:
        return
    for version in "1.1", "1.0":
        server = serve(options, {"http-bind": "* -::1"})
        with Raw(server) as raw, server.connect() as connection:
            raw.socket.close()
            raw.socket = socket.create_connection((address, server.http_port), timeout=30)
            raw.send(f"GET {QUEUES} HTTP/1.1\r\nHost: {address}\r\n"
                     f"Authorization: Bearer {READ_TOKEN}\r\n\r\n".encode())
            require_equal(raw.answer().status, 200)
            connection.call("CONFIG", "SET", "http-token", "")
            raw.send(f"GET {QUEUES} HTTP/{version}\r\nHost: {address}\r\n\r\n".encode())
            require_problem(raw.answer(), 403, "LOOPBACKONLY")
        server.close()


def test_many_admins_at_once_lose_no_token(options):
    """Tokens that are made and removed on several connections and threads at once all count."""
    server = serve_with_file(options)
    faults = []

    def work():
        try:
            with Client(server, ADMIN_TOKEN) as client:
                for _ in range(10):
                    stays = client.expect(201, "POST", TOKENS_PATH, {"role": "read"}).json
                    goes = client.expect(201, "POST", TOKENS_PATH, {"role": "read"}).json
                    client.expect(200, "DELETE", f"{TOKENS_PATH}/{goes['id']}")
                    client.expect(200, "GET", QUEUES, token=stays["token"])
        except Exception as error:  # pylint: disable=broad-except
            faults.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    require(not faults, faults)
    with Client(server, ADMIN_TOKEN) as client:
        require_equal(len(tokens_of(client)), 3 + 60)
    require_equal(len(re.findall("^http-token ", server.text(), re.M)), 63)


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__], THREADS))
