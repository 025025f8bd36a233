#include "storage/etcd/etcd_rpc.h"

// Abseil defines these as well, for itself.
#pragma push_macro("GUARDED_BY")
#pragma push_macro("NO_THREAD_SAFETY_ANALYSIS")
#include <grpc/support/log.h>
#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <deque>
#include <unordered_map>
#include <utility>

#pragma pop_macro("GUARDED_BY")
#pragma pop_macro("NO_THREAD_SAFETY_ANALYSIS")

#include "engine/base/check.h"
#include "engine/base/mutex.h"
#include "engine/base/thread.h"

namespace sluice {

namespace {

using std::chrono::milliseconds;

// A page of 32 frames of 256 KiB, with room.
constexpr int kReceiveBytes = 16 << 20;
// etcd ends connections that ping more often than every 5 s while it has nothing to say
// (--grpc-keepalive-min-time). What must be noticed sooner has deadlines of its own.
constexpr int kKeepaliveMs = 10'000;
constexpr int kKeepaliveTimeoutMs = 2'000;
constexpr int kReconnectMinMs = 100;
constexpr int kReconnectMaxMs = 1'000;
constexpr unsigned kReadCertificatesS = 5;

gpr_timespec in(milliseconds delay) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_millis(delay.count(), GPR_TIMESPAN));
}

RpcResult result_of(const grpc::Status& status) {
  return {static_cast<RpcCode>(status.error_code()), status.error_message()};
}

RpcResult closed() { return {RpcCode::kCancelled, "closed"}; }

grpc::ByteBuffer to_buffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string to_string(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  // A buffer that was never filled cannot be dumped.
  if (!buffer.Valid() || !buffer.Dump(&slices).ok()) return bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

std::shared_ptr<grpc::ChannelCredentials> make_credentials(const RpcTls& tls) {
  if (!tls.on) return grpc::InsecureChannelCredentials();
  grpc::experimental::TlsChannelCredentialsOptions options;
  if (!tls.ca_file.empty() || !tls.cert_file.empty()) {
    options.set_certificate_provider(
        std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
            tls.key_file, tls.cert_file, tls.ca_file, kReadCertificatesS));
  }
  if (!tls.ca_file.empty()) options.watch_root_certs();
  if (!tls.cert_file.empty()) options.watch_identity_key_cert_pairs();
  return grpc::experimental::TlsCredentials(options);
}

std::shared_ptr<grpc::Channel> make_channel(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kReceiveBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMinMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kReconnectMaxMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMaxMs);
  // Another log of this process has its own connections, so its own pauses after failures.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

// What the completion queue returns as a tag.
class Event {
 public:
  virtual ~Event() = default;
  virtual void run(bool ok) = 0;
};

// What is live until its last event has run.
class Activity {
 public:
  virtual ~Activity() = default;
  virtual void cancel() = 0;
  virtual bool is_call_but_to(size_t) const { return false; }
};

class Activities {
 public:
  // False: nothing begins any more.
  bool add(const std::shared_ptr<Activity>& activity) {
    const MutexLock lock(mutex_);
    if (closing_) return false;
    live_.emplace(activity.get(), activity);
    return true;
  }
  void remove(const Activity* activity) {
    std::shared_ptr<Activity> last;  // Its destructor may run callbacks' destructors: unlocked.
    const MutexLock lock(mutex_);
    const auto found = live_.find(activity);
    last = std::move(found->second);
    live_.erase(found);
  }
  // `last` is added. False: it is closing already.
  bool begin_close(const std::shared_ptr<Activity>& last) {
    std::vector<std::shared_ptr<Activity>> all;
    {
      const MutexLock lock(mutex_);
      if (closing_) return false;
      closing_ = true;
      live_.emplace(last.get(), last);
      for (const auto& [_, activity] : live_) all.push_back(activity);
    }
    for (const auto& activity : all) activity->cancel();
    return true;
  }
  void cancel_calls_but_to(size_t endpoint) {
    std::vector<std::shared_ptr<Activity>> calls;
    {
      const MutexLock lock(mutex_);
      for (const auto& [_, activity] : live_) {
        if (activity->is_call_but_to(endpoint)) calls.push_back(activity);
      }
    }
    for (const auto& call : calls) call->cancel();
  }
  bool over() {
    const MutexLock lock(mutex_);
    return closing_ && live_.empty();
  }

