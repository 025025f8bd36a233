// The screen of sluice top, as lines.
//
// Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/cli/table.h"
#include "tools/cli/top_model.h"

namespace sluice::cli {

// At most as many lines as the screen has, each within its width. `from`: the server's address.
std::vector<std::string> top_lines(const TopModel& model, const Screen& screen,
                                   const std::string& from);

// Divides rows among lists that want so many each: none gets more than it wants, none less than an
// equal share if it wants that.
std::vector<size_t> share_rows(size_t rows, std::span<const size_t> wanted);

}  // namespace sluice::cli
