#!/usr/bin/python3
"""Q.ADOPT under the execution queue of the seed: unmodified redis-py drives both of its dialects,
and an adopted queue shows what happens.

The clients are those of tests/seeds: unaware of the queue. Comparisons read the keys and
the queue in one MULTI, so that both tell of the same moment.
"""

import random
import sys
import threading
import time
import uuid

import redis

import harness
from harness import require, require_equal, wait_until
from harness.native_queue import DISK, Native, pairs
from harness.seeds.queue_dialects import (ACTIVE, BANDS, BAND_WIDTH, DIALECTS, EVENT, PENDING,
                                          event_json)

QUEUE = "exec"
CAP = 10
LEASE_MS = 400
SCHEDULERS = 8


class Job:
    """What the dialects want to know of a job."""

    def __init__(self, band, score, job_id=None):
        self.id = job_id or str(uuid.uuid4())
        self.band = self.first_band = band
        self.score = score


def adopt(native, dialect, *options):
    words = [word for key in dialect.keys[1:] for word in ("PENDING", key)]
    words += ["ACTIVE", ACTIVE, "PAYLOAD", EVENT]
    if len(dialect.keys) == 2:
        words += ["UNIT", BAND_WIDTH]
    require_equal(native.call("Q.ADOPT", QUEUE, *words, *options), b"OK", "Q.ADOPT")


def each_dialect(test):
    def run(options):
        for name in DIALECTS:
            server = options.server(DISK)
            server.start()
            client = redis.Redis(port=server.port, decode_responses=True, socket_timeout=30)
            native = Native(server)
            test(server, DIALECTS[name](client), native)
            native.close()
            client.close()
            server.close()

    run.__doc__ = test.__doc__
    run.__name__ = test.__name__
    return run


def add(dialect, band, age_s=0.0):
    job = Job(band, dialect.score(band, time.time() - age_s))
    dialect.enqueue(job)
    return job


def lower_names(stats):
    return {name.lower(): count for name, count in pairs(stats["by_priority"]).items()}


def look(client, dialect):
    """(the queue's statistics, {band: members}, active members), of one moment."""
    unit = client.pipeline(transaction=True)
    unit.execute_command("Q.STATS", QUEUE)
    for key in dialect.keys[1:]:
        unit.zrange(key, 0, -1)
    unit.smembers(ACTIVE)
    stats, *pending, active = unit.execute()
    return pairs(stats), pending, active


@each_dialect
def test_counts_by_band_are_right(_server, dialect, native):
    """counts of each band, CRITICAL and BACKGROUND included, while they wait"""
    adopt(native, dialect)
    counts = dict.fromkeys(BANDS, 0)
    for number, band in enumerate(BANDS):
        for age_s in range(3 * number + 2):
            add(dialect, number, age_s)
            counts[band] += 1
    stats = native.stats(QUEUE)
    require_equal(lower_names(stats), counts, "by_priority")
    require_equal((stats["pending"], stats["active"]), (sum(counts.values()), 0), "gauges")
    by_pri = native.stats_by(QUEUE, "BY", "PRI")
    pending = {name.lower(): line["pending"] for name, line in by_pri.items()}
    require_equal(pending, counts, "BY PRI")
    _, jobs = native.call("Q.LIST", QUEUE, "BY", "RANK", "COUNT", 1000)
    bands = [pairs(job)["pri"].decode().lower() for job in jobs]
    require_equal(bands, sorted(bands, key=BANDS.index), "the order of Q.LIST")
    if len(dialect.keys) == 2:
        wrong = dialect.client.zcount(PENDING, 0, BAND_WIDTH - 1)
        require_equal(wrong, 0, "ZCOUNT answers as Redis does")


