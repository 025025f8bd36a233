// See rocksdb_crc32c.cc: calling this makes the linker take that file in. Does nothing at run time.
#pragma once

namespace sluice {

void use_fast_rocksdb_crc32c();

}  // namespace sluice
