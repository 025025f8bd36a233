// Sets: union, intersection and difference.
#include <algorithm>

#include "engine/base/numbers.h"
#include "engine/commands/set_order.h"
#include "engine/commands/sets.h"
#include "engine/execution/call.h"
#include "engine/execution/refusal.h"

namespace sluice {

namespace {

// A set of the result's members, made like a key's set so that the order of the members is the
// same.
struct SetResult {
  Set set;
  void add(Bytes member) {
    const uint64_t hash = hash_bytes(member);
    if (set.members.find(member, hash) != nullptr) return;
    set.members.insert(Member::make(member), hash);
    if (set.intset && !fits_intset(set, member)) set.intset = false;
  }
};

bool contains(const Entry* entry, Bytes member) {
  return entry != nullptr &&
         entry->object<Set>().members.find(member, hash_bytes(member)) != nullptr;
}

// Finds the sets of these arguments; null for absent keys. Returns false with WRONGTYPE replied.
bool find_sets(Call& call, std::span<const Bytes> names, std::vector<const Entry*>& sets) {
  for (const Bytes name : names) {
    const Found<const Entry> set = call.read(KeyRef(name), Type::kSet);
    if (set.refused()) return false;
    sets.push_back(set);
  }
  return true;
}

// Calls `visit(member)` once for each member of the result. `visit` returns false to stop.
template <class Visit>
void intersect(std::vector<const Entry*> sets, Visit visit) {
  for (const Entry* set : sets) {
    if (set == nullptr) return;
  }
  std::stable_sort(sets.begin(), sets.end(), [](const Entry* a, const Entry* b) {
    return collection_size(*a) < collection_size(*b);
  });
  bool done = false;
  sets[0]->object<Set>().members.for_each([&](const Member* member) {
    if (done) return;
    for (size_t i = 1; i < sets.size(); ++i) {
      if (!contains(sets[i], member->bytes())) return;
    }
    done = !visit(member->bytes());
  });
}

void compute(SetOperation operation, const std::vector<const Entry*>& sets, SetResult& result) {
  switch (operation) {
    case SetOperation::kUnion:
      for (const Entry* entry : sets) {
        if (entry == nullptr) continue;
        entry->object<Set>().members.for_each(
            [&](const Member* member) { result.add(member->bytes()); });
      }
      return;
    case SetOperation::kIntersection:
      intersect(sets, [&](Bytes member) {
        result.add(member);
        return true;
      });
      return;
    case SetOperation::kDifference:
      if (sets[0] == nullptr) return;
      sets[0]->object<Set>().members.for_each([&](const Member* member) {
        for (size_t i = 1; i < sets.size(); ++i) {
          if (contains(sets[i], member->bytes())) return;
        }
        result.add(member->bytes());
      });
      return;
  }
}

void set_algebra(Call& call, SetOperation operation) {
  std::vector<const Entry*> sets;
  if (!find_sets(call, call.args.subspan(1), sets)) return;
  SetResult result;
  compute(operation, sets, result);
  reply_members(call, result.set);
}

KeyEvent set_store_event(SetOperation operation) {
  switch (operation) {
    case SetOperation::kUnion:
      return KeyEvent::kSUnionStore;
    case SetOperation::kIntersection:
      return KeyEvent::kSInterStore;
    case SetOperation::kDifference:
      return KeyEvent::kSDiffStore;
  }
  return KeyEvent::kSUnionStore;
}

void set_algebra_store(Call& call, SetOperation operation) {
  std::vector<const Entry*> sets;
  if (!find_sets(call, call.args.subspan(2), sets)) return;
  SetResult result;
  compute(operation, sets, result);
  const KeyRef key(call.args[1]);
  const auto bytes_of_members = [&] {
    uint64_t bytes = 0;
    result.set.members.for_each([&](const Member* member) { bytes += member->bytes().size(); });
    return bytes;
  };
  if (!journal_takes(call, key.key, result.set.members.size(), bytes_of_members)) return;
  Database database = call.database(key);
  Entry* old = database.find(key);
  if (result.set.members.size() != 0) {
    Entry* entry = database.create(key, Type::kSet, old);
    result.set.members.for_each(
        [&](const Member* member) { database.set_add(key, entry, member->bytes()); });
    call.reply.integer(static_cast<int64_t>(result.set.members.size()));
    return database.notify(set_store_event(operation), key.key);
  }
  // If a source is missing, Redis knows the result before it begins, and replies last.
  const bool known = operation == SetOperation::kIntersection &&
                     std::find(sets.begin(), sets.end(), nullptr) != sets.end();
  if (!known) call.reply.integer(0);
  if (old != nullptr) {
    database.remove(key, old);
    database.notify(KeyEvent::kDel, key.key);
  }
  if (known) call.reply.integer(0);
}

}  // namespace

void sinter_command(Call& call) { set_algebra(call, SetOperation::kIntersection); }
void sunion_command(Call& call) { set_algebra(call, SetOperation::kUnion); }
void sdiff_command(Call& call) { set_algebra(call, SetOperation::kDifference); }
void sinterstore_command(Call& call) { set_algebra_store(call, SetOperation::kIntersection); }
void sunionstore_command(Call& call) { set_algebra_store(call, SetOperation::kUnion); }
void sdiffstore_command(Call& call) { set_algebra_store(call, SetOperation::kDifference); }

void sintercard_command(Call& call) {
  const auto numkeys = parse_i64(call.args[1]);
  if (!numkeys || *numkeys < 1) return call.reply.error("ERR numkeys should be greater than 0");
  if (static_cast<uint64_t>(*numkeys) > call.args.size() - 2) {
    return call.reply.error("ERR Number of keys can't be greater than number of args");
  }
  uint64_t limit = 0;
  for (size_t at = 2 + static_cast<size_t>(*numkeys); at < call.args.size(); ++at) {
    if (!call.option(at, "LIMIT") || at + 1 >= call.args.size()) {
      return call.reply.error(errors::kSyntax);
    }
    const auto value = parse_i64(call.args[++at]);
    if (!value || *value < 0) return call.reply.error("ERR LIMIT can't be negative");
    limit = static_cast<uint64_t>(*value);
  }
  std::vector<const Entry*> sets;
  if (!find_sets(call, call.args.subspan(2, static_cast<size_t>(*numkeys)), sets)) return;
  uint64_t count = 0;
  intersect(sets, [&](Bytes) {
    ++count;
    return limit == 0 || count < limit;
  });
  call.reply.integer(static_cast<int64_t>(count));
}

}  // namespace sluice
