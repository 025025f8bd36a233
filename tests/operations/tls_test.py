#!/usr/bin/python3
"""TLS on the RESP port: certificates of both sides, versions, reloading, hostile handshakes."""

import contextlib
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from concurrent import futures

import redis

import harness
from harness import info, open_files, require, require_equal, servers, wait_until
from harness.certificates import Certificates, TlsConnection, openssl
from harness.resp import encode
from harness.servers import LOOPBACK
from harness.wall_clock import WallClock

RELOAD_FAILED = ("-ERR CONFIG SET failed (possibly related to argument 'tls-cert-file') - Unable "
                 "to update TLS configuration. Check server logs.\r\n")
# As a client's first record would begin, and never end.
HALF_HELLO = bytes.fromhex("160301020001000001fc0303")


@contextlib.contextmanager
def tls_server(options, *, more=None, environment=None, **directives):
    """A server with both ports, and its certificates."""
    with harness.scratch() as folder:
        certificates = Certificates(folder)
        given = {"tls-port": "auto"}
        given.update(certificates.directives(**directives))
        given.update(more or {})
        with options.server(given, environment=environment) as server:
            server.tls_port = server.ports.get("tls-port")
            yield server, certificates


def is_refused(server, context):
    """Whether the handshake fails; with TLS 1.3 a client learns of it with the first read."""
    try:
        with TlsConnection(server.tls_port, context) as connection:
            require_equal(connection.call("PING").raw, b"+PONG\r\n")
            return False
    except (ssl.SSLError, ConnectionError):
        return True


def set_config(connection, *pairs):
    require_equal(connection.call("CONFIG", "SET", *pairs).raw, b"+OK\r\n", f"{pairs}")


def test_clients_of_redis(options):
    """redis-cli, redis-benchmark and redis-py work with the server over TLS."""
    with tls_server(options) as (server, certificates):
        tls = ["--tls", "--cacert", certificates.certificate("ca"), "--cert",
               certificates.certificate("client"), "--key", certificates.key("client"), "-h",
               "localhost", "-p", str(server.tls_port)]
        for words, expected in ((("SET", "a", "1"), b"OK\n"), (("INCR", "a"), b"2\n")):
            done = subprocess.run(["redis-cli", *tls, *words], capture_output=True, timeout=30,
                                  check=False)
            require_equal(done.stdout, expected, f"{words} {done.stderr!r}")
        done = subprocess.run(["redis-benchmark", *tls, "-t", "set,get,lpush", "-n", "20000", "-P",
                               "16", "-d", "100", "-q"], capture_output=True, timeout=120,
                              check=False)
        require_equal(done.stdout.count(b"requests per second"), 3, f"{done}")
        client = redis.Redis(host="localhost", port=server.tls_port, ssl=True,
                             ssl_ca_certs=certificates.certificate("ca"),
                             ssl_certfile=certificates.certificate("client"),
                             ssl_keyfile=certificates.key("client"))
        pipeline = client.pipeline(transaction=True)
        for number in range(1000):
            pipeline.rpush("list", number)
        require_equal(pipeline.execute(), list(range(1, 1001)))
        require_equal(client.blpop("list", 1), (b"list", b"0"))
        client.close()


def test_client_certificates(options):
    """Client certificates: required, optional, none; of another authority and expired refused."""
    with tls_server(options) as (server, certificates), server.connect() as plain:
        nobody = certificates.context(client=None)
        good = certificates.context()
        bad = [certificates.context(client=name) for name in ("stranger", "expired")]
        for mode, expected in (("yes", [True, False, True, True]),
                               ("optional", [False, False, True, True]),
                               ("no", [False, False, False, False]),
                               ("yes", [True, False, True, True])):
            set_config(plain, "tls-auth-clients", mode)
            got = [is_refused(server, context) for context in (nobody, good, *bad)]
            require_equal(got, expected, f"who is refused with {mode}")
        # Somebody else's server is refused by the client.
        require(is_refused(server, certificates.context(authority="other")), "wrong authority")
        require_equal(plain.call("CONFIG", "SET", "tls-ca-cert-file", "").raw,
                      RELOAD_FAILED.replace("tls-cert", "tls-ca-cert").encode())
        require(not is_refused(server, good), "TLS works")
        # A directory of authorities in the place of the file.
        authorities = certificates.path("authorities")
        os.mkdir(authorities)
        shutil.copy(certificates.certificate("ca"), authorities)
        openssl("rehash", authorities)
        set_config(plain, "tls-ca-cert-dir", authorities, "tls-ca-cert-file", "")
        require_equal([is_refused(server, context) for context in (nobody, good, *bad)],
                      [True, False, True, True], "with a directory")
        require(int(info(plain)["sluice_tls_handshakes_failed"]) >= 5, "they are counted")


