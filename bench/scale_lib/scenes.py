"""The scenes of bench/scale: the prepared data, and the rows measured on it."""

import datetime
import functools
import json
import re
import time
import urllib.parse

import cascades_test as cascades
import waiting_pops_test as waiting
from harness import IN_MEMORY, require, rss_bytes
from harness.holds import FILLS
from scale_lib.bench import GIVEN_BACK_S, JOURNAL, Place, Row, Scene

RESTART_S = 6      # with 10 million jobs
SILENCE_S = 2.5    # a line each two seconds
METRICS_MB = 5
SET_MS = 300
COPIES = 2.1       # two, and what else the process needs meanwhile
SETTLE_S = 3
SAMPLE = 50        # groups that are queried


def move_rows(kind, what):
    return [Row(f"rename-{kind}", f"RENAME of {what}, there and back"),
            Row(f"move-{kind}", f"MOVE of {what}, there and back")]


def moves(bench, place, key):
    bench.hold(f"rename-{key}", place.hold_of(f"RENAME {key} other", f"RENAME other {key}"))
    bench.hold(f"move-{key}", place.hold_of(f"MOVE {key} 1", "SELECT 1", f"MOVE {key} 0",
                                            "SELECT 0"))


# -- One queue of all jobs -------------------------------------------------------------------------


def fill_queue(bench, place):
    place.fill("queue", FILLS["queue"], bench.jobs, "jobs")
    place.settle()


def large_queue(bench):
    with Place(bench) as place:
        fill_queue(bench, place)
        if bench.wants("restart"):
            restart(bench, place)
        moves(bench, place, "queue")
        bench.hold("copy-queue", lambda: place.hold(lambda: refused_copy(place)))
        bench.hold("memory-usage", place.hold_of("MEMORY USAGE queue SAMPLES 0"))
        with place.getter() as get:
            bench.hold("http-jobs", lambda: place.hold(
                lambda: get("/api/v1/queues/queue/jobs?count=1000")))
        ends = (("del-queue", "DEL queue"), ("expire-queue", "PEXPIRE queue 500"))
        for name, command in ends:
            if not bench.wants(name):
                continue
            if place.call("EXISTS", "queue") == 0:
                fill_queue(bench, place)
            bench.hold(name, place.hold_of(command, until=lambda: freed(place)), tries=1)
            place.given_back(f"{name}-rss")


def refused_copy(place):
    reply = place.connection.call("COPY", "queue", "copy")
    copied = place.call("DEL", "copy")
    require(reply.raw.startswith(b"-TOOBIG") != bool(copied), reply)


def freed(place):
    return place.call("DBSIZE") == 0 and place.info("lazyfree_pending_objects") == "0"


def checkpoint(place):
    place.call("BGSAVE")
    place.settle()


def restart(bench, place):
    bench.figure("restart-log", place.restart())
    silence_s, before, after = longest_silence(place)
    bench.figure("restart-silence", silence_s, note=f"{before}\n       {after}")
    checkpoint(place)
    bench.figure("restart", place.restart())
    require(place.call("Q.STATS", "queue")[1] == bench.jobs, "jobs are there again")


def longest_silence(place):
    """The longest time without a log line between start and readiness: its seconds, and the lines
    before and after it."""
    with open(place.server.log_path, encoding="utf-8", errors="replace") as log:
        lines = [(datetime.datetime.fromisoformat(found.group()).timestamp(), line.rstrip())
                 for line in log if (found := re.search(r"\d+-\d+-\d+ \d+:\d+:\d+\.\d+", line))]
    begin = max(number for number, (_, line) in enumerate(lines) if " starting, pid " in line)
    end = begin + next(number for number, (_, line) in enumerate(lines[begin:])
                       if "Ready to" in line)
    return max((lines[after][0] - lines[after - 1][0], lines[after - 1][1], lines[after][1])
               for after in range(begin + 1, end + 1))


