// The syntax text of a command's row as a tree, for COMMAND DOCS, which redis-cli uses for
// completion and help.
//
// Notation: lower-case words are arguments, upper-case ones tokens; `[...]` optional, `<a | b>` one
// of, `x [x ...]` one or more, `[TOKEN x [TOKEN x ...]]` any number, each with its token.
#pragma once

#include <string>
#include <vector>

#include "engine/base/bytes.h"

namespace sluice {

struct SyntaxNode {
  std::string name;
  std::string type;   // key, string, integer, double, pattern, unix-time, pure-token, oneof, block
  std::string token;  // empty: no token
  bool optional = false;
  bool multiple = false;
  bool repeats_token = false;         // repeated together with the token before it
  std::vector<SyntaxNode> arguments;  // of oneof and block
};

std::vector<SyntaxNode> parse_syntax(Bytes text);

}  // namespace sluice
