#include "storage/group_mark.h"

#include <rocksdb/env.h>

#include <memory>

#include "storage/data_directory.h"

namespace sluice {
namespace {

std::string group_base_path(const std::string& directory) { return directory + "/group-base"; }

}  // namespace

Result<std::optional<LogPosition>> read_lead_mark(const std::string& directory) {
  const std::string name = group_base_path(directory);
  std::string text;
  const rocksdb::Status status = rocksdb::ReadFileToString(rocksdb::Env::Default(), name, &text);
  if (status.IsNotFound() || status.IsPathNotFound()) return std::optional<LogPosition>();
  if (!status.ok()) return from_rocksdb(status, "cannot read " + name);
  const bool whole = text.ends_with('\n');
  if (whole) text.pop_back();
  Result<LogPosition> mark = decode_position(text);
  if (!whole || !mark.ok()) return Status(StatusCode::kDamaged, name + " is damaged");
  return std::optional<LogPosition>(std::move(*mark));
}

// The rename makes the change atomic; the sync of the directory makes it durable.
Status write_lead_mark(const std::string& directory, const LogPosition& mark, rocksdb::Env* env) {
  if (env == nullptr) env = rocksdb::Env::Default();
  const std::string name = group_base_path(directory);
  const std::string next = name + ".next";
  rocksdb::Status status =
      rocksdb::WriteStringToFile(env, encode_position(mark) + "\n", next, true);
  if (status.ok()) status = env->RenameFile(next, name);
  std::unique_ptr<rocksdb::Directory> folder;
  if (status.ok()) status = env->NewDirectory(directory, &folder);
  if (status.ok()) status = folder->Fsync();
  return from_rocksdb(status, "cannot write " + name);
}

Result<std::optional<LogPosition>> find_group_position(const std::string& directory,
                                                       const RecoveryResult& recovered) {
  Result<std::optional<LogPosition>> mark = read_lead_mark(directory);
  if (!mark.ok()) return mark.status();
  std::optional<LogPosition> position;
  if (!recovered.position.empty()) {
    Result<LogPosition> decoded = decode_position(recovered.position);
    if (!decoded.ok()) return decoded.status();
    position = std::move(*decoded);
  }
  if (!mark->has_value()) return position;
  if (position.has_value() && position->cluster_id == (*mark)->cluster_id) return position;
  if ((*mark)->lsn == recovered.last_lsn) return std::move(*mark);
  return invalid(directory + " was to begin a group with what it held up to lsn " +
                 std::to_string((*mark)->lsn) + ", but it ends at lsn " +
                 std::to_string(recovered.last_lsn) +
                 ": it was changed without the group. `sluice-journal lead` begins one with what "
                 "it holds now");
}

}  // namespace sluice
