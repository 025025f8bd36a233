"""A disk that is slow: the server's syncs take longer, by a library that is loaded before libc."""

import contextlib
import os
import subprocess

import harness
from harness import require_equal

SYNC_S = 0.5
SLOW_SYNC = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
int fdatasync(int file) {
  usleep(SYNC_US);
  int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  return sync(file);
}
"""


@contextlib.contextmanager
def slow_disk():
    """The environment of a server for which each sync takes SYNC_S longer."""
    with harness.scratch() as directory:
        library = os.path.join(directory, "slow_sync.so")
        built = subprocess.run(["cc", f"-DSYNC_US={SYNC_S * 1e6:.0f}", "-shared", "-fPIC",
                                "-x", "c", "-", "-o", library, "-ldl"],
                               input=SLOW_SYNC.encode(), check=False, capture_output=True)
        require_equal(built.returncode, 0, built.stderr.decode())
        yield dict(os.environ, LD_PRELOAD=library)
