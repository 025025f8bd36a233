#include "engine/commands/queue/args.h"

#include <algorithm>

#include "engine/base/glob_literal.h"
#include "engine/base/numbers.h"
#include "engine/commands/queue/adopted.h"
#include "engine/queue/queue_error.h"

namespace sluice {

// --- Queues ---

Found<Queue> find_queue(Call& call, const KeyRef& key) {
  const Found<Entry> entry = call.find(key, Type::kQueue);
  if (entry.refused()) return Found<Queue>::refusal();
  return entry == nullptr ? nullptr : &entry->object<Queue>();
}

Found<Queue> find_own_queue(Call& call, const KeyRef& key) {
  const Found<Queue> queue = find_queue(call, key);
  if (queue == nullptr || queue->adopted == nullptr) [[likely]]
    return queue;
  call.reply.error(QueueError("ADOPTED").text());
  return Found<Queue>::refusal();
}

Queue* find_awaited_queue(Call& call, const KeyRef& key) {
  const Entry* entry = call.find(key);
  if (entry == nullptr || entry->type() != Type::kQueue) return nullptr;
  return call.waiter->queue.queue_gone ? nullptr : &entry->object<Queue>();
}

Queue* find_or_create_queue(Call& call, const KeyRef& key) {
  const Entry* entry = call.find_or_create(key, Type::kQueue);
  return entry == nullptr ? nullptr : &entry->object<Queue>();
}

void drop_new_queue(Call& call, const KeyRef& key, bool existed) {
  if (existed) return;
  Database database = call.database(key);
  Entry* entry = database.find(key);
  if (entry != nullptr) database.remove(key, entry);
}

Holder holder_of(const Client& client) { return {client.port, client.id}; }

const QueueConfig& config_of(const Queue* queue) {
  static const QueueConfig defaults;
  return queue == nullptr ? defaults : queue->config;
}

// --- Single arguments ---

void reply_bad_field(Call& call, Bytes field) { call.reply.error(bad_field(field).message()); }

Status no_job(Bytes id) { return QueueError("NOJOB").with("id", id).status(); }

Status check_size(const Queue& queue, Bytes bytes) {
  const uint64_t limit = queue.config.values().max_payload;
  if (limit == 0 || bytes.size() <= limit) return {};
  return QueueError("TOOBIG").with("limit", limit).status();
}

bool may_name_job(Call& call, Bytes id) {
  if (is_job_id(id)) [[likely]]
    return true;
  const Entry* entry = call.find(call.key(1));
  if (entry == nullptr || entry->type() != Type::kQueue) return false;
  const Queue& queue = entry->object<Queue>();
  if (queue.adopted != nullptr) return !adopted_view(call, queue).find(id).is_nowhere();
  return queue.find(id) != nullptr;
}

bool is_glob_of_names(Bytes glob) {
  const std::optional<std::string> name = glob_literal(glob);
  return name ? name->size() <= kMaxNameBytes : glob.size() <= 2 * kMaxNameBytes;
}

bool check_job_id(Call& call, size_t argument) {
  if (may_name_job(call, call.args[argument])) return true;
  reply_bad_field(call, "id");
  return false;
}

std::optional<uint64_t> parse_lease(Call& call, size_t argument) {
  if (call.args[argument] == "*") return 0;
  const auto token = parse_i64(call.args[argument]);
  if (token && *token >= 1 && *token <= kMaxExact) return static_cast<uint64_t>(*token);
  reply_bad_field(call, "lease");
  return std::nullopt;
}

// --- Options ---

bool OptionReader::next() {
  if (failed_) return false;
  at_ += taken_;
  taken_ = 1;
  option_ = at_ < end_ ? call_.args[at_] : Bytes();
  return at_ < end_;
}

bool OptionReader::is_named(Bytes name, size_t values) {
  if (!equals_ignore_case(option_, name)) return false;
  if (at_ + values >= end_) {
    fail(errors::kSyntax);
    return false;
  }
  taken_ = 1 + values;
  return true;
}

std::optional<int64_t> OptionReader::integer(int64_t least, int64_t greatest, size_t index) {
  const auto number = parse_i64(value(index));
  if (number && *number >= least && *number <= greatest) return number;
  bad_value();
  return std::nullopt;
}

std::optional<Bytes> OptionReader::name(size_t least, size_t greatest, size_t index) {
  const Bytes bytes = value(index);
  if (bytes.size() >= least && bytes.size() <= greatest) return bytes;
  bad_value();
  return std::nullopt;
}

std::optional<Bytes> OptionReader::job_id(size_t index) {
  const Bytes id = value(index);
  if (is_job_id(id)) return id;
  bad_value();
  return std::nullopt;
}

std::optional<int64_t> OptionReader::queue_time() {
  const std::optional<int64_t> shown_ms = time();
  if (!shown_ms) return std::nullopt;
  return call_.unit.times.queue_time_of(*shown_ms);
}

std::optional<Bytes> OptionReader::glob() {
  const Bytes glob = value();
  if (is_glob_of_names(glob)) return glob;
  bad_value();
  return std::nullopt;
}

std::optional<uint8_t> OptionReader::band(const QueueConfig& config, size_t index) {
  const auto band = config.parse_band(value(index));
  if (!band) bad_value();
  return band;
}

void OptionReader::bad_value() {
  if (!failed_) bad_field(to_lower(call_.args[at_]));
}

void OptionReader::bad_field(Bytes field) {
  if (failed_) return;
  reply_bad_field(call_, field);
  failed_ = true;
  option_ = {};
}

void OptionReader::fail(Bytes error) {
  if (failed_) return;
  call_.reply.error(error);
  failed_ = true;
  option_ = {};
}

// --- Q.POP ---

namespace {

void add_match(OptionReader& options, std::vector<std::string>& match) {
  const auto name = options.name(1);
  if (!name || std::find(match.begin(), match.end(), *name) != match.end()) return;
  if (match.size() == kMaxMatches) return options.bad_value();
  match.emplace_back(*name);
}

// Returns false if it is not an option of pops.
bool read_pop_option(OptionReader& options, PopOptions& pop) {
  PopSpec& spec = pop.spec;
  if (options.is("WORKER", 1)) {
    spec.worker = options.name(1).value_or(Bytes());
  } else if (options.is("COUNT", 1)) {
    spec.count = static_cast<uint32_t>(options.integer(1, kMaxPopCount).value_or(1));
  } else if (options.is("BLOCK", 1)) {
    pop.blocks = true;
    pop.block_ms = options.time().value_or(0);
  } else if (options.is("LEASE", 1)) {
    spec.lease_ms = options.integer(kMinLeaseMs, kMaxLeaseMs).value_or(-1);
  } else if (options.is("TIED")) {
    spec.tied = true;
  } else if (options.is("CAP", 1)) {
    spec.cap = static_cast<uint64_t>(options.integer(1, kMaxExact).value_or(1));
  } else if (options.is("ID", 1)) {
    spec.id = std::string(options.job_id().value_or(Bytes()));
  } else if (options.is("MATCH", 1)) {
    add_match(options, spec.match);
  } else if (options.is("REQID", 1)) {
    spec.request_token = options.name(1).value_or(Bytes());
  } else if (options.is("BRIEF")) {
    pop.fields.brief = true;
  } else if (options.is("WITH", 1)) {
    if (!parse_popped_field(options.value(), pop.fields)) options.bad_value();
  } else {
    return false;
  }
  return true;
}

}  // namespace

bool parse_pop_options(OptionReader& options, PopOptions& pop) {
  while (options.next()) {
    if (!read_pop_option(options, pop)) options.unknown();
  }
  if (options.failed()) return false;
  // A request token is unique only within a worker.
  if (!pop.spec.request_token.empty() && pop.spec.worker.empty()) {
    options.bad_field("worker");
    return false;
  }
  std::sort(pop.spec.match.begin(), pop.spec.match.end());
  return true;
}

}  // namespace sluice
