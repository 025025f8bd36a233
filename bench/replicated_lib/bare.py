"""Bare appends to the replicated log on etcd, by bench/load/append_load: the limit for what Sluice
reaches through it."""

import statistics
import subprocess

from compare_lib.measure import LoadFailed
from harness.etcd import EtcdCluster

QUOTA = ["--quota-backend-bytes", str(8 << 30)]
FIGURES = ("per_s", "mb_s", "p50_ms", "p99_ms", "max_ms")


def append(program, etcd, size_bytes, depth, seconds):
    """Frames of a size, so many in flight: FIGURES by name."""
    command = [program, ",".join(etcd.endpoints()), str(round(size_bytes)), str(depth),
               str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LoadFailed(f"append_load failed: {done.stderr}")
    return dict(zip(FIGURES, map(float, done.stdout.split())))


def print_table(program, arguments):
    print("| KiB | in flight | a second | MB/s | p50 ms | p99 ms | max ms |\n" + "|---" * 7 + "|")
    with EtcdCluster(arguments.members, flags=QUOTA) as etcd:
        for size in arguments.sizes:
            for depth in arguments.depths:
                rounds = [append(program, etcd, size << 10, depth, arguments.seconds)
                          for _ in range(arguments.rounds)]
                rate, mb, p50, p99, most = (statistics.median(each[name] for each in rounds)
                                            for name in FIGURES)
                print(f"| {size} | {depth} | {rate:.0f} | {mb:.1f} | {p50:.1f} | {p99:.0f} | "
                      f"{most:.0f} |", flush=True)
