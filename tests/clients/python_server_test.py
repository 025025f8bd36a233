#!/usr/bin/python3
"""Where the Python client's server is, and how it connects to it."""

import asyncio
import contextlib
import functools
import multiprocessing
import os
import socket
import sys
import threading
import time
from unittest import mock

import redis

from harness import require, require_equal, run, scratch
from harness.certificates import Certificates
from harness.proxy import REFUSALS, Proxy, refusing_repeats
from harness.python_client import raised, url_of
from harness.servers import LOOPBACK, steady_port

import handlers
from sluice import Queue, Worker, errors, link, server  # noqa: I100
from sluice.codec import encode, RawCodec

EXEC = "exec"


def test_where_the_server_is(options):
    """The server is a URL, SLUICE_URL, or a function that makes a client of redis-py."""
    for url in ("nonsense://x", "redis://a:b", "redis://a?no=option", "redis://a/main",
                "rediss://:pass/word@a"):
        raised(ValueError, Queue, EXEC, url)
    raised(ValueError, Queue, EXEC, "redis+sentinel://a/main?ssl=true")
    with options.server({"requirepass": "secret"}) as server:
        os.environ["SLUICE_URL"] = f"redis://:secret@127.0.0.1:{server.port}/3"
        try:
            with Queue(EXEC) as queue:
                queue.add(1, "a")
        finally:
            del os.environ["SLUICE_URL"]

        def connect(**others):
            return redis.Redis(port=server.port, password="secret", db=3, **others)

        with Queue(EXEC, connect) as queue:
            require_equal(queue.get("a").state, "pending")
        with Queue(EXEC, url_of(server.port)) as queue:
            raised(errors.NotAuthenticated, queue.add, 1)
            raised(errors.NotAuthenticated, queue.add, "x" * 100_000)


def test_unix_socket(options):
    """Queue and Worker over a Unix socket."""
    with scratch() as folder:
        url = f"unix://{folder}/socket"
        with options.server({"unixsocket": f"{folder}/socket"}), Queue(EXEC, url) as queue:
            job = queue.add(1)
            Worker(EXEC, lambda job: job.payload, url, burst=True).run()
            require_equal(job.result(60), 1)


def test_defaults_of_redis_py(options):
    """What newer versions of redis-py have other defaults for is said to them, where they take it.
    """
    require_equal([server.protocol_of(version) for version in ("4.3.4", "5.0.0rc1", "8.1.0")],
                  [{}, {"protocol": 2}, {"protocol": 2}])
    said = []

    class Stop(Exception):
        """It connects no further."""

    def note(_, *__, **how):
        said.append(how)
        raise Stop

    sentinels = "redis+sentinel://127.0.0.1:1/main"
    with mock.patch.object(server, "PROTOCOL", {"protocol": 2}):
        with mock.patch.object(redis.Redis, "from_url", note):
            raised(Stop, server.connect_to, "redis://a")
        connect = server.connect_to(sentinels)
        with mock.patch.object(server.Sentinel, "__init__", note):
            raised(Stop, connect, socket_timeout=1)
        with mock.patch.object(server.Sentinel, "__init__", lambda *_, **__: None), \
                mock.patch.object(server.Sentinel, "master_for", note):
            raised(Stop, connect, socket_timeout=1)
    require_equal([how.get("sentinel_kwargs", how)["protocol"] for how in said], [2, 2, 2])
    with options.server() as running:
        with Queue(EXEC, f"redis://127.0.0.1:{running.port}") as queue:
            queue.add(1)
            connection = queue._link._connection
            require_equal((connection.socket_timeout, connection.socket_connect_timeout,
                           connection._sock.gettimeout()), (5.0, 5.0, 5.0))


def test_worker_without_a_server(options):
    """A worker whose server has never answered says so after `connect_timeout`, whatever is wrong
    with the address. One whose server is away later waits for it, as does one without a limit."""
    async def handler(job):
        return job.payload

    with socket.create_server((LOOPBACK, 0)) as silent:  # It accepts, and says nothing.
        for url, text in (("redis://no-such-host.invalid", "no-such-host.invalid"),
                          (url_of(1), "refused"), (url_of(silent.getsockname()[1]), "imeout")):
            for work in (lambda job: job.payload, handler):
                worker = Worker(EXEC, work, url, connect_timeout=0.3, timeout=0.2)
                error = raised(errors.Unreachable, worker.run)
                require("within 0.3 s: " in str(error) and text in str(error), str(error))
    port = steady_port()
    with options.server({"port": port}) as running, Queue(EXEC, url_of(port)) as queue:
        for limit in (2.0, None):
            worker = Worker(EXEC, lambda job: job.payload, url_of(port), connect_timeout=limit)
            if limit is None:
                running.stop()
            thread = threading.Thread(target=worker.run)
            thread.start()
            if limit is not None:
                require(worker.wait_ready(60), "it works")
                running.stop()
            time.sleep(2.5)
            require(thread.is_alive(), f"it waits, {limit}")
            running.start()
            require_equal(queue.add(limit).result(60), limit)
            worker.stop()
            thread.join(60)


def test_refused_heartbeats(options):
    """A server that refuses a worker with tasks lets them end what they do since they are to stop.
    """
    ended = []

    async def handler(job):
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            await asyncio.sleep(0.2)
            ended.append(job.payload)
            raise

    with options.server({"user": "u on nopass ~* +@all -q.touch"}) as running, \
            Queue(EXEC, url_of(running.port)) as queue:
        queue.add(1)
        worker = Worker(EXEC, handler, f"redis://u:x@{LOOPBACK}:{running.port}", heartbeat=0.1)
        raised(errors.NoPermission, worker.run)
        require_equal(ended, [1])


