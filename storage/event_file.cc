#include "storage/event_file.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

namespace sluice {

namespace {

Status failed(const std::string& what, int error) {
  return {error == ENOSPC ? StatusCode::kNoSpace : StatusCode::kIoError,
          what + ": " + std::strerror(error)};
}

// Some file systems cannot create a file without a name; there it has one for a moment.
int open_nameless(const std::string& directory) {
  const int file = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) return file;
  std::string name = directory + "/events-XXXXXX";
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

size_t slots_for(size_t bytes) {
  return (bytes + EventFile::kSlotBytes - 1) / EventFile::kSlotBytes;
}

// Calls part(slot, offset into the bytes, length) for each slot.
template <class Part>
bool for_each_slot(const std::vector<uint32_t>& slots, size_t bytes, Part part) {
  size_t offset = 0;
  for (const uint32_t slot : slots) {
    const size_t some = std::min(EventFile::kSlotBytes, bytes - offset);
    if (!part(slot, offset, some)) return false;
    offset += some;
  }
  return true;
}

off_t place_of(uint32_t slot) { return static_cast<off_t>(uint64_t{slot} * EventFile::kSlotBytes); }

}  // namespace

class EventFile::Kept final : public SpilledBytes {
 public:
  Kept(std::shared_ptr<EventFile> file, std::shared_ptr<Piece> piece)
      : file_(std::move(file)), piece_(std::move(piece)) {}
  ~Kept() override { file_->release(*piece_); }

  std::shared_ptr<const std::string> read() const override { return file_->read(*piece_); }
  size_t memory_bytes() const override {
    MutexLock lock(file_->mutex_);
    return sizeof(Kept) + sizeof(Piece) + (piece_->bytes != nullptr ? piece_->size : 0);
  }

 private:
  const std::shared_ptr<EventFile> file_;
  const std::shared_ptr<Piece> piece_;
};

Result<std::shared_ptr<EventFile>> EventFile::open(EventFileOptions options) {
  const int file = open_nameless(options.directory);
  if (file < 0) {
    const int error = errno;
    return failed("cannot create the event file in " + options.directory, error);
  }
  std::shared_ptr<EventFile> made(new EventFile(std::move(options), file));
  made->thread_ = Thread("sluice-events", [raw = made.get()] { raw->run(); });
  return made;
}

EventFile::EventFile(EventFileOptions options, int file)
    : options_(std::move(options)), file_(file) {}

EventFile::~EventFile() {
  stop();
  ::close(file_);
}

void EventFile::stop() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

uint64_t EventFile::disk_bytes() const {
  MutexLock lock(mutex_);
  return uint64_t{slots_ - holes_.size()} * kSlotBytes;
}

std::unique_ptr<SpilledBytes> EventFile::keep(std::string bytes) {
  auto piece = std::make_shared<Piece>();
  piece->size = static_cast<uint32_t>(bytes.size());
  piece->checksum = XXH3_64bits(bytes.data(), bytes.size());
  piece->bytes = std::make_shared<const std::string>(std::move(bytes));
  auto kept = std::make_unique<Kept>(shared_from_this(), piece);
  MutexLock lock(mutex_);
  if (stopped_) return kept;
  waiting_.push_back(std::move(piece));
  // One wake-up per batch, and none while the thread is already working.
  if (waiting_.size() == kBatch) changed_.notify_one();
  return kept;
}

// --- Reading ---

std::shared_ptr<const std::string> EventFile::read(const Piece& piece) const {
  std::vector<uint32_t> slots;
  {
    MutexLock lock(mutex_);
    if (piece.bytes != nullptr) return piece.bytes;
    slots = piece.slots;
  }
  auto bytes = std::make_shared<std::string>(piece.size, '\0');
  int error = 0;
  const bool whole = for_each_slot(slots, piece.size, [&](uint32_t slot, size_t at, size_t some) {
    const ssize_t got = ::pread(file_, bytes->data() + at, some, place_of(slot));
    error = got < 0 ? errno : 0;
    return got == static_cast<ssize_t>(some);
  });
  if (whole && XXH3_64bits(bytes->data(), bytes->size()) == piece.checksum) return bytes;
  tell_lost(piece, whole ? "checksum mismatch" : error != 0 ? std::strerror(error) : "too short");
  return nullptr;
}

void EventFile::tell_lost(const Piece& piece, const std::string& why) const {
  {
    MutexLock lock(mutex_);
    if (std::exchange(piece.told, true)) return;
  }
  if (options_.sink) {
    options_.sink(LogLevel::kError, "events of a queue on disk are lost: " + why);
  }
}

// --- Slots ---

bool EventFile::take_slots(std::vector<uint32_t>& slots, size_t bytes) {
  const size_t needed = slots_for(bytes);
  if (needed > free_.size() + may_grow_by_) return false;
  while (slots.size() < needed) {
    if (!free_.empty()) {
      slots.push_back(free_.back());
      free_.pop_back();
      continue;
    }
    --may_grow_by_;
    if (holes_.empty()) {
      slots.push_back(slots_++);
    } else {
      slots.push_back(holes_.back());
      holes_.pop_back();
    }
  }
  return true;
}

bool EventFile::has_slack() const {
  const size_t used = slots_ - free_.size() - holes_.size();
  return used == 0 ? slots_ > kKeptSlots : free_.size() > std::max(kKeptSlots, used);
}

void EventFile::give_back(std::vector<uint32_t>& slots) {
  free_.insert(free_.end(), slots.begin(), slots.end());
  slots.clear();
  // System calls are left to the thread, since the caller may hold a shard's lock.
  if (has_slack()) changed_.notify_one();
}

void EventFile::release(Piece& piece) {
  std::shared_ptr<const std::string> freed;  // freed outside the lock
  MutexLock lock(mutex_);
  piece.dropped = true;
  freed = std::move(piece.bytes);
  give_back(piece.slots);
}

// --- The thread ---

void EventFile::run() {
  for (Work work; wait_for_work(work); work = {}) {
    free_blocks(work);
    write_all(work.pieces);
  }
}

bool EventFile::wait_for_work(Work& work) {
  MutexLock lock(mutex_);
  std::unique_lock<std::mutex> native(mutex_.native(), std::adopt_lock);
  while (!stopped_) {
    if (has_slack()) {
      // Safe if no slot is in use: only this thread takes slots, and it holds none here.
      work.cut = free_.size() + holes_.size() == slots_;
      work.slots.swap(free_);
      if (work.cut) {
        holes_ = {};
        slots_ = 0;
      }
      break;
    }
    if (waiting_.size() < kBatch) {
      changed_.wait(native);
    } else if (std::chrono::steady_clock::now() < retry_at_) {
      changed_.wait_until(native, retry_at_);
    } else {
      work.pieces.swap(waiting_);
      break;
    }
  }
  native.release();
  return !stopped_;
}

void EventFile::free_blocks(Work& work) {
  if (work.cut) {
    static_cast<void>(::ftruncate(file_, 0));
    return;
  }
  std::vector<uint32_t>& slots = work.slots;
  if (slots.empty()) return;
  std::sort(slots.begin(), slots.end());
  for (size_t i = 0; i < slots.size();) {
    size_t end = i + 1;
    while (end < slots.size() && slots[end] == slots[end - 1] + 1) ++end;
    // A file system without hole punching keeps the blocks; the slots are reused all the same.
    static_cast<void>(::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                  place_of(slots[i]), static_cast<off_t>((end - i) * kSlotBytes)));
    i = end;
  }
  MutexLock lock(mutex_);
  holes_.insert(holes_.end(), slots.begin(), slots.end());
}

