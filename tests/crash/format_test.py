#!/usr/bin/python3
"""Data directories of each format version, kept in golden/, open and answer as when they were
written. format-2-adopted is of format 2 too, with queues that show plain keys.

    tests/crash/format_test.py                 every directory that is there
    tests/crash/format_test.py --write NAME    writes golden/NAME.tar.gz and golden/NAME.jsonl, with
                                               the server under test: once, when a format is new

A directory has a checkpoint in its middle, changes of every type before and behind it, and the end
of a killed process. The .jsonl file has a command and its reply a line; bytes stand as Latin-1.
"""

import argparse
import contextlib
import gzip
import io
import json
import os
import pathlib
import re
import sys
import tarfile
import tempfile

from harness import info, require, require_equal, summary, wait_until
from harness.servers import DEFAULT_SLUICE, Server

GOLDEN = pathlib.Path(__file__).resolve().parent / "golden"
DISK = {"appendonly": "yes", "appendfsync": "always", "save": ""}
YEAR_2100_MS = 4_102_444_800_000
CENTURY_MS = 3_155_760_000_000

BEFORE_CHECKPOINT = [
    ["SET", "string", b"bytes \x00\xff\r\n"],
    ["SET", "expires", "v", "PXAT", YEAR_2100_MS],
    ["SET", "replaced", "before"],
    ["RPUSH", "list", "a", "b", "", "1" * 300],
    ["HSET", "hash", "field", "value", "number", "1"],
    ["SADD", "set", "a", "b", "c"],
    ["SADD", "integers", 1, 2, 3],
    ["ZADD", "zset", "-inf", "first", 1, "a", 1, "b", 2.5, "c"],
    ["XADD", "stream", "1-1", "field", "value"],
    ["XADD", "stream", "2-1", "field", "other"],
    ["XGROUP", "CREATE", "stream", "readers", "0"],
    ["FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 1 end)"],
    ["Q.CONFIG", "queue", "SET", "max_active", 2, "events", f"1000:{CENTURY_MS}",
     "retain_completed", f"100:{CENTURY_MS}", "retain_failed", f"100:{CENTURY_MS}"],
    ["Q.CONFIG", "queue", "GROUP", "team.*", "SET", "max_active", 1],
    ["Q.ADD", "queue", "done", "payload of done", "PRI", "HIGH", "GROUP", "team.1"],
    ["Q.ADD", "queue", "waits", b"\x00payload\xff", "KEY", "lang:python", "TAG", "lang", "python"],
    ["Q.ADD", "queue", "later", "x", "AT", YEAR_2100_MS, "PRI", "CRITICAL"],
    ["Q.ADD", "queue", "blocked", "x", "NEED", "waits"],
    ["Q.ADD", "queue", "follows", "x", "NEED", "waits", "AFTER", "later"],
    ["Q.POP", 1, "queue", "WORKER", "w"],
    ["Q.ACK", "queue", "done", 1, "RESULT", "its result"],
    ["ZADD", "shown:pending", 1, "a", 2, "b"],
    ["SET", "shown:payload:a", "payload of a"],
    ["Q.CONFIG", "shown", "SET", "events", f"1000:{CENTURY_MS}"],
    ["Q.ADOPT", "shown", "PENDING", "shown:pending", "ACTIVE", "shown:active",
     "PAYLOAD", "shown:payload:"],
    ["Q.CONFIG", "logged", "SET", "log_bytes", 20, "retain_completed", f"100:{CENTURY_MS}",
     "events", f"100:{CENTURY_MS}"],
    ["Q.ADD", "logged", "ends", "x"],
    ["Q.ADD", "logged", "runs", "x"],
    ["Q.POP", 1, "logged", "COUNT", 2],
    ["Q.TOUCH", "logged", "ends", 1, "LOG", b"before the checkpoint\n"],
    ["Q.TOUCH", "logged", "runs", 2, "LOG", b"before\x00"],
]
# A client that follows the job must wait for its progress to become an event.
FOLLOW = ["Q.EVENTS", "logged", "$", "ID", "runs", "BLOCK", 0]
AFTER_CHECKPOINT = [
    ["SET", "replaced", "after"],
    ["APPEND", "string", "more"],
    ["LPOP", "list"],
    ["HDEL", "hash", "number"],
    ["HSET", "hash", "added", b"\xfe"],
    ["SREM", "set", "a"],
    ["ZINCRBY", "zset", 10, "a"],
    ["XREADGROUP", "GROUP", "readers", "one", "COUNT", 1, "STREAMS", "stream", ">"],
    ["XDEL", "stream", "2-1"],
    ["RENAME", "integers", "renamed"],
    ["Q.ADD", "queue", "urgent", "x", "PRI", "HIGH", "GROUP", "team.1", "RETRY", 2],
    ["Q.POP", 1, "queue", "WORKER", "w"],
    ["Q.NACK", "queue", "urgent", 2, "FATAL", "ERROR", "broken"],
    ["Q.ADD", "queue", "last", "x", "PRI", "LOW", "GROUP", "team.2"],
    ["Q.MOVE", "queue", "last", "PRI", "HIGH"],
    ["SADD", "shown:active", "c"],
    ["Q.ADOPT", "shown later", "PENDING", "later:pending", "ACTIVE", "later:active",
     "PAYLOAD", "later:payload:", "LEASE", 604_800_000],
    ["ZADD", "later:pending", 1, "d"],
    # What is large is moved by a record that does not say what it is.
    ["SET", "long", b"\xff" * 70_000, "PXAT", YEAR_2100_MS],
    ["RENAME", "long", "long renamed"],
    ["Q.CONFIG", "crowd", "SET", "events", f"10:{CENTURY_MS}"],
    ["EVAL", "for i = 1, 1001 do redis.call('Q.ADD', 'crowd', 'job ' .. i, i) end return 1", 0],
    ["MOVE", "crowd", 1],
    ["Q.CONFIG", "needed", "SET", "events", f"10:{CENTURY_MS}", "retain_completed",
     f"100:{CENTURY_MS}"],
    ["Q.ADD", "needed", "base", "x"],
    ["EVAL", "for i = 1, 700 do redis.call('Q.ADD', 'needed', 'job ' .. i, i, 'NEED', 'base') end "
     "return 1", 0],
    ["Q.POP", 1, "needed"],
    ["Q.TOUCH", "logged", "runs", 2, "PROGRESS", "half", "LOG", b"behind\xff"],
    ["Q.TOUCH", "logged", "ends", 1, "LOG", b"behind it"],
    ["Q.ACK", "logged", "ends", 1],
]
# The process dies before all have heard of it.
RELEASE = ["EVAL", "return redis.call('Q.ACK', 'needed', 'base', "
           "redis.call('Q.GET', 'needed', 'base')[40])", 0]
