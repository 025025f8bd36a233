#!/usr/bin/python3
"""tools/run --demo: a page with a queue that lives, in one command."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import urllib.request

from program import ROOT, environment, require, require_equal, run, wait_until


def processes_of(path):
    """Ids of processes whose command line names it."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and path in (entry / "cmdline").read_bytes().decode(
                    errors="replace"):
                found.append(entry.name)
        except OSError:
            continue
    return found


def test_the_demo(_options):
    """tools/run --demo serves a page with jobs that flow; at SIGINT it leaves nothing behind."""
    demo = subprocess.Popen([str(ROOT / "tools" / "run"), "--demo"], env=environment(),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, start_new_session=True,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    lines = []
    try:
        while not (lines and "Ctrl-C" in lines[-1]):
            lines.append(demo.stdout.readline().decode())
            require(lines[-1], "".join(lines))
        text = "".join(lines)
        link = re.search(r"(http://127\.0\.0\.1:\d+)/#token=([0-9a-f]{48})\n", text)
        directory = re.search(r"in (\S+), go with it", text).group(1)
        require(os.path.isdir(directory), directory)
        with urllib.request.urlopen(link.group(1) + "/", timeout=10) as page:
            require_equal(page.status, 200, "the page")
        require(not [pid for pid in processes_of(directory)
                     if link.group(2) in pathlib.Path("/proc", pid, "cmdline").read_text()],
                "the token stands in the list of processes")

        def stats():
            request = urllib.request.Request(link.group(1) + "/api/v1/queues/demo")
            request.add_header("Authorization", "Bearer " + link.group(2))
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)["stats"]

        wait_until(lambda: stats()["completed"] > 0, timeout_s=20, what="a completed job")
        require_equal(stats()["max_active"], 6, "the queue is configured")
        require(len(processes_of(directory)) == 1, "one server")
        # As a terminal does it, to all that are in the foreground.
        os.killpg(demo.pid, signal.SIGINT)
        rest = demo.communicate(timeout=15)[0].decode()
        require_equal(demo.returncode, 0, "exit code: " + rest)
        require(" completed " in rest and "totals" in rest, "no summary: " + rest)
        require(not os.path.exists(directory), "the directory is still there")
        require_equal(processes_of(directory), [], "processes")
    finally:
        if demo.poll() is None:
            os.killpg(demo.pid, signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
