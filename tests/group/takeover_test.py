#!/usr/bin/python3
"""A group of two nodes loses its primary in every way, under 64 clients: the other one continues.

Nothing that was acknowledged is lost, nothing is there twice (harness/group_load.py), no read tells
an older state than one that was known before (harness/registers.py), and the nodes end with equal
states.
"""

import contextlib
import random
import sys
import time

import harness
from harness import require, require_equal, scratch, wait_until
from harness.crash.client import Link
from harness.crash.queue_story import pairs
from harness.group import FENCED, PATIENT, RESTARTED, Group, kept_group, require_roles
from harness.group_load import Load
from harness.holds import measured
from harness.registers import Registers
from harness.servers import LOOPBACK
from harness.surroundings import refuse_sanitizers
from harness.wall_clock import WallClock

LONGEST_GAP_S = 10.0     # on a machine that does much else; campaigns measure
SLOW_MS = 3000           # failover-timeout and journal-patience: far from a pause of the machine
PLANNED_GAP_S = 2.0
PATIENCE_MS = 1500
HOUR_MS = 3_600_000
LONGEST_START_S = 60.0
NEAR_S = 1.0          # kNearMs
FEW_UNITS = 1000      # kFewUnits
REFUSED_MS = 2500     # after which a hand-over that waits is refused
SLOW_LEASE_S = 0.9 * SLOW_MS / 1000   # of reads
RUN_S = """
local began = redis.call('TIME')[1]
while redis.call('TIME')[1] - began < tonumber(ARGV[1]) do end
return redis.status_reply('OK')
"""


def group_of_two(options):
    return kept_group(options.program, directives={"journal-patience": PATIENCE_MS})


def patient_group(options):
    return kept_group(options.program, directives={"failover-timeout": SLOW_MS,
                                                   "journal-patience": SLOW_MS})


def take_over(group, load, fault):
    """The primary has this fault; returns it, the new one, and the gap."""
    epoch, old = group.leadership()
    time.sleep(random.uniform(0.1, 0.4))
    load.mark()
    fault(old)
    new = group.wait_for_primary(after_epoch=epoch)
    return old, new, load.wait_for_more()


def finish(group, load, gap_s, limit_s=LONGEST_GAP_S):
    """After the load: all of it is there, on all nodes."""
    acknowledged, others = load.verify()
    lsn = group.wait_in_sync()
    require_roles(group, group.primary())
    print(f"       gap {gap_s:.2f} s; {acknowledged} acknowledged, none lost, {others} others; "
          f"equal at lsn {lsn}")
    require(gap_s < limit_s, f"the gap of {gap_s:.2f} s")


def ask(node, *commands):
    with contextlib.closing(Link(node.port)) as link:
        return link.ask(*commands)


def is_error(reply, code):
    return getattr(reply, "text", "").startswith(code)


def test_roles(options):
    """a write on the primary is read on the standby, which refuses writes"""
    with group_of_two(options) as group:
        primary, standby = group.primary(), group.standby()
        require_roles(group, primary)
        require_equal(ask(primary, ["SET", "k", "v"]), ["OK"], "a write")
        wait_until(lambda: ask(standby, ["GET", "k"]) == [b"v"], 5.0, "the write at the standby")
        refused, role = ask(standby, ["SET", "k", "w"], ["ROLE"])
        require(is_error(refused, "READONLY You can't write against a read only replica."), refused)
        require_equal(role[:3], [b"slave", b"127.0.0.1", primary.port], "ROLE of the standby")
        require_equal(ask(primary, ["GET", "k"], ["ROLE"])[1][0], b"master", "ROLE of the primary")
        [refused] = ask(standby, ["SAVE"])
        require(is_error(refused, "ERR SAVE is refused at a standby"), refused)
        def saved():
            return int(standby.told("persistence")["sluice_checkpoints_completed"])
        before = saved()
        ask(standby, ["BGSAVE"])
        wait_until(lambda: saved() > before, what="a checkpoint of the standby")
        for node in group.nodes:
            require_equal(group.asks_sentinel(node.sentinel_port), primary.port, "by Sentinel")
        group.wait_in_sync()


