#!/usr/bin/python3
"""The Python client's Queue: adding, also when replies are lost, and reading what there is."""

import asyncio
import contextlib
import contextvars
import enum
import gc
import itertools
import os
import sys
import threading
import time
import uuid
import weakref

from harness import info, require, require_equal, run, wait_until
from harness.native_queue import DISK, Native
from harness.proxy import DROP, PASS, Proxy
from harness.python_client import call_later, raised, url_of
from harness.sentinels import replying
from harness.servers import Server, steady_port

from sluice import (AsyncQueue, Duplicate, GroupFull, Job, Paused, Queue,  # noqa: I100
                    QueueFull, SluiceError, Unknown, Unreachable, errors, tracing)

EXEC = "exec"


def drop_first(name):
    """Drops the reply of the first command of that name; and a list of the commands that came."""
    seen = []

    def decide(command, _reply):
        if command[0] != name:
            return PASS
        seen.append(command)
        return DROP if len(seen) == 1 else PASS

    return decide, seen


def test_options_of_add(options):
    """Each option of add reaches the server; times are seconds."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        queue.add(1, "first")
        job = queue.add({"code": "x"}, "j", pri="high", boost=1.5, delay=60, group="änn",
                        keys=["lang:python", "gpu"], cost=2, ttl=90, lease=7.5, max_run=300,
                        retry=4, backoff=(0.5, 8), needs=["first"], tags={"run": "7"},
                        max_wait=3600)
        require_equal((job.id, job.outcome, job.state, job.position, job.eta),
                      ("j", "added", "blocked", None, None))
        got = queue.get("j", with_=["payload", "options"])
        require_equal(got.payload, {"code": "x"})
        own = {"boost": 1.5, "ttl": 90.0, "lease": 7.5, "max_run": 300.0, "retry": 4,
               "backoff": (0.5, 8.0)}
        require_equal(got.options, own)
        expected = {"pri": "HIGH", "group": "änn", "keys": ["gpu", "lang:python"], "cost": 2,
                    "ttl_left": 90.0, "lease": None, "lease_term": 7.5, "max_run": 300.0,
                    "retries_left": 4, "needs": ["first"], "after": (), "tags": {"run": "7"},
                    "successor": False, "worker": None, "run": None}
        require_equal({name: getattr(got, name) for name in expected}, expected)
        at = time.time() + 100
        queue.add(2, "later", at=at)
        require(abs(queue.get("later").not_before - at) < 0.01, "AT")
        require_equal(queue.get("first").why, "no_worker")
        require_equal(queue.get("unknown"), None)
        again = queue.add(got.payload, **got.options)
        require_equal(queue.get(again.id, with_=["options"]).options, own)


def test_refusals_are_exceptions(options):
    """What refuses an add is an exception of its own, with the hints as fields."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        native = Native(server)
        native.config(EXEC, "SET", "max_waiting", 2, "max_payload", 100)
        native.config(EXEC, "GROUP", "*", "SET", "max_total", 1)
        queue.add(1, "a", group="ann")
        full = raised(GroupFull, queue.add, 1, group="ann")
        require_equal((full.group, full.limit, full.value), ("ann", "max_total", 1))
        duplicate = raised(Duplicate, queue.add, 1, "a")
        require_equal((duplicate.id, duplicate.state), ("a", "pending"))
        queue.add(2)
        full = raised(QueueFull, queue.add, 3)
        require_equal((full.pending, full.max), (2, 2))
        require(full.retry_after > 0, "seconds to wait")
        require_equal(raised(errors.TooBig, queue.add, "x" * 100).limit, 100)
        require_equal(raised(errors.NoJob, queue.add, 1, needs="none").id, "none")
        require_equal(raised(errors.BadField, queue.add, 1, pri="nonsense").field, "pri")
        native.config(EXEC, "SET", "paused", "in")
        require_equal(raised(Paused, queue.add, 4).direction, "in")
        native.close()


