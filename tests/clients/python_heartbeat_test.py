#!/usr/bin/python3
"""Heartbeats of the Python client's worker: what they cost a lease, and what they carry."""

import sys
import time

from harness import require, require_equal, run
from harness.proxy import PASS, Proxy
from harness.python_client import url_of

from sluice import Queue, Worker

EXEC = "exec"


def test_reply_that_hangs(options):
    """A heartbeat whose reply does not come is given up and repeated before the lease runs out."""
    held, touches = [], []

    def hold_one(command, _reply):
        if command[0] == b"Q.TOUCH":
            touches.append(time.monotonic())
            if not held:
                held.append(command)
                time.sleep(4.5)
        return PASS

    def handler(job):
        until = time.monotonic() + 5
        while time.monotonic() < until:
            job.wait(0.05)
        return 1

    with options.server() as server, Proxy(server.port, hold_one) as proxy, \
            Queue(EXEC, url_of(server.port)) as queue:
        job = queue.add(1)
        worker = Worker(EXEC, handler, url_of(proxy.port), lease=3, burst=True)
        worker.run()
        require_equal((worker.counts["lost"], worker.counts["completed"]), (0, 1))
        require_equal((job.result(20), job.get().fields["attempts"]), (1, 1))
        require(len(touches) > 2, f"{len(touches)} heartbeats")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
