#!/usr/bin/python3
"""What scripts may take: the server lives under a limit of the system, and gives memory back."""

import pathlib
import re
import resource
import sys

import harness
from harness import info, require, require_equal, wait_until

MEGABYTE = 1 << 20
# The server's address space may grow by this much above what it has at its start.
ROOM = 768 * MEGABYTE

# Each asks for far more than the limit of 24 MB.
SHARED = "local t = {1} for i = 1, 30 do t = {t, t} end "
WIDE = "local t = {1} for i = 1, 15 do t = {t, t, t, t} end "
MANY = "local s = ('x'):rep(2^20) local t = {} for i = 1, 4000 do t[i] = s end "
TOO_MUCH = [
    SHARED + "return #cjson.encode(t)",
    SHARED + "return t",
    SHARED + "redis.setresp(3) return {map = t}",
    WIDE + "return #cmsgpack.pack(t)",
    MANY + "return t",
    MANY + "return #cjson.encode(t)",
    MANY + "return redis.call('RPUSH', 'list', unpack(t))",
    "cjson.encode_sparse_array(true, 0) return #cjson.encode({[2^30] = 1})",
    "return redis.call('LRANGE', KEYS[1], 0, -1)",
    "return cjson.decode('[' .. ('[],'):rep(2^21) .. '[]]')",
]


def address_space(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(re.search(r"VmSize:\s+(\d+) kB", status)[1]) * 1024


def test_memory_under_a_system_limit(options):
    """Encoders, answers and replies beyond script-memory-limit are errors, not the server's end."""
    with options.server({"script-memory-limit": "24mb"}) as server, server.connect(60) as client:
        for _ in range(200):
            client.call("RPUSH", "long", "x" * MEGABYTE)
        most = address_space(server.pid) + ROOM
        resource.prlimit(server.pid, resource.RLIMIT_AS, (most, most))
        for protocol in ("2", "3"):
            client.call("HELLO", protocol)
            for script in TOO_MUCH:
                reply = client.call("EVAL", script, "1", "long")
                require(reply.is_error and b"script-memory-limit" in reply.raw, (script, reply.raw))
                require_equal(client.call("EVAL", "return 1", "0").raw, b":1\r\n", script)
        code = "#!lua name=l\nredis.register_function('f', function() " + SHARED + "return t end)"
        client.call("FUNCTION", "LOAD", code)
        reply = client.call("FCALL", "f", "0")
        require(reply.is_error and b"script-memory-limit" in reply.raw, reply.raw)
        require_equal(client.call("LLEN", "long").raw, b":200\r\n")


def test_what_fails_leaves_nothing_behind(options):
    """Encoding and decoding that fails again and again in pcall does not add up."""
    with options.server({"script-memory-limit": "64mb"}) as server, server.connect(60) as client:
        failing = ("local s = '[' .. ('[],'):rep(2^21) .. '[]]' local t = {s, s, s, s, s, s, s, s} "
                   "for i = 1, 6 do pcall(cjson.decode, s) pcall(cjson.encode, t) "
                   "pcall(cmsgpack.pack, unpack(t)) local c = cjson.new() pcall(c.encode, t) end "
                   "return 1")
        require_equal(client.call("EVAL", failing, "0").raw, b":1\r\n")
        client.call("SCRIPT", "FLUSH")
        before = int(info(client, "memory")["used_memory"])
        for _ in range(5):
            require_equal(client.call("EVAL", failing, "0").raw, b":1\r\n")
        client.call("SCRIPT", "FLUSH")
        after = int(info(client, "memory")["used_memory"])
        require(after < before + 8 * MEGABYTE, f"{before} bytes became {after}")


def test_flush_reaches_all_threads(options):
    """SCRIPT FLUSH and FUNCTION FLUSH give the Lua memory of every I/O thread back."""
    with options.server({"io-threads": "4"}) as server:
        clients = [server.connect(60) for _ in range(16)]
        first = clients[0]

        def machines(kind):
            return int(info(first, "memory")[f"used_memory_vm_{kind}"])
        for client in clients:
            client.call("EVAL", "return 1", "0")
        floor = machines("eval")
        padding = "local n = 1 " + "n = n + 1 n = n - 1 " * 50
        for number in range(1500):
            body = f"{padding} return {number}"
            sha = first.call("SCRIPT", "LOAD", body).raw.split(b"\r\n")[1].decode()
            for client in clients[1:]:
                client.call("EVALSHA", sha, "0")
        held = machines("eval")
        require(held > floor + 2 * MEGABYTE, held)
        first.call("SCRIPT", "FLUSH")
        wait_until(lambda: machines("eval") < floor + MEGABYTE, what="the end of the scripts")
        numbers = ", ".join(str(number) + ".5" for number in range(30_000))
        code = ("#!lua name=l\nlocal function make() return {" + numbers + "} end local t = make() "
                "redis.register_function('f', function() return #t end)")
        first.call("FUNCTION", "LOAD", code)
        for client in clients:
            require_equal(client.call("FCALL", "f", "0").raw, b":30000\r\n")
        held = machines("functions")
        first.call("FUNCTION", "FLUSH")
        wait_until(lambda: machines("functions") < held / 2, what="the end of the library")
        for client in clients:
            client.close()


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
