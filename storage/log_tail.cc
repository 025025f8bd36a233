#include "storage/log_tail.h"

#include <utility>

#include "storage/format.h"
#include "storage/group_mark.h"

namespace sluice {
namespace {

std::string name_of(uint64_t seq) { return "frame " + std::to_string(seq); }

Status damaged_at(uint64_t seq, const std::string& what) {
  return {StatusCode::kDamaged, name_of(seq) + " of the replicated log: " + what};
}

// Units with the lsns from `first` to `last`, nothing else. `moves`: see TailCommit.
Status check_units(uint64_t seq, Bytes units, Lsn first, Lsn last, bool& moves) {
  Lsn expected = first;
  UnitCursor cursor(units);
  while (cursor.next()) {
    moves |= (cursor.header().flags & kUnitMoves) != 0;
    if (cursor.header().lsn != expected) {
      return damaged_at(seq, "lsn " + std::to_string(cursor.header().lsn) + " found in place of " +
                                 std::to_string(expected));
    }
    ++expected;
  }
  if (cursor.damage() != UnitDamage::kNone) {
    return damaged_at(seq, "its commit, byte " + std::to_string(cursor.offset()) + ": " +
                               describe(cursor.damage()));
  }
  if (expected != last + 1) {
    return damaged_at(seq, "its commit ends at lsn " + std::to_string(expected - 1) +
                               " instead of " + std::to_string(last));
  }
  return {};
}

}  // namespace

Status check_continues(const LogPosition& at, const RemoteFrames& frames, Bytes trim) {
  const std::string followed =
      "this node has followed the replicated log up to frame " + std::to_string(at.seq) + ", and ";
  const auto restored = [&](const std::string& why) {
    return invalid(followed + why + ": etcd was restored from an old backup. " + kLeadAdvice);
  };
  LogPosition mark;
  if (!trim.empty()) {
    Result<LogPosition> decoded = decode_position(trim);
    if (!decoded.ok()) return decoded.status();
    mark = std::move(*decoded);
  }
  // First, since a frame before the mark says nothing: a late try of its APPEND may have brought it
  // back after it was trimmed.
  if (mark.seq > at.seq) {
    return {StatusCode::kStale,
            followed + "the log begins behind frame " + std::to_string(mark.seq)};
  }
  if (at.seq != 0 && !frames.frames.empty() && frames.frames.front().seq == at.seq) {
    const Bytes bytes = frames.frames.front().bytes;
    Result<Frame> frame = decode_frame(bytes);
    if (!frame.ok()) return frame.status();
    if (extend_chain(frame->header.previous_chain, bytes) == at.chain) return {};
    return restored("the log has another frame there");
  }
  if (trim.empty()) return at.seq == 0 ? Status() : restored("the log ends before it");
  if (mark.seq == at.seq && mark.chain == at.chain) return {};
  return restored("the log does not hold it");
}

Status LogTail::add(uint64_t seq, Bytes bytes, std::vector<TailCommit>& commits) {
  if (seq <= position_.seq) return {};
  Result<Frame> decoded = decode_frame(bytes);
  if (!decoded.ok()) {
    return {decoded.status().code(),
            name_of(seq) + " of the replicated log: " + decoded.status().message()};
  }
  if (decoded->header.seq != seq) {
    return damaged_at(seq, "it says that it is " + name_of(decoded->header.seq));
  }
  const uint64_t epoch = decoded->header.epoch;
  if (epoch < position_.epoch) return {};  // removed from the log
  if (part_frames_ != 0 && epoch != part_header_.epoch) {
    if (epoch < part_header_.epoch) return {};
    drop_part();  // a later epoch began behind position()
  }
  if (seq < next_seq()) return {};
  const uint32_t chain = extend_chain(decoded->header.previous_chain, bytes);
  keep_early(seq, {std::move(*decoded), chain, bytes.size()});
  while (!early_.empty() && early_.begin()->first <= next_seq()) {
    if (part_frames_ != 0 && early_.begin()->second.frame.header.epoch > part_header_.epoch) {
      drop_part();  // a later epoch began behind position(); its first frame has not come
      continue;
    }
    const auto next = early_.extract(early_.begin());
    if (next.key() < next_seq()) continue;
    if (Status status = take(next.mapped(), commits); !status.ok()) return status;
  }
  return {};
}

void LogTail::keep_early(uint64_t seq, Held held) {
  const auto known = early_.find(seq);
  if (known != early_.end()) {
    if (known->second.frame.header.epoch < held.frame.header.epoch) {
      known->second = std::move(held);
    }
    return;
  }
  early_.emplace(seq, std::move(held));
  const size_t room = kMaxEarly + (seq == next_seq() ? 1 : 0);
  if (early_.size() > room) early_.erase(std::prev(early_.end()));
}

Status LogTail::take(const Held& held, std::vector<TailCommit>& commits) {
  const FrameHeader& header = held.frame.header;
  const uint64_t epoch = part_frames_ == 0 ? position_.epoch : part_header_.epoch;
  if (header.epoch < epoch) return {};  // removed from the log
  const uint32_t expected = part_frames_ == 0 ? position_.chain : part_chain_;
  if (header.previous_chain != expected) {
    return damaged_at(header.seq, "epoch " + std::to_string(header.epoch) + ", chain " +
                                      std::to_string(header.previous_chain) +
                                      ", but the frames before it have " +
                                      std::to_string(expected));
  }
  if (header.first_lsn != position_.lsn + 1 || header.last_lsn < header.first_lsn) {
    return damaged_at(header.seq, "lsns " + std::to_string(header.first_lsn) + " to " +
                                      std::to_string(header.last_lsn) + " after lsn " +
                                      std::to_string(position_.lsn));
  }
  if (part_frames_ != 0 && header.last_lsn != part_header_.last_lsn) {
    return damaged_at(header.seq, "its commit ends at lsn " + std::to_string(header.last_lsn) +
                                      ", in the frame before it at " +
                                      std::to_string(part_header_.last_lsn));
  }
  part_ += held.frame.payload;
  ++part_frames_;
  part_bytes_ += held.bytes;
  part_header_ = header;
  part_chain_ = held.chain;
  return header.last_of_commit ? finish(held.frame, commits) : Status();
}

Status LogTail::finish(const Frame& frame, std::vector<TailCommit>& commits) {
  const FrameHeader& header = frame.header;
  bool moves = false;
  if (Status status = check_units(header.seq, part_, header.first_lsn, header.last_lsn, moves);
      !status.ok()) {
    drop_part();
    return status;
  }
  position_.epoch = header.epoch;
  position_.seq = header.seq;
  position_.lsn = header.last_lsn;
  position_.chain = part_chain_;
  position_.bytes += part_bytes_;
  commits.push_back({std::exchange(part_, {}), header.first_lsn, position_, moves});
  drop_part();
  return {};
}

void LogTail::drop_part() {
  part_.clear();
  part_frames_ = 0;
  part_bytes_ = 0;
}

void LogTail::drop_unfinished() {
  drop_part();
  early_.clear();
}

}  // namespace sluice
