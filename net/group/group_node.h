// GroupNode: this process's part in its group. It follows the replicated log, takes it over when
// the primary is silent, leads it, and gives it away.
//
//   open     reads the state of the log; a group that does not exist yet is begun here (INIT), if
//            this node may; checks that the log is the one that this node has followed
//   follow   every commit goes to the host, which applies it (GroupFeed). Once it has caught up it
//            may take over (Election, LogTakeover)
//   lead     the host writes the log (ReplicatedCommit); this node sends beats
//   resign   the host has stopped writing; the epoch becomes nobody's
//
// Threads: post() of the inbox, view() and what HandOver says by any; everything else by the
// group's thread. The log must be closed before the node is destroyed, and its answers need the
// inbox. Times are milliseconds of CLOCK_BOOTTIME.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/base/status.h"
#include "engine/ports/group_port.h"
#include "net/group/doubt.h"
#include "net/group/election.h"
#include "net/group/group_feed.h"
#include "net/group/group_inbox.h"
#include "net/group/group_members.h"
#include "net/group/group_pause.h"
#include "net/group/group_wait.h"
#include "net/group/hand_over.h"
#include "net/group/log_bound.h"
#include "net/group/log_compaction.h"
#include "net/group/log_trim.h"
#include "net/group/read_lease.h"
#include "storage/log_sink.h"
#include "storage/replicated_commit.h"

namespace sluice {

// Another node has the epoch: memory may hold changes that the log does not have. The supervisor
// starts the process again, as a standby.
inline constexpr int kFencedExitCode = 76;

// What the node needs of the server. Called by the group's thread.
class GroupHost {
 public:
  virtual ~GroupHost() = default;
  // Applies commits, in order and behind those before, and posts on_applied() for each.
  virtual void apply(std::vector<TailCommit> commits) = 0;
  // Once: everything that the log held at the start is applied. Reads may be answered.
  virtual void caught_up() = 0;
  // Once: this node leads, everything is applied. on_promoted() follows.
  virtual void promote(ReplicatedOptions options) = 0;
  // Whether everything that was appended is in the log. Nothing is appended after stop_writing().
  virtual void stop_writing() = 0;
  virtual bool is_durable() = 0;
  // This process serves nobody: it must not keep others from leading.
  virtual bool is_stuck() = 0;
  // The hand-over was given up before RESIGN.
  virtual void resume_writing() = 0;
  // What the log has acknowledged.
  virtual LogPosition led_position() = 0;
  // What the record of this node tells of its checkpoints and users.
  virtual void fill_record(GroupMember& self) = 0;
  // Its checkpoint keeps the log long: one is to begin at `lsn` or later, unless one is being made.
  virtual void want_checkpoint(Lsn lsn) = 0;
  // Once, the last call. `exit_code` 0: it has resigned as the server was asked to stop.
  virtual void end(int exit_code, const Status& reason) = 0;
  virtual void view_changed(std::shared_ptr<const GroupView> view) = 0;
};

struct GroupNodeOptions {
  std::string cluster;
  std::string group;
  std::string owner;    // the id of the data directory: a process started again has the same
  GroupMember self;     // name, run id, addresses, priority, version, mark of the configuration
  LogPosition begin;    // where the local log ends; cluster_id is empty if it belongs to no group
  bool begins = false;  // `begin` names the group that these data begin, unless it exists
  ElectionOptions election;
  int64_t beat_ms = 200;
  size_t in_flight = 4;
  size_t checkpoint_copies = 0;  // 0: two while two nodes live and the log has room, else one
  uint64_t max_log_bytes = uint64_t{1} << 30;
  size_t max_pending_bytes = GroupFeed::kMaxPendingBytes;  // tests use less
  std::function<int64_t()> now_ms;                         // CLOCK_BOOTTIME, by any thread
  std::function<int64_t()> wall_ms;
  std::function<std::string()> make_id;  // 40 hexadecimal digits, random
  LogSink log;
};

class GroupNode {
 public:
  // All must outlive it.
  GroupNode(RemoteLog& log, GroupInbox& inbox, GroupHost& host, ReadLease& lease,
            GroupNodeOptions options);
  ~GroupNode();

  // Runs what is posted and what is due. Returns when the next thing is due.
  int64_t step(int64_t now_ms);

