#!/usr/bin/python3
"""Kills the server with SIGKILL under pipelined load, again and again on one data directory.

    tests/crash/kill_test.py                         300 kills, the modes always, everysec and no
    tests/crash/kill_test.py --kills 5000 --mode always
    tests/crash/kill_test.py --server redis-server   (its everysec does not promise what ours does)

Each round several connections send random units (strings with and without expiry, bits, hashes,
sets, lists, sorted sets, streams and their groups, copies and moves, of long values too, over
databases, RESTORE, MULTI over several slots and databases, scripts of three keys, functions),
checkpoints run, and the server dies at a random moment, or at a step of the journal, of a
checkpoint, behind a reply or amid expiries (engine/base/kill_point.h) that it passes for the n-th
time. After the restart every connection's keys must be its acknowledged history plus a prefix of
what was in flight: nothing acknowledged is lost, no unit is half done, nothing is invented. Some
rounds end with SIGTERM (exit 0 within 5 s), and some restarts are killed while they recover. The
seed is printed; it decides everything but the timing.
"""

import sys

from harness.crash.kills import KillRun, main

if __name__ == "__main__":
    sys.exit(main(KillRun, __doc__, 300))
