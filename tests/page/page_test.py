#!/usr/bin/python3
"""The live page: its files as they are served, its types, and what it does in a real browser.

    tests/page/page_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]

The scenarios of the browser are in tests/page/scenarios/; pictures go to build/page-screenshots.
"""

import gzip
import os
import pathlib
import re
import subprocess
import sys
import threading

from harness import (NPM, Skipped, alone, need_npm, page_requests, require, require_equal, run,
                     scratch)
from harness.certificates import Certificates
from harness.group import Group
from harness.http_client import (ADMIN_TOKEN, OPERATE_TOKEN, READ_TOKEN, TOKENS, Client,
                                 require_problem, serve)
from harness.servers import steady_port

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CHROMIUM = "/usr/bin/chromium"
SCREENSHOTS = ROOT / "build" / "page-screenshots"
FILES = ["/", "/app.js", "/app.css", "/icon.svg"]
SCENARIO_LIMIT_S = 400
# Scenarios mostly wait for what the page does by its own clock.
AT_ONCE = 4
MANY_JOBS = 1_000_000
QUICK_JOBS = 20_000


def need_page(client):
    require("text/plain" not in client.get("/", token=None).headers["content-type"],
            "this server was built without its page")


def need_browser():
    """A page that no browser has opened is not tested: without one the tests fail."""
    for needed in (CHROMIUM, NPM / "node_modules" / "playwright-core",
                   NPM / "node_modules" / "axe-core"):
        require(os.path.exists(needed), f"no {needed}; tools/setup test installs it")


def play(options, scenario, tokens=True, prepare=None, directives=None, variables=None, do=None):
    """A scenario with a server of its own, which do() gets before what it is told."""
    need_browser()
    server = serve(options, directives, tokens=tokens)
    with Client(server, OPERATE_TOKEN if tokens else None) as client:
        need_page(client)
        if prepare is not None:
            prepare(server, client)
    return run_scenario(scenario, {"PAGE": address_of(server), **(variables or {})},
                        do=do and (lambda what: do(server, what)))


def address_of(server):
    return f"http://127.0.0.1:{server.http_port}"


