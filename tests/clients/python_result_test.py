#!/usr/bin/python3
"""Waiting for results with the Python client: shared, without a lost wake-up; and asyncio."""

import asyncio
import concurrent.futures
import contextlib
import random
import sys
import threading
import time

import redis

from harness import info, require, require_equal, run, wait_until
from harness.native_queue import DISK, Native
from harness.proxy import PASS, Proxy
from harness.python_client import call_later, end_job, raised, url_of
from harness.servers import steady_port

from sluice import AsyncQueue, Forgotten, NotCompleted, Queue, ResultTimeout, errors, results
from sluice.link import ConnectionLost

EXEC = "exec"
LONG_S = 60.0  # A lost wake-up would take this long.


def end_all(server, queue=EXEC, pause_s=0.0):
    """Ends each job with its payload as the result. Returns the number."""
    native = Native(server)
    count = 0
    while jobs := native.pop_many(queue, "COUNT", 100):
        for job in jobs:
            native.ack(queue, job, "RESULT", job["payload"])
            count += 1
            time.sleep(pause_s)
    native.close()
    return count


@contextlib.contextmanager
def block_for(seconds):
    """Without a wake-up a wait takes that long."""
    before, results.BLOCK = results.BLOCK, seconds
    try:
        yield
    finally:
        results.BLOCK = before


def test_ends(options):
    """result returns what the worker returned; other ends, and jobs that are gone, raise."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        for ack, result in (("RESULT", b'{"ok":true}'), {"ok": True}), ((), None):
            job = queue.add(1)
            call_later(0.2, end_job, server, EXEC, ack)
            require_equal(job.result(20), result)
        job = queue.add(1)
        call_later(0.2, end_job, server, EXEC, (), ("FATAL", "ERROR", "no such user"))
        failed = raised(NotCompleted, job.result, 20)
        require_equal((failed.id, failed.state, failed.error), (job.id, "failed", "no such user"))
        job = queue.add(1)
        call_later(0.2, job.cancel, "enough")
        require_equal(raised(NotCompleted, job.result, 20).error, "enough")
        require_equal(raised(NotCompleted, queue.add(1, ttl=0.2).result, 20).state, "expired")
        job = queue.add(1)
        end_job(server, EXEC, ("RESULT", b"NaN"))
        raised(errors.CodecError, job.result, 20)
        raised(Forgotten, queue.result, "unknown", 20)
        job = queue.add(1)
        call_later(0.2, server.connect().call, "DEL", EXEC)
        raised(Forgotten, job.result, 20)
        began = time.monotonic()
        require_equal(raised(ResultTimeout, queue.add(1, "late").result, 0.3).id, "late")
        require(time.monotonic() - began < 3, "the time-out")


async def look(url, id_):
    async with AsyncQueue(EXEC, url) as queue:
        return await queue.result(id_, 0)


def test_looks_once(options):
    """With a time-out of 0 it looks once: an end that is there is told, and nothing is waited for.
    """
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        url = url_of(server.port)
        job = queue.add(1)
        require_equal(raised(ResultTimeout, job.result, 0).id, job.id)
        raised(ResultTimeout, asyncio.run, look(url, job.id))
        end_job(server, EXEC, ("RESULT", b'"x"'))
        require_equal((job.result(0), job.result(-1), asyncio.run(look(url, job.id))), ("x",) * 3)
        raised(Forgotten, queue.result, "unknown", 0)
        raised(errors.BadField, queue.result, "", 0)
        server.stop()
        raised(ResultTimeout, job.result, 0)
    raised(errors.Unreachable, queue.result, job.id, 0)


BAD_IDS = ("", "x" * 600)


async def bad_beside_good(server):
    async with AsyncQueue(EXEC, url_of(server.port)) as queue:
        good = await queue.add(1)
        wait = asyncio.ensure_future(good.result(30))
        await asyncio.sleep(0)
        bad = await asyncio.gather(*(queue.result(id_, 20) for id_ in BAD_IDS),
                                   return_exceptions=True)
        require_equal([getattr(error, "field", error) for error in bad], ["id", "id"])
        end_job(server, EXEC)
        require_equal(await wait, 1)


def test_bad_ids(options):
    """An id that the server refuses fails its own wait alone, with events and without."""
    for events, times in ((1000, 100), (0, 1)):
        with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
                concurrent.futures.ThreadPoolExecutor(9) as threads:
            native = Native(server)
            native.config(EXEC, "SET", "events", events)
            native.close()
            wait = threads.submit(queue.add(1).result, 60)
            wait_until(lambda: queue._results.waiting == 1, what="it waits")
            for bad in [threads.submit(queue.result, id_, 40) for id_ in times * BAD_IDS]:
                require_equal(raised(errors.BadField, bad.result).field, "id")
            end_job(server, EXEC)
            require_equal(wait.result(60), 1)
            asyncio.run(bad_beside_good(server))


def test_waits_without_the_right(options):
    """A user who may not read jobs hears so, in each wait."""
    rights = "u on nopass ~* +@all -q.get"
    with options.server({"user": rights}) as server, \
            Queue(EXEC, f"redis://u:x@127.0.0.1:{server.port}") as queue:
        jobs = queue.add_many([{"payload": n} for n in range(3)])
        with concurrent.futures.ThreadPoolExecutor(3) as threads:
            for wait in [threads.submit(job.result, 20) for job in jobs]:
                raised(errors.NoPermission, wait.result, 20)


def test_a_retry_is_no_end(options):
    """A run that fails and is retried does not end the wait."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        job = queue.add(1, retry=3)

        def ends():
            wait_until(lambda: queue._results.waiting == 1, what="the wait")
            for ack, nack in ((), ("DELAY", "0")), ((), ("DELAY", "0")), (("RESULT", b"2"), None):
                time.sleep(0.2)
                wait_until(lambda: job.get().state == "pending", what="its next run may begin")
                end_job(server, EXEC, ack, nack)

        ender = threading.Thread(target=ends)
        ender.start()
        require_equal(job.result(20), 2)
        ender.join()
        require_equal(job.get().attempts, 3)


