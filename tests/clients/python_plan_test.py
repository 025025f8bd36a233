#!/usr/bin/python3
"""The decisions of the Python client's worker (sluice/plan.py), against a naive server that loses
replies at random: a thousand histories, without a socket and without a clock."""

import random
import sys
from unittest import mock

from harness import require, require_equal, run
from harness.python_client import PACKAGE  # noqa: F401  makes the package known

from sluice import errors, plan as plan_module
from sluice.link import ConnectionLost
from sluice.outcome import Outcome
from sluice.plan import MAX_BYTES, MAX_ERROR, MAX_PAIRS, Effect, Plan

QUEUE = b"q"
HISTORIES = 1000
SEEDS = (
    484472541,  # A waiting pop's null arrives while the reply to its repeat is lost.
    236860916,  # Jobs of it arrive then, which an earlier repeat has got, too.
)


class NaiveServer:
    """One queue and one worker, as QUEUE.md has them."""

    def __init__(self, jobs):
        self.waiting = list(range(jobs))
        self.leases = {}  # id -> token
        self.reqids = {}  # token -> REQID of the pop
        self.ended = {}  # id -> token of the lease that completed it
        self.tokens = 0
        self.last_reqid = 0
        self.blocked = None  # (count, REQID) of the pop that waits
        self.kept = True
        self.logs = {}  # token -> what its run has written

    def expire(self, job):
        del self.leases[job]
        self.waiting.append(job)

    def pop(self, count, reqid):
        self.last_reqid = reqid
        again = [job for job, token in self.leases.items() if self.reqids[token] == reqid]
        jobs = again or [self.waiting.pop(0) for _ in range(min(count, len(self.waiting)))]
        for job in jobs if not again else ():
            self.tokens += 1
            self.leases[job] = self.tokens
            self.reqids[self.tokens] = reqid
        return [[QUEUE, b"%d" % job, self.leases[job], 1, b"1", 1000] for job in jobs] or None

    def run(self, words):
        words = list(words)
        if words[0] == "Q.POP":
            reqid, count = after(words, "REQID"), after(words, "COUNT")
            if self.blocked == (count, reqid):
                self.blocked = None
            return self.pop(count, reqid)
        pop = None
        if "POP" in words:
            pop = words[words.index("POP"):]
            words = words[:words.index("POP")]
            require(after(pop, "REQID") != self.last_reqid, "an ACK with a token that was used")
        if "WORKER" in words:
            words = words[:words.index("WORKER")]
        parts = split(words[2:], "AND")
        require_equal(len({part[0] for part in parts}), len(parts), "an id twice")
        replies = [getattr(self, words[0][2:].lower())(*part) for part in parts]
        one = len(parts) == 1
        if words[0] == "Q.TOUCH":
            return replies[0] if one else [0, [tuple_to_part(reply) for reply in replies]]
        if pop is None:
            return replies[0] if one else replies
        if one and isinstance(replies[0], Exception):
            return replies[0]
        jobs = self.pop(after(pop, "COUNT"), after(pop, "REQID"))
        return jobs if one else [replies, jobs]

    def refusal(self, job, token):
        """None if this lease holds the job."""
        if self.leases.get(job) == token:
            return None
        known = job in self.leases or job in self.waiting or (job in self.ended and self.kept)
        return (errors.StaleLease if known else errors.NoJob)("X id=x")

    def ack(self, job, token, *_):
        job = int(job)
        if self.kept and self.ended.get(job) == token:
            return b"OK"
        refusal = self.refusal(job, token)
        if refusal is None:
            del self.leases[job]
            require(job not in self.ended, "completed twice")
            self.ended[job] = token
        return refusal or b"OK"

    def nack(self, job, token, *_):
        refusal = self.refusal(int(job), token)
        if refusal is None:
            self.expire(int(job))
        return refusal or [b"state", b"pending"]

    def touch(self, job, token, *options):
        refusal = self.refusal(int(job), token)
        if refusal is None and "LOG" in options:
            self.logs[token] = self.logs.get(token, b"") + after(options, "LOG")
        return refusal or [b"left_ms", 1000, b"cancel", None, b"quiet", 0]


