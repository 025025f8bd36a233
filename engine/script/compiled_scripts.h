// CompiledScripts: the scripts that one Lua state has compiled, and the order in which it gives
// them up: those of EVAL first, then the others, each beginning with the one used longest ago.
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

// How a script came: with the call that runs it, or to be called by its SHA-1.
enum class ScriptOrigin : uint8_t { kEval, kKept };

// A script in one state: its source, and the function's place in the registry.
struct CompiledScript {
  std::shared_ptr<const Script> script;
  int function = 0;
  uint64_t bytes = 0;  // what it takes in the state, about
  ScriptOrigin origin = ScriptOrigin::kEval;
  bool from_code = false;  // not from its text: ScriptEngine has its code
  // In the order of its origin.
  std::list<CompiledScript*>::iterator place;
};

class CompiledScripts {
 public:
  // By the forty digits in lower case, or by the text. Null: not compiled here. What is found
  // counts as used.
  const CompiledScript* find(Bytes sha);
  const CompiledScript* find_body(Bytes body);
  // REQUIRES: it is not there.
  const CompiledScript* add(const std::shared_ptr<const Script>& script, ScriptOrigin origin,
                            bool from_code, int function, uint64_t bytes);
  // The script that came by EVAL is to be kept as one that is called by its SHA-1.
  void keep(const CompiledScript& compiled);
  // Takes out the next one to be given up. REQUIRES: size() > 0.
  CompiledScript give_up();
  void clear();

  size_t size() const { return scripts_.size(); }
  uint64_t bytes() const { return bytes_; }

 private:
  struct ShaHash {
    size_t operator()(const Sha1Text& sha) const;
  };
  using Order = std::list<CompiledScript*>;  // the one used last is the first

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
