// The follower's side of the replicated log: frames in any order become whole commits, and what
// does not follow is refused in words.
#include "storage/log_tail.h"

#include <algorithm>
#include <random>

#include "storage/format.h"
#include "tests/support/test.h"

using namespace sluice;

namespace {

struct Made {
  uint64_t seq;
  std::string bytes;
};

// Writes frames as a primary does.
class Writer {
 public:
  explicit Writer(LogPosition at) : at_(std::move(at)) {}

  // A commit of `units`, in `frames` frames.
  std::vector<Made> commit(Lsn units, size_t frames = 1, bool finished = true) {
    std::string bytes;
    for (Lsn n = 0; n < units; ++n) {
      const std::string records = "e" + std::to_string(at_.epoch) + " " + std::to_string(n);
      std::string header(kUnitHeaderBytes, '\0');
      encode_unit_header(header.data(), crc32c(records), static_cast<uint32_t>(records.size()),
                         at_.lsn + 1 + n, 1, 1, 0);
      bytes += header + records;
    }
    std::vector<Made> made;
    const size_t share = bytes.size() / frames + 1;
    for (size_t i = 0; i < frames; ++i) {
      FrameHeader header{i + 1 == frames, at_.epoch,       at_.seq + 1,
                         at_.lsn + 1,     at_.lsn + units, at_.chain};
      if (!finished && header.last_of_commit) break;
      made.push_back({header.seq, encode_frame(header, Bytes(bytes).substr(i * share, share))});
      at_.seq = header.seq;
      at_.chain = extend_chain(at_.chain, made.back().bytes);
      at_.bytes += made.back().bytes.size();
    }
    at_.lsn += units;
    return made;
  }
  LogPosition& at() { return at_; }

 private:
  LogPosition at_;
};

LogPosition beginning(uint64_t epoch = 1) { return {"c", "g", epoch, 0, 0, 0}; }

struct Reader {
  LogTail tail{beginning()};
  std::vector<TailCommit> commits;
  Status add(const Made& made) { return tail.add(made.seq, made.bytes, commits); }
  bool add_all(const std::vector<Made>& all) {
    return std::all_of(all.begin(), all.end(), [&](const Made& made) { return add(made).ok(); });
  }
};

}  // namespace

TEST_CASE("commits come whole, each with the position behind it") {
  Writer writer(beginning());
  Reader reader;
  REQUIRE(reader.add_all(writer.commit(3)));
  REQUIRE(reader.commits.size() == 1);
  CHECK(reader.commits[0].first_lsn == 1);
  CHECK(reader.commits[0].position == writer.at());
  CHECK(reader.tail.position() == writer.at());
  const std::vector<Made> large = writer.commit(5, 3);
  REQUIRE(reader.add(large[0]).ok());
  REQUIRE(reader.add(large[1]).ok());
  CHECK(reader.commits.size() == 1);
  CHECK(reader.tail.next_seq() == 4);
  CHECK(reader.tail.position().lsn == 3);
  REQUIRE(reader.add(large[2]).ok());
  REQUIRE(reader.commits.size() == 2);
  CHECK(reader.commits[1].first_lsn == 4);
  CHECK(reader.commits[1].position == writer.at());
  UnitCursor cursor(reader.commits[1].units);
  Lsn units = 0;
  while (cursor.next()) ++units;
  CHECK(cursor.damage() == UnitDamage::kNone);
  CHECK(units == 5);
}

TEST_CASE("frames may come in any order and twice") {
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    Writer writer(beginning());
    std::vector<Made> all;
    for (int i = 0; i < 20; ++i) {
      for (Made& made : writer.commit(1 + random() % 3, 1 + random() % 3)) {
        if (random() % 4 == 0) all.push_back(made);
        all.push_back(std::move(made));
      }
    }
    REQUIRE(all.size() <= 2 * LogTail::kMaxEarly);
    std::shuffle(all.begin(), all.end(), random);
    Reader reader;
    // Those that found no room come again.
    while (reader.tail.position() != writer.at()) REQUIRE(reader.add_all(all));
    REQUIRE(reader.commits.size() == 20);
    for (size_t i = 1; i < 20; ++i) {
      CHECK(reader.commits[i].first_lsn == reader.commits[i - 1].position.lsn + 1);
    }
    CHECK(!reader.tail.has_gap());
  }
}

