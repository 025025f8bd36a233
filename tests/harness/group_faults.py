"""The faults of a group, by which tests/group/kill_test.py plays its episodes."""

import contextlib
import os
import signal
import time

from harness import require, scratch, wait_until
from harness.crash.client import Link
from harness.group import FENCED, joining
from harness.surroundings import SLOW_RECEIPT, preload

# Kill points (engine/base/kill_point.h) of a primary that writes, and of one that takes over.
WRITE_POINTS = ("frame_made", "frame_sent", "frame_committed", "before_local_write")
TAKE_POINTS = ("epoch_taken", "log_tidied", "epoch_ready", "promoted")
QUIET_S = 0.5         # longer than clocks that differ too much keep a lease of reads too long
UNDER_WAY_S = 0.1
LONG_STOP_S = 3.0     # another one leads meanwhile
MAJORITY_AWAY_S = 8.0
SILENT_S = 2.0        # replies that were on their way, and the lease of reads, have ended


class Faults:
    """The faults by name. Each returns whether another epoch must begin. `release`, when `new`
    leads in that one, ends what keeps clients from going on; `mend` ends what lasts longer. From
    `mark` on the time without an acknowledgement counts. `stops_s`: how long a stop of the primary
    lasts, at least and at most."""

    def __init__(self, group, load, registers, rng, mark, stops_s):
        self.group = group
        self.load = load
        self.registers = registers
        self.rng = rng
        self.mark = mark
        self.stops_s = stops_s
        self._releases = []
        self._mends = []

    def release(self, new):
        while self._releases:
            self._releases.pop()(new)

    def mend(self):
        while self._mends:
            self._mends.pop()()

    def kill(self, primary):
        """SIGKILL of the primary."""
        primary.crash()
        return True

    def stop(self, primary):
        """SIGSTOP of the primary: for long, and another one leads, or so shortly that it may lead
        on."""
        epoch = self.group.leadership()[0]
        exits = len(primary.exits) + 1
        stop_s = self.rng.uniform(*self.stops_s)
        ends_s = time.monotonic() + stop_s
        primary.freeze()

        def go_on():
            time.sleep(max(0.0, ends_s - time.monotonic()))
            primary.thaw()
            require(primary.wait_for_exit(exits) == FENCED, f"{primary.name}: {primary.exits}")
        if stop_s < LONG_STOP_S:
            time.sleep(stop_s)
            primary.thaw()
            self.load.wait_for_more()
            wait_until(self.group.is_whole, what="a whole group")
            if self.group.leadership()[0] == epoch:
                return False
        self._mends.append(go_on)
        return True

    def cut(self, primary):
        """The primary does not reach etcd, until another one leads."""
        self.group.cut(primary)
        self._mends.append(self._healing(primary, self.group.heal))
        return True

    def machine(self, primary):
        """The primary's machine reaches nobody, its member of etcd neither, until another one
        leads."""
        index = self.group.nodes.index(primary)
        self.group.machines.cut(index)
        self._mends.append(self._healing(primary, lambda _: self.group.machines.heal(index)))
        return True

    def quiet(self, primary):
        """The primary does not reach etcd while all that it has is durable: nothing but its lease
        keeps it from answering reads. The next one is written to at once."""
        load, registers = self._hold(self.load), self._hold(self.registers)
        self.cut(primary)

        def go_on(new):
            self.registers.turn_to(new)
            registers.close()
            time.sleep(QUIET_S)   # reads at both
            load.close()
        self._releases.append(go_on)
        return True

    def late(self, primary):
        """Frames of the primary reach etcd after another one has taken the epoch, and before that
        one has written any."""
        self.group.cut(primary)
        time.sleep(UNDER_WAY_S)
        held = self._hold(self.load, self.registers)

        def go_on(_):
            self._healing(primary, self.group.heal)()
            held.close()
        self._releases.append(go_on)
        return True

    def tidy(self, primary):
        """TIDY of the next primary reaches etcd twice: again when frames were acknowledged in the
        new epoch, which the old primary has not seen."""
        primary.kill()
        self._mends.append(primary.start)
        relays = self.group.relays[self._standby_of(primary).name]
        once = [True]

        def is_tidy(piece):
            # It removes all from one frame on, under the epoch's text.
            return b"/log0" in piece and (b" taken" in piece or b" ready" in piece) and \
                once and once.pop()
        for relay in relays:
            relay.keep(is_tidy)

        def go_on(_):
            self.load.wait_for_more()
            require(not once, "no TIDY was kept")
            for relay in relays:
                relay.deliver()
            time.sleep(UNDER_WAY_S)
        self._releases.append(go_on)
        return True

    def write(self, primary):
        """The next primary dies at a step of a frame's way."""
        point = f"{self.rng.choice(WRITE_POINTS)}:{self.rng.randint(1, 20)}"
        self._dies_at(point, self._standby_of(primary), lambda: self.failover(primary))
        return True

    def take(self, primary):
        """The primary dies, and so does the standby, at a step of its takeover."""
        def end():
            primary.kill()
            self._mends.append(primary.start)
        self._dies_at(f"{self.rng.choice(TAKE_POINTS)}:1", self._standby_of(primary), end)
        return True

    def failover(self, primary):
        """FAILOVER."""
        with primary.connect() as connection:
            reply = connection.call("FAILOVER")
        require(reply.raw == b"+OK\r\n", f"FAILOVER answered {reply}")
        return True

    def terminate(self, primary):
        """SIGTERM of the primary."""
        code = primary.stop()
        require(code == 0, f"the exit code after SIGTERM: {code}")
        self._mends.append(primary.start)
        return True

    def leader(self, _):
        """SIGKILL of etcd's leader."""
        self._kill_leader()
        return False

    def leader_stop(self, _):
        """SIGSTOP of etcd's leader."""
        etcd = self.group.etcd
        member = etcd.wait_for_leader()
        etcd.pause(member)

        def go_on():
            time.sleep(self.rng.uniform(0.0, 2.0))
            etcd.resume(member)
        self._mends.append(go_on)
        return False

    def majority(self, primary):
        """etcd has no majority for a while: when the lease of reads is over, the primary neither
        acknowledges nor reads; the standby reads on. It is no reason for a takeover."""
        etcd = self.group.etcd
        away = self.rng.sample(range(len(etcd.ports)), len(etcd.ports) // 2 + 1)
        for member in away:
            etcd.kill(member)
        ends_s = time.monotonic() + MAJORITY_AWAY_S
        time.sleep(SILENT_S)
        known = (self.load.acknowledged, self.registers.reads())
        with contextlib.closing(Link(primary.port)) as reader:
            reader.send("GET", "large")
            standby = self._standby_of(primary)
            with contextlib.closing(Link(standby.port)) as other:
                [value] = other.ask(["GET", "large"])
                require(isinstance(value, bytes), f"{standby.name} answered {value!r}")
            while (left_s := ends_s - time.monotonic()) > 0:
                require(not reader.has_input(left_s), "a read without etcd")
            now = (self.load.acknowledged, self.registers.reads())
            require(now == known, f"acknowledgements and reads without etcd: {known}, then {now}")
            for member in away:
                etcd.start(member)
            self.mark()
            value = reader.read()
            require(isinstance(value, bytes), f"{primary.name} answered {value!r}")
        return False

    def all(self, _):
        """SIGKILL of all nodes and of all of etcd, in any order."""
        etcd = self.group.etcd
        members = range(len(etcd.ports))
        ends = [node.crash for node in self.group.nodes]
        ends += [lambda member=member: etcd.kill(member) for member in members]
        self.rng.shuffle(ends)
        for end in ends:
            end()
        self.mark()
        for member in members:
            etcd.start(member)
        return True

    def power(self, primary):
        """The disks of all of etcd lose what was not synced, and all processes end."""
        self.group.etcd.lose_power()
        return self.all(primary)

    def rolling(self, _):
        """Each process is restarted, one after the other, the primary last."""
        etcd = self.group.etcd
        for member in range(len(etcd.ports)):
            etcd.stop(member)
            etcd.start(member)
            etcd.wait_until_healthy(member)
        for node in [*self.group.standbys(), self.group.primary()]:
            wait_until(self.group.is_whole, what="a whole group")
            code = node.stop()
            require(code == 0, f"the exit code after SIGTERM: {code}")
            node.start()
        return True

    def copy(self, primary):
        """SIGKILL of a third node which loads a copy of the data; then it loads another one."""
        self.group.trim(self.group.nodes)
        with contextlib.ExitStack() as stack:
            slow = preload(stack.enter_context(scratch()), self.group, "slow_receipt",
                           SLOW_RECEIPT)
            node = stack.enter_context(joining(self.group, environment=slow))
            self.mark()
            node.start_loading()
            time.sleep(self.rng.uniform(0.0, 0.5))
            node.kill()
            node.environment = None
            node.start()
            wait_until(node.is_whole, what=f"{node.name} with a copy")
            node.stop()

            def listed():
                return any(node.name in text for name, text in primary.told().items()
                           if name.startswith("sluice_group_member"))
            wait_until(lambda: not listed(), what=f"the end of the record of {node.name}")
        return False

    def both(self, primary):
        """SIGKILL of etcd's leader and of the primary."""
        self._kill_leader()
        primary.crash()
        return True

    def pause(self, primary):
        """SIGSTOP of the primary for less than 0.6 s: no takeover."""
        epoch = self.group.leadership()[0]
        began_s = time.monotonic()
        primary.freeze()
        time.sleep(self.rng.uniform(0.05, 0.3))
        primary.thaw()
        took_s = time.monotonic() - began_s   # longer if the machine has let nobody run

        def same():
            require(took_s > 0.6 or self.group.leadership() == (epoch, primary),
                    f"a pause of {took_s:.2f} s changed who leads")
        self._mends.append(same)
        return False

    def _standby_of(self, primary):
        [standby] = [node for node in self.group.nodes if node is not primary]
        return standby

    def _dies_at(self, point, standby, begin):
        """Starts the standby anew with a kill point, and waits until it has died there, for which
        `begin` makes it lead. Its next start has none."""
        standby.kill()
        kept = standby.environment
        standby.environment = {**(kept or os.environ), "SLUICE_KILL_POINT": point}
        standby.start()
        standby.environment = kept
        wait_until(self.group.is_whole, what="a whole group")
        exits = len(standby.exits) + 1
        begin()
        require(standby.wait_for_exit(exits) == -signal.SIGKILL,
                f"{point}: {standby.name} ended with {standby.exits}")

    @staticmethod
    def _hold(*those):
        held = contextlib.ExitStack()
        for one in those:
            held.enter_context(one.held())
        return held

    @staticmethod
    def _healing(primary, heal):
        exits = len(primary.exits) + 1

        def go_on():
            heal(primary)
            require(primary.wait_for_exit(exits) == FENCED, f"{primary.name}: {primary.exits}")
        return go_on

    def _kill_leader(self):
        etcd = self.group.etcd
        member = etcd.wait_for_leader()
        etcd.kill(member)
        self._mends.append(lambda: etcd.start(member))
