#include "storage/etcd/etcd_records.h"

#include <utility>
#include <vector>

#include "storage/etcd/etcd_ask.h"
#include "storage/etcd/etcd_follow.h"

namespace sluice {

namespace {

using std::chrono::milliseconds;

constexpr int64_t kNodeTtlS = 5;
constexpr int64_t kHoldTtlS = 30;
constexpr milliseconds kKeepAgain{300};

// How etcd calls a lease that has ended.
bool is_lost_lease(const EtcdResult& result) {
  return result.status.message().find("requested lease not found") != std::string::npos;
}

}  // namespace

std::string EtcdRecords::prefix(RemoteRecordKind kind) const {
  return kind == RemoteRecordKind::kNode ? keys_.nodes() : keys_.holds();
}

EtcdRecords::RecordPointer EtcdRecords::find(RemoteRecordKind kind, const std::string& name) {
  const MutexLock lock(mutex_);
  RecordPointer& record = records_[prefix(kind) + name];
  if (!record) {
    record = std::make_shared<Record>();
    record->key = prefix(kind) + name;
    record->ttl_s = kind == RemoteRecordKind::kNode ? kNodeTtlS : kHoldTtlS;
  }
  return record;
}

void EtcdRecords::enqueue(const RecordPointer& record, std::function<void()> operation) {
  {
    const MutexLock lock(mutex_);
    record->operations.push_back(operation);
    if (record->operations.size() > 1) return;
  }
  operation();
}

void EtcdRecords::end_operation(const RecordPointer& record) {
  std::function<void()> next;
  {
    const MutexLock lock(mutex_);
    record->operations.pop_front();
    if (record->operations.empty()) return;
    next = record->operations.front();
  }
  next();
}

// --- put -----------------------------------------------------------------------------------------

void EtcdRecords::put(RemoteRecordKind kind, const std::string& name, const std::string& owner,
                      const std::string& value, RemoteDone done) {
  const auto put = std::make_shared<Put>();
  put->record = find(kind, name);
  put->done = std::move(done);
  enqueue(put->record, [this, put, stored = owner + '\n' + value] {
    put->record->stored = stored;
    put_now(put);
  });
}

void EtcdRecords::put_now(const PutPointer& put) {
  if (put->record->lease != 0) return write(put);
  etcdserverpb::LeaseGrantRequest request;
  request.set_ttl(put->record->ttl_s);
  ask_etcd<etcdserverpb::LeaseGrantResponse>(
      client_, "/etcdserverpb.Lease/LeaseGrant", request, EtcdPatience::kShort,
      [this, put](const EtcdResult& result, const etcdserverpb::LeaseGrantResponse& response) {
        if (result.outcome != EtcdOutcome::kOk) return end_put(put, to_answer(result));
        put->record->lease = response.id();
        write(put);
      });
}

void EtcdRecords::write(const PutPointer& put) {
  const Record& record = *put->record;
  etcdserverpb::TxnRequest request;
  compare_value(request, record.key, record.known);
  etcdserverpb::PutRequest& stored = *request.add_success()->mutable_request_put();
  stored.set_key(record.key);
  stored.set_value(record.stored);
  stored.set_lease(record.lease);
  get_on_failure(request, record.key);
  ask_etcd<etcdserverpb::TxnResponse>(
      client_, kEtcdTxn, request, EtcdPatience::kShort,
      [this, put](const EtcdResult& result, const etcdserverpb::TxnResponse& response) {
        on_written(put, result, response);
      });
}

void EtcdRecords::on_written(const PutPointer& put, const EtcdResult& result,
                             const etcdserverpb::TxnResponse& response) {
  Record& record = *put->record;
  if (result.outcome != EtcdOutcome::kOk) {
    if (!is_lost_lease(result) || --put->tries_left == 0) return end_put(put, to_answer(result));
    record.lease = 0;
    return put_now(put);
  }
  if (response.succeeded()) {
    record.known = record.stored;
    return end_put(put, done_at(response.header().revision()));
  }
  const std::string found = value_of(response, 0);
  const std::string owner = record.stored.substr(0, record.stored.find('\n') + 1);
  if (!found.empty() && !found.starts_with(owner)) {
    return end_put(put, without_effect(RemoteOutcome::kConflict));
  }
  if (--put->tries_left == 0) {
    const Status status = io_error("another process puts the same record");
    return end_put(put, to_answer({EtcdOutcome::kUnknown, status}));
  }
  record.known = found;
  write(put);
}

void EtcdRecords::end_put(const PutPointer& put, const RemoteAnswer& answer) {
  Record& record = *put->record;
  if (answer.outcome == RemoteOutcome::kConflict) record.stored.clear();
  if (answer.outcome == RemoteOutcome::kDone && !std::exchange(record.kept, true)) {
    keep(put->record, milliseconds(record.ttl_s * 1000 / 3));
  }
  if (put->done) put->done(answer);
  end_operation(put->record);
}

// --- leases --------------------------------------------------------------------------------------

void EtcdRecords::keep(const RecordPointer& record, milliseconds delay) {
  client_.after(delay, [this, record] {
    if (client_.closing()) return;
    enqueue(record, [this, record] { keep_now(record); });
  });
}

void EtcdRecords::keep_now(const RecordPointer& record) {
  if (record->stored.empty()) {
    record->kept = false;
    return end_operation(record);
  }
  const milliseconds interval(record->ttl_s * 1000 / 3);
  if (record->lease == 0) {
    keep(record, interval);
    const auto put = std::make_shared<Put>();
    put->record = record;
    return put_now(put);
  }
  // One message and its answer: a unary call, although etcd calls it a stream.
  etcdserverpb::LeaseKeepAliveRequest request;
  request.set_id(record->lease);
  ask_etcd<etcdserverpb::LeaseKeepAliveResponse>(
      client_, "/etcdserverpb.Lease/LeaseKeepAlive", request, EtcdPatience::kShort,
      [this, record, interval](const EtcdResult& result,
                               const etcdserverpb::LeaseKeepAliveResponse& response) {
        const bool ok = result.outcome == EtcdOutcome::kOk;
        if (ok && response.ttl() <= 0) {
          // It has ended, and the record with it: the next turn puts it anew.
          record->lease = 0;
          record->known.clear();
        }
        keep(record, ok && record->lease != 0 ? interval : kKeepAgain);
        end_operation(record);
      });
}

void EtcdRecords::drop(RemoteRecordKind kind, const std::string& name, RemoteDone done) {
  const RecordPointer record = find(kind, name);
  enqueue(record, [this, record, done = std::move(done)] {
    record->stored.clear();
    if (record->lease == 0) {
      done(client_.closing() ? without_effect(RemoteOutcome::kClosed) : RemoteAnswer());
      return end_operation(record);
    }
    // The record is there only as long as the lease.
    etcdserverpb::LeaseRevokeRequest request;
    request.set_id(record->lease);
    ask_etcd<etcdserverpb::LeaseRevokeResponse>(
        client_, "/etcdserverpb.Lease/LeaseRevoke", request, EtcdPatience::kShort,
        [this, record, done](const EtcdResult& result,
                             const etcdserverpb::LeaseRevokeResponse& response) {
          const bool gone = result.outcome == EtcdOutcome::kOk || is_lost_lease(result);
          if (gone) {
            record->lease = 0;
            record->known.clear();
          }
          done(gone ? done_at(response.header().revision()) : to_answer(result));
          end_operation(record);
        });
  });
}

// --- read ----------------------------------------------------------------------------------------

void EtcdRecords::read(RemoteRecordKind kind, RemoteRecordsDone done) {
  const std::string from = prefix(kind);
  etcdserverpb::RangeRequest request;
  request.set_key(from);
  request.set_range_end(end_of_prefix(from));
  ask_etcd<etcdserverpb::RangeResponse>(
      client_, kEtcdRange, request, EtcdPatience::kShort,
      [from, done = std::move(done)](const EtcdResult& result,
                                     const etcdserverpb::RangeResponse& response) {
        if (result.outcome != EtcdOutcome::kOk) return done(to_answer(result), {});
        std::vector<RemoteRecord> records;
        for (const etcdserverpb::KeyValue& entry : response.kvs()) {
          records.push_back({.name = entry.key().substr(from.size()),
                             .value = std::string(value_of_record(entry.value()))});
        }
        done(done_at(response.header().revision()), std::move(records));
      });
}

}  // namespace sluice
