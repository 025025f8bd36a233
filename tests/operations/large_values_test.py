#!/usr/bin/python3
"""RENAME, MOVE and the end of large values: nobody waits for them, and a checkpoint beside them is
right."""

import os
import pathlib
import random
import sys
import time

import harness
from harness import info, require, require_equal, wait_until

MANY = 200_000
LONG = 64 << 20
LONGEST_HOLD_MS = 10
# One script must not be taken for a slow one.
AT_ONCE = 20_000

FILLS = {
    "queue": "redis.call('Q.ADD', KEYS[1], i, 'payload ' .. i)",
    "zset": "redis.call('ZADD', KEYS[1], i, 'member ' .. i)",
    "hash": "redis.call('HSET', KEYS[1], 'field ' .. i, 'value ' .. i)",
    "set": "redis.call('SADD', KEYS[1], 'member ' .. i)",
    "list": "redis.call('RPUSH', KEYS[1], 'item ' .. i)",
    "stream": "redis.call('XADD', KEYS[1], i .. '-1', 'field', 'value')",
}


def fill(call, key, command, count):
    for begin in range(1, count + 1, AT_ONCE):
        end = min(count, begin + AT_ONCE - 1)
        reply = call("EVAL", f"for i = {begin}, {end} do {command} end return 1", "1", key)
        require_equal(reply.raw, b":1\r\n", key)


def run_time_ms(server):
    """What the I/O threads have run so far: pauses of the machine are not in it."""
    total_ns = 0
    for task in pathlib.Path(f"/proc/{server.process.pid}/task").iterdir():
        if (task / "comm").read_text().startswith("sluice-io"):
            total_ns += int((task / "schedstat").read_text().split()[0])
    return total_ns / 1e6


def resident_bytes(server):
    pages = pathlib.Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def test_nobody_waits(options):
    """RENAME, MOVE and RENAMENX of what is large take no time of the I/O thread."""
    with options.server({"appendonly": "yes"}) as server, server.connect() as connection:
        call = connection.call
        for key, command in FILLS.items():
            fill(call, key, command, MANY)
        call("SETRANGE", "string", LONG - 1, "x")
        wait_until(lambda: info(connection)["sluice_journal_unwritten_bytes"] == "0")
        for key in [*FILLS, "string"]:
            for words, reply in ((("RENAME", key, "a longer name"), b"+OK\r\n"),
                                 (("MOVE", "a longer name", "1"), b":1\r\n"),
                                 (("SELECT", "1"), b"+OK\r\n"),
                                 (("RENAMENX", "a longer name", "n"), b":1\r\n"),
                                 (("MOVE", "n", "0"), b":1\r\n"),
                                 (("SELECT", "0"), b"+OK\r\n"),
                                 (("RENAME", "n", key), b"+OK\r\n")):
                begin = run_time_ms(server)
                require_equal(call(*words).raw, reply, words)
                ran = run_time_ms(server) - begin
                require(ran < LONGEST_HOLD_MS, f"{key}: {words} took {ran:.1f} ms")


def require_short(server, call, *words):
    begin = run_time_ms(server)
    reply = call(*words)
    ran = run_time_ms(server) - begin
    require(not reply.is_error, reply.raw)
    require(ran < LONGEST_HOLD_MS, f"{words} took {ran:.1f} ms")


