#!/usr/bin/python3
"""The examples, as their READMEs start them: a judge, and two web services."""

import contextlib
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import harness
from harness import NPM, Skipped, need_npm, need_program, require, require_equal
from harness.servers import steady_port
from harness.typescript_client import COMPILER, PACKAGE, built

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
JUDGE = EXAMPLES / "judge"
TIMEOUT_S = 60


def environment_for(server):
    return dict(os.environ, SLUICE_URL=f"redis://127.0.0.1:{server.port}",
                PYTHONPATH=str(ROOT / "clients" / "python"))


@contextlib.contextmanager
def running(command, environment, cwd):
    """A program that ends with 0 when it gets SIGTERM."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, env=environment, cwd=cwd, stdout=log, stderr=log)
        try:
            yield process
            process.terminate()
            code = process.wait(TIMEOUT_S)
            log.seek(0)
            require_equal(code, 0, f"{command}: {log.read().decode()}")
        finally:
            process.kill()
            process.wait()


# --- The judge ---

HOSTILE = {
    "reads the passwords": ("python", "print(open('/etc/shadow').read())", "No such file"),
    "writes to the system": ("python", "open('/usr/lib/x', 'w')", "Read-only file system"),
    "opens a socket": ("python", "import socket\n"
                       "socket.create_connection(('127.0.0.1', {port}), 5)", "refused"),
    "fills the disk": ("python", "f = open('/tmp/x', 'wb')\n"
                       "while True: f.write(b'x' * 1000000)", "No space left on device"),
    "forks without end": ("python", "import os, time\n"
                          "while True:\n"
                          "    if os.fork() == 0: time.sleep(60)",
                          "Resource temporarily unavailable"),
    "takes all memory": ("python", "x = bytearray(8 << 30)", "MemoryError"),
    "kills everything": ("shell", "kill -9 -1; kill -9 1; echo still here", "still here"),
}


def need_sandbox():
    """The judge's module of that name. Where nobody may make namespaces the test says so; the judge
    is not asked, as it may be broken."""
    bubblewrap = need_program("bwrap")
    as_nobody = dict(user=65534, group=65534, extra_groups=[]) if os.geteuid() == 0 else {}
    probe = subprocess.run([bubblewrap, "--unshare-all", "--ro-bind", "/", "/", "true"],
                           capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
                           **as_nobody)
    if probe.returncode != 0:
        raise Skipped(f"NOT RUN: bubblewrap does not work here: {probe.stderr.strip()}")
    sys.path.insert(0, str(JUDGE))
    import sandbox  # pylint: disable=import-outside-toplevel
    return sandbox


def judge(*arguments, environment, **others):
    return subprocess.run([sys.executable, JUDGE / "judge.py", *arguments], env=environment,
                          capture_output=True, text=True, timeout=TIMEOUT_S, check=False, **others)


def log_of(connection, job):
    return connection.call("Q.LOG", "judge", job).value[1].decode()


def test_judge(options):
    """A program's result; programs that try to get out are stopped, and the judge works on."""
    need_sandbox()
    with options.server() as server, server.connect() as connection, \
            tempfile.TemporaryDirectory() as name:
        environment = environment_for(server)
        with running([sys.executable, JUDGE / "judge.py", "worker", "--slots", "2"], environment,
                     JUDGE):
            programs = {**HOSTILE, "says hello": ("python", "print('hello')", "hello")}
            for what, (language, code, expected) in programs.items():
                file = pathlib.Path(name) / "program"
                file.write_text(code.format(port=server.port), encoding="utf-8")
                done = judge("submit", file, "--user", "ann", "--language", language,
                             environment=environment)
                job = done.stderr.split()[1].rstrip(":")
                log = log_of(connection, job)
                require(expected in log, f"{what}: {log!r}, {done.stdout}{done.stderr}")
        pids = subprocess.run(["pgrep", "-f", "time.sleep.60"], capture_output=True, check=False)
        require_equal(pids.stdout, b"", "no process of a program is left")


