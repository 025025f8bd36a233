#!/usr/bin/python3
"""The Python client among faults: signals, forks, threads and tasks that come and go, a server that
does not answer or refuses everything for a while."""

import asyncio
import collections
import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

from harness import require, require_equal, run, wait_until
from harness.proxy import DROP, PASS, Proxy
from harness.python_client import PACKAGE, end_job, raised, url_of
from harness.sentinels import replying
from harness.servers import steady_port

from sluice import (AsyncJob, AsyncQueue, Cancelled, Queue, ResultTimeout, Unknown, Unreachable,
                    Worker, errors)
from sluice import WorkerJob
from sluice.aio import THREADS
from sluice.codec import codec_of
from sluice.outcome import GIVEN_BACK, Outcome
from sluice.plan import Lease
from sluice.results import Results
from sluice.slots import ThreadSlots

EXEC = "exec"

CLOSE_IN_HANDLER = """
import signal, time
from harness.sentinels import replying
from sluice import Queue, Unknown
server = replying(b"")
queue = Queue("exec", f"redis://127.0.0.1:{server.port}", timeout=60, patience=60)
signal.signal(signal.SIGALRM, lambda *_: b"Q.ADD" in str(server.seen).encode() and queue.close())
signal.setitimer(signal.ITIMER_REAL, 0.3, 0.3)
began = time.monotonic()
try:
    queue.add(1)
except Unknown:
    print("ended" if time.monotonic() - began < 30 else "late")
"""


def test_close_in_a_signal_handler(_options):
    """close() in the handler of a signal ends the command that this has interrupted; it is not
    repeated."""
    done = subprocess.run([sys.executable, "-c", CLOSE_IN_HANDLER], capture_output=True, text=True,
                          timeout=50, check=False, cwd=os.path.dirname(__file__) or ".",
                          env={**os.environ, "PYTHONPATH": str(PACKAGE)})
    require_equal(done.stdout, "ended\n", done.stderr)


def start_child(function):
    """Forks; the child runs the function."""
    pid = os.fork()
    if pid == 0:
        code = 1
        with contextlib.suppress(BaseException):
            function()
            code = 0
        os._exit(code)
    return pid


def end_child(pid, timeout_s=30):
    """Fails if its function has raised or does not end."""
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return require_equal(status, 0, "how the child has ended")
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise AssertionError("the child does not end")


def test_threads_after_a_fork(options):
    """The threads of a child may all be the first to use a queue that the parent has used."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        job = queue.add(0)
        end_job(server, EXEC)
        job.result(20)

        def use():
            with ThreadPoolExecutor(8) as pool:
                jobs = list(pool.map(queue.add, range(8)))
                for _ in jobs:
                    end_job(server, EXEC)
                require_equal([job.result(20) for job in jobs], [1] * 8)

        for _ in range(5):
            end_child(start_child(use))
        require_equal(queue.stats()["completed"], 41)


def test_worker_made_before_a_fork(options):
    """Two processes that run the same worker object are two workers, and share no jobs."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        queue.add_many([{"payload": n} for n in range(40)])
        worker = Worker(EXEC, lambda job: job.wait(0.02), url_of(server.port), concurrency=4,
                        max_jobs=10)
        children = [start_child(worker.run) for _ in range(3)]
        worker.run()
        for pid in children:
            end_child(pid)
        stats = queue.stats()
        require_equal((stats["completed"], stats["pending"], stats["active"]), (40, 0, 0))
        require_equal(worker.counts["completed"], 10)


def test_result_keeps_its_time(options):
    """A wait ends in time, also while the server does not answer; and may be without end."""
    with options.server() as server, Queue(EXEC, url_of(server.port), timeout=20) as queue:
        jobs = [queue.add(n) for n in range(3)]
        results = ThreadPoolExecutor(1).submit(jobs[0].result, float("inf"))
        wait_until(lambda: queue._results._client is not None, what="it follows")
        os.kill(server.pid, signal.SIGSTOP)
        try:
            began = time.monotonic()
            raised(ResultTimeout, jobs[1].result, 0.2)
            raised(ResultTimeout, asyncio.run, async_result(queue, jobs[2].id))
            require(time.monotonic() - began < 5, "both in time")
        finally:
            os.kill(server.pid, signal.SIGCONT)
        for _ in jobs:
            end_job(server, EXEC)
        require_equal([results.result(20), jobs[1].result(20)], [1, 1])
        require_equal(queue._results.waiting, 0)