def test_a_thousand_results(options):
    """1,000 results awaited at the same time: at most 3 connections, and each gets its own."""
    with block_for(LONG_S), options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        jobs = queue.add_many([{"payload": n} for n in range(1000)])
        with concurrent.futures.ThreadPoolExecutor(1000) as threads:
            waits = [threads.submit(job.result, 60) for job in jobs]
            with server.connect() as connection:
                wait_until(lambda: queue._results.waiting == 1000, what="all wait")
                wait_until(lambda: int(info(connection)["blocked_clients"]) == 1, what="it waits")
                require(int(info(connection)["connected_clients"]) <= 4, "3, and this one")
            require_equal(end_all(server), 1000)
            require_equal([wait.result(60) for wait in waits], list(range(1000)))


def test_no_lost_wake_up(options):
    """Ends that race with the waits for them are never missed, behind a slow proxy too."""
    seed = random.randrange(1 << 30)
    chance = random.Random(seed)
    def slow(_command, _reply):
        time.sleep(chance.random() * 0.004)
        return PASS

    with block_for(LONG_S), options.server() as server, Proxy(server.port, slow) as proxy, \
            Queue(EXEC, url_of(proxy.port)) as queue, \
            concurrent.futures.ThreadPoolExecutor(8) as threads:
        done = threading.Event()

        def ends():
            while not done.is_set():
                end_all(server, pause_s=chance.random() * 0.003)

        ender = threading.Thread(target=ends)
        ender.start()
        try:
            waits = []
            for n in range(300):
                waits.append((n, threads.submit(queue.add(n).result, LONG_S / 2)))
                time.sleep(chance.random() * 0.005)
            for n, wait in waits:
                require_equal(wait.result(LONG_S / 2), n, f"seed {seed}")
        finally:
            done.set()
            ender.join()


