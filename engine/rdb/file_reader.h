// FileReader: reads an RDB file of versions 6 to 10 (Redis 2.8 to 7.0), a key at a time.
//
// The file is read as a stream (engine/rdb/reader.h), so only one value is in memory. Anything
// unknown ends the reading with its place and the reason, and so does a wrong checksum. The sink
// has received everything before that place, but the contents of a damaged file cannot be trusted:
// keep them only when read() has reached the end.
//
// One thread. The reader and the sink must outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/bytes.h"
#include "engine/base/status.h"
#include "engine/keyspace/entry.h"
#include "engine/rdb/reader.h"

namespace sluice::rdb {

class FileSink {
 public:
  virtual ~FileSink() = default;
  // Facts about the writer of the file, such as "redis-ver" and "7.0.15".
  virtual void auxiliary(Bytes name, Bytes value) = 0;
  // The entry includes its expiry, which may be in the past. A failure ends the reading, also of
  // put_library.
  virtual Status put_key(int database, OwnedEntry entry) = 0;
  virtual Status put_library(Bytes code) = 0;
};

struct FileFault {
  uint64_t offset;
  std::string message;
};

class FileReader {
 public:
  FileReader(Reader& from, FileSink& sink) : from_(from), sink_(sink) {}

  // Reads its name and version. Returns nothing if such a file can be read.
  std::optional<FileFault> read_head();
  // Reads the rest, or all of it. Returns nothing if it is whole and its checksum is right.
  std::optional<FileFault> read();

 private:
  enum class Step : uint8_t { kGoOn, kEnd, kFault };

  Step read_item();
  Step read_database();
  Step read_sizes();
  Step read_auxiliary();
  Step read_library();
  Step read_expiry(size_t width, int64_t unit_ms);
  Step read_key(uint8_t type);
  bool read_end();
  // Notes why reading stops. Only the first reason counts.
  Step fail(const std::string& message);
  Step fail_damaged(const std::string& what);
  Step refuse_module(const std::string& what);

  Reader& from_;
  FileSink& sink_;
  int database_ = 0;
  int64_t expire_ms_ = 0;  // of the next key
  std::optional<FileFault> fault_;
};

}  // namespace sluice::rdb
