#!/usr/bin/python3
"""Authorization over HTTP: every route with every role, tokens, users, access without tokens.

    tests/http/access_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import hashlib
import socket
import sys

from harness import own_address, require, require_equal, run
from harness.http_client import (ADMIN_TOKEN, OPERATE_TOKEN, READ_TOKEN, THREADS, TOKENS, Client,
                                 Raw, require_problem, serve)

QUEUE = "/api/v1/queues/q"
JOB = QUEUE + "/jobs/j"
LEASE = {"lease": 1}
EXECUTIONS = "/api/v1/admin/executions/"
GRADING = "/api/v1/grading_queue"
GRADING_JOB = {"key": "k", "collation": {"type": "team", "id": "7"}}

# (method, path, body, the role that is needed): every route of the server.
ROUTES = [
    ("GET", "/healthz", None, "open"),
    ("GET", "/primary", None, "open"),
    ("GET", "/standby", None, "open"),
    ("GET", "/api/v1/group", None, "read"),
    ("GET", "/api/v1/session", None, "open"),
    ("POST", "/api/v1/session", {}, "open"),
    ("DELETE", "/api/v1/session", None, "any"),
    ("GET", "/readyz", None, "any"),
    ("GET", "/metrics", None, "any"),
    ("GET", "/api/v1/journal", None, "read"),
    ("GET", "/api/v1/server", None, "read"),
    ("GET", "/api/v1/changes", None, "read"),
    ("GET", "/api/v1/workers", None, "read"),
    ("GET", "/api/v1/queues", None, "read"),
    ("GET", "/api/v1/find?q=x", None, "read"),
    ("GET", QUEUE, None, "read"),
    ("GET", QUEUE + "/config", None, "read"),
    ("GET", QUEUE + "/rules", None, "read"),
    ("GET", QUEUE + "/bands", None, "read"),
    ("GET", QUEUE + "/groups", None, "read"),
    ("GET", QUEUE + "/groups/g", None, "read"),
    ("GET", QUEUE + "/keys", None, "read"),
    ("GET", QUEUE + "/failures", None, "read"),
    ("GET", QUEUE + "/tags/lang", None, "read"),
    ("GET", QUEUE + "/workers", None, "read"),
    ("GET", QUEUE + "/events", None, "read"),
    ("GET", QUEUE + "/history", None, "read"),
    ("GET", "/api/v1/history", None, "read"),
    ("GET", QUEUE + "/jobs", None, "read"),
    ("GET", JOB, None, "read"),
    ("GET", JOB + "/stream", None, "read"),
    ("GET", JOB + "/log", None, "read"),
    ("GET", "/api/v1/openapi.json", None, "read"),
    ("GET", EXECUTIONS, None, "read"),
    ("GET", EXECUTIONS + "queue", None, "read"),
    ("GET", "/api/queue-stats", None, "read"),
    ("GET", GRADING, None, "read"),
    ("GET", GRADING + "/k/status", None, "read"),
    ("PUT", EXECUTIONS + "e/priority", {"priority": "high"}, "operate"),
    ("PUT", GRADING, GRADING_JOB, "operate"),
    ("PUT", GRADING + "/immediate", GRADING_JOB, "operate"),
    ("PUT", GRADING + "/move", {"jobKey": "k", "moveAction": "delay"}, "operate"),
    ("DELETE", GRADING + "/k", None, "operate"),
    ("PATCH", QUEUE, {"max_active": 9}, "operate"),
    ("DELETE", QUEUE, None, "operate"),
    ("DELETE", QUEUE + "/config", None, "operate"),
    ("POST", QUEUE + "/jobs", {"payload": ""}, "operate"),
    ("PATCH", JOB, {"pri": "HIGH"}, "operate"),
    ("POST", JOB + ":cancel", {}, "operate"),
    ("POST", JOB + ":retry", {}, "operate"),
    ("POST", JOB + ":ack", LEASE, "operate"),
    ("POST", JOB + ":nack", LEASE, "operate"),
    ("POST", JOB + ":touch", LEASE, "operate"),
    ("POST", QUEUE + "/jobs:ack", {"jobs": []}, "operate"),
    ("POST", QUEUE + "/jobs:touch", {"jobs": []}, "operate"),
    ("POST", QUEUE + "/jobs:nack", {"where": {"worker": "w"}}, "operate"),
    ("POST", QUEUE + ":pop", {}, "operate"),
    ("POST", QUEUE + "/jobs:cancel", {"where": {"all": True}}, "operate"),
    ("POST", QUEUE + "/jobs:retry", {"where": {"all": True}}, "operate"),
    ("POST", QUEUE + "/jobs:purge", {"where": {"all": True}}, "operate"),
    ("GET", "/api/v1/checkpoint", None, "admin"),
    ("POST", "/api/v1/checkpoint", None, "admin"),
    ("GET", "/api/v1/tokens", None, "admin"),
    ("POST", "/api/v1/tokens", {"role": "read"}, "admin"),
    ("DELETE", "/api/v1/tokens/0123456789abcdef", None, "admin"),
]
RANK = {"open": 0, "any": 1, "read": 1, "operate": 2, "admin": 3}


def count_routes(client):
    paths = client.expect(200, "GET", "/api/v1/openapi.json").json["paths"]
    return sum(method != "head" for operations in paths.values() for method in operations)


def test_every_route_and_every_role(options):
    """Each route answers 401 without a token, 403 below its role, and its own answer above."""
    server = serve(options)
    with Client(server) as client:
        require_equal(len({(method, path) for method, path, _, _ in ROUTES}), count_routes(client),
                      "routes that are tested here")
        for method, path, body, needed in ROUTES:
            for role, token in {None: None, **TOKENS}.items():
                answer = client.request(method, path, body, token=token)
                where = f"{method} {path} as {role}"
                if role is None and needed != "open":
                    require_problem(answer, 401, "NOAUTH")
                    require_equal(answer.headers["www-authenticate"], "Bearer", where)
                elif role is not None and RANK[role] < RANK[needed]:
                    require_problem(answer, 403, "NOPERM")
                else:
                    require(answer.status not in (401, 403, 405, 500),
                            f"{where}: {answer.status} {answer.body!r}")


def test_nothing_changes_below_its_role(options):
    """A change that the role does not allow has no effect."""
    server = serve(options)
    with Client(server, OPERATE_TOKEN) as client:
        client.expect(201, "POST", QUEUE + "/jobs", {"id": "j", "payload": "x"})
        before = client.get(QUEUE).json["config"]
        for method, path, body, needed in ROUTES:
            if needed in ("operate", "admin"):
                client.expect(403, method, path, body, token=READ_TOKEN)
                client.expect(401, method, path, body, token=None)
        after = client.get(QUEUE).json
        require_equal(after["config"], before)
        require_equal(after["stats"]["pending"], 1)
        require_equal(after["stats"]["added"], 1)


def test_without_a_token_this_machine_may_read(options):
    """No token is configured: reading is open on this machine, every change is 401."""
    server = serve(options, tokens=False)
    with Client(server, None) as client:
        for method, path, body, needed in ROUTES:
            answer = client.request(method, path, body)
            if needed in ("operate", "admin"):
                require_problem(answer, 401, "NOAUTH")
            else:
                # A log-in without a name is not attempted.
                expected = (422,) if (method, needed) == ("POST", "open") else (200, 404)
                if path == "/standby":
                    expected = (503,)
                require(answer.status in expected, f"{path}: {answer.status} {answer.body!r}")
        require_problem(client.get("/nothing"), 404, "NOTFOUND")


def test_wrong_tokens(options):
    """An unknown token, another scheme, and no token at all: distinguished, and rejected."""
    server = serve(options)
    with Client(server, None) as client:
        for value in ("Bearer " + READ_TOKEN + "x", "Bearer " + READ_TOKEN[:-1], "Bearer ",
                      "Bearer", "Basic cmVhZDpyZWFk", READ_TOKEN,
                      "Bearer " + hashlib.sha256(READ_TOKEN.encode()).hexdigest()):
            answer = client.get("/api/v1/queues", headers={"Authorization": value})
            require_problem(answer, 401, "BADTOKEN")
        client.expect(200, "GET", "/api/v1/queues",
                      headers={"Authorization": "bearer " + READ_TOKEN})


def test_a_token_may_speak_for_a_user(options):
    """The rules of a token's user apply besides its role; the user can be disabled."""
    secret = "token-of-a-user-0123"
    digest = hashlib.sha256(secret.encode()).hexdigest()
    server = serve(options, {"user": "carol on >pw ~mine:* +@all",
                             "http-token": [f"operate #{digest} user carol",
                                            f"admin >{ADMIN_TOKEN}"]})
    with Client(server, secret) as client:
        client.expect(201, "POST", "/api/v1/queues/mine:q/jobs", {"payload": "x"})
        client.expect(201, "POST", "/api/v1/queues/other/jobs", {"payload": "x"},
                      token=ADMIN_TOKEN)
        require_problem(client.post("/api/v1/queues/other/jobs", {"payload": "x"}), 403, "NOPERM")
        require_problem(client.get("/api/v1/queues/other"), 403, "NOPERM")
        names = [queue["name"] for queue in client.get("/api/v1/queues").json["queues"]]
        require_equal(names, ["mine:q"], "the queues that carol may see")
        require_problem(client.post("/api/v1/checkpoint"), 403, "NOPERM")
        with server.connect() as connection:
            connection.call("ACL", "SETUSER", "carol", "off")
            require_problem(client.get("/api/v1/queues/mine:q"), 401, "BADTOKEN")
            connection.call("ACL", "SETUSER", "carol", "on", "-q.add")
            require_problem(client.post("/api/v1/queues/mine:q/jobs", {"payload": "x"}), 403,
                            "NOPERM")
            connection.call("ACL", "DELUSER", "carol")
        require_problem(client.get("/api/v1/queues/mine:q"), 401, "BADTOKEN")


