#!/usr/bin/python3
"""The replicated log beside failures of etcd: members that die, stop or cannot be reached, and
users, passwords and certificates."""

import contextlib
import pathlib
import sys
import threading
import time

import harness
from harness import require, require_equal, wait_until
from harness.certificates import Certificates
from harness.etcd import EtcdCluster
from harness.group import Node
from harness.log_talk import NEXT_TAKEN, READY, TAKEN, LogTalk
from harness.relay import Relay
from harness.servers import LOOPBACK

PREFIX = "/sluice/test/g/1/"
NOBODY = "127.0.0.1:1"  # a port that refuses


class Writer:
    """Appends frames one after the other, as the primary does: the same bytes until it knows."""

    def __init__(self, log, fence):
        self.log = log
        self.fence = fence
        self.acknowledged = []
        self.repeated = 0
        self.longest_gap_s = 0.0
        self.failure = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _run(self):
        last_s = time.monotonic()
        seq = 0
        while not self._stop.is_set():
            seq += 1
            answer = self.log.until_known("append", self.fence, seq, f"frame {seq}")
            if answer.outcome != "done":
                self.failure = f"{seq}: {answer}"
                return
            self.repeated += answer.more == ["repeated"]
            self.acknowledged.append(seq)
            self.longest_gap_s = max(self.longest_gap_s, answer.at_s - last_s)
            last_s = answer.at_s

    def goes_on(self):
        """More than before the fault is acknowledged."""
        seen = len(self.acknowledged)
        wait_until(lambda: len(self.acknowledged) > seen + 20 or self.failure, what="new frames")
        require_equal(self.failure, None, "the writer")


def fault_of_leader(options, fault, heal):
    """Both a writer and a follower live through it; returns the longest gap."""
    with EtcdCluster(3) as cluster, LogTalk(options, cluster.endpoints()) as log, \
            LogTalk(options, cluster.endpoints()) as reader:
        fence = log.lead()
        reader.follow(0)
        with Writer(log, fence) as writer:
            writer.goes_on()
            victim = cluster.wait_for_leader()
            fault(cluster, victim)
            writer.goes_on()
            heal(cluster, victim)
            writer.goes_on()
            time.sleep(0.5)
            writer.goes_on()
        require_equal(log.all_seqs(), writer.acknowledged, "acknowledged frames")

        def told():
            return {int(words[0]) for words in reader.told("frame")}
        wait_until(lambda: reader.told("lost") or len(told()) >= len(writer.acknowledged),
                   what="the follower's last frames")
        seen = told()
        if reader.told("lost"):  # The end of a watch is told: what is missing is read.
            seen |= set(reader.all_seqs())
        require_equal(sorted(seen), writer.acknowledged, "what the follower knows")
        print(f"       longest gap {writer.longest_gap_s:.2f} s, {writer.repeated} frames were "
              f"there already, watch {'lost' if reader.told('lost') else 'kept'}")
        require(writer.longest_gap_s < 10, "the gap")


def test_leader_killed(options):
    """SIGKILL of etcd's leader: nothing that was acknowledged is lost, and writes go on"""
    fault_of_leader(options, EtcdCluster.kill, EtcdCluster.start)


def test_leader_stopped(options):
    """SIGSTOP of etcd's leader: nothing that was acknowledged is lost, and writes go on"""
    fault_of_leader(options, EtcdCluster.pause, EtcdCluster.resume)


def test_leader_cut_off(options):
    """etcd's leader cannot be reached from here, but from its followers: these pass writes on"""
    with EtcdCluster(3) as cluster:
        leader = cluster.wait_for_leader()
        with Relay(cluster.ports[leader][0]) as relay:
            endpoints = cluster.endpoints()
            endpoints[leader] = f"http://{LOOPBACK}:{relay.port}"
            with LogTalk(options, endpoints) as log:
                fence = log.lead()
                with Writer(log, fence) as writer:
                    writer.goes_on()
                    relay.cut()
                    writer.goes_on()
                    require_equal(cluster.wait_for_leader(), leader, "the leader")
                    relay.heal()
                    writer.goes_on()
                require_equal(log.all_seqs(), writer.acknowledged, "acknowledged frames")


