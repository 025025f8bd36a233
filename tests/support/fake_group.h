// FakeGroup: a group whose view and answers the test sets. Used by one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/ports/group_port.h"

namespace sluice::test {

class FakeGroup final : public GroupPort {
 public:
  int64_t age_ms = 0;
  int64_t lease = 900;
  Status hand_over_status;
  Status wait_status;  // of one that waits for its standby
  Status abort_status = invalid("no hand-over runs");
  // "n2 500" of the last hand-over that was asked for, or for which a standby must be near first.
  std::string handed_over;
  std::string waited_for;
  OnHandOver when_near;
  std::function<void()> at_hand_over;
  int64_t paused_for_ms = -1;

  // n1 is the primary, n2 and n3 are standbys; this process is `node`.
  explicit FakeGroup(const std::string& node = "n1") {
    GroupView view;
    view.cluster = "main";
    view.group = "1";
    view.node = node;
    view.role = node == "n1" ? GroupRole::kPrimary : GroupRole::kStandby;
    view.epoch = 7;
    view.holder = "n1";
    view.lsn = 100;
    for (int i = 1; i <= 3; ++i) view.members.push_back(member(i));
    view.members[0].primary = true;
    set(view);
  }

  static GroupMember member(int number) {
    const std::string digit = std::to_string(number);
    GroupMember member;
    member.name = "n" + digit;
    member.run_id = std::string(40, digit[0]);
    member.host = "10.0.0." + digit;
    member.port = 6379;
    member.http_port = 8379;
    member.sentinel_port = 26379;
    member.lsn = 100;
    return member;
  }

  void set(GroupView view) {
    view_ = std::make_shared<const GroupView>(std::move(view));
    std::vector<OnView> wanted;
    for (OnView& on_view : std::exchange(followers_, {})) {
      if (on_view(*view_)) wanted.push_back(std::move(on_view));
    }
    for (OnView& on_view : wanted) followers_.push_back(std::move(on_view));
  }
  // A standby's record moves.
  void apply(size_t member, Lsn lsn) {
    GroupView next = *view_;
    next.members[member].lsn = lsn;
    set(std::move(next));
  }
  size_t followers() const { return followers_.size(); }

  // --- GroupPort ---
  std::shared_ptr<const GroupView> view() const override { return view_; }
  void follow(OnView on_view) override {
    if (on_view(*view_)) followers_.push_back(std::move(on_view));
  }
  int64_t view_age_ms() const override { return age_ms; }
  int64_t lease_ms() const override { return lease; }
  Status hand_over(const std::string& preferred, int64_t timeout_ms, OnHandOver then) override {
    const std::string asked = preferred + ' ' + std::to_string(timeout_ms);
    if (then != nullptr) {
      waited_for = asked;
      when_near = std::move(then);
      return wait_status;
    }
    if (at_hand_over) at_hand_over();
    handed_over = asked;
    return hand_over_status;
  }
  Status abort_hand_over() override { return abort_status; }
  Status pause(int64_t for_ms) override {
    paused_for_ms = for_ms;
    return {};
  }

 private:
  std::shared_ptr<const GroupView> view_;
  std::vector<OnView> followers_;
};

}  // namespace sluice::test
