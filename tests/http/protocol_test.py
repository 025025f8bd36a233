#!/usr/bin/python3
"""The HTTP protocol: keep-alive, limits, malformed requests, slow clients, hosts, origins.

    tests/http/protocol_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import contextlib
import json
import socket
import sys
import time

from harness import require, require_equal, run, wait_until
from harness.http_client import READ_TOKEN, THREADS, Client, Raw, require_problem, serve

HOST = b"Host: localhost\r\n"
AUTHORIZED = HOST + b"Authorization: Bearer operate-token-0123456789\r\n"
CHUNKED = AUTHORIZED + b"Transfer-Encoding: chunked\r\n"
JOBS = b"POST /api/v1/queues/q/jobs HTTP/1.1\r\n"
BODY = b'{"payload": "x"}'


def connections(server):
    """HTTP connections that the server has, with the one that asks."""
    with Client(server) as client:
        for line in client.get("/metrics").body.decode().splitlines():
            if line.startswith("sluice_http_connections "):
                return int(line.split()[1])
    raise AssertionError("no sluice_http_connections")


def test_connections_are_kept_alive_and_pipelined(options):
    """Several requests go over one connection, also sent ahead, and are answered in order."""
    server = serve(options)
    with Client(server, READ_TOKEN) as client:
        for _ in range(3):
            require_equal(client.get("/healthz").status, 200)
            require_problem(client.get("/nothing"), 404, "NOTFOUND")
    with Raw(server) as raw:
        raw.send(b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n" +
                 JOBS + AUTHORIZED + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY +
                 b"GET /api/v1/queues HTTP/1.1\r\n" + AUTHORIZED + b"\r\n" +
                 b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
        statuses = [raw.answer().status for _ in range(4)]
        require_equal(statuses, [200, 201, 200, 200])
        require(raw.at_end(), "the connection stays open after Connection: close")
    with Raw(server) as raw:
        raw.send(b"GET /healthz HTTP/1.0\r\n\r\n")
        require_equal(raw.answer().status, 200)
        require(raw.at_end(), "HTTP/1.0 is kept alive")


def test_bodies_come_in_any_pieces(options):
    """A body with a length, chunked, byte by byte, and after 100 Continue."""
    server = serve(options)
    with Raw(server) as raw:
        raw.send(JOBS + CHUNKED + b"\r\n5\r\n" + BODY[:5] + b"\r\n" +
                 b"%X\r\n" % (len(BODY) - 5) + BODY[5:] + b"\r\n0\r\n\r\n")
        require_equal(raw.answer().status, 201)
        for byte in JOBS + CHUNKED + b"\r\n%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n":
            raw.send(bytes([byte]))
        require_equal(raw.answer().status, 201)
        raw.send(JOBS + AUTHORIZED + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" %
                 len(BODY))
        require_equal(raw.answer(has_body=False).status, 100)
        raw.send(BODY)
        require_equal(raw.answer().status, 201)
    with Client(server) as client:
        require_equal(client.get("/api/v1/queues/q").json["stats"]["pending"], 3)


def test_head_has_no_body(options):
    """HEAD answers as GET does, without the body."""
    server = serve(options)
    with Raw(server) as raw:
        raw.send(b"HEAD /healthz HTTP/1.1\r\n" + HOST + b"\r\n")
        head = raw.answer(has_body=False)
        raw.send(b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n")
        whole = raw.answer()
        require_equal(head.status, 200)
        require_equal(head.headers, whole.headers)


SMUGGLED = {
    "length and chunks": JOBS + CHUNKED + b"Content-Length: 4\r\n\r\n0\r\n\r\n",
    "chunks and length": JOBS + AUTHORIZED + b"Content-Length: 4\r\n"
                         b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": JOBS + AUTHORIZED + b"Content-Length: 4\r\nContent-Length: 16\r\n\r\n" + BODY,
    "the same length twice": JOBS + AUTHORIZED +
                             b"Content-Length: 16\r\nContent-Length: 16\r\n\r\n" + BODY,
    "a list of lengths": JOBS + AUTHORIZED + b"Content-Length: 16, 16\r\n\r\n" + BODY,
    "a signed length": JOBS + AUTHORIZED + b"Content-Length: +16\r\n\r\n" + BODY,
    "a negative length": JOBS + AUTHORIZED + b"Content-Length: -1\r\n\r\n" + BODY,
    "a length in hexadecimal": JOBS + AUTHORIZED + b"Content-Length: 0x10\r\n\r\n" + BODY,
    "an empty length": JOBS + AUTHORIZED + b"Content-Length:\r\n\r\n" + BODY,
    "two encodings": JOBS + CHUNKED + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "an encoding of HTTP/1.0": b"POST /api/v1/queues/q/jobs HTTP/1.0\r\n" + CHUNKED +
                               b"\r\n0\r\n\r\n",
    "a folded line": b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: a\r\n b\r\n\r\n",
    "a folded encoding": JOBS + AUTHORIZED + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "a blank before the colon": JOBS + AUTHORIZED + b"Content-Length : 16\r\n\r\n" + BODY,
    "a first line that is folded": b"GET /healthz HTTP/1.1\r\n Host: a\r\n" + HOST + b"\r\n",
    "bare line feeds": b"GET /healthz HTTP/1.1\nHost: localhost\n\n",
    "one bare line feed": b"GET /healthz HTTP/1.1\r\nX: a\n" + HOST + b"\r\n",
    "a bare carriage return": b"GET /healthz HTTP/1.1\r\nX: a\rContent-Length: 5\r\n" + HOST +
                              b"\r\n",
    "a NUL": b"GET /healthz HTTP/1.1\r\nX: a\0b\r\n" + HOST + b"\r\n",
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /healthz HTTP/1.1\r\n" + HOST + HOST + b"\r\n",
    "two hosts of HTTP/1.0": b"GET /healthz HTTP/1.0\r\n" + HOST + HOST + b"\r\n",
    "a line without a colon": b"GET /healthz HTTP/1.1\r\n" + HOST + b"nonsense\r\n\r\n",
    "a line without a name": b"GET /healthz HTTP/1.1\r\n" + HOST + b": x\r\n\r\n",
    "no target": b"GET HTTP/1.1\r\n" + HOST + b"\r\n",
    "no version": b"GET /healthz\r\n" + HOST + b"\r\n",
    "two blanks": b"GET  /healthz HTTP/1.1\r\n" + HOST + b"\r\n",
    "an absolute target": b"GET http://localhost/healthz HTTP/1.1\r\n" + HOST + b"\r\n",
    "a target of another form": b"GET healthz HTTP/1.1\r\n" + HOST + b"\r\n",
    "a bad escape": b"GET /api/v1/queues/%zz HTTP/1.1\r\n" + AUTHORIZED + b"\r\n",
    "a cut escape": b"GET /api/v1/queues/%4 HTTP/1.1\r\n" + AUTHORIZED + b"\r\n",
    "RESP": b"*1\r\n$4\r\nPING\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "a chunk's bad size": JOBS + CHUNKED + b"\r\nzz\r\n" + BODY + b"\r\n0\r\n\r\n",
    "a chunk's signed size": JOBS + CHUNKED + b"\r\n+10\r\n" + BODY + b"\r\n0\r\n\r\n",
    "a chunk's empty size": JOBS + CHUNKED + b"\r\n\r\n" + BODY + b"\r\n0\r\n\r\n",
    "a chunk's blank": JOBS + CHUNKED + b"\r\n10 \r\n" + BODY + b"\r\n0\r\n\r\n",
    "a chunk's huge size": JOBS + CHUNKED + b"\r\nfffffffffffffffff\r\n" + BODY,
    "a chunk's extension": JOBS + CHUNKED + b"\r\n10;a=b\r\n" + BODY + b"\r\n0\r\n\r\n",
    "a chunk that is too long": JOBS + CHUNKED + b"\r\n10\r\n" + BODY + b"xx\r\n0\r\n\r\n",
    "a chunk's bare line feed": JOBS + CHUNKED + b"\r\n10\n" + BODY + b"\r\n0\r\n\r\n",
    "a trailer": JOBS + CHUNKED + b"\r\n10\r\n" + BODY + b"\r\n0\r\nX: y\r\n\r\n",
}


def test_what_others_could_read_otherwise_is_refused(options):
    """Each way of smuggling a request ends in 400 and the end of the connection."""
    server = serve(options)
    # What comes behind must not be taken for a request of its own.
    hidden = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
    for name, data in SMUGGLED.items():
        with Raw(server) as raw:
            raw.send(data + hidden)
            answer = raw.answer()
            require(answer is not None, f"{name}: no answer")
            require(answer.status == 400, f"{name}: {answer.status} {answer.body!r}")
            require(raw.at_end(), f"{name}: more than one answer, or it stays open: {raw.buffer!r}")
    with Client(server) as client:
        require_equal(client.get("/api/v1/queues").json["queues"], [])


def test_the_body_of_a_refused_request_is_no_request(options):
    """A request that is refused by its head ends the connection, as its body is not read."""
    server = serve(options)
    hidden = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
    begin = JOBS + HOST + b"Authorization: Bearer of-nobody\r\n"
    for head in (begin + b"Content-Length: %d\r\n\r\n" % len(hidden),
                 begin + b"Transfer-Encoding: chunked\r\n\r\n"):
        with Raw(server) as raw:
            raw.send(head + hidden)
            require_problem(raw.answer(), 401, "BADTOKEN")
            require(raw.at_end(), f"the body is answered: {raw.buffer!r}")


def test_methods_versions_and_encodings(options):
    """501 for an unknown method, 405 with Allow for one the path lacks, 505, 417, 415."""
    server = serve(options)
    with Client(server) as client:
        require_problem(client.request("FROB", "/healthz"), 501, "BADMETHOD")
        answer = client.request("DELETE", "/healthz")
        require_problem(answer, 405, "BADMETHOD")
        require_equal(answer.headers["allow"], "GET, HEAD")
        require_problem(client.request("OPTIONS", "/healthz"), 405, "BADMETHOD")
        answer = client.request("PUT", "/api/v1/queues/q/jobs", {})
        require_problem(answer, 405, "BADMETHOD")
        require_equal(answer.headers["allow"], "GET, HEAD, POST")
        for kind in ("application/x-www-form-urlencoded", "application/jsonx", "application/json5",
                     "application/json-seq; charset=utf-8", ""):
            require_problem(client.post("/api/v1/queues/q/jobs", b"{}", headers={
                "Content-Type": kind}), 415, "BADTYPE")
        for kind in "application/json", "Application/JSON;charset=utf-8", "application/json ; x=y":
            require_problem(client.post("/api/v1/queues/q/jobs", b"{}", headers={
                "Content-Type": kind}), 422, "BADFIELD")
    for data, status, code in [
            (b"GET /healthz HTTP/2.0\r\n" + HOST + b"\r\n", 505, "BADVERSION"),
            # A client of Redis waits for the answer to this.
            (b"*1\r\n$4\r\nPING\r\n", 400, "BADREQUEST"),
            (JOBS + AUTHORIZED + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 501, "BADREQUEST"),
            (JOBS + AUTHORIZED + b"Expect: a pony\r\nContent-Length: 2\r\n\r\n", 417,
             "BADREQUEST")]:
        with Raw(server) as raw:
            raw.send(data)
            require_problem(raw.answer(), status, code)
            require(raw.at_end(), "it stays open")


def test_limits(options):
    """Targets, headers, bodies and connections have limits, each with its status."""
    server = serve(options, {"http-max-body": "1024", "http-maxclients": "8"})
    with Raw(server) as raw:
        raw.send(b"GET /" + b"a" * 20000)
        require_problem(raw.answer(), 414, "URITOOLONG")
        require(raw.at_end(), "414 leaves it open")
    with Raw(server) as raw:
        raw.send(b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n" + HOST + b"\r\n")
        require_problem(raw.answer(), 414, "URITOOLONG")
    for line in b"X: " + b"a" * 20000 + b"\r\n", b"X: a\r\n" * 4000:
        with Raw(server) as raw:
            raw.send(b"GET /healthz HTTP/1.1\r\n" + HOST + line)
            require_problem(raw.answer(), 431, "HEADTOOLARGE")
            require(raw.at_end(), "431 leaves it open")
    for size, status in (16384, 200), (16385, 431):
        with Raw(server) as raw:
            raw.send((b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: ").ljust(size - 4, b"a") +
                     b"\r\n\r\n")
            require_equal(raw.answer().status, status, f"a head of {size} bytes")
    with Client(server) as client:
        require_problem(client.post("/api/v1/queues/q/jobs", b"x" * 1025), 413, "BODYTOOLARGE")
    for length, status, code in [(b"18446744073709551615", 413, "BODYTOOLARGE"),
                                 (b"18446744073709551616", 400, "BADREQUEST")]:
        with Raw(server) as raw:
            raw.send(JOBS + AUTHORIZED + b"Content-Length: " + length + b"\r\n\r\n")
            require_problem(raw.answer(), status, code)
    with Raw(server) as raw:
        raw.send(JOBS + CHUNKED + b"\r\n" + (b"400\r\n" + b"x" * 1024 + b"\r\n") * 40)
        require_problem(raw.answer(), 413, "BODYTOOLARGE")
        require(raw.at_end(), "413 leaves it open")
    wait_until(lambda: connections(server) == 1, 20, "the end of the connections before")
    held = []

    def holds_one_more():
        raw = Raw(server)
        # With a token: who has shown none gives way to the ninth.
        raw.send(b"GET /api/v1/queues HTTP/1.1\r\n" + AUTHORIZED + b"\r\n")
        if raw.answer().status != 200:
            raw.close()  # the place of who asked before is not free yet
            return False
        held.append(raw)
        return True
    for _ in range(8):
        wait_until(holds_one_more, 20, "eight connections")
    with Raw(server) as ninth:
        require_problem(ninth.answer(), 503, "TOOMANY")
        require(ninth.at_end(), "the ninth stays open")
    for raw in held:
        raw.close()

    def served():
        with Raw(server) as raw:
            raw.send(b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n")
            return raw.answer().status == 200
    wait_until(served, what="a place for another connection")


def test_slow_clients_are_ended(options):
    """A head or body that trickles in gets 408; other clients are served meanwhile, also one whose
    connection is idle for longer than that between two requests."""
    server = serve(options, {"http-timeout": "1"})
    idle = Raw(server)
    idle.send(b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n")
    require_equal(idle.answer().status, 200)
    begins = [b"GET /healthz HTTP/1.1\r\n", b"G",
              JOBS + AUTHORIZED + b"Content-Length: 16\r\n\r\n", JOBS + CHUNKED + b"\r\n1"]
    slow = [Raw(server) for _ in begins]
    for raw, begin in zip(slow, begins):
        raw.send(begin)
    # One byte at a time does not make the time any longer.
    for _ in range(4):
        time.sleep(0.2)
        for raw in slow:
            raw.send(b"0")
        with Client(server, None) as client:
            require_equal(client.get("/healthz").status, 200)
    for raw in slow:
        require_problem(raw.answer(), 408, "TIMEOUT")
        require(raw.at_end(), "408 leaves it open")
        raw.close()
    idle.send(b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n")
    require_equal(idle.answer().status, 200)
    idle.close()


def test_a_reader_that_does_not_read_is_ended(options):
    """A response that the client does not read is not kept in memory."""
    server = serve(options, {"http-timeout": "1"})
    with Client(server) as client:
        for number in range(20):
            client.expect(201, "POST", "/api/v1/queues/q/jobs",
                          {"id": f"j{number}", "payload": "x" * 500_000})
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", server.http_port))
        deaf.settimeout(30)
        deaf.sendall(b"GET /api/v1/queues/q/jobs?with=payload HTTP/1.1\r\n" + AUTHORIZED + b"\r\n")
        wait_until(lambda: connections(server) == 1, 20, "the end of the connection")


def test_hosts_and_origins(options):
    """Other names of hosts and pages of other origins are refused."""
    server = serve(options, {"http-host": "sluice.example.org"})
    with Client(server) as client:
        for host in ("localhost", f"localhost:{server.http_port}", "127.0.0.1", "[::1]:80",
                     "sluice.example.org", "SLUICE.example.org:8379"):
            client.expect(200, "GET", "/healthz", headers={"Host": host})
        for host in "evil.example.org", "", "sluice.example.org.evil.com", "10.0.0.1", "[::2]":
            require_problem(client.get("/healthz", headers={"Host": host}), 421, "BADHOST")
        job = {"payload": "x"}
        for headers in ({"Origin": "http://evil.example.org"}, {"Origin": "null"},
                        {"Origin": "https://localhost", "Host": "localhost"},
                        {"Origin": "http://localhost:1", "Host": "localhost:2"},
                        {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
            answer = client.request("POST", "/api/v1/queues/q/jobs", job, headers=headers)
            require_problem(answer, 403, "BADORIGIN")
            client.close()
        for headers in ({"Origin": "http://localhost:8379", "Host": "localhost:8379"},
                        {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}):
            client.expect(201, "POST", "/api/v1/queues/q/jobs", job, headers=headers)


def test_hosts_without_http_host(options):
    """Without http-host a page that has its own name resolved to this machine gets nothing."""
    server = serve(options, tokens=False)
    with Client(server, None) as client:
        for host in "localhost", f"LOCALHOST:{server.http_port}", "127.0.0.1", "[::1]":
            client.expect(200, "GET", "/api/v1/queues", headers={"Host": host})
        for host in ("evil.example.org", f"evil.example.org:{server.http_port}", "localhost.x.org",
                     "xlocalhost", "127.0.0.1.evil.org", "127.0.0.2", "0.0.0.0", ""):
            for path in "/", "/healthz", "/api/v1/queues", "/metrics":
                require_problem(client.get(path, headers={"Host": host}), 421, "BADHOST")


def test_security_headers(options):
    """Every answer keeps browsers from doing more with it than showing it."""
    server = serve(options)
    with Client(server) as client:
        for answer in client.get("/healthz"), client.get("/none"), client.get("/api/v1/queues"):
            require_equal(answer.headers["x-content-type-options"], "nosniff")
            require_equal(answer.headers["x-frame-options"], "DENY")
            require_equal(answer.headers["cache-control"], "no-store")
            require_equal(answer.headers["referrer-policy"], "no-referrer")
            require("default-src 'none'" in answer.headers["content-security-policy"], "CSP")
            require("access-control-allow-origin" not in answer.headers, "CORS")


def test_changes_are_answered_at_the_end(options):
    """SIGTERM: who has added jobs hears so, however long it would wait or many they are."""
    server = serve(options, {"appendonly": "yes"})
    jobs = json.dumps([{"payload": "x" * 1000} for _ in range(1000)]).encode()
    body = b'{"payload": "", "wait_ms": 60000}'
    with contextlib.ExitStack() as raws, Raw(server) as waiting, server.connect() as connection:
        waiting.send(b"POST /api/v1/queues/one/jobs HTTP/1.1\r\n" + AUTHORIZED +
                     b"Content-Length: %d\r\n\r\n" % len(body) + body)
        wait_until(lambda: b"blocked_clients:1" in connection.call("INFO", "clients").value,
                   what="the one that waits")
        many = [raws.enter_context(Raw(server)) for _ in range(8)]
        for raw in many:
            raw.send(JOBS + AUTHORIZED + b"Content-Length: %d\r\n\r\n" % len(jobs) + jobs)
        server.process.terminate()
        answer = waiting.answer()
        require_equal(answer.status, 201, str(answer.body))
        require_equal((answer.json["result"], answer.json["job"]["state"]), ("added", "pending"))
        added = 0
        for raw in many:
            answer = raw.answer()
            # The others were not taken at all.
            if answer is not None:
                require_equal(answer.status, 200, str(answer.body))
                added += len(answer.json["jobs"])
        require_equal(server.process.wait(timeout=20), 0, "exit code")
    server.process = None
    server.start()
    with Client(server) as client:
        for queue, count in ("one", 1), ("q", added):
            stats = client.get(f"/api/v1/queues/{queue}").json["stats"]
            require(stats["pending"] >= count, f"{queue}: {stats['pending']} of {count}")


def test_the_end(options):
    """SIGTERM ends idle connections and long polls; the server is gone in time."""
    server = serve(options)
    with Raw(server) as idle, Raw(server) as waiting:
        idle.send(b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n")
        require_equal(idle.answer().status, 200)
        body = b'{"wait_ms": 60000}'
        waiting.send(b"POST /api/v1/queues/q:pop HTTP/1.1\r\n" + AUTHORIZED +
                     b"Content-Length: %d\r\n\r\n" % len(body) + body)
        with server.connect() as connection:
            def blocked():
                text = connection.call("INFO", "clients").value.decode()
                return "blocked_clients:1" in text
            wait_until(blocked, what="the long poll")
        began = time.monotonic()
        server.process.terminate()
        require_problem(waiting.answer(), 503, "STOPPING")
        require(idle.at_end() and waiting.at_end(), "they stay open")
        require_equal(server.process.wait(timeout=20), 0, "exit code")
        require(time.monotonic() - began < 15, "it took long")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__], THREADS))
