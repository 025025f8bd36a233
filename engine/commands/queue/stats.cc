// Q.STATS: the gauges, totals and distributions of a queue, or of its bands, groups, tags, workers.
//
// The queue's line has all fields; other lines have those that are known for them.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/numbers.h"
#include "engine/commands/queue/adopted.h"
#include "engine/commands/queue/args.h"
#include "engine/commands/queue/error_lines.h"
#include "engine/commands/queue/queues.h"
#include "engine/commands/queue/reply.h"
#include "engine/commands/queue/worker_lines.h"
#include "engine/execution/engine.h"
#include "engine/execution/queue_names.h"
#include "engine/reply/map_reply.h"

namespace sluice {

namespace {

constexpr int64_t kMinWindowMs = 1000;
constexpr int64_t kMaxWindowMs = RecentCount::kSeconds * 1000;
// BY GROUP, BY KEY and BY WORKER show this many lines and the rest as one line named
// QueueStats::kRestName.
constexpr size_t kShownLines = 1000;
// For lines in the order of their names, a cursor is this byte and the last name. "0" is the
// beginning, and the end.
constexpr char kNameMark = '=';

// The gauges of a band, a group or a tag's value. Absent: unknown for it.
struct Gauges {
  uint64_t pending = 0;
  uint64_t active = 0;
  std::optional<uint64_t> delayed;
  std::optional<uint64_t> blocked;
  std::optional<uint64_t> waiting;
};

struct StatsRequest {
  enum class By : uint8_t {
    kQueue,
    kOneGroup,
    kPri,
    kGroup,
    kKey,
    kTag,
    kWorker,
    kError
  } by = By::kQueue;
  Bytes name;  // of the group, or of the tag
  int64_t window_ms = kMaxWindowMs;
  std::optional<Bytes> cursor;  // page by page
  std::optional<int64_t> count;

