// Reads a copy of another node's data (GET /api/v1/checkpoint) from its HTTP side.
//
// HTTP/1.0 without TLS: the copy ends with the connection, and says itself whether it is whole
// (storage/copy_stream.h). Pure functions, which block; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/base/bytes.h"
#include "engine/base/status.h"

namespace sluice {

struct CopySource {
  std::string host;  // a name or an address; IPv6 without brackets
  uint16_t port = 0;
  std::string token;  // of the role admin, or that of `replication-token-file`
};

struct CopyClientOptions {
  int64_t connect_ms = 3000;
  int64_t silence_ms = 20'000;  // the longest wait for the next byte
  // Asked several times a second; false: kCancelled.
  std::function<bool()> goes_on;
};

// Hands the bytes to `take` as they come, until the connection ends; an error of `take` ends it.
// Errors: kIoError (in words that name the address) if the node cannot be reached or is silent;
// kRefused if it does not accept the token, kInvalid if it refuses otherwise, with what it says;
// kStale if it has no checkpoint yet but is making one.
Status fetch_copy(const CopySource& source, const CopyClientOptions& options,
                  const std::function<Status(Bytes)>& take);

}  // namespace sluice
