"""Where handlers run: threads of this process, or tasks of an event loop.

`start` and `stop` do not wait. Each run ends with one call of `finished`, from any thread.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from typing import Any, Awaitable, Callable, Optional, Protocol

from sluice import tracing
from sluice.codec import Codec
from sluice.job import WorkerJob
from sluice.outcome import GIVEN_BACK, Outcome, outcome_of_error, outcome_of_result

FULL_PAUSE = 0.2  # seconds before a job is given back for which no thread could be started

Finished = Callable[[WorkerJob, Outcome, Any], None]  # the job, how it ended, result or exception


class Slots(Protocol):
    """What the worker needs of threads, tasks and processes."""

    def start(self, job: WorkerJob) -> None:
        """Runs the handler for the job."""

    def stop(self, job: WorkerJob, why: str) -> None:
        """Tells the handler to stop."""

    def kill(self, job: WorkerJob) -> None:
        """Ends the handler, if that is possible."""

    def close(self) -> None:
        """The worker has ended."""


class ThreadSlots:
    """As many threads as handlers run at the same time. A thread cannot be ended from outside."""

    def __init__(self, handler: Callable[[WorkerJob], Any], codec: Codec,
                 finished: Finished) -> None:
        self._handler = handler
        self._codec = codec
        self._finished = finished
        self._jobs: queue.SimpleQueue[Optional[WorkerJob]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0  # threads without a job
        self._threads = 0

    def start(self, job: WorkerJob) -> None:
        with self._lock:
            self._idle -= 1
            begin = self._idle < 0
            self._threads += begin
        if begin:
            try:
                threading.Thread(target=self._run, name="sluice-handler", daemon=True).start()
            except RuntimeError as error:  # The machine is full: the next free thread takes it.
                with self._lock:
                    self._threads -= 1
                    alone = self._threads == 0
                    self._idle += alone
                if alone:  # A worker on another machine may have room.
                    time.sleep(FULL_PAUSE)
                    self._finished(job, GIVEN_BACK, error)
                    return
        self._jobs.put(job)

    def stop(self, job: WorkerJob, why: str) -> None:
        job._stop(why)

    def kill(self, job: WorkerJob) -> None:
        pass

    def close(self) -> None:
        for _ in range(self._threads):
            self._jobs.put(None)

    def _run(self) -> None:
        with self._lock:
            self._idle += 1
        while (job := self._jobs.get()) is not None:
            outcome, value = self.run(job)
            with self._lock:
                self._idle += 1  # Before the worker may start the next job here.
            self._finished(job, outcome, value)

    def run(self, job: WorkerJob) -> tuple[Outcome, Any]:
        """The outcome, and what the handler returned or raised."""
        try:
            with tracing.span_of(job.extra.get("tags") or {}, job.queue):
                result = self._handler(job)
        except BaseException as error:  # SystemExit ends this run, not the worker.
            return outcome_of_error(error, job._stopped.is_set()), error
        return outcome_of_result(result, self._codec), result


class TaskSlots:
    """Handlers are tasks of the event loop; a handler that is to stop is cancelled."""

    def __init__(self, handler: Callable[[WorkerJob], Awaitable[Any]], codec: Codec,
                 finished: Finished, loop: asyncio.AbstractEventLoop) -> None:
        self._handler = handler
        self._codec = codec
        self._finished = finished
        self._loop = loop
        self._tasks: dict[WorkerJob, asyncio.Task[tuple[Outcome, Any]]] = {}

    def start(self, job: WorkerJob) -> None:
        self._loop.call_soon_threadsafe(self._begin, job)

    def stop(self, job: WorkerJob, why: str) -> None:
        job._stop(why)
        self._loop.call_soon_threadsafe(self._cancel, job)

    def kill(self, job: WorkerJob) -> None:
        """Another cancel would interrupt what the task does because of the first."""

    def close(self) -> None:
        pass

    def _begin(self, job: WorkerJob) -> None:
        task = self._tasks[job] = self._loop.create_task(self._run(job))
        task.add_done_callback(lambda done: self._end(job, done))

    def _cancel(self, job: WorkerJob) -> None:
        task = self._tasks.get(job)
        if task is not None:
            task.cancel()

    async def _run(self, job: WorkerJob) -> tuple[Outcome, Any]:
        try:
            with tracing.span_of(job.extra.get("tags") or {}, job.queue):
                value = await self._handler(job)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # SystemExit ends this run, not the worker.
            return outcome_of_error(error, job._stopped.is_set()), error
        return outcome_of_result(value, self._codec), value

    def _end(self, job: WorkerJob, task: asyncio.Task[tuple[Outcome, Any]]) -> None:
        """Also of a task that was cancelled before its first step."""
        del self._tasks[job]
        if task.cancelled():
            error = asyncio.CancelledError()
            self._finished(job, outcome_of_error(error, job._stopped.is_set()), error)
        else:
            self._finished(job, *task.result())
