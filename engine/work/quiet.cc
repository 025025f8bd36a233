#include "engine/work/quiet.h"

#include <set>
#include <string>
#include <utility>

#include "engine/base/glob_literal.h"
#include "engine/queue/worker_silence.h"
#include "engine/reply/reply.h"
#include "engine/work/configure.h"
#include "engine/work/serving.h"

// The calling unit has locked the shard; see database.cc for why the analysis is off.
namespace sluice {

namespace {

// Workers that are forgotten in one hold of the lock.
constexpr size_t kForgottenAtOnce = 256;
// Rules for the names of workers that were silent for this time are dropped.
constexpr int64_t kRuleKeptMs = 24 * 3600 * 1000;

const std::string& worker_of(const Waiter& waiter) {
  return static_cast<const PopRequest&>(*waiter.request).spec.worker;
}

QueueWaiters* waiters_at(QueueWork& work) NO_THREAD_SAFETY_ANALYSIS {
  return work.database().shard().waiters.find_queue(work.database().number(),
                                                    std::string(work.key()));
}

std::set<std::string, std::less<>> waiting_workers(const QueueWaiters* waiters) {
  std::set<std::string, std::less<>> names;
  if (waiters == nullptr) return names;
  for (const auto& [order, waiter] : waiters->all_pops) names.insert(worker_of(*waiter));
  return names;
}

// Tells each connection once about each of its workers.
class QuietPushes {
 public:
  explicit QuietPushes(QueueWork& work) : work_(work) {}

  void tell(const std::shared_ptr<ClientPort>& port, Bytes worker) {
    if (port == nullptr) return;
    if (!told_.emplace(port.get(), worker).second) return;
    Delivery delivery{port, {}, Delivery::Kind::kPush};
    RespReply push(delivery.bytes, 3);
    push.push(3);
    push.bulk("q.quiet");
    push.bulk(work_.key());
    push.bulk(worker);
    work_.unit().deliveries.push_back(std::move(delivery));
  }

 private:
  QueueWork& work_;
  std::set<std::pair<const ClientPort*, std::string>> told_;
};

}  // namespace

void sort_quiet(QueueWaiters& waiters, const Queue* queue) {
  const bool has_rules = queue != nullptr && queue->config.has_worker_rules();
  if (!has_rules && waiters.quiet.empty()) return;
  for (const auto& [order, waiter] : waiters.all_pops) {
    waiters.set_quiet(waiter, has_rules && queue->config.quiet(worker_of(*waiter)));
  }
}

void quiet_changed(QueueWork& work, Bytes pattern) {
  const Queue& queue = work.queue();
  const auto is_told = [&](Bytes worker) {
    return glob_match(pattern, worker) && queue.config.quiet(worker);
  };
  QuietPushes pushes(work);
  if (QueueWaiters* waiters = waiters_at(work)) {
    sort_quiet(*waiters, &queue);
    for (const auto& [order, waiter] : waiters->all_pops) {
      const std::string& worker = worker_of(*waiter);
      if (is_told(worker)) pushes.tell(waiter->port, worker);
    }
  }
  for (const auto& [name, worker] : queue.workers.by_name()) {
    if (worker->active.empty() || !is_told(name)) continue;
    for (auto at = worker->active.begin(); at.valid(); at.next()) {
      pushes.tell(at.value()->run()->holder.lock(), name);
    }
  }
}

void begin_quiet_wait(QueueWork& work, const std::shared_ptr<Waiter>& waiter) {
  if (QueueWaiters* waiters = waiters_at(work)) waiters->set_quiet(waiter, true);
  QuietPushes(work).tell(waiter->port, worker_of(*waiter));
}

void hear_waiting(QueueWork& work) {
  for (const std::string& name : waiting_workers(waiters_at(work))) work.queue().hear_worker(name);
  work.change_timers();
}

namespace {

void forget_rules(QueueWork& work) {
  Queue& queue = work.queue();
  const int64_t now_ms = queue.queue_ms;
  if (!queue.config.has_worker_names() || queue.rules_due_ms > now_ms) return;
  // A worker that waits is there, however long it has said nothing.
  for (const std::string& name : waiting_workers(waiters_at(work))) {
    queue.config.heard(name, now_ms);
  }
  for (const std::string& name : queue.config.silent_workers(now_ms - kRuleKeptMs, now_ms)) {
    // A rule of a name cannot be refused.
    (void)reset_queue_config(work, ConfigLevel::kWorker, glob_escape(name));
  }
  if (!queue.config.has_worker_names()) return;
  queue.rules_due_ms = queue.config.oldest_heard_ms() + kRuleKeptMs;
}

}  // namespace

void forget_workers(QueueWork& work) {
  Queue& queue = work.queue();
  const int64_t now_ms = queue.queue_ms;
  const int64_t before_ms = now_ms - worker_known_ms(queue.config.values());
  if (queue.workers.oldest_ms() <= before_ms) {
    const auto waiting = waiting_workers(waiters_at(work));
    queue.workers.forget_silent(before_ms, queue.queue_ms, kForgottenAtOnce,
                                [&](const std::string& name) { return waiting.contains(name); });
  }
  forget_rules(work);
}

}  // namespace sluice
