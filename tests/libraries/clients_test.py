#!/usr/bin/python3
"""The clients of Python, Ruby, C, Go and PHP, as Debian has them."""

import os
import pathlib
import subprocess
import sys

import play

REDIGO = "/usr/share/gocode/src/github.com/gomodule/redigo"


def test_redis_py(options):
    """redis-py: values, units, scripts, locks, messages, waits, streams, a kill."""
    with play.server(options) as running, play.scratch() as folder:
        play.play([sys.executable, play.HERE / "python" / "redis_py.py", "blocking"], running,
                  folder)


def test_redis_py_asyncio(options):
    """redis-py with asyncio, with appendfsync everysec."""
    with play.server(options, "everysec") as running, play.scratch() as folder:
        play.play([sys.executable, play.HERE / "python" / "redis_py.py", "asyncio"], running,
                  folder)


def build(command, folder, **others):
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True,
                          text=True, timeout=play.LONGEST_S, check=False,
                          env=dict(os.environ, **others))
    play.require(done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}")


def test_hiredis(options):
    """hiredis (C): commands, pipelines, units, scripts, messages, a kill."""
    compiler = play.need_program("cc")
    play.need_file("/usr/include/hiredis/hiredis.h", "libhiredis-dev")
    with play.server(options) as running, play.scratch() as folder:
        program = pathlib.Path(folder, "client")
        build([compiler, "-Wall", "-Wextra", "-Werror", "-O1", play.HERE / "c" / "hiredis_client.c",
               "-o", program, "-lhiredis"], folder)
        play.play([program], running, folder)


def test_redigo(options):
    """redigo (Go): commands, pipelines, a pool, scripts, messages, a kill."""
    go = play.need_program("go")
    play.need_file(REDIGO, "golang-github-gomodule-redigo-dev")
    with play.server(options, "everysec") as running, play.scratch() as folder:
        program = pathlib.Path(folder, "client")
        build([go, "build", "-o", program, play.HERE / "go" / "redigo_client.go"], folder,
              GO111MODULE="off", GOPATH="/usr/share/gocode", GOCACHE=f"{folder}/cache",
              GOFLAGS="", CGO_ENABLED="0")
        play.play([program], running, folder)


def test_phpredis(options):
    """phpredis: values, units, scans, scripts, streams, a kill."""
    php = play.need_program("php")
    modules = subprocess.run([php, "-m"], capture_output=True, text=True, check=True).stdout
    if "redis" not in modules.split():
        raise play.Skipped("NOT RUN: no php-redis; tools/setup test installs it")
    with play.server(options) as running, play.scratch() as folder:
        play.play([php, play.HERE / "php" / "client.php"], running, folder)


def test_ruby(options):
    """redis-rb: values, units, scans, messages, waits, a kill."""
    ruby = play.need_program("ruby")
    play.need_file("/usr/bin/sidekiq", "ruby-sidekiq")
    with play.server(options, "everysec") as running, play.scratch() as folder:
        play.play([ruby, play.HERE / "ruby" / "client.rb"], running, folder)


if __name__ == "__main__":
    play.run(sys.modules[__name__])
