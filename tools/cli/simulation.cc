#include "tools/cli/simulation.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "engine/base/durations.h"
#include "engine/base/mutex.h"
#include "engine/base/numbers.h"
#include "engine/base/thread.h"
#include "net/process/wall_clock.h"
#include "tools/cli/failure.h"
#include "tools/cli/queue_view.h"
#include "tools/cli/replies.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* kPopBlockMs = "500";
// The most jobs in flight at a time.
constexpr size_t kBatch = 256;
// A producer that is further behind than this drops the jobs it owes.
constexpr std::chrono::seconds kMostDebt(5);
constexpr int64_t kMostTouchMs = 1000;
constexpr int64_t kLeastTouchMs = 30;
constexpr double kDelayedShare = 0.05;

// Fraction of the failing runs that fail for good; for the others a retry may help.
constexpr double kFatalShare = 0.4;

struct Task {
  const char* name;
  const char* what;
  const char* fault;  // why a run fails that may succeed next time
  const char* fatal;  // why no run will succeed
};

constexpr std::array<Task, 6> kTasks = {{
    {"mail", "send the invoice", "connection to the mail server timed out", "550 no such mailbox"},
    {"resize", "make a thumbnail", "no space left in the cache", "not an image: bad magic number"},
    {"report", "add up the month", "the database did not answer within 2 s",
     "the month is not closed"},
    {"import", "read the file of a customer", "connection reset while reading",
     "line 17: 5 columns where 6 are wanted"},
    {"render", "draw the page as PDF", "the browser exited with signal 11", "404 page not found"},
    {"grade", "run the tests of a submission", "the sandbox did not start",
     "compilation failed: 'x' was not declared"},
}};

const Task* find_task(Bytes name) {
  const auto* const task = std::find_if(kTasks.begin(), kTasks.end(),
                                        [&](const Task& each) { return name == each.name; });
  return task == kTasks.end() ? nullptr : task;
}

// Five base-36 digits of milliseconds, which repeat after 16 hours. Jobs of an earlier simulation
// are gone by then, or the few that remain reject the new ones as duplicates.
std::string short_id(const char* task, uint64_t number) {
  constexpr int kDigits = 5;
  constexpr Bytes kAlphabet = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::string id = task;
  id += '-';
  for (int digit = 0; digit < kDigits; ++digit) {
    id += kAlphabet[number % kAlphabet.size()];
    number /= kAlphabet.size();
  }
  return id;
}
constexpr std::array<const char*, 10> kNames = {"ann",   "bob",   "carol", "dave", "eve",
                                                "frank", "grace", "heidi", "ivan", "judy"};

std::string user_name(int number) {
  const auto at = static_cast<size_t>(number);
  return at < kNames.size() ? kNames[at] : "user-" + std::to_string(number + 1);
}

// What all threads have done so far.
struct Counts {
  std::atomic<int64_t> added = 0;
  std::atomic<int64_t> refused = 0;  // e.g. the queue is full or paused
  std::atomic<int64_t> completed = 0;
  std::atomic<int64_t> failed = 0;     // runs
  std::atomic<int64_t> cancelled = 0;  // asked to stop
  std::atomic<int64_t> lost = 0;       // leases
  std::atomic<int64_t> returned = 0;   // at the end
};

// Counters and the stop flag, shared by all threads.
class Stage {
 public:
  Stage(const SimulationPlan& of, Address at, int64_t lease_ms)
      : plan(of),
        address(std::move(at)),
        touch_ms(std::clamp(lease_ms / 3, kLeastTouchMs, kMostTouchMs)) {}

  const SimulationPlan& plan;
  const Address address;
  const int64_t touch_ms;  // between two renewals of a lease
  // Number of the first job. Producers count from here in turns, so that no id is used twice.
  const uint64_t first_id = static_cast<uint64_t>(wall_ms());
  Counts counts;

