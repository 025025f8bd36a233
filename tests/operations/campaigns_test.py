#!/usr/bin/python3
"""The campaigns run, and judge as they say: bench/compare --against, bench/scale, tools/soak.

    tests/operations/campaigns_test.py [--server build/release/bin/sluice-server]
"""

import os
import pathlib
import subprocess
import sys
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from compare_lib import measure, pairs
from harness import Skipped, require, require_equal, run
from harness.holds import Hold
from scale_lib import bench as scale

ROW = types.SimpleNamespace(title="a row")
LIMIT_S = 200


def verdict(ours, theirs):
    return pairs.Verdict(ROW, [each and {"cpu_us": each} for each in ours],
                         [each and {"cpu_us": each} for each in theirs])


def test_pairs_are_judged_by_their_rounds(_options):
    """Rounds are compared in pairs: common noise cancels out; 3 % more in each round is found."""
    noise = [1.0, 1.4, 0.9, 2.0, 1.1, 1.3, 0.8, 1.7, 1.2]
    require(verdict(noise, noise).passes, "the same figures")
    slower = verdict([each * (1.03 + number / 1000) for number, each in enumerate(noise)], noise)
    require(not slower.passes and 1.03 <= slower.low <= slower.ratio <= slower.high < 1.04,
            slower.line())
    require(verdict([each * 1.015 for each in noise], noise).passes, "1.5 % is within the bound")
    scattered = verdict([0.8, 1.1, 1.3, 0.9, 1.2, 1.1, 0.7, 1.05, 1.15], [1.0] * 9)
    require(scattered.passes and scattered.ratio > pairs.MOST, "an interval that holds 1: " +
            scattered.line())
    require_equal(verdict([1.0, None, 1.0], [1.0, 1.0, None]).rounds, 1, "rounds of failed runs")
    require(not verdict([None], [None]).passes, "without a round nothing passes")


def test_two_programs_are_compared(options):
    """bench/compare --against runs two programs in turns, and refuses what is neither."""
    if not {measure.SERVER_CORE, measure.LOAD_CORE} <= os.sched_getaffinity(0):
        raise Skipped("it takes two cores, one for the server and one for the load")
    command = [ROOT / "bench" / "compare", "--sluice", options.program, "--quick", "--rounds", "2",
               "--cycle-load", os.path.join(os.path.dirname(options.program), "cycle_load"),
               "--rows", "native-depth-1k,memory", "--against"]
    done = subprocess.run([*command, options.program], capture_output=True, text=True, check=False,
                          timeout=LIMIT_S)
    lines = done.stdout.splitlines()
    rounds = [line.split()[3:4] for line in lines if line.startswith("  round")]
    require_equal(rounds, [["A"], ["B"], ["B"], ["A"]], done.stdout + done.stderr)
    require(lines[-2].split()[0] in ("PASS", "MISS") and "2 rounds" in lines[-2], lines[-2])
    done = subprocess.run([*command, "no-such-commit"], capture_output=True, text=True, check=False,
                          timeout=LIMIT_S)
    require(done.returncode != 0 and "neither a program nor a commit" in done.stderr, done.stderr)


def test_rows_of_scale_are_judged(_options):
    """A row is ok within its limit, by the best of three; what fails or is not come to is not."""
    rows = [scale.Row(name, "a row", 10) for name in ("at", "third", "beyond", "raises", "later")]
    holds = iter([12, 11, 9, 13, 12, 11])

    def run_rows(bench):
        bench.figure("at", 10)
        for name in ("third", "beyond"):
            bench.hold(name, lambda: Hold(next(holds), 0, 0))
        bench.hold("raises", lambda: require(False, "it fails"))
    arguments = types.SimpleNamespace(server="", jobs=1, groups=1, queues=1, string=1)
    bench = scale.Bench(arguments, {row.name for row in rows})
    bench.run(scale.Scene(run_rows, rows))
    require_equal((bench.passed, list(bench.left)), (2, ["raises", "later"]), "rows")


def test_a_scale_of_seconds(options):
    """bench/scale prepares and measures rows of each kind."""
    rows = ("restart", "rename", "copy", "del-", "retention", "config-own", "config-rules", "stats",
            "need", "pause", "closed", "metrics", "http", "flush", "unlink", "match", "set-")
    command = [ROOT / "bench" / "scale", "--server", options.program, "--jobs", "2000", "--groups",
               "1000", "--queues", "500", "--string", "4", *rows]
    listed = subprocess.run([*command, "--list"], capture_output=True, text=True, check=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    lines = [line.split() for line in done.stdout.splitlines()]
    told = [line[1] for line in lines if line and line[0] in ("ok", "MISSED")]
    require_equal(told, [line.split()[0] for line in listed.stdout.splitlines()],
                  done.stdout + done.stderr)
    missed = any(line and line[0] == "MISSED" for line in lines)
    require_equal(done.returncode, 1 if missed else 0, done.stdout)


def test_a_soak_of_seconds(options):
    """tools/soak works with all kinds of names, deletes all and prints the floors."""
    command = [ROOT / "tools" / "soak", "--server", options.program, "--minutes", "0.06",
               "--returns", "1", "--bound"]
    done = subprocess.run([*command, "10000"], capture_output=True, text=True, check=False,
                          timeout=LIMIT_S)
    require_equal((done.returncode, done.stderr), (0, ""), done.stdout)
    floors = [line for line in done.stdout.splitlines() if line.startswith(("first", "return"))]
    require(len(floors) == 2 and all(len(line.split()) == 6 for line in floors), done.stdout)


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
