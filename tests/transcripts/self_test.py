#!/usr/bin/python3
"""Shows that the transcript runner finds differences: redis-server against one that differs."""

import pathlib
import tempfile
import types
import unittest

import generate
import run
from harness.resp import Connection, Reply, encode, quote
from harness.transcripts.compare import Rules, equal
from harness.transcripts.pools import Command, rules_of
from harness.transcripts.transcript import TranscriptError, parse, split_arguments


def options(**changes):
    values = {"reference": "redis-server", "server": "redis-server", "durable": False, "seed": 1,
              "timeout": 2.0, "show": 5, "verbose": False, "save": None, "commands": 600,
              "protocols": [2, 3], "names": []}
    return types.SimpleNamespace(**{**values, **changes})


class FewerDatabases(run.Servers):
    """The tested server has four databases instead of sixteen."""

    def _make(self, program, directives):
        server = super()._make(program, directives)
        if hasattr(self, "reference"):
            server.directives["databases"] = "4"
        return server


def parsed(raw):
    """A Reply from bytes, by way of a connection that is not one."""
    connection = Connection.__new__(Connection)
    connection._buffer = bytearray(raw)
    connection._position = 0
    connection.timeout_s = 0.0
    return connection.read_reply()


class TranscriptTest(unittest.TestCase):
    def test_words_are_split_as_redis_cli_does(self):
        self.assertEqual(split_arguments(rb'''SET "a b\x00\n" 'c\'d' e{{3*x}} ""'''),
                         [b"SET", b"a b\x00\n", b"c'd", b"exxx", b""])
        self.assertEqual(split_arguments(b"DEL {{3*k }}"), [b"DEL", b"k", b"k", b"k"])

    def test_what_quote_writes_is_read_back(self):
        for word in (b"", b"plain", b"a b", b"\x00\xff\r\n", b'"', b"\\x41", b"#x", b"@y", b"'"):
            self.assertEqual(split_arguments(quote(word).encode()), [word])

    def test_loops_nest(self):
        steps = parse(b"@for A 1 2\n@for B x y\nSET <A> <B>\n@end\n@end\n")
        self.assertEqual([step.arguments[1:] for step in steps],
                         [[b"1", b"x"], [b"1", b"y"], [b"2", b"x"], [b"2", b"y"]])

    def test_a_mistake_in_a_transcript_names_its_line(self):
        with self.assertRaisesRegex(TranscriptError, "file:2: unknown modifier @nosuch"):
            parse(b"PING\n@nosuch PING\n", "file")

    def test_replies_are_the_same_to_the_byte_unless_a_rule_says_otherwise(self):
        one, other = parsed(b"*2\r\n+a\r\n+b\r\n"), parsed(b"*2\r\n+b\r\n+a\r\n")
        self.assertFalse(equal(Rules(), one, other))
        self.assertTrue(equal(rules_of("unordered", 0), one, other))
        self.assertFalse(equal(rules_of("unordered", 0), one, parsed(b"*2\r\n+b\r\n$1\r\na\r\n")))
        self.assertTrue(equal(rules_of("seconds", 0), parsed(b":5\r\n"), parsed(b":6\r\n")))
        self.assertFalse(equal(rules_of("seconds", 0), parsed(b":5\r\n"), parsed(b":7\r\n")))
        self.assertFalse(equal(rules_of("random", 0), parsed(b"-ERR a\r\n"), parsed(b"-ERR b\r\n")))

    def test_every_kind_of_resp3_is_parsed(self):
        raw = (b"|1\r\n+k\r\n:1\r\n%1\r\n+a\r\n~2\r\n#t\r\n_\r\n")
        reply = parsed(raw)
        self.assertEqual(reply.raw, raw)
        self.assertEqual(reply.tree[0], "%")
        self.assertEqual(len(reply.attributes), 1)
        for raw in (b",1.5\r\n", b"(123\r\n", b"=7\r\ntxt:abc\r\n", b">1\r\n+x\r\n",
                    b"!3\r\nERR\r\n", b"*?\r\n:1\r\n.\r\n", b"$?\r\n;2\r\nab\r\n;0\r\n",
                    b"$-1\r\n", b"*-1\r\n"):
            self.assertEqual(parsed(raw).raw, raw)
        self.assertIsInstance(parsed(b"+x\r\n"), Reply)
        self.assertEqual(encode(["A", b"\x00", 5]), b"*3\r\n$1\r\nA\r\n$1\r\n\x00\r\n$1\r\n5\r\n")


class DifferenceTest(unittest.TestCase):
    def test_a_written_transcript_that_differs_fails_with_its_line(self):
        servers = FewerDatabases(options())
        try:
            path = run.HERE / "keys" / "databases.txt"
            texts, _ = run.run_file(servers, path, 2)
            self.assertTrue([text for text in texts
                             if "databases.txt:8 " in text and "SELECT 15" in text])
            texts, _ = run.run_file(servers, run.HERE / "strings" / "lcs.txt", 2)
            self.assertEqual(texts, [])
        finally:
            servers.close()

    def test_a_generated_difference_is_cut_down_to_one_command(self):
        servers = FewerDatabases(options())
        with tempfile.TemporaryDirectory() as directory:
            try:
                passed, failed = generate.run(
                    servers, ["keys"], options(save=directory, commands=1500, protocols=[2]))
                self.assertEqual((passed, failed), (0, 1))
                saved = sorted(pathlib.Path(directory).iterdir())
                lines = saved[0].read_text().splitlines()
                self.assertEqual(lines[1:], ["SELECT 15"])
                texts, _ = run.run_file(servers, saved[0], 2)
                self.assertEqual(len(texts), 1)
            finally:
                servers.close()

    def test_a_server_that_dies_is_reported_and_started_again(self):
        servers = run.Servers(options())
        try:
            with tempfile.NamedTemporaryFile(suffix=".txt") as file:
                file.write(b"PING\nDEBUG SEGFAULT\nPING\n")
                file.flush()
                servers.tested.directives["enable-debug-command"] = "yes"
                texts, _ = run.run_file(servers, pathlib.Path(file.name), 2)
            self.assertTrue(any("died" in text for text in texts))
            texts, _ = run.run_file(servers, run.HERE / "strings" / "lcs.txt", 2)
            self.assertEqual(texts, [])
        finally:
            servers.close()

    def test_equal_seeds_give_equal_commands(self):
        for family in generate.FAMILIES:
            one, other = [[(command.arguments, command.connection, command.kind)
                           for command in generate.make_round(family, "7:x:0", 3)]
                          for _ in range(2)]
            self.assertEqual(one, other)
        self.assertEqual(Command(["GET", "k"]).text(), "GET k")

    def test_no_key_survives_a_pop_at_random(self):
        pops = 0
        for family in generate.FAMILIES:
            for number in range(20):
                commands = generate.make_round(family, f"{family}:{number}", 3)
                for command, following in zip(commands, commands[1:]):
                    for word, key in zip(command.arguments, command.arguments[1:]):
                        if word.upper() == b"SPOP":
                            pops += 1
                            self.assertEqual(following.arguments, [b"DEL", key], command.text())
        self.assertGreater(pops, 100)


if __name__ == "__main__":
    unittest.main(verbosity=1)
