"""The tasks that Celery's workers run. A run is a line in the file `runs` of the worker's folder:
what was done is known whatever becomes of the server."""

import os
import pathlib
import time

from celery import Celery

URL = f"redis://127.0.0.1:{os.environ.get('SLUICE_PORT', '6379')}"
app = Celery("celery_tasks", broker=URL + "/0", backend=URL + "/1")
app.conf.update(
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    # A worker gives tasks of the dead back when it starts, and then each 100 s only: what was held
    # at its predecessor's end must be visible by then. The lock under which it does that is gone
    # with its holder after 300 s by default.
    broker_transport_options={"visibility_timeout": 0.5, "unacked_restore_limit": 100,
                              "unacked_mutex_expire": 1},
    result_expires=600,
    broker_connection_max_retries=None,
    task_default_queue="tasks",
)


def note(word):
    """One write, so that processes do not mix their lines."""
    with open("runs", "a", encoding="utf-8") as runs:
        runs.write(f"{word}\n")


@app.task
def double(number):
    note(number)
    return number * 2


@app.task
def add(*numbers):
    return sum(sum(each) if isinstance(each, list) else each for each in numbers)


@app.task
def broken():
    raise ValueError("broken")


@app.task(bind=True, max_retries=5)
def third_time(self):
    note(f"try {self.request.retries}")
    if self.request.retries < 2:
        raise self.retry(countdown=0.1)
    return self.request.retries


@app.task
def until(path):
    note("begun")
    while not pathlib.Path(path).exists():
        time.sleep(0.01)
    return "opened"


@app.task(bind=True)
def steps(self):
    self.update_state(state="HALF", meta={"at": 50})
    while not pathlib.Path("go-on").exists():
        time.sleep(0.01)
    return "whole"
