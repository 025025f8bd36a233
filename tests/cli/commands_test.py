#!/usr/bin/python3
"""The program sluice: each command with what it prints, its JSON, its errors and exit codes."""

import json
import re
import subprocess
import sys

from harness import require, require_equal, run
from harness.cli import NO_CONNECTION, SERVER_ERROR, USAGE_ERROR, Sluice, serve

COMMANDS = ["status", "config", "diff-config", "apply", "pause", "resume", "top", "simulate",
            "jobs", "job", "add", "move", "pop", "ack", "nack", "touch", "cancel", "retry", "purge",
            "delete", "events", "log", "watch", "workers", "quiet", "nodes", "failover",
            "completion", "help"]
# Neither UTF-8 nor printable.
STRANGE = b"\xff\x00\x1b[31m"


def filled(options, directives=None):
    server, sluice = serve(options, directives)
    sluice.must("add", "exec", "print(1)", "--id", "alarm", "--pri", "high", "--group", "ann")
    sluice.must("add", "exec", "print(2)", "--id", "report", "--tag", "kind=sum")
    return server, sluice


def ids(jobs):
    return [job["id"] for job in jobs]


def test_add_and_job(options):
    """add puts a job in with every option, job shows all of it and its story."""
    _, sluice = serve(options)
    out = sluice.must("add", "exec", "-", "--id", "a", "--pri", "HIGH", "--group", "ann", "--key",
                      "k1", "--key", "k2", "--tag", "kind=sum=1", "--cost", 2, "--ttl", 60000,
                      "--lease", 5000, "--max-run", 9000, "--retry", 3, "--backoff", "10:20",
                      stdin=b"from stdin")
    require_equal(out, "a added: pending, 0 before it\n", "add")
    job = sluice.json("job", "exec", "a")
    expected = {"id": "a", "state": "pending", "position": 0, "pri": "HIGH", "group": "ann",
                "keys": ["k1", "k2"], "tags": {"kind": "sum=1"}, "cost": 2, "lease_ms": 5000,
                "max_run_ms": 9000, "retries_left": 3, "payload": "from stdin",
                "why": "no_worker", "successor": False, "worker": None,
                "options": {"boost_ms": 0, "ttl_ms": 60000, "lease_ms": 5000, "max_run_ms": 9000,
                            "retry": 3, "backoff": [10, 20]}}
    require_equal({name: job[name] for name in expected}, expected, "job")
    require_equal([event["type"] for event in job["story"]], ["added"], "story")
    shown = sluice.must("job", "exec", "a")
    own = "ttl_ms=60000 lease_ms=5000 max_run_ms=9000 retry=3 backoff=10:20"
    for part in (r"payload\tfrom stdin", r"tags\tkind=sum=1", r"keys\tk1 k2", r"lease_ms\t5.0 s",
                 r"options\t" + own + "\n", r"1\t\S+\tadded\ta"):
        require(re.search(part, shown), f"no {part!r} in {shown}")
    require("added" not in sluice.must("job", "exec", "a", "--no-story").split("payload")[1],
            "a story with --no-story")
    chosen = sluice.json("add", "exec", "x", "--delay", 60000)
    require(re.fullmatch(r"\d+-\d+", chosen["id"]) and chosen["state"] == "delayed", str(chosen))
    sluice.fails(SERVER_ERROR, "DUPLICATE id=a state=pending", "add", "exec", "x", "--id", "a")
    require_equal(sluice.json("add", "exec", "y", "--id", "a", "--if-dup", "keep")["result"],
                  "kept", "--if-dup")
    sluice.fails(SERVER_ERROR, "there is no such job", "job", "exec", "none")
    cleanup = sluice.json("add", "exec", "x", "--id", "cleanup", "--need", "a", "--after",
                          chosen["id"], "--after", "a")
    require_equal(cleanup["state"], "blocked", "--after")
    job = sluice.json("job", "exec", "cleanup")
    require_equal((job["needs"], job["after"], job["why"]),
                  (["a"], [chosen["id"]], "blocked_by a " + chosen["id"]), "--after")
    require(re.search(f"after\t{chosen['id']}", sluice.must("job", "exec", "cleanup")), "after")
    sluice.fails(SERVER_ERROR, "BADFIELD field=pri", "add", "exec", "x", "--pri", "nothing")
    sluice.fails(SERVER_ERROR, "not ended", "job", "exec", "a", "--wait", 1)


def test_bytes_that_are_no_text(options):
    """Arbitrary bytes are base64 in JSON, as over HTTP, and escaped on a terminal."""
    _, sluice = serve(options)
    sluice.must("add", "exec", "--id", "strange", stdin=STRANGE)
    job = sluice.json("job", "exec", "strange")
    require_equal((job["payload"], job["payload_base64"]), (None, "/wAbWzMxbQ=="), "payload")
    require("\\xff\\x00\\x1b[31m" in sluice.must("job", "exec", "strange"), "not escaped")
    right_to_left = "a\u202eb\u009bc".encode()
    sluice.must("add", "exec", "--id", "turned", stdin=right_to_left)
    shown = sluice.must("jobs", "exec", "--with", "payload")
    require("\u202e" not in shown and "\u009b" not in shown and "\\xe2" in shown, repr(shown))


