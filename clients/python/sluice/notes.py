"""What a handler says of its job, until heartbeats have carried it."""

from __future__ import annotations

import threading
from typing import Optional

from sluice import wire

LOG_AT_ONCE = 16 * 1024  # bytes of a job's log that one heartbeat carries
MOST_LOG = 1 << 20  # bytes of it that wait for heartbeats


class Notes:
    """Progress and log of a run. For several threads; one heartbeat at a time takes what there is.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._progress: Optional[bytes] = None
        self._log = bytearray()
        self._taken: tuple[Optional[bytes], bytes] = None, b""  # by the last heartbeat
        self._ended = False

    def __bool__(self) -> bool:
        return self._progress is not None or bool(self._log)

    def set_progress(self, data: bytes) -> None:
        with self._lock:
            if not self._ended:
                self._progress = data

    def add_log(self, data: bytes) -> None:
        """Keeps the newest MOST_LOG bytes."""
        with self._lock:
            if not self._ended:
                self._log += data
                del self._log[:-MOST_LOG]

    def end(self) -> None:
        """What is said from now on is dropped."""
        with self._lock:
            self._ended = True

    def drop(self) -> None:
        """Nobody takes what is left."""
        with self._lock:
            self._progress = None
            self._log.clear()

    def take(self, most_log: int = LOG_AT_ONCE) -> wire.Words:
        """The options of Q.TOUCH: the last progress, and the oldest bytes of the log."""
        with self._lock:
            progress, log = self._progress, bytes(self._log[:most_log])
            self._taken = progress, log
            self._progress = None
            del self._log[:most_log]
        said = wire.one("PROGRESS", progress)
        return (*said, "LOG", log) if log else said

    def restore(self, uncertain: bool) -> None:
        """The heartbeat was not done: what it took is sent again, unless there is newer progress.
        If that is `uncertain`, the log is not: it might be doubled."""
        with self._lock:
            progress, log = self._taken
            self._taken = None, b""
            if self._progress is None:
                self._progress = progress
            if not uncertain:
                self._log[:0] = log
                del self._log[:-MOST_LOG]

    def refused(self) -> None:
        """The server does not take the progress; or, without one, the log."""
        with self._lock:
            progress, log = self._taken
            self._taken = None, b""
            if progress is not None:
                self._log[:0] = log
