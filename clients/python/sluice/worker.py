"""Worker: takes jobs from queues, runs a handler for each, and says how they ended.

This is the I/O. What is sent and when, heartbeats too, is in plan.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import os
import queue
import socket
import threading
import time
import uuid
from typing import Any, Callable, Iterator, Optional, Sequence, Union

from sluice import forks, signals, tracing, wire
from sluice.codec import Codec, codec_of
from sluice.daemon import DaemonThreads
from sluice.errors import CodecError, SluiceError, Unreachable
from sluice.job import WorkerJob
from sluice.link import Link
from sluice.outcome import Outcome
from sluice.plan import BLOCK, Command, Effect, Lease, Plan
from sluice.processes import ProcessSlots
from sluice.server import Server, connect_to
from sluice.slots import Slots, TaskSlots, ThreadSlots

Handler = Callable[[WorkerJob], Any]

REPLY_MARGIN = 2.0  # beyond BLOCK, for the reply of a blocking pop
END_POLL = 0.1  # between two looks whether the end has come
END_MARGIN = 1.0  # for handlers that were told to stop at the end of grace
UNREACHABLE_MARGIN = 5.0  # for giving jobs back to a server that does not answer


class Worker:
    """Runs `handler(job)` for the jobs of one queue, or of several in the order named.

    A `def` runs in a thread, an `async def` as a task, and with `processes` in a child process, one
    for each slot. What it returns becomes the job's result. Raising `Fatal` fails the job, `Retry`
    and any other exception fail the run, and `Cancelled` (from `job.check()`) gives the job back.

    A process has two connections: one for commands, one that waits for jobs.

    Options; times are seconds:
      concurrency   handlers at the same time
      codec         `json`, `raw` or an object, for payloads, results and progress
      match, lease, cap, with_   of Q.POP
      heartbeat     the longest time between two signs of life; a third of the lease if that is less
      grace         how long handlers may run on after `stop()`, or after a cancel (`processes`)
      burst         ends when there are no more jobs; max_jobs: ends after that many
      connect_timeout   how long the first connection may take; None: for ever
      timeout       how long a reply may take; while jobs run at most a third of their lease, so
                    that there is time for another try
      signals       False: SIGTERM and SIGINT are the program's, which calls `stop()`
      on_started(job), on_completed(job, result), on_failed(job, exception), on_lost(job)
                    hooks, called in the worker's own thread: they must be quick
    """

    def __init__(
        self,
        queues: Union[str, Sequence[str]],
        handler: Handler,
        server: Server = None,
        *,
        concurrency: int = 1,
        codec: Union[str, Codec] = "json",
        match: Union[str, Sequence[str]] = (),
        lease: Optional[float] = None,
        cap: Optional[int] = None,
        with_: Sequence[str] = (),
        heartbeat: float = 1.0,
        grace: float = 30.0,
        burst: bool = False,
        max_jobs: Optional[int] = None,
        processes: bool = False,
        connect_timeout: Optional[float] = 10.0,
        timeout: float = 5.0,
        signals: bool = True,
        logger: Optional[logging.Logger] = None,
        on_started: Optional[Callable[[WorkerJob], object]] = None,
        on_completed: Optional[Callable[[WorkerJob, Any], object]] = None,
        on_failed: Optional[Callable[[WorkerJob, Any], object]] = None,
        on_lost: Optional[Callable[[WorkerJob], object]] = None,
    ) -> None:
        """Raises ValueError for bad options. It does not connect yet."""
        self.queues = (queues,) if isinstance(queues, str) else tuple(queues)
        self._is_async = _is_async(handler)
        if not self.queues or concurrency < 1 or (max_jobs or 0) < 0:
            raise ValueError("a worker needs a queue, concurrency from 1, and max_jobs from 0")
        if not callable(handler) or (self._is_async and processes):
            raise ValueError(f"a handler is a function, with processes a def, not {handler!r}")
        self._name_it()
        self.counts = {"started": 0, "completed": 0, "failed": 0, "returned": 0, "lost": 0}
        self._handler, self._codec = handler, codec_of(codec)
        self._processes, self._takes_signals = processes, signals
        self._connect = connect_to(server)
        self._timeout, self._connect_timeout, self._grace = timeout, connect_timeout, grace
        self._log = logger or logging.getLogger("sluice")
        with_ = (with_,) if isinstance(with_, str) else tuple(with_)
        if tracing.available and "tags" not in with_:
            with_ = (*with_, "tags")
        self._hooks = {"started": on_started, "completed": on_completed, "failed": on_failed,
                       "lost": on_lost}
        self._plan = Plan(
            [wire.to_bytes(name, "queue") for name in self.queues], concurrency,
            heartbeat=heartbeat, burst=burst, max_jobs=max_jobs,
            options=(*wire.span("LEASE", lease), *wire.one("CAP", cap),
                     *wire.each("MATCH", match), *wire.each("WITH", with_)))
        # What happens to the worker; SimpleQueue may be used by a signal's handler.
        self._inbox: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._jobs: dict[Lease, WorkerJob] = {}
        self._values: dict[Lease, Any] = {}  # what handlers returned or raised
        self._stopped_at = 0.0
        self._deadline: Optional[float] = None  # of grace
        self._ready = threading.Event()
        self._reached: Optional[bool] = None  # as it was logged last
        self._failure: Optional[Unreachable] = None  # the last one
        self._owns_loop = False

    def _name_it(self) -> None:
        """Under the name of another the server would hand out that one's jobs again."""
        self._pid = os.getpid()
        self.name = f"{socket.gethostname()}:{self._pid}:{uuid.uuid4().hex[:8]}"

    # -- Use ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Works until `stop()`, the end of a `burst` or `max_jobs`. In the main thread SIGTERM and
        SIGINT stop it: it takes no more jobs, finishes what runs within `grace`, and gives the rest
        back; a second signal ends the grace. Handlers in threads that are still running then end
        with the process: SystemExit(1). It may be called once. After `stop()` it takes no job.

        Raises the error of a server that refuses the worker: NoPermission, Adopted, CommandError
        for one without these commands. Unreachable, if there is no answer in `connect_timeout`; a
        server that is away later is waited for.
        """
        if self._is_async:
            self._end(self._run_loop())
            return
        with self._signals():
            self._end(self._manage(self._new_slots))

    def _new_slots(self) -> Slots:
        if not self._processes:
            return ThreadSlots(self._handler, self._codec, self._finished)
        return ProcessSlots(self._handler, self._codec, self._finished, self._grace,
                            lambda: not self._inbox.empty())

    async def serve(self) -> None:
        """As `run`, for an `async def` handler, whose tasks run on this event loop. Cancelling it
        stops the worker, and returns when the jobs have ended or are given back."""
        if not self._is_async:
            raise ValueError("serve() is for an async def handler; run() takes the others")
        self._end(await self._serve())

    async def _serve(self) -> bool:
        loop = asyncio.get_running_loop()
        slots = TaskSlots(self._handler, self._codec, self._finished, loop)
        with self._signals():
            # The loop's own threads may be few, and are its program's. A program whose loop ends
            # before its tasks ends with them: its handlers would never go on.
            managed = DaemonThreads("sluice-worker").call(self._manage, lambda: slots)
            cancelled = False
            while not managed.done():
                try:
                    await asyncio.shield(managed)
                except asyncio.CancelledError:
                    cancelled = True
                    self.stop()
        if cancelled and managed.result():
            raise asyncio.CancelledError()
        return managed.result()

    def _run_loop(self) -> bool:
        """As asyncio.run does it, but does not wait for handlers that do not end."""
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        self._owns_loop = True
        try:
            ended = loop.run_until_complete(self._serve())
        except BaseException:
            self.stop()
            self.stop()  # Without grace: what runs is given back, and has not failed.
            _close_loop(loop, END_MARGIN)
            raise
        if ended:
            _close_loop(loop, None)
        return ended

    def stop(self) -> None:
        """Takes no more jobs, and ends as `run` says. Returns at once; from any thread, or from a
        signal's handler. A second call ends the grace."""
        self._inbox.put(("stop",))

    @property
    def ready(self) -> bool:
        """Whether the server has answered, and the worker takes jobs."""
        return self._ready.is_set()

    @property
    def quiet(self) -> bool:
        """Whether the operator has told the worker to be quiet in one of its queues, which gives it
        no jobs then. It hears so with the heartbeats of that queue's jobs; and with the next job of
        that queue, that it is quiet no more."""
        return self._plan.quiet

    def wait_ready(self, timeout: Optional[float] = None) -> bool:
        """Waits until the worker is ready. False if the time is over."""
        return self._ready.wait(wire.shortened(timeout))

    # -- The loop -----------------------------------------------------------------------------

    def _manage(self, new_slots: Callable[[], Slots]) -> bool:
        """Works to the end. Returns whether all handlers have ended."""
        plan = self._plan
        if plan.worker:
            raise RuntimeError("a worker runs once: make another one")
        if self._pid != os.getpid():  # The worker was made before a fork.
            self._name_it()
        plan.worker = self.name.encode()
        link = Link(self._connect, self._timeout)
        blocking_link = Link(self._connect, BLOCK + REPLY_MARGIN)
        blocking = _Blocking(blocking_link, self._inbox)
        try:
            slots = new_slots()  # Last: an exception after it would leave its children behind.
        except BaseException:
            blocking.close()
            raise
        began = time.monotonic()
        try:
            self._take(slots, 0.0)  # It may have been told to stop by now.
            while not plan.done:
                now = time.monotonic()
                self._refuse_silence(now - began)
                commands = plan.commands(now)
                if commands:
                    self._exchange(slots, link, commands)
                    continue
                waiting = plan.blocking_pop(now)
                if waiting is not None:
                    blocking.start(waiting)
                if self._overdue(slots, now):
                    break
                self._take(slots, self._wait(now))
            if plan.failure is not None:
                self._give_up(slots, link)
        finally:
            blocking.close()
            link.close()
            slots.close()
            self._ready.clear()
        if plan.failure is not None:
            raise plan.failure
        if plan.busy and self._owns_loop:
            # A handler that blocks the event loop keeps it from ending, too.
            timer = threading.Timer(END_MARGIN, os._exit, (1,))
            timer.daemon = True
            timer.start()
        return plan.busy == 0

    def _refuse_silence(self, seconds: float) -> None:
        """A server that has never been there may have another address."""
        longest = self._connect_timeout
        if longest is None or seconds < longest or self._plan.answered or self._plan.draining:
            return
        if self._failure is not None:
            raise Unreachable(f"no connection within {longest:g} s: {self._failure}")

    def _give_up(self, slots: Slots, link: Link) -> None:
        """Gives back what the worker holds, as far as the server that refuses it takes that."""
        for job in list(self._jobs.values()):
            slots.stop(job, "the server refuses the worker")
            slots.kill(job)
        until = time.monotonic() + END_MARGIN
        while not self._plan.settled and (now := time.monotonic()) < until:
            self._exchange(slots, link, self._plan.last_commands(now))
            if not self._plan.settled:
                self._take(slots, END_POLL)  # the reply to the pop that waits

    def _wait(self, now: float) -> float:
        wait = self._plan.wait(now)
        if self._deadline is None:
            return wait
        left = self._deadline - now
        return min(wait, END_POLL, left) if left > 0 else min(wait, END_POLL)

    def _take(self, slots: Slots, timeout: float) -> None:
        """Waits for something to happen, and takes all that has."""
        with contextlib.suppress(queue.Empty):
            item = self._inbox.get(timeout=timeout)
            while True:
                if item[0] == "stop":
                    self._drain()
                elif item[0] == "finished":
                    if self._plan.finish(item[1], item[2]):
                        self._values[item[1]] = item[3]
                else:
                    self._receive(slots, item[1], item[2])
                item = self._inbox.get_nowait()

    def _exchange(self, slots: Slots, link: Link, commands: Sequence[Command]) -> None:
        link.limit(self._plan.reply_time(commands, self._timeout))
        replies = link.exchange([command.words for command in commands])
        for command, reply in zip(commands, replies):
            self._receive(slots, command, reply)

    def _receive(self, slots: Slots, command: Command, reply: Any) -> None:
        plan = self._plan
        for effect in plan.receive(command, reply, time.monotonic()):
            self._do(slots, effect)
        if isinstance(reply, Unreachable):
            self._failure = reply
        if plan.reached != self._reached and plan.failure is None:
            self._reached = plan.reached
            if plan.reached:
                self._log.info("worker %s: connected", self.name)
            else:
                self._log.warning("worker %s: the server is away: %s", self.name, reply)
        if plan.reached and plan.popped and not plan.draining:
            self._ready.set()
        else:
            self._ready.clear()

    def _do(self, slots: Slots, effect: Effect) -> None:
        lease = effect.lease
        if effect.kind == "start":
            self._start(slots, lease)
            return
        if effect.kind == "refused":
            self._log.warning("job %r of %r: its progress or log is too large", lease.id,
                              lease.queue)
            return
        if effect.kind == "stop":
            slots.stop(self._jobs[lease], lease.stop or "")
            return
        self.counts[effect.kind] += 1
        job = self._jobs.pop(lease, None)
        value = self._values.pop(lease, None)
        if job is None:
            return  # It came while the worker took no more jobs.
        if effect.kind == "lost":
            self._log.warning("job %r of %r: its lease is lost", lease.id, lease.queue)
            slots.stop(job, "the lease is lost")
        elif effect.kind == "failed" and effect.outcome is not None:
            self._log.warning("job %r of %r failed: %s", lease.id, lease.queue,
                              effect.outcome.error, exc_info=_exc_info(value))
        self._call_hook(effect.kind, job, value)

    def _start(self, slots: Slots, lease: Lease) -> None:
        self.counts["started"] += 1
        job = self._jobs[lease] = WorkerJob(lease, self._codec)
        try:
            job._decode()
        except CodecError as error:
            self._call_hook("started", job, None)
            self._values[lease] = error
            self._plan.finish(lease, Outcome("FATAL", error=str(error)))
        else:
            self._call_hook("started", job, None)
            slots.start(job)

    def _call_hook(self, kind: str, job: WorkerJob, value: Any) -> None:
        hook: Optional[Callable[..., object]] = self._hooks.get(kind)
        if hook is None:
            return
        try:
            if kind in ("completed", "failed"):
                hook(job, value)
            else:
                hook(job)
        except Exception:
            self._log.exception("the hook for %s jobs has failed", kind)

    # -- The end ------------------------------------------------------------------------------

    def _drain(self) -> None:
        self._plan.drain()
        now = time.monotonic()
        if self._deadline is None:
            self._stopped_at, self._deadline = now, now + self._grace
        else:
            self._deadline = min(self._deadline, now)

    def _overdue(self, slots: Slots, now: float) -> bool:
        """At the end of grace gives back what still runs. True when nothing is left to wait for."""
        if self._deadline is None:
            return False
        if self._plan.idle and now - self._stopped_at > UNREACHABLE_MARGIN:
            return True
        if now < self._deadline:
            return False
        for lease in self._plan.give_back():
            job = self._jobs[lease]
            slots.stop(job, "the worker ends")
            slots.kill(job)
        late = now - self._deadline
        return late > UNREACHABLE_MARGIN or (late > END_MARGIN and self._plan.settled)

    def _end(self, all_ended: bool) -> None:
        if not all_ended:
            self._log.error("worker %s: %d handlers did not end", self.name, self._plan.busy)
            raise SystemExit(1)

    def _finished(self, job: WorkerJob, outcome: Outcome, value: Any) -> None:
        """From a handler's thread."""
        self._inbox.put(("finished", job._held, outcome, value))

    # -- Signals ------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Not an event loop's handlers: a handler that blocks the loop would keep them waiting."""
        in_main_thread = threading.current_thread() is threading.main_thread()
        if not self._takes_signals or not in_main_thread:
            yield
            return
        _in_main_thread.add(self)
        try:
            yield
        finally:
            _in_main_thread.remove(self)


