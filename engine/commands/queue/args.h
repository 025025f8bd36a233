// Functions that the queue commands share: finding the queue of a key, reading arguments, and
// bounding what workers send: results and progress are refused (check_size), texts are cut.
//
// There are two errors for arguments: `ERR syntax error` for an unknown word, a missing value, or
// words that exclude each other; `BADFIELD field=<name>` for an invalid value of a known argument,
// where the name is that of the option in lower case. Names of options are case-insensitive; ids,
// groups, keys, tags and workers are bytes. If an option with one value is repeated, the last one
// wins.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/base/limits.h"
#include "engine/commands/queue/reply.h"
#include "engine/execution/call.h"
#include "engine/queue/job_id.h"
#include "engine/work/pop.h"

namespace sluice {

// The COUNT of a page that a command lists, unless it is given.
inline constexpr int64_t kUsualCount = 100;

// The queue of a key. Null if the key is absent, which counts as an empty queue. Refused with
// WRONGTYPE if it holds another type.
Found<Queue> find_queue(Call& call, const KeyRef& key);
// The same for commands that need a queue of jobs: one that has adopted plain Redis keys (Q.ADOPT)
// is refused with ADOPTED.
Found<Queue> find_own_queue(Call& call, const KeyRef& key);
// For a waiter that is served: the queue in which it has waited, or null if that has gone, also if
// another one has its name now.
Queue* find_awaited_queue(Call& call, const KeyRef& key);
// Like find_queue, but makes a missing queue. Null only if it is refused.
Queue* find_or_create_queue(Call& call, const KeyRef& key);
// Removes the queue that find_or_create_queue has made for a command that then failed. Does nothing
// if the queue existed before (`existed`).
void drop_new_queue(Call& call, const KeyRef& key, bool existed);

inline QueueWork queue_work(Call& call, const KeyRef& key, Queue& queue) {
  return QueueWork(call.database(key), key, queue, call.unit);
}
// Nothing if there is no queue.
inline std::optional<QueueWork> queue_work_if_any(Call& call, const KeyRef& key, Queue* queue) {
  if (queue == nullptr) return std::nullopt;
  return std::optional<QueueWork>(std::in_place, call.database(key), key, *queue, call.unit);
}
// The holder of leases that this call takes.
Holder holder_of(const Client& client);

// The configuration of a queue, or the defaults if it does not exist.
const QueueConfig& config_of(const Queue* queue);

// Replies `BADFIELD field=<name>`.
void reply_bad_field(Call& call, Bytes field);
// There is no job of this id.
Status no_job(Bytes id);
// Results and progress of workers have the same size limit as payloads (TOOBIG).
Status check_size(const Queue& queue, Bytes bytes);

// Whether an id can name a job of the queue args[1]: any valid id, and any id that an existing job
// has: one that was added before its id became reserved, or a member of an adopted key.
bool may_name_job(Call& call, Bytes id);
// Whether a glob of groups or keys has a valid length: each byte of a name may have a `\` before
// it.
bool is_glob_of_names(Bytes glob);
// Checks an argument that names a job. Returns false with BADFIELD field=id replied.
bool check_job_id(Call& call, size_t argument);
// Parses a lease: its token, or 0 for `*`. Returns nothing with BADFIELD field=lease replied.
std::optional<uint64_t> parse_lease(Call& call, size_t argument);

// Reads the options at the end of a command, one after the other:
//
//   OptionReader options(call, 3);
//   while (options.next()) {
//     if (options.is("LEASE", 1)) {
//       lease_ms = options.integer(kMinLeaseMs, kMaxLeaseMs);
//     } else if (options.is("SILENT")) {
//       ...
//     } else {
//       options.unknown();
//     }
//   }
//   if (options.failed()) return;  // the error is replied
class OptionReader {
 public:
  // Reads options from this argument on, up to `end` (0: the end of the arguments).
  OptionReader(Call& call, size_t first, size_t end = 0)
      : call_(call), at_(first), end_(end == 0 ? call.args.size() : end) {}

  // Goes to the next option. False at the end, and after a failure.
  bool next();
  // Whether the current option has this name; it then has `values` values, or has failed.
  bool is(Bytes name, size_t values = 0) {
    // The length is compared first: a command compares several names, most of other lengths.
    return option_.size() == name.size() && is_named(name, values);
  }
  // The command does not have this option.
  void unknown() { fail(errors::kSyntax); }

  // Values of the current option; `index` counts them. Empty (or false) after a failure.
  Bytes value(size_t index = 0) const { return failed_ ? Bytes() : call_.args[at_ + 1 + index]; }
  std::optional<int64_t> integer(int64_t least, int64_t greatest, size_t index = 0);
  // Milliseconds, not negative. They are added to a time and recorded.
  std::optional<int64_t> duration(size_t index = 0) { return integer(0, kMaxDurationMs, index); }
  // A wall clock time, or a time to block, which is often a large number for "forever".
  std::optional<int64_t> time(size_t index = 0) { return integer(0, kMaxExact, index); }
  // A wall clock time, as queue time.
  std::optional<int64_t> queue_time();
  // A value of bounded length.
  std::optional<Bytes> name(size_t least = 0, size_t greatest = kMaxNameBytes, size_t index = 0);
  std::optional<Bytes> job_id(size_t index = 0);
  std::optional<Bytes> glob();
  // A band by name or number.
  std::optional<uint8_t> band(const QueueConfig& config, size_t index = 0);

  // The current option's value is invalid.
  void bad_value();
  // So is another argument.
  void bad_field(Bytes field);
  void fail(Bytes error);
  bool failed() const { return failed_; }
  // The argument with the current option's name; after next() has returned false: the end.
  size_t position() const { return at_; }

 private:
  bool is_named(Bytes name, size_t values);

  Call& call_;
  size_t at_;
  size_t end_;
  Bytes option_;      // the current one; empty before the first, at the end, after a failure
  size_t taken_ = 0;  // arguments of the current option, with its name; 0: before the first
  bool failed_ = false;
};

// Texts of errors and reasons are cut, not refused.
inline Bytes shortened_text(Bytes text) { return text.substr(0, kMaxTextBytes); }

// The options of both forms of Q.CANCEL.
struct CancelOptions {
  Bytes reason;
  std::optional<int64_t> grace_ms;
};
// Returns false if the current option is not one of them.
bool parse_cancel_option(OptionReader& options, CancelOptions& cancel);

// What Q.ACK with AND answers for each job: OK, or its error.
using Answers = std::vector<Status>;

// The options of Q.POP and Q.ACK ... POP.
struct PopOptions {
  PopSpec spec;
  bool blocks = false;
  int64_t block_ms = 0;  // 0: without limit
  PoppedFields fields;
  // Not empty: they stand before the jobs in the reply, however the pop ends.
  Answers answers;
};
// Reads all options that are left. Returns false with the error replied.
bool parse_pop_options(OptionReader& options, PopOptions& pop);

}  // namespace sluice
