// CompiledScripts: the scripts that one Lua state has compiled, and the order of their eviction:
// first those of EVAL, then the others, each with the least recently used one first.
//
// Used by the state's thread only.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>

#include "engine/base/bytes.h"
#include "engine/script/script.h"

namespace sluice {

// The origin of a script: the call that runs it, or a command that keeps it for calls by SHA-1.
enum class ScriptOrigin : uint8_t { kEval, kKept };

// A script in one state: its source, and the function's reference in the registry.
struct CompiledScript {
  std::shared_ptr<const Script> script;
  int function = 0;
  uint64_t bytes = 0;  // its approximate size in the state
  ScriptOrigin origin = ScriptOrigin::kEval;
  bool from_code = false;  // loaded from code that ScriptEngine has, not from the text
  // In the list of its origin.
  std::list<CompiledScript*>::iterator place;
};

class CompiledScripts {
 public:
  // Looks up by the forty lower-case digits, or by the text. Returns null if it is not compiled
  // here. A script that is found counts as used.
  const CompiledScript* find(Bytes sha);
  const CompiledScript* find_body(Bytes body);
  // REQUIRES: it is absent.
  const CompiledScript* add(const std::shared_ptr<const Script>& script, ScriptOrigin origin,
                            bool from_code, int function, uint64_t bytes);
  // Keeps a script of EVAL as one that is called by its SHA-1.
  void keep(const CompiledScript& compiled);
  // Removes the next script in the order of eviction. REQUIRES: size() > 0.
  CompiledScript give_up();
  void clear();

  size_t size() const { return scripts_.size(); }
  uint64_t bytes() const { return bytes_; }

 private:
  struct ShaHash {
    size_t operator()(const Sha1Text& sha) const;
  };
  using Order = std::list<CompiledScript*>;  // most recently used first

  Order& order(const CompiledScript& compiled) {
    return compiled.origin == ScriptOrigin::kEval ? of_eval_ : kept_;
  }
  const CompiledScript* use(CompiledScript& compiled);

  std::unordered_map<Sha1Text, CompiledScript, ShaHash> scripts_;
  // By the hash of the text, so that EVAL of a known text needs no SHA-1.
  std::unordered_map<uint64_t, CompiledScript*> by_body_;
  Order of_eval_;
  Order kept_;
  CompiledScript* last_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace sluice
