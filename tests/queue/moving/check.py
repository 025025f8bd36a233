"""What the Python scenarios share: a client of the server under test, and checks."""

import os

import redis

import harness
from harness import require_equal as equal


URL = f"redis://127.0.0.1:{os.environ['SLUICE_PORT']}"


def connect():
    return redis.Redis.from_url(URL, socket_timeout=15)


def refused(code, function, *arguments):
    """The call fails with this error of the queue; its text is returned."""
    try:
        got = function(*arguments)
    except redis.ResponseError as error:
        equal(str(error).split(" ")[0], code)
        return str(error)
    raise AssertionError(f"{got!r}, expected {code}")


def wait_until(condition, what):
    harness.wait_until(condition, what=what)
