"""What is sent and what comes back: words of options, and replies as Python values. No I/O."""

from __future__ import annotations

import datetime
import threading
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, Sequence, Union

Word = Union[bytes, str, int, float]
Words = tuple[Word, ...]

# Fields of replies that are maps: flat arrays in RESP2.
_BOOLEANS = ("quiet", "successor")  # integers in RESP2
_MAPS = ("tags", "by_priority", "rejected", "wait_ms", "run_ms", "rates", "kept")
_TERMS = {"lease_ms": "lease_term"}
JOB_TIMES = ("enqueued", "not_before", "deadline", "started", "finished")
STATS_TIMES = ("since", "seen")


def to_bytes(text: Union[str, bytes], argument: str = "id") -> bytes:
    """Ids and names are any bytes: what is not UTF-8 passes through str unchanged.

    Raises ValueError for a str that neither UTF-8 nor such bytes can express.
    """
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise TypeError(f"str or bytes are expected, not {text!r}")
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ValueError(
            f"{argument.lower()} has a lone surrogate, which UTF-8 cannot express") from None


def to_text(data: Any) -> str:
    return data.decode("utf-8", "surrogateescape") if isinstance(data, bytes) else str(data)


LONGEST = 100 * 366 * 24 * 3600.0  # seconds, of any duration that the server takes


def milliseconds(seconds: float) -> int:
    """Raises ValueError for a time without end, and for what is no number."""
    try:
        return round(seconds * 1000)
    except (OverflowError, ValueError):
        raise ValueError(f"a time is a number of seconds, not {seconds}") from None


def shortened(timeout: Optional[float]) -> Optional[float]:
    """A time that a thread can wait: an endless one is refused."""
    return None if timeout is None else min(timeout, threading.TIMEOUT_MAX)


def unix_ms(at: Union[float, datetime.datetime]) -> int:
    return milliseconds(at.timestamp() if isinstance(at, datetime.datetime) else at)


def one(word: str, value: Optional[Union[str, bytes, int]]) -> Words:
    if value is None:
        return ()
    if isinstance(value, int):
        return (word, int(value))  # of a bool and of an enumeration, too
    return (word, to_bytes(value, word))


def span(word: str, seconds: Optional[float]) -> Words:
    if seconds is None:
        return ()
    return (word, milliseconds(seconds))


def each(word: str, values: Union[str, bytes, Iterable[Union[str, bytes]]]) -> Words:
    """The word before each of the values; a single one needs no list."""
    if isinstance(values, (str, bytes)):
        values = (values,)
    words: list[Word] = []
    for value in values:
        words += (word, to_bytes(value, word))
    return tuple(words)


def _at(value: Optional[Union[float, datetime.datetime]]) -> Words:
    if value is None:
        return ()
    return ("AT", unix_ms(value))


def _backoff(value: Optional[tuple[float, float]]) -> Words:
    if value is None:
        return ()
    return ("BACKOFF", milliseconds(value[0]), milliseconds(value[1]))


def _tags(value: Optional[Mapping[str, str]]) -> Words:
    words: list[Word] = []
    for name, tag in (value or {}).items():
        words += ("TAG", to_bytes(name, "tag"), to_bytes(tag, "tag"))
    return tuple(words)


# The options of Q.ADD, by the names that `Queue.add` has for them. Times are seconds.
_ADD: dict[str, Callable[[Any], Words]] = {
    "pri": lambda value: one("PRI", value),
    "boost": lambda value: span("BOOST", value),
    "delay": lambda value: span("DELAY", value),
    "at": _at,
    "group": lambda value: one("GROUP", value),
    "keys": lambda value: each("KEY", value),
    "cost": lambda value: one("COST", value),
    "ttl": lambda value: span("TTL", value),
    "lease": lambda value: span("LEASE", value),
    "max_run": lambda value: span("MAXRUN", value),
    "retry": lambda value: one("RETRY", value),
    "backoff": _backoff,
    "needs": lambda value: each("NEED", value),
    "after": lambda value: each("AFTER", value),
    "tags": _tags,
    "max_wait": lambda value: span("MAXWAIT", value),
}


def add_options(options: Mapping[str, Any]) -> Words:
    """The words of these options. Raises TypeError for one that `Queue.add` does not have."""
    words: list[Word] = []
    for name, value in options.items():
        if name not in _ADD:
            raise TypeError(f"add() has no option {name!r}")
        words += _ADD[name](value)
    return tuple(words)


def stats_by(by: Union[str, Mapping[str, str], None]) -> Words:
    """The words of `Queue.stats` for its lines: by a word of Q.STATS, or by the values of a tag."""
    if by is None or isinstance(by, str):
        return one("BY", by)
    [(kind, name)] = by.items()
    return ("BY", to_bytes(kind, "by"), to_bytes(name, kind))


def pairs(reply: Any) -> Iterator[tuple[str, Any]]:
    """Names and values of a map: a dictionary in RESP3, a flat array in RESP2."""
    items = reply.items() if isinstance(reply, dict) else zip(reply[::2], reply[1::2])
    for name, value in items:
        yield to_text(name), value


def fields_of(reply: Any, times: Sequence[str] = JOB_TIMES) -> dict[str, Any]:
    """A map with its inner maps. Texts are str; payload, result(s) and progress stay bytes.

    `x_ms` becomes `x` in seconds, `lease_ms` beside the token `lease` becomes `lease_term`.
    `times` are those of the clock: they become unix seconds.
    """
    out: dict[str, Any] = {}
    for name, value in pairs(reply):
        if name in _MAPS and value is not None and not isinstance(value, int):
            value = {key: _plain(inner) for key, inner in pairs(value)}
        elif name == "options" and value is not None:
            value = _options(value)
        elif name == "need_results" and value is not None:
            value = dict(pairs(value))
        elif isinstance(value, list):
            value = [_plain(inner) for inner in value]
        elif name not in ("payload", "result", "progress"):
            value = _plain(value)
        if name in times and value is not None:
            value = value / 1000
        if name in _BOOLEANS:
            value = bool(value)
        if name.endswith("_ms"):
            name, value = _TERMS.get(name, name[:-3]), _seconds(value)
        out[name] = value
    return out


def stats_of(reply: Any) -> dict[str, Any]:
    """The fields of Q.STATS. Numbers with decimals are strings in RESP2."""
    fields = fields_of(reply, STATS_TIMES)
    if fields.get("utilization") is not None:
        fields["utilization"] = float(fields["utilization"])
    if "rates" in fields:
        fields["rates"] = {name: float(rate) for name, rate in fields["rates"].items()}
    return fields


def _options(reply: Any) -> dict[str, Any]:
    """The options of a job, as `add_options` takes them."""
    fields = fields_of(reply)
    fields["lease"] = fields.pop("lease_term")
    if fields["backoff"] is not None:
        fields["backoff"] = tuple(_seconds(bound) for bound in fields["backoff"])
    return fields


def _plain(value: Any) -> Any:
    return to_text(value) if isinstance(value, bytes) else value


def _seconds(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: inner if name == "count" else _seconds(inner)
                for name, inner in value.items()}
    return None if value is None else float(value) / 1000
