"""What the programs in Python share: where the Sentinels are, and work until the test says that it
is enough."""

import itertools
import os
import pathlib
import sys
import threading
import time

SENTINELS = [("127.0.0.1", int(port)) for port in os.environ["SENTINELS"].split()]
GROUP = "mymaster"
PATIENCE_S = 60
enough = threading.Event()


def _listen():
    sys.stdin.readline()
    enough.set()


def begin():
    threading.Thread(target=_listen, daemon=True).start()
    print("begun", flush=True)


def insist(call, *failures):
    """Repeats the call until it succeeds: for a caller to whom a lost connection says nothing.
    Returns how often it failed."""
    deadline = time.monotonic() + PATIENCE_S
    failed = 0
    while True:
        try:
            call()
            return failed
        except failures:
            if time.monotonic() > deadline:
                raise
            failed += 1
            time.sleep(0.02)


def run_jobs(send, on_their_way, failures, pause_s, rest_s, is_idle=lambda: True):
    """Sends jobs, which are numbers, to workers that write each one's run into the file `runs`.
    `on_their_way` of them may be lost at kills, with Redis too: those are sent again."""
    repeated = 0
    for number in itertools.count():
        repeated += insist(lambda n=number: send(n), *failures)
        time.sleep(pause_s)
        if enough.is_set():
            break
    wanted = set(range(number + 1))
    _wait_for(lambda: len(wanted - set(_runs())) <= on_their_way and is_idle(), "the runs")
    time.sleep(rest_s)
    again = wanted - set(_runs())
    for one in again:
        repeated += insist(lambda n=one: send(n), *failures)
    _wait_for(lambda: wanted <= set(_runs()), "every run")
    tell(len(wanted), repeated + len(again), len(_runs()) - len(wanted))


def _runs():
    path = pathlib.Path("runs")
    return list(map(int, path.read_text(encoding="utf-8").split())) if path.exists() else []


def _wait_for(condition, what):
    """As long as the workers go on: on a busy machine they have much left when sending ends."""
    runs = deadline = None
    while not condition():
        if (now := len(_runs())) != runs:
            runs, deadline = now, time.monotonic() + PATIENCE_S
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def check_log(count, repeated, log):
    """Every number is in the log; what is there twice was repeated after a lost reply."""
    log = list(map(int, log))
    lost = set(range(count)) - set(log)
    assert not lost, f"lost: {sorted(lost)[:10]}"
    twice = len(log) - count
    assert twice <= repeated, f"{twice} more than {count}, {repeated} repeated"
    tell(count, repeated, twice)


def tell(acknowledged, repeated, twice):
    print(f"acknowledged {acknowledged} repeated {repeated} twice {twice}")
    print("all of it holds", flush=True)
