"""Seeded rounds of blocked clients: some wait at keys, others give these elements in every way."""

from harness.transcripts.pools import Command

LIST_KEYS = ["l1", "l2", "l3"]
ZSET_KEYS = ["z1", "z2", "z3"]
STREAM_KEYS = ["x1", "x2", "x3"]
KEYS = {"lists": LIST_KEYS, "zsets": ZSET_KEYS, "streams": STREAM_KEYS}
# A store command that replaces a string at a key: Redis 7.0 leaves those who wait at the key
# blocked beside a set that is not empty; Sluice serves them. So strings and stores keep apart.
STRING_LIST_KEY = "l3"
STORED_LIST_KEYS = ["l1", "l2"]
STRING_ZSET_KEY = "z3"
STORED_ZSET_KEYS = ["z1", "z2"]
# Payloads from redis-server 7.0.15: a list and a sorted set of "m" and "n", a stream with the
# entry 7-1.
DUMPED = {name: bytes.fromhex(text) for name, text in {
    "lists":
        "1201020d0d0000000200816d02816e02ff0a00d044605498fb13ed",
    "zsets":
        "1111110000000400816d020101816e020201ff0a0028bc0859f66ec959",
    "streams":
        "130110000000000000000700000000000000011d1d0000000a000101000101018166020001020100"
        "0100018176020401ff0107010701000001000a001a98f0989b1cea1e"}.items()}
SIDE = {"lists": "side", "zsets": "zside", "streams": "xside"}
# Makes a key in database 1 and moves it.
MOVE = "redis.call('SELECT', 1) redis.call(unpack(ARGV)) return redis.call('MOVE', KEYS[1], 0)"


def some_of(random, keys):
    return random.sample(keys, random.randint(1, len(keys)))


def waits_for_list(random):
    keys = some_of(random, LIST_KEYS)
    ends = [random.choice(["LEFT", "RIGHT"]) for _ in range(2)]
    count = random.choice([[], ["COUNT", "1"], ["COUNT", "3"]])
    return random.choice([
        ["BLPOP", *keys, "0"], ["BRPOP", *keys, "0"], ["BLPOP", *keys, "0"],
        ["BLMOVE", keys[0], random.choice(LIST_KEYS), *ends, "0"],
        ["BRPOPLPUSH", keys[0], random.choice(LIST_KEYS), "0"],
        ["BLMPOP", "0", len(keys), *keys, ends[0], *count]])


def waits_for_zset(random):
    keys = some_of(random, ZSET_KEYS)
    count = random.choice([[], ["COUNT", "2"]])
    return random.choice([["BZPOPMIN", *keys, "0"], ["BZPOPMAX", *keys, "0"],
                          ["BZMPOP", "0", len(keys), *keys, random.choice(["MIN", "MAX"]), *count]])


def waits_for_stream(random):
    keys = some_of(random, STREAM_KEYS)
    count = random.choice([[], ["COUNT", "1"], ["COUNT", "3"]])
    if random.random() < 0.5:
        ids = [random.choice(["$", "$", "0", "5-0", "7-2"]) for _ in keys]
        return ["XREAD", *count, "BLOCK", "0", "STREAMS", *keys, *ids]
    consumer = random.choice(["ann", "bob"])
    noack = random.choice([[], [], ["NOACK"]])
    return ["XREADGROUP", "GROUP", "g", consumer, *count, "BLOCK", "0", *noack, "STREAMS", *keys,
            *[">"] * len(keys)]


def arrives_by(random, family, key, make):
    """Ways in which a whole value comes under a key; `make` gives it one element."""
    return random.choice([
        ["RENAME", SIDE[family], key], ["COPY", SIDE[family], key],
        ["COPY", SIDE[family], key, "REPLACE"], ["EVAL", MOVE, "1", key, *make],
        ["RESTORE", key, "0", DUMPED[family]], ["RESTORE", key, "0", DUMPED[family], "REPLACE"]])


def gives_list(random):
    key, other = random.choice(LIST_KEYS), random.choice(LIST_KEYS + ["side"])
    return random.choice([
        ["RPUSH", key, "a"], ["LPUSH", key, "a", "b", "c"], ["RPUSH", key, "a", "b"],
        ["RPUSH", "side", "x", "y"], arrives_by(random, "lists", key, ["RPUSH", key, "moved"]),
        arrives_by(random, "lists", key, ["RPUSH", key, "moved", "too"]),
        ["SORT", other, "ALPHA", "STORE", random.choice(STORED_LIST_KEYS)],
        ["LMOVE", "side", key, "LEFT", "LEFT"],
        ["RPOPLPUSH", other, key], ["LPUSHX", key, "n"], ["SET", STRING_LIST_KEY, "string"],
        ["DEL", key], ["LINSERT", key, "BEFORE", "a", "n"], ["LPOP", key], ["LLEN", key],
        ["EVAL", "redis.call('RPUSH', KEYS[1], 'e1', 'e2') return redis.call('LPOP', KEYS[1])",
         "1", key],
        ["EVAL", "redis.call('RPUSH', KEYS[1], 'gone') redis.call('DEL', KEYS[1])", "1", key]])


