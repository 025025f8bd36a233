"""`python -m sluice worker module:function`: a worker from the command line."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import logging
import os
import sys
import threading
from typing import Any, Optional, Sequence

from sluice.errors import SluiceError
from sluice.worker import Worker


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(prog="python -m sluice")
    commands = out.add_subparsers(dest="command", required=True)
    worker = commands.add_parser("worker", help="run a function for the jobs of queues")
    worker.add_argument("handler", help="module:function; a def, or an async def")
    worker.add_argument("--queue", action="append", required=True, dest="queues",
                        help="may be repeated; tried in this order")
    worker.add_argument("--server", help="URL (default: SLUICE_URL, then redis://localhost:6379)")
    worker.add_argument("--concurrency", type=int, default=1, help="handlers at the same time (1)")
    worker.add_argument("--match", action="append", default=[],
                        help="only jobs with one of these keys; may be repeated")
    worker.add_argument("--codec", default="json", choices=("json", "raw"))
    worker.add_argument("--lease", type=float, help="seconds; the queue's by default")
    worker.add_argument("--grace", type=float, default=30.0,
                        help="seconds to finish in after SIGTERM (30)")
    worker.add_argument("--processes", action="store_true",
                        help="one child process for each handler")
    worker.add_argument("--burst", action="store_true", help="end when there are no more jobs")
    worker.add_argument("--max-jobs", type=int, help="end after that many")
    worker.add_argument("--ready-file",
                        help="written when the worker takes jobs, removed at its end")
    return out


def handler_of(name: str) -> Any:
    """The function `module:function`. Raises ValueError, ImportError, AttributeError."""
    module, colon, function = name.partition(":")
    if not colon:
        raise ValueError(f"{name!r} is not module:function")
    return getattr(importlib.import_module(module), function)


class ReadyFile:
    """Written when the worker takes jobs, removed at its end. A worker that cannot write it stops:
    who waits for the file would wait for ever."""

    def __init__(self, worker: Worker, path: str) -> None:
        self._worker = worker
        self._path = path
        self._lock = threading.Lock()
        self._ended = False
        self.error: Optional[OSError] = None
        self._remove()  # that of an earlier worker, which was killed
        threading.Thread(target=self._write, daemon=True).start()

    def end(self) -> None:
        self._ended = True
        self._lock.acquire(timeout=1.0)  # It is held for ever by a pipe that nobody reads.
        self._remove()

    def _write(self) -> None:
        self._worker.wait_ready()
        with self._lock:
            if self._ended:
                return
            try:
                with open(self._path, "w", encoding="utf-8") as file:
                    file.write(self._worker.name + "\n")
            except OSError as error:
                self.error = error
                self._worker.stop()

    def _remove(self) -> None:
        if os.path.isfile(self._path) and not os.path.islink(self._path):  # no /dev/stdout
            with contextlib.suppress(OSError):
                os.unlink(self._path)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    chosen = parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    sys.path.insert(0, os.getcwd())
    try:
        worker = Worker(
            chosen.queues, handler_of(chosen.handler), chosen.server, codec=chosen.codec,
            concurrency=chosen.concurrency, match=chosen.match, lease=chosen.lease,
            grace=chosen.grace, burst=chosen.burst, max_jobs=chosen.max_jobs,
            processes=chosen.processes)
    except (ValueError, ImportError, AttributeError) as error:
        print(f"sluice: {error}", file=sys.stderr)
        return 2
    ready = ReadyFile(worker, chosen.ready_file) if chosen.ready_file else None
    try:
        worker.run()
    except SluiceError as error:
        print(f"sluice: {error}", file=sys.stderr)
        return 1
    finally:
        if ready is not None:
            ready.end()
    if ready is not None and ready.error is not None:
        print(f"sluice: --ready-file: {ready.error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
