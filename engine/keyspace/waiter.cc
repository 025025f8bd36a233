#include "engine/keyspace/waiter.h"

#include <algorithm>
#include <tuple>

#include "engine/access/acl.h"
#include "engine/reply/reply.h"

namespace sluice {

void Waiter::reply_timeout(Reply& reply) const {
  begin_reply(reply);
  timed_out != nullptr ? timed_out(*this, reply) : reply.null_array();
}

void Waiter::reply_error(Reply& reply, Bytes error) const {
  begin_reply(reply);
  reply.error(error);
}

std::string Waiter::lost_right() const {
  if (user == nullptr || user->unrestricted.load(std::memory_order_relaxed)) return {};
  const std::vector<Bytes> args(arguments.begin(), arguments.end());
  const Denial denial = user->rules()->check(*command, args).denial;
  return denial == Denial::kNone ? std::string() : Acl::refusal(denial, *command);
}

bool Waiter::refuse_without_right(Reply& reply) const {
  const std::string refusal = lost_right();
  if (!refusal.empty()) reply_error(reply, refusal);
  return !refusal.empty();
}

bool Waiter::send_nothing(Unit& unit) {
  if (!claim()) return false;
  Delivery delivery{port, {}, Delivery::Kind::kBlockedReply};
  RespReply reply(delivery.bytes, protocol);
  reply_timeout(reply);
  unit.deliveries.push_back(std::move(delivery));
  return true;
}

bool QueueWaiters::add(const std::shared_ptr<Waiter>& waiter) {
  if (waiter->queue.reads) return reading.emplace(waiter->order, waiter).second;
  if (!waiter->queue.job_id.empty()) {
    if (!by_job[waiter->queue.job_id].emplace(waiter->order, waiter).second) return false;
    for (const std::string& id : waiter->queue.more_job_ids) {
      by_job[id].emplace(waiter->order, waiter);
    }
    if (waiter->queue.pops) named.emplace(waiter->order, waiter);
  } else if (waiter->queue.pops) {
    if (!add_pop(waiter)) return false;
  } else {
    if (!others.emplace(waiter->order, waiter).second) return false;
    count_types(waiter->queue.event_types, 1);
  }
  if (waiter->queue.pops) all_pops.emplace(waiter->order, waiter);
  if (!waiter->queue.request_key.empty()) requests[waiter->queue.request_key] = waiter;
  return true;
}

namespace {

template <class Lists>
bool remove_from(Lists& lists, const std::string& name, uint64_t order) {
  const auto found = lists.find(name);
  if (found == lists.end() || found->second.erase(order) == 0) return false;
  if (found->second.empty()) lists.erase(found);
  return true;
}

}  // namespace

bool QueueWaiters::add_pop(const std::shared_ptr<Waiter>& waiter) {
  const QueueWait& wait = waiter->queue;
  if (!pops[wait.signature].emplace(waiter->order, waiter).second) return false;
  counted.add(wait.filter);
  return true;
}

bool QueueWaiters::remove_pop(const Waiter& waiter) {
  if (!remove_from(pops, waiter.queue.signature, waiter.order)) return false;
  counted.remove(waiter.queue.filter);
  return true;
}

bool QueueWaiters::remove(const Waiter* waiter) {
  if (waiter->queue.reads) return reading.erase(waiter->order) != 0;
  bool removed;
  if (!waiter->queue.job_id.empty()) {
    removed = remove_from(by_job, waiter->queue.job_id, waiter->order);
    for (const std::string& id : waiter->queue.more_job_ids) {
      remove_from(by_job, id, waiter->order);
    }
    named.erase(waiter->order);
  } else if (waiter->queue.pops) {
    removed = remove_pop(*waiter) || quiet.erase(waiter->order) != 0;
  } else {
    removed = others.erase(waiter->order) != 0;
    if (removed) count_types(waiter->queue.event_types, ~0U);
  }
  if (!removed) return false;
  due.erase(waiter->order);
  if (waiter->queue.pops) all_pops.erase(waiter->order);
  if (!waiter->queue.request_key.empty()) {
    const auto found = requests.find(waiter->queue.request_key);
    if (found != requests.end() && found->second.get() == waiter) requests.erase(found);
  }
  return true;
}

bool QueueWaiters::follow_job(const std::string& id, uint32_t type) const {
  const auto found = by_job.find(id);
  if (found == by_job.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [type](const auto& waiter) {
    return (waiter.second->queue.event_types & type) != 0;
  });
}

void QueueWaiters::set_quiet(const std::shared_ptr<Waiter>& waiter, bool is_quiet) {
  if (!waiter->queue.job_id.empty()) return;
  if (is_quiet && remove_pop(*waiter)) {
    quiet.emplace(waiter->order, waiter);
  } else if (!is_quiet && quiet.erase(waiter->order) != 0) {
    add_pop(waiter);
  }
}

// `one` is 1 or, modulo 2^32, -1.
void QueueWaiters::count_types(uint32_t types, uint32_t one) {
  for (; types != 0; types &= types - 1) {
    wanted_types[static_cast<size_t>(std::countr_zero(types))] += one;
  }
}

bool WaiterLists::add(const std::string& key, const std::shared_ptr<Waiter>& waiter) {
  if (waiter->wanted == Type::kQueue) {
    QueueWaiters& waiters = by_queue_[static_cast<size_t>(waiter->database)][key];
    if (!waiters.add(waiter)) return false;
    if (waiter->queue.reads) list_owing(waiter->database, key, waiters);
    ++count_;
    ++queue_count_;
    return true;
  }
  List& waiters = by_key_[static_cast<size_t>(waiter->database)][key];
  if (!waiters.emplace(waiter->order, waiter).second) return false;
  ++count_;
  if (waiter->other_shards) ++needing_others_;
  return true;
}

void WaiterLists::remove(const std::string& key, const Waiter* waiter) {
  if (waiter->wanted == Type::kQueue) {
    auto& queues = by_queue_[static_cast<size_t>(waiter->database)];
    const auto found = queues.find(key);
    if (found == queues.end() || !found->second.remove(waiter)) return;
    --count_;
    --queue_count_;
    if (found->second.empty()) queues.erase(found);
    return;
  }
  auto& lists = by_key_[static_cast<size_t>(waiter->database)];
  const auto found = lists.find(key);
  if (found == lists.end()) return;
  if (found->second.erase(waiter->order) == 0) return;
  --count_;
  if (waiter->other_shards) --needing_others_;
  if (found->second.empty()) lists.erase(found);
}

const WaiterLists::List* WaiterLists::find(int database, const std::string& key) const {
  const auto& lists = by_key_[static_cast<size_t>(database)];
  const auto found = lists.find(key);
  return found == lists.end() ? nullptr : &found->second;
}

const QueueWaiters* WaiterLists::find_queue(int database, const std::string& key) const {
  const auto& queues = by_queue_[static_cast<size_t>(database)];
  const auto found = queues.find(key);
  return found == queues.end() ? nullptr : &found->second;
}

size_t WaiterLists::waiting_pops(int database, Bytes key) const {
  if (no_queue_waiters()) return 0;
  const QueueWaiters* waiters = find_queue(database, std::string(key));
  return waiters == nullptr ? 0 : waiters->taking_pops();
}

const WaitingPops* WaiterLists::counted_pops(int database, Bytes key) const {
  if (no_queue_waiters()) return nullptr;
  const QueueWaiters* waiters = find_queue(database, std::string(key));
  return waiters == nullptr ? nullptr : &waiters->counted;
}

WaiterLists::List* WaiterLists::find(int database, const std::string& key) {
  return const_cast<List*>(std::as_const(*this).find(database, key));
}

QueueWaiters* WaiterLists::find_queue(int database, const std::string& key) {
  return const_cast<QueueWaiters*>(std::as_const(*this).find_queue(database, key));
}

void WaiterLists::owe(int database, const std::string& key) {
  QueueWaiters* waiters = find_queue(database, key);
  if (waiters == nullptr || waiters->all_pops.empty()) return;
  waiters->may_repeat = waiters->owes_turns;
  if (waiters->owes_turns) return;
  waiters->owes_turns = true;
  waiters->had_turn = 0;
  list_owing(database, key, *waiters);
}

void WaiterLists::list_owing(int database, const std::string& key, QueueWaiters& waiters) {
  if (waiters.listed) return;
  waiters.listed = true;
  owing_.emplace_back(database, key);
}

bool WaiterLists::next_owing(int& database, std::string& key) {
  while (!owing_.empty()) {
    std::tie(database, key) = std::move(owing_.front());
    owing_.pop_front();
    QueueWaiters* waiters = find_queue(database, key);
    if (waiters == nullptr) continue;
    waiters->listed = waiters->owes();
    if (!waiters->listed) continue;
    owing_.emplace_back(database, key);
    return true;
  }
  return false;
}

std::vector<std::string> WaiterLists::keys(int database) const {
  std::vector<std::string> keys;
  for (const auto& [key, list] : by_key_[static_cast<size_t>(database)]) keys.push_back(key);
  return keys;
}

std::vector<std::string> WaiterLists::queue_keys(int database) const {
  std::vector<std::string> keys;
  for (const auto& [key, waiters] : by_queue_[static_cast<size_t>(database)]) keys.push_back(key);
  return keys;
}

}  // namespace sluice