def test_killed(options):
    """SIGKILL of the primary: the standby takes over, the killed one comes back as a standby"""
    with group_of_two(options) as group:
        with Load(group) as load:
            _, _, gap_s = take_over(group, load, lambda node: node.crash())
        finish(group, load, gap_s)


def test_stopped(options):
    """SIGSTOP of the primary for 3 s: it exits 76, and answers no read of an old state"""
    with group_of_two(options) as group, Load(group) as load:
        with Registers(group) as registers:
            with registers.read_at(group.primary()):
                wait_until(lambda: registers.reads() > 50, what="reads")
                began_s = time.monotonic()
                old, _, gap_s = take_over(group, load, lambda node: node.freeze())
                time.sleep(max(0.0, began_s + 3.0 - time.monotonic()))
                old.thaw()
                require_equal(old.wait_for_exit(1), FENCED, "the exit code")
                load.wait_for_more()
            print(f"       {registers.verify()} reads of the old primary")
        load.stop()
        finish(group, load, gap_s)


def test_cut(options):
    """the primary reaches no etcd: the other one leads; the old one answers nothing that is old"""
    with kept_group(options.program, directives={"journal-patience": PATIENCE_MS},
                    relayed=True) as group, Load(group) as load:
        with Registers(group) as registers:
            with registers.read_at(group.primary()):
                wait_until(lambda: registers.reads() > 50, what="reads")
                old, _, gap_s = take_over(group, load, group.cut)
                [refused] = ask(old, ["GET", "k"])
                require(is_error(refused, "NOREPLICAS"), refused)
                group.heal(old)
                require_equal(old.wait_for_exit(1), FENCED, "the exit code")
                load.wait_for_more()
            print(f"       {registers.verify()} reads of the old primary")
        load.stop()
        finish(group, load, gap_s)


def test_short_stop(options):
    """SIGSTOP of the primary for 0.4 of failover-timeout changes nobody's role"""
    with patient_group(options) as group, Load(group) as load:
        epoch, node = group.leadership()
        node.freeze()
        time.sleep(0.4 * SLOW_MS / 1000)
        node.thaw()
        load.wait_for_more()
        time.sleep(SLOW_MS / 1000)
        require_equal(group.leadership(), (epoch, node), "who leads")
        load.stop()
        load.verify()


def test_majority_gone(options):
    """without etcd's majority nothing is acknowledged, and reads end; then all resumes"""
    with patient_group(options) as group:
        epoch, primary = group.leadership()
        standby = group.standby()
        require_equal(ask(primary, ["SET", "k", "v"], ["INCR", "n"]), ["OK", 1], "writes")
        wait_until(lambda: ask(standby, ["GET", "n"]) == [b"1"], what="the writes at the standby")
        away = [0, 1]
        for member in away:
            group.etcd.kill(member)
        since_s = time.monotonic()
        with contextlib.closing(Link(primary.port)) as pending:
            pending.send("INCR", "n")   # executed, and not acknowledged
            time.sleep(SLOW_LEASE_S + 0.1)
            began_s = time.monotonic()
            refusals = ask(primary, ["GET", "k"], ["INCR", "n"])
            for refused in refusals:
                require(is_error(refused, "NOREPLICAS Not enough good replicas to write."), refused)
            held_s = time.monotonic() - began_s
            require(time.monotonic() - since_s > SLOW_MS / 1000, f"held for {held_s:.2f} s")
            require_equal(ask(standby, ["GET", "k"]), [b"v"], "a read of the standby")
            require(not pending.has_input(0.5), "nothing is acknowledged")
            require("replicated log" in primary.told()["sluice_group_waits_for"], "what it says")
            for member in away:
                group.etcd.start(member)
            back_s = time.monotonic()
            require_equal(pending.read(), 2, "the write that was pending")
            print(f"       refused after {held_s:.2f} s, acknowledged "
                  f"{time.monotonic() - back_s:.2f} s after etcd's start")
        wait_until(lambda: ask(primary, ["INCR", "n"]) == [3], what="a write")
        require_equal(group.leadership(), (epoch, primary), "who leads")
        require_equal([node.exits for node in group.nodes], [[], []], "exits")
        group.wait_in_sync()


