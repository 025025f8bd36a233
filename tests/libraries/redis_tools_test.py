#!/usr/bin/python3
"""redis-cli in its modes and redis-benchmark with all its tests, compared with redis-server: what
is the same each time has to be the same byte for byte, the rest of the same form."""

import concurrent.futures
import contextlib
import csv
import pathlib
import re
import subprocess
import sys

from harness import libraries, need_program, require, require_equal, scratch, servers

LONGEST_S = 60
LARGEST = """
for i = 1, 5000 do
  local element = 'some-element-' .. i
  redis.call('APPEND', 'text:largest', element)
  redis.call('RPUSH', 'list:largest', element)
  redis.call('SADD', 'set:largest', element)
  redis.call('HSET', 'hash:largest', i, element)
  redis.call('ZADD', 'zset:largest', i, element)
  redis.call('XADD', 'stream:largest', i .. '-1', 'field', element)
end
"""
COMMANDS = r"""HGETALL hash:0
LRANGE list:0 0 5
GET none
ZRANGE zset:1 0 3 WITHSCORES
INCR list:0
XRANGE stream:0 - + COUNT 3
TYPE set:1
CONFIG GET maxmemory
ECHO "grüße\t\"\n"
EVAL "return {1, 'x', {false}, {}}" 0
NO SUCH
"""
SCRIPT = "return {KEYS[1], KEYS[2], ARGV[1], redis.call('INCR', KEYS[1])}\n"


@contextlib.contextmanager
def both(options):
    """redis-server and the server under test, without data; a folder for files."""
    need_program("redis-cli")
    need_program("redis-server")
    with servers.Server("redis-server") as redis, libraries.server(options) as sluice, \
            scratch() as folder:
        yield (redis, sluice), pathlib.Path(folder)


def cli(server, *words, given="", timeout_s=LONGEST_S):
    """(exit code, output, errors) of redis-cli to its end."""
    done = subprocess.run(
        ["redis-cli", "-p", str(server.port), *map(str, words)], input=given.encode(),
        capture_output=True, timeout=timeout_s, check=False)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode()


def require_same(pair, *words, mask=lambda text: text, **others):
    """The same from both; what redis-server answered."""
    redis, sluice = ((code, mask(out), mask(errors))
                     for code, out, errors in (cli(each, *words, **others) for each in pair))
    require_equal(sluice, redis, "redis-cli " + " ".join(map(str, words)))
    return redis


def fill(pair):
    commands = ["SELECT 0", "FLUSHALL"]
    for number in range(300):
        commands.append(f"SET text:{number} {'x' * (number % 50 + 1)}")
        commands.append(f"RPUSH list:{number % 7} {number}")
        commands.append(f"SADD set:{number % 5} member-{number}")
        commands.append(f"HSET hash:{number % 3} field-{number} {number}")
        commands.append(f"ZADD zset:{number % 2} {number} member-{number}")
        commands.append(f"XADD stream:{number % 4} {number + 1}-1 field {number}")
    for each in pair:
        code, out, errors = cli(each, given="\n".join(commands) + "\n")
        require(code == 0 and "ERR" not in out, f"{out[-500:]}{errors}")
        require_equal(cli(each, "EVAL", LARGEST, 0), (0, "\n", ""), "the largest keys")


def summary(text):
    """Of --bigkeys and --memkeys the end, which does not depend on the order of SCAN."""
    return sorted(text[text.index("-------- summary -------"):].split("\n"))


def without_sizes(text):
    """What MEMORY USAGE says is each server's own."""
    return re.sub(r"\d[\d,.]*%?", "N", "\n".join(summary(text)))


