#include "tools/cli/config_file.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/glob_literal.h"
#include "engine/queue/field_help.h"
#include "net/http/json_text.h"
#include "net/resp/resp_value.h"
#include "tools/cli/failure.h"

namespace sluice::cli {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

struct LevelName {
  ConfigLevel level;
  const char* member;  // in the file
};
constexpr LevelName kLevelNames[] = {{ConfigLevel::kGroup, "groups"},
                                     {ConfigLevel::kKey, "keys"},
                                     {ConfigLevel::kWorker, "workers"}};

std::optional<ConfigLevel> level_of(const std::string& member) {
  for (const LevelName& name : kLevelNames) {
    if (member == name.member) return name.level;
  }
  return std::nullopt;
}

std::string member_of(ConfigLevel level) {
  for (const LevelName& name : kLevelNames) {
    if (level == name.level) return name.member;
  }
  return {};
}

// Counts the lines that the parser has read.
class LineIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  LineIterator(const char* at, size_t* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  LineIterator& operator++() {
    if (*at_ == '\n') ++*line_;
    ++at_;
    return *this;
  }
  bool operator==(const LineIterator& other) const { return at_ == other.at_; }
  bool operator!=(const LineIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  size_t* line_;
};

struct FileValue {
  std::string text;
  size_t line;
};
using FileFields = std::map<std::string, FileValue>;

struct FileQueue {
  FileFields fields;
  std::map<RuleName, FileFields> rules;
  std::vector<std::pair<RuleName, size_t>> rule_lines;  // in the order of the file
  bool has_workers = false;
};

// The one field of rules of workers.
constexpr const char* kQuiet = "quiet";

// Takes the events of the parser. The members of the file are objects up to a known depth.
class FileReader {
 public:
  FileReader(std::string file, const size_t& line) : file_(std::move(file)), line_(line) {}

  std::map<std::string, FileQueue> queues;

  bool null() { no_value(); }
  bool boolean(bool value) { return take(value ? "on" : "off"); }
  bool number_integer(int64_t value) { return take(std::to_string(value)); }
  bool number_unsigned(uint64_t value) { return take(std::to_string(value)); }
  bool number_float(double, const std::string& text) { return take(text); }
  bool string(const std::string& text) { return take(text); }
  bool binary(const std::vector<uint8_t>&) { no_value(); }
  bool start_array(size_t) { no_value(); }
  bool end_array() { no_value(); }
  bool end_object() {
    // An empty file would mean with --prune that every queue is reset.
    if (seen_.empty()) fail("the file has one member, queues");
    path_.resize(--depth_ == 0 ? 0 : depth_ - 1);
    return true;
  }

  bool start_object(size_t) {
    ++depth_;
    if (depth_ == 3) queues[path_[1]];
    if (depth_ == 4) {
      const auto level = level_of(path_[2]);
      if (!level) no_value();
      if (*level == ConfigLevel::kWorker) queues[path_[1]].has_workers = true;
    }
    if (depth_ == 5) {
      FileQueue& queue = queues[path_[1]];
      const RuleName rule = {*level_of(path_[2]), path_[3]};
      queue.rules[rule];
      queue.rule_lines.emplace_back(rule, key_line_);
    }
    if (depth_ > 5) no_value();
    return true;
  }

  bool key(const std::string& name) {
    path_.resize(depth_ - 1);
    key_line_ = line_;
    const auto bytes = name.starts_with("base64:") ? from_base64(name.substr(7)) : name;
    if (!bytes) fail(name + ": no base64");
    path_.push_back(*bytes);
    if (depth_ == 1 && name != "queues") {
      fail(name + ": the file has one member, queues" +
           suggestion(nearest_word(name, std::vector<std::string>{"queues"})));
    }
    if (!seen_.insert(path_).second) fail(where() + " is given twice");
    return true;
  }

  bool parse_error(size_t, const std::string&, const json::exception& error) {
    const std::string text = error.what();
    const size_t end = text.find("] ");
    fail("no JSON: " + (end == std::string::npos ? text : text.substr(end + 2)));
  }

  [[noreturn]] void fail(const std::string& why, size_t line = 0) const {
    throw Failure{kServerError,
                  file_ + ":" + std::to_string(line == 0 ? key_line_ : line) + ": " + why};
  }

 private:
  // "exec: groups: team.*: max_active"
  std::string where() const {
    std::string text;
    for (size_t i = 1; i < path_.size(); ++i) text += (text.empty() ? "" : ": ") + path_[i];
    return text.empty() ? path_.empty() ? "the file" : path_[0] : text;
  }

  [[noreturn]] void no_value() const {
    const bool is_field = path_.size() > 4 || (path_.size() > 2 && !level_of(path_[2]));
    if (is_field && !is_known(path_.back())) fail_unknown();
    fail(where() + (is_field ? " takes a text, a number, true or false" : " takes an object"));
  }

  static bool is_known(const std::string& name) {
    const auto fields = config_field_help();
    return name == kQuiet || std::any_of(fields.begin(), fields.end(), [&](const FieldHelp& field) {
             return equals_ignore_case(name, field.name);
           });
  }

  // Neither a field nor rules have this name.
  [[noreturn]] void fail_unknown() const {
    std::vector<std::string> names;
    for (const FieldHelp& field : config_field_help()) names.emplace_back(field.name);
    if (path_.size() == 3) {
      for (const LevelName& name : kLevelNames) names.emplace_back(name.member);
    }
    fail(where() + ": there is no such member" + suggestion(nearest_word(path_.back(), names)));
  }

  bool take(const std::string& text) {
    const bool is_rule = depth_ == 5;
    if (!is_rule && (depth_ != 3 || level_of(path_[2]))) no_value();
    FileQueue& queue = queues[path_[1]];
    FileFields& fields = is_rule ? queue.rules[{*level_of(path_[2]), path_[3]}] : queue.fields;
    const std::string field = to_lower(path_.back());
    const FileValue value = {plain_value(field, text), key_line_};
    if (!fields.try_emplace(field, value).second) fail(where() + " is given twice");
    return true;
  }

  const std::string file_;
  const size_t& line_;
  size_t key_line_ = 1;
  size_t depth_ = 0;  // of objects
  Words path_;        // the members that lead here
  std::set<Words> seen_;
};

// Explains why a field is refused.
std::string advice_on(ConfigLevel level, const FileFields& given, const std::string& field,
                      const std::string& text, const QueueConfig& config) {
  const std::pair<Bytes, Bytes> pairs[] = {{field, text}};
  QueueConfig alone;
  if (level != ConfigLevel::kQueue && alone.set(ConfigLevel::kQueue, {}, pairs).bad.empty()) {
    return field + " is a field of queues, and not of " + member_of(level);
  }
  std::vector<std::string> bands;
  for (const auto& [name, band] : config.values().bands) bands.push_back(name);
  Words command = {"Q.CONFIG", "", "SET"};
  for (const auto& [name, value] : given) command.insert(command.end(), {name, value.text});
  return field + ": " + advice_text(advise(field, command, bands));
}

void set_fields(const FileReader& reader, const std::string& queue, const RuleName& rule,
                const FileFields& given, QueueConfig& config) {
  std::vector<std::pair<Bytes, Bytes>> pairs;
  for (const auto& [name, value] : given) pairs.emplace_back(name, value.text);
  const std::string bad = config.set(rule.first, rule.second, pairs).bad;
  if (bad.empty()) return;
  const auto found = given.find(bad);
  const FileValue value = found == given.end() ? FileValue{} : found->second;
  std::string where = queue + ": ";
  if (rule.first != ConfigLevel::kQueue) where += member_of(rule.first) + ": " + rule.second + ": ";
  reader.fail(where + advice_on(rule.first, given, bad, value.text, config), value.line);
}

Settings to_settings(const std::vector<ConfigField>& fields) {
  return {fields.begin(), fields.end()};
}

QueueSettings to_queue_settings(const FileReader& reader, const std::string& name,
                                const FileQueue& file) {
  QueueConfig config;
  set_fields(reader, name, {ConfigLevel::kQueue, ""}, file.fields, config);
  QueueSettings settings;
  for (const auto& [rule, line] : file.rule_lines) {
    const FileFields& fields = file.rules.at(rule);
    if (rule.second.empty()) reader.fail(name + ": a rule has a name or a glob", line);
    set_fields(reader, name, rule, fields, config);
    if (!fields.empty())
      settings.put_rule(rule, to_settings(config.recorded(rule.first, rule.second)));
  }
  std::string bad;
  settings.fields = to_settings(config.get(ConfigLevel::kQueue, {}, {}, bad));
  settings.has_paused = file.fields.contains(kPaused);
  settings.has_workers = file.has_workers;
  return settings;
}

}  // namespace

void QueueSettings::put_rule(const RuleName& rule, Settings settings) {
  rules[rule] = std::move(settings);
  if (glob_literal(rule.second)) return;
  std::erase(globs, rule);
  globs.push_back(rule);
}

std::map<std::string, QueueSettings> read_config_file(const std::string& name, Bytes text) {
  size_t line = 1;
  FileReader reader(name, line);
  json::sax_parse(LineIterator(text.data(), &line), LineIterator(text.data() + text.size(), &line),
                  &reader);
  std::map<std::string, QueueSettings> queues;
  for (const auto& [queue, file] : reader.queues) {
    queues[queue] = to_queue_settings(reader, queue, file);
  }
  return queues;
}

const QueueSettings& default_settings() {
  static const QueueSettings settings = [] {
    QueueSettings made;
    std::string bad;
    made.fields = to_settings(QueueConfig().get(ConfigLevel::kQueue, {}, {}, bad));
    return made;
  }();
  return settings;
}

namespace {

json settings_json(const Settings& settings) {
  RespValue map;
  map.kind = RespValue::Kind::kMap;
  for (const auto& [name, text] : settings) {
    for (const std::string& part : {name, text}) {
      RespValue& value = map.items.emplace_back();
      value.kind = RespValue::Kind::kText;
      value.text = part;
    }
  }
  return config_to_json(map);
}

}  // namespace

std::string write_config_file(const std::map<std::string, QueueSettings>& queues) {
  ordered_json all = ordered_json::object();
  for (const auto& [name, settings] : queues) {
    Settings set;
    for (const auto& [field, text] : settings.fields) {
      const auto usual = default_settings().fields.find(field);
      if (usual == default_settings().fields.end() || usual->second != text) set[field] = text;
    }
    ordered_json queue = settings_json(set);
    const auto put = [&queue](const RuleName& rule, const Settings& fields) {
      queue[member_of(rule.first)][name_to_json(rule.second)] = settings_json(fields);
    };
    for (const auto& [rule, fields] : settings.rules) {
      if (glob_literal(rule.second)) put(rule, fields);
    }
    for (const RuleName& rule : settings.globs) put(rule, settings.rules.at(rule));
    all[name_to_json(name)] = std::move(queue);
  }
  return ordered_json({{"queues", std::move(all)}}).dump(2) + "\n";
}

}  // namespace sluice::cli
