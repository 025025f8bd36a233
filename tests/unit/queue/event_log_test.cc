// EventLog against a deque of events, in memory and with a spill.
#include "engine/queue/event_log.h"

#include <deque>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "storage/event_file.h"
#include "tests/support/lossy_spill.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace {

using sluice::Bytes;
using sluice::Event;
using sluice::EventFields;
using sluice::EventFile;
using sluice::EventLog;
using sluice::EventType;
using sluice::Retention;
using sluice::test::LossySpill;
using sluice::testing::use_seed;

struct Kept {
  uint64_t seq;
  int64_t time_ms;
  EventType type;
  std::string id;
  std::string fields;
};

void compare(const EventLog& log, const std::deque<Kept>& model, uint64_t after) {
  size_t expected = 0;
  while (expected < model.size() && model[expected].seq <= after) ++expected;
  log.read(after, [&](const Event& event) {
    REQUIRE(expected < model.size());
    const Kept& kept = model[expected++];
    REQUIRE(event.seq == kept.seq);
    REQUIRE(event.time_ms == kept.time_ms);
    REQUIRE(event.type == kept.type);
    REQUIRE(event.id == kept.id);
    REQUIRE(event.fields == kept.fields);
    return true;
  });
  REQUIRE(expected == model.size());
}

// Compares reads of some types, with a limit.
void compare_types(const EventLog& log, const std::deque<Kept>& model, std::mt19937_64& random) {
  const uint64_t after = random() % (log.last_seq() + 2);
  const auto types = static_cast<uint32_t>(1U << (1 + random() % 14) | 1U << (1 + random() % 14));
  const size_t most = random() % 2 == 0 ? 1 + random() % 400 : 100'000;
  const size_t wanted = 1 + random() % 200;
  std::vector<uint64_t> expected;
  EventLog::Looked looked;
  for (const Kept& kept : model) {
    if (kept.seq <= after) continue;
    if (looked.count == most || expected.size() == wanted) break;
    looked = {kept.seq, kept.time_ms, looked.count + 1};
    if ((types & event_bit(kept.type)) != 0) expected.push_back(kept.seq);
  }
  std::vector<uint64_t> found;
  const EventLog::Looked read = log.read(after, types, {.events = most}, [&](const Event& event) {
    found.push_back(event.seq);
    return found.size() < wanted;
  });
  REQUIRE(found == expected);
  REQUIRE(read.count == looked.count);
  REQUIRE(read.seq == looked.seq);
  REQUIRE(read.time_ms == looked.time_ms);
}

std::vector<uint64_t> seqs(const EventLog& log, uint64_t after = 0) {
  std::vector<uint64_t> found;
  log.read(after, [&](const Event& event) {
    found.push_back(event.seq);
    return true;
  });
  return found;
}

