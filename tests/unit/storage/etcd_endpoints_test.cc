// Which endpoints of etcd are used: at first all must fit together, later odd ones are left out.
#include "storage/etcd/etcd_endpoints.h"

#include "tests/support/test.h"

namespace sluice {
namespace {

using Told = EtcdEndpoints::Told;

constexpr uint64_t kOurs = 7;
constexpr uint64_t kOther = 8;
const std::string kGood = "3.6.9";
const std::string kBad = "3.5.1";

Told member(uint64_t term = 1, bool leads = false, const std::string& version = kGood) {
  return {kOurs, term, leads, version};
}
Told stranger(uint64_t term = 9) { return {kOther, term, true, kGood}; }

using Round = std::vector<std::optional<Told>>;

// Whether a new leader was found.
bool play(EtcdEndpoints& endpoints, const Round& round) {
  bool is_new = false;
  endpoints.begin_round();
  for (size_t i = 0; i < round.size(); ++i) is_new |= endpoints.on_status(i, round[i]);
  endpoints.end_round();
  return is_new;
}

// As often as silent ones are waited for.
void play_all(EtcdEndpoints& endpoints, const Round& round) {
  for (int i = 0; i < EtcdEndpoints::kFirstRounds; ++i) play(endpoints, round);
}

EtcdEndpoints three() { return EtcdEndpoints({"a", "b", "c"}); }

EtcdEndpoints found() {
  EtcdEndpoints endpoints = three();
  play(endpoints, {member(), member(1, true), member()});
  return endpoints;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("requests go to the leader, and elsewhere after a failure") {
  EtcdEndpoints endpoints = three();
  CHECK(!play(endpoints, {member(), member(1, true), member()}));
  CHECK(endpoints.leader_found());
  CHECK(endpoints.current() == 1);
  endpoints.on_failure(0);
  CHECK(endpoints.current() == 1);
  endpoints.on_failure(1);
  CHECK(endpoints.current() == 2);
  CHECK(!play(endpoints, {member(2), std::nullopt, member(2)}));
  CHECK(!endpoints.leader_found());
  // One that was cut off believes to lead.
  CHECK(play(endpoints, {member(3, true), member(1, true), member(3)}));
  CHECK(endpoints.current() == 0);
}

TEST_CASE("at first an endpoint of another cluster, or of a bad version, keeps from all") {
  EtcdEndpoints mixed = three();
  play(mixed, {member(1, true), std::nullopt, stranger()});
  CHECK(has(mixed.refusal(), "a and c are members of different etcd clusters"));
  CHECK(has(mixed.fault_of(0), "different etcd clusters"));
  CHECK(mixed.accepts(kOurs));
  CHECK(mixed.accepts(kOther));
  CHECK(mixed.has_settled());
  // Until one of them is silent.
  for (int i = 1; i < EtcdEndpoints::kFirstRounds; ++i) {
    play(mixed, {member(1, true), std::nullopt, std::nullopt});
    CHECK(mixed.refusal().empty());
    CHECK(!mixed.has_settled());
    CHECK(mixed.accepts(kOther));
  }
  play(mixed, {member(1, true), std::nullopt, std::nullopt});
  CHECK(mixed.has_settled());
  CHECK(!mixed.accepts(kOther));

  EtcdEndpoints bad = three();
  play(bad, {member(1, true), member(), member(1, false, kBad)});
  CHECK(has(bad.refusal(), "etcd at c: version 3.5.1 may lose data"));
  play(bad, {member(1, true), member(), std::nullopt});
  CHECK(has(bad.refusal(), "3.5.1"));
  play(bad, {member(1, true), member(), member()});
  CHECK(bad.refusal().empty());
}

TEST_CASE("without a leader no cluster is found") {
  EtcdEndpoints endpoints = three();
  play_all(endpoints, {member(), member(), std::nullopt});
  CHECK(endpoints.refusal().empty());
  CHECK(!endpoints.has_settled());
  play(endpoints, {member(), member(), stranger()});
  CHECK(has(endpoints.refusal(), "different etcd clusters"));
}

TEST_CASE("later an endpoint of another cluster is left out, also while it is silent") {
  for (const size_t odd : {size_t{1}, size_t{2}}) {  // the leader, and another one
    EtcdEndpoints endpoints = found();
    Round round = {member(2, true), member(2), member(2)};
    round[odd] = stranger();
    play(endpoints, round);
    CHECK(endpoints.refusal().empty());
    CHECK(endpoints.current() == 0);
    CHECK(has(endpoints.fault_of(odd), "member of another etcd cluster"));
    CHECK(endpoints.fault_of(0).empty());
    CHECK(!endpoints.accepts(kOther));
    CHECK(endpoints.accepts(kOurs));
    round[odd].reset();
    play(endpoints, round);
    for (int i = 0; i < 3; ++i) {
      endpoints.on_failure(endpoints.current());
      CHECK(endpoints.current() != odd);
    }
    // It has joined the others again.
    round[odd] = member(2);
    play(endpoints, round);
    CHECK(endpoints.fault_of(odd).empty());
    endpoints.on_failure(0);
    if (odd == 1) CHECK(endpoints.current() == 1);
  }
}

TEST_CASE("later an endpoint that has not said of which cluster it is is left out") {
  EtcdEndpoints endpoints = three();
  play_all(endpoints, {member(1, true), std::nullopt, member()});
  endpoints.on_failure(0);
  CHECK(endpoints.current() == 2);
  endpoints.on_failure(2);
  CHECK(endpoints.current() == 0);
}

TEST_CASE("later an endpoint of a bad version is left out, unless it leads") {
  EtcdEndpoints endpoints = found();
  play(endpoints, {member(1, false, kBad), member(1, true), member()});
  CHECK(endpoints.refusal().empty());
  CHECK(has(endpoints.fault_of(0), "may lose data (3.5.0 to 3.5.2)"));
  CHECK(has(endpoints.fault_of(0), "It is left out"));
  endpoints.on_failure(1);
  endpoints.on_failure(2);
  CHECK(endpoints.current() == 1);
  play(endpoints, {member(2, true, kBad), member(2), member(2)});
  CHECK(has(endpoints.refusal(), "etcd at a: version 3.5.1 may lose data"));
  CHECK(!has(endpoints.fault_of(0), "left out"));
  play(endpoints, {member(3, false, kBad), member(3), member(3, true)});
  CHECK(endpoints.refusal().empty());
  CHECK(endpoints.current() == 2);
}

TEST_CASE("that no endpoint is left keeps from all") {
  EtcdEndpoints endpoints = found();
  play(endpoints, {stranger(), stranger(), stranger()});
  CHECK(has(endpoints.refusal(), "etcd at a: it is a member of another etcd cluster"));
  play(endpoints, {stranger(), member(1, true), stranger()});
  CHECK(endpoints.refusal().empty());
  CHECK(endpoints.current() == 1);
}

}  // namespace
}  // namespace sluice
