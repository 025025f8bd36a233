#include "net/group/group_node.h"

#include <algorithm>
#include <utility>

#include "storage/group_mark.h"

namespace sluice {

namespace {

// How soon the log is opened again if it did not answer.
constexpr int64_t kRetryOpenMs = 100;
constexpr int64_t kPublishMs = 100;
// How often things are looked at that tell nobody.
constexpr int64_t kLookMs = 20;

std::string name_of(const GroupNodeOptions& options) {
  return "the group \"" + options.group + "\" of the cluster \"" + options.cluster + "\"";
}

Status restored(const GroupNodeOptions& options, uint64_t epoch, uint64_t followed) {
  return invalid(name_of(options) + " is at epoch " + std::to_string(epoch) +
                 ", and this directory has followed epoch " + std::to_string(followed) +
                 ": etcd was restored from an old backup. " + kLeadAdvice);
}

Status emptied(const GroupNodeOptions& options) {
  return invalid("etcd knows no group \"" + options.group + "\" of the cluster \"" +
                 options.cluster + "\", to which this directory belongs (cluster id " +
                 options.begin.cluster_id + "). etcd was emptied, or is another one. " +
                 kLeadAdvice);
}

// Whether this directory belongs to the group; an empty one does from now on. The frames are
// compared when they are read.
Status check_epoch(GroupNodeOptions& options, const EpochValue& epoch) {
  LogPosition& at = options.begin;
  const std::string named = name_of(options);
  if (at.cluster_id.empty()) {
    if (at.lsn != 0) {
      return invalid("the directory holds data that do not belong to " + named +
                     ". Start with an empty directory to join it");
    }
    if (epoch.base_lsn != 0) {
      return {StatusCode::kStale, named + " began with data (up to lsn " +
                                      std::to_string(epoch.base_lsn) +
                                      ") that an empty directory lacks"};
    }
    at = {epoch.cluster_id, options.group, 0, 0, 0, 0};
  }
  if (at.cluster_id != epoch.cluster_id) {
    const std::string keys = GroupKeys(options.cluster, options.group).prefix();
    return invalid("the directory belongs to the cluster id " + at.cluster_id + ", and " + named +
                   " has the cluster id " + epoch.cluster_id +
                   (!options.begins
                        ? ""
                        : ". For a group that begins with this directory stop the other "
                          "one's nodes and remove its keys (etcdctl del --prefix " +
                              keys + "), or choose another cluster-name"));
  }
  if (at.group != options.group) {
    return invalid("the directory belongs to the group \"" + at.group + "\", not to " + named);
  }
  return {};
}

// What a node waits for that answers to its changes do not tell; empty: nothing.
std::string other_wait(const GroupMembers& members, const GroupFeed& feed, const Election& election,
                       const GroupPause& pause, int64_t lag_ms, int64_t now_ms) {
  if (members.other_process()) return "another process is this node, and must end";
  std::string hole = lag_ms > GroupWait::kSayMs ? feed.hole() : "";
  if (!hole.empty()) return hole;
  if (election.must_not_take(now_ms, GroupWait::kSayMs, pause.left_ms() != 0)) {
    return "nobody leads, and replica-priority 0 keeps this node from it";
  }
  return members.put_failure();
}

}  // namespace

// Takes what the log tells to the group's thread. It may be gone before what it has posted runs.
class GroupNode::Listener final : public RemoteListener {
 public:
  explicit Listener(GroupNode& node) : node_(node) {}

  void on_frame(uint64_t seq, Bytes frame) override {
    GroupNode& node = node_;
    const size_t size = frame.size();
    // If the group's thread is held up, by a slow disk, it reads the rest from the log later.
    if (node.told_bytes_ + size > node.options_.max_pending_bytes) {
      return node.post([&node, seq] {
        node.heard_ms_ = node.now_;
        if (node.stage_ == Stage::kFollow) node.feed_.on_target(seq, node.now_);
      });
    }
    node.told_bytes_ += size;
    node.post([&node, seq, bytes = std::string(frame)] {
      node.told_bytes_ -= bytes.size();
      node.on_frame(seq, bytes);
    });
  }
  void on_beat(Bytes value) override {
    node_.post([&node = node_, text = std::string(value)] { node.on_beat(text); });
  }
  void on_epoch(Bytes value) override {
    node_.post([&node = node_, text = std::string(value)] { node.on_epoch(text); });
  }
  void on_trim(Bytes value) override {
    node_.post([&node = node_, text = std::string(value)] {
      node.trim_.set_mark(text);
      node.feed_.on_trim(text, node.trim_.mark().seq);
    });
  }
  void on_pause(Bytes value, int64_t revision) override {
    node_.post([&node = node_, text = std::string(value), revision] {
      node.pause_.on_value(text, revision);
      node.publish();
    });
  }
  void on_record(RemoteRecordKind kind, Bytes name, std::optional<Bytes> value) override {
    std::optional<std::string> text;
    if (value.has_value()) text.emplace(*value);
    node_.post([&node = node_, kind, name = std::string(name), text] {
      node.heard_ms_ = node.now_;
      node.members_.on_record(kind, name, text, node.options_.self.name);
    });
  }
  void on_lost(const Status& reason) override {
    node_.post([&node = node_, self = this, reason] {
      if (self == node.listener_.get()) node.on_lost(reason);
    });
  }

