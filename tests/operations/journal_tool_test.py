#!/usr/bin/python3
"""sluice-journal: its output for an intact directory, for one in use, and for damaged ones."""

import glob
import os
import re
import shutil
import subprocess
import sys

import harness
from harness import require, require_equal, scratch

KEYS = 400
# A checkpoint also says what queue time was.
RECORDS = KEYS + 1


class Tool:
    def __init__(self, options, directory):
        self.program = os.path.join(os.path.dirname(options.program), "sluice-journal")
        self.directory = directory

    def run(self, *arguments):
        """(exit code, what it printed)"""
        done = subprocess.run([self.program, *arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False, timeout=60)
        return done.returncode, done.stdout.decode(errors="replace")

    def ask(self, command, *arguments, code=0, says=()):
        """What it printed of the directory; it ended with `code`, and says all that."""
        got, output = self.run(command, *arguments, self.directory)
        shown = f"{command} {' '.join(arguments)}: {output[-2000:]}"
        require_equal(got, code, f"exit code of {shown}")
        for text in says:
            require(text in output, f"{text!r} is not in {shown}")
        return output


def units_of(output):
    return [int(lsn) for lsn in re.findall(r"^  lsn (\d+), ", output, re.MULTILINE)]


def write(server, first, count):
    with server.connect() as connection:
        for number in range(first, first + count):
            require_equal(connection.call("SET", f"key:{number}", "x" * 200).raw, b"+OK\r\n")


def files(directory, ending):
    """Of the log, the largest last."""
    found = glob.glob(os.path.join(directory, "log", "*" + ending))
    return sorted(found, key=os.path.getsize)


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 0x10]))


def test_a_whole_directory(options):
    """verify, stat and print of an intact directory, also while a server uses it."""
    with options.server({"appendonly": "yes"}) as server:
        write(server, 0, KEYS)
        with server.connect() as connection:
            require_equal(connection.call("SAVE").raw, b"+OK\r\n")
            connection.call("HSET", "hash", "field", "value")
            connection.call("ZADD", "sorted", "1", "member")
        tool = Tool(options, server.directory)
        tool.ask("verify", says=("intact: a server would start with",))
        server.stop()
        whole = tool.ask("verify", says=(
            "high-water mark: lsn", f"checkpoint 1: lsn {KEYS} to {KEYS}, {RECORDS} records",
            "log: 2 units with 2 records after the checkpoint", f"last lsn {KEYS + 2}",
            f"intact: a server would start with {RECORDS + 2} records"))
        require("record type" not in whole, "verify counts no kinds")
        with open("/dev/full", "wb") as full:
            done = subprocess.run([tool.program, "print", server.directory], stdout=full,
                                  stderr=subprocess.PIPE, check=False, timeout=60)
        require_equal(done.returncode, 1, "exit code of an output that is not complete")
        require(b"No space left" in done.stderr, repr(done.stderr))
        tool.ask("stat", says=("record type", f": {KEYS}, ", "hash", "sorted", "intact:"))
        printed = tool.ask("print", says=("hash", "field", "sorted", "member"))
        require(units_of(printed)[-2:] == [KEYS + 1, KEYS + 2], printed[-500:])
        last = str(KEYS + 2)
        require_equal(units_of(tool.ask("print", "--from", last)), [KEYS + 2])
        bare = tool.ask("print", "--from", last, "--no-records")
        require("member" not in bare, bare)
        require_equal(units_of(tool.ask("print", "--from", str(KEYS + 1), "--to", str(KEYS + 1))),
                      [KEYS + 1])
        pieces = tool.ask("print", "--checkpoint", "--from", last, says=("piece 0: ",))
        require_equal(len(set(re.findall(r"key:\d+", pieces))), KEYS, "keys of the checkpoint")
        # It has changed nothing.
        server.start()
        with server.connect() as connection:
            require_equal(connection.call("DBSIZE").value, KEYS + 2)


def test_wrong_usage(options):
    """Wrong usage ends with 2, and a directory without data with 1, naming it."""
    tool = Tool(options, "")
    for arguments in ([], ["verify"], ["look", "somewhere"], ["print", "--nothing", "x"],
                      ["stat", "one", "two"], ["lead"], ["lead", "--group", "a/b", "x"],
                      ["print", "--from", "x", "y"], ["print", "--to", "-1", "y"],
                      ["verify", "--from", "3", "y"], ["print", "--group", "1", "y"]):
        code, output = tool.run(*arguments)
        require_equal(code, 2, f"exit code of {arguments}")
        require("usage: sluice-journal" in output, output)
    with scratch() as directory:
        missing = os.path.join(directory, "missing")
        code, output = tool.run("verify", missing)
        require_equal(code, 1, "exit code without a directory")
        require(missing in output and not os.path.exists(missing), output)


