#include "net/admin/history.h"

#include <algorithm>
#include <utility>

namespace sluice {

namespace {

int64_t minute_of(int64_t slot) { return slot / kSlotsAMinute; }

// A node of the map and the name's allocation, rounded up.
constexpr size_t kNodeBytes = 48;

}  // namespace

size_t History::Detail::memory_bytes() const {
  size_t bytes = sizeof(*this) + hour.memory_bytes() + day.memory_bytes();
  bytes += bands.capacity() * sizeof(Band);
  for (const Band& band : bands) bytes += band.waits.memory_bytes() + band.rows.memory_bytes();
  if (minute != nullptr) bytes += sizeof(*minute) + minute->waits.memory_bytes();
  // Its places in the lists.
  return bytes + 4 * kNodeBytes;
}

int64_t History::Detail::last_change() const {
  if (!hour.empty()) return hour.last_slot();
  return day.empty() ? 0 : day.last_slot() * kSlotsAMinute;
}

size_t History::bytes_of(const Map::value_type& entry) {
  const size_t detail = entry.second.detail ? entry.second.detail->memory_bytes() : 0;
  return sizeof(entry) + entry.first.name.capacity() + kNodeBytes + detail;
}

// --- Samples ---

void History::begin_sample(int64_t slot, int64_t queue_ms, bool counted) {
  MutexLock lock(mutex_);
  stepped_back_ = slot <= slot_;
  if (stepped_back_) {
    for (int64_t& each : hour_sampled_) each = each >= slot ? 0 : each;
    for (int64_t& each : day_sampled_) each = each >= minute_of(slot) ? 0 : each;
  }
  slot_ = slot;
  ++sample_;
  counted_ = counted && queue_ms_before_ >= 0;
  queue_ms_ = queue_ms;
}

// Whether it is the queue that the entry is about, and not a later one of its name.
bool History::continues(const Entry& entry, const QueueSample& sample) const {
  const bool same = entry.since_ms == 0 || entry.since_ms == sample.since_ms;
  return same && sample.added >= entry.last.added && sample.started >= entry.last.started &&
         sample.ended >= entry.last.ended && sample.failed >= entry.last.failed;
}

// Null: there is no room.
History::Entry* History::find_or_add(const QueueSample& sample) {
  auto found = map_.find(sample.queue);
  if (found != map_.end() && !continues(found->second, sample)) {
    erase(found);
    found = map_.end();
  }
  if (found != map_.end()) return &found->second;
  // Rows can be dropped for others, queues cannot.
  if (map_.size() * (sizeof(Map::value_type) + kNodeBytes) >= limit_ / 2) {
    full_ = true;
    return nullptr;
  }
  found = map_.try_emplace(sample.queue).first;
  Entry& entry = found->second;
  entry.known_since = slot_;
  // If it was made since the last sample, its totals began with 0. If it was renamed, or the server
  // has just started, what happened before is not known.
  if (queue_ms_before_ < 0 || sample.since_ms < queue_ms_before_) {
    entry.known_since = slot_ + 1;
    entry.last = sample;
  }
  count_bytes(0, bytes_of(*found));
  return &entry;
}

bool History::look(const QueueSample& sample) {
  MutexLock lock(mutex_);
  if (limit_ == 0) return false;
  Entry* entry = find_or_add(sample);
  if (entry == nullptr) return false;
  // The wall clock may have been stepped back.
  const bool is_new = entry->sample == 0;
  entry->known_since = std::min(entry->known_since, is_new ? slot_ + 1 : slot_);
  entry->lost_hour = std::min(entry->lost_hour, slot_);
  entry->lost_day = std::min(entry->lost_day, slot_);
  entry->sample = sample_;
  entry->since_ms = sample.since_ms;
  if (entry->detail != nullptr) age(*entry);
  return entry->last != sample;
}

// Ends a minute, drops what is too old, and what was recorded for times that have not come yet.
void History::age(Entry& entry) {
  Detail& detail = *entry.detail;
  const size_t before = detail.memory_bytes();
  const int64_t minute = minute_of(slot_);
  if (detail.minute != nullptr && detail.minute->slot < minute) end_minute(entry);
  if (stepped_back_) detail.minute.reset();
  const int64_t first = slot_ - kHourSteps.count + 1;
  detail.hour.keep(first, slot_ - 1);
  for (Band& band : detail.bands) band.rows.keep(first, slot_ - 1);
  detail.day.keep(minute - kDaySteps.count, stepped_back_ ? minute - 1 : minute);
  count_bytes(before, detail.memory_bytes());
  list(entry, false);
  if (detail.hour.empty() && detail.day.empty() && detail.minute == nullptr) drop_detail(entry);
}

History::Detail& History::need_detail(Entry& entry) {
  if (entry.detail != nullptr) return *entry.detail;
  entry.detail = std::make_unique<Detail>();
  const auto levels = [&](QueueRows& rows) {
    QueueRows::Values before{};
    before[kWaiting] = pack_value(entry.last.waiting);
    before[kActive] = pack_value(entry.last.active);
    rows.set_before(before);
  };
  levels(entry.detail->hour);
  levels(entry.detail->day);
  return *entry.detail;
}

void History::put(const QueueSample& sample, const std::vector<BandSample>& bands) {
  MutexLock lock(mutex_);
  const auto found = map_.find(sample.queue);
  if (found == map_.end()) return;
  Entry& entry = found->second;
  const size_t before = bytes_of(*found);
  Detail& detail = need_detail(entry);
  const WaitCounts waits = put_bands(entry, bands, sample.started - entry.last.started);
  const auto count = [counted = counted_](uint64_t now, uint64_t then) {
    return counted ? pack_value(now - then) : kNoValue;
  };
  QueueRows::Values values{};
  values[kAdded] = count(sample.added, entry.last.added);
  values[kEnded] = count(sample.ended, entry.last.ended);
  values[kFailed] = count(sample.failed, entry.last.failed);
  values[kWaiting] = pack_value(sample.waiting);
  values[kActive] = pack_value(sample.active);
  values[kWaitP50] = waits.quantile(0.5);
  values[kWaitP95] = waits.quantile(0.95);
  detail.hour.put(slot_, values);
  put_minute(entry, sample, waits);
  entry.last = sample;
  changed_ = true;
  count_bytes(before, bytes_of(*found));
  list(entry, true);
  trim();
}

// Returns what was waited in the interval, in all bands. `started`: since the last sample.
WaitCounts History::put_bands(Entry& entry, const std::vector<BandSample>& samples,
                              uint64_t started) {
  std::vector<Band>& bands = entry.detail->bands;
  std::vector<WaitCounts> now;
  uint64_t unseen = 0;  // starts in bands whose earlier waits are not known
  const auto find = [&](uint8_t number) {
    return std::find_if(bands.begin(), bands.end(),
                        [&](const Band& band) { return band.number == number; });
  };
  for (const BandSample& sample : samples) {
    now.emplace_back(sample.waits_ms);
    const auto band = find(sample.number);
    if (band == bands.end() || !band->seen) unseen += now.back().total();
  }
  WaitCounts all;
  for (size_t i = 0; i < samples.size(); ++i) {
    auto band = find(samples[i].number);
    if (band == bands.end()) {
      bands.reserve(bands.size() + 1);
      band = bands.insert(bands.end(),
                          Band{.number = samples[i].number, .name = {}, .waits = {}, .rows = {}});
      band->rows.set_before({0, kNoValue, kNoValue});
    }
    // Without a last look all of them are new if there are no more than have been started.
    WaitCounts waits;
    const bool known = band->seen || unseen <= started;
    if (counted_ && known) waits = now[i].since(band->waits);
    band->name = samples[i].band;
    band->seen = true;
    band->waits = std::move(now[i]);
    const uint64_t waiting = samples[i].waiting;
    if (waiting != band->waiting || waits.total() != 0) {
      band->rows.put(slot_, {pack_value(waiting), waits.quantile(0.5), waits.quantile(0.95)});
    }
    band->waiting = waiting;
    all.add(waits);
  }
  for (Band& band : bands) {
    const auto is_this = [&](const BandSample& sample) { return sample.number == band.number; };
    if (band.waiting == 0 || std::any_of(samples.begin(), samples.end(), is_this)) continue;
    band.waiting = 0;
    band.rows.put(slot_, {0, kNoValue, kNoValue});
  }
  return all;
}

void History::put_minute(Entry& entry, const QueueSample& sample, const WaitCounts& waits) {
  Detail& detail = *entry.detail;
  if (detail.minute == nullptr) {
    detail.minute = std::make_unique<Minute>();
    detail.minute->slot = minute_of(slot_);
  }
  if (!counted_) return;
  Minute& minute = *detail.minute;
  minute.added += sample.added - entry.last.added;
  minute.ended += sample.ended - entry.last.ended;
  minute.failed += sample.failed - entry.last.failed;
  minute.waits.add(waits);
}

// A restart within the minute has divided it in two.
void History::end_minute(Entry& entry) {
  Detail& detail = *entry.detail;
  const std::unique_ptr<Minute> minute = std::move(detail.minute);
  const QueueRows::Values* earlier = detail.day.find_last(minute->slot);
  const auto sum = [&](HistoryColumn column, uint64_t count) {
    const bool more = earlier != nullptr && (*earlier)[column] != kNoValue;
    return pack_value(count + (more ? unpack_value((*earlier)[column]) : 0));
  };
  QueueRows::Values values{};
  values[kAdded] = sum(kAdded, minute->added);
  values[kEnded] = sum(kEnded, minute->ended);
  values[kFailed] = sum(kFailed, minute->failed);
  values[kWaiting] = pack_value(entry.last.waiting);
  values[kActive] = pack_value(entry.last.active);
  values[kWaitP50] = minute->waits.quantile(0.5);
  values[kWaitP95] = minute->waits.quantile(0.95);
  detail.day.put(minute->slot, values);
}

void History::end_sample(bool complete) {
  MutexLock lock(mutex_);
  if (!complete) return;
  queue_ms_before_ = queue_ms_;
  last_slot_ = slot_;
  hour_sampled_[static_cast<size_t>(slot_ % kHourSteps.count)] = slot_;
  const int64_t minute = minute_of(slot_);
  day_sampled_[static_cast<size_t>(minute % kDaySteps.count)] = minute;
}

void History::begin_walk() {
  MutexLock lock(mutex_);
  walking_ = false;
}

bool History::forget_gone() {
  constexpr size_t kAtOnce = 32;
  MutexLock lock(mutex_);
  if (!walking_) next_ = map_.begin();
  for (size_t i = 0; i < kAtOnce && next_ != map_.end(); ++i) {
    const auto entry = next_++;
    if (entry->second.sample != sample_) erase(entry);
  }
  walking_ = next_ != map_.end();
  return walking_;
}

// --- The bound ---

void History::list(Entry& entry, bool changed) {
  Detail& detail = *entry.detail;
  const auto has_rows = [](const Band& band) { return !band.rows.empty(); };
  const bool hour =
      !detail.hour.empty() || std::any_of(detail.bands.begin(), detail.bands.end(), has_rows);
  if (detail.has_hour && !hour) hours_.erase(detail.in_hours);
  if (!detail.has_hour && hour) detail.in_hours = hours_.insert(hours_.end(), &entry);
  if (detail.has_hour && hour && changed) hours_.splice(hours_.end(), hours_, detail.in_hours);
  detail.has_hour = hour;
  if (!detail.listed) detail.in_days = days_.insert(days_.end(), &entry);
  if (detail.listed && changed) days_.splice(days_.end(), days_, detail.in_days);
  detail.listed = true;
}

void History::drop_hour(Entry& entry) {
  Detail& detail = *entry.detail;
  const size_t before = detail.memory_bytes();
  detail.hour.clear();
  for (Band& band : detail.bands) band.rows.clear();
  entry.lost_hour = slot_;
  count_bytes(before, detail.memory_bytes());
  list(entry, false);
}

void History::drop_detail(Entry& entry) {
  if (entry.detail->has_hour) hours_.erase(entry.detail->in_hours);
  if (entry.detail->listed) days_.erase(entry.detail->in_days);
  count_bytes(entry.detail->memory_bytes(), 0);
  entry.detail.reset();
}

void History::erase(Map::iterator entry) {
  if (entry->second.detail != nullptr) drop_detail(entry->second);
  count_bytes(bytes_of(*entry), 0);
  map_.erase(entry);
  changed_ = true;
}

void History::trim() {
  while (memory_bytes() > limit_ && !hours_.empty()) drop_hour(*hours_.front());
  while (memory_bytes() > limit_ && !days_.empty()) {
    Entry& entry = *days_.front();
    entry.lost_hour = entry.lost_day = slot_;
    drop_detail(entry);
  }
}

void History::clear() {
  hours_.clear();
  days_.clear();
  map_.clear();
  bytes_.store(0, std::memory_order_relaxed);
  queue_ms_before_ = -1;
  hour_sampled_.fill(0);
  day_sampled_.fill(0);
}

void History::set_limit(uint64_t bytes) {
  MutexLock lock(mutex_);
  if (bytes == limit_) return;
  limit_ = bytes;
  full_ = false;
  if (bytes == 0) return clear();
  trim();
  if (memory_bytes() > limit_) clear();
}

bool History::take_changed() {
  MutexLock lock(mutex_);
  return std::exchange(changed_, false);
}

}  // namespace sluice
