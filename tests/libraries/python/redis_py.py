"""redis-py as its users use it: `blocking` or `asyncio`."""

import asyncio
import itertools
import sys
import threading

import redis
import redis.asyncio
from scenario import (PATIENCE_S, PORT, insist, kill_server, killing_server, play, require,
                      require_equal, wait_until)

BYTES = bytes(range(256))
LARGE = "grüße\0" * 200_000
FAILURES = (redis.ConnectionError, redis.TimeoutError)


def client(**others):
    return redis.Redis(port=PORT, decode_responses=True, **others)


def values():
    raw = redis.Redis(port=PORT)
    raw.set("bytes", BYTES, px=60000)
    require_equal(raw.get("bytes"), BYTES, "bytes")
    with client(client_name="scenario") as one:
        one.set("large", LARGE)
        require(one.get("large") == LARGE, "a large value came back changed")
        one.hset("map", mapping={"a": 1, "b": "zwei"})
        require_equal(one.hgetall("map"), {"a": "1", "b": "zwei"})
        one.zadd("scores", {"a": 1.5, "b": float("inf")})
        require_equal(one.zrange("scores", 0, -1, withscores=True),
                      [("a", 1.5), ("b", float("inf"))])
        require_equal(one.zadd("scores", {"a": 1}, incr=True), 2.5)
        require_equal(one.client_getname(), "scenario")
        require_equal(one.config_get("appendonly"), {"appendonly": "yes"})
        require_equal(one.info("server")["tcp_port"], PORT)
        require_equal(one.command_getkeys("SET", "a", "b"), ["a"])
        require_equal([len(list(one.scan_iter("none*"))), one.dbsize()], [0, 4])
        try:
            one.incr("map")
            raise AssertionError("INCR of a hash")
        except redis.ResponseError as error:
            require("WRONGTYPE" in str(error), str(error))


def units_scripts_and_locks():
    with client() as one, client() as other:
        one.set("n", 1)
        require_equal(one.pipeline().incr("n").get("n").execute(), [2, "2"])
        require_equal(one.pipeline(transaction=False).incr("n").get("n").execute(), [3, "3"])
        with one.pipeline() as unit:
            unit.watch("n")
            other.incr("n")
            unit.multi()
            unit.set("n", 0)
            try:
                unit.execute()
                raise AssertionError("EXEC after a change")
            except redis.WatchError:
                pass

        def bump(unit):
            unit.multi()
            unit.incr("n")

        one.transaction(bump, "n")
        script = one.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
        require_equal(script(keys=["n"], args=[10]), 15)
        one.script_flush()
        require_equal(script(keys=["n"], args=[10]), 25)
        one.function_load("#!lua name=mine\nredis.register_function('twice', "
                          "function(keys) return 2 * redis.call('GET', keys[1]) end)")
        require_equal(one.fcall("twice", 1, "n"), 50)
        lock = one.lock("lock", timeout=60)
        require_equal(lock.acquire(blocking=False), True)
        require_equal(other.lock("lock").acquire(blocking=False), False)
        lock.extend(30)
        lock.release()
        require_equal(one.exists("lock"), 0)


def messages_waits_and_streams():
    with client() as one, client() as other:
        heard = one.pubsub()
        heard.subscribe("a")
        heard.psubscribe("p*")
        for _ in range(2):
            heard.get_message(timeout=PATIENCE_S)
        require_equal([other.publish("a", "1"), other.publish("px", "2")], [1, 1])
        got = [heard.get_message(timeout=PATIENCE_S) for _ in range(2)]
        require_equal([(each["type"], each["channel"], each["data"]) for each in got],
                      [("message", "a", "1"), ("pmessage", "px", "2")])
        heard.close()
        popped = []
        waiting = threading.Thread(target=lambda: popped.append(one.blpop(["l1", "l2"])))
        waiting.start()
        wait_until(lambda: other.info("clients")["blocked_clients"] == 1, "the wait")
        other.rpush("l2", "x")
        waiting.join(PATIENCE_S)
        require_equal(popped, [("l2", "x")])
        entry = one.xadd("stream", {"f": "v"})
        one.xgroup_create("stream", "group", "0")
        require_equal(one.xreadgroup("group", "me", {"stream": ">"}),
                      [["stream", [(entry, {"f": "v"})]]])
        require_equal(one.xpending("stream", "group")["pending"], 1)
        require_equal(one.xautoclaim("stream", "group", "you", 0)[1], [(entry, {"f": "v"})])
        require_equal(one.xack("stream", "group", entry), 1)
        require_equal(one.xinfo_stream("stream")["length"], 1)
        with one.monitor() as monitor:
            other.set("watched", "x")
            require_equal(monitor.next_command()["command"], "SET watched x")


