#!/usr/bin/python3
"""BullMQ, the two versions that tests/npm pins."""

import sys

from harness import libraries


def test_bullmq_5(options):
    """BullMQ 5: every kind of job, workers that die, the server killed in the middle."""
    libraries.play_node(options, "bullmq.js", "bullmq")


def test_bullmq_6(options):
    """BullMQ 6, the same, with appendfsync everysec and two I/O threads."""
    libraries.play_node(options, "bullmq.js", "bullmq-6", fsync="everysec", io_threads=2)


if __name__ == "__main__":
    libraries.run(sys.modules[__name__])
