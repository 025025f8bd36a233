#!/usr/bin/python3
"""sluice jobs --failed, --error, --by error of a queue and of all, and what retry does with one of
these errors."""

import json
import sys

from harness import require, require_equal, run, wait_until
from harness.cli import SERVER_ERROR, USAGE_ERROR, Terminal, plain, serve


def fail_jobs(connection):
    for number in range(12):
        error = f"Timeout after {number} ms\nat line {number}" if number % 3 else "no such file"
        connection.call("Q.ADD", "exec", f"j{number:02}", "")
        job = connection.call("Q.POP", 1, "exec").value[0]
        connection.call("Q.NACK", "exec", f"j{number:02}", job[job.index(b"lease") + 1], "FATAL",
                        "ERROR", error)
    connection.call("Q.ADD", "exec", "waiting", "")


def test_failures_are_grouped(options):
    """--by error counts the failed jobs by the first line of their error, digits as #."""
    server, sluice = serve(options)
    with server.connect() as connection:
        sluice.fails(SERVER_ERROR, "there is no queue exec", "jobs", "exec", "--by", "error")
        fail_jobs(connection)
    groups = sluice.json("jobs", "exec", "--by", "error")
    require_equal([(pattern, line["count"], line["id"]) for pattern, line in groups.items()],
                  [("Timeout after # ms", 8, "j11"), ("no such file", 4, "j09")], "groups")
    lines = sluice.must("jobs", "exec", "--failed", "--by", "error").splitlines()
    require_equal(lines[0].split("\t"), ["JOBS", "LAST", "FIRST", "NEWEST ID", "ERROR"], "titles")
    require(lines[1].startswith("8\t") and lines[1].endswith("\tj11\tTimeout after # ms"),
            str(lines))
    code, out, err = sluice.run("jobs", "exec", "--by", "error", "--limit", 1)
    require_equal((code, len(out.splitlines())), (0, 2), "--limit")
    require("1 more group;" in err, err)
    code, out, err = sluice.run("jobs", "exec", "--by", "error", "--limit", 1, "--json")
    require_equal((list(json.loads(out)), json.loads(err)),
                  (["Timeout after # ms"], {"note": "there is 1 more group; see --limit"}),
                  "--limit as JSON")
    code, out, err = sluice.run("jobs", "exec", "--limit", 5, "--json")
    require_equal((len(json.loads(out)), json.loads(err)),
                  (5, {"note": "there are more jobs than 5; see --limit"}), "jobs as JSON")
    terminal = Terminal(sluice.words("jobs", "exec", "--by", "error"), columns=40)
    terminal.read_until("Timeout.*\n.*such")
    terminal.end()
    require(all(len(line) <= 40 for line in plain(terminal.text).split("\r\n")), terminal.text)
    sluice.fails(USAGE_ERROR, "--by error groups all failed jobs", "jobs", "exec", "--by", "error",
                 "--group", "g")


def pass_a_millisecond(connection):
    def now_ms():
        seconds, micros = map(int, connection.call("TIME").value)
        return seconds * 1000 + micros // 1000

    begun = now_ms()
    wait_until(lambda: now_ms() > begun, what="the next millisecond")


