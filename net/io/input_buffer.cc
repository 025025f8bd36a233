#include "net/io/input_buffer.h"

#include <algorithm>
#include <utility>

#include "engine/base/varint.h"
#include "engine/keyspace/entry.h"
#include "engine/unit/effects.h"

namespace sluice {

namespace {

constexpr size_t kMaxReadBytes = 64U << 10;
constexpr size_t kKeptInputBytes = 64U << 10;
constexpr size_t kLargeArgument = 1U << 20;
// Memory follows what has arrived: a header that announces 512 MB costs nothing yet. The whole
// block is allocated when this fraction of it has arrived.
constexpr size_t kBlockParts = 64;

}  // namespace

std::span<char> InputBuffer::make_room(const RespParser& parser, std::optional<int> recorded_in) {
  if (empty()) {
    bytes_.clear();
    bytes_.shrink(kKeptInputBytes);
    begin_ = 0;
  }
  if (block_ && begin_ != block_->begin) {
    // Its request is complete, but more has been read.
    block_.reset();
    bytes_.erase_front(begin_);
    bytes_.shrink(kKeptInputBytes);
    begin_ = 0;
  }
  const RespParser::Argument bulk = parser.awaited_bulk();
  size_t room = 0;
  if (block_) {
    // No byte of the next request, which would lie in the entry's block.
    room = bulk.length != 0 ? need_bytes_ : read_bytes_;
  } else {
    bytes_.erase_front(begin_);
    begin_ = 0;
    if (bulk.length >= kLargeArgument &&
        (bytes_.size() - bulk.offset) * kBlockParts >= bulk.length) {
      enter_block(parser, recorded_in);
      room = need_bytes_;
    } else {
      const size_t wanted = std::min(need_bytes_, std::max(bytes_.size(), kMaxReadBytes));
      room = std::max(wanted, read_bytes_);
    }
  }
  return {bytes_.grow(room), room};
}

void InputBuffer::advance(size_t bytes) {
  bytes_.advance(bytes);
  if (block_) go_on_with_record();
  if (bytes >= read_bytes_ && read_bytes_ < kMaxReadBytes) read_bytes_ *= 4;
}

void InputBuffer::consume_block(size_t bytes) {
  // Empty: the command has taken the block.
  begin_ = bytes_.empty() ? 0 : begin_ + bytes;
  if (!empty()) return;
  bytes_ = ByteBuffer();
  begin_ = 0;
  block_.reset();
}

bool InputBuffer::is_lent(Bytes argument) const {
  return argument.data() == bytes_.data() + Entry::kLongValueAt;
}

void InputBuffer::enter_block(const RespParser& parser, std::optional<int> recorded_in) {
  const RespParser::Argument bulk = parser.awaited_bulk();
  // The words before it are nearly always short.
  const size_t before =
      bulk.offset <= Entry::kLongValueAt ? Entry::kLongValueAt - bulk.offset : size_t{0};
  ByteBuffer bytes;
  bytes.grow(before + bulk.offset + bulk.length + kMaxReadBytes);
  bytes.advance(before);
  bytes.append(bytes_.view());
  bytes_ = std::move(bytes);
  begin_ = before;
  block_ = Block{};
  block_->begin = before;
  if (recorded_in) begin_record(parser, *recorded_in);
}

void InputBuffer::begin_record(const RespParser& parser, int database) {
  const RespParser::Argument bulk = parser.awaited_bulk();
  const std::span<const RespParser::Argument> words = parser.complete_bulks();
  const auto word = [&](size_t i) {
    return bytes_.view().substr(begin_ + words[i].offset, words[i].length);
  };
  if (words.size() != 2 || !equals_ignore_case(word(0), "set")) return;
  block_->record.grow(word(1).size() + bulk.length + 5 * kMaxVarintBytes);
  EffectEncoder(block_->record).begin_put_string(database, word(1), bulk.length);
  block_->recorded = begin_ + bulk.offset;
  block_->record_end = block_->recorded + bulk.length;
  go_on_with_record();
}

void InputBuffer::go_on_with_record() {
  if (block_->record.empty()) return;
  const size_t end = std::min(bytes_.size(), block_->record_end);
  if (end <= block_->recorded) return;
  block_->record.append(bytes_.data() + block_->recorded, end - block_->recorded);
  block_->recorded = end;
}

}  // namespace sluice
