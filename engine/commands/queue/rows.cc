// The rows of the native queue's family.
#include "engine/commands/families.h"
#include "engine/commands/queue/queues.h"

namespace sluice {

namespace {

// The key after each such word of Q.ADOPT, whose options all have one value.
constexpr KeySpec adopted_keys(const char* word) {
  return {.flags = kKeyRw | kKeyAccess | kKeyUpdate | kKeyDelete,
          .begin = KeySpec::Begin::kKeyword,
          .index = 2,
          .keyword = word,
          .find = KeySpec::Find::kRange,
          .every_pair = true};
}

const Command kQueueRows[] = {
    {.name = "q.add",
     .flags = kWrite | kDenyOom | kFast | kBlocking,
     .keys = {keys_at(1, kKeyRw | kKeyAccess | kKeyInsert)},
     .handler = q_add_command,
     .complexity = "O(log N), where N is the number of jobs in the queue.",
     .summary = "Adds a job to a queue; waits for its end with WAIT.",
     .syntax = "queue <id | *> payload [PRI band] [BOOST milliseconds] "
               "[DELAY milliseconds | AT unix-time-milliseconds] [GROUP group] "
               "[KEY label [KEY label ...]] [COST slots] [TTL milliseconds] [LEASE milliseconds] "
               "[MAXRUN milliseconds] [RETRY times] "
               "[BACKOFF base-milliseconds max-milliseconds] "
               "[IFDUP <ERROR | KEEP | UPDATE | REPLACE>] [NEED id [NEED id ...]] "
               "[AFTER id [AFTER id ...]] "
               "[TAG name value [TAG name value ...]] [MAXWAIT milliseconds] "
               "[BRIEF | WAIT milliseconds]"},
    {.name = "q.pop",
     .flags = kWrite | kBlocking | kMovableKeys,
     .keys = {counted_keys_at(1, kKeyRw | kKeyAccess | kKeyUpdate)},
     .handler = q_pop_command,
     .complexity = "O((1 + S) log N) for each job, where S is the number of lanes of its group.",
     .summary = "Takes the next jobs that may run, each with a lease; waits for them with BLOCK.",
     .syntax = "numqueues queue [queue ...] [WORKER worker] [COUNT count] [BLOCK milliseconds] "
               "[LEASE milliseconds] [TIED] [CAP slots] [ID id] [MATCH label [MATCH label ...]] "
               "[REQID token] [BRIEF] [WITH field [WITH field ...]]"},
    {.name = "q.ack",
     .flags = kWrite | kBlocking,
     .keys = {keys_at(1, kKeyRw | kKeyAccess | kKeyUpdate)},
     .handler = q_ack_command,
     .complexity = "O(log N) for each job; with POP plus that of Q.POP.",
     .summary = "Acknowledges jobs as completed; with POP also takes the next ones.",
     .syntax = "queue id <lease | *> [RESULT result] "
               "[AND id <lease | *> [RESULT result] [AND id <lease | *> [RESULT result] ...]] "
               "[POP [WORKER worker] [COUNT count] [BLOCK milliseconds] [LEASE milliseconds] "
               "[TIED] [CAP slots] [ID id] "
               "[MATCH label [MATCH label ...]] [REQID token] [BRIEF] "
               "[WITH field [WITH field ...]]]"},
    {.name = "q.nack",
     .flags = kWrite,
     .keys = {keys_at(1, kKeyRw | kKeyUpdate)},
     .handler = q_nack_command,
     .complexity = "O(log N) for each job.",
     .summary = "Returns jobs: as failed, or as if never taken; those of a worker with WHERE.",
     .syntax = "queue <id <lease | *> [SILENT | FAIL | FATAL] [DELAY milliseconds] [ERROR text] "
               "[AND id <lease | *> [SILENT | FAIL | FATAL] [DELAY milliseconds] [ERROR text] "
               "[AND id <lease | *> [SILENT | FAIL | FATAL] [DELAY milliseconds] [ERROR text] "
               "...]] | WHERE WORKER worker [CURSOR cursor] [LOST | SILENT | FAIL] "
               "[ERROR text]>"},
    {.name = "q.touch",
     .flags = kWrite | kFast,
     .keys = {keys_at(1, kKeyRw | kKeyUpdate)},
     .handler = q_touch_command,
     .complexity = "O(log N) for each job.",
     .summary = "Extends leases, and returns whether the jobs must stop.",
     .syntax = "queue id <lease | *> [LEASE milliseconds] [PROGRESS progress] [LOG bytes] "
               "[AND id <lease | *> [LEASE milliseconds] [PROGRESS progress] [LOG bytes] "
               "[AND id <lease | *> [LEASE milliseconds] [PROGRESS progress] [LOG bytes] ...]] "
               "[WORKER worker]"},
    {.name = "q.cancel",
     .flags = kWrite,
     .keys = {keys_at(1, kKeyRw | kKeyUpdate)},
     .handler = q_cancel_command,
     .complexity = "O(log N) for a job; with WHERE for each examined job, at most 10000.",
     .summary = "Cancels waiting jobs, and notifies the workers of running ones to stop.",
     .syntax = "queue <id | WHERE <ALL | [STATE state [STATE state ...]] [GROUP glob] [PRI band] "
               "[TAG name value] [KEY label] [WORKER worker] [OLDER milliseconds] "
               "[SINCE unix-time-milliseconds] [UNTIL unix-time-milliseconds] [IDPART text] "
               "[ERROR text] [PATTERN pattern] [PAYLOAD text]> [LIMIT count] "
               "[CURSOR cursor]> [REASON text] [GRACE milliseconds]"},
    {.name = "q.move",
     .flags = kWrite | kFast,
     .keys = {keys_at(1, kKeyRw | kKeyAccess | kKeyUpdate)},
     .handler = q_move_command,
     .complexity = "O(log N)",
     .summary = "Moves a waiting job to another place.",
     .syntax = "queue id [PRI band] [FRONT | BACK] [BOOST milliseconds] "
               "[DELAY milliseconds | AT unix-time-milliseconds]"},
    {.name = "q.retry",
     .flags = kWrite,
     .keys = {keys_at(1, kKeyRw | kKeyUpdate)},
     .handler = q_retry_command,
     .complexity = "O(log N) for a job; with WHERE for each examined job, at most 10000.",
     .summary = "Runs ended jobs again, as new ones.",
     .syntax = "queue <id | WHERE <ALL | [STATE state [STATE state ...]] [GROUP glob] [PRI band] "
               "[TAG name value] [KEY label] [WORKER worker] [OLDER milliseconds] "
               "[SINCE unix-time-milliseconds] [UNTIL unix-time-milliseconds] [IDPART text] "
               "[ERROR text] [PATTERN pattern] [PAYLOAD text]> [LIMIT count] "
               "[CURSOR cursor]>"},
    {.name = "q.purge",
     .flags = kWrite,
     .keys = {keys_at(1, kKeyRw | kKeyDelete)},
     .handler = q_purge_command,
     .complexity = "O(log N) for a job; with WHERE for each examined job, at most 10000.",
     .summary = "Deletes jobs that have ended.",
     .syntax = "queue <id | WHERE <ALL | [STATE state [STATE state ...]] [GROUP glob] [PRI band] "
               "[TAG name value] [KEY label] [WORKER worker] [OLDER milliseconds] "
               "[SINCE unix-time-milliseconds] [UNTIL unix-time-milliseconds] [IDPART text] "
               "[ERROR text] [PATTERN pattern] [PAYLOAD text]> [LIMIT count] "
               "[CURSOR cursor]>"},
    {.name = "q.get",
     .flags = kReadonly | kBlocking,
     .keys = {keys_at(1, kKeyRo | kKeyAccess)},
     .handler = q_get_command,
     .complexity = "O(log N)",
     .summary = "Shows a job: its place, why it waits, how it ended; waits for its end with WAIT.",
     .syntax = "queue id [WITH field [WITH field ...]] [PROGRESS bytes] [WAIT milliseconds]"},
    {.name = "q.list",
     .flags = kReadonly,
     .keys = {keys_at(1, kKeyRo | kKeyAccess)},
     .handler = q_list_command,
     .complexity = "O(log N) for each examined job, at most 10000.",
     .summary = "Lists jobs, page by page.",
     .syntax = "queue [WHERE <ALL | [STATE state [STATE state ...]] [GROUP glob] [PRI band] "
               "[TAG name value] [KEY label] [WORKER worker] [OLDER milliseconds] "
               "[SINCE unix-time-milliseconds] [UNTIL unix-time-milliseconds] [IDPART text] "
               "[ERROR text] [PATTERN pattern] [PAYLOAD text]> [LIMIT count]] "
               "[BY <RANK | AGE [DESC] | DEADLINE | DISPATCH>] [CURSOR cursor] [COUNT count] "
               "[BRIEF] [LOOK jobs] [WITH field [WITH field ...]] [PROGRESS bytes]"},
    {.name = "q.stats",
     .flags = kReadonly,
     .keys = {keys_at(1, kKeyRo | kKeyAccess)},
     .handler = q_stats_command,
     .complexity = "O(1) for each line of the reply.",
     .summary =
         "Shows the number of a queue's jobs by state, their outcomes, and how long they took.",
     .syntax = "queue [GROUP group | BY <PRI | GROUP | KEY | TAG name | WORKER | ERROR> [CURSOR "
               "cursor] [COUNT "
               "count]] [WINDOW milliseconds]"},
    {.name = "q.events",
     .flags = kReadonly | kBlocking,
     .keys = {keys_at(1, kKeyRo | kKeyAccess)},
     .handler = q_events_command,
     .complexity = "O(M), where M is the number of examined events, at most 100000.",
     .summary = "Reads the events of a queue's jobs; waits for more with BLOCK.",
     .syntax = "queue <seq | - | $> [COUNT count] [BLOCK milliseconds] [TYPE type [TYPE type ...]] "
               "[ID id [ID id ...]]"},
    {.name = "q.log",
     .flags = kReadonly | kBlocking,
     .keys = {keys_at(1, kKeyRo | kKeyAccess)},
     .handler = q_log_command,
     .complexity = "O(N), where N is the number of returned bytes.",
     .summary = "Reads the log of a job; waits for more with BLOCK.",
     .syntax = "queue id [FROM offset] [COUNT bytes] [BLOCK milliseconds]"},
    {.name = "q.config",
     .flags = kWrite,
     .keys = {keys_at(1, kKeyRw | kKeyAccess | kKeyUpdate)},
     .handler = q_config_command,
     .complexity = "O(G), where G is the number of groups and keys in use.",
     .summary = "Reads and changes the configuration of a queue, of its groups, keys and workers.",
     .syntax = "queue [GROUP glob | KEY glob | WORKER glob] <GET [field [field ...]] | "
               "<SET | TRY> <field value [field value ...]> [IF field value [field value ...]] | "
               "RESET | RULES [CURSOR cursor] [COUNT count]>",
     .only_reads = q_config_only_reads},
    {.name = "q.adopt",
     .flags = kWrite | kMovableKeys | kEveryShard,
     .keys = {keys_at(1, kKeyRw | kKeyAccess | kKeyUpdate), adopted_keys("PENDING"),
              adopted_keys("ACTIVE")},
     .handler = q_adopt_command,
     .complexity = "O(N log N), where N is the number of members of the active key.",
     .summary = "Makes a queue adopt plain Redis keys: sorted sets of waiting jobs, the set of "
                "running ones.",
     .syntax =
         "queue <OFF | PENDING key [PENDING key ...] ACTIVE key [PAYLOAD prefix] [UNIT score] "
         "[LEASE milliseconds]>"},
};

}  // namespace

const CommandFamily kQueueCommands = {"queue", kQueueRows};

}  // namespace sluice
