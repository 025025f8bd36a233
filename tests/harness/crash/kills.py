"""Rounds of kills on one data directory: the load, the death of the server, the look behind it."""

import argparse
import os
import pathlib
import random
import signal
import threading
import time

from harness import run_seeded
from harness.crash.client import SHARED_COUNTER, CrashClient, Link, Violation
from harness.servers import DEFAULT_SLUICE, Server, ServerError

CONNECTIONS = 6
SIGTERM_LIMIT_S = 5.0
READY_LIMIT_S = 10.0
POINT_LIMIT_S = 2.0   # a point that is not passed by then is given up

# Where the server may die by itself, and up to which pass of the point. One round in so many is
# about one of them, each in its turn.
KILL_POINTS = {
    "before_journal_write": 40, "after_journal_write": 40, "before_journal_sync": 1,
    "after_journal_sync": 40, "after_acknowledgement": 40, "inside_expiry": 3,
    "inside_checkpoint": 1, "before_checkpoint_commit": 1,
    "after_checkpoint_commit": 1, "before_trim": 1, "after_trim": 1}
ROUNDS_A_POINT = 2


def points_of(kind, mode):
    """The points that a server comes to, and how often they may be passed before it dies."""
    if kind == "redis":
        return {}
    points = dict(KILL_POINTS)
    if mode == "always":
        del points["before_journal_sync"]   # one step with the write
    else:
        points["after_journal_sync"] = 1    # by the clock, or for a checkpoint
    if mode == "no":
        del points["before_journal_sync"]
    return points


def directives_for(kind, mode):
    directives = {"appendonly": "yes", "appendfsync": mode, "save": ""}
    if kind == "redis":
        directives["auto-aof-rewrite-min-size"] = "1mb"
    else:
        directives["checkpoint-log-bytes"] = "1mb"
    return directives


