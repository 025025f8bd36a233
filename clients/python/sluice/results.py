"""Waiting for the ends of jobs: all waits of a queue in a process share one blocking connection.

One thread follows the events of the jobs that are waited for. It reads a job's state after it has
the number from which it follows, and before it waits: an end is seen by the one or by the other. A
new wait ends the blocking command by CLIENT UNBLOCK, and is followed from the same number on. A
second thread sends that, so that who waits is not held up by a server that does not answer.

The number is kept while nobody waits, since finding it takes the server a look at the whole log.
Another connection may lead to a server that has lost its last events: there it is found again.

Without events (`events 0`, or no right to read them) up to 8 connections use Q.GET … WAIT.
"""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import threading
import time
from concurrent.futures import Future
from typing import Any, Optional, Union

from sluice import errors, forks, wire
from sluice.link import Closed, ConnectionLost, Link, Pauses, is_outage
from sluice.server import Connect

BLOCK = 5.0  # seconds; after each such time without an event the states are read again
BLOCK_ALONE = 0.25  # if the user may not use CLIENT UNBLOCK
MAX_FILTER = 256  # ids; with more of them the ends of all jobs are read
MAX_GETS = 1000
POOL = 8
FIRST_PAUSE, LONGEST_PAUSE = 0.001, 0.1  # before a follower is woken again
ENDS = ("completed", "failed", "cancelled", "expired")

Wait = Future[Any]  # Q.GET's reply when the job has ended; None: it is not kept


def end_of_log(link: Link, key: bytes, patience: float = 0.0, since: Union[int, str] = "-") -> int:
    """The number of the newest event, which is looked for from `since` on. Raises what the server
    replies, and Unreachable."""
    last = since
    while True:
        # No job has this id, so each reply is a mark, which says how far it has looked.
        reply = link.call("Q.EVENTS", key, last, "ID", b"\0", patience=patience)
        if not reply:
            return 0 if last == "-" else int(last)
        last = int(reply[-1][0])


@dataclasses.dataclass
class _Place:
    """Where the follower reads on."""

    cursor: int  # All events up to this one have happened.
    connection: int  # Link.connections of the one on which that was found


