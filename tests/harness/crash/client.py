"""One pipelined connection of the crash tests: sends random units, checks each reply against its
model, and after a crash says whether the server's state is one that its history allows.

The model stands at the last acknowledged unit; the units after it are in flight. Recovery must have
kept the acknowledged ones and some prefix of the others. Counters that connections share tell
whether what one of them read survives as well.
"""

import collections
import random
import threading
import time

from harness.crash.model import Generator, Model, encode
from harness.crash.rare_commands import Own
from harness.crash.values import Entry, Error, Stream, number, serial_of
from harness.resp import Connection
from harness.servers import LOOPBACK

SHARED_COUNTER = b"shared:counter"
CLOCK_SLACK_MS = 2


class Violation(AssertionError):
    """The server broke a promise."""


def wall_ms():
    return time.time_ns() // 1_000_000


def plain(tree):
    """A reply's tree in the values of the models."""
    kind, payload = tree
    if payload is None or kind == "$":
        return payload
    if kind == "*":
        return [plain(child) for child in payload]
    if kind == ":":
        return int(payload)
    return payload.decode() if kind == "+" else Error(payload.decode(errors="replace"))


class Link(Connection):
    """A connection whose replies are values of the models."""

    def __init__(self, port, timeout_s=30.0):
        super().__init__(LOOPBACK, port, timeout_s)

    def read(self):
        return plain(self.read_reply().tree)

    def ask(self, *commands):
        """All replies of a pipeline."""
        self.send_bytes(b"".join(map(encode, commands)))
        return [self.read() for _ in commands]


class LoadClient:
    """A thread with a connection of its own, on which `_drive` works until `_stop` is set or the
    server is gone. What else goes wrong stops the others too, and join() raises it."""

    def __init__(self):
        self.failure = None
        self._thread = None

    def start(self, port, stop):
        self._stop = stop
        self._thread = threading.Thread(target=self._run, args=(port,))
        self._thread.start()

    def join(self):
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    def _run(self, port):
        link = None
        try:
            link = Link(port)
            self._drive(link)
        except TimeoutError:
            self._fail(Violation("the server lives and leaves a request without its reply"))
        except OSError:
            pass   # the server was killed, or closes because it was told to stop
        except BaseException as error:  # noqa: BLE001
            self._fail(error)
        finally:
            if link is not None:
                link.close()

    def _fail(self, error):
        self.failure = error
        self._stop.set()


class CrashClient(LoadClient):
    def __init__(self, index, seed):
        super().__init__()
        self.index = index
        self.database = index % 3
        self.prefix = f"c{index}:"
        self.rng = random.Random(f"{seed}/{index}")
        self.own = Own(index, self.database)
        self.generator = Generator(self.rng, self.prefix, self.own)
        self.model = Model(self.own)
        self.in_flight = collections.deque()
        self.acknowledged = 0
        self.counter_seen = 0      # the largest reply of INCR on the shared counter
        self.counter_sent = 0      # INCRs sent in all

    # -- Under load ---------------------------------------------------------------------------

    def _drive(self, link):
        rng = self.rng
        assert link.ask(["SELECT", self.database]) == ["OK"]
        deepest = rng.choice((1, 16, 100, 400))
        while not self._stop.is_set():
            units = [self.generator.unit() for _ in range(rng.randrange(1, deepest + 1))]
            now = wall_ms()
            for unit in units:
                unit.sent_ms = now
                self.in_flight.append(unit)
            link.send_bytes(b"".join(unit.wire for unit in units))
            self._read_until(link, rng.randrange(deepest))
            if rng.random() < 0.2:
                self._count(link)
        self._read_until(link, 0)

    def _read_until(self, link, in_flight):
        while len(self.in_flight) > in_flight:
            unit = self.in_flight[0]
            for _ in range(unit.reply_count):
                reply = link.read()
            self.in_flight.popleft()
            expected = unit.apply(self.model, wall_ms())
            self.acknowledged += 1
            if reply != expected:
                raise Violation(f"{unit.commands} answered {reply!r}, not {expected!r}")

    def _count(self, link):
        """A step of the counter that all connections share; every reply must be a new maximum."""
        self._read_until(link, 0)
        self.counter_sent += 1
        [count] = link.ask(["INCR", SHARED_COUNTER + b":%d" % self.database])
        if count <= self.counter_seen:
            raise Violation(f"the shared counter went from {self.counter_seen} to {count}")
        self.counter_seen = count

    # -- After a restart ----------------------------------------------------------------------

    def verify(self, port):
        """Compares, and takes what the server has as the new model."""
        link = Link(port)
        try:
            earliest = wall_ms()
            state = {}
            for database, tag in self.own.tags.items():
                link.ask(["SELECT", database])
                found = read_state(link, self.prefix)
                check_readers(link, self.prefix, found)
                state.update({tag + key: entry for key, entry in found.items()})
            state.update(self._read_library(link))
            latest = wall_ms()
        finally:
            link.close()
        checker = StateChecker(self.model, state, earliest, latest)
        applied = 0
        while checker.wrong and self.in_flight:
            unit = self.in_flight.popleft()
            unit.apply(self.model, latest)
            checker.recheck(unit.touched())
            applied += 1
        if checker.wrong:
            raise Violation(f"connection {self.index}: no prefix of the {applied} units in flight "
                            f"gives the recovered state; {checker.explain()}")
        self.in_flight.clear()
        self.model.at = b""
        checker.adopt()
        return applied

    def _read_library(self, link):
        [found] = link.ask(["FUNCTION", "LIST", "LIBRARYNAME", self.own.library, "WITHCODE"])
        if not found:
            return {}
        library = dict(zip(found[0][::2], found[0][1::2]))
        return {self.own.key: Entry(library[b"library_code"])}


