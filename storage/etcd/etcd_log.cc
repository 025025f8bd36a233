#include "storage/etcd/etcd_log.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <sstream>
#include <utility>

#include "engine/base/mutex.h"
#include "engine/base/numbers.h"
#include "storage/etcd/etcd_ask.h"
#include "storage/etcd/etcd_client.h"
#include "storage/etcd/etcd_follow.h"
#include "storage/etcd/etcd_records.h"
#include "storage/group_keys.h"

namespace sluice {

namespace {

using etcdserverpb::RangeRequest;
using etcdserverpb::RangeResponse;
using etcdserverpb::TxnRequest;
using etcdserverpb::TxnResponse;

constexpr int64_t kFramesInPage = 32;
constexpr uint64_t kFramesInDelete = 256;

bool is_pem(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  return file && text.str().find("-----BEGIN") != std::string::npos;
}

Status check_tls(const RpcTls& tls) {
  for (const std::string& path : {tls.ca_file, tls.cert_file, tls.key_file}) {
    if (path.empty()) continue;
    if (!tls.on) return invalid(path + " is given, but etcd's endpoints do not begin with https");
    if (!is_pem(path)) return invalid(path + " cannot be read as PEM");
  }
  if (tls.cert_file.empty() != tls.key_file.empty()) {
    return invalid("a client's certificate for etcd needs its key, and the key a certificate");
  }
  return {};
}

class EtcdLog : public RemoteLog {
 public:
  EtcdLog(const EtcdOptions& options, const RpcTls& tls)
      : compact_(options.compact),
        tls_(tls),
        sink_(options.log),
        keys_(options.cluster, options.group),
        client_(options, tls),
        records_(client_, keys_) {}
  ~EtcdLog() override { close(); }

  void change_epoch(const std::string& fence, const std::string& next, RemoteDone done) override {
    change(fence, put(keys_.epoch(), next), EtcdPatience::kShort, std::move(done));
  }

  void tidy(const std::string& fence, uint64_t next_seq, RemoteDone done) override {
    change(fence, remove(keys_.log(next_seq), end_of_prefix(keys_.logs())), EtcdPatience::kLong,
           std::move(done));
  }

  void append(const std::string& fence, uint64_t seq, std::shared_ptr<const std::string> frame,
              RemoteDone done) override;

  void beat(const std::string& fence, const std::string& value, RemoteDone done) override {
    change(fence, put(keys_.beat(), value), EtcdPatience::kShort, std::move(done));
  }

  void trim(const std::string& fence, uint64_t seq, const std::string& old,
            const std::string& value, RemoteDone done) override;
  void compact(int64_t revision, RemoteDone done) override;

  void set_pause(const std::string& value, RemoteDone done) override;

  void read_state(int64_t revision, RemoteStateDone done) override;
  void read_frames(uint64_t seq, int64_t revision, RemoteFramesDone done) override;
  void status(RemoteStatusDone done) override {
    check_renewed_files();
    client_.status(
        [done = std::move(done)](const EtcdResult& result, std::vector<RemoteMember> members) {
          if (result.outcome != EtcdOutcome::kOk) return done(to_answer(result), {});
          done({}, std::move(members));
        });
  }
  void follow(int64_t revision, RemoteFollow what,
              std::shared_ptr<RemoteListener> listener) override;

  void put_record(RemoteRecordKind kind, const std::string& name, const std::string& owner,
                  const std::string& value, RemoteDone done) override {
    records_.put(kind, name, owner, value, std::move(done));
  }
  void drop_record(RemoteRecordKind kind, const std::string& name, RemoteDone done) override {
    records_.drop(kind, name, std::move(done));
  }
  void read_records(RemoteRecordKind kind, RemoteRecordsDone done) override {
    records_.read(kind, std::move(done));
  }

  void close() override {
    {
      const MutexLock lock(mutex_);
      if (follow_) follow_->stop();
      follow_.reset();
    }
    client_.close();
  }

 private:
  struct Trim {
    std::string fence;
    uint64_t seq = 0;
    RemoteDone done;
    RemoteAnswer answer;  // of the last transaction
  };
  struct ReadState {
    RemoteStateDone done;
    bool newest = false;  // no revision was asked for
    RemoteAnswer answer;
    RemoteState state;
  };

  static etcdserverpb::RequestOp put(const std::string& key, const std::string& value) {
    etcdserverpb::RequestOp operation;
    operation.mutable_request_put()->set_key(key);
    operation.mutable_request_put()->set_value(value);
    return operation;
  }
  static etcdserverpb::RequestOp remove(const std::string& from, const std::string& end) {
    etcdserverpb::RequestOp operation;
    operation.mutable_request_delete_range()->set_key(from);
    operation.mutable_request_delete_range()->set_range_end(end);
    return operation;
  }

