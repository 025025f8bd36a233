#include "net/server/server_group.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/udp.hpp>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>
#include <utility>

#include "engine/base/hex.h"
#include "engine/base/kill_point.h"
#include "net/config/token_setting.h"
#include "net/group/bootstrap.h"
#include "net/process/replace_file.h"
#include "net/process/version.h"
#include "net/process/wall_clock.h"
#include "storage/copy_writer.h"
#include "storage/etcd/etcd_log.h"
#include "storage/group_mark.h"
#include "storage/log_tail.h"
#include "storage/random_id.h"

namespace sluice {

namespace {

// One hold of I/O thread 0 by what is applied.
constexpr int64_t kSliceUs = 2000;
constexpr auto kCatchUpPoll = std::chrono::milliseconds(20);
constexpr size_t kIdDigits = 40;

bool is_id(const std::string& text) {
  return text.size() == kIdDigits &&
         std::all_of(text.begin(), text.end(), [](char c) { return hex_value(c) >= 0; });
}

// The id of a data directory, in its file `node-id`.
Result<std::string> directory_id(const std::string& dir) {
  const std::string path = dir + "/node-id";
  std::string id;
  if (std::ifstream file(path); file && std::getline(file, id) && is_id(id)) return id;
  id = random_id();
  if (Status status = replace_file(path, id + "\n"); !status.ok()) return status;
  return id;
}

std::string node_name(const Settings& settings, const std::string& id) {
  return settings.node_name.empty() ? "node-" + id.substr(0, 8) : settings.node_name;
}

// The address from which this machine speaks to etcd.
std::string host_to(const std::vector<std::string>& endpoints) {
  using asio::ip::udp;
  for (const std::string& url : endpoints) {
    const Result<HttpEndpoint> endpoint = parse_http_endpoint(url, {});
    if (!endpoint.ok()) continue;
    asio::io_context context;
    error_code error;
    udp::socket socket(context);
    // Sends nothing: it only chooses the route.
    asio::connect(socket, udp::resolver(context).resolve(endpoint->host, endpoint->port, error),
                  error);
    if (!error) return socket.local_endpoint(error).address().to_string();
  }
  return "127.0.0.1";
}

}  // namespace

// --- Start and end -------------------------------------------------------------------------------

ServerGroup::~ServerGroup() {
  stop();
  if (log_ != nullptr) log_->close();
}

Status ServerGroup::open(const Settings& settings) {
  EtcdOptions options;
  options.endpoints = settings.etcd_endpoints;
  options.user = settings.etcd_user;
  options.ca_file = settings.etcd_tls_ca_cert_file;
  options.cert_file = settings.etcd_tls_cert_file;
  options.key_file = settings.etcd_tls_key_file;
  options.compact = settings.journal_etcd_compact;
  options.cluster = settings.cluster_name;
  options.group = settings.group;
  options.log = storage_log_sink();
  if (!options.user.empty()) {
    options.password = [path = settings.etcd_password_file] { return read_secret(path); };
    if (const auto password = options.password(); !password.ok()) return password.status();
  }
  Result<std::unique_ptr<RemoteLog>> log = make_etcd_log(options);
  if (!log.ok()) return log.status();
  log_ = std::move(*log);
  pause_wish_ = std::make_shared<PauseWish>(*log_, Clocks::boot_ms, storage_log_sink());
  gate_.emplace(settings.failover_timeout_ms, settings.journal_patience_ms);
  gate_->refuse_old_data(!settings.replica_serve_stale_data);
  shared_.state.gate = &*gate_;
  return {};
}

Result<GroupNodeOptions> ServerGroup::node_options(const Settings& settings) {
  Result<std::string> id = directory_id(settings.dir);
  if (!id.ok()) return id.status();
  GroupNodeOptions options;
  options.cluster = settings.cluster_name;
  options.group = settings.group;
  options.owner = *id;
  options.self.name = node_name(settings, *id);
  options.self.run_id = shared_.run_id;
  routed_host_ = host_to(settings.etcd_endpoints);
  announce_to(options.self, settings);
  options.self.version = kSluiceVersion;
  options.self.tls_port = listeners_.tls_port();
  options.self.http_port = listeners_.http_port();
  options.self.sentinel_port = listeners_.sentinel_port();
  const RecoveryResult& recovered = store_.get().recovered();
  Result<std::optional<LogPosition>> begin = find_group_position(settings.dir, recovered);
  if (!begin.ok()) return begin.status();
  if (begin->has_value()) {
    options.begin = **begin;
    options.begins = options.begin.seq == 0 && options.begin.lsn == recovered.last_lsn;
  } else {
    options.begin.lsn = recovered.last_lsn;
  }
  std::random_device device;
  options.election = {.node = options.self.name,
                      .run_id = shared_.run_id,
                      .failover_timeout_ms = settings.failover_timeout_ms,
                      .delay_ms = device() % 101};
  options.in_flight = static_cast<size_t>(settings.journal_in_flight);
  options.checkpoint_copies = static_cast<size_t>(settings.checkpoint_copies);
  options.max_log_bytes = settings.journal_log_bytes;
  options.now_ms = [] { return Clocks::boot_ms(); };
  options.wall_ms = [] { return wall_ms(); };
  options.make_id = random_id;
  options.log = storage_log_sink();
  return options;
}

// Where the other nodes and clients reach this one, and what they find out by its settings.
void ServerGroup::announce_to(GroupMember& self, const Settings& settings) const {
  const auto port = static_cast<uint16_t>(settings.replica_announce_port);
  self.host = settings.replica_announce_ip.empty() ? routed_host_ : settings.replica_announce_ip;
  self.port = port != 0 ? port : listeners_.port();
  self.priority = static_cast<uint32_t>(settings.replica_priority);
  self.config_mark = shared_.config.mark();
}

void ServerGroup::settings_changed(const Settings& settings) {
  // By way of the thread that moves the listener to another port, perhaps after this.
  shared_.io_threads[0]->post([this, settings] {
    inbox_.post([this, settings] {
      GroupMember self;
      announce_to(self, settings);
      node_->announce(self);
    });
  });
}

bool ServerGroup::load_copy(bool anew, const std::string& token) {
  const std::shared_ptr<const Settings> settings = shared_.config.settings();
  loading_.begin_reading();
  Status status = load_copy_as(*settings, anew, token);
  if (status.ok()) return true;
  if (status.code() != StatusCode::kCancelled) return life_.refuse_start(status);
  if (set_back_) life_.finish(kFencedExitCode, "the wall clock was set back");
  return false;
}

void ServerGroup::publish_waiting(const Settings& settings, const std::string& node,
                                  const std::string& why) {
  auto view = std::make_shared<GroupView>();
  view->cluster = settings.cluster_name;
  view->group = settings.group;
  view->node = node;
  view->waits_for = why;
  MutexLock lock(mutex_);
  first_view_ = std::move(view);
}

Status ServerGroup::load_copy_as(const Settings& settings, bool anew, const std::string& token) {
  std::error_code error;
  std::filesystem::create_directories(settings.dir, error);
  if (error) return io_error("cannot create " + settings.dir + ": " + error.message());
  Result<std::string> id = directory_id(settings.dir);
  if (!id.ok()) return id.status();
  BootstrapOptions options;
  options.directory = settings.dir;
  options.cluster = settings.cluster_name;
  options.group = settings.group;
  options.node = node_name(settings, *id);
  options.owner = *id;
  publish_waiting(settings, options.node, "");
  options.on_wait = [this, &settings, node = options.node](const std::string& why) {
    publish_waiting(settings, node, why);
  };
  options.on_heard = [this] { opened_ms_.store(Clocks::boot_ms(), std::memory_order_relaxed); };
  options.token = token;
  options.anew = anew;
  options.keep_free_bytes = settings.min_free_disk_bytes;
  options.goes_on = [this] {
    return !was_set_back() && !life_.wait(std::chrono::milliseconds(0), [] { return true; });
  };
  options.on_progress = [this](uint64_t done, uint64_t total) {
    static_cast<void>(loading_.update({done, total, false}));
  };
  options.log = storage_log_sink();
  Bootstrap bootstrap(*log_, std::move(options));
  Status status = bootstrap.run();
  if (bootstrap.has_loaded()) held_as_ = node_name(settings, *id);
  return status;
}

bool ServerGroup::start() {
  const std::shared_ptr<const Settings> settings = shared_.config.settings();
  Result<GroupNodeOptions> options = node_options(*settings);
  if (!options.ok()) return life_.refuse_start(options.status());
  spdlog::info(
      "Node \"{}\" of group \"{}\", cluster \"{}\": following the replicated log from lsn {}",
      options->self.name, options->group, options->cluster, options->begin.lsn);
  cluster_id_ = options->begin.cluster_id;
  follower_ = std::make_unique<Follower>(*shared_.engine);
  users_mark_.emplace(shared_.engine->acl());
  watch_.emplace(shared_.io_threads, script_engine(*shared_.engine), settings->watchdog_ms);
  node_ = std::make_unique<GroupNode>(*log_, inbox_, static_cast<GroupHost&>(*this), gate_->lease(),
                                      std::move(*options));
  started_.store(node_.get(), std::memory_order_release);
  thread_ = Thread("sluice-group", [this] { run(); });
  while (!caught_up_.load()) {
    if (ended_.load() || life_.wait(kCatchUpPoll, [] { return false; })) return false;
  }
  // From here on the node's record says what it needs of the log.
  if (!held_as_.empty()) {
    log_->drop_record(RemoteRecordKind::kHold, held_as_, [](const RemoteAnswer&) {});
  }
  return true;
}

void ServerGroup::run() {
  while (!stopping_.load()) {
    const int64_t now_ms = Clocks::boot_ms();
    const int64_t due_ms = node_->step(now_ms);
    if (const auto wish = wish_.step(*node_->view(), node_->hand_over(), Clocks::boot_ms())) {
      node_->resign(wish->preferred, kFencedExitCode, wish->give_up_ms);
    }
    // Each time: the hand-over may have been given up.
    if (was_set_back()) node_->resign("", kFencedExitCode, INT64_MAX);
    gate_->heard(node_->heard_ms());
    tend_gate(Clocks::boot_ms());
    const int64_t wait_ms = std::clamp<int64_t>(due_ms - Clocks::boot_ms(), 0, 1000);
    inbox_.wait(std::chrono::milliseconds(wait_ms));
  }
}

bool ServerGroup::was_set_back() {
  if (const int64_t step_ms = wall_watch_.set_back_ms(); step_ms != 0) {
    set_back_ = true;
    spdlog::warn(
        "The wall clock was set back by {} s: this server starts again, since what waits for etcd "
        "would stand still for as long",
        (step_ms + 500) / 1000);
  }
  return set_back_;
}

// Requests that wait for the lease of reads go on. While it is over no lease of a job runs, since
// nobody could extend it. A hand-over holds all requests, but no longer than journal-patience while
// the log is out of reach: it is given up; if the epoch is being given away, the gate, which stays
// closed, refuses them.
void ServerGroup::tend_gate(int64_t now_ms) {
  const bool hands_over = busy_threads_ != nullptr;
  Engine& engine = *shared_.engine;
  const int64_t steady_ms = shared_.state.clocks.read().steady_ms;
  if (gate_->is_open(now_ms)) {
    if (engine.resume_lease_clock(steady_ms)) shared_.state.wake_timer();
    if (gate_->end_wait()) release_requests(Hold::kJournal);
    return;
  }
  engine.stop_lease_clock(steady_ms);
  if (!hands_over) return;
  gate_->begin_wait(now_ms);
  if (gate_->left_ms(now_ms) != 0) return;
  gate_->lease().has_ended() ? resume_writing() : static_cast<void>(node_->hand_over().abort());
}

void ServerGroup::release_requests(Hold why) {
  shared_.engine->pause.release(why);
  // Nothing was due before the end of the hold.
  shared_.state.wake_timer();
  for (const auto& thread : shared_.io_threads) thread->pause_changed();
}

void ServerGroup::leave() {
  if (!thread_.joinable() || ended_.load()) return;
  // An append was refused: another node has the epoch, so there is nothing to give away.
  if (life_.exit_code() == kFencedExitCode) return;
  inbox_.post([this] { node_->resign("", 0, INT64_MAX); });
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!ended_.load() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (!ended_.load()) {
    spdlog::warn(
        "The group could not be handed over in time; what waits for etcd stays unanswered");
    // The end waits no longer for what cannot be acknowledged.
    life_.fail_journal();
  }
}

void ServerGroup::stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true);
  inbox_.post([] {});
  thread_.join();
}

