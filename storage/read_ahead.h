// ReadAhead runs a LogReader or PieceReader ahead on another thread, so that recovery applies one
// commit or piece on one core while the next is read and checksummed on another.
//
// The reader is used by that thread only, which ends with this object. Blobs that were read wait in
// a queue bounded by bytes: one blob of any size, and more while their total is small.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "engine/base/bytes.h"
#include "engine/base/mutex.h"
#include "engine/base/status.h"
#include "engine/base/thread.h"

namespace sluice {

// `Reader` has next(Number&, Bytes&) and status(), as in log.h. The result of `sound_bytes` for a
// blob (format.h) is passed along with it.
template <class Reader, class Number>
class ReadAhead {
 public:
  ReadAhead(std::unique_ptr<Reader> reader, size_t (*sound_bytes)(Bytes))
      : reader_(std::move(reader)),
        sound_bytes_(sound_bytes),
        thread_("read-ahead", [this] { run(); }) {}

  ~ReadAhead() {
    {
      MutexLock lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Like the reader's; the bytes are valid until the next call.
  bool next(Number& number, Bytes& bytes, size_t& sound) {
    MutexLock lock(mutex_);
    std::unique_lock<std::mutex> native(mutex_.native(), std::adopt_lock);
    while (row_.empty() && !ended_) changed_.wait(native);
    native.release();
    if (row_.empty()) return false;
    waiting_bytes_ -= row_.front().bytes.size();
    std::swap(given_, row_.front());
    spare_ = std::move(row_.front().bytes);
    row_.pop_front();
    changed_.notify_all();
    number = given_.number;
    bytes = given_.bytes;
    sound = given_.sound;
    return true;
  }

  // REQUIRES: next() has returned false.
  Status status() const { return reader_->status(); }

 private:
  static constexpr size_t kMaxWaitingBytes = size_t{8} << 20;

  struct Blob {
    Number number{};
    std::string bytes;
    size_t sound = 0;
  };

  void run() {
    Number number{};
    Bytes bytes;
    Blob blob;
    while (reader_->next(number, bytes)) {
      blob.number = number;
      blob.bytes = bytes;
      blob.sound = sound_bytes_(blob.bytes);
      if (!put(blob)) break;
    }
    MutexLock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  // Returns false when the consumer is gone. Leaves in `blob` a string whose memory can be reused.
  bool put(Blob& blob) {
    MutexLock lock(mutex_);
    std::unique_lock<std::mutex> native(mutex_.native(), std::adopt_lock);
    while (!stopped_ && !row_.empty() && waiting_bytes_ + blob.bytes.size() > kMaxWaitingBytes) {
      changed_.wait(native);
    }
    native.release();
    if (stopped_) return false;
    waiting_bytes_ += blob.bytes.size();
    row_.push_back(std::move(blob));
    blob.bytes = std::move(spare_);
    changed_.notify_all();
    return true;
  }

  const std::unique_ptr<Reader> reader_;
  size_t (*const sound_bytes_)(Bytes);
  Blob given_;  // returned by the last next()
  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<Blob> row_ GUARDED_BY(mutex_);
  size_t waiting_bytes_ GUARDED_BY(mutex_) = 0;
  std::string spare_ GUARDED_BY(mutex_);
  bool ended_ GUARDED_BY(mutex_) = false;    // the reader has no more
  bool stopped_ GUARDED_BY(mutex_) = false;  // this object is being destroyed
  Thread thread_;                            // last: it uses all of the above
};

}  // namespace sluice
