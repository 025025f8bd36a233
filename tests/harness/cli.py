"""Shared by the tests of the program sluice: running it, and servers for it."""

import codecs
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time

from harness import require, require_equal

DONE, SERVER_ERROR, USAGE_ERROR, NO_CONNECTION = range(4)
TIMEOUT_S = 30
DURABLE = {"appendonly": "yes"}


def environment(**more):
    """Without passwords from the caller's environment, and with a known time zone."""
    kept = {name: value for name, value in os.environ.items()
            if name not in ("SLUICE_AUTH", "REDISCLI_AUTH", "NO_COLOR")}
    return {**kept, "TZ": "UTC", **more}


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


class Sluice:
    """The program, for one server. `before`: options that stand before each command."""

    def __init__(self, options, server, port=None, before=()):
        self.path = os.path.join(os.path.dirname(options.program), "sluice")
        self.port = port or (server.port if server else 1)
        self.before = list(before)

    def words(self, *arguments):
        return [self.path, "-p", str(self.port), *map(str, [*self.before, *arguments])]

    def run(self, *arguments, stdin=b"", **more):
        """(exit code, standard output, standard error)"""
        done = subprocess.run(self.words(*arguments), input=stdin, capture_output=True,
                              timeout=TIMEOUT_S, check=False, env=environment(**more))
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def must(self, *arguments, **more):
        """What it prints, after a run without any failure."""
        code, out, err = self.run(*arguments, **more)
        require(code == DONE, f"{arguments}: exit {code}: {out}{err}")
        return out

    def json(self, *arguments, **more):
        return json.loads(self.must(*arguments, "--json", **more))

    def fails(self, code, part, *arguments, **more):
        """Nothing on standard output, one line on standard error with `part` in it."""
        got, out, err = self.run(*arguments, **more)
        require_equal((got, out), (code, ""), f"{arguments}: {err!r}")
        require(err.startswith("sluice: ") and part in err, f"{arguments}: {err!r}, not {part!r}")

    def spawn(self, *arguments, **more):
        return subprocess.Popen(self.words(*arguments), env=environment(**more),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)


def serve(options, directives=None):
    """(a server that is started, the program for it)"""
    server = options.server(directives)
    server.start()
    return server, Sluice(options, server)


class Terminal:
    """A program on a pseudo terminal, with what it has written so far."""

    def __init__(self, words, columns=100, rows=24, **more):
        self.mine, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(theirs)
        self.process = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs,
                                        env=environment(**{"TERM": "xterm", **more}),
                                        start_new_session=True)
        self.theirs = theirs
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.text = ""

    def press(self, keys):
        """Forgets what was shown, so that what is read next comes after the keys."""
        self.text = ""
        os.write(self.mine, keys.encode())

    def resize(self, columns, rows):
        self.text = ""
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)

    def read_until(self, pattern, timeout_s=30):
        deadline = time.monotonic() + timeout_s
        while not re.search(pattern, self.text, re.S):
            require(time.monotonic() < deadline, f"no {pattern!r} in {self.text[-1500:]!r}")
            if select.select([self.mine], [], [], 0.05)[0]:
                self._read()

    def _read(self):
        self.text += self.decoder.decode(os.read(self.mine, 65536))

    def frame_with(self, pattern, timeout_s=30):
        """The lines of the first frame that has the pattern, without colours."""
        deadline = time.monotonic() + timeout_s
        while True:
            lines = [plain(line) for line in self.frame()]
            if re.search(pattern, "\n".join(lines)):
                return lines
            require(time.monotonic() < deadline, f"no {pattern!r} in {lines}")
            if select.select([self.mine], [], [], 0.05)[0]:
                self._read()

    def frame(self):
        """The lines of the last whole frame."""
        text = self.text.rpartition("\x1b[J")[0].rpartition("\x1b[H")[2]
        return text.replace("\x1b[K", "").split("\r\n")

    def end(self):
        code = self.process.wait(10)
        while select.select([self.mine], [], [], 0.05)[0]:
            self._read()
        after = termios.tcgetattr(self.theirs)
        os.close(self.mine)
        os.close(self.theirs)
        return code, after


class Follower:
    """events --follow, read by a thread."""

    def __init__(self, sluice, *arguments):
        self.process = sluice.spawn("events", *arguments, "--follow")
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.decode())

    def end(self):
        self.process.terminate()
        self.process.wait(10)
        self.reader.join(10)
        return self.process.stderr.read().decode()
