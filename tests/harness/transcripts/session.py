"""Runs the steps of a transcript on two servers, command by command, and compares what they answer.

A `Session` holds one server's connections for the length of one transcript. A `Pair` drives two
sessions in step: each command is sent to both before either reply is read, so that time passes
alike for both. Used by one thread.
"""

import re
import time

from harness.resp import Connection, ConnectionClosed, ProtocolError, Reply, ReplyTimeout, encode
from harness.servers import LOOPBACK
from harness.transcripts.compare import equal
from harness.transcripts.transcript import Step

QUIET_S = 0.06
BRIEF_S = 0.003
LATE_S = 2.0
SETTLE_S = 1.0
CONTEXT = 4
MAX_SCAN_CALLS = 20000
# Matches __key*__:*, the pattern of all keyspace notifications.
END_OF_EVENTS = b"__key-end__:"
VARIABLE = re.compile(rb"\$\{(\w+)\}")


class Outcome:
    """What came instead of a reply. It compares by `raw`, like a reply."""

    def __init__(self, text, rest=b""):
        self.text = text
        self.rest = rest
        self.raw = text.encode() + rest
        self.tree = ("-", self.raw)

    def __repr__(self):
        return f"{self.text}{self.rest!r}" if self.rest else self.text


class Failure:
    def __init__(self, where, command, expected, actual, before=()):
        self.where = where
        self.command = command
        self.before = list(before)
        self.expected = expected
        self.actual = actual

    def text(self, limit=1500):
        before = " ; ".join(command[:80] for command in self.before)
        return (f"{self.where}\n  after:     {before}\n  command:   {self.command[:limit]}\n"
                f"  reference: {show(self.expected, limit)}\n"
                f"  server:    {show(self.actual, limit)}")


def show(result, limit=1500):
    if isinstance(result, (Reply, Outcome)):
        result = result.raw if isinstance(result, Reply) else repr(result)
    text = repr(result) if isinstance(result, bytes) else str(result)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


