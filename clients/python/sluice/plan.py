"""What a worker sends next (pops, heartbeats, ends of jobs), and what a reply means: its decisions,
without I/O and without a clock.

The worker asks `commands` what to send on the command connection, sends it as one pipeline, and
gives each reply to `receive`. `blocking_pop` says what to send on the connection that blocks. Both
return effects: what the worker has to do or to tell. Times are seconds of a steady clock.

At most one pop is outstanding. Its REQID stays until its reply is known: after a lost reply the
same token gets the same jobs, so no lease is without an owner. A pop that waits on the connection
that blocks is ended by its repeat on the other. One that the repeat has overtaken would take jobs
after all, so a worker that ends repeats it until both have replied.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Iterable, Iterator, Optional, Sequence

from sluice import errors, wire
from sluice.link import is_outage, is_uncertain, value_of
from sluice.notes import LOG_AT_ONCE, MOST_LOG, Notes
from sluice.outcome import GIVEN_BACK, Outcome

MAX_PAIRS = 256  # leases in one Q.ACK, Q.NACK or Q.TOUCH
MAX_COUNT = 256  # jobs of one pop
MAX_ERROR = 4096  # bytes that the server keeps of an error
MAX_BYTES = 1 << 20  # of the results in one command, unless it is a single one
BLOCK = 5.0
FIRST_REPEAT, LONGEST_REPEAT = 0.1, 1.0  # between two repeats of a pop that waits
SHORTEST_HEARTBEAT = 0.05
SHORTEST_REPLY = 0.25  # seconds; less would give up what a short stop of a machine delays
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0


@dataclasses.dataclass(eq=False)
class Lease:
    """A job that this worker holds, as a pop returned it."""

    queue: bytes
    id: bytes
    token: int
    attempt: int
    payload: bytes
    term: float
    extra: dict[str, Any]
    stop: Optional[str] = None  # the reason of Q.CANCEL
    lost: bool = False
    outcome: Optional[Outcome] = None
    sent: bool = False  # the outcome was sent, and its reply was lost
    notes: Notes = dataclasses.field(default_factory=Notes)
    bare: bool = False  # the next heartbeat is without its notes

    @property
    def key(self) -> tuple[bytes, bytes]:
        return (self.queue, self.id)

    @property
    def words(self) -> wire.Words:
        return (self.id, self.token)


@dataclasses.dataclass(frozen=True)
class Effect:
    """What is to be done or told: `start`, `stop`, `refused` (its progress or log is too large),
    `lost`, `completed`, `failed` or `returned`."""

    kind: str
    lease: Lease
    outcome: Optional[Outcome] = None


@dataclasses.dataclass(eq=False)
class Pop:
    """A pop whose replies are not all known yet."""

    token: int
    count: int
    place: str  # command, blocking; unsure: its reply was lost
    blocks: bool = False  # the connection that blocks has no reply to it yet
    repeat_at: float = 0.0  # ends the one that waits; a steady time
    repeat: float = FIRST_REPEAT
    taken: set[tuple[bytes, int]] = dataclasses.field(default_factory=set)  # queues, leases


@dataclasses.dataclass(frozen=True)
class Command:
    """What is sent, and what its reply will be about."""

    kind: str  # ack, nack, touch, pop
    words: wire.Words
    leases: tuple[Lease, ...] = ()
    pop: Optional[Pop] = None
    blocks: bool = False


class Plan:
    """The state of a worker."""

    def __init__(self, queues: Sequence[bytes], concurrency: int, *,
                 heartbeat: float = 1.0, options: wire.Words = (), burst: bool = False,
                 max_jobs: Optional[int] = None) -> None:
        """`options`: further words of each pop."""
        self._queues = tuple(queues)
        self.worker = b""  # its name, as pops and heartbeats give it
        self._concurrency = concurrency
        self._heartbeat = heartbeat
        self._options = options
        self._burst = burst
        self._left = max_jobs
        self._held: dict[tuple[bytes, bytes], Lease] = {}  # live leases with a handler
        self._busy: set[Lease] = set()  # with a handler, live or not
        self._ended: list[Lease] = []  # their outcome is to be sent
        self._pop: Optional[Pop] = None
        self._tokens = 0
        self._empty = False  # the last pop found fewer jobs than it asked for
        self._beat_at = 0.0
        self._pause = FIRST_PAUSE
        self._resume_at = 0.0
        self._failures = 0  # of tries to send something, since the last reply
        self.popped = False  # a pop had a reply
        self._quiet: set[bytes] = set()  # queues whose last word is that they give no jobs
        self.draining = False
        self._in_haste = False
        self.reached = False  # the last command had a reply
        self.answered = False  # there was a reply, if only an error
        self.failure: Optional[errors.ServerError] = None

    # -- What the handlers do -----------------------------------------------------------------

    def finish(self, lease: Lease, outcome: Outcome) -> bool:
        """The handler has ended: its slot is free. False if its outcome matters no longer, since
        the lease was lost or given back."""
        self._busy.discard(lease)
        if not self._holds(lease):
            return False
        del self._held[lease.key]
        self._end(lease, outcome)
        return True

    def drain(self) -> None:
        """Takes no more jobs."""
        self.draining = True

    def give_back(self) -> list[Lease]:
        """Gives back everything that still runs. Returns the leases, whose handlers still run. From
        now on a log goes in one piece, which may be refused, and holds up no end."""
        self._in_haste = True
        leases = list(self._held.values())
        for lease in leases:
            del self._held[lease.key]
            self._end(lease, GIVEN_BACK)
        return leases

    def last_commands(self, now: float) -> list[Command]:
        """What a worker that the server refuses still says: how runs have ended, and that all
        others are given back. A pop that waits would take them: it is ended first."""
        self.draining = True
        self.give_back()
        if now < self._resume_at:
            return []
        pop = self._next_pop(False, now)
        ending = [] if pop is None else [Command("pop", self._pop_words(pop), pop=pop)]
        return ending + self._settles()

    def _holds(self, lease: Lease) -> bool:
        return self._held.get(lease.key) is lease

    @property
    def quiet(self) -> bool:
        return bool(self._quiet)

    @property
    def busy(self) -> int:
        return len(self._busy)

    @property
    def idle(self) -> bool:
        """Whether nothing is held and nothing to be sent, but for a pop that may be outstanding."""
        return not self._held and not self._ended and not self._busy

    @property
    def settled(self) -> bool:
        """Whether no lease is held, and no pop is outstanding."""
        return not self._held and not self._ended and self._pop is None

    @property
    def done(self) -> bool:
        """Whether the worker may end."""
        if self.failure is not None:
            return True
        if self._burst and self.popped and self._empty and not self._busy and self.settled:
            self.draining = True
        if self._left == 0:
            self.draining = True
        return self.draining and self.settled and not self._busy

    # -- What to send -------------------------------------------------------------------------

    def wait(self, now: float) -> float:
        """Seconds until there may be something to send."""
        if self._resume_at > now:
            return self._resume_at - now
        due = self._beat_at if self._held else now + 3600.0
        if self.draining and self._pop is not None and self._pop.blocks:
            due = min(due, self._pop.repeat_at)
        return max(due - now, 0.0)

    def commands(self, now: float) -> list[Command]:
        """The next pipeline for the command connection."""
        if now < self._resume_at or self.failure is not None:
            return []
        out: list[Command] = []
        if self._held and now >= self._beat_at:
            out += self._touches(list(self._held.values()))
            self._beat_at = now + self._interval()
        settled = self._settles()
        out += settled
        repeated = self._pop is not None
        pop = self._next_pop(any(command.kind != "touch" for command in settled), now)
        if pop is None:
            return out
        acks = [command for command in settled if command.kind == "ack"]
        words = self._pop_words(pop)
        # With a token that was used before the server would take the ACK for a repeat, too.
        if not repeated and len(self._queues) == 1 and acks:
            place = out.index(acks[-1])
            out[place] = dataclasses.replace(
                acks[-1], words=(*acks[-1].words, "POP", *words[2 + len(self._queues):]), pop=pop)
        else:
            out.append(Command("pop", words, pop=pop))
        return out

    def reply_time(self, commands: Sequence[Command], longest: float) -> float:
        """Seconds that a reply to these may take: after one that does not come there is still time
        for another try, before a lease runs out. A server may be slow, so each further try has
        twice the time."""
        terms = [lease.term for lease in self._held.values()]
        terms += [lease.term for command in commands for lease in command.leases]
        if not terms:
            return longest
        return min(longest, max(min(terms) / 3, SHORTEST_REPLY) * (1 << min(self._failures, 8)))

    def blocking_pop(self, now: float) -> Optional[Command]:
        """The next pop for the connection that blocks."""
        if self._pop is not None or now < self._resume_at or self._burst or self.failure:
            return None
        if self.draining or self._free() <= 0:
            return None
        pop = self._pop = self._new_pop("blocking")
        pop.blocks = True
        words = (*self._pop_words(pop), "BLOCK", wire.milliseconds(BLOCK))
        return Command("pop", words, pop=pop, blocks=True)

    def _next_pop(self, settling: bool, now: float) -> Optional[Pop]:
        """The pop that goes to the command connection now."""
        pop = self._pop
        if pop is not None:
            ends = self.draining and pop.blocks and now >= pop.repeat_at
            if pop.place != "unsure" and not ends:
                return None
            pop.place = "command"
            return pop
        if self.draining or self._free() <= 0:
            return None
        more = self._burst and not (self._empty and self._busy)
        if settling or more or not self.popped:
            self._pop = self._new_pop("command")
        return self._pop

    def _new_pop(self, place: str) -> Pop:
        self._tokens += 1
        return Pop(self._tokens, self._free(), place)

    def _free(self) -> int:
        free = min(self._concurrency - len(self._busy), MAX_COUNT)
        return free if self._left is None else min(free, self._left)

    def _pop_words(self, pop: Pop) -> wire.Words:
        return ("Q.POP", len(self._queues), *self._queues, "WORKER", self.worker,
                "COUNT", pop.count, "REQID", pop.token, "BRIEF", *self._options)

    def _interval(self) -> float:
        shortest = min(lease.term for lease in self._held.values())
        return max(min(shortest / 3, self._heartbeat), SHORTEST_HEARTBEAT)

    def _touches(self, leases: Iterable[Lease]) -> list[Command]:
        """One heartbeat, with what the handlers have said since the last one."""
        out = []
        most_log = MOST_LOG if self._in_haste else LOG_AT_ONCE
        for queue, some in _by_queue(leases):
            parts = [(*lease.words, *(() if lease.bare else lease.notes.take(most_log)))
                     for lease in some]
            words = _joined("Q.TOUCH", queue, parts)
            out.append(Command("touch", (*words, "WORKER", self.worker), some))
            for lease in some:
                lease.bare = False
        return out

    def _settles(self) -> list[Command]:
        """How runs have ended. What is left of a log goes ahead, 16 KB a time."""
        ended = self._ended
        out = self._touches(lease for lease in ended if lease.notes)
        self._ended = [lease for lease in ended if lease.notes]
        ended = [lease for lease in ended if not lease.notes]
        for queue, some in _by_queue(lease for lease in ended if _acked(lease)):
            words = _joined("Q.ACK", queue, [_ack_words(lease) for lease in some])
            out.append(Command("ack", words, some))
        for queue, some in _by_queue(lease for lease in ended if not _acked(lease)):
            words = _joined("Q.NACK", queue, [_nack_words(lease) for lease in some])
            out.append(Command("nack", words, some))
        return out

    # -- What replies mean --------------------------------------------------------------------

    def receive(self, command: Command, reply: Any, now: float) -> list[Effect]:
        """`reply` may be what was raised. Its effects, in their order."""
        self.answered |= not isinstance(reply, errors.Unreachable)
        if command.blocks and command.pop is not None:
            command.pop.blocks = False
        if isinstance(reply, errors.ServerError) and not is_outage(reply):
            return self._refused(command, reply, now)
        if isinstance(reply, errors.SluiceError):
            self._lost(command, reply, now)
            return []
        self.reached = True
        self._pause = FIRST_PAUSE
        self._failures = 0
        parts = reply
        jobs = reply
        if command.kind != "pop" and command.pop is not None:
            # One pair keeps the shape without AND: a pop that took place says that it is done.
            parts, jobs = (reply if len(command.leases) > 1 else ([b"OK"], reply))
        elif command.kind == "touch" and len(command.leases) > 1:
            self._hear_quiet(command.leases[0], reply[0])
            parts = reply[1]
        elif command.kind != "pop" and len(command.leases) == 1:
            parts = [reply]
        effects: list[Effect] = []
        for lease, part in zip(command.leases, parts if command.kind != "pop" else ()):
            effects += self._receive_part(command, lease, value_of(part))
        if command.pop is not None:
            effects += self._receive_jobs(command.pop, jobs, now)
        return effects

    def _refused(self, command: Command, error: errors.ServerError, now: float) -> list[Effect]:
        """An error for the whole command. Of a single pair it is that pair's."""
        of_pair = isinstance(error, (errors.NoJob, errors.StaleLease, errors.TooBig))
        if of_pair and len(command.leases) == 1:
            self._replied(command.pop, now)
            return self._receive_part(command, command.leases[0], error)
        if error.temporary:  # UNBLOCKED, OOM
            self._lost(command, error, now)
            return []
        self.failure = self.failure or error
        self._replied(command.pop, now)
        for lease in command.leases if command.kind == "ack" else ():
            self._end(lease, GIVEN_BACK)
        return []

    def _lost(self, command: Command, error: errors.SluiceError, now: float) -> None:
        """It was not done, or that is not known. What the command was about is sent again."""
        self.reached = False
        if command.kind in ("ack", "nack"):
            for lease in command.leases:
                lease.sent |= is_uncertain(error)
            self._ended += command.leases
        for lease in command.leases if command.kind == "touch" else ():
            lease.notes.restore(is_uncertain(error))
        if command.pop is not None and self._pop is command.pop:
            command.pop.place = "unsure"
        if now < self._resume_at:
            return  # Another command of the pipeline has failed, too.
        self._failures += not command.blocks
        self._resume_at = now + self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE)

    def _receive_part(self, command: Command, lease: Lease, part: Any) -> list[Effect]:
        if command.kind == "touch":
            return self._receive_touch(lease, part)
        outcome = lease.outcome
        assert outcome is not None
        gone = isinstance(part, errors.NoJob) or (
            command.kind == "nack" and isinstance(part, errors.StaleLease))
        if lease.sent and gone:  # It was done the first time.
            part = None
        if isinstance(part, errors.TooBig) and command.kind == "ack":
            self._end(lease, Outcome("FATAL", error=f"result: {part}"))
            return []
        if isinstance(part, errors.ServerError):
            lease.lost = True
            return [Effect("lost", lease)]
        kinds = {"ack": "completed", "SILENT": "returned"}
        return [Effect(kinds.get(outcome.kind, "failed"), lease, outcome)]

    def _receive_touch(self, lease: Lease, part: Any) -> list[Effect]:
        if isinstance(part, (dict, list)):  # of one lease: a map
            fields = dict(wire.pairs(part))
            self._hear_quiet(lease, fields.get("quiet"))
            part = fields["cancel"]
        if isinstance(part, errors.TooBig):
            if self._holds(lease):  # Its lease was not renewed: that is done at once.
                lease.bare = True
                self._beat_at = 0.0
            lease.notes.refused()
            return [Effect("refused", lease)]
        if isinstance(part, errors.ServerError):
            if not self._holds(lease):
                lease.notes.drop()
                return []  # Its outcome is on the way, and hears it too.
            del self._held[lease.key]
            lease.lost = True
            return [Effect("lost", lease)]
        if part is None or lease.stop is not None or not self._holds(lease):
            return []
        lease.stop = wire.to_text(part)
        return [Effect("stop", lease)]

    def _hear_quiet(self, lease: Lease, quiet: Any) -> None:
        if quiet:
            self._quiet.add(lease.queue)
        else:
            self._quiet.discard(lease.queue)

    def _replied(self, pop: Optional[Pop], now: float) -> None:
        """A reply to it is known. It is over when no other is under way: what the pop that waits
        says ends nothing before the reply to its repeat is known."""
        if pop is None or self._pop is not pop:
            return
        if pop.blocks:
            pop.repeat_at = now + pop.repeat
            pop.repeat = min(pop.repeat * 2, LONGEST_REPEAT)
        elif pop.place != "unsure":
            self._pop = None

    def _receive_jobs(self, pop: Pop, jobs: Any, now: float) -> list[Effect]:
        self._replied(pop, now)
        self.popped = True
        self._empty = len(jobs or ()) < pop.count
        effects = []
        for job in jobs or ():
            lease = lease_of(job)
            if (lease.queue, lease.token) in pop.taken:
                continue  # The other connection had it.
            pop.taken.add((lease.queue, lease.token))
            self._quiet.discard(lease.queue)
            if self._left is not None:
                self._left = max(self._left - 1, 0)
            earlier = self._held.pop(lease.key, None)
            if earlier is not None:
                earlier.lost = True
                effects.append(Effect("lost", earlier))
            if self.draining:
                self._end(lease, GIVEN_BACK)
                continue
            if not self._held:
                self._beat_at = now + self._heartbeat
            self._held[lease.key] = lease
            self._busy.add(lease)
            self._beat_at = min(self._beat_at, now + self._interval())
            effects.append(Effect("start", lease))
        return effects

    def _end(self, lease: Lease, outcome: Outcome) -> None:
        lease.outcome = outcome
        lease.sent = False
        lease.bare = False
        lease.notes.end()
        self._ended.append(lease)


