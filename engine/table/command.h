// Command: one declarative row for each command. Dispatch and its checks, COMMAND's replies and
// COMMANDS.md are derived from it. Each family of commands (engine/commands/) has a file with its
// rows; families.h lists them and builds the table.
//
// Rows are constant data, shared by all threads. Arity, flags, categories and key specifications
// are those of Redis 7.0, so that `COMMAND INFO` replies the same bytes.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "engine/base/bytes.h"

namespace sluice {

struct Call;

// Command flags. Their names in COMMAND INFO are in command_names.h.
enum : uint32_t {
  kWrite = 1U << 0,
  kReadonly = 1U << 1,
  kDenyOom = 1U << 2,
  kAdmin = 1U << 3,
  kPubsub = 1U << 4,
  kNoScript = 1U << 5,
  kBlocking = 1U << 6,
  kLoading = 1U << 7,
  kStale = 1U << 8,
  kSkipMonitor = 1U << 9,
  kSkipSlowlog = 1U << 10,
  kFast = 1U << 11,
  kNoAuth = 1U << 12,
  kNoMulti = 1U << 14,
  kMovableKeys = 1U << 15,
  kAllowBusy = 1U << 16,
  kNoAsyncLoading = 1U << 17,
  kNoMandatoryKeys = 1U << 18,
  kAsking = 1U << 19,
  // Flags that are not replied.
  // Runs at once inside MULTI, instead of being queued.
  kNotQueued = 1U << 20,
  // Ends a transaction. Unlike queueing more commands, it is never refused for lack of memory.
  kEndsTransaction = 1U << 21,
  // Runs the queued commands.
  kRunsQueued = 1U << 22,
  // Ends the watching of keys, and so needs the shards of all watched keys.
  kEndsWatching = 1U << 23,
  // Runs with every shard locked (KEYS, SCAN, FLUSHALL, EVAL); its handler may access any key.
  kEveryShard = 1U << 24,
  // Container of subcommands: args[1] selects a row of `subcommands`.
  kContainer = 1U << 25,
  // Changes no key, or only cached values of one (PFCOUNT), but has other effects, so scripts that
  // may only read must not call it.
  kSeenByOthers = 1U << 27,
  // The script determines the shards: ScriptEngine::shards().
  kScriptShards = 1U << 26,
  // Inspects keys without updating their access times, which OBJECT IDLETIME shows.
  kNoTouch = 1U << 28,
  // While the data is loading it runs without the shards that it needs otherwise.
  kNoShardsLoading = 1U << 30,
  // Does not grow the data, but journals a whole value, however large (RENAME): refused while the
  // disk is nearly full.
  kJournalsValue = 1U << 29,
};
// Commands that refuse_growth() may refuse for lack of memory or disk space.
inline constexpr uint32_t kNeedsRoom = kDenyOom | kJournalsValue;

// ACL categories, as `@name` in COMMAND INFO and ACL CAT.
enum : uint32_t {
  kAclKeyspace = 1U << 0,
  kAclRead = 1U << 1,
  kAclWrite = 1U << 2,
  kAclSet = 1U << 3,
  kAclSortedSet = 1U << 4,
  kAclList = 1U << 5,
  kAclHash = 1U << 6,
  kAclString = 1U << 7,
  kAclBitmap = 1U << 8,
  kAclHyperloglog = 1U << 9,
  kAclGeo = 1U << 10,
  kAclStream = 1U << 11,
  kAclPubsub = 1U << 12,
  kAclAdmin = 1U << 13,
  kAclFast = 1U << 14,
  kAclSlow = 1U << 15,
  kAclBlocking = 1U << 16,
  kAclDangerous = 1U << 17,
  kAclConnection = 1U << 18,
  kAclTransaction = 1U << 19,
  kAclScripting = 1U << 20,
};

// Flags of a key specification (Redis: `RO`, `RW`, ...).
enum : uint32_t {
  kKeyRo = 1U << 0,
  kKeyRw = 1U << 1,
  kKeyOw = 1U << 2,
  kKeyRm = 1U << 3,
  kKeyAccess = 1U << 4,
  kKeyUpdate = 1U << 5,
  kKeyInsert = 1U << 6,
  kKeyDelete = 1U << 7,
  kKeyNotKey = 1U << 8,
  kKeyIncomplete = 1U << 9,
  kKeyVariableFlags = 1U << 10,
};

// Secret arguments, which the slow log and MONITOR do not show.
enum class Secrets : uint8_t {
  kNone,
  kEveryArgument,
  kBehindAuth,    // the user and the password after the word AUTH
  kConfigValues,  // the values of the parameters that the server declares as secret
};

// What args[1] names in a command that runs Lua.
enum class ScriptName : uint8_t { kNone, kText, kSha, kFunction };

// The arguments that are channels, for ACL rules.
enum class Channels : uint8_t { kNone, kFirstArgument, kEveryArgument, kPatterns };

// The places of keys among the arguments, in Redis's model: where the search begins, and how keys
// follow.
struct KeySpec {
  enum class Begin : uint8_t { kNone, kIndex, kKeyword, kUnknown };
  enum class Find : uint8_t { kNone, kRange, kKeyNum, kUnknown };
  uint32_t flags = 0;
  Begin begin = Begin::kNone;
  int index = 0;  // kIndex: position; kKeyword: where the search begins (negative: from the end)
  const char* keyword = "";
  Find find = Find::kNone;
  int last = 0;  // kRange: last key relative to the first; negative counts from the end
  int step = 1;
  int limit = 0;          // kRange with last -1: 2 means the first half of the arguments, ...
  int key_num_index = 0;  // kKeyNum, relative to begin
  int first_key = 0;
  // The flags if they depend on the options (kKeyVariableFlags); null: `flags`.
  uint32_t (*flags_with_options)(std::span<const Bytes> args) = nullptr;
  // For kKeyword, an extension of Redis's model: the arguments from `index` on are pairs of a word
  // and its value, and the value after each occurrence of the keyword is a key.
  bool every_pair = false;
  const char* notes = "";
};

inline constexpr size_t kMaxKeySpecs = 3;

// The usual specifications: keys from argument `index` on, up to `last` more (negative: counted
// from the end), every `step`-th; and a number of keys at `index`, followed by the keys.
constexpr KeySpec keys_at(int index, uint32_t flags, int last = 0, int step = 1) {
  return {.flags = flags,
          .begin = KeySpec::Begin::kIndex,
          .index = index,
          .find = KeySpec::Find::kRange,
          .last = last,
          .step = step};
}
constexpr KeySpec counted_keys_at(int index, uint32_t flags) {
  return {.flags = flags,
          .begin = KeySpec::Begin::kIndex,
          .index = index,
          .find = KeySpec::Find::kKeyNum,
          .first_key = 1};
}

// A key among the arguments, with the flags of the specification that named it.
struct KeyPosition {
  size_t index;
  uint32_t flags;
};

// `arity`: as in Command. Whether it accepts this number of arguments.
inline bool arity_takes(int arity, size_t count) {
  return arity < 0 ? count >= static_cast<size_t>(-arity) : count == static_cast<size_t>(arity);
}

struct Command {
  const char* name = "";
  // With the name itself; negative: at least. By default as the syntax says.
  int arity = 0;
  uint32_t flags = 0;
  // Categories that the flags do not imply; by default that of the family, except in a container.
  uint32_t acl = 0;
  KeySpec keys[kMaxKeySpecs] = {};
  void (*handler)(Call& call) = nullptr;  // null for a container
  std::span<const Command> subcommands = {};
  const char* group = "";       // COMMAND DOCS: string, list, ...; by default that of the family
  const char* since = "1.0.0";  // version of Redis
  const char* complexity = "O(1)";
  const char* summary = "";  // not Redis's text
  // Arguments in the notation of Redis's documentation: "key [NX | XX] [EX seconds | PX
  // milliseconds]". The arity follows from it, COMMAND DOCS expands it, COMMANDS.md prints it.
  const char* syntax = "";
  const char* tips = "";  // space-separated, as in COMMAND INFO
  // Adds keys that the specifications cannot describe, or corrects the keys that they find. Null if
  // they are complete.
  void (*find_other_keys)(std::span<const Bytes> args,
                          std::vector<KeyPosition>& positions) = nullptr;
  // Whether it only reads with these arguments, of a command that writes with others. Null: never.
  bool (*only_reads)(std::span<const Bytes> args) = nullptr;
  Secrets secrets = Secrets::kNone;
  Channels channels = Channels::kNone;
  ScriptName script = ScriptName::kNone;
  // The argument that is usually looked up in the collection at the first key: a field, a member, a
  // job. Used only for prefetching; 0: no such argument, or the usual one of the group, which
  // CommandTable sets.
  uint8_t element_argument = 0;
  // Filled by CommandTable in its own copy of the row: what only_key_argument() reads (0: unknown
  // without a search), whose subcommand it is, and a dense number.
  uint8_t only_key = 0;          // the argument that is the only key
  uint8_t only_key_counted = 0;  // the same, if the argument `only_key_count` is 1
  uint8_t only_key_count = 0;
  uint16_t id = 0;
  const Command* container = nullptr;

