#!/usr/bin/python3
"""Scripts that are busy inside C functions: others are answered, and SCRIPT KILL ends them."""

import os
import sys
import time

import harness
from harness import require

# Beyond busy-reply-threshold, and from SCRIPT KILL to the script's end.
SLACK_S = 0.25
# The machine may stall; it is the best of so many that counts.
TRIES = 5
# What a script of these touches in one piece, at most: a text of 60 MB and the buffer that it was
# made in.
PIECE_BYTES = 128 << 20

SCRIPTS = {
    "find": "string.find(string.rep('a', 1e5), string.rep('.-', 20) .. 'b')",
    "match": "string.match(string.rep('a', 1e5), string.rep('(a*)', 20) .. 'b')",
    "gmatch": "for _ in string.gmatch(string.rep('a', 1e5), string.rep('a?', 1e4) .. 'b') do end",
    "gsub": "string.gsub(string.rep('a', 1e7), 'a*b', '')",
    "gsub with a long template": "string.gsub(string.rep('a', 1e3), '', string.rep('%0x', 3e5))",
    "set": "string.find(string.rep('a', 1e7), '[' .. string.rep('b', 1e6) .. ']')",
    "plain": "local s = string.rep('a', 6e7) while true do string.find(s, 'b', 1, true) end",
    "rep": "while true do local s = string.rep('x', 1e8) end",
    "rep of new texts": "local i = 0 while true do i = i + 1 string.rep('xy' .. i, 1e7) end",
    "concatenation": "local s = string.rep('x', 6e7) while true do local t = s .. 'y' end",
    "comparison": "local s = string.rep('x', 3e7) local a, b = s .. 'a', s .. 'b' "
                  "while true do local t = a < b end",
    "table.concat": "local t = {} for i = 1, 2e6 do t[i] = i end "
                    "while true do table.concat(t, ',') end",
    "table.insert": "local t = {} for i = 1, 4e6 do t[i] = i end "
                    "while true do table.insert(t, 1, 0) end",
    "short calls": "local t = {} for i = 1, 5e3 do t[i] = 1e99 end "
                   "local f = string.rep('%99.9f', 5e3) "
                   "while true do string.format(f, unpack(t)) end",
    "commands": "while true do redis.call('LCS', 'long:1', 'long:2', 'LEN') end",
    "sha1hex": "local s = string.rep('x', 1e8) while true do redis.sha1hex(s) end",
    "loadstring": "local s = 'x = ' .. string.rep('a or ', 2e5) .. 'a' "
                  "while true do loadstring(s) end",
    "pcall at the limit": "local t = {} while true do "
                          "pcall(function() t[#t + 1] = #t .. string.rep('x', 1e7) end) end",
}


class Stopwatch:
    """Time that has passed while a process had a processor: others may take it away."""

    def __init__(self, pid):
        self.pid = pid
        self.began = time.monotonic(), self.processor_s()

    def processor_s(self):
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def seconds(self):
        return min(time.monotonic() - self.began[0], self.processor_s() - self.began[1])


def new_memory_s():
    """How long the machine takes to hand out a piece: a virtual one may get each page from its
    host, and nothing can interrupt a script meanwhile."""
    watch = Stopwatch(os.getpid())
    require(len(b"x" * PIECE_BYTES) == PIECE_BYTES, "the memory is there")
    return watch.seconds()


def run_once(server, script):
    """Returns how long PING and SCRIPT KILL took."""
    with server.connect() as busy, server.connect() as other:
        other.call("PING")
        # Some come to script-memory-limit now and then.
        busy.send("EVAL", f"while true do pcall(function() {script} end) end", "0")
        reply = b"+PONG\r\n"
        # It may come before the script.
        while reply == b"+PONG\r\n":
            require(not busy.has_input(), "the script runs until it is killed")
            watch = Stopwatch(server.process.pid)
            reply = other.call("PING").raw
        ping_s = watch.seconds()
        require(reply.startswith(b"-BUSY "), f"busy: {reply}")
        watch = Stopwatch(server.process.pid)
        require(other.call("SCRIPT", "KILL").raw == b"+OK\r\n", "the script can be killed")
        reply = busy.read_reply().raw
        kill_s = watch.seconds()
        require(b"Script killed by user" in reply, f"killed: {reply}")
        return ping_s, kill_s


def require_soon(server, name, script, threshold_s):
    seen = []
    for _ in range(TRIES):
        slack_s = SLACK_S + new_memory_s()
        ping_s, kill_s = run_once(server, script)
        seen.append((ping_s, kill_s, slack_s))
        if ping_s <= threshold_s + slack_s and kill_s <= slack_s:
            return
    require(False, f"{name}: PING and SCRIPT KILL took, and may take beyond the threshold: {seen}")


def test_others_are_answered(options):
    """PING within busy-reply-threshold + 250 ms, the script's end within 250 ms of SCRIPT KILL."""
    with options.server({"busy-reply-threshold": "100"}) as server:
        with server.connect() as connection:
            connection.call("MSET", "long:1", "ab" * 1500, "long:2", "ba" * 1500)
        for name, script in SCRIPTS.items():
            require_soon(server, name, script, 0.1)


def test_default_threshold(options):
    """The same with all that the server has unless it is told otherwise."""
    with options.server() as server:
        require_soon(server, "find", SCRIPTS["find"], 5.0)


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__], io_threads=(1,)))
