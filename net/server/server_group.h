// ServerGroup: a server's part in a group whose journal is on etcd (`journal etcd`): the thread of
// its GroupNode, and what that needs of the engine, the journal and the I/O threads.
//
// Commits of another primary are applied by I/O thread 0, in slices, so that one I/O thread alone
// changes keys; then the group's thread writes them to the local log.
//
// Threads: GroupPort by any; GroupHost by the group's thread; the rest by the control thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/access/users_mark.h"
#include "engine/base/mutex.h"
#include "engine/base/thread.h"
#include "engine/execution/follower.h"
#include "net/group/difference_log.h"
#include "net/group/group_node.h"
#include "net/group/hand_over_wish.h"
#include "net/group/pause_wish.h"
#include "net/group/serving_gate.h"
#include "net/group/wall_watch.h"
#include "net/process/clocks.h"
#include "net/process/logging.h"
#include "net/process/wall_clock.h"
#include "net/server/loading_progress.h"
#include "net/server/server_life.h"
#include "net/server/server_listeners.h"
#include "net/server/server_shared.h"
#include "net/server/server_store.h"
#include "net/server/thread_watch.h"
#include "storage/format.h"
#include "storage/remote_log.h"

namespace sluice {

class ServerGroup final : public GroupPort, private GroupHost {
 public:
  ServerGroup(ServerShared& shared, ServerLife& life, LoadingProgress& loading, ServerStore& store,
              const ServerListeners& listeners)
      : shared_(shared), life_(life), loading_(loading), store_(store), listeners_(listeners) {}
  // After store.close(): the journal uses the log.
  ~ServerGroup() override;

  // Reads what etcd's options name. Before the I/O threads start.
  Status open(const Settings& settings);
  // Before recovery: gets the data of another node if the directory's cannot be continued, or if
  // `anew`. `token` is for the others' HTTP sides. False: the server must stop.
  bool load_copy(bool anew, const std::string& token);
  // After recovery. Blocks until this node has caught up with its group. False: the server must
  // stop.
  bool start();
  // The server stops: hands the group over if this node leads it, or takes it. At most kPatience.
  void leave();
  // CONFIG SET has changed what others are told of this node. I/O threads.
  void settings_changed(const Settings& settings);
  // Ends the thread; the node is not heard of any more.
  void stop();

  // --- GroupPort ---
  std::shared_ptr<const GroupView> view() const override;
  void follow(OnView on_view) override;
  int64_t view_age_ms() const override;
  int64_t lease_ms() const override;
  Status hand_over(const std::string& preferred, int64_t timeout_ms, OnHandOver when_near) override;
  Status abort_hand_over() override;
  Status pause(int64_t for_ms) override;

 private:
  static constexpr std::chrono::milliseconds kPatience{4000};

  // --- GroupHost ---
  void apply(std::vector<TailCommit> commits) override;
  void caught_up() override;
  void promote(ReplicatedOptions options) override;
  void stop_writing() override;
  bool is_durable() override;
  bool is_stuck() override { return watch_->is_stuck(Clocks::boot_ms()); }
  void resume_writing() override;
  LogPosition led_position() override;
  void fill_record(GroupMember& self) override;
  void want_checkpoint(Lsn lsn) override;
  void end(int exit_code, const Status& reason) override;
  void view_changed(std::shared_ptr<const GroupView> view) override;

  Result<GroupNodeOptions> node_options(const Settings& settings);
  void publish_waiting(const Settings& settings, const std::string& node, const std::string& why);
  Status load_copy_as(const Settings& settings, bool anew, const std::string& token);
  int end_to_load_anew();
  void announce_to(GroupMember& self, const Settings& settings) const;
  void run();
  bool was_set_back();
  void tend_gate(int64_t now_ms);
  void release_requests(Hold why);
  // --- I/O thread 0 ---
  void on_first_thread(std::function<void()> task);
  void apply_some();
  bool begin_commit();
  bool apply_unit();

  ServerShared& shared_;
  ServerLife& life_;
  LoadingProgress& loading_;
  ServerStore& store_;
  const ServerListeners& listeners_;
  std::unique_ptr<RemoteLog> log_;
  std::shared_ptr<PauseWish> pause_wish_;
  std::string held_as_;  // the name of the hold; empty: nothing is held
  GroupInbox inbox_;
  std::string routed_host_;  // from where etcd is reached
  std::string cluster_id_;   // of the directory, at the start; empty: it belongs to no group
  std::optional<ThreadWatch> watch_;
  std::unique_ptr<GroupNode> node_;
  std::atomic<GroupNode*> started_{nullptr};  // the same, for other threads
  // Until the node has started: when the log was heard of.
  std::atomic<int64_t> opened_ms_{Clocks::boot_ms()};
  // The control thread's until the group's thread begins.
  WallWatch wall_watch_{Clocks::boot_ms, wall_ms};
  bool set_back_ = false;
  mutable std::optional<ServingGate> gate_;
  Thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> caught_up_{false};
  std::atomic<bool> ended_{false};
  // The I/O threads that may still write after stop_writing(); null: writing is not stopped. Of the
  // group's thread.
  std::shared_ptr<std::atomic<int>> busy_threads_;
  // The group's thread uses these.
  std::optional<UsersMark> users_mark_;
  DifferenceLog difference_log_{storage_log_sink()};
  HandOverWish wish_{storage_log_sink()};

  mutable Mutex mutex_;
  // Before the node is started.
  std::shared_ptr<const GroupView> first_view_ GUARDED_BY(mutex_) =
      std::make_shared<const GroupView>();
  std::vector<OnView> on_view_ GUARDED_BY(mutex_);
  // What is to be applied.
  std::deque<TailCommit> queue_ GUARDED_BY(mutex_);
  bool applying_ GUARDED_BY(mutex_) = false;
  // I/O thread 0: the commit in hand.
  std::unique_ptr<Follower> follower_;
  std::optional<TailCommit> commit_;
  std::optional<UnitCursor> cursor_;
};

}  // namespace sluice