def hand_overs(node):
    return node.log_tail(10_000).count("handing the group over")


def test_hand_over_without_majority(options):
    """without etcd's majority a hand-over keeps requests waiting for journal-patience at most"""
    for idle in (True, False):
        with patient_group(options) as group:
            epoch, primary = group.leadership()
            require_equal(ask(primary, ["SET", "k", "v"]), ["OK"], "a write")
            before = hand_overs(primary)
            away = [0, 1]
            for member in away:
                group.etcd.kill(member)
            with contextlib.closing(Link(primary.port)) as asking:
                if not idle:
                    asking.send("INCR", "n")   # executed, and not acknowledged
                asking.send("FAILOVER")
                # Replies wait for what was executed before them, so only the log tells.
                wait_until(lambda: hand_overs(primary) > before, what="the hand-over")
                [refused] = ask(primary, ["GET", "k"])
                require(is_error(refused, "NOREPLICAS"), refused)
                for member in away:
                    group.etcd.start(member)
                if not idle:
                    require_equal(asking.read(), 1, "the write that was pending")
                require_equal(asking.read(), "OK", "the hand-over was begun")
            if idle:
                require_equal(primary.wait_for_exit(1), FENCED, "the exit code")
                group.wait_for_primary(after_epoch=epoch)
            else:
                wait_until(lambda: ask(primary, ["INCR", "n"]) == [2], what="a write")
                require_equal(group.leadership(), (epoch, primary), "who leads")


def hand_over(group, load, how, code):
    """The primary gives the group away and exits with this code; returns the best gap of three."""
    def gap():
        exits = {node: len(node.exits) for node in group.nodes}
        old, new, gap_s = take_over(group, load, how)
        require(new is not old, "another node leads")
        require_equal(old.wait_for_exit(exits[old] + 1), code, "the exit code")
        old.start()
        wait_until(group.is_whole, what="the old one as a standby")
        return gap_s
    return min(measured(gap, lambda gap_s: gap_s < PLANNED_GAP_S))


def test_handed_over(options):
    """FAILOVER gives the group away; SIGTERM does, and exits 0"""
    with group_of_two(options) as group:
        with Load(group) as load:
            def fail_over(node):
                require_equal(ask(node, ["FAILOVER"]), ["OK"], "FAILOVER")
            asked_gap_s = hand_over(group, load, fail_over, FENCED)
            gap_s = hand_over(group, load, lambda node: node.stop(), 0)
        print(f"       FAILOVER: gap {asked_gap_s:.2f} s; SIGTERM:")
        finish(group, load, max(gap_s, asked_gap_s), PLANNED_GAP_S)


def write(node, commands):
    with contextlib.closing(Link(node.port)) as link:
        replies = link.ask(*[["SET", f"k{number % 1000}", "v"] for number in range(commands)])
        require_equal(set(replies), {"OK"}, "writes")


def told_of(primary, standby):
    """{"state": ..., "offset": ...} as INFO of the primary has it; empty: it is not listed."""
    for name, text in primary.told().items():
        if name.startswith("slave") and f",port={standby.port}," in text:
            return dict(part.split("=") for part in text.split(","))
    return {}


def fail_over_to(standby, timeout_ms):
    return ["FAILOVER", "TO", LOOPBACK, standby.port, "TIMEOUT", timeout_ms]


def sleeping(stack, standby, sleep_s):
    """A connection to the standby, which applies nothing for that time."""
    def connected():
        with contextlib.suppress(OSError):
            return Link(standby.port, 3 * LONGEST_START_S)
        return None
    sleeper = stack.enter_context(contextlib.closing(wait_until(connected, what="a connection")))
    sleeper.send("DEBUG", "SLEEP", sleep_s)
    return sleeper


