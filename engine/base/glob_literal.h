// What is literal in a glob: converts between a name and the glob that matches only this name.
//
// Pure functions.
#pragma once

#include <optional>
#include <string>

#include "engine/base/bytes.h"

namespace sluice {

// The glob (glob_match) that matches only this text: `\` before each `*`, `?`, `[` and `\`.
std::string glob_escape(Bytes text);
// The text whose glob_escape() is `glob`. Returns nothing for a glob that may match other texts.
std::optional<std::string> glob_literal(Bytes glob);
// The number of bytes that each text that it matches has because the glob says so.
size_t glob_literal_bytes(Bytes glob);

}  // namespace sluice
