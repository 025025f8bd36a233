#!/usr/bin/python3
"""Descriptors: idle connections must not take those that the server itself needs."""

import contextlib
import os
import pathlib
import re
import resource
import socket
import sys
import threading
import time

import harness
from harness import info, open_files, require, require_equal, scratch, wait_until
from harness.http_client import ADMIN_TOKEN, Client, serve
from harness.surroundings import fixed_files, wrapped

ROOT = pathlib.Path(__file__).resolve().parents[2]
PASSWORD = "a-long-password"


def constant(name):
    """Of net/server/file_limit.h."""
    text = (ROOT / "net" / "server" / "file_limit.h").read_text(encoding="utf-8")
    return int(re.search(rf"\b{name} = (\d+);", text).group(1))


@contextlib.contextmanager
def silent(server, count, beside=None, port=None):
    """Connections that say nothing. `beside`: the only other client, who sees that they are there.
    """
    sockets = []
    try:
        for _ in range(count):
            sockets.append(socket.create_connection(("127.0.0.1", port or server.port), 20))
        if beside:
            wait_until(lambda: beside.call("CLIENT", "LIST").value.count(b"\n") == 1 + count,
                       what="the connections")
        time.sleep(0.05)  # those that follow are younger
        yield sockets
    finally:
        for one in sockets:
            one.close()


def is_closed(one):
    one.setblocking(False)
    try:
        return one.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def write_megabytes(connection, count):
    for number in range(count):
        reply = connection.call("SET", f"key:{number % 8}", "x" * (1 << 20))
        require_equal(reply.raw, b"+OK\r\n", f"value {number}")


def test_idle_connections_leave_the_journal_its_files(options):
    """`ulimit -n 400` and more idle connections than that: maxclients fits, the journal works."""
    with fixed_files(options, 400) as few, \
            few.server({"appendonly": "yes", "http-port": "auto"}) as server:
        with server.connect() as connection, silent(server, 500):
            shown = {name: int(value) for name, value in zip(
                *[iter(word.decode() for word in
                       connection.call("CONFIG", "GET", "*maxclients").value)] * 2)}
            require(shown["maxclients"] + shown["http-maxclients"] < 400 - 128, shown)
            wait_until(lambda: int(info(connection)["connected_clients"]) ==
                       shown["maxclients"], what="as many clients as there may be")
            write_megabytes(connection, 40)
            require_equal(connection.call("SAVE").raw, b"+OK\r\n", "SAVE")
            reply = connection.call("CONFIG", "SET", "maxclients", "5000")
            require(b"The operating system is not able to handle the specified number of "
                    b"clients, try with %d" % shown["maxclients"] in reply.raw, reply.raw)
            reply = connection.call("CONFIG", "SET", "maxclients", str(shown["maxclients"]))
            require_equal(reply.raw, b"+OK\r\n", "what fits")
        log = server.log_tail(100)
        require(f"maxclients has been reduced to {shown['maxclients']}" in log, log)


def test_too_few_files_for_a_start(options):
    """A limit that leaves nothing for clients: exit 1, and what is needed."""
    with scratch() as directory, fixed_files(options, 100) as few:
        code, output = few.run("--dir", directory, "--port", "auto", "--http-port", "0")
        require_equal(code, 1, "exit code")
        require("Your current 'ulimit -n' of 100 is not enough" in output, output)


class Peak:
    """The most files that the process has open, looked at all the time."""

    def __init__(self, pid):
        self.most = 0
        self._pid = pid
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._stop.is_set():
            self.most = max(self.most, len(open_files(self._pid)))
            time.sleep(0.0005)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()


def test_the_servers_own_files(options):
    """What the server itself has open stays below two thirds of what is kept for it."""
    with scratch() as directory:
        conf, users = os.path.join(directory, "conf"), os.path.join(directory, "users.acl")
        for path in (conf, users):
            with open(path, "w", encoding="ascii") as file:
                file.write(f"aclfile {users}\n" if path == conf else "")
        directives = {"appendonly": "yes", "http-port": "auto", "checkpoint-log-bytes": "512mb",
                      "logfile": os.path.join(directory, "log"),
                      "unixsocket": os.path.join(directory, "socket")}
        configured = wrapped(directory, options, arguments=conf)
        with configured.server(directives) as server, server.connect() as connection:
            with Peak(server.pid) as peak:
                for _ in range(2):
                    write_megabytes(connection, 100)
                    for words in (("SAVE",), ("CONFIG", "REWRITE"), ("ACL", "SAVE"),
                                  ("ACL", "LOAD"), ("INFO",), ("MEMORY", "STATS")):
                        require(not connection.call(*words).is_error, words)
            own = peak.most - 1 - options.io_threads * constant("kFilesPerIoThread")
            spare = int(re.search(r"kCount = (\d+);", (ROOT / "storage" / "spare_files.h")
                                  .read_text(encoding="utf-8")).group(1))
            print(f"own files: {own - spare}", flush=True)
            require(own - spare <= constant("kOwnFiles") * 2 / 3, f"{own - spare} files")


