// The steps of a takeover of the replicated log, one by one; random histories are in
// tests/model/replicated_log_test.cc.
#include "storage/log_takeover.h"

#include "storage/format.h"
#include "tests/support/fake_remote_log.h"
#include "tests/support/storage_support.h"
#include "tests/support/test.h"

using namespace sluice;
using namespace sluice::test;

namespace {

EpochValue epoch_of(uint64_t number, bool ready = true) {
  return {"cluster", number, "n1", "r" + std::to_string(number), ready, "", 0};
}

struct Node {
  explicit Node(FakeRemoteService& of) : service(of), log(of.connect()) {}
  ~Node() { log->close(); }

  void begin(const std::string& seen, uint64_t number,
             const LogPosition& at = {"cluster", "1", 0, 0, 0, 0}, Lsn known = 0) {
    begin(seen, number, LogTail(at), known);
  }
  void begin(const std::string& seen, uint64_t number, LogTail tail, Lsn known = 0) {
    TakeoverOptions options{seen, epoch_of(number), std::move(tail), {}, {}, {}};
    options.on_commits = [this](std::vector<TailCommit> more) {
      for (TailCommit& commit : more) commits.push_back(std::move(commit));
    };
    options.on_end = [this](const TakeoverResult& end) {
      result = end;
      ++ends;
    };
    options.known_lsn = known;
    options.known_by = "n2";
    takeover = std::make_shared<LogTakeover>(*log, std::move(options));
    takeover->pump();
  }
  const TakeoverResult& finish() {
    for (int i = 0; i < 1000 && ends == 0; ++i) {
      service.settle();
      takeover->pump();
    }
    CHECK(ends == 1);
    return result;
  }

  FakeRemoteService& service;
  std::unique_ptr<RemoteLog> log;
  std::shared_ptr<LogTakeover> takeover;
  std::vector<TailCommit> commits;
  TakeoverResult result;
  int ends = 0;
};

// Puts a frame as epoch 1 would, and returns the chain after it.
uint32_t put_frame(FakeRemoteService& service, uint64_t seq, Lsn lsn, uint32_t chain,
                   bool last = true) {
  const std::string frame =
      encode_frame({last, 1, seq, lsn, lsn, chain}, unit_of(lsn, "unit " + std::to_string(lsn)));
  service.put_frame(seq, frame);
  return extend_chain(chain, frame);
}

}  // namespace

TEST_CASE("the first takeover makes the epoch") {
  FakeRemoteService service(1);
  Node node(service);
  node.begin("", 1);
  const TakeoverResult& result = node.finish();
  REQUIRE_MESSAGE(result.status.ok(), result.status.message());
  CHECK(service.state().epoch == encode_epoch(epoch_of(1)));
  CHECK(result.fence == service.state().epoch);
  CHECK(result.position == LogPosition{"cluster", "1", 1, 0, 0, 0});
  CHECK(!result.late);
  CHECK(result.found.epoch == encode_epoch(epoch_of(1, false)));
}

TEST_CASE("a takeover applies whole commits before the first hole, and removes what is behind") {
  FakeRemoteService service(1);
  service.put_epoch(encode_epoch(epoch_of(1)));
  uint32_t chain = 0;
  for (uint64_t seq = 1; seq <= 70; ++seq) chain = put_frame(service, seq, seq, chain);
  put_frame(service, 71, 71, chain, false);
  put_frame(service, 73, 72, chain);
  Node node(service);
  node.begin(encode_epoch(epoch_of(1)), 2);
  const TakeoverResult& result = node.finish();
  REQUIRE_MESSAGE(result.status.ok(), result.status.message());
  CHECK(node.commits.size() == 70);
  uint64_t bytes = 0;
  for (const auto& [seq, frame] : service.frames()) bytes += frame.size();
  CHECK(result.position == LogPosition{"cluster", "1", 2, 70, 70, chain, bytes});
  CHECK(service.frames().size() == 70);
  CHECK(result.found.last_seq == 73);
}

