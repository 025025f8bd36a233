#!/usr/bin/python3
"""Commands on a terminal, and events --follow."""

import json
import os
import re
import subprocess
import sys
import time

from harness import require, require_equal, run, scratch, wait_until
from harness.cli import DURABLE, SERVER_ERROR, Follower, Terminal, plain, serve
from harness.servers import steady_port

def test_tables_fit_the_terminal(options):
    """A list on a terminal is cut to its width; elsewhere it is whole."""
    _, sluice = serve(options)
    sluice.must("add", "exec", "a payload of many words " * 20, "--id", "long-" + "x" * 200)
    terminal = Terminal(sluice.words("jobs", "exec", "--with", "payload"), columns=80)
    terminal.read_until(r"pending.*\r\n")
    terminal.end()
    lines = plain(terminal.text).split("\r\n")
    require(all(len(line) <= 80 for line in lines) and "…" in lines[1], str(lines))
    require("long-" + "x" * 200 in sluice.must("jobs", "exec"), "cut without a terminal")


def test_a_terminal_shows_the_beginning_of_a_large_value(options):
    """Of a megabyte a terminal gets the beginning and the size; a pipe and --json get all of it."""
    _, sluice = serve(options)
    sluice.must("add", "big", "--id", "b1", stdin=b"\xff\x00" * 500_000)
    sluice.must("add", "big", "--id", "words", stdin="ä".encode() * 4_000)
    sluice.must("add", "big", "--id", "most", stdin=b"x" * 4096)

    def on_terminal(job):
        terminal = Terminal(sluice.words("job", "big", job, "--no-story"), columns=80)
        terminal.read_until(r"payload +.*\r\n")
        terminal.end()
        return re.search(r"payload +(.*)\r\n", plain(terminal.text)).group(1)

    cut = "… ({} of {} bytes; all with --json or in a pipe)"
    require_equal(on_terminal("b1"), r"\xff\x00" * 2048 + cut.format("4,096", "1,000,000"), "bytes")
    require_equal(on_terminal("words"), "ä" * 2048 + cut.format("4,096", "8,000"), "text")
    require_equal(on_terminal("most"), "x" * 4096, "as much as there is room for")
    require(r"\xff\x00" * 500_000 + "\n" in sluice.must("job", "big", "b1"), "cut in a pipe")
    require_equal(len(sluice.json("job", "big", "b1")["payload_base64"]), 1_333_336, "--json")


def test_events(options):
    """events shows the last ones, or those after a number, of a type, of a job."""
    _, sluice = serve(options)
    sluice.fails(SERVER_ERROR, "there is no queue exec", "events", "exec")
    for number in range(30):
        sluice.must("add", "exec", "x", "--id", f"j{number}")
    (job,) = sluice.json("pop", "exec", "--worker", "w 1")
    sluice.must("ack", "exec", job["id"], job["lease"])

    def seqs(*arguments):
        lines = sluice.must("events", "exec", "--json", *arguments).splitlines()
        return [json.loads(line)["seq"] for line in lines]

    require_equal(seqs(), list(range(13, 33)), "the last 20")
    require_equal(seqs("--count", 3), [30, 31, 32], "--count")
    require_equal(seqs("--after", 29), [30, 31, 32], "--after")
    require_equal(seqs("--after", "-", "--count", 2), [1, 2], "from the oldest")
    require_equal(seqs("--after", "$"), [], "from now")
    require_equal(seqs("--after", 3, "--count", 2, "--follow"), [4, 5], "no more than --count")
    require_equal(seqs("--type", "started", "--type", "Completed"), [31, 32], "--type")
    require_equal(seqs("--job", "j0"), [1, 31, 32], "--job")
    shown = sluice.must("events", "exec", "--type", "started")
    require(re.search(r"^31\t[\d:.]+\tstarted\tj0\tlease=1 .*worker=w 1", shown), shown)
    sluice.fails(SERVER_ERROR, "TRIMMED oldest=1", "events", "exec", "--after", 100)
    sluice.must("config", "exec", "events=5")
    wait_until(lambda: seqs("--after", "-") == [28, 29, 30, 31, 32], what="the trim")
    require_equal(seqs(), [28, 29, 30, 31, 32], "what is kept of the last 20")
    sluice.fails(SERVER_ERROR, "TRIMMED oldest=28", "events", "exec", "--after", 3)
    code, out, err = sluice.run("job", "exec", "j0", "--json")
    require_equal([event["seq"] for event in json.loads(out)["story"]], [31, 32], "a late story")
    code, out, err = sluice.run("job", "exec", "j0")
    require_equal(code, 0, "job")
    require("does not go back" in err, err)
    follower = sluice.spawn("events", "exec", "--after", 31, "--count", 2, "--follow")
    require(follower.stdout.readline().startswith(b"32\t"), "one that is there")
    sluice.must("add", "exec", "x", "--id", "j30")
    require(follower.stdout.readline().startswith(b"33\t"), "one that comes")
    require_equal(follower.wait(30), 0, "after --count events")
    follower.communicate()


def test_follow_has_no_gap(options):
    """events --follow prints every event once, through kill -9 and a restart of the server."""
    server, sluice = serve(options, {**DURABLE, "port": str(steady_port())})
    sluice.must("add", "exec", "x", "--id", "before")
    follower = Follower(sluice, "exec", "--json")
    wait_until(lambda: follower.lines, what="the first event")
    for life in range(2):
        for number in range(20):
            sluice.must("add", "exec", "x", "--id", f"{life}-{number}")
        server.kill()
        server.start()
        sluice.must("add", "exec", "x", "--id", f"after-{life}")
    wait_until(lambda: len(follower.lines) == 43, what="all events")
    err = follower.end()
    seqs = [json.loads(line)["seq"] for line in follower.lines]
    require_equal(seqs, list(range(1, 44)), "numbers")
    notes = [json.loads(line)["note"] for line in err.splitlines()]
    require(notes[0].endswith("; retrying") and notes[-1] == "reconnected", err)


