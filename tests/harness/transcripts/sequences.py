"""Seeded rounds that need more than single commands: transactions, scripts, functions, pub/sub,
notifications."""

import fnmatch
import hashlib

from harness.transcripts.families import TABLES, around_random, cleared_after, words_of
from harness.transcripts.packing import packing_round
from harness.transcripts.pools import (BAD_INTEGERS, MEMBERS, SCORES, Command, Pool, mode_of,
                                       to_bytes)
from harness.transcripts.rights import rights_round
from harness.transcripts.waits import blocking_round

LETTERS = {"strings": "s", "lists": "l", "hashes": "h", "sets": "t", "zsets": "z"}
ALL_LETTERS = {**LETTERS, "bits": "b", "streams": "x", "keys": "k", "hyperloglogs": "p",
               "geo": "g"}


class Mixed:
    """One pool a data family, with keys of its own; the wrong types are the others' keys."""

    def __init__(self, random, letters=None):
        self.random = random
        self.pools = {}
        letters = letters or LETTERS
        for family, letter in letters.items():
            pool = Pool(random, TABLES[family][0])
            pool.own_keys = [letter + "1", letter + "2", "{x}" + letter]
            pool.wrong_keys = [other + "1" for other in letters.values() if other != letter]
            self.pools[family] = pool

    def words(self, mistakes=0.03, blocking_too=True):
        family = self.random.choice(list(self.pools))
        return words_of(family, self.pools[family], mistakes, blocking_too)

    def key(self):
        return self.random.choice(list(self.pools.values())).key()

    def chance(self, probability):
        return self.random.random() < probability

    def pick(self, *choices):
        return self.random.choice(choices)


# -- Transactions -------------------------------------------------------------------------------


def watch_part(mixed):
    """WATCH, and what may break it: a write by another connection, or by this one."""
    if mixed.chance(0.5):
        return []
    unit = [Command(["WATCH", *[mixed.key() for _ in range(mixed.random.randint(1, 3))]])]
    for _ in range(mixed.random.randrange(3)):
        unit += around_random(Command(mixed.words(blocking_too=False),
                                      connection=mixed.pick(1, 2, 2)))
    if mixed.chance(0.15):
        unit.append(Command(["UNWATCH"]))
    return unit


def queued_part(mixed):
    unit = []
    for _ in range(mixed.random.randrange(6)):
        unit += around_random(Command(mixed.words(), in_multi=True))
        if mixed.chance(0.04):
            strange = mixed.pick(["MULTI"], ["WATCH", mixed.key()], ["NOSUCH", "x"], ["GET"],
                                 ["UNWATCH"], ["PING"], ["SELECT", "1"], ["SELECT", "99"],
                                 ["ECHO", "x"], ["SELECT", "0"], ["FLUSHDB"], ["DBSIZE"],
                                 ["EVAL", "return redis.call('GET', KEYS[1])", "1", mixed.key()])
            unit.append(Command(strange, in_multi=True))
        if mixed.chance(0.03):
            unit += around_random(Command(mixed.words(blocking_too=False), connection=2))
    return unit


def transactions_round(random, count, _protocol):
    mixed = Mixed(random, ALL_LETTERS)
    commands = []
    while len(commands) < count:
        if mixed.chance(0.3):
            commands += around_random(Command(mixed.words(blocking_too=False)))
        if mixed.chance(0.03):
            commands.append(Command(mixed.pick(["EXEC"], ["DISCARD"], ["UNWATCH"], ["EXEC", "x"],
                                               ["MULTI", "x"], ["WATCH"], ["DISCARD", "x"])))
        commands += watch_part(mixed)
        commands.append(Command(["MULTI"]))
        commands += queued_part(mixed)
        end = mixed.pick("EXEC", "EXEC", "EXEC", "EXEC", "DISCARD")
        commands.append(Command([end], "exec" if end == "EXEC" else "exact"))
    return commands


# -- Scripts ------------------------------------------------------------------------------------

