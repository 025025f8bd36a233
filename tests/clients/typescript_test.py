#!/usr/bin/python3
"""The TypeScript client: its units, its queues, results and workers against a server; how workers
end; replies that are lost. Scenarios are in clients/typescript/test/system. Node is the one of the
PATH; with another one: npx -p node@18 tests/clients/typescript_test.py"""

import collections
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import harness
from harness import libraries, proxy, require, require_equal, scratch, servers, wait_until
from harness.certificates import Certificates
from harness.native_queue import Native
from harness.servers import LOOPBACK, ROOT
from harness.typescript_client import PACKAGE, SYSTEM, Started, add, built, installed, play, \
    url_of

EXEC = "exec"
NPM_IOREDIS_6 = harness.NPM / "node_modules" / "ioredis-6"


def state(native, job_id):
    return native.state(EXEC, job_id)


def attempts(native, job_id):
    return native.get(EXEC, job_id)["attempts"]


def runs(path):
    return len(path.read_text(encoding="ascii")) if path.exists() else 0


def wait_active(native, *job_ids):
    for job_id in job_ids:
        wait_until(lambda job=job_id: state(native, job) == "active", 60, f"{job_id} runs")


def require_given_back(native, job_id):
    require_equal((state(native, job_id), attempts(native, job_id)), ("pending", 0), job_id)


