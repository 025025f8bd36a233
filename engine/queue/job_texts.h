// The texts of jobs that people search: parts of ids and errors, and what errors have in common
// that differ only in numbers and ids. Pure functions.
#pragma once

#include <string>

#include "engine/base/bytes.h"

namespace sluice {

class Job;

// The job's last error; empty without one.
Bytes error_of(const Job& job);

// Patterns are cut at this length.
inline constexpr size_t kMaxPatternBytes = 256;

// The line of an error that says most, without blanks around it: the first one, and of a traceback
// of Python the last one, which names the exception.
Bytes telling_line(Bytes error);

// The telling line of an error with `#` for each run of digits, and of hexadecimal digits that is a
// word of its own and has a digit; such words joined by `-`, as in UUIDs and dates, are one run.
std::string error_pattern(Bytes error);

// Whether the text has this part, whatever the case of ASCII letters.
bool contains_ignore_case(Bytes text, Bytes part);

}  // namespace sluice
