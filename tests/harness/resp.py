"""A RESP2/RESP3 client that keeps the bytes of every reply beside its parsed form.

A reply's tree is made of tuples `(kind, payload)`. `kind` is RESP's type byte as a string. The
payload of a scalar is its bytes as sent; of an aggregate it is a list of trees (a map's keys and
values alternate); of a null (`$-1`, `*-1`) it is None. Trees compare with `==`.
"""

import re
import socket
import time

AGGREGATES = "*~>%|"
PAIRED = "%|"
RECEIVE_BYTES = 1 << 16


class ReplyTimeout(TimeoutError):
    """No whole reply came in time. The connection can still be read from."""


class ConnectionClosed(ConnectionError):
    """The server closed the connection. `rest` holds the bytes that came without being read."""

    def __init__(self, rest=b""):
        super().__init__("connection closed")
        self.rest = rest


class ProtocolError(Exception):
    """What came is not RESP."""


class ServerReplyError(Exception):
    """An error reply, as a value of `to_python`."""


class Reply:
    """One reply: its bytes, its tree, and the attributes (trees) that came before it."""

    __slots__ = ("raw", "tree", "attributes")

    def __init__(self, raw, tree, attributes=()):
        self.raw = raw
        self.tree = tree
        self.attributes = attributes

    @property
    def kind(self):
        return self.tree[0]

    @property
    def is_error(self):
        return self.tree[0] in "-!"

    @property
    def is_push(self):
        return self.tree[0] == ">"

    @property
    def value(self):
        return to_python(self.tree)

    def __repr__(self):
        return f"Reply({self.raw!r})"


def encode(arguments):
    """A command as a RESP array of bulk strings. Arguments: bytes, str, int or float."""
    parts = [b"*%d\r\n" % len(arguments)]
    for argument in arguments:
        if not isinstance(argument, bytes):
            argument = str(argument).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(argument), argument))
    return b"".join(parts)


def to_python(tree):
    """A tree as plain Python values: bytes, int, float, bool, None, list, dict, an error object."""
    kind, payload = tree
    if payload is None or kind == "_":
        return None
    if kind in "+$":
        return payload
    if kind in ":(":
        return int(payload)
    if kind in "-!":
        return ServerReplyError(payload.decode(errors="replace"))
    if kind == ",":
        return float(payload)
    if kind == "#":
        return payload == b"t"
    if kind == "=":
        return payload[4:]
    values = [to_python(child) for child in payload]
    if kind in PAIRED:
        try:
            return dict(zip(values[::2], values[1::2]))
        except TypeError:
            return list(zip(values[::2], values[1::2]))
    return values


_ATOM = re.compile(rb"[^\s\"'\\\x00-\x1f\x7f-\xff]+")


def quote(argument):
    """An argument as redis-cli reads it back."""
    if not isinstance(argument, bytes):
        argument = str(argument).encode()
    if _ATOM.fullmatch(argument) and argument[:1] not in b"#@" and b"{{" not in argument:
        return argument.decode()
    out = []
    for byte in argument:
        char = chr(byte)
        if char in '"\\':
            out.append("\\" + char)
        elif char in "\n\r\t":
            out.append({"\n": "\\n", "\r": "\\r", "\t": "\\t"}[char])
        elif 32 <= byte < 127:
            out.append(char)
        else:
            out.append(f"\\x{byte:02x}")
    return '"' + "".join(out) + '"'


