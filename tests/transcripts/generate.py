#!/usr/bin/python3
"""Generated commands, sent to a server and to redis-server in batches and compared one by one.

A round starts with empty servers and is made from one seed; where it differs, it is cut down to
what is needed and printed as a transcript. run.py runs this after the written transcripts.

    python3 tests/transcripts/generate.py --server PATH --seed 7 --commands 20000 zsets
"""

import pathlib
import random
import sys
import time

from harness.resp import ProtocolError, Reply, encode
from harness.transcripts.compare import Rules, equal
from harness.transcripts.families import TABLES, pool_for, simple_round
from harness.transcripts.pools import ORDERED_BY_ENCODING, WRONG_TYPE_SETUP, Command, rules_of
from harness.transcripts.sequences import ROUNDS
from harness.transcripts.session import Outcome, Session, show

FAMILIES = list(TABLES) + list(ROUNDS)
BATCH = 50
ROUND_COMMANDS = 300
MINIMISE_S = 20.0
MINIMISE_TIMEOUT_S = 2.0
MOST_FAILURES = 10
# LuaJIT words its own errors otherwise than Lua 5.1 (REDIS.md); place and script must agree.
LUA_MESSAGE = rb"(?<=user_script:1: ).*(?= script: )"
UNORDERED_ENCODINGS = {b"hashtable", b"skiplist"}


class Mismatch:
    def __init__(self, index, command, expected, actual):
        self.index = index
        self.command = command
        self.expected = expected
        self.actual = actual

    @property
    def leaves_state_alone(self):
        """True if both refused, or both answered null: the round can go on behind it."""
        replies = (self.expected, self.actual)
        if not all(isinstance(reply, Reply) for reply in replies):
            return False
        return all(reply.is_error or reply.tree[1] is None for reply in replies)

    @property
    def signature(self):
        """The same for differences that most likely have the same reason."""
        texts = [show(result, 60) if isinstance(result, Reply) and result.is_error
                 else type(result).__name__ for result in (self.expected, self.actual)]
        return (self.command.name, *texts)