 private:
  Mutex mutex_;
  bool closing_ GUARDED_BY(mutex_) = false;
  std::unordered_map<const Activity*, std::shared_ptr<Activity>> live_ GUARDED_BY(mutex_);
};

class UnaryCall : public Activity, public Event {
 public:
  UnaryCall(Activities& activities, size_t endpoint, RpcAim aim, EtcdRpc::Done done)
      : done_(std::move(done)), activities_(activities), endpoint_(endpoint), aim_(aim) {}

  void cancel() override { context_.TryCancel(); }
  bool is_call_but_to(size_t endpoint) const override {
    return aim_ == RpcAim::kLeader && endpoint_ != endpoint;
  }
  void run(bool) override {
    done_(result_of(status_), to_string(answer_));
    activities_.remove(this);
  }

  void begin(grpc::GenericStub& stub, const char* method, const std::string& request,
             grpc::CompletionQueue& queue) {
    reader_ = stub.PrepareUnaryCall(&context_, method, to_buffer(request), &queue);
    reader_->StartCall();
    reader_->Finish(&answer_, &status_, static_cast<Event*>(this));
  }

  grpc::ClientContext context_;
  const EtcdRpc::Done done_;

 private:
  Activities& activities_;
  const size_t endpoint_;
  const RpcAim aim_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
  grpc::ByteBuffer answer_;
  grpc::Status status_;
};

class Timer : public Activity, public Event {
 public:
  Timer(Activities& activities, std::function<void()> run)
      : run_(std::move(run)), activities_(activities) {}

  void cancel() override {
    const MutexLock lock(mutex_);
    cancelled_ = true;
    alarm_.Cancel();
  }
  void run(bool) override {
    run_();
    activities_.remove(this);
  }
  void begin(grpc::CompletionQueue& queue, milliseconds delay) {
    const MutexLock lock(mutex_);
    alarm_.Set(&queue, in(cancelled_ ? milliseconds(0) : delay), static_cast<Event*>(this));
  }

  const std::function<void()> run_;

 private:
  Activities& activities_;
  Mutex mutex_;
  grpc::Alarm alarm_ GUARDED_BY(mutex_);
  bool cancelled_ GUARDED_BY(mutex_) = false;
};

class Stream : public Activity, public RpcStream, public std::enable_shared_from_this<Stream> {
 public:
  Stream(Activities& activities, grpc::GenericStub& stub, const char* method,
         grpc::CompletionQueue& queue, EtcdRpc::OnMessage on_message, EtcdRpc::OnEnd on_end)
      : activities_(activities),
        stub_(stub),
        method_(method),
        queue_(queue),
        on_message_(std::move(on_message)),
        on_end_(std::move(on_end)) {}

  void begin(std::string message) override {
    if (!activities_.add(shared_from_this())) {
      {
        const MutexLock lock(mutex_);
        ending_ = true;  // Nothing can be written.
      }
      tell_end(closed());
      return;
    }
    call_ = stub_.PrepareCall(&context_, method_, &queue_);
    const MutexLock lock(mutex_);
    unsent_.push_back(std::move(message));
    writing_ = true;  // Not before the call has started.
    call_->StartCall(&started_);
  }

  void write(std::string message) override {
    const MutexLock lock(mutex_);
    unsent_.push_back(std::move(message));
    write_next();
  }

  void cancel() override { context_.TryCancel(); }

  grpc::ClientContext context_;

 private:
  // An event that is a method of the stream.
  class Step : public Event {
   public:
    Step(Stream& stream, void (Stream::*method)(bool)) : stream_(stream), method_(method) {}
    void run(bool ok) override { (stream_.*method_)(ok); }

   private:
    Stream& stream_;
    void (Stream::*method_)(bool);
  };

  void write_next() REQUIRES(mutex_) {
    if (writing_ || ending_ || unsent_.empty()) return;
    writing_ = true;
    call_->Write(to_buffer(unsent_.front()), &written_);
    unsent_.pop_front();
  }

  void on_started(bool ok) {
    {
      const MutexLock lock(mutex_);
      writing_ = false;
      if (ok) write_next();
    }
    if (ok) {
      call_->Read(&received_, &read_);
    } else {
      end();
    }
  }

  void on_written(bool ok) {
    bool last = false;
    {
      const MutexLock lock(mutex_);
      writing_ = false;
      if (ok) write_next();
      last = finished_;
    }
    // The read that is out tells of a failed write.
    if (last) activities_.remove(this);
  }

