#include "net/group/bootstrap.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "storage/copy_writer.h"
#include "storage/data_directory.h"
#include "storage/log_tail.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;

constexpr auto kPoll = milliseconds(50);
// The same sentence is said so often, and only so many others meanwhile.
constexpr int64_t kRepeatMs = 60'000;
constexpr size_t kMaxSentences = 8;

int64_t now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<milliseconds>(now).count();
}

Status cancelled() { return {StatusCode::kCancelled, "the server is stopping"}; }

// Where a directory made of the copy stands in the replicated log (find_group_position).
Result<LogPosition> place_of(const CopyHead& head) {
  if (head.mark.empty() && head.position.empty()) {
    return invalid("the other node's data belong to no group");
  }
  if (head.mark.empty()) return decode_position(head.position);
  Result<LogPosition> mark = decode_position(head.mark);
  if (!mark.ok() || head.position.empty()) return mark;
  Result<LogPosition> position = decode_position(head.position);
  return position.ok() && position->cluster_id == mark->cluster_id ? position : mark;
}

bool is_final(const Status& status) {
  return status.code() == StatusCode::kNoSpace || status.code() == StatusCode::kUnsupported ||
         status.code() == StatusCode::kCancelled || status.code() == StatusCode::kLocked;
}

// What the answer of a node that does not accept the token leaves unsaid.
std::string token_advice(const std::string& token) {
  return token.empty() ? ". This server has no replication-token-file: each server of the group "
                         "needs one, with the same line"
                       : ". The file that replication-token-file names must have the same line on "
                         "each server of the group";
}

// A standby serves the copy rather than the primary; the newer one leaves less of the log to read.
bool serves_before(const GroupMember& a, const GroupMember& b) {
  if ((a.checkpoint_lsn == 0) != (b.checkpoint_lsn == 0)) return a.checkpoint_lsn != 0;
  if (a.primary != b.primary) return !a.primary;
  return a.checkpoint_lsn > b.checkpoint_lsn;
}

}  // namespace

Bootstrap::Bootstrap(RemoteLog& log, BootstrapOptions options)
    : log_(log), options_(std::move(options)) {}

template <typename Value, typename Request>
Result<Value> Bootstrap::answer_to(const Request& request) {
  const auto told = std::make_shared<std::promise<Result<Value>>>();
  request([told](const RemoteAnswer& answer, Value value) {
    is_heard(answer) ? told->set_value(std::move(value)) : told->set_value(no_answer(answer));
  });
  std::future<Result<Value>> answer = told->get_future();
  while (answer.wait_for(kPoll) != std::future_status::ready) {
    if (!options_.goes_on()) return cancelled();
  }
  Result<Value> value = answer.get();
  if (value.ok() && options_.on_heard) options_.on_heard();
  return value;
}

// What each try says again would fill the log.
void Bootstrap::say(LogLevel level, const std::string& text) {
  if (const int64_t now = now_ms(); said_.empty() || now >= say_again_ms_) {
    said_.clear();
    say_again_ms_ = now + kRepeatMs;
  }
  if (said_.size() >= kMaxSentences || !said_.insert(text).second) {
    ++unsaid_;
    return;
  }
  if (!options_.log) return;
  const size_t unsaid = std::exchange(unsaid_, 0);
  options_.log(level, unsaid == 0
                          ? text
                          : text + " (" + std::to_string(unsaid) + " such lines were left out)");
}

bool Bootstrap::rest() {
  const int64_t until = now_ms() + options_.retry_ms;
  while (now_ms() < until) {
    if (!options_.goes_on()) return false;
    std::this_thread::sleep_for(kPoll);
  }
  return options_.goes_on();
}

Result<RemoteState> Bootstrap::read_state() {
  return answer_to<RemoteState>([&](const auto& then) { log_.read_state(0, then); });
}

