#include "storage/copy_stream.h"

#include <algorithm>
#include <utility>

#include "engine/base/crc32c.h"
#include "storage/native_numbers.h"

namespace sluice {
namespace {

constexpr size_t kHeadBytes = 40 + kSummaryBytes;
// A position or a mark is a line of text.
constexpr size_t kMaxLineBytes = 4096;
// RocksDB's limit of a value, so no piece or commit is longer.
constexpr uint64_t kMaxBodyBytes = uint64_t{1} << 32;

std::string encode_head(const CopyHead& head) {
  std::string bytes(40, '\0');
  char* const to = bytes.data();
  store(to, kCopyMagic);
  store(to + 4, kCopyVersion);
  store(to + 8, kFormatVersion);
  store(to + 12, static_cast<uint32_t>(head.position.size()));
  store(to + 16, static_cast<uint32_t>(head.mark.size()));
  store(to + 24, head.last_lsn);
  store(to + 32, head.bytes);
  return bytes + encode_summary(head.summary) + head.position + head.mark;
}

Result<CopyHead> decode_head(Bytes bytes) {
  if (bytes.size() < kHeadBytes || load<uint32_t>(bytes.data()) != kCopyMagic) {
    return invalid("this is no copy of a data directory of Sluice");
  }
  const auto version = load<uint32_t>(bytes.data() + 4);
  const auto format = load<uint32_t>(bytes.data() + 8);
  if (version != kCopyVersion || format < kOldestFormatVersion || format > kFormatVersion) {
    return Status(StatusCode::kUnsupported, "the copy has version " + std::to_string(version) +
                                                " and format " + std::to_string(format) +
                                                "; this version of Sluice supports " +
                                                std::to_string(kCopyVersion) + " and up to " +
                                                std::to_string(kFormatVersion));
  }
  CopyHead head;
  const size_t position = load<uint32_t>(bytes.data() + 12);
  const size_t mark = load<uint32_t>(bytes.data() + 16);
  head.last_lsn = load<uint64_t>(bytes.data() + 24);
  head.bytes = load<uint64_t>(bytes.data() + 32);
  if (position > kMaxLineBytes || mark > kMaxLineBytes ||
      bytes.size() != kHeadBytes + position + mark) {
    return damaged("the head of the copy is damaged: its length is wrong");
  }
  const Result<CheckpointSummary> summary = decode_summary(bytes.substr(40, kSummaryBytes));
  if (!summary.ok()) {
    return damaged("the head of the copy is damaged: " + summary.status().message());
  }
  head.summary = *summary;
  head.position = bytes.substr(kHeadBytes, position);
  head.mark = bytes.substr(kHeadBytes + position);
  if (head.last_lsn < head.summary.end_lsn) {
    return Status(StatusCode::kDamaged, "the copy ends at lsn " + std::to_string(head.last_lsn) +
                                            ", but its checkpoint needs the log up to " +
                                            std::to_string(head.summary.end_lsn));
  }
  return head;
}

uint32_t header_crc(Bytes header) { return crc32c(header.substr(4)); }

Lsn last_lsn_of(Bytes commit) {
  // Its checksums are checked where it arrives.
  UnitCursor cursor(commit, commit.size());
  Lsn last = 0;
  while (cursor.next()) last = cursor.header().lsn;
  return last;
}

bool follows_gap(Bytes commit) {
  UnitCursor cursor(commit, commit.size());
  return cursor.next() && (cursor.header().flags & kUnitFollowsGap) != 0;
}

// The last commit before a gap that was left on purpose, and its position. Any other gap is damage:
// where the copy arrives it is refused.
Status find_end(Log& log, CopyHead& head) {
  head.last_lsn = head.summary.begin_lsn;
  const std::unique_ptr<LogReader> reader = log.read_from(head.last_lsn + 1);
  Lsn first_lsn = 0;
  Bytes commit;
  while (reader->next(first_lsn, commit)) {
    if (first_lsn > head.last_lsn + 1 && follows_gap(commit)) break;
    head.last_lsn = std::max(head.last_lsn, last_lsn_of(commit));
  }
  if (!reader->status().ok()) return reader->status();
  Result<std::string> position = log.position_at(head.last_lsn);
  if (!position.ok()) return position.status();
  head.position = std::move(*position);
  return {};
}

}  // namespace

bool begins_copy(Bytes bytes) {
  return bytes.size() >= kCopyItemBytes + 4 &&
         header_crc(bytes.substr(0, kCopyItemBytes)) == load<uint32_t>(bytes.data()) &&
         load<uint64_t>(bytes.data() + 16) == static_cast<uint64_t>(CopyItem::kHead) &&
         load<uint32_t>(bytes.data() + kCopyItemBytes) == kCopyMagic;
}

// --- Reading a log -------------------------------------------------------------------------------

Result<std::unique_ptr<CopyReader>> CopyReader::open(Log& log, std::string mark) {
  std::unique_ptr<CopyReader> reader(new CopyReader());
  CopyHead& head = reader->head_;
  head.mark = std::move(mark);
  head.bytes = log.disk_bytes();
  for (;;) {
    auto newest = log.newest_checkpoint();
    if (!newest.ok()) return newest.status();
    if (!newest->has_value()) return invalid("there is no checkpoint yet");
    head.summary = **newest;
    if (Status status = find_end(log, head); !status.ok()) return status;
    // A reader keeps what is there when it is made: everything up to that end.
    reader->pieces_ = log.read_checkpoint(head.summary.checkpoint);
    reader->commits_ = log.read_from(head.summary.begin_lsn + 1);
    // A checkpoint and its log are removed only behind the next one.
    newest = log.newest_checkpoint();
    if (!newest.ok()) return newest.status();
    if (newest->has_value() && (*newest)->checkpoint == head.summary.checkpoint) return reader;
  }
}

bool CopyReader::give(CopyItem kind, Bytes& header, Bytes body) {
  header_.resize(kCopyItemBytes);
  char* const to = header_.data();
  store(to + 4, crc32c(body));
  store(to + 8, uint64_t{body.size()});
  store(to + 16, number_++ << 8 | static_cast<uint64_t>(kind));
  store(to, header_crc(header_));
  header = header_;
  return true;
}

bool CopyReader::next(Bytes& header, Bytes& body) {
  if (at_ == At::kHead) {
    at_ = At::kPieces;
    encoded_head_ = encode_head(head_);
    body = encoded_head_;
    return give(CopyItem::kHead, header, body);
  }
  if (at_ == At::kPieces) return next_piece(header, body);
  if (at_ == At::kCommits) return next_commit(header, body);
  return false;
}

bool CopyReader::next_piece(Bytes& header, Bytes& body) {
  uint32_t number = 0;
  if (pieces_->next(number, body)) return give(CopyItem::kPiece, header, body);
  status_ = pieces_->status();
  pieces_.reset();
  at_ = status_.ok() ? At::kCommits : At::kEnded;
  return status_.ok() && next_commit(header, body);
}

bool CopyReader::next_commit(Bytes& header, Bytes& body) {
  Lsn first_lsn = 0;
  if (reached_ < head_.last_lsn && commits_->next(first_lsn, body) && first_lsn <= head_.last_lsn) {
    reached_ = last_lsn_of(body);
    return give(CopyItem::kCommit, header, body);
  }
  status_ = commits_->status();
  commits_.reset();
  at_ = At::kEnded;
  body = {};
  return status_.ok() && give(CopyItem::kEnd, header, body);
}

// --- Checking a stream ---------------------------------------------------------------------------

Status CopyChecker::damaged(const std::string& what) const {
  return {StatusCode::kDamaged, "the copy is damaged at item " + std::to_string(number_) +
                                    ", before byte " + std::to_string(bytes_) + ": " + what};
}

Status CopyChecker::finish() const {
  return ended_ ? Status() : damaged("it ends before it is whole");
}

Status CopyChecker::take(Bytes bytes) {
  bool in_header = wanted_ == kCopyItemBytes && buffer_.size() < kCopyItemBytes;
  while (!bytes.empty()) {
    if (ended_) return damaged("something follows its end");
    const size_t count = std::min<uint64_t>(bytes.size(), wanted_ - buffer_.size());
    buffer_ += bytes.substr(0, count);
    bytes.remove_prefix(count);
    bytes_ += count;
    if (buffer_.size() < wanted_) return {};
    if (in_header) {
      if (Status status = take_header(); !status.ok()) return status;
      in_header = false;
      if (buffer_.size() < wanted_) continue;
    }
    if (Status status = take_item(Bytes(buffer_).substr(kCopyItemBytes)); !status.ok()) {
      return status;
    }
    ++number_;
    buffer_.clear();
    wanted_ = kCopyItemBytes;
    in_header = true;
  }
  return {};
}

Status CopyChecker::take_header() {
  const char* const from = buffer_.data();
  if (load<uint32_t>(from) != header_crc(buffer_)) {
    return number_ == 0 ? invalid("this is no copy of a data directory of Sluice")
                        : damaged("checksum mismatch of a header");
  }
  body_crc_ = load<uint32_t>(from + 4);
  const auto length = load<uint64_t>(from + 8);
  const auto tail = load<uint64_t>(from + 16);
  kind_ = static_cast<CopyItem>(tail & 0xff);
  if (tail >> 8 != number_) return damaged("item " + std::to_string(tail >> 8) + " in its place");
  if (length >= kMaxBodyBytes) return damaged("a length that is not possible");
  if ((kind_ == CopyItem::kHead) != (number_ == 0)) return damaged("its head is not the first");
  wanted_ = kCopyItemBytes + length;
  return {};
}

Status CopyChecker::take_item(Bytes body) {
  if (crc32c(body) != body_crc_) return damaged("checksum mismatch");
  switch (kind_) {
    case CopyItem::kHead:
      return take_head(body);
    case CopyItem::kPiece:
      return take_piece(body);
    case CopyItem::kCommit:
      return take_commit(body);
    case CopyItem::kEnd:
      return take_end();
  }
  return damaged("an unknown kind of item");
}

Status CopyChecker::take_head(Bytes body) {
  Result<CopyHead> head = decode_head(body);
  if (!head.ok()) return head.status();
  head_ = std::move(*head);
  reached_ = head_.summary.begin_lsn;
  return sink_ != nullptr ? sink_->begin(head_) : Status();
}

Status CopyChecker::take_piece(Bytes body) {
  const Result<OpenedPiece> opened = open_piece(body);
  if (!opened.ok()) return damaged(opened.status().message());
  const PieceHeader& header = opened->header;
  if (has_commit_ || header.checkpoint != head_.summary.checkpoint || header.number != pieces_) {
    return damaged("a piece that does not belong there");
  }
  ++pieces_;
  records_ += header.records;
  return sink_ != nullptr ? sink_->add_piece(header.number, body) : Status();
}

Status CopyChecker::take_commit(Bytes body) {
  UnitCursor cursor(body);
  Lsn first_lsn = 0;
  Lsn last_lsn = 0;
  while (cursor.next()) {
    const Lsn lsn = cursor.header().lsn;
    if (first_lsn == 0) first_lsn = lsn;
    if (last_lsn != 0 && lsn != last_lsn + 1) return damaged("a commit that is not whole");
    last_lsn = lsn;
  }
  if (cursor.damage() != UnitDamage::kNone) return damaged(describe(cursor.damage()));
  // The first one may hold units that the checkpoint has.
  const bool follows = has_commit_ ? first_lsn == reached_ + 1 : first_lsn <= reached_ + 1;
  if (first_lsn == 0 || !follows || last_lsn > head_.last_lsn) {
    return damaged("the commit " + std::to_string(first_lsn) + " behind lsn " +
                   std::to_string(reached_));
  }
  has_commit_ = true;
  reached_ = std::max(reached_, last_lsn);
  return sink_ != nullptr ? sink_->add_commit(first_lsn, body) : Status();
}

Status CopyChecker::take_end() {
  if (pieces_ != head_.summary.pieces || records_ != head_.summary.records) {
    return damaged("it has " + std::to_string(pieces_) + " pieces with " +
                   std::to_string(records_) + " records; its summary lists " +
                   std::to_string(head_.summary.pieces) + " with " +
                   std::to_string(head_.summary.records));
  }
  if (reached_ != head_.last_lsn) {
    return damaged("its log ends at lsn " + std::to_string(reached_) + " instead of " +
                   std::to_string(head_.last_lsn));
  }
  Status status = sink_ != nullptr ? sink_->end() : Status();
  ended_ = status.ok();
  return status;
}

}  // namespace sluice
