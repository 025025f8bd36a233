#!/usr/bin/python3
"""sluice watch: what it prints of a job until it has ended, its exit codes, restarts."""

import json
import re
import subprocess
import sys
import threading

from harness import require, require_equal, run, scratch, wait_until
from harness.cli import DURABLE, SERVER_ERROR, Sluice, Terminal, environment, plain, serve
from harness.servers import steady_port
from harness.wall_clock import WallClock

EXPIRED, CANCELLED, GONE = 4, 5, 6


class Watch:
    """sluice watch in a pipe, read by a thread."""

    def __init__(self, sluice, *arguments):
        self.process = subprocess.Popen(
            sluice.words("watch", *arguments), stdin=subprocess.DEVNULL, env=environment(),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.decode().rstrip("\n"))

    def wait_for(self, text):
        wait_until(lambda: any(text in line for line in list(self.lines)), what=text)

    def end(self):
        code = self.process.wait(30)
        self.reader.join(10)
        err = self.process.stderr.read().decode()
        self.process.stdout.close()
        self.process.stderr.close()
        return code, err


def popped(connection, queue="exec"):
    job = connection.call("Q.POP", 1, queue, "WORKER", "w1").value[0]
    return [job[job.index(name) + 1] for name in (b"id", b"lease")]


def test_each_change_is_a_line(options):
    """In a pipe watch prints a line for each event and each line of the log, divided by tabs."""
    server, sluice = serve(options)
    with server.connect() as connection:
        connection.call("Q.ADD", "exec", "a", "x", "RETRY", 1, "BACKOFF", 1, 1)
        watch = Watch(sluice, "exec", "a")
        watch.wait_for("\tnow\tpending, 0 before it")
        require(watch.lines[0].endswith(", no_worker"), str(watch.lines))
        lease = popped(connection)
        watch.wait_for("\tstarted\t")
        connection.call("Q.TOUCH", "exec", *lease, "PROGRESS", "40 %", "LOG",
                        b"one\ntwo\x1b[2J\nthr")
        watch.wait_for("\tprogress\tprogress=40 %")
        watch.wait_for("\tlog\ttwo\\x1b[2J")
        connection.call("Q.NACK", "exec", *lease, "ERROR", "again")
        watch.wait_for("\tretrying\t")
        wait_until(lambda: connection.call("Q.STATS", "exec").value[1] == 1, what="the retry")
        lease = popped(connection)
        connection.call("Q.ADD", "exec", "other", "")
        connection.call("Q.ACK", "exec", *lease, "RESULT", "42")
        code, err = watch.end()
    require_equal((code, err), (0, ""), "the end")
    fields = [line.split("\t") for line in watch.lines]
    require(all(len(line) == 3 for line in fields), str(fields))
    # A delay of 0 ms ends without an event.
    kinds = [line[1] for line in fields if line[1] not in ("log", "ready")]
    require_equal(kinds, ["now", "started", "progress", "retrying", "started", "completed", "end"],
                  "the changes")
    require_equal([line[2] for line in fields if line[1] == "log"], ["one", "two\\x1b[2J", "thr"],
                  "the log")
    require_equal(fields[-1][2], "completed, result=42", "the end")


def test_a_log_that_is_no_longer_whole(options):
    """Where older bytes of the log are gone watch says how many; what it has of a line is one."""
    server, sluice = serve(options)
    with server.connect() as connection:
        connection.call("Q.CONFIG", "exec", "SET", "log_bytes", 10)
        connection.call("Q.ADD", "exec", "a", "x")
        lease = popped(connection)
        connection.call("Q.TOUCH", "exec", *lease, "LOG", "one\ntw")
        watch = Watch(sluice, "exec", "a")
        watch.wait_for("\tlog\tone")
        connection.call("Q.TOUCH", "exec", *lease, "LOG", "o\nthree\nfour\n")
        watch.wait_for("\tlog\tfour")
        connection.call("Q.ACK", "exec", *lease)
        code, err = watch.end()
    require_equal((code, err), (0, "sluice: 3 bytes of the log are no longer kept\n"), "the end")
    lines = [line.split("\t") for line in watch.lines]
    require_equal([line[2] for line in lines if line[1] == "log"], ["one", "tw", "hree", "four"],
                  "the log")


