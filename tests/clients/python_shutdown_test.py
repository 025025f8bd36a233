#!/usr/bin/python3
"""How workers of the Python client end: SIGTERM in every phase, handlers that hang; processes."""

import asyncio
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from pickle import PicklingError

from harness import require, require_equal, run, scratch, wait_until
from harness.python_client import PACKAGE, raised, url_of
from harness.servers import LOOPBACK
from harness.worker_program import WorkerProgram

import handlers
from sluice import NotCompleted, Queue, Worker
from sluice.codec import codec_of
from sluice.job import WorkerJob
from sluice.outcome import GIVEN_BACK
from sluice.plan import Lease
from sluice.processes import ProcessSlots

EXEC = "exec"
HERE = os.path.dirname(os.path.abspath(__file__))


class Started(WorkerProgram):
    """`python -m sluice worker`."""

    def __init__(self, server, handler, *arguments, wait=True):
        super().__init__(
            [sys.executable, "-m", "sluice", "worker", f"handlers:{handler}", "--queue", EXEC,
             "--server", url_of(server.port)], arguments, wait, cwd=HERE,
            env={**os.environ,
                 "PYTHONPATH": str(PACKAGE) + ":" + os.environ.get("PYTHONPATH", "")})

    def terminate(self):
        """SIGTERM. Returns the exit code and the seconds it took."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        return self.end(), time.monotonic() - began


def active(queue, payload, **options):
    """A job whose handler has begun."""
    job = queue.add(payload, **options)
    wait_until(lambda: job.get().progress == "begun", 60, what="it runs")
    return job


def require_given_back(job):
    require_equal((job.get().state, job.get().attempts), ("pending", 0))


def test_sigterm_while_waiting(options):
    """SIGTERM while the worker waits for jobs: it ends at once, and holds nothing."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
            Started(server, "echo") as worker:
        queue.add(1).result(20)
        with server.connect() as connection:
            wait_until(lambda: queue.stats()["waiting_pops"] == 1, what="it waits")
            code, took = worker.terminate()
            require_equal(code, 0, worker.text)
            require(took < 5, f"{took:.1f} s")
            wait_until(lambda: queue.stats()["waiting_pops"] == 0, what="no pop waits")
            del connection
        job = queue.add(2)
        require_given_back(job)


def test_sigterm_while_handlers_run(options):
    """What ends within grace is acknowledged; the rest is given back, whether it asks or not."""
    for handler in ("steps", "sleep", "sleep_async"):
        with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
                Started(server, handler, "--concurrency", "2", "--grace", "1.5") as worker:
            short = active(queue, 0.5)
            long = active(queue, 30)
            code, took = worker.terminate()
            require_equal(short.result(5), "ended")
            require_given_back(long)
            require_equal(code, 1 if handler == "sleep" else 0, worker.text)
            require(1.5 <= took < 12, f"{handler}: {took:.1f} s")
            require_equal(queue.stats()["reclaimed"], 0)


def test_sigterm_between_jobs(options):
    """SIGTERM while many short jobs come and go: each is completed or given back."""
    for after in (0.0, 0.05, 0.3):
        with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
                Started(server, "echo", "--concurrency", "5") as worker:
            queue.add_many([{"payload": n} for n in range(3000)])
            time.sleep(after)
            code, _ = worker.terminate()
            require_equal(code, 0, worker.text)
            stats = queue.stats()
            require_equal((stats["active"], stats["reclaimed"]), (0, 0))
            require_equal(stats["completed"] + stats["pending"], 3000)


def test_handlers_that_do_not_end(options):
    """Handlers that ignore the end, and those that block the event loop: their jobs are given back
    at the end of grace, and the process exits 1."""
    for handler in ("ignore_cancel", "block_loop"):
        with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
                Started(server, handler, "--grace", "0.5") as worker:
            job = active(queue, 60, lease=2)
            time.sleep(3)
            require_equal(job.get().state, "active", "heartbeats continue")
            code, took = worker.terminate()
            require_equal(code, 1, worker.text)
            require(took < 12, f"{took:.1f} s")
            require_given_back(job)