def lease_of(job: Any) -> Lease:
    """A job of a pop with BRIEF."""
    queue, id_, token, attempt, payload, lease_ms = job[:6]
    extra = wire.fields_of(job[6]) if len(job) > 6 else {}
    return Lease(queue, id_, int(token), int(attempt), payload, int(lease_ms) / 1000, extra)


def _acked(lease: Lease) -> bool:
    return lease.outcome is not None and lease.outcome.kind == "ack"


def _by_queue(leases: Iterable[Lease]) -> Iterator[tuple[bytes, tuple[Lease, ...]]]:
    """The leases of each queue, at most MAX_PAIRS and MAX_BYTES in one command, and an id once: a
    job that was lost unnoticed may be here again under a newer lease."""
    groups: dict[bytes, list[dict[bytes, Lease]]] = {}
    sizes: dict[bytes, int] = {}
    for lease in leases:
        chunks = groups.setdefault(lease.queue, [{}])
        size = len(lease.outcome.result or b"") if lease.outcome else 0
        if lease.id in chunks[-1] or len(chunks[-1]) == MAX_PAIRS or (
                sizes.get(lease.queue, 0) + size > MAX_BYTES and chunks[-1]):
            chunks.append({})
            sizes[lease.queue] = 0
        chunks[-1][lease.id] = lease
        sizes[lease.queue] = sizes.get(lease.queue, 0) + size
    for queue, chunks in groups.items():
        for chunk in chunks:
            yield queue, tuple(chunk.values())


def _joined(command: str, queue: bytes, parts: Sequence[wire.Words]) -> wire.Words:
    words: list[wire.Word] = [command, queue, *parts[0]]
    for part in parts[1:]:
        words += ("AND", *part)
    return tuple(words)


def _ack_words(lease: Lease) -> wire.Words:
    result = lease.outcome.result if lease.outcome else None
    return lease.words if result is None else (*lease.words, "RESULT", result)


def _nack_words(lease: Lease) -> wire.Words:
    outcome = lease.outcome or GIVEN_BACK
    words: wire.Words = (*lease.words, outcome.kind, *wire.span("DELAY", outcome.delay))
    text = wire.to_bytes(outcome.error, "error")
    end = min(len(text), MAX_ERROR)
    while 0 < end < len(text) and text[end] & 0xC0 == 0x80:
        end -= 1  # not within a character
    error = text[:end]
    return (*words, "ERROR", error) if error else words
