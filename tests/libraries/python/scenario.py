"""What the scenarios in Python share: checks, and the kill of the server."""

import os
import select
import sys
import threading
import time

from harness import require, require_equal  # noqa: F401

PORT = int(os.environ["SLUICE_PORT"])
PATIENCE_S = 60


def wait_until(condition, what, seen=lambda: ""):
    """Asks until the condition gives something true, and returns that. `seen`, asked at a failure,
    tells what is there instead."""
    deadline = time.monotonic() + PATIENCE_S
    while not (got := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come about {seen()}")
        time.sleep(0.01)
    return got


def insist(call, *failures):
    """Tries again until it succeeds: for a caller to whom a lost connection says nothing."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return call()
        except failures:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def kill_server():
    """Asks for the server's death; what has to be done meanwhile is for other threads."""
    print("kill", flush=True)
    ready, _, _ = select.select([sys.stdin], [], [], PATIENCE_S)
    require(ready and sys.stdin.readline() == "restarted\n", "the server did not come back")


def killing_server():
    """The same on a thread, to be joined: the caller continues with its work."""
    thread = threading.Thread(target=kill_server)
    thread.start()
    return thread


def play(parts):
    for part in parts:
        began = time.monotonic()
        part()
        print(f"{part.__name__}, {time.monotonic() - began:.1f} s", flush=True)
    print("all of it holds", flush=True)
