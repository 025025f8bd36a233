// How long etcd is waited for, and which versions of it are good enough.
#include "storage/etcd/etcd_rules.h"

#include "tests/support/test.h"

namespace sluice {
namespace {

int64_t deadline_after(int64_t us, int times) {
  EtcdPace pace;
  for (int i = 0; i < times; ++i) pace.note_us(us);
  return pace.deadline_ms();
}

TEST_CASE("the deadline is four times the p99, within its limits") {
  CHECK(EtcdPace().deadline_ms() == EtcdPace::kMostMs);
  CHECK(deadline_after(1'000, 128) == EtcdPace::kLeastMs);
  CHECK(deadline_after(120'000, 128) == 480);
  CHECK(deadline_after(900'000, 128) == EtcdPace::kMostMs);
}

TEST_CASE("one slow answer of a hundred does not count, two do, and old ones are forgotten") {
  EtcdPace pace;
  for (int i = 0; i < 127; ++i) pace.note_us(1'000);
  pace.note_us(200'000);
  CHECK(pace.deadline_ms() == EtcdPace::kLeastMs);
  for (int i = 0; i < 126; ++i) pace.note_us(1'000);
  for (int i = 0; i < 2; ++i) pace.note_us(200'000);
  CHECK(pace.deadline_ms() == 800);
  for (int i = 0; i < 128; ++i) pace.note_us(1'000);
  CHECK(pace.deadline_ms() == EtcdPace::kLeastMs);
}

TEST_CASE(
    "tries that were given up make the deadline longer, slowly, and answers make it shorter") {
  EtcdPace pace;
  for (int i = 0; i < 128; ++i) pace.note_us(1'000);
  for (int i = 0; i < 16; ++i) pace.note_timeout();
  CHECK(pace.deadline_ms() == 400);
  for (int i = 0; i < 16; ++i) pace.note_timeout();
  CHECK(pace.deadline_ms() == 533);
  for (int i = 0; i < 160; ++i) pace.note_timeout();
  CHECK(pace.deadline_ms() == EtcdPace::kMostMs);
  for (int i = 0; i < 128; ++i) pace.note_us(1'000);
  CHECK(pace.deadline_ms() == EtcdPace::kLeastMs);
}

TEST_CASE("versions that may lose data, or are too old, are refused") {
  for (const char* version : {"3.5.0", "3.5.1", "3.5.2", "3.3.25", "2.3.8", "4.0.0"}) {
    INFO(version);
    CHECK(judge_etcd_version(version).refusal.find(version) != std::string::npos);
  }
}

TEST_CASE("versions with known bugs are warned of, good ones are not") {
  for (const char* version : {"3.4.23", "3.4.42", "3.5.3", "3.5.27", "3.6.0", "3.6.8", "head"}) {
    INFO(version);
    CHECK(judge_etcd_version(version).refusal.empty());
    CHECK_FALSE(judge_etcd_version(version).warning.empty());
  }
  for (const char* version : {"3.5.28", "3.6.9", "3.6.10", "3.7.0", "3.5.28-rc.0"}) {
    INFO(version);
    CHECK(judge_etcd_version(version).refusal.empty());
    CHECK(judge_etcd_version(version).warning.empty());
  }
}

TEST_CASE("versions that keep many changes in memory come with the flag that bounds them") {
  for (const char* version : {"3.4.23", "3.5.3", "3.5.28"}) {
    INFO(version);
    CHECK(judge_etcd_version(version).hint.find("--snapshot-count 1000") != std::string::npos);
  }
  for (const char* version : {"3.6.9", "3.7.0"}) CHECK(judge_etcd_version(version).hint.empty());
}

}  // namespace
}  // namespace sluice
