#!/usr/bin/python3
"""The Python client's Worker: how runs end, heartbeats, cancels, lost leases, and what is sent."""

import asyncio
import contextlib
import sys
import threading
import time

from harness import require, require_equal, run, wait_until
from harness.native_queue import Native
from harness.proxy import DROP, PASS, Proxy
from harness.python_client import raised, url_of
from harness.servers import Server

import handlers
from sluice import (AsyncQueue, Cancelled, Fatal, NotCompleted, Queue, Retry, Worker, errors,
                    tracing)

EXEC = "exec"


@contextlib.contextmanager
def working(handler, port, queues=EXEC, **options):
    """A worker in a thread; it is stopped at the end."""
    worker = Worker(queues, handler, url_of(port), **options)
    thread = threading.Thread(target=worker.run, daemon=True)
    thread.start()
    try:
        require(worker.wait_ready(20), "the worker is not ready")
        yield worker
    finally:
        worker.stop()
        thread.join(60)
        require(not thread.is_alive(), "the worker has not ended")


def outcome(queue, payload, **options):
    """(state, error) of a job that fails."""
    failed = raised(NotCompleted, queue.add(payload, **options).result, 20)
    return failed.state, failed.error


class Unreadable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def test_outcomes(options):
    """A return acknowledges; Fatal, Retry and other exceptions fail; what they say is kept."""
    def handler(job):
        if job.payload == "fatal":
            raise Fatal("never")
        if job.payload == "throw":
            raise KeyError("missing")
        if job.payload == "exit":
            raise SystemExit(1)
        if job.payload == "unreadable":
            raise Unreadable
        if job.payload == "surrogate":
            raise ValueError("\ud800")
        if job.payload == "no delay":
            raise Retry("again", delay=-1)
        if job.payload == "retry":
            if job.attempt < 3:
                raise Retry("again", delay=0.05)
            return job.attempt
        if job.payload == "unencodable":
            return {1, 2}
        if job.payload == "large":
            return "x" * 2000
        return job.payload

    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        native = Native(server)
        native.config(EXEC, "SET", "max_payload", 1000)
        with working(handler, server.port, concurrency=4) as worker:
            for value in ({"a": [1]}, None, 0, ""):
                require_equal(queue.add(value).result(20), value)
            require_equal(outcome(queue, "fatal", retry=5), ("failed", "never"))
            require_equal(outcome(queue, "throw"), ("failed", "KeyError: 'missing'"))
            require_equal(outcome(queue, "exit"), ("failed", "SystemExit: 1"))
            require_equal(outcome(queue, "unreadable"),
                          ("failed", "Unreadable: its text cannot be read"))
            require_equal(outcome(queue, "surrogate"), ("failed", "ValueError: \\ud800"))
            state, error = outcome(queue, "no delay")
            require(state == "failed" and error.startswith("ValueError: "), error)
            require_equal(queue.add("retry", retry=2, backoff=(60, 60)).result(20), 3)
            state, error = outcome(queue, "unencodable", retry=5)
            require(state == "failed" and error.startswith("result: "), error)
            state, error = outcome(queue, "large", retry=5)
            require_equal((state, error), ("failed", "result: TOOBIG limit=1000"))
            native.add(EXEC, "bad", b"{nonsense", "RETRY", 5)
            failed = raised(NotCompleted, queue.result, "bad", 20)
            require(failed.error.startswith("payload: "), failed.error)
            wait_until(lambda: worker.counts["failed"] == 11, what="11 failed runs")
        native.close()


def test_async_outcomes(options):
    """An async handler: tasks, results and exceptions; a cancel cancels the task."""
    async def handler(job):
        await asyncio.sleep(0.01)
        if job.payload == "throw":
            raise ValueError("bad")
        if job.payload == "wait":
            await asyncio.sleep(600)
        if job.payload == "late":
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                return "all the same"
        return job.payload

    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
            working(handler, server.port, concurrency=20):
        jobs = queue.add_many([{"payload": n} for n in range(100)])
        require_equal([job.result(20) for job in jobs], list(range(100)))
        require_equal(outcome(queue, "throw"), ("failed", "ValueError: bad"))
        for payload in ("wait", "late"):
            job = queue.add(payload)
            wait_until(lambda j=job: j.get().state == "active", what="it runs")
            job.cancel("enough")
            if payload == "wait":
                require_equal(raised(NotCompleted, job.result, 20).error, "enough")
            else:
                require_equal(job.result(20), "all the same")


