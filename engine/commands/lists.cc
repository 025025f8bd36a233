// Lists: pushes, reads and changes in place. Pops and moves are in lists_pop.cc.
#include "engine/commands/lists.h"

#include "engine/execution/call.h"
#include "engine/execution/refusal.h"

namespace sluice {

namespace {

void push_generic(Call& call, bool front, bool only_if_present) {
  const KeyRef key = call.key(1);
  Found<Entry> entry = call.find(key, Type::kList);
  if (entry.refused()) return;
  if (entry == nullptr && only_if_present) return call.reply.integer(0);
  Database database = call.database(key);
  if (entry == nullptr) entry = database.create(key, Type::kList);
  for (const Bytes item : call.args.subspan(2)) database.list_push(key, entry, item, front);
  call.reply.integer(static_cast<int64_t>(collection_size(*entry)));
  database.notify(front ? KeyEvent::kLPush : KeyEvent::kRPush, key.key);
}

}  // namespace

void lpush_command(Call& call) { push_generic(call, true, false); }
void rpush_command(Call& call) { push_generic(call, false, false); }
void lpushx_command(Call& call) { push_generic(call, true, true); }
void rpushx_command(Call& call) { push_generic(call, false, true); }

void lindex_command(Call& call) {
  const Found<const Entry> entry = call.find(call.key(1), Type::kList);
  if (entry.refused()) return;
  if (entry == nullptr) return call.reply.null();
  int64_t index = 0;
  if (!call.integer(2, index)) return;
  const auto size = static_cast<int64_t>(collection_size(*entry));
  if (index < 0) index += size;
  if (index < 0 || index >= size) return call.reply.null();
  call.reply.bulk(entry->object<List>().items.at(static_cast<size_t>(index)));
}

void lrange_command(Call& call) {
  int64_t start = 0;
  int64_t stop = 0;
  if (!call.integer(2, start) || !call.integer(3, stop)) return;
  const Found<const Entry> entry = call.find(call.key(1), Type::kList);
  if (entry.refused()) return;
  const auto size = entry == nullptr ? 0 : static_cast<int64_t>(collection_size(*entry));
  if (!clamp_range(start, stop, size)) return call.reply.array(0);
  auto left = static_cast<size_t>(stop - start + 1);
  call.reply.array(left);
  for (auto at = entry->object<List>().items.iterate(static_cast<size_t>(start)); left != 0;
       at.next(), --left) {
    call.reply.bulk(at.value());
  }
}

void lset_command(Call& call) {
  const KeyRef key = call.key(1);
  const Found<Entry> entry = call.find(key, Type::kList);
  if (entry.refused()) return;
  if (entry == nullptr) return call.reply.error(errors::kNoSuchKey);
  int64_t index = 0;
  if (!call.integer(2, index)) return;
  const auto size = static_cast<int64_t>(collection_size(*entry));
  if (index < 0) index += size;
  if (index < 0 || index >= size) return call.reply.error(errors::kIndexOutOfRange);
  Database database = call.database(key);
  database.list_set(key, entry, static_cast<size_t>(index), call.args[3]);
  call.reply.ok();
  database.notify(KeyEvent::kLSet, key.key);
}

void linsert_command(Call& call) {
  const bool before = call.option(2, "BEFORE");
  if (!before && !call.option(2, "AFTER")) return call.reply.error(errors::kSyntax);
  const KeyRef key = call.key(1);
  const Found<Entry> entry = call.find(key, Type::kList);
  if (entry.refused()) return;
  if (entry == nullptr) return call.reply.integer(0);
  size_t position = 0;
  for (auto at = entry->object<List>().items.begin(); at.valid(); at.next(), ++position) {
    if (at.value() != call.args[3]) continue;
    if (!journal_takes_whole(call, key.key, *entry)) return;
    Database database = call.database(key);
    database.list_insert(key, entry, position + (before ? 0 : 1), call.args[4]);
    database.notify(KeyEvent::kLInsert, key.key);
    return call.reply.integer(static_cast<int64_t>(collection_size(*entry)));
  }
  call.reply.integer(-1);
}

void lrem_command(Call& call) {
  int64_t count = 0;
  if (!call.integer(2, count)) return;
  const KeyRef key = call.key(1);
  const Found<Entry> entry = call.find(key, Type::kList);
  if (entry.refused()) return;
  if (entry == nullptr) return call.reply.integer(0);
  const PackedList& items = entry->object<List>().items;
  const bool from_end = count < 0;
  const uint64_t limit =
      count == 0 ? UINT64_MAX : static_cast<uint64_t>(from_end ? -(count + 1) : count - 1) + 1;
  std::vector<size_t> positions;
  const Bytes wanted = call.args[3];
  if (from_end) {
    size_t position = items.size();
    for (auto at = items.last(); at.valid() && positions.size() < limit; at.prev()) {
      --position;
      if (at.value() == wanted) positions.push_back(position);
    }
    std::reverse(positions.begin(), positions.end());
  } else {
    size_t position = 0;
    for (auto at = items.begin(); at.valid() && positions.size() < limit; at.next(), ++position) {
      if (at.value() == wanted) positions.push_back(position);
    }
  }
  if (!positions.empty()) {
    if (!journal_takes_whole(call, key.key, *entry)) return;
    Database database = call.database(key);
    database.list_erase(key, entry, positions);
    database.notify(KeyEvent::kLRem, key.key);
    database.remove_if_empty(key, entry);
  }
  call.reply.integer(static_cast<int64_t>(positions.size()));
}

void ltrim_command(Call& call) {
  int64_t start = 0;
  int64_t stop = 0;
  if (!call.integer(2, start) || !call.integer(3, stop)) return;
  const KeyRef key = call.key(1);
  const Found<Entry> entry = call.find(key, Type::kList);
  if (entry.refused()) return;
  if (entry == nullptr) return call.reply.ok();
  Database database = call.database(key);
  const auto size = static_cast<int64_t>(collection_size(*entry));
  if (!clamp_range(start, stop, size)) {
    database.remove(key, entry);
    database.notify(KeyEvent::kLTrim, key.key);
    database.notify(KeyEvent::kDel, key.key);
    return call.reply.ok();
  }
  if (start != 0 || stop != size - 1) {
    database.list_trim(key, entry, static_cast<size_t>(start),
                       static_cast<size_t>(stop - start + 1));
  } else {
    database.break_watches(key.key);
  }
  database.notify(KeyEvent::kLTrim, key.key);
  call.reply.ok();
}

namespace {

struct PositionRequest {
  int64_t rank = 1;
  int64_t count = -1;  // -1: one, as a plain integer
  int64_t max_compared = 0;
};

bool parse_position_options(const Call& call, PositionRequest& request) {
  for (size_t at = 3; at < call.args.size(); at += 2) {
    const bool has_value = at + 1 < call.args.size();
    if (has_value && call.option(at, "RANK")) {
      if (!call.integer(at + 1, request.rank)) return false;
      if (request.rank == 0) {
        return fail(
            call,
            "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or "
            "use negative to start from the end of the list");
      }
    } else if (has_value && call.option(at, "COUNT")) {
      constexpr Bytes kError = "ERR COUNT can't be negative";
      if (!call.integer(at + 1, request.count, kError)) return false;
      if (request.count < 0) return fail(call, kError);
    } else if (has_value && call.option(at, "MAXLEN")) {
      constexpr Bytes kError = "ERR MAXLEN can't be negative";
      if (!call.integer(at + 1, request.max_compared, kError)) return false;
      if (request.max_compared < 0) return fail(call, kError);
    } else {
      return fail(call, errors::kSyntax);
    }
  }
  return true;
}

}  // namespace

void lpos_command(Call& call) {
  PositionRequest request;
  if (!parse_position_options(call, request)) return;
  const Found<const Entry> entry = call.find(call.key(1), Type::kList);
  if (entry.refused()) return;
  std::vector<int64_t> found;
  if (entry != nullptr) {
    const PackedList& items = entry->object<List>().items;
    const bool from_end = request.rank < 0;
    // The smallest rank has no positive counterpart: Redis then neither skips nor counts.
    const bool overflows = request.rank == INT64_MIN;
    int64_t to_skip = overflows ? 0 : (from_end ? -request.rank : request.rank) - 1;
    const uint64_t wanted = request.count < 0 ? 1
                            : request.count == 0 || overflows
                                ? UINT64_MAX
                                : static_cast<uint64_t>(request.count);
    int64_t compared = 0;
    auto at = from_end ? items.last() : items.begin();
    for (int64_t index = from_end ? static_cast<int64_t>(items.size()) - 1 : 0; at.valid();
         from_end ? at.prev() : at.next(), index += from_end ? -1 : 1) {
      if (request.max_compared != 0 && compared++ >= request.max_compared) break;
      if (at.value() != call.args[2]) continue;
      if (to_skip-- > 0) continue;
      found.push_back(index);
      if (found.size() >= wanted) break;
    }
  }
  if (request.count < 0) {
    return found.empty() ? call.reply.null() : call.reply.integer(found[0]);
  }
  call.reply.array(found.size());
  for (const int64_t index : found) call.reply.integer(index);
}

}  // namespace sluice
