// Where a command writes its answer.
//
// Reply is the interface that handlers see; RespReply writes RESP2 or RESP3 into a buffer; the
// script bridge has its own sink that builds Lua values, so that no RESP stands between. A handler
// writes exactly one value. A sink is used by one thread at a time.
#pragma once

#include <cstdint>

#include "engine/base/bytes.h"
#include "engine/base/numbers.h"

namespace sluice {

class ErrorCounts;

class Reply {
 public:
  virtual ~Reply() = default;

  // A status such as `OK`. Never client bytes: it is not length-prefixed.
  virtual void simple(Bytes text) = 0;
  // The whole message with its code: "ERR ...", "WRONGTYPE ...". CR and LF become spaces, so that
  // client bytes in a message cannot break out of it.
  virtual void error(Bytes message) = 0;
  virtual void integer(int64_t value) = 0;
  virtual void bulk(Bytes bytes) = 0;
  virtual void null() = 0;
  virtual void null_array() = 0;  // differs from null() in RESP2 only
  // Headers: as many values as announced must follow (twice as many for a map).
  virtual void array(size_t count) = 0;
  virtual void map(size_t pairs) = 0;
  virtual void set(size_t count) = 0;
  virtual void push(size_t count) = 0;
  virtual void number(double value) = 0;  // RESP3 double, RESP2 bulk
  virtual void boolean(bool value) = 0;   // RESP3 boolean, RESP2 1 or 0
  virtual void big_number(Bytes digits) = 0;
  virtual void verbatim(Bytes format, Bytes text) = 0;  // format: three characters

  // For answers whose length is known only at the end: `open_array` before the elements,
  // `close_array` after them with its result and the real count.
  virtual size_t open_array() = 0;
  virtual void close_array(size_t mark, size_t count) = 0;
  virtual void close_map(size_t mark, size_t pairs) = 0;
  virtual void close_set(size_t mark, size_t count) = 0;

  // 2 or 3: some commands answer in other shapes, not only in other types.
  virtual int protocol() const = 0;
  // HELLO changes it for its own reply already.
  virtual void set_protocol(int) {}

  // Where RESP is written; null: none is.
  virtual ByteBuffer* buffer() { return nullptr; }

  // As number(), in decimal notation without an exponent.
  virtual void decimal(double value);

  // Where every error is counted by its code; outlives the reply's use. Without it none is.
  void count_errors_in(ErrorCounts& counts) { error_counts_ = &counts; }
  // An error that has been counted where it came up: a script passes it on.
  void repeat_error(Bytes message);
  // Errors written since they were last said to be some command's: EXEC does not fail for those of
  // its commands.
  uint64_t unattributed_errors() const { return errors_ - attributed_errors_; }
  void attribute_errors() { attributed_errors_ = errors_; }

  void ok() { simple("OK"); }
  void bulk_integer(int64_t value) {
    char text[kMaxIntegerText];
    bulk({text, format_i64(text, value)});
  }

 protected:
  // Every error passes here.
  void note_error(Bytes message) {
    ++errors_;
    if (error_counts_ != nullptr) count_error(message);
  }

 private:
  void count_error(Bytes message);

  uint64_t errors_ = 0;
  uint64_t attributed_errors_ = 0;
  ErrorCounts* error_counts_ = nullptr;
};

class RespReply final : public Reply {
 public:
  RespReply(ByteBuffer& out, int protocol) : out_(out), protocol_(protocol) {}

  void set_protocol(int protocol) override { protocol_ = protocol; }

  void simple(Bytes text) override;
  void error(Bytes message) override;
  void integer(int64_t value) override;
  void bulk(Bytes bytes) override;
  void null() override;
  void null_array() override;
  void array(size_t count) override;
  void map(size_t pairs) override;
  void set(size_t count) override;
  void push(size_t count) override;
  void number(double value) override;
  void decimal(double value) override;
  void boolean(bool value) override;
  void big_number(Bytes digits) override;
  void verbatim(Bytes format, Bytes text) override;
  size_t open_array() override { return out_.size(); }
  void close_array(size_t mark, size_t count) override;
  void close_map(size_t mark, size_t pairs) override;
  void close_set(size_t mark, size_t count) override;
  int protocol() const override { return protocol_; }

  ByteBuffer* buffer() override { return &out_; }

  ByteBuffer& out() { return out_; }

 private:
  void header(char type, int64_t value);
  void insert_header(size_t mark, char type, size_t value);
  void number_text(Bytes text);

  ByteBuffer& out_;
  int protocol_;
};

// Error texts that many commands share, as Redis 7.0 has them.
namespace errors {
inline constexpr Bytes kWrongType =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
inline constexpr Bytes kSyntax = "ERR syntax error";
inline constexpr Bytes kNotInteger = "ERR value is not an integer or out of range";
inline constexpr Bytes kNotFloat = "ERR value is not a valid float";
inline constexpr Bytes kNoSuchKey = "ERR no such key";
inline constexpr Bytes kIndexOutOfRange = "ERR index out of range";
inline constexpr Bytes kOutOfMemory = "OOM command not allowed when used memory > 'maxmemory'.";
inline constexpr Bytes kNotPositive = "ERR value is out of range, must be positive";
}  // namespace errors

}  // namespace sluice