def tuple_to_part(reply):
    return reply if isinstance(reply, Exception) else None


def job_of(lease):
    return [QUEUE, b"%d" % lease, lease, 1, b"1", 30000]


def after(words, name):
    return words[words.index(name) + 1]


def split(words, separator):
    parts = [[]]
    for word in words:
        if word == separator:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


class History:
    """A plan and its server, step by step at random."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.server = NaiveServer(self.chance.randrange(1, 25))
        self.server.kept = self.chance.random() < 0.5
        self.jobs = len(self.server.waiting)
        self.loss = self.chance.choice([0, 0.1, 0.4])
        self.expiry = self.chance.choice([0, 0, 0.1])
        self.plan = Plan([QUEUE], self.chance.randrange(1, 6))
        self.now = 0.0
        self.running = []
        self.waiting_pop = None  # the command on the connection that blocks
        self.arrived = False  # at the server, which may have run its repeat before
        self.replied = None  # (what the server has said,) on its way
        self.completed = 0
        self.lines = 0
        self.written = {}  # token -> the lines that its run has written

    def take(self, effects):
        for effect in effects:
            require(isinstance(effect, Effect), "effects")
            if effect.kind == "start":
                self.running.append(effect.lease)
            self.completed += effect.kind == "completed"
        require(len(self.running) <= 5, "more handlers than slots")

    def exchange(self):
        for command in self.plan.commands(self.now):
            fate = self.chance.random()
            if fate < self.loss / 2:
                kind = self.chance.choice([errors.Unreachable, ConnectionLost])
                self.take(self.plan.receive(command, kind(), self.now))
                continue
            reply = self.server.run(command.words)
            if fate < self.loss:
                reply = ConnectionLost()
            self.take(self.plan.receive(command, reply, self.now))

    def block(self):
        """One step of the pop that waits: it is sent, comes to the server, is served or ended
        there, and its reply comes back."""
        command = self.waiting_pop
        if command is None:
            self.waiting_pop, self.arrived = self.plan.blocking_pop(self.now), False
        elif self.chance.random() < 0.5:
            return
        elif not self.arrived:
            self.arrived = True
            self.server.blocked = (command.pop.count, command.pop.token)
        elif self.replied is None:
            # What a repeat has ended says null, as does the end of the wait.
            reply = self.server.blocked and self.server.pop(*self.server.blocked)
            if reply or self.server.blocked is None or self.chance.random() < 0.2:
                self.server.blocked, self.replied = None, (reply,)
        else:
            [reply], self.replied, self.waiting_pop = self.replied, None, None
            if self.chance.random() < self.loss:
                reply = ConnectionLost()
            self.take(self.plan.receive(command, reply, self.now))

    def step(self, draining):
        self.now += self.chance.random() * 0.4
        self.exchange()
        self.block()
        for lease in self.running:
            for _ in range(self.chance.choice([0, 0, 1, 5])):
                self.lines += 1
                self.written.setdefault(lease.token, []).append(b"%06d\n" % self.lines)
                lease.notes.add_log(self.written[lease.token][-1])
        if self.running and self.chance.random() < 0.6:
            lease = self.running.pop(self.chance.randrange(len(self.running)))
            self.plan.finish(lease, Outcome(self.chance.choice(["ack"] * 9 + ["FAIL"])))
        if self.server.leases and self.chance.random() < self.expiry:
            self.server.expire(self.chance.choice(list(self.server.leases)))

    def run(self):
        steps = 0
        while len(self.server.ended) < self.jobs:
            self.step(False)
            steps += 1
            require(steps < 5000, "it does not come to an end")
            if self.chance.random() < 0.002:
                break  # stopped with jobs left
        self.plan.drain()
        while not self.plan.done:
            self.step(True)
            steps += 1
            require(steps < 10000, "it does not drain")
        require(self.waiting_pop is None, "no pop may still take jobs")
        require_equal(self.server.leases, {}, "leases without an owner")
        require_equal(len(self.server.ended) + len(self.server.waiting), self.jobs)
        # NOJOB on a repeat counts as done, also where another run was acknowledged and forgotten.
        if self.server.kept:
            require(self.completed <= len(self.server.ended), "more completed than acknowledged")
        if self.expiry == 0:
            require_equal(self.completed, len(self.server.ended))
        self.check_logs()

    def check_logs(self):
        """No line comes twice or out of its order; without losses none is missing."""
        for token, log in self.server.logs.items():
            lines = log.splitlines(True)
            require_equal(sorted(set(lines)), lines, "lines in their order")
            require(set(lines) <= set(self.written[token]), "another's lines")
        for token in self.server.ended.values() if self.loss == 0 else ():
            require_equal(self.server.logs.get(token, b""),
                          b"".join(self.written.get(token, ())), "the whole log")


def test_histories(_options):
    """No lease is without an owner, no job completes twice, and no log is doubled, whatever replies
    are lost."""
    first = random.randrange(1 << 30)
    with mock.patch.object(plan_module, "LOG_AT_ONCE", 2 * len(b"000000\n")):
        for seed in [*SEEDS, *range(first, first + HISTORIES)]:
            try:
                History(seed).run()
            except Exception as error:
                raise AssertionError(f"seed {seed}: {error}") from error


def waiting():
    """A plan that takes no more jobs, and its pop that waits."""
    plan = Plan([QUEUE], 1)
    [pop] = plan.commands(0.0)
    plan.receive(pop, None, 0.0)
    blocking = plan.blocking_pop(0.0)
    plan.drain()
    return plan, blocking


def test_repeats_of_a_waiting_pop(_options):
    """While the pop that waits has no reply it is repeated, ever less often, and what each repeat
    takes is given back; its own reply ends that."""
    plan, blocking = waiting()
    now, repeats = 0.0, 0
    while now < 5:
        for command in plan.commands(now):
            repeats += command.kind == "pop"
            reply = [job_of(repeats)] if command.kind == "pop" else [b"state", b"pending"]
            plan.receive(command, reply, now)
        require(not plan.done, "it may still take jobs")
        now += plan.wait(now) or 1e-3
    require_equal(repeats, 8)
    plan.receive(blocking, [job_of(8), job_of(100)], now)
    [nack] = plan.commands(now)
    require_equal([lease.token for lease in nack.leases], [8, 100])
    plan.receive(nack, [None, None], now)
    require(plan.done, "nothing is left")


def test_last_commands(_options):
    """A worker that is refused repeats the pop that waits, too, until that has replied; one whose
    pops are refused has nothing left to say."""
    plan, blocking = waiting()
    for now in (0.0, 1.0, 2.0):
        [pop] = plan.last_commands(now)
        plan.receive(pop, None, now)
        require_equal(plan.last_commands(now), [])
    [pop] = plan.last_commands(3.0)
    plan.receive(pop, errors.NoPermission("NOPERM"), 3.0)
    require_equal(plan.last_commands(3.0), [], "the next repeat")
    require(not plan.settled, "it may still take jobs")
    plan.receive(blocking, errors.NoPermission("NOPERM"), 3.0)
    require(plan.settled, "both have replied")
    plan, blocking = waiting()
    plan.receive(blocking, [job_of(1)], 0.0)
    [nack] = plan.last_commands(0.0)
    require_equal(nack.kind, "nack")


def test_many_leases(_options):
    """At most 256 leases in one command, each queue in its own; and what its reply means."""
    plan = Plan([b"a", b"b"], 1000)
    for queue, tokens in ((b"a", range(1, 257)), (b"a", range(257, 401)), (b"b", range(1, 3))):
        [pop] = [command for command in plan.commands(0.0) if command.pop] or [
            plan.blocking_pop(0.0)]
        jobs = [[queue, b"%d" % token, token, 1, b"1", 3000] for token in tokens]
        plan.receive(pop, jobs, 0.0)
    touches = [command for command in plan.commands(10.0) if command.kind == "touch"]
    require_equal([(command.words[1], len(command.leases)) for command in touches],
                  [(b"a", MAX_PAIRS), (b"a", 144), (b"b", 2)])
    lease = touches[0].leases[0]
    effects = plan.receive(touches[0], [1, [errors.StaleLease("X")] + [None] * 255], 10.0)
    require_equal([(effect.kind, effect.lease) for effect in effects], [("lost", lease)])
    plan.receive(touches[2], [0, [None, b"enough"]], 10.0)
    require_equal(touches[2].leases[1].stop, "enough")
    require(lease.lost and not plan.finish(lease, Outcome("ack")), "its result is dropped")


def test_quiet(_options):
    """A worker is quiet if a queue has told it so, and has given it no job since."""
    plan = Plan([b"a", b"b"], 10)
    for queue in (b"a", b"b"):
        pop = plan.blocking_pop(0.0) or plan.commands(0.0)[-1]
        plan.receive(pop, [[queue, b"x", 1, 1, b"1", 3000]], 0.0)
    touches = {command.words[1]: command for command in plan.commands(10.0)}

    def told(queue, quiet):
        plan.receive(touches[queue], [b"left_ms", 1000, b"cancel", None, b"quiet", quiet], 10.0)
        return plan.quiet

    require_equal([told(b"a", 1), told(b"b", 0)], [True, True], "quiet in a alone")
    require_equal([told(b"b", 1), told(b"a", 0), told(b"b", 0)], [True, True, False], "in both")
    told(b"a", 1)
    for queue, quiet in ((b"b", True), (b"a", False)):
        plan.receive(plan.blocking_pop(10.0), [[queue, b"y", 2, 1, b"1", 3000]], 10.0)
        require_equal(plan.quiet, quiet, "after a job of a queue")


def popped(jobs):
    """A plan that holds so many jobs, and their leases."""
    plan = Plan([QUEUE], jobs)
    [pop] = plan.commands(0.0)
    effects = plan.receive(pop, [job_of(n) for n in range(jobs)], 0.0)
    return plan, [effect.lease for effect in effects]


def test_refused_for_a_while(_options):
    """NOJOB is done after an acknowledgement that may have arrived, else the lease is lost."""
    for error, became in ((ConnectionLost(), "completed"), (errors.Unreachable(), "lost"),
                          (errors.ReadOnly("READONLY"), "lost"), (errors.Busy("BUSY"), "lost"),
                          (errors.DiskFailed("MISCONF The disk is full"), "lost"),
                          (errors.DiskFailed("MISCONF It may or may not have been kept."),
                           "completed")):
        plan, [lease] = popped(1)
        plan.finish(lease, Outcome("ack"))
        [ack] = plan.commands(1.0)
        require_equal(plan.receive(ack, error, 1.0), [])
        ack = next(command for command in plan.commands(10.0) if command.kind == "ack")
        effects = plan.receive(ack, errors.NoJob("NOJOB id=0"), 10.0)
        require_equal([effect.kind for effect in effects], [became], repr(error))


def words_after(command, lease):
    """What a heartbeat says of this lease."""
    words = command.words[command.words.index(lease.id) + 2:]
    return words[:min(words.index(word) for word in ("AND", "WORKER") if word in words)]


def test_refused_notes(_options):
    """A heartbeat that was refused for its notes has renewed nothing: another follows at once,
    without them."""
    plan, leases = popped(2)
    leases[1].notes.set_progress(b"large")
    [touch] = plan.commands(1.0)
    require_equal(words_after(touch, leases[1]), ("PROGRESS", b"large"))
    effects = plan.receive(touch, [0, [None, errors.TooBig("TOOBIG limit=1")]], 1.0)
    require_equal([effect.kind for effect in effects], ["refused"])
    leases[1].notes.set_progress(b"small")
    [touch] = plan.commands(1.0)
    require_equal([words_after(touch, lease) for lease in leases], [(), ()])
    plan.receive(touch, [0, [None, None]], 1.0)
    require_equal(plan.commands(1.0), [])
    [touch] = plan.commands(2.0)
    require_equal(words_after(touch, leases[1]), ("PROGRESS", b"small"))


def test_log_of_a_lost_heartbeat(_options):
    """The log of a heartbeat that was certainly not done is sent again, before what came since."""
    for error, log in ((errors.Unreachable(), b"onetwo"), (errors.Loading("LOADING"), b"onetwo"),
                       (ConnectionLost(), b"two")):
        plan, [lease] = popped(1)
        lease.notes.add_log(b"one")
        [touch] = plan.commands(1.0)
        lease.notes.add_log(b"two")
        require_equal(plan.receive(touch, error, 1.0), [])
        [touch] = plan.commands(10.0)
        require_equal(words_after(touch, lease), ("LOG", log), repr(error))


LOG = bytes(range(256)) * (8 << 10)
DONE = {"touch": [b"cancel", None], "ack": None, "nack": [b"state", b"pending"]}


def sent_next(plan, now=1.0):
    """The kinds of the next commands, and the logs that they carry; each of them is done."""
    kinds, log = [], b""
    for command in plan.commands(now):
        kinds.append(command.kind)
        if "LOG" in command.words:
            log += after(command.words, "LOG")
        plan.receive(command, DONE[command.kind], now)
    return kinds, log


def test_rest_of_a_log(_options):
    """A heartbeat carries 16 KB of a log, the oldest. The rest goes before the end of the job,
    which waits for it; others do not. At the end of grace it goes in one piece."""
    plan, leases = popped(2)
    leases[0].notes.add_log(LOG[:40_000])
    for lease in leases:
        plan.finish(lease, Outcome("ack"))
    leases[0].notes.add_log(b"too late")
    require_equal([sent_next(plan) for _ in range(3)], [
        (["touch", "ack"], LOG[:16384]), (["touch"], LOG[16384:32768]),
        (["touch", "ack"], LOG[32768:40_000])])
    plan, [lease] = popped(1)
    lease.notes.add_log(LOG[:40_000])
    plan.drain()
    plan.give_back()
    require_equal(sent_next(plan), (["touch", "nack"], LOG[:40_000]))


def test_log_that_grows(_options):
    """At most 1 MB of a log waits, the newest, also where a heartbeat was not done; that of a lost
    lease goes nowhere, and a progress that is too large takes none of it along."""
    plan, [lease] = popped(1)
    lease.notes.add_log(LOG)
    require_equal(sent_next(plan), (["touch"], LOG[1 << 20:][:16384]))
    lease.notes.add_log(LOG)
    [touch] = plan.commands(10.0)
    lease.notes.add_log(b"end")
    plan.receive(touch, errors.Unreachable(), 10.0)
    require_equal(lease.notes.take(2 << 20), ("LOG", (LOG + b"end")[-(1 << 20):]))
    lease.notes.set_progress(b"large")
    lease.notes.add_log(b"log")
    [touch] = plan.commands(20.0)
    plan.receive(touch, errors.TooBig("TOOBIG limit=1"), 20.0)
    require_equal(sent_next(plan, 20.0), (["touch"], b""), "it renews the lease")
    lease.notes.add_log(LOG)
    plan.finish(lease, Outcome("ack"))
    [touch] = plan.commands(30.0)
    require_equal(words_after(touch, lease), ("LOG", (b"log" + LOG)[-(1 << 20):][:16384]))
    plan.receive(touch, errors.StaleLease("STALELEASE id=0"), 30.0)
    require_equal([command.kind for command in plan.commands(30.0)], ["ack"])


def test_newer_lease(_options):
    """A job that comes again under a newer lease was lost before: its first run hears it at once,
    and only the newer lease is renewed and acknowledged."""
    plan = Plan([QUEUE], 2)
    leases = []
    for token in (1, 2):
        [pop] = [command for command in plan.commands(0.0) if command.pop] or [
            plan.blocking_pop(0.0)]
        effects = plan.receive(pop, [[QUEUE, b"x", token, 1, b"1", 30000]], 0.0)
        leases.append(effects[-1].lease)
    require_equal([(effect.kind, effect.lease) for effect in effects],
                  [("lost", leases[0]), ("start", leases[1])])
    require(leases[0].lost and not leases[1].lost, "the first run is lost")
    [touch] = plan.commands(1.0)
    require_equal(touch.leases, (leases[1],))
    require(not plan.finish(leases[0], Outcome("ack")), "its result is dropped")
    require(plan.finish(leases[1], Outcome("ack")), "and that of the second is not")
    require_equal([command.leases for command in plan.commands(1.0) if command.kind == "ack"],
                  [(leases[1],)])


def test_time_for_another_try(_options):
    """While leases are held a reply may take a third of the shortest one, so that there is time for
    another try; a further one has more, as the server may be slow. A pipeline that has failed is
    one try."""
    plan = Plan([QUEUE], 3)
    [pop] = plan.commands(0.0)
    require_equal(plan.reply_time([pop], 5.0), 5.0, "nothing is held")
    jobs = [[QUEUE, b"%d" % ms, ms, 1, b"1", ms] for ms in (3000, 60_000, 300)]
    leases = [effect.lease for effect in plan.receive(pop, jobs, 0.0)]
    require_equal((plan.reply_time([], 5.0), plan.reply_time([], 0.1)), (0.25, 0.1))
    for lease in leases[1:]:
        plan.finish(lease, Outcome("ack"))
    require_equal(plan.reply_time([], 5.0), 1.0)
    commands = plan.commands(1.0)
    require_equal([command.kind for command in commands], ["touch", "ack"])
    require_equal(plan.reply_time(commands, 5.0), 0.25, "an acknowledgement may be the last try")
    for n, expected in enumerate((2.0, 4.0, 5.0)):
        now = 10.0 * n + 1.0
        for command in commands:
            plan.receive(command, ConnectionLost(), now)
        require_equal(plan.reply_time([], 5.0), expected)
        commands = plan.commands(now + 5.0)
    plan.receive(next(each for each in commands if each.kind == "touch"), [b"cancel", None], 40.0)
    require_equal(plan.reply_time([], 5.0), 1.0, "after a reply")


def test_large_results(_options):
    """Results are divided among commands; one that is larger has its own."""
    plan, leases = popped(8)
    for lease, size in zip(leases, (MAX_BYTES // 3,) * 7 + (2 * MAX_BYTES,)):
        plan.finish(lease, Outcome("ack", result=bytes(size)))
    acks = plan.commands(1.0)
    require_equal([len(command.leases) for command in acks], [3, 3, 1, 1])
    require_equal([command.pop is not None for command in acks], [False] * 3 + [True])


def test_long_error(_options):
    """Of the text of an error is sent what the server keeps: a text beyond its limits would end the
    connection, and be repeated for ever."""
    plan, [lease] = popped(1)
    plan.finish(lease, Outcome("FAIL", error="x" + "ä" * MAX_ERROR))
    [nack] = [command for command in plan.commands(1.0) if command.kind == "nack"]
    require_equal(after(nack.words, "ERROR"), ("x" + "ä" * (MAX_ERROR // 2 - 1)).encode())


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
