#!/usr/bin/python3
"""rq of Debian: queues, workers as programs, the scheduler, dependencies, a killed server."""

import contextlib
import datetime
import importlib.util
import pathlib
import sys
import threading
import time

from harness import Skipped, libraries, require, require_equal, scratch, wait_until

PATIENCE_S = 60
WORKERS = 2
sys.path.insert(0, str(libraries.HERE / "python"))

if importlib.util.find_spec("rq"):
    import redis
    import rq
    import rq_jobs
    from rq import command, registry, scheduler, suspension


@contextlib.contextmanager
def setting(options, fsync="always"):
    """(server, client, folder of the workers)"""
    if not importlib.util.find_spec("rq"):
        raise Skipped("NOT RUN: no python3-rq; tools/setup test installs it")
    with libraries.server(options, fsync) as running, scratch() as folder:
        with redis.Redis(port=running.port) as client:
            yield running, client, pathlib.Path(folder)


def worker(running, folder, name, *words):
    """rq's own program with the functions of rq_jobs."""
    return libraries.Program(
        ["/usr/bin/rq", "worker", "--url", f"redis://127.0.0.1:{running.port}", "--name", name,
         *words], running.port, folder, PYTHONPATH=str(libraries.HERE / "python"))


def status(job):
    return job.get_status(refresh=True)


def finished(job):
    wait_until(lambda: status(job) == "finished", PATIENCE_S, f"the end of {job.id}")
    return job.return_value(refresh=True)


def runs(folder):
    path = folder / "runs"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def results_and_failures(client, folder):
    tasks = rq.Queue("default", connection=client)
    first = tasks.enqueue(rq_jobs.double, 1, on_success=rq_jobs.done, meta={"who": "me"})
    require_equal(finished(first), {"doubled": 2, "text": "grüße\0"}, "result")
    require_equal(first.get_meta(), {"who": "me"}, "meta")
    wait_until(lambda: f"callback {first.id} 2 True" in runs(folder), PATIENCE_S, "the callback")
    bad = tasks.enqueue(rq_jobs.broken)
    wait_until(lambda: status(bad) == "failed", PATIENCE_S, "the failure")
    require("ValueError: broken" in bad.latest_result().exc_string, "the traceback")
    failed = registry.FailedJobRegistry(queue=tasks)
    require_equal(failed.get_job_ids(), [bad.id], "failed jobs")
    marker = str(folder / "marker")
    twice = tasks.enqueue(rq_jobs.second_time, marker, retry=rq.Retry(max=2))
    require_equal(finished(twice), "mended", "the retried job's result")
    (folder / "marker").unlink()
    again = tasks.enqueue(rq_jobs.second_time, marker)
    wait_until(lambda: status(again) == "failed", PATIENCE_S, "the failure")
    again.requeue()
    require_equal(finished(again), "mended", "the requeued job's result")


def many_and_dependencies(client, folder):
    tasks = rq.Queue("default", connection=client)
    jobs = tasks.enqueue_many([rq.Queue.prepare_data(rq_jobs.double, (n,), job_id=f"many-{n}")
                               for n in range(20)])
    last = tasks.enqueue(rq_jobs.double, 100, depends_on=jobs)
    chained = tasks.enqueue(rq_jobs.double, 101, depends_on=last)
    require_equal(finished(chained)["doubled"], 202, "the last job's result")
    order = [line for line in runs(folder) if line.isdigit()]
    require_equal(order[-2:], ["100", "101"], "dependents run last")
    require_equal(sorted(map(int, order[-22:-2])), list(range(20)), "what they depend on")
    # If a job has already failed, rq 1.13 defers all its dependents, even those that allow it.
    tasks.enqueue(rq_jobs.until, str(folder / "dependents"))
    bad = tasks.enqueue(rq_jobs.broken)
    waits = tasks.enqueue(rq_jobs.double, 7, depends_on=bad)
    goes_on = tasks.enqueue(
        rq_jobs.double, 8, depends_on=rq.job.Dependency(jobs=[bad], allow_failure=True))
    (folder / "dependents").touch()
    require_equal(finished(goes_on)["doubled"], 16, "a dependent that allows failure")
    require_equal(status(waits), "deferred", "a dependent of a failed job")
    waits.cancel()
    require_equal(status(waits), "canceled", "after cancel")
    require_equal(registry.CanceledJobRegistry(queue=tasks).get_job_ids(), [waits.id], "canceled")


def test_worker(options):
    """rq: results, failures, retries, callbacks, bulk, dependencies, cancel."""
    with setting(options) as (running, client, folder), worker(running, folder, "w", "default"):
        results_and_failures(client, folder)
        many_and_dependencies(client, folder)


