"""Shared by the scripts of the tests: servers with options, checks, and running a file's tests.

Each folder of scripts has a link to this package, so that a script finds it beside itself, however
it is started. Modules hold what several scripts use; those of one folder are in a package in it.

A test is a function `test_...(options)` whose docstring is the requirement. `run` prints one line
for each and "N passed, N failed", with ", N skipped" where some could not run here; a failure shows
where, and the end of the last server's log. SLUICE_FIRST_FAILURE in the environment ends a run with
its first failure.
"""

import argparse
import concurrent.futures
import contextlib
import itertools
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import traceback

from harness import servers
from harness.resp import Connection, ConnectionClosed, ReplyTimeout  # noqa: F401

IN_MEMORY = {"appendonly": "no", "save": ""}
NPM = pathlib.Path(__file__).resolve().parents[1] / "npm"


class Skipped(Exception):
    """The test cannot run on this machine; the text says why."""


def need_program(name):
    """Where it is; a test without it is not run, and says so."""
    path = shutil.which(name)
    if path is None:
        raise Skipped(f"NOT RUN: no {name}; tools/setup test installs it")
    return path


def need_npm(package):
    """node, if the package of tests/npm is there."""
    node = need_program("node")
    if not (NPM / "node_modules" / package).exists():
        raise Skipped(f"NOT RUN: no {package} in tests/npm; tools/setup test installs it")
    return node


class Options:
    def __init__(self, program, io_threads):
        self.program = os.path.abspath(program)
        self.io_threads = io_threads
        self.last = None

    def server(self, directives=None, **others):
        """A server that is not started yet; in memory unless the directives say more."""
        merged = {"io-threads": self.io_threads}
        merged.update(IN_MEMORY if directives is None or "appendonly" not in directives else {})
        merged.update(directives or {})
        self.last = servers.Server(self.program, merged, kind="sluice", **others)
        return self.last

    def run(self, *arguments, timeout_s=20, **others):
        """The program to its end: (exit code, what it printed)."""
        done = subprocess.run([self.program, *arguments], stdout=subprocess.PIPE, check=False,
                              stderr=subprocess.STDOUT, timeout=timeout_s, **others)
        return done.returncode, done.stdout.decode(errors="replace")


def require(condition, what):
    if not condition:
        raise AssertionError(what)


def require_equal(got, expected, what="value"):
    if got != expected:
        raise AssertionError(f"{what}: {got!r}, expected {expected!r}")


def wait_until(condition, timeout_s=60.0, what="the condition"):
    """Asks until the condition gives something true, and returns that."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if got := condition():
            return got
        time.sleep(0.005)
    raise AssertionError(f"{what} did not come about within {timeout_s} s")


def info(connection, section="everything"):
    """INFO's fields as a dictionary."""
    text = connection.call("INFO", section).value
    text = text.decode() if isinstance(text, bytes) else text
    return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)


def closes(connection, timeout_s=20.0):
    """True if the server closes the connection in time, whatever it says before."""
    connection.socket.settimeout(timeout_s)
    try:
        while connection.socket.recv(1 << 16):
            pass
        return True
    except socket.timeout:
        return False
    except OSError:
        return True


def own_address():
    """An address of this machine that is not loopback; None if it has none other."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
            address = probe.getsockname()[0]
        except OSError:
            return None
    return None if address.startswith("127.") else address


def rss_bytes(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def open_files(pid):
    """The numbers of the process's open descriptors."""
    return [int(number) for number in os.listdir(f"/proc/{pid}/fd")]


def allow_files(count):
    """This process may have so many files open, and a hundred more."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    require(hard >= count + 100, f"{hard} open files are allowed")


def open_paths(pid):
    """What they refer to: a path, or words such as `socket:[4711]`."""
    paths = []
    for number in open_files(pid):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            paths.append(os.readlink(f"/proc/{pid}/fd/{number}"))
    return paths


def all_stopped(pid):
    """Whether none of the process's threads runs, after SIGSTOP."""
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/stat", encoding="ascii") as stat:
            if stat.read().rsplit(")", 1)[1].split()[0] != "T":
                return False
    return True


@contextlib.contextmanager
def stopped(pid):
    """None of the process's threads runs: whatever is sent to them waits, in its order."""
    def is_stopped():
        os.kill(pid, signal.SIGSTOP)  # Others may continue it meanwhile.
        return all_stopped(pid)

    try:
        wait_until(is_stopped, what="the stop")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def slack(connection):
    """A sanitizer's allocator keeps what was freed: limits of memory are wider there."""
    return 4 if info(connection, "memory")["mem_allocator"] == "sanitizer" else 1


def scratch():
    return tempfile.TemporaryDirectory(prefix="sluice-test-")


def summary(passed, failed, skipped=0):
    """The last line that a file of tests prints; tools/test adds these up."""
    return f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")


def run_seeded(runs, seed):
    """Runs each of (title, function), which returns what it has done; returns the exit code."""
    failed = skipped = 0
    for title, function in runs:
        began = time.monotonic()
        try:
            result = "ok: " + function()
        except Skipped as reason:
            skipped += 1
            print(f"skip   {title} ({reason})", flush=True)
            continue
        except Exception:  # pylint: disable=broad-except
            failed += 1
            result = f"FAILED, seed {seed}\n{traceback.format_exc()}"
        print(f"{title}: {result} ({time.monotonic() - began:.1f} s)", flush=True)
    print(f"seed {seed}")
    print(summary(len(runs) - failed - skipped, failed, skipped))
    return 1 if failed else 0


def alone(test):
    """A decorator: the test measures time, so nothing else runs beside it (run's at_once)."""
    test.alone = True
    return test


def run_one(program, threads, test):
    """Prints the test's line; returns "ok", "skip" or "FAILED"."""
    options = Options(program, threads)
    began = time.monotonic()
    note = ""
    try:
        test(options)
        verdict = "ok"
    except Skipped as reason:
        verdict, note = "skip", f" ({reason})"
    except Exception:  # pylint: disable=broad-except
        verdict = "FAILED"
        note = "\n" + traceback.format_exc()
        if options.last is not None:
            note += "the log's end:\n" + options.last.log_tail()
    finally:
        if options.last is not None:
            options.last.close()
    took_s = time.monotonic() - began
    name = (test.__doc__ or test.__name__).split("\n")[0].rstrip(".")
    print(f"{verdict:7}{name}, {threads} I/O thread(s), {took_s:.1f} s{note}", flush=True)
    return verdict


def run(module, io_threads=(1,), at_once=1):
    """`at_once`: so many tests run at a time, each in a thread; first those that are not alone."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", default=str(servers.DEFAULT_SLUICE))
    parser.add_argument("--only", default="", help="part of a test's name")
    chosen = parser.parse_args()
    tests = [test for name, test in vars(module).items() if name.startswith("test_")]
    runs = [(threads, test) for threads, test in itertools.product(io_threads, tests)
            if chosen.only in test.__name__]
    verdicts = []

    def one(threads, test):
        if not (servers.FIRST_FAILURE and "FAILED" in verdicts):
            verdicts.append(run_one(chosen.server, threads, test))

    together = [each for each in runs if at_once > 1 and not hasattr(each[1], "alone")]
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        list(pool.map(lambda each: one(*each), together))
    for each in runs:
        if each not in together:
            one(*each)
    print(summary(verdicts.count("ok"), verdicts.count("FAILED"), verdicts.count("skip")))
    return 1 if "FAILED" in verdicts else 0
