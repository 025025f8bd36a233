#!/usr/bin/python3
"""Shows that a server answers the same bytes as redis-server 7.0.15. See README.md beside this.

    python3 tests/transcripts/run.py --server build/release/bin/sluice-server [family or file ...]
"""

import argparse
import pathlib
import random
import sys
import time

from harness import summary
from harness.servers import DEFAULT_SLUICE, FIRST_FAILURE, Server, ServerError
from harness.transcripts.session import Pair
from harness.transcripts.transcript import TranscriptError, parse_file

HERE = pathlib.Path(__file__).resolve().parent
MAX_SHOWN_PER_FILE = 8


class Servers:
    """The two servers that the transcripts share, and short-lived pairs with directives."""

    def __init__(self, options):
        self.options = options
        self.reference = self._make(options.reference, {}).start()
        self.tested = self._make(options.server, {}).start()
        # Client ids may differ. That they do shows the transcripts that depend on them.
        for _ in range(3):
            self.tested.connect().close()

    def _make(self, program, directives):
        server = Server(program)
        durable = self.options.durable and server.kind == "sluice"
        base = {"enable-debug-command": "yes"}
        base.update({} if durable else {"save": "", "appendonly": "no"})
        server.directives = {**base, **directives}
        return server

    def pair_with(self, directives):
        return [self._make(program, directives)
                for program in (self.options.reference, self.options.server)]

    def revive(self):
        """Starts again what died or hangs. Returns a text that says so, or an empty one."""
        notes = []
        for server in (self.reference, self.tested):
            if responds(server):
                continue
            if server.alive():
                notes.append(f"{server.program} does not answer any more")
                server.kill()
            else:
                code = server.kill()
                notes.append(f"{server.program} died with code {code}:\n{server.log_tail()}")
            server.start()
        return "\n".join(notes)

    def close(self):
        self.reference.close()
        self.tested.close()


def responds(server):
    """False if it has died, or does not answer though asked three times: a busy machine's server
    may be late, and a dying one's connections end before it does."""
    for _ in range(3):
        if not server.alive():
            return False
        if server.answers_ping():
            return True
        time.sleep(0.1)
    return False


def parse_directives(steps):
    """`@server name value` lines, at the top of a file, ask for servers of its own."""
    directives = {}
    for step in steps:
        if step.kind == "server":
            name, _, value = step.value.partition(" ")
            directives.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in directives.items()}


def run_file(servers, path, protocol):
    """Runs one file. Returns (failure texts, replies compared), or None if it does not apply."""
    steps = parse_file(path)
    name = str(path.relative_to(HERE.parent.parent) if path.is_relative_to(HERE) else path)
    if any(step.kind == "only" and step.value != protocol for step in steps):
        return None
    directives = parse_directives(steps)
    own = servers.pair_with(directives) if any(s.kind in ("server", "fresh") for s in steps) else []
    steps = [step for step in steps if step.kind not in ("server", "only", "fresh")]
    try:
        reference, tested = ([server.start() for server in own] or
                             [servers.reference, servers.tested])
        pair = Pair(reference, tested, protocol, name, servers.options.timeout)
        try:
            texts = [failure.text() for failure in pair.run(steps)]
        finally:
            pair.close()
        died = "" if own else servers.revive()
        return texts + ([died] if died else []), pair.compared
    except (ServerError, OSError) as error:
        notes = [f"{name} (RESP{protocol}): {type(error).__name__}: {error}", servers.revive()]
        return [note for note in notes if note], 0
    finally:
        for server in own:
            server.close()


def choose_files(names):
    """Files of the named families, or named files; all without names."""
    everything = sorted(HERE.glob("*/*.txt"))
    if not names:
        return everything
    chosen = []
    for name in names:
        path = pathlib.Path(name)
        if path.suffix == ".txt":
            chosen.append(path.resolve())
        else:
            chosen += [file for file in everything if file.parent.name == path.name]
    return chosen


def run_files(servers, options):
    passed = failed = compared = 0
    for path in choose_files(options.names):
        for protocol in options.protocols:
            began = time.monotonic()
            result = run_file(servers, path, protocol)
            if result is None:
                continue
            texts, count = result
            compared += count
            passed += not texts
            failed += bool(texts)
            for text in texts[:options.show]:
                print(text)
            if len(texts) > options.show:
                print(f"  … and {len(texts) - options.show} more in this file")
            if options.verbose or texts:
                print(f"{'FAIL' if texts else 'ok  '} {path.parent.name}/{path.name} RESP{protocol}"
                      f" {count} replies, {len(texts)} differ, {time.monotonic() - began:.2f} s")
            sys.stdout.flush()
            if failed and FIRST_FAILURE:
                return passed, failed
    print(f"transcripts: {compared} replies compared")
    return passed, failed


def run_generated(servers, options):
    import generate
    families = [name for name in options.names if name in generate.FAMILIES]
    if options.names and not families:
        return 0, 0
    return generate.run(servers, families or list(generate.FAMILIES), options)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="*", help="families or .txt files; all without names")
    parser.add_argument("--server", default=str(DEFAULT_SLUICE), help="the server under test")
    parser.add_argument("--reference", default="redis-server")
    parser.add_argument("--durable", action="store_true",
                        help="leave persistence of the tested server at its default")
    parser.add_argument("--protocol", type=int, choices=(2, 3), help="only this one")
    parser.add_argument("--seed", type=int, help="of the generated commands; random without")
    parser.add_argument("--commands", type=int, default=1500,
                        help="generated commands a family and protocol; 0 for none")
    parser.add_argument("--no-files", action="store_true", help="only the generated commands")
    parser.add_argument("--timeout", type=float, default=5.0, help="seconds to wait for a reply")
    parser.add_argument("--show", type=int, default=MAX_SHOWN_PER_FILE, help="failures a file")
    parser.add_argument("--save", metavar="DIR", help="save failing generated cases there")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    options.protocols = [options.protocol] if options.protocol else [2, 3]
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1 << 31)
    return options


def main():
    options = parse_options()
    try:
        servers = Servers(options)
    except (ServerError, OSError) as error:
        print(f"cannot start: {error}")
        return 2
    try:
        passed = failed = 0
        if not options.no_files:
            passed, failed = run_files(servers, options)
        if options.commands > 0:
            counts = run_generated(servers, options)
            passed, failed = passed + counts[0], failed + counts[1]
    except TranscriptError as error:
        print(error)
        return 2
    finally:
        servers.close()
    print(summary(passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