class _InMainThread:
    """The workers of the main thread, of which an event loop may have several: a signal stops all
    of them."""

    def __init__(self) -> None:
        self.begin()
        forks.remember(self)

    def begin(self) -> None:
        self._workers: list[Worker] = []
        self._handler: Optional[signals.Handler] = None

    def add(self, worker: Worker) -> None:
        self._workers.append(worker)
        if self._handler is None:
            self._handler = signals.Handler(lambda *_: self._stop())

    def remove(self, worker: Worker) -> None:
        if worker in self._workers:  # not in the child of a fork
            self._workers.remove(worker)
        if not self._workers and self._handler is not None:
            self._handler.end()
            self._handler = None

    def _stop(self) -> None:
        for worker in self._workers:
            worker.stop()


_in_main_thread = _InMainThread()


class _Blocking:
    """The connection that waits for jobs, in a thread of its own: one command at a time."""

    def __init__(self, link: Link, inbox: queue.SimpleQueue[tuple[Any, ...]]) -> None:
        self._link = link
        self._inbox = inbox
        self._commands: queue.SimpleQueue[Optional[Command]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="sluice-pop", daemon=True).start()

    def start(self, command: Command) -> None:
        self._commands.put(command)

    def close(self) -> None:
        self._commands.put(None)
        self._link.end()

    def _run(self) -> None:
        while (command := self._commands.get()) is not None:
            try:
                reply = self._link.exchange([command.words])[0]
            except Exception as error:  # such as one of the function that makes clients
                reply = Unreachable(str(error))
            self._inbox.put(("popped", command, reply))
        self._link.close()


def _close_loop(loop: asyncio.AbstractEventLoop, margin: Optional[float]) -> None:
    """Cancels its tasks, and waits for them. With a margin they have so many seconds to end before
    that, and again after it; if some have not ended then, it stays open."""
    left = asyncio.all_tasks(loop)
    if left and margin is not None:
        loop.run_until_complete(asyncio.wait(left, timeout=margin))
    for task in left:
        task.cancel()
    if left and loop.run_until_complete(asyncio.wait(left, timeout=margin))[1]:
        return
    loop.run_until_complete(loop.shutdown_asyncgens())
    asyncio.set_event_loop(None)
    loop.close()


def _is_async(handler: Handler) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
        getattr(handler, "__call__", None))


def _exc_info(value: Any) -> Any:
    """What a handler raised on purpose needs no traceback in the log."""
    unexpected = isinstance(value, BaseException) and not isinstance(value, SluiceError)
    return value if unexpected else None
