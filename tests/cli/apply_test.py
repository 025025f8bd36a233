#!/usr/bin/python3
"""sluice diff-config, apply and config --export: plans, what they change, what they leave alone."""

import json
import os
import subprocess
import sys

from harness import require, require_equal, run, scratch, wait_until
from harness.cli import SERVER_ERROR, USAGE_ERROR, Terminal, environment, serve

CHANGES = 2
FILE = {"queues": {
    "exec": {"max_active": 2, "rate": "20/1s", "bands": "now,later", "default_pri": "later",
             "groups": {"team.*": {"max_active": 2, "order": "lifo:later"},
                        "ann": {"max_waiting": 1}},
             "keys": {"gpu": {"max_active": 1}}},
    "mail": {}}}


def written(folder, content):
    path = os.path.join(folder, "queues.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(content if isinstance(content, str) else json.dumps(content, indent=1))
    return path


def test_apply_makes_it_so(options):
    """The plan is what apply does; then nothing is left to change, and export says the same."""
    server, sluice = serve(options)
    with scratch() as folder, server.connect() as connection:
        path = written(folder, FILE)
        code, plan, err = sluice.run("diff-config", path)
        require_equal((code, err), (CHANGES, ""), "diff-config")
        require("+ exec: a new queue\n" in plan and "+ exec: group team.*: max_active 2\n" in plan
                and "+ exec: rate none -> 20/1000\n" in plan
                and "+ mail: a new queue\n" in plan, plan)
        require_equal(connection.call("EXISTS", "exec").value, 0, "diff-config changed something")
        code, out, err = sluice.run("apply", path)
        require_equal((code, out), (USAGE_ERROR, plan), "apply without --yes")
        require("--yes" in err, err)
        require_equal(connection.call("EXISTS", "exec").value, 0, "apply without --yes")
        code, out, err = sluice.run("apply", path, "--yes")
        require_equal((code, out), (0, plan), "apply --yes")
        require_equal(err, "sluice: applied 10 changes to 2 queues\n", "apply --yes")
        require_equal(connection.call("Q.CONFIG", "exec", "GROUP", "team.*", "GET").value,
                      [b"max_active", b"2", b"order", b"lifo:later"], "a rule")
        require_equal(sluice.run("diff-config", path), (0, "", ""), "diff-config again")
        code, out, err = sluice.run("apply", path)
        require_equal((code, out, err), (0, "", "sluice: no changes\n"), "apply again")
        exported = sluice.must("config", "--export")
        require_equal(json.loads(exported), {"queues": {
            **FILE["queues"], "exec": {**FILE["queues"]["exec"], "rate": "20/1000"}}}, "export")
        require_equal(sluice.run("diff-config", "-", stdin=exported.encode()), (0, "", ""),
                      "export")
        require_equal(json.loads(sluice.must("config", "--export", "mail")),
                      {"queues": {"mail": {}}}, "export of one")
        sluice.fails(SERVER_ERROR, "there is no queue none", "config", "none", "--export")


def test_what_is_left_alone(options):
    """Other queues, pauses and quiet workers stay; --prune resets other queues, with their jobs."""
    server, sluice = serve(options)
    with scratch() as folder, server.connect() as connection:
        for queue in "exec", "other":
            connection.call("Q.CONFIG", queue, "SET", "max_active", 5, "paused", "out")
            connection.call("Q.CONFIG", queue, "WORKER", "w*", "SET", "quiet", "on")
            connection.call("Q.CONFIG", queue, "GROUP", "g", "SET", "weight", 2)
            connection.call("Q.ADD", queue, "j", "")
        path = written(folder, {"queues": {"exec": {"retry": 1}}})
        sluice.must("apply", path, "--yes")
        require_equal(json.loads(sluice.must("config", "--export", "exec")),
                      {"queues": {"exec": {"retry": 1, "paused": "out",
                                           "workers": {"w*": {"quiet": "on"}}}}}, "exec")
        other = json.loads(sluice.must("config", "--export", "other"))["queues"]["other"]
        require_equal(other["max_active"], 5, "other")
        code, plan, err = sluice.run("diff-config", path, "--prune")
        require_equal((code, plan, err), (CHANGES, "- other: max_active 5 -> 0\n"
                                          "- other: group g: weight 2\n", ""), "--prune")
        sluice.must("apply", path, "--prune", "--yes")
        other = json.loads(sluice.must("config", "--export", "other"))["queues"]["other"]
        require_equal(other, {"paused": "out", "workers": {"w*": {"quiet": "on"}}}, "pruned")
        require_equal(len(sluice.json("jobs", "other")), 1, "its job")


def test_the_order_of_rules(options):
    """Of two globs of equal length the last one wins: export and apply keep their order."""
    server, sluice = serve(options)
    with scratch() as folder, server.connect() as connection:
        def limit_of_test():
            reply = connection.call("Q.STATS", "exec", "GROUP", "test").value
            return int(reply[reply.index(b"max_active") + 1])

        for glob, limit in ("te*", "1"), ("*st", "2"), ("te*", "3"):
            connection.call("Q.CONFIG", "exec", "GROUP", glob, "SET", "max_active", limit)
        connection.call("Q.ADD", "exec", "j", "", "GROUP", "test")
        require_equal(limit_of_test(), 3, "the last one that was set")
        exported = sluice.must("config", "--export")
        path = written(folder, exported)
        require_equal(sluice.run("diff-config", path), (0, "", ""), "no difference")
        connection.call("DEL", "exec")
        sluice.must("apply", path, "--yes")
        connection.call("Q.ADD", "exec", "j", "", "GROUP", "test")
        require_equal(limit_of_test(), 3, "applied")
        groups = json.loads(exported)["queues"]["exec"]["groups"]
        require_equal(list(groups), ["*st", "te*"], "the order of the file")
        path = written(folder, {"queues": {"exec": {"groups": dict(reversed(groups.items()))}}})
        require_equal(sluice.run("diff-config", path)[:2],
                      (CHANGES, "~ exec: group *st: moved to the end\n"), "another order")
        sluice.must("apply", path, "--yes")
        require_equal(limit_of_test(), 2, "the other order")
        require_equal(sluice.run("diff-config", path), (0, "", ""), "no difference")


def test_more_rules_than_a_page(options):
    """All rules of a queue are read, however many: what was applied is no difference."""
    _, sluice = serve(options)
    with scratch() as folder:
        groups = {f"g{number}": {"weight": 2} for number in range(1001)}
        path = written(folder, {"queues": {"exec": {"groups": groups}}})
        sluice.must("apply", path, "--yes")
        require_equal(sluice.run("diff-config", path), (0, "", ""), "applied")
        exported = json.loads(sluice.must("config", "--export"))
        require_equal(exported["queues"]["exec"]["groups"], groups, "exported")


def test_limits_in_use(options):
    """A plan says where a new limit is below what is in use."""
    server, sluice = serve(options)
    with scratch() as folder, server.connect() as connection:
        for number in range(6):
            connection.call("Q.ADD", "exec", f"j{number}", "", "GROUP", "ann")
        connection.call("Q.POP", 1, "exec", "COUNT", 3)
        path = written(folder, {"queues": {"exec": {
            "max_active": 2, "max_waiting": 3,
            "groups": {"ann": {"max_total": 4, "max_active": 3}, "b*": {"max_active": 1}}}}})
        code, plan, err = sluice.run("diff-config", path)
        require_equal((code, err), (CHANGES, ""), "diff-config")
        require_equal(plan.splitlines(), [
            "+ exec: max_active 0 -> 2; 3 slots are in use: none is given until 1 are free",
            "+ exec: max_waiting 0 -> 3",
            "+ exec: group ann: max_active 3",
            "+ exec: group ann: max_total 4; 6 jobs are there: new ones are refused until 2 have "
            "left",
            "+ exec: group b*: max_active 1"], "notes")
        changes = json.loads(sluice.run("diff-config", path, "--json")[1])
        require_equal(changes[0], {"change": "+", "queue": "exec", "field": "max_active",
                                   "from": "0", "to": "2",
                                   "note": plan.splitlines()[0].split("; ")[1]}, "JSON")
        require_equal(changes[4]["group"], "b*", "JSON of a rule")
        path = written(folder, {"queues": {"exec": {
            "full": "displace", "max_total": 4, "groups": {"ann": {"max_total": 4}}}}})
        plan = sluice.run("diff-config", path)[1]
        require_equal(plan.splitlines()[1:], [
            "+ exec: max_total 0 -> 4; 6 jobs are there: a more urgent new one cancels the least "
            "urgent, others are refused until 2 have left",
            "+ exec: group ann: max_total 4; 6 jobs are there: new ones are refused until 2 have "
            "left"], "full displace")


def test_what_a_lower_retention_deletes(options):
    """A plan counts the ended jobs and events that it deletes at once, also by the defaults."""
    server, sluice = serve(options)
    with scratch() as folder, server.connect() as connection:
        def notes(settings):
            path = written(folder, {"queues": {"exec": settings}})
            code, plan, err = sluice.run("diff-config", path)
            require_equal((code, err), (CHANGES, ""), "diff-config")
            return [line.partition("; ")[2] for line in plan.splitlines()]

        connection.call("Q.CONFIG", "exec", "SET", "retain_completed", 2000, "retry", 1)
        for number in range(1001):
            connection.call("Q.ADD", "exec", f"j{number}", "")
            connection.call("Q.CANCEL", "exec", f"j{number}")
        # The fields are in the order of their names.
        require_equal(notes({"retain_completed": "2000", "retry": 1, "events": "2001:86400000"}),
                      ["1 event is deleted at once"], "events")
        require_equal(notes({"retain_completed": "3:0:1", "retain_failed": "1"}),
                      ["1,001 ended jobs are deleted at once", "", ""], "bytes")
        require_equal(notes({}), ["1 ended job is deleted at once", ""], "the default")
        path = written(folder, {"queues": {"exec": {"retain_completed": "3", "retry": 1}}})
        require("; 998 ended jobs are deleted at once\n" in sluice.must("apply", path, "--yes"),
                "apply")
        # Many are deleted in steps.
        wait_until(lambda: len(sluice.json("jobs", "exec", "--state", "cancelled")) == 3,
                   what="3 are kept")


def test_wrong_usage_is_no_difference(options):
    """Wrong usage of diff-config exits with 1, as other errors do, since 2 tells of changes."""
    _, sluice = serve(options)
    for words in (["diff-config"], ["diff-config", "f", "g"], ["diff-config", "f", "--prun"],
                  ["-n", "", "diff-config", "f"], ["--port", "1", "diff-config", "f"]):
        code, out, err = sluice.run(*words)
        require_equal((code, out), (SERVER_ERROR, ""), str(words) + err)
    code, _, err = sluice.run("diff-config", "--json")
    require_equal((code, json.loads(err)["error"]["code"]), (SERVER_ERROR, "USAGE"), err)
    require_equal(sluice.run("apply")[0], USAGE_ERROR, "apply")
    require("wrong usage" in " ".join(sluice.must("diff-config", "--help").split()), "help")


def test_errors_come_first(options):
    """A file with an error changes nothing; the error names line, field and what is allowed."""
    server, sluice = serve(options)
    with scratch() as folder, server.connect() as connection:
        path = written(folder, '{"queues": {\n "exec": {"retry": 1},\n "mail": {"ful": "reject"}}}')
        for command in ["diff-config"], ["apply", "--yes"]:
            code, out, err = sluice.run(*command, path)
            require_equal((code, out), (SERVER_ERROR, ""), str(command))
            require(err.startswith(f"sluice: {path}:3: mail: ful: there is no field ful; "
                                   "did you mean full?"), err)
        require_equal(connection.call("DBSIZE").value, 0, "changed")
        for name in path + ".none", folder:
            for command in ["diff-config"], ["apply", "--yes"]:
                sluice.fails(SERVER_ERROR, f"cannot read {name}", *command, name)
        connection.call("SET", "mail", "a string")
        path = written(folder, {"queues": {"mail": {"retry": 1}}})
        sluice.fails(SERVER_ERROR, "WRONGTYPE", "apply", path, "--yes")


def test_what_a_wrong_member_might_have_been(options):
    """A mistyped member is named with the nearest one; true and false stand for on and off."""
    _, sluice = serve(options)
    with scratch() as folder:
        for queue, said in (
                ({"grups": {"a": {"max_active": 1}}},
                 "exec: grups: there is no such member; did you mean groups?"),
                ({"max_activ": [1]},
                 "exec: max_activ: there is no such member; did you mean max_active?"),
                ({"groups": {"a": {"max_activ": {}}}},
                 "exec: groups: a: max_activ: there is no such member; did you mean max_active?"),
                ({"workers": {"a": {"quiet": []}}},
                 "exec: workers: a: quiet takes a text, a number, true or false"),
                ({"max_active": True}, "exec: max_active: max_active takes a number"),
                ({"max_active": "5m"}, "exec: max_active: max_active takes a number"),
                ({"max_payload": "1m"}, "exec: max_payload: max_payload takes bytes")):
            code, out, err = sluice.run("diff-config", written(folder, {"queues": {"exec": queue}}))
            require_equal((code, out), (SERVER_ERROR, ""), err)
            require(said in err, f"{err!r}, not {said!r}")
        path = written(folder, {"queues": {"exec": {
            "fair": True, "fencing": False, "workers": {"w": {"quiet": True}}}}})
        sluice.must("apply", path, "--yes")
        require_equal(sluice.json("config", "exec", "fair", "fencing"),
                      {"fair": "on", "fencing": "off"}, "switches")
        require_equal(sluice.run("diff-config", path), (0, "", ""), "applied")


def test_apply_asks_at_a_terminal(options):
    """At a terminal apply shows the plan and asks; only yes is an answer for it."""
    server, sluice = serve(options)
    with scratch() as folder, server.connect() as connection:
        path = written(folder, {"queues": {"exec": {"retry": 1}}})
        for answer in "n", "", "y":
            terminal = Terminal(["sh", "-c", 'exec "$@" 2>/dev/null', "sh",
                                 *sluice.words("apply", path)])
            terminal.read_until(r"exec: retry 0 -> 1.*apply 2 changes to 1 queue\? \[y/N\] ")
            os.write(terminal.mine, answer.encode() + b"\n")
            require_equal(terminal.end()[0], 0 if answer == "y" else SERVER_ERROR, repr(answer))
            require_equal(connection.call("EXISTS", "exec").value, int(answer == "y"), repr(answer))
        terminal = Terminal(sluice.words("apply", "-"))
        os.write(terminal.mine, b'{"queues": {"exec": {"retry": 2}}}\n\x04')
        terminal.read_until(r"\[y/N\] ")
        os.write(terminal.mine, b"y\n")
        require_equal(terminal.end()[0], 0, "a file that is typed")
        require_equal(sluice.json("config", "exec", "retry"), {"retry": 2}, "typed")


def test_what_changes_while_the_question_stands(options):
    """A plan that no longer holds is not applied; what it leaves alone may change meanwhile."""
    server, sluice = serve(options)
    with scratch() as folder, server.connect() as connection:
        def apply_amid(*change):
            connection.call("Q.CONFIG", "exec", "GROUP", "ann", "SET", "max_active", 2, "rate",
                            "5/1000", "weight", 1)
            terminal = Terminal(sluice.words("apply", path))
            terminal.read_until(r"\[y/N\] ")
            connection.call("Q.CONFIG", "exec", *change)
            os.write(terminal.mine, b"y\n")
            code = terminal.end()[0]
            return code, sluice.json("config", "exec", "--group", "ann"), terminal.text

        path = written(folder, {"queues": {"exec": {"groups": {
            "ann": {"max_active": 2, "weight": 1}}}}})
        code, rule, text = apply_amid("GROUP", "ann", "SET", "weight", 3)
        require_equal(code, SERVER_ERROR, text)
        require("nothing was changed" in text, text)
        require_equal(rule, {"max_active": 2, "rate": "5/1000", "weight": 3}, "a stale plan")
        code, rule, text = apply_amid("SET", "retry", 7)
        require_equal(code, SERVER_ERROR, text)
        connection.call("Q.CONFIG", "exec", "RESET")
        code, rule, text = apply_amid("GROUP", "ann", "SET", "paused", "out")
        require_equal((code, rule), (0, {"max_active": 2, "paused": "out", "weight": 1}), text)


def test_where_apply_stops(options):
    """A failure amid several queues is told with its queue, and how many were changed before it."""
    server, sluice = serve(options, {"user": "ann on nopass %R~* ~a* ~b* +@all"})
    with scratch() as folder, server.connect() as connection:
        path = written(folder, {"queues": {name: {"retry": 1} for name in "abcd"}})
        code, _, err = sluice.run("--user", "ann", "--pass", "x", "apply", path, "--yes")
        require_equal(code, SERVER_ERROR, err)
        require(err.startswith("sluice: NOPERM ") and err.endswith(
            " (queue c; 2 of 4 queues were changed before it)\n"), err)
        require_equal([connection.call("EXISTS", name).value for name in "abcd"], [1, 1, 0, 0],
                      "changed")
        code, _, err = sluice.run("--user", "ann", "--pass", "x", "apply", path, "--yes", "--json")
        require_equal(json.loads(err)["error"]["code"], "NOPERM", err)


def test_fields_in_any_case(options):
    """A field is one whatever its case: it is applied, named in errors, and not given twice."""
    _, sluice = serve(options)
    with scratch() as folder:
        path = written(folder, {"queues": {"exec": {"PAUSED": "out", "Max_Active": 2, "groups": {
            "g": {"MAX_active": 1}}}}})
        sluice.must("apply", path, "--yes")
        require_equal(sluice.json("config", "exec", "paused", "max_active"),
                      {"paused": "out", "max_active": 2}, "applied")
        for queue, said in (
                ({"RATE": "x"}, "exec: rate: rate takes none or N/MS[:BURST], such as 20/1000 or "
                                "20/1s:40, not x"),
                ({"bands": "A,B", "default_pri": "NORMAL"}, "exec: default_pri: default_pri "
                 "takes A or B, or a number from 0 to 255, not NORMAL\n"),
                ({"retry": 1, "RETRY": 2}, "exec: RETRY is given twice"),
                ({"groups": {"g": {"weight": 1, "Weight": 2}}},
                 "exec: groups: g: Weight is given twice"),
                ({"workers": {"w": {"quiet": "on", "Quiet": "off"}}},
                 "exec: workers: w: Quiet is given twice"),
                ({"": 1}, 'exec: "": there is no field')):
            code, _, err = sluice.run("diff-config", written(folder, {"queues": {"exec": queue}}))
            require_equal(code, SERVER_ERROR, err)
            require(said in err, f"{err!r}, not {said!r}")


def test_a_plan_that_cannot_be_written(options):
    """diff-config whose output goes nowhere fails, as other commands do, and finds no changes."""
    _, sluice = serve(options)
    with scratch() as folder:
        path = written(folder, FILE)
        why = "cannot write the output: No space left on device"
        unread = "the plan cannot be printed: nothing was changed"
        for words, expected in ((["diff-config", path], [why]), (["status"], [why]),
                                (["apply", path, "--yes"], [unread, why])):
            for as_json in [], ["--json"]:
                with open("/dev/full", "wb") as full:
                    done = subprocess.run(sluice.words(*words, *as_json), stdout=full, text=True,
                                          stderr=subprocess.PIPE, env=environment(), timeout=30,
                                          check=False)
                told = [json.loads(line)["error"]["detail"] if as_json
                        else line.removeprefix("sluice: ") for line in done.stderr.splitlines()]
                require_equal((done.returncode, told), (SERVER_ERROR, expected), str(words))
        require("no queues" in sluice.must("status"), "applied all the same")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
