#!/usr/bin/python3
"""Who waits is served, and lost, in slices: nobody else waits for it, and the order is kept."""

import multiprocessing
import pathlib
import resource
import signal
import sys
import time

import harness
from harness import info, require, require_equal, wait_until
from resp import Connection, encode
from servers import LOOPBACK

WAITING = 10_000
MANY_QUEUES = 1_000
LONGEST_HOLD_MS = 10
TRIES = 3
CLIENTS = {"appendonly": "yes", "maxclients": "12000"}
QUEUE = "{q}"


def run_times_ms(pid):
    """What each I/O thread has run so far: pauses of the machine are not in it."""
    times = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().startswith("sluice-io"):
            times.append(int((task / "schedstat").read_text().split()[0]) / 1e6)
    return times


def probe(port, pid, question, orders):
    """Asks again and again, and says what an I/O thread ran meanwhile at most."""
    with Connection(LOOPBACK, port) as connection:
        while True:
            if first := orders.recv():
                connection.call(*first)
            longest = 0.0
            while not orders.poll(0.0002):
                before = run_times_ms(pid)
                connection.call(*question)
                after = run_times_ms(pid)
                longest = max(longest, *(b - a for a, b in zip(before, after)))
            orders.recv()
            orders.send(longest)


class Probe:
    """The longest hold of somebody else between begin() and end(), by the I/O threads' own time:
    PING waits for no disk, GET for the lock of the queue's shard. Its process has none of the
    connections that come later."""

    def __init__(self, server, *question):
        self.orders, orders = multiprocessing.Pipe()
        self.process = multiprocessing.Process(
            target=probe, args=(server.port, server.process.pid, question or ("PING",), orders),
            daemon=True)
        self.process.start()

    def begin(self, *first):
        """`first`: a command of its own, which is not counted; what follows it is."""
        self.orders.send(first)
        time.sleep(0.05)

    def end(self):
        self.orders.send("end")
        return self.orders.recv()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.join()


def allow_files():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    require(hard >= WAITING + 100, f"{hard} open files are allowed")


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


def require_short(measure):
    """The time of a thread has what the machine under this one takes away, so the best of a few
    counts. What holds somebody does so each time."""
    took = []
    for _ in range(TRIES):
        took.append(measure())
        if took[-1] < LONGEST_HOLD_MS:
            return
    raise AssertionError(", ".join(f"{ms:.1f} ms" for ms in took))


def measure_pause(options, journal, question):
    with options.server({**CLIENTS, "appendonly": journal}) as server, \
            Probe(server, *question) as held, server.connect() as control:
        control.call("Q.CONFIG", QUEUE, "SET", "paused", "out")
        control.pipeline(adds(QUEUE, WAITING))
        connections = blocked(server, control, [pop(QUEUE)] * WAITING)
        held.begin()
        resumed = control.call("Q.CONFIG", QUEUE, "SET", "paused", "none")
        require_equal(resumed.raw, b"+OK\r\n")
        require_order(options, connections)
        longest = held.end()
        close_all(connections)
    return longest


def test_pause_lifted(options):
    """The end of a pause gives 10,000 waiting pops their jobs in their order, and holds nobody."""
    allow_files()
    require_short(lambda: measure_pause(options, "yes", ("PING",)))
    require_short(lambda: measure_pause(options, "no", ("GET", "{q}key")))


def measure_transaction(options):
    """How much longer than without those who wait."""
    with options.server(CLIENTS) as server, Probe(server) as held, server.connect() as control:
        longest = {}
        for queue, waiting in (("{q}alone", 0), (QUEUE, WAITING)):
            connections = blocked(server, control, [pop(queue)] * waiting)
            control.pipeline([("MULTI",), *adds(queue, WAITING)])
            held.begin()
            control.call("EXEC")
            require_order(options, connections)
            longest[queue] = held.end()
            close_all(connections)
    return longest[QUEUE] - longest["{q}alone"]


def test_transaction_of_adds(options):
    """What a transaction adds goes to 10,000 waiting pops in their order; it holds nobody for
    longer than without them."""
    allow_files()
    require_short(lambda: measure_transaction(options))


def measure_many_queues(options):
    with options.server(CLIENTS) as server, Probe(server) as held, server.connect() as control:
        queues = [f"queue {number}" for number in range(MANY_QUEUES)]
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
    allow_files()
    require_short(lambda: measure_many_queues(options))


def hold_blocked(port, command, orders):
    """Makes connections that wait, and has them as long as its process lives."""
    connections = []
    for _ in range(WAITING):
        connection = Connection(LOOPBACK, port)
        connection.send_bytes(encode(("AUTH", "worker", "secret")) + encode(command))
        connections.append(connection)
    orders.send("ready")
    signal.pause()


def begin_holder(server, control, command):
    orders, theirs = multiprocessing.Pipe()
    holder = multiprocessing.Process(
        target=hold_blocked, args=(server.port, command, theirs), daemon=True)
    holder.start()
    orders.recv()
    wait_until(lambda: info(control, "clients")["blocked_clients"] == str(WAITING))
    return holder


def measure_lost(server, control, held, command, killed):
    holder = begin_holder(server, control, command)
    if killed:
        held.begin("CLIENT", "KILL", "USER", "worker")
    else:
        held.begin()
        holder.kill()
    time.sleep(1)  # INFO would look at each client
    longest = held.end()
    require_equal(info(control, "clients")["blocked_clients"], "0", "who waits")
    holder.kill()
    holder.join()
    return longest


def test_lost_connections(options):
    """The end of 10,000 connections that wait holds nobody: by CLIENT KILL, or of a process that
    dies."""
    allow_files()
    with options.server(CLIENTS) as server, Probe(server) as held, server.connect() as control:
        control.call("ACL", "SETUSER", "worker", "on", ">secret", "+@all", "~*", "&*")
        for command in (pop(QUEUE), ("BLPOP", "{q}list", "0")):
            for killed in (True, False):
                require_short(lambda: measure_lost(server, control, held, command, killed))


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__], io_threads=(1, 2)))
