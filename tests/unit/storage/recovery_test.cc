// Recovery: the whole history, or a prefix if only an unsynced tail is missing, or an error that
// names the place. Never a silently shortened history.
#include "storage/recovery.h"

#include "tests/support/storage_support.h"

#include <random>

#include "storage/data_directory.h"
#include "tests/support/contents_log.h"
#include "tests/support/test.h"

using namespace sluice;
using namespace sluice::test;

namespace {

namespace fs = std::filesystem;

constexpr uint32_t kKeys = 7;

// Unit n sets key n % kKeys to n, so the state at any lsn is known.
std::map<uint32_t, uint64_t> state_at(Lsn lsn) {
  std::map<uint32_t, uint64_t> state;
  for (Lsn n = lsn > kKeys ? lsn - kKeys + 1 : 1; n <= lsn; ++n) state[n % kKeys] = n;
  return state;
}

struct History {
  SyncMode mode = SyncMode::kAlways;
  Lsn units = 300;
  Lsn checkpoint_at = 0;  // 0: none
  size_t filling = 50;
  bool sync_at_end = false;
};

// Leaves the directory like a killed process: only what the log wrote.
Lsn write_history(const std::string& directory, const History& history) {
  StoreOptions options = store_options(directory, history.mode);
  options.memtable_bytes = 64 << 10;  // several files of each kind
  options.journal.sync_interval = std::chrono::hours(1);
  MapReplay replay;
  auto store = Store::open(options, replay);
  REQUIRE_MESSAGE(store.ok(), store.status().message());
  MapEngine engine(&(*store)->journal(), replay.state);
  (*store)->start_checkpoints([&] { return engine.walk(); }, [] { return int64_t{1}; });
  Lsn last = (*store)->recovered().last_lsn;
  for (Lsn i = 0; i < history.units; ++i) {
    const Lsn lsn = last + 1;
    last = engine.set(lsn % kKeys, lsn, history.filling);
    if (last % 10 == 0) {
      CHECK((history.mode == SyncMode::kAlways ? (*store)->journal().sync()
                                               : (*store)->journal().flush()));
    }
    if (last == history.checkpoint_at) {
      Checkpointer& checkpointer = *(*store)->checkpointer();
      REQUIRE(checkpointer.wait_until_done(checkpointer.request()).ok());
    }
  }
  CHECK((history.sync_at_end ? (*store)->journal().sync() : (*store)->journal().flush()));
  if (history.mode == SyncMode::kAlways) CHECK((*store)->journal().sync());
  CHECK((*store)->close(CloseMode::kDiscard).ok());
  return last;
}

void copy_directory(const std::string& from, const std::string& to) {
  fs::remove_all(to);
  fs::copy(from, to, fs::copy_options::recursive);
}

// Checks recovery of a history on disk up to `last`, which was synced up to `synced`. Returns
// whether it opened.
bool check_outcome(const std::string& directory, Lsn synced, Lsn last) {
  const ReadBack back = read_back(directory);
  if (!back.status.ok()) {
    CHECK(back.status.message().find(directory) != std::string::npos);
    return false;
  }
  CHECK(back.recovered.last_lsn >= synced);
  CHECK(back.recovered.last_lsn <= last);
  CHECK(back.state == state_at(back.recovered.last_lsn));
  return true;
}

std::string newest_wal(const std::string& directory) {
  std::string newest;
  for (const std::string& file : files_under(directory + "/log")) {
    if (file.ends_with(".log") && fs::file_size(file) != 0) newest = file;
  }
  REQUIRE(!newest.empty());
  return newest;
}

std::unique_ptr<Log> open_log(const std::string& directory) {
  RocksdbLogOptions options;
  options.directory = directory;
  auto log = open_rocksdb_log(options);
  REQUIRE(log.ok());
  return std::move(*log);
}

// Commits of one unit each, like those of write_history(), and the mark (0: none).
void append_units(const std::string& directory, const std::vector<Lsn>& lsns, Lsn mark) {
  const std::unique_ptr<Log> log = open_log(directory);
  for (const Lsn lsn : lsns) {
    CHECK(log->append_commit(lsn, unit_of(lsn, encode_record(lsn % kKeys, lsn)), true).ok());
  }
  if (mark != 0) CHECK(log->set_mark(mark).ok());
}

struct NumberedPiece {
  uint32_t number = 0;
  PieceHeader header;
};

// A checkpoint with these pieces of one record each, whatever its summary says.
void put_checkpoint(const std::string& directory, const CheckpointSummary& summary,
                    const std::vector<NumberedPiece>& pieces = {}) {
  const std::unique_ptr<Log> log = open_log(directory);
  auto writer = log->start_checkpoint(summary.checkpoint);
  REQUIRE(writer.ok());
  for (const NumberedPiece& piece : pieces) {
    std::string bytes = std::string(kPieceHeaderBytes, '\0') + encode_record(1, 1);
    seal_piece(bytes.data(), bytes.size(), piece.header);
    REQUIRE((*writer)->add_piece(piece.number, bytes).ok());
  }
  REQUIRE((*writer)->finish(summary).ok());
  REQUIRE((*writer)->commit().ok());
}

}  // namespace

