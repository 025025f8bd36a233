// The names of command flags, key flags and ACL categories, in the order of Redis's replies.
#pragma once

#include <cstdint>

#include "engine/table/command.h"

namespace sluice {

struct FlagName {
  uint32_t flag;
  const char* name;
};

inline constexpr FlagName kCommandFlagNames[] = {
    {kWrite, "write"},
    {kReadonly, "readonly"},
    {kDenyOom, "denyoom"},
    {kAdmin, "admin"},
    {kPubsub, "pubsub"},
    {kNoScript, "noscript"},
    {kBlocking, "blocking"},
    {kLoading, "loading"},
    {kStale, "stale"},
    {kSkipMonitor, "skip_monitor"},
    {kSkipSlowlog, "skip_slowlog"},
    {kAsking, "asking"},
    {kFast, "fast"},
    {kNoAuth, "no_auth"},
    {kNoMandatoryKeys, "no_mandatory_keys"},
    {kNoAsyncLoading, "no_async_loading"},
    {kNoMulti, "no_multi"},
    {kMovableKeys, "movablekeys"},
    {kAllowBusy, "allow_busy"},
};

inline constexpr FlagName kKeyFlagNames[] = {
    {kKeyRo, "RO"},
    {kKeyRw, "RW"},
    {kKeyOw, "OW"},
    {kKeyRm, "RM"},
    {kKeyAccess, "access"},
    {kKeyUpdate, "update"},
    {kKeyInsert, "insert"},
    {kKeyDelete, "delete"},
    {kKeyNotKey, "not_key"},
    {kKeyIncomplete, "incomplete"},
    {kKeyVariableFlags, "variable_flags"},
};

inline constexpr FlagName kAclCategoryNames[] = {
    {kAclKeyspace, "keyspace"},
    {kAclRead, "read"},
    {kAclWrite, "write"},
    {kAclSet, "set"},
    {kAclSortedSet, "sortedset"},
    {kAclList, "list"},
    {kAclHash, "hash"},
    {kAclString, "string"},
    {kAclBitmap, "bitmap"},
    {kAclHyperloglog, "hyperloglog"},
    {kAclGeo, "geo"},
    {kAclStream, "stream"},
    {kAclPubsub, "pubsub"},
    {kAclAdmin, "admin"},
    {kAclFast, "fast"},
    {kAclSlow, "slow"},
    {kAclBlocking, "blocking"},
    {kAclDangerous, "dangerous"},
    {kAclConnection, "connection"},
    {kAclTransaction, "transaction"},
    {kAclScripting, "scripting"},
};

// Null if there is no such category.
inline const FlagName* find_acl_category(Bytes name) {
  for (const FlagName& category : kAclCategoryNames) {
    if (equals_ignore_case(category.name, name)) return &category;
  }
  return nullptr;
}

}  // namespace sluice
