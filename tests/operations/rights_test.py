#!/usr/bin/python3
"""What an ACL user may do at the seams of commands: later calls of scripts, patterns of SORT.

    tests/operations/rights_test.py [--server build/release/bin/sluice-server] [--only part]
"""

import contextlib
import sys

from harness import info, require, require_equal, run, wait_until

NO_KEY = b"The user executing the script can't access at least one of the keys"
NO_COMMAND = b"The user executing the script can't run this command"
NO_CHANNEL = b"The user executing the script can't publish to the channel"


@contextlib.contextmanager
def as_eve(server, *rules):
    """A connection of the user eve, who has these rights."""
    with server.connect() as operator, server.connect() as eve:
        made = operator.call("ACL", "SETUSER", "eve", "reset", "on", ">pw", *rules)
        require_equal(made.raw, b"+OK\r\n", f"ACL SETUSER {rules}")
        require_equal(eve.call("AUTH", "eve", "pw").raw, b"+OK\r\n", "AUTH")
        yield eve


def refused(reply, part, what):
    require(reply.is_error and part in reply.raw, f"{what}: {reply.raw!r}")


def test_each_call_of_a_script_is_checked(options):
    """Keys, commands and channels are refused behind a script's first write as before it."""
    writes = {"nothing": "", "a write": "redis.call('SET', 'ok:1', 'x') ",
              "writes of each kind": "redis.call('SET', 'ok:1', 'x') redis.call('LPUSH', 'ok:l', 1)"
                                     " redis.call('PUBLISH', 'ok', 1) ",
              "a queue's write": "redis.call('Q.ADD', 'ok:q', '*', 'x') "}
    forbidden = {"redis.call('GET', 'secret')": NO_KEY,
                 "redis.call('SET', 'secret', 'mine')": NO_KEY,
                 "redis.call('DEL', 'ok:1', 'secret')": NO_KEY,
                 "redis.call('RENAME', 'ok:1', 'secret')": NO_KEY,
                 "redis.call('Q.ADD', 'secret', '*', 'x')": NO_KEY,
                 "redis.call('HSET', 'ok:h', 'f', 'v')": NO_COMMAND,
                 "redis.call('FLUSHALL')": NO_COMMAND,
                 "redis.call('PUBLISH', 'other', 1)": NO_CHANNEL}
    with options.server({"appendonly": "no"}) as server, server.connect() as operator:
        operator.call("SET", "secret", "s")
        with as_eve(server, "~ok:*", "&ok", "+@all", "-@hash", "-@dangerous") as eve:
            library = "#!lua name=lib\n"
            for number, before in enumerate(writes.values()):
                for index, call in enumerate(forbidden):
                    name = f"f{number}_{index}"
                    library += (f"redis.register_function('{name}', function() {before}"
                                f"return {call} end)\n")
            require(not operator.call("FUNCTION", "LOAD", library).is_error, "FUNCTION LOAD")
            for number, (what, before) in enumerate(writes.items()):
                for index, (call, part) in enumerate(forbidden.items()):
                    eve.call("UNLINK", "ok:1", "ok:l", "ok:q")
                    told = f"{call} behind {what}"
                    refused(eve.call("EVAL", f"{before}return {call}", 0), part, told)
                    refused(eve.call("FCALL", f"f{number}_{index}", 0), part, told)
                    caught = call.replace("redis.call", "redis.pcall")
                    refused(eve.call("EVAL", f"{before}return {caught}", 0), part, told)
                    require_equal(operator.call("GET", "secret").value, b"s", told)
                    require_equal(eve.call("EXISTS", "ok:1", "ok:l", "ok:q").value,
                                  {"nothing": 0, "a write": 1, "writes of each kind": 2,
                                   "a queue's write": 1}[what], told)


def test_patterns_of_sort_read_every_key(options):
    """BY and GET with a pattern require the right to read all keys; writing does not suffice."""
    denied = b"denied due to insufficient ACL permissions"
    forms = (["SORT", "list", "BY", "w_*"], ["SORT", "list", "GET", "w_*"],
             ["SORT_RO", "list", "BY", "w_*"], ["SORT", "list", "BY", "nosort", "GET", "w_*->f"],
             ["SORT", "list", "GET", "#"], ["SORT", "list", "GET", "w_*", "STORE", "kept"])
    may = (["allkeys"], ["~*"], ["%R~*", "%W~kept"], ["%RW~*"], ["%W~*", "%R~*"],
           ["%R~list", "%W~*", "~*"])
    may_not = (["%R~list", "%W~*"], ["~list", "~w_*", "~kept", "%W~*"], ["~list*", "%W~kept"],
               ["%R~list", "%R~w_*", "%W~*"], ["%R~**", "%W~*"])
    with options.server({"appendonly": "no"}) as server, server.connect() as operator:
        operator.call("RPUSH", "list", "1", "2")
        operator.call("MSET", "w_1", "secret", "w_2", "another")
        for rules, allowed in [(each, True) for each in may] + [(each, False) for each in may_not]:
            with as_eve(server, "+@all", *rules) as eve:
                for form in forms:
                    if form[0] == "SORT" and "STORE" not in form and not allowed:
                        require(not eve.call("SORT", "list").is_error, f"{rules} SORT")
                    reply = eve.call(*form)
                    if allowed:
                        require(not reply.is_error or b"double" in reply.raw,
                                f"{rules} {form}: {reply.raw!r}")
                    else:
                        refused(reply, denied, f"{rules} {form}")
                        require_equal(operator.call("EXISTS", "kept").value, 0, "kept")
            operator.call("DEL", "kept")
        # A selector of the user's is another set of rights, whole by itself.
        with as_eve(server, "%R~list", "+@all", "(%W~* +sort)") as eve:
            refused(eve.call("SORT", "list", "GET", "w_*"), denied, "a selector that writes")
        with as_eve(server, "%R~list", "+@all", "(~* +sort)") as eve:
            require_equal(eve.call("SORT", "list", "GET", "w_*").value, [b"secret", b"another"],
                          "a selector that reads")