TEST_CASE("a log whose unsynced tail is cut at any byte opens with a prefix") {
  TempDirectory base(true);
  TempDirectory trial(true);
  History history;
  history.mode = SyncMode::kNever;
  history.units = 25;
  const Lsn last = write_history(base.path(), history);
  const std::string wal = newest_wal(base.path()).substr(base.path().size());
  const auto size = static_cast<int64_t>(fs::file_size(base.path() + wal));
  Lsn before = last;
  for (int64_t cut = size; cut >= 0; cut -= cut > 200 ? 23 : 1) {
    CAPTURE(cut);
    copy_directory(base.path(), trial.path());
    fs::resize_file(trial.path() + wal, static_cast<uintmax_t>(cut));
    const ReadBack back = read_back(trial.path());
    REQUIRE_MESSAGE(back.status.ok(), back.status.message());
    CHECK(back.state == state_at(back.recovered.last_lsn));
    CHECK(back.recovered.last_lsn <= before);
    before = back.recovered.last_lsn;
  }
  CHECK(before == 0);
}

TEST_CASE("damage behind a gap, in what was never synced, goes with what is behind the gap") {
  TempDirectory directory(true);
  append_units(directory.path(), {1, 2, 3}, 3);
  append_units(directory.path(), {11, 12, 13, 14, 15}, 0);
  const std::string wal = newest_wal(directory.path());
  std::string bytes = read_file(wal);
  bytes[bytes.size() / 2] ^= 1;
  write_file(wal, bytes);
  const ReadBack back = read_back(directory.path());
  REQUIRE_MESSAGE(back.status.ok(), back.status.message());
  CHECK(back.recovered.last_lsn == 3);
  CHECK(back.recovered.dropped_tail);
}

TEST_CASE("a synced log that was cut is refused, and the high-water mark is named") {
  TempDirectory base(true);
  TempDirectory trial(true);
  History history;
  history.units = 25;
  const Lsn last = write_history(base.path(), history);
  CHECK(read_back(base.path()).recovered.last_lsn == last);
  TempDirectory fresh(true);
  write_history(fresh.path(), history);
  const std::string wal = newest_wal(fresh.path()).substr(fresh.path().size());
  const auto size = fs::file_size(fresh.path() + wal);
  for (uintmax_t cut = size - 1; cut > 0; cut -= std::min<uintmax_t>(cut, 97)) {
    CAPTURE(cut);
    copy_directory(fresh.path(), trial.path());
    fs::resize_file(trial.path() + wal, cut);
    const ReadBack back = read_back(trial.path());
    REQUIRE(!back.status.ok());
    CHECK(back.status.code() == StatusCode::kDamaged);
    CHECK(back.status.message().find("high-water-mark") != std::string::npos);
  }
}

TEST_CASE("a start that was refused once is never accepted with a shorter history later") {
  TempDirectory base;
  History history;
  history.units = 200;
  const Lsn last = write_history(base.path(), history);
  const std::string wal = newest_wal(base.path());
  const std::string bytes = read_file(wal);
  fs::resize_file(wal, bytes.size() / 2);
  CHECK(!read_back(base.path()).status.ok());
  write_file(wal, bytes);
  const ReadBack back = read_back(base.path());
  // RocksDB may have moved the half to a table and dropped the file, so that the damage is not
  // visible; but the mark still causes a refusal.
  if (back.status.ok()) {
    CHECK(back.recovered.last_lsn == last);
  } else {
    CHECK(back.status.message().find("high-water-mark") != std::string::npos);
  }
}

