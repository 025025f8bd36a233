// The errors of the native queue: a code, then hints `name=value`, as listed in QUEUE.md. Values
// are percent-encoded outside A-Za-z0-9._:- and cut to 64 bytes, so that clients cannot inject
// bytes into the reply stream.
#pragma once

#include <cstdint>
#include <string>

#include "engine/base/bytes.h"
#include "engine/base/status.h"

namespace sluice {

// A value as it appears in hints.
std::string encoded_hint(Bytes value);

class QueueError {
 public:
  explicit QueueError(Bytes code) : text_(code) {}
  QueueError& with(Bytes name, Bytes value);
  QueueError& with(Bytes name, int64_t value);
  QueueError& with(Bytes name, uint64_t value) { return with(name, static_cast<int64_t>(value)); }
  std::string text() const { return text_; }
  Status status() const { return refusal(text_); }

 private:
  std::string text_;
};

// A value of this field is not allowed.
inline Status bad_field(Bytes field) {
  return QueueError("BADFIELD").with("field", field).status();
}

}  // namespace sluice
