// Redis's directives that have no effect here: replication, cluster, eviction, RDB and AOF files,
// process tricks. Their values are checked as in Redis, kept, and echoed by CONFIG GET, so that an
// existing redis.conf loads and programs that set them keep working. Names, defaults and ranges are
// those of redis-server 7.0.15.
#include "net/config/config_special.h"
#include "net/config/config_table.h"

namespace sluice {
namespace {

Directive ignored(const char* name, const char* default_value, ValueType type,
                  const char* alias = "") {
  return {.name = name,
          .alias = alias,
          .kind = DirectiveKind::kIgnored,
          .type = type,
          .default_value = default_value};
}

Directive flag(const char* name, const char* default_value, const char* alias = "") {
  return ignored(name, default_value, ValueType::kBool, alias);
}

Directive text(const char* name, const char* default_value, const char* alias = "") {
  return ignored(name, default_value, ValueType::kText, alias);
}

Directive number(const char* name, const char* default_value, int64_t low, uint64_t high,
                 const char* alias = "") {
  Directive row = ignored(name, default_value, ValueType::kInteger, alias);
  row.low = low;
  row.high = high;
  return row;
}

Directive memory(const char* name, const char* default_value, int64_t low, uint64_t high) {
  Directive row = ignored(name, default_value, ValueType::kMemory);
  row.low = low;
  row.high = high;
  return row;
}

Directive memory_or_percent(const char* name, const char* default_value) {
  Directive row = ignored(name, default_value, ValueType::kMemoryOrPercent);
  row.high = UINT64_MAX;
  return row;
}

Directive choice(const char* name, const char* default_value, const char* choices) {
  Directive row = ignored(name, default_value, ValueType::kChoice);
  row.choices = choices;
  return row;
}

Directive special(const char* name, const char* default_value, SpecialParser parse) {
  Directive row = ignored(name, default_value, ValueType::kText);
  row.multiple = true;
  row.parse = parse;
  row.expected = "a value as in redis.conf";
  return row;
}

// A special directive with one argument.
Directive checked(const char* name, const char* default_value, SpecialParser parse) {
  Directive row = special(name, default_value, parse);
  row.multiple = false;
  return row;
}

Directive immutable(Directive row) {
  row.change = ChangeRule::kImmutable;
  return row;
}

// For directives where ignoring another value would mislead an operator.
Directive only(Directive row, const char* value, const char* because) {
  row.only = value;
  row.only_because = because;
  return row;
}

std::vector<Directive> first_rows() {
  return {
      number("active-defrag-cycle-max", "25", 1, 99),
      number("active-defrag-cycle-min", "1", 1, 99),
      memory("active-defrag-ignore-bytes", "104857600", 1, kMaxLong),
      number("active-defrag-max-scan-fields", "1000", 1, kMaxLong),
      number("active-defrag-threshold-lower", "10", 0, 1000),
      number("active-defrag-threshold-upper", "100", 0, 1000),
      number("active-expire-effort", "1", 1, 10),
      checked("activedefrag", "no", config_special::parse_activedefrag),
      flag("activerehashing", "yes"),
      immutable(flag("always-show-logo", "no")),
      flag("aof-disable-auto-gc", "no"),
      flag("aof-load-truncated", "yes"),
      flag("aof-rewrite-incremental-fsync", "yes"),
      flag("aof-timestamp-enabled", "no"),
      flag("aof-use-rdb-preamble", "yes"),
      immutable(text("aof_rewrite_cpulist", "")),
      immutable(text("appenddirname", "appendonlydir")),
      immutable(text("appendfilename", "appendonly.aof")),
      memory("auto-aof-rewrite-min-size", "67108864", 0, kMaxLong),
      number("auto-aof-rewrite-percentage", "100", 0, kMaxInt),
      immutable(text("bgsave_cpulist", "")),
      text("bind-source-addr", ""),
      immutable(text("bio_cpulist", "")),
      flag("cluster-allow-pubsubshard-when-down", "yes"),
      flag("cluster-allow-reads-when-down", "no"),
      flag("cluster-allow-replica-migration", "yes"),
      number("cluster-announce-bus-port", "0", 0, 65535),
      checked("cluster-announce-hostname", "", config_special::parse_hostname),
      text("cluster-announce-ip", ""),
      number("cluster-announce-port", "0", 0, 65535),
      number("cluster-announce-tls-port", "0", 0, 65535),
      immutable(text("cluster-config-file", "nodes.conf")),
      only(immutable(flag("cluster-enabled", "no")), "no", "cluster mode is not supported"),
      memory("cluster-link-sendbuf-limit", "0", 0, UINT64_MAX),
      number("cluster-migration-barrier", "1", 0, kMaxInt),
      number("cluster-node-timeout", "15000", 0, kMaxLong),
      immutable(number("cluster-port", "0", 0, 65535)),
      choice("cluster-preferred-endpoint-type", "ip", "ip, hostname, unknown-endpoint"),
      flag("cluster-replica-no-failover", "no", "cluster-slave-no-failover"),
      number("cluster-replica-validity-factor", "10", 0, kMaxInt, "cluster-slave-validity-factor"),
      flag("cluster-require-full-coverage", "yes"),
      flag("crash-log-enabled", "yes"),
      flag("crash-memcheck-enabled", "yes"),
      checked("dbfilename", "dump.rdb", config_special::parse_dbfilename),
      immutable(flag("disable-thp", "yes")),
      flag("dynamic-hz", "yes"),
      immutable(choice("enable-module-command", "no", "no, yes, local")),
      immutable(choice("enable-protected-configs", "no", "no, yes, local")),
      checked("hz", "10", config_special::parse_hz),
      text("ignore-warnings", ""),
      immutable(flag("io-threads-do-reads", "no")),
      flag("jemalloc-bg-thread", "yes"),
      flag("lazyfree-lazy-eviction", "no"),
      flag("lazyfree-lazy-expire", "no"),
      flag("lazyfree-lazy-server-del", "no"),
      flag("lazyfree-lazy-user-del", "no"),
  };
}

std::vector<Directive> last_rows() {
  return {
      flag("lazyfree-lazy-user-flush", "no"),
      number("lfu-decay-time", "1", 0, kMaxInt),
      number("lfu-log-factor", "10", 0, kMaxInt),
      number("list-compress-depth", "0", 0, kMaxInt),
      secret(text("masterauth", "")),
      secret(text("masteruser", "")),
      only(memory_or_percent("maxmemory-clients", "0"), "0",
           "clients are not evicted by their total memory; client-output-buffer-limit and "
           "client-query-buffer-limit limit each client"),
      number("maxmemory-eviction-tenacity", "10", 0, 100),
      number("maxmemory-samples", "5", 1, kMaxInt),
      number("min-replicas-max-lag", "10", 0, kMaxInt, "min-slaves-max-lag"),
      only(number("min-replicas-to-write", "0", 0, kMaxInt, "min-slaves-to-write"), "0",
           "acknowledgements wait for the journal, not for standbys"),
      flag("no-appendfsync-on-rewrite", "no"),
      choice("oom-score-adj", "no", "no, yes, relative, absolute"),
      special("oom-score-adj-values", "0 200 800", config_special::parse_oom_scores),
      checked("proc-title-template", "{title} {listen-addr} {server-mode}",
              config_special::parse_title_template),
      choice("propagation-error-behavior", "ignore", "ignore, panic, panic-on-replicas"),
      flag("rdb-del-sync-files", "no"),
      flag("rdb-save-incremental-fsync", "yes"),
      immutable(flag("rdbchecksum", "yes")),
      flag("rdbcompression", "yes"),
      checked("repl-backlog-size", "1048576", config_special::parse_backlog_size),
      number("repl-backlog-ttl", "3600", 0, kMaxLong),
      flag("repl-disable-tcp-nodelay", "no"),
      choice("repl-diskless-load", "disabled", "disabled, on-empty-db, swapdb"),
      flag("repl-diskless-sync", "yes"),
      number("repl-diskless-sync-delay", "5", 0, kMaxInt),
      number("repl-diskless-sync-max-replicas", "0", 0, kMaxInt),
      number("repl-ping-replica-period", "10", 1, kMaxInt, "repl-ping-slave-period"),
      number("repl-timeout", "60", 1, kMaxInt),
      flag("replica-announced", "yes"),
      flag("replica-ignore-disk-write-errors", "no"),
      flag("replica-ignore-maxmemory", "yes", "slave-ignore-maxmemory"),
      flag("replica-lazy-flush", "no", "slave-lazy-flush"),
      flag("replica-read-only", "yes", "slave-read-only"),
      choice("sanitize-dump-payload", "no", "no, yes, clients"),
      immutable(text("server_cpulist", "")),
      immutable(flag("set-proc-title", "yes")),
      special("shutdown-on-sigint", "default", config_special::parse_shutdown_options),
      special("shutdown-on-sigterm", "default", config_special::parse_shutdown_options),
      number("shutdown-timeout", "10", 0, kMaxInt),
      immutable(number("socket-mark-id", "0", 0, UINT32_MAX)),
      flag("stop-writes-on-bgsave-error", "yes"),
      immutable(flag("syslog-enabled", "no")),
      immutable(choice("syslog-facility", "local0",
                       "user, local0, local1, local2, local3, local4, local5, local6, local7")),
      immutable(text("syslog-ident", "redis")),
      text("tls-client-cert-file", ""),
      text("tls-client-key-file", ""),
      secret(text("tls-client-key-file-pass", "")),
      checked("tls-cluster", "no", config_special::parse_peer_tls),
      checked("tls-replication", "no", config_special::parse_peer_tls),
  };
}

}  // namespace

std::vector<Directive> ignored_directives() {
  std::vector<Directive> all;
  for (const auto part : {first_rows, last_rows}) {
    for (Directive& row : part()) all.push_back(row);
  }
  return all;
}

}  // namespace sluice
