#!/usr/bin/python3
"""Debian's Prometheus with conf/ and docs/moving: it scrapes a server, answers the dashboard and
what the pages ask, raises the alerts.

    tests/http/prometheus_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from harness import Skipped, prometheus_cases, require, require_equal, run, servers, wait_until
from harness.http_client import Client, serve

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONF = ROOT / "conf"
ALERTS = CONF / "prometheus-alerts.yml"
PERSISTENT = {"appendonly": "yes", "appendfsync": "always", "maxmemory": "1gb"}
# What a rate looks back over, where Grafana would choose by the scrape interval.
RATE_S = 6


def need_prometheus():
    for program in "prometheus", "promtool":
        if shutil.which(program) is not None:
            continue
        why = f"no {program}; tools/setup test installs Debian's package prometheus"
        require(os.getuid() != 0, why)
        raise Skipped("NOT RUN: " + why)


def promtool(*arguments, **others):
    need_prometheus()
    done = subprocess.run(["promtool", *map(str, arguments)], stdout=subprocess.PIPE, timeout=60,
                          stderr=subprocess.STDOUT, check=False, **others)
    text = done.stdout.decode(errors="replace")
    require(done.returncode == 0, f"promtool {arguments}: exit {done.returncode}\n{text}")
    return text


class Prometheus:
    """One with rules, that scrapes the server each second. A context manager."""

    def __init__(self, server, rules):
        need_prometheus()
        self.folder = tempfile.TemporaryDirectory(prefix="sluice-prometheus-")
        root = pathlib.Path(self.folder.name)
        (root / "rules.yml").write_text(rules, encoding="utf-8")
        (root / "prometheus.yml").write_text(json.dumps({  # JSON is YAML
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s",
                       "evaluation_interval": "1s"},
            "rule_files": ["rules.yml"],
            "scrape_configs": [{"job_name": "sluice", "static_configs": [
                {"targets": [f"127.0.0.1:{server.http_port}"]}]}]}), encoding="utf-8")
        self.port = servers.steady_port()
        self.log = open(root / "log", "w+", encoding="utf-8")  # pylint: disable=consider-using-with
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            ["prometheus", f"--config.file={root}/prometheus.yml", "--log.level=warn",
             f"--storage.tsdb.path={root}/data", f"--web.listen-address=127.0.0.1:{self.port}"],
            stdout=self.log, stderr=self.log, preexec_fn=servers.die_with_parent)

    def __enter__(self):
        wait_until(self.ready, 20, "Prometheus")
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.folder.cleanup()

    def get(self, path, **parameters):
        url = f"http://127.0.0.1:{self.port}{path}?{urllib.parse.urlencode(parameters, True)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path} {parameters}: {error.read().decode()}") from error

    def ready(self):
        require(self.process.poll() is None, "Prometheus has ended")
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=2) as at:
                return at.status == 200
        return False

    def query(self, expression):
        """The samples of now: [(labels, value)]."""
        data = self.get("/api/v1/query", query=expression)
        return [(one["metric"], float(one["value"][1])) for one in data["result"]]

    def firing(self):
        return {labels["alertname"] for labels, _ in self.query('ALERTS{alertstate="firing"}')}


def quick_rules():
    """The rules with seconds for minutes, for a test that cannot wait."""
    text = re.sub(r"\[\d+m\]", f"[{RATE_S}s]", ALERTS.read_text(encoding="utf-8"))
    return re.sub(r"for: \d+m", "for: 2s", text)


class Work:
    """Producers and workers of a queue; workers can stop and go on. A context manager."""

    def __init__(self, server, queue="q"):
        self.server = server
        self.queue = queue
        self.ends = threading.Event()
        self.works = threading.Event()
        self.works.set()
        self.threads = [threading.Thread(target=self.produce), threading.Thread(target=self.work)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        for thread in self.threads:
            thread.join()

    def produce(self):
        with self.server.connect() as client:
            number = 0
            while not self.ends.wait(0.01):
                number += 1
                client.call("Q.ADD", self.queue, f"job-{number}", "x", "PRI",
                            ("LOW", "NORMAL", "HIGH")[number % 3], "GROUP", f"g{number % 7}")

    def work(self):
        with self.server.connect() as client:
            while not self.ends.wait(0.005):
                if self.works.is_set():
                    self.run_one(client)

    def run_one(self, client):
        popped = client.call("Q.POP", "1", self.queue, "WORKER", "w").value
        for job in popped or []:
            fields = dict(zip(job[::2], job[1::2]))
            client.call("Q.ACK", self.queue, fields[b"id"], fields[b"lease"])


def dashboard():
    return json.loads((CONF / "grafana-dashboard.json").read_text(encoding="utf-8"))


def filled(expression):
    """A dashboard's query with all its variables at "All"."""
    for variable in "instance", "db", "queue":
        expression = expression.replace("$" + variable, ".*")
    expression = expression.replace("$__rate_interval", f"{RATE_S}s")
    require("$" not in expression, f"an unknown variable in {expression}")
    return expression


def panel_queries():
    return [(panel["title"], target["expr"]) for panel in dashboard()["panels"]
            for target in panel.get("targets", [])]


def has_data(prometheus, expression):
    return any(value == value for _, value in prometheus.query(filled(expression)))  # not NaN