class StateChecker:
    """Which keys differ between a model and the server's state."""

    def __init__(self, model, state, earliest_ms, latest_ms):
        self._model = model
        self._state = state
        self._earliest = earliest_ms
        self._latest = latest_ms
        self.wrong = set()
        self.first_wrong = None
        self.recheck(set(model.keys) | set(state))
        self.first_wrong = {key: self._pair(key) for key in sorted(self.wrong)[:3]}

    def recheck(self, keys):
        """Of these keys; None: of all."""
        if keys is None:
            keys = set(self._model.keys) | set(self._state) | self.wrong
        for key in keys:
            if self._fits(self._model.keys.get(key), self._state.get(key)):
                self.wrong.discard(key)
            else:
                self.wrong.add(key)

    def _fits(self, expected, found):
        if found is None:
            return expected is None or self._may_have_expired(expected)
        if expected is None or found.value != expected.value:
            return False
        if expected.expires is None or found.expires is None:
            return expected.expires is None and found.expires is None
        return (expected.expires[0] - CLOCK_SLACK_MS <= found.expires
                <= expected.expires[1] + CLOCK_SLACK_MS and
                found.expires >= self._earliest - CLOCK_SLACK_MS)

    def _may_have_expired(self, expected):
        return expected.expires is not None and \
            expected.expires[0] - CLOCK_SLACK_MS <= self._latest

    def adopt(self):
        """Narrows the model's times to the server's and forgets what has expired."""
        for key in list(self._model.keys):
            found = self._state.get(key)
            if found is None:
                del self._model.keys[key]
            elif found.expires is not None:
                self._model.keys[key].expires = (found.expires, found.expires)

    def _pair(self, key):
        return f"expected {self._model.keys.get(key)}, found {self._state.get(key)}"

    def explain(self):
        now = {key: self._pair(key) for key in sorted(self.wrong)[:3]}
        return (f"acknowledged state: {self.first_wrong}; "
                f"with all in flight, {len(self.wrong)} keys: {now}")


READERS = {b"s": "GET", b"n": "GET", b"t": "GET", b"h": "HGETALL", b"e": "SMEMBERS",
           b"l": "LRANGE", b"z": "ZRANGE", b"x": "XINFO"}


def read_state(link, prefix):
    """{key: Entry} of every key of the prefix; an Entry's `expires` is one time here."""
    [keys] = link.ask(["KEYS", prefix + "*"])
    questions = []
    for key in keys:
        kind = key[len(prefix):len(prefix) + 1]
        more = {b"l": [0, -1], b"z": [0, -1, "WITHSCORES"], b"x": ["FULL", "COUNT", 0]}
        middle = ["STREAM"] if kind == b"x" else []
        questions += [[READERS[kind], *middle, key, *more.get(kind, [])], ["PEXPIRETIME", key]]
    replies = link.ask(*questions) if questions else []
    state = {}
    for key, value, expires in zip(keys, replies[::2], replies[1::2]):
        if expires == -2 or not value and value != b"":
            continue   # it expired between KEYS and here
        state[key] = Entry(_plain(key[len(prefix):len(prefix) + 1], value),
                           None if expires == -1 else expires)
    return state


# -- Other ways to read a value, which must say the same ----------------------------------------

