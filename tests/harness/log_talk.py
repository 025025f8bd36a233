"""The replicated log of a group, as a test in Python speaks to it: tests/group/log_talk.cc.

    log = LogTalk(options, cluster.endpoints())
    answer = log.call("append", fence, 1, "the frame")     # waits for the answer
    answer = log.begin("append", fence, 2, "another one")  # does not; answer.wait()
"""

import itertools
import pathlib
import subprocess
import threading
import time

from harness import need_program, require_equal
from harness.servers import die_with_parent

# Values of the epoch, of two processes.
TAKEN, READY = "1 c 1 n1 r1 taken - 0", "1 c 1 n1 r1 ready - 0"
NEXT_TAKEN, NEXT_READY = "1 c 2 n2 r2 taken - 0", "1 c 2 n2 r2 ready - 0"


def seqs_of(page):
    """Of the answer to `frames`."""
    return [int(frame.split("=")[0]) for frame in page.more[1:]]


class Answer:
    """`outcome` is None until it has come."""

    def __init__(self):
        self.came = threading.Event()
        self.outcome = None
        self.revision = 0
        self.epoch = self.text = ""
        self.more = []
        self.at_s = 0.0

    def wait(self, timeout_s=20.0):
        if not self.came.wait(timeout_s):
            raise AssertionError(f"no answer within {timeout_s} s")
        return self

    def __repr__(self):
        return f"{self.outcome} at {self.revision}, epoch {self.epoch!r}, {self.text!r} {self.more}"


class LogTalk:
    """One process with a log, and with others for sibling(). Answers and events are read by a
    thread of its own."""

    index = 0  # which of the process's logs

    def __init__(self, options, endpoints, **settings):
        program = pathlib.Path(options.program).parents[1] / "tests/group/log_talk"
        words = [f"{name}={value}" for name, value in settings.items()]
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            [need_program(str(program)), ",".join(endpoints), *words], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
        self.answers = {}
        self.events = []  # of the last follow(): lists of words
        self._told = {}  # the events of each follow(), by its id
        self.logged = []
        self.refused = None
        self._ids = itertools.count(1)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def _read(self):
        for line in self.process.stdout:
            words = line.rstrip("\n").split("\t")
            answer = self.answers.get(words[0])
            if words[0] == "log":
                self.logged.append(words[1])
            elif words[0] == "refused":
                self.refused = words[1]
            elif answer is None:
                self._told[words[0]].append(words)
            else:
                answer.at_s = time.monotonic()
                answer.outcome = words[1]
                if len(words) > 4:
                    answer.revision, answer.epoch, answer.text = int(words[2]), *words[3:5]
                    answer.more = words[5:]
                answer.came.set()

    def sibling(self, index=1):
        """Another log of the same process, with another connection."""
        other = object.__new__(LogTalk)
        other.__dict__ = dict(self.__dict__, index=index, events=[])
        return other

    def begin(self, name, *arguments):
        number = str(next(self._ids))
        self.answers[number] = answer = Answer()
        self._send(number, name, *arguments)
        return answer

    def call(self, name, *arguments, timeout_s=20.0):
        return self.begin(name, *arguments).wait(timeout_s)

    def done(self, name, *arguments):
        """The call must succeed, perhaps at a later try."""
        answer = self.until_known(name, *arguments)
        if name == "epoch" and (answer.outcome, answer.epoch) == ("fenced", arguments[1]):
            return self.done("state", 0)  # A try that was given up has done it.
        require_equal(answer.outcome, "done", f"{name}: {answer}")
        return answer

    def until_known(self, name, *arguments, timeout_s=20.0):
        """Repeats the call while nobody knows what has become of it."""
        deadline = time.monotonic() + timeout_s
        while True:
            answer = self.call(name, *arguments)
            if answer.outcome != "unknown" or time.monotonic() > deadline:
                return answer

    def lead(self, taken=TAKEN, ready=READY, seen=""):
        """Takes the epoch; returns the fence."""
        self.done("epoch", seen, taken)
        self.done("epoch", taken, ready)
        return ready

    def append_all(self, fence, seqs, frame="=1000:x"):
        for seq, answer in [(seq, self.begin("append", fence, seq, frame)) for seq in seqs]:
            if answer.wait().outcome != "done":
                self.done("append", fence, seq, frame)

    def all_seqs(self, seq=0, revision=0):
        """Of the frames from `seq` on."""
        found = []
        while True:
            page = self.done("frames", seq, revision)
            found += seqs_of(page)
            if page.more[0] != "more":
                return found
            seq = found[-1] + 1

    def follow(self, revision, frames=True):
        """Events that come from now on are in `events`."""
        number = "f" + str(next(self._ids))
        self.events = self._told[number] = []
        self._send(number, "follow" if frames else "follow-no-frames", revision)

    def _send(self, number, *words):
        line = "\t".join(map(str, (number, self.index, *words)))
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def told(self, kind):
        """The events of one kind, without their first two words."""
        return [words[2:] for words in list(self.events) if words[1] == kind]

    def end(self):
        """Closes the log; returns the exit code."""
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self._reader.join()
        self.process.stdout.close()
        return self.process.wait()
