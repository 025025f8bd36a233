#!/usr/bin/python3
"""Events that must be reported: failed starts, signals, deleted files."""

import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import harness
from harness import closes, info, require, require_equal, scratch, wait_until
from harness.surroundings import NOTED_CALLS, preload, refuse_sanitizers, wrapped
from harness.wall_clock import WallClock

JOURNAL_FAILED = 75
# Nobody else's, so that a limit of its threads is this test's alone.
LONELY_USER = 54321

FAILING_THREADS = """
static int created;
int pthread_create(pthread_t* handle, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  static int (*next)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  if (next == NULL) next = dlsym(RTLD_NEXT, "pthread_create");
  const char* which = getenv("FAILING_THREAD");
  if (__sync_add_and_fetch(&created, 1) == atoi(which)) return EAGAIN;
  return next(handle, attributes, run, argument);
}
"""


def starts_or_says_why(arguments, ready, **options):
    """Whether it starts; if not, it has to end by itself, and to say that a thread is missing."""
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          **options) as process:
        wait_until(lambda: os.path.exists(ready) or process.poll() is not None, 60,
                   what="the start or the end")
        started = process.poll() is None
        if started:
            process.send_signal(signal.SIGTERM)
        output = process.communicate(timeout=20)[0].decode(errors="replace")
    require_equal(process.returncode, 0 if started else 1, output)
    require(started or ("cannot create a thread" in output and
                        "pids.max" in output), output)
    return started


def test_a_thread_that_cannot_be_created(options):
    """Whichever thread cannot be created: exit 1 within the start, and why."""
    with scratch() as directory:
        environment = preload(directory, options, "threads", FAILING_THREADS)
        ready = os.path.join(directory, "ready")
        arguments = [options.program, "--dir", os.path.join(directory, "data"), "--port", "auto",
                     "--bind", "127.0.0.1", "--http-port", "auto", "--io-threads", "2",
                     "--otlp-endpoint", "http://127.0.0.1:9", "--ready-file", ready]
        for number in range(1, 40):
            environment["FAILING_THREAD"] = str(number)
            if starts_or_says_why(arguments, ready, env=environment):
                break
        require(8 <= number < 39, f"the start has {number - 1} threads")


def test_a_limit_of_threads(options):
    """`ulimit -u`, for a user who has no other process: the same, with every limit too low."""
    if os.getuid() != 0:
        raise harness.Skipped("NOT RUN: it starts servers as another user, as root only can")
    refuse_sanitizers(options, "the leak check needs a thread at the end")

    def become_another():
        resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))
        os.setgroups([])
        os.setgid(LONELY_USER)
        os.setuid(LONELY_USER)

    with scratch() as directory:
        os.chown(directory, LONELY_USER, LONELY_USER)
        ready = os.path.join(directory, "ready")
        arguments = [options.program, "--dir", os.path.join(directory, "data"), "--port", "auto",
                     "--bind", "127.0.0.1", "--http-port", "auto", "--io-threads", "2",
                     "--ready-file", ready]
        for limit in range(1, 40):
            try:
                started = starts_or_says_why(arguments, ready, preexec_fn=become_another)
            except PermissionError as error:
                raise harness.Skipped("NOT RUN: another user may not run this server") from error
            if started:
                break
        require(8 <= limit < 39, f"the start has {limit} threads")


def test_one_thread_of_jemalloc(options):
    """It would create further ones in a loop without a pause where a limit forbids them."""
    refuse_sanitizers(options, "they replace jemalloc")
    with options.server({"io-threads": "2"}) as server, server.connect() as connection:
        connection.call("SET", "key", "value")
        names = [task.read_text().strip()
                 for task in pathlib.Path(f"/proc/{server.process.pid}/task").glob("*/comm")]
        require_equal(names.count("jemalloc_bg_thd"), 1, names)


def test_a_log_file_in_no_directory(options):
    """A logfile whose directory is missing: exit 1, and no directory is made."""
    with scratch() as directory:
        path = os.path.join(directory, "missing", "server.log")
        code, output = options.run("--logfile", path, "--port", "auto", "--http-port", "0",
                                   "--dir", directory)
        require_equal(code, 1, "exit code")
        require(path in output and "No such file or directory" in output, output)
        require_equal(os.listdir(directory), [], "what was made")


