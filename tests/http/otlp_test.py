#!/usr/bin/python3
"""Metrics by OTLP over HTTP: the data that a collector receives, and failures of the collector.

    tests/http/otlp_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import http.server
import json
import os
import socket
import ssl
import sys
import threading
import time

from harness import alone, open_paths, require, require_equal, run, scratch, wait_until
from harness.certificates import Certificates
from harness.holds import measured
from harness.http_client import Client, serve
from metrics_test import parse

SECRET = "of-a-secret-0123456789"
CUMULATIVE = 2
LOST = "Cannot export metrics"
BACK = "Exporting metrics to"
# An export takes at most nine tenths of it; where none may fail it is not the shortest.
PATIENT_S = 3


class Collector(http.server.ThreadingHTTPServer):
    """Keeps what it is sent; responds with `answers` in turn, then repeats the last one. With a
    `context` it uses TLS."""

    def __init__(self, answers=((200, {}, "{}"),), context=None):
        super().__init__(("127.0.0.1", 0), Receiver)
        self.answers = list(answers)
        self.requests = []  # (time, path, headers, body)
        self.refused = 0  # handshakes that failed
        if context is not None:
            # The handshake is the business of the connection's thread, with its first read.
            self.socket = context.wrap_socket(self.socket, server_side=True,
                                              do_handshake_on_connect=False)
        self.thread = threading.Thread(target=self.serve_forever, args=(0.02,))

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], (ssl.SSLError, ConnectionError)):
            super().handle_error(request, client_address)
        self.refused += 1

    def bodies(self):
        return [body for _, _, _, body in self.requests]

    def wait_for(self, count, timeout_s=20):
        wait_until(lambda: len(self.requests) >= count, timeout_s, f"export {count}")

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.thread.join()
        self.server_close()


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):  # pylint: disable=invalid-name
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server = self.server
        server.requests.append((time.monotonic(), self.path, dict(self.headers), body))
        answer = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
        status, headers, text = answer
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


def exporting(options, url, directives=None):
    given = {"otlp-endpoint": url, "otlp-interval": "1"}
    given.update(directives or {})
    return serve(options, given, tokens=False)


def log_of(server):
    with open(server.log_path, encoding="utf-8", errors="replace") as log:
        return log.read()


def counters_of(server):
    with Client(server, None) as client:
        samples = parse(client.get("/metrics").body.decode())
    return {name: samples[f"sluice_otlp_exports{name}_total"][()]
            for name in ("", "_failed", "_skipped")}


# --- The encoding ---


def attributes_of(holder):
    pairs = {}
    for attribute in holder["attributes"]:
        require_equal(set(attribute), {"key", "value"}, "an attribute")
        require_equal(set(attribute["value"]), {"stringValue"}, "an attribute's value")
        require(attribute["key"] not in pairs, f"{attribute['key']} twice")
        pairs[attribute["key"]] = attribute["value"]["stringValue"]
    return pairs


def integer(text):
    """64-bit integers are strings in OTLP's JSON."""
    require(isinstance(text, str) and text.lstrip("-").isdigit(), f"{text!r} is no int64")
    return int(text)


def check_times(point):
    now_ns = time.time_ns()
    at_ns = integer(point["timeUnixNano"])
    require(now_ns - 60e9 < at_ns <= now_ns + 1e9, f"time {at_ns}, now {now_ns}")
    if "startTimeUnixNano" in point:
        start_ns = integer(point["startTimeUnixNano"])
        require(0 < start_ns <= at_ns, f"start {start_ns}, time {at_ns}")


def check_histogram(point):
    counts = [integer(text) for text in point["bucketCounts"]]
    bounds = point["explicitBounds"]
    require_equal(len(counts), len(bounds) + 1, "buckets")
    require_equal(bounds, sorted(set(bounds)), "bounds")
    require_equal(sum(counts), integer(point["count"]), "count")
    require(min(counts) >= 0 and isinstance(point["sum"], (int, float)), f"{point}")
    require("startTimeUnixNano" in point, "a histogram without a start")


