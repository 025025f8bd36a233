// The section `replication` of INFO: the role of this server in its group, and the other nodes, in
// Redis's fields; then what Redis does not have. A pure function; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/ports/group_port.h"
#include "engine/ports/server_port.h"

namespace sluice {

struct ReplicationFacts {
  std::string run_id;
  int64_t priority = 100;
  // The rest only with a group. Null without one.
  std::shared_ptr<const GroupView> view = nullptr;
  int64_t view_age_ms = 0;
  int64_t lease_ms = 0;
};

void write_replication(const ReplicationFacts& facts, InfoWriter& out);

}  // namespace sluice
