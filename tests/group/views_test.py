#!/usr/bin/python3
"""What clients and operators see of a group: HTTP, INFO and WAIT, the command line, and the port of
Sentinel under bad input and without etcd."""

import contextlib
import random
import socket
import sys
import time
import types

import harness
from harness import allow_files, closes, require, require_equal, wait_until
from harness.cli import NO_CONNECTION, Sluice
from harness.group import PATIENT, Group, kept_group
from harness.http_client import OPERATE_TOKEN, Client, require_problem
from harness.resp import Connection, encode
from harness.servers import LOOPBACK, steady_port
from harness.surroundings import fixed_files

ROUNDS = 300  # of malformed requests
TRUSTED_S = 2.0
MOST_AT_SENTINEL = 1000  # connections
# What changes while one looks.
MOVING = ("age_ms", "lag_ms", "lease_ms", "log_frames", "log_bytes", "log_kept_by", "etcd_bytes",
          "seq", "lsn", "members")


def http_directives():
    return {"http-port": steady_port(), "http-token": [f"operate >{OPERATE_TOKEN}"]}


def group_of_two(options):
    return kept_group(options.program, directives=PATIENT, of_node=http_directives)


def http(node, token=OPERATE_TOKEN):
    return Client(types.SimpleNamespace(http_port=node.directives["http-port"]), token)


def wait_until_all_are_seen(group):
    """By every node, so that what it says of the others is whole."""
    def seen(node):
        facts = node.facts()
        return all(f"sluice_group_member{n}" in facts for n in range(len(group.nodes)))
    wait_until(lambda: all(map(seen, group.nodes)), what="every node's record at every node")


def seen_and_shown(client, sluice):
    """The group by HTTP, and by `sluice nodes`, which say the same: etcd may be late in between."""
    def both():
        views = client.get("/api/v1/group").json["group"], sluice.json("nodes")
        seen, shown = ({name: value for name, value in view.items() if name not in MOVING}
                       for view in views)
        return views if seen == shown else None
    return wait_until(both, what="the same by HTTP and by sluice nodes")


def test_http(options):
    """load balancers find the primary and the standby, a standby refuses changes and names where"""
    with group_of_two(options) as group:
        primary, standby = group.primary(), group.standby()
        wait_until_all_are_seen(group)
        with http(primary, None) as at_primary, http(standby, None) as at_standby:
            # Its lease begins with its first beat.
            wait_until(lambda: at_primary.get("/primary").status == 200, what="a primary")
            wait_until(lambda: at_standby.get("/standby?max_lag_ms=5000").status == 200,
                       what="a standby")
            require_problem(at_standby.get("/primary"), 503, "OTHERROLE")
            require_problem(at_primary.get("/standby"), 503, "OTHERROLE")
        with http(primary) as at_primary, http(standby) as at_standby:
            jobs = "/api/v1/queues/q/jobs"
            at_primary.expect(201, "POST", jobs, {"id": "a", "payload": "x"})
            refused = at_standby.post(jobs, {"id": "b", "payload": "x"})
            require_problem(refused, 503, "NOTPRIMARY")
            require_equal(refused.json["primary"],
                          f"http://{LOOPBACK}:{primary.directives['http-port']}", "the primary")
            wait_until(lambda: at_standby.get(jobs + "/a").status == 200, what="the job there")
            seen, shown = seen_and_shown(at_standby, Sluice(options, None, standby.port))
            require_equal((seen["node"], seen["role"], seen["primary"]),
                          (standby.name, "standby", primary.name), "the standby's view")
            require_equal([(member["name"], member["primary"], member["sentinel_port"])
                           for member in shown["members"]],
                          [(node.name, node is primary, node.sentinel_port)
                           for node in group.nodes], "members")
            series = at_primary.get("/metrics").body.decode()
            for line in 'sluice_group_primary{cluster="main",group="1"} 1', "sluice_group_nodes 2":
                require(line + "\n" in series, f"{line} is not in /metrics")


