"""Shared by the tests of the program sluice: running it, and servers for it."""

import json
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "operations"))

from harness import require, require_equal, run, scratch, wait_until  # noqa: E402,F401
from servers import free_port  # noqa: E402,F401

ROOT = pathlib.Path(__file__).resolve().parents[2]
DONE, SERVER_ERROR, USAGE_ERROR, NO_CONNECTION = range(4)
TIMEOUT_S = 30


def environment(**more):
    """Without passwords from the caller's environment, and with a known time zone."""
    kept = {name: value for name, value in os.environ.items()
            if name not in ("SLUICE_AUTH", "REDISCLI_AUTH", "NO_COLOR")}
    return {**kept, "TZ": "UTC", **more}


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