  // For kError the number of jobs to look at.
  size_t lines() const { return static_cast<size_t>(count.value_or(kUsualCount)); }
};

// The values of BY: one word, and for TAG the name after it.
void parse_by(OptionReader& options, StatsRequest& request) {
  using By = StatsRequest::By;
  const Bytes word = options.value();
  if (equals_ignore_case(word, "PRI")) {
    request.by = By::kPri;
  } else if (equals_ignore_case(word, "GROUP")) {
    request.by = By::kGroup;
  } else if (equals_ignore_case(word, "KEY")) {
    request.by = By::kKey;
  } else if (equals_ignore_case(word, "WORKER")) {
    request.by = By::kWorker;
  } else if (equals_ignore_case(word, "ERROR")) {
    request.by = By::kError;
  } else if (!equals_ignore_case(word, "TAG")) {
    options.unknown();
  } else if (options.is("BY", 2)) {
    request.by = By::kTag;
    request.name = options.name(0, kMaxNameBytes, 1).value_or(Bytes());
  }
}

bool parse_stats(Call& call, StatsRequest& request) {
  using By = StatsRequest::By;
  OptionReader options(call, 2);
  while (options.next()) {
    if (options.is("WINDOW", 1)) {
      request.window_ms = options.integer(kMinWindowMs, kMaxWindowMs).value_or(kMaxWindowMs);
    } else if (request.by == By::kQueue && options.is("GROUP", 1)) {
      request.by = By::kOneGroup;
      request.name = options.name().value_or(Bytes());
    } else if (request.by == By::kQueue && options.is("BY", 1)) {
      parse_by(options, request);
    } else if (options.is("CURSOR", 1)) {
      request.cursor = options.value();
    } else if (options.is("COUNT", 1)) {
      request.count = options.integer(1, kMaxPageCount);
    } else {
      options.unknown();
    }
  }
  if (options.failed()) return false;
  const bool has_lines = request.by != By::kQueue && request.by != By::kOneGroup;
  const bool paged = request.cursor || request.by == By::kError;
  if ((paged && has_lines) || (!request.cursor && !request.count)) return true;
  return fail(call, errors::kSyntax);
}

// --- Parts of lines ---

void put_gauges(MapReply& map, const Gauges& gauges) {
  map.count("pending", gauges.pending);
  map.count("active", gauges.active);
  if (gauges.delayed) map.count("delayed", *gauges.delayed);
  if (gauges.blocked) map.count("blocked", *gauges.blocked);
  if (gauges.waiting) map.count("waiting", *gauges.waiting);
}

// Slots in use and their limit. The utilization is above 1 after the cap was lowered.
void put_slots(MapReply& map, const Limiter& limiter) {
  map.count("slots", limiter.used);
  map.count("max_active", limiter.max_active);
  if (limiter.max_active == 0) return map.null("utilization");
  map.number("utilization",
             static_cast<double>(limiter.used) / static_cast<double>(limiter.max_active));
}

void put_totals(MapReply& map, const Totals& totals) {
  map.count("added", totals.added);
  map.count("started", totals.started);
  map.count("completed", totals.completed);
  map.count("failed", totals.failed);
  map.count("expired", totals.expired);
  map.count("cancelled", totals.cancelled);
  map.count("reclaimed", totals.reclaimed);
}

void put_durations(MapReply& line, Bytes name, const Histogram& histogram,
                   const RecentMean& recent) {
  MapReply map(line.field(name));
  map.count("count", histogram.count());
  map.integer("p50", histogram.quantile(0.5));
  map.integer("p95", histogram.quantile(0.95));
  map.integer("p99", histogram.quantile(0.99));
  map.integer("max", histogram.max());
  map.number("mean", recent.mean());
}

void put_distributions(MapReply& map, const StatsLine& line) {
  put_durations(map, "wait_ms", line.wait_ms, line.recent_wait_ms);
  put_durations(map, "run_ms", line.run_ms, line.recent_run_ms);
}

// The age since the first jobs of the band became due: the greatest age, not counting jobs that
// were moved or boosted. -1: no pending job.
int64_t oldest_ms(const Band& band, int64_t now_ms) {
  int64_t oldest = -1;
  const auto offer = [&](const Job* job) {
    oldest = std::max(oldest, std::max<int64_t>(0, now_ms - job->release_ms()));
  };
  if (band.pending.empty()) return oldest;
  offer(band.pending.front().value);
  // After those that were moved to the front.
  const auto ranked = band.pending.lower_bound(rank_key(kFrontRanks), 0);
  if (ranked.valid()) offer(ranked.value());
  return oldest;
}

void put_age(MapReply& map, int64_t oldest) {
  oldest < 0 ? map.null("oldest_ms") : map.integer("oldest_ms", oldest);
}

// Bands that have a name or jobs, the most urgent first. Others are forgotten by a restart.
std::vector<uint8_t> shown_bands(const Queue& queue) {
  std::vector<uint8_t> bands;
  for (const auto& [name, band] : queue.config.values().bands) bands.push_back(band);
  for (const uint8_t number : queue.lanes.used_bands()) {
    const Band& band = *queue.lanes.band(number);
    if (band.waiting + band.active != 0) bands.push_back(number);
  }
  std::sort(bands.begin(), bands.end());
  bands.erase(std::unique(bands.begin(), bands.end()), bands.end());
  return bands;
}

struct BandCount {
  uint8_t number = 0;
  Gauges gauges;
  int64_t oldest_ms = -1;
};

// What a queue holds now: its own jobs, or the members of its adopted keys.
struct Counted {
  Gauges all;
  Limiter slots;
  std::vector<BandCount> bands;  // the bands to show

