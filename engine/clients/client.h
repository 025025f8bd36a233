// Client: what the engine knows of one connection. Owned by the connection (net/io/session.h or a
// test), and used by its thread only, except where noted.
#pragma once

#include <atomic>
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

// kSkip: the command that runs is not answered.
enum class ReplyMode : uint8_t { kOn, kOff, kSkip };

// A command between MULTI and EXEC.
struct QueuedCommand {
  const Command* command = nullptr;
  std::vector<std::string> arguments;
};

struct WatchedKey {
  int database = 0;
  std::string key;
  // It had expired already when it was watched: its deletion is no change then.
  bool expired = false;
};

struct Client {
  uint64_t id = 0;
  int database = 0;
  int protocol = 2;
  // Who speaks; null until authenticated where a password is needed. Set at connect and by AUTH.
  std::shared_ptr<User> user;
  std::string address;  // "127.0.0.1:5555", for CLIENT LIST, MONITOR, SLOWLOG
  std::string name;
  std::string library_name;
  std::string library_version;
  std::shared_ptr<ClientPort> port;

  // What it asked for last, for CLIENT LIST; set by Execution.
  const Command* last_command = nullptr;
  bool close_after_reply = false;
  bool no_evict = false;
  bool no_touch = false;  // keys that it looks up are not noted as used, but by TOUCH
  bool monitoring = false;
  bool in_script = false;             // it speaks for a script
  const Call* script_call = nullptr;  // which EVAL or FCALL that is

  // --- CLIENT REPLY ---
  ReplyMode reply_mode = ReplyMode::kOn;
  bool skips_next = false;
  // What stands behind this in its output is not sent, unless the mode is kOn.
  size_t muted_from = 0;

  // --- MULTI ---
  bool in_multi = false;
  bool multi_failed = false;  // a command could not be queued: EXEC answers EXECABORT
  std::vector<QueuedCommand> queued;
  size_t queued_bytes = 0;  // of their arguments, with some for each of them
  std::vector<WatchedKey> watched;
  // Its own allocation: Departures may keep it when the connection is gone.
  std::unique_ptr<WatchSet> watch_set = std::make_unique<WatchSet>();

  // --- Blocking --- set by a handler through Call::block; the connection stops reading requests
  // until its port gets the reply, or the time-out comes (Engine::cancel_waiter).
  std::shared_ptr<Waiter> waiter;
  // A request waits for the end of CLIENT PAUSE.
  bool postponed = false;

  // --- Client-side caching --- (engine/clients/tracking.h); null: it tracks nothing.
  std::shared_ptr<TrackedClient> tracking;

  // --- Pub/sub --- names this connection is subscribed to (engine/clients/pubsub.h holds the other
  // side).
  std::set<std::string, std::less<>> channels;
  std::set<std::string, std::less<>> patterns;
  std::set<std::string, std::less<>> shard_channels;
  size_t subscriptions() const { return channels.size() + patterns.size() + shard_channels.size(); }
};

}  // namespace sluice
