#!/usr/bin/python3
"""The served OpenAPI description is true: every operation is called, every answer fits its schema.

    tests/http/openapi_test.py [--server build/release/bin/sluice-server] [--only part-of-a-name]
"""

import json
import re
import subprocess
import sys

from harness import NPM, need_npm, require, require_equal, run, wait_until
from harness.http_client import ADMIN_TOKEN, THREADS, Client, require_problem, serve

VALIDATE = """
import { text } from "node:stream/consumers";
import { Validator } from "@seriousme/openapi-schema-validator";
const validator = new Validator();
const { valid, errors } = await validator.validate(JSON.parse(await text(process.stdin)));
console.log(valid ? validator.version : JSON.stringify(errors, null, 1));
"""
# Probes, scrapers and tools may add parameters of their own.
TAKE_ANYTHING = {"/healthz", "/readyz", "/primary", "/metrics", "/api/v1/openapi.json"}
KINDS = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_a(value, kind):
    if kind in ("integer", "number"):
        fits = isinstance(value, int) if kind == "integer" else isinstance(value, (int, float))
        return fits and not isinstance(value, bool)
    return isinstance(value, KINDS[kind])


def faults(value, schema, schemas, where="answer"):
    """What of the JSON Schema subset that the description uses the value breaks."""
    if "$ref" in schema:
        yield from faults(value, schemas[schema["$ref"].rsplit("/", 1)[1]], schemas, where)
        return
    if "oneOf" in schema:
        tried = [list(faults(value, one, schemas, where)) for one in schema["oneOf"]]
        if tried.count([]) != 1:
            yield f"{where}: fits {tried.count([])} of {len(tried)}: {tried}"
        return
    if "anyOf" in schema:
        tried = [list(faults(value, one, schemas, where)) for one in schema["anyOf"]]
        if [] not in tried:
            yield f"{where}: fits none of {len(tried)}: {tried}"
        return
    known = {"type", "properties", "required", "additionalProperties", "items", "enum"}
    require(set(schema) <= known, f"{where}: the test does not know {set(schema) - known}")
    kinds = schema.get("type", list(KINDS) + ["integer", "number"])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not any(is_a(value, kind) for kind in kinds):
        yield f"{where}: {value!r} is no {kinds}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r} is not in {schema['enum']}"
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from faults(item, schema.get("items", {}), schemas, f"{where}[{number}]")
    if isinstance(value, dict):
        for name in schema.get("required", []):
            if name not in value:
                yield f"{where}: no {name}"
        others = schema.get("additionalProperties", {})
        for name, member in value.items():
            inner = schema.get("properties", {}).get(name, others)
            if inner is False:
                yield f"{where}: {name} is not described"
            else:
                yield from faults(member, inner, schemas, f"{where}.{name}")


class Described:
    """Requests whose bodies and answers are held against the description."""

    def __init__(self, client):
        self.client = client
        self.document = client.expect(200, "GET", "/api/v1/openapi.json").json
        self.schemas = self.document["components"]["schemas"]
        self.called = set()

    def operation(self, method, path):
        for pattern, operations in self.document["paths"].items():
            expression = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(pattern))
            if re.fullmatch(expression, path) and method.lower() in operations:
                # ":ack" ends a row of its own.
                if ":" in path.rsplit("/", 1)[1] and ":" not in pattern:
                    continue
                return pattern, operations[method.lower()]
        raise AssertionError(f"{method} {path} is not described")

    def call(self, method, target, body=None, status=None):
        path, _, query = target.partition("?")
        pattern, operation = self.operation(method, path)
        self.called.add((method, pattern))
        where = f"{method} {target}"
        described = {parameter["name"] for parameter in operation["parameters"]
                     if parameter["in"] == "query"}
        for pair in filter(None, query.split("&")):
            require(pair.partition("=")[0] in described, f"{where}: {pair} is not described")
        if body is not None:
            schema = operation["requestBody"]["content"]["application/json"]["schema"]
            wrong = list(faults(body, schema, self.schemas, "body"))
            require(not wrong, f"{where}: {wrong}")
        answer = self.client.request(method, target, body)
        responses = operation["responses"]
        require(str(answer.status) in responses, f"{where}: {answer.status} {answer.body!r}")
        if status is not None:
            require_equal(answer.status, status, where)
        elif method != "HEAD":
            require(answer.status < 300, f"{where}: {answer.status} {answer.body!r}")
        response = responses[str(answer.status)]
        if method == "GET":
            self.call("HEAD", target, status=answer.status)
        if method == "HEAD":
            require_equal(("content" in response, answer.body), (False, b""), where)
            return None
        kind = answer.headers["content-type"].partition(";")[0]
        require(kind in response["content"], f"{where}: {kind} is not described")
        value = answer.json if "json" in kind else answer.body.decode(errors="replace")
        wrong = list(faults(value, response["content"][kind]["schema"], self.schemas))
        require(not wrong, f"{where}: {wrong}")
        return value

    def call_trial(self, target, body):
        """It would pass as a configuration, too: so it is held against its own schema."""
        trial = self.call("PATCH", target, body)
        wrong = list(faults(trial, self.schemas["Trial"], self.schemas))
        require(not wrong, f"a trial: {wrong}")