TEST_CASE("frames that a node has seen behind a hole are read again in a takeover") {
  FakeRemoteService service(1);
  service.put_epoch(encode_epoch(epoch_of(1)));
  uint32_t chain = 0;
  for (uint64_t seq = 1; seq <= 5; ++seq) chain = put_frame(service, seq, seq, chain);
  Node node(service);
  LogTail tail(LogPosition{"cluster", "1", 0, 0, 0, 0});
  for (const uint64_t seq : {1, 3, 4}) {
    REQUIRE(tail.add(seq, service.frames().at(seq), node.commits).ok());
  }
  node.begin(encode_epoch(epoch_of(1)), 2, std::move(tail));
  const TakeoverResult& result = node.finish();
  REQUIRE_MESSAGE(result.status.ok(), result.status.message());
  CHECK(node.commits.size() == 5);
  CHECK(service.frames().size() == 5);
}

// Epoch 1 with the frames 1 to 9, of which etcd has lost the fifth. Returns the epoch's value.
std::string put_frames_with_hole(FakeRemoteService& service) {
  std::string fence = encode_epoch(epoch_of(1));
  service.put_epoch(fence);
  uint32_t chain = 0;
  for (uint64_t seq = 1; seq <= 9; ++seq) chain = put_frame(service, seq, seq, chain);
  service.erase_frame(5);
  return fence;
}

TEST_CASE("a takeover that misses what was acknowledged removes nothing") {
  for (const uint64_t acknowledged : {4, 5}) {
    FakeRemoteService service(1);
    const std::string fence = put_frames_with_hole(service);
    Node node(service);
    node.log->beat(fence, encode_beat({1, 1, acknowledged, acknowledged, 0}),
                   [](const RemoteAnswer&) {});
    service.settle();
    node.begin(fence, 2);
    const Status status = node.finish().status;
    CHECK(status.ok() == (acknowledged == 4));
    CHECK(service.frames().size() == (acknowledged == 4 ? 4 : 8));
    if (acknowledged == 4) continue;
    CHECK(status.code() == StatusCode::kDamaged);
    CHECK(status.message().starts_with("frame 5 of the replicated log is missing, though frames"));
  }
}

TEST_CASE("a takeover that misses what another node has removes nothing") {
  for (const Lsn known : {4, 5}) {
    FakeRemoteService service(1);
    const std::string fence = put_frames_with_hole(service);
    Node node(service);
    node.begin(fence, 2, {"cluster", "1", 0, 0, 0, 0}, known);
    CHECK(node.finish().status.ok() == (known == 4));
    CHECK(service.frames().size() == (known == 4 ? 4 : 8));
    if (known == 4) continue;
    CHECK(node.result.status.message().find("the node \"n2\" has what comes up to lsn 5") !=
          std::string::npos);
  }
}

TEST_CASE("a takeover reads the next page only when there is room for it") {
  FakeRemoteService service(2);
  service.put_epoch(encode_epoch(epoch_of(1)));
  uint32_t chain = 0;
  for (uint64_t seq = 1; seq <= 100; ++seq) chain = put_frame(service, seq, seq, chain);
  Node node(service);
  node.begin(encode_epoch(epoch_of(1)), 2);
  service.settle();
  for (const size_t pages : {1, 2, 3}) {
    for (int i = 0; i < 3; ++i) {
      node.takeover->pump(false);
      service.settle();
    }
    CHECK(node.commits.size() == 32 * pages);
    CHECK(node.ends == 0);
    node.takeover->pump(true);
    service.settle();
  }
  CHECK(node.ends == 1);
  CHECK(node.commits.size() == 100);
}

TEST_CASE("of two processes one takes over, and the other says who did") {
  FakeRemoteService service(3);
  service.put_epoch(encode_epoch(epoch_of(1)));
  Node first(service);
  Node second(service);
  first.begin(encode_epoch(epoch_of(1)), 2);
  second.begin(encode_epoch(epoch_of(1)), 3);
  const bool first_won = first.finish().status.ok();
  CHECK(first_won != second.finish().status.ok());
  const Status& lost = first_won ? second.result.status : first.result.status;
  CHECK(lost.code() == StatusCode::kLocked);
  CHECK(lost.message().starts_with("another node has taken the replicated log: its epoch is \""));
}

