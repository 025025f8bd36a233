#!/usr/bin/python3
"""The Python client's Link, mostly over a stand-in for a connection: what interrupts and ends it,
what is sent, and what errors mean."""

import socket
import sys
import threading
import time

import redis
from harness import require, require_equal, run, wait_until
from harness.proxy import PASS, Proxy
from harness.python_client import raised, url_of

from sluice import Queue, Unreachable, errors
from sluice.link import PIECE, Closed, ConnectionLost, Link, error_of


class FakeConnection:
    """Instead of redis-py's: what `connect` and the reads raise or return, in turn."""

    def __init__(self, connects, replies=()):
        self._connects = list(connects)
        self._replies = list(replies)
        self.sent = []

    def connect(self):
        if self._connects:
            self._connects.pop(0)()

    def disconnect(self):
        pass

    def pack_commands(self, commands):
        return commands

    def send_command(self, *words, check_health):
        require_equal((words, check_health), (("CLIENT", "ID"), False))
        self._replies.insert(0, b"1")

    def send_packed_command(self, commands, check_health):
        require(not check_health, "it asks nothing besides")
        self.sent += commands

    def read_response(self, disable_decoding):
        require(disable_decoding, "it wants bytes")
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply() if callable(reply) else reply


def fake_link(connection):
    class Pool:
        make_connection = staticmethod(lambda: connection)

    class Client:
        connection_pool = Pool

    return Link(lambda **_: Client, 1.0)


def test_interrupted_while_connecting(_options):
    """A thread that is interrupted while it connects for others leaves none of them waiting."""
    entered, go_on = threading.Event(), threading.Event()

    def interrupted():
        entered.set()
        go_on.wait(20)
        raise KeyboardInterrupt

    link = fake_link(FakeConnection([interrupted], ["OK", "OK"]))
    first = threading.Thread(target=lambda: raised(KeyboardInterrupt, link.exchange, [("A",)]))
    [other] = link._submit([("B",)])  # Another thread's, which waits for its turn.
    first.start()
    require(entered.wait(20), "it connects")
    go_on.set()
    first.join(20)
    require_equal(type(other.exception(1)), Unreachable)
    require_equal(link.exchange([("C",)]), ["OK"])


class Interrupting(bytes):
    """A word at which the thread is interrupted while it takes what waits."""

    interrupts = True

    def __len__(self):
        if self.interrupts:
            self.interrupts = False
            raise KeyboardInterrupt
        return super().__len__()


def test_interrupted_anywhere(_options):
    """Nor does a thread that is interrupted while it takes the commands of others, or just after
    one has its reply. What was not answered has failed, or is sent by the next."""
    link = fake_link(FakeConnection([], ["OK"] * 3))
    before, after = link._submit([("A",), (Interrupting(b"B"),)])
    raised(KeyboardInterrupt, link.exchange, [("C",)])
    require_equal(type(before.exception(1)), Unreachable)
    require_equal((link.exchange([("D",)]), after.result(1)), (["OK"], "OK"))

    def interrupt(_future):
        raise KeyboardInterrupt

    answered, unread = link._submit([("E",), ("F",)])
    answered.add_done_callback(interrupt)
    link._connection._replies = ["OK", "OK"]
    raised(KeyboardInterrupt, link.exchange, [("G",)])
    require_equal((answered.result(1), type(unread.exception(1))), ("OK", ConnectionLost))
    require_equal(link.exchange([("H",)]), ["OK"])


def test_command_in_a_signal_handler(_options):
    """A command in the handler of a signal that has interrupted one of its thread is refused, and
    is not sent later."""
    connection = FakeConnection(
        [lambda: raised(RuntimeError, link.exchange, [("B",)])], ["OK", "OK"])
    link = fake_link(connection)
    require_equal([link.exchange([("A",)]), link.exchange([("C",)])], [["OK"], ["OK"]])
    require_equal(connection.sent, [("A",), ("C",)])


def test_end_without_a_server(_options):
    """A link that is ended while it connects, or while its server is away, tries no more."""
    def away():
        link.end()
        raise redis.exceptions.ConnectionError("away")

    link = fake_link(FakeConnection([away, away], ["OK"]))
    [other] = link._submit([("A",)])
    raised(Closed, link.call, "B", patience=float("inf"))
    require_equal(type(other.exception(1)), Closed)
    raised(Closed, link.call, "C", patience=float("inf"))
    link = fake_link(FakeConnection([lambda: link.end()], ["OK"]))
    raised(Closed, link.call, "A", patience=float("inf"))
    link = fake_link(FakeConnection([], [away]))
    require_equal([type(error) for error in link.exchange([("A",), ("B",)])], [Closed, Closed])


