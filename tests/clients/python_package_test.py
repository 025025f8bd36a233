#!/usr/bin/python3
"""The Python client as a package: types, version, what a wheel holds, names of workers, the code of
its README."""

import ast
import importlib.util
import inspect
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import zipfile

from harness import Skipped, need_program, require, require_equal, run, scratch
from harness.python_client import PACKAGE, url_of
from harness.servers import ROOT

from sluice import AsyncJob, AsyncQueue, Job, Queue, Worker

SOURCES = sorted((PACKAGE / "sluice").glob("*.py"))


def test_types(_options):
    """mypy --strict accepts the package, without an ignore."""
    done = subprocess.run([need_program("mypy"), "--cache-dir", os.devnull], cwd=PACKAGE,
                          capture_output=True, text=True, check=False)
    require(done.returncode == 0, done.stdout + done.stderr)
    for path in SOURCES:
        require("type: ignore" not in path.read_text(encoding="utf-8"), f"{path}: an ignore")


def test_version(_options):
    """The version is the project's."""
    cmake = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    project = re.search(r"project\(sluice VERSION ([\d.]+)", cmake).group(1)
    text = (PACKAGE / "pyproject.toml").read_text(encoding="utf-8")
    require_equal(re.search(r'^version = "(.*)"', text, re.MULTILINE).group(1), project)


def test_wheel(_options):
    """A wheel holds every module and py.typed, needs redis alone, and is imported from there."""
    for name in ("setuptools", "wheel"):
        if importlib.util.find_spec(name) is None:
            raise Skipped(f"NOT RUN: no python3-{name}; tools/setup test installs it")
    with scratch() as folder:
        copy = pathlib.Path(folder, "copy")
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", ".mypy_cache"))
        build = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
        subprocess.run([sys.executable, "-c", build, folder], cwd=copy, check=True,
                       capture_output=True)
        [wheel] = pathlib.Path(folder).glob("sluice-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            names = {name for name in archive.namelist() if name.startswith("sluice/")}
            [metadata] = [name for name in archive.namelist() if name.endswith("/METADATA")]
            text = archive.read(metadata).decode()
        require_equal(names, {f"sluice/{path.name}" for path in SOURCES} | {"sluice/py.typed"})
        require_equal(re.findall(r"^Requires-Dist: (\w+)", text, re.MULTILINE), ["redis"])
        done = subprocess.run([sys.executable, "-c", "import sluice; print(sluice.__file__)"],
                              env={"PYTHONPATH": str(wheel)}, cwd=folder, capture_output=True,
                              text=True, check=True)
        require(str(wheel) in done.stdout, done.stdout)


def test_dependencies(_options):
    """The package imports the standard library, redis, and OpenTelemetry if it is there."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                top = name.split(".")[0]
                require(top in sys.stdlib_module_names | {"redis", "sluice"}, f"{path}: {name}")


def parameters(function):
    return [(name, parameter.default, parameter.kind)
            for name, parameter in inspect.signature(function).parameters.items()]


def test_both_queues(_options):
    """AsyncQueue and AsyncJob have the methods of Queue and Job, with the same arguments."""
    for plain, awaited in ((Queue, AsyncQueue), (Job, AsyncJob)):
        for name, function in inspect.getmembers(plain, inspect.isfunction):
            if not name.startswith("_"):
                require_equal(parameters(getattr(awaited, name)), parameters(function), name)
    require_equal(parameters(Queue.__init__), parameters(AsyncQueue.__init__))


def test_names_of_workers(_options):
    """A worker's name has its host and its process, and no other worker has it."""
    names = [Worker("exec", print, "redis://127.0.0.1:1").name for _ in range(100)]
    require_equal({name.rpartition(":")[0] for name in names},
                  {f"{socket.gethostname()}:{os.getpid()}"})
    require_equal(len(set(names)), 100, "names")


def test_docstrings(_options):
    """Every module and every public class says what it is."""
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        require(ast.get_docstring(tree), f"{path}: no docstring")
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                require(ast.get_docstring(node), f"{path}: {node.name} has no docstring")


def blocks(text):
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_readme(options):
    """The code of the README runs as it stands."""
    worker, program, testing = blocks((PACKAGE / "README.md").read_text(encoding="utf-8"))
    with options.server() as server, scratch() as folder:
        pathlib.Path(folder, "work.py").write_text(worker, encoding="utf-8")
        address = url_of(server.port)
        require("redis://localhost:6379" in program, "the address in the README")
        program = program.replace("redis://localhost:6379", address)
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "SLUICE_URL": address,
                       "SLUICE_SERVER": options.program}
        with subprocess.Popen([sys.executable, "work.py"], cwd=folder, env=environment) as started:
            try:
                done = subprocess.run([sys.executable, "-c", program], env=environment,
                                      capture_output=True, text=True, timeout=60, check=False)
                require_equal(done.returncode, 0, done.stderr)
                require_equal(done.stdout.splitlines()[-1], "{'ok': True}")
            finally:
                started.terminate()
            require_equal(started.wait(60), 0, "the worker's exit")
        done = subprocess.run(
            [sys.executable, "-c", "from sluice import Queue\n" + testing + "    queue.add(1)\n"],
            env=environment, capture_output=True, text=True, timeout=60, check=False)
        require_equal(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
