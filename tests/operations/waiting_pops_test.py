#!/usr/bin/python3
"""Many waiting clients are served, and closed, in slices: others do not wait, order is kept."""

import contextlib
import multiprocessing
import signal
import socket
import subprocess
import sys
import time

import harness
from harness import (
    allow_files, info, need_program, open_files, require, require_equal, stopped, wait_until)
from harness.holds import Probe, require_short
from harness.resp import Connection, encode
from harness.servers import LOOPBACK

WAITING = 10_000
MANY_QUEUES = 1_000
CLIENTS = {"appendonly": "yes", "maxclients": "12000"}
QUEUE = "{q}"
ESTABLISHED, FIN_WAIT1 = 1, 4  # netinet/tcp.h


def blocked(server, control, commands):
    """Connections that wait, in this order."""
    connections = []
    for command in commands:
        connection = server.connect()
        connection.send(*command)
        connections.append(connection)
    wait_until(lambda: info(control, "clients")["blocked_clients"] == str(len(connections)),
               what="the waiting")
    return connections


def pop(queue):
    return ("Q.POP", "1", queue, "BLOCK", "0")


def adds(queue, count):
    return [("Q.ADD", queue, str(number), "payload") for number in range(count)]


def popped_id(reply):
    return int(reply.value[0][reply.value[0].index(b"id") + 1])


def require_order(options, connections):
    """The first who waits has the first job, and so on. Several I/O threads do not read in the
    order in which the connections have sent."""
    ids = [popped_id(connection.read_reply()) for connection in connections]
    if options.io_threads > 1:
        ids.sort()
    require_equal(ids, list(range(len(connections))), "the jobs of the pops")


def close_all(connections):
    for connection in connections:
        connection.close()


def is_ended(connection):
    """The server's system has the end of what this one sends."""
    state = connection.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    return state not in (ESTABLISHED, FIN_WAIT1)


def end_all(connections):
    for connection in connections:
        connection.socket.shutdown(socket.SHUT_WR)
    wait_until(lambda: all(map(is_ended, connections)), what="the ends")


def measure_pause(options, waiting=WAITING, journal="yes", question=("PING",)):
    with options.server({**CLIENTS, "appendonly": journal}) as server, \
            Probe(server, *question) as held, server.connect() as control:
        control.call("Q.CONFIG", QUEUE, "SET", "paused", "out")
        control.pipeline(adds(QUEUE, waiting))
        connections = blocked(server, control, [pop(QUEUE)] * waiting)
        held.begin()
        resumed = control.call("Q.CONFIG", QUEUE, "SET", "paused", "none")
        require_equal(resumed.raw, b"+OK\r\n")
        require_order(options, connections)
        longest = held.end()
        close_all(connections)
    return longest


def test_pause_lifted(options):
    """The end of a pause gives 10,000 waiting pops their jobs in their order, and holds nobody."""
    allow_files(WAITING)
    require_short(lambda: measure_pause(options))
    require_short(lambda: measure_pause(options, WAITING, "no", ("GET", "{q}key")))


def measure_transaction(options, count=WAITING):
    """How much longer than without those who wait."""
    with options.server(CLIENTS) as server, Probe(server) as held, server.connect() as control:
        longest = {}
        for queue, waiting in (("{q}alone", 0), (QUEUE, count)):
            connections = blocked(server, control, [pop(queue)] * waiting)
            control.pipeline([("MULTI",), *adds(queue, count)])
            held.begin()
            control.call("EXEC")
            require_order(options, connections)
            longest[queue] = held.end()
            close_all(connections)
    alone = longest["{q}alone"].ran_ms
    return longest[QUEUE]._replace(ran_ms=longest[QUEUE].ran_ms - alone)


def test_transaction_of_adds(options):
    """What a transaction adds goes to 10,000 waiting pops in their order; it holds nobody for
    longer than without them."""
    allow_files(WAITING)
    require_short(lambda: measure_transaction(options))