class Connection:
    """A blocking connection. Reads are bounded by `timeout_s`; the buffer keeps what is unread."""

    def __init__(self, host, port, timeout_s=20.0):
        self.timeout_s = timeout_s
        self.socket = socket.create_connection((host, port), timeout=timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray()
        self._position = 0
        self._deadline = 0.0

    # -- Send ---------------------------------------------------------------------------------

    def send(self, *arguments):
        self.send_bytes(encode(arguments))

    def send_bytes(self, data):
        self.socket.settimeout(self.timeout_s)
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # What the server said before it closed is still to be read.

    def call(self, *arguments):
        """Sends one command and reads one reply."""
        self.send(*arguments)
        return self.read_reply()

    def pipeline(self, commands):
        """Sends all commands at once, then reads as many replies."""
        self.send_bytes(b"".join(map(encode, commands)))
        return [self.read_reply() for _ in commands]

    # -- Receive ------------------------------------------------------------------------------

    def read_reply(self, timeout_s=None):
        """The next reply or push. An attribute is kept with the reply that follows it."""
        self._deadline = time.monotonic() + (self.timeout_s if timeout_s is None else timeout_s)
        start = self._position
        attributes = []
        try:
            tree = self._parse()
            while tree[0] == "|":
                attributes.append(tree)
                tree = self._parse()
        except ReplyTimeout:
            self._position = start
            raise
        except ConnectionClosed:
            raise ConnectionClosed(bytes(self._buffer[start:])) from None
        raw = bytes(self._buffer[start:self._position])
        if self._position == len(self._buffer) or self._position > 1 << 20:
            del self._buffer[:self._position]
            self._position = 0
        return Reply(raw, tree, attributes)

    def read_quiet(self, quiet_s, at_least=0, wait_s=None):
        """Everything that comes until nothing has come for `quiet_s`, and whether it closed.

        The silence counts only once `at_least` bytes are there, or `wait_s` has passed.
        """
        give_up = time.monotonic() + (wait_s or 0)
        closed = False
        while True:
            short = len(self._buffer) - self._position < at_least
            left_s = max(give_up - time.monotonic(), 0)
            try:
                self._receive(max(left_s, quiet_s) if short else quiet_s)
            except ReplyTimeout:
                break
            except ConnectionClosed:
                closed = True
                break
        data = bytes(self._buffer[self._position:])
        self._buffer.clear()
        self._position = 0
        return data, closed

    def has_input(self, wait_s=0.0):
        """True if bytes or the end of the stream can be read."""
        if self._position < len(self._buffer):
            return True
        try:
            self._receive(wait_s)
        except ReplyTimeout:
            return False
        except ConnectionClosed:
            return True
        return True

    def at_end(self, wait_s):
        """True if the server has closed the connection and nothing is left to read."""
        try:
            self._receive(wait_s)
        except ReplyTimeout:
            return False
        except ConnectionClosed:
            return self._position == len(self._buffer)
        return False

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # -- Parse --------------------------------------------------------------------------------

    def _receive(self, wait_s):
        # A zero timeout means "do not block" to the socket module: what we want is one look.
        self.socket.settimeout(max(wait_s, 0.000001))
        try:
            data = self.socket.recv(RECEIVE_BYTES)
        except (TimeoutError, BlockingIOError):
            raise ReplyTimeout() from None
        except OSError:
            raise ConnectionClosed() from None
        if not data:
            raise ConnectionClosed()
        self._buffer += data

    def _fill(self):
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise ReplyTimeout()
        self._receive(left_s)

    def _line(self):
        scanned = self._position
        while True:
            end = self._buffer.find(b"\r\n", scanned)
            if end >= 0:
                line = bytes(self._buffer[self._position:end])
                self._position = end + 2
                return line
            scanned = max(len(self._buffer) - 1, self._position)
            self._fill()

    def _exact(self, count):
        while len(self._buffer) < self._position + count + 2:
            self._fill()
        data = bytes(self._buffer[self._position:self._position + count])
        if self._buffer[self._position + count:self._position + count + 2] != b"\r\n":
            raise ProtocolError(f"a bulk of {count} bytes does not end with CRLF: {data[:80]!r}")
        self._position += count + 2
        return data

    def _parse(self):
        line = self._line()
        kind = chr(line[0]) if line else ""
        rest = line[1:]
        if kind and kind in "+-:,#(_":
            return (kind, rest)
        if kind and kind in "$!=":
            if rest == b"?":
                return (kind, self._streamed_string())
            count = self._length(line, rest)
            return (kind, None if count < 0 else self._exact(count))
        if kind and kind in AGGREGATES:
            if rest == b"?":
                return (kind, self._streamed_aggregate())
            count = self._length(line, rest)
            if count < 0:
                return (kind, None)
            return (kind, [self._parse() for _ in range(count * (2 if kind in PAIRED else 1))])
        if kind == ".":
            return (".", b"")
        raise ProtocolError(f"not a reply: {line[:80]!r}")

    @staticmethod
    def _length(line, text):
        try:
            return int(text)
        except ValueError:
            raise ProtocolError(f"not a length: {line[:80]!r}") from None

    def _streamed_string(self):
        parts = []
        while True:
            line = self._line()
            if not line.startswith(b";"):
                raise ProtocolError(f"not a chunk: {line[:80]!r}")
            count = self._length(line, line[1:])
            if count == 0:
                return b"".join(parts)
            parts.append(self._exact(count))

    def _streamed_aggregate(self):
        children = []
        while True:
            child = self._parse()
            if child[0] == ".":
                return children
            children.append(child)