def test_judge_limits(options):
    """Time and output are bounded, and a cancel ends a running program."""
    sandbox = need_sandbox()
    forever = "while True: pass"
    outcome, _ = sandbox.collect("python", forever, sandbox.Limits(wall_s=0.5))
    require_equal(outcome, sandbox.Outcome(None, "wall time"))
    outcome, _ = sandbox.collect("python", forever, sandbox.Limits(wall_s=TIMEOUT_S, cpu_s=1))
    require(outcome.exit in (-9, -24, 137, 152), f"processor time: {outcome}")
    outcome, output = sandbox.collect("python", "while True: print('x' * 1000)",
                                      sandbox.Limits(wall_s=TIMEOUT_S, output_bytes=5000))
    require_equal((outcome, len(output)), (sandbox.Outcome(None, "output"), 5000))

    class Stopped(Exception):
        pass

    def check():
        if time.monotonic() > started + 0.5:
            raise Stopped

    started = time.monotonic()
    try:
        sandbox.run("python", forever, sandbox.Limits(wall_s=TIMEOUT_S), lambda part: None, check)
        require(False, "check ends the program")
    except Stopped:
        require(time.monotonic() < started + TIMEOUT_S / 2, "at once")


def test_judge_refuses(options):
    """Without bubblewrap the judge refuses to work, unless it is told --unsafe."""
    with options.server() as server, tempfile.TemporaryDirectory() as empty:
        environment = dict(environment_for(server), PATH=empty)
        done = judge("worker", environment=environment)
        require_equal(done.returncode, 1)
        require("bubblewrap is not installed" in done.stderr and "--unsafe" in done.stderr,
                done.stderr)
        file = pathlib.Path(empty) / "program"
        file.write_text("print('trusted')", encoding="utf-8")
        worker = [sys.executable, JUDGE / "judge.py", "worker", "--unsafe"]
        with running(worker, environment, JUDGE):
            done = judge("submit", file, "--user", "ann", environment=environment)
        require_equal(done.stdout, "trusted\n", done.stderr)
        require("{'exit': 0, 'ended_for': None}" in done.stderr, done.stderr)


def test_judge_output(options):
    """All that a program may write is shown, byte by byte; where some is missing, submit says so.
    """
    text = "".join(f"{n:09}\n" for n in range(4000))
    with options.server() as server, server.connect() as connection, \
            tempfile.TemporaryDirectory() as folder:
        environment = environment_for(server)
        file = pathlib.Path(folder) / "program"
        with running([sys.executable, JUDGE / "judge.py", "worker", "--unsafe"], environment,
                     JUDGE):
            file.write_text("for n in range(4000): print(f'{n:09}')", encoding="utf-8")
            done = judge("submit", file, "--user", "ann", environment=environment)
            require(done.stdout == text, f"{len(done.stdout)} of 40,000: {done.stderr}")
            require("missing" not in done.stderr, done.stderr)
            connection.call("Q.CONFIG", "judge", "SET", "log_bytes", 1000)
            done = judge("submit", file, "--user", "ann", environment=environment)
        missing = re.search(r"judge: (\d+) bytes of output are missing", done.stderr)
        require(missing, done.stderr)
        require(text.endswith(done.stdout[-1000:]) and len(done.stdout) < 40_000, done.stdout)


# --- The web services ---


