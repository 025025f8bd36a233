#!/usr/bin/python3
"""SAVE, BGSAVE and BGREWRITEAOF wherever the server was started to keep nothing, and what
CONFIG SET changes of persistence and of the port while clients work."""

import os
import random
import socket
import sys
import threading
import time

import harness
from harness import info, require, require_equal, wait_until
from harness.resp import encode
from harness.surroundings import limit_files

UNABLE = "Unable to turn on AOF. Check server logs."


def config_error(name, text):
    return f"-ERR CONFIG SET failed (possibly related to argument '{name}') - {text}\r\n".encode()


def value_of(connection, name):
    return connection.call("CONFIG", "GET", name).value[1].decode()


def test_save_and_bgsave_without_rules(options):
    """SAVE and BGSAVE keep the data with appendonly no and save "", and such a start loads them."""
    for words in (("SAVE",), ("BGSAVE",), ("BGSAVE", "SCHEDULE"), ("BGREWRITEAOF",)):
        with options.server() as server:
            with server.connect() as connection:
                connection.call("SET", "a", "1")
                connection.call("Q.ADD", "q", "job", "payload")
                require(not os.path.exists(os.path.join(server.directory, "FORMAT")), "files")
                require(not connection.call(*words).is_error, words)
                wait_until(lambda: info(connection)["rdb_bgsave_in_progress"] == "0")
                require_equal(info(connection)["rdb_last_bgsave_status"], "ok", words)
                connection.call("SET", "a", "2")
            server.restart()
            with server.connect() as connection:
                require_equal(connection.call("GET", "a").value, b"1", f"{words} kept, no more")
                require_equal(connection.call("Q.GET", "q", "job").is_error, False, "the job")
                require_equal(value_of(connection, "appendonly"), "no")
                connection.call("SET", "a", "3")
                connection.call("SAVE")
            server.kill()
            server.start()
            with server.connect() as connection:
                require_equal(connection.call("GET", "a").value, b"3", "the second SAVE")
                connection.call("SET", "a", "4")
                connection.send("SHUTDOWN", "SAVE")
                connection.read_quiet(5)
            require_equal(server.process.wait(20), 0, "exit code")
            server.process = None
            server.start()
            with server.connect() as connection:
                require_equal(connection.call("GET", "a").value, b"4", "SHUTDOWN SAVE")


def test_bgsave_answers_while_one_runs(options):
    """BGSAVE, BGREWRITEAOF and SAVE answer as Redis's do while one of the others runs."""
    with options.server({"enable-debug-command": "yes"}) as server, server.connect() as connection:
        connection.call("DEBUG", "POPULATE", "300000")
        connection.call("SAVE")
        busy = b"-ERR Background save already in progress\r\n"

        def answers(*lines):
            """Of commands that are sent at once, so that none of them is late."""
            wait_until(lambda: info(connection)["rdb_bgsave_in_progress"] == "0", 60)
            return [reply.raw for reply in connection.pipeline([line.split() for line in lines])]
        require_equal(answers("BGSAVE", "BGSAVE", "SAVE", "BGREWRITEAOF"),
                      [b"+Background saving started\r\n", busy, busy,
                       b"+Background append only file rewriting scheduled\r\n"], "a save runs")
        require_equal(answers("BGREWRITEAOF", "BGREWRITEAOF", "BGSAVE", "BGSAVE SCHEDULE"),
                      [b"+Background append only file rewriting started\r\n",
                       b"-ERR Background append only file rewriting already in progress\r\n",
                       b"-ERR Another child process is active (AOF?): can't BGSAVE right now. Use "
                       b"BGSAVE SCHEDULE in order to schedule a BGSAVE whenever possible.\r\n",
                       b"+Background saving scheduled\r\n"], "a rewrite runs")
        require_equal(answers("MULTI", "BGSAVE", "EXEC")[2],
                      b"*1\r\n+Background saving scheduled\r\n", "in a transaction")


