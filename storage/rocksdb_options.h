// RocksDB's options for the log, and the callbacks that RocksDB uses. Only storage/ includes this.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>

#include <cstdarg>
#include <functional>
#include <string>

#include "engine/base/mutex.h"
#include "engine/base/status.h"
#include "storage/log_sink.h"
#include "storage/rocksdb_log.h"

namespace sluice {

// Forwards RocksDB's info log to our sink. Also keeps the last line about dropped bytes: only there
// does RocksDB name the damaged write-ahead file, and a refusal to start must name it.
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

// Reports the first error in RocksDB's own threads.
class FailureListener final : public rocksdb::EventListener {
 public:
  const char* Name() const override { return "sluice"; }
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* status) override;

  // The listener is called at once if an error has already occurred. On return, the previous
  // listener is not running and will not be called again.
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