class KillRun:
    """The rounds of one mode on one data directory. What clients do, and what must be true after a
    restart, another test may say instead (queue_kill_test.py)."""

    def __init__(self, program, mode, seed):
        self.rng = random.Random(f"{seed}/{mode}")
        self.mode = mode
        self.server = Server(program)
        self.server.directives = directives_for(self.server.kind, mode)
        self.clients = self.make_clients(f"{seed}/{mode}")
        self.counts = dict.fromkeys(("kills", "terminated", "killed in recovery", "in flight kept",
                                     "checkpoints"), 0)
        self.points = points_of(self.server.kind, mode)
        self.met = dict.fromkeys(self.points, 0)
        self.rounds = 0
        self.longest_start_s = 0.0

    def make_clients(self, seed):
        return [CrashClient(index, seed) for index in range(CONNECTIONS)]

    def prepare(self):
        """Once, before the first round."""

    def run(self, kills):
        try:
            self._start()
            self.prepare()
            while self.counts["kills"] < kills:
                self._round()
        except BaseException:
            print(f"server's log:\n{self.server.log_tail(30)}", flush=True)
            raise
        finally:
            self.server.close()
        units = sum(client.acknowledged for client in self.clients)
        counts = ", ".join(f"{name} {count}" for name, count in self.counts.items())
        points = ", ".join(f"{point} {met}" for point, met in self.met.items())
        return (f"{counts}, units {units}, longest start {self.longest_start_s:.2f} s; "
                f"died at: {points}")

    def _start(self):
        if self.rng.random() < 0.1 and self.counts["kills"] > 0:
            # Dies somewhere in its recovery.
            self.server._spawn()
            time.sleep(self.rng.uniform(0.0, 0.08))
            self.server.kill()
            self.counts["killed in recovery"] += 1
        started = time.monotonic()
        self.server.start()
        took_s = time.monotonic() - started
        self.longest_start_s = max(self.longest_start_s, took_s)
        if took_s > READY_LIMIT_S:
            raise Violation(f"the start took {took_s:.1f} s")

    def _round(self):
        self.rounds += 1
        point = None
        if self.points and self.rounds % ROUNDS_A_POINT == 0:
            point = list(self.points)[self.rounds // ROUNDS_A_POINT % len(self.points)]
            self._start_with(point)
        stop = threading.Event()
        for client in self.clients:
            client.start(self.server.port, stop)
        if point is None:
            self._load_and_end(stop)
        else:
            self._load_until(stop, point)
        stop.set()
        for client in self.clients:
            client.join()
        self._start()
        self.verify()

    def _load_and_end(self, stop):
        ends = time.monotonic() + self.rng.choice((0.005, 0.03, 0.1, 0.1, 0.2)) * \
            self.rng.uniform(0.2, 1.8)
        if self.rng.random() < 0.5:
            stop.wait(max(0.0, (ends - time.monotonic()) * self.rng.random()))
            self._checkpoint()
        stop.wait(max(0.0, ends - time.monotonic()))
        if not stop.is_set():
            self._end_server()

    def _start_with(self, point):
        """A process that dies at this point, mostly under the load."""
        self.server.kill()
        passes = self.rng.randrange(self.points[point]) + 1
        self.server.environment = {**os.environ, "SLUICE_KILL_POINT": f"{point}:{passes}"}
        try:
            self.server.start()
        except ServerError as error:
            # Dead already: what it found made it begin a checkpoint, or delete what has expired.
            if error.exit_code != -signal.SIGKILL:
                raise
        finally:
            self.server.environment = None

    def _load_until(self, stop, point):
        ends = time.monotonic() + POINT_LIMIT_S
        stop.wait(self.rng.uniform(0.0, 0.1))
        while time.monotonic() < ends and self.server.alive() and not stop.is_set():
            if "checkpoint" in point or "trim" in point:
                self._checkpoint()
            stop.wait(0.02)
        if stop.is_set():
            return
        self.met[point] += not self.server.alive()
        self.server.kill()
        self.counts["kills"] += 1

    def _checkpoint(self):
        try:
            link = Link(self.server.port)
            # While one runs already, both servers answer an error; that is fine here.
            link.ask(["BGSAVE"])
            link.close()
            self.counts["checkpoints"] += 1
        except OSError:
            pass

    def _end_server(self):
        if self.rng.random() < 0.05:
            started = time.monotonic()
            code = self.server.stop(timeout_s=SIGTERM_LIMIT_S)
            if code != 0:
                raise Violation(f"after SIGTERM: exit code {code} in "
                                f"{time.monotonic() - started:.1f} s")
            self.counts["terminated"] += 1
        else:
            self.server.kill()
            self.counts["kills"] += 1

    def verify(self):
        port = self.server.port
        for client in self.clients:
            self.counts["in flight kept"] += client.verify(port)
        link = Link(port)
        try:
            for database in {client.database for client in self.clients}:
                self._verify_database(link, database)
        finally:
            link.close()

    def _verify_database(self, link, database):
        """The shared counter, and that there is no key that nobody wrote."""
        own = [client for client in self.clients if client.database == database]
        _, counter, keys = link.ask(["SELECT", database],
                                    ["GET", SHARED_COUNTER + b":%d" % database], ["KEYS", "*"])
        count = int(counter or 0)
        seen = max(client.counter_seen for client in own)
        sent = sum(client.counter_sent for client in own)
        if not seen <= count <= sent:
            raise Violation(f"the shared counter is {count}; {seen} was read, {sent} were sent")
        prefixes = tuple(client.prefix.encode() for client in own) + (SHARED_COUNTER,)
        strays = [key for key in keys if not key.startswith(prefixes)]
        if strays:
            raise Violation(f"keys that nobody wrote in database {database}: {strays[:5]}")


def main(run_class, description, kills):
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--server", default=str(DEFAULT_SLUICE))
    parser.add_argument("--kills", type=int, default=kills, help="of all modes together")
    parser.add_argument("--mode", choices=["always", "everysec", "no"], action="append")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2 ** 32))
    arguments = parser.parse_args()
    program, seed = arguments.server, arguments.seed
    is_redis = "redis" in pathlib.Path(program).name
    modes = arguments.mode or (["always"] if is_redis else ["always", "everysec", "no"])
    # `always` is the default that users run, so it gets half of the kills.
    shares = [1.0] if len(modes) == 1 else [0.5] + [0.5 / (len(modes) - 1)] * (len(modes) - 1)
    print(f"seed {seed}", flush=True)
    runs = []
    for mode, share in zip(modes, shares):
        count = max(1, round(arguments.kills * share))
        runs.append((f"appendfsync {mode}, {count} kills",
                     lambda mode=mode, count=count: run_class(program, mode, seed).run(count)))
    return run_seeded(runs, seed)