def test_save_rules_at_run_time(options):
    """CONFIG SET save takes effect where nothing was kept at the start."""
    with options.server() as server:
        with server.connect() as connection:
            connection.call("SET", "a", "1")
            require_equal(connection.call("CONFIG", "SET", "save", "3600 1").raw, b"+OK\r\n")
            wait_until(lambda: "sluice_checkpoint_number" in info(connection), what="the store")
        server.restart()
        with server.connect() as connection:
            require_equal(connection.call("GET", "a").value, b"1", "kept by the end")


def test_save_rules_where_data_is_kept(options):
    """CONFIG SET save takes effect beside a store, and so do the rules after appendonly no."""
    for directives, words in (({"appendonly": "no", "save": "3600 1000000"}, ("save", "1 1")),
                              ({"appendonly": "yes", "save": "1 1"}, ("appendonly", "no"))):
        with options.server(directives) as server:
            with server.connect() as connection:
                def completed():
                    return int(info(connection)["sluice_checkpoints_completed"])
                require_equal(connection.call("SAVE").raw, b"+OK\r\n", "SAVE")
                require_equal(connection.call("CONFIG", "SET", *words).raw, b"+OK\r\n", words)
                before = completed()
                connection.call("SET", "a", "1")
                wait_until(lambda: completed() > before, 20, f"a checkpoint by itself: {words}")
            server.kill()
            server.start()
            with server.connect() as connection:
                require_equal(connection.call("EXISTS", "a").value, 1, words)


class Writer(threading.Thread):
    """Sets one key after the other, and counts what was acknowledged."""

    def __init__(self, server, name):
        super().__init__(daemon=True)
        self.connection = server.connect()
        self.name = name
        self.acknowledged = 0

    def write(self):
        reply = self.connection.call("SET", f"{self.name}:{self.acknowledged}", "v")
        return reply.raw == b"+OK\r\n"

    def run(self):
        try:
            while self.write():
                self.acknowledged += 1
        except OSError:
            pass


def switch_under_load(options, directives, seed):
    choose = random.Random(seed)
    with options.server({**directives, "enable-debug-command": "yes"}) as server:
        with server.connect() as connection:
            connection.call("DEBUG", "POPULATE", "20000", "old")
            connection.call("Q.ADD", "q", "job", "payload")
            writers = [Writer(server, f"w{index}") for index in range(4)]
            for writer in writers:
                writer.start()
            time.sleep(choose.uniform(0, 0.2))
            require_equal(connection.call("CONFIG", "SET", "appendonly", "yes").raw, b"+OK\r\n",
                          "CONFIG SET")
            require_equal(info(connection)["aof_enabled"], "1", "aof_enabled")
            time.sleep(choose.uniform(0, 0.3))
            server.kill()
        for writer in writers:
            writer.join(20)
        server.directives["appendonly"] = "yes"
        server.start()
        with server.connect() as connection:
            require_equal(connection.call("EXISTS", "old:0", "old:19999", "q").value, 3, "the old")
            for writer in writers:
                for start in range(0, writer.acknowledged, 500):
                    end = min(start + 500, writer.acknowledged)
                    names = [f"{writer.name}:{index}" for index in range(start, end)]
                    require_equal(connection.call("EXISTS", *names).value, len(names),
                                  f"acknowledged keys from {names[0]} on, seed {seed}")


def test_appendonly_yes_at_run_time_loses_nothing(options):
    """What was acknowledged before CONFIG SET appendonly yes was, or later, survives kill -9."""
    seed = int(os.environ.get("SLUICE_SEED", random.randrange(1 << 30)))
    print(f"seed {seed}", flush=True)
    for round_number in range(3):
        switch_under_load(options, {}, seed + round_number)
        switch_under_load(options, {"appendonly": "no", "save": "3600 1"}, seed + round_number)
        switch_under_load(options, {"appendfsync": "everysec"}, seed + round_number)


