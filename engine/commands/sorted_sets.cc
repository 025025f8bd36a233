#include "engine/commands/families.h"

namespace sluice {
const std::span<const Command> kSortedSetCommands;
}  // namespace sluice
