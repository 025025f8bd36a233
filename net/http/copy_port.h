// CopyPort: sends copies of the server's data (storage/copy_stream.h), each read by a thread of its
// own. Implemented by net/server/server_copies.h.
//
// Threads: begin() by any; a CopyTarget as it says.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/status.h"

namespace sluice {

// Where the bytes of one copy go.
class CopyTarget {
 public:
  virtual ~CopyTarget() = default;
  // The next part; blocks until there is room. False: nobody wants it any more. The copy's thread.
  virtual bool put(std::string part) = 0;
  // Everything was put, or reading failed. The last call of the copy's thread.
  virtual void end(const Status& status) = 0;
  // Any thread: put() returns false from now on.
  virtual void cut() = 0;
};

class CopyPort {
 public:
  virtual ~CopyPort() = default;
  enum class Answer : uint8_t {
    kBegun,
    kNoCheckpoint,  // not yet; one was asked for
    kTooMany,       // as many copies as are allowed are being sent
    kNothingKept,   // the server keeps nothing on the disk
  };
  // Only after kBegun the target is used, perhaps before begin() has returned.
  virtual Answer begin(std::shared_ptr<CopyTarget> target) = 0;
};

}  // namespace sluice
