#!/usr/bin/python3
"""What scripts rely on: a missing queue is an error of each command; a pipe gets tabs and codes."""

import json
import re
import sys

from harness import require, require_equal, run
from harness.cli import NO_CONNECTION, SERVER_ERROR, USAGE_ERROR, Terminal, serve


def test_no_command_takes_a_missing_queue_for_an_empty_one(options):
    """What reads or changes a queue that is not there fails, and says which one was meant."""
    server, sluice = serve(options)
    sluice.must("add", "exec", "x")
    for words in (["jobs"], ["jobs", "--failed"], ["jobs", "--by", "error"], ["status"],
                  ["status", "--by", "group"], ["workers"], ["events"], ["events", "--after", "-"],
                  ["top"], ["purge", "--all"], ["purge", "--state", "failed", "--dry-run"],
                  ["cancel", "--all"], ["cancel", "--group", "ann"], ["retry", "--all"],
                  ["delete"], ["config"], ["config", "--export"]):
        command, *more = words
        sluice.fails(SERVER_ERROR, "there is no queue exce; did you mean exec?", command, "exce",
                     *more)
        if command != "top":
            code, out, err = sluice.run(command, "exce", *more, "--json")
            error = json.loads(err)["error"]
            require_equal((code, out, error["code"], error["nearest"]),
                          (SERVER_ERROR, "", "NOQUEUE", "exec"), f"{words} --json")
    sluice.fails(SERVER_ERROR, "there is no queue exce", "top", "exec", "exce")
    with server.connect() as connection:
        require_equal(connection.call("EXISTS", "exce").value, 0, "made all the same")


def test_errors_as_json(options):
    """With --json what goes wrong is an object on standard error, and nothing else is there."""
    _, sluice = serve(options)
    sluice.must("add", "exec", "x", "--id", "alarm")

    def error(expected, *words):
        code, out, err = sluice.run(*words, "--json")
        require_equal((code, out), (expected, ""), f"{words}: {err}")
        return json.loads(err)["error"]

    bad = error(SERVER_ERROR, "config", "exec", "max_actve=4")
    require_equal((bad["code"], bad["field"], bad["nearest"]),
                  ("BADFIELD", "max_actve", "max_active"))
    require("fencing" in bad["allowed"] and len(bad["allowed"]) == 29, str(bad))
    require_equal(error(USAGE_ERROR, "jobs")["code"], "USAGE")
    require("jobs" in error(USAGE_ERROR)["allowed"], "no command")
    require_equal(error(USAGE_ERROR, "jbos")["nearest"], "jobs")
    require_equal(error(USAGE_ERROR, "jobs", "exec", "--stat", "failed")["nearest"], "--state")
    require_equal(error(USAGE_ERROR, "jobs", "exec", "--state", "faild")["nearest"], "failed")
    for words in (["job", "exec", "none"], ["move", "exec", "none", "--back"],
                  ["watch", "exec", "none"]):
        require_equal(error(SERVER_ERROR, *words)["code"], "NOJOB")
    require_equal(error(SERVER_ERROR, "job", "exec", "alarm", "--wait", 1)["code"], "FAILED")
    code, out, err = sluice.run("cancel", "exec", "none", "alarm", "--json")
    require_equal((code, err), (SERVER_ERROR, ""), "one of several")
    gone, cancelled = json.loads(out)
    require_equal((gone["id"], gone["error"]["code"], cancelled),
                  ("none", "NOJOB", {"id": "alarm", "state": "cancelled"}), out)
    code, out, err = sluice.run("cancel", "exec", "alarm", "--json")
    require_equal((code, json.loads(out)[0]["error"]["code"]), (SERVER_ERROR, "ENDED"), out)
    code, out, err = sluice.run("retry", "exec", "ALL", "none", "alarm", "--json")
    require_equal((code, err), (SERVER_ERROR, ""), "retries")
    no_id, none, retried = json.loads(out)
    require_equal((no_id["error"]["code"], no_id["error"]["field"]), ("BADFIELD", "id"), out)
    require_equal((none["error"]["code"], none["error"]["id"]), ("NOJOB", "none"), out)
    require_equal(retried, {"id": "alarm", "state": "pending"}, out)
    sluice.port = 1
    require_equal(error(NO_CONNECTION, "status")["code"], "NOCONNECTION")