  int64_t oldest_ms() const {
    int64_t oldest = -1;
    for (const BandCount& band : bands) oldest = std::max(oldest, band.oldest_ms);
    return oldest;
  }
};

Counted count_own(const Queue& queue, int64_t now_ms) {
  Counted counted{
      {queue.count(JobState::kPending), queue.count(JobState::kActive),
       queue.count(JobState::kDelayed), queue.count(JobState::kBlocked), queue.waiting()},
      queue.limiter,
      {}};
  for (const uint8_t number : shown_bands(queue)) {
    BandCount& count = counted.bands.emplace_back(BandCount{number, {0, 0, 0, 0, 0}, -1});
    const Band* band = queue.lanes.band(number);
    if (band == nullptr) continue;
    count.gauges = {band->pending.size(), band->active, band->delayed, band->blocked,
                    band->waiting};
    count.oldest_ms = oldest_ms(*band, now_ms);
  }
  return counted;
}

Counted count_adopted(const Call& call, const Queue& queue) {
  const AdoptedView keys = adopted_view(call, queue);
  Counted counted{
      {keys.pending_count(), keys.active_count(), 0, 0, keys.pending_count()}, queue.limiter, {}};
  counted.slots.used = counted.all.active;
  for (const AdoptedBand& band : keys.bands()) {
    counted.bands.push_back(
        {band.number, {band.pending, band.active, 0, 0, band.pending}, band.oldest_ms});
  }
  return counted;
}

Counted count(const Call& call, const Queue& queue, int64_t now_ms) {
  return queue.adopted != nullptr ? count_adopted(call, queue) : count_own(queue, now_ms);
}

void put_by_priority(MapReply& line, const Queue& queue, const Counted& counted) {
  MapReply map(line.field("by_priority"));
  for (const BandCount& band : counted.bands) {
    map.count(queue.config.band_name(band.number), band.gauges.pending);
  }
}

// The keys that the queue has adopted, and errors about them.
void put_adopted(Call& call, MapReply& line, const Queue& queue) {
  const AdoptedDefinition& definition = queue.adopted->definition;
  MapReply map(line.field("adopted"));
  map.texts("pending", definition.pending);
  map.text("active", definition.active);
  map.text_or_null("payload", definition.payload_prefix);
  map.integer("unit", definition.unit);
  map.integer("lease_ms", definition.lease_ms);
  std::vector<std::string> warnings;
  for (const AdoptedWarning& warning : adopted_view(call, queue).warnings()) {
    warnings.push_back(warning.key + warning.what);
  }
  map.texts("warnings", warnings);
}

// How late timers last ran, or how late the next one already is.
int64_t timer_lag_ms(const Call& call, const Queue& queue, int64_t now_ms) {
  const int64_t steady_ms = call.unit.times.steady_ms;
  return std::max({queue.timer_lag_ms, now_ms - std::min(now_ms, queue.next_due_ms()),
                   steady_ms - std::min(steady_ms, queue.next_due_steady())});
}

// Ended jobs that are kept.
void put_kept(MapReply& line, const Queue& queue) {
  MapReply map(line.field("kept"));
  for (const JobState state :
       {JobState::kCompleted, JobState::kFailed, JobState::kCancelled, JobState::kExpired}) {
    map.count(job_state_name(state), queue.count(state));
  }
}

// --- Lines ---

void reply_queue_line(Call& call, const KeyRef& key, const Queue& queue, int64_t window_ms) {
  const QueueStats& stats = queue.stats;
  const int64_t now_ms = std::max(queue.queue_ms, call.unit.times.queue_ms);
  const Counted counted = count(call, queue, now_ms);
  MapReply map(call.reply);
  put_gauges(map, counted.all);
  map.count("waiting_pops", waiting_pops(call, key));
  put_slots(map, counted.slots);
  put_by_priority(map, queue, counted);
  put_totals(map, stats.all.totals);
  {
    MapReply rejected(map.field("rejected"));
    for (size_t i = 0; i < kRejections; ++i) {
      rejected.count(rejection_name(static_cast<Rejection>(i)), stats.all.totals.rejected[i]);
    }
  }
  put_distributions(map, stats.all);
  put_age(map, counted.oldest_ms());
  {
    MapReply rates(map.field("rates"));
    rates.number("added", stats.added.per_second(now_ms, window_ms));
    rates.number("completed", stats.completed.per_second(now_ms, window_ms));
  }
  map.integer("timer_lag_ms", timer_lag_ms(call, queue, now_ms));
  map.integer("since", call.unit.times.shown_ms(stats.since_ms != 0 ? stats.since_ms : now_ms));
  put_kept(map, queue);
  if (queue.adopted != nullptr) put_adopted(call, map, queue);
}

// Bands are few: with a cursor they are all on one page.
void reply_by_priority(Call& call, const Queue& queue, const StatsRequest& request) {
  if (request.cursor && *request.cursor != "0") return call.reply.error("ERR invalid cursor");
  if (request.cursor) {
    call.reply.array(2);
    call.reply.bulk("0");
  }
  const int64_t now_ms = std::max(queue.queue_ms, call.unit.times.queue_ms);
  static const StatsLine none;
  std::vector<BandCount> bands = count(call, queue, now_ms).bands;
  for (const auto& [number, line] : queue.stats.bands()) {
    const auto has_number = [&, wanted = number](const BandCount& band) {
      return band.number == wanted;
    };
    if (std::any_of(bands.begin(), bands.end(), has_number)) continue;
    bands.push_back({number, {0, 0, 0, 0, 0}, -1});
  }
  std::sort(bands.begin(), bands.end(),
            [](const BandCount& a, const BandCount& b) { return a.number < b.number; });
  MapReply map(call.reply);
  for (const BandCount& band : bands) {
    const auto found = queue.stats.bands().find(band.number);
    const StatsLine& stats = found == queue.stats.bands().end() ? none : found->second;
    map.field(queue.config.band_name(band.number));
    MapReply line(call.reply);
    put_gauges(line, band.gauges);
    put_totals(line, stats.totals);
    put_distributions(line, stats);
    put_age(line, band.oldest_ms);
  }
}

Gauges gauges_of(const Group& group) {
  return {group.pending, group.active, group.delayed, group.blocked, group.waiting};
}

void reply_group_line(Call& call, const Gauges& gauges, const Limiter& limiter) {
  MapReply line(call.reply);
  put_gauges(line, gauges);
  put_slots(line, limiter);
}

// The number of jobs with a key is not counted.
void reply_key_line(Call& call, const Limiter& limiter) {
  MapReply line(call.reply);
  put_slots(line, limiter);
}

void reply_one_group(Call& call, const Queue& queue, Bytes name) {
  if (const Group* group = queue.lanes.find_group(name)) {
    return reply_group_line(call, gauges_of(*group), group->limiter);
  }
  Limiter limiter;
  limiter.max_active = queue.config.group(name).limits.max_active;
  reply_group_line(call, {0, 0, 0, 0, 0}, limiter);
}

// --- Pages ---

// A step through a hash map, with SCAN's guarantee: `put` writes the line of each node that is not
// idle.
template <class Node, class Traits, class Put>
void reply_scanned(Call& call, const StatsRequest& page, const SplitMap<Node, Traits>& map,
                   Put put) {
  const auto cursor = parse_i64(*page.cursor);
  if (!cursor || *cursor < 0) return call.reply.error("ERR invalid cursor");
  // The cursor comes before the lines in the reply, but is computed after them.
  std::vector<const Node*> nodes;
  const uint64_t next =
      map.scan(static_cast<uint64_t>(*cursor), page.lines(), [&](const Node* node) {
        if (!node->idle()) nodes.push_back(node);
      });
  call.reply.array(2);
  call.reply.bulk(std::to_string(next));
  MapReply lines(call.reply);
  for (const Node* node : nodes) {
    lines.field(node->name);
    put(*node);
  }
}

// The same through a map in the order of names; `map` may be null. A page ends after the requested
// number of names, shown or not.
template <class Map, class Shown, class Put>
void reply_in_order(Call& call, const StatsRequest& page, const Map* map, Shown shown, Put put) {
  static const Map none;
  if (map == nullptr) map = &none;
  const Bytes cursor = *page.cursor;
  const bool begins = cursor == "0";
  if (!begins && !cursor.starts_with(kNameMark)) return call.reply.error("ERR invalid cursor");
  const auto first = begins ? map->begin() : map->upper_bound(cursor.substr(1));
  auto end = first;
  std::string last;
  for (size_t i = 0; i < page.lines() && end != map->end(); ++i) last = (end++)->first;
  call.reply.array(2);
  call.reply.bulk(end == map->end() ? "0" : kNameMark + last);
  MapReply lines(call.reply);
  for (auto at = first; at != end; ++at) {
    if (!shown(at->second)) continue;
    lines.field(at->first);
    put(at->second);
  }
}

// Writes the first nodes in this order and returns their number. Examines all nodes.
template <class Node, class Larger>
size_t put_first(std::vector<const Node*>& nodes, Larger larger) {
  const size_t shown = std::min(nodes.size(), kShownLines);
  std::partial_sort(nodes.begin(), nodes.begin() + static_cast<ptrdiff_t>(shown), nodes.end(),
                    larger);
  return shown;
}

// --- The largest groups and keys ---

// A step of LargestScopes takes a fifth of a millisecond at most.
constexpr size_t kStepsAtOnce = 8;

struct LargestRequest final : WaiterRequest {
  explicit LargestRequest(ConfigLevel of) : level(of) {}
  const ConfigLevel level;
  LargestScopes largest{level, kShownLines};
  bool read_on(const Queue& queue) override { return largest.go_on(queue); }
};

void reply_scope_line(Call& call, const ScopeCount& count, ConfigLevel level) {
  Limiter limiter;
  limiter.used = count.slots;
  limiter.max_active = count.max_active;
  if (level == ConfigLevel::kKey) return reply_key_line(call, limiter);
  reply_group_line(call, {count.pending, count.active, count.delayed, count.blocked, count.waiting},
                   limiter);
}

void reply_read(Call& call, LargestRequest& request) {
  MapReply map(call.reply);
  for (const ScopeCount& count : request.largest.in_order()) {
    map.field(count.name);
    reply_scope_line(call, count, request.level);
  }
  if (!request.largest.rest()) return;
  map.field(QueueStats::kRestName);
  reply_scope_line(call, *request.largest.rest(), request.level);
}

void serve_read(Call& call, Bytes) {
  reply_read(call, static_cast<LargestRequest&>(*call.waiter->request));
}

// Examines all of them: very many in slices, with other commands in between.
void reply_largest(Call& call, const KeyRef& key, const Queue& queue, ConfigLevel level) {
  auto request = std::make_unique<LargestRequest>(level);
  bool more = true;
  for (size_t i = 0; more && (call.nested || i < kStepsAtOnce); ++i) more = request->read_on(queue);
  if (!more) return reply_read(call, *request);
  auto waiter = std::make_shared<Waiter>();
  waiter->wanted = Type::kQueue;
  waiter->serve = serve_read;
  waiter->queue.reads = true;
  waiter->request = std::move(request);
  const Bytes keys[] = {key.key};
  call.block(keys, std::move(waiter));
  call.engine.owing_shards.fetch_or(1U << key.shard, std::memory_order_release);
}

void reply_by_group(Call& call, const KeyRef& key, const Queue& queue,
                    const StatsRequest& request) {
  if (!request.cursor) return reply_largest(call, key, queue, ConfigLevel::kGroup);
  reply_scanned(call, request, queue.lanes.groups(), [&](const Group& group) {
    reply_group_line(call, gauges_of(group), group.limiter);
  });
}

void reply_by_key(Call& call, const KeyRef& key, const Queue& queue, const StatsRequest& request) {
  if (!request.cursor) return reply_largest(call, key, queue, ConfigLevel::kKey);
  reply_scanned(call, request, queue.lanes.keys(),
                [&](const Key& scope) { reply_key_line(call, scope.limiter); });
}

void reply_tag_line(Call& call, const TagLine& stats) {
  MapReply line(call.reply);
  put_gauges(line, {stats.pending, stats.active, {}, {}, {}});
  put_totals(line, stats.totals);
  put_distributions(line, stats);
}

void reply_by_tag(Call& call, const Queue& queue, const StatsRequest& request) {
  const TagValues* values = queue.stats.tag_values(request.name);
  if (request.cursor) {
    return reply_in_order(
        call, request, values, [](const TagLine&) { return true; },
        [&](const TagLine& stats) { reply_tag_line(call, stats); });
  }
  MapReply map(call.reply);
  if (values == nullptr) return;
  for (const auto& [value, stats] : *values) {
    map.field(value);
    reply_tag_line(call, stats);
  }
}

// Those with the most leases.
void reply_by_worker(Call& call, const KeyRef& key, const Queue& queue,
                     const StatsRequest& request) {
  const WorkerLines lines(call, key, queue);
  if (request.cursor) {
    return reply_in_order(
        call, request, &queue.workers.by_name(),
        [&](const auto& worker) { return lines.shows(*worker); },
        [&](const auto& worker) { lines.put(*worker); });
  }
  std::vector<const Worker*> workers;
  for (const auto& [name, worker] : queue.workers.by_name()) {
    if (lines.shows(*worker)) workers.push_back(worker.get());
  }
  const size_t shown = put_first(workers, [](const Worker* a, const Worker* b) {
    return a->active.size() != b->active.size() ? a->active.size() > b->active.size()
                                                : a->name < b->name;
  });
  const auto end = workers.begin() + static_cast<ptrdiff_t>(shown);
  MapReply map(call.reply);
  for (auto at = workers.begin(); at != end; ++at) {
    map.field((*at)->name);
    lines.put(**at);
  }
  if (end == workers.end()) return;
  map.field(QueueStats::kRestName);
  lines.put_rest(end, workers.end());
}

void reply_by_error(Call& call, const Queue& queue, const StatsRequest& request) {
  JobPage page;
  const int64_t now_ms = std::max(queue.queue_ms, call.unit.times.queue_ms);
  if (!walk_failed(queue, request.cursor.value_or("0"), request.lines(), now_ms, page)) {
    return call.reply.error("ERR invalid cursor");
  }
  if (request.cursor) {
    call.reply.array(2);
    call.reply.bulk(page.cursor);
  }
  reply_error_lines(call, page);
}

}  // namespace

void q_stats_command(Call& call) {
  using By = StatsRequest::By;
  const KeyRef key = call.key(1);
  const Found<const Queue> found = find_queue(call, key);
  StatsRequest request;
  if (found.refused() || !parse_stats(call, request)) return;
  // A missing queue counts as an empty one.
  static const Queue none;
  const Queue& queue = found == nullptr ? none : *found;
  switch (request.by) {
    case By::kQueue:
      return reply_queue_line(call, key, queue, request.window_ms);
    case By::kOneGroup:
      return reply_one_group(call, queue, request.name);
    case By::kPri:
      return reply_by_priority(call, queue, request);
    case By::kGroup:
      return reply_by_group(call, key, queue, request);
    case By::kKey:
      return reply_by_key(call, key, queue, request);
    case By::kTag:
      return reply_by_tag(call, queue, request);
    case By::kWorker:
      return reply_by_worker(call, key, queue, request);
    case By::kError:
      return reply_by_error(call, queue, request);
  }
}

}  // namespace sluice
