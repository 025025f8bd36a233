"""A program with a worker of one of the clients, in a process of its own: a context manager."""

import os
import subprocess
import threading

from harness import require, scratch, wait_until
from harness.servers import die_with_parent


class WorkerProgram:
    """`wait`: until its worker is ready."""

    def __init__(self, command, arguments, wait=True, **others):
        self._folder = scratch()
        ready = os.path.join(self._folder.name, "ready")
        self._log = open(os.path.join(self._folder.name, "log"), "w+b")
        in_main = threading.current_thread() is threading.main_thread()
        self.process = subprocess.Popen(
            [*command, "--ready-file", ready, *arguments], stdin=subprocess.DEVNULL,
            stdout=self._log, stderr=self._log, preexec_fn=die_with_parent if in_main else None,
            **others)
        if wait:
            wait_until(lambda: os.path.exists(ready) or self.process.poll() is not None, 60)
            require(self.process.poll() is None, self.text)

    @property
    def text(self):
        self._log.seek(0)
        return self._log.read().decode()

    def end(self, timeout_s=60):
        """Its exit code, when it has ended by itself."""
        return self.process.wait(timeout_s)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._log.close()
        self._folder.cleanup()