def test_formats(options):
    """redis-cli: replies in every format, arguments from files, repeats, databases, exit codes."""
    with both(options) as (pair, _):
        fill(pair)
        for style in ("--no-raw", "--raw", "--csv", "--json", "--quoted-json"):
            for version in ("-2", "-3"):
                require_same(pair, version, style, given=COMMANDS)
        require_same(pair, "-x", "SET", "given", given="from the input\0\n")
        require_same(pair, "-X", "here", "SET", "given", "here", given="once more")
        require_same(pair, "GET", "given")
        require_same(pair, "-r", 3, "-i", 0.01, "INCR", "repeated")
        require_same(pair, "-n", 5, "SET", "a", "b")
        require_same(pair, "-n", 5, "DBSIZE")
        require_same(pair, "-e", "INCR", "list:0")
        require_same(pair, "-d", ";", "LRANGE", "list:0", 0, 3)
        require_same(pair, given="MULTI\nINCR n\nGET n\nEXEC\nSELECT 3\nSET a b\nDBSIZE\nEXEC\n")
        for each in pair:
            require_equal(cli(each, "-u", f"redis://127.0.0.1:{each.port}/5", "GET", "a")[1], "b\n")
            cli(each, "ACL", "SETUSER", "me", "on", ">secret", "~*", "+@all")
        require_same(pair, "--user", "me", "--pass", "secret", "--no-auth-warning", "ACL", "WHOAMI")
        require_same(pair, "--user", "me", "--pass", "wrong", "--no-auth-warning", "ACL", "WHOAMI")


def test_keys(options):
    """redis-cli --scan, --bigkeys, --memkeys, --hotkeys."""
    with both(options) as (pair, _):
        fill(pair)
        def ordered(text):
            return sorted(text.split("\n"))
        require(len(require_same(pair, "--scan", mask=ordered)[1]) > 300, "keys")
        require_same(pair, "--scan", "--pattern", "list:*", mask=ordered)
        require_same(pair, "--scan", "--quoted-pattern", '"\\x6cist:*"', mask=ordered)
        for each in pair:
            require_equal(cli(each, "--bigkeys")[0], 0, "exit code")
        redis, sluice = (summary(cli(each, "--bigkeys", "-i", 0.001)[1]) for each in pair)
        require_equal(sluice, redis, "--bigkeys")
        require(any("list:largest" in line for line in redis), "the largest list")
        redis, sluice = (without_sizes(cli(each, "--memkeys")[1]) for each in pair)
        require_equal(sluice, redis, "--memkeys")
        redis, sluice = (cli(each, "--memkeys-samples", 5) for each in pair)
        require_equal((sluice[0], sluice[2]), (redis[0], redis[2]), "--memkeys-samples")
        require_same(pair, "--hotkeys")


def test_input(options):
    """redis-cli --pipe, --eval."""
    with both(options) as (pair, folder):
        commands = [("SET", "key:%d" % n, "grüße") for n in range(20_000)] + [("INCR", "key:1")]
        raw = "".join(f"*{len(words)}\r\n" + "".join(
            f"${len(word.encode())}\r\n{word}\r\n" for word in words) for words in commands)
        out = require_same(pair, "--pipe", given=raw)[1]
        require("errors: 1, replies: 20001" in out, out)
        require_same(pair, "--pipe", "--pipe-timeout", 5, given="SET inline 1\r\nGET inline\r\n")
        require_same(pair, "DBSIZE")
        script = folder / "script.lua"
        script.write_text(SCRIPT, encoding="utf-8")
        for _ in range(2):
            require_same(pair, "--eval", script, "one", "two", ",", "argument", "more")
        script.write_text("return redis.call('NONE')\n", encoding="utf-8")
        require_same(pair, "--eval", script)


def live(server, count, *words):
    """The first lines of a mode that does not end by itself."""
    with libraries.Program(["stdbuf", "-oL", "redis-cli", "-p", server.port, *words],
                      server.port) as program:
        return [program.wait_for("", LONGEST_S) for _ in range(count)]


