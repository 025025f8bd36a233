"""What this package uses of redis-py, for mypy: redis-py 4 has no types of its own."""

from typing import Any

from redis.exceptions import RedisError as RedisError, ResponseError as ResponseError

__version__: str

class ConnectionPool:
    def make_connection(self) -> Any: ...

class Redis:
    connection_pool: ConnectionPool
    @classmethod
    def from_url(cls, url: str, **kwargs: Any) -> Redis: ...
