// WaitingPops: how many pops wait at a queue, by what they accept. For the ETA, which asks how many
// would accept a job, without examining them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/base/bytes.h"

namespace sluice {

// Which jobs of a queue a pop accepts.
struct PopFilter {
  uint64_t cap = 0;                // only while fewer slots are in use; 0: always
  std::vector<std::string> match;  // only those with one of these keys; empty: all
};

class WaitingPops {
 public:
  void add(const PopFilter& filter);
  void remove(const PopFilter& filter);
  // How many accept jobs with these keys while so many slots of the queue are in use. At least:
  // pops of different keys are not added up, those with the greatest CAP are served first, and only
  // kMostCaps different ones count.
  size_t accepting(std::span<const Bytes> keys, uint64_t used) const;

 private:
  static constexpr size_t kMostCaps = 16;

  // Pops with the same CAP.
  struct Takers {
    size_t without_match = 0;
    std::map<std::string, size_t, std::less<>> with_match;  // by key

    void add(const PopFilter& filter);
    void remove(const PopFilter& filter);
    bool empty() const { return without_match == 0 && with_match.empty(); }
    size_t accepting(std::span<const Bytes> keys) const;
  };

  Takers uncapped_;
  std::map<uint64_t, Takers, std::greater<>> capped_;
};

}  // namespace sluice
