"""How a run of a handler has ended, and what is said of it."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any, Optional

from sluice import wire
from sluice.codec import Codec, encode, text_of
from sluice.errors import CodecError, SluiceError


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


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a run has ended: `ack` with a result, or a mode of Q.NACK."""

    kind: str  # ack, FAIL, FATAL, SILENT
    result: Optional[bytes] = None
    error: str = ""
    delay: Optional[float] = None  # seconds


GIVEN_BACK = Outcome("SILENT")


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
        return Outcome("FATAL", error=text_of(error))
    if isinstance(error, Retry):
        return Outcome("FAIL", error=text_of(error), delay=error.delay)
    text = text_of(error)
    return Outcome("FAIL", error=type(error).__name__ + (f": {text}" if text else ""))
