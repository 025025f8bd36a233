"""Runs one untrusted program in bubblewrap.

The program has no network, sees no file but /usr (read-only) and its own source, may write to /tmp
only, which is memory and bounded, and its processes, their time and their output are bounded. Give
the worker a memory limit of its own besides (MemoryMax= of its systemd unit, or a container's): the
limit here is for each process.
"""

import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

LANGUAGES = {
    "python": ["/usr/bin/python3", "-I"],
    "shell": ["/bin/sh"],
}
SOURCE = "/job/source"
# Root is exempt from limits of processes, so its programs run as nobody.
NOBODY = 65534
# How often a running program's handler looks for a cancel.
TICK_S = 0.1


class NoSandbox(Exception):
    """bubblewrap is not installed, or may not make namespaces here."""


@dataclass(frozen=True)
class Limits:
    """What a program may use. Bytes and seconds."""

    wall_s: float = 10.0
    cpu_s: int = 5
    memory_bytes: int = 512 << 20
    processes: int = 64
    disk_bytes: int = 32 << 20
    output_bytes: int = 64 << 10


@dataclass(frozen=True)
class Outcome:
    """How a program ended: `exit` is its exit code, negative for a signal, and None if it was
    ended by the judge, for `reason`: "wall time" or "output"."""

    exit: int | None
    reason: str | None = None


def confine(limits: Limits, source_fd: int) -> list[str]:
    """The words before the program's own: bubblewrap, and the limits inside of it."""
    return [
        "bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv",
        "--setenv", "PATH", "/usr/bin:/bin", "--uid", str(NOBODY), "--gid", str(NOBODY),
        "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin",
        "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
        "--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev",
        "--size", str(limits.disk_bytes), "--tmpfs", "/tmp", "--chdir", "/tmp",
        "--ro-bind-data", str(source_fd), SOURCE, "--",
        "/usr/bin/prlimit", f"--nproc={limits.processes}", f"--as={limits.memory_bytes}",
        f"--cpu={limits.cpu_s}", "--core=0", "--",
    ]


def require_sandbox() -> None:
    """Raises NoSandbox unless a program can be confined here."""
    if shutil.which("bwrap") is None:
        raise NoSandbox("bubblewrap is not installed (apt-get install bubblewrap)")
    outcome, output = collect("shell", "echo confined", Limits())
    if outcome.exit != 0:
        raise NoSandbox(f"bubblewrap does not work here: {output.strip()}")


def collect(language: str, code: str, limits: Limits, unsafe: bool = False) -> tuple[Outcome, str]:
    """Runs a program to its end; returns its outcome and its output."""
    parts: list[bytes] = []
    outcome = run(language, code, limits, parts.append, unsafe=unsafe)
    return outcome, b"".join(parts).decode(errors="replace")


def run(language: str, code: str, limits: Limits, output: Callable[[bytes], object],
        check: Callable[[], object] = lambda: None, unsafe: bool = False) -> Outcome:
    """Runs a program. `output` gets what it writes, as it comes; `check` is called ten times a
    second and ends the program by raising. `unsafe`: without a sandbox, for trusted code only."""
    process = start(language, code, limits, unsafe)
    try:
        return follow(process, limits, output, check)
    finally:
        end(process)


def start(language: str, code: str, limits: Limits, unsafe: bool) -> subprocess.Popen[bytes]:
    """`code` reaches the program as a file that exists in memory only."""
    with os.fdopen(os.memfd_create("source"), "wb") as source:
        source.write(code.encode())
        source.flush()
        source.seek(0)
        fd = source.fileno()
        words = [*LANGUAGES[language], f"/dev/fd/{fd}"]
        if not unsafe:
            words = [*confine(limits, fd), *LANGUAGES[language], SOURCE]
        as_nobody = os.geteuid() == 0 and not unsafe
        return subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            pass_fds=[fd], start_new_session=True, user=NOBODY if as_nobody else None,
            group=NOBODY if as_nobody else None, extra_groups=[] if as_nobody else None)


def follow(process: subprocess.Popen[bytes], limits: Limits, output: Callable[[bytes], object],
           check: Callable[[], object]) -> Outcome:
    assert process.stdout is not None
    deadline = time.monotonic() + limits.wall_s
    left_bytes = limits.output_bytes
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            check()
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return Outcome(None, "wall time")
            if not selector.select(min(TICK_S, left_s)):
                continue
            part = os.read(process.stdout.fileno(), 16 << 10)
            if not part:
                break
            output(part[:left_bytes])
            left_bytes -= len(part)
            if left_bytes < 0:
                return Outcome(None, "output")
    try:
        return Outcome(process.wait(max(deadline - time.monotonic(), 0)))
    except subprocess.TimeoutExpired:
        return Outcome(None, "wall time")


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends the program with everything that it started: its namespace of processes ends with it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # It has ended.
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