def test_jobs_lists_what_is_selected(options):
    """jobs takes selectors, an order and a limit."""
    _, sluice = filled(options)
    sluice.must("add", "exec", "x", "--id", "later", "--delay", 60000)
    shown = sluice.must("jobs", "exec", "--by", "rank").splitlines()
    require_equal(shown[0].split(), ["ID", "STATE", "PRI", "GROUP", "POS", "AGE", "RUN", "RUNS",
                                     "WORKER", "NOTE"], "titles")
    require_equal([line.split()[0] for line in shown[1:]], ["alarm", "report"], "by rank")
    for words, expected in ((["--state", "delayed"], ["later"]), (["--group", "ann"], ["alarm"]),
                            (["--tag", "kind=sum"], ["report"]), (["--pri", "HIGH"], ["alarm"]),
                            (["--state", "active"], []), (["--older", 3600000], [])):
        require_equal(ids(sluice.json("jobs", "exec", *words)), expected, str(words))
    sluice.fails(USAGE_ERROR, "takes no selector", "jobs", "exec", "--by", "dispatch", "--failed")
    code, out, err = sluice.run("jobs", "exec", "--limit", 1, "--by", "rank")
    require_equal((code, len(out.splitlines())), (0, 2), "--limit")
    require("there are more" in err, err)
    payloads = [job["payload"] for job in sluice.json("jobs", "exec", "--with", "payload", "--by",
                                                      "rank")]
    require_equal(payloads, ["print(1)", "print(2)"], "--with")
    require_equal(sluice.json("pop", "exec")[0]["id"], "alarm", "popped")
    sluice.must("cancel", "exec", "later")
    require_equal(ids(sluice.json("jobs", "exec")), ["alarm", "report", "later"],
                  "active, waiting, ended")
    require_equal(ids(sluice.json("jobs", "exec", "--state", "Cancelled", "--state", "active")),
                  ["alarm", "later"], "several states")
    code, out, err = sluice.run("jobs", "exec", "--limit", 3)
    require_equal((code, err), (0, ""), "no more than the limit")
    code, out, err = sluice.run("jobs", "exec", "--group", "none")
    require_equal((code, out, err), (0, "", "sluice: no such jobs\n"), "none")
    sluice.fails(USAGE_ERROR, "--state takes blocked, delayed", "jobs", "exec", "--state", "tired")
    sluice.fails(USAGE_ERROR, "--tag takes NAME=VALUE", "jobs", "exec", "--tag", "kind")


def test_a_worker_in_a_shell(options):
    """pop, touch, ack and nack do a worker's work."""
    _, sluice = filled(options)
    (job,) = sluice.json("pop", "none", "exec", "--worker", "shell")
    require_equal((job["queue"], job["id"], job["payload"]), ("exec", "alarm", "print(1)"), "pop")
    require_equal([held["lease"] for held in sluice.json("jobs", "exec", "--worker", "shell")],
                  [job["lease"]], "--worker")
    touched = sluice.json("touch", "exec", "alarm", job["lease"], "--progress", "half")
    require(touched["left_ms"] > 0 and touched["cancel"] is None, str(touched))
    require("half" in sluice.must("jobs", "exec", "--state", "active"), "no progress in the list")
    sluice.fails(SERVER_ERROR, "STALELEASE", "ack", "exec", "alarm", job["lease"] + 1)
    require_equal(sluice.must("ack", "exec", "alarm", job["lease"], "--result", "42"),
                  "alarm: completed\n", "ack")
    require_equal(sluice.json("job", "exec", "alarm")["result"], "42", "result")
    sluice.must("add", "exec", "x", "--id", "next", "--after", "alarm", "--pri", "critical")
    (job,) = sluice.json("pop", "exec", "--with", "need_results", "--with", "error")
    require_equal((job["id"], job["need_results"], job["truncated"], job["error"]),
                  ("next", {"alarm": "42"}, False, None), "--with")
    sluice.must("ack", "exec", "next", job["lease"])
    shown = sluice.must("pop", "exec", "--lease", 60000).splitlines()
    require_equal(shown[0].split()[:3], ["QUEUE", "ID", "LEASE"], "titles")
    lease = shown[1].split()[2]
    code, out, err = sluice.run("pop", "exec")
    require_equal((code, out), (0, ""), "nothing to pop")
    require("no job" in err, err)
    require_equal(sluice.json("pop", "exec", "--block", 10), [], "nothing within 10 ms")
    require_equal(sluice.json("nack", "exec", "report", lease, "--silent")["state"], "pending",
                  "nack --silent")
    (again,) = sluice.json("pop", "exec")
    out = sluice.must("nack", "exec", "report", again["lease"], "--fatal", "--error", "broken")
    require(out.startswith("report: failed"), out)
    require("broken" in sluice.must("jobs", "exec", "--state", "failed"), "the error in the list")
    sluice.fails(USAGE_ERROR, "usage: sluice ack QUEUE ID LEASE", "ack", "exec", "alarm")


