#!/usr/bin/python3
"""How sluice reaches its server, and what it says when it cannot, or when it loses it."""

import ctypes
import json
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import time

from harness import Skipped, require, require_equal, run, scratch, wait_until
from harness.cli import DURABLE, NO_CONNECTION, SERVER_ERROR, USAGE_ERROR, Sluice, serve
from harness.holds import measured
from harness.http_client import ADMIN_TOKEN
from harness.proxy import DROP, PASS, Proxy
from harness.sentinels import Sentinel
from harness.servers import LOOPBACK, steady_port
from harness.surroundings import NOTED_CALLS, preload

ANOTHER_HOST = "127.0.0.2"
PIDFD_GETFD = 438  # the number of the system call


def test_connections(options):
    """Host, port, socket, user, password and database; what cannot be reached is exit code 3."""
    with scratch() as directory:
        path = os.path.join(directory, "socket")
        _, sluice = serve(options, {"unixsocket": path, "requirepass": "secret", "user":
                                    "ann on >word +@all ~*"})
        sluice.fails(SERVER_ERROR, "NOAUTH", "status")
        sluice.fails(SERVER_ERROR, "WRONGPASS", "status", SLUICE_AUTH="wrong")
        sluice.must("add", "exec", "x", "--id", "a", SLUICE_AUTH="secret", REDISCLI_AUTH="wrong")
        sluice.must("status", REDISCLI_AUTH="secret")
        (job,) = sluice.json("jobs", "exec", "--user", "ann", "--pass", "word")
        require_equal(job["id"], "a", "--user")
        require_equal(sluice.json("status", "-n", 3, "--pass", "secret"), [], "-n")
        sluice.fails(SERVER_ERROR, "out of range", "status", "-n", 99, "--pass", "secret")
        sluice.port = 1
        (job,) = sluice.json("jobs", "exec", "-s", path, "--pass", "secret")
        require_equal(job["id"], "a", "-s")
        sluice.fails(NO_CONNECTION, "cannot connect to 127.0.0.1:1", "status")
        sluice.fails(NO_CONNECTION, "cannot connect to", "status", "-s", path + "none")
    with socket.create_server((LOOPBACK, 0)) as other:
        sluice.port = other.getsockname()[1]
        process = sluice.spawn("status")
        accepted = other.accept()[0]
        accepted.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        err = process.communicate(timeout=30)[1]
        require_equal(process.returncode, NO_CONNECTION, "not Redis")
        require(b"not a Redis protocol reply" in err, err)
        accepted.close()


class Losing:
    """The program, for a server behind a proxy that loses the last of `passes` + 1 replies to
    `word`."""

    def __init__(self, options, server, word, passes=0):
        self.word, self.passes = word, passes
        self.proxy = Proxy(server.port, self._decide)
        self.sluice = Sluice(options, None, self.proxy.port)
        self.text = f"sluice: lost the connection to {LOOPBACK}:{self.proxy.port}: "

    def _decide(self, command, _reply):
        if command[0] != self.word:
            return PASS
        self.passes -= 1
        return DROP if self.passes < 0 else PASS

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proxy.close()


MAYBE = "; the change may have been made"


def test_a_lost_reply(options):
    """When a reply is lost, sluice says so, and that a change which was sent may have been made."""
    server, sluice = serve(options)
    for word, change, words in (
            (b"Q.ADD", True, ["add", "exec", "x", "--id", "a"]),
            (b"Q.CONFIG", True, ["config", "exec", "max_active=4"]),
            (b"Q.CONFIG", False, ["config", "exec", "max_active"]),
            (b"Q.STATS", False, ["status", "exec"]),
            (b"SELECT", False, ["status", "-n", 1])):
        with Losing(options, server, word) as losing:
            code, out, err = losing.sluice.run(*words)
            require_equal((code, out), (NO_CONNECTION, ""), err)
            require_equal(err.startswith(losing.text), word != b"SELECT", err)
            require_equal(err.endswith(MAYBE + "\n"), change, err)
    require_equal(sluice.json("config", "exec", "max_active")["max_active"], 4, "what was set")
    require_equal(sluice.json("job", "exec", "a")["state"], "pending", "what was added")