def test_spare_files(options):
    """A limit that is lowered meanwhile: the journal takes spare files, an idle client goes; those
    that wait for something stay, however long they have been silent."""
    waits = (b"Q.POP 1 q BLOCK 600000\r\n", b"BLPOP list 600\r\n", b"SUBSCRIBE channel\r\n")
    with options.server({"appendonly": "yes"}) as server:
        with server.connect() as connection, silent(server, len(waits)) as waiting, \
                silent(server, 40) as others:
            connection.call("SET", "a", "1")
            for one, words in zip(waiting, waits):
                one.sendall(words)
            wait_until(lambda: (info(connection)["blocked_clients"],
                                info(connection)["connected_clients"]) == ("2", "44"),
                       what="the clients")
            require(b"channel" in waiting[2].recv(1000), "SUBSCRIBE")
            for one in others:
                one.sendall(b"PING\r\n")  # they are silent for less long than the waiting ones
                require_equal(one.recv(100), b"+PONG\r\n", "PING")
            # No further descriptor below the limit.
            highest = max(open_files(server.pid))
            resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (highest + 1, highest + 1))
            write_megabytes(connection, 60)
            wait_until(lambda: any(is_closed(one) for one in others), what="the end of a client")
            wait_until(lambda: "Too many open files: the journal has taken" in
                       server.log_tail(100), what="the log's line")
            write_megabytes(connection, 20)
            require_equal(connection.call("SAVE").raw, b"+OK\r\n", "SAVE")
            require(not all(is_closed(one) for one in others), "not all of them are closed")
            require(not any(is_closed(one) for one in waiting), "who waits stays")
            connection.call("Q.ADD", "q", "job", "x")
            waiting[0].setblocking(True)
            require(b"job" in waiting[0].recv(1000), "the worker is served")
            connections = re.search(r"the journal has taken spare descriptors, \d+ of which are "
                                    r"missing now, and (\d+) connections", server.log_tail(100))
            require(int(connections.group(1)) > 0, connections.group(0))


def test_spare_files_of_http(options):
    """Where connections of HTTP have taken the files, idle ones go, and the journal works."""
    with serve(options, {"appendonly": "yes"}) as server, contextlib.ExitStack() as stack:
        others = [stack.enter_context(Client(server)) for _ in range(40)]
        for one in others:
            one.expect(200, "GET", "/healthz")
        client = stack.enter_context(Client(server, ADMIN_TOKEN))
        client.expect(200, "GET", "/healthz")
        highest = max(open_files(server.pid))
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (highest + 1, highest + 1))
        payload = "x" * (1 << 19)
        for number in range(120):
            client.expect(201, "POST", "/api/v1/queues/q/jobs",
                          {"id": str(number), "payload": payload})
        wait_until(lambda: any(is_closed(one.connection.sock) for one in others),
                   what="the end of a connection")
        # There is at most one line in a minute, and the first one may have closed nothing.
        wait_until(lambda: re.search(r"missing now, and [1-9]\d* connections",
                                     server.log_tail(100)), 120, "the log's line")
        client.expect(202, "POST", "/api/v1/checkpoint")


def test_every_listener_comes_back(options):
    """Without a descriptor for new connections each listener waits, and takes them afterwards."""
    with scratch() as directory:
        path = os.path.join(directory, "socket")
        with options.server({"unixsocket": path}) as server, server.connect() as connection:
            connection.call("PING")
            highest = max(open_files(server.pid))
            before = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (highest + 1, before[1]))
            with socket.socket(socket.AF_UNIX) as local, \
                    socket.create_connection(("127.0.0.1", server.port), 20) as remote:
                local.settimeout(20)
                local.connect(path)
                for one in (local, remote):
                    one.sendall(b"PING\r\n")
                time.sleep(0.5)
                resource.prlimit(server.pid, resource.RLIMIT_NOFILE, before)
                for one in (local, remote):
                    require_equal(one.recv(100), b"+PONG\r\n", one)
            log = server.log_tail(1000)
            require_equal(log.count("Error accepting a client connection"), 1, log)