def test_version(_options):
    """The package has the project's version, and ioredis as its only dependency."""
    package = json.loads((PACKAGE / "package.json").read_text(encoding="utf-8"))
    project = re.search(r"project\(sluice VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())
    require_equal(package["version"], project.group(1), "version")
    require_equal(list(package["dependencies"]), ["ioredis"], "dependencies")
    lock = (PACKAGE / "package-lock.json").read_text(encoding="utf-8")
    require('"resolved"' not in lock, "the lock file names a registry")


def test_strict(_options):
    """The sources have no `any`, and nothing that silences the compiler."""
    for path in [*PACKAGE.glob("src/**/*.ts"), *PACKAGE.glob("test/**/*.ts")]:
        text = path.read_text(encoding="utf-8")
        found = re.search(r"@ts-|eslint-|\bas any\b|: any\b|<any>", text)
        require(found is None, f"{path}: {found and found.group()}")


def test_units(_options):
    """What needs no server: codecs, words, meanings of replies, plans (node --test)."""
    node = built()
    files = sorted((PACKAGE / "dist-test" / "test").glob("*.test.js"))
    done = subprocess.run([node, "--test", *files], capture_output=True, text=True, timeout=600,
                          check=False)
    require(done.returncode == 0 and "fail 0" in done.stdout, done.stdout[-4000:] + done.stderr)


def test_queues(options):
    """Queue: options, refusals, cancel, retry, many jobs, stats, codecs, events."""
    play(options, "queues")


def test_results(options):
    """result: every end, 1,000 over three connections, no lost wake-up, without events."""
    play(options, "results")


def test_workers(options):
    """Worker: outcomes, heartbeats, cancels, lost leases, hooks, burst, stop, refusals."""
    play_beside_redis(options, "workers")


def test_faults(options):
    """Hooks that fail, times without end, refusals, a server that is busy."""
    play_beside_redis(options, "faults")


def play_beside_redis(options, scenario):
    """A server without queues is there, too; if this machine has one."""
    if shutil.which("redis-server") is None:
        play(options, scenario)
        return
    with servers.Server("redis-server") as redis:
        play(options, scenario, REDIS_PORT=str(redis.port))


ENDS = """
import { Queue, Worker } from '%s'
const queue = new Queue('exec')
const worker = new Worker('exec', (job) => job.payload)
const running = worker.run()
console.log(await (await queue.add(1)).result())
await worker.stop()
await running
queue.close()
const closed = performance.now()
process.on('exit', () => console.log(performance.now() - closed))
"""


def test_end_of_a_program(options):
    """What is closed keeps no program: it ends at once."""
    node = built()
    took = [1e9]
    with options.server() as server:
        while len(took) < 4 and min(took) > 1000:  # Other work may have held one up.
            done = subprocess.run(
                [node, "--input-type=module", "-e", ENDS % (PACKAGE / "dist" / "index.js")],
                capture_output=True, text=True, timeout=60, check=False,
                env={**os.environ, "SLUICE_URL": url_of(server.port)})
            require_equal(done.returncode, 0, done.stderr)
            took.append(float(done.stdout.split()[-1]))
    require(min(took) <= 1000, f"ms: {took[1:]}")


OVER_A_SOCKET = """
import { Queue } from '%s'
const reached = []
for (const url of process.argv.slice(1)) {
  const queue = new Queue('exec', { url, patience: 5000 })
  await queue.add(1).then(() => reached.push('added'), (error) => reached.push(error.name))
  queue.close()
}
console.log(reached.join())
"""


def test_unix_socket(options):
    """Over a Unix socket with the user, the password and the database that the URL names."""
    node = built()
    with scratch() as folder:
        path = f"{folder}/socket"
        directives = {"unixsocket": path, "requirepass": "secret",
                      "user": "ann on >p@ss ~* +@all"}
        urls = [f"unix://ann:p%40ss@{path}?db=3", f"unix://{path}?password=secret&db=3",
                f"unix://:secret@{path}", f"unix://{path}", f"unix://ann:secret@{path}"]
        with options.server(directives) as server:
            done = subprocess.run(
                [node, "--input-type=module", "-e", OVER_A_SOCKET % (PACKAGE / "dist" / "index.js"),
                 *urls], capture_output=True, text=True, timeout=60, check=False)
            require_equal(done.stdout.strip(),
                          "added,added,added,NotAuthenticated,WrongPassword", done.stderr)
            with server.connect() as connection:
                connection.call("AUTH", "secret")
                for database, jobs in (("0", 1), ("3", 2)):
                    connection.call("SELECT", database)
                    listed = connection.call("Q.LIST", EXEC).value[1]
                    require_equal(len(listed), jobs, f"jobs of database {database}")


OVER_TLS = """
import { readFileSync } from 'node:fs'
import { Queue, Worker } from '%s'
const [url, ...files] = process.argv.slice(1)
const [ca, other, cert, key] = files.map((file) => readFileSync(file))
const reached = async (tls, ms) => {
  const where = { url, redis: { tls }, patience: ms, connectTimeout: ms }
  const queue = new Queue('exec', where)
  const worker = new Worker('exec', ({ payload }) => payload * 2, { ...where, burst: true })
  const said = (error) => `${error.name}: ${error.message}`
  const added = await queue.add(1).catch(said)
  const ran = await worker.run().catch(said)
  const result = typeof added === 'string' ? added : await added.result({ timeout: ms })
  queue.close()
  return [result, ran]
}
console.log(JSON.stringify({
  own: await reached({ ca, cert, key }, 30_000),
  'wrong authority': await reached({ ca: other, cert, key }, 1000),
  'no certificate': await reached({ ca }, 1000),
}))
"""


def test_tls(options):
    """Over TLS with the options of ioredis; an authority that has not signed the server's
    certificate, and a client without one of its own: Unreachable, for queues and workers."""
    node = built()
    with scratch() as folder:
        certificates = Certificates(folder)
        with options.server({"tls-port": "auto", **certificates.directives()}) as server:
            files = [certificates.certificate("ca"), certificates.certificate("other"),
                     certificates.certificate("client"), certificates.key("client")]
            done = subprocess.run(
                [node, "--input-type=module", "-e", OVER_TLS % (PACKAGE / "dist" / "index.js"),
                 f"rediss://localhost:{server.ports['tls-port']}", *files],
                capture_output=True, text=True, timeout=120, check=False)
            require_equal(done.returncode, 0, done.stderr)
            reached = json.loads(done.stdout)
    require_equal(reached.pop("own"), [2, None])
    for what, failures in reached.items():
        require(all(failure.startswith("Unreachable: ") for failure in failures),
                f"{what}: {failures}")
    require("certificate" in " ".join(reached["wrong authority"]), reached)


def test_package(options):
    """The package as packed: entry points, types, the server for tests; ioredis 6, with pushes."""
    node = built()
    with scratch() as folder:
        target = installed(folder)
        names = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()}
        require({"README.md", "package.json", "dist/index.js", "dist/index.d.ts",
                 "dist/testing.d.ts", "dist/cli.js", "LICENSE"} <= names,
                f"packed: {sorted(names)}")
        require_equal((target / "LICENSE").read_bytes(), (ROOT / "LICENSE").read_bytes(), "LICENSE")
        require("](.." not in (target / "README.md").read_text(encoding="utf-8"),
                "its README has links to files that are not in the package")
        require(not any(name.startswith(("src", "test", "dist-test")) for name in names),
                f"packed: {sorted(names)}")
        version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)
        recent = int(version.stdout.lstrip("v").split(".")[0]) >= 20
        library = NPM_IOREDIS_6 if recent and NPM_IOREDIS_6.exists() else (
            PACKAGE / "node_modules" / "ioredis")
        (pathlib.Path(folder) / "node_modules" / "ioredis").symlink_to(library)
        script = pathlib.Path(folder) / "program.mjs"
        shutil.copy(SYSTEM / "package.js", script)
        files = pathlib.Path(folder) / "files"
        files.mkdir()
        surroundings = {**os.environ, "SLUICE_SERVER": options.program, "TMPDIR": str(files)}
        done = subprocess.run([node, script], capture_output=True, text=True, timeout=120,
                              check=False, env=surroundings)
        require(libraries.HOLDS in done.stdout, done.stdout + done.stderr)
        require_equal("by RESP3" in done.stdout, library == NPM_IOREDIS_6, "RESP3")
        require_gone(done.stdout, files)
        with subprocess.Popen([node, script], stdout=subprocess.PIPE, text=True,
                              env={**surroundings, "UNTIL_SIGNAL": "1"}) as program:
            printed = ""
            for line in program.stdout:
                printed += line
                if libraries.HOLDS in line:
                    program.send_signal(signal.SIGTERM)
            require_equal(program.wait(60), -signal.SIGTERM, printed)
        require_gone(printed, files)


