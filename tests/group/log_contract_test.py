#!/usr/bin/python3
"""What every replicated log must do (storage/remote_log.h): the same cases for etcd and for the
fake that the tests in C++ use."""

import functools
import sys

import harness
from harness import require, require_equal, wait_until
from harness.etcd import EtcdCluster
from harness.log_talk import NEXT_READY, NEXT_TAKEN, READY, TAKEN, LogTalk, seqs_of


def each_log(test):
    """Runs it with two logs of one group: in memory, then on etcd."""

    @functools.wraps(test)
    def run(options):
        with LogTalk(options, ["fake"]) as log:
            test(log, log.sibling())
        with EtcdCluster() as cluster, LogTalk(options, cluster.endpoints()) as log:
            test(log, log.sibling())

    return run


@each_log
def test_transactions(log, other):
    """every transaction is done under its fence, and refused under another one"""
    require_equal(log.done("state", 0).more, ["", "", "", "0"], "nothing is there")
    require_equal(log.until_known("append", READY, 1, "a").outcome, "fenced", "without epoch")
    first = log.done("epoch", "", TAKEN)
    again = log.until_known("epoch", "", NEXT_TAKEN)
    require_equal((again.outcome, again.epoch), ("fenced", TAKEN), "INIT again")
    require_equal(log.until_known("append", READY, 1, "a").epoch, TAKEN, "append before READY")
    log.done("tidy", TAKEN, 1)
    require_equal(log.until_known("tidy", READY, 1).outcome, "fenced", "tidy before READY")
    require(log.done("epoch", TAKEN, READY).revision > first.revision, "revisions grow")
    log.done("append", READY, 1, "a")
    require_equal(log.done("append", READY, 1, "a").more, ["repeated"], "append again")
    require_equal(log.until_known("append", READY, 1, "b").outcome, "conflict", "another frame")
    log.done("append", READY, 3, "c")
    log.done("beat", READY, "1 1 1 1 5 0")
    require_equal(log.done("state", 0).more, [READY, "1 1 1 1 5 0", "", "3"], "the state")
    require_equal(log.done("frames", 2, 0).more, ["", "3=1:c"], "the frames")
    # TAKE by another process: whatever the first one sends is refused from then on.
    other.done("epoch", READY, NEXT_TAKEN)
    for late in (("append", READY, 2, "b"), ("append", READY, 1, "a"), ("beat", READY, "late"),
                 ("trim", READY, 2, "", "late"), ("tidy", READY, 1), ("tidy", TAKEN, 1),
                 ("epoch", READY, TAKEN)):
        answer = log.until_known(*late)
        require_equal((answer.outcome, answer.epoch), ("fenced", NEXT_TAKEN), str(late))
    log.done("tidy", NEXT_TAKEN, 2)
    require_equal(log.done("state", 0).more[3], "1", "what lay behind the hole is gone")
    other.lead(seen=NEXT_TAKEN, taken=NEXT_READY, ready="resigned")


@each_log
def test_late_tidy(log, _other):
    """a TIDY that arrives after READY deletes nothing"""
    log.append_all(log.lead(), [1, 2])
    require_equal(log.until_known("tidy", TAKEN, 1).outcome, "fenced", "the late TIDY")
    require_equal(log.all_seqs(), [1, 2], "frames")


@each_log
def test_reads(log, other):
    """frames come in pages, at a revision too, and the last one is found behind holes"""
    fence = log.lead()
    log.append_all(fence, range(1, 71), "=65536:x")
    before = log.done("state", 0).revision
    log.append_all(fence, [75, 80, 81, 200], "the tail")
    expected = [*range(1, 71), 75, 80, 81, 200]
    page = log.done("frames", 1, 0)
    require_equal((page.more[0], seqs_of(page)), ("more", list(range(1, 33))), "a page")
    require_equal(page.more[1], "1=65536:" + "x" * 40, "a frame")
    require_equal(other.all_seqs(), expected, "all frames")
    require_equal(log.all_seqs(revision=before), list(range(1, 71)), "at a revision")
    # With a hint and without, at a revision before the hint, and when what was seen is gone.
    for reader in (log, other):
        require_equal(reader.done("state", 0).more[3], "200", "the last frame")
        require_equal(reader.done("state", before).more[3], "70", "the last one then")
    other.done("epoch", fence, NEXT_TAKEN)
    other.done("tidy", NEXT_TAKEN, 71)
    require_equal(log.done("state", 0).more[3], "70", "the last one after TIDY")


@each_log
def test_trim(log, other):
    """TRIM puts its mark, deletes what lies before it and compacts"""
    fence = log.lead()
    log.append_all(fence, [*range(1, 300), *range(320, 605)])
    old = log.done("state", 0).revision
    log.done("trim", fence, 550, "", "the mark")
    require_equal(log.done("state", 0).more[2:], ["the mark", "604"], "the state")
    require_equal(log.all_seqs(), list(range(550, 605)), "what is left")
    require_equal(log.until_known("frames", 1, old).outcome, "compacted", "an old revision")
    require_equal(log.until_known("state", old).outcome, "compacted", "an old state")
    log.done("trim", fence, 550, "", "the mark")
    log.done("trim", fence, 1000, "the mark", "all")
    require_equal(log.done("state", 0).more[2:], ["all", "0"], "an empty log")
    other.done("append", fence, 605, "continues")
    require_equal(log.all_seqs(), [605], "frames")


