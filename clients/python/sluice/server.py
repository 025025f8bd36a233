"""Where the server is: a URL, the primary that Sentinels name, or a function that makes clients."""

from __future__ import annotations

import os
import re
from typing import Any, Callable, Union
from urllib.parse import unquote, urlsplit

import redis
from redis.sentinel import Sentinel

# Makes a client of redis-py; its keyword arguments are redis-py's.
Connect = Callable[..., "redis.Redis"]
Server = Union[str, Connect, None]


def protocol_of(version: str) -> dict[str, Any]:
    """The option that makes this version of redis-py speak RESP2, as old ones do without it: newer
    ones have RESP3 by default, and read its pushes only while they wait for a reply."""
    return {"protocol": 2} if int(version.split(".")[0]) >= 5 else {}


PROTOCOL = protocol_of(redis.__version__)
_SENTINEL = "redis+sentinel://"
_SENTINEL_PORT = 26379
_SENTINEL_TIMEOUT = 2.0  # seconds, for one Sentinel


def connect_to(server: Server) -> Connect:
    """`server` is a URL of redis-py, a URL of Sentinels (None: SLUICE_URL, then localhost), or a
    function that makes a client, such as a partial of `Sentinel.master_for`.

    Raises ValueError for a URL that is neither.
    """
    if callable(server):
        return server
    url = server or os.environ.get("SLUICE_URL") or "redis://localhost:6379"
    if url.startswith(_SENTINEL):
        return _by_sentinels(url)
    parts = urlsplit(url)
    if parts.scheme in ("redis", "rediss") and not re.fullmatch(r"[/\d]*", parts.path):
        # redis-py takes it for database 0.
        raise ValueError(f"what follows the host in {parts.scheme}:// is the number of a database, "
                         f"not {parts.path[1:]!r}")

    def connect(**options: Any) -> redis.Redis:
        return redis.Redis.from_url(url, **{**PROTOCOL, **options})

    try:
        connect().connection_pool.make_connection()  # The URL is checked here; nothing is sent.
    except (TypeError, redis.RedisError) as error:  # for an option, or its value
        raise ValueError(str(error)) from None
    return connect


def _by_sentinels(url: str) -> Connect:
    """Each connection asks the Sentinels for the primary, one after the other."""
    parts = urlsplit(url)
    user, _, hosts = parts.netloc.rpartition("@")
    name, _, database = parts.path[1:].partition("/")
    addresses = [re.fullmatch(r"(?:\[(.+)\]|([^:]+))(?::(\d+))?", host)
                 for host in hosts.split(",")]
    more = parts.query or parts.fragment
    if not name or more or not all(addresses) or not re.fullmatch(r"\d*", database):
        raise ValueError(f"a URL of Sentinels is "
                         f"{_SENTINEL}[user:password@]host[:port],…/name[/db], without options")
    username, _, password = user.partition(":")
    known = {"username": unquote(username) or None, "password": unquote(password) or None,
             "db": int(database or 0)}
    sentinels = [(match[1] or match[2], int(match[3] or _SENTINEL_PORT))
                 for match in addresses if match]

    def connect(**options: Any) -> redis.Redis:
        sentinel = Sentinel(sentinels, sentinel_kwargs={
            "socket_timeout": _SENTINEL_TIMEOUT, "socket_connect_timeout": _SENTINEL_TIMEOUT,
            **PROTOCOL})
        return sentinel.master_for(unquote(name), **{**known, **PROTOCOL, **options})

    return connect