def test_a_log_file_in_a_data_directory_to_come(options):
    """A logfile in a data directory that is still to be made: exit 1, and it is said why."""
    with scratch() as directory:
        data = os.path.join(directory, "data")
        words = ["--logfile", os.path.join(data, "server.log"), "--port", "auto",
                 "--http-port", "0", "--dir", data]
        code, output = options.run(*words)
        require_equal(code, 1, "exit code")
        require("create that directory first, or choose another place" in output, output)
        require_equal(os.listdir(directory), [], "what was made")


def test_a_terminal_is_told_where_the_log_goes(options):
    """With a logfile a terminal says which file that is, and why a start fails; a pipe says none
    of it."""
    with scratch() as folder:
        log = os.path.join(folder, "server.log")
        ready = os.path.join(folder, "ready")
        words = [options.program, "--logfile", "server.log", "--port", "auto", "--http-port", "0",
                 "--dir", os.path.join(folder, "data"), "--appendonly", "no", "--save", "",
                 "--ready-file", ready]
        for bad in [], ["--unixsocket", "/nowhere/at/all"]:
            mine, theirs = pty.openpty()
            process = subprocess.Popen(words + bad, cwd=folder, stdin=theirs, stdout=theirs,
                                       stderr=theirs, start_new_session=True)
            os.close(theirs)
            told = b""
            while log.encode() not in told or (bad and b"/nowhere" not in told):
                told += os.read(mine, 4096)
            require(b"logging to " + log.encode() in told, told)
            if not bad:
                # Until it is ready, SIGTERM ends a server without a word.
                wait_until(lambda: os.path.exists(ready), what="a server that is ready")
                process.send_signal(signal.SIGTERM)
            require_equal(process.wait(30), 1 if bad else 0, "exit code")
            os.close(mine)
        code, output = options.run(*words[1:], "--unixsocket", "/nowhere/at/all", cwd=folder)
        require_equal((code, output), (1, ""), "into a pipe")


def test_a_data_directory_that_is_removed(options):
    """A data directory that is removed or moved away: the next sync fails, exit 75, told why."""
    def remove(path):
        shutil.rmtree(path)

    def move(path):
        os.rename(path, path + ".away")

    def remove_logs(path):
        for name in os.listdir(os.path.join(path, "log")):
            os.unlink(os.path.join(path, "log", name))
    for mode, take in (("always", remove), ("everysec", remove), ("no", remove), ("always", move),
                       ("always", remove_logs)):
        with scratch() as directory:
            data = os.path.join(directory, "data")
            with options.server({"appendonly": "yes", "appendfsync": mode, "dir": data}) as server:
                with server.connect() as connection:
                    require_equal(connection.call("SET", "a", "1").raw, b"+OK\r\n")
                    take(data)
                    acknowledged, deadline = 0, time.monotonic() + 20
                    try:
                        while time.monotonic() < deadline:
                            reply = connection.call("SET", "a", "2")
                            if reply.is_error:
                                break
                            acknowledged += 1
                            time.sleep(0.01)
                        require(reply.raw.startswith(b"-MISCONF"), reply.raw)
                    except OSError:
                        pass
                require_equal(server.process.wait(20), JOURNAL_FAILED, f"{mode}: exit code")
                server.process = None
                log = server.log_tail()
                require(f"the data directory {data} was removed" in log, log)
                require(mode != "always" or acknowledged == 0, f"{acknowledged} acknowledged")


def test_signals_that_are_told(options):
    """Signals without a meaning change nothing, SIGQUIT ends in order; each has its line in the
    log."""
    with options.server({"appendonly": "no", "save": "3600 1"}) as server:
        with server.connect() as connection:
            connection.call("SET", "a", "1")
            for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGVTALRM,
                           signal.SIGPROF, signal.SIGIO):
                server.process.send_signal(number)
                name = "SIGPOLL" if number == signal.SIGIO else number.name
                wait_until(lambda name=name: f"Received {name}" in server.log_tail(), what=name)
                require_equal(connection.call("PING").raw, b"+PONG\r\n", number.name)
            last = signal.SIGRTMAX
            server.process.send_signal(last)
            wait_until(lambda: f"Received signal {int(last)}" in server.log_tail(), what=last)
        server.process.send_signal(signal.SIGQUIT)
        require_equal(server.process.wait(20), 0, "exit code")
        server.process = None
        require("Received SIGQUIT" in server.log_tail(), server.log_tail())
        server.start()
        with server.connect() as connection:
            require_equal(connection.call("GET", "a").value, b"1", "after SIGQUIT")


