// `Q.CONFIG … TRY`: what a change of the configuration would mean now. It changes nothing.
#pragma once

#include <span>
#include <utility>

#include "engine/execution/call.h"
#include "engine/queue/queue.h"

namespace sluice {

// `queue` may be null.
void reply_tried(Call& call, const Queue* queue, ConfigLevel level, Bytes pattern,
                 std::span<const std::pair<Bytes, Bytes>> fields);

}  // namespace sluice