@each_log
def test_compact(log, other):
    """what was before a revision can be forgotten, without a trim and more than once"""
    fence = log.lead()
    log.append_all(fence, [1, 2, 3])
    other.follow(other.done("state", 0).revision)
    log.done("beat", fence, "first")
    old = log.done("state", 0).revision
    log.done("beat", fence, "second")
    kept = log.done("state", 0).revision
    log.done("beat", fence, "third")
    # It would end a watch that is not at work yet.
    wait_until(lambda: ("third",) in kinds(other.told("beat")), what="the third beat")
    log.done("compact", kept)
    require_equal(log.until_known("state", old).outcome, "compacted", "an old state")
    require_equal(log.done("state", kept).more, [READY, "second", "", "3"], "the state then")
    for again in (kept, old):
        log.done("compact", again)
    require_equal(log.done("state", kept).more[1], "second", "after an older one")
    require_equal(other.done("state", 0).more, [READY, "third", "", "3"], "the state")
    require_equal(log.all_seqs(), [1, 2, 3], "frames")
    log.done("beat", fence, "fourth")
    wait_until(lambda: ("fourth",) in kinds(other.told("beat")), what="the last beat")
    require_equal(other.told("lost"), [], "it has lost nothing")


@each_log
def test_late_trim(log, _other):
    """a TRIM that arrives after the next one moves the mark back no more"""
    fence = log.lead()
    log.append_all(fence, range(1, 31))
    log.done("trim", fence, 10, "", "at 10")
    log.done("trim", fence, 20, "at 10", "at 20")
    for late in (("trim", fence, 10, "", "at 10"), ("trim", fence, 15, "at 10", "at 15")):
        require_equal(log.until_known(*late).outcome, "conflict", str(late))
    require_equal(log.done("state", 0).more[2], "at 20", "the mark")
    require_equal(log.all_seqs(), list(range(20, 31)), "frames")


@each_log
def test_reads_beside_trims(log, other):
    """the newest state is read, however often what is older is forgotten"""
    fence = log.lead()
    mark = ""
    for seq in range(1, 61):
        reads = [other.begin("state", 0) for _ in range(4)]
        log.done("append", fence, seq, "x")
        log.done("trim", fence, seq, mark, f"at {seq}")
        mark = f"at {seq}"
        for read in reads:
            require(read.wait().outcome in ("done", "unknown"), f"a state: {read}")


@each_log
def test_status(log, other):
    """the members say which version they have, how large they are, and whether they lead"""
    member, = log.done("status").more
    require(" leads " in member and " does not answer" not in member, member)
    size, quota = member.split(" leads ")[1].split(" of ")
    require(int(size) > 0 and int(quota) >= 0, member)
    other.call("close")
    require_equal(other.call("status").outcome, "closed", "status")


@each_log
def test_closed(log, other):
    """what is out is answered as closed, and so is what comes later"""
    fence = log.lead()
    log.append_all(fence, [1])
    start = log.done("state", 0).revision
    other.follow(start)
    out = [other.begin("append", fence, seq, "=200000:z") for seq in range(2, 12)]
    other.call("close")
    for answer in out:
        require(answer.wait().outcome in ("done", "closed"), str(answer))
    first = other.events
    told = len(first)
    for late in (("state", 0), ("frames", 1, 0), ("append", fence, 20, "x"), ("beat", fence, "x"),
                 ("tidy", fence, 1), ("trim", fence, 1, "", "x"), ("compact", start),
                 ("epoch", fence, NEXT_TAKEN),
                 ("put", "node", "n1", "run1", "x"), ("drop", "node", "n1"), ("records", "node"),
                 ("status",)):
        require_equal(other.call(*late).outcome, "closed", str(late))
    other.follow(start)
    log.append_all(fence, [30])
    require_equal(other.events, [], "what a follower of a closed log is told")
    require_equal(len(first), told, "what the one before was told")
    require_equal(log.done("state", 0).more[0], READY, "the epoch")


def kinds(events):
    return {tuple(words) for words in events}


