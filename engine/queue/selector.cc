#include "engine/queue/selector.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "engine/queue/job_texts.h"

namespace sluice {

namespace {

using Index = OrderedIndex<Job*>;

// The indexes that a walk uses, and the letters of their cursors, upper case if it starts with the
// newest. All but kScan are walked by (major, minor).
enum class Part : char {
  kScan = 's',       // the map of ids
  kWorker = 'w',     // the leases of one worker
  kDelays = 'd',     // by gate
  kBands = 'p',      // pending, by band, then rank
  kReleases = 'r',   // pending, by rank alone
  kRuns = 'a',       // by start
  kLeases = 'l',     // by the end of lease or MAXRUN
  kTtls = 't',       // by expiry
  kSucceeded = 'c',  // completed and cancelled, by end
  kFailed = 'f',     // failed and expired, by end
  kEnded = 'e',      // both of them
};

// At most so many leases of one worker are sorted for a page.
constexpr size_t kMostSorted = 1000;

// Everything up to and including this place has been examined.
struct Place {
  int band = -1;  // kBands only
  uint64_t major = 0;
  uint64_t minor = 0;
  bool begun = false;
};

// Its end, its start, or when it was added.
int64_t time_of(const Job& job) {
  if (const JobEnd* end = job.end()) return end->finished_ms;
  if (const JobRun* run = job.run()) return run->started_ms;
  return job.enqueued_ms();
}

// The first entry after a place.
Index::Iterator behind(const Index& index, const Place& place) {
  if (!place.begun) return index.begin();
  if (place.minor == UINT64_MAX) return index.lower_bound(place.major + 1);
  return index.lower_bound(place.major, place.minor + 1);
}

// The same for walks from the end.
Index::Iterator ahead_of(const Index& index, const Place& place) {
  if (!place.begun) return index.last();
  auto at = index.lower_bound(place.major, place.minor);
  if (!at.valid()) return index.last();
  at.prev();
  return at;
}

class Walk {
 public:
  Walk(const Queue& queue, const Selector& selector, size_t limit, int64_t now_ms, JobPage& page,
       const JobWeight& weigh)
      : queue_(queue),
        selector_(selector),
        limit_(limit),
        now_ms_(now_ms),
        page_(page),
        weigh_(weigh) {}

  // Returns false if the cursor does not belong to this walk.
  bool run(JobOrder order, Bytes cursor);

 private:
  std::vector<Part> plan(JobOrder order) const;
  std::vector<Part> plan_indexes() const;
  Part ended_part() const;
  char letter(Part part) const {
    const char small = static_cast<char>(part);
    return newest_first_ ? static_cast<char>(small - 'a' + 'A') : small;
  }
  Index::Iterator begin(const Index& index, const Place& from) const {
    return newest_first_ ? ahead_of(index, from) : behind(index, from);
  }
  void advance(Index::Iterator& at) const { newest_first_ ? at.prev() : at.next(); }
  bool wants(JobStates states) const { return (states_ & states) != 0; }
  bool wants(JobState state) const { return wants(state_bit(state)); }
  bool may_match(Part part) const;

  // Examines a job. Returns false if the step ends after it.
  bool offer(Job* job);
  bool has_room() const {
    return page_.jobs.size() < limit_ && bytes_ < kMaxPageBytes && effort_ < selector_.look;
  }
  void stop(Part part, const Place& place);
  // Each walks the rest of a part from a place on. Returns false if the step has ended; the cursor
  // is set then.
  bool walk(Part part, const Place& from);
  bool walk_map(uint64_t from);
  bool walk_index(Part part, const Index& index, const Place& from);
  bool walk_bands(const Place& from);
  // Merges several indexes, each in order.
  bool merge(Part part, int band, const std::vector<const Index*>& indexes, const Place& from);
  bool walk_worker(const Place& from);
  std::vector<const Index*> pending_indexes(int band) const;
  // Whether neither this job nor a later one in a part ordered by time fits the times.
  bool is_beyond(Part part, const Job& job) const;

