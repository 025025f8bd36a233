#!/usr/bin/python3
"""Every kind of problem at every family of routes, hostile ids, and streams under load.

    tests/http/problems_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import base64
import http.client
import random
import sys
import threading
import time

from access_test import ROUTES
from harness import require, require_equal, run, wait_until
from harness.http_client import (ADMIN_TOKEN, OPERATE_TOKEN, THREADS, Client, Raw, quoted,
                                 require_problem, serve)
from harness.surroundings import (JOURNAL_FAILED, SYNC_S, largest_file, limit_files,
                                  slow_disk)

QUEUE = "/api/v1/queues/q"
JOBS = QUEUE + "/jobs"
JOB = JOBS + "/j"
EXECUTIONS = "/api/v1/admin/executions/"
GRADING = "/api/v1/grading_queue"
GRADING_JOB = {"key": "k", "collation": {"type": "team", "id": "7"}}
QUEUES_OF_ALIASES = "exec", "run", "grade"
# Those that no state of a queue concerns.
SERVER_PATHS = ("/healthz", "/readyz", "/primary", "/standby", "/metrics", "/api/v1/session",
                "/api/v1/group", "/api/v1/journal", "/api/v1/server", "/api/v1/openapi.json",
                "/api/v1/checkpoint", "/api/v1/tokens", "/api/v1/changes")
# Those that list queues: a key of another type is not one of them.
OF_ALL_QUEUES = ("/api/v1/queues", "/api/v1/find", "/api/v1/history", "/api/v1/workers")


def routes_of_queues():
    for method, path, body, needed in ROUTES:
        # In a list each job has an answer of its own.
        lists = body is not None and "jobs" in body
        of_all = path.startswith(SERVER_PATHS) or path.split("?")[0] in OF_ALL_QUEUES
        if not of_all and not lists:
            yield method, path, body, needed


def test_404_for_every_job_that_is_none(options):
    """Each route of a job answers 404 for an unknown one, and each other path 404 NOTFOUND."""
    server = serve(options)
    with Client(server, ADMIN_TOKEN) as client:
        for method, path, body in [
                ("GET", JOB, None), ("GET", JOB + "/log", None),
                ("PATCH", JOB, {"pri": "HIGH"}), ("POST", JOB + ":cancel", {}),
                ("POST", JOB + ":retry", {}), ("POST", JOB + ":ack", {"lease": 1}),
                ("POST", JOB + ":nack", {"lease": 1}), ("POST", JOB + ":touch", {"lease": 1}),
                ("PUT", EXECUTIONS + "e/priority", {"priority": "high"}),
                ("GET", GRADING + "/k/status", None), ("DELETE", GRADING + "/k", None),
                ("PUT", GRADING + "/move", {"jobKey": "k", "moveAction": "delay"})]:
            require_problem(client.request(method, path, body), 404, "NOJOB")
        require_problem(client.request("DELETE", "/api/v1/tokens/0"), 404, "NOTOKEN")
        for path in ("/api", "/api/v1/queue", QUEUE + "/", JOBS + "/j/k", QUEUE + "/jobs:drop",
                     "/healthz/", "/api/v1/tokens/", "//healthz", "/%2fhealthz"):
            require_problem(client.get(path), 404, "NOTFOUND")


def test_409_for_keys_of_other_types(options):
    """Every route of a queue answers 409 where the key holds something else."""
    server = serve(options)
    with server.connect() as connection, Client(server, ADMIN_TOKEN) as client:
        for name in ("q", *QUEUES_OF_ALIASES):
            connection.call("SET", name, "x")
        for method, path, body, _ in routes_of_queues():
            answer = client.request(method, path, body)
            require(answer.status == 409 and answer.json["code"] == "WRONGTYPE",
                    f"{method} {path}: {answer.status} {answer.body!r}")


def test_409_for_what_the_state_does_not_allow(options):
    """Duplicates, pauses, ends, stale leases, needs, adopted queues."""
    server = serve(options)
    with server.connect() as connection, Client(server) as client:
        client.expect(201, "POST", JOBS, {"id": "j", "payload": ""})
        require_problem(client.post(JOBS, {"id": "j", "payload": ""}), 409, "DUPLICATE")
        for verb in "ack", "nack", "touch":
            require_problem(client.post(f"{JOB}:{verb}", {"lease": 7}), 409, "STALELEASE")
        # No number of JSON's readers would hold this one.
        number = "9007199254740993"
        client.expect(201, "POST", JOBS, {"id": number, "payload": "", "delay_ms": 600_000})
        members = require_problem(client.post(JOBS, {"id": number, "payload": ""}), 409,
                                  "DUPLICATE")
        require_equal(members["id"], number)
        lease = client.post(QUEUE + ":pop", {}).json["jobs"][0]["lease"]
        require_problem(client.request("PATCH", JOB, {"pri": 1}), 409, "NOTWAITING")
        require_problem(client.post(QUEUE + ":pop", {"id": "j"}), 409, "GONE")
        client.expect(200, "POST", JOB + ":nack", {"lease": lease, "mode": "fatal"})
        require_problem(client.post(JOB + ":cancel", {}), 409, "ENDED")
        require_problem(client.post(JOBS, {"payload": "", "needs": ["j"]}), 409, "NEEDFAILED")
        client.expect(200, "PATCH", QUEUE, {"paused": "in"})
        require_problem(client.post(JOBS, {"payload": ""}), 409, "PAUSED")
        connection.call("Q.CONFIG", "grade", "SET", "paused", "in")
        require_problem(client.request("PUT", GRADING, GRADING_JOB), 409, "PAUSED")
        connection.call("Q.ADOPT", "shown", "PENDING", "p", "ACTIVE", "a")
        shown = "/api/v1/queues/shown"
        for path, body in [("/jobs", {"payload": ""}), (":pop", {}), ("/jobs/x:ack", {"lease": 1}),
                           ("/jobs/x:nack", {"lease": 1}), ("/jobs/x:touch", {"lease": 1}),
                           ("/jobs:nack", {"where": {"worker": "w"}})]:
            require_problem(client.post(shown + path, body), 409, "ADOPTED")


def test_413_for_what_is_too_large(options):
    """Bodies at every route that takes one; payloads, results and progress."""
    server = serve(options, {"http-max-body": "4kb"})
    with Client(server, ADMIN_TOKEN) as client:
        for method, path, body, _ in ROUTES:
            if body is None:
                continue
            answer = client.request(method, path, b"{" + b" " * 5000 + b"}",
                                    headers={"Content-Type": "application/json"})
            require_problem(answer, 413, "BODYTOOLARGE")
            client.close()
        client.expect(200, "PATCH", QUEUE + "?create=true", {"max_payload": 100})
        require_problem(client.post(JOBS, {"payload": "x" * 101}), 413, "TOOBIG")
        client.expect(201, "POST", JOBS, {"id": "j", "payload": "x" * 100})
        lease = client.post(QUEUE + ":pop", {}).json["jobs"][0]["lease"]
        large = "x" * 101
        require_problem(client.post(JOB + ":touch", {"lease": lease, "progress": large}), 413,
                        "TOOBIG")
        require_problem(client.post(JOB + ":ack", {"lease": lease, "result": large}), 413,
                        "TOOBIG")
        client.expect(200, "POST", JOB + ":ack", {"lease": lease, "result": "x" * 100})


def test_422_for_what_makes_no_sense(options):
    """Every route of a queue refuses parameters and members that it does not know, by name."""
    server = serve(options)
    with Client(server, ADMIN_TOKEN) as client:
        client.expect(201, "POST", JOBS, {"id": "j", "payload": ""})
        for method, path, body, _ in ROUTES:
            # The older systems' bodies are somebody else's as well.
            theirs = path.startswith((EXECUTIONS, GRADING, "/api/queue-stats"))
            if path.startswith("/api/v1/queues") or path.startswith("/api/v1/tokens"):
                members = require_problem(client.request(method, path + "?nonsense=1", body), 422,
                                          "BADFIELD")
                require_equal(members["field"], "nonsense", f"{method} {path}")
            # What is missing from a body comes first: sessions_test.py sends whole ones.
            whole = path not in (QUEUE, "/api/v1/session")
            if body is not None and not theirs and whole:
                members = require_problem(client.request(method, path, {**body, "nonsense": 1}),
                                          422, "BADFIELD")
                require_equal(members["field"], "nonsense", f"{method} {path}")
        for method, path, body in [
                ("PUT", EXECUTIONS + "e/priority", {"priority": "most"}),
                ("PUT", EXECUTIONS + "e/priority", {}), ("GET", EXECUTIONS + "?limit=201", None),
                ("GET", EXECUTIONS + "?skip=-1", None), ("PUT", GRADING, {"key": "k"}),
                ("PUT", GRADING + "/move", {"jobKey": "k", "moveAction": "up"}),
                ("PATCH", QUEUE, {"max_active": "many"}), ("PATCH", QUEUE, {"nonsense": 1})]:
            require_problem(client.request(method, path, body), 422, "BADFIELD")


def test_429_says_when_to_come_again(options):
    """A full queue and a full group answer 429 with Retry-After to every producer."""
    server = serve(options)
    with server.connect() as connection, Client(server) as client:
        for name in "q", "grade":
            connection.call("Q.CONFIG", name, "SET", "max_waiting", "1")
            connection.call("Q.ADD", name, "first", "x")
        for method, path, body in [("POST", JOBS, {"payload": "x"}), ("PUT", GRADING, GRADING_JOB),
                                   ("PUT", GRADING + "/immediate", GRADING_JOB)]:
            answer = client.request(method, path, body)
            require_problem(answer, 429, "QFULL")
            require(int(answer.headers["retry-after"]) >= 1, answer.headers)
        client.expect(200, "PATCH", QUEUE, {"max_waiting": 0})
        client.expect(200, "PATCH", QUEUE + "?group=g", {"max_total": 1})
        client.expect(201, "POST", JOBS, {"payload": "x", "group": "g"})
        answer = client.post(JOBS, {"payload": "x", "group": "g"})
        require_problem(answer, 429, "GROUPFULL")
        require(int(answer.headers["retry-after"]) >= 1, answer.headers)


def test_503_while_the_memory_is_full(options):
    """At maxmemory adding is 503 OOM with Retry-After; reading and popping still work."""
    server = serve(options)
    with server.connect() as connection, Client(server) as client:
        for name in "q", "grade":
            connection.call("Q.ADD", name, "j", "x")
        connection.call("CONFIG", "SET", "maxmemory", "1")
        for method, path, body in [("POST", JOBS, {"payload": "x"}), ("PUT", GRADING, GRADING_JOB)]:
            answer = client.request(method, path, body)
            require_problem(answer, 503, "OOM")
            require(int(answer.headers["retry-after"]) >= 1, answer.headers)
        client.expect(200, "GET", JOB)
        lease = client.expect(200, "POST", QUEUE + ":pop", {}).json["jobs"][0]["lease"]
        client.expect(200, "POST", JOB + ":ack", {"lease": lease})


def test_503_while_a_script_keeps_the_server(options):
    """What needs the data is 503 BUSY with Retry-After while a script runs; the rest answers."""
    server = serve(options, {"busy-reply-threshold": "50"})
    with server.connect() as connection, server.connect() as other, \
            Client(server, ADMIN_TOKEN) as client:
        connection.send("EVAL", "while true do end", "0")

        def busy():
            return other.call("PING").raw.startswith(b"-BUSY")
        wait_until(busy, what="the busy script")
        try:
            for method, path, body, _ in ROUTES:
                if path.startswith(SERVER_PATHS):
                    continue
                answer = client.request(method, path, body)
                require(answer.status == 503 and answer.json["code"] == "BUSY",
                        f"{method} {path}: {answer.status} {answer.body!r}")
                require(int(answer.headers["retry-after"]) >= 1, answer.headers)
            for path in "/healthz", "/readyz", "/api/v1/session":
                client.expect(200, "GET", path)
        finally:
            other.call("SCRIPT", "KILL")
        connection.read_reply()
        client.expect(200, "GET", QUEUE)


def answers_while_it_loads(server):
    """Starts it; answers of before its data is there, or None."""
    starter = threading.Thread(target=server.start)
    starter.start()
    try:
        while starter.is_alive():
            try:
                with Client(server, ADMIN_TOKEN) as client:
                    answers = [client.get(path) for path in ("/healthz", "/readyz", QUEUE)]
                    answers.append(client.post(JOBS, {"payload": ""}))
            except (OSError, http.client.HTTPException):
                time.sleep(0.002)
                continue
            if answers[-1].status == 503:
                return answers
    finally:
        starter.join()
    return None


def test_503_while_the_data_is_loaded(options):
    """Until the data is there, what needs it and /readyz are 503 LOADING; /healthz answers."""
    server = serve(options, {"appendonly": "yes", "appendfsync": "no"})
    with server.connect(30) as connection:
        for start in range(0, 400_000, 20_000):
            connection.pipeline([("SET", f"key:{start + i}", "x" * 50) for i in range(20_000)])
    server.directives = {**server.directives, "http-port": str(server.http_port)}
    seen = None
    # This process may sleep for as long as the loading takes.
    for _ in range(3):
        server.kill()
        seen = answers_while_it_loads(server)
        if seen is not None:
            break
    require(seen is not None, "no answer while it loaded")
    require_equal(seen[0].status, 200)
    for answer in seen[1:]:
        require_problem(answer, 503, "LOADING")
        require(int(answer.headers["retry-after"]) >= 1, answer.headers)
    with Client(server, ADMIN_TOKEN) as client:
        client.expect(200, "GET", "/readyz")
        client.expect(201, "POST", JOBS, {"payload": ""})


def write_until(server, event):
    """More than the limit below in each sync. The largest unit does not count, so it takes two."""
    with server.connect(60) as connection:
        while not event.is_set():
            connection.call("SET", "large", "x" * 2_000_000)


def test_503_while_the_disk_does_not_follow(options):
    """With more unwritten journal than journal-buffer-limit, changes get 503 CONGESTED."""
    with slow_disk() as environment:
        server = serve(options, {"appendonly": "yes", "appendfsync": "always",
                                 "journal-buffer-limit": "1mb"}, environment=environment)
        refused = threading.Event()
        writers = [threading.Thread(target=write_until, args=(server, refused)) for _ in range(2)]
        for writer in writers:
            writer.start()
        try:
            with Client(server) as client:
                def refusal():
                    answer = client.post(JOBS, {"payload": ""})
                    return answer if answer.status != 201 else None
                answer = wait_until(refusal, what="a refusal")
                client.expect(200, "GET", QUEUE)
                require_problem(answer, 503, "CONGESTED")
                require(int(answer.headers["retry-after"]) >= 1, answer.headers)
        finally:
            refused.set()
            for writer in writers:
                writer.join()
        with Client(server) as client:
            client.expect(201, "POST", JOBS, {"payload": ""})


def test_who_has_waited_hears_of_a_job_when_it_is_durable(options):
    """A waiting :pop is answered no sooner than the sync of the job that it got."""
    with slow_disk() as environment:
        server = serve(options, {"appendonly": "yes", "appendfsync": "always"},
                       environment=environment)
        answers = []

        def wait():
            with Client(server) as waiting:
                answer = waiting.post(QUEUE + ":pop", {"wait_ms": 30_000})
                answers.append((time.monotonic(), [job["id"] for job in answer.json["jobs"]]))
        waiter = threading.Thread(target=wait)
        with Client(server) as client, server.connect(30) as writer:
            client.expect(201, "POST", JOBS, {"id": "first", "payload": ""})
            client.expect(200, "POST", QUEUE + ":pop", {})
            waiter.start()
            wait_until(lambda: client.get(QUEUE).json["stats"]["waiting_pops"] == 1,
                       what="the waiting pop")
            began = time.monotonic()
            writer.send("Q.ADD", "q", "late", "")
            waiter.join()
        at, jobs = answers[0]
        require_equal(jobs, ["late"], "what it got")
        require(at - began >= SYNC_S, f"it heard of it after {at - began:.3f} s")


def test_409_while_a_checkpoint_is_written(options):
    """A second checkpoint is 409 RUNNING until the first one is done."""
    server = serve(options, {"appendonly": "yes", "appendfsync": "no"})
    with server.connect(30) as connection, Client(server, ADMIN_TOKEN) as client:
        for start in range(0, 200_000, 20_000):
            connection.pipeline([("SET", f"key:{start + i}", "x" * 50) for i in range(20_000)])
        client.expect(202, "POST", "/api/v1/checkpoint")

        def running():
            answer = client.post("/api/v1/checkpoint")
            if answer.status == 409:
                require_problem(answer, 409, "RUNNING")
            return answer.status == 409
        wait_until(running, what="a checkpoint that is being written")


def test_409_for_what_would_wait_too_long(options):
    """With max_wait_ms a job that would wait longer is 409 TOOLATE, which says how long."""
    server = serve(options)
    with Client(server) as client:
        client.expect(200, "PATCH", QUEUE + "?create=true", {"max_active": 1})
        for number in range(10):
            client.expect(201, "POST", JOBS, {"id": f"a{number}", "payload": ""})
            job, = client.post(QUEUE + ":pop", {}).json["jobs"]
            time.sleep(0.05)
            client.expect(200, "POST", f"{JOBS}/{job['id']}:ack", {"lease": job["lease"]})
        for name in "bcd":
            client.expect(201, "POST", JOBS, {"id": name, "payload": ""})
        members = require_problem(client.post(JOBS, {"payload": "", "max_wait_ms": 5}), 409,
                                  "TOOLATE")
        require_equal(members["maxwait_ms"], 5)
        require(members["eta_ms"] >= 100, members)
        client.expect(201, "POST", JOBS, {"payload": "", "max_wait_ms": 60000})


HOSTILE = [b".", b"..", b"../..", b"/", b"//", b"a/b", b"a:cancel", b":pop", b"jobs", b"?a=b",
           b"#", b"%", b"%2F", b"%00", b"\0", b"\r\nX: y", b"\n", b" ", b"+", b"a b", b"\xff\xfe",
           b"\xc3\x28", "ünïcödé".encode(), "\u202egnp".encode(), b"<script>alert(1)</script>",
           b"'\"`{{7*7}}${7*7}", b"*1\r\n$4\r\nPING\r\n", b"-1", b"0", b"null", b"undefined",
           b"a" * 512]


def test_hostile_ids_are_ids_like_others(options):
    """Ids and names of queues of any bytes go through every route, and only reach their own job."""
    server = serve(options)
    with Client(server) as client:
        for name in HOSTILE:
            queue = "/api/v1/queues/" + quoted(name[:100])
            coded = base64.b64encode(name).decode()
            path = f"{queue}/jobs/{quoted(name)}"
            where = repr(name)

            def state():
                return client.expect(200, "GET", path).json["state"]
            client.expect(201, "POST", queue + "/jobs", {"id_base64": coded, "payload": where})
            require_equal(client.get(path + "?with=payload").json["payload"], where)
            client.expect(200, "PATCH", path, {"pri": "HIGH"})
            client.expect(200, "POST", path + ":cancel", {"reason_base64": coded})
            require_equal(state(), "cancelled", where)
            client.expect(200, "POST", path + ":retry", {})
            job, = client.expect(200, "POST", queue + ":pop", {"id_base64": coded}).json["jobs"]
            lease = job["lease"]
            client.expect(200, "POST", path + ":touch", {"lease": lease, "progress_base64": coded})
            client.expect(200, "POST", path + ":nack", {"lease": lease, "mode": "silent"})
            lease = client.post(queue + ":pop", {}).json["jobs"][0]["lease"]
            client.expect(200, "POST", path + ":ack", {"lease": lease, "result_base64": coded})
            require_equal(state(), "completed", where)
            events = client.expect(200, "GET", f"{queue}/events?after=-&id={quoted(name)}").json
            require_equal(events["events"][0]["type"], "added", where)
            jobs = client.expect(200, "GET", queue + "/jobs").json["jobs"]
            require_equal(len(jobs), 1, where)
            client.expect(200, "POST", queue + "/jobs:purge", {"where": {"all": True}})
        for bad in b"", b"a" * 513, b"*", b"WHERE", b"where", b"ALL", b"all":
            coded = base64.b64encode(bad).decode()
            answer = client.post(JOBS, {"id_base64": coded, "payload": ""})
            require_problem(answer, 422, "BADFIELD")


# --- Streams ---


class Reader(threading.Thread):
    """Reads a stream, and comes again with Last-Event-ID wherever it happens to be cut."""

    def __init__(self, server, seed):
        super().__init__()
        self.server = server
        self.random = random.Random(seed)
        self.numbers = []
        self.connections = 0
        self.last = 1 << 62
        self.fault = None

    def run(self):
        try:
            while not self.numbers or self.numbers[-1] < self.last:
                self.read_some()
        except Exception as error:  # pylint: disable=broad-except
            self.fault = error

    def read_some(self):
        self.connections += 1
        budget = self.random.randrange(200, 40_000)
        with Raw(self.server) as raw:
            where = f"Last-Event-ID: {self.numbers[-1]}\r\n" if self.numbers else ""
            raw.send(f"GET {QUEUE}/events?after=- HTTP/1.1\r\nHost: localhost\r\n{where}"
                     f"Authorization: Bearer {OPERATE_TOKEN}\r\nAccept: text/event-stream\r\n\r\n"
                     .encode())
            require_equal(raw.answer().status, 200)
            got = len(raw.buffer)
            self.take(raw)
            while got < budget and not (self.numbers and self.numbers[-1] >= self.last):
                before = len(raw.buffer)
                require(raw.receive(), "the stream has ended")
                got += len(raw.buffer) - before
                self.take(raw)

    def take(self, raw):
        *parts, raw.buffer = raw.buffer.split(b"\n\n")
        for part in parts:
            if part.startswith(b"id: "):
                self.numbers.append(int(part[4:part.index(b"\n")]))


def make_events(server, worker, jobs):
    with server.connect() as connection:
        for first in range(0, jobs, 50):
            connection.pipeline([["Q.ADD", "q", f"{worker}-{first + number}", "x"]
                                 for number in range(50)])
            popped = connection.call("Q.POP", "1", "q", "COUNT", "50").value or []
            pairs = [(job[job.index(b"id") + 1], job[job.index(b"lease") + 1]) for job in popped]
            connection.pipeline([["Q.ACK", "q", *pair] for pair in pairs])


def test_streams_have_no_gap_whatever_happens(options):
    """Readers that reconnect all the time under load get each event once, in order."""
    server = serve(options)
    readers = [Reader(server, seed) for seed in range(4)]
    writers = [threading.Thread(target=make_events, args=(server, number, 2000))
               for number in range(3)]
    with Client(server) as client:
        client.expect(200, "PATCH", QUEUE + "?create=true", {"events": "1000000"})
        for thread in [*readers, *writers]:
            thread.start()
        for writer in writers:
            writer.join()
        stats = client.get(QUEUE).json["stats"]
        total = sum(stats[name] for name in ("added", "started", "completed"))
        require(total >= 3 * 2000, total)
        page = client.get(f"{QUEUE}/events?after={total - 1}").json
        require_equal([event["seq"] for event in page["events"]], [total], "the newest event")
        deadline = time.monotonic() + 60
        for reader in readers:
            reader.last = total
        # A reader that has everything is blocked in a read: one more event wakes it.
        for reader in readers:
            while reader.is_alive() and time.monotonic() < deadline:
                client.post(JOBS, {"payload": ""})
                reader.join(0.2)
    for reader in readers:
        require(reader.fault is None and not reader.is_alive(), reader.fault)
        end = reader.numbers.index(total) + 1
        require_equal(reader.numbers[:end], list(range(1, total + 1)), "numbers of events")
        require(reader.connections > 10, f"{reader.connections} connections")
    print(f"  {total} events, {[reader.connections for reader in readers]} connections")


def test_503_while_the_disk_is_nearly_full(options):
    """MISCONF says what holds the change up: the disk is full, and has not failed."""
    directives = {"appendonly": "yes", "min-free-disk": "1000000gb"}
    with serve(options, directives) as server, Client(server, ADMIN_TOKEN) as client:
        members = require_problem(client.post(JOBS, {"payload": "x"}), 503, "MISCONF")
        require(members["detail"].startswith("The disk is nearly full"), members)


def test_503_for_what_the_journal_did_not_keep(options):
    """A job that is not on the disk when the journal fails answers 503; each with 201 is kept."""
    server = serve(options, {"appendonly": "yes", "appendfsync": "always"})
    added, refused = [], []

    def add(index):
        try:
            with Client(server, ADMIN_TOKEN) as client:
                for number in range(100_000):
                    job = f"{index}-{number}"
                    answer = client.post(JOBS, {"id": job, "payload": "x" * 1000})
                    if answer.status != 201:
                        refused.append(answer)
                        return
                    added.append(job)
        except (OSError, http.client.HTTPException):
            pass
    with server:
        threads = [threading.Thread(target=add, args=(index,)) for index in range(4)]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(added) >= 20, what="the first jobs")
        limit_files(server.pid, largest_file(server.directory) + 100_000)
        require_equal(server.process.wait(20), JOURNAL_FAILED, "exit code")
        for thread in threads:
            thread.join()
        require(refused, "nobody was told of the failure")
        for answer in refused:
            members = require_problem(answer, 503, "MISCONF")
            require("the server is stopping" in members["detail"], members)
        server.process = None
        server.start()
        with Client(server, ADMIN_TOKEN) as client:
            for job in added:
                client.expect(200, "GET", f"{JOBS}/{job}")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__], THREADS))
