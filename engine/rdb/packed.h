// The packed sequences inside RDB strings: listpacks, intsets, and the older ziplists and zipmaps.
//
// Elements are texts: packed integers are converted to decimal. Readers check every offset and
// count before they use it, and return false for damage; some elements may have been passed on
// already. Layouts are those of redis-server 7.0.15 (its listpack.md, and what it writes).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/rdb/reader.h"

namespace sluice::rdb {

// Receives an element, a view that is valid during the call. Returning false rejects the whole
// sequence.
using TakeElement = std::function<bool(Bytes element)>;

bool read_listpack(Bytes packed, const TakeElement& take);
bool read_ziplist(Bytes packed, const TakeElement& take);
bool read_intset(Bytes packed, const TakeElement& take);
// Fields and values alternate.
bool read_zipmap(Bytes packed, const TakeElement& take);

// The text of an integer. A view of it is valid until the next set().
class NumberText {
 public:
  Bytes set(int64_t number);

 private:
  std::array<char, 24> text_;
};

// Takes the elements of a listpack one by one.
class ListpackReader {
 public:
  explicit ListpackReader(Bytes packed);
  // Returns false at the end and if the rest is damaged; is_whole() tells which. The view is valid
  // until the next call.
  bool next(Bytes& element);
  // Takes an element that must be an integer.
  bool next(int64_t& number);
  // Whether every element was taken, and their number and the end are right.
  bool is_whole();
  // The number of bytes before the next element.
  size_t position() const { return size_ - from_.rest().size(); }

 private:
  Reader from_;
  size_t size_;
  uint64_t count_ = 0;  // from the header
  uint64_t taken_ = 0;
  bool good_ = true;
  NumberText number_;
};

// Builds a listpack.
class ListpackWriter {
 public:
  ListpackWriter();
  void append(Bytes element);
  void append(int64_t number);
  size_t count() const { return count_; }
  // The size with one more element of this size, as an upper bound.
  size_t size_with(size_t element_bytes) const { return bytes_.size() + element_bytes + 16; }
  // Returns the whole listpack, with its header and end, and resets the writer.
  std::string take();

 private:
  void put_integer(int64_t value);
  void end_entry(size_t begin);

  std::string bytes_;
  size_t count_ = 0;
};

// `values` are ascending.
std::string write_intset(const std::vector<int64_t>& values);

}  // namespace sluice::rdb
