// Handlers of commands for clusters, modules and Redis's replication; the rows that name them are
// in standalone_rows.cc. None of these exist here, so the commands reply like a redis-server
// without them.
#pragma once

namespace sluice {

struct Call;

// Every subcommand of CLUSTER, including HELP; ASKING, READONLY, READWRITE.
void cluster_disabled_command(Call& call);

void module_list_command(Call& call);
// Changes of modules: refused as with Redis's own `enable-module-command no`.
void module_refused_command(Call& call);

// MIGRATE, PSYNC, REPLCONF, RESTORE-ASKING, SYNC: refused, each with its reason.
void refused_command(Call& call);

}  // namespace sluice
