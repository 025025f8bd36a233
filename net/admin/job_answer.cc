#include "net/admin/job_answer.h"

#include <memory>
#include <utility>

#include "net/io/turns.h"

namespace sluice {

namespace {

using nlohmann::json;

class EachJob {
 public:
  EachJob(Exchange& exchange, size_t count, std::function<JobAnswer(size_t)> change)
      : exchange_(exchange.shared_from_this()), count_(count), change_(std::move(change)) {}

  // Changes one. Returns false after the last one.
  bool go_on() {
    if (exchange_->cut_off()) return false;
    if (list_.size() == count_) {
      list_.respond(*exchange_);
      return false;
    }
    JobAnswer answer = change_(list_.size());
    json& line = answer.members;
    if (answer.refused) line["error"] = parse_json(answer.refused->body);
    line["status"] = answer.status;
    list_.add(line);
    return true;
  }

 private:
  const std::shared_ptr<Exchange> exchange_;
  const size_t count_;
  const std::function<JobAnswer(size_t)> change_;
  JsonList list_{"jobs"};
};

}  // namespace

JobAnswer refused_answer(HttpResponse refused) { return {refused.status, {}, std::move(refused)}; }

JobAnswer shown_job(Exchange& exchange, const RespValue& reply) {
  if (auto refused = problem_of_reply(exchange, reply)) return refused_answer(std::move(*refused));
  if (reply.is_null()) return refused_answer(problem(404, "NOJOB", "No such job."));
  return {200, resp_to_json(reply)};
}

void respond_answer(Exchange& exchange, JobAnswer answer) {
  if (answer.refused) return exchange.respond(std::move(*answer.refused));
  respond_json(exchange, answer.members, answer.status);
}

void answer_each(Exchange& exchange, size_t count, std::function<JobAnswer(size_t)> change) {
  if (respond_busy(exchange)) return;
  const auto each = std::make_shared<EachJob>(exchange, count, std::move(change));
  work_in_turns(exchange.engine().thread(), [each] { return each->go_on(); });
}

}  // namespace sluice
