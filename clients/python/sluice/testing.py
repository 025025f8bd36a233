"""For tests of programs that use this package: a server of their own.

    with sluice.testing.Server() as server:
        queue = sluice.Queue("exec", server.url)
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import time
from typing import Optional


class Server:
    """A server on a free port of loopback, which keeps everything in memory. It ends with `close`,
    or else with the program, unless a signal kills that.

    The program is `program`, else the environment's SLUICE_SERVER, else sluice-server in the PATH.
    """

    def __init__(self, program: Optional[str] = None, *arguments: str,
                 timeout: float = 20.0) -> None:
        """`arguments` are further ones of sluice-server. Raises FileNotFoundError without a
        program, RuntimeError with its output if it does not start within `timeout` seconds."""
        found = program or os.environ.get("SLUICE_SERVER") or shutil.which("sluice-server")
        if found is None:
            raise FileNotFoundError("no sluice-server in the PATH; SLUICE_SERVER may name one")
        self._pid = os.getpid()
        # A TemporaryDirectory would be removed by a fork, too, when that ends.
        self._directory = tempfile.mkdtemp(prefix="sluice-testing-")
        self._ready = os.path.join(self._directory, "ready")
        self._log = os.path.join(self._directory, "log")
        try:
            with open(self._log, "wb") as log:
                self._process = subprocess.Popen(
                    [found, "--port", "auto", "--bind", "127.0.0.1", "--http-port", "0",
                     "--appendonly", "no", "--save", "", "--dir", self._directory,
                     "--ready-file", self._ready, *arguments],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        except BaseException:
            shutil.rmtree(self._directory)
            raise
        atexit.register(self.close)
        try:
            self.port = self._wait(timeout)
        except BaseException:
            self.close()
            raise
        self.url = f"redis://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        """Ends the server. In the child of a fork, which has not started it, nothing happens."""
        if self._pid != os.getpid():
            return
        atexit.unregister(self.close)
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _wait(self, timeout: float) -> int:
        until = time.monotonic() + timeout
        while time.monotonic() < until and self._process.poll() is None:
            try:
                with open(self._ready, encoding="ascii") as ready:
                    for line in ready:
                        name, _, value = line.strip().partition(" ")
                        if name == "port" and value:
                            return int(value)
            except FileNotFoundError:
                pass
            time.sleep(0.01)
        with open(self._log, encoding="utf-8", errors="replace") as log:
            raise RuntimeError(f"sluice-server did not start: {log.read()}")
