#include "net/group/group_members.h"

#include <algorithm>
#include <utility>

#include "engine/base/numbers.h"
#include "storage/group_keys.h"

namespace sluice {

void GroupMembers::step(const GroupMember& self, int64_t now_ms) {
  put(self, now_ms);
  if (now_ms >= read_at_ms_) read_again(self.name, now_ms);
}

void GroupMembers::read(const std::string& own_name, int64_t now_ms, bool was_away) {
  has_read_ = {};
  was_away_ = was_away;
  read_again(own_name, now_ms);
}

void GroupMembers::read_again(const std::string& own_name, int64_t now_ms) {
  read_at_ms_ = now_ms + kReadMs;
  read(RemoteRecordKind::kNode, own_name, now_ms);
  read(RemoteRecordKind::kHold, own_name, now_ms);
}

void GroupMembers::read(RemoteRecordKind kind, const std::string& own_name, int64_t now_ms) {
  told_[index_of(kind)].clear();
  const uint64_t number = ++reads_[index_of(kind)];
  log_.read_records(
      kind, [this, kind, own_name, number, now_ms](const RemoteAnswer& answer,
                                                   const std::vector<RemoteRecord>& records) {
        inbox_.post([this, kind, own_name, number, now_ms, is_known = is_heard(answer),
                     revision = answer.revision, records] {
          if (number != reads_[index_of(kind)]) return;
          if (is_known) {
            revision_ = revision;
            on_read(kind, own_name, records);
            if (kind == RemoteRecordKind::kNode) look_for_progress(now_ms);
            return;
          }
          read_at_ms_ = std::min(read_at_ms_, now_ms + kRecordMs);
        });
      });
}

// What was told since the request is newer. Others may have vanished while nothing was told.
void GroupMembers::on_read(RemoteRecordKind kind, const std::string& own_name,
                           const std::vector<RemoteRecord>& records) {
  const bool is_hold = kind == RemoteRecordKind::kHold;
  const bool was_away = !std::exchange(has_read_[index_of(kind)], true) && was_away_;
  const std::set<std::string>& told = told_[index_of(kind)];
  const auto is_old = [&](const auto& entry) { return !told.contains(entry.first); };
  is_hold ? std::erase_if(holds_, is_old) : std::erase_if(others_, is_old);
  bool has_own = is_hold || told.contains(own_name);
  for (const RemoteRecord& record : records) {
    const bool is_own = !is_hold && record.name == own_name;
    has_own |= is_own;
    if (told.contains(record.name)) continue;
    is_own ? take_own(record.name, record.value, was_away) : take(kind, record.name, record.value);
  }
  if (!has_own) vanish();
}

// `now_ms`: when the records were asked for. Their leases are kept by another thread than the one
// that applies, so a record may live for as long as its process does.
void GroupMembers::look_for_progress(int64_t now_ms) {
  if (now_ms < look_at_ms_) return;
  // While this node cannot tell how far it is, as with a full etcd, the others cannot either.
  if (must_put_) return progress_.clear();
  look_at_ms_ = now_ms + kReadMs;
  std::erase_if(progress_, [&](const auto& entry) { return !others_.contains(entry.first); });
  for (const auto& [name, member] : others_) {
    Progress& seen = progress_[name];
    const bool is_still = seen.is_of(member) && seen.lsn < looked_lsn_;
    seen = {member.run_id, member.lsn, is_still ? seen.still + 1 : 0};
  }
  looked_lsn_ = recorded_.lsn;
}

std::set<std::string> GroupMembers::hanging() const {
  std::set<std::string> names;
  for (const auto& [name, member] : others_) {
    const auto seen = progress_.find(name);
    if (seen == progress_.end() || seen->second.still < kStillLooks) continue;
    // What was told since is newer.
    if (seen->second.is_of(member)) names.insert(name);
  }
  return names;
}

void GroupMembers::take(RemoteRecordKind kind, const std::string& name, const std::string& value) {
  if (kind == RemoteRecordKind::kHold) {
    // One that cannot be read holds everything.
    holds_[name] = parse_u64(value).value_or(0);
    return;
  }
  Result<GroupMember> member = decode_member(name, value);
  if (member.ok()) others_[name] = std::move(*member);
}

void GroupMembers::on_record(RemoteRecordKind kind, const std::string& name,
                             const std::optional<std::string>& value, const std::string& own_name) {
  told_[index_of(kind)].insert(name);
  const bool is_own = kind == RemoteRecordKind::kNode && name == own_name;
  if (!value.has_value()) {
    if (is_own) vanish();
    kind == RemoteRecordKind::kHold ? holds_.erase(name) : others_.erase(name);
    return;
  }
  // A process loads; the record of the one before it may still be there, and hang.
  if (kind == RemoteRecordKind::kHold) progress_.erase(name);
  is_own ? take_own(name, *value, false) : take(kind, name, *value);
}

// A process that was started again finds the record of the one before it, and replaces it. Of two
// that run with copies of one directory, the first one puts its record again: so the second one
// hears of it. `was_away`: the log was not followed meanwhile, and the other one has taken over.
void GroupMembers::take_own(const std::string& name, const std::string& value, bool was_away) {
  const Result<GroupMember> member = decode_member(name, value);
  if (!member.ok()) return;
  if (member->run_id == run_id_) {
    is_known_ = true;
  } else if (!is_known_) {
    before_ = member->run_id;
  } else if (member->run_id != before_ && !was_away) {
    lose_record();
  } else {
    on_refused_(invalid("another process runs as the node \"" + name +
                        "\", with a copy of this directory, and was there first. To make a node "
                        "of its own of the copy, remove its file node-id, and give it another "
                        "node-name. If there is no other one, etcd was restored from a backup: "
                        "start this server again"));
  }
}

void GroupMembers::put(const GroupMember& self, int64_t now_ms) {
  // Whose record it replaces is known before.
  if (!has_read_[index_of(RemoteRecordKind::kNode)]) return;
  if (is_putting_ || now_ms < put_at_ms_ || (!must_put_ && self == recorded_)) return;
  is_putting_ = true;
  recorded_ = self;
  put_at_ms_ = now_ms + kRecordMs;
  log_.put_record(RemoteRecordKind::kNode, self.name, owner_, encode_member(self),
                  [this, name = self.name, now_ms](const RemoteAnswer& answer) {
                    inbox_.post([this, answer, name, now_ms] { on_put(answer, name, now_ms); });
                  });
}

void GroupMembers::on_put(const RemoteAnswer& answer, const std::string& name, int64_t now_ms) {
  is_putting_ = false;
  must_put_ = answer.outcome != RemoteOutcome::kDone;
  put_failure_ = is_heard(answer) ? "" : no_answer(answer).message();
  if (!must_put_) {
    is_recorded_ = true;
    other_since_ms_ = 0;
    return;
  }
  // Without an answer nothing is known: neither that the record has gone, nor whose it is.
  if (answer.outcome != RemoteOutcome::kConflict) return;
  is_recorded_ = false;
  // What was seen before an outage of the log says nothing of now.
  if (other_since_ms_ == 0 || now_ms - other_seen_ms_ > kReadMs) other_since_ms_ = now_ms;
  other_seen_ms_ = now_ms;
  if (now_ms - other_since_ms_ < kOtherProcessMs) return;
  on_refused_(
      invalid("another process is the node \"" + name + "\" of the group; node-name must differ"));
}

std::string GroupMembers::successor() const {
  const GroupMember* best = nullptr;
  for (const auto& [name, member] : others_) {
    if (member.can_lead() && (best == nullptr || member.lsn > best->lsn)) best = &member;
  }
  return best == nullptr ? std::string() : best->name;
}

std::vector<GroupMember> GroupMembers::all(const GroupMember& self) const {
  std::map<std::string, GroupMember> sorted = others_;
  sorted[self.name] = self;
  std::vector<GroupMember> members;
  for (auto& [name, member] : sorted) members.push_back(std::move(member));
  return members;
}

}  // namespace sluice