def test_process_that_exits(options):
    """A handler that ends its process loses its lease; the job goes to another worker."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
            Started(server, "crash") as worker:
        job = queue.add("exit", lease=0.3)
        require_equal(worker.end(), 3, worker.text)
        wait_until(lambda: job.get().state == "pending", what="it is reclaimed")
        require_equal(job.get().crashes, 1)


def test_second_sigterm(options):
    """A second SIGTERM ends the grace."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
            Started(server, "steps", "--concurrency", "2", "--grace", "60") as worker:
        job = active(queue, 60)
        wait_until(lambda: queue.stats()["waiting_pops"] == 1, what="it waits for another job")
        worker.process.send_signal(signal.SIGTERM)
        # Two signals that a process has not heard yet are one.
        wait_until(lambda: queue.stats()["waiting_pops"] == 0, what="it has heard the first")
        code, took = worker.terminate()
        require_equal(code, 0, worker.text)
        require(took < 10, f"{took:.1f} s")
        require_given_back(job)


def test_sigterm_without_a_server(options):
    """SIGTERM while the server is frozen or away: the worker ends all the same."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        with Started(server, "echo", "--grace", "0") as worker:
            os.kill(server.pid, signal.SIGSTOP)
            try:
                code, took = worker.terminate()
            finally:
                os.kill(server.pid, signal.SIGCONT)
            require(took < 20, f"{took:.1f} s")
            require_equal(code, 0, worker.text)
        with Started(server, "sleep", "--grace", "0") as worker:
            active(queue, 60)
            server.kill()
            code, took = worker.terminate()
            require(took < 20, f"{took:.1f} s")
            require_equal(code, 1, worker.text)
        with Started(server, "echo", wait=False) as worker:
            wait_until(lambda: "the server is away" in worker.text, 60, what="it says so")
            require_equal(worker.terminate()[0], 0, worker.text)


def test_other_threads(options):
    """Outside the main thread run() installs no handlers of signals; stop() drains."""
    before = signal.getsignal(signal.SIGTERM)
    started = threading.Event()

    def handler(job):
        started.set()
        time.sleep(0.5)
        return "ended"

    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        worker = Worker(EXEC, handler, url_of(server.port))
        thread = threading.Thread(target=worker.run)
        thread.start()
        require(not worker.wait_ready(0) or worker.ready, "ready says the same")
        require(worker.wait_ready(20), "it is ready")
        require_equal(signal.getsignal(signal.SIGTERM), before)
        job, more = queue.add(1), queue.add(2)
        require(started.wait(20), "it runs")
        worker.stop()
        thread.join(20)
        require(not thread.is_alive(), "it has ended")
        require_equal((job.result(5), worker.ready), ("ended", False))
        require_equal(more.get().state, "pending")


def test_stop_before_run(options):
    """A worker that was told to stop before it runs takes no job."""
    async def handler_async(_job):
        pass

    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        jobs = [queue.add(n) for n in range(3)]
        for handler, processes_too in ((handlers.echo, False), (handler_async, False),
                                       (handlers.echo, True)):
            worker = Worker(EXEC, handler, url_of(server.port), concurrency=2,
                            processes=processes_too)
            worker.stop()
            worker.run()
            require_equal(worker.counts["started"], 0)
            for job in jobs:
                require_given_back(job)


def test_program_with_signals_of_its_own(options):
    """With `signals` off a program hears SIGTERM as before, and stops the worker itself."""
    async def handler(job):
        return job.payload

    async def serve(url):
        worker = Worker(EXEC, handler, url, signals=False)
        serving = asyncio.create_task(worker.serve())
        await asyncio.to_thread(worker.wait_ready, 20)
        require(worker.ready, "it is ready")
        require_equal(signal.getsignal(signal.SIGTERM), before)
        worker.stop()
        await asyncio.wait_for(serving, 20)

    before = signal.getsignal(signal.SIGTERM)
    with options.server() as server:
        asyncio.run(serve(url_of(server.port)))


def test_command_line(options):
    """python -m sluice worker: burst, errors in one line, exit codes."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        jobs = queue.add_many([{"payload": n} for n in range(20)])
        with Started(server, "echo", "--burst", "--concurrency", "4", wait=False) as worker:
            require_equal(worker.end(), 0, worker.text)
        require_equal([job.result(5) for job in jobs], list(range(20)))
        with Started(server, "missing", wait=False) as worker:
            require_equal(worker.end(), 2)
            require("missing" in worker.text and "Traceback" not in worker.text, worker.text)
        with server.connect() as connection:
            connection.call("DEL", EXEC)
            connection.call("SET", EXEC, "x")
        with Started(server, "echo", wait=False) as worker:
            require_equal(worker.end(), 1)
            require("WRONGTYPE" in worker.text and "Traceback" not in worker.text, worker.text)


