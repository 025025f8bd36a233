// The jobs that Q.ACK, Q.NACK and Q.TOUCH name: `id lease [option]... [AND id lease
// [option]...]...`
//
// Exactly two words stand behind AND, whatever they are. All pairs are read and compared before
// anything is done; then one pair does not hinder another.
#pragma once

#include <vector>

#include "engine/commands/queue/args.h"

namespace sluice {

struct LeasePair {
  Bytes id;
  uint64_t lease = 0;  // 0: `*`
};

// `Pair` is a LeasePair with the options of the command.
template <class Pair>
struct LeasePairs {
  Pair first;
  std::vector<Pair> others;  // behind AND

  bool several() const { return !others.empty(); }
  size_t size() const { return 1 + others.size(); }
  // Calls `visit(const Pair&)` for each, in order.
  template <class Visit>
  void for_each(Visit visit) const {
    visit(first);
    for (const Pair& pair : others) visit(pair);
  }
};

inline constexpr size_t kMaxPairs = 256;

// Reads an id and, behind it, a lease from this argument on. Returns false with the error replied.
bool read_pair(Call& call, size_t argument, LeasePair& pair);
// Returns false with BADFIELD field=id replied if an id is there twice.
bool check_ids_differ(Call& call, std::vector<Bytes> ids);

// Reads from args[2] to the end. `read_option(options, pair)` reads an option of the pair, or one
// of the whole command; it returns false if there is no such option. Returns false with the error
// replied.
template <class Pair, class ReadOption>
bool read_pairs(Call& call, LeasePairs<Pair>& pairs, ReadOption read_option) {
  if (!read_pair(call, 2, pairs.first)) return false;
  Pair* pair = &pairs.first;
  OptionReader options(call, 4);
  while (options.next()) {
    if (options.is("AND", 2)) {
      if (pairs.size() == kMaxPairs) {
        options.bad_value();
        continue;
      }
      pair = &pairs.others.emplace_back();
      if (!read_pair(call, options.position() + 1, *pair)) return false;
    } else if (!read_option(options, *pair)) {
      options.unknown();
    }
  }
  if (options.failed()) return false;
  if (!pairs.several()) [[likely]]
    return true;
  std::vector<Bytes> ids;
  pairs.for_each([&](const Pair& each) { ids.push_back(each.id); });
  return check_ids_differ(call, std::move(ids));
}

}  // namespace sluice
