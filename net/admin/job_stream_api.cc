// One job followed as a stream of Server-Sent Events: its state, its place while it waits, its
// progress, its log, its end with the result. And a part of its log alone.
//
// The id of an event is `<number of the last event of the job>:<offset in its log>`, so that a
// client that reconnects with Last-Event-ID continues there. State and place are sent as they are,
// so nothing of them can be missed.
#include <optional>

#include "engine/base/limits.h"
#include "engine/base/numbers.h"
#include "engine/execution/queue_names.h"
#include "engine/queue/event_log.h"
#include "engine/queue/job.h"
#include "net/admin/api.h"
#include "net/admin/routes.h"
#include "net/http/http_service.h"
#include "net/http/stream_budget.h"
#include "net/io/io_thread.h"

namespace sluice {

namespace {

using nlohmann::json;

// What has no event is read so often: the place of a waiting job, the log of a running one.
constexpr const char* kLookMs = "250";
constexpr int64_t kWholeLog = 1 << 20;  // the most that log_bytes allows
constexpr int64_t kUsualLog = 64 << 10;

struct StreamPlace {
  std::optional<uint64_t> after;  // number of an event; none: from now on
  uint64_t offset = 0;
};

// Parses `<number>:<offset>`.
std::optional<StreamPlace> parse_place(Bytes text) {
  const size_t colon = text.find(':');
  if (colon == Bytes::npos) return std::nullopt;
  const auto seq = parse_i64(text.substr(0, colon));
  const auto offset = parse_i64(text.substr(colon + 1));
  if (!seq || *seq < 0 || !offset || *offset < 0 || *offset > kMaxExact) return std::nullopt;
  return StreamPlace{static_cast<uint64_t>(*seq), static_cast<uint64_t>(*offset)};
}

// `log`: a reply of Q.LOG.
json log_piece(const RespValue& log) {
  json piece = {{"offset", log.items[0].integer}, {"next", log.items[2].integer}};
  put_bytes(piece, "text", log.items[1].text);
  return piece;
}

bool is_end(Bytes state) {
  const auto parsed = parse_job_state(state);
  return parsed && is_terminal(*parsed);
}

class JobStream : public std::enable_shared_from_this<JobStream> {
 public:
  // `options`: of Q.GET.
  JobStream(Exchange& exchange, StreamPlace place, Words options)
      : exchange_(exchange.shared_from_this()),
        place_(std::move(place)),
        options_(std::move(options)),
        timer_(exchange.engine().thread().executor()) {}

  void begin() {
    // Before the job is read, so that no event is missed.
    if (place_.after) {
      resumed_to_ = last_of_queue().seq;
    } else {
      start_from_now();
    }
    const RespValue job = ask_job();
    if (respond_error(*exchange_, job)) return;
    if (job.is_null()) return exchange_->respond(problem(404, "NOJOB", "No such job."));
    HttpResponse head;
    head.content_type = "text/event-stream";
    exchange_->open_stream(std::move(head), [self = shared_from_this(), job] {
      self->show(job);
      self->part_.empty() ? self->go_on() : self->send();
    });
  }

 private:
  Words on_job(const char* command) const {
    return {command, exchange_->path("queue"), exchange_->path("id")};
  }

  RespValue ask_job() {
    Words words = on_job("Q.GET");
    words.insert(words.end(), options_.begin(), options_.end());
    return exchange_->run(words);
  }

  LastEvent last_of_queue() {
    Engine& engine = *exchange_->service().state().engine;
    const LastEvent last = last_event(engine, {exchange_->database(), exchange_->path("queue")});
    exchange_->engine().raise_gate(last.gate);
    return last;
  }

  void start_from_now() { place_.after = last_of_queue().seq; }

  // Whether what happened before the stream was resumed is still being read. The log is shown
  // after that, since the events tell whether it is still the same log.
  bool is_behind() const { return *place_.after < resumed_to_; }

  void put(const char* type, const json& data) {
    part_ += "id: " + std::to_string(*place_.after) + ":" + std::to_string(place_.offset) +
             "\nevent: " + type + "\ndata: " + dump_json(data) + "\n\n";
  }