// The control thread, which waits for ended_, must find everything else done.
void ServerGroup::end(int exit_code, const Status& reason) {
  if (exit_code != 0) {
    if (!reason.ok()) spdlog::error("{}", reason.message());
    if (reason.code() == StatusCode::kStale) exit_code = end_to_load_anew();
    life_.finish(exit_code, reason.message());
    if (exit_code == kFencedExitCode) {
      spdlog::info("Exiting with code {}, to start again as a standby", exit_code);
    }
    // Nothing is written any more; replies that wait are not sent.
    life_.fail_journal();
  }
  ended_.store(true);
}

// The log was trimmed past what this node has. What it has is in the log's order, so nothing is
// lost with it.
int ServerGroup::end_to_load_anew() {
  const Status status = ask_to_load_anew(shared_.config.settings()->dir, cluster_id_);
  if (status.ok()) {
    spdlog::warn("The next start replaces the data by those of another node");
    return kFencedExitCode;
  }
  spdlog::error("{}", status.message());
  return 1;
}

// --- What is asked -------------------------------------------------------------------------------

std::shared_ptr<const GroupView> ServerGroup::view() const {
  if (const GroupNode* const node = started_.load(std::memory_order_acquire)) return node->view();
  MutexLock lock(mutex_);
  return first_view_;
}

