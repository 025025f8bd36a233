// InputBuffer: what a connection has sent and has not been executed: how much is read into which
// memory, and requests with a large argument.
//
// A large argument gets a block of its final size, in which it stands where a value stands in an
// entry of the keyspace: it is not copied at each step of a growing buffer, and SET makes the block
// the entry. The bytes of a block do not move. The record of such a SET is made as the value comes
// in: copying it all at once would be a long hold, most of it page faults.
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
  // What no request has taken yet.
  std::span<char> rest() { return {bytes_.data() + begin_, bytes_.size() - begin_}; }
  size_t size() const { return bytes_.size() - begin_; }
  bool empty() const { return begin_ == bytes_.size(); }
  size_t free_bytes() const { return bytes_.capacity() - bytes_.size(); }

  // The next request is complete when so many bytes have come in.
  void need(size_t bytes) { need_bytes_ = bytes; }
  // Room for the next read. `parser` has seen what there is; `recorded_in`: the database that a SET
  // would write to, where there is a journal.
  std::span<char> make_room(const RespParser& parser, std::optional<int> recorded_in);
  // So many bytes have been read into it.
  void advance(size_t bytes);
  // A request of so many bytes has run, or there was nothing to run.
  void consume(size_t bytes);
  void skip(size_t bytes) { begin_ += bytes; }

  // --- Blocks ---
  bool in_block() const { return block_.has_value(); }
  // The block holds this request, of so many bytes, and nothing else: its large argument may be
  // lent to the command.
  bool is_whole_block(size_t bytes) const {
    return begin_ == block_->begin && begin_ + bytes == bytes_.size();
  }
  bool is_lent(Bytes argument) const;
  LentWord lend() { return {bytes_, block_->record}; }

 private:
  struct Block {
    size_t begin = 0;  // of its request
    // The record of the SET that is coming in (LentWord::record): up to where in the block it has
    // the value, and where that ends. Empty: there is none.
    ByteBuffer record;
    size_t recorded = 0;
    size_t record_end = 0;
  };

  void enter_block(const RespParser& parser, std::optional<int> recorded_in);
  void begin_record(const RespParser& parser, int database);
  void go_on_with_record();

  ByteBuffer bytes_;
  size_t begin_ = 0;  // the first byte of the next request
  std::optional<Block> block_;
  size_t need_bytes_ = 1;
  // A read begins small, since most connections send little, and grows when it was filled.
  size_t read_bytes_ = 4U << 10;
};

}  // namespace sluice
