// GroupMembers: the records of a group's live processes, this one's among them, and of those that
// load.
//
// Used by the group's thread. Times are milliseconds of CLOCK_BOOTTIME.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/ports/group_port.h"
#include "net/group/group_inbox.h"
#include "storage/remote_log.h"

namespace sluice {

class GroupMembers {
 public:
  // A record is renewed at most every kRecordMs. That of a killed process lives for 5 s, so another
  // one with this node's name is reported after kOtherProcessMs.
  static constexpr int64_t kRecordMs = 200;
  static constexpr int64_t kOtherProcessMs = 10'000;
  // What was not told is found out after this time at most.
  static constexpr int64_t kReadMs = 5000;
  // A node that has applied nothing at so many looks in a row, kReadMs or more apart, hangs: the
  // log had more for it each time. About as long as a thread may be busy (watchdog-ms).
  static constexpr int kStillLooks = 3;

  // `owner`: the id of the data directory; a process that was started again has the same.
  // `run_id`: of this process. `on_refused`: another one runs as this node, and was there first.
  GroupMembers(RemoteLog& log, GroupInbox& inbox, std::string owner, std::string run_id,
               std::function<void(const Status&)> on_refused)
      : log_(log),
        inbox_(inbox),
        owner_(std::move(owner)),
        run_id_(std::move(run_id)),
        on_refused_(std::move(on_refused)) {}

  // Reads all records: those of before the log was followed, and what was not told. `was_away`: for
  // a time nothing was told.
  void read(const std::string& own_name, int64_t now_ms, bool was_away = true);
  // A record was put, or has vanished.
  void on_record(RemoteRecordKind kind, const std::string& name,
                 const std::optional<std::string>& value, const std::string& own_name);
  // Puts this node's record, if it has changed and none is on its way. Reads all from time to time.
  void step(const GroupMember& self, int64_t now_ms);
  void put_soon() { put_at_ms_ = INT64_MIN; }
  // This node's record is there, as far as is known.
  bool is_recorded() const { return is_recorded_; }
  // Why it could not be put, in words; empty: it was, or another process has it.
  const std::string& put_failure() const { return put_failure_; }
  // Both kinds were read since read(): what is not known was not there.
  bool has_read() const { return has_read_[0] && has_read_[1]; }
  // The log had it as they were last read, kReadMs ago at most while it answers; 0: they never
  // were.
  int64_t revision() const { return revision_; }
  // The node that can take over soonest: of those that may, the one with the most of the log.
  // Empty: none may, or they are starting.
  std::string successor() const;
  bool other_process() const { return other_since_ms_ != 0; }
  // The nodes that hang, though their records are kept. Looks count and no clock, so a pause of
  // this process, or of etcd, makes nobody hang.
  std::set<std::string> hanging() const;

  // Without this one.
  const std::map<std::string, GroupMember>& others() const { return others_; }
  // The lsn from which each loading process continues.
  const std::map<std::string, Lsn>& holds() const { return holds_; }
  // All nodes, in the order of their names.
  std::vector<GroupMember> all(const GroupMember& self) const;

 private:
  struct Progress {
    std::string run_id;
    Lsn lsn = 0;
    int still = 0;  // looks at which it had not moved

    bool is_of(const GroupMember& member) const {
      return run_id == member.run_id && lsn == member.lsn;
    }
  };

  static size_t index_of(RemoteRecordKind kind) { return kind == RemoteRecordKind::kHold ? 1 : 0; }
  void read_again(const std::string& own_name, int64_t now_ms);
  void read(RemoteRecordKind kind, const std::string& own_name, int64_t now_ms);
  void take(RemoteRecordKind kind, const std::string& name, const std::string& value);
  void on_read(RemoteRecordKind kind, const std::string& own_name,
               const std::vector<RemoteRecord>& records);
  void look_for_progress(int64_t now_ms);
  void take_own(const std::string& name, const std::string& value, bool was_away);
  void lose_record() {
    is_recorded_ = false;
    must_put_ = true;
  }
  // The process that puts it now is the first.
  void vanish() {
    is_known_ = false;
    lose_record();
  }
  void put(const GroupMember& self, int64_t now_ms);
  void on_put(const RemoteAnswer& answer, const std::string& name, int64_t now_ms);

  RemoteLog& log_;
  GroupInbox& inbox_;
  const std::string owner_;
  const std::string run_id_;
  const std::function<void(const Status&)> on_refused_;
  std::map<std::string, GroupMember> others_;
  std::map<std::string, Lsn> holds_;
  std::map<std::string, Progress> progress_;  // of the others, as of the last look
  Lsn looked_lsn_ = 0;                        // what the log had then, by this node's record
  int64_t look_at_ms_ = INT64_MIN;
  // The names of the records that were told since they were last read, of each kind.
  std::array<std::set<std::string>, 2> told_;
  std::array<uint64_t, 2> reads_{};  // only the answer to the last one counts
  std::array<bool, 2> has_read_{};
  bool was_away_ = false;  // as of the last read()
  int64_t revision_ = 0;
  int64_t read_at_ms_ = INT64_MAX;  // until read() is called
  GroupMember recorded_;
  // The process whose record was there before this one's, which has ended unless it puts another
  // one; empty: none.
  std::string before_;
  bool is_putting_ = false;
  bool is_recorded_ = false;
  std::string put_failure_;
  bool must_put_ = true;   // the record is not there, or may be an older one
  bool is_known_ = false;  // this process's record was told
  int64_t put_at_ms_ = INT64_MIN;
  // Since when another process has this name, and when that was last seen; 0: none has it.
  int64_t other_since_ms_ = 0;
  int64_t other_seen_ms_ = 0;
};

}  // namespace sluice
