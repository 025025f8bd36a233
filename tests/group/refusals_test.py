#!/usr/bin/python3
"""What a node of a group refuses: directories and names of others, and settings that contradict
themselves; and what it says while it waits for etcd."""

import contextlib
import os
import shutil
import sys
import time

import harness
from harness import info, require, require_equal, scratch, wait_until
from harness.crash.client import Link
from harness.etcd import EtcdCluster
from harness.group import PATIENT, Group, Node, joining
from harness.relay import Relay
from harness.servers import LOOPBACK, directive_arguments, free_port

NOBODY = "http://127.0.0.1:1"  # a port that refuses


def refused(options, directives, *words):
    """The process does not start, and what it prints has these words."""
    with scratch() as directory:
        given = {"port": free_port(), "bind": LOOPBACK, "dir": directory, "appendonly": "yes",
                 **directives}
        code, printed = options.run(*directive_arguments(given))
        require_equal(code, 1, f"the exit code of {directives}, which printed\n{printed}")
        for word in words:
            require(word in printed, f"{word!r} is not in\n{printed}")


def exits_with(node, *words, code=1, timeout_s=30.0):
    count = len(node.exits) + 1
    node.start(wait=False)
    require_equal(node.wait_for_exit(count, timeout_s), code, f"exit code; {node.log_tail()}")
    for word in words:
        require(word in node.log_tail(), f"{word!r} is not in\n{node.log_tail()}")


def write(node, *commands):
    with contextlib.closing(Link(node.port)) as link:
        return link.ask(*commands)


def written(group, command):
    """Whether the present primary has done it."""
    with contextlib.suppress(AssertionError, OSError):
        return write(group.primary(), command) == ["OK"]
    return False


def test_settings(options):
    """settings that contradict each other are refused with what is allowed"""
    refused(options, {"journal": "etcd"}, "etcd-endpoints", "http://10.0.0.1:2379")
    refused(options, {"journal": "etcd", "etcd-endpoints": NOBODY, "appendonly": "no"},
            "journal etcd needs appendonly yes")
    refused(options, {"journal": "paper"}, "local, etcd")
    refused(options, {"sentinel-port": free_port()}, "sentinel-port needs journal etcd")
    refused(options, {"journal": "etcd", "etcd-endpoints": NOBODY, "etcd-user": "u"},
            "etcd-user and etcd-password-file need each other")
    refused(options, {"journal": "etcd", "etcd-endpoints": "127.0.0.1:2379"}, "http://")
    refused(options, {"journal": "etcd", "etcd-endpoints": NOBODY, "node-name": "a/b"}, "node-name")


def test_at_run_time(options):
    """a node of a group refuses at run time what would take it out of it"""
    with Group(options.program, nodes=1) as group:
        replies = write(group.primary(), ["CONFIG", "SET", "appendonly", "no"],
                        ["REPLICAOF", LOOPBACK, 1], ["DEBUG", "RELOAD"], ["FAILOVER"],
                        ["SET", "k", "v"])
        for reply, word in zip(replies, ("appendonly", "FAILOVER", "group", "replicas")):
            require(word in getattr(reply, "text", ""), f"{word!r} is not in {reply!r}")
        require_equal(replies[-1], "OK", "a write")


def test_waits_for_etcd(options):
    """without etcd a node says what it waits for, answers LOADING, and starts when etcd comes"""
    with EtcdCluster() as etcd, Relay(etcd.ports[0][0]) as relay:
        relay.cut()
        node = Node(options.program, "n1", [f"http://{LOOPBACK}:{relay.port}"])
        try:
            node.start(wait=False)
            wait_until(lambda: "the replicated log does not answer" in node.log_tail(),
                       what="words")
            with node.connect() as connection:
                for command in (["GET", "k"], ["SET", "k", "v"], ["Q.ADD", "q", "j", "x"]):
                    reply = connection.call(*command)
                    require(reply.raw.startswith(b"-LOADING"), f"{command}: {reply}")
                require_equal(info(connection, "replication")["role"], "slave", "role")
            relay.heal()
            wait_until(node.leads, what="the lead")
            require_equal(write(node, ["SET", "k", "v"]), ["OK"], "a write")
        finally:
            node.kill()
            node.close()