def test_live(options):
    """redis-cli --stat, --latency, --latency-history, MONITOR, SUBSCRIBE."""
    with both(options) as (pair, _):
        redis, sluice = (live(each, 4, "--stat", "-i", 0.05) for each in pair)
        require_equal(sluice[:2], redis[:2], "the heading of --stat")
        require_equal([len(line.split()) for line in sluice[2:]],
                      [len(line.split()) for line in redis[2:]], "columns of --stat")
        for style in ("--raw", "--csv"):
            for each in pair:
                code, out, errors = cli(each, style, "--latency", "-i", 0.3)
                numbers = re.findall(r"[\d.]+", out)
                require_equal((code, errors, len(numbers)), (0, "", 4), f"--latency gave {out!r}")
                require(int(numbers[3]) > 0, out)
        for each in pair:
            require_equal(len(live(each, 2, "--raw", "--latency-history", "-i", 0.2)), 2)
        shown = []
        for each in pair:
            with libraries.Program(["stdbuf", "-oL", "redis-cli", "-p", each.port, "MONITOR"],
                              each.port) as monitor:
                require_equal(monitor.wait_for("", LONGEST_S), "OK")
                cli(each, "-n", 2, "SET", "key", "grüße \"quoted\"\r\n")
                cli(each, "EVAL", "return redis.call('GET', 'key')", 0)
                lines = [monitor.wait_for("", LONGEST_S) for _ in range(4)]
                shown.append([re.sub(r"^[\d.]+ \[(\d+) (127.0.0.1:\d+|lua)\]",
                                     lambda at: f"{at[1]} {at[2][:3]}", line) for line in lines])
        require_equal(shown[1], shown[0], "MONITOR")
        heard = []
        for each in pair:
            with libraries.Program(["stdbuf", "-oL", "redis-cli", "-p", each.port, "SUBSCRIBE", "a",
                               "b"], each.port) as listener:
                lines = [listener.wait_for("", LONGEST_S) for _ in range(6)]
                cli(each, "PUBLISH", "b", "hello")
                heard.append(lines + [listener.wait_for("", LONGEST_S) for _ in range(3)])
        require_equal(heard[1], heard[0], "SUBSCRIBE")


def test_replication_modes_end(options):
    """redis-cli's modes that take a replica's commands or a cluster's end with an error."""
    with both(options) as ((_, sluice), folder):
        for words in (("--rdb", folder / "dump.rdb"), ("--functions-rdb", folder / "functions.rdb"),
                      ("--replica",), ("--cluster", "check", f"127.0.0.1:{sluice.port}")):
            code, out, errors = cli(sluice, *words)
            require(code != 0, f"redis-cli {words[0]} ended with {code}: {out}{errors}")


def rows(server, *words):
    done = subprocess.run(["redis-benchmark", "-p", str(server.port), "--csv", *map(str, words)],
                          capture_output=True, text=True, timeout=LONGEST_S, check=False)
    require_equal((done.returncode, done.stderr), (0, ""), f"redis-benchmark {words}")
    table = list(csv.DictReader(done.stdout.splitlines()))
    for row in table:
        require(float(row["rps"]) > 0, f"{row}")
    return [row["test"] for row in table]


def test_benchmark(options):
    """redis-benchmark: every test that it has, with pipelines, RESP3, threads, large values."""
    need_program("redis-benchmark")
    with both(options) as (pair, _):
        for words in (("-n", 1000), ("-n", 4000, "-P", 16, "-r", 1000, "-3"),
                      ("-n", 500, "--threads", 2, "-c", 20, "-d", 2000, "--dbnum", 3),
                      ("-n", 500, "-r", 10, "EVAL", "return redis.call('incr', KEYS[1])", 1,
                       "counter:__rand_int__")):
            with concurrent.futures.ThreadPoolExecutor() as threads:
                redis, sluice = threads.map(lambda each, words=words: rows(each, *words), pair)
            require_equal(sluice, redis, f"the tests of redis-benchmark {words}")
            require(len(redis) >= (1 if "EVAL" in words else 19), f"{redis}")


if __name__ == "__main__":
    libraries.run(sys.modules[__name__])
