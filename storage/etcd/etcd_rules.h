// What Sluice asks of an etcd cluster, as far as no connection is needed: how long to wait for it,
// and which versions are good enough. Values; one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace sluice {

// The recent times of answers, and the deadline that follows from them.
class EtcdPace {
 public:
  static constexpr int64_t kLeastMs = 300;
  static constexpr int64_t kMostMs = 1000;

  void note_us(int64_t us);
  // A try was given up at the deadline. It grows by a third when that has come about repeatedly:
  // an election of etcd must not make it long, an etcd that is slow must.
  void note_timeout() { note_us(deadline_ms_ * 1000 / 3); }
  // Four times the recent p99, within the limits.
  int64_t deadline_ms() const { return deadline_ms_; }

 private:
  std::array<int64_t, 128> times_us_{};
  size_t noted_ = 0;
  int64_t deadline_ms_ = kMostMs;
};

// Why a version of etcd must not be used, or should not be: nothing if there is no reason. And what
// its operator has to set, since no client can ask for it.
struct EtcdVersionVerdict {
  std::string refusal = {};
  std::string warning = {};
  std::string hint = {};
};
EtcdVersionVerdict judge_etcd_version(const std::string& version);

}  // namespace sluice
