"""The signals that tell a process to end."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any, Callable, Optional

from sluice import forks

_NUMBERS = (signal.SIGTERM, signal.SIGINT)


class Handler:
    """Hears SIGTERM and SIGINT until its end. The child of a fork hears them as before, and so does
    a program that is started. Made by the main thread."""

    def __init__(self, heard: Callable[[int, Optional[FrameType]], Any]) -> None:
        self._before = [signal.signal(number, heard) for number in _NUMBERS]
        forks.remember(self)

    def begin(self) -> None:
        """In the child of a fork."""
        self.end()

    def end(self) -> None:
        before, self._before = self._before, []
        for number, handler in zip(_NUMBERS, before):
            signal.signal(number, handler)