def require_counted(acknowledged, unknown, count, log):
    require(acknowledged <= count <= acknowledged + unknown,
            f"{acknowledged} acknowledged, {unknown} unknown, {count} counted")
    require_equal((len(log), len(set(log))), (count, count), "entries of the log")


def kill():
    """Acknowledged writes are there; what was under way may be or not, and nothing comes twice."""
    with client() as one:
        written, unknown, killed = [], 0, None
        for number in itertools.count():
            if number >= 600 and unknown:  # It continues until it has seen the kill.
                break
            try:
                one.pipeline().incr("counter").rpush("log", number).execute()
                written.append(number)
            except FAILURES:
                unknown += 1
                insist(one.ping, *FAILURES)
            if number == 300:
                killed = killing_server()
        killed.join()
        insist(one.ping, *FAILURES)
        log = list(map(int, one.lrange("log", 0, -1)))
        require_counted(len(written), unknown, int(one.get("counter")), log)
        require(set(written) <= set(log), "an acknowledged write is lost")


async def use_asyncio():
    one = redis.asyncio.Redis(port=PORT, decode_responses=True)
    await one.set("large", LARGE)
    require(await one.get("large") == LARGE, "a large value came back changed")
    require_equal(await asyncio.gather(*(one.incr("n") for _ in range(50))) and
                  await one.get("n"), "50")
    async with one.pipeline(transaction=True) as unit:
        require_equal(await unit.incr("n").get("n").execute(), [51, "51"])
    script = one.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
    require_equal(await script(keys=["n"], args=[9]), 60)
    heard = one.pubsub()
    await heard.subscribe("a")
    await heard.get_message(timeout=PATIENCE_S)
    await one.publish("a", "1")
    require_equal((await heard.get_message(timeout=PATIENCE_S))["data"], "1")
    await heard.close()
    popped = asyncio.create_task(one.blpop("list"))
    while (await one.info("clients"))["blocked_clients"] != 1:
        await asyncio.sleep(0.01)
    await one.rpush("list", "x")
    require_equal(await popped, ("list", "x"))
    async with one.lock("lock", timeout=60):
        require_equal(await one.exists("lock"), 1)
    require_equal([key async for key in one.scan_iter("lar*")], ["large"])
    await one.close()


async def write_through_a_kill():
    one = redis.asyncio.Redis(port=PORT, decode_responses=True)
    written, unknown, killed = [], 0, None
    for number in itertools.count():
        if number >= 600 and unknown:  # It continues until it has seen the kill.
            break
        try:
            await one.pipeline().incr("counter").rpush("log", number).execute()
            written.append(number)
        except FAILURES:
            unknown += 1
            await asyncio.sleep(0.02)
        if number == 300:
            killed = asyncio.get_running_loop().run_in_executor(None, kill_server)
    await killed
    log = list(map(int, await one.lrange("log", 0, -1)))
    require_counted(len(written), unknown, int(await one.get("counter")), log)
    require(set(written) <= set(log), "an acknowledged write is lost")
    await one.close()


def asynchronous():
    asyncio.run(use_asyncio())


def asynchronous_kill():
    asyncio.run(write_through_a_kill())


PARTS = {"blocking": (values, units_scripts_and_locks, messages_waits_and_streams, kill),
         "asyncio": (asynchronous, asynchronous_kill)}
play(PARTS[sys.argv[1]])
