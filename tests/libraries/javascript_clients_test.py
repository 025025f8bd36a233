#!/usr/bin/python3
"""The clients of JavaScript: ioredis and node-redis, with both protocols."""

import subprocess
import sys

from harness import Skipped, libraries, need_npm


def test_ioredis_5(options):
    """ioredis 5, which speaks RESP2 only: values, units, scans, messages, waits, kills."""
    libraries.play_node(options, "ioredis.js", "ioredis", PROTOCOL="2")


def need_node(major):
    node = need_npm("ioredis-6")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.lstrip("v").split(".")[0]) < major:
        raise Skipped(f"NOT RUN: it wants node {major}, and this is {version.strip()}")


def test_ioredis_6_resp2(options):
    """ioredis 6 with RESP2, with appendfsync everysec."""
    need_node(20)
    libraries.play_node(options, "ioredis.js", "ioredis-6", fsync="everysec", PROTOCOL="2")


def test_ioredis_6_resp3(options):
    """ioredis 6 with RESP3."""
    need_node(20)
    libraries.play_node(options, "ioredis.js", "ioredis-6", PROTOCOL="3")


def test_node_redis_resp2(options):
    """node-redis 5 with RESP2: values, units, scans, messages, waits, a kill."""
    libraries.play_node(options, "node_redis.js", "redis", PROTOCOL="2")


def test_node_redis_resp3(options):
    """node-redis 5 with RESP3, with appendfsync everysec."""
    libraries.play_node(options, "node_redis.js", "redis", fsync="everysec", PROTOCOL="3")


if __name__ == "__main__":
    libraries.run(sys.modules[__name__])