def gives_zset(random):
    key, stored = random.choice(ZSET_KEYS), random.choice(STORED_ZSET_KEYS)
    return random.choice([
        ["ZADD", key, "1", "a"], ["ZADD", key, "2", "b", "1", "a", "3", "c"],
        ["ZINCRBY", key, "5", "i"], ["ZADD", "zside", "7", "s"],
        arrives_by(random, "zsets", key, ["ZADD", key, "4", "moved"]),
        arrives_by(random, "zsets", key, ["ZADD", key, "4", "moved", "5", "too"]),
        ["ZUNIONSTORE", stored, "1", "zside"],
        ["ZRANGESTORE", stored, "zside", "0", "-1"], ["SET", STRING_ZSET_KEY, "string"],
        ["DEL", key],
        ["ZCARD", key],
        ["EVAL", "redis.call('ZADD', KEYS[1], 1, 'e1', 2, 'e2') "
                 "return redis.call('ZCARD', KEYS[1])", "1", key]])


def gives_stream(random):
    key = random.choice(STREAM_KEYS)
    return random.choice([
        ["XADD", key, "7-*", "f", "v"], ["XADD", key, "7-*", "f", "w", "g", "x"],
        ["XADD", key, "MAXLEN", "1", "8-*", "f", "v"], ["XADD", key, "3-*", "f", "early"],
        ["XADD", "xside", "7-*", "s", "t"],
        arrives_by(random, "streams", key, ["XADD", key, "9-*", "m", "moved"]),
        ["XDEL", key, "7-1"], ["XTRIM", key, "MAXLEN", "0"], ["DEL", key],
        ["XGROUP", "CREATE", key, "g", random.choice(["$", "0"]), "MKSTREAM"],
        ["XGROUP", "DESTROY", key, "g"], ["XGROUP", "SETID", key, "g", "0"], ["XLEN", key],
        ["XACK", key, "g", "7-1", "7-2"], ["XSETID", key, "20-0"],
        ["EVAL", "redis.call('XADD', KEYS[1], '7-*', 'e', '1') "
                 "return redis.call('XLEN', KEYS[1])", "1", key]])


WAITS = {"lists": waits_for_list, "zsets": waits_for_zset, "streams": waits_for_stream}
GIVES = {"lists": gives_list, "zsets": gives_zset, "streams": gives_stream}
ENDS = {"lists": lambda key: ["RPUSH", key, "end"], "zsets": lambda key: ["ZADD", key, "1", "end"],
        "streams": lambda key: ["XADD", key, "99-*", "the", "end"]}


def blocking_sequence(random):
    """Some clients wait; others act; in the end everyone is served, and reads one reply."""
    family = random.choice(["lists", "lists", "lists", "zsets", "zsets", "streams", "streams"])
    waiting = []
    unit = []
    if family == "streams":
        unit += [Command(["XGROUP", "CREATE", key, "g", "$", "MKSTREAM"])
                 for key in some_of(random, STREAM_KEYS)]
    for number in random.sample([2, 3, 4, 5], random.randint(1, 4)):
        unit.append(Command(WAITS[family](random), "exact", number, "async"))
        waiting.append(number)
        if random.random() < 0.2:
            unit.append(Command(GIVES[family](random)))
    for _ in range(random.randint(1, 4)):
        words = [GIVES[family](random) for _ in range(random.randint(1, 3))]
        in_multi = random.random() < 0.3
        if in_multi:
            unit += [Command(["MULTI"])] + [Command(each, in_multi=True) for each in words]
            unit.append(Command(["EXEC"], "exec"))
        else:
            unit += [Command(each) for each in words]
    unit.append(Command(["FLUSHALL"]))
    for _ in waiting:
        for key in KEYS[family]:
            unit += [Command(["DEL", key]), Command(ENDS[family](key))]
    unit += [Command([], "exact", number, "read") for number in waiting]
    unit.append(Command(["FLUSHALL"]))
    return unit


def blocking_round(random, count, _protocol):
    commands = []
    while len(commands) < count:
        commands += blocking_sequence(random)
    return commands
