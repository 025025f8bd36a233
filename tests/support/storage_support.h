// Shared by the tests of storage/: a temporary directory, a small model of an engine (a map of
// counters whose effects are absolute), and functions that open and read back a store of it.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/crc32c.h"
#include "engine/ports/journal.h"
#include "engine/unit/effects.h"
#include "storage/format.h"
#include "storage/store.h"

namespace sluice::test {

class TempDirectory {
 public:
  // `in_memory`: on a memory file system, if the machine has one. For tests that open hundreds of
  // stores and only examine contents; they would spend most of their time on a disk's syncs.
  explicit TempDirectory(bool in_memory = false) {
    const std::filesystem::path shared_memory = "/dev/shm";
    const bool use = in_memory && access(shared_memory.c_str(), W_OK) == 0;
    std::string name =
        ((use ? shared_memory : std::filesystem::temp_directory_path()) / "sluice-test-XXXXXX")
            .string();
    CHECK(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TempDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string read_file(const std::string& name) {
  std::ifstream in(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void write_file(const std::string& name, const std::string& bytes) {
  std::ofstream(name, std::ios::binary | std::ios::trunc) << bytes;
}

// Whether it comes about within 20 s.
template <typename Condition>
bool eventually(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

inline std::vector<std::string> files_under(const std::string& root) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// A record: key u32, value u64, padding, which allows units of any size.
inline std::string encode_record(uint32_t key, uint64_t value, size_t filling = 0) {
  std::string record(16 + filling, '\0');
  const auto length = static_cast<uint32_t>(filling);
  std::memcpy(record.data(), &key, 4);
  std::memcpy(record.data() + 4, &length, 4);
  std::memcpy(record.data() + 8, &value, 8);
  for (size_t i = 0; i < filling; ++i) record[16 + i] = static_cast<char>(value + i);
  return record;
}

// Records of the engine, between which the journal divides a unit that is too long for the log.
inline std::string encode_effects(uint32_t count, size_t value_bytes) {
  ByteBuffer records;
  EffectEncoder encoder(records);
  for (uint32_t i = 0; i < count; ++i) {
    encoder.put_string(0, std::to_string(i), std::string(value_bytes, 'x'), 0);
  }
  return std::string(records.view());
}

// A unit with these records, as the log has it.
inline std::string unit_of(Lsn lsn, const std::string& records, uint8_t flags = 0) {
  std::string unit(kUnitHeaderBytes, '\0');
  encode_unit_header(unit.data(), crc32c(records), static_cast<uint32_t>(records.size()), lsn, 1, 1,
                     flags);
  return unit + records;
}

// The state of the model, used as the engine's part of recovery.
class MapReplay final : public Replay {
 public:
  bool apply(Bytes records, uint64_t count) override {
    while (count-- != 0) {
      if (records.size() < 16) return false;
      uint32_t key = 0;
      uint32_t filling = 0;
      uint64_t value = 0;
      std::memcpy(&key, records.data(), 4);
      std::memcpy(&filling, records.data() + 4, 4);
      std::memcpy(&value, records.data() + 8, 8);
      if (records.size() - 16 < filling) return false;
      state[key] = value;
      records.remove_prefix(16 + filling);
    }
    return records.empty();
  }
  void finish(const std::function<void()>& pulse) override {
    pulse();
    finished = true;
  }

  std::map<uint32_t, uint64_t> state;
  bool finished = false;
};

// A live model: a map behind one lock that journals each change, and a walk over it.
class MapEngine {
 public:
  explicit MapEngine(Journal* journal, std::map<uint32_t, uint64_t> state = {})
      : journal_(journal), state_(std::move(state)) {}

  Lsn set(uint32_t key, uint64_t value, size_t filling = 0) {
    const std::string record = encode_record(key, value, filling);
    std::lock_guard<std::mutex> lock(mutex_);
    state_[key] = value;
    return journal_->append(record, 1, 1000);
  }
  // A change recorded as one that must not be applied to a later state.
  Lsn move(uint32_t key, uint64_t value) {
    const std::string record = encode_record(key, value);
    std::lock_guard<std::mutex> lock(mutex_);
    state_[key] = value;
    return journal_->append(record, 1, 1000, journal_->takes_moves());
  }
  std::map<uint32_t, uint64_t> state() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return state_;
  }

  std::unique_ptr<CheckpointWalk> walk(size_t filling = 0) {
    return std::make_unique<Walk>(*this, filling);
  }

 private:
  class Walk final : public CheckpointWalk {
   public:
    Walk(MapEngine& engine, size_t filling) : engine_(engine), filling_(filling) {}
    bool step(ByteBuffer& records, uint64_t& count) override {
      std::lock_guard<std::mutex> lock(engine_.mutex_);
      auto at = engine_.state_.lower_bound(next_);
      for (int i = 0; i < 16 && at != engine_.state_.end(); ++i, ++at) {
        records.append(encode_record(at->first, at->second, filling_));
        ++count;
        next_ = at->first + 1;
      }
      return at != engine_.state_.end();
    }

   private:
    MapEngine& engine_;
    const size_t filling_;
    uint32_t next_ = 0;
  };

  Journal* journal_;
  mutable std::mutex mutex_;
  std::map<uint32_t, uint64_t> state_;
};

inline StoreOptions store_options(const std::string& directory, SyncMode mode = SyncMode::kAlways) {
  StoreOptions options;
  options.directory = directory;
  options.journal.mode = mode;
  options.checkpoint_log_bytes = 0;
  return options;
}

// Opens the store to read it back, and closes it again.
struct ReadBack {
  Status status;
  std::map<uint32_t, uint64_t> state;
  RecoveryResult recovered;
};
inline ReadBack read_back(StoreOptions options) {
  MapReplay replay;
  auto store = Store::open(std::move(options), replay);
  if (!store.ok()) return {store.status(), {}, {}};
  ReadBack result{{}, std::move(replay.state), (*store)->recovered()};
  result.status = (*store)->close(CloseMode::kFlush);
  return result;
}
inline ReadBack read_back(const std::string& directory) {
  return read_back(store_options(directory));
}

}  // namespace sluice::test