def test_lost_amid_many(options):
    """cancel, retry and purge print what was done before a reply was lost."""
    server, sluice = serve(options)
    with server.connect() as connection:
        connection.pipeline([("Q.ADD", "exec", f"j{n:04}", "") for n in range(2500)])
    with Losing(options, server, b"Q.CANCEL", 1) as losing:
        code, out, err = losing.sluice.run("cancel", "exec", "--all")
        require_equal((code, out), (NO_CONNECTION, "1,000 jobs\n"), err)
        require(err.startswith(losing.text) and MAYBE in err, err)
    with Losing(options, server, b"Q.PURGE", 1) as losing:
        code, out, err = losing.sluice.run("purge", "exec", "--all", "--json")
        require_equal((code, json.loads(out)), (NO_CONNECTION, {"count": 1000}), err)
        require_equal(json.loads(err)["error"]["code"], "NOCONNECTION", err)
    with Losing(options, server, b"Q.CANCEL", 1) as losing:
        code, out, err = losing.sluice.run("cancel", "exec", "j2400", "j2401", "j2402", "--json")
        require_equal((code, json.loads(out)),
                      (NO_CONNECTION, [{"id": "j2400", "state": "cancelled"}]), err)
    require_equal([sluice.json("job", "exec", f"j240{n}")["state"] for n in range(3)],
                  ["cancelled", "cancelled", "pending"], "states")


def patience_s(process, port):
    """How long the process waits for what its connection to the port reads; 0: no limit."""
    system = ctypes.CDLL(None, use_errno=True)
    try:
        handle = os.pidfd_open(process.pid)
    except OSError as error:
        raise Skipped(f"NOT RUN: pidfd_open: {error}") from error
    try:
        for name in os.listdir(f"/proc/{process.pid}/fd"):
            if not os.readlink(f"/proc/{process.pid}/fd/{name}").startswith("socket:"):
                continue
            copied = system.syscall(PIDFD_GETFD, handle, int(name), 0)
            if copied < 0:
                raise Skipped(f"NOT RUN: pidfd_getfd: {os.strerror(ctypes.get_errno())}")
            with socket.socket(fileno=copied) as one:
                if one.family == socket.AF_INET and one.getpeername()[1] == port:
                    limit = one.getsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, 16)
                    return struct.unpack("qq", limit)[0]
    finally:
        os.close(handle)
    raise AssertionError("it has no connection")


def test_waits_have_their_time(options):
    """A command that waits at the server does not take its silence for a loss meanwhile."""
    with socket.create_server((LOOPBACK, 0)) as silent:
        silent.settimeout(60)
        port = silent.getsockname()[1]
        sluice = Sluice(options, None, port)
        for expected_s, *words in ((30, "pop", "q"), (630, "pop", "q", "--block", "10m"),
                                   (0, "pop", "q", "--block", "0"),
                                   (630, "add", "q", "x", "--wait", "10m"),
                                   (0, "add", "q", "x", "--wait", "0"),
                                   (630, "job", "q", "a", "--wait", "10m"),
                                   (0, "job", "q", "a", "--wait", "0")):
            with sluice.spawn(*words) as process:
                try:
                    with silent.accept()[0] as accepted:
                        require(accepted.recv(1), "it asks")
                        require_equal(patience_s(process, port), expected_s, str(words))
                finally:
                    process.kill()


def test_another_port_of_the_server(options):
    """At the HTTP port the program is told so at once, and it says so."""
    server, sluice = serve(options, {"http-port": "auto"})
    sluice.port = server.http_port
    sluice.fails(NO_CONNECTION, "is it an HTTP port? -p takes the server's port", "status")
    with scratch() as directory:
        sluice.fails(NO_CONNECTION, f"{LOOPBACK}:{server.port}: end of stream: no answer in HTTP; "
                     "is it the port for Redis's protocol? The server's http-port is the one to "
                     "give", "backup", os.path.join(directory, "backup"), "--http",
                     f"{LOOPBACK}:{server.port}")


