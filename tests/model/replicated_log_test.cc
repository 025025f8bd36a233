// Tests the rules of the replicated log (storage/log_takeover.h, storage/replicated_commit.h):
// random histories of three processes that take the epoch from each other, append, resign and die,
// over a log that loses, delays, exchanges and repeats requests, also long after their callers are
// gone. The real code runs; only the log is a fake. None of the histories is wrong; with any one
// rule switched off some are.
//
// What is right: a unit that was acknowledged is in the contiguous prefix of the log at that
// moment, under its lsn, and stays there; the log reads back as a chain of whole commits; no two
// processes acknowledge different units under one lsn; nobody meets a foreign frame of its own
// epoch.
//
// SLUICE_HISTORIES=n runs n histories of each rule; SLUICE_SEED=n starts with that seed.
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "storage/format.h"
#include "storage/log_takeover.h"
#include "storage/replicated_commit.h"
#include "tests/support/fake_remote_log.h"
#include "tests/support/test.h"

using namespace sluice;
using namespace sluice::test;

namespace {

using Clock = ReplicatedCommit::Clock;
using Units = std::vector<std::string>;  // the records of lsn n at n - 1

constexpr size_t kProcesses = 3;
constexpr size_t kFrameBytes = 100;  // about two small units
constexpr size_t kInFlight = 4;

LogPosition beginning() { return {"cluster", "1", 0, 0, 0, 0}; }

void add_units(Bytes commit, Units& units) {
  UnitCursor cursor(commit);
  while (cursor.next()) units.emplace_back(cursor.records());
}

// The contiguous prefix of the log as a follower sees it.
Status read_prefix(const std::map<uint64_t, std::string>& frames, Units& units) {
  LogTail tail(beginning());
  std::vector<TailCommit> commits;
  for (const auto& [seq, bytes] : frames) {
    if (seq != tail.next_seq()) break;
    if (Status status = tail.add(seq, bytes, commits); !status.ok()) return status;
    if (seq + 1 != tail.next_seq()) return {StatusCode::kDamaged, "a commit was never finished"};
  }
  for (const TailCommit& commit : commits) add_units(commit.units, units);
  return {};
}

class History {
 public:
  History(const LogRules& rules, bool no_fence, uint64_t seed)
      : rules_(rules), random_(seed), service_(seed, faults(no_fence)) {
    for (Process& process : processes_) process.log = service_.connect();
  }

  ~History() {
    for (Process& process : processes_) process.log->close();
  }

  // Returns what is wrong, or nothing.
  std::string run() {
    const size_t steps = 100 + pick(600);
    for (size_t i = 0; i < steps && wrong_.empty(); ++i) step();
    if (wrong_.empty()) finish();
    return wrong_;
  }
  size_t acknowledged() const { return acknowledged_.size(); }
  size_t takeovers() const { return takeovers_; }

 private:
  struct Process {
    std::unique_ptr<RemoteLog> log;
    LogPosition local = beginning();  // of what its local log holds
    Units units;                      // in its local log
    std::shared_ptr<LogTakeover> takeover;
    std::shared_ptr<ReplicatedCommit> commit;
    EpochValue epoch;
    std::string fence;
    Units live;  // what its engine has executed
    CommitBuffer buffer;
    bool resigning = false;
  };

  static FakeFaults faults(bool no_fence) {
    FakeFaults faults;
    faults.lost = 0.1;
    faults.unanswered = 0.1;
    faults.repeated = 0.3;
    faults.no_fence = no_fence;
    return faults;
  }

  size_t pick(size_t count) { return random_() % count; }
  void blame(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }

  void step() {
    now_ += std::chrono::milliseconds(1);
    const size_t what = pick(100);
    Process& process = processes_[pick(kProcesses)];
    if (what < 60) {
      service_.step();
    } else if (what < 80) {
      work(process);
    } else if (what < 96) {
      pump(process);
    } else if (what < 97) {
      kill(process);
    } else if (what < 98) {
      resign(process);
    } else if (process.takeover == nullptr && process.commit == nullptr) {
      take(process);
    }
  }

