// GroupPort: what commands show of the group to which this process belongs, and what they ask of
// it (`journal etcd`). ServerPort::group() is null with `journal local`. Implemented by
// net/group/group_service.h.
//
// Threads: any.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/ports/journal.h"

namespace sluice {

enum class GroupRole : uint8_t {
  kStarting,   // has not caught up with the replicated log yet; answers LOADING
  kStandby,    // applies what the primary writes, and answers reads
  kTaking,     // is taking the epoch over
  kPrimary,    // writes
  kResigning,  // gives the epoch away, then ends
};
// "starting", "standby", "taking", "primary", "resigning".
inline const char* name_of(GroupRole role) {
  constexpr const char* kNames[] = {"starting", "standby", "taking", "primary", "resigning"};
  return kNames[static_cast<size_t>(role)];
}

// The longest pause: 24 hours. One that was forgotten ends by itself.
inline constexpr int64_t kMaxPauseMs = 86'400'000;

// What the primary's replicated log has room for (`journal-log-bytes`).
enum class LogRoom : uint8_t {
  kAll,
  kNoGrowth,  // 75 % are used: nothing that grows the data
  kNothing,   // 95 %: no change
};

// A view that is older says no more who leads.
inline constexpr int64_t kTrustedViewMs = 2000;

// How long a hand-over without a time of its own waits until the standby is near.
inline constexpr int64_t kNearPatienceMs = 10'000;

// A live process of the group, from its record in the replicated log's service.
struct GroupMember {
  std::string name;
  std::string run_id;  // 40 hexadecimal digits, random in each process
  std::string host;    // where clients reach it
  uint16_t port = 0;   // each 0: not served
  uint16_t tls_port = 0;
  uint16_t http_port = 0;
  uint16_t sentinel_port = 0;
  uint32_t priority = 100;  // replica-priority; 0: never takes over
  bool primary = false;
  bool starting = false;   // it has not caught up yet: it answers LOADING, and cannot take over
  Lsn lsn = 0;             // applied; of the primary: acknowledged. At most 200 ms old
  Lsn checkpoint_lsn = 0;  // its newest checkpoint begins here; 0: none
  uint64_t checkpoint_bytes = 0;
  // Its checkpoints do not end as the primary renames large keys: that one is to journal values.
  bool wants_values = false;
  // Each empty: not told. The marks are those of Config and of UsersMark, which nobody is shown
  // (see difference_mark() in engine/access/passwords.h).
  std::string version;
  std::string config_mark;
  std::string users_mark;

  // Where clients reach it: the port with TLS, if there is no other.
  uint16_t client_port() const { return port != 0 ? port : tls_port; }
  // Whether it may take over.
  bool can_lead() const { return priority != 0 && !starting; }

  bool operator==(const GroupMember&) const = default;
};

// In what a node and the primary differ, as far as both have told it: what clients would meet if
// that node took over.
struct GroupDifference {
  bool version = false;
  bool config = false;
  bool users = false;

  bool any() const { return version || config || users; }
  bool operator==(const GroupDifference&) const = default;
};

// A snapshot. Times are milliseconds.
struct GroupView {
  std::string cluster;
  std::string group;
  std::string node;  // this process
  GroupRole role = GroupRole::kStarting;
  uint64_t epoch = 0;
  std::string holder;                // the node that holds the epoch; empty: nobody
  uint64_t seq = 0;                  // the last frame applied here, or acknowledged
  Lsn lsn = 0;                       // the last unit of it
  int64_t lag_ms = 0;                // of a standby, behind the primary's last beat
  int64_t unlinked_ms = -1;          // since a standby last heard of a primary; -1: never
  uint64_t log_frames = 0;           // kept in the replicated log
  uint64_t log_bytes = 0;            // of them
  uint64_t log_limit_bytes = 0;      // that it may hold
  LogRoom log_room = LogRoom::kAll;  // of the primary
  std::string log_kept_by;           // what keeps the primary from trimming more of it, in words
  uint64_t etcd_bytes = 0;           // of the largest database of etcd's members; 0: not told
  uint64_t etcd_quota_bytes = 0;     // of which so many are allowed; 0: etcd does not tell
  Lsn trim_lsn = 0;                  // the log holds what comes behind
  int64_t paused_ms = 0;             // until others may take over again; 0: not paused
  uint64_t pause_number = 0;         // of the last wish to pause the group, or to resume it
  uint64_t takeovers = 0;            // by this process
  int64_t last_takeover_ms = 0;      // how long the last one took, from its decision
  std::string waits_for;             // why the node waits now, in words; empty: it does not
  bool awaits_standby = false;       // a hand-over begins when its standby is near
  std::vector<GroupMember> members;  // in the order of their names; also this one

