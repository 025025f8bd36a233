"""One connection to the server, shared by the threads of a process.

What several threads ask at the same time goes out as one pipeline: the thread whose turn it is
sends the commands of all that wait, reads the replies, and hands them out. So no thread of its own
is needed, one caller alone has no detour, and a commit of the server serves many callers.
"""

from __future__ import annotations

import collections
import contextlib
import contextvars
import select
import socket
import threading
import time
from concurrent.futures import Future
from typing import Any, Callable, Iterator, Optional, Sequence

import redis
from redis.backoff import NoBackoff
from redis.exceptions import InvalidResponse, RedisError
from redis.retry import Retry

from sluice import errors, forks
from sluice.errors import Unreachable
from sluice.server import Connect
from sluice.wire import Words

MAX_PIPELINE = 1000
MAX_PIPELINE_BYTES = 1 << 20
PIECE = 64 * 1024  # bytes that are sent at a time
FIRST_PAUSE = 0.02
LONGEST_PAUSE = 1.0
# The other side sends no more. Where poll cannot tell, anything that comes unasked counts as that.
_ENDED = getattr(select, "POLLRDHUP", select.POLLIN)

# redis-py removes these codes from the text of the exceptions that it has for them.
_CODES = {
    "AuthenticationError": "NOAUTH",
    "AuthorizationError": "NOPERM",
    "BusyLoadingError": "LOADING",
    "MasterDownError": "MASTERDOWN",
    "NoPermissionError": "NOPERM",
    "OutOfMemoryError": "OOM",
    "ReadOnlyError": "READONLY",
}

_Batch = list[tuple[Words, Future[Any]]]

# When the call was made that runs in this context, if it may have waited for its thread: a steady
# time. Its patience began then.
called_at: contextvars.ContextVar[Optional[float]] = contextvars.ContextVar(
    "sluice.called_at", default=None)


class ConnectionLost(Unreachable):
    """The connection was lost after the command was sent: the server may have run it."""


class Closed(Unreachable):
    """The link was ended by its owner."""


def error_of(error: Exception) -> errors.SluiceError:
    """What an exception of redis-py is here."""
    if isinstance(error, errors.SluiceError):
        return error
    code = _CODES.get(type(error).__name__)
    if str(error).startswith("invalid username-password"):  # Newer versions have a class for it.
        code = "WRONGPASS"
    if "unauthenticated" in str(error):  # The command was too long for the server to read it.
        code = "NOAUTH"
    if str(error) == "The previous master is now a slave":  # for READONLY, of its Sentinels
        return errors.ReadOnly(f"READONLY {error}")
    if code is None and not isinstance(error, redis.ResponseError):
        return ConnectionLost(str(error))
    first = str(error).split(" ", 1)[0]
    # `DB index is out of range` begins with no code.
    if code is None and (first in errors.BY_CODE or (len(first) > 4 and first.isupper())):
        return errors.error_of(str(error))
    return errors.error_of(f"{code or 'ERR'} {error}")


def value_of(reply: Any) -> Any:
    """A part of a reply; an error in it as a `ServerError`, not raised."""
    return error_of(reply) if isinstance(reply, RedisError) else reply