def test_exit_codes(options):
    """The exit code says how the job ended, whether it ended before or while it was watched."""
    server, sluice = serve(options)
    with server.connect() as connection:
        def failed():
            connection.call("Q.NACK", "exec", *popped(connection), "FATAL", "ERROR", "no luck")

        def cancelled():
            connection.call("Q.CANCEL", "exec", "j")

        def completed():
            connection.call("Q.ACK", "exec", *popped(connection))

        def gone():
            connection.call("DEL", "exec")

        for end, code in ((completed, 0), (failed, SERVER_ERROR), (cancelled, CANCELLED),
                          (gone, GONE)):
            connection.call("Q.ADD", "exec", "j", "")
            watch = Watch(sluice, "exec", "j")
            watch.wait_for("\tnow\t")
            end()
            require_equal(watch.end(), (code, ""), end.__name__)
            if end is not gone:
                got, out, err = sluice.run("watch", "exec", "j")
                require_equal((got, err), (code, ""), f"{end.__name__}, before")
                require(end.__name__ in out, out)
            connection.call("DEL", "exec")
        connection.call("Q.ADD", "exec", "j", "", "TTL", 50)
        require_equal(sluice.run("watch", "exec", "j")[0], EXPIRED, "expired")
        connection.call("Q.CONFIG", "exec", "SET", "retain_completed", "0")
        connection.call("Q.ADD", "exec", "k", "")
        watch = Watch(sluice, "exec", "k")
        watch.wait_for("\tnow\t")
        connection.call("Q.ACK", "exec", *popped(connection))
        require_equal(watch.end(), (0, ""), "completed, and forgotten at once")
    sluice.fails(SERVER_ERROR, "none: there is no such job", "watch", "exec", "none")


def test_a_successor_is_another_job(options):
    """A job that takes the id of the one that has ended is not watched."""
    server, sluice = serve(options)
    with server.connect() as connection:
        connection.call("Q.ADD", "exec", "j", "")
        lease = popped(connection)
        connection.call("Q.ADD", "exec", "j", "later", "IFDUP", "UPDATE")
        watch = Watch(sluice, "exec", "j")
        watch.wait_for("\tnow\tactive")
        connection.call("Q.ACK", "exec", *lease)
        require_equal(watch.end(), (0, ""), "completed")
        require(any("\tcompleted\t" in line for line in watch.lines), str(watch.lines))


def test_json(options):
    """--json is an object a line: the job at the beginning and the end, events and the log."""
    server, sluice = serve(options)
    with server.connect() as connection:
        connection.call("Q.ADD", "exec", "j", "")
        lease = popped(connection)
        connection.call("Q.TOUCH", "exec", *lease, "LOG", b"\xff\n")
        watch = Watch(sluice, "exec", "j", "--json")
        watch.wait_for('"log"')
        connection.call("Q.ACK", "exec", *lease, "RESULT", "ok")
        require_equal(watch.end(), (0, ""), "completed")
    lines = [json.loads(line) for line in watch.lines]
    require_equal([line["type"] for line in lines], ["now", "log", "completed", "end"], "types")
    require_equal(lines[1]["text_base64"], "/w==", "the log")
    require_equal((lines[-1]["job"]["state"], lines[-1]["job"]["result"]), ("completed", "ok"),
                  "end")


