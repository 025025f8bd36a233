"""A wall clock of the test's own, for the servers that it starts with `environment()`."""

import mmap
import os
import pathlib
import struct
import time

from harness.surroundings import compiled

SOURCE = pathlib.Path(__file__).with_name("wall_clock.c")
SETTING = struct.Struct("=Qqqd")


class WallClock:
    """Compiled and kept in `directory`. Set by one thread; read by any process."""

    def __init__(self, directory):
        self.library = compiled(directory, "wall_clock", SOURCE.read_text(encoding="utf-8"))
        self.path = os.path.join(directory, "wall-clock")
        with open(self.path, "wb") as file:
            file.write(bytes(SETTING.size))
        with open(self.path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), SETTING.size)
        self.number = 0
        self.begin_ns = time.time_ns()
        self.set_right()

    def environment(self, read_us=0, boot_rate=1.0):
        """`read_us`: how long each look at a clock takes, besides what it takes anyway.
        `boot_rate`: of the clock that counts suspension."""
        return {**os.environ, "LD_PRELOAD": self.library, "SLUICE_WALL_CLOCK": self.path,
                "SLUICE_CLOCK_READ_US": str(read_us), "SLUICE_BOOT_RATE": str(boot_rate)}

    def _write(self, steady_ns, wall_ns, rate):
        self.number += 2
        struct.pack_into("=Q", self.memory, 0, self.number - 1)
        struct.pack_into("=qqd", self.memory, 8, steady_ns, wall_ns, rate)
        struct.pack_into("=Q", self.memory, 0, self.number)
        self.said = (steady_ns, wall_ns, rate)

    def set_ms(self, unix_ms, rate=1.0):
        self._write(time.monotonic_ns(), int(unix_ms * 1_000_000), rate)

    def step_ms(self, ms):
        self.set_ms(self.now_ms() + ms)

    def set_right(self):
        """As if nobody had ever set it."""
        self._write(time.monotonic_ns(), time.time_ns(), 1.0)

    def now_ms(self):
        steady_ns, wall_ns, rate = self.said
        return (wall_ns + (time.monotonic_ns() - steady_ns) * rate) / 1_000_000