  // Whether it accepts this number of arguments, its name included.
  bool takes(size_t count) const { return arity_takes(arity, count); }

  // Whether it writes with these arguments, which it takes. What a script does is not known.
  bool writes(std::span<const Bytes> args) const {
    return (flags & kWrite) != 0 && (only_reads == nullptr || !only_reads(args));
  }
};

// Whether the command can run while the data are being loaded, when shards are filled without
// locks: WATCH cannot, and without watched keys the commands that end transactions need no shards.
bool runs_without_data(const Command& command);

// Finds the positions of all keys in `args` by the command's specifications. Returns false if the
// arguments do not fit these (numkeys is not a number, or too large).
bool find_keys_with_flags(const Command& command, std::span<const Bytes> args,
                          std::vector<KeyPosition>& positions);

// The argument that is the command's only key, if that is known without a search: one at a fixed
// place, or after a count of 1. Otherwise 0.
inline size_t only_key_argument(const Command& command, std::span<const Bytes> args) {
  const size_t counted = command.only_key_counted;
  if (counted == 0 || counted >= args.size()) return command.only_key;
  return args[command.only_key_count] == "1" ? counted : 0;
}

// The rows of one file, and the group and the category of those that name none.
struct CommandFamily {
  const char* group;
  std::span<const Command> rows;
  uint32_t category = 0;
};

// All rows, with look-up by name in any case. Built once, then constant.
class CommandTable {
 public:
  using Families = std::span<const CommandFamily>;

