// ErrorGroups: adds up pages of Q.STATS … BY ERROR, the failed jobs of a queue by their errors.
//
// Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "net/resp/resp_value.h"

namespace sluice {

struct ErrorGroup {
  std::string pattern;
  int64_t count = 0;
  int64_t first_ms = 0;  // unix time
  int64_t last_ms = 0;
  std::string id;  // of the newest job
  std::string error;
};

class ErrorGroups {
 public:
  // The lines of the next page: maps by pattern. Pages come from the newest job to the oldest.
  void add(const RespValue& lines);

  size_t size() const { return groups_.size(); }
  int64_t jobs() const { return jobs_; }  // in all groups
  // At most so many, the largest first; the newest job decides between groups of one size. Until
  // the next add().
  std::vector<const ErrorGroup*> largest(size_t most) const;

 private:
  std::vector<ErrorGroup> groups_;                  // by their newest jobs
  std::unordered_map<std::string, size_t> places_;  // in groups_, by pattern
  int64_t jobs_ = 0;
};

}  // namespace sluice