def test_errors_keep_nothing(_options):
    """What an AsyncQueue was given is free once its error is, without the cyclic collector."""
    class Payload:
        pass

    async def fail():
        async with AsyncQueue(EXEC, "redis://127.0.0.1:1") as queue:
            payload = Payload()
            with contextlib.suppress(SluiceError):
                await queue.add(payload)
            return weakref.ref(payload)

    gc.disable()
    try:
        kept = asyncio.run(fail())
        wait_until(lambda: kept() is None, 5, "the payload is free")
    finally:
        gc.enable()


def test_names_are_texts(_options):
    """What is neither str nor bytes is no name, and is not sent."""
    raised(TypeError, Queue, 5)
    queue = Queue(EXEC, "redis://127.0.0.1:1")
    for wrong in ({"id": uuid.uuid4()}, {"tags": {"a": 5}}, {"keys": [5]}):
        require("not " in str(raised(TypeError, queue.add, 1, **wrong)), wrong)
    raised(TypeError, queue.result, 5)


def test_add_is_repeated(options):
    """A lost reply of add does not add the job twice: the client has made the id before, also for
    the server's `*` and with IFDUP ERROR."""
    for id_, ifdup in ((None, None), ("*", None), (None, "error")):
        decide, seen = drop_first(b"Q.ADD")
        with options.server() as server, Proxy(server.port, decide) as proxy, \
                Queue(EXEC, url_of(proxy.port)) as queue:
            job = queue.add(1, id_, ifdup=ifdup)
            require_equal(job.outcome, "added")
            require_equal(seen[0], seen[1], "the repeat")
            require(seen[0][2] != b"*", "an id of the client's own")
            require_equal(queue.stats()["added"], 1, repr(id_))


def test_add_with_an_id_is_repeated(options):
    """With an id of the caller a repeat that finds it raises Unknown; KEEP is repeated."""
    decide, seen = drop_first(b"Q.ADD")
    with options.server() as server, Proxy(server.port, decide) as proxy, \
            Queue(EXEC, url_of(proxy.port)) as queue:
        require_equal(raised(Unknown, queue.add, 1, "mine").id, "mine")
        require_equal(len(seen), 2)
        require_equal(raised(Duplicate, queue.add, 1, "mine").id, "mine")
        seen.clear()
        require_equal(queue.add(1, "kept", ifdup="keep").outcome, "kept")
        require_equal(len(seen), 2)


def test_changes_of_a_job_are_not_repeated(options):
    """cancel and retry are not repeated after a lost reply: another run may have ended by then."""
    for name in ("cancel", "retry"):
        decide, seen = drop_first(b"Q." + name.upper().encode())
        with options.server() as server, Proxy(server.port, decide) as proxy, \
                Queue(EXEC, url_of(proxy.port)) as queue:
            queue.add(1, "mine")
            if name == "retry":
                queue.cancel("mine")
            require_equal(raised(Unknown, getattr(queue, name), "mine").id, "mine")
            require_equal(len(seen), 1, name)
            require_equal(queue.get("mine").state, "pending" if name == "retry" else "cancelled")


def test_changes_before_the_server_is_there(options):
    """cancel and retry are repeated as long as nothing was sent."""
    port = steady_port()
    server = options.server({"port": port})
    starting = call_later(0.5, server.start)
    try:
        with Queue(EXEC, url_of(port)) as queue:
            raised(errors.NoJob, queue.retry, "none")
            require_equal(queue.cancel("none"), "gone")
    finally:
        starting.join()
        server.close()


def test_closed_between_repeats(options):
    """A queue that is closed before an add is repeated does not say that nothing was added."""
    decide, _ = drop_first(b"Q.ADD")
    with options.server() as server, Proxy(server.port, decide) as proxy, \
            Queue(EXEC, url_of(proxy.port)) as queue:
        queue._link.pauses = lambda *_, **__: lambda: queue.close() or True
        raised(Unknown, queue.add, 1, "mine")


def test_close(options):
    """close() ends loops over events; what is called after it raises Unreachable, and opens no
    connection."""
    with options.server() as server, server.connect() as connection:
        queue = Queue(EXEC, url_of(server.port))
        queue.add(1, "a")
        queue.add(2, "b")
        seen = [(event.id, queue.close()) for event in queue.events("-")]
        require_equal(seen, [("a", None)], "events after the end")
        for call in (queue.add, queue.get, queue.cancel, queue.result, queue.events):
            raised(Unreachable, call, "a")
        wait_until(lambda: info(connection)["connected_clients"] == "1", what="no connection")


