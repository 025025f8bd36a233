// Tests the checkpoint rule: random histories of a small model that follow the rule never recover a
// wrong state, and histories that break one part of it do.
//
// The model: slots of two numbers. A unit changes a few of them at once, or moves a whole slot into
// another by a record that does not contain the values, and gets the next lsn. A walk reads number
// after number with units in between, and restarts after a unit that moved a slot. The log becomes
// durable at any pace; the process may be killed or power may fail at any moment. Recovery uses the
// newest committed checkpoint and then the units after its B. The result is correct if the state is
// exactly that of the last lsn in the log.
//
// SLUICE_HISTORIES=n runs n histories of each rule; SLUICE_SEED=n starts with that seed.

#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <vector>

#include "tests/support/test.h"

namespace {

constexpr size_t kSlots = 6;
constexpr size_t kParts = 2;  // of a slot
constexpr size_t kNumbers = kSlots * kParts;
constexpr int kStaleWalks = 2;  // after this many in a row, moved slots are recorded by value
using State = std::array<int64_t, kNumbers>;

struct Rules {
  bool absolute = true;           // a record states the new value, not the difference
  bool commit_after_end = true;   // commit only once the log is durable up to E
  bool replay_from_begin = true;  // recovery continues with B + 1, and so trimming stops at B
  bool refuse_short_log = true;   // recovery requires that the log reaches E
  bool begin_again = true;        // a walk during which a slot was moved by name is not used
};

struct Record {
  size_t number = 0;
  int64_t value = 0;
  std::optional<size_t> moved_to = {};  // slots; `number` is one too, and is 0 afterwards
};
using Unit = std::vector<Record>;

struct Checkpoint {
  State state{};
  size_t begin = 0;
  size_t end = 0;
};

// One history. Lsn n is units_[n - 1] and leads to states_[n].
class Model {
 public:
  Model(const Rules& rules, uint64_t seed) : rules_(rules), random_(seed) {}

  enum class Outcome { kRight, kWrong, kRefused };

  Outcome run() {
    const size_t steps = 10 + pick(200);
    for (size_t i = 0; i < steps; ++i) step();
    // The crash leaves any prefix of what was not durable.
    const size_t reached = durable_ + pick(last() - durable_ + 1);
    return recover(reached);
  }

 private:
  size_t pick(size_t count) { return random_() % count; }
  size_t last() const { return units_.size(); }

  void step() {
    switch (pick(8)) {
      case 0:
        if (!walk_.has_value()) begin_walk();
        break;
      case 1:
      case 2:
      case 3:
        if (walk_.has_value()) walk_on();
        break;
      case 4:
        durable_ += pick(last() - durable_ + 1);
        break;
      default:
        append();
    }
    if (walk_ended_) try_commit();
  }

  void append() {
    if (pick(4) == 0) return append_move();
    Unit unit;
    const size_t records = 1 + pick(3);
    for (size_t i = 0; i < records; ++i) {
      const size_t number = pick(kNumbers);
      const auto change = static_cast<int64_t>(pick(5)) - 2;
      live_[number] += change;
      unit.push_back({number, rules_.absolute ? live_[number] : change});
    }
    append(unit);
  }

  void append(const Unit& unit) {
    units_.push_back(unit);
    states_.push_back(live_);
  }

  static void move(State& state, size_t from, size_t to) {
    for (size_t part = 0; part < kParts; ++part) {
      state[to * kParts + part] = state[from * kParts + part];
      state[from * kParts + part] = 0;
    }
  }

  void append_move() {
    const size_t from = pick(kSlots);
    const size_t to = (from + 1 + pick(kSlots - 1)) % kSlots;
    const State before = live_;
    move(live_, from, to);
    if (stale_walks_ < kStaleWalks || !rules_.begin_again) {
      stale_ = true;
      return append({{from, 0, to}});
    }
    Unit unit;
    for (const size_t slot : {from, to}) {
      for (size_t i = slot * kParts; i < (slot + 1) * kParts; ++i) {
        unit.push_back({i, rules_.absolute ? live_[i] : live_[i] - before[i]});
      }
    }
    append(unit);
  }

