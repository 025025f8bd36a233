#include "net/server/file_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "net/config/settings.h"
#include "net/io/strangers.h"
#include "net/sentinel/sentinel_service.h"
#include "storage/spare_files.h"

namespace sluice {

namespace {

bool has_http(const Settings& settings) {
  return settings.http_port != 0 || settings.http_tls_port != 0;
}

}  // namespace

uint64_t http_connections(const Settings& settings) {
  return has_http(settings) ? static_cast<uint64_t>(settings.http_maxclients) : 0;
}

uint64_t reserved_files(const Settings& settings) {
  const auto threads = static_cast<uint64_t>(settings.io_threads);
  const uint64_t giving_way = kMostGivingWay * threads * (has_http(settings) ? 2 : 1);
  const uint64_t sentinel = settings.sentinel_port == 0 ? 0 : SentinelService::kMaxConnections;
  return kOwnFiles + SpareFiles::kCount + kFilesPerIoThread * threads + giving_way + sentinel;
}

uint64_t wanted_files(const Settings& settings) {
  return static_cast<uint64_t>(settings.maxclients) + http_connections(settings) +
         reserved_files(settings);
}

uint64_t allow_files(uint64_t wanted) {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur >= wanted) return limit.rlim_cur;
  struct rlimit raised = limit;
  raised.rlim_cur = wanted;
  raised.rlim_max = std::max<rlim_t>(limit.rlim_max, wanted);
  if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) return wanted;
  const int error = errno;
  raised.rlim_max = limit.rlim_max;
  raised.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
  const bool done = ::setrlimit(RLIMIT_NOFILE, &raised) == 0;
  errno = error;
  return done ? raised.rlim_cur : limit.rlim_cur;
}

}  // namespace sluice