 private:
  GroupNode& node_;
};

GroupNode::GroupNode(RemoteLog& log, GroupInbox& inbox, GroupHost& host, ReadLease& lease,
                     GroupNodeOptions options)
    : log_(log),
      inbox_(inbox),
      host_(host),
      options_(std::move(options)),
      election_(options_.election),
      lease_(lease),
      feed_(log, inbox, options_.max_pending_bytes,
            {[this](std::vector<TailCommit> commits) { host_.apply(std::move(commits)); },
             [this](const Status& status) { end(1, status); }}),
      members_(log, inbox, options_.owner, options_.self.run_id,
               [this](const Status& status) { end(1, status); }),
      pause_(options_.wall_ms, options_.log),
      applied_(options_.begin),
      bound_(log, inbox, options_.max_log_bytes, options_.log),
      wait_(options_.log),
      view_(std::make_shared<const GroupView>()) {
  election_.set_never_takes(options_.self.priority == 0);
}

GroupNode::~GroupNode() = default;

void GroupNode::post(GroupInbox::Task then) {
  inbox_.post([this, then = std::move(then)] {
    if (stage_ == Stage::kEnded) return;
    // What was posted may have waited: what is heard too late must not seem to be older.
    now_ = std::max(now_, options_.now_ms());
    then();
  });
}

void GroupNode::say(LogLevel level, const std::string& text) const {
  if (options_.log) options_.log(level, text);
}

int64_t GroupNode::step(int64_t now_ms) {
  now_ = now_ms;
  inbox_.run();
  now_ = std::max(now_, options_.now_ms());
  if (stage_ == Stage::kEnded) return INT64_MAX;
  if (!opening_ && now_ >= open_at_ms_) open();
  feed_.step(now_);
  if (!caught_up_ && feed_.has_read()) {
    if (!read_lsn_.has_value()) read_lsn_ = feed_.position().lsn;
    caught_up_ = applied_.lsn >= *read_lsn_;
    if (caught_up_) {
      host_.caught_up();
      members_.put_soon();
      publish_at_ms_ = now_;  // at the end of this step
    }
  }
  if (stage_ == Stage::kTake && takeover_ != nullptr) takeover_->pump(!feed_.is_full());
  promote_if_applied();
  if (stage_ == Stage::kResign) resign_if_durable();
  const auto elects = [this] {
    return caught_up_ && (stage_ > Stage::kFollow || members_.is_recorded());
  };
  if (elects()) elect();
  if (leads()) beat();
  if (stage_ == Stage::kLead) trim();
  if (begun_ && stage_ != Stage::kEnded) {
    const GroupMember me = self();
    measure_log(me);
    members_.step(me, now_);
  }
  pause_.step(now_);
  if (now_ >= publish_at_ms_) publish();
  if (stage_ == Stage::kEnded) return INT64_MAX;
  return std::min({now_ + kLookMs, feed_.due_ms(), elects() ? election_.due_ms() : INT64_MAX});
}

// --- Opening -------------------------------------------------------------------------------------

void GroupNode::retry_open(const std::string& why) {
  opening_ = false;
  open_at_ms_ = now_ + kRetryOpenMs;
  wait_.lose(why, now_);
}

void GroupNode::open() {
  opening_ = true;
  log_.read_state(0, [this, known = election_.epoch().epoch](const RemoteAnswer& answer,
                                                             const RemoteState& state) {
    post([this, known, answer, state] { opened(known, answer, state); });
  });
}

// `known`: the epoch that was known when the state was asked for. A later one may be known by now.
void GroupNode::opened(uint64_t known, const RemoteAnswer& answer, const RemoteState& state) {
  if (!is_heard(answer)) return retry_open(no_answer(answer).message());
  heard_ms_ = now_;
  const bool is_new = !begun_ && (options_.begin.cluster_id.empty() || options_.begins);
  if (state.epoch.empty() && is_new) return begin_group();
  Status old = state.epoch.empty() ? emptied(options_) : Status();
  if (old.ok()) {
    Result<EpochValue> epoch = decode_epoch(state.epoch);
    if (!epoch.ok()) return end(1, epoch.status());
    if (Status status = check_epoch(options_, *epoch); !status.ok()) return end(1, status);
    if (begun_ && stage_ != Stage::kFollow) known = 0;
    known = std::max(known, options_.begin.epoch);
    if (epoch->epoch < known) old = restored(options_, epoch->epoch, known);
  }
  if (!old.ok()) {
    if (doubt_.is_sure(old.message(), now_)) return end(1, old);
    retry_open("etcd is asked again before this server ends: " + old.message());
    open_at_ms_ = doubt_.due_ms();
    return;
  }
  trim_.set_mark(state.trim);
  pause_.begin(state.pause, answer.revision);
  follow(answer.revision, state);
}

// There is no epoch: the group does not exist, or somebody has emptied etcd.
void GroupNode::begin_group() {
  const bool has_data = options_.begin.lsn != 0;
  if (has_data && !options_.begins) {
    return end(1, invalid("the directory holds data, and there is no group \"" + options_.group +
                          "\" of the cluster \"" + options_.cluster +
                          "\" yet. \"sluice-journal lead DIR\" lets the group begin with these "
                          "data; to join as a standby, start with an empty directory"));
  }
  log_.read_records(RemoteRecordKind::kNode,
                    [this](const RemoteAnswer& answer, std::vector<RemoteRecord> nodes) {
                      post([this, answer, nodes = std::move(nodes)] {
                        if (is_heard(answer)) return init(nodes);
                        retry_open(no_answer(answer).message());
                      });
                    });
}

void GroupNode::init(const std::vector<RemoteRecord>& nodes) {
  for (const RemoteRecord& node : nodes) {
    const Result<GroupMember> member = decode_member(node.name, node.value);
    if (node.name == options_.self.name || !member.ok() || member->lsn == 0 || options_.begins) {
      continue;
    }
    return retry_open("the node \"" + node.name + "\" has data and must begin the group");
  }
  EpochValue first;
  first.cluster_id = options_.begins ? options_.begin.cluster_id : options_.make_id();
  first.epoch = 1;
  first.ready = true;
  first.base_lsn = options_.begin.lsn;
  log_.change_epoch("", encode_epoch(first), [this](const RemoteAnswer& answer) {
    post([this, answer] {
      if (!is_heard(answer)) return retry_open(no_answer(answer).message());
      opening_ = false;  // somebody has begun it; open() reads who
      open_at_ms_ = now_;
    });
  });
}

// Follows from `revision` on, at which the log was in this state.
void GroupNode::follow(int64_t revision, const RemoteState& state) {
  opening_ = false;
  open_at_ms_ = INT64_MAX;
  doubt_.clear();
  wait_.follows();
  if (!begun_) {
    begun_ = true;
    stage_ = Stage::kFollow;
    applied_ = options_.begin;
    static_cast<void>(election_.begin(state, now_));
    feed_.start(options_.begin, trim_.mark_text());
  } else {
    election_.on_log_found(now_);
    on_epoch(state.epoch);
    if (stage_ == Stage::kFollow) {
      feed_.on_trim(state.trim, trim_.mark().seq);
      feed_.read_again(now_);
    }
  }
  if (stage_ == Stage::kEnded) return;
  listener_ = std::make_shared<Listener>(*this);
  // A primary is never a standby again in this process.
  log_.follow(revision, stage_ < Stage::kPromote ? RemoteFollow::kAll : RemoteFollow::kNoFrames,
              listener_);
  members_.read(options_.self.name, now_, !std::exchange(follows_, true));
}

// --- What is told --------------------------------------------------------------------------------

void GroupNode::on_frame(uint64_t seq, const std::string& frame) {
  heard_ms_ = now_;
  if (stage_ != Stage::kFollow) return;
  if (const Result<Frame> decoded = decode_frame(frame); decoded.ok()) {
    election_.on_frame(decoded->header.epoch, seq, now_);
  }
  feed_.on_frame(seq, frame, now_);
}

void GroupNode::on_beat(const std::string& value) {
  heard_ms_ = now_;
  const Result<BeatValue> beat = decode_beat(value);
  if (!beat.ok() || stage_ != Stage::kFollow) return;
  election_.on_beat(*beat, now_);
  if (beat->epoch < last_beat_.epoch) return;
  last_beat_ = *beat;
  feed_.on_target(beat->seq, now_);
}

void GroupNode::on_epoch(const std::string& value) {
  heard_ms_ = now_;
  const std::string before = election_.epoch().holder;
  if (Status status = election_.on_epoch(value, now_); !status.ok()) return end(1, status);
  if (election_.epoch().holder != before) publish();
  if (election_.phase() == Election::Phase::kFenced) on_fenced();
}

void GroupNode::on_lost(const Status& reason) {
  election_.on_log_lost();
  follows_ = false;
  retry_open("the replicated log is out of reach: " + reason.message());
}

void GroupNode::on_applied(const LogPosition& position, size_t bytes) {
  applied_ = position;
  trim_.note(position);
  feed_.note_applied(bytes);
}

void GroupNode::announce(const GroupMember& self) {
  options_.self.host = self.host;
  options_.self.port = self.port;
  options_.self.priority = self.priority;
  options_.self.config_mark = self.config_mark;
  election_.set_never_takes(self.priority == 0);
}

// --- The view ------------------------------------------------------------------------

// How full the log is, and whether that is due to this node's checkpoint.
void GroupNode::measure_log(const GroupMember& self) {
  const uint64_t trimmed = trim_.mark().bytes;
  const LogPosition end = position();
  const auto behind = [&end](uint64_t bytes) { return end.bytes - std::min(end.bytes, bytes); };
  bound_.step(now_);
  if (bound_.note(behind(trimmed), leads(), log_kept_by_)) publish();
  const uint64_t needed = behind(std::max(trimmed, trim_.bytes_at(self.checkpoint_lsn)));
  if (caught_up_ && bound_.is_half(needed)) host_.want_checkpoint(end.lsn);
}

GroupMember GroupNode::self() const {
  GroupMember self = options_.self;
  self.primary = leads();
  self.starting = !caught_up_;
  self.lsn = position().lsn;
  host_.fill_record(self);
  return self;
}

GroupRole GroupNode::role() const {
  switch (stage_) {
    case Stage::kOpen:
      return GroupRole::kStarting;
    case Stage::kFollow:
      return caught_up_ ? GroupRole::kStandby : GroupRole::kStarting;
    case Stage::kTake:
    case Stage::kPromote:
      return GroupRole::kTaking;
    case Stage::kLead:
      return GroupRole::kPrimary;
    case Stage::kResign:
      return leads() ? GroupRole::kResigning : GroupRole::kTaking;
    case Stage::kEnded:
      return GroupRole::kResigning;
  }
  return GroupRole::kStarting;
}

void GroupNode::publish() {
  publish_at_ms_ = now_ + kPublishMs;
  auto view = std::make_shared<GroupView>();
  view->cluster = options_.cluster;
  view->group = options_.group;
  view->node = options_.self.name;
  view->role = role();
  view->epoch = election_.epoch().epoch;
  view->holder = election_.epoch().holder;
  const LogPosition at = position();
  view->seq = at.seq;
  view->lsn = at.lsn;
  view->lag_ms = behind_since_ms_ == 0 ? 0 : now_ - behind_since_ms_;
  view->log_frames = at.seq - std::min(at.seq, trim_.mark().seq);
  view->log_bytes = bound_.bytes();
  view->log_limit_bytes = bound_.limit_bytes();
  view->log_room = bound_.room();
  view->log_kept_by = log_kept_by_;
  view->etcd_bytes = bound_.service_bytes();
  view->etcd_quota_bytes = bound_.service_quota_bytes();
  view->trim_lsn = trim_.mark().lsn;
  view->paused_ms = pause_.left_ms();
  view->pause_number = pause_.number();
  view->takeovers = takeovers_;
  view->last_takeover_ms = last_takeover_ms_;
  view->waits_for = wait_.text();
  if (view->waits_for.empty() || members_.other_process()) {
    view->waits_for = other_wait(members_, feed_, election_, pause_, view->lag_ms, now_);
    if (!view->waits_for.empty()) wait_.say(view->waits_for, now_);
  }
  view->awaits_standby = hand_over_.is_asked();
  view->members = members_.all(self());
  // A record may be older than the epoch.
  for (GroupMember& member : view->members) member.primary = member.name == view->holder;
  if (view->is_led()) linked_ms_ = heard_ms_;
  if (linked_ms_ != 0) view->unlinked_ms = now_ - linked_ms_;
  {
    MutexLock lock(view_mutex_);
    view_ = view;
  }
  host_.view_changed(std::move(view));
}

std::shared_ptr<const GroupView> GroupNode::view() const {
  MutexLock lock(view_mutex_);
  return view_;
}

}  // namespace sluice
