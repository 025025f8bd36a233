// RDB files as a stream: in pieces of any size, and with damage at every position.
#include <cstdint>
#include <string>
#include <vector>

#include "engine/commands/complete_engine.h"
#include "engine/execution/execution.h"
#include "engine/rdb/crc64.h"
#include "engine/rdb/file_reader.h"
#include "engine/rdb/function_payload.h"
#include "tests/support/engine_session.h"
#include "tests/support/quiet_server.h"
#include "tests/support/test.h"

namespace sluice::test {

namespace {

constexpr uint64_t kMaxString = 1 << 20;

// Returns a text in pieces of limited size.
class TextSource final : public rdb::Source {
 public:
  TextSource(Bytes text, size_t piece) : text_(text), piece_(piece) {}
  size_t read(char* to, size_t size) override {
    const Bytes given = text_.substr(0, std::min(size, piece_));
    given.copy(to, given.size());
    text_.remove_prefix(given.size());
    return given.size();
  }

 private:
  Bytes text_;
  size_t piece_;
};

struct Collected final : public rdb::FileSink {
  std::vector<std::string> keys;
  std::vector<std::string> libraries;
  std::string version;
  void auxiliary(Bytes name, Bytes value) override {
    if (name == "redis-ver") version = value;
  }
  Status put_key(int database, OwnedEntry entry) override {
    keys.push_back(std::to_string(database) + ":" + std::string(entry->key()) + ":" +
                   std::to_string(entry->expire_ms()));
    return {};
  }
  Status put_library(Bytes code) override {
    libraries.emplace_back(code);
    return {};
  }
};

std::optional<rdb::FileFault> read(Bytes file, size_t piece, Collected& collected) {
  TextSource source(file, piece);
  rdb::Reader from(source, file.size(), kMaxString);
  return rdb::FileReader(from, collected).read();
}

std::string text(Bytes bytes) { return static_cast<char>(bytes.size()) + std::string(bytes); }

std::string with_checksum(std::string file) {
  file += '\xff';
  uint64_t crc = rdb::crc64(file);
  for (int i = 0; i < 8; ++i, crc >>= 8) file += static_cast<char>(crc);
  return file;
}

std::string sample() {
  std::string file = "REDIS0010";
  file += "\xfa" + text("redis-ver") + text("7.0.15");
  file += "\xf5" + text("some code");
  file += std::string("\xfe\x02\xfb\x02\x01", 5);
  file += std::string("\xfc\x01\x00\x00\x00\x00\x01\x00\x00", 9);
  file += std::string("\xf8\x05\x00", 3) + text("timed") + text("value");
  file += '\x01' + text("list") + '\x02' + text("a") + text(std::string(60, 'b'));
  file += '\x12' + text("quick") + std::string("\x01\x01", 2) + text("plain");
  return with_checksum(file);
}

}  // namespace

TEST_CASE("a file is read in pieces of any size") {
  const std::string file = sample();
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{7}, file.size()}) {
    Collected collected;
    CHECK_FALSE(read(file, piece, collected).has_value());
    CHECK(collected.version == "7.0.15");
    CHECK(collected.libraries == std::vector<std::string>{"some code"});
    CHECK(collected.keys ==
          std::vector<std::string>{"2:timed:1099511627777", "2:list:0", "2:quick:0"});
  }
}

TEST_CASE("a key that expired in 1970 or before is not one that never expires") {
  const std::string none(8, '\0');
  const std::string all(8, '\xff');
  for (const std::string& expiry :
       {'\xfc' + none, '\xfd' + none.substr(4), '\xfc' + all, '\xfd' + all.substr(4)}) {
    Collected collected;
    CHECK_FALSE(read(with_checksum("REDIS0010" + expiry + std::string(1, '\0') + text("k") +
                                   text("value") + std::string(1, '\0') + text("l") + text("")),
                     16, collected)
                    .has_value());
    CHECK(collected.keys == std::vector<std::string>{"0:k:1", "0:l:0"});
  }
}

TEST_CASE("a file that is cut or changed anywhere is refused with the place") {
  const std::string file = sample();
  for (size_t size = 0; size < file.size(); ++size) {
    Collected collected;
    const auto fault = read(Bytes(file).substr(0, size), 16, collected);
    REQUIRE(fault.has_value());
    CHECK(fault->offset <= size);
  }
  for (size_t at = 0; at < file.size(); ++at) {
    for (unsigned flip = 1; flip < 256; flip *= 2) {
      std::string changed = file;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      Collected collected;
      const auto fault = read(changed, 16, collected);
      REQUIRE(fault.has_value());
      CHECK(fault->offset <= file.size());
    }
  }
}

TEST_CASE("a file that is shorter than it said is refused") {
  const std::string file = sample();
  TextSource source(Bytes(file).substr(0, 40), 16);
  rdb::Reader from(source, file.size(), kMaxString);
  Collected collected;
  CHECK(rdb::FileReader(from, collected).read().has_value());
}

TEST_CASE("what the sink refuses ends the reading") {
  struct Refusing final : public rdb::FileSink {
    void auxiliary(Bytes, Bytes) override {}
    Status put_key(int, OwnedEntry) override { return invalid("no room"); }
    Status put_library(Bytes) override { return {}; }
  } refusing;
  const std::string file = sample();
  TextSource source(file, 16);
  rdb::Reader from(source, file.size(), kMaxString);
  const auto fault = rdb::FileReader(from, refusing).read();
  REQUIRE(fault.has_value());
  CHECK(fault->message.find("timed") != std::string::npos);
  CHECK(fault->message.find("no room") != std::string::npos);
}

TEST_CASE("entries are put in place of others outside of commands") {
  QuietServer port;
  CompleteEngine engine(port, 7);
  Execution execution(engine);
  EngineSession session(engine, execution);
  session.run({"RPUSH", "k", "a"});
  OwnedEntry entry(Entry::make_string("k", "text", 4'000'000'000'000));
  CHECK_FALSE(execution.put_entry(0, std::move(entry)));
  CHECK(execution.put_entry(3, OwnedEntry(Entry::make_string("k", "other", 0))));
  execution.finish();
  CHECK(session.run({"GET", "k"}) == "$4\r\ntext\r\n");
  CHECK(session.run({"PEXPIRETIME", "k"}) == ":4000000000000\r\n");
  session.run({"SELECT", "3"});
  CHECK(session.run({"GET", "k"}) == "$5\r\nother\r\n");
}

TEST_CASE("the payload of functions is refused where it is damaged") {
  const std::string payload = rdb::write_functions({"one", "two"});
  std::vector<std::string> codes;
  CHECK(rdb::read_functions(payload, kMaxString, codes) == rdb::FunctionsFault::kNone);
  CHECK(codes == std::vector<std::string>{"one", "two"});
  for (size_t size = 0; size < payload.size(); ++size) {
    codes.clear();
    CHECK(rdb::read_functions(Bytes(payload).substr(0, size), kMaxString, codes) ==
          rdb::FunctionsFault::kFooter);
  }
}

}  // namespace sluice::test