// The live nodes that have data and serve HTTP, the best one first.
Result<std::vector<GroupMember>> Bootstrap::find_sources() {
  using Records = std::vector<RemoteRecord>;
  const Result<Records> records = answer_to<Records>(
      [&](const auto& then) { log_.read_records(RemoteRecordKind::kNode, then); });
  if (!records.ok()) return records.status();
  std::vector<GroupMember> found;
  for (const RemoteRecord& record : *records) {
    Result<GroupMember> member = decode_member(record.name, record.value);
    if (!member.ok() || member->name == options_.node) continue;
    if (member->lsn != 0 && member->http_port != 0) found.push_back(std::move(*member));
  }
  std::sort(found.begin(), found.end(), serves_before);
  return found;
}

bool Bootstrap::needs_copy(const RemoteState& state, const EpochValue& epoch) const {
  if (holds_data(options_.directory)) return options_.anew || is_to_load_anew(options_.directory);
  return epoch.base_lsn != 0 || !state.trim.empty();
}

Status Bootstrap::run() {
  Result<std::unique_ptr<DirectoryLock>> lock = DirectoryLock::take(options_.directory);
  if (!lock.ok()) return lock.status();
  if (const Result<bool> installed = install_copy(options_.directory); !installed.ok()) {
    return installed.status();
  }
  // The directory continues by itself, or is found to be stale later.
  const bool is_replaced = options_.anew || is_to_load_anew(options_.directory);
  if (holds_data(options_.directory) && !is_replaced) return {};
  return load();
}

Status Bootstrap::load() {
  for (;;) {
    Result<RemoteState> state = read_state();
    if (state.status().code() == StatusCode::kCancelled) return state.status();
    Status status = state.status();
    if (state.ok()) {
      // The group does not exist: who may begin it is decided later.
      if (state->epoch.empty()) return {};
      Result<EpochValue> epoch = decode_epoch(state->epoch);
      if (!epoch.ok()) return epoch.status();
      if (!needs_copy(*state, *epoch)) return {};
      if (Status own = check_owner(*epoch); !own.ok()) return own;
      status = try_once(*epoch);
      if (status.ok()) return status;
    }
    if (options_.on_wait && status.code() != StatusCode::kCancelled) {
      options_.on_wait(status.message());
    }
    if (is_final(status) || trimmed_ >= kMaxTrimmed) return status;
    say(LogLevel::kWarning, "waiting: " + status.message());
    if (!rest()) return cancelled();
  }
}

// Data of one group are not replaced by those of another one.
Status Bootstrap::check_owner(const EpochValue& epoch) const {
  const std::string owner = options_.anew ? "" : load_anew_cluster(options_.directory);
  if (owner.empty() || owner == epoch.cluster_id) return {};
  return invalid(options_.directory + " was to get its data anew from the cluster id " + owner +
                 ", and the group \"" + options_.group + "\" has the cluster id " +
                 epoch.cluster_id +
                 ": they are not replaced. `sluice-journal lead` begins a group "
                 "with them; --reinit drops them");
}

// The next start continues what --reinit has begun, but not in another group. While no node has
// data, nothing has begun: the data here may be the only ones.
Status Bootstrap::keep_wish(const EpochValue& epoch) const {
  if (!options_.anew || !holds_data(options_.directory)) return {};
  if (load_anew_cluster(options_.directory) == epoch.cluster_id) return {};
  return ask_to_load_anew(options_.directory, epoch.cluster_id);
}

// What is to be done if that node never comes.
std::string Bootstrap::advice() const {
  if (!holds_data(options_.directory)) return {};
  const std::string kept = ". The data that this directory holds are kept until then";
  if (!is_to_load_anew(options_.directory)) {
    return kept + "; a start without --reinit continues with them";
  }
  return kept + "; if there is no such node any more, `sluice-journal lead` begins a new group " +
         "with them";
}

Status Bootstrap::try_once(const EpochValue& epoch) {
  Result<std::vector<GroupMember>> sources = find_sources();
  if (!sources.ok()) return sources.status();
  if (sources->empty()) {
    return invalid("no live node of the group \"" + options_.group + "\" of the cluster \"" +
                   options_.cluster + "\" has data and serves HTTP (http-port)" + advice());
  }
  if (Status kept = keep_wish(epoch); !kept.ok()) return kept;
  const GroupMember from = (*sources)[tries_++ % sources->size()];
  Status status = hold(from.checkpoint_lsn);
  if (status.ok()) status = load_from(epoch, from);
  // Until the next try nothing needs what lies behind the copy.
  if (!status.ok()) release();
  return status;
}

