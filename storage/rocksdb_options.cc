#include "storage/rocksdb_options.h"

#include <rocksdb/env.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "storage/data_directory.h"

namespace sluice {
namespace {

// Number of tables kept open. There may be any number of tables, and only a start reads them.
// (RocksDB uses ten of the limit for other files.)
constexpr int kTableFiles = 32;
constexpr int kNotTables = 10;

// RocksDB's warnings (about an option, or a file it repairs) are not actionable for an operator.
// What matters in them is logged by the journal in its own words.
LogLevel level_of(rocksdb::InfoLogLevel level) {
  return level >= rocksdb::ERROR_LEVEL ? LogLevel::kError : LogLevel::kDebug;
}

rocksdb::ColumnFamilyOptions make_family_options(const RocksdbLogOptions& options) {
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true;  // recovery reads everything once, in order; nothing else reads
  table.filter_policy = nullptr;
  table.checksum = rocksdb::kXXH3;
  table.format_version = 5;
  table.block_size = 64 << 10;
  table.index_shortening = rocksdb::BlockBasedTableOptions::IndexShorteningMode::kNoShortening;
  table.max_auto_readahead_size = 0;  // readers of more than a block set their own read-ahead

  rocksdb::ColumnFamilyOptions family;
  family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  family.compression = rocksdb::kNoCompression;
  family.compression_per_level.clear();
  family.bottommost_compression = rocksdb::kDisableCompressionOption;
  // Two levels: files moved to level 1 stay there until they are trimmed.
  family.num_levels = 2;
  family.compaction_style = rocksdb::kCompactionStyleLevel;
  family.level_compaction_dynamic_level_bytes = false;
  family.level0_file_num_compaction_trigger = 2;
  family.max_bytes_for_level_base = uint64_t{1} << 60;
  family.target_file_size_base = uint64_t{1} << 40;  // never split or join by size
  // Writers must never be slowed down for compaction, which gains nothing here.
  family.level0_slowdown_writes_trigger = 1 << 20;
  family.level0_stop_writes_trigger = 1 << 20;
  family.soft_pending_compaction_bytes_limit = 0;
  family.hard_pending_compaction_bytes_limit = 0;
  family.max_compaction_bytes = uint64_t{1} << 60;
  family.ttl = 0;
  family.periodic_compaction_seconds = 0;
  family.report_bg_io_stats = false;
  family.paranoid_file_checks = false;
  family.write_buffer_size = options.memtable_bytes;
  family.max_write_buffer_number = options.memtables;
  family.min_write_buffer_number_to_merge = 1;
  family.arena_block_size = std::min<size_t>(256 << 10, options.memtable_bytes / 8);
  return family;
}

rocksdb::DBOptions make_db_options(const RocksdbLogOptions& options, bool direct_io) {
  rocksdb::DBOptions db;
  db.info_log_level = rocksdb::WARN_LEVEL;
  db.wal_recovery_mode = options.up_to_damage
                             ? rocksdb::WALRecoveryMode::kPointInTimeRecovery
                             : rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  // The flush while opening syncs what a killed process had written but not synced; otherwise a
  // later power failure could remove the middle of the log.
  db.avoid_flush_during_recovery = false;
  db.avoid_flush_during_shutdown = true;
  db.allow_fallocate = false;
  db.manual_wal_flush = false;
  db.enable_pipelined_write = false;
  db.unordered_write = false;
  db.two_write_queues = false;
  db.allow_concurrent_memtable_write =
      false;  // there is one writer at a time; this path is cheaper
  db.enable_write_thread_adaptive_yield = false;
  db.max_background_jobs = 2;
  db.max_subcompactions = 1;
  db.max_open_files = kTableFiles + kNotTables;
  db.table_cache_numshardbits = 0;  // the limit applies to each shard and is rounded up
  // Only the caller's thread opens files: if RocksDB could not create one, it would end the
  // process.
  db.max_file_opening_threads = 1;
  db.max_bgerror_resume_count = 0;
  db.paranoid_checks = true;
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  db.skip_stats_update_on_db_open = true;
  db.avoid_unnecessary_blocking_io = true;
  db.advise_random_on_open = false;  // recovery reads files from end to end
  db.enable_thread_tracking = false;
  db.max_manifest_file_size = 4 << 20;  // with the default of 1 GB it would hardly ever be renewed
  // Makes the kernel start writing early, so that no sync has much to write.
  db.bytes_per_sync = 1 << 20;
  db.wal_bytes_per_sync = 0;
  db.use_fsync = false;
  // Tables are written once and read only at the next start. Writing around the page cache halves
  // the CPU cost, and a sync of the log does not wait for dirty pages of tables. Reading around it
  // keeps a start from filling as much memory with their pages as with the data.
  db.use_direct_io_for_flush_and_compaction = direct_io;
  db.use_direct_reads = direct_io;
  return db;
}

}  // namespace

void InfoLog::Logv(const char* format, va_list arguments) {
  Logv(rocksdb::WARN_LEVEL, format, arguments);
}

void InfoLog::Logv(rocksdb::InfoLogLevel level, const char* format, va_list arguments) {
  if (level < GetInfoLogLevel()) return;
  char text[1024];
  std::vsnprintf(text, sizeof(text), format, arguments);
  if (std::strstr(text, "dropping ") != nullptr) {
    MutexLock lock(mutex_);
    last_damage_ = text;
  }
  if (sink_) sink_(level_of(level), text);
}

std::string InfoLog::last_damage() const {
  MutexLock lock(mutex_);
  return last_damage_;
}

void FailureListener::OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status* status) {
  MutexLock lock(mutex_);
  if (failure_.ok()) failure_ = from_rocksdb(*status, "the log failed in the background");
  tell();
}

void FailureListener::listen(std::function<void(const Status&)> listener) {
  MutexLock lock(mutex_);
  listener_ = std::move(listener);
  if (!failure_.ok()) tell();
}

void FailureListener::tell() {
  if (told_ || !listener_) return;
  told_ = true;
  listener_(failure_);
}

rocksdb::Options make_options(const RocksdbLogOptions& options, bool direct_io) {
  return {make_db_options(options, direct_io), make_family_options(options)};
}

}  // namespace sluice
