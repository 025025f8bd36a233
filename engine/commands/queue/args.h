// What the queue commands share: finding the queue of a key, and reading arguments.
//
// Two errors for arguments: `ERR syntax error` for an unknown word, a missing value, or words that
// exclude each other; `BADFIELD field=<name>` for a bad value of a known argument, where the name
// is that of the option in lower case. Names of options are compared without regard to case; ids,
// groups, keys, tags and workers are bytes. An option with one value that is given again counts as
// given last.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/base/limits.h"
#include "engine/execution/call.h"
#include "engine/queue/job_id.h"
#include "engine/work/pop.h"

namespace sluice {

// The queue of a key. Null if the key is absent: the queue is empty then. Refused with WRONGTYPE if
// it holds another type.
Found<Queue> find_queue(Call& call, const KeyRef& key);
// The same for commands that need a queue of jobs of its own: for one that shows plain Redis keys
// (Q.ADOPT) it is refused with ADOPTED.
Found<Queue> find_own_queue(Call& call, const KeyRef& key);
// The same, made where there is none; null only where it is refused.
Queue* find_or_create_queue(Call& call, const KeyRef& key);
// Takes away the queue that find_or_create_queue has made for a command that then failed. Does
// nothing if the queue was there before (`existed`).
void drop_new_queue(Call& call, const KeyRef& key, bool existed);

inline QueueWork queue_work(Call& call, const KeyRef& key, Queue& queue) {
  return QueueWork(call.database(key), key, queue, call.unit);
}
// Who takes leases in this call.
Holder holder_of(const Client& client);

// The configuration of a queue that may not be there: then the defaults.
const QueueConfig& config_of(const Queue* queue);

// Replies `BADFIELD field=<name>`.
void reply_bad_field(Call& call, Bytes field);

// Whether an id may name a job of the queue args[1]: any that a job may be added under, and one
// that a job has all the same. That is one that was added while its id was not reserved yet, or a
// member of an adopted key.
bool may_name_job(Call& call, Bytes id);
// Whether a glob of groups or keys is of a length that it may have: it has room for each byte of a
// name with a `\` before it.
bool is_glob_of_names(Bytes glob);
// An argument that names a job. False with BADFIELD field=id replied.
bool check_job_id(Call& call, size_t argument);
// An argument that is a lease: its token, or 0 for `*`. False with BADFIELD field=lease replied.
bool parse_lease(Call& call, size_t argument, uint64_t& lease);

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
  // Options from this argument on, up to `end` (0: the end of the arguments).
  OptionReader(Call& call, size_t first, size_t end = 0)
      : call_(call), at_(first), end_(end == 0 ? call.args.size() : end) {}

  // Goes to the next option. False at the end, and after a failure.
  bool next();
  // True if the present option has this name; it then has `values` values, or has failed.
  bool is(Bytes name, size_t values = 0) {
    // A command asks for one name after the other, most of another length.
    return option_.size() == name.size() && is_named(name, values);
  }
  // The option is none of those that the command knows.
  void unknown() { fail(errors::kSyntax); }

  // Values of the present option; `index` counts them. Empty (or false) after a failure.
  Bytes value(size_t index = 0) const { return failed_ ? Bytes() : call_.args[at_ + 1 + index]; }
  std::optional<int64_t> integer(int64_t least, int64_t greatest, size_t index = 0);
  // Milliseconds, not negative: what is added to a time and recorded.
  std::optional<int64_t> duration(size_t index = 0) { return integer(0, kMaxDurationMs, index); }
  // A time of the wall clock, or how long to block, where "for ever" is often a large number.
  std::optional<int64_t> time(size_t index = 0) { return integer(0, kMaxExact, index); }
  // Bytes of a bounded length.
  std::optional<Bytes> name(size_t least = 0, size_t greatest = kMaxNameBytes, size_t index = 0);
  std::optional<Bytes> job_id(size_t index = 0);
  std::optional<Bytes> glob();
  // A band by name or number.
  std::optional<uint8_t> band(const QueueConfig& config, size_t index = 0);

  // The present option's value is bad.
  void bad_value();
  void fail(Bytes error);
  bool failed() const { return failed_; }
  // The argument of the present option's name; after next() has said false: the end.
  size_t position() const { return at_; }

 private:
  bool is_named(Bytes name, size_t values);

  Call& call_;
  size_t at_;
  size_t end_;
  Bytes option_;      // the present one; empty before the first, at the end, after a failure
  size_t taken_ = 0;  // arguments of the present option, with its name; 0: before the first
  bool failed_ = false;
};

inline Bytes shortened_text(Bytes text) { return text.substr(0, kMaxTextBytes); }

// The options that both forms of Q.CANCEL take.
struct CancelOptions {
  Bytes reason;
  std::optional<int64_t> grace_ms;
};
// False: the present option is none of them.
bool parse_cancel_option(OptionReader& options, CancelOptions& cancel);

// The options that Q.POP and Q.ACK ... POP share.
struct PopOptions {
  PopSpec spec;
  bool blocks = false;
  int64_t block_ms = 0;  // 0: for ever
};
// Those from argument `first` to the end. False with the error replied.
bool parse_pop_options(Call& call, size_t first, PopOptions& options);

}  // namespace sluice
