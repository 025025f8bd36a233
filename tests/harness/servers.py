"""Starts and stops redis-server and sluice-server for tests.

A `Server` owns one child process and one data directory. It listens on a free loopback port and has
answered PING once `start` returns. `stop` ends only that process, by its pid. Used by one thread.

    with Server("redis-server") as server:
        connection = server.connect()

A test of restarts calls `stop` or `kill`, then `start` again: the directory stays until `close`.
"""

import atexit
import contextlib
import ctypes
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from harness.resp import Connection

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEFAULT_SLUICE = ROOT / "build" / "release" / "bin" / "sluice-server"
# The first failure ends a run of tests: nobody asks for the others.
FIRST_FAILURE = bool(os.environ.get("SLUICE_FIRST_FAILURE"))
LOOPBACK = "127.0.0.1"
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)
_open_servers = set()
_own_ports = []  # sockets whose names say to other processes of tests which ports are taken


class ServerError(Exception):
    """The server did not start, or died; the text ends with the tail of its log. `exit_code` as
    subprocess has it; None while it lives."""

    def __init__(self, text, exit_code=None):
        super().__init__(text)
        self.exit_code = exit_code


def free_port():
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return probe.getsockname()[1]


def steady_port():
    """A free port for a server that is restarted on it, below those that the kernel gives to
    outgoing connections: a client that connects again while the server is down would sooner or
    later be connected to itself otherwise. No other test gets it while this process lives."""
    for _ in range(200):
        port = random.randrange(12000, 32000)
        name = socket.socket(socket.AF_UNIX)
        with socket.socket() as probe, contextlib.suppress(OSError):
            name.bind(f"\0sluice-test-port-{port}")
            probe.bind((LOOPBACK, port))
            _own_ports.append(name)
            return port
        name.close()
    raise RuntimeError("no free port")


def directive_arguments(directives):
    """`{"save": "", "user": ["a on", "b off"]}` as command line arguments; a list repeats it."""
    arguments = []
    for name, values in (directives or {}).items():
        for value in values if isinstance(values, (list, tuple)) else [values]:
            words = str(value).split(" ") if value != "" else [""]
            arguments += ["--" + name] + words
    return arguments


def die_with_parent():
    """For a child between fork and exec: it must not outlive a test run that is killed. The signal
    follows the thread that started it, so only a thread that lives as long may ask for it."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Server:
    """One child server. `kind` is "redis" or "sluice", by the program's name unless it is given."""

    def __init__(self, program=DEFAULT_SLUICE, directives=None, directory=None, kind=None,
                 start_timeout_s=60.0, environment=None):
        # The child runs in its own directory: a relative path means the caller's.
        self.program = os.path.abspath(program) if os.sep in str(program) else str(program)
        self.kind = kind or ("redis" if "redis" in os.path.basename(self.program) else "sluice")
        self.directives = dict(directives or {})
        self.start_timeout_s = start_timeout_s
        self.environment = environment
        self.process = None
        self.port = None
        self.ports = {}  # of Sluice, by the name of the directive; `port` among them
        self._owns_directory = directory is None
        self.directory = str(directory or tempfile.mkdtemp(prefix=f"{self.kind}-test-"))
        self.log_path = os.path.join(self.directory, "server.log")
        self.ready_path = os.path.join(self.directory, "ready")

    # -- Life ---------------------------------------------------------------------------------

    def start(self):
        if self.alive():
            return self
        _open_servers.add(self)
        for attempt in range(5):
            self._spawn()
            try:
                self._wait_until_ready()
                return self
            except ServerError:
                # Another process can take the free port first: only that is worth another try.
                self.kill()
                if attempt == 4 or "Address already in use" not in self.log_tail():
                    raise

    def stop(self, timeout_s=10.0):
        """SIGTERM, then SIGKILL after `timeout_s`. Returns the exit code, None if not started."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self._reap()

    def kill(self):
        """SIGKILL: what is not on disk is lost, as in a crash."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.kill()
        return self._reap()

    def restart(self):
        self.stop()
        return self.start()

    def close(self):
        """Stops the server and removes the data directory if this object made it."""
        self.stop()
        _open_servers.discard(self)
        if self._owns_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_):
        self.close()

    # -- Use ----------------------------------------------------------------------------------

    def alive(self):
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self):
        return self.process.pid if self.process else None

    @property
    def http_port(self):
        return self.ports["http-port"]

    def connect(self, timeout_s=20.0):
        return Connection(LOOPBACK, self.port, timeout_s)

    def log_tail(self, line_count=20):
        try:
            with open(self.log_path, "rb") as log:
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            return ""
        return "\n".join(lines[-line_count:])

    # -- Inside -------------------------------------------------------------------------------

    def _command_line(self):
        if self.kind == "redis":
            self.port = self.directives.get("port") or free_port()
            directives = {"save": "", "appendonly": "no", "enable-debug-command": "yes"}
            fixed = {"port": self.port, "bind": LOOPBACK, "dir": self.directory}
        else:
            directives = {}
            fixed = {"port": "auto", "ready-file": self.ready_path, "dir": self.directory,
                     "bind": LOOPBACK, "http-port": "0"}
        directives.update(fixed)
        directives.update(self.directives)
        return [self.program] + directive_arguments(directives)

    def _spawn(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.ready_path)
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self._command_line(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.directory, env=self.environment, **self._child_options())

    def _child_options(self):
        on_main_thread = threading.current_thread() is threading.main_thread()
        return {"preexec_fn": die_with_parent if on_main_thread else None}

    def _wait_until_ready(self):
        deadline = time.monotonic() + self.start_timeout_s
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                code = self.process.returncode
                text = f"{self.program} exited with code {code}\n{self.log_tail()}"
                raise ServerError(text, code)
            if self.kind == "redis" or self._read_ready_file():
                # A server without this port has said by its file that it is ready.
                if self.port == 0 or self.answers_ping():
                    return
            time.sleep(0.01)
        raise ServerError(f"{self.program} did not answer within {self.start_timeout_s} s\n"
                          f"{self.log_tail()}")

    def _read_ready_file(self):
        try:
            with open(self.ready_path, encoding="utf-8") as ready:
                self.ports = {name: int(value) for name, value in map(str.split, ready)}
        except FileNotFoundError:
            return False
        self.port = self.ports.get("port", self.port)
        return True

    def answers_ping(self):
        """True if the server answers within a second, if only to ask for a password. It has closed
        the connection then, so that what counts clients does not count this one."""
        try:
            with self.connect(timeout_s=1.0) as connection:
                reply = connection.call("PING").raw
                with contextlib.suppress(OSError):
                    connection.socket.shutdown(socket.SHUT_WR)
                    while connection.socket.recv(4096):
                        pass
                return reply.startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False

    def _reap(self):
        code = self.process.wait()
        self.process = None
        return code


class ConfiguredServer(Server):
    """Started with the file sluice.conf of its directory, which the caller writes."""

    @property
    def path(self):
        return os.path.join(self.directory, "sluice.conf")

    def _command_line(self):
        return [self.program, self.path]


def _close_all():
    for server in list(_open_servers):
        server.close()


atexit.register(_close_all)