def test_clients_that_cannot_be_made(options):
    """What makes connections may raise: for the first one run() raises that, and leaves no child
    and no open event loop; for the one that waits for jobs the other is used."""
    def cannot(**_):
        raise KeyError("no host")

    raised(KeyError, Worker(EXEC, handlers.echo, cannot, processes=True).run)
    require_equal(multiprocessing.active_children(), [])
    loop = asyncio.new_event_loop()
    with mock.patch.object(asyncio, "new_event_loop", return_value=loop):
        raised(KeyError, Worker(EXEC, handlers.sleep_async, cannot).run)
    require(loop.is_closed(), "the event loop is closed")
    opened = link._open

    def open_one(connection):
        if threading.current_thread().name == "sluice-pop":
            raise RuntimeError("no password")
        opened(connection)

    with options.server() as running, Queue(EXEC, url_of(running.port)) as queue, \
            mock.patch.object(link, "_open", open_one):
        worker = Worker(EXEC, handlers.echo, url_of(running.port))
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            require_equal([queue.add(n).result(60) for n in range(3)], [0, 1, 2])
        finally:
            worker.stop()
            thread.join(60)
        require(not thread.is_alive(), "it ends")


@contextlib.contextmanager
def tls_server(options, **directives):
    """A server with a port for TLS, and its certificates."""
    with scratch() as folder:
        certificates = Certificates(folder)
        given = {"tls-port": "auto", **certificates.directives(**directives)}
        with options.server(given) as running:
            yield running, certificates


def test_tls(options):
    """Queue and Worker over TLS. A server whose certificate another authority has signed is
    Unreachable. One that wants a certificate of the client says so when a command was sent already:
    whether it has run is Unknown. Each error, or its cause, says why."""
    with tls_server(options) as (running, certificates):
        def url(authority, *more):
            said = [f"ssl_ca_certs={certificates.certificate(authority)}", *more]
            return f"rediss://localhost:{running.ports['tls-port']}?" + "&".join(said)

        own = (f"ssl_certfile={certificates.certificate('client')}",
               f"ssl_keyfile={certificates.key('client')}")
        with Queue(EXEC, url("ca", *own)) as queue:
            job = queue.add({"n": 1})
            Worker(EXEC, lambda job: job.payload, url("ca", *own), burst=True).run()
            require_equal(job.result(60), {"n": 1})
            require_equal([event.type for event in queue.events("-", follow=False)][0], "added")
        for bad, kind, text in (
                (url("other", *own), errors.Unreachable, "certificate verify failed"),
                (url("ca"), (errors.Unknown, errors.Unreachable), "")):
            with Queue(EXEC, bad, patience=0.1) as queue:
                error = raised(kind, queue.add, 1)
                said = error.__cause__ or error
                require(isinstance(said, errors.Unreachable) and text in str(said), str(said))
            worker = Worker(EXEC, print, bad, connect_timeout=0.3)
            require(text in str(raised(errors.Unreachable, worker.run)), "a worker, too")
        with Queue(EXEC, url_of(running.ports["tls-port"]), patience=0.1) as queue:
            raised((errors.Unknown, errors.Unreachable), queue.add, 1)


def test_refused_repeats(options):
    """A server that refuses the repeat of an add, or its connection, does not say that an earlier
    try has added nothing: that is Unknown, and its cause says why."""
    for user, rule, refusal in REFUSALS:
        for many in (False, True):
            with options.server({"user": "u on >x ~* +@all"}) as running, \
                    running.connect() as connection, \
                    Proxy(running.port, refusing_repeats(connection, b"Q.ADD", *rule)) as proxy, \
                    Queue(EXEC, f"redis://{user}{LOOPBACK}:{proxy.port}") as queue:
                if many:
                    error, other = queue.add_many([{"payload": 1}, {"payload": 2}])
                    require_equal(type(other), errors.Unknown)
                else:
                    error = raised(errors.Unknown, queue.add, 1)
                require_equal(type(error.__cause__).__name__, refusal)
                require(connection.call("Q.GET", EXEC, error.id).value, "the job is there")
                require_equal(type(raised(errors.ServerError, queue.add, 2)).__name__, refusal)


def test_decoding_clients(options):
    """A client that decodes replies, of a function or of a URL, changes nothing."""
    payload = b"\xff\x00"
    with options.server() as server:
        url = url_of(server.port)
        for connect in (functools.partial(redis.Redis.from_url, url, decode_responses=True),
                        url + "?decode_responses=true"):
            with Queue(EXEC, connect, codec="raw") as queue:
                job = queue.add(payload, tags={"a": "b"})
                Worker(EXEC, lambda job: job.payload, connect, codec="raw", burst=True).run()
                require_equal(job.result(20), payload)
                info_of = queue.get(job.id, with_=["payload"])
                require_equal((info_of.state, info_of.payload, info_of.tags),
                              ("completed", payload, {"a": "b"}))
                require_equal([event.type for event in queue.events("-", follow=False,
                                                                    ids=[job.id])][-1],
                              "completed")


def test_what_no_server_takes(_options):
    """Bytes beyond every limit are refused before they are sent."""
    error = raised(errors.CodecError, encode, RawCodec(), bytes((512 << 20) + 1), "payload")
    require("512 MB" in str(error), str(error))


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
