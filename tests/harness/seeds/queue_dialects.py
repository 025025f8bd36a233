"""The execution queue of the seed as its services write it, in both dialects, on redis-py.

Raw commands, never "corrected": a documented queue keeps one sorted set, a deployed one keeps five.
Each method is one step of the service. An object may be used by many threads: redis-py takes a
connection from its pool for each call.
"""

import json

import redis

ACTIVE = "exec_queue:active"
PENDING = "exec_queue:pending"
EVENT = "exec_queue:event:"
DAY_S = 86400
BAND_WIDTH = 10 ** 12
BANDS = ("critical", "high", "normal", "low", "background")

DOCUMENTED_SCRIPT = """local active_key  = KEYS[1]
local pending_key = KEYS[2]
local max_active  = tonumber(ARGV[1])

local current = redis.call('SCARD', active_key)
if current >= max_active then
    return nil
end

local result = redis.call('ZPOPMIN', pending_key, 1)
if #result == 0 then
    return nil
end

local exec_id = result[1]
redis.call('SADD', active_key, exec_id)
return exec_id
"""

DEPLOYED_SCRIPT = """local max_active = tonumber(ARGV[1])
if redis.call('SCARD', KEYS[1]) >= max_active then
    return nil
end
for band = 2, #KEYS do
    local popped = redis.call('ZPOPMIN', KEYS[band], 1)
    if #popped > 0 then
        redis.call('SADD', KEYS[1], popped[1])
        return {popped[1], popped[2], band - 2}
    end
end
return nil
"""


def event_json(job):
    return json.dumps({"event_type": "execution_requested", "execution_id": job.id,
                       "language": "python", "priority": BANDS[job.first_band],
                       "script": "print('grüße')\n" * 8}, ensure_ascii=False)


class Popped:
    """What a pop gave: the id, and the score and band where the dialect's reply has them."""

    def __init__(self, job_id, score=None, band=None):
        self.id = job_id
        self.score = score
        self.band = band


class Dialect:
    """What both dialects share."""

    atomic_steps = False   # enqueue and release are one MULTI each
    script = ""
    keys = ()

    def __init__(self, client):
        self.client = client
        self.registered = client.register_script(self.script)

    def schedule(self, cap, way):
        """One try_schedule, by one of the ways in which clients run a script. (Popped or None,
        SCARD right after it in the same atomic unit, or None)."""
        if way == "eval":
            reply = self.client.eval(self.script, len(self.keys), *self.keys, cap)
            return self._popped(reply), None
        if way == "registered":
            return self._popped(self._sent_again(
                lambda: self.registered(keys=self.keys, args=[cap]))), None
        if way == "multi":
            unit = self.client.pipeline(transaction=True)
            unit.eval(self.script, len(self.keys), *self.keys, cap)
            unit.scard(ACTIVE)
            reply, active = unit.execute()
            return self._popped(reply), active
        return self._popped(self._sent_again(lambda: self._by_sha(cap))), None

    def _by_sha(self, cap):
        try:
            return self.client.evalsha(self.registered.sha, len(self.keys), *self.keys, cap)
        except redis.exceptions.NoScriptError:
            assert self.client.script_load(self.script) == self.registered.sha
            return self.client.evalsha(self.registered.sha, len(self.keys), *self.keys, cap)

    @staticmethod
    def _sent_again(send):
        """Both load a script that is not known, once: the server may be killed after that."""
        while True:
            try:
                return send()
            except redis.exceptions.NoScriptError:
                continue

    def event(self, job_id):
        return self.client.get(EVENT + job_id)

    def release(self, job_id):
        """(was active, had an event)."""
        unit = self.client.pipeline(transaction=self.atomic_steps)
        unit.srem(ACTIVE, job_id)
        unit.delete(EVENT + job_id)
        return tuple(count == 1 for count in unit.execute())

    def _read_events(self):
        ids = [key[len(EVENT):] for key in self.client.scan_iter(EVENT + "*", count=500)]
        if not ids:
            return {}
        return dict(zip(ids, self.client.mget([EVENT + job_id for job_id in ids])))