def test_versions_and_ciphers(options):
    """tls-protocols, tls-ciphers, tls-ciphersuites and tls-prefer-server-ciphers decide, at run
    time too."""
    v12, v13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
    with tls_server(options, tls_protocols="TLSv1.2") as (server, certificates):
        plain = server.connect()
        for protocols, versions in (("TLSv1.2", [v12]), ("TLSv1.3", [v13]),
                                    ("tlsv1.2 TLSv1.3", [v12, v13]), ("", [v12, v13])):
            set_config(plain, "tls-protocols", protocols)
            got = [version for version in (v12, v13)
                   if not is_refused(server, certificates.context(version=version))]
            require_equal(got, versions, protocols)
        set_config(plain, "tls-ciphers", "ECDHE-ECDSA-AES256-GCM-SHA384",
                           "tls-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256")
        for version, name in ((v12, "ECDHE-ECDSA-AES256-GCM-SHA384"),
                              (v13, "TLS_CHACHA20_POLY1305_SHA256")):
            with TlsConnection(server.tls_port, certificates.context(version=version)) as client:
                require_equal(client.socket.cipher()[0], name)
        # Whose order decides, where it is not that of OpenSSL.
        theirs, ours = "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES128-GCM-SHA256"
        context = certificates.context(version=v12)
        context.set_ciphers(f"{theirs}:{ours}")
        for prefer, name in ("yes", ours), ("no", theirs):
            set_config(plain, "tls-ciphers", f"{ours}:{theirs}", "tls-prefer-server-ciphers",
                       prefer)
            with TlsConnection(server.tls_port, context) as client:
                require_equal(client.socket.cipher()[0], name, f"prefer: {prefer}")
        parameters = certificates.path("dh.pem")
        openssl("genpkey", "-genparam", "-algorithm", "DH", "-pkeyopt", "group:ffdhe2048", "-out",
                parameters)
        set_config(plain, "tls-dh-params-file", parameters)
        require(not is_refused(server, certificates.context(version=v12)), "with parameters")
        plain.close()


def peer(server, certificates):
    with TlsConnection(server.tls_port, certificates.context()) as connection:
        return connection.socket.getpeercert(binary_form=True)


def test_reload(options):
    """CONFIG SET reads renewed files; what is bad leaves all as it was; connections stay."""
    with tls_server(options) as (server, certificates), server.connect() as plain:
        old = TlsConnection(server.tls_port, certificates.context())
        require_equal(peer(server, certificates), certificates.der("server"))
        second = (certificates.certificate("second"), certificates.key("second"))
        set_config(plain, "tls-cert-file", second[0], "tls-key-file", second[1])
        require_equal(peer(server, certificates), certificates.der("second"))
        # The same names with new contents.
        certificates.sign("second")
        before = certificates.der("second")
        require(peer(server, certificates) != before, "not by itself")
        set_config(plain, "tls-cert-file", second[0])
        require_equal(peer(server, certificates), before)
        with open(certificates.path("garbage"), "wb") as file:
            file.write(b"-----BEGIN CERTIFICATE-----\ngarbage\n")
        for bad in (certificates.path("none"), certificates.path("garbage"), certificates.folder,
                    certificates.certificate("server"), ""):
            require_equal(plain.call("CONFIG", "SET", "tls-cert-file", bad).raw,
                          RELOAD_FAILED.encode(), f"{bad!r}")
            require_equal(plain.call("CONFIG", "GET", "tls-cert-file").value[1],
                          second[0].encode())
            require_equal(peer(server, certificates), before, f"after {bad!r}")
        require("tls-cert-file: Failed to load certificate" in server.log_tail(40), "the log")
        locked = certificates.encrypted_key("second", "secret")
        require(plain.call("CONFIG", "SET", "tls-key-file", locked).is_error, "without password")
        set_config(plain, "tls-key-file", locked, "tls-key-file-pass", "secret")
        require_equal(peer(server, certificates), before)
        require_equal(old.call("PING").raw, b"+PONG\r\n", "a connection from before")
        require_equal(old.socket.getpeercert(binary_form=True), certificates.der("server"))
        old.close()


