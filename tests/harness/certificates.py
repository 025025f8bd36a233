"""Certificates for tests of TLS, made by Debian's openssl, and connections that use them."""

import os
import select
import socket
import ssl
import subprocess

from harness.resp import Connection, ConnectionClosed, ReplyTimeout
from harness.servers import LOOPBACK

NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"


def openssl(*arguments, given=b""):
    done = subprocess.run(["openssl", *map(str, arguments)], input=given, capture_output=True,
                          check=False, timeout=60)
    if done.returncode != 0:
        raise AssertionError(f"openssl {arguments}: {done.stderr.decode(errors='replace')}")
    return done.stdout


class Certificates:
    """A folder with two authorities (`ca`, `other`) and what they have signed, as PEM files:
    `server` and `second` of the server, `client`, `expired`, and `stranger` of the other one."""

    def __init__(self, folder):
        self.folder = str(folder)
        for authority in "ca", "other":
            self._key(authority)
            openssl("req", "-x509", "-new", "-key", self.key(authority), "-subj",
                    f"/CN={authority}", "-days", 2, "-out", self.certificate(authority))
        for name, authority, days in (("server", "ca", 2), ("second", "ca", 2), ("client", "ca", 2),
                                      ("expired", "ca", -1), ("stranger", "other", 2)):
            self._key(name)
            self.sign(name, authority, days)

    def path(self, name):
        return os.path.join(self.folder, name)

    def key(self, name):
        return self.path(name + ".key")

    def certificate(self, name):
        return self.path(name + ".crt")

    def der(self, name):
        return openssl("x509", "-in", self.certificate(name), "-outform", "der")

    def _key(self, name):
        openssl("ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", self.key(name))

    def sign(self, name, authority="ca", days=2, alternatives=NAMES):
        """A new certificate of the same key."""
        request = openssl("req", "-new", "-key", self.key(name), "-subj", f"/CN={name}")
        names = self.path("names")
        with open(names, "w", encoding="ascii") as file:
            file.write(alternatives + "\n")
        certificate = openssl("x509", "-req", "-CA", self.certificate(authority), "-CAkey",
                              self.key(authority), "-days", days, "-extfile", names, given=request)
        with open(self.certificate(name), "wb") as file:
            file.write(certificate)

    def encrypted_key(self, name, password):
        openssl("ec", "-in", self.key(name), "-aes128", "-passout", "pass:" + password, "-out",
                self.key(name + "-locked"))
        return self.key(name + "-locked")

    def directives(self, name="server", **others):
        """Of a server; others with _ for -."""
        given = {"tls-cert-file": self.certificate(name), "tls-key-file": self.key(name),
                 "tls-ca-cert-file": self.certificate("ca")}
        given.update({key.replace("_", "-"): value for key, value in others.items()})
        return given

    def server_context(self, name="server"):
        """Of a Python server that asks for no certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate(name), self.key(name))
        return context

    def context(self, client="client", authority="ca", version=None):
        """Of a Python client: who it is (None: nobody) and whom it believes."""
        context = ssl.create_default_context(cafile=self.certificate(authority))
        if client is not None:
            context.load_cert_chain(self.certificate(client), self.key(client))
        if version is not None:
            context.minimum_version = context.maximum_version = version
        return context


class TlsConnection(Connection):
    """A RESP connection over TLS. `buffer_bytes`: small socket buffers."""

    def __init__(self, port, context, timeout_s=10.0, buffer_bytes=None, session=None,
                 host=LOOPBACK):
        # pylint: disable=super-init-not-called
        self.timeout_s = timeout_s
        self._buffer = bytearray()
        self._position = 0
        self._deadline = 0.0
        plain = socket.socket()
        if buffer_bytes is not None:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes)
        plain.settimeout(timeout_s)
        try:
            plain.connect((host, port))
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.socket = context.wrap_socket(plain, server_hostname="localhost", session=session)
        except BaseException:
            plain.close()
            raise

    def exchange(self, requests, reply_bytes, timeout_s):
        """Sends and receives at once and gives the replies, which are `reply_bytes` long.

        In one thread: an SSL object is not safe to share, not even a reader with a writer.
        """
        left = memoryview(requests)
        replies = bytearray()
        self.socket.setblocking(False)
        while left or len(replies) < reply_bytes:
            wants_write = False
            while left and not wants_write:
                try:
                    left = left[self.socket.send(left):]
                except ssl.SSLWantWriteError:
                    wants_write = True
                except ssl.SSLWantReadError:
                    break
            try:
                while received := self.socket.recv(1 << 16):
                    replies += received
                raise ConnectionClosed(replies)
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLWantWriteError:
                wants_write = True
            if not left and len(replies) >= reply_bytes:
                break
            writers = [self.socket] if wants_write else []
            ready = select.select([self.socket], writers, [], timeout_s)
            if not any(ready):
                raise ReplyTimeout(f"{len(replies)} bytes came, {len(left)} are not sent")
        self.socket.settimeout(timeout_s)
        return replies
