// The leased records of a group in etcd. What is asked of one record happens one after the other.
//
// Any thread may call; answers come on the thread of EtcdRpc, or inside the call once it is closed.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "engine/base/mutex.h"
#include "storage/etcd/etcd_client.h"
#include "storage/group_keys.h"
#include "storage/remote_log.h"

namespace etcdserverpb {
class TxnResponse;
}  // namespace etcdserverpb

namespace sluice {

class EtcdRecords {
 public:
  EtcdRecords(EtcdClient& client, const GroupKeys& keys) : client_(client), keys_(keys) {}

  void put(RemoteRecordKind kind, const std::string& name, const std::string& owner,
           const std::string& value, RemoteDone done) EXCLUDES(mutex_);
  void drop(RemoteRecordKind kind, const std::string& name, RemoteDone done) EXCLUDES(mutex_);
  void read(RemoteRecordKind kind, RemoteRecordsDone done);

 private:
  struct Record {
    std::string key;
    int64_t ttl_s = 0;
    // The operation that runs uses these; the others wait in `operations`.
    std::string stored;  // owner and value; empty: dropped
    std::string known;   // what etcd holds, as far as is known; empty: nothing
    int64_t lease = 0;   // 0: none
    bool kept = false;   // a timer keeps the lease
    std::deque<std::function<void()>> operations;
  };
  using RecordPointer = std::shared_ptr<Record>;
  struct Put {
    RecordPointer record;
    RemoteDone done;
    int tries_left = 4;
  };
  using PutPointer = std::shared_ptr<Put>;

  std::string prefix(RemoteRecordKind kind) const;
  RecordPointer find(RemoteRecordKind kind, const std::string& name) EXCLUDES(mutex_);
  void enqueue(const RecordPointer& record, std::function<void()> operation) EXCLUDES(mutex_);
  void end_operation(const RecordPointer& record) EXCLUDES(mutex_);

  void put_now(const PutPointer& put);
  void write(const PutPointer& put);
  void on_written(const PutPointer& put, const EtcdResult& result,
                  const etcdserverpb::TxnResponse& response);
  void end_put(const PutPointer& put, const RemoteAnswer& answer);
  void keep(const RecordPointer& record, std::chrono::milliseconds delay);
  void keep_now(const RecordPointer& record);

  EtcdClient& client_;
  const GroupKeys& keys_;
  Mutex mutex_;
  std::map<std::string, RecordPointer> records_ GUARDED_BY(mutex_);
};

}  // namespace sluice