def test_sessions(options):
    """A client resumes its session, for the configured time, but not one from before a reload or
    without caching."""
    for client in None, "client":
        check_sessions(options, client)


def check_sessions(options, client):
    auth_clients = "no" if client is None else "yes"
    with tls_server(options, tls_auth_clients=auth_clients) as (server, certificates):
        context = certificates.context(client=client, version=ssl.TLSVersion.TLSv1_2)

        def connect(session):
            with TlsConnection(server.tls_port, context, session=session) as connection:
                require_equal(connection.call("PING").raw, b"+PONG\r\n")
                return connection.socket.session, connection.socket.session_reused
        session, _ = connect(None)
        require(connect(session)[1], "it is resumed")
        with server.connect() as plain:
            set_config(plain, "tls-session-cache-timeout", "200")
            session, reused = connect(session)
            require(not reused, "but not after a reload")
            require_equal(session.ticket_lifetime_hint, 200, "for so many seconds")
            require(connect(session)[1], "then again")
            set_config(plain, "tls-session-caching", "no")
            session, _ = connect(None)
            require(session is None or not connect(session)[1], "without caching")


def test_large_pipelines(options):
    """Megabytes both ways at once through small buffers, with several connections."""
    turns = 150
    value = os.urandom(30_000)
    replies = f"+OK\r\n${len(value)}\r\n".encode() + value + b"\r\n"
    with tls_server(options) as (server, certificates):
        def run(number):
            version = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)[number % 2]
            requests = b"".join(encode(("SET", f"{number}:{turn}", value))
                                + encode(("GET", f"{number}:{turn}")) for turn in range(turns))
            with TlsConnection(server.tls_port, certificates.context(version=version), 60,
                               buffer_bytes=8192 << number) as connection:
                return connection.exchange(requests, len(replies) * turns, 60)
        with futures.ThreadPoolExecutor() as pool:
            for number, got in enumerate(pool.map(run, range(4))):
                require(got == replies * turns, f"the replies of client {number}")
        with server.connect() as plain:
            require_equal(plain.call("DBSIZE").value, 4 * turns)


def test_blocking_and_messages(options):
    """Blocking pops, messages and CLIENT work over TLS as they do without."""
    with tls_server(options) as (server, certificates), server.connect() as plain:
        context = certificates.context()
        clients = [TlsConnection(server.tls_port, context) for _ in range(20)]
        for count, client in enumerate(clients, 1):
            client.send("BLPOP", "queue", "0")
            blocked = str(count)
            wait_until(lambda: info(plain)["blocked_clients"] == blocked, what="the blocking")
        for number, client in enumerate(clients):
            plain.call("RPUSH", "queue", number)
            require_equal(client.read_reply().value, [b"queue", str(number).encode()])
        require_equal(clients[0].call("BLPOP", "queue", "0.05").raw, b"*-1\r\n")
        clients[1].call("SUBSCRIBE", "news")
        big = os.urandom(200_000)
        require_equal(plain.call("PUBLISH", "news", big).value, 1)
        require_equal(clients[1].read_reply().value, [b"message", b"news", big])
        client_id = clients[2].call("CLIENT", "ID").value
        lines = plain.call("CLIENT", "LIST").value.decode().splitlines()
        require_equal(len(lines), 21, "connections that are shown")
        require(any(f"laddr={LOOPBACK}:{server.tls_port}" in line for line in lines), str(lines))
        require_equal(plain.call("CLIENT", "KILL", "ID", client_id).value, 1)
        require_equal(clients[2].socket.recv(100), b"", "closed with a close_notify")
        # A waiter that goes, with a close_notify or without, takes nothing.
        for number in 3, 4:
            clients[number].send("BLPOP", "queue", "0")
        wait_until(lambda: info(plain)["blocked_clients"] == "2", what="the blocking")
        clients[3].socket.settimeout(0)
        with contextlib.suppress(ssl.SSLWantReadError):
            clients[3].socket.unwrap()  # says goodbye, and stays
        os.close(clients[4].socket.detach())
        wait_until(lambda: info(plain)["blocked_clients"] == "0", what="the end of lost ones")
        for client in clients[5:]:
            client.close()


def test_the_end(options):
    """When the server ends it finishes the replies and says goodbye."""
    with tls_server(options) as (server, certificates):
        with TlsConnection(server.tls_port, certificates.context()) as idle, \
                TlsConnection(server.tls_port, certificates.context()) as asking:
            asking.send("SHUTDOWN", "NOSAVE")
            require_equal(idle.socket.recv(100), b"", "an end, and no error")
            require_equal(asking.socket.recv(100), b"")
        require_equal(server.process.wait(10), 0, "exit code")


