// sluice-journal: inspects a data directory without changing it; a server may be using the
// directory, then the end shown is the end at that moment. `lead` alone changes it.
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/numbers.h"
#include "engine/keyspace/describe_effect.h"
#include "engine/unit/effects.h"
#include "net/process/standard_files.h"
#include "net/process/version.h"
#include "storage/copy_writer.h"
#include "storage/data_directory.h"
#include "storage/format.h"
#include "storage/group_keys.h"
#include "storage/group_mark.h"
#include "storage/log.h"
#include "storage/random_id.h"
#include "storage/recovery.h"
#include "storage/rocksdb_log.h"

namespace sluice {
namespace {

enum class Command { kVerify, kStat, kPrint, kLead };

struct Arguments {
  Command command = Command::kVerify;
  std::string directory;
  std::string group = "1";
  Lsn from = 0;
  Lsn to = UINT64_MAX;
  bool checkpoint = false;
  bool records = true;
};

constexpr const char* kHelp =
    "\nInspects a data directory. A server may be using it; then the end shown is the end at that\n"
    "moment. Only `lead` changes the directory, and needs the server stopped.\n"
    "\n"
    "  verify         check for damage, and show where it begins\n"
    "  stat           show the contents by kind of record\n"
    "  print          print every unit with its records, and its place in the replicated log\n"
    "  lead           let the directory begin a group of nodes, with what it holds: for a\n"
    "                 directory with data that is to be replicated (journal etcd), or the best\n"
    "                 copy of a group whose etcd is lost\n"
    "\n"
    "  --group NAME   the group that it begins (1)\n"
    "  --from LSN     start with this unit\n"
    "  --to LSN       end with this unit\n"
    "  --checkpoint   also print the records of the newest checkpoint\n"
    "  --no-records   print units without their records\n"
    "\n"
    "Exit status: 0 intact, 1 damaged or unreadable, 2 wrong usage.\n";
constexpr const char* kUsage =
    "usage: sluice-journal verify DIR\n"
    "       sluice-journal stat DIR\n"
    "       sluice-journal print [--from LSN] [--to LSN] [--checkpoint] [--no-records] DIR\n"
    "       sluice-journal lead [--group NAME] DIR\n"
    "       sluice-journal --version\n";

std::optional<Arguments> parse_arguments(int count, char** values) {
  Arguments arguments;
  if (count < 3) return std::nullopt;
  const std::string command = values[1];
  if (command == "stat") {
    arguments.command = Command::kStat;
  } else if (command == "print") {
    arguments.command = Command::kPrint;
  } else if (command == "lead") {
    arguments.command = Command::kLead;
  } else if (command != "verify") {
    return std::nullopt;
  }
  const bool prints = arguments.command == Command::kPrint;
  const bool leads = arguments.command == Command::kLead;
  for (int i = 2; i < count; ++i) {
    const std::string value = values[i];
    if (prints && (value == "--from" || value == "--to") && i + 1 < count) {
      const std::optional<Lsn> lsn = parse_u64(values[++i]);
      if (!lsn) return std::nullopt;
      (value == "--from" ? arguments.from : arguments.to) = *lsn;
    } else if (leads && value == "--group" && i + 1 < count && is_group_name(values[i + 1])) {
      arguments.group = values[++i];
    } else if (prints && value == "--checkpoint") {
      arguments.checkpoint = true;
    } else if (prints && value == "--no-records") {
      arguments.records = false;
    } else if (value.starts_with("--") || !arguments.directory.empty()) {
      return std::nullopt;
    } else {
      arguments.directory = value;
    }
  }
  if (arguments.directory.empty()) return std::nullopt;
  return arguments;
}

std::string format_time(int64_t time_ms) {
  const std::time_t seconds = static_cast<std::time_t>(time_ms / 1000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  const size_t length = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + length, sizeof(text) - length, ".%03dZ", static_cast<int>(time_ms % 1000));
  return text;
}

// The first bytes in hex, for records that cannot be decoded.
std::string hex_head(Bytes bytes) {
  std::string text = std::to_string(bytes.size()) + " bytes:";
  for (size_t i = 0; i < bytes.size() && i < 32; ++i) {
    char byte[8];
    std::snprintf(byte, sizeof(byte), " %02x", static_cast<unsigned char>(bytes[i]));
    text += byte;
  }
  return bytes.size() > 32 ? text + " ..." : text;
}

// Returns false if the records are not `count` effects.
bool print_records(Bytes records, uint64_t count) {
  Effect effect;
  while (count != 0 && decode_effect(records, effect)) {
    std::printf("    %s\n", describe_effect(effect).c_str());
    --count;
  }
  if (count == 0 && records.empty()) return true;
  std::printf("    not an effect, %" PRIu64 " should follow; %s\n", count,
              hex_head(records).c_str());
  return false;
}

// Follows recovery: decodes every record, counts it by type, keeps nothing.
class CountingReplay final : public Replay {
 public:
  bool apply(Bytes records, uint64_t count) override {
    Effect effect;
    for (; count != 0; --count) {
      const size_t before = records.size();
      if (!decode_effect(records, effect)) return false;
      Kind& kind = kinds[static_cast<unsigned>(effect.type)];
      ++kind.count;
      kind.bytes += before - records.size();
      if (kind.example.empty()) kind.example = describe_effect(effect);
    }
    return records.empty();
  }
  void finish(const std::function<void()>&) override {}

