// History with simulated clocks: the coding of its values, what it shows, its bound, its file.
#include "net/admin/history.h"

#include <cstdint>
#include <random>
#include <string>

#include "tests/support/test.h"

namespace {

using sluice::BandSample;
using sluice::History;
using sluice::HistoryRange;
using sluice::HistoryValue;
using sluice::HistoryView;
using sluice::kNoValue;
using sluice::pack_value;
using sluice::QueueSample;
using sluice::unpack_value;
using sluice::WaitCounts;

// A minute's first slot.
constexpr int64_t kBegin = 12 * 30'000'000;

struct Server {
  History history;
  int64_t slot = kBegin - 1;
  int64_t step_ms = 5000;
  std::vector<QueueSample> queues;
  std::vector<BandSample> bands = {{2, "NORMAL", 0, {}}};

  explicit Server(uint64_t limit = 32U << 20, sluice::Bytes file = {}) {
    history.set_limit(limit);
    CHECK(history.load(file, slot * step_ms));
  }
  QueueSample& queue(const std::string& name) {
    for (QueueSample& each : queues) {
      if (each.queue.name == name) return each;
    }
    queues.push_back({{}, {0, name}, (slot + 1) * step_ms + 1});
    return queues.back();
  }
  void start(const std::string& name, int64_t wait_ms, uint64_t count = 1) {
    queue(name).started += count;
    auto& waits = bands[0].waits_ms;
    const auto behind = [&](const auto& each) { return each.first >= wait_ms; };
    const auto at = std::find_if(waits.begin(), waits.end(), behind);
    if (at != waits.end() && at->first == wait_ms) {
      at->second += count;
    } else {
      waits.insert(at, {wait_ms, count});
    }
  }
  // Samples all queues at the end of the next interval.
  void sample(bool counted = true, bool complete = true) {
    ++slot;
    history.begin_sample(slot, (slot + 1) * step_ms, counted);
    for (const QueueSample& each : queues) {
      if (history.look(each)) history.put(each, bands);
    }
    history.end_sample(complete);
    while (complete && history.forget_gone()) {
    }
  }
  HistoryView view(const std::string& name, HistoryRange range = HistoryRange::kHour) const {
    return history.view({0, name}, range, (slot + 1) * step_ms);
  }
  std::string file(bool at_end = true) {
    std::string text;
    while (history.write(text, at_end)) {
    }
    return text;
  }
};

// The last values of a column, from the front; -1: none.
std::vector<int64_t> last(const std::vector<HistoryValue>& values, size_t count) {
  std::vector<int64_t> shown;
  for (size_t i = values.size() - count; i < values.size(); ++i) {
    shown.push_back(values[i] == kNoValue ? -1 : static_cast<int64_t>(unpack_value(values[i])));
  }
  return shown;
}

using Shown = std::vector<int64_t>;

TEST_CASE("a value in 16 bits is exact up to 4095, and within 1/4096 above") {
  for (uint64_t value = 0; value < 4096; ++value) CHECK(unpack_value(pack_value(value)) == value);
  std::mt19937_64 random(7);
  HistoryValue before = 0;
  for (int bits = 12; bits < 42; ++bits) {
    for (int i = 0; i < 1000; ++i) {
      const uint64_t value = (uint64_t{1} << bits) | (random() & ((uint64_t{1} << bits) - 1));
      const uint64_t shown = unpack_value(pack_value(value));
      const uint64_t error = shown > value ? shown - value : value - shown;
      CHECK(error <= value / 4096);
    }
    const HistoryValue code = pack_value(uint64_t{1} << bits);
    CHECK(code > before);
    before = code;
  }
  CHECK(pack_value(UINT64_MAX) == kNoValue - 1);
  CHECK(pack_value((uint64_t{1} << 42) - 1) < kNoValue);
}

TEST_CASE("quantiles of waits are those of what was added since") {
  using Waits = std::vector<std::pair<int64_t, uint64_t>>;
  const WaitCounts before(Waits{{5, 100}, {1000, 3}});
  const WaitCounts after(Waits{{5, 101}, {7, 1}, {1000, 3}, {5000, 18}});
  const WaitCounts since = after.since(before);
  CHECK(since.total() == 20);
  CHECK(unpack_value(since.quantile(0.05)) == 5);
  CHECK(unpack_value(since.quantile(0.1)) == 7);
  const uint64_t p95 = unpack_value(since.quantile(0.95));
  CHECK(p95 >= 5000);
  CHECK(p95 <= 5000 + 5000 / 16 + 2);
  CHECK(WaitCounts().quantile(0.5) == kNoValue);
  WaitCounts sum = since;
  sum.add(before);
  CHECK(sum.total() == 123);
  CHECK(sum.since(after).total() == 0);
}

TEST_CASE("an interval has what happened in it") {
  Server server;
  server.sample();
  auto& queue = server.queue("q");
  queue.added = 5;
  queue.waiting = 5;
  server.bands[0].waiting = 5;
  server.sample();
  server.start("q", 20, 2);
  server.queue("q").waiting = 3;
  server.queue("q").active = 2;
  server.bands[0].waiting = 3;
  server.sample();
  server.sample();  // nothing happens
  server.queue("q").ended = 2;
  server.queue("q").failed = 1;
  server.queue("q").active = 0;
  server.sample();
  const HistoryView view = server.view("q");
  CHECK(view.start_ms == (server.slot + 1 - 720) * 5000);
  CHECK_FALSE(view.reduced);
  CHECK(last(view.queue[sluice::kAdded], 5) == Shown{-1, 5, 0, 0, 0});
  CHECK(last(view.queue[sluice::kEnded], 5) == Shown{-1, 0, 0, 0, 2});
  CHECK(last(view.queue[sluice::kFailed], 5) == Shown{-1, 0, 0, 0, 1});
  CHECK(last(view.queue[sluice::kWaiting], 5) == Shown{-1, 5, 3, 3, 3});
  CHECK(last(view.queue[sluice::kActive], 5) == Shown{-1, 0, 2, 2, 0});
  CHECK(last(view.queue[sluice::kWaitP50], 5) == Shown{-1, -1, 20, -1, -1});
  REQUIRE(view.bands.size() == 1);
  CHECK(view.bands[0].first == "NORMAL");
  CHECK(last(view.bands[0].second[sluice::kBandWaiting], 5) == Shown{-1, 5, 3, 3, 3});
  CHECK(last(view.bands[0].second[sluice::kBandWaitP95], 5) == Shown{-1, -1, 20, -1, -1});
}

TEST_CASE("a minute has the sums of its intervals") {
  Server server;
  server.sample();
  server.slot = kBegin + 11;
  for (int i = 0; i < 24; ++i) {
    server.queue("q").added += 2;
    server.queue("q").waiting += 2;
    server.start("q", i < 12 ? 3 : 6);
    server.sample();
  }
  server.sample();
  const HistoryView view = server.view("q", HistoryRange::kDay);
  CHECK(view.start_ms == (kBegin / 12 + 3 - 1440) * 60'000);
  CHECK(last(view.queue[sluice::kAdded], 3) == Shown{-1, 24, 24});
  CHECK(last(view.queue[sluice::kWaiting], 3) == Shown{-1, 24, 48});
  CHECK(last(view.queue[sluice::kWaitP95], 3) == Shown{-1, 3, 6});
  CHECK(view.bands.empty());
}

TEST_CASE("what was missed is a gap, and no peak") {
  Server server;
  server.queue("q").added = 1;
  server.sample();
  server.queue("q").added = 2;
  server.sample();
  server.slot += 3;
  server.queue("q").added = 500;
  server.queue("q").waiting = 7;
  server.sample(false);
  server.queue("q").added = 501;
  server.sample();
  CHECK(last(server.view("q").queue[sluice::kAdded], 6) == Shown{1, -1, -1, -1, -1, 1});
  CHECK(last(server.view("q").queue[sluice::kWaiting], 6) == Shown{0, -1, -1, -1, 7, 7});
  // A shard could not be read.
  server.sample(true, false);
  CHECK(last(server.view("q").queue[sluice::kAdded], 1) == Shown{1});
  server.sample();
  CHECK(last(server.view("q").queue[sluice::kAdded], 3) == Shown{1, -1, 0});
}

TEST_CASE("after a step back of the wall clock the time is recorded anew") {
  Server server;
  for (int i = 0; i < 30; ++i) {
    ++server.queue("q").added;
    server.sample();
  }
  server.slot -= 20;
  server.queue("q").added += 5;
  server.sample();
  CHECK(last(server.view("q").queue[sluice::kAdded], 3) == Shown{1, 1, 5});
  for (int i = 0; i < 5; ++i) server.sample();
  CHECK(last(server.view("q").queue[sluice::kAdded], 7) == Shown{1, 5, 0, 0, 0, 0, 0});
  // By years, both ways.
  server.slot += 100'000'000;
  server.sample();
  CHECK(last(server.view("q").queue[sluice::kAdded], 3) == Shown{-1, -1, 0});
  server.slot -= 150'000'000;
  ++server.queue("q").added;
  server.sample();
  CHECK(last(server.view("q").queue[sluice::kAdded], 3) == Shown{-1, -1, 1});
}

TEST_CASE("a queue that is idle takes no more memory, whatever its past") {
  Server server;
  for (int i = 0; i < 100; ++i) server.queue("q" + std::to_string(i)).added = 1;
  server.sample();
  const uint64_t idle = server.history.memory_bytes();
  CHECK(idle < 100 * 256);
  for (int i = 0; i < 100; ++i) ++server.queue("q" + std::to_string(i)).added;
  server.sample();
  CHECK(server.history.memory_bytes() > idle);
  for (int i = 0; i < 12 * 1442; ++i) server.sample();
  CHECK(server.history.memory_bytes() == idle);
  const HistoryView view = server.view("q7");
  CHECK(last(view.queue[sluice::kAdded], 720) == Shown(720, 0));
}

TEST_CASE("a busy queue takes about two bytes a value") {
  Server server;
  for (int i = 0; i < 12 * 1440; ++i) {
    server.queue("q").added += 3;
    server.queue("q").waiting = static_cast<uint64_t>(i);
    server.bands[0].waiting = static_cast<uint64_t>(i);
    server.start("q", 3);
    server.sample();
  }
  const uint64_t values = 720 * 7 + 1440 * 7 + 720 * 3;
  CHECK(server.history.memory_bytes() < 3 * values);
  CHECK(last(server.view("q").queue[sluice::kAdded], 720) == Shown(720, 3));
  CHECK(last(server.view("q", HistoryRange::kDay).queue[sluice::kAdded], 1400) == Shown(1400, 36));
}

TEST_CASE("beyond the limit those idle longest lose the hour, then the day") {
  constexpr uint64_t kLimit = 400'000;
  Server server(kLimit);
  const auto change = [&](int begin, int end) {
    for (int i = begin; i < end; ++i) ++server.queue("q" + std::to_string(i)).added;
  };
  server.sample();
  for (int i = 0; i < 100; ++i) {
    change(0, 40);
    server.sample();
  }
  for (int i = 0; i < 500; ++i) {
    change(30, 40);
    server.sample();
    CHECK(server.history.memory_bytes() <= kLimit);
  }
  for (int i = 0; i < 300; ++i) {
    change(30, 40);
    server.sample();
  }
  CHECK(server.history.memory_bytes() <= kLimit);
  CHECK_FALSE(server.view("q39").reduced);
  CHECK_FALSE(server.view("q0", HistoryRange::kDay).reduced);
  CHECK(last(server.view("q0", HistoryRange::kDay).queue[sluice::kAdded], 75)[4] == 12);
  // Also by many that are made.
  change(1000, 1700);
  server.sample();
  CHECK(server.history.memory_bytes() <= kLimit);
  CHECK(server.view("q30").reduced);
  server.history.set_limit(100'000);
  CHECK(server.history.memory_bytes() <= 100'000);
  server.history.set_limit(0);
  CHECK(server.history.memory_bytes() == 0);
  server.sample();
  CHECK(server.history.memory_bytes() == 0);
  CHECK(last(server.view("q39").queue[sluice::kAdded], 720) == Shown(720, -1));
}

TEST_CASE("a later queue of the same name has a history of its own") {
  Server server;
  server.queue("q").added = 5;
  server.sample();
  server.queue("q").added = 7;
  server.sample();
  server.queues.clear();
  server.queue("q").added = 9;
  server.sample();
  CHECK(last(server.view("q").queue[sluice::kAdded], 3) == Shown{-1, -1, 9});
  server.queues.clear();
  server.sample();
  CHECK(last(server.view("q").queue[sluice::kAdded], 3) == Shown{-1, -1, -1});
  CHECK(server.history.memory_bytes() == 0);
  // A queue that has got this name brings totals of which nobody knows when they arose.
  server.queue("q").added = 100;
  server.queue("q").since_ms = 1;
  server.sample();
  server.queue("q").added = 101;
  server.sample();
  CHECK(last(server.view("q").queue[sluice::kAdded], 3) == Shown{-1, -1, 1});
}

TEST_CASE("its file holds all of it") {
  Server server;
  server.sample();
  for (int i = 0; i < 30; ++i) {
    server.queue("q").added += 2;
    server.queue("idle").added = 1;
    server.queue("q").waiting = 4;
    server.bands[0].waiting = 4;
    server.start("q", 9);
    server.sample();
  }
  const std::string file = server.file();
  Server again(32U << 20, file);
  again.slot = server.slot;
  for (const HistoryRange range : {HistoryRange::kHour, HistoryRange::kDay}) {
    for (const char* name : {"q", "idle"}) {
      const HistoryView then = server.view(name, range);
      const HistoryView now = again.view(name, range);
      CHECK(now.start_ms == then.start_ms);
      CHECK(now.queue == then.queue);
      CHECK(now.bands == then.bands);
    }
  }
  // It continues: what was not saved belongs to no interval.
  again.queues = server.queues;
  again.bands = server.bands;
  again.slot += 2;
  again.queue("q").added += 50;
  again.queue("q").since_ms = again.slot * 5000;
  again.bands[0].waits_ms.clear();
  again.sample();
  ++again.queue("q").added;
  again.start("q", 40);
  again.sample();
  CHECK(last(again.view("q").queue[sluice::kAdded], 5) == Shown{2, -1, -1, -1, 1});
  CHECK(last(again.view("q").queue[sluice::kWaitP50], 3) == Shown{-1, -1, 41});
}

TEST_CASE("a damaged file is dropped") {
  Server server;
  server.sample();
  server.queue("q").added += 2;
  server.sample();
  server.sample();
  const std::string file = server.file();
  for (size_t at = 0; at < file.size(); at = at < 40 ? at + 1 : at + 97) {
    std::string damaged = file;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    History flipped;
    flipped.set_limit(1U << 20);
    CHECK_FALSE(flipped.load(damaged, 0));
    CHECK(flipped.memory_bytes() == 0);
    History cut;
    cut.set_limit(1U << 20);
    CHECK(cut.load(sluice::Bytes(file).substr(0, at), 0) == (at == 0));
  }
}

}  // namespace