CALLS = [
    "return redis.call(unpack(ARGV))",
    "return redis.pcall(unpack(ARGV))",
    "redis.setresp(3) return redis.call(unpack(ARGV))",
    "local r = redis.pcall(unpack(ARGV)) return {1, r, 'end'}",
    "redis.call(unpack(ARGV)) return redis.call('DBSIZE')",
]
LOOKS = [
    "local r = redis.pcall(unpack(ARGV)) if type(r) == 'table' then "
    "return {type(r), #r, r['err'] or false, r['ok'] or false} end return {type(r), tostring(r)}",
    "redis.setresp(3) local r = redis.pcall(unpack(ARGV)) if type(r) == 'table' then local n = {} "
    "for k in pairs(r) do n[#n + 1] = tostring(k) end table.sort(n) return n end return type(r)",
]
NUMBERS = [
    "return tostring(tonumber(ARGV[1]))", "return tonumber(ARGV[1])",
    "return redis.call('SET', KEYS[1], tonumber(ARGV[1]) or 'x')",
    "redis.call('SET', KEYS[1], tonumber(ARGV[1]) or 0) return redis.call('GET', KEYS[1])",
    "return {tonumber(ARGV[1]), {double = tonumber(ARGV[1])}}",
    "return ARGV[1] + 1", "return tostring(ARGV[1] * 2)", "return #ARGV[1]",
    "return redis.call('ZADD', KEYS[1], ARGV[1], 'm')",
    "return string.format('%d %s', tonumber(ARGV[1]) or 0, ARGV[1])",
    "return cjson.encode({tonumber(ARGV[1])})",
    "return bit.tohex(tonumber(ARGV[1]) or 0)",
    "return {bit.band(ARGV[1], 255), bit.bor(ARGV[1], 1), bit.bxor(ARGV[1], 7), "
    "bit.lshift(ARGV[1], 3), bit.rshift(ARGV[1], 2), bit.arshift(ARGV[1], 1), bit.bnot(ARGV[1])}",
]
JSON = ['[1,2,3]', '[]', '{}', '{"a":1}', '"x"', '1.5', '[1.0,-2e3,"\\u00e9"]', 'null',
        '[null,true]', '{"a":[{"b":null}]}', '[', '{a:1}', '', '[1,]', '1e400', '[[[[1]]]]',
        '"\\ud83d\\ude00"', 'nul']


def lua_literal(mixed, depth=0):
    """A Lua expression of the kinds that become replies."""
    what = mixed.random.randrange(16 if depth < 3 else 8)
    simple = ["1", "-7", "3.99", "'text'", "true", "false", "nil", "1e15", "2^53", "''", "-0.5",
              "'a\\0b\\r\\n'", "9007199254740993", "1/0", "'OK'"]
    if what < 8:
        return mixed.random.choice(simple)
    if what < 12:
        return "{" + ",".join(lua_literal(mixed, depth + 1)
                              for _ in range(mixed.random.randrange(4))) + "}"
    inner = lua_literal(mixed, depth + 1)
    return mixed.pick(
        "{ok='fine'}", "{err='ERR mine'}", "{err='no code'}", "{ok=1}", "{err=7}", "{double=1.5}",
        "{double=3}", "{double='x'}", "{map={a=%s}}" % inner, "{set={a=true}}", "{set={}}",
        "{map={}}", "{big_number='12345678901234567890'}", "{x=1}", "redis.status_reply('PONG')",
        "{verbatim_string={format='txt', string='words'}}", "{verbatim_string='x'}",
        "redis.error_reply('MY error')", "redis.error_reply('one')", "{%s,nil,2}" % inner,
        "{err='line\\r\\nbreak'}", "{ok='a\\r\\nb'}")