def check_metric(metric):
    """Its kind and points by their attributes."""
    kind, = set(metric) - {"name", "description", "unit"}
    data = metric[kind]
    require(metric["description"] and metric["unit"] in ("1", "s", "By"), f"{metric['name']}")
    if kind != "gauge":
        require_equal(data["aggregationTemporality"], CUMULATIVE, "temporality")
    require_equal(data.get("isMonotonic", False), kind == "sum", f"isMonotonic of {kind}")
    members = {"attributes", "timeUnixNano", "startTimeUnixNano"}
    members |= {"gauge": {"asDouble"}, "sum": {"asInt"},
                "histogram": {"count", "sum", "bucketCounts", "explicitBounds"}}[kind]
    points = {}
    for point in data["dataPoints"]:
        require(set(point) - {"startTimeUnixNano"} == members - {"startTimeUnixNano"}, f"{point}")
        check_times(point)
        if kind == "histogram":
            check_histogram(point)
        elif kind == "sum":
            require(integer(point["asInt"]) >= 0, f"{point}")
        points[tuple(sorted(attributes_of(point).items()))] = point
    require_equal(len(points), len(data["dataPoints"]), f"series of {metric['name']}")
    return kind, points


def decode(body):
    """(resource, {name: (kind, points)}) of an export, checked member by member."""
    export = json.loads(body)
    require_equal(set(export), {"resourceMetrics"}, "the export")
    resource_metrics, = export["resourceMetrics"]
    require_equal(set(resource_metrics), {"resource", "scopeMetrics"}, "resourceMetrics")
    scope_metrics, = resource_metrics["scopeMetrics"]
    require_equal(scope_metrics["scope"]["name"], "sluice", "the scope")
    metrics = {}
    for metric in scope_metrics["metrics"]:
        require(metric["name"] not in metrics, f"{metric['name']} twice")
        metrics[metric["name"]] = check_metric(metric)
    return attributes_of(resource_metrics["resource"]), metrics


def labelled(**labels):
    return tuple(sorted({"queue": "q", "db": "0", **labels}.items()))


def test_a_collector_gets_every_series(options):
    """An export is OTLP's JSON, and holds the series of /metrics with their values."""
    with Collector() as collector:
        server = exporting(options, collector.url,
                           {"otlp-service-name": "judge", "appendonly": "yes",
                            "otlp-header": [f"X-Api-Key {SECRET}", "X-Scope tests"]})
        with server.connect() as connection:
            for name in "abc":
                connection.call("Q.ADD", "q", name, "x", "PRI", "HIGH", "GROUP", "g")
            connection.call("Q.ADD", "q", "a", "x")
            connection.call("Q.ADD", b'od"d\\\n\xff', "a", "x")
            connection.call("Q.POP", "1", "q")
        seen = len(collector.requests)
        collector.wait_for(seen + 2)
        _, path, headers, body = collector.requests[-1]
        require_equal(path, "/v1/metrics", "the path")
        require_equal(headers["Content-Type"], "application/json", "the type")
        require_equal((headers["X-Api-Key"], headers["X-Scope"]), (SECRET, "tests"), "headers")
        resource, metrics = decode(body)
        require_equal(resource["service.name"], "judge", "service.name")
        require_equal(resource["service.instance.id"],
                      f"{socket.gethostname()}:{server.port}", "service.instance.id")
        require_equal(metrics["queue_depth"][1][labelled()]["asDouble"], 2, "depth")
        added = metrics["queue_enqueue_total"][1][labelled()]
        require_equal(added["asInt"], "3", "added")
        require("startTimeUnixNano" not in added, "totals outlive the process")
        require("startTimeUnixNano" in metrics["sluice_commands_total"][1][()], "commands")
        refused = metrics["queue_rejected_total"][1][labelled(reason="duplicate")]
        require_equal(refused["asInt"], "1", "refusals")
        waited = metrics["queue_wait_time_seconds"][1][labelled(priority="HIGH")]
        require_equal(waited["count"], "1", "waits")
        require_equal(len(metrics["queue_depth"][1]), 2, "queues")
        with Client(server, None) as client:
            lines = client.get("/metrics").body.decode().splitlines()
        families = {line.split()[2] for line in lines if line.startswith("# TYPE")}
        require_equal(families, set(metrics), "families of both exporters")


