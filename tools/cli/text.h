// Numbers, times and arbitrary bytes as people read them on a terminal.
//
// Pure functions but for the time zone and the locale, which `use_utf8` sets.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/bytes.h"

namespace sluice::cli {

// To be called once, before the widths of texts are asked for.
void use_utf8();

// The bytes with whatever is no printable character escaped (\n, \x1b): what a job's name or
// payload holds must not reach the terminal as a command to it.
std::string printable(Bytes bytes);
// Columns that a printable text takes.
size_t text_width(Bytes text);
// The text in at most `width` columns, with … where it was cut.
std::string fit_text(Bytes text, size_t width);

// 1,234,567
std::string count_text(int64_t value);
// 0, 3.4, 1,234: a second
std::string rate_text(double value);
// 850 ms, 4.2 s, 3 m 20 s, 5 h 10 m, 3 d 4 h; – for what is negative: unknown
std::string duration_text(int64_t ms);
// 14:03:59.120, with the date where it is another day than `now_ms`. Local time.
std::string moment_text(int64_t unix_ms, int64_t now_ms);

int64_t wall_ms();

}  // namespace sluice::cli
