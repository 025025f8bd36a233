// Stands for the other sources of this folder in a build without etcd.
#include "storage/etcd/etcd_log.h"

namespace sluice {

Result<std::unique_ptr<RemoteLog>> make_etcd_log(const EtcdOptions&) {
  return Status(StatusCode::kUnsupported, "this build has no support for etcd (SLUICE_ETCD)");
}

}  // namespace sluice
