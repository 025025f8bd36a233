#!/usr/bin/python3
"""The replicated log on a real etcd: each transaction with each of its outcomes, fencing, reads,
what is followed, leases, and what is wrong in words."""

import sys
import time

import harness
from harness import require, require_equal, wait_until
from harness.etcd import EtcdCluster
from harness.log_talk import LogTalk

TAKEN, READY = "1 c 1 n1 r1 taken - 0", "1 c 1 n1 r1 ready - 0"
NEXT_TAKEN, NEXT_READY = "1 c 2 n2 r2 taken - 0", "1 c 2 n2 r2 ready - 0"
PREFIX = "/sluice/test/g/1/"
PAGE = 32


def lead(log, taken=TAKEN, ready=READY, seen=""):
    """Takes the epoch; returns the fence."""
    log.done("epoch", seen, taken)
    log.done("epoch", taken, ready)
    return ready


def append_all(log, fence, seqs, frame="=1000:x"):
    for answer in [log.begin("append", fence, seq, frame) for seq in seqs]:
        require_equal(answer.wait().outcome, "done", repr(answer))


def seqs_of(answer):
    return [int(frame.split("=")[0]) for frame in answer.more[1:]]


def all_seqs(log, seq=0, revision=0):
    found = []
    while True:
        page = log.done("frames", seq, revision)
        found += seqs_of(page)
        if page.more[0] != "more":
            return found
        seq = found[-1] + 1


def test_transactions(options):
    """every transaction is done under its fence, and refused under another one"""
    with EtcdCluster() as cluster, LogTalk(options, cluster.endpoints()) as log:
        require_equal(log.done("state", 0).more, ["", "", "", "0"], "nothing is there")
        require_equal(log.call("append", READY, 1, "a").outcome, "fenced", "append without epoch")
        first = log.done("epoch", "", TAKEN)
        again = log.call("epoch", "", NEXT_TAKEN)
        require_equal((again.outcome, again.epoch), ("fenced", TAKEN), "INIT again")
        require_equal(log.call("append", READY, 1, "a").epoch, TAKEN, "append before READY")
        log.done("tidy", TAKEN, 1)
        require_equal(log.call("tidy", READY, 1).outcome, "fenced", "tidy before READY")
        require(log.done("epoch", TAKEN, READY).revision > first.revision, "revisions grow")
        require_equal(log.done("append", READY, 1, "a").more, [""], "append")
        require_equal(log.done("append", READY, 1, "a").more, ["repeated"], "append again")
        require_equal(log.call("append", READY, 1, "b").outcome, "conflict", "another frame")
        log.done("append", READY, 3, "c")
        log.done("beat", READY, "1 1 1 1 5 0")
        require_equal(log.done("state", 0).more, [READY, "1 1 1 1 5 0", "", "3"], "the state")
        require_equal(log.done("frames", 2, 0).more, ["", "3=1:c"], "the frames")
        # TAKE by another process: whatever the first one sends is refused from then on.
        log.done("epoch", READY, NEXT_TAKEN)
        for late in (("append", READY, 2, "b"), ("append", READY, 1, "a"), ("beat", READY, "late"),
                     ("trim", READY, 2, "late"), ("tidy", READY, 1), ("tidy", TAKEN, 1),
                     ("epoch", READY, TAKEN)):
            answer = log.call(*late)
            require_equal((answer.outcome, answer.epoch), ("fenced", NEXT_TAKEN), str(late))
        log.done("tidy", NEXT_TAKEN, 2)
        require_equal(log.done("state", 0).more[3], "1", "what lay behind the hole is gone")
        lead(log, seen=NEXT_TAKEN, taken=NEXT_READY, ready="resigned")


def test_late_tidy(options):
    """a TIDY that arrives after READY deletes nothing"""
    with EtcdCluster() as cluster, LogTalk(options, cluster.endpoints()) as log:
        append_all(log, lead(log), [1, 2])
        require_equal(log.call("tidy", TAKEN, 1).outcome, "fenced", "the late TIDY")
        require_equal(all_seqs(log), [1, 2], "frames")


