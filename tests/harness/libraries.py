"""What the tests of libraries share: a server that keeps its port, programs that ask for a kill.

A scenario is a program in any language that uses its library as that library's users do. It finds
the server by SLUICE_PORT, asserts, and its last line is "all of it holds". In between it may print
"kill": then the server gets SIGKILL and starts again on its directory and port, while the scenario
continues with its work; "restarted" on its standard input says when the server answers again.
"""

import contextlib
import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading
import time

import harness
from harness import NPM, Skipped, need_npm, require, scratch, servers

HERE = pathlib.Path(__file__).resolve().parents[1] / "libraries"
LONGEST_S = 150
HOLDS = "all of it holds"


def server(options, fsync="always", **directives):
    """A server that is not started yet, with a journal; a restart has the same port."""
    chosen = {"appendonly": "yes", "appendfsync": fsync, "save": "", "port": servers.steady_port(),
              **directives}
    options.last = servers.Server(options.program, chosen)
    return options.last


def environment(port, **others):
    return dict(os.environ, SLUICE_PORT=str(port), PYTHONDONTWRITEBYTECODE="1",
                NODE_PATH=str(NPM / "node_modules"), **others)


class Program:
    """A child in a process group of its own, its output by lines; `end` leaves nothing of it."""

    def __init__(self, command, port, directory=None, **others):
        self.command = [str(word) for word in command]
        self.seen = []
        self._lines = queue.Queue()
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", cwd=directory, start_new_session=True,
            preexec_fn=servers.die_with_parent, env=environment(port, **others))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def line(self, deadline):
        """The next line; None at the end of the output."""
        try:
            line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise AssertionError(f"{self.command} came to no end; it printed\n"
                                 + self.printed()) from None
        if line is not None:
            self.seen.append(line)
        return line

    def tell(self, word):
        try:
            self.process.stdin.write(word + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # It has ended: its exit code says more.

    def printed(self):
        return "\n".join(self.seen[-80:])

    def wait_for(self, text, timeout_s=LONGEST_S):
        """Reads until a line has the text."""
        deadline = time.monotonic() + timeout_s
        while True:
            line = self.line(deadline)
            if line is None:
                raise AssertionError(f"{self.command} ended before {text!r}:\n" + self.printed())
            if text in line:
                return line

    def end(self, gently=False):
        """Ends what is left of the group, this program and what it started."""
        if gently and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        code = self.process.wait()
        self._reader.join(5)
        with contextlib.suppress(BrokenPipeError):  # What it was told last, it need not have read.
            self.process.stdin.close()
        self.process.stdout.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        self.end()
        if failure is not None:
            self.tell_printed()

    def tell_printed(self):
        """What it printed last, for a failure that it had a part in; after `end`."""
        while not self._lines.empty():
            self.seen.append(self._lines.get() or "")
        print(f"{self.command} printed\n{self.printed()}", flush=True)


def play(command, running, directory=None, timeout_s=LONGEST_S, **others):
    """Runs a scenario to its end, with the kills that it asks for; returns its lines."""
    deadline = time.monotonic() + timeout_s
    with Program(command, running.port, directory, **others) as program:
        while (line := program.line(deadline)) is not None:
            if line == "kill":
                running.kill()
                running.start()
                program.tell("restarted")
        code = program.process.wait(20)
        require(code == 0 and HOLDS in program.seen[-1:],
                f"{program.command} exit {code}\n{program.printed()}")
        print("".join(f"  {line}\n" for line in program.seen[:-1]), end="", flush=True)
        return program.seen


def need_file(path, what):
    if not os.path.exists(path):
        raise Skipped(f"NOT RUN: no {what}; tools/setup test installs it")
    return path


def play_node(options, scenario, package, fsync="always", io_threads=1, **others):
    """A scenario of node/, with LIBRARY as the name under which it finds the package."""
    node = need_npm(package)
    with server(options, fsync, **{"io-threads": io_threads}) as running, scratch() as directory:
        return play([node, HERE / "node" / scenario], running, directory, LIBRARY=package, **others)


def run(module):
    # tools/test ends a check that takes too long: what it started is ended on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(harness.run(module))
