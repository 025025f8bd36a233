#!/usr/bin/python3
"""Heartbeats of the Python client's worker: what they cost a lease, and what they carry; and
children that do not read, stop or have gone; a loop that is interrupted."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

from harness import require, require_equal, run, wait_until
from harness.native_queue import Native
from harness.proxy import PASS, Proxy
from harness.python_client import PACKAGE, url_of

import handlers
from sluice import Queue, Worker, WorkerJob
from sluice.codec import codec_of
from sluice.outcome import GIVEN_BACK, Outcome
from sluice.plan import Lease
from sluice.processes import Child, ProcessSlots

EXEC = "exec"


def test_reply_that_hangs(options):
    """A heartbeat whose reply does not come is given up and repeated before the lease runs out."""
    held, touches = [], []

    def hold_one(command, _reply):
        if command[0] == b"Q.TOUCH":
            touches.append(time.monotonic())
            if not held:
                held.append(command)
                time.sleep(4.5)
        return PASS

    def handler(job):
        until = time.monotonic() + 5
        while time.monotonic() < until:
            job.wait(0.05)
        return 1

    with options.server() as server, Proxy(server.port, hold_one) as proxy, \
            Queue(EXEC, url_of(server.port)) as queue:
        job = queue.add(1)
        worker = Worker(EXEC, handler, url_of(proxy.port), lease=3, burst=True)
        worker.run()
        require_equal((worker.counts["lost"], worker.counts["completed"]), (0, 1))
        require_equal((job.result(20), job.get().attempts), (1, 1))
        require(len(touches) > 2, f"{len(touches)} heartbeats")


def talkative(job):
    """Logs faster than heartbeats carry."""
    for n in range(job.payload):
        job.log(f"{n:09}\n")
    return job.payload


def test_long_logs(options):
    """The whole log of a job is there when it ends, however much it was at once, in threads and in
    processes; and what comes before its end does not hold up that of others."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        native = Native(server)
        native.config(EXEC, "SET", "log_bytes", 1 << 20)
        for processes in (False, True):
            jobs = [queue.add(lines) for lines in (100_000, 4000, 0)]
            Worker(EXEC, talkative, url_of(server.port), concurrency=3, processes=processes,
                   burst=True).run()
            for job in jobs:
                lines = job.result(20)
                reply = native.call("Q.LOG", EXEC, job.id, "COUNT", 1 << 20)
                require_equal(reply[1], b"".join(b"%09d\n" % n for n in range(lines)))
                require_equal(reply[3], 1, "it has ended")
        native.close()


INTERRUPTED = """
import asyncio, os, signal, sys, threading
from sluice import Worker
async def handler(job):
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    await asyncio.sleep(600)
try:
    Worker("exec", handler, sys.argv[1], signals=False).run()
except KeyboardInterrupt:
    print("interrupted")
"""


def test_interrupted_loop(options):
    """What runs when a program's own signal ends the event loop is given back, and has not failed.
    """
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        job = queue.add(1, retry=0)
        done = subprocess.run([sys.executable, "-c", INTERRUPTED, url_of(server.port)],
                              capture_output=True, text=True, timeout=60, check=False,
                              env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        require_equal((done.returncode, done.stdout), (0, "interrupted\n"), done.stderr)
        require_equal(queue.get(job.id).state, "pending")


@contextlib.contextmanager
def deaf_child():
    """A child that does not read, as one that is still starting, and the job that it is sent; and
    the future of the run."""
    codec = codec_of("raw")
    lease = Lease(b"q", b"x", 1, 1, bytes(16 << 20), 30.0, {})  # more than a pipe holds
    job = WorkerJob(lease, codec)
    child = Child(handlers.wait, codec)
    try:
        child.wait_begun(lambda: False)
        os.kill(child._process.pid, signal.SIGSTOP)
        with ThreadPoolExecutor(1) as thread:
            run_ = thread.submit(child.run, job, 60)
            try:
                wait_until(lambda: child._job is job, what="it is sent")
                yield child, job, run_
            finally:
                child.close()  # It may be stopped still: else the thread would not end.
    finally:
        child.close()


def test_child_that_does_not_read(_options):
    """A child that does not read its job holds up nobody who stops that; the handler hears it
    later."""
    with deaf_child() as (child, job, run_):
        job._stop("enough")
        with ThreadPoolExecutor(1) as thread:
            try:
                thread.submit(child.stop, job, 60).result(20)
                require(not run_.done(), "it is not killed")
            finally:
                os.kill(child._process.pid, signal.SIGCONT)
        require_equal(run_.result(60), GIVEN_BACK)
        require(child.alive, "it has ended its job by itself")


def test_child_that_never_reads(_options):
    """A child that does not read its job is killed after grace, if that is to stop."""
    with deaf_child() as (child, job, run_):
        job._stop("enough")
        child.stop(job, 0.3)
        require_equal(run_.result(20), GIVEN_BACK)
        require(not child.alive, "it is killed")


def test_child_that_stops_amid_its_words(_options):
    """A child that stops while it says something is killed after grace, if its job is to stop."""
    codec = codec_of("raw")
    job = WorkerJob(Lease(b"q", b"x", 1, 1, b"", 30.0, {}), codec)
    child = Child(handlers.stop_amid, codec)
    try:
        child.wait_begun(lambda: False)
        with ThreadPoolExecutor(1) as thread:
            run_ = thread.submit(child.run, job, 60)
            try:
                status = pathlib.Path(f"/proc/{child._process.pid}/status")
                wait_until(lambda: "State:\tT" in status.read_text(), what="it is stopped")
                job._stop("enough")
                child.stop(job, 0.3)
                require_equal(run_.result(20), GIVEN_BACK)
            finally:
                child.close()
    finally:
        child.close()


def test_children_of_a_program_that_hears_of_no_end(_options):
    """A child that has exited is replaced, also in a program that ignores SIGCHLD."""
    codec, ended = codec_of("json"), []
    jobs = [WorkerJob(Lease(b"q", b"x", 1, 1, codec.encode(payload), 30.0, {}), codec)
            for payload in ("exit", "next")]
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    slots = ProcessSlots(handlers.crash, codec, lambda *end: ended.append(end[1].kind), 60,
                         lambda: False)
    try:
        for job in jobs:
            job._decode()
            slots.start(job)
            wait_until(lambda count=len(ended) + 1: len(ended) == count, 60, what="the end")
        require_equal(ended, ["FAIL", "ack"])
    finally:
        slots.close()
        signal.signal(signal.SIGCHLD, before)


def test_child_without_memory(_options):
    """A job that cannot be sent to its child, or whose result cannot be read, fails alone: the next
    one gets another child."""
    codec, ended = codec_of("raw"), []
    jobs = [WorkerJob(Lease(b"q", id_, 1, 1, b"x", 30.0, {}), codec) for id_ in (b"a", b"b")]
    slots = ProcessSlots(handlers.echo, codec, lambda *end: ended.append(end[1]), 60, lambda: False)
    try:
        with mock.patch.object(Child, "run", side_effect=MemoryError("full")):
            slots.start(jobs[0])
            wait_until(lambda: ended == [Outcome("FAIL", error="MemoryError: full")], what="it")
        slots.start(jobs[1])
        wait_until(lambda: ended[1:] == [Outcome("ack", result=b"x")], 60, what="the next one")
    finally:
        slots.close()


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