  // Whether this process is the primary, perhaps for the last time.
  bool leads() const { return role == GroupRole::kPrimary || role == GroupRole::kResigning; }
  bool is_standby(const GroupMember& member) const { return member.name != holder; }
  // Whether this process is a standby that knows who leads it: another node.
  bool is_led() const {
    return role == GroupRole::kStandby && holder != node && primary() != nullptr;
  }
  // The same, as far as etcd was heard of lately. `age_ms`: GroupPort::view_age_ms().
  bool is_linked(int64_t age_ms) const { return is_led() && age_ms <= kTrustedViewMs; }
  // Whether it is a standby that answers reads.
  bool is_online(const GroupMember& member) const { return is_standby(member) && !member.starting; }
  // Also those that are starting.
  int64_t standbys() const {
    return std::count_if(members.begin(), members.end(),
                         [this](const GroupMember& member) { return is_standby(member); });
  }
  // How many standbys show the unit `wanted` to those who read there.
  int64_t applied_by(Lsn wanted) const {
    return std::count_if(members.begin(), members.end(), [&](const GroupMember& member) {
      return is_online(member) && member.lsn >= wanted;
    });
  }
  // Live nodes whose checkpoint the log continues, so that their disk holds a copy of all data.
  int64_t copies() const {
    return std::count_if(members.begin(), members.end(), [&](const GroupMember& member) {
      return member.checkpoint_lsn >= trim_lsn;
    });
  }
  const GroupMember* self() const { return find(node); }
  // Null if nobody leads, or if its record has not come yet.
  const GroupMember* primary() const { return holder.empty() ? nullptr : find(holder); }
  // Nothing if nobody leads.
  GroupDifference difference(const GroupMember& member) const {
    const GroupMember* const leader = primary();
    if (leader == nullptr) return {};
    const auto differs = [&](std::string GroupMember::*told) {
      return !(member.*told).empty() && !(leader->*told).empty() && member.*told != leader->*told;
    };
    return {differs(&GroupMember::version), differs(&GroupMember::config_mark),
            differs(&GroupMember::users_mark)};
  }
  const GroupMember* find(const std::string& name) const {
    for (const GroupMember& member : members) {
      if (member.name == name) return &member;
    }
    return nullptr;
  }
};

class GroupPort {
 public:
  virtual ~GroupPort() = default;

  // Never null. Changes at most every 100 ms, and at once when the role or the epoch does.
  virtual std::shared_ptr<const GroupView> view() const = 0;
  // Calls `on_view` with the present view before it returns, and with each later one on any thread,
  // without locks held and one call at a time, until it returns false.
  using OnView = std::function<bool(const GroupView& view)>;
  virtual void follow(OnView on_view) = 0;
  // How long ago the replicated log was last heard of; see kTrustedViewMs.
  virtual int64_t view_age_ms() const = 0;
  // How long this primary may still answer reads; 0: not at all, or it is no primary.
  virtual int64_t lease_ms() const = 0;

  // Begins a hand-over: writes are held, everything is made durable, the epoch is given away, the
  // process ends with kFencedExitCode and its supervisor starts it as a standby. `preferred`: the
  // node that may take at once; empty: the one that has the most of the log. Gives up after
  // `timeout_ms` (0: never) if not everything is durable by then. An error, and nothing has
  // stopped: this node is no primary, or no other node can lead; kStale: that node is far behind.
  // With `when_near` that is no error: the hand-over waits until the node is near, for
  // `timeout_ms` (0: kNearPatienceMs) at most, while writes go on. After a success `when_near` is
  // called once, by the group's thread: as writes are held, or with the error.
  using OnHandOver = std::function<void(const Status& status)>;
  virtual Status hand_over(const std::string& preferred, int64_t timeout_ms,
                           OnHandOver when_near) = 0;
  // Ends a hand-over that still waits, so that this node continues as the primary. An error: no
  // hand-over runs, or the epoch is being given away already.
  virtual Status abort_hand_over() = 0;
  // For this time no node takes over from a primary that fails, but that one's own when it starts
  // again; hand-overs still work. 0: ends a pause. Works at any node, as soon as the
  // replicated log answers: the view shows it. An error: this node is starting.
  virtual Status pause(int64_t for_ms) = 0;
};

}  // namespace sluice
