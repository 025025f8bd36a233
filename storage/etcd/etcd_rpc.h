// EtcdRpc: calls and streams to the endpoints of an etcd cluster, by gRPC, as bytes. It knows no
// message and tries nothing twice: that is EtcdClient's.
//
// Only etcd_rpc.cc includes gRPC. One thread of its own waits for the completion queue and runs
// every callback; none runs inside the call that names it. call(), open() and after() may be called
// from any thread, also from a callback. Time is CLOCK_MONOTONIC's.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sluice {

// gRPC's codes, as far as anything depends on them.
enum class RpcCode : int {
  kOk = 0,
  kCancelled = 1,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kPermissionDenied = 7,
  kUnauthenticated = 16,
};

struct RpcResult {
  RpcCode code = RpcCode::kOk;
  std::string message;

  bool ok() const { return code == RpcCode::kOk; }
};

// PEM files, which are read again while the process runs: connections use what they contain when
// they are made.
struct RpcTls {
  bool on = false;
  std::string ca_file;    // empty: the authorities that the system trusts
  std::string cert_file;  // both or neither
  std::string key_file;
};

// What a call is meant for: the leader, or this member alone.
enum class RpcAim : uint8_t { kLeader, kMember };

// One call to which both sides write messages. Its callbacks live until its end.
class RpcStream {
 public:
  virtual ~RpcStream() = default;
  // Once, before the others. No callback runs before it.
  virtual void begin(std::string message) = 0;
  // Messages are sent one after the other.
  virtual void write(std::string message) = 0;
  // The end follows on the thread of the callbacks.
  virtual void cancel() = 0;
};

class EtcdRpc {
 public:
  using Milliseconds = std::chrono::milliseconds;
  using Done = std::function<void(RpcResult, std::string answer)>;
  using OnMessage = std::function<void(std::string)>;
  using OnEnd = std::function<void(RpcResult)>;

  // An address is "host:port". `thread_name` has at most 15 bytes.
  EtcdRpc(const std::vector<std::string>& addresses, const RpcTls& tls,
          const std::string& thread_name);
  // Calls close().
  ~EtcdRpc();
  EtcdRpc(const EtcdRpc&) = delete;
  EtcdRpc& operator=(const EtcdRpc&) = delete;

  // `method` as in "/etcdserverpb.KV/Range". `token`: a user's, or empty.
  void call(size_t endpoint, RpcAim aim, const char* method, const std::string& request,
            const std::string& token, Milliseconds deadline, Done done);
  std::shared_ptr<RpcStream> open(size_t endpoint, const char* method, const std::string& token,
                                  OnMessage on_message, OnEnd on_end);
  // Ends the calls for the leader that went to another endpoint: kCancelled.
  void cancel_calls_but_to(size_t endpoint);
  void after(Milliseconds delay, std::function<void()> run);

  // Ends everything that runs (kCancelled; timers run now), and the thread. Later calls end inside
  // the call. Not from a callback.
  void close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