def test_appendonly_back_and_forth(options):
    """appendonly yes, no and yes again: each time what is acknowledged then counts as it says."""
    with options.server({"appendonly": "yes", "save": ""}) as server:
        with server.connect() as connection:
            for number, mode in enumerate(("no", "yes", "no", "yes")):
                require_equal(connection.call("CONFIG", "SET", "appendonly", mode).raw, b"+OK\r\n")
                require_equal(value_of(connection, "appendonly"), mode)
                require_equal(info(connection)["aof_enabled"], "1" if mode == "yes" else "0")
                connection.call("SET", f"k{number}", mode)
            connection.call("MULTI")
            connection.call("CONFIG", "SET", "appendonly", "no")
            connection.call("CONFIG", "SET", "appendonly", "yes")
            require_equal(connection.call("EXEC").raw, b"*2\r\n+OK\r\n+OK\r\n", "in a transaction")
            wait_until(lambda: info(connection)["rdb_bgsave_in_progress"] == "0")
            connection.call("SET", "last", "1")
        server.kill()
        server.start()
        with server.connect() as connection:
            require_equal(connection.call("EXISTS", "k0", "k1", "k2", "k3", "last").value, 5)
            connection.call("CONFIG", "SET", "appendonly", "no")
            connection.call("SET", "volatile", "1")
        server.kill()
        server.start()
        with server.connect() as connection:
            require_equal(connection.call("EXISTS", "k0", "last", "volatile").value, 2)


def test_appendonly_yes_where_it_cannot(options):
    """Where the journal cannot begin, CONFIG SET appendonly yes says so and it stays no."""
    with options.server() as server, server.connect() as connection:
        connection.call("SET", "mine", "1")
        other = options.server({"appendonly": "yes"}, directory=server.directory)
        other.log_path += ".other"
        with other:
            other.connect().call("SET", "theirs", "1")
        require_equal(connection.call("CONFIG", "SET", "appendonly", "yes").raw,
                      config_error("appendonly", UNABLE), "the reply")
        require_equal(value_of(connection, "appendonly"), "no")
        reply = connection.call("SAVE")
        require(b"holds data that this server has not loaded" in reply.raw, reply.raw)
        connection.call("BGSAVE")
        wait_until(lambda: info(connection)["rdb_last_bgsave_status"] == "err", what="the status")
        require_equal(connection.call("GET", "mine").value, b"1", "it serves on")
        options.last = server


def fail_first_store(server):
    """Makes the creation of the store fail half way, as a disk does that is full for a moment.
    Returns a function that ends the fault."""
    link = os.path.join(server.directory, "log")
    os.symlink("/nonexistent/x", link)
    return lambda: os.unlink(link)


def has_failed(connection):
    return info(connection)["rdb_last_bgsave_status"] == "err"


def test_a_first_store_that_fails(options):
    """SAVE, BGSAVE and CONFIG SET appendonly yes succeed when what made them fail is over."""
    for words in (("SAVE",), ("BGSAVE",), ("CONFIG", "SET", "appendonly", "yes")):
        with options.server() as server:
            with server.connect() as connection:
                connection.call("SET", "a", "1")
                mend = fail_first_store(server)
                require_equal(connection.call(*words).is_error, words != ("BGSAVE",), words)
                wait_until(lambda: has_failed(connection), what=f"the failure of {words}")
                mend()
                require_equal(connection.call(*words).is_error, False, f"{words} again")
                wait_until(lambda: not has_failed(connection), what=f"{words} again")
                wait_until(lambda: info(connection)["rdb_bgsave_in_progress"] == "0")
            server.kill()
            server.start()
            with server.connect() as connection:
                require_equal(connection.call("GET", "a").value, b"1", f"{words} kept it")


