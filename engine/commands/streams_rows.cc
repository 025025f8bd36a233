// The rows of the stream family.
#include "engine/commands/streams.h"

#include "engine/commands/families.h"
#include "engine/commands/help.h"
#include "engine/commands/size_command.h"

namespace sluice {

namespace {

// The first half of what follows the word STREAMS.
constexpr KeySpec keys_of_streams(int first_word) {
  return {.flags = kReadStreamFlags,
          .begin = KeySpec::Begin::kKeyword,
          .index = first_word,
          .keyword = "STREAMS",
          .find = KeySpec::Find::kRange,
          .last = -1,
          .limit = 2};
}

const Command kGroupSubcommands[] = {
    {.name = "create",
     .flags = kWrite | kDenyOom,
     .keys = {keys_at(2, kKeyRw | kKeyInsert)},
     .handler = xgroup_create_command,
     .since = "5.0.0",
     .summary = "Creates a group.",
     .syntax = "key groupname <id | $> [MKSTREAM] [ENTRIESREAD entries_read]"},
    {.name = "setid",
     .flags = kWrite,
     .keys = {keys_at(2, kKeyRw | kKeyUpdate)},
     .handler = xgroup_setid_command,
     .since = "5.0.0",
     .summary = "Sets the last ID that a group has read.",
     .syntax = "key groupname <id | $> [ENTRIESREAD entries_read]"},
    {.name = "destroy",
     .flags = kWrite,
     .keys = {keys_at(2, kKeyRw | kKeyDelete)},
     .handler = xgroup_destroy_command,
     .since = "5.0.0",
     .complexity = "O(N) where N is the number of entries in the group's pending entries list "
                   "(PEL).",
     .summary = "Removes a group.",
     .syntax = "key groupname"},
    {.name = "createconsumer",
     .flags = kWrite | kDenyOom,
     .keys = {keys_at(2, kKeyRw | kKeyInsert)},
     .handler = xgroup_createconsumer_command,
     .since = "6.2.0",
     .summary = "Creates a consumer.",
     .syntax = "key groupname consumername"},
    {.name = "delconsumer",
     .flags = kWrite,
     .keys = {keys_at(2, kKeyRw | kKeyDelete)},
     .handler = xgroup_delconsumer_command,
     .since = "5.0.0",
     .summary = "Removes a consumer and its pending entries.",
     .syntax = "key groupname consumername"},
    help_row("5.0.0"),
};

const Command kInfoSubcommands[] = {
    {.name = "stream",
     .flags = kReadonly,
     .keys = {keys_at(2, kKeyRo | kKeyAccess)},
     .handler = xinfo_stream_command,
     .since = "5.0.0",
     .summary = "Describes a stream; in full with its entries and groups.",
     .syntax = "key [FULL [COUNT count]]"},
    {.name = "groups",
     .flags = kReadonly,
     .keys = {keys_at(2, kKeyRo | kKeyAccess)},
     .handler = xinfo_groups_command,
     .since = "5.0.0",
     .summary = "Describes the groups of a stream.",
     .syntax = "key"},
    {.name = "consumers",
     .flags = kReadonly,
     .keys = {keys_at(2, kKeyRo | kKeyAccess)},
     .handler = xinfo_consumers_command,
     .since = "5.0.0",
     .summary = "Describes the consumers of a group.",
     .syntax = "key groupname",
     .tips = "nondeterministic_output"},
    help_row("5.0.0"),
};

const Command kStreamRows[] = {
    {.name = "xadd",
     .flags = kWrite | kDenyOom | kFast,
     .keys = {{.flags = kKeyRw | kKeyUpdate,
               .begin = KeySpec::Begin::kIndex,
               .index = 1,
               .find = KeySpec::Find::kRange,
               .notes = "UPDATE instead of INSERT because of the optional trimming feature"}},
     .handler = xadd_command,
     .since = "5.0.0",
     .complexity = "O(1) when adding a new entry, O(N) when trimming where N being the number of"
                   " entries evicted.",
     .summary = "Adds an entry at the end.",
     .syntax = "key [NOMKSTREAM] [<MAXLEN | MINID> [= | ~] threshold [LIMIT count]] <* | id>"
               " field value [field value ...]",
     .tips = "nondeterministic_output"},
    {.name = "xtrim",
     .flags = kWrite,
     .keys = {keys_at(1, kKeyRw | kKeyDelete)},
     .handler = xtrim_command,
     .since = "5.0.0",
     .complexity = "O(N), with N being the number of evicted entries. Constant times are very "
                   "small however, since entries are organized in macro nodes containing "
                   "multiple entries that can be released with a single deallocation.",
     .summary = "Removes the oldest entries, by their number or up to an id.",
     .syntax = "key <MAXLEN | MINID> [= | ~] threshold [LIMIT count]",
     .tips = "nondeterministic_output"},
    {.name = "xdel",
     .flags = kWrite | kFast,
     .keys = {keys_at(1, kKeyRw | kKeyDelete)},
     .handler = xdel_command,
     .since = "5.0.0",
     .complexity = "O(1) for each single item to delete in the stream, regardless of the stream "
                   "size.",
     .summary = "Removes entries.",
     .syntax = "key id [id ...]"},
    {.name = "xlen",
     .flags = kReadonly | kFast,
     .keys = {keys_at(1, kKeyRo)},
     .handler = size_command<Type::kStream>,
     .since = "5.0.0",
     .summary = "Counts the entries.",
     .syntax = "key"},
    {.name = "xrange",
     .flags = kReadonly,
     .keys = {keys_at(1, kKeyRo | kKeyAccess)},
     .handler = xrange_command,
     .since = "5.0.0",
     .complexity = "O(N) with N being the number of elements being returned. If N is constant "
                   "(e.g. always asking for the first 10 elements with COUNT), you can consider "
                   "it O(1).",
     .summary = "Reads the entries between two ids.",
     .syntax = "key start end [COUNT count]"},
    {.name = "xrevrange",
     .flags = kReadonly,
     .keys = {keys_at(1, kKeyRo | kKeyAccess)},
     .handler = xrevrange_command,
     .since = "5.0.0",
     .complexity = "O(N) with N being the number of elements returned. If N is constant (e.g. "
                   "always asking for the first 10 elements with COUNT), you can consider it "
                   "O(1).",
     .summary = "Reads the entries between two ids, the newest first.",
     .syntax = "key end start [COUNT count]"},
    {.name = "xread",
     .flags = kReadonly | kBlocking | kMovableKeys,
     .keys = {keys_of_streams(1)},
     .handler = xread_command,
     .since = "5.0.0",
     .complexity = "For each stream mentioned: O(N) with N being the number of elements being "
                   "returned, it means that XREAD-ing with a fixed COUNT is O(1). Note that when"
                   " the BLOCK option is used, XADD will pay O(M) time in order to serve the M "
                   "clients blocked on the stream getting new data.",
     .summary = "Reads the entries after given ids, of several streams; waits for them with BLOCK. "
                "The id + (the last entry) is from Redis 7.4.",
     .syntax = "[COUNT count] [BLOCK milliseconds] STREAMS key [key ...] id [id ...]",
     .find_other_keys = find_read_streams},
    {.name = "xgroup",
     .flags = kContainer,
     .subcommands = kGroupSubcommands,
     .since = "5.0.0",
     .complexity = "Depends on subcommand.",
     .summary = "Creates, moves and removes consumer groups and consumers."},
    {.name = "xreadgroup",
     .flags = kWrite | kBlocking | kMovableKeys,
     .keys = {keys_of_streams(4)},
     .handler = xreadgroup_command,
     .since = "5.0.0",
     .complexity = "For each stream mentioned: O(M) with M being the number of elements "
                   "returned. If M is constant (e.g. always asking for the first 10 elements "
                   "with COUNT), you can consider it O(1). On the other side when XREADGROUP "
                   "blocks, XADD will pay the O(N) time in order to serve the N clients blocked "
                   "on the stream getting new data.",
     .summary = "Reads entries as a consumer of a group: new ones, or its own pending ones.",
     .syntax = "GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key "
               "[key ...] id [id ...]",
     .find_other_keys = find_read_streams},
    {.name = "xack",
     .flags = kWrite | kFast,
     .keys = {keys_at(1, kKeyRw | kKeyUpdate)},
     .handler = xack_command,
     .since = "5.0.0",
     .complexity = "O(1) for each message ID processed.",
     .summary = "Acknowledges entries, which are then no longer pending.",
     .syntax = "key group id [id ...]"},
    {.name = "xpending",
     .flags = kReadonly,
     .keys = {keys_at(1, kKeyRo | kKeyAccess)},
     .handler = xpending_command,
     .since = "5.0.0",
     .complexity = "O(N) with N being the number of elements returned, so asking for a small "
                   "fixed number of entries per call is O(1). O(M), where M is the total number "
                   "of entries scanned when used with the IDLE filter. When the command returns "
                   "just the summary and the list of consumers is small, it runs in O(1) time; "
                   "otherwise, an additional O(N) time for iterating every consumer.",
     .summary = "Lists pending entries with their consumers and idle times.",
     .syntax = "key group [[IDLE min-idle-time] start end count [consumer]]",
     .tips = "nondeterministic_output"},
    {.name = "xclaim",
     .flags = kWrite | kFast,
     .keys = {keys_at(1, kKeyRw | kKeyUpdate)},
     .handler = xclaim_command,
     .since = "5.0.0",
     .complexity = "O(log N) with N being the number of messages in the PEL of the consumer "
                   "group.",
     .summary = "Assigns pending entries to another consumer.",
     .syntax = "key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-"
               "milliseconds] [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID id]",
     .tips = "nondeterministic_output"},
    {.name = "xautoclaim",
     .flags = kWrite | kFast,
     .keys = {keys_at(1, kKeyRw | kKeyDelete)},
     .handler = xautoclaim_command,
     .since = "6.2.0",
     .complexity = "O(1) if COUNT is small.",
     .summary = "Assigns entries that have been pending for long to another consumer.",
     .syntax = "key group consumer min-idle-time start [COUNT count] [JUSTID]",
     .tips = "nondeterministic_output"},
    {.name = "xinfo",
     .flags = kContainer,
     .subcommands = kInfoSubcommands,
     .since = "5.0.0",
     .complexity = "Depends on subcommand.",
     .summary = "Describes streams, groups and consumers."},
    {.name = "xsetid",
     .flags = kWrite | kDenyOom | kFast,
     .keys = {keys_at(1, kKeyRw | kKeyUpdate)},
     .handler = xsetid_command,
     .since = "5.0.0",
     .summary = "Sets the last id of a stream.",
     .syntax = "key last-id [ENTRIESADDED entries_added] [MAXDELETEDID max_deleted_entry_id]"},
};

}  // namespace

const CommandFamily kStreamCommands = {"stream", kStreamRows, kAclStream};

}  // namespace sluice
