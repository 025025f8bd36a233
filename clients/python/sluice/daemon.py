"""Threads for an event loop that do not keep the program from its end, as those of a
ThreadPoolExecutor do: they are waited for, also if they wait for what nobody does any more."""

from __future__ import annotations

import asyncio
import queue
import threading
import weakref
from concurrent.futures import Future
from typing import Any, Callable, Optional, TypeVar

T = TypeVar("T")

_Call = tuple[Future[Any], Callable[..., Any], tuple[Any, ...], dict[str, Any]]
_Calls = queue.SimpleQueue[Optional[_Call]]


class DaemonThreads:
    """Run calls in their order, `most` at the same time, until they are closed or nobody has them
    any more."""

    def __init__(self, name: str, most: int = 1) -> None:
        self._name = name
        self._left = most  # threads that may be started
        self._calls: _Calls = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)  # threads without a call
        self._end = weakref.finalize(self, self._calls.put, None)
        self._end.atexit = False

    def call(self, function: Callable[..., T], *arguments: Any, **options: Any
             ) -> asyncio.Future[T]:
        """What the event loop that runs may await. A cancellation reaches only what has not begun.
        """
        future: Future[T] = Future()
        if not self._idle.acquire(blocking=False) and self._left > 0:
            threading.Thread(target=_run, args=(self._calls, self._idle), name=self._name,
                             daemon=True).start()
            self._left -= 1
        self._calls.put((future, function, arguments, options))
        return asyncio.wrap_future(future)

    def close(self) -> None:
        """They end with the calls that they have."""
        self._end()


def _run(calls: _Calls, idle: threading.Semaphore) -> None:
    while (call := calls.get()) is not None:
        _act(*call)
        del call  # with what it is about
        idle.release()
    calls.put(None)  # for the others


def _act(future: Future[Any], function: Callable[..., Any], arguments: tuple[Any, ...],
         options: dict[str, Any]) -> None:
    try:
        if future.set_running_or_notify_cancel():
            future.set_result(function(*arguments, **options))
    except BaseException as error:
        future.set_exception(error)
    finally:
        del future, function, arguments, options  # The error has this frame.
