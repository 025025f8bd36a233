// INFO: sections of the server (ServerPort::info) and those of the engine itself.
#include <algorithm>
#include <cstdio>
#include <map>
#include <sstream>

#include "engine/base/ticks.h"
#include "engine/commands/latency.h"
#include "engine/commands/server.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"
#include "engine/execution/execution.h"

namespace sluice {

void InfoWriter::section(Bytes title) {
  if (!text_.empty()) text_ += "\r\n";
  text_ += "# ";
  text_ += title;
  text_ += "\r\n";
}

void InfoWriter::field(Bytes name, Bytes value) {
  text_ += name;
  text_ += ':';
  text_ += value;
  text_ += "\r\n";
}

void InfoWriter::field(Bytes name, int64_t value) { field(name, std::to_string(value)); }
void InfoWriter::field(Bytes name, uint64_t value) { field(name, std::to_string(value)); }

namespace {

struct Section {
  const char* name;
  const char* title;
  bool by_default;
};

// In Redis's order.
constexpr Section kSections[] = {
    {"server", "Server", true},
    {"clients", "Clients", true},
    {"memory", "Memory", true},
    {"persistence", "Persistence", true},
    {"stats", "Stats", true},
    {"replication", "Replication", true},
    {"cpu", "CPU", true},
    {"modules", "Modules", true},
    {"commandstats", "Commandstats", false},
    {"errorstats", "Errorstats", true},
    {"latencystats", "Latencystats", false},
    {"cluster", "Cluster", true},
    {"keyspace", "Keyspace", true},
};

void write_command_stats(Engine& engine, InfoWriter& out) {
  struct Sum {
    uint64_t calls = 0;
    uint64_t ticks = 0;
    uint64_t rejected = 0;
    uint64_t failed = 0;
  };
  const CommandTable& table = CommandTable::instance();
  std::vector<Sum> sums(table.id_limit());
  engine.for_each_execution([&](Execution& execution) {
    const auto stats = execution.statistics.commands();
    for (size_t id = 0; id < stats.size(); ++id) {
      sums[id].calls += stats[id].calls.load(std::memory_order_relaxed);
      sums[id].ticks += stats[id].ticks.load(std::memory_order_relaxed);
      sums[id].rejected += stats[id].rejected.load(std::memory_order_relaxed);
      sums[id].failed += stats[id].failed.load(std::memory_order_relaxed);
    }
  });
  const double ticks_per_us = ticks_per_microsecond();
  for (size_t id = 0; id < sums.size(); ++id) {
    const Sum& sum = sums[id];
    if (sum.calls + sum.rejected + sum.failed == 0) continue;
    const double us = static_cast<double>(sum.ticks) / ticks_per_us;
    char text[200];
    std::snprintf(text, sizeof(text),
                  "calls=%llu,usec=%.0f,usec_per_call=%.2f,rejected_calls=%llu,failed_calls=%llu",
                  static_cast<unsigned long long>(sum.calls), us,
                  sum.calls == 0 ? 0.0 : us / static_cast<double>(sum.calls),
                  static_cast<unsigned long long>(sum.rejected),
                  static_cast<unsigned long long>(sum.failed));
    out.field("cmdstat_" + CommandTable::full_name(table.by_id(id)), Bytes(text));
  }
}

// Like Redis, replaces characters that would end a line or a name.
std::string safe_name(std::string name) {
  for (char& c : name) {
    if (c == '#' || c == ':' || c == '\n' || c == '\r') c = '_';
  }
  return name;
}

void write_error_stats(Engine& engine, InfoWriter& out) {
  std::map<std::string, uint64_t> kinds;
  engine.for_each_execution(
      [&](Execution& execution) { execution.statistics.errors.add_to(kinds); });
  for (const auto& [kind, count] : kinds) {
    out.field("errorstat_" + safe_name(kind), "count=" + std::to_string(count));
  }
}

// Like "%f" without trailing zeros: 99.9.
std::string percentile_name(double percent) {
  char text[64];
  std::snprintf(text, sizeof(text), "%f", percent);
  std::string name = text;
  name.resize(name.find_last_not_of('0') + 1);
  if (name.back() == '.') name.pop_back();
  return name;
}

void write_latency_stats(Engine& engine, InfoWriter& out) {
  if (engine.latency_scale.load() == 0) return;
  std::vector<double> percentiles;
  const auto setting = engine.server().config_get({"latency-tracking-info-percentiles"});
  std::istringstream words(setting.empty() ? "" : setting[0].second);
  for (double percent = 0; words >> percent;) percentiles.push_back(percent);
  const CommandTable& table = CommandTable::instance();
  for (size_t id = 0; id < table.id_limit(); ++id) {
    const LatencySum sum = command_latencies(engine, table.by_id(id));
    if (sum.count() == 0) continue;
    std::string line;
    for (const double percent : percentiles) {
      char text[64];
      std::snprintf(text, sizeof(text), "=%.3f",
                    static_cast<double>(sum.percentile_ns(percent)) / 1000);
      line += (line.empty() ? "p" : ",p") + percentile_name(percent) + text;
    }
    out.field("latency_percentiles_usec_" + CommandTable::full_name(table.by_id(id)), line);
  }
}

// The exact average would need all expiries; the next ones to expire are a sample.
int64_t average_ttl_ms(Call& call, int database, uint64_t& expires) {
  constexpr size_t kSamples = 16;
  int64_t total_ms = 0;
  int64_t seen = 0;
  for (unsigned index = 0; index < kShards; ++index) {
    const auto& expiries =
        Database(call.engine.shard(index), database, call.unit).keyspace().expiries;
    expires += expiries.size();
    const uint64_t step = std::max<uint64_t>(expiries.size() / kSamples, 1);
    for (uint64_t rank = 0; rank < expiries.size(); rank += step) {
      total_ms +=
          std::max<int64_t>(static_cast<int64_t>(expiries.at(rank).major()) - call.now_ms(), 0);
      ++seen;
    }
  }
  return seen == 0 ? 0 : total_ms / seen;
}

void write_keyspace(Call& call, InfoWriter& out) {
  for (int database = 0; database < kDatabases; ++database) {
    const uint64_t keys = call.engine.key_count(database);
    if (keys == 0) continue;
    uint64_t expires = 0;
    const bool replaying = call.engine.replaying.load();
    const int64_t ttl_ms = replaying ? 0 : average_ttl_ms(call, database, expires);
    out.field("db" + std::to_string(database), "keys=" + std::to_string(keys) +
                                                   ",expires=" + std::to_string(expires) +
                                                   ",avg_ttl=" + std::to_string(ttl_ms));
  }
}

bool wanted(const Call& call, const Section& section) {
  if (call.args.size() == 1) return section.by_default;
  for (const Bytes name : call.args.subspan(1)) {
    if (equals_ignore_case(name, section.name) || equals_ignore_case(name, "all") ||
        equals_ignore_case(name, "everything")) {
      return true;
    }
    if (section.by_default && equals_ignore_case(name, "default")) return true;
  }
  return false;
}

}  // namespace

void info_command(Call& call) {
  InfoWriter out;
  for (const Section& section : kSections) {
    if (!wanted(call, section)) continue;
    out.section(section.title);
    const Bytes name = section.name;
    if (name == "commandstats") {
      write_command_stats(call.engine, out);
    } else if (name == "errorstats") {
      write_error_stats(call.engine, out);
    } else if (name == "latencystats") {
      write_latency_stats(call.engine, out);
    } else if (name == "keyspace") {
      write_keyspace(call, out);
    } else {
      call.engine.server().info(name, out);
    }
  }
  call.reply.verbatim("txt", out.take());
}

}  // namespace sluice