def test_heartbeat(options):
    """A job that takes longer than its lease keeps it, and its progress and log arrive."""
    def handler(job):
        job.progress({"step": 1})
        time.sleep(4.5)
        job.progress({"step": 2})
        return job.attempt

    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
            working(handler, server.port, concurrency=4):
        jobs = [queue.add(n, lease=2) for n in range(3)]
        wait_until(lambda: jobs[0].get().progress == {"step": 1}, what="the progress")
        require_equal([job.result(20) for job in jobs], [1, 1, 1])
        require_equal(jobs[0].get().progress, {"step": 2}, "the last progress goes with the end")
        require_equal(queue.stats()["reclaimed"], 0)


def test_log(options):
    """What a handler logs arrives, also the last of it."""
    def handler(job):
        for n in range(100):
            job.log(f"line {n}\n")
        job.wait(1.5)
        job.log("the end\n")

    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
            working(handler, server.port):
        job = queue.add(1)
        job.result(20)
        native = Native(server)
        text = native.call("Q.LOG", EXEC, job.id)[1].decode()
        require_equal(text, "".join(f"line {n}\n" for n in range(100)) + "the end\n")
        native.close()


def test_large_progress(options):
    """Progress above max_payload is dropped; the job keeps its lease."""
    def handler(job):
        job.progress("x" * 2000)
        job.wait(1.5)
        job.progress("small")
        return "ended"

    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        native = Native(server)
        native.config(EXEC, "SET", "max_payload", 1000)
        with working(handler, server.port):
            job = queue.add(1)
            require_equal(job.result(20), "ended")
            require_equal(job.get().progress, "small")
        native.close()


def test_cancel(options):
    """A handler hears of a cancel within 1.5 s; giving up ends the job, returning completes it."""
    heard = {}
    took = []

    def handler(job):
        try:
            job.wait(float("inf"))
        except Cancelled as error:
            heard[job.payload] = (time.monotonic(), str(error), job.cancelled)
            if job.payload == "finish":
                return "finished"
            raise

    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
            working(handler, server.port, concurrency=2) as worker:
        for payload in ("give up", "finish"):
            job = queue.add(payload, lease=60)
            wait_until(lambda j=job: j.get().state == "active", what="it runs")
            began = time.monotonic()
            require_equal(job.cancel("enough"), "signalled")
            if payload == "finish":
                require_equal(job.result(20), "finished")
            else:
                require_equal(raised(NotCompleted, job.result, 20).state, "cancelled")
            when, text, reason = heard[payload]
            took.append(when - began)
            require_equal((text, reason), ("enough", "enough"))
        require_short(took)
        require_equal(worker.counts["lost"], 0)


def require_short(took):
    """Once is enough: what takes longer does so each time, but for pauses of the machine."""
    require(min(took) < 1.5, f"heard after {took} s")


def test_lost_lease(options):
    """A handler whose lease is lost hears it; its result is not sent, and a hook counts it."""
    seen = []
    lost = []

    def handler(job):
        try:
            job.wait(600)
        except Cancelled:
            seen.append((job.id, job.lost))
            return "too late"

    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
            working(handler, server.port, on_lost=lambda job: lost.append(job.id)) as worker:
        job = queue.add(1, "j")
        wait_until(lambda: job.get().state == "active", what="it runs")
        job.cancel(grace=0)
        wait_until(lambda: seen, what="the handler hears it")
        wait_until(lambda: lost, what="the hook")
        require_equal((seen, lost), ([("j", True)], ["j"]))
        require_equal(job.get().state, "cancelled")
        require_equal(worker.counts["completed"], 0)


def test_hooks(options):
    """Hooks and counts: started, completed with the result, failed with the exception. What a
    hook raises is logged, and nothing else."""
    calls = []

    def handler(job):
        if job.payload == "bad":
            raise ValueError("bad")
        return job.payload

    def started(job):
        calls.append(("started", job.payload))
        raise RuntimeError("a hook that fails")

    hooks = {"on_started": started,
             "on_completed": lambda job, result: calls.append(("completed", result)),
             "on_failed": lambda job, error: calls.append(("failed", str(error)))}
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
            working(handler, server.port, **hooks) as worker:
        queue.add("good").result(20)
        outcome(queue, "bad")
        wait_until(lambda: len(calls) == 4, what="the hooks")
        require_equal([call[0] for call in calls], ["started", "completed", "started", "failed"])
        require_equal([call[1] for call in calls], ["good", "good", "bad", "bad"])
        require_equal(worker.counts,
                      {"started": 2, "completed": 1, "failed": 1, "returned": 0, "lost": 0})


