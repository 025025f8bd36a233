// Events of a queue's jobs: one page, or a stream of Server-Sent Events.
//
// The id of an event in the stream is its number, so a browser that reconnects with Last-Event-ID
// resumes after it without a gap. Events that are no longer kept are reported (TRIMMED), never
// skipped.
#include <array>

#include "net/admin/api.h"
#include "net/admin/routes.h"
#include "net/http/stream_budget.h"
#include "net/io/io_thread.h"

namespace sluice {

namespace {

using OptionType = OptionRow::Type;

// Events per part: a fraction of a millisecond, so that others do not wait.
constexpr const char* kStreamCount = "100";

// A mark is not an event; it tells up to which number events have been examined.
bool is_mark(const RespValue& event) { return event.items[2].text == "none"; }

std::string text_of(const RespValue& event) {
  constexpr std::array<Bytes, 5> kMembers = {"seq", "time", "type", "id", "fields"};
  std::string text = "{";
  for (size_t i = 0; i < kMembers.size(); ++i) {
    if (i != 0) text += ',';
    append_member(kMembers[i], event.items[i], text);
  }
  return text + "}";
}

// One stream. It waits for events before it sends its head, so that none is missed from the moment
// at which the client knows that it is subscribed. It reads further events only after the last part
// has been sent, so a slow reader costs no memory: the log keeps what has not been read. On a busy
// thread it reads as rarely as the stream budget requires.
class EventStream : public std::enable_shared_from_this<EventStream> {
 public:
  EventStream(Exchange& exchange, Words filters, std::string after)
      : exchange_(exchange.shared_from_this()),
        filters_(std::move(filters)),
        after_(std::move(after)),
        timer_(exchange.engine().thread().executor()) {}

  void begin() {
    wait();
    if (answered_) return;
    HttpResponse head;
    head.content_type = "text/event-stream";
    opened_ = true;
    exchange_->open_stream(std::move(head), [self = shared_from_this()] {
      self->may_send_ = true;
      self->send();
    });
  }

 private:
  void go_on() {
    when_in_budget(*exchange_, timer_, [self = shared_from_this()] { self->wait(); });
  }

  void wait() {
    if (exchange_->cut_off()) return;
    Words words = {"Q.EVENTS", exchange_->path("queue"), after_, "COUNT", kStreamCount, "BLOCK",
                   "0"};
    words.insert(words.end(), filters_.begin(), filters_.end());
    // The kernel's time for sending is not included.
    const auto spend_since = [this](const StreamBudget::Begin& begin) {
      if (!exchange_->cut_off()) exchange_->budget().spend_since(begin);
    };
    const StreamBudget::Begin asked = exchange_->budget().begin();
    asking_ = true;
    exchange_->run_waiting(words, [self = shared_from_this(), spend_since](const RespValue& reply) {
      const StreamBudget::Begin begin = self->exchange_->budget().begin();
      self->take(reply);
      // If called synchronously, the time is counted by the caller.
      if (!self->asking_) spend_since(begin);
    });
    asking_ = false;
    spend_since(asked);
  }

  void take(const RespValue& reply) {
    if (reply.is_error() && !opened_) {
      answered_ = respond_error(*exchange_, reply);
      return;
    }
    if (reply.is_error() || reply.items.empty()) {
      // The log no longer holds the next events, or the queue was deleted.
      const HttpResponse what = reply.is_error() ? problem_of_error(reply.text) : queue_gone();
      part_ = "event: problem\ndata: " + what.body + "\n\n";
      ends_ = true;
    }
    for (const RespValue& event : reply.items) {
      after_ = std::to_string(event.items[0].integer);
      if (is_mark(event)) continue;
      part_ += "id: " + after_ + "\nevent: " + event.items[2].text + "\ndata: " + text_of(event) +
               "\n\n";
    }
    // Only a mark: there are more events to examine.
    part_.empty() ? go_on() : send();
  }

  void send() {
    if (!may_send_ || part_.empty()) return;
    may_send_ = false;
    exchange_->send_part(std::exchange(part_, {}), [self = shared_from_this()] {
      if (self->ends_) return self->exchange_->end_stream();
      self->may_send_ = true;
      self->go_on();
    });
  }

  const std::shared_ptr<Exchange> exchange_;
  const Words filters_;
  std::string after_;
  std::string part_;  // to be sent next
  SteadyTimer timer_;
  bool asking_ = false;
  bool opened_ = false;
  bool may_send_ = false;
  bool answered_ = false;
  bool ends_ = false;
};

bool wants_stream(const HttpRequest& request) {
  const std::string* accept = request.header("accept");
  return accept != nullptr && accept->find("text/event-stream") != std::string::npos;
}

void get_events(Exchange& exchange) {
  QueryReader query(exchange);
  std::string after = query.text("after").value_or("");
  const int64_t count = query.integer("count", 1, 1000).value_or(100);
  Words filters;
  query.options({{"type", "TYPE", OptionType::kTexts}, {"id", "ID", OptionType::kTexts}}, filters);
  if (query.failed()) return;
  const bool stream = wants_stream(exchange.request());
  // After a reconnect this is newer than the address.
  const std::string* last = exchange.request().header("last-event-id");
  const bool resumes = stream && last != nullptr && !last->empty();
  if (resumes) after = *last;
  exchange.name_option("seq", resumes ? "Last-Event-ID" : "after");
  if (after.empty()) after = stream ? "$" : "-";
  if (stream) return std::make_shared<EventStream>(exchange, filters, after)->begin();
  Words words = {"Q.EVENTS", exchange.path("queue"), after, "COUNT", std::to_string(count)};
  words.insert(words.end(), filters.begin(), filters.end());
  const RespValue reply = exchange.run(words);
  if (respond_error(exchange, reply)) return;
  JsonList events("events");
  for (const RespValue& event : reply.items) {
    if (!is_mark(event)) events.add_text(text_of(event));
    after = std::to_string(event.items[0].integer);
  }
  events.put({{"next", after}});
  events.respond(exchange);
}

}  // namespace

std::vector<Route> event_routes() {
  return {
      {.pattern = "/api/v1/queues/{queue}/events",
       .handler = get_events,
       .summary = "Events of jobs, in order; with Accept: text/event-stream as a live stream.",
       .parameters = {{"after", "string", "a number, - (the oldest kept) or $ (from now on)"},
                      {"count", "integer", "at most this many, 1 to 1000; not for a stream"},
                      {"type", "string", "only events of this type; may be repeated"},
                      {"id", "string", "only events of this job; may be repeated, for 256 jobs"}},
       .answer = "Events",
       .streams = true},
  };
}

}  // namespace sluice