def test_commands(options):
    """rq: order in front, suspension, stop of a job, workers that are told to shut down."""
    with setting(options) as (running, client, folder):
        high, low = (rq.Queue(name, connection=client) for name in ("high", "low"))
        gate = low.enqueue(rq_jobs.until, str(folder / "gate"))
        with worker(running, folder, "w", "high", "low") as program:
            wait_until(lambda: status(gate) == "started", PATIENCE_S, "the first job")
            suspension.suspend(client)
            jobs = [low.enqueue(rq_jobs.double, 1), low.enqueue(rq_jobs.double, 2),
                    low.enqueue(rq_jobs.double, 3, at_front=True), high.enqueue(rq_jobs.double, 4)]
            (folder / "gate").touch()
            program.wait_for("Worker suspended")
            require_equal(runs(folder), [], "runs while all is suspended")
            suspension.resume(client)
            for job in jobs:
                finished(job)
            require_equal(runs(folder), ["4", "3", "1", "2"], "order")
            long = low.enqueue(rq_jobs.forever)
            wait_until(lambda: "begun" in runs(folder), PATIENCE_S, "the long job")
            require_equal([each.name for each in rq.Worker.all(client)], ["w"], "workers")
            command.send_stop_job_command(client, long.id)
            wait_until(lambda: status(long) in ("stopped", "failed"), PATIENCE_S, "the stop")
            after = low.enqueue(rq_jobs.double, 5)
            finished(after)
            command.send_shutdown_command(client, "w")
            require_equal(program.process.wait(PATIENCE_S), 0, "the worker's exit")
            require_equal(rq.Worker.all(client), [], "workers after the shutdown")


def test_scheduler(options):
    """rq: enqueue_in, enqueue_at and retries with an interval through its scheduler."""
    with setting(options) as (running, client, folder):
        tasks = rq.Queue("default", connection=client)
        begun = time.time()
        soon = tasks.enqueue_in(datetime.timedelta(seconds=1), rq_jobs.double, 1)
        at = tasks.enqueue_at(datetime.datetime.now() + datetime.timedelta(seconds=2),
                              rq_jobs.double, 2)
        late = tasks.enqueue_in(datetime.timedelta(hours=1), rq_jobs.double, 3)
        again = tasks.enqueue(rq_jobs.second_time, str(folder / "marker"),
                              retry=rq.Retry(max=1, interval=1))
        with worker(running, folder, "w", "default", "--with-scheduler"):
            require_equal(finished(soon)["doubled"], 2, "scheduled in a second")
            require_equal(finished(at)["doubled"], 4, "scheduled at a time")
            require_equal(finished(again), "mended", "the retried job's result")
            # rq keeps whole seconds of a time.
            require(time.time() - begun >= 1, "it ran early")
            require_equal(registry.ScheduledJobRegistry(queue=tasks).get_job_ids(), [late.id],
                          "still scheduled")
            require_equal(status(late), "scheduled", "status")


class Crew:
    """Workers that are started again when they end, as an init system does."""

    def __init__(self, running, folder, count):
        self.running, self.folder = running, folder
        self.members = [None] * count
        self.started = 0
        self.stopping = threading.Event()
        self.keeper = threading.Thread(target=self._keep)

    def _keep(self):
        while not self.stopping.wait(0.02):
            for slot, program in enumerate(self.members):
                if program is None or program.process.poll() is not None:
                    if program is not None:
                        program.end()
                    self.started += 1
                    self.members[slot] = worker(self.running, self.folder, f"w{self.started}",
                                                "kill")

    def __enter__(self):
        self.keeper.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.keeper.join()
        for program in self.members:
            if program is not None:
                program.end()


def insist(call):
    """For a caller to whom a lost connection says nothing."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return call()
        except (redis.ConnectionError, redis.TimeoutError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def strays(tasks, jobs):
    """Jobs that a worker had in hand when the server died, as rq leaves them: started, or taken off
    the list and not started yet (rq 1.13 pops a job before it says so; in Redis too it is lost)."""
    started = registry.StartedJobRegistry(queue=tasks)
    started.cleanup(time.time() + 10 * 365 * 86400)
    listed = set(tasks.get_job_ids())
    return [job for job in jobs if status(job) != "finished" and job.id not in listed]


def test_kill(options):
    """rq: the server killed while jobs are added and run; each that was acknowledged finishes."""
    with setting(options) as (running, client, folder):
        tasks = rq.Queue("kill", connection=client)
        later = insist(lambda: tasks.enqueue_in(datetime.timedelta(seconds=1), rq_jobs.double, 900))
        jobs = []
        held = tasks.enqueue(rq_jobs.double, 901, depends_on=later)
        with Crew(running, folder, WORKERS):
            for number in range(60):
                jobs.append(insist(lambda n=number: tasks.enqueue(rq_jobs.double, n)))
                if number in (20, 40):
                    wait_until(lambda n=number: len(runs(folder)) > n // 4, PATIENCE_S, "runs")
                    running.kill()
                    running.start()
            missing = set(map(str, range(60)))
            wait_until(lambda: len(missing - set(runs(folder))) <= 2 * WORKERS, PATIENCE_S,
                       "the runs but for what was in hand at a kill")
            wait_until(lambda: not tasks.get_job_ids(), PATIENCE_S, "an empty list")
        left = strays(tasks, jobs)
        # One for each worker: at the two kills of the server, and when the workers were ended.
        require(len(left) <= 3 * WORKERS, f"{len(left)} of the jobs have not finished")
        require_equal(registry.ScheduledJobRegistry(queue=tasks).get_job_ids(), [later.id],
                      "scheduled before the kills")
        planner = scheduler.RQScheduler(["kill"], client)
        planner.release_locks()
        planner.acquire_locks()
        planner.enqueue_scheduled_jobs()
        for job in left:
            tasks.enqueue_job(job)
        with worker(running, folder, "last", "kill"):
            for job in jobs + [later, held]:
                finished(job)
        require_equal(set(runs(folder)), missing | {"900", "901"}, "runs")


if __name__ == "__main__":
    libraries.run(sys.modules[__name__])
