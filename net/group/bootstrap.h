// Bootstrap: how a node whose directory cannot be continued from the replicated log gets the data
// of another node of its group: one without data in a group that began with some or whose log was
// trimmed, one that was away while the log was trimmed, and one that is asked to load anew.
//
//   hold     tells the group not to trim what lies behind the copy, until that fails
//   load     the newest checkpoint of a live node and the log behind it, a standby's before the
//            primary's, into a folder beside the data
//   install  in place of the data, which are removed then
//
// A copy that does not come whole is dropped and loaded again, from the next node. Used by one
// thread, which it blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/ports/group_port.h"
#include "net/group/copy_client.h"
#include "storage/copy_stream.h"
#include "storage/group_keys.h"
#include "storage/log_sink.h"
#include "storage/remote_log.h"

namespace sluice {

struct BootstrapOptions {
  std::string directory;
  std::string cluster;
  std::string group;
  std::string node;              // the name of the hold
  std::string owner;             // the id of the directory
  std::string token;             // for the other nodes' HTTP sides
  bool anew = false;             // the data are to be replaced in any case
  uint64_t keep_free_bytes = 0;  // of the disk, beside the copy
  int64_t retry_ms = 1000;
  std::function<bool()> goes_on;                                   // false: the server stops
  std::function<void(uint64_t done, uint64_t total)> on_progress;  // bytes
  std::function<void(const std::string& why)> on_wait;             // in words
  std::function<void()> on_heard;                                  // the log has answered
  LogSink log;
  // Replaced in tests.
  std::function<Status(const CopySource&, const CopyClientOptions&,
                       const std::function<Status(Bytes)>&)>
      fetch = fetch_copy;
};

class Bootstrap {
 public:
  // A copy that was trimmed past while it was loaded is loaded again, so many times.
  static constexpr int kMaxTrimmed = 3;

  // `log` must outlive it.
  Bootstrap(RemoteLog& log, BootstrapOptions options);

  // On return the directory can be opened; if a copy was loaded, its hold is kept
  // (RemoteLog::drop_record). Errors: kCancelled if the server stops; kNoSpace if the disk has no
  // room for the copy; else in words for the log.
  Status run();
  bool has_loaded() const { return loaded_; }

 private:
  Status check_owner(const EpochValue& epoch) const;
  Status keep_wish(const EpochValue& epoch) const;
  std::string advice() const;
  bool needs_copy(const RemoteState& state, const EpochValue& epoch) const;
  Status load();
  Status try_once(const EpochValue& epoch);
  Status load_from(const EpochValue& epoch, const GroupMember& from);
  Status hold(Lsn lsn);
  void release();
  Status download(const GroupMember& from);
  Status check_copy(const EpochValue& epoch, const CopyHead& head);
  // Waits for what the log answers to `request`, which gets the callback. kCancelled: the server
  // stops.
  template <typename Value, typename Request>
  Result<Value> answer_to(const Request& request);
  Result<RemoteState> read_state();
  Result<std::vector<GroupMember>> find_sources();
  bool rest();
  void say(LogLevel level, const std::string& text);

  RemoteLog& log_;
  const BootstrapOptions options_;
  size_t tries_ = 0;
  int trimmed_ = 0;
  std::set<std::string> said_;  // since a minute before say_again_ms_
  int64_t say_again_ms_ = 0;
  size_t unsaid_ = 0;  // lines that were left out since the last one
  CopyHead head_;      // of the last copy
  bool loaded_ = false;
};

}  // namespace sluice
