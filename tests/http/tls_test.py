#!/usr/bin/python3
"""HTTPS: the API, streams, the page; client certificates, origins, reloading, bad handshakes."""

import contextlib
import http.client
import json
import socket
import ssl
import sys
import threading
import time

from harness import require, require_equal, run, scratch, wait_until
from harness.certificates import Certificates, TlsConnection
from harness.http_client import OPERATE_TOKEN, TIMEOUT_S, Client, Raw, require_problem, serve
from harness.servers import LOOPBACK

JOBS = "/api/v1/queues/q/jobs"


class TlsClient(Client):
    def __init__(self, server, context, token=OPERATE_TOKEN):
        # pylint: disable=super-init-not-called
        self.connection = http.client.HTTPSConnection("localhost", server.https_port,
                                                      timeout=TIMEOUT_S, context=context)
        self.token = token


@contextlib.contextmanager
def https_server(options, directives=None, tokens=True):
    """A server with both ports; its certificates; a client's context without a certificate."""
    with scratch() as folder:
        certificates = Certificates(folder)
        given = {"http-tls-port": "auto", **certificates.directives(), **(directives or {})}
        server = serve(options, given, tokens)
        server.https_port = server.ports["http-tls-port"]
        yield server, certificates, certificates.context(client=None)
        server.close()


def test_the_api(options):
    """Requests, large bodies both ways, keep-alive and errors are those of HTTP."""
    with https_server(options) as (server, _, context):
        with TlsClient(server, context) as client, Client(server) as plain:
            for number in range(50):
                client.expect(201, "POST", JOBS, {"id": f"j{number}", "payload": "x" * number})
            connection = client.connection.sock
            big = "y" * 1_000_000
            client.expect(201, "POST", JOBS, {"id": "big", "payload": big})
            got = client.expect(200, "GET", JOBS + "/big?with=payload").json
            require_equal(got["payload"], big, "the payload")
            require(client.connection.sock is connection, "one connection for all")
            require_equal(plain.get(JOBS + "/j7?with=payload").json["payload"], "x" * 7)
            require_problem(client.get(JOBS + "/none"), 404, "NOJOB")
            require_problem(client.get("/api/v1/queues", token=None), 401, "NOAUTH")
            text = client.expect(200, "GET", "/metrics").body
            require(b'queue_depth{' in text, "metrics")
        with TlsClient(server, context) as client:
            answer = client.request("POST", JOBS, b"x", {"Content-Length": str(9 << 20)})
            require_problem(answer, 413, "BODYTOOLARGE")


def test_the_page(options):
    """The page and its files come over HTTPS, to a browser's request as well."""
    with https_server(options, tokens=False) as (server, _, context):
        with TlsClient(server, context, token=None) as client, Client(server, None) as plain:
            for path in "/", "/app.js", "/app.css", "/icon.svg":
                got, expected = client.get(path), plain.get(path)
                require_equal((got.status, got.body), (expected.status, expected.body), path)


def test_origins(options):
    """A page that came over HTTPS may change things; one over HTTP at the same name may not."""
    with https_server(options) as (server, _, context):
        host = f"localhost:{server.https_port}"
        job = {"payload": "x"}
        with TlsClient(server, context) as client:
            good = {"Host": host, "Origin": "https://" + host, "Sec-Fetch-Site": "same-origin"}
            client.expect(201, "POST", JOBS, job, headers=good)
            for origin in "http://" + host, "https://evil.example.org", "null":
                answer = client.request("POST", JOBS, job, headers={"Host": host,
                                                                    "Origin": origin})
                require_problem(answer, 403, "BADORIGIN")
                client.close()


def test_streams_and_waiting(options):
    """Event streams and long polls work, and a client that is gone gets no job."""
    with https_server(options) as (server, _, context):
        headers = {"Authorization": "Bearer " + OPERATE_TOKEN}
        stream = http.client.HTTPSConnection("localhost", server.https_port, timeout=TIMEOUT_S,
                                             context=context)
        stream.request("GET", "/api/v1/queues/q/events",
                       headers={**headers, "Accept": "text/event-stream"})
        events = stream.getresponse()
        with TlsClient(server, context) as client, server.connect() as resp:
            for number in range(100):
                client.expect(201, "POST", JOBS, {"id": f"j{number}", "payload": "x"})
                while True:
                    line = events.readline()
                    if line.startswith(b"data: "):
                        break
                require_equal(json.loads(line[6:])["id"], f"j{number}")
            resp.call("DEL", "q")

            def pops():
                return client.get("/api/v1/queues/q").json["stats"]["waiting_pops"]

            got = []

            def wait_for_job():
                with TlsClient(server, context) as waiting:
                    answer = waiting.post("/api/v1/queues/q:pop", {"wait_ms": 30000})
                    got.extend(job["id"] for job in answer.json["jobs"])
            waiter = threading.Thread(target=wait_for_job)
            waiter.start()
            wait_until(lambda: pops() == 1, 20, "the waiting pop")
            client.expect(201, "POST", JOBS, {"id": "late", "payload": "x"})
            waiter.join(TIMEOUT_S)
            require_equal(got, ["late"])
            for with_goodbye in True, False:
                lost = http.client.HTTPSConnection("localhost", server.https_port,
                                                   timeout=TIMEOUT_S, context=context)
                lost.request("POST", "/api/v1/queues/q:pop", json.dumps({"wait_ms": 60000}),
                             headers)
                wait_until(lambda: pops() == 1, 20, "the waiting pop")
                if with_goodbye:
                    lost.sock.settimeout(0)
                    with contextlib.suppress(ssl.SSLWantReadError):
                        lost.sock.unwrap()
                else:
                    lost.close()
                wait_until(lambda: pops() == 0, 20, "the end of a lost pop")
                lost.close()
        stream.close()


