"""What the Python scenarios share: a client of the server under test, and checks."""

import os
import time

import redis


def connect():
    return redis.Redis(port=int(os.environ["SLUICE_PORT"]), socket_timeout=15)


def equal(got, expected):
    if got != expected:
        raise AssertionError(f"{got!r}, expected {expected!r}")


def refused(code, function, *arguments):
    """The call fails with this error of the queue; its text is returned."""
    try:
        got = function(*arguments)
    except redis.ResponseError as error:
        equal(str(error).split(" ")[0], code)
        return str(error)
    raise AssertionError(f"{got!r}, expected {code}")


def wait_until(condition, what, timeout_s=20.0):
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come about")
        time.sleep(0.005)
