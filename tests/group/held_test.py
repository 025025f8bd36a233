#!/usr/bin/python3
"""What clients are told while a node holds or refuses requests: during a hand-over, without etcd,
and beside CLIENT PAUSE."""

import contextlib
import sys
import types

import harness
from harness import require, require_equal, wait_until
from harness.crash.client import Link
from harness.group import Group
from harness.http_client import OPERATE_TOKEN, Client, require_problem
from harness.servers import steady_port

JOBS = "/api/v1/queues/q/jobs"
PATIENT = {"failover-timeout": 5000, "journal-patience": 60_000}
MAJORITY = (0, 1)  # of etcd's members


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


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
