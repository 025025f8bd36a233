// What LATENCY and SLOWLOG keep of what was slow: the longest, and no more than there is room for.
#include <string>
#include <vector>

#include "engine/clients/latency_monitor.h"
#include "engine/clients/slow_log.h"
#include "tests/support/test.h"

namespace sluice::test {

TEST_CASE("LATENCY knows the longest of all, and the longest of each second") {
  LatencyMonitor monitor;
  for (const int64_t latency_ms : {7, 30, 20}) monitor.add("command", {100, 10, latency_ms});
  monitor.add("command", {101, 11, 5});
  const auto event = monitor.find("command");
  REQUIRE(event.has_value());
  CHECK(event->longest_ms == 30);
  REQUIRE(event->samples.size() == 2);
  CHECK(event->samples[0].latency_ms == 30);
  CHECK(event->samples[1].latency_ms == 5);
}

TEST_CASE("LATENCY keeps of each event the newest samples only") {
  LatencyMonitor monitor;
  constexpr int64_t kSeconds = 1000;
  constexpr auto kKept = static_cast<int64_t>(LatencyMonitor::kMostSamples);
  for (int64_t second = 1; second <= kSeconds; ++second) {
    monitor.add("command", {second, second, 7});
  }
  const auto event = monitor.find("command");
  REQUIRE(event.has_value());
  REQUIRE(event->samples.size() == LatencyMonitor::kMostSamples);
  CHECK(event->samples.front().unix_s == kSeconds - kKept + 1);
  CHECK(event->samples.back().unix_s == kSeconds);
}

TEST_CASE("SLOWLOG keeps of many arguments the first ones, and how many more there were") {
  SlowLog log;
  for (const size_t count : {32, 33, 1000}) {
    CAPTURE(count);
    log.add(std::vector<Bytes>(count, Bytes("word")), 1'700'000'000'000, 20, 7, "127.0.0.1:5", "",
            128);
    const std::vector<SlowEntry> newest = log.newest(1);
    REQUIRE(newest.size() == 1);
    const std::vector<std::string>& kept = newest[0].arguments;
    REQUIRE(kept.size() == 32);
    CHECK(kept[30] == "word");
    const std::string more = "... (" + std::to_string(count - 31) + " more arguments)";
    CHECK(kept[31] == (count == 32 ? "word" : more));
  }
}

}  // namespace sluice::test