class Documented(Dialect):
    """One sorted set; score = band * 10^12 + unix milliseconds."""

    name = "documented"
    script = DOCUMENTED_SCRIPT
    keys = (ACTIVE, PENDING)

    @staticmethod
    def score(band, now_s):
        return float(band * BAND_WIDTH + int(now_s * 1000))

    def enqueue(self, job):
        pipeline = self.client.pipeline(transaction=False)
        pipeline.zadd(PENDING, {job.id: job.score})
        pipeline.set(EVENT + job.id, event_json(job), ex=DAY_S)
        assert pipeline.execute() == [1, True]

    def position(self, job):
        return self.client.zrank(PENDING, job.id)

    def move(self, job, _band, score):
        """False where the job was not pending. Nothing can come between: it is one command."""
        return self.client.zadd(PENDING, {job.id: score}, xx=True, ch=True) == 1

    def remove(self, job_id):
        """(removed from pending, removed from active)."""
        unit = self.client.pipeline(transaction=True)
        unit.zrem(PENDING, job_id)
        unit.srem(ACTIVE, job_id)
        unit.delete(EVENT + job_id)
        pending, active, _ = unit.execute()
        return pending == 1, active == 1

    def status(self):
        """{queue_depth, active_count}."""
        return {"queue_depth": self.client.zcard(PENDING),
                "active_count": self.client.scard(ACTIVE)}

    def by_priority(self):
        """ZCOUNT over the documented ranges, which are one band off; Redis answers so, and so must
        we: unix time lies between one and two band widths."""
        pipeline = self.client.pipeline(transaction=False)
        for band in range(len(BANDS) + 1):
            pipeline.zcount(PENDING, band * BAND_WIDTH, (band + 1) * BAND_WIDTH - 1)
        counts = pipeline.execute()
        assert counts[0] == 0
        return counts[1:]

    def read_state(self):
        """({id: (band or None, score)}, active ids, {id: event})."""
        pending = {job_id: (None, score)
                   for job_id, score in self.client.zrange(PENDING, 0, -1, withscores=True)}
        return pending, self.client.smembers(ACTIVE), self._read_events()

    @staticmethod
    def _popped(reply):
        return None if reply is None else Popped(reply)


class Deployed(Dialect):
    """Five sorted sets; score = time.time()."""

    name = "deployed"
    atomic_steps = True
    script = DEPLOYED_SCRIPT
    pending_keys = tuple(f"{PENDING}:{band}" for band in BANDS)
    keys = (ACTIVE,) + pending_keys

    @staticmethod
    def score(_band, now_s):
        return now_s

    def enqueue(self, job):
        unit = self.client.pipeline(transaction=True)
        unit.zadd(self.pending_keys[job.band], {job.id: job.score})
        unit.set(EVENT + job.id, event_json(job), ex=DAY_S)
        assert unit.execute() == [1, True]

    def position(self, job):
        return self.client.zrank(self.pending_keys[job.band], job.id)

    def move(self, job, band, score):
        """False where the job was not pending, None where others kept the keys too busy."""
        source, target = self.pending_keys[job.band], self.pending_keys[band]
        with self.client.pipeline() as unit:
            for _ in range(20):
                try:
                    unit.watch(source)
                    if unit.zscore(source, job.id) is None:
                        return False
                    unit.multi()
                    unit.zrem(source, job.id)
                    unit.zadd(target, {job.id: score})
                    assert unit.execute() == [1, 1]
                    return True
                except redis.exceptions.WatchError:
                    continue
        return None

    def remove(self, job_id):
        unit = self.client.pipeline(transaction=True)
        for key in self.pending_keys:
            unit.zrem(key, job_id)
        unit.delete(EVENT + job_id)
        unit.delete(f"exec_queue:meta:{job_id}")
        unit.srem(ACTIVE, job_id)
        counts = unit.execute()
        assert sum(counts[:5]) <= 1 and counts[6] == 0
        return sum(counts[:5]) == 1, counts[7] == 1

    def status(self):
        return {"queue_depth": sum(self.by_priority()), "active_count": self.client.scard(ACTIVE)}

    def by_priority(self):
        pipeline = self.client.pipeline(transaction=False)
        for key in self.pending_keys:
            pipeline.zcard(key)
        return pipeline.execute()

    def read_state(self):
        pending = {}
        for band, key in enumerate(self.pending_keys):
            for job_id, score in self.client.zrange(key, 0, -1, withscores=True):
                assert job_id not in pending, f"{job_id} is in two bands"
                pending[job_id] = (band, score)
        return pending, self.client.smembers(ACTIVE), self._read_events()

    @staticmethod
    def _popped(reply):
        return None if reply is None else Popped(reply[0], float(reply[1]), reply[2])


DIALECTS = {dialect.name: dialect for dialect in (Documented, Deployed)}
