#!/usr/bin/python3
"""Both clients have the same names: those of one list, in each language's case."""

import inspect
import json
import re
import subprocess
import sys

from harness import require_equal, run
from harness.python_client import url_of
from harness.typescript_client import COMPILER, PACKAGE, built

import sluice  # noqa: I100
from sluice.codec import codec_of
from sluice.plan import Lease

# What both clients have, what Python alone has, and what TypeScript alone has. `X()` is what makes
# an X, `X.y` the arguments of its method y.
NAMES = {
    "Queue": ("name add add_many get cancel retry result stats events close", "", ""),
    "Queue()": ("name codec patience", "server timeout", "url redis"),
    "Queue.add": ("payload id ifdup pri boost delay at group keys cost ttl lease max_run retry "
                  "backoff needs after tags max_wait", "", ""),
    "Queue.add_many": ("jobs", "options", ""),
    "Queue.get": ("id with", "", ""),
    "Queue.cancel": ("id reason grace", "", ""),
    "Queue.retry": ("id", "", ""),
    "Queue.result": ("id timeout", "", "signal"),
    "Queue.stats": ("group by window", "", ""),
    "Queue.events": ("from types ids", "follow", "signal"),
    "QueueEvent": ("seq time type id fields", "", ""),
    "Job": ("id outcome state position eta get why cancel result", "", "queue"),
    "Job.get": ("with", "", ""),
    "Job.cancel": ("reason grace", "", ""),
    "Job.result": ("timeout", "", "signal"),
    "JobInfo": ("id state ended position eta why pri group keys tags cost enqueued not_before "
                "ttl_left lease lease_term max_run attempts crashes retries_left needs after "
                "worker deadline started cancel finished run error progress successor options "
                "payload result", "", ""),
    "Worker": ("name ready quiet run stop", "queues counts serve wait_ready", "active"),
    "Worker()": ("queues handler concurrency codec match lease cap with heartbeat grace burst "
                 "max_jobs connect_timeout signals logger on_started on_completed on_failed "
                 "on_lost", "server timeout processes", "url redis name"),
    "Worker.stop": ("", "", "grace"),
    "Worker.wait_ready": ("", "timeout", ""),
    # The other fields of WITH are in Python's `extra`; TypeScript's handler has a context, too.
    "WorkerJob": ("queue id lease attempt payload progress", "extra cancelled lost check wait log",
                  "lease_term tags group error need_results"),
    "WorkerJob.progress": ("", "value", ""),
    "WorkerJob.log": ("", "text", ""),
    "WorkerJob.wait": ("", "seconds", ""),
    "Context": ("", "", "signal progress log"),
    "Codec": ("encode decode", "", ""),
}
# Prints {row: names} of the TypeScript client. In place of an argument `options` stand these.
SHOWN = """
import ts from '%s'
const [index, ...rows] = process.argv.slice(1)
const program = ts.createProgram([index], { module: ts.ModuleKind.NodeNext })
const checker = program.getTypeChecker()
const names = (type) => checker.getPropertiesOfType(checker.getNonNullableType(type))
  .map(({ name }) => name).filter((name) => /^\\w+$/.test(name))
const taken = (signatures) => signatures.flatMap(({ parameters }) => parameters.flatMap((each) =>
  each.name === 'options' ? names(checker.getTypeOfSymbol(each)) : [each.name]))
const shown = {}
for (const exported of checker.getExportsOfModule(
  checker.getSymbolAtLocation(program.getSourceFile(index)))) {
  const { name } = exported
  if (!rows.includes(name)) continue
  const symbol = checker.getAliasedSymbol(exported)
  const type = checker.getDeclaredTypeOfSymbol(symbol)
  shown[name] = names(type)
  if (!(symbol.flags & ts.SymbolFlags.Class)) continue
  shown[`${name}()`] = taken(checker.getTypeOfSymbol(symbol).getConstructSignatures())
  for (const member of checker.getPropertiesOfType(type)) {
    shown[`${name}.${member.name}`] = taken(checker.getTypeOfSymbol(member).getCallSignatures())
  }
}
console.log(JSON.stringify(shown))
"""
MADE_BY_THE_CLIENT = ("Job()", "WorkerJob()")  # not by its users


def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


def arguments(function):
    return {name.rstrip("_") for name in inspect.signature(function).parameters} - {"self"}


def of_python():
    """{row: names} of the Python client."""
    url = url_of(1)  # Nothing is sent.
    queue = sluice.Queue("q", url)
    job = sluice.Job(queue, "added", {"id": "j", "state": "pending", "position": 0, "eta": None})
    lease = Lease(b"q", b"j", 1, 1, b"1", 30.0, {})
    shown = {"Codec": public(sluice.Codec), "JobInfo": public(sluice.JobInfo("j", "pending")),
             "QueueEvent": public(sluice.QueueEvent(1, 0.0, "added", "j", {}))}
    for made in (queue, job, sluice.Worker("q", print, url),
                 sluice.WorkerJob(lease, codec_of("raw"))):
        name = type(made).__name__
        shown[name] = public(made)
        shown[f"{name}()"] = arguments(type(made))
        shown.update({f"{name}.{method}": arguments(function) for method, function
                      in inspect.getmembers(type(made), inspect.isfunction)
                      if not method.startswith("_")})
    return shown


def snake(name):
    return re.sub("(?<=[a-z])[A-Z]", lambda match: "_" + match.group().lower(), name)


def of_typescript():
    """{row: names} of the TypeScript client, in Python's case."""
    node = built()
    compiler = COMPILER.parents[1] / "lib" / "typescript.js"
    done = subprocess.run(
        [node, "--input-type=module", "-e", SHOWN % compiler, PACKAGE / "dist" / "index.d.ts",
         *NAMES], capture_output=True, text=True, timeout=120, check=False)
    require_equal(done.returncode, 0, done.stderr)
    shown = {}
    for row, names in json.loads(done.stdout).items():
        name, dot, method = row.partition(".")
        shown[name + dot + snake(method)] = {snake(each) for each in names}
    return shown


def require_names(shown, alone):
    """`alone`: which column is this client's own."""
    for row in sorted({*shown, *NAMES} - {*MADE_BY_THE_CLIENT}):
        both, *others = NAMES.get(row, ("", "", ""))
        require_equal(sorted(shown.get(row, ())), sorted(f"{both} {others[alone]}".split()), row)


def test_names_of_python(_options):
    """Methods, options and fields of the Python client are those of the list."""
    require_names(of_python(), 0)


def test_names_of_typescript(_options):
    """Methods, options and fields of the TypeScript client are those of the list."""
    require_names(of_typescript(), 1)


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
