"""Machines with a network of their own: namespaces of this one, joined by a bridge.

    with Machines(3) as machines:
        program = subprocess.Popen(machines.on(0) + command)    # serves machines.address(0)
        machines.cut(0)      # nothing comes or goes, and nobody is told
        machines.heal(0)

The thread that uses it is in a namespace of its own meanwhile, on the same bridge, and so are the
threads and processes that it begins. The kernel removes all of it when the last process in it has
ended, so that nothing is left behind, however a test ends. Needs root and iproute2.
"""

import contextlib
import ctypes
import os
import subprocess

from harness import Skipped, need_program, wait_until
from harness.servers import die_with_parent

CLONE_NEWNET = 0x40000000
OWN_NETWORK = "/proc/thread-self/ns/net"


class Machines:
    def __init__(self, count):
        need_program("ip")
        self._count = count
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._ended = contextlib.ExitStack()
        self._keepers = []   # processes, each of which keeps a namespace

    def __enter__(self):
        before = os.open(OWN_NETWORK, os.O_RDONLY | os.O_CLOEXEC)
        self._ended.callback(os.close, before)
        if self._libc.unshare(CLONE_NEWNET) != 0:
            self._ended.close()
            raise Skipped("NOT RUN: no network namespaces without root: "
                          f"{os.strerror(ctypes.get_errno())}")
        self._ended.callback(self._libc.setns, before, CLONE_NEWNET)
        try:
            self._build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for keeper in self._keepers:
            keeper.kill()
            keeper.wait()
        self._ended.close()

    def address(self, index):
        return f"10.0.0.{index + 1}"

    def on(self, index):
        """Begins a command line, whose program runs on that machine. The process is the
        program's."""
        return ["nsenter", f"--net=/proc/{self._keepers[index].pid}/ns/net", "--"]

    def cut(self, index):
        self._ip(f"link set way{index} down")

    def heal(self, index):
        self._ip(f"link set way{index} up")

    def _build(self):
        own = os.readlink(OWN_NETWORK)
        for _ in range(self._count):
            # pylint: disable=consider-using-with
            self._keepers.append(subprocess.Popen(["unshare", "--net", "sleep", "infinity"],
                                                  preexec_fn=die_with_parent))  # noqa: one thread
        commands = ["link set lo up", "link add bridge type bridge",
                    "address add 10.0.0.254/24 dev bridge", "link set bridge up"]
        for index, keeper in enumerate(self._keepers):
            wait_until(lambda pid=keeper.pid: os.readlink(f"/proc/{pid}/ns/net") != own,
                       what="a namespace")
            commands += [f"link add way{index} type veth peer name eth0 netns {keeper.pid}",
                         f"link set way{index} master bridge up"]
        self._ip(*commands)
        for index in range(self._count):
            self._ip("link set lo up", f"address add {self.address(index)}/24 dev eth0",
                     "link set eth0 up", on=self.on(index))

    @staticmethod
    def _ip(*commands, on=()):
        done = subprocess.run([*on, "ip", "-batch", "-"], input="\n".join(commands) + "\n",
                              capture_output=True, text=True, check=False, timeout=20)
        if done.returncode != 0:
            raise AssertionError(f"ip {commands}: {done.stderr}")
