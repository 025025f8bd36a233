#!/usr/bin/python3
"""A judge: runs programs of users, each in a sandbox, under caps for each user and language.

    judge.py worker [--slots N] [--unsafe]          runs what is submitted, until SIGTERM
    judge.py submit FILE --user NAME [--language L] submits a program and prints its output

SLUICE_URL names the server; without it, redis://localhost:6379.
"""

import argparse
import os
import pathlib
import sys

import redis
import sandbox
from sluice import NotCompleted, Queue, Worker

QUEUE = "judge"
URL = os.environ.get("SLUICE_URL", "redis://localhost:6379")
LIMITS = sandbox.Limits()
BLOCK_S = 5  # that the server waits for more of a log


def configure(slots: int) -> None:
    """The caps. They belong to the queue: every worker sets the same, and the last one counts."""
    with redis.Redis.from_url(URL) as server:
        server.execute_command("Q.CONFIG", QUEUE, "SET", "max_active", slots, "fair", "on",
                               "log_bytes", LIMITS.output_bytes)
        # A user runs two programs at a time, and has at most 20 waiting.
        server.execute_command("Q.CONFIG", QUEUE, "GROUP", "*", "SET", "max_active", 2,
                               "max_waiting", 20)
        server.execute_command("Q.CONFIG", QUEUE, "KEY", "lang:shell", "SET", "max_active", 2)


def work(slots: int, unsafe: bool) -> None:
    if not unsafe:
        sandbox.require_sandbox()
    configure(slots)

    def judge(job):
        code, language = job.payload["code"], job.payload["language"]
        outcome = sandbox.run(language, code, LIMITS, output=job.log, check=job.check,
                              unsafe=unsafe)
        return {"exit": outcome.exit, "ended_for": outcome.reason}

    # A judge's own failure is tried again; a program's failure is a result.
    Worker(QUEUE, judge, URL, concurrency=slots).run()


def show_log(job: str) -> None:
    """What the program writes, while it runs; and where output is missing, on standard error."""
    with redis.Redis.from_url(URL, socket_timeout=2 * BLOCK_S) as server:
        next_, ended = 0, False
        while not ended:
            reply = server.execute_command("Q.LOG", QUEUE, job, "FROM", next_,
                                           "BLOCK", BLOCK_S * 1000)
            if reply is None:
                return
            offset, data, after, ended = reply
            if offset > next_:
                print(f"judge: {offset - next_} bytes of output are missing here",
                      file=sys.stderr, flush=True)
            next_ = after
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()


def submit(path: str, user: str, language: str) -> int:
    code = pathlib.Path(path).read_text(encoding="utf-8")
    with Queue(QUEUE, URL) as queue:
        job = queue.add({"code": code, "language": language}, group=user,
                        keys=[f"lang:{language}"], tags={"language": language}, max_run=60)
        print(f"job {job.id}: {job.state}", file=sys.stderr)
        show_log(job.id)
        try:
            result = job.result()
        except NotCompleted as error:
            print(error, file=sys.stderr)
            return 1
    print(result, file=sys.stderr)
    return result["exit"] or 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    worker = commands.add_parser("worker", help="runs what is submitted")
    worker.add_argument("--slots", type=int, default=os.cpu_count() or 1)
    worker.add_argument("--unsafe", action="store_true",
                        help="without a sandbox: only for code that you trust")
    submission = commands.add_parser("submit", help="submits a program and prints what it writes")
    submission.add_argument("file")
    submission.add_argument("--user", required=True)
    submission.add_argument("--language", choices=sorted(sandbox.LANGUAGES), default="python")
    arguments = parser.parse_args()
    if arguments.command == "submit":
        return submit(arguments.file, arguments.user, arguments.language)
    try:
        work(arguments.slots, arguments.unsafe)
    except sandbox.NoSandbox as error:
        print(f"judge: {error}; --unsafe runs programs without a sandbox", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
