// A replicated log in memory, for tests: deterministic by its seed, with every fault that a network
// and a service can have. Requests and answers wait until step() picks one, at random; a request
// may be lost, answered "unknown" although it was carried out, and carried out once more at any
// later time, also after its caller has given up or is gone.
//
// Threads: any. With step() called by one thread, that thread makes all callbacks, and a run is
// deterministic. start() makes a thread that steps as long as something is outstanding.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "storage/group_keys.h"
#include "storage/remote_log.h"

namespace sluice::test {

// Chances from 0 to 1.
struct FakeFaults {
  double lost = 0;          // a request is answered "unknown" and not carried out, for now
  double unanswered = 0;    // it is carried out and answered "unknown"
  double repeated = 0;      // it is carried out once more, some time later
  double old_frames = 0;    // frames that are read at no revision are those of an older one
  double event_lost = 0;    // a frame is not told to a follower
  double pause_lost = 0;    // nor that the group is paused
  double record_lost = 0;   // nor what becomes of a record
  double holds_unread = 0;  // as `lost`, of reads of holds
  bool no_fence = false;    // appends do not compare the epoch: the rule that must not be missing
};

class FakeRemoteService {
 public:
  explicit FakeRemoteService(uint64_t seed, FakeFaults faults = {});
  ~FakeRemoteService();

  // A client of its own for each process. Must not outlive the service.
  std::unique_ptr<RemoteLog> connect();

  // Lets one thing happen. False: nothing is outstanding.
  bool step();
  // Until nothing is outstanding, which with repetitions never happens to requests of the past.
  void settle();
  void start();
  void stop();
  // Nothing happens while stalled.
  void set_stalled(bool stalled);
  void set_faults(const FakeFaults& faults);
  // What status() tells.
  void set_members(std::vector<RemoteMember> members);
  size_t outstanding() const;

  // What an operator, or another process, does to it directly.
  RemoteState state() const;
  std::map<uint64_t, std::string> frames() const;
  void put_epoch(const std::string& value);
  void put_frame(uint64_t seq, const std::string& frame);
  void erase_frame(uint64_t seq);
  void compact();  // forgets older revisions
  void lose_followers();
  // So many reads of the state or of frames, at no revision, are as of this one: etcd has had such
  // faults.
  void read_old(int64_t revision, size_t count);
  void expire(RemoteRecordKind kind, const std::string& name);
  int64_t revision() const;
  int64_t compacted() const;   // the oldest revision that it still shows
  size_t frames_told() const;  // to all followers

 private:
  friend class FakeRemoteLog;
  using Answer = std::function<void()>;
  struct Request {
    uint64_t client = 0;
    bool reads_holds = false;
    std::function<Answer()> run;  // under the lock; returns the callback
    std::function<void(RemoteOutcome)> refuse;
  };
  struct Change {
    int64_t revision = 0;
    std::string key;
    std::optional<std::string> value;
  };
  struct Follower {
    std::shared_ptr<RemoteListener> listener;
    std::deque<Change> events;
    bool lost = false;
    RemoteFollow what = RemoteFollow::kAll;
  };
  struct Waiting {
    Request request;
    Answer answer;
  };

  bool chance(double share) { return share > 0 && unit_(random_) < share; }
  size_t pick(size_t count) { return random_() % count; }
  int64_t older(int64_t revision) {
    return compacted_ + static_cast<int64_t>(pick(static_cast<size_t>(revision - compacted_ + 1)));
  }
  void submit(Request request);
  void close(uint64_t client);
  void follow(uint64_t client, int64_t revision, RemoteFollow what,
              std::shared_ptr<RemoteListener> listener);
  bool follows(const Follower& follower, const Change& change) const {
    return follower.what == RemoteFollow::kAll || !change.key.starts_with(keys_.logs());
  }
  Answer arrive();
  Answer tell();
  Answer event_of(Follower& follower, const Change& change);

  std::optional<std::string> get(const std::string& key, int64_t revision = 0) const;
  void put(const std::string& key, std::optional<std::string> value);
  void forget(int64_t revision) { compacted_ = std::max(compacted_, revision); }
  std::vector<std::string> keys_of(const std::string& prefix, int64_t revision) const;
  RemoteState state_at(int64_t revision) const;
  bool fenced(const std::string& fence, RemoteAnswer& answer) const;
  void run();

  const GroupKeys keys_{"main", "1"};
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::mt19937_64 random_;
  std::uniform_real_distribution<double> unit_{0, 1};
  FakeFaults faults_;
  std::vector<RemoteMember> members_{{"the fake", true, true, "3.6.9", 1 << 20, 8ULL << 30, {}}};
  uint64_t clients_ = 0;
  std::set<uint64_t> closed_;
  std::vector<Request> requests_;
  std::vector<Waiting> answers_;
  std::vector<std::function<Answer()>> past_;  // may be carried out again
  std::map<uint64_t, Follower> followers_;
  std::map<std::string, std::vector<std::pair<int64_t, std::optional<std::string>>>> values_;
  std::vector<Change> changes_;
  std::map<std::string, std::string> owners_;  // of records
  uint64_t calling_ = 0;                       // the client whose callback runs
  int64_t revision_ = 1;
  int64_t compacted_ = 0;
  int64_t old_revision_ = 0;
  size_t old_reads_ = 0;
  size_t frames_told_ = 0;
  bool stalled_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace sluice::test
