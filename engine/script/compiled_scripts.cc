#include "engine/script/compiled_scripts.h"

#include <cstring>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/hash.h"

namespace sluice {

size_t CompiledScripts::ShaHash::operator()(const Sha1Text& sha) const {
  // The digits are uniformly distributed.
  size_t hash;
  std::memcpy(&hash, sha.data(), sizeof(hash));
  return hash;
}

const CompiledScript* CompiledScripts::use(CompiledScript& compiled) {
  Order& own = order(compiled);
  own.splice(own.begin(), own, compiled.place);
  last_ = &compiled;
  return last_;
}

const CompiledScript* CompiledScripts::find(Bytes sha) {
  if (sha.size() != sizeof(Sha1Text)) return nullptr;
  // It is already the most recently used one.
  if (last_ != nullptr && view(last_->script->sha) == sha) return last_;
  Sha1Text key;
  std::memcpy(key.data(), sha.data(), key.size());
  const auto found = scripts_.find(key);
  return found == scripts_.end() ? nullptr : use(found->second);
}

const CompiledScript* CompiledScripts::find_body(Bytes body) {
  const auto found = by_body_.find(hash_bytes(body));
  if (found == by_body_.end() || found->second->script->body != body) return nullptr;
  return found->second == last_ ? last_ : use(*found->second);
}

const CompiledScript* CompiledScripts::add(const std::shared_ptr<const Script>& script,
                                           ScriptOrigin origin, bool from_code, int function,
                                           uint64_t bytes) {
  const auto [at, added] = scripts_.try_emplace(script->sha);
  CHECK(added);
  CompiledScript& compiled = at->second;
  compiled.script = script;
  compiled.function = function;
  compiled.bytes = bytes;
  compiled.origin = origin;
  compiled.from_code = from_code;
  Order& own = order(compiled);
  own.push_front(&compiled);
  compiled.place = own.begin();
  by_body_[hash_bytes(script->body)] = &compiled;
  bytes_ += bytes;
  last_ = &compiled;
  return last_;
}

void CompiledScripts::keep(const CompiledScript& compiled) {
  if (compiled.origin == ScriptOrigin::kKept) return;
  CompiledScript& own = scripts_.at(compiled.script->sha);
  kept_.splice(kept_.begin(), of_eval_, own.place);
  own.origin = ScriptOrigin::kKept;
}

CompiledScript CompiledScripts::give_up() {
  CHECK(!scripts_.empty());
  // Does not evict the current script when it is the only one of its origin.
  const bool from_kept = of_eval_.empty() || (of_eval_.back() == last_ && !kept_.empty());
  CompiledScript* const oldest = from_kept ? kept_.back() : of_eval_.back();
  (from_kept ? kept_ : of_eval_).pop_back();
  if (oldest == last_) last_ = nullptr;
  bytes_ -= oldest->bytes;
  const auto by_body = by_body_.find(hash_bytes(oldest->script->body));
  if (by_body != by_body_.end() && by_body->second == oldest) by_body_.erase(by_body);
  CompiledScript gone = std::move(*oldest);
  scripts_.erase(gone.script->sha);
  return gone;
}

void CompiledScripts::clear() {
  last_ = nullptr;
  of_eval_.clear();
  kept_.clear();
  // clear() and `= {}` would keep the buckets of the largest number of scripts so far.
  by_body_ = decltype(by_body_)();
  scripts_ = decltype(scripts_)();
  bytes_ = 0;
}

}  // namespace sluice
