// LCS: the longest common subsequence of two strings.
#include <algorithm>

#include "engine/commands/strings.h"
#include "engine/execution/call.h"
#include "engine/execution/engine.h"

namespace sluice {

namespace {

struct LcsOptions {
  bool length = false;
  bool ranges = false;
  bool with_match_length = false;
  int64_t min_match_length = 0;
};

struct Range {
  size_t first_a, last_a, first_b, last_b;
};

bool parse_options(const Call& call, LcsOptions& options) {
  for (size_t at = 3; at < call.args.size(); ++at) {
    if (call.option(at, "IDX")) {
      options.ranges = true;
    } else if (call.option(at, "LEN")) {
      options.length = true;
    } else if (call.option(at, "WITHMATCHLEN")) {
      options.with_match_length = true;
    } else if (call.option(at, "MINMATCHLEN") && at + 1 < call.args.size()) {
      if (!call.integer(++at, options.min_match_length)) return false;
      options.min_match_length = std::max<int64_t>(options.min_match_length, 0);
    } else {
      return fail(call, errors::kSyntax);
    }
  }
  if (!options.ranges || !options.length) return true;
  return fail(call, "ERR If you want both the length and indexes, please just use IDX.");
}

// lengths[i * (b.size() + 1) + j] is for the prefixes of i and j bytes.
std::vector<uint32_t> prefix_lengths(Bytes a, Bytes b) {
  const size_t columns = b.size() + 1;
  std::vector<uint32_t> lengths((a.size() + 1) * columns, 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t at = i * columns + j;
      lengths[at] = a[i - 1] == b[j - 1] ? lengths[at - columns - 1] + 1
                                         : std::max(lengths[at - columns], lengths[at - 1]);
    }
  }
  return lengths;
}

// Walks back from the end to find the subsequence, and the ranges of it that are contiguous in
// both.
void trace(Bytes a, Bytes b, const std::vector<uint32_t>& lengths, std::string& common,
           std::vector<Range>& ranges) {
  const size_t columns = b.size() + 1;
  size_t left = lengths.back();
  common.assign(left, '\0');
  bool open = false;
  Range range{};
  const auto close = [&] {
    if (open) ranges.push_back(range);
    open = false;
  };
  size_t i = a.size();
  size_t j = b.size();
  while (i > 0 && j > 0) {
    if (a[i - 1] == b[j - 1]) {
      common[--left] = a[i - 1];
      if (open && range.first_a == i && range.first_b == j) {
        --range.first_a;
        --range.first_b;
      } else {
        close();
        range = {i - 1, i - 1, j - 1, j - 1};
        open = true;
      }
      if (range.first_a == 0 || range.first_b == 0) close();
      --i;
      --j;
    } else {
      if (lengths[(i - 1) * columns + j] > lengths[i * columns + j - 1]) {
        --i;
      } else {
        --j;
      }
      close();
    }
  }
  close();
}

}  // namespace

void lcs_command(Call& call) {
  const Entry* first = call.find(call.key(1));
  const Entry* second = call.find(call.key(2));
  if ((first != nullptr && first->type() != Type::kString) ||
      (second != nullptr && second->type() != Type::kString)) {
    return call.reply.error("ERR The specified keys must contain string values");
  }
  LcsOptions options;
  if (!parse_options(call, options)) return;
  const Bytes a = first == nullptr ? Bytes() : first->string();
  const Bytes b = second == nullptr ? Bytes() : second->string();
  const uint64_t most_cells =
      call.engine.options().max_bulk_bytes.load(std::memory_order_relaxed) / sizeof(uint32_t);
  if (a.size() + 1 > most_cells / (b.size() + 1)) {
    return call.reply.error(
        "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
  }
  const std::vector<uint32_t> lengths = prefix_lengths(a, b);
  if (options.length) return call.reply.integer(lengths.back());
  std::string common;
  std::vector<Range> ranges;
  trace(a, b, lengths, common, ranges);
  if (!options.ranges) return call.reply.bulk(common);
  std::erase_if(ranges, [&](const Range& range) {
    return static_cast<int64_t>(range.last_a - range.first_a + 1) < options.min_match_length;
  });
  call.reply.map(2);
  call.reply.bulk("matches");
  call.reply.array(ranges.size());
  for (const Range& range : ranges) {
    call.reply.array(options.with_match_length ? 3 : 2);
    call.reply.array(2);
    call.reply.integer(static_cast<int64_t>(range.first_a));
    call.reply.integer(static_cast<int64_t>(range.last_a));
    call.reply.array(2);
    call.reply.integer(static_cast<int64_t>(range.first_b));
    call.reply.integer(static_cast<int64_t>(range.last_b));
    if (options.with_match_length) {
      call.reply.integer(static_cast<int64_t>(range.last_a - range.first_a + 1));
    }
  }
  call.reply.bulk("len");
  call.reply.integer(lengths.back());
}

}  // namespace sluice
