// COMMAND: the command table for clients, generated from the rows.
#include <algorithm>
#include <sstream>

#include "engine/base/numbers.h"
#include "engine/commands/server.h"
#include "engine/commands/syntax.h"
#include "engine/execution/call.h"
#include "engine/reply/map_reply.h"
#include "engine/table/command_names.h"

namespace sluice {

namespace {

constexpr uint32_t kRepliedFlags = (1U << 24) - 1;

template <size_t kCount>
void reply_names(Reply& reply, const FlagName (&names)[kCount], uint32_t flags, Bytes prefix = {}) {
  size_t count = 0;
  for (const FlagName& name : names) count += (flags & name.flag) != 0 ? 1 : 0;
  reply.set(count);
  for (const FlagName& name : names) {
    if ((flags & name.flag) != 0) reply.simple(std::string(prefix) + name.name);
  }
}

// First key, last key, step: the older description, from the first specification.
struct LegacyRange {
  int first = 0;
  int last = 0;
  int step = 0;
};

LegacyRange legacy_range(const Command& command) {
  LegacyRange range;
  int end = 0;
  for (const KeySpec& spec : command.keys) {
    if (spec.begin != KeySpec::Begin::kIndex || spec.find != KeySpec::Find::kRange) continue;
    if (range.first == 0) {
      range = {spec.index, 0, spec.step};
      end = spec.last < 0 ? spec.last : spec.index + spec.last;
      continue;
    }
    // Later specifications are merged if they continue without a gap.
    if (spec.index != end + 1 || spec.step != range.step) break;
    end = spec.last < 0 ? spec.last : spec.index + spec.last;
  }
  range.last = end;
  return range;
}

// Begins a field of a key specification. The map of its numbers follows.
Reply& begin_part(MapReply& map, Bytes name, Bytes type) {
  Reply& reply = map.field(name);
  reply.map(2);
  reply.bulk("type");
  reply.bulk(type);
  reply.bulk("spec");
  return reply;
}

void reply_key_spec(Reply& reply, const KeySpec& spec) {
  const bool notes = spec.notes[0] != 0;
  MapReply map(reply, notes ? 4 : 3);
  if (notes) map.text("notes", spec.notes);
  reply_names(map.field("flags"), kKeyFlagNames, spec.flags);
  if (spec.begin == KeySpec::Begin::kIndex) {
    MapReply begin(begin_part(map, "begin_search", "index"), 1);
    begin.integer("index", spec.index);
  } else if (spec.begin == KeySpec::Begin::kKeyword) {
    MapReply begin(begin_part(map, "begin_search", "keyword"), 2);
    begin.text("keyword", spec.keyword);
    begin.integer("startfrom", spec.index);
  } else {
    begin_part(map, "begin_search", "unknown").map(0);
  }
  if (spec.find == KeySpec::Find::kRange) {
    MapReply find(begin_part(map, "find_keys", "range"), 3);
    find.integer("lastkey", spec.last);
    find.integer("keystep", spec.step);
    find.integer("limit", spec.limit);
  } else if (spec.find == KeySpec::Find::kKeyNum) {
    MapReply find(begin_part(map, "find_keys", "keynum"), 3);
    find.integer("keynumidx", spec.key_num_index);
    find.integer("firstkey", spec.first_key);
    find.integer("keystep", spec.step);
  } else {
    begin_part(map, "find_keys", "unknown").map(0);
  }
}

std::vector<std::string> words(Bytes text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

void reply_command(Reply& reply, const Command& command) {
  const LegacyRange range = legacy_range(command);
  reply.array(10);
  reply.bulk(CommandTable::full_name(command));
  reply.integer(command.arity);
  reply_names(reply, kCommandFlagNames, command.flags & kRepliedFlags);
  reply.integer(range.first);
  reply.integer(range.last);
  reply.integer(range.step);
  reply_names(reply, kAclCategoryNames, command.acl, "@");
  const auto tips = words(command.tips);
  reply.set(tips.size());
  for (const std::string& tip : tips) reply.bulk(tip);
  size_t specs = 0;
  while (specs < kMaxKeySpecs && command.keys[specs].begin != KeySpec::Begin::kNone) ++specs;
  reply.set(specs);
  for (size_t i = 0; i < specs; ++i) reply_key_spec(reply, command.keys[i]);
  if (command.subcommands.empty()) return reply.set(0);
  reply.array(command.subcommands.size());
  for (const Command& subcommand : command.subcommands) reply_command(reply, subcommand);
}

// --- DOCS ---

void reply_arguments(Reply& reply, const std::vector<SyntaxNode>& nodes, int& key_index) {
  reply.array(nodes.size());
  for (const SyntaxNode& node : nodes) {
    const size_t flags =
        (node.optional ? 1U : 0U) + (node.multiple ? 1U : 0U) + (node.repeats_token ? 1U : 0U);
    MapReply map(reply);
    map.text("name", node.name);
    map.text("type", node.type);
    if (node.type == "key") map.integer("key_spec_index", key_index++);
    if (!node.token.empty()) map.text("token", node.token);
    if (flags != 0) {
      map.field("flags").set(flags);
      if (node.optional) reply.simple("optional");
      if (node.multiple) reply.simple("multiple");
      if (node.repeats_token) reply.simple("multiple_token");
    }
    if (!node.arguments.empty()) reply_arguments(map.field("arguments"), node.arguments, key_index);
  }
}

void reply_docs(Reply& reply, const Command& command) {
  reply.bulk(CommandTable::full_name(command));
  MapReply map(reply);
  map.text("summary", command.summary);
  map.text("since", command.since);
  map.text("group", command.group);
  if (command.complexity[0] != 0) map.text("complexity", command.complexity);
  if (command.syntax[0] != 0 && command.subcommands.empty()) {
    int key_index = 0;
    reply_arguments(map.field("arguments"), parse_syntax(command.syntax), key_index);
  }
  if (command.subcommands.empty()) return;
  map.field("subcommands").map(command.subcommands.size());
  for (const Command& subcommand : command.subcommands) reply_docs(reply, subcommand);
}

// --- LIST ---

bool is_in_category(const Command& command, Bytes name) {
  const FlagName* category = find_acl_category(name);
  return category != nullptr && (command.acl & category->flag) != 0;
}

// The command in the arguments of COMMAND GETKEYS, or null with the error replied.
const Command* asked_command(Call& call, std::span<const Bytes> args) {
  const Command* command = CommandTable::instance().find(args[0]);
  if (command != nullptr && !command->subcommands.empty() && args.size() > 1) {
    command = CommandTable::find_subcommand(*command, args[1]);
  }
  Bytes error;
  if (command == nullptr) {
    error = "ERR Invalid command specified";
  } else if (command->keys[0].begin == KeySpec::Begin::kNone ||
             (command->keys[0].flags & kKeyNotKey) != 0) {
    error = "ERR The command has no key arguments";
  } else if (!command->takes(args.size())) {
    error = "ERR Invalid number of arguments specified for command";
  } else {
    return command;
  }
  call.reply.error(error);
  return nullptr;
}

// Whether a number of keys is 0 in a command that needs keys: the destination alone is not a valid
// answer.
bool counts_no_keys(const Command& command, std::span<const Bytes> args) {
  if ((command.flags & kNoMandatoryKeys) != 0) return false;
  return std::any_of(std::begin(command.keys), std::end(command.keys), [&](const KeySpec& spec) {
    const auto at = static_cast<size_t>(spec.index + spec.key_num_index);
    return spec.begin == KeySpec::Begin::kIndex && spec.find == KeySpec::Find::kKeyNum &&
           at < args.size() && parse_i64(args[at]) == 0;
  });
}

bool asked_keys(Call& call, std::vector<KeyPosition>& positions) {
  const auto args = call.args.subspan(2);
  const Command* command = asked_command(call, args);
  if (command == nullptr) return false;
  if (!find_keys_with_flags(*command, args, positions) || counts_no_keys(*command, args)) {
    positions.clear();
  }
  if (!positions.empty() || (command->flags & kNoMandatoryKeys) != 0) return true;
  return fail(call, "ERR Invalid arguments specified for command");
}

}  // namespace

void command_command(Call& call) {
  const auto rows = CommandTable::instance().all();
  call.reply.array(rows.size());
  for (const Command* row : rows) reply_command(call.reply, *row);
}

void command_count_command(Call& call) {
  call.reply.integer(static_cast<int64_t>(CommandTable::instance().all().size()));
}

void command_info_command(Call& call) {
  if (call.args.size() == 2) return command_command(call);
  call.reply.array(call.args.size() - 2);
  for (const Bytes name : call.args.subspan(2)) {
    const Command* command = CommandTable::instance().find_by_full_name(name);
    command == nullptr ? call.reply.null() : reply_command(call.reply, *command);
  }
}

void command_docs_command(Call& call) {
  std::vector<const Command*> rows;
  if (call.args.size() == 2) {
    const auto all = CommandTable::instance().all();
    rows.assign(all.begin(), all.end());
  } else {
    for (const Bytes name : call.args.subspan(2)) {
      if (const Command* command = CommandTable::instance().find_by_full_name(name))
        rows.push_back(command);
    }
  }
  call.reply.map(rows.size());
  for (const Command* row : rows) reply_docs(call.reply, *row);
}

void command_list_command(Call& call) {
  const bool filtered = call.args.size() > 2;
  if (filtered && (call.args.size() != 5 || !call.option(2, "FILTERBY"))) {
    return call.reply.error(errors::kSyntax);
  }
  enum { kNone, kModule, kCategory, kPattern } by = kNone;
  if (filtered) {
    by = call.option(3, "MODULE")    ? kModule
         : call.option(3, "ACLCAT")  ? kCategory
         : call.option(3, "PATTERN") ? kPattern
                                     : kNone;
    if (by == kNone) return call.reply.error(errors::kSyntax);
  }
  std::vector<std::string> names;
  const CommandTable& table = CommandTable::instance();
  for (size_t id = 0; id < table.id_limit(); ++id) {
    const Command& command = table.by_id(id);
    const std::string name = CommandTable::full_name(command);
    const bool listed = !filtered || (by == kCategory && is_in_category(command, call.args[4])) ||
                        (by == kPattern && glob_match(call.args[4], name, true));
    if (listed) names.push_back(name);
  }
  call.reply.array(names.size());
  for (const std::string& name : names) call.reply.bulk(name);
}

void command_getkeys_command(Call& call) {
  std::vector<KeyPosition> positions;
  if (!asked_keys(call, positions)) return;
  call.reply.array(positions.size());
  for (const KeyPosition position : positions) call.reply.bulk(call.args[position.index + 2]);
}

void command_getkeysandflags_command(Call& call) {
  std::vector<KeyPosition> positions;
  if (!asked_keys(call, positions)) return;
  call.reply.array(positions.size());
  for (const KeyPosition position : positions) {
    call.reply.array(2);
    call.reply.bulk(call.args[position.index + 2]);
    reply_names(call.reply, kKeyFlagNames, position.flags);
  }
}

}  // namespace sluice