class Exchange:
    """Sends one round's commands to both servers. Made anew for each round."""

    def __init__(self, servers, protocol, timeout_s):
        self.sessions = [Session(server, protocol, timeout_s) for server in servers]
        self.queued = {}
        self.slack_ms = 0.0
        self.batch_began = 0.0
        self.compared = 0
        self.mismatches = []
        for session in self.sessions:
            session.wait_until(lambda: session.client_count(b"connected_clients") <= 1)
            session.reset()

    def close(self):
        for session in self.sessions:
            session.close()

    def run(self, commands):
        """Fills `mismatches`; ends at the first after which the states may differ."""
        position = 0
        while position < len(commands):
            batch = self._next_batch(commands, position)
            self.batch_began = time.monotonic()
            mismatch = self._run_batch(batch, position)
            self.slack_ms = self._slack_now_ms()
            if mismatch:
                self.mismatches.append(mismatch)
                return
            position += len(batch)
        mismatch = self.compare_keyspace()
        if mismatch:
            self.mismatches.append(mismatch)

    def _slack_now_ms(self):
        """A key's time to live may differ by as long as one server waited for the other."""
        return max(self.slack_ms, 2000 * (time.monotonic() - self.batch_began))

    @staticmethod
    def _next_batch(commands, position):
        first = commands[position]
        if first.kind != "command" or first.mode == "scan":
            return [first]
        end = position
        for command in commands[position:position + BATCH]:
            if (command.kind != "command" or command.mode == "scan" or
                    command.connection != first.connection):
                break
            end += 1
        return commands[position:end]

    def _run_batch(self, batch, position):
        number = batch[0].connection
        if batch[0].kind == "async":
            for session in self.sessions:
                session.send_async(number, batch[0].arguments)
            return None
        if batch[0].kind == "events":
            return self._compare_events(batch[0], position)
        if batch[0].mode == "scan" and batch[0].kind == "command" and not batch[0].in_multi:
            return self._run_scan(batch[0], position)
        if batch[0].kind == "command":
            self._send(batch, number)
        previous = None
        for index, command in enumerate(batch, position):
            encoding = None
            if self._wants_encoding(command):
                encoding = self.sessions[0].read(number).tree[1]
            replies = [[session.read(number) for _ in range(command.replies)]
                       for session in self.sessions]
            mismatch = self._compare(index, command, replies, encoding, previous)
            if mismatch and not mismatch.leaves_state_alone:
                return mismatch
            if mismatch:
                self.mismatches.append(mismatch)
            previous = replies[1][0]
        return None

    @staticmethod
    def _wants_encoding(command):
        return (command.kind == "command" and not command.in_multi and
                command.name in ORDERED_BY_ENCODING and len(command.arguments) == 2)

    def _send(self, batch, number):
        """The reference also says how it keeps a hash or set, which tells if its order counts."""
        for which, session in enumerate(self.sessions):
            parts = []
            for command in batch:
                if which == 0 and self._wants_encoding(command):
                    parts.append(encode(["OBJECT", "ENCODING", command.arguments[1]]))
                parts.append(encode(command.arguments))
            session.connection(number).send_bytes(b"".join(parts))

    def _compare_events(self, command, position):
        expected, actual = [session.events(command.connection) for session in self.sessions]
        self.compared += len(expected)
        return None if expected == actual else Mismatch(position, command, expected, actual)

    def _run_scan(self, command, position):
        results = [session.scan(command.connection, command.arguments) for session in self.sessions]
        self.compared += 1
        lists = [isinstance(result, list) for result in results]
        same = results[0] == results[1] if any(lists) else equal(
            rules_of("type", 0), *results)
        return None if same else Mismatch(position, command, *results)

    def _compare(self, index, command, replies, encoding, previous):
        expected, actual = replies
        for one, other in zip(expected, actual):
            if isinstance(one, Outcome) or isinstance(other, Outcome):
                return Mismatch(index, command, one, other)
        self.compared += len(expected)
        if command.mode == "sorted_replies":
            expected, actual = [sorted(many, key=lambda reply: reply.raw) for many in replies]
        if command.mode == "unsubscribe":
            if summary(expected) != summary(actual):
                return Mismatch(index, command, summary(expected), summary(actual))
            return None
        rules = self._rules(command, encoding, expected[0])
        if command.name in ("EVAL", "EVAL_RO") and expected[0].is_error:
            rules.masks.append(LUA_MESSAGE)
        for one, other in zip(expected, actual):
            if not equal(rules, one, other):
                return Mismatch(index, command, one, other)
        if command.members and not is_pick(command, actual[0], previous):
            return Mismatch(index, command, f"a pick of {show(previous)}", actual[0])
        return None

    def _rules(self, command, encoding, expected):
        """The rules for one reply; EXEC's are those of the commands that were queued."""
        number = command.connection
        if expected.raw == b"+QUEUED\r\n":
            self.queued.setdefault(number, []).append(
                rules_of(command.mode, self._slack_now_ms()))
            return Rules()
        if command.name in ("EXEC", "DISCARD"):
            rules = Rules()
            rules.children = self.queued.pop(number, [])
            return rules
        if command.name in ORDERED_BY_ENCODING and not command.in_multi:
            if encoding not in UNORDERED_ENCODINGS:
                return Rules()
        return rules_of(command.mode, self._slack_now_ms())

    # -- The whole keyspace -------------------------------------------------------------------

    def compare_keyspace(self):
        """A Mismatch if the databases 0 and 1 differ in any key, value or time to live."""
        for database in ("0", "1"):
            began = time.monotonic()
            states = [keyspace_of(session.control, database) for session in self.sessions]
            slack_ms = self.slack_ms + 1000 * (time.monotonic() - began)
            for key in sorted(set(states[0]) | set(states[1])):
                one, other = states[0].get(key), states[1].get(key)
                command = Command(["DUMP-OF-KEY", key, "DB", database])
                if one is None or other is None or one[0] != other[0]:
                    return Mismatch(-1, command, one, other)
                if abs(one[1] - other[1]) > 50 + slack_ms:
                    return Mismatch(-1, command, f"PTTL {one[1]}", f"PTTL {other[1]}")
        return None


def summary(replies):
    """Of unsubscriptions in an order that is not fixed: the names, and the counts in order."""
    trees = [reply.tree for reply in replies]
    if any(not isinstance(tree[1], list) or len(tree[1]) != 3 for tree in trees):
        return trees
    return (trees[0][0], sorted(repr(tree[1][1]) for tree in trees),
            [tree[1][2] for tree in trees])


def is_time(tree):
    return tree[0] == ":" and int(tree[1]) >= EARLIEST_TIME_MS


def timeless(tree):
    """The leaves, without those that are times."""
    if isinstance(tree[1], list):
        return [leaf for child in tree[1] for leaf in timeless(child)]
    return [] if is_time(tree) else leaves(tree)


def leaves(tree):
    if isinstance(tree[1], list):
        return [leaf for child in tree[1] for leaf in leaves(child)]
    return [] if tree[1] is None or tree[0] == "_" else [tree[1]]


def is_pick(command, reply, previous):
    """True if a random answer holds only what is there, and no element twice where it must not."""
    if reply.is_error or previous is None or previous.is_error:
        return True
    found = leaves(reply.tree)
    if not set(found) <= set(leaves(previous.tree)):
        return False
    distinct = len(command.arguments) == 3 and command.arguments[2].isdigit()
    return not distinct or len(found) == len(set(found))


