"""Workers of the Python client that say what becomes of each run (harness/witness.py).

    witness.py threads|tasks|processes URL QUEUE [option=value]...

The payload says how many `ms` a run takes, and how many runs `fail` first; one that is `deaf` does
not stop when it is told to; `term` sends SIGTERM to this process, "before" the handler or "in" it.
The result is the lease. The workers stop at "stop" on the standard input, or at its end.
"""

import asyncio
import logging
import os
import signal
import sys
import threading
import time

from sluice import Cancelled, Worker

STEP_S = 0.01
PID = int(os.environ.setdefault("WITNESS_PID", str(os.getpid())))  # also in its children


def say(what, job, *more):
    os.write(1, " ".join(map(str, (what, job.id, job.lease, *more))).encode() + b"\n")


def terminate(job, when):
    if job.payload.get("term") == when:
        os.kill(PID, signal.SIGTERM)


def steps(job):
    """How long each step takes, and what there is to say."""
    say("run", job)
    until = time.monotonic() + job.payload["ms"] / 1000
    while (left := until - time.monotonic()) > 0:
        job.progress(left)
        yield min(left, STEP_S)


def end(job):
    terminate(job, "in")
    if job.attempt <= job.payload.get("fail", 0):
        raise ValueError(f"attempt {job.attempt}")
    return job.lease


def run(job):
    try:
        for step in steps(job):
            (time.sleep if job.payload.get("deaf") else job.wait)(step)
    except Cancelled:
        say("heard", job)
        raise
    return end(job)


async def run_task(job):
    for step in steps(job):
        try:
            await asyncio.sleep(step)
        except asyncio.CancelledError:
            if not job.payload.get("deaf"):
                say("heard", job)
                raise
    return end(job)


def make(kind, url, queue, options):
    return Worker(queue, run_task if kind == "tasks" else run, url, processes=kind == "processes",
                  on_started=lambda job: terminate(job, "before"),
                  on_completed=lambda job, _result: say("done", job),
                  on_failed=lambda job, error: say("failed", job, error),
                  on_lost=lambda job: say("lost", job), **options)


def main():
    logging.basicConfig(level=logging.ERROR, stream=sys.stdout)
    kind, url, queue, *words = sys.argv[1:]
    options = {name: float(value) if "." in value else int(value)
               for name, value in (word.split("=") for word in words)}
    workers = [make(kind, url, queue, options) for _ in range(options.pop("workers", 1))]
    threads = [threading.Thread(target=worker.run) for worker in workers[1:]]

    def listen():
        for line in sys.stdin:
            if line == "stop\n":
                break
        for worker in workers:
            worker.stop()

    threading.Thread(target=listen, daemon=True).start()
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    workers[0].run()
    for thread in threads:
        thread.join()
    print("ended", [worker.counts for worker in workers], flush=True)


if __name__ == "__main__":
    main()
