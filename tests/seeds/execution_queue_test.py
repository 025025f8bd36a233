#!/usr/bin/python3
"""The execution queue of the seed, unmodified: redis-py drives both of its dialects.

    execution_queue_test.py                                both dialects, calm and with kills
    execution_queue_test.py --jobs 2000 --duration 10      a shorter run
    execution_queue_test.py --kill-every 1 --duration 60   only the runs with kills
    execution_queue_test.py --server redis-server          the same against the reference

Calm: 4 producers add the jobs in five priorities while 8 schedulers pop and release them under a
cap of 10, two administrators move and remove some, and a witness watches the active set. With
kills: the server is killed with SIGKILL and started again on its directory about every second under
the same load; after each start its whole state must be what was acknowledged. ledger.py holds the
promises.
"""

import argparse
import functools
import random
import sys
import threading
import time
import uuid

from harness import run_seeded
from harness.seeds import LOST, connect, durable_server
from harness.seeds.ledger import Ledger, Violation
from harness.seeds.queue_dialects import ACTIVE, BANDS, DAY_S, DIALECTS, EVENT, event_json
from harness.servers import DEFAULT_SLUICE

CAP = 10
PRODUCERS, SCHEDULERS, ADMINISTRATORS = 4, 8, 2
WAYS = ("evalsha", "registered", "eval", "multi")
MOST_RUNNING = 4      # of one scheduler: together they want three times the cap
STALL_S = 20.0
LEAST_PENDING = 300   # schedulers wait below it, so that there is always an order to keep
MOST_PENDING = 2000   # producers wait above it while the server is being killed


