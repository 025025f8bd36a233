// Q.EVENTS: what happened to the jobs of a queue, in order, at once or as it happens.
#include <algorithm>
#include <array>
#include <memory>

#include "engine/base/numbers.h"
#include "engine/commands/queue_args.h"
#include "engine/commands/queues.h"
#include "engine/queue/queue_error.h"

namespace sluice {

namespace {

constexpr int64_t kDefaultCount = 100;
constexpr int64_t kMaxCount = 1000;

struct EventsRequest final : WaiterRequest {
  uint64_t after = 0;
  bool from_oldest = false;  // `-`: whatever is kept, from `after` on
  int64_t count = kDefaultCount;
  bool every_type = true;
  std::array<bool, kEventTypes> types{};
  bool blocks = false;
  int64_t block_ms = 0;

  bool wants(EventType type) const { return every_type || types[static_cast<size_t>(type)]; }
};

// A missing queue has had no events.
const EventLog& log_of(const Queue* queue) {
  static const EventLog none;
  return queue == nullptr ? none : queue->events;
}

// The oldest event that is kept, or else the next one.
uint64_t oldest_seq(const EventLog& log) {
  return log.empty() ? log.last_seq() + 1 : log.oldest_seq();
}

bool parse_events(Call& call, const EventLog& log, EventsRequest& request) {
  const Bytes from = call.args[2];
  if (from == "-") {
    request.from_oldest = true;
  } else if (from == "$") {
    request.after = log.last_seq();
  } else {
    const auto seq = parse_i64(from);
    if (!seq || *seq < 0) {
      reply_bad_field(call, "seq");
      return false;
    }
    request.after = static_cast<uint64_t>(*seq);
  }
  OptionReader options(call, 3);
  while (options.next()) {
    if (options.is("COUNT", 1)) {
      request.count = options.integer(1, kMaxCount).value_or(kDefaultCount);
    } else if (options.is("BLOCK", 1)) {
      request.blocks = true;
      request.block_ms = options.duration().value_or(0);
    } else if (options.is("TYPE", 1)) {
      EventType type{};
      request.every_type = false;
      if (!parse_event_type(options.value(), type)) options.bad_value();
      request.types[static_cast<size_t>(type)] = true;
    } else {
      options.unknown();
    }
  }
  return !options.failed();
}

// Events between `after` and the oldest kept one are gone; a number above the newest is that of an
// earlier queue of this name, or of events that a crash has taken.
bool is_trimmed(const EventLog& log, const EventsRequest& request) {
  if (request.from_oldest) return false;
  return request.after + 1 < oldest_seq(log) || request.after > log.last_seq();
}

void reply_event(Reply& reply, const Event& event) {
  reply.array(5);
  reply.integer(static_cast<int64_t>(event.seq));
  reply.integer(event.time_ms);
  reply.bulk(event_type_name(event.type));
  reply.bulk(event.id);
  const size_t mark = reply.open_array();
  size_t pairs = 0;
  Bytes fields = event.fields;
  Bytes name;
  Bytes value;
  for (; next_event_field(fields, name, value); ++pairs) {
    reply.bulk(name);
    reply.bulk(value);
  }
  reply.close_map(mark, pairs);
}

// An array of the events, or the error.
void reply_events(Call& call, const EventLog& log, const EventsRequest& request) {
  if (is_trimmed(log, request)) {
    return call.reply.error(QueueError("TRIMMED").with("oldest", oldest_seq(log)).text());
  }
  const size_t mark = call.reply.open_array();
  int64_t count = 0;
  log.read(request.after, [&](const Event& event) {
    if (!request.wants(event.type)) return true;
    reply_event(call.reply, event);
    return ++count < request.count;
  });
  call.reply.close_array(mark, static_cast<size_t>(count));
}

// There is an event to reply, or the error. Events that are not wanted are passed over for good, so
// that a waiter looks at each but once.
bool has_news(const EventLog& log, EventsRequest& request) {
  if (is_trimmed(log, request)) return true;
  bool found = false;
  log.read(request.after, [&](const Event& event) {
    found = request.wants(event.type);
    if (!found) request.after = event.seq;
    return !found;
  });
  return found;
}

EventsRequest& request_of(const Waiter& waiter) {
  return static_cast<EventsRequest&>(*waiter.request);
}

bool accepts_events(const Waiter& waiter, const Entry& entry) {
  return has_news(entry.object<Queue>().events, request_of(waiter));
}

// Also called when the queue is gone: then there are none.
void serve_events(Call& call, Bytes name) {
  const Entry* entry = call.find(KeyRef(name));
  const bool is_queue = entry != nullptr && entry->type() == Type::kQueue;
  if (!is_queue) return call.reply.array(0);
  reply_events(call, entry->object<Queue>().events, request_of(*call.waiter));
}

}  // namespace

void q_events_command(Call& call) {
  const KeyRef key = call.key(1);
  bool failed = false;
  const Queue* queue = find_queue(call, key, failed);
  if (failed) return;
  const EventLog& log = log_of(queue);
  auto request = std::make_unique<EventsRequest>();
  if (!parse_events(call, log, *request)) return;
  if (!request->blocks || call.nested || has_news(log, *request)) {
    return reply_events(call, log, *request);
  }
  auto waiter = std::make_shared<Waiter>();
  waiter->wanted = Type::kQueue;
  waiter->serve = serve_events;
  waiter->accepts = accepts_events;
  waiter->served_when_gone = true;
  waiter->timeout_ms = request->block_ms;
  waiter->request = std::move(request);
  const Bytes keys[] = {call.args[1]};
  call.block(keys, std::move(waiter));
}

}  // namespace sluice
