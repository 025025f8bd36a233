"""Random picks for generated commands: small pools, so that cases collide.

A `Pool` belongs to one round of one family and is driven by one seeded generator; equal seeds give
equal commands. A `Command` is what a generator hands to the exchange in generate.py.
"""

from harness.resp import quote
from harness.transcripts.compare import Rules

# Keys of a type that the family's commands reject; a family leaves out its own type.
WRONG_TYPE_KEYS = {
    "string": "w:string", "list": "w:list", "hash": "w:hash", "set": "w:set", "zset": "w:zset",
    "stream": "w:stream"}
WRONG_TYPE_SETUP = [
    ["SET", "w:string", "text"], ["RPUSH", "w:list", "a", "b"], ["HSET", "w:hash", "f", "v"],
    ["SADD", "w:set", "a", "1"], ["ZADD", "w:zset", "1", "a", "2", "b"],
    ["XADD", "w:stream", "1-1", "a", "1"]]

LONG_TEXT = "long" * 17
VALUES = ["", "a", "b", "abc", "1", "10", "-3", "007", "3.5", "1e2", " 5", "0",
          b"\x00\xff\r\n", "9223372036854775807", "-9223372036854775808", "hello world"]
INTEGERS = ["0", "1", "-1", "2", "-2", "3", "5", "10", "-10", "100"]
BAD_INTEGERS = ["", "abc", "1.5", " 1", "1 ", "+1", "01", "-0", "1e3", "nan", "inf", "0x10",
                "9223372036854775807", "-9223372036854775808", "9223372036854775808",
                "-9223372036854775809", "99999999999999999999", "4294967296"]
MEMBERS = ["a", "b", "c", "d", "e", "1", "2", "3", "10", "-5", "", "ab", "B", b"\x00", "zz"]
SCORES = ["0", "1", "2", "3", "-1", "1.5", "2.5", "0.1", "-0", "1e3", "inf", "-inf", "+inf",
          "3.14159265358979", "1e-7", "123456789012", "1770000000000", "0.30000000000000004",
          "9007199254740993", "1e20", "1e300", "-1e17", "123456.789", "5e-324",
          "100000000000000000"]
BAD_SCORES = ["nan", "", "abc", "1.5x", " 1", "1e400", "--1", "0x1p3", "infinity", "-nan"]
JUNK = BAD_INTEGERS + ["NX", "XX", "COUNT", "LIMIT", "WITHSCORES", "GET", "*", "(1", "[a", "-", "+"]
FAR_MS = 4102444800000  # The year 2100: an absolute time whose replies do not depend on the run.
# A mistake in these could wait for ever, or make a key expire in the middle of a run.
CANNOT_MUTATE = {"BLPOP", "BRPOP", "BLMOVE", "BRPOPLPUSH", "BLMPOP", "BZPOPMIN", "BZPOPMAX",
                 "BZMPOP", "SETEX", "PSETEX", "XREAD", "XREADGROUP"}

MODES = {
    "HGETALL": "pairs", "HKEYS": "hash", "HVALS": "hash", "SMEMBERS": "set", "SINTER": "unordered",
    "SUNION": "unordered", "SDIFF": "unordered", "KEYS": "unordered", "TTL": "seconds",
    "EXPIRETIME": "seconds", "PTTL": "milliseconds", "PEXPIRETIME": "milliseconds",
    "SRANDMEMBER": "random", "SPOP": "random", "HRANDFIELD": "random", "ZRANDMEMBER": "random",
    "RANDOMKEY": "type", "TIME": "type", "SCAN": "scan", "HSCAN": "scan", "SSCAN": "scan",
    "ZSCAN": "scan", "XPENDING": "milliseconds", "XINFO": "milliseconds",
    ("MEMORY", "USAGE"): "type", ("OBJECT", "REFCOUNT"): "type", ("OBJECT", "IDLETIME"): "type"}
