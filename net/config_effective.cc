// The directives that have an effect, in the order of conf/sluice.conf.
#include <type_traits>

#include "net/config_special.h"
#include "net/config_table.h"

namespace sluice {

std::vector<Directive> effective_directives();

namespace {

using enum DirectiveKind;
using enum ChangeRule;
using enum ValueType;

constexpr uint64_t kMaxInt = INT32_MAX;
constexpr uint64_t kMaxLong = INT64_MAX;
constexpr int64_t kMebibyte = 1024 * 1024;

// The binding of a choice whose enumeration has the order of the row's choices.
template <auto Member>
void set_choice(Settings& settings, size_t index) {
  settings.*Member = static_cast<std::remove_reference_t<decltype(settings.*Member)>>(index);
}

std::vector<Directive> network_directives() {
  return {
      {.name = "bind",
       .change = kRestart,
       .type = kSpecial,
       .default_value = "127.0.0.1 -::1",
       .multiple = true,
       .parse = config_special::parse_bind,
       .expected = "at most 16 addresses, such as 127.0.0.1 -::1",
       .summary = "addresses to listen on; '-' before one: skip it where it does not exist"},
      {.name = "port",
       .change = kRestart,
       .type = kSpecial,
       .default_value = "6379",
       .parse = config_special::parse_port,
       .expected = "a number from 0 to 65535 (0 = no TCP), or auto",
       .summary = "TCP port; 0 = no TCP, auto = any free one (see ready-file)"},
      {.name = "http-port",
       .kind = kOurs,
       .change = kRestart,
       .type = kSpecial,
       .default_value = "8379",
       .parse = config_special::parse_http_port,
       .expected = "a number from 0 to 65535 (0 = no HTTP), or auto",
       .summary = "port of the HTTP service; 0 = none, auto = any free one"},
      {.name = "unixsocket",
       .change = kImmutable,
       .binding = &Settings::unixsocket,
       .summary = "path of a Unix socket to listen on as well; empty = none"},
      {.name = "unixsocketperm",
       .change = kImmutable,
       .type = kOctal,
       .default_value = "0",
       .high = 0777,
       .binding = &Settings::unixsocketperm,
       .summary = "file mode of the Unix socket, in octal; 0 = as the umask says"},
      {.name = "protected-mode",
       .type = kBool,
       .default_value = "yes",
       .binding = &Settings::protected_mode,
       .summary = "without a password, serve clients of this machine only"},
      {.name = "tcp-backlog",
       .change = kImmutable,
       .type = kInteger,
       .default_value = "511",
       .high = kMaxInt,
       .binding = &Settings::tcp_backlog,
       .summary = "connections that may wait to be accepted"},
      {.name = "tcp-keepalive",
       .type = kInteger,
       .default_value = "300",
       .high = kMaxInt,
       .binding = &Settings::tcp_keepalive_s,
       .summary = "seconds of silence before a connection is probed; 0 = never"},
      {.name = "timeout",
       .type = kInteger,
       .default_value = "0",
       .high = kMaxInt,
       .binding = &Settings::timeout_s,
       .summary = "seconds after which an idle client is closed; 0 = never"},
      {.name = "maxclients",
       .type = kInteger,
       .default_value = "10000",
       .low = 1,
       .high = UINT32_MAX,
       .binding = &Settings::maxclients,
       .summary = "connections at the same time; one more is refused"},
      {.name = "io-threads",
       .change = kImmutable,
       .type = kSpecial,
       .default_value = "auto",
       .parse = config_special::parse_io_threads,
       .expected = "a number from 1 to 128, or auto",
       .summary = "threads that serve clients; auto = all cores but one, at least one"},
      {.name = "ready-file",
       .kind = kOurs,
       .change = kImmutable,
       .binding = &Settings::ready_file,
       .summary = "file that gets the ports once the server serves; empty = none"},
  };
}

std::vector<Directive> access_directives() {
  return {
      {.name = "requirepass",
       .binding = &Settings::requirepass,
       .summary = "password of the default user; empty = none"},
      {.name = "user",
       .change = kFileOnly,
       .type = kSpecial,
       .parse = config_special::parse_user,
       .expected = "a name and ACL rules, such as: user worker on >secret ~jobs:* +@all",
       .summary = "an ACL user: its name, then its rules; one line each"},
      {.name = "aclfile",
       .change = kImmutable,
       .binding = &Settings::aclfile,
       .summary = "file of user lines, for ACL LOAD and ACL SAVE; instead of user directives"},
      {.name = "acl-pubsub-default",
       .type = kChoice,
       .default_value = "resetchannels",
       .choices = "allchannels, resetchannels",
       .binding = &set_choice<&Settings::acl_pubsub_default>,
       .summary = "whether new users may use all pub/sub channels"},
      {.name = "acllog-max-len",
       .type = kInteger,
       .default_value = "128",
       .high = kMaxLong,
       .binding = &Settings::acllog_max_len,
       .summary = "entries that ACL LOG keeps"},
      {.name = "enable-debug-command",
       .change = kImmutable,
       .type = kChoice,
       .default_value = "no",
       .choices = "no, yes, local",
       .binding = &set_choice<&Settings::enable_debug_command>,
       .summary = "who may use DEBUG; local = clients of this machine"},
      {.name = "rename-command",
       .change = kFileOnly,
       .type = kSpecial,
       .parse = config_special::refuse_rename_command,
       .expected = "a user's rules instead",
       .summary = "refused: take commands from users by their rules"},
  };
}

std::vector<Directive> durability_directives() {
  return {
      {.name = "dir",
       .change = kProtected,
       .type = kSpecial,
       .default_value = "./",
       .parse = config_special::parse_dir,
       .expected = "a directory",
       .summary = "directory of the data; made if it does not exist"},
      {.name = "appendonly",
       .change = kRestart,
       .type = kBool,
       .default_value = "yes",
       .binding = &Settings::appendonly,
       .summary = "keep a journal of every change; no = checkpoints by save rules only"},
      {.name = "appendfsync",
       .type = kChoice,
       .default_value = "always",
       .choices = "everysec, always, no",
       .binding = &set_choice<&Settings::appendfsync>,
       .summary = "when the journal is synced: always before a reply, everysec, or no"},
      {.name = "save",
       .type = kSpecial,
       .default_value = "3600 1 300 100 60 10000",
       .multiple = true,
       .parse = config_special::parse_save,
       .expected = "pairs of seconds and changes, or \"\" for none",
       .summary = "with appendonly no: checkpoint after so many seconds and changes"},
      {.name = "checkpoint-log-bytes",
       .kind = kOurs,
       .type = kMemory,
       .default_value = "256mb",
       .low = kMebibyte,
       .high = kMaxLong,
       .binding = &Settings::checkpoint_log_bytes,
       .summary = "start a checkpoint when so much journal was written since the last one"},
      {.name = "min-free-disk",
       .kind = kOurs,
       .type = kMemory,
       .default_value = "256mb",
       .high = kMaxLong,
       .binding = &Settings::min_free_disk_bytes,
       .summary = "below so much free disk, commands that add data are refused"},
      {.name = "journal-buffer-limit",
       .kind = kOurs,
       .type = kMemory,
       .default_value = "64mb",
       .low = kMebibyte,
       .high = kMaxLong,
       .binding = &Settings::journal_buffer_limit_bytes,
       .summary = "unwritten journal beyond which clients are read no further"},
  };
}

std::vector<Directive> limit_directives() {
  return {
      {.name = "databases",
       .change = kImmutable,
       .type = kInteger,
       .default_value = "16",
       .low = 1,
       .high = 16,
       .binding = &Settings::databases,
       .summary = "numbered databases for SELECT"},
      {.name = "maxmemory",
       .type = kMemory,
       .default_value = "0",
       .binding = &Settings::maxmemory_bytes,
       .summary = "memory beyond which commands that add data are refused; 0 = no limit"},
      {.name = "maxmemory-policy",
       .type = kChoice,
       .default_value = "noeviction",
       .choices = "volatile-lru, volatile-lfu, volatile-random, volatile-ttl, allkeys-lru, "
                  "allkeys-lfu, allkeys-random, noeviction",
       .only = "noeviction",
       .only_because = "this server never evicts a key to make room",
       .summary = "what happens at maxmemory: always noeviction"},
      {.name = "client-output-buffer-limit",
       .type = kSpecial,
       .default_value = "normal 0 0 0 replica 256mb 64mb 60 pubsub 32mb 8mb 60",
       .multiple = true,
       .parse = config_special::parse_output_limits,
       .expected = "a class (normal, replica, pubsub), hard limit, soft limit, seconds",
       .summary = "unread replies beyond which a client of a class is closed"},
      {.name = "client-query-buffer-limit",
       .type = kMemory,
       .default_value = "1gb",
       .low = kMebibyte,
       .high = kMaxLong,
       .binding = &Settings::client_query_buffer_limit_bytes,
       .summary = "largest request of a client in bytes, all arguments together"},
      {.name = "proto-max-bulk-len",
       .type = kMemory,
       .default_value = "512mb",
       .low = kMebibyte,
       // A record of the journal holds a key, a field and a value, and less than 4 GiB.
       .high = 1024 * kMebibyte,
       .binding = &Settings::proto_max_bulk_len_bytes,
       .summary = "largest single argument, and largest string"},
  };
}

std::vector<Directive> script_directives() {
  return {
      {.name = "busy-reply-threshold",
       .alias = "lua-time-limit",
       .type = kInteger,
       .default_value = "5000",
       .high = kMaxLong,
       .binding = &Settings::busy_reply_threshold_ms,
       .summary = "milliseconds after which other clients get BUSY; 0 = never"},
      {.name = "script-memory-limit",
       .kind = kOurs,
       .type = kMemory,
       .default_value = "256mb",
       .low = kMebibyte,
       .high = kMaxLong,
       .binding = &Settings::script_memory_limit_bytes,
       .summary = "memory that a script may hold before it fails"},
  };
}

std::vector<Directive> encoding_directives() {
  return {
      {.name = "hash-max-listpack-entries",
       .alias = "hash-max-ziplist-entries",
       .type = kInteger,
       .default_value = "512",
       .high = kMaxLong,
       .binding = &Settings::hash_max_listpack_entries,
       .summary = "fields up to which a hash shows as a listpack"},
      {.name = "hash-max-listpack-value",
       .alias = "hash-max-ziplist-value",
       .type = kMemory,
       .default_value = "64",
       .high = kMaxLong,
       .binding = &Settings::hash_max_listpack_value_bytes,
       .summary = "bytes of a field or value up to which a hash shows as a listpack"},
      {.name = "list-max-listpack-size",
       .alias = "list-max-ziplist-size",
       .type = kInteger,
       .default_value = "-2",
       .low = INT32_MIN,
       .high = kMaxInt,
       .binding = &Settings::list_max_listpack_size,
       .summary = "elements (or -1 to -5: 4 to 64 kb) up to which a list shows as a listpack"},
      {.name = "set-max-intset-entries",
       .type = kInteger,
       .default_value = "512",
       .high = kMaxLong,
       .binding = &Settings::set_max_intset_entries,
       .summary = "integers up to which a set shows as an intset"},
      {.name = "zset-max-listpack-entries",
       .alias = "zset-max-ziplist-entries",
       .type = kInteger,
       .default_value = "128",
       .high = kMaxLong,
       .binding = &Settings::zset_max_listpack_entries,
       .summary = "elements up to which a sorted set shows as a listpack"},
      {.name = "zset-max-listpack-value",
       .alias = "zset-max-ziplist-value",
       .type = kMemory,
       .default_value = "64",
       .high = kMaxLong,
       .binding = &Settings::zset_max_listpack_value_bytes,
       .summary = "bytes of an element up to which a sorted set shows as a listpack"},
  };
}

std::vector<Directive> observation_directives() {
  return {
      {.name = "loglevel",
       .type = kChoice,
       .default_value = "notice",
       .choices = "debug, verbose, notice, warning, nothing",
       .binding = &set_choice<&Settings::loglevel>,
       .summary = "how much is logged"},
      {.name = "logfile",
       .change = kImmutable,
       .binding = &Settings::logfile,
       .summary = "file to log into; empty = standard output"},
      {.name = "slowlog-log-slower-than",
       .type = kInteger,
       .default_value = "10000",
       .low = -1,
       .high = kMaxLong,
       .binding = &Settings::slowlog_log_slower_than_us,
       .summary = "microseconds from which a command is in SLOWLOG; -1 = none"},
      {.name = "slowlog-max-len",
       .type = kInteger,
       .default_value = "128",
       .high = kMaxLong,
       .binding = &Settings::slowlog_max_len,
       .summary = "entries that SLOWLOG keeps"},
      {.name = "notify-keyspace-events",
       .type = kSpecial,
       .parse = config_special::parse_keyspace_events,
       .expected = "letters of Ag$lshzxeKEtmdn, or \"\" for none",
       .summary = "which changes of keys are published; empty = none"},
  };
}

std::vector<Directive> process_directives() {
  return {
      {.name = "daemonize",
       .change = kImmutable,
       .type = kSpecial,
       .default_value = "no",
       .parse = config_special::parse_daemonize,
       .expected = "no",
       .summary = "the server stays in the foreground; yes only gets a warning"},
      {.name = "supervised",
       .change = kImmutable,
       .type = kChoice,
       .default_value = "no",
       .choices = "systemd, auto, no",
       .binding = &set_choice<&Settings::supervised>,
       .summary = "tell systemd when the server is ready; auto = where NOTIFY_SOCKET is set"},
      {.name = "pidfile",
       .change = kImmutable,
       .binding = &Settings::pidfile,
       .summary = "file that gets the process id; empty = none"},
      {.name = "replicaof",
       .alias = "slaveof",
       .change = kImmutable,
       .type = kSpecial,
       .parse = config_special::parse_replicaof,
       .expected = "no one",
       .summary = "refused but for 'no one': there is no replication"},
      {.name = "loadmodule",
       .change = kFileOnly,
       .type = kSpecial,
       .parse = config_special::refuse_loadmodule,
       .expected = "no such line",
       .summary = "refused: there are no modules"},
  };
}

}  // namespace

std::vector<Directive> effective_directives() {
  std::vector<Directive> all;
  for (const auto group :
       {network_directives, access_directives, durability_directives, limit_directives,
        script_directives, encoding_directives, observation_directives, process_directives}) {
    for (Directive& directive : group()) all.push_back(directive);
  }
  return all;
}

}  // namespace sluice
