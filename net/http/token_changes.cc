// Changes of tokens and their users while requests are in progress.
#include <algorithm>
#include <chrono>

#include "net/http/connection.h"
#include "net/http/problem.h"

namespace sluice {

std::shared_ptr<const Tokens> HttpService::tokens() const {
  MutexLock lock(tokens_mutex_);
  return tokens_;
}

void HttpService::set_tokens(std::vector<TokenSetting> settings) {
  {
    MutexLock lock(tokens_mutex_);
    tokens_ = std::make_shared<const Tokens>(std::move(settings), &sessions_, replication_);
  }
  users_changed();
}

void HttpService::users_changed() {
  for (size_t i = 0; i < threads_.size(); ++i) {
    threads_[i]->post([keeper = keepers_[i]] { keeper->rights_changed(); });
  }
}

void HttpThread::rights_changed() {
  const auto connections = connections_;
  for (const auto& connection : connections) connection->rights_changed();
}

bool HttpConnection::session_has_ended() {
  if (exchange_ == nullptr || !exchange_->principal_.logged_in) return false;
  return !service().tokens()->still_grants(exchange_->route_->access, exchange_->principal_,
                                           service().state().engine->acl());
}

int64_t HttpConnection::session_left_ms() const {
  if (!exchange_->principal_.logged_in) return 0;
  const auto left = exchange_->principal_.session_ends - LoginSessions::Clock::now();
  return std::max<int64_t>(1, std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

// It may be in the middle of its work, or wait for the end of a job that it has added.
bool HttpConnection::has_changed() const {
  return is_change(exchange_->request().method) && !engine_->only_waits();
}

void HttpConnection::rights_changed() {
  // No request is in progress; the next one is checked when it arrives.
  if (exchange_ == nullptr || exchange_->route_ == nullptr) return;
  if (at_ != At::kBody && at_ != At::kHandling && at_ != At::kStreaming) return;
  if (put_off(&HttpConnection::rights_changed)) return;
  const std::shared_ptr<const Tokens> tokens = service().tokens();
  const Access access = exchange_->route_->access;
  const bool known =
      tokens->still_grants(access, exchange_->principal_, service().state().engine->acl()) &&
      (tokens->serves_others(access) || exchange_->request().from_loopback);
  if (known && engine_->may_wait()) return;
  // A waiting request gets a response; a stream or an incomplete request just ends.
  if (at_ != At::kHandling) return close();
  std::string detail = known ? "The token's user no longer has this permission."
                       : exchange_->principal_.logged_in ? "The session has ended."
                                                         : "This token has been revoked.";
  if (has_changed()) detail += " What the request has changed before that remains.";
  engine_->stop_waiting();
  keep_alive_ = false;
  cut_exchange();  // it changes nothing more
  send(known ? problem(403, "NOPERM", detail) : problem(401, "BADTOKEN", detail));
}

}  // namespace sluice
