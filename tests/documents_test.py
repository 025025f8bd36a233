#!/usr/bin/python3
"""What the documents say is true: sessions, examples, tables, links and names of files.

    tests/documents_test.py [--server build/release/bin/sluice-server] [--reference redis-server]

Prints a line for each test, what was wrong, and "N passed, N failed", with ", N skipped" where some
were.
"""

import argparse
import os
import pathlib
import pty
import re
import select
import shlex
import subprocess
import sys
import tempfile
import time
import tty

import structure_test
import style_test
from harness import Skipped, summary
from harness.servers import DEFAULT_SLUICE, Server

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCUMENTS = ["README.md", "ARCHITECTURE.md", "QUEUE.md", "REDIS.md", "COMMANDS.md", "HTTP.md",
             "clients/python/README.md", "clients/typescript/README.md", "bench/results/README.md",
             *(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md"))]
LONGEST_START_S = 20


class Wrong(Exception):
    """A document says something that is not so."""


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def require(holds, what):
    if not holds:
        raise Wrong(what)


# --- README.md: the session ---


def block_after(document, marker):
    """The fenced block behind `<!-- marker -->`."""
    found = re.search(rf"<!-- {re.escape(marker)} -->\n```\w*\n(.*?)```", document, re.DOTALL)
    require(found, f"no block '{marker}'")
    return found.group(1)


def read_to_the_end(terminal, within_s):
    """What is printed until everybody has closed the terminal."""
    printed = b""
    deadline = time.monotonic() + within_s
    while True:
        left_s = max(deadline - time.monotonic(), 0)
        require(select.select([terminal], [], [], left_s)[0], f"no end after {printed!r}")
        try:
            data = os.read(terminal, 1 << 16)
        except OSError:  # so Linux says that nobody has it open any more
            return printed
        if not data:
            return printed
        printed += data


class Shell:
    """Runs pasted lines on a terminal, like a user who pastes them. `redis-cli` asks the given
    server, and sees for itself where it prints to."""

    def __init__(self, directory, port):
        self.environment = dict(os.environ, PATH=f"{directory}:{os.environ['PATH']}")
        wrapper = pathlib.Path(directory, "redis-cli")
        wrapper.write_text(f'#!/bin/sh\nexec /usr/bin/redis-cli -p {port} "$@"\n',
                           encoding="utf-8")
        wrapper.chmod(0o755)

    def run(self, lines):
        ours, theirs = pty.openpty()
        tty.setraw(theirs)  # else it would make \r\n of each \n
        with tempfile.TemporaryFile() as errors, subprocess.Popen(
                ["sh", "-e", "-c", lines], env=self.environment, stdin=subprocess.DEVNULL,
                stdout=theirs, stderr=errors) as shell:
            os.close(theirs)
            try:
                printed = read_to_the_end(ours, 60)
            except Wrong:
                shell.kill()
                raise
            finally:
                os.close(ours)
            code = shell.wait(60)
            errors.seek(0)
            require(code == 0, f"exit {code}: {errors.read().decode()}")
        return printed.decode()


def expect_output(shell, document, part):
    printed = shell.run(block_after(document, f"session: {part} commands"))
    expected = block_after(document, f"session: {part} output")
    require(printed == expected, f"the {part} commands print\n{printed}not\n{expected}")


def the_session_prints_what_the_readme_shows(options):
    document = read("README.md")
    with Server(options.server) as server, tempfile.TemporaryDirectory() as directory:
        shell = Shell(directory, server.port)
        expect_output(shell, document, "native")
        expect_output(shell, document, "first")
        shell.run(block_after(document, "session: kill"))
        deadline = time.monotonic() + LONGEST_START_S
        while server.alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        require(not server.alive(), "the server lives on after the line that kills it")
        server.kill()
        server.start()
        expect_output(Shell(directory, server.port), document, "second")


def an_existing_redis_conf_starts(options):
    """The file that Debian installs, but for the paths that it names."""
    conf = pathlib.Path("/etc/redis/redis.conf")
    if not os.access(conf, os.R_OK):
        raise Skipped("NOT RUN: no /etc/redis/redis.conf that this user may read")
    with tempfile.TemporaryDirectory() as directory:
        copy = pathlib.Path(directory, "redis.conf")
        lines = conf.read_text(encoding="utf-8").splitlines()
        copy.write_text("\n".join(line for line in lines if not re.match(
            r"\s*(port|bind|dir|logfile|pidfile|unixsocket)\s", line)) + "\n", encoding="utf-8")

        class WithFile(Server):
            def _command_line(self):
                command = super()._command_line()
                return command[:1] + [str(copy)] + command[1:]

        with WithFile(options.server, {"http-port": "0"}) as server:
            require(server.answers_ping(), "it does not answer")
            log = pathlib.Path(server.log_path).read_text(encoding="utf-8")
            require(" warning " in log, "no warning about what means nothing here:\n" + log)
    return None


# --- QUEUE.md: its examples ---


def examples(document):
    """The blocks `console`, each a list of commands with the lines of their replies."""
    for block in re.findall(r"^```console\n(.*?)^```", document, re.DOTALL | re.MULTILINE):
        yield [(command, reply.splitlines()) for command, reply in
               re.findall(r"^> (.*)\n((?:(?!> ).*\n)*)", block, re.MULTILINE)]


def is_reply(shown, printed):
    """`…` stands for any text in a line, or as a line of its own for any lines. Blanks at the ends
    of lines are not shown."""
    pattern = "".join("(?:.*\n)*" if line == "…" else
                      re.escape(line).replace(re.escape("…"), ".+") + "\n" for line in shown)
    return re.fullmatch(pattern, re.sub(r" +$", "", printed, flags=re.MULTILINE)) is not None


def the_examples_print_what_the_queue_document_shows(options):
    found = list(examples(read("QUEUE.md")))
    require(len(found) >= 15, f"{len(found)} examples")
    for example in found:
        with Server(options.server, {"appendonly": "no", "save": ""}) as server:
            for command, shown in example:
                words = ["redis-cli", "-3", "--no-raw", "-p", str(server.port)]
                printed = subprocess.run(words + shlex.split(command), capture_output=True,
                                         text=True, timeout=60, check=True).stdout
                if shown:
                    require(is_reply(shown, printed), f"{command} prints\n{printed}")
                else:
                    require("(error)" not in printed, f"{command} prints\n{printed}")


# --- COMMANDS.md, and tables about commands ---


def the_tables_of_commands_are_the_servers(options):
    program = str(ROOT / "tools" / "command_tables")
    printed = subprocess.run([sys.executable, program, "--server", str(options.server)],
                             capture_output=True, text=True, timeout=60, check=False)
    require(printed.returncode == 0, printed.stderr)
    document = read("COMMANDS.md")
    missing = set(printed.stdout.splitlines()) - set(document.splitlines())
    surplus = set(document.splitlines()) - set(printed.stdout.splitlines())
    require(printed.stdout == document, "run tools/command_tables --write. Not in COMMANDS.md:\n" +
            "\n".join(sorted(missing)) + "\nOnly in COMMANDS.md:\n" + "\n".join(sorted(surplus)))


def command_names(server):
    """Full names of all commands and subcommands."""
    names = set()

    def add(entry):
        names.add(entry[0].decode().upper())
        for subcommand in entry[9]:
            add(subcommand)

    with server.connect() as connection:
        for entry in connection.call("COMMAND").value:
            add(entry)
    return names


def every_command_of_redis_is_known(options):
    with Server(options.reference, kind="redis") as reference:
        theirs = command_names(reference)
    with Server(options.server, {"appendonly": "no", "save": ""}) as server:
        ours = command_names(server)
    require(not theirs - ours, f"unknown commands of Redis: {sorted(theirs - ours)}")


def rows_between(document, marker):
    """The cells of a table between `<!-- marker -->` and `<!-- end -->`, without its heading."""
    lines = document.partition(f"<!-- {marker} -->\n")[2].partition("<!-- end -->")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def the_fields_of_queues_are_listed(options):
    document = read("QUEUE.md")
    with Server(options.server, {"appendonly": "no", "save": ""}) as server:
        with server.connect() as connection:
            def names_and_values(*words):
                found = [item.decode() if isinstance(item, bytes) else item
                         for item in connection.call(*words).value]
                return found[::2], found[1::2]

            defaults = list(zip(*names_and_values("Q.CONFIG", "q", "GET")))
            of_groups = {}
            for level in "GROUP", "KEY":
                of_groups[level[0]] = set()
                for field, value in defaults:
                    reply = connection.call("Q.CONFIG", "q", level, "x", "SET", field, value)
                    if not reply.is_error:
                        of_groups[level[0]].add(field)
            statistics = names_and_values("Q.STATS", "none")[0]
    rows = rows_between(document, "fields of Q.CONFIG")
    documented = [(row[0].strip("`"), row[1].strip("`")) for row in rows]
    require(documented == defaults, f"Q.CONFIG: {documented}\nnot\n{defaults}")
    for level, fields in of_groups.items():
        listed = {row[0].strip("`") for row in rows if level in row[3].split()}
        require(listed == fields, f"Q.CONFIG, {level}: {listed} not {fields}")
    listed = [name for row in rows_between(document, "fields of Q.STATS")
              for name in re.findall(r"`(\w+)`", row[0])]
    require(listed == statistics, f"Q.STATS: {listed} not {statistics}")


def the_codes_of_http_are_listed(_options):
    table = read("HTTP.md").partition("| status | codes |\n")[2].partition("\n\n")[0]
    codes = {code for file in (ROOT / "net").rglob("*.cc")
             for code in re.findall(r'\b[45]\d\d,\s*"([A-Z]+)"', file.read_text(encoding="utf-8"))}
    require(len(codes) > 30, f"found only {codes}")
    missing = sorted(code for code in codes if f"`{code}`" not in table)
    require(not missing, f"HTTP.md lists no {missing}")


# --- all documents ---


def headings(document):
    """The anchors that links may name, as they are made of headings."""
    titles = re.findall(r"^#+ (.*)$", document, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def links():
    """(document, target, linked file) of each link within the repository."""
    for name in DOCUMENTS:
        for target in re.findall(r"\]\(([^)\s]+)\)", read(name)):
            if "://" not in target:
                path = target.partition("#")[0]
                yield name, target, (ROOT / name).parent / path if path else ROOT / name


def links_lead_somewhere(_options):
    for name, target, linked in links():
        require(linked.exists(), f"{name}: a link to {target}")
        anchor = target.partition("#")[2]
        if anchor:
            require(anchor in headings(read(linked)), f"{name}: a link to {target}")


def every_page_is_linked(_options):
    linked = {file.resolve() for name, _, file in links() if (ROOT / name) != file}
    for name in DOCUMENTS:
        require(name == "README.md" or (ROOT / name).resolve() in linked, f"no link to {name}")


FOLDERS = "engine|net|storage|clients|page|tools|tests|bench|conf|cmake|packaging|docs"


def named_files_exist(_options):
    """A path in code quotes is a file or folder of the repository; `x/y.*` and `*_rows.cc` too."""
    for name in DOCUMENTS:
        for quoted in re.findall(r"`([^`\n]+)`", read(name)):
            for path in re.findall(rf"(?<![\w./-])(?:{FOLDERS})/[\w./*-]*", quoted):
                require(list(ROOT.glob(path.rstrip("/."))), f"{name}: `{path}` does not exist")


def every_folder_is_in_the_guide(_options):
    """Those that stand on floors, from the ground up."""
    guide = read("README.md").partition("## The folders")[2]
    listed = re.findall(r"^([\w/]+)/ +\w", guide, re.MULTILINE)
    tops = {path.split("/")[0] for path in style_test.files() if "/" in path}
    for top in sorted(tops):
        require(top.startswith(".") or any(folder.split("/")[0] == top for folder in listed),
                f"no line about {top}/")
    floors = [folder for folder in listed if folder in structure_test.FLOORS]
    require(floors == structure_test.FLOORS, f"the folders' order: {floors}")


# By a file's suffix: what precedes the name of a function, that of a method, and what follows it.
DEFINITIONS = {
    ".py": (r"(?:async )?def ", r"    (?:async )?def ", r"\("),
    ".ts": (r"(?:export )?(?:async )?function ", r"  (?:private )?(?:async )?", r"[(<]"),
    "": ("", None, r"\(\) \{"),  # sh
}


def is_defined(path, symbol):
    """Whether the file defines this function, `Class::method` or `Class.method`."""
    text = read(path)
    suffix = pathlib.Path(path).suffix
    if suffix not in DEFINITIONS:
        # A definition begins at the margin, and is not ended by its declaration's semicolon.
        return re.search(rf"^\w[^;\n]*(?<![\w:]){re.escape(symbol)}\([^;]*?\{{", text, re.MULTILINE)
    function, method, end = DEFINITIONS[suffix]
    owner, _, name = symbol.rpartition(".")
    if owner:
        body = re.search(rf"^(?:export )?class {owner}\b.*?(?:^(?=[\w@}}])|\Z)", text,
                         re.MULTILINE | re.DOTALL)
        text = body.group() if body else ""
    begin = method if owner else function
    return re.search(rf"^{begin}{re.escape(name)}{end}", text, re.MULTILINE)


def behaviours_are_where_the_table_says(_options):
    """A row names a file, and functions that are defined in it; the later ones are of the first
    one's class unless it names its own, or of none."""
    part = read("ARCHITECTURE.md").partition("\n## What happens where\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (?!what happens).*", part, re.MULTILINE)
    require(len(rows) >= 100, f"{len(rows)} rows")
    for row in rows:
        parts = re.fullmatch(r"\| .* \| `([^`]+)` \| (`[^`]+`(?:, `[^`]+`)*) \|", row)
        require(parts, f"not a row: {row}")
        path = parts.group(1)
        symbols = re.findall("`([^`]+)`", parts.group(2))
        owner = re.match(r"(?:\w+(?:::|\.))*", symbols[0]).group()
        for symbol in symbols:
            require(is_defined(path, symbol) or is_defined(path, owner + symbol),
                    f"{symbol} is not defined in {path}")


TESTS = [the_session_prints_what_the_readme_shows, an_existing_redis_conf_starts,
         the_examples_print_what_the_queue_document_shows,
         the_tables_of_commands_are_the_servers, every_command_of_redis_is_known,
         the_fields_of_queues_are_listed, the_codes_of_http_are_listed,
         links_lead_somewhere, every_page_is_linked, named_files_exist,
         every_folder_is_in_the_guide, behaviours_are_where_the_table_says]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default=str(DEFAULT_SLUICE))
    parser.add_argument("--reference", default="redis-server")
    options = parser.parse_args()
    options.server = os.path.abspath(options.server)
    passed = failed = skipped = 0
    for test in TESTS:
        name = test.__name__.replace("_", " ")
        try:
            test(options)
            passed += 1
            print(f"ok     {name}", flush=True)
        except Skipped as reason:
            skipped += 1
            print(f"skip   {name} ({reason})", flush=True)
        except Exception as error:  # noqa: BLE001
            # One failing test must not hide the others.
            failed += 1
            print(f"FAILED {name}\n       {error}", flush=True)
    print(summary(passed, failed, skipped))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
