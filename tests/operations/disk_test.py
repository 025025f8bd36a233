#!/usr/bin/python3
"""A disk that is nearly full or slow: writes that add data are refused or wait, and everything
else keeps working."""

import concurrent.futures
import contextlib
import ctypes
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

import harness
from harness import info, require, require_equal, wait_until
from harness.http_client import Client, serve
from harness.resp import encode
from harness.servers import ServerError
from harness.surroundings import JOURNAL_FAILED, NEVER_ENOUGH, SYNC_S, slow_disk

MEGABYTE = 1 << 20
CLONE_NEWNS = 0x20000
MISCONF = b"-MISCONF The disk is nearly full"
REFUSED = (r"has \d+ MB free, less than min-free-disk \(1024000000 MB\): commands that grow the "
           "data are refused until there is more\n")
ACCEPTED = r"again at least min-free-disk .0 MB.: commands that grow the data are accepted again\n"


@contextlib.contextmanager
def small_disk(megabytes):
    """A directory with a file system of its own, in memory. It goes with this process at the
    latest, since only its name space has it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        raise harness.Skipped("mounting a small disk takes root")
    directory = tempfile.mkdtemp(prefix="sluice-small-disk-")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", directory]
    try:
        for command in (["mount", "--make-rprivate", "/"], mount):
            if subprocess.run(command, check=False, capture_output=True).returncode != 0:
                raise harness.Skipped("this machine lets nobody mount a small disk")
        try:
            yield directory
        finally:
            subprocess.run(["umount", "--lazy", directory], check=False)
    finally:
        os.rmdir(directory)


def says(server, pattern):
    """How many lines of the server's log fit."""
    return len(re.findall(pattern, server.log_tail(10 ** 6) + "\n"))


# Longer than the server goes without a look at the disk.
LOOKED_S = 3.0


def fill(connection, key, value):
    """Appends until the disk is nearly full and stays so; how often."""
    pushed = 0
    full_since = None
    while full_since is None or time.monotonic() < full_since + LOOKED_S:
        reply = connection.call("RPUSH", key, value)
        if not reply.is_error:
            pushed += 1
            require(pushed < 100_000, "the disk is never full")
            full_since = None
            time.sleep(0.001)
            continue
        require(reply.raw.startswith(MISCONF), reply.raw)
        # A checkpoint on its way takes room, and gives some back when it is there.
        if full_since is None or info(connection)["rdb_bgsave_in_progress"] != "0":
            full_since = time.monotonic()
        time.sleep(0.05)
    return pushed


def save(connection):
    """SAVE's reply, asked for until no checkpoint of the server's own is in progress."""
    busy = b"-ERR Background save already in progress\r\n"
    return wait_until(lambda: (reply := connection.call("SAVE").raw) != busy and reply, 20,
                      "a SAVE that is not refused")


def test_a_checkpoint_that_does_not_fit(options):
    """A checkpoint that does not fit: the server keeps running, restarts, and frees space later."""
    with small_disk(192) as directory:
        server = options.server({"appendonly": "yes", "appendfsync": "everysec", "save": "",
                                 "min-free-disk": "64mb", "checkpoint-log-bytes": "24mb"},
                                directory=directory)
        with server:
            with server.connect(20) as connection:
                pushed = fill(connection, "jobs", os.urandom(60_000))
                connection.call("BGSAVE")
                wait_until(lambda: info(connection)["rdb_last_bgsave_status"] == "err", 20,
                           "a checkpoint that failed")
                require("not enough disk space" in server.log_tail(50), server.log_tail(50))
                require_equal(os.listdir(os.path.join(directory, "staging")), [], "staging")
                reply = save(connection)
                require(reply.startswith(b"-ERR not enough disk space"), reply)
            for _ in range(2):
                require_equal(server.stop(), 0, "exit code")
                server.start()
                with server.connect(20) as connection:
                    require_equal(connection.call("LLEN", "jobs").value, pushed)
                    require(connection.call("RPUSH", "jobs", "x").raw.startswith(MISCONF),
                            "what grows is refused from the start")
            with server.connect(20) as connection:
                require_equal(connection.call("LTRIM", "jobs", "-10", "-1").raw, b"+OK\r\n")
                # Now it fits, and what it replaces gives the room back.
                wait_until(lambda: info(connection)["rdb_last_bgsave_status"] == "ok"
                           and int(info(connection)["sluice_checkpoints_completed"]) > 0, 60,
                           "a checkpoint of what is left")
                wait_until(lambda: connection.call("RPUSH", "jobs", "x").raw == b":11\r\n", 20,
                           "room again")
            require_equal(server.stop(), 0, "exit code")


def send_until_held(connection, request, most, patience_s):
    """Sends a request again and again, without reading replies, until `most` bytes have left or
    none for `patience_s`. (were all sent, requests)"""
    sent = requests = 0
    left = b""
    connection.socket.settimeout(patience_s)
    try:
        while sent < most:
            if not left:
                left = request
                requests += 1
            count = connection.socket.send(left)
            sent, left = sent + count, left[count:]
        held = False
    except socket.timeout:
        held = True
    connection.socket.settimeout(30)
    connection.socket.sendall(left)
    return not held, requests


