"""The job that a handler is given, and how a handler ends."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Optional, Union

from sluice import wire
from sluice.codec import Codec, decode, encode
from sluice.errors import CodecError, SluiceError
from sluice.plan import GIVEN_BACK, Lease, Outcome


class Fatal(SluiceError):
    """Raised by a handler: the job has failed, and is not tried again."""


class Retry(SluiceError):
    """Raised by a handler: the run has failed. `delay` (seconds) replaces the backoff; ValueError
    for one that the server would refuse, together with the ends of other runs."""

    def __init__(self, text: str = "", delay: Optional[float] = None) -> None:
        super().__init__(text)
        if delay is not None and not 0 <= delay <= wire.LONGEST:
            raise ValueError(f"a delay is 0 seconds or more, not {delay}")
        self.delay = delay


class Cancelled(SluiceError):
    """Raised by `job.check()`: the handler is to stop. The text is the reason."""


class WorkerJob:
    """A job in the hands of its handler. Its methods may be called by all threads."""

    def __init__(self, lease: Lease, codec: Codec) -> None:
        self.held = lease  # for the worker
        self._codec = codec
        self._stopped = threading.Event()
        self._why: Optional[str] = None
        self.queue = wire.to_text(lease.queue)
        self.id = wire.to_text(lease.id)
        self.lease = lease.token  # greater than that of every earlier run: a fencing token
        self.attempt = lease.attempt  # 1 for the first run
        self.payload: Any = lease.payload
        self.extra = lease.extra  # what `with_` of the worker asked for

    def __repr__(self) -> str:
        return f"<sluice.WorkerJob {self.id} of {self.queue}, attempt {self.attempt}>"

    def decode(self) -> None:
        """For the worker. Raises CodecError for a payload that cannot be decoded, or the result of
        a job that this one needed."""
        self.payload = decode(self._codec, self.held.payload, "payload")
        needed = self.extra.get("need_results")
        if needed is not None:
            results = {id: decode(self._codec, data, f"the result of {id}") if data else None
                       for id, data in needed.items()}
            self.extra = {**self.extra, "need_results": results}

    @property
    def cancelled(self) -> Optional[str]:
        """The reason of Q.CANCEL, once the worker knows of it."""
        return self.held.stop

    @property
    def lost(self) -> bool:
        """Whether the lease is another's by now: what the handler returns is not sent."""
        return self.held.lost

    def progress(self, value: Any) -> None:
        """Sets the job's progress, which the next heartbeat carries. Raises CodecError."""
        self.held.notes.set_progress(encode(self._codec, value, "progress"))

    def log(self, text: Union[str, bytes]) -> None:
        """Appends to the job's log with the next heartbeat: the newest 16 KB of what has come."""
        self.held.notes.add_log(wire.to_bytes(text))

    def check(self) -> None:
        """Raises Cancelled if the handler is to stop: a cancel, a lost lease, the end of grace."""
        if self._stopped.is_set():
            raise Cancelled(self._why or "")

    def wait(self, seconds: float) -> None:
        """Sleeps. Raises Cancelled at once if the handler is to stop."""
        self._stopped.wait(wire.shortened(seconds))
        self.check()

    def stop(self, why: str) -> None:
        """For the worker: from now on `check` raises."""
        self._why = self._why or why
        self._stopped.set()

    @property
    def stopped(self) -> bool:
        return self._stopped.is_set()


def outcome_of_result(result: Any, codec: Codec) -> Outcome:
    """A handler has returned. What cannot be encoded fails the job for good."""
    if result is None:
        return Outcome("ack")
    try:
        return Outcome("ack", result=encode(codec, result, "result"))
    except CodecError as error:
        return Outcome("FATAL", error=str(error))


def outcome_of_error(error: BaseException, stopped: bool) -> Outcome:
    """A handler has raised. A job that was told to stop ends cancelled when it is given back."""
    if isinstance(error, Cancelled) or (stopped and isinstance(error, asyncio.CancelledError)):
        return GIVEN_BACK
    if isinstance(error, Fatal):
        return Outcome("FATAL", error=_text_of(error))
    if isinstance(error, Retry):
        return Outcome("FAIL", error=_text_of(error), delay=error.delay)
    text = _text_of(error)
    return Outcome("FAIL", error=type(error).__name__ + (f": {text}" if text else ""))


def _text_of(error: BaseException) -> str:
    """What can be sent of its text, which is the handler's: it may raise, or not be Unicode."""
    try:
        text = str(error)
    except Exception:
        return "its text cannot be read"
    return text.encode("utf-8", "backslashreplace").decode()