def test_update_is_not_repeated(options):
    """UPDATE and REPLACE are not repeated after a lost reply."""
    for mode in ("update", "replace"):
        decide, seen = drop_first(b"Q.ADD")
        with options.server() as server, Proxy(server.port, decide) as proxy, \
                Queue(EXEC, url_of(proxy.port)) as queue:
            require_equal(raised(Unknown, queue.add, 1, "mine", ifdup=mode).id, "mine")
            require_equal(len(seen), 1, mode)
            require_equal(queue.add(2, "mine", ifdup=mode).outcome, mode.rstrip("e") + "ed")


def test_server_that_is_away(options):
    """Commands are repeated for `patience` seconds while the server is away, then Unreachable."""
    port = steady_port()
    with Queue(EXEC, url_of(port), patience=0.3) as queue:
        began = time.monotonic()
        raised(Unreachable, queue.add, 1)
        raised(Unreachable, queue.get, "a")
        require(time.monotonic() - began < 10, "it ends")
    server = options.server({"port": port})
    starting = call_later(0.5, server.start)
    try:
        with Queue(EXEC, url_of(port), patience=30) as queue:
            require_equal(queue.add(1).outcome, "added")
            # An UPDATE that was never sent is repeated.
            starting.join()
            server.stop()
            starting = call_later(0.5, server.start)
            require_equal(queue.add(1, "u", ifdup="update").outcome, "added")
    finally:
        starting.join()
        server.close()


def test_add_many(options):
    """add_many returns a job or the exception of each, in pipelines of at most 1,000."""
    decide, seen = drop_first(b"Q.ADD")
    with options.server() as server, Proxy(server.port) as proxy, \
            Queue(EXEC, url_of(proxy.port)) as queue:
        many = [{"payload": n} for n in range(1500)]
        many[3]["pri"] = "nonsense"
        many[700]["payload"] = float("nan")
        added = queue.add_many(many, group="ann")
        require_equal(len(added), 1500)
        require(isinstance(added[3], errors.BadField), repr(added[3]))
        require(isinstance(added[700], errors.CodecError), repr(added[700]))
        require_equal(sum(isinstance(job, Job) for job in added), 1498)
        require_equal(queue.get(added[1499].id, with_=["payload"]).payload, 1499)
        require_equal(queue.get(added[0].id).group, "ann")
        proxy.decide = decide  # The connection is lost: all of them are repeated.
        added = queue.add_many([{"payload": n} for n in range(500)])
        require_equal(sum(isinstance(job, Job) for job in added), 500)
        require_equal(queue.stats()["added"], 1998)


def test_add_many_with_bad_arguments(options):
    """What add would refuse before it sends anything is the exception of that job alone."""
    wrong = {"delay": (float("inf"), ValueError), "ttl": (float("nan"), ValueError),
             "group": ("\ud800", ValueError), "tags": ({"a": 5}, TypeError),
             "colour": ("red", TypeError), "id": (5, TypeError)}
    jobs = [{"payload": 1, name: value} for name, (value, _) in wrong.items()]

    async def in_a_task(url):
        async with AsyncQueue(EXEC, url) as queue:
            return await queue.add_many([{"payload": 0}, *jobs, {}, None, {"payload": 2}])

    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        for name, (value, kind) in wrong.items():
            raised(kind, queue.add, 1, **{name: value})
        for added in (queue.add_many([{"payload": 0}, *jobs, {}, None, {"payload": 2}]),
                      asyncio.run(in_a_task(url_of(server.port)))):
            require_equal([type(each) for each in added[1:-1]],
                          [*(kind for _, kind in wrong.values()), TypeError, TypeError])
            require_equal([queue.get(job.id, with_=["payload"]).payload
                           for job in (added[0], added[-1])], [0, 2])
        require_equal(queue.stats()["added"], 4)


