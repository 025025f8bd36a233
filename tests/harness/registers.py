"""Registers of a group: plain keys that one client writes, and others read at chosen processes.

Each key gets ascending numbers, one after the other, at the primary that the Sentinels name. A
write whose reply was lost may happen at any later time: its key is given up for another one. A
reader stays with one process, which led as it began, until that one is gone. Reads and writes then
respect real time: a read tells no less than what was acknowledged, or read anywhere, before it was
sent, and nothing that was not sent before it was answered. Now and then a large value goes along,
whose commit is longer than a frame.

    with Registers(group) as registers:
        with registers.read_at(group.primary()):
            ...                         # a fault, and its effect
        reads = registers.verify()
"""

import contextlib
import itertools
import os
import socket
import threading
import time

from harness.crash.client import Link, Violation

COUNT = 6
PACE_S = 0.01      # from one write to the next
READ_PACE_S = 0.02  # of each reader's connection
SILENCE_S = 0.5
LARGE_EACH_S = 3.0
LARGE_BYTES = 700_000  # beyond two frames, and nothing makes it smaller


class Register:
    def __init__(self, key):
        self.key = key
        self.writes = [[0, 0.0, 0.0]]   # number, sent, acknowledged or None; none at first
        self.reads = []                 # (number, sent, answered, whose)

    def verify(self):
        """Returns how many reads it has looked at, and forgets them."""
        reads, self.reads = self.reads, []
        writes = list(self.writes)
        # Known from when an acknowledgement, or the answer to a read, has told it.
        told = sorted([(acknowledged_s, number, "acknowledged")
                       for number, _, acknowledged_s in writes if acknowledged_s is not None] +
                      [(answered_s, number, f"read at {name}")
                       for number, _, answered_s, name in reads])
        sent = {number: sent_s for number, sent_s, _ in writes}
        known, known_s, how = told[0][1], told[0][0], told[0][2]
        later = iter(told)
        ahead = next(later)
        for number, sent_s, answered_s, name in sorted(reads, key=lambda read: read[1]):
            while ahead is not None and ahead[0] < sent_s:
                if ahead[1] > known:
                    known_s, known, how = ahead
                ahead = next(later, None)
            if number < known:
                raise Violation(f"{self.key}: a read that was sent to {name} at {sent_s:.3f} told "
                                f"{number}; {known} was {how} at {known_s:.3f}")
            if sent.get(number, answered_s) >= answered_s:
                raise Violation(f"{self.key}: {name} told {number}, which nobody had written")
        # Later reads must tell no less than the newest number: nothing else is asked of them.
        newest = max(number for _, number, _ in told)
        while self.writes[0][0] < newest:
            del self.writes[0]
        self.writes[0][2] = self.writes[0][2] or time.monotonic()
        return len(reads)


class Registers:
    def __init__(self, group):
        self._group = group
        self._link = None
        self._names = itertools.count(1)
        self._now = [self._new() for _ in range(COUNT)]
        self._given_up = []
        self._large_at_s = 0.0
        self._next_port = None
        self._stop = threading.Event()
        self._goes_on = threading.Event()
        self._goes_on.set()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._goes_on.set()
        self._thread.join()

    @contextlib.contextmanager
    def held(self):
        """Meanwhile nothing new is written."""
        self._goes_on.clear()
        try:
            yield
        finally:
            self._goes_on.set()

    def turn_to(self, node):
        """The next write goes there. The Sentinels may name another primary for a while."""
        self._next_port = node.port

    def reads(self):
        """How many were answered and are not verified."""
        return sum(len(register.reads) for register in [*self._given_up, *self._now])

    def verify(self):
        """While nobody reads. Returns how many reads it has looked at."""
        given_up, self._given_up = self._given_up, []
        return sum(register.verify() for register in [*given_up, *self._now])

    def _new(self):
        return Register(f"register:{next(self._names)}")

    # -- Writes -------------------------------------------------------------------------------

    def _run(self):
        for number, index in enumerate(itertools.cycle(range(COUNT)), 1):
            self._goes_on.wait()
            if self._stop.wait(PACE_S):
                break
            self._connect()
            if self._link is not None and not self._write(self._now[index], number):
                self._lose()
                self._given_up.append(self._now[index])
                self._now[index] = self._new()
        self._lose()

    def _connect(self):
        port, self._next_port = self._next_port, None
        if port is not None:
            self._lose()
        with contextlib.suppress(OSError):
            if self._link is None and (port := port or self._group.find_primary()) is not None:
                self._link = Link(port, SILENCE_S)

    def _write(self, register, number):
        """Whether it was acknowledged."""
        write = [number, time.monotonic(), None]
        register.writes.append(write)
        try:
            [reply] = self._link.ask(["SET", register.key, number])
            if reply == "OK":
                write[2] = time.monotonic()
                self._write_large(write[2])
        except OSError:
            self._lose()
        return write[2] is not None

    def _write_large(self, now_s):
        if now_s >= self._large_at_s:
            self._large_at_s = now_s + LARGE_EACH_S
            self._link.ask(["SET", "large", os.urandom(LARGE_BYTES)])

    def _lose(self):
        if self._link is not None:
            self._link.close()
            self._link = None

    # -- Reads --------------------------------------------------------------------------------

    @contextlib.contextmanager
    def read_at(self, node):
        """A connection for each key: one whose newest write is not durable yet waits for that."""
        with contextlib.ExitStack() as ended:
            with contextlib.suppress(OSError):
                for index in range(COUNT):
                    link = Link(node.port)
                    ended.callback(link.close)
                    reader = threading.Thread(target=self._read, args=(link, index, node.name),
                                              daemon=True)
                    reader.start()
                    ended.callback(reader.join)
                    ended.callback(self._shut, link)
            yield

    @staticmethod
    def _shut(link):
        with contextlib.suppress(OSError):
            link.socket.shutdown(socket.SHUT_RDWR)

    def _read(self, link, index, name):
        with contextlib.suppress(OSError):
            while not self._stop.wait(READ_PACE_S):
                register = self._now[index]
                sent_s = time.monotonic()
                [value] = link.ask(["GET", register.key])
                if value is None or isinstance(value, bytes):
                    register.reads.append((int(value or 0), sent_s, time.monotonic(), name))
