#!/usr/bin/python3
"""Faults of a group, one after the other, under 64 pipelined clients and two native queues.

    tests/group/kill_test.py                                the share of a test run
    tests/group/kill_test.py --kills 2000                   so many of each fault: a campaign
    tests/group/kill_test.py --kills 200 --faults kill,leader
    tests/group/kill_test.py --kills 20 --faults quiet --clocks 0.95,1.04

After each fault the event log of each queue is read on at the new primary and played
(crash/queue_story.py): every acknowledged step is there once, leases have growing tokens, no event
is missing or told otherwise than before, no cap is passed, and a pop whose reply was lost gives the
same jobs. The lists of the 64 clients hold every acknowledged number (group_load.py). Reads of
registers at the old and at the new primary respect real time (registers.py). The nodes then have
equal states at equal lsns, and none has ended by itself but as its fault wants. For each fault: how
often, the median and the longest time without an acknowledgement, and apart those beside a pause of
this machine. `BARS` says how long it may last; where a figure is longer its line says MISS, which
with `--judge` is a failure.

`--clocks`: the rates of the two nodes' clocks, without the queues. Up to ten percent apart, all of
this holds; with 0.7 and 1.3 a read is stale. What else must be found: tools/sabotage.
"""

import argparse
import contextlib
import os
import random
import signal
import statistics
import sys
import threading
import time
from typing import NamedTuple

from harness import require, run_seeded, scratch, wait_until
from harness.crash.client import Violation
from harness.crash.queue_witness import QueueWitness
from harness.disks import Disks
from harness.group import FENCED, Group
from harness.group_faults import Faults
from harness.group_load import CONNECTIONS, Load
from harness.machines import Machines
from harness.pauses import PauseProbe
from harness.registers import Registers
from harness.servers import DEFAULT_SLUICE, steady_port
from harness.wall_clock import WallClock

SHARE = {"kill": 6, "stop": 2, "cut": 1, "quiet": 1, "failover": 1, "terminate": 1, "leader": 2,
         "leader-stop": 0, "both": 1, "pause": 1, "machine": 1, "write": 1, "take": 1, "late": 0,
         "tidy": 0, "all": 0, "power": 0, "majority": 0, "rolling": 0, "copy": 0}
# Seconds without an acknowledgement: the median of a fault's episodes, if it has a bar, and the
# longest. Where etcd was away (majority, all, power) they count from its return on.
BARS = {"kill": (1.2, 2.0), "stop": (None, 2.0), "cut": (None, 2.0), "machine": (None, 2.0),
        "leader": (None, 1.5), "leader-stop": (None, 1.5), "both": (None, 3.0),
        "failover": (None, 0.3), "terminate": (None, 0.3), "rolling": (None, 0.3),
        "majority": (None, 2.0), "all": (None, 3.0), "power": (None, 3.0)}
RELAYED = {"cut", "quiet", "late", "tidy"}
APART = {"machine": "machines that are cut off", "power": "disks that lose power"}
ENDS = (0, FENCED, -signal.SIGKILL)   # exit codes that some fault wants
QUEUE_CLIENTS = 6
PACE_S = 0.2          # of the 64: their lists stay short enough to be compared
PAUSE_S = 0.05        # of the machine: episodes beside a longer one are listed apart
LONGEST_GAP_S = 10.0
SHORTEST_STOP_S = 0.5
LONGEST_STOP_S = 10.0
LONGEST_SHARED_STOP_S = 2.0   # in a test run
PATIENCE_MS = 60_000  # no read is refused while etcd is away
TOKEN = "a-token-of-the-nodes-0123456789"
MACHINE_CONNECTIONS = 16   # each by a relay


class Episode(NamedTuple):
    gap_s: float      # without an acknowledgement
    pause_s: float    # of the machine
    took_over: bool   # another epoch began