TEST_CASE("a limited number of early frames is held, the nearest ones") {
  Writer writer(beginning());
  std::vector<Made> all;
  for (size_t i = 0; i < LogTail::kMaxEarly + 10; ++i) all.push_back(writer.commit(1)[0]);
  Reader reader;
  for (size_t i = all.size() - 1; i > 0; --i) REQUIRE(reader.add(all[i]).ok());
  CHECK(reader.tail.has_gap());
  CHECK(reader.tail.next_seq() == 1);
  REQUIRE(reader.add(all[0]).ok());
  CHECK(reader.tail.next_seq() == LogTail::kMaxEarly + 2);
  CHECK(!reader.tail.has_gap());
}

TEST_CASE("frames of an older epoch that were removed from the log do not count") {
  Writer old(beginning());
  Reader reader;
  REQUIRE(reader.add_all(old.commit(1)));
  Writer next = old;
  next.at().epoch = 2;
  const std::vector<Made> unfinished = old.commit(2, 3, false);
  old.at().seq += 1;
  const std::vector<Made> behind_hole = old.commit(1);
  const std::vector<Made> good = next.commit(4, 2);
  const std::vector<Made> more = next.commit(1);
  SUBCASE("the old ones first") {
    REQUIRE(reader.add_all(unfinished));
    REQUIRE(reader.add_all(behind_hole));
    REQUIRE(reader.add_all(good));
  }
  SUBCASE("the new ones in disorder") {
    REQUIRE(reader.add(unfinished[0]).ok());
    REQUIRE(reader.add(good[1]).ok());
    CHECK(reader.commits.size() == 1);
    REQUIRE(reader.add(good[0]).ok());
  }
  SUBCASE("the old ones at last") {
    REQUIRE(reader.add_all(good));
    REQUIRE(reader.add_all(unfinished));
    REQUIRE(reader.add_all(behind_hole));
  }
  REQUIRE(reader.add_all(more));
  REQUIRE(reader.commits.size() == 3);
  CHECK(reader.tail.position() == next.at());
}

TEST_CASE("nobody completes an unfinished commit of an epoch that is over") {
  Writer writer(beginning());
  Reader reader;
  REQUIRE(reader.add_all(writer.commit(2, 3, false)));
  CHECK(reader.tail.next_seq() == 3);
  reader.tail.drop_unfinished();
  CHECK(reader.tail.next_seq() == 1);
  CHECK(reader.tail.position() == beginning());
}

TEST_CASE("what does not follow is refused, names its place, and can be read again") {
  Writer writer(beginning());
  Reader reader;
  REQUIRE(reader.add_all(writer.commit(1)));
  const auto refused = [&](const Made& made) {
    const Status status = reader.add(made);
    CHECK(!status.ok());
    CHECK(reader.commits.size() == 1);
    return status.message();
  };
  Writer other = writer;
  other.at().chain ^= 1;
  CHECK(refused(other.commit(1)[0]).starts_with("frame 2 of the replicated log: epoch 1, chain "));
  other = writer;
  other.at().lsn += 1;
  CHECK(refused(other.commit(1)[0]) == "frame 2 of the replicated log: lsns 3 to 3 after lsn 1");
  Made flipped = Writer(writer).commit(1)[0];
  flipped.bytes.back() = static_cast<char>(flipped.bytes.back() ^ 1);
  CHECK(refused(flipped) == "frame 2 of the replicated log: checksum mismatch of the frame");
  other = writer;
  Made misplaced = other.commit(1)[0];
  misplaced.seq = 3;
  CHECK(refused(misplaced) == "frame 3 of the replicated log: it says that it is frame 2");
  const FrameHeader header{true, 1, 2, 2, 2, writer.at().chain};
  CHECK(refused({2, encode_frame(header, "no unit")}) ==
        "frame 2 of the replicated log: its commit, byte 0: cut short");
  CHECK(refused({2, encode_frame(header, "")}) ==
        "frame 2 of the replicated log: its commit ends at lsn 1 instead of 2");
  std::string misnumbered(kUnitHeaderBytes, '\0');
  encode_unit_header(misnumbered.data(), crc32c(""), 0, 3, 1, 0, 0);
  CHECK(refused({2, encode_frame(header, misnumbered)}) ==
        "frame 2 of the replicated log: lsn 3 found in place of 2");
  REQUIRE(reader.add_all(writer.commit(1)));
  CHECK(reader.tail.position() == writer.at());
}
