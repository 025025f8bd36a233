#!/usr/bin/python3
"""DEBUG RELOAD and LOADAOF: afterwards everything is as it was, for every type, and who waits,
watches or holds a lease notices nothing."""

import json
import sys
import threading
import time
import urllib.request

import harness
from harness import info, require, require_equal, wait_until

DEBUG = {"enable-debug-command": "yes"}


def fill(call):
    """Every type of Redis, in two databases, with large and small collections."""
    for database in ("0", "5"):
        call("SELECT", database)
        call("SET", "s", "x" * 5000)
        call("SETEX", "expiring", "1000", "x")
        call("SETBIT", "bits", "1000", "1")
        for index in range(0, 3000, 100):
            numbers = [str(number) for number in range(index, index + 100)]
            call("RPUSH", "list", *numbers)
            call("SADD", "set", *(f"m{number}" for number in numbers))
            call("HSET", "hash", *(word for number in numbers for word in (f"f{number}", number)))
            call("ZADD", "zset", *(word for number in numbers for word in (number, f"m{number}")))
        for index in range(300):
            call("XADD", "stream", f"{index + 1}-1", "field", str(index))
        call("XGROUP", "CREATE", "stream", "g", "0")
        call("XREADGROUP", "GROUP", "g", "c", "COUNT", "10", "STREAMS", "stream", ">")
        call("LPUSH", "small", "a", "b")
        call("EXPIRE", "small", "1000")
    call("SELECT", "0")
    call("SWAPDB", "0", "7")


def fill_queues(call):
    call("Q.CONFIG", "q", "SET", "max_active", "50", "fair", "on")
    call("Q.CONFIG", "q", "SET", "GROUP", "g1", "max_active", "3")
    for index in range(2000):
        options = ["GROUP", f"g{index % 7}", "TAG", "kind", f"t{index % 3}"]
        if index % 10 == 0:
            options += ["DELAY", "3600000"]
        call("Q.ADD", "q", f"job:{index}", f"payload {index}", *options)
    call("Q.ADD", "q", "blocked", "p", "NEED", "job:5")
    popped = call("Q.POP", "1", "q", "COUNT", "20", "WORKER", "w", "LEASE", "600000").value
    require_equal(len(popped), 20, "popped")
    jobs = [dict(zip(job[::2], job[1::2])) for job in popped]
    for words in (("Q.ACK", "q", jobs[0][b"id"], jobs[0][b"lease"], "RESULT", "r"),
                  ("Q.NACK", "q", jobs[1][b"id"], jobs[1][b"lease"])):
        require(not call(*words).is_error, words)
    call("ZADD", "old:pending", "1000000001", "a", "2000000002", "b", "3000000003", "c")
    call("Q.ADOPT", "adopted", "PENDING", "old:pending", "ACTIVE", "old:active", "UNIT",
         "1000000000", "LEASE", "600000")
    call("MULTI")
    call("ZREM", "old:pending", "a")
    call("SADD", "old:active", "a")
    call("EXEC")


def keys_of(connection):
    """The numbers of keys of each database; avg_ttl falls by itself."""
    return {database: text.split(",avg_ttl")[0]
            for database, text in info(connection, "keyspace").items()}


def look(connection):
    """What is told of the keys and of the queues."""
    call = connection.call
    told = [call("DEBUG", "DIGEST").raw, keys_of(connection),
            call("Q.EVENTS", "q", "-", "COUNT", "1000").raw, call("Q.EVENTS", "adopted", "-").raw,
            call("Q.CONFIG", "q", "GET").raw, call("Q.LIST", "adopted").raw]
    for state in ("pending", "delayed", "blocked", "active", "completed"):
        listed = call("Q.LIST", "q", "WHERE", "STATE", state, "COUNT", "1000")
        require(listed.value[1], f"there are {state} jobs")
        told.append(listed.raw)
    return told


def queues_over_http(server):
    """The names of queues, from the order in which the server keeps them."""
    url = f"http://127.0.0.1:{server.http_port}/api/v1/queues"
    with urllib.request.urlopen(url, timeout=20) as response:
        return [queue["name"] for queue in json.load(response)["queues"]]


def test_queues_are_listed(options):
    """The list of queues is the same after RELOAD, and takes new queues where they belong."""
    with options.server({**DEBUG, "http-port": "auto"}) as server, server.connect() as connection:
        names = [f"queue:{index:03}" for index in range(100)]
        for name in names[::2]:
            connection.call("Q.ADD", name, "job", "p")
        for _ in range(3):
            require_equal(connection.call("DEBUG", "RELOAD").raw, b"+OK\r\n")
            require_equal(queues_over_http(server), names[::2], "after RELOAD")
        for name in names[1::2]:
            connection.call("Q.ADD", name, "job", "p")
        require_equal(queues_over_http(server), names, "with new ones")


