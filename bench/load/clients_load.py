#!/usr/bin/python3
"""The load of bench/clients from Python: jobs are added, then workers with an empty handler process
them. Prints a line of JSON.

    clients_load.py LIBRARY PORT JOBS

LIBRARY is sluice, rq-simple, rq or celery. As a module it is what the workers of rq and Celery
import.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = "x" * 100
LONGEST_S = 600


def empty(_number, _text):
    """A job of rq and Celery."""


def timed(work):
    began = time.monotonic()
    work()
    return time.monotonic() - began


def sluice_load(port, jobs):
    sys.path.insert(0, str(ROOT / "clients" / "python"))
    from sluice import Queue, Worker  # pylint: disable=import-error,import-outside-toplevel
    url = f"redis://127.0.0.1:{port}"
    with Queue("load", url) as queue:
        payloads = [{"payload": {"n": n, "text": TEXT}} for n in range(jobs)]
        queue.stats()
        add_s = timed(lambda: queue.add_many(payloads))
        worker = Worker("load", lambda job: None, url, concurrency=50, burst=True)
        process_s = timed(worker.run)
        return add_s, process_s, queue.stats()["completed"]


def rq_load(port, jobs, kind):
    import redis  # pylint: disable=import-outside-toplevel
    import rq  # pylint: disable=import-error,import-outside-toplevel
    client = redis.Redis(port=port)
    queue = rq.Queue("load", connection=client)

    def add():
        for first in range(0, jobs, 1000):
            queue.enqueue_many([rq.Queue.prepare_data("clients_load.empty", (n, TEXT))
                                for n in range(first, min(first + 1000, jobs))])

    add_s = timed(add)
    worker = getattr(rq, kind)([queue], connection=client)
    process_s = timed(lambda: worker.work(burst=True, logging_level="WARNING"))
    return add_s, process_s, rq.registry.FinishedJobRegistry(queue=queue).count


def celery_app(port):
    import celery  # pylint: disable=import-error,import-outside-toplevel
    app = celery.Celery("clients_load", broker=f"redis://127.0.0.1:{port}/0")
    return app, app.task(name="empty")(empty)


def celery_load(port, jobs):
    """Two processes. The time counts from the first task that is taken to the last acknowledged."""
    import redis  # pylint: disable=import-outside-toplevel
    client = redis.Redis(port=port)
    app, task = celery_app(port)
    with app.producer_pool.acquire(block=True) as producer:
        def add():
            for n in range(jobs):
                task.apply_async((n, TEXT), producer=producer)

        add_s = timed(add)
    worker = subprocess.Popen(
        [sys.executable, "-m", "celery", "--app", "clients_load:worker_app", "worker", "--pool",
         "prefork", "--concurrency", "2", "--loglevel", "ERROR"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        cwd=pathlib.Path(__file__).parent, env={**os.environ, "CLIENTS_LOAD_PORT": str(port)})
    try:
        wait_until(lambda: client.llen("celery") < jobs)
        process_s = timed(lambda: wait_until(
            lambda: client.llen("celery") + client.hlen("unacked") == 0))
    finally:
        worker.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(20)
        worker.kill()
    return add_s, process_s, jobs


def wait_until(condition):
    deadline = time.monotonic() + LONGEST_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the jobs were not done in {LONGEST_S} s")
        time.sleep(0.02)


if "CLIENTS_LOAD_PORT" in os.environ:
    worker_app, _ = celery_app(int(os.environ["CLIENTS_LOAD_PORT"]))


def main():
    library, port, jobs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if library == "sluice":
        add_s, process_s, done = sluice_load(port, jobs)
    elif library == "celery":
        add_s, process_s, done = celery_load(port, jobs)
    else:
        kind = {"rq": "Worker", "rq-simple": "SimpleWorker"}[library]
        add_s, process_s, done = rq_load(port, jobs, kind)
    if done != jobs:
        sys.exit(f"{done} of {jobs} jobs have completed")
    print(json.dumps({"add_s": add_s, "process_s": process_s}))


if __name__ == "__main__":
    main()
