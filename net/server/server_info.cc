#include "net/server/server_info.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>

#include "engine/clients/pubsub.h"
#include "engine/clients/tracking.h"
#include "engine/execution/execution.h"
#include "engine/script/script_engine.h"
#include "net/process/clocks.h"
#include "net/process/memory_use.h"
#include "net/process/version.h"
#include "net/process/wall_clock.h"
#include "net/server/info_replication.h"
#include "net/server/supervisor.h"

namespace sluice {

namespace {

std::string human_bytes(uint64_t bytes) {
  char text[64];
  const auto value = static_cast<double>(bytes);
  if (bytes < 1024) {
    std::snprintf(text, sizeof(text), "%lluB", static_cast<unsigned long long>(bytes));
  } else if (bytes < (1ULL << 20)) {
    std::snprintf(text, sizeof(text), "%.2fK", value / 1024);
  } else if (bytes < (1ULL << 30)) {
    std::snprintf(text, sizeof(text), "%.2fM", value / (1ULL << 20));
  } else if (bytes < (1ULL << 40)) {
    std::snprintf(text, sizeof(text), "%.2fG", value / (1ULL << 30));
  } else {
    std::snprintf(text, sizeof(text), "%.2fT", value / static_cast<double>(1ULL << 40));
  }
  return text;
}

std::string decimals(double value, const char* format = "%.2f") {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

std::string ratio(uint64_t part, uint64_t whole) {
  return decimals(whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole));
}

std::string percent(uint64_t part, uint64_t whole) {
  const double value =
      whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
  return decimals(value) + "%";
}

int64_t difference(uint64_t a, uint64_t b) {
  return static_cast<int64_t>(a) - static_cast<int64_t>(b);
}

// For features that are left out: Redis's fields with the value 0.
void zeros(InfoWriter& out, std::initializer_list<const char*> names) {
  for (const char* name : names) out.field(name, uint64_t{0});
}

std::string executable_path() {
  char path[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof(path) - 1);
  return length < 0 ? std::string() : std::string(path, static_cast<size_t>(length));
}

void human_field(InfoWriter& out, const std::string& name, uint64_t bytes) {
  out.field(name, bytes);
  out.field(name + "_human", human_bytes(bytes));
}

void write_cpu(InfoWriter& out) {
  const auto seconds = [](const timeval& time) {
    return decimals(static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6,
                    "%f");
  };
  struct rusage whole {};
  struct rusage children {};
  struct rusage thread {};
  ::getrusage(RUSAGE_SELF, &whole);
  ::getrusage(RUSAGE_CHILDREN, &children);
  // The calling thread: with one I/O thread it is the one that does all the work.
  ::getrusage(RUSAGE_THREAD, &thread);
  out.field("used_cpu_sys", seconds(whole.ru_stime));
  out.field("used_cpu_user", seconds(whole.ru_utime));
  out.field("used_cpu_sys_children", seconds(children.ru_stime));
  out.field("used_cpu_user_children", seconds(children.ru_utime));
  out.field("used_cpu_sys_main_thread", seconds(thread.ru_stime));
  out.field("used_cpu_user_main_thread", seconds(thread.ru_utime));
}

}  // namespace

void ServerInfo::write(Bytes section, InfoWriter& out) {
  if (section == "server") return server(out);
  if (section == "clients") return clients(out);
  if (section == "memory") return memory(out);
  if (section == "persistence") return persistence(out);
  if (section == "stats") return stats(out);
  if (section == "replication") return replication(out);
  if (section == "cpu") return write_cpu(out);
  if (section == "cluster") out.field("cluster_enabled", int64_t{0});
}

void ServerInfo::server(InfoWriter& out) {
  const std::shared_ptr<const Settings> settings = shared_.config.settings();
  const int64_t now_us = wall_us();
  const int64_t uptime_s = (Clocks::steady_ms() - shared_.started_steady_ms) / 1000;
  struct utsname machine {};
  ::uname(&machine);
  out.field("redis_version", kRedisVersion);
  out.field("redis_git_sha1", "00000000");
  out.field("redis_git_dirty", int64_t{0});
  out.field("redis_build_id", "0");
  out.field("redis_mode", "standalone");
  out.field("os", std::string(machine.sysname) + " " + machine.release + " " + machine.machine);
  out.field("arch_bits", static_cast<int64_t>(sizeof(void*) * 8));
  out.field("monotonic_clock", "POSIX clock_gettime");
  out.field("multiplexing_api", "epoll");
  out.field("atomicvar_api", "c11-builtin");
  out.field("gcc_version", __VERSION__);
  out.field("process_id", static_cast<int64_t>(::getpid()));
  out.field("process_supervised", is_supervised(*settings) ? "systemd" : "no");
  out.field("run_id", shared_.run_id);
  out.field("tcp_port", static_cast<int64_t>(listeners_.port() != 0 ? listeners_.port()
                                                                    : listeners_.tls_port()));
  out.field("server_time_usec", now_us);
  out.field("uptime_in_seconds", uptime_s);
  out.field("uptime_in_days", uptime_s / 86400);
  // Nothing here runs at a fixed rate; the value is Redis's default.
  out.field("hz", int64_t{10});
  out.field("configured_hz", int64_t{10});
  out.field("lru_clock", now_us / 1'000'000 & ((1 << 24) - 1));
  out.field("executable", executable_path());
  out.field("config_file", shared_.config.file());
  out.field("io_threads_active", int64_t{shared_.io_threads.size() > 1});
  out.field("sluice_version", kSluiceVersion);
  out.field("sluice_http_port", static_cast<int64_t>(listeners_.http_port()));
  char ahead_s[32];
  std::snprintf(ahead_s, sizeof(ahead_s), "%.3f",
                static_cast<double>(shared_.engine->queue_clock.ahead_ms()) / 1000);
  out.field("sluice_queue_time_ahead_seconds", ahead_s);
  out.field("sluice_io_threads", static_cast<int64_t>(shared_.io_threads.size()));
}

void ServerInfo::clients(InfoWriter& out) {
  out.field("connected_clients", shared_.state.connected_clients.load());
  out.field("cluster_connections", int64_t{0});
  out.field("maxclients", shared_.state.limits.max_clients.load());
  uint64_t input = 0;
  uint64_t output = 0;
  for (const auto& thread : shared_.io_threads) {
    for (const auto& port : thread->sessions().ports()) {
      input = std::max<uint64_t>(input, port->query_bytes());
      output = std::max<uint64_t>(output, port->output_bytes());
    }
  }
  out.field("client_recent_max_input_buffer", input);
  out.field("client_recent_max_output_buffer", output);
  out.field("blocked_clients", shared_.state.blocked_clients.load());
  out.field("tracking_clients", shared_.engine->tracking().clients());
  out.field("clients_in_timeout_table", shared_.state.timed_clients.load());
  out.field("sluice_pubsub_clients", shared_.state.pubsub_clients.load());
}

void ServerInfo::memory(InfoWriter& out) {
  const AllocatorFacts facts = allocator_facts();
  const uint64_t used = facts.allocated;
  const uint64_t rss = resident_bytes();
  const uint64_t peak = peak_memory_bytes();
  const uint64_t limit = shared_.engine->options().max_memory_bytes.load();
  const uint64_t start = std::min(shared_.startup_bytes.load(), used);
  const uint64_t storage = store_.is_ready() ? store_.get().memory_bytes() : 0;
  const uint64_t overhead =
      std::min(start + storage + script_engine(*shared_.engine).machine_bytes(false) +
                   script_engine(*shared_.engine).machine_bytes(true),
               used);
  uint64_t normal_clients = 0;
  for (const auto& thread : shared_.io_threads) {
    for (const auto& port : thread->sessions().ports()) normal_clients += port->memory_bytes();
  }
  human_field(out, "used_memory", used);
  human_field(out, "used_memory_rss", rss);
  human_field(out, "used_memory_peak", peak);
  out.field("used_memory_peak_perc", percent(used, peak));
  out.field("used_memory_overhead", overhead);
  out.field("used_memory_startup", start);
  out.field("used_memory_dataset", used - overhead);
  out.field("used_memory_dataset_perc", percent(used - overhead, used - start));
  out.field("allocator_allocated", facts.allocated);
  out.field("allocator_active", facts.active);
  out.field("allocator_resident", facts.resident);
  human_field(out, "total_system_memory", system_memory_bytes());
  script_memory(out);
  human_field(out, "maxmemory", limit);
  out.field("maxmemory_policy", "noeviction");
  out.field("allocator_frag_ratio", ratio(facts.active, facts.allocated));
  out.field("allocator_frag_bytes", difference(facts.active, facts.allocated));
  out.field("allocator_rss_ratio", ratio(facts.resident, facts.active));
  out.field("allocator_rss_bytes", difference(facts.resident, facts.active));
  out.field("rss_overhead_ratio", ratio(rss, facts.resident));
  out.field("rss_overhead_bytes", difference(rss, facts.resident));
  out.field("mem_fragmentation_ratio", ratio(rss, used));
  out.field("mem_fragmentation_bytes", difference(rss, used));
  zeros(out, {"mem_not_counted_for_evict", "mem_replication_backlog",
              "mem_total_replication_buffers", "mem_clients_slaves"});
  out.field("mem_clients_normal", normal_clients);
  out.field("mem_cluster_links", int64_t{0});
  const GroupCommitJournal* journal = shared_.state.journal.load();
  out.field("mem_aof_buffer", journal != nullptr ? journal->unwritten_bytes() : uint64_t{0});
  out.field("mem_allocator", facts.name);
  zeros(out, {"active_defrag_running"});
  out.field("lazyfree_pending_objects", shared_.engine->reclaimer().pending());
  out.field("lazyfreed_objects", shared_.engine->reclaimer().freed());
  out.field("sluice_storage_memory", storage);
}

void ServerInfo::script_memory(InfoWriter& out) {
  const ScriptEngine& scripts = script_engine(*shared_.engine);
  const uint64_t machines = scripts.machine_bytes(false);
  const uint64_t function_machines = scripts.machine_bytes(true);
  const uint64_t texts = scripts.script_bytes();
  const uint64_t library_texts = scripts.library_bytes();
  const std::shared_ptr<const FunctionSet> functions = scripts.functions();
  // Redis's order, in which two human-readable values are not next to their numbers.
  out.field("used_memory_lua", machines);
  out.field("used_memory_vm_eval", machines);
  out.field("used_memory_lua_human", human_bytes(machines));
  out.field("used_memory_scripts_eval", texts);
  out.field("number_of_cached_scripts", static_cast<uint64_t>(scripts.script_count()));
  out.field("number_of_functions", static_cast<uint64_t>(functions->functions.size()));
  out.field("number_of_libraries", static_cast<uint64_t>(functions->libraries.size()));
  out.field("used_memory_vm_functions", function_machines);
  human_field(out, "used_memory_vm_total", machines + function_machines);
  out.field("used_memory_functions", library_texts);
  human_field(out, "used_memory_scripts", texts + library_texts);
}

void ServerInfo::stats(InfoWriter& out) {
  const TrafficStats::Totals totals = traffic_.totals();
  out.field("total_connections_received", shared_.state.connections_received.load());
  out.field("total_commands_processed", totals.operations);
  out.field("instantaneous_ops_per_sec", traffic_.rates().operations.load());
  out.field("total_net_input_bytes", totals.input_bytes);
  out.field("total_net_output_bytes", totals.output_bytes);
  zeros(out, {"total_net_repl_input_bytes", "total_net_repl_output_bytes"});
  out.field("instantaneous_input_kbps",
            decimals(static_cast<double>(traffic_.rates().input_bytes.load()) / 1024));
  out.field("instantaneous_output_kbps",
            decimals(static_cast<double>(traffic_.rates().output_bytes.load()) / 1024));
  out.field("instantaneous_input_repl_kbps", "0.00");
  out.field("instantaneous_output_repl_kbps", "0.00");
  out.field("rejected_connections", shared_.state.connections_rejected.load());
  zeros(out, {"sync_full", "sync_partial_ok", "sync_partial_err"});
  out.field("expired_keys", shared_.engine->expired_keys.load());
  out.field("expired_stale_perc", "0.00");
  zeros(out, {"expired_time_cap_reached_count", "expire_cycle_cpu_milliseconds", "evicted_keys",
              "evicted_clients", "total_eviction_exceeded_time", "current_eviction_exceeded_time"});
  out.field("keyspace_hits", shared_.engine->keyspace_hits());
  out.field("keyspace_misses", shared_.engine->keyspace_misses());
  const PubSub& pubsub = shared_.engine->pubsub();
  out.field("pubsub_channels", static_cast<uint64_t>(pubsub.count(PubSub::Kind::kChannel)));
  out.field("pubsub_patterns", static_cast<uint64_t>(pubsub.count(PubSub::Kind::kPattern)));
  out.field("pubsubshard_channels",
            static_cast<uint64_t>(pubsub.count(PubSub::Kind::kShardChannel)));
  zeros(out,
        {"latest_fork_usec", "total_forks", "migrate_cached_sockets", "slave_expires_tracked_keys",
         "active_defrag_hits", "active_defrag_misses", "active_defrag_key_hits",
         "active_defrag_key_misses", "total_active_defrag_time", "current_active_defrag_time"});
  out.field("tracking_total_keys", shared_.engine->tracking().keys());
  out.field("tracking_total_items", shared_.engine->tracking().items());
  out.field("tracking_total_prefixes", shared_.engine->tracking().prefixes());
  zeros(out, {"unexpected_error_replies"});
  uint64_t errors = 0;
  shared_.engine->for_each_execution(
      [&](Execution& execution) { errors += execution.statistics.errors.total(); });
  out.field("total_error_replies", errors);
  out.field("dump_payload_sanitizations", int64_t{0});
  const uint64_t reads = traffic_.sum(&IoThread::Counters::reads);
  const uint64_t writes = traffic_.sum(&IoThread::Counters::writes);
  const bool threaded = shared_.io_threads.size() > 1;
  out.field("total_reads_processed", reads);
  out.field("total_writes_processed", writes);
  out.field("io_threaded_reads_processed", threaded ? reads : 0);
  out.field("io_threaded_writes_processed", threaded ? writes : 0);
  zeros(out, {"reply_buffer_shrinks", "reply_buffer_expands"});
  out.field("sluice_query_buffer_disconnections", shared_.state.query_buffer_disconnections.load());
  out.field("sluice_output_buffer_disconnections",
            shared_.state.output_buffer_disconnections.load());
  out.field("sluice_tls_handshakes_failed",
            shared_.tls == nullptr ? 0 : shared_.tls->failed_handshakes());
}

void ServerInfo::replication(InfoWriter& out) {
  ReplicationFacts facts{.run_id = shared_.run_id,
                         .priority = shared_.config.settings()->replica_priority};
  if (GroupPort* const group = shared_.group) {
    facts.view = group->view();
    facts.view_age_ms = group->view_age_ms();
    facts.lease_ms = group->lease_ms();
  }
  write_replication(facts, out);
}

}  // namespace sluice
