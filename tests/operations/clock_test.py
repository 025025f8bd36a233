#!/usr/bin/python3
"""The wall clock is set, runs at another rate, and jumps: queues go by queue time."""

import contextlib
import random
import sys
import threading
import time

import harness
from harness import info, require, require_equal, scratch, wait_until
from harness.wall_clock import WallClock

HOUR_MS = 3_600_000
YEAR_MS = 365 * 24 * HOUR_MS
ON_DISK = {"appendonly": "yes", "appendfsync": "everysec", "save": ""}
# From the right time on, and times at which 32 bits end and centuries begin.
STEPS_MS = (5000, -5000, HOUR_MS, -HOUR_MS, YEAR_MS, -YEAR_MS)
TIMES_MS = (1000, 2_180_000_000_000, 4_110_000_000_000)


def call(connection, line, *more):
    reply = connection.call(*line.split(), *more)
    require(not reply.is_error, f"{line}: {reply.raw!r}")
    return reply.value


def fields(value):
    """A map that came as a flat array."""
    if value is None:
        return None
    return dict(zip((name.decode() for name in value[::2]), value[1::2]))


def job(connection, queue, name):
    return fields(call(connection, f"Q.GET {queue} {name}"))


def pop(connection, queue, options="COUNT 100"):
    jobs = call(connection, f"Q.POP 1 {queue} {options}")
    return [] if jobs is None else [fields(each) for each in jobs]


def names(jobs):
    return [each["id"].decode() for each in jobs]


@contextlib.contextmanager
def started(options, directives=None, directory=None):
    """A server whose wall clock the test sets, that clock, and a connection."""
    with scratch() as folder:
        clock = WallClock(folder)
        with options.server(directives, directory=directory,
                            environment=clock.environment()) as server:
            with server.connect(30) as connection:
                yield server, clock, connection


def close_to(got_ms, expected_ms, what):
    require(abs(got_ms - expected_ms) < 15_000, f"{what}: {got_ms}, expected about {expected_ms}")


def go_astray(connection, clock, queue, set_ms):
    """The clock at another time for a few commands, of which each would leave its mark."""
    right_ms = clock.now_ms()
    clock.set_ms(set_ms)
    call(connection, f"Q.ADD {queue} astray x")
    call(connection, f"Q.ADD {queue}:late astray x DELAY 300")
    call(connection, f"Q.ADD {queue}:ttl astray x TTL 300")
    call(connection, f"Q.ADD {queue}:at astray x AT {int(clock.now_ms()) + 400}")
    at = int(clock.now_ms()) + HOUR_MS
    call(connection, f"Q.ADD {queue}:told astray x AT {at}")
    told = job(connection, f"{queue}:told", "astray")["not_before"]
    require(abs(told - at) <= 20, f"AT {at} is told as {told}")
    close_to(job(connection, queue, "astray")["enqueued"], clock.now_ms(), "enqueued")
    ended = pop(connection, f"{queue}:run")[0]
    call(connection, f"Q.ACK {queue}:run {ended['id'].decode()} {ended['lease']}")
    clock.set_ms(right_ms + (clock.now_ms() - set_ms))
    return ended["id"].decode()


