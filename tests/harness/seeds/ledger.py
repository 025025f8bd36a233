"""What the clients of an execution queue know, and what may never be otherwise.

Every step is written down before it is sent and again when its reply is there. A reply that was
lost (the server was killed) leaves a step in doubt: it happened or it did not, and nothing else.
While the queue is at rest, `reconcile` compares the server's whole state with the ledger and
settles the doubts. `check_order` proves afterwards that no job was overtaken.

Times are ticks of one counter, taken before a request is sent and after its reply was read: only
what must have happened in that order is held against the server. Any thread may call any method.
"""

import itertools
import threading

from harness.seeds.queue_dialects import event_json

PENDING, ACTIVE, NOWHERE = "pending", "active", "nowhere"


class Violation(AssertionError):
    """The server broke a promise."""


class Step:
    """One step of a job: `done` is None until its reply is there."""

    def __init__(self, tick, target=None):
        self.sent = tick
        self.read = None
        self.target = target
        self.result = None

    @property
    def in_doubt(self):
        return self.read is None


class Job:
    def __init__(self, job_id, band, score, tick):
        self.id = job_id
        self.first_band = band
        self.band = band
        self.score = score
        self.add = Step(tick)
        self.pop = None
        self.release = None
        self.remove = None
        self.move = None         # the one under way, or in doubt
        self.refused_move = None
        self.move_read = 0       # when the last move was acknowledged
        self.place_since = None  # from when its place is certain, None while it is not
        self.last_stay = None    # its newest entry in Ledger.stays
        self.counts_as_held = False

    def order(self):
        return (self.band, self.score, self.id)


