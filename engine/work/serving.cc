#include "engine/work/serving.h"

namespace sluice {

namespace {

// More pops with ID are not examined at once, for which half a millisecond suffices.
constexpr size_t kMaxNamed = 512;

const PopSpec& spec_of(const Waiter& waiter) {
  return static_cast<const PopRequest&>(*waiter.request).spec;
}

// Text that no other list of names gives.
void append_name(std::string& text, Bytes name) {
  text += std::to_string(name.size());
  text += ':';
  text += name;
}

bool is_over_for(const Waiter& waiter, const Entry& entry) {
  return is_over(entry.object<Queue>(), waiter.queue.job_id);
}

// The best of what several waiters would get.
class Best {
 public:
  void offer(const std::shared_ptr<Waiter>& waiter, const DispatchChoice& choice) {
    if (choice.job == nullptr) return;
    if (waiter_ != nullptr && !is_before(*waiter, choice)) return;
    waiter_ = waiter;
    choice_ = choice;
  }
  const std::shared_ptr<Waiter>& waiter() const { return waiter_; }
  const Job* job() const { return choice_.job; }

 private:
  bool is_before(const Waiter& waiter, const DispatchChoice& choice) const {
    if (choice.job == choice_.job) return waiter.order < waiter_->order;
    if (choice.band != choice_.band) return choice.band < choice_.band;
    return choice.place < choice_.place;
  }

  std::shared_ptr<Waiter> waiter_;
  DispatchChoice choice_;
};

// The earliest pop among those that wait for one job that accepts it as it is.
void offer_named(Best& best, const QueueWaiters::ByOrder& waiters, QueueWork& work, uint64_t last) {
  for (const auto& [order, waiter] : waiters) {
    if (order > last) return;
    if (!waiter->queue.pops) continue;
    const DispatchChoice choice = choose_job(work, spec_of(*waiter));
    if (choice.job != nullptr) return best.offer(waiter, choice);
  }
}

}  // namespace

bool is_over(const Queue& queue, Bytes id) {
  const Job* job = queue.find(id);
  return job == nullptr || is_terminal(job->state) || job->state == JobState::kActive;
}

std::string request_key(const PopSpec& spec) {
  if (spec.request_token.empty()) return {};
  std::string key;
  append_name(key, spec.worker);
  return key += spec.request_token;
}

std::shared_ptr<Waiter> make_pop_waiter(std::unique_ptr<PopRequest> request, int64_t timeout_ms) {
  auto waiter = std::make_shared<Waiter>();
  const PopSpec& spec = request->spec;
  waiter->request = std::move(request);
  waiter->wanted = Type::kQueue;
  waiter->timeout_ms = timeout_ms;
  waiter->queue.pops = true;
  waiter->queue.request_key = request_key(spec);
  if (spec.id) {
    waiter->queue.job_id = *spec.id;
    waiter->accepts = is_over_for;
    waiter->served_when_gone = true;
    return waiter;
  }
  if (spec.cap != 0) waiter->queue.signature = std::to_string(spec.cap);
  waiter->queue.filter = {spec.cap, spec.match};
  for (const std::string& key : spec.match) {
    waiter->queue.signature += ' ';
    append_name(waiter->queue.signature, key);
  }
  return waiter;
}

bool can_be_served(const Waiter& waiter, QueueWork& work) {
  return choose_job(work, spec_of(waiter)).job != nullptr;
}

NextPop next_pop(const QueueWaiters& waiters, QueueWork& work, uint64_t last) {
  if (waiters.all_pops.empty()) return {};
  size_t looks = waiters.pops.size();
  Best best;
  for (const auto& [signature, pops] : waiters.pops) {
    const std::shared_ptr<Waiter>& first = pops.begin()->second;
    if (first->order > last) continue;
    best.offer(first, choose_job(work, spec_of(*first)));
  }
  if (waiters.named.empty()) return {best.waiter(), looks};
  // Among pops by ID, the one that waits for the next job of all is nearly always the one that is
  // served.
  const DispatchChoice next = choose_job(work, PopSpec{});
  if (next.job == nullptr) return {best.waiter(), looks};
  const auto named = waiters.by_job.find(std::string(next.job->id()));
  if (named != waiters.by_job.end()) offer_named(best, named->second, work, last);
  if (best.job() == next.job) return {best.waiter(), looks};
  // No pop accepts the next job, but one may accept a later job.
  if (waiters.named.size() > kMaxNamed) {
    return {best.waiter(), looks, best.waiter() == nullptr};
  }
  looks += waiters.named.size();
  for (const auto& [order, waiter] : waiters.named) {
    if (order > last) break;
    best.offer(waiter, choose_job(work, spec_of(*waiter)));
  }
  return {best.waiter(), looks};
}

namespace {

bool is_concerned(Waiter& waiter, const SignalledKey& ready, const Entry& entry) {
  if (ready.what == SignalledKey::What::kEvent) {
    if ((waiter.queue.event_types & ready.event_type) == 0) return false;
    // An earlier event that it wants would have served it already.
    waiter.queue.passed_seq = ready.event_seq - 1;
    return true;
  }
  const bool of_events = waiter.queue.event_types != 0;
  if (ready.what == SignalledKey::What::kJob && of_events) return false;
  if (of_events) waiter.queue.passed_seq = ready.event_seq;
  return waiter.accepts == nullptr || waiter.accepts(waiter, entry);
}

}  // namespace

std::vector<std::shared_ptr<Waiter>> concerned_waiters(const QueueWaiters& waiters,
                                                       const SignalledKey& ready,
                                                       const Entry& entry) {
  std::vector<std::shared_ptr<Waiter>> concerned;
  const auto offer = [&](uint64_t order, const std::shared_ptr<Waiter>& waiter) {
    if (waiters.due.contains(order)) return;
    if (is_concerned(*waiter, ready, entry)) concerned.push_back(waiter);
  };
  const auto add = [&](const QueueWaiters::ByOrder& group) {
    for (const auto& [order, waiter] : group) offer(order, waiter);
  };
  if (ready.what == SignalledKey::What::kQueue) {
    for (const auto& [id, group] : waiters.by_job) {
      for (const auto& [order, waiter] : group) {
        // One that waits for several jobs is examined once.
        if (waiter->queue.job_id == id) offer(order, waiter);
      }
    }
  } else if (const auto found = waiters.by_job.find(ready.job_id); found != waiters.by_job.end()) {
    add(found->second);
  }
  if (ready.what != SignalledKey::What::kJob) add(waiters.others);
  return concerned;
}

std::vector<std::shared_ptr<Waiter>> waiters_of_lost_queue(const QueueWaiters& waiters) {
  std::vector<std::shared_ptr<Waiter>> answered;
  const auto add = [&](const QueueWaiters::ByOrder& group) {
    for (const auto& [order, waiter] : group) {
      if (waiter->served_when_gone) answered.push_back(waiter);
    }
  };
  for (const auto& [id, group] : waiters.by_job) add(group);
  for (const auto& [signature, group] : waiters.pops) add(group);
  add(waiters.others);
  return answered;
}

}  // namespace sluice
