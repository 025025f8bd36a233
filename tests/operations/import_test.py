#!/usr/bin/python3
"""sluice-import: what a Redis has, as a data directory: every type in every encoding, from a file
and from a running server; and files that must be refused.

    python3 tests/operations/import_test.py --server build/release/bin/sluice-server
"""

import os
import pty
import random
import re
import struct
import subprocess
import sys
import threading

import harness
from harness import require, require_equal
from harness.proxy import PASS, Proxy
from harness.reads import look_groups
from harness.servers import Server

DATABASES = [0, 3, 15]
HOUR_MS = 3600 * 1000
# Encodings in which equal values are equal bytes; a hash table has an order of its own.
SAME_BYTES = {b"int", b"embstr", b"raw", b"intset", b"listpack", b"skiplist", b"stream"}
# Deleted entries are not kept; and after a restart consumers were seen when they were last given
# something, which in Redis may be a millisecond later.
OTHER_BYTES = {b"deleted from", b"stream"}
KEPT = {"appendonly": "yes"}


def program(options):
    return os.path.join(os.path.dirname(options.program), "sluice-import")


def run_import(options, *arguments, **environment):
    """(exit code, standard output, standard error)"""
    done = subprocess.run([program(options), *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False,
                          env={**os.environ, **environment})
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def must(connection, *command):
    reply = connection.call(*command)
    require(not reply.is_error, f"{command[:3]}: {reply.raw[:200]!r}")
    return reply


# -- What is imported -----------------------------------------------------------------------------

def value_commands(rng):
    """Commands that make a key of every type and encoding, on each side of the thresholds."""
    yield ["SET", "int", "-12345"]
    yield ["SET", "large int", str(2**63 - 1)]
    yield ["SET", "empty", ""]
    yield ["SET", "short", "text"]
    yield ["SET", "random", rng.randbytes(20000)]
    yield ["SET", "compressed", b"abcab" * 10000]
    yield ["SET", b"\x00\xff binary \r\n key", b"\x00\x01\xff"]
    yield ["SETBIT", "bits", "100000", "1"]
    for count in (1, 2, 100, 128, 129, 512, 513, 2000):
        yield ["RPUSH", f"list {count}", *[f"item {i}" for i in range(count)]]
        yield ["SADD", f"set {count}", *[f"member {i}" for i in range(count)]]
        yield ["SADD", f"integers {count}", *[i * 70000 for i in range(count)]]
        words = [word for i in range(count) for word in (f"field {i}", i * 3)]
        yield ["HSET", f"hash {count}", *words]
        words = [word for i in range(count) for word in (rng.uniform(-9, 9), f"member {i}")]
        yield ["ZADD", f"sorted {count}", *words]
    yield ["RPUSH", "large items", "x" * 9000, b"y" * 100000, "", "12"]
    yield ["HSET", "large field", "f", "v" * 65]
    yield ["ZADD", "large member", 1, "m" * 65]
    yield ["ZADD", "scores", "inf", "a", "-inf", "b", "0", "c", "1e300", "d", "0.1", "e"]
    yield ["SADD", "small integers", 1, -1, 100]
    yield ["SADD", "wide integers", 2**40, -(2**62)]
    for i in range(300):
        yield ["XADD", "stream", f"{i // 7}-{i + 1}", "field", i, "other", "value" * (i % 5)]
    yield ["XADD", "one entry", "5-5", "a", "b"]
    yield ["XGROUP", "CREATE", "stream", "readers", "0"]
    yield ["XGROUP", "CREATE", "stream", "idle", "$"]
    yield ["XREADGROUP", "GROUP", "readers", "ann", "COUNT", 20, "STREAMS", "stream", ">"]
    yield ["XREADGROUP", "GROUP", "readers", "bob", "COUNT", 20, "STREAMS", "stream", ">"]
    yield ["XACK", "stream", "readers", "0-1", "0-2"]
    yield ["XGROUP", "CREATE", "empty stream", "g", "$", "MKSTREAM"]
    yield ["XADD", "deleted from", "1-1", "a", "b"]
    yield ["XADD", "deleted from", "1-2", "a", "b"]
    yield ["XDEL", "deleted from", "1-1"]
    yield ["SET", "expires", "soon", "PX", 2 * HOUR_MS]
    yield ["RPUSH", "expiring list", "a"]
    yield ["PEXPIRE", "expiring list", 3 * HOUR_MS]


def fill(connection, seed=1):
    for database in DATABASES:
        must(connection, "SELECT", database)
        for command in value_commands(random.Random(seed + database)):
            must(connection, *command)
    for name in ("one", "two"):
        must(connection, "FUNCTION", "LOAD",
             f"#!lua name={name}\nredis.register_function('f_{name}', function() return 1 end)")
    must(connection, "SELECT", 0)


def look(connection, key):
    """Everything that can be read of a key, sorted if it has no order."""
    kind = connection.call("TYPE", key).value
    encoding = connection.call("OBJECT", "ENCODING", key).value
    if kind == b"string" or kind == "string":
        return [kind, encoding, connection.call("GET", key).raw]
    if kind in (b"list", "list"):
        return [kind, encoding, connection.call("LRANGE", key, 0, -1).raw]
    if kind in (b"set", "set"):
        return [kind, encoding, sorted(connection.call("SMEMBERS", key).tree[1])]
    if kind in (b"hash", "hash"):
        words = connection.call("HGETALL", key).tree[1]
        return [kind, encoding, sorted(zip(words[::2], words[1::2]))]
    if kind in (b"zset", "zset"):
        return [kind, encoding, connection.call("ZRANGE", key, 0, -1, "WITHSCORES").raw]
    return [kind, encoding, connection.call("XRANGE", key, "-", "+").raw,
            connection.call("XINFO", "STREAM", key).raw, *look_groups(connection, key)]


def compare(redis, sluice):
    """Every key of every database, by what can be read of it and by the bytes of DUMP."""
    must(redis, "CONFIG", "SET", "rdbcompression", "no")
    for database in DATABASES:
        must(redis, "SELECT", database)
        must(sluice, "SELECT", database)
        keys = [key[1] for key in redis.call("KEYS", "*").tree[1]]
        require_equal(sluice.call("DBSIZE").value, len(keys), f"keys of database {database}")
        require(len(keys) > 50, "the databases are filled")
        for key in keys:
            require_equal(look(sluice, key), look(redis, key), f"{key!r} of {database}")
            require_equal(sluice.call("PEXPIRETIME", key).value,
                          redis.call("PEXPIRETIME", key).value, f"expiry of {key!r}")
            encoding = redis.call("OBJECT", "ENCODING", key).value
            if encoding in SAME_BYTES and key not in OTHER_BYTES:
                require_equal(sluice.call("DUMP", key).raw, redis.call("DUMP", key).raw,
                              f"DUMP of {key!r}")
    for name in ("one", "two"):
        require_equal(sluice.call("FCALL", f"f_{name}", 0).value, 1)
    require_equal(len(sluice.call("FUNCTION", "LIST").tree[1]), 2, "libraries")


def saved_file(redis):
    with redis.connect() as connection:
        fill(connection)
        must(connection, "SAVE")
    return os.path.join(redis.directory, "dump.rdb")


# -- Tests ----------------------------------------------------------------------------------------

def test_a_file_is_imported_whole(options):
    """Every type, encoding, expiry, database and function of an RDB file is there afterwards, and
    stays over a restart; a directory that is filled is refused."""
    with Server("redis-server") as redis, harness.scratch() as scratch:
        path = saved_file(redis)
        directory = os.path.join(scratch, "data")
        code, out, err = run_import(options, path, directory)
        require_equal(code, 0, err)
        require("3 databases" in out and "2 function libraries" in out
                and "6 keys with an expiry" in out,
                out)
        with options.server(KEPT, directory=directory) as server:
            for _ in range(2):
                with redis.connect() as theirs, server.connect() as ours:
                    compare(theirs, ours)
                    must(ours, "SELECT", 1)
                    must(ours, "SET", "further", "work")
                server.kill()
                server.start()
            with server.connect() as ours:
                must(ours, "SELECT", 1)
                require_equal(ours.call("GET", "further").value, b"work")
            code, out, err = run_import(options, path, directory)
            require_equal(code, 1, "a directory in use")
        code, out, err = run_import(options, path, directory)
        require_equal(code, 1, "a filled directory")
        require("already holds data" in err and "Nothing was imported" in err, err)
        directory = os.path.join(scratch, "functions")
        os.mkdir(directory)
        with options.server(KEPT, directory=directory) as server, server.connect() as ours:
            must(ours, "FUNCTION", "LOAD",
                 "#!lua name=here\nredis.register_function('f', function() return 1 end)")
        code, out, err = run_import(options, path, directory)
        require_equal(code, 1, "a directory with functions alone")
        require("already holds data (0 keys, 1 function libraries)" in err, err)


def test_a_running_redis_is_imported(options):
    """The same from a running server, by a user that may only read, while others write: what is
    there all the time is met as it is. A user that may not read expiries, or not select a database,
    imports nothing."""
    with Server("redis-server") as redis, harness.scratch() as scratch:
        with redis.connect() as connection:
            fill(connection)
            rights = ["on", ">secret", "~*", "+@read", "+info", "+select", "+function|dump"]
            must(connection, "ACL", "SETUSER", "reader", *rights)
            must(connection, "ACL", "SETUSER", "timeless", *rights, "-pexpiretime")
            must(connection, "ACL", "SETUSER", "fixed", *rights, "-select")
        directory = os.path.join(scratch, "data")
        address = f"127.0.0.1:{redis.port}"
        code, _, err = run_import(options, "--redis", address, "--user", "reader", directory,
                                  REDISCLI_AUTH="wrong")
        require_equal(code, 1, "a wrong password")
        require("WRONGPASS" in err, err)
        for user, command in (("timeless", "pexpiretime"), ("fixed", "select")):
            code, _, err = run_import(options, "--redis", address, "--user", user, directory,
                                      REDISCLI_AUTH="secret")
            require_equal(code, 1, f"a user who may not {command}")
            require("NOPERM" in err and command in err and "Nothing was imported" in err, err)
        ended = threading.Event()

        def write():
            with redis.connect() as connection:
                number = 0
                while not ended.is_set():
                    number += 1
                    connection.call("SET", f"written:{number % 500}", number, "PX", 5)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            code, out, err = run_import(options, "--redis", address, "--user", "reader", directory,
                                        REDISCLI_AUTH="secret")
        finally:
            ended.set()
            writer.join()
        require_equal(code, 0, err)
        with options.server(KEPT, directory=directory) as server, redis.connect() as theirs:
            with server.connect() as ours:
                for connection in (theirs, ours):
                    harness.wait_until(
                        lambda who=connection: not who.call("KEYS", "written:*").tree[1],
                        what="the end of what has expired")
                compare(theirs, ours)


def say_version_6(command, reply):
    if command[0] == b"INFO":
        reply.raw = reply.raw.replace(b"redis_version:7.0.", b"redis_version:6.2.")
    return PASS


def test_a_running_redis_before_version_7(options):
    """A Redis that knows neither PEXPIRETIME nor functions is imported, with its expiries."""
    missing = {"rename-command": ["FUNCTION ", "PEXPIRETIME "]}
    with Server("redis-server", missing) as redis, harness.scratch() as scratch, \
            Proxy(redis.port, say_version_6) as old, redis.connect() as theirs:
        must(theirs, "SET", "expires", "v", "PX", HOUR_MS)
        must(theirs, "SET", "stays", "v")
        directory = os.path.join(scratch, "data")
        code, out, err = run_import(options, "--redis", f"127.0.0.1:{old.port}", directory)
        require_equal(code, 0, err)
        require("6.2." in err and "1 keys with an expiry" in out, err + out)
        with options.server(KEPT, directory=directory) as server, server.connect() as ours:
            require_equal(ours.call("MGET", "expires", "stays").value, [b"v", b"v"], "values")
            require_equal(ours.call("PTTL", "stays").value, -1, "no expiry")
            ahead_ms = ours.call("PTTL", "expires").value - theirs.call("PTTL", "expires").value
            require(abs(ahead_ms) < 60_000, f"the expiry is {ahead_ms} ms late")


def test_a_database_that_is_not_here(options):
    """Keys of a database that only the running Redis has are not left out: the import ends."""
    with Server("redis-server", {"databases": "20"}) as redis, harness.scratch() as scratch, \
            redis.connect() as connection:
        must(connection, "SET", "k", "v")
        must(connection, "SELECT", 18)
        must(connection, "SET", "k", "v")
        code, _, err = run_import(options, "--redis", f"127.0.0.1:{redis.port}",
                                  os.path.join(scratch, "data"))
        require(code == 1 and "only 16 databases are supported" in err, err)


def run_on_terminal(options, *arguments):
    """Standard error of an import on a terminal: the lines, each of which replaces the last."""
    ours, theirs = pty.openpty()
    done = subprocess.Popen([program(options), *map(str, arguments)], stdout=subprocess.DEVNULL,
                            stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            piece = b""
        if not piece:
            break
        shown += piece
    os.close(ours)
    require_equal(done.wait(60), 0, shown.decode())
    require(shown.endswith(b"\r\n"), "the last line is not ended")
    return shown.decode().rstrip("\r\n").split("\r\x1b[K")[1:]


def test_progress_is_shown(options):
    """On a terminal one line counts up keys, megabytes, per cent; elsewhere a line is a step."""
    keys = 150000
    directives = {"enable-debug-command": "yes"}
    with Server("redis-server", directives) as redis, harness.scratch() as scratch:
        with redis.connect(timeout_s=60.0) as connection:
            must(connection, "DEBUG", "POPULATE", keys, "key", 100)
            must(connection, "SAVE")
        sources = [["--redis", f"127.0.0.1:{redis.port}"],
                   [os.path.join(redis.directory, "dump.rdb")]]
        for number, source in enumerate(sources):
            directory = os.path.join(scratch, f"data{number}")
            lines = run_on_terminal(options, *source, directory)
            require("7.0.15" in lines[0], lines[0])
            require(lines[-1].startswith(f"writing {keys:,} keys to {directory}"), lines[-1])
            counted = [re.fullmatch(r"([\d,]+) keys, [\d.]+ MB, (\d+) %, [\d,]+ keys/s", line)
                       for line in lines[1:-1]]
            # A file is read within the time after which the first count comes, on a fast machine.
            require(all(counted) and (counted or number == 1), f"{source[0]}: {lines}")
            figures = [(int(line.group(1).replace(",", "")), int(line.group(2)))
                       for line in counted]
            require(figures == sorted(figures), f"{figures} goes back")
            require(all(0 < count <= keys and part <= 100 for count, part in figures), f"{figures}")
        code, out, err = run_import(options, *sources[1], os.path.join(scratch, "plain"))
        require_equal(code, 0, err)
        lines = err.splitlines()
        require_equal(lines[0], "written by Redis 7.0.15")
        require(f"writing {keys:,} keys to {os.path.join(scratch, 'plain')}" in lines, err)
        code, out, err = run_import(options, "--quiet", *sources[1], os.path.join(scratch, "quiet"))
        require(code == 0 and "keys" not in err, err)
        require(f"{keys:,} keys" in out, out)


def test_damaged_files_are_refused(options):
    """A file that is cut anywhere, or has any other byte in it, is refused with the place, and
    leaves an empty directory."""
    with Server("redis-server") as redis, harness.scratch() as scratch:
        with open(saved_file(redis), "rb") as file:
            whole = file.read()
        rng = random.Random(5)
        directory = os.path.join(scratch, "data")
        path = os.path.join(scratch, "damaged.rdb")
        for number in range(24):
            damaged = bytearray(whole)
            place = rng.choice([rng.randrange(len(whole)), rng.randrange(200), len(whole) - 4])
            if number % 2 == 0:
                del damaged[place:]
            else:
                damaged[place] ^= 1 << rng.randrange(8)
            with open(path, "wb") as file:
                file.write(damaged)
            code, _, err = run_import(options, "--quiet", path, directory)
            require_equal(code, 1, f"damage at {place}")
            require("at byte" in err and "Nothing was imported" in err, err)
        with open(path, "wb") as file:
            file.write(whole + b"*1")
        code, _, err = run_import(options, path, directory)
        require(code == 1 and "2 bytes follow" in err, err)
        with open(path, "wb") as file:
            file.write(whole)
        code, _, err = run_import(options, path, directory)
        require_equal(code, 0, err)


def rdb_file(version, *items):
    """A file of these bytes, without a checksum."""
    return b"REDIS%04d" % version + b"".join(items) + b"\xff" + bytes(8)


def text(value):
    return bytes([len(value)]) + value


def ziplist(*entries):
    packed = b""
    before = 0
    for entry in entries:
        made = bytes([before]) + text(entry)
        packed += made
        before = len(made)
    size = 10 + len(packed) + 1
    return text(struct.pack("<IIH", size, size - 1 - before, len(entries)) + packed + b"\xff")


def test_files_of_older_versions_are_read(options):
    """The encodings that Redis 2.8 to 6.2 wrote, made by hand from their description."""
    zipmap = text(b"\x01\x01f\x01\x00v\xff")
    file = rdb_file(
        6, b"\xfe\x00",
        b"\x0a" + text(b"list") + ziplist(b"a", b"b"),
        b"\x09" + text(b"hash") + zipmap,
        b"\x0d" + text(b"hash2") + ziplist(b"f", b"v"),
        b"\x0c" + text(b"sorted") + ziplist(b"m", b"2"),
        b"\x03" + text(b"sorted2") + b"\x02" + text(b"m") + text(b"1.5") + text(b"n") + b"\xfe",
        b"\x0b" + text(b"set") + text(struct.pack("<IIhh", 2, 2, -5, 7)),
        b"\x0e" + text(b"list2") + b"\x02" + ziplist(b"a") + ziplist(b"b"),
        b"\x01" + text(b"list3") + b"\x02" + text(b"x") + b"\xc0\x7f",
        b"\xfd" + struct.pack("<I", 2000000000) + b"\x00" + text(b"late") + text(b"v"),
        b"\xfd" + struct.pack("<I", 1000000000) + b"\x00" + text(b"over") + text(b"v"),
        b"\xf8\x05" + b"\xfc" + struct.pack("<Q", 4000000000123) + b"\xf9\x07" + b"\x00"
        + text(b"late2") + text(b"v"))
    questions = [
        (["LRANGE", "list", 0, -1], [b"a", b"b"]), (["HGETALL", "hash"], [b"f", b"v"]),
        (["HGETALL", "hash2"], [b"f", b"v"]), (["ZSCORE", "sorted", "m"], b"2"),
        (["ZRANGE", "sorted2", 0, -1, "WITHSCORES"], [b"m", b"1.5", b"n", b"inf"]),
        (["SMEMBERS", "set"], [b"-5", b"7"]), (["LRANGE", "list2", 0, -1], [b"a", b"b"]),
        (["LRANGE", "list3", 0, -1], [b"x", b"127"]), (["EXPIRETIME", "late"], 2000000000),
        (["PEXPIRETIME", "late2"], 4000000000123), (["EXISTS", "over"], 0), (["DBSIZE"], 10)]
    with harness.scratch() as scratch:
        path = os.path.join(scratch, "old.rdb")
        with open(path, "wb") as out:
            out.write(file)
        code, out, err = run_import(options, path, os.path.join(scratch, "data"))
        require_equal(code, 0, err)
        require("1 keys had expired" in out, out)
        with options.server(KEPT, directory=os.path.join(scratch, "data")) as server:
            with server.connect() as connection:
                for question, answer in questions:
                    require_equal(connection.call(*question).value, answer, question)


def test_what_is_not_here_is_named(options):
    """Files of other versions, modules, unknown types and databases are refused by name."""
    module_id = b"\x81" + struct.pack(">Q", (0b000001 << 58) | 7)  # BAAAAAAAA, version 7
    key = text(b"k")
    cases = [
        (rdb_file(11), "version 0011"), (rdb_file(5), "version 0005"), (b"REDIX0010", "not an RDB"),
        (b"*1\r\n$4\r\nPING\r\n", "not an RDB"),
        (rdb_file(10, b"\xf7" + module_id), "data of the module 'BAAAAAAAA'"),
        (rdb_file(10, b"\x07" + key + module_id), "'BAAAAAAAA'"),
        (rdb_file(10, b"\x06" + key), "a module's value"),
        (rdb_file(10, b"\x15" + key), "Redis 7.2"),
        (rdb_file(10, b"\x63" + key), "99 is not a type"),
        (rdb_file(10, b"\xfe\x10\x00" + key + text(b"v")), "only 16 databases are supported"),
        (rdb_file(10, b"\x00" + key + text(b"v") + b"\x00" + key + text(b"v")), "duplicate key"),
        (rdb_file(10, b"\xf5" + text(b"return 1")), "Missing library metadata"),
        (rdb_file(10)[:-9], "without its end mark"),
        (rdb_file(10)[:-1], "within its checksum")]
    with harness.scratch() as scratch:
        path = os.path.join(scratch, "x.rdb")
        for file, words in cases:
            with open(path, "wb") as out:
                out.write(file)
            code, _, err = run_import(options, path, os.path.join(scratch, "data"))
            require(code == 1 and words in err and "at byte" in err, f"{words}: {err}")
            # What is no such file at all leaves no directory.
            is_known = words not in ("version 0011", "version 0005", "not an RDB")
            require_equal(os.path.exists(os.path.join(scratch, "data")), is_known, words)
        code, _, err = run_import(options, os.path.join(scratch, "none"), scratch)
        require(code == 1 and "No such file" in err, err)
        nowhere = os.path.join(scratch, "nowhere")
        code, _, err = run_import(options, os.path.join(scratch, "none"), nowhere)
        require(code == 1 and "No such file" in err, err)
        require_equal(run_import(options, path)[0], 2, "wrong usage")
        code, _, err = run_import(options, "--redis", "127.0.0.1:1", nowhere)
        require(code == 1 and "cannot connect" in err, err)
        require(not os.path.exists(nowhere), "a directory for nothing")
        with options.server() as server, server.connect() as connection:
            must(connection, "Q.ADD", "exec", "a", "1")
            # What follows can be imported: it ends all the same.
            must(connection, "SELECT", 1)
            must(connection, "SET", "k", "v")
            code, _, err = run_import(options, "--redis", f"127.0.0.1:{server.port}",
                                      os.path.join(scratch, "data"))
        require(code == 1 and 'the key "exec" of database 0: ' in err and "`sluice backup`" in err,
                err)


def test_a_checkpoint_that_cannot_be_written(options):
    """Where the data do not fit the import fails, though everything was read; later it succeeds."""
    size = 4 << 20
    value = random.Random(7).randbytes(size)
    with harness.scratch() as scratch:
        path = os.path.join(scratch, "large.rdb")
        with open(path, "wb") as file:
            file.write(rdb_file(10, b"\x00" + text(b"large") + b"\x80" + struct.pack(">I", size) +
                                value))
        directory = os.path.join(scratch, "data")
        # No file grows beyond two megabytes: an error of that write, not the end of the process.
        limited = "trap '' XFSZ; ulimit -f 2048; exec \"$@\""
        done = subprocess.run(["sh", "-c", limited, "sh", program(options), path, directory],
                              capture_output=True, text=True, timeout=60, check=False)
        require_equal(done.returncode, 1, done.stdout + done.stderr)
        require("Nothing was imported" in done.stderr, done.stderr)
        code, _, err = run_import(options, path, directory)
        require_equal(code, 0, err)
        with options.server(KEPT, directory=directory) as server, server.connect() as connection:
            require_equal(connection.call("GET", "large").value, value, "the value")


def test_the_version(options):
    """It says its version, which is the server's."""
    for name in ("sluice-import", "sluice-journal"):
        tool = os.path.join(os.path.dirname(options.program), name)
        shown = subprocess.run([tool, "--version"], stdout=subprocess.PIPE, text=True, check=True)
        server = subprocess.run([options.program, "--version"], stdout=subprocess.PIPE, text=True,
                                check=True)
        version = re.search(r"v=(\S+)", server.stdout)[1]
        require_equal(shown.stdout, f"{name} {version}\n", name)


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