class Workers:
    """The threads of one run. The first failure of any of them ends all; a lost connection ends the
    thread that met it, as the server was killed."""

    def __init__(self, dialect, ledger, seed, total, may_die):
        self.dialect = dialect
        self.ledger = ledger
        self.seed = seed
        self.total = total            # jobs to add, None = without end
        self.may_die = may_die
        self.failure = None
        self.last_pop_s = time.monotonic()
        self.stop = threading.Event()
        self.done_adding = threading.Event()
        self._adding = threading.Semaphore(total or 0)
        self._threads = []

    def start(self):
        roles = ([self._produce] * PRODUCERS + [self._schedule] * SCHEDULERS +
                 [self._administrate] * ADMINISTRATORS + [self._witness])
        self._threads = [threading.Thread(target=self._run, args=(role, f"{self.seed}/{index}"))
                         for index, role in enumerate(roles)]
        self._producers = self._threads[:PRODUCERS]
        for thread in self._threads:
            thread.start()

    def join_producers(self):
        for thread in self._producers:
            thread.join()
        self.done_adding.set()

    def join(self):
        for thread in self._threads:
            thread.join()
        if self.failure is not None:
            raise self.failure

    def _run(self, role, seed):
        try:
            role(random.Random(seed))
        except LOST as error:
            if not self.may_die:
                self._fail(error)
        except BaseException as error:  # noqa: BLE001
            self._fail(error)

    def _fail(self, error):
        if self.failure is None:
            self.failure = error
        self.stop.set()
        self.done_adding.set()

    # -- The roles ----------------------------------------------------------------------------

    def _produce(self, rng):
        while not self.stop.is_set():
            if self.total is not None and not self._adding.acquire(blocking=False):
                return
            if self.total is None and self.ledger.backlog() > MOST_PENDING:
                time.sleep(0.005)
                continue
            self._add_one(rng)

    def _add_one(self, rng):
        band = rng.randrange(len(BANDS))
        job_id = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        job = self.ledger.adding(job_id, band, self.dialect.score(band, time.time()))
        self.dialect.enqueue(job)
        self.ledger.added(job)
        if rng.random() < 0.1:
            position = self.dialect.position(job)
            assert position is None or position >= 0

    def _schedule(self, rng):
        way = rng.choice(WAYS)
        running = []
        while not self.stop.is_set():
            if self.ledger.backlog() < LEAST_PENDING and not self.done_adding.is_set():
                time.sleep(0.001)
                continue
            job = self._pop_one(way)
            if job is not None:
                self.last_pop_s = time.monotonic()
                running.append(job)
                if len(running) < MOST_RUNNING:
                    continue
            elif not running:
                if self.done_adding.is_set() and self.dialect.status()["queue_depth"] == 0:
                    return
                if time.monotonic() - self.last_pop_s > STALL_S:
                    raise Violation(f"nothing could be popped for {STALL_S} s: slots leak?")
                continue
            # As the orchestrator does: schedule until nil, then wait for an execution to end.
            self._finish(running.pop(rng.randrange(len(running))))
            way = rng.choice(WAYS)

    def _pop_one(self, way):
        sent = self.ledger.tick()
        try:
            reply, active = self.dialect.schedule(CAP, way)
        except LOST:
            self.ledger.pop_lost(sent)
            raise
        if active is not None and active > CAP:
            raise Violation(f"SCARD is {active} inside a unit, the cap is {CAP}")
        return None if reply is None else self.ledger.popped(reply, sent)

    def _finish(self, job):
        event = self.dialect.event(job.id)
        while event is None and job.add.read is None and job.remove is None:
            event = self.dialect.event(job.id)   # its SET is still on the way
        if event is None:
            event = self.dialect.event(job.id)
        if event is None and job.remove is None:
            raise Violation(f"the event of {job.id} is lost")
        if event is not None and event != event_json(job):
            raise Violation(f"the event of {job.id} reads {event!r}")
        self.ledger.releasing(job)
        self.ledger.released(job, self.dialect.release(job.id))

    def _administrate(self, rng):
        while not self.stop.is_set() and not self.done_adding.is_set():
            jobs = self.ledger.some_jobs(200)
            if not jobs:
                time.sleep(0.002)
                continue
            job = rng.choice(jobs)
            if rng.random() < 0.8:
                band = rng.randrange(len(BANDS))
                score = self.dialect.score(band, time.time())
                if self.ledger.starting_move(job, band, score):
                    self.ledger.moved(job, self.dialect.move(job, band, score))
            elif self.ledger.starting_remove(job):
                self.ledger.removed(job, self.dialect.remove(job.id))

    def _witness(self, rng):
        client = self.dialect.client
        while not self.stop.is_set() and not self.done_adding.is_set():
            active = client.scard(ACTIVE)
            members = client.smembers(ACTIVE)
            status = self.dialect.status()
            for count in (active, len(members), status["active_count"]):
                if count > CAP:
                    raise Violation(f"the witness saw {count} active jobs, the cap is {CAP}")
            assert status["queue_depth"] >= 0 and sum(self.dialect.by_priority()) >= 0
            if rng.random() < 0.02:
                client.script_flush()   # the next EVALSHA answers NOSCRIPT
            time.sleep(0.001)


# -- The runs -------------------------------------------------------------------------------------


def check_at_rest(dialect, ledger):
    """Compares all of the state, then ends what is active."""
    pending, active, events = dialect.read_state()
    still_active = ledger.reconcile(pending, active, events)
    for job_id, place in pending.items():
        ledger.settle_place(ledger.jobs[job_id], place)
    counts = [0] * len(BANDS)
    for job_id in pending:
        counts[ledger.jobs[job_id].band] += 1
    if dialect.by_priority() != counts:
        raise Violation(f"by priority: {dialect.by_priority()}, not {counts}")
    if dialect.status() != {"queue_depth": len(pending), "active_count": len(active)}:
        raise Violation(f"status: {dialect.status()}")
    for job in still_active:
        ledger.releasing(job)
        ledger.released(job, dialect.release(job.id))
    # An event without its job is what a documented release leaves when it is cut in two.
    for job_id in set(events) - set(pending) - set(active):
        dialect.client.delete(EVENT + job_id)


