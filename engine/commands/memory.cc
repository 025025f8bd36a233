// MEMORY: memory usage.
#include <cstdlib>
#include <map>

#include "engine/commands/server.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"
#include "engine/reply/map_reply.h"

namespace sluice {

namespace {

// The slot in the keyspace's map, and the entry in the index of expiries.
constexpr size_t kSlotBytes = 16;
constexpr size_t kExpiryBytes = 24;

// The fields of INFO memory, by name.
class MemoryFields {
 public:
  explicit MemoryFields(ServerPort& server) {
    InfoWriter out;
    server.info("memory", out);
    const std::string text = out.take();
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find("\r\n", at), text.size());
      const size_t colon = text.find(':', at);
      if (colon < end)
        fields_[text.substr(at, colon - at)] = text.substr(colon + 1, end - colon - 1);
      at = end + 2;
    }
  }

  int64_t bytes(const char* name) const { return std::atoll(text(name)); }
  double ratio(const char* name) const { return std::atof(text(name)); }

 private:
  const char* text(const char* name) const {
    const auto found = fields_.find(name);
    return found == fields_.end() ? "0" : found->second.c_str();
  }

  std::map<std::string, std::string, std::less<>> fields_;
};

double percent(int64_t part, int64_t whole) {
  return whole <= 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

// The databases that have keys. Returns the number of keys.
int64_t put_databases(MapReply& map, Call& call) {
  int64_t keys = 0;
  for (int number = 0; number < kDatabases; ++number) {
    const uint64_t count = call.engine.key_count(number);
    if (count == 0) continue;
    keys += static_cast<int64_t>(count);
    uint64_t expiries = 0;
    for (unsigned shard = 0; shard < kShards; ++shard) {
      expiries += Database(call.engine.shard(shard), number, call.unit).keyspace().expiries.size();
    }
    MapReply database(map.field("db." + std::to_string(number)));
    database.count("overhead.hashtable.main", count * kSlotBytes);
    database.count("overhead.hashtable.expires", expiries * kExpiryBytes);
    database.integer("overhead.hashtable.slot-to-keys", 0);
  }
  return keys;
}

}  // namespace

void memory_usage_command(Call& call) {
  int64_t samples = 5;
  for (size_t at = 3; at < call.args.size(); at += 2) {
    if (!call.option(at, "SAMPLES") || at + 1 >= call.args.size()) {
      return call.reply.error(errors::kSyntax);
    }
    if (!call.integer(at + 1, samples)) return;
    if (samples < 0) return call.reply.error(errors::kSyntax);
  }
  // Does not count as a use of the key: no event for a miss.
  const KeyRef key = call.key(2);
  const Entry* entry = call.database(key).find(key);
  if (entry == nullptr) return call.reply.null();
  const size_t bytes = kSlotBytes + (entry->expire_ms() != 0 ? kExpiryBytes : 0) +
                       entry->memory_bytes() +
                       collection_memory_bytes(*entry, static_cast<size_t>(samples));
  call.reply.integer(static_cast<int64_t>(bytes));
}

void memory_stats_command(Call& call) {
  const MemoryFields fields(call.engine.server());
  const int64_t total = fields.bytes("used_memory");
  const int64_t startup = fields.bytes("used_memory_startup");
  MapReply map(call.reply);
  map.integer("peak.allocated", fields.bytes("used_memory_peak"));
  map.integer("total.allocated", total);
  map.integer("startup.allocated", startup);
  map.integer("replication.backlog", 0);
  map.integer("clients.slaves", 0);
  map.integer("clients.normal", fields.bytes("mem_clients_normal"));
  map.integer("cluster.links", 0);
  map.integer("aof.buffer", fields.bytes("mem_aof_buffer"));
  map.integer("lua.caches", fields.bytes("used_memory_scripts_eval"));
  map.integer("functions.caches", fields.bytes("used_memory_functions"));
  const int64_t keys = put_databases(map, call);
  map.integer("overhead.total", fields.bytes("used_memory_overhead"));
  map.integer("keys.count", keys);
  map.integer("keys.bytes-per-key", keys == 0 ? 0 : (total - startup) / keys);
  map.integer("dataset.bytes", fields.bytes("used_memory_dataset"));
  map.number("dataset.percentage", percent(fields.bytes("used_memory_dataset"), total - startup));
  map.number("peak.percentage", percent(total, fields.bytes("used_memory_peak")));
  map.integer("allocator.allocated", fields.bytes("allocator_allocated"));
  map.integer("allocator.active", fields.bytes("allocator_active"));
  map.integer("allocator.resident", fields.bytes("allocator_resident"));
  map.number("allocator-fragmentation.ratio", fields.ratio("allocator_frag_ratio"));
  map.integer("allocator-fragmentation.bytes", fields.bytes("allocator_frag_bytes"));
  map.number("allocator-rss.ratio", fields.ratio("allocator_rss_ratio"));
  map.integer("allocator-rss.bytes", fields.bytes("allocator_rss_bytes"));
  map.number("rss-overhead.ratio", fields.ratio("rss_overhead_ratio"));
  map.integer("rss-overhead.bytes", fields.bytes("rss_overhead_bytes"));
  map.number("fragmentation", fields.ratio("mem_fragmentation_ratio"));
  map.integer("fragmentation.bytes", fields.bytes("mem_fragmentation_bytes"));
}

void memory_doctor_command(Call& call) {
  constexpr int64_t kLittle = 5 << 20;
  constexpr int64_t kMuch = 10 << 20;
  const MemoryFields fields(call.engine.server());
  const int64_t used = fields.bytes("used_memory");
  if (used < kLittle) {
    return call.reply.verbatim("txt", "Less than 5 MB are in use: too little for a diagnosis.\n");
  }
  std::string advice;
  if (fields.bytes("used_memory_peak") > used + used / 2) {
    advice +=
        "- At its peak the server used more than one and a half times its present memory; "
        "free pages are returned to the system over time, or by MEMORY PURGE.\n";
  }
  if (fields.ratio("allocator_frag_ratio") > 1.1 && fields.bytes("allocator_frag_bytes") > kMuch) {
    advice += "- More than a tenth of the allocator's pages is lost to fragmentation.\n";
  }
  if (fields.ratio("allocator_rss_ratio") > 1.1 && fields.bytes("allocator_rss_bytes") > kMuch) {
    advice +=
        "- More than a tenth of the allocator's pages is free: MEMORY PURGE returns them to the "
        "system.\n";
  }
  const int64_t limit = fields.bytes("maxmemory");
  if (limit != 0 && used > limit - limit / 10) {
    advice +=
        "- More than nine tenths of maxmemory are in use; at the limit, commands that grow the "
        "data are refused.\n";
  }
  call.reply.verbatim("txt", advice.empty()
                                 ? std::string("No problems of memory usage were found.\n")
                                 : "Problems of memory usage:\n\n" + advice);
}

void memory_purge_command(Call& call) {
  if (!call.engine.server().purge_memory()) {
    return call.reply.error("ERR Error purging dirty pages");
  }
  call.reply.ok();
}

void memory_malloc_stats_command(Call& call) {
  const std::string report = call.engine.server().allocator_report();
  call.reply.verbatim(
      "txt", report.empty() ? "Stats not supported for the current allocator" : Bytes(report));
}

}  // namespace sluice
