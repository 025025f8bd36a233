"""Plain Python models of the keys of one connection, and random units of commands on them.

A connection owns its key prefix, so the history of its keys is a sequence and each reply can be
told beforehand. A unit is a command, a MULTI or a script: all of it happens or none of it. A key's
name carries its type: <prefix>s: string, n: number, h: hash, e: set, l: list, z: sorted set, x:
stream, t: a string that soon expires. Used by one thread at a time.
"""

from harness import resp
from harness.crash.rare_commands import REACH_FURTHER, MoreCommands, MoreUnits
from harness.crash.values import Entry, Error, Stream, number, serial_of

LONG_TTL_S = (500, 1000, 5000)
SHORT_TTL_MS = (30, 100, 300, 1000)
KEYS_OF_TYPE = 6
LONGEST_LIST = 40


class Model(MoreCommands):
    """The keys of one connection. `apply` changes them as the server does and returns its reply.
    `own` is given where its generator has it."""

    def __init__(self, own=None):
        self.keys = {}
        self.own = own
        self.at = b""   # the tag of the selected database

    def apply(self, command, window_ms):
        """`window_ms` = (sent, answered) in wall time: when a TTL began to count."""
        return getattr(self, "_" + command[0].lower())(window_ms, *command[1:])

    def _value(self, key, kind):
        if key not in self.keys:
            self.keys[key] = Entry(kind())
        return self.keys[key].value

    def _drop_if_empty(self, key):
        if not self.keys[key].value:
            del self.keys[key]

    # -- Strings and keys ---------------------------------------------------------------------

    def _set(self, window, key, value, option=None, amount=None):
        expires = None
        if option in ("EX", "PX"):
            ttl_ms = amount * (1000 if option == "EX" else 1)
            expires = (window[0] + ttl_ms, window[1] + ttl_ms)
        elif option == "KEEPTTL" and key in self.keys:
            expires = self.keys[key].expires
        self.keys[key] = Entry(value, expires)
        return "OK"

    def _append(self, _, key, value):
        entry = self.keys.setdefault(key, Entry(b""))
        entry.value += value
        return len(entry.value)

    def _incrby(self, _, key, amount):
        entry = self.keys.setdefault(key, Entry(b"0"))
        entry.value = b"%d" % (int(entry.value) + amount)
        return int(entry.value)

    def _getdel(self, _, key):
        entry = self.keys.pop(key, None)
        return entry.value if entry else None

    def _del(self, _, *keys):
        return sum(self.keys.pop(key, None) is not None for key in keys)

    def _expire(self, window, key, ttl_s):
        if key not in self.keys:
            return 0
        self.keys[key].expires = (window[0] + ttl_s * 1000, window[1] + ttl_s * 1000)
        return 1

    def _persist(self, _, key):
        if key not in self.keys or self.keys[key].expires is None:
            return 0
        self.keys[key].expires = None
        return 1

    def _rename(self, _, source, target):
        if source not in self.keys:
            return Error("ERR no such key")
        self.keys[target] = self.keys.pop(source)
        return "OK"

    def _setrange(self, _, key, offset, value):
        entry = self.keys.setdefault(key, Entry(b""))
        old = entry.value.ljust(offset, b"\0")
        entry.value = old[:offset] + value + old[offset + len(value):]
        return len(entry.value)

    # -- Hashes and sets ----------------------------------------------------------------------

    def _hset(self, _, key, field, value):
        fields = self._value(key, dict)
        new = field not in fields
        fields[field] = value
        return int(new)

    def _hincrby(self, _, key, field, amount):
        fields = self._value(key, dict)
        fields[field] = b"%d" % (int(fields.get(field, b"0")) + amount)
        return int(fields[field])

    def _hdel(self, _, key, *fields):
        if key not in self.keys:
            return 0
        values = self.keys[key].value
        count = sum(values.pop(field, None) is not None for field in fields)
        self._drop_if_empty(key)
        return count

    def _sadd(self, _, key, *members):
        value = self._value(key, set)
        before = len(value)
        value.update(members)
        return len(value) - before

    def _srem(self, _, key, *members):
        if key not in self.keys:
            return 0
        value = self.keys[key].value
        before = len(value)
        value.difference_update(members)
        self._drop_if_empty(key)
        return before - len(value)

    def _smove(self, _, source, target, member):
        if source not in self.keys or member not in self.keys[source].value:
            return 0
        if source != target:
            self._value(target, set).add(member)
            self.keys[source].value.discard(member)
            self._drop_if_empty(source)
        return 1

    def _sunionstore(self, _, target, *sources):
        union = set().union(*(self.keys[s].value for s in sources if s in self.keys))
        self.keys.pop(target, None)
        if union:
            self.keys[target] = Entry(union)
        return len(union)

    # -- Lists --------------------------------------------------------------------------------

    def _lpush(self, _, key, *values):
        self._value(key, list)[:0] = reversed(values)
        return len(self.keys[key].value)

    def _rpush(self, _, key, *values):
        self._value(key, list).extend(values)
        return len(self.keys[key].value)

    def _lpop(self, _, key):
        return self._pop(key, 0)

    def _rpop(self, _, key):
        return self._pop(key, -1)

    def _pop(self, key, index):
        if key not in self.keys:
            return None
        value = self.keys[key].value.pop(index)
        self._drop_if_empty(key)
        return value

    def _lset(self, _, key, index, value):
        if key not in self.keys:
            return Error("ERR no such key")
        if index >= len(self.keys[key].value):
            return Error("ERR index out of range")
        self.keys[key].value[index] = value
        return "OK"

    def _lrem(self, _, key, count, value):
        if key not in self.keys:
            return 0
        values = self.keys[key].value
        removed = 0
        while value in values and removed < count:
            values.remove(value)
            removed += 1
        self._drop_if_empty(key)
        return removed

    def _linsert(self, _, key, _before, pivot, value):
        if key not in self.keys:
            return 0
        values = self.keys[key].value
        if pivot not in values:
            return -1
        values.insert(values.index(pivot), value)
        return len(values)

    def _ltrim(self, _, key, _zero, last):
        if key in self.keys:
            del self.keys[key].value[last + 1:]
        return "OK"

    def _lmove(self, _, source, target, _from, _to):
        """LEFT to RIGHT."""
        value = self._pop(source, 0)
        if value is not None:
            self._value(target, list).append(value)
        return value

    # -- Sorted sets --------------------------------------------------------------------------

    def _zadd(self, _, key, *pairs):
        scores = self._value(key, dict)
        before = len(scores)
        for score, member in zip(pairs[::2], pairs[1::2]):
            scores[member] = score
        return len(scores) - before

    def _zincrby(self, _, key, amount, member):
        scores = self._value(key, dict)
        scores[member] = scores.get(member, 0) + amount
        return number(scores[member])

    def _zpopmin(self, _, key):
        if key not in self.keys:
            return []
        scores = self.keys[key].value
        member = min(scores, key=lambda m: (scores[m], m))
        score = scores.pop(member)
        self._drop_if_empty(key)
        return [member, number(score)]

    def _zrem(self, _, key, *members):
        return self._hdel(_, key, *members)

    def _zremrangebyrank(self, _, key, _zero, last):
        if key not in self.keys:
            return 0
        scores = self.keys[key].value
        doomed = sorted(scores, key=lambda m: (scores[m], m))[:last + 1]
        for member in doomed:
            del scores[member]
        self._drop_if_empty(key)
        return len(doomed)

    # -- Streams ------------------------------------------------------------------------------

    def _xadd(self, _, key, *words):
        stream = self._value(key, Stream)
        entry_id, name, value = words[-3:]
        stream.entries[entry_id] = [name, value]
        stream.last = entry_id
        if len(words) > 3:
            stream.trim(words[1])
        return entry_id

    def _xdel(self, _, key, entry_id):
        return int(key in self.keys and
                   self.keys[key].value.entries.pop(entry_id, None) is not None)

    def _xtrim(self, _, key, _maxlen, length):
        return self.keys[key].value.trim(length) if key in self.keys else 0

    def _group(self, key, name):
        return self.keys[key].value.groups.get(name) if key in self.keys else None

    def _xreadgroup(self, _, _group, name, consumer, _count, count, _streams, key, _new):
        group = self._group(key, name)
        if group is None:
            return Error("NOGROUP")
        last, pending = group
        entries = self.keys[key].value.entries
        given = [entry_id for entry_id in entries if serial_of(entry_id) > serial_of(last)][:count]
        if not given:
            return None
        pending.update({entry_id: [consumer, 1] for entry_id in given})
        self.keys[key].value.groups[name] = (given[-1], pending)
        return [[key, [[entry_id, entries[entry_id]] for entry_id in given]]]

    def _xack(self, _, key, name, *ids):
        group = self._group(key, name)
        if group is None:
            return 0
        return sum(group[1].pop(entry_id, None) is not None for entry_id in ids)

    def _xclaim(self, _, key, name, consumer, _idle, entry_id):
        group = self._group(key, name)
        if group is None:
            return Error("NOGROUP")
        entries, pending = self.keys[key].value.entries, group[1]
        if entry_id not in entries:
            pending.pop(entry_id, None)
        if entry_id not in pending:
            return []
        pending[entry_id] = [consumer, pending[entry_id][1] + 1]
        return [[entry_id, entries[entry_id]]]

    # -- Scripts ------------------------------------------------------------------------------

    def _eval(self, window, script, _count, *rest):
        return SCRIPTS[script](self, window, *rest)

    def _script_store(self, window, string, listed, fields, value, field):
        self._set(window, string, value)
        self._rpush(window, listed, value)
        count = self._hincrby(window, fields, field, 1)
        self._ltrim(window, listed, 0, LONGEST_LIST - 1)
        return count

    def _script_pass_on(self, window, source, members, fields, field, _unused):
        """Pops, remembers and counts: what a queue's script does."""
        value = self._lpop(window, source)
        if value is None:
            return None
        self._sadd(window, members, value)
        self._hset(window, fields, field, value)
        return value


