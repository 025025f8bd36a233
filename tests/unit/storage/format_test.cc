// The on-disk encodings: they round-trip, and truncation and flipped bits are detected.
#include "storage/format.h"

#include "engine/base/crc32c.h"

#include <random>
#include <string>
#include <vector>

#include "tests/support/test.h"

using namespace sluice;

namespace {

std::string random_bytes(std::mt19937& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

std::string make_unit(Lsn lsn, const std::string& records, uint32_t count, uint8_t flags = 0) {
  std::string unit(kUnitHeaderBytes, '\0');
  encode_unit_header(unit.data(), crc32c(records), static_cast<uint32_t>(records.size()), lsn,
                     123456, count, flags);
  return unit + records;
}

// The records of the units that a reader accepts.
std::vector<std::string> accepted(Bytes commit, UnitDamage* damage = nullptr) {
  std::vector<std::string> units;
  UnitCursor cursor(commit);
  while (cursor.next()) units.emplace_back(cursor.records());
  if (damage != nullptr) *damage = cursor.damage();
  return units;
}

}  // namespace

TEST_CASE("crc32c gives the published values") {
  CHECK(crc32c("") == 0);
  CHECK(crc32c("123456789") == 0xe3069283);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aa);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43);
}

TEST_CASE("crc32c by instruction and by table agree at every length and split") {
  std::mt19937 random(7);
  const std::string bytes = random_bytes(random, 20000);
  for (size_t size = 0; size < bytes.size(); size += size < 1300 ? 1 : 611) {
    const uint32_t whole = crc32c_extend_portable(0, bytes.data(), size);
    REQUIRE(crc32c_extend(0, bytes.data(), size) == whole);
    const size_t split = size == 0 ? 0 : random() % size;
    const uint32_t first = crc32c_extend(0, bytes.data(), split);
    REQUIRE(crc32c_extend(first, bytes.data() + split, size - split) == whole);
  }
}

TEST_CASE("units read back as they were written") {
  std::mt19937 random(1);
  std::string commit;
  std::vector<std::string> written;
  for (Lsn lsn = 1; lsn <= 50; ++lsn) {
    written.push_back(random_bytes(random, random() % 300));
    commit += make_unit(lsn, written.back(), static_cast<uint32_t>(lsn * 3));
  }
  UnitCursor cursor(commit);
  for (Lsn lsn = 1; lsn <= 50; ++lsn) {
    REQUIRE(cursor.next());
    CHECK(cursor.header().lsn == lsn);
    CHECK(cursor.header().time_ms == 123456);
    CHECK(cursor.header().records == lsn * 3);
    CHECK(cursor.records() == written[lsn - 1]);
  }
  CHECK(!cursor.next());
  CHECK(cursor.damage() == UnitDamage::kNone);
}

TEST_CASE("a commit that is cut at any byte gives a prefix of its units and says where it ends") {
  const std::vector<std::string> records = {"first", "", "the third one"};
  std::string commit;
  std::vector<size_t> ends = {0};
  for (size_t i = 0; i < records.size(); ++i) {
    commit += make_unit(i + 1, records[i], 1);
    ends.push_back(commit.size());
  }
  for (size_t cut = 0; cut <= commit.size(); ++cut) {
    UnitCursor cursor(Bytes(commit).substr(0, cut));
    size_t count = 0;
    while (cursor.next()) CHECK(cursor.records() == records[count++]);
    CHECK(ends[count] <= cut);
    const bool at_end = cut == ends[count];
    CHECK(cursor.damage() == (at_end ? UnitDamage::kNone : UnitDamage::kCut));
    if (!at_end) CHECK(cursor.offset() == ends[count]);
    CHECK(sound_unit_bytes(Bytes(commit).substr(0, cut)) == ends[count]);
  }
}

