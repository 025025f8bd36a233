"""The Python client for tests: importing this makes the package `sluice` of clients/python known.

`end_job` is the other side: a worker without the code that is tested.
"""

import sys
import threading

from harness.native_queue import Native
from harness.servers import LOOPBACK, ROOT

PACKAGE = ROOT / "clients" / "python"
sys.path.insert(0, str(PACKAGE))


def url_of(port):
    return f"redis://{LOOPBACK}:{port}"


def end_job(server, queue, ack=("RESULT", b"1"), nack=None):
    """Pops the next job and ends it. Returns its id; None without one."""
    native = Native(server)
    try:
        job = native.pop(queue, "WORKER", "native")
        if job is None:
            return None
        if nack is None:
            native.ack(queue, job, *ack)
        else:
            native.nack(queue, job, *nack)
        return job["id"].decode()
    finally:
        native.close()


def call_later(seconds, function, *arguments):
    timer = threading.Timer(seconds, function, arguments)
    timer.daemon = True
    timer.start()
    return timer


def raised(kind, function, *arguments, **options):
    """The exception of this kind that the call raises."""
    try:
        got = function(*arguments, **options)
    except kind as error:
        return error
    raise AssertionError(f"{function} returned {got!r}, expected {kind}")