  void take(Process& process) {
    TakeoverOptions options{service_.state().epoch, {}, LogTail(process.local), {}, {}, rules_};
    uint64_t epoch = 0;
    if (!options.seen.empty()) epoch = decode_epoch(options.seen).value().epoch;
    process.epoch = {"cluster",
                     epoch + 1,
                     "n" + std::to_string(&process - processes_),
                     "r" + std::to_string(++runs_),
                     true,
                     "",
                     0};
    options.mine = process.epoch;
    options.on_commits = [&process](const std::vector<TailCommit>& commits) {
      for (const TailCommit& commit : commits) add_units(commit.units, process.units);
      process.local = commits.back().position;
    };
    options.on_end = [this, &process](const TakeoverResult& result) { taken(process, result); };
    process.takeover = std::make_shared<LogTakeover>(*process.log, std::move(options));
    process.takeover->pump();
  }

  void taken(Process& process, const TakeoverResult& result) {
    if (result.status.code() == StatusCode::kDamaged) blame(result.status.message());
    ended_.push_back(std::move(process.takeover));  // it is running
    process.takeover = nullptr;
    if (!result.status.ok()) return;
    ++takeovers_;
    process.fence = result.fence;
    process.live = process.units;
    ReplicatedOptions options{result.fence, result.position, kInFlight, kFrameBytes, rules_};
    ReplicatedCallbacks callbacks;
    callbacks.on_durable = [this, &process](Lsn lsn) { acknowledge(process, lsn); };
    callbacks.on_change = [] {};
    callbacks.on_failed = [this, &process](const Status& status) {
      // Another epoch is no fault; a foreign frame in the own one is.
      if (status.code() != StatusCode::kLocked) blame(status.message());
      fenced_.push_back(&process);
    };
    process.commit =
        std::make_shared<ReplicatedCommit>(*process.log, std::move(options), std::move(callbacks));
  }

  void work(Process& process) {
    if (process.commit == nullptr || process.resigning) return;
    for (size_t i = pick(3) + 1; i-- != 0;) {
      const std::string records = "unit " + std::to_string(++made_) + std::string(pick(80), '.');
      process.live.push_back(records);
      process.buffer.append({records, 1}, crc32c(records), {process.live.size(), 1, 0}, nullptr,
                            kMaxUnitBytes);
    }
  }

  void pump(Process& process) {
    if (process.takeover != nullptr) process.takeover->pump();
    if (process.commit == nullptr) return;
    if (process.commit->wants(process.buffer.size(), now_)) {
      process.commit->add(std::move(process.buffer), now_);
      process.buffer = {};
    }
    process.commit->pump(now_);
    while (auto committed = process.commit->take_committed()) {
      add_units(committed->buffer.plain(), process.units);
      process.local = committed->position;
    }
    for (Process* fenced : std::exchange(fenced_, {})) kill(*fenced);
  }

  // What it sent may still arrive. It starts again with what its local log holds.
  void kill(Process& process) {
    if (process.commit != nullptr) process.commit->stop();
    process.log->close();
    process.log = service_.connect();
    process.takeover = nullptr;
    process.commit = nullptr;
    process.buffer = {};
    process.resigning = false;
  }

  // After the last frame is committed the epoch is nobody's.
  void resign(Process& process) {
    if (process.commit == nullptr || process.resigning) return;
    process.resigning = true;
    if (!process.commit->idle() || !process.buffer.empty()) {
      process.resigning = false;
      return;
    }
    EpochValue next{"cluster", process.epoch.epoch + 1, "", "", true, "", 0};
    // Whatever the answer is, the process is started anew.
    process.log->change_epoch(process.fence, encode_epoch(next),
                              [this, &process](const RemoteAnswer& answer) {
                                if (answer.outcome != RemoteOutcome::kClosed) {
                                  fenced_.push_back(&process);
                                }
                              });
  }

  // Checked at that moment: the units are in the log, before any hole.
  void acknowledge(const Process& process, Lsn lsn) {
    Units prefix;
    if (Status status = read_prefix(service_.frames(), prefix);
        !status.ok() && status.message() != "a commit was never finished") {
      return blame(status.message());
    }
    if (prefix.size() < lsn) return blame("acknowledged, but not in the contiguous prefix");
    for (Lsn n = 1; n <= lsn; ++n) {
      if (prefix[n - 1] != process.live[n - 1]) return blame("another unit has this lsn");
      const auto [known, added] = acknowledged_.emplace(n, prefix[n - 1]);
      if (!added && known->second != prefix[n - 1]) return blame("two units have one lsn");
    }
  }

