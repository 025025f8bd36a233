// Tokens and their users that change while requests are being answered.
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
    tokens_ = std::make_shared<const Tokens>(std::move(settings), &sessions_);
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
  // Between two requests there is nothing: each is looked at when it comes.
  if (exchange_ == nullptr || exchange_->route_ == nullptr) return;
  if (at_ != At::kBody && at_ != At::kHandling && at_ != At::kStreaming) return;
  const std::shared_ptr<const Tokens> tokens = service().tokens();
  const bool known = tokens->still_grants(exchange_->route_->access, exchange_->principal_,
                                          service().state().engine->acl()) &&
                     !(tokens->empty() && !exchange_->request().from_loopback);
  if (known && engine_->may_wait()) return;
  // Somebody who waits is told; of a stream, or of half a request, the end says it.
  if (at_ != At::kHandling) return close();
  engine_->stop_waiting();
  keep_alive_ = false;
  send(known ? problem(403, "NOPERM", "The user of the token may not do this any more.")
             : problem(401, "BADTOKEN", "The token is none any more."));
}

}  // namespace sluice
