"""The rarer commands of the crash tests: copies, moves over databases, RESTORE, SORT STORE, bits,
what changes groups of streams, functions. Mixed into the model and the generator of model.py."""

import copy

from harness.crash.values import Entry, Error, Payload, Stream, serial_of


class Own:
    """What a connection has to itself besides the keys of its prefix: two databases and a library.

    In a model the keys of those databases have a tag before their name, and the library is a key.
    """

    def __init__(self, index, home):
        self.databases = (3 + index, 9 + index)
        self.tags = {home: b"", self.databases[0]: b"@0 ", self.databases[1]: b"@1 "}
        self.home = home
        self.library = f"library_{index}"
        self.function = f"set_{index}"
        self.key = b"library %d" % index


class Code(bytes):
    """The text of a library whose function sets a key and returns `number`."""

    def __new__(cls, own, number):
        text = (f"#!lua name={own.library}\nredis.register_function('{own.function}', "
                "function(keys, args) redis.call('SET', keys[1], args[1]) "
                f"return {number} end)")
        made = super().__new__(cls, text.encode())
        made.number = number
        return made


# Units with these are about keys that are not among their words.
REACH_FURTHER = {"COPY", "MOVE", "SWAPDB", "SELECT", "FUNCTION", "FCALL"}


class MoreCommands:
    """For Model: `keys` by name, and `own`."""

    # -- Copies, moves ------------------------------------------------------------------------

    def _select(self, _, database):
        self.at = self.own.tags[database]
        return "OK"

    def _copy(self, _, source, target, *options):
        tag = self.own.tags[options[1]] if "DB" in options else self.at
        source, target = self.at + source, tag + target
        if source == target:
            return Error("ERR source and destination objects are the same")
        if source not in self.keys or target in self.keys and "REPLACE" not in options:
            return 0
        self.keys[target] = copy.deepcopy(self.keys[source])
        return 1

    def _move(self, _, key, database):
        source, target = self.at + key, self.own.tags[database] + key
        if source not in self.keys or target in self.keys:
            return 0
        self.keys[target] = self.keys.pop(source)
        return 1

    def _swapdb(self, _, one, other):
        tags = {self.own.tags[one]: self.own.tags[other], self.own.tags[other]: self.own.tags[one]}
        moved = {key: entry for key, entry in self.keys.items() if key[:3] in tags}
        for key in moved:
            del self.keys[key]
        self.keys.update({tags[key[:3]] + key[3:]: entry for key, entry in moved.items()})
        return "OK"

    def _restore(self, window, key, ttl_ms, payload, *replace):
        if key in self.keys and not replace:
            return Error("BUSYKEY")
        expires = (window[0] + ttl_ms, window[1] + ttl_ms) if ttl_ms else None
        self.keys[key] = Entry(copy.copy(payload.value), expires)
        return "OK"

    def _sort(self, _, key, _alpha, order, _limit, _zero, count, _store, target):
        values = sorted(self.keys[key].value if key in self.keys else (), reverse=order == "DESC")
        values = values[:count]
        self.keys.pop(target, None)
        if values:
            self.keys[target] = Entry(values)
        return len(values)

    # -- Bits ---------------------------------------------------------------------------------

    def _setbit(self, _, key, offset, bit):
        entry = self.keys.setdefault(key, Entry(b""))
        value = bytearray(entry.value.ljust(offset // 8 + 1, b"\0"))
        mask = 0x80 >> offset % 8
        before = int(value[offset // 8] & mask != 0)
        value[offset // 8] = value[offset // 8] & ~mask | (mask if bit else 0)
        entry.value = bytes(value)
        return before

    def _bitop(self, _, operation, target, *sources):
        values = [self.keys[key].value if key in self.keys else b"" for key in sources]
        size = max(map(len, values))
        combined = int.from_bytes(values[0].ljust(size, b"\0"), "big")
        for value in values[1:]:
            other = int.from_bytes(value.ljust(size, b"\0"), "big")
            combined = {"AND": combined & other, "OR": combined | other,
                        "XOR": combined ^ other}[operation]
        if operation == "NOT":
            combined ^= (1 << 8 * size) - 1
        self.keys.pop(target, None)
        if size:
            self.keys[target] = Entry(combined.to_bytes(size, "big"))
        return size

    def _bitfield(self, _, key, *words):
        """SET and INCRBY of whole bytes: type, "#index", value."""
        steps = [(words[at], words[at + 1][0] == "i", int(words[at + 1][1:]) // 8,
                  int(words[at + 2][1:]), words[at + 3]) for at in range(0, len(words), 4)]
        entry = self.keys.setdefault(key, Entry(b""))
        size = max(width * (index + 1) for _, _, width, index, _ in steps)
        value = bytearray(entry.value.ljust(size, b"\0"))
        replies = []
        for what, signed, width, index, argument in steps:
            place = slice(index * width, (index + 1) * width)
            before = int.from_bytes(value[place], "big", signed=signed)
            after = argument if what == "SET" else before + argument
            value[place] = (after % (1 << 8 * width)).to_bytes(width, "big")
            replies.append(before if what == "SET" else
                           int.from_bytes(value[place], "big", signed=signed))
        entry.value = bytes(value)
        return replies

    # -- Streams ------------------------------------------------------------------------------

    def _xsetid(self, _, key, last):
        if key not in self.keys:
            return Error("ERR no such key")
        self.keys[key].value.last = last
        return "OK"

    def _xgroup(self, window, what, key, name, *words):
        if what == "CREATE":
            groups = self._value(key, Stream).groups
            if name in groups:
                return Error("BUSYGROUP")
            groups[name] = (words[0], {})
            return "OK"
        if key not in self.keys:
            return Error("ERR The XGROUP subcommand requires the key to exist.")
        groups = self.keys[key].value.groups
        if what == "DESTROY":
            return int(groups.pop(name, None) is not None)
        if name not in groups:
            return Error("NOGROUP")
        last, pending = groups[name]
        if what == "SETID":
            groups[name] = (words[0], pending)
            return "OK"
        lost = [entry_id for entry_id, given in pending.items() if given[0] == words[0]]
        for entry_id in lost:
            del pending[entry_id]
        return len(lost)

    def _xautoclaim(self, _, key, name, consumer, _idle, start, _count, count):
        group = self._group(key, name)
        if group is None:
            return Error("NOGROUP")
        entries, pending = self.keys[key].value.entries, group[1]
        ids = sorted((entry_id for entry_id in pending if serial_of(entry_id) >= serial_of(start)),
                     key=serial_of)
        claimed, gone = [], []
        for entry_id in ids[:count]:
            if entry_id in entries:
                pending[entry_id] = [consumer, pending[entry_id][1] + 1]
                claimed.append([entry_id, entries[entry_id]])
            else:
                del pending[entry_id]
                gone.append(entry_id)
        return [ids[count] if len(ids) > count else b"0-0", claimed, gone]

    # -- Functions ----------------------------------------------------------------------------

    def _function(self, _, what, *words):
        if what == "LOAD":
            self.keys[self.own.key] = Entry(words[-1])
            return self.own.library.encode()
        if self.keys.pop(self.own.key, None) is None:
            return Error("ERR Library not found")
        return "OK"

    def _fcall(self, window, _function, _count, key, value):
        if self.own.key not in self.keys:
            return Error("ERR Function not found")
        self._set(window, key, value)
        return self.keys[self.own.key].value.number


class MoreUnits:
    """For Generator: makers of commands of the kinds above."""

    def _copied(self):
        rng = self._rng
        kind = rng.choice("shelzx")
        source, target = self.key(kind), self.key(kind)
        return rng.choice((
            lambda: ["COPY", source, target],
            lambda: ["COPY", source, target, "REPLACE"],
            lambda: ["RESTORE", self.key("s"), 0, Payload(self._blob()), "REPLACE"],
            lambda: ["RESTORE", self.key("s"), rng.randrange(500000, 900000),
                     Payload(self._blob())],
            lambda: ["RESTORE", self.key("l"), 0, Payload([self._blob(), self._member()]),
                     "REPLACE"],
            lambda: ["RESTORE", self.key("e"), 0, Payload({self._member(), self._member()}),
                     "REPLACE"],
            lambda: ["SORT", self.key(rng.choice("le")), "ALPHA", rng.choice(("ASC", "DESC")),
                     "LIMIT", 0, rng.choice((0, 3, 30)), "STORE", self.key("l")],
        ))()

    def _bits(self):
        key, rng = self.key("s"), self._rng
        return rng.choice((
            lambda: ["SETBIT", key, rng.randrange(400), rng.randrange(2)],
            lambda: ["BITOP", rng.choice(("AND", "OR", "XOR")), self.key("s"), key, self.key("s")],
            lambda: ["BITOP", "NOT", self.key("s"), key],
            lambda: ["BITFIELD", key, "SET", "u8", f"#{rng.randrange(30)}", rng.randrange(256),
                     "INCRBY", "i16", f"#{rng.randrange(20)}", rng.randrange(-70000, 70000)],
        ))()

    def _group(self):
        key, rng = self.key("x"), self._rng
        group, consumer = rng.choice((b"g", b"h")), b"c%d" % rng.randrange(3)

        def old():
            return b"%d-0" % max(1, self._serial - rng.randrange(60))

        def newest():
            self._serial += 1
            return b"%d-0" % self._serial

        return rng.choice((
            lambda: ["XAUTOCLAIM", key, group, consumer, 0, b"0-0", "COUNT", 5],
            lambda: ["XAUTOCLAIM", key, group, consumer, 0, old(), "COUNT", 2],
            lambda: ["XSETID", key, newest()],
            lambda: ["XGROUP", "SETID", key, group, rng.choice((b"0-0", old()))],
            lambda: ["XGROUP", "DELCONSUMER", key, group, consumer],
            lambda: ["XGROUP", "DESTROY", key, group] if rng.random() < 0.3 else
            ["XGROUP", "CREATE", key, group, b"0-0", "MKSTREAM"],
        ))()

    def _own_unit(self):
        """The commands of a unit on what the connection has to itself."""
        own, rng = self._own, self._rng
        kind = rng.choice("shelzx")
        key, place = self.key(kind), rng.choice(own.databases)
        self._serial += 1
        return rng.choice((
            lambda: [["MOVE", key, place]],
            lambda: [["COPY", key, self.key(kind), "DB", place]],
            lambda: [["COPY", key, self.key(kind), "DB", place, "REPLACE"]],
            lambda: [["SELECT", place], ["MOVE", key, own.home], ["SELECT", own.home]],
            lambda: [["SELECT", place], ["COPY", key, self.key(kind), "DB", own.home, "REPLACE"],
                     ["SELECT", own.home]],
            lambda: [["SWAPDB", *own.databases]],
            lambda: [["FUNCTION", "LOAD", "REPLACE", Code(own, self._serial)]],
            lambda: [["FUNCTION", "DELETE", own.library]],
            lambda: [["FCALL", own.function, 1, self.key("s"), self._blob()]],
        ))()
