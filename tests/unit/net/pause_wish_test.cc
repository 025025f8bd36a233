// The pause of a group: on its way to a log that loses requests and answers, and as it is heard of.
#include "net/group/pause_wish.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "net/group/group_pause.h"
#include "tests/support/fake_remote_log.h"

using namespace sluice;
using namespace sluice::test;

namespace {

struct WishRun {
  explicit WishRun(uint64_t seed) : service(seed) {}
  ~WishRun() { log->close(); }

  void run(int64_t ms) {
    for (const int64_t end = now + ms; now < end; ++now) service.step();
  }
  std::shared_ptr<PauseWish> make_wish() {
    return std::make_shared<PauseWish>(
        *log, [this] { return now; }, [this](LogLevel, Bytes text) { said.emplace_back(text); });
  }
  // As the log has it.
  PauseValue pause() const {
    const Result<PauseValue> value = decode_pause(service.state().pause);
    return value.ok() ? *value : PauseValue();
  }

  int64_t now = 1'000'000;
  FakeRemoteService service;
  std::unique_ptr<RemoteLog> log = service.connect();
  std::vector<std::string> said;
  std::shared_ptr<PauseWish> wish = make_wish();
};

}  // namespace

TEST_CASE("the newest wish is what the log holds, though requests and answers are lost") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    WishRun run(seed);
    run.service.set_faults({.lost = 0.4, .unanswered = 0.3, .repeated = 0.3});
    run.wish->put({1, "a"});
    run.run(static_cast<int64_t>(seed % 5));
    const int64_t until = seed % 2 == 0 ? 0 : 2;
    run.wish->put({until, "a"});
    run.run(200);
    run.service.set_faults({.repeated = 0.3});
    run.run(200);
    CHECK(run.pause() == PauseValue{until, "a", 2});
    CHECK(run.said.empty());
  }
}

TEST_CASE("a request that arrives after a later wish was answered replaces nothing") {
  for (const bool at_another_node : {false, true}) {
    WishRun run(7);
    run.service.set_faults({.lost = 1});
    run.wish->put({1, "a", 100});
    run.run(50);
    const std::shared_ptr<PauseWish> other = at_another_node ? run.make_wish() : run.wish;
    run.service.set_faults({.repeated = 1});
    other->put({0, "b", 101});
    run.run(400);
    CHECK(run.pause() == PauseValue{0, "b", 101});
  }
}

TEST_CASE("a wish that is older than what the log holds is given up, with a warning") {
  WishRun run(1);
  const std::shared_ptr<PauseWish> other = run.make_wish();
  other->put({5, "b", 200});
  run.run(50);
  run.wish->put({0, "a", 100});
  run.run(50);
  CHECK(run.pause() == PauseValue{5, "b", 200});
  REQUIRE(run.said.size() == 1);
  CHECK(run.said[0] == "the group was not resumed: what another node has asked for is newer");
}

TEST_CASE("a wish replaces what an older build has put") {
  WishRun run(1);
  bool done = false;
  run.log->set_pause("1 9700000000000 n2", [&done](const RemoteAnswer&) { done = true; });
  run.run(50);
  REQUIRE(done);
  CHECK(run.pause() == PauseValue{9'700'000'000'000, "n2"});
  run.wish->put({0, "a", 5});
  run.run(50);
  CHECK(run.pause() == PauseValue{0, "a", 5});
}

TEST_CASE("a wish that no answer confirms in time is given up, with a warning") {
  WishRun run(1);
  run.service.set_faults({.lost = 1});
  run.wish->put({1, "a"});
  run.run(PauseWish::kPatienceMs + 10);
  REQUIRE(run.said.size() == 1);
  CHECK(run.said[0].find("was perhaps not paused: ") != std::string::npos);
  // The next one is sent as the first one was.
  run.service.set_faults({});
  run.wish->put({2, "a"});
  run.run(100);
  CHECK(run.pause() == PauseValue{2, "a", 2});
}

// The probe that a silent primary causes may have read the key before the pause was put, and be
// answered after the event of that.
TEST_CASE("the late answer to an earlier read does not end a pause") {
  int64_t now = 1000;
  std::vector<std::string> said;
  GroupPause pause([&now] { return now; },
                   [&said](LogLevel, Bytes text) { said.emplace_back(text); });
  pause.begin("", 5);
  pause.on_value(encode_pause({31'000, "b", 3}), 8);
  pause.on_value("", 7);
  CHECK(pause.left_ms() == 30'000);
  CHECK(pause.number() == 3);
  pause.step(1);
  REQUIRE(said.size() == 1);
  CHECK(said[0].find("is paused at the node \"b\", for 30 s more") != std::string::npos);
  // An answer that shows the same, and one of the end.
  pause.on_value(encode_pause({31'000, "b", 3}), 9);
  CHECK(pause.left_ms() == 30'000);
  pause.on_value("", 10);
  CHECK(pause.left_ms() == 0);
  // etcd was restored from a copy: what it says now counts.
  pause.begin(encode_pause({2000, "a"}), 6);
  CHECK(pause.left_ms() == 1000);
  now = 2000;
  CHECK(pause.left_ms() == 0);
}

TEST_CASE("a pause that was put by a clock far ahead ends after a day") {
  GroupPause pause([] { return int64_t{1000}; }, {});
  constexpr int64_t kYearMs = 365 * GroupPause::kMostMs;
  pause.begin(encode_pause({kYearMs, "b", 1}), 5);
  pause.step(10);
  CHECK(pause.left_ms() == GroupPause::kMostMs);
  pause.step(10 + GroupPause::kMostMs - 1);
  CHECK(pause.left_ms() != 0);
  pause.step(10 + GroupPause::kMostMs);
  CHECK(pause.left_ms() == 0);
  // Another one counts anew.
  pause.on_value(encode_pause({kYearMs, "b", 2}), 6);
  CHECK(pause.left_ms() == GroupPause::kMostMs);
  pause.step(11 + GroupPause::kMostMs);
  CHECK(pause.left_ms() == GroupPause::kMostMs);
}
