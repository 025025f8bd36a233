#!/usr/bin/python3
"""tools/run: the link to the page printed on a terminal, and --demo with simulated queues."""

import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import time
import urllib.request

from harness import require, require_equal, run, scratch, wait_until
from harness.cli import environment
from harness.servers import ROOT


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
    """tools/run --demo serves a page with three queues whose jobs flow, fail and are tried again,
    under short ids; at SIGINT it leaves nothing behind."""
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
        directory = re.search(r"removes its data in (\S+)", text).group(1)
        require(os.path.isdir(directory), directory)
        with urllib.request.urlopen(link.group(1) + "/", timeout=10) as page:
            require_equal(page.status, 200, "the page")
        require(not [pid for pid in processes_of(directory)
                     if link.group(2) in pathlib.Path("/proc", pid, "cmdline").read_text()],
                "the token stands in the list of processes")

        def get(path):
            request = urllib.request.Request(link.group(1) + "/api/v1/queues" + path)
            request.add_header("Authorization", "Bearer " + link.group(2))
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)

        def stats(queue):
            return get("/" + queue)["stats"]

        for queue, slots in [("mail", 4), ("render", 2), ("grade", 6)]:
            wait_until(lambda: stats(queue)["completed"] > 0, timeout_s=60,
                       what=f"a completed job of {queue}")
            require_equal(stats(queue)["max_active"], slots, "the queue is configured")
        wait_until(lambda: stats("mail")["failed"] > 0, timeout_s=60, what="a failed job")
        wait_until(lambda: get("/mail/events?type=retrying")["events"], timeout_s=60,
                   what="a run that is tried again")
        for job in get("/mail/jobs?state=failed")["jobs"]:
            require(re.fullmatch(r"(mail|report)-[0-9a-z]{5}", job["id"]), job["id"])
            require(job["error"] and job["error"] != "exit code 1", job)
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


def read_until(terminal, part, timeout_s=120):
    """What has come from a terminal once `part` and the rest of its line are there."""
    text = ""
    deadline = time.monotonic() + timeout_s
    while not re.search(re.escape(part) + ".*\n", text):
        left = deadline - time.monotonic()
        require(left > 0 and select.select([terminal], [], [], left)[0], f"no {part!r} in: {text}")
        text += os.read(terminal, 4096).decode()
    return text


def add_job(link):
    """The status of a job that is added with the link's token."""
    request = urllib.request.Request(
        link.group(1) + "/api/v1/queues/q/jobs", data=b'{"id": "a", "payload": "x"}',
        headers={"Authorization": "Bearer " + link.group(2), "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.status


def test_a_link_at_a_terminal(_options):
    """tools/run prints, to a terminal alone, a link whose token may change things, and no file of
    it stays; --http-token names others instead."""
    with scratch() as folder:
        arguments = [str(ROOT / "tools" / "run"), "--port", "auto", "--http-port", "auto", "--dir",
                     os.path.join(folder, "data")]
        link = None
        for more, wanted in [([], True), (["--http-token", "read", ">0123456789abcdef"], False)]:
            control, terminal = pty.openpty()
            server = subprocess.Popen(arguments + more, env=environment() | {"TMPDIR": folder},
                                      stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal,
                                      start_new_session=True)
            os.close(terminal)
            try:
                text = read_until(control, "page, logged in" if wanted else "serv")
                link = re.search(r"(http://127\.0\.0\.1:\d+)/#token=([0-9a-f]{48})\r\n", text)
                require_equal(link is not None, wanted, text)
                if wanted:
                    require_equal(add_job(link), 201, "a change with the token of the link")
            finally:
                server.terminate()
                server.wait(30)
                os.close(control)
        wait_until(lambda: os.listdir(folder) == ["data"], timeout_s=20, what="nothing but data")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
