#!/usr/bin/python3
"""Damages a data directory in every way that disks know, and starts the server on it.

    tests/crash/damage_test.py                      some hundred damages
    tests/crash/damage_test.py --cuts 5000 --flips 20000
    tests/crash/damage_test.py --server redis-server --only cut   (Redis takes any prefix)

Two directories are made. `always`: everything was acknowledged after a sync. `everysec`: a first
part was synced, a second part was only written when the server was killed. Then, on a copy each
time: the newest log file is cut, or cut and filled with zeros or noise; bits are flipped in every
file; each file is deleted. The server must either start with a state of the history that holds at
least all that was synced, or exit with a code other than 0 and name a file of the directory. A
shorter history without a word, a crash and a hang are failures. The seed is printed.
"""

import argparse
import os
import random
import re
import shutil
import sys
import tempfile
import threading
import time
import traceback

from harness import summary, wait_until
from harness.crash.client import StateChecker, Link, Violation, read_state, wall_ms
from harness.crash.model import Generator, Model, Unit
from harness.servers import DEFAULT_SLUICE, Server, ServerError

PREFIX = "c0:"
PROGRESS = b"c0:n:progress"
OURS = {"server.log", "ready"}            # the harness's files, not the server's
SETTLE_S = {"always": 0.2, "everysec": 2.2}  # for redis-server


class History:
    """A numbered sequence of units; each also writes its number, so a state tells where it is."""

    def __init__(self, seed):
        self._generator = Generator(random.Random(seed), PREFIX)
        self._model = Model()
        self.units = []
        self.answered_ms = []

    def send(self, link, count):
        """`count` more units in pipelines; returns when all are acknowledged."""
        end = len(self.units) + count
        while len(self.units) < end:
            batch = []
            for _ in range(min(20, end - len(self.units))):
                number = len(self.units) + 1
                commands = self._generator.unit().commands + [["SET", PROGRESS, b"%d" % number]]
                unit = Unit(commands, multi=True)
                unit.sent_ms = wall_ms()
                self.units.append(unit)
                batch.append(unit)
            link.send_bytes(b"".join(unit.wire for unit in batch))
            for unit in batch:
                for _ in range(unit.reply_count):
                    reply = link.read()
                self.answered_ms.append(wall_ms())
                expected = unit.apply(self._model, self.answered_ms[-1])
                if reply != expected:
                    raise Violation(f"{unit.commands} answered {reply!r}, not {expected!r}")

    def check(self, link, at_least):
        """The server's state is the history up to some unit at or after `at_least`."""
        earliest = wall_ms()
        state = read_state(link, PREFIX)
        latest = wall_ms()
        reached = int(state[PROGRESS].value) if PROGRESS in state else 0
        if not at_least <= reached <= len(self.units):
            raise Violation(f"a shorter history in silence: it ends at unit {reached} of "
                            f"{len(self.units)}; {at_least} were synced")
        model = Model()
        for unit, answered_ms in zip(self.units[:reached], self.answered_ms):
            unit.apply(model, answered_ms)
        checker = StateChecker(model, state, earliest, latest)
        if checker.wrong:
            raise Violation(f"the state is not that of unit {reached}: {checker.explain()}")
        return reached


