#!/usr/bin/python3
"""Celery of Debian with the server as broker and for results: a worker with processes, a killed
server."""

import importlib.util
import sys

from harness import Skipped, libraries, scratch

PYTHON = libraries.HERE / "python"


class ServerAndWorker:
    """A worker beside a server, both of which fall at a kill and start again, as their supervisor
    would see to. The worker of Celery 5.2 comes back to a broker that it lost, but takes no more
    tasks then in one of ten runs, with redis-server as the broker too."""

    def __init__(self, running, folder):
        self.running = running
        self.folder = folder
        self.worker = None

    @property
    def port(self):
        return self.running.port

    def start(self):
        self.running.start()
        self.worker = libraries.Program(
            [sys.executable, "-m", "celery", "--app", "celery_tasks", "worker", "--concurrency", 2,
             "--loglevel", "INFO", "--hostname", "w@test"],
            # A worker that is killed leaves its temporary folders behind.
            self.port, self.folder, PYTHONPATH=str(PYTHON), TMPDIR=str(self.folder))
        self.worker.wait_for("ready.")

    def kill(self):
        self.running.kill()
        self.worker.end()

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        if self.worker is None:
            return
        self.worker.end(gently=failure is None)
        if failure is not None:
            self.worker.tell_printed()


def run(options, part, fsync="always"):
    if not importlib.util.find_spec("celery"):
        raise Skipped("NOT RUN: no python3-celery; tools/setup test installs it")
    with libraries.server(options, fsync) as running, scratch() as folder:
        with ServerAndWorker(running, folder) as both:
            both.start()
            libraries.play([sys.executable, PYTHON / "celery_scenario.py", part], both, folder)


def test_tasks(options):
    """Celery: results, states, retry, group, chain, chord, countdown, expiry, revoke, inspect."""
    run(options, "tasks")


def test_kill(options):
    """Celery: server and worker killed while tasks are sent and run; the acknowledged are done."""
    run(options, "kill", fsync="everysec")


if __name__ == "__main__":
    libraries.run(sys.modules[__name__])
