#include "engine/script/script.h"

#include <algorithm>
#include <span>
#include <vector>

#include "engine/base/quoting.h"

namespace sluice {

namespace {

// Parses a list separated by commas.
Status parse_flags(Bytes list, uint32_t& flags) {
  for (size_t begin = 0; begin <= list.size() && !list.empty();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const Bytes name = list.substr(begin, end - begin);
    uint32_t found = 0;
    for (const ScriptFlagName& known : kScriptFlagNames) {
      if (known.name == name) found = known.flag;
    }
    if (found == 0) return refusal("ERR Unexpected flag in script shebang: " + std::string(name));
    flags |= found;
    begin = end + 1;
  }
  return {};
}

// Parses `#!lua flags=a,b`; a script need not have such a line.
Status parse_first_line(Script& script) {
  const Bytes body = script.body;
  if (body.substr(0, 2) != "#!") return {};
  const size_t end = body.find('\n');
  if (end == Bytes::npos) return refusal("ERR Invalid script shebang");
  std::string line(body.substr(0, end));
  std::vector<Bytes> words;
  if (!split_quoted_args(line, words)) return refusal("ERR Invalid engine in script shebang");
  if (words[0] != "#!lua") {
    return refusal("ERR Unexpected engine in script shebang: " + std::string(words[0]));
  }
  script.flags = kScriptDeclared;
  script.code_begin = end;
  for (const Bytes option : std::span(words).subspan(1)) {
    constexpr Bytes kFlags = "flags=";
    if (option.substr(0, kFlags.size()) != kFlags) {
      return refusal("ERR Unknown lua shebang option: " + std::string(option));
    }
    Status status = parse_flags(option.substr(kFlags.size()), script.flags);
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const Script>> make_script(Bytes body) {
  auto script = std::make_shared<Script>();
  script->body = body;
  Status status = parse_first_line(*script);
  if (!status.ok()) return status;
  script->sha = sha1_hex(body);
  return std::shared_ptr<const Script>(std::move(script));
}

}  // namespace sluice
