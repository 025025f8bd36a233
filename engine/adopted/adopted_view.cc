#include "engine/adopted/adopted_view.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <tuple>

#include "engine/base/hex.h"
#include "engine/queue/job_texts.h"
#include "engine/queue/queue.h"

// The calling unit has locked the shards; see database.cc for why the analysis is off.
namespace sluice {

namespace {

// Numbers that can be a time: unix seconds or milliseconds, from 1973 to after the year 5000.
constexpr double kLeastSeconds = 1e8;
constexpr double kLeastMs = 1e11;
constexpr double kGreatestMs = 1e14;

bool is_seconds(double time) { return time >= kLeastSeconds && time < kLeastMs; }
bool is_ms(double time) { return time >= kLeastMs && time < kGreatestMs; }

template <class Collection>
const Collection* collection_of(const Entry* entry, Type type) {
  return entry == nullptr || entry->type() != type ? nullptr : &entry->object<Collection>();
}

bool contains(const Set* set, Bytes id) {
  return set != nullptr && set->members.find(id, hash_bytes(id)) != nullptr;
}

// --- Cursors: "p<key>-<score>-<id>", "a<since>-<number>", numbers and id in base 16 ---

void append_number(std::string& text, uint64_t number) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof(digits), number, 16);
  text.append(digits, end.ptr);
}

// Takes a number and the hyphen after it, if any.
std::optional<uint64_t> take_hex(Bytes& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (!text.empty() && text.front() == '-') text.remove_prefix(1);
  return number;
}

