#!/usr/bin/python3
"""Features of later Redis and Valkey that Redis 7.0 lacks: SET … IFEQ, DELIFEQ and others."""

import sys
import time

import harness
from harness import closes, info, require, require_equal, wait_until
from harness.surroundings import slow_disk


WRONG_TYPE = b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
SYNTAX = b"-ERR syntax error\r\n"


def expect(connection, command, reply):
    """One command, its words without blanks, and the bytes that answer it."""
    require_equal(connection.call(*command.split(" ")).raw, reply, command)


def expect_all(connection, script):
    for command, reply in script:
        expect(connection, command, reply)


def test_zrank_withscore(options):
    """ZRANK and ZREVRANK … WITHSCORE reply the score too; other words are Redis 7.0's error."""
    with options.server() as server, server.connect() as connection:
        expect_all(connection, (
            ("ZADD z 1 a 2.5 b 3 c", b":3\r\n"),
            ("ZRANK z b WITHSCORE", b"*2\r\n:1\r\n$3\r\n2.5\r\n"),
            ("ZREVRANK z a withscore", b"*2\r\n:2\r\n$1\r\n1\r\n"),
            ("ZRANK z nosuch WITHSCORE", b"*-1\r\n"),
            ("ZRANK nosuch a WITHSCORE", b"*-1\r\n"),
            ("ZRANK z nosuch", b"$-1\r\n"),
            ("ZRANK z b", b":1\r\n"),
            ("ZRANK z b SCORE", b"-ERR wrong number of arguments for 'zrank' command\r\n"),
            ("ZREVRANK z b WITHSCORE x",
             b"-ERR wrong number of arguments for 'zrevrank' command\r\n"),
            ("SET s x", b"+OK\r\n"),
            ("ZRANK s b WITHSCORE", WRONG_TYPE)))
        connection.call("HELLO", "3")
        expect_all(connection, (("ZRANK z b WITHSCORE", b"*2\r\n:1\r\n,2.5\r\n"),
                                ("ZRANK z nosuch WITHSCORE", b"_\r\n")))


def test_set_ifeq(options):
    """SET … IFEQ puts the value only over the one that is named (Valkey 8.1)."""
    with options.server() as server, server.connect() as connection:
        expect_all(connection, (
            ("SET k new IFEQ old", b"$-1\r\n"),
            ("EXISTS k", b":0\r\n"),
            ("SET k one", b"+OK\r\n"),
            ("SET k two IFEQ other", b"$-1\r\n"),
            ("GET k", b"$3\r\none\r\n"),
            ("SET k two IFEQ one", b"+OK\r\n"),
            ("SET k three IFEQ one GET", b"$3\r\ntwo\r\n"),
            ("SET k three ifeq two GET EX 100", b"$3\r\ntwo\r\n"),
            ("GET k", b"$5\r\nthree\r\n"),
            ("TTL k", b":100\r\n"),
            ("SET k four IFEQ three KEEPTTL", b"+OK\r\n"),
            ("TTL k", b":100\r\n"),
            ("SET nosuch x IFEQ y GET", b"$-1\r\n"),
            ("SET k five IFEQ four NX", SYNTAX),
            ("SET k five XX IFEQ four", SYNTAX),
            ("SET k five IFEQ four IFEQ four", SYNTAX),
            ("SET k five IFEQ", SYNTAX),
            ("GETEX k IFEQ four", SYNTAX),
            ("GET k", b"$4\r\nfour\r\n"),
            ("LPUSH l x", b":1\r\n"),
            ("SET l y IFEQ x", WRONG_TYPE),
            ("SET l y IFEQ x GET", WRONG_TYPE),
            # Returning the old value requires the right to read it.
            ("ACL SETUSER writer on nopass +set %W~*", b"+OK\r\n"),
            ("AUTH writer x", b"+OK\r\n"),
            ("SET k six", b"+OK\r\n")))
        reply = connection.call("SET", "k", "seven", "IFEQ", "six").raw
        require(reply.startswith(b"-NOPERM"), reply)


