// The file of a history: a title with its version, the intervals that have been sampled, then each
// queue; at the end the checksum of all of it. Numbers are varints, rows are as in memory.
#include <bit>
#include <cstring>

#include "engine/base/crc32c.h"
#include "net/admin/history.h"

namespace sluice {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr Bytes kTitle = "sluice history 1\n";
constexpr char kQueueFollows = 1;
constexpr char kEnd = 0;

template <size_t kCount>
bool take_slots(Bytes& from, std::array<int64_t, kCount>& slots) {
  if (from.size() < sizeof(slots)) return false;
  std::memcpy(slots.data(), from.data(), sizeof(slots));
  from.remove_prefix(sizeof(slots));
  return true;
}

template <size_t kCount>
void put_slots(std::string& to, const std::array<int64_t, kCount>& slots) {
  to.append(reinterpret_cast<const char*>(slots.data()), sizeof(slots));
}

bool take_number(Bytes& from, int64_t& number) { return take_signed(from, number); }
bool take_number(Bytes& from, uint64_t& number) { return take_varint(from, number); }

template <class... Numbers>
bool take_numbers(Bytes& from, Numbers&... numbers) {
  return (take_number(from, numbers) && ...);
}

}  // namespace

void History::write_entry(std::string& to, const Map::value_type& each) const {
  const auto& [name, entry] = each;
  put_varint(to, static_cast<uint64_t>(name.database));
  put_bytes(to, name.name);
  const QueueCounts& last = entry.last;
  for (const uint64_t number :
       {last.added, last.started, last.ended, last.failed, last.waiting, last.active}) {
    put_varint(to, number);
  }
  for (const int64_t slot : {entry.known_since, entry.lost_hour, entry.lost_day}) {
    put_signed(to, slot);
  }
  to += entry.detail == nullptr ? '\0' : '\1';
  if (entry.detail == nullptr) return;
  entry.detail->hour.write(to);
  entry.detail->day.write(to);
  put_varint(to, entry.detail->bands.size());
  for (const Band& band : entry.detail->bands) {
    to += static_cast<char>(band.number);
    put_bytes(to, band.name);
    put_varint(to, band.waiting);
    band.rows.write(to);
  }
}

bool History::write(std::string& to, bool at_end) {
  constexpr size_t kPartBytes = 256U << 10;
  MutexLock lock(mutex_);
  const size_t begin = to.size();
  if (!walking_) {
    sum_ = 0;
    to.append(kTitle);
    put_signed(to, last_slot_);
    put_slots(to, hour_sampled_);
    put_slots(to, day_sampled_);
    next_ = map_.begin();
  }
  for (; next_ != map_.end() && to.size() < begin + kPartBytes; ++next_) {
    Entry& entry = next_->second;
    if (at_end && entry.detail != nullptr && entry.detail->minute != nullptr) end_minute(entry);
    to += kQueueFollows;
    write_entry(to, *next_);
  }
  walking_ = next_ != map_.end();
  if (!walking_) to += kEnd;
  sum_ = crc32c_extend(sum_, to.data() + begin, to.size() - begin);
  if (!walking_) to.append(reinterpret_cast<const char*>(&sum_), sizeof(sum_));
  return walking_;
}

bool History::read_entry(Bytes& from) {
  uint64_t database = 0;
  Bytes name;
  if (!take_varint(from, database) || !take_bytes(from, name)) return false;
  const auto [place, is_new] =
      map_.try_emplace(QueueName{static_cast<int>(database), std::string(name)});
  Entry& entry = place->second;
  QueueCounts& last = entry.last;
  if (!is_new ||
      !take_numbers(from, last.added, last.started, last.ended, last.failed, last.waiting,
                    last.active, entry.known_since, entry.lost_hour, entry.lost_day) ||
      from.empty()) {
    return false;
  }
  const bool has_detail = from.front() != '\0';
  from.remove_prefix(1);
  count_bytes(0, bytes_of(*place));
  if (!has_detail) return true;
  const size_t before = bytes_of(*place);
  entry.detail = std::make_unique<Detail>();
  Detail& detail = *entry.detail;
  uint64_t bands = 0;
  if (!detail.hour.read(from) || !detail.day.read(from) || !take_varint(from, bands)) return false;
  for (; bands != 0; --bands) {
    Band& band = detail.bands.emplace_back();
    if (from.empty()) return false;
    band.number = static_cast<uint8_t>(from.front());
    from.remove_prefix(1);
    Bytes band_name;
    if (!take_bytes(from, band_name) || !take_varint(from, band.waiting) || !band.rows.read(from)) {
      return false;
    }
    band.name = band_name;
  }
  count_bytes(before, bytes_of(*place));
  list(entry, true);
  return true;
}

bool History::read_file(Bytes file) {
  uint32_t sum = 0;
  if (file.size() < kTitle.size() + sizeof(sum) || !file.starts_with(kTitle)) return false;
  const Bytes covered = file.substr(0, file.size() - sizeof(sum));
  std::memcpy(&sum, file.data() + covered.size(), sizeof(sum));
  if (sum != crc32c(covered)) return false;
  Bytes from = covered.substr(kTitle.size());
  if (!take_signed(from, last_slot_) || !take_slots(from, hour_sampled_) ||
      !take_slots(from, day_sampled_)) {
    return false;
  }
  while (!from.empty() && from.front() == kQueueFollows) {
    from.remove_prefix(1);
    if (!read_entry(from)) return false;
  }
  return from.size() == 1 && from.front() == kEnd;
}

bool History::load(Bytes file, int64_t wall_ms) {
  MutexLock lock(mutex_);
  if (limit_ == 0) file = {};  // the file stays as it is
  const bool good = file.empty() || read_file(file);
  if (!good) clear();
  slot_ = last_slot_;
  const auto longer_idle = [](const Entry* a, const Entry* b) {
    return a->detail->last_change() < b->detail->last_change();
  };
  hours_.sort(longer_idle);
  days_.sort(longer_idle);
  if (!good || file.empty()) last_slot_ = wall_ms / kHourSteps.step_ms - 1;
  trim();
  ready_.store(true, std::memory_order_release);
  return good;
}

}  // namespace sluice
