#include "net/config/config_table.h"

#include <charconv>
#include <unordered_map>

#include "engine/base/check.h"
#include "engine/base/numbers.h"
#include "net/config/config_special.h"

namespace sluice {

std::vector<Directive> effective_directives();

namespace {

// The type of a row, which need not name it.
ValueType type_of(const Directive& row) {
  using enum ValueType;
  constexpr ValueType kOfBinding[] = {kText, kBool, kInteger, kMemory, kText, kChoice};
  if (row.type != kText) return row.type;
  return *row.choices != '\0' ? kChoice : kOfBinding[row.binding.index()];
}

// The index of `text` in "a, b, c".
std::optional<size_t> choice_index(Bytes choices, Bytes text) {
  for (size_t index = 0;; ++index) {
    const size_t comma = choices.find(", ");
    if (equals_ignore_case(choices.substr(0, comma), text)) return index;
    if (comma == Bytes::npos) return std::nullopt;
    choices.remove_prefix(comma + 2);
  }
}

std::string range_text(const Directive& directive) {
  return std::to_string(directive.low) + " and " + std::to_string(directive.high);
}

Result<std::string> apply_bool(const Directive& directive, const std::string& text,
                               ConfigDraft& draft) {
  const bool yes = equals_ignore_case(text, "yes");
  if (!yes && !equals_ignore_case(text, "no")) return invalid("argument must be 'yes' or 'no'");
  if (const auto* member = std::get_if<bool Settings::*>(&directive.binding)) {
    draft.settings.** member = yes;
  }
  return std::string(yes ? "yes" : "no");
}

Result<std::string> apply_integer(const Directive& directive, const std::string& text,
                                  ConfigDraft& draft) {
  const std::optional<int64_t> number = parse_i64(text);
  if (!number) return invalid("argument couldn't be parsed into an integer");
  if (*number < directive.low || (*number > 0 && static_cast<uint64_t>(*number) > directive.high)) {
    return invalid("argument must be between " + range_text(directive) + " inclusive");
  }
  if (const auto* member = std::get_if<int64_t Settings::*>(&directive.binding)) {
    draft.settings.** member = *number;
  }
  return std::to_string(*number);
}

Result<std::string> apply_octal(const Directive& directive, const std::string& text,
                                ConfigDraft& draft) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number, 8);
  if (parsed.ec != std::errc() || parsed.ptr != end) {
    return invalid("argument couldn't be parsed as an octal number");
  }
  const auto octal = [](uint64_t n) {
    char digits[24];
    return std::string(digits, std::to_chars(digits, digits + sizeof digits, n, 8).ptr);
  };
  if (number < directive.low || static_cast<uint64_t>(number) > directive.high) {
    return invalid("argument must be between " + octal(static_cast<uint64_t>(directive.low)) +
                   " and " + octal(directive.high) + " inclusive");
  }
  if (const auto* member = std::get_if<int64_t Settings::*>(&directive.binding)) {
    draft.settings.** member = number;
  }
  return octal(static_cast<uint64_t>(number));
}

Result<std::string> apply_memory(const Directive& directive, const std::string& text,
                                 ConfigDraft& draft) {
  if (directive.type == ValueType::kMemoryOrPercent && !text.empty() && text.back() == '%') {
    const std::optional<int64_t> percent = parse_i64(Bytes(text).substr(0, text.size() - 1));
    if (!percent || *percent < 0) return invalid("argument must be a memory or percent value");
    if (*percent > 100) return invalid("percentage argument must be less or equal to 100");
    return *percent == 0 ? "0" : std::to_string(*percent) + '%';
  }
  const std::optional<uint64_t> bytes = config_special::parse_memory(text);
  if (!bytes) {
    return invalid(directive.type == ValueType::kMemory
                       ? "argument must be a memory value"
                       : "argument must be a memory or percent value");
  }
  if (*bytes < static_cast<uint64_t>(directive.low) || *bytes > directive.high) {
    return invalid("argument must be between " + range_text(directive) + " inclusive");
  }
  if (const auto* member = std::get_if<uint64_t Settings::*>(&directive.binding)) {
    draft.settings.** member = *bytes;
  }
  return std::to_string(*bytes);
}

