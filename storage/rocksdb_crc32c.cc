// RocksDB's checksum function, replaced by ours at link time.
//
// RocksDB checks every byte of its write-ahead log with CRC-32C. Debian builds it for any x86-64,
// which compiles its use of the SSE4.2 instruction out, and the tables that are left cost 0.6 ns a
// byte: a fifth of all that a commit costs. The library calls the function through the dynamic
// linker, so a definition in the program takes its place. The value is the same; where the symbol
// should not be taken (another build of RocksDB), RocksDB uses its own and nothing else changes.
// bench/micro/journal_bench shows it.
#include "storage/rocksdb_crc32c.h"

#include <cstddef>
#include <cstdint>

#include "engine/base/crc32c.h"

namespace rocksdb::crc32c {

// The name and the arguments are RocksDB's.
uint32_t Extend(uint32_t crc, const char* data, size_t size);
uint32_t Extend(uint32_t crc, const char* data, size_t size) {
  return sluice::crc32c_extend(crc, data, size);
}

}  // namespace rocksdb::crc32c

namespace sluice {

void use_fast_rocksdb_crc32c() {}

}  // namespace sluice
