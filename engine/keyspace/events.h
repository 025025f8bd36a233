// Events of keys: the events that notify-keyspace-events may publish, and their observer.
//
// A command's handler reports what it has done to a key (Database::notify), in the order of Redis
// 7.0. Events that always follow from a change, such as the end of an empty collection, are
// reported by Database itself. Names and kinds are in one table, so that handlers hold no texts.
#pragma once

#include <cstdint>

#include "engine/base/bytes.h"

namespace sluice {

class Unit;

// Redis's letters of notify-keyspace-events as bits.
enum KeyspaceEvents : uint32_t {
  kEventKeyspace = 1U << 0,  // K
  kEventKeyevent = 1U << 1,  // E
  kEventGeneric = 1U << 2,   // g
  kEventString = 1U << 3,    // $
  kEventList = 1U << 4,      // l
  kEventSet = 1U << 5,       // s
  kEventHash = 1U << 6,      // h
  kEventZset = 1U << 7,      // z
  kEventExpired = 1U << 8,   // x
  kEventEvicted = 1U << 9,   // e
  kEventStream = 1U << 10,   // t
  kEventKeyMiss = 1U << 11,  // m; not part of A
  kEventModule = 1U << 12,   // d
  kEventNew = 1U << 13,      // n; not part of A
  // A
  kEventAll = kEventGeneric | kEventString | kEventList | kEventSet | kEventHash | kEventZset |
              kEventExpired | kEventEvicted | kEventStream | kEventModule,
};

// In the order of the table in events.cc.
enum class KeyEvent : uint8_t {
  kNew,
  kExpired,
  kKeyMiss,
  kDel,
  kExpire,
  kPersist,
  kRenameFrom,
  kRenameTo,
  kMoveFrom,
  kMoveTo,
  kCopyTo,
  kRestore,
  kSet,
  kSetRange,
  kAppend,
  kIncrBy,
  kIncrByFloat,
  kSetBit,
  kPfAdd,
  kLPush,
  kRPush,
  kLPop,
  kRPop,
  kLInsert,
  kLSet,
  kLRem,
  kLTrim,
  kSortStore,
  kSAdd,
  kSRem,
  kSPop,
  kSUnionStore,
  kSInterStore,
  kSDiffStore,
  kHSet,
  kHDel,
  kHIncrBy,
  kHIncrByFloat,
  kZAdd,
  kZIncr,
  kZRem,
  kZRemRangeByRank,
  kZRemRangeByScore,
  kZRemRangeByLex,
  kZPopMin,
  kZPopMax,
  kZUnionStore,
  kZInterStore,
  kZDiffStore,
  kZRangeStore,
  kXAdd,
  kXDel,
  kXTrim,
  kXSetId,
  kXGroupCreate,
  kXGroupSetId,
  kXGroupDestroy,
  kXGroupCreateConsumer,
  kXGroupDelConsumer,
  kGeoRadiusStore,
  kGeoSearchStore,
  kCount,  // not an event: their number
};

// The bit of KeyspaceEvents that enables the event, and its name.
uint32_t event_class(KeyEvent event);
Bytes event_name(KeyEvent event);

// The observer of changes of keys. Called by Database under the shard's lock. A unit without
// observer pays for one test of a null pointer.
class KeyspaceObserver {
 public:
  virtual ~KeyspaceObserver() = default;
  // `database`: as clients know it.
  virtual void event(Unit& unit, KeyEvent event, int database, Bytes key) = 0;
  // The key has changed in the sense of WATCH. May be called several times for one command.
  virtual void changed(Unit& unit, Bytes key) = 0;
};

}  // namespace sluice