def test_a_first_store_that_fails_with_save_rules(options):
    """Save rules fire once the store can be made; the end tries it too, or says what is lost."""
    for name, code in (("retry", 0), ("end", 0), ("never", 70)):
        with options.server() as server:
            with server.connect() as connection:
                mend = fail_first_store(server)
                require_equal(connection.call("CONFIG", "SET", "save", "1 1").raw, b"+OK\r\n")
                wait_until(lambda: has_failed(connection), what="the failure")
                connection.call("SET", "a", "1")
                if name != "never":
                    mend()
                if name == "retry":
                    wait_until(lambda: info(connection).get("sluice_checkpoint_number") == "1",
                               30, what="a checkpoint by itself")
            if name == "retry":
                server.kill()
            else:
                require_equal(server.stop(30), code, name)
            lost = "1 changes since the previous one are lost"
            require_equal(lost in server.log_tail(), name == "never", name)
            if name == "never":
                mend()
            server.start()
            with server.connect() as connection:
                kept = 0 if name == "never" else 1
                require_equal(connection.call("EXISTS", "a").value, kept, name)


def test_a_first_checkpoint_that_fails_with_save_rules(options):
    """INFO counts what is only in memory, and the checkpoint is tried again before the rule's time
    is over."""
    with options.server() as server:
        with server.connect() as connection:
            connection.call("SET", "large", os.urandom(4_000_000))
            limit_files(server.pid, 1_000_000)
            require_equal(connection.call("CONFIG", "SET", "save", "3600 1").raw, b"+OK\r\n")
            wait_until(lambda: has_failed(connection), what="the failure")
            require_equal(info(connection)["sluice_checkpoint_number"], "0", "the store was made")
            require_equal(info(connection)["rdb_changes_since_last_save"], "1")
            limit_files(server.pid, 100_000_000)
            wait_until(lambda: info(connection)["sluice_checkpoint_number"] == "1", 30,
                       what="a checkpoint by itself")
            require_equal(info(connection)["rdb_changes_since_last_save"], "0")
        server.kill()
        server.start()
        with server.connect() as connection:
            require_equal(connection.call("STRLEN", "large").value, 4_000_000)


def test_a_first_checkpoint_of_the_journal_that_fails(options):
    """CONFIG SET appendonly yes says so if the checkpoint that makes the journal valid fails, and
    it stays no; when what made it fail is over it succeeds."""
    for has_store in (False, True):
        with options.server() as server:
            with server.connect() as connection:
                if has_store:
                    require_equal(connection.call("SAVE").raw, b"+OK\r\n")
                connection.call("SET", "large", os.urandom(4_000_000))
                limit_files(server.pid, 1_000_000)
                require_equal(connection.call("CONFIG", "SET", "appendonly", "yes").raw,
                              config_error("appendonly", UNABLE), "the reply")
                require_equal(value_of(connection, "appendonly"), "no")
                require_equal(info(connection)["aof_enabled"], "0")
                limit_files(server.pid, 100_000_000)
                require_equal(connection.call("CONFIG", "SET", "appendonly", "yes").raw,
                              b"+OK\r\n", "again")
                connection.call("SET", "later", "1")
            server.directives["appendonly"] = "yes"
            server.kill()
            server.start()
            with server.connect() as connection:
                require_equal(connection.call("STRLEN", "large").value, 4_000_000)
                require_equal(connection.call("EXISTS", "later").value, 1)


def test_a_first_store_during_a_script(options):
    """A store that could not be attached during a script is attached by the next attempt."""
    with options.server({"busy-reply-threshold": "100"}) as server:
        with server.connect() as connection, server.connect(20) as runner:
            connection.call("SET", "a", "1")
            runner.send_bytes(encode(("BGSAVE",)) + encode(("EVAL", "while true do end", "0")))
            wait_until(lambda: "busy running a script" in server.log_tail(), 20, what="the failure")
            connection.call("SCRIPT", "KILL")
            wait_until(lambda: not connection.call("PING").is_error, what="the script's end")
            require_equal(connection.call("CONFIG", "SET", "appendfsync", "no").raw, b"+OK\r\n")
            require_equal(connection.call("SAVE").raw, b"+OK\r\n")
        server.kill()
        server.start()
        with server.connect() as connection:
            require_equal(connection.call("GET", "a").value, b"1", "kept")


