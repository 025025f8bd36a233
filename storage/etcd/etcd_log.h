// The replicated log on etcd (storage/remote_log.h), for which storage/etcd/ speaks etcd's own
// protocol. Sluice may be built without it (-D SLUICE_ETCD=OFF).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "storage/log_sink.h"
#include "storage/remote_log.h"

namespace sluice {

struct EtcdOptions {
  std::vector<std::string> endpoints;  // "http://host:port"; all https:// or none
  std::string user;                    // empty: etcd is used without authentication
  // Asked for at each log-in: it may have been changed.
  std::function<Result<std::string>()> password;
  std::string ca_file;    // PEM; empty: the authorities that the system trusts
  std::string cert_file;  // PEM, of the client; empty: none
  std::string key_file;
  bool compact = true;  // not where others use the same etcd, and compact it
  std::string cluster;  // REQUIRES: names, see group_keys.h
  std::string group;
  LogSink log;
};

// Errors: options that do not fit together, files that cannot be read. An etcd that does not answer
// is no error: calls then end with kUnknown.
Result<std::unique_ptr<RemoteLog>> make_etcd_log(const EtcdOptions& options);

}  // namespace sluice