def test_reads(options):
    """frames come in pages, at a revision too, and the last one is found behind holes"""
    with EtcdCluster() as cluster, LogTalk(options, cluster.endpoints()) as log, \
            LogTalk(options, cluster.endpoints()) as other:
        fence = lead(log)
        append_all(log, fence, range(1, 71), "=65536:x")
        before = log.done("state", 0).revision
        append_all(log, fence, [75, 80, 81, 200], "the tail")
        expected = [*range(1, 71), 75, 80, 81, 200]
        page = log.done("frames", 1, 0)
        require_equal((page.more[0], seqs_of(page)), ("more", list(range(1, PAGE + 1))), "a page")
        require_equal(page.more[1], "1=65536:" + "x" * 40, "a frame")
        require_equal(all_seqs(other), expected, "all frames")
        require_equal(all_seqs(log, revision=before), list(range(1, 71)), "at a revision")
        # With a hint and without, at a revision before the hint, and when what was seen is gone.
        for reader in (log, other):
            require_equal(reader.done("state", 0).more[3], "200", "the last frame")
            require_equal(reader.done("state", before).more[3], "70", "the last one then")
        other.done("epoch", fence, NEXT_TAKEN)
        other.done("tidy", NEXT_TAKEN, 71)
        require_equal(log.done("state", 0).more[3], "70", "the last one after TIDY")


def test_trim(options):
    """TRIM puts its mark, deletes what lies before it and compacts"""
    with EtcdCluster() as cluster, LogTalk(options, cluster.endpoints()) as log:
        fence = lead(log)
        append_all(log, fence, [*range(1, 300), *range(320, 605)])
        old = log.done("state", 0).revision
        log.done("trim", fence, 550, "the mark")
        require_equal(log.done("state", 0).more[2:], ["the mark", "604"], "the state")
        require_equal(all_seqs(log), list(range(550, 605)), "what is left")
        require_equal(log.call("frames", 1, old).outcome, "compacted", "an old revision")
        require_equal(log.call("state", old).outcome, "compacted", "an old state")
        log.done("trim", fence, 550, "the mark")
        log.done("trim", fence, 1000, "all")
        require_equal(log.done("state", 0).more[2:], ["all", "0"], "an empty log")
        log.done("append", fence, 605, "continues")
        with LogTalk(options, cluster.endpoints(), compact="no") as shared:
            old = log.done("state", 0).revision
            shared.done("trim", fence, 606, "not compacted")
            require_equal(shared.done("frames", 1, old).more, ["", "605=9:continues"], "old frames")


def test_follow(options):
    """a follower hears of all that changes; another one replaces it"""
    with EtcdCluster() as cluster, LogTalk(options, cluster.endpoints()) as log, \
            LogTalk(options, cluster.endpoints()) as reader:
        start = reader.done("state", 0).revision
        fence = lead(log)
        append_all(log, fence, range(1, 41), "=200000:y")
        reader.follow(start)
        wait_until(lambda: len(reader.told("frame")) == 40, what="the frames from before")
        require(["1", "200000:" + "y" * 40] in reader.told("frame"), "a frame")
        require_equal(reader.told("epoch"), [[TAKEN], [READY]], "epochs")
        log.done("beat", fence, "a beat")
        log.done("put", "node", "n1", "run1", "its record")
        log.done("put", "hold", "n2", "run1", "its hold")
        log.done("drop", "node", "n1")
        log.done("trim", fence, 10, "a mark")
        wait_until(lambda: reader.told("trim"), what="the trim mark")
        wait_until(lambda: len(reader.told("node")) == 2, what="the records")
        require_equal(reader.told("beat"), [["a beat"]], "beats")
        require_equal(reader.told("node"), [["n1", "its record"], ["n1"]], "of the node")
        require_equal(reader.told("hold"), [["n2", "its hold"]], "of the hold")
        # Compactions do not disturb one that is up to date.
        for seq in range(41, 61):
            log.done("append", fence, seq, "z")
            log.done("trim", fence, seq - 5, f"mark {seq}")
        wait_until(lambda: len(reader.told("frame")) == 60, what="frames beside compactions")
        require_equal(reader.told("lost"), [], "it has lost nothing")
        first = reader.events
        reader.follow(start)
        wait_until(lambda: reader.told("lost"), what="the end of a watch from a compacted revision")
        require("compacted" in reader.told("lost")[0][-1], f"why: {reader.told('lost')}")
        count = len(first)
        log.done("append", fence, 61, "z")
        reader.follow(log.done("state", 0).revision - 1)
        wait_until(lambda: reader.told("frame"), what="the new frame")
        require_equal(len(first), count, "events of the follower that was replaced")


