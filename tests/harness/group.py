"""A group of nodes on an etcd cluster of its own, each node under a supervisor.

    with Group(options.program) as group:
        group.primary().crash()          # the supervisor starts it again
        group.wait_for_primary()

Everything runs in temporary directories on free loopback ports, and is ended by its pid. A node
that exits as a service manager's restart rule wants it (75, 76, SIGKILL) is started again after
100 ms. Used by one thread.
"""

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time

from harness import info, require, require_equal, wait_until
from harness.etcd import EtcdCluster
from harness.relay import Relay
from harness.resp import Connection
from harness.servers import LOOPBACK, Server, ServerError, die_with_parent, steady_port

FENCED = 76  # the exit code of a primary whose epoch another node has taken
RESTARTED = (75, FENCED, -signal.SIGKILL)
RESTART_S = 0.1
TRIM_KEY = "/sluice/main/g/1/trim"
SENTINEL_NAME = "mymaster"
PATIENT = {"failover-timeout": 3000}  # where no node is to take over beside a pause of the machine
LOOK_S = 0.3  # how long an answer about a node's role may take
ASK_S = 0.1   # and one to a client that looks for the primary


def has_caught_up(facts):
    """By a node's INFO. One that leads also answers requests on data: its first beat has reached
    etcd."""
    role = facts.get("sluice_group_role")
    return role == "standby" or (role == "primary" and int(facts["sluice_group_lease_ms"]) > 0)


def known_processes(facts):
    """{node: run id} of the processes that have caught up, as far as a node's INFO says so."""
    told = [dict(part.split("=", 1) for part in text.split(","))
            for name, text in facts.items() if name.startswith("sluice_group_member")]
    return {member["name"]: member["run_id"] for member in told if member["starting"] == "0"}


class Node(Server):
    """start() returns when it answers; start(wait=False) at once."""

    def __init__(self, program, name, endpoints, directives=None, environment=None):
        self.sentinel_port = steady_port()
        super().__init__(program, {
            "port": steady_port(), "sentinel-port": self.sentinel_port, "appendonly": "yes",
            "save": "", "journal": "etcd", "etcd-endpoints": " ".join(endpoints),
            "node-name": name, **(directives or {})}, kind="sluice", environment=environment)
        self.port = self.directives["port"]
        self.name = name
        self.exits = []       # codes, oldest first
        self.frozen = False
        self.restarts = True  # by the supervisor
        self._lock = threading.Lock()   # of _wanted together with a start
        self._wanted = threading.Event()
        self._supervisor = None
        self._on = []         # what begins the command line: on another machine
        self.arguments = []   # which end it

    def move(self, machines, index):
        """Onto a machine of its own, whose ports clients reach by those of relays here."""
        address = machines.address(index)
        port, sentinel = [Relay(port, address) for port in (self.port, self.sentinel_port)]
        self.directives |= {"bind": address, "protected-mode": "no",
                            "replica-announce-ip": LOOPBACK, "replica-announce-port": port.port}
        self.port, self.sentinel_port = port.port, sentinel.port
        self._on = machines.on(index)
        return [port, sentinel]

    def _command_line(self):
        return self._on + super()._command_line() + self.arguments

    # -- Life ---------------------------------------------------------------------------------

    def start(self, wait=True):
        if self._supervisor is None:
            self._wanted.set()
            self._supervisor = threading.Thread(target=self._supervise, daemon=True)
            self._supervisor.start()
        if wait:
            wait_until(lambda: self.answers_ping() or self._supervisor_ended(),
                       self.start_timeout_s, f"an answer of {self.name}")
            if self._supervisor_ended():
                raise ServerError(f"{self.name} exited: {self.exits}\n{self.log_tail()}",
                                  self.exits[-1])
        return self

    def crash(self):
        """SIGKILL; it starts again."""
        self.frozen = False
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()

    def kill(self):
        """SIGKILL; it stays away."""
        return self._end(signal.SIGKILL)

    def stop(self, timeout_s=10.0):
        """SIGTERM; it stays away. Returns the exit code."""
        self.thaw()
        return self._end(signal.SIGTERM, timeout_s)

    def freeze(self):
        self.frozen = True
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        if self.frozen:
            self.frozen = False
            self.process.send_signal(signal.SIGCONT)

    def wait_for_exit(self, count, timeout_s=20.0):
        """Until it has exited so often; returns the last code."""
        wait_until(lambda: len(self.exits) >= count, timeout_s, f"exit {count} of {self.name}")
        return self.exits[count - 1]

    def lead(self):
        """Its next start begins a group with its data. Returns what sluice-journal says."""
        tool = os.path.join(os.path.dirname(self.program), "sluice-journal")
        return subprocess.run([tool, "lead", self.directory], capture_output=True, text=True,
                              check=True, timeout=60).stdout

    def start_loading(self):
        """Returns when a copy of another node's data has begun to arrive."""
        self.start(wait=False)
        incoming = os.path.join(self.directory, "incoming-copy", "staging")
        wait_until(lambda: os.path.isdir(incoming), what="a copy")

    def _end(self, how, timeout_s=10.0):
        with self._lock:
            self._wanted.clear()
            if self._supervisor is None:
                return None
            if self.process is not None:
                self.process.send_signal(how)
        self._supervisor.join(timeout_s)
        if self._supervisor.is_alive():
            self.process.kill()
            self._supervisor.join()
        self._supervisor = None
        return self.exits[-1]

    def _supervise(self):
        while True:
            with self._lock:
                if not self._wanted.is_set():
                    return
                self._spawn()
            code = self.process.wait()
            self.exits.append(code)
            if code not in RESTARTED or not self._wanted.is_set() or not self.restarts:
                return
            time.sleep(RESTART_S)

    def _supervisor_ended(self):
        return not self._supervisor.is_alive()

    def _child_options(self):
        # The supervisor lives as long. Ctrl-C is for the test.
        return {"preexec_fn": die_with_parent, "process_group": 0}

    # -- What it says -------------------------------------------------------------------------

    def facts(self, section="replication"):
        """INFO; empty if it does not answer, as a frozen one."""
        if self.frozen:
            return {}
        try:
            with self.connect(LOOK_S) as connection:
                return info(connection, section)
        except OSError:
            return {}

    def told(self, section="replication"):
        """INFO of a node that answers, if only after a while."""
        return wait_until(lambda: self.facts(section), what=f"INFO of {self.name}")

    def role(self):
        """In the group; empty: no answer."""
        return self.facts().get("sluice_group_role", "")

    def leads(self):
        return self.role() == "primary"

    def is_whole(self):
        return has_caught_up(self.facts())

    def lsn(self):
        """Of the last unit that was executed or applied; INFO replication's may be 0.1 s old."""
        return int(self.facts("persistence").get("sluice_journal_last_lsn", -1))

    def digest(self):
        """Of its state; None: no answer."""
        try:
            with self.connect() as connection:
                reply = connection.call("DEBUG", "DIGEST")
        except OSError:
            return None
        return None if reply.is_error else reply.value