def run_scenario(scenario, variables, do=None):
    """Returns what it prints. Each of its lines `do: WHAT` calls do(WHAT)."""
    environment = dict(os.environ, READ_TOKEN=READ_TOKEN, OPERATE_TOKEN=OPERATE_TOKEN,
                       ADMIN_TOKEN=ADMIN_TOKEN, CHROMIUM=CHROMIUM, SCREENSHOTS=str(SCREENSHOTS),
                       **variables)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    with subprocess.Popen(["node", HERE / "scenarios" / (scenario + ".mjs")], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        limit = threading.Timer(SCENARIO_LIMIT_S, process.kill)
        limit.start()
        told = ""
        for line in process.stdout:
            told += line.decode(errors="replace")
            if line.startswith(b"do: "):
                do(line[4:].decode().strip())
        limit.cancel()
    require_equal(process.returncode, 0, f"{scenario}:\n{told}")
    return told


def test_the_shell_is_open_and_nothing_else(options):
    """The page's files need no token, have a strict policy and an ETag; data needs one."""
    server = serve(options)
    with Client(server, None) as client:
        need_page(client)
        for path in FILES:
            answer = client.expect(200, "GET", path)
            policy = answer.headers["content-security-policy"]
            require("default-src 'none'" in policy and "unsafe" not in policy, policy)
            require("require-trusted-types-for 'script'" in policy, policy)
            require_equal(answer.headers["cache-control"], "no-cache", path)
            etag = answer.headers["etag"]
            again = client.request("GET", path, headers={"If-None-Match": f'"x", {etag}'})
            require_equal((again.status, again.body), (304, b""), path)
            require_equal(client.request("HEAD", path).headers["etag"], etag, path)
            require_equal(answer.headers["vary"], "Accept-Encoding", path)
            require_problem(client.post(path, {}), 401, "NOAUTH")
        shell = client.get("/").body.decode()
        require(not re.search(r"<script(?![^>]*src=)|<style|style=|\bon\w+=", shell), shell)
        require_equal(set(re.findall(r'(?:src|href)="([^"]+)"', shell)), set(FILES) - {"/"})
        require_problem(client.get("/api/v1/queues"), 401, "NOAUTH")
        require_equal(client.get("/api/v1/session").json["role"], None)
    with Client(server, ADMIN_TOKEN) as client:
        require_equal(client.get("/api/v1/session").json["role"], "admin")


def test_its_files_are_compressed(options):
    """With gzip where the browser takes it; all of it is at most 120 kB then."""
    server = serve(options)
    with Client(server, None) as client:
        need_page(client)
        total = 0
        for path in FILES:
            plain = client.expect(200, "GET", path)
            require("content-encoding" not in plain.headers, path)
            for accepted in "gzip", "br, GZip;q=0.5", "deflate, gzip ; q=1.0, *;q=0":
                packed = client.expect(200, "GET", path, headers={"Accept-Encoding": accepted})
                require_equal(packed.headers["content-encoding"], "gzip", f"{path} {accepted}")
                require_equal(gzip.decompress(packed.body), plain.body, path)
                require(packed.headers["etag"] != plain.headers["etag"], path)
            for refused in "br", "gzip;q=0", "gzip;q=0.000, br", "x-gzip":
                answer = client.expect(200, "GET", path, headers={"Accept-Encoding": refused})
                require_equal(answer.body, plain.body, f"{path} {refused}")
            again = client.request("GET", path, headers={
                "Accept-Encoding": "gzip", "If-None-Match": packed.headers["etag"]})
            require_equal((again.status, again.body), (304, b""), path)
            total += len(packed.body)
        require(total <= 120_000, f"{total} bytes")


def test_the_page_is_well_typed(options):
    """TypeScript finds no error in page/."""
    del options
    node = need_npm("typescript")
    compiler = NPM / "node_modules" / "typescript" / "bin" / "tsc"
    if not (ROOT / "page" / "node_modules").exists():
        raise Skipped("NOT RUN: no page/node_modules; tools/setup installs it")
    done = subprocess.run([node, compiler, "-p", ROOT / "page"], stdout=subprocess.PIPE,
                          check=False, timeout=SCENARIO_LIMIT_S)
    require_equal((done.returncode, done.stdout.decode()), (0, ""), "tsc")


def test_pictures(options):
    """Overview, queue and job, light and dark: without sideways scrolling, and accessible
    (axe-core)."""
    play(options, "pictures", variables={"PART": "wide"})


def test_pictures_on_a_phone(options):
    """The same on a phone, light and dark, without sideways scrolling."""
    play(options, "pictures", variables={"PART": "phone"})


def test_pictures_of_what_is_seldom_seen(options):
    """Log-in, dialogs, settings, nothing, no connection: without sideways scrolling, accessible."""
    play(options, "pictures", variables={"PART": "seldom"})


def test_pictures_of_lists(options):
    """Many queues, failed jobs, their errors, attempts and rules: in two sizes, light and dark,
    without sideways scrolling, accessible."""
    play(options, "pictures", variables={"PART": "lists"})


def test_log_in(options):
    """Log-in, log-out, roles, a link with a token; without any token the page only reads."""
    def lower(server, role):
        roles = {**TOKENS, role: OPERATE_TOKEN}
        del roles["operate"]
        server.connect().call("CONFIG", "SET", "http-token",
                              " ".join(f"{role} >{token}" for role, token in roles.items()))
    play(options, "log_in", do=lower)


USERS = {"user": [f"{name} on >of-{name} ~* +@all {rules}".strip()
                  for name, rules in (("carol", "-@admin"), ("vera", "-@write"), ("ada", ""))]}


def test_log_in_by_password(options):
    """A user's name and password in the form give his role; a change of him logs him out."""
    play(options, "log_in_by_password", directives=USERS)


def test_reading_without_tokens(options):
    """A server without tokens shows everything to this machine and offers no action, but a log-in
    to its users."""
    play(options, "without_tokens", tokens=False, directives=USERS,
         prepare=lambda server, _: server.connect().call("Q.ADD", "mail", "m1", "hello"))


def test_live(options):
    """A queue changes before one's eyes: lanes, slots, groups, events, the next jobs."""
    play(options, "live")


def add_quick(server, _):
    """QUICK_JOBS jobs in the band HIGH of `exec`, each started at once."""
    connection = server.connect(timeout_s=60)
    connection.call("Q.CONFIG", "exec", "SET", "lease_ms", "600000")
    for first in range(0, QUICK_JOBS, 100):
        connection.pipeline([("Q.ADD", "exec", f"quick-{first + n}", "", "PRI", "HIGH")
                             for n in range(100)])
        connection.call("Q.POP", "1", "exec", "COUNT", "100")


@alone
def test_a_stall_shows_at_once(options):
    """However many jobs were quick before, one that waited long is in the chart a moment later."""
    play(options, "waits", prepare=add_quick)


def test_steering(options):
    """Move, priority, cancel, retry, pause, add, forget: by click and by key, asked and undone."""
    play(options, "steer")


def test_changes_meanwhile(options):
    """What others change while a list or a question stands; what is said of one's own changes."""
    play(options, "changes")


def run_without_browser(scenario):
    need_npm("typescript")
    if not (ROOT / "page" / "node_modules").exists():
        raise Skipped("NOT RUN: no page/node_modules; tools/setup installs it")
    run_scenario(scenario, {})


def test_the_lines_of_charts(options):
    """The server's values, the page's own, and gaps where nobody knows."""
    del options
    run_without_browser("series")


def test_the_order_of_queues(options):
    """Failing ones first, then those without a worker, the longest waits, paused and full ones."""
    del options
    run_without_browser("order")


def test_ended_jobs(options):
    """Filters, failures by their errors, and what is done with chosen jobs."""
    play(options, "ended")


def test_the_first_job_of_a_guarded_server(options):
    """Where TLS and a password are needed, what is to be pasted has a place for both."""
    with scratch() as folder:
        play(options, "first_run", directives={
            "port": 0, "tls-port": "auto", "requirepass": "secret", **USERS,
            **Certificates(folder).directives()})


def test_settings(options):
    """Queues are made, set and deleted; rules, groups and workers are changed in their places."""
    play(options, "settings")


def test_history(options):
    """Charts that are full at the first look; what a range of time holds."""
    play(options, "history")


def test_the_overview(options):
    """Filter, databases, search for ids and names, and many queues as a table."""
    play(options, "overview")


def test_the_other_places(options):
    """All workers, the server's facts, a search in payloads."""
    play(options, "places", directives={"appendonly": "yes"})


def test_paused_updates_and_saved_views(options):
    """Nothing moves by itself while updates are paused; a view with its filters has a name."""
    play(options, "paused")


def test_trouble(options):
    """Loading, another type, a busy server, another user's queue: said where it would stand."""
    play(options, "trouble", directives={"user": "pat on >of-pat ~pat:* +@all -@admin"},
         prepare=lambda server, _: server.connect().call("SET", "text", "no queue"))


def test_a_job_s_story(options):
    """A job's page tells its events, its place, and why it waits in words."""
    play(options, "story")


def test_requests_of_a_job_s_page(options):
    """Payload and result are fetched once a change, the rest at most each 400 ms."""
    play(options, "requests")


def test_an_adopted_queue(options):
    """A queue that shows plain Redis keys says so, and nothing that only other queues have."""
    def prepare(server, _):
        connection = server.connect()
        connection.call("Q.ADOPT", "old", "PENDING", "waiting", "ACTIVE", "running")
        # Scores that are no times.
        connection.call("ZADD", "waiting", "1", "m1", "2", "m2")
    play(options, "adopted", prepare=prepare)


def test_hostile_bytes(options):
    """Ids, payloads, names, errors that look like HTML are text; none makes an element."""
    def prepare(server, _):
        # Names that no browser can put into a path.
        for name in "", ".", "..":
            server.connect().call("Q.ADD", name, "j", "{}")
        long = "x" * 500, "y" * 500
        server.connect().call("Q.ADD", *long, "{}")
        for name in "", long[0]:
            server.connect().call("Q.POP", "1", name, "WORKER", "w1", "LEASE", "600000")
        server.connect().call("Q.ADD", "tags", "t", "{}", "TAG", b"\xff", b"\xfe", "TAG", "a", "b")
    play(options, "hostile", prepare=prepare)


def test_disconnection(options):
    """A server that does not answer is told of, and found again."""
    play(options, "disconnected")


def encoded(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word)
                                               for word in words)