  // REQUIRES: install() has returned.
  static const CommandTable& instance() { return *table_; }
  // Builds the table from the rows of all families. Only the first call has an effect.
  static void install(Families families);

  const Command* find(Bytes name) const;
  // The row of a container's subcommand, or null.
  static const Command* find_subcommand(const Command& container, Bytes name);
  // Takes "get", "client" or "client|kill"; returns null for an unknown name.
  const Command* find_by_full_name(Bytes name) const;
  // Top-level rows, and every row by its dense id.
  std::span<const Command* const> all() const { return top_level_; }
  size_t id_limit() const { return by_id_.size(); }
  const Command& by_id(size_t id) const { return *by_id_[id]; }
  // Returns "client|setname" or "get".
  static std::string full_name(const Command& command);

 private:
  explicit CommandTable(Families families);
  void add(const CommandFamily& family);
  void complete(Command& row, const CommandFamily& family);

  struct Slot {
    uint64_t low = 0;
    uint64_t high = 0;
    size_t size = 0;  // of the name; a search reads only slots
    const Command* command = nullptr;
  };
  static constexpr size_t kSlots = 1024;
  std::array<Slot, kSlots> slots_;
  std::deque<Command> rows_;
  std::deque<std::vector<Command>> subcommands_;
  std::vector<const Command*> top_level_;
  std::vector<const Command*> by_id_;
  static inline const CommandTable* table_ = nullptr;
};

}  // namespace sluice