def test_majority_gone(options):
    """without a majority a frame is unknown and a watch ends; later that frame is committed"""
    with EtcdCluster(3) as cluster, LogTalk(options, cluster.endpoints()) as log:
        fence = log.lead()
        leader = cluster.wait_for_leader()
        log.follow(log.done("state", 0).revision)
        others = [member for member in range(3) if member != leader]
        for member in others:
            cluster.kill(member)
        for _ in range(4):
            require_equal(log.call("append", fence, 1, "x").outcome, "unknown", "append")
        require_equal(log.call("state", 0).outcome, "unknown", "a linearizable read")
        wait_until(lambda: log.told("lost"), what="the end of the watch")
        for member in others:
            cluster.start(member)
        require_equal(log.until_known("append", fence, 1, "x").outcome, "done", "the same frame")
        require_equal(log.all_seqs(), [1], "frames")


def test_fencing_under_load(options):
    """no frame of an old epoch is done after the TAKE, whatever was in flight"""
    with EtcdCluster(3) as cluster:
        seen = ""
        for turn in range(8):
            taken, ready = f"1 c {turn + 1} n{turn} taken", f"1 c {turn + 1} n{turn} ready"
            with LogTalk(options, cluster.endpoints(), group=f"t{turn}") as log, \
                    LogTalk(options, cluster.endpoints(), group=f"t{turn}") as other:
                fence = log.lead(taken, ready, seen)
                frames = [log.begin("append", fence, seq, "=5000:x") for seq in range(1, 81)]
                frames[turn * 5].wait()
                take = other.done("epoch", fence, NEXT_TAKEN)
                for frame in frames:
                    frame.wait()
                done = {seq for seq, frame in enumerate(frames, 1) if frame.outcome == "done"}
                given_up = {seq for seq, frame in enumerate(frames, 1)
                            if frame.outcome == "unknown"}
                late = [frame for frame in frames if frame.outcome == "done" and
                        frame.revision >= take.revision]
                require_equal(late, [], "frames after the TAKE")
                require_equal({frame.outcome for frame in frames} - {"done", "fenced", "unknown"},
                              set(), "outcomes")
                found = set(other.all_seqs(revision=take.revision))
                require(done <= found <= done | given_up, f"{done}, {given_up}: {found}")
                require_equal(set(other.all_seqs()), found, "frames later")


def test_unreachable(options):
    """endpoints that nobody serves cost nothing but words"""
    with EtcdCluster() as cluster:
        with LogTalk(options, [f"http://{NOBODY}", cluster.endpoint(0)]) as log:
            log.lead()
        with LogTalk(options, [f"http://{NOBODY}"]) as log:
            began = time.monotonic()
            answers = [log.call("state", 0) for _ in range(10)]
            took_s = time.monotonic() - began
            require_equal({answer.outcome for answer in answers}, {"unknown"}, "outcomes")
            require(NOBODY in answers[0].text, answers[0])
            require(took_s > 0.15, f"failures do not spin: {took_s}")
    for words in ([], ["127.0.0.1:2379"], ["http://127.0.0.1"], ["http://127.0.0.1:2379/"],
                  ["https://a:1", "http://b:1"]):
        with LogTalk(options, words) as log:
            wait_until(lambda log=log: log.refused, what=f"{words} are refused")


