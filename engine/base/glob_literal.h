// Globs that stand for one text: between a name and the glob that matches this name alone.
//
// Pure functions.
#pragma once

#include <optional>
#include <string>

#include "engine/base/bytes.h"

namespace sluice {

// The glob (glob_match) that matches this text and nothing else: `\` before each `*`, `?`, `[` and
// `\`.
std::string glob_escape(Bytes text);
// The text whose glob_escape() this is. Nothing: it is a glob in any other sense.
std::optional<std::string> glob_literal(Bytes glob);

}  // namespace sluice
