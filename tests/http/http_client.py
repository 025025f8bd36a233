"""What the tests of the HTTP side share: servers with a port of it, requests, raw sockets."""

import http.client
import json
import pathlib
import socket
import sys
import urllib.parse

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "operations"))

from harness import require, require_equal, run, wait_until  # noqa: E402,F401

READ_TOKEN = "read-token-0123456789"
OPERATE_TOKEN = "operate-token-0123456789"
ADMIN_TOKEN = "admin-token-0123456789"
TOKENS = {"read": READ_TOKEN, "operate": OPERATE_TOKEN, "admin": ADMIN_TOKEN}
TIMEOUT_S = 30
# Connections share one I/O thread, and are spread over several.
THREADS = (1, 3)


def serve(options, directives=None, tokens=True, **others):
    """A server that is started, with `http_port` known; tokens of each role unless told not to."""
    given = {"http-port": "auto"}
    if tokens:
        given["http-token"] = [f"{role} >{token}" for role, token in TOKENS.items()]
    given.update(directives or {})
    server = options.server(given, **others)
    server.start()
    find_port(server)
    return server


def find_port(server):
    """`http_port` of a server that has started."""
    with open(server.ready_path, encoding="utf-8") as ready:
        ports = dict(line.split() for line in ready)
    server.http_port = int(ports["http-port"])


def other_address():
    """An address of this machine that is not loopback; None if it has none other."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address = probe.getsockname()[0]
    return None if address.startswith("127.") else address


class Answer:
    def __init__(self, response, body):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)


class Client:
    """One connection that is kept alive."""

    def __init__(self, server, token=OPERATE_TOKEN):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.http_port,
                                                     timeout=TIMEOUT_S)
        self.token = token

    def request(self, method, path, body=None, headers=None, token=...):
        sent = {}
        token = self.token if token is ... else token
        if token is not None:
            sent["Authorization"] = "Bearer " + token
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        self.connection.request(method, path, body=body, headers=sent)
        response = self.connection.getresponse()
        return Answer(response, response.read())

    def get(self, path, **others):
        return self.request("GET", path, **others)

    def post(self, path, body=None, **others):
        return self.request("POST", path, body, **others)

    def expect(self, status, method, path, body=None, **others):
        answer = self.request(method, path, body, **others)
        require(answer.status == status,
                f"{method} {path} {body!r}: {answer.status} {answer.body!r}, expected {status}")
        return answer

    def close(self):
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def require_problem(answer, status, code):
    """Problem details as RFC 9457 has them."""
    require_equal(answer.status, status, f"status of {answer.body!r}")
    require_equal(answer.headers["content-type"], "application/problem+json", "content type")
    members = answer.json
    require_equal(members["status"], status, "the member status")
    require_equal(members["code"], code, f"code of {members}")
    for member in "type", "title", "detail":
        require(members[member], f"no {member} in {members}")
    return members


def quoted(name):
    return urllib.parse.quote(name, safe="")


class Stream:
    """Server-Sent Events, one at a time."""

    def __init__(self, server, path, last_id=None, token=OPERATE_TOKEN):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.http_port,
                                                     timeout=TIMEOUT_S)
        headers = {"Accept": "text/event-stream", "Authorization": "Bearer " + token}
        if last_id is not None:
            headers["Last-Event-ID"] = last_id
        self.connection.request("GET", path, headers=headers)
        self.response = self.connection.getresponse()
        require_equal(self.response.status, 200)
        require_equal(self.response.getheader("Content-Type"), "text/event-stream")

    def next(self):
        fields = {}
        while True:
            line = self.response.readline().decode()
            require(line != "", "the stream has ended")
            if line == "\n" and "data" in fields:
                return fields
            name, _, value = line.rstrip("\n").partition(": ")
            if name:
                fields[name] = value

    def close(self):
        self.response.close()
        self.connection.close()


class RawAnswer(Answer):
    def __init__(self, status, headers, body, closed):
        self.status = status
        self.headers = headers
        self.body = body
        self.closed = closed


class Raw:
    """A socket that sends whatever bytes, and reads answers by their Content-Length."""

    def __init__(self, server, timeout_s=TIMEOUT_S):
        self.socket = socket.create_connection(("127.0.0.1", server.http_port), timeout=timeout_s)
        self.buffer = b""

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            pass  # What the server said before it closed is still to be read.

    def receive(self):
        """More of what comes into `buffer`; false at the end."""
        try:
            data = self.socket.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        self.buffer += data
        return bool(data)

    def answer(self, has_body=True):
        """The next answer; None if the connection ends before one comes."""
        while b"\r\n\r\n" not in self.buffer:
            if not self.receive():
                return None
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        length = int(headers.get("content-length", 0)) if has_body else 0
        while len(self.buffer) < length and self.receive():
            pass
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        closed = headers.get("connection") == "close"
        return RawAnswer(int(lines[0].split()[1]), headers, body, closed)

    def at_end(self):
        """True once the server has closed the connection, and nothing is left to read."""
        while self.receive():
            pass
        return self.buffer == b""

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
