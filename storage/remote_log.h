// RemoteLog: the replicated log of one group, kept by a service that syncs every change on a
// majority (etcd). The process that holds the epoch writes, everybody reads. The log knows nothing
// of units: values are bytes, whose meaning is in group_keys.h and log_frame.h.
//
// The epoch is the fence. Every change but those of records, of the pause and compact() is one
// transaction that compares the epoch with `fence`, by value, and changes nothing when it differs.
// So once the epoch has changed, no change of an older one happens, however late its request
// arrives.
//
// Each call is tried once. A change that is answered kUnknown may have happened, and may still
// happen at any later time. Nothing but kFenced says that it never will. To repeat a change, make
// the same call again with the same bytes.
//
// Threads: any thread may call. Answers and events come one at a time on one thread of the log,
// perhaps before the call has returned; answers come in any order. They must not block, and may
// call the log again, but not close() or the destructor. Strings are copied or kept by the log.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/status.h"

namespace sluice {

enum class RemoteOutcome : uint8_t {
  kDone,
  kFenced,     // the epoch has another value: nothing has changed, and nothing will
  kConflict,   // what was to be created is there with other contents
  kCompacted,  // of reads: the log does not show that revision any more
  kUnknown,    // an error, or no answer in time; `status` says which
  kClosed,     // close() was called; else as kUnknown
};

struct RemoteAnswer {
  RemoteOutcome outcome = RemoteOutcome::kDone;
  Status status;          // not ok with kUnknown, a sentence for a human
  std::string epoch;      // with kFenced: the value found, empty if it is missing
  int64_t revision = 0;   // with kDone: of the log as a whole, after the change or at the read
  bool repeated = false;  // append: an earlier try had written this frame
};
// Whether the log has answered at all.
inline bool is_heard(const RemoteAnswer& answer) {
  return answer.outcome == RemoteOutcome::kDone || answer.outcome == RemoteOutcome::kFenced ||
         answer.outcome == RemoteOutcome::kConflict;
}
// In words, if it has not.
inline Status no_answer(const RemoteAnswer& answer) {
  return io_error("the replicated log does not answer: " + answer.status.message());
}
using RemoteDone = std::function<void(const RemoteAnswer&)>;

struct RemoteFrame {
  uint64_t seq = 0;
  std::string bytes;
};
struct RemoteFrames {
  std::vector<RemoteFrame> frames;  // ascending; seqs may be missing
  bool more = false;                // there are further frames behind the last one
};
using RemoteFramesDone = std::function<void(const RemoteAnswer&, RemoteFrames)>;

// The values of the group at one revision. Empty: not there.
struct RemoteState {
  std::string epoch;
  std::string beat;
  std::string trim;
  std::string pause;
  uint64_t last_seq = 0;  // of the last frame; 0: no frame
};
using RemoteStateDone = std::function<void(const RemoteAnswer&, const RemoteState&)>;

// What one member of the service says of itself.
struct RemoteMember {
  std::string endpoint;
  bool answers = false;  // else the rest is unknown
  bool leads = false;
  std::string version;
  uint64_t bytes = 0;        // of its database
  uint64_t quota_bytes = 0;  // of which so many are allowed; 0: it does not say
  std::vector<std::string> alarms;
};
// Not kDone: no member answers.
using RemoteStatusDone = std::function<void(const RemoteAnswer&, std::vector<RemoteMember>)>;

// Records with a lease: they vanish some seconds after the process that put them has.
enum class RemoteRecordKind : uint8_t {
  kNode,  // 5 s
  kHold,  // 30 s
};
struct RemoteRecord {
  std::string name;
  std::string value;
};
using RemoteRecordsDone = std::function<void(const RemoteAnswer&, std::vector<RemoteRecord>)>;

// What follow() tells. The views are valid during the call.
class RemoteListener {
 public:
  virtual ~RemoteListener() = default;
  // Frames may come out of order, twice, or not at all; their chain shows it (log_tail.h).
  virtual void on_frame(uint64_t seq, Bytes frame) = 0;
  virtual void on_beat(Bytes value) = 0;
  virtual void on_epoch(Bytes value) = 0;
  virtual void on_trim(Bytes value) = 0;
  // Empty: it was removed. The change has this revision.
  virtual void on_pause(Bytes value, int64_t revision) = 0;
  // `value`: nothing if the record has vanished.
  virtual void on_record(RemoteRecordKind kind, Bytes name, std::optional<Bytes> value) = 0;
  // The log does not follow any more: an error, or the revision was compacted. Read what is missing
  // and follow again.
  virtual void on_lost(const Status& reason) = 0;
};

enum class RemoteFollow : uint8_t {
  kAll,
  kNoFrames,  // the caller writes them: it knows what they are
};

class RemoteLog {
 public:
  virtual ~RemoteLog() = default;  // close() first

