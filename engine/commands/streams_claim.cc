// Streams: XCLAIM and XAUTOCLAIM, which assign pending entries to another consumer.
#include <algorithm>

#include "engine/commands/stream_ids.h"
#include "engine/commands/streams.h"
#include "engine/keyspace/stream_edits.h"

namespace sluice {

namespace {

// The common part of both commands for one entry.
struct Claim {
  const KeyRef& key;
  Entry* entry;
  Bytes group_name;
  StreamGroup& group;
  Bytes consumer_name;
  StreamConsumer* consumer = nullptr;
  int64_t delivered_ms = 0;
  bool only_id = false;
};

// A deleted entry cannot be assigned: it is no longer pending.
void drop_pending(Call& call, const Claim& claim, const StreamId& id) {
  StreamEdits(call.database(claim.key), claim.key, claim.entry)
      .acknowledge(claim.group_name, {&id, 1});
}

void give(Call& call, Claim& claim, const StreamId& id, int64_t deliveries) {
  StreamEdits edits(call.database(claim.key), claim.key, claim.entry);
  // A consumer is made only when it gets an entry.
  if (claim.consumer == nullptr) {
    claim.consumer = edits.see_consumer(claim.group_name, claim.consumer_name);
  }
  edits.put_pending(claim.group_name, claim.consumer, {&id, 1}, claim.delivered_ms, deliveries);
  if (claim.only_id) return reply_stream_id(call.reply, id);
  claim.entry->object<Stream>().each(id, id, [&](const StreamEntry& entry) {
    reply_stream_entry(call.reply, entry);
    return false;
  });
}

// --- XCLAIM ---

struct ClaimOptions {
  int64_t min_idle_ms = 0;
  std::vector<StreamId> ids;
  bool force = false;
  bool only_id = false;
  int64_t delivered_ms = -1;  // -1: now
  int64_t deliveries = -1;    // -1: one more
  StreamId last_id;
};

// Parses IDLE, TIME, RETRYCOUNT, LASTID with their values, FORCE, JUSTID. Returns false with the
// error replied.
bool parse_claim_options(const Call& call, size_t at, ClaimOptions& options) {
  for (; at < call.args.size(); ++at) {
    const bool more = at + 1 < call.args.size();
    if (call.option(at, "FORCE")) {
      options.force = true;
    } else if (call.option(at, "JUSTID")) {
      options.only_id = true;
    } else if (more && call.option(at, "IDLE")) {
      int64_t idle_ms = 0;
      if (!call.integer(++at, idle_ms, "ERR Invalid IDLE option argument for XCLAIM")) return false;
      options.delivered_ms = static_cast<int64_t>(static_cast<uint64_t>(call.now_ms()) -
                                                  static_cast<uint64_t>(idle_ms));
    } else if (more && call.option(at, "TIME")) {
      if (!call.integer(++at, options.delivered_ms,
                        "ERR Invalid TIME option argument for XCLAIM")) {
        return false;
      }
    } else if (more && call.option(at, "RETRYCOUNT")) {
      if (!call.integer(++at, options.deliveries,
                        "ERR Invalid RETRYCOUNT option argument for XCLAIM")) {
        return false;
      }
    } else if (more && call.option(at, "LASTID")) {
      if (!stream_id_argument(call, ++at, options.last_id)) return false;
    } else {
      return fail(call,
                  "ERR Unrecognized XCLAIM option '" + std::string(up_to_nul(call.args[at])) + "'");
    }
  }
  return true;
}

bool parse_claim(const Call& call, ClaimOptions& options) {
  if (!call.integer(4, options.min_idle_ms, "ERR Invalid min-idle-time argument for XCLAIM")) {
    return false;
  }
  options.min_idle_ms = std::max<int64_t>(options.min_idle_ms, 0);
  size_t at = 5;
  for (StreamId id; at < call.args.size() && read_stream_id(call.args[at], id, 0, true); ++at) {
    options.ids.push_back(id);
  }
  if (!parse_claim_options(call, at, options)) return false;
  // An invalid time counts as now: clients compute it from their own clocks.
  if (options.delivered_ms < 0 || options.delivered_ms > call.now_ms()) {
    options.delivered_ms = call.now_ms();
  }
  return true;
}

// Claims one entry if that applies. Returns true if the entry must be replied.
bool claim_one(Call& call, Claim& claim, const ClaimOptions& options, const StreamId& id) {
  const StreamPending* pending = claim.group.find_pending(id);
  if (!claim.entry->object<Stream>().contains(id)) {
    if (pending != nullptr) drop_pending(call, claim, id);
    return false;
  }
  if (pending == nullptr && !options.force) return false;
  if (pending != nullptr && options.min_idle_ms != 0 &&
      call.now_ms() - pending->delivered_ms < options.min_idle_ms) {
    return false;
  }
  // An entry that FORCE makes pending counts as delivered once.
  int64_t deliveries = pending == nullptr ? 1 : pending->deliveries;
  if (options.deliveries >= 0) {
    deliveries = options.deliveries;
  } else if (!options.only_id) {
    ++deliveries;
  }
  give(call, claim, id, deliveries);
  return true;
}

}  // namespace

void xclaim_command(Call& call) {
  const KeyRef key = call.key(1);
  Entry* entry = nullptr;
  StreamGroup* group = find_group(call, key, call.args[2], entry);
  if (group == nullptr) return;
  ClaimOptions options;
  if (!parse_claim(call, options)) return;
  Database database = call.database(key);
  if (options.last_id > group->last_id) {
    StreamEdits(database, key, entry).put_group(call.args[2], options.last_id, group->entries_read);
  }
  Claim claim{key, entry, call.args[2], *group, call.args[3]};
  claim.delivered_ms = options.delivered_ms;
  claim.only_id = options.only_id;
  size_t replied = 0;
  const size_t mark = call.reply.open_array();
  for (const StreamId& id : options.ids) replied += claim_one(call, claim, options, id) ? 1 : 0;
  call.reply.close_array(mark, replied);
}

// --- XAUTOCLAIM ---

namespace {

struct AutoClaimOptions {
  int64_t min_idle_ms = 0;
  StreamId from;
  int64_t count = 100;
  bool only_id = false;
};

// Entries examined for each one that may be claimed.
constexpr int64_t kAttempts = 10;

bool parse_auto_claim(const Call& call, AutoClaimOptions& options) {
  if (!call.integer(4, options.min_idle_ms, "ERR Invalid min-idle-time argument for XAUTOCLAIM")) {
    return false;
  }
  options.min_idle_ms = std::max<int64_t>(options.min_idle_ms, 0);
  if (!interval_start(call, 5, options.from)) return false;
  for (size_t at = 6; at < call.args.size(); ++at) {
    if (call.option(at, "COUNT") && at + 1 < call.args.size()) {
      constexpr int64_t kMaxCount = INT64_MAX / 16;
      if (!call.integer(++at, options.count, "ERR COUNT must be > 0")) return false;
      if (options.count < 1 || options.count > kMaxCount) {
        return fail(call, "ERR COUNT must be > 0");
      }
    } else if (call.option(at, "JUSTID")) {
      options.only_id = true;
    } else {
      return fail(call, errors::kSyntax);
    }
  }
  return true;
}

}  // namespace

void xautoclaim_command(Call& call) {
  AutoClaimOptions options;
  if (!parse_auto_claim(call, options)) return;
  const KeyRef key = call.key(1);
  Entry* entry = nullptr;
  StreamGroup* group = find_group(call, key, call.args[2], entry);
  if (group == nullptr) return;
  Claim claim{key, entry, call.args[2], *group, call.args[3]};
  claim.delivered_ms = call.now_ms();
  claim.only_id = options.only_id;

  // The cursor is replied first, so the ids are collected before.
  std::vector<std::pair<StreamId, int64_t>> claimed;  // with the deliveries
  std::vector<StreamId> deleted;
  int64_t attempts = options.count * kAttempts;
  auto at = group->pending().lower_bound(options.from.ms, options.from.seq);
  for (; attempts != 0 && options.count != 0 && at.valid(); at.next(), --attempts) {
    const StreamId id{at.major(), at.minor()};
    const StreamPending& pending = *at.value();
    if (!entry->object<Stream>().contains(id)) {
      deleted.push_back(id);
      --options.count;
    } else if (options.min_idle_ms == 0 ||
               call.now_ms() - pending.delivered_ms >= options.min_idle_ms) {
      claimed.emplace_back(id, pending.deliveries + (options.only_id ? 0 : 1));
      --options.count;
    }
  }
  const StreamId next = at.valid() ? StreamId{at.major(), at.minor()} : StreamId{};
  for (const StreamId& id : deleted) drop_pending(call, claim, id);
  call.reply.array(3);
  reply_stream_id(call.reply, next);
  call.reply.array(claimed.size());
  for (const auto& [id, deliveries] : claimed) give(call, claim, id, deliveries);
  call.reply.array(deleted.size());
  for (const StreamId& id : deleted) reply_stream_id(call.reply, id);
}

}  // namespace sluice