  struct Kind {
    uint64_t count = 0;
    uint64_t bytes = 0;
    std::string example;
  };
  std::map<unsigned, Kind> kinds;
};

struct Opened {
  std::unique_ptr<Log> log;
  std::string damage;  // of the write-ahead log; what precedes it can be read
};

std::optional<Opened> open_log(const std::string& directory, bool read_only) {
  RocksdbLogOptions options;
  options.directory = directory;
  options.read_only = read_only;
  Opened opened;
  auto log = open_rocksdb_log(options);
  if (!log.ok() && log.status().code() == StatusCode::kDamaged) {
    opened.damage = log.status().message();
    options.up_to_damage = true;
    log = open_rocksdb_log(options);
  }
  if (!log.ok()) {
    std::printf("%s\n", log.status().message().c_str());
    return std::nullopt;
  }
  opened.log = std::move(log.value());
  return opened;
}

// `text` is what a commit has beside it.
std::string describe_position(const std::string& text) {
  const Result<LogPosition> position = decode_position(text);
  if (!position.ok()) return "not a position: " + text;
  return "cluster id " + position->cluster_id + ", group " + position->group + ", epoch " +
         std::to_string(position->epoch) + ", frame " + std::to_string(position->seq);
}

void print_head(Log& log, const std::string& directory) {
  std::printf("format %u, units of version %u\n", kFormatVersion, kUnitVersion);
  const auto mark_of_group = read_lead_mark(directory);
  if (!mark_of_group.ok()) std::printf("%s\n", mark_of_group.status().message().c_str());
  if (mark_of_group.ok() && mark_of_group->has_value()) {
    std::printf("begins group %s with everything up to lsn %" PRIu64 ", cluster id %s\n",
                (*mark_of_group)->group.c_str(), (*mark_of_group)->lsn,
                (*mark_of_group)->cluster_id.c_str());
  }
  const Result<Lsn> mark = log.mark();
  std::printf("high-water mark: %s\n", mark.ok() ? ("lsn " + std::to_string(mark.value())).c_str()
                                                 : mark.status().message().c_str());
  const auto newest = log.newest_checkpoint();
  if (!newest.ok()) {
    std::printf("checkpoint: %s\n", newest.status().message().c_str());
  } else if (!newest.value().has_value()) {
    std::printf("checkpoint: none\n");
  } else {
    const CheckpointSummary& summary = *newest.value();
    std::printf("checkpoint %" PRIu64 ": lsn %" PRIu64 " to %" PRIu64 ", %" PRIu64
                " records, %" PRIu64 " bytes in %" PRIu64 " pieces, %s to %s\n",
                summary.checkpoint, summary.begin_lsn, summary.end_lsn, summary.records,
                summary.bytes, summary.pieces, format_time(summary.started_ms).c_str(),
                format_time(summary.finished_ms).c_str());
  }
  std::printf("on disk: %" PRIu64 " bytes\n", log.disk_bytes());
}

bool print_checkpoint(Log& log, bool with_records) {
  const auto newest = log.newest_checkpoint();
  if (!newest.ok() || !newest.value().has_value()) return newest.ok();
  const std::unique_ptr<PieceReader> reader = log.read_checkpoint(newest.value()->checkpoint);
  uint32_t number = 0;
  Bytes piece;
  while (reader->next(number, piece)) {
    const Result<OpenedPiece> opened = open_piece(piece);
    if (!opened.ok()) {
      std::printf("piece %u: DAMAGED: %s\n", number, opened.status().message().c_str());
      return false;
    }
    const auto& [header, records] = *opened;
    std::printf("piece %u: %u records, %zu bytes\n", number, header.records, records.size());
    if (with_records && !print_records(records, header.records)) return false;
  }
  if (reader->status().ok()) return true;
  std::printf("DAMAGED: %s\n", reader->status().message().c_str());
  return false;
}

// Prints the units of one commit and its position; returns false at damage.
bool print_commit(Log& log, Lsn first_lsn, Bytes commit, const Arguments& arguments,
                  Lsn& expected) {
  std::printf("commit %" PRIu64 ": %zu bytes\n", first_lsn, commit.size());
  UnitCursor cursor(commit);
  while (cursor.next()) {
    const UnitHeader& unit = cursor.header();
    if (expected != 0 && unit.lsn != expected) {
      std::printf("  GAP: lsn %" PRIu64 " follows %" PRIu64 "%s\n", unit.lsn, expected - 1,
                  (unit.flags & kUnitFollowsGap) != 0 ? ", left out on purpose" : "");
    }
    expected = unit.lsn + 1;
    if (unit.lsn < arguments.from || unit.lsn > arguments.to) continue;
    std::printf("  lsn %" PRIu64 ", %s: %u records, %u bytes%s\n", unit.lsn,
                format_time(unit.time_ms).c_str(), unit.records, unit.length,
                (unit.flags & kUnitFollowsGap) != 0 ? ", follows a gap" : "");
    if (arguments.records && !print_records(cursor.records(), unit.records)) return false;
  }
  const Result<std::string> position = log.position_at(expected - 1);
  if (position.ok() && !position->empty()) {
    std::printf("  position: %s\n", describe_position(*position).c_str());
  }
  if (cursor.damage() == UnitDamage::kNone) return true;
  std::printf("  DAMAGED at byte %" PRIu64 " of this commit: %s\n", cursor.offset(),
              describe(cursor.damage()));
  return false;
}

bool print_units(Log& log, const Arguments& arguments) {
  const std::unique_ptr<LogReader> reader = log.read_from(arguments.from);
  Lsn first_lsn = 0;
  Lsn expected = 0;
  Bytes commit;
  while (reader->next(first_lsn, commit) && first_lsn <= arguments.to) {
    if (!print_commit(log, first_lsn, commit, arguments, expected)) return false;
  }
  if (reader->status().ok()) return true;
  std::printf("DAMAGED after lsn %" PRIu64 ": %s\n", expected == 0 ? 0 : expected - 1,
              reader->status().message().c_str());
  return false;
}

int print(Log& log, const Arguments& arguments) {
  print_head(log, arguments.directory);
  bool whole = true;
  if (arguments.checkpoint) whole = print_checkpoint(log, arguments.records);
  whole = print_units(log, arguments) && whole;
  return whole ? 0 : 1;
}

// Checks the log in the same way as recovery.
int verify(Log& log, const Arguments& arguments) {
  print_head(log, arguments.directory);
  CountingReplay replay;
  RecoveryOptions options;
  options.read_only = true;
  const auto recovered = recover(log, replay, options);
  if (arguments.command == Command::kStat) {
    for (const auto& [type, kind] : replay.kinds) {
      std::printf("record type %u: %" PRIu64 ", %" PRIu64 " bytes; the first: %s\n", type,
                  kind.count, kind.bytes, kind.example.c_str());
    }
  }
  if (!recovered.ok()) {
    std::printf("DAMAGED: %s\n", recovered.status().message().c_str());
    return 1;
  }
  const RecoveryResult& result = recovered.value();
  std::printf("log: %" PRIu64 " units with %" PRIu64
              " records after the checkpoint, last lsn %" PRIu64 "\n",
              result.units, result.unit_records, result.last_lsn);
  if (!result.position.empty()) {
    std::printf("position: %s\n", describe_position(result.position).c_str());
  }
  if (result.dropped_tail) {
    std::printf("followed by a gap after everything synced; a start drops the units after it\n");
  }
  std::printf("intact: a server would start with %" PRIu64 " records\n", result.records());
  return 0;
}

// The time of the last unit; empty if only the checkpoint has it.
std::string time_of(Log& log, Lsn last) {
  const std::unique_ptr<LogReader> reader = log.read_from(last);
  Lsn first_lsn = 0;
  Bytes commit;
  std::string time;
  while (reader->next(first_lsn, commit)) {
    UnitCursor cursor(commit);
    while (cursor.next()) time = ", written " + format_time(cursor.header().time_ms);
  }
  return time;
}

// Recovers the directory as a server would, so that the lsn is what the server will find.
int lead(const Arguments& arguments) {
  const std::string& directory = arguments.directory;
  // First: in the middle of an install the data have no name in the directory.
  if (const Status status = finish_copy(directory); !status.ok()) {
    std::printf("%s\n", status.message().c_str());
    return 1;
  }
  if (!holds_data(directory)) {
    std::printf("%s holds no data; a group begins with an empty directory by itself\n",
                directory.c_str());
    return 1;
  }
  std::optional<Opened> opened = open_log(directory, false);
  if (!opened.has_value()) return 1;
  CountingReplay replay;
  const auto recovered = recover(*opened->log, replay, RecoveryOptions());
  if (!recovered.ok() || !opened->damage.empty()) {
    std::printf("DAMAGED: %s\n",
                recovered.ok() ? opened->damage.c_str() : recovered.status().message().c_str());
    return 1;
  }
  const Lsn last = recovered->last_lsn;
  const LogPosition mark{random_id(), arguments.group, 0, 0, last, 0};
  Status status = write_lead_mark(directory, mark);
  if (status.ok()) status = forget_load_anew(directory);
  if (!status.ok()) {
    std::printf("%s\n", status.message().c_str());
    return 1;
  }
  if (!recovered->position.empty()) {
    std::printf("forgotten: %s\n", describe_position(recovered->position).c_str());
  }
  std::printf("%s begins group %s at its next start with journal etcd: %" PRIu64
              " records, everything up to lsn %" PRIu64
              "%s. What other nodes have acknowledged after that is not in it.\n"
              "If etcd has the keys of an older group of that name, remove them first, or choose "
              "another cluster-name.\n",
              directory.c_str(), mark.group.c_str(), recovered->records(), last,
              time_of(*opened->log, last).c_str());
  return 0;
}

int run(int count, char** values) {
  if (count == 2 && std::string_view(values[1]) == "--help") {
    std::printf("%s%s", kUsage, kHelp);
    return 0;
  }
  if (count == 2 && std::string_view(values[1]) == "--version") {
    std::printf("sluice-journal %s\n", kSluiceVersion);
    return 0;
  }
  const std::optional<Arguments> arguments = parse_arguments(count, values);
  if (!arguments.has_value()) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (arguments->command == Command::kLead) return lead(*arguments);
  std::optional<Opened> opened = open_log(arguments->directory, true);
  if (!opened.has_value()) return 1;
  const int code = arguments->command == Command::kPrint ? print(*opened->log, *arguments)
                                                         : verify(*opened->log, *arguments);
  if (opened->damage.empty()) return code;
  // Only verify compares the end with the mark and the checkpoint.
  const bool harmless = arguments->command != Command::kPrint && code == 0;
  std::printf("%s: %s\n",
              harmless ? "the unsynced tail is damaged; a server would start with the units above"
                       : "DAMAGED after the units above",
              opened->damage.c_str());
  return harmless ? 0 : 1;
}

}  // namespace
}  // namespace sluice

int main(int count, char** values) {
  sluice::occupy_standard_files();
  const int code = sluice::run(count, values);
  // What is not complete shall not pass for intact.
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::perror("sluice-journal: cannot write the output");
  return code == 0 ? 1 : code;
}
