"""Stand-ins for the other ends of a connection: a server with fixed answers, and a Sentinel.

    with Sentinel("main", server.port) as sentinel:
        client(sentinel.port)           # asks it for the primary
        sentinel.primary = other.port   # from now on it names another one
"""

import contextlib

from harness.listening import Listening
from harness.proxy import Peer
from harness.resp import ConnectionClosed, ReplyTimeout, encode
from harness.servers import LOOPBACK

OK = b"+OK\r\n"


class Answering(Listening):
    """Answers each command with the bytes that `answer` makes of its words, which are bytes."""

    def __init__(self, answer):
        self.seen = []  # the commands that came
        self.opened = 0  # connections so far
        self._answer = answer
        super().__init__()

    def _serve(self, accepted):
        with self._lock:
            self._open.add(accepted)
            self.opened += 1
        client = Peer(accepted)
        with contextlib.suppress(OSError, ConnectionClosed, ReplyTimeout):
            while True:
                words = [word for _, word in client.read_reply().tree[1]]
                self.seen.append(words)
                client.socket.sendall(self._answer(words))
        self._end(accepted)


def replying(line):
    """A server that says this to every command but those of a handshake."""
    def answer(words):
        if words[0].upper() != b"CLIENT":
            return line
        return b":1\r\n" if words[1].upper() == b"ID" else OK
    return Answering(answer)


class Sentinel(Answering):
    """Names `primary`, a port of `host`, as the primary `name`; None: it knows none."""

    def __init__(self, name, primary, host=LOOPBACK):
        self.name, self.primary, self.host = name, primary, host
        super().__init__(self._about)

    def _about(self, words):
        if words[0].upper() != b"SENTINEL":
            return OK
        what = words[1].lower()
        if what == b"get-master-addr-by-name":
            known = self.primary is not None and words[2] == self.name.encode()
            return encode((self.host, self.primary)) if known else b"*-1\r\n"
        if what == b"masters":
            fields = ("name", self.name, "ip", self.host, "port", self.primary, "flags", "master",
                      "num-other-sentinels", 0)
            return b"*0\r\n" if self.primary is None else b"*1\r\n" + encode(fields)
        return b"*0\r\n"  # sentinels, replicas