class Group:
    """`directives`: of all nodes; `of_node()`: more for each; `environments`: one for each.
    `relayed`: the nodes reach etcd by relays, so that cut() can separate one from it. `machines`
    (harness.machines): each node and each member of etcd runs on one. `etcd`: other settings of
    an EtcdCluster."""

    def __init__(self, program, nodes=2, directives=None, of_node=dict, relayed=False,
                 environments=(), machines=None, etcd=None):
        self.program = program
        self.of_node = of_node
        self.directives = {"enable-debug-command": "yes", **(directives or {})}
        self.etcd = EtcdCluster(3, machines=machines, **(etcd or {}))
        self.machines = machines
        self.environments = environments
        self.count = nodes
        self.relayed = relayed
        self.relays = {}
        self.nodes = []

    def __enter__(self):
        try:
            self.etcd.__enter__()
            for _ in range(self.count):
                self.add_node().start(wait=False)
            for node in self.nodes:
                node.start()
            for node in self.nodes:
                wait_until(lambda at=node: self._names_primary(at),
                           what=f"the primary by the Sentinel of {node.name}")
            wait_until(self.is_whole, what="all nodes")
            for node in self.nodes:
                node.exits.clear()   # beside a pause of the machine one may be fenced at once
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, failure=None, *_):
        for node in self.nodes:
            if failure is not None:
                print(f"exits {node.exits}, the log of {node.name}:\n{node.log_tail(40)}")
            node.kill()
            node.close()
        for relays in self.relays.values():
            for relay in relays:
                relay.close()
        self.etcd.__exit__()

    def add_node(self):
        """A node with an empty directory, which the caller starts."""
        index = len(self.nodes)
        name = f"n{index + 1}"
        endpoints = self.etcd.endpoints()
        if self.relayed:
            self.relays[name] = [Relay(client) for client, _ in self.etcd.ports]
            endpoints = [f"http://{LOOPBACK}:{relay.port}" for relay in self.relays[name]]
        node = Node(self.program, name, endpoints, {**self.directives, **self.of_node()},
                    self.environments[index] if self.environments else None)
        if self.machines:
            self.relays[name] = node.move(self.machines, index)
        self.nodes.append(node)
        return node

    def cut(self, node):
        """It reaches no etcd any more, and is not told."""
        for relay in self.relays[node.name]:
            relay.cut()

    def heal(self, node):
        for relay in self.relays[node.name]:
            relay.heal()

    # -- Who leads ----------------------------------------------------------------------------

    def _leaders(self):
        """(epoch, node) of those that say that they lead."""
        return [(int(facts["sluice_group_epoch"]), node) for node in self.nodes
                if (facts := node.facts()).get("sluice_group_role") == "primary"]

    def _newest(self):
        return max(self._leaders(), key=lambda pair: pair[0], default=(0, None))

    def leadership(self):
        """(epoch, node) of the newest primary, which may be busy for a while."""
        return wait_until(lambda: pair if (pair := self._newest())[0] else None, what="a primary")

    def primary(self):
        return self.leadership()[1]

    def wait_for_primary(self, after_epoch=0, timeout_s=20.0):
        """A primary of a later epoch."""
        def found():
            epoch, node = self._newest()
            return node if epoch > after_epoch else None
        return wait_until(found, timeout_s, "a primary")

    def is_whole(self):
        """All have caught up, and each knows it of the processes that run now, so FAILOVER works.
        After a restart the others know the process before, and then one that is starting."""
        told = [node.facts() for node in self.nodes]
        names = {node.name for node in self.nodes}
        known = [{name: run_id for name, run_id in known_processes(facts).items() if name in names}
                 for facts in told]
        return all(map(has_caught_up, told)) and all(
            len(each) == len(names) and each == known[0] for each in known)

    def standbys(self):
        primary = self.primary()
        return [node for node in self.nodes if node is not primary]

    def standby(self):
        return self.standbys()[0]

    def wait_in_sync(self, timeout_s=20.0):
        """Until every node has the same lsn; then each has the same state. Returns the lsn."""
        def equal():
            if not self.is_whole():
                return None
            before = {node.lsn() for node in self.nodes}
            if len(before) != 1 or -1 in before:
                return None
            digests = {node.digest() for node in self.nodes}
            # Timers of the primary may have changed something meanwhile, or a node may be away.
            if None in digests or {node.lsn() for node in self.nodes} != before:
                return None
            require_equal(len(digests), 1, f"states at lsn {before}")
            return before
        return wait_until(equal, timeout_s, "nodes in sync").pop()

    def trim(self, nodes):
        """Until the log begins behind what was written, by checkpoints of these nodes."""
        before = self.etcd.ctl("get", TRIM_KEY)
        for node in nodes:
            with node.connect() as connection:
                connection.call("BGSAVE")
        wait_until(lambda: self.etcd.ctl("get", TRIM_KEY) != before, 20.0, "a trimmed log")

    def empty(self):
        """All nodes are there, and no key."""
        def flush():
            """Without etcd, also while that chooses its leader again, it is refused."""
            with self.primary().connect() as connection:
                reply = connection.call("FLUSHALL")
            require(reply.raw == b"+OK\r\n" or b"NOREPLICAS" in reply.raw, f"{reply.raw}")
            return not reply.is_error
        wait_until(self.is_whole, what="all nodes")
        wait_until(flush, what="FLUSHALL")
        self.wait_in_sync()
        for node in self.nodes:
            node.exits.clear()

    # -- Clients ------------------------------------------------------------------------------

    def sentinels(self):
        return [(LOOPBACK, node.sentinel_port) for node in self.nodes]

    def asks_sentinel(self, port, timeout_s=20.0):
        """The primary's port by one node's Sentinel; None: it does not know."""
        with Connection(LOOPBACK, port, timeout_s) as connection:
            told = connection.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SENTINEL_NAME).value
        return int(told[1]) if isinstance(told, list) else None

    def _names_primary(self, node):
        """Whether its Sentinel does."""
        with contextlib.suppress(OSError):
            return self.asks_sentinel(node.sentinel_port) == self.primary().port
        return False

    def find_primary(self):
        """The port of the primary as a client finds it: by any Sentinel, confirmed by ROLE. None:
        not now."""
        for node in self.nodes:
            with contextlib.suppress(OSError):
                port = self.asks_sentinel(node.sentinel_port, ASK_S)
                if port is None:
                    continue
                with Connection(LOOPBACK, port, ASK_S) as connection:
                    role = connection.call("ROLE").value
                    if isinstance(role, list) and role[0] == b"master":
                        return port
        return None


