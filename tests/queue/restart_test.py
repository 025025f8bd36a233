#!/usr/bin/python3
"""What the native queue keeps through lost replies, dead workers and kill -9, and under 64 clients.

Each client records what it knows before it sends and after it has read. A reply
that was lost leaves a job in doubt: the step happened or it did not, and nothing else.
"""

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

import redis

import harness
from harness import require, require_equal, wait_until
from harness.native_queue import DISK, Native, QueueError, job_of
from harness.resp import encode

QUEUE = "work"
LOST = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, OSError)
WORKER_PROGRAM = """
import sys, time
import redis
client = redis.Redis(host="127.0.0.1", port=int(sys.argv[1]))
job = client.execute_command("Q.POP", 1, "work", "LEASE", sys.argv[2])[0]
print(job[3].decode(), flush=True)
time.sleep(60)
"""


def started(options, directives=None):
    server = options.server(directives)
    server.start()
    return server, Native(server)


def test_a_lost_reply_is_asked_for_again(options):
    """The connection is cut after the server committed a pop: the same REQID gives the same job."""
    server, native = started(options, DISK)
    for number in range(3):
        native.add(QUEUE, f"j{number}", b"x")
    with socket.create_connection(("127.0.0.1", server.port)) as lost:
        lost.sendall(encode(["Q.POP", 1, QUEUE, "WORKER", "w", "REQID", "r1", "COUNT", 2]))
        wait_until(lambda: native.stats(QUEUE)["active"] == 2, what="the pop")
    leases = {job_id: native.get(QUEUE, job_id)["lease"] for job_id in ("j0", "j1")}
    again = native.pop_many(QUEUE, "WORKER", "w", "REQID", "r1", "COUNT", 2)
    require_equal({job["id"].decode(): job["lease"] for job in again}, leases, "the same jobs")
    require_equal([job["attempt"] for job in again], [1, 1], "attempts")
    native.close()
    server.kill()
    server.start()
    native = Native(server)
    again = native.pop_many(QUEUE, "WORKER", "w", "REQID", "r1", "COUNT", 2)
    require_equal({job["id"].decode(): job["lease"] for job in again}, leases, "after a kill")
    for job in again:
        native.ack(QUEUE, job)
    other = native.pop_many(QUEUE, "WORKER", "w", "REQID", "r1", "COUNT", 2)
    require_equal([job["id"] for job in other], [b"j2"], "none left: a new pop")


def test_a_lost_reply_of_a_waiting_pop(options):
    """A waiter whose connection is lost takes nothing; a repeat with its REQID replaces it."""
    server, native = started(options)
    first = socket.create_connection(("127.0.0.1", server.port))
    first.sendall(encode(["Q.POP", 1, QUEUE, "WORKER", "w", "REQID", "r1", "BLOCK", 0]))
    wait_until(lambda: native.stats(QUEUE)["waiting_pops"] == 1, what="the waiting pop")
    got = []
    own = Native(server)
    second = threading.Thread(
        target=lambda: got.append(own.pop(QUEUE, "WORKER", "w", "REQID", "r1", "BLOCK", 5000)))
    second.start()
    time.sleep(0.1)
    first.close()
    wait_until(lambda: native.stats(QUEUE)["waiting_pops"] == 1, what="one waiting pop")
    native.add(QUEUE, "a", b"x")
    second.join()
    require_equal(got[0]["id"], b"a", "job")
    require_equal((native.stats(QUEUE)["started"], native.stats(QUEUE)["active"]), (1, 1), "once")


def kill_a_worker(server, lease_ms):
    """A worker process takes the next job and dies; (id, when it was killed)."""
    with subprocess.Popen(["/usr/bin/python3", "-c", WORKER_PROGRAM, str(server.port),
                           str(lease_ms)], stdout=subprocess.PIPE) as worker:
        job_id = worker.stdout.readline().decode().strip()
        taken = time.monotonic()
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait()
    return job_id, taken


def test_a_killed_worker_frees_its_slot(options):
    """A worker killed while it runs: slot free and job first in its band within lease + 100 ms."""
    server, native = started(options)
    native.config(QUEUE, "SET", "max_active", 1, "crash_limit", 5)
    for job_id in ("a", "b", "c"):
        native.add(QUEUE, job_id, b"")
    lease_ms = 400
    waited = []  # A pause of the machine is in few of them.
    for crash in range(1, 6):
        job_id, taken = kill_a_worker(server, lease_ms)
        require_equal(job_id, "a", "taken")
        job = native.pop(QUEUE, "BLOCK", 5000)
        waited_ms = (time.monotonic() - taken) * 1000
        require_equal((job["id"], job["crashes"]), (b"a", crash), "next")
        waited.append(waited_ms)
        native.nack(QUEUE, job, "SILENT")
    require(min(waited) <= lease_ms + 100, f"after {waited} ms")
    kill_a_worker(server, lease_ms)
    job = native.pop(QUEUE, "BLOCK", 5000)
    require_equal(job["id"], b"b", "after crash_limit")
    failed = native.get(QUEUE, "a")
    require_equal((failed["state"], failed["error"]), (b"failed", b"lease lost"), "failed")