def test_wait(options):
    """WAIT and WAITAOF tell how many standbys have applied what was written before"""
    with group_of_two(options) as group, group.primary().connect() as connection, \
            group.standby().connect() as standby:
        wait_until_all_are_seen(group)
        connection.call("SET", "k", "v")
        require_equal(connection.call("WAIT", "1", "5000").value, 1, "WAIT 1")
        require_equal(standby.call("GET", "k").value, b"v", "the standby after WAIT")
        began = time.monotonic()
        require_equal(connection.call("WAIT", "2", "300").value, 1, "WAIT 2")
        require(time.monotonic() - began >= 0.3, "WAIT 2 did not wait")
        connection.call("SET", "k", "w")
        require_equal(connection.call("WAITAOF", "1", "1", "5000").value, [1, 1], "WAITAOF")
        require(standby.call("WAIT", "1", "0").is_error, "WAIT at a standby")
        role = connection.call("ROLE").value
        require_equal((role[0], len(role[2])), (b"master", 1), "ROLE")
        require_equal(standby.call("ROLE").value[3], b"connected", "ROLE of the standby")


def finding(options, group):
    """The program, which asks the Sentinels of the group for the primary."""
    hosts = ",".join(f"{host}:{port}" for host, port in group.sentinels())
    sluice = Sluice(options, None)
    sluice.words = lambda *words: [sluice.path, "--sentinel", hosts, *words]
    return sluice


def test_command_line(options):
    """sluice finds the primary by Sentinel, shows the nodes, and lets a chosen one lead"""
    with Group(options.program, nodes=3, directives=PATIENT) as group:
        epoch, primary = group.leadership()
        wait_until_all_are_seen(group)
        to = group.standbys()[1]
        sluice = Sluice(options, None, to.port)
        require(f"{primary.name} leads" in sluice.must("nodes"), "sluice nodes")
        told = sluice.json("failover", "--to", to.name)
        require_equal(told["primary"], to.name, "who leads")
        require_equal(group.wait_for_primary(epoch).name, to.name, "who leads by INFO")
        sluice.fails(harness.cli.USAGE_ERROR, "no live node n8, only ", "failover", "--to", "n8")
        sluice.fails(1, f"{to.name} leads already", "failover", "--to", to.name)
        by_sentinel = finding(options, group)
        wait_until(lambda: by_sentinel.run("add", "q", "x", "--id", "a")[0] == 0,
                   what="a job added by Sentinel")


def test_pause(options):
    """a paused group keeps its primary; CONFIG SET changes what is told of a node"""
    with Group(options.program, directives=PATIENT) as group:
        epoch, primary = group.leadership()
        standby = group.standby()
        wait_until_all_are_seen(group)
        sluice = Sluice(options, None, standby.port)
        require("paused for" in sluice.must("nodes", "--pause", "1h"), "the pause")
        for node in group.nodes:
            wait_until(lambda at=node: int(at.facts().get("sluice_group_paused_ms", 0)) > 0,
                       what=f"the pause at {node.name}")
        primary.crash()
        require_equal(group.wait_for_primary(epoch).name, primary.name, "who leads")
        require("paused for" not in sluice.must("nodes", "--resume"), "the end of the pause")
        require("the group is paused" in standby.log_tail(100), standby.log_tail(100))
        with standby.connect() as connection:
            connection.call("CONFIG", "SET", "replica-priority", "0", "replica-announce-port", "7")
        def told():
            return [text for name, text in primary.facts().items()
                    if name.startswith("sluice_group_member") and f"name={standby.name}," in text]
        wait_until(lambda: any(",port=7," in text and ",priority=0," in text for text in told()),
                   what="what the primary is told of the standby")
        with primary.connect() as connection:
            reply = connection.call("FAILOVER").raw
            require(b"no other node of the group can lead" in reply, reply)
        with standby.connect() as connection:
            connection.call("CONFIG", "SET", "replica-priority", "100",
                            "replica-announce-port", "0")
        sluice.must("nodes", "--pause", "1h")
        primary.kill()
        # At first its Sentinel is away, and the other one names it still; then that names nobody.
        by_sentinel = finding(options, group)
        require("paused for" in by_sentinel.must("nodes"), "sluice nodes by Sentinel")
        wait_until(lambda: "nobody leads" in by_sentinel.must("nodes"), what="that nobody leads")
        by_sentinel.fails(NO_CONNECTION, "no Sentinel names a primary", "status")
        # It still hears of etcd.
        wait_until(lambda: int(standby.facts().get("master_link_down_since_seconds", -1)) >= 3,
                   20, "how long the standby has had no primary")