class Link:
    """A connection and its callers. It connects when it is needed, and again after a loss."""

    def __init__(self, connect: Connect, timeout: float) -> None:
        """`timeout`: seconds that a reply may take. A blocking command takes its own time too."""
        self._connect = connect
        self._timeout = timeout
        self._closed = False
        self._ended = False
        self.begin()
        forks.remember(self)

    def begin(self) -> None:
        # Re-entered only by the handler of a signal that has interrupted a command.
        self._turn = threading.RLock()
        self._exchanger: Optional[int] = None  # the thread whose turn it is
        self._waiting: collections.deque[tuple[Words, Future[Any]]] = collections.deque()
        # The connection needs its pool if that asks Sentinels, but does not keep it.
        self._client = self._connect(socket_timeout=self._timeout, retry=Retry(NoBackoff(), 0))
        self._connection = self._client.connection_pool.make_connection()
        # As an option the connections of Unix sockets refuse it.
        self._connection.socket_connect_timeout = self._timeout
        self._limit = self._timeout
        self._failed: Optional[tuple[float, Unreachable]] = None  # when and how, if it did last
        self.connections = 0  # how many it has begun to make: the number of the present one

    def limit(self, timeout: float) -> None:
        """From now on a reply may take that long. For a link with one caller."""
        if timeout == self._limit:
            return
        self._limit = timeout
        connection = self._connection
        connection.socket_timeout = connection.socket_connect_timeout = timeout
        sock = getattr(connection, "_sock", None)
        if sock is not None:
            sock.settimeout(timeout)

    def exchange(self, commands: Sequence[Words]) -> list[Any]:
        """One pipeline: for each command its reply, or what it raised. Nothing is repeated."""
        me = threading.get_ident()
        if self._exchanger == me:
            raise RuntimeError("a signal's handler has interrupted a command of its thread")
        for words in commands:
            _refuse_unsendable(words)
        futures = self._submit(commands)
        while futures and not futures[-1].done():
            with self._turn:
                if not futures[-1].done():
                    try:
                        self._exchanger = me
                        self._exchange()
                    finally:
                        self._exchanger = None
        return [future.exception() or future.result() for future in futures]

    def _submit(self, commands: Sequence[Words]) -> list[Future[Any]]:
        futures: list[Future[Any]] = []
        for words in commands:
            future: Future[Any] = Future()
            futures.append(future)
            self._waiting.append((words, future))
        return futures

    def call(self, *words: Any, patience: float = 0.0, twice: bool = True) -> Any:
        """The reply. While the server cannot be reached the command is repeated for `patience`
        seconds; one that may not run `twice`, only as long as it has certainly not run.

        Raises Unreachable and what the server replies.
        """
        if (late := self.too_late(patience)) is not None:
            raise late
        pause = self.pauses(patience)
        while True:
            reply = self.exchange([words])[0]
            if not isinstance(reply, BaseException):
                return reply
            if not is_outage(reply) or (is_uncertain(reply) and not twice) or not pause():
                raise Closed("it was closed") if self._ended else reply

    def too_late(self, patience: float) -> Optional[Unreachable]:
        """What becomes of a call that has waited for its thread until its `patience` was over: it
        is not begun, if others have found since it was made that the server is away."""
        called, failed = called_at.get(), self._failed
        if called is None or failed is None or failed[0] < called:
            return None
        return Unreachable(str(failed[1])) if time.monotonic() >= called + patience else None

    def pauses(self, patience: float, anew: bool = False) -> Callable[[], bool]:
        """A function that waits before a repeat. False: `patience` is over, or the link was closed
        meanwhile. It began with the call that may have waited for its thread, unless it begins
        `anew`."""
        pauses = Pauses(patience, None if anew else called_at.get())
        return lambda: pauses.pause() and not self._closed

    def close(self) -> None:
        """Closes it when the commands that were sent have their replies: every later one raises
        Closed, and none is repeated. The handler of a signal thereby ends the command that it has
        interrupted, if that waits for its reply."""
        self._closed = True
        with self._turn:
            if self._exchanger is not None:
                self._interrupt()
            else:
                self._connection.disconnect()

    def end(self) -> None:
        """As `close`, but at once: what waits for its reply raises Closed too."""
        self._closed = self._ended = True
        self._interrupt()

    def _interrupt(self) -> None:
        # disconnect() would take the parser away under the thread that reads.
        sock = getattr(self._connection, "_sock", None)
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _take(self, batch: _Batch) -> None:
        """None is lost where a signal's handler raises KeyboardInterrupt."""
        size = 0
        while self._waiting and len(batch) < MAX_PIPELINE and size < MAX_PIPELINE_BYTES:
            words, future = self._waiting[0]
            size += sum(len(word) if isinstance(word, (bytes, str)) else 8 for word in words)
            if not future.done():  # It has failed in a batch that was interrupted.
                batch.append((words, future))
            self._waiting.popleft()

    def _exchange(self) -> None:
        connection = self._connection
        batch: _Batch = []
        sent = False
        elsewhere = False  # The primary may be another by now.
        try:
            self._take(batch)
            if _is_stale(connection):
                connection.disconnect()
            if not self._closed and getattr(connection, "_sock", None) is None:
                self.connections += 1
                _open(connection)
            if self._closed:
                raise Closed("it was closed")
            sent = True
            packed = connection.pack_commands([words for words, _ in batch])
            connection.send_packed_command(_pieces(packed), check_health=False)
            for _, future in batch:
                elsewhere |= isinstance(_read(connection, future), _SERVES_NOT)
            self._failed = None
            if elsewhere:
                connection.disconnect()
        except (RedisError, OSError, Closed) as error:
            connection.disconnect()
            said = Closed("it was closed") if self._ended else error_of(error)
            if not sent and isinstance(said, ConnectionLost):
                said = Unreachable(str(error))
            self._failed = (time.monotonic(), said) if isinstance(said, Unreachable) else None
            # An error reply for which redis-py ends the connection is that of one command.
            left = _unanswered(batch)
            _fail(left[:1], said)
            lost = sent and not isinstance(said, Closed)
            _fail(left[1:], ConnectionLost(str(error)) if lost else said)
        except BaseException:
            connection.disconnect()  # What is left unread must not answer the next command.
            _fail(_unanswered(batch), ConnectionLost("interrupted") if sent
                  else Unreachable("interrupted"))
            raise


