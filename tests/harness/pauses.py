"""How long this machine lets nobody run: a process that sleeps 5 ms at a time and keeps the longest
delay. Figures that were measured beside such a pause say little about what was measured."""

import subprocess
import sys

from harness.servers import die_with_parent

PROBE = """
import select, sys, time
longest, last = 0.0, time.monotonic()
while True:
    asked = select.select([sys.stdin], [], [], 0.005)[0]
    now = time.monotonic()
    longest, last = max(longest, now - last - 0.005), now
    if asked:
        if not sys.stdin.readline():
            break
        print(longest, flush=True)
        longest, last = 0.0, time.monotonic()
"""


class PauseProbe:
    def __enter__(self):
        # pylint: disable=consider-using-with
        self._process = subprocess.Popen([sys.executable, "-c", PROBE], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True,
                                         preexec_fn=die_with_parent)  # noqa: one thread
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()

    def longest_s(self):
        """Since the last call."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())
