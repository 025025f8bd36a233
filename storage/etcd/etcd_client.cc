#include "storage/etcd/etcd_client.h"

#include <etcd.pb.h>
#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <utility>

namespace sluice {

namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds kLongDeadline{5000};
// Checking a password costs etcd some 100 ms of CPU.
constexpr milliseconds kAuthenticateDeadline{2000};
constexpr milliseconds kRefusedLogInRest{500};
constexpr milliseconds kStatusDeadline{200};
constexpr milliseconds kLookAroundEvery{5000};
constexpr milliseconds kLookForLeaderEvery{100};
constexpr milliseconds kLookAfterError{20};
constexpr std::chrono::minutes kRefusedAgain{1};

std::vector<std::string> addresses_of(const std::vector<std::string>& endpoints) {
  std::vector<std::string> addresses;
  for (const std::string& endpoint : endpoints) {
    addresses.push_back(endpoint.substr(endpoint.find("://") + 3));
  }
  return addresses;
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

RemoteMember member_of(const std::string& endpoint, const RpcResult& result,
                       const std::string& bytes) {
  RemoteMember member;
  member.endpoint = endpoint;
  etcdserverpb::StatusResponse status;
  member.answers = result.ok() && status.ParseFromString(bytes);
  if (!member.answers) return member;
  member.leads = status.leader() != 0 && status.leader() == status.header().member_id();
  member.version = status.version();
  member.bytes = static_cast<uint64_t>(std::max<int64_t>(status.db_size(), 0));
  member.quota_bytes = static_cast<uint64_t>(std::max<int64_t>(status.db_size_quota(), 0));
  member.alarms.assign(status.errors().begin(), status.errors().end());
  return member;
}

// One call of status(). While the client closes its answers may come on two threads.
class StatusRound {
 public:
  StatusRound(size_t members, EtcdClient::StatusDone done)
      : done_(std::move(done)), members_(members), unanswered_(members) {}

  void answered(size_t index, RemoteMember member, const EtcdResult& result) EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      if (member.answers) {
        result_ = {};
        known_ = true;
      } else if (!known_) {
        result_ = result;
      }
      members_[index] = std::move(member);
      if (--unanswered_ != 0) return;
    }
    tell();
  }

 private:
  // Nobody else uses it any more.
  void tell() NO_THREAD_SAFETY_ANALYSIS { done_(result_, std::move(members_)); }

  const EtcdClient::StatusDone done_;
  Mutex mutex_;
  std::vector<RemoteMember> members_ GUARDED_BY(mutex_);
  size_t unanswered_ GUARDED_BY(mutex_);
  bool known_ GUARDED_BY(mutex_) = false;
  EtcdResult result_ GUARDED_BY(mutex_);
};

EtcdResult closed_result() {
  return {EtcdOutcome::kClosed, Status(StatusCode::kCancelled, "the log is closed")};
}

EtcdResult unknown(StatusCode code, std::string message) {
  return {EtcdOutcome::kUnknown, Status(code, std::move(message))};
}

EtcdResult stranger(const std::string& endpoint) {
  return unknown(StatusCode::kIoError,
                 "etcd at " + endpoint + " has become a member of another etcd cluster");
}

// It is in the header with which all that etcd sends begins; 0: the header is missing.
uint64_t cluster_of(const std::string& bytes) {
  constexpr uint32_t kHeaderTag = 1 << 3 | 2;
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()),
                                               static_cast<int>(bytes.size()));
  uint32_t size = 0;
  etcdserverpb::ResponseHeader header;
  if (input.ReadTag() != kHeaderTag || !input.ReadVarint32(&size)) return 0;
  const auto limit = input.PushLimit(static_cast<int>(size));
  const bool is_whole = header.MergeFromCodedStream(&input);
  input.PopLimit(limit);
  return is_whole ? header.cluster_id() : 0;
}

}  // namespace

EtcdClient::EtcdClient(const EtcdOptions& options, const RpcTls& tls)
    : options_(options),
      endpoints_(options.endpoints),
      said_(options.endpoints.size()),
      rpc_(addresses_of(options.endpoints), tls, "etcd") {
  probe();
}

EtcdClient::~EtcdClient() { close(); }

bool EtcdClient::closing() const {
  const MutexLock lock(mutex_);
  return closing_;
}

bool EtcdClient::is_of_cluster(const std::string& bytes) const {
  const uint64_t cluster = cluster_of(bytes);
  const MutexLock lock(mutex_);
  return endpoints_.accepts(cluster);
}

void EtcdClient::close() {
  {
    const MutexLock lock(mutex_);
    if (closing_) return;
    closing_ = true;
  }
  rpc_.close();
  dispatch();  // what has waited; the thread of the answers has ended
}

// --- requests ------------------------------------------------------------------------------------

