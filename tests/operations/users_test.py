#!/usr/bin/python3
"""Files of users and of the configuration: ACL LOAD, ACL SAVE, CONFIG REWRITE, as redis-server has
them, and over restarts; BGREWRITEAOF."""

import os
import re
import sys

import harness
from harness import closes, info, require, require_equal, scratch, wait_until
from harness.servers import ConfiguredServer, Server

USERS = ("user alice on #ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb ~a* "
         "resetchannels -@all +get (~s* resetchannels -@all +set)\n"
         "user default on nopass ~* &* +@all\n")
# Files that are refused as a whole.
BAD_FILES = [
    "user default on nopass ~* &* +@all\n# x\n\nuser bad on +nosuch\nfoo\nuser\nuser two words(\n",
    "user bob on nopass ~* +@all\nuser bob on\n",
    "user eve +nosuch -nosuch ~* ~a &* &b on\n",
    "  user bob on +@nosuch >pw  <pw2 (+nosuch)\r\n\tuser eve on\r\n",
    "USER bob on\nuser  bob on\n",
]


def write(path, text):
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def both(options, directives):
    """redis-server and the server under test, with a directory and an ACL file each."""
    reference = Server("redis-server", directives)
    return reference, options.server(directives)


def test_acl_files_are_read_and_refused_as_by_redis(options):
    """ACL LOAD and SAVE reply what redis-server replies, and write the same file."""
    with scratch() as directory:
        path = os.path.join(directory, "users.acl")
        write(path, USERS)
        reference, tested = both(options, {"aclfile": path})
        with reference, tested:
            connections = [reference.connect(), tested.connect()]

            def same(*words):
                replies = [connection.call(*words).raw for connection in connections]
                require_equal(replies[1], replies[0], f"reply of {words}")
                return replies[1]

            same("ACL", "LIST")
            for text in BAD_FILES:
                write(path, text)
                require(same("ACL", "LOAD").startswith(b"-ERR"), f"{text!r} was taken")
                same("ACL", "LIST")
            # Redis 7.0.15 crashes of it.
            write(path, "user bob on (~a +get\n")
            require(b"Unmatched parenthesis" in connections[1].call("ACL", "LOAD").raw, "a bracket")
            write(path, "user carol on nopass ~* +@all (~x +get) (~y +@read &c)\n\n")
            same("ACL", "LOAD")
            same("ACL", "LIST")
            os.unlink(path)
            same("ACL", "LOAD")
            files = []
            for connection in connections:
                require_equal(connection.call("ACL", "SAVE").raw, b"+OK\r\n", "ACL SAVE")
                files.append(read(path))
                os.unlink(path)
            require_equal(files[1], files[0], "the saved file")
            require("user carol on nopass" in files[1], "the file has carol")


def every_name(connection):
    """All commands and subcommands, in lower case."""
    names = set()
    for entry in connection.call("COMMAND").value:
        names.add(entry[0].decode())
        names.update(subcommand[0].decode() for subcommand in entry[9])
    return names


def test_rules_may_name_every_command_of_redis(options):
    """Rules with any command of Redis are taken and shown as there; categories hold the same."""
    own = re.compile(r"q\..*|client\|(setinfo|no-touch)|delifeq|waitaof")
    reference, tested = both(options, {})
    with reference, tested, reference.connect() as theirs, tested.connect() as ours:
        def same(*words):
            got, wanted = (connection.call(*words) for connection in (ours, theirs))
            require_equal(got.raw, wanted.raw, " ".join(words))

        names = every_name(theirs)
        require("cluster|info" in names and "geoadd" in names, "redis-server's names")
        for name in sorted(names):
            for rules in (("-@all", f"+{name}"), ("+@all", f"-{name}")):
                same("ACL", "SETUSER", "u", "reset", *rules)
                same("ACL", "GETUSER", "u")
        for word in "geoadd|x", "+cluster|nosuch":
            same("ACL", "SETUSER", "u", f"+{word}")
        for category in theirs.call("ACL", "CAT").value:
            lists = [{name.decode() for name in connection.call("ACL", "CAT", category).value}
                     for connection in (ours, theirs)]
            own_names = {name for name in lists[0] if own.fullmatch(name)}
            require_equal(lists[0] - own_names, lists[1], f"ACL CAT {category.decode()}")