def test_directories(options):
    """a directory of another group, of no group, or of etcd's past is refused; it is not changed"""
    with Group(options.program, directives=PATIENT) as group, scratch() as past:
        primary, standby = group.primary(), group.standby()
        require_equal(write(primary, ["SET", "k", "v"]), ["OK"], "a write")
        lsn = group.wait_in_sync()
        with options.server({"appendonly": "yes"}) as alone:
            write(alone, ["SET", "local", "v"])
            alone.stop()
            with joining(group, alone.directory) as node:
                exits_with(node, "the directory holds data that do not belong to the group \"1\" "
                           "of the cluster \"main\"", "Start with an empty directory")
        standby.stop()
        shutil.copytree(standby.directory, past, dirs_exist_ok=True)
        standby.start()
        with joining(group, past, **{"cluster-name": "other"}) as node:
            exits_with(node, "etcd knows no group \"1\" of the cluster \"other\"",
                       "sluice-journal lead DIR")
        with Group(options.program, nodes=1) as others, joining(others, past) as node:
            exits_with(node, "has the cluster id")
            node.kill()
            node.lead()
            exits_with(node, "etcdctl del --prefix /sluice/main/g/1/")
        with joining(group, past) as node:
            node.start()
            wait_until(lambda: node.lsn() >= lsn, what="a copy of a directory as a third node")
        require_equal(group.wait_in_sync(), lsn, "the group")


def test_name_of_another(options):
    """two processes with one node name: the second one is refused, the first continues"""
    with Group(options.program, directives=PATIENT) as group:
        with joining(group, name="n2", **PATIENT) as node:
            exits_with(node, "another process is the node \"n2\"", "node-name must differ",
                       timeout_s=60.0)
        for first in group.nodes:
            with joining(group, name=first.name, **PATIENT) as node:
                shutil.copy(os.path.join(first.directory, "node-id"), node.directory)
                exits_with(node, f"as the node \"{first.name}\", with a copy of this directory")
        require_equal(write(group.primary(), ["SET", "k", "v"]), ["OK"], "a write")
        require_equal([node.exits for node in group.nodes], [[], []], "exits")


def test_emptied_etcd(options):
    """etcd that has forgotten the group: no node begins a new one"""
    with Group(options.program) as group:
        write(group.primary(), ["SET", "k", "v"])
        group.wait_in_sync()
        for node in group.nodes:
            node.kill()
        group.etcd.ctl("del", "/sluice/main/", "--prefix")
        for node in group.nodes:
            exits_with(node, "etcd knows no group", "etcd was emptied, or is another one")


def test_restored_etcd(options):
    """a group whose etcd was restored from a backup continues; nothing is lost over a takeover"""
    with Group(options.program, directives=PATIENT) as group, scratch() as folder:
        primary = group.primary()
        write(primary, ["SET", "k1", "v"])
        group.wait_in_sync()
        snapshot = os.path.join(folder, "snapshot")
        group.etcd.save(snapshot)
        require_equal(write(primary, ["SET", "k2", "v"]), ["OK"], "a write after the backup")
        group.wait_in_sync()
        group.etcd.restore(snapshot)
        wait_until(lambda: written(group, ["SET", "k3", "v"]), what="a write")
        group.wait_in_sync()
        primary, standby = group.primary(), group.standby()
        primary.kill()
        wait_until(standby.leads, what="the lead of the standby")
        require_equal(write(standby, ["MGET", "k1", "k2", "k3"]), [[b"v"] * 3], "what is there")


def test_lost_frame(options):
    """a node that misses a frame which etcd has lost does not lead, and removes nothing"""
    frames = "/sluice/main/g/1/log/"
    with Group(options.program, nodes=3, directives=PATIENT) as group:
        primary, (standby, other) = group.primary(), group.standbys()
        write(primary, ["SET", "k", "v"])
        group.wait_in_sync()
        standby.stop()
        for number in range(10):
            write(primary, ["SET", f"k{number}", "v"])
        wait_until(lambda: -1 < primary.lsn() == other.lsn(), what="the other one")
        time.sleep(1)  # several beats: the node learns from the last one where the log ends
        lost = group.etcd.ctl("get", frames, "--prefix", "--keys-only").split()[-5]
        group.etcd.ctl("del", lost)
        exits = len(standby.exits)
        standby.start()
        for node in (other, primary):
            node.kill()
        require_equal(standby.wait_for_exit(exits + 1), 1, "the exit code")
        require(f"frame {int(lost[-16:], 16)} of the replicated log is missing" in
                standby.log_tail(), standby.log_tail())
        other.start()
        wait_until(other.leads, what="the lead of one that has applied it")
        require_equal(write(other, ["GET", "k9"]), [b"v"], "what was acknowledged")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
