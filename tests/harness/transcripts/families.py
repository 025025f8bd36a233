"""Seeded commands of the data families, with every option of Redis 7.0, valid or not.

Each family is a list of (weight, function of a `Pool`); a function answers one command's words.
"""

from harness.transcripts.pools import (BAD_INTEGERS, CANNOT_MUTATE, FAR_MS, Command, Pool,
                                       to_bytes)

SHORT_TIMEOUTS = ["0.001", "0.002", "0.001", "-1", "abc", "", "-0.5", "1e400", "nan"]


def expiry(pool):
    """An expiry option of SET and GETEX."""
    what = pool.pick("EX", "PX", "EXAT", "PXAT")
    if pool.chance(0.12):
        number = pool.random.choice(["0", "-1", *BAD_INTEGERS])
        # In the past, where only chance tells when redis-server's cycle removes the key.
        return [what, "-2" if what == "PXAT" and number == "4294967296" else number]
    number = {"EX": pool.far_seconds(), "PX": pool.far_seconds() + "000",
              "EXAT": FAR_MS // 1000, "PXAT": FAR_MS}[what]
    return [what, number]


BIT_OFFSETS = ["0", "1", "5", "7", "8", "30", "63", "64", "99", "500"]


def bit_offset(pool):
    return pool.random.choice(BAD_INTEGERS if pool.chance(0.04) else BIT_OFFSETS)


def bit_range(pool):
    """What BITCOUNT and BITPOS look at."""
    words = [pool.integer() for _ in range(pool.pick(0, 1, 2, 2, 2))]
    return [*words, pool.pick("BIT", "BYTE", "bit", "x")] if pool.chance(0.4) else words


def bitfield(pool):
    """BITFIELD with a few operations."""
    words = []
    for _ in range(pool.pick(0, 1, 1, 2, 3, 4)):
        if pool.chance(0.4):
            words += ["OVERFLOW", pool.pick("WRAP", "SAT", "FAIL", "FAIL", "BAD")]
        field = [pool.pick("u1", "i1", "u5", "i8", "u8", "i13", "u16", "i32", "u63", "i64", "i64",
                           "u64", "i0", "x"), pool.pick("", "", "#") + bit_offset(pool)]
        what = pool.pick("GET", "SET", "INCRBY")
        words += [what, *field] if what == "GET" else [what, *field, pool.integer()]
    return [pool.pick("BITFIELD", "BITFIELD", "BITFIELD", "BITFIELD_RO"), pool.key(), *words]


BITS = [
    (4, lambda p: ["SET", p.target(), p.pick(p.value(), "foobar", bytes(20), b"\xff" * 20,
                                             bytes(9) + b"\x10" + bytes(9))]),
    (4, lambda p: ["SETBIT", p.key(), bit_offset(p), p.pick("0", "1", "1", "2", "x")]),
    (3, lambda p: ["GETBIT", p.key(), bit_offset(p)]),
    (4, lambda p: ["BITCOUNT", p.key(), *bit_range(p)]),
    (5, lambda p: ["BITPOS", p.key(), p.pick("0", "1", "0", "1", "2"), *bit_range(p)]),
    (4, lambda p: ["BITOP", p.pick("AND", "OR", "XOR", "NOT", "NAND"), p.target(), *p.keys()]),
    (8, bitfield),
    (2, lambda p: ["GET", p.key()]),
    (1, lambda p: ["DEL", p.key()]),
]

STRINGS = [
    (6, lambda p: ["SET", p.target(), p.value(), *p.some(
        "NX", "XX", "GET", "KEEPTTL", lambda: expiry(p), probability=0.2)]),
    (6, lambda p: ["GET", p.key()]),
    (1, lambda p: ["GETSET", p.target(), p.value()]),
    (2, lambda p: ["GETEX", p.key(), *p.some("PERSIST", lambda: expiry(p))]),
    (1, lambda p: ["GETDEL", p.key()]),
    (1, lambda p: ["SETNX", p.key(), p.value()]),
    (1, lambda p: ["SETEX", p.target(), p.pick(p.far_seconds(), "0", "-1", "abc"), p.value()]),
    (1, lambda p: ["PSETEX", p.target(), p.pick(p.far_seconds() + "000", "0", "-5", ""),
                   p.value()]),
    (2, lambda p: ["MGET", *p.keys()]),
    (1, lambda p: ["MSET", *p.some_pairs(p.target, p.value)]),
    (1, lambda p: ["MSETNX", *p.some_pairs(p.key, p.value)]),
    (2, lambda p: ["APPEND", p.key(), p.value()]),
    (2, lambda p: ["STRLEN", p.key()]),
    (3, lambda p: [p.pick("GETRANGE", "SUBSTR"), p.key(), p.integer(), p.integer()]),
    (2, lambda p: ["SETRANGE", p.key(), p.pick(p.integer(), "536870912", "20"), p.value()]),
    (2, lambda p: [p.pick("INCR", "DECR"), p.key()]),
    (2, lambda p: [p.pick("INCRBY", "DECRBY"), p.key(), p.integer()]),
    (3, lambda p: ["INCRBYFLOAT", p.key(), p.score()]),
    (2, lambda p: ["LCS", p.key(), p.key(), *p.some(
        "LEN", "IDX", "WITHMATCHLEN", lambda: ["MINMATCHLEN", p.integer()])]),
    (1, lambda p: [p.pick("TTL", "PTTL", "EXPIRETIME"), p.key()]),
    (1, lambda p: ["PERSIST", p.key()]),
    (1, lambda p: ["DEL", *p.keys(2)]),
]


def expire(pool):
    absolute = pool.chance(0.5)
    milli = pool.chance(0.5)
    name = ("P" if milli else "") + "EXPIRE" + ("AT" if absolute else "")
    if pool.chance(0.1):
        number = pool.random.choice(BAD_INTEGERS + ["0", "-1", "-100"])
        number = number if number not in ("4294967296", "01", "+1") else "-2"
    elif absolute:
        number = (FAR_MS // 1000 + pool.random.randrange(5)) * (1000 if milli else 1)
    else:
        number = pool.far_seconds() + ("000" if milli else "")
    return [name, pool.key(), number, *pool.some("NX", "XX", "GT", "LT", "ZZ", probability=0.12)]


def make_key(pool):
    """A key of any type."""
    key = pool.random.choice(pool.own_keys)
    return pool.pick(
        ["SET", key, pool.value()], ["SADD", key, *pool.members()], ["RPUSH", key, *pool.values()],
        ["HSET", key, pool.member(), pool.value()], ["ZADD", key, "1", pool.member()],
        ["XADD", key, "5-*", pool.member(), pool.value()])


TEN_DUMPED = b"\x00\xc0\x0a\x0a\x00n\x9fWE\x0e\xaec\xbb"


def sort(pool):
    """SORT of any key, with patterns that name strings, hashes or nothing. Texts that are equal (up
    to a NUL, unless they are stored) may come in any order, so ALPHA is rare; sets have no order of
    their own, so there is no pattern without a star."""
    by = pool.pick([], [], [], ["BY", pool.pick("*", "w:*", "*->a", "w:hash->*")])
    options = pool.some("DESC", "ASC", lambda: limit(pool),
                        lambda: ["GET", pool.pick("#", "*", "*->a", "w:*", "none")],
                        lambda: ["STORE", pool.target()])
    return [pool.pick("SORT", "SORT", "SORT_RO"), pool.key(), *by,
            *(pool.some("ALPHA") if "STORE" in options and not by else []), *options]


GLOBS = ["*", "?", "[a-c]", "[^a]", "w:*", "\\*", "*d", "a*", "", "[", "{t}?", "[b-", "**",
         "w:[^sh]*", b"\x00*", "w?s*t", "\\a", "[\\a]", "[a"]

KEYS = [
    (6, make_key),
    (8, expire),
    (3, lambda p: [p.pick("TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"), p.key()]),
    (2, lambda p: ["PERSIST", p.key()]),
    (3, lambda p: [p.pick("DEL", "UNLINK"), *p.keys(2)]),
    (3, lambda p: [p.pick("EXISTS", "TOUCH"), *p.keys()]),
    (3, lambda p: ["TYPE", p.key()]),
    (3, lambda p: [p.pick("RENAME", "RENAMENX"), p.key(), p.key()]),
    (2, lambda p: ["KEYS", p.random.choice(GLOBS)]),
    (2, lambda p: ["SCAN", "0", *p.some(
        ["MATCH", p.pick("*", "w:*", "?", "[ab]")],
        lambda: ["COUNT", p.pick("1", "10", "1000", "0", "-1", "x")],
        ["TYPE", p.pick("string", "list", "ZSET", "none", "stream")], probability=0.4)]),
    (3, lambda p: ["COPY", p.key(), p.key(), *p.some(
        "REPLACE", lambda: ["DB", p.pick("0", "1", "1", "16", "x")], probability=0.4)]),
    (2, lambda p: ["MOVE", p.key(), p.pick("0", "1", "1", "0", "16", "")]),
    (1, lambda p: ["SWAPDB", p.pick("0", "1", "16"), p.pick("1", "0", "1", "x")]),
    (4, sort),
    (3, lambda p: ["OBJECT", p.pick("ENCODING", "ENCODING", "ENCODING", "FREQ", "REFCOUNT",
                                    "IDLETIME"), p.key()]),
    (1, lambda p: ["MEMORY", "USAGE", p.key(), *p.some(lambda: ["SAMPLES", p.count()])]),
    (1, lambda p: ["RESTORE", p.key(), p.pick("0", "100000", "x", "-1"),
                   p.pick(TEN_DUMPED, TEN_DUMPED, "bad"),
                   *p.some("REPLACE", "ABSTTL", ["IDLETIME", "5"], ["FREQ", "5"])]),
    (1, lambda p: ["RANDOMKEY"]),
    (1, lambda p: ["DBSIZE"]),
    (1, lambda p: ["SELECT", p.pick("0", "0", "1", "1", "15", "16", "-1", "abc", "")]),
    (1, lambda p: ["SET", p.random.choice(p.own_keys), p.value(), *expiry(p)]),
    (1, lambda p: ["GETEX", p.key(), *p.some("PERSIST", lambda: expiry(p))]),
]

LISTS = [
    (6, lambda p: [p.pick("LPUSH", "RPUSH"), p.target(), *p.values()]),
    (1, lambda p: [p.pick("LPUSH", "RPUSH"), p.target(), *["x"] * 150]),
    (1, lambda p: [p.pick("LPUSHX", "RPUSHX"), p.key(), *p.values(2)]),
    (4, lambda p: [p.pick("LPOP", "RPOP"), p.key(), *p.some(p.count)]),
    (5, lambda p: ["LRANGE", p.key(), p.integer(), p.integer()]),
    (1, lambda p: ["LRANGE", p.key(), "0", "-1"]),
    (2, lambda p: ["LLEN", p.key()]),
    (2, lambda p: ["LINDEX", p.key(), p.integer()]),
    (2, lambda p: ["LINSERT", p.key(), p.pick("BEFORE", "AFTER", "before", "BESIDE"), p.value(),
                   p.value()]),
    (2, lambda p: ["LSET", p.key(), p.integer(), p.value()]),
    (2, lambda p: ["LREM", p.key(), p.integer(), p.value()]),
    (1, lambda p: ["LTRIM", p.key(), p.integer(), p.integer()]),
    (4, lambda p: ["LPOS", p.key(), p.value(), *p.some(
        lambda: ["RANK", p.integer()], lambda: ["COUNT", p.count()],
        lambda: ["MAXLEN", p.count()])]),
    (3, lambda p: ["LMOVE", p.key(), p.target(), p.pick("LEFT", "RIGHT"),
                   p.pick("LEFT", "RIGHT", "right", "UP")]),
    (1, lambda p: ["RPOPLPUSH", p.key(), p.target()]),
    (3, lambda p: ["LMPOP", *p.counted_keys(), p.pick("LEFT", "RIGHT", "MIDDLE"),
                   *p.some(lambda: ["COUNT", p.count()])]),
    (2, lambda p: [p.pick("BLPOP", "BRPOP"), *p.keys(3), p.random.choice(SHORT_TIMEOUTS)]),
    (1, lambda p: ["BLMOVE", p.key(), p.target(), p.pick("LEFT", "RIGHT"), p.pick("LEFT", "UP"),
                   p.random.choice(SHORT_TIMEOUTS)]),
    (1, lambda p: ["BRPOPLPUSH", p.key(), p.target(), p.random.choice(SHORT_TIMEOUTS)]),
    (1, lambda p: ["BLMPOP", p.random.choice(SHORT_TIMEOUTS), *p.counted_keys(),
                   p.pick("LEFT", "RIGHT", "X"), *p.some(lambda: ["COUNT", p.count()])]),
    (1, lambda p: ["DEL", p.key()]),
]

HASHES = [
    (7, lambda p: [p.pick("HSET", "HSET", "HMSET"), p.target(), *p.some_pairs(p.member, p.value)]),
    (1, lambda p: ["HSET", p.pick("a", "b"), *[word for n in range(p.pick(140, 512, 513))
                                               for word in (n, n)]]),
    (1, lambda p: ["HSETNX", p.target(), p.member(), p.value()]),
    (3, lambda p: ["HGET", p.key(), p.member()]),
    (2, lambda p: ["HMGET", p.key(), *p.members()]),
    (3, lambda p: ["HGETALL", p.key()]),
    (2, lambda p: [p.pick("HKEYS", "HVALS"), p.key()]),
    (4, lambda p: ["HDEL", p.key(), *p.members()]),
    (2, lambda p: [p.pick("HEXISTS", "HSTRLEN"), p.key(), p.member()]),
    (1, lambda p: ["HLEN", p.key()]),
    (3, lambda p: ["HINCRBY", p.key(), p.member(), p.integer()]),
    (3, lambda p: ["HINCRBYFLOAT", p.key(), p.member(), p.score()]),
    (3, lambda p: ["HRANDFIELD", p.key(), *p.some(
        lambda: [p.count(), *p.some("WITHVALUES", "WITHSCORES")], probability=0.8)]),
    (2, lambda p: ["HSCAN", p.key(), "0", *p.some(
        ["MATCH", p.pick("*", "a*", "[1-3]")], lambda: ["COUNT", p.pick("1", "10", "0", "x")])]),
    (1, lambda p: ["DEL", p.key()]),
]

SETS = [
    (7, lambda p: ["SADD", p.target(), *p.members(6)]),
    (2, lambda p: ["SADD", p.target(), *[p.pick("1", "2", "3", "-7", "99", "70000", "5000000000")
                                         for _ in range(4)]]),
    (1, lambda p: ["SADD", p.pick("a", "b"), *range(p.pick(100, 520))]),
    (4, lambda p: ["SREM", p.key(), *p.members()]),
    (2, lambda p: ["SISMEMBER", p.key(), p.member()]),
    (2, lambda p: ["SMISMEMBER", p.key(), *p.members()]),
    (4, lambda p: ["SMEMBERS", p.key()]),
    (2, lambda p: ["SCARD", p.key()]),
    (2, lambda p: ["SPOP", p.key(), *p.some(p.count, probability=0.6)]),
    (3, lambda p: ["SRANDMEMBER", p.key(), *p.some(p.count, probability=0.7)]),
    (2, lambda p: ["SMOVE", p.key(), p.target(), p.member()]),
    (4, lambda p: [p.pick("SINTER", "SUNION", "SDIFF"), *p.keys()]),
    (4, lambda p: [p.pick("SINTERSTORE", "SUNIONSTORE", "SDIFFSTORE"), p.target(), *p.keys()]),
    (3, lambda p: ["SINTERCARD", *p.counted_keys(), *p.some(lambda: ["LIMIT", p.count()])]),
    (2, lambda p: ["SSCAN", p.key(), "0", *p.some(
        ["MATCH", p.pick("*", "a*", "[1-3]")], lambda: ["COUNT", p.pick("1", "10", "0", "x")])]),
    (1, lambda p: ["DEL", p.key()]),
]

LEX_KEYS = ["lex1", "lex2", "lex3"]


def lex_key(pool):
    return pool.random.choice(LEX_KEYS if pool.chance(0.95) else pool.wrong_keys)


def limit(pool):
    return ["LIMIT", pool.integer(), pool.integer()]


def zrange(pool):
    """ZRANGE and ZRANGESTORE. By lex only on keys whose scores are equal, as Redis demands."""
    store = pool.chance(0.3)
    by = pool.pick("", "", "BYSCORE", "BYSCORE", "BYLEX")
    bound = {"": pool.integer, "BYSCORE": pool.score_bound, "BYLEX": pool.lex_bound}[by]
    key = lex_key(pool) if by == "BYLEX" else pool.key()
    words = ["ZRANGESTORE", pool.target(), key] if store else ["ZRANGE", key]
    options = pool.some("REV", "WITHSCORES", lambda: limit(pool))
    return [*words, bound(), bound(), *([by] if by else []), *options]


def zrange_old(pool):
    """The forms before ZRANGE took options."""
    reverse = pool.pick("", "REV")
    what = pool.pick("RANGE", "RANGEBYSCORE", "RANGEBYSCORE", "RANGEBYLEX")
    if what == "RANGEBYLEX":
        return [f"Z{reverse}{what}", lex_key(pool), pool.lex_bound(), pool.lex_bound(),
                *pool.some(lambda: limit(pool))]
    bound = pool.integer if what == "RANGE" else pool.score_bound
    options = pool.some("WITHSCORES", lambda: limit(pool) if what != "RANGE" else [])
    return [f"Z{reverse}{what}", pool.key(), bound(), bound(), *options]


def zsets_together(pool):
    """ZUNION and its relatives."""
    name = pool.pick("ZUNION", "ZINTER", "ZDIFF")
    store = pool.chance(0.5)
    counted = pool.counted_keys()
    options = []
    if name != "ZDIFF" or pool.chance(0.05):
        weights = ["WEIGHTS", *[pool.score() for _ in counted[1:]]]
        options = pool.some(weights, lambda: ["AGGREGATE", pool.pick("SUM", "MIN", "MAX", "AVG")])
    if store:
        return [name + "STORE", pool.target(), *counted, *options]
    return [name, *counted, *options, *pool.some("WITHSCORES")]


ZSETS = [
    (8, lambda p: ["ZADD", p.target(),
                   *p.some("NX", "XX", "GT", "LT", "CH", "INCR", probability=0.12),
                   *p.some_pairs(p.score, p.member)]),
    (1, lambda p: ["ZADD", p.pick("a", "b"), *[word for n in range(140) for word in (n % 9, n)]]),
    (3, lambda p: ["ZADD", p.pick(*LEX_KEYS),
                   *[word for _ in range(4) for word in ("0", p.member())]]),
    (2, lambda p: ["ZINCRBY", p.target(), p.score(), p.member()]),
    (3, lambda p: ["ZREM", p.key(), *p.members()]),
    (2, lambda p: ["ZCARD", p.key()]),
    (2, lambda p: ["ZSCORE", p.key(), p.member()]),
    (1, lambda p: ["ZMSCORE", p.key(), *p.members()]),
    (3, lambda p: [p.pick("ZRANK", "ZREVRANK"), p.key(), p.member()]),
    (7, zrange),
    (6, zrange_old),
    (2, lambda p: ["ZCOUNT", p.key(), p.score_bound(), p.score_bound()]),
    (2, lambda p: ["ZLEXCOUNT", lex_key(p), p.lex_bound(), p.lex_bound()]),
    (1, lambda p: ["ZREMRANGEBYRANK", p.key(), p.integer(), p.integer()]),
    (1, lambda p: ["ZREMRANGEBYSCORE", p.key(), p.score_bound(), p.score_bound()]),
    (1, lambda p: ["ZREMRANGEBYLEX", lex_key(p), p.lex_bound(), p.lex_bound()]),
    (6, zsets_together),
    (2, lambda p: ["ZINTERCARD", *p.counted_keys(), *p.some(lambda: ["LIMIT", p.count()])]),
    (3, lambda p: [p.pick("ZPOPMIN", "ZPOPMAX"), p.key(), *p.some(p.count)]),
    (2, lambda p: ["ZMPOP", *p.counted_keys(), p.pick("MIN", "MAX", "LEFT"),
                   *p.some(lambda: ["COUNT", p.count()])]),
    (2, lambda p: ["ZRANDMEMBER", p.key(), *p.some(
        lambda: [p.count(), *p.some("WITHSCORES", "WITHVALUES")], probability=0.8)]),
    (2, lambda p: ["ZSCAN", p.key(), "0", *p.some(
        ["MATCH", p.pick("*", "a*", "[1-3]")], lambda: ["COUNT", p.pick("1", "10", "0", "x")])]),
    (1, lambda p: [p.pick("BZPOPMIN", "BZPOPMAX"), *p.keys(3), p.random.choice(SHORT_TIMEOUTS)]),
    (1, lambda p: ["BZMPOP", p.random.choice(SHORT_TIMEOUTS), *p.counted_keys(),
                   p.pick("MIN", "MAX", "X"), *p.some(lambda: ["COUNT", p.count()])]),
    (1, lambda p: ["DEL", p.key()]),
]

GROUPS = ("g", "g", "h", "", "nosuch")
CONSUMERS = ("alice", "bob", "carol", "")


def trim(pool):
    """A trimming of XADD and XTRIM."""
    by = pool.pick("MAXLEN", "MAXLEN", "MINID")
    bound = pool.count() if by == "MAXLEN" else pool.stream_id()
    return [by, *pool.some(["="], ["~"]), bound, *pool.some(
        lambda: ["LIMIT", pool.pick("0", "1", "100", "-1", "x")], probability=0.1)]


def xadd(pool):
    entry_id = pool.pick(pool.stream_id(), f"{pool.random.randint(0, 40)}-*", "99-*")
    options = pool.some("NOMKSTREAM", lambda: trim(pool), probability=0.12)
    return ["XADD", pool.target(), *options, entry_id, *pool.some_pairs(pool.member, pool.value)]


def xread(pool):
    """XREAD and XREADGROUP, of a few streams; waiting for a millisecond at most."""
    keys = pool.keys(2)
    options = pool.some(lambda: ["COUNT", pool.count()], ["BLOCK", "1"], probability=0.3)
    if pool.chance(0.35):
        ids = [pool.pick(pool.stream_id(), "0", "$") for _ in keys]
        return ["XREAD", *options, "STREAMS", *keys, *ids]
    ids = [pool.pick(">", ">", "0", pool.stream_id()) for _ in keys]
    noack = pool.some("NOACK", probability=0.1)
    return ["XREADGROUP", "GROUP", pool.pick(*GROUPS), pool.pick(*CONSUMERS), *options, *noack,
            "STREAMS", *keys, *ids]


def xgroup(pool):
    return ["XGROUP", *pool.pick(
        ["CREATE", pool.key(), pool.pick(*GROUPS[:4]), pool.pick("$", "0", pool.stream_id()),
         *pool.some("MKSTREAM", lambda: ["ENTRIESREAD", pool.count()])],
        ["SETID", pool.key(), pool.pick(*GROUPS), pool.pick("$", "0", pool.stream_id()),
         *pool.some(lambda: ["ENTRIESREAD", pool.count()])],
        ["CREATECONSUMER", pool.key(), pool.pick(*GROUPS), pool.pick(*CONSUMERS)],
        ["CREATE", pool.key(), "g", "0", "MKSTREAM"])]


def xclaim(pool):
    if pool.chance(0.4):
        return ["XAUTOCLAIM", pool.key(), pool.pick(*GROUPS), pool.pick(*CONSUMERS),
                pool.pick("0", "0", "100000", "-1"), pool.stream_bound(),
                *pool.some("JUSTID", lambda: ["COUNT", pool.count()])]
    return ["XCLAIM", pool.key(), pool.pick(*GROUPS), pool.pick(*CONSUMERS),
            pool.pick("0", "0", "100000", "-1"), *pool.stream_ids(), *pool.some(
                "FORCE", "JUSTID", ["IDLE", "500000"], lambda: ["RETRYCOUNT", pool.integer()],
                lambda: ["LASTID", pool.stream_id()], probability=0.25)]


def xpending(pool):
    words = ["XPENDING", pool.key(), pool.pick(*GROUPS)]
    if pool.chance(0.4):
        return words
    idle = pool.some(["IDLE", "100000"], probability=0.3)
    consumer = pool.some(lambda: [pool.pick(*CONSUMERS)])
    return [*words, *idle, pool.stream_bound(), pool.stream_bound(), pool.count(), *consumer]


STREAMS = [
    (14, xadd),
    (8, xread),
    (6, xgroup),
    (5, xclaim),
    (5, lambda p: ["XACK", p.key(), p.pick(*GROUPS), *p.stream_ids()]),
    (4, xpending),
    (4, lambda p: ["XDEL", p.key(), *p.stream_ids()]),
    (2, lambda p: ["XTRIM", p.key(), *trim(p)]),
    (2, lambda p: ["XLEN", p.key()]),
    (4, lambda p: [p.pick("XRANGE", "XREVRANGE"), p.key(), p.stream_bound(), p.stream_bound(),
                   *p.some(lambda: ["COUNT", p.count()])]),
    (1, lambda p: ["XSETID", p.key(), p.stream_id(), *p.some(
        lambda: ["ENTRIESADDED", p.count()], lambda: ["MAXDELETEDID", p.stream_id()])]),
    (3, lambda p: ["XINFO", "STREAM", p.key(), *p.some(
        lambda: ["FULL", *p.some(lambda: ["COUNT", p.count()])])]),
    (3, lambda p: ["XINFO", "GROUPS", p.key()]),
    (1, lambda p: ["XINFO", "CONSUMERS", p.key(), p.pick(*GROUPS)]),
    (1, lambda p: p.pick(["XGROUP", "DESTROY", p.key(), p.pick(*GROUPS)],
                         ["XGROUP", "DELCONSUMER", p.key(), "g", p.pick(*CONSUMERS)],
                         ["DEL", p.key()], ["RENAME", p.key(), p.key()])),
]

def damaged(pool):
    """Bytes that make a HyperLogLog a bad one, or another one."""
    # (No run of two bytes is cut: redis-server reads what is behind it.)
    runs = [pool.pick(b"\x7f\xff", b"\x7f\xfe", b"\x3f", b"\x80", b"\xff", b"\x83\x00",
                      b"\x40\x00", b"")
            for _ in range(pool.random.randint(0, 3))]
    header = b"HYLL" + pool.pick(b"\1", b"\1", b"\1", b"\0", b"\2") + bytes(10)
    return header + pool.pick(b"\x80", b"\0") + b"".join(runs)


def elements(pool):
    many = pool.chance(0.3)
    numbers = [pool.random.randrange(pool.pick(50, 5000)) for _ in range(pool.pick(30, 400))]
    return numbers if many else pool.values(3)


HYPERLOGLOGS = [
    (10, lambda p: ["PFADD", p.target(), *elements(p)]),
    (1, lambda p: ["PFADD", p.target()]),
    (5, lambda p: ["PFCOUNT", p.key()]),
    (3, lambda p: ["PFCOUNT", *p.keys()]),
    (4, lambda p: ["PFMERGE", p.target(), *p.keys(3)]),
    (2, lambda p: ["PFMERGE", p.target()]),
    (3, lambda p: ["GET", p.key()]),
    (2, lambda p: ["PFDEBUG", p.pick("ENCODING", "DECODE", "GETREG", "X"), p.key()]),
    (1, lambda p: ["PFDEBUG", "TODENSE", p.key()]),
    (1, lambda p: ["SET", p.target(), damaged(p)]),
    (1, lambda p: ["SETRANGE", p.key(), p.pick("0", "4", "8", "15", "16", "20", "300", "12303"),
                   p.pick(b"\0", b"\1", b"\xff", b"\x80\x80", b"\x7f\xff")]),
    (1, lambda p: [p.pick("OBJECT", "STRLEN"), *p.pick(["ENCODING"], []), p.key()]),
    (2, lambda p: ["DEL", p.key()]),
    (1, lambda p: ["COPY", p.key(), p.target(), "REPLACE"]),
]

PLACES = [("13.361389", "38.115556"), ("15.087269", "37.502669"), ("13.5", "38"), ("13.5", "38"),
          ("0", "0"), ("-0.0001", "0.0001"), ("180", "85.05112878"), ("-180", "-85.05112878"),
          ("179.99", "-16.5"), ("-179.99", "-16.6"), ("2.35", "48.85"), ("100", "80.5")]


def place(pool):
    if pool.chance(0.03):
        return [pool.pick("181", "abc", "nan", "1e3"), pool.pick("1", "86", "", "inf")]
    if pool.chance(0.4):
        return [f"{pool.random.uniform(-1, 1) * pool.pick(0.1, 20, 180):.6f}",
                f"{pool.random.uniform(-1, 1) * pool.pick(0.1, 20, 85):.6f}"]
    return list(pool.random.choice(PLACES))


def length(pool):
    if pool.chance(0.03):
        return pool.pick("-1", "x", "", "nan")
    return pool.pick("0", "1", "10", "100.5", "500", "2000", "20000", "1e9", "0.001")


def geo_options(pool):
    return pool.some("ASC", "DESC", "WITHDIST", "WITHCOORD", "WITHHASH",
                     lambda: ["COUNT", pool.count(), *pool.some("ANY")], probability=0.25)


def geo_unit(pool):
    return pool.pick("m", "km", "KM", "mi", "ft", *(["x"] if pool.chance(0.05) else []))


def georadius(pool):
    by_member = pool.chance(0.5)
    read_only = pool.chance(0.3)
    name = "GEORADIUS" + ("BYMEMBER" if by_member else "") + ("_RO" if read_only else "")
    options = geo_options(pool)
    if pool.chance(0.3):
        kept = [word for word in options if not str(word).startswith("WITH")]
        options = [*kept, pool.pick("STORE", "STOREDIST"), pool.target()]
    return [name, pool.key(), *([pool.member()] if by_member else place(pool)), length(pool),
            geo_unit(pool), *options]


def geosearch(pool):
    store = pool.chance(0.3)
    start = ["FROMMEMBER", pool.member()] if pool.chance(0.5) else ["FROMLONLAT", *place(pool)]
    shape = pool.pick(["BYRADIUS", length(pool)], ["BYBOX", length(pool), length(pool)])
    words = [start, [*shape, geo_unit(pool)], geo_options(pool)]
    if store:
        words[2] = [word for word in words[2] if not str(word).startswith("WITH")]
        words.append(pool.some("STOREDIST"))
    pool.random.shuffle(words)
    name = ["GEOSEARCHSTORE", pool.target()] if store else ["GEOSEARCH"]
    return [*name, pool.key(), *sum(words, [])]


GEO = [
    (8, lambda p: ["GEOADD", p.target(), *p.some("NX", "XX", "CH", probability=0.1),
                   *[word for _ in range(p.pick(1, 2, 3, 12))
                     for word in (*place(p), p.member())]]),
    (3, lambda p: ["GEODIST", p.key(), p.member(), p.member(), *p.some(lambda: geo_unit(p))]),
    (2, lambda p: ["GEOHASH", p.key(), *p.members()]),
    (2, lambda p: ["GEOPOS", p.key(), *p.members()]),
    (8, georadius),
    (10, geosearch),
    (2, lambda p: ["ZRANGE", p.key(), "0", "-1", "WITHSCORES"]),
    (1, lambda p: ["ZADD", p.target(), p.score(), p.member()]),
    (1, lambda p: ["ZREM", p.key(), *p.members()]),
    (1, lambda p: ["DEL", p.key()]),
]

# family -> (the type of its own keys, its commands)
TABLES = {"strings": ("string", STRINGS), "bits": ("string", BITS), "keys": (None, KEYS),
          "lists": ("list", LISTS), "hashes": ("hash", HASHES), "sets": ("set", SETS),
          "zsets": ("zset", ZSETS), "streams": ("stream", STREAMS),
          "hyperloglogs": ("string", HYPERLOGLOGS), "geo": ("zset", GEO)}
LISTERS = {"SRANDMEMBER": lambda key: ["SMEMBERS", key], "SPOP": lambda key: ["SMEMBERS", key],
           "HRANDFIELD": lambda key: ["HGETALL", key],
           "ZRANDMEMBER": lambda key: ["ZRANGE", key, "0", "-1", "WITHSCORES"]}
# By these a key could leave the state that BYLEX needs.
NEVER_MUTATED_KEYS = set(LEX_KEYS)


def pool_for(family, random):
    return Pool(random, TABLES[family][0])


def words_of(family, pool, mistakes=0.08, blocking_too=False):
    """One command's words. A mistake could turn a short wait into an endless one, so blocking
    commands get none unless `blocking_too` (inside MULTI and scripts, where nothing waits)."""
    table = TABLES[family][1]
    make = pool.random.choices([row[1] for row in table], [row[0] for row in table])[0]
    words = make(pool)
    blocked = words[0] in CANNOT_MUTATE and not blocking_too
    on_lex = any(word in NEVER_MUTATED_KEYS for word in words[1:3] if isinstance(word, str))
    if pool.chance(mistakes) and not blocked and not on_lex:
        mutated = pool.mutate(words)
        if is_comparable(words, mutated, blocking_too):
            words = mutated
    if pool.chance(0.1):
        words = pool.change_case(words)
    return words


def is_comparable(words, mutated, in_unit):
    """Whether a mistake in these words is answered alike. `in_unit`: inside MULTI or a script."""
    # A scan that starts at a made-up cursor may answer anything.
    if "SCAN" in words[0] and not (words[0] == mutated[0] and cursor_is_zero(mutated)):
        return False
    # An id from the clock is each server's own.
    if words[0] == "XADD" and "*" in mutated:
        return False
    # Sluice has ZRANK with a score, so it refuses a fourth word when the command runs.
    return not (in_unit and words[0] in ("ZRANK", "ZREVRANK") and len(mutated) > 3)


def cursor_is_zero(words):
    at = 1 if words[0] == "SCAN" else 2
    return len(words) <= at or words[at] in ("0", "abc")


def unit_of(family, pool, connection=1, in_multi=False):
    """A few commands that belong together: mostly one."""
    words = words_of(family, pool, blocking_too=in_multi)
    return around_random(Command(words, connection=connection, in_multi=in_multi))


def cleared_after(command, words):
    """What follows `command`, whose words or whose script's are `words`: the servers pop different
    members at random, so the key goes with the rest of them."""
    if not words or to_bytes(words[0]).upper() != b"SPOP" or len(words) < 2:
        return []
    return [Command(["DEL", words[1]], connection=command.connection, in_multi=command.in_multi)]


def around_random(command):
    """What answers at random gets a list of the allowed answers before it, and leaves no trace."""
    lister = LISTERS.get(command.name)
    if not lister or len(command.arguments) < 2:
        return [command]
    key = command.arguments[1]
    unit = [command]
    if not command.in_multi:
        unit.insert(0, Command(lister(key), connection=command.connection))
        command.members = True
    return unit + cleared_after(command, command.arguments)


def simple_round(family, pool, count):
    """About `count` commands of one data family."""
    commands = []
    while len(commands) < count:
        commands += unit_of(family, pool)
    return commands