def test_streams_behind_options_that_are_called_streams(options):
    """A consumer or group named STREAMS does not hide the streams that are read."""
    with options.server({"appendonly": "no"}) as server, server.connect() as operator:
        for stream in ("secret", "STREAMS"):
            operator.call("XADD", stream, "1-1", "f", "v")
            for group in ("g", "STREAMS"):
                operator.call("XGROUP", "CREATE", stream, group, "0")
        with as_eve(server, "~STREAMS", "~c", "+@all") as eve:
            for words in (["NOACK", "GROUP", "g", "STREAMS"], ["GROUP", "g", "STREAMS"],
                          ["COUNT", "1", "GROUP", "STREAMS", "c"]):
                denied = eve.call("XREADGROUP", *words, "STREAMS", "secret", ">")
                refused(denied, b"-NOPERM", f"{words}")
                read = eve.call("XREADGROUP", *words, "STREAMS", "STREAMS", "0")
                require(not read.is_error, f"{words}: {read.raw!r}")
                keys = operator.call("COMMAND", "GETKEYS", "XREADGROUP", *words, "STREAMS", "a",
                                     "b", ">", ">")
                require_equal(keys.value, [b"a", b"b"], f"keys of {words}")


def test_who_loses_a_right_waits_no_longer(options):
    """Waits at queues end with NOPERM when the user loses the right; others get the job."""
    waits = (["Q.POP", "1", "ok:q", "BLOCK", "0"], ["Q.EVENTS", "ok:q", "$", "BLOCK", "0"],
             ["Q.GET", "ok:q", "there", "WAIT", "0"], ["Q.LOG", "ok:q", "there", "BLOCK", "0"],
             ["Q.ADD", "ok:q", "*", "x", "DELAY", "1000000", "WAIT", "0"])
    with options.server({"appendonly": "no"}) as server, server.connect() as operator:
        operator.call("Q.ADD", "ok:q", "there", "x", "DELAY", "1000000")
        for taken in (["~other"], ["off", "-@all"]):
            for wait in waits:
                with as_eve(server, "~ok:*", "+@all") as eve:
                    eve.send(*wait)
                    wait_until(lambda: info(operator)["blocked_clients"] == "1", what=f"{wait}")
                    # A change that leaves the right leaves the wait.
                    operator.call("ACL", "SETUSER", "eve", "+@all", "~more")
                    require_equal(eve.has_input(0.1), False, f"{wait} ends")
                    operator.call("ACL", "SETUSER", "eve", "resetkeys", *taken)
                    refused(eve.read_reply(), b"-NOPERM", f"{wait} without {taken}")
                    require_equal(info(operator)["blocked_clients"], "0", "blocked clients")
                    require(eve.call("PING").is_error == (taken[0] == "off"), "a connection")
        operator.call("Q.ADD", "ok:q", "job", "x")
        jobs = operator.call("Q.POP", "1", "ok:q").value
        require_equal(jobs[0][jobs[0].index(b"id") + 1], b"job", "the job for others")


def test_long_names_in_the_log_of_refusals(options):
    """ACL LOG keeps the first 1,024 bytes of a key and of a user's name."""
    long = b"k" * 5000
    with options.server({"appendonly": "no"}) as server, server.connect() as operator:
        with as_eve(server, "~ok", "+@all") as eve:
            eve.call("GET", long)
            eve.call("EVAL", "return redis.call('GET', ARGV[1])", 0, long)
            eve.call("AUTH", long, "x")
        entries = [dict(zip(entry[::2], entry[1::2]))
                   for entry in operator.call("ACL", "LOG").value]
        shown = long[:1024] + b"... (3976 more bytes)"
        require_equal([entry[b"username"] for entry in entries], [shown, b"eve", b"eve"], "users")
        require_equal([entry[b"object"] for entry in entries], [b"AUTH", shown, shown], "objects")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