def require_gone(printed, files):
    """The server that the program has left, and its files, are no more."""
    pid = int(re.search(r"^left (\d+)$", printed, re.MULTILINE).group(1))
    wait_until(lambda: not pathlib.Path(f"/proc/{pid}/cmdline").exists()
               or not pathlib.Path(f"/proc/{pid}/cmdline").read_bytes(), what="it is gone")
    require_equal([path.name for path in files.glob("sluice-testing-*")], [], "its files")


def test_sigterm_while_waiting(options):
    """SIGTERM while the worker waits for jobs: it ends at once, and no pop and no lease is left."""
    with options.server() as server, Started(server.port, "--concurrency", "4") as worker:
        native = Native(server)
        add(native, EXEC, 0, "stray")
        wait_until(lambda: native.stats(EXEC)["waiting_pops"] == 1
                   and state(native, "job-0") == "completed", what="it waits")
        began = time.monotonic()
        worker.process.send_signal(signal.SIGTERM)
        require_equal(worker.end(), 0, worker.text)
        require(time.monotonic() - began < 5, "it took longer")
        wait_until(lambda: native.stats(EXEC)["waiting_pops"] == 0, what="no pop waits")
        require_given_back(native, add(native, EXEC, 1, "echo"))


def test_sigterm_while_handlers_run(options):
    """What ends within grace is acknowledged; the rest is given back and hears it."""
    with options.server() as server, Started(
            server.port, "--concurrency", "2", "--grace", "2000") as worker:
        native = Native(server)
        jobs = [add(native, EXEC, 0, "sleep", ms=600), add(native, EXEC, 1, "obey", ms=60000)]
        wait_active(native, *jobs)
        waits = add(native, EXEC, 2, "echo")
        worker.process.send_signal(signal.SIGTERM)
        require_equal(worker.end(), 0, worker.text)
        require_equal(state(native, jobs[0]), "completed")
        require_given_back(native, jobs[1])
        require_given_back(native, waits)
        require_equal(native.stats(EXEC)["reclaimed"], 0, "leases that ran out")


def require_forced_end(worker, native, job):
    """SIGTERM ends it though a handler runs on; it says so, and gives the job back."""
    worker.process.send_signal(signal.SIGTERM)
    require_equal(worker.end(20), 1, worker.text)
    require("do not end" in worker.text, worker.text)
    require_given_back(native, job)


