#include "tools/cli/top_model.h"

#include <algorithm>
#include <set>

#include "engine/base/numbers.h"
#include "net/process/wall_clock.h"
#include "tools/cli/connection.h"
#include "tools/cli/replies.h"

namespace sluice::cli {

namespace {

// Rates over ten seconds: those over a minute would hide what happens now.
constexpr const char* kWindowMs = "10000";
// Queues out of view that are asked for at once.
constexpr size_t kMostInTurn = 50;
constexpr size_t kUsualSort = 1;  // PENDING
// The end of a log that is kept to be shown.
constexpr size_t kShownLog = 65536;
// Q.LIST BY DISPATCH takes no more.
constexpr size_t kMostNext = 100;
// What is read of a list of jobs whose filter leaves some out.
constexpr size_t kMostFiltered = 1000;

constexpr TopList kFirstOfQueue = TopList::kWorkers;

Words list_words(const std::string& queue, const Words& what, size_t count) {
  Words words = {"Q.LIST", queue};
  words.insert(words.end(), what.begin(), what.end());
  words.insert(words.end(), {"COUNT", std::to_string(count)});
  return words;
}

bool contains_ignoring_case(const std::string& text, const std::string& part) {
  // A search for nothing in nothing ends like one that fails.
  if (part.empty()) return true;
  return std::search(text.begin(), text.end(), part.begin(), part.end(), [](char a, char b) {
           return equals_ignore_case(Bytes(&a, 1), Bytes(&b, 1));
         }) != text.end();
}

// Whether some text of a job's line contains it: its id, group, worker, error.
bool has_text(const RespValue& line, const std::string& part) {
  return std::any_of(line.items.begin(), line.items.end(), [&](const RespValue& value) {
    return value.kind == RespValue::Kind::kText && contains_ignoring_case(value.text, part);
  });
}

RespValue sorted_workers(RespValue lines, const std::string& filter) {
  std::vector<std::pair<RespValue, RespValue>> workers;
  for (size_t i = 0; i + 1 < lines.items.size(); i += 2) {
    if (!contains_ignoring_case(lines.items[i].text, filter)) continue;
    workers.emplace_back(std::move(lines.items[i]), std::move(lines.items[i + 1]));
  }
  std::sort(workers.begin(), workers.end(), [](const auto& a, const auto& b) {
    const int64_t active_a = integer_of(a.second, "active");
    const int64_t active_b = integer_of(b.second, "active");
    return active_a != active_b ? active_a > active_b : a.first.text < b.first.text;
  });
  lines.items.clear();
  for (auto& [name, line] : workers) {
    lines.items.push_back(std::move(name));
    lines.items.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

TopModel::TopModel(std::vector<std::string> named)
    : is_searching_(named.empty()), views_{TopView::kQueues} {
  state_.sort = kUsualSort;
  if (named.size() == 1) {
    views_.push_back(TopView::kQueue);
    state_.focus = kFirstOfQueue;
    places_[0].name = named[0];
  }
  set_names(std::move(named));
}

// --- Reading ---

void TopModel::set_names(std::vector<std::string> names) {
  std::map<std::string, RespValue> stats;
  for (std::string& name : names) {
    const auto known = stats_.find(name);
    stats.emplace(std::move(name), known == stats_.end() ? RespValue() : std::move(known->second));
  }
  stats_ = std::move(stats);
  arrange();
}

const RespValue* TopModel::stats_of(const std::string& queue) const {
  const auto found = stats_.find(queue);
  return found == stats_.end() || found->second.is_null() ? nullptr : &found->second;
}

std::string TopModel::queue() const { return places_[0].name.value_or(""); }

std::vector<TopQuestion> TopModel::questions(size_t rows) {
  std::vector<TopQuestion> questions;
  questions.push_back({{"TIME"}, [this](const RespValue& reply) {
                         if (reply.items.size() != 2) {
                           state_.now_ms = wall_ms();
                           return;
                         }
                         const int64_t seconds = parse_i64(reply.items[0].text).value_or(0);
                         const int64_t micros = parse_i64(reply.items[1].text).value_or(0);
                         state_.now_ms = seconds * 1000 + micros / 1000;
                       }});
  ask_queues(rows, questions);
  if (has_queue() && view() == TopView::kJob) ask_job(queue(), questions);
  if (has_queue() && view() != TopView::kJob) ask_details(queue(), rows, questions);
  return questions;
}

void TopModel::ask_queues(size_t rows, std::vector<TopQuestion>& questions) {
  std::set<std::string> asked;
  const auto ask = [&](const std::string& name, bool with_pause) {
    if (!asked.insert(name).second) return false;
    questions.push_back({{"Q.STATS", name, "WINDOW", kWindowMs}, [this, name](RespValue reply) {
                           if (!reply.is_error()) {
                             stats_[name] = as_map(std::move(reply));
                             return;
                           }
                           // Only a queue that was asked for by name is reported.
                           if (!is_searching_) say(explain_error(reply.text), true);
                           stats_.erase(name);
                         }});
    if (!with_pause) return true;
    questions.push_back({{"Q.CONFIG", name, "GET", "paused"}, [this, name](RespValue reply) {
                           const auto found = stats_.find(name);
                           if (found == stats_.end() || reply.is_error()) return;
                           put_paused(as_map(std::move(reply)), found->second);
                         }});
    return true;
  };
  if (view() != TopView::kQueues) {
    ask(queue(), true);
    return;
  }
  // Lines far from the selection are out of view.
  const size_t at = places_[0].index;
  const size_t last = std::min(state_.queues.size(), at + rows);
  for (size_t i = at > rows ? at - rows : 0; i < last; ++i) ask(state_.queues[i], true);
  // Out of view a pause only decides the order.
  const bool orders = queue_columns()[state_.sort].column.title == "PAUSED";
  auto next = stats_.upper_bound(turn_);
  for (size_t i = 0, in_turn = 0; i < stats_.size() && in_turn < kMostInTurn; ++i, ++next) {
    if (next == stats_.end()) next = stats_.begin();
    turn_ = next->first;
    in_turn += ask(turn_, orders) ? 1 : 0;
  }
  // Before the first reading there is nothing to sort by.
  for (const auto& [name, stats] : stats_) {
    if (stats.is_null()) ask(name, orders);
  }
}

void TopModel::ask_details(const std::string& queue, size_t rows,
                           std::vector<TopQuestion>& questions) {
  if (queue != details_of_) forget_details();
  if (!state_.job_filter.empty()) rows = kMostFiltered;
  const auto take = [this](TopList list) {
    return [this, list](RespValue reply) { take_list(list, std::move(reply)); };
  };
  questions.push_back({{"Q.STATS", queue, "BY", "WORKER", "CURSOR", "0", "COUNT", "1000"},
                       take(TopList::kWorkers)});
  questions.push_back(
      {list_words(queue, {"WHERE", "STATE", "active", "BY", "AGE"}, rows), take(TopList::kActive)});
  questions.push_back(
      {list_words(queue, {"BY", "DISPATCH"}, std::min(rows, kMostNext)), take(TopList::kNext)});
  questions.push_back({list_words(queue, {"WHERE", "STATE", "failed", "BY", "AGE", "DESC"}, rows),
                       [this, queue](RespValue reply) {
                         take_list(TopList::kFailed, std::move(reply));
                         details_of_ = queue;
                       }});
}

void TopModel::ask_job(const std::string& queue, std::vector<TopQuestion>& questions) {
  questions.push_back({{"Q.GET", queue, state_.job_id, "WITH", "payload", "WITH", "result"},
                       [this](RespValue reply) {
                         state_.job = reply.is_error() ? RespValue() : as_map(std::move(reply));
                       }});
  questions.push_back(
      {{"Q.LOG", queue, state_.job_id, "FROM", std::to_string(log_next_), "COUNT", kLogBytes},
       [this](const RespValue& reply) {
         if (reply.items.size() != 4) return;
         const int64_t next = reply.items[2].integer;
         if (next < log_next_) state_.log.clear();  // a log that began anew
         state_.log += reply.items[1].text;
         log_next_ = next;
         if (state_.log.size() > kShownLog) state_.log.erase(0, state_.log.size() - kShownLog);
       }});
}

void TopModel::take_list(TopList list, RespValue value) {
  RespValue& lines = lines_[static_cast<size_t>(list)];
  // A queue of adopted keys has no workers, and a user may lack rights: then the list is empty.
  if (value.is_error() || value.items.size() != 2) {
    lines = {};
  } else if (list == TopList::kWorkers) {
    lines = sorted_workers(as_map_of_maps(std::move(value.items[1])), state_.job_filter);
  } else {
    lines = as_maps(std::move(value.items[1]));
    std::erase_if(lines.items, [&](const auto& job) { return !has_text(job, state_.job_filter); });
  }
}

void TopModel::forget_details() {
  lines_ = {};
  details_of_.reset();
  for (size_t i = 1; i < places_.size(); ++i) places_[i] = {};
}

void TopModel::sort() {
  state_.queues.clear();
  for (const auto& [name, stats] : stats_) {
    if (contains_ignoring_case(name, state_.filter)) state_.queues.push_back(name);
  }
  const auto number = queue_columns()[state_.sort].number;
  if (number == nullptr) {
    if (state_.is_descending) std::reverse(state_.queues.begin(), state_.queues.end());
    return;
  }
  std::map<std::string, double> numbers;
  for (const std::string& name : state_.queues) {
    const RespValue& stats = stats_.at(name);
    numbers[name] = stats.is_null() ? -1 : number(stats);
  }
  // Equal ones stay in the order of their names.
  std::stable_sort(
      state_.queues.begin(), state_.queues.end(), [&](const std::string& a, const std::string& b) {
        return state_.is_descending ? numbers[a] > numbers[b] : numbers[a] < numbers[b];
      });
}

size_t TopModel::count(TopList list) const {
  if (list == TopList::kQueues) return state_.queues.size();
  const size_t items = lines(list).items.size();
  return list == TopList::kWorkers ? items / 2 : items;
}

std::optional<std::string> TopModel::name_at(TopList list, size_t index) const {
  if (index >= count(list)) return std::nullopt;
  if (list == TopList::kQueues) return state_.queues[index];
  if (list == TopList::kWorkers) return lines(list).items[index * 2].text;
  return text_of(lines(list).items[index], "id");
}

void TopModel::arrange() {
  sort();
  // Before the first reading the order says nothing.
  if (!was_read_ && view() == TopView::kQueues) places_[0] = {};
  was_read_ = was_read_ || std::any_of(stats_.begin(), stats_.end(),
                                       [](const auto& queue) { return !queue.second.is_null(); });
  if (!was_read_) return;
  for (size_t i = 0; i < kTopLists; ++i) {
    const auto list = static_cast<TopList>(i);
    // A queue that is shown in full stays, whatever happens to it.
    if (list == TopList::kQueues && view() != TopView::kQueues) continue;
    Place& at = places_[i];
    const size_t size = count(list);
    bool is_there = false;
    for (size_t index = 0; index < size && !is_there && at.name; ++index) {
      is_there = name_at(list, index) == at.name;
      if (is_there) at.index = index;
    }
    if (is_there) continue;
    at.index = size == 0 ? 0 : std::min(at.index, size - 1);
    at.name = name_at(list, at.index);
  }
}

}  // namespace sluice::cli