def test_a_slow_disk_holds_clients_back(options):
    """journal-buffer-limit: no more than that waits for a slow disk, and all of it is answered."""
    with slow_disk() as environment:
        # Where clients are held the patience ends within a sync, and else far behind it.
        for limit, all_sent, patience_s in (("1mb", False, SYNC_S / 2), ("4gb", True, 30)):
            with options.server({"appendonly": "yes", "appendfsync": "always",
                                 "journal-buffer-limit": limit}, environment=environment) as server:
                with server.connect(30) as writer, server.connect(30) as watcher:
                    sent, requests = send_until_held(writer, encode(["SET", "key", b"x" * 50_000]),
                                                     40 * MEGABYTE, patience_s)
                    require_equal(sent, all_sent, f"with {limit} all was taken at once")
                    for _ in range(requests):
                        require_equal(writer.read_reply().raw, b"+OK\r\n")
                    require_equal(watcher.call("STRLEN", "key").raw, b":50000\r\n")
                    longest_us = int(info(watcher)["sluice_journal_sync_us_max"])
                    require(longest_us > SYNC_S * 900_000, f"a sync took {longest_us} us")


def test_nobody_hears_of_a_change_before_its_sync(options):
    """Messages, keyspace events, invalidations and blocked replies wait for the change's sync."""
    directives = {"appendonly": "yes", "appendfsync": "always", "notify-keyspace-events": "KA"}
    with slow_disk() as environment, contextlib.ExitStack() as stack:
        server = stack.enter_context(options.server(directives, environment=environment))
        writer, events, messages, tracker, blocked = (
            stack.enter_context(server.connect(30)) for _ in range(5))
        events.call("SUBSCRIBE", "__keyspace@0__:key")
        messages.call("SUBSCRIBE", "channel")
        tracker.call("HELLO", "3")
        tracker.call("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "tracked")
        blocked.send("BLPOP", "list", "0")
        wait_until(lambda: info(writer)["blocked_clients"] == "1", what="BLPOP waits")
        for listener, commands in (
                (events, [("SET", "key", "1")]),
                (messages, [("MULTI",), ("SET", "other", "1"), ("PUBLISH", "channel", "message"),
                            ("EXEC",)]),
                (tracker, [("SET", "tracked", "1")]),
                (blocked, [("RPUSH", "list", "a")])):
            began = time.monotonic()
            writer.send_bytes(b"".join(map(encode, commands)))
            listener.read_reply()
            took_s = time.monotonic() - began
            require(took_s >= SYNC_S, f"what {commands} does was heard after {took_s:.3f} s")
            for _ in commands:
                writer.read_reply()


def test_http_answers_after_the_sync(options):
    """An add over HTTP is answered once its own change is synced, not the one before it, and so are
    a pop that has waited and a list of several queues, of which the first has changed."""
    directives = {"appendonly": "yes", "appendfsync": "always"}
    with slow_disk() as environment, \
            serve(options, directives, environment=environment) as server:
        client = Client(server)
        for payload in ("first", "second"):
            began = time.monotonic()
            answer = client.request("POST", "/api/v1/queues/queue/jobs", {"payload": payload})
            took_s = time.monotonic() - began
            require_equal(answer.status, 201)
            require(took_s >= SYNC_S, f"the {payload} add was answered after {took_s:.3f} s")
        with server.connect(30) as writer, concurrent.futures.ThreadPoolExecutor(1) as thread:
            popped = thread.submit(client.post, "/api/v1/queues/other:pop", {"wait_ms": 30000})
            wait_until(lambda: info(writer)["blocked_clients"] == "1", what="the pop waits")
            began = time.monotonic()
            writer.send("Q.ADD", "other", "id", "payload")
            require_equal(len(popped.result().json["jobs"]), 1)
            took_s = time.monotonic() - began
            require(took_s >= SYNC_S, f"the pop was answered after {took_s:.3f} s")
            writer.read_reply()
            began = time.monotonic()
            writer.send("Q.ADD", "other", "next", "payload")
            wait_until(lambda: [queue["stats"]["pending"] for queue in
                                client.get("/api/v1/queues").json["queues"]] == [1, 2],
                       what="the job in the list of the queues other and queue")
            took_s = time.monotonic() - began
            require(took_s >= SYNC_S, f"the job was shown after {took_s:.3f} s")


GROWS = [
    ("SET", "a", "1"), ("RPUSH", "list", "x"), ("ZADD", "sorted", "1", "x"),
    ("HSET", "hash", "f", "v"), ("SADD", "set", "x"), ("XADD", "stream", "*", "f", "v"),
    ("Q.ADD", "queue", "id", "payload"),
    ("COPY", "list", "copy"), ("EVAL", "return redis.call('SET', 'a', '1')", "0"),
    # These journal the whole value.
    ("RENAME", "list", "other"), ("RENAMENX", "list", "other"), ("MOVE", "list", "1"),
]


def test_the_reserve(options):
    """Below min-free-disk: adding is refused, in MULTI and scripts too; the rest works."""
    with options.server({"appendonly": "yes"}) as server:
        with server.connect() as connection:
            for command in (("RPUSH", "list", "a", "b", "c"),
                            ("ZADD", "sorted", "1", "a", "2", "b"),
                            ("SADD", "set", "a", "b"), ("SET", "string", "s"),
                            ("Q.ADD", "queue", "one", "p"), ("Q.ADD", "queue", "two", "p")):
                require(not connection.call(*command).is_error, command)
            connection.call("MULTI")
            connection.call("SET", "early", "1")
            connection.call("LPOP", "list")
            with server.connect() as other:
                other.call("CONFIG", "SET", "min-free-disk", NEVER_ENOUGH)
                wait_until(lambda: other.call("SET", "room", "1").is_error, what="the refusal")
                require_equal(info(other)["sluice_disk_nearly_full"], "1")
            wait_until(lambda: says(server, REFUSED), what="a warning in the log")
            reply = connection.call("EXEC").raw
            require(reply.startswith(b"-EXECABORT") and b"The disk is nearly full" in reply, reply)
            for command in GROWS:
                reply = connection.call(*command).raw
                require(b"MISCONF The disk is nearly full" in reply, f"{command}: {reply}")
            connection.call("MULTI")
            require(connection.call("RENAME", "list", "other").raw.startswith(MISCONF), "queued")
            require(connection.call("EXEC").raw.startswith(b"-EXECABORT"), "EXEC of it")

            require_equal(connection.call("LPOP", "list").raw, b"$1\r\na\r\n")
            require_equal(connection.call("ZPOPMIN", "sorted").value, [b"a", b"1"])
            require_equal(connection.call("SREM", "set", "a").raw, b":1\r\n")
            require_equal(connection.call("GET", "string").raw, b"$1\r\ns\r\n")
            job = connection.call("Q.POP", "1", "queue", "WORKER", "w")
            require(not job.is_error and job.value, job)
            require_equal(connection.call("Q.ACK", "queue", "one", "1").raw, b"+OK\r\n")
            require_equal(connection.call("EVAL", "return redis.call('LPOP', KEYS[1])", "1",
                                          "list").raw, b"$1\r\nb\r\n")
            connection.call("MULTI")
            connection.call("LPOP", "list")
            connection.call("DEL", "string")
            require_equal(connection.call("EXEC").raw, b"*2\r\n$1\r\nc\r\n:1\r\n")
            require_equal(connection.call("EXISTS", "early", "a", "list").raw, b":0\r\n")

            connection.call("CONFIG", "SET", "min-free-disk", "0")
            wait_until(lambda: connection.call("SET", "a", "1").raw == b"+OK\r\n", what="room")
            wait_until(lambda: says(server, ACCEPTED), what="its end in the log")
            require_equal(says(server, REFUSED), 1, "warnings in the log")
            connection.call("RPUSH", "list", "a")
            require_equal(connection.call("RENAME", "list", "other").raw, b"+OK\r\n")


def test_the_reserve_at_the_start(options):
    """Below min-free-disk a server starts, and refuses what grows from its first command on."""
    with options.server({"appendonly": "yes", "min-free-disk": NEVER_ENOUGH}) as server:
        with server.connect() as connection:
            require(connection.call("SET", "a", "1").raw.startswith(MISCONF), "the first command")
            require_equal(connection.call("GET", "a").raw, b"$-1\r\n")
        require(says(server, REFUSED) >= 1, "no warning in the log")


def test_a_start_on_a_full_disk(options):
    """A start that lacks disk space says that nothing is lost and how much it needs, and one with
    enough has everything."""
    with small_disk(96) as directory, tempfile.TemporaryDirectory() as elsewhere:
        server = options.server({"appendonly": "yes", "appendfsync": "everysec", "save": "",
                                 "min-free-disk": "0"}, directory=directory)
        server.log_path = os.path.join(elsewhere, "log")
        with server:
            with server.connect() as connection:
                for number in range(40):
                    connection.call("SET", f"k{number}", os.urandom(MEGABYTE))
            server.kill()
            filling = os.path.join(directory, "filling")
            with contextlib.suppress(OSError), open(filling, "wb", buffering=0) as file:
                while file.write(bytes(MEGABYTE)) == MEGABYTE:
                    pass
            try:
                server.start()
                raise AssertionError("it starts on a full disk")
            except ServerError as failure:
                text = str(failure)
                # With another one no supervisor starts it again, when there is room.
                require_equal(failure.exit_code, JOURNAL_FAILED, "the exit code")
            said = re.search(r"Nothing is lost; opening it may take up to (\d+) MB", text)
            require(said and int(said[1]) < 96, text)
            os.remove(filling)
            server.start()
            with server.connect() as connection:
                require_equal(connection.call("DBSIZE").value, 40, "keys")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
