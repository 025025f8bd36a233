#!/usr/bin/python3
"""Connections as others see them: CLIENT LIST, KILL, UNBLOCK, REPLY; blocking; INFO."""

import re
import sys
import threading
import time

import harness
from harness import servers
from harness import closes, info, require, require_equal, wait_until


UNBLOCKED = b"-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"


def client_lines(connection):
    text = connection.call("CLIENT", "LIST").value.decode()
    return [dict(field.split("=", 1) for field in line.split(" ") if "=" in field)
            for line in text.strip().split("\n")]


def test_client_list(options):
    """CLIENT LIST shows every connection with what it last did, across I/O threads."""
    with options.server() as server:
        connections = [server.connect() for _ in range(8)]
        ids = []
        for number, connection in enumerate(connections):
            ids.append(int(connection.call("CLIENT", "ID").value))
            connection.call("CLIENT", "SETNAME", f"client-{number}")
            connection.call("SELECT", str(number))
            connection.call("GET", "x")
        connections[1].call("MULTI")
        connections[1].call("GET", "x")
        connections[2].call("SUBSCRIBE", "a", "b")
        connections[3].send("BLPOP", "q", "0")
        wait_until(lambda: info(connections[0])["blocked_clients"] == "1", what="the blocking")
        lines = {int(line["id"]): line for line in client_lines(connections[0])}
        require_equal(sorted(set(ids) - set(lines)), [], "missing connections")
        for number, client_id in enumerate(ids):
            line = lines[client_id]
            require_equal(line["name"], f"client-{number}")
            require_equal(line["db"], str(number))
        require_equal(lines[ids[0]]["cmd"], "client|list")
        require_equal((lines[ids[1]]["multi"], lines[ids[1]]["flags"]), ("1", "x"))
        require_equal((lines[ids[2]]["sub"], lines[ids[2]]["flags"]), ("2", "P"))
        require_equal((lines[ids[3]]["cmd"], lines[ids[3]]["flags"]), ("blpop", "b"))
        require_equal(lines[ids[4]]["cmd"], "get")
        for connection in connections:
            connection.close()


def test_client_kill(options):
    """CLIENT KILL closes others at once, blocked ones too, and itself after the reply."""
    with options.server() as server:
        with server.connect() as killer, server.connect() as idle, server.connect() as blocked:
            idle_id = idle.call("CLIENT", "ID").value
            blocked_id = blocked.call("CLIENT", "ID").value
            blocked.send("BLPOP", "q", "0")
            wait_until(lambda: info(killer)["blocked_clients"] == "1", what="the blocking")
            for victim in (idle_id, blocked_id):
                require_equal(killer.call("CLIENT", "KILL", "ID", victim).raw, b":1\r\n")
            require(closes(idle) and closes(blocked), "both are closed")
            # The element stays: nobody waits for it any more.
            require_equal(killer.call("RPUSH", "q", "x").raw, b":1\r\n")
            own = killer.call("CLIENT", "ID").value
            require_equal(killer.call("CLIENT", "KILL", "ID", own, "SKIPME", "no").raw, b":1\r\n")
            require(closes(killer), "and itself")


def test_what_is_pushed_behind_a_kill_stays(options):
    """RPUSH behind CLIENT KILL of a blocked client in one pipeline: the element stays."""
    with options.server() as server, server.connect() as killer:
        for _ in range(10):
            with server.connect() as blocked:
                blocked_id = blocked.call("CLIENT", "ID").value
                blocked.send("BLPOP", "q", "0")
                wait_until(lambda: info(killer)["blocked_clients"] == "1", what="the blocking")
                replies = killer.pipeline([("CLIENT", "KILL", "ID", blocked_id),
                                           ("RPUSH", "q", "x"), ("LLEN", "q"), ("DEL", "q")])
                require_equal([reply.value for reply in replies], [1, 1, 1, 1])
                require(closes(blocked), "it is closed")


