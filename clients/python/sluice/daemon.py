"""A thread for an event loop that does not keep the program from its end, as those of a
ThreadPoolExecutor do: they are waited for, also if they wait for what nobody does any more."""

from __future__ import annotations

import asyncio
import queue
import threading
from concurrent.futures import Future
from typing import Any, Callable, Optional, TypeVar

T = TypeVar("T")


class DaemonThread:
    """Runs one call after the other, until it is closed."""

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[Optional[Callable[[], None]]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def call(self, function: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """What the event loop that runs may await. A cancellation reaches only what has not begun.
        """
        future: Future[T] = Future()

        def act() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = function(*arguments)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        self._calls.put(act)
        return asyncio.wrap_future(future)

    def close(self) -> None:
        """It ends with the calls that it has."""
        self._calls.put(None)

    def _run(self) -> None:
        while (act := self._calls.get()) is not None:
            act()