def test_the_second_signal(options):
    """A second SIGTERM changes nothing; a second SIGINT ends it at once and says what is lost."""
    for second, code, kept in ((signal.SIGTERM, 0, b"1"), (signal.SIGINT, 1, None)):
        with options.server({"appendonly": "no", "save": "3600 1",
                             "enable-debug-command": "yes"}) as server:
            with server.connect() as connection, server.connect() as sleeper:
                connection.call("SET", "a", "1")
                sleeper.send("DEBUG", "SLEEP", "1.5")
                time.sleep(0.2)
                for number in (signal.SIGTERM, second):
                    server.process.send_signal(number)
                    wait_until(lambda number=number: number.name in server.log_tail(),
                               what=number.name)
            require_equal(server.process.wait(20), code, f"exit code after {second.name}")
            server.process = None
            log = server.log_tail()
            require(("1 changes not in a checkpoint are lost" in log) == (code == 1), log)
            server.start()
            with server.connect() as connection:
                require_equal(connection.call("GET", "a").value, kept, f"after {second.name}")


def test_a_small_stack(options):
    """Scripts nest as deeply with `ulimit -s 1024` as elsewhere."""
    script = ("local function f(n) if n == 0 then return 'x' end "
              "return (string.gsub('a', 'a', function() return f(n - 1) end)) end return f(180)")
    with scratch() as directory:
        small = wrapped(directory, options, shell="ulimit -s 1024")
        with small.server() as server, server.connect() as connection:
            require_equal(connection.call("EVAL", script, "0").value, b"x", "the script")
            require(server.alive(), server.log_tail())


def test_attacks_in_the_log(options):
    """Requests of HTTP at the port of RESP have one line a minute, however many there are."""
    with options.server() as server:
        for _ in range(20):
            with server.connect() as connection:
                connection.send_bytes(b"POST / HTTP/1.1\r\n\r\n")
                require(closes(connection), "the connection is closed")
        require_equal(server.log_tail(1000).count("Possible SECURITY ATTACK"), 1, "lines")


def test_small_files_are_synced(options):
    """CONFIG REWRITE and ACL SAVE: synced before and after the rename, never readable by others."""
    with scratch() as directory:
        environment = preload(directory, options, "calls", NOTED_CALLS)
        calls = environment["NOTED_CALLS"] = os.path.join(directory, "calls")
        conf, users = os.path.join(directory, "conf"), os.path.join(directory, "users.acl")
        for path, text in ((conf, f"aclfile {users}"), (users, "user default on nopass ~* +@all")):
            with open(path, "w", encoding="ascii") as file:
                file.write(text + "\n")
        configured = wrapped(directory, options, arguments=conf)
        with configured.server(environment=environment) as server, server.connect() as connection:
            for words, path in ((("CONFIG", "REWRITE"), conf), (("ACL", "SAVE"), users)):
                if os.path.exists(calls):
                    os.unlink(calls)
                require_equal(connection.call(*words).raw, b"+OK\r\n", words)
                with open(calls, encoding="ascii") as file:
                    noted = [line.split() for line in file]
                new = noted[0][1]
                require(new.startswith(path + "."), noted)
                require_equal(noted, [["fchmod", new, "600"], ["fsync", new, "-"],
                                      ["rename", new, path], ["fsync", directory, "-"]], words)


def test_a_new_directory_is_synced(options):
    """The parent of a new data directory is synced before the first acknowledgement."""
    with scratch() as directory:
        environment = preload(directory, options, "calls", NOTED_CALLS)
        calls = environment["NOTED_CALLS"] = os.path.join(directory, "calls")
        server = options.server({"appendonly": "yes", "dir": os.path.join(directory, "data")},
                                environment=environment)
        with server:
            with open(calls, encoding="ascii") as file:
                synced = [line.split()[1].rstrip("/") for line in file if line.startswith("fsync")]
            require(directory in synced, synced)


def test_idleness_by_the_steady_clock(options):
    """An idle client ends by `timeout` though the wall clock is put back meanwhile."""
    with scratch() as directory:
        clock = WallClock(directory)
        with options.server({"timeout": "2"}, environment=clock.environment()) as server:
            with server.connect() as idle:
                idle.call("PING")
                uptime = int(info(idle, "server")["uptime_in_seconds"])
                clock.step_ms(-3_600_000)
                require(closes(idle), "the idle one ends")
            with server.connect() as other:
                require(uptime <= int(info(other, "server")["uptime_in_seconds"]) < 3000, "uptime")
                line = other.call("CLIENT", "LIST").value.decode()
                require(int(re.search(r" age=(-?\d+) ", line).group(1)) >= 0, line)


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
