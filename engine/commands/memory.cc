// MEMORY: memory usage.
#include <cstdlib>
#include <map>

#include "engine/commands/help.h"
#include "engine/commands/server.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"

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

void reply_field(Reply& reply, Bytes name, int64_t value) {
  reply.bulk(name);
  reply.integer(value);
}

void reply_number(Reply& reply, Bytes name, double value) {
  reply.bulk(name);
  reply.number(value);
}

// Counts the databases that have keys, and adds the number of their keys to `keys`. Returns the
// number of databases.
size_t reply_databases(Call& call, int64_t& keys, bool write) {
  size_t databases = 0;
  for (int number = 0; number < kDatabases; ++number) {
    const uint64_t count = call.engine.key_count(number);
    if (count == 0) continue;
    ++databases;
    keys += static_cast<int64_t>(count);
    if (!write) continue;
    uint64_t expiries = 0;
    for (unsigned shard = 0; shard < kShards; ++shard) {
      expiries += Database(call.engine.shard(shard), number, call.unit).keyspace().expiries.size();
    }
    call.reply.bulk("db." + std::to_string(number));
    call.reply.map(3);
    reply_field(call.reply, "overhead.hashtable.main", static_cast<int64_t>(count * kSlotBytes));
    reply_field(call.reply, "overhead.hashtable.expires",
                static_cast<int64_t>(expiries * kExpiryBytes));
    reply_field(call.reply, "overhead.hashtable.slot-to-keys", 0);
  }
  return databases;
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
  Reply& reply = call.reply;
  const int64_t total = fields.bytes("used_memory");
  const int64_t startup = fields.bytes("used_memory_startup");
  int64_t keys = 0;
  constexpr size_t kOtherFields = 27;
  reply.map(kOtherFields + reply_databases(call, keys, false));
  reply_field(reply, "peak.allocated", fields.bytes("used_memory_peak"));
  reply_field(reply, "total.allocated", total);
  reply_field(reply, "startup.allocated", startup);
  reply_field(reply, "replication.backlog", 0);
  reply_field(reply, "clients.slaves", 0);
  reply_field(reply, "clients.normal", fields.bytes("mem_clients_normal"));
  reply_field(reply, "cluster.links", 0);
  reply_field(reply, "aof.buffer", fields.bytes("mem_aof_buffer"));
  reply_field(reply, "lua.caches", fields.bytes("used_memory_scripts_eval"));
  reply_field(reply, "functions.caches", fields.bytes("used_memory_functions"));
  keys = 0;
  reply_databases(call, keys, true);
  reply_field(reply, "overhead.total", fields.bytes("used_memory_overhead"));
  reply_field(reply, "keys.count", keys);
  reply_field(reply, "keys.bytes-per-key", keys == 0 ? 0 : (total - startup) / keys);
  reply_field(reply, "dataset.bytes", fields.bytes("used_memory_dataset"));
  reply_number(reply, "dataset.percentage",
               percent(fields.bytes("used_memory_dataset"), total - startup));
  reply_number(reply, "peak.percentage", percent(total, fields.bytes("used_memory_peak")));
  reply_field(reply, "allocator.allocated", fields.bytes("allocator_allocated"));
  reply_field(reply, "allocator.active", fields.bytes("allocator_active"));
  reply_field(reply, "allocator.resident", fields.bytes("allocator_resident"));
  reply_number(reply, "allocator-fragmentation.ratio", fields.ratio("allocator_frag_ratio"));
  reply_field(reply, "allocator-fragmentation.bytes", fields.bytes("allocator_frag_bytes"));
  reply_number(reply, "allocator-rss.ratio", fields.ratio("allocator_rss_ratio"));
  reply_field(reply, "allocator-rss.bytes", fields.bytes("allocator_rss_bytes"));
  reply_number(reply, "rss-overhead.ratio", fields.ratio("rss_overhead_ratio"));
  reply_field(reply, "rss-overhead.bytes", fields.bytes("rss_overhead_bytes"));
  reply_number(reply, "fragmentation", fields.ratio("mem_fragmentation_ratio"));
  reply_field(reply, "fragmentation.bytes", fields.bytes("mem_fragmentation_bytes"));
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

void memory_help_command(Call& call) { reply_help(call); }

}  // namespace sluice