def script_of_call(mixed):
    """A script that runs one command of a data family."""
    words = mixed.words()
    mode = mode_of([to_bytes(word) for word in words])
    if mixed.chance(0.2):
        script = mixed.random.choice(LOOKS)
        mode = {"exact": "exact", "random": "random", "seconds": "random",
                "milliseconds": "random", "type": "type"}.get(mode, "deep")
        if words[0].upper() in ("RANDOMKEY", "SCAN"):
            mode = "type"
    else:
        script = mixed.random.choice(CALLS)
        mode = {"scan": "type", "pairs": "deep", "hash": "deep", "set": "deep",
                "unordered": "deep"}.get(mode, mode)
        if "setresp(3)" in script and words[0].upper() in ("LCS", "XREAD", "XREADGROUP", "XINFO"):
            # A map, and LuaJIT walks its tables in another order. XINFO's holds times besides.
            mode = "type" if words[0].upper() == "XINFO" else "deep"
    keys = [mixed.key() for _ in range(mixed.random.randrange(3))]
    command = Command([mixed.pick("EVAL", "EVAL", "EVAL", "EVAL", "EVAL_RO"), script, len(keys),
                       *keys, *words], mode)
    return [command, *cleared_after(command, words)]


def script_by_hash(mixed):
    script = mixed.random.choice(CALLS[:2])
    sha = hashlib.sha1(script.encode()).hexdigest()
    words = ["GET", mixed.key()]
    return [Command(mixed.pick(["SCRIPT", "LOAD", script], ["SCRIPT", "EXISTS", sha, "x" * 40],
                               ["EVALSHA", sha, 0, *words], ["EVALSHA", sha.upper(), 0, *words],
                               ["EVALSHA", "f" * 40, 0], ["EVALSHA", "short", 0],
                               ["SCRIPT", "FLUSH"], ["EVALSHA", sha, "-1"], ["EVALSHA", sha, "9"]))]


def script_unit(mixed):
    what = mixed.random.randrange(10)
    if what < 5:
        return script_of_call(mixed)
    if what < 6:
        return script_by_hash(mixed)
    if what < 8:
        return [Command(["EVAL", "return " + lua_literal(mixed), 0], "deep")]
    if what < 9:
        number = mixed.random.choice(SCORES + BAD_INTEGERS + MEMBERS)
        script = mixed.random.choice(NUMBERS)
        # LuaJIT knows one NaN, and its %s does not end at a NUL: neither is Lua's to promise.
        text = to_bytes(number)
        if b"nan" in text.lower() or ("%s" in script and b"\0" in text):
            number = "inf"
        if "bit." in script:
            number = mixed.pick("0", "1", "-1", "255", "4294967295", "2147483648", "-5", "1.5",
                                "1e3")
        return [Command(["EVAL", script, 1, mixed.key(), number])]
    text = mixed.random.choice(JSON)
    script = mixed.pick("return cjson.decode(ARGV[1])",
                        "return cjson.encode(cjson.decode(ARGV[1]))",
                        "return tostring(cjson.decode(ARGV[1]) == cjson.null)",
                        "local ok, e = pcall(cjson.decode, ARGV[1]) return {tostring(ok), e}")
    return [Command(["EVAL", script, 0, text], "deep")]


def scripts_round(random, count, _protocol):
    mixed = Mixed(random, ALL_LETTERS)
    commands = []
    while len(commands) < count:
        if mixed.chance(0.3):
            commands += around_random(Command(mixed.words(blocking_too=False)))
        commands += script_unit(mixed)
    return commands


# -- Functions ----------------------------------------------------------------------------------

# name -> body of a function. By FCALL it does what a script does.
BODIES = {"call": "return redis.call(unpack(args))", "pcall": "return redis.pcall(unpack(args))",
          "around": "return {#keys, redis.pcall(unpack(args)), 'end'}",
          "state": "count = (count or 0) + 1 return count", "keys": "return keys",
          "fails": "error('mine')", "tables": "error({err='MINE of it'})"}


def library(mixed):
    """The text of a library, now and then a bad one."""
    name = mixed.pick("a", "b", "c")
    lines = [f"#!lua name={name}"]
    for function in mixed.random.sample(sorted(BODIES), mixed.random.randint(1, 4)):
        flags = mixed.pick("", "", "flags={'no-writes'}, ", "flags={'allow-oom'}, ")
        lines.append(f"redis.register_function{{function_name='{name}_{function}', {flags}"
                     f"callback=function(keys, args) {BODIES[function]} end}}")
    if mixed.chance(0.15):
        lines.append(mixed.pick("redis.register_function('a_call', function() return 1 end)",
                                "redis.register_function('bad-name', function() end)",
                                "redis.register_function('x')", "error('stop')", "redis.call('x')"))
    if mixed.chance(0.06):
        lines[0] = mixed.pick("", "#!lua", "#!lua name=", "#!js name=a", "#!lua name=a-b",
                              "#!lua name=a b=c")
    return "\n".join(lines)


