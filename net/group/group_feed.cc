#include "net/group/group_feed.h"

#include <algorithm>
#include <utility>

namespace sluice {

void GroupFeed::start(LogPosition position, std::string trim) {
  ++run_;
  tail_ = LogTail(std::move(position));
  trim_ = std::move(trim);
  on_ = true;
  has_read_ = false;
  checked_ = false;
  at_hole_ = false;
  reading_ = false;
  broken_ = {};
  doubt_.clear();
  read_at_ms_ = INT64_MIN;
}

void GroupFeed::on_trim(const std::string& trim, uint64_t seq) {
  if (on_ && seq > position().seq) start(position(), trim);
}

void GroupFeed::stop() {
  ++run_;
  on_ = false;
  reading_ = false;
  read_at_ms_ = INT64_MAX;
}

int64_t GroupFeed::due_ms() const { return reading_ || is_full() ? INT64_MAX : read_at_ms_; }

std::string GroupFeed::hole() const {
  if (!at_hole_ || !tail_.has_gap()) return {};
  return "frame " + std::to_string(tail_.next_seq()) +
         " of the replicated log is missing in etcd, which has later ones";
}

void GroupFeed::step(int64_t now_ms) {
  if (on_ && now_ms >= due_ms()) read(now_ms);
}

void GroupFeed::read_again(int64_t now_ms) { read_at_ms_ = std::min(read_at_ms_, now_ms); }

void GroupFeed::on_target(uint64_t seq, int64_t now_ms) {
  if (on_ && seq >= tail_.next_seq()) read_at_ms_ = std::min(read_at_ms_, now_ms + kGapMs);
}

void GroupFeed::on_frame(uint64_t seq, Bytes frame, int64_t now_ms) {
  if (!on_) return;
  // Before the first page nothing is known to continue.
  if (!checked_ || is_full()) return on_target(seq, now_ms);
  if (!take(seq, frame)) return read_again(now_ms);
  if (tail_.has_gap()) on_target(seq, now_ms);
}

bool GroupFeed::take(uint64_t seq, Bytes frame) {
  std::vector<TailCommit> commits;
  Status status = tail_.add(seq, frame, commits);
  if (!commits.empty()) {
    for (const TailCommit& commit : commits) pending_bytes_ += commit.units.size();
    broken_ = {};
    callbacks_.on_commits(std::move(commits));
  }
  if (status.ok()) return true;
  const bool again = !broken_.ok();
  broken_ = std::move(status);
  if (again && on_) {
    stop();
    callbacks_.on_broken(broken_);
  }
  return false;
}

void GroupFeed::read(int64_t now_ms) {
  reading_ = true;
  read_at_ms_ = INT64_MAX;
  const LogPosition& at = tail_.position();
  const uint64_t from = checked_ ? tail_.next_seq() : std::max<uint64_t>(1, at.seq);
  log_.read_frames(from, 0,
                   [this, run = run_, now_ms](const RemoteAnswer& answer, RemoteFrames frames) {
                     inbox_.post([this, run, now_ms, answer, frames = std::move(frames)] {
                       if (run == run_) on_page(answer, frames, now_ms);
                     });
                   });
}

void GroupFeed::on_page(const RemoteAnswer& answer, const RemoteFrames& frames, int64_t now_ms) {
  reading_ = false;
  if (answer.outcome != RemoteOutcome::kDone) {
    read_at_ms_ = now_ms + kRetryMs;
    return;
  }
  if (checked_ || check_continues(position(), frames, trim_).ok()) return take_page(frames, now_ms);
  look_at_trim(frames, now_ms);
}

// The log may have been trimmed since the mark was read. One that is read after the frames explains
// those that are missing: it is put before they are deleted.
void GroupFeed::look_at_trim(const RemoteFrames& frames, int64_t now_ms) {
  reading_ = true;
  log_.read_state(
      0, [this, run = run_, now_ms, frames](const RemoteAnswer& answer, const RemoteState& state) {
        inbox_.post([this, run, now_ms, frames, answer, trim = state.trim] {
          if (run != run_) return;
          if (answer.outcome != RemoteOutcome::kDone) return on_page(answer, frames, now_ms);
          reading_ = false;
          trim_ = trim;
          Status status = check_continues(position(), frames, trim_);
          status.ok() ? take_page(frames, now_ms) : doubt(status, now_ms);
        });
      });
}

// A read that was old shows no trim mark that is too new. `now_ms`: when it was asked for.
void GroupFeed::doubt(const Status& why, int64_t now_ms) {
  if (why.code() == StatusCode::kStale || doubt_.is_sure(why.message(), now_ms)) {
    stop();
    return callbacks_.on_broken(why);
  }
  read_at_ms_ = doubt_.due_ms();
}

void GroupFeed::take_page(const RemoteFrames& frames, int64_t now_ms) {
  checked_ = true;
  // Behind a hole nothing counts, and each page would be this one.
  at_hole_ = !frames.frames.empty() && frames.frames.front().seq > tail_.next_seq();
  for (const RemoteFrame& frame : frames.frames) {
    if (take(frame.seq, frame.bytes)) continue;
    if (on_) read_at_ms_ = now_ms + kRetryMs;
    return;
  }
  if (frames.more && !at_hole_) {
    read_at_ms_ = now_ms;
  } else {
    has_read_ = true;
  }
}

}  // namespace sluice