class Ledger:
    def __init__(self, cap, atomic_steps):
        self.cap = cap
        self.atomic_steps = atomic_steps
        self.jobs = {}           # those that may still be on the server
        self.lost_pops = 0       # since the last reconciliation
        self.arrivals = []       # (order, pop sent, pop read), place certain
        self.stays = []          # [order, place certain from, until]
        self.counts = dict.fromkeys(
            ("added", "popped", "released", "moved", "removed", "in doubt", "popped unseen"), 0)
        self._lock = threading.Lock()
        self._ticks = itertools.count(1)
        self._held = 0
        self._lost_since = None  # when the first of the lost pops was sent

    def tick(self):
        return next(self._ticks)

    def backlog(self):
        """About how many jobs are pending."""
        counts = self.counts
        return (counts["added"] - counts["popped"] - counts["removed"] - counts["popped unseen"])

    # -- Steps --------------------------------------------------------------------------------

    def adding(self, job_id, band, score):
        job = Job(job_id, band, score, self.tick())
        with self._lock:
            self.jobs[job_id] = job
        return job

    def added(self, job):
        with self._lock:
            job.add.read = self.tick()
            self.counts["added"] += 1
            if job.pop is None and job.move is None and job.remove is None:
                job.place_since = job.add.read

    def popped(self, reply, sent):
        """A pop's reply was read; `sent` is the tick before it was asked for. Returns the job."""
        with self._lock:
            now = self.tick()
            job = self.jobs.get(reply.id)
            if job is None:
                raise Violation(f"popped {reply.id!r}: never added, or gone for good")
            if job.pop is not None:
                raise Violation(f"{job.id} was given twice")
            if job.release is not None or (job.remove and job.remove.result == (True, False)):
                raise Violation(f"{job.id} was given after it had been taken away")
            job.pop = Step(sent)
            job.pop.read = now
            self.counts["popped"] += 1
            self._check_source(job, reply)
            if job.move is None and job.move_read < sent:
                self.arrivals.append((job.order(), sent, now))
            self._leave_place(job, sent)
            if job.remove is None:
                # Popped, and nothing sent yet that would end it: it is active for certain.
                job.counts_as_held = True
                self._held += 1
                if self._held > self.cap:
                    raise Violation(f"{self._held} jobs are active, the cap is {self.cap}")
            return job

    def pop_lost(self, sent):
        with self._lock:
            self.lost_pops += 1
            self._lost_since = min(self._lost_since or sent, sent)

    def releasing(self, job):
        with self._lock:
            job.release = Step(self.tick())
            self._let_go(job)

    def released(self, job, result):
        """`result` = (was active, had an event)."""
        with self._lock:
            job.release.read = self.tick()
            job.release.result = result
            self.counts["released"] += 1

    def starting_move(self, job, band, score):
        """False where the job is not known to be pending, or another step of it is under way."""
        with self._lock:
            if job.place_since is None:
                return False
            job.move = Step(self.tick(), (band, score))
            self._leave_place(job, job.move.sent)
            return True

    def moved(self, job, applied):
        """`applied` None = given up without a change."""
        with self._lock:
            move, job.move = job.move, None
            move.read = job.move_read = self.tick()
            if applied is False and move.target == (job.band, job.score):
                applied = None   # within the same millisecond: ZADD CH counts no change
            if applied:
                job.band, job.score = move.target
                self.counts["moved"] += 1
            if applied is False:
                job.refused_move = move
            elif job.pop is None and job.remove is None:
                job.place_since = move.read

    def starting_remove(self, job):
        with self._lock:
            if job.remove is not None or job.move is not None or job.add.in_doubt:
                return False
            job.remove = Step(self.tick())
            self._leave_place(job, job.remove.sent)
            self._let_go(job)
            return True

    def removed(self, job, result):
        """`result` = (from pending, from active)."""
        with self._lock:
            job.remove.read = self.tick()
            job.remove.result = result
            self.counts["removed"] += any(result)

    def some_jobs(self, count):
        with self._lock:
            return list(itertools.islice(reversed(self.jobs.values()), count))

    def _let_go(self, job):
        if job.counts_as_held:
            job.counts_as_held = False
            self._held -= 1

    def _leave_place(self, job, until):
        if job.place_since is not None:
            job.last_stay = [job.order(), job.place_since, until]
            self.stays.append(job.last_stay)
            job.place_since = None
        elif job.last_stay is not None:
            # It had left before the step that seemed to end its stay: the pop's reply came later.
            job.last_stay[2] = min(job.last_stay[2], until)

    @staticmethod
    def _check_source(job, reply):
        if reply.band is None:
            return
        places = [(job.band, job.score)] + ([job.move.target] if job.move else [])
        if (reply.band, reply.score) not in places:
            raise Violation(f"{job.id} came from {reply.band, reply.score}, not from {places}")

    # -- At rest ------------------------------------------------------------------------------

    def reconcile(self, pending, active, events):
        """Compares the server's whole state with the ledger while no step is under way. Settles all
        doubts; returns the jobs that are active now, which the caller must release."""
        for job_id in list(pending) + list(active) + list(events):
            if job_id not in self.jobs:
                raise Violation(f"{job_id} is on the server, but was never added or is long gone")
        if len(active) > self.cap:
            raise Violation(f"{len(active)} jobs are active after recovery, cap {self.cap}")
        unseen = 0
        still_active = []
        for job in list(self.jobs.values()):
            if job.id in pending and job.id in active:
                raise Violation(f"{job.id} is pending and active at once")
            where = PENDING if job.id in pending else ACTIVE if job.id in active else NOWHERE
            self._check_job(job, where, events.get(job.id), pending.get(job.id))
            if where == ACTIVE:
                unseen += job.pop is None
                still_active.append(job)
            if self.lost_pops and job.pop is None and where != PENDING:
                self._leave_place(job, self._lost_since)
            if where == NOWHERE and job.id not in events:
                del self.jobs[job.id]
            else:
                self._settle(job, where)
        if unseen > self.lost_pops:
            raise Violation(f"{unseen} jobs are active that nobody popped, "
                            f"but only {self.lost_pops} replies of pops were lost")
        self.counts["popped unseen"] += unseen
        self.lost_pops = 0
        self._lost_since = None
        self._held = 0
        return still_active

    def _check_job(self, job, where, event, place):
        allowed = self._allowed(job)
        if (where, event is not None) not in allowed:
            raise Violation(f"{job.id} is {where}, event {event is not None}; "
                            f"allowed: {sorted(allowed)}; {self._history(job)}")
        if event is not None and event != event_json(job):
            raise Violation(f"the event of {job.id} reads {event!r}")
        if where == PENDING:
            places = [(job.band, job.score)] + ([job.move.target] if job.move else [])
            if not any(place in ((band, score), (None, score)) for band, score in places):
                raise Violation(f"{job.id} stands at {place}, not at one of {places}")
        self._check_steps(job, where)
        self.counts["in doubt"] += sum(
            step is not None and step.in_doubt
            for step in (job.add, job.release, job.remove, job.move))

    def _allowed(self, job):
        """The (where, has an event) that the steps of the job can have led to."""
        half_added = job.add.in_doubt and not self.atomic_steps
        if job.pop is not None:
            allowed = {(ACTIVE, True)} | ({(ACTIVE, False)} if half_added else set())
            if job.release is not None:
                after = {(NOWHERE, False)}
                if job.release.in_doubt and not self.atomic_steps:
                    after.add((NOWHERE, True))
                allowed = allowed | after if job.release.in_doubt else after
        else:
            homes = [PENDING] + ([ACTIVE] if self.lost_pops else [])
            allowed = {(home, True) for home in homes}
            if job.add.in_doubt:
                allowed.add((NOWHERE, False))
            if half_added:
                allowed |= {(home, False) for home in homes}
        if job.remove is not None:
            if job.remove.in_doubt:
                allowed.add((NOWHERE, False))
            elif any(job.remove.result):
                allowed = {(NOWHERE, False)}
        return allowed

    def _check_steps(self, job, where):
        """What the replies said about the job, one against the other."""
        removed = job.remove.result if job.remove else None
        if removed and removed[0] and job.pop is not None:
            raise Violation(f"{job.id} was popped and removed from pending: {self._history(job)}")
        if removed == (False, False) and not (job.release and job.release.sent < job.remove.read):
            raise Violation(f"{job.id} was not found by its removal: {self._history(job)}")
        if job.refused_move is not None and where == PENDING:
            raise Violation(f"{job.id} is pending, yet a move did not find it")
        if job.release is None or job.release.in_doubt:
            return
        was_active, had_event = job.release.result
        may_be_removed = job.remove is not None and (job.remove.in_doubt or removed[1])
        if not was_active and not may_be_removed:
            raise Violation(f"{job.id} was not active when released: {self._history(job)}")
        if was_active and removed and removed[1]:
            raise Violation(f"{job.id} left the active set twice")
        if not had_event and job.remove is None and not job.add.in_doubt:
            raise Violation(f"the event of {job.id} was gone before its release")

    def _settle(self, job, where):
        now = self.tick()
        if job.add.in_doubt:
            job.add.read = now
        job.release = job.remove = job.refused_move = None
        job.place_since = None
        job.counts_as_held = False
        if where == ACTIVE and job.pop is None:
            job.pop = Step(now)
            job.pop.read = now
        if where != PENDING:
            job.move = None

    def settle_place(self, job, place):
        """After `reconcile`: a pending job stands where the server says, from now on."""
        if job.move is not None:
            if place[1] == job.move.target[1]:
                job.band, job.score = job.move.target
            job.move = None
        job.place_since = job.move_read = self.tick()

    @staticmethod
    def _history(job):
        names = ("add", "move", "pop", "release", "remove")
        steps = ((name, getattr(job, name)) for name in names)
        return ", ".join(f"{name} {step.sent}..{step.read} {step.result or ''}"
                         for name, step in steps if step is not None)

    # -- Order --------------------------------------------------------------------------------

    def check_order(self):
        """A stay is broken by an arrival of a later place that was asked for after the stay had
        begun and was read before it ended. Returns how many stays were checked."""
        places = sorted({entry[0] for entry in self.arrivals + self.stays})
        rank = {order: len(places) - index for index, order in enumerate(places)}
        latest = _PrefixMaximum(len(places))
        arrivals = sorted(self.arrivals, key=lambda arrival: arrival[2])
        arrived = 0
        for order, since, until in sorted(self.stays, key=lambda stay: stay[2]):
            while arrived < len(arrivals) and arrivals[arrived][2] < until:
                latest.raise_to(rank[arrivals[arrived][0]], arrivals[arrived][1])
                arrived += 1
            if since < until and latest.maximum(rank[order] - 1) > since:
                raise Violation(f"{order} was overtaken between ticks {since} and {until}")
        return len(self.stays)


class _PrefixMaximum:
    """A Fenwick tree of maxima over places 1..count."""

    def __init__(self, count):
        self._tree = [0] * (count + 1)

    def raise_to(self, place, value):
        while place < len(self._tree):
            self._tree[place] = max(self._tree[place], value)
            place += place & -place

    def maximum(self, place):
        best = 0
        while place > 0:
            best = max(best, self._tree[place])
            place -= place & -place
        return best