// `most` is the greatest limit used.
void run_against_model(uint64_t seed, sluice::EventSpill* spill, uint64_t most) {
  use_seed(seed);
  INFO("seed ", seed);
  std::mt19937_64 random(seed);
  EventLog log;
  log.spill_to(spill);
  std::deque<Kept> model;
  int64_t now = 1'700'000'000'000;
  for (int step = 0; step < 3000; ++step) {
    now += static_cast<int64_t>(random() % 200);
    const size_t large = random() % 200 == 0 ? 6000 : 0;
    // For a while nearly all events have one type.
    const size_t type = random() % 300 == 0 ? random() : static_cast<size_t>(step) / 200;
    Kept event{log.last_seq() + 1, now, static_cast<EventType>(1 + type % 14),
               std::string(1 + random() % 40, static_cast<char>(random())),
               std::string(random() % 60 + large, static_cast<char>(random()))};
    log.append(event.seq, event.time_ms, event.type, event.id, event.fields);
    model.push_back(std::move(event));
    if (random() % 10 == 0) {
      const auto age_ms = static_cast<int64_t>(random() % 2 * 60 * most);
      const Retention bounds{random() % 20 == 0 ? random() % most : most, age_ms, 0};
      const size_t limit = random() % 2 == 0 ? 5 : 10'000;
      const uint64_t dropped = log.count_dropped(bounds, now);
      log.trim(bounds, now, limit);
      if (limit == 10'000) REQUIRE(dropped == model.size() - log.count());
      for (size_t i = 0; i < limit && !model.empty(); ++i) {
        const bool old = bounds.age_ms > 0 && model.front().time_ms + bounds.age_ms <= now;
        if (model.size() <= bounds.count && !old) break;
        model.pop_front();
      }
      // If the timer runs for the oldest event, there must be work to do, or it must be rescheduled
      // later.
      if (limit == 10'000 && age_ms != 0 && !log.empty()) REQUIRE(log.oldest_ms() + age_ms > now);
    }
    REQUIRE(log.count() == model.size());
    REQUIRE(log.last_seq() == static_cast<uint64_t>(step) + 1);
    if (!model.empty()) {
      REQUIRE(log.oldest_seq() == model.front().seq);
      REQUIRE(log.oldest_ms() <= model.front().time_ms);
    }
    if (step % 37 == 0) compare(log, model, random() % (log.last_seq() + 2));
    if (step % 11 == 0) compare_types(log, model, random);
    if (step % 41 == 0) compare(log, model, log.last_seq() - 1);
  }
  compare(log, model, 0);
}

TEST_CASE("the log keeps what a deque keeps") {
  for (const uint64_t seed : sluice::testing::seeds(10, 7919))
    run_against_model(seed, nullptr, 900);
}

TEST_CASE("so it does with a file for what is older") {
  sluice::EventFileOptions options;
  options.directory = std::filesystem::temp_directory_path().string();
  const auto file = EventFile::open(std::move(options));
  REQUIRE(file.ok());
  for (const uint64_t seed : sluice::testing::seeds(10, 7919)) {
    run_against_model(seed, file.value().get(), 3000);
  }
  CHECK(file.value()->disk_bytes() > 0);
  file.value()->stop();
}

// About 100 events a chunk.
void fill(EventLog& log, uint64_t count) {
  const std::string fields(30, 'f');
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t seq = log.last_seq() + 1;
    log.append(seq, static_cast<int64_t>(1000 + seq), EventType::kAdded, "id", fields);
  }
}

TEST_CASE("with a spill only a tail is in memory") {
  LossySpill spill;
  EventLog log;
  log.spill_to(&spill);
  fill(log, 100'000);
  CHECK(log.count() == 100'000);
  CHECK(log.memory_bytes() < 300'000);
  CHECK(seqs(log).size() == 100'000);
}

TEST_CASE("a reading stops at its bound of chunks, and the next one goes on there") {
  LossySpill spill;
  EventLog log;
  log.spill_to(&spill);
  fill(log, 10'000);
  uint64_t after = 0;
  size_t readings = 0;
  for (bool stopped = true; stopped; ++readings) {
    spill.reads = 0;
    const EventLog::Looked looked =
        log.read(after, sluice::kEveryEventType, {.chunks_read = 5}, [&](const Event& event) {
          REQUIRE(event.seq == after + 1);
          after = event.seq;
          return true;
        });
    CHECK(spill.reads <= 5);
    CHECK(looked.seq == after);
    stopped = looked.stopped;
  }
  CHECK(after == 10'000);
  CHECK(readings > 10);
  // The tail is in memory, and chunks without the type need not be read.
  const auto count_all = [&](uint64_t from, EventType type) {
    return log.read(from, sluice::event_bit(type), {.chunks_read = 0},
                    [](const Event&) { return true; });
  };
  CHECK(!count_all(9'000, EventType::kAdded).stopped);
  CHECK(!count_all(0, EventType::kFailed).stopped);
  CHECK(count_all(0, EventType::kAdded).stopped);
}

TEST_CASE("in front of what is lost a reading ends, and the log may begin behind it") {
  LossySpill spill;
  EventLog log;
  log.spill_to(&spill);
  fill(log, 5000);
  const EventLog::Looked whole = log.read(0, [](const Event&) { return true; });
  CHECK(whole.count == 5000);
  CHECK(whole.lost_seq == 0);
  spill.lost = true;
  const EventLog::Looked lost = log.read(10, [](const Event&) { return true; });
  CHECK(lost.count == 0);
  REQUIRE(lost.lost_seq > 10);
  log.forget_through(lost.lost_seq);
  CHECK(log.oldest_seq() == lost.lost_seq + 1);
  CHECK(log.last_seq() == 5000);
  // By repeated reads the tail is reached, which is in memory.
  const auto all = [&] { return log.read(0, [](const Event&) { return true; }); };
  for (uint64_t seq = all().lost_seq; seq != 0; seq = all().lost_seq) log.forget_through(seq);
  CHECK(log.count() > 1000);
  CHECK(seqs(log).back() == 5000);
  CHECK(seqs(log).size() == log.count());
}

TEST_CASE("after a replay the time of the oldest is known") {
  EventLog log;
  fill(log, 50);
  log.trim({20, 0, 0}, 0, 100);
  CHECK(log.oldest_ms() <= 1031);
  log.end_replay();
  CHECK(log.oldest_ms() == 1031);
}

TEST_CASE("what is lost is trimmed by age as a whole") {
  LossySpill spill;
  EventLog log;
  log.spill_to(&spill);
  fill(log, 5000);
  spill.lost = true;
  const uint64_t dropped = log.count_dropped({100'000, 1000, 0}, 1000 + 2500);
  log.trim({100'000, 1000, 0}, 1000 + 2500, 100'000);
  CHECK(log.count() == 5000 - dropped);
  CHECK(log.oldest_seq() > 1500);
  CHECK(log.oldest_seq() < 1700);
}

TEST_CASE("replay appends again, and begins anew behind a gap") {
  EventLog log;
  for (uint64_t seq = 1; seq <= 5; ++seq) log.append(seq, 100, EventType::kAdded, "a", {});
  log.append(3, 100, EventType::kAdded, "a", {});
  CHECK(seqs(log) == std::vector<uint64_t>{1, 2, 3, 4, 5});
  log.append(9, 100, EventType::kStarted, "a", {});
  CHECK(seqs(log) == std::vector<uint64_t>{9});
  log.append(4, 100, EventType::kAdded, "a", {});
  CHECK(seqs(log) == std::vector<uint64_t>{9});
  CHECK(log.last_seq() == 9);
}

TEST_CASE("a checkpoint's head may come before its events") {
  EventLog log;
  log.set_last_seq(12);
  CHECK(log.empty());
  for (uint64_t seq = 8; seq <= 12; ++seq) log.append(seq, 100, EventType::kAdded, "a", {});
  CHECK(seqs(log, 9) == std::vector<uint64_t>{10, 11, 12});
  log.set_last_seq(7);
  CHECK(log.last_seq() == 12);
}

TEST_CASE("numbers go on after everything has been trimmed") {
  EventLog log;
  log.append(1, 100, EventType::kAdded, "a", {});
  log.trim({0, 0, 0}, 100, 10);
  CHECK(log.empty());
  CHECK(seqs(log).empty());
  log.append(2, 101, EventType::kStarted, "a", {});
  CHECK(log.oldest_seq() == 2);
  CHECK(log.oldest_ms() == 101);
}

TEST_CASE("events that are missed share a number until one is kept again") {
  EventLog log;
  for (const uint64_t kept : {1, 3, 5}) {
    log.append(kept, 100, EventType::kAdded, "a", {});
    log.trim({0, 0, 0}, 100, 10);
    CHECK(log.miss());
    CHECK_FALSE(log.miss());
    CHECK(log.last_seq() == kept + 1);
  }
}

TEST_CASE("reading stops when the visitor has enough") {
  EventLog log;
  for (uint64_t seq = 1; seq <= 1000; ++seq) log.append(seq, 100, EventType::kAdded, "abc", {});
  size_t visited = 0;
  log.read(500, [&](const Event& event) {
    CHECK(event.seq == 501 + visited);
    return ++visited < 3;
  });
  CHECK(visited == 3);
}

TEST_CASE("an event takes some tens of bytes") {
  EventLog log;
  EventFields fields;
  fields.add("worker", "worker-17");
  fields.add("lease", int64_t{123456});
  for (uint64_t seq = 1; seq <= 100'000; ++seq) {
    log.append(seq, static_cast<int64_t>(1'700'000'000'000 + seq), EventType::kStarted, "job-123",
               fields.bytes());
  }
  CHECK(log.memory_bytes() < 50 * 100'000);
}

TEST_CASE("fields come back in order, few and many") {
  for (const size_t more : {0, 1, 50, 60, 96, 5000}) {
    CAPTURE(more);
    EventFields fields;
    fields.add("worker", "w\n1");
    fields.add("lease", int64_t{-7});
    std::vector<std::string> added{"worker=w\n1", "lease=-7"};
    if (more != 0) {
      fields.add("progress", std::string(more, 'p'));
      added.push_back("progress=" + std::string(more, 'p'));
    }
    fields.add("error", "");
    added.push_back("error=");
    Bytes rest = fields.bytes();
    Bytes name;
    Bytes value;
    std::vector<std::string> seen;
    while (sluice::next_event_field(rest, name, value)) {
      seen.push_back(std::string(name) + "=" + std::string(value));
    }
    CHECK(seen == added);
  }
}

TEST_CASE("types have names, and none is no name") {
  for (size_t i = 1; i < sluice::kEventTypes; ++i) {
    const auto type = static_cast<EventType>(i);
    CHECK(sluice::parse_event_type(sluice::event_type_name(type)) == type);
  }
  CHECK_FALSE(sluice::parse_event_type("none"));
  CHECK(sluice::parse_event_type("STARTED") == EventType::kStarted);
}

}  // namespace
