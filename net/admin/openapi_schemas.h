// The schemas of the API's description (net/admin/openapi.cc): bodies and responses by name.
//
// Members that may hold any bytes have x_base64 beside them. Constant text.
#pragma once

namespace sluice {

inline constexpr const char* kOpenApiSchemas = R"json({
"Problem": {"type": "object", "properties": {"type": {"type": "string"}, "title": {"type":
  "string"}, "status": {"type": "integer"}, "code": {"type": "string"}, "detail": {"type":
  "string"}, "field": {"type": ["string", "object"]}, "allowed": {"type": "array", "items":
  {"type": ["string", "object"]}}, "nearest": {"type": ["string", "object"]}}, "required":
  ["type", "title", "status", "code", "detail"]},
"Status": {"type": "object", "properties": {"status": {"type": "string"}}, "required":
  ["status"], "additionalProperties": false},
"Session": {"type": "object", "properties": {"role": {"type": ["string", "null"], "enum":
  ["read", "operate", "admin", null]}, "user": {"type": ["string", "null"]}, "user_base64":
  {"type": "string"}, "tokens": {"type": "boolean"}, "port": {"type": ["integer", "null"]},
  "tls_port": {"type": ["integer", "null"]}, "password_needed": {"type": ["boolean", "null"]},
  "now": {"type": "integer"}}, "required": ["role", "user", "tokens", "port", "tls_port",
  "password_needed", "now"], "additionalProperties": false},
"LogIn": {"type": "object", "properties": {"user": {"type": "string"}, "user_base64": {"type":
  "string"}, "password": {"type": "string"}, "password_base64": {"type": "string"}},
  "additionalProperties": false},
"NewSession": {"type": "object", "properties": {"token": {"type": "string"}, "role": {"type":
  "string", "enum": ["read", "operate", "admin"]}, "user": {"type": ["string", "null"]},
  "user_base64": {"type": "string"}, "expires": {"type": "integer"}}, "required": ["token",
  "role", "user", "expires"], "additionalProperties": false},
"EndedSession": {"type": "object", "properties": {"ended": {"type": "boolean"}}, "required":
  ["ended"], "additionalProperties": false},
"Tokens": {"type": "object", "properties": {"tokens": {"type": "array", "items": {"type":
  "object", "properties": {"id": {"type": "string"}, "role": {"type": "string", "enum": ["read",
  "operate", "admin"]}, "user": {"type": ["string", "null"]}, "user_base64": {"type": "string"},
  "own": {"type": "boolean"}}, "required": ["id", "role", "user", "own"],
  "additionalProperties": false}}}, "required": ["tokens"], "additionalProperties": false},
"NewToken": {"type": "object", "properties": {"role": {"type": "string", "enum": ["read",
  "operate", "admin"]}, "user": {"type": "string"}, "user_base64": {"type": "string"}},
  "required": ["role"], "additionalProperties": false},
"MadeToken": {"type": "object", "properties": {"id": {"type": "string"}, "role": {"type":
  "string", "enum": ["read", "operate", "admin"]}, "user": {"type": ["string", "null"]},
  "user_base64": {"type": "string"}, "token": {"type": "string"}, "kept": {"type": "boolean"}},
  "required": ["id", "role", "user", "token", "kept"], "additionalProperties": false},
"RemovedToken": {"type": "object", "properties": {"id": {"type": "string"}, "kept": {"type":
  "boolean"}}, "required": ["id", "kept"], "additionalProperties": false},
"Changes": {"type": "object", "properties": {"changes": {"type": "array", "items": {"type":
  "object", "properties": {"at": {"type": "integer"}, "user": {"type": ["string", "null"]},
  "user_base64": {"type": "string"}, "token": {"type": ["string", "null"]}, "db": {"type":
  "integer"}, "words": {"type": "array", "items": {"type": ["string", "object"]}}, "count":
  {"type": "integer"}}, "required": ["at", "user", "token", "db", "words", "count"],
  "additionalProperties": false}}}, "required": ["changes"], "additionalProperties": false},
"Journal": {"type": "object", "properties": {"journal": {"type": "object"}, "checkpoint":
  {"type": "object"}}, "required": ["journal", "checkpoint"], "additionalProperties": false},
"GroupAnswer": {"type": "object", "properties": {"group": {"type": ["object", "null"],
  "properties": {"cluster": {"type": "string"}, "group": {"type": "string"}, "node": {"type":
  "string"}, "role": {"type": "string", "enum": ["starting", "standby", "taking", "primary",
  "resigning"]}, "epoch": {"type": "integer"}, "primary": {"type": ["string", "null"]}, "seq":
  {"type": "integer"}, "lsn": {"type": "integer"}, "lag_ms": {"type": "integer"}, "age_ms":
  {"type": "integer"}, "lease_ms": {"type": "integer"}, "log_frames": {"type": "integer"},
  "log_bytes": {"type": "integer"}, "log_limit_bytes": {"type": "integer"}, "log_kept_by": {"type":
  ["string", "null"]}, "etcd_bytes": {"type": "integer"}, "etcd_quota_bytes": {"type": "integer"},
  "copies": {"type": "integer"}, "paused_ms": {"type": "integer"},
  "takeovers": {"type": "integer"}, "last_takeover_ms": {"type": "integer"}, "waits_for":
  {"type": ["string", "null"]}, "members": {"type": "array", "items": {"$ref":
  "#/components/schemas/GroupMember"}}}, "required": ["cluster", "group", "node", "role", "epoch",
  "primary", "seq", "lsn", "lag_ms", "age_ms", "lease_ms", "log_frames", "log_bytes",
  "log_limit_bytes", "log_kept_by", "etcd_bytes", "etcd_quota_bytes", "copies", "paused_ms",
  "takeovers", "last_takeover_ms", "waits_for", "members"], "additionalProperties": false}},
  "required": ["group"], "additionalProperties": false},
"GroupMember": {"type": "object", "properties": {"name": {"type": "string"}, "run_id": {"type":
  "string"}, "primary": {"type": "boolean"}, "starting": {"type": "boolean"}, "host": {"type":
  "string"}, "port": {"type": "integer"}, "tls_port": {"type": "integer"}, "http_port": {"type":
  "integer"}, "sentinel_port":
  {"type": "integer"}, "priority": {"type": "integer"}, "lsn": {"type": "integer"},
  "checkpoint_lsn": {"type": "integer"}, "checkpoint_bytes": {"type": "integer"}, "version":
  {"type": ["string", "null"]}, "config_differs": {"type": "boolean"}, "users_differ": {"type":
  "boolean"}}, "required": ["name", "run_id", "primary", "starting", "host", "port", "tls_port",
  "http_port", "sentinel_port", "priority", "lsn", "checkpoint_lsn", "checkpoint_bytes", "version",
  "config_differs", "users_differ"], "additionalProperties": false},
"Distribution": {"type": "object", "properties": {"count": {"type": "integer"}, "p50": {"type":
  "integer"}, "p95": {"type": "integer"}, "p99": {"type": "integer"}, "max": {"type":
  "integer"}, "mean": {"type": "number"}}, "required": ["count", "p50", "p95", "p99", "max",
  "mean"], "additionalProperties": false},
"Buckets": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
"Stats": {"type": "object", "properties": {"pending": {"type": "integer"}, "active": {"type":
  "integer"}, "delayed": {"type": "integer"}, "blocked": {"type": "integer"}, "waiting":
  {"type": "integer"}, "waiting_pops": {"type": "integer"}, "slots": {"type": "integer"},
  "max_active": {"type": "integer"}, "utilization": {"type": ["number", "null"]}, "by_priority":
  {"type": "object", "additionalProperties": {"type": "integer"}}, "added": {"type": "integer"},
  "started": {"type": "integer"}, "completed": {"type": "integer"}, "failed": {"type":
  "integer"}, "expired": {"type": "integer"}, "cancelled": {"type": "integer"}, "reclaimed":
  {"type": "integer"}, "rejected": {"type": "object", "additionalProperties": {"type":
  "integer"}}, "wait_ms": {"$ref": "#/components/schemas/Distribution"}, "run_ms": {"$ref":
  "#/components/schemas/Distribution"}, "oldest_ms": {"type": ["integer", "null"]}, "rates":
  {"type": "object", "properties": {"added": {"type": "number"}, "completed": {"type":
  "number"}}, "required": ["added", "completed"], "additionalProperties": false},
  "timer_lag_ms": {"type": "integer"}, "since": {"type": "integer"}, "kept": {"type": "object",
  "additionalProperties": {"type": "integer"}}, "adopted": {"type":
  "object"}}, "required": ["pending", "active", "delayed", "blocked", "waiting", "waiting_pops",
  "slots", "max_active", "utilization", "by_priority", "added", "started", "completed",
  "failed", "expired", "cancelled", "reclaimed", "rejected", "wait_ms", "run_ms", "oldest_ms",
  "rates", "timer_lag_ms", "since"], "additionalProperties": false},
"Queues": {"type": "object", "properties": {"queues": {"type": "array", "items": {"type":
  "object", "properties": {"name": {"type": ["string", "null"]}, "db": {"type": "integer"},
  "stats": {"$ref": "#/components/schemas/Stats"}, "paused": {"type": "string"}, "max_waiting":
  {"type": "integer"}, "max_total": {"type": "integer"}, "name_base64": {"type": "string"}},
  "required": ["name", "db", "stats"], "additionalProperties": false}}, "cursor": {"type":
  ["string", "null"]}, "now": {"type": "integer"}}, "required": ["queues", "cursor", "now"],
  "additionalProperties": false},
"Queue": {"type": "object", "properties": {"name": {"type": ["string", "null"]}, "db": {"type":
  "integer"}, "stats": {"$ref": "#/components/schemas/Stats"}, "config": {"type": ["object",
  "null"]}, "defaults": {"type": ["object", "null"]}, "now": {"type": "integer"}, "name_base64":
  {"type": "string"}}, "required": ["name", "db", "stats", "config", "now"],
  "additionalProperties": false},
"Series": {"type": "array", "items": {"type": ["integer", "null"]}},
"History": {"type": "object", "properties": {"queue": {"type": ["string", "null"]},
  "queue_base64": {"type": "string"}, "range": {"type": "string", "enum": ["hour", "day"]},
  "step_ms": {"type": "integer"}, "start_ms": {"type": "integer"}, "end_ms": {"type": "integer"},
  "reduced": {"type": "boolean"}, "series": {"type": "object", "properties": {"added": {"$ref":
  "#/components/schemas/Series"}, "ended": {"$ref": "#/components/schemas/Series"}, "failed":
  {"$ref": "#/components/schemas/Series"}, "waiting": {"$ref": "#/components/schemas/Series"},
  "active": {"$ref": "#/components/schemas/Series"}, "wait_p50_ms": {"$ref":
  "#/components/schemas/Series"}, "wait_p95_ms": {"$ref": "#/components/schemas/Series"}},
  "required": ["added", "ended", "failed", "waiting", "active", "wait_p50_ms", "wait_p95_ms"],
  "additionalProperties": false}, "bands": {"type": "object", "additionalProperties": {"type":
  "object", "properties": {"waiting": {"$ref": "#/components/schemas/Series"}, "wait_p50_ms":
  {"$ref": "#/components/schemas/Series"}, "wait_p95_ms": {"$ref":
  "#/components/schemas/Series"}}, "required": ["waiting", "wait_p50_ms", "wait_p95_ms"],
  "additionalProperties": false}}}, "required": ["queue", "range", "step_ms", "start_ms",
  "end_ms", "reduced", "series"], "additionalProperties": false},
"Histories": {"type": "object", "properties": {"step_ms": {"type": "integer"}, "start_ms":
  {"type": "integer"}, "queues": {"type": "array", "items": {"type": "object", "properties":
  {"queue": {"type": ["string", "null"]}, "queue_base64": {"type": "string"}, "reduced": {"type":
  "boolean"}, "failed_total": {"type": ["integer", "null"]}, "waiting": {"$ref":
  "#/components/schemas/Series"}, "ended": {"$ref": "#/components/schemas/Series"}, "failed":
  {"$ref": "#/components/schemas/Series"}}, "required": ["queue", "reduced", "failed_total",
  "waiting", "ended", "failed"], "additionalProperties": false}}, "cursor":
  {"type": ["string", "null"]}}, "required": ["step_ms", "start_ms", "queues", "cursor"],
  "additionalProperties": false},
"Config": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
"Trial": {"type": "object", "properties": {"matched": {"type": "integer"}, "slots": {"type":
  "integer"}, "slots_over": {"type": "integer"}, "waiting_over": {"type": "integer"}, "total_over":
  {"type": "integer"}, "dropped": {"type": "integer"}, "events_dropped": {"type": "integer"},
  "complete": {"type": "boolean"}}, "required": ["matched", "slots", "slots_over", "waiting_over",
  "total_over", "dropped", "events_dropped", "complete"], "additionalProperties": false},
"ConfigOrTrial": {"anyOf": [{"$ref": "#/components/schemas/Config"}, {"$ref":
  "#/components/schemas/Trial"}]},
"Rules": {"type": "object", "properties": {"rules": {"type": "array", "items": {"type": "object",
  "properties": {"scope": {"type": "string", "enum": ["group", "key", "worker"]}, "glob": {"type":
  ["string", "null"]}, "glob_base64": {"type": "string"}, "name": {"type": ["string", "null"]},
  "name_base64": {"type": "string"}, "settings": {"$ref": "#/components/schemas/Config"}},
  "required": ["scope", "glob", "name", "settings"], "additionalProperties": false}}, "cursor":
  {"type": ["string", "null"]}}, "required": ["rules", "cursor"], "additionalProperties": false},
"Deleted": {"type": "object", "properties": {"deleted": {"type": "boolean"}, "waiting": {"type":
  "integer"}, "active": {"type": "integer"}}, "required": ["deleted", "waiting", "active"],
  "additionalProperties": false},
"Bands": {"type": "object", "properties": {"bands": {"type": "array", "items": {"type":
  "object", "properties": {"name": {"type": ["string", "null"]}, "pending": {"type": "integer"},
  "active": {"type": "integer"}, "delayed": {"type": "integer"}, "blocked": {"type": "integer"},
  "waiting": {"type": "integer"}, "added": {"type": "integer"}, "started": {"type": "integer"},
  "completed": {"type": "integer"}, "failed": {"type": "integer"}, "expired": {"type":
  "integer"}, "cancelled": {"type": "integer"}, "reclaimed": {"type": "integer"}, "wait_ms":
  {"$ref": "#/components/schemas/Distribution"}, "run_ms": {"$ref":
  "#/components/schemas/Distribution"}, "oldest_ms": {"type": ["integer", "null"]},
  "wait_buckets": {"$ref": "#/components/schemas/Buckets"}, "run_buckets": {"$ref":
  "#/components/schemas/Buckets"}, "name_base64": {"type": "string"}}, "required": ["name",
  "pending", "active", "delayed", "blocked", "waiting", "added", "started", "completed",
  "failed", "expired", "cancelled",
  "reclaimed", "wait_ms", "run_ms", "oldest_ms"], "additionalProperties": false}}}, "required":
  ["bands"], "additionalProperties": false},
"Group": {"type": "object", "properties": {"name": {"type": ["string", "null"]}, "pending":
  {"type": "integer"}, "active": {"type": "integer"}, "delayed": {"type": "integer"}, "blocked":
  {"type": "integer"}, "waiting": {"type": "integer"}, "slots": {"type": "integer"}, "max_active":
  {"type": "integer"}, "utilization": {"type": ["number", "null"]}, "paused": {"type": "string"},
  "name_base64": {"type": "string"}}, "required": ["name", "pending", "active", "delayed",
  "blocked", "waiting", "slots", "max_active", "utilization"], "additionalProperties": false},
"Groups": {"type": "object", "properties": {"groups": {"type": "array", "items": {"$ref":
  "#/components/schemas/Group"}}}, "required": ["groups"], "additionalProperties": false},
"Keys": {"type": "object", "properties": {"keys": {"type": "array", "items": {"type": "object",
  "properties": {"name": {"type": ["string", "null"]}, "slots": {"type": "integer"}, "max_active":
  {"type": "integer"}, "utilization": {"type": ["number", "null"]}, "name_base64": {"type":
  "string"}}, "required": ["name", "slots", "max_active", "utilization"], "additionalProperties":
  false}}}, "required": ["keys"], "additionalProperties": false},
"TagValues": {"type": "object", "properties": {"values": {"type": "array", "items": {"type":
  "object", "properties": {"name": {"type": ["string", "null"]}, "pending": {"type": "integer"},
  "active": {"type": "integer"}, "added": {"type": "integer"}, "started": {"type": "integer"},
  "completed": {"type": "integer"}, "failed": {"type": "integer"}, "expired": {"type":
  "integer"}, "cancelled": {"type": "integer"}, "reclaimed": {"type": "integer"}, "wait_ms":
  {"$ref": "#/components/schemas/Distribution"}, "run_ms": {"$ref":
  "#/components/schemas/Distribution"}, "name_base64": {"type": "string"}}, "required": ["name",
  "pending", "active", "added", "started", "completed", "failed", "expired", "cancelled",
  "reclaimed", "wait_ms", "run_ms"], "additionalProperties": false}}}, "required": ["values"],
  "additionalProperties": false},
"Worker": {"type": "object", "properties": {"name": {"type": ["string", "null"]}, "leases":
  {"type": "array", "items": {"type": "object", "properties": {"id": {"type": ["string", "null"]},
  "lease": {"type": ["integer", "null"]}, "deadline": {"type": ["integer", "null"]}, "started":
  {"type": ["integer", "null"]}, "attempts": {"type": "integer"}, "cancel": {"type": ["string",
  "null"]}, "progress": {"type": ["string", "null"]}, "id_base64": {"type": "string"},
  "cancel_base64": {"type": "string"}, "progress_base64": {"type": "string"}}, "required": ["id",
  "lease", "deadline", "started", "attempts", "cancel", "progress"], "additionalProperties":
  false}}, "active": {"type": "integer"}, "oldest_run_ms": {"type": "integer"}, "waiting_pops":
  {"type": "integer"}, "completed": {"type": "integer"}, "failed": {"type": "integer"}, "seen":
  {"type": ["integer", "null"]}, "quiet": {"type": "boolean"}, "name_base64": {"type": "string"}},
  "required": ["name", "leases"], "additionalProperties": false},
"Workers": {"type": "object", "properties": {"workers": {"type": "array", "items": {"$ref":
  "#/components/schemas/Worker"}}, "cursor": {"type": ["string", "null"]}}, "required":
  ["workers", "cursor"], "additionalProperties": false},
"AllWorkers": {"type": "object", "properties": {"queues": {"type": "array", "items": {"type":
  "object", "properties": {"name": {"type": ["string", "null"]}, "name_base64": {"type":
  "string"}, "workers": {"type": "array", "items": {"$ref": "#/components/schemas/Worker"}},
  "more": {"type": "boolean"}}, "required": ["name", "workers", "more"], "additionalProperties":
  false}}, "cursor": {"type": ["string", "null"]}}, "required": ["queues", "cursor"],
  "additionalProperties": false},
"ServerFacts": {"type": "object", "properties": {"version": {"type": "string"}, "now": {"type":
  "integer"}, "uptime_s": {"type": "integer"}, "io_threads": {"type": "integer"},
  "commands_a_second": {"type": "integer"}, "connections": {"type": "object",
  "properties": {"open": {"type": "integer"}, "most": {"type": "integer"}, "waiting": {"type":
  "integer"}, "rejected": {"type": "integer"}, "http": {"type": "object", "properties": {"open":
  {"type": "integer"}, "most": {"type": "integer"}, "requests": {"type": "integer"}, "rejected":
  {"type": "integer"}}, "required": ["open", "most", "requests", "rejected"],
  "additionalProperties": false}}, "required": ["open", "most", "waiting", "rejected", "http"],
  "additionalProperties": false}, "memory": {"type": "object", "properties": {"used":
  {"type": "integer"}, "resident": {"type": "integer"}, "peak": {"type": "integer"}, "most":
  {"type": "integer"}, "system": {"type": "integer"}}, "required": ["used", "resident", "peak",
  "most", "system"], "additionalProperties": false}, "journal": {"type": ["object", "null"],
  "properties": {"kind": {"type": "string", "enum": ["local", "etcd"]}, "mode": {"type":
  "string"}, "units": {"type": "integer"}, "unwritten_bytes": {"type": "integer"}, "sync_us_p99":
  {"type": "integer"}, "disk_bytes": {"type": "integer"}, "free_disk_bytes": {"type": "integer"},
  "disk_nearly_full": {"type": "boolean"}}, "required": ["kind", "mode", "units",
  "unwritten_bytes", "sync_us_p99", "disk_bytes", "free_disk_bytes", "disk_nearly_full"],
  "additionalProperties": false}, "checkpoint": {"type": ["object", "null"], "properties":
  {"running": {"type": "boolean"}, "completed": {"type": "integer"}, "failed": {"type":
  "integer"}, "bytes": {"type": "integer"}, "last_s": {"type": ["integer", "null"]}}, "required":
  ["running", "completed", "failed", "bytes", "last_s"], "additionalProperties": false}},
  "required": ["version", "now", "uptime_s", "io_threads", "commands_a_second", "connections",
  "memory", "journal", "checkpoint"], "additionalProperties": false},
"Job": {"type": "object", "properties": {"id": {"type": ["string", "null"]}, "state": {"type":
  "string"}, "position": {"type": ["integer", "null"]}, "eta_ms": {"type": ["integer", "null"]},
  "why": {"type": ["string", "null"]}, "pri": {"type": "string"}, "group": {"type": ["string",
  "null"]}, "keys": {"type": "array", "items": {"type": ["string", "object"]}}, "tags": {"type":
  "object", "additionalProperties": {"type": ["string", "null"]}}, "cost": {"type": "integer"},
  "enqueued": {"type": "integer"}, "not_before": {"type": ["integer", "null"]}, "ttl_left_ms":
  {"type": ["integer", "null"]}, "lease_ms": {"type": "integer"}, "max_run_ms": {"type":
  "integer"}, "attempts": {"type": "integer"}, "crashes": {"type": "integer"}, "retries_left":
  {"type": ["integer", "null"]}, "needs": {"type": "array", "items": {"type": ["string",
  "object"]}}, "after": {"type": "array", "items": {"type": ["string", "object"]}},
  "dependents": {"type": "array", "items":
  {"type": ["string", "object"]}}, "dependents_count": {"type": "integer"}, "options":
  {"type": ["object", "null"], "properties": {"boost_ms": {"type": "integer"}, "ttl_ms": {"type":
  "integer"}, "lease_ms": {"type": ["integer", "null"]}, "max_run_ms": {"type": ["integer",
  "null"]}, "retry": {"type": ["integer", "null"]}, "backoff": {"type": ["array", "null"], "items":
  {"type": "integer"}}}, "required": ["boost_ms", "ttl_ms", "lease_ms", "max_run_ms", "retry",
  "backoff"], "additionalProperties": false}, "lease":
  {"type": ["integer", "null"]}, "worker": {"type": ["string", "null"]},
  "deadline": {"type": ["integer", "null"]}, "started": {"type": ["integer", "null"]}, "cancel":
  {"type": ["string", "null"]}, "finished": {"type": ["integer", "null"]}, "run_ms": {"type":
  ["integer", "null"]}, "error": {"type": ["string", "null"]}, "progress": {"type": ["string",
  "null"]}, "successor": {"type": "boolean"}, "payload": {"type": ["string", "null"]}, "result":
  {"type": ["string", "null"]}, "id_base64": {"type": "string"}, "group_base64": {"type":
  "string"}, "worker_base64": {"type": "string"}, "cancel_base64": {"type": "string"},
  "error_base64": {"type": "string"}, "progress_base64": {"type": "string"}, "payload_base64":
  {"type": "string"}, "result_base64": {"type": "string"}}, "required": ["id", "state",
  "position", "eta_ms", "why", "pri", "group", "keys", "tags", "cost", "enqueued", "not_before",
  "ttl_left_ms", "lease_ms", "max_run_ms", "attempts", "crashes", "retries_left", "needs",
  "lease", "worker", "deadline", "started", "cancel", "finished", "run_ms", "error", "progress",
  "successor"], "additionalProperties": false},
"Jobs": {"type": "object", "properties": {"jobs": {"type": "array", "items": {"$ref":
  "#/components/schemas/Job"}}, "cursor": {"type": ["string", "null"]}, "looked_at": {"type":
  "integer"}}, "required": ["jobs", "cursor"], "additionalProperties": false},
"Found": {"type": "object", "properties": {"queues": {"type": "array", "items": {"type": "object",
  "properties": {"queue": {"type": ["string", "null"]}, "queue_base64": {"type": "string"},
  "waiting": {"type": "integer"}, "active": {"type": "integer"}, "failed": {"type": "integer"}},
  "required": ["queue", "waiting", "active", "failed"], "additionalProperties": false}}, "groups":
  {"type": "array", "items": {"type": "object", "properties": {"queue": {"type": ["string",
  "null"]}, "queue_base64": {"type": "string"}, "group": {"type": ["string", "null"]},
  "group_base64": {"type": "string"}, "waiting": {"type": "integer"}, "active": {"type":
  "integer"}}, "required": ["queue", "group", "waiting", "active"], "additionalProperties":
  false}}, "jobs": {"type": "array", "items": {"type": "object", "properties": {"queue": {"type":
  ["string", "null"]}, "queue_base64": {"type": "string"}, "id": {"type": ["string", "null"]},
  "id_base64": {"type": "string"}, "state": {"type": "string"}}, "required": ["queue", "id",
  "state"], "additionalProperties": false}}, "tags": {"type": "array", "items": {"type": "object",
  "properties": {"queue": {"type": ["string", "null"]}, "queue_base64": {"type": "string"}, "tag":
  {"type": ["string", "null"]}, "tag_base64": {"type": "string"}, "count": {"type": "integer"},
  "added": {"type": "integer"}}, "required": ["queue", "tag", "count", "added"],
  "additionalProperties": false}}, "looked_at": {"type": "integer"}, "complete": {"type":
  "boolean"}}, "required": ["queues", "groups", "jobs", "tags", "looked_at", "complete"],
  "additionalProperties": false},
"Failures": {"type": "object", "properties": {"looked_at": {"type": "integer"}, "groups": {"type":
  "array", "items": {"type": "object", "properties": {"pattern": {"type": ["string", "null"]},
  "pattern_base64": {"type": "string"}, "count": {"type": "integer"}, "first_ms": {"type":
  "integer"}, "last_ms": {"type": "integer"}, "example": {"type": "object", "properties": {"id":
  {"type": ["string", "null"]}, "id_base64": {"type": "string"}, "error": {"type": ["string",
  "null"]}, "error_base64": {"type": "string"}}, "required": ["id", "error"],
  "additionalProperties": false}}, "required": ["pattern", "count", "first_ms", "last_ms",
  "example"], "additionalProperties": false}}, "others": {"type": "integer"}, "cursor": {"type":
  ["string", "null"]}}, "required": ["looked_at", "groups", "others", "cursor"],
  "additionalProperties": false},
"NewJob": {"type": "object", "properties": {"id": {"type": "string"}, "payload": {"type":
  "string"}, "pri": {"type": ["string", "integer"]}, "boost_ms": {"type": ["integer", "string"]},
  "delay_ms": {"type": ["integer", "string"]}, "at": {"type": "integer"}, "group": {"type":
  "string"}, "keys": {"type": "array", "items": {"type": ["string", "object"]}}, "cost": {"type":
  "integer"}, "ttl_ms": {"type": ["integer", "string"]}, "lease_ms": {"type": ["integer",
  "string"]}, "max_run_ms": {"type": ["integer", "string"]}, "retry": {"type": "integer"},
  "backoff": {"type": "array", "items": {"type": ["integer", "string"]}}, "ifdup": {"type":
  "string"}, "needs": {"type": "array", "items": {"type": ["string", "object"]}}, "after":
  {"type": "array", "items": {"type": ["string", "object"]}}, "tags": {"type": "object",
  "additionalProperties": {"type": ["string", "object"]}}, "max_wait_ms": {"type": ["integer",
  "string"]}, "wait_ms": {"type": ["integer", "string"]}, "id_base64": {"type": "string"},
  "payload_base64": {"type": "string"}, "group_base64": {"type": "string"}}, "required": [],
  "additionalProperties": false},
"Added": {"type": "object", "properties": {"id": {"type": ["string", "null"]}, "result": {"type":
  "string", "enum": ["added", "kept", "updated", "replaced", "queued"]}, "state": {"type":
  "string"}, "position": {"type": ["integer", "null"]}, "eta_ms": {"type": ["integer", "null"]},
  "id_base64": {"type": "string"}, "job": {"oneOf": [{"$ref": "#/components/schemas/Job"},
  {"type": "null"}]}}, "required": ["id", "result", "state", "position", "eta_ms"],
  "additionalProperties": false},
"NewJobOrJobs": {"oneOf": [{"$ref": "#/components/schemas/NewJob"}, {"type": "array", "items":
  {"$ref": "#/components/schemas/NewJob"}}]},
"AddedJobs": {"type": "object", "properties": {"jobs": {"type": "array", "items": {"type":
  "object", "properties": {"status": {"type": "integer"}, "id": {"type": ["string", "null"]},
  "result": {"type": "string", "enum": ["added", "kept", "updated", "replaced", "queued"]},
  "state": {"type": "string"}, "position": {"type": ["integer", "null"]}, "eta_ms": {"type":
  ["integer", "null"]}, "id_base64": {"type": "string"}, "error": {"$ref":
  "#/components/schemas/Problem"}}, "required": ["status"], "additionalProperties": false}}},
  "required": ["jobs"], "additionalProperties": false},
"AddedOrJobs": {"oneOf": [{"$ref": "#/components/schemas/Added"}, {"$ref":
  "#/components/schemas/AddedJobs"}]},
"Move": {"type": "object", "properties": {"pri": {"type": ["string", "integer"]}, "place":
  {"type": "string", "enum": ["front", "back"]}, "boost_ms": {"type": ["integer", "string"]},
  "delay_ms": {"type": ["integer", "string"]}, "at": {"type": "integer"}, "was": {"$ref":
  "#/components/schemas/Was"}}, "required": [], "additionalProperties": false},
"Cancel": {"type": "object", "properties": {"reason": {"type": "string"}, "grace_ms": {"type":
  ["integer", "string"]}, "reason_base64": {"type": "string"}, "was": {"$ref":
  "#/components/schemas/Was"}}, "required": [], "additionalProperties": false},
"Cancelled": {"type": "object", "properties": {"result": {"type": "string", "enum":
  ["cancelled", "signalled"]}, "was": {"type": "string"}, "end": {"type": "integer"}},
  "required": ["result"], "additionalProperties": false},
"Condition": {"type": "object", "properties": {"was": {"$ref": "#/components/schemas/Was"}},
  "required": [], "additionalProperties": false},
"Was": {"type": "object", "additionalProperties": {"type": ["string", "integer", "object"]}},
"State": {"type": "object", "properties": {"state": {"type": "string"}}, "required": ["state"],
  "additionalProperties": false},
"Selector": {"type": "object", "properties": {"state": {"type": "array", "items": {"type":
  "string"}}, "group": {"type": "string"}, "group_glob": {"type": "string"}, "pri": {"type":
  ["string", "integer"]}, "tag": {"type": "object", "additionalProperties": {"type": "string"}},
  "key": {"type": "string"}, "worker": {"type": "string"}, "older_ms": {"type": ["integer",
  "string"]}, "since_ms": {"type": "integer"}, "until_ms": {"type": "integer"}, "id_part": {"type":
  "string"}, "id_part_base64": {"type": "string"}, "error": {"type": "string"}, "error_base64":
  {"type": "string"}, "error_pattern": {"type": "string"}, "error_pattern_base64": {"type":
  "string"}, "payload_part": {"type": "string"}, "payload_part_base64": {"type": "string"}, "all":
  {"type": "boolean"}, "limit": {"type": "integer"}, "group_base64": {"type": "string"},
  "group_glob_base64": {"type": "string"}, "key_base64": {"type": "string"}, "worker_base64":
  {"type": "string"}}, "required": [], "additionalProperties": false},
"Many": {"type": "object", "properties": {"where": {"$ref": "#/components/schemas/Selector"},
  "cursor": {"type": "string"}, "dry_run": {"type": "boolean"}}, "required": ["where"],
  "additionalProperties": false},
"CancelMany": {"type": "object", "properties": {"where": {"$ref":
  "#/components/schemas/Selector"}, "cursor": {"type": "string"}, "dry_run": {"type": "boolean"},
  "reason": {"type": "string"}, "grace_ms": {"type": ["integer", "string"]}, "reason_base64":
  {"type": "string"}}, "required": ["where"], "additionalProperties": false},
"Ids": {"type": "object", "properties": {"ids": {"type": "array", "items": {"type": ["string",
  "object"]}}, "was": {"type": "array", "items": {"$ref": "#/components/schemas/Was"}}},
  "required": ["ids"], "additionalProperties": false},
"CancelIds": {"type": "object", "properties": {"ids": {"type": "array", "items": {"type":
  ["string", "object"]}}, "was": {"type": "array", "items": {"$ref": "#/components/schemas/Was"}},
  "reason": {"type": "string"}, "grace_ms": {"type": ["integer", "string"]}, "reason_base64":
  {"type": "string"}}, "required": ["ids"], "additionalProperties": false},
"ManyOrIds": {"oneOf": [{"$ref": "#/components/schemas/Many"}, {"$ref":
  "#/components/schemas/Ids"}]},
"CancelManyOrIds": {"oneOf": [{"$ref": "#/components/schemas/CancelMany"}, {"$ref":
  "#/components/schemas/CancelIds"}]},
"Outcomes": {"type": "object", "properties": {"jobs": {"type": "array", "items": {"type":
  "object", "properties": {"id": {"type": ["string", "null"]}, "id_base64": {"type": "string"},
  "status": {"type": "integer"}, "state": {"type": "string"}, "result": {"type": "string", "enum":
  ["cancelled", "signalled", "purged"]}, "was": {"type": "string"}, "end": {"type": "integer"},
  "error": {"$ref": "#/components/schemas/Problem"}}, "required": ["id", "status"],
  "additionalProperties": false}}}, "required": ["jobs"], "additionalProperties": false},
"CountOrOutcomes": {"oneOf": [{"$ref": "#/components/schemas/Count"}, {"$ref":
  "#/components/schemas/Outcomes"}]},
"Count": {"type": "object", "properties": {"count": {"type": "integer"}, "cursor": {"type":
  ["string", "null"]}, "dry_run": {"type": "boolean"}}, "required": ["count", "cursor",
  "dry_run"], "additionalProperties": false},
"Pop": {"type": "object", "properties": {"more_queues": {"type": "array", "items": {"type":
  ["string", "object"]}}, "worker": {"type": "string"}, "count": {"type": "integer"},
  "lease_ms": {"type": ["integer", "string"]}, "cap": {"type": "integer"}, "id":
  {"type": "string"}, "match": {"type": "array", "items": {"type": ["string", "object"]}},
  "reqid": {"type": "string"}, "with": {"type": "array", "items": {"type": "string", "enum":
  ["tags", "progress", "error", "group", "need_results"]}}, "wait_ms": {"type": ["integer",
  "string"]}, "worker_base64": {"type": "string"}, "id_base64": {"type": "string"},
  "reqid_base64": {"type": "string"}}, "required": [], "additionalProperties": false},
"Popped": {"type": "object", "properties": {"jobs": {"type": "array", "items": {"type": "object",
  "properties": {"queue": {"type": ["string", "null"]}, "id": {"type": ["string", "null"]},
  "lease": {"type": "integer"}, "deadline": {"type": "integer"}, "attempt": {"type": "integer"},
  "crashes": {"type": "integer"}, "pri": {"type": "string"}, "group": {"type": ["string",
  "null"]}, "keys": {"type": "array", "items": {"type": ["string", "object"]}}, "tags": {"type":
  "object", "additionalProperties": {"type": ["string", "null"]}}, "cost": {"type": "integer"},
  "enqueued": {"type": "integer"}, "max_run_ms": {"type": "integer"}, "progress": {"type":
  ["string", "null"]}, "payload": {"type": ["string", "null"]}, "error": {"type": ["string",
  "null"]}, "error_base64": {"type": "string"}, "need_results": {"type": "object",
  "additionalProperties": {"type": ["string", "null"]}}, "truncated": {"type": "boolean"},
  "queue_base64": {"type": "string"}, "id_base64": {"type": "string"}, "group_base64": {"type":
  "string"}, "progress_base64": {"type": "string"}, "payload_base64": {"type": "string"}},
  "required": ["queue", "id", "lease", "deadline", "attempt", "crashes", "pri", "group", "keys",
  "tags", "cost", "enqueued", "max_run_ms", "progress", "payload"], "additionalProperties":
  false}}}, "required": ["jobs"], "additionalProperties": false},
"Ack": {"type": "object", "properties": {"lease": {"type": ["integer", "string"]}, "result":
  {"type": "string"}, "result_base64": {"type": "string"}}, "required": ["lease"],
  "additionalProperties": false},
"Nack": {"type": "object", "properties": {"lease": {"type": ["integer", "string"]}, "mode":
  {"type": "string", "enum": ["fail", "fatal", "silent"]}, "delay_ms": {"type": ["integer",
  "string"]}, "error": {"type": "string"}, "error_base64": {"type": "string"}}, "required":
  ["lease"], "additionalProperties": false},
"AckJobs": {"type": "object", "properties": {"jobs": {"type": "array", "items": {"type": "object",
  "properties": {"id": {"type": "string"}, "id_base64": {"type": "string"}, "lease": {"type":
  ["integer", "string"]}, "result": {"type": "string"}, "result_base64": {"type": "string"}},
  "required": ["lease"], "additionalProperties": false}}}, "required": ["jobs"],
  "additionalProperties": false},
"NackJobs": {"type": "object", "properties": {"jobs": {"type": "array", "items": {"type":
  "object", "properties": {"id": {"type": "string"}, "id_base64": {"type": "string"}, "lease":
  {"type": ["integer", "string"]}, "mode": {"type": "string", "enum": ["fail", "fatal",
  "silent"]}, "delay_ms": {"type": ["integer", "string"]}, "error": {"type": "string"},
  "error_base64": {"type": "string"}}, "required": ["lease"], "additionalProperties": false}}},
  "required": ["jobs"], "additionalProperties": false},
"TouchJobs": {"type": "object", "properties": {"jobs": {"type": "array", "items": {"type":
  "object", "properties": {"id": {"type": "string"}, "id_base64": {"type": "string"}, "lease":
  {"type": ["integer", "string"]}, "lease_ms": {"type": ["integer", "string"]}, "progress":
  {"type": "string"}, "progress_base64": {"type": "string"}, "log": {"type": "string"},
  "log_base64": {"type": "string"}, "worker": {"type": "string"}, "worker_base64": {"type":
  "string"}}, "required": ["lease"], "additionalProperties": false}}}, "required": ["jobs"],
  "additionalProperties": false},
"RunOutcomes": {"type": "object", "properties": {"jobs": {"type": "array", "items": {"type":
  "object", "properties": {"id": {"type": ["string", "null"]}, "id_base64": {"type": "string"},
  "status": {"type": "integer"}, "state": {"type": "string"}, "not_before": {"type": ["integer",
  "null"]}, "attempts_left": {"type": "integer"}, "left_ms": {"type": "integer"}, "cancel":
  {"type": ["string", "null"]}, "cancel_base64": {"type": "string"}, "quiet": {"type":
  "boolean"}, "error": {"$ref": "#/components/schemas/Problem"}}, "required": ["status"],
  "additionalProperties": false}}}, "required": ["jobs"], "additionalProperties": false},
"NackManyOrJobs": {"oneOf": [{"$ref": "#/components/schemas/NackMany"}, {"$ref":
  "#/components/schemas/NackJobs"}]},
"CountOrRunOutcomes": {"oneOf": [{"$ref": "#/components/schemas/Count"}, {"$ref":
  "#/components/schemas/RunOutcomes"}]},
"NackMany": {"type": "object", "properties": {"where": {"type": "object", "properties": {"worker":
  {"type": "string"}, "worker_base64": {"type": "string"}}, "required": [], "additionalProperties":
  false}, "cursor": {"type": "string"}, "dry_run": {"type": "boolean"}, "mode": {"type": "string",
  "enum": ["lost", "silent", "fail"]}, "error": {"type": "string"}, "error_base64": {"type":
  "string"}}, "required": ["where"], "additionalProperties": false},
"Nacked": {"type": "object", "properties": {"state": {"type": "string"}, "not_before": {"type":
  ["integer", "null"]}, "attempts_left": {"type": "integer"}}, "required": ["state",
  "not_before", "attempts_left"], "additionalProperties": false},
"Touch": {"type": "object", "properties": {"lease": {"type": ["integer", "string"]}, "lease_ms":
  {"type": ["integer", "string"]}, "progress": {"type": "string"}, "progress_base64": {"type":
  "string"}, "log": {"type": "string"}, "log_base64": {"type": "string"}, "worker": {"type":
  "string"}, "worker_base64": {"type": "string"}}, "required": ["lease"],
  "additionalProperties": false},
"Touched": {"type": "object", "properties": {"left_ms": {"type": "integer"}, "cancel": {"type":
  ["string", "null"]}, "cancel_base64": {"type": "string"}, "quiet": {"type": "boolean"}},
  "required": ["left_ms", "cancel"], "additionalProperties": false},
"Log": {"type": "object", "properties": {"offset": {"type": "integer"}, "next": {"type":
  "integer"}, "text": {"type": ["string", "null"]}, "text_base64": {"type": "string"}, "ended":
  {"type": "boolean"}}, "required": ["offset", "next", "text", "ended"], "additionalProperties":
  false},
"Events": {"type": "object", "properties": {"events": {"type": "array", "items": {"type":
  "object", "properties": {"seq": {"type": "integer"}, "time": {"type": "integer"}, "type":
  {"type": "string"}, "id": {"type": ["string", "null"]}, "fields": {"type": "object"},
  "id_base64": {"type": "string"}}, "required": ["seq", "time", "type", "id", "fields"],
  "additionalProperties": false}}, "next": {"type": "string"}}, "required": ["events", "next"],
  "additionalProperties": false},
"Metrics": {"type": "string"},
"Copy": {"type": "string"},
"Stream": {"type": "string"},
"Description": {"type": "object", "properties": {"openapi": {"type": "string"}, "info": {"type":
  "object"}, "security": {"type": "array", "items": {"type": "object"}}, "paths": {"type":
  "object"}, "components": {"type": "object"}}, "required": ["openapi", "info", "security",
  "paths", "components"], "additionalProperties": false},
"Execution": {"type": "object", "properties": {"execution_id": {"type": ["string", "object"]},
  "status": {"type": "string", "enum": ["queued", "running", "completed", "failed", "cancelled",
  "timeout"]}, "script": {}, "lang": {}, "lang_version": {}, "stdout": {}, "stderr": {},
  "exit_code": {}, "error_type": {}, "user_id": {}, "priority": {"type": "string"},
  "created_at": {"type": ["string", "null"]}, "updated_at": {"type": ["string", "null"]}},
  "required": ["execution_id", "status", "script", "lang", "lang_version", "stdout", "stderr",
  "exit_code", "error_type", "user_id", "priority", "created_at", "updated_at"],
  "additionalProperties": false},
"Executions": {"type": "object", "properties": {"executions": {"type": "array", "items":
  {"$ref": "#/components/schemas/Execution"}}, "total": {"type": "integer"}, "limit": {"type":
  "integer"}, "skip": {"type": "integer"}, "has_more": {"type": "boolean"}}, "required":
  ["executions", "total", "limit", "skip", "has_more"], "additionalProperties": false},
"ExecutionsQueue": {"type": "object", "properties": {"queue_depth": {"type": "integer"},
  "active_count": {"type": "integer"}, "max_concurrent": {"type": "integer"}, "by_priority":
  {"type": "object", "additionalProperties": {"type": "integer"}}}, "required": ["queue_depth",
  "active_count", "max_concurrent", "by_priority"], "additionalProperties": false},
"Priority": {"type": "object", "properties": {"priority": {"type": "string"}}, "required":
  ["priority"], "additionalProperties": false},
"QueueStats": {"type": "object", "properties": {"queue": {"type": "object", "properties":
  {"queued": {"type": "integer"}, "active": {"type": "integer"}, "maxConcurrent": {"type":
  "integer"}, "completedTasks": {"type": "integer"}, "failedTasks": {"type": "integer"},
  "averageTaskTime": {"type": "integer"}, "queuedByLanguage": {"type": "object",
  "additionalProperties": {"type": "integer"}}, "queueUtilization": {"type": "integer"}},
  "required": ["queued", "active", "maxConcurrent", "completedTasks", "failedTasks",
  "averageTaskTime", "queuedByLanguage", "queueUtilization"], "additionalProperties": false},
  "timestamp": {"type": "string"}}, "required": ["queue", "timestamp"], "additionalProperties":
  false},
"GradingJob": {"type": "object", "properties": {"key": {"type": "string"}, "collation": {"type":
  "object", "properties": {"type": {"type": "string", "enum": ["user", "team"]}, "id": {"type":
  ["string", "integer"]}}, "required": ["type", "id"]}, "priority": {"type": "integer"}},
  "required": ["key", "collation"]},
"GradingMove": {"type": "object", "properties": {"jobKey": {"type": "string"}, "moveAction":
  {"type": "string", "enum": ["release", "delay"]}, "jobKey_base64": {"type": "string"}},
  "required": ["jobKey", "moveAction"]},
"Position": {"type": "object", "properties": {"position": {"type": "integer"}}, "required":
  ["position"], "additionalProperties": false},
"GradingQueue": {"type": "object", "properties": {"jobs": {"type": "array", "items": {"type":
  "object", "properties": {"key": {"type": ["string", "null"]}, "position": {"type": ["integer",
  "null"]}, "status": {"type": "string"}},
  "required": ["key", "position", "status"]}}, "cursor": {"type": ["string", "null"]}},
  "required": ["jobs", "cursor"], "additionalProperties": false},
"GradingStatus": {"type": "object", "properties": {"status": {"type": "string"}}, "required":
  ["status"], "additionalProperties": false}
})json";

}  // namespace sluice