  bool stopped() const { return stopped_.load(); }
  void stop() {
    {
      const MutexLock lock(mutex_);
      stopped_ = true;
    }
    wake_.notify_all();
  }
  // Returns false if the simulation should stop.
  bool sleep_until(steady_clock::time_point time) NO_THREAD_SAFETY_ANALYSIS {
    std::unique_lock<std::mutex> lock(mutex_.native());
    return !wake_.wait_until(lock, time, [this] { return stopped(); });
  }
  // The first failure is the one reported.
  void fail(const Failure& failure) {
    {
      const MutexLock lock(mutex_);
      if (!failure_) failure_ = failure;
    }
    stop();
  }
  std::optional<Failure> failure() {
    const MutexLock lock(mutex_);
    return failure_;
  }

 private:
  Mutex mutex_;
  std::condition_variable wake_;
  std::atomic<bool> stopped_ = false;  // set under mutex_, so that no sleeper misses it
  std::optional<Failure> failure_ GUARDED_BY(mutex_);
};

// --- Producers ---

class Producer {
 public:
  Producer(Stage& stage, int number)
      : stage_(stage),
        connection_(stage.address),
        random_(stage.plan.seed * 1000 + static_cast<uint64_t>(number)),
        gap_(stage.plan.rate / stage.plan.producers),
        next_id_(stage.first_id + static_cast<uint64_t>(number)) {
    for (const std::string& name : stage.plan.tasks) tasks_.push_back(find_task(name));
    for (size_t i = 0; stage.plan.tasks.empty() && i < kTasks.size(); ++i) {
      tasks_.push_back(&kTasks[i]);
    }
    std::vector<double> bands;
    for (const auto& [name, share] : stage.plan.bands) bands.push_back(share);
    band_ = std::discrete_distribution<size_t>(bands.begin(), bands.end());
    // The first user has the most jobs, the second half as many, …
    std::vector<double> users;
    for (int i = 0; i < stage.plan.users; ++i) users.push_back(1.0 / (i + 1));
    user_ = std::discrete_distribution<int>(users.begin(), users.end());
  }

  void run() {
    auto due = steady_clock::now() + next_gap();
    while (stage_.sleep_until(due)) {
      const auto now = steady_clock::now();
      if (now - due > kMostDebt) due = now;
      size_t count = 0;
      // Include the jobs that have become due in the meantime.
      for (; due <= now && count < kBatch; ++count) {
        send_job();
        due += next_gap();
      }
      for (; count > 0; --count) take_answer();
    }
  }

 private:
  steady_clock::duration next_gap() {
    const std::chrono::duration<double> seconds(gap_(random_));
    return std::chrono::duration_cast<steady_clock::duration>(seconds);
  }

  void send_job() {
    const SimulationPlan& plan = stage_.plan;
    const Task& task = *tasks_[random_() % tasks_.size()];
    nlohmann::json payload = {{"task", task.what}, {"number", ++number_}};
    const std::string id = short_id(task.name, next_id_);
    next_id_ += static_cast<uint64_t>(plan.producers);
    Words words = {"Q.ADD", plan.queue, id, "", "TAG", "task", task.name};
    if (plan.users > 0) {
      const std::string user = user_name(user_(random_));
      payload["for"] = user;
      words.insert(words.end(), {"GROUP", user});
    }
    if (!plan.bands.empty()) {
      words.insert(words.end(), {"PRI", plan.bands[band_(random_)].first});
    }
    if (std::uniform_real_distribution<double>(0, 1)(random_) < kDelayedShare) {
      words.insert(words.end(), {"DELAY", std::to_string(2000 + random_() % 8000)});
    }
    words[3] = payload.dump();
    connection_.send(words);
  }

  void take_answer() {
    const RespValue reply = connection_.receive();
    if (!reply.is_error()) {
      ++stage_.counts.added;
      return;
    }
    constexpr std::array<Bytes, 5> kRefusals = {"QFULL", "GROUPFULL", "PAUSED", "OOM", "DUPLICATE"};
    const Bytes code = Bytes(reply.text).substr(0, reply.text.find(' '));
    if (std::find(kRefusals.begin(), kRefusals.end(), code) == kRefusals.end()) {
      throw failure_of(reply.text);
    }
    ++stage_.counts.refused;
  }

