"""Shared by the scenes of bench/scale: a server with a second client beside it, and the rows that
are measured, judged and printed."""

import contextlib
import dataclasses
import http.client
import sys
import time
import traceback
from typing import Callable

from harness import Options, info, require, rss_bytes, wait_until
from holds import LONGEST_HOLD_MS, TRIES, Probe, best_of, fill
from resp import ConnectionClosed, ReplyTimeout
from servers import LOOPBACK, ServerError

JOURNAL = {"appendonly": "yes", "appendfsync": "everysec", "save": "", "http-port": "auto"}
PATIENCE_S = 600
PROGRESS_S = 5
GIVEN_BACK_S = 30


@dataclasses.dataclass
class Row:
    name: str
    title: str
    limit: float = LONGEST_HOLD_MS
    unit: str = "ms"


@dataclasses.dataclass
class Scene:
    """Rows that are measured in sequence on data prepared once."""
    run: Callable  # of a Bench
    rows: list


class Bench:
    def __init__(self, arguments, chosen):
        self.options = Options(arguments.server, 1)
        self.jobs, self.groups, self.queues = arguments.jobs, arguments.groups, arguments.queues
        self.string_bytes = arguments.string << 20
        self.chosen = chosen
        self.left = {}
        self.passed = 0

    def run(self, scene):
        """Rows that fail or are not reached count as missed."""
        self.left = {row.name: row for row in scene.rows if row.name in self.chosen}
        if not self.left:
            return
        try:
            scene.run(self)
        except (AssertionError, OSError, ConnectionClosed, ReplyTimeout, ServerError):
            traceback.print_exc()
        for row in self.left.values():
            print(f"FAILED {row.name:18} {row.title}", flush=True)

    def wants(self, *beginnings):
        return any(name.startswith(beginnings) for name in self.left)

    def hold(self, name, measure, tries=TRIES):
        """`measure` returns a Hold."""
        if name in self.left:
            hold = best_of(measure, self.left[name].limit, tries)
            self.figure(name, hold.ran_ms, hold)

    def figure(self, name, value, hold=None, note=""):
        """`note`: an explanation for a miss."""
        if name not in self.left:
            return
        row = self.left.pop(name)
        ok = value <= row.limit
        self.passed += ok
        beside = f"{hold.wall_s:8.2f} s  PING {hold.waited_ms:7.1f} ms" if hold else ""
        print(f"{'ok' if ok else 'MISSED':6} {name:18} {row.title:58.58} {value:8.1f} {row.unit:6} "
              f"<= {row.limit:<5g} {beside}".rstrip(), flush=True)
        if note and not ok:
            print(f"       {note}", flush=True)


class Place:
    """A server, a client that sends PING, and a connection. A context manager."""

    def __init__(self, bench, directives=None):
        self.bench = bench
        self.server = bench.options.server(directives or JOURNAL, start_timeout_s=PATIENCE_S)
        self.probe = self.connection = None

    def __enter__(self):
        try:
            self.server.start()
            self._attach()
        except BaseException:
            self.server.close()
            raise
        return self

    def __exit__(self, failure, *_):
        if failure is not None:
            print(self.server.log_tail(), file=sys.stderr)
        self._detach()
        self.server.kill()  # the data is not needed any more, so without a last checkpoint
        self.server.close()

    def _attach(self):
        self.probe = Probe(self.server)
        self.connection = self.server.connect(PATIENCE_S)

    def _detach(self):
        if self.probe is not None:
            self.probe.__exit__()
            self.probe = None
            self.connection.close()

    def restart(self):
        """Seconds from the start after a SIGKILL until the ready file exists."""
        self._detach()
        self.server.kill()
        began = time.monotonic()
        self.server.start()
        took_s = time.monotonic() - began
        self._attach()
        return took_s

    def call(self, *words):
        reply = self.connection.call(*words)
        require(not reply.is_error, f"{words}: {reply.raw}")
        return reply.value

    def info(self, field):
        """"0" if it is missing: a server without a journal lacks the journal's fields."""
        return info(self.connection).get(field, "0")

    def until(self, condition, what):
        wait_until(condition, PATIENCE_S, what)

    def fill(self, key, command, count, what):
        """Prints the progress."""
        began = told = time.monotonic()

        def progress(done):
            nonlocal told
            if time.monotonic() - told > PROGRESS_S:
                told = time.monotonic()
                print(f"       {done:,} of {count:,} {what}, {told - began:.0f} s",
                      file=sys.stderr, flush=True)
        fill(self.connection.call, key, command, count, progress)

    def settle(self):
        """Waits until the journal is written, no checkpoint runs, and nothing is left to free."""
        self.until(lambda: self.info("sluice_journal_unwritten_bytes") == "0", "the journal")
        self.until(lambda: self.info("rdb_bgsave_in_progress") == "0", "the checkpoint")
        self.until(lambda: self.info("lazyfree_pending_objects") == "0", "the freeing")

    def hold(self, action, until=None):
        """Measures how long the action, and what follows until the condition holds blocks others"""
        self.settle()
        self.probe.begin()
        try:
            action()
            if until:
                self.until(until, "the end of it")
        finally:
            hold = self.probe.end()
        return hold

    def hold_of(self, *commands, until=None):
        def action():
            for command in commands:
                self.call(*command.split())
        return lambda: self.hold(action, until)

    @contextlib.contextmanager
    def getter(self):
        """Returns a function that GETs a path over one HTTP connection."""
        with open(self.server.ready_path, encoding="utf-8") as ready:
            port = int(dict(line.split() for line in ready)["http-port"])
        asker = http.client.HTTPConnection(LOOPBACK, port, timeout=PATIENCE_S)

        def get(path):
            asker.request("GET", path)
            answer = asker.getresponse()
            body = answer.read()
            require(answer.status == 200, f"{path}: {answer.status} {body}")
            return body
        yield get
        asker.close()

    def given_back(self, name):
        """Seconds until the freed memory has left the process, which gets no requests in the
        meantime."""
        if not self.bench.wants(name):
            return
        began = time.monotonic()
        bound = 1.5 * int(self.info("used_memory")) + (64 << 20)
        while rss_bytes(self.server.pid) > bound and time.monotonic() < began + 2 * GIVEN_BACK_S:
            time.sleep(0.1)
        took_s = time.monotonic() - began
        now = info(self.connection, "memory")
        self.bench.figure(name, took_s, note=f"{bound / 1e6:.0f} MB would do; " + ", ".join(
            f"{field} {int(now[field]) / 1e6:.0f} MB" for field in (
                "used_memory", "allocator_active", "allocator_resident", "used_memory_rss")))
