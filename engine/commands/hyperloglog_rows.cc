// The rows of the HyperLogLog family.
#include "engine/commands/hyperloglog.h"

#include "engine/commands/families.h"

namespace sluice {

namespace {

const Command kHyperLogLogRows[] = {
    {.name = "pfadd",
     .flags = kWrite | kDenyOom | kFast,
     .keys = {keys_at(1, kKeyRw | kKeyInsert)},
     .handler = pfadd_command,
     .since = "2.8.9",
     .complexity = "O(1) to add every element.",
     .summary = "Adds elements to a HyperLogLog, which is created if needed.",
     .syntax = "key [element [element ...]]"},
    {.name = "pfcount",
     .flags = kReadonly | kSeenByOthers,
     .keys = {{.flags = kKeyRw | kKeyAccess,
               .begin = KeySpec::Begin::kIndex,
               .index = 1,
               .find = KeySpec::Find::kRange,
               .last = -1,
               .notes = "RW because it may change the internal representation of the key, and "
                        "propagate to replicas"}},
     .handler = pfcount_command,
     .since = "2.8.9",
     .complexity = "O(1) with a very small average constant time when called with a single key. "
                   "O(N) with N being the number of keys, and much bigger constant times, when "
                   "called with multiple keys.",
     .summary = "Estimates the number of distinct elements that were added to any of several.",
     .syntax = "key [key ...]"},
    {.name = "pfmerge",
     .arity = -2,
     .flags = kWrite | kDenyOom,
     .keys = {keys_at(1, kKeyRw | kKeyAccess | kKeyInsert), keys_at(2, kKeyRo | kKeyAccess, -1)},
     .handler = pfmerge_command,
     .since = "2.8.9",
     .complexity = "O(N) to merge N HyperLogLogs, but with high constant times.",
     .summary = "Merges HyperLogLogs into one.",
     .syntax = "destkey sourcekey [sourcekey ...]"},
    {.name = "pfdebug",
     .flags = kWrite | kDenyOom | kAdmin,
     .keys = {keys_at(2, kKeyRw | kKeyAccess)},
     .handler = pfdebug_command,
     .since = "2.8.9",
     .complexity = "N/A",
     .summary = "Shows the encoding of a HyperLogLog: GETREG, DECODE, ENCODING, TODENSE.",
     .syntax = "subcommand key"},
    {.name = "pfselftest",
     .flags = kAdmin,
     .handler = pfselftest_command,
     .since = "2.8.9",
     .complexity = "N/A",
     .summary = "Tests the server's HyperLogLog functions."},
};

}  // namespace

const CommandFamily kHyperLogLogCommands = {"hyperloglog", kHyperLogLogRows, kAclHyperloglog};

}  // namespace sluice