def test_handler_that_hangs(options):
    """A handler that ignores its signal: its lease is kept, its job is given back at the end of
    grace, and the process exits 1."""
    with options.server() as server, Started(server.port, "--grace", "500") as worker:
        native = Native(server)
        job = add(native, EXEC, 0, "hang", "LEASE", 2000)
        wait_active(native, job)
        time.sleep(4)  # Two leases.
        require_equal(state(native, job), "active", "heartbeats continue")
        require_forced_end(worker, native, job)


def test_second_sigterm(options):
    """A second SIGTERM ends the grace of a handler that ignores its signal."""
    with options.server() as server, Started(
            server.port, "--concurrency", "2", "--grace", "60000") as worker:
        native = Native(server)
        job = add(native, EXEC, 0, "hang", "LEASE", 2000)
        wait_active(native, job)
        wait_until(lambda: native.stats(EXEC)["waiting_pops"] == 1, what="it waits for another job")
        worker.process.send_signal(signal.SIGTERM)
        # Two signals that a process has not heard yet are one.
        wait_until(lambda: native.stats(EXEC)["waiting_pops"] == 0, what="it has heard the first")
        require_equal(state(native, job), "active", "it runs on")
        require_forced_end(worker, native, job)


def test_two_workers_of_a_process(options):
    """SIGTERM for two workers, one with a handler that does not end: the other's run ends before
    the process exits 1."""
    node = built()
    with options.server() as server:
        done = subprocess.run(
            [node, SYSTEM / "signals.js"], capture_output=True, text=True, timeout=120, check=False,
            env=libraries.environment(server.port))
        require_equal((done.returncode, "completed" in done.stdout, "not reached" in done.stdout),
                      (1, True, False), done.stdout + done.stderr)


def test_process_that_exits(options):
    """A handler that ends its process loses its lease; the job goes to another worker."""
    with options.server() as server:
        native = Native(server)
        with Started(server.port) as worker:
            job = add(native, EXEC, 0, "exit", "LEASE", 300)
            require_equal(worker.end(), 139, worker.text)
            wait_until(lambda: state(native, job) == "pending", what="it is reclaimed")
        require_equal(native.get(EXEC, job)["crashes"], 1, "crashes")


def test_sigterm_without_a_server(options):
    """SIGTERM while the server is frozen, gone, or was never there: the worker ends."""
    with options.server() as server:
        with Started(server.port, "--grace", "0") as worker:
            os.kill(server.pid, signal.SIGSTOP)
            try:
                worker.process.send_signal(signal.SIGTERM)
                worker.end(20)
            finally:
                os.kill(server.pid, signal.SIGCONT)
        with Started(server.port, "--grace", "0") as worker:
            native = Native(server)
            wait_active(native, add(native, EXEC, 0, "sleep", ms=60000))
            server.kill()
            worker.process.send_signal(signal.SIGTERM)
            require_equal(worker.end(20), 1, worker.text)
        with Started(server.port, wait=False) as worker:
            time.sleep(0.5)
            worker.process.send_signal(signal.SIGTERM)
            # Or node was not that far yet.
            require(worker.end(8) in (0, -signal.SIGTERM), worker.text)


def test_sigterm_of_an_idle_worker_without_a_server(options):
    """SIGTERM while nothing runs and the server is frozen or gone: its grace is not waited for."""
    for hurt in signal.SIGSTOP, signal.SIGKILL:
        with options.server() as server, Started(server.port) as worker:
            native = Native(server)
            add(native, EXEC, 0, "echo")
            wait_until(lambda: native.stats(EXEC)["waiting_pops"] == 1
                       and state(native, "job-0") == "completed", what="it waits")
            os.kill(server.pid, hurt)
            try:
                began = time.monotonic()
                worker.process.send_signal(signal.SIGTERM)
                require_equal(worker.end(60), 0, worker.text)
                took = time.monotonic() - began
            finally:
                if hurt == signal.SIGSTOP:
                    os.kill(server.pid, signal.SIGCONT)
                else:
                    server.kill()
            require(took < 20, f"{took:.1f} s")


