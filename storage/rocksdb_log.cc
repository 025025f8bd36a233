#include "storage/rocksdb_log.h"

#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/write_batch.h>

#include <system_error>
#include <utility>
#include <vector>

#include "storage/careful_fs.h"
#include "storage/data_directory.h"
#include "storage/rocksdb_crc32c.h"
#include "storage/rocksdb_options.h"

namespace sluice {
namespace {

// Size of a checkpoint's files: large enough that they are few, small enough that a sync is short.
constexpr uint64_t kStagedFileBytes = uint64_t{64} << 20;
// Above this size the batch frees its memory after a large unit.
constexpr size_t kKeptBatchBytes = size_t{2} << 20;
// Bytes per read during recovery: enough to keep a disk with a latency of a millisecond busy.
constexpr size_t kScanReadBytes = size_t{4} << 20;

rocksdb::Slice to_slice(Bytes bytes) { return {bytes.data(), bytes.size()}; }
template <size_t kSize>
rocksdb::Slice to_slice(const std::array<char, kSize>& key) {
  return {key.data(), key.size()};
}
Bytes to_bytes(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

bool is_checkpoint_key(const rocksdb::Slice& key) {
  return !key.empty() && key[0] == kCheckpointPrefix;
}

rocksdb::ReadOptions read_options() {
  rocksdb::ReadOptions read;
  read.verify_checksums = true;
  read.fill_cache = false;
  read.total_order_seek = true;
  return read;
}

// For readers that read from one end to the other.
rocksdb::ReadOptions scan_options() {
  rocksdb::ReadOptions read = read_options();
  read.readahead_size = kScanReadBytes;
  return read;
}

class RocksdbLogReader final : public LogReader {
 public:
  RocksdbLogReader(std::unique_ptr<rocksdb::Iterator> at, Lsn from, std::string place)
      : at_(std::move(at)), place_(std::move(place)) {
    const LogKey key = encode_log_key(from);
    at_->SeekForPrev(to_slice(key));
    // The commit that it belongs to contains `from`.
    if (at_->Valid() && is_position_key(to_bytes(at_->key()))) at_->Prev();
    if (!at_->Valid() && at_->status().ok()) at_->SeekToFirst();
  }

  bool next(Lsn& first_lsn, Bytes& commit) override {
    if (!damage_.ok()) return false;
    if (started_ && at_->Valid()) at_->Next();
    started_ = true;
    while (at_->Valid() && is_position_key(to_bytes(at_->key()))) at_->Next();
    if (!at_->Valid() || is_checkpoint_key(at_->key())) return false;
    const auto lsn = decode_log_key(to_bytes(at_->key()));
    if (!lsn) {
      damage_ = damaged(place_ + ": a key that is not an lsn");
      return false;
    }
    first_lsn = *lsn;
    commit = to_bytes(at_->value());
    return true;
  }

  Status status() const override {
    return damage_.ok() ? from_rocksdb(at_->status(), "cannot read " + place_) : damage_;
  }

 private:
  std::unique_ptr<rocksdb::Iterator> at_;
  const std::string place_;
  bool started_ = false;
  Status damage_;
};

class RocksdbPieceReader final : public PieceReader {
 public:
  RocksdbPieceReader(std::unique_ptr<rocksdb::Iterator> at, uint64_t checkpoint, std::string place)
      : at_(std::move(at)), checkpoint_(checkpoint), place_(std::move(place)) {
    const PieceKey key = encode_piece_key(checkpoint, 0);
    at_->Seek(to_slice(key));
  }

  bool next(uint32_t& number, Bytes& piece) override {
    if (!damage_.ok()) return false;
    if (started_ && at_->Valid()) at_->Next();
    started_ = true;
    if (!at_->Valid()) return false;
    const auto place = decode_piece_key(to_bytes(at_->key()));
    if (!place) {
      damage_ = damaged(place_ + ": a checkpoint's key is damaged");
      return false;
    }
    if (place->checkpoint != checkpoint_ || place->number == kSummaryNumber) return false;
    number = place->number;
    piece = to_bytes(at_->value());
    return true;
  }

  Status status() const override {
    return damage_.ok() ? from_rocksdb(at_->status(), "cannot read " + place_) : damage_;
  }

 private:
  std::unique_ptr<rocksdb::Iterator> at_;
  const uint64_t checkpoint_;
  const std::string place_;
  bool started_ = false;
  Status damage_;
};

// Writes pieces to files in staging/ and adds all of them to the database in one step, which is one
// synced record of RocksDB's manifest.
class RocksdbCheckpointWriter final : public CheckpointWriter {
 public:
  RocksdbCheckpointWriter(rocksdb::DB* db, std::string staging, uint64_t checkpoint)
      : db_(db), staging_(std::move(staging)), checkpoint_(checkpoint) {}

  ~RocksdbCheckpointWriter() override {
    writer_.reset();
    if (committed_) return;
    for (const std::string& file : files_) db_->GetEnv()->DeleteFile(file).PermitUncheckedError();
  }

  Status add_piece(uint32_t number, Bytes piece) override {
    return put(encode_piece_key(checkpoint_, number), piece);
  }

  Status finish(const CheckpointSummary& summary) override {
    if (Status status = put(encode_piece_key(checkpoint_, kSummaryNumber), encode_summary(summary));
        !status.ok()) {
      return status;
    }
    return finish_file();
  }

  Status commit() override {
    rocksdb::IngestExternalFileOptions options;
    options.move_files = true;
    options.write_global_seqno = false;
    options.verify_checksums_before_ingest = false;
    options.fail_if_not_bottommost_level = false;
    const rocksdb::Status status = db_->IngestExternalFile(files_, options);
    committed_ = status.ok();
    return from_rocksdb(status, "cannot commit a checkpoint in " + staging_);
  }

 private:
  Status put(const PieceKey& key, Bytes value) {
    if (writer_ == nullptr) {
      if (Status status = open_file(); !status.ok()) return status;
    }
    const rocksdb::Status status = writer_->Put(to_slice(key), to_slice(value));
    if (!status.ok()) return from_rocksdb(status, "cannot write " + files_.back());
    return writer_->FileSize() >= kStagedFileBytes ? finish_file() : Status();
  }

  Status open_file() {
    files_.push_back(staging_ + "/" + std::to_string(checkpoint_) + "-" +
                     std::to_string(files_.size()) + ".sst");
    const rocksdb::Options options = db_->GetOptions();
    rocksdb::EnvOptions files(options);
    files.use_direct_writes = options.use_direct_io_for_flush_and_compaction;
    writer_ = std::make_unique<rocksdb::SstFileWriter>(files, options, nullptr, false);
    return from_rocksdb(writer_->Open(files_.back()), "cannot create " + files_.back());
  }

  Status finish_file() {
    // The last value may have just completed its file.
    if (writer_ == nullptr) return {};
    const rocksdb::Status status = writer_->Finish();  // syncs the file
    writer_.reset();
    return from_rocksdb(status, "cannot finish " + files_.back());
  }

  rocksdb::DB* db_;
  const std::string staging_;
  const uint64_t checkpoint_;
  std::unique_ptr<rocksdb::SstFileWriter> writer_;
  std::vector<std::string> files_;
  bool committed_ = false;
};

rocksdb::Status put(rocksdb::WriteBatch& batch, const rocksdb::Slice& key,
                    std::span<const Bytes> parts) {
  if (parts.size() == 1) return batch.Put(key, to_slice(parts[0]));
  std::vector<rocksdb::Slice> slices;
  for (const Bytes part : parts) slices.push_back(to_slice(part));
  return batch.Put(rocksdb::SliceParts(&key, 1),
                   rocksdb::SliceParts(slices.data(), static_cast<int>(slices.size())));
}

class RocksdbLog final : public Log {
 public:
  explicit RocksdbLog(const RocksdbLogOptions& options)
      : options_(options),
        fs_(std::make_shared<CarefulFs>(
            (options.env != nullptr ? options.env : rocksdb::Env::Default())->GetFileSystem(),
            options.directory + "/log", options.spare_files)),
        own_env_(rocksdb::NewCompositeEnv(fs_)),
        env_(own_env_.get()),
        info_log_(std::make_shared<InfoLog>(options.sink)),
        failure_listener_(std::make_shared<FailureListener>()) {}

  ~RocksdbLog() override {
    if (db_ == nullptr) return;
    db_->Close().PermitUncheckedError();
  }

  Status open();

  Status append_commits(std::span<const Commit> commits, bool sync) override;
  Status sync() override {
    return from_rocksdb(db_->SyncWAL(), "cannot sync the log in " + directory_->path("log"));
  }

  std::unique_ptr<LogReader> read_from(Lsn lsn) override {
    return std::make_unique<RocksdbLogReader>(iterate(scan_options()), lsn,
                                              directory_->path("log"));
  }
  Result<std::string> position_at(Lsn last) override;
  Status trim_before(Lsn lsn) override;
  Status truncate_after(Lsn lsn) override;

  Result<std::optional<CheckpointSummary>> newest_checkpoint() override;
  std::unique_ptr<PieceReader> read_checkpoint(uint64_t checkpoint) override {
    return std::make_unique<RocksdbPieceReader>(iterate(scan_options()), checkpoint,
                                                directory_->path("log"));
  }
  Result<std::unique_ptr<CheckpointWriter>> start_checkpoint(uint64_t checkpoint) override {
    return std::unique_ptr<CheckpointWriter>(std::make_unique<RocksdbCheckpointWriter>(
        db_.get(), directory_->path("staging"), checkpoint));
  }
  Status drop_checkpoints_before(uint64_t checkpoint) override;

  Status set_mark(Lsn lsn) override {
    if (Status status = directory_->write_mark(lsn); !status.ok()) return status;
    return check_presence();
  }
  Status check_presence() override {
    return directory_->check_presence([this] { return fs_->newest_log(); });
  }
  Result<Lsn> mark() override { return directory_->read_mark(); }
  std::string mark_name() const override { return directory_->path("high-water-mark"); }

  void on_failure(std::function<void(const Status&)> listener) override {
    failure_listener_->listen(std::move(listener));
  }

  uint64_t disk_bytes() const override;
  uint64_t memory_bytes() const override;
  Result<uint64_t> free_disk_bytes() const override;

 private:
  std::unique_ptr<rocksdb::Iterator> iterate(const rocksdb::ReadOptions& options) {
    return std::unique_ptr<rocksdb::Iterator>(db_->NewIterator(options));
  }
  Status open_database();
  uint64_t journal_bytes(const std::string& path) const;
  Status empty_staging();
  bool direct_io_works() const;

  const RocksdbLogOptions options_;
  const std::shared_ptr<CarefulFs> fs_;
  std::unique_ptr<rocksdb::Env> own_env_;
  rocksdb::Env* const env_;
  const std::shared_ptr<InfoLog> info_log_;
  const std::shared_ptr<FailureListener> failure_listener_;
  std::unique_ptr<DataDirectory> directory_;  // outlives db_: its lock guards the files
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::WriteBatch batch_;
};

Status RocksdbLog::open() {
  auto directory = DataDirectory::open(env_, options_.directory, options_.read_only);
  if (!directory.ok()) return directory.status();
  directory_ = std::move(*directory);
  if (!options_.read_only) {
    if (Status status = empty_staging(); !status.ok()) return status;
  }
  if (Status status = open_database(); !status.ok()) return status;
  return directory_->creating() ? directory_->finish_creation() : Status();
}

Status RocksdbLog::open_database() {
  rocksdb::Options options = make_options(options_, !options_.read_only && direct_io_works());
  options.env = env_;
  options.info_log = info_log_;
  options.listeners = {failure_listener_};
  // Otherwise a database whose CURRENT was lost would be replaced by an empty one.
  options.create_if_missing = directory_->creating();
  const std::string path = directory_->path("log");
  // RocksDB creates it too, but looks into it first and logs a harmless error.
  if (directory_->creating()) env_->CreateDirIfMissing(path).PermitUncheckedError();
  rocksdb::DB* db = nullptr;
  rocksdb::Status status;
  try {
    status = options_.read_only ? rocksdb::DB::OpenForReadOnly(options, path, &db)
                                : rocksdb::DB::Open(options, path, &db);
  } catch (const std::system_error&) {
    // A thread could not be created. The threads that RocksDB did create keep running on a
    // half-built database and use this Env until the process ends, so it must not be freed.
    static_cast<void>(own_env_.release());
    throw;
  }
  db_.reset(db);
  if (status.ok()) return {};
  Status failure = from_rocksdb(status, "cannot open the log in " + path);
  if (failure.code() == StatusCode::kNoSpace) {
    return {failure.code(), failure.message() + ". Nothing is lost; opening it may take up to " +
                                std::to_string((journal_bytes(path) >> 20) + 1) +
                                " MB of free space"};
  }
  const std::string damage = info_log_->last_damage();
  if (damage.empty()) return failure;
  return {failure.code(), failure.message() + " (" + damage + ")"};
}

// RocksDB rewrites these files as tables when it opens.
uint64_t RocksdbLog::journal_bytes(const std::string& path) const {
  std::vector<rocksdb::Env::FileAttributes> files;
  env_->GetChildrenFileAttributes(path, &files).PermitUncheckedError();
  uint64_t bytes = 0;
  for (const auto& file : files) bytes += file.name.ends_with(".log") ? file.size_bytes : 0;
  return bytes;
}

// Not every file system supports direct I/O (an old tmpfs does not), and trying is the only way to
// find out.
bool RocksdbLog::direct_io_works() const {
  const std::string name = directory_->path("staging") + "/direct-io-test";
  rocksdb::FileOptions file_options;
  file_options.use_direct_writes = true;
  std::unique_ptr<rocksdb::FSWritableFile> file;
  const bool works =
      env_->GetFileSystem()->NewWritableFile(name, file_options, &file, nullptr).ok();
  file.reset();
  env_->DeleteFile(name).PermitUncheckedError();
  return works;
}

// Removes what a killed checkpoint left. Committed files have been moved out.
Status RocksdbLog::empty_staging() {
  const std::string staging = directory_->path("staging");
  rocksdb::Status status = env_->CreateDirIfMissing(staging);
  std::vector<std::string> names;
  if (status.ok()) status = env_->GetChildren(staging, &names);
  for (const std::string& name : names) {
    if (!status.ok()) break;
    if (name != "." && name != "..") status = env_->DeleteFile(staging + "/" + name);
  }
  return from_rocksdb(status, "cannot empty " + staging);
}

Status RocksdbLog::append_commits(std::span<const Commit> commits, bool sync) {
  // One batch is one record of RocksDB's own log, which its recovery accepts as a whole or not at
  // all.
  batch_.Clear();
  rocksdb::Status status;
  for (const Commit& commit : commits) {
    const LogKey key = encode_log_key(commit.first_lsn);
    if (status.ok()) status = put(batch_, to_slice(key), commit.parts);
    if (commit.position.empty() || !status.ok()) continue;
    status = batch_.Put(to_slice(encode_position_key(commit.first_lsn)), to_slice(commit.position));
  }
  rocksdb::WriteOptions write;
  write.sync = sync;
  if (status.ok()) status = db_->Write(write, &batch_);
  if (batch_.Data().capacity() > kKeptBatchBytes) batch_ = rocksdb::WriteBatch();
  if (status.ok()) return {};
  return from_rocksdb(status, "cannot write to the log in " + directory_->path("log"));
}

Result<std::string> RocksdbLog::position_at(Lsn last) {
  std::unique_ptr<rocksdb::Iterator> at = iterate(read_options());
  const LogKey behind = encode_log_key(last + 1);
  at->SeekForPrev(to_slice(behind));
  if (at->Valid() && at->key() == to_slice(behind)) at->Prev();
  if (!at->status().ok()) {
    return from_rocksdb(at->status(), "cannot read " + directory_->path("log"));
  }
  if (!at->Valid() || !is_position_key(to_bytes(at->key()))) return std::string();
  return at->value().ToString();
}

Status RocksdbLog::trim_before(Lsn lsn) {
  // The commit that contains `lsn` begins at or before it, and everything from there must stay.
  std::unique_ptr<rocksdb::Iterator> at = iterate(read_options());
  const LogKey wanted = encode_log_key(lsn);
  at->SeekForPrev(to_slice(wanted));
  if (at->Valid() && is_position_key(to_bytes(at->key()))) at->Prev();
  if (!at->status().ok()) return from_rocksdb(at->status(), "cannot trim the log");
  if (!at->Valid()) return {};
  const std::string end_key = at->key().ToString();
  at.reset();  // an iterator would keep the files alive
  const LogKey first = encode_log_key(0);
  const rocksdb::Slice begin = to_slice(first);
  const rocksdb::Slice end(end_key);
  return from_rocksdb(
      rocksdb::DeleteFilesInRange(db_.get(), db_->DefaultColumnFamily(), &begin, &end, false),
      "cannot trim the log in " + directory_->path("log"));
}

Status RocksdbLog::truncate_after(Lsn lsn) {
  std::unique_ptr<rocksdb::Iterator> at = iterate(scan_options());
  const LogKey key = encode_log_key(lsn + 1);
  rocksdb::WriteBatch batch;
  rocksdb::Status status;
  for (at->Seek(to_slice(key)); status.ok() && at->Valid() && !is_checkpoint_key(at->key());
       at->Next()) {
    status = batch.Delete(at->key());
  }
  if (status.ok()) status = at->status();
  if (status.ok() && batch.Count() != 0) {
    rocksdb::WriteOptions write;
    write.sync = true;
    status = db_->Write(write, &batch);
  }
  return from_rocksdb(status, "cannot remove the tail of the log in " + directory_->path("log"));
}

Result<std::optional<CheckpointSummary>> RocksdbLog::newest_checkpoint() {
  const std::string place = directory_->path("log");
  std::unique_ptr<rocksdb::Iterator> at = iterate(read_options());
  at->SeekToLast();
  if (!at->status().ok())
    return from_rocksdb(at->status(), "cannot read the checkpoint in " + place);
  if (!at->Valid() || !is_checkpoint_key(at->key())) return std::optional<CheckpointSummary>();
  const std::string damage = "the checkpoint in " + place + " is damaged: ";
  const auto last = decode_piece_key(to_bytes(at->key()));
  const Result<CheckpointSummary> summary = decode_summary(to_bytes(at->value()));
  const bool is_summary = last && last->number == kSummaryNumber;
  if (is_summary && !summary.ok()) return damaged(damage + summary.status().message());
  if (!is_summary || summary->checkpoint != last->checkpoint) {
    return damaged(damage + "its last key is not that of a summary");
  }
  return std::optional<CheckpointSummary>(*summary);
}

Status RocksdbLog::drop_checkpoints_before(uint64_t checkpoint) {
  const PieceKey first = encode_piece_key(0, 0);
  const PieceKey last = encode_piece_key(checkpoint, 0);
  const rocksdb::Slice begin = to_slice(first);
  const rocksdb::Slice end = to_slice(last);
  return from_rocksdb(
      rocksdb::DeleteFilesInRange(db_.get(), db_->DefaultColumnFamily(), &begin, &end, false),
      "cannot drop old checkpoints in " + directory_->path("log"));
}

uint64_t RocksdbLog::disk_bytes() const {
  uint64_t total = 0;
  for (const std::string& folder :
       {directory_->root(), directory_->path("log"), directory_->path("staging")}) {
    std::vector<rocksdb::Env::FileAttributes> files;
    if (!env_->GetChildrenFileAttributes(folder, &files).ok()) continue;
    for (const rocksdb::Env::FileAttributes& file : files) total += file.size_bytes;
  }
  return total;
}

uint64_t RocksdbLog::memory_bytes() const {
  uint64_t total = 0;
  for (const char* property :
       {"rocksdb.size-all-mem-tables", "rocksdb.estimate-table-readers-mem"}) {
    uint64_t value = 0;
    if (db_->GetAggregatedIntProperty(property, &value)) total += value;
  }
  return total;
}

Result<uint64_t> RocksdbLog::free_disk_bytes() const {
  uint64_t bytes = 0;
  const Status status = from_rocksdb(env_->GetFreeSpace(directory_->root(), &bytes),
                                     "cannot determine the free space of " + directory_->root());
  if (!status.ok()) return status;
  return bytes;
}

}  // namespace

Result<std::unique_ptr<Log>> open_rocksdb_log(const RocksdbLogOptions& options) {
  use_fast_rocksdb_crc32c();
  auto log = std::make_unique<RocksdbLog>(options);
  if (Status status = log->open(); !status.ok()) return status;
  return std::unique_ptr<Log>(std::move(log));
}

}  // namespace sluice