def test_client_certificates(options):
    """http-tls-auth-clients: none is asked for by default; `yes` wants one, at run time too."""
    with https_server(options) as (server, certificates, nobody), server.connect() as resp:
        def serves(context):
            try:
                with TlsClient(server, context) as client:
                    return client.get("/healthz").status == 200
            except (ssl.SSLError, ConnectionError, http.client.RemoteDisconnected):
                return False
        somebody, stranger = certificates.context(), certificates.context(client="stranger")
        for mode, expected in ((None, (True, True, True)), ("yes", (False, True, False)),
                               ("optional", (True, True, False))):
            if mode is not None:
                reply = resp.call("CONFIG", "SET", "http-tls-auth-clients", mode)
                require_equal(reply.raw, b"+OK\r\n")
            got = tuple(serves(context) for context in (nobody, somebody, stranger))
            require_equal(got, expected, str(mode))
        reply = resp.call("CONFIG", "SET", "tls-cert-file", certificates.certificate("second"),
                          "tls-key-file", certificates.key("second"))
        require_equal(reply.raw, b"+OK\r\n")
        with TlsConnection(server.https_port, nobody) as connection:
            require_equal(connection.socket.getpeercert(binary_form=True),
                          certificates.der("second"))


def test_pipelined_requests(options):
    """Requests that come in one record, or in many, are answered in order."""
    with https_server(options) as (server, _, context):
        with TlsConnection(server.https_port, context) as connection:
            request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
            connection.socket.sendall(request * 100)
            for byte in request:
                connection.socket.sendall(bytes([byte]))
            last = request.replace(b"Host", b"Connection: close\r\nHost")
            connection.socket.sendall(last)
            data = b""
            while True:
                part = connection.socket.recv(1 << 16)
                if not part:
                    break
                data += part
            require_equal(data.count(b"HTTP/1.1 200 OK\r\n"), 102)


def test_bad_handshakes(options):
    """Handshakes that hang, drop or are invalid are closed; other connections are unaffected."""
    with https_server(options, {"http-timeout": "1"}) as (server, _, context):
        hello = bytes.fromhex("160301020001000001fc0303")
        slow = [socket.create_connection((LOOPBACK, server.https_port)) for _ in range(10)]
        for number, connection in enumerate(slow):
            connection.sendall(hello[:number])
        for number in range(100):
            with socket.create_connection((LOOPBACK, server.https_port)) as dropped:
                dropped.sendall(hello + bytes(number))
        with socket.create_connection((LOOPBACK, server.https_port), timeout=10) as plain:
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            require(b"HTTP/1.1" not in plain.recv(1000), "plain text is not answered")
        began = time.monotonic()
        with TlsClient(server, context) as client:
            client.expect(200, "GET", "/healthz")
        for connection in slow:
            connection.settimeout(10)
            require_equal(connection.recv(100), b"", "a slow one is closed")
            connection.close()
        require(time.monotonic() - began < 15, "in time")
        with Client(server) as client:
            def connections():
                text = client.get("/metrics").body.decode()
                line, = (line for line in text.splitlines()
                         if line.startswith("sluice_http_connections "))
                return float(line.split()[1])
            wait_until(lambda: connections() == 1, 20, "no connection is left")
        with Raw(server) as raw:
            raw.send(hello + bytes(600))
            require(raw.answer() is None or raw.at_end(), "TLS on the plain port is closed")


def test_strangers_are_told(options):
    """Without a token another address is refused over HTTPS with the reason."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
            address = probe.getsockname()[0]
        except OSError:
            return
    if address.startswith("127."):
        return
    with https_server(options, {"http-bind": "* -::1"}, tokens=False) as (server, _, context):
        with TlsConnection(server.https_port, context, host=address) as connection:
            data, closed = connection.read_quiet(2)
            require(data.startswith(b"HTTP/1.1 403") and b"LOOPBACKONLY" in data, str(data))
            require(closed, "and it is closed")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__], io_threads=(1, 2)))
