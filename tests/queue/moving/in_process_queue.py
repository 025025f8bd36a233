"""What docs/moving/in-process-queue.md says happens."""

import threading

from sluice import Cancelled
from sluice.errors import NotCompleted, QueueFull

from check import URL, equal, wait_until
from service import ExecutionQueue


class Task(threading.Thread):
    """One request of a server: it enqueues itself and runs until it is told to end."""

    def __init__(self, queue, priority, name, order=None):
        super().__init__()
        self.queue, self.priority, self.task_name, self.order = queue, priority, name, order
        self.started, self.end = threading.Event(), threading.Event()
        self.result = None
        self.start()

    def run(self):
        try:
            self.result = self.queue.enqueue(self.task, self.priority, "python", self.task_name)
        except (Cancelled, NotCompleted) as error:
            self.result = error

    def task(self, job):
        self.started.set()
        if self.order is not None:
            self.order.append(self.task_name)
            job.wait(0.05)
            return "done"
        while not self.end.is_set():
            job.wait(0.01)
        return "done"


def raised(kind, function, *arguments):
    try:
        got = function(*arguments)
    except kind as error:
        return error
    raise AssertionError(f"{got!r}, expected {kind.__name__}")


def queued(queue, count):
    wait_until(lambda: queue.get_stats()["queued"] == count, f"{count} queued")


def the_methods():
    queue, other = ExecutionQueue(URL, 1), ExecutionQueue(URL, 1)  # as of two processes
    queue.configure(max_concurrent=1, max_queue_size=3, lease_ms=1500)
    first = Task(queue, 0, "first")
    equal(first.started.wait(30), True)
    order, others = [], []
    for of, name, priority in ((queue, "notebook", 0), (other, "api", 1), (queue, "late", 0)):
        others.append(Task(of, priority, name, order))
        queued(queue, len(others))
    raised(QueueFull, queue.enqueue, lambda job: None, 2)
    equal(queue.set_priority("late", 2), True)
    equal(queue.get_stats()["queued_by_priority"], {"INTERACTIVE": 1, "API": 1, "NOTEBOOK": 1})
    equal(first.end.wait(2), False)  # longer than its lease: it is kept
    first.end.set()
    for task in [first, *others]:
        task.join()
        equal(task.result, "done")
    equal(order, ["late", "api", "notebook"])

    def boom(_):
        raise ValueError("boom")

    raised(ValueError, queue.enqueue, boom, 1)
    equal(queue.get_stats()["failed_tasks"], 1)
    told = Task(queue, 1, "told")
    equal(told.started.wait(30), True)
    equal(queue.cancel("told"), "signalled")
    told.join()
    equal(type(told.result), Cancelled)
    equal(queue.get_stats(), {"queued": 0, "active": 0, "completed_tasks": 4, "failed_tasks": 1,
                              "queued_by_priority": {"INTERACTIVE": 0, "API": 0, "NOTEBOOK": 0}})


def who_waits_too_long_hears_of_it():
    queue = ExecutionQueue(URL, 1)
    queue.configure(max_concurrent=1)
    holder = Task(queue, 1, "holder")
    equal(holder.started.wait(30), True)
    queue.configure(max_concurrent=1, queue_timeout=100)
    equal(raised(NotCompleted, queue.enqueue, lambda job: None, 2).state, "expired")
    holder.end.set()
    holder.join()
    equal(holder.result, "done")


the_methods()
who_waits_too_long_hears_of_it()
print("all of it holds")