def test_add_many_without_a_server(_options):
    """add_many has the patience of one call: pipelines after it are tried once. So it is with a
    server of whose answers none is sure."""
    tries = []

    def watch(link):
        tries.clear()
        exchange = link.exchange
        link.exchange = lambda commands: tries.append(commands) or exchange(commands)

    async def in_a_task(url, jobs):
        async with AsyncQueue(EXEC, url, patience=0.2) as queue:
            watch(queue._queue._link)
            return await queue.add_many(jobs)

    def in_this_thread(url, jobs):
        with Queue(EXEC, url, patience=0.2) as queue:
            watch(queue._link)
            return queue.add_many(jobs)

    unsure = b"-MISCONF The last commands may or may not have been kept.\r\n"
    with replying(unsure) as server:
        for (url, kind), add_many in itertools.product(
                ((url_of(1), Unreachable), (url_of(server.port), Unknown)),
                (in_this_thread, lambda *what: asyncio.run(in_a_task(*what)))):
            added = add_many(url, [{"payload": n} for n in range(4000)])
            require_equal({type(each) for each in added}, {kind})
            require_equal(len({commands[0] for commands in tries}), 4, "all are tried")
            require_equal([tries[-3:].count(commands) for commands in tries[-3:]], [1, 1, 1])


def test_words(options):
    """Numbers of all kinds are sent as numbers. What cannot be sent raises TypeError."""
    class Priority(enum.IntEnum):
        FIRST = 4

    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        queue.add(1, "a", pri=Priority.FIRST, cost=True, retry=False)
        info_of = queue.get("a")
        require_equal((info_of.cost, info_of.retries_left), (1, 0))
        raised(TypeError, next, queue.events(None))


def test_what_others_have_set(options):
    """No bytes are no result; progress that the codec cannot read stays bytes."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        native = Native(server)
        job = queue.add(1)
        taken = native.pop(EXEC, "WORKER", "native")
        native.touch(EXEC, taken, "PROGRESS", "50%")
        got = job.get()
        require_equal((got.progress, got.state), (b"50%", "active"))
        require_equal((got.lease, got.lease_term, got.worker), (taken["lease"], 30.0, "native"))
        native.ack(EXEC, taken)
        got = queue.get(job.id, with_=["payload", "result"])
        require_equal((got.state, got.payload, got.result), ("completed", 1, None))
        native.close()


def test_one_job(options):
    """cancel and retry of one job, and what they return."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        job = queue.add(1)
        require_equal(job.why(), "no_worker")
        require_equal(job.cancel("enough"), "cancelled")
        require_equal(job.get().error, "enough")
        require_equal(job.cancel(), "gone")
        require_equal(queue.retry(job.id), "pending")
        raised(errors.NoJob, queue.retry, "none")
        native = Native(server)
        native.pop(EXEC)
        require_equal(job.cancel(grace=0), "cancelled")
        native.close()


def test_stats(options):
    """Q.STATS as a dictionary: times in seconds, totals as they are."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        queue.add(1, pri="high")
        stats = queue.stats(window=1.0)
        require_equal((stats["added"], stats["started"]), (1, 0))
        require_equal(stats["by_priority"]["HIGH"], 1)
        require(abs(stats["since"] - time.time()) < 60, "since is unix seconds")
        require(0 <= stats["oldest"] < 60 and "oldest_ms" not in stats, "oldest is seconds")
        require(isinstance(stats["rates"]["added"], float), "rates are numbers")


def test_stats_by_line(options):
    """stats of a group, and by group, by worker and by the values of a tag."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        queue.add(1, group="ann", tags={"lang": "c"})
        queue.add(2)
        require_equal(queue.stats(group="ann")["pending"], 1)
        require_equal(queue.stats(by="group")["ann"]["pending"], 1)
        require_equal(queue.stats(by={"tag": "lang"})["c"]["pending"], 1)
        native = Native(server)
        native.pop(EXEC, "WORKER", "native")
        native.close()
        line = queue.stats(by="worker")["native"]
        require_equal((line["active"], line["quiet"]), (1, False))
        require(abs(line["seen"] - time.time()) < 60, "seen is unix seconds")
        raised(errors.ServerError, queue.stats, by="colour")