SCRIPTS = {
    """redis.call('SET', KEYS[1], ARGV[1])
redis.call('RPUSH', KEYS[2], ARGV[1])
local count = redis.call('HINCRBY', KEYS[3], ARGV[2], 1)
redis.call('LTRIM', KEYS[2], 0, 39)
return count""": Model._script_store,
    """local value = redis.call('LPOP', KEYS[1])
if not value then return nil end
redis.call('SADD', KEYS[2], value)
redis.call('HSET', KEYS[3], ARGV[1], value)
return value""": Model._script_pass_on,
}
STORE_SCRIPT, PASS_ON_SCRIPT = SCRIPTS


class Unit:
    """Commands that happen together. `wire` are the bytes, `reply_count` the replies to it."""

    def __init__(self, commands, multi):
        self.commands = commands
        self.multi = multi
        self.reply_count = len(commands) + 2 if multi else 1
        self.wire = b"".join(encode(c) for c in (
            [["MULTI"]] + commands + [["EXEC"]] if multi else commands))
        self.sent_ms = 0

    def apply(self, model, answered_ms):
        """Changes the model; returns the last reply that the server must give."""
        window = (self.sent_ms, answered_ms)
        replies = [model.apply(command, window) for command in self.commands]
        return replies if self.multi else replies[0]

    def touched(self):
        """The keys it may change, and perhaps some more. None: any."""
        if any(command[0] in REACH_FURTHER for command in self.commands):
            return None
        return {word for command in self.commands for word in command[1:]
                if isinstance(word, bytes)}


