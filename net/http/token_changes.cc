// Tokens that change while requests are being answered.
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
    tokens_ = std::make_shared<const Tokens>(std::move(settings));
  }
  for (size_t i = 0; i < threads_.size(); ++i) {
    threads_[i]->post([keeper = keepers_[i]] { keeper->tokens_changed(); });
  }
}

void HttpThread::tokens_changed() {
  const auto connections = connections_;
  for (const auto& connection : connections) connection->tokens_changed();
}

void HttpConnection::tokens_changed() {
  // Between two requests there is nothing: each is looked at when it comes.
  if (exchange_ == nullptr || exchange_->route_ == nullptr) return;
  if (at_ != At::kBody && at_ != At::kHandling && at_ != At::kStreaming) return;
  const std::shared_ptr<const Tokens> tokens = service().tokens();
  const bool may = tokens->still_grants(exchange_->route_->access, exchange_->principal_,
                                        service().state().engine->acl());
  if (may && !(tokens->empty() && !exchange_->request().from_loopback)) return;
  // Somebody who waits is told; of a stream, or of half a request, the end says it.
  if (at_ != At::kHandling) return close();
  keep_alive_ = false;
  send(problem(401, "BADTOKEN", "The token is none any more."));
}

}  // namespace sluice