def request(port, method, path, body=None, headers=()):
    """(status, what the JSON says)."""
    asked = urllib.request.Request(
        f"http://localhost:{port}{path}", method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json", **dict(headers)})
    try:
        with urllib.request.urlopen(asked, timeout=TIMEOUT_S) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def wait_until_up(port):
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            with urllib.request.urlopen(f"http://localhost:{port}/", timeout=TIMEOUT_S) as reply:
                require("How many primes" in reply.read().decode(), "the page")
                return
        except (urllib.error.URLError, ConnectionError):
            require(time.monotonic() < deadline, "the service answers")
            time.sleep(0.05)


def events_of(port, run, last=None):
    """(number, type, data) of each message until the stream ends; the state has no number."""
    asked = urllib.request.Request(f"http://localhost:{port}/runs/{run}/events")
    if last is not None:
        asked.add_header("Last-Event-ID", last)
    with urllib.request.urlopen(asked, timeout=TIMEOUT_S) as stream:
        fields = {}
        for line in stream:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                fields[name] = value
                continue
            yield fields.get("id"), fields["event"], json.loads(fields["data"])
            fields = {}


def submitted(port, below=100):
    status, run = request(port, "POST", "/runs", {"below": below, "user": "ann"})
    require_equal(status, 202, run)
    return run["id"]


def cancel(port, run):
    require_equal(request(port, "DELETE", f"/runs/{run}"), (200, {"outcome": "cancelled"}))


def require_over(port, run, last=None):
    """A browser that comes when the run is over is told that alone."""
    [(_, kind, data)] = events_of(port, run, last)
    require_equal((kind, data["state"]), ("state", "cancelled"))


def check_cancel(port):
    """A run is cancelled while no worker is there. A browser that reconnects gets the rest."""
    run = submitted(port)
    stream = events_of(port, run)
    (_, state, data), (number, added, _) = next(stream), next(stream)
    require_equal((state, data["state"], added), ("state", "pending", "added"))
    again = events_of(port, run, number)
    require_equal(next(again)[1], "state")
    cancel(port, run)
    for rest in (stream, again):
        require_equal([kind for _, kind, _ in rest], ["cancelled"])
    require_over(port, run)


def check_trimmed(port, connection):
    """A browser learns the end of a run also when its events are no longer kept."""
    run = submitted(port)
    number = next(number for number, kind, _ in events_of(port, run) if kind == "added")
    cancel(port, run)
    connection.call("Q.CONFIG", "primes", "SET", "events", 10)
    for job in range(600):
        connection.call("Q.ADD", "primes", f"other-{job}", "x")
        connection.call("Q.CANCEL", "primes", f"other-{job}")
    connection.call("Q.CONFIG", "primes", "SET", "events", 1000)
    require(connection.call("Q.EVENTS", "primes", number).is_error, "its events are trimmed")
    require_over(port, run)
    require_over(port, run, number)


def check_service(port, worker):
    """What both services do when there is a worker."""
    run = submitted(port, 300_000)
    stream = events_of(port, run)
    require_equal(next(stream)[2]["state"], "pending")
    with worker:
        seen = list(stream)
        types = [kind for _, kind, _ in seen]
        require(types[0] == "added" and types[-1] == "completed" and "progress" in types, types)
        shown = [data["progress"] for _, kind, data in seen if kind == "progress"]
        require(all(isinstance(percent, int) and 0 < percent < 100 for percent in shown), shown)
        require_equal(seen[-1][2]["result"], {"primes": 25997})
    require_equal(request(port, "POST", "/runs", {"below": 1, "user": "ann"})[0], 422)
    require_equal(request(port, "GET", "/runs/unknown/events")[0], 404)


def check_refusals(port):
    """What nobody should send is answered, and the service keeps running."""
    run = submitted(port)
    events = f"/runs/{run}/events"
    for method, path, body, headers, expected in (
            ("POST", "/runs", {"below": 100, "user": "a" * 600}, {}, (422,)),
            ("POST", "/runs", {"below": 100, "user": "\ud800"}, {}, (422,)),
            ("POST", "/runs", {"below": "\ud800", "user": "ann"}, {}, (422,)),
            ("DELETE", "/runs/WHERE", None, {}, (400,)),
            ("DELETE", f"/runs/{'a' * 600}", None, {}, (400,)),
            ("GET", f"/runs/{'a' * 600}/events", None, {}, (400,)),
            ("GET", events, None, {"Last-Event-ID": "x"}, (400, 422)),
            ("GET", events, None, {"Last-Event-ID": "-1"}, (400, 422))):
        status, said = request(port, method, path, body, headers)
        require(status in expected and "detail" in said, f"{method} {path}: {status} {said}")
    # A number that the log does not have: the browser is told to forget it.
    asked = urllib.request.Request(f"http://localhost:{port}{events}",
                                   headers={"Last-Event-ID": str(10 ** 15)})
    with urllib.request.urlopen(asked, timeout=TIMEOUT_S) as stream:
        require(stream.read().endswith(b"\n\nid:\n\n"), "it forgets the number")
    cancel(port, run)


def followed(port):
    """A stream of a run that waits: it is there for as long as the service."""
    stream = urllib.request.urlopen(f"http://localhost:{port}/runs/{submitted(port)}/events",
                                    timeout=TIMEOUT_S)
    require_equal(stream.readline(), b"event: state\n")
    return stream


def check_without_queue(port):
    for method, path, body in (("POST", "/runs", {"below": 100, "user": "ann"}),
                               ("DELETE", "/runs/a", None), ("GET", "/runs/a/events", None)):
        status, said = request(port, method, path, body)
        require(status == 503 and "detail" in said, f"{method} {path}: {status} {said}")
    wait_until_up(port)


def test_page(_options):
    """The page, the same for both services, listens for the state and for all events of a run that
    is kept."""
    section = (ROOT / "QUEUE.md").read_text(encoding="utf-8").split("\n## Q.EVENTS\n")[1]
    rows = re.findall(r"^\| ((?:`[a-z]+`(?:, )?)+) \|", section.split("\n## ")[0], re.MULTILINE)
    types = set(re.findall("[a-z]+", " ".join(rows)))
    page = (EXAMPLES / "fastapi" / "index.html").read_text(encoding="utf-8")
    listened = re.findall(r"(?:const \w+ =|const type of) \[([^]]*)\]", page)
    require_equal(set(re.findall("'([a-z]+)'", " ".join(listened))),
                  {"state"} | types - {"forgotten"})


RECONNECTING = """
const form = {}, line = {}, sources = [], said = []
globalThis.document = {
  querySelector: (name) => (name === 'form' ? form : { appendChild: () => line }),
  createElement: () => line,
}
globalThis.FormData = class extends Map {
  constructor() { super([['below', '10'], ['user', 'ann']]) }
}
globalThis.fetch = async () => ({ ok: true, json: async () => ({ id: 'a', position: 0 }) })
globalThis.EventSource = class extends EventTarget {
  static CLOSED = 2
  readyState = 0
  constructor() { super(); sources.push(this) }
  close() { said.push('closed') }
}
eval(process.argv[1])
await form.onsubmit({ preventDefault() {} })
const tell = (job) => {
  sources[0].onerror()
  said.push(line.textContent)
  sources[0].dispatchEvent(Object.assign(new Event('state'), { data: JSON.stringify(job) }))
  said.push(line.textContent)
}
tell({ state: 'active', progress: 50 })
tell({ state: 'completed', result: { primes: 4 } })
console.log(JSON.stringify(said.map((text) => text.replace('ann, below 10: ', ''))))
"""


def test_page_that_reconnects(_options):
    """The page shows the state again once it is connected again, and leaves when the run is over.
    """
    page = (EXAMPLES / "fastapi" / "index.html").read_text(encoding="utf-8")
    script = page.split("<script>")[1].split("</script>")[0]
    done = subprocess.run([need_program("node"), "--input-type=module", "-e", RECONNECTING, script],
                          capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    require_equal(done.returncode, 0, done.stderr)
    require_equal(json.loads(done.stdout),
                  ["connecting", "50 %", "connecting", "closed", "4 primes"])


def test_fastapi(options):
    """The service in Python."""
    folder = EXAMPLES / "fastapi"
    python = "/usr/bin/python3"
    imports = [python, "-c", "import fastapi, uvicorn"]
    if subprocess.run(imports, capture_output=True, check=False).returncode != 0:
        raise Skipped("NOT RUN: no python3-fastapi or python3-uvicorn")
    with options.server() as server:
        environment = environment_for(server)
        port = steady_port()
        environment["PORT"] = str(port)
        with contextlib.ExitStack() as streams, running([python, "app.py"], environment, folder):
            wait_until_up(port)
            check_cancel(port)
            check_refusals(port)
            check_service(port, running([python, "worker.py"], environment, folder))
            check_trimmed(port, streams.enter_context(server.connect()))
            streams.enter_context(followed(port))
            server.stop()
            check_without_queue(port)


def test_express(options):
    """The service in TypeScript, checked strictly."""
    need_npm("express")
    node = built()
    with options.server() as server, tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for part in ("src", "public", "package.json", "tsconfig.json"):
            (folder / part).symlink_to(EXAMPLES / "express" / part)
        modules = folder / "node_modules"
        (modules / "@sluice").mkdir(parents=True)
        (modules / "@sluice" / "queue").symlink_to(PACKAGE)
        for package in (NPM / "node_modules").iterdir():
            if not package.name.startswith("."):
                (modules / package.name).symlink_to(package)
        subprocess.run([node, COMPILER, "--preserveSymlinks"], cwd=folder, check=True)
        port = steady_port()
        environment = dict(environment_for(server), PORT=str(port))
        link = [node, "--preserve-symlinks", "--preserve-symlinks-main"]
        with contextlib.ExitStack() as streams, \
                running([*link, "dist/app.js"], environment, folder):
            wait_until_up(port)
            check_cancel(port)
            check_refusals(port)
            check_service(port, running([*link, "dist/worker.js"], environment, folder))
            check_trimmed(port, streams.enter_context(server.connect()))
            streams.enter_context(followed(port))
            server.stop()
            check_without_queue(port)


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__], io_threads=(1,)))
