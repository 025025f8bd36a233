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

constexpr Command cluster(const char* name, uint32_t flags, const char* since,
                          const char* syntax = "", const char* tips = "") {
  return Command{.name = name,
                 .flags = flags,
                 .handler = cluster_disabled_command,
                 .group = "cluster",
                 .since = since,
                 .summary = kNoCluster,
                 .syntax = syntax,
                 .tips = tips};
}

constexpr const char* kVaries = "nondeterministic_output";

const Command kClusterSubcommands[] = {
    cluster("addslots", kChangesCluster, "3.0.0", "slot [slot ...]"),
    cluster("addslotsrange", kChangesCluster, "7.0.0",
            "start-slot end-slot [start-slot end-slot ...]"),
    cluster("bumpepoch", kChangesCluster, "3.0.0", "", kVaries),
    cluster("count-failure-reports", kAdmin | kStale, "3.0.0", "node-id", kVaries),
    cluster("countkeysinslot", kStale, "3.0.0", "slot"),
    cluster("delslots", kChangesCluster, "3.0.0", "slot [slot ...]"),
    cluster("delslotsrange", kChangesCluster, "7.0.0",
            "start-slot end-slot [start-slot end-slot ...]"),
    cluster("failover", kChangesCluster, "3.0.0", "[FORCE | TAKEOVER]"),
    cluster("flushslots", kChangesCluster, "3.0.0"),
    cluster("forget", kChangesCluster, "3.0.0", "node-id"),
    cluster("getkeysinslot", kStale, "3.0.0", "slot count", kVaries),
    cluster("help", kLoading | kStale, "5.0.0"),
    cluster("info", kStale, "3.0.0", "", kVaries),
    cluster("keyslot", kStale, "3.0.0", "key"),
    cluster("links", kStale, "7.0.0", "", kVaries),
    cluster("meet", kChangesCluster, "3.0.0", "ip port [cluster-bus-port]"),
    cluster("myid", kStale, "3.0.0"),
    cluster("nodes", kStale, "3.0.0", "", kVaries),
    cluster("replicas", kAdmin | kStale, "5.0.0", "node-id", kVaries),
    cluster("replicate", kChangesCluster, "3.0.0", "node-id"),
    cluster("reset", kAdmin | kNoScript | kStale, "3.0.0", "[HARD | SOFT]"),
    cluster("saveconfig", kChangesCluster, "3.0.0"),
    cluster("set-config-epoch", kChangesCluster, "3.0.0", "config-epoch"),
    cluster("setslot", kChangesCluster, "3.0.0",
            "slot <IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>"),
    cluster("shards", kStale, "7.0.0", "", kVaries),
    cluster("slaves", kAdmin | kStale, "3.0.0", "node-id", kVaries),
    cluster("slots", kStale, "3.0.0", "", kVaries),
};

const Command kModuleSubcommands[] = {
    {.name = "list",
     .flags = kAdmin | kNoScript,
     .handler = module_list_command,
     .since = "4.0.0",
     .summary = "Lists modules; always empty.",
     .tips = "nondeterministic_output_order"},
    {.name = "load",
     .flags = kChangesModules,
     .handler = module_refused_command,
     .since = "4.0.0",
     .summary = kNoModules,
     .syntax = "path [arg [arg ...]]"},
    {.name = "loadex",
     .flags = kChangesModules,
     .handler = module_refused_command,
     .since = "7.0.0",
     .summary = kNoModules,
     .syntax = "path [CONFIG name value [CONFIG name value ...]] [ARGS arg [arg ...]]"},
    {.name = "unload",
     .flags = kChangesModules,
     .handler = module_refused_command,
     .since = "4.0.0",
     .summary = kNoModules,
     .syntax = "name"},
    help_row("5.0.0"),
};

constexpr Command node_mode(const char* name, uint32_t flags) {
  Command row = cluster(name, flags | kFast, "3.0.0");
  row.acl = kAclConnection;
  return row;
}

constexpr Command replica(const char* name, const char* since) {
  return Command{.name = name,
                 .flags = kAdmin | kNoScript | kStale | kNoAsyncLoading,
                 .handler = replicaof_command,
                 .since = since,
                 .summary = kNotAReplica,
                 .syntax = "<host port | NO ONE>"};
}

// A row of the replication protocol.
constexpr Command replication(const char* name, int arity, uint32_t flags, const char* since,
                              const char* syntax) {
  return Command{.name = name,
                 .arity = arity,
                 .flags = kAdmin | kNoScript | flags,
                 .handler = refused_command,
                 .since = since,
                 .summary = "Refused: there is no replication.",
                 .syntax = syntax};
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
     .flags = kAdmin | kNoScript | kStale,
     .handler = failover_command,
     .since = "6.2.0",
     .summary = "Hands the group over to a standby, or keeps others from taking over for a while.",
     .syntax = "<[TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds] | PAUSE milliseconds | "
               "RESUME>"},
    {.name = "migrate",
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
     .summary = "Refused: use DUMP and RESTORE.",
     .syntax = "host port <key | \"\"> destination-db timeout [COPY] [REPLACE] [AUTH password | "
               "AUTH2 username password] [KEYS key [key ...]]",
     .tips = "nondeterministic_output",
     .find_other_keys = find_migrated_keys},
    replication("psync", -3, kNoAsyncLoading | kNoMulti, "2.8.0", "replicationid offset"),
    replication("replconf", -1, kLoading | kStale | kAllowBusy, "3.0.0", ""),
    {.name = "restore-asking",
     .flags = kWrite | kDenyOom | kAsking,
     .acl = kAclKeyspace | kAclDangerous,
     .keys = {keys_at(1, kKeyOw | kKeyUpdate)},
     .handler = refused_command,
     .since = "3.0.0",
     .summary = "Refused: without a cluster use RESTORE.",
     .syntax = "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]"},
    replication("sync", 1, kNoAsyncLoading | kNoMulti, "1.0.0", ""),
    node_mode("asking", 0),
    node_mode("readonly", kLoading | kStale),
    node_mode("readwrite", kLoading | kStale),
    {.name = "cluster",
     .flags = kContainer,
     .subcommands = kClusterSubcommands,
     .group = "cluster",
     .since = "3.0.0",
     .summary = kNoCluster},
    {.name = "module",
     .flags = kContainer,
     .subcommands = kModuleSubcommands,
     .since = "4.0.0",
     .summary = "Manages modules; there are none."},
    replica("replicaof", "5.0.0"),
    replica("slaveof", "1.0.0"),
};

}  // namespace

const CommandFamily kStandaloneCommands = {"server", kStandaloneRows};

}  // namespace sluice