def function_call(mixed):
    words = [] if mixed.chance(0.2) else mixed.words()
    mode = mode_of([to_bytes(word) for word in words])
    mode = {"scan": "type", "pairs": "deep", "hash": "deep", "set": "deep",
            "unordered": "deep"}.get(mode, mode)
    function = f"{mixed.pick('a', 'b', 'c')}_{mixed.random.choice(sorted(BODIES))}"
    # What a function that is not there or fails has counted is in no key.
    keys = [mixed.key() for _ in range(mixed.random.randrange(3))]
    count = mixed.random.choice(BAD_INTEGERS) if mixed.chance(0.03) else len(keys)
    command = Command([mixed.pick("FCALL", "FCALL", "FCALL", "FCALL_RO"), function, count, *keys,
                       *words], mode)
    return [command, *cleared_after(command, words)]


def functions_round(random, count, _protocol):
    mixed = Mixed(random, ALL_LETTERS)
    commands = [Command(["FUNCTION", "FLUSH"])]
    while len(commands) < count:
        what = mixed.random.randrange(12)
        if what < 3:
            commands.append(Command(["FUNCTION", "LOAD", *mixed.pick([], ["REPLACE"], ["REPLACE"]),
                                     library(mixed)]))
        elif what < 10:
            commands += function_call(mixed)
        elif what < 11:
            commands += around_random(Command(mixed.words(blocking_too=False)))
        else:
            commands.append(mixed.pick(
                Command(["FUNCTION", "DELETE", mixed.pick("a", "b", "nosuch")]),
                Command(["FUNCTION", "LIST", *mixed.pick([], ["LIBRARYNAME", "[ab]"],
                                                         ["WITHCODE"])], "deep"),
                Command(["FUNCTION", "STATS"]), Command(["FUNCTION", "FLUSH"]),
                Command(["FUNCTION", "DUMP"], "type"), Command(["FUNCTION", "KILL"])))
    return [*commands, Command(["FUNCTION", "FLUSH"])]


# -- Publish and subscribe ----------------------------------------------------------------------

CHANNELS = ["a", "b", "ab", "c", "", "x.y"]
PATTERNS = ["*", "a*", "?", "[ab]", "x.*", "c"]


