#!/usr/bin/python3
"""Bull, Bee-Queue and Redlock."""

import sys

from harness import libraries


def test_bull(options):
    """Bull: results, order, delay, repeat, retries, limiter, the server killed in the middle."""
    libraries.play_node(options, "bull.js", "bull")


def test_bee_queue(options):
    """Bee-Queue: results, retries, bulk, delay, the server killed in the middle."""
    libraries.play_node(options, "bee_queue.js", "bee-queue", fsync="everysec")


def test_redlock_4(options):
    """Redlock 4: exclusion, extension, expiry, a lock held across a kill of the server."""
    libraries.play_node(options, "redlock.js", "redlock")


def test_redlock_5(options):
    """Redlock 5, the same, with appendfsync everysec."""
    libraries.play_node(options, "redlock.js", "redlock-5", fsync="everysec")


if __name__ == "__main__":
    libraries.run(sys.modules[__name__])
