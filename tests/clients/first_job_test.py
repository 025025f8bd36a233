#!/usr/bin/python3
"""docs/first-job.md: its programs run as they stand, and print what it says."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import harness
from harness import require, require_equal
from harness.typescript_client import COMPILER, PACKAGE, built

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "first-job.md").read_text(encoding="utf-8")
TIMEOUT_S = 60


def marked(kind, name):
    found = re.search(rf"<!-- {kind}: {re.escape(name)} -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    require(found, f"docs/first-job.md has no {kind} {name}")
    return found.group(1)


def run_both(options, folder, command, suffix, environment):
    """Runs the worker, and submit beside it; returns what that printed. The worker ends with 0."""
    with options.server() as server:
        environment = dict(os.environ, SLUICE_URL=f"redis://127.0.0.1:{server.port}",
                           **environment)

        def start(name, **others):
            return subprocess.Popen([*command, folder / f"{name}.{suffix}"], env=environment,
                                    cwd=folder, **others)

        worker = start("worker")
        try:
            with start("submit", stdout=subprocess.PIPE, text=True) as submit:
                printed, _ = submit.communicate(timeout=TIMEOUT_S)
            require_equal(submit.returncode, 0, "the exit code of submit")
            worker.terminate()
            require_equal(worker.wait(TIMEOUT_S), 0, "the exit code of the worker")
        finally:
            worker.kill()
            worker.wait()
    return printed


def test_python(options):
    """In Python."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for program in ("worker.py", "submit.py"):
            (folder / program).write_text(marked("file", program), encoding="utf-8")
        printed = run_both(options, folder, [sys.executable], "py",
                           {"PYTHONPATH": str(ROOT / "clients" / "python")})
    require_equal(printed, marked("output", "submit.py"))


def test_typescript(options):
    """In TypeScript, checked strictly."""
    node = built()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        modules = folder / "node_modules"
        (modules / "@sluice").mkdir(parents=True)
        (modules / "@sluice" / "queue").symlink_to(PACKAGE)
        (modules / "@types").symlink_to(PACKAGE / "node_modules" / "@types")
        for program in ("worker.mts", "submit.mts"):
            (folder / program).write_text(marked("file", program), encoding="utf-8")
        subprocess.run([node, COMPILER, "--strict", "--target", "es2022", "--module", "nodenext",
                        "--types", "node", "worker.mts", "submit.mts"], cwd=folder, check=True)
        printed = run_both(options, folder, [node], "mjs", {})
    require_equal(printed, marked("output", "submit.mts"))


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__], io_threads=(1,)))
