#include "engine/script/script.h"

#include <algorithm>

namespace sluice {

namespace {

struct FlagName {
  Bytes name;
  uint32_t flag;
};

constexpr FlagName kFlagNames[] = {
    {"no-writes", kScriptNoWrites},
    {"allow-oom", kScriptAllowOom},
    {"allow-stale", kScriptAllowStale},
    {"no-cluster", kScriptNoCluster},
    {"allow-cross-slot-keys", kScriptAllowCrossSlotKeys},
};

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Takes the next word off the front of `text`; empty: there is none left.
Bytes take_word(Bytes& text) {
  size_t begin = 0;
  while (begin < text.size() && is_space(text[begin])) ++begin;
  size_t end = begin;
  while (end < text.size() && !is_space(text[end])) ++end;
  const Bytes word = text.substr(begin, end - begin);
  text = text.substr(end);
  return word;
}

// A list with commas. Empty: understood.
std::string parse_flags(Bytes list, uint32_t& flags) {
  for (size_t begin = 0; begin <= list.size() && !list.empty();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const Bytes name = list.substr(begin, end - begin);
    uint32_t found = 0;
    for (const FlagName& known : kFlagNames) {
      if (known.name == name) found = known.flag;
    }
    if (found == 0) return "ERR Unexpected flag in script shebang: " + std::string(name);
    flags |= found;
    begin = end + 1;
  }
  return {};
}

// Reads `#!lua flags=a,b`. Empty: understood, or there is no such line.
std::string parse_first_line(Script& script) {
  const Bytes body = script.body;
  if (body.substr(0, 2) != "#!") return {};
  const size_t end = body.find('\n');
  if (end == Bytes::npos) return "ERR Invalid script shebang";
  Bytes rest = body.substr(0, end);
  const Bytes engine = take_word(rest);
  if (engine != "#!lua") {
    return "ERR Unexpected engine in script shebang: " + std::string(engine);
  }
  script.flags = kScriptDeclared;
  script.code_begin = end;
  for (Bytes option = take_word(rest); !option.empty(); option = take_word(rest)) {
    constexpr Bytes kFlags = "flags=";
    if (option.substr(0, kFlags.size()) != kFlags) {
      return "ERR Unknown lua shebang option: " + std::string(option);
    }
    std::string error = parse_flags(option.substr(kFlags.size()), script.flags);
    if (!error.empty()) return error;
  }
  return {};
}

}  // namespace

std::shared_ptr<const Script> make_script(Bytes body, std::string& error) {
  auto script = std::make_shared<Script>();
  script->body = body;
  error = parse_first_line(*script);
  if (!error.empty()) return nullptr;
  script->sha = sha1_hex(body);
  return script;
}

}  // namespace sluice
