// Client: the engine's state of one connection. Owned by the connection (net/io/session.h or a
// test), and used by its thread only, except where noted.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/keyspace/shard.h"
#include "engine/keyspace/waiter.h"
#include "engine/unit/unit.h"

namespace sluice {

struct Call;
struct Command;
struct TrackedClient;
struct User;

// kSkip: the current command is not answered.
enum class ReplyMode : uint8_t { kOn, kOff, kSkip };

// A command between MULTI and EXEC.
struct QueuedCommand {
  const Command* command = nullptr;
  std::vector<std::string> arguments;
};

struct WatchedKey {
  int database = 0;
  std::string key;
  // The key had already expired when it was watched, so its deletion is not a change.
  bool expired = false;
};

struct Client {
  uint64_t id = 0;
  int database = 0;
  int protocol = 2;
  // The authenticated user, set at connect and by AUTH. Null before authentication, if a password
  // is needed.
  std::shared_ptr<User> user;
  std::string address;  // "127.0.0.1:5555", for CLIENT LIST, MONITOR, SLOWLOG
  bool unix_socket = false;
  std::string name;
  std::string library_name;
  std::string library_version;
  std::shared_ptr<ClientPort> port;

  // The last command, for CLIENT LIST; set by Execution.
  const Command* last_command = nullptr;
  bool close_after_reply = false;
  bool no_evict = false;
  bool no_touch = false;  // only TOUCH updates the access time of keys
  bool monitoring = false;
  bool in_script = false;             // it runs commands for a script
  const Call* script_call = nullptr;  // the EVAL or FCALL of that script

  // --- CLIENT REPLY ---
  ReplyMode reply_mode = ReplyMode::kOn;
  bool skips_next = false;
  // Output from this offset on is not sent, unless the mode is kOn.
  size_t muted_from = 0;

  // --- MULTI ---
  bool in_multi = false;
  bool multi_failed = false;  // a command could not be queued: EXEC replies EXECABORT
  std::vector<QueuedCommand> queued;
  size_t queued_bytes = 0;  // bytes of their arguments, with an allowance for each of them
  std::vector<WatchedKey> watched;
  // A separate allocation: Departures may keep it after the connection has closed.
  std::unique_ptr<WatchSet> watch_set = std::make_unique<WatchSet>();

  // --- Blocking ---
  // Set by a handler through Call::block. The connection stops reading requests until its port gets
  // the reply, or until the time-out (Engine::cancel_waiter).
  std::shared_ptr<Waiter> waiter;
  // A request waits for the end of CLIENT PAUSE.
  bool postponed = false;

  // --- Client-side caching ---
  // See engine/clients/tracking.h. Null: tracking is off.
  std::shared_ptr<TrackedClient> tracking;

  // --- Pub/sub ---
  // The names that this connection subscribes to. engine/clients/pubsub.h holds the subscribers of
  // each name.
  std::set<std::string, std::less<>> channels;
  std::set<std::string, std::less<>> patterns;
  std::set<std::string, std::less<>> shard_channels;
  size_t subscriptions() const { return channels.size() + patterns.size() + shard_channels.size(); }
};

}  // namespace sluice
