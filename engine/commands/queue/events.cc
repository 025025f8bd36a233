// Q.EVENTS: the history of a queue's jobs, at once or as it happens.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "engine/base/hash.h"
#include "engine/base/limits.h"
#include "engine/base/numbers.h"
#include "engine/commands/queue/args.h"
#include "engine/commands/queue/queues.h"
#include "engine/execution/engine.h"
#include "engine/queue/queue_error.h"

namespace sluice {

namespace {

constexpr int64_t kDefaultCount = 100;
// The bounds of one call. The chunks of 4 KB that are read from the disk are read under the shard's
// lock. Chunks with an event of the reply do not count, so a reply has as many events as requested.
constexpr EventLog::Bounds kMaxLookedAt{.events = 100'000, .chunks_read = 256};

struct HashId {
  using is_transparent = void;
  size_t operator()(Bytes id) const { return hash_bytes(id); }
};

struct EventsRequest final : WaiterRequest {
  uint64_t after = 0;
  bool from_oldest = false;  // `-`: the retained events, from `after` on
  int64_t count = kDefaultCount;
  uint32_t types = 0;  // event_bit of the requested types
  // Only of these jobs; empty: of all jobs.
  std::unordered_set<std::string, HashId, std::equal_to<>> ids;
  bool blocks = false;
  int64_t block_ms = 0;

  uint32_t wanted_types() const { return types == 0 ? kEveryEventType : types; }
  // REQUIRES: the event has one of these types.
  bool wants(const Event& event) const { return ids.empty() || ids.contains(event.id); }
};

// A missing queue has no events; the events of a queue made later have numbers from the floor on.
// `none` is set up as such a log.
const EventLog& log_of(const Call& call, const Queue* queue, EventLog& none) {
  none.set_last_seq(call.engine.token_floor.load(std::memory_order_relaxed) - 1);
  return queue == nullptr ? none : queue->events;
}

// The oldest retained event, or else the next one.
uint64_t oldest_seq(const EventLog& log) {
  return log.empty() ? log.last_seq() + 1 : log.oldest_seq();
}

void read_followed_job(Call& call, OptionReader& options, EventsRequest& request) {
  const Bytes id = options.value();
  if (!may_name_job(call, id)) return options.bad_value();
  request.ids.emplace(id);
  if (request.ids.size() > kMaxFollowedJobs) options.bad_value();
}

bool parse_start(Call& call, const Queue* queue, EventsRequest& request) {
  const Bytes from = call.args[2];
  if (from == "-") {
    request.from_oldest = true;
  } else if (from == "$") {
    // If the queue does not exist yet, the request gets all of its events.
    request.from_oldest = queue == nullptr;
    request.after = queue == nullptr ? 0 : queue->events.last_seq();
  } else {
    const auto seq = parse_i64(from);
    if (!seq || *seq < 0) {
      reply_bad_field(call, "seq");
      return false;
    }
    request.from_oldest = *seq == 0;
    request.after = static_cast<uint64_t>(*seq);
  }
  return true;
}

bool parse_events(Call& call, const Queue* queue, EventsRequest& request) {
  if (!parse_start(call, queue, request)) return false;
  OptionReader options(call, 3);
  while (options.next()) {
    if (options.is("COUNT", 1)) {
      request.count = options.integer(1, kMaxPageCount).value_or(kDefaultCount);
    } else if (options.is("BLOCK", 1)) {
      request.blocks = true;
      request.block_ms = options.time().value_or(0);
    } else if (options.is("TYPE", 1)) {
      const auto type = parse_event_type(options.value());
      if (!type) options.bad_value();
      request.types |= event_bit(type.value_or(EventType::kNone));
    } else if (options.is("ID", 1)) {
      read_followed_job(call, options, request);
    } else {
      options.unknown();
    }
  }
  return !options.failed();
}

// Whether events after `after` are lost: those between it and the oldest retained one are trimmed,
// or belong to an earlier queue of this name. A number above the newest means that a crash lost
// the events, or that the number is from an earlier queue.
bool is_trimmed(const EventLog& log, const EventsRequest& request) {
  if (request.from_oldest) return false;
  return request.after + 1 < oldest_seq(log) || request.after > log.last_seq();
}

// Whether the value of a field is a number; other values are chosen by clients.
bool is_number(Bytes field) {
  static constexpr std::array<Bytes, 6> kNumbers = {"lease",   "attempt", "delay_ms",
                                                    "wait_ms", "run_ms",  "members"};
  return std::find(kNumbers.begin(), kNumbers.end(), field) != kNumbers.end();
}

void reply_event(Reply& reply, const Event& event, const Times& now) {
  reply.array(5);
  reply.integer(static_cast<int64_t>(event.seq));
  reply.integer(now.shown_ms(event.time_ms));
  reply.bulk(event_type_name(event.type));
  reply.bulk(event.id);
  const size_t mark = reply.open_array();
  size_t pairs = 0;
  Bytes fields = event.fields;
  Bytes name;
  Bytes value;
  for (; next_event_field(fields, name, value); ++pairs) {
    reply.bulk(name);
    const auto number = is_number(name) ? parse_i64(value) : std::nullopt;
    number ? reply.integer(*number) : reply.bulk(value);
  }
  reply.close_map(mark, pairs);
}

// Replies how far the call has read, if its events do not show that.
void reply_mark(Reply& reply, const EventLog::Looked& last, const Times& now) {
  reply_event(reply, {last.seq, last.time_ms, EventType::kNone, {}, {}}, now);
}

// Replies an array of the events, or the error. The array ends before lost events. If no event
// comes before these, returns the last lost one, and replies nothing; else returns 0.
uint64_t try_reply_events(Call& call, const EventLog& log, const EventsRequest& request) {
  if (is_trimmed(log, request)) {
    call.reply.error(QueueError("TRIMMED").with("oldest", oldest_seq(log)).text());
    return 0;
  }
  std::optional<size_t> mark;
  const auto open = [&] {
    if (!mark) mark = call.reply.open_array();
  };
  size_t count = 0;
  uint64_t told = 0;
  EventLog::Bounds bounds = kMaxLookedAt;
  const auto tell = [&](const Event& event) {
    if (!request.wants(event)) return true;
    ++bounds.chunks_read;
    open();
    reply_event(call.reply, event, call.unit.times);
    told = event.seq;
    return ++count < static_cast<size_t>(request.count);
  };
  const EventLog::Looked looked = log.read(request.after, request.wanted_types(), bounds, tell);
  const bool passed_over = looked.seq > told;
  if (passed_over && (!request.ids.empty() || looked.stopped)) {
    open();
    reply_mark(call.reply, looked, call.unit.times);
    ++count;
  }
  if (count == 0 && looked.lost_seq != 0) return looked.lost_seq;
  open();
  call.reply.close_array(*mark, count);
  return 0;
}

// Lost events are removed from the log, as if trimmed.
void reply_events(Call& call, Queue* queue, const EventsRequest& request) {
  EventLog none;
  while (const uint64_t lost_seq = try_reply_events(call, log_of(call, queue, none), request)) {
    queue->events.forget_through(lost_seq);
  }
}

// Whether there is an event, an error or a mark to reply. If not, the request has skipped all
// present events for good and now waits after the newest one.
bool has_news(const EventLog& log, EventsRequest& request) {
  if (is_trimmed(log, request)) return true;
  bool found = false;
  const auto look = [&](const Event& event) {
    found = request.wants(event);
    return !found;
  };
  while (true) {
    const EventLog::Looked looked =
        log.read(request.after, request.wanted_types(), kMaxLookedAt, look);
    // A reading that was stopped by its bound is repeated for the reply, and marked there.
    if (found || looked.stopped) return true;
    // Lost events are reported, except to requests that read from the oldest on.
    if (looked.lost_seq != 0 && !request.from_oldest) return true;
    request.after = std::max({request.after, looked.seq, looked.lost_seq});
    if (looked.lost_seq == 0) return false;
  }
}

EventsRequest& request_of(const Waiter& waiter) {
  return static_cast<EventsRequest&>(*waiter.request);
}

// Advances the request to the event that the waiter has passed.
EventsRequest& moved_on(const Waiter& waiter) {
  EventsRequest& request = request_of(waiter);
  request.after = std::max(request.after, waiter.queue.passed_seq);
  return request;
}

// Called only if the queue was replaced; otherwise each event selects its waiters.
bool accepts_events(const Waiter& waiter, const Entry& entry) {
  return has_news(entry.object<Queue>().events, moved_on(waiter));
}

// Also called when the queue was removed; then it has no events.
void serve_events(Call& call, Bytes name) {
  Entry* entry = call.find(KeyRef(name));
  const bool is_queue = entry != nullptr && entry->type() == Type::kQueue;
  if (!is_queue) return call.reply.array(0);
  reply_events(call, &entry->object<Queue>(), moved_on(*call.waiter));
}

}  // namespace

void q_events_command(Call& call) {
  const KeyRef key = call.key(1);
  const Found<Queue> queue = find_queue(call, key);
  if (queue.refused()) return;
  auto request = std::make_unique<EventsRequest>();
  if (!parse_events(call, queue, *request)) return;
  EventLog none;
  if (!request->blocks || call.nested || has_news(log_of(call, queue, none), *request)) {
    return reply_events(call, queue, *request);
  }
  auto waiter = std::make_shared<Waiter>();
  waiter->wanted = Type::kQueue;
  waiter->serve = serve_events;
  waiter->accepts = accepts_events;
  waiter->served_when_gone = true;
  waiter->timeout_ms = request->block_ms;
  waiter->queue.event_types = request->wanted_types();
  for (const std::string& id : request->ids) {
    if (waiter->queue.job_id.empty()) {
      waiter->queue.job_id = id;
    } else {
      waiter->queue.more_job_ids.push_back(id);
    }
  }
  waiter->request = std::move(request);
  const Bytes keys[] = {call.args[1]};
  call.block(keys, std::move(waiter));
}

}  // namespace sluice