def test_threads_share_a_connection(options):
    """Threads share one connection and its pipelines; each gets the reply to its own command."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        wrong = []

        def work(n):
            for i in range(30):
                job = queue.add([n, i])
                if queue.get(job.id, with_=["payload"]).payload != [n, i]:
                    wrong.append((n, i))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        require_equal(wrong, [])
        with server.connect() as connection:
            require_equal(info(connection)["connected_clients"], "2")


def test_child_of_a_fork(options):
    """The child of a fork opens a connection of its own."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        queue.add(0)
        child = os.fork()
        if child == 0:
            ok = False
            try:
                ok = all(queue.get(queue.add(n).id, with_=["payload"]).payload == n
                         for n in range(100))
            finally:
                os._exit(0 if ok else 1)
        for n in range(100):
            require_equal(queue.get(queue.add(n).id, with_=["payload"]).payload, n)
        require_equal(os.waitpid(child, 0)[1], 0, "the child's exit")


def test_codecs(options):
    """json refuses NaN and integers beyond 2^53 - 1 both ways; raw and an object of one's own."""
    class Upper:
        def encode(self, value):
            return value.upper().encode()

        def decode(self, data):
            return data.decode().lower()

    class Text(Upper):
        def encode(self, value):
            return str(value)

    with options.server() as server:
        url = url_of(server.port)
        with Queue(EXEC, url) as queue:
            for bad in (float("nan"), float("inf"), 2**53, {"a": [-(2**53)]}, object()):
                raised(errors.CodecError, queue.add, bad)
            for good in (2**53 - 1, 1 - 2**53, [None, True, 1.5, "ä"], {"a": {}}):
                job = queue.add(good)
                require_equal(queue.get(job.id, with_=["payload"]).payload, good)
            require_equal(queue.stats()["added"], 4, "nothing was sent")
        with Queue(EXEC, url, codec="raw") as queue:
            raised(errors.CodecError, queue.add, "text")
            queue.add(b"\0\xff", "raw")
            queue.add(b"NaN", "nan")
            queue.add(b"9007199254740992", "large")
            queue.add(b"[-1e400]", "infinite")
            require_equal(queue.get("raw", with_=["payload"]).payload, b"\0\xff")
        with Queue(EXEC, url) as queue:
            for bad in ("raw", "nan", "large", "infinite"):
                raised(errors.CodecError, queue.get, bad, with_=["payload"])
            error = raised(errors.CodecError, queue.add, 2**53)
            require("9007199254740992 is beyond 2^53 - 1, up to which" in str(error), str(error))
        with Queue(EXEC, url, codec=Upper()) as queue:
            require_equal(queue.get(queue.add("abc").id, with_=["payload"]).payload, "abc")
        with Queue(EXEC, url, codec=Text()) as queue:
            error = raised(errors.CodecError, queue.add, 1)
            require_equal(str(error), "payload: encode() has returned str, not bytes")
        raised(ValueError, Queue, EXEC, url, codec="pickle")


def test_names_without_bytes(_options):
    """A name that UTF-8 cannot express is refused by its argument, before anything is sent."""
    lone = "a\ud83d"
    raised(ValueError, Queue, lone, "redis://127.0.0.1:1")
    with Queue(EXEC, "redis://127.0.0.1:1") as queue:
        for options in ({"id": lone}, {"group": lone}, {"keys": ["k", lone]}, {"after": lone},
                        {"needs": [lone]}, {"tags": {lone: "v"}}, {"tags": {"t": lone}}):
            [name] = options
            require_equal(str(raised(ValueError, queue.add, 1, **options)), f"{name.rstrip('s')} "
                          "has a lone surrogate, which UTF-8 cannot express")
        for ask in (queue.get, queue.result, queue.cancel, queue.retry):
            require_equal(type(raised(ValueError, ask, lone)), ValueError)


