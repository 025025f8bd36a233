"""Clients of a group under load, which know afterwards what must be there.

A `Load` is one thread with many connections to the primary. Each sends RPUSH of ascending numbers
to a list of its own, a few at once, and reads the new lengths. When a connection ends or is silent
for half a second, what it has sent is unknown, and it continues at the primary that the Sentinels
name. So each list must hold every acknowledged number, of each unknown pipeline a first part,
nothing twice and nothing else, and each length must fit: what was acknowledged is never undone.

    with Load(group) as load:
        load.mark()
        ...                             # a fault, and its effect
        gap_s = load.wait_for_more()
    load.verify()
"""

import collections
import contextlib
import random
import selectors
import socket
import threading
import time

from harness import require, wait_until
from harness.crash.client import Link, Violation
from harness.resp import encode
from harness.servers import LOOPBACK

CONNECTIONS = 64
AT_ONCE = 4
PACE_S = 0.05      # from one pipeline of a connection to its next, on average
SILENCE_S = 0.5    # the socket timeout
SEARCH_S = 0.01    # between two searches of the primary
CALM_GAP_S = 0.6   # what a takeover takes at least, and a pause of the machine hardly


class Line:
    """One connection, and the list that it writes."""

    def __init__(self, number):
        self.key = f"load:{number}".encode()
        self.socket = None
        self.buffer = b""
        self.next_number = 1
        self.in_flight = collections.deque()
        self.acknowledged = []
        self.unknown = []       # pipelines without their replies
        self.length = (0, 0)    # which the list may have: at least, at most
        self.sends_at_s = 0.0
        self.gives_up_at_s = 0.0

    def send(self, now_s):
        numbers = range(self.next_number, self.next_number + AT_ONCE)
        self.next_number += AT_ONCE
        self.in_flight.extend(numbers)
        self.gives_up_at_s = now_s + SILENCE_S
        self.socket.sendall(b"".join(encode(["RPUSH", self.key, number]) for number in numbers))

    def receive(self):
        """Takes the replies that have come. Returns how many were acknowledgements."""
        data = self.socket.recv(1 << 16)
        if not data:
            raise ConnectionError("closed")
        *replies, self.buffer = (self.buffer + data).split(b"\r\n")
        for reply in replies:
            if not reply.startswith(b":"):
                raise ConnectionError(reply.decode(errors="replace"))
            self._acknowledge(int(reply[1:]))
        return len(replies)

    def _acknowledge(self, length):
        number = self.in_flight.popleft()
        least, most = self.length
        if not least < length <= most + 1:
            raise Violation(f"{self.key}: length {length} with {number}, of {least} to {most}")
        self.length = (length, length)
        self.acknowledged.append(number)

    def lose(self):
        """The connection is gone; what is in flight may have happened or not."""
        if self.socket is not None:
            self.socket.close()
        self.socket, self.buffer = None, b""
        if self.in_flight:
            self.unknown.append(list(self.in_flight))
            self.length = (self.length[0], self.length[1] + len(self.in_flight))
            self.in_flight.clear()

    def verify(self, found):
        """Returns how many of the unknown numbers are there."""
        known = set(self.acknowledged)
        lost = known.difference(found)
        if lost:
            raise Violation(f"{self.key}: {len(lost)} acknowledged numbers lost: "
                            f"{sorted(lost)[:5]}")
        if found != sorted(set(found)):
            raise Violation(f"{self.key}: numbers twice or out of order")
        there = set(found) - known
        for pipeline in self.unknown:
            kept = [number in there for number in pipeline]
            if kept != sorted(kept, reverse=True):
                raise Violation(f"{self.key}: of the pipeline {pipeline} {kept} was kept")
            there.difference_update(pipeline)
        if there:
            raise Violation(f"{self.key}: numbers that nobody sent: {sorted(there)[:5]}")
        return len(found) - len(known)


