"""The rows of bench/replicated: what runs through a group of two nodes, and what it is compared
with in the same run. A row's `run` gets a `Bench` (below) and returns a dict of figures for one
round; its goals compare one of them with another.

All processes share all cores: two nodes, three members of etcd, the load. Nodes and single servers
write their own logs as everysec has it, unless a row says otherwise."""

import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import statistics
import time

from compare_lib import rows as compare
from compare_lib.measure import Asked, CycleLoad, PinnedServer, cpu_s, rss_bytes, run_cycle
from compare_lib.rows import ALWAYS, CONCURRENT, EVERYSEC, Goal, Row
from harness import scratch, wait_until
from harness.group import Group
from harness.servers import Server, steady_port
from replicated_lib import bare

IN_FLIGHT = 4        # journal-in-flight
ONE_KIB = 1024
VALUE_BYTES = 64 << 10
WRITERS = 64
UNPIPELINED = 50
CATCH_UP_S = 300.0
LOG_BYTES = 1 << 30  # journal-log-bytes of a soak of LONG_SOAK_S, and less for a shorter one
LONG_SOAK_S = 600
NATIVE = (*CONCURRENT, "--native")
# The log is not trimmed while its frames are counted.
NO_CHECKPOINTS = {"checkpoint-log-bytes": "16gb"}


@dataclasses.dataclass
class Bench:
    """What a row's run has available."""
    program: str      # the server
    cycle_load: str
    append_load: str
    seconds: int      # how long each side of a row runs
    jobs: int         # of a bootstrap
    soak_s: int       # of the row of memory
    scale: float = 1  # for compare_lib

    @contextlib.contextmanager
    def group(self, **directives):
        with scratch() as directory:
            token = pathlib.Path(directory, "token")
            token.write_text("a-token-of-the-nodes-0123456789\n", encoding="utf-8")
            given = {"replication-token-file": token, **EVERYSEC, **NO_CHECKPOINTS, **directives}
            with Group(self.program, directives=given,
                       of_node=lambda: {"http-port": steady_port()}) as group:
                yield group

    def count(self, _full):
        return self.jobs

    def append(self, group, size_bytes, depth=1):
        return bare.append(self.append_load, group.etcd, size_bytes, depth, self.seconds)

    def cycles(self, server, *arguments):
        """Both queues' figures are per second or per cycle."""
        return run_cycle(self.cycle_load, server, *arguments, "--seconds", self.seconds)


def log_of(node):
    """Frames and bytes that the replicated log has had, once it has everything."""
    def settled():
        facts = node.facts()
        return facts if facts.get("sluice_group_lsn") == str(node.lsn()) else None
    facts = wait_until(settled, what="a settled log")
    return int(facts["sluice_group_seq"]), int(facts["sluice_group_log_bytes"])


def wait_in_sync(standby, lsn):
    # Each question is work for it.
    wait_until(lambda: time.sleep(0.02) or standby.lsn() >= lsn, CATCH_UP_S, "a standby in sync")


def with_frames(node, load):
    """Runs a load that returns its figures, and adds the log's."""
    frames, size = log_of(node)
    began = time.monotonic()
    result = load()
    took_s = time.monotonic() - began
    frames_after, size_after = log_of(node)
    written = size_after - size
    return {**result, "log_bytes": written, "log_mb_s": written / took_s / 1e6,
            "frame_bytes": written / (frames_after - frames)}


def write_values(node, seconds, size, connections):
    """Values that do not compress, each connection one at a time. Returns p50."""
    contents = os.urandom(16 << 20)
    end = time.monotonic() + seconds

    def write(number):
        times = []
        with node.connect() as connection:
            while (began := time.monotonic()) < end:
                at = random.randrange(len(contents) - size)
                reply = connection.call("SET", f"value:{number}", contents[at:at + size])
                assert reply.raw == b"+OK\r\n", reply
                times.append(time.monotonic() - began)
        return times

    with concurrent.futures.ThreadPoolExecutor(connections) as pool:
        times = [each for part in pool.map(write, range(connections)) for each in part]
    return {"p50_ms": statistics.median(times) * 1000}


# -- The path of an append ------------------------------------------------------------------------