def test_a_secret_header_stays_secret(options):
    """CONFIG GET shows the endpoint, and no header."""
    with Collector() as collector:
        server = exporting(options, collector.url, {"otlp-header": [f"X-Api-Key {SECRET}"]})
        with server.connect() as connection:
            shown = connection.call("CONFIG", "GET", "*").value
            require(collector.url.encode() in shown, "the endpoint")
            require(not any(b"of-a-secret" in text for text in shown), "the secret is shown")
        require("of-a-secret" not in log_of(server), "the secret is in the log")


def test_without_http(options):
    """Exports need no HTTP port; a name is looked up."""
    with Collector() as collector:
        url = f"http://localhost:{collector.server_port}/in?a=b"
        server = options.server({"http-port": "0", "otlp-interval": "1", "otlp-endpoint": url})
        server.start()
        collector.wait_for(1)
        require_equal(collector.requests[0][1], "/in?a=b", "the path")
        _, metrics = decode(collector.bodies()[0])
        require("sluice_http_requests_total" not in metrics, "series of HTTP")


# --- TLS ---


def tls_exporting(options, url, authority, environment=None, interval_s=1):
    """A server that exports to an https collector; without `authority` it asks the system's."""
    given = {"http-port": "auto", "otlp-endpoint": url, "otlp-interval": str(interval_s)}
    if authority is not None:
        given["otlp-tls-ca-cert-file"] = authority
    server = options.server(given, environment=environment)
    server.start()
    return server


def test_a_collector_over_tls(options):
    """An https collector gets exports by its name and by its address; large ones too."""
    with scratch() as folder:
        certificates = Certificates(folder)
        authority = certificates.certificate("ca")
        for host in ("localhost", "127.0.0.1"):
            with Collector(context=certificates.server_context()) as collector:
                url = f"https://{host}:{collector.server_port}"
                server = tls_exporting(options, url, authority, interval_s=PATIENT_S)
                with server.connect() as connection:
                    connection.pipeline([["Q.ADD", f"a-queue-of-some-length-{number}", "a", "x"]
                                         for number in range(200)])
                seen = len(collector.requests)
                collector.wait_for(seen + 2)
                _, path, headers, body = collector.requests[-1]
                require_equal((path, headers["Host"]), ("/v1/metrics", url[8:]), "the request")
                require(len(body) > 100_000, f"{len(body)} bytes")
                require_equal(len(decode(body)[1]["queue_depth"][1]), 200, "queues")
                wait_until(lambda at=server: counters_of(at)[""] >= 2, 20, "exports")
                require_equal(counters_of(server)["_failed"], 0, "failures")
                server.close()


def test_the_system_s_authorities(options):
    """Without a file of authorities those of the system count, with OpenSSL's own variables."""
    with scratch() as folder:
        certificates = Certificates(folder)
        with Collector(context=certificates.server_context()) as collector:
            url = f"https://localhost:{collector.server_port}"
            environment = {**os.environ, "SSL_CERT_FILE": certificates.certificate("ca")}
            server = tls_exporting(options, url, None, environment)
            collector.wait_for(1)
            server.close()
            server = tls_exporting(options, url, None)
            seen = len(collector.requests)
            wait_until(lambda: counters_of(server)["_failed"] >= 1, 20, "the failure")
            require_equal(len(collector.requests), seen, "exports to somebody unknown")
            require("certificate verify failed" in log_of(server), log_of(server))