def add_many(server):
    """MANY_JOBS jobs in the queue `big`; nobody waits for their replies."""
    connection = server.connect(timeout_s=120)
    bands = [encoded(b"x", b"PRI", str(band).encode())[11:] for band in range(5)]
    connection.socket.settimeout(120)
    connection.socket.sendall(encoded(b"CLIENT", b"REPLY", b"OFF"))
    head = b"*8\r\n$5\r\nQ.ADD\r\n$3\r\nbig\r\n"
    for first in range(0, MANY_JOBS, 10_000):
        connection.socket.sendall(b"".join(
            b"%s$%d\r\n%s\r\n$2\r\n{}\r\n%s$5\r\nGROUP\r\n$3\r\ng%02d\r\n" % (
                head, len(name), name, bands[number % 5], number % 50)
            for number in range(first, first + 10_000) for name in (b"job-%d" % number,)))
    connection.send("CLIENT", "REPLY", "ON")
    require_equal(connection.read_reply().raw, b"+OK\r\n", "the end of the jobs")


def test_many_jobs(options):
    """A million jobs and fifty changes a second leave the page smooth, and its cost bounded; it
    asks nothing that bench/observed does not ask."""
    told = play(options, "many", prepare=lambda server, _: add_many(server)).splitlines()
    mark = "asked: "
    print(*(line for line in told if not line.startswith(mark)), sep="\n")
    asked = {page_requests.form(line[len(mark):]) for line in told if line.startswith(mark)}
    require(page_requests.form(page_requests.QUEUE) in asked, f"only {asked}")
    require_equal(asked - page_requests.forms(), set(), "requests that bench/observed lacks")


@alone
def test_a_group(options):
    """Who leads, what a standby's page offers, and what is seen of a takeover."""
    need_browser()
    tokens = [f"{role} >{token}" for role, token in TOKENS.items()]
    with Group(options.program, 3, {"http-token": tokens},
               lambda: {"http-port": steady_port()}) as group:
        for node in group.nodes:
            node.ports["http-port"] = node.directives["http-port"]
        primary, standby = group.primary(), group.standby()
        with Client(primary) as client:
            need_page(client)

        def set_timeout(node, seconds):
            with node.connect() as connection:
                connection.call("CONFIG", "SET", "timeout", seconds)

        verbs = {"kill": lambda node: node.kill(), "start": lambda node: node.start(wait=False),
                 "differ": lambda node: set_timeout(node, 9999),
                 "agree": lambda node: set_timeout(node, 0)}

        def do(what):
            verb, name = what.split()
            verbs[verb](next(each for each in group.nodes if each.name == name))

        run_scenario("group", {"PAGE": address_of(primary), "STANDBY": address_of(standby),
                               "NAMES": f"{primary.name} {standby.name}"}, do=do)


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__], at_once=AT_ONCE))
