#!/usr/bin/python3
"""Workers of both clients among faults: threads and tasks of Python, and node.

    tests/clients/worker_faults_test.py                     the share of a test run
    tests/clients/worker_faults_test.py --campaign          each fault in full

Whatever happens: no job is lost or acknowledged twice, no handler runs on unawares under a lease
that is lost, and every worker ends.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from harness import Options, require, require_equal, run_seeded, wait_until
from harness.group import SENTINEL_NAME, Group
from harness.native_queue import DISK, Native
from harness.proxy import DROP, HALF, PASS, Proxy
from harness.python_client import url_of
from harness.servers import DEFAULT_SLUICE, LOOPBACK, steady_port
from harness.typescript_client import built
from harness.witness import KINDS, Witness, require_each_once, require_ends_known, require_idle

from sluice import Queue  # noqa: I100

EXEC = "exec"
HELD_S = 0.3  # how long the proxy holds a command or a reply
PHASES = ("pop held", "pop dropped", "pop late", "before the handler", "in the handler", "ack held",
          "ack dropped", "ack frozen", "nack held", "nack dropped", "touch held", "touch dropped",
          "backing off")


def at_once(function, *lists):
    """Calls it for each item of the lists, some at a time; joins what it returns."""
    built()
    with ThreadPoolExecutor(6) as pool:
        return "; ".join(pool.map(function, *lists))


def begin(server):
    native = Native(server, 60)
    native.config(EXEC, "SET", "crash_limit", "1000", "retain_completed", "1000000")
    return native


def add(native, count, term=None, **payload):
    """Adds jobs with this payload; the first one has `term`, as a second SIGTERM ends the grace."""
    ids = [f"job-{number}" for number in range(count)]
    for job in ids:
        task = {**payload, "term": term} if job == ids[0] else payload
        native.add(EXEC, job, json.dumps(task), "RETRY", 5)
    return ids


def wait_completed(native, count):
    wait_until(lambda: native.stats(EXEC)["completed"] >= count, 90, f"{count} are completed")


# -- A server that does not answer ----------------------------------------------------------------


def frozen(options, seconds):
    """The server is frozen while an acknowledgement is on its way, with a lease that outlives that
    and with one that does not."""
    def one(kind, lease, at):
        acks = []

        def asked(command):
            if command[0] != b"Q.ACK":
                return
            acks.append(command)
            if len(acks) == at:
                os.kill(server.pid, signal.SIGSTOP)
                threading.Timer(seconds, os.kill, (server.pid, signal.SIGCONT)).start()

        with options.server() as server:
            native = begin(server)
            with Proxy(server.port, asked=asked) as proxy, \
                    Witness(kind, proxy.port, EXEC, concurrency=4, lease=lease) as witness:
                ids = add(native, 40, ms=100)
                wait_completed(native, 40)
                witness.stop()
            require(len(acks) >= at, "it was frozen")
            return f"{kind}: " + require_each_once(native, EXEC, ids, [witness])

    chosen = [(kind, lease, at) for lease in (30, 2) for kind in KINDS for at in (1, 3)]
    return at_once(one, *zip(*(chosen if seconds > 1 else chosen[-5::2])))


def loading(options, seconds):
    """The server says LOADING for longer than the leases last, to handlers that end meanwhile and
    to those that do not."""
    def one(kind, ms):
        with options.server() as server:
            native = begin(server)
            with Proxy(server.port) as proxy, \
                    Witness(kind, proxy.port, EXEC, concurrency=4, lease=1) as witness:
                ids = add(native, 4, ms=ms)
                for _ in ids:
                    witness.wait_for("run ")
                proxy.answer = b"-LOADING Redis is loading the dataset in memory\r\n"
                proxy.cut()
                time.sleep(seconds)
                proxy.answer = None
                wait_completed(native, 4)
                witness.stop()
            heard = sum("heard" in told for told in witness.runs().values())
            require_equal(heard, 4 if ms > 1000 * seconds else 0, f"{kind}: {witness.printed()}")
            return f"{kind}: " + require_each_once(native, EXEC, ids, [witness])

    return at_once(one, KINDS * 2, [500] * 3 + [1000 * seconds + 2500] * 3)


# -- Handlers -------------------------------------------------------------------------------------


def deaf(options):
    """A handler that ignores its cancel loses its lease once the cancel's grace is over: the job
    ends cancelled, the result is not sent, and the worker continues."""
    def one(kind):
        with options.server() as server:
            native = begin(server)
            with Witness(kind, server.port, EXEC, concurrency=2, heartbeat=0.2) as witness:
                [job, _] = add(native, 2, ms=2500, deaf=True)
                wait_until(lambda: native.stats(EXEC)["active"] == 2, what="both run")
                native.cancel(EXEC, job, "GRACE", 500)
                wait_completed(native, 1)
                native.add(EXEC, "next", json.dumps({"ms": 1}))
                wait_completed(native, 2)
                witness.stop()
            require_idle(native, EXEC)
            require_equal(native.state(EXEC, job), "cancelled")
            told = sorted(witness.runs().values())
            require_equal(told, [["run", "done"], ["run", "done"], ["run", "lost"]], kind)
            return f"{kind}: lost"

    return at_once(one, KINDS)


# -- Replies that are lost ------------------------------------------------------------------------


def lossy(options, decisions):
    """Whichever replies are lost, or come in half, each job is run as if they were not."""
    def one(kind, decide):
        with options.server() as server:
            native = begin(server)
            with Proxy(server.port) as proxy, Witness(
                    kind, proxy.port, EXEC, concurrency=2, heartbeat=0.1) as witness:
                proxy.decide = decide()
                ids = add(native, 4, ms=5) + \
                    [native.add(EXEC, f"late-{n}", json.dumps({"ms": 40 * n, "fail": n % 2}),
                                "RETRY", 5)["id"].decode() for n in range(4)]
                wait_completed(native, 8)
                proxy.decide = lambda _command, _reply: PASS
                witness.stop()
            require_equal(native.stats(EXEC)["reclaimed"], 0, "leases that ran out")
            return f"{kind}: " + require_each_once(native, EXEC, ids, [witness])

    every = [(kind, decide) for decide in decisions for kind in KINDS]
    return at_once(one, *zip(*every))


def deciding(wanted, what):
    """`wanted(n)`: what happens to the n-th reply to a command of the queue."""
    def begun():
        count = iter(range(1, 1 << 30))
        lock = threading.Lock()

        def decide(command, _reply):
            with lock:
                return what if command[0].startswith(b"Q.") and wanted(next(count)) else PASS
        return decide
    return begun


# -- SIGTERM --------------------------------------------------------------------------------------


class Fault:
    """Sends SIGTERM in one phase of the loop, and does what the phase's name says."""

    def __init__(self, phase, server):
        self.name, _, self.what = phase.partition(" ")
        self.server = server
        self.witness = None
        self.sent = 0.0

    def decide(self, command, reply):
        if self.what not in ("held", "dropped") or not self._concerns(command):
            return PASS
        if self.name == "pop" and not reply.value or not self._terminate():
            return PASS
        time.sleep(HELD_S)
        return DROP if self.what == "dropped" else PASS

    def asked(self, command):
        if self.what == "late" and b"BLOCK" in command and self._concerns(command):
            self._terminate()
            time.sleep(HELD_S)  # The repeat that is to end this pop overtakes it.
        if self.what == "frozen" and self._concerns(command) and self._terminate():
            os.kill(self.server.pid, signal.SIGSTOP)
            threading.Timer(1, os.kill, (self.server.pid, signal.SIGCONT)).start()

    def restart(self):
        """SIGTERM while the server is away, and it comes back."""
        self.server.kill()
        time.sleep(0.5)
        self._terminate()
        time.sleep(0.3)
        self.server.start()

    def _concerns(self, command):
        return self.witness is not None and command[0] == f"Q.{self.name.upper()}".encode()

    def _terminate(self):
        """False if that was done before."""
        if self.sent:
            return False
        self.sent = time.monotonic()
        self.witness.terminate()
        return True


