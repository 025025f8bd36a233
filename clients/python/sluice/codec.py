"""How payloads, results and progress become bytes: `json`, `raw`, or an object of one's own."""

from __future__ import annotations

import json as _json
import math
from typing import Any, Protocol, Union

from sluice.errors import CodecError

MOST_BYTES = 512 * 1024 * 1024  # of one word; a server that is sent more hangs up
LARGEST_INTEGER = 2**53 - 1  # Beyond it JavaScript reads different integers as the same number.


class Codec(Protocol):
    """Two functions. What they raise becomes a `CodecError`."""

    def encode(self, value: Any) -> bytes:
        """The bytes of a value."""

    def decode(self, data: bytes) -> Any:
        """The value of bytes."""


class JsonCodec:
    """JSON in UTF-8, without NaN, infinities and integers beyond 2^53 - 1 in either direction."""

    def encode(self, value: Any) -> bytes:
        _refuse_large(value)
        return _json.dumps(value, allow_nan=False, ensure_ascii=False,
                           separators=(",", ":")).encode()

    def decode(self, data: bytes) -> Any:
        return _json.loads(data, parse_int=_integer, parse_float=_number, parse_constant=_constant)


class RawCodec:
    """Bytes as they are."""

    def encode(self, value: Any) -> bytes:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise TypeError(f"codec raw takes bytes, not {type(value).__name__}")
        return bytes(value)

    def decode(self, data: bytes) -> Any:
        return data


def _refuse_large(value: Any) -> None:
    if isinstance(value, int):
        if abs(value) > LARGEST_INTEGER:
            raise ValueError(f"{value} is beyond 2^53 - 1, up to which all readers of JSON have "
                             "the same integers")
    elif isinstance(value, dict):
        for inner in value.values():
            _refuse_large(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            _refuse_large(inner)


def _integer(text: str) -> int:
    value = int(text)
    _refuse_large(value)
    return value


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text} is beyond the largest number")
    return value


def _constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


CODECS: dict[str, Codec] = {"json": JsonCodec(), "raw": RawCodec()}


def codec_of(chosen: Union[str, Codec]) -> Codec:
    """The codec of that name, or the object itself.

    Raises ValueError for another name.
    """
    if not isinstance(chosen, str):
        return chosen
    if chosen not in CODECS:
        raise ValueError(f"codec {chosen!r}: 'json', 'raw' or an object")
    return CODECS[chosen]


def encode(codec: Codec, value: Any, what: str) -> bytes:
    """Raises CodecError, whose text begins with `what`."""
    try:
        data = codec.encode(value)
        if not isinstance(data, bytes):
            raise TypeError(f"encode() has returned {type(data).__name__}, not bytes")
    except Exception as error:
        raise CodecError(f"{what}: {text_of(error)}") from error
    if len(data) > MOST_BYTES:
        raise CodecError(f"{what}: {len(data)} bytes are more than the 512 MB that a server takes")
    return data


def decode(codec: Codec, data: bytes, what: str) -> Any:
    """Raises CodecError, whose text begins with `what`."""
    try:
        return codec.decode(data)
    except Exception as error:
        raise CodecError(f"{what}: {text_of(error)}") from error


def text_of(error: BaseException) -> str:
    """What can be sent of the text of an error of others: it may raise, or not be Unicode."""
    try:
        text = str(error)
    except Exception:
        return "its text cannot be read"
    return text.encode("utf-8", "backslashreplace").decode()