def test_payloads_of_shown_keys(options):
    """A payload of plain keys that a queue shows is read and deleted by the user's own rights."""
    secret = "token-of-a-user-0123"
    server = serve(options, {"user": "eve on >pw ~ok:* +@all",
                             "http-token": [f"operate >{secret} user eve", f"admin >{ADMIN_TOKEN}"]})
    shown = "/api/v1/queues/ok:q/jobs"
    with Client(server, secret) as client, server.connect() as connection:
        for words in (["ZADD", "ok:w", 1, "ret", 2, "other"], ["SET", "secret", "x"],
                      ["Q.ADOPT", "ok:q", "PENDING", "ok:w", "ACTIVE", "ok:act", "PAYLOAD", "sec"]):
            require(not connection.call(*words).raw.startswith(b"-"), f"{words}")
        client.expect(200, "GET", shown + "/ret")
        require_problem(client.get(shown + "/ret?with=payload"), 403, "NOPERM")
        require_problem(client.get(shown + "?with=payload"), 403, "NOPERM")
        require_problem(client.post(shown + "/ret:cancel", {}), 403, "NOPERM")
        require_problem(client.post(shown + ":cancel", {"where": {"state": ["pending"]}}), 403,
                        "NOPERM")
        require_equal(connection.call("ZCARD", "ok:w").raw, b":2\r\n", "what is left of the jobs")
        connection.call("ACL", "SETUSER", "eve", "~sec*")
        job = client.get(shown + "/ret?with=payload").json
        require_equal(job["payload"], "x", "the payload")
        client.expect(200, "POST", shown + "/ret:cancel", {})
        require_equal(connection.call("EXISTS", "secret").raw, b":0\r\n", "the payload's key")


def test_bad_token_lines_do_not_start(options):
    """An unknown role, a short token, half a hash: the server reports it and does not start."""
    for line in ("owner >0123456789abcdef", "read >short", "read #0123", "read 0123456789abcdef",
                 "read", "read >0123456789abcdef group x"):
        words = ["--port", "0", "--http-token", *line.split(" ")]
        code, text = options.run(*words)
        require(code == 1 and "http-token" in text, f"{line}: exit {code}, {text}")


def test_without_a_token_others_are_refused(options):
    """A remote client is served only with a token."""
    address = own_address()
    if address is None:
        return
    for tokens in False, True:
        server = serve(options, {"http-bind": "* -::1"}, tokens=tokens)
        with Raw(server) as raw:
            raw.socket.close()
            raw.socket = socket.create_connection((address, server.http_port), timeout=30)
            raw.send(b"GET /healthz HTTP/1.1\r\nHost: " + address.encode() + b"\r\n\r\n")
            if tokens:
                require_equal(raw.answer().status, 200)
            else:
                require_problem(raw.answer(), 403, "LOOPBACKONLY")
                require(raw.at_end(), "it stays open")
        server.close()


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__], THREADS))
