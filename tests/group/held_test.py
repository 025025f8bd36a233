#!/usr/bin/python3
"""What clients are told while a node holds or refuses requests: during a hand-over, without etcd
or with a full one, and beside CLIENT PAUSE."""

import contextlib
import itertools
import os
import sys
import types

import harness
from harness import require, require_equal, wait_until
from harness.crash.client import Link
from harness.group import FENCED, Group
from harness.http_client import OPERATE_TOKEN, Client, require_problem
from harness.servers import steady_port

JOBS = "/api/v1/queues/q/jobs"
PATIENT = {"failover-timeout": 5000, "journal-patience": 60_000}
MAJORITY = (0, 1)  # of etcd's members
SMALL, LARGER = ({"flags": ["--quota-backend-bytes", str(size << 20)]} for size in (8, 64))
CURE = "etcdctl defrag"


def with_http():
    return {"http-port": steady_port(), "http-token": [f"operate >{OPERATE_TOKEN}"]}


def http(node):
    return Client(types.SimpleNamespace(http_port=node.directives["http-port"]))


@contextlib.contextmanager
def without_etcd(group):
    """No majority of etcd's members runs."""
    for member in MAJORITY:
        group.etcd.kill(member)
    yield
    for member in MAJORITY:
        group.etcd.start(member)


def require_held(client, reason, words):
    """Changes and reads are refused for about a second, for this reason."""
    for answer in client.post(JOBS, {"payload": ""}), client.get(JOBS + "/a"):
        members = require_problem(answer, 503, "BUSY")
        require_equal((members["reason"], members["retry_after_ms"]), (reason, 1000), "the hints")
        require(words in members["detail"], members)
        require_equal(answer.headers["retry-after"], "1", "Retry-After")


def test_over_http(options):
    """HTTP tells a hand-over, and a journal that does not answer, from CLIENT PAUSE"""
    with Group(options.program, directives=PATIENT, of_node=with_http) as group, \
            contextlib.ExitStack() as stack:
        primary = group.primary()
        client = stack.enter_context(http(primary))
        client.expect(201, "POST", JOBS, {"id": "a", "payload": ""})
        asking = stack.enter_context(contextlib.closing(Link(primary.port)))
        with without_etcd(group):
            asking.send("INCR", "n")   # executed, and not acknowledged: the hand-over waits for it
            asking.send("FAILOVER", "TIMEOUT", 6000)
            wait_until(lambda: "handing the group over" in primary.log_tail(200),
                       what="the hand-over")
            require_held(client, "hand_over", "handing over")
            wait_until(lambda: "the hand-over was given up" in primary.log_tail(200),
                       what="the end of the hand-over")
            wait_until(lambda: primary.told()["sluice_group_lease_ms"] == "0", what="the gate")
            require_held(client, "journal", "etcd")
        require_equal([asking.read(), asking.read()], [1, "OK"], "what waited for etcd")
        wait_until(lambda: client.post(JOBS, {"payload": ""}).status == 201, what="a job")
        require_equal(primary.exits, [], "exits")


def test_paused_without_etcd(options):
    """CLIENT PAUSE WRITE keeps no read waiting for longer than journal-patience"""
    directives = {"failover-timeout": 3000, "journal-patience": 1000}
    with Group(options.program, directives=directives) as group, \
            contextlib.ExitStack() as stack:
        primary = group.primary()
        early, late, writer = [stack.enter_context(contextlib.closing(Link(primary.port)))
                               for _ in range(3)]
        require_equal(early.ask(["SET", "a", "1"], ["CLIENT", "PAUSE", 600_000, "WRITE"]),
                      ["OK", "OK"], "before")
        with without_etcd(group):
            wait_until(lambda: primary.told()["sluice_group_lease_ms"] == "0", what="the gate")
            for reader in early, late:
                [refused] = reader.ask(["GET", "a"])
                require(getattr(refused, "text", "").startswith("NOREPLICAS"), refused)
            writer.send("SET", "a", "2")
            require(not writer.has_input(0.5), "a write waits for the end of CLIENT PAUSE")
        wait_until(lambda: early.ask(["GET", "a"]) == [b"1"], what="a read")
        require(not writer.has_input(0.5), "a write waits for the end of CLIENT PAUSE")
        require_equal(early.ask(["CLIENT", "UNPAUSE"]), ["OK"], "UNPAUSE")
        require_equal(writer.read(), "OK", "the write")
        require_equal(primary.exits, [], "exits")