READS = [
    ["DBSIZE"], ["GET", "string"], ["GET", "expires"], ["PEXPIRETIME", "expires"],
    ["GET", "replaced"], ["LRANGE", "list", 0, -1], ["HGETALL", "hash"], ["SCARD", "set"],
    ["SISMEMBER", "set", "c"], ["SMEMBERS", "renamed"], ["EXISTS", "integers"],
    ["ZRANGE", "zset", 0, -1, "WITHSCORES"], ["XRANGE", "stream", "-", "+"],
    ["XINFO", "GROUPS", "stream"], ["FCALL", "f", 0],
    ["Q.CONFIG", "queue", "GET", "max_active", "events"],
    ["Q.CONFIG", "queue", "GROUP", "team.*", "GET", "max_active"],
    ["Q.GET", "queue", "done", "WITH", "payload", "WITH", "result"],
    ["Q.GET", "queue", "waits", "WITH", "payload"],
    ["Q.GET", "queue", "later"], ["Q.GET", "queue", "blocked"], ["Q.GET", "queue", "follows"],
    ["Q.GET", "queue", "urgent"],
    ["Q.GET", "queue", "last"], ["Q.LIST", "queue", "BY", "AGE"], ["Q.EVENTS", "queue", "-"],
    ["Q.LIST", "shown", "WITH", "payload"], ["Q.EVENTS", "shown", "-"],
    ["Q.LIST", "shown later", "BRIEF"],
    ["EXISTS", "long", "crowd"], ["STRLEN", "long renamed"], ["PEXPIRETIME", "long renamed"],
    ["EVAL", "redis.call('SELECT', 1) return {redis.call('Q.GET', 'crowd', 'job 1001'), "
     "redis.call('Q.EVENTS', 'crowd', '-'), #redis.call('Q.LIST', 'crowd', 'COUNT', 1000)}", 0],
    # Who had not heard of it has by then.
    ["BLPOP", "nothing", 1],
    ["EVAL", "local stats = redis.call('Q.STATS', 'needed') return {stats[2], stats[8], "
     "redis.call('Q.GET', 'needed', 'job 700')[4]}", 0],
    ["Q.LOG", "logged", "ends"], ["Q.LOG", "logged", "runs", "FROM", 3],
    ["Q.GET", "logged", "ends"], ["Q.EVENTS", "logged", "-"],
    # What a pop decides: the order, and tokens that no earlier lease had.
    ["EVAL", "local job = redis.call('Q.POP', 1, 'queue')[1] return {job[4], job[6]}", 0],
    ["EVAL", "local job = redis.call('Q.POP', 1, 'queue')[1] return {job[4], job[6]}", 0],
    ["Q.POP", 1, "queue"],
]
POPS = 3


