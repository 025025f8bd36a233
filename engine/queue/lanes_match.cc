// The next lane of a band for MATCH, by the indexes of classes at each key.
#include <algorithm>

#include "engine/base/check.h"
#include "engine/queue/lanes.h"

namespace sluice {

namespace {

// A key that has been in more sets gets an index of their classes.
constexpr size_t kFewSets = 2;

// Whether one of its keys has an index, not counting the key that has flipped.
bool has_indexed(const KeySet* set, const Key* flipped) {
  return set->indexed != (flipped != nullptr && flipped->is_indexed ? 1U : 0U);
}

}  // namespace

void Lanes::note_set(Key* key, KeySet* set, int64_t now_ms) {
  key->sets.push_back(set);
  if (key->is_indexed) {
    ++set->indexed;
    return;
  }
  if (key->sets.size() <= kFewSets) return;
  key->is_indexed = true;
  for (KeySet* each : key->sets) {
    ++each->indexed;
    for (BandClass* in_class : each->classes) {
      if (in_class->ready.empty() || !each->is_open_beside(key)) continue;
      const ReadyKey& place = in_class->place;
      insert(key->open_classes[in_class->band], place.major, place.minor, in_class);
    }
    for (BandClass* in_class : each->classes) {
      if (in_class->own != nullptr) refresh_lane(in_class->own, now_ms);
    }
  }
}

void Lanes::place_at_keys(BandClass* in_class, const Key* flipped) {
  const KeySet* set = in_class->keys;
  if (in_class->ready.empty() || set->closed > 1 || !has_indexed(set, flipped)) return;
  const ReadyKey& place = in_class->place;
  for (Key* key : set->keys) {
    if (!key->is_indexed || key == flipped || !set->is_open_beside(key)) continue;
    insert(key->open_classes[in_class->band], place.major, place.minor, in_class);
  }
}

// Removes the class from the indexes that contain it. A key that has flipped may have changed which
// ones do.
void Lanes::unplace_at_keys(BandClass* in_class, const Key* flipped) {
  const ReadyKey& place = in_class->place;
  if (place == ReadyKey{} || !has_indexed(in_class->keys, flipped)) return;
  for (Key* key : in_class->keys->keys) {
    if (!key->is_indexed || key == flipped) continue;
    erase(key->open_classes[in_class->band], place.major, place.minor, in_class);
  }
}

Lane* Lanes::next(uint8_t number, std::span<const std::string> match) const {
  const Band* band = bands_[number].get();
  if (band == nullptr || band->open.empty()) return nullptr;
  if (match.empty()) return band->open.front().value->ready.front().value;
  Lane* best = nullptr;
  const auto offer = [&](Lane* lane) {
    if (best == nullptr || place(lane) < place(best)) best = lane;
  };
  for (const std::string& name : match) {
    const Key* key = keys_.find(name);
    if (key == nullptr || !key->open) continue;
    if (key->is_indexed) {
      const auto found = key->open_classes.find(number);
      if (found != key->open_classes.end() && !found->second.empty()) {
        offer(found->second.front().value->ready.front().value);
      }
      continue;
    }
    for (const KeySet* set : key->sets) {
      for (const BandClass* in_class : set->classes) {
        if (in_class->band != number) continue;
        if (in_class->open) offer(in_class->ready.front().value);
        Lane* own = in_class->own;
        if (own != nullptr && own->ready_in != nullptr && own->ready_in->open) offer(own);
      }
    }
  }
  return best;
}

// An index holds exactly the classes that it should, each under its place.
void Lanes::check_classes(const Key* key) {
  CHECK(key->is_indexed || key->sets.size() <= kFewSets);
  uint64_t listed = 0;
  for (const KeySet* set : key->sets) {
    CHECK(set->indexed ==
          static_cast<size_t>(std::count_if(set->keys.begin(), set->keys.end(),
                                            [](const Key* each) { return each->is_indexed; })));
    for (BandClass* in_class : set->classes) {
      if (!key->is_indexed || in_class->ready.empty() || !set->is_open_beside(key)) continue;
      const ReadyKey& place = in_class->place;
      CHECK(key->open_classes.at(in_class->band).contains(place.major, place.minor, in_class));
      ++listed;
    }
  }
  for (const auto& [band, classes] : key->open_classes) listed -= classes.size();
  CHECK(listed == 0);
}

}  // namespace sluice
