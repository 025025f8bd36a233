// Q.CONFIG: the configuration of a queue, at its levels.
#include <string>
#include <utility>
#include <vector>

#include "engine/commands/queue/args.h"
#include "engine/commands/queue/config_try.h"
#include "engine/commands/queue/queues.h"
#include "engine/execution/refusal.h"
#include "engine/queue/queue_config_fields.h"
#include "engine/queue/queue_error.h"
#include "engine/work/configure.h"

namespace sluice {

namespace {

// The target of the command: the queue itself, or the rule of a glob.
struct ConfigTarget {
  ConfigLevel level = ConfigLevel::kQueue;
  Bytes pattern;
  size_t verb = 2;  // the argument with the operation
};

struct RuleWord {
  Bytes word;
  Bytes field;  // in errors
  ConfigLevel level;
};
constexpr RuleWord kRuleWords[] = {{"GROUP", "group", ConfigLevel::kGroup},
                                   {"KEY", "key", ConfigLevel::kKey},
                                   {"WORKER", "worker", ConfigLevel::kWorker}};

Bytes field_of(ConfigLevel level) {
  for (const RuleWord& rule : kRuleWords) {
    if (rule.level == level) return rule.field;
  }
  return {};
}

// Null: the word names no rules.
const RuleWord* find_rule_word(Bytes word) {
  for (const RuleWord& rule : kRuleWords) {
    if (equals_ignore_case(word, rule.word)) return &rule;
  }
  return nullptr;
}

// Returns false with the error replied.
bool parse_target(Call& call, ConfigTarget& target) {
  const RuleWord* rule = find_rule_word(call.args[2]);
  if (rule == nullptr) return true;
  if (call.args.size() < 5) return fail(call, errors::kSyntax);
  target.level = rule->level;
  target.pattern = call.args[3];
  target.verb = 4;
  if (!target.pattern.empty() && is_glob_of_names(target.pattern)) return true;
  reply_bad_field(call, rule->field);
  return false;
}

void get_config(Call& call, const KeyRef& key, const ConfigTarget& target) {
  const Found<const Queue> queue = find_queue(call, key);
  if (queue.refused()) return;
  std::string bad;
  const std::vector<ConfigField> fields =
      config_of(queue).get(target.level, target.pattern, call.args.subspan(target.verb + 1), bad);
  if (!bad.empty()) return reply_bad_field(call, bad);
  call.reply.map(fields.size());
  for (const auto& [name, text] : fields) {
    call.reply.bulk(name);
    call.reply.bulk(text);
  }
}

bool makes_rule(const Queue& queue, const ConfigTarget& target) {
  return target.level != ConfigLevel::kQueue &&
         queue.config.recorded(target.level, target.pattern).empty();
}

using GivenFields = std::vector<std::pair<Bytes, Bytes>>;

// `field value … [IF field value …]`. Returns false with the error replied.
bool parse_fields(Call& call, size_t at, GivenFields& fields, GivenFields& expected) {
  GivenFields* into = &fields;
  for (; at < call.args.size(); at += 2) {
    if (into == &fields && !fields.empty() && call.option(at, "IF")) {
      into = &expected;
      ++at;
    }
    if (at + 1 >= call.args.size()) return fail(call, errors::kSyntax);
    into->emplace_back(call.args[at], call.args[at + 1]);
  }
  return !fields.empty() || fail(call, errors::kSyntax);
}

// Whether the fields have these values now, however they are written. An empty one is that of a
// field which the rule does not set. Returns false with the error replied.
bool check_expected(Call& call, const QueueConfig& config, const ConfigTarget& target,
                    const GivenFields& expected) {
  for (const auto& [name, text] : expected) {
    const ConfigRow* row = find_config_row(name, target.level);
    if (row == nullptr) {
      reply_bad_field(call, name);
      return false;
    }
    std::string bad;
    const std::vector<ConfigField> now =
        config.get(target.level, target.pattern, std::span(&row->name, 1), bad);
    const std::string value = now.empty() ? "" : now[0].second;
    QueueValues scratch = config.values();
    Reading reading{text, scratch, {}};
    const bool readable = !text.empty() && row->read(reading);
    if (value == (readable ? Bytes(reading.canonical) : text)) continue;
    call.reply_status(QueueError("CHANGED").with("field", row->name).with("value", value).status());
    return false;
  }
  return true;
}

void set_config(Call& call, const KeyRef& key, const ConfigTarget& target, bool tries) {
  GivenFields fields;
  GivenFields expected;
  if (!parse_fields(call, target.verb + 1, fields, expected)) return;
  Found<Queue> queue = find_queue(call, key);
  if (queue.refused() || !check_expected(call, config_of(queue), target, expected)) return;
  if (tries) return reply_tried(call, queue, target.level, target.pattern, fields);
  if (queue == nullptr || makes_rule(*queue, target)) {
    const Status growth = refuse_growth(call.engine, kDenyOom);
    if (!growth.ok()) return call.reply.error(growth.message());
  }
  if (queue == nullptr) {
    // A queue is made only with a valid configuration.
    QueueConfig tried;
    const std::string bad = tried.set(target.level, target.pattern, fields).bad;
    if (!bad.empty()) return reply_bad_field(call, bad);
    queue = find_or_create_queue(call, key);
  }
  QueueWork work = queue_work(call, key, *queue);
  call.reply_status(configure_queue(work, target.level, target.pattern, fields));
}

void reset_config(Call& call, const KeyRef& key, const ConfigTarget& target) {
  if (call.args.size() != target.verb + 1) return call.reply.error(errors::kSyntax);
  const Found<Queue> queue = find_queue(call, key);
  if (queue.refused()) return;
  if (queue == nullptr || queue->config.recorded(target.level, target.pattern).empty()) {
    return call.reply.ok();
  }
  QueueWork work = queue_work(call, key, *queue);
  call.reply_status(reset_queue_config(work, target.level, target.pattern));
}

// One page of the rules of all levels, so that a client needs no names to find them.
void list_rules(Call& call, const KeyRef& key) {
  std::string cursor = "0";
  int64_t count = kUsualCount;
  OptionReader options(call, 3);
  while (options.next()) {
    if (options.is("CURSOR", 1)) {
      cursor = options.value();
    } else if (options.is("COUNT", 1)) {
      count = options.integer(1, kMaxPageCount).value_or(kUsualCount);
    } else {
      options.unknown();
    }
  }
  if (options.failed()) return;
  const Found<const Queue> queue = find_queue(call, key);
  if (queue.refused()) return;
  std::vector<QueueConfig::ListedRule> page;
  if (!config_of(queue).list_rules(cursor, static_cast<size_t>(count), page)) {
    return call.reply.error("ERR invalid cursor");
  }
  call.reply.array(2);
  call.reply.bulk(cursor);
  call.reply.array(page.size());
  for (const QueueConfig::ListedRule& rule : page) {
    call.reply.array(3);
    call.reply.bulk(field_of(rule.level));
    call.reply.bulk(rule.glob);
    call.reply.map(rule.fields.size());
    for (const auto& [name, text] : rule.fields) {
      call.reply.bulk(name);
      call.reply.bulk(text);
    }
  }
}

}  // namespace

bool q_config_only_reads(std::span<const Bytes> args) {
  if (equals_ignore_case(args[2], "RULES")) return true;
  const size_t verb = find_rule_word(args[2]) != nullptr ? 4 : 2;
  return verb < args.size() && equals_ignore_case(args[verb], "GET");
}

void q_config_command(Call& call) {
  ConfigTarget target;
  if (call.option(2, "RULES")) return list_rules(call, call.key(1));
  if (!parse_target(call, target)) return;
  const KeyRef key = call.key(1);
  if (call.option(target.verb, "GET")) return get_config(call, key, target);
  if (call.option(target.verb, "SET")) return set_config(call, key, target, false);
  if (call.option(target.verb, "TRY")) return set_config(call, key, target, true);
  if (call.option(target.verb, "RESET")) return reset_config(call, key, target);
  call.reply.error(errors::kSyntax);
}

}  // namespace sluice