def test_move(options):
    """move changes band and place of a waiting job, and refuses others."""
    _, sluice = filled(options)
    require_equal(sluice.must("move", "exec", "report", "--pri", "CRITICAL"),
                  "report moved: pending, 0 before it\n", "move")
    require_equal(sluice.json("move", "exec", "report", "--delay", 60000)["state"], "delayed",
                  "--delay")
    require_equal(sluice.json("move", "exec", "report", "--front")["position"], 0, "--front")
    sluice.json("pop", "exec")
    sluice.fails(SERVER_ERROR, "it is active", "move", "exec", "report", "--back")
    sluice.fails(SERVER_ERROR, "no such job", "move", "exec", "none", "--back")
    sluice.fails(USAGE_ERROR, "at least one option", "move", "exec", "alarm")
    sluice.must("add", "ranks", "x", "--id", "late", "--boost", "-1h")
    sluice.must("add", "ranks", "x", "--id", "other")
    require_equal(sluice.json("job", "ranks", "late")["position"], 1, "a negative --boost")
    require_equal(sluice.json("move", "ranks", "other", "--boost", "-2h")["position"], 1, "--boost")
    for one, other in ((["--front"], ["--back"]), (["--front"], ["--delay", "5s"]),
                       (["--delay", "5s"], ["--at", 5])):
        sluice.fails(USAGE_ERROR, f"{one[0]} and {other[0]} exclude each other", "move", "exec",
                     "alarm", *other, *one)
    sluice.fails(USAGE_ERROR, "--delay and --at exclude each other", "add", "exec", "x", "--at", 5,
                 "--delay", "5s")


def test_cancel_retry_purge(options):
    """cancel, retry and purge take ids, or a selector for all that it names."""
    _, sluice = filled(options)
    require_equal(sluice.must("cancel", "exec", "alarm", "report", "--reason", "mistake"),
                  "alarm: cancelled\nreport: cancelled\n", "cancel")
    code, out, err = sluice.run("cancel", "exec", "none", "--json")
    (line,) = json.loads(out)
    require_equal((code, line["id"], line["error"]["code"]), (SERVER_ERROR, "none", "NOJOB"), err)
    require_equal(sluice.json("retry", "exec", "alarm"), [{"id": "alarm", "state": "pending"}],
                  "retry")
    sluice.fails(SERVER_ERROR, "NOJOB id=none", "retry", "exec", "none")
    with options.last.connect() as connection:
        connection.pipeline([["Q.ADD", "many", number, "x", "GROUP", f"g{number % 2}"]
                             for number in range(2400)])
    require_equal(sluice.json("cancel", "many", "--group", "g0", "--limit", 1007), {"count": 1007},
                  "--limit amid the second page")
    require_equal(sluice.json("cancel", "many", "--all"), {"count": 1393}, "more than one page")
    require_equal(sluice.must("retry", "many", "--state", "cancelled", "--group", "g0"),
                  f"{sluice.json('status', 'many')['stats']['pending']} jobs\n", "retry")
    left = len(sluice.json("jobs", "many", "--state", "cancelled", "--limit", 5000))
    require_equal(sluice.json("purge", "many", "--state", "cancelled"), {"count": left}, "purge")
    sluice.fails(USAGE_ERROR, "or --all", "cancel", "many")
    sluice.fails(USAGE_ERROR, "not both", "cancel", "many", "1", "--all")
    sluice.must("retry", "many", "--all")
    for command in "cancel", "retry", "purge":
        sluice.fails(USAGE_ERROR, "--group-glob", command, "many", "--limit", 5)
        sluice.fails(USAGE_ERROR, "not both", command, "many", "--all", "--state", "failed")
        sluice.fails(USAGE_ERROR, "not both", command, "many", "--group", "a", "--group-glob", "a")