void EtcdClient::call(const char* method, std::string request, EtcdPatience patience,
                      Answer answer) {
  const auto attempt = std::make_shared<Try>();
  attempt->method = method;
  attempt->request = std::move(request);
  attempt->patience = patience;
  attempt->answer = std::move(answer);
  attempt->begun = Clock::now();
  bool closed = false;
  {
    const MutexLock lock(mutex_);
    closed = closing_;
    if (!closed) waiting_.push_back(attempt);
  }
  if (closed) {
    attempt->answer(closed_result(), {});
  } else {
    dispatch();
  }
}

void EtcdClient::dispatch() {
  std::vector<TryPointer> ready;
  bool closed = false;
  bool needs_token = false;
  size_t endpoint = 0;
  std::string refusal;
  {
    const MutexLock lock(mutex_);
    closed = closing_;
    refusal = endpoints_.refusal();
    if (waiting_.empty() || (!closed && !looked_around_)) return;
    if (closed || !refusal.empty() || options_.user.empty() || token_) {
      ready.swap(waiting_);
    } else if (!authenticating_) {
      authenticating_ = needs_token = true;
      endpoint = endpoints_.current();
    }
  }
  if (needs_token) authenticate(endpoint);
  for (const TryPointer& attempt : ready) {
    if (closed) {
      attempt->answer(closed_result(), {});
    } else if (!refusal.empty()) {
      answer_failure(attempt, unknown(StatusCode::kUnsupported, refusal));
    } else {
      send(attempt);
    }
  }
}

void EtcdClient::send(const TryPointer& attempt) {
  milliseconds deadline = kLongDeadline;
  {
    const MutexLock lock(mutex_);
    attempt->endpoint = endpoints_.current();
    attempt->token = token_.value_or("");
    if (attempt->patience == EtcdPatience::kShort) deadline = milliseconds(pace_.deadline_ms());
  }
  attempt->sent = Clock::now();
  rpc_.call(attempt->endpoint, RpcAim::kLeader, attempt->method, attempt->request, attempt->token,
            deadline, [this, attempt](const RpcResult& result, std::string bytes) {
              on_answer(attempt, result, std::move(bytes));
            });
}

void EtcdClient::on_answer(const TryPointer& attempt, const RpcResult& result, std::string bytes) {
  if (attempt->patience == EtcdPatience::kShort) {
    const MutexLock lock(mutex_);
    if (result.ok()) {
      pace_.note_us(duration_cast<microseconds>(Clock::now() - attempt->sent).count());
    } else if (result.code == RpcCode::kDeadlineExceeded) {
      pace_.note_timeout();
    }
  }
  if (result.ok() && !is_of_cluster(bytes)) {
    note_failure(attempt->endpoint);
    return answer_failure(attempt, stranger(options_.endpoints[attempt->endpoint]));
  }
  if (result.ok()) {
    attempt->answer({}, std::move(bytes));
    return;
  }
  if (is_token_trouble(result) && !attempt->repeated) {
    attempt->repeated = true;
    forget_token(attempt->token);
    {
      const MutexLock lock(mutex_);
      waiting_.push_back(attempt);
    }
    dispatch();
    return;
  }
  answer_failure(attempt, take_failure(result, attempt->endpoint, attempt->request.size()));
}

void EtcdClient::answer_failure(const TryPointer& attempt, const EtcdResult& result) {
  const auto left = kSoonestFailure - duration_cast<milliseconds>(Clock::now() - attempt->begun);
  if (result.outcome != EtcdOutcome::kUnknown || left.count() <= 0) {
    attempt->answer(result, {});
    return;
  }
  rpc_.after(
      left, [this, attempt, result] { attempt->answer(closing() ? closed_result() : result, {}); });
}

std::shared_ptr<RpcStream> EtcdClient::open(const char* method, OnMessage on_message,
                                            OnEnd on_end) {
  size_t endpoint = 0;
  std::string token;
  {
    const MutexLock lock(mutex_);
    endpoint = endpoints_.current();
    token = token_.value_or("");
  }
  return rpc_.open(endpoint, method, token, std::move(on_message),
                   [this, endpoint, token, on_end = std::move(on_end)](const RpcResult& result) {
                     if (is_token_trouble(result)) forget_token(token);
                     on_end(take_failure(result, endpoint, 0));
                   });
}

// --- errors --------------------------------------------------------------------------------------

bool EtcdClient::is_token_trouble(const RpcResult& result) const {
  if (options_.user.empty()) return false;
  return result.code == RpcCode::kUnauthenticated ||
         contains(result.message, "revision of auth store is old") ||
         contains(result.message, "user name is empty");
}

