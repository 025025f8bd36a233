"""One pipelined connection of the crash tests of the native queue.

It sends batches: adds, some of which wait for the job's end; a pop with a REQID, ends of the jobs
that it holds, cancels and moves of its own jobs, units over two queues; the end of all runs of a
worker that says no more. Of each command it keeps what the event log must show if it happened.
After a crash `verify` compares that with the stories (queue_story.py): what was acknowledged has
happened; what was in flight has happened up to some command and not behind it; a unit over two
queues, or over several runs, wholly or not at all. Then `repeat_lost_pop` asks again for what a
lost reply had given.
"""

import random

from harness.crash.client import LoadClient, Violation
from harness.crash.model import Error, encode
from harness.crash.queue_replies import ended_state, pop_form, popped_jobs
from harness.crash.queue_story import make_id, pairs, result_of

GROUPS, KEYS = ("g0", "g1", "g2"), ("k0", "k1", "k2", "k3")
MOST_WAITING = 150   # where the last snapshot has more, little is added
SHORT_LEASE_MS = 150
HELD_MS = 600000
WAITS_MS = (1, 5, 20)   # the others work meanwhile
OWN_IDS = 30         # the latest ones are cancelled, moved, added again
TWIN_SCRIPT = """
redis.call('Q.ADD', KEYS[1], ARGV[1], 'x', 'GROUP', ARGV[2])
redis.call('Q.ADD', KEYS[2], ARGV[1], 'y', 'GROUP', ARGV[2])
return 'OK'"""


class RunLog:
    """What one run has written into the log of its job; nobody else writes meanwhile."""

    def __init__(self, before=None):
        self.before = before    # the whole log when it was last read; None: it was not
        self.pieces = []        # sent since, without those that were refused
        self.acknowledged = 0   # so many of them

    def possible(self):
        """What the log ends with, if 0, 1, … of the pieces in flight have been written."""
        for count in range(self.acknowledged, len(self.pieces) + 1):
            yield b"".join(self.pieces[:count])


# What ends a run besides its worker's acknowledgement, and besides a cancel.
LOSSES = ("returned", "retrying", "reclaimed", "failed")
ANYTHING = object()  # what a job's progress may be before anything of it was acknowledged


class Sent:
    """A command or unit on its way; `read` takes its last reply.

    `proof`: for each queue that it changes, events (type, id, lease) that it alone can have caused,
    of which one must be there if it happened. `excuses`: for each of these, a queue and an event
    in its place that another command caused.
    """

    def __init__(self, commands, read, proof=(), excuses=()):
        self.wire = b"".join(encode(command) for command in commands)
        self.commands = commands
        self.read = read
        self.proof = proof
        self.excuses = excuses


def join_pairs(words, several):
    """A command with the words of several jobs, and AND between them."""
    for number, one in enumerate(several):
        words = words + (["AND"] if number else []) + one
    return words


def pair_ids(words):
    """The ids in a command of join_pairs()."""
    return [words[2]] + [words[at + 1] for at, word in enumerate(words) if word == "AND"]


def is_error(reply, *codes):
    return isinstance(reply, Error) and reply.text.split(" ")[0] in codes


