#!/usr/bin/python3
"""sluice top on a terminal: what it shows at every size, each key, lost servers, its cost.

What tmux shows of it goes to build/top-captures, a file for each size, and one with its colours.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import unicodedata

from harness import need_program, require, require_equal, run, wait_until
from harness.cli import DURABLE, USAGE_ERROR, Terminal, environment, serve
from harness.servers import steady_port

ALTERNATE, ORDINARY = "\x1b[?1049h", "\x1b[?1049l"
ENTER, ESCAPE, TAB, BACK_TAB, UP, DOWN = "\r", "\x1b", "\t", "\x1b[Z", "\x1b[A", "\x1bOB"
SIZES = (80, 24), (120, 40), (200, 60)
CAPTURES = pathlib.Path(__file__).resolve().parents[2] / "build" / "top-captures"
LISTS = r"WORKERS.*ACTIVE JOBS.*NEXT JOBS.*FAILED JOBS"


def columns(text):
    return sum(0 if unicodedata.combining(c) else
               2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def fill(connection, queue="exec", jobs=6):
    """Failed, active and pending jobs, and a worker; returns the lease of the job that runs."""
    for number in range(3):
        connection.call("Q.ADD", queue, f"failed-{number}", "x")
        job = popped(connection, queue)
        connection.call("Q.NACK", queue, *job, "FATAL", "ERROR", f"broken {number}")
    connection.call("Q.ADD", queue, "running", "the payload", "GROUP", "ann")
    lease = popped(connection, queue)
    connection.call("Q.TOUCH", queue, *lease, "PROGRESS", "half", "LOG",
                    "first line\nsecond line\n")
    for number in range(jobs):
        connection.call("Q.ADD", queue, f"next-{number}", "x")
    return lease


def popped(connection, queue):
    job = connection.call("Q.POP", 1, queue, "WORKER", "w 1").value[0]
    return [job[job.index(name) + 1] for name in (b"id", b"lease")]


def state_of(connection, job, queue="exec"):
    reply = connection.call("Q.GET", queue, job).value
    return reply[reply.index(b"state") + 1].decode()


def top(sluice, *arguments, **more):
    return Terminal(sluice.words("top", "--interval", 0.1, *arguments), **more)


def quit_top(terminal):
    os.write(terminal.mine, b"q")
    code, after = terminal.end()
    require_equal((code, after == terminal.before), (0, True), "exit code, the terminal's mode")
    require(terminal.text.rstrip().endswith(ORDINARY), repr(terminal.text[-50:]))


def test_top_redraws(options):
    """top shows frames on the other screen, and gives the terminal back at q and at SIGINT."""
    _, sluice = serve(options)
    sluice.must("add", "exec", "x", "--id", "a")
    terminal = top(sluice, columns=100)
    terminal.frame_with(r"exec +1 +0")
    require(terminal.text.startswith(ALTERNATE), repr(terminal.text[:50]))
    require("\x1b[1m" in terminal.text, "no colours")
    sluice.must("add", "exec", "x", "--id", "b")
    sluice.must("add", "a-rather-long-name-" + "x" * 100, "x")
    terminal.frame_with(r"exec +2 +0(.*\n)*.*long-name")
    quit_top(terminal)
    one = top(sluice, "exec", NO_COLOR="1")
    lines = one.frame_with(r"totals +added 2")
    require("\x1b[1m" not in one.text and "\x1b[7m" not in one.text, "colours with NO_COLOR")
    require(any(line.startswith("> ") or "no " in line for line in lines), str(lines))
    one.process.send_signal(signal.SIGINT)
    code, after = one.end()
    require_equal((code, after == one.before), (0, True), "after SIGINT")
    require(one.text.rstrip().endswith(ORDINARY), repr(one.text[-50:]))


def test_every_end_gives_the_terminal_back(options):
    """Signals that end the program, also those of a crash, restore the screen and the mode."""
    _, sluice = serve(options)
    for number in signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT, signal.SIGSEGV:
        terminal = top(sluice)
        terminal.frame_with("no queues")
        terminal.process.send_signal(number)
        code, after = terminal.end()
        crashed = number in (signal.SIGABRT, signal.SIGSEGV)
        require_equal(code, -number if crashed else 0, f"exit code after {number}")
        require_equal(after, terminal.before, f"the terminal's mode after {number}")
        require(terminal.text.rstrip().endswith(ORDINARY), f"{number}: {terminal.text[-50:]!r}")


def test_top_lives_through_a_restart(options):
    """top reports that the server cannot be reached, and continues when it is back."""
    server, sluice = serve(options, {**DURABLE, "port": str(steady_port())})
    sluice.must("add", "exec", "x")
    terminal = top(sluice)
    terminal.frame_with(r"exec +1")
    server.stop()
    terminal.frame_with(r"exec +1(.*\n)*cannot connect to")
    terminal.press("s")
    server.start()
    sluice.must("add", "exec", "x")
    terminal.frame_with(r"exec +2(.*\n)*q: quit")
    quit_top(terminal)


def test_it_fills_every_size(options):
    """The screen is full at each size and after each change of it, and no line is too long."""
    server, sluice = serve(options)
    with server.connect() as connection:
        fill(connection, jobs=70)
        fill(connection, "\u4e2d\u6587" * 20)
        connection.call("Q.ADD", b"evil\x1b[2J\n\xff", "x", "")
    terminal = top(sluice, columns=80, rows=24)

    def frame(height):
        terminal.text = ""
        lines = terminal.frame_with("q: quit" if height < 24 else f"(?s){LISTS}.*q: quit")
        return lines if len(lines) == height else None

    for width, height in (*SIZES, *reversed(SIZES), (40, 10)):
        terminal.resize(width, height)
        lines = wait_until(lambda: frame(height), what=f"{height} lines")
        require("\n".join(lines).count("\x1b") == 0, "an escape sequence")
        for line in lines:
            require(columns(line) <= width, f"{columns(line)} columns of {width}: {line!r}")
        if height >= 24:
            require(re.search(LISTS, "\n".join(lines), re.S), f"not all lists: {lines}")
            require(re.search(r"evil\\x1b\[2J\\n\\xff", "\n".join(lines)), "no escaped name")
    quit_top(terminal)


def test_keys_move_and_open(options):
    """Keys select, sort, filter, open a queue and a job, go back, and show the help."""
    server, sluice = serve(options)
    with server.connect() as connection:
        fill(connection)
        connection.call("Q.ADD", "mail", "m", "")
    terminal = top(sluice, rows=40)
    terminal.frame_with(r"> exec")
    terminal.press(DOWN)
    terminal.frame_with(r"> mail(.*\n)+.*no active jobs")
    terminal.press(UP)
    terminal.frame_with(r"> exec(.*\n)+.*ACTIVE JOBS")
    terminal.press("/MA")
    terminal.frame_with(r"> mail(.*\n)+filter: MA_")
    terminal.press(ENTER)
    terminal.frame_with(r"2 queues, 1 shown(.*\n)+.*/: MA")
    terminal.press(ESCAPE)
    terminal.frame_with(r"2 queues by PENDING")
    terminal.press("S")
    terminal.frame_with(r"2 queues by QUEUE▲")
    terminal.press("i")
    terminal.frame_with(r"2 queues by QUEUE▼\n.*\n. mail.*\n. exec")
    terminal.press("g" + "G")
    terminal.frame_with(r"> exec")
    terminal.press("?")
    terminal.frame_with(r"Shift-Tab")
    terminal.press("x" + ENTER)
    lines = terminal.frame_with(r"totals +added 10(.*\n)+> running(.*\n)+.*no worker asks for jobs")
    require("before it" not in "\n".join(lines), str(lines))
    terminal.press(ENTER)
    terminal.frame_with(r"payload +the payload(.*\n)+LOG\nfirst line\nsecond line")
    terminal.press(ESCAPE + ESCAPE)
    terminal.frame_with(r"> exec(.*\n)+.*running")
    terminal.press(TAB * 4)
    terminal.frame_with(r"> failed-2")
    terminal.press("j")
    terminal.frame_with(r"> failed-1")
    terminal.press(BACK_TAB)
    terminal.frame_with(r"> next-0")
    quit_top(terminal)


def test_sorting_shows_the_first(options):
    """What is first in a new order is selected, and the column of the order is shown, also where it
    is empty or the screen has no room for all."""
    server, sluice = serve(options)
    with server.connect() as connection:
        for number in range(14):
            for job in range(2):
                connection.call("Q.ADD", f"q-{number:02}", f"job-{job}", "")
        fill(connection, "zz-broken", jobs=1)
    terminal = top(sluice, columns=80, rows=24)
    terminal.frame_with(r"15 queues by PENDING▼\n(.*\n)+> q-00")
    terminal.press("j")
    terminal.frame_with(r"> q-01")
    for title in "ACTIVE", "DELAYED", "BLOCKED", "FAILED":
        terminal.press("s")
        terminal.frame_with(rf"by {title}▼\n +QUEUE.* {title}\b.*\n> ")
    terminal.frame_with(r"by FAILED▼\n.*\n> zz-broken +1 +1 .* 3 (.*\n)+.*w 1")
    terminal.press("i")
    terminal.frame_with(r"by FAILED▲\n.*\n> q-00 ")
    for title in "ADDED/S", "DONE/S", "OLDEST", "WAIT P50", "P95", "RUN P50", "POPS", "PAUSED":
        terminal.press("s")
        terminal.frame_with(rf"by {title}▼\n +QUEUE +PENDING.* {title}( |\n)")
    terminal.press("s" + TAB + "i")
    terminal.frame_with(r"by QUEUE▼\n(.*\n)+\* q-00 (.*\n)+> no workers")
    quit_top(terminal)


def test_the_empty_name(options):
    """A queue whose name is empty is one like any other."""
    server, sluice = serve(options)
    with server.connect() as connection:
        connection.call("Q.ADD", "", "a", "x")
        popped(connection, "")
        connection.call("Q.ADD", "", "b", "x")
        connection.call("Q.ADD", "exec", "c", "x")
        lines = sluice.must("top").splitlines()
        require_equal([line.split("\t")[:3] for line in lines[1:]],
                      [["", "1", "1"], ["exec", "1", "0"]], "in a pipe")
        terminal = top(sluice, rows=40)
        terminal.frame_with(r"> \(empty name\) +1 +1(.*\n)+.*WORKERS.*\n +w 1 +1(.*\n)+. b ")
        terminal.press(DOWN)
        terminal.frame_with(r"> exec")
        terminal.press(UP + ENTER)
        terminal.frame_with(r"  \(empty name\)\n(.*\n)+> a ")
        terminal.press("p")
        terminal.frame_with(r"\(empty name\) hands out no more jobs")
        require_equal(connection.call("Q.CONFIG", "", "GET", "paused").value[1], b"out", "paused")
        quit_top(terminal)
        alone = top(sluice, "", rows=40)
        alone.frame_with(r"PAUSED\n.* out\n(.*\n)+. a ")
        quit_top(alone)


def test_keys_steer(options):
    """p, r, R and c change what they say; what cannot be undone asks first."""
    server, sluice = serve(options)
    with server.connect() as connection:
        fill(connection)

        def paused():
            return connection.call("Q.CONFIG", "exec", "GET", "paused").value[1]

        terminal = top(sluice, "exec", rows=40)
        terminal.frame_with(r"> w 1")
        terminal.press("p")
        terminal.frame_with(r"w 1 .*quiet(.*\n)+w 1 is quiet")
        require_equal(connection.call("Q.CONFIG", "exec", "WORKER", "w 1", "GET").value,
                      [b"quiet", b"on"], "quiet")
        terminal.press("p" + TAB)
        terminal.frame_with(r"> running")
        terminal.press("p")
        terminal.frame_with(r"PAUSED\n.* out\n(.*\n)+exec hands out no more jobs")
        require_equal(paused(), b"out", "paused")
        terminal.press("p")
        terminal.frame_with(r"exec hands out jobs")
        require_equal(paused(), b"none", "resumed")
        terminal.press(ESCAPE)
        terminal.frame_with(r"> exec.*[^t ] +\n")
        terminal.press("p")
        terminal.frame_with(r"PAUSED\n> exec.* out +\n(.*\n)+exec hands out no more jobs")
        terminal.press("p")
        terminal.frame_with(r"> exec.*[^t ] +\n(.*\n)+exec hands out jobs")
        terminal.press(ENTER)
        terminal.frame_with(r"> running")
        terminal.press(TAB + "c")
        terminal.frame_with(r"cancel next-0 of exec\? \[y/N\]")
        terminal.press("n")
        terminal.frame_with("nothing was changed")
        require_equal(state_of(connection, "next-0"), "pending", "not cancelled")
        terminal.press("cy")
        terminal.frame_with("next-0 is cancelled")
        require_equal(state_of(connection, "next-0"), "cancelled", "cancelled")
        terminal.press(TAB + "r")
        terminal.frame_with("failed-2 is queued again")
        require_equal(state_of(connection, "failed-2"), "pending", "retried")
        terminal.press("R")
        terminal.frame_with(r"retry all failed jobs of exec\? \[y/N\]")
        terminal.press("y")
        terminal.frame_with("2 jobs queued again")
        require_equal(state_of(connection, "failed-0"), "pending", "retried")
        quit_top(terminal)


def test_a_refused_key_says_why(options):
    """A user without the right reads the answer, and top keeps running."""
    server, sluice = serve(options)
    with server.connect() as connection:
        fill(connection)
        connection.call("ACL", "SETUSER", "looker", "on", ">p", "~*", "+@read", "+scan", "+time",
                        "+q.config|get")
    sluice.before = ["--user", "looker", "--pass", "p"]
    terminal = top(sluice)
    terminal.frame_with(r"> exec")
    terminal.press("Ry")
    terminal.frame_with("NOPERM")
    terminal.press("s")
    terminal.frame_with(r"> exec")
    quit_top(terminal)


def test_the_help_is_whole(options):
    """All of the help is on a screen of 80 × 24."""
    _, sluice = serve(options)
    terminal = top(sluice, columns=80, rows=24)
    terminal.frame_with("no queues")
    terminal.press("?")
    lines = terminal.frame_with(r"\nup down .*\n(.*\n)+q +quit\n")
    require("…" not in "\n".join(lines), str(lines))
    quit_top(terminal)


def test_without_a_screen(options):
    """In a pipe and on a terminal that cannot move its cursor top prints plain tables."""
    server, sluice = serve(options)
    require_equal(sluice.must("top"), "no queues\n", "no queues")
    sluice.must("add", "exec", "x")
    lines = sluice.must("top").splitlines()
    require(len(lines) == 2 and lines[1].startswith("exec\t1\t0"), str(lines))
    shown = Terminal(sluice.words("top"), TERM="dumb")
    require_equal(shown.end()[0], 0, "TERM=dumb")
    require("\x1b" not in shown.text and "exec " in shown.text, repr(shown.text))
    shown = Terminal(["env", "-u", "TERM", *sluice.words("status")])
    require_equal(shown.end()[0], 0, "no TERM")
    require("\x1b" not in shown.text and "exec " in shown.text, repr(shown.text))
    process = subprocess.Popen(sluice.words("top", "--interval", 0.1), stdout=subprocess.PIPE,
                               env=environment())
    tables = 0
    while tables < 3:
        tables += process.stdout.readline().startswith(b"exec\t")
    process.terminate()
    require_equal(process.wait(10), 0, "after SIGTERM")
    process.stdout.close()
    process = subprocess.Popen(sluice.words("top", "--interval", 0.1), stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, env=environment())
    while not process.stdout.readline().startswith(b"exec\t"):
        pass
    server.stop()
    while not process.stdout.readline().startswith(b"sluice: "):
        pass
    lines = [process.stdout.readline() for _ in range(5)]
    require(all(b"cannot connect" in line for line in lines), f"without a server: {lines}")
    process.terminate()
    process.wait(10)
    process.stdout.close()
    code, out, err = sluice.run("top", "--json")
    require(code == USAGE_ERROR and out == "" and "no JSON" in err, f"--json: {code} {err!r}")
    sluice.fails(USAGE_ERROR, "a number from 0.1 to 3600, not 0", "top", "--interval", "0")


def test_many_queues_cost_little(options):
    """Of 1,000 queues those in view are read each time, the others in turn."""
    server, sluice = serve(options)
    with server.connect() as connection:
        for number in range(1000):
            connection.call("Q.ADD", f"q-{number:04}", "x", "")
        connection.call("Q.ADD", "q-0500", "y", "")

        def processed():
            info = connection.call("INFO", "stats").value.decode()
            return int(re.search(r"total_commands_processed:(\d+)", info).group(1))

        terminal = top(sluice)
        terminal.frame_with(r"1,000 queues by PENDING▼\n.*\n> q-0500 +2")
        before = processed()
        frames = 0
        while frames < 20:
            terminal.text = ""
            terminal.frame_with("q-0500")
            frames += 1
        # Two readings may begin while one frame is awaited.
        require((processed() - before) / frames < 250, f"{processed() - before} commands")
        connection.call("Q.ADD", "q-0999", "y", "")
        connection.call("Q.ADD", "q-0999", "z", "")
        terminal.frame_with(r"q-0999 +3 .*\n. q-0500 +2")
        quit_top(terminal)


def test_in_tmux(options):
    """A real terminal shows the same at three sizes, with resizing in between; it is kept."""
    tmux = need_program("tmux")
    CAPTURES.mkdir(parents=True, exist_ok=True)
    server, sluice = serve(options)
    with server.connect() as connection:
        fill(connection, jobs=70)
    name = f"sluice-top-{os.getpid()}"

    def call(*words):
        done = subprocess.run([tmux, "-L", name, "-f", "/dev/null", *words], check=True,
                              capture_output=True, timeout=30, env=environment(LC_ALL="C.UTF-8"))
        return done.stdout.decode()

    call("new-session", "-d", "-x", "80", "-y", "24", *sluice.words("top", "--interval", 0.1))
    try:
        for width, height in SIZES:
            call("resize-window", "-x", str(width), "-y", str(height))

            def shown():
                return call("capture-pane", "-p").split("\n")[:height]

            def whole():
                lines = shown()
                return lines if len(lines) == height and lines[-1].startswith("q: quit") \
                    and re.search(LISTS, "\n".join(lines), re.S) else None

            lines = wait_until(whole, what=f"{width}x{height}")
            coloured = call("capture-pane", "-ep")
            for ending, text in ("txt", "\n".join(lines) + "\n"), ("ansi", coloured):
                (CAPTURES / f"{width}x{height}.{ending}").write_text(text, encoding="utf-8")
            require("\x1b[" in coloured, "a capture without colours")
            require(max(map(columns, lines)) <= width, str(lines))
            require(len([line for line in lines if "next-" in line]) >= 3, str(lines))
        call("send-keys", "Enter")
        wait_until(lambda: "totals " in "\n".join(shown()), what="the queue")
        call("send-keys", "q")
    finally:
        subprocess.run([tmux, "-L", name, "kill-server"], check=False, capture_output=True)


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
