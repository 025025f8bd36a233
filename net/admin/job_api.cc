// Routes about jobs: list, add, show.
#include <algorithm>
#include <memory>
#include <utility>

#include "engine/base/limits.h"
#include "engine/base/numbers.h"
#include "engine/queue/job_id.h"
#include "engine/queue/selector.h"
#include "net/admin/job_answer.h"
#include "net/admin/routes.h"
#include "net/io/turns.h"

namespace sluice {

namespace {

using nlohmann::json;
using OptionType = OptionRow::Type;

const std::vector<OptionRow>& add_options() {
  static const std::vector<OptionRow> rows = {
      {"pri", "PRI"},
      {"boost_ms", "BOOST", OptionType::kDuration},
      {"delay_ms", "DELAY", OptionType::kDuration},
      {"at", "AT", OptionType::kInteger},
      {"group", "GROUP"},
      {"keys", "KEY", OptionType::kTexts},
      {"cost", "COST", OptionType::kInteger},
      {"ttl_ms", "TTL", OptionType::kDuration},
      {"lease_ms", "LEASE", OptionType::kDuration},
      {"max_run_ms", "MAXRUN", OptionType::kDuration},
      {"retry", "RETRY", OptionType::kInteger},
      {"backoff", "BACKOFF", OptionType::kPair},
      {"ifdup", "IFDUP"},
      {"needs", "NEED", OptionType::kTexts},
      {"after", "AFTER", OptionType::kTexts},
      {"tags", "TAG", OptionType::kTextPairs},
      {"max_wait_ms", "MAXWAIT", OptionType::kDuration},
  };
  return rows;
}

// Default number of jobs on a page of a list.
constexpr int64_t kUsualPage = 100;

// A page of Q.LIST. A long one is read in several turns.
class JobList {
 public:
  // `words` must contain neither COUNT nor CURSOR.
  JobList(Exchange& exchange, Words words, std::string cursor, size_t count)
      : exchange_(exchange.shared_from_this()),
        words_(std::move(words)),
        cursor_(std::move(cursor)),
        count_(count) {}

  // Reads one piece. Returns false after the last one.
  bool go_on();

 private:
  static constexpr size_t kMostInPiece = 50;
  static constexpr const char* kLookedAtOnce = "500";
  static constexpr int kMostPieces = 1000;  // where long texts are searched