Status Bootstrap::load_from(const EpochValue& epoch, const GroupMember& from) {
  if (const Result<bool> removed = install_copy(options_.directory); !removed.ok()) {
    return removed.status();
  }
  if (Status status = download(from); !status.ok()) {
    return {status.code(),
            "the data of the node \"" + from.name +
                (status.code() == StatusCode::kNoSpace
                     ? "\" are not loaded: "
                     : "\" have not come whole, and are loaded again: ") +
                status.message() +
                (status.code() == StatusCode::kRefused ? token_advice(options_.token) : "")};
  }
  if (Status status = check_copy(epoch, head_); !status.ok()) return status;
  if (Status status = accept_copy(options_.directory); !status.ok()) return status;
  const Result<bool> installed = install_copy(options_.directory);
  if (!installed.ok()) return installed.status();
  loaded_ = true;
  if (options_.log) {
    options_.log(LogLevel::kInfo, "the data of the node \"" + from.name +
                                      "\" are in place, up to lsn " +
                                      std::to_string(head_.last_lsn));
  }
  return {};
}

Status Bootstrap::hold(Lsn lsn) {
  const Result<RemoteAnswer> answer = answer_to<RemoteAnswer>([&](const auto& then) {
    log_.put_record(RemoteRecordKind::kHold, options_.node, options_.owner, std::to_string(lsn),
                    [then](const RemoteAnswer& got) { then(got, got); });
  });
  if (!answer.ok() || answer->outcome == RemoteOutcome::kDone) return answer.status();
  return invalid("another process loads data as the node \"" + options_.node + "\"");
}

// On return the next hold comes behind this.
void Bootstrap::release() {
  static_cast<void>(answer_to<RemoteAnswer>([&](const auto& then) {
    log_.drop_record(RemoteRecordKind::kHold, options_.node,
                     [then](const RemoteAnswer& got) { then(got, got); });
  }));
}

Status Bootstrap::download(const GroupMember& from) {
  const CopySource source = {from.host, from.http_port, options_.token};
  say(LogLevel::kInfo, "loading the data of the node \"" + from.name + "\" from " + from.host +
                           ":" + std::to_string(from.http_port));
  CopyWriter writer(options_.directory, true, nullptr, options_.keep_free_bytes);
  CopyChecker checker(&writer);
  CopyClientOptions client;
  client.goes_on = options_.goes_on;
  Status status = options_.fetch(source, client, [&](Bytes bytes) {
    Status taken = checker.take(bytes);
    if (taken.ok() && options_.on_progress) {
      options_.on_progress(checker.bytes(), checker.head().bytes);
    }
    return taken;
  });
  // The end of the connection says nothing once everything is there.
  if (checker.has_ended()) status = {};
  if (status.ok()) status = checker.finish();
  head_ = checker.head();
  return status;
}

// The copy is of this group, and the log continues behind it.
Status Bootstrap::check_copy(const EpochValue& epoch, const CopyHead& head) {
  const Result<LogPosition> place = place_of(head);
  if (!place.ok()) return place.status();
  if (place->cluster_id != epoch.cluster_id || place->group != options_.group) {
    return invalid("the data are of the cluster id " + place->cluster_id + ", group \"" +
                   place->group + "\"; this group's cluster id is " + epoch.cluster_id);
  }
  // The mark is read after the frames: it is put before they are deleted, so it explains those that
  // are missing.
  const uint64_t from = std::max<uint64_t>(1, place->seq);
  const Result<RemoteFrames> frames =
      answer_to<RemoteFrames>([&](const auto& then) { log_.read_frames(from, 0, then); });
  if (!frames.ok()) return frames.status();
  const Result<RemoteState> state = read_state();
  if (!state.ok()) return state.status();
  const Status status = check_continues(*place, *frames, state->trim);
  if (status.code() != StatusCode::kStale) return status;
  ++trimmed_;
  return {StatusCode::kStale,
          "the replicated log was trimmed past the data while they were loaded, " +
              std::to_string(trimmed_) + " of at most " + std::to_string(kMaxTrimmed) + " times"};
}

}  // namespace sluice