class Load:
    def __init__(self, group, connections=CONNECTIONS, pace_s=PACE_S):
        self.group = group
        self.lines = [Line(number) for number in range(connections)]
        self.pace_s = pace_s
        self.failure = None
        self.errors = collections.Counter()
        self.acknowledged = 0
        self._last_s = None       # the last acknowledgement
        self._longest_s = 0.0     # without one since mark()
        self._marked_s = time.monotonic()
        self._calm_since_s = self._marked_s
        self._search_at_s = 0.0
        self._selector = selectors.DefaultSelector()
        self._stop = threading.Event()
        self._held = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    # -- For the test -------------------------------------------------------------------------

    def __enter__(self):
        self._thread.start()
        self.wait_for_more()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self._stop.set()
        self._thread.join()

    def mark(self):
        """The longest gap counts from here."""
        self._longest_s = 0.0
        self._marked_s = time.monotonic()

    def gap_s(self):
        """The longest time without an acknowledgement since mark(), also one that lasts still."""
        since_s = max(self._last_s or 0.0, self._marked_s)
        return max(self._longest_s, time.monotonic() - since_s)

    def calm_s(self):
        """How long acknowledgements have come without a gap of CALM_GAP_S."""
        return time.monotonic() - self._calm_since_s

    def wait_for_more(self, count=None, timeout_s=20.0):
        """Until so much more is acknowledged (by default more than was on its way); returns the
        longest gap since mark()."""
        enough = self.acknowledged + (count or 2 * AT_ONCE * len(self.lines))
        wait_until(lambda: self.failure or self.acknowledged >= enough, timeout_s,
                   "new acknowledgements")
        if self.failure:
            raise self.failure
        return self._longest_s

    @contextlib.contextmanager
    def held(self):
        """Meanwhile nothing is sent, and nothing is on its way."""
        self._held.set()
        wait_until(lambda: self.failure or not any(line.in_flight for line in self.lines),
                   what="the last replies")
        try:
            yield
        finally:
            self._held.clear()
            self._last_s = None

    def verify(self):
        """Compares every list; returns how many numbers were acknowledged, and how many others are
        there."""
        require(not self._thread.is_alive(), "the load has ended")
        if self.failure:
            raise self.failure
        port = wait_until(self.group.find_primary, what="a primary")
        with contextlib.closing(Link(port)) as link:
            replies = link.ask(*(["LRANGE", line.key, 0, -1] for line in self.lines))
        others = sum(line.verify(list(map(int, found)))
                     for line, found in zip(self.lines, replies))
        return self.acknowledged, others

    # -- The thread ---------------------------------------------------------------------------

    def _run(self):
        try:
            while not self._stop.is_set():
                self._turn()
        except BaseException as error:  # noqa: BLE001
            self.failure = error
        finally:
            for line in self.lines:
                line.lose()
            self._selector.close()

    def _turn(self):
        now_s = time.monotonic()
        if now_s >= self._search_at_s and any(line.socket is None for line in self.lines):
            self._search_at_s = now_s + SEARCH_S
            self._connect()
        for line in self.lines:
            if line.socket is None:
                continue
            if line.in_flight and now_s > line.gives_up_at_s:
                self._lose(line, "silent")
            elif not (line.in_flight or self._held.is_set()) and now_s >= line.sends_at_s:
                with self._losing(line):
                    # Not all at once, so that at any time some are on their way.
                    line.sends_at_s = now_s + self.pace_s * random.uniform(0.5, 1.5)
                    line.send(now_s)
        if not self._selector.get_map():
            self._stop.wait(SEARCH_S)
        for key, _ in self._selector.select(0.005):
            with self._losing(key.data):
                self._count(key.data, key.data.receive())

    def _count(self, line, count):
        now_s = time.monotonic()
        if self._last_s is None or now_s - self._last_s > CALM_GAP_S:
            self._calm_since_s = now_s
        if self._last_s is not None:
            self._longest_s = max(self._longest_s, now_s - max(self._last_s, self._marked_s))
        self._last_s = now_s
        self.acknowledged += count

    def _connect(self):
        port = self.group.find_primary()
        for line in self.lines if port is not None else ():
            if line.socket is not None:
                continue
            with self._losing(line):
                line.socket = socket.create_connection((LOOPBACK, port), timeout=SILENCE_S)
                line.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._selector.register(line.socket, selectors.EVENT_READ, line)

    @contextlib.contextmanager
    def _losing(self, line):
        try:
            yield
        except OSError as error:
            self._lose(line, str(error).split(" ", maxsplit=1)[0])

    def _lose(self, line, why):
        self.errors[why] += 1
        if line.socket is not None:
            with contextlib.suppress(KeyError):
                self._selector.unregister(line.socket)
        line.lose()
