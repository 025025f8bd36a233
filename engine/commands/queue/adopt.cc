// Q.ADOPT: makes a queue adopt plain Redis keys.
#include <algorithm>
#include <string>
#include <utility>

#include "engine/access/acl.h"
#include "engine/commands/queue/adopted.h"
#include "engine/commands/queue/args.h"
#include "engine/commands/queue/queues.h"
#include "engine/execution/refusal.h"

namespace sluice {

namespace {

// Returns false with the error replied.
bool parse_adopt(Call& call, AdoptedDefinition& definition) {
  OptionReader options(call, 2);
  while (options.next()) {
    if (options.is("PENDING", 1)) {
      definition.pending.emplace_back(options.value());
      if (definition.pending.size() > kMaxAdoptedKeys) options.bad_value();
    } else if (options.is("ACTIVE", 1)) {
      if (!definition.active.empty()) options.fail(errors::kSyntax);
      definition.active = options.value();
      if (definition.active.empty()) options.bad_value();
    } else if (options.is("PAYLOAD", 1)) {
      definition.payload_prefix = options.name(1).value_or(Bytes());
    } else if (options.is("UNIT", 1)) {
      definition.unit = options.integer(1, kMaxExact).value_or(1);
    } else if (options.is("LEASE", 1)) {
      definition.lease_ms = options.integer(kMinLeaseMs, kMaxLeaseMs).value_or(0);
    } else {
      options.unknown();
    }
  }
  if (options.failed()) return false;
  if (definition.pending.empty() || definition.active.empty()) return fail(call, errors::kSyntax);
  // The band comes either from the key or from the score.
  if (definition.unit == 0 || definition.pending.size() == 1) return true;
  reply_bad_field(call, "unit");
  return false;
}

// A key can be adopted if it is not used by this or another queue, and has the right type or does
// not exist. Returns false with the error replied.
bool check_key(Call& call, const std::string& name, Bytes option, Type wanted) {
  const KeyRef key(name);
  const Queue* adopter = adopted_work(call).adopter_of(call.database(key).index(), name);
  const bool of_another = adopter != nullptr && adopter->key != call.args[1];
  if (of_another || name == call.args[1]) {
    reply_bad_field(call, option);
    return false;
  }
  return !call.find(key, wanted).refused();
}

bool check_keys(Call& call, const AdoptedDefinition& definition) {
  std::vector<std::string> pending = definition.pending;
  std::sort(pending.begin(), pending.end());
  if (std::adjacent_find(pending.begin(), pending.end()) != pending.end()) {
    reply_bad_field(call, "pending");
    return false;
  }
  if (std::binary_search(pending.begin(), pending.end(), definition.active)) {
    reply_bad_field(call, "active");
    return false;
  }
  return check_key(call, definition.active, "active", Type::kSet) &&
         std::all_of(pending.begin(), pending.end(), [&](const std::string& key) {
           return check_key(call, key, "pending", Type::kSortedSet);
         });
}

// Payloads may have any name with the prefix. Returns false with the error replied.
bool check_prefix(Call& call, const AdoptedDefinition& definition) {
  const std::string& prefix = definition.payload_prefix;
  if (prefix.empty() || may_also_use_prefix(call, prefix)) return true;
  return fail(
      call,
      "NOPERM PAYLOAD needs read and write access to every key that begins with the prefix: "
      "allkeys, or a key pattern of the prefix, or of a beginning of it, followed by *");
}

void end_adoption(Call& call, const KeyRef& key) {
  const Found<Queue> queue = find_queue(call, key);
  if (queue.refused()) return;
  if (queue != nullptr && queue->adopted != nullptr) adopted_work(call).end(*queue);
  call.reply.ok();
}

}  // namespace

void q_adopt_command(Call& call) {
  const KeyRef key = call.key(1);
  if (call.args.size() == 3 && call.option(2, "OFF")) return end_adoption(call, key);
  AdoptedDefinition definition;
  if (!parse_adopt(call, definition) || !check_prefix(call, definition)) return;
  if (call.client.user != nullptr) definition.adopter = call.client.user->name;
  Found<Queue> queue = find_queue(call, key);
  if (queue.refused() || !check_keys(call, definition)) return;
  // Refused, because the adoption would hide jobs of the queue, or take a key from the queue that
  // has adopted it.
  const bool has_jobs = queue != nullptr && queue->jobs.size() != 0;
  if (has_jobs || adopted_work(call).adopter_of(call.database(key).index(), key.key) != nullptr) {
    return reply_bad_field(call, "queue");
  }
  if (queue == nullptr) queue = find_or_create_queue(call, key);
  adopted_work(call).adopt(*queue, std::move(definition));
  call.reply.ok();
}

}  // namespace sluice