@each_log
def test_follow(log, other):
    """a follower hears of all that changes; another one replaces it"""
    start = other.done("state", 0).revision
    fence = log.lead()
    log.append_all(fence, range(1, 41), "=200000:y")
    other.follow(start)
    wait_until(lambda: len(other.told("frame")) == 40, what="the frames from before")
    require(["1", "200000:" + "y" * 40] in other.told("frame"), "a frame")
    wait_until(lambda: sorted(other.told("epoch")) == [[READY], [TAKEN]], what="the epochs")
    log.done("beat", fence, "a beat")
    log.done("put", "node", "n1", "run1", "its record")
    log.done("put", "hold", "n2", "run1", "its hold")
    log.done("drop", "node", "n1")
    paused = log.done("pause", "2nd pause").revision
    require_equal(log.done("state", 0).more[4:], ["2nd pause"], "the pause")
    late = other.until_known("pause", "1st pause")
    require_equal(late.outcome, "conflict", "a pause that comes late")
    resumed = log.done("pause", "3rd pause").revision
    require_equal(log.done("state", 0).more[4:], ["3rd pause"], "the next one")
    log.done("trim", fence, 10, "", "a mark")
    # What was not answered is repeated, and told each time.
    wait_until(lambda: kinds(other.told("beat")) == {("a beat",)}, what="the beat")
    wait_until(lambda: other.told("trim") == [["a mark"]], what="the trim mark")
    wait_until(lambda: ["2nd pause", str(paused)] in other.told("pause") and
               other.told("pause")[-1] == ["3rd pause", str(resumed)], what="the pause")
    require_equal({text for text, _ in other.told("pause")}, {"2nd pause", "3rd pause"}, "pauses")
    wait_until(lambda: kinds(other.told("node")) == {("n1",), ("n1", "its record")}, what="a node")
    wait_until(lambda: kinds(other.told("hold")) == {("n2", "its hold")}, what="its hold")
    # Compactions do not disturb one that is up to date.
    mark = "a mark"
    for seq in range(41, 61):
        log.done("append", fence, seq, "z")
        log.done("trim", fence, seq - 5, mark, f"mark {seq}")
        mark = f"mark {seq}"
    wait_until(lambda: len(other.told("frame")) == 60, what="frames beside compactions")
    require_equal(other.told("lost"), [], "it has lost nothing")
    wait_until(lambda: len(other.told("trim")) == 21, what="the trim marks")
    first = other.events
    other.follow(start)
    wait_until(lambda: other.told("lost"), what="the end of a watch from a compacted revision")
    require("compacted" in other.told("lost")[0][-1], f"why: {other.told('lost')}")
    count = len(first)
    before = log.done("state", 0).revision
    log.done("append", fence, 61, "z")
    other.follow(before)
    wait_until(lambda: other.told("frame") == [["61", "1:z"]], what="the new frame")
    require_equal(len(first), count, "events of the follower that was replaced")


@each_log
def test_follow_without_frames(log, other):
    """a follower may leave out the frames: it hears of all else, from its revision on"""
    other.follow(other.done("state", 0).revision)
    fence = log.lead()
    log.append_all(fence, [1, 2])
    wait_until(lambda: len(other.told("frame")) == 2, what="the frames")
    start = other.done("state", 0).revision
    log.done("append", fence, 3, "x")
    log.done("beat", fence, "early")
    log.done("put", "node", "n1", "run1", "early")
    other.follow(start, frames=False)
    # A trim compacts: the watches before the frames and behind them are at work before it.
    wait_until(lambda: other.told("beat") and other.told("node"), what="what is on both sides")
    log.append_all(fence, range(4, 40))
    log.done("put", "hold", "n2", "run1", "its hold")
    log.done("drop", "node", "n1")
    log.done("pause", "a pause")
    log.done("trim", fence, 2, "", "a mark")
    log.done("epoch", fence, NEXT_TAKEN)
    for kind, told in (("beat", {("early",)}), ("node", {("n1", "early"), ("n1",)}),
                       ("hold", {("n2", "its hold")}), ("trim", {("a mark",)}),
                       ("epoch", {(NEXT_TAKEN,)})):
        wait_until(lambda kind=kind, told=told: kinds(other.told(kind)) == told, what=kind)
    wait_until(lambda: "a pause" in {text for text, _ in other.told("pause")}, what="the pause")
    require_equal((other.told("frame"), other.told("lost")), ([], []), "frames, and what was lost")
    other.follow(start, frames=False)
    wait_until(lambda: other.told("lost"), what="the end of a watch from a compacted revision")
    other.follow(other.done("state", 0).revision)
    log.done("epoch", NEXT_TAKEN, NEXT_READY)
    log.append_all(NEXT_READY, [40])
    wait_until(lambda: [words[0] for words in other.told("frame")] == ["40"], what="a frame again")


@each_log
def test_records(log, other):
    """a record is its owner's, and can be dropped"""
    log.done("put", "node", "n1", "run1", "first")
    log.done("put", "node", "n1", "run1", "second")
    log.done("put", "hold", "n1", "run1", "a hold")
    foreign = other.until_known("put", "node", "n1", "run9", "x")
    require_equal(foreign.outcome, "conflict", "foreign")
    other.done("put", "node", "n2", "run2", "another node")
    require_equal(other.done("records", "node").more, ["n1=second", "n2=another node"], "nodes")
    require_equal(other.done("records", "hold").more, ["n1=a hold"], "holds")
    log.done("drop", "node", "n1")
    log.done("drop", "node", "n1")
    other.done("put", "node", "n1", "run9", "free again")
    require_equal(log.done("records", "node").more, ["n1=free again", "n2=another node"], "nodes")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