def test_two_clusters(options):
    """members of two etcd clusters are no log: nothing is asked of them while both answer"""
    with EtcdCluster() as one, EtcdCluster() as other, \
            LogTalk(options, one.endpoints() + other.endpoints()) as log:
        wait_until(lambda: "different etcd clusters" in log.call("state", 0).text, what="words")
        require_equal(log.call("epoch", "", TAKEN).outcome, "unknown", "a change")
        wait_until(lambda: any("--initial-cluster" in line for line in log.logged), what="a line")
        other.kill(0)
        log.lead()
        require(READY in one.ctl("get", PREFIX, "--prefix"), "the epoch of the one that is left")


def left_out(options, leads):
    with EtcdCluster(3) as cluster, LogTalk(options, cluster.endpoints()) as log:
        fence = log.lead()

        def lines():
            return [line for line in log.logged if "left out" in line]
        time.sleep(2)  # By then the cluster is found, whatever was silent at first.
        with Writer(log, fence) as writer:
            writer.goes_on()
            leader = cluster.wait_for_leader()
            victim = leader if leads else (leader + 1) % 3
            cluster.set_up_alone(victim)
            wait_until(lines, what="a line of the log")
            writer.goes_on()

            def follows():
                """False: the watch has met an election, which ends it."""
                log.follow(log.done("state", 0).revision)
                wait_until(lambda: log.told("frame") or log.told("lost"), what="a frame")
                return log.told("frame")
            wait_until(follows, what="a watch")
            writer.goes_on()
            status = log.done("status").more[victim]
        require_equal(status, f"{cluster.endpoint(victim)} does not answer", "the one left out")
        require_equal(len(lines()), 1, "lines about it")
        require(cluster.endpoint(victim) in lines()[0], lines())
        require_equal(log.all_seqs(), writer.acknowledged, "acknowledged frames")
        alone = cluster.ctl("get", PREFIX, "--prefix", endpoints=[cluster.endpoint(victim)])
        require_equal(alone, "", "what it was asked to keep")


def test_member_set_up_anew(options):
    """a member that comes back as a cluster of its own is left out, and the others go on"""
    left_out(options, leads=False)


def test_leader_set_up_anew(options):
    """the same, of the member that led"""
    left_out(options, leads=True)


def test_authentication(options):
    """tokens expire and users change; a wrong password is said in words"""
    with EtcdCluster(flags=["--auth-token-ttl", "1"]) as cluster:
        cluster.enable_auth("sluice", "secret", PREFIX)
        with LogTalk(options, cluster.endpoints(), user="sluice", password="secret") as log:
            fence = log.lead()
            log.follow(log.done("state", 0).revision)
            for seq in range(1, 4):
                log.done("append", fence, seq, "x")
                time.sleep(2.5)  # longer than a token lives
            # An older revision of the users than the token's: etcd refuses that as well.
            cluster.ctl("role", "add", "unused")
            log.done("append", fence, 4, "x")
            log.append_all(fence, range(5, 40), "x")
            wait_until(lambda: len(log.told("frame")) == 39, what="the frames")
            log.done("put", "node", "n1", "r1", "v")
        for user, password in (("sluice", "wrong"), ("nobody", "secret")):
            with LogTalk(options, cluster.endpoints(), user=user, password=password) as log:
                wait_until(lambda log=log, user=user:
                           f"refuses the user {user}" in log.call("state", 0).text, what=user)
        with LogTalk(options, cluster.endpoints()) as log:
            wait_until(lambda: "does not allow" in log.call("state", 0).text, what="no user")
        with LogTalk(options, cluster.endpoints(), user="sluice", password="secret",
                     group="9") as log:
            wait_until(lambda: "does not allow" in log.call("state", 0).text, what="another group")
    with EtcdCluster() as cluster, \
            LogTalk(options, cluster.endpoints(), user="sluice", password="any") as log:
        log.lead()  # etcd asks for no user