def wait_for_clients(plain, count):
    """Until only those of the test are connected."""
    wait_until(lambda: info(plain)["connected_clients"] == str(count), what=f"{count} clients")


def test_slow_and_dropped_handshakes(options):
    """Handshakes that never end are ended; dropped ones leave nothing; others are not disturbed."""
    with tls_server(options, more={"tls-handshake-timeout": "1"}) as (server, certificates):
        with server.connect() as plain, \
                TlsConnection(server.tls_port, certificates.context()) as served:
            wait_for_clients(plain, 2)
            files = len(open_files(server.pid))
            slow = [socket.create_connection((LOOPBACK, server.tls_port)) for _ in range(30)]
            for number, connection in enumerate(slow):
                connection.sendall(HALF_HELLO[:number % 12])
            dropped = [socket.create_connection((LOOPBACK, server.tls_port)) for _ in range(100)]
            for number, connection in enumerate(dropped):
                connection.sendall(HALF_HELLO + bytes(number))
                if number % 2 == 0:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                          b"\x01\0\0\0\0\0\0\0")
                connection.close()
            began = time.monotonic()
            while time.monotonic() - began < 0.5:
                require_equal(served.call("PING").raw, b"+PONG\r\n")
            for connection in slow:
                connection.settimeout(10)
                require_equal(connection.recv(100), b"", "a slow one is closed")
                connection.close()
            require(0.9 < time.monotonic() - began < 15, "in time")
            wait_until(lambda: info(plain)["connected_clients"] == "2", what="the end of all")
            wait_until(lambda: len(open_files(server.pid)) == files, what="no socket is left")
            require(int(info(plain)["sluice_tls_handshakes_failed"]) >= 30, "counted")
            lines = server.log_tail(400).count("TLS handshake with")
            require(1 <= lines <= 3, f"{lines} lines in the log")
            plain.call("CONFIG", "RESETSTAT")
            require_equal(info(plain)["sluice_tls_handshakes_failed"], "0")


def test_handshakes_end_by_the_steady_clock(options):
    """A handshake that never ends is ended in time though the wall clock is put back meanwhile."""
    with harness.scratch() as folder:
        clock = WallClock(folder)
        with tls_server(options, more={"tls-handshake-timeout": "1"},
                        environment=clock.environment()) as (server, _), \
                server.connect() as plain:
            with socket.create_connection((LOOPBACK, server.tls_port), 20) as silent:
                silent.sendall(HALF_HELLO)
                wait_until(lambda: info(plain)["connected_clients"] == "2", what="the connection")
                clock.step_ms(-3_600_000)
                require_equal(silent.recv(100), b"", "it is closed")


