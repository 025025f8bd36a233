// LentWord: a long word of a request, in memory that the command may keep instead of copying it.
#pragma once

#include "engine/base/bytes.h"

namespace sluice {

struct LentWord {
  // Holds the word at the offset where a long string has its value in an entry (Entry::can_take).
  // No other word that the command uses is in this block.
  ByteBuffer& block;
  // The record that sets the key before the word to this value, without its end
  // (EffectEncoder::begin_put_string). Empty if it has not been made.
  ByteBuffer& record;
};

}  // namespace sluice