  // --- Changes ---

  // INIT (`fence` empty: there must be no epoch), TAKE, READY and RESIGN: the epoch becomes `next`.
  virtual void change_epoch(const std::string& fence, const std::string& next, RemoteDone done) = 0;
  // TIDY: deletes the frames from `next_seq` on.
  virtual void tidy(const std::string& fence, uint64_t next_seq, RemoteDone done) = 0;
  // Puts a frame. If there is one with that seq: kDone and `repeated` if it has the same bytes,
  // else kConflict.
  virtual void append(const std::string& fence, uint64_t seq,
                      std::shared_ptr<const std::string> frame, RemoteDone done) = 0;
  virtual void beat(const std::string& fence, const std::string& value, RemoteDone done) = 0;
  // Replaces the trim mark `old` (empty: it was never put), then deletes the frames before `seq` in
  // several transactions under the same fence, then compacts. kConflict: the mark is neither `old`
  // nor `value`; so a late trim never moves it back. An error may leave a part undone, which the
  // same call completes.
  virtual void trim(const std::string& fence, uint64_t seq, const std::string& old,
                    const std::string& value, RemoteDone done) = 0;
  // Lets the log forget what it was before `revision`, which an answer has told: each change makes
  // a revision, and all of them are kept until then. Without a fence: what is there now stays.
  // Nothing happens where others use the same service, and compact it.
  virtual void compact(int64_t revision, RemoteDone done) = 0;

  // Puts the pause, without a fence, if that is what it replaces is not greater, byte for byte;
  // else kConflict. So an older one that arrives late replaces nothing (PauseValue::number).
  virtual void set_pause(const std::string& value, RemoteDone done) = 0;

  // --- Reads. `revision` 0: the current one, linearizable ---

  virtual void read_state(int64_t revision, RemoteStateDone done) = 0;
  // The frames from `seq` on, one page of them.
  virtual void read_frames(uint64_t seq, int64_t revision, RemoteFramesDone done) = 0;

  // The members of the service: for warnings, and for how much the log may grow.
  virtual void status(RemoteStatusDone done) = 0;

  // Tells `listener` every change of `what` after `revision`, until on_lost, the next follow() or
  // close().
  virtual void follow(int64_t revision, RemoteFollow what,
                      std::shared_ptr<RemoteListener> listener) = 0;

  // --- Records ---

  // Puts a record and keeps its lease until drop_record or close(). `owner` identifies the process:
  // kConflict if the record is another one's.
  virtual void put_record(RemoteRecordKind kind, const std::string& name, const std::string& owner,
                          const std::string& value, RemoteDone done) = 0;
  virtual void drop_record(RemoteRecordKind kind, const std::string& name, RemoteDone done) = 0;
  virtual void read_records(RemoteRecordKind kind, RemoteRecordsDone done) = 0;

  // Answers what is outstanding with kClosed. On return nothing is called any more; later calls are
  // answered kClosed at once.
  virtual void close() = 0;
};

}  // namespace sluice