def test_close_ends_repeats(_options):
    """What has begun when a link is closed is not repeated; what comes then raises Closed."""
    def away():
        link.close()
        raise redis.exceptions.ConnectionError("away")

    link = fake_link(FakeConnection([away], ["OK"]))
    raised(Unreachable, link.call, "A", patience=60)
    raised(Closed, link.call, "B", patience=60)


def test_what_cannot_be_sent(_options):
    """A word that redis-py would refuse raises TypeError, and fails no command of others."""
    connection = FakeConnection([], ["OK", "OK"])
    link = fake_link(connection)
    [other] = link._submit([("A",)])
    for word in (None, True, ["x"]):
        raised(TypeError, link.exchange, [("B",), ("C", word)])
    require_equal((link.exchange([("D", b"x", 1, 1.5)]), other.result(1)), (["OK"], "OK"))
    require_equal(connection.sent, [("A",), ("D", b"x", 1, 1.5)])


def test_large_commands(_options):
    """What is sent at a time is short, so that the timeout is not that of all of it."""
    connection = FakeConnection([], ["OK"])
    connection.pack_commands = lambda commands: [b"small", bytes(range(256)) * 1000]
    require_equal(fake_link(connection).exchange([("A",)]), ["OK"])
    require(max(map(len, connection.sent)) <= PIECE, "the longest piece")
    require_equal(b"".join(connection.sent), b"small" + bytes(range(256)) * 1000)


def test_adds_under_way(options):
    """add_many has at most 1,000 under way: more are sent once these have their replies."""
    sent, first = [], []

    def decide(_command, _reply):
        if sent and not first:
            wait_until(lambda: len(sent) >= 1000, what="a whole pipeline")
            time.sleep(0.2)   # what is sent too early comes meanwhile
            first.append(len(sent))
        return PASS

    def asked(command):
        if command[0] == b"Q.ADD":
            sent.append(command)

    with options.server() as server, Proxy(server.port, decide, asked) as proxy, \
            Queue("exec", url_of(proxy.port)) as queue:
        added = queue.add_many([{"payload": n} for n in range(1500)])
        require_equal((first, len(sent), len(added)), ([1000], 1500, 1500))


def test_what_comes_unasked(_options):
    """A push of RESP3 on an idle connection leaves it as it is; one that the server has closed,
    also behind a push, is made anew before anything is sent."""
    class Counted(FakeConnection):
        disconnects = 0

        def disconnect(self):
            self.disconnects += 1

    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection = Counted([], ["OK"] * 3)
        link = fake_link(connection)
        connection._sock = ours
        require_equal(link.exchange([("A",)]), ["OK"])
        theirs.send(b">2\r\n+q.quiet\r\n+exec\r\n")
        require_equal((link.exchange([("B",)]), connection.disconnects), (["OK"], 0))
        theirs.close()
        require_equal((link.exchange([("C",)]), connection.disconnects), (["OK"], 1))


def test_errors_of_redis_py(_options):
    """Its exceptions, from which it takes the codes, are those of this package."""
    exceptions = redis.exceptions
    for error, kind in (
            (exceptions.AuthenticationError("Authentication required."), errors.NotAuthenticated),
            (exceptions.AuthenticationError("invalid username-password pair or user is disabled."),
             errors.WrongPassword),
            (exceptions.ResponseError("Protocol error: unauthenticated multibulk length"),
             errors.NotAuthenticated),
            (exceptions.ConnectionError("The previous master is now a slave"), errors.ReadOnly),
            (exceptions.ConnectionError("Connection refused"), ConnectionLost),
            (exceptions.ResponseError("DB index is out of range"), errors.CommandError),
            (exceptions.ResponseError("OOM command not allowed"), errors.OutOfMemory),
            (exceptions.ResponseError("EXECABORT Transaction discarded"), errors.ServerError)):
        require_equal(type(error_of(error)), kind, repr(error))


def test_error_that_ends_a_connection(_options):
    """After LOADING, for which redis-py ends the connection, what else was sent may have run."""
    link = fake_link(FakeConnection([], [b"1", redis.exceptions.BusyLoadingError("loading")]))
    got = link.exchange([("A",), ("B",), ("C",)])
    require_equal([got[0], type(got[1]), type(got[2])], [b"1", errors.Loading, ConnectionLost])


def test_what_is_no_reply(_options):
    """Bytes that redis-py cannot parse cost the connection, as those that it refuses."""
    for error in (ValueError("invalid literal for int()"), redis.exceptions.InvalidResponse("x")):
        link = fake_link(FakeConnection([], [b"1", error]))
        got = link.exchange([("A",), ("B",)])
        require_equal([got[0], type(got[1])], [b"1", ConnectionLost])


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
