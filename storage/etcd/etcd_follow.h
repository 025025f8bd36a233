// A watch of a group's keys, which tells a RemoteListener. It ends with on_lost, or silently with
// stop(). Without frames etcd watches two ranges, before them and behind, on one stream: what etcd
// does not send costs neither side anything. etcd is asked for a sign of life when it has been
// silent for 2 s.
//
// Events come on the thread of EtcdRpc. stop() may be called from any thread; what it interrupts
// may still tell what it has begun.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "storage/etcd/etcd_client.h"
#include "storage/group_keys.h"
#include "storage/remote_log.h"

namespace etcdserverpb {
class Event;
class WatchResponse;
}  // namespace etcdserverpb

namespace sluice {

// The greatest seq that was seen: a hint, which may be too great. Any thread.
class SeenSeq {
 public:
  uint64_t get() const { return seq_; }
  void note(uint64_t seq) {
    uint64_t seen = seq_;
    while (seen < seq && !seq_.compare_exchange_weak(seen, seq)) {
    }
  }

 private:
  std::atomic<uint64_t> seq_{0};
};

class EtcdFollow : public std::enable_shared_from_this<EtcdFollow> {
 public:
  // Frames that come are noted in `seen`.
  static std::shared_ptr<EtcdFollow> make(EtcdClient& client, const GroupKeys& keys, SeenSeq& seen,
                                          std::shared_ptr<RemoteListener> listener);

  // Once.
  void start(int64_t after_revision, RemoteFollow what);
  void stop();

 private:
  EtcdFollow(EtcdClient& client, const GroupKeys& keys, SeenSeq& seen,
             std::shared_ptr<RemoteListener> listener)
      : client_(client), keys_(keys), seen_(seen), listener_(std::move(listener)) {}

  void on_message(const std::string& bytes);
  void tell(const etcdserverpb::Event& event);
  void tell_record(RemoteRecordKind kind, Bytes name, const etcdserverpb::Event& event);
  void lose(const Status& reason);
  void tick();

  EtcdClient& client_;
  const GroupKeys& keys_;
  SeenSeq& seen_;
  const std::shared_ptr<RemoteListener> listener_;
  std::shared_ptr<RpcStream> stream_;
  std::atomic<bool> over_{false};
  // Ticks are counted, not time: a process that was stopped has not listened.
  int silent_ticks_ = 0;
};

// Records lie in etcd as the owner and the value, divided by a line end.
Bytes value_of_record(Bytes stored);

}  // namespace sluice