class Subscribers:
    """Who listens to what, so that the number of messages is known."""

    def __init__(self, random, protocol):
        self.random = random
        self.protocol = protocol
        self.channels = {2: set(), 3: set(), 4: set()}
        self.patterns = {2: set(), 3: set(), 4: set()}

    def subscribe(self, number):
        by_pattern = self.random.random() < 0.4
        names = [self.random.choice(PATTERNS if by_pattern else CHANNELS)
                 for _ in range(self.random.randint(1, 3))]
        (self.patterns if by_pattern else self.channels)[number].update(names)
        return [Command([("P" if by_pattern else "") + "SUBSCRIBE", *names], connection=number,
                        replies=len(names))]

    def unsubscribe(self, number):
        by_pattern = self.random.random() < 0.4
        held = (self.patterns if by_pattern else self.channels)[number]
        word = ("P" if by_pattern else "") + "UNSUBSCRIBE"
        if self.random.random() < 0.3:
            replies = max(1, len(held))
            held.clear()
            return [Command([word], "unsubscribe", number, replies=replies)]
        names = [self.random.choice(PATTERNS if by_pattern else CHANNELS)
                 for _ in range(self.random.randint(1, 3))]
        held.difference_update(names)
        return [Command([word, *names], connection=number, replies=len(names))]

    def publish(self):
        """One message; in RESP3 a subscriber may send it, and get it before its own reply."""
        channel = self.random.choice(CHANNELS)
        text = self.random.choice(["", "text", b"\x00\r\n", "1"])
        by = self.random.choice([1, 1, 2]) if self.protocol == 3 else 1
        publication = Command(["PUBLISH", channel, text], connection=by)
        unit = [publication]
        for number in self.channels:
            # Redis's matcher finds nothing in an empty text, not even with "*".
            messages = (channel in self.channels[number]) + sum(
                channel != "" and fnmatch.fnmatchcase(channel, pattern)
                for pattern in self.patterns[number])
            # Redis visits patterns in the order of a hash table.
            if messages and number == by:
                publication.mode, publication.replies = "sorted_replies", messages + 1
            elif messages:
                unit.append(Command([], "sorted_replies", number, "read", messages))
        return unit

    def other(self, number):
        """What a subscriber may do in RESP3 only, and what it always may."""
        words = self.random.choice([
            ["PING"], ["PING", "x"], ["GET", "k"], ["SET", "k", "v"], ["ECHO"], ["MULTI", "x"],
            ["UNSUBSCRIBE", "zz"], ["PUBSUB", "NUMPAT"], ["HELLO", "9"], ["NOSUCH"],
            ["SUBSCRIBE"]])
        return [Command(words, connection=number)]

    def look(self):
        words = self.random.choice([
            ["PUBSUB", "NUMPAT"], ["PUBSUB", "NUMSUB", *CHANNELS[:3]], ["PUBSUB", "NUMSUB"],
            ["PUBSUB", "CHANNELS"], ["PUBSUB", "CHANNELS", "a*"], ["PUBSUB", "channels", "x", "y"],
            ["PUBSUB"], ["PUBSUB", "NOSUCH"], ["PUBLISH", "a"], ["PUBSUB", "NUMPAT", "x"]])
        mode = "unordered" if words[1:2] in (["CHANNELS"], ["channels"]) else "exact"
        return [Command(words, mode)]


def pubsub_round(random, count, protocol):
    subscribers = Subscribers(random, protocol)
    commands = []
    while len(commands) < count:
        number = random.choice([2, 3, 4])
        what = random.random()
        if what < 0.2:
            commands += subscribers.subscribe(number)
        elif what < 0.35:
            commands += subscribers.unsubscribe(number)
        elif what < 0.75:
            commands += subscribers.publish()
        elif what < 0.9:
            commands += subscribers.other(number)
        else:
            commands += subscribers.look()
    return commands


# -- Keyspace notifications ---------------------------------------------------------------------


def notified_unit(mixed):
    """A few commands: as they are, in a transaction, or from a script."""
    if mixed.chance(0.7):
        return around_random(Command(mixed.words(blocking_too=False)))
    if mixed.chance(0.5):
        queued = [Command(mixed.words(), in_multi=True) for _ in range(mixed.random.randint(1, 4))]
        queued = [each for command in queued for each in around_random(command)]
        return [Command(["MULTI"]), *queued, Command(["EXEC"], "exec")]
    words = mixed.words(mistakes=0)
    # What a script replies of it is the scripts' own family.
    command = Command(["EVAL", "redis.pcall(unpack(ARGV)) return 1", "0", *words])
    return [command, *cleared_after(command, words)]


def notifications_round(random, count, _protocol):
    """Every kind of change, and what one listener hears of it. (Not of keys that expire: when they
    do, chance tells.)"""
    mixed = Mixed(random, ALL_LETTERS)
    classes = random.choice(["KEA", "KEAmn", "KEAmn", "Kg$lshztn", "Em", "E$z", "Kls"])
    commands = [Command(["CONFIG", "SET", "notify-keyspace-events",
                         classes.replace("A", "g$lshztd")]),
                Command(["PSUBSCRIBE", "__key*__:*"], connection=6)]
    while len(commands) < count:
        unit = notified_unit(mixed)
        commands += unit
        if not any(command.in_multi for command in unit) or unit[-1].name == "EXEC":
            commands.append(Command([], "exact", 6, "events"))
    commands += [Command(["CONFIG", "SET", "notify-keyspace-events", ""])]
    return commands


ROUNDS = {"transactions": transactions_round, "scripts": scripts_round, "pubsub": pubsub_round,
          "blocking": blocking_round, "packing": packing_round, "rights": rights_round,
          "notifications": notifications_round, "functions": functions_round}
