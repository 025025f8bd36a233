#!/usr/bin/python3
"""A group that begins with the data of a directory, by sluice-journal lead: those of a server that
was alone, and those of a node whose etcd is lost for good."""

import contextlib
import os
import re
import sys

import harness
from harness import require, require_equal, scratch, wait_until
from harness.crash.client import Link
from harness.crash.queue_story import pairs
from harness.group import PATIENT, Group
from harness.servers import Server, steady_port

KEYS = 300
MAJORITY = (0, 1)  # of etcd's members


@contextlib.contextmanager
def group_without_nodes(options):
    """An etcd; the nodes that a test adds load their data from each other."""
    with scratch() as directory:
        path = os.path.join(directory, "token")
        with open(path, "w", encoding="utf-8") as file:
            file.write("a-token-of-the-nodes-0123456789\n")
        with Group(options.program, nodes=0,
                   directives={**PATIENT, "journal-patience": 60_000,
                               "replication-token-file": path},
                   of_node=lambda: {"http-port": steady_port()}) as group:
            yield group


def ask(node, *commands):
    with contextlib.closing(Link(node.port)) as link:
        return link.ask(*commands)


def write(node, name):
    """Keys, and a queue with a job that is given out and one that waits: all of it acknowledged.
    Returns the lease."""
    replies = ask(node, *(["SET", f"{name}:{number}", f"v{number}"] for number in range(KEYS)))
    require_equal(set(replies), {"OK"}, "writes")
    added, [popped], waiting = ask(node, ["Q.ADD", name, "given", "x"],
                                   ["Q.POP", 1, name, "LEASE", 600_000],
                                   ["Q.ADD", name, "waiting", "x"])
    require_equal([pairs(added)["id"], pairs(popped)["id"], pairs(waiting)["id"]],
                  [b"given", b"given", b"waiting"], "jobs")
    return pairs(popped)["lease"]


def require_all(node, name):
    """What write() was told."""
    found, active, waiting = ask(node, ["MGET", *(f"{name}:{number}" for number in range(KEYS))],
                                 ["Q.GET", name, "given"], ["Q.GET", name, "waiting"])
    require_equal(found, [b"v%d" % number for number in range(KEYS)], "keys")
    require_equal([pairs(job)["state"] for job in (active, waiting)], [b"active", b"pending"],
                  "jobs")


def require_goes_on(group, name, lease):
    """The job that was given out is ended by its lease, and the next one gets a later one."""
    ended, [job] = ask(group.primary(), ["Q.ACK", name, "given", lease], ["Q.POP", 1, name])
    require_equal(ended, "OK", "the job that was given out")
    job = pairs(job)
    require(job["id"] == b"waiting" and job["lease"] > lease, f"{job}, after the lease {lease}")
    group.wait_in_sync()


def leads_up_to(node):
    """Its directory is to lead; returns up to where it goes."""
    return int(re.search(r"up to lsn (\d+)", node.lead())[1])


def begins(options, group):
    """With the data of a server that was alone; an empty node joins and has the same."""
    node = group.add_node()
    with Server(options.program, {"appendonly": "yes", "enable-debug-command": "yes"},
                directory=node.directory, kind="sluice") as alone:
        lease = write(alone, "first")
        with alone.connect() as connection:
            digest = connection.call("DEBUG", "DIGEST").value
    lsn = leads_up_to(node)
    node.start()
    wait_until(node.leads, what="the lead")
    require_equal(node.digest(), digest, "the state")
    other = group.add_node().start()
    require(group.wait_in_sync() >= lsn, "the group is behind its data")
    require_equal([other.digest(), group.primary()], [digest, node], "the state of the second")
    require_all(other, "first")
    require("loading the data of the node" in other.log_tail(200), other.log_tail(200))
    require_goes_on(group, "first", lease)


def ends_without_etcd(group):
    """SIGTERM of the nodes while etcd has no majority, and a write waits for it."""
    primary, standby = group.primary(), group.standby()
    for member in MAJORITY:
        group.etcd.kill(member)
    with contextlib.closing(Link(primary.port)) as pending:
        pending.send("SET", "second:0", "never acknowledged")
        require(not pending.has_input(0.5), "an acknowledgement without etcd")
        # They end within 5 s, whatever journal-patience is; stop() waits for 10.
        require_equal([node.stop() for node in (standby, primary)], [0, 0], "exit codes")
        with contextlib.suppress(ConnectionError):
            raise AssertionError(f"{pending.read()} after SIGTERM")
    return primary, standby


def test_begins(options):
    """a group begins with the data of a server that was alone, and again when etcd is lost"""
    with group_without_nodes(options) as group:
        begins(options, group)
        lease = write(group.primary(), "second")
        group.wait_in_sync()
        primary, standby = ends_without_etcd(group)
        group.etcd.set_up_anew()
        lsn = leads_up_to(primary)
        primary.start()
        wait_until(primary.leads, what="the lead")
        require_all(primary, "second")
        # It takes the data of another cluster only if it is told to.
        exits = len(standby.exits)
        standby.start(wait=False)
        require_equal(standby.wait_for_exit(exits + 1), 1, "the exit code")
        require("has the cluster id" in standby.log_tail(), standby.log_tail())
        standby.kill()
        standby.arguments = ["--reinit"]
        standby.start()
        require(group.wait_in_sync() >= lsn, "the group is behind its data")
        require_equal(group.primary(), primary, "who leads")
        require_all(standby, "second")
        require_goes_on(group, "second", lease)


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