def test_reserved_words_are_no_ids(options):
    """A word of the grammar is not an id: nothing is changed, not even for the other ids."""
    _, sluice = filled(options)
    for word in "where", "WHERE", "wHere":
        for command in "cancel", "retry":
            for words in [word], ["alarm", word], [word, "--", "report"]:
                sluice.fails(USAGE_ERROR, "no job has the id", command, "exec", *words)
        for command in "ack", "nack", "touch":
            for lease in "WORKER", "STATE", "1", "*":
                sluice.fails(USAGE_ERROR, "no job has the id", command, "exec", word, lease)
        sluice.fails(USAGE_ERROR, "no job has the id", "nack", "exec", word, "WORKER", "--fatal")
        sluice.fails(USAGE_ERROR, "no job has the id", "add", "exec", "x", "--id", word)
        sluice.fails(SERVER_ERROR, "BADFIELD field=id", "job", "exec", word)
        sluice.fails(SERVER_ERROR, "BADFIELD field=id", "move", "exec", word, "--front")
    for word in "ALL", "all", "*":
        for command in "cancel", "retry":
            sluice.fails(SERVER_ERROR, "BADFIELD field=id: id takes 1 to 512 bytes", command,
                         "exec", word)
        sluice.fails(USAGE_ERROR, "no job has the id", "add", "exec", "x", "--id", word)
        sluice.fails(SERVER_ERROR, "BADFIELD field=id", "pop", "exec", "--id", word)
    for command in "ack", "nack", "touch":
        sluice.fails(SERVER_ERROR, "not WORKER", command, "exec", "alarm", "WORKER")
    states = sorted(job["state"] for job in sluice.json("jobs", "exec"))
    require_equal(states, ["pending", "pending"], "untouched jobs")


def test_names_of_groups_are_literal(options):
    """--group and --key take literal names; globs are given by --group-glob and --key-glob."""
    server, sluice = serve(options)
    names = ["*", "?", "[", "]", "\\", "^", "-", "a*", "a?b", "[ab]", "[^a]", "a\\", "\\*", "ALL",
             "a"]
    with server.connect() as connection:
        for name in names:
            connection.call("Q.ADD", "q", "of " + name, "", "GROUP", name, "KEY", name)
    for number, name in enumerate(names):
        group = "--group=" + name
        require_equal([job["id"] for job in sluice.json("jobs", "q", group)], ["of " + name], name)
        require_equal(sluice.json("cancel", "q", group), {"count": 1}, name)
        require_equal(sluice.json("retry", "q", group, "--state", "cancelled"), {"count": 1}, name)
        for level, field in ("group", "max_total"), ("key", "max_active"):
            rule = f"--{level}={name}"
            require_equal(sluice.json("config", "q", rule, f"{field}={number + 7}"),
                          {field: number + 7}, name)
    for number, name in enumerate(names):
        require_equal(sluice.json("config", "q", "--group=" + name), {"max_total": number + 7},
                      name)
    require_equal(sluice.json("config", "q", "--group-glob", "*"), {}, "no rule of everybody")
    require_equal(sluice.json("pause", "q", "--group", "*"), {"paused": "out"}, "pause")
    require_equal(sluice.json("config", "q", "--group", "a*", "paused"), {}, "of another group")
    sluice.must("config", "q", "--key-glob", "*", "max_active=3")
    require_equal(sluice.json("config", "q", "--key-glob", "*"), {"max_active": 3}, "a glob")
    require_equal(len(sluice.json("jobs", "q", "--group-glob", "a*")), 4, "a glob")
    sluice.fails(USAGE_ERROR, "--group-glob", "config", "q", "--group", "a", "--group-glob", "b")


def test_config_and_pause(options):
    """config shows and changes fields, of groups too; pause and resume are a field of it."""
    _, sluice = filled(options)
    require_equal(sluice.json("config", "exec", "max_active=2", "lease_ms=5000"),
                  {"max_active": 2, "lease_ms": 5000}, "set")
    shown = sluice.must("config", "exec")
    for line in "max_active\t2\t0", "retry\t0\t0", "default_pri\t2\t2", "order\tfifo\tfifo":
        require(line in shown.splitlines(), f"no {line!r} in {shown}")
    require_equal(sluice.json("config", "exec", "max_active"), {"max_active": 2}, "one field")
    sluice.must("config", "exec", "--group", "ann", "max_active=1")
    require_equal(sluice.json("config", "exec", "--group", "ann"), {"max_active": 1}, "a rule")
    require_equal(sluice.must("config", "exec", "--group", "ann").splitlines()[1:],
                  ["max_active\t1\t"], "a rule, which has no defaults")
    sluice.must("config", "other", "--create", "priority_order=desc")
    require_equal(sluice.must("config", "other", "default_pri").splitlines()[1:],
                  ["default_pri\t0\t0"], "a default that depends on another field")
    require("max_active=a number, 0 for no limit\n      the most slots in use at once\n"
            "      default: 0\n" in sluice.must("config", "--help"), "defaults in the help")
    require_equal(sluice.json("config", "exec", "--group", "ann", "--reset"), {}, "reset")
    sluice.fails(SERVER_ERROR, "BADFIELD field=max_active", "config", "exec", "max_active=many")
    sluice.fails(SERVER_ERROR, "max_active is given twice", "config", "exec", "max_active=4",
                 "max_active=5")
    sluice.fails(USAGE_ERROR, "only one of", "config", "exec", "--group", "a", "--key", "b")
    sluice.fails(USAGE_ERROR, "for all", "config", "exec", "fair", "max_active=1")
    require_equal(sluice.json("pause", "exec"), {"paused": "out"}, "pause")
    # Keys have no pause: the option is that of the connection.
    for command in "pause", "resume":
        require("--key" not in sluice.must(command, "--help"), "help")
        require("only queues and groups" in sluice.must(command, "--help").lower(), "help")
        sluice.fails(USAGE_ERROR, f"--key requires --tls, whose private key it is; {command} takes "
                     "--group, --group-glob or --create", command, "exec", "--key", "k")
        sluice.fails(USAGE_ERROR, "--group and --group-glob exclude", command, "exec",
                     "--group-glob", "k*", "--group", "k")
    require_equal(sluice.json("pop", "exec"), [], "a paused queue")
    require_equal(sluice.json("pause", "exec", "all"), {"paused": "all"}, "pause all")
    sluice.fails(SERVER_ERROR, "PAUSED direction=in: the queue", "add", "exec", "x")
    require_equal(sluice.json("resume", "exec"), {"paused": "none"}, "resume")
    require_equal(len(sluice.json("pop", "exec")), 1, "a resumed queue")


