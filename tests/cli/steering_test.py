#!/usr/bin/python3
"""The program sluice for operators: selectors by time and id, orders, purges of ids, trials of a
configuration, rules of workers, single groups, dependents."""

import json
import re
import sys

from harness import require, require_equal, run, wait_until
from harness.cli import SERVER_ERROR, USAGE_ERROR, serve


def ids(jobs):
    return [job["id"] for job in jobs]


def add_two(server, sluice):
    """report-1, and later report-2; returns a moment in between."""
    sluice.must("add", "exec", "x", "--id", "report-1")
    before = sluice.json("job", "exec", "report-1")["enqueued"]

    def is_later():
        with server.connect() as connection:
            return int(connection.call("TIME").value[0]) * 1000 > before + 100
    wait_until(is_later, what="a later second")
    sluice.must("add", "exec", "x", "--id", "report-2")
    return before + 50


def test_jobs_are_selected_by_time_and_id(options):
    """--since, --until and --id-part select jobs to list and to change."""
    server, sluice = serve(options)
    then = add_two(server, sluice)
    sluice.must("add", "exec", "x", "--id", "mail", "--delay", "1h")
    for words, expected in ((["--since", then], ["report-2", "mail"]),
                            (["--until", then], ["report-1"]),
                            (["--since", then, "--id-part", "report"], ["report-2"]),
                            (["--since", then, "--until", then], []),
                            (["--id-part", "PORT-"], ["report-1", "report-2"]),
                            (["--id-part", "none"], [])):
        require_equal(ids(sluice.json("jobs", "exec", *words)), expected, str(words))
    words = ["cancel", "exec", "--id-part", "report", "--until", then]
    require_equal(sluice.json(*words, "--dry-run"), {"count": 1, "dry_run": True})
    require_equal(sluice.json(*words), {"count": 1})
    require_equal(sluice.json("job", "exec", "report-1")["state"], "cancelled")
    sluice.fails(SERVER_ERROR, "since takes unix milliseconds, not now", "jobs", "exec", "--since",
                 "now")
    sluice.fails(SERVER_ERROR, "BADFIELD field=idpart", "jobs", "exec", "--id-part", "")


def test_jobs_by_age_the_newest_first(options):
    """--desc turns the order of --by age, and goes with no other."""
    server, sluice = serve(options)
    add_two(server, sluice)
    require_equal(ids(sluice.json("jobs", "exec", "--by", "age")), ["report-1", "report-2"])
    require_equal(ids(sluice.json("jobs", "exec", "--by", "AGE", "--desc")),
                  ["report-2", "report-1"])
    require_equal(ids(sluice.json("jobs", "exec", "--by", "age", "--desc", "--limit", 1)),
                  ["report-2"])
    for words in [], ["--by", "rank"], ["--by", "error"]:
        sluice.fails(USAGE_ERROR, "--desc requires --by age", "jobs", "exec", "--desc", *words)


def test_purge_of_ids(options):
    """purge forgets the jobs that are named, if they have ended."""
    server, sluice = serve(options)
    for name in "abc":
        sluice.must("add", "exec", "x", "--id", name)
    sluice.must("cancel", "exec", "a", "b")
    sluice.fails(SERVER_ERROR, "c: the job has not ended, it is pending", "purge", "exec", "c")
    code, out, err = sluice.run("purge", "exec", "c", "a", "none", "--json")
    first, second, third = json.loads(out)
    require_equal((code, first["error"]["code"], second, third["error"]["code"]),
                  (SERVER_ERROR, "NOTENDED", {"id": "a", "state": "purged"}, "NOJOB"), err)
    require_equal(sluice.must("purge", "exec", "b"), "b: purged\n")
    require_equal(ids(sluice.json("jobs", "exec")), ["c"], "what is left")
    sluice.fails(USAGE_ERROR, "not both", "purge", "exec", "c", "--state", "failed")
    sluice.fails(USAGE_ERROR, "no job has the id where", "purge", "exec", "where")
    sluice.fails(USAGE_ERROR, "purge takes ids, or a selector", "purge", "exec")
    with server.connect() as connection:
        require_equal(connection.call("Q.STATS", "exec").value[1], 1, "pending")


