"""The systems of the seed on plain Redis keys: their clients, and models of what they may see."""

import pathlib

import redis

from harness.servers import LOOPBACK, Server, steady_port

LOST = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError)


def durable_server(program):
    """A server that is not started yet. A restart has the same port, as a service does, so that
    clients find it by themselves."""
    directives = {"appendonly": "yes", "appendfsync": "always", "save": "", "port": steady_port()}
    if "redis" in pathlib.Path(program).name:
        directives["auto-aof-rewrite-min-size"] = "4mb"
    return Server(program, directives)


def connect(server):
    return redis.Redis(host=LOOPBACK, port=server.port, decode_responses=True, socket_timeout=30)
