#!/usr/bin/python3
"""DUMP here and RESTORE there: values of every type, generated from a seed, both ways between
redis-server and sluice-server.

    python3 tests/transcripts/dump_test.py --server build/release/bin/sluice-server [--seed N]

Small values must be the same bytes on both servers; every value must read the same after it has
been carried over, and say the same encoding.
"""

import argparse
import random
import sys

from harness.reads import look
from harness.servers import DEFAULT_SLUICE, Server
from harness.transcripts.pools import MEMBERS, SCORES, VALUES

INTEGERS = [0, 1, -1, 12, 127, 128, -128, -129, 4095, 4096, -4096, -4097, 32767, 32768, -32769,
            8388607, 8388608, -8388609, 2147483647, 2147483648, -2147483649, 2**63 - 1, -2**63]
BATCHES = 60


def text(rng):
    """A text of any length; long ones compress in redis-server, or do not."""
    what = rng.random()
    if what < 0.4:
        return rng.choice(VALUES)
    if what < 0.6:
        return str(rng.choice(INTEGERS))
    if what < 0.8:
        return rng.randbytes(rng.choice([1, 11, 12, 20, 44, 45, 63, 64, 65]))
    size = rng.choice([300, 4095, 4096, 9000, 20000])
    return rng.randbytes(size) if rng.random() < 0.5 else rng.choice("ab") * size


def value_commands(rng, key):
    """What makes one value, and whether both servers must dump it to the same bytes (unless
    redis-server compresses them)."""
    kind = rng.choice(["string", "list", "set", "intset", "hash", "zset", "stream", "stream"])
    if kind == "stream":
        return stream_commands(rng, key)
    count = rng.choice([1, 2, 3, 10, 130, 600])
    small = count <= 3
    if kind == "string":
        value = text(rng)
        return [["SET", key, value]], len(value) <= 20
    if kind == "list":
        return [["RPUSH", key, *[small_text(rng, small) for _ in range(count)]]], small
    if kind == "set":
        return [["SADD", key, *[small_text(rng, small) for _ in range(count)]]], False
    if kind == "intset":
        low, high = rng.choice([(-100, 100), (-40000, 40000), (-2**40, 2**40)])
        numbers = [rng.randint(low, high) for _ in range(min(count, 10))]
        # A listpack keeps the width that it once needed; so does an intset.
        return [["SADD", key, *numbers]], small
    if kind == "hash":
        words = [small_text(rng, small) for _ in range(2 * count)]
        return [["HSET", key, *words]], small
    words = [word for _ in range(count)
             for word in (rng.choice([s for s in SCORES]), small_text(rng, small))]
    return [["ZADD", key, *words]], small


def stream_commands(rng, key):
    """A stream with entries that are deleted, and groups that have been given some. It is the same
    bytes as long as nothing of a node is deleted: what was deleted is not kept here."""
    entries = rng.choice([1, 3, 20, 250])
    ms, ids, commands = rng.choice([0, 5, 10**12, 2**63]), [], []
    for number in range(1, entries + 1):
        ms += rng.choice([0, 0, 0, 1, 300])
        ids.append(f"{ms}-{number}")
        names = ["a", "b"] if rng.random() < 0.8 else [str(rng.randint(-200, 70000))]
        words = [word for name in names for word in (name, small_text(rng, entries <= 3))]
        commands.append(["XADD", key, ids[-1], *words])
    gone = rng.sample(ids, rng.choice([0, 0, 1, entries // 2, entries]))
    commands += [["XDEL", key, *gone]] if gone else []
    if rng.random() < 0.3:
        commands.append(["XTRIM", key, "MAXLEN", "~", rng.randint(0, entries)])
    if rng.random() < 0.3:
        commands.append(["XSETID", key, f"{ms + 5}-0"])
    for group in rng.sample(["g", "", "12", "group"], rng.choice([0, 1, 3])):
        begin = rng.choice(["0", "$", rng.choice(ids)])
        commands.append(["XGROUP", "CREATE", key, group, begin])
        for consumer in rng.sample(["ann", "", "bob", "7"], rng.choice([0, 1, 3])):
            commands.append(["XGROUP", "CREATECONSUMER", key, group, consumer])
            commands.append(["XREADGROUP", "GROUP", group, consumer, "COUNT",
                             rng.choice([1, 7, 120]), "STREAMS", key, ">"])
        commands.append(["XACK", key, group, *rng.sample(ids, min(len(ids), 3))])
    has_times = any("READGROUP" in command[0] or "CREATECONSUMER" in command
                    for command in commands)
    return commands, entries <= 20 and not gone and not has_times


def small_text(rng, small):
    if not small:
        return text(rng) if rng.random() < 0.02 else f"{rng.choice(MEMBERS)}{rng.random()}"
    return rng.choice(["a", "b", "", "1", "-7", "300", "70000"])


def carry(source, target, key, to):
    """Restores what `source` dumps under another name at `target`."""
    payload = source.call("DUMP", key).tree[1]
    reply = target.call("RESTORE", to, 0, payload, "REPLACE")
    if reply.raw != b"+OK\r\n":
        raise AssertionError(f"RESTORE of {key}: {reply.raw!r}")
    return payload


def check(redis, sluice, rng, number):
    key = f"key{number}"
    commands, same_bytes = value_commands(rng, key)
    for command in commands:
        for connection in (redis, sluice):
            reply = connection.call(*command)
            assert not reply.is_error, reply.raw
    ours = carry(sluice, redis, key, "from-sluice")
    theirs = carry(redis, sluice, key, "from-redis")
    # What redis-server has compressed is shorter.
    if same_bytes and len(theirs) >= len(ours):
        assert ours == theirs, f"{commands[0][:8]}: {ours!r} {theirs!r}"
    expected = look(redis, key)
    for connection, name in ((sluice, key), (redis, "from-sluice"), (sluice, "from-redis")):
        seen = look(connection, name)
        assert seen == expected, f"{commands[0][:2]} as {name}: {seen!r:.300} {expected!r:.300}"
    for connection in (redis, sluice):
        connection.call("DEL", key)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", default=str(DEFAULT_SLUICE))
    parser.add_argument("--reference", default="redis-server")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--values", type=int, default=10 * BATCHES)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    quiet = {"save": "", "appendonly": "no"}
    with Server(options.reference, quiet) as reference, Server(options.server, quiet) as server:
        with reference.connect() as redis, server.connect() as sluice:
            for number in range(options.values):
                try:
                    check(redis, sluice, rng, number)
                except AssertionError as error:
                    print(f"FAILED value {number} of seed {options.seed}: {error}")
                    sys.exit(1)
    print(f"ok     {options.values} values of seed {options.seed} carried both ways")


if __name__ == "__main__":
    main()
