#include "net/server/loading_progress.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdio>

#include "net/process/clocks.h"
#include "net/process/wall_clock.h"
#include "net/server/supervisor.h"

namespace sluice {

namespace {
constexpr int64_t kLogIntervalMs = 2000;
}  // namespace

void LoadingProgress::begin() { started_s_.store(wall_ms() / 1000); }

void LoadingProgress::begin_reading() {
  begun_ms_ = Clocks::steady_ms();
  logged_ms_ = begun_ms_;
}

bool LoadingProgress::update(const RecoveryProgress& progress) {
  bytes_.store(progress.bytes_done, std::memory_order_relaxed);
  total_bytes_.store(progress.bytes_total, std::memory_order_relaxed);
  const int64_t now_ms = Clocks::steady_ms();
  if (now_ms - logged_ms_ >= kLogIntervalMs) {
    logged_ms_ = now_ms;
    const uint64_t percent =
        progress.bytes_done * 100 / std::max<uint64_t>(progress.bytes_total, 1);
    if (progress.read_all) {
      spdlog::info("Loading: all {} MB are read; jobs and expiries are put in order",
                   progress.bytes_done >> 20);
    } else {
      spdlog::info("Loading: {} of about {} MB ({} %)", progress.bytes_done >> 20,
                   progress.bytes_total >> 20, std::min<uint64_t>(percent, 99));
    }
    // Loading a large directory takes longer than a supervisor's time limit.
    tell_supervisor(*shared_.config.settings(), "EXTEND_TIMEOUT_USEC=30000000\nSTATUS=Loading, " +
                                                    std::to_string(percent) + " %");
  }
  return !shared_.state.stopping.load(std::memory_order_relaxed);
}

void LoadingProgress::note_done(const RecoveryResult& result) {
  const double seconds = static_cast<double>(Clocks::steady_ms() - begun_ms_) / 1000;
  uint64_t keys = 0;
  for (int database = 0; database < kDatabases; ++database) {
    keys += shared_.engine->key_count(database);
  }
  recovered_keys_.store(keys);
  spdlog::info(
      "Recovered {} keys from {} ({} records) and {} units of the journal ({} records), up to lsn "
      "{}, in {:.3f} s",
      keys, result.checkpoint ? "a checkpoint" : "no checkpoint",
      result.checkpoint ? result.checkpoint->records : 0, result.units, result.unit_records,
      result.last_lsn, seconds);
}

void LoadingProgress::info(InfoWriter& out) const {
  const int64_t started_s = started_s_.load();
  const uint64_t total = total_bytes_.load();
  const uint64_t done = std::min(bytes_.load(), total);
  const int64_t elapsed_s = (Clocks::steady_ms() - shared_.started_steady_ms) / 1000;
  char percent[32];
  std::snprintf(percent, sizeof(percent), "%.2f",
                total == 0 ? 0.0 : 100.0 * static_cast<double>(done) / static_cast<double>(total));
  int64_t eta_s = 1;
  if (done != 0) {
    eta_s = static_cast<int64_t>(static_cast<double>(elapsed_s) *
                                 static_cast<double>(total - done) / static_cast<double>(done));
  }
  out.field("loading_start_time", started_s);
  out.field("loading_total_bytes", total);
  out.field("loading_rdb_used_mem", int64_t{0});
  out.field("loading_loaded_bytes", done);
  out.field("loading_loaded_perc", percent);
  out.field("loading_eta_seconds", eta_s);
}

}  // namespace sluice
