// NameLookup: the addresses of a host by the system's resolver, which may take as long as it likes.
//
// Why not Asio's resolver: an I/O thread's context is not woken by it (net/io/io_thread.h), and its
// end waits for a lookup that hangs. Here a thread of its own looks, and nobody waits for it: it
// holds nothing but the result.
//
// Threads: begin() by any; what it returns by any.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>
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

  // An address is known at once. `port` is a number.
  static std::shared_ptr<NameLookup> begin(const std::string& host, const std::string& port);

  // Whether it has ended; then `result` is what came of it.
  bool take(Result& result);

 private:
  void finish(Result result);

  Mutex mutex_;
  bool done_ GUARDED_BY(mutex_) = false;
  Result result_ GUARDED_BY(mutex_);
};

}  // namespace sluice
