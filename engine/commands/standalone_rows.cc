// The rows of CLUSTER, MODULE, REPLICAOF and related commands; see standalone.h.
#include "engine/commands/standalone.h"

#include "engine/commands/families.h"
#include "engine/commands/help.h"
#include "engine/commands/server.h"

namespace sluice {

namespace {

constexpr const char* kNoCluster = "Refused: there is no cluster.";
constexpr const char* kNoModules = "Refused: there are no modules.";
constexpr const char* kNotAReplica = "Refuses a host: the nodes of a group follow its journal.";
// Flags of commands that would change the cluster or its modules.
constexpr uint32_t kChangesCluster = kAdmin | kStale | kNoAsyncLoading;
constexpr uint32_t kChangesModules = kAdmin | kNoScript | kNoAsyncLoading;

constexpr Command cluster(const char* name, int arity, uint32_t flags, const char* since,
                          const char* syntax = "", const char* tips = "") {
  Command row;
  row.name = name;
  row.arity = arity;
  row.flags = flags;
  row.handler = cluster_disabled_command;
  row.group = "cluster";
  row.since = since;
  row.complexity = "O(1)";
  row.summary = kNoCluster;
  row.syntax = syntax;
  row.tips = tips;
  return row;
}

constexpr const char* kVaries = "nondeterministic_output";

const Command kClusterSubcommands[] = {
    cluster("addslots", -3, kChangesCluster, "3.0.0", "slot [slot ...]"),
    cluster("addslotsrange", -4, kChangesCluster, "7.0.0",
            "start-slot end-slot [start-slot end-slot ...]"),
    cluster("bumpepoch", 2, kChangesCluster, "3.0.0", "", kVaries),
    cluster("count-failure-reports", 3, kAdmin | kStale, "3.0.0", "node-id", kVaries),
    cluster("countkeysinslot", 3, kStale, "3.0.0", "slot"),
    cluster("delslots", -3, kChangesCluster, "3.0.0", "slot [slot ...]"),
    cluster("delslotsrange", -4, kChangesCluster, "7.0.0",
            "start-slot end-slot [start-slot end-slot ...]"),
    cluster("failover", -2, kChangesCluster, "3.0.0", "[FORCE | TAKEOVER]"),
    cluster("flushslots", 2, kChangesCluster, "3.0.0"),
    cluster("forget", 3, kChangesCluster, "3.0.0", "node-id"),
    cluster("getkeysinslot", 4, kStale, "3.0.0", "slot count", kVaries),
    cluster("help", 2, kLoading | kStale, "5.0.0"),
    cluster("info", 2, kStale, "3.0.0", "", kVaries),
    cluster("keyslot", 3, kStale, "3.0.0", "key"),
    cluster("links", 2, kStale, "7.0.0", "", kVaries),
    cluster("meet", -4, kChangesCluster, "3.0.0", "ip port [cluster-bus-port]"),
    cluster("myid", 2, kStale, "3.0.0"),
    cluster("nodes", 2, kStale, "3.0.0", "", kVaries),
    cluster("replicas", 3, kAdmin | kStale, "5.0.0", "node-id", kVaries),
    cluster("replicate", 3, kChangesCluster, "3.0.0", "node-id"),
    cluster("reset", -2, kAdmin | kNoScript | kStale, "3.0.0", "[HARD | SOFT]"),
    cluster("saveconfig", 2, kChangesCluster, "3.0.0"),
    cluster("set-config-epoch", 3, kChangesCluster, "3.0.0", "config-epoch"),
    cluster("setslot", -4, kChangesCluster, "3.0.0",
            "slot <IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>"),
    cluster("shards", 2, kStale, "7.0.0", "", kVaries),
    cluster("slaves", 3, kAdmin | kStale, "3.0.0", "node-id", kVaries),
    cluster("slots", 2, kStale, "3.0.0", "", kVaries),
};

const Command kModuleSubcommands[] = {
    {.name = "list",
     .arity = 2,
     .flags = kAdmin | kNoScript,
     .handler = module_list_command,
     .since = "4.0.0",
     .complexity = "O(1)",
     .summary = "Lists modules; always empty.",
     .tips = "nondeterministic_output_order"},
    {.name = "load",
     .arity = -3,
     .flags = kChangesModules,
     .handler = module_refused_command,
     .since = "4.0.0",
     .complexity = "O(1)",
     .summary = kNoModules,
     .syntax = "path [arg [arg ...]]"},
    {.name = "loadex",
     .arity = -3,
     .flags = kChangesModules,
     .handler = module_refused_command,
     .since = "7.0.0",
     .complexity = "O(1)",
     .summary = kNoModules,
     .syntax = "path [CONFIG name value [CONFIG name value ...]] [ARGS arg [arg ...]]"},
    {.name = "unload",
     .arity = 3,
     .flags = kChangesModules,
     .handler = module_refused_command,
     .since = "4.0.0",
     .complexity = "O(1)",
     .summary = kNoModules,
     .syntax = "name"},
    help_row("5.0.0"),
};

constexpr Command node_mode(const char* name, uint32_t flags) {
  Command row = cluster(name, 1, flags | kFast, "3.0.0");
  row.acl = kAclConnection;
  return row;
}

constexpr Command replica(const char* name, const char* since) {
  Command row;
  row.name = name;
  row.arity = 3;
  row.flags = kAdmin | kNoScript | kStale | kNoAsyncLoading;
  row.handler = replicaof_command;
  row.since = since;
  row.complexity = "O(1)";
  row.summary = kNotAReplica;
  row.syntax = "<host port | NO ONE>";
  return row;
}

// A row of the replication protocol.
constexpr Command replication(const char* name, int arity, uint32_t flags, const char* since,
                              const char* syntax) {
  Command row;
  row.name = name;
  row.arity = arity;
  row.flags = kAdmin | kNoScript | flags;
  row.handler = refused_command;
  row.since = since;
  row.complexity = "O(1)";
  row.summary = "Refused: there is no replication.";
  row.syntax = syntax;
  return row;
}

constexpr uint32_t kMoved = kKeyRw | kKeyAccess | kKeyDelete;

// MIGRATE host port key db timeout [... KEYS key ...]: one key, or those after KEYS if it is empty.
// The specifications, which COMMAND INFO shows, include the empty key as well.
void find_migrated_keys(std::span<const Bytes> args, std::vector<KeyPosition>& positions) {
  positions.clear();
  size_t at = 6;
  while (at < args.size() && !equals_ignore_case(args[at], "keys")) ++at;
  if (at >= args.size()) return positions.push_back({3, kMoved});
  if (!args[3].empty()) return;  // the handler refuses it
  for (++at; at < args.size(); ++at) positions.push_back({at, kMoved});
}

const Command kStandaloneRows[] = {
    {.name = "failover",
     .arity = -1,
     .flags = kAdmin | kNoScript | kStale,
     .handler = failover_command,
     .since = "6.2.0",
     .complexity = "O(1)",
     .summary = "Hands the group over to a standby, or keeps others from taking over for a while.",
     .syntax = "<[TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds] | PAUSE milliseconds | "
               "RESUME>"},
    {.name = "migrate",
     .arity = -6,
     .flags = kWrite | kMovableKeys,
     .acl = kAclKeyspace | kAclDangerous,
     .keys = {keys_at(3, kMoved),
              {.flags = kMoved | kKeyIncomplete,
               .begin = KeySpec::Begin::kKeyword,
               .index = -2,
               .keyword = "KEYS",
               .find = KeySpec::Find::kRange,
               .last = -1}},
     .handler = refused_command,
     .group = "generic",
     .since = "2.6.0",
     .complexity = "O(1)",
     .summary = "Refused: use DUMP and RESTORE.",
     .syntax = "host port <key | \"\"> destination-db timeout [COPY] [REPLACE] [AUTH password | "
               "AUTH2 username password] [KEYS key [key ...]]",
     .tips = "nondeterministic_output",
     .find_other_keys = find_migrated_keys},
    replication("psync", -3, kNoAsyncLoading | kNoMulti, "2.8.0", "replicationid offset"),
    replication("replconf", -1, kLoading | kStale | kAllowBusy, "3.0.0", ""),
    {.name = "restore-asking",
     .arity = -4,
     .flags = kWrite | kDenyOom | kAsking,
     .acl = kAclKeyspace | kAclDangerous,
     .keys = {keys_at(1, kKeyOw | kKeyUpdate)},
     .handler = refused_command,
     .since = "3.0.0",
     .complexity = "O(1)",
     .summary = "Refused: without a cluster use RESTORE.",
     .syntax = "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]"},
    replication("sync", 1, kNoAsyncLoading | kNoMulti, "1.0.0", ""),
    node_mode("asking", 0),
    node_mode("readonly", kLoading | kStale),
    node_mode("readwrite", kLoading | kStale),
    {.name = "cluster",
     .arity = -2,
     .flags = kContainer,
     .subcommands = kClusterSubcommands,
     .group = "cluster",
     .since = "3.0.0",
     .complexity = "O(1)",
     .summary = kNoCluster},
    {.name = "module",
     .arity = -2,
     .flags = kContainer,
     .subcommands = kModuleSubcommands,
     .since = "4.0.0",
     .complexity = "O(1)",
     .summary = "Manages modules; there are none."},
    replica("replicaof", "5.0.0"),
    replica("slaveof", "1.0.0"),
};

}  // namespace

const CommandFamily kStandaloneCommands = {"server", kStandaloneRows};

}  // namespace sluice
