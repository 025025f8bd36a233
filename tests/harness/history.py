"""Reads the history of queues that a server keeps (GET …/history), and waits for its samples."""

import time

from harness import require, wait_until
from harness.http_client import quoted

STEP_MS = 5000
SAMPLED_S = 30


def history(client, queue="q", parameters=""):
    path = f"/api/v1/queues/{quoted(queue)}/history{parameters}"
    return client.expect(200, "GET", path).json


def known(series):
    """A column without its gaps."""
    return [value for value in series if value is not None]


def next_sample(client, queue="q"):
    """Waits until the server has looked at the queue once more."""
    end_ms = history(client, queue)["end_ms"]
    wait_until(lambda: history(client, queue)["end_ms"] > end_ms, SAMPLED_S, "a sample")


def first_sample(client, queue="q"):
    wait_until(lambda: known(history(client, queue)["series"]["waiting"]), SAMPLED_S, "a sample")


def work(connection, count=4, wait_s=0.0):
    for number in range(count):
        connection.call("Q.ADD", "q", f"j{number}", "x", "RETRY", "0")
    time.sleep(wait_s)
    for number in range(count - 1):
        lease = connection.call("Q.POP", "1", "q").value[0]
        lease = dict(zip(lease[::2], lease[1::2]))[b"lease"]
        words = ("Q.NACK", "q", f"j{number}", lease, "FATAL") if number == 0 else \
            ("Q.ACK", "q", f"j{number}", lease)
        require(not connection.call(*words).is_error, words)


def sums(client):
    """How many jobs were added, ended and failed in the last hour."""
    return [sum(known(history(client)["series"][name])) for name in ("added", "ended", "failed")]
