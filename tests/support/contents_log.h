// A read-only log with given contents, for tests of recovery. It refers to the contents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "storage/log.h"

namespace sluice::test {

// What a log holds.
struct Contents {
  std::vector<std::pair<Lsn, std::string>> commits;
  std::vector<std::string> pieces;
  std::optional<CheckpointSummary> summary;
  Lsn mark = 0;
  Status log_status;  // what reading the commits ends with
};

class ContentsReader final : public LogReader, public PieceReader {
 public:
  ContentsReader(const Contents& contents, Status status)
      : contents_(contents), status_(std::move(status)) {}
  bool next(Lsn& first_lsn, Bytes& commit) override {
    if (at_ == contents_.commits.size()) return false;
    first_lsn = contents_.commits[at_].first;
    commit = contents_.commits[at_++].second;
    return true;
  }
  bool next(uint32_t& number, Bytes& piece) override {
    if (at_ == contents_.pieces.size()) return false;
    number = static_cast<uint32_t>(at_);
    piece = contents_.pieces[at_++];
    return true;
  }
  Status status() const override { return status_; }

 private:
  const Contents& contents_;
  const Status status_;
  size_t at_ = 0;
};

// A read-only log.
class ContentsLog : public Log {
 public:
  explicit ContentsLog(const Contents& contents) : contents_(contents) {}
  Status append_commits(std::span<const Commit>, bool) override { return {}; }
  Status sync() override { return {}; }
  std::unique_ptr<LogReader> read_from(Lsn) override {
    return std::make_unique<ContentsReader>(contents_, contents_.log_status);
  }
  Status trim_before(Lsn) override { return {}; }
  Status truncate_after(Lsn) override { return {}; }
  Result<std::optional<CheckpointSummary>> newest_checkpoint() override {
    return contents_.summary;
  }
  std::unique_ptr<PieceReader> read_checkpoint(uint64_t) override {
    return std::make_unique<ContentsReader>(contents_, Status());
  }
  Result<std::unique_ptr<CheckpointWriter>> start_checkpoint(uint64_t) override {
    return Status(StatusCode::kUnsupported, "read only");
  }
  Status drop_checkpoints_before(uint64_t) override { return {}; }
  Status set_mark(Lsn) override { return {}; }
  Result<Lsn> mark() override { return contents_.mark; }
  std::string mark_name() const override { return "the mark"; }
  void on_failure(std::function<void(const Status&)>) override {}
  uint64_t disk_bytes() const override { return 0; }
  uint64_t memory_bytes() const override { return 0; }
  Result<uint64_t> free_disk_bytes() const override { return free_bytes; }

  uint64_t free_bytes = uint64_t{1} << 40;

 private:
  const Contents& contents_;
};

}  // namespace sluice::test
