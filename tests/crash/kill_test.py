#!/usr/bin/python3
"""Kills the server with SIGKILL under pipelined load, again and again on one data directory.

    tests/crash/kill_test.py                         300 kills, the modes always, everysec and no
    tests/crash/kill_test.py --kills 5000 --mode always
    tests/crash/kill_test.py --server redis-server   (its everysec does not promise what ours does)

Each round several connections send random units (strings with and without expiry, hashes, sets,
lists, sorted sets, MULTI over several slots and databases, scripts of three keys), checkpoints run,
and the server dies at a random moment. After the restart every connection's keys must be its
acknowledged history plus a prefix of what was in flight: nothing acknowledged is lost, no unit is
half done, nothing is invented. Some rounds end with SIGTERM (exit 0 within 5 s), and some restarts
are killed while they recover. The seed is printed; it decides everything but the timing.
"""

import argparse
import pathlib
import random
import sys
import threading
import time
import traceback

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "transcripts"))

from crash_client import SHARED_COUNTER, CrashClient, Link, Violation  # noqa: E402
from servers import DEFAULT_SLUICE, Server  # noqa: E402

CONNECTIONS = 6
SIGTERM_LIMIT_S = 5.0
READY_LIMIT_S = 10.0


def directives_for(kind, mode):
    directives = {"appendonly": "yes", "appendfsync": mode, "save": ""}
    if kind == "redis":
        directives["auto-aof-rewrite-min-size"] = "1mb"
    else:
        directives["checkpoint-log-bytes"] = "1mb"
    return directives


class KillRun:
    """The rounds of one mode on one data directory."""

    def __init__(self, program, mode, seed):
        self.rng = random.Random(f"{seed}/{mode}")
        self.mode = mode
        self.server = Server(program)
        self.server.directives = directives_for(self.server.kind, mode)
        self.clients = [CrashClient(index, f"{seed}/{mode}") for index in range(CONNECTIONS)]
        self.counts = dict.fromkeys(("kills", "terminated", "killed in recovery", "in flight kept",
                                     "checkpoints"), 0)
        self.longest_start_s = 0.0

    def run(self, kills):
        try:
            self._start()
            while self.counts["kills"] < kills:
                self._round()
        except BaseException:
            print(f"server's log:\n{self.server.log_tail(30)}", flush=True)
            raise
        finally:
            self.server.close()
        units = sum(client.acknowledged for client in self.clients)
        counts = ", ".join(f"{name} {count}" for name, count in self.counts.items())
        return f"{counts}, units {units}, longest start {self.longest_start_s:.2f} s"

    def _start(self):
        if self.rng.random() < 0.1 and self.counts["kills"] > 0:
            # Dies somewhere in its recovery.
            self.server._spawn()
            time.sleep(self.rng.uniform(0.0, 0.08))
            self.server.kill()
            self.counts["killed in recovery"] += 1
        started = time.monotonic()
        self.server.start()
        took_s = time.monotonic() - started
        self.longest_start_s = max(self.longest_start_s, took_s)
        if took_s > READY_LIMIT_S:
            raise Violation(f"the start took {took_s:.1f} s")

    def _round(self):
        stop = threading.Event()
        for client in self.clients:
            client.start(self.server.port, stop)
        ends = time.monotonic() + self.rng.choice((0.005, 0.03, 0.1, 0.1, 0.2)) * \
            self.rng.uniform(0.2, 1.8)
        if self.rng.random() < 0.5:
            stop.wait(max(0.0, (ends - time.monotonic()) * self.rng.random()))
            self._checkpoint()
        stop.wait(max(0.0, ends - time.monotonic()))
        if not stop.is_set():
            self._end_server()
        stop.set()
        for client in self.clients:
            client.join()
        self._start()
        self._verify()

    def _checkpoint(self):
        try:
            link = Link(self.server.port)
            # While one runs already, both servers answer an error; that is fine here.
            link.ask(["BGSAVE"])
            link.close()
            self.counts["checkpoints"] += 1
        except OSError:
            pass

    def _end_server(self):
        if self.rng.random() < 0.05:
            started = time.monotonic()
            code = self.server.stop(timeout_s=SIGTERM_LIMIT_S)
            if code != 0:
                raise Violation(f"after SIGTERM: exit code {code} in "
                                f"{time.monotonic() - started:.1f} s")
            self.counts["terminated"] += 1
        else:
            self.server.kill()
            self.counts["kills"] += 1

    def _verify(self):
        port = self.server.port
        for client in self.clients:
            self.counts["in flight kept"] += client.verify(port)
        link = Link(port)
        try:
            for database in {client.database for client in self.clients}:
                self._verify_database(link, database)
        finally:
            link.close()

    def _verify_database(self, link, database):
        """The shared counter, and that there is no key that nobody wrote."""
        own = [client for client in self.clients if client.database == database]
        _, counter, keys = link.ask(["SELECT", database],
                                    ["GET", SHARED_COUNTER + b":%d" % database], ["KEYS", "*"])
        count = int(counter or 0)
        seen = max(client.counter_seen for client in own)
        sent = sum(client.counter_sent for client in own)
        if not seen <= count <= sent:
            raise Violation(f"the shared counter is {count}; {seen} was read, {sent} were sent")
        prefixes = tuple(client.prefix.encode() for client in own) + (SHARED_COUNTER,)
        strays = [key for key in keys if not key.startswith(prefixes)]
        if strays:
            raise Violation(f"keys that nobody wrote in database {database}: {strays[:5]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default=str(DEFAULT_SLUICE))
    parser.add_argument("--kills", type=int, default=300, help="of all modes together")
    parser.add_argument("--mode", choices=["always", "everysec", "no"], action="append")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2 ** 32))
    arguments = parser.parse_args()
    is_redis = "redis" in pathlib.Path(arguments.server).name
    modes = arguments.mode or (["always"] if is_redis else ["always", "everysec", "no"])
    # `always` is the default that users run, so it gets half of the kills.
    shares = [1.0] if len(modes) == 1 else [0.5] + [0.5 / (len(modes) - 1)] * (len(modes) - 1)
    print(f"seed {arguments.seed}", flush=True)
    failed = 0
    for mode, share in zip(modes, shares):
        kills = max(1, round(arguments.kills * share))
        started = time.monotonic()
        try:
            result = "ok: " + KillRun(arguments.server, mode, arguments.seed).run(kills)
        except Exception:  # noqa: BLE001
            failed += 1
            result = f"FAILED, seed {arguments.seed}\n{traceback.format_exc()}"
        took_s = time.monotonic() - started
        print(f"appendfsync {mode}, {kills} kills: {result} ({took_s:.1f} s)", flush=True)
    print(f"{len(modes) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
