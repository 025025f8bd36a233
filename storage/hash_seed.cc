#include "storage/hash_seed.h"

#include <rocksdb/env.h>

#include <charconv>

#include "storage/data_directory.h"

namespace sluice {

namespace {

std::string hash_seed_path(const std::string& directory) { return directory + "/hash-seed"; }

}  // namespace

std::optional<uint64_t> read_hash_seed(const std::string& directory) {
  std::string text;
  if (!rocksdb::ReadFileToString(rocksdb::Env::Default(), hash_seed_path(directory), &text).ok()) {
    return std::nullopt;
  }
  uint64_t seed = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, seed);
  // A truncated file has no newline at its end.
  if (parsed.ec != std::errc() || std::string_view(parsed.ptr, end) != "\n") return std::nullopt;
  return seed;
}

Status keep_hash_seed(const std::string& directory, uint64_t seed) {
  if (read_hash_seed(directory) == seed) return {};
  const std::string name = hash_seed_path(directory);
  return from_rocksdb(
      rocksdb::WriteStringToFile(rocksdb::Env::Default(), std::to_string(seed) + "\n", name, false),
      "cannot write " + name);
}

}  // namespace sluice