ORDERED_BY_ENCODING = {"HGETALL", "HKEYS", "HVALS", "SMEMBERS"}
MODIFIERS = {
    "pairs": "@pairs ", "hash": "@unordered ", "set": "@unordered ", "unordered": "@unordered ",
    "deep": "@deepunordered ", "seconds": "@approx 1 ", "milliseconds": "@approx 100 ",
    "random": "@shape ", "type": "@type ", "scan": "@scan ", "exact": "", "exec": "@deepunordered ",
    "sorted_replies": "@ignore ", "unsubscribe": "@ignore ",
    "log": "@except age-seconds,client-info "}


class Command:
    """One command of a generated round. `kind`: "command", "async" (do not wait), "read" (now)."""

    __slots__ = ("arguments", "mode", "connection", "kind", "replies", "in_multi", "members")

    def __init__(self, arguments, mode=None, connection=1, kind="command", replies=1,
                 in_multi=False):
        self.arguments = [to_bytes(argument) for argument in arguments]
        self.mode = mode or mode_of(self.arguments)
        self.connection = connection
        self.kind = kind
        self.replies = replies
        self.in_multi = in_multi
        # True if the reply before this one lists all that a random pick may answer.
        self.members = False

    @property
    def name(self):
        return self.arguments[0].upper().decode(errors="replace") if self.arguments else ""

    def rules(self, slack_ms):
        return rules_of(self.mode, slack_ms)

    def text(self):
        """As a line of a transcript."""
        if self.kind == "events":
            return "@events"
        if self.kind == "read":
            return f"@read {self.replies}"
        words = " ".join(quote(argument) for argument in self.arguments)
        if self.kind == "async":
            return "@async " + words
        count = f"@replies {self.replies} " if self.replies != 1 else ""
        return count + ("" if self.in_multi else MODIFIERS[self.mode]) + words


def to_bytes(argument):
    return argument if isinstance(argument, bytes) else str(argument).encode()


def mode_of(arguments):
    """How the replies of a command are compared; scripts pass the command that they call."""
    if not arguments:
        return "exact"
    words = tuple(word.upper().decode(errors="replace") for word in arguments[:2])
    return MODES.get(words) or MODES.get(words[0], "exact")


def rules_of(mode, slack_ms):
    rules = Rules()
    if mode == "pairs":
        rules.pairs = True
    elif mode in ("hash", "set", "unordered"):
        rules.unordered = True
    elif mode == "deep":
        rules.deep_unordered = True
    elif mode == "seconds":
        rules.approx = 1 + slack_ms / 1000
    elif mode == "milliseconds":
        rules.approx = 50 + slack_ms
    elif mode == "random":
        rules.shape = True
    elif mode in ("type", "scan"):
        rules.type_only = True
    elif mode == "log":
        rules.excepted = {b"age-seconds", b"client-info"}
    return rules