def test_delifeq(options):
    """DELIFEQ deletes a string that is the given one (Valkey 9), with its notification."""
    with options.server({"appendonly": "yes"}) as server:
        with server.connect() as connection, server.connect() as listener:
            connection.call("CONFIG", "SET", "notify-keyspace-events", "Eg")
            listener.call("SUBSCRIBE", "__keyevent@0__:del")
            expect_all(connection, (
                ("DELIFEQ k x", b":0\r\n"),
                ("SET k x", b"+OK\r\n"),
                ("DELIFEQ k y", b":0\r\n"),
                ("EXISTS k", b":1\r\n"),
                ("DELIFEQ k x", b":1\r\n"),
                ("EXISTS k", b":0\r\n"),
                ("LPUSH l x", b":1\r\n"),
                ("DELIFEQ l x", WRONG_TYPE),
                ("DELIFEQ l", b"-ERR wrong number of arguments for 'delifeq' command\r\n")))
            message = listener.read_reply().raw
            require(message.endswith(b"__:del\r\n$1\r\nk\r\n"), message)
        server.kill()
        server.start()
        with server.connect() as connection:
            expect(connection, "EXISTS k", b":0\r\n")


def test_hscan_novalues(options):
    """HSCAN … NOVALUES replies the fields alone, of small hashes and large ones."""
    with options.server() as server, server.connect() as connection:
        connection.call("HSET", "h", "f1", "v1", "f2", "v2")
        expect_all(connection, (
            ("HSCAN h 0 NOVALUES", b"*2\r\n$1\r\n0\r\n*2\r\n$2\r\nf1\r\n$2\r\nf2\r\n"),
            ("HSCAN h 0 MATCH f2 NOVALUES COUNT 5", b"*2\r\n$1\r\n0\r\n*1\r\n$2\r\nf2\r\n"),
            ("HSCAN nosuch 0 NOVALUES", b"*2\r\n$1\r\n0\r\n*0\r\n"),
            ("HSCAN h 0 NOVALUES x", SYNTAX),
            ("SADD s x", b":1\r\n"),
            ("SSCAN s 0 NOVALUES", SYNTAX),
            ("SCAN 0 NOVALUES", SYNTAX)))
        for number in range(1000):
            connection.call("HSET", "large", f"f{number}", f"v{number}")
        found, cursor = [], b"0"
        while True:
            reply = connection.call("HSCAN", "large", cursor, "NOVALUES", "COUNT", "50").value
            cursor = reply[0]
            found += reply[1]
            if cursor == b"0":
                break
        require_equal(set(found), {b"f%d" % number for number in range(1000)})


def test_xread_last(options):
    """XREAD with the id + replies the last entry that is there; without one it waits for the next.
    """
    with options.server() as server, server.connect() as connection:
        last = b"*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n%s\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"
        for entry in ("1-1", "1-2", "2-0"):
            connection.call("XADD", "s", entry, "f", "v")
        expect_all(connection, (
            ("XREAD STREAMS s +", last % b"2-0"),
            ("XREAD COUNT 10 STREAMS nosuch s + +", last % b"2-0"),
            ("XDEL s 2-0", b":1\r\n"),
            ("XREAD STREAMS s +", last % b"1-2"),
            ("XREAD STREAMS nosuch +", b"*-1\r\n"),
            ("XTRIM s MAXLEN 0", b":2\r\n"),
            ("XREAD STREAMS s +", b"*-1\r\n")))
        connection.call("XGROUP", "CREATE", "s", "g", "0")
        reply = connection.call("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", "+").raw
        require(reply.startswith(b"-ERR"), reply)
        connection.send("XREAD", "BLOCK", "0", "STREAMS", "s", "+")
        with server.connect() as other:
            wait_until(lambda: info(other)["blocked_clients"] == "1", what="the blocking")
            other.call("XADD", "s", "3-0", "f", "v")
        require_equal(connection.read_reply().raw, last % b"3-0")


def test_client_kill_maxage(options):
    """CLIENT KILL MAXAGE ends connections that are at least so old."""
    with options.server() as server:
        with server.connect() as old:
            old_id = old.call("CLIENT", "ID").value

            def age_s(connection):
                line = connection.call("CLIENT", "LIST", "ID", old_id).value.decode()
                return int(line.split(" age=")[1].split(" ")[0])

            with server.connect() as killer:
                expect_all(killer, (
                    ("CLIENT KILL MAXAGE 0", b"-ERR maxage should be greater than 0\r\n"),
                    ("CLIENT KILL MAXAGE -1", b"-ERR maxage should be greater than 0\r\n"),
                    ("CLIENT KILL MAXAGE x",
                     b"-ERR maxage is not an integer or out of range\r\n"),
                    ("CLIENT KILL MAXAGE 100000", b":0\r\n")))
            wait_until(lambda: age_s(old) >= 2, what="its age")
            with server.connect() as killer:
                reply = killer.call("CLIENT", "KILL", "MAXAGE", "2", "ID", old_id).raw
                require_equal(reply, b":1\r\n")
            require(closes(old), "it is closed")


