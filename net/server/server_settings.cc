#include "net/server/server_settings.h"

#include <spdlog/spdlog.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "engine/access/acl.h"
#include "engine/keyspace/database.h"
#include "net/group/serving_gate.h"
#include "net/process/logging.h"

namespace sluice {

SyncMode sync_mode(AppendFsync appendfsync) {
  switch (appendfsync) {
    case AppendFsync::kEverysec:
      return SyncMode::kEverySecond;
    case AppendFsync::kAlways:
      return SyncMode::kAlways;
    case AppendFsync::kNo:
      return SyncMode::kNever;
  }
  CHECK(false);
}

// With a journal the save rules are not used, as in Redis with the AOF on: the journal's growth
// decides.
std::vector<SaveRule> save_rules(const Settings& settings) {
  std::vector<SaveRule> rules;
  if (settings.appendonly) return rules;
  for (const SaveSetting& rule : settings.save) {
    rules.push_back({static_cast<uint64_t>(rule.seconds), static_cast<uint64_t>(rule.changes)});
  }
  return rules;
}

namespace {

const char* log_level_name(LogVerbosity level) {
  switch (level) {
    case LogVerbosity::kDebug:
      return "debug";
    case LogVerbosity::kVerbose:
      return "verbose";
    case LogVerbosity::kNotice:
      return "notice";
    case LogVerbosity::kWarning:
      return "warning";
    case LogVerbosity::kNothing:
      return "nothing";
  }
  CHECK(false);
}

// What the replicated log takes at once; 0: no limit.
uint64_t max_change_bytes(const Settings& settings) {
  return settings.journal == JournalKind::kEtcd ? settings.journal_log_bytes : 0;
}

DebugAccess debug_access(DebugCommand setting) {
  switch (setting) {
    case DebugCommand::kYes:
      return DebugAccess::kEverybody;
    case DebugCommand::kLocal:
      return DebugAccess::kLocal;
    case DebugCommand::kNo:
      break;
  }
  return DebugAccess::kNobody;
}

void apply_limits(const Settings& settings, ServerLimits& limits) {
  limits.max_clients.store(static_cast<uint64_t>(settings.maxclients));
  limits.idle_timeout_s.store(settings.timeout_s);
  limits.tcp_keepalive_s.store(static_cast<int>(settings.tcp_keepalive_s));
  limits.tls_handshake_s.store(settings.tls_handshake_timeout_s);
  limits.query_buffer_bytes.store(settings.client_query_buffer_limit_bytes);
  limits.max_bulk_bytes.store(static_cast<int64_t>(settings.proto_max_bulk_len_bytes));
  limits.protected_mode.store(settings.protected_mode);
  limits.metrics_queues.store(settings.http_metrics_queues);
  limits.history_bytes.store(settings.history_memory_bytes);
  limits.journal_buffer_bytes.store(settings.journal_buffer_limit_bytes);
  for (size_t i = 0; i < kClientClasses; ++i) {
    const OutputBufferLimit& from = settings.output_buffer_limits[i];
    OutputLimit& to = limits.output[i];
    to.hard_bytes.store(from.hard_bytes);
    to.soft_bytes.store(from.soft_bytes);
    to.soft_s.store(from.soft_seconds);
  }
}

void apply_to_engine(const Settings& settings, Engine& engine) {
  RuntimeOptions& options = engine.options();
  options.max_memory_bytes.store(settings.maxmemory_bytes);
  options.slow_log_max_entries.store(static_cast<uint64_t>(settings.slowlog_max_len));
  options.acl_log_max_entries.store(static_cast<uint64_t>(settings.acllog_max_len));
  options.tracking_table_max_keys.store(static_cast<uint64_t>(settings.tracking_table_max_keys));
  options.busy_reply_threshold_ms.store(settings.busy_reply_threshold_ms);
  options.script_memory_limit_bytes.store(settings.script_memory_limit_bytes);
  options.max_bulk_bytes.store(settings.proto_max_bulk_len_bytes);
  options.max_request_bytes.store(max_change_bytes(settings) / 4);
  // Later the group knows better.
  if (options.max_change_bytes.load() == 0) {
    options.max_change_bytes.store(max_change_bytes(settings));
  }
  options.debug_access.store(debug_access(settings.enable_debug_command));
  engine.set_slow_log_threshold_us(settings.slowlog_log_slower_than_us);
  engine.set_latency_threshold_ms(settings.latency_monitor_threshold_ms);
  engine.set_latency_tracking(settings.latency_tracking);
  engine.set_notified_events(settings.notify_keyspace_events);
  engine.acl().set_all_channels_by_default(settings.acl_pubsub_default ==
                                           AclPubsubDefault::kAllChannels);
}

// Applies to the process: the last configured server decides.
void apply_encodings(const Settings& settings) {
  const auto size = [](int64_t entries) { return static_cast<size_t>(entries); };
  g_encoding_limits.hash_listpack_entries = size(settings.hash_max_listpack_entries);
  g_encoding_limits.hash_listpack_value_bytes = settings.hash_max_listpack_value_bytes;
  g_encoding_limits.set_intset_entries = size(settings.set_max_intset_entries);
  g_encoding_limits.sorted_listpack_entries = size(settings.zset_max_listpack_entries);
  g_encoding_limits.sorted_listpack_value_bytes = settings.zset_max_listpack_value_bytes;
  g_encoding_limits.hll_sparse_max_bytes = settings.hll_sparse_max_bytes;
  g_stream_node_limits.max_bytes = settings.stream_node_max_bytes;
  g_stream_node_limits.max_entries = size(settings.stream_node_max_entries);
}

}  // namespace

void apply_settings(const Settings& settings, ServerState& state, Engine& engine) {
  set_log_level(log_level_name(settings.loglevel));
  apply_limits(settings, state.limits);
  apply_to_engine(settings, engine);
  apply_encodings(settings);
  if (state.gate != nullptr) state.gate->refuse_old_data(!settings.replica_serve_stale_data);
}

Status load_users_file(Engine& engine, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf() || file.peek() == std::ifstream::traits_type::eof())) {
    return io_error("Error loading ACLs, opening file '" + path + "': " + std::strerror(errno));
  }
  return engine.acl().load_text(text.str(), path);
}

Status load_users(Engine& engine, const Settings& settings) {
  Acl& acl = engine.acl();
  // Set first: a user line or a line of the file for the default user overrides it.
  if (!settings.requirepass.empty()) acl.set_default_password(settings.requirepass);
  Status status = settings.aclfile.empty() ? acl.load(settings.users)
                                           : load_users_file(engine, settings.aclfile);
  if (!status.ok()) return status;
  for (const std::shared_ptr<User>& user : acl.users()) {
    if (user->rules()->enabled()) continue;
    spdlog::info(
        "The user '{}' is disabled (there is no 'on' modifier in the user description). Make sure "
        "this is not a configuration error.",
        user->name);
  }
  return {};
}

}  // namespace sluice
