#include "storage/replicated_commit.h"

#include <algorithm>
#include <utility>

#include "engine/base/kill_point.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;

// With frames out, smaller buffers wait for one of them to come back, but not longer than this.
constexpr size_t kWorthAFrame = size_t{64} << 10;
constexpr milliseconds kLongestWait{2};
// Before a frame of unknown outcome is sent again. It doubles up to the greater one.
constexpr milliseconds kFirstDelay{5};
constexpr milliseconds kLongestDelay{100};

}  // namespace

bool ReplicatedCommit::wants(size_t bytes, Clock::time_point now) const {
  if (bytes == 0) return false;
  MutexLock lock(mutex_);
  if (stopped_ || flights_.size() >= options_.in_flight) return false;
  if (!works_.empty() && works_.back().left != 0) return false;
  return flights_.empty() || came_back_ || bytes >= kWorthAFrame || now - added_ >= kLongestWait;
}

ReplicatedCommit::Clock::time_point ReplicatedCommit::next_pump(size_t bytes,
                                                                Clock::time_point now) const {
  Clock::time_point next = Clock::time_point::max();
  MutexLock lock(mutex_);
  if (stopped_) return next;
  if (bytes != 0 && flights_.size() < options_.in_flight) {
    next = flights_.empty() || came_back_ || bytes >= kWorthAFrame ? now : added_ + kLongestWait;
  }
  if (!unacknowledged_.empty()) next = std::min(next, options_.acknowledge_from);
  for (const Flight& flight : flights_) {
    if (flight.again.has_value()) next = std::min(next, *flight.again);
  }
  return next;
}

void ReplicatedCommit::add(CommitBuffer units, Clock::time_point now) {
  CHECK(!units.empty());
  added_ = now;
  MutexLock lock(mutex_);
  if (stopped_) return;
  came_back_ = false;
  works_.emplace_back();
  Work& work = works_.back();
  work.buffer = std::move(units);
  work.left = work.buffer.size();
  work.divided = work.buffer.divide();
  count_bytes();
}

void ReplicatedCommit::pump(Clock::time_point now) {
  std::vector<std::pair<uint64_t, std::shared_ptr<const std::string>>> again;
  {
    MutexLock lock(mutex_);
    if (stopped_) return;
    if (acknowledge(now)) callbacks_.on_change();
    for (Flight& flight : flights_) {
      if (!flight.again.has_value() || *flight.again > now) continue;
      flight.again.reset();
      again.emplace_back(flight.seq, flight.frame);
    }
  }
  for (const auto& [seq, frame] : again) send(seq, frame);
  while (true) {
    {
      MutexLock lock(mutex_);
      if (stopped_ || works_.empty() || works_.back().left == 0) return;
      if (flights_.size() >= options_.in_flight) return;
    }
    Flight flight = next_flight();
    if (options_.now_ms) flight.first_sent_ms = options_.now_ms();
    const uint64_t seq = flight.seq;
    const std::shared_ptr<const std::string> frame = flight.frame;
    {
      MutexLock lock(mutex_);
      flights_.push_back(std::move(flight));
    }
    kill_point("frame_made");
    send(seq, frame);
    kill_point("frame_sent");
  }
}

// The bytes of the next frame: a view if they lie in one place, which is nearly always so.
Bytes ReplicatedCommit::next_payload(Work& work) {
  const size_t size = std::min(work.left, options_.max_frame_bytes);
  work.left -= size;
  scratch_.clear();
  while (true) {
    const Bytes part = work.divided.parts[work.part].substr(work.offset);
    const Bytes taken = part.substr(0, size - scratch_.size());
    work.offset += taken.size();
    if (taken.size() == part.size()) {
      ++work.part;
      work.offset = 0;
    }
    if (taken.size() == size) return taken;
    scratch_ += taken;
    if (scratch_.size() == size) return scratch_;
  }
}

// Answers meanwhile remove works at the front only, and never the one that has frames to make.
ReplicatedCommit::Flight ReplicatedCommit::next_flight() {
  Work* work = nullptr;
  {
    MutexLock lock(mutex_);
    work = &works_.back();
  }
  const Bytes payload = next_payload(*work);
  FrameHeader header;
  header.last_of_commit = work->left == 0;
  header.epoch = options_.begin.epoch;
  header.seq = ++seq_;
  header.first_lsn = work->buffer.first_lsn();
  header.last_lsn = work->buffer.last_lsn();
  header.previous_chain = chain_;
  Flight flight;
  flight.frame = std::make_shared<const std::string>(encode_frame(header, payload));
  flight.seq = header.seq;
  flight.last_lsn = header.last_lsn;
  flight.chain = chain_ = extend_chain(chain_, *flight.frame);
  flight.log_bytes = log_bytes_ += flight.frame->size();
  flight.last_of_commit = header.last_of_commit;
  flight.delay = kFirstDelay;
  return flight;
}

