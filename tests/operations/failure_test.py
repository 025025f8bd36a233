#!/usr/bin/python3
"""Failures: of the disk, of memory, of a script that does not end, of a client in between."""

import os
import signal
import sys
import threading
import time

import harness
from harness import all_stopped, closes, info, require, require_equal, stopped, wait_until
from harness.holds import measured
from harness.surroundings import JOURNAL_FAILED, largest_file, limit_files

ENDS_WITHIN_S = 6
SAVED = {"appendonly": "no", "save": "3600 1"}


def test_a_failed_write_stops_the_server(options):
    """After a failed write: -MISCONF, exit 75, and what was acknowledged is kept."""
    for mode in ("always", "everysec", "no"):
        server = options.server({"appendonly": "yes", "appendfsync": mode})
        with server:
            acknowledged, errors = {}, []

            def write(index, connection):
                try:
                    for number in range(100_000):
                        reply = connection.call("SET", f"{index}:{number}", "x" * 100)
                        if reply.is_error:
                            errors.append(reply.raw)
                            return
                        acknowledged[index] = number
                except OSError:
                    pass
            connections = [server.connect(10) for _ in range(4)]
            clients = [threading.Thread(target=write, args=(index, connection))
                       for index, connection in enumerate(connections)]
            for client in clients:
                client.start()
            wait_until(lambda: len(acknowledged) == 4, what="the first replies")
            limit_files(server.pid, largest_file(server.directory) + 100_000)
            require_equal(server.process.wait(20), JOURNAL_FAILED, f"exit code with {mode}")
            for client in clients:
                client.join()
            require(all(error.startswith(b"-MISCONF") for error in errors), errors[:1])
            require(errors, f"{mode}: nobody was told -MISCONF")
            require("The journal failed" in server.log_tail(), server.log_tail())
            server.process = None
            server.start()
            with server.connect() as connection:
                for index, last in acknowledged.items():
                    for number in range(last + 1):
                        require_equal(connection.call("EXISTS", f"{index}:{number}").raw, b":1\r\n",
                                      f"{mode}: {index}:{number} of {last}")
            for connection in connections:
                connection.close()


def test_a_damaged_directory_is_refused(options):
    """A damaged data directory: exit 1, naming the place, and no shorter history in silence."""
    server = options.server({"appendonly": "yes"})
    with server:
        with server.connect() as connection:
            connection.pipeline([("SET", f"key:{number}", "x" * 100) for number in range(1000)])
        server.stop()
        for name in ("high-water-mark", "FORMAT"):
            path = os.path.join(server.directory, name)
            with open(path, "rb") as file:
                whole = file.read()
            os.truncate(path, max(len(whole) - 2, 0))
            code, output = options.run("--dir", server.directory, "--port", "auto",
                                       "--http-port", "0")
            require_equal(code, 1, f"exit code without the end of {name}")
            require(name in output, output)
            with open(path, "wb") as file:
                file.write(whole)
        server.start()
        with server.connect() as connection:
            require_equal(connection.call("DBSIZE").raw, b":1000\r\n")


def test_out_of_memory(options):
    """At maxmemory what grows answers -OOM; reading, popping and deleting go on."""
    with options.server() as server:
        with server.connect() as connection:
            connection.call("RPUSH", "jobs", "a", "b")
            used = int(info(connection)["used_memory"])
            connection.call("CONFIG", "SET", "maxmemory", str(used + 5_000_000))
            refused = None
            for number in range(1000):
                reply = connection.call("SET", f"k{number}", "x" * 100_000)
                if reply.is_error:
                    refused = reply.raw
                    break
                time.sleep(0.002)
            require_equal(refused, b"-OOM command not allowed when used memory > 'maxmemory'.\r\n")
            require(40 <= number <= 60, f"after {number} values of 100 kB")
            # What a refused command had taken for its arguments is free again.
            for size in (5000, 50):
                wait_until(lambda size=size: connection.call("RPUSH", "others", "x" * size)
                           .raw.startswith(b"-OOM"), what="a refusal: RPUSH grows")
            # What is queued takes memory, too.
            connection.call("MULTI")
            wait_until(lambda: connection.call("GET", "k0").raw.startswith(b"-OOM"),
                       what="a refusal in MULTI")
            require(connection.call("EXEC").raw.startswith(b"-EXECABORT"), "EXEC")
            require_equal(connection.call("LPOP", "jobs").raw, b"$1\r\na\r\n")
            require_equal(connection.call("GET", "k0").value, b"x" * 100_000)
            for victim in range(20):
                require_equal(connection.call("DEL", f"k{victim}").raw, b":1\r\n")
            wait_until(lambda: connection.call("RPUSH", "jobs", "c").raw == b":2\r\n",
                       what="room again")