def test_everything_is_the_same(options):
    """Digests, lists, configurations and events are the same after RELOAD, and after a restart."""
    with options.server({**DEBUG, "appendonly": "yes"}) as server:
        with server.connect() as connection:
            call = connection.call
            fill(call)
            call("SELECT", "0")
            fill_queues(call)
            call("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', function() "
                 "return 1 end)")
            before = look(connection)
            lsn = info(connection)["sluice_journal_last_lsn"]
            for words in (("RELOAD",), ("LOADAOF",), ("RELOAD", "NOFLUSH", "MERGE")):
                require_equal(call("DEBUG", *words).raw, b"+OK\r\n", words)
                require_equal(look(connection), before, f"after {words}")
            require_equal(info(connection)["sluice_journal_last_lsn"], lsn, "nothing is journaled")
            require_equal(call("FCALL", "f", "0").value, 1, "functions")
            require(call("DEBUG", "RELOAD", "NOSAVE").is_error, "NOSAVE")
            require_equal(call("DEBUG", "RELOAD", "x").raw, b"-ERR DEBUG RELOAD only supports the "
                          b"MERGE, NOFLUSH and NOSAVE options.\r\n")
            call("MULTI")
            call("DEBUG", "RELOAD")
            require(call("EXEC").value[0] is not None, "in a transaction it is refused")
            call("SET", "later", "1")
        server.kill()
        server.start()
        with server.connect() as connection:
            require_equal(connection.call("GET", "later").value, b"1", "journaled afterwards")
            connection.call("DEL", "later")
            require_equal(connection.call("DEBUG", "DIGEST").raw, before[0], "after a restart")


def test_leases_stay(options):
    """A lease ends when it would have ended, its holder may acknowledge, a tied one stays tied."""
    with options.server(DEBUG) as server, server.connect() as connection:
        call = connection.call
        call("Q.CONFIG", "q", "SET", "disconnect_grace_ms", "0")
        for index in range(3):
            call("Q.ADD", "q", f"j{index}", "p")
        tied = server.connect()
        tied.call("Q.POP", "1", "q", "TIED", "LEASE", "600000")
        popped = call("Q.POP", "1", "q", "LEASE", "600000").value[0]
        lease = dict(zip(popped[::2], popped[1::2]))[b"lease"]
        short_end = time.monotonic() + 3
        call("Q.POP", "1", "q", "LEASE", "3000")
        time.sleep(1)
        for _ in range(3):
            require_equal(call("DEBUG", "RELOAD").raw, b"+OK\r\n")

        def state(job):
            values = call("Q.GET", "q", job).value
            return dict(zip(values[::2], values[1::2]))[b"state"]
        require_equal([state(f"j{index}") for index in range(3)], [b"active"] * 3, "states")
        tied.close()
        wait_until(lambda: state("j0") != b"active", what="the end of the tied lease")
        wait_until(lambda: state("j2") != b"active", what="the end of the short lease")
        require(time.monotonic() >= short_end - 0.1, "not before its term")
        require(not call("Q.ACK", "q", "j1", lease).is_error, "the other one is acknowledged")


def test_waiters_and_watches_stay(options):
    """Blocked clients are served afterwards, WATCHed keys that did not change hold."""
    with options.server(DEBUG) as server, server.connect() as connection:
        call = connection.call
        call("SET", "watched", "1")
        call("WATCH", "watched")
        waiters = [server.connect() for _ in range(3)]
        waiters[0].send("BLPOP", "list", "0")
        waiters[1].send("Q.POP", "1", "queue", "BLOCK", "60000")
        waiters[2].send("XREAD", "BLOCK", "0", "STREAMS", "stream", "$")
        with server.connect() as other:
            wait_until(lambda: info(other)["blocked_clients"] == "3", what="the waiters")
            require_equal(other.call("DEBUG", "RELOAD").raw, b"+OK\r\n")
        call("MULTI")
        call("SET", "watched", "2")
        require_equal(call("EXEC").raw, b"*1\r\n+OK\r\n", "the watched key has not changed")
        call("RPUSH", "list", "x")
        call("Q.ADD", "queue", "job", "p")
        call("XADD", "stream", "*", "a", "b")
        for waiter in waiters:
            require(not waiter.read_reply().is_error, "the waiter is served")
        call("WATCH", "watched")
        with server.connect() as other:
            other.call("DEBUG", "RELOAD")
            other.call("SET", "watched", "3")
        call("MULTI")
        call("PING")
        require_equal(call("EXEC").value, None, "and a change of it is seen")


def test_reload_under_load_and_checkpoints(options):
    """RELOADs amid writes and checkpoints: what was acknowledged is there, after kill -9 too."""
    with options.server({**DEBUG, "appendonly": "yes", "checkpoint-log-bytes": "1mb"}) as server:
        written = [0, 0]
        stop = threading.Event()

        def write(index):
            with server.connect() as connection:
                while not stop.is_set():
                    name = f"w{index}"
                    connection.call("HSET", name, str(written[index]), "x" * 100)
                    connection.call("Q.ADD", f"q{index}", str(written[index]), "p")
                    written[index] += 1
        threads = [threading.Thread(target=write, args=(index,)) for index in range(2)]
        for thread in threads:
            thread.start()
        wait_until(lambda: min(written) > 0, what="a write of each")
        with server.connect() as connection:
            for _ in range(20):
                connection.call("BGSAVE")
                require_equal(connection.call("DEBUG", "RELOAD").raw, b"+OK\r\n")
        stop.set()
        for thread in threads:
            thread.join(20)
        server.kill()
        server.start()
        with server.connect() as connection:
            for index in range(2):
                require_equal(connection.call("HLEN", f"w{index}").value, written[index], "fields")
                last = str(written[index] - 1)
                require(connection.call("Q.GET", f"q{index}", last).value is not None, "the job")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__], io_threads=(1, 2)))