def test_changed_password(options):
    """a server reads the file again when etcd refuses the password that it held"""
    with EtcdCluster() as cluster, harness.scratch() as folder:
        cluster.enable_auth("sluice", "secret", "/sluice/")
        path = pathlib.Path(folder, "password")
        path.write_text("secret\n", encoding="ascii")
        node = Node(options.program, "n1", cluster.endpoints(),
                    {"etcd-user": "sluice", "etcd-password-file": path})
        with contextlib.closing(node):
            wait_until(node.start().leads, what="a primary")
            cluster.ctl("user", "delete", "sluice")
            cluster.ctl("user", "add", "sluice:other")
            cluster.ctl("user", "grant-role", "sluice", "writer")
            wait_until(lambda: "refuses the user sluice or the password" in
                       node.told()["sluice_group_waits_for"], what="the refusal")
            path.unlink()
            wait_until(lambda: f"first line of {path}" in node.log_tail(), what="no file")
            path.write_text("other\n", encoding="ascii")
            wait_until(lambda: not node.told()["sluice_group_waits_for"], what="etcd again")
            with node.connect() as connection:
                require_equal(connection.call("SET", "k", "v").value, b"OK", "a write")
            require_equal(node.exits, [], "exits")
            node.kill()


def test_tls(options):
    """etcd's certificate is checked, and ours shown"""
    with harness.scratch() as folder:
        made = Certificates(folder)
        with EtcdCluster(certificates=made) as cluster:
            ours = {"cert": made.certificate("client"), "key": made.key("client")}
            with LogTalk(options, cluster.endpoints(), ca=made.certificate("ca"), **ours) as log:
                fence = log.lead()
                log.done("append", fence, 1, "=250000:x")
            for settings in ({"ca": made.certificate("other"), **ours},
                             {"ca": made.certificate("ca")},
                             {"ca": made.certificate("ca"), "cert": made.certificate("stranger"),
                              "key": made.key("stranger")}):
                with LogTalk(options, cluster.endpoints(), **settings) as log:
                    answer = log.call("append", READY, 2, "x")
                    require_equal(answer.outcome, "unknown", str(settings))
                    require(cluster.endpoint(0) in answer.text, answer)
            plain = cluster.endpoint(0).replace("https", "http")
            with LogTalk(options, [plain]) as log:
                require_equal(log.call("epoch", TAKEN, READY).outcome, "unknown", "without TLS")
            for settings in ({"ca": folder + "/missing"}, {"cert": made.certificate("client")},
                             {"ca": __file__}):
                with LogTalk(options, cluster.endpoints(), **settings) as log:
                    wait_until(lambda log=log: log.refused, what=f"{settings} are refused")


def test_renewed_certificates(options):
    """Connections to etcd use what the files of certificates contain now"""
    with harness.scratch() as folder:
        made = Certificates(folder)
        files = {name: pathlib.Path(folder, f"shown.{name}") for name in ("ca", "cert", "key")}

        def renew(authority, name):
            for file, source in zip(files.values(), (made.certificate(authority),
                                                     made.certificate(name), made.key(name))):
                new = file.with_suffix(".new")
                new.write_bytes(pathlib.Path(source).read_bytes())
                new.rename(file)

        renew("other", "stranger")
        with EtcdCluster(certificates=made) as cluster:
            with LogTalk(options, cluster.endpoints(), **files) as log:
                require_equal(log.call("epoch", TAKEN, READY).outcome, "unknown", "another's")
                renew("ca", "client")
                wait_until(lambda: log.call("epoch", TAKEN, READY).outcome != "unknown",
                           what="the renewed files")
                # A file that cannot be read any more is told once, and its return too.
                def told():
                    return [line for line in log.logged if "be read" in line]
                files["cert"].write_text("half a certificate")
                for _ in range(2):
                    log.done("status")  # with what was read before
                wait_until(told, what="a warning")
                renew("ca", "client")
                log.done("status")
                wait_until(lambda: len(told()) > 1, what="the end of the warning")
                require(len(told()) == 2 and
                        told()[0].startswith(f"{files['cert']} cannot be read as PEM") and
                        told()[1].endswith("can be read again"), told())


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
