// The edit distance of two words, by which a message suggests the word that was meant.
//
// Pure function.
#pragma once

#include "engine/base/bytes.h"

namespace sluice {

// The number of single-character edits (insertions, removals, replacements) between two words,
// without regard to case. Where it is greater than `most`, some number greater than `most`.
size_t edit_distance(Bytes a, Bytes b, size_t most);

}  // namespace sluice
