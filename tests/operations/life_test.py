#!/usr/bin/python3
"""Start and end of the server: errors, messages, signals, sockets, the ready file."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from concurrent import futures

import harness
from harness import closes, info, require, require_equal, scratch, wait_until

PROBLEMS = [
    # (arguments or the text of a file, what standard error must name)
    (["--no-such-directive", "1"], ["no-such-directive"]),
    (["--port", "abc"], ["port", "0 to 65535"]),
    (["--appendfsync", "sometimes"], ["appendfsync", "everysec, always, no"]),
    (["--maxmemory", "lots"], ["maxmemory"]),
    (["/does/not/exist.conf"], ["/does/not/exist.conf"]),
]


def expect_exit(process, code, within_s):
    try:
        require_equal(process.wait(within_s), code, "exit code")
    except subprocess.TimeoutExpired:
        raise AssertionError(f"still running after {within_s} s") from None


def test_a_bad_directive_ends_the_program_with_1(options):
    """A bad directive or value: exit 1, and what was expected."""
    for arguments, words in PROBLEMS:
        code, output = options.run(*arguments)
        require_equal(code, 1, f"exit code of {arguments}")
        for word in words:
            require(word in output, f"{arguments}: {output!r} does not name {word}")


def test_a_bad_line_is_named(options):
    """A bad line of a file: exit 1, with file and line."""
    with scratch() as directory:
        path = os.path.join(directory, "bad.conf")
        with open(path, "w", encoding="ascii") as file:
            file.write("# a comment\nport 0\nmaxclients none\n")
        code, output = options.run(path)
        require_equal(code, 1, "exit code")
        require(f"{path}:3" in output, f"{output!r} does not name the line")


def test_version_and_help(options):
    """-v and -h print and exit 0."""
    for flag, word in [("-v", "0.1.0"), ("--version", "0.1.0"), ("-h", "--port"),
                       ("--help", "--port")]:
        code, output = options.run(flag)
        require_equal(code, 0, f"exit code of {flag}")
        require(word in output, f"{flag} printed {output!r}")


def test_a_port_in_use_is_an_error(options):
    """A port that is taken: exit 1, naming it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, output = options.run("--port", str(port), "--appendonly", "no", "--save", "",
                                   "--bind", "127.0.0.1", "--http-port", "0")
        require_equal(code, 1, "exit code")
        require("Address already in use" in output and str(port) in output, output)


def test_a_second_server_is_refused(options):
    """A second server on one directory: exit 1, naming it; the first keeps running."""
    with options.server({"appendonly": "yes"}) as first:
        code, output = options.run("--dir", first.directory, "--port", "auto", "--http-port", "0")
        require_equal(code, 1, "exit code")
        require(first.directory in output, output)
        with first.connect() as connection:
            require_equal(connection.call("SET", "a", "1").raw, b"+OK\r\n")


def test_the_ready_file(options):
    """The ready file has the port once the server serves."""
    with options.server() as server:
        with open(server.ready_path, encoding="ascii") as ready:
            lines = dict(line.split() for line in ready)
        require_equal(int(lines["port"]), server.port, "port")
        with server.connect() as connection:
            require_equal(int(info(connection)["tcp_port"]), server.port, "tcp_port")


def test_the_supervisor_is_told(options):
    """With `supervised` NOTIFY_SOCKET gets READY=1, and STOPPING=1 at the end; else nothing."""
    with scratch() as directory, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        path = os.path.join(directory, "notify")
        supervisor.bind(path)
        supervisor.settimeout(10)
        environment = dict(os.environ, NOTIFY_SOCKET=path)

        def is_told(setting):
            with options.server({"supervised": setting}, environment=environment) as server:
                with server.connect() as connection:
                    shown = info(connection, "server")["process_supervised"]
                server.stop()
            supervisor.settimeout(0.2)
            heard = b""
            with contextlib.suppress(socket.timeout):
                while True:
                    heard += supervisor.recv(4096) + b"\n"
            return shown, b"READY=1" in heard and b"STOPPING=1" in heard, heard

        for setting in ("systemd", "auto"):
            require_equal(is_told(setting)[:2], ("systemd", True), setting)
        require_equal(is_told("no"), ("no", False, b""), "no")
        del environment["NOTIFY_SOCKET"]
        for setting in ("systemd", "auto"):
            require_equal(is_told(setting), ("no", False, b""), f"{setting} without a socket")


