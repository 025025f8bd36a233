"""The rows of bench/compare: what runs on each server, and the goals for Sluice. A row's `run` gets
a `Bench` (below), starts a fresh server and returns a dict of figures for one round."""

import dataclasses
import time
from typing import Callable

from compare_lib.measure import (CycleLoad, LoadFailed, PinnedServer, bullmq_load, redis_benchmark,
                                 rss_bytes, run_cycle, with_cpu)

NO_PERSISTENCE = {"appendonly": "no", "save": ""}
EVERYSEC = {"appendonly": "yes", "appendfsync": "everysec", "save": ""}
ALWAYS = {"appendonly": "yes", "appendfsync": "always", "save": ""}

KEYS = 100_000
FIXED_PART_MB = 96.0
CONCURRENT = ("--connections", 50, "--pipeline", 16, "--payload", 300, "--cap", 1000)


@dataclasses.dataclass
class Bench:
    """What a row's run has available."""
    program: str          # the server of this round
    directives: dict      # additional directives for it
    cycle_load: str
    scale: float          # 1, or less with --quick
    shared: dict          # kept between rounds, for what must be the same for both servers

    def count(self, full):
        return max(1000, int(full * self.scale))

    def server(self, *directives):
        merged = {}
        for part in directives:
            merged.update(part)
        merged.update(self.directives)
        return PinnedServer(self.program, merged)


@dataclasses.dataclass
class Goal:
    """`metric` of Sluice against `base_metric` of Redis, or of Sluice itself with `own`."""
    metric: str
    relation: str         # "<=", "<" or ">="
    ratio: float
    base_metric: str = ""
    own: bool = False
    less_mb: float = 0.0  # a constant that is subtracted from Sluice's figure first

    def judge(self, redis, sluice):
        """(ratio, reached), or None if a figure is missing."""
        base = ((sluice if self.own else redis) or {}).get(self.base_metric or self.metric)
        value = (sluice or {}).get(self.metric)
        if value is None or not base:
            return None
        ratio = max(0.0, value - self.less_mb) / base
        reached = {"<=": ratio <= self.ratio, "<": ratio < self.ratio,
                   ">=": ratio >= self.ratio}[self.relation]
        return ratio, reached


@dataclasses.dataclass
class Row:
    name: str             # for --rows
    title: str
    run: Callable
    goals: list
    by_name: bool = False  # only if --rows gives the whole name: it takes minutes
    counts_cpu: bool = True  # its figures have cpu_us


# -- redis-benchmark ------------------------------------------------------------------------------


def fill_strings(server, _count):
    for start in range(0, KEYS, 1000):
        pairs = []
        for number in range(start, start + 1000):
            pairs += ["key:%012d" % number, "VXK"]
        server.call("MSET", *pairs)


def fill_set(server, _count):
    for start in range(0, KEYS, 1000):
        server.call("SADD", "myset", *("element:%012d" % n for n in range(start, start + 1000)))


def fill_list(server, count):
    for start in range(0, count, 1000):
        server.call("RPUSH", "mylist", *["VXK"] * min(1000, count - start))


def fill_sorted_set(server, count):
    # Scores come in scattered order, as with redis-benchmark's own ZADD.
    for start in range(0, count, 1000):
        pairs = []
        for number in range(start, min(count, start + 1000)):
            pairs += [number * 7919 % count, "element:%012d" % number]
        server.call("ZADD", "myzset", *pairs)


def fill_stream(server, count):
    for start in range(0, count, 1000):
        script = "for i = 1, ARGV[1] do redis.call('XADD', KEYS[1], '*', 'f', 'VXK') end"
        server.call("EVAL", script, 1, "mystream", min(1000, count - start))
    server.call("XGROUP", "CREATE", "mystream", "g", "0")


def benchmark_run(test, full_requests, pipeline=16, key_range=KEYS, fill=None):
    def run(bench):
        requests = bench.count(full_requests)
        with bench.server(NO_PERSISTENCE) as server:
            if fill:
                fill(server, requests)
            return redis_benchmark(server, test, requests, pipeline, key_range)
    return run


CPU = Goal("cpu_us", "<=", 0.6)