  // The host has applied a commit, and written it to the local log.
  void on_applied(const LogPosition& position, size_t bytes);
  void on_promoted();
  // What the others are told of this node from now on: where clients reach it, its priority, and
  // the mark of its configuration.
  void announce(const GroupMember& self);
  // Gives the epoch away, then end(exit_code). `preferred`: the node that may take it at once;
  // empty: any, or with kFencedExitCode the one that has the most of the log. Until `give_up_ms`
  // (INT64_MAX: never) writes may go on instead, if `exit_code` is kFencedExitCode. A node that
  // takes the epoch gives it away when it has it; one that neither leads nor takes ends at once.
  void resign(const std::string& preferred, int exit_code, int64_t give_up_ms);
  HandOver& hand_over() { return hand_over_; }

  std::shared_ptr<const GroupView> view() const;
  // When the log was last heard of.
  int64_t heard_ms() const { return heard_ms_.load(std::memory_order_relaxed); }

 private:
  class Listener;
  enum class Stage : uint8_t { kOpen, kFollow, kTake, kPromote, kLead, kResign, kEnded };

  // --- Opening ---
  void open();
  void opened(uint64_t known, const RemoteAnswer& answer, const RemoteState& state);
  void begin_group();
  void init(const std::vector<RemoteRecord>& nodes);
  void follow(int64_t revision, const RemoteState& state);
  void retry_open(const std::string& why);
  // --- What is told ---
  void on_frame(uint64_t seq, const std::string& frame);
  void on_beat(const std::string& value);
  void on_epoch(const std::string& value);
  void on_lost(const Status& reason);
  void on_fenced();
  // --- Roles ---
  void elect();
  void take();
  void taken(const TakeoverResult& result);
  void promote_if_applied();
  void beat();
  void on_beaten(const RemoteAnswer& answer);
  void trim();
  void on_trimmed(const RemoteAnswer& answer, const LogPosition& to, const std::string& text);
  void begin_resigning();
  void resign_if_durable();
  void end(int exit_code, const Status& reason);
  // --- The view ---
  void measure_log(const GroupMember& self);
  GroupMember self() const;
  // Also for the last time; not if it gives away what it has only taken.
  bool leads() const { return stage_ == Stage::kLead || (stage_ == Stage::kResign && promoting_); }
  LogPosition position() const { return leads() ? host_.led_position() : applied_; }
  void publish();
  GroupRole role() const;
  void say(LogLevel level, const std::string& text) const;
  // Runs `then` on the group's thread, unless the node has ended.
  void post(GroupInbox::Task then);

  RemoteLog& log_;
  GroupInbox& inbox_;
  GroupHost& host_;
  GroupNodeOptions options_;
  Election election_;
  ReadLease& lease_;
  GroupFeed feed_;
  GroupMembers members_;
  GroupPause pause_;
  Stage stage_ = Stage::kOpen;
  int64_t now_ = 0;
  std::atomic<int64_t> heard_ms_{0};
  std::shared_ptr<Listener> listener_;
  bool follows_ = false;               // the listener has lost nothing
  std::atomic<size_t> told_bytes_{0};  // of frames that the log has told, and step() has not met

  bool opening_ = false;
  int64_t open_at_ms_ = INT64_MIN;
  Doubt doubt_;                  // that this is the log that was followed
  bool begun_ = false;           // the election has the state of the log
  std::optional<Lsn> read_lsn_;  // the end of what was there at the start
  bool caught_up_ = false;
  LogPosition applied_;
  BeatValue last_beat_;
  int64_t behind_since_ms_ = 0;  // the beat that this node has not reached; 0: none
  int64_t linked_ms_ = 0;        // when a primary was last heard of; 0: never

  std::shared_ptr<LogTakeover> takeover_;
  LogPosition took_;  // behind the last commit that the takeover has given
  int64_t take_began_ms_ = 0;
  TakeoverResult taken_;
  bool promoting_ = false;  // the host was asked to; it may have written since

  std::atomic<int64_t> proved_ms_{0};  // the newest append that has extended the lease
  uint64_t beats_ = 0;
  bool beating_ = false;
  int64_t beat_at_ms_ = INT64_MIN;

  LogTrim trim_;
  LogCompaction compaction_;
  std::string log_kept_by_;
  LogBound bound_;
  bool trimming_ = false;
  int64_t trim_at_ms_ = INT64_MIN;
  int64_t alone_since_ms_ = 0;     // no other node lives; 0: one does
  std::set<std::string> hanging_;  // of the others, since the last look

  HandOver hand_over_;

  uint64_t takeovers_ = 0;
  int64_t last_takeover_ms_ = 0;
  GroupWait wait_;
  int64_t publish_at_ms_ = INT64_MIN;
  mutable Mutex view_mutex_;
  std::shared_ptr<const GroupView> view_ GUARDED_BY(view_mutex_);
};

}  // namespace sluice
