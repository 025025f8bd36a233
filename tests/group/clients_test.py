#!/usr/bin/python3
"""Clients and job libraries as they are, by Sentinel, while the group's primary is killed.

    tests/group/clients_test.py                             the share of a test run
    tests/group/clients_test.py --kills 20 --clients all    a campaign
    tests/group/clients_test.py --clients celery,rq
    tests/group/clients_test.py --kills 20 --rest 40        more jobs between kills

Each program (clients/) works until it is told that it is enough, then compares: everything that was
acknowledged is there, or has run; what is there twice was repeated after a lost reply. Workers that
take a job before they note it (Celery, rq and Sidekiq of Debian) lose one that was on its way, with
Redis too: as many at each kill as there are threads, which the program adds again.
"""

import argparse
import contextlib
import importlib.util
import os
import pathlib
import random
import re
import shutil
import signal
import sys
import threading
import time

from harness import Skipped, libraries, need_npm, need_program, require, run_seeded, scratch, \
    wait_until
from harness.group import Group
from harness.group_load import Load
from harness.servers import DEFAULT_SLUICE

HERE = pathlib.Path(__file__).resolve().parent / "clients"
PYTHON = "/usr/bin/python3"
SHARE = "redis-py,bullmq"
KILLS = 2
REST_S = 2.0
CALM_S = 0.5
# Workers may have much left. A program whose jobs no longer run ends by itself.
DRAIN_S = 1200
WORKERS = 2
SIDEKIQ_THREADS = 5
TOLD = re.compile(r"acknowledged (\d+) repeated (\d+) twice (\d+)")


class Client:
    """`command(kills)`: the program; `workers(start)`: context managers of what works beside it,
    where start(command) runs one."""

    def __init__(self, needs, command, workers=lambda _start: (), environment=None):
        self.needs = needs
        self.command = command
        self.workers = workers
        self.environment = environment or {}


def script(name, *words):
    return lambda _kills: [PYTHON, HERE / name, *words]


def need_module(name):
    if not importlib.util.find_spec(name):
        raise Skipped(f"NOT RUN: no python3-{name}; tools/setup test installs it")


def node_client(name, package):
    return Client(lambda: need_npm(package), lambda _kills: [shutil.which("node"), HERE / name],
                  environment={"LIBRARY": package})


def ruby_client(name, on_their_way=0, workers=lambda _start: ()):
    return Client(lambda: libraries.need_file("/usr/bin/sidekiq", "ruby-sidekiq"),
                  lambda kills: [need_program("ruby"), HERE / name, on_their_way * (kills + 1)],
                  workers)


def celery_worker(start):
    return [start([PYTHON, "-m", "celery", "--app", "celery_app", "worker", "--concurrency",
                   WORKERS, "--loglevel", "INFO", "--hostname", "w@test"])]


def rq_workers(start):
    return [start(["/usr/bin/rq", "worker", "--config", "rq_settings", "work"])
            for _ in range(WORKERS)]


def sidekiq_worker(start):
    return [start(["/usr/bin/sidekiq", "--require", HERE / "sidekiq_jobs.rb", "--concurrency",
                   SIDEKIQ_THREADS])]


CLIENTS = {
    "redis-py": Client(lambda: need_module("redis"), script("redis_py.py", "blocking")),
    "redis-py-asyncio": Client(lambda: need_module("redis"), script("redis_py.py", "asyncio")),
    "ioredis": node_client("plain.js", "ioredis"),
    "node-redis": node_client("plain.js", "redis"),
    "bullmq": node_client("bullmq.js", "bullmq"),
    "redis-rb": ruby_client("redis_rb.rb"),
    "sidekiq": ruby_client("sidekiq_client.rb", SIDEKIQ_THREADS, sidekiq_worker),
    "celery": Client(lambda: need_module("celery"),
                     lambda kills: [PYTHON, HERE / "celery_client.py", WORKERS * (kills + 1)],
                     celery_worker),
    "rq": Client(lambda: need_module("rq"),
                 lambda kills: [PYTHON, HERE / "rq_client.py", WORKERS * (kills + 1)], rq_workers),
}


class Supervised:
    """A worker that is started again when it ends, as an init system does."""

    def __init__(self, start):
        self._start = start
        self.program = start()
        self.starts = 1
        self._stopping = threading.Event()
        self._keeper = threading.Thread(target=self._keep)

    def _keep(self):
        while not self._stopping.wait(0.1):
            if self.program.process.poll() is not None:
                self.program.end()
                self.program = self._start()
                self.starts += 1

    def __enter__(self):
        self._keeper.start()
        return self

    def __exit__(self, failure, *_):
        self._stopping.set()
        self._keeper.join()
        self.program.end()
        if failure is not None:
            self.program.tell_printed()


def kill_primary(group, load, rest_s):
    """Until the killed one is back as a standby; returns the longest gap."""
    time.sleep(rest_s)
    wait_until(lambda: load.calm_s() > CALM_S, what="calm")
    epoch, old = group.leadership()
    load.mark()
    old.crash()
    group.wait_for_primary(after_epoch=epoch)
    gap_s = load.wait_for_more()
    wait_until(group.is_whole, what="two nodes")
    return gap_s


def play(options, name, seed):
    client, rng = CLIENTS[name], random.Random(f"{seed}/{name}")
    client.needs()
    with Group(options.server) as group, scratch() as folder, contextlib.ExitStack() as stack:
        ports = " ".join(str(port) for _, port in group.sentinels())
        settings = {"SENTINELS": ports, "PYTHONPATH": str(HERE), "TMPDIR": folder,
                    **client.environment}

        def start(command):
            return stack.enter_context(
                Supervised(lambda: libraries.Program(command, 0, folder, **settings)))

        workers = client.workers(start)
        program = stack.enter_context(
            libraries.Program(client.command(options.kills), 0, folder, **settings))
        program.wait_for("begun")
        with Load(group, connections=4, pace_s=0.02) as load:
            gaps = [kill_primary(group, load, rng.uniform(options.rest / 4, options.rest))
                    for _ in range(options.kills)]
        program.tell("enough")
        acknowledged, repeated, twice = map(int, TOLD.fullmatch(
            program.wait_for("acknowledged", DRAIN_S)).groups())
        program.wait_for(libraries.HOLDS)
        require(acknowledged > 5 * options.kills, f"only {acknowledged} acknowledged")
        load.verify()
    return (f"{options.kills} kills, longest gap {max(gaps):.2f} s; {acknowledged} acknowledged, "
            f"lost 0, {repeated} repeated, {twice} twice, {sum(w.starts for w in workers)} starts "
            f"of workers")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", default=str(DEFAULT_SLUICE))
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--rest", type=float, default=REST_S,
                        help="seconds without a kill between two, at most")
    parser.add_argument("--clients", default=SHARE, help="all, or some of " + ", ".join(CLIENTS))
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2 ** 32))
    options = parser.parse_args()
    names = list(CLIENTS) if options.clients == "all" else options.clients.split(",")
    if unknown := set(names) - set(CLIENTS):
        parser.error(f"{', '.join(unknown)}: the clients are {', '.join(CLIENTS)}, or all")
    return run_seeded([(name, lambda name=name: play(options, name, options.seed))
                       for name in names], options.seed)


if __name__ == "__main__":
    # What is ended in the middle tells what it has, and ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.exit(main())