EtcdResult EtcdClient::describe(const RpcResult& result, size_t endpoint,
                                size_t request_bytes) const {
  if (closing()) return closed_result();
  const std::string at = "etcd at " + options_.endpoints[endpoint];
  const std::string& said = result.message;
  if (contains(said, "revision has been compacted")) {
    return {EtcdOutcome::kCompacted, Status(StatusCode::kStale, at + ": " + said)};
  }
  if (contains(said, "request is too large") ||
      contains(said, "received message larger than max")) {
    return unknown(StatusCode::kInvalid, at + " refuses a request of " +
                                             std::to_string(request_bytes) +
                                             " bytes: raise its --max-request-bytes");
  }
  if (contains(said, "database space exceeded")) {
    return unknown(StatusCode::kNoSpace,
                   at + " is full: compact it, run `etcdctl defrag` for each member, raise "
                        "--quota-backend-bytes if needed, then `etcdctl alarm disarm`");
  }
  if (contains(said, "authentication failed")) {
    return unknown(StatusCode::kInvalid,
                   at + " refuses the user " + options_.user + " or the password");
  }
  if (result.code == RpcCode::kPermissionDenied || contains(said, "user name is empty") ||
      is_token_trouble(result)) {
    return unknown(StatusCode::kInvalid, at + " does not allow this to the user " +
                                             (options_.user.empty() ? "(none)" : options_.user) +
                                             ": " + said);
  }
  if (result.code == RpcCode::kCancelled) {
    return unknown(StatusCode::kIoError, at + " does not lead any more");
  }
  if (result.code == RpcCode::kDeadlineExceeded) {
    return unknown(StatusCode::kIoError, at + " does not answer in time");
  }
  // These say nothing against the endpoint.
  const bool about_request =
      result.code == RpcCode::kInvalidArgument || result.code == RpcCode::kNotFound;
  return unknown(about_request ? StatusCode::kInvalid : StatusCode::kIoError,
                 at + ": " + (said.empty() ? "the call ended" : said));
}

EtcdResult EtcdClient::take_failure(const RpcResult& result, size_t endpoint,
                                    size_t request_bytes) {
  EtcdResult described = describe(result, endpoint, request_bytes);
  const StatusCode code = described.status.code();
  if (code == StatusCode::kIoError) note_failure(endpoint);
  // Not found: a lease that has ended, as that of a process that was stopped for a while.
  const bool refuses = code == StatusCode::kInvalid || code == StatusCode::kNoSpace;
  if (refuses && result.code != RpcCode::kNotFound) note_refusal(described.status);
  return described;
}

void EtcdClient::note_refusal(const Status& status) {
  {
    const MutexLock lock(mutex_);
    const auto now = Clock::now();
    if (refused_ == status.message() && now - refused_at_ < kRefusedAgain) return;
    refused_ = status.message();
    refused_at_ = now;
  }
  if (options_.log) options_.log(LogLevel::kError, status.message());
}

// --- tokens --------------------------------------------------------------------------------------

void EtcdClient::forget_token(const std::string& token) {
  const MutexLock lock(mutex_);
  if (token_ == token) token_.reset();
}

void EtcdClient::doubt_token() {
  const MutexLock lock(mutex_);
  token_.reset();
}

void EtcdClient::authenticate(size_t endpoint) {
  const Result<std::string> password = options_.password();
  if (!password.ok()) {
    note_refusal(password.status());
    return on_no_token(unknown(StatusCode::kInvalid, password.status().message()));
  }
  etcdserverpb::AuthenticateRequest request;
  request.set_name(options_.user);
  request.set_password(*password);
  rpc_.call(endpoint, RpcAim::kMember, "/etcdserverpb.Auth/Authenticate",
            request.SerializeAsString(), "", kAuthenticateDeadline,
            [this, endpoint](const RpcResult& result, const std::string& bytes) {
              on_token(endpoint, result, bytes);
            });
}

void EtcdClient::on_token(size_t endpoint, const RpcResult& result, const std::string& bytes) {
  const bool not_needed = contains(result.message, "authentication is not enabled");
  etcdserverpb::AuthenticateResponse response;
  const bool ok = not_needed || (result.ok() && response.ParseFromString(bytes));
  if (!ok) return on_no_token(take_failure(result, endpoint, 0));
  {
    const MutexLock lock(mutex_);
    authenticating_ = false;
    token_ = response.token();
  }
  dispatch();
}

// What waits for a token ends, when it is time to try again.
void EtcdClient::on_no_token(const EtcdResult& why) {
  const bool refused = why.status.code() == StatusCode::kInvalid;
  rpc_.after(refused ? kRefusedLogInRest : milliseconds(0), [this, why] {
    std::vector<TryPointer> failed;
    {
      const MutexLock lock(mutex_);
      authenticating_ = false;
      failed.swap(waiting_);
    }
    const EtcdResult& result = closing() ? closed_result() : why;
    for (const TryPointer& attempt : failed) answer_failure(attempt, result);
  });
}

