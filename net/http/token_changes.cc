// Changes of tokens and their users while requests are in progress.
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

void HttpConnection::rights_changed() {
  // No request is in progress; the next one is checked when it arrives.
  if (exchange_ == nullptr || exchange_->route_ == nullptr) return;
  if (at_ != At::kBody && at_ != At::kHandling && at_ != At::kStreaming) return;
  const std::shared_ptr<const Tokens> tokens = service().tokens();
  const Access access = exchange_->route_->access;
  const bool known =
      tokens->still_grants(access, exchange_->principal_, service().state().engine->acl()) &&
      (tokens->serves_others(access) || exchange_->request().from_loopback);
  if (known && engine_->may_wait()) return;
  // A waiting request gets a response; a stream or an incomplete request just ends.
  if (at_ != At::kHandling) return close();
  engine_->stop_waiting();
  keep_alive_ = false;
  send(known ? problem(403, "NOPERM", "The token's user no longer has this permission.")
             : problem(401, "BADTOKEN", "This token has been revoked."));
}

}  // namespace sluice