def text_of(path):
    """Empty if it is not there."""
    with contextlib.suppress(FileNotFoundError):
        return path.read_text(encoding="ascii")
    return ""


def test_ready_file(options):
    """--ready-file is there while the worker runs; that of an earlier one is removed, and one that
    cannot be written ends the worker."""
    with options.server() as server, scratch() as folder:
        ready = pathlib.Path(folder, "ready")
        ready.write_text("old", encoding="ascii")
        with Started(server, "echo", "--ready-file", str(ready), wait=False) as worker:
            wait_until(lambda: text_of(ready).endswith("\n"), what="it is ready")
            require_equal(worker.terminate()[0], 0, worker.text)
            require(not ready.exists(), "it is removed")
        with Started(server, "echo", "--ready-file", str(ready / "none"), wait=False) as worker:
            require_equal(worker.end(), 1)
            require("sluice: --ready-file: " in worker.text and "Traceback" not in worker.text,
                    worker.text)


# -- Processes ------------------------------------------------------------------------------------


@contextlib.contextmanager
def processes(server, handler=handlers.crash, **options):
    worker = Worker(EXEC, handler, url_of(server.port), processes=True, **options)
    thread = threading.Thread(target=worker.run, daemon=True)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(60)
        require(not thread.is_alive(), "the worker has not ended")


def test_processes(options):
    """A child that exits fails its job alone, whatever it exits with; the next job gets another."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
            processes(server, concurrency=2):
        pid, payload = queue.add("first").result(60)
        require(pid != os.getpid() and payload == "first", "it runs in a child")
        for payload, error in (("segv", "exit 139"), ("exit", "exit 3"), ("sys.exit", "exit 4"),
                               ("throw", "ValueError: thrown")):
            job = queue.add(payload)
            beside = queue.add("beside")
            require_equal(raised(NotCompleted, job.result, 60).error, error)
            require_equal(beside.result(60)[1], "beside")
        require_equal(queue.stats()["reclaimed"], 0)


def test_late_words(options):
    """What is said for a job whose handler has returned is dropped: it does not come to the job
    that runs in that child now."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
            processes(server, handlers.speak_for_all), server.connect() as connection:
        pids = set()
        for name in "abc":
            job = queue.add(1, name)
            pids.add(job.result(60))
            require_equal(connection.call("Q.LOG", EXEC, name).value[1],
                          f"of {name}\n".encode())
            require_equal(job.get().progress, name)
        require_equal(len(pids), 1, "one child has run all of them")


def test_fork_of_a_child(options):
    """A child that exits fails its job, also while a fork of it lives on."""
    with scratch() as folder, options.server() as server, \
            Queue(EXEC, url_of(server.port)) as queue:
        pid = pathlib.Path(folder, "pid")
        os.environ["FORKED"] = str(pid)
        try:
            with processes(server):
                job = queue.add("fork and exit")
                require_equal(raised(NotCompleted, job.result, 60).error, "exit 3")
        finally:
            del os.environ["FORKED"]
            os.kill(int(wait_until(lambda: pid.exists() and pid.read_text(), what="the pid")),
                    signal.SIGKILL)


def test_child_with_a_codec_of_one_way(options):
    """A codec that does not read what it writes is good enough for results."""
    completed = []
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
            Queue(EXEC, url_of(server.port), codec="raw") as raw:
        with processes(server, codec=handlers.OneWay(),
                       on_completed=lambda _job, result: completed.append(result)):
            result = raw.result(queue.add("x").id, 60)
            require(result.startswith(b"text ["), repr(result))
            wait_until(lambda: completed, what="the hook")
            require_equal(completed, [result])


def heard(path):
    """What the handler `hear` has written."""
    return json.loads(wait_until(lambda: path.exists() and path.read_text(), what="it has heard"))


