// How an expected failure is returned: a code to decide by and a message. Of storage/, the message
// is a sentence for a human, which names the file; of the queue's rules (kRefused), it is the whole
// error of the reply, "QFULL pending=3 max=3". Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "engine/base/check.h"

namespace sluice {

enum class StatusCode : uint8_t {
  kOk,
  kIoError,      // a read, write, sync or rename failed; what it should have done is unknown
  kNoSpace,      // the same, because the disk is full
  kDamaged,      // the bytes are there and wrong, or bytes are missing
  kUnsupported,  // written by a version of Sluice that this one does not know
  kLocked,       // another server has the directory
  kInvalid,      // asked for something that cannot be
  kCancelled,    // stopped on request
  kStale,        // what was written tells of no one moment; it can be written again
  kRefused,      // the rules do not allow what a client asks for; nothing has changed
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

// The whole text of an error reply.
inline Status refusal(std::string error) { return {StatusCode::kRefused, std::move(error)}; }

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT: returning a value is the point
  Result(Status status) : status_(std::move(status)) { CHECK(!status_.ok()); }  // NOLINT

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  T& value() {
    CHECK(value_.has_value());
    return *value_;
  }
  const T& value() const {
    CHECK(value_.has_value());
    return *value_;
  }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace sluice