def differences(options, node):
    """What differs from the primary as INFO, HTTP, `sluice nodes` and /metrics of `node` say it."""
    words = {"config": "another configuration", "users": "other users"}
    flags = {"config": "config_differs", "users": "users_differ"}
    lines = [text for name, text in node.told().items() if name.startswith("sluice_group_member")]
    with http(node) as client:
        members = client.get("/api/v1/group").json["group"]["members"]
        series = client.get("/metrics").body.decode()
    printed = Sluice(options, None, node.port).must("nodes")
    says = (lambda what: any(f"{flags[what]}=1" in line for line in lines),
            lambda what: any(member[flags[what]] for member in members),
            lambda what: words[what] in printed,
            lambda what: f'sluice_group_differing_nodes{{what="{what}"}} 1\n' in series)
    return [{what for what in words if shows(what)} for shows in says]


def test_differences(options):
    """each node shows that one has other settings or users than the primary, until both agree"""
    with group_of_two(options) as group, contextlib.ExitStack() as stack:
        primary, standby = group.primary(), group.standby()
        wait_until_all_are_seen(group)
        at = {node: stack.enter_context(node.connect()) for node in group.nodes}

        def set_at(nodes, *words):
            for node in nodes:
                require_equal(at[node].call(*words).value, b"OK", words)

        def wait_for(*wanted):
            wait_until(lambda: all(found == set(wanted) for node in group.nodes
                                   for found in differences(options, node)),
                       what=f"a difference in {wanted}")
        wait_for()
        set_at([standby], "CONFIG", "SET", "maxmemory", "123456789")
        wait_for("config")
        # What describes one machine may differ.
        set_at([standby], "CONFIG", "SET", "loglevel", "verbose")
        set_at([primary], "ACL", "SETUSER", "alice", "on", ">secret", "~jobs:*", "+@all")
        wait_for("config", "users")
        require('Unlike the primary "' + primary.name in standby.log_tail(100), standby.log_tail())
        set_at([standby], "ACL", "SETUSER", "alice", "on", ">secret", "~jobs:*", "+@all")
        set_at([primary], "CONFIG", "SET", "maxmemory", "123456789")
        wait_for()
        wait_until(lambda: f'agrees with the primary "{primary.name}" again' in
                   standby.log_tail(100), what="the end of the difference in the log")
        set_at([standby], "CONFIG", "SET", "loglevel", "notice")
        set_at(group.nodes, "CONFIG", "SET", "maxmemory", "0")
        for node in group.nodes:
            require_equal(at[node].call("ACL", "DELUSER", "alice").value, 1, "ACL DELUSER")
        wait_for()


def answers(port, request, wait_s=1.0):
    """What comes back until the connection ends or is silent."""
    reply = b""
    with socket.create_connection((LOOPBACK, port), wait_s) as client:
        with contextlib.suppress(TimeoutError, ConnectionError):
            client.sendall(request)
            while data := client.recv(1 << 16):
                reply += data
    return reply


def malformed(choice):
    words = [b"SENTINEL", b"MASTERS", b"SUBSCRIBE", b"PSUBSCRIBE", b"*", b"HELLO", b"3", b"AUTH",
             b"CLIENT", b"SETNAME", b"", b"INFO", b"UNSUBSCRIBE", b"\xff\x00", b"mymaster"]
    request = bytearray(encode([choice.choice(words) for _ in range(choice.randint(1, 6))]))
    if choice.random() < 0.5:
        request[choice.randrange(len(request))] = choice.randrange(256)
    return bytes(request) * choice.randint(1, 3)


