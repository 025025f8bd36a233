"""The history of one native queue as its event log tells it, checked event by event.

A `Story` reads the log on from where it stopped and plays each event on a naive model: numbers
without a gap, legal transitions, greater tokens for later leases, caps at every admission. Then it
knows in which state every job must be, which ended ones are retained, and every total. What a
snapshot of the server says must be equal.

An id tells the attributes of its job ("c1-7:g2:k0,k1:2": group g2, keys k0 and k1, two slots), so
that they are known of a job whose Q.ADD was never answered. Used by one thread at a time.
"""

import collections

from harness.crash.client import Violation

TOTALS = {"added": "added", "started": "started", "completed": "completed", "failed": "failed",
          "cancelled": "cancelled", "expired": "expired", "reclaimed": "reclaimed"}
TERMINAL = {"completed": 0, "cancelled": 0, "failed": 1, "expired": 1}
MOST_RESULTS = 20   # that are read after a crash
MARGIN = 200   # events that may have come since the last look, so that so many have gone
WAITING = ("blocked", "delayed", "pending")

# All of the queue in one unit: jobs, statistics, and the events behind a number.
SNAPSHOT = """
local jobs, events, cursor, last = {}, {}, '0', ARGV[1]
repeat
  local page = redis.call('Q.LIST', KEYS[1], 'CURSOR', cursor, 'COUNT', 1000)
  cursor = page[1]
  for _, job in ipairs(page[2]) do jobs[#jobs + 1] = job end
until cursor == '0'
-- RENAME gives all that is kept new numbers, so that those behind an old one cannot be told.
local renumbered = redis.pcall('Q.EVENTS', KEYS[1], last, 'COUNT', 1).err and 1 or 0
if renumbered == 1 then last = '-' end
while true do
  local page = redis.call('Q.EVENTS', KEYS[1], last, 'COUNT', 1000)
  if #page == 0 then break end
  for _, event in ipairs(page) do events[#events + 1] = event end
  last = page[#page][1]
end
return {jobs, events, redis.call('Q.STATS', KEYS[1]), redis.call('Q.STATS', KEYS[1], 'BY', 'GROUP'),
        redis.call('Q.STATS', KEYS[1], 'BY', 'WORKER'), redis.call('Q.STATS', KEYS[1], 'BY', 'PRI'),
        renumbered}
"""

# Unless there are events that were not read yet.
SQUEEZE = """
if #redis.call('Q.EVENTS', KEYS[1], ARGV[1], 'COUNT', 1) ~= 0 then return 'MORE' end
redis.call('Q.CONFIG', KEYS[1], 'SET', 'events', ARGV[2])
return redis.call('Q.CONFIG', KEYS[1], 'SET', 'events', ARGV[3])
"""


def make_id(name, group, keys, cost):
    return f"{name}:{group}:{','.join(keys)}:{cost}".encode()


def result_of(lease):
    """What each run gives that is acknowledged, by its lease."""
    return b"r%d" % lease


def pairs(flat):
    """A flat array of names and values as a dictionary with names as text."""
    return {name.decode(): value for name, value in zip(flat[::2], flat[1::2])}


class StoryJob:
    def __init__(self, job_id):
        _, group, keys, cost = job_id.decode().split(":")
        self.group = group
        self.keys = keys.split(",") if keys else []
        self.cost = int(cost)
        self.state = "waiting"
        self.lease = None
        self.worker = None
        self.ended_by = None     # the lease of its last run
        self.successor = False   # another payload may wait under this id


