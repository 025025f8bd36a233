#include "net/group/hand_over_wish.h"

#include <algorithm>
#include <utility>

namespace sluice {

namespace {

// Between two marks.
constexpr int64_t kMarkMs = 100;

// The node that the group goes to, or would if it had started. Null: none can lead.
const GroupMember* find_heir(const GroupView& view, const std::string& preferred) {
  const auto goes_before = [](const GroupMember& member, const GroupMember& other) {
    if (member.starting != other.starting) return !member.starting;
    return member.lsn > other.lsn;
  };
  const GroupMember* best = nullptr;
  for (const GroupMember& member : view.members) {
    if (member.name == view.node || member.priority == 0) continue;
    if (!preferred.empty() && member.name != preferred) continue;
    if (best == nullptr || goes_before(member, *best)) best = &member;
  }
  return best;
}

Status given_up() { return invalid("the hand-over was given up before it began"); }

}  // namespace

Status check_hand_over(const GroupView& view, const std::string& preferred, Lsn near_lsn) {
  if (view.role != GroupRole::kPrimary) return invalid("this node does not lead its group");
  const GroupMember* const heir = find_heir(view, preferred);
  if (heir == nullptr) {
    return invalid(preferred.empty() ? "no other node of the group can lead"
                                     : "there is no node \"" + preferred + "\" that can lead");
  }
  const Lsn lacks = view.lsn - std::min(view.lsn, heir->lsn);
  const std::string units = std::to_string(lacks) + " units of the journal";
  if (heir->starting) {
    return invalid("the node \"" + heir->name + "\" is starting, and lacks " + units +
                   ". Nothing was stopped. Ask again when INFO replication says state=online for "
                   "it");
  }
  if (lacks <= kFewUnits || heir->lsn >= near_lsn) return {};
  return {StatusCode::kStale, "the node \"" + heir->name + "\" lacks " + units +
                                  ": until it has applied them all writes would wait. Nothing was "
                                  "stopped. Ask again when its offset in INFO replication is near "
                                  "master_repl_offset, or with a longer TIMEOUT"};
}

void HandOverWish::set(Wish wish) {
  const std::optional<Wish> before = std::exchange(wish_, std::move(wish));
  is_said_ = false;
  if (before.has_value() && before->then) before->then(given_up());
}

void HandOverWish::note(Lsn lsn, int64_t now_ms) {
  if (marks_.empty() || now_ms - marks_.back().first >= kMarkMs) marks_.emplace_back(now_ms, lsn);
  while (marks_.size() > 1 && now_ms - marks_[1].first >= kNearMs) marks_.pop_front();
  near_lsn_.store(marks_.front().second, std::memory_order_relaxed);
}

std::optional<HandOverWish::Wish> HandOverWish::step(const GroupView& view, HandOver& hand_over,
                                                     int64_t now_ms) {
  note(view.lsn, now_ms);
  if (!wish_.has_value()) return std::nullopt;
  Status status = check_hand_over(view, wish_->preferred, near_lsn());
  const bool is_asked = hand_over.is_asked(wish_->asked);
  if (is_asked && status.code() == StatusCode::kStale && now_ms < wish_->wait_until_ms) {
    if (!std::exchange(is_said_, true)) {
      say(LogLevel::kInfo, "a hand-over waits: " + status.message());
    }
    return std::nullopt;
  }
  const Wish wish = *std::exchange(wish_, std::nullopt);
  // What was given up meanwhile does neither.
  const bool is_done = status.ok() ? hand_over.start(wish.asked) : hand_over.withdraw(wish.asked);
  if (!is_done) status = given_up();
  if (!status.ok()) say(LogLevel::kWarning, "a hand-over is refused: " + status.message());
  if (wish.then) wish.then(status);
  return status.ok() ? std::optional(wish) : std::nullopt;
}

}  // namespace sluice