def test_what_a_child_knows(options):
    """A handler in a child knows the reason of a cancel, and of a lease that is lost."""
    with scratch() as folder, options.server() as server, \
            Queue(EXEC, url_of(server.port)) as queue, processes(server, handlers.hear):
        for grace, known in ((None, ["enough", "enough", False]),
                             (0, ["the lease is lost", None, True])):
            path = pathlib.Path(folder, f"heard-{grace}")
            active(queue, str(path), lease=60).cancel("enough", grace)
            require_equal(heard(path), known)


def stop_while_a_child_is_made(handler, payload, grace):
    """How the job ends whose child is made while that of another has no end."""
    ended = []
    codec = codec_of("json")
    slots = ProcessSlots(handler, codec, lambda *end: ended.append(end), grace, lambda: False)
    first, job = (WorkerJob(Lease(b"q", id_, 1, 1, codec.encode(payload), 30.0, {}), codec)
                  for id_ in (b"x", b"y"))
    try:
        slots.start(first)  # It has the child that was there.
        wait_until(lambda: slots._children, what="the first child")
        slots.start(job)
        job._held.stop = "enough"
        slots.stop(job, "enough")
        wait_until(lambda: ended, what="the end")
        require_equal(ended[0][:2], (job, GIVEN_BACK))
    finally:
        slots.close()


def test_stop_while_a_child_is_made(_options):
    """A job that is stopped while its child is being made knows why, and ends after grace."""
    with scratch() as folder:
        path = pathlib.Path(folder, "heard")
        stop_while_a_child_is_made(handlers.hear, str(path), 60)
        require_equal(heard(path), ["enough", "enough", False])
    stop_while_a_child_is_made(handlers.crash, "hang", 0.5)


EXIT = """
import sys, threading
from sluice import Queue, Worker
import handlers
worker = Worker("exec", handlers.crash, sys.argv[1], processes=True)
threading.Thread(target=worker.run, daemon=True).start()
print(Queue("exec", sys.argv[1]).add("x").result(60)[1])
"""