@each_dialect
def test_counts_are_right_under_load(_server, dialect, native):
    """eight schedulers, an administrator and a producer; every look finds what the keys hold"""
    adopt(native, dialect, "LEASE", 60_000)
    total, ends = 600, []
    known, lock = {}, threading.Lock()
    adding = threading.Event()
    failures = []

    def guarded(role):
        def run():
            try:
                role()
            except Exception as error:  # pylint: disable=broad-except
                failures.append(error)
        return threading.Thread(target=run)

    def produce():
        for number in range(total):
            job = Job(number % len(BANDS), dialect.score(number % len(BANDS), time.time()))
            with lock:
                known[job.id] = job
            dialect.enqueue(job)
        adding.set()

    def schedule():
        while not failures:
            popped, _ = dialect.schedule(CAP, "evalsha")
            if popped is None:
                if adding.is_set() and dialect.status()["queue_depth"] == 0:
                    return
                time.sleep(0.002)
                continue
            dialect.release(popped.id)
            ends.append(popped.id)

    def steer():
        own = Native(_server)
        rng = random.Random(7)
        while not adding.is_set() and not failures:
            with lock:
                ids = list(known)
            if not ids:
                continue
            band = rng.choice(BANDS)
            own.move(QUEUE, rng.choice(ids), "PRI", band, *rng.choice(((), ("FRONT",))))
        own.close()

    threads = [guarded(role) for role in [produce, steer] + [schedule] * SCHEDULERS]
    for thread in threads:
        thread.start()
    looks = 0
    while any(thread.is_alive() for thread in threads):
        stats, pending, active = look(dialect.client, dialect)
        require_equal(stats["pending"], sum(map(len, pending)), "pending")
        require_equal(stats["active"], len(active), "active")
        if len(pending) > 1:
            require_equal(lower_names(stats), dict(zip(BANDS, map(len, pending))), "by_priority")
        require(stats["added"] >= stats["started"] >= stats["completed"], f"totals {stats}")
        looks += 1
    for thread in threads:
        thread.join()
    require(not failures, f"{failures[:1]}")
    require(looks > 0, "nobody looked")
    stats = native.stats(QUEUE)
    require_equal([stats[name] for name in ("added", "started", "completed", "cancelled", "failed",
                                            "pending", "active")],
                  [total, total, total, 0, 0, 0, 0], "totals at rest")
    require_equal(sorted(ends), sorted(known), "jobs that ran")
    events = native.call("Q.EVENTS", QUEUE, "-", "COUNT", 1000, "TYPE", "completed")
    require_equal(len(events), total, "completed events")


@each_dialect
def test_wait_times(_server, dialect, native):
    """wait times are from the score's time to the start"""
    adopt(native, dialect)
    began = time.time()
    for age_s in (5, 10, 20):
        add(dialect, 2, age_s)
    for _ in range(3):
        popped, _ = dialect.schedule(CAP, "evalsha")
        dialect.release(popped.id)
    took_ms = (time.time() - began) * 1000
    wait = pairs(native.stats(QUEUE)["wait_ms"])
    require_equal(wait["count"], 3, "starts")
    # The histogram's buckets are 1/64 wide; the deployed dialect has fractions of milliseconds.
    for name, age_ms in (("p50", 10_000), ("max", 20_000)):
        require(age_ms - 2 <= wait[name] <= (age_ms + took_ms) * 65 / 64 + 2, f"{name}: {wait}")


def has_stats(native, queue=QUEUE, **expected):
    stats = native.stats(queue)
    return all(stats[name] == value for name, value in expected.items())


@each_dialect
def test_a_leaked_slot_is_reclaimed(server, dialect, native):
    """a leaked slot comes back at its old score, the second time the job is removed"""
    adopt(native, dialect, "LEASE", LEASE_MS)
    job = add(dialect, 0, age_s=3)
    popped, _ = dialect.schedule(CAP, "evalsha")
    require_equal(popped.id, job.id, "popped")
    wait_until(lambda: has_stats(native, reclaimed=1, active=0, pending=1), 20, "the first end")
    require_equal(dialect.client.zscore(dialect.keys[1], job.id), job.score, "its score")
    require_equal(dialect.client.scard(ACTIVE), 0, "slots")
    popped, _ = dialect.schedule(CAP, "evalsha")
    require_equal(popped.id, job.id, "popped again")
    wait_until(lambda: has_stats(native, failed=1, active=0, pending=0), 20, "the second end")
    require_equal(dialect.client.keys("exec_queue:*"), [], "what is left")
    types = [event[2].decode() for event in native.call("Q.EVENTS", QUEUE, "-")]
    require_equal(types, ["added", "started", "reclaimed", "started", "failed"], "events")
    wait_until(lambda: job.id in server.log_tail(), 20, "a line in the log")