  const std::shared_ptr<Exchange> exchange_;
  const Words words_;
  std::string cursor_;
  const size_t count_;
  PieceSize piece_{8, kMostInPiece};
  size_t bytes_ = 0;
  size_t looked_at_ = 0;
  int pieces_ = 0;
  JsonList list_{"jobs"};
};

bool JobList::go_on() {
  if (exchange_->cut_off()) return false;
  const size_t wanted = std::min(piece_.next(), count_ - list_.size());
  Words words = words_;
  words.insert(words.begin() + 2,
               {"LOOK", kLookedAtOnce, "CURSOR", cursor_, "COUNT", std::to_string(wanted)});
  const RespValue reply = exchange_->run(words);
  if (respond_error(*exchange_, reply)) return false;
  const std::vector<RespValue>& jobs = reply.items[1].items;
  const size_t bytes = text_bytes(reply);
  for (const RespValue& job : jobs) list_.add(job);
  bytes_ += bytes;
  cursor_ = reply.items[0].text;
  looked_at_ += static_cast<size_t>(reply.items[2].integer);
  if (cursor_ == "0" || list_.size() >= count_ || bytes_ >= kMaxPageBytes ||
      looked_at_ >= kMaxExamined || ++pieces_ == kMostPieces) {
    list_.put({{"looked_at", looked_at_}});
    list_.respond(*exchange_, cursor_json(reply.items[0].text));
    return false;
  }
  piece_.note(jobs.size(), bytes);
  return true;
}

// Lists of ended jobs show the newest first.
bool means_ended(const SelectorWords& selector) {
  JobStates states = 0;
  for (size_t i = 1; i < selector.states.size(); i += 2) {
    const auto state = parse_job_state(selector.states[i]);
    if (!state) return false;
    states |= state_bit(*state);
  }
  return states != 0 && (states & kLiveStates) == 0;
}

// The next jobs in dispatch order are read at one moment; they are few.
void list_next(Exchange& exchange, Words words, int64_t count) {
  words.insert(words.end(), {"COUNT", std::to_string(count)});
  const RespValue reply = exchange.run(words);
  if (respond_error(exchange, reply)) return;
  JsonList list("jobs");
  for (const RespValue& job : reply.items[1].items) list.add(job);
  list.respond(exchange, cursor_json(reply.items[0].text));
}

void list_jobs(Exchange& exchange) {
  QueryReader query(exchange);
  Words words = {"Q.LIST", exchange.path("queue")};
  const std::string by = query.text("by").value_or("");
  if (!by.empty()) words.insert(words.end(), {"BY", by});
  const std::optional<bool> desc = query.boolean("desc");
  if (desc && !equals_ignore_case(by, "AGE")) query.fail("desc", "goes with by=age");
  const std::optional<int64_t> count = query.integer("count", 1, kMaxPageCount);
  const std::optional<std::string> cursor = query.text("cursor");
  query.options({{"with", "WITH", OptionType::kTexts}}, words);
  read_progress_bytes(query, words);
  SelectorWords selector = read_selector(query);
  const bool selects = selector.means_something() || !selector.limit.empty();
  const bool in_dispatch_order = equals_ignore_case(by, "DISPATCH");
  if (in_dispatch_order && selects) query.fail("by", "dispatch takes neither criteria nor a limit");
  if (query.failed()) return;
  if (by.empty() && means_ended(selector)) words.insert(words.end(), {"BY", "AGE", "DESC"});
  if (desc.value_or(false)) words.emplace_back("DESC");
  if (selects) {
    // A selector with only a limit means all jobs.
    if (!selector.means_something()) selector.others = {"ALL"};
    words.emplace_back("WHERE");
    append_words({&selector.states, &selector.others, &selector.limit}, words);
  }
  if (in_dispatch_order && !cursor) {
    return list_next(exchange, std::move(words), count.value_or(kUsualPage));
  }
  const int64_t limit =
      selector.limit.empty() ? kMaxPageCount : parse_i64(selector.limit[1]).value_or(kMaxPageCount);
  const int64_t usual = selector.limit.empty() ? kUsualPage : limit;
  const auto most = std::clamp<int64_t>(std::min(count.value_or(usual), limit), 1, kMaxPageCount);
  const auto list = std::make_shared<JobList>(exchange, std::move(words), cursor.value_or("0"),
                                              static_cast<size_t>(most));
  work_in_turns(exchange.engine().thread(), [list] { return list->go_on(); });
}

// --- Adding ---

// The words of Q.ADD. The body remembers what is wrong with it.
Words add_words(Exchange& exchange, BodyReader& body) {
  const auto given = body.bytes("id");
  if (given && !is_job_id(*given)) body.fail("id", kNoJobId);
  const std::string id = given.value_or("*");
  const auto payload = body.bytes("payload");
  if (!payload) body.fail("payload", "is required");
  Words words = {"Q.ADD", exchange.path("queue"), id, payload.value_or("")};
  body.options(add_options(), words);
  body.at_most_one({"delay_ms", "at"});
  return words;
}

unsigned added_status(const RespValue& added) {
  const std::string& result = added.at("result").text;
  return result == "added" || result == "replaced" ? 201 : 200;
}

JobAnswer add_one(Exchange& exchange, BodyReader body) {
  const Words words = add_words(exchange, body);
  if (auto refused = body.problem()) return refused_answer(std::move(*refused));
  const RespValue reply = exchange.run(words);
  if (auto refused = problem_of_reply(exchange, reply)) return refused_answer(std::move(*refused));
  return {added_status(reply), resp_to_json(reply)};
}

// Adds a job and waits for its end.
void add_and_wait(Exchange& exchange, Words words, int64_t wait_ms) {
  words.insert(words.end(), {"WAIT", std::to_string(wait_ms)});
  exchange.run_waiting(words, [self = exchange.shared_from_this()](const RespValue& reply) {
    if (respond_error(*self, reply)) return;
    json added = resp_to_json(reply.items[0]);
    added["job"] = resp_to_json(reply.items[1]);
    respond_json(*self, added, added_status(reply.items[0]));
  });
}

void add_job(Exchange& exchange) {
  QueryReader query(exchange);
  json body = body_of(exchange);
  if (query.failed()) return;
  if (body.is_array()) {
    if (body.size() > kMostJobsNamed) return respond_bad_field(exchange, {"jobs", kTooManyJobs});
    const size_t count = body.size();
    return answer_each(exchange, count, [&exchange, jobs = std::move(body)](size_t i) mutable {
      return add_one(exchange, BodyReader(exchange, std::move(jobs[i])));
    });
  }
  BodyReader reader(exchange, std::move(body));
  Words words = add_words(exchange, reader);
  const int64_t wait_ms = reader.duration("wait_ms", 0, kMaxWaitMs).value_or(0);
  if (reader.failed()) return;
  if (wait_ms != 0) return add_and_wait(exchange, std::move(words), wait_ms);
  const RespValue added = exchange.run(words);
  if (!respond_error(exchange, added)) {
    respond_json(exchange, resp_to_json(added), added_status(added));
  }
}

void get_job(Exchange& exchange) {
  QueryReader query(exchange);
  Words words = {"Q.GET", exchange.path("queue"), exchange.path("id")};
  query.options({{"with", "WITH", OptionType::kTexts}}, words);
  read_progress_bytes(query, words);
  const int64_t wait_ms = query.duration("wait_ms", 0, kMaxWaitMs).value_or(0);
  if (query.failed()) return;
  if (wait_ms == 0) return respond_answer(exchange, shown_job(exchange, exchange.run(words)));
  Words waiting = words;
  waiting.insert(waiting.end(), {"WAIT", std::to_string(wait_ms)});
  exchange.run_waiting(waiting, [self = exchange.shared_from_this(), words](RespValue reply) {
    // Timeout, or the job was not retained: return its present state.
    if (reply.is_null()) reply = self->run(words);
    respond_answer(*self, shown_job(*self, reply));
  });
}

}  // namespace

std::vector<Route> job_routes() {
  constexpr const char* kJobs = "/api/v1/queues/{queue}/jobs";
  constexpr const char* kJob = "/api/v1/queues/{queue}/jobs/{id}";
  Route add =
      operate_route(kJobs, add_job,
                    "Adds a job, or each of an array; 200 for an array, and where IFDUP kept or "
                    "updated the job.",
                    "NewJobOrJobs", "AddedOrJobs");
  add.status = 201;
  add.may_be_there = true;
  add.problems = {429};
  return {
      {.pattern = kJobs,
       .handler = list_jobs,
       .summary = "The selected jobs, page by page.",
       .parameters =
           with_selector({{"by", "string", "rank, age, deadline or dispatch"},
                          {"desc", "boolean", "with by=age: the newest first"},
                          {"count", "integer", "at most this many"},
                          kCursorParameter,
                          kProgressParameter,
                          {"with", "string", "payload, result or options; may be repeated"}}),
       .answer = "Jobs"},
      std::move(add),
      {.pattern = kJob,
       .handler = get_job,
       .summary = "A job: its position, why it waits, how it ended.",
       .parameters = {{"with", "string", "payload, result, options or dependents; may be repeated"},
                      kProgressParameter,
                      {"wait_ms", "duration", "wait up to this long for its end, at most 60000"}},
       .answer = "Job"},
  };
}

}  // namespace sluice
