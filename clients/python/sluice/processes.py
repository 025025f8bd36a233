"""Handlers in child processes: one child for each slot, started when it is first needed. The first
one is started at once: if it cannot be, that is no fault of a job.

The child only runs handlers. This process has the connections, and sends heartbeats whatever the
child does. A child that exits fails its job alone; one that ignores a cancel is killed.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import pickle
import select
import threading
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any, Callable, Optional

from sluice import forks, signals
from sluice.codec import Codec, decode
from sluice.errors import CodecError, SluiceError
from sluice.job import WorkerJob
from sluice.notes import Notes
from sluice.outcome import GIVEN_BACK, Outcome, outcome_of_error
from sluice.plan import Lease
from sluice.slots import Finished, ThreadSlots

POLL = 0.25  # seconds between two looks whether a child is to be killed

_SIZE = 8  # bytes of the number before what a child says

_spawn = multiprocessing.get_context("spawn")


class ChildError(SluiceError):
    """What a handler in a child has raised, as text; or how the child has exited."""


class ProcessSlots(ThreadSlots):
    """Each thread has a child, and waits for what it says."""

    def __init__(self, handler: Callable[[WorkerJob], Any], codec: Codec, finished: Finished,
                 grace: float, stopping: Callable[[], bool]) -> None:
        super().__init__(handler, codec, finished)
        self._grace = grace
        self._own = threading.local()
        self._closed = False
        self.begin()
        forks.remember(self)
        # Before multiprocessing waits for the children, as they do not hear its SIGTERM.
        atexit.register(self.close)
        try:
            self._spare.append(self._start())
            self._spare[0].wait_begun(stopping)
        except BaseException:
            self.close()
            raise

    def begin(self) -> None:
        """Also in the child of a fork: these are not its children."""
        self._children: dict[WorkerJob, Child] = {}  # by what they run
        self._started: set[Child] = set()
        self._spare: list[Child] = []

    def _start(self) -> Child:
        child = Child(self._handler, self._codec)
        self._started.add(child)
        return child

    def stop(self, job: WorkerJob, why: str) -> None:
        super().stop(job, why)
        self._stop(job, self._grace)

    def kill(self, job: WorkerJob) -> None:
        self._stop(job, 0)

    def close(self) -> None:
        atexit.unregister(self.close)
        self._closed = True
        super().close()
        for child in list(self._started):
            child.close()

    def _stop(self, job: WorkerJob, grace: float) -> None:
        child = self._children.get(job)
        if child is not None:
            child.stop(job, grace)

    def run(self, job: WorkerJob) -> tuple[Outcome, Any]:
        if self._closed:
            return GIVEN_BACK, None
        try:
            child: Optional[Child] = getattr(self._own, "child", None)
            with contextlib.suppress(IndexError):
                child = child or self._spare.pop()
            if child is not None and not child.alive:  # It has ended without a job.
                self._started.discard(child)
                child = None
            self._own.child = child = child or self._start()
        except Exception as error:  # The machine is full.
            return outcome_of_error(error, job._stopped.is_set()), error
        self._children[job] = child
        if self._closed:  # by now
            child.close()
        try:
            outcome = child.run(job, self._grace)
        except Exception as error:  # Likewise. It may have read a half of what the child says.
            child.close()
            return outcome_of_error(error, job._stopped.is_set()), error
        finally:
            del self._children[job]
            if not child.alive:
                self._started.discard(child)
        if self._closed and outcome.kind == "FAIL":
            return GIVEN_BACK, None
        if outcome.kind != "ack":
            return outcome, ChildError(outcome.error)
        result = outcome.result
        try:
            return outcome, None if result is None else decode(self._codec, result, "result")
        except CodecError:  # It need not read what it writes.
            return outcome, result


class _Killed(Exception):
    """The child was killed: its job was to stop, and had not ended after grace."""


class Child:
    """A child process, and the job that it runs."""

    def __init__(self, handler: Callable[[WorkerJob], Any], codec: Codec) -> None:
        orders, self._orders = _spawn.Pipe(duplex=False)  # short ones
        jobs, self._jobs = _spawn.Pipe(duplex=False)
        self._words, words = _spawn.Pipe(duplex=False)
        os.set_blocking(self._jobs.fileno(), False)
        self._room, self._spoken = select.poll(), select.poll()
        self._room.register(self._jobs, select.POLLOUT)
        self._spoken.register(self._words, select.POLLIN)
        self._lock = threading.Lock()
        self._job: Optional[WorkerJob] = None
        self._runs = 0
        self._kill_at: Optional[float] = None
        self._has_ended = False
        self._process = _spawn.Process(target=_serve, args=(orders, jobs, words, handler, codec),
                                       daemon=True)
        self._process.start()
        for theirs in (orders, jobs, words):
            theirs.close()

    @property
    def alive(self) -> bool:
        # A program that ignores SIGCHLD does not hear of the end.
        return not self._has_ended and self._process.is_alive()

    def wait_begun(self, stopping: Callable[[], bool]) -> None:
        """Until it can run a job, or nobody wants that any more. Raises ChildError if it ends
        before: what it says is on stderr."""
        try:
            while not stopping():
                if self._is_ready(self._spoken):
                    self._hear()
                    return
        except (EOFError, OSError):
            raise ChildError(f"a child cannot begin: {self._end()}") from None

    def _is_ready(self, pipe: select.poll) -> bool:
        """Waits for the pipe, but no longer than POLL. Raises EOFError if the child has ended, and
        _Killed if it was to be killed by now."""
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            self.close()
            raise _Killed
        if pipe.poll(POLL * 1000):
            return True
        if not self.alive and not pipe.poll(0):
            raise EOFError  # A fork of the child still has the pipe.
        return False

    def _write(self, data: bytes) -> None:
        """More than a pipe holds, to a child that may not read."""
        left = memoryview(data)
        while left:
            if self._is_ready(self._room):
                left = left[os.write(self._jobs.fileno(), left):]

    def _hear(self) -> Any:
        """The next words of a child that may stop amid them."""
        return pickle.loads(self._read(int.from_bytes(self._read(_SIZE), "big")))

    def _read(self, size: int) -> bytearray:
        data = bytearray(size)
        left = memoryview(data)
        while left:
            if self._is_ready(self._spoken):
                count = os.readv(self._words.fileno(), [left])
                if count == 0:
                    raise EOFError
                left = left[count:]
        return data

    def _end(self) -> str:
        self._process.join()
        self._has_ended = True
        code = self._process.exitcode or 0
        return f"exit {128 - code if code < 0 else code}"

    def close(self) -> None:
        self._process.kill()
        self._process.join()
        self._has_ended = True

    def stop(self, job: WorkerJob, grace: float) -> None:
        """The handler knows what this process knows by now. The child is killed if the job has not
        ended after `grace` seconds."""
        kill_at = time.monotonic() + grace
        with self._lock, contextlib.suppress(OSError):
            if self._job is job:  # not the next one
                self._kill_at = min(self._kill_at or kill_at, kill_at)
                self._orders.send(("stop", (job._why, job.cancelled, job.lost)))

    def run(self, job: WorkerJob, grace: float) -> Outcome:
        lease = job._held
        parts = pickle.dumps((lease.queue, lease.id, lease.token, lease.attempt, lease.payload,
                              lease.term, lease.extra))
        try:
            with self._lock:
                self._job, self._kill_at = job, None
                self._runs += 1
                self._orders.send(("job", self._runs))
            if job._stopped.is_set():  # before it could be told
                self.stop(job, grace)
            self._write(parts)
            return self._wait(lease.notes)
        except _Killed:
            return GIVEN_BACK
        except (EOFError, OSError):
            return Outcome("FAIL", error=self._end())
        finally:
            with self._lock:
                self._job = None

    def _wait(self, notes: Notes) -> Outcome:
        while True:
            kind, run, value = self._hear()
            if run != self._runs:
                continue  # A thread that an earlier handler has left behind says something.
            if kind == "progress":
                notes.set_progress(value)
            elif kind == "log":
                notes.add_log(value)
            elif kind == "done":
                outcome: Outcome = value
                return outcome


# -- In the child ---------------------------------------------------------------------------------


class _SentNotes(Notes):
    """Sends what the handler says to the parent at once, with the number of its run."""

    def __init__(self, send: Callable[[str, int, Any], None], run: int) -> None:
        super().__init__()
        self._send = send
        self._run = run

    def set_progress(self, data: bytes) -> None:
        self._send("progress", self._run, data)

    def add_log(self, data: bytes) -> None:
        self._send("log", self._run, data)


def _serve(orders: Connection, jobs: Connection, words: Connection,
           handler: Callable[[WorkerJob], Any], codec: Codec) -> None:
    """Runs jobs until the parent ends. Signals of a process group are the parent's business."""
    _deaf = signals.Handler(lambda *_: None)
    lock = threading.Lock()
    runs: list[tuple[int, WorkerJob]] = []  # the one that runs
    more = threading.Semaphore(0)

    def send(kind: str, run: int, value: Any) -> None:
        data = pickle.dumps((kind, run, value))
        left = memoryview(len(data).to_bytes(_SIZE, "big") + data)
        with lock:
            while left:
                left = left[os.write(words.fileno(), left):]

    def receive() -> None:
        with open(jobs.fileno(), "rb", closefd=False) as parts:
            while True:
                kind, value = orders.recv()
                if kind == "job":
                    job = WorkerJob(Lease(*pickle.load(parts)), codec)
                    job._held.notes = _SentNotes(send, value)
                    runs[:] = [(value, job)]
                    more.release()
                elif runs:
                    job = runs[0][1]
                    why, job._held.stop, job._held.lost = value
                    job._stop(why)

    def receive_all() -> None:
        try:
            receive()
        except (EOFError, OSError, pickle.UnpicklingError):
            pass  # The parent has ended.
        except BaseException:  # The machine is full: nothing would hear what it is to do.
            traceback.print_exc()
        os._exit(1)

    slots = ThreadSlots(handler, codec, lambda *_: None)
    threading.Thread(target=receive_all, daemon=True).start()
    send("begun", 0, None)
    while True:
        more.acquire()
        run, job = runs[0]
        job._decode()  # The parent has done so without an error.
        outcome, value = slots.run(job)
        if isinstance(value, SystemExit):
            raise value
        send("done", run, outcome)