def show_a_step(connection, waiting, clock, queue, set_ms):
    call(connection, f"Q.CONFIG {queue} SET rate 10/200")
    call(connection, f"Q.CONFIG {queue}:kept SET retain_completed 5:60000")
    call(connection, f"Q.ADD {queue}:run run x")
    call(connection, f"Q.ADD {queue}:lease held x LEASE 600000")
    held = pop(connection, f"{queue}:lease", "WORKER w REQID r")
    for number in range(30):
        call(connection, f"Q.ADD {queue} {number} x")
    for option in ("late", "ttl", "at"):
        call(connection, f"Q.ADD {queue}:{option} before x PRI LOW DELAY 100")
    ended = go_astray(connection, clock, queue, set_ms)

    # A due job reaches a pop that waits; nobody waits for the wall clock.
    began = time.monotonic()
    for option in ("late", "at"):
        got = []
        while len(got) < 2:
            got += names(pop(waiting, f"{queue}:{option}", "BLOCK 20000"))
        require_equal(sorted(got), ["astray", "before"], option)
    wait_until(lambda: job(connection, f"{queue}:ttl", "astray")["state"] == b"expired",
               what="the end of a TTL")
    require(time.monotonic() - began < 20, "delays and TTLs end")

    # A rate admits on, in the order of arrival.
    got = []
    wait_until(lambda: got.extend(names(pop(connection, queue))) or len(got) == 31,
               what="all admissions of a rate")
    require_equal(got, [str(number) for number in range(30)] + ["astray"], "order")

    require(job(connection, f"{queue}:run", ended)["run_ms"] < 20_000, "a run without the step")
    require_equal(job(connection, f"{queue}:lease", "held")["state"], b"active")
    require_equal(pop(connection, f"{queue}:lease", "WORKER w REQID r")[0]["lease"],
                  held[0]["lease"], "the same pop again")
    for number in range(8):
        call(connection, f"Q.ADD {queue}:kept {number} x")
        for each in pop(connection, f"{queue}:kept"):
            call(connection, f"Q.ACK {queue}:kept {each['id'].decode()} {each['lease']}")
    kept = call(connection, f"Q.LIST {queue}:kept WHERE STATE completed")[1]
    require_equal(len(kept), 5, "retained jobs")
    times = [event[1] for event in call(connection, f"Q.EVENTS {queue} - COUNT 1000")]
    require_equal(times, sorted(times), "times of events")
    close_to(times[-1], clock.now_ms(), "the last event")


def test_a_clock_that_is_set_and_put_right(options):
    """Rates, delays, TTLs, order, runs, leases and retention do not notice a step and its end."""
    with started(options) as (server, clock, connection), server.connect(30) as waiting:
        for number, step_ms in enumerate(STEPS_MS):
            show_a_step(connection, waiting, clock, f"step{number}", clock.now_ms() + step_ms)
        for number, set_ms in enumerate(TIMES_MS):
            show_a_step(connection, waiting, clock, f"time{number}", set_ms)
        ahead_s = float(info(connection, "server")["sluice_queue_time_ahead_seconds"])
        require(abs(ahead_s) < 1, f"{ahead_s} s ahead")


def test_a_clock_that_stays_set(options):
    """The difference is in INFO and in the log; replies tell times as the clock has them."""
    with started(options) as (server, clock, connection):
        for step_ms in (YEAR_MS, -2 * YEAR_MS, YEAR_MS + HOUR_MS):
            call(connection, "Q.ADD q before x")
            clock.step_ms(step_ms)
            ahead_s = float(info(connection, "server")["sluice_queue_time_ahead_seconds"])
            close_to(job(connection, "q", "before")["enqueued"], clock.now_ms(), "enqueued")
            popped = pop(connection, "q", "LEASE 60000")[0]
            close_to(popped["deadline"], clock.now_ms() + 60_000, "the deadline")
            call(connection, f"Q.ACK q before {popped['lease']}")
            call(connection, "Q.PURGE q WHERE STATE completed")
        require(abs(ahead_s + HOUR_MS / 1000) < 15, f"an hour behind: {ahead_s}")
        log = server.log_tail()
        for said in ("behind the wall clock, which seems to have been set forward. Queues use",
                     "ahead of the wall clock, which seems to have been set back. Queues use"):
            require(said in log, log)
        clock.step_ms(-HOUR_MS)
        call(connection, "Q.ADD q after x")
        wait_until(lambda: "again differ by less than a minute" in server.log_tail(),
                   what="the log's line")


def test_a_key_expires_by_a_clock_that_was_set(options):
    """A key whose time the clock has jumped over goes soon, though nobody names it."""
    with started(options) as (_, clock, connection):
        call(connection, f"SET key x PX {HOUR_MS}")
        call(connection, "Q.ADD queue job x")
        call(connection, f"PEXPIRE queue {HOUR_MS}")
        clock.step_ms(2 * HOUR_MS)
        wait_until(lambda: info(connection, "stats")["expired_keys"] == "2",
                   what="the end of both keys")


