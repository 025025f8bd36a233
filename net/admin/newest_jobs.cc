#include "net/admin/newest_jobs.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "net/io/turns.h"

namespace sluice {

namespace {

// Jobs per piece; a piece must fit into a turn.
constexpr size_t kMostInStep = 500;
constexpr int kTakenAtOnce = 100;

struct EndedJob {
  int64_t enqueued_ms;
  std::string id;
};

bool is_newer(const EndedJob& a, const EndedJob& b) {
  if (a.enqueued_ms != b.enqueued_ms) return a.enqueued_ms > b.enqueued_ms;
  return a.id < b.id;
}

class NewestFirst {
 public:
  NewestFirst(Exchange& exchange, NewestJobs request)
      : exchange_(exchange.shared_from_this()),
        request_(std::move(request)),
        piece_(request_.wanted ? 1 : kMostInStep, kMostInStep) {}

  // Processes one piece. Returns false after the last one.
  bool go_on();

 private:
  // Returns false on failure, which has been responded.
  bool walk();
  bool show();
  void keep(EndedJob found);
  // Takes some of the oldest from `newest_`.
  void take_oldest();

  const std::shared_ptr<Exchange> exchange_;
  const NewestJobs request_;
  PieceSize piece_;
  std::string cursor_ = "0";
  bool walked_ = false;
  bool failed_ = false;
  size_t total_ = 0;
  // A heap with the oldest job on top, of which the oldest are the page. They may be very many, of
  // a large `skip`, so that they are taken and freed in pieces.
  std::deque<EndedJob> newest_;
  size_t kept_ = 0;             // of those taken, without the ones that were found twice
  std::string last_id_;         // of the last one taken
  std::vector<EndedJob> page_;  // oldest first
  size_t text_bytes_ = 0;
};

bool NewestFirst::go_on() {
  failed_ = failed_ || exchange_->cut_off();
  if (!failed_ && !walked_) {
    failed_ = !walk();
  } else if (!newest_.empty()) {
    take_oldest();
  } else if (!failed_ && !page_.empty()) {
    failed_ = !show();
  } else {
    if (!failed_) request_.then(total_);
    return false;
  }
  return true;
}

bool NewestFirst::walk() {
  Words words = {"Q.LIST", request_.queue, "CURSOR",
                 cursor_,  "COUNT",        std::to_string(piece_.next())};
  if (request_.wanted) {
    words.insert(words.end(), {"WITH", "payload", "WITH", "result"});
  } else {
    words.emplace_back("BRIEF");
  }
  if (!request_.selector.empty()) words.emplace_back("WHERE");
  words.insert(words.end(), request_.selector.begin(), request_.selector.end());
  RespValue reply = exchange_->run(words);
  if (respond_error(*exchange_, reply)) return false;
  piece_.note(reply.items[1].items.size(), text_bytes(reply));
  for (RespValue& job : reply.items[1].items) {
    if (request_.wanted && !request_.wanted(job)) continue;
    keep({job.at("enqueued").integer, job.at("id").text});
  }
  cursor_ = std::move(reply.items[0].text);
  walked_ = cursor_ == "0";
  return true;
}

void NewestFirst::keep(EndedJob found) {
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

void NewestFirst::take_oldest() {
  for (int taken = 0; taken < kTakenAtOnce && !newest_.empty(); ++taken) {
    std::pop_heap(newest_.begin(), newest_.end(), is_newer);
    EndedJob found = std::move(newest_.back());
    newest_.pop_back();
    // A job whose state has changed in the meantime may have been found twice.
    if (kept_ != 0 && found.id == last_id_) {
      --total_;
      continue;
    }
    ++kept_;
    last_id_ = found.id;
    if (page_.size() < request_.limit) page_.push_back(std::move(found));
  }
  if (!newest_.empty()) return;
  const size_t shown = kept_ > request_.skip ? kept_ - request_.skip : 0;
  if (shown < page_.size()) page_.erase(page_.begin() + static_cast<ptrdiff_t>(shown), page_.end());
}

bool NewestFirst::show() {
  Words words = {"Q.GET", request_.queue, page_.back().id};
  page_.pop_back();
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
