// Script: the text of one Lua script with its SHA-1, and what its first line declares.
//
// Constant once made (but for what is mutable), and shared by the Lua states of all threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/bytes.h"
#include "engine/base/sha1.h"

namespace sluice {

// What `#!lua flags=...` may say.
enum : uint32_t {
  kScriptNoWrites = 1U << 0,
  kScriptAllowOom = 1U << 1,
  kScriptAllowStale = 1U << 2,
  kScriptNoCluster = 1U << 3,
  kScriptAllowCrossSlotKeys = 1U << 4,
  // The script has such a line at all: it then keeps to stricter rules.
  kScriptDeclared = 1U << 8,
};

struct Script {
  Sha1Text sha{};
  std::string body;
  uint32_t flags = 0;
  // Where Lua begins: after the `#!` line, whose line end stays so that line numbers are right.
  size_t code_begin = 0;
  // It declared itself and yet reached for keys outside of KEYS once: from then on it gets all
  // shards. Set by any thread.
  mutable std::atomic<bool> reaches_further{false};

  // It has been compiled once, within the bounds for sources. Set by any thread.
  mutable std::atomic<bool> compiles{false};

  bool has(uint32_t flag) const { return (flags & flag) != 0; }
  Bytes code() const { return Bytes(body).substr(code_begin); }
};

// A script as the server keeps it: its text, and what was made of it where a machine has given that
// up: that is loaded in a fraction of the time. Null: nothing is known but the text.
struct KeptScript {
  std::shared_ptr<const Script> script;
  std::shared_ptr<const std::string> code;
};

// Null with the whole error message in `error`: the first line is not understood.
std::shared_ptr<const Script> make_script(Bytes body, std::string& error);

}  // namespace sluice