def test_exit_beside_a_worker(options):
    """A program ends though a worker with processes still runs in a daemon thread."""
    with options.server() as server:
        done = subprocess.run([sys.executable, "-c", EXIT, url_of(server.port)],
                              capture_output=True, text=True, timeout=60, check=False,
                              cwd=HERE, env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        require_equal((done.returncode, done.stdout), (0, "x\n"), done.stderr)


LOOP = """
import asyncio, sys
from sluice import AsyncQueue, Queue, Worker

async def run(job):
    began.set()
    await asyncio.sleep(3600)

async def follow():
    async for event in AsyncQueue("exec", sys.argv[1]).events("-"):
        seen.append(event)

async def main():
    global began
    began = asyncio.Event()
    tasks.append(asyncio.ensure_future(Worker("exec", run, sys.argv[1]).serve()))
    tasks.append(asyncio.ensure_future(follow()))
    await began.wait()
    while not seen:
        await asyncio.sleep(0.01)

tasks, seen = [], []
asyncio.new_event_loop().run_until_complete(main())
"""


def test_exit_beside_tasks(options):
    """A program ends though tasks of its event loop still serve a queue and follow events."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        job = queue.add("x", lease=3.0, retry=0)
        done = subprocess.run([sys.executable, "-c", LOOP, url_of(server.port)],
                              capture_output=True, text=True, timeout=60, check=False,
                              env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        require_equal(done.returncode, 0, done.stderr)
        wait_until(lambda: job.get().state != "active", 60, "its lease ends")


def test_children_that_cannot_begin(options):
    """A program whose children begin with a worker, or whose handler has no name, takes no job."""
    program = """
import sys, handlers, sluice
sluice.Worker("exec", handlers.echo, sys.argv[1], processes=True).run()
"""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
            scratch() as folder:
        job = queue.add(1)
        raised((AttributeError, PicklingError),
               Worker(EXEC, lambda job: 1, url_of(server.port), processes=True).run)
        script = pathlib.Path(folder) / "program.py"
        script.write_text(program, encoding="ascii")
        done = subprocess.run([sys.executable, script, url_of(server.port)], text=True, timeout=60,
                              stderr=subprocess.PIPE, check=False,
                              env={**os.environ, "PYTHONPATH": f"{PACKAGE}:{HERE}"})
        require(done.returncode == 1 and "__main__" in done.stderr, done.stderr)
        require_given_back(job)


def test_sigterm_while_a_child_begins(options):
    """A worker whose first child has not begun is stopped as any other one, and takes no job."""
    program = """
import pathlib, sys, time, sluice
if __name__ != "__main__":
    pathlib.Path(sys.argv[2]).touch()
    time.sleep(600)
def handler(job): pass
if __name__ == "__main__":
    sluice.Worker("exec", handler, sys.argv[1], processes=True).run()
"""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
            scratch() as folder:
        job = queue.add(1)
        script, begins = pathlib.Path(folder) / "program.py", pathlib.Path(folder) / "begins"
        script.write_text(program, encoding="ascii")
        with subprocess.Popen([sys.executable, script, url_of(server.port), begins],
                              env={**os.environ, "PYTHONPATH": PACKAGE}) as worker:
            try:
                wait_until(begins.exists, what="the child")
                worker.terminate()
                require_equal(worker.wait(20), 0, "exit code")
                require_given_back(job)
            finally:
                worker.kill()


def test_signals_of_what_handlers_start(options):
    """Forks and programs that a handler starts hear SIGTERM as if there were no worker."""
    for arguments in ((), ("--processes",)):
        with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
                Started(server, "signalled", *arguments):
            require_equal(queue.add(1).result(60), [signal.SIGTERM, -signal.SIGTERM], arguments)


def test_child_that_hangs(options):
    """A child that ignores a cancel is killed after grace; heartbeats continue meanwhile."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue:
        with processes(server, grace=1) as worker:
            job = active(queue, "hang", lease=30)
            began = time.monotonic()
            job.cancel("enough")
            ended = raised(NotCompleted, job.result, 60)
            require_equal((ended.state, ended.error), ("cancelled", "enough"))
            require(1 <= time.monotonic() - began < 10, "after grace")
            require_equal(queue.add("next").result(60)[1], "next")
            require_equal(worker.counts["lost"], 0)
            job = active(queue, "hang", lease=2)
            time.sleep(3)
            require_equal(job.get().state, "active", "heartbeats continue")
        require_given_back(job)
        require_equal(children(), [])


def children():
    """The pids of children that run Python."""
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        pids = file.read().split()
    return [pid for pid in pids if b"multiprocessing.spawn" in cmdline(pid)]


def cmdline(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def test_children_end_with_their_parent(options):
    """A parent that is killed leaves no children behind."""
    with options.server() as server, Queue(EXEC, url_of(server.port)) as queue, \
            Started(server, "crash", "--processes", "--concurrency", "1") as worker:
        pid = queue.add("x").result(60)[0]
        require(os.path.exists(f"/proc/{pid}"), "the child lives")
        worker.process.kill()
        worker.process.wait()
        wait_until(lambda: b"spawn" not in cmdline(pid), what="the child has ended")


def test_testing_server(options):
    """sluice.testing.Server starts a server in memory on a free port of loopback, and ends it."""
    from sluice import testing  # pylint: disable=import-outside-toplevel
    with testing.Server(options.program) as server, Queue(EXEC, server.url) as queue:
        require(LOOPBACK in server.url, server.url)
        queue.add(1)
        pid = server.pid
        require_equal(queue.stats()["pending"], 1)
    require(not os.path.exists(f"/proc/{pid}"), "it has ended")
    raised(RuntimeError, testing.Server, options.program, "--nonsense", "1")
    raised(FileNotFoundError, testing.Server, "/nonexistent/sluice-server")


UNCLOSED = """
import os, sys
from sluice import Queue, testing
server = testing.Server(sys.argv[1])
print(server.pid, server._directory, flush=True)
if os.fork() == 0:
    sys.exit(0)
os.wait()
print(os.listdir(server._directory))
Queue("exec", server.url).add(1)
raise KeyError
"""


def test_testing_server_that_is_not_closed(options):
    """It ends with its program, whose exception changes nothing; not with a fork of that."""
    done = subprocess.run([sys.executable, "-c", UNCLOSED, options.program], text=True,
                          timeout=120, env={**os.environ, "PYTHONPATH": str(PACKAGE)},
                          capture_output=True, check=False)
    require("KeyError" in done.stderr, done.stderr)
    pid, directory, files = done.stdout.split(maxsplit=2)
    require("ready" in files, f"after the fork: {files}")
    require(not os.path.exists(f"/proc/{pid}"), "it has ended")
    require(not os.path.exists(directory), "its files are gone")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