TEST_CASE("a bit flipped in any file gives the right history or a refusal") {
  for (const bool with_checkpoint : {false, true}) {
    TempDirectory base(true);
    TempDirectory trial(true);
    History history;
    history.units = 600;
    history.filling = 300;
    history.checkpoint_at = with_checkpoint ? 400 : 0;
    const Lsn last = write_history(base.path(), history);
    std::mt19937_64 random(11);
    for (const std::string& file : files_under(base.path())) {
      const std::string name = file.substr(base.path().size());
      const std::string bytes = read_file(file);
      if (bytes.empty()) continue;
      const size_t trials = std::min<size_t>(bytes.size() * 8, 30);
      for (size_t i = 0; i < trials; ++i) {
        const size_t bit = random() % (bytes.size() * 8);
        CAPTURE(name);
        CAPTURE(bit);
        copy_directory(base.path(), trial.path());
        std::string flipped = bytes;
        flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
        write_file(trial.path() + name, flipped);
        check_outcome(trial.path(), last, last);
      }
    }
  }
}

TEST_CASE("each file deleted once gives the right history or a refusal") {
  for (const bool with_checkpoint : {false, true}) {
    TempDirectory base(true);
    TempDirectory trial(true);
    History history;
    history.units = 600;
    history.filling = 300;
    history.checkpoint_at = with_checkpoint ? 400 : 0;
    const Lsn last = write_history(base.path(), history);
    size_t refused = 0;
    for (const std::string& file : files_under(base.path())) {
      const std::string name = file.substr(base.path().size());
      CAPTURE(name);
      copy_directory(base.path(), trial.path());
      fs::remove(trial.path() + name);
      if (!check_outcome(trial.path(), last, last)) ++refused;
      if (name == "/FORMAT" || name == "/high-water-mark") {
        CHECK(read_back(trial.path()).status.message().find(name) != std::string::npos);
      }
    }
    CHECK(refused >= 5);
  }
}

TEST_CASE("a second server on the same directory is refused in clear words") {
  TempDirectory directory;
  MapReplay replay;
  auto first = Store::open(store_options(directory.path()), replay);
  REQUIRE(first.ok());
  const ReadBack second = read_back(directory.path());
  CHECK(second.status.code() == StatusCode::kLocked);
  CHECK(second.status.message() ==
        "another server is using the data directory " + directory.path());
  CHECK((*first)->close(CloseMode::kFlush).ok());
  CHECK(read_back(directory.path()).status.ok());
}

TEST_CASE("an unknown format version is refused in clear words") {
  TempDirectory directory;
  CHECK(read_back(directory.path()).status.ok());
  const std::string next = std::to_string(kFormatVersion + 1);
  write_file(directory.path() + "/FORMAT",
             "sluice data directory\nformat " + next + "\nstate ready\n");
  const ReadBack back = read_back(directory.path());
  CHECK(back.status.code() == StatusCode::kUnsupported);
  CHECK(back.status.message().find("has format " + next + "; this version of Sluice supports " +
                                   std::to_string(kFormatVersion)) != std::string::npos);
}

TEST_CASE("a creation that was cut off is made anew, a directory that lost its format is not") {
  TempDirectory directory;
  write_file(directory.path() + "/FORMAT", "sluice data directory\nformat 2\nstate creating\n");
  fs::create_directory(directory.path() + "/log");
  write_file(directory.path() + "/log/CURRENT", "half a database");
  CHECK(!holds_data(directory.path()));
  CHECK(read_back(directory.path()).status.ok());
  CHECK(holds_data(directory.path()));
  fs::remove(directory.path() + "/FORMAT");
  const ReadBack back = read_back(directory.path());
  CHECK(back.status.code() == StatusCode::kDamaged);
  CHECK(back.status.message().find("/FORMAT is missing") != std::string::npos);
}