def test_the_wrong_protocol(options):
    """Plain text on the TLS port and TLS on the plain port are closed, and no others with them."""
    with tls_server(options) as (server, certificates), server.connect() as plain:
        for text in (b"PING\r\n", b"*1\r\n$4\r\nPING\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                     bytes(5000), HALF_HELLO[:5] + bytes(0x200)):
            with harness.Connection(LOOPBACK, server.tls_port) as connection:
                connection.send_bytes(text)
                require(harness.closes(connection), f"{text[:20]!r} is closed")
        try:
            TlsConnection(server.port, certificates.context()).close()
            raise AssertionError("a handshake with the plain port")
        except (ssl.SSLError, ConnectionError):
            pass
        require_equal(plain.call("PING").raw, b"+PONG\r\n")
        require(not is_refused(server, certificates.context()), "TLS works")


def test_limits(options):
    """maxclients and protected mode hold for TLS; what is refused is told where that can be."""
    with tls_server(options, more={"maxclients": "3"}) as (server, certificates):
        with server.connect(), server.connect() as plain:
            wait_for_clients(plain, 2)
            with TlsConnection(server.tls_port, certificates.context()):
                wait_for_clients(plain, 3)
                require(is_refused(server, certificates.context()), "the fourth")
                require_equal(info(plain)["rejected_connections"], "1")
                require_equal(info(plain)["sluice_tls_handshakes_failed"], "0")
    address = harness.own_address()
    if address is None:
        return
    with tls_server(options, more={"bind": f"127.0.0.1 {address}"}) as (server, certificates):
        stranger = TlsConnection(server.tls_port, certificates.context(), host=address)
        data, closed = stranger.read_quiet(2)
        require(data.startswith(b"-DENIED Redis is running in protected mode"), data)
        require(closed, "and it is closed")
        stranger.close()
        require(not is_refused(server, certificates.context()), "others come in")


def test_tls_only(options):
    """`port 0` with a tls-port: TLS only, and INFO says its port as Redis does."""
    with harness.scratch() as folder:
        certificates = Certificates(folder)
        ready = os.path.join(folder, "ready")
        given = {"port": 0, "tls-port": "auto", "http-port": 0, "ready-file": ready, "dir": folder,
                 "appendonly": "no", "save": "", **certificates.directives()}
        with subprocess.Popen([options.program, *servers.directive_arguments(given)],
                              stdout=subprocess.DEVNULL) as process:
            try:
                wait_until(lambda: os.path.exists(ready), 20, "the ready file")
                with open(ready, encoding="utf-8") as lines:
                    ports = dict(line.split() for line in lines)
                require_equal(sorted(ports), ["port", "tls-port"])
                require_equal(ports["port"], "0")
                with TlsConnection(int(ports["tls-port"]), certificates.context()) as connection:
                    require_equal(info(connection)["tcp_port"], ports["tls-port"])
            finally:
                process.terminate()
            require_equal(process.wait(10), 0)


def test_errors_at_the_start(options):
    """What is wrong with the files ends the start, with directive, file and reason."""
    with harness.scratch() as folder:
        certificates = Certificates(folder)
        good = certificates.directives()
        none = certificates.path("none")
        cases = [({"tls-cert-file": none}, f"tls-cert-file: Failed to load certificate: {none}: "),
                 ({"tls-cert-file": ""}, "No tls-cert-file configured!"),
                 ({"tls-key-file": certificates.key("client")},
                  "tls-key-file: Failed to load private key: "),
                 ({"tls-key-file": certificates.encrypted_key("server", "secret")},
                  "tls-key-file: Failed to load private key: "),
                 ({"tls-ca-cert-file": ""}, "Either tls-ca-cert-file or tls-ca-cert-dir must be"),
                 ({"tls-protocols": "SSLv3"}, "tls-protocols: Invalid tls-protocols specified."),
                 ({"tls-dh-params-file": none}, "tls-dh-params-file: Failed to load DH")]
        for wrong, text in cases:
            given = {"port": "auto", "tls-port": "auto", "http-port": 0, "dir": folder, **good,
                     **wrong}
            code, output = options.run(*servers.directive_arguments(given))
            require_equal(code, 1, f"exit code with {wrong}")
            require(text in output, f"{text!r} in {output!r}")


def test_as_redis(options):
    """Directives, defaults and answers of CONFIG are those of redis-server."""
    def answers(connection, certificates):
        pairs = connection.call("CONFIG", "GET", "tls-*").value
        got = dict(zip(pairs[::2], pairs[1::2]))
        got.pop(b"tls-handshake-timeout", None)
        got.pop(b"tls-port")
        shown = [sorted(got.items())]
        for words in (("tls-cert-file", "/none"), ("tls-auth-clients", "x"),
                      ("tls-auth-clients", "optional"), ("tls-protocols", "SSLv9"),
                      ("tls-ciphers", "none"), ("tls-ciphersuites", "none"),
                      ("tls-ca-cert-dir", certificates.folder), ("tls-ca-cert-file", "/none"),
                      ("tls-key-file", certificates.key("client")),
                      ("tls-key-file", certificates.key("second"), "tls-cert-file",
                       certificates.certificate("second")),
                      ("tls-session-caching", "no"), ("tls-session-cache-size", "-1"),
                      ("tls-session-cache-timeout", "x"), ("tls-prefer-server-ciphers", "yes"),
                      ("tls-cluster", "no"), ("tls-replication", "no"),
                      ("tls-dh-params-file", "/none"), ("tls-cert-file", "")):
            shown.append((words, connection.call("CONFIG", "SET", *words).raw))
        pairs = connection.call("CONFIG", "GET", "tls-*file*").value
        return shown + [sorted(zip(pairs[::2], pairs[1::2]))]

    with tls_server(options) as (server, certificates):
        given = dict(certificates.directives(), **{"tls-port": servers.free_port()})
        with servers.Server("redis-server", given) as reference, \
                reference.connect() as theirs, server.connect() as ours:
            expected = answers(theirs, certificates)
            for got, wanted in zip(answers(ours, certificates), expected):
                require_equal(got, wanted, "answer")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__], io_threads=(1, 2)))