def run_bandwidth(bench):
    with bench.group() as group:
        node = group.primary()
        ours = with_frames(node,
                           lambda: write_values(node, bench.seconds, VALUE_BYTES, WRITERS))
        limit = bench.append(group, ours["frame_bytes"], IN_FLIGHT)
        return {**ours, "bare_mb_s": limit["mb_s"]}


def run_one_client(bench):
    with bench.group() as group:
        node = group.primary()
        ours = with_frames(node, lambda: write_values(node, bench.seconds, ONE_KIB - 100, 1))
        return {**ours, "bare_p50_ms": bench.append(group, ONE_KIB)["p50_ms"]}


def run_unpipelined(bench):
    with bench.group() as group:
        node = group.primary()
        ours = with_frames(node, lambda: bench.cycles(
            node, "--native", "--connections", UNPIPELINED, "--pipeline", 1))
        limit = bench.append(group, ours["frame_bytes"])
        return {**ours, "bare_p50_ms": limit["p50_ms"],
                "bare_per_s": UNPIPELINED * 1000 / limit["p50_ms"]}


# -- Beside one machine ---------------------------------------------------------------------------


def run_seeds_cycle(bench):
    with bench.group() as group:
        ours = bench.cycles(group.primary(), *CONCURRENT)
    with Server(bench.program, ALWAYS) as server:
        local = bench.cycles(server, *CONCURRENT)
    return {"per_s": ours["per_s"], "local_per_s": local["per_s"]}


def journal_bytes(server):
    with server.connect() as connection:
        text = connection.call("INFO", "persistence").value.decode()
    return int(text.split("sluice_journal_bytes:")[1].split()[0])


def native_cpu_us(bench, server):
    """The server's CPU of one native cycle, and how many there were."""
    result = bench.cycles(server, *NATIVE)
    return result["cpu_us"] * result["requests"] / result["popped"], result["popped"]


def run_cost(bench):
    with bench.group() as group:
        node, standby = group.primary(), group.standby()
        before, at_standby = journal_bytes(node), cpu_s(standby.pid)
        result = {}

        def load():
            result["cycle_us"], result["cycles"] = native_cpu_us(bench, node)
            return result

        ours = with_frames(node, load)
        wait_in_sync(standby, node.lsn())
        spent_s = cpu_s(standby.pid) - at_standby
        ours["standby_us"] = spent_s * 1e6 / ours["cycles"]
        ours["journal_bytes"] = journal_bytes(node) - before
    with Server(bench.program, EVERYSEC) as server:
        ours["local_us"], _ = native_cpu_us(bench, server)
    return ours


# -- Standbys -------------------------------------------------------------------------------------


def run_apply(bench):
    """The standby is stopped while the primary works, and applies all of it afterwards."""
    with bench.group() as group:
        node, standby = group.primary(), group.standby()
        before = node.lsn()
        standby.freeze()
        result = bench.cycles(node, *NATIVE)
        units = node.lsn() - before
        began = time.monotonic()
        standby.thaw()
        wait_in_sync(standby, before + units)
        return {"units_s": units / result["seconds"],
                "applied_s": units / (time.monotonic() - began)}


def run_bootstrap(bench):
    with bench.group(**{"checkpoint-copies": 1}) as group:
        primary = Asked(group.primary())
        jobs = compare.fill_jobs(bench, primary, native=True)
        group.wait_in_sync(CATCH_UP_S)
        frames = int(group.primary().facts()["sluice_group_log_frames"])
        for node in map(Asked, group.nodes):
            compare.begin_checkpoint(node)
            node.wait_until_quiet()
            node.close()
        wait_until(lambda: int(group.primary().facts()["sluice_group_log_frames"]) < frames / 2,
                   CATCH_UP_S, "a trimmed log")
        began = time.monotonic()
        node = group.add_node().start(wait=False)
        # Each question is work for the node that loads.
        wait_until(lambda: time.sleep(0.05) or node.is_whole(), CATCH_UP_S, "another node's data")
        took_s = time.monotonic() - began
        compare.check_jobs(primary, jobs, native=True)
        primary.close()
    with PinnedServer(bench.program, EVERYSEC) as server:
        compare.fill_jobs(bench, server, native=True)
        return {"bootstrap_s": took_s, "restart_s": compare.restart(server, every_core=True)}