void ServerGroup::follow(OnView on_view) {
  std::shared_ptr<const GroupView> seen = view();
  if (!on_view(*seen)) return;
  {
    MutexLock lock(mutex_);
    on_view_.push_back(std::move(on_view));
  }
  // Tells what was published meanwhile.
  inbox_.post([this, seen] {
    if (view() != seen) view_changed(view());
  });
}

void ServerGroup::view_changed(std::shared_ptr<const GroupView> view) {
  difference_log_.note(*view);
  shared_.engine->options().log_room.store(view->log_room);
  // Half of etcd's quota, if that is less than journal-log-bytes.
  if (view->log_limit_bytes != 0) {
    shared_.engine->options().max_change_bytes.store(view->log_limit_bytes);
  }
  store_.get().journal().refuse_moves(std::any_of(
      view->members.begin(), view->members.end(),
      [&](const GroupMember& member) { return view->is_standby(member) && member.wants_values; }));
  std::vector<OnView> told;
  {
    MutexLock lock(mutex_);
    told.swap(on_view_);
  }
  std::erase_if(told, [&](const OnView& on_view) { return !on_view(*view); });
  MutexLock lock(mutex_);
  std::move(told.begin(), told.end(), std::back_inserter(on_view_));
}

int64_t ServerGroup::view_age_ms() const {
  const GroupNode* const node = started_.load(std::memory_order_acquire);
  return Clocks::boot_ms() - std::max(opened_ms_.load(std::memory_order_relaxed),
                                      node != nullptr ? node->heard_ms() : 0);
}