def test_what_a_wrong_word_might_have_been(options):
    """An invalid field or word is reported with all valid words, and the nearest one."""
    _, sluice = filled(options)
    for part, code, words in (
            ("did you mean max_active? It takes priority_order, bands,", SERVER_ERROR,
             ["config", "exec", "max_actve=4"]),
            ("pri takes CRITICAL, HIGH, NORMAL, LOW or BACKGROUND, or a number from 0 to 255, "
             "not urgent", SERVER_ERROR, ["add", "exec", "x", "--pri", "urgent"]),
            ("not hihg; did you mean HIGH?", SERVER_ERROR, ["move", "exec", "alarm", "--pri",
                                                            "hihg"]),
            ("rate takes none or N/MS[:BURST], such as 20/1000 or 20/1s:40, not 20:1000",
             SERVER_ERROR, ["config", "exec", "rate=20:1000"]),
            ("paused takes none, in, out or all, not ot; did you mean out?", SERVER_ERROR,
             ["pause", "exec", "ot"]),
            ("--state takes blocked, delayed, pending, active, completed, failed, cancelled or "
             "expired, not faild; did you mean failed?", USAGE_ERROR,
             ["jobs", "exec", "--state", "faild"]),
            ("--type takes added, ", USAGE_ERROR, ["events", "exec", "--type", "foo"]),
            ("did you mean completed?", USAGE_ERROR, ["events", "exec", "--type", "complete"]),
            ("--by takes rank, age, deadline, dispatch or error, not rnk; did you mean rank?",
             USAGE_ERROR, ["jobs", "exec", "--by", "rnk"]),
            ("delay takes milliseconds, or with a unit (250ms, 5s), up to 36600d, not 5x",
             SERVER_ERROR, ["add", "exec", "x", "--delay", "5x"]),
            ("a rule for groups has no field lease_ms; it takes max_active, max_waiting, "
             "max_total, ttl_ms, order, weight, rate or paused", SERVER_ERROR,
             ["config", "exec", "lease_ms=30s", "--group", "ann"]),
            ("the queue has no field quiet; it takes", SERVER_ERROR,
             ["config", "exec", "quiet=on"]),
            ("lease takes the number of a lease, as the pop gave it, or * with fencing off, not "
             "9007199254740993", SERVER_ERROR, ["ack", "exec", "alarm", "9007199254740993"]),
            ("fencing off, not *", SERVER_ERROR, ["nack", "exec", "alarm", "*"]),
            ("fencing off, not *", SERVER_ERROR, ["touch", "exec", "alarm", "*", "--lease", "5s"]),
            ("lease takes milliseconds from 100", SERVER_ERROR,
             ["touch", "exec", "alarm", "*", "--lease", "5"]),
            ("lease takes milliseconds from 100", SERVER_ERROR,
             ["touch", "exec", "alarm", "1", "--lease", "5"]),
            ("up to 36600d, not 40000d", SERVER_ERROR, ["add", "exec", "x", "--delay", "40000d"]),
            ("there is no command job1; did you mean jobs?", USAGE_ERROR, ["job1", "exec"]),
            ("no option --grp of jobs", USAGE_ERROR, ["jobs", "exec", "--grp", "ann"]),
            ("did you mean --group?", USAGE_ERROR, ["jobs", "exec", "--grup", "ann"])):
        sluice.fails(code, part, *words)
    sluice.must("config", "exec", "bands=now,later", "default_pri=now")
    sluice.fails(SERVER_ERROR, "pri takes now or later, or a number", "add", "exec", "x", "--pri",
                 "high")


