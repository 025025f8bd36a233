#include "engine/rdb/file_reader.h"

#include "engine/base/numbers.h"
#include "engine/base/quoting.h"
#include "engine/rdb/format.h"
#include "engine/rdb/value.h"

namespace sluice::rdb {

namespace {

constexpr Bytes kMagic = "REDIS";
constexpr size_t kVersionDigits = 4;
constexpr int64_t kOldestVersion = 6;
constexpr int kMaxDatabase = 1 << 20;

// A module's id: nine characters of six bits each, and ten bits of version.
std::string module_name(uint64_t id) {
  constexpr Bytes kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string name;
  for (int shift = 58; shift >= 10; shift -= 6) name += kLetters[id >> shift & 63];
  return name;
}

}  // namespace

FileReader::Step FileReader::fail(const std::string& message) {
  if (!fault_) fault_ = FileFault{from_.position(), message};
  return Step::kFault;
}

FileReader::Step FileReader::fail_damaged(const std::string& what) {
  return fail((from_.left() == 0 ? "the file ends within " : "damaged: not ") + what);
}

FileReader::Step FileReader::refuse_module(const std::string& what) {
  uint64_t id = 0;
  if (!from_.length(id)) return fail_damaged("the name of a module");
  return fail(what + " of the module '" + module_name(id) + "': modules are not supported");
}

std::optional<FileFault> FileReader::read() {
  if (from_.position() == 0 && read_head()) return fault_;
  for (;;) {
    switch (read_item()) {
      case Step::kGoOn:
        break;
      case Step::kEnd:
        read_end();
        return fault_;
      case Step::kFault:
        return fault_;
    }
  }
}

std::optional<FileFault> FileReader::read_head() {
  Bytes head;
  if (!from_.bytes(kMagic.size() + kVersionDigits, head) ||
      head.substr(0, kMagic.size()) != kMagic) {
    fail("not an RDB file");
    return fault_;
  }
  const std::string digits(head.substr(kMagic.size()));
  const auto version = parse_i64(digits.substr(std::min(digits.find_first_not_of('0'), size_t{3})));
  if (!version || *version < kOldestVersion || *version > kVersion) {
    fail("an RDB file of version " + digits + ": only those from 6 to " + std::to_string(kVersion) +
         " (Redis 2.8 to 7.0) can be read");
  }
  return fault_;
}

FileReader::Step FileReader::read_item() {
  uint8_t code = 0;
  if (!from_.byte(code)) return fail("the file ends without its end mark");
  Bytes ignored;
  uint64_t number = 0;
  switch (code) {
    case kEndOfFile:
      return Step::kEnd;
    case kSelectDatabase:
      return read_database();
    case kTableSizes:
      return read_sizes();
    case kAuxiliary:
      return read_auxiliary();
    case kFunctionLibrary:
      return read_library();
    case kExpiryMs:
      return read_expiry(sizeof(int64_t), 1);
    case kExpirySeconds:
      return read_expiry(sizeof(int32_t), 1000);
    case kIdleTime:
      return from_.length(number) ? Step::kGoOn : fail_damaged("an idle time");
    case kUseFrequency:
      return from_.bytes(1, ignored) ? Step::kGoOn : fail_damaged("a frequency of use");
    case kModuleAux:
      return refuse_module("data");
    case kFunctionBeforeRelease:
      return fail("functions of a release candidate of Redis 7.0");
    default:
      return read_key(code);
  }
}

FileReader::Step FileReader::read_database() {
  uint64_t number = 0;
  if (!from_.length(number) || number > kMaxDatabase) return fail_damaged("a database's number");
  database_ = static_cast<int>(number);
  return Step::kGoOn;
}

FileReader::Step FileReader::read_sizes() {
  uint64_t keys = 0;
  uint64_t expiries = 0;
  if (!from_.length(keys) || !from_.length(expiries)) return fail_damaged("a database's sizes");
  return Step::kGoOn;
}

FileReader::Step FileReader::read_auxiliary() {
  Bytes text;
  if (!from_.string(text)) return fail_damaged("a remark");
  const std::string name(text);
  if (!from_.string(text)) return fail_damaged("a remark");
  sink_.auxiliary(name, text);
  return Step::kGoOn;
}

FileReader::Step FileReader::read_library() {
  Bytes code;
  if (!from_.string(code)) return fail_damaged("a library of functions");
  const Status status = sink_.put_library(code);
  return status.ok() ? Step::kGoOn : fail("a library of functions: " + status.message());
}

FileReader::Step FileReader::read_expiry(size_t width, int64_t unit_ms) {
  uint64_t raw = 0;
  if (!from_.number(width, raw)) return fail_damaged("an expiry");
  // Seconds are signed as well.
  const int64_t time =
      width == sizeof(int32_t) ? static_cast<int32_t>(raw) : static_cast<int64_t>(raw);
  expire_ms_ = time * unit_ms;
  // A time before 1970 still means that the key expires; 0 would mean never.
  if (expire_ms_ <= 0) expire_ms_ = 1;
  return Step::kGoOn;
}

FileReader::Step FileReader::read_key(uint8_t type) {
  const uint64_t begin = from_.position() - 1;
  Bytes text;
  if (!from_.string(text)) return fail_damaged("a key");
  const std::string key(text);
  const std::string place =
      "the key " + printable_bytes(key) + " of database " + std::to_string(database_);
  const Bytes foreign = foreign_type_name(type);
  if (type == kModuleValue) return refuse_module(place + " holds a value");
  if (!foreign.empty()) return fail(place + " holds " + std::string(foreign));
  if (type > kStreamListpacks2) {
    fault_ = FileFault{begin, "damaged: " + std::to_string(type) + " is not a type of value"};
    return Step::kFault;
  }
  OwnedEntry entry = read_value(type, from_, key);
  if (entry == nullptr) {
    return fail_damaged("a value of type " + std::to_string(type) + ", of " + place);
  }
  entry->set_expire_ms(expire_ms_);
  expire_ms_ = 0;
  const Status status = sink_.put_key(database_, std::move(entry));
  return status.ok() ? Step::kGoOn : fail(place + ": " + status.message());
}

bool FileReader::read_end() {
  const uint64_t computed = from_.checksum();
  uint64_t checksum = 0;
  if (!from_.number(sizeof(checksum), checksum)) {
    fail("the file ends within its checksum");
  } else if (checksum != 0 && checksum != computed) {
    // Zero: the file was written with rdbchecksum no.
    fail("damaged: the checksum is wrong");
  } else if (from_.left() != 0) {
    fail(std::to_string(from_.left()) + " bytes follow the end of the file");
  }
  return !fault_;
}

}  // namespace sluice::rdb
