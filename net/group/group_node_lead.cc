// GroupNode as it takes the log over, leads, and gives the group away.
#include <chrono>
#include <utility>

#include "net/group/group_node.h"

namespace sluice {

namespace {

constexpr int64_t kTrimMs = 1000;
// After this time alone a node trims what its own checkpoint has.
constexpr int64_t kAloneMs = 60'000;

// Says which nodes hang now and did not before, and the reverse.
void tell_hanging(const LogSink& log, std::set<std::string> before,
                  const std::set<std::string>& hanging,
                  const std::map<std::string, GroupMember>& others) {
  if (!log) return;
  for (const std::string& name : hanging) {
    if (before.erase(name) != 0) continue;
    log(LogLevel::kWarning,
        "the server \"" + name + "\" hangs: for a while it has applied nothing behind lsn " +
            std::to_string(others.at(name).lsn) +
            ", though the journal in etcd has more. The journal is trimmed without it; if it then "
            "lacks something, it loads a copy of the data");
  }
  for (const std::string& name : before) {
    if (!others.contains(name)) continue;
    log(LogLevel::kInfo, "the server \"" + name + "\" does not hang any more");
  }
}

}  // namespace

// --- Roles ---------------------------------------------------------------------------------------

void GroupNode::elect() {
  if (election_.phase() == Election::Phase::kFailed) return;
  if (stage_ == Stage::kFollow && last_beat_.lsn > applied_.lsn) {
    if (behind_since_ms_ == 0) behind_since_ms_ = now_;
  } else {
    behind_since_ms_ = 0;
  }
  election_.set_lag(behind_since_ms_ == 0 ? 0 : now_ - behind_since_ms_);
  switch (election_.next(now_)) {
    case Election::Action::kNone:
      return;
    case Election::Action::kProbe:
      take_began_ms_ = now_;
      return log_.read_state(0, [this](const RemoteAnswer& answer, const RemoteState& state) {
        post([this, answer, state] {
          if (is_heard(answer)) {
            heard_ms_ = now_;
            pause_.on_value(state.pause, answer.revision);
          }
          election_.set_paused(pause_.left_ms() != 0);
          election_.on_probed(answer, state, now_);
        });
      });
    case Election::Action::kTake:
      return take();
    case Election::Action::kResign:
      return log_.change_epoch(election_.fence(), encode_epoch(election_.mine()),
                               [this](const RemoteAnswer& answer) {
                                 post([this, answer] {
                                   election_.on_resigned(answer, now_);
                                   if (election_.phase() == Election::Phase::kResigned) {
                                     say(LogLevel::kInfo, "the epoch is given away");
                                     end(hand_over_.exit_code(), {});
                                   }
                                 });
                               });
  }
}

void GroupNode::take() {
  stage_ = Stage::kTake;
  feed_.stop();
  took_ = feed_.position();
  const std::string& holder = election_.epoch().holder;
  say(LogLevel::kInfo,
      (holder.empty() ? "nobody leads the group" : "the primary \"" + holder + "\" is silent") +
          ": taking epoch " + std::to_string(election_.mine().epoch));
  publish();
  TakeoverOptions options{.seen = election_.fence(),
                          .mine = election_.mine(),
                          .tail = feed_.tail(),
                          .on_commits = {},
                          .on_end = {},
                          .rules = {}};
  options.on_commits = [this](std::vector<TailCommit> commits) {
    post([this, taken = std::make_shared<std::vector<TailCommit>>(std::move(commits))] {
      took_ = taken->back().position;
      for (const TailCommit& commit : *taken) feed_.note_taken(commit.units.size());
      host_.apply(std::move(*taken));
    });
  };
  for (const auto& [name, member] : members_.others()) {
    if (member.lsn <= options.known_lsn) continue;
    options.known_lsn = member.lsn;
    options.known_by = name;
  }
  options.on_unanswered = [this](const RemoteAnswer& answer) {
    post([this, answer] { wait_.note(answer, true, now_); });
  };
  options.on_end = [this](const TakeoverResult& result) {
    post([this, result] { taken(result); });
  };
  takeover_ = std::make_shared<LogTakeover>(log_, std::move(options));
}

void GroupNode::taken(const TakeoverResult& result) {
  takeover_.reset();
  heard_ms_ = now_;
  wait_.note({}, false, now_);
  election_.on_taken(result, now_);
  switch (election_.phase()) {
    case Election::Phase::kLead:
      taken_ = result;
      stage_ = Stage::kPromote;
      return hand_over_.is_wanted() ? begin_resigning() : promote_if_applied();
    case Election::Phase::kFollow:
      say(LogLevel::kInfo, "did not take the epoch: " + result.status.message());
      if (hand_over_.is_wanted()) return end(hand_over_.exit_code(), {});
      stage_ = Stage::kFollow;
      return feed_.start(took_, trim_.mark_text());
    case Election::Phase::kFenced:
      stage_ = Stage::kPromote;  // it was, between the request and its answer
      return on_fenced();
    default:
      return end(1, result.status);
  }
}

void GroupNode::promote_if_applied() {
  if (stage_ != Stage::kPromote || promoting_ || applied_.lsn != taken_.position.lsn) return;
  promoting_ = true;
  ReplicatedOptions options;
  options.fence = taken_.fence;
  options.begin = taken_.position;
  options.in_flight = options_.in_flight;
  options.now_ms = options_.now_ms;
  options.on_proof = [this](int64_t sent_ms) {
    lease_.extend(sent_ms);
    proved_ms_.store(sent_ms, std::memory_order_relaxed);
  };
  if (election_.acknowledges_from_ms() > now_) {
    options.acknowledge_from = std::chrono::steady_clock::now() +
                               std::chrono::milliseconds(election_.acknowledges_from_ms() - now_);
  }
  host_.promote(std::move(options));
}

void GroupNode::on_promoted() {
  if (stage_ != Stage::kPromote) return;
  stage_ = Stage::kLead;
  ++takeovers_;
  last_takeover_ms_ = now_ - take_began_ms_;
  say(LogLevel::kInfo, "this node leads the group in epoch " +
                           std::to_string(election_.mine().epoch) + " from lsn " +
                           std::to_string(taken_.position.lsn) + " on, " +
                           std::to_string(last_takeover_ms_) + " ms after its decision");
  members_.put_soon();
  open_at_ms_ = now_;  // its own frames need not be told
  publish();
  if (hand_over_.is_wanted()) begin_resigning();
}

void GroupNode::on_fenced() {
  // It has written nothing.
  if (!promoting_ && hand_over_.is_wanted()) return end(hand_over_.exit_code(), {});
  const bool may_differ =
      stage_ == Stage::kPromote || stage_ == Stage::kLead ||
      (stage_ == Stage::kResign && election_.phase() != Election::Phase::kResigned);
  if (!may_differ) return;
  end(kFencedExitCode, {StatusCode::kLocked, "another node has taken the group's epoch (\"" +
                                                 election_.epoch().holder + "\", epoch " +
                                                 std::to_string(election_.epoch().epoch) + ")"});
}

void GroupNode::beat() {
  const int64_t proved_ms = proved_ms_.load(std::memory_order_relaxed);
  if (heard_ms_ < proved_ms) heard_ms_ = proved_ms;
  const int64_t due_ms =
      std::max(beat_at_ms_, proved_ms == 0 ? INT64_MIN : proved_ms + options_.beat_ms);
  if (beating_ || now_ < due_ms || election_.phase() != Election::Phase::kLead) return;
  if (host_.is_stuck()) return;
  beating_ = true;
  beat_at_ms_ = now_ + options_.beat_ms;
  const LogPosition at = host_.led_position();
  BeatValue value;
  value.epoch = election_.mine().epoch;
  value.counter = ++beats_;
  value.seq = at.seq;
  value.lsn = at.lsn;
  value.wall_ms = options_.wall_ms();
  // Read here: now_ may be older.
  const int64_t sent_ms = options_.now_ms();
  log_.beat(election_.fence(), encode_beat(value), [this, sent_ms](const RemoteAnswer& answer) {
    // Without the detour over the group's thread, which may be late.
    if (answer.outcome == RemoteOutcome::kDone) lease_.extend(sent_ms);
    post([this, answer] { on_beaten(answer); });
  });
}

void GroupNode::on_beaten(const RemoteAnswer& answer) {
  beating_ = false;
  if (is_heard(answer)) heard_ms_ = now_;
  wait_.note(answer, !lease_.holds(now_), now_);
  // While the epoch is given away, the answer to that tells.
  const bool resigns = election_.phase() == Election::Phase::kResign;
  if (answer.outcome != RemoteOutcome::kFenced || resigns) return;
  election_.on_fenced(answer.epoch, now_);
  on_fenced();
}

// --- Trim ----------------------------------------------------------------------------------------

void GroupNode::trim() {
  trim_.note(host_.led_position());
  if (const auto revision = compaction_.next(members_.revision(), now_)) {
    log_.compact(*revision, [](const RemoteAnswer&) {});  // without effect: a minute later again
  }
  // A node or a hold that is not known yet may need what would be trimmed.
  if (trimming_ || now_ < trim_at_ms_ || !members_.has_read()) return;
  trim_at_ms_ = now_ + kTrimMs;
  std::set<std::string> before = std::exchange(hanging_, members_.hanging());
  tell_hanging(options_.log, std::move(before), hanging_, members_.others());
  const bool has_others = members_.others().size() > hanging_.size();
  if (has_others) alone_since_ms_ = 0;
  if (!has_others && alone_since_ms_ == 0) alone_since_ms_ = now_;
  const bool alone = alone_since_ms_ != 0 && now_ - alone_since_ms_ >= kAloneMs;
  size_t copies = options_.checkpoint_copies;
  // Room counts more than a second copy: the log itself is on a majority of disks.
  if (copies == 0) copies = alone || bound_.is_half(bound_.bytes()) ? 1 : 2;
  const LogTrim::Limit limit =
      LogTrim::limit(members_.all(self()), members_.holds(), copies, hanging_);
  log_kept_by_ = limit.why;
  const std::optional<LogPosition> to = trim_.target(limit);
  if (!to.has_value()) return;
  trimming_ = true;
  const std::string text = encode_position(*to);
  log_.trim(election_.fence(), to->seq + 1, trim_.mark_text(), text,
            [this, to, text](const RemoteAnswer& answer) {
              post([this, answer, to, text] { on_trimmed(answer, *to, text); });
            });
}

void GroupNode::on_trimmed(const RemoteAnswer& answer, const LogPosition& to,
                           const std::string& text) {
  trimming_ = false;
  if (is_heard(answer)) heard_ms_ = now_;
  if (answer.outcome == RemoteOutcome::kDone) {
    trim_.set_mark(text);
    trim_.forget(to.seq);
    compaction_.on_trimmed(now_);
  } else if (answer.outcome == RemoteOutcome::kConflict) {
    open_at_ms_ = now_;  // reads the mark
  }
}

// --- Hand-over -----------------------------------------------------------------------------------

void GroupNode::resign(const std::string& preferred, int exit_code, int64_t give_up_ms) {
  if (stage_ == Stage::kEnded) return;
  if (hand_over_.is_wanted()) {
    if (exit_code == 0) hand_over_.insist();
    return;
  }
  if (stage_ < Stage::kTake) return end(exit_code, {});
  const bool revocable = stage_ == Stage::kLead && exit_code == kFencedExitCode;
  hand_over_.begin(preferred, exit_code, give_up_ms, revocable);
  // Nobody may give away an epoch that is not ready: its TIDY may still be on its way. Without an
  // end of it the others would wait for this node as for a silent primary.
  const bool may_write = stage_ == Stage::kPromote && promoting_;
  if (stage_ != Stage::kTake && !may_write) begin_resigning();
}

// REQUIRES: the epoch is ready, and the host has promoted or was not asked to.
void GroupNode::begin_resigning() {
  stage_ = Stage::kResign;
  if (promoting_) host_.stop_writing();
  const std::string& preferred = hand_over_.preferred();
  say(LogLevel::kInfo, "handing the group over" + (preferred.empty() ? "" : " to " + preferred));
  publish();
}

void GroupNode::resign_if_durable() {
  if (election_.phase() != Election::Phase::kLead) return;
  const bool is_ready =
      (!promoting_ || host_.is_durable()) && now_ >= election_.acknowledges_from_ms();
  // What is ready by now is not too late.
  if (hand_over_.gives_up(is_ready ? INT64_MIN : now_)) {
    stage_ = Stage::kLead;
    say(LogLevel::kWarning, "the hand-over was given up");
    host_.resume_writing();
    return publish();
  }
  if (!is_ready || !hand_over_.commit()) return;
  lease_.end();
  // Without a name one is chosen: this node starts again, and would be as quick as the others.
  const bool chooses = hand_over_.preferred().empty() && hand_over_.exit_code() == kFencedExitCode;
  election_.resign(chooses ? members_.successor() : hand_over_.preferred(), now_);
}

void GroupNode::end(int exit_code, const Status& reason) {
  if (stage_ == Stage::kEnded) return;
  stage_ = Stage::kEnded;
  lease_.end();
  feed_.stop();
  // Otherwise the record would tell of this process for some seconds more.
  if (exit_code == 0) {
    log_.drop_record(RemoteRecordKind::kNode, options_.self.name, [](const RemoteAnswer&) {});
  }
  host_.end(exit_code, reason);
}

}  // namespace sluice
