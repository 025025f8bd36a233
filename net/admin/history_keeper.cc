#include "net/admin/history_keeper.h"

#include <spdlog/spdlog.h>

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>
#include <utility>

#include "engine/base/thread.h"
#include "net/http/tokens.h"
#include "net/io/engine_client.h"
#include "net/io/turns.h"
#include "net/process/clocks.h"
#include "net/process/replace_file.h"
#include "net/process/wall_clock.h"

namespace sluice {

namespace {

constexpr int64_t kStepMs = kHourSteps.step_ms;

}  // namespace

// --- The thread that may wait for the disk ---

class HistoryKeeper::Worker {
 public:
  Worker() : thread_("sluice-history", [this] { run(); }) {}
  ~Worker() {
    {
      MutexLock lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

  void post(std::function<void()> task) {
    {
      MutexLock lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    wake_.notify_all();
  }

 private:
  void run() NO_THREAD_SAFETY_ANALYSIS {
    std::unique_lock<std::mutex> lock(mutex_.native());
    for (;;) {
      wake_.wait(lock, [this]() NO_THREAD_SAFETY_ANALYSIS { return stop_ || !tasks_.empty(); });
      if (stop_) return;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  Mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_ GUARDED_BY(mutex_);
  bool stop_ GUARDED_BY(mutex_) = false;
  Thread thread_;
};

// --- Samples ---

class HistoryKeeper::Sampler final : public IoThreadGuest {
 public:
  Sampler(HistoryKeeper& keeper, IoThread& thread)
      : keeper_(keeper),
        history_(keeper.history_),
        thread_(thread),
        user_(user_of_role(Role::kRead)),
        timer_(thread.executor()) {}

  void start() {
    if (closed_) return;
    engine_.emplace(thread_, "history");
    arm(0);
  }

  // --- IoThreadGuest ---
  void begin_stop() override {
    closed_ = true;
    timer_.cancel();
  }
  void close_all() override {
    begin_stop();
    if (engine_) engine_->close();
  }

 private:
  void arm(int64_t wait_ms);
  void on_time();
  // Whether a script holds the shards, which may run on this very thread.
  bool held() const {
    return thread_.levels().nested() ||
           thread_.engine().script_busy.load(std::memory_order_relaxed);
  }
  void begin_loading();
  void begin_sample();
  // Does one part of a sample. Returns false after the last one.
  bool go_on();
  void look_at(QueueSample sample);
  void read_adopted(QueueSample& sample, std::vector<BandSample>& bands);
  bool write();

  HistoryKeeper& keeper_;
  History& history_;
  IoThread& thread_;
  std::optional<EngineClient> engine_;  // none before start()
  const std::shared_ptr<User> user_;
  SteadyTimer timer_;
  bool closed_ = false;
  enum class Loading : uint8_t { kNotYet, kRuns, kDone } loading_ = Loading::kNotYet;
  enum class Step : uint8_t { kNothing, kLook, kForget, kWrite } step_ = Step::kNothing;
  int64_t slot_ = 0;
  int64_t sampled_ms_ = -1;  // the last sample, by the steady clock
  QueueWalk walk_;
  std::vector<QueueSample> samples_;  // to be looked at next, from the back
  std::shared_ptr<std::string> contents_;
};

void HistoryKeeper::Sampler::arm(int64_t wait_ms) {
  timer_.expires_after(std::chrono::milliseconds(wait_ms));
  timer_.async_wait([this](const error_code& error) {
    if (!error && !closed_) on_time();
  });
}

// Each sample is at the end of an interval by the wall clock: after a step of that clock the next
// one is earlier or later by half an interval at most.
void HistoryKeeper::Sampler::on_time() {
  ServerState& state = thread_.state();
  // The clock must not be read for a script that polls.
  if (state.loading.load(std::memory_order_acquire) || thread_.levels().nested()) return arm(100);
  const int64_t now_ms = thread_.clock().read().wall_ms;
  const int64_t next = (now_ms + kStepMs / 2) / kStepMs;
  arm((next + 1) * kStepMs - now_ms);
  if (loading_ == Loading::kNotYet) begin_loading();
  if (loading_ != Loading::kDone || step_ != Step::kNothing || held()) return;
  const uint64_t limit = state.limits.history_bytes.load(std::memory_order_relaxed);
  history_.set_limit(limit);
  slot_ = next - 1;
  if (limit != 0) begin_sample();
}

void HistoryKeeper::Sampler::begin_loading() {
  loading_ = Loading::kRuns;
  history_.set_limit(thread_.state().limits.history_bytes.load(std::memory_order_relaxed));
  keeper_.worker_->post([this] {
    keeper_.load();
    // Ends without an effect if the thread has ended.
    thread_.post([this] {
      loading_ = Loading::kDone;
      if (!closed_) arm(0);
    });
  });
}

void HistoryKeeper::Sampler::begin_sample() {
  const int64_t now_ms = Clocks::steady_ms();
  const bool in_time = sampled_ms_ >= 0 && now_ms - sampled_ms_ < kStepMs * 3 / 2;
  sampled_ms_ = now_ms;
  history_.begin_sample(slot_, thread_.clock().times().queue_ms, in_time);
  walk_ = QueueWalk();
  step_ = Step::kLook;
  work_in_turns(thread_, [this] { return !closed_ && go_on(); });
}

bool HistoryKeeper::Sampler::go_on() {
  constexpr size_t kAtOnce = 64;
  if (step_ == Step::kLook && held()) {
    samples_.clear();
    history_.end_sample(false);
    step_ = Step::kNothing;
    return false;
  }
  if (step_ == Step::kWrite) return write();
  if (step_ == Step::kForget) {
    if (history_.forget_gone()) return true;
    const bool minute = slot_ % kSlotsAMinute == 0;
    step_ = minute && keeper_.has_file() && history_.take_changed() ? Step::kWrite : Step::kNothing;
    if (step_ == Step::kWrite) {
      contents_ = std::make_shared<std::string>();
      // Growing it would copy all of it.
      contents_->reserve(history_.memory_bytes() + (64U << 10));
    }
    return step_ == Step::kWrite;
  }
  if (samples_.empty()) {
    samples_ = walk_.next_samples(thread_.engine(), kAtOnce);
    if (!samples_.empty()) return true;
    const bool complete = !walk_.skipped();
    history_.end_sample(complete);
    step_ = complete ? Step::kForget : Step::kNothing;
    return complete;
  }
  for (size_t i = 0; i < 8 && !samples_.empty(); ++i) {
    look_at(std::move(samples_.back()));
    samples_.pop_back();
  }
  return true;
}

void HistoryKeeper::Sampler::look_at(QueueSample sample) {
  std::vector<BandSample> bands;
  if (sample.adopted) read_adopted(sample, bands);
  if (!history_.look(sample)) return;
  if (!sample.adopted) bands = band_samples(thread_.engine(), sample.queue);
  history_.put(sample, bands);
}

// Its jobs are in plain keys, which the command counts.
void HistoryKeeper::Sampler::read_adopted(QueueSample& sample, std::vector<BandSample>& bands) {
  engine_->speak_for(user_, sample.queue.database);
  const std::array<Bytes, 2> words = {"Q.STATS", sample.queue.name};
  const RespValue stats = engine_->run(words);
  if (!stats.is_map()) return;
  sample.waiting = static_cast<uint64_t>(stats.at("waiting").integer);
  sample.active = static_cast<uint64_t>(stats.at("active").integer);
  bands = band_samples(thread_.engine(), sample.queue);
  for (BandSample& band : bands) {
    const RespValue& pending = stats.at("by_priority").at(band.band);
    if (!pending.is_null()) band.waiting = static_cast<uint64_t>(pending.integer);
  }
}

bool HistoryKeeper::Sampler::write() {
  if (history_.write(*contents_, false)) return true;
  step_ = Step::kNothing;
  keeper_.worker_->post(
      [this_keeper = &keeper_, contents = std::move(contents_)] { this_keeper->save(*contents); });
  return false;
}

// --- The keeper ---

HistoryKeeper::HistoryKeeper(ServerState& state, const std::string& directory)
    : state_(state), path_(directory + "/history") {}

HistoryKeeper::~HistoryKeeper() = default;

void HistoryKeeper::start() { worker_ = std::make_unique<Worker>(); }

void HistoryKeeper::join(IoThread& thread) {
  auto sampler = std::make_unique<Sampler>(*this, thread);
  thread.post([raw = sampler.get()] { raw->start(); });
  thread.add_guest(std::move(sampler));
}

// Whether the directory holds the data of this server.
bool HistoryKeeper::has_file() const {
  return state_.journal.load(std::memory_order_acquire) != nullptr;
}

void HistoryKeeper::load() {
  const int64_t now_ms = wall_ms();
  std::string contents;
  std::error_code ignored;
  if (has_file() && std::filesystem::exists(path_, ignored)) {
    std::ostringstream text;
    text << std::ifstream(path_, std::ios::binary).rdbuf();
    contents = text.str();
    if (contents.empty()) contents = "?";
  }
  if (history_.load(contents, now_ms)) return;
  spdlog::warn("{} is damaged or of another version: the history of queues starts again", path_);
}

void HistoryKeeper::save(const std::string& contents) {
  const Status status = replace_file(path_, contents);
  if (!status.ok()) spdlog::warn("cannot write {}: {}", path_, status.message());
}

void HistoryKeeper::finish(bool saves) {
  worker_.reset();
  if (!saves || !has_file() || !history_.ready() || history_.memory_bytes() == 0) return;
  std::string contents;
  history_.begin_walk();  // the thread may have ended amid one
  while (history_.write(contents, true)) {
  }
  save(contents);
}

}  // namespace sluice
