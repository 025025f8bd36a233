// Reading a history.
#include <algorithm>

#include "net/admin/history.h"

namespace sluice {

namespace {

constexpr std::array<HistoryKind, kHistoryColumns> kKinds = {
    HistoryKind::kCount, HistoryKind::kCount, HistoryKind::kCount, HistoryKind::kLevel,
    HistoryKind::kLevel, HistoryKind::kTime,  HistoryKind::kTime};
constexpr std::array<HistoryKind, kHistoryBandColumns> kBandKinds = {
    HistoryKind::kLevel, HistoryKind::kTime, HistoryKind::kTime};

template <size_t kColumns>
HistoryColumns<kColumns> gaps(int64_t count) {
  HistoryColumns<kColumns> columns;
  for (auto& column : columns) column.assign(static_cast<size_t>(count), kNoValue);
  return columns;
}

// `known`: whether the values are known, for each slot from `first` on.
template <size_t kColumns>
HistoryColumns<kColumns> columns_of(const HistoryRows<kColumns>& rows,
                                    const std::array<HistoryKind, kColumns>& kinds, int64_t first,
                                    const std::vector<bool>& known) {
  const auto count = static_cast<int64_t>(known.size());
  HistoryColumns<kColumns> columns = gaps<kColumns>(count);
  rows.for_each(first, first + count - 1, kinds, [&](int64_t slot, const auto& values) {
    const auto at = static_cast<size_t>(slot - first);
    if (!known[at]) return;
    for (size_t i = 0; i < kColumns; ++i) columns[i][at] = values[i];
  });
  return columns;
}

}  // namespace

bool History::sampled(HistoryRange range, int64_t slot) const {
  const auto number = static_cast<size_t>(slot % steps_of(range).count);
  return (range == HistoryRange::kHour ? hour_sampled_[number] : day_sampled_[number]) == slot;
}

// Those of the sample that is being taken, whose interval is not shown yet.
uint64_t History::unended_failures(const Entry& entry) const {
  if (slot_ == last_slot_ || entry.detail == nullptr) return 0;
  const QueueRows::Values* row = entry.detail->hour.find_last(slot_);
  return row == nullptr || (*row)[kFailed] == kNoValue ? 0 : unpack_value((*row)[kFailed]);
}

HistoryView History::view(const QueueName& queue, HistoryRange range, int64_t wall_ms) const {
  const HistorySteps steps = steps_of(range);
  const bool hour = range == HistoryRange::kHour;
  HistoryView view;
  view.queue = gaps<kHistoryColumns>(steps.count);
  // Slots of five seconds in one of the range.
  const int64_t size = steps.step_ms / kHourSteps.step_ms;
  // The last sample is not long ago, unless none is taken.
  int64_t newest = wall_ms / kHourSteps.step_ms - 2;
  int64_t first = 0;
  const auto set_range = [&] {
    first = (hour ? newest + 1 : newest / size) - steps.count;
    view.start_ms = first * steps.step_ms;
  };
  set_range();
  if (!ready()) return view;
  MutexLock lock(mutex_);
  newest = std::max(newest, last_slot_);
  set_range();
  const auto found = map_.find(queue);
  view.reduced = found == map_.end() && full_;
  if (found == map_.end()) return view;
  const Entry& entry = found->second;
  const int64_t lost = hour ? entry.lost_hour : entry.lost_day;
  view.reduced = lost / size >= first;
  // A number of the history is rounded.
  view.failed_total = entry.last.failed - std::min(entry.last.failed, unended_failures(entry));
  std::vector<bool> known;
  for (int64_t slot = first; slot < first + steps.count; ++slot) {
    const bool kept = slot * size + size > entry.known_since && slot * size > lost;
    known.push_back(kept && sampled(range, slot));
  }
  QueueRows idle;
  idle.set_before({0, 0, 0, pack_value(entry.last.waiting), pack_value(entry.last.active), 0, 0});
  const Detail* detail = entry.detail.get();
  const QueueRows& rows = detail == nullptr ? idle : hour ? detail->hour : detail->day;
  view.queue = columns_of(rows, kKinds, first, known);
  if (!hour || detail == nullptr) return view;
  for (const Band& band : detail->bands) {
    if (band.rows.empty() && band.waiting == 0) continue;
    view.bands.emplace_back(band.name, columns_of(band.rows, kBandKinds, first, known));
  }
  return view;
}

}  // namespace sluice