  Stage& stage_;
  Connection connection_;
  std::mt19937_64 random_;
  std::exponential_distribution<double> gap_;  // seconds between two jobs
  std::discrete_distribution<size_t> band_;
  std::discrete_distribution<int> user_;
  std::vector<const Task*> tasks_;
  uint64_t next_id_;  // used by this producer only
  int64_t number_ = 0;
};

// --- Workers ---

class Worker {
 public:
  Worker(Stage& stage, int number)
      : stage_(stage),
        connection_(stage.address),
        random_(~stage.plan.seed * 1000 + static_cast<uint64_t>(number)),
        name_("worker-" + std::to_string(number + 1)) {}

  void run() {
    const std::string& queue = stage_.plan.queue;
    while (!stage_.stopped()) {
      const RespValue jobs =
          as_maps(connection_.call({"Q.POP", "1", queue, "WORKER", name_, "BLOCK", kPopBlockMs}));
      for (const RespValue& job : jobs.items) work_on(job);
    }
  }

 private:
  void work_on(const RespValue& job) {
    id_ = text_of(job, "id");
    lease_ = std::to_string(integer_of(job, "lease"));
    const double run_ms = stage_.plan.run.draw(random_);
    const auto begin = steady_clock::now();
    const auto end = begin + milliseconds(static_cast<int64_t>(run_ms));
    while (steady_clock::now() < end) {
      const auto step = milliseconds(stage_.touch_ms);
      const auto until = std::min(end, steady_clock::now() + step);
      if (!stage_.sleep_until(until)) {
        send_end({"Q.NACK", stage_.plan.queue, id_, lease_, "SILENT"}, stage_.counts.returned);
        return;
      }
      const double done = std::chrono::duration<double, std::milli>(until - begin).count();
      if (until < end && !touch(static_cast<int>(100 * done / run_ms))) return;
    }
    if (std::uniform_real_distribution<double>(0, 1)(random_) < stage_.plan.fail_share) {
      fail_run();
    } else {
      const nlohmann::json result = {{"ran_ms", static_cast<int64_t>(run_ms)}};
      send_end({"Q.ACK", stage_.plan.queue, id_, lease_, "RESULT", result.dump()},
               stage_.counts.completed);
    }
  }

  void fail_run() {
    const Task* const task = find_task(Bytes(id_).substr(0, id_.find('-')));
    const bool fatal = std::uniform_real_distribution<double>(0, 1)(random_) < kFatalShare;
    Words words = {"Q.NACK", stage_.plan.queue, id_, lease_, fatal ? "FATAL" : "FAIL"};
    // A job added by someone else has no task.
    const char* const error = task == nullptr ? "exit code 1" : fatal ? task->fatal : task->fault;
    words.insert(words.end(), {"ERROR", error});
    send_end(words, stage_.counts.failed);
  }

  // Returns false if the run is over.
  bool touch(int percent) {
    const std::string progress = std::to_string(percent) + " %";
    const RespValue reply = as_map(
        connection_.try_call({"Q.TOUCH", stage_.plan.queue, id_, lease_, "PROGRESS", progress}));
    if (reply.is_error()) {
      note_lost(reply);
      return false;
    }
    const RespValue* cancel = reply.find("cancel");
    if (cancel == nullptr || cancel->is_null()) return true;
    send_end({"Q.NACK", stage_.plan.queue, id_, lease_}, stage_.counts.cancelled);
    return false;
  }

  void send_end(const Words& words, std::atomic<int64_t>& counted) {
    const RespValue reply = connection_.try_call(words);
    reply.is_error() ? note_lost(reply) : void(++counted);
  }

  // The lease expired, an operator ended it, or the queue was deleted.
  void note_lost(const RespValue& error) {
    if (!error.text.starts_with("STALELEASE") && !error.text.starts_with("NOJOB")) {
      throw failure_of(error.text);
    }
    ++stage_.counts.lost;
  }