def measure_many_queues(options, count=MANY_QUEUES):
    with options.server(CLIENTS) as server, Probe(server) as held, server.connect() as control:
        queues = [f"queue {number}" for number in range(count)]
        connections = blocked(server, control, [pop(queue) for queue in queues])
        held.begin()
        control.pipeline([("Q.ADD", queue, "0", "payload") for queue in queues])
        for connection in connections:
            require_equal(popped_id(connection.read_reply()), 0, "the job of a pop")
        longest = held.end()
        close_all(connections)
    return longest


def test_adds_to_many_queues(options):
    """Pipelined adds to 1,000 queues where somebody waits hold nobody."""
    allow_files(WAITING)
    require_short(lambda: measure_many_queues(options))


def hold_blocked(port, command, count, orders):
    """Makes connections that wait, and has them as long as its process lives."""
    connections = []
    for _ in range(count):
        connection = Connection(LOOPBACK, port)
        connection.send_bytes(encode(("AUTH", "worker", "secret")) + encode(command))
        connections.append(connection)
    orders.send("ready")
    signal.pause()


def begin_holder(server, control, command, count):
    orders, theirs = multiprocessing.Pipe()
    holder = multiprocessing.Process(
        target=hold_blocked, args=(server.port, command, count, theirs), daemon=True)
    holder.start()
    orders.recv()
    wait_until(lambda: info(control, "clients")["blocked_clients"] == str(count))
    return holder


def has_lost(server, before):
    """All but a few connections since it had `before` files. INFO would look at each client."""
    return len(open_files(server.pid)) < before + 10


def measure_lost(server, control, held, command, killed, count=WAITING):
    before = len(open_files(server.pid))
    holder = begin_holder(server, control, command, count)
    if killed:
        held.begin("CLIENT", "KILL", "USER", "worker")
    else:
        held.begin()
        holder.kill()
    wait_until(lambda: time.sleep(0.1) or has_lost(server, before), what="the ends")
    longest = held.end()
    wait_until(lambda: info(control, "clients")["blocked_clients"] == "0", what="the last ends")
    holder.kill()
    holder.join()
    return longest


@contextlib.contextmanager
def server_with_worker(options):
    """A server with a user of those who wait, a probe and a connection."""
    with options.server(CLIENTS) as server, Probe(server) as held, server.connect() as control:
        control.call("ACL", "SETUSER", "worker", "on", ">secret", "+@all", "~*", "&*")
        yield server, control, held


def test_lost_connections(options):
    """The end of 10,000 connections that wait holds nobody: by CLIENT KILL, or of a process that
    dies."""
    allow_files(WAITING)
    with server_with_worker(options) as place:
        for command in (pop(QUEUE), ("BLPOP", "{q}list", "0")):
            for killed in (True, False):
                require_short(lambda: measure_lost(*place, command, killed))


def test_ended_together(options):
    """What is added behind the ends of many connections that wait stays where it is."""
    if options.io_threads != 1:
        return  # another thread may add before the ends are noticed
    count = 100
    with options.server() as server, server.connect() as control:
        for command, added, taken in (
                (pop(QUEUE), adds(QUEUE, count), ("Q.POP", "1", QUEUE, "COUNT", str(count))),
                (("BLPOP", "{q}list", "0"), [("RPUSH", "{q}list", "item")] * count,
                 ("LPOP", "{q}list", str(count)))):
            connections = blocked(server, control, [command] * count)
            with stopped(server.pid):
                end_all(connections)
                control.send_bytes(b"".join(map(encode, added)))
            for _ in added:
                require(not control.read_reply().is_error, command[0])
            close_all(connections)
            require_equal(len(control.call(*taken).value), count, f"what {command[0]} has left")


