#!/usr/bin/python3
"""Completion of sluice's words: bash by its function, bash, zsh and fish as they run."""

import os
import pathlib
import shutil
import subprocess
import sys

from commands_test import COMMANDS
from harness import Skipped, require, require_equal, run, scratch
from harness.cli import USAGE_ERROR, Sluice, Terminal, environment, serve
from harness.holds import measured
from harness.servers import ROOT

# What is typed, and what it becomes; {} is a folder with a file in it.
COMPLETED = [("si", "simulate"), ("-p 7000 si", "-p 7000 simulate"),
             ("jobs q --st", "jobs q --state"),
             ("jobs q --state de", "jobs q --state delayed"),
             ("--tls --key my.key add jobs --bo", "--tls --key my.key add jobs --boost"),
             ("pause jobs in", "pause jobs in"), ("completion f", "completion fish"),
             ("status --js", "status --json"), ("--cacert {}/auth", "--cacert {}/authority.crt"),
             ("events q --key {}/auth", "events q --key {}/authority.crt"),
             ("apply {}/auth", "apply {}/authority.crt"),
             ("apply a.json --ye", "apply a.json --yes"),
             ("backup --http h:1 {}/auth", "backup --http h:1 {}/authority.crt"),
             ("jobs team:a --tag n=v --st", "jobs team:a --tag n=v --state")]
# The same with names that the server knows.
NAMED = [("status team:m", "status team:mail"), ("job team:mail rep", "job team:mail report-1"),
         ('job "a b" on', "job a b one"), ("job team:mail part:", "job team:mail part:2")]
# At a prompt: a value is typed behind what was completed.
GOES_ON = ("config q max_ac\t5", "config q max_active=5")


def path_of(sluice):
    """The scripts find the program by its name."""
    return os.path.dirname(sluice.path) + ":" + os.environ["PATH"]


def bash_completion(sluice, *before):
    """The function that completes words behind these by the script of bash."""
    script = sluice.must("completion", "bash")

    def complete_once(*words):
        lines = [script, "COMP_WORDS=(sluice " + " ".join(f"'{word}'" for word in words) + ")",
                 f"COMP_LINE='sluice {' '.join(words)}'", "COMP_POINT=${#COMP_LINE}",
                 f"COMP_CWORD={len(words)}", "_sluice", 'printf "%s\\n" "${COMPREPLY[@]}"']
        done = subprocess.run(["bash", "--norc", "-uc", "\n".join(lines)], capture_output=True,
                              check=False, timeout=10, env=environment(PATH=path_of(sluice)))
        require_equal((done.returncode, done.stderr), (0, b""), f"bash, {words}")
        return done.stdout.decode().split()

    # What a server does not answer within a second is not offered.
    return lambda *words: measured(lambda: complete_once(*before, *words), bool, tries=5)[-1]


def test_bash_by_its_function(options):
    """The completion script of bash completes commands, options and values."""
    sluice = Sluice(options, None)
    complete = bash_completion(sluice)
    require(set(COMMANDS) <= set(complete("")), "commands")
    require_equal(complete("si"), ["simulate"], "a command")
    require_equal(complete("-p", "7000", "si"), ["simulate"], "behind an option with a value")
    require_equal(complete("jobs", "q", "--st"), ["--state"], "an option")
    require_equal(complete("jobs", "q", "--state", "de"), ["delayed"], "a value")
    require_equal(complete("add", "q", "--group", ""), [], "a value that may be anything")
    require("--group" in complete("add", "q", "--boost", "-5", ""), "behind a value with a dash")
    require_equal(complete("completion", "f"), ["fish"], "an operand")
    require("out" in complete("pause", "q", ""), "an operand of choice")
    require_equal(complete("status", "--js"), ["--json"], "an option of every command")
    readme = [str(ROOT / "README.md")]
    require_equal(complete("--cacert", str(ROOT / "READ")), readme, "a file")
    require_equal(complete("status", "--key", str(ROOT / "READ")), readme, "a file of the client")
    require_equal(complete("jobs", "q", "--key", ""), [], "a key of jobs")
    sluice.fails(USAGE_ERROR, "bash, zsh and fish", "completion", "tcsh")