def _of_string(key, value):
    bits = sum(bin(byte).count("1") for byte in value)
    return [(["STRLEN", key], len(value)), (["GETRANGE", key, 1, -2], value[1:-1]),
            (["BITCOUNT", key], bits), (["TYPE", key], "string")]


def _of_hash(key, fields):
    names = list(fields)
    return [(["HLEN", key], len(fields)), (["HKEYS", key], names), (["TYPE", key], "hash"),
            (["HMGET", key, *names, b"none"], [*fields.values(), None]),
            (["HSTRLEN", key, names[0]], len(fields[names[0]]))]


def _of_set(key, members):
    some = sorted(members)
    return [(["SCARD", key], len(members)), (["TYPE", key], "set"),
            (["SMISMEMBER", key, *some, b"none"], [1] * len(some) + [0])]


def _of_list(key, values):
    return [(["LLEN", key], len(values)), (["TYPE", key], "list"),
            (["LINDEX", key, -1], values[-1]),
            (["LPOS", key, values[-1]], values.index(values[-1])),
            (["LRANGE", key, 1, 3], values[1:4])]


def _of_sorted_set(key, scores):
    order = sorted(scores, key=lambda member: (scores[member], member))
    return [(["ZCARD", key], len(scores)), (["TYPE", key], "zset"),
            (["ZREVRANGE", key, 0, -1], order[::-1]), (["ZCOUNT", key, "-inf", "(0"],
                                                       sum(scores[m] < 0 for m in order)),
            (["ZRANK", key, order[-1]], len(order) - 1),
            (["ZMSCORE", key, *order, b"none"], [*(number(scores[m]) for m in order), None])]


def _of_stream(key, stream):
    entries = [[entry_id, fields] for entry_id, fields in stream.entries.items()]
    questions = [(["XLEN", key], len(entries)), (["TYPE", key], "stream"),
                 (["XREVRANGE", key, "+", "-"], entries[::-1]),
                 (["XRANGE", key, "-", "+", "COUNT", 4], entries[:4])]
    for name, (_, pending) in stream.groups.items():
        ids = sorted(pending, key=serial_of)
        counts = {}
        for entry_id in ids:
            consumer = pending[entry_id][0]
            counts[consumer] = counts.get(consumer, 0) + 1
        summary = [len(ids), None, None, None] if not ids else [
            len(ids), ids[0], ids[-1],
            [[consumer, b"%d" % count] for consumer, count in sorted(counts.items())]]
        questions.append((["XPENDING", key, name], summary))
    return questions


OTHER_READERS = {b"s": _of_string, b"n": _of_string, b"h": _of_hash, b"e": _of_set, b"l": _of_list,
                 b"z": _of_sorted_set, b"x": _of_stream}


def check_readers(link, prefix, state):
    """Every other reader of a value agrees with the one of read_state()."""
    soon = wall_ms() + 10000
    questions = []
    for key, entry in state.items():
        kind = key[len(prefix):len(prefix) + 1]
        if kind in OTHER_READERS and (entry.expires is None or entry.expires > soon):
            questions += OTHER_READERS[kind](key, entry.value)
    replies = link.ask(*(question for question, _ in questions))
    for (question, expected), reply in zip(questions, replies):
        if reply != expected:
            raise Violation(f"{question} answered {reply!r}, not {expected!r}")


def _plain(kind, value):
    if isinstance(value, Error):
        raise Violation(f"a key of type {kind} answered {value}")
    if kind == b"h":
        return dict(zip(value[::2], value[1::2]))
    if kind == b"e":
        return set(value)
    if kind == b"z":
        scores = [float(score) for score in value[1::2]]
        pairs = list(zip(scores, value[::2]))
        if pairs != sorted(pairs):
            raise Violation(f"a sorted set is out of order: {pairs}")
        return dict(zip(value[::2], scores))
    if kind == b"x":
        return _plain_stream(dict(zip(value[::2], value[1::2])))
    return value


def _plain_stream(info):
    """Without the times, which the model cannot know."""
    if info[b"length"] != len(info[b"entries"]):
        raise Violation(f"a stream's length is not that of its entries: {info}")
    groups = {}
    for group in info[b"groups"]:
        group = dict(zip(group[::2], group[1::2]))
        pending = {entry[0]: [entry[1], entry[3]] for entry in group[b"pending"]}
        groups[group[b"name"]] = (group[b"last-delivered-id"], pending)
    return Stream(info[b"entries"], info[b"last-generated-id"], groups)
