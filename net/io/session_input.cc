// Session's input: how much is read into which memory, and requests with a large argument.
//
// A large argument gets a block of its final size, in which it stands where a value stands in an
// entry of the keyspace: it is not copied at each step of a growing buffer, and SET makes the block
// the entry. While `in_block_` holds, in_ is such a block and its bytes do not move. The record of
// such a SET is made as the value comes in: copying it all at once would be a long hold, most of it
// page faults.
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "engine/base/varint.h"
#include "engine/keyspace/entry.h"
#include "engine/unit/effects.h"
#include "net/io/io_thread.h"
#include "net/io/session.h"
#include "net/tls/tls_stream.h"

namespace sluice {

namespace {

constexpr size_t kMaxReadBytes = 64U << 10;
constexpr size_t kKeptInputBytes = 64U << 10;
constexpr size_t kLargeArgument = 1U << 20;
// Memory follows what has arrived: a header that promises 512 MB costs nothing yet. The whole block
// is asked for when this part of it is there.
constexpr size_t kBlockParts = 64;

}  // namespace

// One read, and what it brought.
void Session::read_input() {
  const size_t room = choose_room();
  char* const to = in_.grow(room);
  const ssize_t count =
      tls_ == nullptr ? ::recv(fd_, to, room, MSG_DONTWAIT) : tls_->read(to, room);
  if (count <= 0) {
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
      readable_ = errno == EINTR;
      if (readable_) continue_later();
      return;
    }
    if (count == 0 && pending_output() != 0 && client_.waiter == nullptr) {
      // The client has said all and may still read: its last replies leave first.
      readable_ = false;
      closing_ = true;
      flush();
    } else {
      close_soon();
    }
    return;
  }
  const auto bytes = static_cast<size_t>(count);
  // A short read has emptied the socket; what comes later is a new edge.
  if (bytes < room && !peer_ended_ && (tls_ == nullptr || tls_->drained())) readable_ = false;
  IoThread::Counters& counters = thread_.counters();
  add_relaxed(counters.input_bytes, bytes);
  add_relaxed(counters.reads, 1);
  in_.advance(bytes);
  if (!record_.empty()) go_on_with_record();
  if (bytes >= read_bytes_ && read_bytes_ < kMaxReadBytes) read_bytes_ *= 4;
  // What is queued in MULTI has not been executed either.
  if (in_.size() - in_begin_ + client_.queued_bytes >
      thread_.state().limits.query_buffer_bytes.load(std::memory_order_relaxed)) {
    spdlog::warn("Closing client that reached max query buffer length: {}", client_.address);
    thread_.state().query_buffer_disconnections.fetch_add(1, std::memory_order_relaxed);
    close();
    return;
  }
  advance();
}

// Into the room for how many bytes the next read goes.
size_t Session::choose_room() {
  if (in_begin_ == in_.size()) {
    in_.clear();
    in_.shrink(kKeptInputBytes);
    in_begin_ = 0;
  }
  if (in_block_ && in_begin_ != block_begin_) {
    // Its request is over, but more has been read.
    in_block_ = false;
    record_ = ByteBuffer();
    in_.erase_front(in_begin_);
    in_.shrink(kKeptInputBytes);
    in_begin_ = 0;
  }
  const RespParser::Argument bulk = parser_.awaited_bulk();
  // No byte of what follows, which would lie in the entry's block.
  if (in_block_) return bulk.length != 0 ? need_bytes_ : read_bytes_;
  in_.erase_front(in_begin_);
  in_begin_ = 0;
  if (bulk.length >= kLargeArgument && (in_.size() - bulk.offset) * kBlockParts >= bulk.length) {
    enter_block(bulk);
    return need_bytes_;
  }
  const size_t wanted = std::min(need_bytes_, std::max(in_.size(), kMaxReadBytes));
  return std::max(wanted, read_bytes_);
}

void Session::enter_block(const RespParser::Argument& bulk) {
  // The words before it are short, nearly always.
  const size_t before =
      bulk.offset <= Entry::kLongValueAt ? Entry::kLongValueAt - bulk.offset : size_t{0};
  ByteBuffer block;
  block.grow(before + bulk.offset + bulk.length + kMaxReadBytes);
  block.advance(before);
  block.append(in_.view());
  in_ = std::move(block);
  in_begin_ = before;
  block_begin_ = before;
  in_block_ = true;
  if (thread_.engine().journal() != nullptr) begin_record(bulk);
}

void Session::begin_record(const RespParser::Argument& bulk) {
  const std::span<const RespParser::Argument> words = parser_.complete_bulks();
  const auto word = [&](size_t i) {
    return in_.view().substr(in_begin_ + words[i].offset, words[i].length);
  };
  if (words.size() != 2 || !equals_ignore_case(word(0), "set")) return;
  record_.grow(word(1).size() + bulk.length + 5 * kMaxVarintBytes);
  EffectEncoder(record_).begin_put_string(client_.database, word(1), bulk.length);
  recorded_ = in_begin_ + bulk.offset;
  record_end_ = recorded_ + bulk.length;
  go_on_with_record();
}

void Session::go_on_with_record() {
  const size_t end = std::min(in_.size(), record_end_);
  if (end <= recorded_) return;
  record_.append(in_.data() + recorded_, end - recorded_);
  recorded_ = end;
}

// The command may take the block, so it gets copies of all words but the one that stands in it for
// that. Where more has been read, the block is no longer for one request.
void Session::execute_in_block(const RequestBatch::Item& item, RespReply& reply) {
  if (in_begin_ != block_begin_ || in_begin_ + item.bytes != in_.size()) {
    return execute(item.request, reply);
  }
  std::vector<std::string> copies;
  copies.reserve(item.request.args.size());
  std::vector<Bytes> args(item.request.args.begin(), item.request.args.end());
  for (Bytes& arg : args) {
    if (arg.data() != in_.data() + Entry::kLongValueAt) arg = copies.emplace_back(arg);
  }
  Request request(args);
  LentWord lent{in_, record_};
  request.lent = &lent;
  execute(request, reply);
}

void Session::leave_block() {
  in_ = ByteBuffer();
  record_ = ByteBuffer();
  in_begin_ = 0;
  in_block_ = false;
}

}  // namespace sluice
