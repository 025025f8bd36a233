"""Queue, for programs that add jobs and wait for them; and what it returns."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import uuid
import weakref
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, Sequence, Union

from sluice import errors, tracing, wire
from sluice.codec import Codec, codec_of, decode, encode
from sluice.link import MAX_PIPELINE, Closed, Link, is_outage, is_uncertain
from sluice.results import ENDS, Results, end_of_log
from sluice.server import Server, connect_to

_BLOCK = 5.0
# Each says that the job is not there. Q.ADD looks for it before it refuses one, but for TOOBIG,
# which an earlier try had as well.
_NOT_THERE = (errors.BadField, errors.GroupFull, errors.NeedFailed, errors.NoJob, errors.Paused,
              errors.QueueFull, errors.TooBig, errors.TooLate)


@dataclasses.dataclass(frozen=True)
class QueueEvent:
    """One event of a queue. `time` is unix seconds; `fields` are those of Q.EVENTS, `delay_ms` is
    `delay` in seconds. The field `progress` is bytes, at most the first 4096."""

    seq: int
    time: float
    type: str
    id: str
    fields: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class JobInfo:
    """A job as Q.GET shows it: QUEUE.md, "A job in replies". Durations are seconds, times unix
    seconds. What does not apply is None, or nothing.

    `lease` is the token of an active job, `lease_term` the term of its leases. `progress` stays
    bytes if the codec cannot decode it. `options` are what the job has of its own, None where it
    has not: `queue.add(info.payload, **info.options)` gives them to another job. `options`,
    `payload` and `result` are there only if they were asked for.
    """

    id: str
    state: str
    position: Optional[int] = None
    eta: Optional[float] = None
    why: Optional[str] = None
    pri: str = ""
    group: str = ""
    keys: Sequence[str] = ()
    tags: Mapping[str, str] = dataclasses.field(default_factory=dict)
    cost: int = 1
    enqueued: float = 0.0
    not_before: Optional[float] = None
    ttl_left: Optional[float] = None
    lease: Optional[int] = None
    lease_term: float = 0.0
    max_run: float = 0.0
    attempts: int = 0
    crashes: int = 0
    retries_left: int = 0
    needs: Sequence[str] = ()
    after: Sequence[str] = ()
    worker: Optional[str] = None
    deadline: Optional[float] = None
    started: Optional[float] = None
    cancel: Optional[str] = None
    finished: Optional[float] = None
    run: Optional[float] = None
    error: Optional[str] = None
    progress: Any = None
    successor: bool = False
    options: Optional[Mapping[str, Any]] = None
    payload: Any = None
    result: Any = None

    @property
    def ended(self) -> bool:
        """Whether its state is an end: completed, failed, cancelled or expired."""
        return self.state in ENDS


class Job:
    """A job that was added. What it says of itself is from the moment after that."""

    def __init__(self, queue: Queue, outcome: str, reply: Mapping[str, Any]) -> None:
        self._queue = queue
        self.id: str = reply["id"]
        self.outcome = outcome  # added, or what `ifdup` did: kept, updated, replaced, queued
        self.state: str = reply["state"]
        self.position: Optional[int] = reply["position"]  # None unless pending
        self.eta: Optional[float] = reply["eta"]  # seconds; None while unknown

    def __repr__(self) -> str:
        return f"<sluice.Job {self.id} of {self._queue.name}>"

    def get(self, *, with_: Sequence[str] = ()) -> Optional[JobInfo]:
        """The job as it is now, as `Queue.get`. None if it is no longer kept."""
        return self._queue.get(self.id, with_=with_)

    def why(self) -> Optional[str]:
        """Why the job waits, a code of Q.GET such as `queue_cap 4/4`. None if it does not."""
        info = self.get()
        return info.why if info else None

    def cancel(self, reason: Optional[str] = None, grace: Optional[float] = None) -> str:
        """See `Queue.cancel`."""
        return self._queue.cancel(self.id, reason, grace)

    def result(self, timeout: Optional[float] = None) -> Any:
        """See `Queue.result`."""
        return self._queue.result(self.id, timeout)


@dataclasses.dataclass(frozen=True)
class _Addition:
    """A Q.ADD, and what may be done if its reply is lost."""

    id: str
    words: wire.Words
    repeats: bool
    own_id: bool


class Queue:
    """A queue by its name. May be used by all threads of a process; they share one connection.

    `server` is a URL (default: the environment's SLUICE_URL, then redis://localhost:6379),
    `redis+sentinel://host:port,host:port/name` for the primary that Sentinels name, or a function
    that makes a client of redis-py, which must pass its keyword arguments on:

        Queue("exec", functools.partial(sentinel.master_for, "mymaster"))

    `codec` is `json`, `raw` or an object with `encode` and `decode`. `timeout` is how long one
    reply may take, `patience` how long commands are repeated while the server cannot be reached,
    both in seconds.
    """

    def __init__(self, name: str, server: Server = None, *, codec: Union[str, Codec] = "json",
                 timeout: float = 5.0, patience: float = 30.0) -> None:
        """Raises ValueError for a bad URL, name or codec. It does not connect yet."""
        self.name = name
        self._codec = codec_of(codec)
        self._patience = patience
        self._key = wire.to_bytes(name, "queue")
        self._connect = connect_to(server)
        self._timeout = timeout
        self._closed = False
        self._link = Link(self._connect, timeout)
        self._results = Results(self._connect, self._link, self._key, timeout)
        # Its threads do not outlive a queue that nobody has any more.
        weakref.finalize(self, self._results.close).atexit = False
        # By their id(): a WeakSet cannot be read while another thread adds to it.
        self._followers: weakref.WeakValueDictionary[int, Link] = weakref.WeakValueDictionary()

    def close(self) -> None:
        """Closes the connections for good. What is called after it raises Unreachable, as do waits
        for results and a command that would have been repeated, or Unknown; loops over events end
        as if there were no more."""
        self._closed = True
        self._results.close()
        for follower in self._followers.valuerefs():
            if (link := follower()) is not None:
                link.end()
        self._link.close()

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- Adding -------------------------------------------------------------------------------

    def add(
        self,
        payload: Any,
        id: Optional[str] = None,
        *,
        ifdup: Optional[str] = None,
        pri: Optional[Union[str, int]] = None,
        boost: Optional[float] = None,
        delay: Optional[float] = None,
        at: Optional[Union[float, datetime.datetime]] = None,
        group: Optional[str] = None,
        keys: Union[str, Sequence[str]] = (),
        cost: Optional[int] = None,
        ttl: Optional[float] = None,
        lease: Optional[float] = None,
        max_run: Optional[float] = None,
        retry: Optional[int] = None,
        backoff: Optional[tuple[float, float]] = None,
        needs: Union[str, Sequence[str]] = (),
        after: Union[str, Sequence[str]] = (),
        tags: Optional[Mapping[str, str]] = None,
        max_wait: Optional[float] = None,
    ) -> Job:
        """Adds a job. The options are those of Q.ADD; times are seconds, `at` is unix seconds or a
        datetime. `ifdup` is error, keep, update or replace.

        Without an id (None, or `*`) the client makes one before it sends anything, so a repeat
        after a lost connection cannot add the job twice. UPDATE and REPLACE are not repeated.

        Raises ValueError for a name with a lone surrogate or a time without end; CodecError;
        QueueFull, GroupFull, Paused, TooLate, TooBig, NeedFailed, NoJob, BadField, Duplicate and
        OutOfMemory, as Q.ADD says; another ServerError, such as NoPermission; Unreachable after
        `patience`. Once a reply was lost, Unknown takes the place of all but the first eight: the
        job may be there. What else was the case is its cause.
        """
        words = wire.add_options(dict(
            pri=pri, boost=boost, delay=delay, at=at, group=group, keys=keys, cost=cost, ttl=ttl,
            lease=lease, max_run=max_run, retry=retry, backoff=backoff, needs=needs, after=after,
            tags=tracing.with_parent(tags), max_wait=max_wait))
        [job] = self._add_all([self._addition(payload, id, ifdup, words)])
        if isinstance(job, BaseException):
            raise job
        return job

    def add_many(self, jobs: Iterable[Mapping[str, Any]],
                 **options: Any) -> list[Union[Job, Exception]]:
        """Adds many jobs in pipelines of at most 1,000: for each a job, or what `add` would have
        raised, TypeError and ValueError too. Each pipeline is repeated for `patience` seconds;
        behind one that has failed, only tried once.

        Each is a map of the arguments of `add`; `options` hold for those that do not say else:

            queue.add_many([{"payload": 1}, {"payload": 2, "pri": "high"}], group="ann")
        """
        out: list[Union[Job, Exception]] = []
        additions: list[_Addition] = []
        places: list[int] = []
        for job in jobs:
            try:
                additions.append(self._addition_of({**options, **job}))
                places.append(len(out))
                out.append(errors.Unreachable())
            except Exception as error:
                out.append(error)
        for place, job_or_error in zip(places, self._add_all(additions)):
            out[place] = job_or_error
        return out

    def _addition_of(self, arguments: dict[str, Any]) -> _Addition:
        """Of these arguments of `add`. Raises what that raises before it sends anything."""
        if "payload" not in arguments:
            raise TypeError("a job needs a payload")
        payload = arguments.pop("payload")
        id_, ifdup = arguments.pop("id", None), arguments.pop("ifdup", None)
        arguments["tags"] = tracing.with_parent(arguments.get("tags"))
        return self._addition(payload, id_, ifdup, wire.add_options(arguments))

    def _addition(self, payload: Any, id: Optional[str], ifdup: Optional[str],
                  options: wire.Words) -> _Addition:
        own_id = id is None or id == "*"  # of which a repeat would be another job
        name = str(uuid.uuid4()) if id is None or own_id else id
        mode = (ifdup or "error").lower()
        if own_id and mode == "error":
            mode = "keep"  # Nobody else has the id: a repeat finds its own job.
        data = encode(self._codec, payload, "payload")
        words: wire.Words = ("Q.ADD", self._key, wire.to_bytes(name), data, *options,
                             "IFDUP", mode)
        return _Addition(name, words, mode not in ("update", "replace"), own_id)

    def _add_all(self, additions: Sequence[_Addition]) -> list[Union[Job, errors.SluiceError]]:
        if (late := self._link.too_late(self._patience)) is not None:
            return [errors.Unreachable(str(late)) for _ in additions]
        out: list[Union[Job, errors.SluiceError]] = []
        patience = self._patience
        for start in range(0, len(additions), MAX_PIPELINE):
            pause = self._link.pauses(patience, anew=start > 0)
            added, ended = self._add_some(additions[start:start + MAX_PIPELINE], pause)
            out += added
            patience = self._patience if ended else 0.0
        return out

    def _add_some(self, additions: Sequence[_Addition], pause: Callable[[], bool]
                  ) -> tuple[list[Union[Job, errors.SluiceError]], bool]:
        """In one pipeline, which is repeated after a pause: what becomes of each, and whether the
        pauses have not ended before."""
        out: dict[int, Union[Job, errors.SluiceError]] = {}
        lost: set[int] = set()  # The server may have added these.
        left = list(range(len(additions)))
        while left:
            replies = self._link.exchange([additions[i].words for i in left])
            again = []
            for i, reply in zip(left, replies):
                addition = additions[i]
                if is_uncertain(reply):
                    lost.add(i)
                if is_outage(reply) and (addition.repeats or i not in lost):
                    again.append(i)
                out[i] = self._added(addition, reply, i in lost)
            left = again
            if left and not pause():
                break
        return [out[i] for i in range(len(additions))], not left

    def _added(self, addition: _Addition, reply: Any,
               lost: bool) -> Union[Job, errors.SluiceError]:
        if not isinstance(reply, errors.SluiceError):
            fields = wire.fields_of(reply)
            # A repeat has kept what an earlier try has added.
            outcome = "added" if addition.own_id else wire.to_text(fields["result"])
            return Job(self, outcome, fields)
        if not lost or isinstance(reply, _NOT_THERE):
            return reply
        unknown = errors.Unknown(addition.id)
        unknown.__cause__ = reply
        return unknown

    # -- One job ------------------------------------------------------------------------------

    def get(self, id: str, *, with_: Sequence[str] = ()) -> Optional[JobInfo]:
        """The job; None for an unknown id. `with_`: `payload`, `result`, `options`.

        Raises Unreachable after `patience`, and CodecError.
        """
        reply = self._call("Q.GET", self._key, wire.to_bytes(id), *wire.each("WITH", with_))
        return None if reply is None else info_of(reply, self._codec)

    def cancel(self, id: str, reason: Optional[str] = None,
               grace: Optional[float] = None) -> str:
        """Cancels a job: `cancelled`, `signalled` if it is active, or `gone`. `grace` is how long
        its worker has to end it, in seconds. Raises Unknown if its reply was lost: the job may
        have been cancelled.
        """
        return self._call_once(id, "Q.CANCEL", self._key, wire.to_bytes(id),
                               *wire.one("REASON", reason), *wire.span("GRACE", grace))

    def retry(self, id: str) -> str:
        """Makes an ended job wait again, and returns its state. Raises NoJob; and Unknown if its
        reply was lost: the job may run again, or have done so by now."""
        return self._call_once(id, "Q.RETRY", self._key, wire.to_bytes(id))

    def result(self, id: str, timeout: Optional[float] = None) -> Any:
        """Waits for the end of a job, and returns its result: None if it has none, or no bytes.

        `timeout` is seconds; None: without limit, also while the server is away; 0: it looks once,
        which takes as long as a reply does.

        Raises NotCompleted for a job that failed, was cancelled or expired; Forgotten for one that
        is no longer kept, or never was; ResultTimeout; CodecError.
        """
        return result_of(id, self._results.wait(id, timeout), self._codec)

    # -- The queue ----------------------------------------------------------------------------

    def stats(self, *, group: Optional[str] = None, by: Union[str, Mapping[str, str], None] = None,
              window: Optional[float] = None) -> dict[str, Any]:
        """Q.STATS as a dictionary; `wait_ms` is `wait`, in seconds, and so on. Of the whole queue,
        or of one `group`. `by` is pri, group, key, worker or `{"tag": name}`: then it is a
        dictionary of such dictionaries, one for each band, group, key, worker or value of the tag.
        `window` is the time that `rates` are of, 1 to 60 seconds."""
        words = ("Q.STATS", self._key, *wire.one("GROUP", group), *wire.stats_by(by),
                 *wire.span("WINDOW", window))
        reply = self._call(*words)
        if by is None:
            return wire.stats_of(reply)
        return {name: wire.stats_of(line) for name, line in wire.pairs(reply)}

    def events(self, from_: Union[int, str] = "$", *, types: Sequence[str] = (),
               ids: Sequence[str] = (), follow: bool = True) -> Iterator[QueueEvent]:
        """The events after `from_`: a number, `-` for the oldest kept, `$` for from now on.

        Waits for further ones, through losses of the connection, without a gap; with `follow`
        false it ends with those that are there. It has a connection of its own while it runs.
        `close` of the queue ends it.

        Raises Trimmed if events after `from_` are no longer kept.
        """
        return self._follow(self._follower(), from_, types=types, ids=ids, follow=follow)

    def _follower(self) -> Link:
        """For `_follow`: a connection that `close` ends."""
        link = Link(self._connect, _BLOCK + self._timeout)
        self._followers[id(link)] = link
        if self._closed:
            raise Closed("the queue is closed")
        return link

    def _follow(self, link: Link, from_: Union[int, str], *, types: Sequence[str],
                ids: Sequence[str], follow: bool) -> Iterator[QueueEvent]:
        """`events` over this connection, whose end is that of the iteration."""
        words = (*wire.each("TYPE", types), *wire.each("ID", ids))
        block = ("BLOCK", wire.milliseconds(_BLOCK)) if follow else ()
        patience = float("inf") if follow else self._patience
        try:
            if from_ == "$":
                from_ = end_of_log(link, self._key, patience)
            while True:
                reply = link.call("Q.EVENTS", self._key, from_, *words, *block,
                                  patience=patience)
                for event in map(event_of, reply or ()):
                    if self._closed:
                        return
                    from_ = event.seq
                    if event.type != "none":
                        yield event
                if not reply and not follow:
                    return
        except Closed:
            return
        finally:
            link.close()

    def _call(self, *words: Any) -> Any:
        return self._link.call(*words, patience=self._patience)

    def _call_once(self, id: str, *words: Any) -> str:
        """For a change of this job that is not to be made twice."""
        try:
            return wire.to_text(self._link.call(*words, patience=self._patience, twice=False))
        except errors.SluiceError as error:
            if is_uncertain(error):
                raise errors.Unknown(id) from error
            raise


def event_of(reply: Any) -> QueueEvent:
    seq, time, kind, id_, fields = reply
    return QueueEvent(seq, time / 1000, wire.to_text(kind), wire.to_text(id_),
                      wire.fields_of(fields))


def info_of(reply: Any, codec: Codec) -> JobInfo:
    fields = wire.fields_of(reply)
    if fields.get("payload") is not None:
        fields["payload"] = decode(codec, fields["payload"], "payload")
    if "result" in fields:
        fields["result"] = _result_in(fields, codec)
    if fields.get("progress") is not None:
        with contextlib.suppress(errors.CodecError):  # Other programs may set other bytes.
            fields["progress"] = decode(codec, fields["progress"], "progress")
    known = {field.name for field in dataclasses.fields(JobInfo)}
    return JobInfo(**{name: value for name, value in fields.items()
                      if name in known and value is not None})


def result_of(id: str, reply: Any, codec: Codec) -> Any:
    """What `Queue.result` returns or raises for the reply of Q.GET."""
    if reply is None:
        raise errors.Forgotten(id)
    fields = wire.fields_of(reply)
    if fields["state"] != "completed":
        raise errors.NotCompleted(id, fields["state"], fields.get("error") or "")
    return _result_in(fields, codec)


def _result_in(fields: Mapping[str, Any], codec: Codec) -> Any:
    """None if the job has none, or no bytes."""
    data = fields.get("result")
    return decode(codec, data, "result") if data else None