def test_client_setinfo(options):
    """What CLIENT SETINFO said is in CLIENT LIST; without it the line is Redis 7.0's."""
    with options.server() as server, server.connect() as connection:
        line = connection.call("CLIENT", "INFO").value.decode()
        require(line.endswith(" resp=2\n"), line)
        connection.call("CLIENT", "SETINFO", "LIB-NAME", "mine")
        require(connection.call("CLIENT", "INFO").value.endswith(b" lib-name=mine lib-ver=\n"),
                "the name")
        connection.call("CLIENT", "SETINFO", "LIB-VER", "1.2")
        with server.connect() as other:
            lines = other.call("CLIENT", "LIST").value.decode()
            require(" lib-name=mine lib-ver=1.2\n" in lines, lines)


def test_client_no_touch(options):
    """CLIENT NO-TOUCH is ON or OFF, and CLIENT LIST shows it."""
    with options.server() as server, server.connect() as connection:
        def flags():
            return connection.call("CLIENT", "INFO").value.split(b" flags=")[1].split(b" ")[0]

        expect_all(connection, (("CLIENT NO-TOUCH x", SYNTAX),
                                ("CLIENT NO-TOUCH on", b"+OK\r\n")))
        require_equal(flags(), b"T")
        expect(connection, "CLIENT NO-EVICT on", b"+OK\r\n")
        require_equal(flags(), b"eT")
        expect(connection, "CLIENT NO-TOUCH OFF", b"+OK\r\n")
        require_equal(flags(), b"e")


HERE = b"*2\r\n:1\r\n:0\r\n"
NOWHERE = b"*2\r\n:0\r\n:0\r\n"
NO_JOURNAL = (b"-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.\r\n")


def test_waitaof_without_a_journal(options):
    """WAITAOF: what is wrong is told; without a journal nothing is acknowledged."""
    with options.server({"appendonly": "no"}) as server, server.connect() as connection:
        expect_all(connection, (
            ("WAITAOF 2 0 0", b"-ERR value is out of range, value must between 0 and 1\r\n"),
            ("WAITAOF x 0 0", b"-ERR value is not an integer or out of range\r\n"),
            ("WAITAOF 0 -1 0", b"-ERR value is out of range, must be positive\r\n"),
            ("WAITAOF 0 x 0", b"-ERR value is out of range, must be positive\r\n"),
            ("WAITAOF 0 0 x", b"-ERR timeout is not an integer or out of range\r\n"),
            ("WAITAOF 0 0 -1", b"-ERR timeout is negative\r\n"),
            ("WAITAOF 0 0", b"-ERR wrong number of arguments for 'waitaof' command\r\n"),
            ("WAITAOF 1 0 0", NO_JOURNAL),
            ("SET k v", b"+OK\r\n"),
            ("WAITAOF 0 0 0", NOWHERE),
            ("WAITAOF 0 1 50", NOWHERE)))


def test_waitaof(options):
    """WAITAOF has the journal synced at once, in every mode of appendfsync."""
    for mode in "always", "everysec", "no":
        directives = {"appendonly": "yes", "appendfsync": mode}
        with options.server(directives) as server, server.connect() as connection:
            syncs = int(info(connection)["sluice_journal_syncs"])
            began = time.monotonic()
            for number in range(20):
                connection.send("SET", "k", str(number))
                connection.send("WAITAOF", "1", "0", "0")
                require_equal(connection.read_reply().raw, b"+OK\r\n")
                require_equal(connection.read_reply().raw, HERE, mode)
            require(time.monotonic() - began < 8, f"{mode}: each has waited for the clock")
            require(int(info(connection)["sluice_journal_syncs"]) - syncs >= 20, mode)
            # Nobody else waits for replicas that never come; in a transaction nobody waits.
            began = time.monotonic()
            expect_all(connection, (("SET k x", b"+OK\r\n"), ("WAITAOF 0 1 300", HERE),
                                    ("WAITAOF 1 1 300", HERE)))
            require(time.monotonic() - began >= 0.6, "the time-out")
            expect_all(connection, (
                ("MULTI", b"+OK\r\n"), ("WAITAOF 1 1 0", b"+QUEUED\r\n"),
                ("SET k y", b"+QUEUED\r\n"), ("WAITAOF 1 0 0", b"+QUEUED\r\n"),
                ("EXEC", b"*3\r\n" + HERE + b"+OK\r\n" + NOWHERE)))
            connection.call("DEL", "k")
            require_equal(connection.call("WAITAOF", "1", "0", "0").raw, HERE)
            require_equal(connection.call("WAITAOF", "1", "0", "0").raw, HERE, "twice")
            connection.send("WAITAOF", "0", "1", "0")
            with server.connect() as other:
                wait_until(lambda: info(other)["blocked_clients"] == "1", what="it waits")
                other.call("CONFIG", "SET", "appendonly", "no")
                expect(other, "WAITAOF 1 0 0", NO_JOURNAL)


