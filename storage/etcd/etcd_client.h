// EtcdClient: requests to an etcd cluster. It speaks to the leader, authenticates, limits the time
// of each try, and says in words what is wrong with the cluster.
//
// - The leader is found by Maintenance.Status, asked again every 5 s and after each error. An error
//   also moves the next requests to another endpoint. What members must not be asked,
//   etcd_endpoints.h says; an answer of another etcd cluster than the one that was found is an
//   error.
// - When another member leads than before, the requests that are out elsewhere end: what a member
//   has sent on to the old leader may be lost.
// - What etcd refuses and will refuse again (a full database, a request that is too large, a user
//   without rights) is logged, each once in a while.
// - A request is tried once, but for a token that etcd does not accept any more: then the client
//   authenticates again and repeats it, once.
// - A failure is answered no sooner than kSoonestFailure after the request began, so that a caller
//   who repeats at once does not spin.
//
// Any thread may call. Answers come on the thread of EtcdRpc, one at a time, without locks held;
// after close() inside the call.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/base/status.h"
#include "storage/etcd/etcd_endpoints.h"
#include "storage/etcd/etcd_log.h"
#include "storage/etcd/etcd_rpc.h"
#include "storage/etcd/etcd_rules.h"

namespace sluice {

// What a request came to, as far as the caller must tell it apart.
enum class EtcdOutcome : uint8_t { kOk, kCompacted, kUnknown, kClosed };

struct EtcdResult {
  EtcdOutcome outcome = EtcdOutcome::kOk;
  Status status;  // not ok unless kOk
};

// How long a try may take: a fsync of a majority, or also the transfer or the removal of megabytes.
enum class EtcdPatience : uint8_t { kShort, kLong };

class EtcdClient {
 public:
  using Answer = std::function<void(const EtcdResult&, std::string bytes)>;
  using OnMessage = EtcdRpc::OnMessage;
  using OnEnd = std::function<void(const EtcdResult&)>;
  using Milliseconds = EtcdRpc::Milliseconds;
  using StatusDone = std::function<void(const EtcdResult&, std::vector<RemoteMember>)>;

  static constexpr Milliseconds kSoonestFailure{20};

  // `options` are valid (make_etcd_log).
  EtcdClient(const EtcdOptions& options, const RpcTls& tls);
  ~EtcdClient();

  void call(const char* method, std::string request, EtcdPatience patience, Answer answer);
  // Streams do not wait for a token: read first.
  std::shared_ptr<RpcStream> open(const char* method, OnMessage on_message, OnEnd on_end);
  // Asks every member, and answers when the last one has answered or is too late.
  void status(StatusDone done) EXCLUDES(mutex_);
  // After an answer that may be due to a token which is not accepted any more.
  void doubt_token() EXCLUDES(mutex_);
  void after(Milliseconds delay, std::function<void()> run) { rpc_.after(delay, std::move(run)); }
  bool closing() const EXCLUDES(mutex_);
  // Whether what etcd sent comes from the cluster that was found.
  bool is_of_cluster(const std::string& bytes) const EXCLUDES(mutex_);

  void close() EXCLUDES(mutex_);

 private:
  using Clock = std::chrono::steady_clock;

  struct Try {
    const char* method = nullptr;
    std::string request;
    EtcdPatience patience = EtcdPatience::kShort;
    Answer answer;
    Clock::time_point begun;
    bool repeated = false;  // with a new token
    // The attempt that is out.
    size_t endpoint = 0;
    std::string token;
    Clock::time_point sent;
  };
  using TryPointer = std::shared_ptr<Try>;

  // Sends what waits, or sees to what it waits for.
  void dispatch() EXCLUDES(mutex_);
  void send(const TryPointer& attempt) EXCLUDES(mutex_);
  void on_answer(const TryPointer& attempt, const RpcResult& result, std::string bytes);
  void answer_failure(const TryPointer& attempt, const EtcdResult& result);
  bool is_token_trouble(const RpcResult& result) const;
  EtcdResult describe(const RpcResult& result, size_t endpoint, size_t request_bytes) const;
  // The same, and what follows from it for this client.
  EtcdResult take_failure(const RpcResult& result, size_t endpoint, size_t request_bytes);
  void note_refusal(const Status& status) EXCLUDES(mutex_);

  void authenticate(size_t endpoint) EXCLUDES(mutex_);
  void on_token(size_t endpoint, const RpcResult& result, const std::string& bytes);
  void on_no_token(const EtcdResult& why);
  // Nothing is known of the token any more, unless another one has replaced it.
  void forget_token(const std::string& token) EXCLUDES(mutex_);

  void note_failure(size_t endpoint) EXCLUDES(mutex_);
  void probe() EXCLUDES(mutex_);
  void ask_status(size_t endpoint, const std::string& token, EtcdRpc::Done done);
  void on_status(size_t endpoint, const RpcResult& result, const std::string& bytes);
  void judge(size_t endpoint, const std::string& version, const std::string& alarms)
      EXCLUDES(mutex_);

  const EtcdOptions options_;
  mutable Mutex mutex_;
  bool closing_ GUARDED_BY(mutex_) = false;
  EtcdEndpoints endpoints_ GUARDED_BY(mutex_);
  std::vector<std::string> said_ GUARDED_BY(mutex_);  // what was last logged of each
  bool hinted_ GUARDED_BY(mutex_) = false;            // at what etcd does not tell
  EtcdPace pace_ GUARDED_BY(mutex_);
  std::string refused_ GUARDED_BY(mutex_);  // the last refusal that was logged
  Clock::time_point refused_at_ GUARDED_BY(mutex_);

  // Until a leader was found once, or nobody says who it is; with a user, until there is a token.
  std::vector<TryPointer> waiting_ GUARDED_BY(mutex_);
  bool looked_around_ GUARDED_BY(mutex_) = false;
  std::optional<std::string> token_ GUARDED_BY(mutex_);  // "": none is needed
  bool authenticating_ GUARDED_BY(mutex_) = false;

  // The round of Status that is out, or the last one.
  size_t unanswered_ GUARDED_BY(mutex_) = 0;
  bool ask_again_ GUARDED_BY(mutex_) = false;  // an error came while it was out
  uint64_t rounds_ GUARDED_BY(mutex_) = 0;

  EtcdRpc rpc_;  // the last member: its thread uses the others
};

}  // namespace sluice