  // One operation under the fence.
  void change(const std::string& fence, const etcdserverpb::RequestOp& operation,
              EtcdPatience patience, RemoteDone done);
  void range(const RangeRequest& request, EtcdPatience patience,
             std::function<void(const EtcdResult&, RangeResponse&)> then) {
    ask_etcd<RangeResponse>(client_, kEtcdRange, request, patience, std::move(then));
  }
  // The first frame of [from, end), and how many there are.
  void find_first(uint64_t from, const std::string& end, int64_t revision,
                  std::function<void(const EtcdResult&, uint64_t first, uint64_t count)> then);

  void delete_frames(const std::shared_ptr<Trim>& trim);
  void end_trim(const std::shared_ptr<Trim>& trim);
  void read_values(const std::shared_ptr<ReadState>& read);
  void read_failed(const std::shared_ptr<ReadState>& read, const EtcdResult& result);
  void read_value(const std::shared_ptr<ReadState>& read, const std::string& key,
                  std::string RemoteState::*to, std::function<void()> then);
  void find_last(const std::shared_ptr<ReadState>& read, uint64_t from);

  // gRPC keeps what it has when a file cannot be read again, and tells nobody.
  void check_renewed_files();

  const bool compact_;
  const RpcTls tls_;
  const LogSink sink_;
  const GroupKeys keys_;
  // Hints that spare etcd a count of the whole log: nothing depends on them.
  std::atomic<uint64_t> first_seq_{0};
  SeenSeq last_seq_;
  EtcdClient client_;
  EtcdRecords records_;
  Mutex mutex_;
  std::shared_ptr<EtcdFollow> follow_ GUARDED_BY(mutex_);
  std::string told_of_files_ GUARDED_BY(mutex_);
};

// --- changes -------------------------------------------------------------------------------------

void EtcdLog::change(const std::string& fence, const etcdserverpb::RequestOp& operation,
                     EtcdPatience patience, RemoteDone done) {
  TxnRequest request;
  compare_value(request, keys_.epoch(), fence);
  *request.add_success() = operation;
  get_on_failure(request, keys_.epoch());
  ask_etcd<TxnResponse>(client_, kEtcdTxn, request, patience,
                        [done = std::move(done)](const EtcdResult& result, TxnResponse& response) {
                          if (result.outcome != EtcdOutcome::kOk) return done(to_answer(result));
                          if (response.succeeded()) {
                            return done(done_at(response.header().revision()));
                          }
                          done(without_effect(RemoteOutcome::kFenced, value_of(response, 0)));
                        });
}

void EtcdLog::append(const std::string& fence, uint64_t seq,
                     std::shared_ptr<const std::string> frame, RemoteDone done) {
  const std::string key = keys_.log(seq);
  TxnRequest request;
  compare_value(request, keys_.epoch(), fence);
  compare_value(request, key, "");
  *request.add_success() = put(key, *frame);
  get_on_failure(request, keys_.epoch());
  get_on_failure(request, key);
  ask_etcd<TxnResponse>(client_, kEtcdTxn, request, EtcdPatience::kShort,
                        [this, fence, seq, frame, done = std::move(done)](const EtcdResult& result,
                                                                          TxnResponse& response) {
                          if (result.outcome != EtcdOutcome::kOk) return done(to_answer(result));
                          RemoteAnswer answer = done_at(response.header().revision());
                          if (!response.succeeded()) {
                            const std::string epoch = value_of(response, 0);
                            if (epoch != fence)
                              return done(without_effect(RemoteOutcome::kFenced, epoch));
                            if (value_of(response, 1) != *frame)
                              return done(without_effect(RemoteOutcome::kConflict));
                            answer.repeated = true;
                          }
                          last_seq_.note(seq);
                          done(answer);
                        });
}

// It is put if the compare fails, as it also does with a key that is not there.
void EtcdLog::set_pause(const std::string& value, RemoteDone done) {
  TxnRequest request;
  compare_value(request, keys_.pause(), value);
  request.mutable_compare(0)->set_result(etcdserverpb::Compare::GREATER);
  *request.add_failure() = put(keys_.pause(), value);
  ask_etcd<TxnResponse>(client_, kEtcdTxn, request, EtcdPatience::kShort,
                        [done = std::move(done)](const EtcdResult& result, TxnResponse& response) {
                          if (result.outcome != EtcdOutcome::kOk) return done(to_answer(result));
                          if (response.succeeded()) {
                            return done(without_effect(RemoteOutcome::kConflict));
                          }
                          done(done_at(response.header().revision()));
                        });
}

// --- trim ----------------------------------------------------------------------------------------

void EtcdLog::trim(const std::string& fence, uint64_t seq, const std::string& old,
                   const std::string& value, RemoteDone done) {
  const auto trim = std::make_shared<Trim>();
  trim->fence = fence;
  trim->seq = seq;
  trim->done = std::move(done);
  TxnRequest request;
  compare_value(request, keys_.epoch(), fence);
  compare_value(request, keys_.trim(), old);
  *request.add_success() = put(keys_.trim(), value);
  get_on_failure(request, keys_.epoch());
  get_on_failure(request, keys_.trim());
  ask_etcd<TxnResponse>(client_, kEtcdTxn, request, EtcdPatience::kShort,
                        [this, trim, value](const EtcdResult& result, TxnResponse& response) {
                          if (result.outcome != EtcdOutcome::kOk)
                            return trim->done(to_answer(result));
                          if (!response.succeeded()) {
                            const std::string epoch = value_of(response, 0);
                            if (epoch != trim->fence)
                              return trim->done(without_effect(RemoteOutcome::kFenced, epoch));
                            if (value_of(response, 1) != value)
                              return trim->done(without_effect(RemoteOutcome::kConflict));
                          }
                          trim->answer = done_at(response.header().revision());
                          delete_frames(trim);
                        });
}

void EtcdLog::delete_frames(const std::shared_ptr<Trim>& trim) {
  const auto remove_from = [this, trim](const EtcdResult& result, uint64_t first, uint64_t count) {
    if (result.outcome != EtcdOutcome::kOk) return trim->done(to_answer(result));
    if (count == 0) return end_trim(trim);
    const uint64_t end = std::min(first + kFramesInDelete, trim->seq);
    change(trim->fence, remove(keys_.log(first), keys_.log(end)), EtcdPatience::kLong,
           [this, trim, end](const RemoteAnswer& answer) {
             if (answer.outcome != RemoteOutcome::kDone) return trim->done(answer);
             trim->answer = answer;
             first_seq_ = end;
             delete_frames(trim);
           });
  };
  if (first_seq_ >= trim->seq) return end_trim(trim);
  find_first(first_seq_, keys_.log(trim->seq), 0, remove_from);
}

void EtcdLog::end_trim(const std::shared_ptr<Trim>& trim) {
  compact(trim->answer.revision, [trim](const RemoteAnswer& answer) {
    trim->done(answer.outcome == RemoteOutcome::kDone ? trim->answer : answer);
  });
}

void EtcdLog::compact(int64_t revision, RemoteDone done) {
  if (!compact_) {
    return done(client_.closing() ? without_effect(RemoteOutcome::kClosed) : done_at(revision));
  }
  etcdserverpb::CompactionRequest request;
  request.set_revision(revision);
  ask_etcd<etcdserverpb::CompactionResponse>(
      client_, "/etcdserverpb.KV/Compact", request, EtcdPatience::kLong,
      [revision, done = std::move(done)](const EtcdResult& result,
                                         const etcdserverpb::CompactionResponse& response) {
        // Somebody else may have compacted further.
        if (result.outcome == EtcdOutcome::kCompacted) return done(done_at(revision));
        done(result.outcome == EtcdOutcome::kOk ? done_at(response.header().revision())
                                                : to_answer(result));
      });
}

// --- reads ---------------------------------------------------------------------------------------

void EtcdLog::find_first(
    uint64_t from, const std::string& end, int64_t revision,
    std::function<void(const EtcdResult&, uint64_t first, uint64_t count)> then) {
  RangeRequest request;
  request.set_key(keys_.log(from));
  request.set_range_end(end);
  request.set_limit(1);
  request.set_keys_only(true);
  request.set_revision(revision);
  range(request, EtcdPatience::kLong,
        [this, then = std::move(then)](const EtcdResult& result, RangeResponse& response) {
          if (response.kvs_size() == 0) return then(result, 0, 0);
          then(result, keys_.log_seq(response.kvs(0).key()).value_or(0),
               static_cast<uint64_t>(response.count()));
        });
}

void EtcdLog::read_state(int64_t revision, RemoteStateDone done) {
  const auto read = std::make_shared<ReadState>();
  read->done = std::move(done);
  read->newest = revision == 0;
  read->answer.revision = revision;
  read_values(read);
}

// The first value says at which revision the others are read.
void EtcdLog::read_values(const std::shared_ptr<ReadState>& read) {
  read_value(read, keys_.epoch(), &RemoteState::epoch, [this, read] {
    read_value(read, keys_.beat(), &RemoteState::beat, [this, read] {
      read_value(read, keys_.trim(), &RemoteState::trim, [this, read] {
        read_value(read, keys_.pause(), &RemoteState::pause,
                   [this, read] { find_last(read, last_seq_.get()); });
      });
    });
  });
}

// What is newest may be compacted before it is read whole: then something newer is.
void EtcdLog::read_failed(const std::shared_ptr<ReadState>& read, const EtcdResult& result) {
  if (result.outcome != EtcdOutcome::kCompacted || !read->newest) {
    return read->done(to_answer(result), {});
  }
  read->answer.revision = 0;
  read->state = {};
  read_values(read);
}

void EtcdLog::read_value(const std::shared_ptr<ReadState>& read, const std::string& key,
                         std::string RemoteState::*to, std::function<void()> then) {
  RangeRequest request;
  request.set_key(key);
  request.set_revision(read->answer.revision);
  range(
      request, EtcdPatience::kShort,
      [this, read, to, then = std::move(then)](const EtcdResult& result, RangeResponse& response) {
        if (result.outcome != EtcdOutcome::kOk) return read_failed(read, result);
        if (read->answer.revision == 0) read->answer.revision = response.header().revision();
        if (response.kvs_size() > 0) read->state.*to = response.kvs(0).value();
        then();
      });
}

// etcd sorts only what it has read whole. But it counts keys cheaply, and of n frames from `first`
// on the last one is first + n - 1 or later: a few steps, as there are few holes.
void EtcdLog::find_last(const std::shared_ptr<ReadState>& read, uint64_t from) {
  find_first(from, end_of_prefix(keys_.logs()), read->answer.revision,
             [this, read, from](const EtcdResult& result, uint64_t first, uint64_t count) {
               if (result.outcome != EtcdOutcome::kOk) return read_failed(read, result);
               if (count > 1) return find_last(read, first + count - 1);
               // What was seen may have been tidied away, or the revision be older.
               if (count == 0 && from > 0) return find_last(read, 0);
               read->state.last_seq = first;
               last_seq_.note(first);
               read->done(read->answer, read->state);
             });
}

void EtcdLog::read_frames(uint64_t seq, int64_t revision, RemoteFramesDone done) {
  RangeRequest request;
  request.set_key(keys_.log(seq));
  request.set_range_end(end_of_prefix(keys_.logs()));
  request.set_limit(kFramesInPage);
  request.set_revision(revision);
  range(request, EtcdPatience::kLong,
        [this, done = std::move(done)](const EtcdResult& result, RangeResponse& response) {
          if (result.outcome != EtcdOutcome::kOk) return done(to_answer(result), {});
          RemoteFrames page;
          for (etcdserverpb::KeyValue& entry : *response.mutable_kvs()) {
            const auto found = keys_.log_seq(entry.key());
            if (found) page.frames.push_back({*found, std::move(*entry.mutable_value())});
          }
          page.more = response.more();
          if (!page.frames.empty()) last_seq_.note(page.frames.back().seq);
          done(done_at(response.header().revision()), std::move(page));
        });
}

void EtcdLog::follow(int64_t revision, RemoteFollow what,
                     std::shared_ptr<RemoteListener> listener) {
  if (client_.closing()) return;
  const auto follow = EtcdFollow::make(client_, keys_, last_seq_, std::move(listener));
  {
    const MutexLock lock(mutex_);
    if (follow_) follow_->stop();
    follow_ = follow;
  }
  follow->start(revision, what);
}

void EtcdLog::check_renewed_files() {
  const std::string trouble = check_tls(tls_).message();
  {
    const MutexLock lock(mutex_);
    if (trouble == told_of_files_) return;
    told_of_files_ = trouble;
  }
  if (!sink_) return;
  if (trouble.empty()) {
    sink_(LogLevel::kInfo, "the files of certificates for etcd can be read again");
  } else {
    sink_(LogLevel::kWarning, trouble + ": new connections to etcd use what it contained before");
  }
}

}  // namespace

Result<std::unique_ptr<RemoteLog>> make_etcd_log(const EtcdOptions& options) {
  if (options.endpoints.empty()) return invalid("no endpoint of etcd is given");
  for (const std::string& name : {options.cluster, options.group}) {
    if (!is_group_name(name)) {
      return invalid("neither a cluster nor a group can have the name \"" + name + "\"");
    }
  }
  const RpcTls tls = {.on = options.endpoints[0].starts_with("https://"),
                      .ca_file = options.ca_file,
                      .cert_file = options.cert_file,
                      .key_file = options.key_file};
  for (const std::string& endpoint : options.endpoints) {
    const std::string scheme = tls.on ? "https://" : "http://";
    const Bytes port = Bytes(endpoint).substr(endpoint.rfind(':') + 1);
    if (!endpoint.starts_with(scheme) || parse_u64(port).value_or(0) == 0) {
      return invalid("etcd's endpoints are http://host:port, or all https://host:port: " +
                     endpoint);
    }
  }
  if (Status status = check_tls(tls); !status.ok()) return status;
  return std::unique_ptr<RemoteLog>(std::make_unique<EtcdLog>(options, tls));
}

}  // namespace sluice
