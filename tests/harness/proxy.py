"""A proxy between a client and a server that can lose replies: it understands RESP, so a test says
which reply, by the command that it answers.

    def decide(command, reply):
        return DROP if command[0] == b"Q.POP" else PASS

    with Proxy(server.port, decide) as proxy:
        client(proxy.port)

`decide` is called for each reply, from several threads, before it goes to the client. It may sleep.
`asked(command)` is called likewise for each request, before it goes to the server. As long as
`answer` is not None it is the reply to everything, and the server is asked nothing.
"""

import collections
import contextlib
import socket
import threading

from harness.listening import Listening
from harness.resp import Connection, ConnectionClosed, ReplyTimeout
from harness.servers import LOOPBACK

PASS = "pass"
DROP = "drop"  # the connection is closed instead
HALF = "half"  # and after a half of it
FOREVER_S = 3600.0


class Peer(Connection):
    """A connection that was accepted. What it reads are requests, which are arrays."""

    def __init__(self, accepted):  # pylint: disable=super-init-not-called
        self.timeout_s = FOREVER_S
        self.socket = accepted
        self._buffer = bytearray()
        self._position = 0
        self._deadline = 0.0


def refusing_repeats(connection, name, *rule):
    """Decides: drops the first reply to this command, and sets this rule of ACL SETUSER before."""
    dropped = []

    def decide(command, _reply):
        if command[0] != name or dropped:
            return PASS
        dropped.append(connection.call("ACL", "SETUSER", *rule))
        return DROP

    return decide


# The user and password of a client, the rule that refuses its repeat, and the class of that error.
REFUSALS = (("u:x@", ("u", "resetpass", ">y"), "WrongPassword"),
            ("u:x@", ("u", "-q.add"), "NoPermission"),
            ("", ("default", "resetpass", ">y"), "NotAuthenticated"))


def _always_pass(_command, _reply):
    return PASS


def _ignore(_command):
    pass


class Proxy(Listening):
    def __init__(self, port, decide=_always_pass, asked=_ignore):
        self.decide = decide
        self.asked = asked
        self.answer = None
        self._target = port
        super().__init__()

    @property
    def connections(self):
        with self._lock:
            return len(self._open) // 2

    def cut(self):
        """Closes all connections."""
        self._end_all()

    def _serve(self, accepted):
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = Peer(accepted)
        try:
            server = Connection(LOOPBACK, self._target, FOREVER_S)
        except OSError:
            accepted.close()
            return
        commands = collections.deque()
        with self._lock:
            self._open |= {client.socket, server.socket}
        for function in (self._requests, self._replies):
            threading.Thread(target=function, args=(client, server, commands), daemon=True).start()

    def _requests(self, client, server, commands):
        with contextlib.suppress(OSError, ConnectionClosed, ReplyTimeout):
            while True:
                request = client.read_reply()
                if self.answer is not None:
                    client.socket.sendall(self.answer)
                    continue
                commands.append([word for _, word in request.tree[1]])
                self.asked(commands[-1])
                server.socket.sendall(request.raw)
        self._end(client.socket, server.socket)

    def _replies(self, client, server, commands):
        with contextlib.suppress(OSError, ConnectionClosed, ReplyTimeout):
            while True:
                reply = server.read_reply()
                decided = self.decide(commands.popleft(), reply)
                if decided == HALF:
                    client.socket.sendall(reply.raw[:len(reply.raw) // 2])
                if decided != PASS:
                    break
                client.socket.sendall(reply.raw)
        self._end(client.socket, server.socket)