  const Queue& queue_;
  const Selector& selector_;
  const size_t limit_;
  const int64_t now_ms_;
  JobPage& page_;
  const JobWeight& weigh_;
  size_t bytes_ = 0;
  JobStates states_ = 0;
  JobOrder order_ = JobOrder::kNone;
  bool newest_first_ = false;
  const Group* group_ = nullptr;  // if the selector names one
  size_t effort_ = 0;             // in jobs that are examined without reading their texts
};

// --- Cursors ---

bool parse_number(Bytes& text, uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (text.empty()) return true;
  if (text[0] != '-' || text.size() == 1) return false;
  text.remove_prefix(1);
  return true;
}

// "s1f", "p2-1f-3", "a1f-3".
bool parse_place(Bytes text, Part part, Place& place) {
  place.begun = true;
  if (part == Part::kScan) return parse_number(text, place.major) && text.empty();
  if (part == Part::kBands) {
    uint64_t band = 0;
    if (!parse_number(text, band) || band >= kBands) return false;
    place.band = static_cast<int>(band);
  }
  return parse_number(text, place.major) && !text.empty() && parse_number(text, place.minor) &&
         text.empty();
}

void append_number(std::string& text, uint64_t value) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value, 16).ptr;
  text.append(digits, end);
}

void Walk::stop(Part part, const Place& place) {
  std::string& text = page_.cursor;
  text.assign(1, letter(part));
  if (part == Part::kBands) {
    append_number(text, static_cast<uint64_t>(place.band));
    text += '-';
  }
  append_number(text, place.major);
  if (part == Part::kScan) return;
  text += '-';
  append_number(text, place.minor);
}

// --- Plans ---

// A new walk skips parts that cannot contain selected jobs. A cursor into such a part remains
// valid.
bool Walk::may_match(Part part) const {
  const Band* band = selector_.band ? queue_.lanes.band(*selector_.band) : nullptr;
  switch (part) {
    case Part::kDelays:
      return (group_ == nullptr || group_->waiting > group_->pending) &&
             (band == nullptr || band->waiting > band->pending.size());
    case Part::kRuns:
    case Part::kLeases:
      return (group_ == nullptr || group_->active != 0) && (band == nullptr || band->active != 0);
    default:
      return true;
  }
}

std::vector<Part> Walk::plan_indexes() const {
  std::vector<Part> parts;
  if (wants(JobState::kDelayed)) parts.push_back(Part::kDelays);
  if (wants(JobState::kPending)) parts.push_back(Part::kBands);
  if (wants(JobState::kActive)) parts.push_back(Part::kRuns);
  if (wants(JobState::kCompleted) || wants(JobState::kCancelled)) parts.push_back(Part::kSucceeded);
  if (wants(JobState::kFailed) || wants(JobState::kExpired)) parts.push_back(Part::kFailed);
  return parts;
}

// By end: only failed jobs if the others are not wanted, as there may be many of those.
Part Walk::ended_part() const {
  if (!wants(JobState::kCompleted) && !wants(JobState::kCancelled)) return Part::kFailed;
  if (!wants(JobState::kFailed) && !wants(JobState::kExpired)) return Part::kSucceeded;
  return Part::kEnded;
}

// The parts of a walk in this order, independent of the queue's present contents.
std::vector<Part> Walk::plan(JobOrder order) const {
  if (selector_.worker) {
    if (!wants(JobState::kActive) || order == JobOrder::kRank) return {};
    return {Part::kWorker};
  }
  std::vector<Part> parts;
  switch (order) {
    case JobOrder::kNone:
      return plan_indexes();
    case JobOrder::kDispatch:  // not a walk
    case JobOrder::kRank:
      if (wants(JobState::kPending)) parts.push_back(Part::kBands);
      return parts;
    case JobOrder::kAge:
    case JobOrder::kAgeDesc:
      if (wants(JobState::kActive)) parts.push_back(Part::kRuns);
      if (wants(JobState::kPending)) parts.push_back(Part::kReleases);
      if (wants(JobState::kDelayed)) parts.push_back(Part::kDelays);
      if (wants(kTerminalStates)) parts.push_back(ended_part());
      return parts;
    case JobOrder::kDeadline:
      if (wants(JobState::kActive)) parts.push_back(Part::kLeases);
      if (wants(JobState::kDelayed)) parts.push_back(Part::kDelays);
      if (wants(JobState::kPending)) parts.push_back(Part::kTtls);
      return parts;
  }
  return parts;
}

