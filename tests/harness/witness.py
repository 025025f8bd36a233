"""Workers of the clients in processes of their own, which say what becomes of each run.

    with Witness("threads", server.port, queue, concurrency=4) as witness:
        ...
        witness.stop()
    require_each_once(native, queue, ids, [witness])

The programs are tests/clients/witness.py and clients/typescript/test/system/witness.ts.
"""

import collections
import signal
import sys
import time

from harness import libraries, require, require_equal, wait_until
from harness.python_client import PACKAGE, url_of
from harness.servers import ROOT
from harness.typescript_client import SYSTEM, built

KINDS = ("threads", "tasks", "node")
TIMES = ("lease", "heartbeat", "grace")  # in seconds; node takes milliseconds
LONGEST_S = 60
TOLD = ("run", "heard", "done", "lost", "failed")


class Witness(libraries.Program):
    """`kind` is one of KINDS, or "processes". Options are the client's, and `workers`, how many.
    `url` instead of the port."""

    def __init__(self, kind, port, queue, url=None, **options):
        self.kind = kind
        node = kind == "node"
        command = [built(), SYSTEM / "witness.js"] if node else \
            [sys.executable, ROOT / "tests" / "clients" / "witness.py", kind]
        words = [f"{name}={value * 1000 if node and name in TIMES else value}"
                 for name, value in options.items()]
        super().__init__([*command, url or url_of(port), queue, *words], port,
                         PYTHONPATH=str(PACKAGE))
        self.wait_for("ready")

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def stop(self):
        """Tells it to stop, and reads what it says until it has ended."""
        self.tell("stop")
        self.read_to_end()

    def read_to_end(self):
        deadline = time.monotonic() + LONGEST_S
        while self.line(deadline) is not None:
            pass
        require_equal(self.process.wait(LONGEST_S), 0, self.printed())

    def runs(self):
        """For each (id, lease) what was said about it, in its order."""
        runs = collections.defaultdict(list)
        for line in self.seen:
            what, *words = line.split(" ")
            if what in TOLD:
                runs[words[0], int(words[1])].append(what)
        return runs


def require_ends_known(witnesses, given_back=False):
    """No job was acknowledged by two runs. Each other run was lost, and its handler has heard it,
    or has failed; or, if that may be, was given back. Returns the leases by which jobs were
    acknowledged, and the counts of runs and of lost ones."""
    done, lost, count = {}, 0, 0
    for witness in witnesses:
        for (job, lease), told in witness.runs().items():
            text = f"{job}, lease {lease} of {witness.kind}: {told}"
            count += 1
            require(told.count("done") + told.count("lost") <= 1, text)
            require(told.count("heard") <= 1 and told[0] in ("run", "failed"), text)
            if "done" in told:
                require(job not in done, f"acknowledged twice: {text}, lease {done.get(job)}")
                done[job] = lease
            elif "lost" in told:
                lost += 1
            else:
                require("failed" in told or given_back, f"its end is not known: {text}")
    return done, count, lost


def require_each_once(native, queue, ids, witnesses):
    """Every job has completed once, with the result of the run that was told so; nothing is leased
    and no pop waits. Returns a summary."""
    done, count, lost = require_ends_known(witnesses)
    for job in ids:
        info = native.get(queue, job, "WITH", "result")
        require_equal(info["state"], b"completed", job)
        require_equal(int(info["result"]), done.get(job), f"the lease that {job} was ended by")
    require_idle(native, queue)
    figures = native.stats(queue)
    require_equal((figures["pending"], figures["completed"]), (0, len(ids)), "pending, completed")
    return f"{len(ids)} jobs, {count} runs, {lost} leases lost"


def require_idle(native, queue):
    require_equal(native.stats(queue)["active"], 0, "active")
    wait_until(lambda: native.stats(queue)["waiting_pops"] == 0, 20, "no pop waits")
