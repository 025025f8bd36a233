// Reply: the sink for the answer of a command.
//
// Handlers see only this interface. RespReply writes RESP2 or RESP3 into a buffer; scripts have a
// sink that builds Lua values without encoding RESP. A handler writes exactly one value. A sink is
// used by one thread at a time.
#pragma once

#include <cstdint>

#include "engine/base/bytes.h"
#include "engine/base/numbers.h"

namespace sluice {

class ErrorCounts;

class Reply {
 public:
  virtual ~Reply() = default;

  // A status such as `OK`. It must not hold bytes from a client, because it is not length-prefixed.
  virtual void simple(Bytes text) = 0;
  // The whole message with its code: "ERR ...", "WRONGTYPE ...". CR and LF are replaced by spaces,
  // so that client bytes in a message cannot end it.
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

  // For answers whose length is known only at the end: call `open_array` before the elements, and
  // `close_array` after them with its result and the real count.
  virtual size_t open_array() = 0;
  virtual void close_array(size_t mark, size_t count) = 0;
  virtual void close_map(size_t mark, size_t pairs) = 0;

  // 2 or 3. Some commands reply a different structure in RESP3, not only other types.
  virtual int protocol() const = 0;
  // HELLO switches the protocol before its own reply.
  virtual void set_protocol(int) {}

  // The buffer that RESP is written to, or null if this sink writes no RESP.
  virtual ByteBuffer* buffer() { return nullptr; }

  // Like number(), in decimal notation without an exponent.
  virtual void decimal(double value);

  // Counts every error by its code in `counts`, which must outlive the reply. Without it errors are
  // not counted.
  void count_errors_in(ErrorCounts& counts) { error_counts_ = &counts; }
  // An error that was already counted where it occurred, which a script passes on.
  void repeat_error(Bytes message);
  // Errors written since the last attribute_errors(). EXEC does not fail for errors of its
  // commands.
  uint64_t unattributed_errors() const { return errors_ - attributed_errors_; }
  void attribute_errors() { attributed_errors_ = errors_; }

  void ok() { simple("OK"); }
  void bulk_integer(int64_t value) {
    char text[kMaxIntegerText];
    bulk({text, format_i64(text, value)});
  }

 protected:
  // Every error is noted here.
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

// Error texts that many commands share, identical to those of Redis 7.0.
namespace errors {
inline constexpr Bytes kWrongType =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
inline constexpr Bytes kSyntax = "ERR syntax error";
inline constexpr Bytes kNotInteger = "ERR value is not an integer or out of range";
inline constexpr Bytes kNotFloat = "ERR value is not a valid float";
inline constexpr Bytes kNoSuchKey = "ERR no such key";
inline constexpr Bytes kIndexOutOfRange = "ERR index out of range";
inline constexpr Bytes kOutOfMemory = "OOM command not allowed when used memory > 'maxmemory'.";
inline constexpr Bytes kReadOnly = "READONLY You can't write against a read only replica.";
inline constexpr Bytes kNotPositive = "ERR value is out of range, must be positive";
}  // namespace errors

}  // namespace sluice