TEST_CASE("a history below the high-water mark is refused, one at or above it is not") {
  TempDirectory directory;
  History history;
  history.mode = SyncMode::kNever;
  history.units = 100;
  write_history(directory.path(), history);
  const auto put_mark = [&](Lsn lsn) {
    const auto mark = encode_mark(lsn);
    write_file(directory.path() + "/high-water-mark", std::string(mark.data(), mark.size()));
  };
  put_mark(101);
  CHECK(read_back(directory.path()).status.message().find("/high-water-mark says") !=
        std::string::npos);
  put_mark(100);
  CHECK(read_back(directory.path()).status.ok());
  put_mark(3);
  CHECK(read_back(directory.path()).recovered.last_lsn == 100);
  // What it said is unknown.
  write_file(directory.path() + "/high-water-mark", std::string(kMarkBytes, 'x'));
  CHECK(read_back(directory.path()).status.message().find("/high-water-mark is damaged") !=
        std::string::npos);
}

TEST_CASE("a gap above the mark ends the history there, and what follows is gone for good") {
  TempDirectory directory;
  append_units(directory.path(), {1, 2, 3, 6, 7}, 3);
  ReadBack back = read_back(directory.path());
  REQUIRE_MESSAGE(back.status.ok(), back.status.message());
  CHECK(back.recovered.last_lsn == 3);
  CHECK(back.recovered.dropped_tail);
  CHECK(back.state == state_at(3));
  History history;
  history.units = 2;
  CHECK(write_history(directory.path(), history) == 5);
  back = read_back(directory.path());
  CHECK(back.recovered.last_lsn == 5);
  CHECK(!back.recovered.dropped_tail);
  append_units(directory.path(), {9}, 9);
  back = read_back(directory.path());
  CHECK(back.status.code() == StatusCode::kDamaged);
  CHECK(back.status.message().find("the log has a gap after lsn 5") != std::string::npos);
}

TEST_CASE("a single commit behind a gap is gone for good, too") {
  TempDirectory directory;
  append_units(directory.path(), {1, 2, 3, 5}, 3);
  CHECK(read_back(directory.path()).recovered.last_lsn == 3);
  // The next unit would fill the gap.
  append_units(directory.path(), {4}, 4);
  const ReadBack back = read_back(directory.path());
  REQUIRE_MESSAGE(back.status.ok(), back.status.message());
  CHECK(back.recovered.last_lsn == 4);
  CHECK(!back.recovered.dropped_tail);
  CHECK(back.state == state_at(4));
}

TEST_CASE("a log that begins late, without the checkpoint before it, is no whole history") {
  for (const Lsn mark : {0, 7}) {
    CAPTURE(mark);
    TempDirectory directory;
    append_units(directory.path(), {5, 6, 7}, mark);
    const ReadBack back = read_back(directory.path());
    if (mark == 0) {
      // None of it was promised to be on disk.
      REQUIRE_MESSAGE(back.status.ok(), back.status.message());
      CHECK(back.recovered.last_lsn == 0);
      CHECK(back.recovered.dropped_tail);
      CHECK(back.state.empty());
    } else {
      CHECK(back.status.code() == StatusCode::kDamaged);
      CHECK(back.status.message().find("the log has a gap after lsn 0") != std::string::npos);
    }
  }
}

TEST_CASE("a log that ends one unit before its checkpoint's end is refused") {
  for (const Lsn end : {5, 6}) {
    CAPTURE(end);
    TempDirectory directory;
    append_units(directory.path(), {1, 2, 3, 4, 5}, 0);
    put_checkpoint(directory.path(), {.checkpoint = 1, .begin_lsn = 3, .end_lsn = end});
    const ReadBack back = read_back(directory.path());
    if (end == 5) {
      REQUIRE_MESSAGE(back.status.ok(), back.status.message());
      CHECK(back.recovered.last_lsn == 5);
    } else {
      CHECK(back.status.code() == StatusCode::kDamaged);
      CHECK(back.status.message().find("checkpoint 1 needs it up to 6") != std::string::npos);
    }
  }
}

TEST_CASE("a checkpoint with fewer pieces or records than its summary lists is refused") {
  for (const auto& [pieces, records] : {std::pair(1, 1), std::pair(1, 0), std::pair(0, 1)}) {
    CAPTURE(pieces);
    CAPTURE(records);
    TempDirectory directory;
    append_units(directory.path(), {1, 2, 3}, 0);
    put_checkpoint(directory.path(), {.checkpoint = 1,
                                      .begin_lsn = 2,
                                      .end_lsn = 3,
                                      .pieces = static_cast<uint64_t>(pieces),
                                      .records = static_cast<uint64_t>(records)});
    const ReadBack back = read_back(directory.path());
    CHECK(back.status.code() == StatusCode::kDamaged);
    CHECK(back.status.message().find("has 0 pieces with 0 records") != std::string::npos);
  }
}

