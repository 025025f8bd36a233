#include "net/admin/queue_list.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/execution/queue_names.h"
#include "net/http/http_service.h"
#include "net/io/turns.h"

namespace sluice {

namespace {

using nlohmann::json;

// Cursors are text and a name may be any bytes, even empty: so a cursor is "q" and the
// percent-encoded name.
constexpr char kCursorMark = 'q';

class QueueList {
 public:
  QueueList(Exchange& exchange, QueueListRequest request)
      : exchange_(exchange.shared_from_this()), request_(std::move(request)) {
    list_.put(request_.members);
  }

  // Reads one piece. Returns false after the last one.
  bool go_on();

 private:
  std::vector<std::string> names(size_t limit) const {
    return queue_names(*exchange_->service().state().engine, exchange_->database(),
                       request_.after ? &*request_.after : nullptr, limit);
  }

  const std::shared_ptr<Exchange> exchange_;
  QueueListRequest request_;        // `after`: the last name that was read
  std::vector<std::string> names_;  // the next names, from the back
  JsonList list_{"queues"};
};

bool QueueList::go_on() {
  constexpr size_t kNamesAtOnce = 64;
  if (exchange_->cut_off() || respond_busy(*exchange_)) return false;
  if (list_.size() == request_.limit) {
    const bool more = !names_.empty() || !names(1).empty();
    list_.respond(*exchange_,
                  more ? json(kCursorMark + percent_encode(*request_.after)) : json(nullptr));
    return false;
  }
  if (names_.empty()) {
    names_ = names(kNamesAtOnce);
    std::reverse(names_.begin(), names_.end());
  }
  if (names_.empty()) {
    list_.respond(*exchange_, nullptr);
    return false;
  }
  if (const auto line = request_.line(names_.back())) list_.add(*line);
  request_.after = std::move(names_.back());
  names_.pop_back();
  return true;
}

}  // namespace

std::optional<std::string> read_queue_cursor(QueryReader& query) {
  const auto cursor = query.text("cursor");
  if (!cursor) return std::nullopt;
  std::optional<std::string> name;
  if (cursor->starts_with(kCursorMark)) name = percent_decode(Bytes(*cursor).substr(1));
  if (!name) query.fail("cursor", "is invalid");
  return name;
}

void list_queues(Exchange& exchange, QueueListRequest request) {
  const auto list = std::make_shared<QueueList>(exchange, std::move(request));
  work_in_turns(exchange.engine().thread(), [list] { return list->go_on(); });
}

}  // namespace sluice
