// NameLookup: resolves a host name with the system's resolver, which may take any time.
//
// Asio's resolver is not used, because its destructor waits for a lookup that hangs. This uses a
// separate detached thread, which owns nothing but the result.
//
// Threads: any.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/mutex.h"

namespace sluice {

class NameLookup {
 public:
  struct Result {
    std::vector<boost::asio::ip::tcp::endpoint> addresses;
    std::string error;  // empty: there is at least one address
  };

  // An address is resolved at once. `port` is a number.
  static std::shared_ptr<NameLookup> begin(const std::string& host, const std::string& port);

  // Nothing until the lookup has ended.
  std::optional<Result> result();

 private:
  void finish(Result result);

  Mutex mutex_;
  std::optional<Result> result_ GUARDED_BY(mutex_);
};

}  // namespace sluice