def sigterm(options, phases, kinds):
    """SIGTERM in each phase of the loop: what ends is acknowledged, all else is given back."""
    def one(kind, phase):
        with options.server({**DISK, "port": steady_port()}) as server:
            native = begin(server)
            fault = Fault(phase, server)
            with Proxy(server.port, fault.decide, fault.asked) as proxy, Witness(
                    kind, proxy.port, EXEC, concurrency=3, heartbeat=0.1, grace=20) as witness:
                wait_until(lambda: native.stats(EXEC)["waiting_pops"] == 1, what="it waits")
                fault.witness = witness
                ids = add(native, 10, ms=300 if fault.name == "backing" else 60,
                          fail=int(fault.name == "nack"),
                          term=fault.name if fault.what == "the handler" else None)
                if fault.name == "backing":
                    wait_until(lambda: native.stats(EXEC)["active"] == 3, what="three run")
                    fault.restart()
                witness.read_to_end()
                if fault.what == "late":  # It comes to the server after the worker has ended, too.
                    time.sleep(max(0.0, fault.sent + 2 * HELD_S - time.monotonic()))
            done, count, lost = require_ends_known([witness], given_back=True)
            require_idle(native, EXEC)
            states = [native.state(EXEC, job) for job in ids]
            require_equal(states.count("completed"), len(done), f"{phase}, {kind}: {states}")
            left = states.count("pending") + states.count("delayed")
            require_equal((len(done) + left, lost), (10, 0), f"{phase}, {kind}: {states}")
            require_equal(native.stats(EXEC)["reclaimed"], 0, "leases that ran out")
            took = f", {time.monotonic() - fault.sent:.1f} s" if fault.sent else ""
            return f"{phase}, {kind}: {count} runs, {left} given back{took}"

    return at_once(one, *zip(*[(kind, phase) for phase in phases for kind in kinds]))


# -- Servers that come and go ---------------------------------------------------------------------