def test_follow_tells_of_a_gap(options):
    """events --follow ends with TRIMMED where the queue was deleted."""
    server, sluice = serve(options)
    sluice.must("add", "exec", "x")
    follower = Follower(sluice, "exec", "--after", "-")
    wait_until(lambda: follower.lines, what="the first event")
    with server.connect() as connection:
        connection.call("DEL", "exec")
    require_equal(follower.process.wait(10), SERVER_ERROR, "exit code")
    require("TRIMMED" in follower.process.stderr.read().decode(), "why")


def test_follow_of_nothing(options):
    """events --follow waits for a queue that is not there yet."""
    _, sluice = serve(options)
    follower = Follower(sluice, "exec")
    time.sleep(0.2)
    sluice.must("add", "exec", "x", "--id", "first")
    wait_until(lambda: any("first" in line for line in follower.lines), what="the first event")
    follower.end()


def test_all_is_asked_for_at_a_terminal(options):
    """cancel --all, purge --all and delete ask at a terminal; only yes is an answer for it."""
    server, sluice = serve(options)
    with server.connect() as connection:
        def waiting():
            return connection.call("Q.LIST", "q", "BRIEF", "WHERE", "STATE", "pending").value[1]

        for words in ["cancel", "q", "--all"], ["delete", "q"]:
            for answer in "n", "", "y":
                connection.call("Q.ADD", "q", "a", "", "IFDUP", "KEEP")
                connection.call("Q.RETRY", "q", "a")
                terminal = Terminal(sluice.words(*words))
                terminal.read_until(r"\[y/N\] ")
                os.write(terminal.mine, answer.encode() + b"\n")
                code = terminal.end()[0]
                require_equal(code, 0 if answer == "y" else 1, f"{words}, {answer!r}")
                require_equal(len(waiting()), 0 if answer == "y" else 1, f"{words}, {answer!r}")
        connection.call("Q.ADD", "q", "a", "")
        terminal = Terminal(sluice.words("cancel", "q", "--all", "--yes"))
        require_equal(terminal.end()[0], 0, "--yes")
        require_equal(waiting(), [], "--yes")


def test_the_question_is_seen_wherever_the_output_goes(options):
    """At a terminal nothing is deleted without yes, with --json or the outputs in files either."""
    server, sluice = serve(options)
    with server.connect() as connection:
        for asked, words in (("delete q with", ["delete", "q"]),
                             ("cancel all jobs of q that have not ended",
                              ["cancel", "q", "--all"]),
                             ("purge all jobs of q that have ended", ["purge", "q", "--all"])):
            for more in "2>/dev/null", ">/dev/null 2>&1", "--json 2>/dev/null":
                connection.call("Q.ADD", "q", "ended", "", "IFDUP", "KEEP")
                connection.call("Q.CANCEL", "q", "ended")
                connection.call("Q.ADD", "q", "waits", "", "IFDUP", "KEEP")
                before = connection.call("Q.STATS", "q").value
                terminal = Terminal(["sh", "-c", f'exec "$@" {more}', "sh", *sluice.words(*words)])
                terminal.read_until(asked + r"[^?]*\? \[y/N\] ")
                os.write(terminal.mine, b"n\n")
                require_equal(terminal.end()[0], SERVER_ERROR, f"{words} {more}")
                after = connection.call("Q.STATS", "q").value
                require_equal(after[:16], before[:16], f"{words} {more}")


def test_questions_name_a_queue_without_a_name(options):
    """The queue whose name is empty is called so in questions, plans and errors."""
    server, sluice = serve(options)
    with server.connect() as connection:
        sluice.fails(SERVER_ERROR, "there is no queue (empty name)", "delete", "")
        connection.call("Q.ADD", "", "a", "")
        for asked, words in ((r"delete \(empty name\) with 1 waiting", ["delete", ""]),
                             (r"cancel all jobs of \(empty name\) that", ["cancel", "", "--all"])):
            terminal = Terminal(sluice.words(*words))
            terminal.read_until(asked + r"[^?]*\? \[y/N\] ")
            os.write(terminal.mine, b"n\n")
            require_equal(terminal.end()[0], SERVER_ERROR, f"{words}")


def test_add_says_what_it_waits_for(options):
    """add without a payload says at a terminal that it reads one, and how that ends."""
    _, sluice = serve(options)
    terminal = Terminal(sluice.words("add", "q", "--id", "a"))
    terminal.read_until("Ctrl-D")
    os.write(terminal.mine, b"typed\n\x04")
    require_equal(terminal.end()[0], 0, "add")
    require_equal(sluice.json("job", "q", "a")["payload"], "typed\n")


def test_an_input_that_cannot_be_read(options):
    """add adds nothing if its payload cannot be read to its end, and apply takes no such file."""
    _, sluice = serve(options)
    with scratch() as folder:
        for words in ["add", "q"], ["diff-config", "-"]:
            unreadable = os.open(folder, os.O_RDONLY)
            done = subprocess.run(sluice.words(*words), stdin=unreadable, capture_output=True,
                                  check=False, timeout=30)
            os.close(unreadable)
            require_equal((done.returncode, done.stdout), (SERVER_ERROR, b""), str(words))
            require(b"cannot read standard input" in done.stderr, repr(done.stderr))
    sluice.fails(SERVER_ERROR, "there is no queue q", "jobs", "q")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
