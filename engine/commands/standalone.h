// Handlers of commands about what a server has around it in Redis, a cluster, modules, a master;
// the rows that name them are in standalone_rows.cc. There is nothing of it here, so they answer as
// a redis-server does that has none of it either.
#pragma once

namespace sluice {

struct Call;

// Every subcommand of CLUSTER, HELP too; ASKING, READONLY, READWRITE.
void cluster_disabled_command(Call& call);

void module_list_command(Call& call);
// What would change the modules: refused as with Redis's own `enable-module-command no`.
void module_refused_command(Call& call);
void module_help_command(Call& call);

// NO ONE is what it is already; a host is refused.
void replicaof_command(Call& call);
// FAILOVER, MIGRATE, PSYNC, REPLCONF, RESTORE-ASKING, SYNC: refused, each with its reason.
void refused_command(Call& call);

}  // namespace sluice
