"""What docs/moving/in-process-queue.md says happens."""

import threading

import redis

from check import connect, equal, refused, wait_until
from service import ExecutionQueue, as_map


class Task(threading.Thread):
    """One request of a server: it enqueues itself and runs until it is told to end."""

    def __init__(self, queue, priority, name, order=None):
        super().__init__()
        self.queue, self.priority, self.task_name, self.order = queue, priority, name, order
        self.started, self.end = threading.Event(), threading.Event()
        self.result = self.stop = None
        self.start()

    def run(self):
        try:
            self.result = self.queue.enqueue(self.task, self.priority, "python", self.task_name)
        except redis.ResponseError as error:
            self.result = str(error)

    def task(self, stop):
        self.stop = stop
        self.started.set()
        if self.order is not None:
            self.order.append(self.task_name)
            return "done"
        while not self.end.wait(0.01):
            if stop.is_set():
                return "stopped"
        return "done"


def waiting(client):
    return as_map(client.execute_command("Q.STATS", "run"))["waiting_pops"]


def the_methods(client):
    queue = ExecutionQueue(client, lease_ms=300)
    queue.configure(max_concurrent=1, max_queue_size=3)
    first = Task(queue, 0, "first")
    equal(first.started.wait(5), True)
    order, others = [], []
    for name, priority in (("notebook", 0), ("api", 1), ("late", 0)):
        others.append(Task(queue, priority, name, order))
        wait_until(lambda: waiting(client) == len(others), name)
    refused("QFULL", queue.enqueue, lambda stop: None, 2)
    equal(queue.set_priority("late", 2), True)
    equal(queue.get_stats()["queued_by_priority"], {"INTERACTIVE": 1, "API": 1, "NOTEBOOK": 1})
    equal(first.stop.wait(0.45), False)  # longer than its lease: it is kept
    first.end.set()
    for task in [first, *others]:
        task.join()
        equal(task.result, "done")
    equal(order, ["late", "api", "notebook"])

    def boom(_):
        raise ValueError("boom")

    try:
        queue.enqueue(boom, 1)
        raise AssertionError("no error")
    except ValueError:
        equal(queue.get_stats()["failed_tasks"], 1)
    told = Task(queue, 1, "told")
    equal(told.started.wait(5), True)
    equal(queue.cancel("told"), b"signalled")
    told.join()
    equal(queue.get_stats(), {"queued": 0, "active": 0, "completed_tasks": 5, "failed_tasks": 1,
                              "queued_by_priority": {"INTERACTIVE": 0, "API": 0, "NOTEBOOK": 0}})


def who_waits_too_long_hears_of_it(client):
    queue = ExecutionQueue(client)
    queue.configure(max_concurrent=1, queue_timeout=100)
    holder = Task(queue, 1, "holder")
    equal(holder.started.wait(5), True)
    equal("state=expired" in refused("GONE", queue.enqueue, lambda stop: None, 2), True)
    holder.end.set()
    holder.join()
    equal(holder.result, "done")


CLIENT = connect()
the_methods(CLIENT)
who_waits_too_long_hears_of_it(CLIENT)
print("all of it holds")
