#include "storage/commit_buffer.h"

#include <algorithm>
#include <utility>

#include "storage/format.h"

namespace sluice {

void CommitBuffer::append(RecordRun records, uint32_t records_crc, const Stamp& stamp,
                          ByteBuffer* owned, size_t max_unit_bytes) {
  if (bytes_.empty()) first_lsn_ = stamp.lsn;
  const size_t unit_bytes = kUnitHeaderBytes + records.records.size();
  const size_t value_begin = cuts_.empty() ? 0 : cuts_.back().size;
  if (size_ - value_begin + unit_bytes > max_unit_bytes + kUnitHeaderBytes && size_ != value_begin)
      [[unlikely]] {
    cuts_.push_back({bytes_.size(), stamp.lsn, size_});
  }
  char* to = bytes_.grow(owned == nullptr ? unit_bytes : kUnitHeaderBytes);
  encode_unit_header(to, records_crc, static_cast<uint32_t>(records.records.size()), stamp.lsn,
                     stamp.time_ms, records.count, stamp.flags);
  if (owned == nullptr) {
    std::memcpy(to + kUnitHeaderBytes, records.records.data(), records.records.size());
    bytes_.advance(unit_bytes);
  } else {
    bytes_.advance(kUnitHeaderBytes);
    largest_ = std::max(largest_, unit_bytes);
    pieces_.push_back({bytes_.size(), std::move(*owned)});
  }
  last_lsn_ = stamp.lsn;
  ++units_;
  records_ += records.count;
  size_ += unit_bytes;
}

void CommitBuffer::clear() {
  bytes_.clear();
  cuts_.clear();
  pieces_.clear();
  units_ = 0;
  records_ = 0;
  size_ = 0;
  largest_ = 0;
}

void CommitBuffer::seal() {
  for (const Piece& piece : pieces_) {
    seal_unit_header(bytes_.data() + piece.offset - kUnitHeaderBytes, crc32c(piece.records.view()));
  }
}

CommitBuffer::Divided CommitBuffer::divide() const {
  Divided divided;
  std::vector<std::pair<Lsn, size_t>> ends;  // of each value: its lsn, the end of its parts
  const Bytes buffer = bytes_.view();
  size_t at = 0;
  auto piece = pieces_.begin();
  const auto add = [&](size_t end) {
    if (at != end) divided.parts.push_back(buffer.substr(at, end - at));
    at = end;
  };
  const auto end_value = [&](Lsn lsn, size_t end) {
    // A piece at the end belongs to the unit before it.
    for (; piece != pieces_.end() && piece->offset <= end; ++piece) {
      add(piece->offset);
      divided.parts.push_back(piece->records.view());
    }
    add(end);
    ends.emplace_back(lsn, divided.parts.size());
  };
  Lsn first = first_lsn_;
  for (const Cut& cut : cuts_) {
    end_value(first, cut.offset);
    first = cut.first_lsn;
  }
  end_value(first, buffer.size());
  size_t begin = 0;
  for (const auto& [lsn, end] : ends) {
    divided.commits.push_back({lsn, std::span(divided.parts).subspan(begin, end - begin)});
    begin = end;
  }
  return divided;
}

}  // namespace sluice