def check_still_life(dialect, ledger, rng):
    """Before anybody pops: counts, ranks, expiry and re-prioritisation are exact."""
    jobs = []
    for index in range(200):
        band = rng.randrange(len(BANDS))
        job = ledger.adding(str(uuid.UUID(int=rng.getrandbits(128), version=4)), band,
                            dialect.score(band, time.time() - 100 + index * 0.01))
        dialect.enqueue(job)
        ledger.added(job)
        jobs.append(job)
        assert 0 < dialect.client.ttl(EVENT + job.id) <= DAY_S
    for job in rng.sample(jobs, 60):
        band = rng.randrange(len(BANDS))
        score = dialect.score(band, time.time() - 50 + rng.random())
        assert ledger.starting_move(job, band, score)
        applied = dialect.move(job, band, score)
        assert applied is True, f"the move of a pending job answered {applied}"
        ledger.moved(job, applied)
    in_order = sorted(jobs, key=lambda job: job.order())
    if len(dialect.keys) > 2:
        for band in range(len(BANDS)):
            ranked = [job for job in in_order if job.band == band]
            assert [dialect.position(job) for job in ranked] == list(range(len(ranked)))
    else:
        assert [dialect.position(job) for job in in_order] == list(range(len(in_order)))
    check_at_rest(dialect, ledger)


def finish(dialect, ledger):
    """Everything is popped, released and gone."""
    while True:
        sent = ledger.tick()
        reply, _ = dialect.schedule(CAP, "evalsha")
        if reply is None:
            break
        job = ledger.popped(reply, sent)
        ledger.releasing(job)
        ledger.released(job, dialect.release(job.id))
    check_at_rest(dialect, ledger)
    if ledger.jobs:
        raise Violation(f"{len(ledger.jobs)} jobs are left at the end")
    assert dialect.client.dbsize() == 0, dialect.client.keys("*")


def summary(ledger, stays):
    return ", ".join(f"{name} {count}" for name, count in ledger.counts.items()) + \
        f", order of {stays} stays"


def calm_run(program, name, jobs, seed):
    with durable_server(program) as server:
        dialect = DIALECTS[name](connect(server))
        ledger = Ledger(CAP, dialect.atomic_steps)
        check_still_life(dialect, ledger, random.Random(f"{seed}/still"))
        workers = Workers(dialect, ledger, seed, jobs, may_die=False)
        workers.start()
        workers.join_producers()
        workers.join()
        finish(dialect, ledger)
        assert ledger.counts["added"] == jobs + 200
        assert ledger.counts["popped unseen"] == 0
        return summary(ledger, ledger.check_order())


def killed_run(program, name, kill_every_s, duration_s, seed):
    rng = random.Random(f"{seed}/kills")
    with durable_server(program) as server:
        dialect = DIALECTS[name](connect(server))
        ledger = Ledger(CAP, dialect.atomic_steps)
        ends = time.monotonic() + duration_s
        kills = 0
        while time.monotonic() < ends:
            workers = Workers(dialect, ledger, f"{seed}/{kills}", None, may_die=True)
            started = time.monotonic()
            workers.start()
            workers.stop.wait(kill_every_s * rng.uniform(0.3, 0.9))
            server.kill()
            kills += 1
            workers.stop.set()
            workers.done_adding.set()
            workers.join()
            server.start()
            check_at_rest(dialect, ledger)
            time.sleep(max(0.0, kill_every_s - (time.monotonic() - started)))
        finish(dialect, ledger)
        stays = ledger.check_order()
        return f"{kills} kills, {summary(ledger, stays)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default=str(DEFAULT_SLUICE))
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--dialect", choices=sorted(DIALECTS), action="append")
    parser.add_argument("--kill-every", type=float, metavar="SECONDS", help="only runs with kills")
    parser.add_argument("--duration", type=float, default=60.0, metavar="SECONDS",
                        help="of the runs with kills, together")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2 ** 32))
    arguments = parser.parse_args()
    dialects = arguments.dialect or list(DIALECTS)
    program, seed = arguments.server, arguments.seed
    kill_every_s, duration_s = arguments.kill_every or 1.0, arguments.duration / len(dialects)
    runs = []
    for name in dialects:
        if arguments.kill_every is None:
            runs.append((f"{name}, {arguments.jobs} jobs",
                         functools.partial(calm_run, program, name, arguments.jobs, seed)))
        runs.append((f"{name}, killed", functools.partial(killed_run, program, name, kill_every_s,
                                                          duration_s, seed)))
    return run_seeded(runs, seed)


if __name__ == "__main__":
    sys.exit(main())