class Campaign:
    """Episodes of one group. Each leaves it whole for the next one."""

    def __init__(self, group, load, registers, probe, seed, queue_clients, longest_stop_s):
        self.group = group
        self.load = load
        self.registers = registers
        self.probe = probe
        self.rng = random.Random(f"{seed}/faults")
        self.faults = Faults(group, load, registers, self.rng, self._mark,
                             (SHORTEST_STOP_S, longest_stop_s))
        self.witness = QueueWitness(queue_clients, seed)
        self.episodes = {}  # by their fault
        self.kept = 0       # commands in flight that have happened
        self.reads = 0      # of registers
        self.witness.prepare(group.primary().port)

    def takeovers(self):
        return sum(one.took_over for episodes in self.episodes.values() for one in episodes)

    def episode(self, fault):
        epoch, primary = self.group.leadership()
        exits = {node: len(node.exits) for node in self.group.nodes}
        with contextlib.ExitStack() as reading:
            reading.enter_context(self.registers.read_at(primary))
            gap_s, pause_s = self._play(fault, reading)
        took_over = self.group.leadership()[0] != epoch
        self.episodes.setdefault(fault, []).append(Episode(gap_s, pause_s, took_over))
        self._verify(exits)
        if gap_s > LONGEST_GAP_S:
            raise Violation(f"{fault}: {gap_s:.2f} s without an acknowledgement")

    def _mark(self):
        self.probe.longest_s()
        self.load.mark()

    def _play(self, fault, reading):
        """Returns the longest gap, and the machine's longest pause."""
        epoch, primary = self.group.leadership()
        stop = threading.Event()
        for client in self.witness.clients:
            client.start(primary.port, stop)
        stop.wait(self.rng.uniform(0.1, 0.6))
        self._mark()
        if getattr(self.faults, fault.replace("-", "_"))(primary):
            new = self.group.wait_for_primary(after_epoch=epoch)
            reading.enter_context(self.registers.read_at(new))
            self.faults.release(new)
        gap_s, pause_s = self.load.wait_for_more(), self.probe.longest_s()
        self.faults.mend()
        stop.set()
        for client in self.witness.clients:
            client.join()
        return gap_s, pause_s

    def _verify(self, exits):
        for node, count in exits.items():
            if strange := set(node.exits[count:]).difference(ENDS):
                raise Violation(f"{node.name} ended with {strange}:\n{node.log_tail()}")
        self.reads += self.registers.verify()
        port = wait_until(self.group.find_primary, what="a primary")
        if self.witness.clients:
            self.kept += self.witness.verify(port)
        with self.load.held(), self.registers.held():
            self.group.wait_in_sync()

    def report(self):
        """Returns the faults whose bars are missed by episodes that no pause of the machine has
        made longer."""
        missed = []
        for fault, episodes in self.episodes.items():
            calm = [one.gap_s for one in episodes if one.pause_s <= PAUSE_S]
            beside = [one.gap_s for one in episodes if one.pause_s > PAUSE_S]
            told = [f"{len(gaps)} {what}: median {statistics.median(gaps):.2f} s, "
                    f"worst {max(gaps):.2f} s"
                    for gaps, what in ((calm, "calm"), (beside, "beside a pause of the machine"))
                    if gaps]
            told.append(f"takeovers: {sum(one.took_over for one in episodes)}")
            if calm and misses(fault, calm):
                missed.append(fault)
                told.append("MISS: the bars are " + " and ".join(
                    f"{what} {bar} s" for what, bar in zip(("median", "worst"), BARS[fault])
                    if bar))
            elif not calm and fault in BARS:
                missed.append(fault)
                told.append("MISS: no calm episode to judge")
            print(f"  {fault:12}{len(episodes):5}  {'; '.join(told)}", flush=True)
        return missed


def misses(fault, gaps):
    median_s, worst_s = BARS.get(fault, (None, None))
    return (median_s and statistics.median(gaps) > median_s) or (worst_s and max(gaps) > worst_s)


