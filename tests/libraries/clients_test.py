#!/usr/bin/python3
"""The clients of Python, Ruby, C, Go and PHP, as Debian has them."""

import os
import pathlib
import subprocess
import sys

from harness import Skipped, libraries, need_program, require, scratch

REDIS_PY = libraries.HERE / "python" / "redis_py.py"

REDIGO = "/usr/share/gocode/src/github.com/gomodule/redigo"


def test_redis_py(options):
    """redis-py: values, units, scripts, locks, messages, waits, streams, a kill."""
    with libraries.server(options) as running, scratch() as folder:
        libraries.play([sys.executable, REDIS_PY, "blocking"], running, folder)


def test_redis_py_asyncio(options):
    """redis-py with asyncio, with appendfsync everysec."""
    with libraries.server(options, "everysec") as running, scratch() as folder:
        libraries.play([sys.executable, REDIS_PY, "asyncio"], running, folder)


def build(command, folder, **others):
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True,
                          text=True, timeout=libraries.LONGEST_S, check=False,
                          env=dict(os.environ, **others))
    require(done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}")


def test_hiredis(options):
    """hiredis (C): commands, pipelines, units, scripts, messages, a kill."""
    compiler = need_program("cc")
    libraries.need_file("/usr/include/hiredis/hiredis.h", "libhiredis-dev")
    with libraries.server(options) as running, scratch() as folder:
        program = pathlib.Path(folder, "client")
        build([compiler, "-Wall", "-Wextra", "-Werror", "-O1", "-o", program,
               libraries.HERE / "c" / "hiredis_client.c", "-lhiredis"], folder)
        libraries.play([program], running, folder)


def test_redigo(options):
    """redigo (Go): commands, pipelines, a pool, scripts, messages, a kill."""
    go = need_program("go")
    libraries.need_file(REDIGO, "golang-github-gomodule-redigo-dev")
    with libraries.server(options, "everysec") as running, scratch() as folder:
        program = pathlib.Path(folder, "client")
        build([go, "build", "-o", program, libraries.HERE / "go" / "redigo_client.go"], folder,
              GO111MODULE="off", GOPATH="/usr/share/gocode", GOCACHE=f"{folder}/cache",
              GOFLAGS="", CGO_ENABLED="0")
        libraries.play([program], running, folder)


def test_phpredis(options):
    """phpredis: values, units, scans, scripts, streams, a kill."""
    php = need_program("php")
    modules = subprocess.run([php, "-m"], capture_output=True, text=True, check=True).stdout
    if "redis" not in modules.split():
        raise Skipped("NOT RUN: no php-redis; tools/setup test installs it")
    with libraries.server(options) as running, scratch() as folder:
        libraries.play([php, libraries.HERE / "php" / "client.php"], running, folder)


def test_ruby(options):
    """redis-rb: values, units, scans, messages, waits, a kill."""
    ruby = need_program("ruby")
    libraries.need_file("/usr/bin/sidekiq", "ruby-sidekiq")
    with libraries.server(options, "everysec") as running, scratch() as folder:
        libraries.play([ruby, libraries.HERE / "ruby" / "client.rb"], running, folder)


if __name__ == "__main__":
    libraries.run(sys.modules[__name__])
