// Why a command is refused: the checks that dispatch, EXEC and scripts share. For missing rights
// each has texts of its own. Also the texts for a command that does not exist.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "engine/access/acl_log.h"
#include "engine/access/acl_rules.h"
#include "engine/base/bytes.h"
#include "engine/base/status.h"
#include "engine/execution/engine.h"

namespace sluice {

struct Call;

// Checks a user's permissions and logs a refusal for ACL LOG. `client` is the connection with that
// user, also for commands of scripts.
Denial check_rights(Engine& engine, const Client& client, AclLogContext context,
                    const Command& command, std::span<const Bytes> args);

// For keys that a command accesses without naming them: whether its user may use such a key, or
// every key with this prefix, by the set of permissions that allows the command. Logs a refusal for
// ACL LOG.
bool may_also_use(const Call& call, Bytes key, KeyRight right);
bool may_also_use_prefix(const Call& call, Bytes prefix);

// Redis's texts, with at most 128 bytes of the name and of the arguments.
std::string unknown_command(std::span<const Bytes> args);
std::string unknown_subcommand(const Command& container, Bytes name);

// A failed login, for ACL LOG.
void log_failed_login(Engine& engine, const Client& client, Bytes command, Bytes username);

bool memory_is_full(Engine& engine);

// Three of those that follow, where there is a limit.
Status refuse_growth_by_limits(Engine& engine, uint32_t flags);
Status refuse_large_by_limit(Engine& engine, const Command& command, std::span<const Bytes> args,
                             uint64_t queued);
Status refuse_change_by_limit(uint64_t limit);

// Whether memory, disk and the replicated log have room for a command with these flags
// (Command::flags). Only the log may also refuse changes that grow nothing.
inline Status refuse_growth(Engine& engine, uint32_t flags) {
  const RuntimeOptions& options = engine.options();
  const bool limited = options.max_memory_bytes.load(std::memory_order_relaxed) != 0 ||
                       options.disk_nearly_full.load(std::memory_order_relaxed) ||
                       options.log_room.load(std::memory_order_relaxed) != LogRoom::kAll;
  return limited ? refuse_growth_by_limits(engine, flags) : Status();
}

// Whether the journal takes as much as these arguments hold. `queued`: the bytes of those before in
// the same transaction.
inline Status refuse_large(Engine& engine, const Command& command, std::span<const Bytes> args,
                           uint64_t queued = 0) {
  const bool limited = engine.options().max_request_bytes.load(std::memory_order_relaxed) != 0;
  return limited ? refuse_large_by_limit(engine, command, args, queued) : Status();
}

// Whether the journal takes records of so many bytes at once. A unit is in the replicated log as a
// whole or not at all, so one for which that has no room would end all writing.
inline Status refuse_large_change(Engine& engine, uint64_t bytes) {
  const uint64_t limit = engine.options().max_change_bytes.load(std::memory_order_relaxed);
  return limit != 0 && bytes > limit ? refuse_change_by_limit(limit) : Status();
}
// The same for a command whose change is larger than its arguments, with what its request has
// changed before: so many elements at this key, and `bytes()` of them together, which is called
// only if there is a limit. Replies the refusal, and returns false.
bool journal_takes(const Call& call, Bytes key, uint64_t elements,
                   const std::function<uint64_t()>& bytes);
// Elements that are these texts.
bool journal_takes_texts(const Call& call, Bytes key, std::span<const std::string> texts);
// A whole value once more, at this key.
bool journal_takes_whole(const Call& call, Bytes key, const Entry& entry);

}  // namespace sluice
