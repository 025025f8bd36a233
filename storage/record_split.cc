#include "storage/record_split.h"

#include "engine/unit/effects.h"

namespace sluice {

std::vector<RecordRun> split_records(Bytes records, size_t max_bytes) {
  std::vector<RecordRun> runs;
  Bytes rest = records;
  while (!rest.empty()) {
    const Bytes before = rest;
    Effect effect;
    CHECK(decode_effect(rest, effect));  // encoded by the engine just before
    const size_t bytes = before.size() - rest.size();
    CHECK(bytes <= UINT32_MAX);
    if (runs.empty() || runs.back().records.size() + bytes > max_bytes) {
      runs.push_back({before.substr(0, bytes), 1});
    } else {
      RecordRun& run = runs.back();
      run.records = {run.records.data(), run.records.size() + bytes};
      ++run.count;
    }
  }
  return runs;
}

}  // namespace sluice