def test_command_line(options):
    """sluice-worker: burst, wrong usage, refusals; the ready file."""
    with options.server() as server:
        native = Native(server)
        for number in range(5):
            add(native, EXEC, number, "echo" if number else "throw")
        with Started(server.port, "--burst", "--concurrency", "2", wait=False) as worker:
            require_equal(worker.end(), 0, worker.text)
        require_equal(native.stats(EXEC)["completed"], 4, "completed")
        with Started(server.port, "--none", wait=False) as worker:
            require_equal(worker.end(), 2, worker.text)
        with Started(server.port, wait=False, handler=__file__ + ".none.js") as worker:
            require(worker.end() in (1, 2), worker.text)
        native.client.set("text", "x")
        with Started(server.port, queue="text", wait=False) as worker:
            require_equal(worker.end(), 1, worker.text)
            require("WRONGTYPE" in worker.text, worker.text)
    with Started(1, wait=False) as worker:  # where nobody listens
        require_equal(worker.end(), 1, worker.text)
        require(re.search(r"^sluice-worker: .*ECONNREFUSED.*\n\Z", worker.text, re.MULTILINE),
                worker.text)
    with scratch() as folder:
        path = pathlib.Path(folder, "wrong.mjs")
        path.write_text("export default () => 1\nconst x = ;\n", encoding="utf-8")
        with Started(1, wait=False, handler=path) as worker:
            require_equal(worker.end(), 1, worker.text)
            require("wrong.mjs:2\nconst x = ;" in worker.text, worker.text)
        path = pathlib.Path(folder, "compiled.cjs")
        path.write_text("exports.__esModule = true\nexports.default = () => 'done'\n",
                        encoding="utf-8")
        with options.server() as server, Started(
                server.port, "--burst", wait=False, handler=path) as worker:
            require_equal(worker.end(), 0, worker.text)
    require_ready_file(options)
    done = subprocess.run([built(), PACKAGE / "dist" / "cli.js", "--help"], capture_output=True,
                          text=True, check=False)
    require(done.returncode == 0 and "--ready-file" in done.stdout, done.stdout)


def require_ready_file(options):
    """A ready file of an earlier worker is removed; one that cannot be written is said at once."""
    with options.server() as server, scratch() as folder:
        native = Native(server)
        add(native, EXEC, 0, "echo")
        with Started(server.port, "--ready-file", f"{folder}/none/ready", wait=False) as worker:
            require_equal(worker.end(), 1, worker.text)
            require("sluice-worker: ENOENT" in worker.text, worker.text)
        require_given_back(native, "job-0")
    with scratch() as folder:
        stale = pathlib.Path(folder, "ready")
        stale.write_text("of another", encoding="utf-8")
        with Started(1, "--ready-file", stale, wait=False) as worker:
            wait_until(lambda: not stale.exists(), what="it is removed")
            require_equal(worker.end(), 1, worker.text)
        require_equal(os.listdir(folder), [], "what is left")


class Losing:
    """Decides for a proxy: drops the reply to the n-th command that pops."""

    def __init__(self, dropped):
        self.dropped = dropped
        self.count = 0
        self.lost = None

    def __call__(self, command, _reply):
        if command[0] != b"Q.POP" and b"POP" not in command:
            return proxy.PASS
        self.count += 1
        if self.count != self.dropped:
            return proxy.PASS
        self.lost = command
        return proxy.DROP


def test_reply_of_an_add_is_lost(options):
    """Whichever reply to an add of many is lost: each job is added once."""
    for dropped in (1, 2, 499, 500, 501, 1000, 1200):
        seen = []

        def decide(command, _reply, dropped=dropped, seen=seen):
            if command[0] != b"Q.ADD":
                return proxy.PASS
            seen.append(command)
            return proxy.DROP if len(seen) == dropped else proxy.PASS

        with options.server() as server, proxy.Proxy(server.port, decide) as between:
            libraries.play([built(), SYSTEM / "adding.js"], between)
            require(len(seen) > 1200, f"no add was repeated without reply {dropped}")


REFUSED = """
import { Queue } from '%s'
const queue = new Queue('exec', { url: process.argv[1] })
const nameOf = (error) => error?.constructor.name ?? 'none'
const tries = [await queue.addMany([{ payload: 1 }]), await queue.addMany([{ payload: 2 }])]
for (const [{ reason }] of tries) console.log(nameOf(reason), nameOf(reason.cause))
queue.close()
"""


