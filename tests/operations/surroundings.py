"""The environment of a server: limits of the shell, a configuration file, and functions that a test
puts in front of the C library's.
"""

import os
import subprocess

import harness

# Each calls the next one of its name, but for what its test wants.
_HEAD = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
"""


def refuse_sanitizers(options, why):
    """A test that a server with a sanitizer cannot pass is not run with one."""
    with open(options.program, "rb") as program:
        text = program.read()
    if b"__asan_init" in text or b"__tsan_init" in text:
        raise harness.Skipped(why)


def preload(directory, options, name, source):
    """The environment in which the server finds the functions of this C source first."""
    refuse_sanitizers(options, "a sanitizer wants to be the first library")
    compiler = harness.need_program("cc")
    path = os.path.join(directory, name + ".c")
    library = os.path.join(directory, name + ".so")
    with open(path, "w", encoding="ascii") as file:
        file.write(_HEAD + source)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-w", "-o", library, path, "-ldl"],
                   check=True, timeout=60)
    return dict(os.environ, LD_PRELOAD=library)


def wrapped(directory, options, shell="", arguments="", environment=None):
    """A program that is the server after these lines of shell, with these arguments first; with
    preload()'s environment, which is not the shell's."""
    if environment is not None:
        shell += f'\nexport LD_PRELOAD="{environment["LD_PRELOAD"]}"'
    path = os.path.join(directory, "server.sh")
    with open(path, "w", encoding="ascii") as file:
        file.write(f'#!/bin/sh\n{shell}\nexec "{options.program}" {arguments} "$@"\n')
    os.chmod(path, 0o755)
    return harness.Options(path, options.io_threads)