def test_times_are_the_servers(options):
    """How long a job has been running is counted by the server's clock, on whatever machine."""
    with scratch() as folder:
        clock = WallClock(folder)
        clock.step_ms(-3 * 3_600_000)
        server = options.server(environment=clock.environment())
        server.start()
        sluice = Sluice(options, server)
        with server.connect() as connection:
            connection.call("Q.ADD", "exec", "j", "")
            lease = popped(connection)
            watch = Watch(sluice, "exec", "j")
            watch.wait_for("\tnow\tactive for ")
            connection.call("Q.TOUCH", "exec", *lease, "LOG", "a line\n")
            watch.wait_for("\tlog\t")
            terminal = Terminal(sluice.words("watch", "exec", "j"))
            terminal.read_until(r"\ractive for [^,]*, w1")
            connection.call("Q.ACK", "exec", *lease)
            require_equal((watch.end()[0], terminal.end()[0]), (0, 0), "exit codes")
    runs = re.findall(r"active for ([^,]*),", watch.lines[0] + terminal.text)
    require(runs and all(re.fullmatch(r"[\d.]+ m?s|\d+ m \d+ s", run) for run in runs), str(runs))
    moments = [line.split("\t")[0] for line in watch.lines]
    require(all(re.fullmatch(r"[\d:.]+", moment) for moment in moments), str(moments))


def test_it_survives_kills(options):
    """No event and no line of the log is lost or printed twice through kill -9 and a restart."""
    server, sluice = serve(options, {**DURABLE, "appendfsync": "always",
                                     "port": str(steady_port())})
    with server.connect() as connection:
        connection.call("Q.CONFIG", "exec", "SET", "lease_ms", 600_000, "crash_limit", 100)
        connection.call("Q.ADD", "exec", "j", "", "RETRY", 10, "BACKOFF", 1, 1)
    watch = Watch(sluice, "exec", "j")
    watch.wait_for("\tnow\t")
    for life in range(3):
        with server.connect() as connection:
            wait_until(lambda: connection.call("Q.STATS", "exec").value[1] == 1, what="pending")
            lease = popped(connection)
            connection.call("Q.TOUCH", "exec", *lease, "LOG", f"life {life}\n")
            if life < 2:
                connection.call("Q.NACK", "exec", *lease)
            else:
                connection.call("Q.ACK", "exec", *lease)
        server.kill()
        server.start()
    code, err = watch.end()
    require_equal(code, 0, err)
    require("retrying" in err and "reconnected" in err, err)
    kinds = [line.split("\t")[1] for line in watch.lines]
    require_equal([kind for kind in kinds if kind in ("started", "retrying", "completed")],
                  ["started", "retrying"] * 2 + ["started", "completed"], "events")
    logged = [line.split("\t")[2] for line in watch.lines if "\tlog\t" in line]
    require_equal(logged, ["life 0", "life 1", "life 2"], "log")


def test_on_a_terminal(options):
    """On a terminal the last line says how the job is, and is replaced; changes stay above it."""
    server, sluice = serve(options)
    with server.connect() as connection:
        connection.call("Q.ADD", "exec", "first", "")
        connection.call("Q.ADD", "exec", "j", "", "GROUP", "ann")
        terminal = Terminal(sluice.words("watch", "exec", "j"), columns=60)
        terminal.read_until(r"\rpending, 1 before it[^\r]*\x1b\[K")
        require("job before it" not in terminal.text, repr(terminal.text))
        connection.call("Q.ACK", "exec", *popped(connection))
        terminal.read_until(r"\rpending, 0 before it, no worker asks for jobs\x1b\[K")
        lease = popped(connection)
        connection.call("Q.TOUCH", "exec", *lease, "PROGRESS", "a long progress " * 20)
        terminal.read_until(r"\r\x1b\[K[\d:.]+  \S*started.*\ractive for .*w1.*a long")
        connection.call("Q.ACK", "exec", *lease, "RESULT", "42")
        require_equal(terminal.end()[0], 0, "exit code")
    last = plain(terminal.text).rstrip().split("\r\n")[-1]
    require(re.search(r"end +completed, result=42$", last), repr(last))
    for status in re.findall(r"\r(active[^\x1b]*)\x1b\[K", terminal.text):
        require(len(status) < 60, repr(status))


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