def test_a_secret_is_not_in_a_message(options):
    """A bad line with a secret: exit 1, and the message names the directive but shows no secret."""
    for line in ("requirepass hidden more", "masterauth hidden more", 'requirepass "hidden',
                 "tls-key-file-pass hidden more", "otlp-header Authorization hidden more",
                 "http-token nobody >hidden-hidden-hidden", "user u on >hidden ~x +nosuch"):
        with scratch() as directory:
            path = os.path.join(directory, "bad.conf")
            with open(path, "w", encoding="ascii") as file:
                file.write(line + "\n")
            code, output = options.run(path, "--port", "auto", "--http-port", "0",
                                       "--dir", directory)
            require_equal(code, 1, f"exit code of {line}: {output}")
            require(line.split()[0] in output and "hidden" not in output, output)


def test_a_secret_is_not_in_the_slow_log(options):
    """SLOWLOG shows no secret parameter, nor those that redis-server shows (passwords of keys)."""
    with options.server({"slowlog-log-slower-than": "0"}) as server:
        with server.connect() as connection:
            for name, value in (("tls-key-file-pass", "hidden"), ("masterauth", "hidden"),
                                ("TLS-client-key-file-pass", "hidden"), ("masteruser", "hidden"),
                                ("http-token", "read >hidden-hidden-hidden"),
                                ("requirepass", "hidden")):
                require_equal(connection.call("CONFIG", "SET", name, value).raw, b"+OK\r\n", name)
            shown = connection.call("SLOWLOG", "GET", "100").raw
            require(b"hidden" not in shown and shown.count(b"(redacted)") == 6, shown)


def test_the_unit_of_systemd(options):  # pylint: disable=unused-argument
    """systemd takes the unit as it is, but for the path of the program."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        raise harness.Skipped("systemd-analyze is not installed")
    unit = pathlib.Path(__file__).resolve().parents[2] / "conf" / "sluice.service"
    with scratch() as directory:
        copy = pathlib.Path(directory, "sluice.service")
        copy.write_text(unit.read_text(encoding="utf-8").replace("/usr/bin/sluice-server",
                                                                 options.program),
                        encoding="utf-8")
        done = subprocess.run([analyze, "verify", "--man=no", str(copy)], check=False, text=True,
                              capture_output=True, timeout=60)
        said = [line for line in (done.stdout + done.stderr).splitlines() if "sluice" in line]
        require(done.returncode == 0 and not said, f"exit {done.returncode}: {said}")


def test_what_the_unit_gives(options):  # pylint: disable=unused-argument
    """The unit waits for addresses, lets a last checkpoint end, and has the folder of the log."""
    conf = pathlib.Path(__file__).resolve().parents[2] / "conf"
    lines = (conf / "sluice.service").read_text(encoding="utf-8").splitlines()
    missing = {"Wants=network-online.target", "After=network-online.target",
               "TimeoutStopSec=infinity", "LogsDirectory=sluice"} - set(lines)
    require(not missing, missing)
    require("# logfile /var/log/sluice/" in (conf / "sluice.conf").read_text(encoding="utf-8"),
            "the log's folder")


def ask_a_unix_socket(path, request, end):
    """What comes back until `end` is in it."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(path)
        client.sendall(request)
        reply = b""
        while end not in reply:
            data = client.recv(4096)
            require(data, f"closed after {reply!r}")
            reply += data
        return reply


def test_a_unix_socket(options):
    """A Unix socket with its mode, beside or instead of TCP; gone after the end."""
    with scratch() as directory:
        path = os.path.join(directory, "socket")
        ready = os.path.join(directory, "ready")
        arguments = [options.program, "--port", "0", "--unixsocket", path, "--unixsocketperm",
                     "700", "--appendonly", "no", "--save", "", "--http-port", "0",
                     "--ready-file", ready]
        with subprocess.Popen(arguments, stdout=subprocess.DEVNULL) as process:
            try:
                wait_until(lambda: os.path.exists(ready), what="the ready file")
                require_equal(stat.S_IMODE(os.stat(path).st_mode), 0o700, "the socket's mode")
                reply = ask_a_unix_socket(path, b"PING\r\nCLIENT LIST\r\n", b"cmd=")
                require(b"+PONG" in reply and b"addr=" + path.encode() + b":0" in reply, reply)
                process.send_signal(signal.SIGTERM)
                expect_exit(process, 0, 5)
            finally:
                process.kill()  # does nothing to one that has ended
        require(not os.path.exists(path), "the socket was left behind")


def test_a_unix_socket_with_a_relative_path(options):
    """CLIENT INFO and CLIENT LIST say U of its clients, and DEBUG takes them for local ones."""
    with options.server({"unixsocket": "s", "enable-debug-command": "local"}) as server:
        path = os.path.join(server.directory, "s")
        for words in (b"CLIENT INFO\r\n", b"CLIENT LIST\r\n"):
            reply = ask_a_unix_socket(path, words, b"cmd=")
            require(b" flags=U " in reply, reply)
        reply = ask_a_unix_socket(path, b"DEBUG SLEEP 0\r\n", b"\n")
        require_equal(reply, b"+OK\r\n", "DEBUG")