def test_a_collector_that_is_not_believed(options):
    """To a collector whose certificate is not good nothing is sent, and the log says why."""
    with scratch() as folder:
        certificates = Certificates(folder)
        certificates.sign("second", alternatives="subjectAltName=DNS:other.test,IP:127.0.0.9")
        for name, host, reason in (("stranger", "localhost", "unable to get local issuer"),
                                   ("expired", "localhost", "certificate has expired"),
                                   ("second", "localhost", "hostname mismatch"),
                                   ("second", "127.0.0.1", "IP address mismatch")):
            with Collector(context=certificates.server_context(name)) as collector:
                server = tls_exporting(options, f"https://{host}:{collector.server_port}",
                                       certificates.certificate("ca"))
                wait_until(lambda at=server: counters_of(at)["_failed"] >= 2, 20, "two failures")
                log = log_of(server)
                require_equal(log.count(LOST), 1, "lines about the failures")
                require(f"{host}:{collector.server_port}: the TLS handshake: " in log, log)
                require(reason in log, f"{name} at {host}: {log}")
                wait_until(lambda at=collector: at.refused >= 2, 20, "refused handshakes")
                require_equal(collector.requests, [], "requests")
                server.close()


def test_a_certificate_that_is_renewed(options):
    """When the collector's certificate is good again exports go on, and the log says so."""
    with scratch() as folder:
        certificates = Certificates(folder)
        with Collector(context=certificates.server_context("expired")) as collector:
            server = tls_exporting(options, f"https://localhost:{collector.server_port}",
                                   certificates.certificate("ca"))
            wait_until(lambda: counters_of(server)["_failed"] >= 1, 20, "a failure")
            certificates.sign("expired")
            collector.socket.context.load_cert_chain(certificates.certificate("expired"),
                                                     certificates.key("expired"))
            collector.wait_for(1)
            wait_until(lambda: BACK in log_of(server), 20, "the log")


def test_a_collector_without_tls(options):
    """A collector without TLS, or one that never finishes the handshake, gets nothing."""
    with scratch() as folder:
        authority = Certificates(folder).certificate("ca")
        with Collector() as collector:
            server = tls_exporting(options, f"https://localhost:{collector.server_port}", authority)
            wait_until(lambda: counters_of(server)["_failed"] >= 1, 20, "the failure")
            require("the TLS handshake: " in log_of(server), log_of(server))
            require_equal(collector.requests, [], "requests")
            server.close()
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen(16)
            server = tls_exporting(options, f"https://127.0.0.1:{silent.getsockname()[1]}",
                                   authority)
            wait_until(lambda: counters_of(server)["_failed"] >= 1, 20, "the failure")
            require("timeout while in the TLS handshake" in log_of(server), log_of(server))
            time.sleep(0.3)  # the next one is on its way
            began = time.monotonic()
            require_equal(server.stop(), 0, "exit code")
            require(time.monotonic() - began < 2, "the end took long")


def test_a_bad_file_of_authorities(options):
    """A file of authorities that cannot be read ends the start, where it is needed."""
    with scratch() as folder:
        path = os.path.join(folder, "none.crt")
        code, text = options.run("--port", "0", "--http-port", "0", "--dir", folder,
                                 "--otlp-endpoint", "https://localhost", "--otlp-tls-ca-cert-file",
                                 path)
        require(code == 1 and "otlp-tls-ca-cert-file: Failed to load" in text and path in text,
                f"exit {code}, {text}")


# --- Trouble ---


