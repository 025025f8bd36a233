"""Client and workers for Sluice, a durable execution queue.

    queue = Queue("exec", "redis://localhost:6379")
    print(queue.add({"code": "print(1)"}, group="ann").result(timeout=30))

    Worker("exec", run, concurrency=8).run()

`errors` has the exceptions for every error of the server, `testing` a server for tests.
"""

from sluice import errors
from sluice.aio import AsyncJob, AsyncQueue
from sluice.codec import Codec
from sluice.errors import (Duplicate, Forgotten, GroupFull, NotCompleted, Paused, QueueFull,
                           ResultTimeout, ServerError, SluiceError, TooLate, Unknown, Unreachable)
from sluice.job import WorkerJob
from sluice.outcome import Cancelled, Fatal, Retry
from sluice.queue import Job, JobInfo, Queue, QueueEvent
from sluice.worker import Worker

__all__ = [
    "AsyncJob", "AsyncQueue", "Cancelled", "Codec", "Duplicate", "Fatal", "Forgotten",
    "GroupFull", "Job", "JobInfo", "NotCompleted", "Paused", "Queue", "QueueEvent", "QueueFull",
    "ResultTimeout", "Retry", "ServerError", "SluiceError", "TooLate", "Unknown", "Unreachable",
    "Worker", "WorkerJob", "errors",
]