@contextlib.contextmanager
def group_for(program, episodes, rates):
    """A group that can have these faults."""
    with contextlib.ExitStack() as stack:
        settings = {"relayed": not RELAYED.isdisjoint(episodes), "directives": {}}
        if rates:
            clock = WallClock(stack.enter_context(scratch()))
            settings["environments"] = [clock.environment(boot_rate=rate) for rate in rates]
        if "machine" in episodes:
            settings["machines"] = stack.enter_context(Machines(3))
        if "power" in episodes:
            settings["etcd"] = {"disks": stack.enter_context(Disks(3))}
        if "majority" in episodes:
            settings["directives"]["journal-patience"] = PATIENCE_MS
        if "copy" in episodes:
            path = os.path.join(stack.enter_context(scratch()), "token")
            with open(path, "w", encoding="utf-8") as file:
                file.write(TOKEN + "\n")
            settings["directives"]["replication-token-file"] = path
            settings["of_node"] = lambda: {"http-port": steady_port()}
        yield stack.enter_context(Group(program, **settings))


def run(program, episodes, seed, rates=(), judge=False, longest_stop_s=LONGEST_STOP_S):
    """Plays the episodes, a list of faults."""
    with group_for(program, episodes, rates) as group, PauseProbe() as probe:
        connections = MACHINE_CONNECTIONS if group.machines else CONNECTIONS
        with Load(group, connections, PACE_S) as load, Registers(group) as registers:
            # The times that replies show follow each node's clock (QUEUE.md): a story knows one.
            campaign = Campaign(group, load, registers, probe, seed,
                                0 if rates else QUEUE_CLIENTS, longest_stop_s)
            began_s = time.monotonic()
            try:
                for number, fault in enumerate(episodes, 1):
                    try:
                        campaign.episode(fault)
                    except Exception:
                        print(f"in episode {number}, {fault}:")
                        raise
                    if number % 50 == 0:
                        print(f"  {number} of {len(episodes)} after "
                              f"{time.monotonic() - began_s:.0f} s", flush=True)
            finally:
                missed = campaign.report()
        acknowledged, others = load.verify()
    commands = sum(client.acknowledged for client in campaign.witness.clients)
    require(not (judge and missed), f"the bars of {', '.join(missed)} are missed")
    return (f"{len(episodes)} faults, {campaign.takeovers()} takeovers, {acknowledged + commands} "
            f"acknowledged, lost 0; {others + campaign.kept} more whose replies were lost; "
            f"{campaign.reads} reads, none stale")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default=str(DEFAULT_SLUICE))
    parser.add_argument("--kills", type=int, help="how often each fault")
    parser.add_argument("--faults", default=",".join(SHARE), help="those of " + ", ".join(SHARE))
    parser.add_argument("--clocks", help="the rates of the two nodes' clocks, as 0.95,1.04")
    parser.add_argument("--judge", action="store_true", help="missed bars are failures")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2 ** 32))
    arguments = parser.parse_args()
    names = arguments.faults.split(",")
    if unknown := set(names) - set(SHARE):
        parser.error(f"{', '.join(unknown)}: the faults are {', '.join(SHARE)}")
    rates = [float(rate) for rate in arguments.clocks.split(",")] if arguments.clocks else ()
    if rates and len(rates) != 2:
        parser.error("--clocks: one rate for each of two nodes, as 0.95,1.04")
    episodes = [name for name in names for _ in range(arguments.kills or SHARE[name])]
    random.Random(arguments.seed).shuffle(episodes)
    runs = []
    longest_stop_s = LONGEST_STOP_S if arguments.kills else LONGEST_SHARED_STOP_S
    together = [fault for fault in episodes if fault not in APART]
    for title, some in [("a group under faults", together)] + [
            (title, [fault for fault in episodes if fault == apart])
            for apart, title in APART.items()]:
        if some:
            runs.append((title, lambda some=some: run(arguments.server, some, arguments.seed,
                                                      rates, arguments.judge,
                                                      longest_stop_s)))
    return run_seeded(runs, arguments.seed)


if __name__ == "__main__":
    # What is ended in the middle tells what it has, and ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
