#!/usr/bin/python3
"""The grading queue on redis-py: Redlock, MULTI, lists, sets and reservations.

    tests/seeds/grading_queue_test.py                      3,000 operations, then 20 s with kills
    tests/seeds/grading_queue_test.py --server redis-server

Web servers add, upgrade, delay, rename and delete jobs, workers take and re-enqueue them, all under
one Redlock. So the history is a sequence, and every reply and the whole state are compared with a
model (grading_model.py). In the second part the server is killed with SIGKILL about once a second:
the state must be the model before or after the one request that was under way.
"""

import argparse
import random
import sys
import threading
import time

from harness import run_seeded
from harness.seeds import LOST, connect, durable_server, grading_model as grading
from harness.servers import DEFAULT_SLUICE

LOCK = "lock.grading"
LOCK_MS = 30000
WEB_SERVERS, WORKERS = 4, 2
COLLATIONS = [f"{kind}.{number}" for kind in ("user", "team") for number in range(6)]

RELEASE_SCRIPT = """if redis.call("get", KEYS[1]) == ARGV[1] then
  return redis.call("del", KEYS[1])
else
  return 0
end
"""


class Redlock:
    """The lock as the redlock libraries take it on one server."""

    def __init__(self, client, rng, stop):
        self._client = client
        self._rng = rng
        self._stop = stop
        self._token = None

    def __enter__(self):
        token = "%032x" % self._rng.getrandbits(128)
        while not self._client.set(LOCK, token, nx=True, px=LOCK_MS):
            if self._stop.is_set():
                raise Stopped
            time.sleep(self._rng.uniform(0.0005, 0.002))
        assert 0 < self._client.pttl(LOCK) <= LOCK_MS
        self._token = token
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            return
        assert self._client.eval(RELEASE_SCRIPT, 1, LOCK, "not the token") == 0
        assert self._client.eval(RELEASE_SCRIPT, 1, LOCK, self._token) == 1


class Stopped(Exception):
    """The run is over while a thread waits for the lock."""