DUMPS = {b"string": lambda key: ["GET", key], b"list": lambda key: ["LRANGE", key, "0", "-1"],
         b"hash": lambda key: ["HGETALL", key], b"set": lambda key: ["SMEMBERS", key],
         b"zset": lambda key: ["ZRANGE", key, "0", "-1", "WITHSCORES"],
         b"stream": lambda key: ["XINFO", "STREAM", key, "FULL", "COUNT", "0"]}
# What XINFO says of a time, in ms: later than any number that a round puts into an id or a count.
EARLIEST_TIME_MS = 10**12


def keyspace_of(control, database):
    """key -> ((type, content in a fixed order), time to live in ms)."""
    control.call("SELECT", database)
    keys = [child[1] for child in control.call("KEYS", "*").tree[1]]
    replies = control.pipeline([words for key in keys for words in (["TYPE", key], ["PTTL", key])])
    types = [reply.tree[1] for reply in replies[::2]]
    contents = control.pipeline([DUMPS[kind](key) for key, kind in zip(keys, types)
                                 if kind in DUMPS])
    state = {}
    for key, kind, ttl in zip([k for k, t in zip(keys, types) if t in DUMPS],
                              [t for t in types if t in DUMPS],
                              [r for r, t in zip(replies[1::2], types) if t in DUMPS]):
        tree = contents.pop(0).tree
        content = timeless(tree) if kind == b"stream" else leaves(tree)
        if kind == b"hash":
            content = sorted(zip(content[::2], content[1::2]))
        elif kind == b"set":
            content = sorted(content)
        state[key] = ((kind, content), int(ttl.tree[1]))
    control.call("SELECT", "0")
    return state


# -- Rounds ---------------------------------------------------------------------------------------


def make_round(family, seed, protocol):
    """The commands of one round. The same arguments always give the same commands."""
    source = random.Random(seed)
    if family in TABLES:
        setup = [Command(words) for words in WRONG_TYPE_SETUP]
        commands = setup + simple_round(family, pool_for(family, source), ROUND_COMMANDS)
    else:
        commands = ROUNDS[family](source, ROUND_COMMANDS, protocol)
    return list(without_stale_errno(commands))


def without_stale_errno(commands):
    """redis-server's SORT fails if a number of an earlier command, such as 1e400, has left ERANGE
    in errno. Each SORT follows a command that clears errno and changes nothing else."""
    for command in commands:
        sorts = {b"SORT", b"SORT_RO"}.intersection(map(bytes.upper, command.arguments))
        if command.kind == "command" and sorts:
            yield Command(["ZADD", "none", "XX", 1, "a"], connection=command.connection,
                          in_multi=command.in_multi)
        yield command


def try_round(servers, commands, protocol, timeout_s):
    """(the mismatches, replies compared)"""
    exchange = Exchange((servers.reference, servers.tested), protocol, timeout_s)
    try:
        exchange.run(commands)
        return exchange.mismatches, exchange.compared
    except (OSError, ProtocolError) as error:
        broken = Mismatch(-1, Command(["?"]), "an answer", f"{type(error).__name__}: {error}")
        return exchange.mismatches + [broken], 0
    finally:
        exchange.close()


def find_again(servers, commands, protocol, signature):
    """The Mismatch with this signature, if the commands still show it; None if not."""
    mismatches, _ = try_round(servers, commands, protocol, MINIMISE_TIMEOUT_S)
    if servers.revive():
        return mismatches[-1] if mismatches else None
    for mismatch in mismatches:
        # A sequence cut so that someone waits for ever on both sides shows nothing.
        waits = isinstance(mismatch.expected, Outcome) and mismatch.expected.text == "no reply"
        if mismatch.signature == signature and not waits:
            return mismatch
    return None


def minimise(servers, commands, protocol, signature):
    """Leaves out whole sequences, then single commands, as long as the rest still fails."""
    deadline = time.monotonic() + MINIMISE_S
    for split in (split_sequences, group_reads):
        commands = reduce_groups(servers, split(commands), protocol, signature, deadline)
    return commands


