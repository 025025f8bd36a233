#!/usr/bin/python3
"""node-resque, rate-limiter-flexible and Bottleneck."""

import sys

from harness import libraries


def test_resque(options):
    """node-resque: results, failures, delayed jobs, the server killed while jobs come in."""
    libraries.play_node(options, "resque.js", "node-resque")


def test_rate_limiter_flexible(options):
    """rate-limiter-flexible over ioredis and node-redis: points, blocks, a kill of the server."""
    libraries.play_node(options, "rate_limiter.js", "rate-limiter-flexible")


def test_bottleneck(options):
    """Bottleneck: limits that several limiters share, reservoirs across a kill of the server."""
    libraries.play_node(options, "bottleneck.js", "bottleneck")


if __name__ == "__main__":
    libraries.run(sys.modules[__name__])