def test_trials_of_a_configuration(options):
    """config --dry-run shows what a change would mean, and changes nothing."""
    _, sluice = serve(options)
    for name in "abc":
        sluice.must("add", "exec", "x", "--id", name, "--group", "ann")
    sluice.must("pop", "exec", "--count", 2)
    trial = sluice.json("config", "exec", "max_active=1", "ttl_ms=5s", "--dry-run")
    require_equal({name: value for name, value in trial.items() if value},
                  {"matched": 1, "slots": 2, "slots_over": 1, "complete": True})
    shown = sluice.must("config", "exec", "--group", "ann", "max_total=1", "--dry-run")
    for line in "matched\t1", "slots\t2", "slots_over\t0", "total_over\t2", "complete\tyes":
        require(re.search(f"^{line}$", shown, re.M), f"no {line!r} in {shown}")
    require_equal(sluice.json("config", "exec", "max_active", "ttl_ms"),
                  {"max_active": 0, "ttl_ms": 0}, "unchanged")
    require_equal(sluice.json("config", "exec", "--group", "ann"), {}, "no rule")
    sluice.fails(SERVER_ERROR, "BADFIELD field=paused", "config", "exec", "paused=no", "--dry-run")
    sluice.fails(SERVER_ERROR, "there is no queue exce", "config", "exce", "max_active=1",
                 "--dry-run")
    for option in ["--dry-run"], ["--if", "max_active=0"]:
        sluice.fails(USAGE_ERROR, f"{option[0]} requires FIELD=VALUE", "config", "exec", *option)
        sluice.fails(USAGE_ERROR, f"--reset and {option[0]} exclude each other", "config", "exec",
                     "--reset", *option)


def test_changes_of_what_was_seen(options):
    """config --if changes nothing if the field has another value by now."""
    _, sluice = serve(options)
    sluice.must("add", "exec", "x")
    require_equal(sluice.json("config", "exec", "max_active=3", "--if", "max_active=0", "--if",
                              "lease_ms=30s"), {"max_active": 3})
    words = ["config", "exec", "max_active=4", "--if", "paused=none", "--if", "max_active=0"]
    sluice.fails(SERVER_ERROR, "CHANGED field=max_active value=3", *words)
    sluice.fails(SERVER_ERROR, "CHANGED field=max_active value=3", *words, "--dry-run")
    require_equal(sluice.json("config", "exec", "max_active"), {"max_active": 3})
    sluice.fails(USAGE_ERROR, "--if takes FIELD=VALUE, not max_active", "config", "exec",
                 "max_active=4", "--if", "max_active")
    require_equal(sluice.json("config", "exec", "--group", "ann", "weight=2", "--if", "weight="),
                  {"weight": 2}, "what a rule does not set")
    sluice.fails(SERVER_ERROR, "CHANGED field=weight value=2", "config", "exec", "--group", "ann",
                 "weight=3", "--if", "weight=")


def test_rules_of_workers(options):
    """config shows and changes them by name, which is literal, or by glob."""
    _, sluice = serve(options)
    sluice.must("add", "exec", "x")
    require_equal(sluice.json("config", "exec", "--worker", "w*", "quiet=on"), {"quiet": "on"})
    require_equal(sluice.json("config", "exec", "--worker-glob", "w*"), {}, "another rule")
    require_equal(sluice.json("pop", "exec", "--worker", "w*"), [], "a quiet worker")
    require_equal(sluice.json("config", "exec", "--worker", "w*", "--reset"), {})
    require_equal(len(sluice.json("pop", "exec", "--worker", "w*")), 1, "quiet no more")
    sluice.must("quiet", "exec", "w?", "--glob")
    require_equal(sluice.json("config", "exec", "--worker-glob", "w?", "quiet"), {"quiet": "on"})
    sluice.fails(USAGE_ERROR, "use only one of", "config", "exec", "--worker", "w", "--key", "k")
    sluice.fails(SERVER_ERROR, "a rule for workers has no field max_active", "config", "exec",
                 "--worker", "w", "max_active=1")


def test_the_line_of_one_group(options):
    """status --group has it alone, also if it has no jobs."""
    _, sluice = serve(options)
    sluice.must("add", "exec", "x", "--group", "ann")
    sluice.must("add", "exec", "x", "--group", "bob")
    line = sluice.json("status", "exec", "--group", "ann")
    require_equal((list(line), line["ann"]["pending"], line["ann"]["max_active"]), (["ann"], 1, 0))
    require_equal(sluice.json("status", "exec", "--group", "none")["none"]["pending"], 0)
    shown = sluice.must("status", "exec", "--group", "ann").splitlines()
    require_equal((len(shown), shown[1].split("\t")[:2]), (2, ["ann", "1"]))
    sluice.fails(USAGE_ERROR, "--by and --group exclude each other", "status", "exec", "--by",
                 "pri", "--group", "ann")
    sluice.fails(USAGE_ERROR, "--group requires a queue", "status", "--group", "ann")


def test_the_jobs_that_wait_for_a_job(options):
    """job shows those that are blocked by it, and nothing about it of another job."""
    _, sluice = serve(options)
    sluice.must("add", "exec", "x", "--id", "build")
    sluice.must("add", "exec", "x", "--id", "test", "--need", "build")
    sluice.must("add", "exec", "x", "--id", "report", "--after", "build")
    job = sluice.json("job", "exec", "build")
    require_equal((job["dependents"], job["dependents_count"]), (["test", "report"], 2))
    shown = sluice.must("job", "exec", "build", "--no-story")
    require("\ndependents\ttest report\n" in shown and "\ndependents_count\t2\n" in shown, shown)
    require("dependents" not in sluice.must("job", "exec", "test", "--no-story"), "of another")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