  void begin_walk() {
    walk_ = Checkpoint();
    walk_->begin = last();
    next_number_ = 0;
    walk_ended_ = false;
    stale_ = false;
  }

  void walk_on() {
    if (walk_ended_) return;
    if (stale_ && rules_.begin_again) {
      ++stale_walks_;
      return begin_walk();
    }
    walk_->state[next_number_] = live_[next_number_];
    if (++next_number_ < kNumbers) return;
    walk_->end = last();
    walk_ended_ = true;
  }

  void try_commit() {
    if (rules_.commit_after_end && durable_ < walk_->end) return;
    committed_ = walk_;
    stale_walks_ = 0;
    walk_.reset();
    walk_ended_ = false;
  }

  Outcome recover(size_t reached) {
    State state{};
    size_t from = 0;
    if (committed_.has_value()) {
      if (rules_.refuse_short_log && reached < committed_->end) return Outcome::kRefused;
      state = committed_->state;
      from = rules_.replay_from_begin ? committed_->begin : committed_->end;
    }
    for (size_t lsn = from + 1; lsn <= reached; ++lsn) {
      for (const Record& record : units_[lsn - 1]) {
        if (record.moved_to.has_value()) {
          move(state, record.number, *record.moved_to);
          continue;
        }
        int64_t& number = state[record.number];
        number = rules_.absolute ? record.value : number + record.value;
      }
    }
    return state == states_[reached] ? Outcome::kRight : Outcome::kWrong;
  }

  const Rules rules_;
  std::mt19937_64 random_;
  State live_{};
  std::vector<Unit> units_;
  std::vector<State> states_{State{}};
  size_t durable_ = 0;
  std::optional<Checkpoint> walk_;
  size_t next_number_ = 0;
  bool walk_ended_ = false;
  bool stale_ = false;   // a slot was moved by name since the walk began
  int stale_walks_ = 0;  // since one was committed
  std::optional<Checkpoint> committed_;
};

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct Counts {
  uint64_t right = 0;
  uint64_t wrong = 0;
  uint64_t refused = 0;
};

Counts run_histories(const Rules& rules) {
  Counts counts;
  const uint64_t first = setting("SLUICE_SEED", 1);
  const uint64_t histories = setting("SLUICE_HISTORIES", 60000);
  for (uint64_t seed = first; seed < first + histories; ++seed) {
    const Model::Outcome outcome = Model(rules, seed).run();
    if (outcome == Model::Outcome::kRight) ++counts.right;
    if (outcome == Model::Outcome::kRefused) ++counts.refused;
    if (outcome != Model::Outcome::kWrong) continue;
    if (counts.wrong++ == 0) MESSAGE("first wrong history: SLUICE_SEED=", seed);
  }
  MESSAGE(counts.right, " right, ", counts.wrong, " wrong, ", counts.refused, " refused");
  return counts;
}

}  // namespace

TEST_CASE("with the rule, every crash recovers exactly the state that the log reaches") {
  const Counts counts = run_histories(Rules{});
  CHECK(counts.wrong == 0);
  CHECK(counts.refused == 0);
}

TEST_CASE("with records of differences, checkpoints that overlap with changes count them twice") {
  Rules rules;
  rules.absolute = false;
  CHECK(run_histories(rules).wrong > 0);
}

TEST_CASE(
    "a checkpoint that is committed before the log reaches its end invents what was never "
    "durable") {
  Rules rules;
  rules.commit_after_end = false;
  rules.refuse_short_log = false;
  CHECK(run_histories(rules).wrong > 0);
}

TEST_CASE("committed too early, a recovery that insists on the end must refuse valid crashes") {
  Rules rules;
  rules.commit_after_end = false;
  const Counts counts = run_histories(rules);
  CHECK(counts.wrong == 0);
  CHECK(counts.refused > 0);
}

TEST_CASE("a log that is trimmed to the checkpoint's end loses what the walk had passed already") {
  Rules rules;
  rules.replay_from_begin = false;
  CHECK(run_histories(rules).wrong > 0);
}

TEST_CASE("a walk that counts though a slot has moved meanwhile has met it in neither place") {
  Rules rules;
  rules.begin_again = false;
  CHECK(run_histories(rules).wrong > 0);
}