def test_client_unblock(options):
    """CLIENT UNBLOCK ends a blocking as by its time-out, or with an error; once only."""
    with options.server() as server:
        with server.connect() as blocked, server.connect() as other:
            client_id = blocked.call("CLIENT", "ID").value
            require_equal(other.call("CLIENT", "UNBLOCK", client_id).raw, b":0\r\n")
            for words, reply in (((), b"*-1\r\n"), (("TIMEOUT",), b"*-1\r\n"),
                                 (("ERROR",), UNBLOCKED)):
                blocked.send("BLPOP", "q", "0")
                wait_until(lambda: info(other)["blocked_clients"] == "1", what="the blocking")
                require_equal(other.call("CLIENT", "UNBLOCK", client_id, *words).raw, b":1\r\n")
                require_equal(blocked.read_reply().raw, reply)
                require_equal(blocked.call("PING").raw, b"+PONG\r\n")
            require_equal(other.call("RPUSH", "q", "x").raw, b":1\r\n", "no waiter is left")


def test_blocked_requests_wait(options):
    """What a blocked client sends meanwhile runs after its reply, in order."""
    with options.server() as server:
        with server.connect() as blocked, server.connect() as other:
            blocked.send_bytes(b"BLPOP q 0\r\nSET a 1\r\n")
            wait_until(lambda: info(other)["blocked_clients"] == "1", what="the blocking")
            blocked.send_bytes(b"GET a\r\n")
            require_equal(other.call("EXISTS", "a").raw, b":0\r\n", "not yet")
            other.call("RPUSH", "q", "x")
            require_equal(blocked.read_reply().raw, b"*2\r\n$1\r\nq\r\n$1\r\nx\r\n")
            require_equal(blocked.read_reply().raw, b"+OK\r\n")
            require_equal(blocked.read_reply().raw, b"$1\r\n1\r\n")


def test_pipelines_wait_for_the_end_of_a_pause(options):
    """In CLIENT PAUSE a pipeline waits at its first write, and then runs in order; behind a BLPOP
    that waited for the end of the pause, and for an element then, as behind any other."""
    with options.server() as server, server.connect() as other:
        with server.connect() as client, server.connect() as blocked:
            other.call("CLIENT", "PAUSE", "1000000", "WRITE")
            client.send_bytes(b"SET a 1\r\nSET b 2\r\nGET a\r\n")
            blocked.send_bytes(b"BLPOP q 0\r\nSET after 1\r\n")
            wait_until(lambda: info(other)["blocked_clients"] == "2", what="both wait")
            other.call("CLIENT", "UNPAUSE")
            for reply in (b"+OK\r\n", b"+OK\r\n", b"$1\r\n1\r\n"):
                require_equal(client.read_reply().raw, reply)
            require_equal(other.call("MGET", "a", "b").value, [b"1", b"2"])
            wait_until(lambda: info(other)["blocked_clients"] == "1", what="BLPOP waits")
            require_equal(other.call("EXISTS", "after").raw, b":0\r\n", "not yet")
            other.call("RPUSH", "q", "x")
            require_equal(blocked.read_reply().value, [b"q", b"x"])
            require_equal(blocked.read_reply().raw, b"+OK\r\n")


def test_blocking_timeouts(options):
    """Blocking commands give up after their time, with Redis's null for each, in both protocols."""
    cases = [(("BLPOP", "q", "0.05"), b"*-1\r\n"), (("BRPOP", "q", "0.05"), b"*-1\r\n"),
             (("BLMOVE", "q", "r", "LEFT", "LEFT", "0.05"), b"*-1\r\n"),
             (("BRPOPLPUSH", "q", "r", "0.05"), b"*-1\r\n"),
             (("BLMPOP", "0.05", "1", "q", "LEFT"), b"*-1\r\n"),
             (("BZPOPMIN", "q", "0.05"), b"*-1\r\n"), (("BZPOPMAX", "q", "0.05"), b"*-1\r\n"),
             (("BZMPOP", "0.05", "1", "q", "MIN"), b"*-1\r\n")]
    with options.server() as server:
        for protocol in ("2", "3"):
            with server.connect() as connection:
                connection.call("HELLO", protocol)
                for command, reply in cases:
                    began = time.monotonic()
                    got = connection.call(*command)
                    require_equal(got.raw, reply if protocol == "2" else b"_\r\n", f"{command}")
                    require(0.045 < time.monotonic() - began < 1, f"{command}: when")