def encode(command):
    """A command, its scores as Redis prints them."""
    return resp.encode([number(word) if isinstance(word, float) else word for word in command])


class Generator(MoreUnits):
    """Random units on the keys of one prefix, and on what is the connection's own (Own)."""

    def __init__(self, rng, prefix, own=None):
        self._rng = rng
        self._prefix = prefix
        self._own = own
        self._serial = 0
        self._makers = [self._string, self._string, self._number, self._hash, self._set,
                        self._list, self._list, self._sorted_set, self._sorted_set, self._stream,
                        self._stream, self._expiring, self._copied, self._bits, self._group]

    def unit(self):
        kind = self._rng.random()
        if kind < 0.15:
            return Unit([self._command() for _ in range(self._rng.randrange(1, 7))], multi=True)
        if kind < 0.3:
            return Unit([self._script()], multi=False)
        if kind < 0.36 and self._own is not None:
            commands = self._own_unit()
            return Unit(commands, multi=len(commands) > 1)
        return Unit([self._command()], multi=False)

    def key(self, kind):
        # Every other key has a hash tag, so that units meet in one slot as well as in many.
        index = self._rng.randrange(KEYS_OF_TYPE)
        tag = "{tag}" if index % 2 else ""
        return f"{self._prefix}{kind}:{tag}{index}".encode()

    def _blob(self):
        self._serial += 1
        size = self._rng.choice((0, 3, 20, 20, 100, 2000 if self._rng.random() < 0.1 else 40))
        return b"%d:" % self._serial + b"\0\r\nx"[:size] + b"v" * max(0, size - 4)

    def _long_blob(self):
        """Long enough for RENAME and MOVE to journal that it has moved, and not what it is."""
        self._serial += 1
        return b"%d:" % self._serial + b"L" * 70_000

    def _member(self):
        return b"m%d" % self._rng.randrange(25)

    def _score(self):
        return self._rng.randrange(-40, 40) / 4

    def _command(self):
        return self._rng.choice(self._makers)()

    def _string(self):
        key, rng = self.key("s"), self._rng
        return rng.choice((
            lambda: ["SET", key, self._long_blob() if rng.random() < 0.1 else self._blob()],
            lambda: ["SET", key, self._blob(), "EX", rng.choice(LONG_TTL_S)],
            lambda: ["SET", key, self._blob(), "KEEPTTL"],
            lambda: ["APPEND", key, b"+"] if rng.random() < 0.5 else ["GETDEL", key],
            lambda: ["DEL", key, self.key(rng.choice("he")), self.key(rng.choice("lz"))],
            lambda: ["EXPIRE", key, rng.choice(LONG_TTL_S)],
            lambda: ["PERSIST", key],
            lambda: ["RENAME", key, self.key("s")],
            lambda: ["SETRANGE", key, rng.randrange(30), b"~~"],
        ))()

    def _number(self):
        return ["INCRBY", self.key("n"), self._rng.randrange(-5, 100)]

    def _expiring(self):
        return ["SET", self.key("t"), self._blob(), "PX", self._rng.choice(SHORT_TTL_MS)]

    def _hash(self):
        key = self.key("h")
        return self._rng.choice((
            lambda: ["HSET", key, self._member(), self._blob()],
            lambda: ["HINCRBY", key, b"count%d" % self._rng.randrange(3), 7],
            lambda: ["HDEL", key, self._member(), self._member() + b"x"],
            lambda: ["EXPIRE", key, self._rng.choice(LONG_TTL_S)],
        ))()

    def _set(self):
        key = self.key("e")
        return self._rng.choice((
            lambda: ["SADD", key, self._member(), self._member()],
            lambda: ["SREM", key, self._member()],
            lambda: ["SMOVE", key, self.key("e"), self._member()],
            lambda: ["SUNIONSTORE", key, self.key("e"), self.key("e")],
        ))()

    def _list(self):
        key = self.key("l")
        return self._rng.choice((
            lambda: ["LPUSH", key, self._member(), self._blob()],
            lambda: ["RPUSH", key, self._member(), self._member()],
            lambda: ["LPOP", key],
            lambda: ["RPOP", key],
            lambda: ["LSET", key, self._rng.randrange(4), self._blob()],
            lambda: ["LREM", key, 2, self._member()],
            lambda: ["LINSERT", key, "BEFORE", self._member(), self._blob()],
            lambda: ["LTRIM", key, 0, self._rng.choice((5, 20, LONGEST_LIST - 1))],
            lambda: ["LMOVE", key, self.key("l"), "LEFT", "RIGHT"],
        ))()

    def _sorted_set(self):
        key = self.key("z")
        return self._rng.choice((
            lambda: ["ZADD", key, self._score(), self._member()],
            lambda: ["ZADD", key, self._score(), self._member(), self._score(),
                     self._member() + b"y"],
            lambda: ["ZINCRBY", key, self._score(), self._member()],
            lambda: ["ZPOPMIN", key],
            lambda: ["ZREM", key, self._member()],
            lambda: ["ZREMRANGEBYRANK", key, 0, self._rng.randrange(2)],
        ))()

    def _stream(self):
        key, rng = self.key("x"), self._rng
        group, consumer = rng.choice((b"g", b"h")), b"c%d" % rng.randrange(3)
        self._serial += 1
        new = b"%d-0" % self._serial

        def old():
            return b"%d-0" % max(1, self._serial - rng.randrange(60))

        return rng.choice((
            lambda: ["XADD", key, new, b"v", self._blob()],
            lambda: ["XADD", key, new, self._member(), self._blob()],
            lambda: ["XADD", key, "MAXLEN", 12, new, b"v", self._blob()],
            lambda: ["XDEL", key, old()] if rng.random() < 0.9 else ["DEL", key],
            lambda: ["XTRIM", key, "MAXLEN", rng.choice((3, 8, 20))],
            lambda: ["XGROUP", "CREATE", key, group, b"0-0", "MKSTREAM"],
            lambda: ["XREADGROUP", "GROUP", group, consumer, "COUNT", 3, "STREAMS", key, ">"],
            lambda: ["XACK", key, group, old(), old(), old()],
            lambda: ["XCLAIM", key, group, consumer, 0, old()],
        ))()

    def _script(self):
        if self._rng.random() < 0.5:
            return ["EVAL", STORE_SCRIPT, 3, self.key("s"), self.key("l"), self.key("h"),
                    self._blob(), b"count%d" % self._rng.randrange(3)]
        return ["EVAL", PASS_ON_SCRIPT, 3, self.key("l"), self.key("e"), self.key("h"),
                self._member(), b""]
