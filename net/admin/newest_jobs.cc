#include "net/admin/newest_jobs.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "net/io/turns.h"

namespace sluice {

namespace {

// Jobs per piece; a piece must fit into a turn.
constexpr const char* kStepCount = "500";

struct Found {
  int64_t enqueued_ms;
  std::string id;
};

bool is_newer(const Found& a, const Found& b) {
  if (a.enqueued_ms != b.enqueued_ms) return a.enqueued_ms > b.enqueued_ms;
  return a.id < b.id;
}

class NewestFirst {
 public:
  NewestFirst(Exchange& exchange, NewestJobs request)
      : exchange_(exchange.shared_from_this()), request_(std::move(request)) {}

  // Processes one piece. Returns false after the last one.
  bool go_on();

 private:
  // Returns false on failure, which has been responded.
  bool walk();
  bool show();
  void keep(Found found);

  const std::shared_ptr<Exchange> exchange_;
  const NewestJobs request_;
  std::string cursor_ = "0";
  bool walked_ = false;
  size_t total_ = 0;
  // During the walk a heap with the oldest job on top; afterwards sorted.
  std::vector<Found> newest_;
  size_t shown_ = 0;  // of newest_, including the skipped ones
  size_t text_bytes_ = 0;
};

bool NewestFirst::go_on() {
  if (exchange_->cut_off() || !(walked_ ? show() : walk())) return false;
  if (!walked_ || shown_ < newest_.size()) return true;
  request_.then(total_);
  return false;
}

bool NewestFirst::walk() {
  Words words = {"Q.LIST", request_.queue, "CURSOR", cursor_, "COUNT", kStepCount};
  if (request_.wanted) {
    words.insert(words.end(), {"WITH", "payload", "WITH", "result"});
  } else {
    words.emplace_back("BRIEF");
  }
  if (!request_.selector.empty()) words.emplace_back("WHERE");
  words.insert(words.end(), request_.selector.begin(), request_.selector.end());
  RespValue reply = exchange_->run(words);
  if (respond_error(*exchange_, reply)) return false;
  for (RespValue& job : reply.items[1].items) {
    if (request_.wanted && !request_.wanted(job)) continue;
    keep({job.at("enqueued").integer, job.at("id").text});
  }
  cursor_ = std::move(reply.items[0].text);
  walked_ = cursor_ == "0";
  if (!walked_) return true;
  std::sort_heap(newest_.begin(), newest_.end(), is_newer);
  // A job whose state has changed in the meantime may have been found twice.
  const auto same = [](const Found& a, const Found& b) { return a.id == b.id; };
  const auto twice = std::unique(newest_.begin(), newest_.end(), same);
  total_ -= static_cast<size_t>(newest_.end() - twice);
  newest_.erase(twice, newest_.end());
  shown_ = std::min(request_.skip, newest_.size());
  return true;
}

void NewestFirst::keep(Found found) {
  ++total_;
  const bool full = newest_.size() == request_.skip + request_.limit;
  if (full && !is_newer(found, newest_.front())) return;
  if (full) {
    std::pop_heap(newest_.begin(), newest_.end(), is_newer);
    newest_.pop_back();
  }
  newest_.push_back(std::move(found));
  std::push_heap(newest_.begin(), newest_.end(), is_newer);
}

bool NewestFirst::show() {
  Words words = {"Q.GET", request_.queue, newest_[shown_++].id};
  if (text_bytes_ < request_.max_text_bytes) {
    words.insert(words.end(), {"WITH", "payload", "WITH", "result"});
  }
  const RespValue job = exchange_->run(words);
  if (respond_error(*exchange_, job)) return false;
  for (const char* name : {"payload", "result"}) {
    const RespValue* text = job.find(name);
    if (text != nullptr) text_bytes_ += text->text.size();
  }
  if (job.is_map()) request_.take(job);
  return true;
}

}  // namespace

void list_newest_jobs(Exchange& exchange, NewestJobs request) {
  const auto list = std::make_shared<NewestFirst>(exchange, std::move(request));
  work_in_turns(exchange.engine().thread(), [list] { return list->go_on(); });
}

}  // namespace sluice