def benchmark_rows():
    rows = []
    fills = {"SET": fill_strings, "GET": fill_strings, "SADD": fill_set, "LPUSH": fill_list,
             "LPOP": fill_list, "ZPOPMIN": fill_sorted_set}
    for command, fill in fills.items():
        test = command.lower()
        for state, filler in (("empty", None), ("filled", fill)):
            requests = 1_000_000 if (test, state) == ("zpopmin", "filled") else 2_000_000
            rows.append(Row(f"{test}-{state}", f"{command} -P 16, {state} keys",
                            benchmark_run(test, requests, fill=filler), [CPU]))
    rows.append(Row("zadd", "ZADD -P 16, -r 1000000",
                    benchmark_run("zadd", 2_000_000, key_range=1_000_000),
                    [Goal("cpu_us", "<=", 0.45)]))
    rows.append(Row("xadd", "XADD -P 16",
                    benchmark_run(["XADD", "mystream", "*", "f", "VXK"], 2_000_000), [CPU]))
    read = ["XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "STREAMS", "mystream", ">"]
    rows.append(Row("xreadgroup", "XREADGROUP COUNT 1 -P 16",
                    benchmark_run(read, 1_000_000, fill=fill_stream), [CPU]))
    rows.append(Row("hset", "HSET -P 16", benchmark_run("hset", 2_000_000), [CPU]))
    rows.append(Row("rpush", "RPUSH -P 16", benchmark_run("rpush", 2_000_000), [CPU]))
    rows.append(Row("blpop", "BLPOP -P 16, filled list",
                    benchmark_run(["BLPOP", "mylist", "0"], 1_000_000, fill=fill_list), [CPU]))
    for command in ("SET", "GET"):
        rows.append(Row(f"{command.lower()}-unpipelined", f"{command}, no pipeline",
                        benchmark_run(command.lower(), 300_000, pipeline=1),
                        [Goal("per_s", ">=", 1.0), Goal("p99_us", "<=", 1.0),
                         Goal("cpu_us", "<=", 0.95)]))
    return rows


# -- the seed's cycle -----------------------------------------------------------------------------


def cycle_run(persistence, full_jobs=0, seconds=0.0):
    def run(bench):
        amount = (("--jobs", bench.count(full_jobs)) if full_jobs
                  else ("--seconds", max(1.0, seconds * bench.scale)))
        with bench.server(persistence) as server:
            return run_cycle(bench.cycle_load, server, *CONCURRENT, *amount)
    return run


def cycle_rows():
    return [
        Row("cycle", "the seed's cycle -P 16, no persistence",
            cycle_run(NO_PERSISTENCE, full_jobs=400_000), [Goal("cpu_us", "<=", 0.5)]),
        Row("cycle-everysec", "the seed's cycle -P 16, everysec",
            cycle_run(EVERYSEC, full_jobs=400_000), [Goal("cpu_us", "<=", 0.5)]),
        Row("cycle-always", "the seed's cycle -P 16, always, 50 clients",
            cycle_run(ALWAYS, seconds=4.0), [Goal("per_s", ">=", 1.1)]),
    ]


# -- a job library -------------------------------------------------------------------------------
#
# Figures are per job: added in bulk, taken, completed. The load is limited by node.


def bullmq_run(persistence):
    def run(bench):
        with bench.server(persistence) as server:
            return with_cpu(server, lambda: bullmq_load(server, bench.count(50_000)))
    return run


def library_rows():
    return [
        Row("bullmq", "BullMQ, 50,000 jobs added and processed, no persistence",
            bullmq_run(NO_PERSISTENCE), [Goal("cpu_us", "<=", 0.8)]),
        Row("bullmq-everysec", "BullMQ, 50,000 jobs added and processed, everysec",
            bullmq_run(EVERYSEC), [Goal("cpu_us", "<=", 0.8)]),
    ]


# -- the native queue -----------------------------------------------------------------------------
#
# Redis runs the seed's cycle for the same jobs, Sluice Q.ADD, Q.POP and Q.ACK. Figures are per
# cycle: one job added, handed out and acknowledged.


def native_run(persistence, full_jobs, connections=50, pipeline=16, options=(), config=()):
    def run(bench):
        with bench.server(persistence) as server:
            load = ["--connections", connections, "--pipeline", pipeline, "--payload", 300,
                    "--cap", 1000, "--jobs", bench.count(full_jobs)]
            if server.kind != "redis":
                load += ["--native", *options]
                for arguments in config:
                    server.call("Q.CONFIG", "exec", *arguments)

            def measured():
                result = CycleLoad(bench.cycle_load, server, *load).result()
                result["requests"] = result["popped"]
                result["per_s"] = result["popped"] / result["seconds"]
                return result

            return with_cpu(server, measured)
    return run


ALL_CAPS = (("SET", "max_active", 2000, "fair", "on"),
            ("GROUP", "user:*", "SET", "max_active", 100),
            ("KEY", "lang:*", "SET", "max_active", 500))


def depth_run(full_pending):
    """Pops and adds with a constant number of pending jobs."""
    def run(bench):
        pending = bench.count(full_pending)
        with bench.server(NO_PERSISTENCE) as server:
            native = [] if server.kind == "redis" else ["--native"]
            CycleLoad(bench.cycle_load, server, "--fill", pending, "--connections", 8,
                      "--pipeline", 64, *native).result()

            def measured():
                result = CycleLoad(bench.cycle_load, server, *CONCURRENT, "--first-job", pending,
                                   "--jobs", bench.count(200_000), *native).result()
                result["requests"] = result["popped"]
                result["per_s"] = result["popped"] / result["seconds"]
                return result

            return with_cpu(server, measured)
    return run


def native_rows():
    return [
        Row("native-everysec", "native cycle -P 16, everysec",
            native_run(EVERYSEC, 400_000), [Goal("cpu_us", "<=", 0.2)]),
        Row("native-unpipelined", "native cycle, no pipeline, everysec",
            native_run(EVERYSEC, 100_000, pipeline=1),
            [Goal("per_s", ">=", 1.2), Goal("cpu_us", "<=", 0.6)]),
        Row("native-ack-pop", "native cycle by Q.ACK ... POP, -P 16, everysec",
            native_run(EVERYSEC, 400_000, options=("--ack-pop",)), []),
        Row("native-limits", "native cycle -P 16, caps of queue, group and key, 1,000 fair groups",
            native_run(EVERYSEC, 400_000, options=("--groups", 1000, "--keys", 8),
                       config=ALL_CAPS), []),
        Row("native-depth-1k", "native cycle -P 16 with 1,000 pending", depth_run(1_000), []),
        Row("native-depth-100k", "native cycle -P 16 with 100,000 pending", depth_run(100_000), []),
        Row("native-depth-1m", "native cycle -P 16 with 1,000,000 pending", depth_run(1_000_000),
            []),
        Row("native-memory", "1,000,000 pending native jobs, appendonly no",
            memory_run(NO_PERSISTENCE, native=True), [Goal("rss_mb", "<=", 0.75)],
            counts_cpu=False),
        Row("native-restart", "restart with 1,000,000 native jobs", restart_run(native=True), [],
            counts_cpu=False),
        Row("ten-million", "10,000,000 pending native jobs, everysec", ten_million_run, [],
            by_name=True, counts_cpu=False),
    ]


# -- a million pending jobs -----------------------------------------------------------------------

JOBS = 1_000_000


def fill_jobs(bench, server, native=False, full_jobs=JOBS):
    """`native`: by Q.ADD, if the server supports it."""
    native = native and server.kind != "redis"
    jobs = bench.count(full_jobs)
    CycleLoad(bench.cycle_load, server, "--fill", jobs, "--connections", 8,
              "--pipeline", 64, *(("--native",) if native else ())).result()
    check_jobs(server, jobs, native)
    return jobs


def check_jobs(server, jobs, native=False):
    if native and server.kind != "redis":
        pending = server.call("EVAL", "return tostring(redis.call('Q.STATS', 'exec')[2])", 0)
    else:
        pending = server.call("ZCARD", "exec_queue:pending")
    pending = int(pending)
    if pending != jobs:
        raise LoadFailed(f"{server.kind} holds {pending} jobs, not {jobs}")


def memory_run(persistence, native=False):
    def run(bench):
        with bench.server(persistence) as server:
            before = rss_bytes(server.pid)
            jobs = fill_jobs(bench, server, native)
            server.wait_until_quiet()
            time.sleep(2.0)
            rss = rss_bytes(server.pid)
            return {"rss_mb": rss / 1e6, "rss_start_mb": before / 1e6,
                    "used_memory_mb": int(server.info("memory")["used_memory"]) / 1e6,
                    "bytes_a_job": rss / jobs}
    return run


def restart(server, every_core=False):
    """Seconds until the server is ready again after a checkpoint, or an AOF rewrite."""
    server.wait_until_quiet()
    if server.kind == "redis":
        server.call("BGREWRITEAOF")
    else:
        begin_checkpoint(server)
    time.sleep(0.1)
    server.wait_until_quiet()
    server.stop()
    return server.start(every_core)


def restart_run(native=False):
    def run(bench):
        with bench.server(EVERYSEC) as server:
            jobs = fill_jobs(bench, server, native)
            restart_s = restart(server)
            check_jobs(server, jobs, native)
            return {"restart_s": restart_s}
    return run


def ten_million_run(bench):
    """Started normally: on every core."""
    with bench.server(EVERYSEC) as server:
        jobs = fill_jobs(bench, server, native=True, full_jobs=10 * JOBS)
        rss = rss_bytes(server.pid)
        restart_s = restart(server, every_core=True)
        check_jobs(server, jobs, native=True)
        return {"rss_mb": rss / 1e6, "bytes_a_job": rss / jobs, "restart_s": restart_s}


# At half of redis-server's maximum rate with the jobs in place; the same absolute rate for both.
def checkpoint_run(bench):
    window_s = max(2.0, 6.0 * bench.scale)
    # The window without a checkpoint must not include one that the server starts by itself.
    with bench.server(EVERYSEC) as probe:
        own = ({"auto-aof-rewrite-percentage": "0"} if probe.kind == "redis"
               else {"checkpoint-log-bytes": "16gb"})
    with bench.server(EVERYSEC, own) as server:
        jobs = fill_jobs(bench, server)
        server.wait_until_quiet()
        if "half_rate" not in bench.shared:
            most = CycleLoad(bench.cycle_load, server, *CONCURRENT, "--first-job", jobs,
                             "--seconds", 3).result()
            bench.shared["half_rate"] = most["per_s"] / 2
        load = CycleLoad(bench.cycle_load, server, *CONCURRENT, "--first-job", 4 * jobs,
                         "--rate", int(bench.shared["half_rate"]), "--seconds", 1 + window_s)
        time.sleep(1.0)
        load.signal_window()
        without = load.result()
        load = CycleLoad(bench.cycle_load, server, *CONCURRENT, "--first-job", 8 * jobs,
                         "--rate", int(bench.shared["half_rate"]), "--seconds", 600)
        try:
            time.sleep(1.0)
            load.signal_window()
            checkpoints, seconds = checkpoint_for(server, window_s)
        except BaseException:
            load.abandon()
            raise
        during = load.end()
        return {"rate": bench.shared["half_rate"], "checkpoints": checkpoints,
                "checkpoint_s": seconds / checkpoints,
                "p99_us": during["p99_us"], "p999_us": during["p999_us"],
                "p99_without_us": without["p99_us"], "p999_without_us": without["p999_us"]}


def begin_checkpoint(server):
    """BGSAVE, after any checkpoint that the server has started by itself."""
    for _ in range(100):
        try:
            server.call("BGSAVE")
            return
        except LoadFailed as error:
            if "in progress" not in str(error):
                raise
            server.wait_until_quiet()
            time.sleep(0.01)
    raise LoadFailed(f"{server.kind} always has a checkpoint in progress")


def checkpoint_for(server, window_s):
    """Makes checkpoints in sequence until the window is over and the last one has ended."""
    started = time.monotonic()
    count = 0
    while time.monotonic() - started < window_s:
        begin_checkpoint(server)
        server.wait_until_quiet()
        count += 1
    return count, time.monotonic() - started


def job_rows():
    return [
        Row("memory", "1,000,000 pending jobs, appendonly no", memory_run(NO_PERSISTENCE),
            [Goal("rss_mb", "<=", 0.85)], counts_cpu=False),
        Row("memory-everysec",
            f"1,000,000 pending jobs, everysec ({FIXED_PART_MB:.0f} MB fixed part apart)",
            memory_run(EVERYSEC), [Goal("rss_mb", "<=", 0.85, less_mb=FIXED_PART_MB)],
            counts_cpu=False),
        Row("restart", "restart with 1,000,000 jobs", restart_run(),
            [Goal("restart_s", "<=", 0.5)], counts_cpu=False),
        Row("checkpoint", "the cycle at half load during a checkpoint of 1,000,000 jobs",
            checkpoint_run,
            [Goal("p99_us", "<=", 2.0, base_metric="p99_without_us", own=True),
             Goal("p999_us", "<=", 2.0, base_metric="p999_without_us", own=True),
             Goal("p99_us", "<", 1.0), Goal("p999_us", "<", 1.0)], counts_cpu=False),
    ]


def all_rows():
    return benchmark_rows() + cycle_rows() + library_rows() + job_rows() + native_rows()
