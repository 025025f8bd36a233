"""redis-py by Sentinel, `blocking` or with `asyncio`: writes until it is enough."""

import asyncio
import itertools
import sys

import redis.asyncio.sentinel
import redis.sentinel
from until_enough import GROUP, PATIENCE_S, SENTINELS, begin, check_log, enough, insist

FAILURES = (redis.RedisError, OSError, asyncio.TimeoutError)
SETTINGS = {"socket_timeout": 0.5}


def blocking():
    client = redis.sentinel.Sentinel(SENTINELS, **SETTINGS).master_for(GROUP, **SETTINGS)
    repeated = 0
    for number in itertools.count():
        repeated += insist(lambda n=number: client.rpush("log", n), *FAILURES)
        if enough.is_set():
            break
    check_log(number + 1, repeated, client.lrange("log", 0, -1))


async def insist_later(call):
    failed = 0
    while True:
        try:
            await call()
            return failed
        except FAILURES:
            failed += 1
            await asyncio.sleep(0.02)


async def with_asyncio():
    sentinel = redis.asyncio.sentinel.Sentinel(SENTINELS, **SETTINGS)
    client = sentinel.master_for(GROUP, **SETTINGS)
    repeated = 0
    for number in itertools.count():
        repeated += await asyncio.wait_for(
            insist_later(lambda n=number: client.rpush("log", n)), PATIENCE_S)
        if enough.is_set():
            break
    check_log(number + 1, repeated, await client.lrange("log", 0, -1))
    await client.close()


begin()
if sys.argv[1] == "asyncio":
    asyncio.run(with_asyncio())
else:
    blocking()