def test_bad_input(options):
    """the port of Sentinel bounds what a client sends and does not read, and answers the others"""
    with Group(options.program, nodes=1) as group:
        port = group.nodes[0].sentinel_port
        require(answers(port, b"*2\r\n$4\r\nPING\r\n$20000\r\n").startswith(b"-ERR Protocol"),
                "a large argument")
        require(answers(port, b"x" * 70_000).startswith(b"-ERR Protocol"), "a long line")
        require_equal(answers(port, b"POST / HTTP/1.1\r\nHost: x\r\n\r\n"), b"", "a browser")
        choice = random.Random(5)
        for _ in range(ROUNDS):
            with socket.create_connection((LOOPBACK, port)) as client:
                with contextlib.suppress(ConnectionError):
                    client.sendall(malformed(choice))
        with socket.create_connection((LOOPBACK, port), 10) as silent:
            with contextlib.suppress(ConnectionError):
                while silent.send(b"SENTINEL MASTERS\r\n" * 200):
                    pass
        require_equal(group.asks_sentinel(port), group.nodes[0].port, "the primary")
        require_equal(group.nodes[0].exits, [], "exits")


def test_strangers(options):
    """in protected mode the port of Sentinel tells other machines who leads, and changes nothing"""
    address = harness.own_address()
    if address is None:
        raise harness.Skipped("this machine has the loopback interface only")
    with Group(options.program, nodes=1, directives={"bind": f"{LOOPBACK} {address}"}) as group:
        node = group.nodes[0]
        with Connection(address, node.sentinel_port, 5) as stranger:
            told = stranger.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster").value
            require_equal(told, [LOOPBACK.encode(), str(node.port).encode()], "who leads")
            reply = stranger.call("SENTINEL", "FAILOVER", "mymaster").raw
            require(reply.startswith(b"-NOAUTH"), reply)
        with Connection(LOOPBACK, node.sentinel_port, 5) as friend:
            reply = friend.call("SENTINEL", "FAILOVER", "mymaster").raw
            require(reply.startswith(b"-NOGOODSLAVE"), reply)


def test_many_at_sentinel(options):
    """where the port of Sentinel has no room, the oldest goes that does not wait for a message"""
    allow_files(MOST_AT_SENTINEL)
    with Group(options.program, nodes=1) as group, contextlib.ExitStack() as stack:
        def connected():
            connection = Connection(LOOPBACK, group.nodes[0].sentinel_port, 20)
            require_equal(connection.call("PING").value, b"PONG", "PING")
            return stack.enter_context(connection)

        listener = connected()
        listener.call("SUBSCRIBE", "+switch-master")
        others = [connected() for _ in range(MOST_AT_SENTINEL)]
        require(closes(others[0]), "the oldest of the others stays")
        for connection in listener, others[1]:
            require(not connection.call("PING").is_error, "one that should stay")


def test_files_for_sentinel(options):
    """what connections at the port of Sentinel may take is kept from other clients"""
    with fixed_files(options, 2000) as few, Group(few.program, nodes=1) as group, \
            group.primary().connect() as connection:
        clients = int(connection.call("CONFIG", "GET", "maxclients").value[1])
        require(0 < clients < 2000 - MOST_AT_SENTINEL, f"maxclients {clients}")


