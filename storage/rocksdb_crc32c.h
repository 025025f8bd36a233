// See rocksdb_crc32c.cc. Calling this makes the linker include that file; it does nothing at run
// time.
#pragma once

namespace sluice {

void use_fast_rocksdb_crc32c();

}  // namespace sluice