def test_a_difference_near_a_minute(options):
    """The log tells it once, and its end once, however often it comes and goes by seconds."""
    def count(text):
        return server.log_tail(1000).count(text)

    with started(options) as (server, clock, connection):
        apart_s = 0
        for told, wanted_s in enumerate((63, -63), 1):
            for _ in range(10):
                for next_s in (wanted_s, wanted_s * 55 // 63):
                    clock.step_ms((next_s - apart_s) * 1000)
                    apart_s = next_s
                    wait_until(lambda: call(connection, "PING") == b"PONG" and
                               abs(float(info(connection, "server")
                                         ["sluice_queue_time_ahead_seconds"]) + apart_s) < 2,
                               what=f"a difference of {apart_s} s")
            require_equal(count("which seems to have been set"), told, "lines that tell it")
            require_equal(count("again differ by less than a minute"), told - 1,
                          "lines that tell the end")
            clock.step_ms(-apart_s * 1000)
            apart_s = 0
            wait_until(lambda: call(connection, "PING") == b"PONG" and
                       count("again differ by less than a minute") == told, what="the end")


def test_a_machine_that_reads_its_clocks_slowly(options):
    """Where each look at a clock takes long the server starts, and follows the wall clock."""
    with scratch() as folder:
        clock = WallClock(folder)
        with options.server(environment=clock.environment(read_us=300)) as server:
            with server.connect(30) as connection:
                clock.step_ms(HOUR_MS)
                wait_until(lambda: call(connection, "PING") == b"PONG" and
                           abs(float(info(connection, "server")
                                     ["sluice_queue_time_ahead_seconds"]) + 3600) < 15,
                           what="the hour")


def test_a_clock_at_another_rate(options):
    """At half and at twice the rate a delay takes as long as it says, and ids stay in order."""
    with started(options) as (_, clock, connection):
        for number, rate in enumerate((0.5, 2.0)):
            clock.set_ms(clock.now_ms(), rate)
            began = time.monotonic()
            call(connection, f"Q.ADD rate{number} delayed x DELAY 600")
            require_equal(names(pop(connection, f"rate{number}", "BLOCK 20000")), ["delayed"])
            require(time.monotonic() - began > 0.59, f"{time.monotonic() - began} s at x{rate}")
            ids = [fields(call(connection, f"Q.ADD rate{number} * x"))["id"] for _ in range(50)]
            require_equal(names(pop(connection, f"rate{number}")), [each.decode() for each in ids])


def test_a_restart_at_another_time(options):
    """Order, delays, ids and fences hold over restarts ahead and back, with checkpoints between."""
    with scratch() as directory:
        with started(options, ON_DISK, directory) as (server, clock, connection):
            ids, leases = set(), []
            for number, step_ms in enumerate((HOUR_MS, -2 * HOUR_MS, YEAR_MS, -YEAR_MS, HOUR_MS)):
                first = fields(call(connection, "Q.ADD gone * x"))["id"]
                leases.append(pop(connection, "gone")[0]["lease"])
                require(first not in ids, f"{first} again")
                ids.add(first)
                call(connection, "DEL gone")
                call(connection, f"Q.ADD kept {number} x")
                call(connection, f"Q.ADD late late{number} x DELAY 300")
                call(connection, f"XADD stream * number {number}")
                if number % 2 == 0:
                    call(connection, "SAVE")
                clock.step_ms(step_ms)
                connection.close()
                if number == 3:
                    server.kill()
                server.restart()
                connection = server.connect(30)
            # What is gone was journaled as well: no id and no lease comes again.
            fresh = fields(call(connection, "Q.ADD gone * x"))["id"]
            require(fresh not in ids, f"{fresh} again")
            leases.append(pop(connection, "gone")[0]["lease"])
            require_equal(leases, sorted(set(leases)), "leases")
            require_equal(names(pop(connection, "kept")), [str(number) for number in range(5)])
            late = []
            wait_until(lambda: late.extend(names(pop(connection, "late"))) or len(late) == 5,
                       what="what was delayed")
            require_equal(late, [f"late{number}" for number in range(5)])
            entries = call(connection, "XRANGE stream - +")
            require_equal([entry[1][1] for entry in entries], [b"%d" % n for n in range(5)])
            connection.close()


def test_ids_after_a_checkpoint_without_queues(options):
    """A checkpoint keeps the time of queues that are gone: an earlier clock gives no id again."""
    with scratch() as directory:
        with started(options, ON_DISK, directory) as (server, clock, connection):
            clock.step_ms(HOUR_MS)
            connection.close()
            server.restart()
            with server.connect(30) as connection:
                first = fields(call(connection, "Q.ADD gone * x"))["id"]
                call(connection, "DEL gone")
                call(connection, "SAVE")
            clock.step_ms(-2 * HOUR_MS)
            server.restart()
            with server.connect(30) as connection:
                second = fields(call(connection, "Q.ADD gone * x"))["id"]
                require(second > first, f"{second} after {first}")


class Worker(threading.Thread):
    """Adds jobs to its queue and pops them, in order, with an id of the server's choice each."""

    def __init__(self, server, number, ids):
        super().__init__()
        self.server, self.number, self.ids = server, number, ids
        self.failure = None
        self.cycles = 0
        self.ending = False

    def run(self):
        try:
            with self.server.connect(30) as connection:
                while not self.ending:
                    self.cycle(connection)
                    self.cycles += 1
        except Exception as failure:  # pylint: disable=broad-except
            self.failure = failure

    def cycle(self, connection):
        queue = f"own{self.number}"
        added = [fields(call(connection, f"Q.ADD {queue} * x"))["id"] for _ in range(5)]
        for each in added:
            require(each not in self.ids, f"{each} again")
            self.ids.add(each)
        delay = fields(call(connection, f"Q.ADD {queue} * x DELAY 20"))["id"]
        jobs = []
        while len(jobs) < 6:
            jobs += pop(connection, queue, "BLOCK 20000 COUNT 100")
        require_equal([each["id"] for each in jobs], added + [delay], "order")
        for each in jobs:
            call(connection, f"Q.ACK {queue} {each['id'].decode()} {each['lease']}")
            ended = job(connection, queue, each["id"].decode())
            require(ended is None or ended["run_ms"] < 20_000, f"a run of {ended}")
        if self.cycles % 10 == 9:
            call(connection, f"DEL {queue}")


def test_a_clock_that_jumps_at_random(options):
    """Under four I/O threads: each queue's order, ids that come once, delays, runs."""
    options.io_threads = 4
    with started(options) as (server, clock, connection):
        call(connection, "Q.CONFIG shared SET rate 50/100")
        call(connection, "Q.ADD shared held x LEASE 600000")
        held = pop(connection, "shared")[0]
        # Each of its own queue, whose ids are its own.
        workers = [Worker(server, number, set()) for number in range(4)]
        for worker in workers:
            worker.start()
        chance = random.Random(7)
        until = time.monotonic() + 5
        shared = 0
        while time.monotonic() < until:
            clock.step_ms(chance.choice((-1, 1)) * chance.choice((30, 5000, HOUR_MS, YEAR_MS)))
            for _ in range(5):
                call(connection, "Q.ADD shared * x")
            shared += len(pop(connection, "shared"))
            time.sleep(chance.random() * 0.02)
        clock.set_right()
        for worker in workers:
            worker.ending = True
        for worker in workers:
            worker.join(60)
            if worker.failure is not None:
                raise worker.failure
            require(worker.cycles > 0, "work was done")
        require(shared > 50, f"{shared} admissions")
        require_equal(call(connection, f"Q.ACK shared held {held['lease']}"), b"OK")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
