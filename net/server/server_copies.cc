#include "net/server/server_copies.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "storage/copy_stream.h"

namespace sluice {

namespace {

// An I/O thread writes so much at a time.
constexpr size_t kPartBytes = 128U << 10;

}  // namespace

CopyPort::Answer ServerCopies::begin(std::shared_ptr<CopyTarget> target) {
  MutexLock lock(mutex_);
  if (stopped_ || !store_.is_ready() || store_.get().in_memory()) return Answer::kNothingKept;
  std::erase_if(copies_, [](const std::unique_ptr<Copy>& copy) {
    if (!copy->done.load()) return false;
    copy->thread.join();
    return true;
  });
  if (copies_.size() >= kMaxCopies) return Answer::kTooMany;
  Checkpointer& checkpointer = *store_.get().checkpointer();
  if (const CheckpointStatus status = checkpointer.status(); status.last.checkpoint == 0) {
    if (!status.running) checkpointer.request();
    return Answer::kNoCheckpoint;
  }
  auto copy = std::make_unique<Copy>();
  copy->target = std::move(target);
  try {
    copy->thread = Thread("sluice-copy", [this, raw = copy.get()] {
      send(*raw->target);
      raw->done.store(true);
    });
  } catch (const std::system_error&) {
    return Answer::kTooMany;
  }
  copies_.push_back(std::move(copy));
  return Answer::kBegun;
}

void ServerCopies::send(CopyTarget& target) {
  Result<std::unique_ptr<CopyReader>> reader = store_.get().read_copy();
  if (!reader.ok()) return target.end(reader.status());
  const CopyHead& head = (*reader)->head();
  spdlog::info("Sending a copy: checkpoint {} and the journal up to lsn {}",
               head.summary.checkpoint, head.last_lsn);
  Bytes header;
  Bytes body;
  std::string part;
  bool wanted = true;
  while (wanted && (*reader)->next(header, body)) {
    part += header;
    while (wanted && part.size() + body.size() >= kPartBytes) {
      const size_t count = kPartBytes - std::min(kPartBytes, part.size());
      part += body.substr(0, count);
      body.remove_prefix(count);
      wanted = target.put(std::exchange(part, {}));
    }
    part += body;
  }
  const Status status = (*reader)->status();
  if (wanted && status.ok()) wanted = part.empty() || target.put(std::move(part));
  if (!status.ok()) spdlog::error("A copy could not be read: {}", status.message());
  if (!wanted) spdlog::info("A copy was not read to its end");
  target.end(status);
}

void ServerCopies::stop() {
  std::vector<std::unique_ptr<Copy>> copies;
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    copies.swap(copies_);
  }
  for (const auto& copy : copies) copy->target->cut();
  for (const auto& copy : copies) copy->thread.join();
}

}  // namespace sluice