def test_idle_connections(options):
    """The end of 10,000 idle connections by `timeout` holds nobody."""
    allow_files(WAITING)
    with options.server(CLIENTS) as server, Probe(server) as held, server.connect() as control:
        def measure():
            control.call("CONFIG", "SET", "timeout", "0")
            before = len(open_files(server.pid))
            connections = [server.connect() for _ in range(WAITING)]
            wait_until(lambda: info(control, "clients")["connected_clients"] == str(WAITING + 2))
            held.begin("CONFIG", "SET", "timeout", "1")
            # This one is not idle.
            wait_until(lambda: time.sleep(0.1) or (control.call("PING") and
                                                   has_lost(server, before)), what="the ends")
            wait_until(lambda: info(control, "clients")["connected_clients"] == "2",
                       what="the last ends")
            longest = held.end()
            control.call("CONFIG", "SET", "timeout", "0")  # from now on the probe is idle
            close_all(connections)
            return longest
        require_short(measure)


def test_mail_of_subscribers(options):
    """Messages do not wait in the server where no limit counts them."""
    if options.io_threads != 1:
        return
    limit = {"client-output-buffer-limit": "pubsub 2mb 0 0", "appendonly": "no"}
    with options.server(limit) as server, server.connect() as control, \
            server.connect() as subscriber:
        subscriber.call("SUBSCRIBE", "news")
        before = int(info(control, "memory")["used_memory"])
        control.send_bytes(encode(("PUBLISH", "news", "m" * 100)) * 200_000 +
                           encode(("INFO", "memory")))
        for _ in range(200_000):
            control.read_reply()
        after = int(control.read_reply().value.split(b"used_memory:")[1].split()[0])
        require(after - before < 16 << 20, f"{after - before} bytes more")


def test_killed(options):
    """A client that is killed executes nothing after the reply of CLIENT KILL, and is not
    listed."""
    with options.server() as server, server.connect() as control:
        victims = [server.connect() for _ in range(300)]
        for victim in victims:
            victim.call("PING")
        busy = "local t = redis.call('TIME') repeat local n = redis.call('TIME') " \
            "until (n[1] - t[1]) * 1e6 + n[2] - t[2] > 300000"
        control.send_bytes(
            encode(("CLIENT", "KILL", "TYPE", "normal")) + encode(("CLIENT", "LIST")) +
            encode(("EVAL", busy, "0")))
        time.sleep(0.1)
        for victim in victims:
            victim.send("INCR", "executed")
        require_equal(control.read_reply().value, len(victims), "killed")
        require_equal(control.read_reply().value.count(b"\n"), 1, "listed")
        control.read_reply()
        wait_until(lambda: info(control, "clients")["connected_clients"] == "1")
        require_equal(control.call("GET", "executed").value, None, "executed")
        close_all(victims)


def test_half_closed(options):
    """A pop that waits for its turn is answered though its client has said all."""
    with options.server() as server, server.connect() as control:
        control.call("Q.CONFIG", QUEUE, "SET", "paused", "out")
        control.pipeline(adds(QUEUE, 1001))
        connections = blocked(server, control, [pop(QUEUE)] * 1000)
        with server.connect() as late:
            late.send_bytes(encode(("Q.CONFIG", QUEUE, "SET", "paused", "none")) +
                            encode(("Q.POP", "1", QUEUE)) + encode(("PING",)))
            late.socket.shutdown(socket.SHUT_WR)
            require_equal(late.read_reply().raw, b"+OK\r\n")
            require_equal(popped_id(late.read_reply()), 1000, "the job of the late pop")
            require_equal(late.read_reply().raw, b"+PONG\r\n")
            require(late.at_end(5), "the connection is closed")
        close_all(connections)


def test_short_connections(options):
    """Connections that come and go do not pile up while all turns are full."""
    allow_files(WAITING)
    need_program("redis-benchmark")
    with options.server({"maxclients": "2000", "appendonly": "no"}) as server, \
            server.connect() as control:
        loads = [subprocess.Popen(["redis-benchmark", "-p", str(server.port), "-q", "-n",
                                   "100000000", "-t", "ping_mbulk", *map(str, words)],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                 for words in (("-c", 600, "-P", 8), ("-c", 200, "-k", 0))]
        time.sleep(4)
        for load in loads:
            load.kill()
            load.wait()
        require_equal(info(control, "stats")["rejected_connections"], "0", "refused")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__], io_threads=(1, 2)))