class Witness:
    """What is known of every job. A step that is in doubt adds to what it may be."""

    def __init__(self):
        self.lock = threading.Lock()
        self.possible = {}    # id -> set of states
        self.held = {}        # id -> lease that is certainly held
        self.latest = {}      # id -> lease that was given last

    def sending(self, job_id, state):
        with self.lock:
            self.possible.setdefault(job_id, set()).add(state)


class Client:
    """Adds, pops, ends and moves jobs until the server goes."""

    CAP = 6

    def __init__(self, server, witness, index, seed):
        self.server = server
        self.witness = witness
        self.rng = random.Random(f"{seed}/{index}")
        self.name = f"w{index}"
        self.serial = 0
        self.request = 0
        self.in_doubt = None    # the REQID of a pop without an answer
        self.jobs = []
        self.failure = None
        self.own = []
        self.thread = None

    def begin(self):
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        native = Native(self.server)
        try:
            while True:
                self._step(native)
        except LOST:
            pass
        except Exception as error:  # pylint: disable=broad-except
            self.failure = error
        finally:
            native.close()

    def _step(self, native):
        kind = self.rng.random()
        if kind < 0.35 or not self.own:
            self._add(native)
        elif kind < 0.65:
            self._pop(native)
        elif kind < 0.9 and self.jobs:
            self._end(native)
        else:
            native.move(QUEUE, self.rng.choice(self.own), "PRI", self.rng.randrange(5))

    def _add(self, native):
        job_id = f"{self.name}-{self.serial}"
        self.serial += 1
        self.witness.sending(job_id, None)
        self.witness.sending(job_id, "pending")
        native.add(QUEUE, job_id, b"p" * self.rng.randrange(300), "PRI", self.rng.randrange(5),
                   "GROUP", f"g{self.rng.randrange(3)}")
        with self.witness.lock:
            self.witness.possible[job_id].discard(None)
        self.own.append(job_id)

    def _pop(self, native):
        if self.in_doubt is None:
            self.request += 1
            self.in_doubt = f"r{self.request}"
        job = native.pop(QUEUE, "WORKER", self.name, "REQID", self.in_doubt)
        self.in_doubt = None
        if job is None:
            return
        job_id = job["id"].decode()
        if all(job_id != held["id"].decode() for held in self.jobs):
            self.jobs.append(job)
        with self.witness.lock:
            others = self.witness.held.get(job_id)
            require(others in (None, job["lease"]), f"{job_id} has two leases")
            self.witness.held[job_id] = job["lease"]
            self.witness.latest[job_id] = job["lease"]
            require(len(self.witness.held) <= self.CAP, f"{self.witness.held} are active")
            self.witness.possible[job_id] = {"active"}

    def _end(self, native):
        job = self.jobs[0]
        job_id = job["id"].decode()
        completes = self.rng.random() < 0.7
        state = "completed" if completes else "pending"
        with self.witness.lock:
            self.witness.possible[job_id].add(state)
            self.witness.held.pop(job_id)
        try:
            if completes:
                native.ack(QUEUE, job)
            else:
                native.nack(QUEUE, job, "SILENT")
        except QueueError as error:
            raise AssertionError(f"the end of {job_id}: {error}") from None
        self.jobs.pop(0)
        with self.witness.lock:
            if completes:
                self.witness.possible[job_id] = {"completed"}
            elif self.witness.latest[job_id] == job["lease"]:
                # Otherwise another has it already, and has written so.
                self.witness.possible[job_id] = {"pending"}


def check_after_kill(native, witness, clients):
    """Every job is in one of its possible states; a pop in doubt may have taken a pending one."""
    doubtful = sum(client.in_doubt is not None for client in clients)
    surprises = 0
    active = 0
    for job_id, possible in witness.possible.items():
        job = native.get(QUEUE, job_id)
        state = None if job is None else job["state"].decode()
        active += state == "active"
        if state in possible:
            if state == "active" and job_id in witness.held:
                require_equal(job["lease"], witness.held[job_id], f"lease of {job_id}")
            continue
        require(state == "active" and "pending" in possible,
                f"{job_id} is {state}, possible was {possible}")
        surprises += 1
    require(surprises <= doubtful, f"{surprises} jobs taken by {doubtful} pops in doubt")
    stats = native.stats(QUEUE)
    require_equal(stats["active"], active, "active")
    require(active <= Client.CAP, f"{active} are active")
    events = native.call("Q.EVENTS", QUEUE, 0, "COUNT", 1000)
    numbers = [event[0] for event in events]
    require_equal(numbers, list(range(numbers[0], numbers[0] + len(numbers))), "event numbers")


