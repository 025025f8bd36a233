// Nodes of a group over a fake log, in simulated time. Used by one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "net/group/group_node.h"
#include "storage/format.h"
#include "tests/support/fake_remote_log.h"
#include "tests/support/storage_support.h"
#include "tests/support/test.h"

namespace sluice::test {

constexpr int64_t kFailoverTimeoutMs = 1000;

// A process: what it has applied, and what it has written as a primary.
class GroupNodeRun final : private GroupHost {
 public:
  GroupNodeRun(FakeRemoteService& service, const int64_t& now, GroupNodeOptions options)
      : now_(now), log_(service.connect()), lease_(kFailoverTimeoutMs), last_(options.begin.lsn) {
    options.now_ms = [this] { return now_; };
    options.log = [this](LogLevel, Bytes text) { said.emplace_back(text); };
    node_ = std::make_unique<GroupNode>(*log_, inbox_, static_cast<GroupHost&>(*this), lease_,
                                        std::move(options));
  }
  ~GroupNodeRun() override { kill(); }

  void kill() {
    if (!alive) return;
    alive = false;
    if (commit_ != nullptr) commit_->stop();
    log_->close();
  }

  void step() {
    if (!alive) return;
    while (!queue_.empty() && !stalled) apply_one();
    if (commit_ != nullptr) {
      const auto now = Clock::now();
      if (commit_->wants(filling_.size(), now)) {
        commit_->add(std::exchange(filling_, {}), now);
      }
      commit_->pump(now);
      while (commit_->take_committed().has_value()) {
      }
    }
    node_->step(now_);
  }
  // Writes a unit, as the primary, of so many bytes that no compression makes fewer.
  void write(size_t bytes = 20) {
    CHECK(leads());
    std::string records(bytes, '\0');
    for (char& byte : records) byte = static_cast<char>(random_());
    ++last_;
    filling_.append({records, 1}, crc32c(records), {last_, 1, 0}, nullptr, kMaxUnitBytes);
  }

  // CONFIG SET has changed what others are told of it.
  void announce(const std::string& host, uint16_t port, uint32_t priority,
                const std::string& config_mark = "") {
    GroupMember told;
    told.host = host;
    told.port = port;
    told.priority = priority;
    told.config_mark = config_mark;
    node_->announce(told);
  }

  bool leads() const { return alive && role() == GroupRole::kPrimary; }
  bool answers_reads() const { return leads() && lease_.holds(now_); }
  int64_t lease_ms() const { return lease_.remaining_ms(now_); }
  GroupRole role() const { return node_->view()->role; }
  GroupNode& node() { return *node_; }
  Lsn last() const { return last_; }
  LogPosition position() const { return commit_ != nullptr ? commit_->position() : applied_; }

  bool alive = true;
  bool stalled = false;  // applies nothing
  bool durable = true;
  bool has_caught_up = false;
  bool writes_stopped = false;
  Lsn checkpoint = 0;  // its newest one begins there
  Lsn wanted = 0;      // where one was asked to begin, the last time
  bool wants_values = false;
  size_t most_held = 0;  // bytes of commits that waited to be applied
  std::vector<std::string> said;
  bool stuck = false;  // serves nobody
  Lsn acknowledged = 0;
  // How long after it has taken over, if it must not acknowledge anything before.
  std::chrono::milliseconds acknowledges_in{0};
  std::optional<int> ended;
  Status reason;

 private:
  using Clock = ReplicatedCommit::Clock;

  void apply(std::vector<TailCommit> commits) override {
    for (TailCommit& commit : commits) {
      held_ += commit.units.size();
      queue_.push_back(std::move(commit));
    }
    most_held = std::max(most_held, held_);
  }
  void apply_one() {
    const TailCommit commit = std::move(queue_.front());
    queue_.pop_front();
    held_ -= commit.units.size();
    CHECK(commit.first_lsn == last_ + 1);
    last_ = commit.position.lsn;
    applied_ = commit.position;
    inbox_.post([this, commit] { node_->on_applied(commit.position, commit.units.size()); });
  }
  void caught_up() override {
    CHECK(!has_caught_up);
    has_caught_up = true;
  }
  void promote(ReplicatedOptions options) override {
    CHECK(options.begin.lsn == last_);
    if (options.acknowledge_from != Clock::time_point()) {
      acknowledges_in = std::chrono::duration_cast<std::chrono::milliseconds>(
          options.acknowledge_from - Clock::now());
    }
    ReplicatedCallbacks callbacks;
    callbacks.on_durable = [this](Lsn lsn) { acknowledged = lsn; };
    callbacks.on_change = [] {};
    callbacks.on_failed = [this](const Status&) { inbox_.post([this] { end(76, {}); }); };
    commit_ = std::make_shared<ReplicatedCommit>(*log_, std::move(options), std::move(callbacks));
    inbox_.post([this] { node_->on_promoted(); });
  }
  void stop_writing() override { writes_stopped = true; }
  bool is_durable() override { return durable && filling_.empty() && commit_->idle(); }
  void resume_writing() override { writes_stopped = false; }
  LogPosition led_position() override { return commit_->position(); }
  bool is_stuck() override { return stuck; }
  void fill_record(GroupMember& self) override {
    self.checkpoint_lsn = checkpoint;
    self.wants_values = wants_values;
  }
  void want_checkpoint(Lsn lsn) override { wanted = lsn; }
  void end(int exit_code, const Status& why) override {
    if (!ended.has_value()) ended = exit_code;
    if (reason.ok()) reason = why;
  }
  void view_changed(std::shared_ptr<const GroupView>) override {}