def test_failures_of_all_queues(options):
    """Without a queue --by error is of all that the user may read, each group with its queue."""
    server, sluice = serve(options)
    sluice.fails(USAGE_ERROR, "requires --by error", "jobs", "--failed")
    require_equal(sluice.run("jobs", "--failed", "--by", "error"),
                  (0, "", "sluice: no failed jobs\n"), "no queues")
    with server.connect() as connection:
        connection.call("ZADD", "waiting", 1, "x")
        connection.call("Q.ADOPT", "adopted", "PENDING", "waiting", "ACTIVE", "running")
        connection.call("SET", "plain", "x")
        for queue in b"a b", b"b\xff":
            for number in range(4):
                connection.call("Q.ADD", queue, f"f{number}", "")
                job = connection.call("Q.POP", 1, queue).value[0]
                connection.call("Q.NACK", queue, f"f{number}", job[job.index(b"lease") + 1],
                                "FATAL", "ERROR", "no such file")
            pass_a_millisecond(connection)
        fail_jobs(connection)
        connection.call("ACL", "SETUSER", "looker", "on", ">p", "~exec", "+@read", "+scan", "+time")
    lines = sluice.must("jobs", "--failed", "--by", "error").splitlines()
    require_equal(lines[0].split("\t"), ["QUEUE", "JOBS", "LAST", "FIRST", "NEWEST ID", "ERROR"],
                  "titles")
    require_equal([[*line.split("\t")[:2], *line.split("\t")[4:]] for line in lines[1:]],
                  [["exec", "8", "j11", "Timeout after # ms"], ["exec", "4", "j09", "no such file"],
                   ["b\\xff", "4", "f3", "no such file"], ["a b", "4", "f3", "no such file"]],
                  "the largest first, of one size the last")
    code, out, err = sluice.run("jobs", "--by", "error", "--limit", 3, "--json")
    require_equal((code, json.loads(err)), (0, {"note": "there is 1 more group; see --limit"}),
                  "--limit")
    groups = json.loads(out)
    require_equal([(group.get("queue"), group["pattern"], group["count"]) for group in groups],
                  [("exec", "Timeout after # ms", 8), ("exec", "no such file", 4),
                   (None, "no such file", 4)], "JSON")
    require_equal((groups[2]["queue_base64"], groups[2]["id"]), ("Yv8=", "f3"), "a name of bytes")
    code, out, err = sluice.run("--user", "looker", "--pass", "p", "jobs", "--by", "error")
    require_equal((code, [line.split("\t")[0] for line in out.splitlines()[1:]], err),
                  (0, ["exec"] * 2, "sluice: 3 more may not be read by this user\n"), "rights")
    terminal = Terminal(sluice.words("jobs", "--by", "error"), columns=70, NO_COLOR="1")
    terminal.read_until(r"QUEUE +JOBS.*exec +8 .*Timeout.*a b +4 ")
    terminal.end()


def test_jobs_of_an_error(options):
    """--failed, --error and --pattern select jobs, in jobs and in what changes them."""
    server, sluice = serve(options)
    with server.connect() as connection:
        fail_jobs(connection)
    require_equal(len(sluice.json("jobs", "exec", "--failed")), 12, "--failed")
    require_equal([job["id"] for job in sluice.json("jobs", "exec", "--failed", "--by", "age")][:2],
                  ["j00", "j01"], "--failed --by age")
    require_equal([job["id"] for job in sluice.json("jobs", "exec", "--error", "SUCH FILE")],
                  ["j09", "j06", "j03", "j00"], "--error")
    require_equal(sluice.must("retry", "exec", "--pattern", "Timeout after # ms"), "8 jobs\n",
                  "retry")
    require_equal(list(sluice.json("jobs", "exec", "--by", "error")), ["no such file"], "the rest")


def test_a_failed_need_is_a_sentence(options):
    """Where the server says "need ID" people read a sentence; a reason, and JSON, are as given."""
    _, sluice = serve(options)
    sluice.must("add", "q", "x", "--id", "base")
    sluice.must("add", "q", "x", "--id", "other")
    sluice.must("add", "q", "x", "--id", "user", "--need", "base")
    sluice.must("cancel", "q", "other", "--reason", "need base")
    sluice.must("cancel", "q", "base")
    told = "the job base, which it needed, did not complete"
    require(f"\nerror\t{told}\n" in sluice.must("job", "q", "user"), "job")
    require("\nerror\tneed base\n" in sluice.must("job", "q", "other"), "a reason")
    notes = {line.split("\t")[0]: line.split("\t")[-1]
             for line in sluice.must("jobs", "q", "--state", "cancelled").splitlines()}
    require_equal((notes["user"], notes["other"]), (told, "need base"), "jobs")
    require_equal(sluice.json("job", "q", "user")["error"], "need base", "JSON")
    _, out, err = sluice.run("watch", "q", "user")
    require(told in out + err, f"watch: {out}{err}")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