def call_runs(api, queue, jobs):
    """What workers call, and what ends their jobs. Returns the id of one."""
    popped = api.call("POST", queue + ":pop", {"worker": "w", "count": 3, "match": ["k"],
                                               "more_queues": ["none"],
                                               "with": ["error", "need_results"]})["jobs"]
    leases = {job["id"]: job["lease"] for job in popped}
    first, second, third = leases
    api.call("POST", f"{jobs}/{first}:touch", {"lease": leases[first], "progress": "1", "log": "x",
                                               "worker": "w"})
    api.call("GET", f"{jobs}/{first}/log?from=0&count=10&wait_ms=1ms")
    listed = {"jobs": [{"id": second, "lease": leases[second]}, {"id_base64": "/w==", "lease": 1}]}
    api.call("POST", jobs + ":touch", listed)
    for verb in "ack", "nack":
        api.call("POST", f"{jobs}:{verb}", {"jobs": listed["jobs"][1:]})
    api.call("GET", queue + "/workers?limit=5")
    api.call("GET", "/api/v1/workers?limit=5")
    api.call("POST", f"{jobs}/{first}:ack", {"lease": leases[first], "result": "{}"})
    api.call("POST", f"{jobs}/{second}:nack", {"lease": leases[second], "mode": "fail"})
    api.call("POST", f"{jobs}/{third}:nack", {"lease": leases[third], "mode": "fatal",
                                              "error": "no"})
    api.call("POST", jobs + ":nack", {"where": {"worker": "w"}, "mode": "fail", "error": "no"})
    api.call("POST", f"{jobs}/{third}:retry")
    api.call("PATCH", f"{jobs}/{third}", {"pri": "LOW", "place": "back"})
    api.call("POST", f"{jobs}/{third}:cancel", {"reason": "r", "grace_ms": 0})
    api.call("POST", f"{jobs}/{third}:cancel", {}, status=409)
    return first


