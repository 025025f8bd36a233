#include "engine/script/script.h"

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

// Takes what stands before the next `separator` off the front of `text`.
Bytes take_part(Bytes& text, char separator) {
  const size_t end = text.find(separator);
  const Bytes part = text.substr(0, end);
  text = end == Bytes::npos ? Bytes() : text.substr(end + 1);
  return part;
}

// Empty: understood.
std::string parse_flags(Bytes list, uint32_t& flags) {
  while (!list.empty()) {
    const Bytes name = take_part(list, ',');
    uint32_t found = 0;
    for (const FlagName& known : kFlagNames) {
      if (known.name == name) found = known.flag;
    }
    if (found == 0) return "ERR Unexpected flag in script shebang: " + std::string(name);
    flags |= found;
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
  const Bytes engine = take_part(rest, ' ');
  if (engine != "#!lua") {
    return "ERR Unexpected engine in script shebang: " + std::string(engine);
  }
  script.flags = kScriptDeclared;
  script.code_begin = end;
  while (!rest.empty()) {
    const Bytes option = take_part(rest, ' ');
    if (option.empty()) continue;
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
