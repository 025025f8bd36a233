#!/usr/bin/python3
"""The log in etcd stays small while much is written; one that cannot be trimmed has a bound."""

import contextlib
import json
import os
import sys

import harness
from harness import info, require, require_equal, wait_until
from harness.crash.client import Link
from harness.group import PATIENT, Group
from harness.holds import FILLS, fill

VALUE_BYTES = 20_000
VALUES = 50          # in one pipeline
PIPELINES = 16       # 16 MB in all, which no compression makes smaller
MOST_KEPT = 5 << 20  # the log is trimmed up to a checkpoint, of which each 1 MB makes one
DIRECTIVES = {"checkpoint-log-bytes": "1mb", "failover-timeout": 3000}
# Of 1 MB a request may have a quarter: four of this size fill 97 %, without a checkpoint by their
# number.
BOUND = {"journal-log-bytes": "1mb", "checkpoint-copies": "2", "failover-timeout": 3000}
LARGE_BYTES = 255_000
LARGE_FIELDS = 20_000


def kept_bytes(group):
    """Of the log in etcd."""
    told = json.loads(group.etcd.ctl("get", "/sluice/main/g/1/log/", "--prefix", "-w", "json"))
    return sum(len(entry["value"]) * 3 // 4 for entry in told.get("kvs", []))


def told_bytes(node):
    return int(node.told()["sluice_group_log_bytes"])


def write(node, first=0):
    """The same keys each time, with other values."""
    with contextlib.closing(Link(node.port)) as link:
        for number in range(first, first + PIPELINES):
            replies = link.ask(*(["SET", f"k:{number % 4}:{value}", os.urandom(VALUE_BYTES)]
                                 for value in range(VALUES)))
            require_equal(set(replies), {"OK"}, "writes")


def wait_until_trimmed(group):
    wait_until(lambda: kept_bytes(group) < MOST_KEPT, 30.0, "a small log")


def test_trimmed(options):
    """the log is trimmed while much is written, and a node that restarts continues from it"""
    with Group(options.program, directives=DIRECTIVES) as group:
        write(group.primary())
        wait_until_trimmed(group)
        lsn = group.wait_in_sync()
        epoch, old = group.leadership()
        old.crash()
        write(group.wait_for_primary(after_epoch=epoch))
        wait_until_trimmed(group)
        require(group.wait_in_sync() > lsn, "more is written")


def test_bound(options):
    """a log without room refuses changes, until a second copy lets it be trimmed"""
    with Group(options.program, nodes=1, directives=BOUND) as group, \
            group.primary().connect() as connection:
        reply = connection.call("SET", "large", os.urandom(300_000)).raw
        require(b"at most 262144, a quarter of journal-log-bytes" in reply, reply)
        # It is stopped at 1 MB, which compression makes a few hundred bytes.
        reply = connection.call("EVAL", "for i = 1, 200 do redis.call('SET', 'k' .. i, "
                                "string.rep('x', 20000)) end", "0").raw
        require(b"would have more than 1048576 bytes in the journal" in reply, reply)
        require_equal(connection.call("DEL", "k1", "k200").raw, b":1\r\n", "a change after that")
        for key in "abcd":
            require_equal(connection.call("SET", key, os.urandom(LARGE_BYTES)).value, b"OK", key)

        def refusal():
            reply = connection.call("DEL", "nothing")
            return reply.value if reply.is_error else None
        told = str(wait_until(refusal, what="a refusal"))
        require("95 % of journal-log-bytes (1048576)" in told, told)
        require(connection.call("SET", "a", "x").is_error, "SET")
        require_equal(len(connection.call("GET", "a").value), LARGE_BYTES, "what is read")
        frames = int(group.primary().told()["sluice_group_log_frames"])
        require(0 <= kept_bytes(group) - told_bytes(group.primary()) <= 2 * frames, "INFO")
        standby = group.add_node().start()
        wait_until(lambda: refusal() is None, what="changes again")
        require_equal(connection.call("SET", "a", "x").value, b"OK", "SET")
        require_equal(group.primary().told()["sluice_group_copies"], "2", "copies")
        group.wait_in_sync()
        wait_until(lambda: told_bytes(standby) == told_bytes(group.primary()) < 2 * LARGE_BYTES,
                   what="the same size at the standby")


def test_amid_renames(options):
    """a standby's checkpoint ends, too, while large keys are renamed at the primary all the time"""
    with Group(options.program, directives=PATIENT) as group, \
            group.primary().connect(20) as connection, group.standby().connect(20) as standby:
        for key, command in FILLS.items():
            fill(connection.call, f"{key}-0", command, LARGE_FIELDS)
        group.wait_in_sync()
        renames = 0

        def ended():
            nonlocal renames
            renames += 1
            for key in FILLS:
                reply = connection.call("RENAME", f"{key}-{renames - 1}", f"{key}-{renames}")
                require_equal(reply.raw, b"+OK\r\n", "RENAME")
            return int(info(standby)["sluice_checkpoints_completed"]) > before
        before = int(info(standby)["sluice_checkpoints_completed"])
        require(not standby.call("BGSAVE").is_error, "BGSAVE")
        wait_until(ended, what="a checkpoint of the standby")
        print(f"       after {renames} renames of {len(FILLS)} keys")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
