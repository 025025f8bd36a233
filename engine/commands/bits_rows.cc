// The rows of the bitmap family.
#include "engine/commands/bits.h"
#include "engine/commands/families.h"

namespace sluice {

namespace {

const Command kBitRows[] = {
    {.name = "setbit",
     .flags = kWrite | kDenyOom,
     .keys = {keys_at(1, kKeyRw | kKeyAccess | kKeyUpdate)},
     .handler = setbit_command,
     .since = "2.2.0",
     .summary = "Sets or clears a bit of a string.",
     .syntax = "key offset value"},
    {.name = "getbit",
     .flags = kReadonly | kFast,
     .keys = {keys_at(1, kKeyRo | kKeyAccess)},
     .handler = getbit_command,
     .since = "2.2.0",
     .summary = "Reads a bit of a string.",
     .syntax = "key offset"},
    {.name = "bitcount",
     .flags = kReadonly,
     .keys = {keys_at(1, kKeyRo | kKeyAccess)},
     .handler = bitcount_command,
     .since = "2.6.0",
     .complexity = "O(N)",
     .summary = "Counts the bits that are set in a string or a part of it.",
     .syntax = "key [start end [BYTE | BIT]]"},
    {.name = "bitpos",
     .flags = kReadonly,
     .keys = {keys_at(1, kKeyRo | kKeyAccess)},
     .handler = bitpos_command,
     .since = "2.8.7",
     .complexity = "O(N)",
     .summary = "Finds the first bit that is set, or the first that is not.",
     .syntax = "key bit [start [end [BYTE | BIT]]]"},
    {.name = "bitop",
     .flags = kWrite | kDenyOom,
     .keys = {keys_at(2, kKeyOw | kKeyUpdate), keys_at(3, kKeyRo | kKeyAccess, -1)},
     .handler = bitop_command,
     .since = "2.6.0",
     .complexity = "O(N)",
     .summary = "Combines strings bit by bit into a key.",
     .syntax = "operation destination key [key ...]"},
    {.name = "bitfield",
     .flags = kWrite | kDenyOom,
     .keys = {{.flags = kKeyRw | kKeyAccess | kKeyUpdate | kKeyVariableFlags,
               .begin = KeySpec::Begin::kIndex,
               .index = 1,
               .find = KeySpec::Find::kRange,
               .flags_with_options = bitfield_key_flags,
               .notes = "This command allows both access and modification of the key"}},
     .handler = bitfield_command,
     .since = "3.2.0",
     .complexity = "O(1) for each subcommand specified",
     .summary = "Reads, writes and increments integers of any width at any bit of a string.",
     .syntax = "key [<GET encoding offset | [OVERFLOW <WRAP | SAT | FAIL>] <SET encoding offset "
               "value | INCRBY encoding offset increment>> [<GET encoding offset | [OVERFLOW <WRAP "
               "| SAT | FAIL>] <SET encoding offset value | INCRBY encoding offset increment>> "
               "...]]"},
    {.name = "bitfield_ro",
     .flags = kReadonly | kFast,
     .keys = {keys_at(1, kKeyRo | kKeyAccess)},
     .handler = bitfield_ro_command,
     .since = "6.0.0",
     .complexity = "O(1) for each subcommand specified",
     .summary = "Reads integers of any width at any bit of a string.",
     .syntax = "key [GET encoding offset [GET encoding offset ...]]"},
};

}  // namespace

const CommandFamily kBitCommands = {"bitmap", kBitRows, kAclBitmap};

}  // namespace sluice
