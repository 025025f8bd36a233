// ReadAhead: returns everything the reader has, in order, and stays within its limit.
#include "storage/read_ahead.h"

#include "storage/log.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/test.h"

using namespace sluice;

namespace {

// Commits 1, 2, ... of the given sizes, then `status`.
class ListReader final : public LogReader {
 public:
  ListReader(std::vector<size_t> sizes, Status status, std::atomic<size_t>* read)
      : sizes_(std::move(sizes)), status_(std::move(status)), read_(read) {}

  bool next(Lsn& first_lsn, Bytes& commit) override {
    if (at_ == sizes_.size()) return false;
    first_lsn = at_ + 1;
    // The previous bytes are invalid, as the interface allows.
    bytes_.assign(sizes_[at_], static_cast<char>('a' + at_ % 26));
    commit = bytes_;
    ++at_;
    read_->store(at_);
    return true;
  }
  Status status() const override { return status_; }

 private:
  const std::vector<size_t> sizes_;
  const Status status_;
  std::atomic<size_t>* const read_;
  size_t at_ = 0;
  std::string bytes_;
};

size_t half(Bytes commit) { return commit.size() / 2; }

}  // namespace

TEST_CASE("what is read ahead comes whole and in order, then the reader's status") {
  std::vector<size_t> sizes;
  for (size_t i = 0; i < 2000; ++i) sizes.push_back(i % 7 == 0 ? 100'000 : i);
  std::atomic<size_t> read{0};
  ReadAhead<LogReader, Lsn> reader(
      std::make_unique<ListReader>(sizes, Status(StatusCode::kDamaged, "the end is torn"), &read),
      half);
  Lsn lsn = 0;
  Bytes commit;
  size_t sound = 0;
  size_t count = 0;
  while (reader.next(lsn, commit, sound)) {
    REQUIRE(count < sizes.size());
    REQUIRE(lsn == count + 1);
    REQUIRE(sound == commit.size() / 2);
    REQUIRE(commit == std::string(sizes[count], static_cast<char>('a' + count % 26)));
    ++count;
  }
  CHECK(count == sizes.size());
  CHECK_FALSE(reader.next(lsn, commit, sound));
  CHECK(reader.status().code() == StatusCode::kDamaged);
}

TEST_CASE("it stays a bounded way ahead, and ends in the middle") {
  constexpr size_t kMegabyte = size_t{1} << 20;
  std::atomic<size_t> read{0};
  {
    ReadAhead<LogReader, Lsn> reader(
        std::make_unique<ListReader>(std::vector<size_t>(100, kMegabyte), Status(), &read), half);
    Lsn lsn = 0;
    Bytes commit;
    size_t sound = 0;
    REQUIRE(reader.next(lsn, commit, sound));
    CHECK(lsn == 1);
  }
  // One was taken, at most eight are waiting, and the reader holds one.
  CHECK(read.load() <= 10);
  CHECK(read.load() >= 1);
}

TEST_CASE("a blob beyond the bound passes alone") {
  constexpr size_t kMegabyte = size_t{1} << 20;
  std::atomic<size_t> read{0};
  ReadAhead<LogReader, Lsn> reader(
      std::make_unique<ListReader>(std::vector<size_t>{20 * kMegabyte, 1, 20 * kMegabyte}, Status(),
                                   &read),
      half);
  Lsn lsn = 0;
  Bytes commit;
  size_t sound = 0;
  size_t bytes = 0;
  while (reader.next(lsn, commit, sound)) bytes += commit.size();
  CHECK(bytes == 40 * kMegabyte + 1);
  CHECK(reader.status().ok());
}
