// RocksDB's options for the log, and the adaptors that it calls. Only storage/ includes this.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>

#include <cstdarg>
#include <functional>
#include <memory>
#include <string>

#include "engine/base/mutex.h"
#include "engine/base/status.h"
#include "storage/log_sink.h"
#include "storage/rocksdb_log.h"

namespace sluice {

// RocksDB's info log to our sink. Also keeps the last line about dropped bytes: RocksDB tells only
// there which write-ahead file was damaged, and a refusal to start must name it.
class InfoLog final : public rocksdb::Logger {
 public:
  explicit InfoLog(LogSink sink) : rocksdb::Logger(rocksdb::WARN_LEVEL), sink_(std::move(sink)) {}

  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override;
  void Logv(rocksdb::InfoLogLevel level, const char* format, va_list arguments) override;

  std::string last_damage() const;

 private:
  const LogSink sink_;
  mutable Mutex mutex_;
  std::string last_damage_ GUARDED_BY(mutex_);
};

// Tells about an error in RocksDB's own threads, once.
class FailureListener final : public rocksdb::EventListener {
 public:
  const char* Name() const override { return "sluice"; }
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* status) override;

  // Called at once if the error was there before. When it returns, the listener before it is
  // neither running nor called again.
  void listen(std::function<void(const Status&)> listener);

 private:
  void tell() REQUIRES(mutex_);

  Mutex mutex_;
  std::function<void(const Status&)> listener_ GUARDED_BY(mutex_);
  Status failure_ GUARDED_BY(mutex_);
  bool told_ GUARDED_BY(mutex_) = false;
};

rocksdb::Options make_options(const RocksdbLogOptions& options, bool direct_io);

}  // namespace sluice