def test_without_etcd(options):
    """a node that has lost etcd names nobody by Sentinel; /standby is 503 if it refuses reads"""
    with Group(options.program, relayed=True, directives=PATIENT, of_node=http_directives) as group:
        primary, standby = group.primary(), group.standby()
        require_equal(group.asks_sentinel(standby.sentinel_port), primary.port, "before")
        group.cut(standby)
        wait_until(lambda: group.asks_sentinel(standby.sentinel_port) is None, 10 * TRUSTED_S,
                   "an answer that names nobody")
        with Connection(LOOPBACK, standby.sentinel_port, 5) as connection:
            fields = connection.call("SENTINEL", "MASTERS").value[0]
            flags = fields[fields.index(b"flags") + 1]
            require(b"s_down" in flags and b"o_down" in flags, f"flags {flags}")
        require_equal(group.asks_sentinel(primary.sentinel_port), primary.port, "elsewhere")
        require_equal(standby.told()["master_link_status"], "down", "the link in INFO")
        with standby.connect() as connection, http(standby, None) as client:
            require_equal(connection.call("ROLE").value[3], b"connect", "the link in ROLE")
            require_equal(connection.call("PING").value, b"PONG", "a read at the standby")
            client.expect(200, "GET", "/standby")
            connection.call("CONFIG", "SET", "replica-serve-stale-data", "no")
            require(b"MASTERDOWN" in connection.call("GET", "k").raw, "old data")
            refused = require_problem(client.get("/standby"), 503, "OTHERROLE")
            require("replica-serve-stale-data" in refused["detail"], refused)
            connection.call("CONFIG", "SET", "replica-serve-stale-data", "yes")
        group.heal(standby)
        wait_until(lambda: group.asks_sentinel(standby.sentinel_port) == primary.port, 20,
                   "the primary's name again")


def test_measured_without_etcd(options):
    """without etcd a primary's INFO and metrics are answered, its lists are not; a write waits"""
    with kept_group(options.program, directives={"failover-timeout": 3000, "journal-patience": 100},
                    of_node=http_directives) as group, contextlib.ExitStack() as stack:
        primary = group.primary()
        pending, other = [stack.enter_context(primary.connect(5)) for _ in range(2)]
        other.call("Q.ADD", "q", "j1", "x")
        for member in (0, 1):
            group.etcd.kill(member)
        pending.send("Q.ADD", "q", "j2", "x")
        wait_until(lambda: primary.told()["sluice_group_lease_ms"] == "0", what="the gate")
        require(b"db0:keys=1" in other.call("INFO").value, "INFO")
        require(b"NOREPLICAS" in other.call("DBSIZE").raw, "DBSIZE")
        client = stack.enter_context(http(primary))
        client.connection.timeout = 5
        for path in "queues", "find?q=q", "queues/q/groups":
            require_problem(client.get("/api/v1/" + path), 503, "NOREPLICAS")
        require(b'sluice_group_primary{cluster="main",group="1"} 1' in client.get("/metrics").body,
                "/metrics")
        client.expect(200, "GET", "/api/v1/server")
        for member in (0, 1):
            group.etcd.start(member)
        require(not pending.read_reply(20).is_error, "the write")


def test_switch(options):
    """who subscribes at any node hears once of a new primary"""
    with group_of_two(options) as group, contextlib.ExitStack() as stack:
        epoch, primary = group.leadership()
        wait_until_all_are_seen(group)
        listener = stack.enter_context(
            Connection(LOOPBACK, group.standby().sentinel_port, 20))
        listener.call("SUBSCRIBE", "+switch-master")
        to = group.standby()
        with primary.connect() as connection:
            require_equal(connection.call("FAILOVER").value, b"OK", "FAILOVER")
        require_equal(group.wait_for_primary(epoch), to, "the new primary")
        require_equal(listener.read_reply().value[2].decode(),
                      f"mymaster {LOOPBACK} {primary.port} {LOOPBACK} {to.port}", "the message")


def test_changed_port(options):
    """Sentinels name the port that CONFIG SET has chosen, on whichever thread it ran"""
    with kept_group(options.program, directives={**PATIENT, "io-threads": 3}) as group:
        primary = group.primary()
        for turn in range(9):
            with contextlib.ExitStack() as stack:
                clients = [stack.enter_context(primary.connect()) for _ in range(3)]
                port = steady_port()
                require_equal(clients[turn % 3].call("CONFIG", "SET", "port", port).value, b"OK")
            primary.port = primary.directives["port"] = port
            wait_until(lambda: group.asks_sentinel(primary.sentinel_port) == primary.port, 10,
                       f"the port {port}")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