def test_what_is_at_the_path_of_the_unix_socket(options):
    """A socket that a killed server has left is replaced; all else stays: exit 1, naming it."""
    with options.server({"unixsocket": "s"}) as server:
        path = os.path.join(server.directory, "s")
        server.kill()
        require(stat.S_ISSOCK(os.stat(path).st_mode), "the socket is left behind")
        server.start()
        require_equal(ask_a_unix_socket(path, b"PING\r\n", b"\n"), b"+PONG\r\n", "PING")
    with scratch() as directory:
        path = pathlib.Path(directory, "file")
        path.write_text("kept", encoding="ascii")
        code, output = options.run("--unixsocket", str(path), "--port", "0", "--http-port", "0",
                                   "--appendonly", "no", "--save", "", "--dir", directory)
        require(code == 1 and str(path) in output, f"exit code {code}: {output}")
        require_equal(path.read_text(encoding="ascii"), "kept", "the file")


def load(server, stop, acknowledged, index):
    """Increments a counter of its own until the server is gone; notes what was acknowledged."""
    try:
        with server.connect() as connection:
            while not stop.is_set():
                replies = connection.pipeline([("INCR", f"counter:{index}")] * 16)
                acknowledged[index] = int(replies[-1].value)
    except OSError:
        pass


def end_under_load(options, directives, signals):
    """Starts, loads, sends the signals; (exit code, seconds it took, acknowledged, found)."""
    server = options.server(directives)
    with server:
        stop = threading.Event()
        acknowledged = {index: 0 for index in range(8)}
        clients = [threading.Thread(target=load, args=(server, stop, acknowledged, index))
                   for index in acknowledged]
        for client in clients:
            client.start()
        time.sleep(0.4)
        wait_until(lambda: all(acknowledged.values()), what="acknowledgements of each")
        began = time.monotonic()
        for number in signals:
            server.process.send_signal(number)
        code = server.process.wait(10)
        took_s = time.monotonic() - began
        stop.set()
        for client in clients:
            client.join()
        server.process = None
        server.start()
        with server.connect() as connection:
            found = {index: int(connection.call("GET", f"counter:{index}").value or 0)
                     for index in acknowledged}
        return code, took_s, acknowledged, found


def test_sigterm_under_load(options):
    """SIGTERM under load: exit 0 within 5 s, and what was acknowledged is there again."""
    for directives in ({"appendonly": "yes"}, {"appendonly": "yes", "appendfsync": "everysec"},
                       {"appendonly": "no", "save": "3600 1"}):
        code, took_s, acknowledged, found = end_under_load(options, directives, [signal.SIGTERM])
        require_equal(code, 0, f"exit code with {directives}")
        require(took_s < 5, f"took {took_s:.1f} s")
        for index, count in acknowledged.items():
            require(found[index] >= count > 0, f"{directives}: {found[index]} of {count}")


def test_sigint_ends_it_too(options):
    """SIGINT ends it in order."""
    with options.server() as server:
        server.process.send_signal(signal.SIGINT)
        expect_exit(server.process, 0, 5)


def test_sighup_changes_nothing(options):
    """SIGHUP is ignored."""
    with options.server() as server:
        server.process.send_signal(signal.SIGHUP)
        time.sleep(0.1)
        with server.connect() as connection:
            require_equal(connection.call("PING").raw, b"+PONG\r\n")


def test_sigint_during_the_end_is_obeyed_at_once(options):
    """SIGINT during the end exits at once."""
    with options.server({"enable-debug-command": "yes"}) as server:
        with server.connect() as connection:
            # What holds the end up: a command that runs for a minute.
            connection.send("DEBUG", "SLEEP", "60")
            wait_until(lambda: not server.answers_ping(), what="the work in hand")
            server.process.send_signal(signal.SIGTERM)
            # While both are pending the one of the smaller number, SIGINT, comes first.
            wait_until(lambda: "SIGTERM" in server.log_tail(), what="SIGTERM")
            time.sleep(0.2)
            require(server.alive(), "the end waits for the work in hand")
            server.process.send_signal(signal.SIGINT)
            require_equal(server.process.wait(20), 1, "exit code")
            require("exiting at once" in server.log_tail(), server.log_tail())


