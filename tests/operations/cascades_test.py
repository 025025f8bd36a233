#!/usr/bin/python3
"""Ends that concern very many jobs at once (a needed job, a connection, a time) are processed in
short slices: nobody waits for them, and all jobs are processed in the end."""

import contextlib
import functools
import itertools
import os
import sys
import time
from typing import Callable, NamedTuple

import harness
from harness import servers
from harness import require, require_equal, wait_until
from harness.holds import IoThreads, Probe, fill, require_short

MANY = 100_000
NEVER_MS = "100000000"


def stat(connection, field, queue="queue"):
    reply = connection.call("Q.STATS", queue).value
    return reply[reply.index(field.encode()) + 1]


class Case(NamedTuple):
    """`begin` starts work that continues until `done` is true."""
    what: str
    prepare: Callable  # of a connection and the server
    begin: Callable    # of a connection, as `done`
    done: Callable


def measure(options, case):
    """How long it holds others."""
    with options.server() as server, Probe(server) as held, server.connect(300) as connection:
        connection.call("Q.CONFIG", "queue", "SET", "lease_ms", NEVER_MS, "crash_limit", "100")
        case.prepare(connection, server)
        held.begin()
        case.begin(connection)
        wait_until(lambda: case.done(connection), 300, case.what)
        return held.end()


def require_slices(options, case):
    require_short(lambda: measure(options, case), case.what)


def needing(connection, _server, count):
    connection.call("Q.ADD", "queue", "needed", "")
    connection.call("Q.POP", "1", "queue")
    fill(connection.call, "queue", "redis.call('Q.ADD', KEYS[1], i, '', 'NEED', 'needed')", count)
    require_equal(stat(connection, "blocked"), count, "blocked")


def what_many_need(count):
    return Case("a job that many need", functools.partial(needing, count=count),
                lambda connection: connection.call("Q.ACK", "queue", "needed", "1"),
                lambda connection: stat(connection, "pending") == count)


def long_needs():
    needs = "for n = 1, 63 do words[5 + 2 * n] = 'NEED'; words[6 + 2 * n] = long .. n end"
    script = f"""local long = string.rep('n', 500)
        if ARGV[1] == '0' then
            for n = 1, 63 do redis.call('Q.ADD', KEYS[1], long .. n, '') end
        end
        for i = 1, 100 do
            local words = {{'Q.ADD', KEYS[1], ARGV[1] .. ':' .. i, '', 'NEED', 'needed'}}
            {needs}
            redis.call(unpack(words))
        end"""

    def prepare(connection, server):
        needing(connection, server, 0)
        for batch in range(10):
            connection.call("EVAL", script, "1", "queue", str(batch))
    return Case("a job that jobs with long needs need", prepare,
                lambda connection: connection.call("Q.ACK", "queue", "needed", "1"),
                lambda connection: b"blocked_by needed" not in
                connection.call("Q.GET", "queue", "9:100").raw)


def what_many_need_fails(count):
    return Case("many that end with what they need", functools.partial(needing, count=count),
                lambda connection: connection.call("Q.NACK", "queue", "needed", "1", "FATAL"),
                lambda connection: stat(connection, "blocked") == 0)


def a_chain(count):
    def prepare(connection, _server):
        connection.call("Q.ADD", "queue", "0", "")
        fill(connection.call, "queue", "redis.call('Q.ADD', KEYS[1], i, '', 'NEED', i - 1)", count)
    return Case("a chain of needs", prepare,
                lambda connection: connection.call("Q.CANCEL", "queue", "0"),
                lambda connection: stat(connection, "blocked") == 0)


def pop_all(connection, count, *words):
    fill(connection.call, "queue", "redis.call('Q.ADD', KEYS[1], i, '')", count)
    for begin in range(0, count, 250):
        jobs = connection.call("Q.POP", "1", "queue", "COUNT", "250", *words)
        require_equal(len(jobs.value), min(250, count - begin), "jobs")


def a_lost_connection(count):
    workers = []

    def prepare(connection, server):
        connection.call("Q.CONFIG", "queue", "SET", "disconnect_grace_ms", "0")
        workers.append(server.connect())
        pop_all(workers[-1], count, "TIED")
    return Case("a connection that is cut", prepare, lambda connection: workers[-1].close(),
                lambda connection: stat(connection, "active") == 0)