class Results:
    """The waits of one queue in this process."""

    def __init__(self, connect: Connect, link: Link, key: bytes, timeout: float) -> None:
        self._connect = connect
        self._link = link
        self._key = key
        self._timeout = timeout
        self.begin()
        forks.remember(self)

    def begin(self) -> None:
        self._lock = threading.Condition()
        self._waits: dict[bytes, list[Wait]] = {}
        self._started = 0  # threads
        self._blocking: Optional[Link] = None
        self._place: Optional[_Place] = None  # None: to be found
        self._closed = False
        self._asked = 0  # waits so far; the follower knows of the first `_seen`
        self._seen = 0
        self._client: Any = None  # of the blocking connection, while it may block
        self._may_unblock = True

    def wait(self, id: str, timeout: Optional[float]) -> Any:
        """Q.GET's reply when the job has ended. Raises ResultTimeout."""
        if timeout is not None and timeout <= 0:
            return self._look(id)
        future = self.follow(id)
        try:
            return future.result(wire.shortened(timeout))
        except concurrent.futures.TimeoutError:
            raise errors.ResultTimeout(id) from None
        finally:
            self.forget(id, future)

    def _look(self, id: str) -> Any:
        """`wait`, if the job has ended by now. It takes as long as a reply does."""
        try:
            reply = self._link.call("Q.GET", self._key, wire.to_bytes(id), "WITH", "result")
        except errors.SluiceError as error:
            if not is_outage(error):
                raise
            raise errors.ResultTimeout(id) from error
        if not _has_ended(reply):
            raise errors.ResultTimeout(id)
        return reply

    def follow(self, id: str) -> Wait:
        """A future of Q.GET's reply; `forget` it if it is no longer wanted. Does not block."""
        future: Wait = Future()
        future.set_running_or_notify_cancel()  # It may be forgotten, but not cancelled.
        with self._lock:
            if self._closed:
                raise errors.Unreachable("the queue is closed")
            while self._started < 2:  # One that cannot be started is tried again by the next wait.
                run = (self._run, self._wake)[self._started]
                threading.Thread(target=run, name="sluice-results", daemon=True).start()
                self._started += 1
            self._waits.setdefault(wire.to_bytes(id), []).append(future)
            self._asked += 1
            self._lock.notify_all()
        return future

    def forget(self, id: str, future: Wait) -> None:
        with self._lock:
            waits = self._waits.get(wire.to_bytes(id), [])
            if future in waits:
                waits.remove(future)
                if not waits:
                    del self._waits[wire.to_bytes(id)]

    @property
    def waiting(self) -> int:
        """How many jobs are waited for."""
        return len(self._waits)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            waits, self._waits = self._waits, {}
            self._lock.notify_all()
        for future in (future for futures in waits.values() for future in futures):
            future.set_exception(errors.Unreachable("the queue is closed"))
        if self._blocking is not None:
            self._blocking.end()

    # -- The follower -------------------------------------------------------------------------

    def _wake(self) -> None:
        """Makes the follower take up what was asked, whenever it is blocked."""
        woken = 0
        pause = FIRST_PAUSE
        while (unseen := self._unseen(woken)) is not None:
            asked, client = unseen
            reply = self._link.exchange([("CLIENT", "UNBLOCK", client)])[0]
            if reply != 0 and not is_outage(reply):
                self._may_unblock = not isinstance(reply, errors.ServerError)
                woken, pause = asked, FIRST_PAUSE
                continue
            time.sleep(pause)  # Its command is on the way, or its connection is lost.
            pause = min(2 * pause, LONGEST_PAUSE)

    def _unseen(self, woken: int) -> Optional[tuple[int, Any]]:
        """Waits until there is something that the blocked follower does not know: how much was
        asked, and its connection. None at the end."""
        with self._lock:
            while not self._closed and (
                    self._client is None or max(self._seen, woken) >= self._asked):
                self._lock.wait()
            return None if self._closed else (self._asked, self._client)

    def _run(self) -> None:
        pauses = Pauses(float("inf"))
        while self._has_waits():
            kept = self._place is not None
            try:
                self._blocking = self._blocking or Link(self._connect, BLOCK + self._timeout)
                if kept or self._has_events():
                    self._follow(self._blocking)
                else:
                    self._poll()
                pauses = Pauses(float("inf"))
            except errors.Trimmed:
                self._place = None
            except errors.SluiceError as error:
                self._place = None
                # The rights may have changed while nobody waited: then there is another way.
                if not is_outage(error) and not kept:
                    self._fail(error)
                pauses.pause()
            except Exception as error:  # such as one of the function that makes clients
                self._place = None
                self._fail(error)
            finally:
                self._client = None
        if self._blocking is not None:
            self._blocking.close()

    def _has_waits(self) -> bool:
        """Waits for waits. False at the end."""
        with self._lock:
            while not self._waits and not self._closed:
                self._lock.wait()
            return not self._closed

    def _has_events(self) -> bool:
        try:
            reply = self._link.call("Q.CONFIG", self._key, "GET", "events")
            self._link.call("Q.EVENTS", self._key, "$", "COUNT", 1)
        except (errors.NoPermission, errors.Adopted):
            return False
        kept = wire.to_text(dict(wire.pairs(reply))["events"])  # `0`, `1000` or `1000:60000`
        return kept.split(":")[0] != "0"

    def _follow(self, link: Link) -> None:
        """Until nobody waits, or there are no events any more."""
        client = self._client_of(link)
        place = self._place = self._place_on(link)
        read: set[bytes] = set()  # Their state was read after the event `place.cursor`.
        while True:
            with self._lock:
                ids = set(self._waits)
                asked = self._seen = self._asked
                self._client = client
            ended = self._get(ids - read)
            with self._lock:
                ids = (ids - ended) & set(self._waits)
            if not ids and not self._waits:
                return
            read = ids
            reply = link.call(*self._events(place.cursor, ids))
            if link.connections != place.connection:
                raise ConnectionLost("it is another connection")
            if not reply and asked == self._asked:
                read = set()
                if not self._has_events():
                    self._place = None
                    return
                place.cursor = end_of_log(link, self._key, since=place.cursor)
            for event in reply or ():
                place.cursor = int(event[0])
                read.discard(event[3])

    def _place_on(self, link: Link) -> _Place:
        """The place that is kept, if it is of this connection, which has been made by now."""
        if self._place is not None and self._place.connection == link.connections:
            return self._place
        connection = link.connections
        return _Place(end_of_log(link, self._key), connection)

    def _client_of(self, link: Link) -> Any:
        """What CLIENT UNBLOCK names; None if the user may not use CLIENT."""
        try:
            return link.call("CLIENT", "ID")
        except errors.NoPermission:
            self._may_unblock = False
            return None

    def _events(self, cursor: int, ids: set[bytes]) -> wire.Words:
        block = BLOCK if self._may_unblock else BLOCK_ALONE
        filtered = wire.each("ID", sorted(ids)) if len(ids) <= MAX_FILTER else ()
        return ("Q.EVENTS", self._key, cursor, "COUNT", 1000,
                "BLOCK", wire.milliseconds(block), *wire.each("TYPE", ENDS), *filtered)

    def _get(self, ids: set[bytes]) -> set[bytes]:
        """Reads these jobs. Returns those whose waits are over. Raises for a server that is away.
        """
        over: set[bytes] = set()
        wanted = sorted(ids)
        for start in range(0, len(wanted), MAX_GETS):
            some = wanted[start:start + MAX_GETS]
            replies = self._link.exchange([("Q.GET", self._key, id, "WITH", "result")
                                           for id in some])
            over.update(id for id, reply in zip(some, replies) if self._told(id, reply))
            away = [reply for reply in replies if is_outage(reply) or isinstance(reply, Closed)]
            if away:
                raise away[0]
        return over

    def _told(self, id: bytes, reply: Any) -> bool:
        """The reply of Q.GET. Returns whether it ends the waits for this job: its end, or an error
        of the server, which may be about this id alone."""
        refused = isinstance(reply, errors.ServerError) and not is_outage(reply)
        if not refused and (isinstance(reply, errors.SluiceError) or not _has_ended(reply)):
            return False
        with self._lock:
            futures = self._waits.pop(id, [])
        for future in futures:
            if refused:
                future.set_exception(reply)
            else:
                future.set_result(reply)
        return True

    def _fail(self, error: Exception) -> None:
        with self._lock:
            waits, self._waits = self._waits, {}
        for future in (future for futures in waits.values() for future in futures):
            future.set_exception(error)

    # -- Without events -----------------------------------------------------------------------

    def _poll(self) -> None:
        """Until nobody waits, or there are events again."""
        turn: collections.deque[bytes] = collections.deque()
        threads = [threading.Thread(target=self._poll_some, args=(turn,), daemon=True)
                   for _ in range(POOL)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _poll_some(self, turn: collections.deque[bytes]) -> None:
        link = Link(self._connect, BLOCK + self._timeout)
        pauses = Pauses(float("inf"))
        until = time.monotonic() + BLOCK
        while time.monotonic() < until and (id := self._next(turn)) is not None:
            wait = 1.0 if len(self._waits) <= POOL else 0.1
            words = ("Q.GET", self._key, id, "WITH", "result")
            waited = link.exchange([(*words, "WAIT", wire.milliseconds(wait))])[0]
            reply = link.exchange([words])[0] if waited is None else waited
            self._told(id, reply)
            if is_outage(reply):
                pauses.pause()
        link.close()

    def _next(self, turn: collections.deque[bytes]) -> Optional[bytes]:
        """The next id in turn; None if nobody waits."""
        with self._lock:
            for _ in range(len(turn) + 1):
                if not turn:
                    turn.extend(self._waits)
                if not turn:
                    return None
                id = turn.popleft()
                if id in self._waits:
                    return id
        return None


def _has_ended(reply: Any) -> bool:
    if reply is None:
        return True
    return wire.to_text(dict(wire.pairs(reply))["state"]) in ENDS