class Queue:
    """The server, the model, and the threads that drive both."""

    def __init__(self, client, seed, may_die):
        self.client = client
        self.seed = seed
        self.may_die = may_die
        self.model = grading.Model()
        self.under_way = None      # the unit whose reply is awaited
        self.delivered = []
        self.clock = 1000
        self.version = 0
        self.operations = 0
        self.failure = None
        self.stop = threading.Event()
        self._threads = []

    def start(self, limit):
        self.stop.clear()
        self._limit = limit
        roles = [self._web_step] * WEB_SERVERS + [self._worker_step] * WORKERS
        self._threads = [threading.Thread(target=self._run, args=(step, f"{self.seed}/{number}"))
                         for number, step in enumerate(roles)]
        for thread in self._threads:
            thread.start()

    def join(self):
        for thread in self._threads:
            thread.join()
        if self.failure is not None:
            raise self.failure

    def _run(self, step, seed):
        rng = random.Random(seed)
        try:
            while not self.stop.is_set():
                with Redlock(self.client, rng, self.stop):
                    self.clock += rng.randrange(3)
                    self._perform(step(rng))
                    self.operations += 1
                    if self._limit is not None and self.operations >= self._limit:
                        self.stop.set()
        except Stopped:
            pass
        except LOST as error:
            self.stop.set()
            if not self.may_die:
                self.failure = self.failure or error
        except BaseException as error:  # noqa: BLE001
            self.stop.set()
            self.failure = self.failure or error

    def _perform(self, operation):
        replies = None
        while True:
            try:
                unit = operation.send(replies)
            except StopIteration:
                return
            self.under_way = unit
            replies = unit.run(self.client, self.model)
            self.under_way = None

    def _web_step(self, rng):
        self.version += 1
        collation = rng.choice(COLLATIONS)
        waiting = self.model.lists.get("SubmitterInfo." + collation)
        action = rng.choice(("add", "add", "add", "immediate", "delay", "delete", "rename"))
        if action == "add" or not waiting:
            # A job's key belongs to its collation; a small pool makes updates and collisions.
            key = f"job-{collation}-{rng.randrange(12)}"
            if key in self.model.immediate:
                return grading.make_immediate(self.client, self.model, key, collation, self.clock,
                                              self.version)
            release_time = self.clock + rng.choice((0, 1, 60, 600))
            return grading.add(self.client, self.model, key, collation, release_time, self.version,
                               rng.choice(("RPUSH", "LPUSH")))
        key = rng.choice(waiting)
        nonces = sorted(self.model.nonces["Nonces." + collation])
        scores = self.client.zmscore(grading.RESERVATIONS, [f"{collation}.{n}" for n in nonces])
        assert None not in scores
        if action == "immediate":
            return grading.make_immediate(self.client, self.model, key, collation, self.clock,
                                          self.version)
        if action == "delay":
            return grading.delay(self.client, self.model, key, collation, rng.choice(nonces))
        if action == "delete":
            return grading.delete(self.client, self.model, key, collation, rng.choice(nonces))
        new_key = f"job-{collation}-renamed-{self.version}"
        return grading.rename(self.client, self.model, key, collation, new_key)

    def _worker_step(self, rng):
        if self.delivered and rng.random() < 0.1:
            key, value = self.delivered.pop()
            if key not in self.model.jobs:
                return grading.reenqueue(self.client, self.model, key, value, self.clock - 500)
        return grading.next_job(self.client, self.model, self.delivered)

    # -- At rest ------------------------------------------------------------------------------

    def check_at_rest(self):
        """The server's state is the model's, or the one after the unit whose reply was lost."""
        state = grading.read_state(self.client)
        candidates = [self.model]
        if self.under_way is not None:
            candidates += self.under_way.outcomes(self.model)
        matching = [model for model in candidates if model.state() == state]
        assert matching, f"none of {len(candidates)} allowed states: {self._difference(state)}"
        self.model = matching[0]
        self.under_way = None
        self.client.delete(LOCK)

    def _difference(self, state):
        expected = self.model.state()
        return {part: (expected[part], state[part])
                for part in state if state[part] != expected[part]}

    def repair(self):
        """Rolls a half-done operation on, as the document asks of its clients: the collation's
        spare list entry or reservation goes."""
        orphan, self.model.orphan = self.model.orphan, None
        if orphan is None:
            return
        for collation in COLLATIONS:
            list_name, nonces_name = grading.names(collation)
            members = {m for m in self.model.reservations if m.startswith(collation + ".")}
            nonces = self.model.nonces.get(nonces_name, set())
            for member in members - {f"{collation}.{nonce}" for nonce in nonces}:
                assert self.client.sadd(nonces_name, member.rsplit(".", 1)[1]) == 1
                self.model.nonces.setdefault(nonces_name, set()).add(member.rsplit(".", 1)[1])
            for nonce in sorted(nonces):
                if f"{collation}.{nonce}" not in members:
                    assert self.client.zadd(grading.RESERVATIONS, {f"{collation}.{nonce}": 0}) == 1
                    self.model.reservations[f"{collation}.{nonce}"] = 0.0
        queued = {key for keys in self.model.lists.values() for key in keys}
        for key in set(self.model.jobs) - queued:
            member = f"immediate.{key}"
            if member not in self.model.reservations:
                self.client.zadd(grading.RESERVATIONS, {member: 0})
                self.model.reservations[member] = 0.0
                self.model.immediate.add(key)


def calm_run(program, operations, seed):
    with durable_server(program) as server:
        queue = Queue(connect(server), seed, may_die=False)
        queue.start(operations)
        while not queue.stop.wait(0.5):
            pass
        queue.join()
        queue.check_at_rest()
        queue.model.check_invariants()
        return f"{queue.operations} operations, {len(queue.delivered)} jobs graded"


def killed_run(program, kill_every_s, duration_s, seed):
    rng = random.Random(f"{seed}/kills")
    with durable_server(program) as server:
        queue = Queue(connect(server), seed, may_die=True)
        ends = time.monotonic() + duration_s
        kills = in_doubt = 0
        while time.monotonic() < ends:
            queue.seed = f"{seed}/{kills}"
            queue.start(None)
            queue.stop.wait(kill_every_s * rng.uniform(0.3, 0.9))
            server.kill()
            kills += 1
            queue.stop.set()
            queue.join()
            server.start()
            in_doubt += queue.under_way is not None
            queue.check_at_rest()
            queue.repair()
            queue.check_at_rest()
            queue.model.check_invariants()
        return f"{kills} kills, {queue.operations} operations, {in_doubt} requests in doubt"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default=str(DEFAULT_SLUICE))
    parser.add_argument("--operations", type=int, default=3000)
    parser.add_argument("--kill-every", type=float, default=1.0, metavar="SECONDS")
    parser.add_argument("--duration", type=float, default=20.0, metavar="SECONDS",
                        help="of the run with kills; 0 leaves it out")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2 ** 32))
    arguments = parser.parse_args()
    runs = [("calm", lambda: calm_run(arguments.server, arguments.operations, arguments.seed))]
    if arguments.duration > 0:
        runs.append(("killed", lambda: killed_run(arguments.server, arguments.kill_every,
                                                  arguments.duration, arguments.seed)))
    return run_seeded(runs, arguments.seed)


if __name__ == "__main__":
    sys.exit(main())
