#include "net/group/log_trim.h"

#include <algorithm>
#include <utility>

namespace sluice {

void LogTrim::note(const LogPosition& place) {
  if (!places_.empty() && place.seq < places_.back().seq + kStepFrames &&
      place.bytes < places_.back().bytes + kStepBytes) {
    return;
  }
  places_.push_back(place);
  if (places_.size() <= kMaxPlaces) return;
  // Every second one: a trim is only later by that.
  for (size_t i = 1; 2 * i < places_.size(); ++i) places_[i] = places_[2 * i];
  places_.resize((places_.size() + 1) / 2);
}

void LogTrim::set_mark(std::string text) {
  if (text == mark_text_) return;
  Result<LogPosition> mark = decode_position(text);
  mark_ = mark.ok() ? std::move(*mark) : LogPosition();
  mark_text_ = std::move(text);
}

LogTrim::Limit LogTrim::limit(std::vector<GroupMember> members, std::map<std::string, Lsn> holds,
                              size_t copies, const std::set<std::string>& hanging) {
  const auto server = [](const std::string& name) { return "the server \"" + name + "\" "; };
  std::erase_if(members, [&](const auto& member) { return hanging.contains(member.name); });
  std::erase_if(holds, [&](const auto& hold) { return hanging.contains(hold.first); });
  if (members.size() < copies) {
    return {0, "checkpoint-copies wants the checkpoints of " + std::to_string(copies) +
                   " servers, and " + std::to_string(members.size()) + " lives" +
                   (hanging.empty() ? "" : ": " + server(*hanging.begin()) + "hangs")};
  }
  std::vector<const GroupMember*> newest;
  for (const GroupMember& member : members) newest.push_back(&member);
  std::stable_sort(newest.begin(), newest.end(), [](const auto* a, const auto* b) {
    return a->checkpoint_lsn > b->checkpoint_lsn;
  });
  const GroupMember& oldest = *newest[copies - 1];
  const Lsn begin = oldest.checkpoint_lsn;
  Limit limit{begin, begin == 0 ? server(oldest.name) + "has no checkpoint yet"
                                : "the newest checkpoint of " + server(oldest.name) +
                                      "begins at lsn " + std::to_string(begin)};
  const auto lower = [&](Lsn lsn, const std::string& why) {
    if (lsn < limit.lsn) limit = {lsn, why + std::to_string(lsn)};
  };
  for (const GroupMember& member : members) {
    lower(member.lsn, server(member.name) + "has applied no more than lsn ");
  }
  for (const auto& [name, lsn] : holds) {
    lower(lsn, server(name) + "loads a copy of the data, which ends at lsn ");
  }
  return limit;
}

std::optional<LogPosition> LogTrim::target(const Limit& limit) const {
  const LogPosition* const place = place_at(limit.lsn);
  if (place == nullptr || place->seq <= mark_.seq) return std::nullopt;
  return *place;
}

const LogPosition* LogTrim::place_at(Lsn lsn) const {
  const auto behind =
      std::upper_bound(places_.begin(), places_.end(), lsn,
                       [](Lsn most, const LogPosition& place) { return most < place.lsn; });
  return behind == places_.begin() ? nullptr : &*std::prev(behind);
}

uint64_t LogTrim::bytes_at(Lsn lsn) const {
  const LogPosition* const place = place_at(lsn);
  return place == nullptr ? 0 : place->bytes;
}

void LogTrim::forget(uint64_t seq) {
  while (!places_.empty() && places_.front().seq <= seq) places_.pop_front();
}

}  // namespace sluice
