"""Carries bytes between its clients and one port of a machine, until the way is cut.

    with Relay(port) as relay:
        program(relay.port)
        relay.cut()     # nothing passes any more, and nobody is told, as when a cable is pulled
        relay.heal()    # what was sent meanwhile arrives
        relay.keep(lambda piece: b"TIDY" in piece)  # the next such piece, whose connection ends
        relay.deliver() # it arrives after all; its client learns nothing of it

Used by one thread.
"""

import contextlib
import socket
import threading

from harness.listening import Listening
from harness.servers import LOOPBACK

PIECE_BYTES = 1 << 16


class Relay(Listening):
    def __init__(self, port, host=LOOPBACK):
        self._target = (host, port)
        self._passes = threading.Event()
        self._passes.set()
        self._closed = False
        self._is_kept = None   # which piece is
        self.kept = []         # (the target's socket, the piece)
        super().__init__()

    def cut(self):
        self._passes.clear()

    def heal(self):
        self._passes.set()

    def keep(self, is_kept):
        self._is_kept = is_kept

    def deliver(self):
        self._is_kept = None
        for server, piece in self.kept:
            # The target may have closed the connection meanwhile: then nothing arrives.
            with contextlib.suppress(ConnectionError):
                server.sendall(piece)

    def close(self):
        self._closed = True
        super().close()
        self._passes.set()

    def _serve(self, client):
        self._passes.wait()
        try:
            server = socket.create_connection(self._target)
        except OSError:
            client.close()
            return
        with self._lock:
            self._open |= {client, server}
        for one in (client, server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for ends in ((client, server), (server, client)):
            threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source, target):
        with contextlib.suppress(OSError):
            while not self._closed and (data := source.recv(PIECE_BYTES)):
                self._passes.wait()
                if self._is_kept is not None and self._is_kept(data):
                    self.kept.append((target, data))
                    return self._end(source)
                target.sendall(data)
        if all(source is not kept for kept, _ in self.kept):
            self._end(source, target)