def test_refused_repeats(options):
    """A server that refuses the repeat of an add, or its connection, does not say that an earlier
    try has added nothing: that is Unknown, and its cause says why."""
    for user, rule, refusal in proxy.REFUSALS:
        with options.server({"user": "u on >x ~* +@all"}) as server, \
                server.connect() as connection, proxy.Proxy(
                    server.port, proxy.refusing_repeats(connection, b"Q.ADD", *rule)) as between:
            done = subprocess.run(
                [built(), "--input-type=module", "-e", REFUSED % (PACKAGE / "dist" / "index.js"),
                 f"redis://{user}{LOOPBACK}:{between.port}"], capture_output=True, text=True,
                timeout=60, check=False)
            require_equal(done.stdout, f"Unknown {refusal}\n{refusal} none\n", done.stderr)


def test_each_reply_of_a_pop_is_lost(options):
    """Whichever reply to a pop is lost: each job is run once, and no lease has no owner."""
    lost = collections.Counter()
    with options.server() as server, scratch() as folder:
        native = Native(server)
        for dropped in range(1, 9):
            queue = f"exec-{dropped}"
            path = pathlib.Path(folder, queue)
            decide = Losing(dropped)
            with proxy.Proxy(server.port, decide) as between, \
                    Started(between.port, "--concurrency", "2", queue=queue) as worker:
                for number in range(8):
                    add(native, queue, number, "echo", file=str(path))
                    if number % 3 == 2:
                        time.sleep(0.03)
                wait_until(lambda name=queue: native.stats(name)["completed"] == 8, 60,
                           f"all jobs without reply {dropped}")
                require_equal(runs(path), 8, f"runs without reply {dropped}")
                worker.process.send_signal(signal.SIGTERM)
                require_equal(worker.end(), 0, worker.text)
            figures = native.stats(queue)
            require_equal((figures["active"], figures["reclaimed"], figures["waiting_pops"]),
                          (0, 0, 0), f"leases, lost ones, pops without reply {dropped}")
            lost[decide.lost and decide.lost[0]] += 1
    require(lost[b"Q.POP"] > 0 and lost[b"Q.ACK"] > 0, f"lost: {lost}")


def test_reply_lost_while_draining(options):
    """The reply to the pop that ends the wait is lost: it is repeated, and nothing is left."""
    with options.server() as server:
        native = Native(server)
        lost = []

        def decide(command, _reply):
            if lost or command[0] != b"Q.POP" or b"BLOCK" in command:
                return proxy.PASS
            lost.append(command)
            return proxy.DROP

        with proxy.Proxy(server.port, decide) as between, Started(between.port) as worker:
            native.config(EXEC, "SET", "retry", "0")
            wait_until(lambda: native.stats(EXEC)["waiting_pops"] == 1, what="it waits")
            worker.process.send_signal(signal.SIGTERM)
            require_equal(worker.end(), 0, worker.text)
            require(lost, "no pop ended the wait")
        wait_until(lambda: native.stats(EXEC)["waiting_pops"] == 0, what="no pop waits")
        require_given_back(native, add(native, EXEC, 0, "echo"))


def test_reply_of_an_acknowledgement_is_lost(options):
    """After a lost reply to an ACK a job that is forgotten is done; nothing is run twice."""
    with options.server() as server, scratch() as folder:
        native = Native(server)
        native.config(EXEC, "SET", "retain_completed", "0")
        path = pathlib.Path(folder, "runs")
        lost = []

        def decide(command, _reply):
            if lost or command[0] != b"Q.ACK":
                return proxy.PASS
            lost.append(command)
            return proxy.DROP

        with proxy.Proxy(server.port, decide) as between, Started(between.port) as worker:
            for number in range(4):
                add(native, EXEC, number, "echo", file=str(path))
            wait_until(lambda: native.stats(EXEC)["completed"] == 4, 60, "all jobs")
            worker.process.send_signal(signal.SIGTERM)
            require_equal(worker.end(), 0, worker.text)
            require(lost and "lease is lost" not in worker.text, worker.text)
        require_equal(runs(path), 4, "runs")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
