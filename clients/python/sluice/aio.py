"""AsyncQueue: a queue for programs with an event loop.

Commands run in a few threads that share one connection, as those of `Queue` do, so a task that is
cancelled leaves no half of a reply behind: what it has begun runs to its end, and its reply is
read, unless the program ends before. What has not begun, because all threads are busy, is not done;
its patience has begun with the call.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from typing import TYPE_CHECKING, Any, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Optional, Sequence, TypeVar, Union

from sluice import errors, forks
from sluice.codec import Codec
from sluice.daemon import DaemonThreads
from sluice.link import called_at
from sluice.queue import Job, JobInfo, Queue, QueueEvent, result_of
from sluice.server import Server

THREADS = 16  # commands that may be on their way at the same time; they share pipelines

if TYPE_CHECKING:  # Python 3.9 has neither.
    from typing import Concatenate, ParamSpec

    P = ParamSpec("P")

T = TypeVar("T")


def _with_arguments_of(
    method: Callable[Concatenate[Queue, P], Any]
) -> Callable[[Callable[..., T]], Callable[Concatenate[AsyncQueue, P], T]]:
    """The signature is that of the method of Queue, for type checkers and inspect."""
    def as_that(function: Callable[..., T]) -> Callable[Concatenate[AsyncQueue, P], T]:
        setattr(function, "__wrapped__", method)
        return function

    return as_that


class AsyncJob:
    """A job that was added. What it says of itself is from the moment after that."""

    def __init__(self, queue: AsyncQueue, job: Job) -> None:
        self._queue = queue
        self.id = job.id
        self.outcome = job.outcome
        self.state = job.state
        self.position = job.position
        self.eta = job.eta

    def __repr__(self) -> str:
        return f"<sluice.AsyncJob {self.id} of {self._queue.name}>"

    async def get(self, *, with_: Sequence[str] = ()) -> Optional[JobInfo]:
        """See `Job.get`."""
        return await self._queue.get(self.id, with_=with_)

    async def why(self) -> Optional[str]:
        """Why the job waits. None if it does not."""
        info = await self.get()
        return info.why if info else None

    async def cancel(self, reason: Optional[str] = None, grace: Optional[float] = None) -> str:
        """See `Queue.cancel`."""
        return await self._queue.cancel(self.id, reason, grace)

    async def result(self, timeout: Optional[float] = None) -> Any:
        """See `Queue.result`."""
        return await self._queue.result(self.id, timeout)


class AsyncQueue:
    """`Queue` with the same arguments, whose methods are awaited. It belongs to no event loop."""

    def __init__(self, name: str, server: Server = None, *, codec: Union[str, Codec] = "json",
                 timeout: float = 5.0, patience: float = 30.0) -> None:
        self.name = name
        self._queue = Queue(name, server, codec=codec, timeout=timeout, patience=patience)
        self._closed = False
        self.begin()
        forks.remember(self)

    def begin(self) -> None:
        """Also in the child of a fork."""
        self._threads = DaemonThreads("sluice-async", THREADS)

    async def close(self) -> None:
        """As `Queue.close`."""
        if self._closed:
            return
        self._closed = True
        self._threads.close()  # What waits there fails once the queue is closed.
        await asyncio.shield(DaemonThreads("sluice-close").call(self._queue.close))

    async def __aenter__(self) -> AsyncQueue:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @_with_arguments_of(Queue.add)
    async def add(self, *arguments: Any, **options: Any) -> AsyncJob:
        """See `Queue.add`."""
        return AsyncJob(self, await self._run(self._queue.add, *arguments, **options))

    async def add_many(self, jobs: Iterable[Mapping[str, Any]],
                       **options: Any) -> list[Union[AsyncJob, Exception]]:
        """See `Queue.add_many`."""
        added = await self._run(self._queue.add_many, list(jobs), **options)
        return [AsyncJob(self, job) if isinstance(job, Job) else job for job in added]

    async def get(self, id: str, *, with_: Sequence[str] = ()) -> Optional[JobInfo]:
        """See `Queue.get`."""
        return await self._run(self._queue.get, id, with_=with_)

    async def cancel(self, id: str, reason: Optional[str] = None,
                     grace: Optional[float] = None) -> str:
        """See `Queue.cancel`."""
        return await self._run(self._queue.cancel, id, reason, grace)

    async def retry(self, id: str) -> str:
        """See `Queue.retry`."""
        return await self._run(self._queue.retry, id)

    async def result(self, id: str, timeout: Optional[float] = None) -> Any:
        """See `Queue.result`. Takes no thread while it waits."""
        if timeout is not None and timeout <= 0:
            return await self._run(self._queue.result, id, timeout)
        future = self._queue._results.follow(id)
        try:
            reply = await asyncio.wait_for(asyncio.wrap_future(future), timeout)
        except asyncio.TimeoutError:
            raise errors.ResultTimeout(id) from None
        finally:
            self._queue._results.forget(id, future)
        return result_of(id, reply, self._queue._codec)

    async def stats(self, *, group: Optional[str] = None,
                    by: Union[str, Mapping[str, str], None] = None,
                    window: Optional[float] = None) -> dict[str, Any]:
        """See `Queue.stats`."""
        return await self._run(self._queue.stats, group=group, by=by, window=window)

    async def events(self, from_: Union[int, str] = "$", *, types: Sequence[str] = (),
                     ids: Sequence[str] = (), follow: bool = True) -> AsyncIterator[QueueEvent]:
        """See `Queue.events`. It has a thread of its own."""
        self._refuse_closed()
        link = self._queue._follower()
        events = self._queue._follow(link, from_, types=types, ids=ids, follow=follow)
        thread = DaemonThreads("sluice-events")

        def following() -> Optional[QueueEvent]:
            return next(events, None)

        try:
            while (event := await thread.call(following)) is not None:
                yield event
        finally:
            link.end()  # A cancellation does not reach the thread, which waits for an event.
            thread.close()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise errors.Unreachable("the queue is closed")

    def _run(self, function: Callable[..., T], *arguments: Any, **options: Any) -> Awaitable[T]:
        self._refuse_closed()
        # In the context of the caller, which has the present span.
        context = contextvars.copy_context()
        context.run(called_at.set, time.monotonic())
        return self._threads.call(context.run, function, *arguments, **options)
