// When a node of a group may answer for its data, and what it says otherwise.
#include "net/group/serving_gate.h"

#include "tests/support/test.h"

namespace sluice {
namespace {

constexpr int64_t kTimeoutMs = 1000;
constexpr int64_t kPatienceMs = 5000;

TEST_CASE("a standby answers whatever it has, unless old data are to be refused") {
  ServingGate gate(kTimeoutMs, kPatienceMs);
  gate.heard(1000);
  CHECK(gate.is_open(1'000'000));
  gate.refuse_old_data(true);
  CHECK(gate.is_open(1000 + kTrustedViewMs));
  CHECK_FALSE(gate.is_open(1001 + kTrustedViewMs));
  CHECK_EQ(gate.left_ms(1001 + kTrustedViewMs), 0);
  CHECK(gate.error().starts_with("MASTERDOWN "));
  gate.heard(4000);
  CHECK(gate.is_open(4001));
}

TEST_CASE("a primary answers while its lease lasts; then requests wait, and are refused") {
  ServingGate gate(kTimeoutMs, kPatienceMs);
  gate.begin_leading();
  gate.refuse_old_data(true);  // only of standbys
  gate.lease().extend(10'000);
  CHECK(gate.is_open(10'899));
  CHECK_FALSE(gate.is_open(10'900));
  CHECK(gate.error().starts_with("NOREPLICAS "));
  CHECK_EQ(gate.left_ms(11'000), kPatienceMs);
  CHECK_FALSE(gate.end_wait());  // nothing is held yet
  gate.begin_wait(11'000);
  gate.begin_wait(12'000);  // by another thread
  CHECK_EQ(gate.left_ms(15'999), 1);
  CHECK_EQ(gate.left_ms(16'000), 0);
  gate.lease().extend(16'000);
  CHECK(gate.is_open(16'001));
  CHECK(gate.end_wait());
  CHECK_FALSE(gate.end_wait());
}

}  // namespace
}  // namespace sluice
