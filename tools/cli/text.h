// Formats numbers, times and arbitrary bytes for a terminal.
//
// Pure functions, apart from the time zone and the locale, which `use_utf8` sets.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/bytes.h"

namespace sluice::cli {

// Call once, before using the functions that measure widths.
void use_utf8();

// Escapes unprintable characters (as in \n and \x1b). A job's name or payload must not reach the
// terminal as a control sequence.
std::string printable(Bytes bytes);
// A queue's name for people.
std::string shown_queue(Bytes name);
// Number of columns that a printable text takes.
size_t text_width(Bytes text);
// The text in at most `width` columns; ends with … if it was cut.
std::string fit_text(Bytes text, size_t width);

// The text with blanks up to this number of columns.
std::string padded(std::string text, size_t width);

// 1,234,567
std::string count_text(int64_t value);
// 0, 3.4, 1,234: a second
std::string rate_text(double value);
// 850 ms, 4.2 s, 3 m 20 s, 5 h 10 m, 3 d 4 h; – if negative (unknown)
std::string duration_text(int64_t ms);
// 14:03:59.120, with the date if it is not the day of `now_ms`. Local time.
std::string moment_text(int64_t unix_ms, int64_t now_ms);

}  // namespace sluice::cli