def call_everything(api):
    queue, jobs = "/api/v1/queues/q", "/api/v1/queues/q/jobs"
    api.call("PATCH", queue + "?create=true", {"max_active": 10, "fair": True})
    api.call("PATCH", queue + "?group_glob=*", {"max_active": 5})
    api.call_trial(queue + "?group=g&dry_run=true", {"max_active": 1})
    api.call("PATCH", queue + "?worker=none", {"quiet": True})
    api.call("DELETE", queue + "/config?worker=none")
    for number, name in enumerate(["a", "b", "c", "d"]):
        api.call("POST", jobs, {"id": name, "payload": "{}", "group": "g", "keys": ["k"],
                                "tags": {"lang": "python"}, "pri": number % 2, "retry": 1,
                                "backoff": [1, 1]})
    api.call("POST", jobs, {"id_base64": "/w==", "payload_base64": "/w==", "delay_ms": 60000})
    api.call("POST", jobs, {"id": "a", "payload": "x", "ifdup": "KEEP"})
    api.call("POST", jobs, {"id": "a", "payload": "x"}, status=409)
    api.call("POST", jobs, [{"id": "f", "payload": "{}", "after": ["d"]},
                            {"id": "a", "payload": "x"}, {"id_base64": "/g==", "payload": "x"},
                            {"id": "a", "payload": "x", "ifdup": "keep"},
                            {"payload": "x", "pri": "?"},
                            {"payload": "x", "needs": ["none"]}], status=200)
    api.call("POST", jobs, [], status=200)
    first = call_runs(api, queue, jobs)
    for path in ("/jobs?with=payload&with=result&with=options&limit=3",
                 "/jobs?state=completed&by=age", "/jobs?by=dispatch&count=10",
                 "/events?after=-&id=a", f"/jobs/{first}/stream", "/config", "/config?group=*",
                 "/jobs/a", "/jobs/f", "/jobs/%FF?with=payload", "", "?window_ms=9s&with=defaults",
                 "/config?key_glob=*", "/config?worker_glob=*", "/rules?limit=1",
                 "/bands", "/groups", "/groups/g", "/keys", "/tags/lang",
                 "/workers", "/jobs/a?with=dependents&with=options",
                 "/bands?with=wait_buckets&with=run_buckets",
                 "/events?after=-&count=50", "/history", "/history?range=day"):
        api.call("GET", queue + path)
    api.call("GET", queue + "/failures")
    api.call("POST", jobs + ":retry", {"where": {"state": ["cancelled"]}})
    for verb in "retry", "cancel", "purge":
        api.call("POST", f"{jobs}:{verb}", {"ids": ["none", {"base64": "/w=="}]})
    api.call("POST", jobs + ":cancel", {"where": {"group": "g"}, "reason": "all"})
    api.call("POST", jobs + ":purge", {"where": {"all": True}, "dry_run": True})
    api.call("POST", jobs + ":purge", {"where": {"older_ms": 0}})
    api.call("DELETE", queue + "?dry_run=true")
    api.call("DELETE", queue + "?confirm=true")
    api.call("GET", "/api/v1/queues?limit=5")
    api.call("GET", "/api/v1/history?points=60&count=5")
    api.call("GET", "/api/v1/history?points=720&queue=q&queue=none")
    for path in ("/healthz", "/readyz", "/primary", "/metrics", "/api/v1/session",
                 "/api/v1/journal", "/api/v1/server", "/api/v1/changes?limit=100",
                 "/api/v1/group", "/api/v1/find?q=q", "/api/v1/openapi.json"):
        api.call("GET", path)
    api.call("GET", "/standby?max_lag_ms=500", status=503)
    call_copy(api)
    api.call("POST", "/api/v1/session", {"user": "default", "password": "of-default"}, status=201)
    api.call("POST", "/api/v1/session", {"user": "default", "password": "x"}, status=401)
    api.call("DELETE", "/api/v1/session")
    made = api.call("POST", "/api/v1/tokens", {"role": "read"}, status=201)
    api.call("GET", "/api/v1/tokens")
    api.call("DELETE", f"/api/v1/tokens/{made['id']}")


def call_copy(api):
    api.call("POST", "/api/v1/checkpoint")
    wait_until(lambda: api.client.get("/api/v1/journal").json["checkpoint"]["number"] >= 1,
               what="a checkpoint")
    api.call("GET", "/api/v1/checkpoint")


def call_older_systems(api):
    executions, grading = "/api/v1/admin/executions/", "/api/v1/grading_queue"
    api.call("POST", "/api/v1/queues/exec/jobs", {"id": "e", "payload": "{\"lang\": \"python\"}"})
    api.call("GET", executions + "?status=queued&limit=10&skip=0")
    api.call("PUT", executions + "e/priority", {"priority": "high"})
    api.call("GET", executions + "queue")
    api.call("GET", "/api/queue-stats")
    job = {"key": "k", "collation": {"type": "team", "id": "7"}, "priority": 1000}
    api.call("PUT", grading, job)
    api.call("PUT", grading + "/immediate", {**job, "key": "i"})
    api.call("PUT", grading + "/move", {"jobKey": "k", "moveAction": "release"})
    api.call("GET", grading)
    api.call("GET", grading + "/k/status")
    api.call("DELETE", grading + "/k")


