// The server's settings as typed values, from the directives of sluice.conf and CONFIG SET.
//
// Threads: a Settings is built under the Config's lock and then published as shared_ptr<const>, so
// its holder reads it without a lock and never sees half of a change. Units are in the names.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "net/config/endpoint.h"
#include "net/config/token_setting.h"

namespace sluice {

// Each enumeration is in the order of the directive's choices in net/config/config_table.cc.
enum class AppendFsync : uint8_t { kEverysec, kAlways, kNo };
enum class LogVerbosity : uint8_t { kDebug, kVerbose, kNotice, kWarning, kNothing };
enum class Supervised : uint8_t { kSystemd, kAuto, kNo };
enum class DebugCommand : uint8_t { kNo, kYes, kLocal };
enum class AclPubsubDefault : uint8_t { kAllChannels, kResetChannels };
enum class JournalKind : uint8_t { kLocal, kEtcd };
enum class TlsAuthClients : uint8_t { kNo, kYes, kOptional };

struct SaveSetting {
  int64_t seconds = 0;
  int64_t changes = 0;
};

// Zero means no limit.
struct OutputBufferLimit {
  uint64_t hard_bytes = 0;
  uint64_t soft_bytes = 0;
  int64_t soft_seconds = 0;
};
// The classes of clients that have limits of their output, in the order in which CONFIG GET prints
// them.
enum ClientClass : uint8_t { kNormalClient, kReplicaClient, kPubsubClient, kClientClasses };

// The queues served by the endpoints of older systems (net/admin/).
struct HttpAliases {
  std::string executions;  // /api/v1/admin/executions/
  std::string stats;       // /api/queue-stats
  std::string grading;     // /api/v1/grading_queue
};

// A collector to which metrics are sent by OTLP over HTTP.
struct OtlpSettings {
  std::optional<HttpEndpoint> endpoint;  // Nothing = none.
  // Sent with each export; may contain a secret.
  std::vector<std::pair<std::string, std::string>> headers;
};

struct Settings {
  static constexpr int64_t kPortAuto = -1;  // Any free port.

  // Network.
  std::vector<std::string> bind;       // A leading '-': skipped when the machine lacks the address.
  int64_t port = 0;                    // 0 = no TCP.
  int64_t http_port = 0;               // 0 = no HTTP.
  std::vector<std::string> http_bind;  // As bind.
  std::vector<std::string> http_hosts;  // Names in Host headers besides this machine's own.
  std::vector<TokenSetting> http_tokens;
  int64_t http_maxclients = 0;
  uint64_t http_max_body_bytes = 0;
  int64_t http_timeout_s = 0;
  int64_t http_session_s = 0;
  int64_t http_metrics_queues = 0;
  uint64_t history_memory_bytes = 0;  // 0 = none is kept.
  HttpAliases http_aliases;
  std::string unixsocket;      // Empty = none.
  int64_t unixsocketperm = 0;  // 0 = from the umask.
  bool protected_mode = true;
  int64_t tcp_backlog = 0;
  int64_t tcp_keepalive_s = 0;
  int64_t timeout_s = 0;  // 0 = never.
  int64_t maxclients = 0;
  int64_t io_threads = 1;
  std::string ready_file;

  // TLS. Files are paths as configured; empty = none. net/tls/tls_context.h reads them.
  int64_t tls_port = 0;       // 0 = no TLS.
  int64_t http_tls_port = 0;  // 0 = no HTTPS.
  std::string tls_cert_file;
  std::string tls_key_file;
  std::string tls_key_file_pass;
  std::string tls_ca_cert_file;
  std::string tls_ca_cert_dir;
  TlsAuthClients tls_auth_clients = TlsAuthClients::kYes;
  TlsAuthClients http_tls_auth_clients = TlsAuthClients::kNo;
  std::string tls_protocols;  // Empty = 1.2 and 1.3.
  std::string tls_ciphers;
  std::string tls_ciphersuites;
  bool tls_prefer_server_ciphers = false;
  bool tls_session_caching = true;
  int64_t tls_session_cache_size = 0;
  int64_t tls_session_cache_timeout_s = 0;
  std::string tls_dh_params_file;
  int64_t tls_handshake_timeout_s = 0;

