#include "net/server/connection_limit.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>
#include <utility>

#include "net/io/session.h"
#include "net/process/clocks.h"
#include "net/server/file_limit.h"

namespace sluice {

namespace {

// Delay between two rounds of closing if the first one has freed nothing.
constexpr int64_t kReliefPauseMs = 10'000;

}  // namespace

// As in Redis, and with its texts: serves fewer clients instead of not starting.
Status fit_connections(Config& config) {
  const std::shared_ptr<const Settings> settings = config.settings();
  const uint64_t wanted = wanted_files(*settings);
  const uint64_t allowed = allow_files(wanted);
  if (allowed >= wanted) return {};
  const std::string why = std::strerror(errno);
  const uint64_t reserved = reserved_files(*settings);
  const uint64_t http = http_connections(*settings);
  const uint64_t least = reserved + (http != 0 ? 2 : 1);
  if (allowed < least) {
    return invalid("Your current 'ulimit -n' of " + std::to_string(allowed) +
                   " is not enough for the server to start. Please increase your open file limit "
                   "to at least " +
                   std::to_string(least) + ". Exiting.");
  }
  const uint64_t room = allowed - reserved;
  const auto resp = static_cast<uint64_t>(settings->maxclients);
  const uint64_t less_http = http == 0 ? 0 : std::max<uint64_t>(room * http / (resp + http), 1);
  const uint64_t less_resp = room - less_http;
  spdlog::warn("You requested maxclients of {} requiring at least {} max file descriptors.", resp,
               wanted);
  spdlog::warn("Server can't set maximum open files to {} because of OS error: {}.", wanted, why);
  spdlog::warn(
      "Current maximum open files is {}. maxclients has been reduced to {} to compensate for low "
      "ulimit. If you need higher maxclients increase 'ulimit -n'.",
      allowed, less_resp);
  Config::Pairs less = {{"maxclients", std::to_string(less_resp)}};
  if (http != 0) {
    spdlog::warn("http-maxclients has been reduced to {} likewise.", less_http);
    less.emplace_back("http-maxclients", std::to_string(less_http));
  }
  config.lower(less);
  return {};
}

Status check_connections(const Settings& settings) {
  const uint64_t wanted = wanted_files(settings);
  const uint64_t allowed = allow_files(wanted);
  if (allowed >= wanted) return {};
  const uint64_t others = wanted - static_cast<uint64_t>(settings.maxclients);
  return invalid(
      "The operating system is not able to handle the specified number of clients, try with " +
      std::to_string(allowed > others ? allowed - others : 1));
}

// --- Accepting ---

std::vector<Strangers<Session>*> ConnectionLimit::strangers() {
  std::vector<Strangers<Session>*> all;
  for (const auto& thread : shared_.io_threads) all.push_back(&thread->strangers());
  return all;
}

bool ConnectionLimit::is_full() const {
  return shared_.state.connected_clients.load(std::memory_order_relaxed) >=
         shared_.state.limits.max_clients.load(std::memory_order_relaxed);
}

bool ConnectionLimit::may_accept() {
  if (spare_files_->missing() != 0) return false;
  return !is_full() || find_way(strangers()) != Way::kLater;
}

bool ConnectionLimit::may_accept_http() {
  return spare_files_->missing() == 0 && shared_.http->may_accept();
}

Listener::Refusal ConnectionLimit::refuse(bool loopback) {
  const bool full = is_full() && !make_room(strangers(), shared_.state.connected_clients,
                                            shared_.state.limits.max_clients.load());
  return Listener::resp_refusal(shared_.state, loopback, full);
}

// --- Spare descriptors ---

void ConnectionLimit::relieve() {
  const int64_t now_ms = Clocks::steady_ms();
  const bool taken = spare_files_->missing() != 0;
  if (taken) spare_files_->refill();
  const size_t missing = spare_files_->missing();
  // If closing the last connections has freed nothing, further ones are closed slowly.
  if (missing != 0 && (missing != missing_ || now_ms >= again_ms_)) {
    untold_ += close_connections(missing);
    again_ms_ = now_ms + kReliefPauseMs;
  }
  missing_ = missing;
  if ((!taken && untold_ == 0) || !in_log_.next(now_ms)) return;
  spdlog::warn(
      "Too many open files: the journal has taken spare descriptors, {} of which are missing now, "
      "and {} connections are closed to get them back. Raise ulimit -n, or LimitNOFILE of the "
      "service.",
      missing, std::exchange(untold_, 0));
}

// Connections told to close hold their descriptors for a while: until they are gone, no others are
// closed in addition.
size_t ConnectionLimit::close_connections(size_t count) {
  size_t closed = 0;
  while (closed < count && make_way(strangers())) ++closed;
  if (closed != 0) return closed;
  closed = close_idle(count);
  if (closed < count && shared_.http != nullptr) closed += shared_.http->close_some(count - closed);
  return closed;
}

// Closes those that have been silent for the longest time; those that wait for something come last.
size_t ConnectionLimit::close_idle(size_t count) {
  struct Candidate {
    bool is_waiting;
    int64_t active_ms;
    std::shared_ptr<SessionPort> port;
  };
  std::vector<Candidate> all;
  for (const auto& thread : shared_.io_threads) {
    for (auto& port : thread->sessions().ports()) {
      if (port->killed()) continue;
      all.push_back({port->is_waiting(), port->active_ms(), std::move(port)});
    }
  }
  count = std::min(count, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(),
                    [](const Candidate& a, const Candidate& b) {
                      return std::tie(a.is_waiting, a.active_ms) <
                             std::tie(b.is_waiting, b.active_ms);
                    });
  for (size_t i = 0; i < count; ++i) all[i].port->kill();
  return count;
}

}  // namespace sluice
