// Why a command is refused, where scripts and EXEC say it in other words than dispatch does.
#pragma once

#include <span>
#include <string>

#include "engine/access/acl_log.h"
#include "engine/access/acl_rules.h"
#include "engine/base/bytes.h"
#include "engine/execution/engine.h"

namespace sluice {

struct Call;

// Checks a user's rights and notes a refusal for ACL LOG. `client` speaks for its user; it is the
// connection's own also where a script asks.
Denial check_rights(Engine& engine, const Client& client, AclLogContext context,
                    const Command& command, std::span<const Bytes> args);

// Keys that a command reaches without naming them: whether who has sent it may use such a key as
// well / every key with this prefix, by the set of permissions that allows the command. A refusal
// is noted for ACL LOG.
bool may_also_use(const Call& call, Bytes key, KeyRight right);
bool may_also_use_prefix(const Call& call, Bytes prefix);

// A login that failed, for ACL LOG.
void log_failed_login(Engine& engine, const Client& client, Bytes command, Bytes username);

bool memory_is_full(Engine& engine);
// The error for a command with these flags (Command::flags) when there is no room for what it adds
// to the memory or to the disk. Empty: there is, or it adds nothing.
std::string refuse_growth(Engine& engine, uint32_t flags);

}  // namespace sluice
