#!/usr/bin/python3
"""/metrics: both formats are well-formed, and their values match the queues.

    tests/http/metrics_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import re
import sys

from harness import require, require_equal, run, wait_until
from harness.http_client import READ_TOKEN, THREADS, Client, require_problem, serve

JOBS = "/api/v1/queues/q/jobs"
SAMPLE = re.compile(r'([a-z_:]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)*)\})? (-?[0-9.e+-]+)')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def parse(text):
    """{name: {labels: value}}; every line is a comment or a sample of the family above it."""
    samples, family, kind, seen = {}, None, None, set()
    for line in text.splitlines():
        if line == "# EOF":
            break
        if line.startswith("# "):
            _, what, family, rest = line.split(" ", 3)
            require(what in ("HELP", "TYPE"), line)
            if what == "TYPE":
                require(family not in seen, f"{family} stands in two places")
                seen.add(family)
                kind = rest
            continue
        found = SAMPLE.fullmatch(line)
        require(found, f"no sample: {line!r}")
        name = found.group(1)
        suffixes = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("", "_total"),
                    "gauge": ("",)}[kind]
        require(name in [family + suffix for suffix in suffixes], f"{name} below {family}")
        labels = tuple(sorted(LABEL.findall(found.group(2) or "")))
        require(labels not in samples.setdefault(name, {}), f"{line} twice")
        samples[name][labels] = float(found.group(3))
    return samples


def labelled(**labels):
    return tuple(sorted({"queue": "q", "db": "0", **labels}.items()))


def test_series_follow_the_state(options):
    """Gauges, totals, distributions by priority, refusals and groups are what happened."""
    server = serve(options)
    with Client(server) as client:
        client.expect(200, "PATCH", "/api/v1/queues/q?create=true", {"max_waiting": 3})
        before = parse(client.get("/metrics").body.decode())
        # Every series is there before the first job has waited.
        require_equal(before["queue_depth"][labelled()], 0)
        require("queue_wait_time_seconds_count" not in before, "a distribution without samples")
        require_equal(before["queue_rejected_total"][labelled(reason="queue_full")], 0)
        for name in "abc":
            client.expect(201, "POST", JOBS, {"id": name, "payload": "", "pri": "HIGH",
                                              "group": "g"})
        client.expect(429, "POST", JOBS, {"payload": ""})
        job, = client.post("/api/v1/queues/q:pop", {"worker": "w"}).json["jobs"]
        client.expect(200, "POST", JOBS + "/a:ack", {"lease": job["lease"]})
        client.expect(200, "POST", "/api/v1/queues/q:pop", {"worker": "w"})
        body = client.get("/metrics").body.decode()
        require('le="0.005"' in body and 'le="0.025"' in body, "bounds as queries write them")
        after = parse(body)
        for name, value in [("queue_depth", 1), ("queue_active", 1), ("queue_enqueue_total", 3),
                            ("queue_schedule_total", 2), ("queue_completed_total", 1)]:
            require_equal(after[name][labelled()], value, name)
        high = labelled(priority="HIGH")
        require_equal(set(after["queue_wait_time_seconds_count"]), {high}, "bands with samples")
        require_equal(after["queue_priority_depth"], {high: 1})
        require_equal(after["queue_wait_time_seconds_count"][high], 2)
        require_equal(after["queue_run_time_seconds_count"][high], 1)
        require_equal(after["queue_rejected_total"][labelled(reason="queue_full")], 1)
        require_equal(after["queue_group_active"][labelled(group="g")], 1)
        require(after["sluice_commands_total"][()] >= 5, "commands")
        require(after["sluice_http_requests_total"][()] >= 8, "requests")
        require(after["sluice_memory_used_bytes"][()] > 1 << 20, "memory")


def test_series_of_what_goes_wrong(options):
    """Expired, reclaimed and cancelled jobs, the longest wait and a pause are told as they are."""
    server = serve(options)

    def sample(name):
        return parse(client.get("/metrics").body.decode())[name][labelled()]

    with Client(server) as client:
        client.expect(201, "POST", JOBS, {"id": "lost", "payload": "", "lease_ms": 1000})
        require_equal([sample(f"queue_{name}_total") for name in
                       ("expired", "reclaimed", "cancelled", "failed")], [0, 0, 0, 0])
        require_equal(len(client.post("/api/v1/queues/q:pop", {}).json["jobs"]), 1)
        wait_until(lambda: sample("queue_reclaimed_total") == 1, what="the end of a lease")
        client.expect(201, "POST", JOBS, {"id": "late", "payload": "", "ttl_ms": 1})
        wait_until(lambda: sample("queue_expired_total") == 1, what="a job that expires")
        client.expect(201, "POST", JOBS, {"id": "unwanted", "payload": ""})
        client.expect(200, "POST", JOBS + "/unwanted:cancel", {})
        require_equal([sample(f"queue_{name}_total") for name in
                       ("expired", "reclaimed", "cancelled", "failed")], [1, 1, 1, 0])
        stats = client.get("/api/v1/queues/q").json["stats"]
        oldest_s = sample("queue_oldest_seconds")
        require(stats["oldest_ms"] / 1000 <= oldest_s < stats["oldest_ms"] / 1000 + 5, oldest_s)
        require(oldest_s > 0, oldest_s)
        require_equal(sample("queue_paused"), 0)
        client.expect(200, "PATCH", "/api/v1/queues/q", {"paused": "out"})
        require_equal(sample("queue_paused"), 1)
        client.expect(200, "PATCH", "/api/v1/queues/q", {"paused": "in"})
        require_equal(sample("queue_paused"), 0)


def test_buckets_grow_and_end_with_the_count(options):
    """Buckets of each distribution never fall, reach from 1 ms to hours, and end with all."""
    server = serve(options, {"appendonly": "yes", "appendfsync": "always"})
    with Client(server) as client:
        for number in range(20):
            client.expect(201, "POST", JOBS, {"id": f"j{number}", "payload": ""})
        client.expect(200, "POST", "/api/v1/queues/q:pop", {"count": 20})
        samples = parse(client.get("/metrics").body.decode())
    for family in "queue_wait_time_seconds", "sluice_journal_sync_seconds":
        series = {}
        for labels, value in samples[family + "_bucket"].items():
            rest = tuple(pair for pair in labels if pair[0] != "le")
            bound = float(dict(labels)["le"].replace("+Inf", "inf"))
            series.setdefault(rest, []).append((bound, value))
        for rest, buckets in series.items():
            buckets.sort()
            values = [value for _, value in buckets]
            require_equal(values, sorted(values), f"{family} {rest}")
            require_equal(values[-1], samples[family + "_count"][rest])
            require(buckets[0][0] <= 0.0011, f"the first bound of {family} is {buckets[0][0]}")
    bounds = [float(dict(labels)["le"].replace("+Inf", "inf"))
              for labels in samples["queue_wait_time_seconds_bucket"]]
    require(max(bound for bound in bounds if bound != float("inf")) >= 3600, "hours")
    require(samples["sluice_journal_sync_seconds_count"][()] > 0, "syncs")


def test_the_largest_queues_have_series_of_their_own(options):
    """Beyond http-metrics-queues the others are one line, *, with their sums; by database."""
    server = serve(options, {"http-metrics-queues": "3"})
    with Client(server) as client, server.connect() as connection:
        for number in range(1, 9):
            for job in range(number):
                connection.call("Q.ADD", f"q{number}", f"j{job}", "", "PRI", "HIGH", "GROUP", "g")
        require_equal(len(connection.call("Q.POP", 1, "q1").value), 1)
        connection.call("Q.CONFIG", "q2", "SET", "paused", "out", "max_active", 7)
        connection.call("SELECT", 3)
        connection.call("Q.ADD", "elsewhere", "a", "")
        samples = parse(client.get("/metrics").body.decode())

        def of(name, **labels):
            return {dict(each)["queue"]: value for each, value in samples[name].items()
                    if labels.items() <= dict(each).items()}

        require_equal(of("queue_depth", db="0"), {"q8": 8, "q7": 7, "q6": 6, "*": 14})
        require_equal(of("queue_depth", db="3"), {"*": 1})
        require_equal(of("queue_active", db="0")["*"], 1)
        require_equal(of("queue_enqueue_total", db="0")["*"], 15)
        require_equal(of("queue_priority_depth", db="0", priority="HIGH")["*"], 14)
        require_equal(of("queue_slots_max", db="0")["*"], 7)
        require_equal(of("queue_paused", db="0")["*"], 1)
        require_equal(of("queue_wait_time_seconds_count", db="0"), {"*": 1})
        require_equal(set(of("queue_group_depth")), {"q8", "q7", "q6"}, "queues with groups")
        connection.call("CONFIG", "SET", "http-metrics-queues", 0)
        samples = parse(client.get("/metrics").body.decode())
        require_equal(of("queue_depth", db="0"), {"*": 35})
        connection.call("CONFIG", "SET", "http-metrics-queues", 1000)
        samples = parse(client.get("/metrics").body.decode())
        require_equal(len(of("queue_depth", db="0")), 8)


def test_a_queue_named_like_the_sum(options):
    """A queue called * is counted into the sum of the others, so that no series is there twice."""
    server = serve(options, {"http-metrics-queues": "1"})
    with Client(server) as client, server.connect() as connection:
        for name, jobs in ("*", 5), ("a", 3), ("b", 1):
            for job in range(jobs):
                connection.call("Q.ADD", name, f"j{job}", "", "GROUP", "g")
        for most, depths in (1, {"a": 3, "*": 6}), (1000, {"a": 3, "b": 1, "*": 5}):
            connection.call("CONFIG", "SET", "http-metrics-queues", most)
            samples = parse(client.get("/metrics").body.decode())
            require_equal({dict(each)["queue"]: value
                           for each, value in samples["queue_depth"].items()}, depths)


def test_size(options):
    """A thousand queues with runs in one band take 5 MB at most; the empty group has no series."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        reply = connection.call("EVAL", """
            for i = 1, 1000 do
                local queue = KEYS[1] .. i
                redis.call('Q.ADD', queue, 'job', 'payload')
                redis.call('Q.ACK', queue, 'job', redis.call('Q.POP', 1, queue)[1][6])
                redis.call('Q.ADD', queue, 'next', 'payload', 'GROUP', 'g')
                redis.call('Q.ADD', queue, 'last', 'payload')
            end""", 1, "queue")
        require(not reply.is_error, reply.raw)
        body = client.get("/metrics").body
    require(len(body) <= 5_000_000, f"{len(body)} bytes")
    samples = parse(body.decode())
    require_equal(len(samples["queue_run_time_seconds_count"]), 1000, "distributions")
    require_equal({dict(labels)["group"] for labels in samples["queue_group_depth"]}, {"g"})


def test_both_formats(options):
    """Prometheus's text by default, OpenMetrics where Accept asks for it; the same values."""
    server = serve(options)
    with Client(server, READ_TOKEN) as client:
        with server.connect() as connection:
            connection.call("Q.ADD", b'q"\\\n\xff', "a", "x")
            connection.call("Q.ADD", "q", "a", "x")
        plain = client.get("/metrics")
        opened = client.get("/metrics", headers={
            "Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"})
        require(plain.headers["content-type"].startswith("text/plain; version=0.0.4"), "type")
        require(opened.headers["content-type"].startswith("application/openmetrics-text"), "type")
        require(opened.body.endswith(b"# EOF\n"), "no end")
        require(b"# EOF" not in plain.body, "an end")
        require(b"# TYPE queue_enqueue_total counter" in plain.body, "a counter")
        require(b"# TYPE queue_enqueue counter" in opened.body, "a counter")
        first, second = parse(plain.body.decode()), parse(opened.body.decode())
        require_equal(set(first), set(second), "names")
        require_equal(first["queue_enqueue_total"], second["queue_enqueue_total"])
        require_equal(len(first["queue_depth"]), 2, "queues")
        require_problem(client.get("/metrics", token=None), 401, "NOAUTH")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__], THREADS))