def test_starting_standby(options):
    """FAILOVER to a standby that is starting is refused, with what it lacks; writes go on"""
    with Group(options.program, directives={**PATIENT, "io-threads": 1}) as group, \
            contextlib.ExitStack() as stack:
        epoch, primary = group.leadership()
        standby = group.standby()

        def starts(sleep_s):
            """It has something to apply, and does not come to that yet."""
            standby.kill()
            write(primary, 1000)
            # The next record is of the next process.
            wait_until(lambda: not told_of(primary, standby), what="the end of its record")
            standby.start(wait=False)
            sleeping(stack, standby, sleep_s)
            wait_until(lambda: told_of(primary, standby), LONGEST_START_S, "its record")
            # Had it caught up before it sleeps, its record would say so within this second.
            with contextlib.closing(Link(standby.port)) as other:
                other.send("PING")
                return not other.has_input(1.0) and \
                    told_of(primary, standby).get("state") == "wait_bgsave"
        require(any(map(starts, (8, 20, 40))), "the standby was always too quick")
        replies = ask(primary, fail_over_to(standby, 1000), ["FAILOVER"], ["SET", "k", "v"])
        for refused in replies[:2]:
            require(is_error(refused, f'ERR the node "{standby.name}" is starting, and lacks '),
                    refused)
        require_equal(replies[2], "OK", "a write")
        wait_until(group.is_whole, LONGEST_START_S, "all nodes")
        require_equal(group.leadership(), (epoch, primary), "who leads")
        require_equal(ask(primary, fail_over_to(standby, 10_000)), ["OK"], "FAILOVER")
        require_equal(group.wait_for_primary(after_epoch=epoch), standby, "the new primary")
        group.wait_in_sync()


def test_far_behind(options):
    """FAILOVER waits for a standby that is far behind, and is refused in time; writes go on"""
    with Group(options.program, directives={**PATIENT, "io-threads": 1}) as group, \
            contextlib.ExitStack() as stack:
        epoch, primary = group.leadership()
        standby = group.standby()
        asking, writer = [stack.enter_context(contextlib.closing(Link(primary.port)))
                          for _ in range(2)]

        def lacks():
            return int(primary.told()["master_repl_offset"]) - \
                int(told_of(primary, standby)["offset"])

        def falls_behind(sleep_s):
            ends_s = time.monotonic() + sleep_s
            sleeper = sleeping(stack, standby, sleep_s)
            while lacks() <= 2 * FEW_UNITS and time.monotonic() < ends_s:
                write(primary, 5000)
            # What it lacks was not written just now.
            time.sleep(2 * NEAR_S)
            if lacks() > FEW_UNITS and time.monotonic() < ends_s - 3 * REFUSED_MS / 1000:
                return True
            require_equal(sleeper.read(), "OK", "DEBUG SLEEP")
            group.wait_in_sync()
            return False
        require(any(map(falls_behind, (20, 40, 60))), "the standby was never far behind")
        asking.send(*fail_over_to(standby, REFUSED_MS))
        wait_until(lambda: primary.told()["master_failover_state"] == "waiting-for-sync",
                   what="the hand-over")
        require_equal(writer.ask(["SET", "k", "v"]), ["OK"], "a write")
        refused = asking.read()
        require(is_error(refused, f'ERR the node "{standby.name}" lacks '), refused)
        asking.send(*fail_over_to(standby, 60_000))
        require_equal(writer.ask(["SET", "k", "w"]), ["OK"], "a write")
        require_equal(asking.read(), "OK", "FAILOVER as it is near")
        require_equal(group.wait_for_primary(after_epoch=epoch), standby, "the new primary")
        require_equal(ask(standby, ["GET", "k"]), [b"w"], "the last write")


def test_etcd_leader_killed(options):
    """SIGKILL of etcd's leader: the primary continues, or another one leads"""
    with group_of_two(options) as group:
        with Load(group) as load:
            load.mark()
            member = group.etcd.wait_for_leader()
            group.etcd.kill(member)
            group.etcd.wait_for_leader()
            gap_s = load.wait_for_more()
            group.etcd.start(member)
            load.wait_for_more()
        finish(group, load, gap_s)


def test_stuck(options):
    """a primary of which a thread ends no turn sends no beats, and says why: the other one leads"""
    with Group(options.program, directives={"watchdog-ms": 1000}) as group:
        epoch, old = group.leadership()
        with contextlib.closing(Link(old.port)) as link:
            link.send("DEBUG", "SLEEP", "10")
            require(group.wait_for_primary(after_epoch=epoch) is not old, "another node leads")
            require(old.wait_for_exit(1) in RESTARTED, f"exits {old.exits}")
        log = old.log_tail(200)
        require("has ended no turn for 1000 ms (watchdog-ms)" in log, log)
        group.wait_in_sync()


