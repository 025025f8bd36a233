"""What accepts connections on a free port of this machine, a thread for each of them."""

import contextlib
import socket
import threading

from harness.servers import LOOPBACK


class Listening:
    """A subclass serves each connection in `_serve`, and holds in `_open`, under `_lock`, what
    close() ends: sockets."""

    def __init__(self):
        self._lock = threading.Lock()
        self._open = set()
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port = self._listener.getsockname()[1]
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def close(self):
        # shutdown wakes the thread that accepts. One that is about to accept would do so at the
        # next socket that has this number.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        self._listener.close()
        self._end_all()

    def _end_all(self):
        with self._lock:
            connections = list(self._open)
        self._end(*connections)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _accept(self):
        while True:
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(accepted,), daemon=True).start()

    def _end(self, *ends):
        with self._lock:
            self._open.difference_update(ends)
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
