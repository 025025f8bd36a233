// ServerCopies: sends copies of a server's data (GET /api/v1/checkpoint), each read by a thread of
// its own.
//
// Threads: begin() by any; stop() by the control thread.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/base/thread.h"
#include "net/http/copy_port.h"
#include "net/server/server_store.h"

namespace sluice {

class ServerCopies final : public CopyPort {
 public:
  static constexpr size_t kMaxCopies = 2;

  // `store` must outlive it.
  explicit ServerCopies(ServerStore& store) : store_(store) {}
  ~ServerCopies() override { stop(); }

  Answer begin(std::shared_ptr<CopyTarget> target) override;
  // Ends all copies, before the store is closed; none begins any more.
  void stop();

 private:
  struct Copy {
    std::shared_ptr<CopyTarget> target;
    std::atomic<bool> done{false};
    Thread thread;
  };

  void send(CopyTarget& target);

  ServerStore& store_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Copy>> copies_ GUARDED_BY(mutex_);
  bool stopped_ GUARDED_BY(mutex_) = false;
};

}  // namespace sluice
