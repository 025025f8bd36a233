#!/usr/bin/python3
"""RENAME, MOVE and the end of large values: nobody waits for them, and a checkpoint beside them is
right."""

import pathlib
import random
import sys
import time

import harness
from harness import info, require, require_equal, rss_bytes, wait_until
from harness.holds import FILLS, TRIES, Hold, IoThreads, best_of, fill, require_short

MANY = 200_000
LONG = 64 << 20
WAITED_AT = 20_000
MOST_WAITING_MS = 100


def ran_ms(server, call, *words):
    """What the I/O threads run for a command that is no error."""
    threads = IoThreads(server.pid)
    before = sum(threads.ran_ms())
    reply = call(*words)
    ran = sum(threads.ran_ms()) - before
    require(not reply.is_error, reply.raw)
    return ran


def require_shortly(server, call, commands, what, prepare=None):
    """Each of the commands takes little time of the I/O threads; measured as often as holds are,
    each time after `prepare`."""
    def measure():
        if prepare:
            prepare()
        return Hold(max(ran_ms(server, call, *words) for words in commands), 0, 0)
    require_short(measure, what)


def wait_until_written(connection):
    wait_until(lambda: info(connection).get("sluice_journal_unwritten_bytes", "0") == "0")


def test_nobody_waits(options):
    """RENAME, MOVE and RENAMENX of what is large take no time of the I/O thread."""
    with options.server({"appendonly": "yes"}) as server, server.connect() as connection:
        call = connection.call
        for key, command in FILLS.items():
            fill(call, key, command, MANY)
        call("SETRANGE", "string", LONG - 1, "x")
        wait_until_written(connection)

        def move(*words):
            reply = call(*words)
            require(reply.raw in (b"+OK\r\n", b":1\r\n"), f"{words}: {reply}")
            return reply

        for key in [*FILLS, "string"]:
            there_and_back = [
                ("RENAME", key, "a longer name"), ("MOVE", "a longer name", "1"), ("SELECT", "1"),
                ("RENAMENX", "a longer name", "n"), ("MOVE", "n", "0"), ("SELECT", "0"),
                ("RENAME", "n", key)]
            require_shortly(server, move, there_and_back, key)


