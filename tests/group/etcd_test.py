#!/usr/bin/python3
"""The replicated log on a real etcd: leases, limits, silence, closing. What it shares with the fake
is in log_contract_test.py."""

import contextlib
import itertools
import os
import re
import subprocess
import sys
import time

import harness
from harness import need_program, require, require_equal, wait_until
from harness.etcd import EtcdCluster
from harness.log_talk import TAKEN, LogTalk
from harness.relay import Relay
from harness.servers import LOOPBACK, ROOT


@contextlib.contextmanager
def reached_by_relay():
    """An etcd and the way to it. SIGSTOP would not do: other threads of etcd may still answer until
    its main thread has the signal."""
    with EtcdCluster() as cluster, Relay(cluster.ports[0][0]) as relay:
        yield relay, [f"http://{LOOPBACK}:{relay.port}"]


def test_silent_etcd(options):
    """a watch of an etcd that is silent ends within some seconds, an idle one does not"""
    with reached_by_relay() as (relay, endpoints), LogTalk(options, endpoints) as log:
        log.follow(log.done("state", 0).revision)
        time.sleep(6)  # longer than a silent etcd is waited for
        log.done("epoch", "", TAKEN)
        wait_until(lambda: log.told("epoch"), what="an event after the pause")
        require_equal(log.told("lost"), [], "lost while nothing happened")
        relay.cut()
        wait_until(lambda: log.told("lost"), what="the end of the watch")
        relay.heal()
        require_equal(log.until_known("state", 0).outcome, "done", "etcd continues")


def test_records(options):
    """a record is its owner's, is kept, can be dropped, and vanishes after its process"""
    with EtcdCluster() as cluster, LogTalk(options, cluster.endpoints()) as log:
        with LogTalk(options, cluster.endpoints()) as other:
            other.done("put", "node", "n1", "run1", "first")
            other.done("put", "node", "n1", "run1", "second")
            for answer in [other.begin("put", "node", "n2", "run2", f"v{i}") for i in range(20)]:
                answer.wait()
            other.done("put", "node", "n2", "run2", "v19")
            foreign = log.until_known("put", "node", "n1", "run9", "x")
            require_equal(foreign.outcome, "conflict", "foreign")
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
            cluster.ctl("lease", "revoke", line, check=False)  # It may have ended by itself.
        log.done("put", "hold", "n1", "run1", "another hold")
        require("lease" not in "".join(log.logged), f"what is no failure: {log.logged}")
        wait_until(lambda: log.done("records", "node").more == ["n1=another process"],
                   what="the record is back")


def test_ended_lease(options):
    """a record comes back after its lease has ended, as that of a process that was stopped"""
    with EtcdCluster() as cluster, LogTalk(options, cluster.endpoints()) as log:
        log.done("put", "node", "n1", "run1", "its record")
        heading, lease = cluster.ctl("lease", "list").splitlines()
        require_equal(heading, "found 1 leases", "leases")
        cluster.ctl("lease", "revoke", lease)
        wait_until(lambda: log.done("records", "node").more == ["n1=its record"], what="the record")


def test_dropped_record(options):
    """a record that was dropped does not come back when its lease would have been renewed"""
    with EtcdCluster() as cluster, LogTalk(options, cluster.endpoints()) as log:
        for name in ("n1", "n2"):
            log.done("put", "node", name, "run1", "x")
        log.done("drop", "node", "n1")
        renewed = time.monotonic() + 3  # more than a third of a node's lease
        while time.monotonic() < renewed:
            require_equal(log.done("records", "node").more, ["n2=x"], "records")
            time.sleep(0.1)


def test_large_request(options):
    """a frame beyond etcd's limit is refused in words, and others go on"""
    with EtcdCluster() as cluster, LogTalk(options, cluster.endpoints()) as log:
        fence = log.lead()
        log.done("append", fence, 1, "=1500000:x")
        for size in (1_600_000, 3_000_000):
            def refusal(size=size):
                """Or nothing, if etcd did not answer in time."""
                answer = log.call("append", fence, 2, f"={size}:x")
                require_equal(answer.outcome, "unknown", f"{size} bytes")
                return answer.text if "--max-request-bytes" in answer.text else None
            text = wait_until(refusal, what="a refusal in words")
            require(str(size)[:3] in text, text)
            wait_until(lambda: text in log.logged, what="the refusal's line")
        log.done("append", fence, 2, "small")


def test_shared_etcd(options):
    """an etcd that others use is not compacted"""
    with EtcdCluster() as cluster, LogTalk(options, cluster.endpoints(), compact="no") as log:
        fence = log.lead()
        log.append_all(fence, [1, 2])
        old = log.done("state", 0).revision
        log.done("trim", fence, 3, "", "the mark")
        log.done("compact", log.done("state", 0).revision)
        require_equal(log.all_seqs(), [], "frames")
        require_equal(log.all_seqs(revision=old), [1, 2], "frames of an old revision")


def test_full_etcd(options):
    """an etcd without room says how to cure it"""
    flags = ["--quota-backend-bytes", str(8 << 20)]
    with EtcdCluster(flags=flags) as cluster, LogTalk(options, cluster.endpoints()) as log:
        fence = log.lead()
        seqs = itertools.count(1)
        answers = []

        def refused():
            """etcd counts its file, to which it writes ten times a second."""
            answers.append(log.call("append", fence, next(seqs), "=250000:x"))
            return answers[-1].outcome == "unknown" and "etcdctl defrag" in answers[-1].text
        wait_until(refused, what="a refusal for want of room")
        wait_until(lambda: any("NOSPACE" in line for line in log.logged), what="the alarm's line")
        require_equal(log.logged.count(answers[-1].text), 1, "lines about the refusal")
        require("NOSPACE" in log.done("status").more[0], "the status tells the alarm")


def test_flag_in_its_log(options):
    """what docs/operating.md looks for in etcd's log tells the snapshot-count"""
    document = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    pattern = re.search("grep -oE '(snapshot.*)'", document).group(1)
    version = subprocess.run([need_program("etcd"), "--version"], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
    for logger in ["zap"] + ["capnslog"] * ("Version: 3.4" in version):  # that one's default
        flags = ["--snapshot-count", "4321", "--logger", logger]  # the last of each counts
        with EtcdCluster(flags=flags) as cluster:
            path = os.path.join(cluster.directory.name, "m0.log")
            with open(path, encoding="utf-8") as log:
                told = re.findall(pattern, log.read())
        require(told and told[-1].endswith("4321"), f"{logger}: {told}")


def test_close(options):
    """close() answers what is outstanding, and what comes later"""
    with reached_by_relay() as (relay, endpoints), LogTalk(options, endpoints) as log:
        fence = log.lead()
        log.follow(0)
        relay.cut()
        waiting = [log.begin("append", fence, seq, "x") for seq in range(1, 5)]
        waiting += [log.begin("put", "node", "n1", "r", "v"), log.begin("state", 0)]
        began = time.monotonic()
        require_equal(log.call("close").outcome, "done", "close")
        require(time.monotonic() - began < 3, "close takes no time")
        require_equal({answer.wait().outcome for answer in waiting}, {"closed"}, "the calls")
        for late in (("append", fence, 9, "x"), ("frames", 1, 0), ("records", "node")):
            require_equal(log.call(*late).outcome, "closed", str(late))
        require_equal(log.told("lost"), [], "closing is no loss")
        relay.heal()
        require_equal(log.end(), 0, "its exit code")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