class Session:
    def __init__(self, server, protocol, timeout_s):
        self.server = server
        self.protocol = protocol
        self.timeout_s = timeout_s
        self.variables = {}
        self.connections = {}
        self.pending = {}
        self.control = self._open()
        password = server.directives.get("requirepass")
        if password:
            self.control.call("AUTH", password)

    def _open(self):
        return Connection(LOOPBACK, self.server.port, self.timeout_s)

    def connection(self, number):
        if number not in self.connections:
            self.connections[number] = self._open()
            self.pending[number] = 0
            if self.protocol == 3:
                self.connections[number].call("HELLO", "3")
        return self.connections[number]

    def drop(self, number):
        if number in self.connections:
            self.connections.pop(number).close()

    def send(self, number, arguments):
        def value(match):
            return self.variables.get(match.group(1), match.group(0))
        arguments = [VARIABLE.sub(value, argument) for argument in arguments]
        self.connection(number).send_bytes(encode(arguments))

    def read(self, number):
        """The next reply; an Outcome if none comes. A closed connection is opened again later."""
        try:
            return self.connection(number).read_reply()
        except ReplyTimeout:
            return Outcome("no reply")
        except ConnectionClosed as closed:
            self.drop(number)
            return Outcome("closed ", closed.rest)
        except ProtocolError as error:
            self.drop(number)
            return Outcome(f"not RESP: {error}")

    def reset(self):
        for command in (("FLUSHALL",), ("SCRIPT", "FLUSH"), ("SLOWLOG", "RESET")):
            self.control.call(*command)

    def barrier(self):
        """Returns once what was sent before on any connection has been read and answered.

        redis-server reads all its sockets in one turn and writes all replies in the next.
        """
        for _ in range(2):
            self.control.call("PING")

    def client_count(self, field):
        text = self.control.call("INFO", "clients").tree[1]
        match = re.search(field + rb":(\d+)", text)
        return int(match.group(1)) if match else -1

    def wait_until(self, condition):
        deadline = time.monotonic() + SETTLE_S
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.001)

    def send_async(self, number, arguments):
        """Sends without reading. Returns once the client is blocked, or its reply is there."""
        connection = self.connection(number)
        before = self.client_count(b"blocked_clients")
        self.send(number, arguments)
        self.wait_until(lambda: connection.has_input() or
                        self.client_count(b"blocked_clients") > before)

    def close_connection(self, number):
        """Closes, and returns once the server has noticed."""
        before = self.client_count(b"connected_clients")
        self.drop(number)
        self.wait_until(lambda: self.client_count(b"connected_clients") < before)

    def scan(self, number, arguments):
        """Runs a SCAN command to its end. Returns its set of elements, or what went wrong."""
        name = arguments[0].upper()
        at = 1 if name == b"SCAN" else 2
        paired = name in (b"HSCAN", b"ZSCAN")
        found = set()
        arguments = list(arguments)
        for _ in range(MAX_SCAN_CALLS):
            self.send(number, arguments)
            reply = self.read(number)
            if reply.tree[0] != "*" or len(reply.tree[1]) != 2:
                return reply
            cursor, (_, items) = reply.tree[1]
            if paired:
                items = zip(items[::2], items[1::2])
            found.update(items)
            if cursor[1] == b"0":
                return sorted(found, key=repr)
            arguments[at] = cursor[1]
        return Outcome("the scan does not end")

    def events(self, number):
        """All that has come to a connection since it was read last: messages, and the replies of
        commands that were not awaited. It listens to __key*__:*."""
        found = []
        if self.pending.get(number):
            # What a server tells at the end of a round of its loop (the keys of BCAST) may come
            # behind the end that it read in that round, but not behind one that is sent then.
            for _ in range(2):
                self.send(number, [b"PING", END_OF_EVENTS])
                if not self._read_to_end_of_events(number, found):
                    break
            self.pending[number] = 0
        else:
            self.connection(number)
            self.control.call("PUBLISH", END_OF_EVENTS, "")
            self._read_to_end_of_events(number, found)
        return found

    def _read_to_end_of_events(self, number, found):
        """False: the connection has failed, which is the last that was found."""
        while True:
            reply = self.read(number)
            if isinstance(reply, Outcome):
                found.append(reply.raw)
                return False
            if END_OF_EVENTS in reply.raw:
                return True
            found.append(reply.raw)

    def close(self):
        for connection in self.connections.values():
            connection.close()
        self.connections.clear()
        self.control.close()


