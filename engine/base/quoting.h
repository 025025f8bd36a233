// Quoting: words of a line, quoted as in Redis and redis-cli (inline commands, the configuration
// file, the first line of a script), and bytes quoted or cut for messages.
//
// Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/base/bytes.h"

namespace sluice {

// Splits a line into arguments by Redis's quoting rules and appends them to `args`: blanks
// separate; "..." knows \n \r \t \b \a \xHH and \any; '...' knows \'; a closing quote must be
// followed by a blank or the end. Decodes in place, so the views point into `line`.
// Returns false when the quotes are unbalanced, and leaves `args` as it was.
bool split_quoted_args(std::span<char> line, std::vector<Bytes>& args);

// Bytes in double quotes, with unprintable ones escaped. Long texts are cut and followed by their
// length.
std::string printable_bytes(Bytes bytes);

// The first `most` bytes, and how many more there were: for logs, as Redis's SLOWLOG has it.
std::string shortened(Bytes text, size_t most);

// The beginning of a text, at most this many bytes, without a part of a UTF-8 character at its end.
Bytes cut_text(Bytes text, size_t most);

}  // namespace sluice