bool Walk::run(JobOrder order, Bytes cursor) {
  order_ = order;
  newest_first_ = order == JobOrder::kAgeDesc;
  states_ = selector_.states == 0 ? static_cast<JobStates>(0xff) : selector_.states;
  const bool fresh = cursor == "0";
  bool group_missing = false;
  if (selector_.group_name) {
    group_ = queue_.lanes.find_group(*selector_.group_name);
    group_missing = group_ == nullptr;
  }
  std::vector<Part> parts = plan(order);
  if (order == JobOrder::kNone && !selector_.worker) {
    // Blocked jobs are in no index, and the map of ids contains all jobs.
    const bool blocked = wants(JobState::kBlocked) && queue_.count(JobState::kBlocked) != 0 &&
                         (group_ == nullptr || group_->waiting > group_->pending);
    const bool everything = states_ == 0xff && group_ == nullptr && !selector_.band;
    if (fresh ? blocked || everything : cursor[0] == static_cast<char>(Part::kScan)) {
      parts = {Part::kScan};
    }
  }
  size_t at = 0;
  Place place;
  if (fresh) {
    std::erase_if(parts, [&](Part part) { return !may_match(part); });
  } else {
    while (at < parts.size() && letter(parts[at]) != cursor[0]) ++at;
    if (at == parts.size() || !parse_place(cursor.substr(1), parts[at], place)) return false;
  }
  if (group_missing) return true;  // the group exists as long as one of its jobs
  for (; at < parts.size(); ++at) {
    if (!walk(parts[at], place)) return true;
    place = Place{};
  }
  return true;
}

// --- Parts ---

Bytes searched_payload(const Job& job) { return job.payload().substr(0, kSearchedPayloadBytes); }

// Errors are 4 KB at most, ids 512 bytes.
size_t reading_effort(const Selector& selector, const Job& job) {
  const size_t payload_size = selector.payload ? searched_payload(job).size() : 0;
  return 4 + (error_of(job).size() + job.id().size() + payload_size) / 64;
}

bool Walk::offer(Job* job) {
  ++page_.looked_at;
  effort_ += 1 + (selector_.reads_texts() ? reading_effort(selector_, *job) : 0);
  if (selector_.matches(queue_, *job, now_ms_)) {
    page_.jobs.push_back(job);
    if (weigh_ != nullptr) bytes_ += weigh_(*job);
  }
  return has_room();
}

bool Walk::is_beyond(Part part, const Job& job) const {
  const bool by_time = part == Part::kRuns || part == Part::kSucceeded || part == Part::kFailed ||
                       part == Part::kEnded;
  if (!selector_.has_times() || !by_time) return false;
  const int64_t time_ms = time_of(job);
  if (newest_first_) return selector_.since_ms && time_ms < *selector_.since_ms;
  return (selector_.older_ms && now_ms_ - time_ms < *selector_.older_ms) ||
         (selector_.until_ms && time_ms >= *selector_.until_ms);
}

bool Walk::walk(Part part, const Place& from) {
  switch (part) {
    case Part::kScan:
      return walk_map(from.major);
    case Part::kWorker:
      return walk_worker(from);
    case Part::kDelays:
      return walk_index(part, queue_.delays, from);
    case Part::kBands:
      return walk_bands(from);
    case Part::kReleases:
      return merge(part, -1, pending_indexes(-1), from);
    case Part::kRuns:
      return walk_index(part, queue_.runs, from);
    case Part::kLeases:
      return walk_index(part, queue_.leases, from);
    case Part::kTtls:
      return walk_index(part, queue_.ttls, from);
    case Part::kSucceeded:
      return walk_index(part, queue_.ended[0], from);
    case Part::kFailed:
      return walk_index(part, queue_.ended[1], from);
    case Part::kEnded:
      return merge(part, -1, {&queue_.ended[0], &queue_.ended[1]}, from);
  }
  return true;
}

bool Walk::walk_map(uint64_t from) {
  for (;;) {
    // At most as many as may still be returned: the cursor then is after every visited job.
    const size_t room = std::min(limit_ - page_.jobs.size(), selector_.look - effort_);
    const size_t wanted = weigh_ == nullptr && !selector_.reads_texts() ? room : 1;
    from = queue_.jobs.scan(from, wanted, [&](Job* job) { offer(job); });
    if (from == 0) return true;
    if (has_room()) continue;
    stop(Part::kScan, {.major = from});
    return false;
  }
}

bool Walk::walk_index(Part part, const Index& index, const Place& from) {
  for (auto at = begin(index, from); at.valid(); advance(at)) {
    Job* job = at.value();
    if (is_beyond(part, *job)) return true;
    if (part == Part::kDelays) job = Queue::ticket_owner(job);
    if (offer(job)) continue;
    stop(part, {.major = at.major(), .minor = at.minor()});
    return false;
  }
  return true;
}