def a_connection_with_many_queues(count):
    workers = []
    queues = [f"q{number}" for number in range(count)]

    def prepare(_connection, server):
        workers.append(server.connect())
        for queue in queues:
            workers[-1].pipeline([("Q.CONFIG", queue, "SET", "disconnect_grace_ms", "0"),
                                  ("Q.ADD", queue, "job", ""), ("Q.POP", "1", queue, "TIED")])
    return Case("a connection with leases in many queues", prepare,
                lambda connection: workers[-1].close(), lambda connection:
                all(stat(connection, "active", queue) == 0 for queue in queues[::1000]))


def due_in_ms(count):
    """Time enough to prepare so many."""
    return max(3000, count // 50)


def leases_that_run_out(count):
    def prepare(connection, server):
        connection.call("Q.CONFIG", "queue", "SET", "disconnect_grace_ms", due_in_ms(count))
        with server.connect() as worker:
            pop_all(worker, count, "TIED")
        time.sleep(due_in_ms(count) / 4000)
    return Case("leases that run out", prepare, lambda connection: None,
                lambda connection: stat(connection, "active") == 0)


def timers_due_at_once(count, option, state):
    def prepare(connection, _server):
        due_ms = int(time.time() * 1000) + due_in_ms(count)
        words = f"'AT', {due_ms}" if option == "DELAY" else f"'TTL', {due_in_ms(count)}"
        fill(connection.call, "queue", f"redis.call('Q.ADD', KEYS[1], i, '', {words})", count)
    return Case(f"{option} of many", prepare, lambda connection: None,
                lambda connection: stat(connection, state) == count)


def test_what_many_need(options):
    """Dependents of a completed job are released in slices, the first with the acknowledgement."""
    require_slices(options, what_many_need(MANY))


def test_long_needs(options):
    """The same where each of them needs much besides."""
    require_slices(options, long_needs())


def test_what_many_need_fails(options):
    """Dependents of a failed job end in slices."""
    require_slices(options, what_many_need_fails(MANY))


def test_a_chain(options):
    """The same of a chain, in which each ends the next."""
    require_slices(options, a_chain(MANY))


def test_a_lost_connection(options):
    """Leases that are tied to a connection which is cut."""
    require_slices(options, a_lost_connection(MANY))


def test_a_connection_with_many_queues(options):
    """The same of leases in very many queues."""
    require_slices(options, a_connection_with_many_queues(MANY // 4))


def test_leases_that_run_out(options):
    """Leases that end at one moment."""
    require_slices(options, leases_that_run_out(MANY))


def test_leases_of_one_worker(options):
    """A worker's runs end with little effort, however many it has."""
    def ending_ms(*words):
        with options.server() as server, server.connect(300) as connection:
            connection.call("Q.CONFIG", "queue", "SET", "lease_ms", NEVER_MS,
                            "disconnect_grace_ms", "0")
            with server.connect(300) as worker:
                pop_all(worker, MANY, "TIED", *words)
                threads = IoThreads(server.pid)
                before = sum(threads.ran_ms())
            wait_until(lambda: stat(connection, "active") == 0, 300, "the ends")
            return sum(threads.ran_ms()) - before

    without, of_one = ending_ms(), ending_ms("WORKER", "worker")
    require(of_one < 3 * without, f"{of_one:.0f} ms of CPU, {without:.0f} ms without a worker")


def test_timers_due_at_once(options):
    """Delays and TTLs that end at one moment."""
    for option, state in (("DELAY", "pending"), ("TTL", "expired")):
        require_slices(options, timers_due_at_once(MANY, option, state))


def own_keys(count):
    """A group whose jobs have a key each: its share and its cap change with each run."""
    def prepare(connection, _server):
        connection.call("Q.CONFIG", "queue", "SET", "fair", "on")
        connection.call("Q.CONFIG", "queue", "GROUP", "g", "SET", "max_active", "2")
        fill(connection.call, "queue",
             "redis.call('Q.ADD', KEYS[1], i, '', 'GROUP', 'g', 'KEY', 'k' .. i)", count)

    def run_some(connection):
        for _ in range(20):
            id_, lease = connection.call("Q.POP", "1", "queue", "BRIEF").value[0][1:3]
            connection.call("Q.ACK", "queue", id_, lease)
        for words in ("GROUP g SET weight 2", "GROUP h* SET weight 3", "SET fair off", "RESET"):
            connection.call("Q.CONFIG", "queue", *words.split())

    return Case("runs of a group whose jobs have a key each", prepare, run_some,
                lambda connection: stat(connection, "completed") == 20)


def test_own_keys(options):
    """A run of a group whose jobs have a key each, and a change of its configuration."""
    require_slices(options, own_keys(MANY))


def dying_at(passes):
    return {**os.environ, "SLUICE_KILL_POINT": f"inside_release:{passes}"}


def end_once(server, words):
    """The server dies of it."""
    with contextlib.suppress(OSError), server.connect() as connection:
        connection.call(*words)
    wait_until(lambda: not server.alive(), what="the kill")


def test_a_kill_amid_a_release(options):
    """The end is journaled at once; dependents not yet processed are after the restart, once."""
    dependents = 3000
    script = """for i = 1, 3000 do
        local words = {'Q.ADD', KEYS[1], 'chain' .. i, '', 'NEED',
                       i == 1 and 'needed' or 'chain' .. i - 1}
        redis.call(unpack(words)) end"""
    for fatal, passes, checkpoint in itertools.product((False, True), (1, 2, 7), (False, True)):
        what = f"{fatal}, {passes}, {checkpoint}"
        disk = {"appendonly": "yes", "appendfsync": "always", "save": ""}
        words = ("Q.NACK", "queue", "needed", "1", "FATAL") if fatal else \
            ("Q.ACK", "queue", "needed", "1")
        with options.server(disk, environment=dying_at(passes)) as server:
            with server.connect() as connection:
                connection.call("Q.CONFIG", "queue", "SET", "lease_ms", NEVER_MS,
                                "retain_completed", "10000")
                needing(connection, server, dependents)
                if fatal:
                    connection.call("EVAL", script, "1", "queue")
                if checkpoint:
                    require_equal(connection.call("SAVE").raw, b"+OK\r\n")
                end_once(server, words)
            # Once more, at another slice of the same release. It may have died before the end was
            # in the journal: then no reply has come, and who has sent it says it again.
            server.environment = dying_at(3)
            with contextlib.suppress(servers.ServerError):
                server.start()
                end_once(server, words)
            server.environment = None
            server.start()
            with server.connect() as connection:
                connection.call(*words)
                wait_until(lambda: stat(connection, "blocked") == 0, what="the rest")
                # As many as there are, each once.
                kind = "cancelled" if fatal else "ready"
                told = [event[3] for event in all_events(connection, kind)]
                count = 2 * dependents if fatal else dependents
                require_equal((len(told), len(set(told))), (count, count), what)
                state = "cancelled" if fatal else "pending"
                require_equal(stat(connection, state), count, what)
                digest = connection.call("DEBUG", "DIGEST").raw
            server.kill()
            server.start()
            with server.connect() as connection:
                require_equal(connection.call("DEBUG", "DIGEST").raw, digest, what)


def test_a_kill_amid_a_release_of_followers(options):
    """After the end of a failed job those that come after it are ready, each once, and those that
    need it cancelled; a job of its id that came meanwhile changes nothing."""
    count = 1500
    disk = {"appendonly": "yes", "appendfsync": "always", "save": ""}
    words = ("Q.NACK", "queue", "needed", "1", "FATAL")
    for passes, checkpoint in itertools.product((1, 4, 8), (False, True)):
        what = f"{passes}, {checkpoint}"
        with options.server(disk, environment=dying_at(passes)) as server:
            with server.connect() as connection:
                connection.call("Q.CONFIG", "queue", "SET", "lease_ms", NEVER_MS,
                                "retain_completed", "10000")
                needing(connection, server, count)
                fill(connection.call, "queue",
                     "redis.call('Q.ADD', KEYS[1], 'after ' .. i, '', 'AFTER', 'needed')", count)
                if checkpoint:
                    require_equal(connection.call("SAVE").raw, b"+OK\r\n")
                end_once(server, words)
            server.environment = None
            server.start()
            with server.connect() as connection:
                # It may have died before the end was in the journal.
                connection.call(*words)
                connection.call("Q.RETRY", "queue", "needed")
                connection.call("Q.ADD", "queue", "later", "", "AFTER", "needed")
                wait_until(lambda: stat(connection, "blocked") == 1, what="the rest")
                for kind, prefix in ("ready", b"after"), ("cancelled", b""):
                    told = [event[3] for event in all_events(connection, kind)]
                    require_equal((len(told), len(set(told))), (count, count), f"{what}: {kind}")
                    require_equal([job for job in told if not job.startswith(prefix)], [], what)
                require_equal(stat(connection, "pending"), count + 1, what)
                digest = connection.call("DEBUG", "DIGEST").raw
            server.kill()
            server.start()
            with server.connect() as connection:
                require_equal(connection.call("DEBUG", "DIGEST").raw, digest, what)


def all_events(connection, kind):
    after, events = "-", []
    while True:
        page = connection.call("Q.EVENTS", "queue", after, "COUNT", "1000", "TYPE", kind).value
        if not page:
            return events
        events += page
        after = str(page[-1][0])


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