TEST_CASE("any flipped bit of a unit is found") {
  const std::string commit = make_unit(1, "some records", 2) + make_unit(2, "more of them", 1);
  const auto whole = accepted(commit);
  for (size_t bit = 0; bit < commit.size() * 8; ++bit) {
    std::string flipped = commit;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    UnitDamage damage{};
    const auto units = accepted(flipped, &damage);
    REQUIRE(damage != UnitDamage::kNone);
    REQUIRE(units.size() < whole.size());
    for (size_t i = 0; i < units.size(); ++i) REQUIRE(units[i] == whole[i]);
    UnitCursor told(flipped, sound_unit_bytes(flipped));
    while (told.next()) {
    }
    REQUIRE(told.damage() == damage);
  }
}

TEST_CASE("a unit of an unknown version or with unknown flags is refused, not guessed at") {
  std::string unit = make_unit(1, "x", 1, 0x40);
  UnitDamage damage{};
  CHECK(accepted(unit, &damage).empty());
  CHECK(damage == UnitDamage::kFlags);
  unit = make_unit(1, "x", 1);
  unit[28] = 9;
  const uint32_t crc = crc32c_extend(crc32c("x"), unit.data() + 4, kUnitHeaderBytes - 4);
  std::memcpy(unit.data(), &crc, 4);
  CHECK(accepted(unit, &damage).empty());
  CHECK(damage == UnitDamage::kVersion);
}

TEST_CASE("keys sort as their numbers do") {
  const std::vector<uint64_t> numbers = {0, 1, 255, 256, 65535, uint64_t{1} << 40, UINT64_MAX};
  for (size_t i = 0; i + 1 < numbers.size(); ++i) {
    const LogKey a = encode_log_key(numbers[i]);
    const LogKey b = encode_log_key(numbers[i + 1]);
    CHECK(Bytes(a.data(), a.size()) < Bytes(b.data(), b.size()));
    const PieceKey c = encode_piece_key(numbers[i], kSummaryNumber);
    const PieceKey d = encode_piece_key(numbers[i + 1], 0);
    CHECK(Bytes(c.data(), c.size()) < Bytes(d.data(), d.size()));
    CHECK(decode_log_key(Bytes(a.data(), a.size())) == numbers[i]);
  }
  CHECK(!decode_log_key("short"));
}

TEST_CASE("a piece of a checkpoint round-trips, and neither a cut nor a flipped bit passes") {
  std::string piece(kPieceHeaderBytes, '\0');
  piece += "records of a piece";
  seal_piece(piece.data(), piece.size(), {7, 3, 11});
  const auto opened = open_piece(piece);
  REQUIRE(opened.ok());
  CHECK(opened->header.checkpoint == 7);
  CHECK(opened->header.number == 3);
  CHECK(opened->header.records == 11);
  CHECK(opened->records == "records of a piece");
  for (size_t cut = 0; cut < piece.size(); ++cut) {
    REQUIRE(!open_piece(Bytes(piece).substr(0, cut)).ok());
  }
  for (size_t bit = 0; bit < piece.size() * 8; ++bit) {
    std::string flipped = piece;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    REQUIRE(!open_piece(flipped).ok());
    REQUIRE(sound_piece_bytes(flipped) == 0);
  }
  REQUIRE(sound_piece_bytes(piece) == piece.size());
  REQUIRE(open_piece(piece, piece.size()).ok());
}

TEST_CASE("a summary and a mark round-trip, and no flipped bit passes") {
  const CheckpointSummary summary{1, 2, 3, 4, 5, 6, 7, 8};
  const std::string bytes = encode_summary(summary);
  const auto read = decode_summary(bytes);
  REQUIRE(read.ok());
  CHECK(read->checkpoint == 1);
  CHECK(read->end_lsn == 3);
  CHECK(read->bytes == 8);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    REQUIRE(!decode_summary(flipped).ok());
  }
  const auto encoded = encode_mark(987654321);
  const std::string mark(encoded.data(), encoded.size());
  CHECK(decode_mark(mark) == 987654321);
  for (size_t bit = 0; bit < mark.size() * 8; ++bit) {
    std::string flipped = mark;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    REQUIRE(!decode_mark(flipped));
  }
}