def test_what_conf_has_is_well_formed(_options):
    """promtool accepts the configuration and the rules; each alert says what to do."""
    promtool("check", "config", CONF / "prometheus.yml")
    promtool("check", "rules", ALERTS)
    text = ALERTS.read_text(encoding="utf-8")
    names = re.findall(r"- alert: (\w+)", text)
    require_equal(len(names), len(set(names)), "names of alerts")
    for part in "summary:", "description:", "severity:":
        require_equal(text.count(part), len(names), part)
    model = dashboard()
    kinds = {variable["name"]: variable["type"] for variable in model["templating"]["list"]}
    require_equal(kinds, {"datasource": "datasource", "instance": "query", "db": "query",
                          "queue": "query"}, "variables")
    ids = [panel["id"] for panel in model["panels"]]
    require_equal(len(ids), len(set(ids)), "ids of panels")
    for panel in model["panels"]:
        for target in panel.get("targets", []):
            require_equal(target["datasource"]["uid"], "${datasource}", panel["title"])


def test_each_alert_fires_when_it_should(_options):
    """Every rule fires on the series of its trouble, and on those of a healthy server does not."""
    names = re.findall(r"- alert: (\w+)", ALERTS.read_text(encoding="utf-8"))
    require_equal(set(names), set(prometheus_cases.TROUBLES), "rules with a case")
    with tempfile.TemporaryDirectory(prefix="sluice-rules-") as folder:
        path = pathlib.Path(folder, "rules_test.yml")
        path.write_text(json.dumps(prometheus_cases.rule_tests(str(ALERTS))), encoding="utf-8")
        promtool("test", "rules", path)


def test_promtool_finds_nothing_wrong_with_the_series(options):
    """Names, types and helps of /metrics are as Prometheus wants them."""
    need_prometheus()
    server = serve(options, PERSISTENT, tokens=False)
    with server.connect() as connection:
        connection.call("Q.ADD", "q", "a", "x", "GROUP", "g")
    with Client(server, None) as client:
        text = promtool("check", "metrics", input=client.get("/metrics").body)
    require_equal(text, "", "what promtool says")


def test_the_dashboard_shows_data_and_a_stall_raises_its_alert(options):
    """Prometheus scrapes a server at work: every query has data; workers stop: the alert fires."""
    need_prometheus()
    server = serve(options, PERSISTENT, tokens=False)
    with server.connect() as connection:
        connection.call("Q.CONFIG", "q", "SET", "max_active", "50")
        connection.call("BGSAVE")
    with Prometheus(server, quick_rules()) as prometheus:
        with Work(server) as work:
            wait_for_data(prometheus)
            wait_for_variables(prometheus)
            require_equal(prometheus.query('up{job="sluice"}')[0][1], 1, "up")
            # A rule that is wrong fires all the time; a slow disk may raise one for a while.
            require("SluiceQueueStalled" not in prometheus.firing(), "nothing stalls")
            wait_until(lambda: prometheus.firing() == set(), 40, "no alert of a healthy server")
            work.works.clear()
            wait_until(lambda: "SluiceQueueStalled" in prometheus.firing(), 40, "the alert")
            work.works.set()
            wait_until(lambda: "SluiceQueueStalled" not in prometheus.firing(), 40, "its end")
        server.kill()
        wait_until(lambda: "SluiceDown" in prometheus.firing(), 40, "the alert of a dead server")


def queries_of_pages():
    """Each line of docs/moving's blocks of PromQL, with seconds for minutes."""
    queries = []
    for path in sorted((ROOT / "docs" / "moving").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        for block in re.findall(r"```promql\n(.*?)```", text, re.DOTALL):
            lines = [line for line in block.split("\n") if line and not line.startswith("#")]
            queries += [(path.stem, re.sub(r"\[\d+m\]", f"[{RATE_S}s]", line)) for line in lines]
    return queries


def test_what_docs_moving_asks_has_data(options):
    """The seed's PromQL, by the names that are deployed, and its labels of bands."""
    need_prometheus()
    queries = queries_of_pages()
    require(any("queue_wait_time_bucket" in query for _, query in queries), queries)
    server = serve(options, tokens=False)
    with server.connect() as connection:
        connection.call("Q.ADD", "other", "*", "x")
        connection.call("Q.POP", "1", "other")
    with Prometheus(server, quick_rules()) as prometheus, Work(server, "exec"):
        missing = queries
        deadline = time.monotonic() + 25
        while missing:
            missing = [pair for pair in missing if not has_data(prometheus, pair[1])]
            require(time.monotonic() < deadline, f"no data: {missing}")
            time.sleep(0.3)
        found = prometheus.query("queue_wait_time_count")
        require({labels["priority"] for labels, _ in found} <= {"low", "normal", "high"}, found)
        require_equal({labels["queue"] for labels, _ in found}, {"exec"})
        native = prometheus.query('queue_wait_time_seconds_count{queue="exec"}')
        require({labels["priority"] for labels, _ in native} <= {"LOW", "NORMAL", "HIGH"}, native)


def wait_for_data(prometheus):
    """Until each of the dashboard's queries has answered with a number."""
    missing = panel_queries()
    require(len(missing) > 30, "the dashboard has hardly any queries")
    deadline = time.monotonic() + 25
    while missing:
        missing = [pair for pair in missing if not has_data(prometheus, pair[1])]
        require(time.monotonic() < deadline, f"no data: {missing}")
        time.sleep(0.3)


def wait_for_variables(prometheus):
    """The queries behind the dashboard's variables have values."""
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] != "query":
            continue
        parts = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"])
        selector, label = parts.groups()
        series = prometheus.get("/api/v1/series", **{"match[]": filled(selector)})
        require({one.get(label) for one in series} - {None}, f"{variable['name']} has no values")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__]))
