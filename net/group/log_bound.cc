#include "net/group/log_bound.h"

namespace sluice {

namespace {

struct Bound {
  unsigned percent;
  LogRoom room;
  const char* passed;
  const char* left;
};
constexpr Bound kBounds[] = {
    {50, LogRoom::kAll, "new checkpoints are made so that it can be trimmed",
     "there is room again"},
    {75, LogRoom::kNoGrowth, "commands that grow the data are refused until it is trimmed",
     "commands that grow the data are accepted again"},
    {95, LogRoom::kNothing, "all changes are refused until it is trimmed",
     "commands that do not grow the data are accepted again"},
};

uint64_t part_of(uint64_t limit, unsigned percent) { return limit / 100 * percent; }

}  // namespace

void LogBound::step(int64_t now_ms) {
  if (now_ms < ask_at_ms_) return;
  ask_at_ms_ = now_ms + kAskMs;
  log_.status([this, now_ms](const RemoteAnswer& answer, const std::vector<RemoteMember>& members) {
    inbox_.post([this, now_ms, answers = answer.outcome == RemoteOutcome::kDone, members] {
      if (answers) return on_status(members);
      ask_at_ms_ = std::min(ask_at_ms_, now_ms + kAskAgainMs);
    });
  });
}

// A service that does not tell its quota leaves what was known.
void LogBound::on_status(const std::vector<RemoteMember>& members) {
  uint64_t quota = UINT64_MAX;
  service_bytes_ = 0;
  for (const RemoteMember& member : members) {
    service_bytes_ = std::max(service_bytes_, member.bytes);
    if (member.quota_bytes != 0) quota = std::min(quota, member.quota_bytes);
  }
  if (quota == UINT64_MAX || quota == quota_) return;
  quota_ = quota;
  if (allowed() >= configured_ || !sink_) return;
  sink_(LogLevel::kWarning,
        "journal-log-bytes is " + std::to_string(configured_) + ", but etcd's quota of " +
            std::to_string(quota) +
            " bytes allows the journal half of that: " + std::to_string(allowed()) +
            ". Raise --quota-backend-bytes, or lower journal-log-bytes");
}

bool LogBound::is_half(uint64_t bytes) const { return bytes >= part_of(limit_bytes(), 50); }

LogRoom LogBound::room() const { return passed_ == 0 ? LogRoom::kAll : kBounds[passed_ - 1].room; }

bool LogBound::note(uint64_t bytes, bool leads, const std::string& kept_by) {
  bytes_ = bytes;
  size_t passed = 0;
  for (const Bound& bound : kBounds) {
    if (leads && bytes >= part_of(limit_bytes(), bound.percent)) ++passed;
  }
  if (passed == passed_) return false;
  const bool fuller = passed > passed_;
  passed_ = passed;
  if (leads && sink_) say(fuller, kept_by);
  return true;
}

void LogBound::say(bool fuller, const std::string& kept_by) const {
  const Bound& bound = kBounds[fuller ? passed_ - 1 : passed_];
  sink_(LogLevel::kWarning, "the journal in etcd holds " + std::to_string(bytes_) + " bytes, " +
                                (fuller ? "more than " : "less than ") +
                                std::to_string(bound.percent) + " % of journal-log-bytes (" +
                                std::to_string(limit_bytes()) +
                                "): " + (fuller ? bound.passed : bound.left) +
                                (fuller && !kept_by.empty() ? ". What keeps it: " + kept_by : ""));
}

}  // namespace sluice
