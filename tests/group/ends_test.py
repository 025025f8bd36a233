#!/usr/bin/python3
"""The end of a server in a group, while clients of every kind come and go: RESP, HTTP, Sentinel,
blocked pops, streams of events. It exits with the code of its reason, and never by a failed check.
"""

import contextlib
import os
import random
import re
import socket
import sys
import threading
import time

import harness
from harness import require, require_equal, wait_until
from harness.group import FENCED, Group, kept_group
from harness.servers import LOOPBACK, steady_port
from harness.surroundings import JOURNAL_FAILED

FENCED_ROUNDS = 4
STOPPED_ROUNDS = 6
FAILOVER_S = 1.3      # from a primary's death to the next one's first answer
KINDS = 3             # of clients that come and go
GUESTS = 6            # of each kind that stay
DIRECTIVES = {"busy-reply-threshold": "100"}
STREAM = (b"GET /api/v1/queues/work/events HTTP/1.1\r\nHost: localhost\r\n"
          b"Accept: text/event-stream\r\n\r\n")
STUCK = "redis.call('SET', 'stuck', '1') while true do end"


class Storm:
    """Clients of one node that come and go all the time, and some that stay and wait."""

    def __init__(self, node):
        self.node = node
        self.http_port = node.directives["http-port"]
        self.came = 0
        self._stop = threading.Event()
        self._guests = []
        self._threads = [threading.Thread(target=self._come_and_go, args=(kind,), daemon=True)
                         for kind in range(KINDS)]

    def __enter__(self):
        for _ in range(GUESTS):
            self._stay(self.node.port, b"BLPOP nothing 0\r\n")
            self._stay(self.node.sentinel_port, b"SUBSCRIBE +switch-master\r\n")
            self._stay(self.http_port, STREAM)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()
        for guest in self._guests:
            guest.close()

    def _stay(self, port, request):
        guest = socket.create_connection((LOOPBACK, port), 2.0)
        guest.sendall(request)
        self._guests.append(guest)

    def _come_and_go(self, kind):
        port, request = ((self.node.port, b"SET came 1\r\nBLPOP nothing 1\r\n"),
                         (self.http_port, b"GET /primary HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                         (self.node.sentinel_port, b"PING\r\n"))[kind]
        open_ones = []
        while not self._stop.wait(0.001):
            with contextlib.suppress(OSError):
                guest = socket.create_connection((LOOPBACK, port), 0.5)
                open_ones.append(guest)
                self.came += 1
                guest.sendall(request)
            if len(open_ones) > 40:
                open_ones.pop(random.randrange(len(open_ones))).close()
        for guest in open_ones:
            guest.close()


def group_of_two(options):
    return kept_group(options.program, directives=DIRECTIVES, of_node=with_http)


def with_http():
    return {"http-port": steady_port()}


def require_clean(node):
    log = node.log_tail(400)
    require(not re.search(r"CHECK|check failed|terminate called|SIGABRT", log), log)


def fence(group, node, epoch):
    """`node`, which led in `epoch`, is continued when another one leads."""
    node.freeze()
    group.wait_for_primary(after_epoch=epoch)
    node.thaw()


def test_fenced(options):
    """a primary that was stopped and is fenced exits with 76, also while clients connect"""
    came = 0
    for _ in range(FENCED_ROUNDS):
        with group_of_two(options) as group:
            epoch, old = group.leadership()
            with Storm(old) as storm:
                fence(group, old, epoch)
                require_equal(old.wait_for_exit(1), FENCED, "the exit code")
                came += storm.came
            require_clean(old)
    print(f"       {came} connections")


def test_fenced_and_stuck(options):
    """so does one of which a script does not end"""
    with group_of_two(options) as group:
        epoch, old = group.leadership()
        with old.connect() as runner:
            runner.send("EVAL", STUCK, "0")
            with old.connect() as other:
                wait_until(lambda: other.call("PING").raw.startswith(b"-BUSY"), what="BUSY")
            fence(group, old, epoch)
            require_equal(old.wait_for_exit(1), FENCED, "the exit code")
        require("A command does not end" in old.log_tail(400), old.log_tail(400))
        require_clean(old)


def test_stopped(options):
    """SIGTERM of a primary, and of a standby at any moment of its takeover: exit 0"""
    for number in range(STOPPED_ROUNDS):
        with group_of_two(options) as group:
            primary, standby = group.primary(), group.standby()
            ended = primary if number == 0 else standby
            with Storm(ended):
                if number > 0:
                    primary.kill()
                    time.sleep(random.uniform(0.6, FAILOVER_S))
                require_equal(ended.stop(), 0, "the exit code")
            require_clean(ended)
            for node in (primary, standby):
                if node is ended or number > 0:
                    node.start(wait=False)
            group.wait_for_primary()


def test_journal_failed(options):
    """a primary that cannot write its directory exits with 75, and the other one leads"""
    with Group(options.program, directives=DIRECTIVES, of_node=with_http) as group:
        epoch, old = group.leadership()
        with Storm(old):
            log = os.path.join(old.directory, "log")
            for name in os.listdir(log):
                os.unlink(os.path.join(log, name))
            require_equal(old.wait_for_exit(1), JOURNAL_FAILED, "the exit code")
            group.wait_for_primary(after_epoch=epoch)
        require_clean(old)


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
