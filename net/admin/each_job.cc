#include "net/admin/each_job.h"

#include <memory>
#include <utility>

#include "net/io/turns.h"

namespace sluice {

using nlohmann::json;

namespace {

// `change(i)` for each job, one after the other.
class EachJob {
 public:
  EachJob(Exchange& exchange, size_t count, std::function<Answer(size_t)> change)
      : exchange_(exchange.shared_from_this()), count_(count), change_(std::move(change)) {}

  // Changes one. Returns false after the last one.
  bool go_on() {
    if (exchange_->cut_off()) return false;
    if (list_.size() == count_) {
      list_.respond(*exchange_);
      return false;
    }
    Answer answer = change_(list_.size());
    json& line = answer.members;
    if (answer.refused) line["error"] = parse_json(answer.refused->body);
    line["status"] = answer.status;
    list_.add(line);
    return true;
  }

 private:
  const std::shared_ptr<Exchange> exchange_;
  const size_t count_;
  const std::function<Answer(size_t)> change_;
  JsonList list_{"jobs"};
};

}  // namespace

Answer refused_answer(HttpResponse refused) { return {refused.status, {}, std::move(refused)}; }

void respond_answer(Exchange& exchange, Answer answer) {
  if (answer.refused) return exchange.respond(std::move(*answer.refused));
  respond_json(exchange, answer.members, answer.status);
}

void answer_each(Exchange& exchange, size_t count, std::function<Answer(size_t)> change) {
  if (respond_busy(exchange)) return;
  const auto each = std::make_shared<EachJob>(exchange, count, std::move(change));
  work_in_turns(exchange.engine().thread(), [each] { return each->go_on(); });
}

}  // namespace sluice
