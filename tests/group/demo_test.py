#!/usr/bin/python3
"""tools/cluster_demo for two kills: what it prints, and that it leaves nothing behind."""

import os
import re
import subprocess
import sys

import harness
from harness import require, require_equal, scratch
from harness.servers import ROOT

LINE = re.compile(r" *\d+ s  acknowledged [\d,]+  lost 0  (n\d leads, epoch \d+|nobody leads)  "
                  r"lag \d+ ms  longest gap \d+\.\d\d s")
LAST = re.compile(r"2 kills: ([\d,]+) acknowledged, lost 0; \d+ more whose replies were lost; "
                  r"longest gap (\d+\.\d\d) s; all nodes have the same state")


def test_two_kills(options):
    """each second has a line, each kill a new primary, and nothing is lost or left"""
    with scratch() as directory:
        done = subprocess.run(
            [ROOT / "tools" / "cluster_demo", "--server", options.program, "--kills", "2",
             "--every", "4"], env=dict(os.environ, TMPDIR=directory), timeout=120,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        print(done.stdout)
        require_equal(done.returncode, 0, done.stderr)
        require_equal(os.listdir(directory), [], "what is left")
    lines = done.stdout.splitlines()
    require(sum(bool(LINE.fullmatch(line)) for line in lines) >= 8, "a line each second")
    require_equal(sum("gets SIGKILL" in line for line in lines), 2, "kills")
    require_equal(sum(" leads after " in line for line in lines), 2, "new primaries")
    last = LAST.fullmatch(lines[-1])
    require(last and int(last[1].replace(",", "")) > 500 and float(last[2]) < 10, lines[-1])


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