@each_dialect
def test_kill_and_restart(server, dialect, native):
    """kill -9: the adoption, totals, events and leases are there after the restart"""
    adopt(native, dialect, "LEASE", 2000)
    jobs = [add(dialect, band) for band in range(len(BANDS))]
    popped = [dialect.schedule(CAP, "evalsha")[0].id for _ in range(2)]
    dialect.release(popped[0])
    before = native.stats(QUEUE)
    events = native.call("Q.EVENTS", QUEUE, "-")
    native.close()
    server.kill()
    server.start()
    dialect.client.connection_pool.disconnect()
    client = redis.Redis(port=server.port, decode_responses=True, socket_timeout=30)
    again = type(dialect)(client)
    native = Native(server)
    after = native.stats(QUEUE)
    for name in ("pending", "active", "by_priority", "added", "started", "completed", "adopted"):
        require_equal(after[name], before[name], name)
    require_equal(native.call("Q.EVENTS", QUEUE, "-"), events, "events")
    job = native.get(QUEUE, popped[1], "WITH", "payload")
    require_equal(job["state"], b"active", "state")
    require_equal(job["payload"].decode(), event_json(jobs[1]), "payload")
    # It is watched as before: the leaked slot comes back, a new job is counted.
    wait_until(lambda: has_stats(native, reclaimed=1, active=0), 20, "the lease")
    add(again, 4)
    require_equal(native.stats(QUEUE)["added"], len(jobs) + 1, "added")
    require_equal(native.cancel(QUEUE, jobs[4].id), b"cancelled", "Q.CANCEL")
    require_equal(client.exists(EVENT + jobs[4].id), 0, "its payload")
    native.close()
    client.close()


def eve_of(server, rules):
    """The default user's connection, and that of a user with these rules."""
    admin = Native(server)
    admin.call("ACL", "SETUSER", "eve", "on", ">pw", *rules.split())
    eve = Native(server)
    eve.client = redis.Redis(port=server.port, username="eve", password="pw", socket_timeout=30)
    return admin, eve


def refused(native, *words):
    try:
        native.client.execute_command(*words)
    except redis.exceptions.NoPermissionError:
        return True
    return False


def test_payloads_need_rights(options):
    """PAYLOAD reaches no key that the adopter, the caller, or whose lease it is may not use"""
    server = options.server(DISK)
    server.start()
    admin, eve = eve_of(server, "~ok:* +@all -@admin -@dangerous")
    shown = ["Q.ADOPT", "ok:q", "PENDING", "ok:w", "ACTIVE", "ok:act", "PAYLOAD", "sec"]
    admin.call("SET", "secret", "the secret")
    admin.call("RPUSH", "section", "item")
    admin.add("second", "job", b"x")
    eve.call("ZADD", "ok:w", 1, "ret", 2, "tion", 3, "ond")
    require(refused(eve, *shown), "eve adopts")
    admin.call("ACL", "SETUSER", "eve", "%R~*")
    require(refused(eve, *shown), "eve adopts and may only read")
    admin.call("ACL", "SETUSER", "eve", "resetkeys", "~ok:*")
    require_equal(admin.call(*shown, "LEASE", 100), b"OK", "Q.ADOPT")
    require(refused(eve, "Q.GET", "ok:q", "ret", "WITH", "payload"), "eve reads")
    require(refused(eve, "Q.LIST", "ok:q", "WITH", "payload"), "eve reads a list")
    require(refused(eve, "Q.CANCEL", "ok:q", "ret"), "eve cancels")
    require(refused(eve, "Q.CANCEL", "ok:q", "WHERE", "STATE", "pending"), "eve cancels all")
    require_equal(admin.call("ZCARD", "ok:w"), 3, "jobs")
    for job in ("tion", "ond"):
        require_equal(admin.cancel("ok:q", job), b"cancelled", job)
    require_equal(admin.call("EXISTS", "secret", "section", "second"), 3, "what is not hers")

    # A lease goes by the rights of who has adopted, also behind a restart.
    admin.call("ACL", "SETUSER", "eve", "~sec*")
    require_equal(eve.call(*shown, "LEASE", 100), b"OK", "Q.ADOPT")
    for end in (1, 2):
        admin.call("ACL", "SETUSER", "eve", "resetkeys", "~ok:*")
        unit = admin.client.pipeline(transaction=True)
        unit.zrem("ok:w", "ret").sadd("ok:act", "ret").execute()
        wait_until(lambda: not admin.call("EXISTS", "ok:act"), 20, f"end {end} of the lease")
        if end == 1:
            admin.close()
            eve.close()
            server.kill()
            server.start()
            admin, eve = eve_of(server, "~ok:* +@all")
    require_equal(has_stats(admin, failed=1, queue="ok:q"), True, "the job has failed")
    require_equal(admin.call("GET", "secret"), b"the secret", "the payload")
    wait_until(lambda: '"secret" of a job of queue "ok:q" is kept' in server.log_tail(), 20,
               "a line in the log")
    admin.close()
    eve.close()
    server.close()