def test_place_in_the_log(options):
    """The log is looked through for its end once, not for each result. Where the events after the
    place are gone, or the connection is another one, this is done again."""
    scans, trimmed = [], []

    def decide(command, reply):
        if command[0] == b"Q.EVENTS":
            scans.extend(command[2:3] * (command[2] == b"-"))
            trimmed.extend(["TRIMMED"] * (b"TRIMMED" in reply.raw))
        return PASS

    def results_of(queue, number):
        for n in range(number):
            job = queue.add(n)
            ending = call_later(0.02, end_job, server, EXEC, ("RESULT", str(n)))
            require_equal(job.result(30), n)
            ending.join()

    with options.server() as server, Proxy(server.port, decide) as proxy, \
            Queue(EXEC, url_of(proxy.port)) as queue, block_for(LONG_S):
        results_of(queue, 20)
        require_equal((len(scans), trimmed), (1, []))
        native = Native(server)
        native.config(EXEC, "SET", "events", 100)
        queue.add_many([{"payload": n} for n in range(1000)])
        end_all(server)
        native.close()
        results_of(queue, 5)
        require_equal((len(scans), len(trimmed)), (2, 1))
        proxy.cut()
        results_of(queue, 5)
        require_equal((len(scans), len(trimmed)), (3, 1))


class Answering:
    """Instead of a link: these are the replies."""

    def __init__(self, *replies):
        self.replies = list(replies)

    def exchange(self, _commands):
        return [self.replies.pop(0)]


def test_wake_up_that_fails(_options):
    """A follower is woken until it was; only a user who may not wake it has another way."""
    busy, refused = errors.Busy("BUSY a script"), errors.NoPermission("NOPERM client")
    for replies, may in (((busy, ConnectionLost("lost"), 0, 1), True), ((refused,), False)):
        link = Answering(*replies)
        waits = results.Results(None, link, b"exec", 1.0)
        waits._client, waits._asked = 7, 1  # It is blocked, and does not know of a wait.
        waking = threading.Thread(target=waits._wake, daemon=True)
        waking.start()
        wait_until(lambda link=link: not link.replies, what="all replies")
        waits.close()
        waking.join(20)
        require_equal(waits._may_unblock, may)


def test_follower_that_cannot_connect(_options):
    """What the function that makes clients raises is raised by the waits: none is endless."""
    made = []

    def connect(**options):
        made.append(options)
        if len(made) in (2, 3):  # The first one is for commands.
            raise OSError("no more files")
        return redis.Redis(port=1, **options)

    with Queue(EXEC, connect) as queue:
        for _ in range(2):
            require_equal(str(raised(OSError, queue.result, "a", LONG_S)), "no more files")
        raised(ResultTimeout, queue.result, "a", 0.2)


