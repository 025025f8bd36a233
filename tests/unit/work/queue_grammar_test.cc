// Histories of queues from random bytes (tests/support/queue_grammar.h), as fuzzing tries them.
#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include "tests/support/queue_grammar.h"
#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

constexpr size_t kSeeds = 300;

}  // namespace

TEST_CASE("random commands of queues leave what journal and checkpoint give back") {
  std::map<std::string, int> accepted;
  const std::vector<uint64_t> seeds = testing::seeds(kSeeds, 7);
  for (const uint64_t seed : seeds) {
    testing::use_seed(seed);
    INFO("SLUICE_SEED=" << seed);
    std::mt19937_64 random(seed);
    std::string bytes(600 + random() % 1200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    QueueTrial trial(bytes);
    REQUIRE_NOTHROW(trial.run());
    for (const auto& [command, count] : trial.accepted()) accepted[command] += count;
  }
  if (std::getenv("SLUICE_SEED") != nullptr) return;
  for (const QueueForm& form : kQueueForms) {
    const std::string command(form.head.substr(0, form.head.find(' ')));
    CAPTURE(command);
    CHECK(accepted[command] > static_cast<int>(seeds.size() / 15));
    if (seeds.size() < kSeeds) continue;  // too few for every option
    for (const std::string_view option : form.options) {
      CAPTURE(option);
      CHECK(accepted[command + " " + std::string(option)] > 0);
    }
  }
}

}  // namespace sluice::test