  const int64_t& now_;
  std::unique_ptr<RemoteLog> log_;
  GroupInbox inbox_;
  ReadLease lease_;
  std::unique_ptr<GroupNode> node_;
  std::shared_ptr<ReplicatedCommit> commit_;
  CommitBuffer filling_;
  std::deque<TailCommit> queue_;
  size_t held_ = 0;
  std::mt19937_64 random_{1};
  Lsn last_ = 0;
  LogPosition applied_;
};

struct GroupRun {
  // `options`: of all nodes, as far as add() does not say otherwise.
  explicit GroupRun(uint64_t seed = 1, GroupNodeOptions options = {})
      : service(seed), common(std::move(options)) {}

  // An operator's.
  void set_pause(int64_t for_ms) {
    const std::unique_ptr<RemoteLog> log = service.connect();
    bool done = false;
    const int64_t end = for_ms == 0 ? 0 : now + for_ms;
    log->set_pause(encode_pause({end, "b", static_cast<uint64_t>(now)}),
                   [&](const RemoteAnswer&) { done = true; });
    REQUIRE(until([&] { return done; }).has_value());
    log->close();
  }
  GroupNodeRun& add(const std::string& name, const LogPosition& begin = {},
                    const std::string& owner = "", bool begins = false) {
    GroupNodeOptions options = common;
    options.cluster = "main";
    options.group = "1";
    options.owner = owner.empty() ? "directory-of-" + name : owner;
    options.self.name = name;
    static int runs = 0;
    options.self.run_id = name + "-run-" + std::to_string(++runs);
    options.self.host = "127.0.0.1";
    options.self.port = 6379;
    options.begin = begin;
    options.election = {.node = name,
                        .run_id = options.self.run_id,
                        .failover_timeout_ms = kFailoverTimeoutMs,
                        .delay_ms = name == "b" ? 20 : 0};
    options.begins = begins;
    options.wall_ms = [this] { return now; };
    options.make_id = [name] { return "cluster-of-" + name; };
    nodes.push_back(std::make_unique<GroupNodeRun>(service, now, std::move(options)));
    return *nodes.back();
  }
  void run(int64_t ms) {
    for (const int64_t end = now + ms; now < end;) {
      ++now;
      for (int i = 0; i < 8; ++i) service.step();
      for (const auto& node : nodes) node->step();
      // No two primaries answer reads at once.
      CHECK(std::count_if(nodes.begin(), nodes.end(),
                          [](const auto& node) { return node->answers_reads(); }) <= 1);
    }
  }
  // How long it took, or nothing after `most` milliseconds.
  std::optional<int64_t> until(const std::function<bool()>& condition, int64_t most = 10'000) {
    const int64_t begun = now;
    while (!condition()) {
      if (now - begun >= most) return std::nullopt;
      run(1);
    }
    return now - begun;
  }
  // "a", which leads.
  GroupNodeRun& add_primary() {
    GroupNodeRun& node = add("a");
    REQUIRE(until([&] { return node.leads(); }).has_value());
    return node;
  }
  // "b", which has caught up.
  GroupNodeRun& add_standby() {
    GroupNodeRun& node = add("b");
    REQUIRE(until([&] { return node.has_caught_up; }).has_value());
    return node;
  }
  // A primary, "a", with two standbys; it has written something that they apply if they are not
  // stalled.
  void begin_three(bool stalled) {
    GroupNodeRun& a = add_primary();
    GroupNodeRun& b = add("b");
    GroupNodeRun& c = add("c");
    REQUIRE(until([&] { return b.has_caught_up && c.has_caught_up; }).has_value());
    run(300);
    b.stalled = c.stalled = stalled;
    a.write();
    run(50);
  }
  // The first one that takes over.
  GroupNodeRun& taker() {
    const auto taking = [](const auto& node) {
      return node->alive && node->role() == GroupRole::kTaking;
    };
    REQUIRE(until([&] { return std::any_of(nodes.begin(), nodes.end(), taking); }).has_value());
    return **std::find_if(nodes.begin(), nodes.end(), taking);
  }
  bool has_record(const std::string& name) {
    const std::unique_ptr<RemoteLog> log = service.connect();
    std::optional<bool> found;
    log->read_records(RemoteRecordKind::kNode, [&](const RemoteAnswer&,
                                                   const std::vector<RemoteRecord>& records) {
      found = std::any_of(records.begin(), records.end(),
                          [&](const RemoteRecord& record) { return record.name == name; });
    });
    REQUIRE(until([&] { return found.has_value(); }).has_value());
    log->close();
    return *found;
  }

  int64_t now = 1'000'000;
  FakeRemoteService service;
  const GroupNodeOptions common;
  std::vector<std::unique_ptr<GroupNodeRun>> nodes;
};

}  // namespace sluice::test