TEST_CASE("a takeover whose answers get lost ends all the same, and says that it came late") {
  FakeFaults faults;
  faults.lost = 0.3;
  faults.unanswered = 0.4;
  faults.repeated = 0.3;
  faults.old_frames = 0.5;  // without the revision of TAKE the frames are read as of the look
  int late = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    FakeRemoteService service(seed, faults);
    service.put_epoch(encode_epoch(epoch_of(1)));
    put_frame(service, 1, 1, 0);
    put_frame(service, 3, 2, 0);
    Node node(service);
    node.begin(encode_epoch(epoch_of(1)), 2);
    const TakeoverResult& result = node.finish();
    REQUIRE_MESSAGE(result.status.ok(), result.status.message());
    CHECK(service.frames().size() == 1);
    CHECK(service.state().epoch == encode_epoch(epoch_of(2)));
    late += result.late ? 1 : 0;
  }
  CHECK(late > 0);
  CHECK(late < 50);
}

TEST_CASE("damage in the log ends a takeover, with its place; so does the end of the log") {
  FakeRemoteService service(1);
  service.put_epoch(encode_epoch(epoch_of(1)));
  put_frame(service, 1, 1, 99);
  {
    Node node(service);
    node.begin(encode_epoch(epoch_of(1)), 2);
    CHECK(node.finish().status.code() == StatusCode::kDamaged);
    CHECK(node.result.status.message().starts_with("frame 1 of the replicated log: epoch 1"));
  }
  Node node(service);
  node.begin(service.state().epoch, 3);
  node.log->close();
  CHECK(node.finish().status.code() == StatusCode::kCancelled);
}

TEST_CASE("a revision that is gone does not stop a takeover") {
  FakeRemoteService service(1);
  service.put_epoch(encode_epoch(epoch_of(1)));
  put_frame(service, 1, 1, 0);
  Node node(service);
  node.begin(encode_epoch(epoch_of(1)), 2);
  service.step();  // TAKE is carried out
  service.put_frame(5, "foreign");
  service.compact();
  const TakeoverResult& result = node.finish();
  REQUIRE_MESSAGE(result.status.ok(), result.status.message());
  CHECK(result.position.seq == 1);
  CHECK(service.frames().size() == 1);
}

// Otherwise the frames behind a trim mark look like those behind a hole.
TEST_CASE("a takeover removes nothing if the log does not go on where the process has stopped") {
  const auto take_from = [](uint64_t seq, bool right, size_t& left, size_t& applied) {
    FakeRemoteService service(1);
    service.put_epoch(encode_epoch(epoch_of(1)));
    std::vector<uint32_t> chains = {0};
    for (uint64_t each = 1; each <= 5; ++each) {
      chains.push_back(put_frame(service, each, each, chains.back()));
    }
    Node node(service);
    const LogPosition mark = {"cluster", "1", 1, 3, 3, chains[3]};
    node.log->trim(encode_epoch(epoch_of(1)), 4, "", encode_position(mark), [](const auto&) {});
    service.settle();
    REQUIRE(service.frames().size() == 2);
    chains.resize(20);
    node.begin(encode_epoch(epoch_of(1)), 2,
               {"cluster", "1", 1, seq, seq, chains[seq] + (right ? 0 : 1)});
    const Status status = node.finish().status;
    left = service.frames().size();
    applied = node.commits.size();
    return status;
  };
  size_t left = 0;
  size_t applied = 0;
  for (const uint64_t seq : {3, 4, 5}) {
    CHECK(take_from(seq, true, left, applied).ok());
    CHECK(applied == 5 - seq);
    CHECK(take_from(seq, false, left, applied).code() == StatusCode::kInvalid);
    CHECK(left == 2);
  }
  for (const uint64_t seq : {0, 2, 9}) {
    // Behind the trim mark a copy helps; a log that ends earlier is another one.
    const StatusCode expected = seq == 9 ? StatusCode::kInvalid : StatusCode::kStale;
    CHECK(take_from(seq, true, left, applied).code() == expected);
    CHECK(left == 2);
    CHECK(applied == 0);
  }
}