def test_a_short_time_beside_long_ones(options):
    """A blocked client gives up after its own time, though others began to wait for longer."""
    with options.server() as server, server.connect() as short:
        long = [server.connect() for _ in range(8)]
        for connection in long:
            connection.send("BLPOP", "q", "1000")
        wait_until(lambda: info(short)["blocked_clients"] == "8", what="the blocking")
        require_equal(short.call("BLPOP", "q", "0.05").raw, b"*-1\r\n")
        for connection in long:
            connection.close()


def test_a_lost_client_takes_nothing(options):
    """A blocked client whose connection is gone gets no element: the next one does."""
    with options.server() as server:
        with server.connect() as other:
            for _ in range(20):
                lost = server.connect()
                lost.send("BLPOP", "q", "0")
                wait_until(lambda: info(other)["blocked_clients"] == "1", what="the blocking")
                lost.close()
                wait_until(lambda: info(other)["blocked_clients"] == "0", what="its end")
                require_equal(other.call("RPUSH", "q", "x").raw, b":1\r\n")
                require_equal(other.call("LPOP", "q").raw, b"$1\r\nx\r\n")


def test_blocked_clients_are_served_in_order(options):
    """Elements go to blocked clients in order of arrival, each once, across I/O threads."""
    with options.server() as server:
        waiting = []
        with server.connect() as pusher:
            for number in range(20):
                connection = server.connect()
                connection.send("BLPOP", "q", "0")
                wait_until(lambda count=number: info(pusher)["blocked_clients"] == str(count + 1),
                           what="the blocking")
                waiting.append(connection)
            pusher.call("RPUSH", "q", *[str(number) for number in range(20)])
            for number, connection in enumerate(waiting):
                require_equal(connection.read_reply().value, [b"q", str(number).encode()])
                connection.close()


def test_client_reply(options):
    """CLIENT REPLY OFF, SKIP and ON."""
    with options.server() as server:
        with server.connect() as connection:
            for sent, expected in ((b"CLIENT REPLY OFF\r\nPING\r\nSET a 1\r\n"
                                    b"CLIENT REPLY ON\r\nGET a\r\n", b"+OK\r\n$1\r\n1\r\n"),
                                   (b"CLIENT REPLY SKIP\r\nPING\r\nGET a\r\n", b"$1\r\n1\r\n")):
                connection.send_bytes(sent)
                require_equal(connection.read_quiet(0.2, len(expected), 20)[0], expected)


def test_what_client_libraries_say_of_themselves(options):
    """CLIENT SETINFO is taken, in MULTI too; what clients try besides is an error."""
    with options.server() as server, server.connect() as connection:
        for words in (("LIB-NAME", "redis-py"), ("lib-ver", "6.4.0"), ("LIB-NAME", "")):
            require_equal(connection.call("CLIENT", "SETINFO", *words).raw, b"+OK\r\n", words)
        for words in (("LIB-NAME",), ("LIB-NAME", "a", "b"), ("OTHER", "x"), ("LIB-NAME", "a b")):
            require(connection.call("CLIENT", "SETINFO", *words).is_error, f"{words} was taken")
        require(b"redis-py" not in connection.call("CLIENT", "INFO").raw, "CLIENT INFO")
        require_equal(connection.call("CLIENT", "MAINT_NOTIFICATIONS", "ON").raw,
                      b"-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.\r\n")
        connection.call("MULTI")
        connection.call("CLIENT", "SETINFO", "LIB-VER", "1")
        require_equal(connection.call("EXEC").raw, b"*1\r\n+OK\r\n", "EXEC")