def to_text(words):
    return [(w if isinstance(w, bytes) else str(w).encode()).decode("latin-1") for w in words]


def ask(connection, words):
    return connection.call(*[word.encode("latin-1") for word in words]).raw.decode("latin-1")


def write_directory(program, name):
    with tempfile.TemporaryDirectory(prefix="sluice-format-") as directory:
        server = Server(program, DISK, directory=directory,
                        environment={**os.environ, "SLUICE_KILL_POINT": "inside_release:2"})
        with server:
            connection = server.connect()
            for words in BEFORE_CHECKPOINT:
                require(not connection.call(*words).raw.startswith(b"-"), f"{words} failed")
            require_equal(connection.call("SAVE").raw, b"+OK\r\n", "SAVE")
            follower = server.connect()
            follower.send(*FOLLOW)
            wait_until(lambda: info(connection)["blocked_clients"] == "1", what="the follower")
            for words in AFTER_CHECKPOINT:
                require(not connection.call(*words).raw.startswith(b"-"), f"{words} failed")
            with contextlib.suppress(OSError):
                connection.call(*RELEASE)
            wait_until(lambda: not server.alive(), what="its end")
            server.environment = None
        tar = io.BytesIO()
        with tarfile.open(fileobj=tar, mode="w") as archive:
            for path in sorted(pathlib.Path(directory).rglob("*")):
                if path.name not in ("server.log", "ready", "LOCK", "LOG"):
                    archive.add(path, path.relative_to(directory), recursive=False,
                                filter=anonymous)
        GOLDEN.mkdir(exist_ok=True)
        (GOLDEN / f"{name}.tar.gz").write_bytes(gzip.compress(tar.getvalue(), mtime=0))
        with server:
            connection = server.connect()
            lines = [json.dumps([words, ask(connection, words)])
                     for words in map(to_text, READS)]
            require(any("pending" in line and ":700" in line for line in lines), "no release")
            require(any("progress" in line and "logged" in line for line in lines), "no progress")
    (GOLDEN / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="ascii")


def anonymous(member):
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def newest_format():
    return max(int(re.match(r"format-(\d+)", path.name)[1]) for path in GOLDEN.iterdir())


def check_directory(program, path):
    with tempfile.TemporaryDirectory(prefix="sluice-format-") as directory:
        with tarfile.open(path) as archive:
            archive.extractall(directory)
        expected = path.with_name(path.name.replace(".tar.gz", ".jsonl"))
        lines = expected.read_text(encoding="ascii").splitlines()
        # Twice: as it was left, and what this server made of it. Pops change it and come last.
        for reads in (len(lines) - POPS, len(lines)):
            with Server(program, DISK, directory=directory) as server:
                # Before the first record that an older version would take for damage.
                text = pathlib.Path(directory, "FORMAT").read_text(encoding="ascii")
                require(f"format {newest_format()}\nstate ready\n" in text,
                        f"{path.name} is not raised: {text}")
                connection = server.connect()
                for line in lines[:reads]:
                    words, reply = json.loads(line)
                    require_equal(ask(connection, words), reply, f"{path.name}: {words}")
                server.kill()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", default=str(DEFAULT_SLUICE))
    parser.add_argument("--write", default="", metavar="NAME")
    arguments = parser.parse_args()
    if arguments.write:
        write_directory(arguments.server, arguments.write)
        return 0
    paths = sorted(GOLDEN.glob("*.tar.gz"))
    require(paths, f"nothing in {GOLDEN}")
    failed = 0
    for path in paths:
        try:
            check_directory(arguments.server, path)
            print(f"ok      a directory of {path.name.removesuffix('.tar.gz')}")
        except AssertionError as error:
            failed += 1
            print(f"FAILED  {error}")
    print(summary(len(paths) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