class Pool:
    """Picks of everything that a command is made of."""

    def __init__(self, random, own_type):
        self.random = random
        self.own_keys = ["a", "b", "c", "{t}d", b"\x00k\xff"]
        others = [key for name, key in WRONG_TYPE_KEYS.items() if name != own_type]
        self.wrong_keys = random.sample(others, 3) if own_type else others

    # -- Words --------------------------------------------------------------------------------

    def chance(self, probability):
        return self.random.random() < probability

    def pick(self, *choices):
        return self.random.choice(choices)

    def key(self):
        return self.random.choice(self.wrong_keys if self.chance(0.08) else self.own_keys)

    def target(self):
        """A key to write: mostly the family's own, so that the wrong types stay."""
        return self.random.choice(self.wrong_keys if self.chance(0.03) else self.own_keys)

    def keys(self, most=4):
        return [self.key() for _ in range(self.random.randint(1, most))]

    def value(self):
        return LONG_TEXT if self.chance(0.02) else self.random.choice(VALUES)

    def values(self, most=4):
        return [self.value() for _ in range(self.random.randint(1, most))]

    def integer(self):
        return self.random.choice(BAD_INTEGERS if self.chance(0.06) else INTEGERS)

    def count(self):
        if self.chance(0.05):
            return self.random.choice(BAD_INTEGERS)
        return self.random.choice(["0", "1", "1", "2", "2", "3", "5", "100", "-1", "-3"])

    def member(self):
        return LONG_TEXT if self.chance(0.01) else self.random.choice(MEMBERS)

    def members(self, most=4):
        return [self.member() for _ in range(self.random.randint(1, most))]

    def score(self):
        return self.random.choice(BAD_SCORES if self.chance(0.04) else SCORES)

    def score_bound(self):
        if self.chance(0.04):
            return self.random.choice(["(", "((1", "abc", "", "(abc", "nan", "[1"])
        return self.pick("", "", "(") + self.random.choice(SCORES)

    def lex_bound(self):
        if self.chance(0.04):
            return self.random.choice(["a", "", "+x", "-x", "*"])
        return self.pick("-", "+", *["[" + m for m in MEMBERS if isinstance(m, str)],
                         "(a", "(b", "(c", "(zz", "(")

    def stream_id(self):
        if self.chance(0.04):
            return self.pick("", "abc", "-", "+", "1-2-3", "-1", "01-1", "5-x", "(3", "$")
        return f"{self.random.randint(0, 30)}" + self.pick("", "", "-0", "-1", "-2", "-5")

    def stream_bound(self):
        return self.pick("-", "+", "(" + self.stream_id(), *[self.stream_id() for _ in range(4)])

    def stream_ids(self, most=4):
        return [self.stream_id() for _ in range(self.random.randint(1, most))]

    def far_seconds(self):
        """A time to live far off, and wide enough apart that two never meet within a run."""
        return str(self.random.randint(10**4, 10**7))

    def some(self, *options, probability=0.3):
        """Some of the options (words, lists of words, or functions), in any order."""
        chosen = [option for option in options if self.chance(probability)]
        self.random.shuffle(chosen)
        words = []
        for option in chosen:
            option = option() if callable(option) else option
            words += option if isinstance(option, list) else [option]
        return words

    def some_pairs(self, first, second, most=3):
        pairs = []
        for _ in range(self.random.randint(1, most)):
            pairs += [first(), second()]
        return pairs

    def counted_keys(self, most=3):
        """`numkeys key ...`, now and then with a wrong number."""
        keys = self.keys(most)
        number = len(keys)
        if self.chance(0.06):
            number = self.pick(0, -1, number + 1, number - 1, "abc", "", 100)
        return [number, *keys]

    # -- Mistakes -----------------------------------------------------------------------------

    def mutate(self, arguments):
        """One mistake: a word left out, added, doubled, exchanged or replaced."""
        arguments = list(arguments)
        what = self.random.randrange(6)
        if what == 0 and len(arguments) > 1:
            del arguments[self.random.randrange(1, len(arguments))]
        elif what == 1:
            arguments.append(self.random.choice(JUNK))
        elif what == 2 and len(arguments) > 1:
            at = self.random.randrange(1, len(arguments))
            arguments.insert(at, arguments[at])
        elif what == 3 and len(arguments) > 2:
            at = self.random.randrange(1, len(arguments) - 1)
            arguments[at], arguments[at + 1] = arguments[at + 1], arguments[at]
        elif what == 4 and len(arguments) > 1:
            arguments[self.random.randrange(1, len(arguments))] = self.random.choice(JUNK)
        else:
            del arguments[self.random.randrange(1, len(arguments) + 1):]
        return arguments

    def change_case(self, arguments):
        """Names and options are the same in any case; keys and values must not change."""
        return [word.lower() if isinstance(word, str) and word.isalpha() and word.isupper()
                and len(word) > 1 else word for word in arguments]