TEST_CASE("a checkpoint whose pieces are not numbered from 0 on is refused") {
  // The second piece; the first one is as it should be.
  const std::vector<NumberedPiece> seconds = {
      {1, {1, 1, 1}}, {2, {1, 2, 1}}, {1, {1, 2, 1}}, {1, {1, 0, 1}}, {1, {2, 1, 1}}};
  for (size_t i = 0; i < seconds.size(); ++i) {
    CAPTURE(i);
    TempDirectory directory;
    append_units(directory.path(), {1, 2, 3}, 0);
    put_checkpoint(directory.path(),
                   {.checkpoint = 1, .begin_lsn = 2, .end_lsn = 3, .pieces = 2, .records = 2},
                   {{0, {1, 0, 1}}, seconds[i]});
    const ReadBack back = read_back(directory.path());
    if (i == 0) {
      CHECK_MESSAGE(back.status.ok(), back.status.message());
      continue;
    }
    CHECK(back.status.code() == StatusCode::kDamaged);
    CHECK(back.status.message().find("checkpoint 1: piece 1 is missing") != std::string::npos);
  }
}

TEST_CASE("a log that cannot be read to its end is refused, whatever is behind a gap is not read") {
  const Status unreadable(StatusCode::kDamaged, "block 7 is damaged");
  for (const Lsn second : {2, 3}) {
    CAPTURE(second);
    Contents contents;
    contents.log_status = unreadable;
    for (const Lsn lsn : {Lsn{1}, second}) {
      contents.commits.emplace_back(lsn, unit_of(lsn, encode_record(1, lsn)));
    }
    ContentsLog log(contents);
    MapReplay replay;
    const auto recovered = recover(log, replay, {});
    if (second == 2) {
      CHECK(recovered.status().message() == unreadable.message());
    } else {
      REQUIRE(recovered.ok());
      CHECK(recovered->last_lsn == 1);
      CHECK(recovered->dropped_tail);
    }
  }
}

TEST_CASE("records that cannot be read are refused with their place, in the log and in a piece") {
  const std::string cut = encode_record(1, 1).substr(1);
  for (const bool in_log : {true, false}) {
    CAPTURE(in_log);
    Contents contents;
    if (in_log) {
      contents.commits = {{1, unit_of(1, encode_record(1, 1))}, {2, unit_of(2, cut)}};
    } else {
      std::string piece = std::string(kPieceHeaderBytes, '\0') + cut;
      seal_piece(piece.data(), piece.size(), {1, 0, 1});
      contents.pieces = {piece};
      contents.summary = CheckpointSummary{1, 0, 0, 1, 2, 1, 1, piece.size()};
    }
    ContentsLog log(contents);
    MapReplay replay;
    const Status status = recover(log, replay, {}).status();
    CHECK(status.code() == StatusCode::kDamaged);
    CHECK(status.message() == (in_log ? "log, commit 2, byte 0: invalid records"
                                      : "checkpoint 1, piece 0: invalid records"));
  }
}

TEST_CASE("recovery reports its progress and can be cancelled") {
  TempDirectory directory;
  History history;
  history.mode = SyncMode::kNever;
  history.units = 100;
  write_history(directory.path(), history);
  RecoveryProgress last;
  int behind_the_reading = 0;
  StoreOptions options = store_options(directory.path());
  options.recovery.on_progress = [&](const RecoveryProgress& progress) {
    CHECK(progress.bytes_done <= progress.bytes_total);
    if (progress.read_all) ++behind_the_reading;
    last = progress;
    return true;
  };
  CHECK(read_back(options).status.ok());
  CHECK(last.bytes_done > 0);
  CHECK(last.bytes_done == last.bytes_total);
  CHECK(behind_the_reading >= 2);  // while the data is put in order, and at the end
  options.recovery.on_progress = [](const RecoveryProgress&) { return false; };
  CHECK(read_back(options).status.code() == StatusCode::kCancelled);
}
