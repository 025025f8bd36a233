"""Handlers for the workers that the tests start as processes of their own."""

import asyncio
import os
import signal
import time


def echo(job):
    return job.payload


def steps(job):
    """Runs for as many seconds as the payload says, and asks whether it is to stop."""
    job.progress("begun")
    job.wait(job.payload)
    return "ended"


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


def crash(job):
    """A child does with itself what the payload says."""
    if job.payload == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    if job.payload == "exit":
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
