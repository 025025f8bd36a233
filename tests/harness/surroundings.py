"""The environment of a server: limits of the shell and of files, a slow disk, and functions that a
test puts in front of the C library's.
"""

import contextlib
import os
import resource
import subprocess

import harness

NEVER_ENOUGH = "1000000gb"  # for min-free-disk: more than a disk has
JOURNAL_FAILED = 75  # the exit code of a server that could not write its journal
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
SYNC_S = 0.5
SLOW_SYNC = """
int fdatasync(int file) {
  usleep(SYNC_US);
  int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  return sync(file);
}
"""

# No sync ends while this file is there.
HELD_SYNC = """
int fdatasync(int file) {
  while (access("HELD", F_OK) == 0) usleep(1000);
  int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  return sync(file);
}
"""

# Beside a pause of the machine, too, a copy takes long enough to be interrupted.
SLOW_RECEIPT = """
#include <sys/socket.h>
static ssize_t slowly(ssize_t size) {
  if (size >= 16384) usleep(40000);
  return size;
}
ssize_t recv(int from, void* to, size_t most, int flags) {
  ssize_t (*next)(int, void*, size_t, int) =
      (ssize_t (*)(int, void*, size_t, int))dlsym(RTLD_NEXT, "recv");
  return slowly(next(from, to, most, flags));
}
ssize_t recvmsg(int from, struct msghdr* to, int flags) {
  ssize_t (*next)(int, struct msghdr*, int) =
      (ssize_t (*)(int, struct msghdr*, int))dlsym(RTLD_NEXT, "recvmsg");
  return slowly(next(from, to, flags));
}
"""

# What is synced and renamed, and which rights are given, is noted in the file NOTED_CALLS.
NOTED_CALLS = """
static void note(const char* what, const char* first, const char* second) {
  char line[1024];
  const int size = snprintf(line, sizeof(line), "%s %s %s\\n", what, first, second);
  const int file = open(getenv("NOTED_CALLS"), O_WRONLY | O_APPEND | O_CREAT, 0600);
  if (write(file, line, size) != size) abort();
  close(file);
}
static void note_file(const char* what, int file, const char* second) {
  char link[64], path[512] = "";
  snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
  if (readlink(link, path, sizeof(path) - 1) > 0) note(what, path, second);
}
int fsync(int file) {
  note_file("fsync", file, "-");
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}
int fchmod(int file, mode_t mode) {
  struct stat before;
  char rights[16] = "?";
  if (fstat(file, &before) == 0) snprintf(rights, sizeof(rights), "%o", before.st_mode & 0777);
  note_file("fchmod", file, rights);
  return ((int (*)(int, mode_t))dlsym(RTLD_NEXT, "fchmod"))(file, mode);
}
int rename(const char* from, const char* to) {
  note("rename", from, to);
  return ((int (*)(const char*, const char*))dlsym(RTLD_NEXT, "rename"))(from, to);
}
"""

# The limit of open files stays as the shell has set it.
FIXED_LIMIT = """
int setrlimit(__rlimit_resource_t what, const struct rlimit* limit) {
  errno = EPERM;
  return -1;
}
int setrlimit64(__rlimit_resource_t what, const struct rlimit64* limit) {
  errno = EPERM;
  return -1;
}
"""


def refuse_sanitizers(options, why):
    """A test that a server with a sanitizer cannot pass is not run with one."""
    with open(options.program, "rb") as program:
        text = program.read()
    if b"__asan_init" in text or b"__tsan_init" in text:
        raise harness.Skipped(why)


def compiled(directory, name, source):
    """The path of a shared library that is made of this C source."""
    library = os.path.join(directory, name + ".so")
    built = subprocess.run([harness.need_program("cc"), "-shared", "-fPIC", "-O1", "-w", "-x", "c",
                            "-", "-o", library, "-ldl"], input=source.encode(), timeout=60,
                           capture_output=True, check=False)
    harness.require_equal(built.returncode, 0, built.stderr.decode())
    return library


def preload(directory, options, name, source):
    """The environment in which the server finds the functions of this C source first."""
    refuse_sanitizers(options, "a sanitizer wants to be the first library")
    return dict(os.environ, LD_PRELOAD=compiled(directory, name, _HEAD + source))


@contextlib.contextmanager
def slow_disk(sync_s=SYNC_S):
    """The environment of a server for which each sync takes so much longer."""
    with harness.scratch() as directory:
        source = _HEAD + SLOW_SYNC.replace("SYNC_US", f"{sync_s * 1e6:.0f}")
        yield dict(os.environ, LD_PRELOAD=compiled(directory, "slow_sync", source))


@contextlib.contextmanager
def held_disk(options):
    """The environment of a server, and the path of a file: while that is there, no sync ends."""
    with harness.scratch() as directory:
        held = os.path.join(directory, "held")
        yield preload(directory, options, "held_sync", HELD_SYNC.replace("HELD", held)), held


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


@contextlib.contextmanager
def fixed_files(options, count):
    """A program that is the server where nobody may open more files than `count`."""
    with harness.scratch() as directory:
        environment = preload(directory, options, "limit", FIXED_LIMIT)
        yield wrapped(directory, options, shell=f"ulimit -n {count}", environment=environment)


def limit_files(pid, size):
    """From now on no file of the process grows beyond `size`: each write that would is an error."""
    _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, most))


def largest_file(directory):
    return max(os.path.getsize(os.path.join(path, name))
               for path, _, names in os.walk(directory) for name in names)