def call_what_fails(api):
    """Each status of a problem at some route that has it."""
    queue, jobs = "/api/v1/queues/q", "/api/v1/queues/q/jobs"
    grading, job = "/api/v1/grading_queue", {"key": "full", "collation": {"type": "team", "id": 7}}
    for method, target, body, status in [
            ("GET", jobs + "/none", None, 404), ("PATCH", jobs + "/none", {"pri": 1}, 404),
            ("POST", jobs + "/none:cancel", {}, 404), ("POST", jobs + "/none:retry", None, 404),
            ("POST", jobs + "/none:ack", {"lease": 1}, 404),
            ("POST", jobs + "/none:nack", {"lease": 1}, 404),
            ("POST", jobs + "/none:touch", {"lease": 1}, 404),
            ("GET", jobs + "/none/log", None, 404),
            ("PUT", "/api/v1/admin/executions/none/priority", {"priority": "high"}, 404),
            ("PUT", grading + "/move", {"jobKey": "none", "moveAction": "delay"}, 404),
            ("DELETE", grading + "/none", None, 404), ("GET", grading + "/none/status", None, 404),
            ("DELETE", "/api/v1/tokens/0", None, 404), ("GET", queue + "?db=16", None, 422),
            ("GET", "/standby?max_lag_ms=x", None, 422),
            ("GET", "/api/v1/admin/executions/?db=16", None, 422),
            ("GET", "/api/queue-stats?db=-1", None, 422), ("GET", grading + "?cursor=x", None, 422),
            ("GET", "/api/v1/queues?cursor=x", None, 422),
            ("GET", queue + "/events?after=x", None, 422),
            ("POST", jobs, {"payload": "", "pri": "none"}, 422),
            ("POST", "/api/v1/queues/text:pop", {}, 409), ("GET", "/api/v1/queues/text", None, 409),
            ("POST", "/api/v1/queues/full/jobs", {"payload": ""}, 429),
            ("PATCH", "/api/v1/queues/none", {"max_active": 1}, 404),
            ("DELETE", "/api/v1/queues/none?confirm=true", None, 404),
            ("DELETE", "/api/v1/queues/text?confirm=true", None, 409),
            ("DELETE", "/api/v1/queues/full", None, 422),
            ("PUT", grading, job, 429), ("PUT", grading + "/immediate", job, 429),
            ("POST", jobs, {"payload": "x" * 5000}, 413)]:
        api.call(method, target, body, status)
    api.client.close()
    api.client.token = "nobody's-token-0123456"
    for method, target, body in [("GET", queue, None), ("POST", jobs, {}),
                                 ("GET", "/readyz", None)]:
        api.call(method, target, body, 401)


def test_what_fails_is_as_described(options):
    """The description names the statuses of problems at each route, and their shape."""
    server = serve(options, {"http-max-body": "4kb"})
    with server.connect() as connection, Client(server, ADMIN_TOKEN) as client:
        connection.call("SET", "text", "x")
        for name in "full", "grade":
            connection.call("Q.CONFIG", name, "SET", "max_waiting", "1")
            connection.call("Q.ADD", name, "first", "x")
        call_what_fails(Described(client))


