"""The tools of bench/compare: a server on a core of its own, its CPU time and memory from /proc,
and the load programs. The calling process and all load run on the other core. One thread."""

import contextlib
import csv
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import time

from harness.resp import Connection
from harness.servers import LOOPBACK, Server

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVER_CORE = 0
LOAD_CORE = 1
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class LoadFailed(Exception):
    """A load program ended with an error, or found a wrong reply."""


def cpu_s(pid):
    """User and system time of the whole process: all threads, including those that have ended."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def rss_bytes(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    raise LoadFailed(f"process {pid} has no VmRSS")


@contextlib.contextmanager
def on_cores(cores):
    """Runs the block on `cores`; children started in it stay there."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class Asked:
    """A server with a connection for queries, which the caller starts and ends."""

    def __init__(self, server):
        self.server = server
        self.kind = self.server.kind
        self._connection = None

    @property
    def pid(self):
        return self.server.pid

    @property
    def port(self):
        return self.server.port

    def call(self, *arguments):
        if self._connection is None:
            self._connection = Connection(LOOPBACK, self.port, 300.0)
        reply = self._connection.call(*arguments)
        if reply.is_error:
            raise LoadFailed(reply.raw.decode(errors="replace").strip())
        return reply.value

    def info(self, section):
        text = self.call("INFO", section).decode()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def wait_until_quiet(self, limit_s=300.0):
        """Waits until no snapshot, rewrite or checkpoint is in progress."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            info = self.info("persistence")
            if all(info.get(name, "0") == "0" for name in (
                    "rdb_bgsave_in_progress", "aof_rewrite_in_progress", "aof_rewrite_scheduled")):
                return
            time.sleep(0.02)
        raise LoadFailed(f"{self.kind} did not finish its checkpoint in {limit_s} s")

    def close(self):
        """Only the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class PinnedServer(Asked):
    """A server on SERVER_CORE. A context manager."""

    def __init__(self, program, directives):
        super().__init__(Server(program, directives, start_timeout_s=300.0))

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.server.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()
        self.server.close()

    def start(self, every_core=False):
        """Returns the seconds until the server answered PING with all its data."""
        with on_cores(range(os.cpu_count()) if every_core else {SERVER_CORE}):
            started = time.monotonic()
            self.server.start()
            return time.monotonic() - started

    def stop(self):
        self.close()
        return self.server.stop(timeout_s=120.0)


def with_cpu(server, run):
    """Runs the load, and adds the server's CPU time per request and its memory."""
    before = cpu_s(server.pid)
    result = run()
    spent_s = cpu_s(server.pid) - before
    result["cpu_us"] = spent_s * 1e6 / result["requests"]
    result["rss_mb"] = rss_bytes(server.pid) / 1e6
    return result


def redis_benchmark(server, test, requests, pipeline, key_range):
    """`test`: the name of one of its tests, or the words of a command."""
    command = ["redis-benchmark", "-h", LOOPBACK, "-p", str(server.port), "--csv",
               "-n", str(requests), "-c", "50", "-P", str(pipeline), "-r", str(key_range),
               *(["-t", test] if isinstance(test, str) else test)]

    def run():
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode != 0:
            raise LoadFailed(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        if len(rows) != 1:
            raise LoadFailed(f"{' '.join(command)}: unexpected output {done.stdout!r}")
        return {"requests": requests, "per_s": float(rows[0]["rps"]),
                "p50_us": float(rows[0]["p50_latency_ms"]) * 1000,
                "p99_us": float(rows[0]["p99_latency_ms"]) * 1000}

    return with_cpu(server, run)


def bullmq_load(server, jobs):
    """BullMQ of tests/npm with one process of node."""
    command = ["node", str(ROOT / "bench" / "load" / "bullmq_load.js")]
    environment = dict(os.environ, SLUICE_PORT=str(server.port), JOBS=str(jobs),
                       NODE_PATH=str(ROOT / "tests" / "npm" / "node_modules"))
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False,
                          env=environment)
    if done.returncode != 0:
        raise LoadFailed(f"BullMQ (tools/setup test installs it): {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


class CycleLoad:
    """One run of bench/load/cycle_load. `signal_window` restarts its measured window."""

    def __init__(self, program, server, *arguments):
        command = [str(program), "--port", str(server.port)] + [str(a) for a in arguments]
        self._command = " ".join(command)
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                         text=True)

    def signal_window(self):
        self._process.send_signal(signal.SIGUSR1)

    def end(self):
        self._process.send_signal(signal.SIGINT)
        return self.result()

    def abandon(self):
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()

    def result(self):
        try:
            out, err = self._process.communicate(timeout=600)
        except BaseException:
            self.abandon()
            raise
        if self._process.returncode != 0:
            raise LoadFailed(f"{self._command}: exit {self._process.returncode}: {out}{err}")
        result = json.loads(out)
        result["requests"] = result["commands"]
        result["per_s"] = result["commands_per_s"]
        return result


def run_cycle(program, server, *arguments):
    return with_cpu(server, lambda: CycleLoad(program, server, *arguments).result())


def machine():
    """Lines that describe the machine."""
    def first(path, pattern):
        with contextlib.suppress(OSError):
            found = re.search(pattern, pathlib.Path(path).read_text(encoding="utf-8"), re.M)
            if found:
                return found.group(1).strip()
        return "unknown"

    memory_kb = first("/proc/meminfo", r"^MemTotal:\s+(\d+)")
    memory = f"{int(memory_kb) / 1e6:.0f} GB" if memory_kb.isdigit() else "unknown memory"
    processor = first("/proc/cpuinfo", r"^model name\s*:\s*(.*)$")
    system = first("/etc/os-release", r'^PRETTY_NAME="(.*)"$')
    return [f"{processor}, {os.cpu_count()} cores, {memory}",
            f"{system}, Linux {os.uname().release}"]
