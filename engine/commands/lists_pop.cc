// Lists: pops and moves, including blocking ones and those from the first of several keys.
#include <algorithm>

#include "engine/commands/lists.h"
#include "engine/commands/multi_pop.h"
#include "engine/execution/call.h"

namespace sluice {

namespace {

Bytes end_item(const Entry& entry, bool front) {
  const PackedList& items = entry.object<List>().items;
  return front ? items.front() : items.back();
}

KeyEvent list_pop_event(bool front) { return front ? KeyEvent::kLPop : KeyEvent::kRPop; }

struct ListEnds {
  static constexpr Type kType = Type::kList;
  static constexpr Bytes kFirst = "LEFT";
  static constexpr Bytes kSecond = "RIGHT";
  static constexpr size_t kParts = 2;  // [key, item]

  // An empty list is removed as well.
  static void pop_one(Call& call, const KeyRef& key, Entry* entry, bool front) {
    call.reply.bulk(end_item(*entry, front));
    Database database = call.database(key);
    database.list_pop(key, entry, front);
    database.notify(list_pop_event(front), key.key);
    database.remove_if_empty(key, entry);
  }

  // Many are one record, without the items.
  static bool takes(const Call&, const KeyRef&, const Entry&, bool, uint64_t) { return true; }

  static void pop_many(Call& call, const KeyRef& key, Entry* entry, bool front, uint64_t count) {
    const uint64_t size = collection_size(*entry);
    call.reply.array(count);
    const PackedList& items = entry->object<List>().items;
    auto at = front ? items.begin() : items.last();
    for (uint64_t i = 0; i < count; ++i) {
      call.reply.bulk(at.value());
      front ? at.next() : at.prev();
    }
    Database database = call.database(key);
    if (count == size) {
      database.remove(key, entry);
      database.notify(list_pop_event(front), key.key);
      database.notify(KeyEvent::kDel, key.key);
    } else {
      database.list_trim(key, entry, front ? count : 0, size - count);
      database.notify(list_pop_event(front), key.key);
    }
  }
};

void list_pop_generic(Call& call, bool front) {
  const bool has_count = call.args.size() > 2;
  if (call.args.size() > 3) {
    return call.reply.error("ERR wrong number of arguments for '" + std::string(call.command.name) +
                            "' command");
  }
  int64_t count = 1;
  if (!parse_pop_count(call, count)) return;
  const KeyRef key = call.key(1);
  const Found<Entry> entry = call.find(key, Type::kList);
  if (entry.refused()) return;
  if (entry == nullptr) return has_count ? call.reply.null_array() : call.reply.null();
  if (!has_count) return ListEnds::pop_one(call, key, entry, front);
  if (count == 0) return call.reply.array(0);
  const uint64_t popped = std::min(static_cast<uint64_t>(count), collection_size(*entry));
  ListEnds::pop_many(call, key, entry, front, popped);
}

// --- Moves from one list to another ---

struct Move {
  bool from_front;
  bool to_front;
};

// REQUIRES: the source has an item, and both keys' shards are locked.
void move_item(Call& call, const KeyRef& from, const KeyRef& to, Entry* source, Move move) {
  Found<Entry> target = call.find(to, Type::kList);
  if (target.refused()) return;
  Database source_database = call.database(from);
  Database target_database = call.database(to);
  const std::string item(end_item(*source, move.from_front));
  source_database.list_pop(from, source, move.from_front);
  if (target == nullptr) target = target_database.create(to, Type::kList);
  target_database.list_push(to, target, item, move.to_front);
  target_database.notify(move.to_front ? KeyEvent::kLPush : KeyEvent::kRPush, to.key);
  call.reply.bulk(item);
  source_database.notify(list_pop_event(move.from_front), from.key);
  // Done after the push, because source and target may be the same key.
  source_database.remove_if_empty(from, source);
}

bool parse_side(const Call& call, size_t argument, bool& front) {
  if (call.option(argument, "LEFT")) {
    front = true;
  } else if (call.option(argument, "RIGHT")) {
    front = false;
  } else {
    return fail(call, errors::kSyntax);
  }
  return true;
}

// Replies null if there is no item, unless the command may block.
bool move_now(Call& call, Move move, bool may_block) {
  const KeyRef from = call.key(1);
  const Found<Entry> source = call.find(from, Type::kList);
  if (source.refused()) return true;
  if (source == nullptr) {
    if (!may_block) call.reply.null();
    return !may_block;
  }
  move_item(call, from, KeyRef(call.args[2]), source, move);
  return true;
}

void serve_blocked_move(Call& call, Bytes name) {
  Move move{false, true};  // BRPOPLPUSH
  if (call.args.size() == 6) {
    const bool parsed = parse_side(call, 3, move.from_front) && parse_side(call, 4, move.to_front);
    CHECK(parsed);
  }
  const KeyRef from(name);
  move_item(call, from, KeyRef(call.args[2]), call.find(from), move);
}

void blocking_move(Call& call, Move move, size_t timeout_at) {
  int64_t timeout_ms = 0;
  if (!parse_timeout(call, timeout_at, timeout_ms)) return;
  if (move_now(call, move, !call.nested)) return;
  call.block(call.args.subspan(1, 1), Type::kList, timeout_ms, serve_blocked_move,
             KeyRef(call.args[1]).shard != KeyRef(call.args[2]).shard);
}

}  // namespace

void lpop_command(Call& call) { list_pop_generic(call, true); }
void rpop_command(Call& call) { list_pop_generic(call, false); }
void blpop_command(Call& call) { blocking_pop<ListEnds, true>(call); }
void brpop_command(Call& call) { blocking_pop<ListEnds, false>(call); }
void lmpop_command(Call& call) { multi_pop<ListEnds>(call, false); }
void blmpop_command(Call& call) { multi_pop<ListEnds>(call, true); }

void lmove_command(Call& call) {
  Move move{};
  if (!parse_side(call, 3, move.from_front) || !parse_side(call, 4, move.to_front)) return;
  move_now(call, move, false);
}

void rpoplpush_command(Call& call) { move_now(call, {false, true}, false); }

void blmove_command(Call& call) {
  Move move{};
  if (!parse_side(call, 3, move.from_front) || !parse_side(call, 4, move.to_front)) return;
  blocking_move(call, move, 5);
}

void brpoplpush_command(Call& call) { blocking_move(call, {false, true}, 3); }

}  // namespace sluice