  void go_on() {
    when_in_budget(*exchange_, timer_, [self = shared_from_this()] { self->wait(); });
  }

  void wait() {
    Words words = {"Q.EVENTS", exchange_->path("queue"), std::to_string(*place_.after), "ID",
                   exchange_->path("id")};
    if (!is_behind()) words.insert(words.end(), {"BLOCK", kLookMs});
    exchange_->run_waiting(words, [self = shared_from_this()](const RespValue& reply) {
      if (self->exchange_->cut_off()) return;
      StreamBudget& budget = self->exchange_->budget();
      const StreamBudget::Begin begin = budget.begin();
      self->take(reply);
      if (!self->exchange_->cut_off()) budget.spend_since(begin);
      self->part_.empty() ? self->go_on() : self->send();
    });
  }

  // `reply`: of Q.EVENTS; null when nothing has happened for a while.
  void take(const RespValue& reply) {
    if (reply.is_error() && reply.text.starts_with("TRIMMED")) {
      // What has happened since is in the state of the job.
      start_from_now();
    } else if (reply.is_error()) {
      return fail(problem_of_error(reply.text));
    } else if (!reply.is_null() && reply.items.empty()) {
      return fail(queue_gone());
    }
    for (const RespValue& event : reply.items) take_event(event);
    if (is_behind()) return;
    const RespValue job = ask_job();
    job.is_error() ? fail(problem_of_error(job.text)) : show(job);
  }

  void take_event(const RespValue& event) {
    place_.after = static_cast<uint64_t>(event.items[0].integer);
    const std::string& type = event.items[2].text;
    if (begins_log(type, event.items[4])) place_.offset = 0;
    if (type == event_type_name(EventType::kProgress)) {
      return put("progress", fields_of(event));
    }
    if (!is_end(type)) return;
    ended_ = fields_of(event);
    ended_["state"] = type;
  }

  // A retry after a failed run, which continues the log, has a lease; Q.RETRY has none.
  static bool begins_log(Bytes type, const RespValue& fields) {
    return type == event_type_name(EventType::kAdded) ||
           (type == event_type_name(EventType::kRetrying) && fields.find("lease") == nullptr);
  }

  static json fields_of(const RespValue& event) {
    json fields = resp_to_json(event.items[4]);
    fields["time"] = event.items[1].integer;
    return fields;
  }

  void fail(const HttpResponse& what) {
    part_ += "event: problem\ndata: " + what.body + "\n\n";
    ends_ = true;
  }

  // `job`: null if it is unknown.
  void show(const RespValue& job) {
    const bool has_ended = job.is_map() && is_end(job.at("state").text);
    if (has_ended && is_behind()) return;
    // An end of which the job no longer knows: it is not kept, or another one has its id.
    if (!has_ended && (job.is_null() || !ended_.is_null())) {
      // It may have been deleted while nothing waited for its events.
      if (ended_.is_null() && !last_of_queue().exists) return fail(queue_gone());
      if (ended_.is_null()) ended_["state"] = nullptr;
      put("end", ended_);
      ends_ = true;
      return;
    }
    json shown = resp_to_json(job);
    if (has_ended) {
      show_log();
      put("end", shown);
      ends_ = true;
      return;
    }
    json place = take_place(shown);
    shown.erase("result");
    show_state(std::move(shown));
    show_place(std::move(place));
    if (!is_behind()) show_log();
  }

  void show_log() {
    Words words = on_job("Q.LOG");
    words.insert(words.end(),
                 {"FROM", std::to_string(place_.offset), "COUNT", std::to_string(kWholeLog)});
    const RespValue log = exchange_->run(words);
    // Adopted keys have no logs.
    if (log.is_error() || log.is_null()) return;
    const auto next = static_cast<uint64_t>(log.items[2].integer);
    if (next == place_.offset) return;
    const bool begins_anew = next < place_.offset;
    place_.offset = begins_anew ? 0 : next;
    if (begins_anew) return show_log();
    put("log", log_piece(log));
  }