def test_pubsub_across_threads(options):
    """Messages reach all subscribers, in the order of each publisher."""
    with options.server() as server:
        subscribers = [server.connect() for _ in range(6)]
        for subscriber in subscribers:
            subscriber.call("SUBSCRIBE", "news")

        def publish(name):
            with server.connect() as publisher:
                for number in range(200):
                    publisher.call("PUBLISH", "news", f"{name}:{number}")
        publishers = [threading.Thread(target=publish, args=(name,)) for name in "ab"]
        for publisher in publishers:
            publisher.start()
        for subscriber in subscribers:
            seen = {b"a": [], b"b": []}
            for _ in range(400):
                name, _, number = subscriber.read_reply().value[2].partition(b":")
                seen[name].append(int(number))
            require_equal(seen, {b"a": list(range(200)), b"b": list(range(200))})
        for publisher in publishers:
            publisher.join()
        for subscriber in subscribers:
            subscriber.close()


def test_pushes_follow_the_present_protocol(options):
    """After HELLO 2 messages are arrays; a RESP2 connection hears nothing of its leases."""
    with options.server({"appendonly": "no"}) as server, server.connect() as other:
        with server.connect() as client:
            client.call("HELLO", "3")
            client.call("SUBSCRIBE", "news")
            client.call("HELLO", "2")
            other.call("PUBLISH", "news", "x")
            require_equal(client.read_reply().raw,
                          b"*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nx\r\n", "a message")
        for number, words in enumerate((["HELLO", "2"], ["RESET"], ["HELLO", "3"])):
            with server.connect() as client:
                client.call("HELLO", "3")
                other.call("Q.ADD", "q", f"j{number}", "x")
                client.call("Q.POP", "1", "q", "WORKER", f"w{number}")
                client.call(*words)
                other.call("Q.CONFIG", "q", "WORKER", f"w{number}", "SET", "quiet", "on")
                other.call("Q.CANCEL", "q", f"j{number}")
                if words[-1] == "3":
                    pushes = [client.read_reply().value[0] for _ in range(2)]
                    require_equal(pushes, [b"q.quiet", b"q.cancel"], "pushes")
                else:
                    require_equal(client.read_quiet(0.3), (b"", False), f"after {words}")


def test_pipelines_in_order(options):
    """Deep pipelines of many clients at once: every reply, in order."""
    with options.server() as server:
        failures = []

        def run(number):
            try:
                with server.connect(20) as connection:
                    for _ in range(5):
                        replies = connection.pipeline([("INCR", f"n:{number}")] * 3000)
                        values = [int(reply.value) for reply in replies]
                        if values != list(range(values[0], values[0] + 3000)):
                            failures.append(f"client {number} out of step")
            except Exception as error:  # pylint: disable=broad-except
                failures.append(f"client {number}: {error!r}")
        threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        require_equal(failures, [])


def field_names(text):
    """Names of fields and titles of sections, without what is ours or depends on history."""
    names = [line.split(":")[0] for line in text.split("\r\n") if line]
    return [name for name in names
            if not re.match(r"sluice_|cmdstat_|errorstat_|latency_percentiles|db\d", name)]