def retention(bench):
    with Place(bench) as place:
        place.call("Q.CONFIG", "queue", "SET", "retain_completed", bench.jobs, "events", "1000")
        fill_queue(bench, place)
        cursor = b"0"
        while True:
            cursor, ended = place.call("Q.CANCEL", "queue", "WHERE", "ALL", "CURSOR", cursor)
            if cursor == b"0":
                break
        words = ("Q.LIST", "queue", "WHERE", "STATE", "cancelled", "COUNT", "20", "BRIEF")
        bench.hold("retention", place.hold_of(
            "Q.CONFIG queue SET retain_completed 10",
            until=lambda: len(place.call(*words)[1]) <= 10), tries=1)
        place.given_back("retention-rss")


# -- Groups, rules, sets of keys -------------------------------------------------------------------


def groups(bench):
    with Place(bench) as place:
        place.fill("queue", "redis.call('Q.ADD', KEYS[1], i, '', 'GROUP', 'g' .. i)",
                   bench.groups, "groups")
        place.settle()
        sample = range(1, bench.groups + 1, max(1, bench.groups // SAMPLE))
        bench.hold("config-own", place.hold_of(
            "Q.CONFIG queue SET lease_ms 5000 max_active 10 fair on", "Q.CONFIG queue SET fair on",
            "Q.CONFIG queue GROUP g7 SET max_active 1", "Q.CONFIG queue GROUP g7 RESET"))
        bench.hold("config-glob", lambda: place.hold(lambda: capped_and_not(place, sample)))
        bench.hold("config-groups", lambda: place.hold(lambda: inherited_and_not(place)))
        bench.hold("stats-by-group", lambda: place.hold(lambda: by_group(place)))
        with place.getter() as get:
            bench.hold("metrics-groups", lambda: place.hold(lambda: get("/metrics")))


def capped_and_not(place, sample):
    def cap(number):
        line = place.call("Q.STATS", "queue", "GROUP", f"g{number}")
        return line[line.index(b"max_active") + 1]
    for words, expected in (("SET max_active 7", 7), ("RESET", 0)):
        place.call("Q.CONFIG", "queue", "GROUP", "g*", *words.split())
        place.until(lambda: all(cap(number) == expected for number in sample), "the new limit")


def inherited_and_not(place):
    """Work done in slices does not report its end."""
    for words in ("SET ttl_ms 100000000000 weight 2 order lifo", "RESET"):
        place.call("Q.CONFIG", "queue", *words.split())
        time.sleep(SETTLE_S)


def by_group(place):
    cursor, pages = b"0", 0
    while pages < 10 and (pages == 0 or cursor != b"0"):
        cursor, _ = place.call("Q.STATS", "queue", "BY", "GROUP", "CURSOR", cursor, "COUNT", "1000")
        pages += 1


def rules(bench):
    with Place(bench) as place:
        place.fill("queue", "redis.call('Q.CONFIG', KEYS[1], 'KEY', 'r' .. i, 'SET', "
                   "'max_active', '2')", bench.queues, "rules")
        bench.hold("config-rules", place.hold_of(
            "Q.CONFIG queue KEY r7 SET max_active 3", "Q.CONFIG queue KEY r7 SET max_active 3",
            "Q.CONFIG queue KEY r7 SET max_active 2", "Q.CONFIG queue KEY new SET max_active 1",
            "Q.CONFIG queue KEY new RESET", "Q.CONFIG queue SET lease_ms 5000"))


def sets_of_keys(bench):
    with Place(bench) as place:
        place.fill("queue", "redis.call('Q.ADD', KEYS[1], i, '', 'KEY', 'all', 'KEY', 'k' .. i)",
                   bench.queues, "sets of keys")
        bench.hold("match", place.hold_of("Q.POP 1 queue COUNT 256 MATCH all"))


def own_keys(bench):
    with Place(bench) as place:
        place.fill("queue", "redis.call('Q.ADD', KEYS[1], i, '', 'GROUP', 'g', 'KEY', 'k' .. i)",
                   bench.queues, "jobs with a key each")
        place.call("Q.CONFIG", "queue", "SET", "fair", "on")
        place.settle()
        bench.hold("own-keys", place.hold_of("Q.POP 1 queue", "Q.POP 1 queue COUNT 16"))


# -- Many queues and keys --------------------------------------------------------------------------


def queues(bench):
    with Place(bench) as place:
        # The queues with series of their own have distributions, which are most of /metrics.
        place.fill("queue", "local queue = KEYS[1] .. i "
                   "redis.call('Q.ADD', queue, 'job', 'payload') "
                   "if i <= 1000 then redis.call('Q.ACK', queue, 'job', "
                   "redis.call('Q.POP', 1, queue)[1][6]) "
                   "redis.call('Q.ADD', queue, 'next', 'payload') "
                   "redis.call('Q.ADD', queue, 'last', 'payload') end", bench.queues, "queues")
        with place.getter() as get:
            bench.hold("metrics-queues", lambda: place.hold(lambda: get("/metrics")))
            bench.figure("metrics-size", len(get("/metrics")) / 1e6)
            bench.hold("http-queues", lambda: place.hold(lambda: walk_queues(get)))
        if bench.wants("flushdb"):
            place.call("SELECT", "1")
            place.fill("key", "redis.call('SET', KEYS[1] .. i, 'value')", bench.jobs // 10, "keys")
            bench.hold("flushdb", place.hold_of("FLUSHDB", until=lambda: freed(place)), tries=1)
            place.call("SELECT", "0")
        bench.hold("flushall", place.hold_of("FLUSHALL", until=lambda: freed(place)), tries=1)
        place.given_back("flushall-rss")


def walk_queues(get):
    page = {"cursor": ""}
    while page["cursor"] is not None:
        cursor = urllib.parse.quote(page["cursor"])
        page = json.loads(get(f"/api/v1/queues?limit=1000{'&cursor=' * bool(cursor)}{cursor}"))


def elements(bench, kind):
    with Place(bench) as place:
        place.fill(kind, FILLS[kind], bench.jobs, "elements")
        moves(bench, place, kind)
        bench.hold(f"unlink-{kind}", place.hold_of(f"UNLINK {kind}", until=lambda: freed(place)),
                   tries=1)


# -- One string ------------------------------------------------------------------------------------


def strings(bench):
    value = b"x" * bench.string_bytes
    for name, directives in (("set-string", IN_MEMORY), ("set-journaled", JOURNAL)):
        if not bench.wants(name):
            continue
        with Place(bench, directives) as place:
            place.call("PING")
            before = rss_bytes(place.server.pid)
            bench.hold(name, lambda: place.hold(lambda: place.call("SET", "string", value)),
                       tries=1)
            place.settle()
            bench.figure(f"{name}-rss",
                         (peak_bytes(place.server.pid) - before) / bench.string_bytes)
    if bench.wants("save-string", "rename-string", "move-string"):
        with Place(bench) as place:
            place.call("SET", "string", value)
            bench.hold("save-string", lambda: place.hold(lambda: checkpoint(place)))
            moves(bench, place, "string")


def peak_bytes(pid):
    """The peak resident memory since the start."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


# -- Waiting clients -------------------------------------------------------------------------------

CASES = {
    "need": (cascades.what_many_need, "the end of a job that many need"),
    "need-fails": (cascades.what_many_need_fails, "the failure of a job that many need"),
    "chain": (cascades.a_chain, "the end of a chain of needs"),
    "cut": (cascades.a_lost_connection, "a cut connection with many tied leases"),
    "leases": (cascades.leases_that_run_out, "leases that run out at once"),
    "delays": (functools.partial(cascades.timers_due_at_once, option="DELAY", state="pending"),
               "delays that end at once"),
    "ttls": (functools.partial(cascades.timers_due_at_once, option="TTL", state="expired"),
             "TTLs that end at once"),
}


def cases(bench):
    for name, (case, _) in CASES.items():
        bench.hold(name, lambda: cascades.measure(bench.options, case(count=bench.jobs // 10)))


def pops(bench):
    count = min(waiting.WAITING, bench.queues // 10)
    waiting.allow_files(count)
    for name, measure in (("pause", waiting.measure_pause), ("multi", waiting.measure_transaction)):
        bench.hold(name, lambda: measure(bench.options, count))
    bench.hold("many-queues", lambda: waiting.measure_many_queues(bench.options, count // 10))
    if not bench.wants("closed"):
        return
    with waiting.server_with_worker(bench.options) as place:
        for name, killed in (("closed", False), ("closed-by-kill", True)):
            bench.hold(name, lambda: waiting.measure_lost(*place, waiting.pop(waiting.QUEUE),
                                                          killed, count))


def given_back_row(name, what):
    return Row(f"{name}-rss", f"until the memory of {what} is given back", GIVEN_BACK_S, "s")


SCENES = [
    Scene(large_queue, [
        Row("restart-log", "ready after kill -9 as it stands after the adds", RESTART_S, "s"),
        Row("restart-silence", "the longest silence in the log of that start", SILENCE_S, "s"),
        Row("restart", "ready after kill -9 behind a checkpoint", RESTART_S, "s"),
        *move_rows("queue", "a queue"),
        Row("copy-queue", "COPY of a queue, refused"),
        Row("memory-usage", "MEMORY USAGE of a queue, SAMPLES 0"),
        Row("http-jobs", "GET .../jobs?count=1000"),
        Row("del-queue", "DEL of a queue"),
        given_back_row("del-queue", "it"),
        Row("expire-queue", "a queue that expires"),
        given_back_row("expire-queue", "it")]),
    Scene(retention, [
        Row("retention", "lowered retention of ended jobs"),
        given_back_row("retention", "them")]),
    Scene(groups, [
        Row("config-own", "Q.CONFIG of what no group inherits, of one, unchanged"),
        Row("config-glob", "Q.CONFIG GROUP g* SET and RESET"),
        Row("config-groups", "Q.CONFIG SET and RESET of what groups inherit"),
        Row("stats-by-group", "Q.STATS BY GROUP CURSOR COUNT 1000"),
        Row("metrics-groups", "GET /metrics with many groups")]),
    Scene(rules, [Row("config-rules", "Q.CONFIG among many exact rules")]),
    Scene(cases, [Row(name, title) for name, (_, title) in CASES.items()]),
    Scene(pops, [
        Row("pause", "a pause lifted with many pops that wait"),
        Row("multi", "MULTI of adds, above that without pops that wait"),
        Row("many-queues", "pipelined adds to queues with a pop each"),
        Row("closed", "the end of a process with many pops that wait"),
        Row("closed-by-kill", "CLIENT KILL of many pops that wait")]),
    Scene(queues, [
        Row("metrics-queues", "GET /metrics with many queues"),
        Row("metrics-size", "its size", METRICS_MB, "MB"),
        Row("http-queues", "GET .../queues?limit=1000, every page"),
        Row("flushdb", "FLUSHDB of many keys"),
        Row("flushall", "FLUSHALL of many queues"),
        given_back_row("flushall", "them")]),
    *(Scene(functools.partial(elements, kind=kind), [
        *move_rows(kind, what), Row(f"unlink-{kind}", f"UNLINK of {what}")])
      for kind, what in (("zset", "a sorted set"), ("hash", "a hash"))),
    Scene(sets_of_keys, [Row("match", "Q.POP MATCH among many sets of keys, COUNT 256")]),
    Scene(own_keys, [Row("own-keys", "Q.POP from a group whose jobs have a key each, fair on")]),
    Scene(strings, [
        Row("set-string", "SET of a large string, appendonly no", SET_MS),
        Row("set-string-rss", "its memory at most", COPIES, "copies"),
        Row("set-journaled", "SET of a large string, everysec", SET_MS),
        Row("set-journaled-rss", "its memory at most", COPIES, "copies"),
        Row("save-string", "a checkpoint of a large string"),
        *move_rows("string", "a large string")]),
]
