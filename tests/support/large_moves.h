// LargeMoves: while it exists every value counts as large, so moves are journaled as kMoveKey if
// the journal accepts them.
#pragma once

#include "engine/keyspace/database.h"

namespace sluice::test {

class LargeMoves {
 public:
  LargeMoves() { set(0, 0); }
  ~LargeMoves() {
    const MoveLimits usual;
    set(usual.elements, usual.string_bytes);
  }
  LargeMoves(const LargeMoves&) = delete;
  LargeMoves& operator=(const LargeMoves&) = delete;

 private:
  static void set(size_t elements, size_t string_bytes) {
    g_move_limits.elements = elements;
    g_move_limits.string_bytes = string_bytes;
  }
};

}  // namespace sluice::test