int64_t ServerGroup::lease_ms() const { return gate_->lease().remaining_ms(Clocks::boot_ms()); }

Status ServerGroup::hand_over(const std::string& preferred, int64_t timeout_ms,
                              OnHandOver when_near) {
  Status status = check_hand_over(*view(), preferred, wish_.near_lsn());
  const bool waits = status.code() == StatusCode::kStale && when_near != nullptr;
  if (!status.ok() && !waits) return status;
  const int64_t now_ms = Clocks::boot_ms();
  const auto after = [now_ms](int64_t ms) {
    return ms > INT64_MAX - now_ms ? INT64_MAX : now_ms + ms;
  };
  HandOverWish::Wish wish;
  wish.preferred = preferred;
  wish.wait_until_ms = after(timeout_ms == 0 ? kNearPatienceMs : timeout_ms);
  wish.give_up_ms = timeout_ms == 0 ? INT64_MAX : after(timeout_ms);
  wish.then = std::move(when_near);
  wish.asked = started_.load(std::memory_order_acquire)->hand_over().claim();
  if (wish.asked == 0) return invalid("FAILOVER already in progress.");
  inbox_.post([this, wish = std::move(wish)] { wish_.set(wish); });
  return {};
}

Status ServerGroup::abort_hand_over() {
  GroupNode* const node = started_.load(std::memory_order_acquire);
  if (node != nullptr && node->hand_over().abort()) return {};
  return invalid("no hand-over is waiting");
}

Status ServerGroup::pause(int64_t for_ms) {
  if (started_.load(std::memory_order_acquire) == nullptr) return invalid("this node is starting");
  const std::shared_ptr<const GroupView> group = view();
  const int64_t now_ms = wall_ms();
  // What was heard of is older, whatever the clock of its node says.
  const uint64_t number = std::max(static_cast<uint64_t>(now_ms), group->pause_number + 1);
  pause_wish_->put({for_ms == 0 ? 0 : now_ms + for_ms, group->node, number});
  return {};
}