def reduce_groups(servers, groups, protocol, signature, deadline):
    size = max(1, len(groups) // 2)
    while time.monotonic() < deadline:
        start = 0
        shrunk = False
        while start < len(groups) and time.monotonic() < deadline:
            candidate = groups[:start] + groups[start + size:]
            flat = sum(candidate, [])
            if is_balanced(flat) and find_again(servers, flat, protocol, signature):
                groups = candidate
                shrunk = True
            else:
                start += size
        if size == 1 and not shrunk:
            break
        size = max(1, size // 2)
    return sum(groups, [])


def split_sequences(commands):
    """Cuts where nobody is blocked."""
    sequences = [[]]
    waiting = 0
    for command in commands:
        waiting += (command.kind == "async") - (command.kind == "read" and waiting > 0)
        if command.kind == "async" and waiting == 1 and sequences[-1]:
            sequences.append([])
        sequences[-1].append(command)
    return sequences


def is_balanced(commands):
    """False if a blocked client would get a second command, or a reply be read that nobody gave."""
    if not any(command.kind == "async" for command in commands):
        return not any(command.kind == "read" for command in commands[:1])
    waiting = set()
    for command in commands:
        if (command.kind == "read") != (command.connection in waiting):
            return False
        if command.kind == "async":
            waiting.add(command.connection)
        elif command.kind == "read":
            waiting.discard(command.connection)
    return True


def group_reads(commands):
    """A publication and the reads of its messages go together: else replies would be mistaken."""
    if any(command.kind == "async" for command in commands):
        return [[command] for command in commands]
    groups = []
    for command in commands:
        if command.kind == "read" and groups:
            groups[-1].append(command)
        else:
            groups.append([command])
    return groups


def as_transcript(commands, heading):
    lines = ["# " + line for line in heading]
    current = 1
    for command in commands:
        if command.connection != current:
            current = command.connection
            lines.append(f"@conn {current}")
        lines.append(command.text())
    return "\n".join(lines) + "\n"


def report(servers, family, round_seed, protocol, commands, mismatch, options):
    """Prints a failure with the shortest reproduction that was found, and saves it if asked."""
    if 0 <= mismatch.index < len(commands):
        commands = commands[:mismatch.index + 1]
    died = servers.revive()
    short = []
    if find_again(servers, commands, protocol, mismatch.signature):
        short = minimise(servers, commands, protocol, mismatch.signature)
        mismatch = find_again(servers, short, protocol, mismatch.signature) or mismatch
    died = died or servers.revive()
    heading = [f"generated: family {family}, round {round_seed}, RESP{protocol}"]
    text = as_transcript(short or commands[-20:], heading)
    print(heading[0] + ("" if short else " (does not fail again alone; the last commands follow)"))
    print("  " + text.rstrip().replace("\n", "\n  "))
    print(f"  command:   {mismatch.command.text()[:1500]}\n  reference: {show(mismatch.expected)}\n"
          f"  server:    {show(mismatch.actual)}")
    if died:
        print("  " + died)
    if options.save:
        directory = pathlib.Path(options.save)
        directory.mkdir(parents=True, exist_ok=True)
        place = f"{round_seed.replace(':', '-')}-{max(mismatch.index, 0)}"
        name = f"{family}-{place}-resp{protocol}.txt"
        (directory / name).write_text(text)
    sys.stdout.flush()


def run_family(servers, family, protocol, options):
    """Rounds until enough commands have run. Returns (failed rounds, replies compared)."""
    sent = compared = failed = number = 0
    seen = {}
    while sent < options.commands:
        round_seed = f"{options.seed}:{family}:{number}"
        commands = make_round(family, round_seed, protocol)
        mismatches, count = try_round(servers, commands, protocol, options.timeout)
        number += 1
        sent += len(commands)
        compared += count
        failed += bool(mismatches)
        for mismatch in mismatches:
            # The same reason shows again and again: one reproduction of it is enough.
            seen[mismatch.signature] = seen.get(mismatch.signature, 0) + 1
            if seen[mismatch.signature] == 1 and len(seen) <= MOST_FAILURES:
                report(servers, family, round_seed, protocol, commands, mismatch, options)
        servers.revive()
    if failed:
        names = {}
        for signature, times in seen.items():
            names[signature[0]] = names.get(signature[0], 0) + times
        print(f"FAIL generated {family} RESP{protocol}: {failed} of {number} rounds, "
              + ", ".join(f"{name} {times}×" for name, times in names.items()))
    elif options.verbose:
        print(f"ok   generated {family} RESP{protocol}: {number} rounds, {compared} replies")
    sys.stdout.flush()
    return failed, compared


def run(servers, families, options):
    """Runs the families in each protocol. Returns (passed, failed), by family and protocol."""
    print(f"generated commands: seed {options.seed}")
    passed = failed = total = 0
    for family in families:
        for protocol in options.protocols:
            failures, compared = run_family(servers, family, protocol, options)
            total += compared
            failed += bool(failures)
            passed += not failures
    print(f"generated: {total} replies compared (--seed {options.seed} gives them again)")
    return passed, failed


if __name__ == "__main__":
    import run as runner
    sys.argv.append("--no-files")
    sys.exit(runner.main())
