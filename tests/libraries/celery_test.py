#!/usr/bin/python3
"""Celery of Debian with the server as broker and for results: a worker with processes, a killed
server."""

import importlib.util
import sys

import play

PYTHON = play.HERE / "python"


def run(options, part, fsync="always"):
    if not importlib.util.find_spec("celery"):
        raise play.Skipped("NOT RUN: no python3-celery; tools/setup test installs it")
    with play.server(options, fsync) as running, play.scratch() as folder:
        # Without its talk to other workers: with it, Celery 5.2 connects again after a lost broker
        # and takes no more tasks, whatever the broker is.
        worker = play.Program(
            [sys.executable, "-m", "celery", "--app", "celery_tasks", "worker", "--concurrency", 2,
             "--without-mingle", "--without-gossip", "--loglevel", "INFO", "--hostname", "w@test"],
            running.port, folder, PYTHONPATH=str(PYTHON))
        with worker:
            worker.wait_for("ready.")
            play.play([sys.executable, PYTHON / "celery_scenario.py", part], running, folder)
            worker.end(gently=True)


def test_tasks(options):
    """Celery: results, states, retry, group, chain, chord, countdown, expiry, revoke, inspect."""
    run(options, "tasks")


def test_kill(options):
    """Celery: the server killed while tasks are sent and run; the acknowledged ones are done."""
    run(options, "kill", fsync="everysec")


if __name__ == "__main__":
    play.run(sys.modules[__name__])
