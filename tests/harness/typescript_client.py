"""The TypeScript client for tests: `built` compiles it and its tests when a source has changed."""

import fcntl
import functools
import json
import pathlib
import subprocess

from harness import Skipped, libraries, need_program, require
from harness.servers import LOOPBACK, ROOT
from harness.worker_program import WorkerProgram

PACKAGE = ROOT / "clients" / "typescript"
SYSTEM = PACKAGE / "dist-test" / "test" / "system"
COMPILER = PACKAGE / "node_modules" / "typescript" / "bin" / "tsc"
BUILT = ROOT / "build" / "typescript-client"  # what was compiled last
LONGEST_S = 120


def state_of_sources():
    files = [*PACKAGE.glob("*.json"), *(PACKAGE / "src").rglob("*"), *(PACKAGE / "test").rglob("*")]
    return "".join(f"{file} {file.stat().st_mtime_ns}\n" for file in sorted(files))


@functools.cache
def built():
    """Compiles package and tests, one process at a time. Returns node."""
    node = need_program("node")
    if not COMPILER.exists():
        raise Skipped("NOT RUN: no node_modules in clients/typescript; tools/setup test installs "
                      "them")
    BUILT.parent.mkdir(exist_ok=True)
    with open(BUILT, "a+", encoding="utf-8") as known:
        fcntl.flock(known, fcntl.LOCK_EX)
        known.seek(0)
        state = state_of_sources()
        if known.read() == state and SYSTEM.exists():
            return node
        known.truncate(0)
        for project in (PACKAGE, PACKAGE / "test"):
            done = subprocess.run([node, COMPILER, "--project", project], capture_output=True,
                                  text=True, timeout=LONGEST_S, check=False)
            require(done.returncode == 0, done.stdout + done.stderr)
        known.write(state)
    return node


def play(options, scenario, **others):
    """A scenario of clients/typescript/test/system, beside a server in memory."""
    node = built()
    with options.server() as server:
        return libraries.play([node, SYSTEM / f"{scenario}.js"], server, **others)


def url_of(port):
    return f"redis://{LOOPBACK}:{port}"


class Started(WorkerProgram):
    """sluice-worker with the handler of test/system/handlers.ts."""

    def __init__(self, port, *arguments, wait=True, queue="exec", handler=SYSTEM / "handlers.js"):
        super().__init__([built(), PACKAGE / "dist" / "cli.js", handler, "--queue", queue,
                          "--server", url_of(port)], arguments, wait)


def add(native, queue, number, do, *options, **fields):
    """Adds a job for that handler; returns its id."""
    job_id = f"job-{number}"
    native.add(queue, job_id, json.dumps({"do": do, **fields}), *options)
    return job_id


def installed(folder):
    """Packs the package and installs it in the folder, with the ioredis 6 of tests/npm."""
    npm = need_program("npm")
    folder = pathlib.Path(folder)
    packed = subprocess.run(
        [npm, "pack", "--ignore-scripts", "--json", "--pack-destination", folder], cwd=PACKAGE,
        capture_output=True, text=True, timeout=LONGEST_S, check=False)
    require(packed.returncode == 0, packed.stderr)
    target = folder / "node_modules" / "@sluice" / "queue"
    target.mkdir(parents=True)
    [archive] = folder.glob("*.tgz")
    subprocess.run(["tar", "-xzf", archive, "-C", target, "--strip-components", "1"], check=True)
    return target
