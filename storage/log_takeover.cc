#include "storage/log_takeover.h"

#include <algorithm>
#include <utility>

#include "engine/base/kill_point.h"

namespace sluice {

LogTakeover::LogTakeover(RemoteLog& log, TakeoverOptions options)
    : log_(log), options_(std::move(options)) {
  EpochValue mine = options_.mine;
  mine.ready = true;
  ready_ = encode_epoch(mine);
  mine.ready = !options_.rules.ready;
  taken_ = encode_epoch(mine);
}

void LogTakeover::pump(bool has_room) {
  Step step;
  {
    MutexLock lock(mutex_);
    if (out_ || step_ == Step::kEnd || (step_ == Step::kRead && !has_room)) return;
    out_ = true;
    step = step_;
  }
  send(step);
}

void LogTakeover::send(Step step) {
  const auto change = [&](const std::string& wanted) {
    return [self = shared_from_this(), step, wanted](const RemoteAnswer& answer) {
      self->answered(step, answer, wanted);
    };
  };
  switch (step) {
    case Step::kTake:
      return log_.change_epoch(options_.seen, taken_, change(taken_));
    case Step::kLook:
      return log_.read_state(
          revision_, [self = shared_from_this()](const auto& answer, const RemoteState& state) {
            self->looked(answer, state);
          });
    case Step::kRead:
      return log_.read_frames(
          read_from_, revision_,
          [self = shared_from_this()](const auto& answer, const RemoteFrames& frames) {
            self->read(answer, frames);
          });
    case Step::kTidy:
      return log_.tidy(taken_, next_seq(), change({}));
    case Step::kReady:
      return log_.change_epoch(taken_, ready_, change(ready_));
    case Step::kEnd:
      return;
  }
}

// True if the request has to be made again, or the end has come.
bool LogTakeover::retry(const RemoteAnswer& answer) {
  switch (answer.outcome) {
    case RemoteOutcome::kDone:
    case RemoteOutcome::kFenced:
    case RemoteOutcome::kConflict:
      return false;
    case RemoteOutcome::kClosed:
      end({StatusCode::kCancelled, "the replicated log was closed"});
      return true;
    case RemoteOutcome::kCompacted:
      look_again();
      break;
    case RemoteOutcome::kUnknown:
      if (options_.on_unanswered) options_.on_unanswered(answer);
      break;
  }
  pause();
  return true;
}

// `wanted`: the epoch that a repeated request finds if an earlier one has succeeded.
void LogTakeover::answered(Step step, const RemoteAnswer& answer, const std::string& wanted) {
  if (retry(answer)) return;
  bool done = answer.outcome == RemoteOutcome::kDone;
  if (!done && !wanted.empty() && answer.epoch == wanted) {
    done = true;
    if (step == Step::kTake) result_.late = true;
  } else if (done && step == Step::kTake) {
    revision_ = answer.revision;
  }
  if (!done) {
    return end({StatusCode::kLocked, "another node has taken the replicated log: its epoch is \"" +
                                         answer.epoch + "\""});
  }
  switch (step) {
    case Step::kTake:
      kill_point("epoch_taken");
      return advance(Step::kLook);
    case Step::kTidy:
      kill_point("log_tidied");
      if (options_.rules.ready) return advance(Step::kReady);
      return end({});
    default:
      kill_point("epoch_ready");
      return end({});
  }
}

void LogTakeover::looked(const RemoteAnswer& answer, const RemoteState& state) {
  if (retry(answer)) return;
  if (state.epoch != taken_) {
    return end({StatusCode::kLocked,
                "another node has taken the replicated log: its epoch is \"" + state.epoch + "\""});
  }
  result_.found = state;
  revision_ = answer.revision;
  options_.tail.drop_unfinished();
  read_from_ = std::max<uint64_t>(1, options_.tail.position().seq);
  advance(Step::kRead);
}

void LogTakeover::read(const RemoteAnswer& answer, const RemoteFrames& frames) {
  if (retry(answer)) return;
  if (!std::exchange(begun_, true)) {
    if (Status status = check_continues(options_.tail.position(), frames, result_.found.trim);
        !status.ok())
      return end(std::move(status));
  }
  std::vector<TailCommit> commits;
  for (const RemoteFrame& frame : frames.frames) {
    if (frame.seq == options_.tail.position().seq) continue;
    if (frame.seq != options_.tail.next_seq()) break;  // what is behind a hole counts for nothing
    if (Status status = options_.tail.add(frame.seq, frame.bytes, commits); !status.ok()) {
      return end(std::move(status));
    }
  }
  if (!commits.empty()) options_.on_commits(std::move(commits));
  const bool whole =
      !frames.frames.empty() && frames.frames.back().seq + 1 == options_.tail.next_seq();
  read_from_ = options_.tail.next_seq();
  if (frames.more && whole) return pause();
  if (Status status = check_acknowledged(); !status.ok()) return end(std::move(status));
  advance(options_.rules.tidy ? Step::kTidy : Step::kReady);
}

// A primary acknowledges frames, and a standby applies them, only as far as there is no hole. So a
// hole before that was made later, and what lies behind it is wanted. A busy primary sends no beat,
// but its record says how far it has come.
Status LogTakeover::check_acknowledged() const {
  const LogPosition& end = options_.tail.position();
  const Result<BeatValue> beat = decode_beat(result_.found.beat);
  std::string known;
  if (options_.known_lsn > end.lsn) {
    known = "the node \"" + options_.known_by + "\" has what comes up to lsn " +
            std::to_string(options_.known_lsn);
  } else if (beat.ok() && beat->seq > end.seq) {
    known = "frames up to " + std::to_string(beat->seq) + " were acknowledged";
  }
  if (known.empty()) return {};
  return {StatusCode::kDamaged,
          "frame " + std::to_string(options_.tail.next_seq()) +
              " of the replicated log is missing, though " + known +
              ": etcd has lost it. A node that has applied it can lead; others get its data by "
              "--reinit"};
}

uint64_t LogTakeover::next_seq() const {
  return options_.rules.whole_taken ? options_.tail.position().seq + 1 : options_.tail.next_seq();
}

void LogTakeover::advance(Step step) {
  {
    MutexLock lock(mutex_);
    step_ = step;
  }
  send(step);
}

// Frames are read as of the state that was looked at: a read of "now" may be older than TAKE.
void LogTakeover::look_again() {
  revision_ = 0;
  MutexLock lock(mutex_);
  step_ = Step::kLook;
}

void LogTakeover::pause() {
  MutexLock lock(mutex_);
  out_ = false;
}

void LogTakeover::end(Status status) {
  {
    MutexLock lock(mutex_);
    step_ = Step::kEnd;
  }
  result_.status = std::move(status);
  result_.fence = ready_;
  result_.position = options_.tail.position();
  result_.position.seq = next_seq() - 1;
  result_.position.epoch = options_.mine.epoch;
  options_.on_end(result_);
}

}  // namespace sluice