  // Access.
  std::string requirepass;
  std::string aclfile;
  std::vector<std::vector<std::string>> users;  // From `user` lines: the name, then its rules.
  AclPubsubDefault acl_pubsub_default = AclPubsubDefault::kResetChannels;
  int64_t acllog_max_len = 0;
  DebugCommand enable_debug_command = DebugCommand::kNo;

  // Durability.
  std::string dir;  // Absolute.
  bool appendonly = true;
  AppendFsync appendfsync = AppendFsync::kAlways;
  std::vector<SaveSetting> save;
  uint64_t checkpoint_log_bytes = 0;
  uint64_t min_free_disk_bytes = 0;
  uint64_t journal_buffer_limit_bytes = 0;

  // A group of machines (`journal etcd`). Files are paths as configured; empty = none.
  JournalKind journal = JournalKind::kLocal;
  std::vector<std::string> etcd_endpoints;  // http://host:port; all https:// or none
  std::string etcd_user;                    // Empty = no authentication.
  std::string etcd_password_file;
  std::string etcd_tls_ca_cert_file;
  std::string etcd_tls_cert_file;
  std::string etcd_tls_key_file;
  uint64_t journal_log_bytes = 0;
  int64_t journal_in_flight = 0;
  int64_t journal_patience_ms = 0;
  bool journal_etcd_compact = true;
  std::string cluster_name;
  std::string group;
  std::string node_name;  // Empty = auto.
  int64_t failover_timeout_ms = 0;
  int64_t watchdog_ms = 0;        // 0 = none.
  int64_t checkpoint_copies = 0;  // 0 = auto.
  std::string replication_token_file;
  int64_t sentinel_port = 0;  // 0 = none.
  std::string sentinel_name;
  std::string replica_announce_ip;    // Empty = the address from which etcd is reached.
  int64_t replica_announce_port = 0;  // 0 = port.
  int64_t replica_priority = 100;     // 0 = never takes over.
  bool replica_serve_stale_data = true;

  // Memory and limits.
  int64_t databases = 16;
  uint64_t maxmemory_bytes = 0;  // 0 = no limit.
  std::array<OutputBufferLimit, kClientClasses> output_buffer_limits;
  uint64_t client_query_buffer_limit_bytes = 0;
  uint64_t proto_max_bulk_len_bytes = 0;

  // Scripts.
  int64_t busy_reply_threshold_ms = 0;
  uint64_t script_memory_limit_bytes = 0;

  // Encodings that OBJECT ENCODING reports, and the nodes of streams.
  int64_t hash_max_listpack_entries = 0;
  uint64_t hash_max_listpack_value_bytes = 0;
  uint64_t hll_sparse_max_bytes = 0;
  int64_t list_max_listpack_size = 0;
  int64_t set_max_intset_entries = 0;
  int64_t zset_max_listpack_entries = 0;
  uint64_t zset_max_listpack_value_bytes = 0;
  uint64_t stream_node_max_bytes = 0;
  int64_t stream_node_max_entries = 0;

  // Observation.
  OtlpSettings otlp;
  int64_t otlp_interval_s = 0;
  std::string otlp_service_name;
  std::string otlp_tls_ca_cert_file;  // Empty = the system's store.
  LogVerbosity loglevel = LogVerbosity::kNotice;
  std::string logfile;                     // Empty = standard output.
  int64_t slowlog_log_slower_than_us = 0;  // Negative = off.
  int64_t slowlog_max_len = 0;
  int64_t latency_monitor_threshold_ms = 0;  // 0 = off.
  bool latency_tracking = true;
  int64_t tracking_table_max_keys = 0;
  uint32_t notify_keyspace_events = 0;  // KeyspaceEvents.

  // Process.
  std::string pidfile;
  Supervised supervised = Supervised::kNo;
};

}  // namespace sluice
