"""The native queue through redis-py, as a program would use it: execute_command and nothing else.

`Native` holds one connection pool and may be used by many threads. Replies are RESP2; maps come as
flat arrays and are made dictionaries here.
"""


import redis

DISK = {"appendonly": "yes", "appendfsync": "always", "save": ""}


def pairs(reply):
    """A flat array of names and values as a dictionary; null stays null."""
    if reply is None:
        return None
    return {name.decode() if isinstance(name, bytes) else name: value
            for name, value in zip(reply[::2], reply[1::2])}


def job_of(reply):
    job = pairs(reply)
    if job is not None and "tags" in job:
        job["tags"] = pairs(job["tags"])
    return job


class QueueError(Exception):
    """An error of the queue: its code, and its hints as a dictionary."""

    def __init__(self, text):
        super().__init__(text)
        self.code, *hints = text.split(" ")
        self.hints = dict(hint.split("=", 1) for hint in hints if "=" in hint)


class Native:
    def __init__(self, server, timeout_s=20.0):
        self.client = redis.Redis(host="127.0.0.1", port=server.port, socket_timeout=timeout_s)

    def close(self):
        self.client.connection_pool.disconnect()

    def call(self, *words):
        try:
            return self.client.execute_command(*words)
        except redis.exceptions.ResponseError as error:
            raise QueueError(str(error)) from None

    def config(self, queue, *words):
        assert self.call("Q.CONFIG", queue, *words) == b"OK"

    def add(self, queue, job_id, payload=b"", *options):
        return pairs(self.call("Q.ADD", queue, job_id, payload, *options))

    def pop_many(self, queue, *options):
        jobs = self.call("Q.POP", 1, queue, *options)
        return [] if jobs is None else [job_of(job) for job in jobs]

    def pop(self, queue, *options):
        """The one job, or None."""
        jobs = self.pop_many(queue, *options)
        assert len(jobs) <= 1
        return jobs[0] if jobs else None

    def ack(self, queue, job, *options):
        return self.call("Q.ACK", queue, job["id"], job["lease"], *options)

    def nack(self, queue, job, *options):
        return pairs(self.call("Q.NACK", queue, job["id"], job["lease"], *options))

    def touch(self, queue, job, *options):
        return pairs(self.call("Q.TOUCH", queue, job["id"], job["lease"], *options))

    def cancel(self, queue, job_id, *options):
        return self.call("Q.CANCEL", queue, job_id, *options)

    def move(self, queue, job_id, *options):
        return self.call("Q.MOVE", queue, job_id, *options)

    def get(self, queue, job_id, *options):
        return job_of(self.call("Q.GET", queue, job_id, *options))

    def state(self, queue, job_id):
        job = self.get(queue, job_id)
        return None if job is None else job["state"].decode()

    def stats(self, queue, *options):
        return pairs(self.call("Q.STATS", queue, *options))

    def stats_by(self, queue, *options):
        return {name: pairs(line) for name, line in self.stats(queue, *options).items()}

    def drain(self, queue, *options):
        """The ids of all jobs that can be popped now, in their order; each is acknowledged."""
        ids = []
        while True:
            jobs = self.pop_many(queue, "COUNT", 256, *options)
            if not jobs:
                return ids
            for job in jobs:
                assert self.ack(queue, job) == b"OK"
                ids.append(job["id"].decode())


def expect_error(code, call, *words):
    """The error's hints."""
    try:
        reply = call(*words)
    except QueueError as error:
        if error.code != code:
            raise AssertionError(f"{words}: {error}, expected {code}") from None
        return error.hints
    raise AssertionError(f"{words} answered {reply!r}, expected {code}")