std::optional<std::string> parse_hex(Bytes text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (; !text.empty(); text.remove_prefix(2)) {
    const int high = hex_value(text[0]);
    const int low = hex_value(text[1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

}  // namespace

AdoptedView::AdoptedView(Shards& shards, const Queue& queue, const Times& now)
    : shards_(shards),
      queue_(queue),
      adopted_(*queue.adopted),
      definition_(adopted_.definition),
      now_(now) {}

// --- The keys ---

const Entry* AdoptedView::find_entry(const std::string& name) const NO_THREAD_SAFETY_ANALYSIS {
  const KeyRef key(name);
  const Keyspace& keys = shards_[key.shard].databases[static_cast<size_t>(queue_.database)];
  const Entry* entry = keys.entries.find(key.key, key.hash);
  const bool expired =
      entry != nullptr && entry->expire_ms() != 0 && entry->expire_ms() <= now_.wall_ms;
  return expired ? nullptr : entry;
}

const SortedSet* AdoptedView::pending(size_t key) const {
  return collection_of<SortedSet>(find_entry(definition_.pending[key]), Type::kSortedSet);
}

const Set* AdoptedView::active() const {
  return collection_of<Set>(find_entry(definition_.active), Type::kSet);
}

uint64_t AdoptedView::pending_count() const {
  uint64_t count = 0;
  for (size_t key = 0; key < definition_.pending.size(); ++key) {
    if (const SortedSet* set = pending(key)) count += set->order.size();
  }
  return count;
}

uint64_t AdoptedView::active_count() const {
  const Set* set = active();
  return set == nullptr ? 0 : set->members.size();
}

std::vector<AdoptedWarning> AdoptedView::warnings() const {
  std::vector<AdoptedWarning> out;
  const auto look_at = [&](const std::string& key, Type wanted) {
    const Entry* entry = find_entry(key);
    if (entry == nullptr || entry->type() == wanted) return;
    out.push_back({key, " holds a " + std::string(type_name(entry->type())) + ", not a " +
                            std::string(type_name(wanted)) + ": it reads as empty"});
  };
  for (const std::string& key : definition_.pending) look_at(key, Type::kSortedSet);
  look_at(definition_.active, Type::kSet);
  return out;
}

std::optional<std::string> AdoptedView::payload_key(Bytes id) const {
  if (definition_.payload_prefix.empty()) return std::nullopt;
  std::string key = definition_.payload_prefix + std::string(id);
  const auto& pending = definition_.pending;
  const bool is_own = key == queue_.key || key == definition_.active ||
                      std::find(pending.begin(), pending.end(), key) != pending.end();
  if (is_own) return std::nullopt;
  return key;
}

// --- Bands ---

uint8_t AdoptedView::band_of(size_t key, double score) const {
  if (definition_.unit == 0) {
    const bool alone = definition_.pending.size() == 1;
    return alone ? queue_.config.values().default_band : static_cast<uint8_t>(key);
  }
  return score_bands().band_of(score);
}

bool AdoptedView::has_band(uint8_t band) const {
  if (definition_.unit != 0) return true;
  if (definition_.pending.size() == 1) return band == queue_.config.values().default_band;
  return band < definition_.pending.size();
}

std::pair<uint64_t, uint64_t> AdoptedView::range_of(uint8_t band, const SortedSet& set) const {
  if (definition_.unit == 0) return {0, set.order.size()};
  const ScoreBands bands = score_bands();
  const uint64_t first =
      band == 0 ? 0 : set.order.count_below(SortedSet::major(bands.lowest_score(band)));
  const uint64_t end = band == kBands - 1
                           ? set.order.size()
                           : set.order.count_below(SortedSet::major(bands.lowest_score(band + 1)));
  return {first, end};
}

double AdoptedView::front_score(const AdoptedPlace& place, uint8_t band, double score) const {
  const SortedSet* set = pending(key_of(band));
  if (set == nullptr) return score;
  const auto [first, end] = range_of(band, *set);
  if (first == end) return score;
  const ScoredMember& smallest = *set->order.at(first).value();
  if (smallest.bytes() == place.id) return score;
  const double before = smallest.score() - 1;
  return before < smallest.score()
             ? before
             : std::nextafter(smallest.score(), -std::numeric_limits<double>::infinity());
}

double AdoptedView::back_score(const AdoptedPlace& place, uint8_t band, double score) const {
  const SortedSet* set = pending(key_of(band));
  if (set == nullptr) return score;
  const auto [first, end] = range_of(band, *set);
  if (first == end) return score;
  const ScoredMember& greatest = *set->order.at(end - 1).value();
  if (greatest.bytes() == place.id) return score;
  const double behind = greatest.score() + 1;
  return behind > greatest.score()
             ? behind
             : std::nextafter(greatest.score(), std::numeric_limits<double>::infinity());
}

AdoptedBand AdoptedView::count(uint8_t band) const {
  AdoptedBand counted{band};
  counted.active = adopted_.active_in(band);
  if (!has_band(band)) return counted;
  const SortedSet* set = pending(definition_.key_of(band));
  if (set == nullptr) return counted;
  const auto [first, end] = range_of(band, *set);
  counted.pending = end - first;
  if (counted.pending == 0) return counted;
  const auto added = added_ms(band, set->order.at(first).value()->score());
  if (added) counted.oldest_ms = std::max<int64_t>(0, now_.wall_ms - *added);
  return counted;
}

std::vector<AdoptedBand> AdoptedView::bands() const {
  int last = 0;
  for (const auto& [name, band] : queue_.config.values().bands) {
    if (has_band(band)) last = std::max<int>(last, band);
  }
  if (definition_.unit == 0) {
    if (definition_.pending.size() > 1) last = static_cast<int>(definition_.pending.size()) - 1;
  } else if (const SortedSet* set = pending(0); set != nullptr && !set->order.empty()) {
    last = std::max<int>(last, band_of(0, set->order.back().value->score()));
  }
  std::vector<AdoptedBand> out;
  for (int band = 0; band < kBands; ++band) {
    const auto number = static_cast<uint8_t>(band);
    if (band > last && adopted_.active_in(number) == 0) continue;
    const AdoptedBand counted = count(number);
    const auto& names = queue_.config.values().bands;
    const bool named = std::any_of(names.begin(), names.end(),
                                   [&](const auto& name) { return name.second == number; });
    const bool shown = has_band(number) && (named || definition_.unit == 0);
    if (shown || counted.pending != 0 || counted.active != 0) out.push_back(counted);
  }
  return out;
}

// --- Times ---

std::optional<int64_t> AdoptedView::added_ms(uint8_t band, double score) const {
  const double time = score - static_cast<double>(definition_.unit) * band;
  if (is_ms(time)) return static_cast<int64_t>(time);
  if (is_seconds(time)) return static_cast<int64_t>(time * 1000);
  return std::nullopt;
}

double AdoptedView::score_of(uint8_t band, int64_t time_ms) const {
  const auto time = static_cast<double>(time_ms);
  if (definition_.unit != 0) return time + static_cast<double>(definition_.unit) * band;
  for (size_t key = 0; key < definition_.pending.size(); ++key) {
    const SortedSet* set = pending(key);
    if (set == nullptr || set->order.empty()) continue;
    return is_ms(set->order.front().value->score()) ? time : time / 1000;
  }
  for (auto at = adopted_.runs().begin(); at.valid(); at.next()) {
    const AdoptedMember& member = at.value()->second;
    if (member.has_place) return is_ms(member.score) ? time : time / 1000;
  }
  return time / 1000;
}

// --- Single members ---

AdoptedPlace AdoptedView::find(Bytes id) const {
  AdoptedPlace place{std::string(id)};
  place.active = contains(active(), id);
  const uint64_t hash = hash_bytes(id);
  for (size_t key = 0; key < definition_.pending.size(); ++key) {
    const SortedSet* set = pending(key);
    const ScoredMember* member = set == nullptr ? nullptr : set->members.find(id, hash);
    if (member == nullptr) continue;
    place.pending = true;
    place.key = key;
    place.score = member->score();
    break;
  }
  if (place.active) {
    const AdoptedMember* kept = adopted_.find(id);
    place.band = kept == nullptr ? queue_.config.values().default_band : kept->band;
  } else if (place.pending) {
    place.band = band_of(place.key, place.score);
  }
  return place;
}

uint64_t AdoptedView::position(const AdoptedPlace& place) const {
  uint64_t before = 0;
  for (size_t key = 0; key < place.key; ++key) {
    if (const SortedSet* set = pending(key)) before += set->order.size();
  }
  const SortedSet* set = pending(place.key);
  if (set == nullptr) return before;
  ScoredMember* member = set->members.find(place.id, hash_bytes(place.id));
  if (member == nullptr) return before;
  return before +
         set->order.rank(SortedSet::major(member->score()), SortedSet::minor(place.id), member);
}

// --- Walks ---

struct AdoptedView::Step {
  const Selector& selector;
  const Set* active;
  size_t limit;
  const Weight& weigh;
  AdoptedPage& page;
  size_t bytes = 0;

  void take(AdoptedPlace place) {
    if (weigh != nullptr) bytes += weigh(place);
    page.places.push_back(std::move(place));
  }
  // Returns false if the step ends after this member.
  bool go_on() const {
    return page.places.size() < limit && bytes < kMaxPageBytes && page.looked_at < selector.look;
  }
};

bool AdoptedView::matches(const Selector& selector, const AdoptedPlace& place,
                          int64_t age_ms) const {
  if (selector.tag || selector.key || selector.worker || selector.error) return false;
  if (selector.pattern && !selector.pattern->empty()) return false;
  if (selector.id_part && !contains_ignore_case(place.id, *selector.id_part)) return false;
  // All members are in the empty group, which only the empty glob matches.
  if (selector.group && !selector.group->empty()) return false;
  if (selector.band && *selector.band != place.band) return false;
  if (!selector.has_times()) return true;
  return age_ms >= 0 && selector.fits_time(now_.queue_ms - age_ms, now_.queue_ms);
}

bool AdoptedView::walk_pending(Step& step, size_t key, Bytes after) const {
  const SortedSet* set = pending(key);
  if (set == nullptr) return true;
  uint64_t first = 0;
  uint64_t end = set->order.size();
  if (step.selector.band) {
    if (!has_band(*step.selector.band) || definition_.key_of(*step.selector.band) != key) {
      return true;
    }
    std::tie(first, end) = range_of(*step.selector.band, *set);
  }
  if (!after.empty()) {
    const auto major = take_hex(after);
    const auto id = parse_hex(after);
    if (!major || !id) return false;
    const uint64_t minor = SortedSet::minor(*id);
    uint64_t behind = 0;
    set->order.lower_bound_by(
        [&](uint64_t its_major, uint64_t its_minor, const ScoredMember* member) {
          if (its_major != *major) return its_major < *major;
          if (its_minor != minor) return its_minor < minor;
          return member->bytes() <= *id;
        },
        &behind);
    first = std::max(first, behind);
  }
  auto at = set->order.at(first);
  for (uint64_t rank = first; rank < end; ++rank, at.next()) {
    const ScoredMember& member = *at.value();
    ++step.page.looked_at;
    if (!contains(step.active, member.bytes())) {
      AdoptedPlace place{std::string(member.bytes()),  false,         true, key,
                         band_of(key, member.score()), member.score()};
      const auto added = added_ms(place.band, place.score);
      if (matches(step.selector, place, added ? now_.wall_ms - *added : -1)) {
        step.take(std::move(place));
      }
    }
    if (step.go_on() || rank + 1 == end) continue;
    step.page.cursor = "p";
    append_number(step.page.cursor, key);
    step.page.cursor += '-';
    append_number(step.page.cursor, SortedSet::major(member.score()));
    step.page.cursor += '-';
    append_hex(step.page.cursor, member.bytes());
    return true;
  }
  return true;
}

bool AdoptedView::walk_active(Step& step, Bytes after) const {
  auto at = adopted_.runs().begin();
  if (!after.empty()) {
    const auto since = take_hex(after);
    const auto number = take_hex(after);
    if (!since || !number || !after.empty()) return false;
    at = adopted_.runs().lower_bound(*since, *number + 1);
  }
  while (at.valid()) {
    const auto& [id, member] = *at.value();
    ++step.page.looked_at;
    AdoptedPlace place{id, true, false, 0, member.band, member.score};
    // A record whose member has left with the whole key is dropped later.
    const bool is_there = contains(step.active, id);
    if (is_there && matches(step.selector, place, now_.queue_ms - member.since_ms)) {
      step.take(std::move(place));
    }
    at.next();
    if (step.go_on() || !at.valid()) continue;
    step.page.cursor = "a";
    append_number(step.page.cursor, static_cast<uint64_t>(member.since_ms));
    step.page.cursor += '-';
    append_number(step.page.cursor, member.number);
    return true;
  }
  return true;
}

bool AdoptedView::walk(const Selector& selector, JobOrder order, Bytes cursor, size_t limit,
                       AdoptedPage& page, const Weight& weigh) const {
  const auto wants = [&](JobState state) {
    return selector.states == 0 || (selector.states & state_bit(state)) != 0;
  };
  const bool pendings = wants(JobState::kPending) && order != JobOrder::kDeadline;
  const bool actives = wants(JobState::kActive) && order != JobOrder::kRank;
  Step step{selector, active(), limit, weigh, page};
  uint64_t key = 0;
  const bool in_active = !cursor.empty() && cursor.front() == 'a';
  Bytes after;
  if (cursor != "0") {
    const bool in_pending = !cursor.empty() && cursor.front() == 'p';
    if ((in_pending && !pendings) || (in_active && !actives)) return false;
    if (!in_pending && !in_active) return false;
    after = cursor.substr(1);
    if (in_pending) key = take_hex(after).value_or(definition_.pending.size());
    if (after.empty() || (in_pending && key >= definition_.pending.size())) return false;
  }
  if (!in_active && pendings) {
    for (; key < definition_.pending.size(); ++key, after = {}) {
      if (!walk_pending(step, key, after)) return false;
      if (page.cursor != "0") return true;
      if (!step.go_on() && key + 1 < definition_.pending.size()) {
        // The cursor is at the beginning of the next key.
        page.cursor = "p";
        append_number(page.cursor, key + 1);
        page.cursor += "-0-";
        return true;
      }
    }
  }
  if (!actives) return true;
  if (!step.go_on()) {
    page.cursor = "a0-0";
    return true;
  }
  return walk_active(step, after);
}

}  // namespace sluice
