// The packed sequences inside RDB strings: listpacks, intsets, and the older ziplists and zipmaps.
//
// Elements are texts: what is packed as an integer is written in decimal. Readers check every
// offset and count before they use it, and answer false for damage; then `out` may hold a part.
// Layouts are those of redis-server 7.0.15 (its listpack.md, and what it writes).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/bytes.h"

namespace sluice::rdb {

bool read_listpack(Bytes packed, std::vector<std::string>& out);
bool read_ziplist(Bytes packed, std::vector<std::string>& out);
bool read_intset(Bytes packed, std::vector<std::string>& out);
// Fields and values by turns.
bool read_zipmap(Bytes packed, std::vector<std::string>& out);

// Builds a listpack.
class ListpackWriter {
 public:
  ListpackWriter();
  void append(Bytes element);
  size_t count() const { return count_; }
  // Bytes of the whole with one more element of this size, at most.
  size_t size_with(size_t element_bytes) const { return bytes_.size() + element_bytes + 16; }
  // The whole, with its header and end; the writer begins anew.
  std::string take();

 private:
  void append_integer(int64_t value);
  void end_entry(size_t begin);

  std::string bytes_;
  size_t count_ = 0;
};

// `values` ascending.
std::string write_intset(const std::vector<int64_t>& values);

}  // namespace sluice::rdb