def _open(connection: Any) -> None:
    """Connects. A server that asks for a password says so to a short command. At a long one it
    hangs up: whether that was run would not be known."""
    connection.connect()
    connection.send_command("CLIENT", "ID", check_health=False)
    _read(connection, Future())  # An error too: the user may not use it.


def _pieces(packed: Any) -> Iterator[Any]:
    """The timeout is for each of them, and not for all that sendall() would get."""
    for data in packed:
        if len(data) <= PIECE:
            yield data
            continue
        whole = memoryview(data)
        for start in range(0, len(whole), PIECE):
            yield whole[start:start + PIECE]


def _refuse_unsendable(words: Words) -> None:
    """What redis-py does not send would fail the pipeline, and the commands of others with it."""
    for word in words:
        if isinstance(word, bool) or not isinstance(word, (bytes, str, int, float)):
            raise TypeError(f"{word!r} is no word of a command")


def _is_stale(connection: Any) -> bool:
    """Whether the server has closed it meanwhile. What is sent then is certainly not run."""
    sock = getattr(connection, "_sock", None)
    if sock is None:
        return False
    poll = select.poll()
    poll.register(sock, _ENDED)
    return bool(poll.poll(0))


def _read(connection: Any, future: Future[Any]) -> Optional[errors.SluiceError]:
    """Reads one reply: bytes, also over a client with `decode_responses`. Returns the error, if it
    is one."""
    try:
        future.set_result(connection.read_response(disable_decoding=True))
    except redis.ResponseError as error:
        said = error_of(error)
        future.set_exception(said)
        return said
    except ValueError as error:  # of redis-py's parser
        raise InvalidResponse(f"no reply: {error}") from error
    return None


def _unanswered(batch: _Batch) -> list[Future[Any]]:
    return [future for _, future in batch if not future.done()]


def _fail(futures: list[Future[Any]], error: errors.SluiceError) -> None:
    for future in futures:
        future.set_exception(type(error)(*error.args))


# The server is there, but does not do what it is for.
_SERVES_NOT = (errors.Loading, errors.ReadOnly, errors.NoReplicas, errors.PrimaryDown)


def is_outage(error: Any) -> bool:
    """Whether the server is away, or about to come or go: the command may be repeated later."""
    return not isinstance(error, Closed) and isinstance(
        error, (Unreachable, errors.DiskFailed, errors.Busy, *_SERVES_NOT))


def is_uncertain(error: Any) -> bool:
    """Whether the server may have done the command."""
    return isinstance(error, ConnectionLost) or (
        isinstance(error, errors.DiskFailed) and "may or may not have been kept" in str(error))


class Pauses:
    """Pauses between repeats: they grow to a second, and end `patience` seconds after `began`, a
    steady time, or after now."""

    def __init__(self, patience: float, began: Optional[float] = None) -> None:
        self._until = (time.monotonic() if began is None else began) + patience
        self._next = FIRST_PAUSE

    def pause(self) -> bool:
        """Waits. False, at once, if the time is over."""
        if time.monotonic() + self._next > self._until:
            return False
        time.sleep(self._next)
        self._next = min(self._next * 2, LONGEST_PAUSE)
        return True