def test_nobody_waits_for_the_end(options):
    """What is large, and what is many, is freed beside the I/O threads: DEL, UNLINK, SET over it,
    its expiry, FLUSHDB and FLUSHALL."""
    with options.server({"appendonly": "yes"}) as server, server.connect() as connection:
        call = connection.call
        for words in (("DEL",), ("UNLINK",), ("SET", "x"), ("PEXPIRE", "-1"), ("FLUSHDB",)):
            for key, command in FILLS.items():
                ending = words if words[0] == "FLUSHDB" else (words[0], key, *words[1:])

                def refill(key=key, command=command):
                    call("FLUSHALL")
                    fill(call, key, command, MANY)
                require_shortly(server, call, [ending], f"{words[0]} of {key}", refill)
                require_equal(call("DBSIZE").value, 1 if words[0] == "SET" else 0, "keys")

        def fill_with_many():
            fill(call, "key", "redis.call('SET', KEYS[1] .. i, 'value')", MANY)
            fill(call, "queue", "redis.call('Q.ADD', KEYS[1] .. i, 'job', 'payload')", MANY // 10)
            for i in range(32):  # there are adopted keys in each shard
                call("Q.ADOPT", f"queue-{i}", "PENDING", f"waiting-{i}", "ACTIVE", f"running-{i}")
            wait_until_written(connection)
        require_shortly(server, call, [("FLUSHALL",)], "FLUSHALL", fill_with_many)
        wait_until(lambda: info(connection)["lazyfree_pending_objects"] == "0", what="the freeing")
        require(int(info(connection)["lazyfreed_objects"]) > 0, "INFO counts them")


def test_nobody_waits_for_queues_of_several_databases(options):
    """FLUSHDB of one of two databases with many queues, and FLUSHALL of both."""
    with options.server({"appendonly": "yes"}) as server, server.connect(60) as connection:
        call = connection.call

        def fill_both():
            for database in ("2", "1"):
                call("SELECT", database)
                if call("DBSIZE").value == 0:
                    fill(call, "queue", "redis.call('Q.ADD', KEYS[1] .. i, 'job', 'payload')",
                         MANY // 5)
            wait_until_written(connection)
        require_shortly(server, call, [("FLUSHDB",)], "FLUSHDB", fill_both)
        require_equal(call("DBSIZE").value, 0, "keys")
        require_shortly(server, call, [("FLUSHALL",)], "FLUSHALL", fill_both)
        wait_until(lambda: info(connection)["lazyfree_pending_objects"] == "0", what="the freeing")


def test_nobody_waits_for_a_configuration(options):
    """Q.CONFIG of what no group or key inherits, of one name, or of what is as it was, where
    groups, keys and rules are many. (Work in slices: queue_reconfigure_test.cc.)"""
    with options.server({"appendonly": "yes"}) as server, server.connect() as connection:
        call = connection.call
        fill(call, "queue", "redis.call('Q.ADD', KEYS[1], i, 'payload', 'GROUP', 'g' .. i, "
             "'KEY', 'k' .. i)", MANY)
        fill(call, "queue", "redis.call('Q.CONFIG', KEYS[1], 'KEY', 'r' .. i, 'SET', "
             "'max_active', '2')", MANY // 4)
        wait_until_written(connection)
        commands = [("Q.CONFIG", "queue", *words.split()) for words in (
            "SET lease_ms 5000 max_active 10", "SET fair off", "GROUP g7 SET max_active 1",
            "GROUP g7 RESET", "KEY r7 SET max_active 1", "KEY r7 SET max_active 1",
            "KEY k7 SET rate 5/1000", "GROUP g* RESET", "RESET")]

        def as_before():
            for words in ("KEY r7 SET max_active 2", "KEY k7 RESET"):
                require(not call("Q.CONFIG", "queue", *words.split()).is_error, words)
        require_shortly(server, call, commands, "Q.CONFIG", as_before)


def test_nobody_waits_for_a_copy(options):
    """COPY of a queue looks at its live jobs, not at the ended ones that it keeps."""
    with options.server({"appendonly": "yes"}) as server, server.connect() as connection:
        call = connection.call
        call("Q.CONFIG", "queue", "SET", "retain_completed", "1000000", "events", "0")
        fill(call, "queue", "redis.call('Q.ADD', KEYS[1], i, 'payload') "
             "redis.call('Q.CANCEL', KEYS[1], i)", 3 * MANY)
        call("Q.ADD", "queue", "live", "payload")
        wait_until_written(connection)
        require_shortly(server, call, [("COPY", "queue", "copy", "REPLACE")], "COPY")


def test_memory_usage_of_all_of_a_queue(options):
    """MEMORY USAGE counts jobs that wait for others, and rates that no job uses at the moment."""
    fills = {
        "needs": "redis.call('Q.ADD', KEYS[1], i, '', 'NEED', i - 1)",
        "rates": "redis.call('Q.ADD', KEYS[1], i, '', 'GROUP', 'group ' .. i) "
                 "redis.call('Q.POP', 1, KEYS[1]) redis.call('Q.ACK', KEYS[1], i, '*')"}
    with options.server() as server, server.connect() as connection:
        call = connection.call
        for key, command in fills.items():
            call("Q.CONFIG", key, "SET", "events", "0", "retain_completed", "0", "fencing",
                 "off")
            call("Q.CONFIG", key, "GROUP", "*", "SET", "rate", "1/3600000")
            if key == "needs":
                call("Q.ADD", key, "0", "")
            before = int(info(connection)["used_memory"])
            fill(call, key, command, MANY // 4)
            grown = int(info(connection)["used_memory"]) - before
            said = call("MEMORY", "USAGE", key).value
            print(f"{key}: {said} of {grown} bytes", flush=True)
            require(0.75 * grown < said < 1.25 * grown, f"{key}: {said} of {grown}")


def test_nobody_waits_for_a_look(options):
    """MEMORY USAGE of a queue, and pops with MATCH among many sets of keys, look at few things."""
    with options.server({"appendonly": "yes"}) as server, server.connect() as connection:
        call = connection.call
        fill(call, "queue", "redis.call('Q.ADD', KEYS[1], i, 'payload', 'KEY', 'all', "
             "'KEY', 'k' .. i)", MANY)
        wait_until_written(connection)
        require_shortly(server, call, [("MEMORY", "USAGE", "queue", "SAMPLES", "0")], "a look")
        require(call("MEMORY", "USAGE", "queue").value > 100 * MANY, "it counts the jobs")
        call("Q.CONFIG", "queue", "SET", "lease_ms", "600000")
        pops = []
        require_shortly(server, call, [("Q.POP", "1", "queue", "COUNT", "256", "MATCH", "all")],
                        "Q.POP with MATCH", lambda: pops.append(256))
        require_equal(call("Q.POP", "1", "queue", "MATCH", "all").value[0][3],
                      b"%d" % (sum(pops) + 1), "the order")


def test_nobody_waits_for_a_worker(options):
    """Pages of one worker's leases, and their ends, where it has very many."""
    with options.server({"appendonly": "yes"}) as server, server.connect() as connection:
        call = connection.call
        fill(call, "queue", "redis.call('Q.ADD', KEYS[1], i, 'payload')", MANY // 2)
        held = 0
        while jobs := call("Q.POP", "1", "queue", "WORKER", "w", "COUNT", "256", "LEASE",
                           "100000000", "BRIEF").value:
            held += len(jobs)
        require_equal(held, MANY // 2, "leases")
        wait_until_written(connection)
        look = ["Q.LIST", "queue", "BRIEF", "COUNT", "1"]
        commands = [[*look, *order, "CURSOR", cursor, "WHERE", "WORKER", "w"]
                    for order in ([], ["BY", "AGE"], ["BY", "AGE", "DESC"], ["BY", "DEADLINE"])
                    for cursor in ("0", call(*look, *order, "CURSOR", "0", "WHERE", "WORKER",
                                             "w").value[0])]
        require_shortly(server, call, commands, "Q.LIST of a worker")
        require_shortly(server, call, [("Q.NACK", "queue", "WHERE", "WORKER", "w")],
                        "Q.NACK of a worker")


def test_a_wait_at_many_keys(options):
    """What blocks at very many keys, or watches them, does not compare each with all others."""
    keys = [f"key{number}" for number in range(WAITED_AT)]
    count = str(WAITED_AT)
    with options.server() as server, server.connect(60) as connection:
        for words in (["BLPOP", *keys, "0.01"], ["BRPOP", *keys, "0.01"],
                      ["BZPOPMIN", *keys, "0.01"], ["BLMPOP", "0.01", count, *keys, "LEFT"],
                      ["BZMPOP", "0.01", count, *keys, "MIN"],
                      ["XREAD", "BLOCK", "10", "STREAMS", *keys, *["$"] * WAITED_AT],
                      ["Q.POP", count, *keys, "BLOCK", "10"], ["WATCH", *keys], ["UNWATCH"]):
            hold = best_of(lambda words=words: Hold(ran_ms(server, connection.call, *words), 0, 0),
                           MOST_WAITING_MS, 3 * TRIES)
            require(hold.ran_ms < MOST_WAITING_MS, f"{words[0]}: {hold.ran_ms:.1f} ms of CPU")
        # Each of them waits once at a key that is named often.
        with server.connect() as waiting:
            for words, add in ((["BLPOP", "l", "k", "l", "l", "0"], ["RPUSH", "l", "a", "b"]),
                               (["Q.POP", "3", "q", "q", "q", "BLOCK", "0", "BRIEF"],
                                ["Q.ADD", "q", "1", "x"])):
                waiting.send(*words)
                wait_until(lambda: info(connection)["blocked_clients"] == "1", what="the wait")
                require(not connection.call(*add).is_error, add)
                require(not waiting.read_reply().is_error, words)
                require_equal(info(connection)["blocked_clients"], "0", words)
            require_equal(connection.call("LLEN", "l").value, 1, "one item was taken")
            for _ in range(3):
                waiting.call("WATCH", "watched", "watched")
            require_equal(waiting.call("UNWATCH").raw, b"+OK\r\n", "UNWATCH")
            waiting.call("WATCH", "watched", "watched")
            connection.call("SET", "watched", "1")
            waiting.call("MULTI")
            require(waiting.call("EXEC").value is None, "the key was changed")


def peak_bytes(server):
    text = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) * 1024


def test_a_large_value_is_not_copied(options):
    """SET of what is large makes the memory into which it was read the value, the journal takes its
    record as it is, and nobody waits for the writing of it."""
    value = b"x" * LONG
    text = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n" % LONG + value
    # The value, its record where there is a journal, RocksDB's own two.
    for directives, copies in (({"appendonly": "no", "save": ""}, 1), ({"appendonly": "no"}, 2),
                               ({"appendonly": "yes"}, 4)):
        with options.server(directives) as server, server.connect() as other, \
                server.connect() as connection:

            def measure(is_new, most=copies + 0.3):
                if is_new:
                    other.call("DEL", "k")
                before = peak_bytes(server)
                connection.send_bytes(text)
                wait_until(lambda: b"qbuf=%d " % len(text) in other.call("CLIENT", "LIST").value)
                ran = ran_ms(server, end)
                more = (peak_bytes(server) - before) / LONG
                require(more < most, f"{directives}: {more:.2f} copies")
                wait_until_written(other)
                return Hold(ran, 0, 0)

            def end():
                connection.send_bytes(b"\r\n")
                return connection.read_reply()

            for is_new in True, False:
                require_short(lambda is_new=is_new: measure(is_new), f"{directives}: it")
            require_equal(connection.call("GET", "k").value, value, "the value")


def large_requests(rng):
    """Requests with large words, in pieces, and what GET must say afterwards."""
    def value():
        return bytes([rng.randrange(97, 122)]) * rng.randrange(1 << 20, 3 << 20)
    a, b, c, d, e = (value() for _ in range(5))
    yield [(b"SET", b"k", a)], {b"k": a}
    yield [(b"SET", b"k", b, b"EX", b"1000"), (b"SET", b"small", b"1")], {b"k": b, b"small": b"1"}
    yield [(b"SET", b"small", b"2"), (b"SET", b"k", c, b"GET")], {b"k": c, b"small": b"2"}
    yield [(b"MSET", b"k", d, b"l", e, b"k", b"short")], {b"k": b"short", b"l": e}
    yield [(b"SET", b"n" * 600, a)], {b"n" * 600: a}
    yield [(b"APPEND", b"k", b)], {b"k": b"short" + b}
    yield [(b"SETEX", b"k", b"1000", c)], {b"k": c}
    yield [(b"MULTI",), (b"SET", b"k", d), (b"EXEC",)], {b"k": d}
    yield [(b"SETNX", b"m" * 500, e)], {b"m" * 500: e}
    yield [(b"RPUSH", b"list", a), (b"SET", b"list", b)], {b"list": b}


def test_large_words_are_whole(options):
    """Whatever stands before, behind and beside a large word, in pieces of any size, and after a
    kill."""
    rng = random.Random(3)
    with options.server({"appendonly": "yes"}) as server:
        expected = {}
        with server.connect() as connection:
            for requests, values in large_requests(rng):
                text = b"".join(b"*%d\r\n" % len(words) + b"".join(
                    b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
                    for words in requests)
                while text:
                    size = rng.randrange(1, 200_000)
                    connection.send_bytes(text[:size])
                    text = text[size:]
                for words in requests:
                    reply = connection.read_reply()
                    require(not reply.is_error, f"{words[0]}: {reply.raw[:100]}")
                expected.update(values)
                for key, value in expected.items():
                    require(connection.call("GET", key).value == value, f"{key[:10]}: other")
            # Its database is not the one that records call by this number.
            for words in (("SWAPDB", "1", "2"), ("SELECT", "1"), ("SET", "k", "x" * (2 << 20))):
                require_equal(connection.call(*words).raw, b"+OK\r\n", words[0])
        server.kill()
        server.start()
        with server.connect() as connection:
            for key, value in expected.items():
                require(connection.call("GET", key).value == value, f"{key[:10]}: another value")
            connection.call("SELECT", "1")
            require_equal(connection.call("STRLEN", "k").value, 2 << 20, "after SWAPDB")


def test_memory_is_given_back(options):
    """What has been deleted leaves the process, though nobody allocates any more."""
    with options.server() as server, server.connect() as connection:
        fill(connection.call, "key", "redis.call('SET', KEYS[1] .. i, string.rep('x', 200))",
             5 * MANY)
        full = rss_bytes(server.pid)
        connection.call("FLUSHALL")
        wait_until(lambda: info(connection)["lazyfree_pending_objects"] == "0", what="the freeing")
        bound = 1.5 * int(info(connection)["used_memory"]) + (64 << 20)
        wait_until(lambda: rss_bytes(server.pid) <= bound, 30, "pages that are given back")
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
            require("restarts: large keys" in server.log_tail(200), "a walk was stale")
            digest = call("DEBUG", "DIGEST").raw
        server.kill()
        server.start()
        with server.connect() as connection:
            require_equal(connection.call("DEBUG", "DIGEST").raw, digest, "after the restart")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__], io_threads=(1, 2)))