def test_durations_take_units(options):
    """5s, 1h30m, 250ms stand for milliseconds in options and in a configuration."""
    _, sluice = filled(options)
    set_to = sluice.json("config", "exec", "max_run_ms=1h30m", "backoff=1s:5m", "rate=20/1s:40",
                         "retain_failed=100:7d", "lease_ms=30s")
    require_equal(set_to, {"max_run_ms": 5400000, "backoff": "1000:300000",
                           "rate": "20/1000:40", "retain_failed": "100:604800000",
                           "lease_ms": 30000}, "configuration")
    job = sluice.json("add", "exec", "x", "--id", "late", "--delay", "1h", "--ttl", "2d",
                      "--lease", "5s", "--backoff", "250ms:10s")
    require_equal(job["state"], "delayed", "--delay")
    job = sluice.json("job", "exec", "late")
    require_equal(job["lease_ms"], 5000, "--lease")
    require(3_500_000 < job["not_before"] - job["enqueued"] < 3_700_000, "an hour")
    require_equal(ids(sluice.json("jobs", "exec", "--older", "1d")), [], "--older")
    require_equal(sluice.json("pop", "none", "--block", "10ms"), [], "--block")
    for field, value, takes in (("max_payload", "1m", "bytes"), ("max_active", "5m", "a number"),
                                ("retry", "1s", "a number"), ("log_bytes", "4m", "bytes"),
                                ("retain_completed", "1m:1h", "COUNT"), ("rate", "1m/1s", "none"),
                                ("retain_failed", "1:1h:1m", "COUNT"), ("weight", "1s", "a number"),
                                ("adaptive", "1s:8:1s:5s", "off"), ("events", "1d", "COUNT")):
        sluice.fails(SERVER_ERROR, f"{field} takes {takes}", "config", "exec", f"{field}={value}")
    require_equal(sluice.json("config", "exec", "adaptive=1:8:1s:5s", "events=10:1d", "ttl_ms=2h",
                              "aging_ms=1m"),
                  {"adaptive": "1:8:1000:5000", "events": "10:86400000", "ttl_ms": 7200000,
                   "aging_ms": 60000}, "configuration")
    sluice.fails(USAGE_ERROR, "--pause takes milliseconds from 1 to 86400000, or a number with a "
                 "unit (5s, 1h), not 48h", "nodes", "--pause", "48h")
    sluice.fails(SERVER_ERROR, "not ended", "job", "exec", "late", "--wait", "10ms")


def test_unknown_queues_are_not_made(options):
    """pause, resume and config refuse a queue that is not there; --create makes it."""
    server, sluice = filled(options)
    for words in ["pause", "exce"], ["resume", "exce"], ["config", "exce", "max_active=1"], [
            "config", "exce"], ["config", "exce", "--reset"]:
        sluice.fails(SERVER_ERROR, "there is no queue exce; did you mean exec?", *words)
    sluice.fails(SERVER_ERROR, "use --create to create it", "pause", "other")
    with server.connect() as connection:
        require_equal(connection.call("EXISTS", "exce", "other").value, 0, "made all the same")
        require_equal(sluice.json("config", "other", "max_active=1", "--create"),
                      {"max_active": 1}, "--create")
        require_equal(sluice.json("pause", "third", "--create"), {"paused": "out"}, "--create")
        require_equal(connection.call("EXISTS", "third", "other").value, 2, "made")


def test_delete(options):
    """delete takes a queue away with all that is in it; --dry-run only says what would go."""
    server, sluice = filled(options)
    sluice.json("pop", "exec")
    require_equal(sluice.must("delete", "exec", "--dry-run"),
                  "would delete exec with 1 waiting and 1 active jobs\n", "--dry-run")
    require_equal(len(sluice.json("jobs", "exec")), 2, "after --dry-run")
    require_equal(sluice.json("delete", "exec"), {"deleted": True, "waiting": 1, "active": 1})
    require_equal(sluice.json("status"), [], "queues")
    sluice.fails(SERVER_ERROR, "there is no queue exec", "delete", "exec")
    with server.connect() as connection:
        connection.call("SET", "plain", "x")
        sluice.fails(SERVER_ERROR, "WRONGTYPE", "delete", "plain")
        require_equal(connection.call("EXISTS", "plain").value, 1, "another type")


def test_dry_runs(options):
    """--dry-run of cancel, retry and purge counts what they would change, and changes nothing."""
    server, sluice = filled(options)
    with server.connect() as connection:
        connection.pipeline([["Q.ADD", "many", number, "x", "GROUP", f"g{number % 2}"]
                             for number in range(1200)])
    for words, count in ((["cancel", "--all"], 1200), (["cancel", "--group", "g1"], 600),
                         (["cancel", "--group", "g1", "--limit", 7], 7),
                         (["cancel", "--state", "failed"], 0), (["purge", "--all"], 0),
                         (["retry", "--all"], 0)):
        command, *more = words
        require_equal(sluice.json(command, "many", *more, "--dry-run"),
                      {"count": count, "dry_run": True}, str(words))
    require_equal(sluice.must("cancel", "many", "--all", "--dry-run"), "would change 1,200 jobs\n")
    require_equal(sluice.json("cancel", "many", "--group", "g0"), {"count": 600}, "cancel")
    require_equal(sluice.json("purge", "many", "--all", "--dry-run")["count"], 600, "purge")
    require_equal(sluice.json("retry", "many", "--state", "cancelled", "--dry-run")["count"], 600)
    require_equal(sluice.json("cancel", "many", "--all"), {"count": 600}, "no terminal asks")


