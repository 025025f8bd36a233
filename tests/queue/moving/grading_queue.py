"""What docs/moving/grading-queue.md says happens."""

import contextlib
import json
import threading
import time

import redis

from backlog import move_backlog
from check import URL, connect, equal, wait_until
from service import GradingQueue, grading_worker


def job(key, owner, priority=0, **others):
    kind, _, number = owner.partition(".")
    return {"key": key, "collation": {"type": kind, "id": number}, "priority": priority, **others}


def grade_all(queue="grade"):
    """The keys in the order in which a worker grades them."""
    order, of = [], GradingQueue(URL, queue)

    def grade(run):
        order.append(run.payload["key"])
        return "A"

    with running(grading_worker(URL, grade, queue)):
        wait_until(lambda: of.status()["waiting"] + of.status()["grading"] == 0, "the last job")
    return order


@contextlib.contextmanager
def running(worker):
    """It is stopped at the end, from another thread than the one in which signals do that."""
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield
    finally:
        worker.stop()
        thread.join()
        # Until the server has seen the end of its connection, its last pop would still get a job.
        with redis.Redis.from_url(URL) as client:
            wait_until(lambda: client.info("clients")["blocked_clients"] == 0, "the last pop's end")


def the_methods(client):
    queue = GradingQueue(URL)
    queue.configure()
    for key, owner in (("a1", "user.1"), ("b1", "user.2"), ("a2", "user.1"), ("c1", "team.3")):
        equal(queue.create_or_update(job(key, owner)).outcome, "added")
    equal(queue.create_or_update(job("d1", "user.4", 60000)).position, 4)
    # Another submission under a key that waits: its place stays, whatever the delay would be now.
    equal(queue.create_or_update(job("d1", "user.4", 120000, new=True)).outcome, "updated")
    queue.create_or_update(job("e1", "user.5"))
    equal(queue.create_or_update_immediate(job("now1", "user.6")).position, 0)
    equal(queue.create_or_update_immediate(job("now2", "user.6")).position, 1)
    equal(queue.create_or_update_immediate(job("c1", "team.3")).outcome, "updated")
    equal(queue.status(), {"waiting": 8, "grading": 0, "by_priority": {
        "CRITICAL": 3, "HIGH": 0, "NORMAL": 5, "LOW": 0, "BACKGROUND": 0}})
    equal(queue.release("d1"), 0)
    equal(queue.delay("b1"), 7)
    equal(queue.remove("e1"), "cancelled")
    order = grade_all()
    equal((order[0], order[-3:]), ("d1", ["a2", "a1", "b1"]))
    equal(order[1:4], ["now1", "now2", "c1"])
    equal(queue.status()["grading"], 0)
    equal(client.execute_command("Q.GET", "grade", "d1", "WITH", "result")[-1], b'"A"')
    equal(queue.create_or_update(job("a1", "user.1", 5)).outcome, "added")
    equal(queue.remove("a1"), "cancelled")


def an_upgraded_job_comes_as_if_it_came_now():
    queue = GradingQueue(URL, "upgrades")
    queue.configure()
    queue.create_or_update(job("late", "user.1", 600000))
    queue.create_or_update_immediate(job("now1", "user.2"))
    equal(queue.create_or_update_immediate(job("late", "user.1")).position, 1)
    queue.create_or_update_immediate(job("now2", "user.3"))
    # Said again, it changes nothing.
    equal(queue.create_or_update_immediate(job("late", "user.1", again=True)).outcome,
          "updated")
    equal(grade_all("upgrades"), ["now1", "late", "now2"])


def a_worker_that_is_stopped_gives_its_job_back():
    queue = GradingQueue(URL)
    leases = []

    def grade(run):
        leases.append((run.payload["version"], run.lease))
        while len(leases) == 1:
            run.wait(0.01)
        return "B"

    queue.create_or_update(job("x", "user.1", version=1))
    with running(grading_worker(URL, grade)):
        wait_until(lambda: len(leases) == 1, "the first run")
        equal(queue.create_or_update(job("x", "user.1", version=2)).outcome, "queued")
    equal(queue.status()["waiting"], 1)
    with running(grading_worker(URL, grade)):
        wait_until(lambda: len(leases) == 2, "the second run")
    equal([version for version, _ in leases], [1, 2])
    equal(leases[1][1] > leases[0][1], True)


def a_worker_that_dies_loses_its_job_to_another(client):
    queue = GradingQueue(URL, "dies")
    queue.configure()
    queue.create_or_update(job("z", "user.1"))
    popped = client.execute_command("Q.POP", 1, "dies", "WORKER", "dying", "LEASE", 100)
    equal(popped is not None, True)
    equal(grade_all("dies"), ["z"])


def the_backlog_keeps_its_order(client):
    now_ms = int(time.time() * 1000)
    for place, (owner, key) in enumerate((("user.1", "a1"), ("user.2", "b1"), ("user.1", "a2"),
                                          ("team.3", "c1"), ("user.2", "b2"))):
        client.set(key, json.dumps(job(key, owner)))
        client.lpush(f"SubmitterInfo.{owner}", key)
        client.zadd("Reservations", {f"{owner}.{now_ms + place}": now_ms + place * 60000})
        client.sadd(f"Nonces.{owner}", now_ms + place)
    client.set("regrade", json.dumps(job("regrade", "user.9")))
    client.zadd("Reservations", {"immediate.regrade": now_ms, "immediate.gone": now_ms})
    GradingQueue(URL, "moved").configure()
    equal(move_backlog(client, "moved"), ["gone"])
    equal(client.exists("Reservations", "SubmitterInfo.user.1", "Nonces.user.1", "a1"), 0)
    equal(grade_all("moved"), ["regrade", "a2", "b2", "a1", "c1", "b1"])


CLIENT = connect()
the_methods(CLIENT)
an_upgraded_job_comes_as_if_it_came_now()
a_worker_that_is_stopped_gives_its_job_back()
a_worker_that_dies_loses_its_job_to_another(CLIENT)
the_backlog_keeps_its_order(CLIENT)
print("all of it holds")
