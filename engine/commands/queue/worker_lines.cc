#include "engine/commands/queue/worker_lines.h"

#include "engine/execution/engine.h"
#include "engine/reply/map_reply.h"
#include "engine/work/serving.h"

namespace sluice {

WorkerLines::WorkerLines(Call& call, const KeyRef& key, const Queue& queue)
    : reply_(call.reply),
      times_(call.unit.times),
      queue_(queue),
      now_ms_(std::max(queue.queue_ms, call.unit.times.queue_ms)) {
  const Shard& shard = call.engine.shard(key.shard);
  shard.mutex.assert_held();
  const QueueWaiters* waiters =
      shard.waiters.find_queue(call.client.database, std::string(key.key));
  if (waiters == nullptr) return;
  for (const auto& [order, waiter] : waiters->all_pops) {
    ++waiting_[static_cast<const PopRequest&>(*waiter->request).spec.worker];
  }
}

bool WorkerLines::shows(const Worker& worker) const {
  const int64_t left_ms = worker.seen_ms + queue_.config.values().worker_ttl_ms - now_ms_;
  return !worker.active.empty() || left_ms > 0 || waiting_.contains(worker.name);
}

void WorkerLines::put(const Worker& worker) const { put(line_of(worker)); }

void WorkerLines::Line::add(const Line& other) {
  active += other.active;
  oldest_run_ms = std::max(oldest_run_ms, other.oldest_run_ms);
  waiting_pops += other.waiting_pops;
  completed += other.completed;
  failed += other.failed;
  seen_ms = std::max(seen_ms, other.seen_ms);
}

WorkerLines::Line WorkerLines::line_of(const Worker& worker) const {
  Line line;
  line.active = worker.active.size();
  if (line.active != 0) {
    line.oldest_run_ms = now_ms_ - static_cast<int64_t>(worker.active.front().major);
  }
  const auto waiting = waiting_.find(worker.name);
  if (waiting != waiting_.end()) line.waiting_pops = waiting->second;
  line.completed = worker.completed;
  line.failed = worker.failed;
  line.seen_ms = worker.seen_ms;
  line.quiet = queue_.config.quiet(worker.name);
  return line;
}

void WorkerLines::put(const Line& line) const {
  MapReply map(reply_);
  map.count("active", line.active);
  map.integer("oldest_run_ms", line.oldest_run_ms);
  map.count("waiting_pops", line.waiting_pops);
  map.count("completed", line.completed);
  map.count("failed", line.failed);
  line.seen_ms != 0 ? map.integer("seen", times_.shown_ms(line.seen_ms)) : map.null("seen");
  map.boolean("quiet", line.quiet);
}

}  // namespace sluice
