// HistoryRows: the values of one series of a history by time. An interval without a row is one in
// which nothing happened, and takes no memory.
//
// Plain data, used by one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/varint.h"
#include "net/admin/history_values.h"

namespace sluice {

// What the value of an interval without a row is.
enum class HistoryKind : uint8_t {
  kCount,  // of what happened in the interval: 0
  kLevel,  // at its end: as before
  kTime    // of what happened in it: no value
};

template <size_t kValues>
class HistoryRows {
 public:
  using Values = std::array<HistoryValue, kValues>;

  bool empty() const { return rows_.empty(); }
  int64_t last_slot() const { return rows_.back().slot(); }
  // The values before the first row, for levels.
  void set_before(const Values& values) { before_ = values; }
  // Adds a row, or replaces the last one. REQUIRES: no row is later.
  void put(int64_t slot, const Values& values);
  Values* find_last(int64_t slot) {
    return !empty() && last_slot() == slot ? &rows_.back().values : nullptr;
  }
  // Drops the rows outside of this range.
  void keep(int64_t first, int64_t last);
  void clear();

  // Calls visit(slot, values) for each slot of a range; without a row the values are those
  // of an interval in which nothing happened.
  template <class Visit>
  void for_each(int64_t first, int64_t last, const std::array<HistoryKind, kValues>& kinds,
                Visit visit) const;

  size_t memory_bytes() const { return rows_.capacity() * sizeof(Row); }
  void write(std::string& to) const;
  // Returns false if the bytes are cut short or damaged.
  bool read(Bytes& from);

 private:
  // Two halves, since a row would otherwise be padded.
  struct Row {
    std::array<uint16_t, 2> slot_halves{};
    Values values{};
    int64_t slot() const { return int64_t{slot_halves[1]} << 16 | slot_halves[0]; }
  };
  static_assert(sizeof(Row) == (kValues + 2) * sizeof(uint16_t));

  std::vector<Row> rows_;  // by slot
  Values before_ = no_values();

  static constexpr Values no_values() {
    Values values{};
    values.fill(kNoValue);
    return values;
  }
};

template <size_t kValues>
void HistoryRows<kValues>::put(int64_t slot, const Values& values) {
  if (Values* last = find_last(slot)) {
    *last = values;
    return;
  }
  // Doubling would leave half of the memory unused.
  if (rows_.size() == rows_.capacity()) rows_.reserve(rows_.size() + rows_.size() / 8 + 2);
  rows_.push_back({{static_cast<uint16_t>(slot), static_cast<uint16_t>(slot >> 16)}, values});
}

template <size_t kValues>
void HistoryRows<kValues>::keep(int64_t first, int64_t last) {
  while (!rows_.empty() && last_slot() > last) rows_.pop_back();
  if (rows_.empty() || rows_.front().slot() >= first) return;
  const auto kept =
      std::find_if(rows_.begin(), rows_.end(), [&](const Row& row) { return row.slot() >= first; });
  // Moving the others is not worth it for one row.
  if (kept != rows_.end() && kept - rows_.begin() < 16) return;
  before_ = (kept - 1)->values;
  rows_.erase(rows_.begin(), kept);
  if (rows_.empty()) rows_.shrink_to_fit();
}

template <size_t kValues>
void HistoryRows<kValues>::clear() {
  if (!rows_.empty()) before_ = rows_.back().values;
  rows_.clear();
  rows_.shrink_to_fit();
}

template <size_t kValues>
template <class Visit>
void HistoryRows<kValues>::for_each(int64_t first, int64_t last,
                                    const std::array<HistoryKind, kValues>& kinds,
                                    Visit visit) const {
  Values level = before_;
  auto row = rows_.begin();
  for (; row != rows_.end() && row->slot() < first; ++row) level = row->values;
  for (int64_t slot = first; slot <= last; ++slot) {
    if (row != rows_.end() && row->slot() == slot) {
      level = row->values;
      visit(slot, level);
      ++row;
      continue;
    }
    Values idle = level;
    for (size_t i = 0; i < kValues; ++i) {
      if (kinds[i] == HistoryKind::kCount) idle[i] = 0;
      if (kinds[i] == HistoryKind::kTime) idle[i] = kNoValue;
    }
    visit(slot, idle);
  }
}

template <size_t kValues>
void HistoryRows<kValues>::write(std::string& to) const {
  put_varint(to, rows_.size());
  to.append(reinterpret_cast<const char*>(rows_.data()), rows_.size() * sizeof(Row));
  to.append(reinterpret_cast<const char*>(before_.data()), sizeof(before_));
}

template <size_t kValues>
bool HistoryRows<kValues>::read(Bytes& from) {
  uint64_t count = 0;
  if (!take_varint(from, count) || count > from.size() / sizeof(Row)) return false;
  const size_t bytes = count * sizeof(Row);
  if (from.size() < bytes + sizeof(before_)) return false;
  rows_.resize(count);
  if (bytes != 0) std::memcpy(rows_.data(), from.data(), bytes);
  std::memcpy(before_.data(), from.data() + bytes, sizeof(before_));
  from.remove_prefix(bytes + sizeof(before_));
  return std::is_sorted(rows_.begin(), rows_.end(),
                        [](const Row& a, const Row& b) { return a.slot() < b.slot(); });
}

}  // namespace sluice
