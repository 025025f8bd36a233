// Status and Result: how an expected failure is returned. A code to decide by, and a message: of
// storage/, a sentence for a human that names the file; of the rules of the engine (kRefused), the
// whole text of the error reply. Values; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engine/base/check.h"

namespace sluice {

enum class StatusCode : uint8_t {
  kOk,
  kIoError,      // a read, write, sync or rename failed; its effect is unknown
  kNoSpace,      // the same, because the disk is full
  kDamaged,      // bytes are wrong or missing
  kUnsupported,  // written by an unknown version of Sluice
  kLocked,       // another server holds the directory
  kInvalid,      // the request is impossible
  kCancelled,    // stopped on request
  kStale,        // what was written is not a consistent snapshot; writing may be retried
  kRefused,      // the rules do not allow what a client requests; nothing has changed
};

// Success is a null pointer, since every command returns some of them. So one that was moved from
// is a success.
class [[nodiscard]] Status {
 public:
  Status() = default;
  // REQUIRES: not kOk.
  Status(StatusCode code, std::string message)
      : failure_(std::make_unique<Failure>(Failure{code, std::move(message)})) {
    CHECK(code != StatusCode::kOk);
  }
  Status(Status&&) = default;
  Status& operator=(Status&&) = default;
  Status(const Status& other)
      : failure_(other.ok() ? nullptr : std::make_unique<Failure>(*other.failure_)) {}
  Status& operator=(const Status& other) { return *this = Status(other); }

  bool ok() const { return failure_ == nullptr; }
  StatusCode code() const { return ok() ? StatusCode::kOk : failure_->code; }
  // Empty for a success.
  const std::string& message() const { return ok() ? no_message() : failure_->message; }

 private:
  struct Failure {
    StatusCode code;
    std::string message;
  };
  static const std::string& no_message() {
    static const std::string empty;
    return empty;
  }

  std::unique_ptr<Failure> failure_;
};

inline Status io_error(std::string message) { return {StatusCode::kIoError, std::move(message)}; }
inline Status damaged(std::string message) { return {StatusCode::kDamaged, std::move(message)}; }
inline Status invalid(std::string message) { return {StatusCode::kInvalid, std::move(message)}; }
// The whole text of an error reply.
inline Status refusal(std::string error) { return {StatusCode::kRefused, std::move(error)}; }

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT: implicit, so that values can be returned
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