// --- the leader ----------------------------------------------------------------------------------

void EtcdClient::note_failure(size_t endpoint) {
  {
    const MutexLock lock(mutex_);
    endpoints_.on_failure(endpoint);
    if (unanswered_ > 0) {
      ask_again_ = true;
      return;
    }
  }
  probe();
}

void EtcdClient::probe() {
  std::string token;
  {
    const MutexLock lock(mutex_);
    if (closing_ || unanswered_ > 0) return;
    unanswered_ = options_.endpoints.size();
    ask_again_ = false;
    endpoints_.begin_round();
    ++rounds_;
    token = token_.value_or("");
  }
  for (size_t endpoint = 0; endpoint < options_.endpoints.size(); ++endpoint) {
    ask_status(endpoint, token,
               [this, endpoint](const RpcResult& result, const std::string& bytes) {
                 on_status(endpoint, result, bytes);
               });
  }
}

void EtcdClient::ask_status(size_t endpoint, const std::string& token, EtcdRpc::Done done) {
  rpc_.call(endpoint, RpcAim::kMember, "/etcdserverpb.Maintenance/Status",
            etcdserverpb::StatusRequest().SerializeAsString(), token, kStatusDeadline,
            std::move(done));
}

void EtcdClient::on_status(size_t endpoint, const RpcResult& result, const std::string& bytes) {
  etcdserverpb::StatusResponse status;
  std::optional<EtcdEndpoints::Told> told;
  if (result.ok() && status.ParseFromString(bytes)) {
    told = {.cluster = status.header().cluster_id(),
            .term = status.raft_term(),
            .leads = status.leader() != 0 && status.leader() == status.header().member_id(),
            .version = status.version()};
  }
  milliseconds pause{0};
  uint64_t round = 0;
  bool new_leader = false;
  {
    const MutexLock lock(mutex_);
    new_leader = endpoints_.on_status(endpoint, told);
    --unanswered_;
    if (endpoints_.leader_found() || unanswered_ == 0) looked_around_ = true;
    if (unanswered_ == 0) {
      endpoints_.end_round();
      pause = ask_again_                 ? kLookAfterError
              : endpoints_.has_settled() ? kLookAroundEvery
                                         : kLookForLeaderEvery;
      round = rounds_;
    }
  }
  if (told.has_value()) {
    std::string alarms;
    for (const std::string& alarm : status.errors()) alarms += " " + alarm;
    judge(endpoint, status.version(), alarms);
  }
  if (new_leader) rpc_.cancel_calls_but_to(endpoint);
  dispatch();
  if (round == 0) return;
  rpc_.after(pause, [this, round] {
    {
      const MutexLock lock(mutex_);
      if (rounds_ != round) return;  // An error has begun another one, which continues.
    }
    probe();
  });
}

void EtcdClient::status(StatusDone done) {
  const std::vector<std::string>& endpoints = options_.endpoints;
  const auto round = std::make_shared<StatusRound>(endpoints.size(), std::move(done));
  std::string token;
  {
    const MutexLock lock(mutex_);
    token = token_.value_or("");
  }
  for (size_t endpoint = 0; endpoint < endpoints.size(); ++endpoint) {
    ask_status(endpoint, token,
               [this, round, endpoint](const RpcResult& result, const std::string& bytes) {
                 const std::string& name = options_.endpoints[endpoint];
                 RemoteMember member;
                 member.endpoint = name;
                 if (is_of_cluster(bytes)) member = member_of(name, result, bytes);
                 round->answered(endpoint, std::move(member), describe(result, endpoint, 0));
               });
  }
}

void EtcdClient::judge(size_t endpoint, const std::string& version, const std::string& alarms) {
  const std::string at = "etcd at " + options_.endpoints[endpoint] + ": ";
  std::string fault;
  {
    const MutexLock lock(mutex_);
    fault = endpoints_.fault_of(endpoint);
  }
  const EtcdVersionVerdict verdict = judge_etcd_version(version);
  std::string said = fault.empty() ? verdict.warning : fault;
  LogLevel level = fault.empty() ? LogLevel::kWarning : LogLevel::kError;
  if (!alarms.empty()) {
    level = LogLevel::kError;
    said = "alarm:" + alarms + (said.empty() ? "" : "; " + said);
  }
  bool hints = false;
  bool news = false;
  {
    const MutexLock lock(mutex_);
    hints = !verdict.hint.empty() && !std::exchange(hinted_, true);
    news = said_[endpoint] != said;
    said_[endpoint] = said;
  }
  if (!options_.log) return;
  if (hints) options_.log(LogLevel::kInfo, at + verdict.hint);
  if (news)
    options_.log(said.empty() ? LogLevel::kInfo : level,
                 at + (said.empty() ? "no alarm any more" : said));
}

}  // namespace sluice
