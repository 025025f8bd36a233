"""Comparison of two Sluices (bench/compare --against): their programs, and the ratios of CPU time.

A disturbance of the machine mostly affects adjacent runs alike, so the figures of one round are
compared with each other first, and then the rounds. A row passes if the median of the ratios is at
most MOST, or if its bootstrap interval contains 1."""

import os
import pathlib
import random
import statistics
import subprocess

from compare_lib.measure import ROOT

MOST = 1.02
LEVEL = 0.95
RESAMPLES = 10_000


class NoProgram(Exception):
    """Not a program, and not a commit that builds; the text says why."""


def program_of(what):
    """The path of a program, or of the program built from a commit (once, below build/commits)."""
    if os.path.isfile(what):
        return os.path.abspath(what)
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet",
                             what + "^{commit}"], capture_output=True, text=True, check=False)
    if commit.returncode != 0:
        raise NoProgram(f"{what} is neither a program nor a commit")
    folder = ROOT / "build" / "commits" / commit.stdout.strip()[:12]
    program = folder / "build" / "bin" / "sluice-server"
    if not program.exists():
        build(commit.stdout.strip(), folder)
    return str(program)


def build(commit, folder):
    """Builds the server of a commit with its release preset."""
    print(f"building {folder.relative_to(ROOT)}", flush=True)
    source = folder / "source"
    source.mkdir(parents=True, exist_ok=True)
    archive = subprocess.Popen(["git", "-C", str(ROOT), "archive", commit], stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", str(source)], stdin=archive.stdout, check=True)
    if archive.wait() != 0:
        raise NoProgram(f"git archive {commit} failed")
    log = folder / "log"
    with open(log, "wb") as output:
        for command in (["cmake", "--preset", "release", "-B", folder / "build"],
                        ["cmake", "--build", folder / "build", "--target", "sluice-server"]):
            done = subprocess.run(command, cwd=source, stdout=output, stderr=output, check=False)
            if done.returncode != 0:
                raise NoProgram(f"{commit} does not build, see {pathlib.Path(log)}")


def interval(ratios):
    """The confidence interval of the median at LEVEL: (low, high)."""
    source = random.Random(1)
    medians = sorted(statistics.median(source.choices(ratios, k=len(ratios)))
                     for _ in range(RESAMPLES))
    cut = int(RESAMPLES * (1 - LEVEL) / 2)
    return medians[cut], medians[-1 - cut]


class Verdict:
    """The result of the rounds of one row. `ours`, `theirs`: the figures of each round, or None."""

    def __init__(self, row, ours, theirs):
        self.title = row.title
        pairs = [(a["cpu_us"], b["cpu_us"]) for a, b in zip(ours, theirs) if a and b]
        self.rounds = len(pairs)
        if not pairs:
            self.passes = False
            return
        ratios = [a / b for a, b in pairs]
        self.ours, self.theirs = (statistics.median(each) for each in zip(*pairs))
        self.ratio = statistics.median(ratios)
        self.low, self.high = interval(ratios)
        self.passes = self.ratio <= MOST or self.low <= 1 <= self.high

    def line(self):
        word = "PASS" if self.passes else "MISS"
        if not self.rounds:
            return f"{word:5} {self.title:66} no round"
        return (f"{word:5} {self.title:66} {self.theirs:9.3f} us {self.ours:9.3f} us  "
                f"{self.ratio:.3f}×  [{self.low:.3f}, {self.high:.3f}]  {self.rounds} rounds")


def verdicts(chosen, figures):
    return [Verdict(row, figures[row.name]["A"], figures[row.name]["B"]) for row in chosen]
