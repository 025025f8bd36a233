#include "engine/commands/multi_pop.h"

#include "engine/base/numbers.h"

namespace sluice {

bool parse_multi_pop(const Call& call, size_t numkeys_at, Bytes first_word, Bytes second_word,
                     MultiPopRequest& request) {
  const auto numkeys = parse_i64(call.args[numkeys_at]);
  if (!numkeys || *numkeys <= 0) return fail(call, "ERR numkeys should be greater than 0");
  const size_t left = call.args.size() - numkeys_at - 1;
  if (static_cast<uint64_t>(*numkeys) >= left) return fail(call, errors::kSyntax);
  request.keys = call.args.subspan(numkeys_at + 1, static_cast<size_t>(*numkeys));
  size_t at = numkeys_at + 1 + request.keys.size();
  if (call.option(at, first_word)) {
    request.first_word = true;
  } else if (call.option(at, second_word)) {
    request.first_word = false;
  } else {
    return fail(call, errors::kSyntax);
  }
  bool has_count = false;
  for (++at; at < call.args.size(); ++at) {
    if (has_count || !call.option(at, "COUNT") || at + 1 >= call.args.size()) {
      return fail(call, errors::kSyntax);
    }
    const auto count = parse_i64(call.args[++at]);
    if (!count || *count <= 0) return fail(call, "ERR count should be greater than 0");
    request.count = static_cast<uint64_t>(*count);
    has_count = true;
  }
  return true;
}

}  // namespace sluice