def test_without_events(options):
    """With `events 0`, however it is written, and with events switched off meanwhile, results are
    waited for by Q.GET WAIT, which needs none."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
            server.connect() as connection:
        native = Native(server)

        def pooled():
            return int(info(connection)["blocked_clients"]) > 1  # One would read events.

        native.config(EXEC, "SET", "events", 0)
        jobs = [queue.add(n) for n in range(30)]
        with concurrent.futures.ThreadPoolExecutor(30) as threads:
            waits = [threads.submit(job.result, 30) for job in jobs]
            wait_until(lambda: queue._results.waiting == 30, what="all wait")
            wait_until(pooled, what="Q.GET WAIT")
            require(int(info(connection)["connected_clients"]) <= 12, "a pool of 8")
            end_all(server)
            require_equal([wait.result(30) for wait in waits], list(range(30)))
            raised(Forgotten, queue.result, "unknown", 20)
            native.config(EXEC, "SET", "events", 1000)
            wait = threads.submit(queue.add("on").result, 60)
            wait_until(lambda: int(info(connection)["blocked_clients"]) == 1, what="it waits")
            native.config(EXEC, "SET", "events", "0:1000")
            wait_until(pooled, what="Q.GET WAIT, once the waiting command is over")
            end_all(server)
            require_equal(wait.result(60), "on")
        native.close()


def test_without_rights(options):
    """A user who may not read events, or not be woken, gets results all the same."""
    for rights in ("-q.events -client", "-client", "-client|unblock"):
        with options.server({"user": f"u on nopass ~* +@all {rights}"}) as server, \
                Queue(EXEC, f"redis://u:x@127.0.0.1:{server.port}") as queue:
            for payload in "yz":
                job = queue.add(payload)
                call_later(0.3, end_job, server, EXEC, ("RESULT", b'"x"'))
                require_equal(job.result(20), "x")


def test_results_across_kills(options):
    """A wait continues while the server is killed and comes back."""
    port = steady_port()
    with options.server({**DISK, "port": port}) as server, Queue(EXEC, url_of(port)) as queue, \
            concurrent.futures.ThreadPoolExecutor(20) as threads:
        waits = [threads.submit(queue.add(n).result, 60) for n in range(20)]
        for _ in range(3):
            time.sleep(0.2)
            server.kill()
            time.sleep(0.2)
            server.start()
            end_job(server, EXEC, ("RESULT", b'"end"'))
        native = Native(server)
        for job in native.pop_many(EXEC, "COUNT", 100):
            native.ack(EXEC, job, "RESULT", '"end"')
        native.close()
        require_equal({wait.result(60) for wait in waits}, {"end"})


def test_closed(options):
    """Closing the queue ends the waits."""
    with options.server() as server:
        queue = Queue(EXEC, url_of(server.port))
        job = queue.add(1)
        call_later(0.3, queue.close)
        raised(errors.Unreachable, job.result, 30)


# -- asyncio --------------------------------------------------------------------------------------


def test_asyncio(options):
    """AsyncQueue: the same, awaited; 1,000 results at the same time take no threads."""
    async def use(url, server):
        async with AsyncQueue(EXEC, url) as queue:
            jobs = await asyncio.gather(*(queue.add(n, group="ann") for n in range(500)))
            jobs += await queue.add_many([{"payload": n} for n in range(500, 1000)])
            waits = [asyncio.ensure_future(job.result(60)) for job in jobs]
            await asyncio.sleep(0)
            ended = asyncio.get_running_loop().run_in_executor(None, end_all, server)
            require_equal(await asyncio.gather(*waits), list(range(1000)))
            require_equal(await ended, 1000)
            require(threading.active_count() < 40, f"{threading.active_count()} threads")
            job = await queue.add("x")
            require_equal((await job.why(), (await job.get()).state), ("no_worker", "pending"))
            require_equal(await job.cancel("enough"), "cancelled")
            require_equal(await queue.retry(job.id), "pending")
            require_equal((await queue.stats())["pending"], 1)
            try:
                await job.result(0.1)
                raise AssertionError("it has not ended")
            except ResultTimeout:
                pass
            async for event in queue.events("-", types=["cancelled"]):
                require_equal(event.id, job.id)
                break

    with options.server() as server:
        native = Native(server)
        native.config(EXEC, "SET", "retain_completed", 2000)
        asyncio.run(use(url_of(server.port), server))
        native.close()


def test_cancelled_tasks(options):
    """Tasks cancelled at every await, behind a slow proxy, leave no reply to the next command."""
    chance = random.Random(7)

    def slow(_command, _reply):
        time.sleep(0.002)
        return PASS

    async def step(queue, n):
        job = await queue.add(n, f"j{n}")
        info_of = await queue.get(job.id, with_=["payload"])
        require_equal((info_of.id, info_of.payload), (f"j{n}", n))
        await queue.result(f"j{n}", 0.01)

    async def use(url):
        async with AsyncQueue(EXEC, url) as queue:
            tasks = []
            for n in range(150):
                tasks.append(asyncio.create_task(step(queue, n)))
                await asyncio.sleep(0.001)
                for task in tasks:
                    if chance.random() < 0.2:
                        task.cancel()
            for error in await asyncio.gather(*tasks, return_exceptions=True):
                require(isinstance(error, (asyncio.CancelledError, ResultTimeout)), repr(error))
            for n in range(20):
                job = await queue.add(n)
                require_equal((await queue.get(job.id, with_=["payload"])).payload, n)

    with options.server() as server, Proxy(server.port, slow) as proxy:
        asyncio.run(use(url_of(proxy.port)))


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