def settle(native, witness, clients):
    """Repeats the pops in doubt and looks what became of the ends in doubt."""
    for client in clients:
        if client.in_doubt is not None:
            client._pop(native)  # pylint: disable=protected-access
    for client in clients:
        for job in list(client.jobs):
            job_id = job["id"].decode()
            found = native.get(QUEUE, job_id)
            if found["lease"] == job["lease"]:
                witness.possible[job_id] = {"active"}
                witness.held[job_id] = job["lease"]
            else:
                client.jobs.remove(job)
                # Another client's pop in doubt may have got the job that this one gave back.
                if witness.held.get(job_id) == job["lease"]:
                    witness.held.pop(job_id)
    for job_id, possible in witness.possible.items():
        if len(possible) > 1:
            job = native.get(QUEUE, job_id)
            possible.clear()
            possible.add(None if job is None else job["state"].decode())


def test_kills_at_random_moments(options):
    """kill -9 under load, 25 times: nothing acknowledged is lost, no cap is passed, no gap."""
    seed = random.SystemRandom().randrange(2 ** 32)
    rng = random.Random(seed)
    try:
        server, native = started(options, {**DISK, "checkpoint-log-bytes": "1mb"})
        native.config(QUEUE, "SET", "max_active", Client.CAP, "lease_ms", 600000,
                      "retain_completed", 1000000)
        witness = Witness()
        clients = [Client(server, witness, index, seed) for index in range(8)]
        kills = 0
        while kills < 25 or (len(witness.possible) <= 500 and kills < 75):
            kills += 1
            native.close()
            for client in clients:
                client.begin()
            time.sleep(rng.uniform(0.02, 0.3))
            server.kill()
            for client in clients:
                client.thread.join()
                if client.failure is not None:
                    raise client.failure
            server.start()
            native = Native(server)
            for client in clients:
                client.server = server
            check_after_kill(native, witness, clients)
            settle(native, witness, clients)
        require(len(witness.possible) > 500, f"only {len(witness.possible)} jobs in {kills} kills")
    except BaseException:
        print(f"seed {seed}", flush=True)
        raise


def test_sixty_four_clients_and_all_caps(options):
    """64 clients, caps for queue, group and key: a witness counts what is certainly running."""
    server, native = started(options)
    caps = {"queue": 12, "group": 3, "key": 4}
    native.config(QUEUE, "SET", "max_active", caps["queue"], "retain_completed", 1000000)
    native.config(QUEUE, "GROUP", "*", "SET", "max_active", caps["group"])
    native.config(QUEUE, "KEY", "*", "SET", "max_active", caps["key"])
    rng = random.Random(7)
    total = 2500
    for number in range(total):
        keys = rng.sample(["k0", "k1", "k2", "k3", "k4"], rng.randrange(3))
        native.add(QUEUE, f"j{number}", b"", "GROUP", f"g{rng.randrange(8)}", "PRI",
                   rng.randrange(5), *[word for key in keys for word in ("KEY", key)])
    lock = threading.Lock()
    counts, seen, failures = {}, [], []

    def change(job, by):
        names = [("queue", b""), ("group", job["group"])] + [("key", key) for key in job["keys"]]
        with lock:
            for name in names:
                counts[name] = counts.get(name, 0) + by
                require(counts[name] <= caps[name[0]], f"{name}: {counts[name]} run")
            if by > 0:
                seen.append(job["id"])

    def worker(index):
        own = Native(server)
        local = random.Random(index)
        try:
            job = None
            while len(seen) < total:
                if job is None:
                    job = own.pop(QUEUE, "BLOCK", 200)
                    if job is None:
                        continue
                    change(job, 1)
                change(job, -1)
                if local.random() < 0.5:
                    own.ack(QUEUE, job)
                    job = None
                else:
                    replies = own.ack(QUEUE, job, "POP")
                    job = job_of(replies[0]) if replies else None
                    if job is not None:
                        change(job, 1)
            if job is not None:
                own.ack(QUEUE, job)
        except Exception as error:  # pylint: disable=broad-except
            failures.append(error)
        finally:
            own.close()

    threads = [threading.Thread(target=worker, args=(index,)) for index in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    require(not failures, f"{failures[:1]}")
    require_equal(len(set(seen)), total, "jobs that ran")
    require_equal(len(seen), total, "runs")
    stats = native.stats(QUEUE)
    require_equal((stats["pending"], stats["active"], stats["completed"]), (0, 0, total), "at rest")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