def test_a_collector_that_comes_back(options):
    """Failures are logged once until an export succeeds; sums go on, nothing is lost or doubled."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        server = exporting(options, f"http://127.0.0.1:{taken.getsockname()[1]}")
        wait_until(lambda: counters_of(server)["_failed"] >= 2, 20, "two failures")
    require_equal(log_of(server).count(LOST), 1, "lines about the failures")
    server.close()
    bad = (400, {}, "not\nlike that")
    with Collector([bad, bad, (200, {}, "{}")]) as collector:
        server = exporting(options, collector.url, {"otlp-interval": str(PATIENT_S)})
        collector.wait_for(4, 60)
        wait_until(lambda: counters_of(server)[""] >= 2, 20, "two exports")
        require_equal(counters_of(server)["_failed"], 2, "failures")
        log = log_of(server)
        require_equal((log.count(LOST), log.count(BACK)), (1, 1), "lines in the log")
        require("400: not like that" in log, "what the collector said, in one line")


def test_retry_after_is_kept(options):
    """After 503 with Retry-After nothing is sent before its time."""
    with Collector([(503, {"Retry-After": "3"}, ""), (200, {}, "{}")]) as collector:
        server = exporting(options, collector.url)
        collector.wait_for(2)
        first, second = [at for at, *_ in collector.requests[:2]]
        require(second - first >= 2.9, f"the next export came after {second - first:.2f} s")
        require(counters_of(server)["_skipped"] >= 2, "skipped exports")


def test_points_that_are_refused(options):
    """A partial success is logged and counted as a failure."""
    answer = '{"partialSuccess": {"rejectedDataPoints": "7", "errorMessage": "too old"}}'
    with Collector([(200, {}, answer)]) as collector:
        server = exporting(options, collector.url)
        collector.wait_for(2)
        wait_until(lambda: counters_of(server)["_failed"] >= 1, 20, "the failure")
        require("it rejected 7 points: too old" in log_of(server), "the log")


def slowest_of(connection, duration_s):
    """The longest time that a command takes, of those of some seconds."""
    slowest = 0
    until = time.monotonic() + duration_s
    while time.monotonic() < until:
        began = time.monotonic()
        connection.call("Q.STATS", "q")
        slowest = max(slowest, time.monotonic() - began)
        time.sleep(0.002)
    return slowest


@alone
def test_a_slow_collector_disturbs_nobody(options):
    """A collector that accepts and never answers: commands are as quick, exports do not pile up,
    and the server ends at once."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(16)
        server = exporting(options, f"http://127.0.0.1:{silent.getsockname()[1]}")
        with server.connect() as connection:
            slowest = measured(lambda: slowest_of(connection, 3.2), lambda took_s: took_s < 0.5)
        require(slowest[-1] < 0.5, f"commands took {slowest} s")
        sockets = [file for file in open_paths(server.pid) if file.startswith("socket:")]
        require(len(sockets) <= 6, f"{len(sockets)} sockets")
        wait_until(lambda: counters_of(server)["_failed"] >= 2, what="failures")
        require_equal(log_of(server).count(LOST), 1, "lines in the log")
        began = time.monotonic()
        require_equal(server.stop(), 0, "exit code")
        require(time.monotonic() - began < 2, "the end took long")


def test_bad_settings(options):
    """An invalid endpoint or header ends the start with a message."""
    for directive, value, said in [
            ("otlp-endpoint", ["ftp://collector:4318"], "begin with http:// or https://"),
            ("otlp-endpoint", ["collector:4318"], "begin with http://"),
            ("otlp-endpoint", ["http://a:b@collector"], "use a header instead"),
            ("otlp-endpoint", ["http://collector:99999"], "port"),
            ("otlp-endpoint", ["http:///v1/metrics"], "no host"),
            ("otlp-header", ["Bad Name", "x"], "name"),
            ("otlp-header", ["X", "a\nb"], "value"),
            ("otlp-header", ["Content-Length", "5"], "set by the server"),
            ("otlp-interval", ["0"], "between 1")]:
        code, text = options.run("--port", "0", "--" + directive, *value)
        require(code == 1 and said in text, f"{directive} {value}: exit {code}, {text}")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__], at_once=4))