def test_a_start_with_rules_of_left_out_commands(options):
    """A redis.conf and an ACL file whose users name commands that are left out are taken."""
    rules = "on >pw ~* +@all -cluster -replicaof -failover -migrate +slaveof -pfadd -module|load"
    with scratch() as directory:
        path = os.path.join(directory, "sluice.conf")
        write(path, f"port auto\nappendonly no\nsave \"\"\nhttp-port 0\ndir {directory}\n"
                    f"ready-file {directory}/ready\nuser app {rules}\n")
        server = ConfiguredServer(options.program, kind="sluice", directory=directory)
        options.last = server
        with server, server.connect() as connection:
            require_equal(connection.call("AUTH", "app", "pw").raw, b"+OK\r\n", "AUTH")
            require_equal(connection.call("SET", "k", "v").raw, b"+OK\r\n", "SET")
            require_equal(connection.call("CLUSTER", "INFO").raw.split()[0], b"-NOPERM", "CLUSTER")
        users = os.path.join(directory, "users.acl")
        write(users, f"user app {rules}\n")
        with options.server({"aclfile": users}) as server, server.connect() as connection:
            listed = connection.call("ACL", "LIST").value[0].decode()
            for rule in rules.split()[3:]:
                require(rule == "+slaveof" or rule in listed.split(), f"{rule} of {listed}")


def test_acl_load_closes_the_connections_of_other_users(options):
    """ACL LOAD ends connections that speak for anybody but the default user."""
    with scratch() as directory:
        path = os.path.join(directory, "users.acl")
        write(path, "user bob on nopass ~* &* +@all\n")
        with options.server({"aclfile": path}) as server, server.connect() as plain:
            bob = server.connect()
            bob.call("AUTH", "bob", "x")
            write(path, "user bob on >pw ~a* +get\n")
            require_equal(plain.call("ACL", "LOAD").raw, b"+OK\r\n", "ACL LOAD")
            require(closes(bob), "bob's connection stays open")
            require_equal(plain.call("PING").raw, b"+PONG\r\n", "the default user's connection")
            with server.connect() as again:
                require(again.call("AUTH", "bob", "x").is_error, "the old rules hold")
                require_equal(again.call("AUTH", "bob", "pw").raw, b"+OK\r\n", "the new password")


def test_config_set_leaves_the_default_user(options):
    """CONFIG SET of another parameter keeps the password that ACL SETUSER has set."""
    with options.server() as server, server.connect() as connection:
        connection.call("ACL", "SETUSER", "default", "resetpass", ">open")
        users = connection.call("ACL", "LIST").raw
        require_equal(connection.call("CONFIG", "SET", "maxmemory", "1gb").raw, b"+OK\r\n")
        require_equal(connection.call("ACL", "LIST").raw, users, "users")
        with server.connect() as stranger:
            require(stranger.call("PING").raw.startswith(b"-NOAUTH"), "anybody may come in")


def test_users_outlive_a_restart(options):
    """What ACL SAVE or CONFIG REWRITE wrote, selectors included, is there after a restart."""
    with scratch() as directory:
        path = os.path.join(directory, "users.acl")
        write(path, "")
        rules = (b"on", b"nopass", b"~a*", b"+get", b"(~s*", b"+@read)")
        with options.server({"aclfile": path}) as server:
            with server.connect() as connection:
                connection.call("ACL", "SETUSER", "dora", *rules)
                require_equal(connection.call("ACL", "SAVE").raw, b"+OK\r\n", "ACL SAVE")
                users = connection.call("ACL", "LIST").raw
            server.restart()
            with server.connect() as connection:
                require_equal(connection.call("ACL", "LIST").raw, users, "users after the restart")