# -- Memory ---------------------------------------------------------------------------------------


def etcd_file_bytes(etcd):
    """Of the largest member."""
    told = json.loads(etcd.ctl("endpoint", "status", "-w", "json"))
    return max(each["Status"]["dbSize"] for each in told)


def run_memory(bench):
    log_bytes = LOG_BYTES * min(bench.soak_s, LONG_SOAK_S) // LONG_SOAK_S
    with bench.group(**{"journal-log-bytes": log_bytes}) as group:
        node, standby = group.primary(), group.standby()
        load = CycleLoad(bench.cycle_load, node, *NATIVE, "--seconds", bench.soak_s)
        load.result()
        wait_in_sync(standby, node.lsn())
        return {"primary_mb": rss_bytes(node.pid) / 1e6,
                "standby_mb": rss_bytes(standby.pid) / 1e6,
                "etcd_mb": max(rss_bytes(each.pid) for each in group.etcd.processes) / 1e6,
                "etcd_file_mb": etcd_file_bytes(group.etcd) / 1e6,
                "log_limit_mb": log_bytes / 1e6, "gib_mb": (1 << 30) / 1e6}


def goal(metric, relation, ratio, base):
    return Goal(metric, relation, ratio, base_metric=base, own=True)


# Names and units of what goals compare.
LABELS = {
    "log_mb_s": ("MB/s of log", 1), "bare_mb_s": ("bare frames of that size", 1),
    "p50_ms": ("p50 ms", 2), "bare_p50_ms": ("bare append, p50 ms", 2),
    "per_s": ("commands a second", 0), "bare_per_s": ("connections ÷ bare p50", 0),
    "local_per_s": ("always on one machine", 0),
    "cycle_us": ("primary's CPU us a cycle", 1), "local_us": ("everysec on one machine", 1),
    "standby_us": ("standby's CPU us a cycle", 1),
    "log_bytes": ("bytes in etcd", 0), "journal_bytes": ("bytes in the local log", 0),
    "applied_s": ("units applied a second", 0), "units_s": ("the primary's", 0),
    "bootstrap_s": ("s until the new node is whole", 2), "restart_s": ("local restart", 2),
    "standby_mb": ("standby's RSS MB", 1), "primary_mb": ("primary's", 1),
    "etcd_mb": ("etcd's RSS MB", 0), "gib_mb": ("1 GiB", 0),
    "etcd_file_mb": ("etcd's file MB", 1), "log_limit_mb": ("journal-log-bytes", 1),
    "frame_bytes": ("bytes a frame", 0),
}

ROWS = [
    Row("bandwidth", "64 clients write 64 KiB each", run_bandwidth,
        [goal("log_mb_s", ">=", 0.8, "bare_mb_s")]),
    Row("one-client", "one client, one command", run_one_client,
        [goal("p50_ms", "<=", 1.5, "bare_p50_ms")]),
    Row("unpipelined", "native cycle, 50 connections, no pipeline", run_unpipelined,
        [goal("per_s", ">=", 0.8, "bare_per_s")]),
    Row("seeds-cycle", "the seed's cycle -P 16, 50 clients", run_seeds_cycle,
        [goal("per_s", ">=", 0.3, "local_per_s")]),
    Row("cost", "native cycle -P 16, 50 clients", run_cost,
        [goal("cycle_us", "<=", 1.35, "local_us"), goal("standby_us", "<=", 0.6, "cycle_us"),
         goal("log_bytes", "<=", 0.5, "journal_bytes")]),
    Row("apply", "what a stopped standby has missed of native cycles", run_apply,
        [goal("applied_s", ">=", 2, "units_s")]),
    Row("bootstrap", "native jobs pending", run_bootstrap,
        [goal("bootstrap_s", "<=", 2.5, "restart_s")]),
    Row("memory", "after native cycles", run_memory,
        [goal("standby_mb", "<=", 1.1, "primary_mb"), goal("etcd_mb", "<=", 1, "gib_mb"),
         goal("etcd_file_mb", "<=", 2, "log_limit_mb")]),
]
