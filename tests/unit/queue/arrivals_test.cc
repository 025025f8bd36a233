// Arrivals against a map of the numbers, and when it gives up.
#include "engine/queue/arrivals.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <vector>

#include "tests/support/seeds.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

// Arrivals, and a map of the same jobs, which it owns.
class Pair {
 public:
  ~Pair() {
    for (const auto& [seq, job] : jobs_) Job::destroy(job);
  }

  size_t size() const { return jobs_.size(); }
  const Arrivals& arrivals() const { return arrivals_; }

  void add(uint64_t seq) {
    Job* job = Job::make("id", "");
    job->seq = seq;
    arrivals_.add(job);
    jobs_.emplace(seq, job);
  }
  void remove_at(size_t index) {
    const auto at = std::next(jobs_.begin(), static_cast<std::ptrdiff_t>(index));
    arrivals_.remove(at->second);
    Job::destroy(at->second);
    jobs_.erase(at);
  }
  void change_at(size_t index, uint64_t seq) {
    const auto at = std::next(jobs_.begin(), static_cast<std::ptrdiff_t>(index));
    Job* job = at->second;
    arrivals_.remove(job);
    jobs_.erase(at);
    job->seq = seq;
    arrivals_.add(job);
    jobs_.emplace(seq, job);
  }

  bool is_same() const {
    std::vector<Job*> expected;
    for (const auto& [seq, job] : jobs_) expected.push_back(job);
    std::vector<Job*> found;
    for (Job* job : arrivals_.table()) {
      if (job != nullptr) found.push_back(job);
    }
    return found == expected;
  }

 private:
  Arrivals arrivals_;
  std::map<uint64_t, Job*> jobs_;
};

}  // namespace

TEST_CASE("arrivals that are known are those that are there, in order") {
  const std::vector<uint64_t> seeds = testing::seeds(300, 11);
  size_t known = 0;
  for (const uint64_t seed : seeds) {
    testing::use_seed(seed);
    std::mt19937_64 random(seed);
    Pair pair;
    uint64_t next = random() % 1000;
    const uint64_t adds = 1 + random() % 4;
    for (int i = 0; i < 3000 && pair.arrivals().known(); ++i) {
      if (random() % 4 < adds || pair.size() == 0) {
        next += random() % 64 == 0 ? 1 + random() % 100 : 1;
        pair.add(next);
      } else if (random() % 8 != 0) {
        pair.remove_at(random() % std::min<size_t>(pair.size(), 8));
      } else {
        pair.change_at(random() % pair.size(), ++next);
      }
      if (i % 100 == 0 && pair.arrivals().known()) REQUIRE(pair.is_same());
    }
    if (!pair.arrivals().known()) continue;
    ++known;
    CHECK(pair.is_same());
  }
  CHECK(known * 2 >= seeds.size());
}

TEST_CASE("arrivals at the end and departures in front stay known, and take no more room") {
  Pair pair;
  for (uint64_t seq = 1; seq <= 1000; ++seq) pair.add(seq);
  for (uint64_t seq = 1001; seq <= 100'000; ++seq) {
    pair.add(seq);
    pair.remove_at(0);
  }
  REQUIRE(pair.arrivals().known());
  CHECK(pair.is_same());
  CHECK(pair.arrivals().table().size() <= 8 * 1024);
  // A queue that has been empty starts again.
  while (pair.size() != 0) pair.remove_at(0);
  pair.add(1'000'000'000);
  REQUIRE(pair.arrivals().known());
  CHECK(pair.is_same());
}

TEST_CASE("arrivals give up where a table makes no sense") {
  Pair backwards;
  backwards.add(10);
  backwards.add(9);
  CHECK_FALSE(backwards.arrivals().known());
  CHECK(backwards.arrivals().table().empty());
  backwards.remove_at(0);
  backwards.add(11);
  CHECK_FALSE(backwards.arrivals().known());

  Pair sparse;
  for (uint64_t i = 0; i < 1000 && sparse.arrivals().known(); ++i) sparse.add(1 + i * 100);
  CHECK_FALSE(sparse.arrivals().known());
}

}  // namespace sluice::test
