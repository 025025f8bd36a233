#!/usr/bin/python3
"""The Python client over RESP3, as redis-py 5 and newer speak it: maps are dictionaries, and pushes
come between replies. The connection is a stand-in for redis-py's, since Debian's speaks RESP2."""

import sys
import threading
import types

import redis

from harness import require, require_equal, run, wait_until
from harness.native_queue import Native
from harness.python_client import raised
from harness.resp import Connection, ConnectionClosed, ReplyTimeout, ServerReplyError, encode
from harness.servers import LOOPBACK

from sluice import Queue, Worker, errors  # noqa: I100

EXEC = "exec"


class Speaking:
    """What the client uses of a connection of redis-py."""

    pushes = []  # of all connections, as they came

    def __init__(self, port, timeout):
        self._port, self._timeout = port, timeout
        self._sock = self._connection = None

    def connect(self):
        if self._sock is not None:
            return
        self._connection = Connection(LOOPBACK, self._port, self._timeout)
        self._sock = self._connection.socket
        self._connection.call("HELLO", 3)

    def disconnect(self):
        if self._sock is not None:
            self._connection.close()
        self._sock = None

    def pack_commands(self, commands):
        return [encode(words) for words in commands]

    def send_packed_command(self, packed, check_health):
        require(not check_health, "no PING in between")
        self._connection.send_bytes(b"".join(packed))

    def send_command(self, *words, check_health):
        self.send_packed_command([encode(words)], check_health)

    def read_response(self, disable_decoding):
        require(disable_decoding, "it wants bytes")
        try:
            reply = self._connection.read_reply()
            while reply.is_push:
                Speaking.pushes.append(reply.value)
                reply = self._connection.read_reply()
        except ReplyTimeout as error:
            raise redis.TimeoutError() from error
        except ConnectionClosed as error:
            raise redis.ConnectionError() from error
        value = as_redis_py(reply.value)
        if isinstance(value, redis.ResponseError):
            raise value
        return value


def as_redis_py(value):
    if isinstance(value, ServerReplyError):
        return redis.ResponseError(str(value))
    return [as_redis_py(each) for each in value] if isinstance(value, list) else value


def speaking_to(port):
    """For `server` of a Queue or Worker."""
    def connect(socket_timeout, **_):
        pool = types.SimpleNamespace(make_connection=lambda: Speaking(port, socket_timeout))
        return types.SimpleNamespace(connection_pool=pool)
    return connect


def test_replies(options):
    """A queue's replies are read from RESP3 as from RESP2."""
    with options.server() as server, Queue(EXEC, speaking_to(server.port)) as queue:
        job = queue.add({"n": 1}, "a", tags={"run": "7"}, group="ann", backoff=(1, 2))
        require_equal((job.id, job.outcome, job.state, job.position), ("a", "added", "pending", 0))
        got = queue.get("a", with_=["payload", "options"])
        require_equal((got.payload, got.tags, got.group),
                      ({"n": 1}, {"run": "7"}, "ann"))
        require_equal(got.options, {"boost": 0, "ttl": 0, "lease": None, "max_run": None,
                                    "retry": None, "backoff": (1, 2)})
        require_equal(raised(errors.Duplicate, queue.add, 1, "a").state, "pending")
        stats = queue.stats()
        require_equal((stats["pending"], stats["by_priority"]["NORMAL"]), (1, 1))
        [event] = queue.events("-", follow=False, types=["added"])
        require_equal((event.id, event.type), ("a", "added"))
        require_equal(queue.cancel("a"), "cancelled")
        require_equal(raised(errors.NotCompleted, queue.result, "a", 20).state, "cancelled")


def test_a_push_is_no_reply(options):
    """The push q.quiet between replies of a worker shifts none of them; the worker knows it."""
    with options.server() as server, Queue(EXEC, speaking_to(server.port)) as queue:
        native = Native(server)
        worker = Worker(EXEC, lambda job: (job.wait(job.payload), job.extra["tags"])[1],
                        speaking_to(server.port), concurrency=3, with_=["tags"])
        thread = threading.Thread(target=worker.run)
        thread.start()
        long = [queue.add(2, tags={"n": str(n)}) for n in range(2)]
        wait_until(lambda: all(job.get().state == "active" for job in long), what="both run")
        for quiet in ("on", "off", "on"):
            native.config(EXEC, "WORKER", worker.name, "SET", "quiet", quiet)
        wait_until(lambda: worker.quiet, what="the worker knows")
        waits = queue.add(0)
        require_equal([job.result(20) for job in long], [{"n": "0"}, {"n": "1"}])
        require_equal(waits.get().state, "pending")
        native.config(EXEC, "WORKER", worker.name, "SET", "quiet", "off")
        require_equal(waits.result(20), {})
        worker.stop()
        thread.join(20)
        require_equal(worker.counts["completed"], 3)
        pushed = [push for push in Speaking.pushes if push[0] == b"q.quiet"]
        require(pushed, f"pushes came: {Speaking.pushes}")
        native.close()


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
