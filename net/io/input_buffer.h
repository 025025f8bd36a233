// InputBuffer: the input of a connection that has not been executed: the size and place of each
// read, and requests with a large argument.
//
// A large argument gets a block of its final size and is stored there like a value in an entry of
// the keyspace: it is not copied as the buffer grows, and SET turns the block into the entry. The
// bytes of a block do not move. The journal record of such a SET is built while the value arrives,
// because copying it all at once would hold the shard for long, mostly for page faults.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "engine/base/bytes.h"
#include "engine/keyspace/lent_word.h"
#include "net/resp/resp_parser.h"

namespace sluice {

class InputBuffer {
 public:
  // Input that no request has consumed yet.
  std::span<char> rest() { return {bytes_.data() + begin_, bytes_.size() - begin_}; }
  size_t size() const { return bytes_.size() - begin_; }
  bool empty() const { return begin_ == bytes_.size(); }
  size_t free_bytes() const { return bytes_.capacity() - bytes_.size(); }

  // The next request needs this many bytes to be complete.
  void need(size_t bytes) { need_bytes_ = bytes; }
  // Returns room for the next read. `parser` has seen the present input; `recorded_in` is the
  // database that a SET would write to, if there is a journal.
  std::span<char> make_room(const RespParser& parser, std::optional<int> recorded_in);
  // Called when this many bytes have been read into it.
  void advance(size_t bytes);
  // Called when a request of this size has run, or had nothing to run.
  void consume(size_t bytes) {
    if (block_) return consume_block(bytes);
    begin_ += bytes;
  }
  void skip(size_t bytes) { begin_ += bytes; }

  // --- Blocks ---
  bool in_block() const { return block_.has_value(); }
  // Whether the block holds exactly this request, so that its large argument may be lent to the
  // command.
  bool is_whole_block(size_t bytes) const {
    return begin_ == block_->begin && begin_ + bytes == bytes_.size();
  }
  bool is_lent(Bytes argument) const;
  LentWord lend() { return {bytes_, block_->record}; }

 private:
  struct Block {
    size_t begin = 0;  // where its request begins
    // The record of the SET that is arriving (LentWord::record): up to where in the block the value
    // has been copied, and where the value ends. Empty: none.
    ByteBuffer record;
    size_t recorded = 0;
    size_t record_end = 0;
  };

  void consume_block(size_t bytes);
  void enter_block(const RespParser& parser, std::optional<int> recorded_in);
  void begin_record(const RespParser& parser, int database);
  void go_on_with_record();

  ByteBuffer bytes_;
  size_t begin_ = 0;  // the first byte of the next request
  std::optional<Block> block_;
  size_t need_bytes_ = 1;
  // Reads start small, because most connections send little, and grow when a read was full.
  size_t read_bytes_ = 4U << 10;
};

}  // namespace sluice