def test_the_members_of_an_error(options):
    """With --json an error has the members that it has over HTTP."""
    _, sluice = serve(options)

    def error(*words):
        code, out, err = sluice.run(*words, "--json")
        require_equal((code, out), (SERVER_ERROR, ""), f"{words}: {err}")
        members = json.loads(err)["error"]
        del members["detail"]
        return members

    sluice.must("config", "exec", "max_waiting=1", "--create")
    sluice.must("add", "exec", "x", "--id", "a b")
    require_equal(error("add", "exec", "x", "--id", "a b"),
                  {"code": "DUPLICATE", "id": "a b", "state": "pending"})
    full = error("add", "exec", "x")
    require(isinstance(full.pop("retry_after_ms"), int), str(full))
    require_equal(full, {"code": "QFULL", "max": 1, "pending": 1})
    sluice.must("pop", "exec", "--worker", "w")
    require_equal(error("ack", "exec", "a b", "7777"),
                  {"code": "STALELEASE", "id": "a b", "state": "active"})
    require_equal(error("move", "exec", "a b", "--front"), {"code": "NOTWAITING"})
    sluice.must("config", "exec", "paused=in")
    require_equal(error("add", "exec", "x"), {"code": "PAUSED", "direction": "in"})
    sluice.must("config", "few", "events=1", "--create")
    for name in "abc":
        sluice.must("add", "few", "x", "--id", name)
    require_equal(error("events", "few", "--after", "1"), {"code": "TRIMMED", "oldest": 3})


def test_notes_are_json(options):
    """With --json what goes to standard error is JSON, also a note beside the output."""
    _, sluice = serve(options)
    sluice.must("config", "exec", "events=0", "--create")
    sluice.must("add", "exec", "x", "--id", "j")
    code, out, err = sluice.run("job", "exec", "j", "--json")
    require_equal((code, json.loads(out)["id"], json.loads(err)),
                  (0, "j", {"note": "the queue keeps no events"}), "job")
    code, out, err = sluice.run("job", "exec", "j")
    require_equal((code, err), (0, "sluice: the queue keeps no events\n"), "job")


# What is done in a queue before its job j waits, the reason in a pipe, and on a terminal.
REASONS = [
    ([["Q.ADD", "q", "a b", ""], ["Q.ADD", "q", "j", "", "NEED", "a b"]],
     r"blocked_by a%20b", r"waits for a b"),
    ([["Q.ADD", "q", "j", "", "DELAY", 3_599_500]], r"not_before \d+", r"for another 59 m \d+ s"),
    ([["Q.CONFIG", "q", "SET", "paused", "out"], ["Q.ADD", "q", "j", ""]],
     r"paused", r"its queue or group is paused"),
    ([["Q.CONFIG", "q", "SET", "max_active", 2], ["Q.ADD", "q", "j", "", "COST", 2],
      ["Q.CONFIG", "q", "SET", "max_active", 1]], r"too_large", r"its cost is above a cap"),
    ([["Q.CONFIG", "q", "GROUP", "g", "SET", "max_active", 1],
      ["Q.ADD", "q", "r", "", "GROUP", "g"], ["Q.POP", 1, "q"],
      ["Q.ADD", "q", "j", "", "GROUP", "g"]],
     r"group_cap 1/1", r"no room in its group \(1 of 1 in use\)"),
    ([["Q.CONFIG", "q", "KEY", "k 1", "SET", "max_active", 1],
      ["Q.ADD", "q", "r", "", "KEY", "k 1"], ["Q.POP", 1, "q"],
      ["Q.ADD", "q", "j", "", "KEY", "k 1"]],
     r"key_cap k%201 1/1", r"no room for its key k 1 \(1 of 1 in use\)"),
    ([["Q.CONFIG", "q", "SET", "rate", "1/3599500"], ["Q.ADD", "q", "r", ""], ["Q.POP", 1, "q"],
      ["Q.ADD", "q", "j", ""]], r"rate \d+", r"held by the rate limit for 59 m \d+ s"),
    ([["Q.CONFIG", "q", "SET", "max_active", 1], ["Q.ADD", "q", "r", ""], ["Q.POP", 1, "q"],
      ["Q.ADD", "q", "j", ""]], r"queue_cap 1/1", r"no room in the queue \(1 of 1 in use\)"),
    ([["Q.ADD", "q", "j", ""]], r"no_worker", r"no worker asks for jobs"),
    ([["Q.ADD", "q", "r", ""], ["Q.ADD", "q", "j", ""]], r"behind 1", r"1 job before it"),
]


