#include "tools/cli/candidates.h"

#include <cstdio>

#include "engine/queue/field_help.h"
#include "tools/cli/context.h"
#include "tools/cli/failure.h"
#include "tools/cli/replies.h"
#include "tools/cli/text.h"

namespace sluice::cli {

namespace {

// A completion must be quick.
constexpr int64_t kCompletionPatienceMs = 1000;

// The name of the operand at this place in "QUEUE [ID...]"; the last one may repeat.
std::string operand_name(const CommandRow& row, size_t at) {
  std::vector<std::string> names = split_words(row.operands);
  if (names.empty()) return {};
  if (at < names.size()) return names[at];
  return names.back().find("...") != std::string::npos ? names.back() : std::string();
}

// The words of "bash|zsh|fish" or "QUEUE [in|out|all]"; empty if none are known.
std::string operand_choices(const CommandRow& row) {
  const std::string operands = row.operands;
  if (operands.find('|') == std::string::npos || operands.find('.') != std::string::npos) return {};
  const size_t bracket = operands.rfind('[');
  std::string words = operands.substr(bracket == std::string::npos ? 0 : bracket + 1);
  for (char& c : words) {
    if (c == '|' || c == ']') c = ' ';
  }
  // A name in capitals is a placeholder.
  return words.find("PAYLOAD") == std::string::npos ? words : "";
}

void offer(const std::string& word, const char* about = "") {
  std::printf("%s\t%s\n", word.c_str(), about);
}

void offer_words(const std::string& words) {
  for (const std::string& word : split_words(words)) offer(word);
}

void offer_options(std::span<const Option> options) {
  for (const Option& option : options) offer(option.name, option.help);
}

// What the rows say.
void offer_by_rows(const Arguments& arguments, const Option* open,
                   std::span<const CommandRow> rows) {
  const CommandRow* row = arguments.command();
  if (open != nullptr) {
    if (takes_path(*open)) std::puts("<files>");
    if (open->choices != nullptr) offer_words(open->choices);
    return;
  }
  if (row == nullptr) {
    for (const CommandRow& each : rows) offer(each.name, each.help);
  } else {
    if (operand_name(*row, arguments.operands().size()) == "FILE") std::puts("<files>");
    for (const auto& options : row->options) offer_options(options);
    offer_words(operand_choices(*row));
  }
  offer_options(common_options());
}

std::vector<std::string> bands_of(Context& context) {
  const RespValue reply =
      as_map(context.connection.call({"Q.CONFIG", context.queue(), "GET", "bands"}));
  return band_names(text_of(reply, "bands"));
}

std::vector<std::string> ids_of(Context& context) {
  std::vector<std::string> ids;
  const RespValue reply =
      context.connection.call({"Q.LIST", context.queue(), "BRIEF", "COUNT", "200"});
  const RespValue jobs = as_maps(reply.items[1]);
  for (const RespValue& job : jobs.items) ids.push_back(text_of(job, "id"));
  return ids;
}

// What the server knows.
std::vector<std::string> candidates(Context& context, const Option* open) {
  const CommandRow* row = context.arguments.command();
  if (row == nullptr) return {};
  const bool has_queue = context.operands() > 0;
  if (open != nullptr) {
    const Bytes value = open->value;
    if (value == "BAND" && has_queue) return bands_of(context);
    return value == "ID" && has_queue ? ids_of(context) : std::vector<std::string>();
  }
  const std::string name = operand_name(*row, context.operands());
  if (name.find("QUEUE") != std::string::npos) return find_queues(context.connection);
  if (name.find("FIELD") != std::string::npos) {
    std::vector<std::string> fields;
    for (const FieldHelp& field : config_field_help())
      fields.push_back(std::string(field.name) + "=");
    return fields;
  }
  const bool is_id = name == "ID" || name.starts_with("[ID");
  return is_id && has_queue ? ids_of(context) : std::vector<std::string>();
}

// Names that a shell would split or expand are not offered, nor what a terminal would obey, or an
// option.
bool is_plain(const std::string& word) {
  return !word.empty() && word[0] != '-' && printable(word) == word &&
         word.find_first_of(" \t\n'\"\\$`&|;<>()*?[]{}~!#") == std::string::npos;
}

}  // namespace

void print_candidates(std::span<const std::string> words, std::span<const CommandRow> rows) {
  try {
    const Option* open = nullptr;
    const Arguments arguments = Arguments::parse_begun(words, rows, open);
    offer_by_rows(arguments, open, rows);
    Context context(arguments, rows);
    context.connection.set_patience(kCompletionPatienceMs);
    for (const std::string& word : candidates(context, open)) {
      if (is_plain(word)) offer(word);
    }
  } catch (const Failure&) {
    // Errors are ignored: an incomplete line may be wrong.
  }
}

}  // namespace sluice::cli
