"""What Celery's users do, against a worker of celery_tasks in the same folder: `tasks`, or `kill`
with the server killed in the middle."""

import datetime
import pathlib
import sys
import time

import celery
import celery_tasks as tasks
import kombu
import redis
from scenario import kill_server, play, require, require_equal, wait_until

PATIENCE_S = 60
KILLS = 2
FOLDER = pathlib.Path(".")


def runs():
    path = FOLDER / "runs"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def result(task):
    return task.get(timeout=PATIENCE_S)


def results():
    first = tasks.double.delay(21)
    require_equal(result(first), 42, "result")
    require_equal((first.state, first.successful()), ("SUCCESS", True), "state")
    first.forget()
    require_equal(tasks.app.AsyncResult(first.id).state, "PENDING", "after forget")
    bad = tasks.broken.delay()
    wait_until(lambda: bad.state == "FAILURE", "the failure")
    require("ValueError" in bad.traceback, "the traceback")
    require_equal(result(tasks.third_time.delay()), 2, "retries")
    require_equal(runs().count("try 1"), 1, "second tries")
    half = tasks.steps.delay()
    wait_until(lambda: half.state == "HALF", "the state in between")
    require_equal(half.info, {"at": 50}, "what belongs to the state")
    (FOLDER / "go-on").touch()
    require_equal(result(half), "whole", "result")


def canvas():
    chain, chord, group = celery.chain, celery.chord, celery.group
    double, add = tasks.double, tasks.add
    require_equal(result(group(double.s(n) for n in range(10)).apply_async()),
                  [2 * n for n in range(10)], "group")
    require_equal(result(chain(double.s(3), double.s(), add.s(1)).apply_async()), 13, "chain")
    sums = chord((double.s(n) for n in range(10)), add.s())
    require_equal(result(sums.apply_async()), 90, "chord")
    nested = chain(group(double.s(1), double.s(2)), add.s(),
                   chord([double.s(), double.s()], add.s()))
    require_equal(result(nested.apply_async()), 24, "a chain of groups and chords")
    require_equal(result(double.chunks([(n,) for n in range(6)], 3).apply_async()),
                  [[0, 2, 4], [6, 8, 10]], "chunks")
    failing = chord([double.s(1), tasks.broken.s()], add.s()).apply_async()
    wait_until(lambda: failing.state == "FAILURE", "the chord's failure")


def later_and_never():
    begun = time.time()
    soon = tasks.double.apply_async((1000,), countdown=1)
    at = tasks.double.apply_async(
        (1001,), eta=datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=1))
    expired = tasks.double.apply_async((1002,), expires=-1)
    require_equal((result(soon), result(at)), (2000, 2002), "results")
    require(time.time() - begun >= 1, "it ran early")
    wait_until(lambda: expired.state == "REVOKED", "the expired task's end")
    never = tasks.double.apply_async((1003,), countdown=3600)
    never.revoke()
    known = tasks.app.control.inspect(timeout=PATIENCE_S, limit=1)
    wait_until(lambda: never.id in known.revoked()["w@test"], "the revocation")
    long = tasks.until.delay(str(FOLDER / "never"))
    wait_until(lambda: "begun" in runs(), "the long task")
    long.revoke(terminate=True)
    wait_until(lambda: long.state == "REVOKED", "the long task's end")
    require_equal(known.ping(), {"w@test": {"ok": "pong"}}, "ping")
    require("celery_tasks.double" in known.registered()["w@test"], "the tasks that it knows")
    require(not {"1002", "1003"} & set(runs()), "a task ran that should not")


def insist(number, count_down=None):
    """For a caller to whom a lost connection says nothing."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return tasks.double.apply_async((number,), countdown=count_down)
        except (redis.ConnectionError, kombu.exceptions.OperationalError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def kill():
    """Tasks are sent and run while the server dies; the acknowledged ones are done."""
    numbers = set(range(100)) | {900}
    insist(900, 4)
    for number in range(100):
        insist(number)
        if number in (40, 80):
            wait_until(lambda n=number: len(runs()) > n // 4, "runs")
            kill_server()

    def missing():
        return {str(number) for number in numbers} - set(runs())

    # Celery takes a task off the list before it notes that it holds it: one that was on its way at
    # a kill is lost with Redis too. What it noted comes back after the visibility timeout.
    wait_until(lambda: len(missing()) <= KILLS, "the runs but for those on their way",
               lambda: f"without {sorted(missing())}")
    for number in sorted(missing(), key=int):
        require_equal(result(insist(int(number))), 2 * int(number), "result")
    wait_until(lambda: not missing(), "every run", missing)


PARTS = {"tasks": (results, canvas, later_and_never), "kill": (kill,)}
play(PARTS[sys.argv[1]])