class Producers:
    """Adds jobs all the time, until the block ends."""

    def __init__(self, url, chance, count=3):
        self.ids = []
        self.errors = []
        self._url = url
        self._chance = chance
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._produce) for _ in range(count)]

    def _produce(self):
        with Queue(EXEC, self._url, patience=60) as queue:
            while not self._ended.wait(0.01):
                try:
                    self.ids.append(queue.add({"ms": self._chance.choice((5, 30, 300))}).id)
                except Exception as error:  # pylint: disable=broad-except
                    self.errors.append(repr(error))

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        for thread in self._threads:
            thread.join(90)
        require_equal(self.errors, [], "what adding raised")


@contextlib.contextmanager
def workers_of_all(port, url, count, **options):
    """So many workers of each client."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Witness(
            kind, port, EXEC, url, workers=count, concurrency=3, **options)) for kind in KINDS]


def end_all(server, ids, witnesses):
    native = Native(server)
    wait_completed(native, len(ids))
    for witness in witnesses:
        witness.tell("stop")
    for witness in witnesses:
        witness.read_to_end()
    return require_each_once(native, EXEC, ids, witnesses)


def restarts(options, chance, count=20, seconds=20, workers=10):
    """The server is killed or stopped in turn, and starts again."""
    built()
    with options.server({**DISK, "port": steady_port()}, start_timeout_s=120.0) as server:
        begin(server)
        url = url_of(server.port)
        began = time.monotonic()
        with workers_of_all(server.port, url, workers, lease=5) as witnesses:
            with Producers(url, chance) as producers:
                for number in range(count):
                    time.sleep(max(0.4, began + number * seconds / count - time.monotonic()))
                    (server.stop if number % 2 else server.kill)()
                    server.start()
                took = time.monotonic() - began
            return f"{count} restarts in {took:.0f} s, " + end_all(server, producers.ids, witnesses)


def takeovers(options, hows, chance):
    """The primary of a group is killed, frozen or handed over while jobs run; clients find the next
    one by Sentinels."""
    built()
    with Group(options.program) as group:
        begin(group.primary())
        hosts = ",".join(f"{host}:{port}" for host, port in group.sentinels())
        url = f"redis+sentinel://{hosts}/{SENTINEL_NAME}"
        with workers_of_all(0, url, 2, lease=5, heartbeat=0.3) as witnesses:
            with Producers(url, chance, count=2) as producers:
                for how in hows:
                    time.sleep(1)
                    take_over(group, how)
            said = end_all(group.primary(), producers.ids, witnesses)
    return f"{len(hows)} takeovers, {said}"


def take_over(group, how):
    epoch, old = group.leadership()
    if how == "hand over":
        with old.connect() as connection:
            connection.call("FAILOVER")
    else:
        (old.freeze if how == "freeze" else old.crash)()
    group.wait_for_primary(after_epoch=epoch)
    old.thaw()
    wait_until(group.is_whole, what="two nodes")


def share(options, chance):
    third = deciding(lambda n: n % 3 == 0, DROP), deciding(lambda n: n % 4 == 0, HALF)
    return [
        ("frozen for 1 s while it gets an ACK", lambda: frozen(options, 1)),
        ("LOADING for longer than the leases", lambda: loading(options, 2)),
        ("a handler that ignores its cancel", lambda: deaf(options)),
        ("every third reply lost, every fourth in half", lambda: lossy(options, third)),
        ("SIGTERM around the handler", lambda: sigterm(options, PHASES[3:5], KINDS)),
        ("SIGTERM while it pops", lambda: sigterm(options, PHASES[:3], KINDS)),
        ("SIGTERM while it acknowledges", lambda: sigterm(options, PHASES[6:8], KINDS)),
        ("SIGTERM while it backs off", lambda: sigterm(options, PHASES[-1:], KINDS)),
        ("a takeover", lambda: takeovers(options, ["crash"], chance)),
    ]


def campaign(options, chance):
    each = [deciding(lambda n, nth=nth: n == nth, what)
            for what in (DROP, HALF) for nth in range(1, 26)]
    hows = ["crash", "freeze", "hand over"] * 2
    return [
        *[(f"frozen for {seconds} s while it gets an ACK", lambda s=seconds: frozen(options, s))
          for seconds in (1.1, 5, 20)],
        ("LOADING for longer than the leases", lambda: loading(options, 5)),
        ("each reply in turn lost, and in half", lambda: lossy(options, each)),
        ("SIGTERM in every phase", lambda: sigterm(options, PHASES, (*KINDS, "processes"))),
        ("20 restarts in 20 s under 10 workers of each", lambda: restarts(options, chance)),
        ("takeovers", lambda: takeovers(options, hows, chance)),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default=str(DEFAULT_SLUICE))
    parser.add_argument("--campaign", action="store_true")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    chosen = parser.parse_args()
    options, chance = Options(chosen.server, 1), random.Random(chosen.seed)
    return run_seeded((campaign if chosen.campaign else share)(options, chance), chosen.seed)


if __name__ == "__main__":
    sys.exit(main())
