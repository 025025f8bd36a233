#include "engine/table/command.h"

#include <algorithm>
#include <optional>

#include "engine/base/numbers.h"

namespace sluice {

namespace {

// Finds the positions of one specification's keys. Returns false if the arguments do not fit it.
bool find_spec_keys(const KeySpec& spec, std::span<const Bytes> args,
                    std::vector<KeyPosition>& positions) {
  const int count = static_cast<int>(args.size());
  int first = 0;
  switch (spec.begin) {
    case KeySpec::Begin::kIndex:
      first = spec.index;
      break;
    case KeySpec::Begin::kKeyword: {
      for (int i = spec.index; spec.every_pair && i + 1 < count; i += 2) {
        if (!equals_ignore_case(args[static_cast<size_t>(i)], spec.keyword)) continue;
        positions.push_back({static_cast<size_t>(i) + 1, spec.flags});
      }
      if (spec.every_pair) return true;
      const int from = spec.index > 0 ? spec.index : count + spec.index;
      const int step = spec.index > 0 ? 1 : -1;
      for (int i = from; i > 0 && i < count; i += step) {
        if (!equals_ignore_case(args[static_cast<size_t>(i)], spec.keyword)) continue;
        first = i + 1;
        break;
      }
      if (first == 0) return true;  // an absent option
      break;
    }
    default:
      return true;
  }
  int last = 0;
  int step = spec.step;
  if (spec.find == KeySpec::Find::kRange) {
    if (spec.last >= 0) {
      last = first + spec.last;
    } else if (spec.limit == 0) {
      last = count + spec.last;
    } else {
      last = first + (count - first) / spec.limit + spec.last;
    }
  } else if (spec.find == KeySpec::Find::kKeyNum) {
    const int at = first + spec.key_num_index;
    if (at >= count) return false;
    const auto keys = parse_i64(args[static_cast<size_t>(at)]);
    if (!keys || *keys < 0) return false;
    first += spec.first_key;
    // The number is the client's: more keys than arguments must not overflow.
    if (*keys > count || first + (static_cast<int>(*keys) - 1) * step >= count) return false;
    last = first + (static_cast<int>(*keys) - 1) * step;
  } else {
    return true;
  }
  if (last >= count) return false;
  const uint32_t flags =
      spec.flags_with_options == nullptr ? spec.flags : spec.flags_with_options(args);
  for (int i = first; i <= last; i += step) {
    positions.push_back({static_cast<size_t>(i), flags});
  }
  return true;
}

}  // namespace

bool find_keys_with_flags(const Command& command, std::span<const Bytes> args,
                          std::vector<KeyPosition>& positions) {
  positions.clear();
  bool fits = true;
  for (const KeySpec& spec : command.keys) {
    if (spec.begin == KeySpec::Begin::kNone || (spec.flags & kKeyNotKey) != 0) continue;
    if (!find_spec_keys(spec, args, positions)) fits = false;
  }
  if (command.find_other_keys != nullptr) command.find_other_keys(args, positions);
  return fits;
}

// --- Look-up ---

namespace {

// A name's first and last eight bytes in lower case, which are all of a name of up to 16 bytes.
void fold(Bytes name, uint64_t& low, uint64_t& high) {
  const char* p = name.data();
  const size_t n = name.size();
  low = 0;
  high = 0;
  if (n >= 8) {
    std::memcpy(&low, p, 8);
    std::memcpy(&high, p + n - 8, 8);
  } else if (n >= 4) {
    low = word8(name);
  } else if (n > 0) {
    low = static_cast<unsigned char>(p[0]) |
          static_cast<uint64_t>(static_cast<unsigned char>(p[n / 2])) << 8 |
          static_cast<uint64_t>(static_cast<unsigned char>(p[n - 1])) << 16;
  }
  low = ascii_lower8(low);
  if (n >= 8) high = ascii_lower8(high);
}

// A name's hash: the upper bits are the better ones.
uint64_t mix(uint64_t low, uint64_t high, size_t size) {
  return (low ^ (high * 0x9e3779b97f4a7c15ULL) ^ size) * 0xff51afd7ed558ccdULL >> 40;
}

uint8_t element_argument_of(const Command& row) {
  if (row.element_argument != 0) return row.element_argument;
  // After a number of keys any argument may follow.
  if (row.keys[0].find != KeySpec::Find::kRange) return 0;
  const Bytes group = row.group;
  return group == "hash" || group == "set" || group == "sorted-set" || group == "queue" ? 2 : 0;
}

void set_only_key(Command& row) {
  const KeySpec& spec = row.keys[0];
  if (spec.begin != KeySpec::Begin::kIndex || row.keys[1].begin != KeySpec::Begin::kNone ||
      row.find_other_keys != nullptr) {
    return;
  }
  if (spec.find == KeySpec::Find::kRange && spec.last == 0) {
    row.only_key = static_cast<uint8_t>(spec.index);
  } else if (spec.find == KeySpec::Find::kKeyNum && spec.key_num_index == 0) {
    row.only_key_count = static_cast<uint8_t>(spec.index);
    row.only_key_counted = static_cast<uint8_t>(spec.index + spec.first_key);
  }
}

// The categories by Redis's rule: the row's own, or its family's, and those that its flags imply.
uint32_t categories_of(const Command& row, uint32_t category) {
  constexpr uint32_t kImplied[][2] = {{kWrite, kAclWrite},
                                      {kAdmin, kAclAdmin | kAclDangerous},
                                      {kPubsub, kAclPubsub},
                                      {kBlocking, kAclBlocking}};
  uint32_t acl = row.acl;
  if (acl == 0 && (row.flags & kContainer) == 0) acl = category;
  if ((row.flags & kReadonly) != 0 && (acl & kAclScripting) == 0) acl |= kAclRead;
  for (const auto& [flag, implied] : kImplied) acl |= (row.flags & flag) != 0 ? implied : 0;
  return acl | ((row.flags & kFast) != 0 ? kAclFast : kAclSlow);
}

// The words that a syntax requires, up to the end of the bracket that `rest` is in. `open`: it
// takes more of them.
int least_words(Bytes& rest, bool& open) {
  int words = 0;
  std::optional<int> fewest;  // of the alternatives
  const auto end_alternative = [&] {
    open = open || (fewest && *fewest != words);
    fewest = std::min(fewest.value_or(words), words);
    words = 0;
  };
  while (!rest.empty()) {
    const char next = rest[0];
    rest.remove_prefix(1);
    if (next == ']' || next == '>') break;
    if (next == '|') {
      end_alternative();
    } else if (next == '<') {
      words += least_words(rest, open);
    } else if (next == '[') {
      open = true;
      least_words(rest, open);
    } else if (next != ' ') {
      ++words;
      rest.remove_prefix(std::min(rest.find_first_of(" ]>"), rest.size()));
    }
  }
  end_alternative();
  return *fewest;
}

int arity_of(const Command& row) {
  bool open = (row.flags & kContainer) != 0;
  const int name_words = open || row.container != nullptr ? 2 : 1;
  Bytes rest = row.syntax;
  const int least = name_words + least_words(rest, open);
  return open ? -least : least;
}

}  // namespace

void CommandTable::install(Families families) {
  static const CommandTable table(families);
  table_ = &table;
}

CommandTable::CommandTable(Families families) {
  for (const CommandFamily& family : families) add(family);
  std::sort(top_level_.begin(), top_level_.end(),
            [](const Command* a, const Command* b) { return Bytes(a->name) < Bytes(b->name); });
}

void CommandTable::complete(Command& row, const CommandFamily& family) {
  row.id = static_cast<uint16_t>(by_id_.size());
  by_id_.push_back(&row);
  if (row.group[0] == 0) row.group = family.group;
  row.acl = categories_of(row, family.category);
  set_only_key(row);
  if (row.arity == 0) row.arity = arity_of(row);
}

void CommandTable::add(const CommandFamily& family) {
  for (const Command& row : family.rows) {
    rows_.push_back(row);
    Command& own = rows_.back();
    complete(own, family);
    own.element_argument = element_argument_of(own);
    top_level_.push_back(&own);
    subcommands_.emplace_back(row.subcommands.begin(), row.subcommands.end());
    for (Command& subcommand : subcommands_.back()) {
      subcommand.container = &own;
      complete(subcommand, family);
    }
    own.subcommands = subcommands_.back();
    const Bytes name(own.name);
    Slot slot;
    fold(name, slot.low, slot.high);
    slot.size = name.size();
    slot.command = &own;
    size_t at = mix(slot.low, slot.high, name.size()) % kSlots;
    while (slots_[at].command != nullptr) at = (at + 1) % kSlots;
    slots_[at] = slot;
  }
}

const Command* CommandTable::find(Bytes name) const {
  constexpr size_t kHeldBytes = 16;  // bytes of a name in a slot
  uint64_t low;
  uint64_t high;
  fold(name, low, high);
  size_t at = mix(low, high, name.size()) % kSlots;
  for (; slots_[at].command != nullptr; at = (at + 1) % kSlots) {
    const Slot& slot = slots_[at];
    if (slot.low != low || slot.high != high || slot.size != name.size()) continue;
    if (name.size() > kHeldBytes && !equals_ignore_case(slot.command->name, name)) continue;
    return slot.command;
  }
  return nullptr;
}

const Command* CommandTable::find_subcommand(const Command& container, Bytes name) {
  for (const Command& row : container.subcommands) {
    if (equals_ignore_case(row.name, name)) return &row;
  }
  return nullptr;
}

const Command* CommandTable::find_by_full_name(Bytes name) const {
  const size_t bar = name.find('|');
  const Command* command = find(name.substr(0, bar));
  if (command == nullptr || bar == Bytes::npos) return command;
  return find_subcommand(*command, name.substr(bar + 1));
}

std::string CommandTable::full_name(const Command& command) {
  if (command.container == nullptr) return command.name;
  return std::string(command.container->name) + "|" + command.name;
}

bool runs_without_data(const Command& command) {
  const bool needs_shards =
      (command.flags & kEveryShard) != 0 || command.keys[0].begin != KeySpec::Begin::kNone;
  const bool fits = !needs_shards || (command.flags & kNoShardsLoading) != 0;
  return (command.flags & kLoading) != 0 && fits;
}

}  // namespace sluice
