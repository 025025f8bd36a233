// A node reads the replicated log while it is trimmed.
#include "net/group/group_feed.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/crc32c.h"
#include "storage/format.h"
#include "storage/log_frame.h"
#include "tests/support/fake_remote_log.h"
#include "tests/support/storage_support.h"
#include "tests/support/test.h"

using namespace sluice;
using namespace sluice::test;

namespace {

const EpochValue kEpoch{"cluster", 1, "n1", "r1", true, "", 0};

// A log of some frames, and a node that follows it.
struct Feeding {
  explicit Feeding(uint64_t count = 10) : log(service.connect()) {
    service.put_epoch(encode_epoch(kEpoch));
    LogPosition place{"cluster", "1", 1, 0, 0, 0, 0};
    places.push_back(place);
    for (uint64_t seq = 1; seq <= count; ++seq) {
      const std::string frame = encode_frame({true, 1, seq, seq, seq, place.chain},
                                             unit_of(seq, "unit " + std::to_string(seq)));
      service.put_frame(seq, frame);
      place.seq = place.lsn = seq;
      place.chain = extend_chain(place.chain, frame);
      place.bytes += frame.size();
      places.push_back(place);
    }
  }
  ~Feeding() { log->close(); }

  std::string mark(uint64_t seq) const { return encode_position(places[seq]); }
  // As the primary: up to this frame.
  void trim(uint64_t seq, const std::string& old = "") {
    log->trim(encode_epoch(kEpoch), seq + 1, old, mark(seq), [](const RemoteAnswer&) {});
    service.settle();
  }
  void run(int steps = 10) {
    for (int i = 0; i < steps; ++i) {
      feed.step(now += GroupFeed::kGapMs);
      service.settle();
      inbox.run();
    }
  }

  FakeRemoteService service{1};
  std::unique_ptr<RemoteLog> log;
  std::vector<LogPosition> places;
  GroupInbox inbox;
  std::vector<Lsn> applied;
  std::optional<StatusCode> broken;
  int64_t now = 1000;
  GroupFeed feed{*log,
                 inbox,
                 GroupFeed::kMaxPendingBytes,
                 {[this](const std::vector<TailCommit>& commits) {
                    for (const TailCommit& commit : commits) applied.push_back(commit.first_lsn);
                  },
                  [this](const Status& status) { broken = status.code(); }}};
};

}  // namespace

TEST_CASE("what is trimmed between the look at the mark and at the frames is no old backup") {
  for (const uint64_t begin : {0, 4, 6, 8}) {
    Feeding node;
    node.feed.start(node.places[begin], "");
    node.trim(6);
    node.run();
    // One without data may have waited for the first frames: it is told that they are gone.
    if (begin == 0) node.feed.on_trim(node.mark(6), 6);
    node.run();
    if (begin < 6) {
      REQUIRE(node.broken.has_value());
      CHECK(*node.broken == StatusCode::kStale);
      CHECK(node.applied.empty());
    } else {
      CHECK(!node.broken.has_value());
      CHECK(node.feed.position() == node.places[10]);
      CHECK(node.applied.size() == 10 - begin);
      CHECK(node.feed.has_read());
    }
  }
}

TEST_CASE("a log that does not hold what was followed, and was not trimmed, is an old backup") {
  Feeding node;
  LogPosition other = node.places[4];
  ++other.chain;
  node.feed.start(other, "");
  node.run();
  REQUIRE(node.broken.has_value());
  CHECK(*node.broken == StatusCode::kInvalid);
}

TEST_CASE("one look at an old state of the log, of frames and mark, is no old backup") {
  for (const bool again : {false, true}) {
    Feeding node;
    const int64_t before_the_frames = 2;
    node.service.read_old(before_the_frames, again ? 4 : 2);
    node.feed.start(node.places[4], "");
    const int64_t begun = node.now;
    while (node.now - begun < Doubt::kAgainMs) {
      CHECK(!node.broken.has_value());
      node.run(1);
    }
    node.run(4);
    CHECK(node.broken.has_value() == again);
    CHECK(node.applied.size() == (again ? 0 : 6));
  }
}

TEST_CASE("a node past which the log was trimmed while it was cut off does not wait for ever") {
  Feeding node;
  for (uint64_t seq = 5; seq <= 10; ++seq) node.service.erase_frame(seq);
  node.feed.start(node.places[0], "");
  node.run();
  REQUIRE(node.feed.position() == node.places[4]);
  // It is told of a mark that it has passed, then of one that it has not.
  node.trim(4);
  node.feed.on_trim(node.mark(4), 4);
  node.run();
  CHECK(!node.broken.has_value());
  CHECK(node.applied.size() == 4);
  node.trim(8, node.mark(4));
  node.feed.on_trim(node.mark(8), 8);
  node.run();
  REQUIRE(node.broken.has_value());
  CHECK(*node.broken == StatusCode::kStale);
}

// More than a page of frames that a primary had in flight as everything was killed.
TEST_CASE("a node has read a log in which many frames lie behind a hole") {
  Feeding node(60);
  node.service.erase_frame(5);
  node.feed.start(node.places[0], "");
  node.run();
  CHECK(node.applied == std::vector<Lsn>{1, 2, 3, 4});
  CHECK(node.feed.has_read());
  CHECK(!node.broken.has_value());
}

TEST_CASE("a read that was not answered is repeated") {
  Feeding node;
  node.service.set_faults({.lost = 1});
  node.feed.start(node.places[0], "");
  node.run();
  CHECK(node.applied.empty());
  node.service.set_faults({});
  node.run();
  CHECK(node.applied.size() == 10);
  CHECK(node.feed.has_read());
}

TEST_CASE("a frame that is damaged at two reads ends what follows; at one, it is read again") {
  for (const bool for_good : {true, false}) {
    Feeding node;
    const std::string whole = node.service.frames().at(6);
    std::string damaged = whole;
    damaged.back() = static_cast<char>(damaged.back() ^ 1);
    node.service.put_frame(6, damaged);
    node.feed.start(node.places[0], "");
    node.run(1);
    CHECK(node.applied == std::vector<Lsn>{1, 2, 3, 4, 5});
    CHECK(!node.broken.has_value());
    if (!for_good) node.service.put_frame(6, whole);
    node.run();
    CHECK(node.broken.has_value() == for_good);
    if (for_good) CHECK(*node.broken == StatusCode::kDamaged);
    CHECK(node.applied.size() == (for_good ? 5 : 10));
  }
}

TEST_CASE("a page that comes after the feed was stopped, or started again, counts no more") {
  for (const bool again : {false, true}) {
    Feeding node;
    node.feed.start(node.places[0], "");
    node.feed.step(node.now);
    node.feed.stop();
    // A takeover has read all of it meanwhile.
    if (again) node.feed.start(node.places[10], "");
    node.run();
    CHECK(node.applied.empty());
    CHECK(!node.broken.has_value());
    CHECK(node.feed.position() == node.places[again ? 10 : 0]);
  }
}