def test_given_up(options):
    """what became due during a hand-over that is given up is done after it, though nobody asks"""
    with Group(options.program, directives={"failover-timeout": 20_000}) as group, \
            contextlib.ExitStack() as stack:
        primary = group.primary()
        popper, asking = [stack.enter_context(contextlib.closing(Link(primary.port)))
                          for _ in range(2)]
        popper.send("Q.POP", 1, "q", "BLOCK", 60_000)
        with without_etcd(group):
            asking.send("Q.ADD", "q", "a", "x", "DELAY", 1000)
            asking.send("FAILOVER", "TIMEOUT", 3000)
            wait_until(lambda: "the hand-over was given up" in primary.log_tail(200),
                       what="the end of the hand-over")
        require(b"a" in popper.read()[0], "another job")


def ask(node, *commands):
    with contextlib.closing(Link(node.port)) as link:
        return link.ask(*commands)


def test_started_without_etcd(options):
    """a node with data that starts without etcd says so, and answers nothing that may be old"""
    with Group(options.program) as group:
        primary, standby = group.primary(), group.standby()
        require_equal(ask(primary, ["SET", "k", "old"], ["Q.ADD", "q", "old", "x"])[0], "OK", "SET")
        group.wait_in_sync()
        standby.stop()
        require_equal(ask(primary, ["SET", "k", "new"], ["DEL", "q"]), ["OK", 1], "changes")
        primary.kill()
        with without_etcd(group):
            standby.start(wait=False)
            wait_until(lambda: "the replicated log does not answer: etcd at" in
                       standby.facts().get("sluice_group_waits_for", ""), what="what it waits for")
            for answer in ask(standby, ["GET", "k"], ["SET", "k", "x"], ["Q.GET", "q", "old"],
                              ["Q.POP", 1, "q"]):
                require(getattr(answer, "text", "").startswith("LOADING"), answer)
        wait_until(standby.leads, what="the lead")
        require_equal(ask(standby, ["GET", "k"], ["Q.GET", "q", "old"]), [b"new", None],
                      "what was acknowledged")


def fill_etcd(group, primary):
    """Returns how many values were acknowledged before etcd had no room for one."""
    with contextlib.closing(Link(primary.port)) as link:
        for number in itertools.count():
            link.send("SET", f"k{number}", os.urandom(200_000).hex())
            if "full" == wait_until(
                    lambda: "answered" if link.has_input(0.5) else
                    "NOSPACE" in group.etcd.ctl("alarm", "list") and "full", what="a reply"):
                return number
            require_equal(link.read(), "OK", "a write")


def test_full_etcd(options):
    """an etcd without room is as one out of reach: the node says the cure, and resumes after it"""
    with Group(options.program, directives={**PATIENT, "journal-patience": 500},
               etcd=SMALL) as group:
        primary, standby = group.primary(), group.standby()
        count = fill_etcd(group, primary)
        require(count > 2, f"{count} values were acknowledged")
        wait_until(lambda: primary.told()["sluice_group_lease_ms"] == "0", what="the gate")
        for refused in ask(primary, ["GET", "k0"], ["SET", "k", "v"]):
            require(getattr(refused, "text", "").startswith("NOREPLICAS"), refused)
        require(CURE in primary.told()["sluice_group_waits_for"], primary.told())
        require(CURE in primary.log_tail(200), primary.log_tail(200))
        require_equal(ask(standby, ["STRLEN", "k1"]), [400_000], "a read of the standby")
        group.etcd.flags = LARGER["flags"]
        for member in range(3):
            group.etcd.stop(member)
            group.etcd.start(member)
            group.etcd.wait_until_healthy(member)
        group.etcd.ctl("alarm", "disarm")

        def written():
            with contextlib.suppress(ConnectionError):
                return ask(group.primary(), ["SET", "k", "v"]) == ["OK"]
        wait_until(written, what="a write")
        require_equal(ask(group.primary(), *(["STRLEN", f"k{number}"] for number in range(count))),
                      [400_000] * count, "what was acknowledged")
        group.wait_in_sync()
        require({FENCED}.issuperset(primary.exits + standby.exits), "exits")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