def test_nack_of_a_worker(options):
    """nack --worker gives back all that a worker runs, as if the leases had expired or as is said;
    --dry-run counts it."""
    server, sluice = serve(options)
    with server.connect() as connection:
        connection.pipeline([["Q.ADD", "q", number, "x", "RETRY", 1, "BACKOFF", 0, 0]
                             for number in range(1200)])
        connection.pipeline([["Q.POP", "1", "q", "WORKER", "other"]]
                            + [["Q.POP", "1", "q", "WORKER", "w", "COUNT", 256]] * 5)
    require_equal(sluice.json("nack", "q", "--worker", "w", "--dry-run"),
                  {"count": 1199, "dry_run": True}, "--dry-run")
    active = sluice.json("jobs", "q", "--state", "active", "--limit", 2000)
    require_equal(len(active), 1200, "after --dry-run")
    require_equal(sluice.must("nack", "q", "--worker", "w"), "1,199 jobs\n", "nack --worker")
    for how, crashes, retries, error in ((["--silent"], 1, 1, None),
                                         (["--fail", "--error", "burnt"], 1, 0, "burnt")):
        (job,) = sluice.json("pop", "q", "--worker", "w")
        require_equal(sluice.json("nack", "q", "--worker", "w", *how), {"count": 1}, str(how))
        job = sluice.json("job", "q", job["id"])
        require_equal((job["state"], job["crashes"], job["retries_left"], job["error"]),
                      ("pending", crashes, retries, error), str(how))
    require_equal(sluice.json("job", "q", 0)["worker"], "other", "another worker's")
    require_equal(sluice.must("nack", "q", "--worker", "none"), "0 jobs\n", "a worker without any")
    sluice.fails(SERVER_ERROR, "there is no queue qq", "nack", "qq", "--worker", "w")
    for words, part in ((["1", "2", "--worker", "w"], "not both"), ([], "or --worker"),
                        (["1"], "or --worker"), (["1", "2", "--dry-run"], "requires --worker"),
                        (["--worker", ""], "requires a name"),
                        (["--worker", "w", "--fatal"], "exclude each other"),
                        (["--worker", "w", "--delay", "1s"], "exclude each other"),
                        (["--worker", "w", "--fail", "--silent"], "exclude each other")):
        sluice.fails(USAGE_ERROR, part, "nack", "q", *words)


def test_the_newest_ended_jobs_first(options):
    """Ended jobs are listed from the last one on; --with result is a column."""
    _, sluice = serve(options)
    for number in range(5):
        sluice.must("add", "q", "x", "--id", f"j{number}")
        (job,) = sluice.json("pop", "q")
        if number < 3:
            sluice.must("nack", "q", job["id"], job["lease"], "--fatal", "--error", "no")
        else:
            sluice.must("ack", "q", job["id"], job["lease"], "--result", f"result {number}")
    require_equal(ids(sluice.json("jobs", "q", "--state", "failed")), ["j2", "j1", "j0"], "failed")
    require_equal(ids(sluice.json("jobs", "q")), ["j2", "j1", "j0", "j4", "j3"], "all")
    require_equal(ids(sluice.json("jobs", "q", "--state", "failed", "--limit", 1)), ["j2"], "one")
    require_equal(ids(sluice.json("jobs", "q", "--by", "age")), ["j0", "j1", "j2", "j3", "j4"])
    shown = sluice.must("jobs", "q", "--state", "completed", "--with", "result").splitlines()
    require_equal(shown[0].split()[-1], "RESULT", "a column")
    require(shown[1].endswith("result 4"), shown[1])
    shown = sluice.must("jobs", "q", "--with", "payload", "--with", "result").splitlines()
    require_equal(shown[0].split()[-2:], ["PAYLOAD", "RESULT"], "two columns")
    sluice.must("add", "q", "x", "--retry", 0, "--boost", -600000)
    sluice.must("add", "q", "x")
    shown = sluice.must("jobs", "q", "--state", "pending", "--with", "options").splitlines()
    require_equal([line.split("\t")[-1] for line in shown],
                  ["OPTIONS", "", "boost_ms=-600000 retry=0"], "the options that are a job's own")


def test_help(options):
    """Every command's help has an example; that of config has every field; man shows all of it."""
    server, sluice = serve(options)
    for command in COMMANDS:
        shown = sluice.must(command, "--help")
        require(re.search(r"^example: .*sluice ", shown, re.M), shown)
        require(max(map(len, shown.splitlines())) <= 80 and "  [option" not in shown, shown)
    require(max(map(len, sluice.must("help").splitlines())) <= 90, "the help is too wide")
    with server.connect() as connection:
        fields = connection.call("Q.CONFIG", "q", "GET").value[::2]
    shown = sluice.must("config", "--help")
    require_equal(re.findall(r"^  ([a-z_]+)=\S.*\n      \S", shown, re.M),
                  [field.decode() for field in fields], "fields")
    page = sluice.must("help", "--man")
    for command in COMMANDS:
        require(f"\n.SS {command}\n" in page, f"{command} is not in the page of man")


