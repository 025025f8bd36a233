#!/usr/bin/python3
"""sluice status and workers: what they show of queues, as JSON and to people, and to users with few
rights; sluice quiet."""

import json
import re
import sys
import urllib.request

from harness import require, require_equal, run
from harness.cli import SERVER_ERROR, USAGE_ERROR, Terminal, plain, serve
from commands_test import filled


def test_status_is_what_http_has(options):
    """status shows queues and one queue; its JSON and a job's are those of the HTTP side."""
    server, sluice = filled(options, {"http-port": "auto"})
    (job,) = sluice.json("pop", "exec", "--worker", "w1")
    sluice.must("ack", "exec", job["id"], job["lease"])
    sluice.json("pop", "exec", "--worker", "w1")
    options.last.connect().call("SET", "plain", "x")

    def over_http(path):
        url = f"http://127.0.0.1:{server.http_port}/api/v1/queues{path}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)

    def steady(value):
        """Without what changes from one moment to the next."""
        moving = ("oldest_ms", "timer_lag_ms", "ttl_left_ms", "deadline", "story", "payload",
                  "result", "rates", "config", "now")
        if isinstance(value, dict):
            return {name: steady(item) for name, item in value.items() if name not in moving}
        return [steady(item) for item in value] if isinstance(value, list) else value

    require_equal(steady(sluice.json("status")), steady(over_http("")["queues"]), "status")
    one = sluice.json("status", "exec")
    require_equal(steady(one), steady(over_http("/exec")), "status exec")
    require_equal(one["config"], over_http("/exec/config"), "config")
    require_equal(one["stats"]["rates"].keys(), {"added", "completed"}, "rates")
    require(isinstance(one["stats"]["rates"]["added"], float), "a rate is a number")
    for job_id in ("alarm", "report"):
        path = f"/exec/jobs/{job_id}?with=options&with=dependents"
        require_equal(steady(sluice.json("job", "exec", job_id)), steady(over_http(path)), job_id)
    require_equal(sluice.json("job", "exec", "report")["story"][0],
                  over_http("/exec/events?after=-&type=added")["events"][1], "an event")
    require("active" in sluice.json("status", "exec", "--by", "worker")["w1"], "--by worker")
    require_equal(sluice.json("status", "exec", "--by", "tag=kind")["sum"]["active"], 1, "--by tag")
    shown = sluice.must("status")
    require(re.search(r"^QUEUE\tPENDING\tACTIVE", shown, re.M) and "plain" not in shown, shown)
    shown = sluice.must("status", "exec")
    for part in (r"^totals\tadded 2 +started 2 +completed 1$", r"^BAND", r"^w1\t\t1", r"^HIGH\t0"):
        require(re.search(part, shown, re.M), f"no {part} in {shown}")
    sluice.fails(SERVER_ERROR, "WRONGTYPE", "status", "plain")
    sluice.must("add", "exec", "x", "--key", "k")
    require_equal(sluice.json("status", "exec", "--by", "key"),
                  {"k": {"slots": 0, "max_active": 0, "utilization": None}}, "--by key")
    sluice.fails(USAGE_ERROR, "--by requires a queue", "status", "--by", "pri")


def test_status_of_many_groups(options):
    """Groups are asked for page by page; beyond 1,000 the largest are shown, and the rest's sum."""
    server, sluice = serve(options)
    with server.connect() as connection:
        connection.pipeline([("Q.ADD", "q", "*", "x", "GROUP", f"g{i:05}") for i in range(12_000)])
        for i in range(3):
            connection.call("Q.ADD", "q", f"b{i}", "x", "GROUP", "big")
    lines = sluice.json("status", "q", "--by", "group")
    require_equal(len(lines), 1001, "lines")
    require_equal(lines["big"]["pending"], 3, "the largest")
    require_equal((lines["*"]["pending"], lines["*"]["waiting"]), (11_001, 11_001), "the rest")
    require_equal(lines["*"]["utilization"], None, "utilization of the rest")
    require("… and 981 more" in sluice.must("status", "q"), "the groups of the details")


