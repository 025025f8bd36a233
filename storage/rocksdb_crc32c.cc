// Replaces RocksDB's checksum function by ours at link time.
//
// RocksDB checks every byte of its write-ahead log with CRC-32C. Debian builds it for generic
// x86-64, without the SSE4.2 instruction, and the table lookup that remains costs 0.6 ns a byte: a
// fifth of the cost of a commit. The library calls the function through the dynamic linker, so a
// definition in the program takes its place. Both compute the same value; if the symbol is not
// interposed (another build of RocksDB), RocksDB uses its own function and nothing else changes.
// bench/micro/journal_bench measures it.
#include "storage/rocksdb_crc32c.h"

#include <cstddef>
#include <cstdint>

#include "engine/base/crc32c.h"

namespace rocksdb::crc32c {

// Name and arguments are RocksDB's.
uint32_t Extend(uint32_t crc, const char* data, size_t size);
uint32_t Extend(uint32_t crc, const char* data, size_t size) {
  return sluice::crc32c_extend(crc, data, size);
}

}  // namespace rocksdb::crc32c

namespace sluice {

void use_fast_rocksdb_crc32c() {}

}  // namespace sluice
