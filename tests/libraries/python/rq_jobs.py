"""The functions that rq's workers run. A run is a line in the file `runs` of the worker's folder:
what was done is known whatever becomes of the server."""

import os
import pathlib
import time


def note(word):
    """One write, so that workers do not mix their lines."""
    with open("runs", "a", encoding="utf-8") as runs:
        runs.write(f"{word}\n")


def double(number):
    note(number)
    return {"doubled": number * 2, "text": "grüße\0"}


def broken():
    raise ValueError("broken")


def second_time(marker):
    """Fails unless it was here before."""
    before = pathlib.Path(marker)
    if not before.exists():
        before.touch()
        raise ValueError("not yet")
    return "mended"


def until(path):
    while not pathlib.Path(path).exists():
        time.sleep(0.01)


def forever():
    note("begun")
    time.sleep(3600)


def done(job, _connection, result, *_):
    note(f"callback {job.id} {result['doubled']} {os.getpid() != 0}")