// --- GroupHost: the group's thread ---------------------------------------------------------------

void ServerGroup::caught_up() { caught_up_.store(true); }

void ServerGroup::promote(ReplicatedOptions options) {
  // Requests wait for the first beat.
  gate_->begin_leading();
  store_.get().journal().lead(*log_, std::move(options));
  on_first_thread([this] {
    IoThread& thread = *shared_.io_threads[0];
    follower_->promote(thread.clock().read());
    kill_point("promoted");
    shared_.state.wake_timer();
    inbox_.post([this] { node_->on_promoted(); });
  });
}

LogPosition ServerGroup::led_position() {
  const ReplicatedCommit* const remote = store_.get().journal().replication();
  return remote != nullptr ? remote->position() : LogPosition();
}

void ServerGroup::fill_record(GroupMember& self) {
  self.users_mark = users_mark_->step();
  self.wants_values = store_.get().journal().wants_values();
  const CheckpointStatus status = store_.get().checkpointer()->status();
  self.checkpoint_lsn = status.last.begin_lsn;
  self.checkpoint_bytes = status.last.bytes;
}

void ServerGroup::want_checkpoint(Lsn lsn) { store_.get().checkpointer()->want(lsn); }

// Commands that run now end first.
void ServerGroup::stop_writing() {
  shared_.engine->pause.hold(Hold::kHandOver, kNeverMs);
  busy_threads_ = std::make_shared<std::atomic<int>>(static_cast<int>(shared_.io_threads.size()));
  for (const auto& thread : shared_.io_threads) {
    thread->post([busy = busy_threads_, raw = thread.get()] {
      raw->levels().run_outermost([busy] { busy->fetch_sub(1); });
    });
  }
}

void ServerGroup::resume_writing() {
  busy_threads_.reset();
  release_requests(Hold::kHandOver);
}

bool ServerGroup::is_durable() {
  GroupCommitJournal& journal = store_.get().journal();
  // Nothing more is acknowledged: another node should lead at once.
  if (journal.failed()) return true;
  if (busy_threads_ == nullptr || busy_threads_->load() != 0) return false;
  if (journal.replication() == nullptr) return false;
  journal.flush();
  return journal.durable_lsn() >= journal.last_lsn() && journal.replication()->idle();
}

// --- What another primary has written ------------------------------------------------------------

void ServerGroup::on_first_thread(std::function<void()> task) {
  IoThread& first = *shared_.io_threads[0];
  first.post([&first, task = std::move(task)] { first.levels().run_outermost(task); });
}

void ServerGroup::apply(std::vector<TailCommit> commits) {
  {
    MutexLock lock(mutex_);
    for (TailCommit& commit : commits) queue_.push_back(std::move(commit));
    if (std::exchange(applying_, true)) return;
  }
  on_first_thread([this] { apply_some(); });
}

void ServerGroup::apply_some() {
  if (ended_.load()) return;
  const int64_t until_us = Clocks::steady_us() + kSliceUs;
  while (commit_.has_value() || begin_commit()) {
    if (!apply_unit()) return;
    if (Clocks::steady_us() >= until_us) return on_first_thread([this] { apply_some(); });
  }
}

// False: there is nothing to apply.
bool ServerGroup::begin_commit() {
  {
    MutexLock lock(mutex_);
    applying_ = !queue_.empty();
    if (!applying_) return false;
    commit_ = std::move(queue_.front());
    queue_.pop_front();
  }
  store_.get().journal().follow_begins(*commit_);
  cursor_.emplace(commit_->units, commit_->units.size());
  return true;
}

// False: the unit cannot be applied, which ends the server.
bool ServerGroup::apply_unit() {
  if (cursor_->next()) {
    const UnitHeader& header = cursor_->header();
    const Times& now = shared_.io_threads[0]->clock().read();
    Status status = follower_->apply(header.lsn, cursor_->records(), header.records, now);
    if (status.ok()) return true;
    inbox_.post([this, status] {
      life_.finish(1, status.message());
      node_->resign("", 1, INT64_MAX);
    });
    return false;
  }
  cursor_.reset();
  inbox_.post([this, commit = std::make_shared<TailCommit>(std::move(*commit_))] {
    if (store_.get().journal().follow(*commit)) {
      node_->on_applied(commit->position, commit->units.size());
    }
  });
  commit_.reset();
  return true;
}

}  // namespace sluice