class QueueClient(LoadClient):
    def __init__(self, index, seed, stories):
        super().__init__()
        self.index = index
        self.rng = random.Random(f"{seed}/{index}")
        self.stories = stories
        self.names = list(stories)
        self.worker = f"w{index}"
        self.serial = 0
        self.own = {name: [] for name in self.names}
        self.held = {name: {} for name in self.names}    # id -> lease
        self.told = {name: set() for name in self.names}   # leases that this worker heard of
        self.gone = {name: [] for name in self.names}   # (id, lease) of a worker that says no more
        self.lost_pop = None        # (queue, words) of a pop without an answer
        self.expected = []          # (queue, events of which one must be there)
        self.progress = {}          # (queue, id, lease) -> values that it may have
        self.logs = {}              # (queue, id, lease) -> RunLog
        self.setting = [b"0", b"0"]     # of max_waiting of a group: acknowledged, and sent since
        self.last_own_token = 0
        self.in_flight = []
        self.acknowledged = 0

    # -- Under load ---------------------------------------------------------------------------

    def _drive(self, link):
        while not self._stop.is_set():
            self._batch(link)
            # Every event is played again here: some thousand a second are enough.
            self._stop.wait(self.rng.choice((0.0, 0.01, 0.02)))

    def _batch(self, link):
        makers = [self._add] * 4 + [self._again, self._cancel, self._move, self._twin, self._touch,
                                    self._retry_or_purge, self._abandon, self._configure,
                                    self._lose_worker, self._lose_worker,
                                    self._own_queue, self._there_and_back]
        batch = []
        popped = False
        for _ in range(self.rng.choice((1, 3, 10, 25))):
            kind = self.rng.random()
            if kind < 0.35 and any(self.held.values()):
                batch.append(self._end(may_pop=not popped))
                popped = popped or self.lost_pop is not None
            elif kind < 0.5 and not popped:
                batch.append(self._pop())
                popped = True
            else:
                batch.append(self.rng.choice(makers)())
        self.in_flight = batch
        link.send_bytes(b"".join(sent.wire for sent in batch))
        while self.in_flight:
            sent = self.in_flight[0]
            for _ in sent.commands:
                reply = link.read()
            self.in_flight.pop(0)
            try:
                sent.read(reply)
            except (AssertionError, TypeError, KeyError, ValueError) as error:
                raise Violation(f"{sent.commands} answered {reply!r}: {error!r}") from None
            self.acknowledged += 1

    def _queue(self):
        return self.rng.choice(self.names)

    def _must(self, queue, *events):
        self.expected.append((queue, events))

    def _new_id(self):
        self.serial += 1
        return make_id(f"c{self.index}-{self.serial}", self.rng.choice(GROUPS),
                       self.rng.sample(KEYS, self.rng.choice((0, 0, 1, 1, 2))),
                       self.rng.choice((1, 1, 1, 1, 2)))

    def _attributes(self, job_id):
        _, group, keys, cost = job_id.decode().split(":")
        words = ["GROUP", group, "COST", cost]
        for key in keys.split(",") if keys else []:
            words += ["KEY", key]
        return words

    def _remember(self, queue, job_id):
        self.own[queue] = self.own[queue][-OWN_IDS:] + [job_id]

    # -- Commands: adds -----------------------------------------------------------------------

    def _add(self):
        queue, rng = self._queue(), self.rng
        if self.stories[queue].waiting > MOST_WAITING and rng.random() < 0.8:
            return self._cancel()
        job_id = self._new_id()
        words = ["Q.ADD", queue, job_id, b"p" * rng.choice((0, 20, 300))] + self._attributes(job_id)
        words += ["PRI", rng.randrange(5), "RETRY", rng.randrange(3)]
        chance = rng.random()
        if chance < 0.1:
            words += ["DELAY", rng.randrange(200)]
        elif chance < 0.2:
            words += ["TTL", rng.randrange(1, 300)]
        elif chance < 0.4:
            words += ["TAG", "lang", rng.choice(("a", "b"))]
        needs = rng.random() < 0.1 and self.own[queue]
        if needs:
            words += [rng.choice(("NEED", "AFTER")), rng.choice(self.own[queue])]
        form = rng.choice(("whole", "whole", "whole", "brief", "waits"))
        words += {"whole": [], "brief": ["BRIEF"], "waits": ["WAIT", rng.choice(WAITS_MS)]}[form]

        def read(reply):
            if needs and isinstance(reply, Error):
                assert is_error(reply, "NEEDFAILED", "NOJOB")
                return
            told, job = reply if form == "waits" else (reply, None)
            if form == "brief":
                assert reply == job_id
            else:
                told = pairs(told)
                assert told["result"] == b"added" and told["id"] == job_id
            self._must(queue, ("added", job_id, None))
            if (state := ended_state(job_id, job)) is not None:
                self._must(queue, (state, job_id, None))

        self._remember(queue, job_id)
        return Sent([words], read, [] if needs else [(queue, [("added", job_id, None)])])

    def _again(self):
        queue = self._queue()
        if not self.own[queue]:
            return self._add()
        job_id = self.rng.choice(self.own[queue])
        mode = self.rng.choice(("ERROR", "KEEP", "UPDATE", "REPLACE"))
        words = ["Q.ADD", queue, job_id, b"again", "IFDUP", mode] + self._attributes(job_id)
        waits = self.rng.random() < 0.2
        if waits:
            words += ["WAIT", self.rng.choice(WAITS_MS)]

        def read(reply):
            if mode == "ERROR" and is_error(reply, "DUPLICATE"):
                return
            told, job = reply if waits else (reply, None)
            ended_state(job_id, job)
            result = pairs(told)["result"].decode()
            event = {"added": "added", "updated": "updated", "queued": "updated",
                     "replaced": "added", "kept": None}[result]
            if event is not None:
                self._must(queue, (event, job_id, None))

        return Sent([words], read)

    def _twin(self):
        """One unit over both queues, as MULTI or script."""
        job_id = make_id(f"c{self.index}-t{self.serial}", "g0", (), 1)
        self.serial += 1
        one, two = self.names
        if self.rng.random() < 0.5:
            commands = [["EVAL", TWIN_SCRIPT, 2, one, two, job_id, "g0"]]
        else:
            commands = [["MULTI"], ["Q.ADD", one, job_id, b"x", "GROUP", "g0"],
                        ["Q.ADD", two, job_id, b"y", "GROUP", "g0"], ["EXEC"]]

        def read(reply):
            assert reply == b"OK" or isinstance(reply, list) and len(reply) == 2
            for queue in self.names:
                self._must(queue, ("added", job_id, None))

        return Sent(commands, read,
                    [(queue, [("added", job_id, None)]) for queue in self.names])

    # -- Commands: runs -----------------------------------------------------------------------

    def _started(self, queue, words, reply):
        """What the reply to this pop has given, as (id, lease)."""
        given = list(popped_jobs(queue, words, reply).items())
        for job_id, lease in given:
            self._must(queue, ("started", job_id, lease))
        return given

    def _took(self, queue, words, reply):
        """Jobs that are held from now on."""
        self.lost_pop = None
        for job_id, lease in self._started(queue, words, reply):
            self.held[queue][job_id] = lease
            self.told[queue].add(lease)

    def _pop_words(self):
        self.serial += 1
        return ["WORKER", self.worker, "REQID", f"r{self.serial}", "COUNT",
                self.rng.choice((1, 1, 3)), "LEASE", HELD_MS] + pop_form(self.rng)

    def _pop(self):
        queue = self._queue()
        words = ["Q.POP", 1, queue] + self._pop_words()
        self.lost_pop = (queue, words)
        return Sent([words], lambda reply: self._took(queue, words, reply))

    def _abandon(self):
        """Nobody ends these runs."""
        queue = self._queue()
        words = ["Q.POP", 1, queue, "WORKER", f"lost{self.index}", "LEASE", SHORT_LEASE_MS]
        words += pop_form(self.rng)
        return Sent([words], lambda reply: self._started(queue, words, reply))

    def _lose_worker(self):
        """A worker takes runs and says no more; then all of them are ended at once."""
        queue = next((name for name in self.names if self.gone[name]), None)
        if queue is None:
            return self._pop_and_go()
        known, self.gone[queue] = self.gone[queue], []
        words = ["Q.NACK", queue, "WHERE", "WORKER", self._gone_worker()]
        words += self.rng.choice(([], ["LOST"], ["SILENT"], ["FAIL", "ERROR", "machine lost"]))

        def read(reply):
            assert reply[0] == b"0" and isinstance(reply[1], int)
            # And those of pops that stood before it in the batch.
            for job_id, lease in known + self.gone[queue]:
                self._must(queue, *((name, job_id, lease) for name in (*LOSSES, "cancelled")))
            self.gone[queue] = []

        return Sent([words], read,
                    [(queue, [(name, *run) for name in LOSSES]) for run in known],
                    [(queue, ("cancelled", *run)) for run in known])

    def _gone_worker(self):
        return f"gone{self.index}"

    def _pop_and_go(self):
        queue = self._queue()
        words = ["Q.POP", 1, queue, "WORKER", self._gone_worker(), "LEASE", HELD_MS, "COUNT",
                 self.rng.choice((1, 1, 2))] + pop_form(self.rng)
        return Sent([words],
                    lambda reply: self.gone[queue].extend(self._started(queue, words, reply)))

    def _some_held(self, queue):
        """One of the held jobs, or several, for a command with AND."""
        held = list(self.held[queue].items())
        return self.rng.sample(held, min(len(held), self.rng.choice((1, 1, 2, 3))))

    def _end(self, may_pop):
        queue = self.rng.choice([name for name in self.names if self.held[name]])
        ended = self._some_held(queue)
        for job_id, _ in ended:
            del self.held[queue][job_id]
        kind = self.rng.random()
        acks = kind < 0.7
        mode = [] if acks else [self.rng.choice(("SILENT", "FAIL", "FATAL")), "DELAY", 0]
        names = ("completed",) if acks else ("returned", "retrying", "failed")
        words = join_pairs(["Q.ACK" if acks else "Q.NACK", queue],
                           [[job_id, lease, *(mode or ["RESULT", result_of(lease)])]
                            for job_id, lease in ended])
        events = [[(name, job_id, lease) for name in names] for job_id, lease in ended]
        revoked = [("cancelled", job_id, lease) for job_id, lease in ended]
        pops = may_pop and kind < 0.3
        several = len(ended) > 1
        if pops:
            words += ["POP"] + self._pop_words()
            self.lost_pop = (queue, words)

        def read(reply):
            answers, jobs = (reply if pops else (reply, None)) if several else ([reply], reply)
            assert len(answers) == len(ended)
            for answer, own, other in zip(answers, events, revoked):
                if is_error(answer, "STALELEASE", "NOJOB"):
                    self._must(queue, other)
                else:
                    assert not isinstance(answer, Error)
                    self._must(queue, *(own if acks else own + [other]))
            if pops and not several and isinstance(reply, Error):
                self.lost_pop = None
            elif pops:
                self._took(queue, words, jobs)

        return Sent([words], read, [(queue, own) for own in events],
                    [(queue, other) for other in revoked])

    def _touch(self):
        queue = self._queue()
        if not self.held[queue]:
            return self._cancel()
        touched = self._some_held(queue)
        self.serial += 1
        value = b"%d" % self.serial
        possible = [self.progress.setdefault((queue, *pair), [ANYTHING]) for pair in touched]
        for values in possible:
            values.append(value)

        pairs = [[*pair, "PROGRESS", value] for pair in touched]
        log = self.logs.setdefault((queue, *touched[0]), RunLog())
        piece = b"<%d:%d>" % (self.index, self.serial) + b"." * self.rng.choice((0, 0, 50))
        writes = self.rng.random() < 0.7
        if writes:
            pairs[0] += ["LOG", piece]
            log.pieces.append(piece)

        def read(reply):
            answers = reply[1] if len(touched) > 1 else [reply]
            for answer, values in zip(answers, possible):
                if not isinstance(answer, Error):
                    del values[:values.index(value)]
            if isinstance(answers[0], Error):
                log.pieces = [other for other in log.pieces if other != piece]
            else:
                log.acknowledged += writes

        return Sent([join_pairs(["Q.TOUCH", queue], pairs)], read)

    # -- Commands: steering -------------------------------------------------------------------

    def _cancel(self):
        queue = self._queue()
        if not self.own[queue]:
            return self._configure()
        job_id = self.rng.choice(self.own[queue])
        words = ["Q.CANCEL", queue, job_id]
        words += self.rng.choice(([], ["REASON", "revoked", "GRACE", 0]))

        def read(reply):
            assert reply in ("cancelled", "signalled", "gone")
            if reply != "gone":
                self._must(queue, (reply, job_id, None))

        return Sent([words], read)

    def _move(self):
        queue = self._queue()
        if not self.own[queue]:
            return self._configure()
        job_id = self.rng.choice(self.own[queue])
        words = ["Q.MOVE", queue, job_id] + self.rng.choice(
            (["PRI", self.rng.randrange(5)], ["FRONT"], ["BACK"], ["DELAY", 30], ["BOOST", 50]))

        def read(reply):
            assert reply is None or isinstance(reply, int)
            # The band that it has already changes nothing.
            if reply is not None and words[3] != "PRI":
                self._must(queue, ("moved", job_id, None))

        return Sent([words], read)

    def _retry_or_purge(self):
        queue = self._queue()
        if self.rng.random() < 0.3 or not self.own[queue]:
            words = ["Q.PURGE", queue, "WHERE", "STATE", "cancelled", "LIMIT", 5]
        else:
            words = ["Q.RETRY", queue, self.rng.choice(self.own[queue])]

        def read(reply):
            assert not isinstance(reply, Error) or is_error(reply, "NOJOB")

        return Sent([words], read)

    def _configure(self):
        """A rule of a group that nobody uses: its value is a witness of its own."""
        self.serial += 1
        value = b"%d" % self.serial
        self.setting.append(value)

        def read(reply):
            assert reply == "OK"
            del self.setting[:self.setting.index(value)]

        return Sent([["Q.CONFIG", self.names[0], "GROUP", f"c{self.index}", "SET", "max_waiting",
                      value]], read)

    def _own_queue(self):
        """Tokens continue when a queue of this name is created again, in whatever way."""
        name = f"own{self.index}"
        again = self.rng.choice((["DEL", name], ["RENAME", name, name + "b"], ["UNLINK", name]))

        def read(reply):
            [job] = map(pairs, reply[1])
            assert job["lease"] > self.last_own_token, f"{self.last_own_token} came before"
            self.last_own_token = job["lease"]

        return Sent([["MULTI"], ["Q.ADD", name, "*", b""], ["Q.POP", 1, name], again, ["EXEC"]],
                    read)

    def _there_and_back(self):
        """The journal gets two records that say no more than where it has gone, or, while a
        checkpoint takes none of these, all of the queue with its events."""
        if self.rng.random() < 0.8:
            return self._cancel()
        queue, elsewhere = self._queue(), f"elsewhere{self.index}"

        def read(reply):
            assert reply == ["OK", "OK"]

        return Sent([["MULTI"], ["RENAME", queue, elsewhere], ["RENAME", elsewhere, queue],
                     ["EXEC"]], read)

    # -- After a restart ----------------------------------------------------------------------

    def verify(self, shown):
        """`shown`: the jobs of each queue. The stories have read on. Returns how many commands of
        those in flight have happened, as far as can be told."""
        for queue, events in self.expected:
            if not any(self.stories[queue].fresh[event] for event in events):
                raise Violation(f"{queue}: acknowledged, but none of {events} is in the log")
        self.expected = []
        kept = self._verify_in_flight()
        for (queue, job_id, lease), values in self.progress.items():
            job = shown[queue].get(job_id)
            if job is None or job["lease"] != lease or ANYTHING in values:
                continue
            if job["progress"] not in values:
                raise Violation(f"{queue}: progress of {job_id}: {job['progress']}, not {values}")
        self.progress = {}
        return kept

    def _has_happened(self, sent):
        """None: cannot be told."""
        if not sent.proof:
            return None
        seen = [any(self.stories[queue].fresh[event] for event in events)
                for queue, events in sent.proof]
        excused = [self.stories[queue].fresh[event] for queue, event in sent.excuses]
        seen = [one for one, without in zip(seen, excused or [False] * len(seen))
                if one or not without]
        if any(seen) and not all(seen):
            raise Violation(f"{sent.commands} has happened in part")
        return seen[0] if seen else None

    def _verify_in_flight(self):
        happened = [self._has_happened(sent) for sent in self.in_flight]
        count = max((at for at, one in enumerate(happened, 1) if one), default=0)
        for sent, one in zip(self.in_flight[:count], happened):
            if one is False:
                raise Violation(f"{sent.commands} is missing, behind it is "
                                f"{self.in_flight[count - 1].commands}")
        self.in_flight = []
        return count

    def verify_setting(self, link):
        [found] = link.ask(["Q.CONFIG", self.names[0], "GROUP", f"c{self.index}", "GET",
                            "max_waiting"])
        value = pairs(found).get("max_waiting", b"0")
        if value not in self.setting:
            raise Violation(f"a rule has {value}, sent was one of {self.setting}")
        self.setting = [value]

    def verify_logs(self, link, shown):
        """What was acknowledged is in the log, and of what was in flight a part; nothing twice."""
        logs, self.logs = self.logs, {}
        for (queue, job_id, lease), log in logs.items():
            job = shown[queue].get(job_id)
            if job is None or job["lease"] != lease:
                continue
            [[offset, found, end, ended]] = link.ask(["Q.LOG", queue, job_id])
            text = f"{queue}: the log of {job_id} is {found!r}, written was {log.pieces}"
            if log.before is None:
                fits = any(found.endswith(written) for written in log.possible())
            else:
                fits = any(found == log.before + written for written in log.possible())
            if not fits or any(found.count(piece) > 1 for piece in log.pieces):
                raise Violation(f"{text}, {log.acknowledged} of it acknowledged, to {log.before!r}")
            if (offset, end, ended) != (0, len(found), 0):
                raise Violation(f"{text}, from {offset} to {end}, {ended}")
            self.logs[queue, job_id, lease] = RunLog(found)

    def repeat_lost_pop(self, link):
        """The jobs of a reply that never came are given again, and again; never others."""
        for queue in self.names:
            story = self.stories[queue]
            active = {job_id: story.jobs[job_id].lease for job_id in story.active
                      if story.jobs[job_id].worker == self.worker.encode()}
            unheard = {job_id: lease for job_id, lease in active.items()
                       if lease not in self.told[queue]}
            self.held[queue] = active
            self.told[queue] = set(active.values())
            self.gone[queue] = [(job_id, story.jobs[job_id].lease) for job_id in story.active
                                if story.jobs[job_id].worker == self._gone_worker().encode()]
            if self.lost_pop is None or self.lost_pop[0] != queue:
                if unheard:
                    raise Violation(f"{queue}: {unheard} of {self.worker}, who asked for none")
                continue
            self._repeat(link, queue, unheard)

    def _repeat(self, link, queue, unheard):
        words, self.lost_pop = self.lost_pop[1], None
        first, second = link.ask(words, words)
        if "AND" in words:
            first, second = first[1], second[1]
        if isinstance(first, Error):
            # Acknowledged, and nothing taken; or revoked before it was acknowledged.
            if unheard or not is_error(first, "STALELEASE", "NOJOB"):
                raise Violation(f"{words} again answered {first!r}")
            return
        if words[0] == "Q.ACK":
            for job_id in pair_ids(words):
                self.held[queue].pop(job_id, None)
        given = popped_jobs(queue, words, first)
        again = {} if isinstance(second, Error) else popped_jobs(queue, words, second)
        if unheard and given != unheard:
            raise Violation(f"{words} again gave {given}, not {unheard}")
        if given and again != given:
            raise Violation(f"{words} gave {given}, and the same again {second!r}")
        for job_id, lease in (given | again).items():
            self.held[queue][job_id] = lease
            self.told[queue].add(lease)