def test_events_without_a_gap(options):
    """events continues through kills of the server without a gap, also from `$`."""
    port = steady_port()
    with options.server({**DISK, "port": port}) as server, Queue(EXEC, url_of(port)) as queue:
        queue.add(0)
        got = []

        def follow():
            for event in queue.events("$", types=["added"]):
                got.append(event)
                if len(got) == 60:
                    return

        thread = threading.Thread(target=follow, daemon=True)
        with server.connect() as connection:
            thread.start()
            wait_until(lambda: int(info(connection)["blocked_clients"]) == 1, what="it follows")
        ids = []
        for n in range(60):
            ids.append(queue.add(n).id)
            if n % 20 == 10:
                server.kill()
                server.start()
        thread.join(20)
        require_equal([event.id for event in got], ids)
        require(abs(got[0].time - time.time()) < 60, "time is unix seconds")
        seen = list(queue.events("-", follow=False))
        require_equal([event.seq for event in seen], list(range(seen[0].seq, seen[-1].seq + 1)))
        require_equal({event.id for event in queue.events("-", ids=[ids[0]], follow=False)},
                      {ids[0]})
        raised(errors.Trimmed, next, queue.events(10**12))


def test_events_before_the_server_is_there(options):
    """A loop over events from `$` waits for a server that is away, as from a number."""
    port = steady_port()
    server = options.server({"port": port})
    got = []
    with Queue(EXEC, url_of(port)) as queue:
        thread = threading.Thread(target=lambda: got.append(next(queue.events())), daemon=True)
        thread.start()
        time.sleep(0.3)
        require(thread.is_alive(), "it waits")
        with server, server.connect() as connection:
            wait_until(lambda: int(info(connection)["blocked_clients"]) == 1, what="it follows")
            job = queue.add(1)
            thread.join(20)
            require_equal([event.id for event in got], [job.id])


CALLS = {"add": (1,), "get": ("x",), "result": ("x", 20), "stats": (), "cancel": ("x",),
         "retry": ("x",)}


async def raised_by_all(kind, url, name, methods):
    """Each method of an AsyncQueue raises it."""
    async with AsyncQueue(name, url, patience=0.1) as queue:
        for method in methods:
            try:
                got = await getattr(queue, method)(*CALLS[method])
            except kind:
                continue
            raise AssertionError(f"{method}: {got!r}, expected {kind.__name__}")


def test_servers_that_refuse(options):
    """What refuses a queue is an exception of the table: a URL where nobody is, a user without the
    right, another type, an adopted queue, a server without queues."""
    user = "u on nopass ~* +@all -q.add -q.get -q.stats -q.cancel -q.retry"
    with options.server({"user": user}) as server, Server("redis-server") as other:
        with server.connect() as connection:
            connection.call("SET", "text", "x")
            connection.call("Q.ADOPT", "adopted", "PENDING", "waiting", "ACTIVE", "running")
        others = set(CALLS) - {"result"}  # It waits for a server that is away.
        for kind, url, name, methods in (
                (Unreachable, url_of(1), EXEC, others), (errors.WrongType, None, "text", CALLS),
                (errors.NoPermission, f"redis://u:x@127.0.0.1:{server.port}", EXEC, CALLS),
                (errors.Adopted, None, "adopted", ("add", "retry")),
                (errors.CommandError, url_of(other.port), EXEC, CALLS)):
            url = url or url_of(server.port)
            with Queue(name, url, patience=0.1) as queue:
                for method in methods:
                    raised(kind, getattr(queue, method), *CALLS[method])
            asyncio.run(raised_by_all(kind, url, name, methods))


def test_traceparent(options):
    """`traceparent` of the present span becomes a tag, if OpenTelemetry is there."""
    span = contextvars.ContextVar("span")

    class Propagate:
        @staticmethod
        def inject(carrier):
            carrier["traceparent"] = span.get("none")

    async def add(url):
        async with AsyncQueue(EXEC, url) as queue:
            return (await queue.add(1)).id

    before = tracing.available, tracing._propagate
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        tracing.available, tracing._propagate = True, Propagate
        span.set("00-1-2-01")
        try:
            job = queue.add(1, tags={"a": "b"})
            own = queue.add(1, tags={"traceparent": "mine"})
            awaited = asyncio.run(add(url_of(server.port)))
        finally:
            tracing.available, tracing._propagate = before
        require_equal(job.get().tags, {"a": "b", "traceparent": "00-1-2-01"})
        require_equal(own.get().tags, {"traceparent": "mine"})
        require_equal(queue.get(awaited).tags, {"traceparent": "00-1-2-01"})


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