class Story:
    def __init__(self, name, caps, retained, kept):
        self.name = name
        self.kept = kept           # events that its configuration keeps
        self.told = collections.deque()   # a number for each kept event, the newest last
        self.caps = caps           # slots: of the queue, of each group, of each key
        self.retained = retained   # ended jobs that are kept, of each kind
        self.jobs = {}
        self.ended = ([], [])      # ids, oldest first
        self.totals = dict.fromkeys(TOTALS.values(), 0)
        self.last_seq = 0
        self.last_ms = 0
        self.last_token = 0
        # (type, id, lease; None: any) since the last verification; timers add some meanwhile.
        self.fresh = collections.Counter()
        self.fresh_hashes = set()  # of the same events
        self.active = set()        # ids
        self.owed = None           # the id whose successor must be the next event
        self.waiting = 0

    # -- Events -------------------------------------------------------------------------------

    def _renumber(self, events):
        """All that is kept, under new numbers: what was told is there as it was. Returns more."""
        shown = [self.hash_of(*event[1:]) for event in events]
        told = list(self.told)
        for gone in range(len(told)):
            if shown and told[gone] == shown[0] and told[gone:] == shown[:len(told) - gone]:
                break
        else:
            raise Violation(f"{self.name}: events were renumbered, and are others than before")
        first = events[0][0]
        if first <= self.last_seq:
            raise Violation(f"{self.name}: event {first} comes again, {self.last_seq} was told")
        for _ in range(gone):
            self.told.popleft()
        self.last_seq = first + len(self.told) - 1
        return events[len(self.told):]

    @staticmethod
    def hash_of(time_ms, kind, job_id, fields):
        return hash((time_ms, kind, job_id, tuple(fields)))

    def forget_fresh(self):
        self.fresh.clear()
        self.fresh_hashes.clear()

    def read(self, events):
        if events and not self.told and not self.last_seq:
            self.last_seq = events[0][0] - 1   # the queue may have had another name meanwhile
        for seq, time_ms, kind, job_id, fields in events:
            if seq != self.last_seq + 1:
                raise Violation(f"{self.name}: event {seq} follows {self.last_seq}")
            if time_ms < self.last_ms:
                raise Violation(f"{self.name}: time goes back at event {seq}")
            self.last_seq, self.last_ms = seq, time_ms
            self.told.append(self.hash_of(time_ms, kind, job_id, fields))
            self.fresh_hashes.add(self.told[-1])
            kind, fields = kind.decode(), pairs(fields)
            lease = int(fields["lease"]) if "lease" in fields else None
            self.fresh[kind, job_id, lease] += 1
            if lease is not None:
                self.fresh[kind, job_id, None] += 1
            try:
                assert self.owed in (None, job_id if kind == "added" else None), \
                    f"the successor of {self.owed} is missing"
                getattr(self, "_" + kind)(job_id, lease, fields)
            except (KeyError, AssertionError) as error:
                raise Violation(f"{self.name}: event {seq} {kind} {job_id} {fields}: "
                                f"{error!r}; before: {vars(self.jobs[job_id])}"
                                if job_id in self.jobs else
                                f"{self.name}: event {seq} {kind} {job_id}: no such job") from None
        if self.owed is not None:
            raise Violation(f"{self.name}: the successor of {self.owed} is missing")
        while len(self.told) > self.kept:
            self.told.popleft()

    def _retain(self, job_id):
        ended = self.ended[TERMINAL[self.jobs[job_id].state]]
        ended.append(job_id)
        while len(ended) > self.retained:
            del self.jobs[ended.pop(0)]

    def _added(self, job_id, _lease, _fields):
        old = self.jobs.get(job_id)
        if old is not None and job_id != self.owed:
            self.ended[TERMINAL[old.state]].remove(job_id)
        self.owed = None
        self.jobs[job_id] = StoryJob(job_id)
        self.totals["added"] += 1

    def _updated(self, job_id, _lease, _fields):
        job = self.jobs[job_id]
        assert job.state in ("waiting", "active")
        job.successor = job.state == "active"

    def _moved(self, job_id, _lease, _fields):
        assert self.jobs[job_id].state == "waiting"

    _ready = _moved

    def _started(self, job_id, lease, fields):
        job = self.jobs[job_id]
        assert job.state == "waiting"
        assert lease > self.last_token, f"the token {self.last_token} came before"
        self.last_token = lease
        job.state, job.lease, job.worker = "active", lease, fields.get("worker")
        self.active.add(job_id)
        self.totals["started"] += 1
        self._check_caps(job)

    def _check_caps(self, started):
        used = {name: 0 for name in ["queue", started.group] + started.keys}
        for job in map(self.jobs.get, self.active):
            for name in ["queue", job.group] + job.keys:
                if name in used:
                    used[name] += job.cost
        for name, slots in used.items():
            cap = self.caps["queue" if name == "queue" else name[0]]
            assert slots <= cap, f"{slots} slots of {name} are in use"

    def _leave(self, job_id, lease, state):
        """Its run ends by this lease; the state it has then."""
        job = self.jobs[job_id]
        assert job.state == "active" and lease == job.lease, "by another lease"
        self.active.remove(job_id)
        job.state, job.lease, job.worker, job.ended_by = state, None, None, lease
        if state in TERMINAL:
            self.totals[state] += 1
        if job.successor:
            self.owed = job_id
        elif state in TERMINAL:
            self._retain(job_id)

    def _completed(self, job_id, lease, _fields):
        self._leave(job_id, lease, "completed")

    def _failed(self, job_id, lease, _fields):
        self._leave(job_id, lease, "failed")

    def _returned(self, job_id, lease, _fields):
        self._leave(job_id, lease, "waiting")

    def _reclaimed(self, job_id, lease, _fields):
        self.totals["reclaimed"] += 1
        self._returned(job_id, lease, _fields)

    def _retrying(self, job_id, lease, _fields):
        job = self.jobs[job_id]
        if job.state in TERMINAL:   # Q.RETRY
            self.ended[TERMINAL[job.state]].remove(job_id)
            job.state = "waiting"
        else:
            self._returned(job_id, lease, _fields)

    def _signalled(self, job_id, lease, fields):
        job = self.jobs[job_id]
        assert job.state == "active" and lease == job.lease
        if fields["reason"] != b"replaced":
            job.successor = False

    def _cancelled(self, job_id, lease, fields):
        job = self.jobs[job_id]
        if lease is not None:
            if fields["error"] == b"revoked":
                job.successor = False   # Q.CANCEL takes both
            self._leave(job_id, lease, "cancelled")
            return
        assert job.state == "waiting"
        self.totals["cancelled"] += 1
        job.state = "cancelled"
        if fields["error"] == b"replaced":
            self.owed = job_id
        else:
            self._retain(job_id)

    def _progress(self, job_id, _lease, _fields):
        assert self.jobs[job_id].state == "active"

    def _expired(self, job_id, _lease, _fields):
        job = self.jobs[job_id]
        assert job.state == "waiting"
        self.totals["expired"] += 1
        job.state = "expired"
        self._retain(job_id)

    def _forgotten(self, job_id, _lease, _fields):
        self.ended[TERMINAL[self.jobs[job_id].state]].remove(job_id)
        del self.jobs[job_id]

    # -- What was told before -----------------------------------------------------------------

    def _oldest(self):
        return self.last_seq + 1 - len(self.told)

    def _pages(self, link, after):
        while True:
            [page] = link.ask(["Q.EVENTS", self.name, after, "COUNT", 1000])
            if not isinstance(page, list):
                raise Violation(f"{self.name}: events behind {after} answered {page!r}")
            if not page:
                return
            yield page
            after = page[-1][0]

    def _compare(self, page):
        for seq, time_ms, kind, job_id, fields in page:
            if seq > self.last_seq:
                return
            again = self.hash_of(time_ms, kind, job_id, fields)
            if again != self.told[seq - self._oldest()]:
                raise Violation(f"{self.name}: event {seq} is told otherwise: {kind} {job_id}")

    def check_log(self, link):
        """Every kept event is told again as it was the first time, and as many as should be."""
        numbers = []
        for page in self._pages(link, "-"):
            self._compare(page)
            numbers += [event[0] for event in page]
        if not numbers:  # a kill may come before the first event
            if self.told:
                raise Violation(f"{self.name}: the log is empty, and had {len(self.told)} events")
            return
        if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            raise Violation(f"{self.name}: the log has a gap")
        # Timers may have added some meanwhile.
        since = numbers[-1] - self.last_seq
        trimmed = max(0, len(self.told) + since - self.kept)
        if not self._oldest() <= numbers[0] <= self._oldest() + trimmed:
            raise Violation(f"{self.name}: the log begins with {numbers[0]}, not {self._oldest()}")

    def check_page(self, link, rng):
        """Somewhere in it."""
        if len(self.told) <= MARGIN:
            return
        after = self._oldest() + rng.randrange(MARGIN, len(self.told))
        [page] = link.ask(["Q.EVENTS", self.name, after, "COUNT", 50])
        if not isinstance(page, list):
            raise Violation(f"{self.name}: events behind {after} answered {page!r}")
        self._compare(page)

    def check_results(self, link, rng):
        """Of some completed jobs: what their last runs gave."""
        completed = [job_id for job_id, job in self.jobs.items() if job.state == "completed"]
        some = rng.sample(completed, min(MOST_RESULTS, len(completed)))
        jobs = link.ask(*(["Q.GET", self.name, job_id, "WITH", "result"] for job_id in some))
        for job_id, job in zip(some, jobs):
            if job is None:   # timers have ended others since, and it is no longer retained
                continue
            expected = result_of(self.jobs[job_id].ended_by)
            self._equal(f"result of {job_id}", pairs(job)["result"], expected)

    def squeeze(self, link, bound):
        """Lowers the number of kept events and raises it again."""
        while link.ask(["EVAL", SQUEEZE, 1, self.name, self.last_seq, bound, self.kept]) != ["OK"]:
            self.check(link)
        [page] = link.ask(["Q.EVENTS", self.name, "-", "COUNT", 1])
        if not page and not self.told:  # a kill may come before the first event
            return
        [[oldest, *_]] = page
        if oldest < self.last_seq + 1 - bound:
            raise Violation(f"{self.name}: {oldest} is kept, {bound} of {self.last_seq} should be")
        while self.told and self._oldest() < oldest:
            self.told.popleft()

    # -- Snapshots ----------------------------------------------------------------------------

    def check(self, link):
        """Reads on, and compares every job, gauge and total. Returns the jobs as they are shown."""
        [reply] = link.ask(["EVAL", SNAPSHOT, 1, self.name, self.last_seq])
        if not isinstance(reply, list):
            raise Violation(f"{self.name}: the snapshot answered {reply!r}")
        listed, events, stats, by_group, by_worker, by_band, renumbered = reply
        self.read(self._renumber(events) if renumbered else events)
        shown = {}
        for job in map(pairs, listed):
            if job["id"] in shown:
                raise Violation(f"{self.name}: {job['id']} is listed twice")
            shown[job["id"]] = job
        self._compare_jobs(shown)
        stats = pairs(stats)
        for name, total in self.totals.items():
            if stats[name] != total:
                raise Violation(f"{self.name}: {name} is {stats[name]}, its events are {total}")
        self.waiting = stats["waiting"]
        self._recount("the queue", stats, shown.values())
        for name, line in pairs(by_group).items():
            self._recount(name, pairs(line),
                          [job for job in shown.values() if job["group"].decode() == name])
        for name, line in pairs(by_band).items():
            self._recount(name, pairs(line),
                          [job for job in shown.values() if job["pri"].decode() == name])
        for name, line in pairs(by_worker).items():
            held = sum(job["worker"] == name.encode() for job in shown.values())
            self._equal(f"leases of {name}", pairs(line)["active"], held)
        return shown

    def _equal(self, what, found, expected):
        if found != expected:
            raise Violation(f"{self.name}: {what}: {found}, expected {expected}")

    def _compare_jobs(self, shown):
        self._equal("jobs in one of both only",
                    sorted(set(shown) ^ set(self.jobs))[:5], [])
        for job_id, job in shown.items():
            told = self.jobs[job_id]
            state = job["state"].decode()
            self._equal(f"state of {job_id}", "waiting" if state in WAITING else state, told.state)
            self._equal(f"lease of {job_id}", job["lease"], told.lease)
            self._equal(f"worker of {job_id}", job["worker"], told.worker)
            self._equal(f"group of {job_id}", job["group"].decode(), told.group)
            self._equal(f"cost of {job_id}", job["cost"], told.cost)

    def _recount(self, what, line, jobs):
        """Gauges of a line of Q.STATS against the jobs that are in it."""
        counts = collections.Counter(job["state"].decode() for job in jobs)
        for state in ("pending", "active", "delayed", "blocked"):
            self._equal(f"{state} of {what}", line[state], counts[state])
        successors = sum(job["successor"] for job in jobs)
        self._equal(f"waiting of {what}", line["waiting"],
                    sum(counts[state] for state in WAITING) + successors)
        if "slots" in line:
            slots = sum(job["cost"] for job in jobs if job["state"] == b"active")
            self._equal(f"slots of {what}", line["slots"], slots)
