// Pops, as Q.POP and Q.ACK ... POP have them: at once, or after waiting.
#pragma once

#include <span>

#include "engine/commands/queue/args.h"

namespace sluice {

// Ends the waiting of an older pop with the same worker and request token at these queues: it is
// answered null. True: there was one, so this is the same request once more.
bool drop_older_pop(Call& call, std::span<const Bytes> keys, const PopSpec& spec);
// The worker's last pop with a request token from this queue had this very token.
bool is_repeated_pop(const Queue* queue, const PopSpec& spec);
// Replies the jobs that can be had from the first of these queues that has any; otherwise blocks,
// or replies null.
void pop_or_block(Call& call, std::span<const Bytes> keys, const PopOptions& options);

}  // namespace sluice