@contextlib.contextmanager
def joining(group, directory=None, name="n9", environment=None, **directives):
    """A node beside the group's, which is not started yet, and which the group does not end. It
    begins without data, or with a copy of those in `directory`."""
    node = Node(group.program, name, group.etcd.endpoints(),
                {**group.directives, **group.of_node(), **directives}, environment)
    if directory is not None:
        shutil.copytree(directory, node.directory, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("node-id", "server.log"))
    try:
        yield node
    finally:
        node.kill()
        node.close()


_kept = []  # (settings, group): at most one


@contextlib.contextmanager
def kept_group(program, **settings):
    """A group as Group(program, **settings), which the next test with the same settings gets, too,
    if this one leaves it whole: emptied, and without exits."""
    before, group = _kept.pop() if _kept else (None, None)
    if group is not None and before != (program, settings):
        group.__exit__()
        group = None
    if group is None:
        group = Group(program, **settings).__enter__()
    try:
        yield group
        group.empty()
    except BaseException as failure:
        group.__exit__(failure)
        raise
    _kept.append(((program, settings), group))


@atexit.register
def _end_kept():
    while _kept:
        _kept.pop()[1].__exit__()


def require_roles(group, primary):
    """One leads, as all nodes say soon; the others are standbys."""
    def knows(node):
        facts = node.facts()
        return facts if facts.get("sluice_group_primary") == primary.name else None
    for node in group.nodes:
        facts = wait_until(lambda at=node: knows(at),
                           what=f"{primary.name} as the primary by {node.name}")
        require((facts["role"] == "master") == (node is primary), f"{node.name}: {facts}")
