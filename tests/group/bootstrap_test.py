#!/usr/bin/python3
"""How a node gets the data of another one: it joins a group whose log was trimmed, or was away for
too long, or is asked to; and backups by the same stream."""

import contextlib
import os
import re
import subprocess
import sys
import threading
import time

import harness
from harness import info, require, require_equal, scratch, wait_until
from harness.cli import NO_CONNECTION, SERVER_ERROR, USAGE_ERROR, Sluice
from harness.crash.client import Link
from harness.group import FENCED, PATIENT, Group, joining
from harness.holds import measured
from harness.http_client import Client
from harness.relay import Relay
from harness.servers import LOOPBACK, Server, steady_port
from harness.surroundings import (JOURNAL_FAILED, NEVER_ENOUGH, SLOW_RECEIPT, preload,
                                  refuse_sanitizers)
from harness.wall_clock import WallClock

TOKEN = "a-token-of-the-nodes-0123456789"
EPOCH_KEY = "/sluice/main/g/1/epoch"
LOADED_S = 60.0
HOUR_MS = 3_600_000
MEASURED_S = 1.5
LARGE = 300  # values of 100 kB


@contextlib.contextmanager
def group_of(options, nodes=2, **directives):
    with scratch() as directory:
        path = os.path.join(directory, "token")
        with open(path, "w", encoding="utf-8") as file:
            file.write(TOKEN + "\n")
        given = {"replication-token-file": path, **PATIENT, **directives}
        with Group(options.program, nodes=nodes, directives=given,
                   of_node=lambda: {"http-port": steady_port()}) as group:
            yield group


def write(node, *commands):
    with contextlib.closing(Link(node.port)) as link:
        replies = link.ask(*commands)
    wrong = [reply for reply in replies if not isinstance(reply, (str, bytes, int))]
    require(not wrong, f"{wrong[:1]}")
    return replies