def test_options_of_pops(options):
    """match, lease, cap and with_ reach the pops; several queues are tried in their order."""
    order = []

    def handler(job):
        order.append((job.queue, job.payload, job.extra.get("tags"), job.extra.get("group")))

    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
            Queue("other", url_of(server.port)) as other:
        queue.add(1, keys="lang:python", tags={"a": "b"}, group="ann")
        queue.add(2, keys="lang:go")
        other.add(3, keys="lang:python")
        first = queue.add(4, keys="lang:python", pri="high")
        worker = Worker(["exec", "other"], handler, url_of(server.port), match="lang:python",
                        with_=["tags", "group"], cap=5, lease=17, burst=True)
        worker.run()
        require_equal(order, [("exec", 4, {}, ""), ("exec", 1, {"a": "b"}, "ann"),
                              ("other", 3, {}, "")])
        require_equal(queue.stats()["pending"], 1)
        require_equal(first.get().attempts, 1)


def test_results_that_are_needed(options):
    """A job gets the decoded results of those that it needed, None for one without a result."""
    for processes in (False, True):
        with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
            queue.add({"a": [1]}, "some")
            queue.add(None, "none")
            job = queue.add("needs", needs=["some", "none"])
            Worker(EXEC, handlers.needs, url_of(server.port), with_="need_results", burst=True,
                   processes=processes).run()
            require_equal(job.result(60), {"some": {"a": [1]}, "none": None})