  void on_read(bool ok) {
    if (!ok) {
      end();
      return;
    }
    on_message_(to_string(received_));
    received_.Clear();
    call_->Read(&received_, &read_);
  }

  void end() {
    const MutexLock lock(mutex_);
    ending_ = true;
    call_->Finish(&status_, &ended_);
  }

  void on_ended(bool) {
    tell_end(result_of(status_));
    bool last = false;
    {
      const MutexLock lock(mutex_);
      finished_ = true;
      last = !writing_;
    }
    if (last) activities_.remove(this);
  }

  // What the callbacks keep may keep the stream.
  void tell_end(const RpcResult& result) {
    on_message_ = nullptr;
    const EtcdRpc::OnEnd on_end = std::exchange(on_end_, nullptr);
    on_end(result);
  }

  Activities& activities_;
  grpc::GenericStub& stub_;
  const char* const method_;
  grpc::CompletionQueue& queue_;
  EtcdRpc::OnMessage on_message_;
  EtcdRpc::OnEnd on_end_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  grpc::ByteBuffer received_;
  grpc::Status status_;
  Step started_{*this, &Stream::on_started};
  Step written_{*this, &Stream::on_written};
  Step read_{*this, &Stream::on_read};
  Step ended_{*this, &Stream::on_ended};

  Mutex mutex_;
  std::deque<std::string> unsent_ GUARDED_BY(mutex_);
  bool writing_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;
  bool finished_ GUARDED_BY(mutex_) = false;
};

}  // namespace

struct EtcdRpc::Impl {
  // gRPC's own lines on stderr say less than the errors that calls return.
  Impl() {
    gpr_set_log_function([](gpr_log_func_args*) {});
  }

  void serve() {
    void* tag = nullptr;
    bool ok = false;
    // Nothing may begin behind Shutdown, and a stream's end is an operation of its own.
    while (!activities.over() && queue.Next(&tag, &ok)) static_cast<Event*>(tag)->run(ok);
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) CHECK(false);
  }

  Activities activities;
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs;
  Thread thread;
};

EtcdRpc::EtcdRpc(const std::vector<std::string>& addresses, const RpcTls& tls,
                 const std::string& thread_name)
    : impl_(std::make_unique<Impl>()) {
  const auto credentials = make_credentials(tls);
  for (const std::string& address : addresses) {
    impl_->stubs.push_back(std::make_unique<grpc::GenericStub>(make_channel(address, credentials)));
  }
  impl_->thread = Thread(thread_name, [this] { impl_->serve(); });
}

EtcdRpc::~EtcdRpc() { close(); }

void EtcdRpc::call(size_t endpoint, RpcAim aim, const char* method, const std::string& request,
                   const std::string& token, Milliseconds deadline, Done done) {
  const auto call = std::make_shared<UnaryCall>(impl_->activities, endpoint, aim, std::move(done));
  if (!impl_->activities.add(call)) {
    call->done_(closed(), {});
    return;
  }
  call->context_.set_deadline(in(deadline));
  if (!token.empty()) call->context_.AddMetadata("token", token);
  call->begin(*impl_->stubs[endpoint], method, request, impl_->queue);
}

std::shared_ptr<RpcStream> EtcdRpc::open(size_t endpoint, const char* method,
                                         const std::string& token, OnMessage on_message,
                                         OnEnd on_end) {
  const auto stream =
      std::make_shared<Stream>(impl_->activities, *impl_->stubs[endpoint], method, impl_->queue,
                               std::move(on_message), std::move(on_end));
  // A member that has lost its leader ends the stream, instead of staying silent.
  stream->context_.AddMetadata("hasleader", "true");
  if (!token.empty()) stream->context_.AddMetadata("token", token);
  return stream;
}

void EtcdRpc::cancel_calls_but_to(size_t endpoint) {
  impl_->activities.cancel_calls_but_to(endpoint);
}

void EtcdRpc::after(Milliseconds delay, std::function<void()> run) {
  const auto timer = std::make_shared<Timer>(impl_->activities, std::move(run));
  if (!impl_->activities.add(timer)) {
    timer->run_();
    return;
  }
  timer->begin(impl_->queue, delay);
}

void EtcdRpc::close() {
  // Its event wakes the thread, which may wait for nothing else.
  const auto wake = std::make_shared<Timer>(impl_->activities, [] {});
  if (!impl_->activities.begin_close(wake)) return;
  wake->begin(impl_->queue, Milliseconds(0));
  impl_->thread.join();
}

}  // namespace sluice
