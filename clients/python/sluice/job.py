"""The job that a handler is given."""

from __future__ import annotations

import threading
from typing import Any, Optional, Union

from sluice import wire
from sluice.codec import Codec, decode, encode
from sluice.outcome import Cancelled
from sluice.plan import Lease


class WorkerJob:
    """A job in the hands of its handler. Its methods may be called by all threads; what they say
    once the handler has ended is dropped."""

    def __init__(self, lease: Lease, codec: Codec) -> None:
        self._held = lease  # for the worker
        self._codec = codec
        self._stopped = threading.Event()
        self._why = ""  # it is to stop, for the worker
        self.queue = wire.to_text(lease.queue)
        self.id = wire.to_text(lease.id)
        self.lease = lease.token  # greater than that of every earlier run: a fencing token
        self.attempt = lease.attempt  # 1 for the first run
        self.payload: Any = lease.payload
        self.extra = lease.extra  # what `with_` of the worker asked for

    def __repr__(self) -> str:
        return f"<sluice.WorkerJob {self.id} of {self.queue}, attempt {self.attempt}>"

    def _decode(self) -> None:
        """For the worker. Raises CodecError for a payload that cannot be decoded, or the result of
        a job that this one needed."""
        self.payload = decode(self._codec, self._held.payload, "payload")
        needed = self.extra.get("need_results")
        if needed is not None:
            results = {id: decode(self._codec, data, f"the result of {id}") if data else None
                       for id, data in needed.items()}
            self.extra = {**self.extra, "need_results": results}

    @property
    def cancelled(self) -> Optional[str]:
        """The reason of Q.CANCEL, once the worker knows of it."""
        return self._held.stop

    @property
    def lost(self) -> bool:
        """Whether the lease is another's by now: what the handler returns is not sent."""
        return self._held.lost

    def progress(self, value: Any) -> None:
        """Sets the job's progress, which the next heartbeat carries. Raises CodecError."""
        self._held.notes.set_progress(encode(self._codec, value, "progress"))

    def log(self, text: Union[str, bytes]) -> None:
        """Appends to the job's log: 16 KB with each heartbeat, and the rest before the job ends. At
        most 1 MB waits for that, the newest."""
        self._held.notes.add_log(wire.to_bytes(text, "log"))

    def check(self) -> None:
        """Raises Cancelled if the handler is to stop: a cancel, a lost lease, the end of grace."""
        if self._stopped.is_set():
            raise Cancelled(self._why)

    def wait(self, seconds: float) -> None:
        """Sleeps. Raises Cancelled at once if the handler is to stop."""
        self._stopped.wait(wire.shortened(seconds))
        self.check()

    def _stop(self, why: str) -> None:
        """For the worker: from now on `check` raises."""
        self._why = self._why or why
        self._stopped.set()