  Stage& stage_;
  Connection connection_;
  std::mt19937_64 random_;
  const std::string name_;
  std::string id_;
  std::string lease_;
};

template <class Actor>
void act(Stage& stage, int number) {
  try {
    Actor(stage, number).run();
  } catch (const Failure& failure) {
    stage.fail(failure);
  }
}

// --- Output ---

class Report {
 public:
  Report(Context& context, Stage& stage) : context_(context), stage_(stage) {}

  void print_progress() {
    const RespValue stats = as_map(context_.connection.call({"Q.STATS", stage_.plan.queue}));
    const double seconds = seconds_since(last_);
    last_ = steady_clock::now();
    const int64_t added = stage_.counts.added;
    const int64_t ended = stage_.counts.completed;
    const double adding = static_cast<double>(added - last_added_) / seconds;
    const double ending = static_cast<double>(ended - last_ended_) / seconds;
    last_added_ = added;
    last_ended_ = ended;
    const int64_t waiting = integer_of(stats, "waiting");
    const int64_t active = integer_of(stats, "active");
    if (context_.json) {
      print_json({{"seconds", seconds_since(begin_)},
                  {"added", added},
                  {"completed", ended},
                  {"waiting", waiting},
                  {"active", active}});
    } else {
      const std::string line = duration_text(static_cast<int64_t>(seconds_since(begin_)) * 1000) +
                               ": added " + rate_text(adding) + "/s, completed " +
                               rate_text(ending) + "/s, waiting " + count_text(waiting) +
                               ", active " + count_text(active);
      // On a terminal, a single line that is updated.
      std::printf(context_.screen.terminal ? "\r%s\x1b[K" : "%s\n", line.c_str());
    }
    std::fflush(stdout);
  }

  void print_summary() {
    const Counts& counts = stage_.counts;
    const double seconds = seconds_since(begin_);
    if (context_.json) {
      print_json({{"summary",
                   {{"seconds", seconds},
                    {"added", counts.added.load()},
                    {"refused", counts.refused.load()},
                    {"completed", counts.completed.load()},
                    {"failed_runs", counts.failed.load()},
                    {"cancelled", counts.cancelled.load()},
                    {"lost_leases", counts.lost.load()},
                    {"returned", counts.returned.load()}}}});
      return;
    }
    if (context_.screen.terminal) std::printf("\r\x1b[K");
    const double rate = static_cast<double>(counts.added) / std::max(seconds, 0.001);
    std::printf("%s: added %s (%s/s), completed %s",
                duration_text(static_cast<int64_t>(seconds * 1000)).c_str(),
                count_text(counts.added).c_str(), rate_text(rate).c_str(),
                count_text(counts.completed).c_str());
    const auto put = [](const char* what, int64_t value) {
      if (value != 0) std::printf(", %s %s", what, count_text(value).c_str());
    };
    put("failed runs", counts.failed);
    put("refused", counts.refused);
    put("asked to stop", counts.cancelled);
    put("leases lost", counts.lost);
    put("returned at the end", counts.returned);
    std::printf("\n");
    const RespValue stats = as_map(context_.connection.call({"Q.STATS", stage_.plan.queue}));
    const std::vector<std::string> lines = summary_lines(stats, context_.screen);
    for (const std::string& line : lines) std::printf("%s\n", line.c_str());
  }

 private:
  static double seconds_since(steady_clock::time_point then) {
    return std::chrono::duration<double>(steady_clock::now() - then).count();
  }

  Context& context_;
  Stage& stage_;
  const steady_clock::time_point begin_ = steady_clock::now();
  steady_clock::time_point last_ = begin_;
  int64_t last_added_ = 0;
  int64_t last_ended_ = 0;
};

// The parts between the commas.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

double positive(Bytes text, const char* what) {
  const auto number = parse_double(text);
  if (number && *number >= 0 && *number <= 1e9) return *number;
  throw usage_error(std::string(what) + ", not " + std::string(text));
}

}  // namespace

