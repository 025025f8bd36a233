"""Handlers for the workers that the tests start as processes of their own."""

import asyncio
import json
import os
import signal
import subprocess
import time

from sluice import Cancelled


def echo(job):
    return job.payload


def steps(job):
    """Runs for as many seconds as the payload says, and asks whether it is to stop."""
    job.progress("begun")
    job.wait(job.payload)
    return "ended"


def wait(job):
    job.wait(600)


def hear(job):
    """Writes to the file of the payload what it knows once it is to stop."""
    job.progress("begun")
    try:
        job.wait(600)
    except Cancelled as error:
        with open(job.payload + ".new", "w", encoding="utf-8") as file:
            json.dump([str(error), job.cancelled, job.lost], file)
        os.rename(job.payload + ".new", job.payload)
        raise


def sleep(job):
    """Does not ask."""
    job.progress("begun")
    time.sleep(job.payload)
    return "ended"


async def sleep_async(job):
    job.progress("begun")
    await asyncio.sleep(job.payload)
    return "ended"


async def ignore_cancel(job):
    """Continues whatever it is told."""
    job.progress("begun")
    until = time.monotonic() + job.payload
    while time.monotonic() < until:
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            pass


async def block_loop(job):
    job.progress("begun")
    time.sleep(job.payload)


def signalled(_job):
    """How a fork and a program end that SIGTERM is sent to."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(theirs, b"x")
        time.sleep(600)
    os.read(ours, 1)
    os.kill(pid, signal.SIGTERM)
    program = subprocess.Popen(["sleep", "600"])
    program.terminate()
    return [os.waitpid(pid, 0)[1], program.wait()]


class OneWay:
    """A codec that does not read what it writes."""

    def encode(self, value):
        return b"text " + str(value).encode()

    def decode(self, data):
        return json.loads(data)


def crash(job):
    """A child does with itself what the payload says."""
    if job.payload == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    if job.payload == "exit":
        os._exit(3)
    if job.payload == "fork and exit":
        if os.fork() == 0:
            with open(os.environ["FORKED"], "w", encoding="ascii") as file:
                file.write(str(os.getpid()))
            time.sleep(600)
        os._exit(3)
    if job.payload == "sys.exit":
        raise SystemExit(4)
    if job.payload == "throw":
        raise ValueError("thrown")
    if job.payload == "hang":
        job.progress("begun")
        time.sleep(600)
    job.progress("half")
    return [os.getpid(), job.payload]


def stop_amid(job):
    """Stops the process when it has said a part of something."""
    write = os.write

    def write_a_part(descriptor, data):
        write(descriptor, data[:20])
        os.kill(os.getpid(), signal.SIGSTOP)

    os.write = write_a_part
    job.log("x" * 1000)


_earlier = []


def speak_for_all(job):
    """Says something for its job, and for those that this process has run before."""
    _earlier.insert(0, job)
    for each in _earlier:
        each.log(f"of {each.id}\n")
        each.progress(each.id)
    return os.getpid()


def needs(job):
    """Returns its payload, or the results that it needed."""
    return job.extra["need_results"] if job.payload == "needs" else job.payload