def test_empty_options(options):
    """An option that says where to connect, or as whom, and has no value, is refused: it would mean
    the default. Other empty values are shown as such."""
    _, sluice = serve(options)
    for name in "-h", "-s", "--sentinel", "--sentinel-name", "-n", "--user", "--sni", "--cacert":
        sluice.fails(USAGE_ERROR, f'{name} requires a value, ', name, "", "--tls", "status")
        if name.startswith("--"):
            sluice.fails(USAGE_ERROR, 'and not ""', f"{name}=", "status")
    sluice.must("--pass", "", "status")
    sluice.must("add", "exec", "x", "--group", "")
    require_equal(len(sluice.json("jobs", "exec", "--group", "")), 1, "jobs without a group")
    for words, text in [
            (["jobs", "exec", "--by", ""], 'dispatch or error, not ""'),
            (["jobs", "exec", "--limit", ""], 'not ""'),
            (["simulate", "exec", "--fail", ""], 'not ""')]:
        sluice.fails(USAGE_ERROR, text, *words)
    for words, text in [
            (["config", "exec", "--group", ""], "group takes a name of 1 to 512 bytes, or a glob"),
            (["add", "exec", "x", "--group", "g" * 513], "group takes a name of at most 512 bytes"),
            (["jobs", "exec", "--error", ""], "error takes 1 to 512 bytes"),
            (["config", "exec", "max_active=5", "if=3"], "there is no field if")]:
        sluice.fails(SERVER_ERROR, text, *words)


def test_a_backup_finds_the_port(options):
    """A backup needs no --http where the server has chosen its HTTP port. It is its user's alone:
    it holds all data."""
    server, sluice = serve(options, {**DURABLE, "http-port": "auto",
                                     "http-token": f"admin >{ADMIN_TOKEN}"})
    with server.connect() as connection, scratch() as directory:
        connection.call("SAVE")
        path = os.path.join(directory, "backup")
        sluice.must("backup", path, SLUICE_HTTP_TOKEN=ADMIN_TOKEN)
        require_equal(os.listdir(directory), ["backup"], "files")
        require_equal(oct(stat.S_IMODE(os.stat(path).st_mode)), "0o600", "who may read it")


def test_a_backup_is_synced(options):
    """A backup is on the disk before it takes its name, and its name before the program says so."""
    with scratch() as directory, scratch() as beside:
        environment = preload(beside, options, "calls", NOTED_CALLS)
        calls = os.path.join(beside, "calls")
        server, sluice = serve(options, {**DURABLE, "http-port": "auto",
                                         "http-token": f"admin >{ADMIN_TOKEN}"})
        with server.connect() as connection:
            connection.call("SAVE")
        path = os.path.join(directory, "backup")
        sluice.must("backup", path, SLUICE_HTTP_TOKEN=ADMIN_TOKEN, NOTED_CALLS=calls,
                    LD_PRELOAD=environment["LD_PRELOAD"])
        with open(calls, encoding="ascii") as file:
            noted = [line.split() for line in file]
        require_equal(noted, [["fsync", path + ".part", "-"], ["rename", path + ".part", path],
                              ["fsync", directory, "-"]], "calls")


def test_a_backup_by_sentinel(options):
    """A backup is of the server that Sentinel names, whatever has its HTTP port on this host."""
    server, sluice = serve(options, {
        **DURABLE, "bind": f"{LOOPBACK} {ANOTHER_HOST}", "http-bind": ANOTHER_HOST,
        "http-port": steady_port(), "http-token": f"admin >{ADMIN_TOKEN}"})
    with server.connect() as connection, Sentinel("mymaster", server.port, ANOTHER_HOST) as asked, \
            scratch() as directory:
        connection.call("SAVE")
        known = f"{LOOPBACK}:{asked.port}"
        sluice.words = lambda *words: [sluice.path, "--sentinel", known, *words]
        path = os.path.join(directory, "backup")
        sluice.must("backup", path, SLUICE_HTTP_TOKEN=ADMIN_TOKEN)
        require_equal(os.listdir(directory), ["backup"], "files")


def test_a_silent_sentinel(options):
    """The next Sentinel is asked soon when one does not answer, for a completion sooner still."""
    server, sluice = serve(options)
    sluice.must("add", "exec", "x")
    with Sentinel("mymaster", server.port) as asked, \
            socket.create_server((LOOPBACK, 0)) as silent:
        both = f"{LOOPBACK}:{silent.getsockname()[1]},[{LOOPBACK}]:{asked.port}"
        sluice.words = lambda *words: [sluice.path, *words]
        for wrong in f"[{LOOPBACK}]{asked.port}", f"[{LOOPBACK}]x:{asked.port}", "[]:1", ":1":
            sluice.fails(USAGE_ERROR, "--sentinel takes HOST:PORT", "--sentinel", wrong, "status")
        for words in ["--sentinel", both, "status"], ["--complete", "--sentinel", both, "status"]:
            begun = time.monotonic()
            # What a server does not answer within a second is not offered.
            told = measured(lambda given=words: sluice.must(*given), lambda text: "exec\t" in text)
            require("exec\t" in told[-1], f"{words}: {told}")
            took_s = time.monotonic() - begun
            require(took_s < 20, f"{words} took {took_s:.1f} s")


