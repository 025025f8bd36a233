// Command: one declarative row for each command, from which dispatch, the checks before it,
// COMMAND's replies and COMMANDS.md come. Each family of commands (engine/commands/) has a
// file with its rows; families.h lists them and builds the table.
//
// Rows are constant data, shared by all threads. Arity, flags, categories and key specifications
// are those of Redis 7.0, so that `COMMAND INFO` answers the same bytes.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "engine/base/bytes.h"

namespace sluice {

struct Call;

// Command flags. The names in COMMAND INFO are in command_info.cc.
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
  // Ours, not replied:
  // Runs at once inside MULTI, instead of being queued.
  kNotQueued = 1U << 20,
  // Ends a transaction: never refused for want of memory, as queueing more is.
  kEndsTransaction = 1U << 21,
  // Runs the queued commands.
  kRunsQueued = 1U << 22,
  // Ends the watching of keys, and so needs the shards of all watched ones.
  kEndsWatching = 1U << 23,
  // Runs with every shard locked (KEYS, SCAN, FLUSHALL, EVAL); its handler may touch any key.
  kEveryShard = 1U << 24,
  // Container of subcommands: args[1] chooses a row of `subcommands`.
  kContainer = 1U << 25,
  // Changes no key, or nothing of one but what it has counted (PFCOUNT), but is seen by others:
  // scripts that may only read may not call it.
  kSeenByOthers = 1U << 27,
  // The script says which shards it needs: ScriptEngine::shards().
  kScriptShards = 1U << 26,
  // Asks about keys without using them: OBJECT IDLETIME does not notice.
  kNoTouch = 1U << 28,
  // While the data is loading it runs without the shards that it needs otherwise.
  kNoShardsLoading = 1U << 30,
  // Does not grow the data, but journals a whole value, however large (RENAME): refused where the
  // disk is nearly full.
  kJournalsValue = 1U << 29,
};
// What may be refused for want of memory or disk: refuse_growth().
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

// Which arguments are secrets, so that the slow log and MONITOR do not show them.
enum class Secrets : uint8_t {
  kNone,
  kEveryArgument,
  kBehindAuth,    // the user and the password behind the word AUTH
  kConfigValues,  // the values of those parameters that the server says are secret
};

// What args[1] names in a command that runs Lua.
enum class ScriptName : uint8_t { kNone, kText, kSha, kFunction };

// Which arguments are channels, for ACL rules.
enum class Channels : uint8_t { kNone, kFirstArgument, kEveryArgument, kPatterns };

// Where keys stand among the arguments, in Redis's model: where the search begins, and how keys
// follow.
struct KeySpec {
  enum class Begin : uint8_t { kNone, kIndex, kKeyword, kUnknown };
  enum class Find : uint8_t { kNone, kRange, kKeyNum, kUnknown };
  uint32_t flags = 0;
  Begin begin = Begin::kNone;
  int index = 0;  // kIndex: position; kKeyword: where to start looking (negative: from the end)
  const char* keyword = "";
  Find find = Find::kNone;
  int last = 0;  // kRange: last key relative to the first; negative counts from the end
  int step = 1;
  int limit = 0;          // kRange with last -1: 2 means the first half of what follows, ...
  int key_num_index = 0;  // kKeyNum, relative to begin
  int first_key = 0;
  // The flags where they depend on the options (kKeyVariableFlags); null: `flags`.
  uint32_t (*flags_with_options)(std::span<const Bytes> args) = nullptr;
  // kKeyword, ours: the arguments from `index` on are pairs of a word and its value, and the value
  // behind each word that is the keyword is a key.
  bool every_pair = false;
  const char* notes = "";
};

inline constexpr size_t kMaxKeySpecs = 3;

// The usual specifications: keys from argument `index` on, up to `last` more (negative: counted
// from the end), every `step`-th; and a number of keys at `index` with the keys behind it.
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

struct Command {
  const char* name = "";
  int arity = 0;  // with the name itself; negative: at least
  uint32_t flags = 0;
  uint32_t acl = 0;
  KeySpec keys[kMaxKeySpecs] = {};
  void (*handler)(Call& call) = nullptr;  // null for a container
  std::span<const Command> subcommands = {};
  const char* group = "";  // COMMAND DOCS: string, list, ...
  const char* since = "1.0.0";
  const char* complexity = "";
  const char* summary = "";  // our own sentence
  // Arguments in the notation of Redis's documentation: "key [NX | XX] [EX seconds | PX
  // milliseconds]"; COMMAND DOCS expands it, COMMANDS.md prints it.
  const char* syntax = "";
  const char* tips = "";  // space-separated, as in COMMAND INFO
  // Adds keys whose places no specification can say, or corrects what the specifications found;
  // null: they say all.
  void (*find_other_keys)(std::span<const Bytes> args,
                          std::vector<KeyPosition>& positions) = nullptr;
  Secrets secrets = Secrets::kNone;
  Channels channels = Channels::kNone;
  ScriptName script = ScriptName::kNone;
  // Which argument is mostly looked up in the collection at the first key: a field, a member, a
  // job. For fetching ahead only; 0: none, or CommandTable takes the usual one of the group.
  uint8_t element_argument = 0;
  // Filled by CommandTable in its own copy of the row: whose subcommand it is, and a dense number.
  uint16_t id = 0;
  const Command* container = nullptr;

  // Whether it can have so many arguments, its name included.
  bool takes(size_t count) const {
    return arity < 0 ? count >= static_cast<size_t>(-arity)
                     : arity == 0 || count == static_cast<size_t>(arity);
  }
};

// Positions of all keys in `args` by the command's specifications. False: the specifications do not
// fit the arguments (numkeys is no number, or too large).
bool find_keys_with_flags(const Command& command, std::span<const Bytes> args,
                          std::vector<KeyPosition>& positions);

// The argument that is the command's only key where that is clear without a search: one at a fixed
// place, or behind a count of 1. 0: it is not.
size_t only_key_argument(const Command& command, std::span<const Bytes> args);

// All rows, and look-up by name without regard to case. Built once, then constant.
class CommandTable {
 public:
  using Families = std::span<const std::span<const Command>>;

  // REQUIRES: install() has returned.
  static const CommandTable& instance() { return *table_; }
  // Builds the table from the rows of all families. The first call counts, later ones do nothing.
  static void install(Families families);

  const Command* find(Bytes name) const;
  // The row of a container's subcommand; null: there is none of this name.
  static const Command* find_subcommand(const Command& container, Bytes name);
  // "get", "client" or "client|kill"; null if there is none.
  const Command* find_by_full_name(Bytes name) const;
  // Top-level rows, and every row by its dense id.
  std::span<const Command* const> all() const { return top_level_; }
  size_t id_limit() const { return by_id_.size(); }
  const Command& by_id(size_t id) const { return *by_id_[id]; }
  // "client|setname" or "get".
  static std::string full_name(const Command& command);

 private:
  explicit CommandTable(Families families);
  void add(std::span<const Command> rows);
  void number(const Command& row);

  struct Slot {
    uint64_t low = 0;
    uint64_t high = 0;
    size_t size = 0;  // of the name; a search touches nothing but slots
    const Command* command = nullptr;
  };
  std::vector<Slot> slots_;
  std::deque<Command> rows_;
  std::deque<std::vector<Command>> subcommands_;
  std::vector<const Command*> top_level_;
  std::vector<const Command*> by_id_;
  static inline const CommandTable* table_ = nullptr;
};

}  // namespace sluice