  // Takes out of a job what changes with time alone; returns its place.
  static json take_place(json& job) {
    json place = {{"position", job["position"]}, {"eta_ms", job["eta_ms"]}, {"why", job["why"]}};
    for (const char* name : {"position", "eta_ms", "why", "ttl_left_ms", "deadline"}) {
      job.erase(name);
    }
    return place;
  }

  void show_place(json place) {
    if (place["why"].is_null() || place == shown_place_) return;
    put("position", place);
    shown_place_ = std::move(place);
  }

  void show_state(json job) {
    json compared = job;
    compared.erase("progress");
    if (compared == shown_state_) return;
    put("state", job);
    shown_state_ = std::move(compared);
  }

  void send() {
    if (exchange_->cut_off()) return;
    exchange_->send_part(std::exchange(part_, {}), [self = shared_from_this()] {
      self->ends_ ? self->exchange_->end_stream() : self->go_on();
    });
  }

  const std::shared_ptr<Exchange> exchange_;
  StreamPlace place_;
  uint64_t resumed_to_ = 0;  // the queue's last event at that moment
  const Words options_;
  json ended_;  // the event of its end; null: there was none
  json shown_place_;
  json shown_state_;
  std::string part_;  // to be sent next
  SteadyTimer timer_;
  bool ends_ = false;
};

void stream_job(Exchange& exchange) {
  QueryReader query(exchange);
  Words options = {"WITH", "result"};
  read_progress_bytes(query, options);
  if (query.failed() || respond_busy(exchange)) return;
  const std::string* last = exchange.request().header("last-event-id");
  std::optional<StreamPlace> place(std::in_place);
  if (last != nullptr && !last->empty()) place = parse_place(*last);
  if (!place) {
    return respond_bad_field(exchange, {"last-event-id", "must be <event number>:<log offset>"});
  }
  std::make_shared<JobStream>(exchange, *place, std::move(options))->begin();
}

void respond_log(Exchange& exchange, const RespValue& log) {
  if (respond_error(exchange, log)) return;
  if (log.is_null()) return exchange.respond(problem(404, "NOJOB", "No such job."));
  json piece = log_piece(log);
  piece["ended"] = log.items[3].integer != 0;
  respond_json(exchange, piece);
}

void get_log(Exchange& exchange) {
  QueryReader query(exchange);
  const int64_t from = query.integer("from", 0, kMaxExact).value_or(0);
  const int64_t count = query.integer("count", 1, kWholeLog).value_or(kUsualLog);
  const int64_t wait_ms = query.duration("wait_ms", 0, kMaxWaitMs).value_or(0);
  if (query.failed()) return;
  Words words = {"Q.LOG", exchange.path("queue"), exchange.path("id"), "FROM", std::to_string(from),
                 "COUNT", std::to_string(count)};
  if (wait_ms != 0) words.insert(words.end(), {"BLOCK", std::to_string(wait_ms)});
  exchange.run_waiting(words, [self = exchange.shared_from_this()](const RespValue& log) {
    respond_log(*self, log);
  });
}

}  // namespace

std::vector<Route> stream_routes() {
  return {
      {.pattern = "/api/v1/queues/{queue}/jobs/{id}/stream",
       .handler = stream_job,
       .summary = "Follows a job as a live stream: state, position, progress, log, and its end.",
       .parameters = {kProgressParameter},
       .answer = "Stream",
       .content_type = "text/event-stream",
       .streams = true},
      {.pattern = "/api/v1/queues/{queue}/jobs/{id}/log",
       .handler = get_log,
       .summary = "A part of what the job has written to its log; waits for more with wait_ms.",
       .parameters = {{"from", "integer", "the offset of the first byte, 0 unless given"},
                      {"count", "integer", "at most this many bytes, 1 to 1048576"},
                      {"wait_ms", "duration",
                       "wait up to this long for more, or for the end of the job, at most 60000"}},
       .answer = "Log"},
  };
}

}  // namespace sluice