// For one band, or for all (-1), limited to the selector's band and group.
std::vector<const Index*> Walk::pending_indexes(int band) const {
  const auto fits = [&](uint8_t number) {
    return (band == -1 || number == band) && (!selector_.band || number == *selector_.band);
  };
  std::vector<const Index*> indexes;
  if (group_ != nullptr) {
    for (const Lane* lane : group_->lanes) {
      if (fits(lane->band) && lane->has_pending()) indexes.push_back(&lane->tickets);
    }
    return indexes;
  }
  for (const uint8_t number : queue_.lanes.used_bands()) {
    if (fits(number)) indexes.push_back(&queue_.lanes.band(number)->pending);
  }
  return indexes;
}

bool Walk::walk_bands(const Place& from) {
  for (const uint8_t number : queue_.lanes.used_bands()) {
    if (number < from.band) continue;
    const Place place = number == from.band ? from : Place{};
    if (!merge(Part::kBands, number, pending_indexes(number), place)) return false;
  }
  return true;
}

bool Walk::merge(Part part, int band, const std::vector<const Index*>& indexes, const Place& from) {
  const auto later = [&](const Index::Iterator& a, const Index::Iterator& b) {
    const auto key_a = std::tuple(a.major(), a.minor());
    const auto key_b = std::tuple(b.major(), b.minor());
    return newest_first_ ? key_a < key_b : key_a > key_b;
  };
  std::vector<Index::Iterator> heads;  // a heap, the next one in order first
  for (const Index* index : indexes) {
    const auto head = begin(*index, from);
    if (head.valid()) heads.push_back(head);
  }
  std::make_heap(heads.begin(), heads.end(), later);
  while (!heads.empty()) {
    std::pop_heap(heads.begin(), heads.end(), later);
    Index::Iterator& at = heads.back();
    Job* job = at.value();
    if (is_beyond(part, *job)) return true;
    if (!offer(part == Part::kEnded ? job : Queue::ticket_owner(job))) {
      stop(part, {.band = band, .major = at.major(), .minor = at.minor()});
      return false;
    }
    advance(at);
    if (at.valid()) {
      std::push_heap(heads.begin(), heads.end(), later);
    } else {
      heads.pop_back();
    }
  }
  return true;
}

bool Walk::walk_worker(const Place& from) {
  const Worker* worker = queue_.workers.find(*selector_.worker);
  if (worker == nullptr) return true;
  if (order_ != JobOrder::kDeadline) return walk_index(Part::kWorker, worker->active, from);
  // No index has one worker's leases by their ends: if they are many, those of others are passed.
  if (worker->active.size() > kMostSorted) return walk_index(Part::kWorker, queue_.leases, from);
  Index by_end;
  for (auto at = worker->active.begin(); at.valid(); at.next()) {
    const JobRun& run = *at.value()->run();
    by_end.insert(static_cast<uint64_t>(run.due_steady()), run.token, at.value());
  }
  return walk_index(Part::kWorker, by_end, from);
}

}  // namespace

bool Selector::matches(const Queue& queue, const Job& job, int64_t now_ms) const {
  if (states != 0 && (states & state_bit(queue.shown_state(&job))) == 0) return false;
  if (band && job.band != *band) return false;
  if (group_name && job.lane->group->name != *group_name) return false;
  if (group && !group_name && !glob_match(*group, job.lane->group->name)) return false;
  if (key && !job.lane->keys->contains(*key)) return false;
  if (worker) {
    const JobRun* run = job.run();
    if (run == nullptr || run->worker == nullptr || run->worker->name != *worker) return false;
  }
  if (tag) {
    const JobOptions* options = job.options();
    if (options == nullptr) return false;
    const auto same = [&](const auto& pair) {
      return pair.first == tag->first && pair.second == tag->second;
    };
    if (std::none_of(options->tags.begin(), options->tags.end(), same)) return false;
  }
  if (has_times() && !fits_time(time_of(job), now_ms)) return false;
  if (id_part && !contains_ignore_case(job.id(), *id_part)) return false;
  if (error && !contains_ignore_case(error_of(job), *error)) return false;
  if (pattern && error_pattern(error_of(job)) != *pattern) return false;
  return !payload || contains_ignore_case(searched_payload(job), *payload);
}

bool walk_jobs(const Queue& queue, const Selector& selector, JobOrder order, Bytes cursor,
               size_t limit, int64_t now_ms, JobPage& page, const JobWeight& weigh) {
  if (cursor.empty()) return false;
  return Walk(queue, selector, limit, now_ms, page, weigh).run(order, cursor);
}

}  // namespace sluice
