// libFuzzer target for the input of recovery: units, pieces, summaries, the mark. The fuzzer's
// input is a small program that writes a log and a checkpoint, partly with correct checksums and
// partly damaged; recovery must load it or return an error.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/commands/complete_engine.h"
#include "storage/recovery.h"
#include "tests/support/contents_log.h"
#include "tests/support/fuzz_records.h"

namespace {

using namespace sluice;
using test::Contents;
using test::ContentsLog;

// Reads the input from its front; zeros after its end.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}
  bool empty() const { return rest_.empty(); }
  uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto value = static_cast<uint8_t>(rest_[0]);
    rest_.remove_prefix(1);
    return value;
  }
  Bytes bytes(size_t wanted) {
    const Bytes taken = rest_.substr(0, wanted);
    rest_.remove_prefix(taken.size());
    return taken;
  }

 private:
  Bytes rest_;
};

// Flips a bit somewhere if the input says so. Returns whether it did.
bool damage(std::string& bytes, Input& input) {
  const uint8_t how = input.byte();
  if ((how & 7) != 7 || bytes.empty()) return false;
  const size_t at = input.byte() * size_t{256} + input.byte();
  bytes[at % bytes.size()] ^= static_cast<char>(1 << (how >> 5));
  return true;
}

std::string make_unit(Input& input, Lsn lsn) {
  const Bytes records = input.bytes(input.byte());
  std::string unit(kUnitHeaderBytes, '\0');
  // The count is nearly always correct; recovery must tolerate a wrong one.
  const auto count = static_cast<uint32_t>(test::count_records(records)) + (input.byte() == 255);
  encode_unit_header(unit.data(), crc32c(records), static_cast<uint32_t>(records.size()), lsn, 1,
                     count, input.byte() == 1 ? kUnitFollowsGap : 0);
  unit += records;
  const std::string whole = unit;
  if (damage(unit, input)) {
    UnitCursor cursor(unit);
    CHECK(!cursor.next() && cursor.damage() != UnitDamage::kNone);
  } else {
    UnitCursor cursor(whole);
    CHECK(cursor.next() && cursor.records() == records && cursor.header().lsn == lsn);
    CHECK(!cursor.next() && cursor.damage() == UnitDamage::kNone);
  }
  return unit;
}

std::string make_piece(Input& input, uint32_t number) {
  const Bytes records = input.bytes(input.byte());
  std::string piece(kPieceHeaderBytes, '\0');
  piece += records;
  const auto count = static_cast<uint32_t>(test::count_records(records));
  seal_piece(piece.data(), piece.size(), {1, number, count});
  const auto opened = open_piece(piece);
  CHECK(opened.ok() && opened->records == records && opened->header.number == number);
  if (damage(piece, input)) CHECK(!open_piece(piece).ok());
  return piece;
}

Contents make_contents(Input& input) {
  Contents contents;
  Lsn lsn = input.byte() % 4;
  CheckpointSummary summary;
  summary.checkpoint = 1;
  summary.begin_lsn = lsn;
  summary.end_lsn = lsn + input.byte() % 4;
  if (input.byte() % 2 == 0) {
    for (int i = input.byte() % 4; i > 0; --i) {
      contents.pieces.push_back(make_piece(input, static_cast<uint32_t>(summary.pieces)));
      summary.records +=
          test::count_records(Bytes(contents.pieces.back()).substr(kPieceHeaderBytes));
      ++summary.pieces;
    }
    std::string encoded = encode_summary(summary);
    if (damage(encoded, input)) {
      CHECK(!decode_summary(encoded).ok());
    } else {
      CHECK(decode_summary(encoded)->records == summary.records);
    }
    contents.summary = summary;
  }
  while (!input.empty() && contents.commits.size() < 8) {
    ++lsn;
    std::string commit;
    const Lsn first = lsn + (input.byte() == 7 ? 1 : 0);
    for (int i = 1 + input.byte() % 3; i > 0; --i) commit += make_unit(input, lsn++);
    --lsn;
    if (input.byte() == 3) commit.resize(commit.size() - commit.size() % 7);
    contents.commits.emplace_back(first, std::move(commit));
  }
  contents.mark = input.byte() == 9 ? lsn + 1 : 0;
  return contents;
}

bool small_enough(const Contents& contents) {
  for (const std::string& piece : contents.pieces) {
    if (!test::small_enough(Bytes(piece).substr(kPieceHeaderBytes))) return false;
  }
  for (const auto& [lsn, commit] : contents.commits) {
    UnitCursor cursor(commit);
    while (cursor.next()) {
      if (!test::small_enough(cursor.records())) return false;
    }
  }
  return true;
}

// The bytes as they are, for every reader.
void read_raw(Bytes input) {
  UnitCursor cursor(input);
  while (cursor.next()) CHECK(cursor.offset() <= input.size());
  CHECK(std::string(describe(cursor.damage())) != "?");
  (void)open_piece(input).ok();
  (void)decode_summary(input).ok();
  decode_mark(input);
  decode_log_key(input);
  decode_piece_key(input);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 4096) return 0;
  read_raw({reinterpret_cast<const char*>(data), size});
  Input input(data, size);
  const Contents contents = make_contents(input);
  if (!small_enough(contents)) return 0;
  ContentsLog log(contents);
  test::QuietServer port;
  CompleteEngine engine(port, 7);
  bool loaded = false;
  {
    const std::unique_ptr<Replay> replay = engine.begin_replay();
    const Result<RecoveryResult> result = recover(log, *replay, {});
    loaded = result.ok();
    if (!loaded) CHECK(!result.status().message().empty());
  }
  if (loaded) test::check_walk(engine);
  return 0;
}
