#include "storage/recovery.h"

#include <algorithm>
#include <chrono>

#include "storage/format.h"
#include "storage/read_ahead.h"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Recovery {
 public:
  Recovery(Log& log, Replay& replay, const RecoveryOptions& options)
      : log_(log), replay_(replay), options_(options) {}

  Result<RecoveryResult> run();

 private:
  Status load_checkpoint(const CheckpointSummary& summary);
  Status load_log(Lsn end_lsn);
  Status load_commit(Lsn first_lsn, Bytes commit, size_t sound, bool& gap);
  Status check_reached(Lsn end_lsn, Lsn mark, bool gap) const;
  Status report(uint64_t bytes);

  Log& log_;
  Replay& replay_;
  const RecoveryOptions& options_;
  RecoveryResult result_;
  RecoveryProgress progress_;
  Clock::time_point next_report_ = Clock::now();
};

Result<RecoveryResult> Recovery::run() {
  const Result<Lsn> mark = log_.mark();
  if (!mark.ok()) return mark.status();
  const auto newest = log_.newest_checkpoint();
  if (!newest.ok()) return newest.status();
  result_.checkpoint = newest.value();
  progress_.bytes_total = log_.disk_bytes();

  Lsn end_lsn = 0;
  if (result_.checkpoint.has_value()) {
    const Clock::time_point start = Clock::now();
    if (Status status = load_checkpoint(*result_.checkpoint); !status.ok()) return status;
    result_.checkpoint_seconds = seconds_since(start);
    result_.last_lsn = result_.checkpoint->begin_lsn;
    end_lsn = result_.checkpoint->end_lsn;
  }
  const Clock::time_point start = Clock::now();
  if (Status status = load_log(end_lsn); !status.ok()) return status;
  Status finished;
  progress_.read_all = true;
  next_report_ = Clock::time_point::min();
  replay_.finish([&] {
    if (Status status = report(0); !status.ok()) finished = std::move(status);
  });
  if (!finished.ok()) return finished;
  result_.log_seconds = seconds_since(start);
  Result<std::string> position = log_.position_at(result_.last_lsn);
  if (!position.ok()) return position.status();
  result_.position = std::move(*position);
  progress_.bytes_total = progress_.bytes_done;
  next_report_ = Clock::time_point::min();
  if (Status status = report(0); !status.ok()) return status;
  return result_;
}

Status Recovery::load_checkpoint(const CheckpointSummary& summary) {
  const std::string name = "checkpoint " + std::to_string(summary.checkpoint);
  ReadAhead<PieceReader, uint32_t> reader(log_.read_checkpoint(summary.checkpoint),
                                          sound_piece_bytes);
  uint64_t pieces = 0;
  uint64_t records_total = 0;
  uint32_t number = 0;
  Bytes piece;
  size_t sound = 0;
  while (reader.next(number, piece, sound)) {
    const Result<OpenedPiece> opened = open_piece(piece, sound);
    if (!opened.ok()) {
      return damaged(name + ", piece " + std::to_string(number) + ": " + opened.status().message());
    }
    const auto& [header, records] = *opened;
    if (number != pieces || header.number != number || header.checkpoint != summary.checkpoint) {
      return damaged(name + ": piece " + std::to_string(pieces) + " is missing");
    }
    if (!replay_.apply(records, header.records)) {
      return damaged(name + ", piece " + std::to_string(number) + ": invalid records");
    }
    ++pieces;
    records_total += header.records;
    if (Status status = report(piece.size()); !status.ok()) return status;
  }
  if (Status status = reader.status(); !status.ok()) return status;
  if (pieces != summary.pieces || records_total != summary.records) {
    return damaged(name + " has " + std::to_string(pieces) + " pieces with " +
                   std::to_string(records_total) + " records; its summary lists " +
                   std::to_string(summary.pieces) + " with " + std::to_string(summary.records));
  }
  return {};
}

Status Recovery::load_log(Lsn end_lsn) {
  const Result<Lsn> mark = log_.mark();
  if (!mark.ok()) return mark.status();
  bool gap = false;
  {
    ReadAhead<LogReader, Lsn> reader(log_.read_from(result_.last_lsn + 1), sound_unit_bytes);
    Lsn first_lsn = 0;
    Bytes commit;
    size_t sound = 0;
    while (!gap && reader.next(first_lsn, commit, sound)) {
      if (Status status = load_commit(first_lsn, commit, sound, gap); !status.ok()) return status;
      if (Status status = report(commit.size()); !status.ok()) return status;
    }
    // Units after a gap are not applied, so an error while reading them does not matter.
    if (Status status = gap ? Status() : reader.status(); !status.ok()) return status;
  }
  if (Status status = check_reached(end_lsn, mark.value(), gap); !status.ok()) return status;
  if (!gap) return {};
  result_.dropped_tail = true;
  return options_.read_only ? Status() : log_.truncate_after(result_.last_lsn);
}

Status Recovery::load_commit(Lsn first_lsn, Bytes commit, size_t sound, bool& gap) {
  const auto place = [first_lsn](uint64_t offset) {
    return "log, commit " + std::to_string(first_lsn) + ", byte " + std::to_string(offset) + ": ";
  };
  Lsn expected = first_lsn;
  UnitCursor cursor(commit, sound);
  while (cursor.next()) {
    const UnitHeader& header = cursor.header();
    // Within a commit lsns are consecutive, so a gap can only be at its start.
    if (header.lsn != expected++) {
      return damaged(place(cursor.offset()) + "lsn " + std::to_string(header.lsn) +
                     " found in place of " + std::to_string(expected - 1));
    }
    if (header.lsn <= result_.last_lsn) continue;  // included in the checkpoint
    if (header.lsn != result_.last_lsn + 1) {
      gap = true;
      return {};
    }
    if (!replay_.apply(cursor.records(), header.records)) {
      return damaged(place(cursor.offset()) + "invalid records");
    }
    result_.last_lsn = header.lsn;
    ++result_.units;
    result_.unit_records += header.records;
  }
  if (cursor.damage() != UnitDamage::kNone) {
    return damaged(place(cursor.offset()) + describe(cursor.damage()));
  }
  result_.log_bytes += commit.size();
  return {};
}

Status Recovery::check_reached(Lsn end_lsn, Lsn mark, bool gap) const {
  const std::string ends = gap ? "the log has a gap after lsn " : "the log ends at lsn ";
  if (result_.last_lsn < end_lsn) {
    return damaged(ends + std::to_string(result_.last_lsn) + ", but checkpoint " +
                   std::to_string(result_.checkpoint->checkpoint) + " needs it up to " +
                   std::to_string(end_lsn));
  }
  if (result_.last_lsn < mark) {
    return damaged(ends + std::to_string(result_.last_lsn) + ", but " + log_.mark_name() +
                   " says that it was on disk up to " + std::to_string(mark));
  }
  return {};
}

Status Recovery::report(uint64_t bytes) {
  progress_.bytes_done += bytes;
  const Clock::time_point now = Clock::now();
  if (!options_.on_progress || now < next_report_) return {};
  next_report_ = now + std::chrono::milliseconds(100);
  progress_.bytes_total = std::max(progress_.bytes_total, progress_.bytes_done);
  if (!options_.on_progress(progress_)) return {StatusCode::kCancelled, "recovery was cancelled"};
  return {};
}

}  // namespace

Result<RecoveryResult> recover(Log& log, Replay& replay, const RecoveryOptions& options) {
  return Recovery(log, replay, options).run();
}

}  // namespace sluice