uint64_t EventFile::free_disk_bytes() const {
  struct statvfs disk {};
  if (::fstatvfs(file_, &disk) != 0) return UINT64_MAX;
  return uint64_t{disk.f_bavail} * disk.f_frsize;
}

void EventFile::write_all(const Pieces& pieces) {
  if (pieces.empty()) return;
  const uint64_t free_bytes = free_disk_bytes();
  const uint64_t kept_free = options_.min_free_bytes();
  {
    MutexLock lock(mutex_);
    may_grow_by_ = free_bytes <= kept_free ? 0 : (free_bytes - kept_free) / kSlotBytes;
    may_grow_by_ =
        std::min<uint64_t>(may_grow_by_, UINT32_MAX - slots_);  // slot numbers have 32 bits
  }
  for (auto at = pieces.begin(); at != pieces.end(); ++at) {
    const Status status = write(**at);
    if (status.ok()) continue;
    pause(status);
    MutexLock lock(mutex_);
    std::copy_if(at, pieces.end(), std::back_inserter(waiting_),
                 [](const std::shared_ptr<Piece>& piece) { return piece->bytes != nullptr; });
    return;
  }
}

Status EventFile::write(Piece& piece) {
  std::shared_ptr<const std::string> bytes;
  std::vector<uint32_t> slots;
  {
    MutexLock lock(mutex_);
    // When stopping, the remaining pieces may stay in memory.
    if (piece.dropped || stopped_) return {};
    bytes = piece.bytes;
    if (!take_slots(slots, piece.size)) {
      return {StatusCode::kNoSpace,
              " the disk that holds " + options_.directory + " is nearly full"};
    }
  }
  const Status status = write_slots(*bytes, slots);
  MutexLock lock(mutex_);
  if (!status.ok() || piece.dropped) {
    give_back(slots);
    return status;
  }
  failing_ = false;
  piece.slots = std::move(slots);
  piece.bytes = nullptr;  // `bytes` frees it after the lock is released
  return {};
}

Status EventFile::write_slots(const std::string& bytes, const std::vector<uint32_t>& slots) const {
  int error = 0;
  const bool whole = for_each_slot(slots, bytes.size(), [&](uint32_t slot, size_t at, size_t some) {
    const ssize_t written = ::pwrite(file_, bytes.data() + at, some, place_of(slot));
    error = written < 0 ? errno : ENOSPC;
    return written == static_cast<ssize_t>(some);
  });
  if (whole) return {};
  return failed("cannot write events to " + options_.directory, error);
}

// Logged once, and again only after a write has succeeded in between.
void EventFile::pause(const Status& status) {
  bool told = false;
  {
    MutexLock lock(mutex_);
    told = std::exchange(failing_, true);
    retry_at_ = std::chrono::steady_clock::now() + options_.retry_delay;
  }
  if (told || !options_.sink) return;
  options_.sink(LogLevel::kWarning,
                status.message() + ": older events of queues stay in memory until it succeeds");
}

}  // namespace sluice