def test_queues_that_a_user_may_not_read(options):
    """status leaves out what a user's rights to keys do, and says so; other refusals fail."""
    server, sluice = serve(options, {"user": "ann on nopass ~ann:* +@all"})
    for queue in "ann:a", "bob:a", "bob:b":
        sluice.must("add", queue, "x")
    user = "--user", "ann", "--pass", "x"
    code, out, err = sluice.run(*user, "status")
    require_equal((code, err), (0, "sluice: 2 more may not be read by this user\n"), "status")
    require("ann:a\t1" in out and "bob" not in out, out)
    code, out, err = sluice.run(*user, "status", "--json")
    require_equal([queue["name"] for queue in json.loads(out)], ["ann:a"], "JSON")
    require_equal(json.loads(err), {"note": "2 more may not be read by this user"}, "JSON")
    code, out, err = sluice.run(*user, "config", "--export")
    require_equal((code, err), (0, "sluice: 2 more may not be read by this user\n"), "--export")
    require_equal(json.loads(out), {"queues": {"ann:a": {}}}, "--export")
    sluice.fails(SERVER_ERROR, "NOPERM", *user, "config", "--export", "bob:a")
    sluice.fails(SERVER_ERROR, "NOPERM", *user, "status", "bob:a")
    with server.connect() as connection:
        connection.call("ACL", "SETUSER", "ann", "-q.stats")
    sluice.fails(SERVER_ERROR, "NOPERM", *user, "status")


def test_a_backup_that_is_ended(options):
    """Ctrl-C, SIGTERM and a hang-up leave nothing of a backup; a hang-up of nohup does not end
    it."""
    _, sluice = serve(options)
    with scratch() as directory, socket.create_server((LOOPBACK, 0)) as silent:
        for ends, before in ((signal.SIGINT, []), (signal.SIGTERM, []), (signal.SIGHUP, []),
                             (signal.SIGHUP, ["nohup"])):
            words = ["env", "--default-signal=INT,TERM,HUP", *before,
                     *sluice.words("backup", os.path.join(directory, "backup"), "--http",
                                   f"{LOOPBACK}:{silent.getsockname()[1]}")]
            with subprocess.Popen(words, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as backup:
                with silent.accept()[0]:
                    require_equal(os.listdir(directory), ["backup.part"], "while it is made")
                    backup.send_signal(ends)
                    if before:
                        backup.send_signal(signal.SIGTERM)
                    require_equal(backup.wait(30), -(signal.SIGTERM if before else ends), "end")
            require_equal(os.listdir(directory), [], f"after {ends}")


def test_closed_standard_output(options):
    """What is printed goes to no connection where standard output is closed, and that is an
    error; no program lets one of its files have the number of standard output."""
    server, sluice = serve(options)
    with server.connect() as connection:
        connection.call("Q.ADD", "exec", "a", "")
        reply = connection.call("Q.POP", 1, "exec").value[0]
        lease = reply[reply.index(b"lease") + 1]
        connection.call("Q.ACK", "exec", "a", lease, "RESULT", "x")
        connection.call("Q.ADD", "exec", "b", "")
        lease = connection.call("Q.POP", 1, "exec").value[0]
        lease = lease[lease.index(b"lease") + 1]
        connection.call("Q.TOUCH", "exec", "b", lease, "LOG", "FLUSHALL\r\n" * 10)
        connection.call("Q.ACK", "exec", "b", lease)
        done = subprocess.run(["sh", "-c", '"$@" >&-', "sh",
                               *sluice.words("watch", "exec", "b")],
                              stderr=subprocess.PIPE, check=False, timeout=60)
        require_equal(done.returncode, SERVER_ERROR, done.stderr)
        require(b"cannot write the output" in done.stderr, done.stderr)
        require_equal(connection.call("EXISTS", "exec").value, 1, "the log ran as commands")
    with scratch() as directory:
        words = [options.program, "--port", str(steady_port()), "--http-port", "0", "--dir",
                 directory]
        with subprocess.Popen(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *words]) as closed:
            wait_until(lambda: os.path.exists(os.path.join(directory, "LOCK")), what="a start")
            files = [os.readlink(f"/proc/{closed.pid}/fd/{number}") for number in range(3)]
            closed.terminate()
        # gRPC has taken the first one before the program began.
        require_equal(files[1:], ["/dev/null"] * 2, "standard files")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
