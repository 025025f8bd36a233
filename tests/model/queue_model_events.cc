// QueueModel's events, progress and logs; ModelServer: those who read them as they grow.
#include <algorithm>
#include <utility>

#include "tests/model/queue_model.h"

namespace sluice::test {

namespace {

// A job has at most one event of progress in this time.
constexpr int64_t kProgressMs = 1000;
// More than any reading goes back.
constexpr size_t kKeptEvents = 1000;

uint64_t seq_of(const RespValue& event) {
  return std::strtoull(event.items.at(0).text.c_str(), nullptr, 10);
}

// Whether a Q.LOG ... BLOCK has nothing to read yet.
bool is_at_end(QueueModel& queue, const Words& words) {
  const std::optional<int64_t> end = queue.open_log(words.at(2));
  return end.has_value() && std::to_string(*end) == words.at(4);
}

}  // namespace

// --- Progress ---

void QueueModel::tell_progress(const ModelJob& job) {
  tell("progress", job);
  pace_[job.id] = {queue_ms_ + kProgressMs, false};
}

void QueueModel::report_progress(ModelJob& job, const std::string& progress) {
  job.progress = progress;
  const auto paced = pace_.find(job.id);
  if (paced != pace_.end()) {
    paced->second.owed = true;
  } else if (clock_.is_followed(name_, job.id)) {
    tell_progress(job);
  }
}

void QueueModel::continue_progress() {
  const std::map<std::string, Pace> paces = pace_;
  for (const auto& [id, pace] : paces) {
    if (pace.due_ms > queue_ms_) continue;
    pace_.erase(id);
    const ModelJob* job = pace.owed ? find(id) : nullptr;
    if (job != nullptr && job->active() && clock_.is_followed(name_, id)) tell_progress(*job);
  }
}

// --- Events ---

void QueueModel::tell(const std::string& type, const ModelJob& job) {
  told_.push_back({.time_ms = queue_ms_, .type = type, .id = job.id, .progress = job.progress});
}

void QueueModel::compare_events() {
  for (;;) {
    const RespValue page = clock_.observed_events(name_, last_event());
    if (page.items.empty()) break;
    for (const RespValue& seen : page.items) compare_event(seen);
  }
  if (!told_.empty()) broken_ = "the event " + told_[0].type + " of " + told_[0].id + " is missing";
  told_.clear();
}

void QueueModel::compare_event(const RespValue& seen) {
  ModelEvent event;
  event.seq = seq_of(seen);
  event.type = seen.items.at(2).text;
  event.id = seen.items.at(3).text;
  event.fields = seen.items.at(4);
  // Jobs of a LIFO group exchange their gates, so it does not matter whose has opened.
  const bool of_any = event.type == "ready" && value("order") != "fifo";
  const auto told = std::find_if(told_.begin(), told_.end(), [&](const ModelEvent& one) {
    return of_any ? one.type == event.type : one.id == event.id;
  });
  const bool fits = told != told_.end() && told->type == event.type &&
                    std::to_string(clock_.now.shown_ms(told->time_ms)) == seen.items[1].text &&
                    (events_.empty() || event.seq == last_event() + 1) &&
                    (event.type != "progress" || event.fields.field("progress") == told->progress);
  if (!fits) {
    broken_ = "the event " + seen.show() + ", expected was " +
              (told == told_.end() ? "none" : told->type + " " + told->progress);
  }
  event.time_ms = queue_ms_;
  if (told != told_.end()) {
    event.time_ms = told->time_ms;
    told_.erase(told);
  }
  events_.push_back(std::move(event));
  if (events_.size() > kKeptEvents) events_.pop_front();
}

uint64_t QueueModel::first_wanted(const ModelReading& reading, uint64_t after) const {
  for (const ModelEvent& event : events_) {
    if (event.seq > after && reading.wants(event)) return event.seq;
  }
  return 0;
}

RespValue QueueModel::shown(const ModelEvent& event) const {
  return RespValue::array({RespValue::of(static_cast<int64_t>(event.seq)),
                           RespValue::of(clock_.now.shown_ms(event.time_ms)),
                           RespValue::of(event.type), RespValue::of(event.id), event.fields});
}

RespValue QueueModel::read_events(const ModelReading& reading, uint64_t after,
                                  uint64_t last) const {
  RespValue out = RespValue::array();
  const ModelEvent* passed = nullptr;  // since the last one in the reply
  for (const ModelEvent& event : events_) {
    if (event.seq <= after || event.seq > last) continue;
    if (out.size() == reading.count) break;
    const bool wanted = reading.wants(event);
    if (wanted) out.items.push_back(shown(event));
    passed = wanted ? nullptr : &event;
  }
  // How far it has read.
  if (passed != nullptr && !reading.ids.empty()) {
    const ModelEvent mark{passed->seq, passed->time_ms, "none", "", "", RespValue::map()};
    out.items.push_back(shown(mark));
  }
  return out;
}

ModelReading parse_model_reading(const Words& words) {
  ModelReading reading;
  reading.after = words.at(2);
  for (size_t i = 3; i + 1 < words.size(); i += 2) {
    const std::string& argument = words[i + 1];
    if (words[i] == "COUNT") reading.count = std::strtoull(argument.c_str(), nullptr, 10);
    if (words[i] == "BLOCK") reading.blocks = true;
    if (words[i] == "TYPE") reading.types.insert(argument);
    if (words[i] == "ID") reading.ids.insert(argument);
  }
  return reading;
}

// --- Logs ---

RespValue QueueModel::log(const Words& words) {
  const ModelJob* job = find(words.at(2));
  if (job == nullptr) return {};
  const int64_t end = job->log_gone + static_cast<int64_t>(job->log.size());
  const int64_t from = std::atoll(words.at(4).c_str());
  const int64_t at = std::max(std::min(from, end), job->log_gone);
  const std::string bytes = job->log.substr(static_cast<size_t>(at - job->log_gone),
                                            static_cast<size_t>(std::atoll(words.at(6).c_str())));
  const int64_t next = at + static_cast<int64_t>(bytes.size());
  return RespValue::array({RespValue::of(at), RespValue::of(bytes), RespValue::of(next),
                           RespValue::of(job->terminal() && next == end ? "t" : "f")});
}

std::optional<int64_t> QueueModel::open_log(const std::string& id) {
  const ModelJob* job = find(id);
  if (job == nullptr || job->terminal()) return std::nullopt;
  return job->log_gone + static_cast<int64_t>(job->log.size());
}

// --- Readers ---

RespValue ModelServer::read_log(const Words& words, int connection, bool& blocked) {
  QueueModel& queue = this->queue(words[1]);
  const bool blocks = std::find(words.begin() + 3, words.end(), "BLOCK") != words.end();
  if (!blocks || !is_at_end(queue, words)) return queue.log(words);
  log_readers_.push_back({connection, words});
  blocked = true;
  return {};
}

RespValue ModelServer::read_events(const Words& words, int connection, bool& blocked) {
  const QueueModel& queue = this->queue(words[1]);
  const ModelReading reading = parse_model_reading(words);
  const uint64_t last = queue.last_event();
  const uint64_t after =
      reading.after == "$" ? last : std::strtoull(reading.after.c_str(), nullptr, 10);
  if (!reading.blocks || queue.first_wanted(reading, after) != 0) {
    return queue.read_events(reading, after, last);
  }
  followers_.push_back({connection, words[1], reading, last});
  blocked = true;
  return {};
}

void ModelServer::end_log(const std::string& queue, const std::string& id, Expected& expected) {
  for (auto reader = log_readers_.begin(); reader != log_readers_.end();) {
    const Words& words = reader->words;
    if (words[1] != queue || words[2] != id) {
      ++reader;
      continue;
    }
    const RespValue end = RespValue::of(words[4]);
    expected.served[reader->connection] =
        RespValue::array({end, RespValue::of(""), end, RespValue::of("t")});
    reader = log_readers_.erase(reader);
  }
}

void ModelServer::serve_readers(const std::map<int, RespValue>& deliveries, Expected& expected) {
  for (auto& [name, queue] : queues_) queue.compare_events();
  for (auto reader = log_readers_.begin(); reader != log_readers_.end();) {
    QueueModel& queue = this->queue(reader->words[1]);
    if (is_at_end(queue, reader->words)) {
      ++reader;
      continue;
    }
    expected.served[reader->connection] = queue.log(reader->words);
    reader = log_readers_.erase(reader);
  }
  for (auto follower = followers_.begin(); follower != followers_.end();) {
    const QueueModel& queue = this->queue(follower->queue);
    const uint64_t first = queue.first_wanted(follower->reading, follower->after);
    uint64_t last = queue.last_event();
    if (first == 0) {
      follower->after = last;
      ++follower;
      continue;
    }
    // It is answered amid the unit, in which other events may follow.
    const auto found = deliveries.find(follower->connection);
    if (found != deliveries.end() && !found->second.items.empty()) {
      last = std::clamp(seq_of(found->second.items.back()), first, last);
    }
    expected.served[follower->connection] =
        queue.read_events(follower->reading, follower->after, last);
    follower = followers_.erase(follower);
  }
}

}  // namespace sluice::test