async def async_result(queue, id_):
    asynchronous = AsyncQueue(EXEC)
    asynchronous._queue = queue
    return await asynchronous.result(id_, 0.2)


def test_close_ends_events(options):
    """close() ends the loops over events, as if there were no more; those of others continue."""
    def follow(queue, seen):
        for event in queue.events("-"):
            seen.append(event.type)

    with options.server() as server, Queue(EXEC, url_of(server.port)) as other:
        queue = Queue(EXEC, url_of(server.port))
        seen, beside = [], []
        loop = threading.Thread(target=follow, args=(queue, seen))
        loop.start()
        threading.Thread(target=follow, args=(other, beside), daemon=True).start()
        begun = queue.events()  # whose first event is asked for later
        queue.add(1)
        wait_until(lambda: seen and beside, what="an event")
        queue.close()
        loop.join(4)
        require(not loop.is_alive(), "the loop has ended")
        require_equal(list(begun), [])
        other.add(2)
        wait_until(lambda: len(beside) == 2, what="the other continues")


def test_close_without_a_server(options):
    """close() and a cancellation end loops over events also while the server is away."""
    def follow():
        seen.extend(event.type for event in queue.events("-"))
        ended.set()

    async def follow_until_cancelled(queue):
        seen.extend([event.type async for event in queue.events("-")])

    async def cancel_without_a_server(server):
        async with AsyncQueue(EXEC, url_of(server.port)) as other:
            task = asyncio.create_task(follow_until_cancelled(other))
            await asyncio.sleep(0.3)
            server.stop()
            await asyncio.sleep(0.1)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    before = threading.active_count()
    with options.server() as server:
        seen, ended = [], threading.Event()
        queue = Queue(EXEC, url_of(server.port))
        queue.add(1)
        threading.Thread(target=follow, daemon=True).start()
        wait_until(lambda: seen, what="an event")
        asyncio.run(cancel_without_a_server(server))
        queue.close()
        wait_until(lambda: threading.active_count() <= before, what="no thread is left")
        require(ended.is_set(), "as if there were no more")


def test_close_while_others_begin(_options):
    """close() may be called while other threads begin to follow the events."""
    queue = Queue(EXEC, url_of(1))
    done = threading.Event()

    def begin():
        begun = collections.deque(maxlen=200)
        while not done.is_set():
            with contextlib.suppress(Unreachable):
                begun.append(queue.events())

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=begin) for _ in range(2)]
    try:
        for thread in threads:
            thread.start()
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            queue.close()
    finally:
        done.set()
        sys.setswitchinterval(before)
        for thread in threads:
            thread.join()


async def follow_tasks(queue):
    """Loops that are cancelled, more than a queue has threads, and one that close ends."""
    async def follow(*_):
        return [event async for event in queue.events()]

    for _ in range(3):
        tasks = [asyncio.create_task(follow()) for _ in range(10)]
        await asyncio.sleep(0.3)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.wait_for(queue.add(1), 20)
    last = asyncio.create_task(follow())
    await asyncio.sleep(0.3)
    await queue.close()
    require_equal(await asyncio.wait_for(last, 20), [])
    await queue.close()
    for call in (queue.add, queue.result, queue.get, follow):
        try:
            await call("x")
            raise AssertionError("the queue is closed")
        except Unreachable:
            pass


