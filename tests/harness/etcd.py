"""Starts and stops etcd for tests: one member or three, on free ports, in a folder of their own.

    with EtcdCluster(3) as cluster:
        cluster.kill(cluster.wait_for_leader())

Members are ended by their pids. Used by one thread.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

from harness import need_program, wait_until
from harness.servers import LOOPBACK, die_with_parent, steady_port

# What Sluice asks of etcd (docs of `journal etcd`), as far as etcd 3.4 knows it.
FLAGS = ["--heartbeat-interval", "50", "--election-timeout", "500", "--snapshot-count", "1000",
         "--experimental-compaction-batch-limit", "100"]
ROOT_PASSWORD = "the root"


class EtcdCluster:
    """`certificates` (harness.certificates): clients use TLS, and show a certificate. `machines`
    (harness.machines): each member runs on its own. `disks` (harness.disks): each has one."""

    def __init__(self, members=1, flags=(), certificates=None, machines=None, disks=None):
        need_program("etcd")
        self.certificates = certificates
        self.machines = machines
        self.disks = disks
        self.flags = list(flags)
        self.directory = tempfile.TemporaryDirectory(prefix="etcd-test-")
        self.ports = [(steady_port(), steady_port()) for _ in range(members)]
        self.processes = [None] * members
        self.user = None

    def __enter__(self):
        self._start_all()
        return self

    def __exit__(self, *_):
        for member in range(len(self.processes)):
            self.kill(member)
        self.directory.cleanup()

    # -- members ------------------------------------------------------------------------------

    def scheme(self):
        return "https" if self.certificates else "http"

    def host(self, member):
        return self.machines.address(member) if self.machines else LOOPBACK

    def endpoint(self, member):
        return f"{self.scheme()}://{self.host(member)}:{self.ports[member][0]}"

    def endpoints(self):
        return [self.endpoint(member) for member in range(len(self.ports))]

    def start(self, member, alone=False):
        """Starts it, or starts it again with what it has on disk. `alone`: as a cluster."""
        client = self.endpoint(member)
        peers = self._peers()
        peer = peers[member].split("=", 1)[1]
        peers = peers[member:member + 1] if alone else peers
        command = ["etcd", "--name", f"m{member}", "--data-dir", self._data(member),
                   "--listen-client-urls", client, "--advertise-client-urls", client,
                   "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                   "--initial-cluster", ",".join(peers), "--logger", "zap", *FLAGS, *self.flags]
        if self.certificates:
            command += ["--cert-file", self.certificates.certificate("server"),
                        "--key-file", self.certificates.key("server"), "--client-cert-auth",
                        "--trusted-ca-file", self.certificates.certificate("ca")]
        if self.machines:
            command = self.machines.on(member) + command
        with open(self._path(f"m{member}.log"), "ab") as log:
            # pylint: disable=consider-using-with
            self.processes[member] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0,
                preexec_fn=die_with_parent)  # noqa: one thread, as said above

    def set_up_alone(self, member):
        """What an operator does who sets the machine up anew and forgets the other members."""
        self.kill(member)
        shutil.rmtree(self._data(member))
        self.start(member, alone=True)

    def set_up_anew(self):
        """All of it, when all of it is lost: nothing that it held is left."""
        for member in range(len(self.ports)):
            self.kill(member)
            shutil.rmtree(self._data(member))
        self._start_all()

    def lose_power(self):
        """All members end, and their disks keep what was synced."""
        for member in range(len(self.ports)):
            self.disks.cut(member)
        for member in range(len(self.ports)):
            self.kill(member)
            self.disks.heal(member)

    def kill(self, member):
        self._end(member, signal.SIGKILL)

    def stop(self, member):
        """By SIGTERM, as a service manager does: a leader gives the lead away before."""
        self._end(member, signal.SIGTERM)

    def _end(self, member, how):
        process = self.processes[member]
        if process is not None:
            process.send_signal(how)
            process.wait()
            self.processes[member] = None

    def pause(self, member):
        self.processes[member].send_signal(signal.SIGSTOP)

    def resume(self, member):
        self.processes[member].send_signal(signal.SIGCONT)

    def _start_all(self):
        for member in range(len(self.ports)):
            self.start(member)
        self.wait_for_leader()

    def save(self, snapshot):
        self.ctl("snapshot", "save", snapshot, endpoints=self.endpoints()[:1])

    def restore(self, snapshot):
        """Starts all members again with what etcd held at save()."""
        for member in range(len(self.ports)):
            self.kill(member)
        peers = [peer.split("=") for peer in self._peers()]
        for name, peer in peers:
            shutil.rmtree(self._path(name))
            self.ctl("snapshot", "restore", snapshot, "--data-dir", self._path(name), "--name",
                     name, "--initial-cluster", ",".join(self._peers()),
                     "--initial-advertise-peer-urls", peer)
        self._start_all()

    def _peers(self):
        return [f"m{index}=http://{self.host(index)}:{peer}"
                for index, (_, peer) in enumerate(self.ports)]

    def _path(self, name):
        return os.path.join(self.directory.name, name)

    def _data(self, member):
        name = f"m{member}"
        return os.path.join(self.disks.path(member), name) if self.disks else self._path(name)

    # -- etcdctl ------------------------------------------------------------------------------

    def ctl(self, *arguments, endpoints=None, check=True):
        """What etcdctl prints. `get`, `del` and `alarm` are repeated: there may be no leader."""
        command = [need_program("etcdctl"), "--command-timeout", "5s", "--endpoints",
                   ",".join(endpoints or self.endpoints()), *map(str, arguments)]
        if self.certificates:
            command += ["--cacert", self.certificates.certificate("ca"),
                        "--cert", self.certificates.certificate("client"),
                        "--key", self.certificates.key("client")]
        if self.user:
            command += ["--user", self.user]
        deadline = time.monotonic() + 20
        while True:
            done = subprocess.run(command, env=dict(os.environ, ETCDCTL_API="3"), check=False,
                                  capture_output=True, text=True, timeout=30)
            if done.returncode == 0 or not check:
                return done.stdout
            if arguments[0] not in ("get", "del", "alarm") or time.monotonic() >= deadline:
                raise AssertionError(f"etcdctl {arguments}: {done.stderr}")
            time.sleep(0.1)

    def leader(self):
        """The member that leads, of those that run; None: nobody."""
        for member, process in enumerate(self.processes):
            if process is None:
                continue
            text = self.ctl("endpoint", "status", "-w", "json", endpoints=[self.endpoint(member)],
                            check=False)
            told = json.loads(text or "[]")
            status = told[0]["Status"] if told else {}
            if status.get("leader", 0) == status.get("header", {}).get("member_id"):
                return member
        return None

    def wait_for_leader(self):
        """The member that leads, perhaps after an election."""
        found = wait_until(lambda: [member for member in [self.leader()] if member is not None],
                           what="a leader of etcd")
        return found[0]

    def wait_until_healthy(self, member):
        """Until it takes part in what is written."""
        wait_until(lambda: self.ctl("endpoint", "health", "-w", "json", check=False,
                                    endpoints=[self.endpoint(member)]).count('"health":true'),
                   what=f"the member {member} of etcd")

    def enable_auth(self, user, password, prefix):
        """A user that may use what begins with the prefix, and root."""
        self.ctl("user", "add", f"root:{ROOT_PASSWORD}")
        self.ctl("user", "grant-role", "root", "root")
        self.ctl("role", "add", "writer")
        self.ctl("role", "grant-permission", "writer", "readwrite", prefix, "--prefix=true")
        self.ctl("user", "add", f"{user}:{password}")
        self.ctl("user", "grant-role", user, "writer")
        self.ctl("auth", "enable")
        self.user = f"root:{ROOT_PASSWORD}"
