#!/usr/bin/python3
"""Both clients through Sentinels: who names the primary, a failover, servers that are no primary.

The Sentinels are stand-ins. A failover is a server that is killed and starts elsewhere with the
same data.
"""

import functools
import sys
import threading
import time

import redis.sentinel

from harness import libraries, require, require_equal, run, wait_until
from harness.native_queue import DISK, Native
from harness.python_client import raised
from harness.sentinels import Sentinel, replying
from harness.servers import LOOPBACK
from harness.typescript_client import SYSTEM, built

from sluice import Queue, Worker, errors  # noqa: I100

EXEC = "exec"
NAME = "main"
COUNT = 60


def url_of(*ports):
    """A Sentinel that is away comes first."""
    hosts = ",".join(f"{LOOPBACK}:{port}" for port in (1, *ports))
    return f"redis+sentinel://{hosts}/{NAME}"


def by_python(server, half):
    """Adds jobs and runs them, and calls half() after half of them."""
    with Queue(EXEC, server) as queue:
        worker = Worker(EXEC, lambda job: 2 * job.payload, server, concurrency=4)
        thread = threading.Thread(target=worker.run)
        thread.start()
        jobs = []
        for number in range(COUNT):
            if number == COUNT // 2:
                half()
            jobs.append(queue.add(number))
            time.sleep(0.02)
        require_equal([job.result(60) for job in jobs], [2 * n for n in range(COUNT)], "results")
        worker.stop()
        thread.join(30)
        require(not thread.is_alive(), "the worker ends")


def by_typescript(server, half):
    """The same, by test/system/sentinel.ts."""
    with libraries.Program([built(), SYSTEM / "sentinel.js"], 0, SLUICE_URL=server) as program:
        program.wait_for("half")
        half()
        program.wait_for(libraries.HOLDS)


def fails_over(options, work):
    with options.server(DISK) as server, Sentinel("another", server.port) as ignorant, \
            Sentinel(NAME, server.port) as sentinel:
        def move():
            server.kill()
            sentinel.primary = None
            time.sleep(0.3)
            server.start()
            sentinel.primary = server.port

        moving = threading.Thread(target=move)
        work(url_of(ignorant.port, sentinel.port), moving.start)
        moving.join()
        native = Native(server)
        require_equal(native.stats(EXEC)["added"], COUNT, "added once")
        require_equal(native.stats(EXEC)["completed"], COUNT, "completed once")
        native.close()
        require(ignorant.seen, "each Sentinel is asked in its turn")


def test_failover_python(options):
    """Python: jobs are added and run through a failover, none lost and none added twice."""
    fails_over(options, by_python)


def test_failover_typescript(options):
    """TypeScript: jobs are added and run through a failover, none lost and none added twice."""
    fails_over(options, by_typescript)


def leaves(options, work, line):
    """Work that begins at a server which says this to everything, until the Sentinel names the
    primary: the client asks it again without losing the connection."""
    with options.server() as server, replying(line) as wrong, \
            Sentinel(NAME, wrong.port) as sentinel:
        def told():
            wait_until(lambda: len(queue_commands(wrong)) > 1, what="the wrong server is asked")
            sentinel.primary = server.port

        telling = threading.Thread(target=told)
        telling.start()
        work(url_of(sentinel.port), lambda: None)
        telling.join()


def queue_commands(server):
    return [words for words in list(server.seen) if words[0].startswith(b"Q.")]


READ_ONLY = b"-READONLY You can't write against a read only replica.\r\n"
LOADING = b"-LOADING Redis is loading the dataset in memory\r\n"


def test_no_primary_python(options):
    """Python: after READONLY and LOADING the Sentinels are asked again."""
    for line in (READ_ONLY, LOADING):
        leaves(options, by_python, line)


def test_no_primary_typescript(options):
    """TypeScript: after READONLY and LOADING the Sentinels are asked again."""
    for line in (READ_ONLY, LOADING):
        leaves(options, by_typescript, line)


def test_read_only_by_address(_options):
    """Python: a server at a fixed address that says READONLY is connected to anew each time."""
    with replying(READ_ONLY) as wrong:
        opened = wrong.opened
        with Queue(EXEC, f"redis://{LOOPBACK}:{wrong.port}", patience=1.5) as queue:
            raised(errors.ReadOnly, queue.add, 1)
        require(wrong.opened > opened + 1, "connections")


def test_redis_py_sentinel(options):
    """Python: a partial of redis-py's master_for works as the URL does."""
    with options.server() as server, Sentinel(NAME, server.port) as sentinel:
        known = redis.sentinel.Sentinel([(LOOPBACK, sentinel.port)])
        by_python(functools.partial(known.master_for, NAME), lambda: None)


def test_no_sentinel_knows(_options):
    """Python: Unreachable, when no Sentinel knows the name."""
    with Sentinel("another", 1) as sentinel, \
            Queue(EXEC, url_of(sentinel.port), patience=0.1) as queue:
        sentinel.primary = None
        raised(errors.Unreachable, queue.add, 1)


def test_urls(_options):
    """Python: what is no URL of Sentinels is refused before anything is sent."""
    for bad in ("redis+sentinel://a:1", "redis+sentinel:///main", "redis+sentinel://a:b/main",
                "redis+sentinel://a/main/x"):
        require("host[:port]" in str(raised(ValueError, Queue, EXEC, bad)), bad)


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