def test_rewritten_configuration(options):
    """CONFIG REWRITE keeps comments and order, writes users with selectors, and is read back."""
    with scratch() as directory:
        path = os.path.join(directory, "sluice.conf")
        write(path, "# first\nport auto\nappendonly no\nsave \"\"\n\n# limits\nmaxmemory 100mb\n"
                    f"dir {directory}\nready-file {directory}/ready\nhttp-port 0\n"
                    "user carl on nopass ~* +@all (~a* +get)\n# last\n")
        server = ConfiguredServer(options.program, kind="sluice", directory=directory)
        options.last = server
        server.start()
        with server.connect() as connection:
            for words in [("CONFIG", "SET", "maxmemory", "200mb", "timeout", "7"),
                          ("ACL", "SETUSER", "carl", "(%R~b", "+mget)"),
                          ("CONFIG", "REWRITE")]:
                require_equal(connection.call(*words).raw, b"+OK\r\n", " ".join(words))
            require(connection.call("CONFIG", "SET", "timeout", "8", "maxmemory", "x").is_error,
                    "a bad value was taken")
            require_equal(connection.call("CONFIG", "GET", "timeout").value[1], b"7",
                          "timeout after a CONFIG SET that was refused as a whole")
            users = connection.call("ACL", "LIST").raw
        text = read(path)
        for before, after in [("# first", "port auto"), ("# limits", "maxmemory 200mb"),
                              ("maxmemory 200mb", "user carl on nopass"), ("user carl", "# last"),
                              ("# last", "# Generated by CONFIG REWRITE"),
                              ("# Generated by CONFIG REWRITE", "timeout 7")]:
            require(-1 < text.find(before) < text.find(after), f"{before}, then {after}: {text}")
        require("(%R~b resetchannels -@all +mget)" in text, f"carl's second selector: {text}")
        server.restart()
        with server.connect() as connection:
            require_equal(connection.call("CONFIG", "GET", "timeout").value[1], b"7", "timeout")
            require_equal(connection.call("ACL", "LIST").raw, users, "users after the restart")


def test_what_a_rewritten_configuration_must_not_lose(options):
    """REWRITE keeps all otlp-header lines and both limits, and adds no line beside requirepass."""
    kept = ["requirepass secret", "otlp-header Authorization \"Bearer a\"", "otlp-header Tenant b",
            "client-output-buffer-limit pubsub 64mb 16mb 30"]
    with scratch() as directory:
        path = os.path.join(directory, "sluice.conf")
        write(path, "\n".join(["port auto", "appendonly no", "save \"\"", f"dir {directory}",
                               f"ready-file {directory}/ready", "http-port 0"] + kept) + "\n")
        server = ConfiguredServer(options.program, kind="sluice", directory=directory)
        options.last = server
        with server, server.connect() as connection:
            connection.call("AUTH", "secret")
            require_equal(connection.call("CONFIG", "REWRITE").raw, b"+OK\r\n", "REWRITE")
        lines = read(path).splitlines()
        for line in kept:
            require_equal(lines.count(line), 1, f"{line} in {lines}")
        require(not any(line.startswith("user ") for line in lines), f"a user in {lines}")


def test_bgrewriteaof_is_a_checkpoint(options):
    """BGREWRITEAOF writes a checkpoint."""
    with options.server({"appendonly": "yes"}) as server, server.connect() as connection:
        connection.call("SET", "k", "v")
        require_equal(connection.call("BGREWRITEAOF").raw,
                      b"+Background append only file rewriting started\r\n", "the reply")
        wait_until(lambda: info(connection)["sluice_checkpoints_completed"] != "0", 20,
                   "the checkpoint")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__]))