def test_waitaof_on_a_slow_disk(options):
    """A client in WAITAOF blocks nobody, and its time-out is reported."""
    sync_s = 1.0  # Others need much less, also beside a pause of the machine.
    with slow_disk(sync_s) as environment:
        directives = {"appendonly": "yes", "appendfsync": "no"}
        with options.server(directives, environment=environment) as server:
            with server.connect(30) as connection, server.connect(30) as other:
                waits = []
                # This process may sleep for as long as the sync takes.
                while len(waits) < 3 and "1" not in waits:
                    connection.call("SET", "k", "v")
                    began = time.monotonic()
                    connection.send("WAITAOF", "1", "0", "0")
                    wait_until(lambda: info(other)["blocked_clients"] == "1", what="it waits")
                    for number in range(20):
                        other.call("SET", f"k{number}", "v")
                    waits.append(info(other)["blocked_clients"])
                    require_equal(connection.read_reply().raw, HERE)
                require("1" in waits, "others are answered meanwhile")
                require(time.monotonic() - began >= sync_s * 0.9, "it has waited for the sync")
                connection.call("SET", "k", "w")
                expect(connection, "WAITAOF 1 0 20", NOWHERE)


def test_client_sizes(options):
    """CLIENT LIST tells how large buffers and arguments are."""
    with options.server() as server:
        with server.connect() as connection, server.connect() as other:
            name = "k" * 5000

            def fields(client_name):
                for line in other.call("CLIENT", "LIST").value.decode().split("\n"):
                    if f" name={client_name} " in line:
                        return dict(field.split("=", 1) for field in line.split(" "))
                return {}

            other.call("CLIENT", "SETNAME", "asks")
            connection.call("CLIENT", "SETNAME", "waits")
            own = fields("asks")
            require_equal((own["qbuf"], own["argv-mem"]), ("26", "10"))
            connection.send("BLPOP", name, "0")
            wait_until(lambda: fields("waits")["flags"] == "b", what="the blocking")
            require_equal(fields("waits")["argv-mem"], str(len("BLPOP") + len(name) + 1))
            connection.send("GET", "x")
            wait_until(lambda: fields("waits")["qbuf"] == "20", what="what it has sent ahead")
        with server.connect() as connection, server.connect() as other:
            other.call("CLIENT", "SETNAME", "asks")
            connection.call("CLIENT", "SETNAME", "queues")
            require_equal(fields("queues")["multi-mem"], "0")
            require(int(fields("queues")["rbs"]) > 0, "the buffer of what was answered")
            connection.call("MULTI")
            before = int(fields("queues")["tot-mem"])
            connection.call("SET", "k", "v" * 5000)
            after = fields("queues")
            require(5000 < int(after["multi-mem"]) < 6000, after)
            require(int(after["tot-mem"]) > before + 5000, after)
            connection.call("DISCARD")
            require_equal(fields("queues")["multi-mem"], "0")


def test_command_list(options):
    """COMMAND LIST names subcommands too."""
    with options.server() as server, server.connect() as connection:
        listed = set(connection.call("COMMAND", "LIST").value)
        everything = set(connection.call("COMMAND", "LIST", "FILTERBY", "PATTERN", "*").value)
        require_equal(sorted(everything - listed), [], "what is not listed")
        require(len({name for name in listed if b"|" in name}) >= 126, "subcommands")
        for name in (b"config|get", b"xinfo|stream", b"client|setinfo"):
            require(name in listed, name)


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