def test_silent_etcd(options):
    """a watch of an etcd that has stopped ends within some seconds, an idle one does not"""
    with EtcdCluster() as cluster, LogTalk(options, cluster.endpoints()) as log:
        log.follow(log.done("state", 0).revision)
        time.sleep(6)  # longer than a silent etcd is waited for
        log.done("epoch", "", TAKEN)
        wait_until(lambda: log.told("epoch"), what="an event after the pause")
        require_equal(log.told("lost"), [], "lost while nothing happened")
        cluster.pause(0)
        wait_until(lambda: log.told("lost"), what="the end of the watch")
        cluster.resume(0)
        require_equal(log.until_known("state", 0).outcome, "done", "etcd continues")


def test_records(options):
    """a record is its owner's, is kept, can be dropped, and vanishes after its process"""
    with EtcdCluster() as cluster, LogTalk(options, cluster.endpoints()) as log:
        with LogTalk(options, cluster.endpoints()) as other:
            other.done("put", "node", "n1", "run1", "first")
            other.done("put", "node", "n1", "run1", "second")
            for answer in [other.begin("put", "node", "n2", "run2", f"v{i}") for i in range(20)]:
                require_equal(answer.wait().outcome, "done", "puts at once")
            require_equal(log.call("put", "node", "n1", "run9", "x").outcome, "conflict", "foreign")
            require_equal(log.done("records", "node").more, ["n1=second", "n2=v19"], "records")
            # The same process by another connection: its record, whatever it holds.
            log.done("put", "node", "n1", "run1", "third")
            log.done("put", "hold", "n1", "run1", "h")
            time.sleep(7)  # longer than the lease
            require_equal(log.done("records", "node").more, ["n1=third", "n2=v19"], "kept")
            other.process.kill()
        wait_until(lambda: log.done("records", "node").more == ["n1=third"], what="n2 is gone")
        log.done("drop", "node", "n1")
        log.done("drop", "node", "n1")
        require_equal(log.done("records", "node").more, [], "dropped")
        log.done("put", "node", "n1", "run9", "another process")
        require_equal(log.done("records", "hold").more, ["n1=h"], "holds")
        # The lease is lost: the record comes back by itself.
        for line in cluster.ctl("lease", "list").splitlines()[1:]:
            cluster.ctl("lease", "revoke", line)
        wait_until(lambda: log.done("records", "node").more == ["n1=another process"],
                   what="the record is back")


def test_large_request(options):
    """a frame beyond etcd's limit is refused in words, and others go on"""
    with EtcdCluster() as cluster, LogTalk(options, cluster.endpoints()) as log:
        fence = lead(log)
        log.done("append", fence, 1, "=1500000:x")
        for size in (1_600_000, 3_000_000):
            answer = log.call("append", fence, 2, f"={size}:x")
            require_equal(answer.outcome, "unknown", f"{size} bytes")
            require("--max-request-bytes" in answer.text and str(size)[:3] in answer.text, answer)
        log.done("append", fence, 2, "small")


def test_full_etcd(options):
    """an etcd without room says how to cure it"""
    flags = ["--quota-backend-bytes", str(8 << 20)]
    with EtcdCluster(flags=flags) as cluster, LogTalk(options, cluster.endpoints()) as log:
        fence = lead(log)
        answers = [log.call("append", fence, seq, "=250000:x") for seq in range(1, 60)]
        full = [answer for answer in answers if answer.outcome == "unknown"]
        require(full and "etcdctl defrag" in full[-1].text, f"{answers[-1]}")
        wait_until(lambda: any("NOSPACE" in line for line in log.logged), what="the alarm's line")


def test_close(options):
    """close() answers what is outstanding, and what comes later"""
    with EtcdCluster() as cluster, LogTalk(options, cluster.endpoints()) as log:
        fence = lead(log)
        log.follow(0)
        cluster.pause(0)
        waiting = [log.begin("append", fence, seq, "x") for seq in range(1, 5)]
        waiting += [log.begin("put", "node", "n1", "r", "v"), log.begin("state", 0)]
        time.sleep(0.1)
        began = time.monotonic()
        require_equal(log.call("close").outcome, "done", "close")
        require(time.monotonic() - began < 1, "close takes no time")
        require_equal({answer.wait().outcome for answer in waiting}, {"closed"}, "the calls")
        for late in (("append", fence, 9, "x"), ("frames", 1, 0), ("records", "node")):
            require_equal(log.call(*late).outcome, "closed", str(late))
        require_equal(log.told("lost"), [], "closing is no loss")
        cluster.resume(0)
        require_equal(log.end(), 0, "its exit code")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