def test_port_at_run_time(options):
    """CONFIG SET port moves the listener; connections stay; a port in use changes nothing."""
    with options.server() as server, server.connect() as connection:
        old = server.port
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            in_use = taken.getsockname()[1]
            refused = config_error("port", "Unable to listen on this port. Check server logs.")
            require_equal(connection.call("CONFIG", "SET", "port", str(in_use)).raw, refused)
            require_equal(connection.call("CONFIG", "SET", "maxmemory", "1gb", "port",
                                          str(in_use)).raw, refused)
            require_equal(value_of(connection, "maxmemory"), "0", "nothing of it")
            require_equal(info(connection)["tcp_port"], str(old), "the old port")
            server.connect().call("PING")
        require_equal(connection.call("CONFIG", "SET", "port", str(in_use)).raw, b"+OK\r\n")
        require_equal(value_of(connection, "port"), str(in_use))
        with harness.Connection("127.0.0.1", in_use) as fresh:
            require_equal(fresh.call("PING").raw, b"+PONG\r\n", "the new port")
            require_equal(info(fresh)["tcp_port"], str(in_use), "INFO")

        def closed():
            try:
                socket.create_connection(("127.0.0.1", old), 5).close()
                return False
            except ConnectionRefusedError:
                return True
        wait_until(closed, what="the end of the old port")
        require_equal(connection.call("PING").raw, b"+PONG\r\n", "a connection from before")
        require_equal(connection.call("CONFIG", "SET", "port", "0").raw, b"+OK\r\n", "no TCP")
        require_equal(connection.call("CONFIG", "SET", "port", str(old)).raw, b"+OK\r\n", "again")
        server.connect().call("PING")


def test_the_unix_socket_beside_a_port_at_run_time(options):
    """CONFIG SET port leaves the Unix socket open."""
    with options.server({"unixsocket": "s"}) as server, server.connect() as connection:
        require_equal(connection.call("CONFIG", "SET", "port", "0").raw, b"+OK\r\n", "no TCP")
        require_equal(connection.call("PING").raw, b"+PONG\r\n", "a connection from before")
        with socket.socket(socket.AF_UNIX) as local:
            local.settimeout(10)
            local.connect(os.path.join(server.directory, "s"))
            local.sendall(b"PING\r\n")
            require_equal(local.recv(64), b"+PONG\r\n", "the Unix socket")


def test_the_journal_at_run_time(options):
    """CONFIG SET appendfsync always syncs each change; checkpoint-log-bytes bounds the journal."""
    directives = {"appendonly": "yes", "appendfsync": "no", "save": "",
                  "checkpoint-log-bytes": "1gb"}
    with options.server(directives) as server, server.connect() as connection:
        require_equal(connection.call("CONFIG", "SET", "appendfsync", "always").raw, b"+OK\r\n")
        before = int(info(connection)["sluice_journal_syncs"])
        for number in range(20):
            connection.call("SET", "k", str(number))
        require(int(info(connection)["sluice_journal_syncs"]) >= before + 20, "syncs")
        connection.call("CONFIG", "SET", "appendfsync", "no", "checkpoint-log-bytes", "1mb")

        def completed():
            connection.call("SET", "k", "x" * 500_000)
            return info(connection)["sluice_checkpoints_completed"] != "0"
        wait_until(completed, 20, "a checkpoint")


def test_dbfilename_and_dir(options):
    """dbfilename is kept and echoed; dir says that it takes a restart."""
    with options.server() as server, server.connect() as connection:
        require_equal(connection.call("CONFIG", "SET", "dbfilename", "x.rdb").raw, b"+OK\r\n")
        require_equal(value_of(connection, "dbfilename"), "x.rdb")
        require_equal(connection.call("CONFIG", "SET", "dbfilename", "a/b").raw,
                      config_error("dbfilename", "dbfilename can't be a path, just a filename"))
        directory = value_of(connection, "dir")
        require_equal(connection.call("CONFIG", "SET", "dir", directory).raw, b"+OK\r\n")
        require_equal(connection.call("CONFIG", "SET", "dir", "/").raw,
                      config_error("dir", "changing it requires a restart of the server"))
        require_equal(value_of(connection, "dir"), directory)


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__], io_threads=(1, 2)))