def test_a_user_who_may_not_read_the_configuration(options):
    """It is left out, as over HTTP, and a note says so; the rest is there."""
    server, sluice = filled(options)
    sluice.must("pause", "exec")
    with server.connect() as connection:
        connection.call("ACL", "SETUSER", "looker", "on", ">p", "~*", "+q.get", "+q.list",
                        "+q.stats", "+q.events", "+q.log", "+scan", "+exists", "+info")
    sluice.before = ["--user", "looker", "--pass", "p"]
    note = "this user may not read the configuration: what is paused is not shown"

    def shown(*words):
        code, out, err = sluice.run("status", *words, "--json")
        require_equal((code, json.loads(err or "{}")), (0, {"note": note}), f"{words}: {err}")
        return json.loads(out)

    (line,) = shown()
    require_equal((sorted(line), line["stats"]["pending"]), (["db", "name", "stats"], 2), "status")
    line = shown("exec")
    require_equal((line["config"], line["stats"]["pending"]), (None, 2), "status exec")
    for words in [], ["exec"]:
        code, out, err = sluice.run("status", *words)
        require_equal((code, err), (0, f"sluice: {note}\n"), str(words))
        require(re.search(r"^exec\t2\t.*\t$", out, re.M), out)
    with server.connect() as connection:
        connection.call("ACL", "SETUSER", "looker", "-q.stats")
    sluice.fails(SERVER_ERROR, "NOPERM", "status")


def test_quiet_workers(options):
    """What quiet says is in the next workers, of one worker or, with --glob, of all that match."""
    server, sluice = serve(options)
    sluice.must("add", "exec", "x")
    require_equal(sluice.must("workers", "exec"), "no workers\n")

    def quiet():
        rows = [line.split("\t") for line in sluice.must("workers", "exec").splitlines()]
        names = {row[0] for row in rows if row[-1] == "quiet"}
        lines = sluice.json("workers", "exec")
        require_equal({name for name, line in lines.items() if line["quiet"]}, names, "--json")
        return names

    with server.connect() as connection:
        for name in "host-7", "host-*", "other":
            connection.call("Q.POP", 1, "exec", "WORKER", name)
        require_equal(quiet(), set(), "at first")
        require_equal(sluice.must("quiet", "exec", "host-*"), "host-*: quiet\n")
        require_equal(quiet(), {"host-*"}, "a name")
        require_equal(sluice.json("quiet", "exec", "host-?", "--glob"),
                      {"quiet": True, "worker": "host-?"}, "--glob")
        require_equal(quiet(), {"host-*", "host-7"}, "a glob")
        sluice.must("add", "exec", "y")
        require_equal(connection.call("Q.POP", 1, "exec", "WORKER", "host-7").value, None, "a pop")
        require_equal(sluice.must("quiet", "exec", "host-?", "--glob", "--off"),
                      "host-?: gets jobs\n")
        require_equal(quiet(), {"host-*"}, "a name counts before a glob")
        sluice.must("quiet", "exec", "host-*", "--off")
        require_equal(quiet(), set(), "--off")
    sluice.fails(SERVER_ERROR, "there is no queue exce", "quiet", "exce", "w")


def test_a_pause_is_shown(options):
    """status says in a column which queues are paused, within the width of a terminal."""
    server, sluice = filled(options)
    name = "a-rather-long-name-" + "x" * 100
    with server.connect() as connection:
        for number in range(1000):
            connection.call("Q.ADD", name, number, "")
        connection.call("Q.ADD", name, "late", "", "DELAY", 60_000)
        connection.call("Q.POP", 1, name)
        connection.call("Q.NACK", name, *connection.call("Q.POP", 1, name, "BRIEF").value[0][1:3],
                        "FATAL")

    def on_terminal(*words):
        terminal = Terminal(sluice.words("status", *words), columns=80)
        require_equal(terminal.end()[0], 0, str(words))
        lines = plain(terminal.text).split("\r\n")
        require(all(len(line) <= 80 for line in lines), str(lines))
        titles = next(line for line in lines if line.startswith("QUEUE "))
        return titles.split()[-1] == "PAUSED", [line.split() for line in lines]

    require_equal(on_terminal()[0], False, "a column without a pause")
    sluice.must("pause", name, "all")
    for words, first in ([], "a-rat"), ([name], "a-rat"):
        has_column, lines = on_terminal(*words)
        (line,) = [line for line in lines if line and line[0].startswith(first)]
        require_equal((has_column, line[-1]), (True, "all"), str(words))
        shown = sluice.must("status", *words)
        require(re.search(r"^QUEUE\t.*\tPAUSED$", shown, re.M), shown)
        require(re.search(rf"^{name}\t998\t.*\tall$", shown, re.M), shown)
    require(re.search(r"^exec\t2\t.*\t$", sluice.must("status"), re.M), "exec is not paused")
    require_equal(on_terminal("exec")[0], False, "a column without a pause")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