def test_info_is_redis_shaped(options):
    """INFO has the fields of redis-server, in its order, with CRLF; ours come on top."""
    with options.server({"appendonly": "yes"}) as server, \
            servers.Server("redis-server", {"appendonly": "yes"}) as redis:
        with server.connect() as ours, redis.connect() as theirs:
            for section in ("everything", "default", "server", "clients", "memory", "persistence",
                            "stats", "replication", "cpu", "cluster", "modules"):
                texts = [connection.call("INFO", section).value.decode()
                         for connection in (theirs, ours)]
                expected, got = (field_names(text) for text in texts)
                require_equal(got, expected, f"fields of {section}")
                require("\n" not in texts[1].replace("\r\n", ""), "a bare line feed")
            fields = info(ours)
            require_equal(fields["redis_version"], "7.0.15")
            require_equal(fields["loading"], "0")
            require(int(fields["used_memory"]) > 100_000, "used_memory")
            require(int(fields["used_memory_rss"]) > 1_000_000, "used_memory_rss")


def test_info_follows_memory(options):
    """used_memory follows the data up and down."""
    with options.server() as server:
        with server.connect() as connection:
            before = int(info(connection)["used_memory"])
            for number in range(200):
                connection.call("SET", f"k{number}", "x" * 100_000)
            grown = int(info(connection)["used_memory"]) - before
            require(19_000_000 < grown < 30_000_000, f"grew by {grown}")
            connection.call("FLUSHALL")
            wait_until(lambda: int(info(connection)["used_memory"]) - before < 2_000_000,
                       what="the memory's return")


LOADING = b"-LOADING Redis is loading the dataset in memory\r\n"
# While it loads: what queues is answered, what would need data is refused, as redis-server does.
WHILE_LOADING = [
    (("MULTI",), b"+OK\r\n"), (("ECHO", "a"), b"+QUEUED\r\n"), (("EXEC",), b"*1\r\n$1\r\na\r\n"),
    (("MULTI",), b"+OK\r\n"), (("GET", "key:1"), LOADING), (("ECHO", "a"), b"+QUEUED\r\n"),
    (("EXEC",), b"-EXECABORT Transaction discarded because of previous errors.\r\n"),
    (("MULTI",), b"+OK\r\n"), (("DISCARD",), b"+OK\r\n"), (("UNWATCH",), b"+OK\r\n"),
    (("EXEC",), b"-ERR EXEC without MULTI\r\n"), (("RESET",), b"+RESET\r\n"),
    (("GET", "key:1"), LOADING),
]


def look_while_it_loads(server, seen):
    """Starts it; adds to `seen` what its answers meanwhile have shown."""
    starter = threading.Thread(target=server.start)
    starter.start()
    try:
        while starter.is_alive() and len(seen) < 3:
            try:
                with server.connect() as connection:
                    get, shown = connection.pipeline([("GET", "key:1"), ("INFO",)])
                    replies = [reply.raw for reply in
                               connection.pipeline([command for command, _ in WHILE_LOADING])]
                    if get.raw == LOADING:
                        seen.add("an error")
                    if replies[-1] == LOADING:  # it still loads
                        seen.add("transactions")
                        require_equal(replies, [reply for _, reply in WHILE_LOADING],
                                      "while it loads")
                    if b"loading:1" in shown.value and b"loading_loaded_perc:" in shown.value:
                        seen.add("INFO")
            except OSError:
                time.sleep(0.002)
    finally:
        starter.join()


def test_loading(options):
    """While it loads, commands answer -LOADING and INFO shows it; then everything is there."""
    with options.server({"appendonly": "yes", "appendfsync": "no"}) as server:
        with server.connect(30) as connection:
            for start in range(0, 400_000, 20_000):
                connection.pipeline([("SET", f"key:{start + i}", "x" * 50) for i in range(20_000)])
        server.directives = dict(server.directives, port=str(server.port))
        seen = set()
        # This process may sleep for as long as the loading takes.
        for _ in range(3):
            server.kill()
            look_while_it_loads(server, seen)
            if len(seen) == 3:
                break
        require_equal(sorted(seen), ["INFO", "an error", "transactions"], "seen while it loads")
        with server.connect() as connection:
            require_equal(connection.call("DBSIZE").raw, b":400000\r\n")
        require("Recovered 400000 keys" in server.log_tail(), server.log_tail())


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__], io_threads=(1, 4)))