def test_shutdown(options):
    """SHUTDOWN closes the connection without a reply and ends with 0; NOSAVE keeps nothing."""
    server = options.server({"appendonly": "no", "save": "3600 1"})
    with server:
        for words, kept in (((), b"1"), (("NOSAVE",), b"1"), (("SAVE",), b"2")):
            with server.connect() as connection:
                connection.call("SET", "a", "2" if words else "1")
                connection.send("SHUTDOWN", *words)
                data, closed = connection.read_quiet(5)
                require_equal((data, closed), (b"", True), "the connection")
            expect_exit(server.process, 0, 5)
            server.process = None
            server.start()
            with server.connect() as connection:
                require_equal(connection.call("GET", "a").value, kept, f"after SHUTDOWN {words}")


def test_nothing_is_kept_without_rules(options):
    """appendonly no with save "": nothing is kept, and the log says so."""
    with options.server({"appendonly": "no", "save": ""}) as server:
        with server.connect() as connection:
            connection.call("SET", "a", "1")
        require("nothing is kept" in server.log_tail(), server.log_tail())
        server.restart()
        with server.connect() as connection:
            require_equal(connection.call("DBSIZE").raw, b":0\r\n")


def test_checkpoints_leave_no_reply_behind(options):
    """Each reply comes, in every mode, while one checkpoint follows the other."""
    for mode in ("always", "everysec"):
        directives = {"appendonly": "yes", "appendfsync": mode, "checkpoint-log-bytes": "1mb"}
        with options.server(directives) as server:
            stop = threading.Event()

            def write(index):
                # Nobody else talks to the server: any other event could bring a stuck reply along.
                with server.connect(5) as connection:
                    while not stop.is_set():
                        reply = connection.call("SET", f"key:{index}", "x" * 20_000)
                        require_equal(reply.raw, b"+OK\r\n")
            with futures.ThreadPoolExecutor() as pool:
                clients = [pool.submit(write, index) for index in range(3)]
                try:
                    stop.wait(2.5)
                    wait_until(lambda: "checkpoint 5:" in server.log_tail(1000), what="checkpoints")
                finally:
                    stop.set()
                for client in clients:
                    client.result()


def test_a_connection_during_the_end_is_closed(options):
    """Connections are closed when the server ends, blocked ones too."""
    with options.server() as server:
        with server.connect() as idle, server.connect() as blocked:
            idle.call("PING")
            blocked.send("BLPOP", "nothing", "0")
            time.sleep(0.1)
            server.process.send_signal(signal.SIGTERM)
            require(closes(idle) and closes(blocked), "both connections end")
            expect_exit(server.process, 0, 5)


def test_protected_mode(options):
    """Protected mode: from outside without a password, refused with the reason."""
    address = harness.own_address()
    if address is None:
        raise harness.Skipped("this machine has the loopback interface only")
    with options.server({"bind": f"127.0.0.1 {address}"}) as server:
        with harness.Connection(address, server.port) as stranger:
            data, closed = stranger.read_quiet(2)
            require(data.startswith(b"-DENIED Redis is running in protected mode"), data)
            require(closed, "and it is closed")
        with server.connect() as friend:
            require_equal(friend.call("PING").raw, b"+PONG\r\n")
            friend.call("CONFIG", "SET", "protected-mode", "no")
        with harness.Connection(address, server.port) as stranger:
            require_equal(stranger.call("PING").raw, b"+PONG\r\n")


def test_local_debugging(options):
    """enable-debug-command local: DEBUG over loopback only."""
    address = harness.own_address()
    if address is None:
        raise harness.Skipped("this machine has the loopback interface only")
    directives = {"bind": f"127.0.0.1 {address}", "protected-mode": "no",
                  "enable-debug-command": "local"}
    with options.server(directives) as server:
        with harness.Connection(address, server.port) as stranger:
            reply = stranger.call("DEBUG", "SLEEP", "0")
            require(reply.raw.startswith(b"-ERR DEBUG command not allowed"), reply.raw)
        with server.connect() as friend:
            require_equal(friend.call("DEBUG", "SLEEP", "0").raw, b"+OK\r\n", "over loopback")


def test_what_is_due_at_the_end(options):
    """Keys that are due as the server stops are left to its next start: they delay no end."""
    keys = 20_000
    due = "for i = 1, ARGV[1] do redis.call('SET', 'k' .. i, 'v', 'PX', 1500) end"
    with options.server({"appendonly": "yes", "enable-debug-command": "yes"}) as server:
        with server.connect() as connection, server.connect() as sleeper:
            connection.call("EVAL", due, "0", str(keys))
            sleeper.send("DEBUG", "SLEEP", "2")
            time.sleep(0.2)  # it has begun
            server.process.send_signal(signal.SIGTERM)
            expect_exit(server.process, 0, 20)
        server.process = None
        server.start()
        units = re.findall(r"and (\d+) units of the journal", server.log_tail(200))
        require(int(units[-1]) < keys / 64 / 4, f"{units} units: one, and one for 64 expired keys")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