def test_a_queue_whose_payload_it_would_be(options):
    """prefix and member name the queue itself: leases and cancellations leave it alone"""
    server = options.server(DISK)
    server.start()
    native = Native(server)
    native.call("Q.ADOPT", "ok:q", "PENDING", "ok:w", "ACTIVE", "ok:act", "PAYLOAD", "ok:",
                "LEASE", 100)
    members = ["q", *(f"m{number}" for number in range(60))]
    for end in (1, 2):
        unit = native.client.pipeline(transaction=True)
        unit.execute_command("DEL", "ok:w")
        unit.execute_command("SADD", "ok:act", *members)
        unit.execute()
        wait_until(lambda: not native.call("EXISTS", "ok:act"), 20, f"end {end} of the leases")
    wait_until(lambda: has_stats(native, failed=61, queue="ok:q"), 20, "the second ends")
    native.call("ZADD", "ok:w", 1, "q", 2, "w", 3, "m", 4, "act")
    require_equal(native.call("Q.CANCEL", "ok:q", "WHERE", "STATE", "pending"), [b"0", 4], "WHERE")
    require_equal(native.call("TYPE", "ok:q"), b"queue", "the queue's key")
    native.close()
    server.kill()
    server.start()
    native = Native(server)
    require_equal(native.call("TYPE", "ok:q"), b"queue", "the queue's key after a restart")
    native.close()
    server.close()


def test_lines_of_the_log(options):
    """names cannot forge lines of the log, and there is one of a kind a minute"""
    server = options.server()
    server.start()
    native = Native(server)
    forged = "1:M 01 Jan 2026 00:00:00.000 * Ready"
    key = "ok:act\n" + forged
    for _ in range(100):
        native.call("Q.ADOPT", "q", "PENDING", "ok:w\r" + forged, "ACTIVE", key)
        native.call("RPUSH", key, "x")
        native.call("DEL", key)
        native.call("SADD", key, "x")
        native.call("DEL", key)
        native.call("DEL", "q")
    native.call("EVAL", "redis.log(redis.LOG_WARNING, ARGV[1])", 0, "text\r\n" + forged)
    wait_until(lambda: "script: text\\r\\n" in server.log_tail(), 20, "the script's line")
    log = server.log_tail(1000)
    require(not any(line.startswith("1:M") for line in log.replace("\r", "\n").split("\n")), log)
    require_equal(log.count(", which queue "), 1, "lines about a key that is gone")
    require_equal(log.count("holds a list, not a set"), 1, "lines about another type")
    require_equal(log.count("A queue that had adopted Redis keys was removed"), 1, "queues gone")
    native.close()
    server.close()


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
