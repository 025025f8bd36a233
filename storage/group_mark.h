// The file `group-base` of a data directory: a group of nodes begins with what the directory holds
// up to the lsn that it names, as `sluice-journal lead` has decided. Text, a LogPosition with epoch
// and seq 0 and a cluster id that is new, so that older positions in the log count no more.
//
// It stays when the group has begun: the positions of its commits have its cluster id then.
// Used by one thread. The writer must hold the directory's lock (its log is open).
#pragma once

#include <optional>
#include <string>

#include "engine/base/status.h"
#include "storage/group_keys.h"
#include "storage/recovery.h"

namespace rocksdb {
class Env;
}

namespace sluice {

// What helps a group that etcd has lost, or has as it was earlier.
inline constexpr const char* kLeadAdvice =
    "\"sluice-journal lead DIR\" begins a new group with the data of one directory";

// Nothing: the directory has no such file. Errors: it cannot be read (kIoError), or is not as it
// was written (kDamaged).
Result<std::optional<LogPosition>> read_lead_mark(const std::string& directory);
// On return it is on disk. `env`: as of RocksdbLogOptions.
Status write_lead_mark(const std::string& directory, const LogPosition& mark,
                       rocksdb::Env* env = nullptr);

// Where a directory that was recovered stands in the replicated log. Nothing: it belongs to no
// group. With seq 0 it is to begin one, or has not followed it yet. Errors: as of read_lead_mark;
// kInvalid if it was changed since, without the group: the text says what to do.
Result<std::optional<LogPosition>> find_group_position(const std::string& directory,
                                                       const RecoveryResult& recovered);

}  // namespace sluice
