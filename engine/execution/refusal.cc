#include "engine/execution/refusal.h"

#include <algorithm>

#include "engine/access/acl.h"
#include "engine/base/quoting.h"
#include "engine/clients/describe_client.h"
#include "engine/execution/call.h"
#include "engine/keyspace/collections.h"
#include "engine/ports/group_port.h"
#include "engine/reply/reply.h"

namespace sluice {

namespace {

// What the ACL log keeps of a name that a client gave.
constexpr size_t kLoggedBytes = 1024;
// A record has about so many bytes besides its key and its element.
constexpr uint64_t kRecordBytes = 8;

void log(Engine& engine, const Client& client, AclLogEntry entry) {
  for (std::string* text : {&entry.object, &entry.username}) {
    *text = shortened(*text, kLoggedBytes);
  }
  entry.at_ms = engine.server().steady_time_us() / 1000;
  entry.client = describe_client(engine.server().client(client));
  engine.acl_log().add(std::move(entry), engine.options().acl_log_max_entries.load());
}

}  // namespace

Denial check_rights(Engine& engine, const Client& client, AclLogContext context,
                    const Command& command, std::span<const Bytes> args) {
  const User* user = client.user.get();
  if (user == nullptr || user->unrestricted.load(std::memory_order_relaxed)) return Denial::kNone;
  const Verdict verdict = user->rules()->check(command, args);
  if (verdict.denial == Denial::kNone) return Denial::kNone;
  AclLogEntry entry;
  entry.context = context;
  entry.username = user->name;
  entry.object = args[verdict.argument];
  switch (verdict.denial) {
    case Denial::kNone:
      break;
    case Denial::kCommand:
      entry.reason = "command";
      entry.object = CommandTable::full_name(command);
      break;
    case Denial::kKey:
      entry.reason = "key";
      break;
    case Denial::kChannel:
      entry.reason = "channel";
      break;
  }
  log(engine, client, std::move(entry));
  return verdict.denial;
}

namespace {

// Null if the user is unrestricted.
const User* restricted_user(const Call& call) {
  const User* user = (call.waiter != nullptr ? call.waiter->user : call.client.user).get();
  const bool restricted = user != nullptr && !user->unrestricted.load(std::memory_order_relaxed);
  return restricted ? user : nullptr;
}

// `object`: the key, or a pattern for many keys.
void note_further_key(const Call& call, const User& user, Bytes object) {
  // The waiter may be connected to another thread.
  if (call.waiter != nullptr) return;
  const Client& client = call.client.in_script ? call.client.script_call->client : call.client;
  AclLogEntry entry;
  entry.reason = "key";
  entry.context = call.client.in_script ? AclLogContext::kLua
                  : client.in_multi     ? AclLogContext::kMulti
                                        : AclLogContext::kTopLevel;
  entry.username = user.name;
  entry.object = object;
  log(call.engine, client, std::move(entry));
}

}  // namespace

bool may_also_use(const Call& call, Bytes key, KeyRight right) {
  const User* user = restricted_user(call);
  if (user == nullptr || user->rules()->may_use_key(call.command, call.args, key, right)) {
    return true;
  }
  note_further_key(call, *user, key);
  return false;
}

bool may_also_use_prefix(const Call& call, Bytes prefix) {
  const User* user = restricted_user(call);
  if (user == nullptr || user->rules()->may_use_prefix(call.command, call.args, prefix)) {
    return true;
  }
  note_further_key(call, *user, prefix);
  return false;
}

// A standby holds what the primary has, whatever its own limit is.
bool memory_is_full(Engine& engine) {
  if (engine.following.load(std::memory_order_relaxed)) return false;
  const uint64_t limit = engine.options().max_memory_bytes.load(std::memory_order_relaxed);
  const auto is_full = [&] { return engine.server().used_memory_bytes() > limit; };
  if (limit == 0 || !is_full()) return false;
  // Deleted values count until they are freed.
  if (engine.reclaimer().pending() == 0) return true;
  engine.reclaimer().wait();
  return is_full();
}

namespace {

// Whether the replicated log has room.
Status refuse_for_log(Engine& engine, bool grows) {
  const LogRoom room = engine.options().log_room.load(std::memory_order_relaxed);
  if (room == LogRoom::kAll || (room == LogRoom::kNoGrowth && !grows)) return {};
  const bool nothing = room == LogRoom::kNothing;
  const std::shared_ptr<const GroupView> view = engine.server().group()->view();
  return refusal(std::string("MISCONF The journal in etcd holds more than ") +
                 (nothing ? "95" : "75") + " % of journal-log-bytes (" +
                 std::to_string(view->log_limit_bytes) +
                 "): " + (nothing ? "all changes" : "commands that grow the data") +
                 " are refused until it is trimmed. What keeps it: " + view->log_kept_by +
                 ". A larger journal-log-bytes gives time.");
}

}  // namespace

Status refuse_growth_by_limits(Engine& engine, uint32_t flags) {
  const bool grows = (flags & kNeedsRoom) != 0;
  if ((flags & kDenyOom) != 0 && memory_is_full(engine)) {
    return refusal(std::string(errors::kOutOfMemory));
  }
  if (grows && engine.options().disk_nearly_full.load(std::memory_order_relaxed)) {
    return refusal(
        "MISCONF The disk is nearly full: commands that grow the data are refused until "
        "more than min-free-disk is free again.");
  }
  return grows || (flags & kWrite) != 0 ? refuse_for_log(engine, grows) : Status();
}

Status refuse_large_by_limit(Engine& engine, const Command& command, std::span<const Bytes> args,
                             uint64_t queued) {
  if ((command.flags & (kWrite | kScriptShards)) == 0) return {};
  const uint64_t limit = engine.options().max_request_bytes.load(std::memory_order_relaxed);
  uint64_t bytes = queued;
  for (const Bytes arg : args) bytes += arg.size();
  if (bytes <= limit) return {};
  return refusal("ERR the arguments have " + std::to_string(bytes) + " bytes" +
                 (queued == 0 ? "" : ", with those before in the transaction") + ": at most " +
                 std::to_string(limit) + ", a quarter of journal-log-bytes, are allowed");
}

Status refuse_change_by_limit(uint64_t limit) {
  return refusal("ERR the change would have more than " + std::to_string(limit) +
                 " bytes in the journal, which takes no more at once (journal-log-bytes)");
}

bool journal_takes(const Call& call, Bytes key, uint64_t elements,
                   const std::function<uint64_t()>& bytes) {
  if (call.engine.options().max_change_bytes.load(std::memory_order_relaxed) == 0) return true;
  const uint64_t records = bytes() + elements * (key.size() + kRecordBytes);
  const Status status = refuse_large_change(call.engine, call.unit.changed_bytes() + records);
  return status.ok() || fail(call, status.message());
}

bool journal_takes_texts(const Call& call, Bytes key, std::span<const std::string> texts) {
  return journal_takes(call, key, texts.size(), [&] {
    uint64_t bytes = 0;
    for (const std::string& text : texts) bytes += text.size();
    return bytes;
  });
}

bool journal_takes_whole(const Call& call, Bytes key, const Entry& entry) {
  return journal_takes(call, key, collection_size(entry), [&] { return contents_bytes(entry); });
}

namespace {

// At most `limit` bytes, up to the first NUL, as C prints them.
std::string shown(Bytes bytes, size_t limit) {
  return std::string(bytes.substr(0, std::min(limit, bytes.find('\0'))));
}

}  // namespace

std::string unknown_command(std::span<const Bytes> args) {
  std::string text =
      "ERR unknown command '" + shown(args[0], 128) + "', with args beginning with: ";
  std::string listed;
  for (size_t i = 1; i < args.size() && listed.size() < 128; ++i) {
    listed += "'" + shown(args[i], 128 - listed.size()) + "' ";
  }
  return text + listed;
}

std::string unknown_subcommand(const Command& container, Bytes name) {
  return "ERR unknown subcommand '" + shown(name, 128) + "'. Try " + to_upper(container.name) +
         " HELP.";
}

void log_failed_login(Engine& engine, const Client& client, Bytes command, Bytes username) {
  AclLogEntry entry;
  entry.reason = "auth";
  entry.context = client.in_multi ? AclLogContext::kMulti : AclLogContext::kTopLevel;
  entry.object = command;
  entry.username = username;
  log(engine, client, std::move(entry));
}

}  // namespace sluice
