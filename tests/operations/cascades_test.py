#!/usr/bin/python3
"""Ends that concern very many jobs at once (what they need ends, their connection goes, their time
comes) go on in short slices: nobody waits for them, and all are told in the end."""

import contextlib
import itertools
import os
import pathlib
import sys
import time

import harness
import servers
from harness import ConnectionClosed, require, require_equal, wait_until
from large_values_test import fill

MANY = 100_000
LONGEST_HOLD_MS = 10
NEVER_MS = "100000000"


def stat(connection, field):
    reply = connection.call("Q.STATS", "queue").value
    return reply[reply.index(field.encode()) + 1]


class Watch:
    """What the I/O thread has run from one PING to the next: what others wait for at most."""

    def __init__(self, server):
        self.connection = server.connect()
        tasks = pathlib.Path(f"/proc/{server.process.pid}/task").iterdir()
        self.files = [os.open(task / "schedstat", os.O_RDONLY) for task in tasks
                      if (task / "comm").read_text().startswith("sluice-io")]
        self.ran_ms = []
        self.last_ms = self._run_time_ms()

    def _run_time_ms(self):
        return sum(int(os.pread(file, 99, 0).split()[0]) for file in self.files) / 1e6

    def look(self):
        """Ends what the last look has begun."""
        now_ms = self._run_time_ms()
        self.ran_ms.append(now_ms - self.last_ms)
        self.last_ms = now_ms

    def until(self, condition, what):
        deadline = time.monotonic() + 60
        while not condition():
            require(time.monotonic() < deadline, what)
            self.look()
            for _ in range(20):
                self.connection.call("PING")
                self.look()

    def close(self):
        self.connection.close()
        for file in self.files:
            os.close(file)


def measure(options, prepare, begin, condition, what):
    """Others may have the machine: the shortest of three measurements is what the server does."""
    longest = []
    while len(longest) < 3:
        with options.server() as server, server.connect() as connection:
            connection.call("Q.CONFIG", "queue", "SET", "lease_ms", NEVER_MS, "crash_limit", "100")
            prepare(connection, server)
            watch = Watch(server)
            begin(connection)
            watch.look()
            watch.until(lambda: condition(connection), what)
            watch.close()
            longest.append(max(watch.ran_ms))
        if longest[-1] <= LONGEST_HOLD_MS:
            return
    raise AssertionError(f"{what}: {longest} ms")


def needing(connection, _server, count=MANY):
    connection.call("Q.ADD", "queue", "needed", "")
    connection.call("Q.POP", "1", "queue")
    fill(connection.call, "queue", "redis.call('Q.ADD', KEYS[1], i, '', 'NEED', 'needed')", count)
    require_equal(stat(connection, "blocked"), count, "blocked")


def test_what_many_need(options):
    """Who needs a job that completes goes on in slices, the first with the acknowledgement."""
    measure(options, needing,
            lambda connection: connection.call("Q.ACK", "queue", "needed", "1"),
            lambda connection: stat(connection, "pending") == MANY, "a job that many need")


def test_what_many_need_fails(options):
    """Who needs a job that fails ends in slices."""
    measure(options, needing,
            lambda connection: connection.call("Q.NACK", "queue", "needed", "1", "FATAL"),
            lambda connection: stat(connection, "blocked") == 0,
            "many that end with what they need")


def test_a_chain(options):
    """The same of a chain, in which each ends the next."""
    def prepare(connection, _server):
        connection.call("Q.ADD", "queue", "0", "")
        fill(connection.call, "queue", "redis.call('Q.ADD', KEYS[1], i, '', 'NEED', i - 1)", MANY)
    measure(options, prepare, lambda connection: connection.call("Q.CANCEL", "queue", "0"),
            lambda connection: stat(connection, "blocked") == 0, "a chain of needs")


def pop_all(connection, *words):
    fill(connection.call, "queue", "redis.call('Q.ADD', KEYS[1], i, '')", MANY)
    for _ in range(0, MANY, 250):
        jobs = connection.call("Q.POP", "1", "queue", "COUNT", "250", *words)
        require_equal(len(jobs.value), 250, "jobs")


def test_a_lost_connection(options):
    """Leases that are tied to a connection which is cut."""
    workers = []

    def prepare(connection, server):
        connection.call("Q.CONFIG", "queue", "SET", "disconnect_grace_ms", "0")
        workers.append(server.connect())
        pop_all(workers[-1], "TIED")
    measure(options, prepare, lambda connection: workers[-1].close(),
            lambda connection: stat(connection, "active") == 0, "a connection that is cut")


def test_leases_that_run_out(options):
    """Leases that end at one moment."""
    workers = []

    def prepare(connection, server):
        connection.call("Q.CONFIG", "queue", "SET", "disconnect_grace_ms", "2000")
        workers.append(server.connect())
        pop_all(workers[-1], "TIED")
        workers[-1].close()
        time.sleep(0.5)
    measure(options, prepare, lambda connection: None,
            lambda connection: stat(connection, "active") == 0, "leases that run out")


def test_timers_due_at_once(options):
    """Delays and TTLs that end at one moment."""
    for option, state in (("DELAY", "pending"), ("TTL", "expired")):
        def prepare(connection, _server, option=option):
            due_ms = int(time.time() * 1000) + 3000
            words = f"'AT', {due_ms}" if option == "DELAY" else "'TTL', 3000"
            fill(connection.call, "queue", f"redis.call('Q.ADD', KEYS[1], i, '', {words})", MANY)
        measure(options, prepare, lambda connection: None,
                lambda connection, state=state: stat(connection, state) == MANY,
                f"{option} of many")


def dying_at(passes):
    return {**os.environ, "SLUICE_KILL_POINT": f"inside_release:{passes}"}


def end_once(server, words):
    """The server dies of it."""
    with contextlib.suppress(OSError, ConnectionClosed), server.connect() as connection:
        connection.call(*words)
    wait_until(lambda: not server.alive(), what="the kill")


def test_a_kill_amid_a_release(options):
    """The end is journaled at once; whoever has not had its turn has it after the restart, once."""
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