  // A last process takes over without faults, and appends: all is well with what it finds.
  void finish() {
    service_.settle();
    for (Process& process : processes_) kill(process);
    fenced_.clear();
    FakeFaults none;
    service_.set_faults(none);
    service_.settle();
    Process& last = processes_[0];
    last.local = beginning();
    last.units.clear();
    take(last);
    service_.settle();
    // Each pump reads a page.
    for (int i = 0; last.takeover != nullptr && i < 100; ++i) {
      pump(last);
      service_.settle();
    }
    if (!wrong_.empty()) return;
    if (last.commit == nullptr) return blame("nobody can take over");
    if (last.units.size() < acknowledged_.size()) return blame("acknowledged units are lost");
    for (const auto& [lsn, unit] : acknowledged_) {
      if (last.units[lsn - 1] != unit) return blame("an acknowledged unit has changed");
    }
    work(last);
    for (int i = 0; i < 20; ++i) {
      now_ += std::chrono::milliseconds(5);
      pump(last);
      service_.settle();
    }
    if (!wrong_.empty()) return;
    if (!last.commit->idle() || acknowledged_.size() != last.live.size()) {
      return blame("nothing can be appended");
    }
    Units prefix;
    if (Status status = read_prefix(service_.frames(), prefix); !status.ok()) {
      return blame(status.message());
    }
    if (prefix != last.live) blame("the log and the primary differ");
  }

  const LogRules rules_;
  std::mt19937_64 random_;
  FakeRemoteService service_;
  Process processes_[kProcesses];
  std::vector<std::shared_ptr<LogTakeover>> ended_;
  std::vector<Process*> fenced_;
  // Ahead of the real clock, so that every repetition is due.
  Clock::time_point now_ = Clock::now() + std::chrono::hours(1);
  std::map<Lsn, std::string> acknowledged_;
  uint64_t made_ = 0;
  uint64_t runs_ = 0;
  size_t takeovers_ = 0;
  std::string wrong_;
};

struct Tally {
  size_t wrong = 0;
  size_t acknowledged = 0;
  size_t takeovers = 0;
  std::map<std::string, size_t> reasons;
};

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

Tally tally(const LogRules& rules, uint64_t histories, bool no_fence = false) {
  Tally result;
  const uint64_t first = setting("SLUICE_SEED", 1);
  for (uint64_t i = 0; i < setting("SLUICE_HISTORIES", histories); ++i) {
    History history(rules, no_fence, first + i);
    const std::string wrong = history.run();
    result.acknowledged += history.acknowledged();
    result.takeovers += history.takeovers();
    if (wrong.empty()) continue;
    if (result.wrong++ == 0) MESSAGE("seed " << first + i << ": " << wrong);
    ++result.reasons[wrong];
  }
  MESSAGE(result.wrong << " wrong, " << result.acknowledged << " units acknowledged, "
                       << result.takeovers << " takeovers");
  return result;
}

}  // namespace

TEST_CASE("with the rules no history of the replicated log is wrong") {
  const Tally result = tally({}, 1500);
  CHECK(result.wrong == 0);
  CHECK(result.acknowledged > 0);
  CHECK(result.takeovers > 0);
}

TEST_CASE("acknowledging what has a hole before it is wrong") {
  LogRules rules;
  rules.in_order = false;
  CHECK(tally(rules, 300).wrong > 0);
}

TEST_CASE("appending without a comparison of the epoch is wrong") {
  CHECK(tally({}, 300, true).wrong > 0);
}

TEST_CASE("leaving what lies behind a hole is wrong") {
  LogRules rules;
  rules.tidy = false;
  CHECK(tally(rules, 300).wrong > 0);
}

TEST_CASE("appending while a removal may still come is wrong") {
  LogRules rules;
  rules.ready = false;
  CHECK(tally(rules, 300).wrong > 0);
}

TEST_CASE("applying half a commit is wrong") {
  LogRules rules;
  rules.whole_taken = false;
  CHECK(tally(rules, 300).wrong > 0);
}

TEST_CASE("acknowledging half a commit is wrong") {
  LogRules rules;
  rules.whole_commits = false;
  CHECK(tally(rules, 300).wrong > 0);
}