def test_what_the_server_knows(options):
    """Queues, ids, bands and fields are completed, by the server that the words before name."""
    server, sluice = serve(options)
    with server.connect() as connection:
        connection.call("Q.ADD", "exec", "report-1", "")
        connection.call("Q.ADD", "exec", "report 2", "")
        connection.call("Q.ADD", "mail", "m", "")
        connection.call("Q.ADD", "ex\u202e", "m", "")
        connection.call("Q.ADD", "--failing", "m", "")
        connection.call("Q.CONFIG", "mail", "SET", "bands", "now,later", "default_pri", "now")
    complete = bash_completion(sluice, "-p", str(server.port))
    require(set(complete("jobs", "")) >= {"exec", "mail"}, "queues")
    require_equal(complete("jobs", "ex"), ["exec"], "a queue")
    require_equal(complete("jobs", "--fai"), ["--failed"], "a queue that would be an option")
    require_equal(complete("job", "exec", "rep"), ["report-1"], "an id")
    require_equal(complete("cancel", "exec", "x", "rep"), ["report-1"], "a further id")
    require_equal(complete("add", "mail", "x", "--pri", "la"), ["later"], "a band")
    require_equal(complete("move", "mail", "m", "--pri", "no"), ["now"], "a band")
    require_equal(complete("config", "exec", "max_a"), ["max_active="], "a field")
    require_equal(complete("config", "exec", "fair=on", "rese"), ["reserve="], "a further field")
    server.stop()
    require_equal(complete("jobs", "ex"), [], "no server")


def serve_names(options):
    """The program for a server that knows NAMED."""
    server, sluice = serve(options)
    with server.connect() as connection:
        for queue, job in ("team:mail", "report-1"), ("team:mail", "part:2"), ("a b", "one"):
            connection.call("Q.ADD", queue, job, "")
    return sluice


def in_folder(sluice, shell, folder):
    """(path of the script, [(typed, expected)]) in a folder where a file waits to be completed."""
    script = pathlib.Path(folder, "script")
    script.write_text(sluice.must("completion", shell), encoding="utf-8")
    pathlib.Path(folder, "authority.crt").touch()
    port = f"-p {sluice.port} "
    return script, [*((typed.format(folder), became.format(folder)) for typed, became in COMPLETED),
                    *((port + typed, port + became) for typed, became in NAMED)]


def check_on_terminal(sluice, shell, words, prepare):
    """Types into a shell whose sluice prints what it is given."""
    with scratch() as folder:
        script, cases = in_folder(sluice, shell, folder)
        terminal = Terminal(words, columns=200, HOME=folder, HISTFILE="/dev/null", TERM="xterm",
                            INPUTRC="/dev/null", PATH=path_of(sluice))
        lines = [*prepare, f"source {script}", "sluice() { printf '<%s>\\n' \"$*\"; }",
                 "echo ready-$((1 + 1))"]
        os.write(terminal.mine, "".join(line + "\n" for line in lines).encode())
        terminal.read_until("ready-2")
        for typed, became in [*cases, GOES_ON]:
            def complete(line=f"sluice {typed}\t\n"):
                terminal.text = ""
                os.write(terminal.mine, line.encode())
                terminal.read_until(r"<[^>\n]+>\r\n")
                return terminal.text

            told = measured(complete, lambda text, line=became: f"<{line}>" in text)
            require(f"<{became}>" in told[-1], f"{shell}, {typed}: {told}")
        os.write(terminal.mine, b"exit\n")
        terminal.end()


def test_bash(options):
    """bash completes commands, options, values and files at its prompt."""
    check_on_terminal(serve_names(options), "bash", ["bash", "--norc", "--noprofile", "-i"], [])


def test_zsh(options):
    """zsh completes the same."""
    if shutil.which("zsh") is None:
        raise Skipped("no zsh")
    check_on_terminal(serve_names(options), "zsh", ["zsh", "-f", "-i"],
                      ["bindkey -e", "autoload -Uz compinit", "compinit -u -D"])


def test_fish(options):
    """fish completes the same."""
    if shutil.which("fish") is None:
        raise Skipped("no fish")
    sluice = serve_names(options)
    with scratch() as folder:
        script, cases = in_folder(sluice, "fish", folder)
        def offered(typed):
            done = subprocess.run(["fish", "--no-config", "-c",
                                   f"source {script}; complete -C 'sluice {typed}'"],
                                  capture_output=True, check=True, timeout=10,
                                  env=environment(HOME=folder, PATH=path_of(sluice)))
            require_equal(done.stderr, b"", typed)
            return [line.split("\t")[0] for line in done.stdout.decode().splitlines()]

        for typed, became in cases:
            found = measured(lambda line=typed: offered(line), bool, tries=5)[-1]
            require_equal(found, [became.rsplit(" ", 1)[-1]], typed)


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
