// Pops, for Q.POP and Q.ACK ... POP: at once, or after waiting.
#pragma once

#include <span>

#include "engine/commands/queue/args.h"

namespace sluice {

// Ends an older waiting pop with the same worker and request token at these queues, with a null
// reply. Returns true if there was one, so this is the same request again.
bool drop_older_pop(Call& call, std::span<const Bytes> keys, const PopSpec& spec);
// Whether the worker's last pop with a request token from this queue had this token.
bool is_repeated_pop(const Queue* queue, const PopSpec& spec);
// Replies the available jobs from the first of these queues that has any; otherwise blocks, or
// replies null.
void pop_or_block(Call& call, std::span<const Bytes> keys, PopOptions options);
// An array with OK or the error of each.
void reply_answers(Reply& reply, const Answers& answers);

}  // namespace sluice
