#include "engine/commands/random_members.h"

#include "engine/execution/engine.h"

namespace sluice {

bool parse_random_request(const Call& call, Bytes with_word, RandomRequest& request) {
  if (call.args.size() == 2) return true;
  if (with_word.empty() && call.args.size() > 3) {  // before the count, unlike the others
    return fail(call, errors::kSyntax);
  }
  int64_t count = 0;
  if (!call.integer(2, count)) return false;
  if (count == INT64_MIN) {
    return fail(call,
                "ERR value is out of range, value must between -9223372036854775807 and "
                "9223372036854775807");
  }
  const bool with_given = call.args.size() == 4;
  if (call.args.size() > 4 || (with_given && !call.option(3, with_word))) {
    return fail(call, errors::kSyntax);
  }
  // Twice as many values as elements follow; a greater count would overflow in the header.
  if (with_given && (count < -(INT64_MAX / 2) || count > INT64_MAX / 2)) {
    return fail(call, "ERR value is out of range");
  }
  request.has_count = true;
  request.with_values = with_given;
  request.distinct = count >= 0;
  request.count = static_cast<uint64_t>(count < 0 ? -count : count);
  return true;
}

bool is_too_long(Call& call, uint64_t count, size_t begin) {
  // No table of Lua holds more values, and no reply of 512 MB.
  constexpr uint64_t kMostRepeats = 1U << 26;
  ByteBuffer* const out = call.reply.buffer();
  const uint64_t limit = call.engine.options().max_bulk_bytes.load(std::memory_order_relaxed);
  const bool fits = out == nullptr || out->size() - begin <= limit;
  if (fits && count <= kMostRepeats) return false;
  if (out != nullptr) out->resize(begin);
  fail(call, "ERR the reply would be longer than proto-max-bulk-len");
  return true;
}

void reply_random_missing(Call& call, const RandomRequest& request) {
  if (request.has_count) return call.reply.array(0);
  call.reply.null();
}

}  // namespace sluice
