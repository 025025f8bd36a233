// MemoryJournal: keeps every unit in memory; appended units count as durable at once.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "engine/base/mutex.h"
#include "engine/ports/journal.h"

namespace sluice::test {

class MemoryJournal final : public Journal {
 public:
  struct Unit {
    std::string records;
    uint32_t count;
  };

  Lsn append(Bytes records, uint32_t record_count, int64_t, bool moves, ByteBuffer*) override {
    MutexLock lock(mutex_);
    units_.push_back({std::string(records), record_count});
    if (moves) last_move_lsn = units_.size();
    return units_.size();
  }
  bool takes_moves() const override { return takes_moves_; }
  void take_moves(bool take) { takes_moves_ = take; }
  // The last unit that moved keys by name alone; 0: none.
  std::atomic<Lsn> last_move_lsn{0};

  Lsn last_lsn() const override {
    MutexLock lock(mutex_);
    return units_.size();
  }
  Lsn durable_lsn() const override { return last_lsn(); }

  // Simulates another writer: replaces each `from` by `to`, of the same length.
  void rewrite(Bytes from, Bytes to) {
    MutexLock lock(mutex_);
    for (Unit& unit : units_) {
      for (size_t at = 0; (at = unit.records.find(from, at)) != std::string::npos; ++at) {
        unit.records.replace(at, from.size(), to);
      }
    }
  }

  // The unit with this lsn; the first has lsn 1.
  Unit unit(Lsn lsn) const {
    MutexLock lock(mutex_);
    return units_.at(lsn - 1);
  }

 private:
  std::atomic<bool> takes_moves_{false};
  mutable Mutex mutex_;
  std::vector<Unit> units_ GUARDED_BY(mutex_);
};

}  // namespace sluice::test