def test_streams_and_databases_are_described(options):
    """The stream of events with its header; `db` wherever it chooses the database."""
    server = serve(options)
    with Client(server) as client, server.connect() as connection:
        paths = Described(client).document["paths"]
        events = paths["/api/v1/queues/{queue}/events"]["get"]
        require("Last-Event-ID" in [parameter["name"] for parameter in events["parameters"]
                                    if parameter["in"] == "header"], events["parameters"])
        require_equal(set(events["responses"]["200"]["content"]),
                      {"application/json", "text/event-stream"})
        require_equal([pattern for pattern, operations in paths.items()
                       for operation in operations.values()
                       if "200" in operation["responses"] and "201" in operation["responses"]],
                      ["/api/v1/queues/{queue}/jobs"])
        connection.call("SELECT", "3")
        for name in "exec", "run", "grade":
            connection.call("Q.ADD", name, "only", "{}", "GROUP", "g")
        require_equal(client.get("/api/v1/admin/executions/?db=3").json["total"], 1)
        require_equal(client.get("/api/v1/admin/executions/?db=2").json["total"], 0)
        require_equal(client.get("/api/queue-stats?db=3").json["queue"]["queued"], 1)
        require_equal(len(client.get("/api/v1/grading_queue?db=3").json["jobs"]), 1)
        for pattern, operations in paths.items():
            for method, operation in operations.items():
                described = "db" in [parameter["name"] for parameter in operation["parameters"]]
                path = re.sub(r"\{\w+\}", "x", pattern)
                if method != "get" or path.startswith("/api/v1/tokens"):
                    continue
                answer = client.get(path + "?db=16")
                refused = answer.status == 422 and "from 0 to 15" in answer.json["detail"]
                require_equal(described, refused, f"{pattern}: db")


def test_unknown_parameters_are_refused(options):
    """A parameter that is not described is refused, with the names of those that are."""
    with Client(serve(options), ADMIN_TOKEN) as client:
        paths = client.get("/api/v1/openapi.json").json["paths"]
        for pattern, operations in paths.items():
            if "get" not in operations or pattern in TAKE_ANYTHING:
                continue
            names = {parameter["name"] for parameter in operations["get"]["parameters"]
                     if parameter["in"] == "query"}
            query = "?what=1" + ("&q=x" if "q" in names else "")
            answer = client.get(re.sub(r"\{\w+\}", "x", pattern) + query)
            require_problem(answer, 422, "BADFIELD")
            require_equal((answer.json["field"], set(answer.json.get("allowed", []))),
                          ("what", names), pattern)


def test_every_operation_is_as_described(options):
    """Bodies, parameters, statuses and answers of every operation fit the description."""
    server = serve(options, {"appendonly": "yes", "requirepass": "of-default"})
    with Client(server, ADMIN_TOKEN) as client:
        api = Described(client)
        require_equal(api.document["openapi"], "3.1.0")
        call_everything(api)
        call_older_systems(api)
        described = {(method.upper(), pattern) for pattern, operations
                     in api.document["paths"].items() for method in operations}
        require_equal(described - api.called, set(), "operations that were not called")


def test_the_description_is_whole(options):
    """Every schema that is named exists, every one that exists is used, roles are said."""
    server = serve(options)
    with Client(server) as client:
        document = client.get("/api/v1/openapi.json").json
    named = set(re.findall(r"#/components/schemas/(\w+)", repr(document)))
    require_equal(named, set(document["components"]["schemas"]), "schemas")
    for pattern, operations in document["paths"].items():
        for method, operation in operations.items():
            require(operation["summary"], f"{method} {pattern}")
            require(operation["x-role"] in ("none", "any", "read", "operate", "admin"), pattern)
            in_path = {parameter["name"] for parameter in operation["parameters"]
                       if parameter["in"] == "path"}
            require_equal(in_path, set(re.findall(r"\{(\w+)\}", pattern)), pattern)


def test_the_description_is_openapi(options):
    """The description is a valid OpenAPI 3.1 document, as a validator from npm reads the schema."""
    node = need_npm("@seriousme/openapi-schema-validator")
    server = serve(options)
    with Client(server) as client:
        document = client.get("/api/v1/openapi.json").json

    def verdict(description):
        told = subprocess.run([node, "--input-type=module", "--eval", VALIDATE], cwd=NPM,
                              input=json.dumps(description), capture_output=True, text=True,
                              check=False, timeout=60)
        return told.stdout.strip() or told.stderr

    require_equal(verdict(document), "3.1")
    del document["info"]["version"]
    require("version" in verdict(document), "a description without its version counts as valid")


if __name__ == "__main__":
    sys.exit(run(sys.modules[__name__], THREADS))