async def close_cancelled(queue):
    await queue.add(1)
    closing = asyncio.create_task(queue.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    require(closing.cancelled(), "it was cancelled")


def test_cancelled_close(options):
    """A close() that is cancelled leaves no thread behind."""
    before = threading.active_count()
    with options.server() as server:
        queue = AsyncQueue(EXEC, url_of(server.port))
        asyncio.run(close_cancelled(queue))
        wait_until(lambda: threading.active_count() <= before, what="no thread is left")
        require(queue._closed, "it is closed")


def test_events_of_tasks(options):
    """A cancelled loop over events leaves no thread behind; close() may be called twice."""
    before = threading.active_count()
    with options.server() as server:
        asyncio.run(follow_tasks(AsyncQueue(EXEC, url_of(server.port))))
        wait_until(lambda: threading.active_count() <= before, what="no thread is left")


def test_threads_of_workers(options):
    """A worker that has ended has left no thread behind."""
    before = threading.active_count()
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        for _ in range(3):
            queue.add_many([{"payload": n} for n in range(8)])
            Worker(EXEC, lambda job: job.wait(0.02), url_of(server.port), concurrency=8,
                   burst=True).run()
        require_equal(queue.stats()["completed"], 24)
        wait_until(lambda: threading.active_count() <= before, what="no thread is left")


def test_queues_that_nobody_has(options):
    """A queue whose results were waited for, and that is not closed, leaves no thread behind."""
    def use():
        job = Queue(EXEC, url_of(server.port)).add(1)
        end_job(server, EXEC)
        require_equal(job.result(20), 1)

    before = threading.active_count()
    with options.server() as server:
        for _ in range(3):
            use()
        wait_until(lambda: gc.collect() >= 0 and threading.active_count() <= before,
                   what="no thread is left")


async def give_up(url, control):
    """How many of 200 adds, which the server does not answer, are done once their tasks are
    cancelled."""
    async with AsyncQueue(EXEC, url) as queue:
        await queue.add(0)
        # Not SIGSTOP: the other threads of the server run until its main thread has the signal.
        control.call("CLIENT", "PAUSE", 60000, "WRITE")
        try:
            adds = [asyncio.create_task(queue.add(n)) for n in range(200)]
            await asyncio.sleep(0.3)
            for task in adds:
                task.cancel()
            await asyncio.gather(*adds, return_exceptions=True)
        finally:
            control.call("CLIENT", "UNPAUSE")
        for _ in range(THREADS):  # behind what has begun
            await queue.get("x")
        return (await queue.stats())["added"]


def test_tasks_that_give_up(options):
    """What a task that was cancelled has not begun is not done; nor does it hold up others."""
    with options.server() as server, server.connect() as control:
        added = asyncio.run(give_up(url_of(server.port), control))
        require(1 < added <= 1 + THREADS, f"{added} were added")


async def add_without_a_server(port, start):
    """Many calls at once while nobody listens, then one when the server has come."""
    async with AsyncQueue(EXEC, url_of(port), patience=3) as queue, \
            AsyncQueue(EXEC, url_of(port), patience=0) as hasty:
        calls = [queue.add_many([{"payload": n}]) if n % 2 else queue.add(n)
                 for n in range(20 * THREADS)]
        began = time.monotonic()
        said = await asyncio.gather(*calls, return_exceptions=True)
        took = time.monotonic() - began
        said += await asyncio.gather(*(hasty.add(n) for n in range(2 * THREADS)),
                                     return_exceptions=True)
        start()
        await asyncio.gather(hasty.add(1), queue.add(1))
    return took, [each[0] if isinstance(each, list) else each for each in said]


def test_patience_begins_with_the_call(options):
    """What waits for a thread of an AsyncQueue loses its patience there, and is tried again by the
    next call."""
    port = steady_port()
    with options.server({"port": port}) as server:
        server.stop()
        took, said = asyncio.run(add_without_a_server(port, server.start))
        require(took < 30, f"{took:.1f} s")  # One after the other they take 45 s and more.
        require_equal({type(each) for each in said}, {Unreachable})


async def add_many(port, count):
    async with AsyncQueue(EXEC, url_of(port), patience=8) as queue:
        return await queue.add_many([{"payload": n} for n in range(count)])


def test_patience_of_each_pipeline(options):
    """A pipeline of add_many whose connection is lost is repeated, however long the call takes."""
    seen = collections.Counter()

    def lose_one(command, _reply):
        number = command[3] if command[0] == b"Q.ADD" else b""
        seen[number] += 1
        if number in (b"100", b"300", b"500", b"700"):
            time.sleep(2.1)
        return DROP if number == b"1500" and seen[number] == 1 else PASS

    with options.server() as server, Proxy(server.port, lose_one) as proxy:
        added = asyncio.run(add_many(proxy.port, 3000))
        require_equal({type(each) for each in added}, {AsyncJob})
        require_equal(seen[b"1500"], 2, "one was lost")


def test_end_of_a_program(_options):
    """A program ends while a command of its AsyncQueue, which nobody awaits, is repeated."""
    program = """
import asyncio, sluice
async def main():
    queue = sluice.AsyncQueue("exec", "redis://127.0.0.1:1", patience=1e6)
    await asyncio.wait_for(queue.add(1), 0.3)
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, timeout=60,
                          env={**os.environ, "PYTHONPATH": str(PACKAGE)}, check=False)
    require(done.returncode == 1 and b"TimeoutError" in done.stderr, done.stderr)


async def add_one(queue):
    return await asyncio.wait_for(queue.add(1), 20)


def test_async_queue_after_a_fork(options):
    """The child of a fork may use an AsyncQueue that the parent has used."""
    with options.server() as server:
        queue = AsyncQueue(EXEC, url_of(server.port))
        asyncio.run(add_one(queue))
        end_child(start_child(lambda: asyncio.run(add_one(queue))))
        asyncio.run(add_one(queue))
        asyncio.run(queue.close())


async def serve_many(url):
    """More workers than the loop has threads, whose handlers use these."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))

    async def handler(job):
        return await asyncio.to_thread(lambda: job.payload)

    workers = [Worker(f"q{n}", handler, url) for n in range(3)]
    serving = [asyncio.create_task(worker.serve()) for worker in workers]
    for n in range(3):
        async with AsyncQueue(f"q{n}", url) as queue:
            require_equal(await (await queue.add(n)).result(20), n)
    for worker in workers:
        worker.stop()
    await asyncio.wait_for(asyncio.gather(*serving), 20)


def test_many_workers_in_a_loop(options):
    """serve() takes none of the threads of its event loop."""
    with options.server() as server:
        asyncio.run(serve_many(url_of(server.port)))


async def stop_by_signal(url):
    """One of three workers ends by itself before a signal."""
    async def handler(_job):
        pass

    workers = [Worker(f"q{n}", handler, url) for n in range(3)]
    serving = [asyncio.create_task(worker.serve()) for worker in workers]
    for worker in workers:
        require(await asyncio.to_thread(worker.wait_ready, 20), "it is ready")
    workers[0].stop()
    await asyncio.wait_for(serving[0], 20)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(asyncio.gather(*serving), 20)


def test_signal_for_many_workers(options):
    """A signal stops all workers of an event loop; then its handler is what it was before."""
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    mine = signal.getsignal(signal.SIGTERM)
    try:
        with options.server() as server:
            for _ in range(2):
                asyncio.run(stop_by_signal(url_of(server.port)))
                require_equal(signal.getsignal(signal.SIGTERM), mine)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_end_of_the_journal(_options):
    """After MISCONF of a server whose journal has failed the command may have been done."""
    line = b"-MISCONF The server stops. The last commands may or may not have been kept.\r\n"
    for call in (lambda queue: queue.add(1, "mine"), lambda queue: queue.retry("mine"),
                 lambda queue: queue.add(1, "mine", ifdup="update"),
                 lambda queue: queue.cancel("mine")):
        with replying(line) as server, Queue(EXEC, url_of(server.port), patience=0.1) as queue:
            require_equal(raised(Unknown, call, queue).id, "mine")
            raised(Unknown, queue.add, 1)


def test_memory_is_full(options):
    """A full memory refuses an add; after a lost reply that does not say whether it is there."""
    with options.server() as server, Proxy(server.port) as proxy, \
            Queue(EXEC, url_of(proxy.port)) as queue, server.connect() as connection:
        queue.add(1)

        def full_after_the_first(command, reply):
            if command[0] != b"Q.ADD" or reply.is_error:
                return PASS
            connection.call("CONFIG", "SET", "maxmemory", 1)
            return DROP

        proxy.decide = full_after_the_first
        raised(Unknown, queue.add, 2)
        raised(errors.OutOfMemory, queue.add, 3)
        connection.call("CONFIG", "SET", "maxmemory", 0)
        require_equal(queue.stats()["pending"], 2)


def test_wrong_password(options):
    """A wrong password is an error at once, of a queue and of a worker."""
    with options.server({"user": "u on >secret ~* +@all"}) as server:
        url = f"redis://u:wrong@127.0.0.1:{server.port}"
        with Queue(EXEC, url) as queue:
            raised(errors.WrongPassword, queue.add, 1)
        raised(errors.WrongPassword, Worker(EXEC, print, url).run)


def test_rights_that_are_taken_away(options):
    """A worker that is refused while jobs run tells their handlers to stop, and gives the jobs
    back: no lease runs out."""
    for right in ("q.pop", "q.ack", "q.touch"):
        with options.server({"user": "u on nopass ~* +@all"}) as server, \
                Queue(EXEC, url_of(server.port)) as queue, server.connect() as connection:
            stopped = []

            def handler(job, stopped=stopped):
                try:
                    job.wait(0.5 if job.payload == "short" else 30)
                except Cancelled:
                    stopped.append(job.payload)
                    raise

            worker = Worker(EXEC, handler, f"redis://u:x@127.0.0.1:{server.port}", concurrency=3,
                            heartbeat=0.2)
            refused = ThreadPoolExecutor(1).submit(raised, errors.NoPermission, worker.run)
            jobs = [queue.add("long"), queue.add("short")]
            wait_until(lambda: queue.stats()["active"] == 2, what="both run")
            connection.call("ACL", "SETUSER", "u", f"-{right}")
            refused.result(20)
            require_equal({job.get().state for job in jobs}, {"pending"}, right)
            require_equal({job.get().crashes for job in jobs}, {0}, right)
            wait_until(lambda stopped=stopped: "long" in stopped, what="its handler stops")


def test_busy_server(options):
    """While a script keeps the server busy nothing is lost, and the worker continues after it."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
            server.connect() as connection, server.connect() as script:
        connection.call("CONFIG", "SET", "busy-reply-threshold", 50)
        worker = Worker(EXEC, lambda job: job.wait(1.2) or job.payload, url_of(server.port))
        thread = threading.Thread(target=worker.run)
        thread.start()
        job = queue.add(1)
        wait_until(lambda: job.get().state == "active", what="it runs")
        running = threading.Thread(target=script.call, args=("EVAL", "while true do end", 0))
        running.start()
        wait_until(lambda: connection.call("GET", "x").is_error, what="it is busy")
        time.sleep(1.5)  # A heartbeat and the acknowledgement are refused meanwhile.
        connection.call("SCRIPT", "KILL")
        running.join(20)
        require_equal(job.result(20), 1)
        require_equal(queue.add(2).result(20), 2)
        worker.stop()
        thread.join(20)
        require_equal(worker.counts["lost"], 0)


class Illegible(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class Raises:
    """A codec that raises the results that it is to encode."""

    def encode(self, value):
        raise value

    def decode(self, data):
        return data.decode()


def test_no_more_threads(_options):
    """A job for which no thread can be started is given back, or runs when a thread is free; where
    a result is awaited it raises. The next one is tried again."""
    full = mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("no thread"))
    codec, ended = codec_of("raw"), []
    slots = ThreadSlots(lambda job: job.payload, codec, lambda *end: ended.append(end[1]))
    jobs = [WorkerJob(Lease(b"q", id_, 1, 1, b"x", 30.0, {}), codec) for id_ in (b"a", b"b")]
    waits = Results(None, None, b"q", 1.0)
    with full:
        slots.start(jobs[0])
        require_equal(ended, [GIVEN_BACK])
        raised(RuntimeError, waits.follow, "a")
        require_equal((waits.waiting, waits._started), (0, 0))
    slots.start(jobs[1])
    wait_until(lambda: ended[1:] == [Outcome("ack", result=b"x")], what="the other runs")
    with full:
        slots.start(jobs[0])
        slots.start(jobs[1])
    wait_until(lambda: ended[2:] == 2 * [Outcome("ack", result=b"x")], what="both run in one")
    slots.close()


def test_errors_of_codecs(options):
    """What a codec raises fails the job alone, also if its text is no Unicode, or cannot be read.
    """
    results = {"surrogate": ValueError("\ud800"), "illegible": Illegible()}
    with options.server() as server, Queue(EXEC, url_of(server.port), codec="raw") as queue:
        jobs = [queue.add(name.encode()) for name in results]
        Worker(EXEC, lambda job: results[job.payload], url_of(server.port), codec=Raises(),
               burst=True).run()
        require_equal([job.get().error for job in jobs],
                      ["result: \\ud800", "result: its text cannot be read"])


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