def test_simulate(options):
    """simulate adds, runs and fails jobs, ends by itself, and gives back what runs."""
    _, sluice = serve(options)
    code, out, err = sluice.run("simulate", "sim", "--rate", 200, "--producers", 2, "--workers", 4,
                                "--run-ms", "5:10", "--users", 3, "--fail", 0.2, "--bands",
                                "high=1,low=3", "--seconds", 2, "--seed", 1, "--json")
    require_equal((code, err), (0, ""), "simulate")
    *progress, last = [json.loads(line) for line in out.splitlines()]
    require_equal(len(progress), 2, "a line a second")
    summary = last["summary"]
    require(summary["added"] > 200 and summary["completed"] > 100, str(summary))
    require(summary["failed_runs"] > 20 and summary["refused"] == 0, str(summary))
    stats = sluice.json("status", "sim")["stats"]
    require_equal((stats["added"], stats["completed"], stats["active"]),
                  (summary["added"], summary["completed"], 0), "as the server counts")
    require_equal(set(sluice.json("status", "sim", "--by", "group")) <= {"ann", "bob", "carol"},
                  True, "users")
    bands = sluice.json("status", "sim", "--by", "pri")
    require(bands["LOW"]["started"] > bands["HIGH"]["started"] > 0, str(bands))
    (job,) = sluice.json("jobs", "sim", "--limit", 1, "--with", "payload")
    require("task" in json.loads(job["payload"]), job["payload"])
    process = sluice.spawn("simulate", "sim", "--run-ms", "60000", "--rate", 50)
    while not process.stdout.readline().endswith(b"active 4\n"):
        pass
    process.terminate()
    out, err = process.communicate(timeout=30)
    require_equal((process.returncode, err), (0, b""), "ended by a signal")
    require(b"returned at the end 4" in out, out.decode())
    require_equal(sluice.json("status", "sim")["stats"]["active"], 0, "nothing is left active")
    sluice.fails(USAGE_ERROR, "--run-ms takes", "simulate", "sim", "--run-ms", "9:5")
    sluice.fails(USAGE_ERROR, "--bands takes", "simulate", "sim", "--bands", "high")
    sluice.fails(SERVER_ERROR, "BADFIELD field=pri", "simulate", "sim", "--bands", "none=1")


def test_usage(options):
    """A wrong command line is refused before anything is asked of the server."""
    sluice = Sluice(options, None)
    for words, part in ((["nonsense"], "there is no command nonsense"),
                        (["jobs"], "jobs without a queue requires --by error"),
                        (["jobs", "a", "b"], "usage: sluice jobs [QUEUE]"),
                        (["job", "a"], "usage: sluice job QUEUE ID"),
                        (["jobs", "a", "--nonsense"], "no option --nonsense of jobs"),
                        (["jobs", "a", "--state"], "--state requires a value"),
                        (["jobs", "a", "--by", "age", "--by", "age"], "is given twice"),
                        (["jobs", "a", "--json=1"], "takes no value"),
                        (["jobs", "a", "--limit", "0"], "--limit takes a whole number"),
                        (["jobs", "a", "-n", "x"], "-n takes a whole number"),
                        (["pop", "a", "--reqid", "x"], "--reqid requires --worker"),
                        (["nack", "a", "b", "1", "--fatal", "--silent"], "exclude each other"),
                        (["events", "a", "--after", "x"], "--after takes")):
        sluice.fails(USAGE_ERROR, part, *words)
    code, out, err = sluice.run()
    require_equal((code, out), (USAGE_ERROR, ""), "nothing at all")
    require(err.startswith("usage: sluice"), err)
    require(sluice.must("help").startswith("usage: sluice"), "help")
    for command in COMMANDS:
        require(re.search(rf"^  {command} ", sluice.must("--help"), re.M), f"no {command} in help")
        require_equal(sluice.must(command, "--help"), sluice.must("help", command), command)
    version = subprocess.run([sluice.path, "--version"], capture_output=True, check=True).stdout
    require(re.fullmatch(rb"sluice \d+\.\d+\.\d+\n", version), version)


def test_what_it_loads(options):
    """A shell starts the program often: it loads no library that only the server needs."""
    _, sluice = serve(options)
    loaded = subprocess.run(["ldd", sluice.path], check=True, capture_output=True, text=True)
    require("libssl" in loaded.stdout, loaded.stdout)
    for library in ["librocksdb", "libluajit", "libspdlog", "libgrpc", "libjemalloc"]:
        require(library not in loaded.stdout, f"{library}: {loaded.stdout}")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
