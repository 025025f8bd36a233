// Sets: commands on single sets. Set algebra is in sets_algebra.cc.
#include "engine/commands/sets.h"

#include "engine/commands/random_members.h"
#include "engine/commands/random_number.h"
#include "engine/commands/scan.h"
#include "engine/commands/set_order.h"
#include "engine/execution/call.h"
#include "engine/execution/refusal.h"

namespace sluice {

namespace {

bool has(const Entry* entry, Bytes member) {
  return entry != nullptr &&
         entry->object<Set>().members.find(member, hash_bytes(member)) != nullptr;
}

void pop_one(Call& call, const KeyRef& key, Entry* entry) {
  Database database = call.database(key);
  const std::string member(entry->object<Set>().members.random(random_number())->bytes());
  database.set_remove(key, entry, member);
  database.notify(KeyEvent::kSPop, key.key);
  call.reply.bulk(member);
  database.remove_if_empty(key, entry);
}

void pop_many(Call& call, const KeyRef& key, Entry* entry, uint64_t count) {
  Database database = call.database(key);
  const Set& set = entry->object<Set>();
  std::vector<std::string> names;
  const bool all = count >= set.members.size();
  if (all) {
    for (const Member* member : members_in_order(set)) names.emplace_back(member->bytes());
  } else {
    for (const Member* member : choose_random(set.members, count, true)) {
      names.emplace_back(member->bytes());
    }
    if (!journal_takes_texts(call, key.key, names)) return;
  }
  database.notify(KeyEvent::kSPop, key.key);
  if (all) {
    database.remove(key, entry);
  } else {
    for (const std::string& name : names) database.set_remove(key, entry, name);
  }
  call.reply.set(names.size());
  for (const std::string& name : names) call.reply.bulk(name);
  if (all) database.notify(KeyEvent::kDel, key.key);
}

}  // namespace

void sadd_command(Call& call) {
  const KeyRef key = call.key(1);
  Entry* entry = call.find_or_create(key, Type::kSet);
  if (entry == nullptr) return;
  Database database = call.database(key);
  int64_t added = 0;
  for (const Bytes member : call.args.subspan(2)) {
    if (database.set_add(key, entry, member)) ++added;
  }
  if (added != 0) database.notify(KeyEvent::kSAdd, key.key);
  call.reply.integer(added);
}

void srem_command(Call& call) {
  const KeyRef key = call.key(1);
  const Found<Entry> entry = call.find(key, Type::kSet);
  if (entry.refused()) return;
  if (entry == nullptr) return call.reply.integer(0);
  Database database = call.database(key);
  int64_t removed = 0;
  for (const Bytes member : call.args.subspan(2)) {
    if (database.set_remove(key, entry, member)) ++removed;
  }
  if (removed != 0) database.notify(KeyEvent::kSRem, key.key);
  database.remove_if_empty(key, entry);
  call.reply.integer(removed);
}

void smove_command(Call& call) {
  const KeyRef from = call.key(1);
  const KeyRef to(call.args[2]);
  const Bytes member = call.args[3];
  // Redis checks the types in this order, and the destination's only if the source is a set.
  const Found<Entry> source = call.find(from, Type::kSet);
  if (source.refused()) return;
  if (source == nullptr) return call.reply.integer(0);
  Found<Entry> target = call.find(to, Type::kSet);
  if (target.refused()) return;
  if (from.key == to.key) return call.reply.integer(has(source, member) ? 1 : 0);
  Database database = call.database(from);
  if (!database.set_remove(from, source, member)) return call.reply.integer(0);
  database.notify(KeyEvent::kSRem, from.key);
  database.remove_if_empty(from, source);
  Database target_database = call.database(to);
  if (target == nullptr) target = target_database.create(to, Type::kSet);
  if (target_database.set_add(to, target, member)) {
    target_database.notify(KeyEvent::kSAdd, to.key);
  }
  call.reply.integer(1);
}

void sismember_command(Call& call) {
  const Found<const Entry> entry = call.find(call.key(1), Type::kSet);
  if (entry.refused()) return;
  call.reply.integer(has(entry, call.args[2]) ? 1 : 0);
}

void smismember_command(Call& call) {
  const Found<const Entry> entry = call.find(call.key(1), Type::kSet);
  if (entry.refused()) return;
  call.reply.array(call.args.size() - 2);
  for (const Bytes member : call.args.subspan(2)) call.reply.integer(has(entry, member) ? 1 : 0);
}

void smembers_command(Call& call) {
  const Found<const Entry> entry = call.find(call.key(1), Type::kSet);
  if (entry.refused()) return;
  if (entry == nullptr) return call.reply.set(0);
  reply_members(call, entry->object<Set>());
}

void spop_command(Call& call) {
  const bool has_count = call.args.size() > 2;
  if (call.args.size() > 3) return call.reply.error(errors::kSyntax);
  int64_t count = 1;
  if (has_count) {
    if (!call.integer(2, count, errors::kNotPositive)) return;
    if (count < 0) return call.reply.error(errors::kNotPositive);
  }
  const KeyRef key = call.key(1);
  const Found<Entry> entry = call.find(key, Type::kSet);
  if (entry.refused()) return;
  if (!has_count) {
    if (entry == nullptr) return call.reply.null();
    return pop_one(call, key, entry);
  }
  if (entry == nullptr || count == 0) return call.reply.set(0);
  pop_many(call, key, entry, static_cast<uint64_t>(count));
}

void srandmember_command(Call& call) {
  RandomRequest request;
  if (!parse_random_request(call, {}, request)) return;
  const Found<const Entry> entry = call.find(call.key(1), Type::kSet);
  if (entry.refused()) return;
  if (entry == nullptr) return reply_random_missing(call, request);
  reply_random(
      call, request, entry->object<Set>().members,
      [&](const Member* member) { call.reply.bulk(member->bytes()); }, [](const Member*) {});
}

void sscan_command(Call& call) {
  ScanRequest request;
  const Entry* entry = begin_element_scan(call, Type::kSet, request);
  if (entry == nullptr) return;
  const Set& set = entry->object<Set>();
  const auto write = [&](const Member* member) {
    if (!request.matches(member->bytes())) return size_t{0};
    call.reply.bulk(member->bytes());
    return size_t{1};
  };
  if (!set.intset) return reply_scan(call, request, set.members, write);
  const size_t mark = begin_whole_scan(call);
  size_t count = 0;
  for (const Member* member : members_in_order(set)) count += write(member);
  call.reply.close_array(mark, count);
}

}  // namespace sluice
