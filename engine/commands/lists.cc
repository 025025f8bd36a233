#include "engine/commands/families.h"

namespace sluice {
const std::span<const Command> kListCommands;
}  // namespace sluice
