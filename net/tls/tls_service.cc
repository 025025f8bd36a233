#include "net/tls/tls_service.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "engine/base/check.h"
#include "net/process/clocks.h"

namespace sluice {

Status TlsService::load(const Settings& settings) {
  struct Wanted {
    bool on;
    TlsAuthClients clients;
  };
  const std::array<Wanted, kTlsPorts> wanted = {
      Wanted{settings.tls_port != 0, settings.tls_auth_clients},
      Wanted{settings.http_tls_port != 0, settings.http_tls_auth_clients}};
  std::array<std::shared_ptr<const TlsContext>, kTlsPorts> contexts;
  std::string warning;
  for (size_t i = 0; i < kTlsPorts; ++i) {
    if (!wanted[i].on) continue;
    auto context = TlsContext::load(settings, wanted[i].clients);
    if (!context.ok()) return context.status();
    contexts[i] = std::move(*context);
    warning = contexts[i]->warning();
  }
  if (!warning.empty()) {
    spdlog::warn("tls-cert-file: the certificate {} {}", settings.tls_cert_file, warning);
  }
  MutexLock lock(mutex_);
  contexts_ = std::move(contexts);
  return {};
}

std::unique_ptr<TlsStream> TlsService::open(TlsPort port, int fd) {
  std::shared_ptr<const TlsContext> context;
  {
    MutexLock lock(mutex_);
    context = contexts_[static_cast<size_t>(port)];
  }
  CHECK(context != nullptr);
  return std::make_unique<TlsStream>(context->open(), fd);
}

void TlsService::note_failed(const std::string& address, const std::string& reason) {
  failed_.fetch_add(1, std::memory_order_relaxed);
  const auto others = failures_in_log_.next(Clocks::steady_ms());
  if (!others) return;
  spdlog::warn("TLS handshake with {} failed: {}{}", address, reason, *others);
}

}  // namespace sluice
