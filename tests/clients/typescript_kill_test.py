#!/usr/bin/python3
"""Ten workers of the TypeScript client while the server is killed and frozen at random moments.

    tests/clients/typescript_kill_test.py [--kills 20] [--seed n]

Producers add jobs all the time and wait for each result. At the end every job that add returned has
completed once, with its own result; no job was acknowledged by two runs; nothing is leased or
waits, and no pop waits.
"""

import argparse
import os
import random
import re
import signal
import sys
import time

from harness import Options, libraries, require, require_equal, run_seeded, wait_until
from harness.native_queue import DISK, Native
from harness.servers import DEFAULT_SLUICE, steady_port
from harness.typescript_client import SYSTEM, built

EXEC = "exec"
LAST_S = 150


def hurt(server, chance):
    """Kills the server, or freezes it for a while, which may be longer than a lease."""
    if chance.random() < 0.3:
        os.kill(server.pid, signal.SIGSTOP)
        time.sleep(0.2 + chance.random() * 3)
        os.kill(server.pid, signal.SIGCONT)
    else:
        server.kill()
        time.sleep(chance.random() * 0.2)
        server.start()


def kill(options, kills, chance):
    node = built()
    directives = {**DISK, "port": steady_port()}
    with options.server(directives, start_timeout_s=120.0) as server:
        Native(server).config(EXEC, "SET", "lease_ms", "2000", "crash_limit", "1000",
                              "retain_completed", "100000")
        with libraries.Program([node, SYSTEM / "load.js"], server.port) as load:
            load.wait_for("running")
            for _ in range(kills):
                time.sleep(0.1 + chance.random() * 0.4)
                hurt(server, chance)
            load.tell("end")
            load.wait_for(libraries.HOLDS, LAST_S)
            require_equal(load.process.wait(20), 0, load.printed())
            said = load.seen[-2]
        native = Native(server)
        wait_until(lambda: native.stats(EXEC)["waiting_pops"] == 0, what="no pop waits")
        figures = native.stats(EXEC)
        jobs, acknowledged, _, lost = map(int, re.findall(r"\d+", said))
        require_equal((figures["active"], figures["waiting"]), (0, 0), "active and waiting jobs")
        require_equal(figures["completed"], jobs, "completions of the jobs whose result came")
        # The run whose acknowledgement was taken may have learned only that its lease is lost.
        require(0 < jobs - lost <= acknowledged <= jobs, said)
        return f"{kills} kills and freezes, {said}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default=str(DEFAULT_SLUICE))
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    chosen = parser.parse_args()
    chance = random.Random(chosen.seed)
    options = Options(chosen.server, 1)
    return run_seeded([("ten workers", lambda: kill(options, chosen.kills, chance))], chosen.seed)


if __name__ == "__main__":
    sys.exit(main())
