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

  int64_t now = 1'000'000;
  FakeRemoteService service;
  std::unique_ptr<RemoteLog> log = service.connect();
  std::vector<std::string> said;
  std::shared_ptr<PauseWish> wish = std::make_shared<PauseWish>(
      *log, [this] { return now; }, [this](LogLevel, Bytes text) { said.emplace_back(text); });
};

}  // namespace

TEST_CASE("the newest wish is what the log holds, though requests and answers are lost") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    WishRun run(seed);
    run.service.set_faults({.lost = 0.4, .unanswered = 0.3});
    run.wish->put("1 a");
    run.run(static_cast<int64_t>(seed % 5));
    run.wish->put(seed % 2 == 0 ? "" : "2 a");
    run.run(200);
    run.service.set_faults({});
    run.run(200);
    CHECK(run.service.state().pause == (seed % 2 == 0 ? "" : "2 a"));
    CHECK(run.said.empty());
  }
}

TEST_CASE("a wish that no answer confirms in time is given up, with a warning") {
  WishRun run(1);
  run.service.set_faults({.lost = 1});
  run.wish->put("1 a");
  run.run(PauseWish::kPatienceMs + 10);
  REQUIRE(run.said.size() == 1);
  CHECK(run.said[0].find("was perhaps not paused: ") != std::string::npos);
  // The next one is sent as the first one was.
  run.service.set_faults({});
  run.wish->put("2 a");
  run.run(100);
  CHECK(run.service.state().pause == "2 a");
}

// The probe that a silent primary causes may have read the key before the pause was put, and be
// answered after the event of that.
TEST_CASE("the late answer to an earlier read does not end a pause") {
  int64_t now = 1000;
  std::vector<std::string> said;
  GroupPause pause([&now] { return now; },
                   [&said](LogLevel, Bytes text) { said.emplace_back(text); });
  pause.begin("", 5);
  pause.on_value(encode_pause({31'000, "b"}), 8);
  pause.on_value("", 7);
  CHECK(pause.left_ms() == 30'000);
  pause.step(1);
  REQUIRE(said.size() == 1);
  CHECK(said[0].find("is paused at the node \"b\", for 30 s more") != std::string::npos);
  // An answer that shows the same, and one of the end.
  pause.on_value(encode_pause({31'000, "b"}), 9);
  CHECK(pause.left_ms() == 30'000);
  pause.on_value("", 10);
  CHECK(pause.left_ms() == 0);
  // etcd was restored from a copy: what it says now counts.
  pause.begin(encode_pause({2000, "a"}), 6);
  CHECK(pause.left_ms() == 1000);
  now = 2000;
  CHECK(pause.left_ms() == 0);
}