def end_of(server, code, what="exit code"):
    """Waits for the end; returns how many seconds that took."""
    began = time.monotonic()
    require_equal(server.process.wait(60), code, what)
    server.process = None
    return time.monotonic() - began


def require_quick(end):
    """A server counts looks while it ends, so that each one which is late makes that longer."""
    took_s = measured(end, lambda seconds: seconds < ENDS_WITHIN_S)
    require(took_s[-1] < ENDS_WITHIN_S, f"the ends took {took_s} s")


def busy_server(options):
    server = options.server({"busy-reply-threshold": "100"}).start()
    connection = server.connect(20)
    connection.call("SET", "a", "1")
    return server, connection


def wait_until_busy(server):
    """Until a script has run for longer than busy-reply-threshold."""
    with server.connect() as newcomer:
        wait_until(lambda: newcomer.call("PING").raw.startswith(b"-BUSY"), what="BUSY")


def test_a_script_that_does_not_end(options):
    """A script beyond its time: others get BUSY, SCRIPT KILL ends it, and service resumes."""
    server, runner = busy_server(options)
    with server:
        # Connections on every I/O thread, made before the script runs.
        others = [server.connect() for _ in range(8)]
        for other in others:
            other.call("PING")
        runner.send("EVAL", "while true do end", "0")
        wait_until_busy(server)
        for other in others:
            reply = other.call("GET", "a")
            require(reply.raw.startswith(b"-BUSY Redis is busy running a script"), reply.raw)
        others[1].close()  # somebody leaves meanwhile
        require_equal(others[0].call("SCRIPT", "KILL").raw, b"+OK\r\n")
        require(runner.read_reply().is_error, "the script ends with an error")
        for other in [others[0], *others[2:], runner]:
            require_equal(other.call("GET", "a").raw, b"$1\r\n1\r\n")
            other.close()
        require_equal(server.stop(), 0, "exit code")


def test_requests_from_before_a_script_is_busy(options):
    """Who waits for a script's shards before it is called busy is served BUSY and can kill it."""
    server, runner = busy_server(options)
    with server:
        others = [server.connect(10) for _ in range(8)]
        for other in others:
            other.call("SET", "b", "1", "PX", "200")  # and a timer that needs the shards
        runner.send("EVAL", "while true do end", "0")
        time.sleep(0.02)
        for other in others[:4]:
            other.send("GET", "a")
        wait_until_busy(server)
        require_equal(others[7].call("SCRIPT", "KILL").raw, b"+OK\r\n")
        require(runner.read_reply().is_error, "the script ends with an error")
        for other in others[:4]:
            reply = other.read_reply().raw
            require(reply == b"$1\r\n1\r\n" or reply.startswith(b"-BUSY"), reply)
        wait_until(lambda: runner.call("EXISTS", "b").raw == b":0\r\n", what="the expiry")
        for connection in [*others, runner]:
            connection.close()