RunTime RunTime::parse(const std::string& given) {
  constexpr const char* kWanted = "--run-ms takes N, FROM:TO or exp:MEAN";
  const std::string text = with_plain_durations(given);
  const size_t colon = text.find(':');
  RunTime run;
  if (text.starts_with("exp:")) {
    run.kind = Kind::kExponential;
    run.from = positive(Bytes(text).substr(4), kWanted);
  } else {
    run.from = positive(Bytes(text).substr(0, colon), kWanted);
    run.to =
        colon == std::string::npos ? run.from : positive(Bytes(text).substr(colon + 1), kWanted);
  }
  const bool good = run.kind == Kind::kExponential ? run.from > 0 : run.from <= run.to;
  if (!good) throw usage_error(std::string(kWanted) + ", not " + text);
  return run;
}

double RunTime::draw(std::mt19937_64& random) const {
  if (kind == Kind::kExponential) return std::exponential_distribution<double>(1 / from)(random);
  return from == to ? from : std::uniform_real_distribution<double>(from, to)(random);
}

std::vector<std::string> parse_tasks(const std::string& text) {
  std::vector<std::string> names = parts_of(text);
  for (const std::string& name : names) {
    if (find_task(name) != nullptr) continue;
    throw usage_error("--tasks takes NAME,... of " + std::string(kTaskNames) + ", not " + text);
  }
  return names;
}

BandShares parse_bands(const std::string& text) {
  constexpr const char* kWanted = "--bands takes NAME=WEIGHT,...";
  BandShares shares;
  double sum = 0;
  for (const std::string& part : parts_of(text)) {
    const size_t equals = part.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw usage_error(std::string(kWanted) + ", not " + text);
    }
    shares.emplace_back(part.substr(0, equals), positive(Bytes(part).substr(equals + 1), kWanted));
    sum += shares.back().second;
  }
  if (sum <= 0) throw usage_error(std::string(kWanted) + ", with at least one weight above 0");
  return shares;
}

BandShares bands_of_queue(Connection& connection, const std::string& queue) {
  const RespValue reply = as_map(connection.call({"Q.CONFIG", queue, "GET", "bands"}));
  const std::string text = text_of(reply, "bands");
  BandShares shares;
  if (text.empty()) return shares;
  for (const std::string& part : parts_of(text)) {
    shares.emplace_back(part.substr(0, part.find('=')), 0);
  }
  for (size_t i = 0; i < shares.size(); ++i) {
    shares[i].second = 1 + 2 * static_cast<double>(std::min(i, shares.size() - 1 - i));
  }
  return shares;
}

int simulate(Context& context, const SimulationPlan& plan, Signals& signals, int64_t seconds) {
  const RespValue config =
      as_map(context.connection.call({"Q.CONFIG", plan.queue, "GET", "lease_ms"}));
  const int64_t lease_ms = parse_i64(text_of(config, "lease_ms")).value_or(30'000);
  Stage stage(plan, context.connection.address(), lease_ms);
  std::vector<Thread> threads;
  Report report(context, stage);
  try {
    for (int i = 0; i < plan.producers; ++i) {
      threads.emplace_back("producer", [&stage, i] { act<Producer>(stage, i); });
    }
    for (int i = 0; i < plan.workers; ++i) {
      threads.emplace_back("worker", [&stage, i] { act<Worker>(stage, i); });
    }
    const auto begin = steady_clock::now();
    for (int64_t second = 1; !stage.stopped(); ++second) {
      const auto next = begin + std::chrono::seconds(second);
      const auto left = std::chrono::ceil<milliseconds>(next - steady_clock::now());
      if (signals.wait(left).event == Signals::Event::kSignal || stage.stopped()) break;
      report.print_progress();
      if (second == seconds) break;
    }
  } catch (const Failure& failure) {
    stage.fail(failure);
  } catch (const std::system_error& failure) {
    stage.fail({kServerError, failure.what()});
  }
  stage.stop();
  for (Thread& thread : threads) thread.join();
  if (const auto failure = stage.failure()) {
    if (context.screen.terminal) std::printf("\n");
    throw *failure;
  }
  report.print_summary();
  return kDone;
}

}  // namespace sluice::cli
