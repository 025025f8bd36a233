// Script: the text of one Lua script with its SHA-1, and the declarations in its first line.
//
// Constant once made (except for mutable members), and shared by the Lua states of all threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/bytes.h"
#include "engine/base/sha1.h"
#include "engine/base/status.h"

namespace sluice {

// The flags of `#!lua flags=...`.
enum : uint32_t {
  kScriptNoWrites = 1U << 0,
  kScriptAllowOom = 1U << 1,
  kScriptAllowStale = 1U << 2,
  kScriptNoCluster = 1U << 3,
  kScriptAllowCrossSlotKeys = 1U << 4,
  // The script has a `#!lua` line at all, and so follows stricter rules.
  kScriptDeclared = 1U << 8,
};

// The names of these flags, of scripts and functions.
struct ScriptFlagName {
  Bytes name;
  uint32_t flag;
};
inline constexpr ScriptFlagName kScriptFlagNames[] = {
    {"no-writes", kScriptNoWrites},
    {"allow-oom", kScriptAllowOom},
    {"allow-stale", kScriptAllowStale},
    {"no-cluster", kScriptNoCluster},
    {"allow-cross-slot-keys", kScriptAllowCrossSlotKeys},
};

struct Script {
  Sha1Text sha{};
  std::string body;
  uint32_t flags = 0;
  // The offset of the Lua code: after the `#!` line, but including its line end so that line
  // numbers are right.
  size_t code_begin = 0;
  // It has declared its keys and yet accessed others: from then on it gets all shards. Set by any
  // thread.
  mutable std::atomic<bool> reaches_further{false};

  // It has been compiled once, within the limits for sources. Set by any thread.
  mutable std::atomic<bool> compiles{false};

  bool has(uint32_t flag) const { return (flags & flag) != 0; }
  Bytes code() const { return Bytes(body).substr(code_begin); }
};

// A script kept by the server: its text, and the compiled code of a machine that has evicted it,
// which loads in a fraction of the time. Null: only the text is known.
struct KeptScript {
  std::shared_ptr<const Script> script;
  std::shared_ptr<const std::string> code;
};

// Refused if the first line is invalid.
Result<std::shared_ptr<const Script>> make_script(Bytes body);

}  // namespace sluice
