// LentWord: a long word of a request, in memory that the command may keep instead of copying it.
#pragma once

#include "engine/base/bytes.h"

namespace sluice {

struct LentWord {
  // The word stands in it where a long string stands in its entry (Entry::can_take). No other word
  // that the command uses lies there.
  ByteBuffer& block;
  // The record that gives the key before the word this value, but for its end
  // (EffectEncoder::begin_put_string); empty: nobody has made it.
  ByteBuffer& record;
};

}  // namespace sluice