Result<std::string> apply_choice(const Directive& directive, const std::string& text,
                                 ConfigDraft& draft) {
  const std::optional<size_t> index = choice_index(directive.choices, text);
  if (!index)
    return invalid("argument(s) must be one of the following: " + std::string(directive.choices));
  if (const auto* set = std::get_if<void (*)(Settings&, size_t)>(&directive.binding)) {
    (*set)(draft.settings, *index);
  }
  return to_lower(text);
}

Result<std::string> apply_value(const Directive& directive, const std::string& text,
                                ConfigDraft& draft) {
  switch (directive.type) {
    case ValueType::kBool:
      return apply_bool(directive, text, draft);
    case ValueType::kInteger:
      return apply_integer(directive, text, draft);
    case ValueType::kOctal:
      return apply_octal(directive, text, draft);
    case ValueType::kMemory:
    case ValueType::kMemoryOrPercent:
      return apply_memory(directive, text, draft);
    case ValueType::kChoice:
      return apply_choice(directive, text, draft);
    case ValueType::kText:
    case ValueType::kWords:
      break;
  }
  if (const auto* member = std::get_if<std::string Settings::*>(&directive.binding)) {
    draft.settings.** member = text;
  }
  return text;
}

std::unordered_map<std::string, const Directive*> index_by_name() {
  std::unordered_map<std::string, const Directive*> index;
  for (const Directive& directive : config_directives()) {
    CHECK(index.emplace(directive.name, &directive).second);
    if (*directive.alias != '\0') CHECK(index.emplace(directive.alias, &directive).second);
  }
  return index;
}

}  // namespace

const std::vector<Directive>& config_directives() {
  static const std::vector<Directive> table = [] {
    std::vector<Directive> all = effective_directives();
    for (Directive& directive : ignored_directives()) all.push_back(directive);
    for (Directive& directive : all) directive.type = type_of(directive);
    return all;
  }();
  return table;
}

const Directive* find_directive(Bytes name) {
  static const auto index = index_by_name();
  const auto found = index.find(to_lower(name));
  return found == index.end() ? nullptr : found->second;
}

size_t directive_index(const Directive& directive) {
  return static_cast<size_t>(&directive - config_directives().data());
}

Status apply_directive(const Directive& directive, std::span<const std::string> arguments,
                       ConfigDraft& draft) {
  std::vector<std::string> parts;
  if (directive.multiple && arguments.size() == 1) {
    parts = config_special::split_value(arguments[0]);
    arguments = parts;
  }
  const bool any_number = directive.multiple || directive.type == ValueType::kWords;
  if (!any_number && arguments.size() != 1) return invalid(config_special::kWrongNumber);
  Result<std::string> value = directive.parse != nullptr
                                  ? directive.parse(arguments, draft)
                                  : apply_value(directive, arguments[0], draft);
  if (!value.ok()) return value.status();
  if (*directive.only != '\0' && *value != directive.only) {
    return invalid("argument must be '" + std::string(directive.only) +
                   "': " + directive.only_because);
  }
  draft.values[directive_index(directive)] = std::move(*value);
  if (directive.kind == DirectiveKind::kIgnored && draft.from_file) {
    draft.ignored.emplace_back(directive.name);
  }
  return Status();
}

std::string expected_value(const Directive& directive) {
  const std::string low = std::to_string(directive.low);
  const bool bounded = directive.high != INT64_MAX;
  if (*directive.only != '\0') return "'" + std::string(directive.only) + "'";
  if (directive.parse != nullptr) return directive.expected;
  switch (directive.type) {
    case ValueType::kBool:
      return "yes or no";
    case ValueType::kInteger:
      if (!bounded) return "a number, at least " + low;
      return "a number from " + low + " to " + std::to_string(directive.high);
    case ValueType::kMemory:
      if (directive.low == 0) return "a number of bytes, or 100kb, 64mb, 2gb";
      return "a number of bytes, or 100kb, 64mb, 2gb; at least " + low;
    case ValueType::kMemoryOrPercent:
      return "a number of bytes, or 64mb, or a percentage such as 5%";
    case ValueType::kOctal:
      return "a file mode in octal, such as 700";
    case ValueType::kChoice:
      return "one of " + std::string(directive.choices);
    case ValueType::kText:
    case ValueType::kWords:
      break;
  }
  return "one argument, in quotes if it holds blanks";
}

}  // namespace sluice