def fill(group, values=50, size=100):
    """Each in a commit of its own, so that there are places to trim to."""
    primary = group.primary()
    with primary.connect() as connection:
        for number in range(values):
            reply = connection.call("SET", f"k{number}", os.urandom(size // 2).hex())
            require_equal(reply.raw, b"+OK\r\n", "a write")


def require_in_sync(group, node):
    primary = group.primary()

    def equal():
        if not -1 < primary.lsn() == node.lsn():
            return False
        digest = node.digest()
        return digest is not None and digest == primary.digest()
    wait_until(equal, LOADED_S, f"{node.name} in sync; {node.log_tail()}")


def test_joins(options):
    """an empty node joins a trimmed group by the copy of a standby, and holds the log meanwhile"""
    with group_of(options) as group, joining(group) as node:
        fill(group)
        group.wait_in_sync()
        group.trim(group.nodes)
        fill(group, values=20)
        node.start()
        require_in_sync(group, node)
        log = node.log_tail(200)
        require(f"loading the data of the node \"{group.standby().name}\"" in log, log)
        require("are in place, up to lsn" in log, log)
        wait_until(lambda: not group.etcd.ctl("get", "/sluice/main/g/1/hold/", "--prefix"),
                   what="no hold")
        require(not os.path.exists(os.path.join(node.directory, "incoming-copy")), "leftovers")
        write(group.primary(), ["SET", "later", "v"])
        require_in_sync(group, node)


def test_hanging_standby(options):
    """a standby that hangs keeps the log for seconds only; its next process loads a copy"""
    with group_of(options, **{"io-threads": 1, "checkpoint-copies": 1}) as group:
        fill(group)
        group.wait_in_sync()
        primary, standby = group.primary(), group.standby()
        with standby.connect() as sleeper:
            sleeper.send("DEBUG", "SLEEP", "600")
            wait_until(lambda: standby.lsn() == -1, what="a standby that hangs")
            fill(group)
            with primary.connect() as connection:
                connection.call("BGSAVE")
            # Less than what the standby lacks.
            wait_until(lambda: int(primary.told()["sluice_group_log_frames"]) < 40, LOADED_S,
                       "a trimmed log")
            told = primary.log_tail(200)
            require(f'the server "{standby.name}" hangs' in told, told)
            require_equal(standby.lsn(), -1, "what the standby answers")
            standby.crash()
        # The first process finds that its data do not continue, the next one loads.
        require_equal(standby.wait_for_exit(2, LOADED_S), FENCED, f"exits {standby.exits}")
        require_in_sync(group, standby)
        require("are in place, up to lsn" in standby.log_tail(200), standby.log_tail(200))


def test_no_room(options):
    """a node without room for a copy says what it needs and has, and joins when there is room"""
    with group_of(options) as group, joining(group) as node:
        fill(group)
        group.wait_in_sync()
        group.trim(group.nodes)
        node.directives["min-free-disk"] = NEVER_ENOUGH
        node.start(wait=False)
        require_equal(node.wait_for_exit(1), JOURNAL_FAILED, "the exit code")
        log = node.log_tail(200)
        require(re.search(r"not enough disk space in .*: the copy has at least \d+ MB, beside "
                          r"which min-free-disk keeps 1024000000 MB, and \d+ MB are free", log),
                log)
        require(not os.path.exists(os.path.join(node.directory, "incoming-copy")), "a copy")
        node.directives["min-free-disk"] = "1mb"
        require_in_sync(group, node)


def test_another_token(options):
    """a node with another token, or without one, says which setting to look at"""
    with group_of(options) as group, joining(group) as node, scratch() as directory:
        fill(group)
        group.wait_in_sync()
        group.trim(group.nodes)
        path = os.path.join(directory, "another")
        with open(path, "w", encoding="utf-8") as file:
            file.write(TOKEN[::-1] + "\n")
        node.directives["replication-token-file"] = path
        node.start(wait=False)
        wait_until(lambda: "401 Unauthorized" in node.log_tail(200), LOADED_S, "a refusal")
        require("replication-token-file names must have the same line" in node.log_tail(200),
                node.log_tail(200))
        node.kill()
        del node.directives["replication-token-file"]
        node.start(wait=False)
        wait_until(lambda: "This server has no replication-token-file" in node.log_tail(200),
                   LOADED_S, "what it lacks")


def test_away(options):
    """a node that was away while the log was trimmed exits with 76, and comes back by itself"""
    with group_of(options, **{"checkpoint-copies": "1"}) as group:
        fill(group)
        group.wait_in_sync()
        standby = group.standby()
        standby.stop()
        # Its record lives for some seconds, and holds what it has not applied.
        wait_until(lambda: standby.name not in group.etcd.ctl(
            "get", "/sluice/main/g/1/node/", "--prefix", "--keys-only"), 20.0, "it is forgotten")
        fill(group, values=100)
        group.trim([group.primary()])
        before = len(standby.exits)
        standby.restarts = False
        standby.start(wait=False)
        require_equal(standby.wait_for_exit(before + 1), FENCED, "the exit code")
        # Data of another cluster must not replace these.
        cluster = group.etcd.ctl("get", EPOCH_KEY, "--print-value-only").split()[1]
        with open(mark(standby), encoding="utf-8") as file:
            require_equal(file.read().strip(), cluster, "whose data are to be loaded")
        standby.restarts = True
        standby.kill()
        standby.start()
        require_in_sync(group, standby)
        require_equal(standby.exits[before:], [FENCED], "exits")
        require("the log begins behind frame" in standby.log_tail(200), standby.log_tail(200))
        require(not os.path.exists(os.path.join(standby.directory, "replaced-data")), "old data")


def test_clock_set_back(options):
    """a node without data starts again, too, if its wall clock is set back while it waits"""
    refuse_sanitizers(options, "a sanitizer wants to be the first library")
    with scratch() as directory, \
            Group(options.program, nodes=1,
                  directives={**PATIENT, "checkpoint-copies": "1"}) as group:
        clock = WallClock(directory)
        fill(group, values=100)
        group.trim(group.nodes)
        with joining(group, environment=clock.environment()) as node:
            node.start(wait=False)
            wait_until(lambda: node.facts().get("sluice_group_waits_for"), what="that it waits")
            # A stop of the process between its looks at two clocks shortens the step.
            clock.step_ms(-HOUR_MS - 5000)
            require_equal(node.wait_for_exit(1), FENCED, "the exit code")


def mark(node):
    """Says that the next start in a group replaces the data."""
    return os.path.join(node.directory, "load-anew")


def test_reinit(options):
    """--reinit replaces a node's data by another node's; outside of a group it is refused"""
    with group_of(options) as group:
        fill(group)
        group.wait_in_sync()
        standby = group.standby()
        standby.stop()
        standby.arguments = ["--reinit", "--group", "9"]
        exits = len(standby.exits)
        standby.start(wait=False)
        standby.wait_for_exit(exits + 1)
        require("etcd knows no group \"9\"" in standby.log_tail(), standby.log_tail())
        require(not os.path.exists(mark(standby)), "it is to load anew later")
        standby.arguments = ["--reinit"]
        standby.kill()
        standby.start()
        require_in_sync(group, standby)
        require("are in place" in standby.log_tail(200), standby.log_tail(200))
    with options.server({"appendonly": "yes"}) as server:
        line = server._command_line() + ["--reinit"]  # pylint: disable=protected-access
        done = subprocess.run(line, capture_output=True, text=True, timeout=20, check=False,
                              cwd=server.directory)
        require_equal(done.returncode, 1, "the exit code")
        require("--reinit needs" in done.stdout + done.stderr, done.stdout + done.stderr)
        server.stop()
        with open(mark(server), "w", encoding="utf-8") as file:
            file.write("the cluster that it belonged to\n")
        server.start()
        require(not os.path.exists(mark(server)), "what is written now is to be replaced")


def test_source_killed(options):
    """the node that sends a copy is killed meanwhile: another one sends it again"""
    with group_of(options) as group, scratch() as directory, \
            joining(group, environment=preload(directory, options, "slow_receipt",
                                               SLOW_RECEIPT)) as node:
        fill(group, values=LARGE // 3, size=100_000)
        group.wait_in_sync(60.0)
        group.trim(group.nodes)
        standby = group.standby()
        node.start_loading()
        standby.freeze()
        time.sleep(0.2)
        standby.thaw()
        standby.kill()
        wait_until(node.answers_ping, LOADED_S, "an answer")
        require_in_sync(group, node)
        require("have not come whole" in node.log_tail(200), node.log_tail(200))


def p99_ms(times):
    return sorted(times)[len(times) * 99 // 100] * 1000


def test_latency(options):
    """the primary answers while it sends copies; tells the 99th percentiles"""
    with group_of(options, nodes=1) as group, scratch() as directory:
        fill(group, values=LARGE, size=100_000)
        primary = group.primary()
        with primary.connect() as connection:
            connection.call("SAVE")
        sluice = Sluice(options, primary)

        def ask():
            times = []
            end = time.monotonic() + MEASURED_S
            with primary.connect() as connection:
                while time.monotonic() < end:
                    began = time.monotonic()
                    connection.call("GET", "k1")
                    connection.call("SET", "small", "v")
                    times.append(time.monotonic() - began)
            return times

        def measure():
            stop = threading.Event()
            copies = []

            def copy():
                while not stop.is_set():
                    sluice.must("backup", os.path.join(directory, "b"), SLUICE_HTTP_TOKEN=TOKEN)
                    copies.append(time.monotonic())

            alone = ask()
            thread = threading.Thread(target=copy)
            thread.start()
            try:
                beside = ask()
            finally:
                stop.set()
                thread.join()
            require(copies, "no copy ended")
            print(f"  GET and SET, p99: {p99_ms(alone):.1f} ms alone, {p99_ms(beside):.1f} ms "
                  f"beside {len(copies)} copies; {len(alone)} and {len(beside)} of them")
            return len(beside) / len(alone)
        shares = measured(measure, lambda share: share > 0.1)
        require(shares[-1] > 0.1, f"the primary hardly answers beside a copy: {shares}")


class Flips(Relay):
    """Changes one bit of what the first connection receives."""

    flipped = False

    def _carry(self, source, target):
        received = 0
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if received < 50_000 <= received + len(data) and not self.flipped:
                    self.flipped = True
                    at = 50_000 - received
                    data = data[:at] + bytes([data[at] ^ 8]) + data[at + 1:]
                received += len(data)
                target.sendall(data)
        self._end(source, target)


def test_backup(options):
    """a backup is whole or refused; it makes a directory that belongs to no group"""
    program = os.path.join(os.path.dirname(options.program), "sluice-import")
    with group_of(options, nodes=1) as group, scratch() as directory:
        fill(group, values=30, size=10_000)
        primary = group.primary()
        digest = primary.digest()
        sluice = Sluice(options, primary)
        path = os.path.join(directory, "backup")
        # It waits for the first checkpoint.
        told = sluice.must("backup", path, SLUICE_HTTP_TOKEN=TOKEN)
        require("everything up to lsn" in told, told)
        with Flips(primary.directives["http-port"]) as relay:
            sluice.fails(SERVER_ERROR, "checksum mismatch", "backup", path + "2", "--http",
                         f"{LOOPBACK}:{relay.port}", SLUICE_HTTP_TOKEN=TOKEN)
        require_equal(os.listdir(directory), ["backup"], "files")
        with open(path + "2.part", "w", encoding="utf-8") as part:
            part.write("another backup's")
        sluice.fails(SERVER_ERROR, "2.part is there: another backup", "backup", path + "2",
                     SLUICE_HTTP_TOKEN=TOKEN)
        with open(path + "2.part", encoding="utf-8") as part:
            require_equal(part.read(), "another backup's", "what it writes")
        os.remove(path + "2.part")
        os.mkfifo(path + "3")
        sluice.fails(SERVER_ERROR, "is no regular file", "backup", path + "3",
                     SLUICE_HTTP_TOKEN=TOKEN)
        sluice.fails(USAGE_ERROR, "in brackets ([::1]:8379)", "backup", path + "2", "--http",
                     "::1:8379")
        sluice.fails(NO_CONNECTION, "", "backup", path + "2", "--http", "[::1]:1")
        sluice.fails(SERVER_ERROR, "401", "backup", path + "2", SLUICE_HTTP_TOKEN="another-one")
        sluice.fails(SERVER_ERROR, "401", "backup", path + "2")

        target = os.path.join(directory, "data")
        done = subprocess.run([program, path, target], capture_output=True, text=True, timeout=60,
                              check=True)
        require("holds everything up to lsn" in done.stdout, done.stdout)
        with Server(options.program, {"appendonly": "yes", "enable-debug-command": "yes"},
                    directory=target, kind="sluice") as server, server.connect() as connection:
            require_equal(connection.call("DEBUG", "DIGEST").value, digest, "the state")
            require_equal(info(connection, "replication")["role"], "master", "role")
        again = subprocess.run([program, path, target], capture_output=True, text=True, timeout=60,
                               check=False)
        require_equal(again.returncode, 1, "a directory that holds data")
        with open(path, "r+b") as file:
            file.truncate(os.path.getsize(path) - 1)
        cut = subprocess.run([program, path, target + "2"], capture_output=True, text=True,
                             timeout=60, check=False)
        require_equal(cut.returncode, 1, "a file that is cut")
        require("ends before it is whole" in cut.stderr, cut.stderr)


def test_rights(options):
    """the token of the nodes opens the copy and nothing else; without a token it stays closed"""
    with group_of(options, nodes=1) as group:
        node = group.primary()
        node.ports["http-port"] = node.directives["http-port"]
        with Client(node, token=TOKEN) as client:
            for path in ("/api/v1/queues", "/api/v1/journal", "/metrics"):
                client.expect(401, "GET", path)
            client.expect(401, "POST", "/api/v1/checkpoint")
            client.expect(503, "GET", "/api/v1/checkpoint")  # the first one is being made
        with Client(node, token=None) as client:
            client.expect(401, "GET", "/api/v1/checkpoint")
            client.expect(200, "GET", "/api/v1/queues")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
