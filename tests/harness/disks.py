"""Disks that lose power: a file system of its own for each of a test's processes, in a file.

    with Disks(3) as disks:
        ...                   # a process writes into disks.path(0)
        disks.cut(0)          # from now on nothing of it reaches the disk
        ...                   # the process ends
        disks.heal(0)         # what was synced is there again

The process that uses it is in a mount namespace of its own from then on, as are those that it
starts. The kernel removes the mounts when the last of them has ended, however a test ends. Needs
root and loop devices.
"""

import contextlib
import ctypes
import fcntl
import os
import struct
import subprocess

from harness import Skipped, need_program, scratch

CLONE_NEWNS = 0x20000
SHUTDOWN = 0x8004587D        # FS_IOC_SHUTDOWN
WITHOUT_FLUSH = 2            # neither data nor the file system's log are written before
BYTES = 2 << 30              # of which the file takes what is used


class Disks:
    def __init__(self, count):
        need_program("mkfs.ext4")
        self._count = count
        self._folder = None
        self._ended = contextlib.ExitStack()

    def __enter__(self):
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWNS) != 0:
            raise Skipped(f"NOT RUN: no mounts without root: {os.strerror(ctypes.get_errno())}")
        try:
            self._folder = self._ended.enter_context(scratch())
            self._run("mount", "--make-rprivate", "/")
            for index in range(self._count):
                self._make(index)
        except AssertionError as failure:
            self._ended.close()
            raise Skipped(f"NOT RUN: no disks: {failure}") from None
        return self

    def __exit__(self, *_):
        self._ended.close()

    def path(self, index):
        return os.path.join(self._folder, f"disk{index}")

    def cut(self, index):
        """The power is gone: what was not synced is lost."""
        place = os.open(self.path(index), os.O_RDONLY)
        try:
            fcntl.ioctl(place, SHUTDOWN, struct.pack("=I", WITHOUT_FLUSH))
        finally:
            os.close(place)

    def heal(self, index):
        """It is there again. Nobody has a file of it open."""
        self._run("umount", self.path(index))
        self._mount(index)

    def _make(self, index):
        with open(self._file(index), "wb") as file:
            file.truncate(BYTES)
        self._run("mkfs.ext4", "-q", self._file(index))
        os.mkdir(self.path(index))
        self._mount(index)
        self._ended.callback(lambda: self._run("umount", self.path(index)))

    def _mount(self, index):
        self._run("mount", "-o", "loop", self._file(index), self.path(index))

    def _file(self, index):
        return self.path(index) + ".image"

    @staticmethod
    def _run(*command):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: {done.stderr.strip()}")
