#include "engine/commands/queue/pairs.h"

#include <algorithm>

namespace sluice {

bool read_pair(Call& call, size_t argument, LeasePair& pair) {
  pair.id = call.args[argument];
  if (!check_job_id(call, argument)) return false;
  const auto lease = parse_lease(call, argument + 1);
  pair.lease = lease.value_or(0);
  return lease.has_value();
}

bool check_ids_differ(Call& call, std::vector<Bytes> ids) {
  std::sort(ids.begin(), ids.end());
  if (std::adjacent_find(ids.begin(), ids.end()) == ids.end()) return true;
  reply_bad_field(call, "id");
  return false;
}

}  // namespace sluice
