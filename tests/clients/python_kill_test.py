#!/usr/bin/python3
"""Ten workers of the Python client while the server is killed and frozen at random moments.

    tests/clients/python_kill_test.py [--kills 20] [--seed n]

A producer adds jobs all the time and waits for each result. At the end every job that add returned
has completed, with its own result; no job was acknowledged by two runs; nothing is leased.
"""

import argparse
import collections
import os
import random
import signal
import sys
import threading
import time

from harness import Options, require, require_equal, run_seeded, wait_until
from harness.native_queue import DISK
from harness.python_client import url_of
from harness.servers import DEFAULT_SLUICE, steady_port

from sluice import Queue, Worker

EXEC = "exec"
WORKERS = 10


class Load:
    """Workers and a producer, until `end`."""

    def __init__(self, port, chance):
        self.ended = threading.Event()
        self.results = {}  # job's number -> its result
        self.errors = []
        self.runs = collections.Counter()
        self._chance = chance
        self._url = url_of(port)
        self.workers = [Worker(EXEC, self._handle, self._url, concurrency=3, grace=20, timeout=2)
                        for _ in range(WORKERS)]
        self.threads = [threading.Thread(target=worker.run, daemon=True)
                        for worker in self.workers]
        self.producers = [threading.Thread(target=self._produce, args=(n,), daemon=True)
                          for n in range(4)]
        for thread in self.threads + self.producers:
            thread.start()

    def _handle(self, job):
        self.runs[job.payload] += 1
        job.progress(job.attempt)
        job.wait(self._chance.random() * 0.05)
        return job.payload * 2

    def _produce(self, which):
        number = which
        with Queue(EXEC, self._url, timeout=2, patience=120) as queue:
            while not self.ended.is_set():
                number += 4
                try:
                    self.results[number] = queue.add(number).result(120)
                except Exception as error:  # pylint: disable=broad-except
                    self.errors.append((number, repr(error)))
                    return

    def end(self):
        self.ended.set()
        for thread in self.producers:
            thread.join(150)
        for worker in self.workers:
            worker.stop()
        for thread in self.threads:
            thread.join(60)
            require(not thread.is_alive(), "a worker has not ended")


def hurt(server, chance):
    """Kills the server, or freezes it for a while."""
    if chance.random() < 0.3:
        os.kill(server.pid, signal.SIGSTOP)
        time.sleep(0.2 + chance.random() * 3)
        os.kill(server.pid, signal.SIGCONT)
        return
    server.kill()
    time.sleep(chance.random() * 0.3)
    server.start()


def kills(options, count, seed):
    chance = random.Random(seed)
    port = steady_port()
    with options.server({**DISK, "port": port}, start_timeout_s=120.0) as server:
        with Queue(EXEC, url_of(port)) as queue, server.connect() as connection:
            connection.call("Q.CONFIG", EXEC, "SET", "lease_ms", 2000, "crash_limit", 1000,
                            "retain_completed", 1000000)
            load = Load(port, chance)
            try:
                for _ in range(count):
                    time.sleep(0.1 + chance.random() * 0.6)
                    hurt(server, chance)
            finally:
                load.end()
            require_equal(load.errors, [])
            wrong = {n: got for n, got in load.results.items() if got != n * 2}
            require_equal(wrong, {})
            stats = queue.stats()
            require_equal((stats["active"], stats["waiting"]), (0, 0))
            require_equal(stats["completed"], len(load.results))
            completed = wait_until(lambda: sum(w.counts["completed"] for w in load.workers))
            again = sum(load.runs.values()) - len(load.results)
            lost = sum(worker.counts["lost"] for worker in load.workers)
            return (f"{count} kills and freezes, {len(load.results)} jobs, {completed} "
                    f"acknowledged, {again} runs repeated, {lost} leases lost")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default=str(DEFAULT_SLUICE))
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    chosen = parser.parse_args()
    options = Options(chosen.server, 1)
    return run_seeded([("kills", lambda: kills(options, chosen.kills, chosen.seed))], chosen.seed)


if __name__ == "__main__":
    sys.exit(main())