def test_a_time_out_during_a_script(options):
    """A blocked client whose time ends while a script is beyond its own times out after it."""
    server, runner = busy_server(options)
    with server, runner:
        blocked = [server.connect() for _ in range(8)]
        for connection in blocked:
            connection.send("BLPOP", "nothing", "3")
        wait_until(lambda: info(runner, "clients")["blocked_clients"] == "8", what="the blocking")
        runner.send("EVAL", "while true do end", "0")
        wait_until_busy(server)
        time.sleep(3.1)
        with server.connect() as other:
            require_equal(other.call("SCRIPT", "KILL").raw, b"+OK\r\n")
        require(runner.read_reply().is_error, "the script ends with an error")
        for connection in blocked:
            require_equal(connection.read_reply().raw, b"*-1\r\n", "the reply of the time-out")
            connection.close()


def test_shutdown_out_of_a_script(options):
    """SHUTDOWN NOSAVE ends the server while a script that wrote runs."""
    def end():
        server, runner = busy_server(options)
        with server, runner, server.connect() as other:
            other.call("PING")
            runner.send("EVAL", "redis.call('SET', 'a', '2') while true do end", "0")
            wait_until_busy(server)
            reply = other.call("SCRIPT", "KILL")
            require(reply.raw.startswith(b"-UNKILLABLE"), reply.raw)
            other.send("SHUTDOWN", "NOSAVE")
            require(closes(other), "the connection is closed")
            return end_of(server, 0)
    require_quick(end)


def test_sigterm_during_a_script(options):
    """SIGTERM during a script that never ends and has only read: over within 5 s, nothing lost."""
    def end(words):
        with options.server({**SAVED, "busy-reply-threshold": "100"}) as server:
            with server.connect(20) as runner:
                runner.call("SET", "a", "1")
                runner.call("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('f', "
                                                "function() while true do end end)")
                runner.send(*words)
                wait_until_busy(server)
                server.process.send_signal(signal.SIGTERM)
                took_s = end_of(server, 0)
            require("A command does not end" not in server.log_tail(), server.log_tail())
            server.start()
            with server.connect() as connection:
                require_equal(connection.call("EXISTS", "a").value, 1, words)
            return took_s
    for words in ("EVAL", "while true do end", "0"), ("FCALL", "f", "0"):
        require_quick(lambda words=words: end(words))


def test_sigterm_before_the_last_checkpoint(options):
    """SIGTERM while a command keeps the last checkpoint from being written: exit 70, and why."""
    stuck = ("EVAL", "redis.call('SET', 'b', '2') while true do end", "0")

    def end(directives, changed, code):
        with options.server({**directives, "busy-reply-threshold": "100"}) as server:
            with server.connect(20) as runner:
                if changed:
                    runner.call("SET", "a", "1")
                runner.send(*stuck)
                wait_until_busy(server)
                server.process.send_signal(signal.SIGTERM)
                took_s = end_of(server, code, f"{directives}, {changed}: exit code")
            log = server.log_tail()
            require(("1 changes since the previous one are lost" in log) == (code == 70), log)
            server.start()
            with server.connect() as connection:
                kept = changed and code == 0
                require_equal(connection.call("EXISTS", "a", "b").value, 1 if kept else 0, "kept")
            return took_s

    for case in (SAVED, True, 70), (SAVED, False, 0), ({"appendonly": "yes"}, True, 0):
        require_quick(lambda case=case: end(*case))


def test_a_stopped_process_goes_on(options):
    """SIGSTOP for a while: clients wait and are served afterwards."""
    with options.server({"appendonly": "yes"}) as server:
        with server.connect(10) as connection:
            connection.call("SET", "a", "1")
            with stopped(server.pid):
                connection.send("GET", "a")
                time.sleep(1.0)
                # Unless something else has let it go on.
                require(not (connection.has_input(0.01) and all_stopped(server.pid)),
                        "it is stopped")
            require_equal(connection.read_reply().raw, b"$1\r\n1\r\n")


if __name__ == "__main__":
    sys.exit(harness.run(sys.modules[__name__], io_threads=(1, 4)))