class Damaged:
    """A directory with a known history, and the damages that are done to copies of it."""

    def __init__(self, program, mode, seed, work):
        self.program = program
        self.mode = mode
        self.rng = random.Random(f"{seed}/{mode}")
        self.history = History(f"{seed}/{mode}/history")
        self.origin = os.path.join(work, mode)
        self.copies = os.path.join(work, mode + "-copy-")
        self.directives = {"appendonly": "yes", "appendfsync": mode, "save": ""}
        os.mkdir(self.origin)
        self.kind = Server(program, directory=self.origin).kind
        self.synced = 0
        self.counts = {"started": 0, "shorter": 0, "refused": 0, "named another file": 0}
        self.failures = []
        self._lock = threading.Lock()

    # -- The origin ---------------------------------------------------------------------------

    def make(self):
        """A checkpoint, log in tables, and log in the newest file; killed at the end."""
        server = Server(self.program, self.directives, directory=self.origin)
        try:
            self._run_part(server, 300, checkpoint=True)
            server.stop()
            self._run_part(server, 300)
            server.kill()
            server.start()
            link = Link(server.port)
            self.history.send(link, 200)
            self._wait_until_synced(link)
            if self.mode != "always":
                self._send_unsynced(link)
            link.close()
            server.kill()
        finally:
            server.stop()
        if self.kind == "redis":
            self.synced = 0   # it loads what it finds of its log

    def _is_synced(self, link):
        text, = link.ask(["INFO", "persistence"])
        synced, last = (re.search(rb"sluice_journal_%s_lsn:(\d+)" % name, text).group(1)
                         for name in (b"synced", b"last"))
        return synced == last

    def _wait_until_synced(self, link):
        if self.kind == "redis":
            time.sleep(SETTLE_S[self.mode])
        else:
            wait_until(lambda: self._is_synced(link), what="the sync")
        self.synced = len(self.history.units)

    def _send_unsynced(self, link):
        """Within the second in which the next sync is not due yet."""
        for _ in range(20):
            self.history.send(link, 200)
            if self.kind == "redis" or not self._is_synced(link):
                return
            self.synced = len(self.history.units)
        raise Violation("everything is synced at once")

    def _run_part(self, server, units, checkpoint=False):
        server.start()
        link = Link(server.port)
        self.history.send(link, units)
        if checkpoint:
            link.ask(["BGSAVE"])
            time.sleep(0.5)
            self.history.send(link, units)
        link.close()

    # -- Damages: (what it is, the file, a function of the copy's path of the file) -------------

    def files(self):
        found = []
        for folder, _, names in os.walk(self.origin):
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), self.origin)
                if path not in OURS:
                    found.append(path)
        return sorted(found)

    def newest_log(self):
        suffix = ".incr.aof" if self.kind == "redis" else ".log"
        logs = [path for path in self.files()
                if path.endswith(suffix) and self._size(path) > 0]
        if not logs:
            raise Violation(f"no log file in {self.files()}")
        return max(logs, key=lambda path: os.path.basename(path))

    def _size(self, path):
        return os.path.getsize(os.path.join(self.origin, path))

    def cuts(self, count):
        """At every byte of the last ones, and at random before them."""
        path = self.newest_log()
        size = self._size(path)
        last = list(range(max(0, size - count // 2), size))
        others = sorted(self.rng.sample(range(size), min(size, count - len(last))))
        for at in last + others + [0]:
            fill = self.rng.choice(("", "", "zeros", "noise"))
            yield (f"{path} cut at {at} of {size}" + (f", then {fill}" if fill else ""), path,
                   lambda file, at=at, fill=fill: self._cut(file, at, fill))

    @staticmethod
    def _cut(file, at, fill):
        size = os.path.getsize(file)
        os.truncate(file, at)
        if fill:
            with open(file, "ab") as log:
                log.write(b"\0" * (size - at) if fill == "zeros" else
                          random.Random(at).randbytes(size - at))

    def flips(self, count):
        """Every file gets its share, whatever its size, and each file's first and last byte."""
        files = [path for path in self.files() if self._size(path) > 0]
        for index in range(count):
            path = files[index % len(files)]
            size = self._size(path)
            at = {0: 0, 1: size - 1}.get(index // len(files), self.rng.randrange(size))
            bit = self.rng.randrange(8)
            yield (f"{path} bit {bit} of byte {at} of {size} flipped", path,
                   lambda file, at=at, bit=bit: self._flip(file, at, bit))

    @staticmethod
    def _flip(file, at, bit):
        with open(file, "r+b") as damaged:
            damaged.seek(at)
            byte = damaged.read(1)[0]
            damaged.seek(at)
            damaged.write(bytes([byte ^ 1 << bit]))

    def deletions(self):
        for path in self.files():
            yield f"{path} deleted", path, os.unlink

    # -- Trying -------------------------------------------------------------------------------

    def try_all(self, damages, threads=2):
        pending = iter(list(damages))

        def work(number):
            while True:
                with self._lock:
                    damage = next(pending, None)
                if damage is None:
                    return
                self._try(damage, f"{self.copies}{number}")

        workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def _try(self, damage, copy):
        what, path, change = damage
        try:
            shutil.copytree(self.origin, copy, ignore=lambda _, names: OURS & set(names))
            change(os.path.join(copy, path))
            outcome = self._start(copy, path)
        except Exception as error:  # noqa: BLE001
            with self._lock:
                self.failures.append(f"{what}: {type(error).__name__}: {error}")
            return
        finally:
            shutil.rmtree(copy, ignore_errors=True)
        with self._lock:
            for name in outcome:
                self.counts[name] += 1

    def _start(self, copy, path):
        """The outcomes to count; raises where the server broke its promise."""
        server = Server(self.program, self.directives, directory=copy)
        try:
            try:
                server.start()
            except ServerError as error:
                return self._judge_refusal(str(error), copy, path)
            link = Link(server.port)
            reached = self.history.check(link, self.synced)
            link.close()
            return ["started"] + (["shorter"] if reached < len(self.history.units) else [])
        finally:
            server.kill()
            server.close()

    def _judge_refusal(self, text, copy, path):
        exited = re.search(r"exited with code (-?\d+)", text)
        if exited is None:
            raise Violation(f"neither started nor refused: {text}")
        if int(exited.group(1)) <= 0:
            raise Violation(f"exit code {exited.group(1)}: {text}")
        if os.path.basename(path) in text:
            return ["refused"]
        known = [os.path.basename(name) for name in self.files()]
        # A damaged name leads to a file that is not there; a foreign version is a case of its own.
        named = any(name in text for name in known) or "/log/MANIFEST-" in text
        if not named and not re.search(r"has format \d+; this version", text):
            raise Violation(f"refused, but named no file of {copy}: {text}")
        return ["refused", "named another file"]


def run_mode(program, mode, arguments, work):
    damaged = Damaged(program, mode, arguments.seed, work)
    damaged.make()
    kinds = {"cut": lambda: damaged.cuts(arguments.cuts),
             "flip": lambda: damaged.flips(arguments.flips),
             "delete": damaged.deletions}
    for name in arguments.only or list(kinds):
        damaged.counts = dict.fromkeys(damaged.counts, 0)
        failures_before = len(damaged.failures)
        started = time.monotonic()
        damaged.try_all(kinds[name]())
        counts = ", ".join(f"{kind} {count}" for kind, count in damaged.counts.items())
        failed = len(damaged.failures) - failures_before
        print(f"appendfsync {mode}, {name}: {counts}, failed {failed} "
              f"({time.monotonic() - started:.1f} s)", flush=True)
        if name == "cut" and mode != "always" and damaged.counts["shorter"] == 0:
            damaged.failures.append("no cut of the unsynced tail gave a prefix of the history")
    return damaged.failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default=str(DEFAULT_SLUICE))
    parser.add_argument("--mode", choices=["always", "everysec"], action="append")
    parser.add_argument("--only", choices=["cut", "flip", "delete"], action="append")
    parser.add_argument("--cuts", type=int, default=150)
    parser.add_argument("--flips", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2 ** 32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    modes = arguments.mode or ["always", "everysec"]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="sluice-damage-") as work:
        for mode in modes:
            try:
                failures = run_mode(arguments.server, mode, arguments, work)
            except Exception:  # noqa: BLE001
                failures = [traceback.format_exc()]
            failed += bool(failures)
            for failure in failures[:20]:
                print(f"FAILED {failure}", flush=True)
    print(summary(len(modes) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