def test_burst_and_max_jobs(options):
    """burst ends without jobs, max_jobs after that many; both leave nothing leased."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        queue.add_many([{"payload": n} for n in range(50)])
        Worker(EXEC, lambda job: None, url_of(server.port), concurrency=8, max_jobs=20).run()
        stats = queue.stats()
        require_equal((stats["completed"], stats["pending"], stats["active"]), (20, 30, 0))
        Worker(EXEC, lambda job: None, url_of(server.port), concurrency=8, burst=True).run()
        stats = queue.stats()
        require_equal((stats["completed"], stats["pending"], stats["active"]), (50, 0, 0))
        Worker(EXEC, lambda job: None, url_of(server.port), burst=True).run()


def test_runs_once(options):
    """A worker that has run cannot run again: it would take no jobs."""
    async def handler(_job):
        pass

    with options.server() as server:
        for one in (print, handler):
            worker = Worker(EXEC, one, url_of(server.port), burst=True)
            worker.run()
            raised(RuntimeError, worker.run)


def test_stopped_again_and_again(options):
    """Only the second stop() ends the grace: further ones do not put off the end."""
    release = threading.Event()
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        worker = Worker(EXEC, lambda _job: release.wait(60), url_of(server.port), grace=0.2)
        thread = threading.Thread(target=worker.run, daemon=True)
        thread.start()
        job = queue.add(1)
        wait_until(lambda: job.get().state == "active", what="it runs")

        def stop_again():
            worker.stop()
            return not thread.is_alive()

        try:
            wait_until(stop_again, 20, "the end")
        finally:
            release.set()
        require_equal(job.get().state, "pending")


def commands_of(proxied):
    """The commands of a worker, in order, as (name, words)."""
    return [(command[0].decode(), command[1:]) for command in proxied]


def test_what_is_sent(options):
    """Two connections; at most one pop is outstanding; ends are acknowledged together, with the
    next pop if none waits."""
    seen = []

    def decide(command, _reply):
        seen.append(command)
        if command[0] == b"Q.ACK":
            time.sleep(0.02)  # Other jobs end meanwhile.
        return PASS

    with options.server() as server, Proxy(server.port, decide) as proxy, \
            Queue(EXEC, url_of(server.port)) as queue:
        with working(lambda job: job.wait(0.01), proxy.port, concurrency=8):
            jobs = queue.add_many([{"payload": n} for n in range(200)])
            for job in jobs:
                job.result(20)
            with server.connect() as connection:
                clients = connection.call("CLIENT", "LIST").value.decode()
            outstanding = clients.count("cmd=q.pop")
            require_equal(proxy.connections, 2)
        require(outstanding <= 1, clients)
        sent = commands_of(seen)
        acks = [words for name, words in sent if name == "Q.ACK"]
        require(sum(b"POP" in words for words in acks) > 10, "an ACK takes the next jobs with it")
        require(all(b"BLOCK" not in words for words in acks), "without BLOCK")
        done = sum(1 + words.count(b"AND") for words in acks)
        require_equal(done, 200)
        require(len(acks) < 120, f"{len(acks)} commands acknowledge 200 jobs")
        blocking = [words for name, words in sent if name == "Q.POP" and b"BLOCK" in words]
        require(all(int(words[words.index(b"BLOCK") + 1]) <= 5000 for words in blocking), "BLOCK")
        tokens = [words[words.index(b"REQID") + 1] for _, words in sent if b"REQID" in words]
        require_equal(tokens, sorted(tokens, key=int), "tokens")


def test_each_pop_reply_dropped(options):
    """Whichever reply to a pop is lost, every job is run once, and no lease is without an owner."""
    for dropped in range(1, 13):
        pops = []

        def decide(command, _reply, pops=pops, dropped=dropped):
            if b"REQID" not in command:
                return PASS
            pops.append(command)
            return DROP if len(pops) == dropped else PASS

        ran = []
        with options.server() as server, Proxy(server.port, decide) as proxy, \
                Queue(EXEC, url_of(server.port)) as queue:
            queue.add_many([{"payload": n} for n in range(6)])
            with working(lambda job, ran=ran: ran.append(job.payload), proxy.port,
                         concurrency=2) as worker:
                wait_until(lambda: queue.stats()["completed"] == 6, what="all are done")
                job = queue.add(6)
                job.result(20)
                if len(pops) >= dropped:
                    require_equal(sorted(ran), list(range(7)), f"reply {dropped}")
            stats = queue.stats()
            require_equal((stats["active"], stats["pending"], stats["reclaimed"]), (0, 0, 0))
            require_equal(worker.counts["lost"], 0)
            # The server takes an ACK with a token that it knows for a repeat, and skips it.
            tokens = [words[words.index(b"REQID") + 1] for words in pops]
            for place, words in enumerate(pops):
                require(words[0] == b"Q.POP" or tokens[place] not in tokens[:place], "a new token")


def test_drop_while_draining(options):
    """A pop's reply that is lost while the worker stops: its jobs are given back."""
    dropping = threading.Event()
    dropped = []

    def decide(command, _reply):
        if b"REQID" in command and dropping.is_set() and len(dropped) < 2:
            dropped.append(command)
            return DROP
        return PASS

    with options.server() as server, Proxy(server.port, decide) as proxy, \
            Queue(EXEC, url_of(server.port)) as queue:
        with working(lambda job: None, proxy.port, concurrency=2) as worker:
            dropping.set()
            queue.add_many([{"payload": n} for n in range(5)])
            worker.stop()
        stats = queue.stats()
        require_equal(len(dropped), 2)
        require_equal((stats["active"], stats["reclaimed"]), (0, 0))
        require_equal(stats["pending"] + stats["completed"], 5)


def test_unknown_outcome_of_ack(options):
    """After a lost reply to an ACK it is sent again: NOJOB is done, STALELEASE is lost."""
    for retained in (0, 100):
        acks = []

        def decide(command, _reply, acks=acks):
            if command[0] != b"Q.ACK":
                return PASS
            acks.append(command)
            return DROP if len(acks) == 1 else PASS

        done = []
        with options.server() as server, Proxy(server.port, decide) as proxy, \
                Queue(EXEC, url_of(server.port)) as queue:
            native = Native(server)
            native.config(EXEC, "SET", "retain_completed", retained)
            with working(lambda job: 1, proxy.port, concurrency=3,
                         on_completed=lambda job, _result, done=done: done.append(job.id)):
                queue.add_many([{"payload": n} for n in range(3)])
                wait_until(lambda: len(done) == 3, what="three are done")
            require(len(acks) > 1, "it was repeated")
            require_equal(queue.stats()["completed"], 3)
            native.close()


def test_queue_that_goes(options):
    """When the queue is deleted under the worker its jobs are lost, and it works on."""
    started = threading.Event()

    def handler(job):
        started.set()
        if job.payload == "first":
            job.wait(600)
        return job.payload

    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
            working(handler, server.port, concurrency=2) as worker:
        queue.add("first")
        require(started.wait(20), "it runs")
        with server.connect() as connection:
            connection.call("DEL", EXEC)
        wait_until(lambda: worker.counts["lost"] == 1, what="it hears it")
        require_equal(queue.add("second").result(20), "second")