def test_reasons_are_words_for_people(options):
    """Why a job waits is a code in a pipe and words on a terminal; a position is said once."""
    server, sluice = serve(options)
    with server.connect() as connection:
        for commands, code, words in REASONS:
            for command in commands:
                connection.call(*command)
            require(re.search(rf"^why\t{code}$", sluice.must("job", "q", "j"), re.M), code)
            terminal = Terminal(sluice.words("job", "q", "j"), columns=120, NO_COLOR="1")
            terminal.read_until(rf"why +{words}\r\n")
            terminal.end()
            connection.call("DEL", "q")
        connection.call("Q.CONFIG", "q", "SET", "max_active", 1)
        for job in "running", "first", "second":
            connection.call("Q.ADD", "q", job, "")
        connection.call("Q.POP", 1, "q")
    terminal = Terminal(sluice.words("jobs", "q"), columns=200, NO_COLOR="1")
    terminal.read_until(r"first +pending .*no room in the queue \(1 of 1 in use\).*second .*\r\n")
    terminal.end()
    with server.connect() as connection:
        connection.call("DEL", "q")
        for job in "first", "second":
            connection.call("Q.ADD", "q", job, "")
    terminal = Terminal(sluice.words("jobs", "q"), columns=200, NO_COLOR="1")
    terminal.read_until(r"first +pending .*no worker asks for jobs.*second .*\r\n")
    terminal.end()
    require("before it" not in terminal.text, terminal.text)


JOB_COLUMNS = ["ID", "STATE", "PRI", "GROUP", "POS", "AGE", "RUN", "RUNS", "WORKER", "NOTE"]


def test_lines_of_a_pipe(options):
    """Where standard output is no terminal a tab divides the columns, whatever an id holds."""
    _, sluice = serve(options)
    for name in "a  b", "tab\there", "x" * 100:
        sluice.must("add", "my queue", "p", "--id", name, "--group", "g 1")
    jobs = [line.split("\t") for line in sluice.must("jobs", "my queue").splitlines()]
    require_equal(jobs[0], JOB_COLUMNS, "jobs")
    require_equal([[*line[:5], line[9]] for line in jobs[1:]],
                  [[name, "pending", "NORMAL", "g 1", str(place), why] for place, (name, why) in
                   enumerate([("a  b", "no_worker"), ("tab\\there", "behind 1"),
                              ("x" * 100, "behind 2")])], "jobs")
    queues = [line.split("\t") for line in sluice.must("status").splitlines()]
    require_equal([line[:3] for line in queues[-2:]],
                  [["QUEUE", "PENDING", "ACTIVE"], ["my queue", "3", "0"]], "status")
    groups = sluice.must("status", "my queue", "--by", "group").splitlines()
    require_equal(groups[1].split("\t")[:3], ["g 1", "3", "0"], "status --by")
    events = [line.split("\t") for line in sluice.must("events", "my queue").splitlines()]
    require_equal([(line[0], *line[2:4]) for line in events[:2]],
                  [("1", "added", "a  b"), ("2", "added", "tab\\there")], "events")


def test_columns_of_a_pipe(options):
    """A column has the same number whatever the data: a pipe gets those that are empty too."""
    _, sluice = serve(options)
    sluice.must("add", "exec", "p", "--id", "a")
    lists = (["jobs", "exec"], ["jobs", "exec", "--with", "payload", "--with", "result"],
             ["status", "exec", "--by", "group"])

    def titles():
        tables = [[line.split("\t") for line in sluice.must(*words).splitlines()]
                  for words in lists]
        for table in tables:
            require_equal([len(line) for line in table], [len(table[0])] * len(table), str(table))
        return [table[0] for table in tables]

    before = titles()
    require_equal(before[:2], [JOB_COLUMNS, [*JOB_COLUMNS, "PAYLOAD", "RESULT"]], "jobs")
    for words in (["pop", "exec", "--worker", "w"], ["add", "exec", "p", "--delay", "1h"],
                  ["add", "exec", "", "--id", "b", "--group", "g"]):
        sluice.must(*words)
    require_equal(titles(), before, "with a job that runs, a group and a delay")
    waiting = sluice.must("jobs", "exec", "--state", "pending").splitlines()[1].split("\t")
    require_equal([waiting[JOB_COLUMNS.index(name)] for name in ("GROUP", "RUN", "WORKER")],
                  ["g", "", ""], "the one that waits")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
