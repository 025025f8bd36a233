// Q.ACK: completing runs, and popping the next jobs with it.
#include "engine/commands/queue/pairs.h"
#include "engine/commands/queue/pop.h"
#include "engine/commands/queue/queues.h"
#include "engine/work/run.h"

namespace sluice {

namespace {

struct AckPair : LeasePair {
  std::optional<Bytes> result;
};

struct AckRequest {
  LeasePairs<AckPair> pairs;
  bool pops = false;
  PopOptions pop;
};

bool parse_ack(Call& call, AckRequest& ack) {
  return read_pairs(call, ack.pairs, [&](OptionReader& options, AckPair& pair) {
    if (options.is("RESULT", 1)) {
      pair.result = options.value();
    } else if (options.is("POP")) {
      ack.pops = true;
      parse_pop_options(options, ack.pop);
    } else {
      return false;
    }
    return true;
  });
}

Status check_result(const Queue* queue, const AckPair& pair) {
  if (queue == nullptr || !pair.result) return {};
  return check_size(*queue, *pair.result);
}

// `work`: null if there is no queue. `repeated`: the reply to the same request may have been lost,
// so the job may be acknowledged already. Then `*` may mean another run by now; a lease still means
// the run that has ended.
Status acknowledge(QueueWork* work, const AckPair& pair, bool repeated) {
  if (work == nullptr) return no_job(pair.id);
  if (repeated && pair.lease == 0) return {};
  const Status size = check_result(&work->queue(), pair);
  if (!size.ok()) return size;
  return acknowledge_job(*work, pair.id, pair.lease, pair.result.value_or(Bytes()));
}

// What each pair is answered, in order.
Answers acknowledge_all(QueueWork* work, const AckRequest& ack, bool repeated) {
  Answers answers;
  answers.reserve(ack.pairs.size());
  ack.pairs.for_each(
      [&](const AckPair& pair) { answers.push_back(acknowledge(work, pair, repeated)); });
  return answers;
}

}  // namespace

void q_ack_command(Call& call) {
  AckRequest ack;
  if (!parse_ack(call, ack)) return;
  const KeyRef key = call.key(1);
  const Found<Queue> queue = find_own_queue(call, key);
  if (queue.refused()) return;
  const bool several = ack.pairs.several();
  if (!several) {
    const Status size = check_result(queue, ack.pairs.first);
    if (!size.ok()) return call.reply.error(size.message());
  }
  const auto keys = call.args.subspan(1, 1);
  // The reply to the same request may have been lost: then the jobs are already acknowledged, and
  // the worker still holds the popped ones.
  const bool repeated = ack.pops && (drop_older_pop(call, keys, ack.pop.spec) ||
                                     is_repeated_pop(queue, ack.pop.spec));
  std::optional<QueueWork> work = queue_work_if_any(call, key, queue);
  QueueWork* const present = work ? &*work : nullptr;
  if (several) {
    Answers answers = acknowledge_all(present, ack, repeated);
    if (!ack.pops) return reply_answers(call.reply, answers);
    ack.pop.answers = std::move(answers);
  } else {
    const Status status = acknowledge(present, ack.pairs.first, repeated);
    if (!status.ok() && !repeated) return call.reply.error(status.message());
    if (!ack.pops) return call.reply.ok();
  }
  work.reset();  // what it has yet to record comes before the pop
  pop_or_block(call, keys, std::move(ack.pop));
}

}  // namespace sluice