void ReplicatedCommit::send(uint64_t seq, const std::shared_ptr<const std::string>& frame) {
  log_.append(options_.fence, seq, frame,
              [self = shared_from_this(), seq](const RemoteAnswer& answer) {
                self->answered(seq, answer);
              });
}

void ReplicatedCommit::answered(uint64_t seq, const RemoteAnswer& answer) {
  MutexLock lock(mutex_);
  if (stopped_) return;
  switch (answer.outcome) {
    case RemoteOutcome::kDone:
      committed(seq, answer.repeated);
      break;
    case RemoteOutcome::kFenced:
      fail({StatusCode::kLocked, "another node has taken the replicated log: its epoch is \"" +
                                     answer.epoch + "\", this node's is \"" + options_.fence +
                                     "\""});
      break;
    case RemoteOutcome::kConflict:
      fail({StatusCode::kDamaged, "frame " + std::to_string(seq) + " of the replicated log is " +
                                      "another one than this node wrote in its own epoch"});
      break;
    case RemoteOutcome::kCompacted:
    case RemoteOutcome::kUnknown:
      repeat_later(seq);
      break;
    case RemoteOutcome::kClosed:
      stopped_ = true;
      return;
  }
  callbacks_.on_change();
}

ReplicatedCommit::Flight* ReplicatedCommit::find(uint64_t seq) {
  if (flights_.empty() || seq < flights_.front().seq) return nullptr;
  const uint64_t at = seq - flights_.front().seq;
  return at < flights_.size() ? &flights_[at] : nullptr;
}

void ReplicatedCommit::repeat_later(uint64_t seq) {
  Flight* const flight = find(seq);
  if (flight == nullptr || flight->done) return;
  flight->again = Clock::now() + flight->delay;
  flight->delay = std::min<Clock::duration>(2 * flight->delay, kLongestDelay);
}

void ReplicatedCommit::committed(uint64_t seq, bool repeated) {
  Flight* const flight = find(seq);
  if (flight == nullptr || flight->done) return;
  flight->done = true;
  flight->again.reset();
  came_back_ = true;
  kill_point("frame_committed");
  if (!repeated && options_.on_proof) options_.on_proof(flight->first_sent_ms);
  if (!options_.rules.in_order) callbacks_.on_durable(flight->last_lsn);
  while (!flights_.empty() && flights_.front().done) {
    end_flight(flights_.front());
    flights_.pop_front();
  }
  acknowledge(Clock::now());
}

void ReplicatedCommit::end_flight(const Flight& flight) {
  if (!flight.last_of_commit) {
    if (!options_.rules.whole_commits) callbacks_.on_durable(flight.last_lsn);
    return;
  }
  LogPosition position = options_.begin;
  position.seq = flight.seq;
  position.lsn = flight.last_lsn;
  position.chain = flight.chain;
  position.bytes = flight.log_bytes;
  unacknowledged_.push_back({std::move(works_.front().buffer), std::move(position)});
  works_.pop_front();
}

bool ReplicatedCommit::acknowledge(Clock::time_point now) {
  if (unacknowledged_.empty() || now < options_.acknowledge_from) return false;
  for (Committed& commit : unacknowledged_) {
    position_ = commit.position;
    committed_.push_back(std::move(commit));
    callbacks_.on_durable(position_.lsn);
  }
  unacknowledged_.clear();
  return true;
}

void ReplicatedCommit::fail(const Status& reason) {
  stopped_ = true;
  callbacks_.on_failed(reason);
}

std::optional<ReplicatedCommit::Committed> ReplicatedCommit::take_committed() {
  MutexLock lock(mutex_);
  if (committed_.empty()) return std::nullopt;
  Committed next = std::move(committed_.front());
  committed_.pop_front();
  count_bytes();
  return next;
}

// There are a few of each.
void ReplicatedCommit::count_bytes() {
  size_t bytes = 0;
  size_t largest = 0;
  const auto count = [&](const CommitBuffer& buffer) {
    bytes += buffer.size();
    largest = std::max(largest, buffer.largest());
  };
  for (const Work& work : works_) count(work.buffer);
  for (const Committed& committed : unacknowledged_) count(committed.buffer);
  for (const Committed& committed : committed_) count(committed.buffer);
  bytes_.store(bytes, std::memory_order_relaxed);
  largest_.store(largest, std::memory_order_relaxed);
}

LogPosition ReplicatedCommit::position() const {
  MutexLock lock(mutex_);
  return position_;
}

bool ReplicatedCommit::idle() const {
  MutexLock lock(mutex_);
  return works_.empty() && unacknowledged_.empty();
}

void ReplicatedCommit::stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
}

}  // namespace sluice