def test_nobody_waits_for_the_end(options):
    """What is large, and what is many, is freed beside the I/O threads: DEL, UNLINK, SET over it,
    its expiry, FLUSHDB and FLUSHALL."""
    with options.server({"appendonly": "yes"}) as server, server.connect() as connection:
        call = connection.call
        for words in (("DEL",), ("UNLINK",), ("SET", "x"), ("PEXPIRE", "-1"), ("FLUSHDB",)):
            for key, command in FILLS.items():
                fill(call, key, command, MANY)
                require_short(server, call, words[0], *([] if words[0] == "FLUSHDB" else [key]),
                              *words[1:])
                require_equal(call("DBSIZE").value, 1 if words[0] == "SET" else 0, "keys")
                call("FLUSHALL")
        fill(call, "key", "redis.call('SET', KEYS[1] .. i, 'value')", MANY)
        fill(call, "queue", "redis.call('Q.ADD', KEYS[1] .. i, 'job', 'payload')", MANY // 10)
        wait_until(lambda: info(connection)["sluice_journal_unwritten_bytes"] == "0")
        require_short(server, call, "FLUSHALL")
        wait_until(lambda: info(connection)["lazyfree_pending_objects"] == "0", what="the freeing")
        require(int(info(connection)["lazyfreed_objects"]) > 0, "INFO counts them")


def test_nobody_waits_for_a_configuration(options):
    """Q.CONFIG of what no group or key inherits, of one name, or of what is as it was, where
    groups, keys and rules are many. (What goes on in slices: queue_reconfigure_test.cc.)"""
    with options.server({"appendonly": "yes"}) as server, server.connect() as connection:
        call = connection.call
        fill(call, "queue", "redis.call('Q.ADD', KEYS[1], i, 'payload', 'GROUP', 'g' .. i, "
             "'KEY', 'k' .. i)", MANY)
        fill(call, "queue", "redis.call('Q.CONFIG', KEYS[1], 'KEY', 'r' .. i, 'SET', "
             "'max_active', '2')", MANY // 4)
        wait_until(lambda: info(connection)["sluice_journal_unwritten_bytes"] == "0")
        for words in ("SET lease_ms 5000 max_active 10", "SET fair off",
                      "GROUP g7 SET max_active 1", "GROUP g7 RESET", "KEY r7 SET max_active 1",
                      "KEY r7 SET max_active 1", "KEY k7 SET rate 5/1000", "GROUP g* RESET",
                      "RESET"):
            require_short(server, call, "Q.CONFIG", "queue", *words.split())


def test_memory_is_given_back(options):
    """What has been deleted leaves the process, though nobody allocates any more."""
    with options.server() as server, server.connect() as connection:
        fill(connection.call, "key", "redis.call('SET', KEYS[1] .. i, string.rep('x', 200))",
             5 * MANY)
        full = resident_bytes(server)
        connection.call("FLUSHALL")
        wait_until(lambda: info(connection)["lazyfree_pending_objects"] == "0", what="the freeing")
        bound = 1.5 * int(info(connection)["used_memory"]) + (64 << 20)
        wait_until(lambda: resident_bytes(server) <= bound, 30, "pages that are given back")
        require(full > 2 * bound, f"{full} bytes were resident")


def test_a_checkpoint_amid_renames(options):
    """A checkpoint that meets RENAMEs begins again, ends all the same, and misses nothing."""
    rng = random.Random(1)
    with options.server({"appendonly": "yes", "enable-debug-command": "yes"}) as server:
        with server.connect() as connection:
            call = connection.call
            for key, command in FILLS.items():
                fill(call, f"{key}-0", command, 20_000)
            call("SET", "string-0", "x" * 100_000, "PX", "100000000")
            places = {key: (0, "0") for key in [*FILLS, "string"]}
            call("BGSAVE")
            until = time.monotonic() + 60
            moves = 0
            while info(connection)["rdb_bgsave_in_progress"] == "1":
                require(time.monotonic() < until, "a checkpoint has no end")
                key = rng.choice(list(places))
                number, database = places[key]
                call("SELECT", database)
                if rng.random() < 0.3:
                    places[key] = (number, "1" if database == "0" else "0")
                    words = ("MOVE", f"{key}-{number}", places[key][1])
                else:
                    places[key] = (number + 1, database)
                    words = ("RENAME", f"{key}-{number}", f"{key}-{number + 1}")
                require(not call(*words).is_error, words)
                moves += 1
            require_equal(info(connection)["rdb_last_bgsave_status"], "ok", "the checkpoint")
            require(moves > 3, f"{moves} moves met it")
            require("begins again" in server.log_tail(200), "a walk was stale")
            digest = call("DEBUG", "DIGEST").raw
        server.kill()
        server.start()
        with server.connect() as connection:
            require_equal(connection.call("DEBUG", "DIGEST").raw, digest, "after the restart")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__], io_threads=(1, 2)))
