// Where a group's state lies in the replicated log's service, and the texts of its small values.
//
//   /sluice/<cluster>/g/<group>/epoch        the fence (EpochValue)
//                              /log/<seq>    frames; 16 hexadecimal digits
//                              /beat         the primary lives (BeatValue)
//                              /trim         the frames before it are gone (LogPosition)
//                              /pause        nobody replaces a silent primary (PauseValue)
//                              /node/<name>  a process (leased)
//                              /hold/<name>  a process that loads (leased)
//
// A value is one line of text: its version, then fields divided by single spaces; an empty field is
// "-". Text, so that an operator can read it with etcdctl. Pure functions; any thread.
//
// The record of a node ends with words, which may be absent, in any order: a reader ignores those
// that it does not know, so a later build may add some.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/base/bytes.h"
#include "engine/base/status.h"
#include "engine/ports/group_port.h"
#include "engine/ports/journal.h"

namespace sluice {

// Names of clusters, groups and nodes, and ids: 1 to 64 letters, digits, '.', '_' and '-', but not
// "-" alone.
bool is_group_name(Bytes name);

class GroupKeys {
 public:
  // REQUIRES: is_group_name of both.
  GroupKeys(const std::string& cluster, const std::string& group)
      : prefix_("/sluice/" + cluster + "/g/" + group + "/") {}

  const std::string& prefix() const { return prefix_; }
  std::string epoch() const { return prefix_ + "epoch"; }
  std::string beat() const { return prefix_ + "beat"; }
  std::string trim() const { return prefix_ + "trim"; }
  std::string pause() const { return prefix_ + "pause"; }
  std::string logs() const { return prefix_ + "log/"; }
  std::string log(uint64_t seq) const;
  std::string nodes() const { return prefix_ + "node/"; }
  std::string holds() const { return prefix_ + "hold/"; }
  // The seq of a key of a frame; nothing if it is another key.
  std::optional<uint64_t> log_seq(Bytes key) const;

 private:
  std::string prefix_;
};

// Which process writes the log. Each change has another text, so comparing texts is enough.
struct EpochValue {
  std::string cluster_id;  // random, of the group's beginning
  uint64_t epoch = 0;      // grows by one with each TAKE and RESIGN
  std::string holder;      // the node's name; empty: nobody
  std::string run_id;      // of the holder's process, random
  bool ready = false;      // false: taken, what lies behind a hole is being removed
  std::string preferred;   // who should take it next; empty: anybody
  Lsn base_lsn = 0;        // the group began with a state up to here
  // The holder's: others do not take the epoch after a shorter silence.
  int64_t failover_timeout_ms = 0;

  bool operator==(const EpochValue&) const = default;
};
std::string encode_epoch(const EpochValue& value);
Result<EpochValue> decode_epoch(Bytes text);

// A sign of life of the primary.
struct BeatValue {
  uint64_t epoch = 0;
  uint64_t counter = 0;  // grows within an epoch
  uint64_t seq = 0;      // the last frame of the contiguous prefix
  Lsn lsn = 0;           // durable_lsn
  int64_t wall_ms = 0;

  bool operator==(const BeatValue&) const = default;
};
std::string encode_beat(const BeatValue& value);
Result<BeatValue> decode_beat(Bytes text);

// Until then nobody takes the epoch of a silent primary, but its own node. It fences nothing: the
// other rules do not depend on it, so clocks that differ only make it longer or shorter.
struct PauseValue {
  int64_t until_wall_ms = 0;  // 0: the group is not paused any more
  std::string node;           // where it was asked for
  // Greater than those of all earlier wishes that the node knew of. Texts compare as their numbers
  // do. Values of older builds have none, and compare as less.
  uint64_t number = 0;

  bool operator==(const PauseValue&) const = default;
};
std::string encode_pause(const PauseValue& value);
Result<PauseValue> decode_pause(Bytes text);

// A place in the log, behind a frame that ends a commit: of the trim mark, and kept beside each
// commit of the local log.
struct LogPosition {
  std::string cluster_id;
  std::string group;
  uint64_t epoch = 0;  // of the frame
  uint64_t seq = 0;    // 0: before the first frame
  Lsn lsn = 0;         // the last one of the frame
  uint32_t chain = 0;  // see log_frame.h
  // The size of all frames of the group up to here, also of those that were removed. So the log
  // holds the difference to the trim mark.
  uint64_t bytes = 0;

  bool operator==(const LogPosition&) const = default;
};
std::string encode_position(const LogPosition& value);
Result<LogPosition> decode_position(Bytes text);

// The record of a node. Its key holds the name.
std::string encode_member(const GroupMember& value);
Result<GroupMember> decode_member(const std::string& name, Bytes text);

}  // namespace sluice