def test_strangers_give_way(options):
    """At maxclients the oldest connection without a password gives way; the others stay."""
    with options.server({"maxclients": "20", "requirepass": PASSWORD}) as server:
        with server.connect() as friend:
            require_equal(friend.call("AUTH", PASSWORD).raw, b"+OK\r\n", "AUTH")
            with silent(server, 1, friend) as oldest, silent(server, 18) as others:
                wait_until(lambda: info(friend)["connected_clients"] == "20", what="all of them")
                require(not any(is_closed(one) for one in oldest + others), "nobody has gone")
                with server.connect() as operator:
                    require_equal(operator.call("AUTH", PASSWORD).raw, b"+OK\r\n", "operator")
                    wait_until(lambda: is_closed(oldest[0]), what="the end of the oldest")
                    require(not any(is_closed(one) for one in others), "the others stay")
                    with silent(server, 200):
                        for one in (friend, operator):
                            require_equal(one.call("PING").raw, b"+PONG\r\n", "those with a name")
                        with server.connect() as late:
                            require_equal(late.call("AUTH", PASSWORD).raw, b"+OK\r\n", "late")
                            require(int(info(late)["connected_clients"]) <=
                                    20 + 8 * options.io_threads, "about maxclients")
            wait_until(lambda: info(friend)["connected_clients"] == "1", what="the others' ends")
            # Where all have authenticated nobody gives way.
            friends = [friend] + [server.connect() for _ in range(19)]
            for one in friends:
                require_equal(one.call("AUTH", PASSWORD).raw, b"+OK\r\n", "AUTH")
            with server.connect() as refused:
                require_equal(refused.read_quiet(5)[0], b"-ERR max number of clients reached\r\n")
            for one in friends:
                require_equal(one.call("PING").raw, b"+PONG\r\n", "nobody has gone")
                one.close()


def test_the_patience_with_strangers(options):
    """Above half of maxclients 10 s without a password are the end; below it, nothing is. The same
    holds above half of http-maxclients without a token."""
    directives = {"maxclients": "20", "requirepass": PASSWORD, "http-port": "auto",
                  "http-maxclients": "20", "http-token": f"admin >{ADMIN_TOKEN}"}
    with options.server(directives) as crowded, options.server(directives) as quiet:
        with silent(crowded, 12) as many, silent(quiet, 9) as few, \
                silent(crowded, 12, port=crowded.http_port) as many_http, \
                silent(quiet, 9, port=quiet.http_port) as few_http, crowded.connect() as friend:
            friend.call("AUTH", PASSWORD)
            began = time.monotonic()
            wait_until(lambda: any(is_closed(one) for one in many + many_http),
                       what="the end of some")
            require(time.monotonic() - began > 8, "not before their time")
            wait_until(lambda: any(is_closed(one) for one in many), what="the end of some")
            wait_until(lambda: int(info(friend)["connected_clients"]) <= 10, what="half of them")
            require(not all(is_closed(one) for one in many), "below half the rest stays")
            require_equal(friend.call("PING").raw, b"+PONG\r\n", "the friend")
            wait_until(lambda: sum(is_closed(one) for one in many_http) >= 2, 20,
                       "the end of those beyond half at the HTTP port")
            require(not any(is_closed(one) for one in few + few_http), "the few stay")
        crowded.close()


def test_http_strangers_give_way(options):
    """At http-maxclients the oldest connection gives way that has shown no token."""
    directives = {"http-port": "auto", "http-maxclients": "4",
                  "http-token": f"admin >{ADMIN_TOKEN}"}
    with options.server(directives) as server:
        request = (f"GET /api/v1/queues HTTP/1.1\r\nHost: localhost\r\n"
                   f"Authorization: Bearer {ADMIN_TOKEN}\r\n\r\n").encode()
        with contextlib.ExitStack() as stack:
            def connect():
                one = stack.enter_context(socket.create_connection(("127.0.0.1", server.http_port), 20))
                one.settimeout(20)
                return one
            others = [connect() for _ in range(4)]
            # What anybody may ask for makes nobody known.
            for one in others[:3]:
                one.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                require(one.recv(1000).startswith(b"HTTP/1.1 200"), "/healthz")
            time.sleep(0.2)
            friends = []
            for _ in range(3):
                friend = connect()
                friend.sendall(request)
                require(friend.recv(1000).startswith(b"HTTP/1.1 200"), "a further one is served")
                friends.append(friend)
            wait_until(lambda: sum(is_closed(one) for one in others) == 3, what="three have gone")
            connect()
            for friend in friends:
                friend.sendall(request)
                require(friend.recv(1000).startswith(b"HTTP/1.1 200"), "friends stay")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__], io_threads=(1, 4)))