class Pair:
    """Runs one transcript on `reference` and `tested`; collects failures."""

    def __init__(self, reference, tested, protocol, name, timeout_s=20.0):
        self.sessions = [Session(server, protocol, timeout_s) for server in (reference, tested)]
        self.protocol = protocol
        self.name = name
        self.current = 1
        self.failures = []
        self.compared = 0
        self.in_step = True
        self.recent = []
        # Connections on which the last thing sent may be half a command.
        self.sent_raw = set()
        for session in self.sessions:
            session.reset()

    def run(self, steps):
        for step in steps:
            if not self.in_step:
                break
            self.recent = self.recent[-CONTEXT:] + [step.text]
            getattr(self, "_do_" + step.kind)(step)
        if self.in_step:
            self._check_nothing_is_left()
        return self.failures

    def close(self):
        for session in self.sessions:
            session.close()

    # -- Comparison ---------------------------------------------------------------------------

    def _both(self, action):
        return [action(session) for session in self.sessions]

    def _fail(self, step, expected, actual):
        where = f"{self.name}:{step.line_number} (RESP{self.protocol})"
        self.failures.append(Failure(where, step.text, expected, actual, self.recent[:-1]))

    def _compare(self, step, expected, actual):
        self.compared += 1
        if not equal(step.rules, expected, actual):
            self._fail(step, expected, actual)
        outcomes = [isinstance(result, Outcome) for result in (expected, actual)]
        if all(outcomes) and expected.text == "no reply":
            self._fail(step, "no reply", "no reply, which a transcript must not ask for")
        # When only one of them answered, whatever follows would be compared with its neighbour.
        if any(outcomes) and not (all(outcomes) and expected.text.startswith("closed")):
            self.in_step = False

    def _read_and_compare(self, step, count):
        for _ in range(count):
            if self.in_step:
                self._compare(step, *self._both(lambda session: session.read(self.current)))

    def _check_nothing_is_left(self):
        """A PING on every connection: a surplus or missing reply shows here."""
        for number in sorted(self.sessions[0].connections):
            waiting = self.sessions[0].pending.get(number) or number in self.sent_raw
            if waiting or number not in self.sessions[1].connections:
                continue
            self.current = number
            step = Step(0, f"PING at the end on connection {number}", "command")
            self._both(lambda session: session.send(self.current, [b"PING"]))
            self._read_and_compare(step, 1)

    # -- Steps --------------------------------------------------------------------------------

    def _do_command(self, step):
        self.sent_raw.discard(self.current)
        if step.is_scan:
            self._scan(step)
            return
        if step.is_async:
            self._both(lambda session: session.send_async(self.current, step.arguments))
            for session in self.sessions:
                session.pending[self.current] += 1
            return
        self._both(lambda session: session.send(self.current, step.arguments))
        if not step.variable:
            self._read_and_compare(step, step.replies)
            return
        step.rules.type_only = True
        replies = self._both(lambda session: session.read(self.current))
        self._compare(step, *replies)
        for session, reply in zip(self.sessions, replies):
            if isinstance(reply.tree[1], bytes):
                session.variables[step.variable] = reply.tree[1]

    def _scan(self, step):
        expected, actual = self._both(lambda session: session.scan(self.current, step.arguments))
        if isinstance(expected, list) and isinstance(actual, list):
            self.compared += 1
            if expected != actual:
                self._fail(step, expected, actual)
        elif isinstance(expected, list) or isinstance(actual, list):
            self._fail(step, expected, actual)
        else:
            self._compare(step, expected, actual)

    def _do_read(self, step):
        count = step.value or 1
        for session in self.sessions:
            session.pending[self.current] = max(0, session.pending.get(self.current, 0) - count)
        self._read_and_compare(step, count)

    def _do_events(self, step):
        expected, actual = self._both(lambda session: session.events(self.current))
        self.compared += len(expected) + 1
        if expected != actual:
            self._fail(step, expected, actual)

    def _do_conn(self, step):
        self.current = step.value
        self._both(lambda session: session.connection(self.current))

    def _do_proto(self, step):
        version = step.value or self.protocol
        for session in self.sessions:
            session.send(self.current, [b"HELLO", b"%d" % version])
            session.read(self.current)

    def _do_sleep(self, step):
        time.sleep(step.value)

    def _do_close(self, step):
        number = step.value or self.current
        self._both(lambda session: session.close_connection(number))

    def _do_idle(self, step):
        self.compared += 1
        found = self._both(lambda session: session.connection(self.current).has_input(QUIET_S))
        if found[0] or found[1]:
            self._fail(step, *["input" if one else "silence" for one in found])

    def _do_eof(self, step):
        self.compared += 1
        ends = self._both(lambda session: self.current not in session.connections or
                          session.connection(self.current).at_end(2.0))
        if ends[0] != ends[1]:
            self._fail(step, *["closed" if end else "open" for end in ends])
        self._both(lambda session: session.drop(self.current))

    @staticmethod
    def _more(connection, data):
        rest, closed = connection.read_quiet(LATE_S)
        return data + rest, closed

    def _do_reconnect(self, _step):
        self.sent_raw.discard(self.current)
        self._both(lambda session: session.drop(self.current))

    def _do_raw(self, step):
        self.sent_raw.add(self.current)
        connections = self._both(lambda session: session.connection(self.current))
        for connection in connections:
            connection.send_bytes(step.value)
        for session in self.sessions:
            session.barrier()
        expected = connections[0].read_quiet(BRIEF_S)
        actual = connections[1].read_quiet(BRIEF_S, len(expected[0]), 2.0)
        if expected != actual:
            # On a busy machine one of them may only be late: a difference must last.
            expected, actual = [
                (data, closed) if closed else self._more(connection, data)
                for connection, (data, closed) in zip(connections, (expected, actual))]
        results = [Outcome("closed: " if closed else "open: ", data)
                   for data, closed in (expected, actual)]
        self.compared += 1
        if not equal(step.rules, *results):
            self._fail(step, *results)
        for session, (_, closed) in zip(self.sessions, (expected, actual)):
            if closed:
                session.drop(self.current)
