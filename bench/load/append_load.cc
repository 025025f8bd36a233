// Appends bare frames to the replicated log on etcd, as many in flight as asked, and says how many
// a second there were and how long each took: what Sluice itself is compared with.
//
//   append_load ENDPOINT,... SIZE DEPTH SECONDS
//
// Prints appends a second, MB/s, and p50, p99 and max in ms. Takes the epoch of a group "bench",
// whatever it is, and leaves no frames behind. The random contents do not compress.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>

#include "bench/load/latency_histogram.h"
#include "engine/base/numbers.h"
#include "storage/etcd/etcd_log.h"

namespace sluice::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Makes a call and waits for its answer; repeats it while that is unknown.
RemoteAnswer wait_for(const std::function<void(RemoteDone)>& call) {
  std::mutex mutex;
  std::condition_variable came;
  for (;;) {
    bool done = false;
    RemoteAnswer answer;
    call([&](const RemoteAnswer& got) {
      const std::lock_guard<std::mutex> lock(mutex);
      answer = got;
      done = true;
      came.notify_one();
    });
    std::unique_lock<std::mutex> lock(mutex);
    came.wait(lock, [&done] { return done; });
    if (answer.outcome != RemoteOutcome::kUnknown) return answer;
    std::fprintf(stderr, "%s\n", answer.status.message().c_str());
  }
}

std::string random_bytes(size_t size) {
  std::mt19937_64 random(1);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// Keeps `depth` appends out until the time is over. Each answer starts the next one.
class Load {
 public:
  Load(RemoteLog& log, std::string fence, size_t size)
      : log_(log),
        fence_(std::move(fence)),
        frame_(std::make_shared<const std::string>(random_bytes(size))) {}

  void run(uint64_t depth, Clock::duration time) {
    begun_ = Clock::now();
    end_ = begun_ + time;
    out_ = depth;
    for (uint64_t i = 0; i < depth; ++i) append(next_seq_++, Clock::now());
    std::unique_lock<std::mutex> lock(mutex_);
    over_.wait(lock, [this] { return out_ == 0; });
  }

  void print() const {
    const double seconds = std::chrono::duration<double>(last_ - begun_).count();
    const double rate = static_cast<double>(times_.total()) / seconds;
    const auto ms = [this](double quantile) {
      return static_cast<double>(times_.quantile_ns(quantile)) / 1e6;
    };
    std::printf("%.0f %.3f %.3f %.1f %.0f\n", rate,
                rate * static_cast<double>(frame_->size()) / 1e6, ms(0.5), ms(0.99),
                static_cast<double>(times_.max_ns()) / 1e6);
  }

  uint64_t next_seq() const { return next_seq_; }

 private:
  void append(uint64_t seq, Clock::time_point sent) {
    log_.append(fence_, seq, frame_, [this, seq, sent](const RemoteAnswer& answer) {
      if (answer.outcome == RemoteOutcome::kUnknown) return append(seq, sent);
      CHECK(answer.outcome == RemoteOutcome::kDone);
      on_done(sent);
    });
  }

  void on_done(Clock::time_point sent) {
    const Clock::time_point now = Clock::now();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      times_.record(static_cast<uint64_t>((now - sent).count()));
      last_ = now;
      if (now >= end_) {
        if (--out_ == 0) over_.notify_one();
        return;
      }
    }
    append(next_seq_++, now);
  }

  RemoteLog& log_;
  const std::string fence_;
  const std::shared_ptr<const std::string> frame_;
  Clock::time_point begun_;
  Clock::time_point end_;
  std::atomic<uint64_t> next_seq_{1};
  std::mutex mutex_;
  std::condition_variable over_;
  uint64_t out_ = 0;
  Clock::time_point last_;
  LatencyHistogram times_;
};

int run(const std::string& endpoints, uint64_t size, uint64_t depth, uint64_t seconds) {
  EtcdOptions options;
  options.cluster = options.group = "bench";
  for (size_t begin = 0; begin < endpoints.size();) {
    const size_t end = std::min(endpoints.find(',', begin), endpoints.size());
    options.endpoints.push_back(endpoints.substr(begin, end - begin));
    begin = end + 1;
  }
  Result<std::unique_ptr<RemoteLog>> log = make_etcd_log(options);
  if (!log.ok()) {
    std::fprintf(stderr, "%s\n", log.status().message().c_str());
    return 1;
  }
  const std::string fence = "bench";
  // Fenced by its own value: an earlier run has left it.
  wait_for([&](RemoteDone done) { (*log)->change_epoch("", fence, std::move(done)); });
  Load load(**log, fence, size);
  load.run(depth, std::chrono::seconds(seconds));
  load.print();
  wait_for(
      [&](RemoteDone done) { (*log)->trim(fence, load.next_seq(), "", "0", std::move(done)); });
  (*log)->close();
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int count, char** arguments) {
  using sluice::parse_u64;
  if (count != 5) {
    std::fprintf(stderr, "usage: append_load ENDPOINT,... SIZE DEPTH SECONDS\n");
    return 2;
  }
  return sluice::bench::run(arguments[1], parse_u64(arguments[2]).value_or(1024),
                            parse_u64(arguments[3]).value_or(1),
                            parse_u64(arguments[4]).value_or(3));
}
