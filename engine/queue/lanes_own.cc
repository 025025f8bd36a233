// Own classes: lanes whose keys no other lane has move together with their group (lanes.h).
#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/queue/lanes.h"

namespace sluice {

// Lanes of several slots depend on the room of their own keys, and indexed keys list classes.
// REQUIRES: has_pending().
bool Lanes::can_be_own(const Lane* lane) {
  const KeySet* set = lane->keys;
  return !set->keys.empty() && set->indexed == 0 && lane->in_class->lanes == 1 &&
         lane->first()->cost() == 1;
}

BandClass* Lanes::find_own_class(const Group* group, uint8_t band) {
  const auto at = std::find_if(group->own.begin(), group->own.end(),
                               [band](const BandClass* own) { return own->band == band; });
  return at == group->own.end() ? nullptr : *at;
}

BandClass* Lanes::join_own_class(Group* group, uint8_t band) {
  BandClass* own = find_own_class(group, band);
  if (own != nullptr) return own;
  own = new BandClass();
  own->group = group;
  own->band = band;
  group->own.push_back(own);
  index_bytes_ += sizeof(BandClass);
  return own;
}

void Lanes::drop_own_class(BandClass* own) {
  CHECK(!own->open);
  std::erase(own->group->own, own);
  index_bytes_ -= sizeof(BandClass);
  delete own;
}

void Lanes::set_shared(Lane* lane, bool shared) {
  Group* group = lane->group;
  if ((lane->at_group < group->shared) == shared) return;
  const uint32_t to = shared ? group->shared++ : --group->shared;
  std::swap(group->lanes[lane->at_group], group->lanes[to]);
  group->lanes[lane->at_group]->at_group = lane->at_group;
  lane->at_group = to;
}

void Lanes::refresh_group(Group* group, int64_t now_ms) {
  // From the end: a lane that is no longer shared changes places with one that has been visited.
  for (uint32_t i = group->shared; i-- > 0;) refresh_lane(group->lanes[i], now_ms);
  if (group->own.empty()) return;
  const bool has_room = group->limiter.allows(1, now_ms);
  if (!has_room) await_refill(group->limiter, {group, nullptr}, now_ms);
  for (BandClass* own : group->own) {
    own->has_room = has_room;
    refresh_class(own, nullptr);
  }
}

void Lanes::check_own_classes(const Group* group, int64_t now_ms) const {
  for (BandClass* own : group->own) {
    CHECK(own->group == group && find_own_class(group, own->band) == own);
    CHECK(!own->ready.empty());
    CHECK(own->has_room == group->limiter.allows(1, now_ms));
    CHECK(own->open == own->has_room);
    if (!is_reconfiguring()) CHECK(own->place == place(own->ready.front().value));
    CHECK(bands_[own->band]->open.contains(own->place.major, own->place.minor, own) == own->open);
  }
}

}  // namespace sluice