def test_long_script(options):
    """a script within busy-reply-threshold costs no primary its epoch, whatever watchdog-ms is"""
    def keeps():
        with Group(options.program, directives={"watchdog-ms": 1000, "failover-timeout": 2000,
                                                "busy-reply-threshold": 60_000}) as group, \
                contextlib.suppress(ConnectionError):
            before = group.leadership()
            return ask(before[1], ["EVAL", RUN_S, "0", "6"]) == ["OK"] and \
                group.leadership() == before and not any(node.exits for node in group.nodes)
        return False
    # A pause of the machine may cost an epoch as well, but not each time.
    require(measured(keeps, bool)[-1], "the script has cost the primary its epoch, each time")


def test_alone(options):
    """a lone node that is killed starts again and leads"""
    with Group(options.program, nodes=1) as group:
        with Load(group) as load:
            _, _, gap_s = take_over(group, load, lambda node: node.crash())
        finish(group, load, gap_s)


def group_with_clocks(options, stack):
    """A group, and the wall clock of each of its nodes."""
    refuse_sanitizers(options, "a sanitizer wants to be the first library")
    clocks = [WallClock(stack.enter_context(scratch())) for _ in range(2)]
    group = stack.enter_context(
        Group(options.program, directives=PATIENT,
              environments=[clock.environment() for clock in clocks]))
    return group, dict(zip(group.nodes, clocks))


def test_clock_set_back(options):
    """a node whose wall clock is set back starts again: gRPC's timers would stand still"""
    with contextlib.ExitStack() as stack:
        group, clocks = group_with_clocks(options, stack)
        for node in (group.standby(), group.primary()):
            before = len(node.exits)
            # A stop of the process between its looks at two clocks shortens the step.
            clocks[node].step_ms(-HOUR_MS - 5000)
            require_equal(node.wait_for_exit(before + 1), FENCED, "the exit code")
            clocks[node].set_right()
            require("was set back by 36" in node.log_tail(400), node.log_tail(40))
            group.wait_in_sync(LONGEST_START_S)


def test_clock_set_forward(options):
    """a wall clock that is set forward changes nobody's role; keys expire, leases stay"""
    with contextlib.ExitStack() as stack:
        group, clocks = group_with_clocks(options, stack)
        epoch, old = group.leadership()
        [*_, [job]] = ask(old, ["SET", "soon", "v", "PX", HOUR_MS // 2],
                          ["SET", "later", "v", "PX", 2 * HOUR_MS], ["Q.ADD", "q", "j", "x"],
                          ["Q.POP", 1, "q", "LEASE", HOUR_MS // 2])
        group.wait_in_sync()
        for node in (group.standby(), old):
            clocks[node].step_ms(HOUR_MS)
            time.sleep(1.0)   # who counts silence by this clock takes over at once
            require_equal(ask(old, ["INCR", "n"])[0], 1 + (node is old), "a write")
            group.wait_in_sync()
        require_equal(group.leadership(), (epoch, old), "who leads")
        require_equal([node.exits for node in group.nodes], [[], []], "exits")
        require_equal(ask(old, ["FAILOVER"]), ["OK"], "FAILOVER")
        new = group.wait_for_primary(after_epoch=epoch)
        require_equal(ask(new, ["GET", "soon"], ["GET", "later"], ["GET", "n"]),
                      [None, b"v", b"2"], "keys")
        require_equal(ask(new, ["Q.ACK", "q", "j", pairs(job)["lease"]]), ["OK"], "the lease")
        group.wait_in_sync()
        require(not any("set back" in node.log_tail(400) for node in group.nodes), "the logs")


def test_all_killed(options):
    """SIGKILL of all nodes and all of etcd at once"""
    with group_of_two(options) as group:
        with Load(group) as load:
            def kill_all(_):
                for node in group.nodes:
                    node.crash()
                for member in range(3):
                    group.etcd.kill(member)
                for member in range(3):
                    group.etcd.start(member)
            _, _, gap_s = take_over(group, load, kill_all)
        finish(group, load, gap_s)


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
