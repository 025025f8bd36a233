// Q.GET: one job, at once or when it has ended.
#include <optional>
#include <utility>

#include "engine/commands/queue/args.h"
#include "engine/commands/queue/await.h"
#include "engine/commands/queue/queues.h"

namespace sluice {

void q_get_command(Call& call) {
  const KeyRef key = call.key(1);
  const Found<Queue> queue = find_queue(call, key);
  if (queue.refused() || !check_job_id(call, 2)) return;
  AwaitedJob request;
  std::optional<int64_t> wait_ms;  // 0: without limit
  OptionReader options(call, 3);
  while (options.next()) {
    if (options.is("WITH", 1)) {
      if (equals_ignore_case(options.value(), "dependents")) {
        request.with.dependents = true;
      } else if (!parse_shown_field(options.value(), request.with)) {
        options.bad_value();
      }
    } else if (options.is("PROGRESS", 1)) {
      request.with.progress = static_cast<size_t>(options.integer(0, kMaxExact).value_or(0));
    } else if (options.is("WAIT", 1)) {
      wait_ms = options.time();
    } else {
      options.unknown();
    }
  }
  if (options.failed()) return;
  const Bytes id = call.args[2];
  if (!wait_ms || call.nested || !can_be_awaited(call, queue, id)) {
    return reply_awaited(call, key, queue, id, request);
  }
  await_end(call, call.args[1], id, std::move(request), *wait_ms);
}

}  // namespace sluice