def test_serve(options):
    """serve() runs in a program's own event loop; cancelling it gives back what runs."""
    async def handler(job):
        if job.payload == "wait":
            job.progress("begun")
            await asyncio.sleep(600)
        return job.payload

    async def use(url, queue):
        worker = Worker(EXEC, handler, url, concurrency=5, grace=0.5)
        serving = asyncio.create_task(worker.serve())
        async with AsyncQueue(EXEC, url) as own:
            jobs = await asyncio.gather(*(own.add(n) for n in range(50)))
            results = await asyncio.gather(*(job.result(20) for job in jobs))
            require_equal(results, list(range(50)))
            job = await own.add("wait")
            while (await job.get()).progress != "begun":
                await asyncio.sleep(0.05)
            serving.cancel()
            try:
                await serving
                raise AssertionError("serve() was cancelled")
            except asyncio.CancelledError:
                pass
            info = await job.get()
            require_equal((info.state, info.attempts), ("pending", 0))
            require_equal(queue.stats()["reclaimed"], 0)

    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        asyncio.run(use(url_of(server.port), queue))


def test_traceparent(options):
    """A handler runs in a span below the one that `traceparent` names."""
    spans = []
    groups = []

    @contextlib.contextmanager
    def run_under(parent, name):
        spans.append((parent, name))
        yield

    before = tracing.available, tracing._run_under, tracing._propagate
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        job = queue.add(1, tags={"traceparent": "00-1-2-01"}, group="ann")
        tracing.available, tracing._run_under = True, run_under
        try:
            Worker(EXEC, lambda job: 2, url_of(server.port), max_jobs=1).run()
            require_equal(job.result(20), 2)
            queue.retry(job.id)
            Worker(EXEC, lambda job: groups.append(job.extra["group"]), url_of(server.port),
                   with_="group", max_jobs=1).run()
        finally:
            tracing.available, tracing._run_under, tracing._propagate = before
        require_equal(spans, [("00-1-2-01", EXEC)] * 2)
        require_equal(groups, ["ann"])


def test_quiet(options):
    """A quiet worker gets no jobs, says so, and finishes what it runs."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
            working(lambda job: job.wait(job.payload), server.port, concurrency=2) as worker:
        native = Native(server)
        took = []
        for _ in range(2):
            job = queue.add(2)
            wait_until(lambda j=job: j.get().state == "active", what="it runs")
            native.config(EXEC, "WORKER", worker.name, "SET", "quiet", "on")
            more = queue.add(0)
            began = time.monotonic()
            wait_until(lambda: worker.quiet, what="the worker knows")
            took.append(time.monotonic() - began)
            job.result(20)
            require_equal(more.get().state, "pending")
            native.config(EXEC, "WORKER", worker.name, "SET", "quiet", "off")
            more.result(20)
        require_short(took)
        native.close()


def test_servers_that_refuse(options):
    """A server that refuses the worker ends it with an exception; wrong options raise at once."""
    raised(ValueError, Worker, EXEC, print, "nonsense://x")
    raised(ValueError, Worker, EXEC, print, concurrency=0)
    raised(ValueError, Worker, EXEC, print, max_jobs=-1)
    raised(ValueError, Worker, EXEC, "print")
    raised(ValueError, Worker, [], print)
    with options.server({"user": "u on nopass ~other +@all"}) as server:
        url = f"redis://u:x@127.0.0.1:{server.port}"
        raised(errors.NoPermission, Worker(EXEC, print, url).run)
        url = url_of(server.port)
        with server.connect() as connection:
            connection.call("ZADD", "waiting", 1, "a")
            connection.call("Q.ADOPT", EXEC, "PENDING", "waiting", "ACTIVE", "running")
            connection.call("SET", "string", "x")
        raised(errors.Adopted, Worker(EXEC, print, url).run)
        raised(errors.WrongType, Worker("string", print, url).run)
        raised(errors.BadField, Worker("q", print, url, cap=-1).run)
    with options.server({"requirepass": "secret"}) as server:
        raised(errors.NotAuthenticated, Worker(EXEC, print, url_of(server.port)).run)
        raised(errors.NotAuthenticated, Worker(EXEC, print, url_of(server.port), match="a").run)
    with Server("redis-server") as server:
        error = raised(errors.CommandError, Worker(EXEC, print, url_of(server.port)).run)
        require("unknown command" in str(error), str(error))


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