def test_lead(options):
    """lead marks a directory with data, which no server uses, and says what it holds."""
    with options.server({"appendonly": "yes"}) as server:
        write(server, 0, KEYS)
        tool = Tool(options, server.directory)
        tool.ask("lead", code=1, says=("another server is using",))
        server.stop()
        require("begins group" not in tool.ask("verify"), "a mark that nobody made")
        load_anew = os.path.join(server.directory, "load-anew")
        with open(load_anew, "w", encoding="utf-8"):
            pass
        tool.ask("lead", says=(f"{server.directory} begins group 1",
                               f"up to lsn {KEYS}, written 2"))
        require(not os.path.exists(load_anew), "a node that leads loads anew")
        first = tool.ask("verify", says=(f"begins group 1 with everything up to lsn {KEYS}",
                                         "intact:"))
        tool.ask("lead", "--group", "other", says=("begins group other",))
        second = tool.ask("print", "--no-records", says=("begins group other",))
        ids = [re.search(r"cluster id ([0-9a-f]{40})\n", text)[1] for text in (first, second)]
        require(ids[0] != ids[1], f"each group has an id of its own: {ids}")
        # A crash has cut off the install of a copy, as the old data were out of the way.
        incoming = os.path.join(server.directory, "incoming-copy")
        os.mkdir(incoming)
        for part in ("FORMAT", "high-water-mark", "log"):
            os.rename(os.path.join(server.directory, part), os.path.join(incoming, part))
        with open(os.path.join(incoming, "install"), "w", encoding="utf-8"):
            pass
        tool.ask("lead", says=("begins group 1", f"up to lsn {KEYS}, written 2"))
        require(not os.path.exists(incoming), "the copy is not in place")
        server.start()
        with server.connect() as connection:
            require_equal(connection.call("DBSIZE").value, KEYS)
    with scratch() as directory:
        tool = Tool(options, os.path.join(directory, "missing"))
        tool.ask("lead", code=1, says=("holds no data",))
        require(not os.path.exists(tool.directory), "lead makes no directory")


def with_copy(directory, check):
    with scratch() as copies:
        copy = os.path.join(copies, "data")
        shutil.copytree(directory, copy)
        check(copy)


def test_damage_of_what_was_synced(options):
    """A flipped bit in what was acknowledged: exit 1, the file, and the units before it."""
    with options.server({"appendonly": "yes", "appendfsync": "always"}) as server:
        write(server, 0, KEYS)
        server.kill()

        def log_damaged(copy):
            path = files(copy, ".log")[-1]
            flip(path, os.path.getsize(path) // 2)
            tool = Tool(options, copy)
            verified = tool.ask("verify", code=1, says=("DAMAGED", os.path.basename(path)))
            require(f"lsn {KEYS}" in verified, f"the mark is not named: {verified}")
            printed = tool.ask("print", code=1,
                               says=("DAMAGED after the units above", os.path.basename(path)))
            units = units_of(printed)
            require(KEYS // 4 < len(units) < KEYS * 3 // 4, f"{len(units)} units before the half")
            require_equal(units, list(range(1, len(units) + 1)), "units before the damage")
        with_copy(server.directory, log_damaged)

        def mark_ahead(copy):
            path = files(copy, ".log")[-1]
            os.truncate(path, os.path.getsize(path) // 2)
            Tool(options, copy).ask("verify", code=1, says=("DAMAGED", f"lsn {KEYS}"))
        with_copy(server.directory, mark_ahead)

        # The start puts the log into a table.
        server.start()
        server.stop()

        def table_damaged(copy):
            path = files(copy, ".sst")[-1]
            flip(path, os.path.getsize(path) // 3)
            tool = Tool(options, copy)
            tool.ask("verify", code=1, says=("DAMAGED", os.path.basename(path)))
            tool.ask("stat", code=1, says=("DAMAGED",))
            tool.ask("print", code=1, says=("DAMAGED",))
        with_copy(server.directory, table_damaged)


def test_damage_of_a_checkpoint(options):
    """A flipped bit in a checkpoint: exit 1, and the place."""
    with options.server({"appendonly": "yes"}) as server:
        write(server, 0, KEYS)
        with server.connect() as connection:
            connection.call("SAVE")
        server.stop()

        def damaged(copy):
            path = files(copy, ".sst")[-1]
            flip(path, os.path.getsize(path) // 2)
            tool = Tool(options, copy)
            tool.ask("verify", code=1, says=("DAMAGED", os.path.basename(path)))
            tool.ask("print", "--checkpoint", code=1, says=("DAMAGED",))
        with_copy(server.directory, damaged)


def test_damage_of_what_was_not_synced(options):
    """A flipped bit above the mark is harmless: exit 0, and it says with what a server starts."""
    with options.server({"appendonly": "yes", "appendfsync": "no"}) as server:
        write(server, 0, KEYS)
        server.kill()

        def damaged(copy):
            path = files(copy, ".log")[-1]
            flip(path, os.path.getsize(path) // 2)
            tool = Tool(options, copy)
            verified = tool.ask("verify", says=(
                "the unsynced tail is damaged; a server would start with the units above",
                os.path.basename(path)))
            kept = int(re.search(r"would start with (\d+) records", verified).group(1))
            require(KEYS // 4 < kept < KEYS * 3 // 4, f"{kept} records before the half")
            # print does not know about the mark.
            tool.ask("print", code=1, says=("DAMAGED after the units above",))
            copied = options.server({"appendonly": "yes", "appendfsync": "no"}, directory=copy)
            with copied:
                with copied.connect() as connection:
                    require_equal(connection.call("DBSIZE").value, kept, "keys of a start")
        with_copy(server.directory, damaged)


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
